"""Learning a parity from a curator's records and verifying it with agents of a target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.notes import note
from .._support.types import Bits, RandomState
from .._support.validate import probability, refuse
from ..budget.account import Budget
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..gf2 import BitMatrix, dot
from ..local.agents import Agents
from ..local.estimation import agents_needed, estimate_mean
from ..local.randomizers.aggregates import Estimate
from .learning import learn, pack_records
from .planning import Method, Neighbors, ParityPlan, TransferPlan
from .results import ParityResult, ParityTransferResult


def transfer(
    X: ArrayLike | BitMatrix,
    y: ArrayLike,
    agents: Agents,
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
    """Learn a parity from a curator's biased records and verify it with agents of the target.

    X, y, epsilon, method, neighbors, affine, random_state: as learn, for the curator's records.
    agents: from the target population, N of them with N from plan_transfer(); their own epsilon
    protects them. alpha: half width wanted for the interval around the target error, in (0, 1);
    beta: failure probability, half for each side. plan: of the curator's learner, or of both sides:
    then alpha and beta are the plan's. budget: of the curator's records, charged epsilon; the
    agents' answers are no part of it.

    Guarantee: pure epsilon-DP for each row of X; pure agents.epsilon-DP, locally, for each agent.
        With probability 1 - beta / 2 the target error lies in the interval; what the hypothesis
        itself promises is the plan's.
    Raises: as learn; AgentsExhausted when fewer agents are left than N, before any coin is drawn.
    Cost: as learn, and one pass over the agents asked.
    Source: Kohen and Sheffet 2022, Appendix B.
    """
    if not isinstance(agents, Agents):
        kind = type(agents).__name__
        raise ParameterError(f"agents = {kind}, but it must be a hdp_fast.local.Agents")
    # Packed here so that everything is checked before a coin is drawn.
    X = pack_records(X)
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
    count = agents_needed(alpha=alpha, beta=half, epsilon=agents.epsilon)
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
    # Of no release learn has told already.
    if result.released and (estimate is None or estimate.high >= 0.5):
        note(result.summary)
    return result


def _verify(
    learned: ParityResult, agents: Agents, count: int, beta: float, random_state: RandomState
) -> Estimate | None:
    """Estimate the error on the agents' population; None without a release."""
    mask, intercept = learned.mask, learned.intercept
    if mask is None:
        return None

    def find_errors(X: Any, y: Bits) -> Bits:
        wrong: Bits = dot(X, mask) ^ np.uint8(intercept or 0) ^ y
        return wrong

    try:
        answers = agents.ask(find_errors, count, random_state=random_state)
    except AgentsExhausted:
        # Asked by others since the check: the hypothesis is paid for and must not be lost.
        return None
    return estimate_mean(answers, beta=beta, epsilon=agents.epsilon)
