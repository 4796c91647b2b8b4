"""Means from randomized answers, and how many answers a mean needs."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from .._support.validate import bits, probability
from ..exceptions import ParameterError, ShapeError
from .agents import advantage
from .randomizers.aggregates import Estimate

# No population is larger.
MOST_AGENTS = 1e18
TOO_MANY = f"need more than {MOST_AGENTS:.0e} agents, but be larger"


def agents_needed(*, alpha: float, beta: float, epsilon: float) -> int:
    """How many agents estimate a mean in [0, 1] to within alpha, but for probability beta.

    alpha: in (0, 1); beta: in (0, 1); epsilon: of each agent's randomized response, above 0.

    Raises: ParameterError.
    Cost: constant.
    Source: Hoeffding's inequality for the randomized answers, N = ln(2 / beta) / (2 (alpha
        tanh(epsilon / 2))**2): a 28th of Kohen and Sheffet 2022, Section 3, at epsilon = 1.
    """
    failure = probability("beta", beta)
    return needed_for(probability("alpha", alpha), failure, epsilon, wanted=f"alpha = {alpha}")


def needed_for(width: float, failure: float, epsilon: float, *, times: int = 1, wanted: str) -> int:
    """Agents for a mean to within `width`, but for probability failure / times.

    Raises: ParameterError, naming what was wanted, for more than there can be.
    """
    spread = 2 * (width * advantage(epsilon)) ** 2
    needed = math.log(2 * times) - math.log(failure)
    if needed >= spread * MOST_AGENTS:
        raise ParameterError(f"{wanted} and epsilon = {epsilon} {TOO_MANY}")
    return math.ceil(needed / spread)


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
    said = bits("answers", answers)
    if said.size == 0:
        raise ShapeError(f"answers has shape {said.shape}, but it must be (N,) with N >= 1")
    mean = (float(said.mean()) - (1 - edge) / 2) / edge
    half = math.sqrt((math.log(2) - math.log(failure)) / (2 * said.size)) / edge
    return Estimate(*(min(max(end, 0.0), 1.0) for end in (mean, mean - half, mean + half)))
