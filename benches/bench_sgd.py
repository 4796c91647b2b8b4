"""Private stochastic gradient descent beside numpy: steps a second, and minibatches of long rows.

Run `python benches/bench_sgd.py`: about two minutes and 4 GB of memory; `--small` takes a tenth of
the records. Whole calls with logistic loss; numpy neither clips nor rounds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from _harness import Race, forget_plans, require_memory, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast.learners import PrivateSGD
from hdp_fast.learners.linear_model import validate_labels
from hdp_fast.learners.noisy_descent import Grid, IntegerRows
from hdp_fast.weights import DenseWeights

RECORDS, NOISE, KAPPA = 1_000_000, 5.0, 0.05
# The paper's private experiment has eight features and one draw a step.
FEATURES, STEPS, NUMPY_STEPS = 8, 1_000_000, 5_000
WIDE, BATCH, BATCHES, CLASSES = 200, 256, 400, 10
# Columns of a step on all records: fifty numbers with their squares.
FULL = 101
# Rows that stay in the second cache.
CACHED = 500
NOISES = {"none": None, "idealized": "idealized", "exact": "exact"}

Rows = NDArray[Any]
by_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.parametrize("draws", ["uniform", "by weights"])
@pytest.mark.parametrize("noise", NOISES)
def bench_online(race: Race, noise: str, draws: str) -> None:
    """One draw a step, whole calls on one thread, beside a loop in numpy with inexact noise."""
    n, steps = race.scaled("n", RECORDS), race.scaled("steps", STEPS)
    X, y = records(n, FEATURES, "float64")
    learner = learner_of(noise, steps, 1)
    if draws == "by weights":
        weights = DenseWeights(n, KAPPA, 0.1)
        weights.update(np.linspace(0, 1, n))
        race.ours(lambda: learner.learn_weighted(X, y, weights), threads=(1,))
    else:
        race.ours(
            lambda: learner._descend(
                learner.prepare(X),
                validate_labels(y, n, None),
                None,
                None,
                learner._settle(n, FEATURES),
            ),
            threads=(1,),
        )
    race.numpy("loop", lambda: loop(X, y, noise != "none"), share=steps / NUMPY_STEPS)
    race.run(steps, "step")


def loop(X: Rows, y: NDArray[np.uint8], noisy: bool) -> None:
    """As few calls a step as there can be: noise drawn at once, scalars as Python's own."""
    rng = np.random.default_rng(3)
    rows, labels = rng.integers(0, len(X), NUMPY_STEPS), y.tolist()
    noise = rng.normal(0, NOISE, (NUMPY_STEPS, X.shape[1])) if noisy else None
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for number, row in enumerate(rows.tolist()):
        x = X[row]
        total += w
        gradient = x * (1 / (1 + math.exp(-float(w @ x))) - labels[row])
        if noise is not None:
            gradient += noise[number]
        gradient *= 0.1 / math.sqrt(number + 1)
        w -= gradient
        length = math.sqrt(float(w @ w))
        if length > 1:
            w /= length


@pytest.mark.parametrize("noise", ["none", "exact"])
@by_dtype
def bench_batches(race: Race, limits: Limits, noise: str, dtype: str) -> None:
    """Batches of 256 rows of 200 columns, given indices, one thread.

    Limits: the same call on cached rows, which shows the instructions; the rows copied in the order
    of the draws, and their bytes in the order of the records.
    """
    n = race.scaled("n", RECORDS)
    X, y = records(n, WIDE, dtype)
    rows = np.random.default_rng(2).integers(0, n, BATCH * BATCHES)
    learner = learner_of(noise, BATCHES, BATCH)
    prepared, cached = learner.prepare(X), rows % CACHED
    race.ours(lambda: learner.learn_indices(prepared, y, rows), threads=(1,))
    race.numpy("copy and both products", lambda: products(X, y, rows))
    race.limit("cached rows", lambda: learner.learn_indices(prepared, y, cached))
    race.limit("rows copied", lambda: copy_rows(X, rows))
    race.limit("memory", limits.read(X.itemsize * WIDE * len(rows)))
    race.run(len(rows), "row")


def copy_rows(X: Rows, rows: NDArray[np.int64]) -> None:
    """The rows in the order of the draws, and nothing else."""
    B = np.empty((BATCH, X.shape[1]), X.dtype)
    for indices in rows.reshape(-1, BATCH):
        X.take(indices, axis=0, out=B, mode="clip")


def products(X: Rows, y: NDArray[np.uint8], rows: NDArray[np.int64]) -> Rows:
    """What a step costs numpy at least: the copy, both products, and the slopes between them."""
    w = np.zeros(X.shape[1], X.dtype)
    B, labels = np.empty((BATCH, X.shape[1]), X.dtype), y.astype(X.dtype)
    for indices in rows.reshape(-1, BATCH):
        # Without mode= numpy would copy once more.
        X.take(indices, axis=0, out=B, mode="clip")
        shares = 1 / (1 + np.exp(-(B @ w))) - labels[indices]
        w -= X.dtype.type(0.1 / BATCH) * (B.T @ shares)
    return w


