"""What the rivals of benches/papers/linear_rivals.py share: the task they read, and its scores.

A rival is a script in an environment of its own. `SCRIPT versions` prints the versions of what it
measures; `SCRIPT FILE` reads a file of arrays and prints, as JSON, for each model and epsilon the
scores of all splits and the seconds of a fit, or why the model failed. A score is accuracy, or R^2;
a loss is the mean log loss, no probability counting as below 1e-4.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-4

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
# Probabilities of all classes, or targets, of the records at these places.
Predict = Callable[[Places], Floats]


@dataclass(frozen=True, eq=False)
class PeerTask:
    """Records of a data set, as rivals get them.

    rows: in [0, 1], numbers by public bounds and a bit for each category, whose norm is at most
    `norm`; numeric: which columns of rows are numbers; columns: one for each column of the table,
    scaled numbers and codes of categories, which `nominal` marks; y: numbers of classes, or targets
    in [-1, 1]; classes: 0 for targets.
    """

    rows: Floats
    numeric: NDArray[np.bool_]
    columns: Floats
    nominal: NDArray[np.bool_]
    y: NDArray[Any]
    classes: int
    norm: float
    delta: float

    @cached_property
    def centered(self) -> Floats:
        """Rows with numbers in [-1, 1] and the constant 1 in the last column.

        Their norm is at most the root of norm^2 + 1, as without this, and the noise of a method
        that protects sums of products disturbs numbers about 0 less.
        """
        rows = np.where(self.numeric, 2 * self.rows - 1, self.rows)
        return np.column_stack([rows, np.ones(len(rows))])

    @property
    def answers(self) -> Floats:
        """What linear models learn, a column each: targets, -1 and 1, or a bit for each class."""
        if self.classes == 0:
            return self.y[:, None].astype(float)
        if self.classes == 2:
            return 2.0 * self.y[:, None] - 1
        return np.eye(self.classes)[self.y]


Learn = Callable[[PeerTask, Places, float, int], Predict]


def main(models: Sequence[tuple[str, str, Learn]], packages: Sequence[str]) -> None:
    """Print versions, or the scores of all models that suit the task.

    models: name, "classes", "targets" or "both", and what learns.
    """
    if sys.argv[1] == "versions":
        print(json.dumps({name: version(name) for name in packages}))
        return
    warnings.simplefilter("ignore")
    file = np.load(sys.argv[1])
    task = PeerTask(
        rows=file["rows"],
        numeric=file["numeric"],
        columns=file["columns"],
        nominal=file["nominal"],
        y=file["y"],
        classes=int(file["classes"]),
        norm=float(file["norm"]),
        delta=float(file["delta"]),
    )
    kind = "classes" if task.classes else "targets"
    print(
        json.dumps(
            {
                name: [score(learn, task, file, float(epsilon)) for epsilon in file["epsilons"]]
                for name, suits, learn in models
                if suits in (kind, "both")
            }
        )
    )


def score(learn: Learn, task: PeerTask, file: Any, epsilon: float) -> dict[str, Any]:
    """The scores of a model on the test records of all splits."""
    train, results, seconds = int(file["train"]), [], 0.0
    for seed, order in enumerate(file["orders"]):
        test = order[train:]
        try:
            begun = time.perf_counter()
            predict = learn(task, order[:train], epsilon, seed)
            seconds += time.perf_counter() - begun
            results.append(measure(task, predict(test), test))
        except Exception as error:  # whatever a rival raises is its result
            return {"failure": f"{type(error).__name__}: {error}"[:120]}
    cell: dict[str, Any] = {"score": [result[0] for result in results]}
    if task.classes:
        cell["loss"] = [result[1] for result in results]
    return {**cell, "seconds": seconds / len(results)}


def measure(task: PeerTask, predicted: Floats, test: Places) -> tuple[float, float]:
    """Accuracy and log loss, or R^2 of targets that are clipped to their public bounds, and 0."""
    if not np.isfinite(predicted).all():
        raise ValueError("a prediction is not finite")
    truth = task.y[test]
    if task.classes == 0:
        errors = np.clip(predicted, -1, 1) - truth
        return float(1 - (errors**2).sum() / ((truth - truth.mean()) ** 2).sum()), 0.0
    shares = np.maximum(predicted, FLOOR)
    shares /= shares.sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(test)), truth]).mean()
    return float((predicted.argmax(axis=1) == truth).mean()), float(loss)


def to_shares(scores: Floats) -> Floats:
    """Probabilities of classes from answers of least squares: to [0, 1], and sum 1."""
    if scores.shape[1] == 1:
        positive = (1 + scores.clip(-1, 1)) / 2
        return np.hstack([1 - positive, positive])
    shares = scores.clip(FLOOR, 1)
    # The largest answer stays the largest: answers above 1 are equal only by clipping.
    shares[np.arange(len(shares)), scores.argmax(axis=1)] += 1e-9
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
