"""Discrepancy of a source and a target of half a million rows each, beside what BLAS needs.

Run `python benches/bench_discrepancy.py`: about a minute and 2 GB; `--small` takes a tenth of the
rows. The limit is one Gram matrix of all rows, block by block in double precision, without which no
method can do; rows are float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _harness import Race, require_memory, run_file
from numpy.typing import NDArray

from hdp_fast.adaptation import Discrepancy, discrepancy

RECORDS, BLOCK = 1_000_000, 4096


@pytest.mark.parametrize("d", [8, 64, 384])
def bench_discrepancy(race: Race, d: int) -> None:
    """Both methods, and what they find."""
    n, rng = race.scaled("n", RECORDS) // 2, np.random.default_rng(0)
    require_memory(24 * n * d)
    source, target = rows_of(rng, n, d), rows_of(rng, n, d)
    data = source, np.clip(source[:, 0] * 2, -1, 1), target, np.clip(target[:, 1] * 2, -1, 1)

    def solve(method: Any) -> Discrepancy:
        return discrepancy(*data, radius=3.0, norm_bound=1.0, method=method)

    exact, dca = solve("exact"), solve("dca")
    values = {"value": float(f"{exact.value:.4g}"), "gap": float(f"{exact.gap:.1g}")}
    race.ours(lambda: solve("exact"), "exact", threads=(2,), **values)
    below = {"value": float(f"{dca.value:.4g}")}
    race.ours(lambda: solve("dca"), "dca", threads=(2,), **below)
    race.limit("Gram matrix", lambda: gram(source) - gram(target), threads=2)
    race.run(2 * n, "row")


def rows_of(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Rows inside the unit ball."""
    X = rng.standard_normal((n, d), np.float32)
    X /= 1.001 * np.linalg.norm(X, axis=1).max()
    return X


def gram(X: NDArray[np.float32]) -> NDArray[np.float64]:
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK].astype(np.float64)
        total += block.T @ block
    return total


if __name__ == "__main__":
    run_file(__file__)
