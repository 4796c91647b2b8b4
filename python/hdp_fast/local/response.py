"""Randomized response, and learning by agents' votes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Bits, RandomState
from .._support.validate import nonnegative_int, probability, refuse, shorten
from ..budget.account import Budget, spend
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..learners.hypotheses import Hypotheses, HypothesisResult
from ..record import PrivacyRecord
from .agents import Agents, Population, RemoteAgents, advantage, record_of
from .estimation import MOST_AGENTS, TOO_MANY, estimate_mean
from .randomizers.aggregates import Estimate


def randomized_response(
    bits: ArrayLike,
    *,
    epsilon: float,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> Bits:
    """Binary randomized response: each bit is told truly or flipped.

    bits: 0/1 array (n,), or floats in [0, 1], each of which is first rounded to 1 with exactly
    itself as the probability, so that estimate_mean estimates their mean; epsilon: above 0; a bit
    is kept with probability exp(epsilon) / (1 + exp(epsilon)). random_state: None draws from the
    operating system, an int or a numpy Generator makes a reproducible test stream that protects
    nobody who knows it. budget: charged epsilon once, for entries that come from one record each.
    Returns uint8 (n,).

    Guarantee: pure epsilon-DP for each entry, whatever the others are; exact coins, the probability
        rounded towards 1/2.
    Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn or budget spent.
    Cost: O(n), little more than a byte of the random stream a bit, two bytes a float.
    Source: Warner 1965; binary, and hence with less noise than the Gaussian of Kohen and Sheffet.
    """
    record = record_of("local.randomized_response", epsilon, random_state)
    # A number beyond float64 is refused, and numpy must not warn of it.
    with np.errstate(all="ignore"):
        if budget is not None:
            # What the call below refuses must be refused before anything is spent.
            check_random_state(random_state)
            _core.check_bits(bits)
        with spend(budget, record):
            return _core.randomized_response(bits, epsilon, make_key(random_state))


@dataclasses.dataclass(frozen=True, eq=False)
class VotingResult(HypothesisResult):
    """What learn_by_votes releases.

    Attributes:
        index: of the chosen hypothesis in its class.
        hypothesis: its description, a dict that JSON can carry.
        estimate: of its error, its interval wide enough for every hypothesis at once.
        agents: how many were asked.
        agents_record: what protects each agent's answer.
    """

    estimate: Estimate
    agents: int
    agents_record: PrivacyRecord


def votes_needed(size: int, *, alpha: float, beta: float, epsilon: float) -> int:
    """How many agents learn_by_votes needs: more than in proportion to the size of the class.

    size: number of hypotheses, at least 1. alpha: excess error, in (0, 1); beta: failure
    probability, in (0, 1); epsilon: of each agent's answer, above 0.

    Guarantee: with so many agents, drawn independently, the chosen hypothesis errs with probability
        at most the least possible plus alpha, except with probability beta.
    Raises: ParameterError.
    Cost: constant.
    Source: Hoeffding's inequality for the difference of two hypotheses' answers, and a union over
        the rivals of the best: |H| ln((|H| - 1) / beta) / (alpha tanh(epsilon / 2))**2.
    """
    hypotheses = nonnegative_int("size", size)
    if not hypotheses:
        raise ParameterError("size = 0, but it must be at least 1")
    width, failure = probability("alpha", alpha), probability("beta", beta)
    spread = (width * advantage(epsilon)) ** 2
    needed = math.log(max(1, hypotheses - 1)) - math.log(failure)
    if hypotheses * needed >= spread * MOST_AGENTS:
        wanted = f"size = {shorten(size)}, alpha = {alpha} and epsilon = {epsilon}"
        raise ParameterError(f"{wanted} {TOO_MANY}")
    return hypotheses * math.ceil(needed / spread) if hypotheses > 1 else 1


def learn_by_votes(
    hypotheses: Hypotheses,
    agents: Agents | RemoteAgents,
    *,
    beta: float = 0.05,
    random_state: RandomState = None,
) -> VotingResult:
    """Learn from agents alone, without a curator: the rival of hybrid learning.

    Every agent left is asked about one hypothesis only, whether it is wrong about them, and the
    hypothesis of the smallest estimated error wins. They are asked in their order, an equal share
    about each hypothesis, so that their order must tell nothing about them.

    hypotheses: a class of hdp_fast.learners. agents: at least one a hypothesis, votes_needed() for
    a promise. beta: probability with which any hypothesis' interval may miss its error.
    random_state: as randomized_response; not used by RemoteAgents.

    Guarantee: pure agents.epsilon-DP, locally, for each agent.
    Raises: ParameterError, ShapeError, and AgentsExhausted when fewer agents are left than
        hypotheses: then nobody is asked; whatever the agents raise.
    Cost: a call and a prediction for each hypothesis, and O(N).
    Source: Kohen and Sheffet 2022, Section 1 (what the hybrid model is measured against).
    """
    _check_voting(hypotheses, agents)
    failure = probability("beta", beta) / len(hypotheses)
    coins = make_stream(random_state)
    asked = agents.remaining
    share, more = divmod(asked, len(hypotheses))
    best, most_right, index = np.empty(0, np.uint8), -1.0, 0
    for i, hypothesis in enumerate(hypotheses):
        chosen = HypothesisResult(i, hypothesis, hypotheses)
        answers = agents.test(chosen, share + (i < more), random_state=coins)
        right = 1 - float(answers.mean())
        if right > most_right:
            best, most_right, index = answers, right, i
    return VotingResult(
        index,
        hypotheses.hypothesis(index),
        hypotheses,
        estimate_mean(best, beta=failure, epsilon=agents.epsilon),
        asked,
        agents.record(random_state),
    )


def _check_voting(hypotheses: Any, agents: Any) -> None:
    if not isinstance(hypotheses, Hypotheses) or not len(hypotheses):
        refuse(
            "hypotheses",
            hypotheses,
            "it must be a class of hypotheses of hdp_fast.learners that has one",
        )
    if not isinstance(agents, Population):
        rule = "it must be Agents or RemoteAgents"
        raise ParameterError(f"agents = {type(agents).__name__}, but {rule}")
    if agents.remaining < len(hypotheses):
        rule = f"each of {len(hypotheses):,} hypotheses needs one"
        raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {rule}")
    if isinstance(agents, Agents) and agents.d != hypotheses.d:
        rule = f"the hypotheses have {hypotheses.d}"
        raise ShapeError(f"agents have {agents.d} features, but {rule}")
