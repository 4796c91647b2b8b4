"""What is released: a number or several, an interval, and what protects the records."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import JsonText
from .._support.numbers import floats
from .._support.types import Floats, Integers
from .._support.validate import numbers, refuse, sequence
from ..record import PrivacyRecord
from .release_noise import Noise, ReleasedNoise
from .shares import NoisyCells, Shares

# The cell of a category whose value is none of the public ones.
OTHER = "(other)"


@dataclass(frozen=True)
class Statistic(JsonText):
    """A released number, with an interval for the number that the records have.

    Attributes:
        value: The released number.
        low: Lower end of the interval.
        high: Upper end of the interval.
        confidence: Probability, over the noise alone, with which the interval covers the number
            that the records have once they are clipped to the bounds.
        record: What protects the records. All results of one call share one release and its price.
        population_low: Lower end of an interval that covers with that probability, over noise and
            sampling, what as many records have in expectation that are drawn from the same
            population; None unless `sampled` asked for it.
        population_high: Upper end of it.
        unclipped: A mean of a public number of records before it was clipped to its bounds, which
            has no bias; None of other statistics, and where rows of a person are several.
        noise: The noise of that mean; None where it is None.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> smokers = np.arange(10_000) % 4 == 0
        >>> released = statistics.count(smokers, epsilon=1.0)
        >>> abs(released.value - 2500) < 30, released.record.epsilon
        (True, 1.0)
    """

    value: float
    low: float
    high: float
    confidence: float
    record: PrivacyRecord
    population_low: float | None = None
    population_high: float | None = None
    unclipped: float | None = None
    noise: ReleasedNoise | None = None

    def __repr__(self) -> str:
        price = _price(self.record)
        inside = f"in [{self.low:.6g}, {self.high:.6g}]"
        if self.population_low is not None and self.population_high is not None:
            inside += f", population [{self.population_low:.6g}, {self.population_high:.6g}]"
        return f"Statistic({self.value:.6g}, {100 * self.confidence:g} % {inside}, {price})"


@dataclass(frozen=True, eq=False)
class Histogram(JsonText):
    """Released counts of bins or categories.

    Attributes:
        value: The noisy counts, int64 of shape (k,); a count near 0 may be negative.
        low: Lower ends of the intervals, int64 of shape (k,), at least 0.
        high: Upper ends of the intervals, int64 of shape (k,).
        bins: The k + 1 edges of the bins, or the k categories.
        confidence: Probability, over the noise alone, with which the interval of one bin covers
            the count of the records.
        record: What protects the records.
        population_low: Lower ends of intervals, float64 of shape (k,), for the counts that are
            expected of as many records drawn from the same population; None unless `sampled` asked
            for them.
        population_high: Upper ends of them.
        noise: The noise of each share, a count divided by the public number of records; None where
            that is private, as in groups, and where rows of a person are several.

    Examples:
        >>> from hdp_fast import statistics
        >>> released = statistics.histogram(["a", "b", "a"] * 1000, categories=["a", "b", "c"],
        ...     epsilon=1.0)
        >>> released.bins, bool(abs(released.value - [2000, 1000, 0]).max() < 60)
        (('a', 'b', 'c'), True)
    """

    value: Integers
    low: Integers
    high: Integers
    bins: tuple[Any, ...]
    confidence: float
    record: PrivacyRecord
    population_low: Floats | None = None
    population_high: Floats | None = None
    noise: ReleasedNoise | None = None

    def __repr__(self) -> str:
        return f"Histogram({len(self.value)} counts, {_price(self.record)})"


@dataclass(frozen=True, eq=False)
class Covariance(JsonText):
    """A released covariance matrix.

    Attributes:
        value: The matrix, float64 of shape (d, d), symmetric.
        low: Lower ends of the intervals, of the same shape.
        high: Upper ends of the intervals, of the same shape.
        names: Names of the d columns.
        confidence: Probability, over the noise alone, with which the interval of one entry covers
            that of the clipped records.
        record: What protects the records.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> rows = np.tile([[0.0, 1.0], [1.0, 0.0]], (50_000, 1))
        >>> released = statistics.covariance(rows, low=0, high=1, epsilon=2.0)
        >>> released.names, bool(released.low[0, 1] <= released.high[0, 1] < 0)
        (('x0', 'x1'), True)
    """

    value: Floats
    low: Floats
    high: Floats
    names: tuple[str, ...]
    confidence: float
    record: PrivacyRecord

    def __repr__(self) -> str:
        return f"Covariance({len(self.value)} columns, {_price(self.record)})"


@dataclass(frozen=True)
class TopCategories(JsonText):
    """The most frequent categories of a column, privately chosen.

    Attributes:
        value: The chosen categories, the first choice first.
        count_error: With probability `confidence`, over the random draws alone, no choice has a
            count that is farther below the largest count left at its turn.
        confidence: Probability of that statement.
        record: What protects the records.

    Examples:
        >>> from hdp_fast import statistics
        >>> words = ["yes"] * 900 + ["no"] * 300
        >>> statistics.top_k(words, 1, categories=["no", "yes"], epsilon=1.0).value
        ('yes',)
    """

    value: tuple[Any, ...]
    count_error: float
    confidence: float
    record: PrivacyRecord

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.value))
        error = f"within {self.count_error:.3g} records of the best"
        return f"TopCategories({shown}, {error}, {_price(self.record)})"


@dataclass(frozen=True, eq=False)
class Quantiles(JsonText):
    """Released quantiles of one column.

    Attributes:
        value: The quantiles, float64 of shape (k,), in increasing order of their levels.
        levels: The k levels, in increasing order.
        rank_error: With probability `confidence`, over the random draws alone, the value y that was
            chosen for level q is off by at most so many of the n clipped records: at most q n +
            `rank_error` of them lie below y, and at least q n - `rank_error` at y or below. Each
            choice has this probability by itself.
        confidence: Probability of that statement, and of each interval alone.
        record: What protects the records.
        low: Lower ends of the intervals, shape (k,), where they were asked for; None otherwise. An
            interval holds a value of which at most q n of the clipped and rounded records lie below
            and at least q n at it or below.
        high: Upper ends of the intervals, of the same shape.
        population_low: Lower ends of intervals for the quantiles of the population that the records
            are drawn from, once it is clipped and rounded; None unless `sampled` asked for them.
        population_high: Upper ends of them.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> ages = np.arange(100_000) % 101
        >>> released = statistics.quantiles(ages, [0.5], low=0, high=120, epsilon=1.0)
        >>> bool(abs(released.value[0] - 50) <= 1)
        True
    """

    value: Floats
    levels: tuple[float, ...]
    rank_error: float
    confidence: float
    record: PrivacyRecord
    low: Floats | None = None
    high: Floats | None = None
    population_low: Floats | None = None
    population_high: Floats | None = None

    def __repr__(self) -> str:
        pairs = zip(self.levels, self.value.tolist(), strict=True)
        shown = ", ".join(f"{level:g}: {value:.6g}" for level, value in pairs)
        within = f"within {self.rank_error:.3g} ranks"
        if self.low is not None and self.high is not None:
            pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
            spans = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in pairs)
            within += f", {100 * self.confidence:g} % in {spans}"
        return f"Quantiles({shown}, {within}, {_price(self.record)})"


@dataclass(frozen=True, eq=False)
class Distribution(JsonText):
    """A released distribution function of one column.

    All numbers are about the records once they are clipped to the bounds and rounded to the grid.

    Attributes:
        points: The points of the grid, float64 of shape (k,), increasing.
        value: The share of records at each point or below, shape (k,): it never falls, and ends
            at 1.
        low: Lower ends of a band, of the same shape.
        high: Upper ends of it. With probability `confidence`, over the noise alone, the records'
            function lies between both at all points together.
        population_low: Lower ends of a wider band, which holds with that probability for the
            distribution that records are drawn from, each by itself.
        population_high: Upper ends of it.
        confidence: Probability of each band.
        record: What protects the records.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> ages = np.arange(50_000) % 100
        >>> released = statistics.distribution(ages, low=0, high=120, epsilon=1.0)
        >>> bool(abs(released.at(49) - 0.5) < 0.02), released.quantiles([0.25, 0.5]).round(-1)
        (True, array([20., 50.]))
    """

    points: Floats
    value: Floats
    low: Floats
    high: Floats
    population_low: Floats
    population_high: Floats
    confidence: float
    record: PrivacyRecord

    def at(self, x: ArrayLike) -> Any:
        """Estimates the share of records at or below some numbers.

        Args:
            x: A number, or several of any shape; NaN has no share.

        Returns:
            The shares, of the same shape.

        Raises:
            ParameterError: x holds what is no number.
        """
        ends = floats(numbers("x", x))
        places = np.searchsorted(self.points, ends, side="right")
        shares = np.concatenate(([0.0], self.value))[places]
        return np.where(np.isnan(ends), np.nan, shares)[()]

    def quantiles(self, levels: ArrayLike) -> Any:
        """Estimates quantiles: the least point with that share at it or below.

        Args:
            levels: Numbers in [0, 1], of any shape.

        Returns:
            The points, of the same shape.

        Raises:
            ParameterError: A level lies outside [0, 1].
        """
        shares = np.asarray(levels, np.float64)
        if not ((shares >= 0) & (shares <= 1)).all():
            refuse("levels", levels, "each must lie in [0, 1]")
        places = np.searchsorted(self.value, shares)
        return self.points[places.clip(0, len(self.points) - 1)]

    def __repr__(self) -> str:
        width = float((self.high - self.low).max()) / 2
        return f"Distribution({len(self.points)} points, within {width:.3g}, {_price(self.record)})"


@dataclass(frozen=True, eq=False)
class CrossTable(JsonText):
    """Released counts by one to three columns.

    Attributes:
        columns: Names of the columns, one for each axis.
        labels: For each axis the names of its cells: bins, or categories and "(other)".
        value: The counts, float64, at least 0.
        low: Lower ends of the intervals, of the same shape.
        high: Upper ends of the intervals.
        confidence: Probability, over the noise alone, with which the interval of one cell covers
            the count of the rows.
        record: What protects the rows.
        noisy: The counts before they were made consistent, int64, all with the same noise and
            without bias.
        population_low: Lower ends of intervals for the counts that are expected of as many rows
            drawn from the same population; None unless `sampled` asked for them.
        population_high: Upper ends of them.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Category, Schema
        >>> people = {"home": ["town", "land", "town"] * 3_000}
        >>> schema = Schema(None, {"home": Category(("town", "land"))})
        >>> released = statistics.tables(people, schema, epsilon=1.0)["home",]
        >>> released.labels, released.value.round(-2).tolist()
        ((('town', 'land', '(other)'),), [6000.0, 3000.0, 0.0])
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    value: Floats
    low: Floats
    high: Floats
    confidence: float
    record: PrivacyRecord
    noisy: Integers
    population_low: Floats | None = None
    population_high: Floats | None = None

    def _noisy_cells(self, asked: Sequence[str], named: tuple[slice, ...]) -> NoisyCells:
        """The noisy counts over some columns, and which of them have public values in all."""
        counts = _sum_over_others(self.noisy, self.columns, asked)
        chosen = np.zeros(counts.shape, bool)
        chosen[named] = True
        return NoisyCells(counts[chosen], counts[~chosen], self.noisy.size // counts.size)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.value.shape))
        return f"CrossTable({' by '.join(self.columns)}, {shape}, {_price(self.record)})"


@dataclass(frozen=True, eq=False)
class CrossTables(JsonText):
    """Released tables of several columns, which agree with each other.

    Attributes:
        tables: The tables, a CrossTable for each margin.
        record: What protects the rows: one release for all.
        noise: The noise that was added to each count.
        n: The number of rows; None where it is private.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Category, Number, Schema
        >>> schema = Schema(None, {"age": Number(0, 90, (30,)), "home": Category(("town", "land"))})
        >>> people = {"age": [20, 50, 50] * 3_000, "home": ["town", "land", "town"] * 3_000}
        >>> released = statistics.tables(people, schema, epsilon=1.0)
        >>> {name: round(share, 1) for name, share in released.shares("home").items()}
        {'town': 0.7, 'land': 0.3}
    """

    tables: tuple[CrossTable, ...]
    record: PrivacyRecord
    noise: Noise
    n: int | None

    def _to_fields(self) -> Mapping[str, Any]:
        law = {"law": self.noise.law, "scale": float(self.noise.scale)}
        return {**super()._to_fields(), "noise": law}

    def __getitem__(self, columns: tuple[str, ...] | str) -> CrossTable:
        """The table of these columns, in the order of its margin.

        Raises:
            ParameterError: There is none.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        table = next((table for table in self.tables if table.columns == names), None)
        if table is None:
            known = "; ".join(", ".join(table.columns) for table in self.tables)
            refuse("columns", list(names), f"it must be one of the tables: {known}")
        return table

    def shares(
        self, columns: Sequence[str] | str, *, names: Sequence[Sequence[str]] | None = None
    ) -> Shares:
        """Estimates the share of each cell among the rows that have a public value in all columns.

        `transfer.survey` takes it as the weights of strata: shares are at least 0 and add up to 1,
        and the noise of these counts is in the survey's intervals.

        Args:
            columns: Names of one to three columns that stand together in a table, or one name.
            names: For each column other names of its cells, in their order and without "(other)".

        Returns:
            Shares, a dict from names of cells, with commas between columns as in
            transfer.cross_table.

        Raises:
            ParameterError: No table has these columns, or there are not as many names as cells.
        """
        asked = (columns,) if isinstance(columns, str) else tuple(sequence("columns", columns))
        table = next((one for one in self.tables if {*asked} <= {*one.columns}), None)
        if table is None or not asked or len({*asked}) < len(asked):
            refuse("columns", list(asked), "they must be different, and stand in one table")
        labels = [
            [label for label in table.labels[table.columns.index(name)] if label != OTHER]
            for name in asked
        ]
        named = tuple(slice(len(cells)) for cells in labels)
        counts = _sum_over_others(table.value, table.columns, asked)[named]
        if names is not None:
            given = [list(sequence("names", own)) for own in sequence("names", names)]
            if [*map(len, given)] != [*map(len, labels)]:
                rule = f"there must be as many as cells: {[*map(len, labels)]}"
                refuse("names", names, rule)
            labels = given
        total = float(counts.sum())
        shares = counts / total if total else np.full(counts.shape, 1 / counts.size)
        cells = (", ".join(map(str, cell)) for cell in itertools.product(*labels))
        return Shares(
            dict(zip(cells, shares.ravel().tolist(), strict=True)),
            [one._noisy_cells(asked, named) for one in self.tables if {*asked} <= {*one.columns}],
            self.noise,
            self.n,
        )

    def __repr__(self) -> str:
        return f"CrossTables({len(self.tables)} tables, {_price(self.record)})"


def _sum_over_others(counts: Any, columns: Sequence[str], asked: Sequence[str]) -> Floats:
    """The counts of a table over some of its columns, in the order that is asked for."""
    kept = [name for name in columns if name in asked]
    others = tuple(axis for axis, name in enumerate(columns) if name not in asked)
    ordered: Floats = counts.sum(axis=others).transpose([kept.index(name) for name in asked])
    return ordered


def _price(record: PrivacyRecord) -> str:
    return f"epsilon={record.epsilon:g}, delta={record.delta:g}, {record.neighbors}"
