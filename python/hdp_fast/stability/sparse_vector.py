"""The sparse vector technique with exact integer noise, and winners of votes by it."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.random_state import check_random_state, make_key
from .._support.types import Integers, RandomState
from .._support.validate import array, positive, positive_int, probability, refuse
from ..budget.account import Budget
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .sessions import SingleUseSession
from .votes import counts_of

_MOST = 1 << 40
# Digits that no rounding below reaches.
_DIGITS = 60
_UNIT = 1 << 20


class _Comparisons(SingleUseSession):
    """Compares integers with a noisy threshold, until max_unstable of them were found below it."""

    def __init__(
        self,
        max_unstable: int,
        threshold: Any,
        scale: Fraction,
        queries: int | None,
        record: PrivacyRecord,
        random_state: RandomState,
        budget: Budget | None,
    ):
        level = _check_integers("threshold", threshold)
        if level.ndim:
            raise ShapeError(f"threshold has shape {level.shape}, but it must be one integer")
        limit = (1 << 63) - 1 if queries is None else positive_int("queries", queries, _MOST)
        check_random_state(random_state)
        ratio = scale.as_integer_ratio()
        bottoms = positive_int("max_unstable", max_unstable, _MOST)
        self._noisy = _core.AboveThreshold(int(level), ratio, bottoms, limit)
        self._limited, self._scale = queries is not None, scale
        super().__init__(record, random_state, budget)

    @property
    def scale(self) -> Fraction:
        """Of the noise on the threshold; that on a query is twice as wide."""
        return self._scale

    @property
    def bottoms_left(self) -> int:
        """Bottoms until it ends."""
        return self._noisy.left[0]

    @property
    def queries_left(self) -> int | None:
        """Queries that may still be asked; None for any number."""
        return self._noisy.left[1] if self._limited else None

    def _compare(self, values: ArrayLike) -> bool | NDArray[np.bool_]:
        compared = _check_integers("values", values)
        if compared.ndim > 1:
            raise ShapeError(
                f"values has shape {compared.shape}, but it must be an integer or (m,)"
            )
        with self._hold():
            self._check_left(compared.size, *self._noisy.left)
            answers = self._noisy.answer(compared.reshape(-1), make_key(self._rng)).view(np.bool_)
        return bool(answers[0]) if compared.ndim == 0 else answers

    def __repr__(self) -> str:
        left = f"{self.bottoms_left:,} bottoms left, scale {float(self._scale):g}"
        return f"{type(self).__name__}({self._record.mechanism}: {left})"


class AboveThreshold(_Comparisons):
    """Says which integer queries lie above a threshold, until max_unstable of them do not.

    max_unstable: bottoms that end it, at least 1. threshold: an integer. epsilon: above 0. delta:
    in [0, 1). queries: how many may be asked, None for any number. random_state: as
    HazardTable.session. budget: charged epsilon and delta once, here.

    The threshold has discrete Laplace noise of a scale s, drawn anew after each bottom, a query
    that of scale 2 s; s is the smallest with which so many releases as there may be bottoms, of 2 /
    s each, compose to (epsilon, delta), rounded up. It is never copied, pickled or used in a forked
    child, as TableSession.

    Guarantee: (epsilon, delta)-DP for all answers together, whoever chooses the queries, if each
        changes by at most 1 between neighbors, when one record is replaced; exact coins. The
        noisy threshold never leaves the object. The running time is not protected.
    Raises: ParameterError, BudgetExceeded.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 1, with exactly T bottoms, not T + 1, and
        the optimal composition of Kairouz, Oh and Viswanath 2017 for its scale.
    """

    def __init__(
        self,
        max_unstable: int,
        threshold: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        queries: int | None = None,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        scale = laplace_scale(max_unstable, epsilon=epsilon, delta=delta)
        record = PrivacyRecord(
            mechanism=f"stability.AboveThreshold, max_unstable={max_unstable}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 1, with exactly T bottoms",
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        super().__init__(max_unstable, threshold, scale, queries, record, random_state, budget)

    def answer(self, values: ArrayLike) -> bool | NDArray[np.bool_]:
        """Compare the values of queries with the threshold, one after the other.

        values: an integer for one query, or (m,), within int64. Returns a bool, False for bottom;
        for m queries bool (answered,), as many as came until the end.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; BudgetExceeded for more queries than are left and once
            it has ended. Nothing is used up then.
        Cost: some tens of nanoseconds a query, on one thread.
        Source: as the class.
        """
        return self._compare(values)


class OnlineQueryRelease(_Comparisons):
    """Answers with winners of votes far enough from another one, until max_unstable are not.

    max_unstable, epsilon, queries, random_state, budget: as AboveThreshold. delta: in (0, 1); half
    of it is for the comparisons, the other for a label at distance 0.

    Distances are compared with a threshold w as AboveThreshold does it. Within the answers up to a
    bottom at most one query can have different winners on two neighbors before it is a bottom or a
    label that should not have been shown; hence only T = max_unstable tests matter, and w is the
    smallest integer with T Pr[noise of a query - noise of the threshold > w] <= delta / 2.

    Guarantee: as AboveThreshold, when one vote a query is replaced, always the same member's.
    Raises: ParameterError, BudgetExceeded.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 3, with the exact distance, exactly T
        bottoms and the noise of the threshold counted. A HazardTable needs far fewer members.
    """

    def __init__(
        self,
        max_unstable: int,
        *,
        epsilon: float,
        delta: float,
        queries: int | None = None,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        half = probability("delta", delta) / 2
        scale = laplace_scale(max_unstable, epsilon=epsilon, delta=half)
        self._threshold = _find_threshold(max_unstable, scale, half)
        record = PrivacyRecord(
            mechanism=f"stability.OnlineQueryRelease, max_unstable={max_unstable}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 3, mended",
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        super().__init__(
            max_unstable, self._threshold, scale, queries, record, random_state, budget
        )

    @property
    def threshold(self) -> int:
        """The distance that is compared with, before noise."""
        return self._threshold

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answer queries, given the votes for each label.

        counts: integers (K,) for one query, or (m, K) for m of them, K the size of the public label
        set. Returns a label or -1 for bottom as an int; for m queries int64 (answered,).

        Guarantee: as the class.
        Raises: as AboveThreshold.answer.
        Cost: as AboveThreshold.answer, and one pass over the counts.
        Source: as the class.
        """
        votes = counts_of(counts)
        winners, distances = _core.pluralities(votes.reshape(-1), votes.shape[-1])
        above = np.atleast_1d(self._compare(distances))
        labels = np.where(above, winners[: len(above)], -1)
        return int(labels[0]) if votes.ndim == 1 else labels


