"""Learning by the votes of agents, without a curator."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from .._support.notes import keep_result, note
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
from .estimation import advantage, estimate_mean, half_width
from .pool import AgentPool
from .randomizers.aggregates import Estimate
from .randomizers.base import MOST_AGENTS, TOO_MANY
from .remote_agents import RemoteAgents

# The error above the least of the plan that is offered where nothing can be promised.
_TYPICAL_ALPHA = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class VotingResult(HypothesisResult):
    """The result of learn_by_votes: the hypothesis with the smallest estimated error.

    Attributes:
        index: Index of the chosen hypothesis in its class.
        hypothesis: Its description, a dict that JSON can carry.
        feature_names_in_: None, since agents have no column names.
        estimate: The Estimate of its error. The interval is wide enough to hold for every
            hypothesis of the class at once.
        agents: Number of agents that were asked.
        agents_record: PrivacyRecord of each agent's answer.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local
        >>> X = np.random.default_rng(0).integers(0, 2, (30_000, 3))
        >>> agents = local.Agents(X, X[:, 1], epsilon=1.0)
        >>> result = local.learn_by_votes(learners.Stumps(3), agents)
        >>> text = result.to_json()  # everything that was released, and no record
        >>> local.VotingResult.from_json(text, learners.Stumps(3)).words, result.agents
        ('x1', 30000)
    """

    estimate: Estimate
    agents: int
    agents_record: PrivacyRecord

    def to_json(self) -> str:
        """Writes the result as JSON.

        Returns:
            A JSON object, which from_json reads. learners.predictor reads its "hypothesis".
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
        """Reads the result that to_json wrote.

        Args:
            text: The JSON object. learners.predictor makes a predictor of its "hypothesis" without
                the class.
            hypotheses: The class of hypotheses that was learned from.

        Returns:
            The VotingResult.

        Raises:
            ParameterError: text is not such an object, hypotheses is not a class of hypotheses, or
                the hypothesis has another index in this class.
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
    """Counts the agents that learn_by_votes needs for a promise about the chosen hypothesis.

    The number grows faster than the size of the class.

    Args:
        size: Number of hypotheses, at least 1.
        alpha: Excess error, in (0, 1).
        beta: Failure probability, in (0, 1).
        epsilon: Privacy parameter of each agent's answer, above 0.

    Returns:
        The number of agents.

    Raises:
        ParameterError: A parameter is out of range, or more than 1e18 agents would be needed.

    Guarantee:
        If learn_by_votes asks this many agents, who all answer and are drawn independently from a
        population, then the chosen hypothesis errs on the population with probability at most the
        least possible plus alpha, except with probability beta.

    Source:
        Hoeffding's inequality for the difference of the answers about two hypotheses, and a union
        bound over the rivals of the best one:
        `|H| ln((|H| - 1) / beta) / (alpha tanh(epsilon / 2))**2`.

    Examples:
        >>> from hdp_fast import learners, local
        >>> size = len(learners.Conjunctions(20, 2))
        >>> size, local.votes_needed(size, alpha=0.1, beta=0.05, epsilon=1.0)
        (801, 3631734)
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


@keep_result
def learn_by_votes(
    hypotheses: Hypotheses,
    agents: Agents | RemoteAgents,
    *,
    beta: float = 0.05,
    random_state: RandomState = None,
) -> VotingResult:
    """Learns a hypothesis from agents alone, without a curator.

    This is the rival that hybrid learning is measured against. All agents that are left are divided
    into groups of equal size (give or take one), one group for each hypothesis. Each agent answers
    whether the hypothesis of its group is wrong about it, and the hypothesis with the smallest
    estimated error wins. The agents are asked in their order, which therefore must tell nothing
    about them. RemoteAgents need not all answer. If some of a group are missing, its estimate is
    enlarged by as much as its interval is wider; a group that is silent does not win.

    Args:
        hypotheses: A class of hdp_fast.learners with at least one hypothesis.
        agents: At least one agent for each hypothesis; votes_needed counts the agents for a
            promise. A warning tells where they are too few for any, and how many would promise 0.1.
        beta: Probability with which the interval of any hypothesis may miss its error, in (0, 1).
        random_state: None draws the agents' random bits from the operating system. An int or a
            numpy Generator makes a reproducible stream for tests, which protects no one who knows
            it. RemoteAgents do not use it.

    Returns:
        A VotingResult.

    Raises:
        ParameterError: hypotheses is not a class with at least one hypothesis, agents is not a pool
            of agents, or beta or random_state is out of range. No one is asked.
        ShapeError: The agents have another number of features than the hypotheses. No one is asked.
        AgentsExhausted: Fewer agents are left than there are hypotheses: then no one is asked. Or
            not one of all who were asked has answered.
        Exception: What the agents themselves raise.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent.

    Cost:
        One call and one prediction for each hypothesis, and O(N) for N agents.

    Source:
        Kohen and Sheffet 2022, Section 1 (what the hybrid model is measured against).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local
        >>> X = np.random.default_rng(0).integers(0, 2, (50_000, 3))
        >>> agents = local.Agents(X, X[:, 0] & X[:, 2], epsilon=1.0)
        >>> local.learn_by_votes(learners.Conjunctions(3, 2), agents).words
        'x0 and x2'
    """
    _check_voting(hypotheses, agents)
    _note_few_agents(len(hypotheses), agents, probability("beta", beta))
    failure = probability("beta", beta) / len(hypotheses)
    rng = make_stream(random_state)
    count = agents.remaining
    share, more = divmod(count, len(hypotheses))
    best, accuracy, index = np.empty(0, np.uint8), -math.inf, 0
    for i, hypothesis in enumerate(hypotheses):
        candidate = HypothesisResult(i, hypothesis, hypotheses)
        asked = share + (i < more)
        answers = agents.test(candidate, asked, random_state=rng)
        if not answers.size:
            continue
        # The estimate of a group of which few have answered is as good as its interval says.
        missing = half_width(len(answers), failure, agents.epsilon)
        missing -= half_width(asked, failure, agents.epsilon)
        right = 1 - float(answers.mean()) - advantage(agents.epsilon) * missing
        if right > accuracy:
            best, accuracy, index = answers, right, i
    if not best.size:
        rule = "there is nothing to learn from: ask others"
        raise AgentsExhausted(f"agents: none of the {count:,} who were asked has answered, {rule}")
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
    if agents.response_rate * agents.remaining >= _votes_needed(size, 0.5, beta, agents.epsilon):
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
