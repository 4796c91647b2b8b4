"""A linear learner that is not private, for runs that need no privacy."""

from __future__ import annotations

import dataclasses
import math
import weakref
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.feature_names import FeatureNames, check_names, names_of
from .._support.json_text import JsonText
from .._support.numbers import finite_rows, real_rows
from .._support.parameters import Checked, Parameters, Rules, optional
from .._support.random_state import check_random_state
from .._support.types import Bits, RandomState
from .._support.validate import bits, flag, integers, number, positive, refuse
from ..exceptions import ParameterError, ShapeError


@dataclass(frozen=True, eq=False)
class SeparatorResult(JsonText):
    """What LinearSeparator learns: 1 where weights times the record plus bias is at least 0.

    Attributes:
        weights: The weights, float64 of shape (d,), read-only.
        bias: The bias; 0.0 without an intercept.
        errors: Number of different training records that the halfspace gets wrong or that lie on
            its boundary. 0 means that it separates them. The number is not private.
        feature_names_in_: Names of the columns of the frame that it was learned from; None where
            that had no names. If a frame to predict on has the same columns in another order, they
            are reordered.

    Examples:
        >>> from hdp_fast.learners import LinearSeparator
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [2.0, 1.0]], [0, 1, 0, 1]
        >>> result = LinearSeparator().learn(X, y)
        >>> result.errors, sorted(result.hypothesis)
        (0, ['bias', 'kind', 'weights'])
        >>> result.predict([[5.0, 1.0], [1.0, 5.0]])
        array([1, 0], dtype=uint8)
    """

    weights: NDArray[np.float64]
    bias: float
    errors: int
    feature_names_in_: FeatureNames = field(default=None, repr=False)

    @property
    def hypothesis(self) -> dict[str, Any]:
        """Its description: "kind" ("halfspace"), "weights", "bias". JSON can carry it."""
        return {"kind": "halfspace", "weights": self.weights.tolist(), "bias": self.bias}

    def predict(self, X: ArrayLike) -> Bits:
        """Predicts the labels of records, computing in the precision of their dtype.

        Args:
            X: Real numbers of shape (m, d), m at least 1, or a frame with the columns in
                feature_names_in_.

        Returns:
            A uint8 array of shape (m,) of 0 and 1.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: X is not of a dtype of real numbers, or a column of a frame is missing,
                unknown or repeated.

        Cost:
            A pass over X, in place if its dtype is float32 or float64.
        """
        records = real_rows(check_names(self.feature_names_in_, X))
        if records.shape[1] != len(self.weights):
            rule = f"the halfspace has {len(self.weights)} weights"
            raise ShapeError(f"X has shape {records.shape}, but {rule}")
        scores = records @ self.weights.astype(records.dtype)
        predictions: Bits = (scores >= -self.bias).astype(np.uint8)
        return predictions


def _margin(name: str, value: Any) -> float:
    """The value as a float in (0, 1]."""
    real = number(name, value)
    if not 0 < real <= 1:
        refuse(name, value, "it must lie in (0, 1] or be None")
    return real


