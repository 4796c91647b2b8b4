"""Steps of projected gradient descent, each direction with a length of its own."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ._trust_region import on_sphere

Floats = NDArray[np.float64]

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
