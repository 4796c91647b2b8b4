"""What the estimators of adaptation share: parameters, predictions and validated records."""

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
from .._support.validate import array, one_of
from ..data.persons import Persons, read_persons
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.linear_model import validate_labels, validate_rows
from ..record import PrivacyRecord
from .baselines.weighted_fit import LOSSES, Loss
from .discrepancies.moments import shrink_rows


class DomainRecords(NamedTuple):
    """Validated records: float X (n, d), and float64 y (n,), -1 or 1 for the logistic loss."""

    X: NDArray[Any]
    y: Floats


class Estimator(SettableParameters):
    """An estimator whose parameters are the fields of a dataclass.

    scikit-learn can read and set them, but not clone the estimator: a search or a cross-validation
    of scikit-learn would choose parameters for the source, on folds of the source, and would cut
    the target at the positions of those folds. hdp_fast.sklearn has estimators of adaptation that
    take both domains in one table, whose folds hold both.
    """

    record_: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = None
    coef_: Floats
    loss: Loss

    def scores(self, X: ArrayLike) -> Floats:
        """Computes the inner product of the coefficients with every record.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d). The columns of a
                frame are put into the order that fit took.

        Returns:
            A float64 array of shape (k,).

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.

        Cost:
            A pass over X.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError(f"{type(self).__name__} has not learned yet: call fit first")
        rows = validate_rows(X, self.feature_names_in_).entries
        check_columns("X", rows, len(self.coef_))
        scores: Floats = self._prepare_rows(rows) @ self.coef_
        return scores

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that the coefficients are multiplied with."""
        return rows

    def predict(self, X: ArrayLike) -> Floats | NDArray[np.uint8]:
        """Predicts the label of every record: the score for the squared loss, otherwise 0 or 1.

        The logistic loss predicts 1 where the score is at least 0.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d).

        Returns:
            Float64 scores (k,) for the squared loss; uint8 labels (k,) for the logistic loss.

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.
        """
        scores = self.scores(X)
        return scores if self.loss == "squared" else (scores >= 0).view(np.uint8)

    def __sklearn_clone__(self) -> NoReturn:
        name = type(self).__name__
        rule = "a search would choose for the source, and cut the target by the source's folds"
        tuned = "adaptation.tune chooses parameters for the target"
        others = "hdp_fast.sklearn.AdaptationRegressor and AdaptationClassifier can be searched"
        raise ParameterError(f"{name} can't be cloned: {rule}; {tuned}, and {others}")

    def __sklearn_tags__(self) -> Any:
        """The tags that the searches of scikit-learn read before they clone an estimator."""
        utils = importlib.import_module("sklearn.utils")
        # No loss makes it a classifier: that would promise a list of the labels in the records,
        # which may be private.
        kind = "regressor" if self.loss == "squared" else None
        return utils.Tags(estimator_type=kind, target_tags=utils.TargetTags(required=True))


class BoundedEstimator(Estimator):
    """An estimator that shrinks longer records to a norm, both in fit and for predictions."""

    norm_bound: float

    def scores(self, X: ArrayLike) -> Floats:
        """Computes the inner product of the coefficients with every record, shrunk to the bound.

        A record longer than norm_bound is shrunk to this norm.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d). The columns of a
                frame are put into the order that fit took.

        Returns:
            A float64 array of shape (k,).

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.

        Guarantee:
            That of fit for the records that fit protects, since nothing else about them is read. X
            itself is not protected.

        Cost:
            Two passes over X.
        """
        return super().scores(X)

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        return shrink_rows(rows, self.norm_bound)


def bound_records(
    X: Any, y: Any, ids: ArrayLike | None, rows_per_person: int
) -> tuple[Any, Any, Persons]:
    """The private records that are used, and who owns them.

    Raises: ShapeError unless there is an id for each of n records; ParameterError as read_persons.
    """
    if ids is None:
        return X, y, read_persons(None, rows_per_person, 0)
    shape = np.shape(array("X", X))
    n = shape[0] if shape else 1
    if y is not None and np.shape(array("y", y)) != shape[:1]:
        raise ShapeError(f"the private labels are not as many as their {n:,} records")
    persons = read_persons(ids, rows_per_person, n)
    return persons.select(X), None if y is None else persons.select(y), persons


def validate_domain(name: str, X: ArrayLike, y: ArrayLike, loss: Loss) -> DomainRecords:
    """Validate the records of a domain; errors name the domain.

    Raises: ShapeError, ParameterError.
    """
    rows = validate_features(name, X)
    with _naming(name):
        labels = validate_labels(y, len(rows), None if loss == "logistic" else math.inf)
    return DomainRecords(rows, labels.astype(np.float64, copy=False))


def align_source(
    X_source: Any, X_target: Any, feature_map: object = None
) -> tuple[Any, FeatureNames]:
    """Return the source's records with their columns in the target's order, and the names of these.

    Two frames must have the same names, in any order, unless a feature map makes other features.

    Raises: ParameterError.
    """
    names = names_of(X_target)
    if feature_map is not None:
        return X_source, names
    return check_names(names, X_source, "X_source"), names or names_of(X_source)


def validate_features(name: str, X: ArrayLike) -> NDArray[Any]:
    """Validate the features of a domain, float (n, d); errors name the domain.

    Raises: ShapeError, ParameterError.
    """
    with _naming(name):
        return validate_rows(X).entries


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the domain's name in front of errors."""
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
    """Refuse every loss but those of the baselines.

    Raises: ParameterError.
    """
    one_of("loss", loss, LOSSES)
