"""The sparse vector technique with exact integer noise, and winners of votes by means of it."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.random_state import check_random_state, make_key
from .._support.types import VARIANTS, Integers, RandomState, Variant
from .._support.validate import (
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
    whole_array,
)
from ..budget.account import Budget
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .distances import counts_of
from .printed import MOST, check_goal, kept_noise, kept_scale, tail_of
from .sessions import SingleUseSession

# Decimal digits, far more than the integer that is searched for depends on.
_DIGITS = 60
_UNIT = 1 << 20


class _Comparisons(SingleUseSession):
    """Compares integers with a noisy threshold, until `max_unstable` of them were below it."""

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
        limit = (1 << 63) - 1 if queries is None else positive_int("queries", queries, MOST)
        check_random_state(random_state)
        ratio = scale.as_integer_ratio()
        bottoms = positive_int("max_unstable", max_unstable, MOST)
        self._noisy = _core.AboveThreshold(int(level), ratio, bottoms, limit)
        self._limited, self._scale = queries is not None, scale
        super().__init__(record, random_state, budget)

    @property
    def scale(self) -> Fraction:
        """Scale of the noise on the threshold; the noise on a query has twice that scale."""
        return self._scale

    @property
    def bottoms_left(self) -> int:
        """Number of bottoms until the session ends."""
        return self._noisy.left[0]

    @property
    def queries_left(self) -> int | None:
        """Number of queries that may still be asked; None for any number."""
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
    """Answers which integer queries lie above a threshold, until `max_unstable` of them do not.

    The threshold gets discrete Laplace noise of a scale s, drawn anew after each bottom (False).
    Each query gets discrete Laplace noise of scale 2 s. The answers up to and including a bottom
    are one release, which is pure (2 / s)-DP. The scale s is the smallest with which `max_unstable`
    such releases compose to (epsilon, delta), rounded up; see laplace_scale.

    variant="paper" is Algorithm 1 as printed: its scale, and `max_unstable + 1` bottoms. The noise
    is discrete Laplace where the paper has the continuous law, since values are integers and the
    noise is exact. It is refused where its bottoms do not compose to (epsilon, delta).

    A session exists once, in one process: a copy is the very same object, pickling raises, and so
    does a call in a forked child.

    Args:
        max_unstable: Number of bottoms that end the session, 1 to `2**40`; with what is printed
            one less than that, 1 to `2**30`.
        threshold: An integer within int64.
        epsilon: Privacy parameter of all answers together, 1e-6 to 1,000.
        delta: Privacy parameter of all answers together, in [0, 1).
        queries: Number of queries that may be asked, 1 to `2**40`; None allows any number.
        variant: "tight", or "paper" for the printed scale and number of bottoms.
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible stream for tests, which protects no one.
        budget: Budget that epsilon and delta are charged to once, when the session is made; None
            charges nothing.

    Raises:
        ParameterError: A parameter is out of range or of the wrong kind, or the printed noise does
            not keep epsilon and delta.
        ShapeError: threshold is an array of integers.
        BudgetExceeded: The budget has less than epsilon and delta left.

    Guarantee:
        All answers together are (epsilon, delta)-DP, whoever chooses the queries, if each query
        changes by at most 1 when one record is replaced. The random draws are exact, and the noisy
        threshold never leaves the object. The running time is not protected.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 1, with exactly T bottoms instead of T + 1,
        and with the optimal composition of Kairouz, Oh and Viswanath 2017 for the scale.

    Examples:
        >>> from hdp_fast import stability
        >>> session = stability.AboveThreshold(2, 500, epsilon=1.0, queries=100)
        >>> session.answer([900, 100, 900])  # say, numbers of records with a property
        array([ True, False,  True])
        >>> session.scale, session.bottoms_left, session.queries_left
        (Fraction(4, 1), 1, 97)
    """

    def __init__(
        self,
        max_unstable: int,
        threshold: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        queries: int | None = None,
        variant: Variant = "tight",
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        scale = laplace_scale(max_unstable, epsilon=epsilon, delta=delta, variant=variant)
        printed = variant == "paper"
        record = PrivacyRecord(
            mechanism=f"stability.AboveThreshold, {variant}, max_unstable={max_unstable}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 1"
            + ("" if printed else ", with exactly T bottoms"),
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        bottoms = max_unstable + printed
        super().__init__(bottoms, threshold, scale, queries, record, random_state, budget)

    def answer(self, values: ArrayLike) -> bool | NDArray[np.bool_]:
        """Compares the values of queries with the threshold, one after the other.

        Args:
            values: Value of one query, an integer, or of m queries, an array of shape (m,), within
                int64.

        Returns:
            For one query a bool, False for bottom. For m queries bool of shape (answered,), where
            fewer than m are answered if the session ends before.

        Raises:
            ShapeError: values has more than one dimension.
            ParameterError: values holds no integers, or some beyond int64; or the process is a
                forked child.
            BudgetExceeded: The session has ended, or there are more queries than are left. Nothing
                is used up then.

        Guarantee:
            That of the session, if each value changes by at most 1 when one record is replaced.

        Cost:
            Some tens of nanoseconds a query, on one thread.
        """
        return self._compare(values)


class OnlineQueryRelease(_Comparisons):
    """Answers queries with the winners of votes, until `max_unstable` of them are too unstable.

    The distance of each vote to instability is compared with a threshold w, as AboveThreshold does
    it. The answer is the winner above the threshold and bottom (-1) below it.

    A query whose winners differ on two neighbors has distance 0 on both. Its answer is bottom, or a
    label that should not have been released. Until the first such label, the answers up to each
    bottom hold at most one such query. Hence only T = `max_unstable` comparisons count: w is the
    smallest integer with T Pr[noise of a query - noise of the threshold > w] <= delta / 2.

    variant="paper" is what Algorithm 4 prints: its distance, which is the gap of the two largest
    counts less 1, the scale and the threshold of Algorithm 3, and T + 1 bottoms. One vote changes
    that distance by up to 2, and where it changes the winner the distance is at most 1. All this is
    counted: T + 1 releases that are each pure (4 / scale)-DP, and min(T + 1, queries) labels at
    distance 1. It is refused where that exceeds delta, from an epsilon of about 8 on; see
    paper_sizes. The noise is discrete Laplace in place of the continuous law.

    A session exists once, in one process: a copy is the very same object, pickling raises, and so
    does a call in a forked child.

    Args:
        max_unstable: Number of bottoms that end the session, 1 to `2**40`; with what is printed
            one less than that, 1 to `2**30`.
        epsilon: Privacy parameter of all answers together, 1e-6 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1). Half of it is for the
            comparisons, the other half for a label at distance 0.
        queries: Number of queries that may be asked, 1 to `2**40`; None allows any number, which
            the printed threshold cannot.
        variant: "tight", or "paper" for what is printed.
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible stream for tests, which protects no one.
        budget: Budget that epsilon and delta are charged to once, when the session is made; None
            charges nothing.

    Raises:
        ParameterError: A parameter is out of range or of the wrong kind, or the printed noise does
            not keep epsilon and delta.
        BudgetExceeded: The budget has less than epsilon and delta left.

    Guarantee:
        All answers together are (epsilon, delta)-DP, whoever chooses the queries, when one vote is
        replaced on every query, always that of the same member. The random draws are exact, and the
        noisy threshold never leaves the object. The running time is not protected.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 3, with the exact distance, exactly T bottoms,
        and the noise of the threshold counted. A HazardTable needs far fewer members.

    Examples:
        >>> from hdp_fast import stability
        >>> session = stability.OnlineQueryRelease(5, epsilon=1.0, delta=1e-6)
        >>> session.threshold
        314
        >>> session.answer([[0, 4000, 0], [10, 0, 3990]])
        array([1, 2])
        >>> session.bottoms_left
        5
    """

    def __init__(
        self,
        max_unstable: int,
        *,
        epsilon: float,
        delta: float,
        queries: int | None = None,
        variant: Variant = "tight",
        random_state: RandomState = None,
        budget: Budget | None = None,
    ):
        half = probability("delta", delta) / 2
        self._printed = one_of("variant", variant, VARIANTS) == "paper"
        if self._printed:
            goal = check_goal(max_unstable, queries, epsilon, delta)
            scale, self._threshold = kept_noise(*goal)
        else:
            scale = laplace_scale(max_unstable, epsilon=epsilon, delta=half)
            self._threshold = _find_threshold(max_unstable, scale, half)
        record = PrivacyRecord(
            mechanism=f"stability.OnlineQueryRelease, {variant}, max_unstable={max_unstable}",
            source="Bassily, Thakkar and Thakurta 2018, "
            + ("Algorithms 3 and 4" if self._printed else "Algorithm 3, mended"),
            neighbors="replace_one",
            epsilon=epsilon,
            delta=delta,
            noise=f"discrete Laplace, scale {float(scale):g} and twice that",
            rng=rng_of(random_state),
        )
        bottoms = max_unstable + self._printed
        super().__init__(bottoms, self._threshold, scale, queries, record, random_state, budget)

    @property
    def threshold(self) -> int:
        """The threshold w that distances are compared with, without its noise."""
        return self._threshold

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answers queries, given the votes for each label.

        Args:
            counts: Number of votes for each of the K labels of the public label set, integers of
                shape (K,) for one query or (m, K) for m queries.

        Returns:
            For one query an int, a label or -1 for bottom. For m queries int64 of shape
            (answered,), where fewer than m are answered if the session ends before.

        Raises:
            ShapeError: counts has another shape.
            ParameterError: counts holds no integers, or some outside `[0, 2**32)`; or the process
                is a forked child.
            BudgetExceeded: The session has ended, or there are more queries than are left. Nothing
                is used up then.

        Guarantee:
            That of the session, when the votes of one member are replaced on every query.

        Cost:
            One pass over the counts and some tens of nanoseconds a query, on one thread.
        """
        votes = counts_of(counts)
        winners, distances = _core.pluralities(votes.reshape(-1), votes.shape[-1])
        if self._printed and votes.shape[-1] > 1:
            distances = _printed_distances(votes.reshape(-1, votes.shape[-1]))
        above = np.atleast_1d(self._compare(distances))
        labels = np.where(above, winners[: len(above)], -1)
        return int(labels[0]) if votes.ndim == 1 else labels


