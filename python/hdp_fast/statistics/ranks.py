"""Quantiles of private columns, exact: chosen one by one, or by recursion where they are many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.feature_names import FeatureNames
from .._support.notes import keep_result, note
from .._support.random_state import make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import flag, numbers, positive_int, refuse
from ..budget.account import Budget, Neighbors, spend
from ..data.goal import Goal, check_goal
from ..data.rows import Bounds
from ..data.states import Tally
from ..exceptions import ShapeError
from ..noise import exact_epsilon, selection_rate
from ..record import PrivacyRecord, rng_of
from .bounded_columns import (
    Groups,
    blocks_of_cells,
    check_number,
    keep_rows,
    read_bounds,
    read_columns,
    read_members,
    whole_columns,
)
from .cuts import DEVIATION, FEW_POINTS, Recursion, choose, cut_at_records, draw_ends
from .release_noise import bound_sums, note_noise
from .results import Quantiles
from .sampling import check_sample, shift_ranks

MOST_STEPS, _MOST_PARTS = 1 << 24, 1000
USUAL_STEPS = 1 << 20
_LARGEST_SCALE = 1 << 50
_FEW_LEVELS = 2
_NOISE = {
    True: "coins of probability exp(-rate distance in ranks)",
    False: "choices of probability proportional to exp(-rate distance in ranks)",
}
# With fewer records than this part of the points, they are listed and not counted by points.
_SPARSE = 2


@keep_result
def quantiles(
    values: Any,
    levels: ArrayLike,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    steps: int | None = None,
    interval: bool = False,
    confidence: float = 0.95,
    sampled: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Quantiles | dict[Any, Any]:
    """Chooses quantiles of private values between public bounds.

    The candidates are the points of an even grid from `low` to `high`, to which values are clipped
    and rounded; NaN counts as `low`. The score of a point is minus the number of records by which
    its rank is off. All points between two neighboring records have one score, so that the time
    does not grow with the grid. The budget is split evenly among the columns.

    One or two levels are chosen one by one, each with its share of epsilon: a value of many records
    has all of their ranks, and on a grid of at most 4,096 points permute-and-flip chooses one,
    which errs less there, on others the exponential mechanism. From three levels on they are cut
    one between two others where a forecast from the levels says that this errs less: 99 levels then
    cost as much as seven. A value of many records is cut at its right rank. Where the number of
    records is public, levels so near each other that a cut would show nothing stand evenly between
    the cuts of others.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        levels: The k levels in [0, 1], shape (k,), or one number. Each is taken as the nearest
            fraction with a denominator of at most 1,000.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        steps: Number of steps of the grid, from 1 to `2**24`. None takes high - low for a column of
            bool or an integer dtype whose bounds are whole numbers at most `2**24` apart, so that
            its quantiles are whole, and `2**20` for others.
        interval: Whether each quantile comes with an interval. Its ends are two more choices where
            levels are chosen one by one, which leaves a quantile a third of its epsilon. In a
            recursion half of epsilon counts the records between the quantiles and at them, with
            noise, and `rank_error` comes of these counts.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of the statement about the ranks of each value, and of each
            interval, in (0, 1).
        sampled: Whether each quantile also has an interval for that of the population that the
            records are an independent sample of. It costs as much as `interval`, in a recursion
            nothing beside it, and needs a public number of records, without groups; with ids, one
            row a person.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The quantiles of a vector, or a dict of them by column; with groups, a dict of these by key.
        They come with an error in ranks, and with `interval` with one in the values' own unit.

    Raises:
        ShapeError: values has no column or more than two dimensions, the number of records is
            public and 0, levels has more than one dimension or no entry, or `by` has another
            length.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon left.

    Guarantee:
        Pure epsilon-DP for `neighbors`, for all levels, columns and groups together; exact.
        Replacing a record moves a rank by 1; adding one moves the rank's distance from level q by
        at most the larger of q and 1 - q, and with groups, replacing one does so in two of them. In
        a recursion a record takes part in one choice of each depth, or with shares that add up to
        one in several: a depth has epsilon / depth. Counts are a histogram's. No value of a record
        causes an error or a warning. The running time depends on the records.

    Cost:
        A pass over the records, and sorting them where there are few; for each level, in a
        recursion for each depth, a pass over the different values; a few coins.

    Source:
        McSherry and Talwar 2007; McKenna and Sheldon 2020; Smith 2011 for quantiles; Kaplan,
        Schnapp and Stemmer 2022 for the recursion, with our rates and treatment of ties. Points are
        grouped by rank, and groups are proposed by integers around their chances.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> incomes = np.linspace(0, 80_000, 50_001)
        >>> levels, bounds = [0.25, 0.5, 0.75], {"low": 0, "high": 1e6}
        >>> quarters = statistics.quantiles(incomes, levels, **bounds, epsilon=1.0)
        >>> bool(abs(quarters.value - [20_000, 40_000, 60_000]).max() < 1000)
        True
    """
    goal = check_goal(epsilon, None, neighbors, budget, random_state, confidence, sampled)
    choice = Choice(levels, steps, interval)
    choice.check()
    rows, names = read_columns(values)
    whole = whole_columns(rows)
    members = read_members(by, groups, len(rows))
    goal = goal.of_people(ids, rows_per_person, len(rows))
    rows, members = keep_rows(goal.persons, rows, members)
    check_number(len(rows), neighbors, grouped=members is not None)
    bounds = read_bounds(low, high, names, rows.shape[1])
    keys = None if members is None else members.keys
    grid = Grid(bounds, settle_points(steps, bounds, whole))
    plan = plan_quantiles(choice, grid, keys, goal, n=len(rows))
    return plan.release(count_points(rows, grid, members), names, keys)


class Choice(NamedTuple):
    """Which quantiles are chosen, as the arguments of `quantiles`."""

    levels: Any
    steps: int | None
    interval: bool

    def check(self) -> tuple[list[Fraction], bool]:
        """The levels as fractions, and whether there are intervals.

        Raises: ShapeError and ParameterError as `quantiles` does.
        """
        if self.steps is not None:
            positive_int("steps", self.steps, MOST_STEPS)
        return _read_levels(self.levels), flag("interval", self.interval)


class Grid(NamedTuple):
    """The points that values are rounded to.

    Attributes:
        bounds: Bounds of the columns.
        points: The last point of the grid 0, ..., points of each column.
    """

    bounds: Bounds
    points: tuple[int, ...]


def settle_points(
    steps: int | None,
    bounds: Bounds,
    whole: Sequence[bool],
    usual: int = USUAL_STEPS,
    most: int = MOST_STEPS,
) -> tuple[int, ...]:
    """The steps of each column's grid; those of whole numbers are integers where none are asked."""
    if steps is not None:
        return (int(steps),) * len(whole)
    spans = zip(bounds.low.tolist(), bounds.high.tolist(), whole, strict=True)
    return tuple(
        int(high - low)
        if kind and low.is_integer() and high.is_integer() and high - low <= most
        else usual
        for low, high, kind in spans
    )


