"""Means from randomized answers with exact intervals: Clopper and Pearson's, then unbiased."""

from __future__ import annotations

from .._support.binomial import clopper_pearson
from .randomizers.aggregates import Estimate
from .response import advantage


def estimate_exactly(ones: int, answers: int, *, beta: float, epsilon: float) -> Estimate:
    """Estimates the mean of true answers in [0, 1] from the number of ones among randomized ones.

    The randomized answers of agents drawn independently from a population are independent equal
    coins, whose probability of a 1 is `(1 - P) + (2 P - 1) m` for the mean m of the true answers
    and the probability P of the truth. Clopper and Pearson's interval for it becomes one for m. It
    lies within the interval of `estimate_mean`, since Hoeffding's inequality bounds the very tails
    that are computed here.

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
    ends = ((end - (1 - edge) / 2) / edge for end in (ones / answers, low, high))
    value, low, high = (min(max(end, 0.0), 1.0) for end in ends)
    return Estimate(value, low, high)
