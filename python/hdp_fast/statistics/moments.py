"""Counts, sums, means and variances of private columns: exact integer sums with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import note
from .._support.numbers import floats
from .._support.types import Floats, Integers, RandomState
from ..budget.account import Budget, Neighbors
from ..data.persons import Persons, read_persons
from .bounded_columns import (
    Bounds,
    Groups,
    add_up,
    keep_rows,
    public_number,
    read_bounds,
    read_columns,
    read_members,
)
from .release_noise import Asked, Noise, Sensitivity, hides_all, release
from .results import Statistic

Released = Statistic | dict[Any, Any]

# Steps of the grid between the bounds. Sums of up to 2**31 records stay below 2**61.
_STEPS, _SQUARE_STEPS = 1 << 20, 1 << 15


def count(
    values: Any,
    *,
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
) -> Released:
    """Counts the records that show something, privately.

    Each entry counts 1 where it is neither 0 nor NaN. Counts of true conditions are released with
    noise. They are unbiased, and may be negative.

    Args:
        values: Records, shape (n,) of bools or numbers; or columns as an array (n, d), a frame or a
            dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. One record moves one count by 1. With groups,
        replacing a record moves two of them.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Ghosh, Roughgarden and Sundararajan 2009; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> ages = np.arange(10_000) % 80
        >>> adults = statistics.count(ages >= 18, epsilon=1.0)
        >>> abs(adults.value - 7750) < 30
        True
    """
    asked = Asked(epsilon, delta, neighbors, confidence, budget, random_state).check()
    owners = (ids, rows_per_person)
    records = _read(values, by, groups, asked, (0, 1), owners)
    return _release("count", _count(records), records, asked)


def sum(
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
) -> Released:
    """Sums private values between public bounds.

    Values are clipped to the bounds and rounded to a grid of at least `2**20` steps; NaN counts as
    the lower bound. The sum is unbiased for these values, and so is what the interval covers.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. Where the number of records is public, a
        record moves the sum by at most high - low, else by the larger of |low| and |high|. With
        groups, replacing a record moves two sums by as much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Dwork et al. 2006; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> hours = np.full(10_000, 7.5)
        >>> total = statistics.sum(hours, low=0, high=24, epsilon=1.0)
        >>> abs(total.value - 75_000) < 24 * 30
        True
    """
    asked = Asked(epsilon, delta, neighbors, confidence, budget, random_state).check()
    owners = (ids, rows_per_person)
    records = _read(values, by, groups, asked, (low, high), owners)
    return _release("sum", _sum(records), records, asked)


def mean(
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
) -> Released:
    """Averages private values between public bounds.

    Values are clipped to the bounds; NaN counts as the lower bound. Where the number of records is
    public, their sum is released. Else two sums are released, of the distances from the lower bound
    and of those from the upper one. Together they are the number of records, and cost no more than
    one of them. The mean is clipped to the bounds.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. A record adds two parts that together are 1,
        which is the sensitivity of both; with groups, replacing a record moves twice as much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Kulesza, Suresh and Wang 2024 for the two sums; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> table = {"age": np.arange(10_000) % 80, "hours": np.full(10_000, 7.5)}
        >>> means = statistics.mean(table, low=0, high={"age": 100, "hours": 24}, epsilon=1.0)
        >>> abs(means["age"].value - 39.5) < 2, abs(means["hours"].value - 7.5) < 0.5
        (True, True)
    """
    asked = Asked(epsilon, delta, neighbors, confidence, budget, random_state).check()
    owners = (ids, rows_per_person)
    records = _read(values, by, groups, asked, (low, high), owners)
    return _release("mean", _mean(records), records, asked)


def variance(
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
) -> Released:
    """Computes the variance of private values between public bounds.

    It is the mean squared distance of clipped values from their mean (division by n); NaN counts as
    the lower bound. Where the number of records is public, noise is added to n times the variance
    itself. Else, for values u that are scaled to [0, 1], the sums of `u**2`, 2 u (1 - u) and
    `(1 - u)**2` are released, which add up to the number of records. The variance is m (1 - m)
    minus the mean of u (1 - u), with m the mean of u, scaled back and clipped to what the bounds
    allow. The grid has `2**15` steps.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. `n**2` times the variance of values in [0, 1] is
        the sum of the squared distances of all pairs, n - 1 of which move with a record, by at most
        1. The three parts of a record add up to 1; with groups, replacing a record moves twice as
        much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Kulesza, Suresh and Wang 2024 for parts that add up to 1; Balle and Wang 2018 for normal
        noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> answers = np.arange(100_000) % 2
        >>> spread = statistics.variance(answers, low=0, high=1, epsilon=1.0)
        >>> abs(spread.value - 0.25) < 0.01
        True
    """
    asked = Asked(epsilon, delta, neighbors, confidence, budget, random_state).check()
    owners = (ids, rows_per_person)
    records = _read(values, by, groups, asked, (low, high), owners)
    return _release("variance", _variance(records), records, asked)


class _Records(NamedTuple):
    """Private records, and what is public about them."""

    rows: NDArray[Any]
    names: tuple[str, ...] | None
    bounds: Bounds
    groups: Groups | None
    persons: Persons
    known_n: int | None
    most_n: int | None
    moves: int


def _read(
    values: Any,
    by: ArrayLike | None,
    groups: Any,
    asked: Asked,
    ends: tuple[Any, Any],
    owners: tuple[ArrayLike | None, int],
) -> _Records:
    rows, names = read_columns(values)
    members = read_members(by, groups, len(rows))
    persons = read_persons(*owners, len(rows))
    rows, members = keep_rows(persons, rows, members)
    replaced = asked.neighbors == "replace_one"
    known_n = public_number(rows, asked.neighbors) if members is None else None
    most_n = len(rows) if replaced else None
    bounds = read_bounds(*ends, names, rows.shape[1])
    # Replacing a record takes one away from a group and adds one to another.
    moves = 2 if replaced and members else 1
    return _Records(rows, names, bounds, members, persons, known_n, most_n, moves)


Interval = tuple[float, float, float]


@dataclass(frozen=True)
class _Kind:
    """How a statistic is released.

    Attributes:
        count: Makes integers (m, d, parts) of rows (m, d).
        sensitivity: How far the integers of all columns move, once they are combined.
        estimate: Value and ends of the interval, of the noisy parts of a column.
        span: The range of an integer, over single records, of the one that varies least.
        shows_nothing: Whether an interval of a column covers all that is possible, or without
            an upper end, 0.
        combine: Makes the integers that are released of all sums.
    """

    count: Callable[[NDArray[Any]], Integers]
    sensitivity: Sensitivity
    estimate: Callable[[Integers, int, tuple[Noise, float]], Interval]
    span: float
    shows_nothing: Callable[[Interval, int], bool]
    combine: Callable[[Integers], Integers] = np.asarray


def _release(name: str, kind: _Kind, records: _Records, asked: Asked) -> Released:
    asked = asked._replace(persons=records.persons)
    sums = kind.combine(add_up(records.rows, kind.count, records.groups))
    noisy, drawn, record = release(
        sums, kind.sensitivity, asked, name=name, n=records.most_n, span=kind.span
    )
    wide = []

    def state(columns: Integers) -> Released:
        results = []
        for place, parts in enumerate(columns):
            ends = kind.estimate(parts, place, (drawn, asked.beta))
            wide.append(kind.shows_nothing(ends, place))
            results.append(Statistic(*ends, asked.confidence, record))
        return (
            results[0] if records.names is None else dict(zip(records.names, results, strict=True))
        )

    keys = () if records.groups is None else records.groups.keys
    released = [state(columns) for columns in (noisy if keys else [noisy])]
    if not hides_all(drawn, asked.beta, records.most_n, kind.span):
        _note_wide(name, wide)
    return dict(zip(keys, released, strict=True)) if keys else released[0]


def _note_wide(name: str, wide: list[bool]) -> None:
    """Warns of released numbers that show nothing; of counts and sums where none does."""
    if name in ("count", "sum") and all(wide):
        note(f"no released {name} is larger than its noise: a larger epsilon helps")
    if name not in ("count", "sum") and any(wide):
        rule = "have intervals that hold all that is possible: a larger epsilon helps"
        note(f"{np.count_nonzero(wide):,} of {len(wide):,} released values of {name} {rule}")


def _plain(most: int, records: _Records) -> Sensitivity:
    """The sensitivity of parts that are at least 0 and of which a record adds up to `most`."""
    moves = records.moves
    return Sensitivity(moves * most, moves * most**2).times(records.rows.shape[1])


def _count(records: _Records) -> _Kind:
    most = math.inf if records.known_n is None else records.known_n

    def shows(rows: NDArray[Any]) -> Integers:
        shown = (rows != 0) & ~np.isnan(floats(rows))
        return np.asarray(shown[..., None], np.int64)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        value, half = int(parts[0]), noise[0].half_width(noise[1])
        return value, _clip(value - half, 0, most), _clip(value + half, 0, most)

    def shows_nothing(ends: Interval, place: int) -> bool:
        return records.most_n is None and ends[1] <= 0

    return _Kind(shows, _plain(1, records), estimate, 1, shows_nothing)


def _sum(records: _Records) -> _Kind:
    return _sum_of_unknown(records) if records.known_n is None else _sum_of_known(records)


def _sum_of_known(records: _Records) -> _Kind:
    """Sums of the distances from the lower bound."""
    bounds, n = records.bounds, records.known_n or 0

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        low, high = float(bounds.low[place]), float(bounds.high[place])
        unit = (high - low) / _STEPS
        value, half = n * low + unit * int(parts[0]), unit * noise[0].half_width(noise[1])
        least, most = n * low, n * high
        return value, _clip(value - half, least, most), _clip(value + half, least, most)

    return _Kind(
        lambda rows: bounds.round(rows, _STEPS)[..., None],
        _plain(_STEPS, records),
        estimate,
        _STEPS,
        lambda ends, place: False,
    )


def _sum_of_unknown(records: _Records) -> _Kind:
    """Sums of the values themselves, in steps of the larger bound."""
    bounds = records.bounds
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

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        unit = float(tops[place]) / _STEPS
        value, half = int(parts[0]), noise[0].half_width(noise[1])
        return unit * value, unit * (value - half), unit * (value + half)

    plain = _plain(_STEPS, records)
    # Within one group a value may change its sign.
    spans = [int(span) ** 2 for span in steps(bounds.high) - steps(bounds.low)]
    within = np.sum([max(2 * _STEPS**2, span) for span in spans], dtype=object)
    squared = plain.squared if records.moves == 1 else int(within)

    def shows_nothing(ends: Interval, place: int) -> bool:
        one_sided = bounds.low[place] >= 0 or bounds.high[place] <= 0
        return bool(records.most_n is None and one_sided and ends[1] <= 0 <= ends[2])

    ranges = (np.maximum(bounds.high, 0) - np.minimum(bounds.low, 0)) / tops
    span = _STEPS * float(ranges.min())
    return _Kind(count, plain._replace(squared=squared), estimate, span, shows_nothing)


def _mean(records: _Records) -> _Kind:
    bounds, n = records.bounds, records.known_n

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, _STEPS)
        return np.stack([above] if n else [above, _STEPS - above], axis=-1)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        total = n * _STEPS if n else int(parts[0]) + int(parts[1])
        if total <= 0:
            return _scale_back((0.5, 0.0, 1.0), bounds, place)
        half = (noise[0].average_half_width(noise[1])) / total + 0.5 / _STEPS
        value = int(parts[0]) / total
        return _scale_back((value, value - half, value + half), bounds, place)

    def shows_nothing(ends: Interval, place: int) -> bool:
        return ends[1:] == (float(bounds.low[place]), float(bounds.high[place]))

    return _Kind(count, _plain(_STEPS, records), estimate, _STEPS, shows_nothing)


def _scale_back(shares: Interval, bounds: Bounds, place: int) -> Interval:
    low, high = float(bounds.low[place]), float(bounds.high[place])
    value, lower, upper = (low + _clip(share, 0, 1) * (high - low) for share in shares)
    return value, lower, upper


def _variance(records: _Records) -> _Kind:
    n = records.known_n
    return _variance_of_unknown(records) if n is None else _variance_of_known(records, n)


def _variance_of_known(records: _Records, n: int) -> _Kind:
    """The variance itself, times n and in squared steps: one integer, rounded down."""
    bounds, whole = records.bounds, _SQUARE_STEPS

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, whole)
        return np.stack([above, above**2], axis=-1)

    def combine(sums: Integers) -> Integers:
        exact = sums.astype(object)
        pairs = n * exact[:, 1] - exact[:, 0] ** 2
        return np.array(pairs // n, np.int64)[:, None]

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        total = n * whole**2
        # Rounding to the grid moves each value by half a step at most, and the variance by one.
        half = (noise[0].half_width(noise[1]) + 1) / total + 1 / whole
        share = int(parts[0]) / total
        return _scale_variance((share, share - half, share + half), bounds, place)

    # Rounded down, two numbers are no farther apart than the distance rounded up.
    moved = max(-(-(n - 1) * whole**2 // n), 1)
    sensitivity = Sensitivity(moved, moved**2).times(records.rows.shape[1])
    shows_nothing = _covers_variances(bounds)
    return _Kind(count, sensitivity, estimate, whole**2 / 4, shows_nothing, combine)


def _variance_of_unknown(records: _Records) -> _Kind:
    """Sums of three parts of each record, which add up to their number."""
    bounds, whole = records.bounds, _SQUARE_STEPS

    def count(rows: NDArray[Any]) -> Integers:
        above = bounds.round(rows, whole)
        below = whole - above
        return np.stack([above**2, 2 * above * below, below**2], axis=-1)

    def estimate(parts: Integers, place: int, noise: tuple[Noise, float]) -> Interval:
        shares = _variance_of_parts([int(part) for part in parts], noise)
        return _scale_variance(shares, bounds, place)

    shows_nothing = _covers_variances(bounds)
    return _Kind(count, _plain(whole**2, records), estimate, whole**2 / 4, shows_nothing)


def _covers_variances(bounds: Bounds) -> Callable[[Interval, int], bool]:
    def shows_nothing(ends: Interval, place: int) -> bool:
        return ends[1:] == _scale_variance((0, 0, 0.25), bounds, place)[1:]

    return shows_nothing


def _scale_variance(shares: Interval, bounds: Bounds, place: int) -> Interval:
    squared = float(bounds.high[place] - bounds.low[place]) ** 2
    value, lower, upper = (squared * _clip(share, 0, 0.25) for share in shares)
    return value, lower, upper


def _variance_of_parts(parts: list[int], noise: tuple[Noise, float]) -> Interval:
    """The variance in units of the squared range, and an interval for it.

    All errors are below `half` at once but for beta. Of (1 - m) e2 + (1 / 2 - m) e1 - m e0, the
    error of the mean m times the noisy number, the weights add up to at most 3 / 2; for w, the mean
    of u (1 - u), they add up to at most 3 / 4.
    """
    half = noise[0].half_width(noise[1] / len(parts))
    total, mean, within = _add(parts), parts[0] + parts[1] / 2, parts[1] / 2
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


def _add(parts: list[int]) -> int:
    """The sum: this module's own `sum` is another."""
    return int(np.sum(np.array(parts, dtype=object)))


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
