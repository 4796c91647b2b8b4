"""Quantiles by permute-and-flip or the exponential mechanism, exact, by gaps between records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.feature_names import FeatureNames
from .._support.notes import keep_result
from .._support.random_state import make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import flag, numbers, positive_int, refuse
from ..budget.account import Budget, Neighbors, spend
from ..data.goal import Goal, check_goal
from ..data.rows import Bounds
from ..data.states import Tally
from ..exceptions import ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .bounded_columns import (
    Groups,
    blocks_of_cells,
    check_number,
    keep_rows,
    read_bounds,
    read_columns,
    read_members,
)
from .release_noise import note_noise
from .results import Quantiles

MOST_STEPS, _MOST_PARTS = 1 << 24, 1000
_LARGEST_SCALE, _LARGEST_SHIFT = 1 << 50, 1 << 40
# Up to here permute-and-flip visits each point; with more, its error is that of the other.
_FEW_POINTS = 1 << 12
_NOISE = {
    True: "coins of probability exp(-rate distance in ranks)",
    False: "choices of probability proportional to exp(-rate distance in ranks)",
}
# With fewer records than this part of the points, they are sorted and not counted by points.
_SPARSE = 8
# With more rings than this many for each piece, most of them have none.
_DENSE_RINGS = 4
_FIRST_BATCH, _LARGEST_BATCH = 64, 1 << 16


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
    steps: int = 1 << 20,
    interval: bool = False,
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Quantiles | dict[Any, Any]:
    """Chooses quantiles of private values between public bounds.

    The candidates are the points of an even grid from `low` to `high`, to which values are clipped
    and rounded; NaN counts as `low`. The score of a point is minus the number of records by which
    its rank is off: a value of many records has all of their ranks. All points between two
    neighboring records have one score, so that the time does not grow with the grid. On a grid of
    at most 4,096 points permute-and-flip chooses one, which errs less there, and on others the
    exponential mechanism. The budget is split evenly among the levels and columns, and the chosen
    points are put in order.

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
        steps: Number of steps of the grid, from 1 to `2**24`. For whole numbers take high - low:
            no other point is chosen then.
        interval: Whether each quantile comes with an interval, whose ends are two more choices:
            a quantile then has a third of its epsilon.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of the statement about the ranks of each value, and of each
            interval, in (0, 1).
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
        at most the larger of q and 1 - q, and with groups, replacing one does so in two of them. No
        value of a record causes an error or a warning. The running time
        depends on the records.

    Cost:
        A pass over the records, and sorting them where there are few; for each level sorting the
        different values and, in all but odd cases, a few coins.

    Source:
        McSherry and Talwar 2007; McKenna and Sheldon 2020; Smith 2011 for quantiles. Points are
        grouped by rank and proposed with geometric coins, which are accepted by comparison with
        integers.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> incomes = np.linspace(0, 80_000, 50_001)
        >>> levels, bounds = [0.25, 0.5, 0.75], {"low": 0, "high": 1e6}
        >>> quarters = statistics.quantiles(incomes, levels, **bounds, epsilon=1.0)
        >>> bool(abs(quarters.value - [20_000, 40_000, 60_000]).max() < 1000)
        True
    """
    goal = check_goal(epsilon, None, neighbors, budget, random_state, confidence)
    choice = Choice(levels, steps, interval)
    choice.check()
    rows, names = read_columns(values)
    members = read_members(by, groups, len(rows))
    goal = goal.of_people(ids, rows_per_person, len(rows))
    rows, members = keep_rows(goal.persons, rows, members)
    check_number(len(rows), neighbors, grouped=members is not None)
    bounds = read_bounds(low, high, names, rows.shape[1])
    keys = None if members is None else members.keys
    plan = plan_quantiles(choice, bounds, keys, goal, n=len(rows))
    return plan.release(count_points(rows, bounds, plan.points, members), names, keys)


class Choice(NamedTuple):
    """Which quantiles are chosen, as the arguments of `quantiles`."""

    levels: Any
    steps: int
    interval: bool

    def check(self) -> tuple[list[Fraction], int, bool]:
        """The levels as fractions, the steps, and whether there are intervals.

        Raises: ShapeError and ParameterError as `quantiles` does.
        """
        points = positive_int("steps", self.steps, MOST_STEPS)
        return _read_levels(self.levels), points, flag("interval", self.interval)


def plan_quantiles(
    choice: Choice, bounds: Bounds, keys: tuple[Any, ...] | None, goal: Goal, *, n: int
) -> QuantilePlan:
    """How quantiles are chosen, from public facts alone; warns where n records show nothing.

    n: the number of records, which is used under "replace_one" alone.
    """
    parts, points, interval = choice.check()
    choices = len(bounds.low) * len(parts) * (3 if interval else 1)
    rates = [choose_rate(level, goal, choices, grouped=keys is not None) for level in parts]
    many = "" if keys is None else f" in each of {len(keys)} groups"
    row_record = PrivacyRecord(
        mechanism=f"statistics.quantiles, {choices} choices among {points + 1} points each{many}",
        source="McKenna and Sheldon 2020" if points < _FEW_POINTS else "McSherry and Talwar 2007",
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        noise=_NOISE[points < _FEW_POINTS],
        rng=rng_of(goal.random_state),
    )
    record = goal.persons.state(row_record)
    pairs = list(zip(parts, rates, strict=True))
    plan = QuantilePlan(pairs, points, bounds, goal, interval, record)
    errors = zip(parts, plan.rank_errors, strict=True)
    if goal.neighbors == "replace_one" and any(
        error >= max(level, 1 - level) * n for level, error in errors
    ):
        note_noise("quantiles", n, goal.epsilon)
    return plan


@dataclass(frozen=True, eq=False)
class QuantilePlan:
    """How the quantiles of each group and column are chosen, from public facts alone.

    Attributes:
        choices: Each level, and how fast a point's chances fall with its distance from it.
        points: The last point of the grid 0, ..., points.
        bounds: Bounds of the columns.
        goal: The privacy parameters, and the confidence.
        interval: Whether each quantile comes with an interval.
        record: What protects the records.
    """

    choices: list[tuple[Fraction, Fraction]]
    points: int
    bounds: Bounds
    goal: Goal
    interval: bool
    record: PrivacyRecord

    @property
    def rank_errors(self) -> list[float]:
        """By how many ranks each choice is off at most, but for beta."""
        return [
            math.log((self.points + 1) / self.goal.beta) / float(rate * level.denominator)
            for level, rate in self.choices
        ]

    @property
    def shifts(self) -> list[int]:
        """By how many ranks each end of an interval aims away from the quantile's rank."""
        return [
            math.ceil(
                math.log(2 * (self.points + 1) / self.goal.beta) / float(rate * level.denominator)
            )
            for level, rate in self.choices
        ]

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
        stream = make_stream(self.goal.random_state)
        with spend(self.goal.budget, self.record):
            groups = []
            for columns in counted:
                results = [self._choose(place, one, stream) for place, one in enumerate(columns)]
                groups.append(
                    results[0] if names is None else dict(zip(names, results, strict=True))
                )
        return groups[0] if keys is None else dict(zip(keys, groups, strict=True))

    def _choose(self, place: int, records: Tally, stream: np.random.Generator | None) -> Quantiles:
        """The quantiles of the records of one group, in one column."""
        pieces = cut_at_records(records, self.points)
        drawn = [
            choose(pieces, pieces.distances(level), rate, stream) for level, rate in self.choices
        ]
        share = np.sort(np.array(drawn)) / self.points
        ends = self._draw_intervals(share, records, stream) if self.interval else [share, share]
        least, most = float(self.bounds.low[place]), float(self.bounds.high[place])
        value, low_ends, high_ends = (
            (least + part * (most - least)).clip(least, most) for part in (share, *ends)
        )
        stated = tuple(float(level) for level, _ in self.choices)
        kept = (low_ends, high_ends) if self.interval else (None, None)
        error = max(self.rank_errors)
        return Quantiles(value, stated, error, self.goal.confidence, self.record, *kept)

    def _draw_intervals(
        self, share: Floats, records: Tally, stream: np.random.Generator | None
    ) -> list[Floats]:
        pairs = [
            draw_ends(records, self.points, choice, shift, stream)
            for choice, shift in zip(self.choices, self.shifts, strict=True)
        ]
        lower, upper = np.array(pairs).T / self.points
        return [np.minimum(lower, share), np.maximum(upper, share)]


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
    if rate * _LARGEST_SCALE < 1:
        refuse("epsilon", goal.epsilon, "it needs more noise than is drawn: take a larger one")
    return rate


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
    rows: NDArray[Any], bounds: Bounds, points: int, members: Groups | None = None
) -> list[list[Tally]]:
    """How many records of a part stand at each point of the grid 0, ..., points.

    They are counted by column, in each group, or in one where there are none.
    """
    if members is None:
        return [_count_columns(rows, bounds, points)]
    order = np.argsort(members.codes, kind="stable")
    ends = np.searchsorted(members.codes[order], np.arange(len(members.keys) + 1))
    return [_count_columns(rows[order[slice(*pair)]], bounds, points) for pair in pairwise(ends)]


