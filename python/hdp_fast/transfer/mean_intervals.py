"""Intervals for means: Clopper and Pearson's for randomized answers, Hoeffding's for records."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, Integers
from ..local.response import advantage

# The tails below are right to about a part in 1e9; the failure probability is smaller by more.
_MARGIN = 1 - 1e-6
_STEPS = 50
_TINY = 1e-300


def answer_intervals(
    ones: Integers, answers: Integers, failure: float, epsilon: float
) -> tuple[Floats, Floats]:
    """Intervals for means in [0, 1], from the number of ones among so many randomized answers.

    An answer is 1 with probability (1 - t)/2 + t times the mean, where t = tanh(epsilon/2). The
    interval of Clopper and Pearson for this probability, solved for the mean, misses the mean with
    a probability of at most `failure`, half of it on each side. It is never wider than Hoeffding's.

    ones, answers: arrays of one shape; without an answer the interval is [0, 1].
    """
    edge = advantage(epsilon)
    low, high = clopper_pearson(ones, answers, failure)
    return _solve(low, edge), _solve(high, edge)


def estimate_means(ones: Integers, answers: Integers, epsilon: float) -> Floats:
    """The unbiased estimates of the same means, clipped to [0, 1]; NaN without an answer."""
    shares = np.where(answers > 0, ones / np.maximum(answers, 1), math.nan)
    return _solve(shares, advantage(epsilon))


def _solve(shares: Floats, edge: float) -> Floats:
    means: Floats = np.clip((shares - (1 - edge) / 2) / edge, 0.0, 1.0)
    return means


def clopper_pearson(ones: Integers, trials: Integers, failure: float) -> tuple[Floats, Floats]:
    """The interval of a probability that misses it with a probability of at most `failure`.

    Each end is found by bisection, and lies on the outer side of what was found.

    Source: Clopper and Pearson 1934.
    """
    some, all_of_them = ones.astype(np.float64), trials.astype(np.float64)
    tail = failure / 2 * _MARGIN
    low = _lower_end(some, all_of_them, tail)
    return low, 1 - _lower_end(all_of_them - some, all_of_them, tail)


def _lower_end(ones: Floats, trials: Floats, tail: float) -> Floats:
    """The largest p, rounded down, at which so many ones or more have at most this probability."""
    some = np.maximum(ones, 1.0)
    shares = ones / np.maximum(trials, 1.0)
    # Hoeffding's bound is never above the end, and the share of ones never below it.
    hoeffding = np.sqrt(-math.log(tail) / (2 * np.maximum(trials, 1.0)))
    low, high = np.maximum(shares - hoeffding, 0.0), shares
    for _ in range(_STEPS):
        middle = (low + high) / 2
        rare = beta_tail(some, np.maximum(trials - some, 0.0) + 1, middle) <= tail
        low, high = np.where(rare, middle, low), np.where(rare, high, middle)
    return np.where(ones > 0, low, 0.0)


def beta_tail(a: Floats, b: Floats, x: Floats) -> Floats:
    """The regularized incomplete beta function I_x(a, b), to about a part in 1e9.

    For integers a and b it is the probability of a or more ones in a + b - 1 trials with x.

    Source: Lentz's evaluation of the continued fraction, Abramowitz and Stegun 1964, 26.5.8.
    """
    swapped = x > (a + 1) / (a + b + 2)
    a, b = np.where(swapped, b, a), np.where(swapped, a, b)
    x = np.where(swapped, 1 - x, x)
    with np.errstate(divide="ignore"):
        logs = a * np.log(x) + b * np.log1p(-x) + _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    small: Floats = np.exp(logs) / a * _continued_fraction(a, b, x)
    return np.where(swapped, 1 - small, small)


def _continued_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    top = np.ones_like(x)
    bottom = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = bottom
    # It ends after about the root of a + b steps.
    for m in range(1, 100 + 20 * math.isqrt(int(np.max(a + b, initial=1)))):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = np.ones_like(x)
        for part in (even, odd):
            bottom = 1 / _away_from_zero(1 + part * bottom)
            top = _away_from_zero(1 + part / top)
            change = change * bottom * top
        value = value * change
        if (np.abs(change - 1) < 1e-13).all():
            break
    return value


def _away_from_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _TINY, _TINY, values)


def _log_gamma(values: Floats) -> Floats:
    logs = np.array([math.lgamma(value) for value in values.ravel().tolist()], np.float64)
    return logs.reshape(values.shape)


def upper_means(shares: Floats, n: int, failure: float) -> Floats:
    """Upper bounds for the means of a population in [0, 1], from those of n of its records.

    The bound is the largest mean m with n KL(share, m) <= ln(1/failure), where KL is the divergence
    of two coins. It misses the mean with a probability of at most `failure`, whatever the law of
    the records in [0, 1]. Pass one minus the shares for one minus lower bounds.

    Source: Hoeffding 1963, Theorem 1.
    """
    most = -math.log(failure * _MARGIN) / n
    low, high = shares, np.ones_like(shares)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        near = _divergence(shares, middle) <= most
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return high


def _divergence(p: Floats, q: Floats) -> NDArray[np.float64]:
    """KL of a coin with p from one with q, which is infinite where q is 1 and p is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(p > 0, p * np.log(p / q), 0.0)
        zeros = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    total: Floats = ones + zeros
    return np.where(p >= q, 0.0, total)
