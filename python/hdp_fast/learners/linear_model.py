"""Linear models of a bounded norm, and the records that they are made from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.numbers import finite_rows, floats
from .._support.types import Floats
from .._support.validate import bits, numbers
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord
from .descriptions import Hypothesis


@dataclass(frozen=True)
class Rows:
    """Records that have been looked at: finite, C-contiguous float32 or float64."""

    entries: NDArray[Any]

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
    """

    weights: Floats
    loss: LinearLoss = dataclasses.field(repr=False)
    record: PrivacyRecord | None = None

    @property
    def hypothesis(self) -> Hypothesis:
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
        rows = looked_at(X)
        given = as_given(rows, np.zeros(len(rows)))
        return _core.linear_scores(given, self.loss.norm_bound, self.weights)

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
        loss, rows = self.loss, looked_at(X)
        given = as_given(rows, labels_of(y, len(rows), loss.label_bound))
        return _core.linear_losses(
            given, loss.norm_bound, self.weights, loss.name, loss.threshold, loss.largest
        )


def looked_at(X: Any) -> Rows:
    """The records, looked at unless they have been.

    Raises: ShapeError, ParameterError.
    """
    return X if isinstance(X, Rows) else Rows(np.require(finite_rows(X), None, "C"))


def as_given(rows: Rows, labels: Floats) -> tuple[NDArray[Any], int, Floats]:
    """Records and labels as the compiled module takes them."""
    return rows.entries.reshape(-1), rows.entries.shape[1], labels


def labels_of(y: ArrayLike, n: int, bound: float | None) -> Floats:
    """What the losses take: -1 and 1 of bits, or real numbers clipped to the bound.

    Raises: ShapeError unless there are n of them, ParameterError for other labels.
    """
    if bound is None:
        labels = bits("y", y).astype(np.float64)
        labels *= 2
        labels -= 1
    else:
        labels = _reals("y", y).clip(-bound, bound)
    if len(labels) != n:
        raise ShapeError(f"y has length {len(labels):,}, but X has {n:,} records")
    return labels


def _reals(name: str, value: ArrayLike) -> Floats:
    found = numbers(name, value)
    if found.ndim != 1:
        raise ShapeError(f"{name} has shape {found.shape}, but it must have one dimension")
    labels = floats(found)
    if not np.isfinite(labels).all():
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return labels
