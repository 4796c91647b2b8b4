"""Intervals for means: Clopper and Pearson's for randomized answers, Hoeffding's for records."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._support.binomial import clopper_pearson
from .._support.types import Floats, Integers
from ..local.response import advantage, debias

# The probability of failure is smaller by this factor, which makes up for rounding.
_MARGIN = 1 - 1e-6
_STEPS = 50


def answer_intervals(
    ones: Integers, answers: Integers, failure: float, epsilon: float
) -> tuple[Floats, Floats]:
    """Intervals for means in [0, 1], from the number of ones among so many randomized answers.

    An answer is 1 with probability (1 - t)/2 + t times the mean, where t = tanh(epsilon/2). The
    interval of Clopper and Pearson for this probability, solved for the mean, misses the mean with
    a probability of at most `failure`, half of it on each side. It is never wider than Hoeffding's.

    ones, answers: arrays of one shape; without an answer the interval is [0, 1].

    Source: Clopper and Pearson 1934.
    """
    edge = advantage(epsilon)
    pairs = np.stack([ones, answers], axis=-1).reshape(-1, 2)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    ends = np.array([_interval(some, count, failure) for some, count in distinct.tolist()])
    low, high = ends[places.reshape(ones.shape)].transpose(-1, *range(ones.ndim))
    return _solve(low, edge), _solve(high, edge)


def _interval(ones: int, answers: int, failure: float) -> tuple[float, float]:
    return clopper_pearson(ones, answers, failure) if answers else (0.0, 1.0)


def estimate_means(ones: Integers, answers: Integers, epsilon: float) -> Floats:
    """The unbiased estimates of the same means, clipped to [0, 1]; NaN without an answer."""
    shares = np.where(answers > 0, ones / np.maximum(answers, 1), math.nan)
    return _solve(shares, advantage(epsilon))


def _solve(shares: Floats, edge: float) -> Floats:
    means: Floats = np.clip(debias(shares, edge), 0.0, 1.0)
    return means


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
