"""The private part of every step: sums of gradients that get noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_noise import Coins, Grid, Noise, grid, noisy
from ._adaptation_pass import Found, Rounding, Weighing, passed
from ._adaptation_rows import Rows, in_reals, on_grid
from ._moments import Bounds, Sample

Floats = NDArray[np.float64]


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
