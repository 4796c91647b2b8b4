"""Means from randomized answers with exact intervals: Clopper and Pearson's, then unbiased."""

from __future__ import annotations

import math
from statistics import NormalDist

from .._support.binomial import MOST_BETA, clopper_pearson, tail_of_equal_coins
from .estimation import agents_for_width
from .randomizers.aggregates import Estimate
from .response import advantage, debias

# Beyond so many answers the exact number is not searched for, but bounded.
_MOST_EXACT, _MOST_CHECKED = 10**6, 10**10


def estimate_exactly(ones: int, answers: int, *, beta: float, epsilon: float) -> Estimate:
    """Estimates the mean of true answers in [0, 1] from the number of ones among randomized ones.

    Randomized answers are independent coins, whose probabilities of a 1 have the mean
    `(1 - P) + (2 P - 1) m` for the mean m of the true answers and the probability P of the truth.
    Clopper and Pearson's interval for it becomes one for m, the mean of a population that the
    agents are drawn from as well as that of these very agents, whose coins are unequal. For beta up
    to 1/2 it lies within the interval of `estimate_mean`.

    Args:
        ones: Number of ones, from 0 to answers.
        answers: Number of answers, at least 1.
        beta: Probability with which the interval may miss the mean, in (0, 1); half of it on each
            side.
        epsilon: The one that each answer was randomized with.

    Returns:
        The estimate and its interval, clipped to [0, 1].

    Raises:
        ParameterError: epsilon is not above 0, or too small for any estimate.
    """
    edge = advantage(epsilon)
    low, high = clopper_pearson(ones, answers, beta)
    ends = (debias(end, edge) for end in (ones / answers, low, high))
    value, low, high = (min(max(end, 0.0), 1.0) for end in ends)
    return Estimate(value, low, high)


def bound_all(
    ones: int, answers: int, asked: int, *, beta: float, epsilon: float
) -> tuple[float, float]:
    """Bounds the mean of the true answers of all who were asked, whoever did not answer.

    Had everybody answered, the number of ones would lie between that of the ones that arrived and
    that plus the missing answers. The ends of the intervals of both hold the mean, whatever silence
    depends on: the record, the true answer, or the very bit that was to be sent.

    Args:
        ones: Number of ones, from 0 to answers.
        answers: Number of answers, from 0 to asked.
        asked: Number of agents who were asked, at least 1.
        beta: Probability with which the interval may miss, in (0, 1); half of it on each side.
        epsilon: The one that each answer was randomized with.

    Returns:
        The ends, clipped to [0, 1]; those of estimate_exactly where everybody has answered.
    """
    edge = advantage(epsilon)
    low, _ = clopper_pearson(ones, asked, beta)
    _, high = clopper_pearson(ones + asked - answers, asked, beta)
    least, most = (min(max(debias(end, edge), 0.0), 1.0) for end in (low, high))
    return least, most


def answers_for_width(width: float, *, beta: float, epsilon: float, wanted: str) -> int:
    """Counts the answers whose exact interval has this half width, whatever they are.

    The interval is widest where half of the answers are 1. Up to a million the number is the least
    one, and beyond it at most three thousandths larger than for normal answers, or Hoeffding's
    where that is smaller.

    Raises:
        ParameterError: There cannot be so many answers. The error names `wanted`.
    """
    most = agents_for_width(width, min(beta, MOST_BETA), epsilon, wanted=wanted)
    deviations = -NormalDist().inv_cdf(tail_of_equal_coins(beta))
    about = (deviations / (2 * width * advantage(epsilon))) ** 2

    def is_enough(answers: int) -> bool:
        low, high = clopper_pearson(answers // 2, answers, beta)
        return (high - low) / 2 <= width * advantage(epsilon)

    if about > _MOST_EXACT:
        larger = math.ceil(1.003 * about)
        return larger if larger < min(most, _MOST_CHECKED) and is_enough(larger) else most
    few = 0
    while most - few > 1:
        middle = (few + most) // 2
        few, most = (few, middle) if is_enough(middle) else (middle, most)
    return most
