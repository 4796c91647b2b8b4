"""The convex objective and its gradient in one pass over a domain, with noise if it is private."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import _core
from .._support.types import Floats
from .discrepancies.moments import RecordBounds, Sample
from .privacy import DescentNoise, Grid, Rng, add_noise, choose_grid
from .problem import SampleWeighting, ScaledRecords, as_float_rows, round_to_grid


class Rounding(NamedTuple):
    """Integers in place of q times slope, for exact sums.

    Attributes:
        grid: Bounds on the integers.
        scale: The integer that stands for 1, before rounding.
    """

    grid: Grid
    scale: float

    @classmethod
    def finest(cls, grid: Grid, gradient_bound: float, classes: int = 1) -> Rounding:
        """Return the finest rounding that keeps vectors of this norm within the bound."""
        return cls(grid, (grid.coefficients - math.sqrt(classes) / 2 - 0.5) / gradient_bound)

    @property
    def core_arguments(self) -> tuple[float, float, float]:
        """The rounding as the compiled module takes it."""
        return self.scale, float(self.grid.coefficients), float(self.grid.rows)


class PassResult(NamedTuple):
    """The result of a pass over the records of a domain.

    Attributes:
        objective: Sum of `q h + kappa_1 cap**2 / q` at the best q; sum of q loss at fixed q.
        gradient: Gradient of the sum in w, float64, of w's shape; integers where there is rounding.
        losses: float64 (n,) for fixed q, without offset; otherwise None.
    """

    objective: float
    gradient: Floats
    losses: Floats | None


def evaluate(
    records: ScaledRecords,
    w: Floats,
    weights: SampleWeighting | Floats,
    rounding: Rounding | None = None,
) -> PassResult:
    """Return objective and gradient, at fixed weights or at those that are best for w."""
    integers = None if rounding is None else rounding.core_arguments
    model = w * records.unit
    arguments = records.core_arguments, records.loss, model, weights, integers, None
    result = PassResult(*_core.adaptation_pass(*arguments))
    return result if integers else result._replace(gradient=result.gradient * records.unit)


class NoisyGradient(NamedTuple):
    """Records of the private domain, and the noise of their gradients.

    Attributes:
        records: Integers on the grid, or floats without a grid.
        norm: The largest norm of a row.
        grid: The grid of exact noise, or None.
        noise: The noise, or None.
        rng: A stream for tests, or None.
        classes: Number of scores, and thus of slopes, of the loss.
    """

    records: ScaledRecords
    norm: float
    grid: Grid | None
    noise: DescentNoise | None
    rng: Rng = None
    classes: int = 1

    @classmethod
    def from_sample(
        cls, sample: Sample, bounds: RecordBounds, noise: DescentNoise | None
    ) -> NoisyGradient:
        """Return the records of a sample, on as fine a grid as exact noise allows.

        Raises: ParameterError where that is too coarse.
        """
        if noise is None or not noise.exact:
            return cls(as_float_rows(sample, bounds), bounds.norm, None, noise)
        grid = choose_grid(noise, len(sample.y))
        records = round_to_grid(sample, bounds, grid)
        return cls(records, grid.rows * records.unit, grid, noise)

    def deviation(self, gradient_bound: float) -> float:
        """Return the deviation of the noise on a coordinate of a gradient.

        gradient_bound: bound on the weight times the slope of the loss of any record.
        """
        if self.noise is None:
            return 0.0
        rounding = self._rounding(gradient_bound)
        largest = gradient_bound
        if rounding is not None:
            largest = rounding.grid.coefficients / rounding.scale
        return self.noise.multiple * 2 * largest * self.norm

    def evaluate(
        self, w: Floats, weights: SampleWeighting | Floats, gradient_bound: float
    ) -> PassResult:
        """Return a pass whose gradient has noise; objective and losses have none."""
        rounding = self._rounding(gradient_bound)
        result = evaluate(self.records, w, weights, rounding)
        if self.noise is None:
            return result
        if rounding is None:
            sensitivity = 2 * gradient_bound * self.norm
            gradient = add_noise(result.gradient, sensitivity, self.noise, self.rng)
        else:
            sums = add_noise(result.gradient, rounding.grid.sensitivity, self.noise, self.rng)
            gradient = sums * (self.records.unit / rounding.scale)
        return result._replace(gradient=gradient)

    def _rounding(self, gradient_bound: float) -> Rounding | None:
        return (
            None if self.grid is None else Rounding.finest(self.grid, gradient_bound, self.classes)
        )
