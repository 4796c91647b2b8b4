"""Descent on the objective of squared losses, the private part of each gradient with noise."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from ._adaptation_part import PrivatePart
from ._adaptation_pass import Weighing, gradient
from ._adaptation_rows import Rows, Shape
from ._adaptation_solver import solved, weighted_moments, within_ball

Floats = NDArray[np.float64]

_FEWEST, _ENOUGH = 20, 1000


def useful_steps(shape: Shape, spread: float, d: int) -> int:
    """How many steps of the length that descends for certain the noise lets move.

    spread: deviation of the noise if there were a single step.
    """
    longest = 1 / (2 * shape.norm_bound**2)
    wanted = shape.radius / (spread * math.sqrt(2 * d) * longest)
    return min(max(math.ceil(wanted), _FEWEST), _ENOUGH)


def descended(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    steps: int,
) -> Floats:
    """The mean of the last half of the iterates of noisy projected gradient descent, (d,).

    The first is the best for the public records alone.
    """
    part, weighing = private
    steepest = weighing.steepest(shape.residual)
    w = solved([public], shape.radius)
    length = _length(public, private, shape, steps)
    skipped, mean = steps // 2, np.zeros_like(w)
    for step in range(steps):
        moved = gradient(public[0], w, public[1])
        moved = moved + part.noisy(w, weighing, steepest).gradient
        w = within_ball(w - length * moved, shape.radius)
        if step >= skipped:
            mean += w / (steps - skipped)
    return mean


def _length(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    steps: int,
) -> float:
    """No longer than descends for certain, nor than the noise makes best."""
    rows, weighing = public
    part, hidden = private
    d = rows.X.shape[1]
    # Every weight at its cap: the most that the objective can bend.
    heaviest = weighing._replace(kappa_1=sys.float_info.max)
    known = weighted_moments(rows, np.zeros(d), heaviest)[:-1, :-1]
    bend = float(np.linalg.eigvalsh(known)[-1])
    bend += hidden.cap * len(part.rows.y) * shape.norm_bound**2
    spread = part.deviation(hidden.steepest(shape.residual))
    return min(1 / (2 * bend), shape.radius / (spread * math.sqrt(2 * d * steps)))
