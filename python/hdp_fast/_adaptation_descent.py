"""Descent on the objective of squared losses, the private part of each gradient with noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_noise import Grid, Noise, grid, in_floats, on_integers
from ._adaptation_pass import Weighing, gradient, integer_gradient
from ._adaptation_rows import Rows, Shape, in_reals, on_grid
from ._adaptation_solver import second_moment, solved
from ._moments import Sample

Floats = NDArray[np.float64]

_FEWEST, _ENOUGH = 20, 1000


class PrivatePart(NamedTuple):
    """Private records, and the noise on what their gradients add up to.

    Attributes:
        rows: on the grid, or in reals where there is none.
        grid: of exact noise.
    """

    rows: Rows
    grid: Grid | None

    @classmethod
    def of(cls, sample: Sample, shape: Shape, noise: Noise) -> PrivatePart:
        """The records of a sample, as fine as the noise allows.

        Raises: ParameterError where that is too coarse.
        """
        if not noise.exact:
            return cls(in_reals(sample, shape.bounds), None)
        found = grid(noise, len(sample.y))
        return cls(on_grid(sample, shape.bounds, found), found)

    def noisy(
        self,
        w: Floats,
        weighing: Weighing,
        shape: Shape,
        noise: Noise,
        coins: np.random.Generator | None,
    ) -> Floats:
        """The gradient in w with noise of `noise.multiple` sensitivities, (d,)."""
        if self.grid is None:
            moved = sensitivity(weighing, shape)
            return in_floats(gradient(self.rows, w, weighing), moved, noise, coins)
        sums = integer_gradient(self.rows, w, weighing, self.grid, shape.residual)
        found = on_integers(sums, self.grid.sensitivity, noise, coins)
        return found * (sensitivity(weighing, shape) / self.grid.sensitivity)


def sensitivity(weighing: Weighing, shape: Shape) -> float:
    """How far replacing a record moves the gradient: twice its largest norm."""
    return 2 * weighing.cap * weighing.steepest(shape.residual) * shape.norm_bound


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
    noise: Noise,
    steps: int,
    coins: np.random.Generator | None,
) -> Floats:
    """The mean of the last half of the iterates of noisy projected gradient descent, (d,).

    The first is the best for the public records alone.
    """
    part, weighing = private
    w = solved([public], shape.radius)
    length = _length(public, private, shape, noise, steps)
    skipped, mean = steps // 2, np.zeros_like(w)
    for step in range(steps):
        moved = gradient(public[0], w, public[1])
        moved += part.noisy(w, weighing, shape, noise, coins)
        w = within_ball(w - length * moved, shape.radius)
        if step >= skipped:
            mean += w / (steps - skipped)
    return mean


def within_ball(w: Floats, radius: float) -> Floats:
    """The nearest predictor of norm at most radius."""
    return w * (radius / max(radius, float(np.linalg.norm(w))))


def _length(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    noise: Noise,
    steps: int,
) -> float:
    """No longer than descends for certain, nor than the noise makes best."""
    rows, weighing = public
    caps = np.full(len(rows.y), weighing.cap)
    known = float(np.linalg.eigvalsh(second_moment(rows, caps))[-1])
    hidden = private[1].cap * len(private[0].rows.y) * shape.norm_bound**2
    spread = noise.multiple * sensitivity(private[1], shape)
    best = shape.radius / (spread * math.sqrt(2 * rows.X.shape[1] * steps))
    return min(1 / (2 * (known + hidden)), best)
