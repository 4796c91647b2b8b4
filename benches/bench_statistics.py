"""Exact sums of features beside numpy's products, which are rounded: time, limits and growth.

Run `python benches/bench_statistics.py`: about three minutes and 6 GB of memory; `--small` takes a
tenth of the records.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from _harness import Race, require_memory, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast.learners import FeatureMap
from hdp_fast.learners.statistics_features import bits_for, feature_sums

RECORDS, D, K = 1_000_000, 200, 10
THREADS = (1, 2)

which = pytest.mark.parametrize("sums", ["M", "M and H"])


def compete(race: Race, limits: Limits, n: int, d: int, classes: int, second: bool) -> None:
    """The sums by class, and these with the second moments, beside numpy's two products.

    Their limit: a pass over the records, and the products at the rate of large squares.
    """
    require_memory(20 * n * d)
    X, codes = records(n, d, classes)
    one_hot = np.eye(classes)[codes]
    features, bits = FeatureMap.identity(d), bits_for(n)
    race.ours(lambda: feature_sums(features, X, codes, classes, bits=bits, second=second))
    if second:
        race.numpy("X'Y and X'X", lambda: (X.T @ one_hot, X.T @ X), threads=THREADS)
    else:
        race.numpy("X'Y", lambda: X.T @ one_hot, threads=THREADS)
    for threads in THREADS:
        products = n * d * (d + 1) / limits.flops("float64", threads) if second else 0.0
        seconds = limits.read(X.nbytes, threads) + products
        race.limit("pass and products", seconds, threads=threads)
    race.run(n, "record")


@which
@pytest.mark.parametrize("classes", [2, K])
def bench_sums(race: Race, limits: Limits, sums: str, classes: int) -> None:
    """A million records of 200 columns."""
    compete(race, limits, race.scaled("n", RECORDS), D, classes, sums != "M")


@which
@pytest.mark.parametrize(("d", "classes"), [(50, K), (784, K), (D, 100)])
def bench_shapes(race: Race, limits: Limits, sums: str, d: int, classes: int) -> None:
    """Other columns, and more classes."""
    compete(race, limits, race.scaled("n", RECORDS // 10), d, classes, sums != "M")


@pytest.mark.sizes("n", (10_000, 100_000, RECORDS))
def bench_growth(race: Race, limits: Limits, n: int) -> None:
    """Sums and second moments of 50 columns and ten classes, by the number of records."""
    compete(race, limits, n, 50, K, True)


@pytest.mark.parametrize("features", ["matrix", "Fourier"])
def bench_features(race: Race, features: str) -> None:
    """A matrix and random Fourier features of 200 columns, beside the same in numpy."""
    n = race.scaled("n", RECORDS // 5)
    X, _ = records(n, D, 2)
    matrix = np.random.default_rng(1).standard_normal((D, D)) / 20
    half, waves = matrix[:, : D // 2], np.empty((n, D))
    if features == "matrix":
        linear = FeatureMap(origin=np.zeros(D), factor=np.ones(D), matrix=matrix)
        race.ours(lambda: linear(X))
        race.numpy("X @ A", lambda: X @ matrix, threads=THREADS)
    else:
        fourier = FeatureMap.random_fourier(D, D, scale=1.0, seed=0)

        def numpy() -> None:
            angles = X @ half
            np.cos(angles, out=waves[:, : D // 2])
            np.sin(angles, out=waves[:, D // 2 :])

        race.ours(lambda: fourier(X))
        race.numpy("cosine and sine of X @ A", numpy, threads=THREADS)
    race.run(n, "record")


@lru_cache(maxsize=1)
def records(n: int, d: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of norm about 1 and their classes; several benches in a row take the same."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(d)
    return X, rng.integers(0, classes, n)


if __name__ == "__main__":
    run_file(__file__)
