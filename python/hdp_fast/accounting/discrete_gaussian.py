"""The exact privacy curve of discrete Gaussian noise, which the continuous one does not bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from .._support.validate import refuse
from ..exceptions import ParameterError
from .conversion import gaussian_mu

# Beyond, summing the curve would take seconds, and a mean would take 1e10 agents.
_LARGEST_SIGMA = 1 << 17
_LEAST_DELTA = 1e-200
# Terms further out add less than exp(-500) of the smallest delta.
_CUTOFF = 40
# Covers rounding in sums of a few million terms, each below 1e-13 of itself.
_SLACK = 1 + 1e-9
_PARTS = 1 << 10


def exact_delta(sigma: Fraction, shift: int, epsilon: float) -> float:
    """The delta at epsilon of discrete Gaussian noise on integers that differ by up to `shift`.

    sigma must be at least 5. The result is rounded up. A smaller difference has a smaller delta:
    the noise is log-concave, so that the worst event is a half-line, and shifting it further only
    helps.
    """
    spread = float(sigma)
    # ln Pr[x] / Pr[x - shift] exceeds epsilon below here.
    end = math.ceil(shift / 2 - spread**2 * epsilon / shift) - 1
    x = end - np.arange(math.ceil(_CUTOFF * spread), -1.0, -1.0)
    loss = (shift - 2 * x) * shift / (2 * spread**2)
    # The sum of the whole law is an integral, to exp(-2 pi**2 sigma**2) of itself.
    mass = np.exp(-((x / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
    return float(np.sum(mass * -np.expm1(np.minimum(epsilon - loss, 0.0)))) * _SLACK


def calibrate_sigma(epsilon: float, delta: float, steps: int, mu: float) -> Fraction:
    """A sigma with which a grid of steps is private, little above that of continuous_mu.

    It raises ParameterError if there is none.
    """
    enough = partial(exact_delta, shift=steps, epsilon=epsilon)
    return _find_least(steps / mu, lambda sigma: enough(sigma) <= delta, epsilon, delta)


def _find_least(
    start: float, enough: Callable[[Fraction], bool], epsilon: float, delta: float
) -> Fraction:
    for slack in [0.0, *(2.0**power for power in range(-20, 1))]:
        sigma = round_sigma_up(start * (1 + slack))
        if enough(sigma):
            return sigma
    raise ParameterError(f"delta = {delta}, but no noise tried reaches it at epsilon = {epsilon}")


def continuous_mu(epsilon: float, delta: float) -> float:
    """The largest shift / sigma of continuous Gaussian noise, where its curve can be summed.

    It raises ParameterError for an epsilon and a delta that ask for more noise.
    """
    if delta < _LEAST_DELTA:
        refuse("delta", delta, f"it must be at least {_LEAST_DELTA}")
    mu = gaussian_mu(epsilon, delta)
    if mu * _LARGEST_SIGMA < 2:
        rule = "so little epsilon and delta leave nothing but noise"
        raise ParameterError(f"epsilon = {epsilon} and delta = {delta}, but {rule}")
    return mu


def round_sigma_up(value: float | Fraction) -> Fraction:
    """The least multiple of 1 / 1,024 that is not below: draws are slow with longer fractions."""
    return Fraction(math.ceil(Fraction(value) * _PARTS), _PARTS)
