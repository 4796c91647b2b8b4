"""PrivateClassifier without any settings on Adult: 36,000 people, income above $50,000.

The bounds and categories are those of the data set's documentation, and delta is 1e-6. Each split
draws 36,000 rows for the fit; accuracy is measured on the other 12,842. Without noise stands for
the same estimator at an infinite epsilon, which protects no one. The scale of numbers and the
length to which rows are shrunk were chosen on splits 0 to 2; the table is of splits from 100.

Run `HDP_FAST_DATA=FOLDER python benches/papers/sklearn_defaults.py`: ten splits, a minute.
"""

from __future__ import annotations

import math
import time
import warnings
from statistics import fmean, pstdev

import numpy as np
import pandas as pd
from _report import FOLDER, accept_seeds, make_parser, missing_file

from hdp_fast import UtilityWarning
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.sklearn import PrivateClassifier

EPSILONS = (0.1, 0.5, 1.0, 4.0, math.inf)
GOALS = (0.80, 0.84, 0.85, 0.85, None)
DELTA, PRIVATE = 1e-6, 36_000
NUMBERS = {
    "age": (17, 90),
    "educational-num": (1, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4_400),
    "hours-per-week": (1, 100),
}
UNUSED = ("fnlwgt", "income")


def main() -> None:
    """Print the accuracies on the test sets."""
    arguments = make_parser(__doc__, repetitions=10, writing=False).parse_args()
    accept_seeds()
    warnings.simplefilter("ignore", UtilityWarning)
    if reason := missing_file("adult.csv.gz"):
        print(reason)
        return
    people = pd.read_csv(FOLDER / "adult.csv.gz", skipinitialspace=True)
    schema, seeds = schema_of(people), range(100, 100 + arguments.repetitions)
    print(f"{'epsilon':>8}{'accuracy':>18}{'goal':>7}{'s a fit':>9}")
    for epsilon, goal in zip(EPSILONS, GOALS, strict=True):
        begun = time.perf_counter()
        scores = [measure(people, schema, epsilon, seed) for seed in seeds]
        seconds = (time.perf_counter() - begun) / len(scores)
        spread = f"{fmean(scores):.4f} +- {pstdev(scores):.4f}"
        print(f"{epsilon:>8}{spread:>18}{goal or '':>7}{seconds:>9.1f}", flush=True)


def measure(people: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> float:
    """The accuracy of one split."""
    order = np.random.default_rng(seed).permutation(len(people))
    train, test = people.iloc[order[:PRIVATE]], people.iloc[order[PRIVATE:]]
    learner = PrivateClassifier(
        epsilon=epsilon, delta=DELTA, schema=schema, classes=["<=50K", ">50K"], test_seed=seed
    )
    return learner.fit(train, train["income"]).score(test, test["income"])


def schema_of(people: pd.DataFrame) -> Schema:
    """Bounds of numbers, and all categories that there are."""
    columns = {
        name: Number(*NUMBERS[name])
        if name in NUMBERS
        else Category(tuple(sorted(people[name].unique())))
        for name in people.columns
        if name not in UNUSED
    }
    return Schema(Label("income", positive=(">50K",)), columns)


if __name__ == "__main__":
    main()
