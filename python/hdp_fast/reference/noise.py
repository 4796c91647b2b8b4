"""Laws of the exact draws, and the inexact numpy samplers that they are timed against.

The laws are computed to forty digits from their definitions, so that privacy on tiny instances is a
finite check. The samplers round floats, as fast as numpy goes; no proof says that they are private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[int]
Law = list[Decimal]

_DIGITS = 40


def exp_minus(x: Fraction) -> Decimal:
    """exp(-x)."""
    with localcontext() as context:
        context.prec = _DIGITS
        return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def exponential_mechanism_law(scores: Scores, rate: Fraction) -> Law:
    """The probabilities Pr[i], proportional to exp(rate scores[i])."""
    with localcontext() as context:
        context.prec = _DIGITS
        weights = [exp_minus(rate * (max(scores) - score)) for score in scores]
        return [weight / sum(weights) for weight in weights]


def permute_and_flip_law(scores: Scores, rate: Fraction) -> Law:
    """The probabilities Pr[i], summed over all orders in which the candidates can be tried."""
    with localcontext() as context:
        context.prec = _DIGITS
        accept = [exp_minus(rate * (max(scores) - score)) for score in scores]
        law = [Decimal(0)] * len(scores)
        for order in itertools.permutations(range(len(scores))):
            rejected = Decimal(1) / math.factorial(len(scores))
            for i in order:
                law[i] += rejected * accept[i]
                rejected *= 1 - accept[i]
        return law


def laplace_mass(scale: Fraction, x: int) -> Decimal:
    """Pr[X = x] of the discrete Laplace law."""
    with localcontext() as context:
        context.prec = _DIGITS
        ratio = exp_minus(1 / scale)
        return exp_minus(abs(x) / scale) * (1 - ratio) / (1 + ratio)


def gaussian_masses(sigma: Fraction, reach: int) -> dict[int, Decimal]:
    """Pr[X = x] of the discrete Gaussian law for |x| <= reach, beyond which no mass may be left."""
    with localcontext() as context:
        context.prec = _DIGITS
        half = [exp_minus(x**2 / (2 * sigma**2)) for x in range(reach + 1)]
        whole = 2 * sum(half) - half[0]
        return {x: half[abs(x)] / whole for x in range(-reach, reach + 1)}


def rounded_gaussian_mass(sigma: Fraction, x: int) -> Decimal:
    """Pr[X = x] of a normal deviate rounded to the nearest integer."""
    inner, outer = ((2 * abs(x) + side) / (2 * sigma) for side in (-1, 1))
    with localcontext() as context:
        context.prec = _DIGITS
        return half_normal(outer) + (half_normal(outer) if x == 0 else -half_normal(inner))


def half_normal(z: Fraction) -> Decimal:
    """Pr[0 < Z < z] of a normal deviate: the density at z times z + z**3 / 3 + z**5 / 15 + ..."""
    with localcontext() as context:
        context.prec = _DIGITS
        x = Decimal(z.numerator) / z.denominator
        term, total = x, x
        for odd in itertools.count(3, 2):
            term *= x * x / odd
            total += term
            if odd > 2 * x * x and term <= total.scaleb(-_DIGITS):
                break
        return exp_minus(z * z / 2) * total / (2 * _pi()).sqrt()


def _pi() -> Decimal:
    """Pi, by Machin's formula, to the digits of the context."""
    arcs = [
        sum(((-1) ** k / (Decimal(2 * k + 1) * n ** (2 * k + 1)) for k in range(80)), Decimal(0))
        for n in (5, 239)
    ]
    return 16 * arcs[0] - 4 * arcs[1]


def discrete_laplace(scale: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws rounded Laplace noise; int64 (size,)."""
    return np.rint(rng.laplace(0.0, scale, size)).astype(np.int64)


def discrete_gaussian(sigma: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws rounded Gaussian noise; int64 (size,)."""
    return np.rint(rng.normal(0.0, sigma, size)).astype(np.int64)


def rounded_gaussian(sigma: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws rounded Gaussian noise; int64 (size,)."""
    return np.rint(rng.normal(0.0, sigma, size)).astype(np.int64)


def randomized_response(
    bits: NDArray[np.uint8], epsilon: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Flips each bit with probability 1 / (1 + exp(epsilon)); uint8 (n,)."""
    return bits ^ (rng.random(bits.size) < 1 / (1 + math.exp(epsilon)))


def permute_and_flip(scores: NDArray[np.int64], rate: float, rng: np.random.Generator) -> int:
    """The largest score's place after exponential noise: the same law (Ding et al. 2021)."""
    return int(np.argmax(rate * scores + rng.standard_exponential(scores.size)))


def exponential_mechanism(scores: NDArray[np.int64], rate: float, rng: np.random.Generator) -> int:
    """The largest score's place after Gumbel noise: the same law."""
    return int(np.argmax(rate * scores + rng.gumbel(size=scores.size)))


def weighted_draws(
    weights: NDArray[np.uint64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Looks up uniform integers among the cumulative sums; int64 (size,)."""
    sums = np.cumsum(weights)
    return np.searchsorted(sums, rng.integers(sums[-1], size=size, dtype=np.uint64), side="right")
