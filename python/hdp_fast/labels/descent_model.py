"""The model that a statistics labeler learns by noisy gradients, in the form of the other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..learners import FeatureMap, PrivateSGD
from ..learners.moment_equation import softmax, to_halves


@dataclass(frozen=True, eq=False)
class DescentModel:
    """A linear model of public features that noisy gradients learned.

    Attributes:
        features: The public feature map.
        classes: The K classes in order, shape (K,).
        coefficients: float64 of shape (d, K).
    """

    features: FeatureMap
    classes: NDArray[Any]
    coefficients: Floats

    def predict_proba(self, X: Any) -> Floats:
        """Computes the posterior probability of every class.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1.
        """
        return softmax(self.features(X) @ self.coefficients)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class of the largest probability, ties to the first.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            An array of shape (m,) of classes.
        """
        labels: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return labels


def make_learner(classes: int, epsilon: float, delta: float) -> PrivateSGD:
    """The learner for so many classes, all of whose settings are chosen by public rules."""
    if classes == 2:
        return PrivateSGD(loss="logistic", epsilon=epsilon, delta=delta)
    return PrivateSGD(loss="softmax", classes=classes, epsilon=epsilon, delta=delta)


def descend(
    features: FeatureMap,
    rows: Floats,
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    learner: PrivateSGD,
    random_state: np.random.Generator | None,
) -> DescentModel:
    """Learn by noisy gradients from records alone; the guarantee is that of the learner."""
    model = learner.learn(features(rows), codes, random_state=random_state)
    weights = np.asarray(model.weights, np.float64)
    if len(classes) == 2:
        weights = to_halves(weights)
    return DescentModel(features, classes, weights)
