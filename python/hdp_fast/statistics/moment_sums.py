"""Integers of rows whose noisy sums show a count, a sum, a mean or a variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import note
from .._support.numbers import floats
from .._support.types import Floats, Integers
from ..data.goal import Goal
from ..data.persons import Persons, read_persons
from ..data.rows import Bounds
from .bounded_columns import (
    Groups,
    add_up,
    check_number,
    keep_rows,
    read_bounds,
    read_columns,
    read_members,
)
from .release_noise import KnownRange, Noise, ReleasedNoise, Sensitivity, hides_all, release
from .results import Statistic
from .sampling import bound_counts, bound_deviations, bound_mean, check_sample, split_failure

Released = Statistic | dict[Any, Any]
# The value and the ends of its interval.
Ends = tuple[float, float, float]

# Steps of the grid between the bounds. Sums of up to 2**31 records stay below 2**61.
_STEPS, _SQUARE_STEPS = 1 << 20, 1 << 15
# The part of beta with which a private number of records may be smaller than is taken.
_OF_NUMBER, _ROUNDING = 0.1, 1e-9


class PublicColumns(NamedTuple):
    """What is public about the columns of a statistic, and all that its integers depend on.

    Attributes:
        names: Names of the columns; None for a vector.
        bounds: Bounds of the columns.
        keys: The keys of the groups; None without groups.
        known_n: The number of records that is in the statistic, if it is public.
        most_n: The number of all records, if it is public.
        moves: How many groups change where a record is replaced or added.
    """

    names: tuple[str, ...] | None
    bounds: Bounds
    keys: tuple[Any, ...] | None
    known_n: int | None
    most_n: int | None
    moves: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.bounds.low)


class PrivateColumns(NamedTuple):
    """Private records, and what is public about them.

    Attributes:
        rows: The records that are used, shape (n, d).
        groups: Which group each record is in; None without groups.
        persons: Whose record each is.
        public: What is public about them.
    """

    rows: NDArray[Any]
    groups: Groups | None
    persons: Persons
    public: PublicColumns


def settle_columns(
    names: tuple[str, ...] | None,
    bounds: Bounds,
    keys: tuple[Any, ...] | None,
    neighbors: str,
    n: int,
) -> PublicColumns:
    """What is public of n records, whose number is public under "replace_one" alone."""
    replaced = neighbors == "replace_one"
    # Replacing a record takes one away from a group and adds one to another.
    moves = 2 if replaced and keys is not None else 1
    most_n = n if replaced else None
    return PublicColumns(names, bounds, keys, None if keys is not None else most_n, most_n, moves)


def read_private_columns(
    values: Any,
    by: ArrayLike | None,
    groups: Any,
    goal: Goal,
    ends: tuple[Any, Any],
    owners: tuple[ArrayLike | None, int],
) -> PrivateColumns:
    """Validate what all moments take.

    ends: the lower and the upper bounds. owners: ids and rows_per_person.

    Raises: ShapeError and ParameterError for what is wrong in public.
    """
    rows, names = read_columns(values)
    members = read_members(by, groups, len(rows))
    persons = read_persons(*owners, len(rows))
    rows, members = keep_rows(persons, rows, members)
    check_number(len(rows), goal.neighbors, grouped=members is not None)
    bounds = read_bounds(*ends, names, rows.shape[1])
    keys = None if members is None else members.keys
    public = settle_columns(names, bounds, keys, goal.neighbors, len(rows))
    return PrivateColumns(rows, members, persons, public)


@dataclass(frozen=True)
class Moment:
    """How a statistic is released.

    Attributes:
        count: Makes integers (m, d, parts) of rows (m, d).
        sensitivity: How far the integers of all columns move, once they are combined.
        estimate: Value and ends of the interval, of the noisy parts of a column.
        span: The range of an integer, over single records, of the one that varies least.
        shows_nothing: Whether an interval of a column covers all that is possible, or without
            an upper end, 0.
        sample: Ends of the interval for the population, of the noisy parts of a column; None where
            there is none, since the number of records is private.
        combine: Makes the integers that are released of all sums.
        describe: A mean before it is clipped, and its noise, of the noisy parts of a column; None
            where the number of records is private, and of other statistics.
    """

    count: Callable[[NDArray[Any]], Integers]
    sensitivity: Sensitivity
    estimate: Callable[[Integers, int, tuple[Noise, float]], Ends]
    span: float
    shows_nothing: Callable[[Ends, int], bool]
    sample: Callable[[Integers, int, tuple[Noise, float]], tuple[float, float]] | None
    combine: Callable[[Integers], Integers] = np.asarray
    describe: Callable[[Integers, int, Noise], tuple[float, ReleasedNoise]] | None = None


def release_moment(
    name: str,
    make: Callable[[PublicColumns], Moment],
    records: PrivateColumns,
    goal: Goal,
) -> Released:
    """The integers of one part, and their release; charged before noise is drawn."""
    moment = make(records.public)
    sums = add_up(records.rows, moment.count, records.groups)
    goal = goal._replace(persons=records.persons)
    return release_sums(name, moment, sums, records.public, goal)


def release_sums(
    name: str, moment: Moment, sums: Integers, public: PublicColumns, goal: Goal
) -> Released:
    """The moment of each column, by group too, of the summed integers of all parts.

    sums: what `add_up` makes with the count of the moment, shape (d, parts), or (groups, d, parts).
    """
    check_sample(goal, known=moment.sample is not None)
    noisy, drawn, record = release(
        moment.combine(sums),
        moment.sensitivity,
        goal,
        name=name,
        n=public.most_n,
        span=moment.span,
    )
    wide = []

    def state(columns: Integers) -> Released:
        results = []
        for place, parts in enumerate(columns):
            ends = moment.estimate(parts, place, (drawn, goal.beta))
            wide.append(moment.shows_nothing(ends, place))
            beyond: tuple[Any, ...] = (None, None)
            if goal.sampled and moment.sample is not None:
                beyond = moment.sample(parts, place, (drawn, goal.beta))
            known: tuple[Any, ...] = ()
            if moment.describe is not None and goal.persons.rows == 1:
                known = moment.describe(parts, place, drawn)
            results.append(Statistic(*ends, goal.confidence, record, *beyond, *known))
        return results[0] if public.names is None else dict(zip(public.names, results, strict=True))

    keys = public.keys or ()
    released = [state(columns) for columns in (noisy if keys else [noisy])]
    if not hides_all(drawn, goal.beta, public.most_n, moment.span):
        _note_wide(name, wide)
    return dict(zip(keys, released, strict=True)) if keys else released[0]


def _note_wide(name: str, wide: list[bool]) -> None:
    """Warns of released numbers that show nothing; of counts and sums where none does."""
    if name in ("count", "sum") and all(wide):
        note(f"no released {name} is larger than its noise: a larger epsilon helps")
    if name not in ("count", "sum") and any(wide):
        rule = "have intervals that hold all that is possible: a larger epsilon helps"
        note(f"{np.count_nonzero(wide):,} of {len(wide):,} released values of {name} {rule}")


def _plain(most: int, public: PublicColumns) -> Sensitivity:
    """The sensitivity of parts that are at least 0 and of which a record adds up to `most`."""
    moves = public.moves
    return Sensitivity(moves * most, moves * most**2).times(public.width)


def make_count(public: PublicColumns) -> Moment:
    """How many values are neither 0 nor missing."""
    most = math.inf if public.known_n is None else public.known_n

    def shows(rows: NDArray[Any]) -> Integers:
        shown = (rows != 0) & ~np.isnan(floats(rows))
        return np.asarray(shown[..., None], np.int64)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        value, half = int(parts[0]), noise[0].half_width(noise[1])
        return value, _clip(value - half, 0, most), _clip(value + half, 0, most)

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        of_noise, of_sampling = split_failure(noise[1], noise[0].half_width, public.most_n)
        value, half = int(parts[0]), noise[0].half_width(of_noise)
        low, high = bound_counts(value - half, value + half, public.most_n, of_sampling)
        return float(low), float(high)

    def shows_nothing(ends: Ends, place: int) -> bool:
        return public.most_n is None and ends[1] <= 0

    return Moment(shows, _plain(1, public), estimate, 1, shows_nothing, sample)


def make_sum(public: PublicColumns) -> Moment:
    """The sum of the values within their bounds."""
    return _sum_of_unknown(public) if public.known_n is None else _sum_of_known(public)


def _sum_of_known(public: PublicColumns) -> Moment:
    """Sums of the distances from the lower bound."""
    bounds, n = public.bounds, public.known_n or 0

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        low, high = float(bounds.low[place]), float(bounds.high[place])
        unit = (high - low) / _STEPS
        value, half = n * low + unit * int(parts[0]), unit * noise[0].half_width(noise[1])
        least, most = n * low, n * high
        return value, _clip(value - half, least, most), _clip(value + half, least, most)

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        low, high = float(bounds.low[place]), float(bounds.high[place])
        ends = _sample_mean(int(parts[0]) / _STEPS, n, noise)
        return n * (low + ends[0] * (high - low)), n * (low + ends[1] * (high - low))

    return Moment(
        lambda rows: bounds.round(rows, _STEPS)[..., None],
        _plain(_STEPS, public),
        estimate,
        _STEPS,
        lambda ends, place: False,
        sample,
    )


def _sample_mean(total: float, n: int, noise: tuple[Noise, float]) -> tuple[float, float]:
    """An interval for a population's mean place in [0, 1], of the noisy sum of n places.

    Noise is in steps of the grid, and rounding moves each place by half a step at most.
    """
    drawn = noise[0]
    of_noise, of_sampling = split_failure(
        noise[1], lambda beta: drawn.average_half_width(beta) / _STEPS, n
    )
    half = drawn.average_half_width(of_noise) / _STEPS / n + 0.5 / _STEPS
    return bound_mean(total / n - half, total / n + half, n, of_sampling)


def _sum_of_unknown(public: PublicColumns) -> Moment:
    """Sums of the values themselves, in steps of the larger bound."""
    bounds = public.bounds
    tops = np.maximum(np.abs(bounds.low), np.abs(bounds.high))

    def steps(values: Floats) -> Integers:
        # Private values neither warn nor raise, whatever numpy is set to do about rounding.
        with np.errstate(all="ignore"):
            rounded: Integers = np.rint(values / tops * _STEPS).astype(np.int64)
        return rounded

    def count(rows: NDArray[Any]) -> Integers:
        plain = floats(rows)
        filled = np.where(np.isnan(plain), bounds.low, plain)
        return steps(np.clip(filled, bounds.low, bounds.high))[..., None]

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        unit = float(tops[place]) / _STEPS
        value, half = int(parts[0]), noise[0].half_width(noise[1])
        return unit * value, unit * (value - half), unit * (value + half)

    plain = _plain(_STEPS, public)
    # Within one group a value may change its sign.
    spans = [int(span) ** 2 for span in steps(bounds.high) - steps(bounds.low)]
    within = np.sum([max(2 * _STEPS**2, span) for span in spans], dtype=object)
    squared = plain.squared if public.moves == 1 else int(within)

    def shows_nothing(ends: Ends, place: int) -> bool:
        one_sided = bounds.low[place] >= 0 or bounds.high[place] <= 0
        return bool(public.most_n is None and one_sided and ends[1] <= 0 <= ends[2])

    least, most = np.minimum(bounds.low, 0) / tops, np.maximum(bounds.high, 0) / tops
    span = _STEPS * float((most - least).min())

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        # A record that is in another group adds 0 to this one's sum.
        n, unit, first = public.most_n or 0, float(tops[place]), float(least[place])
        width = float(most[place]) - first
        scaled = Noise(noise[0].law, noise[0].scale / Fraction(width))
        ends = _sample_mean((int(parts[0]) / _STEPS - n * first) / width, n, (scaled, noise[1]))
        return n * unit * (first + ends[0] * width), n * unit * (first + ends[1] * width)

    sensitivity, known = plain._replace(squared=squared), public.most_n
    return Moment(count, sensitivity, estimate, span, shows_nothing, sample if known else None)


def make_mean(public: PublicColumns) -> Moment:
    """The mean: distances from both bounds, which add up to the number of public."""
    bounds, n = public.bounds, public.known_n

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, _STEPS)
        return np.stack([above] if n else [above, _STEPS - above], axis=-1)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        total = n * _STEPS if n else int(parts[0]) + int(parts[1])
        if total <= 0:
            return _scale_back((0.5, 0.0, 1.0), bounds, place)
        half = (noise[0].average_half_width(noise[1])) / total + 0.5 / _STEPS
        value = int(parts[0]) / total
        return _scale_back((value, value - half, value + half), bounds, place)

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        if n:
            ends = _sample_mean(int(parts[0]) / _STEPS, n, noise)
            return _scale_back((0.5, *ends), bounds, place)[1:]
        drawn, beta = noise
        total = int(parts[0]) + int(parts[1])
        fewest = _count_surely(total, 2, _STEPS, (drawn, _OF_NUMBER * beta))
        if not fewest:
            return _scale_back((0.5, 0.0, 1.0), bounds, place)[1:]
        half = drawn.average_half_width(beta / 2) / total + 0.5 / _STEPS
        value, left = int(parts[0]) / total, (0.5 - _OF_NUMBER) * beta
        ends = bound_mean(value - half, value + half, fewest, left)
        return _scale_back((value, *ends), bounds, place)[1:]

    def shows_nothing(ends: Ends, place: int) -> bool:
        return ends[1:] == (float(bounds.low[place]), float(bounds.high[place]))

    def describe(parts: Integers, place: int, drawn: Noise) -> tuple[float, ReleasedNoise]:
        known = KnownRange(n or 0, float(bounds.low[place]), float(bounds.high[place]))
        step = (known.high - known.low) / _STEPS
        unclipped = known.low + step * int(parts[0]) / known.n
        return unclipped, drawn.describe(step / known.n, step / 2, known)

    return Moment(
        count,
        _plain(_STEPS, public),
        estimate,
        _STEPS,
        shows_nothing,
        sample,
        describe=describe if n else None,
    )


def _count_surely(total: int, parts: int, unit: int, noise: tuple[Noise, float]) -> int:
    """How many records there surely are, of a noisy total of parts of `unit` for each record."""
    # The average of a few draws errs as one draw does at most, on one side with half of it.
    half = parts * noise[0].average_half_width(min(2 * noise[1], 0.5))
    return max(math.ceil((total - half) / unit - _ROUNDING), 0)


def _scale_back(shares: Ends, bounds: Bounds, place: int) -> Ends:
    low, high = float(bounds.low[place]), float(bounds.high[place])
    value, lower, upper = (low + _clip(share, 0, 1) * (high - low) for share in shares)
    return value, lower, upper


def make_variance(public: PublicColumns) -> Moment:
    """The variance around the mean of the public."""
    n = public.known_n
    return _variance_of_unknown(public) if n is None else _variance_of_known(public, n)


def _variance_of_known(public: PublicColumns, n: int) -> Moment:
    """The variance itself, times n and in squared steps: one integer, rounded down."""
    bounds, whole = public.bounds, _SQUARE_STEPS

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, whole)
        return np.stack([above, above**2], axis=-1)

    def combine(sums: Integers) -> Integers:
        exact = sums.astype(object)
        pairs = n * exact[:, 1] - exact[:, 0] ** 2
        return np.array(pairs // n, np.int64)[:, None]

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        total = n * whole**2
        # Rounding to the grid moves each value by half a step at most, and the variance by one.
        half = (noise[0].half_width(noise[1]) + 1) / total + 1 / whole
        share = int(parts[0]) / total
        return _scale_variance((share, share - half, share + half), bounds, place)

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        half = (noise[0].half_width(noise[1] / 2) + 1) / (n * whole**2) + 1 / whole
        share = int(parts[0]) / (n * whole**2)
        ends = bound_deviations(share - half, share + half, n, noise[1] / 2)
        return _scale_variance((share, *ends), bounds, place)[1:]

    # Rounded down, two numbers are no farther apart than the distance rounded up.
    moved = max(-(-(n - 1) * whole**2 // n), 1)
    sensitivity = Sensitivity(moved, moved**2).times(public.width)
    shows_nothing = _covers_variances(bounds)
    spread = whole**2 / 4
    return Moment(count, sensitivity, estimate, spread, shows_nothing, sample, combine)


def _variance_of_unknown(public: PublicColumns) -> Moment:
    """Sums of three parts of each record, which add up to their number."""
    bounds, whole = public.bounds, _SQUARE_STEPS

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, whole)
        below = whole - above
        return np.stack([above**2, 2 * above * below, below**2], axis=-1)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Ends:
        shares = _variance_of_parts([int(part) for part in parts], noise)
        return _scale_variance(shares, bounds, place)

    def sample(parts: Integers, place: int, noise: tuple[Noise, float]) -> tuple[float, float]:
        sums, (drawn, beta) = [int(part) for part in parts], noise
        fewest = _count_surely(sum(sums), 3, whole**2, (drawn, _OF_NUMBER * beta))
        shares = _variance_of_parts(sums, (drawn, beta / 2))
        ends = bound_deviations(*shares[1:], fewest, (0.5 - _OF_NUMBER) * beta)
        return _scale_variance((shares[0], *ends), bounds, place)[1:]

    sensitivity, spread = _plain(whole**2, public), whole**2 / 4
    return Moment(count, sensitivity, estimate, spread, _covers_variances(bounds), sample)


def _covers_variances(bounds: Bounds) -> Callable[[Ends, int], bool]:
    def shows_nothing(ends: Ends, place: int) -> bool:
        return ends[1:] == _scale_variance((0, 0, 0.25), bounds, place)[1:]

    return shows_nothing


def _scale_variance(shares: Ends, bounds: Bounds, place: int) -> Ends:
    squared = float(bounds.high[place] - bounds.low[place]) ** 2
    value, lower, upper = (squared * _clip(share, 0, 0.25) for share in shares)
    return value, lower, upper


def _variance_of_parts(parts: list[int], noise: tuple[Noise, float]) -> Ends:
    """The variance in units of the squared range, and an interval for it.

    All errors are below `half` at once but for beta. Of (1 - m) e2 + (1 / 2 - m) e1 - m e0, the
    error of the mean m times the noisy number, the weights add up to at most 3 / 2; for w, the mean
    of u (1 - u), they add up to at most 3 / 4.
    """
    half = noise[0].half_width(noise[1] / len(parts))
    total, mean, within = sum(parts), parts[0] + parts[1] / 2, parts[1] / 2
    if total <= 0:
        return 0.125, 0.0, 0.25
    middle, width = mean / total, 1.5 * half / total
    ends = [_clip(middle - width, 0, 1), _clip(middle + width, 0, 1)]
    products = [end * (1 - end) for end in ends]
    top = 0.25 if ends[0] <= 0.5 <= ends[1] else max(products)
    part, part_error = within / total, 0.75 * half / total
    # Rounding to the grid moves each value by half a step at most, and the variance by one step.
    slack = 1 / _SQUARE_STEPS
    value = middle * (1 - middle) - part
    return value, min(products) - part - part_error - slack, top - part + part_error + slack


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
