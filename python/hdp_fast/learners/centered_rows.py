"""Rows around their means, in units of their deviations: both released once, with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import noise
from .._support.types import Floats
from ..accounting.noisy_sums import calibrate_means
from .unit_rows import UnitRows

_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares of numbers less what is linear in the numbers, with a standard deviation of 1.

    Attributes:
        mean: Mean square of each number.
        slope: What a square rises by with its number.
        factor: What the rest is multiplied with.
    """

    mean: Floats
    slope: Floats
    factor: Floats


@dataclass(frozen=True, eq=False)
class CenteredRows:
    """A map from records to centered rows, of public facts and released numbers alone.

    Noisy gradients learn little along the direction of the mean, in which all rows agree, and from
    a column that hardly varies within its bounds. Bits of categories keep their scale; numbers get
    a standard deviation of 1.

    Attributes:
        unit: The public map to rows in [0, 1].
        mean: What is taken off each column.
        factor: What the differences are multiplied with.
        squares: What squares of the numbers are made with; None where there are none.
    """

    unit: UnitRows
    mean: Floats
    factor: Floats
    squares: Squares | None = None

    def __call__(self, X: Any) -> Floats:
        """Rows of validated records: columns, squares if there are any, and the constant 1."""
        return self.scale(self.unit(X))

    @property
    def norm(self) -> float:
        """Root of the mean squared norm of the rows with their constant, by the released means."""
        shares = self.mean[~self.unit.is_number]
        # Numbers and their squares have a variance of 1.
        numbers = int(self.unit.is_number.sum()) * (1 if self.squares is None else 2)
        return math.sqrt(1 + numbers + float((shares * (1 - shares)).sum()))

    def scale(self, rows: Floats) -> Floats:
        """Centered rows of rows in [0, 1]."""
        parts = [(rows - self.mean) * self.factor]
        if self.squares is not None:
            values, law = rows[:, self.unit.is_number], self.squares
            linear = (values - self.mean[self.unit.is_number]) * law.slope
            parts.append((values**2 - law.mean - linear) * law.factor)
        return np.column_stack([*parts, np.ones(len(rows))])


def squared_distance(unit: UnitRows, squares: bool) -> int:
    """The largest squared distance that two records have in the powers whose means are released.

    They differ by at most 1 in each power of a number, and by 1 in two bits of a category.
    """
    powers = 4 if squares else 2
    numbers = int(unit.is_number.sum())
    return powers * numbers + 2 * (unit.sources - numbers)


def center(
    unit: UnitRows,
    rows: Floats,
    *,
    squares: bool = False,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator | None,
) -> CenteredRows:
    """Release means, and those of powers of numbers, and center by them.

    (epsilon, delta)-DP under replace_one, exact: values are cut to integers up to 2**bits, their
    sums are exact, and rounded normal noise is added. Two records differ by at most
    sqrt(squared_distance) * 2**bits.

    rows: what `unit` makes of the private records.
    squares: whether squares of numbers become columns, which takes four powers instead of two.
    """
    numbers = rows[:, unit.is_number]
    values = np.hstack([rows, *(numbers**power for power in range(2, 5 if squares else 3))])
    n, deviation = len(rows), 0.0
    if epsilon == math.inf:
        means = values.mean(axis=0)
    else:
        price = squared_distance(unit, squares)
        bits, sigma = calibrate_means(price, n=n, epsilon=epsilon, delta=delta)
        sums = np.floor(values * 2.0**bits).astype(np.int64).sum(axis=0)
        drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=random_state)
        unit_of_mean = 1 / (2.0**bits * n)
        means, deviation = (sums + drawn) * unit_of_mean, float(sigma) * unit_of_mean
    # A smaller variance than that could be noise alone, and would be blown up.
    return _center_by(unit, means.clip(0.0, 1.0), max(2 * deviation, _LEAST_VARIANCE))


def center_evenly(unit: UnitRows, *, squares: bool = False) -> CenteredRows:
    """Center as if all rows were spread evenly; nothing is released."""
    numbers = int(unit.is_number.sum())
    powers = [np.full(numbers, 1 / (power + 1)) for power in range(2, 5 if squares else 3)]
    return _center_by(unit, np.concatenate([unit.even_means, *powers]), _LEAST_VARIANCE)


def _center_by(unit: UnitRows, means: Floats, least: float) -> CenteredRows:
    """Center by released means, for which no variance counts as smaller than `least`."""
    numbers, columns = unit.is_number, len(unit.is_number)
    mean, powers = means[:columns], means[columns:].reshape(-1, int(numbers.sum()))
    variance = np.maximum(powers[0] - mean[numbers] ** 2, least)
    factor = np.ones(columns)
    factor[numbers] = 1 / np.sqrt(variance)
    squares = _square_by(mean[numbers], variance, powers, least) if len(powers) > 1 else None
    return CenteredRows(unit, mean, factor, squares)


def _square_by(mean: Floats, variance: Floats, powers: Floats, least: float) -> Squares:
    """The squares by the released means of the second, third and fourth powers."""
    second, third, fourth = powers
    of_square = np.maximum(fourth - second**2, least)
    # A correlation beyond 1 is noise.
    steepest = np.sqrt(of_square / variance)
    slope = np.clip((third - mean * second) / variance, -steepest, steepest)
    rest = np.maximum(of_square - slope**2 * variance, least)
    return Squares(second, slope, 1 / np.sqrt(rest))