def plan_quantiles(
    choice: Choice, grid: Grid, keys: tuple[Any, ...] | None, goal: Goal, *, n: int
) -> QuantilePlan:
    """How quantiles are chosen, from public facts alone; warns where n records show nothing.

    n: the number of records, which is used under "replace_one" alone.
    """
    levels, interval = choice.check()
    known = goal.neighbors == "replace_one" and keys is None
    check_sample(goal, known=known)
    pairs = interval + goal.sampled
    plan = QuantilePlan(
        tuple(levels),
        *_choose_mechanism(levels, pairs, len(grid.points), keys is not None, goal, n),
        grid,
        goal,
        interval,
        keys is not None,
        n if known else None,
    )
    if goal.neighbors == "replace_one":
        if plan.exceeds_all(plan.forecast_errors(), n):
            note_noise("quantiles", n, goal.epsilon)
        elif any(plan.exceeds_all(plan.rank_errors(place), n) for place in range(len(grid.points))):
            rule = "they may be off by any rank, though as a rule by fewer"
            helps = "more records or a larger epsilon help"
            note(f"quantiles at epsilon = {goal.epsilon:g} of n = {n:,}: {rule}; {helps}")
    return plan


def _choose_mechanism(
    levels: Sequence[Fraction], pairs: int, width: int, grouped: bool, goal: Goal, n: int
) -> tuple[list[Fraction], Recursion | None]:
    """The rates of levels that are chosen one by one, or a recursion where it errs less.

    pairs: how many intervals each quantile has.
    """
    choices = width * len(levels) * (1 + 2 * pairs)
    distinct = sorted(set(levels))
    if len(distinct) <= _FEW_LEVELS:
        return [choose_rate(level, goal, choices, grouped=grouped) for level in levels], None
    one_way = goal.neighbors == "add_remove"
    share = exact_epsilon(goal.epsilon) / (width * goal.persons.rows * (2 if pairs else 1))
    known = None if one_way or grouped else n
    cuts = Recursion.plan(distinct, share, one_way=one_way, fixed=not (one_way or grouped), n=known)
    moves = [Fraction(largest_move(level, goal.neighbors, grouped=grouped), level.denominator)
             for level in distinct]  # fmt: skip
    alone = [float(DEVIATION * 2 * move * choices / (share * width)) for move in moves]
    if pairs:
        alone = [error / 2 for error in alone]
    if sum(cuts.deviations) < sum(alone):
        _check_rate(cuts.least_rate, goal)
        return [], cuts
    return [choose_rate(level, goal, choices, grouped=grouped) for level in levels], None


