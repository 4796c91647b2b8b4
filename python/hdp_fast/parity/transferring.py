"""Learning a parity from a curator's records and verifying it with agents of a target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.notes import keep_result, note
from .._support.types import Bits, RandomState
from .._support.validate import probability, refuse
from ..budget.account import Budget
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..gf2 import BitMatrix, dot
from ..local.agents import Agents
from ..local.estimation import agents_needed, estimate_mean
from ..local.randomizers.aggregates import Estimate
from ..local.remote_agents import RemoteAgents
from .equations import pack_records
from .learning import learn
from .planning import Method, Neighbors, ParityPlan, TransferPlan
from .results import ParityResult, ParityTransferResult


@keep_result
def transfer(
    X: ArrayLike | BitMatrix,
    y: ArrayLike,
    agents: Agents | RemoteAgents,
    *,
    epsilon: float,
    alpha: float | None = None,
    beta: float = 0.05,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
    plan: ParityPlan | TransferPlan | None = None,
    affine: bool = False,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> ParityTransferResult:
    """Learns a parity from a curator's biased records and verifies it with agents of the target.

    The curator's learner is `learn`, with half of beta. If it releases a hypothesis, each agent
    that is asked answers by randomized response whether that hypothesis errs on its own record. A
    UtilityWarning says when the answers do not show that the hypothesis is better than guessing.

    Args:
        X: The curator's features 0 and 1 of shape (n, d): bool, integers or floats in any
            container, or a BitMatrix.
        y: The curator's labels 0 and 1 of shape (n,).
        agents: Agents of the target population, with d features of 0 and 1. As many are asked as
            `plan_transfer` says for their response rate. Their own epsilon protects them.
            RemoteAgents are sent the parity as learners.predictor reads it, and need not all
            answer: the interval is as wide as the number of answers says.
        epsilon: Privacy parameter of each of the curator's records, a finite number above 0.
        alpha: Half width of the interval around the target error, in (0, 1). It may be None only
            with a TransferPlan, which has its own.
        beta: Probability of failure, in (0, 1), half of it for each side. It is not used with a
            TransferPlan; a ParityPlan has its own for the curator's side.
        method: "loop", "batches" or "paper"; as for `learn`.
        neighbors: "replace_one" or "add_remove", for the curator's records.
        plan: Plan of the curator's learner (ParityPlan) or of both sides (TransferPlan); None
            promises what n records allow.
        affine: Whether a constant may be added to the parity, and is learned as well.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, for the learner and the agents' answers alike; it
            protects no one who knows it.
        budget: Budget of the curator's records, charged epsilon. The agents' answers are no part of
            it.

    Returns:
        The hypothesis or no release, the estimated target error, and both privacy records.

    Raises:
        ShapeError: X has not two dimensions, y has not one label for each record, or the agents
            have not d features.
        ParameterError: `agents` are not `local.Agents` with features of 0 and 1 or RemoteAgents, an
            entry is not 0 or 1, or a parameter is out of range, missing, or another than the
            plan's.
        AgentsExhausted: Fewer agents are left than alpha and beta need.
        InsufficientSamples: There are fewer records than the plan needs, and n is public.
        BudgetExceeded: The budget does not hold epsilon. This and all errors above are raised
            before any coin is drawn.

    Guarantee:
        Pure epsilon-DP for each row of X under `neighbors`. Pure agents.epsilon-DP, locally, for
        each agent. With probability 1 - beta / 2 the target error lies in the interval, if the
        agents who answer are drawn independently from the target population. For the hypothesis
        itself the plan's promise holds.

    Cost:
        That of `learn`, and one pass over the agents that are asked.

    Source:
        Kohen and Sheffet 2022, Appendix B.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, parity
        >>> rng = np.random.default_rng(0)
        >>> T = rng.integers(0, 2, (6000, 8), dtype=np.uint8)  # the target population
        >>> X = T[T[:, 0] == 1]  # the curator has seen a part of it only
        >>> agents = local.Agents(T, T[:, 1] ^ T[:, 4], epsilon=1.0)
        >>> y = X[:, 1] ^ X[:, 4]
        >>> result = parity.transfer(X, y, agents, epsilon=1.0, alpha=0.1, beta=1e-10)
        >>> bool(result.target_error < 0.1)
        True
    """
    if not isinstance(agents, Agents | RemoteAgents):
        kind = type(agents).__name__
        raise ParameterError(f"agents = {kind}, but it must be a hdp_fast.local.Agents")
    # Packed here so that everything is checked before a coin is drawn.
    X = pack_records(X)
    if isinstance(agents, Agents):
        if agents.d != X.shape[1]:
            raise ShapeError(f"agents have {agents.d} features, but X has {X.shape[1]} columns")
        agents.require_bits()
    if isinstance(plan, TransferPlan):
        if alpha not in (None, plan.alpha):
            refuse("alpha", alpha, f"the plan is for {plan.alpha!r}")
        alpha, beta, plan = plan.alpha, plan.beta, plan.curator
    if alpha is None:
        raise ParameterError("alpha = None, but it must be given unless a TransferPlan is")
    half = probability("beta", beta) / 2
    rate = agents.response_rate
    count = agents_needed(alpha=alpha, beta=half, epsilon=agents.epsilon, response_rate=rate)
    if agents.remaining < count:
        promise = f"alpha = {alpha:g} and beta = {beta:g} need {count:,}"
        raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {promise}")
    learned = learn(
        X,
        y,
        epsilon=epsilon,
        beta=half,
        method=method,
        neighbors=neighbors,
        plan=plan,
        affine=affine,
        random_state=random_state,
        budget=budget,
    )
    estimate = _verify(learned, agents, count, half, random_state)
    result = ParityTransferResult(
        mask=learned.mask,
        intercept=learned.intercept,
        released=learned.released,
        target_error=estimate and estimate.value,
        interval=estimate and (estimate.low, estimate.high),
        record=learned.record,
        agents_record=estimate and agents.record(random_state),
        silence=learned.silence,
    )
    # learn has warned already if nothing was released.
    if result.released and (estimate is None or estimate.high >= 0.5):
        note(result.summary)
    return result


def _verify(
    learned: ParityResult,
    agents: Agents | RemoteAgents,
    count: int,
    beta: float,
    random_state: RandomState,
) -> Estimate | None:
    """Estimates the error on the agents' population; None without a release or an answer."""
    if learned.mask is None:
        return None
    parity = _Parity(learned.mask, learned.intercept or 0)
    try:
        answers = agents.test(parity, count, random_state=random_state)
    except AgentsExhausted:
        # Others have asked them since the check. The hypothesis is paid for and must not be lost.
        return None
    except Exception as error:
        if isinstance(agents, Agents):
            raise
        # The function behind remote agents failed, and the hypothesis is paid for all the same.
        note(f"agents = {agents!r} could not be asked ({type(error).__name__}): ask others")
        return None
    if not answers.size:
        return None
    return estimate_mean(answers, beta=beta, epsilon=agents.epsilon)


class _Parity:
    """A parity as agents read it.

    Attributes:
        hypothesis: Its description.
    """

    def __init__(self, mask: Bits, intercept: int):
        self._mask, self._intercept = mask, np.uint8(intercept)
        features = np.flatnonzero(mask).tolist()
        self.hypothesis = {
            "kind": "parity",
            "features": features,
            "complement": bool(intercept),
        }

    def predict(self, X: Any, /) -> Bits:
        """The parity of each record."""
        labels: Bits = dot(X, self._mask) ^ self._intercept
        return labels