def _count_columns(rows: NDArray[Any], bounds: Bounds, points: int) -> list[Tally]:
    counted = []
    for place, ends in enumerate(zip(bounds.low, bounds.high, strict=True)):
        own = Bounds(np.array(ends[:1]), np.array(ends[1:]))
        blocks = (
            own.round(rows[block, place : place + 1], points)[:, 0]
            for block in blocks_of_cells(len(rows), 1)
        )
        # Few records are sorted: a grid may have many more points.
        many = len(rows) * _SPARSE > points
        counted.append(_count_dense(blocks, points) if many else _count_sorted(blocks))
    return counted


def _count_sorted(blocks: Iterable[Integers]) -> Tally:
    records = np.concatenate([np.empty(0, np.int64), *blocks])
    return Tally(*np.unique(records, return_counts=True))


def _count_dense(blocks: Iterable[Integers], points: int) -> Tally:
    total = np.zeros(points + 1, np.int64)
    for block in blocks:
        np.add.at(total, block, 1)
    taken = np.flatnonzero(total)
    return Tally(taken, total[taken])


@dataclass(frozen=True)
class Pieces:
    """The grid, cut at the records: each record's point, and the points between two of them.

    Attributes:
        start: The first point of each piece.
        width: How many points it has, at least 1.
        below: How many records lie below its points.
        upto: How many lie below them or at them.
        n: The number of records.
    """

    start: Integers
    width: Integers
    below: Integers
    upto: Integers
    n: int

    def distances(self, level: Fraction, shift: int = 0) -> Integers:
        """By how much the rank of each piece is off, in parts of the level; 0 for some piece.

        The rank that is sought is n times the level, plus shift.
        """
        parts, whole = level.as_integer_ratio()
        rank = parts * self.n + whole * shift
        off, under = whole * self.below, whole * self.upto
        off -= rank
        np.maximum(off, np.subtract(rank, under, out=under), out=off)
        return np.maximum(off, 0, out=off)