@dataclass(frozen=True, eq=False)
class QuantilePlan:
    """How the quantiles of each group and column are chosen, from public facts alone.

    Attributes:
        levels: The levels in increasing order.
        rates: How fast a point's chances fall with its distance from each, where the levels are
            chosen one by one.
        cuts: The recursion over the different levels, where they are not.
        grid: The points of each column.
        goal: The privacy parameters, and the confidence.
        interval: Whether each quantile comes with an interval.
        grouped: Whether there are groups.
        n: The number of records of each quantile, where it is public.
    """

    levels: tuple[Fraction, ...]
    rates: list[Fraction]
    cuts: Recursion | None
    grid: Grid
    goal: Goal
    interval: bool
    grouped: bool
    n: int | None

    def record(self, keys: tuple[Any, ...] | None) -> PrivacyRecord:
        """What protects the records."""
        points = " and ".join(f"{many + 1}" for many in sorted(set(self.grid.points)))
        width, few = len(self.grid.points), max(self.grid.points) < FEW_POINTS
        if self.cuts is None:
            choices = width * len(self.levels) * (1 + 2 * self._pairs)
            what = f"{choices} choices among {points} points each"
            source = "McKenna and Sheldon 2020" if few else "McSherry and Talwar 2007"
        else:
            levels = width * len(self.cuts.levels)
            what = f"{levels} levels, {self.cuts.depth} cuts deep, among {points} points each"
            source, few = "Kaplan, Schnapp and Stemmer 2022", False
        many = "" if keys is None else f" in each of {len(keys)} groups"
        law = _NOISE[few]
        if self.cuts is not None and self._pairs:
            law += f"; discrete Laplace, scale {float(self._scale):.6g} on counts"
        return self.goal.persons.state(
            PrivacyRecord(
                mechanism=f"statistics.quantiles, {what}{many}",
                source=source,
                neighbors=self.goal.neighbors,
                epsilon=self.goal.epsilon,
                noise=law,
                rng=rng_of(self.goal.random_state),
            )
        )

    def forecast_errors(self) -> list[float]:
        """By how many ranks each choice is off: at most where alone, in a recursion as a rule."""
        if self.cuts is None:
            return self.rank_errors(0)
        by_level = dict(zip(self.cuts.levels, self.cuts.deviations, strict=True))
        return [2 * by_level[level] for level in self.levels]

    def exceeds_all(self, errors: Sequence[float], n: int) -> bool:
        """Whether the error in ranks of some level lets it be any of n records."""
        pairs = zip(self.levels, errors, strict=True)
        return any(error >= max(level, 1 - level) * n for level, error in pairs)

    def rank_errors(self, place: int) -> list[float]:
        """By how many ranks each choice in a column is off at most, but for beta."""
        points, beta = self.grid.points[place], self.goal.beta
        if self.cuts is not None:
            bounds = self.cuts.bound_errors(points, beta)
            by_level = dict(zip(self.cuts.levels, bounds, strict=True))
            return [by_level[level] for level in self.levels]
        return [
            math.log((points + 1) / beta) / float(rate * level.denominator)
            for level, rate in zip(self.levels, self.rates, strict=True)
        ]

    def _shifts(self, points: int, *, sampled: bool) -> list[tuple[int, int]]:
        """By how many ranks the ends of each interval aim below and above the quantile's rank."""
        odds = math.log(2 * (points + 1) / self._beta(sampled))
        off = [
            math.ceil(odds / float(rate * level.denominator))
            for level, rate in zip(self.levels, self.rates, strict=True)
        ]
        ranks = [self._sample_ranks(level, sampled) for level in self.levels]
        return [(most + low, most + high) for most, (low, high) in zip(off, ranks, strict=True)]

    def _beta(self, sampled: bool) -> float:
        """The probability with which noise may make an interval miss."""
        return self.goal.beta / 2 if sampled else self.goal.beta

    def _sample_ranks(self, level: Fraction, sampled: bool) -> tuple[int, int]:
        """By how many ranks a population's quantile may be off, with the other half of beta."""
        if not sampled or self.n is None:
            return 0, 0
        return shift_ranks(level, self.n, self.goal.beta / 2)

    def release(
        self,
        counted: Sequence[Sequence[Tally]],
        names: FeatureNames,
        keys: tuple[Any, ...] | None,
    ) -> Quantiles | dict[Any, Any]:
        """The quantiles of each group and column, of the summed counts of all parts.

        counted: what `count_points` makes, the columns of each group, or of one where there are
        none.
        """
        stream, record = make_stream(self.goal.random_state), self.record(keys)
        draw = self._choose if self.cuts is None else self._cut
        with spend(self.goal.budget, record):
            groups = []
            for columns in counted:
                results = [
                    self._place(place, draw(place, one, stream), record)
                    for place, one in enumerate(columns)
                ]
                groups.append(
                    results[0] if names is None else dict(zip(names, results, strict=True))
                )
        return groups[0] if keys is None else dict(zip(keys, groups, strict=True))

    def _place(self, place: int, chosen: _Chosen, record: PrivacyRecord) -> Quantiles:
        """Chosen points as values between a column's bounds."""
        points = self.grid.points[place]
        bounds = self.grid.bounds
        low, high = float(bounds.low[place]), float(bounds.high[place])

        def place_all(some: Integers) -> Floats:
            return (low + some * (high - low) / points).clip(low, high)

        ends = [(None, None) if pair is None else map(place_all, pair) for pair in chosen.ends]
        levels, value = tuple(map(float, self.levels)), place_all(chosen.points)
        error, confidence = chosen.rank_error, self.goal.confidence
        return Quantiles(value, levels, error, confidence, record, *ends[0], *ends[1])

    def _choose(self, place: int, records: Tally, stream: np.random.Generator | None) -> _Chosen:
        """Points of one column, each by itself."""
        points, choices = self.grid.points[place], zip(self.levels, self.rates, strict=True)
        pieces, error = cut_at_records(records, points), max(self.rank_errors(place))
        pairs = list(choices)
        drawn = [choose(pieces, pieces.distances(level), rate, stream) for level, rate in pairs]
        chosen = np.sort(np.array(drawn))

        def draw_all(sampled: bool) -> list[tuple[int, int]]:
            shifts = self._shifts(points, sampled=sampled)
            return [
                draw_ends(records, points, pair, some, stream)
                for pair, some in zip(pairs, shifts, strict=True)
            ]

        return _Chosen(chosen, error, self._make_ends(chosen, draw_all))

    def _make_ends(
        self, chosen: Integers, make: Callable[[bool], list[tuple[int, int]]]
    ) -> list[tuple[Integers, Integers] | None]:
        """The intervals for the records and for their population, or None; they hold the choices.

        make: makes the ends of all levels; it takes whether they are for the population.
        """
        pairs: list[tuple[Integers, Integers] | None] = []
        for sampled, asked in enumerate((self.interval, self.goal.sampled)):
            low, high = np.array(make(bool(sampled))).T if asked else (chosen, chosen)
            pairs.append((np.minimum(low, chosen), np.maximum(high, chosen)) if asked else None)
        return pairs

    def _cut(self, place: int, records: Tally, stream: np.random.Generator | None) -> _Chosen:
        """Points of one column by recursion, and by noisy counts between them their intervals."""
        assert self.cuts is not None
        points = self.grid.points[place]
        drawn = self.cuts.draw(records, points, stream)
        place_of = {level: place for place, level in enumerate(self.cuts.levels)}
        chosen = drawn[[place_of[level] for level in self.levels]]
        if not self._pairs:
            return _Chosen(chosen, max(self.rank_errors(place)), [None, None])
        marks = np.unique(drawn)
        counts = count_between(records, marks)
        noisy = counts + noise.discrete_laplace(self._scale, len(counts), random_state=stream)

        def enclose_all(sampled: bool) -> list[tuple[int, int]]:
            return [self._enclose(level, marks, noisy, points, sampled) for level in self.levels]

        error = self._measure_error(chosen, marks, noisy)
        return _Chosen(chosen, error, self._make_ends(chosen, enclose_all))

    @property
    def _pairs(self) -> int:
        """How many intervals each quantile has: for the records, and for their population."""
        return self.interval + self.goal.sampled

    @property
    def _scale(self) -> Fraction:
        """The scale of the noise on counts, which have half of a column's epsilon."""
        moved = 2 if self.goal.neighbors == "replace_one" else 1
        rows = moved * len(self.grid.points) * self.goal.persons.rows
        return 2 * rows / exact_epsilon(self.goal.epsilon)

    def _enclose(
        self, level: Fraction, marks: Integers, noisy: Integers, points: int, sampled: bool
    ) -> tuple[int, int]:
        """The ends of a level's interval: points whose ranks are surely below it, and above.

        Points are tested in order from either end, and the first that is not surely on its side
        ends the tests, so that the first that is not on it errs alone.
        """
        low, high, beta = 0, points, self._beta(sampled)
        before, after = self._sample_ranks(level, sampled)
        for place in range(len(marks)):
            value, half = self._rank(level, noisy, 2 * place + 1, beta)
            if not -value - half >= before:
                break
            low = int(marks[place])
        for place in reversed(range(len(marks))):
            value, half = self._rank(level, noisy, 2 * place + 2, beta)
            if not value - half >= after:
                break
            high = int(marks[place])
        return low, high

    def _rank(
        self, level: Fraction, noisy: Integers, cells: int, beta: float
    ) -> tuple[float, float]:
        """The records in the first cells beyond a level's share, and how far noise moves that.

        The noise exceeds the second number on one side with half of beta at most.
        """
        rest, before = len(noisy) - cells, float(noisy[:cells].sum())
        after = float(noisy[cells:].sum())
        # The share of the last cells is known twice where n is public: take the least noise.
        weight = float(level) if self.n is None else cells / len(noisy)
        value = (1 - weight) * before - weight * after
        if self.n is not None:
            value += (weight - float(level)) * self.n
        weights, many = np.array([[1 - weight], [weight]]), np.array([[cells], [rest]])
        return value, float(bound_sums(self._scale, weights, many, [beta / 2])[0, 0])

    def _measure_error(self, chosen: Integers, marks: Integers, noisy: Integers) -> float:
        """By how many ranks a chosen point is off at most, as the counts say."""
        errors = [0.0]
        for level, place in zip(self.levels, np.searchsorted(marks, chosen).tolist(), strict=True):
            below, half = self._rank(level, noisy, 2 * place + 1, self.goal.beta)
            upto, more = self._rank(level, noisy, 2 * place + 2, self.goal.beta)
            errors += [below + half, more - upto]
        return max(errors)


