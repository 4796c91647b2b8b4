"""Learners of this package, classifiers and functions behind the one interface that a run uses."""

from __future__ import annotations

import copy
import importlib
import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Bits
from .._support.validate import refuse
from ..data.records import copy_array
from ..local.pool import Hypothesis
from ..weights import DenseWeights


class Learner:
    """A learner of this package, or an object with the same methods."""

    def __init__(self, learner: Any):
        self._learner = learner

    @property
    def can_restore(self) -> bool:
        """Whether the learner can restore a hypothesis from its description."""
        return hasattr(self._learner, "restore")

    @property
    def draws_itself(self) -> bool:
        """Whether the learner draws from the weights itself, instead of taking drawn records."""
        return hasattr(self._learner, "learn_weighted")

    def learn_weighted(
        self, X: Any, y: Bits, weights: DenseWeights, random_state: int | None
    ) -> Hypothesis:
        """Learns a hypothesis from the prepared records under these weights."""
        return self._learner.learn_weighted(X, y, weights, random_state=random_state)  # type: ignore[no-any-return]

    def learn(self, X: Any, y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        """Learns a hypothesis from the prepared records at these indices, which may repeat."""
        if hasattr(self._learner, "learn_indices"):
            return self._learner.learn_indices(X, y, indices, random_state=random_state)  # type: ignore[no-any-return]
        return self._learner.learn(X[indices], y[indices], random_state=random_state)  # type: ignore[no-any-return]

    def prepare(self, X: NDArray[Any]) -> Any:
        """Brings all records into the form that `predict` reads fastest."""
        return self._learner.prepare(X) if hasattr(self._learner, "prepare") else X

    def restore(self, hypothesis: dict[str, Any]) -> Hypothesis:
        """Restores a hypothesis from its description."""
        return self._learner.restore(hypothesis)  # type: ignore[no-any-return]


class _OpaquePredictor:
    """A caller's predictor, which JSON cannot describe."""

    hypothesis: dict[str, Any] | None = None

    def __init__(self, predict: Any):
        self._predict = predict

    def predict(self, X: Any, /) -> Any:
        """Predicts on a copy of the records, since the caller's code may change them in place."""
        return self._predict(copy_array(X) if isinstance(X, np.ndarray) else X)


class _Function(Learner):
    """A function (X, y) that returns a function for predictions, or an object with `predict`."""

    can_restore = False

    def learn(self, X: NDArray[Any], y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        result = self._learner(X[indices], y[indices])
        if hasattr(result, "hypothesis"):
            return result  # type: ignore[no-any-return]
        return _OpaquePredictor(getattr(result, "predict", result))


class _Classifier(Learner):
    """A scikit-learn classifier; each round fits a new clone of it."""

    can_restore = False

    def learn(self, X: NDArray[Any], y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        labels = y[indices]
        if labels.min() == labels.max():
            # Most classifiers refuse to learn from one class.
            return _OpaquePredictor(lambda X: np.full(len(X), labels[0]))
        model = _clone(self._learner)
        if (
            random_state is not None
            and "random_state" in inspect.signature(model.__init__).parameters
        ):
            model.set_params(random_state=random_state % (1 << 32))
        return _OpaquePredictor(model.fit(X[indices], labels).predict)


def adapt(learner: Any) -> Learner:
    """Gives a learner the interface of `Learner`.

    Raises:
        ParameterError: The object cannot learn.
    """
    if any(hasattr(learner, name) for name in ("learn", "learn_indices", "learn_weighted")):
        return Learner(learner)
    if hasattr(learner, "fit") and hasattr(learner, "predict"):
        return _Classifier(learner)
    if not callable(learner) or isinstance(learner, type):
        rule = "it must have learn, or fit and predict, or be a function (X, y) -> predictor"
        refuse("learner", learner, rule)
    return _Function(learner)


def _clone(classifier: Any) -> Any:
    try:
        return importlib.import_module("sklearn.base").clone(classifier)
    except ImportError:
        return copy.deepcopy(classifier)