def laplace_scale(max_unstable: int, *, epsilon: float, delta: float = 0.0) -> Fraction:
    """The scale of the noise on AboveThreshold's threshold, exact.

    max_unstable: T bottoms, at least 1. epsilon: above 0. delta: in [0, 1); the scale is 2 T /
    epsilon where it is 0.

    Guarantee: T adaptive releases that are each pure (2 / scale)-DP are (epsilon, delta)-DP.
    Raises: ParameterError.
    Cost: O(sqrt(T)), some hundred times.
    Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3, in the place of the paper's sqrt(32 T
        ln(1 / delta)) / epsilon.
    """
    bottoms = positive_int("max_unstable", max_unstable, _MOST)
    total = positive("epsilon", epsilon)
    allowed = probability("delta", delta, zero=True)
    if not 1e-6 <= total <= 1e3:
        refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
    pure = 2 * bottoms / Fraction(total)
    if not allowed:
        return pure

    def holds(release: float) -> bool:
        return _core.optimal_delta(release, 0.0, bottoms, total) <= allowed

    low, high = total / bottoms, total + 60.0
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    # More noise than the last one that holds, by more than the rounding of its reciprocal.
    composed = Fraction(math.ceil(2 / Fraction(low) * _UNIT) + 1, _UNIT)
    return min(pure, composed)


def _find_threshold(T: int, scale: Fraction, delta: float) -> int:
    """The smallest w with T Pr[noise of a query - noise of the threshold > w] <= delta."""
    with localcontext(prec=_DIGITS):
        query = (-Decimal(scale.denominator) / Decimal(2 * scale.numerator)).exp()
        noise, goal = query * query, Decimal(delta) / T

        def tail(w: int) -> Decimal:
            # A sum over the noise x of the threshold, below -w - 1 with 1 for the query's tail.
            above = 1 / (1 - noise * query) + query * (1 - query ** (w + 1)) / (1 - query)
            share = (1 - noise) / (1 + noise)
            return share * query ** (w + 1) / (1 + query) * above + noise ** (w + 2) / (1 + noise)

        low, high = -1, 1
        while tail(high) > goal:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tail(middle) <= goal else (middle, high)
        return high


def _check_integers(name: str, value: ArrayLike) -> Integers:
    entries = array(name, value)
    if not entries.size:
        return np.zeros(entries.shape, np.int64)
    if entries.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {entries.dtype}, but it must be an integer type")
    if entries.dtype == np.uint64 and int(entries.max()) >= 1 << 63:
        raise ParameterError(f"{name} has entries out of range, but each must fit int64")
    return np.array(entries, np.int64, order="C")
