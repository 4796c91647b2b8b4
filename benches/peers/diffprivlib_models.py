"""Scores of diffprivlib's models, in an environment where it imports (scikit-learn 1.6 or older).

Reads a file that benches/papers/linear_rivals.py writes, prints its scores as JSON: model, epsilon,
split. Rows lie in [0, 1], and data_norm is the largest norm that they can have.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import GaussianNB, LinearRegression, LogisticRegression


def main() -> None:
    """Fit each model on each split at each epsilon."""
    warnings.simplefilter("ignore")
    task = np.load(sys.argv[1])
    scores: dict[str, list[list[float]]] = {}
    for name in ("regression",) if task["numeric"] else ("logistic", "bayes"):
        scores[name] = [score(name, task, float(epsilon)) for epsilon in task["epsilons"]]
    print(json.dumps(scores))


def score(name: str, task: Any, epsilon: float) -> list[float]:
    """The scores of a model on the test rows of all splits."""
    X, y, train = task["X"], task["y"], int(task["train"])
    scores = []
    for order in task["orders"]:
        learn, test = order[:train], order[train:]
        model = make(name, task, epsilon).fit(X[learn], y[learn])
        scores.append(float(model.score(X[test], y[test])))
    return scores


def make(name: str, task: Any, epsilon: float) -> Any:
    """The model with all that is public."""
    if name == "bayes":
        return GaussianNB(epsilon=epsilon, bounds=(0, 1))
    if name == "regression":
        low, high = task["target_bounds"]
        return LinearRegression(
            epsilon=epsilon, bounds_X=(0, 1), bounds_y=(float(low), float(high))
        )
    return LogisticRegression(epsilon=epsilon, data_norm=float(task["norm"]), max_iter=1_000)


if __name__ == "__main__":
    main()
