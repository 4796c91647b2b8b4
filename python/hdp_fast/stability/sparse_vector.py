"""The sparse vector technique with exact integer noise, and stable answers by it."""

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
from ..budget.account import Budget, spend
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .sessions import Once
from .votes import counts_of

_MOST = 1 << 40
# Digits that no rounding below reaches.
_DIGITS = 60
_UNIT = 1 << 20


class _Comparisons(Once):
    """Integers compared with a noisy threshold, until T of them are found below it."""

    def __init__(
        self,
        T: int,
        threshold: Any,
        scale: Fraction,
        m: int | None,
        record: PrivacyRecord,
        random_state: RandomState,
        budget: Budget | None,
    ):
        level = _integers("threshold", threshold)
        if level.ndim:
            raise ShapeError(f"threshold has shape {level.shape}, but it must be one integer")
        queries = (1 << 63) - 1 if m is None else positive_int("m", m, _MOST)
        check_random_state(random_state)
        ratio = scale.as_integer_ratio()
        self._noisy = _core.AboveThreshold(int(level), ratio, positive_int("T", T, _MOST), queries)
        self._limited, self._scale = m is not None, scale
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

    def _compared(self, values: ArrayLike) -> bool | NDArray[np.bool_]:
        found = _integers("values", values)
        if found.ndim > 1:
            raise ShapeError(f"values has shape {found.shape}, but it must be an integer or (m,)")
        with self._held():
            self._check_left(found.size, *self._noisy.left)
            answers = self._noisy.answer(found.reshape(-1), make_key(self._coins)).view(np.bool_)
        return bool(answers[0]) if found.ndim == 0 else answers

    def __repr__(self) -> str:
        left = f"{self.bottoms_left:,} bottoms left, scale {float(self._scale):g}"
        return f"{type(self).__name__}({self._record.mechanism}: {left})"


class AboveThreshold(_Comparisons):
    """Which integer queries lie above a threshold, until T of them are found not to.

    T: bottoms that end it, at least 1. threshold: an integer. epsilon: above 0. delta: in [0, 1).
    m: queries, None for any number. random_state: as HazardTable.session. budget: charged epsilon
    and delta once, here.

    The threshold has discrete Laplace noise of a scale s, drawn anew after each bottom, a query
    that of scale 2 s; s is the smallest with which T releases of 2 / s compose to (epsilon, delta),
    rounded up. Never copied, pickled or used in a forked child, as Session.

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
        T: int,
        threshold: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        m: int | None = None,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        scale = laplace_scale(T, epsilon=epsilon, delta=delta)
        record = PrivacyRecord(
            mechanism=f"stability.AboveThreshold, T={T}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 1, with exactly T bottoms",
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        super().__init__(T, threshold, scale, m, record, random_state, budget)

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
        return self._compared(values)


class OnlineQueryRelease(_Comparisons):
    """The winners of votes far enough from another one, until T of them are found not to be.

    T, epsilon, m, random_state, budget: as AboveThreshold. delta: in (0, 1); half of it is for the
    comparisons, the other for a label at distance 0.

    Distances are compared with a threshold w as AboveThreshold does it. Within the answers up to a
    bottom at most one query can have different winners on two neighbors before it is a bottom or a
    label that should not have been told; hence T tests matter, not m, and w is the smallest integer
    with T Pr[noise of a query - noise of the threshold > w] <= delta / 2.

    Guarantee: as AboveThreshold, when one vote a query is replaced, always the same member's.
    Raises: ParameterError, BudgetExceeded.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 3, with the exact distance, exactly T
        bottoms and the noise of the threshold counted. A HazardTable needs far fewer members.
    """

    def __init__(
        self,
        T: int,
        *,
        epsilon: float,
        delta: float,
        m: int | None = None,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        half = probability("delta", delta) / 2
        scale = laplace_scale(T, epsilon=epsilon, delta=half)
        self._threshold = _threshold(T, scale, half)
        record = PrivacyRecord(
            mechanism=f"stability.OnlineQueryRelease, T={T}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 3, mended",
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        super().__init__(T, self._threshold, scale, m, record, random_state, budget)

    @property
    def threshold(self) -> int:
        """The distance that is compared with, before noise."""
        return self._threshold

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answer queries, given the votes for each label.

        counts: integers (K,) for one query, or (m, K), K the size of the public label set. Returns
        a label or -1 for bottom as an int; for m queries int64 (answered,).

        Guarantee: as the class.
        Raises: as AboveThreshold.answer.
        Cost: as AboveThreshold.answer, and one pass over the counts.
        Source: as the class.
        """
        found = counts_of(counts)
        winners, distances = _core.pluralities(found.reshape(-1), found.shape[-1])
        above = np.atleast_1d(self._compared(distances))
        labels = np.where(above, winners[: len(above)], -1)
        return int(labels[0]) if found.ndim == 1 else labels


