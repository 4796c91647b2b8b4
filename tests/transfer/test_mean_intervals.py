"""Intervals of means (transfer/column_means.py): every outcome of few answers, and rivals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast._support.binomial import clopper_pearson
from hdp_fast.local.estimation import advantage, half_width
from hdp_fast.transfer.column_means import answer_intervals, estimate_means, upper_means

MEANS = [Fraction(k, 20) for k in range(21)]


def misses(low, high, mean, epsilon):
    """The exact probability that the interval of so many answers misses this mean."""
    answers = len(low) - 1
    edge = Fraction(advantage(epsilon))
    q = (1 - edge) / 2 + edge * mean
    total = Fraction(0)
    for ones in range(answers + 1):
        if not low[ones] <= mean <= high[ones]:
            total += math.comb(answers, ones) * q**ones * (1 - q) ** (answers - ones)
    return total


@pytest.mark.parametrize("answers", range(1, 9))
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_no_mean_is_missed_more_often_than_allowed(answers, epsilon):
    ones = np.arange(answers + 1)
    for failure in (0.5, 0.1):
        low, high = answer_intervals(ones, np.full(answers + 1, answers), failure, epsilon)
        assert max(misses(low, high, mean, epsilon) for mean in MEANS) <= failure


def test_answers_that_are_not_debiased_miss():
    low, high = np.array([clopper_pearson(ones, 8, 0.1) for ones in range(9)]).T
    assert max(misses(low, high, mean, 1.0) for mean in MEANS) > 0.1


def test_a_smaller_share_of_the_failure_is_needed_for_two_columns():
    """Without the union bound, two independent columns miss too often."""
    ones = np.arange(9)
    worst = max(
        1 - (1 - misses(*answer_intervals(ones, np.full(9, 8), 0.5, 3.0), mean, 3.0)) ** 2
        for mean in MEANS
    )
    halves = answer_intervals(ones, np.full(9, 8), 0.25, 3.0)
    shared = max(1 - (1 - misses(*halves, mean, 3.0)) ** 2 for mean in MEANS)
    assert worst > 0.5 >= shared


@pytest.mark.parametrize("answers", [1, 7, 100])
def test_never_wider_than_hoeffding(answers):
    ones, many = np.arange(answers + 1), np.full(answers + 1, answers)
    edge, half = advantage(1.0), half_width(answers, 0.01, 1.0)
    means = ((ones / answers) - (1 - edge) / 2) / edge
    ends = answer_intervals(ones, many, 0.01, 1.0)
    assert (ends[0] >= np.clip(means - half, 0, 1) - 1e-12).all()
    assert (ends[1] <= np.clip(means + half, 0, 1) + 1e-12).all()


def test_no_answer_says_nothing():
    low, high = answer_intervals(np.array([0]), np.array([0]), 0.05, 1.0)
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])
    assert math.isnan(estimate_means(np.array([0]), np.array([0]), 1.0)[0])


@pytest.mark.parametrize("n", range(1, 9))
def test_upper_means_of_coins_miss_no_more_often_than_allowed(n):
    """Coins are the worst of all laws in [0, 1]."""
    bounds = upper_means(np.arange(n + 1) / n, n, 0.1)
    for mean in (k / 200 for k in range(201)):
        law = [math.comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(n + 1)]
        assert sum(p for p, bound in zip(law, bounds, strict=True) if bound < mean) <= 0.1


def test_upper_means_are_tight_where_nothing_varies():
    assert upper_means(np.array([0.0]), 10_000, 1e-6)[0] < 0.0014
    assert upper_means(np.array([1.0]), 10_000, 1e-6)[0] == 1
