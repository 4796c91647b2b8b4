"""Chi-squared divergences of a target from a source, and the plan without agents they allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import JsonText
from .._support.types import Floats
from .._support.validate import array, finite_nonnegative, positive, probability, refuse
from ..exceptions import ParameterError, ShapeError
from .learner import check_private, composes, compute_sample_size

# The bounds are computed in floats; this much is given away for their rounding.
_SLACK = 1e-12


def chi2_finite(target: ArrayLike, source: ArrayLike) -> float:
    """Computes the chi-squared divergence of target from source on finitely many outcomes.

    The divergence is the sum of `target**2 / source`, minus 1.

    Args:
        target: Probabilities of shape (k,), each at least 0 and summing to 1 up to 1e-9.
        source: Probabilities of the same k outcomes.

    Returns:
        The divergence, at least 0; inf where the source lacks an outcome that the target has.

    Raises:
        ShapeError: An argument has not one dimension, is empty, or the shapes differ.
        ParameterError: The entries are not probabilities that sum to 1.

    Cost:
        O(k).

    Source:
        Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> from hdp_fast import transfer
        >>> round(transfer.chi2_finite([0.5, 0.5], [0.25, 0.75]), 4)
        0.3333
        >>> transfer.chi2_finite([0.5, 0.5], [1, 0])
        inf
    """
    p, q = _validate_law("target", target), _validate_law("source", source)
    if p.shape != q.shape:
        rule = "they must list the same outcomes"
        raise ShapeError(f"target has shape {p.shape} and source {q.shape}, but {rule}")
    if (p[q == 0] > 0).any():
        return math.inf
    support = q > 0
    # As a sum of squares it is never negative.
    return float((((p - q)[support]) ** 2 / q[support]).sum())


def chi2_gaussians(
    target_mean: ArrayLike,
    target_covariance: ArrayLike,
    source_mean: ArrayLike,
    source_covariance: ArrayLike,
) -> float:
    """Computes the chi-squared divergence of one Gaussian from another.

    Args:
        target_mean: Mean of the target, of shape (d,).
        target_covariance: Covariance of the target: a symmetric, positive definite matrix of shape
            (d, d), or its diagonal of shape (d,).
        source_mean: Mean of the source, of shape (d,).
        source_covariance: Covariance of the source, in either of the two forms.

    Returns:
        The divergence. It is inf where the tails of the target are too heavy, that is unless `2
        T**-1 - S**-1` is positive definite for the covariances T and S, and where it is too large
        for a float.

    Raises:
        ShapeError: A mean has not one dimension, the means have different lengths, or a covariance
            has neither shape.
        ParameterError: An entry is not a finite real number, or a covariance is not symmetric or
            has an eigenvalue that is not above 0.

    Cost:
        `O(d**3)`.

    Source:
        The integral of `target**2 / source` in closed form. Kohen and Sheffet 2022, Section 5,
        gives it for diagonals and means 0.

    Examples:
        >>> from hdp_fast import transfer
        >>> round(transfer.chi2_gaussians([0.0], [1.0], [0.5], [1.0]), 4)  # exp(0.5**2) - 1
        0.284
        >>> transfer.chi2_gaussians([0.0], [2.0], [0.0], [1.0])  # the target's tails are too heavy
        inf
    """
    means = [
        _validate_vector(name, value) for name, value in _pair(target_mean, source_mean, "mean")
    ]
    if means[0].shape != means[1].shape:
        rule = "they must have the same length"
        raise ShapeError(f"the means have shapes {means[0].shape} and {means[1].shape}, but {rule}")
    covariances = [
        (name, _validate_covariance(name, value, means[0].size))
        for name, value in _pair(target_covariance, source_covariance, "covariance")
    ]
    (target, log_target), (source, log_source) = [_invert(*named) for named in covariances]
    mixed = 2 * target - source
    values, vectors = np.linalg.eigh(mixed)
    if values.min() <= 0:
        return math.inf
    # Means so far apart that a product overflows are infinitely far apart for floats.
    with np.errstate(over="ignore", invalid="ignore"):
        gap = source @ (means[0] - means[1])
        # Completing the square, with the target's mean as origin.
        gain = gap @ (vectors / values) @ (vectors.T @ gap)
        gain += (means[0] - means[1]) @ gap
    log_ratio = float(log_target - (log_source + np.log(values).sum()) / 2 + gain / 2)
    try:
        return math.inf if math.isnan(log_ratio) else math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def _pair(target: ArrayLike, source: ArrayLike, what: str) -> list[tuple[str, ArrayLike]]:
    return [(f"target_{what}", target), (f"source_{what}", source)]


def _validate_finite(name: str, value: ArrayLike) -> Floats:
    values = array(name, value)
    if values.dtype.kind not in "buif" or not np.isfinite(values).all():
        raise ParameterError(f"{name} must hold finite real numbers")
    return values.astype(np.float64)


def _validate_vector(name: str, value: ArrayLike) -> Floats:
    values = _validate_finite(name, value)
    if values.ndim != 1 or not values.size:
        rule = "it must have one dimension and at least one entry"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    return values


def _validate_law(name: str, value: ArrayLike) -> Floats:
    values = _validate_vector(name, value)
    # All at most 1, so that no sum overflows.
    if not 0 <= values.min() <= values.max() <= 1 + 1e-9 or abs(values.sum() - 1) > 1e-9:
        raise ParameterError(f"{name} must hold probabilities that sum to 1")
    return values


def _validate_covariance(name: str, value: ArrayLike, d: int) -> Floats:
    """A covariance or its diagonal, checked before any diagonal is filled up to a matrix."""
    values = _validate_finite(name, value)
    if values.shape not in ((d,), (d, d)):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({d},) or ({d}, {d})")
    return values


def _invert(name: str, values: Floats) -> tuple[Floats, float]:
    """The inverse of a covariance, and the logarithm of the determinant of that inverse."""
    full = np.diag(values) if values.ndim == 1 else values
    if not np.allclose(full, full.T):
        raise ParameterError(f"{name} must be symmetric")
    eigenvalues, vectors = np.linalg.eigh(full)
    if eigenvalues.min() <= 0:
        least = eigenvalues.min()
        raise ParameterError(f"{name} has eigenvalue {least:g}, but all must be above 0")
    return (vectors / eigenvalues) @ vectors.T, float(-np.log(eigenvalues).sum())


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
