"""Descent on the objective of squared losses, the private part of each gradient with noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._adaptation_part import PrivatePart
from ._adaptation_pass import Weighing, gradient
from ._adaptation_rows import Rows, Shape
from ._adaptation_solver import moments, solved
from ._adaptation_steps import along

Floats = NDArray[np.float64]

STEPS = 60


def descended(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    steps: int,
    reach: float,
) -> Floats:
    """The mean of the iterates of noisy projected gradient descent, each by its number, (d,).

    The first is the best for the public records alone. The objective is taken to bend as if the
    private records had the public ones' second moments, and adaptive steps see where they have not.
    """
    part, weighing = private
    steepest = weighing.steepest(shape.residual)
    rows, known = public
    # All weights at their caps add up to 1.
    bends = 2 * moments(rows, 1 / len(rows.y))
    w = solved([public], shape.radius)
    spread = part.deviation(steepest)
    path = along(bends, shape.radius).beside(spread, steps, len(w), reach)
    mean = np.zeros_like(w)
    for step in range(1, steps + 1):
        moved = gradient(rows, w, known) + part.noisy(w, weighing, steepest).gradient
        w = path.moved(w, moved).w
        mean += w * (step * 2 / (steps * (steps + 1)))
    return mean
