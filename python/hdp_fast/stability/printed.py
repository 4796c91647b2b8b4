"""What Bassily, Thakkar and Thakurta 2018 print: scales, thresholds, sizes, and what they keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from .. import _core
from .._support.validate import positive, positive_int, probability, refuse

MOST = 1 << 40
# More bottoms take seconds to account for.
_MOST_BOTTOMS = 1 << 30
# Decimal digits, far more than the integers that are searched for depend on.
_DIGITS = 60
_UNIT = 1 << 20
# More than the relative rounding of a few operations.
_ABOVE = 1 + 1e-12
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 1e3

# T, m, epsilon and delta.
Goal = tuple[int, int, float, float]


def check_goal(max_unstable: Any, queries: Any, epsilon: Any, delta: Any) -> Goal:
    """Validate T, m, epsilon and delta of what is printed.

    Raises:
        ParameterError: One of them is out of range.
    """
    bottoms = positive_int("max_unstable", max_unstable, _MOST_BOTTOMS)
    limit, total = positive_int("queries", queries, MOST), positive("epsilon", epsilon)
    if not _LEAST_EPSILON <= total <= _MOST_EPSILON:
        refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
    return bottoms, limit, total, probability("delta", delta)


def kept_scale(T: int, epsilon: float, delta: float) -> Fraction:
    """The scale of Algorithm 1, if its T + 1 bottoms compose to (epsilon, delta).

    Raises:
        ParameterError: They do not, or T is too large.
    """
    scale = _printed_scale(positive_int("max_unstable", T, _MOST_BOTTOMS), epsilon, delta)
    leaks = _compose(2 / scale, T + 1, epsilon)
    if leaks > delta:
        rule = f"the printed noise is proved for a delta of {leaks:.2g} only"
        refuse("epsilon", epsilon, f'{rule}: it must be smaller, or variant="tight"')
    return scale


def kept_noise(T: int, m: int, epsilon: float, delta: float) -> tuple[Fraction, int]:
    """The scale and the threshold of Algorithm 3, if Algorithm 4 keeps (epsilon, delta) with them.

    Raises:
        ParameterError: It does not.
    """
    leaks = printed_delta(T, m, epsilon, delta)
    if leaks > delta:
        limit = _largest_epsilon(T, m, delta)
        most = f"it must be at most {limit:.4g}" if limit else "none is small enough"
        rule = f"the printed noise is proved for a delta of {min(leaks, 1.0):.2g} only"
        refuse("epsilon", epsilon, f'{most}, or variant="tight": {rule}')
    return _printed_noise(T, m, epsilon, delta)


def printed_delta(T: int, m: int, epsilon: float, delta: float) -> float:
    """A bound on the delta at epsilon of what Algorithms 3 and 4 print for this delta, rounded up.

    It counts T + 1 releases of a distance that a vote changes by up to 2, and labels that the
    neighbor does not have: until the first one, each release holds at most one query where they
    could come, at a distance of at most 1.
    """
    scale, threshold = _printed_noise(T, m, epsilon, delta)
    with localcontext(prec=_DIGITS):
        labels = float(min(T + 1, m) * tail_of(scale)(threshold - 1))
    return (_compose(4 / scale, T + 1, epsilon) + labels) * _ABOVE


def _largest_epsilon(T: int, m: int, delta: float) -> float:
    """The largest epsilon, rounded down, at which what Algorithms 3 and 4 print keeps delta.

    It is 0 where none is found.
    """
    low, high = _LEAST_EPSILON, _MOST_EPSILON
    if printed_delta(T, m, low, delta) > delta:
        return 0.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        kept = printed_delta(T, m, middle, delta) <= delta
        low, high = (middle, high) if kept else (low, middle)
    return low


def _compose(each: Fraction, releases: int, epsilon: float) -> float:
    """The delta at epsilon of releases that are pure, rounded up."""
    return _core.optimal_delta(float(each) * _ABOVE, 0.0, releases, epsilon)


def _printed_scale(T: int, epsilon: float, delta: float) -> Fraction:
    """The scale sqrt(32 T ln(1 / delta)) / epsilon, rounded up."""
    with localcontext(prec=_DIGITS):
        scale = (-32 * T * Decimal(delta).ln()).sqrt() / Decimal(epsilon)
        return Fraction(math.ceil(scale * _UNIT) + 1, _UNIT)


def _printed_noise(T: int, m: int, epsilon: float, delta: float) -> tuple[Fraction, int]:
    """The scale and the threshold of Algorithm 3, both rounded up."""
    scale = _printed_scale(T, epsilon, delta / 2)
    with localcontext(prec=_DIGITS):
        factor = 2 * Decimal(scale.numerator) / Decimal(scale.denominator)
        return scale, math.ceil(factor * (2 * m / Decimal(delta)).ln())


def tail_of(scale: Fraction) -> Callable[[int], Decimal]:
    """A close bound on Pr[noise of a query - noise of the threshold > w], for w of at least -1."""
    query = (-Decimal(scale.denominator) / Decimal(2 * scale.numerator)).exp()
    noise = query * query

    def tail(w: int) -> Decimal:
        # A sum over the noise x of the threshold, below -w - 1 with 1 for the query's tail.
        above = 1 / (1 - noise * query) + query * (1 - query ** (w + 1)) / (1 - query)
        share = (1 - noise) / (1 + noise)
        return share * query ** (w + 1) / (1 + query) * above + noise ** (w + 2) / (1 + noise)

    return tail


@dataclass(frozen=True, kw_only=True)
class PaperSizes:
    """The sizes that Bassily, Thakkar and Thakurta 2018 print, for T unstable ones of m queries.

    Attributes:
        above_threshold: How far above the threshold a value must lie so that Algorithm 1 says so;
            the alpha of Theorem 2.8.
        stable_release: The distance at which Algorithm 2 answers, of Theorem 3.5.
        online: The distance at which Algorithm 3 answers; the alpha of Corollary 3.9.
        members: The number k of members of Algorithm 4, rounded, of Theorem 3.11.
        soft: How far ahead the fullest bin must be so that Algorithm 6 answers; the d of Theorem
            5.6.
        soft_members: The number k of members of Theorem 5.14, rounded.
        soft_query: The number k of members of Lemma 5.13 for one query with probability 1 - beta.
        largest_epsilon: The largest epsilon, rounded down and at most 1,000, at which the printed
            noise of Algorithms 3 and 4 is proved to keep delta: what OnlineQueryRelease takes with
            variant="paper". It is 0 where there is none.

    Examples:
        >>> from hdp_fast import stability
        >>> sizes = stability.paper_sizes(50, 1000, epsilon=1.0, delta=1e-6, beta=0.05)
        >>> sizes.members, sizes.soft_members, round(sizes.online), round(sizes.largest_epsilon, 2)
        (95317, 138390, 31717, 12.56)
    """

    above_threshold: float
    stable_release: float
    online: float
    members: int
    soft: float
    soft_members: int
    soft_query: float
    largest_epsilon: float


def paper_sizes(
    max_unstable: int, queries: int, *, epsilon: float, delta: float, beta: float
) -> PaperSizes:
    """Computes the sizes that the paper prints, for comparison.

    Args:
        max_unstable: The paper's T, the number of unstable queries, 1 to `2**30`.
        queries: Number m of all queries, 1 to `2**40`.
        epsilon: Privacy parameter, 1e-6 to 1,000.
        delta: Privacy parameter, in (0, 1).
        beta: Failure probability, in (0, 1).

    Returns:
        The PaperSizes.

    Raises:
        ParameterError: A parameter is out of range.

    Cost:
        O(sqrt(T)), some fifty times.

    Source:
        Bassily, Thakkar and Thakurta 2018.

    Examples:
        >>> from hdp_fast import stability
        >>> stability.paper_sizes(20, 1000, epsilon=1.0, delta=1e-6, beta=0.05).members
        58161
    """
    T, m, total, small = check_goal(max_unstable, queries, epsilon, delta)
    failing = probability("beta", beta)
    spread = _spread(T, total, small)
    above = _log(2 * m * T, failing) * math.sqrt(-512 * T * math.log(small)) / total
    either = min(small, failing)
    return PaperSizes(
        above_threshold=above,
        stable_release=-(math.log(small) + math.log(failing)) / total,
        online=32 * _log(4 * m * T, either) * math.sqrt(2) * spread,
        members=paper_members(T, m, total, small, failing),
        soft=64 * _log(8 * m * T, either) * spread,
        soft_members=paper_soft_members(T, m, total, small, failing),
        soft_query=24 * spread * (math.sqrt(5) * _log(2, failing) + _log(4 * m, small)),
        largest_epsilon=_largest_epsilon(T, m, small),
    )


def paper_members(T: int, m: int, epsilon: float, delta: float, beta: float) -> int:
    """The k of Algorithm 4, rounded."""
    return round(136 * _log(4 * m * T, min(delta, beta / 2)) * _spread(T, epsilon, delta))


def paper_soft_members(T: int, m: int, epsilon: float, delta: float, beta: float) -> int:
    """The k of Theorem 5.14, which is that of Algorithm 4 for 2 T and 2 beta, rounded."""
    return paper_members(2 * T, m, epsilon, delta, 2 * beta)


def _log(number: int, share: float) -> float:
    """ln(number / share), whose argument may be beyond floats."""
    return math.log(number) - math.log(share)


def _spread(T: int, epsilon: float, delta: float) -> float:
    return math.sqrt(T * _log(2, delta)) / epsilon
