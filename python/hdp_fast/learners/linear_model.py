"""Linear models of a bounded norm, and the records that they are made from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.feature_names import FeatureNames, find_order, names_of
from .._support.numbers import finite_rows, floats
from .._support.types import Floats
from .._support.validate import bits, numbers
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord
from .descriptions import Description


@dataclass(frozen=True)
class ValidRows:
    """Validated records: finite, C-contiguous, float32 or float64; names of their columns."""

    entries: NDArray[Any]
    names: FeatureNames = None

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class LinearLoss:
    """The loss of a linear model's scores, and the bounds that it is stated for.

    Attributes:
        name: as PrivateSGD takes it.
        threshold: of "huber".
        norm_bound: records are shrunk to this norm.
        label_bound: None for labels 0 and 1, else real labels are clipped to it.
        largest: the largest loss of any model in the ball on any record within the bounds.
    """

    name: str
    threshold: float
    norm_bound: float
    label_bound: float | None
    largest: float


@dataclass(frozen=True, eq=False)
class LinearModel:
    """What PrivateSGD learns: the score of a record is its inner product with the weights.

    Attributes:
        weights: float64 (d,), read-only; their norm is at most the learner's radius.
        loss: that it was learned by, with its bounds.
        record: what protects the records, or the agents of local.learn_by_descent; None without
            noise, and where the draws came from weights, for whose rounds only the whole run can
            account.
        feature_names_in_: names of the columns of the frame that it was learned from, else None; a
            frame with the same in another order is put in theirs.
    """

    weights: Floats
    loss: LinearLoss = dataclasses.field(repr=False)
    record: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = dataclasses.field(default=None, repr=False)

    @property
    def hypothesis(self) -> Description:
        """A dict that JSON can carry; the bias is 0, a constant column has its weight."""
        return {"kind": "linear", "weights": self.weights.tolist(), "bias": 0.0}

    def scores(self, X: Any) -> Floats:
        """The inner product of the weights with every record, shrunk to the row bound.

        X: finite real numbers (m, d), or what prepare made of them; float32 is multiplied as such.
        Returns float64 (m,), at most radius * norm_bound in magnitude, up to rounding.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        rows = validate_rows(X, self.feature_names_in_)
        records = core_arguments(rows, np.zeros(len(rows)))
        return _core.linear_scores(records, self.loss.norm_bound, self.weights)

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """1 where the score is at least 0.

        X: as scores. Returns uint8 (m,).

        Raises: as scores.
        Cost: as scores.
        Source: none.
        """
        return (self.scores(X) >= 0).view(np.uint8)

    def losses(self, X: Any, y: ArrayLike) -> Floats:
        """The loss on every record as a share of the largest possible one.

        X: as scores; y: (m,), as the learner takes them. Returns float64 (m,), in [0, 1]; times the
        loss's largest they are the losses themselves.

        Raises: as scores.
        Cost: as scores.
        Source: Kohen and Sheffet 2022, Algorithm 4, with the largest loss itself for LD.
        """
        loss, rows = self.loss, validate_rows(X, self.feature_names_in_)
        records = core_arguments(rows, validate_labels(y, len(rows), loss.label_bound))
        return _core.linear_losses(
            records, loss.norm_bound, self.weights, loss.name, loss.threshold, loss.largest
        )


def validate_rows(X: Any, kept: FeatureNames = None) -> ValidRows:
    """The records, validated unless they have been.

    kept: the names of the columns that were learned from, whose order they are put in.

    Raises: ShapeError, ParameterError.
    """
    names = X.names if isinstance(X, ValidRows) else names_of(X)
    order = None if kept is None or names is None else find_order(kept, names)
    entries = X.entries if isinstance(X, ValidRows) else finite_rows(X)
    if order is not None:
        entries, names = entries[:, order], kept
    return ValidRows(np.require(entries, None, "C"), names)


def core_arguments(rows: ValidRows, labels: Floats) -> tuple[NDArray[Any], int, Floats]:
    """Records and labels as arguments of the compiled module."""
    return rows.entries.reshape(-1), rows.entries.shape[1], labels


def validate_labels(y: ArrayLike, n: int, bound: float | None) -> Floats:
    """Labels as the losses take them: -1 and 1 for bits, or real numbers clipped to the bound.

    Raises: ShapeError unless there are n of them, ParameterError for other labels.
    """
    if bound is None:
        labels = bits("y", y).astype(np.float64)
        labels *= 2
        labels -= 1
    else:
        labels = _real_labels(y).clip(-bound, bound)
    if len(labels) != n:
        raise ShapeError(f"y has length {len(labels):,}, but X has {n:,} records")
    return labels


def _real_labels(y: ArrayLike) -> Floats:
    values = numbers("y", y)
    if values.ndim != 1:
        raise ShapeError(f"y has shape {values.shape}, but it must have one dimension")
    labels = floats(values)
    if not np.isfinite(labels).all():
        raise ParameterError("y has an infinite entry or NaN, but all must be finite")
    return labels
