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
    mu = gaussian_mu(epsilon, delta)
    if mu * 1e9 < 1:
        refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    while True:
        deviation = Fraction(math.isqrt(price << 80) + 1, 1 << 40) / Fraction(mu)
        room = _NOISE_BITS - max(math.ceil(math.log2(deviation)), 0)
        bits = min(MOST_BITS, _SUM_BITS - n.bit_length(), room)
        if bits < _LEAST_BITS:
            rule = "the noise leaves too few digits for exact sums"
            raise ParameterError(f"epsilon = {epsilon:g}, but {rule}")
        sigma = round_sigma_up(deviation * (1 << bits))
        if means_epsilon(price, bits, sigma, delta) <= epsilon:
            return bits, sigma
        mu *= _STRETCH


def means_epsilon(price: int, bits: int, sigma: Fraction, delta: float) -> float:
    """The epsilon of a release with this noise on integer sums, rounded up."""
    squared = price * Fraction(1 << bits) ** 2 / sigma**2
    return gaussian_epsilon(math.sqrt(squared) * (1 + 1e-12), delta)
