"""Projection, updates and draws of hdp_fast.weights beside numpy's selection, sort and search.

Run `python benches/bench_weights.py`: about two minutes and 1 GB of memory; `--largest` goes up to
400,000,000 records and 13 GB.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from _harness import Action, Race, require_memory, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast.reference import weights as reference
from hdp_fast.weights import DenseWeights, project

KAPPA, ETA = 0.05, 0.1
SIZES = (100_000, 1_000_000, 10_000_000)
# Beyond this numpy takes minutes.
LARGEST_NUMPY = 10_000_000
THREADS = (1, 2)

Floats = NDArray[np.float64]
sizes = pytest.mark.sizes("n", SIZES, largest=(100_000_000,))


def weights_of(n: int) -> Floats:
    """Weights of which few are large."""
    return np.random.default_rng(1).random(n) ** 8 + 1e-9


def losses_of(n: int) -> NDArray[np.uint8]:
    return (np.random.default_rng(2).random(n) < 0.3).astype(np.uint8)


@pytest.mark.sizes("n", SIZES, largest=(100_000_000, 400_000_000))
@pytest.mark.parametrize("into", ["new memory", "given memory", "place", "place, again"])
def bench_project(race: Race, limits: Limits, n: int, into: str) -> None:
    """Weights in their own place are written there before each call; again, they are projected."""
    require_memory(32 * n)
    w = weights_of(n)
    out = np.empty_like(w) if into == "given memory" else w.copy()

    def in_place(action: Action) -> Action:
        def clock() -> float:
            np.copyto(out, w)
            start = time.perf_counter()
            action()
            return time.perf_counter() - start

        return clock if into == "place" else action

    actions: dict[str, tuple[Action, Action]] = {
        "new memory": (lambda: project(w, KAPPA), lambda: reference.project_by_partition(w, KAPPA)),
        "given memory": (
            lambda: project(w, KAPPA, out=out),
            lambda: reference.project_by_partition(w, KAPPA, out=out),
        ),
        "place": (
            lambda: project(out, KAPPA, out=out),
            lambda: reference.project_by_partition(out, KAPPA, out=out),
        ),
    }
    ours, numpy = map(in_place, actions[into.removesuffix(", again")])
    timed_inside = into == "place"
    race.ours(ours, is_clock=timed_inside)
    if n <= LARGEST_NUMPY:
        assert np.allclose(project(w, KAPPA), reference.project_by_partition(w, KAPPA))
        race.numpy("partition", numpy, is_clock=timed_inside)
        if into == "new memory":
            race.numpy("sort", lambda: reference.project(w, KAPPA))
    for threads in THREADS:
        # The weights are read twice and written once.
        arrays = 8 * n if into.startswith("place") else 16 * n
        race.limit("memory", limits.moved(24 * n, threads, arrays), threads=threads)
    race.run(n, "weight")


@sizes
@pytest.mark.parametrize("losses", ["floats", "bits"])
def bench_update(race: Race, limits: Limits, n: int, losses: str) -> None:
    require_memory(48 * n)
    bits = losses_of(n)
    given = bits if losses == "bits" else bits.astype(float)
    weights, w = DenseWeights(n, KAPPA, ETA), weights_of(n)
    factors, buffer = np.exp(-ETA * (1 - np.arange(2.0))), np.empty(n)
    race.ours(lambda: weights.update(given))
    if n <= LARGEST_NUMPY:
        if losses == "bits":
            race.numpy("two factors looked up", lambda: np.multiply(w, factors[bits], out=w))
        race.numpy("exp", lambda: reference.update(w, given, ETA))
        race.numpy("exp in one buffer", lambda: update_in_buffer(w, given, buffer))
    for threads in THREADS:
        size = (17 if losses == "bits" else 24) * n
        race.limit("memory", limits.moved(size, threads), threads=threads)
    race.run(n, "weight")


def update_in_buffer(w: Floats, losses: NDArray[Any], buffer: Floats) -> None:
    """The same without new memory, whose pages cost more than the arithmetic."""
    np.subtract(losses, 1, out=buffer)
    np.multiply(buffer, ETA, out=buffer)
    np.exp(buffer, out=buffer)
    np.multiply(w, buffer, out=w)


@sizes
def bench_draw(race: Race, limits: Limits, n: int) -> None:
    """As many draws as there are records."""
    require_memory(64 * n)
    weights, w, rng = DenseWeights(n, KAPPA, ETA), weights_of(n), np.random.default_rng()
    weights.update(losses_of(n))
    race.ours(lambda: weights.draw(n))
    if n <= LARGEST_NUMPY:
        race.numpy("search", lambda: reference.draw(w, n, rng))
        race.numpy("sorted draws, shuffled", lambda: draw_in_order(w, n, rng))
    race.limit("a word a draw", n * limits.word)
    race.run(n, "draw")


def draw_in_order(w: Floats, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same law: points are searched in order, which is fast, and then shuffled."""
    sums = np.cumsum(w)
    points = np.sort(rng.random(m)) * sums[-1]
    drawn = np.searchsorted(sums, points, side="right")
    rng.shuffle(drawn)
    return drawn


if __name__ == "__main__":
    run_file(__file__)
