"""Exact intervals for the mean probability of independent coins, from the number of ones.

The coins may be unequal, as the randomized bits of people are who hold different answers. Let q be
the mean of the probabilities of n coins. By Hoeffding (1956), k ones or more are at most as
probable as among equal coins, for every k >= n q + 1. One k with n q < k < n q + 1 may be left.

For q >= 1/n, equal coins show as many with probability above 1/4 (Greenberg and Mohri 2014), and no
smaller tail excludes q. For q < 1/n it is k = 1, with probability at most n q. Among equal coins
that is `1 - (1 - q)^n >= 1 - exp(-n q)`: where this is at most `1 - exp(-h)`, n q is at most h.

So an end that excludes a tail of `1 - exp(-h)` among equal coins is missed with probability at most
h among all coins, for every h <= 1/4.
"""

from __future__ import annotations

import math

import numpy as np

# Floats have no closer neighbors between 0 and 1 than that many halvings reach.
_HALVINGS = 200
_UNIT = 2.0**-52
# The proof needs at most half of this for each end.
MOST_BETA = 0.5


def clopper_pearson(ones: int, count: int, beta: float) -> tuple[float, float]:
    """Bounds the mean q of the probabilities of independent coins from their number of ones.

    Each end is missed with probability at most beta / 2, whatever the coins are, equal or not. The
    ends are rounded outwards: what rounding errors may do to the tails is counted as part of them.

    Args:
        ones: Number of ones, from 0 to count.
        count: Number of coins, at least 1.
        beta: Probability with which the interval may miss q, in (0, 1). Above 1/2 it is the
            interval for 1/2.

    Returns:
        The lower and the upper end.

    Source:
        Clopper and Pearson 1934 with the tail `1 - exp(-beta / 2)`; Hoeffding 1956 for unequal
        coins.
    """
    tail = tail_of_equal_coins(beta)
    low = _least_probability(ones, count, tail)
    high = 1 - _least_probability(count - ones, count, tail)
    return low, math.nextafter(high, 1) if high < 1 else 1.0


def tail_of_equal_coins(beta: float) -> float:
    """What each end may exclude of equal coins, to be missed by beta / 2 of all; rounded down."""
    return -math.expm1(-min(beta, MOST_BETA) / 2) * (1 - 4 * _UNIT)


def _least_probability(ones: int, count: int, failure: float) -> float:
    """A q, almost the largest, at which that many ones or more come up so seldom."""
    low, high = 0.0, ones / count
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _bound_tail(ones, count, middle) <= failure:
            low = middle
        else:
            high = middle
    return low


def _bound_tail(ones: int, count: int, q: float) -> float:
    """An upper bound, up to rounding errors tight, on the probability of `ones` ones or more.

    Above the mean each term is less than the one before by a factor that falls. Those beyond five
    times the square root of `count`, which are negligible, are bounded by a geometric series.

    Args:
        ones: The number, above count * q.
        count: Number of coins.
        q: Probability of a one, in (0, 1).
    """
    logs = math.lgamma(count + 1), math.lgamma(ones + 1), math.lgamma(count - ones + 1)
    places = ones * math.log(q), (count - ones) * math.log1p(-q)
    first = logs[0] - logs[1] - logs[2] + sum(places)
    error = 16 * _UNIT * (sum(logs) - sum(places) + 1)
    terms = min(count - ones, 50 + math.ceil(5 * math.sqrt(count)))
    at = np.arange(terms, dtype=np.float64) + ones
    factors = (count - at) / (at + 1) * (q / (1 - q))
    total = 1 + float(np.add.reduce(factors.cumprod()))
    if terms < count - ones:
        last = float(np.multiply.reduce(factors))
        ratio = float(factors[-1])
        total += last * ratio / (1 - ratio)
    return math.exp(first) * total * (1 + 2 * error + 64 * _UNIT * terms)