class StableRelease:
    """The winner of one vote, if it is far enough from another one.

    epsilon: above 0, at most 1,000. delta: in (0, 1). The distance with discrete Laplace noise of
    scale 1 / epsilon must exceed the smallest integer that noise alone exceeds with probability at
    most delta.

    Guarantee: (epsilon, delta)-DP for each release, when one vote is replaced; exact coins.
    Raises: ParameterError.
    Cost: constant.
    Source: Smith and Thakurta 2013; Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact
        distance: with that of their Algorithm 4 delta is .36 where 1e-6 is claimed.
    """

    def __init__(self, *, epsilon: float, delta: float):
        self._epsilon, self._delta = positive("epsilon", epsilon), probability("delta", delta)
        if not 1e-6 <= self._epsilon <= 1e3:
            refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
        with localcontext(prec=_DIGITS):
            ratio = Decimal(-self._epsilon).exp()
            # Pr[noise > g] = ratio**(g + 1) / (1 + ratio).
            least = -(Decimal(self._delta) * (1 + ratio)).ln() / Decimal(self._epsilon) - 1
            self._threshold = max(0, math.ceil(least + Decimal("1e-40")))

    @property
    def threshold(self) -> int:
        """What the noisy distance must exceed."""
        return self._threshold

    def release(
        self,
        counts: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> int:
        """Answer one query, given the votes for each label.

        counts: integers (K,), K the size of the public label set. random_state: as
        noise.discrete_laplace. budget: charged epsilon and delta. Returns a label or -1.

        Guarantee: as the class, for this release alone; more of them compose.
        Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn.
        Cost: O(K).
        Source: as the class.
        """
        found = counts_of(counts)
        if found.ndim != 1:
            raise ShapeError(f"counts has shape {found.shape}, but it must be (K,)")
        check_random_state(random_state)
        winners, distances = _core.pluralities(found, len(found))
        scale = 1 / Fraction(self._epsilon)
        with spend(budget, self.record(random_state)):
            drawn = _core.integer_noise(
                "laplace", scale.as_integer_ratio(), 1, make_key(random_state)
            )
        above = int(distances[0]) + int(drawn[0]) > self._threshold
        return int(winners[0]) if above else -1

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What protects one release.

        random_state: as release.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
        """
        return PrivacyRecord(
            mechanism="stability.StableRelease",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact distance",
            neighbors="replace_one",
            epsilon=self._epsilon,
            delta=self._delta,
            noise=f"discrete Laplace, scale 1 / {self._epsilon:g}",
            rng=rng_of(random_state),
        )

    def __repr__(self) -> str:
        promise = f"epsilon={self._epsilon:g}, delta={self._delta:g}"
        return f"StableRelease({promise}): distances above {self._threshold:,}, with noise"


def laplace_scale(T: int, *, epsilon: float, delta: float = 0.0) -> Fraction:
    """The scale of the noise on AboveThreshold's threshold, exact.

    T: bottoms, at least 1. epsilon: above 0. delta: in [0, 1); 2 T / epsilon where it is 0.

    Guarantee: T adaptive releases that are each pure (2 / scale)-DP are (epsilon, delta)-DP.
    Raises: ParameterError.
    Cost: O(sqrt(T)), some hundred times.
    Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3, in the place of the paper's sqrt(32 T
        ln(1 / delta)) / epsilon.
    """
    bottoms, total = positive_int("T", T, _MOST), positive("epsilon", epsilon)
    allowed = probability("delta", delta, zero=True)
    if not 1e-6 <= total <= 1e3:
        refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
    pure = 2 * bottoms / Fraction(total)
    if not allowed:
        return pure

    def holds(each: float) -> bool:
        return _core.optimal_delta(each, 0.0, bottoms, total) <= allowed

    low, high = total / bottoms, total + 60.0
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    # More noise than the last one that holds, by more than the rounding of its reciprocal.
    found = Fraction(math.ceil(2 / Fraction(low) * _UNIT) + 1, _UNIT)
    return min(pure, found)


def _threshold(T: int, scale: Fraction, delta: float) -> int:
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


def _integers(name: str, value: ArrayLike) -> Integers:
    found = array(name, value)
    if not found.size:
        return np.zeros(found.shape, np.int64)
    if found.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {found.dtype}, but it must be an integer type")
    if found.dtype == np.uint64 and int(found.max()) >= 1 << 63:
        raise ParameterError(f"{name} has entries out of range, but each must fit int64")
    return np.array(found, np.int64, order="C")
