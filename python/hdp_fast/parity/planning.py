"""How many records, and agents, a private parity needs. Plans are made without data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .. import _core
from .._support.validate import (
    finite_nonnegative,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..exceptions import ParameterError
from ..local.estimation import agents_needed

Method = Literal["loop", "batches", "paper"]
Neighbors = Literal["replace_one", "add_remove"]

# The paper's own proof covers epsilon up to, and beta below, these (its Lemmas 4.2 and 4.6).
_PAPER_EPSILON = 0.5
_PAPER_BETA = 0.25
_MOST = 1 << 62


@dataclass(frozen=True)
class ParityPlan:
    """The number of records that `learn` needs, and the parameters that it will use.

    Attributes:
        d: Number of unknown bits, the constant of an affine hypothesis included.
        alpha: Error that is promised on the distribution of the records, in (0, 1/2). None for a
            plan from chi2, which promises error 0 everywhere.
        beta: Probability, in (0, 1), with which the promise may fail; no release counts as failure.
        epsilon: Privacy parameter of each record.
        method: "loop", "batches" or "paper".
        neighbors: "replace_one" or "add_remove".
        n: Number of records needed.
        p: Probability with which a record is in a sample; with "batches" and "paper", in that of
            its batch.
        g: Probability of stopping without a release before each try of "loop"; None for other
            methods.
        c: Probability that a batch of "batches" or "paper" is not used; None for "loop".
        k: Number of batches of "batches" or "paper"; None for "loop".
        batch_size: Records in a batch of "batches" or "paper"; None for "loop". Under "add_remove"
            each record draws its batch, and this is the mean, rounded up.
        test_size: Records that choose among the hypotheses of the batches of "paper"; None for
            other methods.
        n_paper: Number of records needed with the paper's constants, the base of its logarithm
            mended. None for a plan from chi2, and above `2**62`.
        n_paper_valid: Whether the paper's proof covers this epsilon (at most 1/2), beta (below 1/4)
            and neighbor relation ("replace_one").

    Examples:
        >>> from hdp_fast import parity
        >>> plan = parity.plan(8, alpha=0.1, beta=0.05, epsilon=0.5, method="batches")
        >>> plan.n, plan.k, plan.batch_size
        (1014, 3, 338)
        >>> plan.n_paper, plan.n_paper_valid
        (93394, True)
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
    """The numbers of records and agents that `transfer` needs.

    Attributes:
        curator: Plan of the learner on the curator's records.
        agents: Number of agents needed.
        alpha: Half width of the interval around the estimated target error, in (0, 1).
        beta: Probability, in (0, 1), with which the learner's promise or the interval may fail.

    Examples:
        >>> from hdp_fast import parity
        >>> plan = parity.plan_transfer(8, alpha=0.1, beta=0.05, epsilon=1.0, agents_epsilon=1.0)
        >>> plan.curator.n, plan.agents
        (278, 1026)
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
    """Computes how many records `learn` needs for a parity of d bits, before any data is touched.

    Args:
        d: Number of unknown bits, 1 to `2**32`; the features, plus one if the hypothesis is to be
            affine.
        alpha: Error that is to be promised, in (0, 1/2).
        beta: Probability, in [1e-15, 1), with which the promise may fail; no release counts as
            failure.
        epsilon: Privacy parameter of each record, a finite number above 0.
        method: "loop" needs the fewest records. "batches" solves a number of systems that does not
            depend on the data. "paper" is Algorithm A* with the paper's constants; its size is
            computed for any epsilon, but `learn` runs it for epsilon at most 1/2 and "replace_one"
            only.
        neighbors: "replace_one" if neighboring data sets differ in one record's value, "add_remove"
            if one of them lacks a record.

    Returns:
        The plan, to be passed to `learn`; its n is the number of records.

    Raises:
        ParameterError: A parameter is out of range, or more than `2**62` records are needed.

    Guarantee:
        If some parity fits every record, and the records are drawn independently from any
        distribution, then `learn` with n of them releases, with probability 1 - beta, a hypothesis
        that errs with probability at most alpha on that distribution.

    Cost:
        At most tens of milliseconds.

    Source:
        Kasiviswanathan et al. 2011, Section 4; n_paper is that of its theorem with the logarithm of
        k mended. For "loop" and "batches", n is the least number of records with `2**((d-1)(1-s))
        (1 - p alpha (2 - 2**s))**n <= b` for some s in [0, 1), where b is the part of beta that is
        left after the probability of no release. For "batches" that is n for each of the k batches
        under "replace_one"; under "add_remove" p is divided by k.

    Examples:
        >>> from hdp_fast import parity
        >>> plan = parity.plan(10_000, alpha=0.05, beta=0.05, epsilon=1.0)
        >>> f"{plan.n:,} records; {plan.n_paper:,} with the constants of the paper"
        '330,555 records; 83,204,509 with the constants of the paper'
        >>> round(plan.p, 3), round(plan.g, 3)
        (0.312, 0.04)
    """
    fields = _core.plan_parity(d, alpha, beta, epsilon, method, neighbors)
    try:
        n_paper = _core.plan_parity(d, alpha, beta, epsilon, "paper", "replace_one")["n"]
    except ParameterError:
        # The paper's constants need more than 2**62 records, though this method needs fewer.
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
    response_rate: float = 1.0,
) -> TransferPlan:
    """Computes how many records and agents `transfer` needs, before any data is touched.

    Args:
        d: Number of unknown bits, 1 to `2**32`; the features, plus one if the hypothesis is to be
            affine.
        alpha: Half width of the interval around the target error; without chi2 also the error that
            is promised on the curator's own distribution, and then in (0, 1/2), else in (0, 1).
        beta: Probability of failure, in (0, 1), half of it for each side.
        epsilon: Privacy parameter of each of the curator's records, a finite number above 0.
        agents_epsilon: Privacy parameter of each agent's answer, a finite number above 0.
        chi2: Public bound, at least 0, on the chi-squared divergence of the uniform target from the
            curator's distribution. With it the plan promises that the hypothesis is the only
            solution, hence right everywhere. None promises an error of at most alpha instead.
        method: "loop", "batches" or, without chi2, "paper"; as for `plan`.
        neighbors: "replace_one" or "add_remove", for the curator's records.
        response_rate: Public share of the agents asked who will answer, in (0, 1].

    Returns:
        The plan of both sides, to be passed to `transfer`.

    Raises:
        ParameterError: A parameter is out of range, `method` is "paper" with chi2, or more records
            or agents are needed than can be counted.

    Guarantee:
        For the curator that of `plan`, with beta / 2. The target error lies in the interval with
        probability 1 - beta / 2, if the agents are drawn independently from the target population.

    Cost:
        At most tens of milliseconds.

    Source:
        Kohen and Sheffet 2022, Appendix B, with a Chernoff bound on the sum of the waiting times in
        place of its union bound. Hoeffding's inequality for the agents.

    Examples:
        >>> from hdp_fast import parity
        >>> goal = {"alpha": 0.1, "beta": 0.05, "epsilon": 1.0, "agents_epsilon": 1.0}
        >>> parity.plan_transfer(8, **goal).curator.n
        278
        >>> plan = parity.plan_transfer(8, chi2=1.0, **goal)
        >>> plan.curator.n, plan.agents
        (233, 1026)
    """
    half = probability("beta", beta) / 2
    agents = agents_needed(
        alpha=alpha, beta=half, epsilon=agents_epsilon, response_rate=response_rate
    )
    if chi2 is None:
        curator = plan(
            d, alpha=alpha, beta=half, epsilon=epsilon, method=method, neighbors=neighbors
        )
    else:
        fields = _core.plan_parity_uniform_target(d, chi2, half, epsilon, method, neighbors)
        curator = _make_plan(d, None, half, epsilon, method, neighbors, fields, None)
    return TransferPlan(curator, agents, float(alpha), float(beta))


class PaperSpanning(NamedTuple):
    """How many records span all d bits, as Kohen and Sheffet print it.

    Attributes:
        uniform: Records of the uniform law, d log2(d / beta): Proposition B.1.
        source: Records of the source, 4 (chi2 + 1) d ln(d / beta): Claim B.2.
        batches: Batches k = log of 2 / beta to the base 4 / 3: Corollary B.3.
        batch_size: Records of each batch, 32 (chi2 + 1) d ln(2 d k / beta) / epsilon, of which each
            is in the sample with probability epsilon / 4.

    Examples:
        >>> from hdp_fast import parity
        >>> parity.paper_spanning(8, beta=0.05, chi2=1.0, epsilon=0.5)
        PaperSpanning(uniform=59, source=325, batches=13, batch_size=8534)
    """

    uniform: int
    source: int
    batches: int
    batch_size: int


def paper_sample_size(d: int, *, alpha: float, epsilon: float) -> int:
    """Computes the number of records with which Algorithm A succeeds with probability 1/4.

    Args:
        d: Number of unknown bits, at least 1.
        alpha: Error that is to be promised, in (0, 1/2].
        epsilon: Privacy parameter of each record, in (0, 1/2].

    Returns:
        8 (d ln 2 + ln 4) / (epsilon alpha), rounded up.

    Raises:
        ParameterError: An argument lies outside its range, or `2**62` records are not enough.

    Guarantee:
        Of utility only: if some parity fits every record, and the records are drawn independently,
        then A releases a hypothesis that errs by at most alpha with probability at least 1/4.

    Source:
        Kasiviswanathan et al. 2011, Lemma 4.1.

    Examples:
        >>> from hdp_fast import parity
        >>> parity.paper_sample_size(8, alpha=0.1, epsilon=0.5)
        1110
        >>> parity.plan(8, alpha=0.1, beta=0.75, epsilon=0.5).n  # the same promise
        268
    """
    unknowns = positive_int("d", d, 1 << 32)
    width, loss = positive("alpha", alpha), positive("epsilon", epsilon)
    for name, value in (("alpha", width), ("epsilon", loss)):
        if value > _PAPER_EPSILON:
            refuse(name, value, "the paper's proof covers at most 1/2")
    return _count(8 * (unknowns * math.log(2) + math.log(4)) / (loss * width))


def paper_spanning(d: int, *, beta: float, chi2: float, epsilon: float) -> PaperSpanning:
    """Computes how many records Kohen and Sheffet print for a parity and a uniform target.

    Args:
        d: Number of unknown bits, at least 1.
        beta: Probability with which records may not span all bits, in (0, 1/2).
        chi2: Bound on the chi-squared divergence of the uniform target from the source, at least 0.
        epsilon: Privacy parameter of each record, in (0, 1/2].

    Returns:
        The numbers of records, each rounded up.

    Raises:
        ParameterError: An argument lies outside its range, or `2**62` records are not enough.

    Guarantee:
        Of utility only: so many records of each law span all bits except with probability beta; of
        the batches, all samples together. The paper writes independent for spanning.

    Source:
        Kohen and Sheffet 2022, Proposition B.1, Claim B.2 and Corollary B.3. `plan_transfer` needs
        a thousandth of the batches' records.

    Examples:
        >>> from hdp_fast import parity
        >>> made = parity.paper_spanning(1000, beta=0.05, chi2=0.35, epsilon=0.5)
        >>> f"{made.batches * made.batch_size:,}"
        '14,783,093'
        >>> goal = {"alpha": 0.1, "beta": 0.1, "epsilon": 0.5, "agents_epsilon": 1.0}
        >>> made.batches * made.batch_size > 1000 * parity.plan_transfer(
        ...     1000, chi2=0.35, **goal).curator.n
        True
    """
    unknowns, failure = positive_int("d", d, 1 << 32), probability("beta", beta)
    ratio, loss = 1 + finite_nonnegative("chi2", chi2), positive("epsilon", epsilon)
    if failure >= 0.5:
        refuse("beta", beta, "the paper states it below 1/2")
    if loss > _PAPER_EPSILON:
        refuse("epsilon", epsilon, "the paper's proof covers at most 1/2")
    batches = math.ceil(math.log(2 / failure) / math.log(4 / 3))
    each = 32 * ratio * unknowns * math.log(2 * unknowns * batches / failure) / loss
    return PaperSpanning(
        _count(unknowns * math.log2(unknowns / failure)),
        _count(4 * ratio * unknowns * math.log(unknowns / failure)),
        batches,
        _count(each),
    )


def _count(records: float) -> int:
    if not records < _MOST:
        raise ParameterError("d and the other numbers need more than 2**62 records")
    return math.ceil(records)


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
