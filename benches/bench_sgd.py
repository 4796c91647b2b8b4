"""Private stochastic gradient descent beside numpy: steps a second, and minibatches of long rows.

Run `python benches/bench_sgd.py`: about two minutes and 3 GB of memory; `--small` takes a tenth of
the records. One thread, unless the row says otherwise; numpy has its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from _harness import make_parser, print_json, right
from numpy.typing import NDArray

from hdp_fast.bench import medians
from hdp_fast.learners import PrivateSGD
from hdp_fast.learners.linear_model import validate_labels
from hdp_fast.reference import sgd as reference
from hdp_fast.weights import DenseWeights

NOISE = 5.0
KAPPA = 0.05
# The paper's private experiment has eight features and one draw a step.
FEATURES, STEPS, REFERENCE_STEPS = 8, 4_000_000, 10_000
WIDE, BATCH, BATCHES = 200, 256, 1000
CLASSES = 10
# Rows that stay in the second cache.
CACHED = 500
# Targets: steps a second, and times as fast as the reference.
TARGETS = {"idealized": 6e6, "exact": 1e6}
TARGET_RATIO = 40


def main() -> None:
    """Print both tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--small", action="store_true", help="100,000 records")
    arguments = parser.parse_args()
    n = 100_000 if arguments.small else 1_000_000
    os.environ["HDP_FAST_NUM_THREADS"] = "1"
    single = [*online(n, arguments.repeats)]
    wide = [row for dtype in ("float32", "float64") for row in batches(n, dtype, arguments.repeats)]
    classes = [
        row for dtype in ("float32", "float64") for row in softmax(n, dtype, arguments.repeats)
    ]
    if arguments.json:
        print_json({"online": single, "batches": wide, "softmax": classes})
        return
    print(f"n = {n:,}, d = {FEATURES}, one draw a step, logistic loss, whole calls\n")
    print(
        f"{'noise':>12}{'draws':>12}{'M steps/s':>11}{'target':>8}{'x numpy loop':>14}{'target':>8}"
    )
    for row in single:
        target = f"{TARGETS[row['noise']] / 1e6:.0f}" if row["noise"] in TARGETS else ""
        rate = f"{row['rate'] / 1e6:>11.2f}{target:>8}{row['ratio']:>14.0f}{TARGET_RATIO:>8}"
        print(f"{row['noise']:>12}{row['draws']:>12}{rate}")
    print(f"\nn = {n:,}, d = {WIDE}, batches of {BATCH}; numpy: B = X[idx]; B @ w; B.T @ r")
    print(
        "limit: the larger of the same call on cached rows (instructions) and of a pass over X in"
    )
    print("order (bytes); random rows of these lengths take about twice as long to fetch as that\n")
    heads = ("ns a row", "numpy", "ratio", "cached", "in order", "x limit")
    print(f"{'dtype':>10}{'noise':>12}" + right(heads, 10))
    for row in wide:
        names = ("nanoseconds", "numpy", "ratio", "cached", "streamed", "distance")
        cells = (f"{row[name]:>10.{2 if name in ('ratio', 'distance') else 0}f}" for name in names)
        print(f"{row['dtype']:>10}{row['noise']:>12}" + "".join(cells))
    print(f"\nthe same with softmax loss, {CLASSES} classes; numpy: copy, both products, softmax\n")
    print(f"{'dtype':>10}{'noise':>12}" + right(("ns a row", "numpy", "ratio"), 10))
    for row in classes:
        cells = (
            f"{row[name]:>10.{digits}f}" for name, digits in zip(names[:3], (0, 0, 2), strict=True)
        )
        print(f"{row['dtype']:>10}{row['noise']:>12}" + "".join(cells))


def online(n: int, repeats: int) -> list[dict[str, Any]]:
    """One draw a step, uniform and by weights, against the loop in numpy with the same noise."""
    X, y = records(n, FEATURES, "float64")
    weights = DenseWeights(n, KAPPA, 0.1)
    weights.update(np.linspace(0, 1, n))
    rows = []
    for noise in (None, "idealized", "exact"):
        learner = learner_of(noise, STEPS, 1)
        routes: dict[str, Callable[[], object]] = {
            "weights": lambda learner=learner: learner.learn_weighted(X, y, weights),  # type: ignore[misc]
            "uniform": lambda learner=learner: learner._settle(n, FEATURES)._descend(  # type: ignore[misc]
                learner.prepare(X), validate_labels(y, n, None), None, None, learner
            ),
            "numpy": lambda noise=noise: loop(X, y, noise),  # type: ignore[misc]
        }
        times = medians(routes, repeats=repeats)
        for draws in ("uniform", "weights"):
            rate = STEPS / times[draws]
            ratio = rate * times["numpy"] / REFERENCE_STEPS
            rows.append({"noise": noise or "none", "draws": draws, "rate": rate, "ratio": ratio})
    return rows


