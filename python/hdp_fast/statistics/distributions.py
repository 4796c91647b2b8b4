"""Distribution functions of private columns, released whole by counts of cells and of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._support.feature_names import FeatureNames
from .._support.notes import keep_result
from .._support.types import Floats, Integers, RandomState
from .._support.validate import positive_int
from ..budget.account import Budget, Neighbors
from ..data.goal import Goal, check_goal
from ..data.states import Tally
from ..record import PrivacyRecord
from .bounded_columns import (
    check_number,
    keep_rows,
    read_bounds,
    read_columns,
    read_members,
    whole_columns,
)
from .ranks import Grid, count_points, settle_points
from .release_noise import Noise, Sensitivity, bound_sums, release
from .results import Distribution

USUAL_CELLS, MOST_CELLS = (1 << 12) - 1, 1 << 14
# With fewer cells than this blocks of them cost more than they spare.
_FEW_CELLS = 48
# What sums of floats may be off, as a share of the largest.
_ROUNDING = 1e-9


@keep_result
def distribution(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    steps: int | None = None,
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Distribution | dict[Any, Any]:
    """Releases the whole distribution function of private values between public bounds.

    The records at each point of an even grid are counted, and those of blocks of about as many
    points as there are blocks, all with discrete Laplace noise. Blocks and points are made
    consistent by least squares, with each other and with the number of records where it is public,
    and the sums along the grid made increasing. Any question about the distribution then costs
    nothing more: shares, quantiles, tails. Quantiles of a few levels by `quantiles` err less where
    epsilon times the number of records is small, or where most of the grid is empty.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        steps: Number of steps of the grid, from 1 to `2**14`. None takes high - low for a column of
            bool or an integer dtype whose bounds are whole numbers at most `2**14` apart, and
            4,095 for others. More steps need more noise: the error grows as their fourth root.
        confidence: Probability of each band, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The distribution of a vector, or a dict of them by column; with groups, a dict of these by
        key.

    Raises:
        ShapeError: values has no column or more than two dimensions, the number of records is
            public and 0, or `by` has another length.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon left.

    Guarantee:
        Pure epsilon-DP for `neighbors`, for all columns and groups together; exact. A record is in
        one point and one block of each column, in one group: adding one moves two counts of a
        column by 1, or one where there are no blocks, and replacing one moves twice as many. What
        follows takes the noisy counts alone. No value of a record causes an error or a warning.

    Cost:
        A pass over the records, and one over the grid.

    Source:
        Counts of a tree with consistency: Hay, Rastogi, Miklau and Suciu 2010, here with two levels
        of equal width. The band is Chernoff's bound of each sum of noise, with a union bound over
        the points; that of the population adds Massart's of 1990 for the empirical function.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> incomes = np.linspace(0, 80_000, 50_001)
        >>> released = statistics.distribution(incomes, low=0, high=1e5, epsilon=1.0)
        >>> bool(abs(released.at(20_000) - 0.25) < 0.01)
        True
    """
    goal = check_goal(epsilon, None, neighbors, budget, random_state, confidence)
    if steps is not None:
        positive_int("steps", steps, MOST_CELLS)
    rows, names = read_columns(values)
    whole = whole_columns(rows)
    members = read_members(by, groups, len(rows))
    goal = goal.of_people(ids, rows_per_person, len(rows))
    rows, members = keep_rows(goal.persons, rows, members)
    check_number(len(rows), neighbors, grouped=members is not None)
    bounds = read_bounds(low, high, names, rows.shape[1])
    grid = Grid(bounds, settle_points(steps, bounds, whole, USUAL_CELLS, MOST_CELLS))
    counted = count_points(rows, grid, members)
    keys = None if members is None else members.keys
    return release_distributions(counted, grid, names, keys, goal, n=len(rows))


def release_distributions(
    counted: Sequence[Sequence[Tally]],
    grid: Grid,
    names: FeatureNames,
    keys: tuple[Any, ...] | None,
    goal: Goal,
    *,
    n: int,
) -> Distribution | dict[Any, Any]:
    """The distributions of each group and column, of the summed counts of all parts.

    counted: what `count_points` makes, the columns of each group, or of one where there are none.
    n: the number of records, which is used under "replace_one" alone.
    """
    plans = [_Cells.plan(points + 1) for points in grid.points]
    tables = [
        plan.tally(records)
        for columns in counted
        for plan, records in zip(plans, columns, strict=True)
    ]
    replaced = goal.neighbors == "replace_one"
    moved = sum(plan.levels for plan in plans) * (2 if replaced else 1)
    noisy, drawn, record = release(
        np.concatenate(tables),
        Sensitivity(moved, moved),
        goal,
        name="distribution",
        n=n if replaced else None,
        span=1,
    )
    parts = iter(np.split(noisy, np.cumsum([len(table) for table in tables])[:-1]))
    known = n if replaced and keys is None else None
    groups = []
    for _ in counted:
        results = [
            _release_column(plan, next(parts), drawn, place, grid, goal, known, record)
            for place, plan in enumerate(plans)
        ]
        groups.append(results[0] if names is None else dict(zip(names, results, strict=True)))
    return groups[0] if keys is None else dict(zip(keys, groups, strict=True))


def _release_column(
    plan: _Cells,
    noisy: Integers,
    drawn: Noise,
    place: int,
    grid: Grid,
    goal: Goal,
    n: int | None,
    record: PrivacyRecord,
) -> Distribution:
    """The function of one column in one group, and its bands."""
    sums = plan.add_up(noisy.astype(np.float64), n)
    # Both sides of each point's sum, and of the number of records where it is not public.
    beta = goal.beta / 2 / (len(sums) + 1)
    wide, wider = (plan.bound(drawn, part, known=n is not None) for part in (beta, beta / 2))
    total = float(n) if n is not None else max(float(sums[-1]), 1.0)
    low, high = _bound_shares(sums, wide, n)
    value = (make_increasing(sums) / total).clip(low, high)
    # With half of beta for the noise, the other half is for who was sampled.
    outer = _bound_shares(sums, wider, n)
    least = n if n is not None else max(float(sums[-1] - wider[-1]), 0.0)
    beyond = math.sqrt(math.log(4 / goal.beta) / (2 * least)) if least else 1.0
    wider_low, wider_high = (outer[0] - beyond).clip(0), (outer[1] + beyond).clip(0, 1)
    for each in (value, low, high, wider_low, wider_high):
        # No record is above the last point.
        each[-1] = 1.0
    start, end = float(grid.bounds.low[place]), float(grid.bounds.high[place])
    points = (start + np.arange(plan.cells) * (end - start) / grid.points[place]).clip(start, end)
    bands = low, high, wider_low, wider_high
    return Distribution(points, value, *bands, goal.confidence, record)


def _bound_shares(sums: Floats, bounds: Floats, n: int | None) -> tuple[Floats, Floats]:
    """The ends of shares whose sums are off by no more than the bounds, and whose total is, too.

    As shares never fall, each is also above the lower ends before it.
    """
    total = float(sums[-1])
    bounds = bounds + _ROUNDING * max(abs(total), 1.0)
    most = float(n) if n is not None else total + bounds[-1]
    least = float(n) if n is not None else max(total - bounds[-1], 0.0)
    low = (sums - bounds) / max(most, 1.0)
    high = (sums + bounds) / least if least else np.ones_like(sums)
    return np.maximum.accumulate(low.clip(0, 1)), np.minimum.accumulate(high[::-1].clip(0, 1))[::-1]


class _Cells(NamedTuple):
    """How the points of a grid are counted: each by itself, and in blocks where they are many.

    Attributes:
        cells: The number of points.
        width: The points of a block, the last block being filled up with cells without points; all
            of them where there are no blocks.
        blocks: The number of blocks.
    """

    cells: int
    width: int
    blocks: int

    @classmethod
    def plan(cls, cells: int) -> _Cells:
        """Blocks of about as many points as there are blocks."""
        if cells < _FEW_CELLS:
            return cls(cells, cells, 1)
        width = math.isqrt(cells - 1) + 1
        return cls(cells, width, -(-cells // width))

    @property
    def levels(self) -> int:
        """How many counts a record is in."""
        return 1 if self.blocks == 1 else 2

    def tally(self, records: Tally) -> Integers:
        """The counts of all cells, and after them of all blocks, if there are blocks."""
        counts = np.zeros(self.blocks * self.width, np.int64)
        counts[records.places] = records.values
        if self.blocks == 1:
            return counts
        return np.concatenate((counts, counts.reshape(self.blocks, self.width).sum(axis=1)))

    def add_up(self, noisy: Floats, n: int | None) -> Floats:
        """The sums of all cells up to each, by least squares on cells, blocks and their total."""
        table = noisy[: self.blocks * self.width].reshape(self.blocks, self.width)
        of_cells = table.sum(axis=1)
        totals = of_cells
        if self.blocks > 1:
            totals = (self.width * noisy[table.size :] + of_cells) / (self.width + 1)
        if n is not None:
            totals = totals + (n - totals.sum()) / self.blocks
        cells = table + ((totals - of_cells) / self.width)[:, None]
        return np.cumsum(cells.ravel())[: self.cells]

    def bound(self, drawn: Noise, beta: float, *, known: bool) -> Floats:
        """By how much noise moves the sum up to each point, on one side, with beta at most.

        The error of a sum is a sum of draws with public weights. For the point with the place o in
        the block B, the total of a block weighs 1 before B, (o + 1) / width in B and 0 behind, less
        the point's share of all cells where their number is known; a total is made of the block's
        draw and those of its cells, and the cells of B up to the point count themselves in place of
        an even spread.
        """
        place = np.arange(self.cells)
        block, inside = place // self.width, place % self.width + 1
        part = inside / self.width
        share = (block + part) / self.blocks if known else 0.0
        totals = np.array([1 - share + 0 * part, part - share, -share + 0 * part])
        many = np.array([block, 1 + 0 * block, self.blocks - 1 - block])
        # Where there are no blocks, a total is the sum of its cells.
        of_block = self.width / (self.width + 1) if self.blocks > 1 else 0.0
        own = totals * (1 - of_block)
        weights = [totals * of_block, own[[0, 2]], np.array([own[1] + 1 - part, own[1] - part])]
        counts = [many, many[[0, 2]] * self.width, np.array([inside, self.width - inside])]
        return bound_sums(drawn.scale, np.concatenate(weights), np.concatenate(counts), beta)


def make_increasing(sums: Floats) -> Floats:
    """The nearest sequence that never falls, by least squares (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in sums.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            many = sizes.pop()
            mean = (mean * size + means.pop() * many) / (size + many)
            size += many
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)
