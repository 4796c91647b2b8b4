"""diffprivlib's logistic regression, naive Bayes and linear regression, with all that is public.

Needs `pip install diffprivlib scikit-learn==1.6.1`, an older scikit-learn than ours. All three are
pure. Neighbors of the logistic regression (Chaudhuri, Monteleoni and Sarwate 2011) and of the
linear one (Zhang et al. 2012, with ranges of products as sensitivities) differ in one record;
counts and sums of naive Bayes have the sensitivities of a record more or less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diffprivlib.models import GaussianNB, LinearRegression, LogisticRegression
from peer_tasks import Floats, PeerTask, Places, Predict, main


def by_logistic(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """Objective perturbation; data_norm is the largest norm that rows can have."""
    model = LogisticRegression(
        epsilon=epsilon, data_norm=task.norm, max_iter=1_000, random_state=seed
    )
    return predict_shares(task, model.fit(task.rows[train], task.y[train]))


def by_bayes(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """Noisy counts, means and variances of each class."""
    model = GaussianNB(epsilon=epsilon, bounds=(0, 1), random_state=seed)
    return predict_shares(task, model.fit(task.rows[train], task.y[train]))


def by_regression(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """The functional mechanism, of targets in [-1, 1]."""
    model = LinearRegression(
        epsilon=epsilon, bounds_X=(0, 1), bounds_y=(-1, 1), random_state=seed
    ).fit(task.rows[train], task.y[train])
    return lambda places: np.asarray(model.predict(task.rows[places])).reshape(-1)


def predict_shares(task: PeerTask, model: Any) -> Predict:
    """Probabilities of all classes, 0 of one that the records to learn from lack."""

    def predict(places: Places) -> Floats:
        shares = np.zeros((len(places), task.classes))
        shares[:, model.classes_] = model.predict_proba(task.rows[places])
        return shares

    return predict


if __name__ == "__main__":
    main(
        [
            ("diffprivlib logistic", "classes", by_logistic),
            ("diffprivlib Bayes", "classes", by_bayes),
            ("diffprivlib linear", "targets", by_regression),
        ],
        ("diffprivlib", "scikit-learn", "numpy"),
    )