@dataclass(kw_only=True, eq=False)
class LinearSeparator(Checked, Parameters):
    """Learns a halfspace that separates its records by a margin where one does, without privacy.

    It minimizes `|w|**2 / 2` plus `cost` times the sum of squared slacks by Newton's method, and
    stops earlier once every record has the margin. Where the records can be separated by a margin
    that is tiny beside their norms, or not at all, the halfspace may err; `errors` of the result
    counts it. The class has no `privacy` and no `with_epsilon`, so that no private run accepts it.

    A warm start makes rounds depend on each other. Of the many halfspaces without errors, the
    search finds one near the last solution, which remembers records that are not drawn now. That is
    faster and errs less on records that were not drawn. With warm=False each round is learned from
    its own records alone.

    Attributes:
        cost: Weight of the squared slacks in `|w|**2 / 2 + cost * sum(max(0, 1 - margin)**2)`,
            finite and above 0. It is the C of scikit-learn's LinearSVC, which has this objective,
            with the bias as a part of w.
        margin: The search ends once every record has this margin, in (0, 1]. Otherwise, and with
            None, it ends where the objective stands still: within one per cent of its least value,
            as measured. It also ends after 20 passes.
        intercept: Whether the boundary may miss the origin.
        warm: Whether learn_indices starts from its last solution for the same array X.

    Raises:
        ParameterError: A parameter is out of range.

    Source:
        Keerthi and DeCoste 2005, A Modified Finite Newton Method for Fast Solution of Large Scale
        Linear SVMs.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import LinearSeparator
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> y = X @ [1.0, -2.0, 0.5] > 0.3
        >>> separator = LinearSeparator()
        >>> separator.learn(X, y).errors
        0
        >>> separator.learn_indices(X, y, np.arange(100)).errors
        0
    """

    cost: float = 1000.0
    margin: float | None = 0.5
    intercept: bool = True
    warm: bool = True
    _seen: weakref.ref[NDArray[Any]] | None = field(default=None, init=False, repr=False)
    _last: NDArray[np.float64] | None = field(default=None, init=False, repr=False)

    RULES: ClassVar[Rules] = {
        "cost": positive,
        "margin": optional(_margin),
        "intercept": flag,
        "warm": flag,
    }

    def learn(
        self, X: ArrayLike, y: ArrayLike, *, random_state: RandomState = None
    ) -> SeparatorResult:
        """Learns from all records, from a cold start.

        Args:
            X: Finite real numbers of shape (m, d), m and d at least 1.
            y: The labels, 0/1 of shape (m,).
            random_state: Accepted as other learners accept it, but not used. The result depends on
                the records alone, bit for bit, whatever the number of threads.

        Returns:
            The halfspace and its number of errors.

        Raises:
            ShapeError: X does not have two dimensions and an entry, or y does not have m entries.
            ParameterError: An entry of X is not finite or so large that products overflow, one of y
                is neither 0 nor 1, or random_state is of another kind.

        Guarantee:
            The result protects no one: it is a deterministic function of the records.

        Cost:
            About ten to thirty passes over X. Beside X it takes 40 bytes for each record, and a
            copy of X unless X is float32 or float64 and C-contiguous.
        """
        check_random_state(random_state)
        records = finite_rows(X)
        labels = _labels(y, len(records))
        result = self._separate(records, labels, np.arange(len(records)), None)
        return dataclasses.replace(result, feature_names_in_=names_of(X))

    def learn_indices(
        self, X: ArrayLike, y: ArrayLike, indices: ArrayLike, random_state: RandomState = None
    ) -> SeparatorResult:
        """Learns from some of the records, which are read in place.

        An array X is validated as a whole when it is first seen, and must not change afterwards;
        another container is validated in every call. A record counts once, however often it was
        drawn.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1.
            y: The labels, 0/1 of shape (n,).
            indices: The records to learn from: at least one integer, each from 0 to n - 1.
            random_state: Accepted as other learners accept it, but not used.

        Returns:
            The halfspace and its number of errors on the drawn records.

        Raises:
            ShapeError: X does not have two dimensions and an entry, y does not have n entries, or
                indices is no vector of at least one entry.
            ParameterError: An entry of X is not finite or so large that products overflow, one of y
                is neither 0 nor 1, one of indices is no integer from 0 to n - 1, or random_state is
                of another kind.

        Guarantee:
            The result protects no one: it is a deterministic function of the records and, with
            warm=True, of the last solution for the same X.

        Cost:
            From a warm start, two passes over the drawn records and a few dozen over about 6 d of
            them, on all threads. Beside X it takes 40 bytes for each drawn record, and a copy of X
            in each call unless X is float32 or float64 and C-contiguous.
        """
        check_random_state(random_state)
        known = self._seen is not None and self._seen() is X
        records = real_rows(X) if known else finite_rows(X)
        labels = _labels(y, len(records))
        drawn = np.unique(integers("indices", indices, np.int64))
        if drawn[0] < 0 or drawn[-1] >= len(records):
            wrong = drawn[0] if drawn[0] < 0 else drawn[-1]
            raise ParameterError(f"indices hold {wrong}, but X has {len(records):,} records")
        result = self._separate(records, labels, drawn, self._last if known else None)
        if isinstance(X, np.ndarray):
            self._seen = weakref.ref(X)
            self._last = np.append(result.weights, result.bias) if self.warm else None
        return dataclasses.replace(result, feature_names_in_=names_of(X))

    def _separate(
        self,
        records: NDArray[Any],
        labels: Bits,
        rows: NDArray[np.int64],
        start: NDArray[np.float64] | None,
    ) -> SeparatorResult:
        entries = np.ascontiguousarray(records).reshape(-1)
        margin = math.inf if self.margin is None else self.margin
        settings: _core._SeparatorSettings = {
            "cost": self.cost,
            "margin": margin,
            "intercept": self.intercept,
        }
        weights, bias, errors = _core.separate(
            entries, records.shape[1], labels, rows, start, settings
        )
        weights.flags.writeable = False
        return SeparatorResult(weights, bias, errors)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _seen=None, _last=None)


def _labels(y: ArrayLike, n: int) -> Bits:
    labels = bits("y", y)
    if len(labels) != n:
        raise ShapeError(f"y has length {len(labels):,}, but X has {n:,} records")
    return labels
