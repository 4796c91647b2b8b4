"""The private part of every step: sums of gradients that get noise."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import _core
from .._support.types import Floats
from .discrepancies.moments import Bounds, Sample
from .privacy import Coins, Grid, Noise, grid, noisy
from .problem import Rows, Weighing, in_reals, on_grid


class Rounding(NamedTuple):
    """Integers in place of q times slope, for exact sums.

    Attributes:
        grid: what the integers are bounded by.
        scale: how many of them are 1.
    """

    grid: Grid
    scale: float

    @classmethod
    def of(cls, grid: Grid, steepest: float, classes: int = 1) -> Rounding:
        """The finest at which no vector of this norm is rounded beyond the bound."""
        return cls(grid, (grid.coefficients - math.sqrt(classes) / 2 - 0.5) / steepest)

    @property
    def given(self) -> tuple[float, float, float]:
        """As the compiled module takes it."""
        return self.scale, float(self.grid.coefficients), float(self.grid.rows)


class Found(NamedTuple):
    """What a pass finds.

    Attributes:
        objective: sum of q l + kappa_1 cap**2 / q at the best q, of q loss at given ones.
        gradient: float64, as w, of the sum in w; of integers where there is rounding.
        losses: float64 (n,) of given q, without offset.
    """

    objective: float
    gradient: Floats
    losses: Floats | None


def passed(
    rows: Rows, w: Floats, weights: Weighing | Floats, rounding: Rounding | None = None
) -> Found:
    """A pass over the rows, at given weights or at those that are best for w."""
    given = None if rounding is None else rounding.given
    model = w * rows.unit
    found = Found(*_core.adaptation_pass(rows.given, rows.loss, model, weights, given, None))
    return found if given else found._replace(gradient=found.gradient * rows.unit)


def objective(rows: Rows, w: Floats, weighing: Weighing) -> float:
    """The sum of q l + kappa_1 cap**2 / q at the best q."""
    return passed(rows, w, weighing).objective


def gradient(rows: Rows, w: Floats, weighing: Weighing) -> Floats:
    """The gradient of the objective in w, (d,)."""
    return passed(rows, w, weighing).gradient


class PrivatePart(NamedTuple):
    """Private records, and what noise is added to the gradients that they make.

    Attributes:
        rows: on the grid, or in reals where there is none.
        norm: the largest norm of a row.
        grid: of exact noise.
        noise: None for none.
        coins: a test stream, or None.
        classes: how many slopes a loss has.
    """

    rows: Rows
    norm: float
    grid: Grid | None
    noise: Noise | None
    coins: Coins = None
    classes: int = 1

    @classmethod
    def of(cls, sample: Sample, bounds: Bounds, noise: Noise | None) -> PrivatePart:
        """The records of a sample, on as fine a grid as exact noise allows.

        Raises: ParameterError where that is too coarse.
        """
        if noise is None or not noise.exact:
            return cls(in_reals(sample, bounds), bounds.norm, None, noise)
        fine = grid(noise, len(sample.y))
        rows = on_grid(sample, bounds, fine)
        return cls(rows, fine.rows * rows.unit, fine, noise)

    def deviation(self, steepest: float) -> float:
        """Of the noise on a coordinate of a gradient.

        steepest: bound on the weight times the slope of the loss of any record.
        """
        if self.noise is None:
            return 0.0
        rounding = self._rounding(steepest)
        largest = steepest if rounding is None else rounding.grid.coefficients / rounding.scale
        return self.noise.multiple * 2 * largest * self.norm

    def noisy(self, w: Floats, weights: Weighing | Floats, steepest: float) -> Found:
        """A pass whose gradient has noise, as deviation says; its losses have none."""
        rounding = self._rounding(steepest)
        found = passed(self.rows, w, weights, rounding)
        if self.noise is None:
            return found
        if rounding is None:
            moved = 2 * steepest * self.norm
            return found._replace(gradient=noisy(found.gradient, moved, self.noise, self.coins))
        sums = noisy(found.gradient, rounding.grid.sensitivity, self.noise, self.coins)
        return found._replace(gradient=sums * (self.rows.unit / rounding.scale))

    def _rounding(self, steepest: float) -> Rounding | None:
        return None if self.grid is None else Rounding.of(self.grid, steepest, self.classes)
