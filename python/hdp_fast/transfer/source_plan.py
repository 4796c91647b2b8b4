"""The plan without agents: how few records of the source promise an error on the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._support.json_text import JsonText
from .._support.validate import finite_nonnegative, positive, probability, refuse
from ..exceptions import ParameterError
from .learner import check_private, composes, compute_sample_size

# The bounds are computed in floats; this much is given away for their rounding.
_SLACK = 1e-12


@dataclass(frozen=True, repr=False)
class SourcePlan(JsonText):
    """A plan that asks no agents: a private learner on the source keeps the promise alone.

    If some hypothesis of the class errs by at most `opt` on the source, then the learner finds one
    that errs there by at most `source_error`, and no hypothesis of that error errs by more than
    `error` on a target whose chi-squared divergence from the source is at most `chi2`. Run it with
    `learner.with_epsilon(plan.epsilon).learn(X, y)`.

    Attributes:
        n: Number of the curator's records.
        N: Number of agents, 0.
        error: Bound on the error on the target, in (0, 1).
        failure: Probability with which the error may be larger.
        source_error: Error on the source that is small enough.
        opt: Bound on the error of the best hypothesis of the class on the source, in [0, 1).
        chi2: Bound on the chi-squared divergence of target from source.
        epsilon: Privacy parameter of the curator's records, all of which the learner gets. The
            guarantee is pure.

    Source:
        The error on the target exceeds that on the source by the covariance of the density ratio
        and the loss, which is at most `sqrt(chi2 source_error (1 - source_error))` by Cauchy and
        Schwarz. Some target of two outcomes attains it.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(64, 2), epsilon=1.0)
        >>> goal = {"error": 0.3, "chi2": 0.35, "epsilon": 1.0}
        >>> plan = transfer.plan_source(learner, **goal)
        >>> plan.n, plan.N, round(plan.source_error, 3)
        (265, 0, 0.113)
    """

    n: int
    N: int
    error: float
    failure: float
    source_error: float
    opt: float
    chi2: float
    epsilon: float

    def __repr__(self) -> str:
        promise = f"error at most {self.error:g} on the target except with probability"
        fit = f"errs by at most {self.opt:g}" if self.opt else "is right"
        case = f"if some hypothesis {fit} on the source and chi2 is at most {self.chi2:g}"
        run = f"the learner alone, epsilon={self.epsilon:g}"
        return f"SourcePlan(n={self.n:,}, N=0, {run}: {promise} {self.failure:g}, {case})"


def plan_source(
    learner: Any,
    *,
    error: float,
    chi2: float,
    epsilon: float,
    beta: float = 0.05,
    opt: float = 0.0,
) -> SourcePlan:
    """Computes how many records of the source promise an error on the target, without agents.

    It assumes that one hypothesis of the class is right on the source, or errs there by at most
    opt. A private learner on the source alone then keeps the promise. Where no single hypothesis
    need fit, see `plan_boosted`; where nothing is assumed, `plan_certificate`.

    Args:
        learner: An object with sample_size(alpha, beta, epsilon), with_epsilon(epsilon) and
            privacy, such as an ExponentialLearner.
        error: Error on the target to promise, in (0, 1).
        chi2: Public bound, at least 0, on E_target[target / source] - 1, the chi-squared divergence
            of target from source.
        epsilon: Privacy parameter of the curator's records, above 0.
        beta: Probability with which the promise may fail, in (0, 1).
        opt: Bound on the least error of the class on the source, in [0, 1).

    Returns:
        The plan. Run it with `learner.with_epsilon(plan.epsilon).learn(X, y)` on plan.n records.

    Raises:
        ParameterError: A parameter is out of range, no error on the source above opt is small
            enough, or the learner has no sample_size.

    Guarantee:
        The run is epsilon-DP under "replace_one", as the learner is.

    Cost:
        Microseconds: one sample_size.

    Source:
        Cauchy and Schwarz bound the error on the target; see SourcePlan.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(8, 2), epsilon=1.0)
        >>> transfer.plan_source(learner, error=0.1, chi2=0.35, epsilon=1.0).n
        1042
    """
    target, divergence = probability("error", error), finite_nonnegative("chi2", chi2)
    own, failure = positive("epsilon", epsilon), probability("beta", beta)
    largest = validate_source_error(target, divergence, opt)
    if composes(learner):
        refuse("learner", learner, "it must be of a finite class, with sample_size")
    check_private(learner)
    margin = largest - opt
    n = compute_sample_size(learner, margin, failure, own, agnostic=False, opt=opt)
    return SourcePlan(n, 0, target, failure, largest, opt, divergence, own)


def validate_source_error(error: float, chi2: float, opt: float) -> float:
    """The largest error on the source that promises `error` on the target.

    Raises:
        ParameterError: The best hypothesis may already err by so much.
    """
    largest = bound_source_error(error, chi2)
    if not probability("opt", opt, zero=True) < largest:
        rule = (
            f"error = {error:g} at chi2 = {chi2:g} needs an error below {largest:.4g} on the source"
        )
        raise ParameterError(f"opt = {opt:g}, but {rule}")
    return largest


def bound_target_error(source_error: float, chi2: float) -> float:
    """The largest error on the target of a hypothesis with this error on the source.

    It holds for every loss in [0, 1] and every target of at most this chi-squared divergence, if
    labels are given in the same way on both sides.
    """
    a = source_error
    return min(1.0, a + math.sqrt(chi2 * a * (1 - a)) + _SLACK)


def bound_source_error(target_error: float, chi2: float) -> float:
    """The largest error on the source that bounds the error on the target by `target_error`.

    It is the smaller root of (b - a)^2 = chi2 a (1 - a), up to which the bound on the target grows.
    """
    b = target_error
    root = math.sqrt(chi2**2 + 4 * chi2 * b * (1 - b))
    return (1 - _SLACK) * 2 * b * b / (2 * b + chi2 + root)
