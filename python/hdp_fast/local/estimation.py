"""Means from randomized answers, and how many answers a mean needs."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from .._support.validate import bits, probability, probability_or_one
from ..exceptions import ParameterError, ShapeError
from .randomizers.aggregates import Estimate
from .randomizers.concentration import MOST_AGENTS, TOO_MANY
from .response import advantage, debias


def agents_needed(*, alpha: float, beta: float, epsilon: float, response_rate: float = 1.0) -> int:
    """Computes how many agents estimate a mean in [0, 1] to within alpha, by randomized response.

    With a response rate below 1 it is the number of agents to ask, about the number of answers
    needed divided by the rate. The promise then includes the chance of who answers, if each agent
    answers with at least this probability, independently of the others and of its own answer.

    Args:
        alpha: Largest error that is allowed, in (0, 1).
        beta: Probability with which the error may be larger, in (0, 1).
        epsilon: Privacy parameter of each agent's answer, above 0.
        response_rate: Public share of those asked who will answer, in (0, 1].

    Returns:
        The number of agents N.

    Raises:
        ParameterError: A parameter is out of range, epsilon is so small that its answers are
            nothing but noise, or 1e18 or more agents would be needed.

    Source:
        Hoeffding's inequality for the randomized answers,
        `N = ln(2 / beta) / (2 (alpha tanh(epsilon / 2))**2)`. At epsilon = 1, beta = 0.01 and delta
        = 1e-6 this is a 28th of the number in Kohen and Sheffet 2022, Section 2. With a response
        rate r the exponent `c = 2 (alpha tanh(epsilon / 2))**2` of one answer becomes
        `-ln(1 - r (1 - exp(-c)))`, since each agent contributes it with probability r only.

    Examples:
        >>> from hdp_fast import local
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=1.0)
        3455
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=0.1)
        295603
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=1.0, response_rate=0.7)
        4937
    """
    failure = probability("beta", beta)
    return agents_for_width(
        probability("alpha", alpha),
        failure,
        epsilon,
        response_rate=probability_or_one("response_rate", response_rate),
        wanted=f"alpha = {alpha}",
    )


def agents_for_width(
    width: float,
    failure: float,
    epsilon: float,
    *,
    times: int = 1,
    response_rate: float = 1.0,
    wanted: str,
) -> int:
    """Computes how many agents estimate a mean to within `width`.

    The error may be larger with probability failure / times.

    Raises:
        ParameterError: There cannot be so many agents. The error names `wanted`.
    """
    per_agent = 2 * (width * advantage(epsilon)) ** 2
    if response_rate < 1:
        per_agent = -math.log1p(response_rate * math.expm1(-per_agent))
    log_odds = math.log(2 * times) - math.log(failure)
    if log_odds >= per_agent * MOST_AGENTS:
        raise ParameterError(f"{wanted} and epsilon = {epsilon} {TOO_MANY}")
    return math.ceil(log_odds / per_agent)


def estimate_mean(answers: ArrayLike, *, beta: float, epsilon: float) -> Estimate:
    """Estimates the mean of the agents' true answers from their randomized ones.

    The estimate inverts randomized response, is unbiased, and is then clipped to [0, 1]. The
    interval uses no normal approximation. Where some agents do not answer, pass the answers that
    arrived: the interval is as wide as their number says. The estimate is then one for those who
    answer. It holds for all who were asked only if answers are missing at random: whether an agent
    answers must not depend on its true answer.

    Args:
        answers: Array of 0 and 1 of shape (N,), N >= 1, as `Agents.ask` or `randomized_response`
            returned them.
        beta: Probability, in (0, 1), with which the interval may miss the mean of the population
            that the agents are an independent sample of.
        epsilon: The one that each answer was randomized with.

    Returns:
        The estimate and its interval, in [0, 1].

    Raises:
        ParameterError: An answer is neither 0 nor 1, answers is not of an integer dtype, beta is
            out of range, or epsilon is not above 0 or too small for any estimate.
        ShapeError: answers does not have one dimension, or is empty.

    Guarantee:
        This is post-processing and costs no privacy. The interval holds for every N and every
        population.

    Cost:
        O(N).

    Source:
        Hoeffding's inequality for the randomized answers.

    Examples:
        >>> from hdp_fast import local
        >>> answers = [1] * 4200 + [0] * 5800  # of 10,000 agents, randomized with epsilon = 1
        >>> estimate = local.estimate_mean(answers, beta=0.05, epsilon=1.0)
        >>> [round(end, 3) for end in (estimate.low, estimate.value, estimate.high)]
        [0.297, 0.327, 0.356]
    """
    failure, edge = probability("beta", beta), advantage(epsilon)
    reports = bits("answers", answers)
    if reports.size == 0:
        raise ShapeError(f"answers has shape {reports.shape}, but it must be (N,) with N >= 1")
    mean = debias(float(reports.mean()), edge)
    half = half_width(reports.size, failure, epsilon)
    return Estimate(*(min(max(end, 0.0), 1.0) for end in (mean, mean - half, mean + half)))


def half_width(answers: int, failure: float, epsilon: float) -> float:
    """Computes the half width of the interval of a mean, before it is clipped to [0, 1]."""
    return math.sqrt((math.log(2) - math.log(failure)) / (2 * answers)) / advantage(epsilon)