class _Chosen(NamedTuple):
    """Points that were chosen in a column, and the ends of their intervals.

    rank_error: by how many ranks each is off at most. ends: those for the records, and those for
    their population; None where they were not asked for.
    """

    points: Integers
    rank_error: float
    ends: list[tuple[Integers, Integers] | None]


def count_between(records: Tally, marks: Integers) -> Integers:
    """How many records stand below the first mark, at it, between it and the second, and so on."""
    upto = np.concatenate(([0], np.cumsum(records.values, dtype=np.int64)))
    ends = np.searchsorted(records.places, np.repeat(marks, 2) + np.tile([0, 1], len(marks)))
    return np.diff(upto[np.concatenate(([0], ends, [len(records.places)]))])


def _read_levels(levels: Any) -> list[Fraction]:
    values = np.atleast_1d(np.asarray(numbers("levels", levels), np.float64))
    if values.ndim != 1 or not values.size:
        raise ShapeError(f"levels has shape {values.shape}, but it must be (k,) with k >= 1")
    if not ((values >= 0) & (values <= 1)).all():
        refuse("levels", levels, "each must lie in [0, 1]")
    return sorted(Fraction(level).limit_denominator(_MOST_PARTS) for level in values.tolist())


def choose_rate(level: Fraction, goal: Goal, choices: int, *, grouped: bool) -> Fraction:
    """How fast a point's chances fall with its distance."""
    move = largest_move(level, goal.neighbors, grouped=grouped)
    rate = selection_rate(goal.epsilon, move * choices * goal.persons.rows, monotonic=False)
    _check_rate(rate, goal)
    return rate


