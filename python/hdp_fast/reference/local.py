"""Laws of the randomizers in exact fractions, and numpy samplers that they are timed against.

The laws take the 64-bit probabilities as they are, so that privacy is a finite check. The samplers
round floats, as fast as numpy goes; no proof says that they are private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Law = list[Fraction]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def mixed(laws: Sequence[Law], place: Fraction) -> Law:
    """The law at a place between two integers, rounded at random to one with the place as mean."""
    start = min(math.floor(place), len(laws) - 2)
    rest = place - start
    return [(1 - rest) * p + rest * q for p, q in zip(laws[start], laws[start + 1], strict=True)]


def binary_law(place: Fraction, truth: Fraction) -> Law:
    """The law of binary randomized response to a number at that place in [0, 1]."""
    return mixed([[truth, 1 - truth], [1 - truth, truth]], place)


def own_or_any(own: Sequence[int], outcomes: int, chance: Fraction) -> Law:
    """With that probability one of the value's own outcomes, else any outcome, all uniformly."""
    mine = set(own)
    return [
        (chance / len(mine) if each in mine else 0) + (1 - chance) / outcomes
        for each in range(outcomes)
    ]


def hadamard_matrix(order: int) -> Integers:
    """Sylvester's Hadamard matrix of an order that is a power of two."""
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def hadamard_columns(value: int, blocks: int, size: int) -> list[int]:
    """The value's own columns, numbered through `blocks` matrices of order `size`."""
    row = hadamard_matrix(size)[1 + value // blocks]
    return [value % blocks * size + column for column in range(size) if row[column] == 1]


def binary_response(u: Floats, epsilon: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Binary randomized response, where one number decides on rounding and lie; bool (n,)."""
    truth = 1 / (1 + math.exp(-epsilon))
    return rng.random(u.size) < (1 - truth) + (2 * truth - 1) * u


def laplace(u: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Adds continuous Laplace noise; float64 (n,)."""
    return u + rng.laplace(0.0, 1 / epsilon, u.size)


def piecewise(u: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Wang and others 2019, Algorithm 2, for numbers in [0, 1]; float64 (n,)."""
    root = math.exp(epsilon / 2)
    # The window has length 1 among outcomes in [0, 1 + root].
    inside = rng.random(u.size) < root / (root + 1)
    drawn = rng.random(u.size)
    start = u * root
    other = drawn * root
    return np.where(inside, start + drawn, other + (other >= start))


def kary_response(x: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """Reports the value, else any answer; int64 (n,)."""
    odds = math.expm1(epsilon) / k
    return np.where(rng.random(x.size) < odds / (1 + odds), x, rng.integers(0, k, x.size))


def hadamard_response(
    x: Integers, blocks: int, size: int, epsilon: float, rng: np.random.Generator
) -> Integers:
    """Reports a column of the value's own, else any column; int64 (n,)."""
    columns = blocks * size
    odds = math.expm1(epsilon) / (2 * blocks)
    row, block = np.divmod(x, blocks)
    row += 1
    drawn = rng.integers(0, columns, x.size)
    column = drawn & (size - 1)
    column ^= _odd(column & row) * (row & -row)
    return np.where(rng.random(x.size) < odds / (1 + odds), block * size + column, drawn)


def unary_counts(x: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """The counts of optimal unary encoding, drawn as binomials without the bits; int64 (k,)."""
    held = np.bincount(x, minlength=k)
    lie = 1 / (1 + math.exp(epsilon))
    return rng.binomial(held, 0.5) + rng.binomial(x.size - held, lie)


def hadamard_frequencies(counts: Integers, k: int, blocks: int, epsilon: float) -> Floats:
    """The share of each value, computed with the matrices themselves; float64 (k,)."""
    size = counts.size // blocks
    matrix = hadamard_matrix(size)
    odds = math.expm1(epsilon) / (2 * blocks)
    gap = odds / (1 + odds)
    sums = counts.reshape(blocks, size) @ matrix.T
    values = np.arange(k)
    found: Floats = sums[values % blocks, 1 + values // blocks] / (gap * counts.sum())
    return found


def _odd(bits: Integers) -> Integers:
    for shift in (16, 8, 4, 2, 1):
        bits = bits ^ bits >> shift
    return bits & 1
