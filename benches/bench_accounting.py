"""Epsilon by hdp_fast.accounting beside dp-accounting's privacy-loss distributions.

Run `python benches/bench_accounting.py`: less than a minute. Of equal guarantees the smaller
epsilon is the better one; dp-accounting's optimistic estimate is no guarantee but a lower bound.

Then the least noise of private gradient descent inside Subsample-Test-Reweigh, in units of the
clipping norm, for T rounds of R steps on b draws from n records: rounded Gaussian noise, which
keeps the continuous curve, and discrete Gaussian noise, of which only the moments bound every
number of changed draws. Last what else rounding saves: the noise of single releases with either.
"""

from __future__ import annotations

import logging
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from _harness import make_parser, print_aligned, print_json

from hdp_fast import accounting
from hdp_fast.accounting import (
    ZCDP,
    BoundedRange,
    GaussianMechanism,
    LaplaceMechanism,
    Pure,
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

KAPPA, EPSILON, DELTA = 0.014815, 0.5, 1e-4
# Of releases, as in most of the guides.
DELTA_OF_RELEASES = 1e-6
DESIGNS = [
    (1_000_000, 20, 100, 1_000),
    (1_000_000, 20, 200, 200),
    (1_000_000, 100, 100, 1_000),
    (1_000_000, 1_015, 100, 300),
    (3_000_000, 1_015, 100, 1_000),
    (10_000_000, 1_015, 100, 3_000),
]


def main() -> None:
    """Print the table, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--interval", type=float, default=1e-4, help="grid of dp-accounting")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # The optimistic estimate says each time that it is no connect-the-dots.
    logging.disable(logging.WARNING)
    rows = {
        name: measure(terms, delta, arguments.repeats, arguments.interval)
        for name, (terms, delta) in CASES.items()
    }
    noises = [noise(*design) for design in DESIGNS]
    releases = [release(epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 10.0)]
    if arguments.json:
        print_json({"epsilon": rows, "noise": noises, "releases": releases})
    else:
        print_table(rows)
        print_noises(noises)
        print_releases(releases)


def measure(
    terms: Terms, delta: float, repeats: int, interval: float
) -> dict[str, tuple[float, float] | None]:
    """Epsilon and median milliseconds of every route; None where the peer has no such mechanism."""
    peers = all(
        isinstance(mechanism, GaussianMechanism | LaplaceMechanism) for mechanism, _ in terms
    )
    routes: dict[str, Callable[[], float] | None] = {
        "pld": lambda: accounting.epsilon(terms, delta),
        "rdp": lambda: accounting.epsilon(terms, delta, accountant="rdp"),
        "dp-accounting": (lambda: peer(terms, delta, interval, True)) if peers else None,
        "optimistic": (lambda: peer(terms, delta, interval, False)) if peers else None,
    }
    return {name: route and timed(route, repeats) for name, route in routes.items()}


def noise(n: int, rounds: int, steps: int, draws: int) -> dict[str, float]:
    """The least noise of a design of either kind, and the milliseconds of finding both."""

    def least(base: Callable[[float], accounting.Mechanism]) -> float:
        def family(s: float) -> accounting.Mechanism:
            return Subsampled(base(s), draws=draws, rate=1 / (KAPPA * n))

        return accounting.smallest_noise(
            family, rounds=steps * rounds, epsilon=EPSILON, delta=DELTA
        )

    # One draw replaced moves a clipped sum by twice the clipping norm.
    rounded, first = timed(lambda: least(lambda s: GaussianMechanism(2 / s)), 1)
    discrete, second = timed(lambda: least(lambda s: ZCDP(2 / s**2)), 1)
    return {
        "n": n,
        "T": rounds,
        "R": steps,
        "b": draws,
        "rounded": rounded,
        "discrete": discrete,
        "ratio": discrete / rounded,
        "milliseconds": first + second,
    }


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


def timed(route: Callable[[], float], repeats: int) -> tuple[float, float]:
    """The result and the median milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = route()
        times.append(time.perf_counter() - start)
    return found, statistics.median(times) * 1e3


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


def print_table(rows: dict[str, dict[str, tuple[float, float] | None]]) -> None:
    """Epsilon (milliseconds) of every route."""
    routes = list(next(iter(rows.values())))
    lines = [
        [
            name,
            *("-" if cell is None else f"{cell[0]:.5f} ({cell[1]:.1f})" for cell in row.values()),
        ]
        for name, row in rows.items()
    ]
    print("epsilon at delta = 1e-6 (1e-4 for gradients), in brackets median milliseconds")
    print_aligned([["", *routes], *lines])


def print_noises(noises: list[dict[str, float]]) -> None:
    """A row a design."""
    text = f"epsilon = {EPSILON:g}, delta = {DELTA:g}, kappa = {KAPPA:g}"
    print(f"\nleast noise of minibatch gradients at {text}")
    header = [*noises[0]]
    body = [
        [f"{value:,.5g}" if value < 1e5 else f"{value:,.0f}" for value in row.values()]
        for row in noises
    ]
    print_aligned([header, *body])


def print_releases(releases: list[dict[str, float]]) -> None:
    """A row an epsilon."""
    print(f"\nleast noise of releases at delta = {DELTA_OF_RELEASES:g}, by their sensitivity")
    print_aligned([
        [*releases[0]], *([f"{value:.5g}" for value in row.values()] for row in releases)
    ])  # fmt: skip


if __name__ == "__main__":
    main()
