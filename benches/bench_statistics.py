"""Exact sums of features beside numpy's products, which are rounded: time, limits and growth.

Run `python benches/bench_statistics.py`: about five minutes and 6 GB of memory; `--small` takes a
tenth of the records. Both sides take two threads, unless OPENBLAS_NUM_THREADS limits numpy's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from _harness import THREADS, make_parser, print_aligned, print_json
from numpy.typing import NDArray

from hdp_fast.bench import medians
from hdp_fast.learners import FeatureMap
from hdp_fast.learners.feature_sums import bits_for, feature_sums

N, D, K = 1_000_000, 200, 10
# Times numpy's time that it should stay within.
TARGET = 1.5
SQUARE = 1500


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--small", action="store_true", help="a tenth of the records")
    arguments = parser.parse_args()
    os.environ[THREADS] = "2"
    n = N // 10 if arguments.small else N
    repeats = arguments.repeats
    results = {
        "sums": [row for k in (2, K) for row in sums(n, D, k, repeats)],
        "features": maps(n // 5, D, D, repeats),
        "growth": [*growth(n, repeats)],
    }
    if arguments.json:
        print_json(results)
        return
    print(f"n = {n:,}, d = {D}, float64, {bits_for(n)} bits, two threads; target: x numpy {TARGET}")
    print("limit: a pass over X (M), or the products at the rate of numpy's on large squares (H)\n")
    show(("what", "K", "s", "numpy", "x numpy", "limit", "x limit"), results["sums"])
    print(
        f"\nFeatures of {n // 5:,} records of {D} columns; numpy: X @ A, and its cosine and sine\n"
    )
    show(("what", "s", "numpy", "x numpy"), results["features"])
    print("\nGrowth\n")
    show(("what", "n", "d", "K", "s", "numpy", "x numpy"), results["growth"])


def sums(n: int, d: int, classes: int, repeats: int) -> list[dict[str, Any]]:
    """The sums by class, and these with the second moments, beside numpy's two products."""
    X, codes = records(n, d, classes)
    one_hot = np.eye(classes)[codes]
    square = np.random.default_rng(0).random((SQUARE, SQUARE))
    features, bits = FeatureMap.identity(d), bits_for(n)

    def ours(second: bool) -> Callable[[], object]:
        return lambda: feature_sums(features, X, codes, classes, bits=bits, second=second)

    routes: dict[str, Callable[[], object]] = {
        "M": ours(False),
        "M and H": ours(True),
        "X'Y": lambda: X.T @ one_hot,
        "X'X": lambda: X.T @ X,
        "streamed": lambda: X.max(),
        "square": lambda: square @ square,
    }
    times = medians(routes, repeats=repeats)
    products = n * d * (d + 1) / 2 / SQUARE**3 * times["square"]
    peers = {"M": times["X'Y"], "M and H": times["X'Y"] + times["X'X"]}
    limits = {"M": times["streamed"], "M and H": times["streamed"] + products}
    return [
        {
            **row(name, times[name], peers[name]),
            "K": classes,
            "limit": limits[name],
            "x limit": times[name] / limits[name],
        }
        for name in peers
    ]


def maps(n: int, d: int, columns: int, repeats: int) -> list[dict[str, Any]]:
    """A matrix and Fourier features, beside the same in numpy."""
    X, _ = records(n, d, 2)
    matrix = np.random.default_rng(1).standard_normal((d, columns)) / 20
    linear = FeatureMap(origin=np.zeros(d), factor=np.ones(d), matrix=matrix)
    fourier = FeatureMap.random_fourier(d, columns, scale=1.0, seed=0)
    half = matrix[:, : columns // 2]

    def waves() -> NDArray[np.float64]:
        angles = X @ half
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)

    routes: dict[str, Callable[[], object]] = {
        "matrix": lambda: linear(X),
        "Fourier": lambda: fourier(X),
        "numpy matrix": lambda: X @ matrix,
        "numpy Fourier": waves,
    }
    times = medians(routes, repeats=repeats)
    return [row(name, times[name], times[f"numpy {name}"]) for name in ("matrix", "Fourier")]


def growth(n: int, repeats: int) -> Iterable[dict[str, Any]]:
    """The same sums for a tenth of the records, for other columns, and for more classes."""
    for size, d, classes in (
        (n // 10, D, K),
        (n // 10, 50, K),
        (n // 10, 784, K),
        (n // 10, D, 100),
    ):
        for line in sums(size, d, classes, repeats):
            yield {**line, "n": size, "d": d}


def row(name: str, seconds: float, numpy: float) -> dict[str, Any]:
    return {"what": name, "s": seconds, "numpy": numpy, "x numpy": seconds / numpy}


def show(names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    print_aligned([names, *([cell(row[name]) for name in names] for row in rows)])


def cell(value: float | str) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def records(n: int, d: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of norm about 1, of which half are shrunk, and their classes."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(d)
    return X, rng.integers(0, classes, n)


if __name__ == "__main__":
    main()
