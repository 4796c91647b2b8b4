"""What a step reads of a domain: objective, gradient and losses, in one pass over the rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._adaptation_noise import Grid
from ._adaptation_rows import Rows

Floats = NDArray[np.float64]


class Weighing(NamedTuple):
    """How a domain's records are weighed: q = cap min(1, sqrt(kappa_1 / l)), l = loss + offset.

    Attributes:
        cap: largest weight of a record, above 0.
        kappa_1: above 0.
        offset: at least 0; the discrepancy for the source.
    """

    cap: float
    kappa_1: float
    offset: float

    def steepest(self, residual: float) -> float:
        """The most that q times the slope of the loss is in magnitude, for residuals up to this."""
        return 2 * self.cap * min(math.sqrt(self.kappa_1), residual)


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