def cut_at_records(records: Tally, points: int, added: dict[int, int] | None = None) -> Pieces:
    """The pieces of the grid 0, ..., points, for records that are points of it.

    added: how many public records that are no one's stand at some points; n does not count them.
    """
    values, counts = records
    for point, number in (added or {}).items():
        public = Tally(np.array([point]), np.array([number]))
        values, counts = Tally(values, counts).merge(public)
    upto = np.cumsum(counts, dtype=np.int64)
    starts = np.concatenate(([0], values + 1))
    widths = np.concatenate((values, [points + 1])) - starts
    between = np.concatenate(([0], upto))
    some = widths > 0
    return Pieces(
        np.concatenate((values, starts[some])),
        np.concatenate((np.ones_like(values), widths[some])),
        np.concatenate((upto - counts, between[some])),
        np.concatenate((upto, between[some])),
        int(records.values.sum()),
    )


def draw_ends(
    records: Tally,
    points: int,
    choice: tuple[Fraction, Fraction],
    shift: int,
    stream: np.random.Generator | None,
) -> tuple[int, int]:
    """The ends of an interval for the quantile of a level, which is drawn at a rate.

    Where a choice is off by at most `shift` ranks, one that aims so many below the quantile's rank
    is not above it. Records that are no one's stand at the end of the grid, so that there is such a
    rank; they are public and move no distance between neighbors.
    """
    if shift > _LARGEST_SHIFT:
        return 0, points
    level, rate = choice
    lower, upper = (cut_at_records(records, points, {end: shift}) for end in (0, points))
    return (
        choose(lower, lower.distances(level), rate, stream),
        choose(upper, upper.distances(level, shift), rate, stream),
    )


