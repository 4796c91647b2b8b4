"""Distribution functions of private columns, released whole by counts of a tree."""

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
_DEEPEST = 4
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

    The records at each point of an even grid are counted, and those of blocks of points and of
    blocks of blocks, all with discrete Laplace noise. Counts are made consistent by least squares,
    with each other and with the number of records where it is public, and at least 0. Any question
    about the distribution then costs nothing more: shares, quantiles, tails. `quantiles` of a few
    levels err less, and need no bounds that are near the records.

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
            4,095 for others. More steps need more noise: 4,095 have
            twice the error of 120.
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
        one count of each level of each column, in one group: adding one moves as many counts by 1
        as there are levels in all columns, and replacing one at most twice as many. What follows
        takes the noisy counts alone. No value of a record causes an error or a warning.

    Cost:
        A pass over the records, and one over the grid.

    Source:
        Counts of a tree with consistency: Hay, Rastogi, Miklau and Suciu 2010, with wide blocks
        (Qardaji, Yang and Li 2013). The band is Chernoff's bound of each sum of noise, with a union
        bound over the points; that of the population adds Massart's bound of 1990 for the empirical
        function.

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
    plans = [_Tree.plan(points + 1) for points in grid.points]
    tables = [
        plan.tally(records)
        for columns in counted
        for plan, records in zip(plans, columns, strict=True)
    ]
    replaced = goal.neighbors == "replace_one"
    moved = sum(plan.depth for plan in plans) * (2 if replaced else 1)
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
    plan: _Tree,
    noisy: Integers,
    drawn: Noise,
    place: int,
    grid: Grid,
    goal: Goal,
    n: int | None,
    record: PrivacyRecord,
) -> Distribution:
    """The function of one column in one group, and its bands."""
    levels = plan.average(noisy.astype(np.float64))
    sums = plan.add_up(levels, n)
    # Both sides of each point's sum, and of the number of records where it is not public.
    beta = goal.beta / 2 / (len(sums) + 1)
    wide, wider = plan.bound(drawn, [beta, beta / 2], known=n is not None)
    total = float(n) if n is not None else max(float(levels[0].sum()), 1.0)
    low, high = _bound_shares(sums, wide, n)
    value = (plan.add_up_positive(levels, total) / total).clip(low, high)
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


class _Tree(NamedTuple):
    """How the points of a grid are counted: each by itself, in blocks, and in blocks of these.

    Attributes:
        cells: The number of points.
        width: How many parts each block has; the last blocks are filled up with cells without
            points.
        depth: How many counts a record is in.
    """

    cells: int
    width: int
    depth: int

    @classmethod
    def plan(cls, cells: int) -> _Tree:
        """The depth with the least error: a sum has depth times width parts of depth^2 variance."""
        trees = []
        for depth in range(1, _DEEPEST + 1):
            width = max(math.ceil(cells ** (1 / depth) - _ROUNDING), 2)
            width += width**depth < cells
            trees.append(cls(cells, width, depth))
        return min(trees, key=lambda tree: tree.depth**3 * tree.width)

    @property
    def sizes(self) -> list[int]:
        """The number of counts on each level, of the largest blocks first."""
        return [self.width**level for level in range(1, self.depth + 1)]

    def tally(self, records: Tally) -> Integers:
        """The counts of all levels, one after the other."""
        counts = np.zeros(self.width**self.depth, np.int64)
        counts[records.places] = records.values
        levels = [counts]
        while len(levels[0]) > self.width:
            levels.insert(0, levels[0].reshape(-1, self.width).sum(axis=1))
        return np.concatenate(levels)

    def _own_shares(self) -> list[float]:
        """What a block's own count weighs in its average with the sum of its parts, by level."""
        shares, variance = [1.0], 1.0
        for _ in range(self.depth - 1):
            of_parts = self.width * variance
            shares.insert(0, of_parts / (1 + of_parts))
            variance = of_parts / (1 + of_parts)
        return shares

    def average(self, noisy: Floats) -> list[Floats]:
        """The counts of each level by least squares on its blocks and all below them."""
        levels = np.split(noisy, np.cumsum(self.sizes)[:-1])
        for level in reversed(range(self.depth - 1)):
            share, parts = self._own_shares()[level], levels[level + 1].reshape(-1, self.width)
            levels[level] = share * levels[level] + (1 - share) * parts.sum(axis=1)
        return levels

    def add_up(self, levels: Sequence[Floats], n: int | None) -> Floats:
        """The sums of all cells up to each, by least squares on all counts and their total."""
        total = np.array([levels[0].sum() if n is None else float(n)])
        for level in levels:
            parts = level.reshape(-1, self.width)
            total = (parts + ((total - parts.sum(axis=1)) / self.width)[:, None]).ravel()
        return np.cumsum(total)[: self.cells]

    def add_up_positive(self, levels: Sequence[Floats], total: float) -> Floats:
        """The same with no negative count, from the largest blocks on, each as near as can be."""
        totals = np.array([total])
        for level in levels:
            totals = project_on_totals(level.reshape(-1, self.width), totals).ravel()
        return np.cumsum(totals)[: self.cells]

    def bound(self, drawn: Noise, betas: Sequence[float], *, known: bool) -> Floats:
        """By how much noise moves the sum up to each point, on one side, with each beta at most.

        The error of a sum is a sum of draws with public weights. On each level, the blocks that
        share a parent with the point's own count 1 where they lie before it, its own as the sum's
        share of it, and all of them less the sum's share of their parent, which their total settles
        (for the largest where the number of records is known). Each block's count is an average of
        draws of itself and of those below it; own blocks pass a part of their weight on to theirs.
        """
        digits = [
            np.arange(self.cells) // self.width ** (self.depth - 1 - level) % self.width
            for level in range(self.depth)
        ]
        digits[-1] = digits[-1] + 1
        shares = [np.zeros(self.cells)]
        for digit in reversed(digits):
            shares.insert(0, (digit + shares[0]) / self.width)
        if not known:
            shares[0] = np.zeros(self.cells)
        own, weights, many = self._own_shares(), [], []
        passed = np.zeros(self.cells)
        for level, digit in enumerate(digits):
            last = level == self.depth - 1
            sides = [(1 - shares[level] + passed, digit)]
            sides.append((passed - shares[level], self.width - digit - (0 if last else 1)))
            for weight, blocks in sides:
                for below in range(level, self.depth):
                    part = math.prod(1 - share for share in own[level:below]) * own[below]
                    weights.append(weight * part)
                    many.append(blocks * self.width ** (below - level))
            if not last:
                mine = shares[level + 1] - shares[level] + passed
                weights.append(mine * own[level])
                many.append(np.ones_like(digit))
                passed = mine * (1 - own[level])
        return bound_sums(drawn.scale, np.array(weights), np.array(many), betas)


def project_on_totals(rows: Floats, totals: Floats) -> Floats:
    """The rows of at least 0 nearest to some rows, by least squares, that have these sums."""
    ordered = -np.sort(-rows, axis=1)
    places = np.arange(1, rows.shape[1] + 1)
    excess = (np.cumsum(ordered, axis=1) - totals[:, None]) / places
    last = np.maximum((ordered > excess).sum(axis=1), 1) - 1
    projected: Floats = np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0)
    projected[totals <= 0] = 0
    return projected
