"""Algorithm 1 of the paper as printed, with noise that is calibrated for the whole run."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._support.types import Floats
from .objective import NoisyGradient, PassResult, evaluate
from .privacy import LEAST_COEFFICIENTS, add_noise
from .problem import ProblemBounds, SampleWeighting, ScaledRecords
from .solver import project_to_ball

# Integer units of a private record's largest derivative in its own u.
_UNITS = 1 << 20
# The largest sum of squared ratios of change to sensitivity, over both gradients, when a record is
# replaced. It is below 2 because large gradients and large changes of the loss exclude each other:
# the maximum of (1 + t)**2 / 4 + (1 - t**2)**2 for t in [0, 1]. JOINT_ROUNDED includes what
# rounding to integers adds.
JOINT = 1.28616
JOINT_ROUNDED = (math.sqrt(JOINT) + math.hypot(1 / LEAST_COEFFICIENTS, 1 / _UNITS)) ** 2


class ConvexPenalties(NamedTuple):
    """Penalties on the weights, each at least 0.

    kappa_1 is for |q - p|_1, kappa_2 for |q|_2 and kappa_inf for |q|_inf.
    """

    kappa_1: float
    kappa_2: float
    kappa_inf: float


@dataclass(eq=False)
class _InverseWeights:
    """The inverse weights u of a domain's records, which never leave the run."""

    weighting: SampleWeighting
    n: int
    u: Floats = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.u = np.full(self.n, 1 / self.weighting.cap)

    def step_length(
        self, largest: float, penalties: ConvexPenalties, deviation: float, steps: int
    ) -> float:
        """Return the printed length of a step of u.

        deviation: of the noise on a derivative.
        """
        bound = largest * (2 if self.weighting.offset else 1) + sum(penalties)
        share = self.weighting.cap * self.n
        squares = share**4 * bound**2 + self.n**4 * deviation**2
        return self.n * math.sqrt(self.n / (steps * squares))

    def loss_slopes(self, result: PassResult) -> Floats:
        """Return the derivatives of the weighted losses in u, without their offset."""
        losses: Floats = np.zeros(self.n) if result.losses is None else result.losses
        return -losses / self.u**2

    def step(
        self,
        loss_slopes: Floats,
        length: float,
        penalties: ConvexPenalties,
        norm: float,
        least: float,
    ) -> None:
        """Take a step of descent on the objective.

        norm: |q|_2 over all records. least: the least entry of u over all records.
        """
        rest = (self.weighting.offset + penalties.kappa_inf * (self.u == least)) / self.u**2
        rest += penalties.kappa_2 / (norm * self.u**3)
        slopes = loss_slopes - rest + penalties.kappa_1 * self.weighting.cap**2
        self.u = np.maximum(self.u - length * slopes, 1 / self.weighting.cap)


def printed_gradient_bound(weighting: SampleWeighting, bounds: ProblemBounds) -> float:
    """Return a bound on the weight times the slope of any loss."""
    return 2 * weighting.cap * bounds.residual


def printed_algorithm(
    public: tuple[ScaledRecords, SampleWeighting],
    private: tuple[NoisyGradient, SampleWeighting],
    bounds: ProblemBounds,
    penalties: ConvexPenalties,
    steps: int,
    bar: Any,
) -> Floats:
    """Return the mean of the predictors after each step, (d,)."""
    records, noisy_gradient = public[0], private[0]
    d, gradient_bound = records.X.shape[1], printed_gradient_bound(private[1], bounds)
    slope = 2 * bounds.norm_bound * bounds.residual
    deviation = noisy_gradient.deviation(gradient_bound)
    length = bounds.radius / math.sqrt(steps * (slope**2 + d * deviation**2))
    public_weights = _InverseWeights(public[1], len(records.y))
    private_weights = _InverseWeights(private[1], len(noisy_gradient.records.y))
    largest = bounds.residual**2
    multiple = noisy_gradient.noise.multiple if noisy_gradient.noise else 0.0
    public_length = public_weights.step_length(largest, penalties, 0.0, steps)
    private_deviation = multiple * private[1].cap ** 2 * largest
    private_length = private_weights.step_length(largest, penalties, private_deviation, steps)
    w, mean = np.zeros(d), np.zeros(d)
    for _ in range(steps):
        exact = evaluate(records, w, 1 / public_weights.u)
        noisy = noisy_gradient.evaluate(w, 1 / private_weights.u, gradient_bound)
        w = project_to_ball(w - length * (exact.gradient + noisy.gradient), bounds.radius)
        public_slopes = public_weights.loss_slopes(exact)
        private_slopes = _add_noise_to_slopes(
            private_weights.loss_slopes(noisy), private_weights, noisy_gradient, bounds
        )
        norm = math.sqrt(
            float((public_weights.u**-2.0).sum()) + float((private_weights.u**-2.0).sum())
        )
        least = min(float(public_weights.u.min()), float(private_weights.u.min()))
        public_weights.step(public_slopes, public_length, penalties, norm, least)
        private_weights.step(private_slopes, private_length, penalties, norm, least)
        mean += w / steps
        bar.update()
    return mean


def _add_noise_to_slopes(
    slopes: Floats, weights: _InverseWeights, noisy_gradient: NoisyGradient, bounds: ProblemBounds
) -> Floats:
    """Return the derivatives of the private losses in u, with noise; exact noise is on integers."""
    noise, rng = noisy_gradient.noise, noisy_gradient.rng
    if noise is None:
        return slopes
    largest = (weights.weighting.cap * bounds.residual) ** 2
    if not noise.exact:
        return add_noise(slopes, largest, noise, rng)
    units = np.rint(slopes * (_UNITS / largest)).clip(-_UNITS, 0)
    return add_noise(units, _UNITS, noise, rng) * (largest / _UNITS)
