"""The covariance matrix of private columns: exact integer sums of products with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result, note
from .._support.types import Floats, Integers, RandomState
from .._support.validate import refuse
from ..budget.account import Budget, Neighbors
from ..data.goal import Goal, check_goal
from .bounded_columns import (
    Groups,
    add_up,
    check_number,
    keep_rows,
    read_bounds,
    read_columns,
    read_members,
)
from .moment_sums import PublicColumns, settle_columns
from .release_noise import Noise, Sensitivity, release
from .results import Covariance

# A value lies in -_STEPS, ..., _STEPS, and products of two below 2**30.
_STEPS = 1 << 15
_MOST_COLUMNS = 1000


@keep_result
def covariance(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Covariance | dict[Any, Covariance]:
    """Computes the covariance matrix of private columns between public bounds.

    Values are clipped to the bounds, rounded to a grid of `2**16` steps and scaled to [-1, 1]; NaN
    counts as the lower bound. The sums of the columns and of all products of two are released, and
    the number of records with them where it is not public. The matrix (division by n) is symmetric;
    noise may make an eigenvalue negative.

    Args:
        values: Columns, an array (n, d), a frame or a dict of vectors, with d at most 1,000.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole matrix, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller, as for
            most matrices; None takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of the interval of each entry alone, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The matrix, with an interval for each entry. With groups, a dict of matrices by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers or too many columns, or another argument is
            out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP for the whole matrix, or all matrices of groups together, and pure
        epsilon-DP where the record states delta 0; exact. Replacing a record moves a column's sum
        and that of its squares together by at most 9 / 4, in Euclidean length by 2, and each
        product of two columns by 2. Adding one moves each of the 1 + d + d (d + 1) / 2 sums by at
        most 1; with groups, replacing one does so in two of them. No value of a record causes an
        error or a warning.

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
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence)
    rows, names = read_columns(values)
    width = rows.shape[1]
    if width > _MOST_COLUMNS:
        refuse("values", values, f"it must have at most {_MOST_COLUMNS:,} columns")
    members = read_members(by, groups, len(rows))
    goal = goal.of_people(ids, rows_per_person, len(rows))
    rows, members = keep_rows(goal.persons, rows, members)
    check_number(len(rows), neighbors, grouped=members is not None)
    bounds = read_bounds(low, high, names, width)
    keys = None if members is None else members.keys
    public = settle_columns(names, bounds, keys, neighbors, len(rows))
    return release_products(add_products(rows, public, members), public, goal)


def release_products(
    sums: Integers, public: PublicColumns, goal: Goal
) -> Covariance | dict[Any, Covariance]:
    """The matrix, or one for each group, of the summed integers of all parts.

    sums: what `add_products` makes, shape (groups, parts), with one group where there are none.
    """
    drawn_from = sensitivity_of(public.width, goal.neighbors, grouped=public.keys is not None)
    noisy, drawn, record = release(
        sums, drawn_from, goal, name="covariance", n=public.most_n, span=2 * _STEPS**2
    )
    scale = public.bounds.high / 2 - public.bounds.low / 2
    products = np.outer(scale, scale)
    wide = []

    def state(part: Integers) -> Covariance:
        value, error = _estimate(part, public.known_n, public.width, (drawn, goal.beta))
        ends = [(value + side).clip(-1, 1) for side in (-error, error)]
        wide.append(bool(((ends[0] <= -1) & (ends[1] >= 1)).any()))
        least, most = (end * products for end in ends)
        matrix = value.clip(-1, 1) * products
        return Covariance(matrix, least, most, public.names or ("x0",), goal.confidence, record)

    released = [state(part) for part in noisy]
    if public.known_n is None and any(wide):
        rule = "have an interval that holds all that is possible: a larger epsilon helps"
        note(f"{np.count_nonzero(wide):,} of {len(wide):,} released values of covariance {rule}")
    return released[0] if public.keys is None else dict(zip(public.keys, released, strict=True))


def add_products(rows: NDArray[Any], public: PublicColumns, members: Groups | None) -> Integers:
    """The sums of each group, shape (groups, parts): number, columns, and products of two.

    The number is among them where it is not public.
    """
    upper = np.triu_indices(public.width)

    def count(part: NDArray[Any]) -> Integers:
        """The sums of a part of the rows, as one row."""
        centered = 2 * public.bounds.round(part, _STEPS) - _STEPS
        floats = centered.astype(np.float64)
        # Exact: sums of at most 2**16 products below 2**30, all of them integers below 2**53.
        products = np.rint(floats.T @ floats).astype(np.int64)[upper]
        number = [len(part) * _STEPS**2] if public.known_n is None else []
        totals = np.concatenate(
            [np.array(number, np.int64), _STEPS * centered.sum(axis=0), products]
        )
        return totals[None]

    if members is None:
        return add_up(rows, count)[None]
    codes = range(len(members.keys))
    return np.stack([add_up(rows[members.codes == code], count) for code in codes])


def sensitivity_of(width: int, neighbors: str, *, grouped: bool = False) -> Sensitivity:
    """The largest distance of the integers of neighbors.

    A column that moves by t <= 2 moves its square by at most t (2 - t): t + t (2 - t) is at most 9
    / 4, and t**2 (1 + (2 - t)**2) grows to 4 at t = 2. With groups, a replaced record may change
    its group, or stay in it and move as far as without groups.
    """
    one, pairs = _STEPS**2, width * (width - 1) // 2
    parts = 1 + 2 * width + pairs
    added = Sensitivity(parts * one, parts * one**2)
    if neighbors != "replace_one":
        return added
    replaced = Sensitivity(9 * width * one // 4 + 2 * pairs * one, 4 * (width + pairs) * one**2)
    if not grouped:
        return replaced
    moved = added.times(2)
    return Sensitivity(max(moved.absolute, replaced.absolute), max(moved.squared, replaced.squared))


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
