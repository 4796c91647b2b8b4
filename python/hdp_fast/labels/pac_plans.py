"""Records that are enough for private answers and for a model trained on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._support.validate import nonnegative_int, positive_int, probability
from ..exceptions import ParameterError
from ..stability.plans import paper_members
from ..stability.tables import HazardTable, VoteTable
from .label_plans import unstable_queries

_MOST = 1 << 40


@dataclass(frozen=True, kw_only=True)
class LearningPlan:
    """What a labeler needs for answers that are right, or a model that is.

    Attributes:
        queries: public points to be labeled.
        max_unstable: number of unstable queries that is not reached.
        table: the one of those that fit that needs fewer members.
        k: members.
        k_paper: members that the paper's Algorithm 4 asks for.
        chunk: records of each member.
        n: private records, k times chunk.
        error: of answers, the largest share of queries that are not answered rightly; of a model,
            its error on the distribution.
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
    """Records for so many answers of a PrivateLabeler with two classes.

    vc: VC dimension of the class that members minimize the empirical error over, at least 1.
    queries: m points of the distribution of the records. alpha: how far members may be above opt.
    beta: failure probability of everything together, a quarter for the training of all members, a
    quarter for the number of unstable queries, half for the table's coins. opt: the least error of
    the class, or a public bound on it; None where some hypothesis makes no error. share: as
    unstable_queries.

    Guarantee: with probability 1 - beta the labeler answers all but fewer than `max_unstable`
        queries with their labels, and does not end before. Privacy is the table's, whatever holds.
    Raises: ParameterError.
    Cost: as the tables' designs.
    Source: Bassily, Thakkar and Thakurta 2018, Theorems 4.3 and 4.4, with constants: unstable
        queries by unstable_queries, k = ceil((2 J + 1) / (1 - 2 share)); for the members Anthony
        and Bartlett 1999, Theorems 4.2 and 4.8.
    """
    dimension, m = positive_int("vc", vc, 1 << 30), positive_int("queries", queries, _MOST)
    near, failing = probability("alpha", alpha), probability("beta", beta)
    least = 0.0 if opt is None else probability("opt", opt, zero=True)
    error = least + near
    if error >= share:
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
    """Public points and private records for the model of a PrivateLearner with two classes.

    vc, opt, share: as plan_answers, of members and of the final learner. alpha: how far members and
    the final model may be above the best. beta: failure probability, a quarter for the final model.

    A hypothesis whose error is opt errs on the answers with probability opt + w at most, w the
    probability of an answer that is wrong or random, and what is learnt from them errs on the
    labels with w more at most: opt + alpha + 2 w, w <= (opt + alpha) / share + beta / (2 m).

    Guarantee: with probability 1 - beta the model's error is at most `error`, where bottoms become
        random labels. Privacy is the table's, whatever holds.
    Raises: ParameterError, also where the bound is no less than 1.
    Cost: as the tables' designs.
    Source: Bassily, Thakkar and Thakurta 2018, Theorems 4.6 and 4.7, with constants.
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
    """Records with which the least empirical error is within alpha of the least error.

    vc: VC dimension, at least 1; of a finite class also the binary logarithm of its size, rounded
    up. alpha, beta: in (0, 1). agnostic: False where some hypothesis makes no error.

    Raises: ParameterError.
    Cost: constant.
    Source: Anthony and Bartlett 1999, Neural Network Learning, Theorem 4.2: then 4 (2 e n / vc)**vc
        exp(-alpha**2 n / 32) <= beta. Where some hypothesis makes no error Theorem 4.8, with
        binary logarithms: then 2 (2 e n / vc)**vc 2**(-alpha n / 2) <= beta.
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
