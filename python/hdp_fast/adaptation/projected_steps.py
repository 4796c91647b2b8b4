"""Descent on the objective of squared losses, the private part of each gradient with noise."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from .._support.types import Floats
from .discrepancies.trust_region import on_sphere
from .objective import PrivatePart, gradient
from .problem import Rows, Shape, Weighing
from .solver import moments, solved

_FLAT, _LEAST = 1e-12, 1e-300


class Moved(NamedTuple):
    """Where a step leads, and the squared norm of the gradient mapping there."""

    w: Floats
    mapping: float


@dataclass(eq=False)
class Steps:
    """Steps in a ball, of predictors (d,), or of (classes, d) as one vector.

    Attributes:
        bends: float64 (d,), above 0: what the objective is taken to bend by in each direction.
        directions: (d, d), orthonormal columns; None for the axes.
        radius: of the ball.
        reach: where it is finite, the root of the sum of all squares of gradients, noise included,
            divided by it is added to the bends, as AdaGrad does: too small ones do no harm then.
    """

    bends: Floats
    directions: Floats | None
    radius: float
    reach: float = math.inf
    _squares: Floats | float = dataclasses.field(default=0.0, init=False)

    @classmethod
    def of_length(cls, length: float, radius: float, d: int) -> Self:
        """The same length in all directions."""
        return cls(np.full(d, 1 / length), None, radius)

    def beside(self, spread: float, steps: int, coordinates: int, reach: float) -> Self:
        """The best for so many steps with noise, if the best predictor is so far from the start.

        spread: deviation of the noise on each coordinate of each gradient.
        """
        more = spread * math.sqrt(coordinates * steps) / reach
        return dataclasses.replace(self, bends=self.bends + more, reach=reach)

    def moved(self, w: Floats, gradient: Floats) -> Moved:
        """A step from w, and back into the ball if it leads out."""
        start, slopes = self._turned(w), self._turned(gradient)
        self._squares = self._squares + slopes**2
        metric = self.bends + np.sqrt(self._squares) / self.reach
        found = nearest_within(start - slopes / metric, metric, self.radius)
        mapping = float(np.square((start - found) * metric).sum())
        back = found if self.directions is None else found @ self.directions.T
        return Moved(back.reshape(w.shape), mapping)

    def _turned(self, w: Floats) -> Floats:
        rows = w.reshape(-1, len(self.bends))
        return rows if self.directions is None else rows @ self.directions


def nearest_within(w: Floats, metric: Floats, radius: float) -> Floats:
    """The point v of norm at most radius that has the least sum of metric (v - w)**2."""
    if np.linalg.norm(w) <= radius:
        return w
    _, found = on_sphere(metric * radius, metric * w, 0.0)
    return radius * found


def along(bends: Floats, radius: float) -> Steps:
    """Steps by what an objective bends at most, (d, d)."""
    values, directions = np.linalg.eigh(bends)
    # Where nothing bends a gradient is zero, or noise.
    return Steps(values.clip(_FLAT * max(values[-1], _LEAST)), directions, radius)


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
