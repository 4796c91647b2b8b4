"""Learning a parity from a curator's records and verifying it with agents of a target."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Bits, RandomState
from .._support.validate import (
    finite_number,
    from_json,
    ordered_pair,
    probability,
    refuse,
)
from ..budget.account import Budget
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..gf2 import BitMatrix, dot
from ..local.agents import Agents
from ..local.estimation import agents_needed, estimate_mean
from ..local.randomizers.aggregates import Estimate
from ..record import PrivacyRecord
from .learning import (
    ParityResult,
    describe_hypothesis,
    describe_parity,
    describe_protection,
    learn,
    pack_records,
    predict_parity,
    read_parity,
)
from .planning import Method, Neighbors, ParityPlan, TransferPlan


@dataclass(frozen=True, eq=False)
class ParityTransferResult:
    """What transfer releases.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis.
        target_error: estimated error on the agents' population, in [0, 1]; None without a release,
            or when others have asked the agents meanwhile.
        interval: (low, high) that holds the true target error; None as target_error.
        record: what protects the curator's records.
        agents_record: what protects each agent's answer; None if none was asked.
    """

    mask: Bits | None
    intercept: int | None
    released: bool
    target_error: float | None
    interval: tuple[float, float] | None
    record: PrivacyRecord
    agents_record: PrivacyRecord | None

    def predict(self, X: ArrayLike | BitMatrix) -> Bits:
        """Predict the labels of records, the intercept included.

        X: 0/1 (m, d), an array or a BitMatrix. Returns uint8 (m,).

        Raises: ParameterError without a release; ShapeError, ParameterError for other records.
        Cost: a pass over X.
        Source: none.
        """
        return predict_parity(self.mask, self.intercept, X)

    def to_json(self) -> str:
        """The result as a JSON object, which from_json reads; the mask is a text, bit by bit.

        Raises: nothing.
        Cost: O(d).
        Source: none.
        """
        agents = self.agents_record
        return json.dumps(
            {
                **describe_parity(self.mask, self.intercept),
                "target_error": self.target_error,
                "interval": self.interval,
                "record": dataclasses.asdict(self.record),
                "agents_record": None if agents is None else dataclasses.asdict(agents),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ParityTransferResult:
        """The result that to_json wrote, or hdp-fast parity transfer.

        text: a JSON object.

        Raises: ParameterError when it is not one.
        Cost: O(d).
        Source: none.
        """
        return from_json("text", text, "ParityTransferResult.to_json", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> ParityTransferResult:
        error, interval, agents = (
            fields[name] for name in ("target_error", "interval", "agents_record")
        )
        return cls(
            **read_parity(fields),
            target_error=None if error is None else finite_number("target_error", error),
            interval=None if interval is None else ordered_pair("interval", interval),
            record=PrivacyRecord(**fields["record"]),
            agents_record=None if agents is None else PrivacyRecord(**agents),
        )

    def __repr__(self) -> str:
        error = f"target_error={self.target_error}, interval={self.interval}"
        hypothesis = describe_hypothesis(self.mask, self.intercept)
        protection = describe_protection(self.record)
        return f"ParityTransferResult({hypothesis}, {error}, {protection})"


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
    return ParityTransferResult(
        mask=learned.mask,
        intercept=learned.intercept,
        released=learned.released,
        target_error=estimate and estimate.value,
        interval=estimate and (estimate.low, estimate.high),
        record=learned.record,
        agents_record=estimate and agents.record(random_state),
    )


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
