"""What is released: a number or several, an interval, and what protects the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._support.json_text import JsonText
from .._support.types import Floats, Integers
from ..record import PrivacyRecord


@dataclass(frozen=True)
class Statistic(JsonText):
    """A released number, with an interval for the number that the records have.

    Attributes:
        value: The released number.
        low: Lower end of the interval.
        high: Upper end of the interval.
        confidence: Probability, over the noise alone, with which the interval covers the number
            that the records have once they are clipped to the bounds. It says nothing of the
            population from which records may have been drawn.
        record: What protects the records. All results of one call share one release and its price.

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

    def __repr__(self) -> str:
        price = _price(self.record)
        inside = f"in [{self.low:.6g}, {self.high:.6g}]"
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

    def __repr__(self) -> str:
        pairs = zip(self.levels, self.value.tolist(), strict=True)
        shown = ", ".join(f"{level:g}: {value:.6g}" for level, value in pairs)
        within = f"within {self.rank_error:.3g} ranks"
        if self.low is not None and self.high is not None:
            pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
            spans = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in pairs)
            within += f", {100 * self.confidence:g} % in {spans}"
        return f"Quantiles({shown}, {within}, {_price(self.record)})"


def _price(record: PrivacyRecord) -> str:
    return f"epsilon={record.epsilon:g}, delta={record.delta:g}, {record.neighbors}"
