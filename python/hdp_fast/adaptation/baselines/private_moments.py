"""A private second-moment matrix: one release, with the least noise that its symmetry allows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._support.types import Floats, RandomState
from ...budget.account import Budget, spend
from ...record import PrivacyRecord
from ..discrepancies.moments import RecordBounds, Sample
from ..privacy import (
    DescentNoise,
    Grid,
    Privacy,
    Rng,
    add_noise,
    calibrate_noise,
    make_record,
    make_stream,
    sum_bits,
)
from ..problem import as_float_rows, round_to_grid
from ..solver import second_moments

# The root of 2, rounded up.
_ROOT = math.nextafter(math.sqrt(2), 2.0)


class MomentSums(NamedTuple):
    """The sum of z z' over private rows z.

    Attributes:
        matrix: The sum, float64 (d, d), in squared units; it is exact where the noise is.
        norm: Bound on the norm of any row, in units.
        unit: The number that an entry of 1 stands for.
    """

    matrix: Floats
    norm: float
    unit: float

    @classmethod
    def from_rows(cls, rows: NDArray[Any], norm_bound: float, noise: DescentNoise) -> MomentSums:
        """Return the sum over rows shrunk to norm_bound, on as fine a grid as exact noise allows.

        Raises: ParameterError where that is too coarse.
        """
        bounds = RecordBounds(norm_bound, 0.0)
        sample = Sample("target", rows, np.zeros(len(rows)))
        if not noise.exact:
            return cls(second_moments(as_float_rows(sample, bounds), 1.0), norm_bound, 1.0)
        # A product of two entries is no larger than the squared norm of a row.
        units = 1 << sum_bits(noise, len(rows)) // 2
        records = round_to_grid(sample, bounds, Grid(units, 1))
        # In float64, where sums of integers below 2**53 are exact in any order.
        return cls(second_moments(records._replace(unit=1.0), 1.0), float(units), records.unit)

    def add_noise(self, noise: DescentNoise, rng: Rng) -> Floats:
        """Return the sum, its upper triangle with the noise of release_moment."""
        upper, square = np.triu_indices(len(self.matrix), 1), self.norm**2
        above = add_noise(self.matrix[upper], square, noise, rng)
        matrix = np.diag(add_noise(self.matrix.diagonal(), _ROOT * square, noise, rng))
        matrix[upper] = above
        matrix.T[upper] = above
        return matrix


class ReleasedMoment(NamedTuple):
    """A second-moment matrix with noise; any use of it is free of further privacy cost.

    Attributes:
        matrix: Mean of z z', float64 (d, d), symmetric.
        deviation: Deviation of the noise on an entry off the diagonal; on the diagonal it is
            sqrt(2) times as large.
        record: The PrivacyRecord of the rows.
    """

    matrix: Floats
    deviation: float
    record: PrivacyRecord


def release_moment(
    rows: NDArray[Any],
    norm_bound: float,
    privacy: Privacy,
    random_state: RandomState,
    budget: Budget | None,
) -> ReleasedMoment:
    """Release the mean of z z' over rows (n, d) shrunk to norm_bound, with noise.

    Let r = norm_bound. Replacing a row by z' moves the sum by a matrix D whose Frobenius norm is at
    most `sqrt(2) r**2`, since `|z z'|_F = |z|**2` and the inner product of two such matrices is a
    square. Take noise of deviation s above the diagonal and sqrt(2) s on it. The squared ratios of
    change to deviation then add up to `|D|_F**2 / (2 s**2) <= (r**2 / s)**2`, so that
    `s = r**2 / mu` keeps a budget of mu. Both deviations are the least possible: two orthogonal
    rows along axes need `sqrt(2) r**2 / mu` on the diagonal, and two rows with entries of +-r /
    sqrt(d) need `r**2 / mu` off it. The same noise on all entries would have to be
    `sqrt(2) r**2 / mu`, and its spectral norm would be sqrt(2) times as large.

    Raises: ParameterError, BudgetExceeded.
    """
    noise = calibrate_noise(privacy, 1, 0.0)
    sums = MomentSums.from_rows(rows, norm_bound, noise)
    mechanism = "adaptation.PrivateDiscrepancyMinimization, 1 step"
    source = "Bassily, Mohri and Suresh 2022; Gaussian mechanism on the second moments"
    record = make_record(privacy, noise, mechanism, source, random_state)
    with spend(budget, record):
        matrix = sums.add_noise(noise, make_stream(random_state))
    scale = sums.unit**2 / len(rows)
    return ReleasedMoment(matrix * scale, noise.multiple * sums.norm**2 * scale, record)
