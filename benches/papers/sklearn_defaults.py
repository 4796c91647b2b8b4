"""PrivateClassifier without any settings on Adult: 36,000 people, income above $50,000.

The bounds and categories are those of the data set's documentation, and delta is 1e-6. Each split
draws 36,000 rows for the fit; accuracy is measured on the other 12,842. Without noise stands for
the same estimator at an infinite epsilon, which protects no one. The scale of numbers and the
length to which rows are shrunk were chosen on splits 0 to 2; the table is of splits from 100.

Run `HDP_FAST_DATA=FOLDER python benches/papers/sklearn_defaults.py`: ten splits, a minute. With
`--rivals PYTHON`, which imports diffprivlib (`pip install diffprivlib scikit-learn==1.6.1`), it
prints instead the accuracies at epsilon 1 beside those of diffprivlib's learners and of
scikit-learn's logistic regression without privacy: 70 per cent of the people to learn from, the
same rows in [0, 1] for all.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pandas as pd
from _linear_scores import ask_peer, fit_estimator, make_orders, score
from _linear_tables import Task, read_adult
from _report import FOLDER, accept_seeds, make_parser, missing_file
from sklearn.linear_model import LogisticRegression

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
    parser = make_parser(__doc__, repetitions=10, writing=False)
    parser.add_argument("--rivals", help="a Python that imports diffprivlib")
    arguments = parser.parse_args()
    accept_seeds()
    warnings.simplefilter("ignore", UtilityWarning)
    if reason := missing_file("adult.csv.gz"):
        print(reason)
        return
    if arguments.rivals:
        for name, scores in compare(arguments.repetitions, arguments.rivals).items():
            print(f"{name:<40}{fmean(scores):.4f} +- {pstdev(scores):.4f}")
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


def compare(repetitions: int, python: str) -> dict[str, list[float]]:
    """The accuracies at epsilon 1 of all splits, by learner."""
    task = read_adult()
    orders = make_orders(task, range(100, 100 + repetitions), len(task.y))
    peers = ask_peer("diffprivlib_models.py", task, orders, [1.0], python)
    return {
        "hdp_fast.sklearn.PrivateClassifier": score(task, orders, 1.0, fit_estimator)["score"],
        **{name: cells[0]["score"] for name, cells in peers.items()},
        "logistic regression, no privacy": score(task, orders, math.inf, fit_logistic)["score"],
    }


def fit_logistic(task: Task, train: Any, epsilon: float, seed: int) -> Callable[..., Any]:
    """scikit-learn's logistic regression as it comes, which protects no one."""
    model = LogisticRegression(max_iter=2_000).fit(task.rows[train], task.codes[train])
    return lambda places: model.predict_proba(task.rows[places])


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
