"""Labels by a linear model that is learned from the records in private, for stability_labels.py.

Nothing here is chosen in hindsight, or for a problem: all settings are the package's defaults.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _label_problems import Floats, Integers, Problem, Split
from _label_settings import DELTA

from hdp_fast import labels
from hdp_fast.labels.public_features import make_learner

# Probability that an answer must have in the model; other queries get none.
THRESHOLD = 0.5
Posteriors = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Outcome:
    """What came of one run: answers to the pool, those that are right, accuracy on the test set."""

    answered: int
    right: int
    final: float
    detail: str


def statistics(split: Split, classes: int, epsilon: float, seed: int) -> tuple[Posteriors, str]:
    return _label(split, classes, epsilon, seed, "same")


def automatic(split: Split, classes: int, epsilon: float, seed: int) -> tuple[Posteriors, str]:
    return _label(split, classes, epsilon, seed, "tested")


def descent(split: Split, classes: int, epsilon: float, seed: int) -> tuple[Posteriors, str]:
    """Noisy gradients on the records: softmax in one budget; of two classes, logistic."""
    model: Any = make_learner(classes, epsilon, DELTA).learn(split.X, split.y, random_state=seed)
    if classes > 2:
        return model.predict_proba, "gradients"

    def posteriors(rows: Floats) -> Floats:
        share = 0.5 * (1 + np.tanh(model.scores(rows) / 2))
        return np.column_stack([1 - share, share])

    return posteriors, "gradients"


def _label(
    split: Split, classes: int, epsilon: float, seed: int, population: Any
) -> tuple[Posteriors, str]:
    labeler = labels.StatisticsLabeler(
        epsilon=epsilon, delta=DELTA, classes=np.arange(classes), population=population
    )
    labeler.fit(split.X, split.y, split.pool, random_state=seed)
    return labeler.predict_proba, labeler.method_


LINEAR = {
    "ours, statistics": statistics,
    "DP-SGD, softmax in one budget": descent,
    "ours, auto": automatic,
}


def linear_rows(
    problem: Problem, splits: Iterable[Split], epsilons: Iterable[float]
) -> list[dict[str, Any]]:
    """A row for each way and epsilon."""
    splits = list(splits)
    return [_row(name, problem, splits, epsilon) for epsilon in epsilons for name in LINEAR]


def _row(name: str, problem: Problem, splits: list[Split], epsilon: float) -> dict[str, Any]:
    outcomes = [
        _run(LINEAR[name], split, problem.classes, epsilon, number)
        for number, split in enumerate(splits)
    ]
    answered = [outcome.answered for outcome in outcomes]
    accuracies = [outcome.right / max(1, outcome.answered) for outcome in outcomes]
    finals = [outcome.final for outcome in outcomes]
    return {
        "row": name,
        "epsilon": epsilon,
        "asked": float(np.mean([len(split.pool_y) for split in splits])),
        "answered": _spread(answered),
        "accuracy": _spread(accuracies),
        "final": _spread(finals),
        "final from": [float(np.mean(answered)), float(np.mean(accuracies))],
        "methods": sorted({outcome.detail for outcome in outcomes}),
    }


def _run(way: Any, split: Split, classes: int, epsilon: float, number: int) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posteriors, detail = way(split, classes, epsilon, number)
    answers, sure = _answer(posteriors(split.pool))
    final = float((_answer(posteriors(split.test))[0] == split.test_y).mean())
    right = int(np.count_nonzero(sure & (answers == split.pool_y)))
    return Outcome(int(np.count_nonzero(sure)), right, final, detail)


def _answer(posteriors: Floats) -> tuple[Integers, Any]:
    return posteriors.argmax(axis=1), posteriors.max(axis=1) >= THRESHOLD


def _spread(values: list[Any]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values))]
