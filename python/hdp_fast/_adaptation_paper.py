"""Algorithm 1 of the paper as printed, with noise for what it promises in all."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_descent import PrivatePart, within_ball
from ._adaptation_noise import LEAST_COEFFICIENTS, Grid, Noise, in_floats, on_integers
from ._adaptation_pass import Weighing
from ._adaptation_rows import Rows, Shape

Floats = NDArray[np.float64]
Coins = np.random.Generator | None

# Units of a private record's derivative in its own u.
_UNITS = 1 << 20
# The most that a replaced record moves both gradients by, in squares of either sensitivity: steep
# gradients and large changes of the loss exclude each other. The greatest value of (1 + t)**2 / 4
# + (1 - t**2)**2 for t in [0, 1]; and with what rounding to integers adds to either.
JOINT = 1.28616
JOINT_ROUNDED = (math.sqrt(JOINT) + math.hypot(0.5 / LEAST_COEFFICIENTS, 1 / _UNITS)) ** 2


class Penalties(NamedTuple):
    """Of the weights, each at least 0: kappa_1 for |q - p|_1, the others for |q|_2 and |q|_inf."""

    kappa_1: float
    kappa_2: float
    kappa_inf: float


@dataclass(eq=False)
class _Domain:
    """Records and their inverse weights u, which no one else sees."""

    rows: Rows
    weighing: Weighing
    u: Floats = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.u = np.full(len(self.rows.y), 1 / self.weighing.cap)

    @property
    def share(self) -> float:
        return self.weighing.cap * len(self.u)

    def residuals(self, w: Floats) -> Floats:
        found: Floats = self.rows.X @ (self.rows.unit * w) - self.rows.y
        return found

    def in_w(self, residuals: Floats) -> Floats:
        found: Floats = (residuals / self.u) @ self.rows.X
        return found * (2 * self.rows.unit)

    def in_u(self, residuals: Floats) -> Floats:
        """Of the losses, without their offset."""
        found: Floats = -((residuals / self.u) ** 2)
        return found


@dataclass(eq=False)
class _Private(_Domain):
    """The domain whose gradients get noise."""

    noise: Noise | None
    shape: Shape
    grid: Grid | None
    coins: Coins

    def in_w(self, residuals: Floats) -> Floats:
        moved = sensitivity(self.weighing, self.shape)
        if self.noise is None:
            return super().in_w(residuals)
        if self.grid is None:
            return in_floats(super().in_w(residuals), moved, self.noise, self.coins)
        scale = self.grid.coefficients / (self.weighing.cap * self.shape.residual)
        parts = np.rint(residuals / self.u * scale)
        parts = parts.clip(-self.grid.coefficients, self.grid.coefficients)
        sums = on_integers(parts @ self.rows.X, self.grid.sensitivity, self.noise, self.coins)
        return sums * (moved / self.grid.sensitivity)

    def in_u(self, residuals: Floats) -> Floats:
        found, moved = super().in_u(residuals), (self.weighing.cap * self.shape.residual) ** 2
        if self.noise is None:
            return found
        if self.grid is None:
            return in_floats(found, moved, self.noise, self.coins)
        parts = np.rint(found * (_UNITS / moved)).clip(-_UNITS, 0)
        return on_integers(parts, _UNITS, self.noise, self.coins) * (moved / _UNITS)


def descended_as_printed(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    penalties: Penalties,
    noise: Noise | None,
    steps: int,
    coins: Coins,
) -> Floats:
    """The mean of all predictors after a step, (d,)."""
    part, weighing = private
    hidden = _Private(part.rows, weighing, noise, shape, part.grid, coins)
    known = _Domain(*public)
    lengths = [_length(each, shape, penalties, noise, steps) for each in (known, hidden)]
    d = known.rows.X.shape[1]
    w, mean = np.zeros(d), np.zeros(d)
    pace = _length_of_w(hidden, shape, noise, steps)
    for _ in range(steps):
        residuals = [each.residuals(w) for each in (known, hidden)]
        moved = known.in_w(residuals[0]) + hidden.in_w(residuals[1])
        slopes = _slopes(known, hidden, residuals, penalties)
        w = within_ball(w - pace * moved, shape.radius)
        for each, slope, length in zip((known, hidden), slopes, lengths, strict=True):
            each.u = np.maximum(each.u - length * slope, 1 / each.weighing.cap)
        mean += w / steps
    return mean


def sensitivity(weighing: Weighing, shape: Shape) -> float:
    """How far replacing a record moves the gradient in w."""
    return 4 * weighing.cap * shape.residual * shape.norm_bound


def _slopes(
    known: _Domain, hidden: _Domain, residuals: list[Floats], penalties: Penalties
) -> list[Floats]:
    """The derivatives of the objective in both u."""
    norm = math.sqrt(sum(float((each.u**-2.0).sum()) for each in (known, hidden)))
    least = min(float(each.u.min()) for each in (known, hidden))
    found = []
    for each, part in zip((known, hidden), residuals, strict=True):
        slope = each.in_u(part) - each.weighing.offset / each.u**2
        slope += penalties.kappa_1 * each.weighing.cap**2 - penalties.kappa_2 / (norm * each.u**3)
        slope -= penalties.kappa_inf * (each.u == least) / each.u**2
        found.append(slope)
    return found


def _length(
    domain: _Domain, shape: Shape, penalties: Penalties, noise: Noise | None, steps: int
) -> float:
    largest = shape.residual**2
    bound = largest * (2 if domain.weighing.offset else 1) + sum(penalties)
    moved = 0.0
    if isinstance(domain, _Private) and noise:
        moved = noise.multiple * domain.weighing.cap**2 * largest
    n = len(domain.u)
    return n**1.5 / math.sqrt(steps * (domain.share**4 * bound**2 + n**4 * moved**2))


def _length_of_w(hidden: _Private, shape: Shape, noise: Noise | None, steps: int) -> float:
    steepest = 2 * shape.norm_bound * shape.residual
    spread = noise.multiple * sensitivity(hidden.weighing, shape) if noise else 0.0
    d = hidden.rows.X.shape[1]
    return shape.radius / math.sqrt(steps * (steepest**2 + d * spread**2))
