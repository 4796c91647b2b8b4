"""Linear models of bounded norm, and the records that they are learned from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.feature_names import FeatureNames, find_order, names_of
from .._support.json_text import JsonText
from .._support.numbers import finite_rows, finite_vector
from .._support.types import Floats, LossLabels
from .._support.validate import bits
from ..data.persons import Persons
from ..exceptions import ShapeError
from ..record import PrivacyRecord
from .descents import SGDPlan
from .descriptions import Description


@dataclass(frozen=True)
class ValidRows:
    """Validated records, finite and C-contiguous, in float32 or float64, and their column names."""

    entries: NDArray[Any]
    names: FeatureNames = None

    def __len__(self) -> int:
        return len(self.entries)

    def select(self, persons: Persons) -> ValidRows:
        """The records that are used."""
        return ValidRows(persons.select(self.entries), self.names)


@dataclass(frozen=True)
class LinearLoss:
    """The loss of a linear model's scores, and the bounds for which it is stated.

    Attributes:
        name: Name of the loss, as PrivateSGD takes it.
        shape: Threshold of the Huber loss, or margin of a hinge; 1 for losses that have neither.
        norm_bound: Norm to which records are shrunk.
        label_bound: None for labels 0 and 1; otherwise real labels are clipped to this magnitude.
        largest: Largest loss of any model in the ball on any record within the bounds.
    """

    name: str
    shape: float
    norm_bound: float
    label_bound: float | None
    largest: float


@dataclass(frozen=True, eq=False)
class LinearModel(JsonText):
    """What PrivateSGD learns: the score of a record is its inner product with the weights.

    Attributes:
        weights: The weights, float64 of shape (d,), read-only. Their norm is at most the learner's
            radius.
        loss: The loss that was minimized, with its bounds.
        record: What protects the records, or the agents of local.learn_by_descent. None without
            noise. Also None where the draws came from DenseWeights or from given indices, since
            only the whole run can account for its rounds.
        feature_names_in_: Names of the columns of the frame that it was learned from; None where
            that had no names. If a frame to predict on has the same columns in another order, they
            are reordered.
        plan: What the run was made of; None for a model that was restored, or that agents taught.

    Examples:
        >>> import math
        >>> import numpy as np
        >>> from hdp_fast.learners import PrivateSGD
        >>> X, y = np.tile([[0.6, 0.1], [-0.6, 0.2]], (100, 1)), np.tile([1, 0], 100)
        >>> learner = PrivateSGD(loss="logistic", steps=200, batch_size=20, epsilon=math.inf)
        >>> model = learner.learn(X, y)  # without privacy
        >>> model.predict([[0.5, 0.0], [-0.5, 0.0]])
        array([1, 0], dtype=uint8)
    """

    weights: Floats
    loss: LinearLoss = dataclasses.field(repr=False)
    record: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = dataclasses.field(default=None, repr=False)
    plan: SGDPlan | None = dataclasses.field(default=None, repr=False)

    @property
    def hypothesis(self) -> Description:
        """A description that JSON can carry; the bias is 0, since an intercept is a column of X."""
        return {"kind": "linear", "weights": self.weights.tolist(), "bias": 0.0}

    def _to_fields(self) -> Mapping[str, Any]:
        named = {"feature_names_in_": self.feature_names_in_, "record": self.record}
        return {"hypothesis": self.hypothesis, **named, "plan": self.plan}

    def scores(self, X: Any) -> Floats:
        """Computes the inner product of the weights with every record, shrunk to norm_bound.

        Args:
            X: Finite real numbers of shape (m, d), m at least 1, or what the learner's prepare
                returned. float32 records are multiplied in float32.

        Returns:
            A float64 array of shape (m,), at most radius * norm_bound in magnitude, up to rounding.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no finite real number, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            A pass over X.
        """
        rows = validate_rows(X, self.feature_names_in_)
        records = core_arguments(rows, np.zeros(len(rows)))
        return _core.linear_scores(records, self.loss.norm_bound, self.weights)

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Predicts 1 where the score is at least 0.

        Args:
            X: The records, shape (m, d), as scores takes them.

        Returns:
            A uint8 array of shape (m,) of 0 and 1.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no finite real number, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            A pass over X.
        """
        return (self.scores(X) >= 0).view(np.uint8)

    def losses(self, X: Any, y: ArrayLike) -> Floats:
        """Computes the loss on every record as a share of the largest possible loss.

        Args:
            X: The records, shape (m, d), as scores takes them.
            y: The labels, shape (m,), as the learner takes them.

        Returns:
            A float64 array of shape (m,) in [0, 1]. Multiplied by loss.largest they are the losses
            themselves.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns, or y does not have m
                entries.
            ParameterError: An entry of X or y lies outside its domain, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            A pass over X.

        Source:
            Kohen and Sheffet 2022, Algorithm 4, with the largest loss itself for LD.
        """
        loss, rows = self.loss, validate_rows(X, self.feature_names_in_)
        records = core_arguments(rows, validate_labels(y, len(rows), loss.label_bound))
        return _core.linear_losses(
            records, loss.norm_bound, self.weights, loss.name, loss.shape, loss.largest
        )


def validate_rows(X: Any, kept: FeatureNames = None) -> ValidRows:
    """Validate the records; pass validated ones through.

    Args:
        X: Records, or validated ones.
        kept: Names of the columns that were learned from, in whose order the columns are put.

    Raises:
        ShapeError: X does not have two dimensions and an entry.
        ParameterError: An entry is no finite real number, or the names of the columns differ.
    """
    names = X.names if isinstance(X, ValidRows) else names_of(X)
    order = None if kept is None or names is None else find_order(kept, names)
    entries = X.entries if isinstance(X, ValidRows) else finite_rows(X)
    if order is not None:
        entries, names = entries[:, order], kept
    return ValidRows(np.require(entries, None, "C"), names)


def core_arguments(rows: ValidRows, labels: LossLabels) -> tuple[NDArray[Any], int, LossLabels]:
    """Return records and labels as arguments of the compiled module."""
    return rows.entries.reshape(-1), rows.entries.shape[1], labels


def validate_labels(y: ArrayLike, n: int, bound: float | None) -> LossLabels:
    """Return labels as the losses take them: -1 and 1 for bits, or real numbers within the bound.

    Bits become small integers, more of which fit into a cache.

    Raises:
        ShapeError: y does not have n entries.
        ParameterError: An entry is no label.
    """
    if bound is None:
        labels: LossLabels = bits("y", y).astype(np.int16)
        labels *= 2
        labels -= 1
    else:
        labels = finite_vector("y", y).clip(-bound, bound)
    if len(labels) != n:
        raise ShapeError(f"y has length {len(labels):,}, but X has {n:,} records")
    return labels
