"""What many reports say together, in integers: any order, any grouping, any engine."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import array, count, fraction, from_json, shown
from ._deviations import half_width
from ._randomizer import made_from
from .exceptions import ParameterError, ShapeError

if TYPE_CHECKING:
    from ._frequency import FrequencyRandomizer
    from ._randomizers import MeanRandomizer

Integers = NDArray[np.int64]

# What may go wrong with an interval for one value, each with probability exp(-L). Known bounds: the
# estimate is too large or too small, beyond the least of widths that are fixed before any report is
# seen. Empirical Bernstein (Maurer and Pontil, proof of Theorem 11, ln(2 / delta) = L): Bernstein's
# inequality fails on either side, or the sample's deviation is too small (Theorem 10), which serves
# both sides.
_KNOWN_EVENTS, _EMPIRICAL_EVENTS = 2, 3

# Reports that stay in fast caches from pass to pass, and whose sum fits 64 bits: each fits 46.
_CHUNK = 1 << 16


class Estimate(NamedTuple):
    """A mean and an interval that holds it.

    Attributes:
        value: the estimate, clipped to the range of the values.
        low: lower end of the confidence interval.
        high: its upper end.
    """

    value: float
    low: float
    high: float


class Aggregate(ABC):
    """What reports of one randomizer say together; empty until some are added.

    The state is integers alone, so that aggregates of parts of the reports, in any order and
    grouping, add up to the very one of all reports, however many. It pickles.

    Attributes:
        randomizer: the one that made the reports.
        reports: how many have been added.
    """

    _state: ClassVar[str]

    def __init__(self, randomizer: Any):
        self._randomizer = randomizer
        self._reports = 0

    @property
    def randomizer(self) -> Any:
        """The one that made the reports."""
        return self._randomizer

    @property
    def reports(self) -> int:
        """How many have been added."""
        return self._reports

    def add(self, reports: ArrayLike) -> Self:
        """Count more reports; returns the aggregate itself.

        reports: (n,), of an integer dtype.

        Raises: ShapeError, ParameterError for a dtype that is not integer and for a report that the
            randomizer does not make (report_range); then none of them is counted.
        Cost: O(n), a pass over the reports and no copy of them.
        Source: none.
        """
        found = array("reports", reports)
        if found.ndim != 1:
            raise ShapeError(f"reports has shape {found.shape}, but it must have one dimension")
        if found.size and found.dtype.kind not in "bui":
            raise ParameterError(f"reports has dtype {found.dtype}, but it must be an integer type")
        parts = (found[i : i + _CHUNK] for i in range(0, found.size, _CHUNK))
        self._merge(sum(map(self._counted, parts), start=self._nothing()))
        self._reports += found.size
        return self

    def to_json(self) -> str:
        """The aggregate as a JSON object, which from_json reads.

        Raises: nothing.
        Cost: the size of the state.
        Source: none.
        """
        randomizer = json.loads(self._randomizer.to_json())
        return json.dumps({**randomizer, "reports": self._reports, self._state: self._plain()})

    @staticmethod
    def from_json(text: str) -> Any:
        """The aggregate that to_json wrote.

        text: a JSON object.

        Raises: ParameterError when it is not one.
        Cost: the size of the state.
        Source: none.
        """
        return from_json("text", text, "Aggregate.to_json", _restored)

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Aggregate):
            return NotImplemented
        if self._randomizer != other._randomizer:
            both = f"{self._randomizer!r} and {other._randomizer!r}"
            raise ParameterError(f"aggregates are of {both}, but they must be of one randomizer")
        merged: Any = self._randomizer.aggregate()
        for part in (self, other):
            merged._merge(part._held())
            merged._reports += part._reports
        return merged  # type: ignore[no-any-return]

    def __radd__(self, other: Any) -> Self:
        # sum() starts with 0.
        return self + self._randomizer.aggregate() if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._reports:,} reports of {self._randomizer!r})"

    def _checked_range(self, part: NDArray[Any]) -> None:
        least, most = self._randomizer.report_range
        low, high = int(part.min()), int(part.max())
        if not least <= low <= high <= most:
            wrong = low if low < least else high
            rule = f"the randomizer reports integers in [{least}, {most}]"
            raise ParameterError(f"reports holds {wrong}, but {rule}")

    def _some(self) -> int:
        if not self._reports:
            raise ParameterError("reports = 0, but an estimate needs at least 1")
        return self._reports

    @abstractmethod
    def _nothing(self) -> Any: ...

    @abstractmethod
    def _counted(self, part: NDArray[Any]) -> Any:
        """The state of some reports alone."""

    @abstractmethod
    def _held(self) -> Any: ...

    @abstractmethod
    def _merge(self, state: Any) -> None: ...

    @abstractmethod
    def _plain(self) -> Any: ...

    @abstractmethod
    def _restored(self, reports: int, state: Any) -> Self: ...


def _restored(fields: dict[str, Any]) -> Any:
    """The aggregate of the fields that to_json writes."""
    (state,) = (fields.pop(name) for name in ("sum", "counts") if name in fields)
    reports = fields.pop("reports")
    empty: Any = made_from(fields)
    return empty.aggregate()._restored(count("reports", reports), state)


class MeanAggregate(Aggregate):
    """The sum of reports about numbers, as a Python integer of any length.

    Attributes:
        randomizer: the one that made the reports.
        reports: how many have been added.
    """

    _state = "sum"
    _randomizer: MeanRandomizer

    def __init__(self, randomizer: MeanRandomizer):
        super().__init__(randomizer)
        self._sum = 0

    def estimate(self, beta: float) -> Estimate:
        """The mean of the values, without bias but for being clipped, and an interval for it.

        beta: probability with which the interval may miss the mean of the population that the
        agents are an independent sample of.

        Guarantee: post-processing; the interval holds for every number of reports and every
            population, by the bounds of agents_needed (no normal approximation).
        Raises: ParameterError, also when no report has been added.
        Cost: constant.
        Source: as Randomizer.agents_needed.
        """
        failure, reports = fraction("beta", beta), self._some()
        (least, more), (low, high) = self._randomizer._line, self._randomizer.loss_range
        position = float((Fraction(self._sum, reports) - least) / more)
        bounds = self._randomizer._deviations(sampled=True, binary=False)
        half = half_width(bounds, reports, math.log(2) - math.log(failure))
        ends = (min(max(end, 0.0), 1.0) for end in (position, position - half, position + half))
        return Estimate(*(low + (high - low) * end for end in ends))

    def _nothing(self) -> int:
        return 0

    def _counted(self, part: NDArray[Any]) -> int:
        self._checked_range(part)
        if part.dtype == np.uint8:
            return int(np.count_nonzero(part))
        return int(part.sum(dtype=np.int64))

    def _held(self) -> int:
        return self._sum

    def _merge(self, state: int) -> None:
        self._sum += state

    def _plain(self) -> int:
        return self._sum

    def _restored(self, reports: int, state: Any) -> Self:
        least, most = self._randomizer.report_range
        if type(state) is not int or not least * reports <= state <= most * reports:
            rule = f"it must be the sum of {reports} reports in [{least}, {most}]"
            raise ParameterError(f"sum = {shown(state)}, but {rule}")
        self._sum, self._reports = state, reports
        return self


class FrequencyAggregate(Aggregate):
    """How often each report came.

    Attributes:
        randomizer: the one that made the reports.
        reports: how many have been added.
    """

    _state = "counts"
    _randomizer: FrequencyRandomizer

    def __init__(self, randomizer: FrequencyRandomizer):
        super().__init__(randomizer)
        self._counts = self._nothing()

    def frequencies(self) -> NDArray[np.float64]:
        """The share of agents that holds each value, without bias; float64 (k,).

        An unbiased estimate may be negative, and the k of them may not add up to 1.

        Guarantee: post-processing.
        Raises: ParameterError when no report has been added.
        Cost: O(k), O(k log k) for HadamardResponse.
        Source: as the randomizer.
        """
        return self._randomizer._frequencies(self._counts, self._some())

    def interval(self, beta: float) -> float:
        """By how much any of the k frequencies may be off, in the population or among the agents.

        beta: probability with which one of them or more may be off by more.

        Guarantee: post-processing; holds for every number of reports and every population: the
            better of the bounds of agents_needed and the empirical Bernstein bound, with half of
            beta each, divided among all that may go wrong with them.
        Raises: ParameterError, also when no report has been added.
        Cost: as frequencies.
        Source: Maurer and Pontil 2009, Theorems 4 and 11; as Randomizer.agents_needed.
        """
        reports, failure = self._some(), fraction("beta", beta)
        bounds = self._randomizer._deviations(sampled=True, binary=False)
        known = half_width(bounds, reports, self._log_odds(_KNOWN_EVENTS, failure))
        if reports == 1:
            return known
        # The sample variance is at most n / (n - 1) times the mean of squares: hence n - 1 where
        # Theorem 11 has n.
        span, log_odds = self._randomizer._span(), self._log_odds(_EMPIRICAL_EVENTS, failure)
        square = self._randomizer._largest_square(self._counts, reports)
        spread = math.sqrt(2 * square * log_odds / (reports - 1))
        return min(known, spread + 7 * span * log_odds / (3 * (reports - 1)))

    def _log_odds(self, events: int, beta: float) -> float:
        """The L at which so many events for each value, exp(-L) each, make half of beta."""
        return math.log(2 * events * self._randomizer.k) - math.log(beta)

    def _nothing(self) -> Integers:
        return np.zeros(self._randomizer.report_range[1] + 1, np.int64)

    def _counted(self, part: NDArray[Any]) -> Integers:
        self._checked_range(part)
        return np.bincount(part, minlength=self._randomizer.report_range[1] + 1)

    def _held(self) -> Integers:
        return self._counts

    def _merge(self, state: Integers) -> None:
        self._counts = self._counts + state

    def _plain(self) -> list[int]:
        return [int(each) for each in self._counts]

    def _restored(self, reports: int, state: Any) -> Self:
        whole = isinstance(state, list) and all(type(n) is int and n >= 0 for n in state)
        if not whole or len(state) != len(self._counts) or sum(state) != reports:
            rule = f"it must be {len(self._counts)} counts that add up to reports = {reports}"
            raise ParameterError(f"counts = {shown(state)}, but {rule}")
        self._counts, self._reports = np.array(state, np.int64), reports
        return self
