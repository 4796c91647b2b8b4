"""Private learning of parities: labels that are the sum over GF(2) of some unknown features.

The learners are those of Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, What Can We Learn
Privately?, Section 4, with the parameters of a sharper analysis; transfer is Appendix B of Kohen
and Sheffet, Transfer Learning In Differential Privacy's Hybrid-Model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _core, local
from ._support.random_state import check_random_state, make_key
from ._support.types import Bits, RandomState
from ._support.validate import number, probability, refuse, shorten
from .budget.account import Budget, spend
from .exceptions import AgentsExhausted, InsufficientSamples, ParameterError, ShapeError
from .gf2 import BitMatrix, dot
from .local.agents import Agents
from .record import PrivacyRecord, rng_of

__all__ = [
    "ParityPlan",
    "ParityResult",
    "ParityTransferResult",
    "TransferPlan",
    "learn",
    "plan",
    "plan_transfer",
    "transfer",
]

Method = Literal["loop", "batches", "paper"]
Neighbors = Literal["replace_one", "add_remove"]

_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 4"
_BATCHES = "Poisson sampling of disjoint batches, a stop coin each, a uniform solution"
_NOISE = {
    "loop": "Poisson sampling, a stop coin before every try, a uniform solution",
    "batches": _BATCHES,
    "paper": f"{_BATCHES}, discrete Laplace noise on the test errors",
}
# Up to these the paper's own proof holds (its Lemmas 4.2 and 4.6).
_PAPER_EPSILON = 0.5
_PAPER_BETA = 0.25


@dataclass(frozen=True)
class ParityPlan:
    """How many records learn needs and the parameters that it will use; no data is involved.

    Attributes:
        d: unknown bits, the constant of an affine hypothesis included.
        alpha: error promised on the distribution of the records; None for a plan from chi2, which
            promises error 0 everywhere.
        beta: probability with which the promise may fail, no release included.
        epsilon: privacy parameter.
        method: "loop", "batches" or "paper".
        neighbors: "replace_one" or "add_remove".
        n: records needed.
        p: sampling rate.
        g: loop: probability of stopping without a release before each try.
        c: batches and paper: probability that a batch is not used.
        k: batches and paper: number of batches.
        batch_size: batches and paper: records per batch.
        test_size: paper: records that choose among the batches' hypotheses.
        n_paper: records needed with the paper's constants (logarithm's base mended); None for a
            plan from chi2 and above 2**62.
        n_paper_valid: whether the paper's proof covers this epsilon, beta and neighbor relation.
    """

    d: int
    alpha: float | None
    beta: float
    epsilon: float
    method: Method
    neighbors: Neighbors
    n: int
    p: float
    g: float | None
    c: float | None
    k: int | None
    batch_size: int | None
    test_size: int | None
    n_paper: int | None
    n_paper_valid: bool


@dataclass(frozen=True)
class TransferPlan:
    """What transfer needs on both sides.

    Attributes:
        curator: the plan of the curator's learner.
        agents: agents needed.
        alpha: half width of the interval around the estimated target error.
        beta: probability with which anything above may fail.
    """

    curator: ParityPlan
    agents: int
    alpha: float
    beta: float


@dataclass(frozen=True, eq=False)
class ParityResult:
    """What learn releases.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis. No release is part of the mechanism, not an error.
        alpha: error promised for records drawn independently that some parity fits; None if none.
        record: what protects the records.
    """

    mask: Bits | None
    intercept: int | None
    released: bool
    alpha: float | None
    record: PrivacyRecord

    def __repr__(self) -> str:
        return f"ParityResult({_hypothesis(self)}, alpha={self.alpha}, {_protection(self.record)})"


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

    def __repr__(self) -> str:
        error = f"target_error={self.target_error}, interval={self.interval}"
        return f"ParityTransferResult({_hypothesis(self)}, {error}, {_protection(self.record)})"


def plan(
    d: int,
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
) -> ParityPlan:
    """How many records are needed to learn a parity of d bits, before any data is touched.

    d: unknown bits, the constant included if the hypothesis is to be affine. alpha: error to be
    promised, in (0, 1/2). beta: failure probability, in (0, 1), no release included. epsilon:
    privacy parameter, above 0. method: "loop" needs the fewest records; "batches" solves a number
    of systems that does not depend on the data; "paper" is A* with the paper's constants.
    neighbors: "replace_one" or "add_remove" of a record.

    Guarantee: if some parity fits every record, and records are drawn independently from any
        distribution, learn with n of them errs by at most alpha with probability 1 - beta.
    Raises: ParameterError.
    Cost: milliseconds; no data.
    Source: Kasiviswanathan et al. 2011, Section 4 (n_paper: its Theorem with k's logarithm mended);
        n: 2**((d-1)(1-s)) (1 - p alpha (2 - 2**s))**n <= beta for the best s in [0, 1).
    """
    fields = _core.plan_parity(d, alpha, beta, epsilon, method, neighbors)
    try:
        n_paper = _core.plan_parity(d, alpha, beta, epsilon, "paper", "replace_one")["n"]
    except ParameterError:
        # More than 2**62, though fewer do for this method.
        n_paper = None
    return _plan(d, alpha, beta, epsilon, method, neighbors, fields, n_paper)


def plan_transfer(
    d: int,
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    agents_epsilon: float,
    chi2: float | None = None,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
) -> TransferPlan:
    """How many records and agents transfer needs, before any data is touched.

    d, method, neighbors: as plan. alpha: half width of the interval around the target error, and
    the error promised on the curator's own distribution. beta: failure probability, half for
    each side. epsilon: of the curator's records; agents_epsilon: of an agent's answer. chi2: a
    public bound on the chi-squared divergence of the uniform target from the curator's
    distribution; with it the hypothesis is promised to be the only solution, hence right on the
    target, and with fewer records.

    Guarantee: as plan for the curator; the target error lies in the interval with probability
        1 - beta / 2.
    Raises: ParameterError.
    Cost: milliseconds; no data.
    Source: Kohen and Sheffet 2022, Appendix B, with a Chernoff bound on the sum of the waiting
        times in place of its union bound; Hoeffding's inequality for the agents.
    """
    half = probability("beta", beta) / 2
    agents = local.agents_needed(alpha=alpha, beta=half, epsilon=agents_epsilon)
    if chi2 is None:
        curator = plan(
            d, alpha=alpha, beta=half, epsilon=epsilon, method=method, neighbors=neighbors
        )
    else:
        fields = _core.plan_parity_uniform_target(d, chi2, half, epsilon, method, neighbors)
        curator = _plan(d, None, half, epsilon, method, neighbors, fields, None)
    return TransferPlan(curator, agents, float(alpha), float(beta))


def learn(
    X: ArrayLike | BitMatrix,
    y: ArrayLike,
    *,
    epsilon: float,
    beta: float = 0.05,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
    plan: ParityPlan | None = None,
    affine: bool = False,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> ParityResult:
    """Learn a parity under pure differential privacy.

    X: 0/1 (n, d), an array of bool or any integer dtype, or a BitMatrix; y: 0/1 (n,).
    epsilon: privacy parameter, above 0. beta: failure probability to aim at. method, neighbors:
    as in plan(). plan: made by plan() for these d (plus one if affine) and epsilon; its method,
    neighbors and beta hold. Without one any number of records will do, and the result's alpha
    says what they promise; under "add_remove" it says nothing, since n is private then.
    affine: learn a constant as well. random_state: None draws from the operating system; an int or
    a Generator makes a reproducible test stream that protects nobody who knows it. budget: charged
    epsilon, before the mechanism runs.

    Guarantee: pure epsilon-DP for each row, on every data set, also one that no parity fits; exact
        coins. (A changed row at most doubles or empties the solutions of a sample, and is in it
        with probability p; p and the stop coin are the largest that epsilon allows.) The running
        time is not protected; that of "batches" depends on the data least.
    Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than the plan needs;
        BudgetExceeded. All of them before any coin is drawn or budget spent.
    Cost: an exact solution of about p n equations for each try or batch: O(p n d**2 / 64 / log d)
        word operations at most; memory beside X two bit matrices of d x d.
    Source: Kasiviswanathan et al. 2011, Section 4, Algorithm A and its amplification.
    """
    check_random_state(random_state)
    if not isinstance(affine, bool | np.bool_):
        refuse("affine", affine, "it must be True or False")
    X = X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)
    n, d = X.shape
    unknowns = d + bool(affine)
    fields: Mapping[str, Any]
    if plan is None:
        alpha, fields = _core.promise_parity(unknowns, n, beta, epsilon, method, neighbors)
    else:
        _check_plan(plan, n, unknowns, epsilon, method, neighbors)
        method, neighbors, alpha = plan.method, plan.neighbors, plan.alpha
        fields = vars(plan)
    task = _core.ParityTask(X, y, epsilon, method, neighbors, fields, bool(affine))
    record = PrivacyRecord(
        mechanism=f"parity.learn, method={method}",
        source=_SOURCE,
        neighbors=neighbors,
        epsilon=epsilon,
        noise=_NOISE[method],
        rng=rng_of(random_state),
    )
    with spend(budget, record):
        bits = task.learn(make_key(random_state))
    return ParityResult(
        mask=None if bits is None else bits[:d],
        intercept=None if bits is None else int(bits[d:].sum()),
        released=bits is not None,
        alpha=alpha,
        record=record,
    )


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
    X = X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)
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
    count = local.agents_needed(alpha=alpha, beta=half, epsilon=agents.epsilon)
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
) -> local.Estimate | None:
    mask, intercept = learned.mask, learned.intercept
    if mask is None:
        return None

    def errs(X: Any, y: Bits) -> Bits:
        wrong: Bits = dot(X, mask) ^ np.uint8(intercept or 0) ^ y
        return wrong

    try:
        answers = agents.ask(errs, count, random_state=random_state)
    except AgentsExhausted:
        # Asked by others since the check: the hypothesis is paid for and must not be lost.
        return None
    return local.estimate_mean(answers, beta=beta, epsilon=agents.epsilon)


def _plan(
    d: int,
    alpha: float | None,
    beta: float,
    epsilon: float,
    method: Method,
    neighbors: Neighbors,
    fields: _core._ParityPlan,
    n_paper: int | None,
) -> ParityPlan:
    covered = epsilon <= _PAPER_EPSILON and beta < _PAPER_BETA
    return ParityPlan(
        d=int(d),
        alpha=None if alpha is None else float(alpha),
        beta=float(beta),
        epsilon=float(epsilon),
        method=method,
        neighbors=neighbors,
        **fields,
        n_paper=n_paper,
        n_paper_valid=covered and neighbors == "replace_one",
    )


def _check_plan(
    plan: ParityPlan, n: int, unknowns: int, epsilon: float, method: Method, neighbors: Neighbors
) -> None:
    if not isinstance(plan, ParityPlan):
        rule = "it must come from hdp_fast.parity.plan"
        raise ParameterError(f"plan = {type(plan).__name__}, but {rule}")
    for name, given, default in (
        ("epsilon", number("epsilon", epsilon), None),
        ("method", method, "loop"),
        ("neighbors", neighbors, "replace_one"),
    ):
        planned = getattr(plan, name)
        if given not in (planned, default):
            refuse(name, given, f"the plan is for {shorten(planned)}")
    if plan.d != unknowns:
        counted = "the columns of X, plus one if affine"
        raise ParameterError(f"plan.d = {plan.d:,}, but {counted}, are {unknowns:,}")
    if n < plan.n:
        raise InsufficientSamples(f"X has {n:,} records, but the plan needs {plan.n:,}")


def _hypothesis(result: ParityResult | ParityTransferResult) -> str:
    if result.mask is None:
        return "no release"
    ones = f"{int(result.mask.sum()):,} of {len(result.mask):,} features"
    return f"{ones}, intercept {result.intercept}"


def _protection(record: PrivacyRecord) -> str:
    return f"epsilon={record.epsilon:g} ({record.neighbors})"
