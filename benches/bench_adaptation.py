"""A step of adaptation beside numpy: predictions, losses, weights and the weighted gradient.

Run `python benches/bench_adaptation.py`: about two minutes and 5 GB of memory; `--small` takes a
tenth of the rows. Half of the rows are public, half private. The peer is numpy's products X @ w and
X.T @ r alone; the limit is what reading the rows once takes. "exact" rounds coefficients to
integers, "given" takes the weights and returns the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from _harness import Race, controller, require_memory, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast import _core
from hdp_fast.learners.linear_model import core_arguments, validate_rows
from hdp_fast.reference import linear as reference

RECORDS, THREADS = 1_000_000, (1, 2)
KAPPA_1, OFFSET = 0.3, 0.1
UNITS, MOST = 1 << 16, 1 << 14
# Bytes of a block.
CACHED = 1 << 19

Half = tuple[NDArray[Any], NDArray[np.float64], Any]
Action = Callable[[], object]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [8, 64, 384])
def bench_step(race: Race, limits: Limits, d: int, dtype: str, loss: str) -> None:
    """A million rows, public and private together."""
    compete(race, limits, race.scaled("n", RECORDS), d, dtype, loss)


@pytest.mark.sizes("n", (10_000, 100_000, RECORDS))
def bench_growth(race: Race, limits: Limits, n: int) -> None:
    """Rows of 64 numbers, squared loss, by their number."""
    compete(race, limits, n, 64, "float64", "squared")


def compete(race: Race, limits: Limits, n: int, d: int, dtype: str, loss: str) -> None:
    """A step of both halves, one after the other, and of its rivals."""
    require_memory(2 * n * d * np.dtype(dtype).itemsize)
    halves = halves_of(n, d, dtype)
    w, cap = np.full(d, 0.5 / np.sqrt(d)), 1 / n
    single, r = w.astype(dtype), halves[0][1].astype(dtype)
    race.ours(ours(halves, loss, w, (cap, KAPPA_1, OFFSET)))
    if loss == "squared":
        grid = (MOST / (2.5 * cap), float(MOST), float(UNITS))
        race.ours(ours(halves, loss, w, (cap, KAPPA_1, OFFSET), grid), "exact", threads=(2,))
        race.ours(ours(halves, loss, w, np.full(n // 2, cap)), "given", threads=(2,))
    race.numpy("step", numpy(halves, loss, w, cap), threads=THREADS)
    race.numpy("step in cached blocks", in_blocks(halves, loss, w, cap, 1))
    race.numpy("step in cached blocks of threads", in_blocks(halves, loss, w, cap, 2), threads=(2,))
    race.peer("products alone", lambda: [(X @ single, X.T @ r) for X, _, _ in halves], threads=2)
    size = sum(X.nbytes for X, _, _ in halves)
    for threads in THREADS:
        race.limit("rows read once", limits.read(size, threads), threads=threads)
    race.run(n, "row")


def ours(halves: list[Half], loss: str, w: Any, weights: Any, grid: Any = None) -> Action:
    """A step by the core."""
    return lambda: [
        _core.adaptation_pass(
            core_arguments(looked, y), loss, w, offset(weights, number), grid, None
        )
        for number, (_, y, looked) in enumerate(halves)
    ]


def numpy(halves: list[Half], loss: str, w: Any, cap: float) -> Action:
    """A step by numpy."""
    return lambda: [
        reference.evaluate_eliminated(
            X, y, w, cap=cap, kappa_1=KAPPA_1, offset=OFFSET * (number == 0), loss=loss
        )
        for number, (X, y, _) in enumerate(halves)
    ]


def in_blocks(halves: list[Half], loss: str, w: Any, cap: float, threads: int) -> Action:
    """A step by numpy on blocks that stay in the second cache, in threads of Python."""
    parts = []
    for number, (X, y, _) in enumerate(halves):
        rows, size = max(256, CACHED // X[0].nbytes), -(-len(X) // threads)
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            parts.append((X[part], y[part], OFFSET * (number == 0), rows))

    def run_part(part: tuple[Any, Any, float, int]) -> tuple[float, Any]:
        X, y, shift, rows = part
        total, gradient = 0.0, np.zeros(len(w))
        for start in range(0, len(X), rows):
            some = slice(start, start + rows)
            value, slope = reference.evaluate_eliminated(
                X[some], y[some], w, cap=cap, kappa_1=KAPPA_1, offset=shift, loss=loss
            )
            total, gradient = total + value, gradient + slope
        return total, gradient

    def act() -> object:
        # The threads are Python's; those of BLAS would only wait for each other.
        with controller().limit(limits=1), ThreadPoolExecutor(threads) as pool:
            return list(pool.map(run_part, parts))

    return act


def offset(weights: Any, number: int) -> Any:
    """Only public rows, the first half, have one."""
    return (*weights[:2], OFFSET * (number == 0)) if isinstance(weights, tuple) else weights


@lru_cache(maxsize=1)
def halves_of(n: int, d: int, dtype: str) -> list[Half]:
    """Public and private rows; several benches in a row take the same."""
    return [half(n // 2, d, dtype, seed) for seed in (1, 2)]


def half(rows: int, d: int, dtype: str, seed: int) -> Half:
    """Rows of norm about 1, labels by the first entry."""
    X = np.random.default_rng(seed).random((rows, d), dtype=np.dtype(dtype).type)
    X -= 0.5
    X *= np.sqrt(12 / d)
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), validate_rows(X)


if __name__ == "__main__":
    run_file(__file__)
