"""The minimum of the convex objective without noise, by majorization and minimization."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._support.types import Floats
from .._support.validate import LEAST
from .discrepancies.moments import BLOCK
from .discrepancies.trust_region import move_to_sphere
from .objective import evaluate
from .problem import SampleWeighting, ScaledRecords

WeightedRecords = tuple[ScaledRecords, SampleWeighting]

# The iterations end when one lowers the objective by no more than this share of it.
_RELATIVE_TOLERANCE = 1e-12
_MOST_ITERATIONS = 1000
# Directions whose eigenvalues are below this share of the largest count as free of records:
# nothing is learned in them.
_LEAST_EIGENVALUE = 1e-12
# The damping is divided by this after an iteration that lowered the objective; its least value.
_DAMPING_FACTOR, _LEAST_DAMPING = 8.0, 1e-3


def minimize(domains: Sequence[WeightedRecords], radius: float) -> Floats:
    """Return the predictor of norm at most radius with the least objective, (d,). Not private.

    The objective is convex. Each iteration minimizes a quadratic model of it. The majorizer
    (damping 1) guarantees descent but converges slowly where many records lose weight; the Newton
    model (damping 0) converges fast near the optimum. Damping is reduced after each iteration that
    lowers the objective, and set back to 1 after one that does not.
    """
    w, damping = np.zeros(domains[0][0].X.shape[1]), 1.0
    value = evaluate_objective(domains, w)
    for _ in range(_MOST_ITERATIONS):
        candidate = majorize_minimize_step(domains, w, radius, damping)
        lower = evaluate_objective(domains, candidate)
        if lower < value:
            damping = max(damping / _DAMPING_FACTOR, _LEAST_DAMPING)
            w, decrease, value = candidate, value - lower, lower
            if decrease <= _RELATIVE_TOLERANCE * value:
                break
        elif damping == 1:
            break
        else:
            damping = 1.0
    return w


def evaluate_objective(domains: Sequence[WeightedRecords], w: Floats) -> float:
    """Return the objective of all domains, up to a constant."""
    return sum(evaluate(records, w, weighting).objective for records, weighting in domains)


def majorize_minimize_step(
    domains: Sequence[WeightedRecords], w: Floats, radius: float, damping: float = 1.0
) -> Floats:
    """Return the minimum in the ball of a quadratic that touches the objective at w.

    damping: 1 for a quadratic that is nowhere below the objective, the objective at the weights
    that are best for w; 0 for the quadratic of its second derivative.
    """
    d = len(w)
    curvature, right_side = np.zeros((d, d)), np.zeros(d)
    for records, weighting in domains:
        hessian, gradient = _half_quadratic(records, w, weighting, damping)
        curvature += hessian
        right_side += hessian @ w - gradient
    values, vectors = np.linalg.eigh(curvature * radius**2)
    kept = values > _LEAST_EIGENVALUE * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    _, coordinates = move_to_sphere(values, vectors.T @ (radius * right_side), 0.0)
    return project_to_ball(radius * (vectors @ coordinates), radius)


def _half_quadratic(
    records: ScaledRecords, w: Floats, weighting: SampleWeighting, damping: float
) -> tuple[Floats, Floats]:
    """Return half the model Hessian of a domain at w, and half its gradient."""
    d = len(w)
    hessian, gradient = np.zeros((d, d)), np.zeros(d)
    for X, y in _blocks(records):
        residuals = X @ w - y
        losses = residuals**2 + weighting.offset
        shares = np.sqrt(weighting.kappa_1 / np.maximum(losses, weighting.kappa_1))
        # The derivative of share * residual; it is 1 for losses up to kappa_1.
        newton = np.where(shares < 1, shares * (weighting.offset / np.maximum(losses, LEAST)), 1.0)
        hessian += (X.T * (weighting.cap * (damping * shares + (1 - damping) * newton))) @ X
        gradient += (weighting.cap * shares * residuals) @ X
    return hessian, gradient


def second_moments(records: ScaledRecords, cap: float) -> Floats:
    """Return the sum of cap x x', (d, d)."""
    d = records.X.shape[1]
    return sum((cap * (X.T @ X) for X, _ in _blocks(records)), np.zeros((d, d)))


def _blocks(records: ScaledRecords) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, len(records.y), BLOCK):
        X = records.X[start : start + BLOCK] * records.unit
        yield X.astype(np.float64, copy=False), records.y[start : start + BLOCK]


def project_to_ball(w: Floats, radius: float) -> Floats:
    """Return the nearest predictor of norm at most radius."""
    return w * (radius / max(radius, float(np.linalg.norm(w))))
