"""Linear and softmax models of bounded norm, and the records that they are learned from."""

from __future__ import annotations

import dataclasses
import math
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
from .._support.validate import bits, integer_vector
from ..data.persons import Persons
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord
from .descents import SGDPlan
from .descriptions import Description
from .moment_equation import softmax


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


# Labels that are checked at a time.
_PART = 1 << 15


@dataclass(frozen=True, eq=False)
class SoftmaxModel(JsonText):
    """What PrivateSGD learns with loss="softmax": a score for each class, and its probability.

    The scores of a record x are `weights.T @ x`. The probabilities are in proportion to their
    exponentials.

    Attributes:
        weights: The weights, float64 of shape (d, K) for K classes, read-only.
        loss: The loss that was minimized, with its bounds.
        record: What protects the records. None without noise. Also None where the draws came from
            DenseWeights or from given indices.
        feature_names_in_: Names of the columns of the frame that it was learned from; None where
            that had no names. If a frame to predict on has the same columns in another order, they
            are reordered.
        plan: What the run was made of; None for a model that was restored, or that agents taught.

    Examples:
        >>> import math
        >>> import numpy as np
        >>> from hdp_fast.learners import PrivateSGD
        >>> X, y = np.tile(np.eye(3), (100, 1)), np.tile([0, 1, 2], 100)
        >>> learner = PrivateSGD(loss="softmax", classes=3, steps=100, epsilon=math.inf)
        >>> model = learner.learn(X, y)  # without privacy
        >>> model.predict(np.eye(3)), model.predict_proba(np.eye(3)).shape
        (array([0, 1, 2]), (3, 3))
    """

    weights: Floats
    loss: LinearLoss = dataclasses.field(repr=False)
    record: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = dataclasses.field(default=None, repr=False)
    plan: SGDPlan | None = dataclasses.field(default=None, repr=False)

    @property
    def classes(self) -> int:
        """The number K of classes; labels are the integers from 0 to K - 1."""
        return int(self.weights.shape[1])

    @property
    def hypothesis(self) -> Description:
        """A description that JSON can carry: the weights of each class in a list of their own."""
        return {"kind": "softmax", "weights": self.weights.T.tolist()}

    def _to_fields(self) -> Mapping[str, Any]:
        named = {"feature_names_in_": self.feature_names_in_, "record": self.record}
        return {"hypothesis": self.hypothesis, **named, "plan": self.plan}

    def scores(self, X: Any) -> Floats:
        """Computes the inner products of each class's weights with every record.

        Args:
            X: Finite real numbers of shape (m, d), m at least 1, or what the learner's prepare
                returned. Records are shrunk to the learner's norm_bound; float32 records are
                multiplied in float32.

        Returns:
            A float64 array of shape (m, K).

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no finite real number, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            A pass over X, whose rows are multiplied K times.
        """
        rows = validate_rows(X, self.feature_names_in_)
        d = rows.entries.shape[1]
        if d != len(self.weights):
            rule = f"the model has {len(self.weights):,} weights for each class"
            raise ShapeError(f"X has {d:,} columns, but {rule}")
        records = core_arguments(rows, np.zeros(len(rows)))
        weights = np.ascontiguousarray(self.weights.T).reshape(-1)
        return _core.linear_scores(records, self.loss.norm_bound, weights).reshape(len(rows), -1)

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of every class for every record.

        Args:
            X: The records, shape (m, d), as scores takes them.

        Returns:
            A float64 array of shape (m, K), whose rows sum to 1.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no finite real number, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            That of scores, and m K exponentials.
        """
        return softmax(self.scores(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predicts the class of the largest score, and the first of equal ones.

        Args:
            X: The records, shape (m, d), as scores takes them.

        Returns:
            An int64 array of shape (m,) of classes from 0 to K - 1.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no finite real number, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            That of scores.
        """
        classes: NDArray[np.int64] = self.scores(X).argmax(axis=1)
        return classes

    def losses(self, X: Any, y: ArrayLike) -> Floats:
        """Computes the loss on every record as a share of a bound on the largest possible loss.

        Args:
            X: The records, shape (m, d), as scores takes them.
            y: Their classes, integers from 0 to K - 1, shape (m,).

        Returns:
            A float64 array of shape (m,) in [0, 1]. Multiplied by loss.largest they are the losses
            themselves, the negative logarithms of the probabilities of the classes in y.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns, or y does not have m
                entries.
            ParameterError: An entry of X or y lies outside its domain, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            That of predict_proba.
        """
        scores = self.scores(X)
        labels = validate_classes(y, len(scores), self.classes)
        scores -= scores[np.arange(len(labels)), labels][:, None]
        largest = scores.max(axis=1)
        losses = largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))
        shares: Floats = np.clip(losses / self.loss.largest, 0, 1)
        return shares


def largest_softmax_loss(classes: int, reach: float) -> float:
    """Bound the loss where the vector of scores has norm `reach` or less.

    Two scores differ by at most sqrt(2) times that norm, so that the loss is at most
    `ln(1 + (K - 1) exp(sqrt(2) reach))`; with two classes it is attained.
    """
    return float(np.logaddexp(0, math.log(classes - 1) + math.sqrt(2) * reach))


def validate_classes(y: ArrayLike, n: int, classes: int) -> NDArray[np.int16]:
    """Return numbers of classes as the losses take them.

    Raises:
        ShapeError: y does not have n entries.
        ParameterError: An entry is no integer from 0 to classes - 1.
    """
    numbers = integer_vector("y", y)
    if len(numbers) != n:
        raise ShapeError(f"y has length {len(numbers):,}, but X has {n:,} records")
    labels = np.empty(n, np.int16)
    # Parts that a cache holds, since each is read three times.
    for start in range(0, n, _PART):
        part = numbers[start : start + _PART]
        if part.min() < 0 or part.max() >= classes:
            rule = f"every entry must be an integer from 0 to {classes - 1}"
            raise ParameterError(f"y holds something else, but {rule}")
        labels[start : start + _PART] = part
    # What another thread has changed since counts as the nearest class.
    return np.clip(labels, 0, classes - 1, out=labels)
