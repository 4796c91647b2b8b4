"""The covariance matrix of private columns: exact integer sums of products with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, Integers, RandomState
from .._support.validate import refuse
from ..budget.account import Budget, Neighbors
from .bounded_columns import add_up, public_number, read_bounds, read_columns
from .release_noise import Asked, Noise, Sensitivity, release
from .results import Covariance

# A value lies in -_STEPS, ..., _STEPS, and products of two below 2**30.
_STEPS = 1 << 15
_MOST_COLUMNS = 1000


def covariance(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    confidence: float = 0.95,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Covariance:
    """Computes the covariance matrix of private columns between public bounds.

    Values are clipped to the bounds, rounded to a grid of `2**16` steps and scaled to [-1, 1]; NaN
    counts as the lower bound. The sums of the columns and of all products of two are released, and
    the number of records with them where it is not public. The matrix (division by n) is symmetric;
    noise may make an eigenvalue negative.

    Args:
        values: Columns, an array (n, d), a frame or a dict of vectors, with d at most 1,000.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole matrix, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller, as for
            most matrices; None takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        confidence: Probability of the interval of each entry alone, in (0, 1).
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        The matrix, with an interval for each entry.

    Raises:
        ShapeError: values has no column or more than two dimensions, or the number of records is
            public and 0.
        ParameterError: values has no dtype of numbers or too many columns, or another argument is
            out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP for the whole matrix, and pure epsilon-DP where the record states delta
        0; exact. Replacing a record moves a column's sum and that of its squares together by at
        most 9 / 4, in Euclidean length by 2, and each product of two columns by 2. Adding one moves
        each of the 1 + d + d (d + 1) / 2 sums by at most 1. No value of a record causes an error or
        a warning.

    Cost:
        O(n `d**2`).

    Source:
        Dwork et al. 2006; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> first = np.arange(100_000) % 2
        >>> table = {"a": first, "b": 1 - first}
        >>> matrix = statistics.covariance(table, low=0, high=1, epsilon=2.0)
        >>> bool(abs(matrix.value - [[0.25, -0.25], [-0.25, 0.25]]).max() < 0.01)
        True
    """
    asked = Asked(epsilon, delta, neighbors, confidence, budget, random_state).check()
    rows, names = read_columns(values)
    width = rows.shape[1]
    if width > _MOST_COLUMNS:
        refuse("values", values, f"it must have at most {_MOST_COLUMNS:,} columns")
    known_n = public_number(rows, neighbors)
    bounds = read_bounds(low, high, names, width)
    upper = np.triu_indices(width)

    def count(part: NDArray[Any]) -> Integers:
        """The sums of a part of the rows, as one row."""
        centered = 2 * bounds.round(part, _STEPS) - _STEPS
        floats = centered.astype(np.float64)
        # Exact: sums of at most 2**16 products below 2**30, all of them integers below 2**53.
        products = np.rint(floats.T @ floats).astype(np.int64)[upper]
        number = [len(part) * _STEPS**2] if known_n is None else []
        totals = np.concatenate(
            [np.array(number, np.int64), _STEPS * centered.sum(axis=0), products]
        )
        return totals[None]

    noisy, drawn, record = release(
        add_up(rows, count),
        sensitivity_of(width, neighbors),
        asked,
        name="covariance",
        n=known_n,
    )
    scale = bounds.high / 2 - bounds.low / 2
    value, error = _estimate(noisy, known_n, width, (drawn, asked.beta))
    products = np.outer(scale, scale)
    low_ends, high_ends = ((value + side).clip(-1, 1) * products for side in (-error, error))
    labels = names or ("x0",)
    matrix = value.clip(-1, 1) * products
    return Covariance(matrix, low_ends, high_ends, labels, asked.confidence, record)


def sensitivity_of(width: int, neighbors: str) -> Sensitivity:
    """The largest distance of the integers of neighbors.

    A column that moves by t <= 2 moves its square by at most t (2 - t): t + t (2 - t) is at most 9
    / 4, and t**2 (1 + (2 - t)**2) grows to 4 at t = 2.
    """
    one, pairs = _STEPS**2, width * (width - 1) // 2
    if neighbors == "replace_one":
        return Sensitivity(9 * width * one // 4 + 2 * pairs * one, 4 * (width + pairs) * one**2)
    parts = 1 + 2 * width + pairs
    return Sensitivity(parts * one, parts * one**2)


def _estimate(
    sums: Integers, n: int | None, width: int, noise: tuple[Noise, float]
) -> tuple[Floats, Floats]:
    """The matrix of values in [-1, 1], and the half width of each entry's interval."""
    start = 1 if n is None else 0
    total = float(sums[0]) if n is None else float(n) * _STEPS**2
    if total <= 0:
        return np.zeros((width, width)), np.full((width, width), 2.0)
    # Of the noisy number of records, up to as much noise comes to each part.
    half = (1 + start) * noise[0].half_width(noise[1] / (3 + start)) / total
    means = (sums[start : start + width] / total).clip(-1, 1)
    moments = np.zeros((width, width))
    moments[np.triu_indices(width)] = sums[start + width :] / total
    moments = np.triu(moments) + np.triu(moments, 1).T
    sides = np.abs(means)[:, None] + np.abs(means)
    # Rounding moves each value by 1 / _STEPS at most.
    error = half * (1 + sides + half) + 3 / _STEPS
    return moments - np.outer(means, means), error
