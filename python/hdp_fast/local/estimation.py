"""Means from randomized answers, and how many answers a mean needs."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from .._support.validate import bits, probability
from ..exceptions import ParameterError, ShapeError
from .randomizers.aggregates import Estimate
from .randomizers.concentration import MOST_AGENTS, TOO_MANY
from .response import advantage


def agents_needed(*, alpha: float, beta: float, epsilon: float) -> int:
    """How many agents estimate a mean in [0, 1] to within alpha, but for probability beta.

    alpha: in (0, 1); beta: in (0, 1); epsilon: of each agent's randomized response, above 0.

    Raises: ParameterError.
    Cost: constant.
    Source: Hoeffding's inequality for the randomized answers, N = ln(2 / beta) / (2 (alpha
        tanh(epsilon / 2))**2): a 28th of Kohen and Sheffet 2022, Section 3, at epsilon = 1.
    """
    failure = probability("beta", beta)
    return agents_for_width(
        probability("alpha", alpha), failure, epsilon, wanted=f"alpha = {alpha}"
    )


def agents_for_width(
    width: float, failure: float, epsilon: float, *, times: int = 1, wanted: str
) -> int:
    """How many agents estimate a mean to within `width`, except with probability failure / times.

    Raises: ParameterError, which names what was wanted, for more agents than there can be.
    """
    per_agent = 2 * (width * advantage(epsilon)) ** 2
    log_odds = math.log(2 * times) - math.log(failure)
    if log_odds >= per_agent * MOST_AGENTS:
        raise ParameterError(f"{wanted} and epsilon = {epsilon} {TOO_MANY}")
    return math.ceil(log_odds / per_agent)


def estimate_mean(answers: ArrayLike, *, beta: float, epsilon: float) -> Estimate:
    """The mean of the agents' true answers, from their randomized ones.

    answers: 0/1 (N,), N >= 1, as Agents.ask returned them; beta: probability with which the
    interval may miss the population's mean; epsilon: that of the answers.

    Guarantee: post-processing; the interval holds for every N (no normal approximation).
    Raises: ParameterError, ShapeError.
    Cost: O(N).
    Source: unbiased inversion of randomized response; Hoeffding's inequality.
    """
    failure, edge = probability("beta", beta), advantage(epsilon)
    reports = bits("answers", answers)
    if reports.size == 0:
        raise ShapeError(f"answers has shape {reports.shape}, but it must be (N,) with N >= 1")
    mean = (float(reports.mean()) - (1 - edge) / 2) / edge
    half = math.sqrt((math.log(2) - math.log(failure)) / (2 * reports.size)) / edge
    return Estimate(*(min(max(end, 0.0), 1.0) for end in (mean, mean - half, mean + half)))
