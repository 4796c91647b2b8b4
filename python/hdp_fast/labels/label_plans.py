"""Numbers that labelers ask for, from what is known in public of their members."""

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
    """The `max_unstable` of a labeler whose members err with a known probability.

    queries: independent points of one distribution. error: an upper bound on the members' average
    error on it, known in public, not measured on the private records. beta: probability with which
    there may be more. share: a query counts as unstable if more than this share of the members errs
    on it, above error and below 1/2. On all others at least (1 - share) k of k members are right,
    which (2 J + 1) / (1 - 2 share) members turn into the J votes of distance that a table asks for.

    Returns the smallest T (where beta is at most 1/4) that unstable queries alone do not reach,
    whatever the number of members: one query is unstable with probability at most error / share,
    by Markov's inequality, and so Pr[Bin(queries, error / share) >= T] <= beta. Utility alone
    depends on it.

    Raises: ParameterError.
    Cost: milliseconds.
    Source: Bassily, Thakkar and Thakurta 2018, Corollary 4.1, with the tail itself in the
        place of a bound on the mistakes of every single member, times 3.
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
    """The most bins that members of a stable learner agree on.

    stability: a, the learner's on-average stability: replacing one record of a chunk changes its
    score by at most a in the root of the mean square. chunk: records of each member, n'. quality:
    nu, how far from 0 or 1 the expected score of a query may lie. agreement: of the plan.

    A member's score is within t = a sqrt(n' / (2 (1 - agreement))) of its expectation with
    probability agreement, by the inequalities of Efron and Stein, and of Chebyshev, if the learner
    tosses no coins or its expected score does not depend on them. Bins of width 4 t hold all of
    those scores in a bin or a shifted one, and of width nu + t in the first or the last one.

    Raises: ParameterError, also where members agree on no two bins.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Lemma 5.8 and Theorem 5.14, without the detour that
        makes the printed t four times as long.
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
    """The stability of scores by SGD in whole passes over a chunk, as soft_bins takes it.

    passes: each uses every record once, in any order that does not depend on the records. chunk:
    records of each member, n'. step_size: of all steps. clip_norm: bounds the norm of every
    record's gradient, without what all records share, such as a penalty. smoothness,
    strong_convexity: of the objective of one record with all of that, which must be convex, or
    strongly convex. batch_size: by which a step divides its sum of gradients, a last and smaller
    one as well. slope: by how much the score of a query may change when the weights move by 1: R /
    4 for the logistic function of the product with a query of norm R.

    A gradient step brings two weight vectors together by 1 - step_size strong_convexity, or at
    least not apart. The step with the record that was replaced moves them apart by 2 step_size
    clip_norm / batch_size. In the root of the mean square over all records that passes add up to
    what is returned. A projection on a convex set, and the mean of all iterates, change no more.

    Returns a, in units of the score.

    Raises: ParameterError, also for a step so long that it may bring weights apart.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, the section on SGD after Theorem 5.14; Hardt, Recht
        and Singer 2015, Theorems 3.8 and 3.9, whose bounds are of the mean and not of the root of
        the mean square that Definition 5.7 asks for.
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
    # Whole batches alone: fewer steps bound more.
    steps = n // b
    within = _powers(_lost(eta * curved, 2), steps) / steps
    return apart * math.sqrt(within) * _powers(_lost(eta * curved, steps), E)


def _lost(share: float, times: int) -> float:
    """The share that is lost if this share is lost so many times."""
    return 1.0 if share >= 1 else -math.expm1(times * math.log1p(-share))


def _powers(lost: float, terms: int) -> float:
    """The sum of (1 - lost)**i for i < terms."""
    return terms if lost == 0 else _lost(lost, terms) / lost


def _check_share(value: float) -> float:
    share = probability("share", value)
    if share >= 0.5:
        refuse("share", value, "it must be below 1/2")
    return share
