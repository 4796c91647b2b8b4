"""What the sampling of records adds to intervals: from released numbers and public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import refuse
from ..data.goal import Goal

_HALVINGS = 60
# What rounding may do to a bound's exponent, as a share of it and at least.
_SLACK, _UNIT = 1e-9, 1e-15
# The noise may have these shares of beta.
_SHARES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9)


def check_sample(goal: Goal, *, known: bool = True) -> None:
    """Refuses intervals for a population where none are known.

    known: whether the number of the records that are in the statistic is public.

    Raises: ParameterError, where rows of a person are no independent sample, or a public number is
    needed and there is none.
    """
    if not goal.sampled:
        return
    if goal.persons.rows > 1:
        rule = "rows of one person are no independent sample: it must be False, or one row a person"
        refuse("sampled", True, rule)
    if not known:
        rule = "the number of records must be public: it needs replace_one, and no groups"
        refuse("sampled", True, rule)


def split_failure(
    beta: float, half_width: Callable[[float], float], n: int | None
) -> tuple[float, float]:
    """Divides beta between noise and sampling, so that both widths of a count of half of n add up.

    It depends on public facts alone: were it to depend on what is released, it would be another
    interval.

    half_width: that of the noise, in records, by its own beta.
    """
    if n is None:
        return beta / 2, beta / 2

    def width(share: float) -> float:
        quantile = -NormalDist().inv_cdf((1 - share) * beta / 2)
        return half_width(share * beta) + quantile * math.sqrt(n) / 2

    share = min(_SHARES, key=width)
    return share * beta, (1 - share) * beta


def bound_counts(
    low: ArrayLike, high: ArrayLike, n: int | None, beta: float
) -> tuple[Floats, Floats]:
    """Bounds the expected numbers of records from numbers that lie between two ends.

    A count is a binomial number of n, of a probability that is sought; where n is private it may be
    any, or a Poisson number itself. Each end is missed with half of beta at most, above what the
    ends miss.

    Source:
        Zubkov and Serov 2013: normal bounds of binomial tails, one record apart. Anderson and
        Samuels 1967: a Poisson number has the larger tails, from one record beyond its mean on.
    """
    exponent = _exponent(beta)
    # The next numbers: those are the bounds' own ends.
    below = np.maximum(np.asarray(low, np.float64) - 1, 0.0)
    above = np.maximum(np.asarray(high, np.float64), 0.0) + 1
    if n is None:
        reach = exponent + np.sqrt(exponent**2 + 2 * exponent * above)
        lower = _cross(below, np.zeros_like(below), _diverge_numbers, exponent)
        return lower, _cross(above, above + reach, _diverge_numbers, exponent)
    lower, upper = _bound_places(
        np.minimum(below / n, 1.0), np.minimum(above / n, 1.0), exponent / n
    )
    return n * lower, n * upper


def bound_mean(low: float, high: float, n: int, beta: float) -> tuple[float, float]:
    """Bounds the mean of a population of places in [0, 1] from the mean of n of them.

    low, high: ends of an interval for the mean of the n. Each end is missed with half of beta at
    most, above what that interval misses.

    Source:
        Hoeffding 1963, theorem 1 in its first form: no spread is as large as that of places 0 and
        1, of which it says all.
    """
    ends = np.clip([[low], [high]], 0.0, 1.0)
    lower, upper = _bound_places(ends[0], ends[1], (math.log(2 / beta) + _SLACK) / n)
    return float(lower[0]), float(upper[0])


def bound_deviations(low: float, high: float, n: int, beta: float) -> tuple[float, float]:
    """Bounds the variance of a population of places in [0, 1] from that of n of them.

    low, high: ends of an interval for the mean squared distance of the n from their mean.

    Source:
        Maurer and Pontil 2009, theorem 10.
    """
    if n < 2:
        return 0.0, 0.25
    reach = math.sqrt(2 * math.log(2 / beta) / (n - 1)) * (1 + _SLACK)
    lower = max(math.sqrt(max(low, 0.0)) - reach, 0.0)
    upper = math.sqrt(max(high, 0.0) * n / (n - 1)) + reach
    return lower**2, min(upper**2, 0.25)


def shift_ranks(level: Fraction, n: int, beta: float) -> tuple[int, int]:
    """By how many ranks a population's quantile may lie below and above that of n records.

    A point with at most n level - first records below it is not above the population's quantile,
    but for half of beta, and one with at least n level + second at it or below is not below it.

    Source:
        The ranks of order statistics are binomial: Zubkov and Serov 2013 for their tails.
    """
    place, (lowest, highest) = np.array([float(level)]), (np.zeros(1), np.ones(1))
    exponent = _exponent(beta) / n

    def diverge(p: Any, x: Any) -> Any:
        return _diverge_places(x, p)

    # Records at the quantile or below are as many as this but for half of beta; those below it not
    # more than the other.
    fewest = math.floor(float(_cross(place, lowest, diverge, exponent)[0]) * n)
    most = math.ceil(float(_cross(place, highest, diverge, exponent)[0]) * n)
    return math.ceil(level * n) - fewest + 1, most - math.floor(level * n) + 1


def _exponent(beta: float) -> float:
    """The divergence, times n, beyond which a binomial tail has half of beta at most."""
    return (NormalDist().inv_cdf(beta / 2) * (1 + _SLACK)) ** 2 / 2


def _bound_places(low: Floats, high: Floats, exponent: float) -> tuple[Floats, Floats]:
    """The probabilities below and above whose divergence from the places reaches the exponent."""
    lower = _cross(low, np.zeros_like(low), _diverge_places, exponent)
    return lower, _cross(high, np.ones_like(high), _diverge_places, exponent)


def _cross(
    starts: Floats, ends: Floats, diverge: Callable[[Any, Any], Any], exponent: float
) -> Floats:
    """The first points on the ways from starts to ends that are not as near as the exponent.

    It is the end itself where the way does not leave.
    """
    near, far = starts.copy(), ends.copy()
    limit = exponent * (1 + _SLACK) + _UNIT
    with np.errstate(all="ignore"):
        inside = diverge(starts, ends) <= limit
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            left = diverge(starts, middle) > limit
            far = np.where(left, middle, far)
            near = np.where(left, near, middle)
    return np.where(inside, ends, far)


def _diverge_places(x: Any, p: Any) -> Any:
    """The divergence of a coin of probability x from one of p."""
    return _times_log(x, p) + _times_log(1 - x, 1 - p)


def _diverge_numbers(x: Any, mean: Any) -> Any:
    """The divergence of a Poisson law of mean x from one of another mean."""
    return mean - x + _times_log(x, mean)


def _times_log(x: Any, p: Any) -> Any:
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / p), 0.0)
