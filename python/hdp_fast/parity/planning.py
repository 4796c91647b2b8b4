"""How many records, and agents, a private parity needs; no data is involved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .. import _core
from .._support.validate import probability
from ..exceptions import ParameterError
from ..local.estimation import agents_needed

Method = Literal["loop", "batches", "paper"]
Neighbors = Literal["replace_one", "add_remove"]

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
    return _make_plan(d, alpha, beta, epsilon, method, neighbors, fields, n_paper)


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
    agents = agents_needed(alpha=alpha, beta=half, epsilon=agents_epsilon)
    if chi2 is None:
        curator = plan(
            d, alpha=alpha, beta=half, epsilon=epsilon, method=method, neighbors=neighbors
        )
    else:
        fields = _core.plan_parity_uniform_target(d, chi2, half, epsilon, method, neighbors)
        curator = _make_plan(d, None, half, epsilon, method, neighbors, fields, None)
    return TransferPlan(curator, agents, float(alpha), float(beta))


def _make_plan(
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