@pytest.mark.parametrize("noise", ["none", "exact"])
@by_dtype
def bench_softmax(race: Race, limits: Limits, noise: str, dtype: str) -> None:
    """The same with ten classes, for which numpy multiplies matrices."""
    n = race.scaled("n", RECORDS)
    X, _ = records(n, WIDE, dtype)
    y = np.random.default_rng(3).integers(0, CLASSES, n)
    rows = np.random.default_rng(2).integers(0, n, BATCH * BATCHES // 4)
    learner = replace(learner_of(noise, BATCHES // 4, BATCH), loss="softmax", classes=CLASSES)
    prepared = learner.prepare(X)
    race.ours(lambda: learner.learn_indices(prepared, y, rows), threads=(1,))
    race.numpy("copy and both products", lambda: class_products(X, y, rows))
    work = 4 * WIDE * CLASSES * len(rows)
    race.limit("products", work / limits.flops(dtype))
    race.limit("memory", limits.read(X.itemsize * WIDE * len(rows)))
    race.run(len(rows), "row")


def class_products(X: Rows, y: NDArray[np.int64], rows: NDArray[np.int64]) -> Rows:
    """What a step costs numpy at least."""
    w = np.zeros((X.shape[1], CLASSES), X.dtype)
    B, places = np.empty((BATCH, X.shape[1]), X.dtype), np.arange(BATCH)
    for indices in rows.reshape(-1, BATCH):
        X.take(indices, axis=0, out=B, mode="clip")
        shares = np.exp(B @ w)
        shares /= shares.sum(axis=1, keepdims=True)
        shares[places, y[indices]] -= 1
        w -= X.dtype.type(0.1 / BATCH) * (B.T @ shares)
    return w


@pytest.mark.parametrize("classes", [2, 5])
def bench_all_records(race: Race, limits: Limits, classes: int) -> None:
    """A step on all records, as integers of 16 bits; numpy: both products, softmax, no integers.

    Its limit is what a read of the integers takes.
    """
    n, columns = race.scaled("n", RECORDS), 1 if classes == 2 else classes
    rng, grid = np.random.default_rng(4), Grid(12, 2**26, Fraction(1))
    entries = rng.integers(-(2**13), 2**13, (n, FULL), dtype=np.int16)
    codes = rng.integers(0, classes, n).astype(np.int16)
    rows, weights = IntegerRows(entries, codes, classes, grid), rng.normal(size=(FULL, columns))
    # Computed once in a descent.
    assert len(rows.limits) == n
    for threads in (1, 2):
        race.ours(lambda: rows.add_gradients(weights), threads=(threads,))
        race.limit("integers read once", limits.read(entries.nbytes, threads), threads=threads)
    X, Y = entries / 2.0**14, np.eye(classes)[codes]
    w = np.hstack([np.zeros((FULL, 1)), weights]) if classes == 2 else weights
    race.numpy("products and softmax", lambda: full_products(X, Y, w), threads=(1, 2))
    race.run(n, "row")


def full_products(X: Rows, Y: Rows, w: Rows) -> Rows:
    """The gradient of the softmax loss in numpy, unclipped."""
    shares = np.exp(X @ w)
    shares /= shares.sum(axis=1, keepdims=True)
    shares -= Y
    return X.T @ shares


SEARCHES = [
    (10_000, 100, 256),
    (60_000, 14_000, 256),
    (100_000, 1_000, 256),
    (1_000_000, 10_000, 64),
]


@pytest.mark.parametrize(("n", "steps", "batch_size"), SEARCHES)
def bench_calibrate(race: Race, tiny: bool, n: int, steps: int, batch_size: int) -> None:
    """The search for the least noise of a descent, which reads no data."""
    if tiny and n != SEARCHES[0][0]:
        pytest.skip("like the first")
    shared: Any = {"loss": "logistic", "radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
    learner = PrivateSGD(**shared, steps=1 if tiny else steps, batch_size=batch_size)

    def calibrate() -> None:
        forget_plans()
        learner.calibrate(epsilon=1.0, n=n)

    race.ours(calibrate, threads=(1,))
    race.run()


def learner_of(noise: str, steps: int, batch: int) -> PrivateSGD:
    """A learner with that noise."""
    shared: dict[str, Any] = {"loss": "logistic", "steps": steps, "batch_size": batch}
    shared["radius"] = 1.0
    if noise == "none":
        return PrivateSGD(**shared, epsilon=math.inf)
    numerics: Any = NOISES[noise]
    return PrivateSGD(**shared, noise_multiplier=NOISE, numerics=numerics)


@lru_cache(maxsize=1)
def records(n: int, d: int, dtype: str) -> tuple[Rows, NDArray[np.uint8]]:
    """Rows of norm about 1, labels by the first entry; several benches in a row take the same."""
    require_memory(2 * n * d * np.dtype(dtype).itemsize)
    X = np.random.default_rng(1).random((n, d), dtype=np.dtype(dtype).type)
    X -= 0.5
    X *= np.sqrt(12 / d)
    return X, (X[:, 0] > 0).astype(np.uint8)


if __name__ == "__main__":
    run_file(__file__)
