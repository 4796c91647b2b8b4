"""Learning by the votes of agents, without a curator."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from .._support.notes import note
from .._support.random_state import make_stream
from .._support.types import RandomState
from .._support.validate import (
    finite_number,
    from_json,
    nonnegative_int,
    probability,
    refuse,
    shorten,
)
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..learners.hypotheses import Hypotheses, HypothesisResult, check_class
from ..record import PrivacyRecord
from .agents import Agents
from .estimation import estimate_mean
from .pool import AgentPool
from .randomizers.aggregates import Estimate
from .randomizers.concentration import MOST_AGENTS, TOO_MANY
from .remote_agents import RemoteAgents
from .response import advantage

# The error above the least of the plan that is offered where nothing can be promised.
_TYPICAL_ALPHA = 0.1


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

    def to_json(self) -> str:
        """The result as a JSON object, which from_json reads, and learners.predictor in part.

        Raises: nothing.
        Cost: that of the description.
        Source: none.
        """
        return json.dumps(
            {
                "index": self.index,
                "hypothesis": self.hypothesis,
                "estimate": self.estimate._asdict(),
                "agents": self.agents,
                "agents_record": dataclasses.asdict(self.agents_record),
            }
        )

    @classmethod
    def from_json(cls, text: str, hypotheses: Hypotheses) -> VotingResult:
        """The result that to_json wrote.

        text: a JSON object; its "hypothesis" predicts without a class by learners.predictor.
        hypotheses: the class that was learned from.

        Raises: ParameterError when it is not one, or is of another class.
        Cost: that of the description.
        Source: none.
        """
        check_class("hypotheses", hypotheses)

        def make(fields: dict[str, Any]) -> VotingResult:
            index = nonnegative_int("index", fields["index"])
            if hypotheses.hypothesis(index) != fields["hypothesis"]:
                raise ParameterError(
                    f"index = {index}, but another hypothesis has it in this class"
                )
            return cls(
                index,
                fields["hypothesis"],
                hypotheses,
                Estimate(
                    **{key: finite_number(key, end) for key, end in fields["estimate"].items()}
                ),
                nonnegative_int("agents", fields["agents"]),
                PrivacyRecord(**fields["agents_record"]),
            )

        return from_json("text", text, "VotingResult.to_json", make)


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
    per_agent = (width * advantage(epsilon)) ** 2
    log_odds = math.log(max(1, hypotheses - 1)) - math.log(failure)
    if hypotheses * log_odds >= per_agent * MOST_AGENTS:
        wanted = f"size = {shorten(size)}, alpha = {alpha} and epsilon = {epsilon}"
        raise ParameterError(f"{wanted} {TOO_MANY}")
    return hypotheses * math.ceil(log_odds / per_agent) if hypotheses > 1 else 1


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
    a promise (a warning tells where they are too few for any, and how many would promise .1).
    beta: probability with which any hypothesis' interval may miss its error.
    random_state: as randomized_response; not used by RemoteAgents.

    Guarantee: pure agents.epsilon-DP, locally, for each agent.
    Raises: ParameterError, ShapeError, and AgentsExhausted when fewer agents are left than
        hypotheses: then nobody is asked; whatever the agents raise.
    Cost: a call and a prediction for each hypothesis, and O(N).
    Source: Kohen and Sheffet 2022, Section 1 (what the hybrid model is measured against).
    """
    _check_voting(hypotheses, agents)
    _note_few_agents(len(hypotheses), agents, probability("beta", beta))
    failure = probability("beta", beta) / len(hypotheses)
    rng = make_stream(random_state)
    count = agents.remaining
    share, more = divmod(count, len(hypotheses))
    best, accuracy, index = np.empty(0, np.uint8), -1.0, 0
    for i, hypothesis in enumerate(hypotheses):
        candidate = HypothesisResult(i, hypothesis, hypotheses)
        answers = agents.test(candidate, share + (i < more), random_state=rng)
        right = 1 - float(answers.mean())
        if right > accuracy:
            best, accuracy, index = answers, right, i
    return VotingResult(
        index,
        hypotheses.hypothesis(index),
        hypotheses,
        estimate_mean(best, beta=failure, epsilon=agents.epsilon),
        count,
        agents.record(random_state),
    )


def _note_few_agents(size: int, agents: Agents | RemoteAgents, beta: float) -> None:
    """Say that so few agents promise nothing, and how many would."""
    if agents.remaining >= _votes_needed(size, 0.5, beta, agents.epsilon):
        return
    needed = _votes_needed(size, _TYPICAL_ALPHA, beta, agents.epsilon)
    wanted = f"{needed:,}" if math.isfinite(needed) else f"more than {MOST_AGENTS:.0e}"
    have = f"agents = {agents.remaining:,} left for {size:,} hypotheses"
    promise = "no error less than 1/2 above the least is promised"
    note(f"{have}: {promise}; one {_TYPICAL_ALPHA} above it needs {wanted} (votes_needed)")


def _votes_needed(size: int, alpha: float, beta: float, epsilon: float) -> float:
    """As votes_needed; infinity where no number that it knows will do."""
    try:
        return votes_needed(size, alpha=alpha, beta=beta, epsilon=epsilon)
    except ParameterError:
        return math.inf


def _check_voting(hypotheses: Any, agents: Any) -> None:
    if not isinstance(hypotheses, Hypotheses) or not len(hypotheses):
        refuse(
            "hypotheses",
            hypotheses,
            "it must be a class of hypotheses of hdp_fast.learners that has one",
        )
    if not isinstance(agents, AgentPool):
        rule = "it must be Agents or RemoteAgents"
        raise ParameterError(f"agents = {type(agents).__name__}, but {rule}")
    if agents.remaining < len(hypotheses):
        rule = f"each of {len(hypotheses):,} hypotheses needs one"
        raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {rule}")
    if isinstance(agents, Agents) and agents.d != hypotheses.d:
        rule = f"the hypotheses have {hypotheses.d}"
        raise ShapeError(f"agents have {agents.d} features, but {rule}")