def _check_rate(rate: Fraction, goal: Goal) -> None:
    if rate * _LARGEST_SCALE < 1:
        refuse("epsilon", goal.epsilon, "it needs more noise than is drawn: take a larger one")


def largest_move(level: Fraction, neighbors: str, *, grouped: bool = False) -> int:
    """The most by which distances differ between neighbors, in parts of the level.

    With groups, those of all groups are added up: replacing a record takes one away from a group
    and adds one to another, which is more than replacing it within a group.
    """
    parts, whole = level.as_integer_ratio()
    one = max(parts, whole - parts)
    if neighbors == "replace_one":
        return 2 * one if grouped else whole
    return one


def count_points(
    rows: NDArray[Any], grid: Grid, members: Groups | None = None
) -> list[list[Tally]]:
    """How many records of a part stand at each point of the grid.

    They are counted by column, in each group, or in one where there are none.
    """
    if members is None:
        return [_count_columns(rows, grid)]
    order = np.argsort(members.codes, kind="stable")
    ends = np.searchsorted(members.codes[order], np.arange(len(members.keys) + 1))
    return [_count_columns(rows[order[slice(*pair)]], grid) for pair in pairwise(ends)]


def _count_columns(rows: NDArray[Any], grid: Grid) -> list[Tally]:
    counted = []
    low, high = grid.bounds.low, grid.bounds.high
    for place, (*ends, points) in enumerate(zip(low, high, grid.points, strict=True)):
        own = Bounds(np.array(ends[:1]), np.array(ends[1:]))
        blocks = (
            own.round(rows[block, place : place + 1], points)[:, 0]
            for block in blocks_of_cells(len(rows), 1)
        )
        # Few records are listed: a grid may have many more points.
        many = len(rows) * _SPARSE > points
        counted.append(_count_dense(blocks, points) if many else _list_points(blocks))
    return counted


def _list_points(blocks: Iterable[Integers]) -> Tally:
    return Tally(np.concatenate([np.empty(0, np.int64), *blocks]))


def _count_dense(blocks: Iterable[Integers], points: int) -> Tally:
    total = np.zeros(points + 1, np.int64)
    for block in blocks:
        np.add.at(total, block, 1)
    taken = np.flatnonzero(total != 0)
    return Tally(taken, total[taken])
