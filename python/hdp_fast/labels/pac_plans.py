"""Numbers of records that are enough for private answers, and for a model trained on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._support.validate import finite_number, nonnegative_int, positive_int, probability
from ..exceptions import ParameterError
from ..stability.plans import paper_members
from ..stability.tables import HazardTable, VoteTable
from .label_plans import unstable_queries

_MOST = 1 << 40


@dataclass(frozen=True, kw_only=True)
class LearningPlan:
    """What a labeler needs so that its answers, or a model trained on them, are right.

    Attributes:
        queries: Number of public points to be labeled.
        max_unstable: Number of unstable queries that is not reached.
        table: The VoteTable or HazardTable, whichever needs fewer members.
        k: Number of members.
        k_paper: Number of members that the paper's Algorithm 4 asks for.
        chunk: Number of records of each member.
        n: Number of private records, k times chunk.
        error: For answers, the largest share of queries that are not answered rightly. For a model,
            its error on the distribution.

    Examples:
        >>> from hdp_fast import labels
        >>> chosen = labels.plan_answers(3, 100, alpha=0.05, epsilon=1.0, delta=1e-6)
        >>> chosen.k, chosen.chunk, chosen.n == chosen.k * chosen.chunk
        (543, 3211, True)
    """

    queries: int
    max_unstable: int
    table: HazardTable | VoteTable
    k: int
    k_paper: int
    chunk: int
    n: int
    error: float


def plan_answers(
    vc: int,
    queries: int,
    *,
    alpha: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    opt: float | None = None,
    share: float = 1 / 3,
) -> LearningPlan:
    """Computes how many records a PrivateLabeler with two classes needs for right answers.

    Args:
        vc: VC dimension of the class in which members minimize the empirical error, at least 1.
        queries: Number m of public points, drawn from the distribution of the records; 1 to
            `2**40`.
        alpha: Excess error of members over opt, in (0, 1), such that opt + alpha is below share.
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1).
        beta: Failure probability of everything together, in (0, 1): a quarter for the training of
            all members, a quarter for the number of unstable queries, and half for the table's
            coins.
        opt: The least error of the class, or a public bound on it; None if some hypothesis makes no
            error.
        share: Share of members that err on an unstable query, as unstable_queries takes it; in (0,
            1/2).

    Returns:
        A LearningPlan.

    Raises:
        ParameterError: A parameter is out of range, or no table keeps the promise.

    Guarantee:
        With probability 1 - beta the labeler answers all queries but fewer than `max_unstable` with
        their labels, and does not end before. Privacy is that of the table, whether or not the
        assumptions hold.

    Cost:
        That of the designs of the tables.

    Source:
        Bassily, Thakkar and Thakurta 2018, Theorems 4.3 and 4.4, with constants: `max_unstable` by
        unstable_queries, and k = ceil((2 J + 1) / (1 - 2 share)). For the members, Anthony and
        Bartlett 1999, Theorems 4.2 and 4.8.

    Examples:
        >>> from hdp_fast import labels
        >>> chosen = labels.plan_answers(3, 100, alpha=0.05, epsilon=4.0, delta=1e-6)
        >>> chosen.n, chosen.max_unstable, chosen.error
        (487971, 24, 0.23)
    """
    dimension, m = positive_int("vc", vc, 1 << 30), positive_int("queries", queries, _MOST)
    near, failing = probability("alpha", alpha), probability("beta", beta)
    least = 0.0 if opt is None else probability("opt", opt, zero=True)
    error = least + near
    if error >= finite_number("share", share):
        raise ParameterError(f"opt + alpha = {error:g}, but it must be below share, {share:g}")
    T = unstable_queries(m, error=error, beta=failing / 4, share=share)
    goal = {"epsilon": epsilon, "delta": delta, "beta": failing}
    table, k = min(
        ((table, math.ceil((2 * table.J + 1) / (1 - 2 * share))) for table in _tables(T, m, goal)),
        key=lambda pair: pair[1],
    )
    chunk = pac_sample_size(dimension, alpha=near, beta=failing / 4 / k, agnostic=opt is not None)
    return LearningPlan(
        queries=m,
        max_unstable=T,
        table=table,
        k=k,
        k_paper=paper_members(T, m, epsilon=epsilon, delta=delta, beta=failing),
        chunk=chunk,
        n=k * chunk,
        error=min(1.0, (T - 1) / m),
    )


def plan_learning(
    vc: int,
    *,
    alpha: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    opt: float | None = None,
    share: float = 1 / 3,
) -> LearningPlan:
    """Computes how many public points and records the model of a PrivateLearner needs.

    The model has two classes. Let w be the probability of an answer that is wrong or random; it is
    at most (opt + alpha) / share + beta / (2 m). A hypothesis of error opt errs on the answers with
    probability at most opt + w. What is learned from the answers errs on the labels with
    probability at most w more. Hence the error of the model is at most opt + alpha + 2 w.

    Args:
        vc: VC dimension of the class of both the members and the final learner, at least 1.
        alpha: Excess error of members over opt, and of the final model over the best hypothesis; in
            (0, 1).
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1).
        beta: Failure probability of everything together, in (0, 1): a quarter for the final model,
            and the rest for the answers.
        opt: The least error of the class, or a public bound on it; None if some hypothesis makes no
            error.
        share: Share of members that err on an unstable query, as unstable_queries takes it; in (0,
            1/2).

    Returns:
        A LearningPlan.

    Raises:
        ParameterError: A parameter is out of range, no table keeps the promise, or the bound on the
            error is at least 1.

    Guarantee:
        With probability 1 - beta the error of the model is at most `error`, where bottoms become
        random labels. Privacy is that of the table, whether or not the assumptions hold.

    Cost:
        That of the designs of the tables: a second for tens of thousands of points at epsilon = 1.

    Source:
        Bassily, Thakkar and Thakurta 2018, Theorems 4.6 and 4.7, with constants.

    Examples:
        >>> from hdp_fast import labels
        >>> chosen = labels.plan_learning(1, alpha=0.1, epsilon=8.0, delta=1e-6)
        >>> chosen.queries, chosen.k, chosen.chunk, round(chosen.error, 2)
        (98198, 2091, 1027, 0.7)
    """
    dimension, near = positive_int("vc", vc, 1 << 30), probability("alpha", alpha)
    failing, least = probability("beta", beta), 0.0 if opt is None else opt
    m = pac_sample_size(dimension, alpha=near, beta=failing / 4, agnostic=True)
    answers = plan_answers(
        dimension,
        m,
        alpha=near,
        epsilon=epsilon,
        delta=delta,
        beta=3 * failing / 4,
        opt=opt,
        share=share,
    )
    wrong = (least + near) / share + failing / (2 * m)
    error = least + near + 2 * wrong
    if error >= 1:
        rule = f"the error that it promises must be below 1, and it is {error:.3g}"
        raise ParameterError(f"alpha = {near:g}, but {rule}")
    return LearningPlan(**{**vars(answers), "error": error})


def pac_sample_size(vc: int, *, alpha: float, beta: float, agnostic: bool) -> int:
    """Computes how many records bring the least empirical error to within alpha of the least error.

    Args:
        vc: VC dimension, at least 1. For a finite class also the binary logarithm of its size,
            rounded up.
        alpha: Excess error, in (0, 1).
        beta: Failure probability, in (0, 1).
        agnostic: False if some hypothesis makes no error, True otherwise.

    Returns:
        The number of records.

    Raises:
        ParameterError: A parameter is out of range.

    Source:
        Anthony and Bartlett 1999, Neural Network Learning, Theorem 4.2: for this n,
        `4 (2 e n / vc)**vc exp(-alpha**2 n / 32)` is at most beta. If some hypothesis makes no
        error Theorem 4.8, with binary logarithms: `2 (2 e n / vc)**vc 2**(-alpha n / 2)` is at most
        beta.

    Examples:
        >>> from hdp_fast import labels
        >>> labels.pac_sample_size(3, alpha=0.1, beta=0.05, agnostic=False)
        1042
        >>> labels.pac_sample_size(3, alpha=0.1, beta=0.05, agnostic=True)
        211885
    """
    dimension = nonnegative_int("vc", vc)
    if not dimension:
        raise ParameterError("vc = 0, but it must be at least 1")
    a, b = probability("alpha", alpha), probability("beta", beta)
    if agnostic:
        return math.ceil(64 / a**2 * (2 * dimension * math.log(12 / a) + math.log(4 / b)))
    return math.ceil(4 / a * (dimension * math.log2(12 / a) + math.log2(2 / b)))


def _tables(T: int, m: int, goal: dict[str, float]) -> list[HazardTable | VoteTable]:
    vote = VoteTable.design(m, **goal)
    return [vote] if m < T else [vote, HazardTable.design(T, m, **goal)]
