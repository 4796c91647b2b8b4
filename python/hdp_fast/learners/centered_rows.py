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
class CenteredRows:
    """A map from records to centered rows, of public facts and released numbers alone.

    Noisy gradients learn little along the direction of the mean, in which all rows agree, and from
    a column that hardly varies within its bounds. Bits of categories keep their scale; numbers get
    a standard deviation of 1.

    Attributes:
        unit: The public map to rows in [0, 1].
        mean: What is taken off each column.
        factor: What the differences are multiplied with.
        norm: Root of the mean squared norm of the rows with their constant, as released.
    """

    unit: UnitRows
    mean: Floats
    factor: Floats
    norm: float

    def __call__(self, X: Any) -> Floats:
        """Rows of validated records, of shape (m, d + 1), with the constant 1 last."""
        return self.scale(self.unit(X))

    def scale(self, rows: Floats) -> Floats:
        """The same of rows in [0, 1]."""
        return np.column_stack([(rows - self.mean) * self.factor, np.ones(len(rows))])


def center(
    unit: UnitRows,
    rows: Floats,
    *,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator | None,
) -> CenteredRows:
    """Release means, and the mean squares of numbers, and center by them.

    (epsilon, delta)-DP under replace_one, exact: values are cut to integers up to 2**bits, their
    sums are exact, and rounded normal noise is added. Two records differ by at most 2**bits in a
    number and in its square, and in two bits of a category: by sqrt(2 * sources) * 2**bits in all.

    rows: what `unit` makes of the private records.
    """
    numbers = unit.is_number
    values = np.hstack([rows, rows[:, numbers] ** 2])
    n, deviation = len(rows), 0.0
    if epsilon == math.inf:
        means = values.mean(axis=0)
    else:
        bits, sigma = calibrate_means(2 * unit.sources, n=n, epsilon=epsilon, delta=delta)
        sums = np.floor(values * 2.0**bits).astype(np.int64).sum(axis=0)
        drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=random_state)
        unit_of_mean = 1 / (2.0**bits * n)
        means, deviation = (sums + drawn) * unit_of_mean, float(sigma) * unit_of_mean
    return _center_by(unit, means.clip(0.0, 1.0), deviation)


def _center_by(unit: UnitRows, means: Floats, deviation: float) -> CenteredRows:
    """Center by released means and mean squares with noise of this deviation."""
    numbers = unit.is_number
    mean = means[: len(numbers)]
    variance = mean * (1 - mean)
    # A smaller variance than that could be noise alone, and would be blown up.
    least = max(2 * deviation, _LEAST_VARIANCE)
    variance[numbers] = np.maximum(means[len(numbers) :] - mean[numbers] ** 2, least)
    factor = np.ones(len(mean))
    factor[numbers] = 1 / np.sqrt(variance[numbers])
    return CenteredRows(unit, mean, factor, math.sqrt(1 + float((variance * factor**2).sum())))