def laplace_scale(
    max_unstable: int, *, epsilon: float, delta: float = 0.0, variant: Variant = "tight"
) -> Fraction:
    """Computes the scale of the noise on the threshold of AboveThreshold.

    Args:
        max_unstable: Number T of bottoms, 1 to `2**40`; to `2**30` for the printed scale.
        epsilon: Privacy parameter of all answers together, 1e-6 to 1,000.
        delta: Privacy parameter of all answers together, in [0, 1). Where it is 0 the scale is 2 T
            / epsilon.
        variant: "tight", or "paper" for the printed scale sqrt(32 T ln(1 / delta)) / epsilon,
            rounded up, with which T + 1 bottoms end a session.

    Returns:
        The scale, an exact Fraction.

    Raises:
        ParameterError: A parameter is out of range, or the printed scale does not keep epsilon and
            delta.

    Guarantee:
        T adaptive releases, T + 1 with the printed scale, that are each pure (2 / scale)-DP are
        together (epsilon, delta)-DP.

    Cost:
        O(sqrt(T)), some hundred times.

    Source:
        Kairouz, Oh and Viswanath 2017, Theorem 3.3; Bassily, Thakkar and Thakurta 2018, Algorithm
        1, for the printed scale.

    Examples:
        >>> from hdp_fast import stability
        >>> stability.laplace_scale(20, epsilon=1.0)
        Fraction(40, 1)
        >>> for variant in ("tight", "paper"):
        ...     scale = stability.laplace_scale(20, epsilon=1.0, delta=1e-6, variant=variant)
        ...     print(round(float(scale), 2))
        35.12
        94.03
    """
    bottoms = positive_int("max_unstable", max_unstable, MOST)
    total = positive("epsilon", epsilon)
    allowed = probability("delta", delta, zero=one_of("variant", variant, VARIANTS) == "tight")
    if not 1e-6 <= total <= 1e3:
        refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
    if variant == "paper":
        return kept_scale(bottoms, total, allowed)
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
        tail, goal = tail_of(scale), Decimal(delta) / T
        low, high = -1, 1
        while tail(high) > goal:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tail(middle) <= goal else (middle, high)
        return high


def _printed_distances(counts: NDArray[np.uint32]) -> Integers:
    """Gaps of the two largest counts, less 1 and at least 0, of (m, K) with K at least 2."""
    ordered = np.partition(counts.astype(np.int64), counts.shape[1] - 2, axis=1)
    gaps: Integers = ordered[:, -1] - ordered[:, -2] - 1
    return np.maximum(gaps, 0)


def _check_integers(name: str, value: ArrayLike) -> Integers:
    entries = whole_array(name, value)
    if not entries.size:
        return np.zeros(entries.shape, np.int64)
    if entries.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {entries.dtype}, but it must be an integer type")
    if entries.dtype == np.uint64 and int(entries.max()) >= 1 << 63:
        raise ParameterError(f"{name} has entries out of range, but each must fit int64")
    return np.array(entries, np.int64, order="C")
