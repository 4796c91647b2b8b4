"""Algorithm 1 of the paper as printed, with noise for what it promises in all."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._support.types import Floats
from .objective import Found, PrivatePart, passed
from .privacy import LEAST_COEFFICIENTS, noisy
from .problem import Rows, Shape, Weighing
from .solver import within_ball

# Units of a private record's derivative in its own u.
_UNITS = 1 << 20
# The most that a replaced record moves both gradients by, in squares of either sensitivity: steep
# gradients and large changes of the loss exclude each other. The greatest value of (1 + t)**2 / 4
# + (1 - t**2)**2 for t in [0, 1]; and with what rounding to integers adds to either.
JOINT = 1.28616
JOINT_ROUNDED = (math.sqrt(JOINT) + math.hypot(1 / LEAST_COEFFICIENTS, 1 / _UNITS)) ** 2


class Penalties(NamedTuple):
    """Of the weights, each at least 0: kappa_1 for |q - p|_1, the others for |q|_2 and |q|_inf."""

    kappa_1: float
    kappa_2: float
    kappa_inf: float


@dataclass(eq=False)
class _Domain:
    """A domain and its inverse weights u, which nobody else sees."""

    weighing: Weighing
    n: int
    u: Floats = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.u = np.full(self.n, 1 / self.weighing.cap)

    def pace(self, largest: float, penalties: Penalties, spread: float, steps: int) -> float:
        """The printed length of a step of u; spread: deviation of the noise on a derivative."""
        bound = largest * (2 if self.weighing.offset else 1) + sum(penalties)
        share = self.weighing.cap * self.n
        squares = share**4 * bound**2 + self.n**4 * spread**2
        return self.n * math.sqrt(self.n / (steps * squares))


def steepest(weighing: Weighing, shape: Shape) -> float:
    """A bound on the weight times the slope of any loss."""
    return 2 * weighing.cap * shape.residual


def descended_as_printed(
    public: tuple[Rows, Weighing],
    private: tuple[PrivatePart, Weighing],
    shape: Shape,
    penalties: Penalties,
    steps: int,
) -> Floats:
    """The mean of all predictors after a step, (d,)."""
    (rows, weighing), (part, hidden) = public, private
    d, most = rows.X.shape[1], steepest(hidden, shape)
    slope = 2 * shape.norm_bound * shape.residual
    length = shape.radius / math.sqrt(steps * (slope**2 + d * part.deviation(most) ** 2))
    states = _Domain(weighing, len(rows.y)), _Domain(hidden, len(part.rows.y))
    largest, multiple = shape.residual**2, part.noise.multiple if part.noise else 0.0
    spreads = 0.0, multiple * hidden.cap**2 * largest
    paces = [
        each.pace(largest, penalties, s, steps) for each, s in zip(states, spreads, strict=True)
    ]
    w, mean = np.zeros(d), np.zeros(d)
    for _ in range(steps):
        known = passed(rows, w, 1 / states[0].u)
        unknown = part.noisy(w, 1 / states[1].u, most)
        w = within_ball(w - length * (known.gradient + unknown.gradient), shape.radius)
        own = _of_losses(known, states[0]), _noisy_of_losses(unknown, states[1], part, shape)
        for state, slopes, pace in zip(states, _slopes(states, own, penalties), paces, strict=True):
            state.u = np.maximum(state.u - pace * slopes, 1 / state.weighing.cap)
        mean += w / steps
    return mean


def _of_losses(found: Found, state: _Domain) -> Floats:
    """The derivatives of the weighted losses in u, without their offset."""
    losses: Floats = np.zeros(state.n) if found.losses is None else found.losses
    return -losses / state.u**2


def _noisy_of_losses(found: Found, state: _Domain, part: PrivatePart, shape: Shape) -> Floats:
    """The same with noise, on integers where that is exact."""
    slopes = _of_losses(found, state)
    if part.noise is None:
        return slopes
    most = (state.weighing.cap * shape.residual) ** 2
    if not part.noise.exact:
        return noisy(slopes, most, part.noise, part.coins)
    units = np.rint(slopes * (_UNITS / most)).clip(-_UNITS, 0)
    return noisy(units, _UNITS, part.noise, part.coins) * (most / _UNITS)


def _slopes(
    states: tuple[_Domain, _Domain], own: tuple[Floats, Floats], penalties: Penalties
) -> list[Floats]:
    """The derivatives of the objective in both u."""
    norm = math.sqrt(sum(float((each.u**-2.0).sum()) for each in states))
    least = min(float(each.u.min()) for each in states)
    found = []
    for each, slopes in zip(states, own, strict=True):
        rest = (each.weighing.offset + penalties.kappa_inf * (each.u == least)) / each.u**2
        rest += penalties.kappa_2 / (norm * each.u**3)
        found.append(slopes - rest + penalties.kappa_1 * each.weighing.cap**2)
    return found
