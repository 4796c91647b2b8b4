"""Gaussian noise on exact sums of integers, which stand for records with values in [0, 1]."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from .._support.validate import refuse
from ..exceptions import ParameterError
from .conversion import gaussian_epsilon, gaussian_mu
from .discrete_gaussian import round_sigma_up

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
        raise ParameterError(
            f"epsilon = {epsilon:g}, but the noise leaves too few digits for exact sums"
        )
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
