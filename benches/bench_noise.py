"""Exact draws of hdp_fast.noise beside OpenDP's exact ones and numpy's inexact ones.

Run `python benches/bench_noise.py`: about two minutes. OpenDP comes with the extra `bench`. It
draws fewer values, since its cost a draw does not depend on how many.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file
from _machine import Limits

from hdp_fast import local, noise
from hdp_fast.reference import noise as reference

DRAWS, PEER_DRAWS = 1_000_000, 20_000
BITS = 10_000_000
# The law, its scale, and the words of the random stream that a draw takes at least.
LAWS = [("discrete_laplace", 2.0, 1), ("discrete_laplace", 1e4, 2)]
LAWS += [
    (law, scale, words)
    for law in ("discrete_gaussian", "rounded_gaussian")
    for scale, words in ((2.0, 1), (3.0, 1), (50.0, 1), (100.0, 2), (1e4, 2), (1e6, 2))
]
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
laws = pytest.mark.parametrize(("law", "scale"), [each[:2] for each in LAWS])


@pytest.mark.parametrize(("law", "scale", "words"), LAWS)
def bench_draws(race: Race, limits: Limits, law: str, scale: float, words: int) -> None:
    """A million draws."""
    del race.params["words"]
    n = race.scaled("draws", DRAWS)
    add_routes(race, law, scale, n)
    peer = opendp_noise(law, scale)
    if peer is not None:
        race.peer("OpenDP", peer, share=n / PEER_DRAWS)
    race.limit("words of the stream", words * n * limits.word)
    race.run(n, "draw")


def add_routes(
    race: Race, law: str, scale: float, n: int, threads: tuple[int, ...] = (1, 2)
) -> None:
    """Ours, and the rounded draws of numpy."""
    draw, inexact = (getattr(module, law) for module in (noise, reference))
    rng = np.random.default_rng()
    race.ours(lambda: draw(scale, n), threads=threads)
    race.numpy("rounded floats, not private", lambda: inexact(scale, n, rng))


@laws
@pytest.mark.parametrize("draws", [1, 100, 1_000])
def bench_few(race: Race, law: str, scale: float, draws: int) -> None:
    """Calls for few draws, by a scale that was asked for before."""
    add_routes(race, law, scale, draws, threads=(1,))
    race.run(draws, "draw")


@laws
def bench_new_scale(race: Race, law: str, scale: float) -> None:
    """A thousand draws by a scale that no call has asked for."""
    draw, scales = getattr(noise, law), iter(range(1, 1 << 30))
    race.ours(lambda: draw(scale * (1 + next(scales) / (1 << 30)), 1_000), threads=(1,))
    rng = np.random.default_rng()
    race.numpy("rounded floats, not private", lambda: getattr(reference, law)(scale, 1_000, rng))
    race.run(1_000, "draw")


@pytest.mark.sizes("draws", SIZES)
@pytest.mark.parametrize("law", ["discrete_laplace", "rounded_gaussian"])
def bench_growth(race: Race, law: str, draws: int) -> None:
    """Scale 10,000, by the number of draws."""
    add_routes(race, law, 1e4, draws)
    race.run(draws, "draw")


def opendp_noise(law: str, scale: float) -> Callable[[], Any] | None:
    """OpenDP's noise on a vector of zeros, if OpenDP is installed."""
    if importlib.util.find_spec("opendp") is None or law == "rounded_gaussian":
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    distance = dp.l1_distance(T="i64") if law == "discrete_laplace" else dp.l2_distance(T="i64")
    make = dp.m.make_laplace if law == "discrete_laplace" else dp.m.make_gaussian
    measurement = make(domain, distance, scale=scale)
    zeros = [0] * PEER_DRAWS
    return lambda: measurement(zeros)


@pytest.mark.sizes("n", (100_000, 1_000_000, BITS))
@pytest.mark.parametrize("values", ["bits", "fractions"])
def bench_response(race: Race, limits: Limits, values: str, n: int) -> None:
    """Randomized response at epsilon = 1."""
    rng = np.random.default_rng()
    bits, lie = rng.integers(0, 2, n, dtype=np.uint8), 1 / (1 + math.e)
    fractions = rng.random(n)
    truth = 1 - 2 * lie
    given = bits if values == "bits" else fractions
    race.ours(lambda: local.randomized_response(given, epsilon=1))
    if values == "bits":
        race.numpy("random(n) < p, coins alone", lambda: rng.random(n) < lie)
        race.numpy("response", lambda: reference.randomized_response(bits, 1, rng))
        race.numpy(
            "response, float32", lambda: bits ^ (rng.random(n, dtype=np.float32) < np.float32(lie))
        )
    else:
        race.numpy("random(n) < fractions, coins alone", lambda: rng.random(n) < fractions)
        race.numpy("response", lambda: rng.random(n) < truth * fractions + lie)
    for threads in (1, 2):
        race.limit("memory", limits.moved((2 if values == "bits" else 9) * n, threads),
                   threads=threads)  # fmt: skip
        # A byte of the stream decides on most bits, two on most fractions.
        coins = n * limits.word / (8 if values == "bits" else 4)
        race.limit("coins", coins / threads, threads=threads)
    race.run(n, values.removesuffix("s"))


@pytest.mark.parametrize("choice", ["permute_and_flip", "exponential_mechanism", "weighted_draws"])
def bench_choice(race: Race, choice: str) -> None:
    """One choice among a million candidates; or a million draws with as many weights."""
    n, rng = race.scaled("n", DRAWS), np.random.default_rng()
    if choice == "weighted_draws":
        weights = rng.integers(0, 1 << 40, n).astype(np.uint64)
        race.ours(lambda: noise.weighted_draws(weights, n))
        race.numpy("search", lambda: reference.weighted_draws(weights, n, rng))
        race.numpy("sorted draws, shuffled", lambda: draw_in_order(weights, n, rng))
    else:
        scores, choose = rng.integers(0, 1_000, n), getattr(noise, choice)
        inexact = getattr(reference, choice)
        race.ours(lambda: choose(scores, epsilon=0.1))
        race.numpy("largest noisy score", lambda: inexact(scores, 0.05, rng))
    race.run(n, "draw" if choice == "weighted_draws" else "candidate")


def draw_in_order(weights: Any, size: int, rng: np.random.Generator) -> Any:
    """The same law as a search for each draw: in order, then shuffled."""
    sums = np.cumsum(weights)
    points = np.sort(rng.integers(sums[-1], size=size, dtype=np.uint64))
    drawn = np.searchsorted(sums, points, side="right")
    rng.shuffle(drawn)
    return drawn


if __name__ == "__main__":
    run_file(__file__)
