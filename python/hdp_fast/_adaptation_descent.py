"""Descent on the objective of squared losses, the private part of each gradient with noise."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from ._adaptation_part import PrivatePart
from ._adaptation_pass import Weighing, gradient
from ._adaptation_rows import Rows, Shape
from ._adaptation_solver import solved, weighted_moments
from ._trust_region import on_sphere

Floats = NDArray[np.float64]

STEPS = 20
# The start is taken to be nearer to the best predictor than the radius, by this factor: measured.
_NEARER = 3


def descended(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    steps: int,
) -> Floats:
    """The mean of the last half of the iterates of noisy projected gradient descent, (d,).

    The first is the best for the public records alone. Steps are taken in the directions of the
    public second moments. In each the objective is taken to bend as if the private records had the
    same moments, and by what the noise asks for; where gradients, noise included, show that this is
    too little, the root of the sum of their squares makes up for it, as in AdaGrad.
    """
    part, weighing = private
    steepest = weighing.steepest(shape.residual)
    bends, directions = _public_bends(public, private)
    spread = part.deviation(steepest) * math.sqrt(len(bends) * steps)
    bends += _NEARER * spread / shape.radius
    w = directions.T @ solved([public], shape.radius)
    skipped, squares, mean = steps // 2, np.zeros_like(w), np.zeros_like(w)
    for step in range(steps):
        model = directions @ w
        moved = gradient(public[0], model, public[1])
        moved = directions.T @ (moved + part.noisy(model, weighing, steepest).gradient)
        squares += moved**2
        metric = bends + np.sqrt(squares) / shape.radius
        w = nearest_within(w - moved / metric, metric, shape.radius)
        if step >= skipped:
            mean += w / (steps - skipped)
    found: Floats = directions @ mean
    return found


def nearest_within(w: Floats, metric: Floats, radius: float) -> Floats:
    """The point v of norm at most radius that has the least sum of metric (v - w)**2."""
    if np.linalg.norm(w) <= radius:
        return w
    _, found = on_sphere(metric * radius, metric * w, 0.0)
    return radius * found


def _public_bends(
    public: tuple[Rows, Weighing], private: tuple[PrivatePart, Weighing]
) -> tuple[Floats, Floats]:
    """How the objective bends with every weight at its cap and moments as public; directions."""
    rows, weighing = public
    part, hidden = private
    shares = weighing.cap * len(rows.y), hidden.cap * len(part.rows.y)
    heaviest = weighing._replace(kappa_1=sys.float_info.max)
    moments = weighted_moments(rows, np.zeros(rows.X.shape[1]), heaviest)[:-1, :-1]
    values, vectors = np.linalg.eigh(moments * (2 * sum(shares) / shares[0]))
    return values.clip(0), vectors
