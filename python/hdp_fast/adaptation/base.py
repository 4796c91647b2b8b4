"""What estimators of adaptation share: parameters, predictions and the check of their arguments."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import FeatureNames, check_names, names_of
from .._support.parameters import SettableParameters
from .._support.types import Floats
from .._support.validate import one_of
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.linear_model import validate_labels, validate_rows
from ..record import PrivacyRecord
from .baselines.weighted_fit import LOSSES, Loss
from .discrepancies.moments import shrink_rows


class Records(NamedTuple):
    """Validated records: float X (n, d), and y, -1 or 1 for the logistic loss."""

    X: NDArray[Any]
    y: Floats


class Estimator(SettableParameters):
    """Parameters are the fields of a dataclass, which scikit-learn can read and set.

    It cannot clone them: a search or cross-validation would choose for the source, on folds of the
    source, and cut the target by the positions of those folds.
    """

    record_: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = None
    coef_: Floats
    loss: Loss

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record.

        X: finite real numbers (k, d); a frame with the columns of that which fit took in another
        order is put in its. Returns float64 (k,).

        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: a pass over X.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError(f"{type(self).__name__} has not learned yet: call fit first")
        rows = validate_rows(X, self.feature_names_in_).entries
        check_columns("X", rows, len(self.coef_))
        scores: Floats = self._prepare_rows(rows) @ self.coef_
        return scores

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows that the coefficients are multiplied with."""
        return rows

    def predict(self, X: ArrayLike) -> Floats | NDArray[np.uint8]:
        """The scores of the squared loss; for the logistic one uint8, 1 where they are at least 0.

        X: finite real numbers (k, d).

        Raises: ShapeError, ParameterError; HdpFastError before fit.
        """
        scores = self.scores(X)
        return scores if self.loss == "squared" else (scores >= 0).view(np.uint8)

    def __sklearn_clone__(self) -> NoReturn:
        name = type(self).__name__
        rule = "a search would choose for the source, and cut the target by the source's folds"
        tuned = "adaptation.tune chooses parameters for the target"
        raise ParameterError(f"{name} can't be cloned: {rule}; {tuned}")

    def __sklearn_tags__(self) -> Any:
        """The tags that scikit-learn's searches read before they clone an estimator."""
        utils = importlib.import_module("sklearn.utils")
        # No classifier under any loss: that would promise a list of the labels seen, which may be
        # private.
        kind = "regressor" if self.loss == "squared" else None
        return utils.Tags(estimator_type=kind, target_tags=utils.TargetTags(required=True))


class BoundedEstimator(Estimator):
    """An estimator that shrinks records to a bound, those to learn from and those to predict."""

    norm_bound: float

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record, shrunk to norm_bound.

        X: finite real numbers (k, d), of the target's space. Returns float64 (k,).

        Guarantee: that of fit, since it reads nothing else.
        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: two passes over X.
        """
        return super().scores(X)

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        return shrink_rows(rows, self.norm_bound)


def validate_domain(name: str, X: ArrayLike, y: ArrayLike, loss: Loss) -> Records:
    """Validate the records of a domain.

    Raises: ShapeError, ParameterError, naming the domain's arguments.
    """
    rows = validate_features(name, X)
    with _naming(name):
        labels = validate_labels(y, len(rows), None if loss == "logistic" else math.inf)
    return Records(rows, labels)


def align_source(
    X_source: Any, X_target: Any, feature_map: object = None
) -> tuple[Any, FeatureNames]:
    """The source's records with their columns in the target's order, and the names of these.

    Frames of both must have the same names, in any order, unless a map makes other features.

    Raises: ParameterError.
    """
    names = names_of(X_target)
    if feature_map is not None:
        return X_source, names
    return check_names(names, X_source, "X_source"), names or names_of(X_source)


def validate_features(name: str, X: ArrayLike) -> NDArray[Any]:
    """Validate the records of a domain without their labels, float (n, d).

    Raises: ShapeError, ParameterError, naming the domain.
    """
    with _naming(name):
        return validate_rows(X).entries


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Let errors begin with the domain's name."""
    try:
        yield
    except HdpFastError as error:
        raise type(error)(f"{name}: {error}") from None


def check_columns(name: str, rows: NDArray[Any], d: int) -> None:
    """Refuse records that do not have d features.

    Raises: ShapeError.
    """
    if rows.shape[1] != d:
        raise ShapeError(f"{name} has {rows.shape[1]} columns, but there must be {d}")


def check_loss(loss: object) -> None:
    """Refuse any other loss than those of the baselines.

    Raises: ParameterError.
    """
    one_of("loss", loss, LOSSES)
