"""Parameters of labelers, computed from what is known in public of their members."""

from __future__ import annotations

import math

from .._support.validate import nonnegative, positive, positive_int, probability, refuse
from ..exceptions import ParameterError
from ..stability.plans import log_below

_MOST = 1 << 40
_MOST_BINS = 1 << 16


def unstable_queries(
    queries: int, *, error: float, beta: float = 0.05, share: float = 1 / 3
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
    """
    m, most, allowed = (
        positive_int("queries", queries, _MOST),
        _check_share(share),
        probability("beta", beta),
    )
    mean = probability("error", error, zero=True)
    if mean >= most:
        raise ParameterError(f"error = {mean}, but it must be below share, {most:g}")
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
    stability: float, chunk: float, *, quality: float = 0.0, agreement: float = 0.75
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
        >>> labels.soft_bins(a, 1000)
        5
    """
    a, records = nonnegative("stability", stability), nonnegative("chunk", chunk)
    p = probability("agreement", agreement)
    near = probability("quality", quality, zero=True)
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
