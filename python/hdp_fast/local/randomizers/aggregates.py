"""The sum of many reports, in integers: the same in any order and grouping."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.uncopyable import Turnstile
from ..._support.validate import array, from_json, nonnegative_int, refuse
from ...exceptions import ParameterError, ShapeError
from .base import make_randomizer

# As many reports as stay in fast caches from pass to pass. Their sum fits 64 bits, since each of
# them fits 46.
_CHUNK = 1 << 16


class Estimate(NamedTuple):
    """A mean and a confidence interval for it.

    Attributes:
        value: The estimate, clipped to the range of the values.
        low: Lower end of the interval, clipped likewise.
        high: Upper end of the interval, clipped likewise.

    Examples:
        >>> from hdp_fast import local
        >>> answers = [1] * 600 + [0] * 400  # randomized with epsilon = 2
        >>> estimate = local.estimate_mean(answers, beta=0.05, epsilon=2.0)
        >>> [round(end, 3) for end in (estimate.low, estimate.value, estimate.high)]
        [0.575, 0.631, 0.688]
    """

    value: float
    low: float
    high: float


class Turnout(NamedTuple):
    """How many reports came, how many of them may be anything, and how many are missing.

    Let the reports lie in a range of width R. The mean of those that came, and of any others in the
    place of the missing ones, is off by at most liars * R / asked from two means: that of the
    honest reports alone, with those that are missing, and that of the reports of all who were
    asked, had nobody lied. So an interval of either lies within one that is wider by so much, if
    its width is that of so many reports as are honest.

    Attributes:
        reports: The number of reports that came.
        liars: The number of them that may be anything, chosen with knowledge of all the others.
        silent: The number of people who were asked and whose reports did not come.
    """

    reports: int
    liars: int = 0
    silent: int = 0

    @property
    def asked(self) -> int:
        """The number of people."""
        return self.reports + self.silent

    @property
    def unknown(self) -> int:
        """The number of people of whom no honest report came."""
        return self.liars + self.silent

    @property
    def honest(self) -> int:
        """The least number of reports that a mean is made of; at least 1."""
        return max(1, self.asked - self.liars)

    def add_pairs(self, pairs: int, width: int) -> int:
        """Bounds the sum of `(x - x')**2` over all pairs of reports.

        Args:
            pairs: That sum over the reports that came.
            width: The width of the range of reports.
        """
        unknown = self.unknown
        return pairs + unknown * (2 * self.asked - unknown - 1) // 2 * width**2


def count_turnout(reports: int, liars: Any, silent: Any) -> Turnout:
    """The turnout; more liars than reports have no more to say.

    Raises:
        ParameterError: A number is no integer of at least 0, or there are too many people.
    """
    lying, missing = nonnegative_int("liars", liars), nonnegative_int("silent", silent)
    _check_number(reports + missing)
    return Turnout(reports, min(lying, reports), missing)


# The part of a failure probability that a bound on the variance from the reports may take.
_SPARE = 0.1


def split_failure(beta: float, means: int = 1) -> tuple[float, float]:
    """Shares a failure probability between the ends of intervals and a bound on their variances.

    The half width is the least of several, one of them from a bound V on the variance that fails,
    too. It misses only if the error exceeds the least of them with the true variance, which no
    report changes and which any one of the inequalities bounds, or if V is below the true variance.

    Returns:
        The log odds of `half_width`, and minus the logarithm of what is left for one V of each of
        the means.
    """
    log_beta = math.log(beta)
    ends, spare = 2 * means / (1 - _SPARE), means / _SPARE
    return math.log(ends) - log_beta, math.log(spare) - log_beta


def bound_by_sample(variance: float, reports: int, span: float, log_odds: float) -> float:
    """Bounds the mean variance of independent numbers in a span, by their sample variance.

    The numbers need not have the same law. It fails with probability exp(-log_odds).

    Source: Maurer and Pontil 2009, Theorem 10.
    """
    return (math.sqrt(variance) + span * math.sqrt(2 * log_odds / (reports - 1))) ** 2


# One for all aggregates, which pickle: another thread may run while numpy adds long arrays.
_ADDING = Turnstile("aggregate")


class Aggregate(ABC):
    """The sum of reports of one randomizer, empty until some are added.

    The state consists of integers. The aggregates of parts of the reports, in any order and
    grouping, therefore add up (`+` or `sum`) to exactly the aggregate of all reports, of which
    there may be `2**63 - 1`. An aggregate pickles, and compares equal to one of the same randomizer
    and state.

    `Randomizer.aggregate` makes one: a MeanAggregate or a FrequencyAggregate. Threads may add
    reports to the same aggregate.

    Args:
        randomizer: The one that makes the reports.

    Examples:
        >>> from hdp_fast import local
        >>> randomizer = local.BinaryResponse(1.0, bounds=(0, 24))
        >>> monday = randomizer.aggregate(randomizer.sample([7.5, 8.0, 0.0]))
        >>> tuesday = randomizer.aggregate(randomizer.sample([6.0, 9.5]))
        >>> (monday + tuesday).reports
        5
        >>> local.Aggregate.from_json(monday.to_json()) + tuesday == tuesday + monday
        True
    """

    # The names of the parts of the state, as JSON has them.
    _fields: ClassVar[tuple[str, ...]]

    def __init__(self, randomizer: Any):
        self._randomizer = randomizer
        self._reports, self._total = 0, self._empty()

    @property
    def randomizer(self) -> Any:
        """The randomizer that made the reports."""
        return self._randomizer

    @property
    def reports(self) -> int:
        """The number of reports that have been added."""
        return self._reports

    def add(self, reports: ArrayLike) -> Self:
        """Adds more reports.

        Args:
            reports: Reports of shape (n,), of a bool or an integer dtype.

        Returns:
            The aggregate itself.

        Raises:
            ShapeError: reports does not have one dimension. No report is counted then.
            ParameterError: reports is not of an integer dtype, holds an integer outside the
                randomizer's report_range, or would be too many. No report is counted then.

        Cost:
            O(n): a pass over the reports, which are not copied.
        """
        added = array("reports", reports)
        if added.ndim != 1:
            raise ShapeError(f"reports has shape {added.shape}, but it must have one dimension")
        if added.size and added.dtype.kind not in "bui":
            raise ParameterError(f"reports has dtype {added.dtype}, but it must be an integer type")
        total = self._count_all(added)
        with _ADDING.hold():
            self._reports = _check_number(self._reports + added.size)
            self._total = self._total + total
        return self

    def to_json(self) -> str:
        """Writes the aggregate as a JSON object, which `from_json` reads.

        Returns:
            A JSON text with the randomizer, the number of reports, and their sum and sum of
            squares, or their counts.

        Cost:
            O(size of the state): two numbers for a mean, one for each possible report for
            frequencies.
        """
        randomizer = json.loads(self._randomizer.to_json())
        return json.dumps({**randomizer, "reports": self._reports, **self._to_fields()})

    @staticmethod
    def from_json(text: str) -> Any:
        """Reads an aggregate from the JSON text that `to_json` wrote.

        Args:
            text: A JSON object as `to_json` writes it.

        Returns:
            A MeanAggregate or a FrequencyAggregate, equal to the one that was written.

        Raises:
            ParameterError: text is no such object, or its sums or counts cannot come from so many
                reports of the randomizer.

        Cost:
            O(size of the state).
        """
        return from_json("text", text, "Aggregate.to_json", _restore)

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Aggregate):
            return NotImplemented
        if self._randomizer != other._randomizer:
            both = f"{self._randomizer!r} and {other._randomizer!r}"
            raise ParameterError(f"aggregates are of {both}, but they must be of one randomizer")
        merged: Self = self._randomizer.aggregate()
        merged._reports = _check_number(self._reports + other._reports)
        merged._total = self._total + other._total
        return merged

    def __radd__(self, other: Any) -> Self:
        # The function sum starts with 0.
        return self + self._randomizer.aggregate() if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._reports:,} reports of {self._randomizer!r})"

    def _count_all(self, reports: NDArray[Any]) -> Any:
        """Returns the state of reports alone, and raises the errors of `_count`."""
        # Copies, since numpy counts in memory that another thread must not change after the check.
        parts = (np.array(reports[i : i + _CHUNK]) for i in range(0, reports.size, _CHUNK))
        return sum(map(self._count, parts), start=self._empty())

    def _count(self, part: NDArray[Any]) -> Any:
        """Returns the state of some reports alone, which must be in range.

        Raises:
            ParameterError: A report lies outside the randomizer's report_range.
        """
        least, most = self._randomizer.report_range
        low, high = int(part.min()), int(part.max())
        if not least <= low <= high <= most:
            wrong = low if low < least else high
            rule = f"the randomizer reports integers in [{least}, {most}]"
            raise ParameterError(f"reports holds {wrong}, but {rule}")
        return self._sum(part)

    def _require_reports(self) -> int:
        """Returns the number of reports, which must be at least 1."""
        if not self._reports:
            raise ParameterError("reports = 0, but an estimate needs at least 1")
        return self._reports

    def _restore(self, reports: int, fields: dict[str, Any]) -> Self:
        if fields.keys() != set(self._fields):
            state = " and ".join(self._fields)
            refuse("text", ", ".join(fields), f"the state of a {type(self).__name__} is {state}")
        self._total, self._reports = self._validate_fields(reports, fields), reports
        return self

    @abstractmethod
    def _empty(self) -> Any:
        """The state of no reports."""

    @abstractmethod
    def _sum(self, part: NDArray[Any]) -> Any:
        """The state of some reports in range."""

    @abstractmethod
    def _to_fields(self) -> dict[str, Any]:
        """The state by the names in `_fields`."""

    @abstractmethod
    def _validate_fields(self, reports: int, fields: dict[str, Any]) -> Any:
        """Returns the state that `_to_fields` wrote for this number of reports."""


def _check_number(reports: int) -> int:
    """Returns the number of reports, whose counts must fit 64 bits."""
    return nonnegative_int("reports", reports)


def _restore(fields: dict[str, Any]) -> Any:
    """Restores the aggregate of the fields that `to_json` writes."""
    names = ("sum", "squares", "counts")
    state = {name: fields.pop(name) for name in names if name in fields}
    reports = fields.pop("reports")
    empty = make_randomizer(fields).aggregate()
    return empty._restore(nonnegative_int("reports", reports), state)