def choose(
    pieces: Pieces, distances: Integers, rate: Fraction, stream: np.random.Generator | None
) -> int:
    """A point, chosen by permute-and-flip where there are few, else as `draw` does."""
    if int(pieces.width.sum()) > _FEW_POINTS:
        return draw(pieces, distances, rate, stream)
    order = np.argsort(pieces.start)
    scores = -np.repeat(distances[order], pieces.width[order])
    return noise.permute_and_flip(
        scores, epsilon=1.0, sensitivity=1 / (2 * rate), random_state=stream
    )


def draw(
    pieces: Pieces, distances: Integers, rate: Fraction, stream: np.random.Generator | None
) -> int:
    """A point whose probability is proportional to exp(-rate distance), exactly.

    Pieces whose distances lie within 1 / rate of each other form a ring. A ring j is proposed with
    probability proportional to its points times exp(-rate j step), by rejection; then one of its
    points, which is accepted for the rest of its distance.
    """
    step = math.ceil(1 / rate)
    ring_of = distances // step
    rings, sizes = _measure_rings(ring_of, pieces.width)
    batch = _FIRST_BATCH
    while True:
        ring = _propose_ring(rings, sizes, 1 / (rate * step), batch, stream)
        batch = min(2 * batch, _LARGEST_BATCH)
        if ring is None:
            continue
        place = noise.uniform_integers(int(sizes[ring]), random_state=stream)
        some = np.flatnonzero(ring_of == rings[ring])
        some = some[np.argsort(distances[some], kind="stable")]
        piece = some[np.searchsorted(np.cumsum(pieces.width[some]), place, side="right")]
        rest = int(distances[piece]) - int(rings[ring]) * step
        if noise.bernoulli_exp(rate * rest, random_state=stream):
            return int(
                pieces.start[piece]
                + noise.uniform_integers(int(pieces.width[piece]), random_state=stream)
            )


def _measure_rings(ring_of: Integers, widths: Integers) -> tuple[Integers, Integers]:
    """The rings that have a piece, in increasing order, and the number of points in each."""
    if int(ring_of.max()) < _DENSE_RINGS * len(ring_of):
        # Sums of at most 2**24 points, which floats hold exactly.
        points = np.bincount(ring_of, weights=widths)
        rings = np.flatnonzero(points)
        return rings, points[rings].astype(np.int64)
    rings, places = np.unique(ring_of, return_inverse=True)
    return rings, np.bincount(places, weights=widths).astype(np.int64)


def _propose_ring(
    rings: Integers,
    sizes: Integers,
    scale: Fraction,
    batch: int,
    stream: np.random.Generator | None,
) -> int | None:
    """The first accepted ring of a batch of proposals; None if there is none."""
    proposed = noise.geometric(scale, batch, random_state=stream)
    places = np.searchsorted(rings, proposed).clip(0, len(rings) - 1)
    most = int(sizes.max())
    heights = np.where(rings[places] == proposed, sizes[places], 0)
    accepted = noise.uniform_integers(most, batch, random_state=stream) < heights
    return int(places[np.argmax(accepted)]) if accepted.any() else None
