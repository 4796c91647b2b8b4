"""Normal noise on integers: its exact privacy curve, and its deviation for sums and grids."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from .._support.validate import refuse
from ..exceptions import ParameterError
from .conversion import gaussian_epsilon, gaussian_mu

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


# Values are integers up to 2**bits; sums stay below 2**61 and the noise's deviation below 2**48.
MOST_BITS = 20
_SUM_BITS, _NOISE_BITS, _LEAST_BITS = 61, 48, 8
_STRETCH = 1 - 1e-9


@lru_cache(maxsize=256)
def calibrate_means(price: int, *, n: int, epsilon: float, delta: float) -> tuple[int, Fraction]:
    """The grid's bits, and the deviation of the noise on integer sums.

    price: the largest squared distance of two records whose values lie in [0, 1].

    Raises:
        ParameterError: No noise that is drawn is enough.
    """
    if gaussian_mu(epsilon, delta) * 1e9 < 1:
        refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    room = _NOISE_BITS - max(math.ceil(math.log2(gaussian_sigma(price, epsilon, delta))), 0)
    bits = min(MOST_BITS, _SUM_BITS - n.bit_length(), room)
    if bits < _LEAST_BITS:
        rule = "the noise leaves too few digits for exact sums"
        raise ParameterError(f"epsilon = {epsilon:g}, but {rule}")
    return bits, gaussian_sigma(price << (2 * bits), epsilon, delta)


def gaussian_sigma(squared: int, epsilon: float, delta: float) -> Fraction:
    """A deviation, rounded up, at which normal noise on integers is private enough.

    squared: the largest squared distance of the integers of neighbors.
    """
    length = Fraction(math.isqrt(squared << 80) + 1, 1 << 40)
    mu = gaussian_mu(epsilon, delta)
    while True:
        sigma = round_sigma_up(length / Fraction(mu))
        if sigma_epsilon(squared, sigma, delta) <= epsilon:
            return sigma
        mu *= _STRETCH


def sigma_epsilon(squared: int, sigma: Fraction, delta: float) -> float:
    """The epsilon of normal noise of this deviation on integers, rounded up."""
    return gaussian_epsilon(math.sqrt(squared / sigma**2) * (1 + 1e-12), delta)
