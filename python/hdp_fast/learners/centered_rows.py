"""Rows around released means: how many powers are released, with what noise, and the map."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from .. import noise
from .._support.types import Floats, Integers
from ..accounting.discrete_gaussian import calibrate_means
from ..data.rows import PlainRows, Rows, Squares, blocks_of

# No variance counts as smaller.
_LEAST_VARIANCE = 1e-6


def center(
    unit: Rows,
    rows: Floats,
    *,
    squares: bool = False,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator | None,
) -> Rows:
    """Release means, and those of powers of numbers, and center by them.

    (epsilon, delta)-DP under replace_one, exact: values are cut to integers up to 2**bits, their
    sums are exact, and rounded normal noise is added. Two records differ by at most
    sqrt(squared_distance) * 2**bits.

    rows: what `unit` makes of the private records.
    squares: whether squares of numbers become columns, which takes four powers instead of two.
    """
    if epsilon == math.inf:
        means = _powers(unit, rows, squares).mean(axis=0)
        return _center_by(unit, means.clip(0.0, 1.0), _LEAST_VARIANCE)
    grid = settle_means(unit, squares, len(rows), epsilon, delta)
    return center_with_noise(unit, rows, grid, squares=squares, random_state=random_state)


def center_with_noise(
    unit: Rows,
    rows: Floats | PlainRows,
    grid: tuple[int, Fraction],
    *,
    squares: bool,
    random_state: np.random.Generator | None,
) -> Rows:
    """Center by means on a grid of so many bits, whose sums have noise of that deviation.

    It is as private as a Gaussian mechanism whose distance of neighbors is the root of
    `unit.squared_distance(count_powers(squares))` * 2**bits, exact.
    """
    bits, sigma = grid
    sums = _add_powers(unit, rows, squares, bits)
    drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=random_state)
    unit_of_mean = 1 / (2.0**bits * len(rows))
    means, deviation = (sums + drawn) * unit_of_mean, float(sigma) * unit_of_mean
    # A smaller variance than that could be noise alone, and would be blown up.
    return _center_by(unit, means.clip(0.0, 1.0), max(2 * deviation, _LEAST_VARIANCE))


def settle_means(
    unit: Rows, squares: bool, n: int, epsilon: float, delta: float
) -> tuple[int, Fraction]:
    """The grid and the noise of the means of n rows; raises where no noise is enough."""
    price = unit.squared_distance(count_powers(squares))
    return calibrate_means(price, n=n, epsilon=epsilon, delta=delta)


def count_powers(squares: bool) -> int:
    """How many powers of numbers are released: those that squares and their scale take, too."""
    return 4 if squares else 2


def _powers(unit: Rows, rows: Floats, squares: bool) -> Floats:
    """Plain rows, and the powers of their numbers."""
    numbers = rows[:, unit.is_number]
    powers = [numbers]
    for _ in range(2, count_powers(squares) + 1):
        # A product rounds alike everywhere, and a power takes ten times as long.
        powers.append(powers[-1] * numbers)
    return np.hstack([rows, *powers[1:]])


def _add_powers(unit: Rows, rows: Floats | PlainRows, squares: bool, bits: int) -> Integers:
    """The exact sums of all powers, which are cut to integers up to 2**bits."""
    total: Integers = np.zeros(1, np.int64)
    for block in blocks_of(len(rows)):
        # Integers are made of floats above 0 as floor makes them.
        part = (_powers(unit, rows[block], squares) * 2.0**bits).astype(np.int64)
        total = total + part.sum(axis=0)
    return total


def center_evenly(unit: Rows, *, squares: bool = False) -> Rows:
    """Center as if all rows were spread evenly; nothing is released."""
    numbers = int(unit.is_number.sum())
    powers = [np.full(numbers, 1 / (power + 1)) for power in range(2, count_powers(squares) + 1)]
    return _center_by(unit, np.concatenate([unit.even_means, *powers]), _LEAST_VARIANCE)


def _center_by(unit: Rows, means: Floats, least: float) -> Rows:
    """Center by released means, for which no variance counts as smaller than `least`."""
    numbers, columns = unit.is_number, len(unit.is_number)
    mean, count = means[:columns], int(numbers.sum())
    # Without numbers there are no powers, and nothing is squared.
    powers = means[columns:].reshape(-1, count) if count else np.zeros((1, 0))
    variance = np.maximum(powers[0] - mean[numbers] ** 2, least)
    factor = np.ones(columns)
    factor[numbers] = 1 / np.sqrt(variance)
    squares = _square_by(mean[numbers], variance, powers, least) if len(powers) > 1 else None
    return replace(unit, center=mean, factor=factor, squares=squares)


def _square_by(mean: Floats, variance: Floats, powers: Floats, least: float) -> Squares:
    """The squares by the released means of the second, third and fourth powers."""
    second, third, fourth = powers
    of_square = np.maximum(fourth - second**2, least)
    # A correlation beyond 1 is noise.
    steepest = np.sqrt(of_square / variance)
    slope = np.clip((third - mean * second) / variance, -steepest, steepest)
    rest = np.maximum(of_square - slope**2 * variance, least)
    return Squares(second, slope, 1 / np.sqrt(rest))
