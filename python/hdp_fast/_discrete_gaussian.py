"""The exact privacy curve of discrete Gaussian noise, which the continuous one does not bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from .accounting import gaussian_mu
from .exceptions import ParameterError

# Beyond, summing the curve would take seconds, and a mean would take 1e10 agents.
_LARGEST_SIGMA = 1 << 17
_LEAST_DELTA = 1e-200
# Terms further out add less than exp(-500) of the smallest delta.
_REACH = 40
# Covers rounding in sums of a few million terms, each below 1e-13 of itself.
_SLACK = 1 + 1e-9
_PARTS = 1 << 10


def exact_delta(sigma: Fraction, shift: int, epsilon: float) -> float:
    """The delta at epsilon of discrete Gaussian noise on integers that differ by up to `shift`.

    sigma: at least 5. Rounded up. A smaller difference has a smaller delta, since the noise is
    log-concave: the worst event is a half-line, and moving it further can but help.
    """
    spread = float(sigma)
    # ln Pr[x] / Pr[x - shift] exceeds epsilon below here.
    end = math.ceil(shift / 2 - spread**2 * epsilon / shift) - 1
    x = np.arange(end - math.ceil(_REACH * spread), end + 1, dtype=np.float64)
    loss = (shift - 2 * x) * shift / (2 * spread**2)
    # The sum of the whole law is an integral, to exp(-2 pi**2 sigma**2) of itself.
    mass = np.exp(-((x / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
    return float(np.sum(mass * -np.expm1(np.minimum(epsilon - loss, 0.0)))) * _SLACK


def calibrated(epsilon: float, delta: float, steps: int, mu: float) -> Fraction:
    """A sigma that makes a grid of steps private, little above what continuous_mu has.

    Raises: ParameterError if there is none.
    """
    wanted = steps / mu
    for slack in [0.0, *(2.0**power for power in range(-20, 1))]:
        sigma = rounded_up(wanted * (1 + slack))
        if exact_delta(sigma, steps, epsilon) <= delta:
            return sigma
    raise ParameterError(f"delta = {delta}, but no noise tried reaches it at epsilon = {epsilon}")


def continuous_mu(epsilon: float, delta: float) -> float:
    """The largest shift / sigma of continuous Gaussian noise, where its curve can be summed.

    Raises: ParameterError for epsilon and delta that ask for more noise.
    """
    if delta < _LEAST_DELTA:
        raise ParameterError(f"delta = {delta}, but it must be at least {_LEAST_DELTA}")
    mu = gaussian_mu(epsilon, delta)
    if mu * _LARGEST_SIGMA < 2:
        rule = "so little epsilon and delta leave nothing but noise"
        raise ParameterError(f"epsilon = {epsilon} and delta = {delta}, but {rule}")
    return mu


def rounded_up(value: float | Fraction) -> Fraction:
    """The least multiple of 1 / 1,024 that is not below: exact draws take longer fractions ill."""
    return Fraction(math.ceil(Fraction(value) * _PARTS), _PARTS)