def batches(n: int, dtype: str, repeats: int) -> list[dict[str, Any]]:
    """Minibatches of long rows, given indices, against the three lines of numpy."""
    X, y = records(n, WIDE, dtype)
    rows = np.random.default_rng(2).integers(0, n, BATCH * BATCHES)
    learners = {noise or "none": learner_of(noise, BATCHES, BATCH) for noise in (None, "exact")}
    prepared = learners["none"].prepare(X)

    def route(noise: str, indices: NDArray[np.int64]) -> Callable[[], object]:
        return lambda: learners[noise].learn_indices(prepared, y, indices)

    routes = {noise: route(noise, rows) for noise in learners}
    routes |= {f"{noise} cached": route(noise, rows % CACHED) for noise in learners}
    routes |= {"numpy": lambda: products(X, rows), "streamed": lambda: X.max()}
    times = medians(routes, repeats=repeats)
    per_row = {name: 1e9 * seconds / len(rows) for name, seconds in times.items()}
    per_row["streamed"] = 1e9 * times["streamed"] / n
    return [
        {
            "dtype": dtype,
            "noise": noise,
            "nanoseconds": per_row[noise],
            "numpy": per_row["numpy"],
            "ratio": per_row["numpy"] / per_row[noise],
            "cached": per_row[f"{noise} cached"],
            "streamed": per_row["streamed"],
            "distance": per_row[noise] / max(per_row[f"{noise} cached"], per_row["streamed"]),
        }
        for noise in learners
    ]


def softmax(n: int, dtype: str, repeats: int) -> list[dict[str, Any]]:
    """Minibatches of long rows and several classes, against numpy's matrix products."""
    X, _ = records(n, WIDE, dtype)
    y = np.random.default_rng(3).integers(0, CLASSES, n)
    rows = np.random.default_rng(2).integers(0, n, BATCH * BATCHES // 4)
    learners = {
        noise or "none": learner_of(noise, BATCHES // 4, BATCH) for noise in (None, "exact")
    }
    learners = {
        noise: replace(learner, loss="softmax", classes=CLASSES)
        for noise, learner in learners.items()
    }
    prepared = learners["none"].prepare(X)
    routes: dict[str, Callable[[], object]] = {
        noise: lambda learner=learner: learner.learn_indices(prepared, y, rows)  # type: ignore[misc]
        for noise, learner in learners.items()
    }
    routes["numpy"] = lambda: class_products(X, y, rows)
    times = medians(routes, repeats=repeats)
    per_row = {name: 1e9 * seconds / len(rows) for name, seconds in times.items()}
    return [
        {
            "dtype": dtype,
            "noise": noise,
            "nanoseconds": per_row[noise],
            "numpy": per_row["numpy"],
            "ratio": per_row["numpy"] / per_row[noise],
        }
        for noise in learners
    ]


def class_products(X: NDArray[Any], y: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """What a step costs numpy at least."""
    w = np.full((X.shape[1], CLASSES), 0.01, X.dtype)
    for indices in rows.reshape(-1, BATCH):
        B = X[indices]
        shares = np.exp(B @ w)
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(BATCH), y[indices]] -= 1
        B.T @ shares


def products(X: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """What a step costs numpy at least: the copy and both products."""
    w = np.full(X.shape[1], 0.01, X.dtype)
    for indices in rows.reshape(-1, BATCH):
        B = X[indices]
        B.T @ (B @ w)


def loop(X: NDArray[Any], y: NDArray[np.uint8], noise: str | None) -> None:
    """The reference on some of the steps."""
    rng = np.random.default_rng(3)
    reference.learn(
        X,
        2.0 * y - 1,
        rng.integers(0, len(X), REFERENCE_STEPS),
        loss="logistic",
        batch_size=1,
        radius=1.0,
        norm_bound=1.0,
        clip_norm=1.0,
        noise_multiplier=NOISE if noise else 0.0,
        rng=rng,
    )


def learner_of(noise: str | None, steps: int, batch: int) -> PrivateSGD:
    if noise is None:
        return PrivateSGD(
            loss="logistic", steps=steps, batch_size=batch, radius=1.0, epsilon=math.inf
        )
    numerics: Any = noise
    return PrivateSGD(
        loss="logistic",
        steps=steps,
        batch_size=batch,
        radius=1.0,
        noise_multiplier=NOISE,
        numerics=numerics,
    )


def records(n: int, d: int, dtype: str) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Rows of norm about 1, labels by the first entry."""
    X = np.random.default_rng(1).random((n, d), dtype=np.dtype(dtype).type)
    X -= 0.5
    X *= np.sqrt(12 / d)
    return X, (X[:, 0] > 0).astype(np.uint8)


if __name__ == "__main__":
    main()
