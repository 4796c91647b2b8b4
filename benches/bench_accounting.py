"""Epsilon by hdp_fast.accounting beside dp-accounting's privacy-loss distributions.

Run `python benches/bench_accounting.py`: about a minute. Of equal guarantees the smaller epsilon is
the better one; dp-accounting's optimistic estimate ("at least") is no guarantee but a lower bound.

Then the least noise of private gradient descent inside Subsample-Test-Reweigh, in units of the
clipping norm, for T rounds of R steps on b draws from n records: rounded Gaussian noise, which
keeps the continuous curve, and discrete Gaussian noise, of which only the moments bound every
number of changed draws. Then what else rounding saves: the noise of single releases with either.

Last reports behind a shuffler, by this package's bounds and by published ones: the clones of
Feldman, McMillan and Talwar 2021 computed without an inequality, and their formula.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from _harness import Race, forget_plans, run_file

from hdp_fast import accounting
from hdp_fast.accounting import (
    ZCDP,
    BoundedRange,
    GaussianMechanism,
    LaplaceMechanism,
    Pure,
    Shuffled,
    Subsampled,
)
from hdp_fast.stability import GaussianVote

Terms = list[tuple[accounting.Mechanism, int]]

CASES: dict[str, tuple[Terms, float]] = {
    "Gaussian, mu 1": ([(GaussianMechanism(1.0), 1)], 1e-6),
    "Gaussian, mu 0.03 x 1,000": ([(GaussianMechanism(0.03), 1_000)], 1e-6),
    "Gaussian, mu 0.003 x 100,000": ([(GaussianMechanism(0.003), 100_000)], 1e-6),
    "Laplace, epsilon 0.1 x 100": ([(LaplaceMechanism(0.1), 100)], 1e-6),
    "Laplace 0.5, Gaussian 0.05 x 100": (
        [(LaplaceMechanism(0.5), 1), (GaussianMechanism(0.05), 100)],
        1e-6,
    ),
    "pure 1 on a subsample x 1,000": (
        [(Subsampled(Pure(1), draws=10_000, rate=5.93e-7), 1_000)],
        1e-6,
    ),
    "exponential 1 on a subsample x 1,000": (
        [(Subsampled(BoundedRange(1), draws=10_000, rate=1.06e-6), 1_000)],
        1e-6,
    ),
    "minibatch gradients x 2,000": (
        [(Subsampled(GaussianMechanism(2 / 37.1), draws=1_000, rate=6.75e-5), 2_000)],
        1e-4,
    ),
}

# One with a peer and one without.
QUICK = ("Laplace 0.5, Gaussian 0.05 x 100", "pure 1 on a subsample x 1,000")

KAPPA, EPSILON, DELTA = 0.014815, 0.5, 1e-4
# That of releases, as in most of the guides.
DELTA_OF_RELEASES = 1e-6
DESIGNS = [
    (1_000_000, 20, 100, 1_000),
    (1_000_000, 20, 200, 200),
    (1_000_000, 100, 100, 1_000),
    (1_000_000, 1_015, 100, 300),
    (3_000_000, 1_015, 100, 1_000),
    (10_000_000, 1_015, 100, 3_000),
]


INTERVAL = 1e-4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("composed", CASES)
def bench_epsilon(race: Race, tiny: bool, composed: str) -> None:
    """Epsilon at delta = 1e-6 (1e-4 for gradients) by every route."""
    if tiny and composed not in QUICK:
        pytest.skip("like the others")
    terms, delta = CASES[composed]

    def rdp() -> float:
        forget_plans()
        return accounting.epsilon(terms, delta, accountant="rdp")

    def pld() -> float:
        forget_plans()
        return accounting.epsilon(terms, delta)

    race.ours(pld, "pld", threads=(1,), epsilon=rounded(pld()))
    race.ours(rdp, "rdp", threads=(1,), epsilon=rounded(rdp()))
    kinds = GaussianMechanism | LaplaceMechanism
    known = all(isinstance(mechanism, kinds) for mechanism, _ in terms)
    if known and importlib.util.find_spec("dp_accounting") is not None:
        # The optimistic estimate says each time that it is no connect-the-dots.
        logging.disable(logging.WARNING)
        figures = {"epsilon": rounded(peer(terms, delta, INTERVAL, True))}
        figures["at least"] = rounded(peer(terms, delta, INTERVAL, False))
        race.peer("dp-accounting", lambda: peer(terms, delta, INTERVAL, True), **figures)
    race.run()


def rounded(value: float) -> float:
    return float(f"{value:.6g}")


@pytest.mark.parametrize(("n", "T", "R", "b"), DESIGNS)
def bench_least_noise(race: Race, tiny: bool, n: int, T: int, R: int, b: int) -> None:
    """The least noise of a design of either kind."""
    if tiny and (n, T, R, b) != DESIGNS[0]:
        pytest.skip("like the first")
    rounds = 1 if tiny else T * R

    def least(base: Callable[[float], accounting.Mechanism]) -> float:
        forget_plans()
        return accounting.smallest_noise(
            lambda s: Subsampled(base(s), draws=b, rate=1 / (KAPPA * n)),
            rounds=rounds,
            epsilon=EPSILON,
            delta=DELTA,
        )

    # One draw replaced moves a clipped sum by twice the clipping norm.
    kinds: dict[str, Callable[[float], accounting.Mechanism]] = {
        "rounded": lambda s: GaussianMechanism(2 / s),
        "discrete": lambda s: ZCDP(2 / s**2),
    }
    for name, base in kinds.items():
        found = rounded(least(base))
        race.ours(lambda base=base: least(base), name, threads=(1,), noise=found)  # type: ignore[misc]
    race.run()


def bench_releases(table: Callable[..., None]) -> None:
    """The least noise of releases, by their sensitivity."""
    rows = [release(epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 10.0)]
    cells = [[f"{value:.5g}" for value in row.values()] for row in rows]
    title = f"least noise of releases at delta = {DELTA_OF_RELEASES:g}, by their sensitivity"
    table(title, [[*rows[0]], *cells])


def release(epsilon: float) -> dict[str, float]:
    """Noise by sensitivity of one release, or of all of an adaptation, and of a GaussianVote.

    A discrete Gaussian's noise is that of zCDP; the vote's own is what design chooses.
    """
    rounded = 1 / accounting.gaussian_mu(epsilon, DELTA_OF_RELEASES)
    discrete = (2 * accounting.zcdp_rho(epsilon, DELTA_OF_RELEASES)) ** -0.5
    vote = GaussianVote.design(100, epsilon=epsilon, delta=DELTA_OF_RELEASES, beta=0.05, labels=10)
    return {
        "epsilon": epsilon,
        "rounded": rounded,
        "discrete": discrete,
        "ratio": discrete / rounded,
        "vote, 100 queries": float(vote.sigma),
        "vote, discrete": discrete * 200**0.5,
    }


def bench_shuffled(table: Callable[..., None], tiny: bool) -> None:
    """Epsilon of shuffled reports at delta = 1e-6."""
    people = (1_000,) if tiny else (1_000, 10_000)
    rows = [shuffled(n, local) for n in people for local in (0.5, 1.0, 2.0, 4.0)]
    cells = [[f"{value:.4g}" for value in row.values()] for row in rows]
    table(f"epsilon behind a shuffler at delta = {DELTA_OF_RELEASES:g}", [[*rows[0]], *cells])


def shuffled(n: int, local: float) -> dict[str, float]:
    """Bounds for one mix; those published at the end."""

    def ours(categories: int | None) -> float:
        return accounting.epsilon(Shuffled(local, n, categories), DELTA_OF_RELEASES)

    return {
        "n": n,
        "of a report": local,
        "any": ours(None),
        "10 categories": ours(10),
        "bits": ours(2),
        "clones, 2021": epsilon_of_clones(n, local, math.exp(-local)),
        "formula, 2021": formula(n, local),
    }


def formula(n: int, local: float) -> float:
    """Feldman, McMillan and Talwar 2021, Theorem 3.1; infinite where it says nothing."""
    if local > math.log(n / (16 * math.log(2 / DELTA_OF_RELEASES))):
        return math.inf
    growth = math.exp(local)
    root = 8 * math.sqrt(growth * math.log(4 / DELTA_OF_RELEASES) / n)
    return math.log1p((growth - 1) / (growth + 1) * (root + 8 * growth / n))


def epsilon_of_clones(n: int, local: float, chance: float) -> float:
    """The epsilon where each of the others is a clone with this probability, by bisection."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])

    def masses(trials: int, rate: float) -> np.ndarray[Any, Any]:
        k = np.arange(trials + 1)
        choices = logs[trials] - logs[k] - logs[trials - k]
        return np.exp(choices + k * math.log(rate) + (trials - k) * math.log1p(-rate))

    clones = masses(n - 1, chance)
    truth, pairs = 1 / (1 + math.exp(-local)), []
    for count in np.flatnonzero(clones > 1e-14):
        coins = masses(int(count), 0.5) * clones[count]
        one, zero = np.append(0.0, coins), np.append(coins, 0.0)
        pairs.append((truth * one + (1 - truth) * zero, truth * zero + (1 - truth) * one))
    p, q = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    low, high = 0.0, local
    for _ in range(40):
        middle = (low + high) / 2
        exceeded = np.maximum(p - math.exp(middle) * q, 0).sum() > DELTA_OF_RELEASES
        low, high = (middle, high) if exceeded else (low, middle)
    return high


def peer(terms: Terms, delta: float, interval: float, pessimistic: bool) -> float:
    """dp-accounting's epsilon."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def single(mechanism: accounting.Mechanism) -> Any:
        options = {"value_discretization_interval": interval, "pessimistic_estimate": pessimistic}
        if isinstance(mechanism, GaussianMechanism):
            return pld.from_gaussian_mechanism(1 / mechanism.mu, **options)
        assert isinstance(mechanism, LaplaceMechanism)
        return pld.from_laplace_mechanism(1 / mechanism.epsilon, **options)

    first, *others = (single(mechanism).self_compose(rounds) for mechanism, rounds in terms)
    for other in others:
        first = first.compose(other)
    return float(first.get_epsilon_for_delta(delta))


if __name__ == "__main__":
    run_file(__file__)
