"""What estimators of adaptation share: parameters, predictions, a look at their arguments."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.parameters import SettableParameters
from .._support.types import Floats
from .._support.validate import one_of
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.linear_model import validate_labels, validate_rows
from ..record import PrivacyRecord
from .baselines.weighted_fit import LOSSES, Loss
from .discrepancies.moments import shrunk


class People(NamedTuple):
    """Records that have been looked at: float X (n, d), and y, -1 or 1 for the logistic loss."""

    X: NDArray[Any]
    y: Floats


class Estimator(SettableParameters):
    """Parameters are the fields of a dataclass, which scikit-learn can read and set.

    It cannot clone them: a search or cross-validation would choose for the source, on folds of the
    source, and cut the target by the positions of those folds.
    """

    record_: PrivacyRecord | None = None
    coef_: Floats
    loss: Loss

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record.

        X: finite real numbers (k, d). Returns float64 (k,).

        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: a pass over X.
        Source: none.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError(f"{type(self).__name__} has not learned yet: call fit first")
        rows = validate_rows(X).entries
        same_columns("X", rows, len(self.coef_))
        found: Floats = self._judged(rows) @ self.coef_
        return found

    def _judged(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the coefficients are multiplied with."""
        return rows

    def predict(self, X: ArrayLike) -> Floats | NDArray[np.uint8]:
        """The scores of the squared loss; for the logistic one uint8, 1 where they are at least 0.

        X: as scores.

        Raises: as scores.
        Cost: as scores.
        Source: none.
        """
        scores = self.scores(X)
        return scores if self.loss == "squared" else (scores >= 0).view(np.uint8)

    def __sklearn_clone__(self) -> NoReturn:
        name = type(self).__name__
        rule = "a search would choose for the source, and cut the target by the source's folds"
        tuned = "adaptation.tune chooses parameters for the target"
        raise ParameterError(f"{name} can't be cloned: {rule}; {tuned}")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's searches ask of an estimator before they clone it."""
        utils = importlib.import_module("sklearn.utils")
        # No classifier under any loss: that would promise a list of the labels seen, which may be
        # private.
        kind = "regressor" if self.loss == "squared" else None
        return utils.Tags(estimator_type=kind, target_tags=utils.TargetTags(required=True))


class BoundedEstimator(Estimator):
    """What it learns is of records shrunk to a bound, and so are those it judges."""

    norm_bound: float

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record, shrunk to norm_bound.

        X: finite real numbers (k, d), of the target's space. Returns float64 (k,).

        Guarantee: that of fit, which it only reads.
        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: two passes over X.
        Source: none.
        """
        return super().scores(X)

    def _judged(self, rows: NDArray[Any]) -> NDArray[Any]:
        return shrunk(rows, self.norm_bound)


def people(name: str, X: ArrayLike, y: ArrayLike, loss: Loss) -> People:
    """Records of a domain.

    Raises: ShapeError, ParameterError, naming the domain's arguments.
    """
    rows = rows_of(name, X)
    with _named(name):
        labels = validate_labels(y, len(rows), None if loss == "logistic" else math.inf)
    return People(rows, labels)


def rows_of(name: str, X: ArrayLike) -> NDArray[Any]:
    """Records of a domain without their labels, float (n, d).

    Raises: ShapeError, ParameterError, naming the domain.
    """
    with _named(name):
        return validate_rows(X).entries


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors begin with the domain's name."""
    try:
        yield
    except HdpFastError as error:
        raise type(error)(f"{name}: {error}") from None


def same_columns(name: str, rows: NDArray[Any], d: int) -> None:
    """Refuse records that have not d features.

    Raises: ShapeError.
    """
    if rows.shape[1] != d:
        raise ShapeError(f"{name} has {rows.shape[1]} columns, but there must be {d}")


def check_loss(loss: object) -> None:
    """Refuse what is no loss of linear models here.

    Raises: ParameterError.
    """
    one_of("loss", loss, LOSSES)
