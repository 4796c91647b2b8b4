"""Numbers that follow from public facts: parameters of labelers, and how many records they need."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._support.notes import note
from .._support.types import VARIANTS, Variant
from .._support.validate import (
    finite_number,
    nonnegative,
    nonnegative_int,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..exceptions import ParameterError
from ..stability.plans import log_below
from ..stability.printed import paper_members
from ..stability.tables import HazardTable, VoteTable

_MOST = 1 << 40
_MOST_BINS = 1 << 16
# Nobody has more records of people than this; the United Nations' estimate for 2025, rounded up.
_PEOPLE = 8.3e9


def unstable_queries(
    queries: int,
    *,
    error: float,
    beta: float = 0.05,
    share: float = 1 / 3,
    variant: Variant = "tight",
) -> int:
    """Computes the `max_unstable` of a labeler whose members err with a known probability.

    A query counts as unstable if more than the given share of the members errs on it. Its
    probability is at most error / share, by Markov's inequality, whatever the number of members.
    The result T satisfies Pr[Bin(queries, error / share) >= T] <= beta, and it is the smallest such
    number where beta is at most 1/4. Only utility depends on it.

    On every stable query at least (1 - share) k of k members are right. A table asks for J votes of
    distance, for which (2 J + 1) / (1 - 2 share) members are then enough.

    Args:
        queries: Number of queries, independent points of one distribution; 1 to `2**40`.
        error: Upper bound on the average error of the members on that distribution, in [0, share).
            It must be known in public, not measured on the private records.
        beta: Probability with which T or more queries may be unstable, in (0, 1).
        share: Share of members, in (0, 1/2).
        variant: "tight", or "paper" for the printed T = (error m + sqrt(m ln(m / beta) / 2)) /
            share, rounded up. It bounds the mistakes of every single member, each of whose errors
            is at most `error`, and holds where there are no more members than queries.

    Returns:
        T, the number of unstable queries that is not reached.

    Raises:
        ParameterError: A parameter is out of range.

    Cost:
        Milliseconds.

    Source:
        Bassily, Thakkar and Thakurta 2018, Corollary 4.1, with the binomial tail itself instead of
        3 times a bound on the mistakes of every single member.

    Examples:
        >>> from hdp_fast import labels
        >>> [labels.unstable_queries(1000, error=error) for error in (0.0, 0.01, 0.05)]
        [1, 40, 170]
        >>> labels.unstable_queries(1000, error=0.05, variant="paper")
        362
    """
    printed = one_of("variant", variant, VARIANTS) == "paper"
    m, most, allowed = (
        positive_int("queries", queries, _MOST),
        _check_share(share),
        probability("beta", beta),
    )
    mean = probability("error", error, zero=True)
    if mean >= most:
        raise ParameterError(f"error = {mean}, but it must be below share, {most:g}")
    if printed:
        return math.ceil((mean * m + math.sqrt(m * (math.log(m) - math.log(allowed)) / 2)) / most)
    p = mean / most
    if -math.expm1(m * math.log1p(-p)) <= allowed:
        return 1
    # Pr[Bin(m, p) >= T] = Pr[Bin(m, 1 - p) < m - T + 1], which falls with T.
    least, enough = 2, m + 1
    while least < enough:
        middle = (least + enough) // 2
        if log_below(m - middle + 1, m, 1 - p) <= math.log(allowed):
            enough = middle
        else:
            least = middle + 1
    return enough


def soft_bins(
    stability: float,
    chunk: float,
    *,
    quality: float = 0.0,
    agreement: float = 0.75,
    variant: Variant = "tight",
) -> int:
    """Computes the largest number of bins that members of a stable learner agree on.

    The score of a member is within `t = a sqrt(chunk / (2 (1 - agreement)))` of its expectation
    with probability `agreement`, by the inequalities of Efron and Stein and of Chebyshev. This
    holds if the learner tosses no coins, or if its expected score does not depend on them. Bins of
    width 4 t hold all such scores in one bin or in one shifted bin. Bins of width quality + t hold
    them in the first or the last bin. The width is the larger of the two.

    Args:
        stability: The on-average stability a of the learner, at least 0: replacing one record of a
            chunk changes its score by at most a in the root of the mean square.
        chunk: Number of records of each member, at least 0.
        quality: The paper's nu, how far from 0 or 1 the expected score of a query may lie; in [0,
            1).
        agreement: The `agreement` of the labeler's plan, in (0, 1).
        variant: "tight", or "paper" for the printed width 16 a sqrt(2 chunk) + quality, at which
            the agreement is 3/4.

    Returns:
        The number of bins, 2 to 65,536.

    Raises:
        ParameterError: A parameter is out of range, or members agree on no two bins.

    Source:
        Bassily, Thakkar and Thakurta 2018, Lemma 5.8 and Theorem 5.14, without the detour that
        makes the printed t four times as long.

    Examples:
        >>> from hdp_fast import labels
        >>> task = {"step_size": 0.01, "clip_norm": 1.0, "smoothness": 1.25, "slope": 0.25}
        >>> a = labels.sgd_stability(2, 1000, batch_size=10, **task)
        >>> labels.soft_bins(a, 1000), labels.soft_bins(a / 4, 1000, variant="paper")
        (5, 5)
    """
    a, records = nonnegative("stability", stability), nonnegative("chunk", chunk)
    p = probability("agreement", agreement)
    near = probability("quality", quality, zero=True)
    if one_of("variant", variant, VARIANTS) == "paper":
        width = 16 * a * math.sqrt(2 * records) + near
    else:
        spread = a * math.sqrt(records / (2 * (1 - p)))
        width = max(4 * spread, near + spread)
    if width > 0.5:
        rule = "it must let members agree on bins of width 1/2"
        raise ParameterError(f"stability = {a:g}, but {rule}, and they need {width:g}")
    return _MOST_BINS if width * _MOST_BINS <= 1 else math.floor(1 / width)


def sgd_stability(
    passes: int,
    chunk: int,
    *,
    step_size: float,
    clip_norm: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    batch_size: int = 1,
    slope: float = 1.0,
) -> float:
    """Bounds the stability of scores by SGD in whole passes over a chunk, as soft_bins takes it.

    A gradient step brings two weight vectors together by the factor
    `1 - step_size * strong_convexity`, and never apart. The step with the record that was replaced
    moves them apart by at most `2 step_size clip_norm / batch_size`. The result adds this up over
    the passes, in the root of the mean square over all records. A projection on a convex set, or
    the mean of all iterates, does not increase it.

    Args:
        passes: Number of passes, 1 to `2**40`. Each one uses every record once, in any order that
            does not depend on the records.
        chunk: Number of records of each member, 1 to `2**40`.
        step_size: Length of all steps, above 0, at most `2 / (smoothness + strong_convexity)`.
        clip_norm: Bound on the norm of every record's gradient, above 0. What all records share,
            such as a penalty, does not count.
        smoothness: Smoothness of the objective of one record, penalties included, which must be
            convex; above 0.
        strong_convexity: Strong convexity of the same objective, from 0 to smoothness.
        batch_size: Divisor of the sum of gradients in a step, 1 to chunk. A last, smaller batch has
            the same divisor.
        slope: Bound on the change of a query's score when the weights move by 1, above 0. It is R /
            4 for the logistic function of the product with a query of norm R.

    Returns:
        The stability a, in units of the score.

    Raises:
        ParameterError: A parameter is out of range, or the step is so long that it may move weights
            apart.

    Source:
        Bassily, Thakkar and Thakurta 2018, the section on SGD after Theorem 5.14; Hardt, Recht and
        Singer 2015, Theorems 3.8 and 3.9, whose bounds are of the mean and not of the root of the
        mean square that Definition 5.7 asks for.

    Examples:
        >>> from hdp_fast import labels
        >>> task = {"step_size": 0.1, "clip_norm": 1.0, "smoothness": 1.25, "slope": 0.25}
        >>> round(labels.sgd_stability(5, 200, strong_convexity=1.0, **task), 4)
        0.0081
    """
    E, n = positive_int("passes", passes, _MOST), positive_int("chunk", chunk, _MOST)
    b, eta = positive_int("batch_size", batch_size, n), positive("step_size", step_size)
    rough, curved = (
        positive("smoothness", smoothness),
        nonnegative("strong_convexity", strong_convexity),
    )
    if curved > rough:
        raise ParameterError(f"strong_convexity = {curved:g}, but it must be at most smoothness")
    if eta * (rough + curved) > 2:
        rule = f"2 / (smoothness + strong_convexity) = {2 / (rough + curved):g}"
        raise ParameterError(f"step_size = {eta:g}, but it must be at most {rule}")
    apart = 2 * eta * positive("clip_norm", clip_norm) / b * positive("slope", slope)
    # Only whole batches are counted: the bound of fewer steps is larger.
    steps = n // b
    within = _powers(_lost(eta * curved, 2), steps) / steps
    return apart * math.sqrt(within) * _powers(_lost(eta * curved, steps), E)


def _lost(share: float, times: int) -> float:
    """The share that is lost when this share of the rest is lost in each of several steps."""
    return 1.0 if share >= 1 else -math.expm1(times * math.log1p(-share))


def _powers(lost: float, terms: int) -> float:
    """The sum of (1 - lost)**i for i < terms."""
    return terms if lost == 0 else _lost(lost, terms) / lost


def _check_share(value: float) -> float:
    share = probability("share", value)
    if share >= 0.5:
        refuse("share", value, "it must be below 1/2")
    return share


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
        A LearningPlan. A UtilityWarning says where it asks for more records than there are people.

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
    if k * chunk > _PEOPLE:
        most = f"there are {_PEOPLE:.1e} people on Earth: a larger alpha asks for fewer"
        note(f"the plan asks for n = {k * chunk:.1e} records, and {most}")
    return LearningPlan(
        queries=m,
        max_unstable=T,
        table=table,
        k=k,
        k_paper=paper_members(T, m, epsilon, delta, failing),
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
        A LearningPlan. A UtilityWarning says where it asks for more records than there are people.

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
