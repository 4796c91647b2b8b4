"""Weights, weighted gradient and objective of the squared loss, the weights eliminated."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        """A bound on |d(q l) / dp| / cap at fixed q, for residuals up to this."""
        return 2 * min(math.sqrt(self.kappa_1), residual)


def weights(rows: Rows, w: Floats, weighing: Weighing) -> tuple[Floats, Floats]:
    """Residuals, and the weights that minimise the objective at w as shares of the cap."""
    residuals = rows.X @ (rows.unit * w)
    residuals -= rows.y
    losses = residuals**2 + weighing.offset
    shares = np.sqrt(weighing.kappa_1 / np.maximum(losses, weighing.kappa_1))
    return residuals, shares


def objective(rows: Rows, w: Floats, weighing: Weighing) -> float:
    """The sum of q l + kappa_1 cap**2 / q at the best q."""
    residuals, shares = weights(rows, w, weighing)
    losses = residuals**2 + weighing.offset
    return weighing.cap * float((shares * losses + weighing.kappa_1 / shares).sum())


def gradient(rows: Rows, w: Floats, weighing: Weighing) -> Floats:
    """The gradient of the objective in w, (d,)."""
    residuals, shares = weights(rows, w, weighing)
    found: Floats = (residuals * shares) @ rows.X
    return found * (2 * weighing.cap * rows.unit)


def integer_gradient(
    rows: Rows, w: Floats, weighing: Weighing, grid: Grid, residual: float
) -> Floats:
    """The same in units of cap steepest(residual) unit / grid.coefficients, a sum of integers.

    A coefficient depends on its own record and w only; below 2**53, integers add up exactly in any
    order.
    """
    residuals, shares = weights(rows, w, weighing)
    scale = 2 * grid.coefficients / weighing.steepest(residual)
    coefficients = np.rint(residuals * shares * scale)
    np.clip(coefficients, -grid.coefficients, grid.coefficients, out=coefficients)
    found: Floats = coefficients @ rows.X
    return found
