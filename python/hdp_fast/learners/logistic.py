"""Logistic regression of scikit-learn, as a learner whose hypotheses fit into JSON. Not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.lazy import load_optional
from .scores import predictor


class LogisticLearner:
    """Learns halfspaces for SubsampleTestReweigh without privacy.

    The options are arguments of sklearn.linear_model.LogisticRegression.

    Raises:
        ImportError: scikit-learn is not installed; the error names the extra.
    """

    def __init__(self, **options: Any):
        linear_model = load_optional("sklearn.linear_model", "logistic regression", "sklearn")
        self._model = linear_model.LogisticRegression
        self._options = {"max_iter": 1_000, **options}

    def learn(
        self, X: NDArray[Any], y: NDArray[np.uint8], *, random_state: object = None
    ) -> Halfspace:
        """Learns the halfspace {x : P(label 1 | x) >= 1/2}, with the coefficients of the model."""
        if y.min() == y.max():
            # The model needs two classes; at this bias the other has probability 1 / (m + 2).
            weights, bias = np.zeros(X.shape[1]), float(np.log(len(y) + 1)) * (1 if y[0] else -1)
        else:
            model = self._model(**self._options).fit(X, y)
            weights, bias = model.coef_[0], float(model.intercept_[0])
        return self.restore({"kind": "halfspace", "weights": weights.tolist(), "bias": bias})

    def restore(self, hypothesis: dict[str, Any]) -> Halfspace:
        """Restores a halfspace from its description."""
        return Halfspace(hypothesis)


@dataclass(frozen=True)
class Halfspace:
    """A halfspace that LogisticLearner learned.

    Attributes:
        hypothesis: Its description.
    """

    hypothesis: dict[str, Any]

    def predict(self, X: NDArray[Any], /) -> NDArray[np.uint8]:
        """Predicts 1 where label 1 is at least as likely as 0."""
        return predictor(self.hypothesis)(X)
