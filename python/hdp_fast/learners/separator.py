"""A linear learner that protects nobody, for runs that need not."""

from __future__ import annotations

import dataclasses
import math
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.feature_names import FeatureNames, check_names, names_of
from .._support.numbers import finite_rows, real_rows
from .._support.parameters import Parameters
from .._support.random_state import check_random_state
from .._support.types import Bits, RandomState
from .._support.validate import bits, integers, number, positive, refuse
from ..exceptions import ParameterError, ShapeError
from .descriptions import flag


@dataclass(frozen=True, eq=False)
class SeparatorResult:
    """What LinearSeparator learns: 1 where weights times the record plus bias is at least 0.

    Attributes:
        weights: float64 (d,), read-only.
        bias: a number; 0.0 without an intercept.
        errors: how many of the different records learned from it gets wrong, or leaves on its
            boundary; 0 if they could be separated. Not private.
        feature_names_in_: names of the columns of the frame that it was learned from, else None; a
            frame with the same in another order is put in theirs.
    """

    weights: NDArray[np.float64]
    bias: float
    errors: int
    feature_names_in_: FeatureNames = field(default=None, repr=False)

    @property
    def hypothesis(self) -> dict[str, Any]:
        """Its description, a dict that JSON can carry: "kind": "halfspace", "weights", "bias"."""
        return {"kind": "halfspace", "weights": self.weights.tolist(), "bias": self.bias}

    def predict(self, X: ArrayLike) -> Bits:
        """What it says of records, in the precision of their dtype.

        X: real numbers (m, d). Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X, in place if its dtype is float32 or float64.
        Source: none.
        """
        records = real_rows(check_names(self.feature_names_in_, X))
        if records.shape[1] != len(self.weights):
            rule = f"the halfspace has {len(self.weights)} weights"
            raise ShapeError(f"X has shape {records.shape}, but {rule}")
        scores = records @ self.weights.astype(records.dtype)
        predictions: Bits = (scores >= -self.bias).astype(np.uint8)
        return predictions


@dataclass(kw_only=True, eq=False)
class LinearSeparator(Parameters):
    """Learns a halfspace without errors on its records, where there is one. It is not private.

    It has no `privacy` and no `with_epsilon`, so that no private run takes it.

    A warm start makes rounds depend on each other: of the many halfspaces without errors it finds
    one near the last, which remembers records that are not drawn now. That is faster and errs less
    on records not drawn; warm=False learns each round from its own records alone.

    Raises: ParameterError.
    Cost: none until it learns.
    Source: Keerthi and DeCoste 2005, A Modified Finite Newton Method for Fast Solution of Large
        Scale Linear SVMs.

    Attributes:
        cost: weight of the squared slacks in |w|**2 / 2 + cost * sum(max(0, 1 - margin)**2), finite
            and above 0: the C of scikit-learn's LinearSVC, whose objective this is, with the bias
            as a part of w.
        margin: in (0, 1]; the search ends once every record has it, with None or without it where
            the objective stands still: within one per cent of its least value, as measured.
        intercept: whether the boundary may miss the origin.
        warm: whether learn_indices starts from its last solution for the same X.
    """

    cost: float = 1000.0
    margin: float | None = 0.5
    intercept: bool = True
    warm: bool = True
    _seen: weakref.ref[NDArray[Any]] | None = field(default=None, init=False, repr=False)
    _last: NDArray[np.float64] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no learner."""
        self.cost = positive("cost", self.cost)
        if self.margin is not None:
            margin = number("margin", self.margin)
            if not 0 < margin <= 1:
                refuse("margin", self.margin, "it must lie in (0, 1] or be None")
            self.margin = margin
        self.intercept = flag("intercept", self.intercept)
        self.warm = flag("warm", self.warm)

    def learn(
        self, X: ArrayLike, y: ArrayLike, *, random_state: RandomState = None
    ) -> SeparatorResult:
        """Learn from all records, from a cold start.

        X: finite real numbers (m, d), m and d at least 1; y: 0/1 (m,). random_state: accepted as
        other learners do, and not used: the result depends on the records alone, bit for bit
        whatever the number of threads.

        Guarantee: none.
        Raises: ShapeError, ParameterError.
        Cost: some ten to thirty passes over X; 40 bytes a record beside it, and a copy of X unless
            it is float32 or float64 and C-contiguous.
        Source: as the class.
        """
        check_random_state(random_state)
        records = finite_rows(X)
        labels = _labels(y, len(records))
        result = self._separate(records, labels, np.arange(len(records)), None)
        return dataclasses.replace(result, feature_names_in_=names_of(X))

    def learn_indices(
        self, X: ArrayLike, y: ArrayLike, indices: ArrayLike, random_state: RandomState = None
    ) -> SeparatorResult:
        """Learn from some of the records, read where they are.

        X, y: as learn, (n, d) and (n,). indices: integers from 0 to n - 1, at least one; a record
        counts once however often it was drawn. random_state: as learn. X is validated as a whole
        when it is first seen; it must stay as it is.

        Guarantee: none.
        Raises: ShapeError, ParameterError.
        Cost: warm, two passes over the records drawn and a few dozen over some 6 d of them, on all
            threads; 40 bytes a record drawn beside X, and a copy of X each time unless it is
            float32 or float64 and C-contiguous.
        Source: as the class.
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
