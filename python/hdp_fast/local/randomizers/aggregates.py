"""The sum of many reports, in integers: the same in any order and grouping."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import ArrayLike, NDArray

from ..._support.validate import array, from_json, nonnegative_int
from ...exceptions import ParameterError, ShapeError
from .base import make_randomizer

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
    """The sum of reports of one randomizer; it is empty until some are added.

    The state consists of integers, so that aggregates of parts of the reports, in any order and
    grouping, add up to exactly the aggregate of all reports, however many. It pickles.

    Attributes:
        randomizer: the one that made the reports.
        reports: how many have been added.
    """

    _state_name: ClassVar[str]

    def __init__(self, randomizer: Any):
        self._randomizer = randomizer
        self._reports, self._total = 0, self._empty()

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
        added = array("reports", reports)
        if added.ndim != 1:
            raise ShapeError(f"reports has shape {added.shape}, but it must have one dimension")
        if added.size and added.dtype.kind not in "bui":
            raise ParameterError(f"reports has dtype {added.dtype}, but it must be an integer type")
        parts = (added[i : i + _CHUNK] for i in range(0, added.size, _CHUNK))
        total = sum(map(self._count, parts), start=self._empty())
        # Nothing between reading and writing: another thread may be adding as well.
        self._total, self._reports = self._total + total, self._reports + added.size
        return self

    def to_json(self) -> str:
        """The aggregate as a JSON object, which from_json reads.

        Raises: nothing.
        Cost: the size of the state.
        Source: none.
        """
        randomizer = json.loads(self._randomizer.to_json())
        return json.dumps(
            {**randomizer, "reports": self._reports, self._state_name: self._to_json_state()}
        )

    @staticmethod
    def from_json(text: str) -> Any:
        """The aggregate that to_json wrote.

        text: a JSON object.

        Raises: ParameterError when it is not one.
        Cost: the size of the state.
        Source: none.
        """
        return from_json("text", text, "Aggregate.to_json", _restore)

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Aggregate):
            return NotImplemented
        if self._randomizer != other._randomizer:
            both = f"{self._randomizer!r} and {other._randomizer!r}"
            raise ParameterError(f"aggregates are of {both}, but they must be of one randomizer")
        merged: Self = self._randomizer.aggregate()
        merged._total = self._total + other._total
        merged._reports = self._reports + other._reports
        return merged

    def __radd__(self, other: Any) -> Self:
        # sum() starts with 0.
        return self + self._randomizer.aggregate() if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregate) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._reports:,} reports of {self._randomizer!r})"

    def _count(self, part: NDArray[Any]) -> Any:
        """The state of some reports alone, which must be in range."""
        least, most = self._randomizer.report_range
        low, high = int(part.min()), int(part.max())
        if not least <= low <= high <= most:
            wrong = low if low < least else high
            rule = f"the randomizer reports integers in [{least}, {most}]"
            raise ParameterError(f"reports holds {wrong}, but {rule}")
        return self._sum(part)

    def _require_reports(self) -> int:
        """The number of reports, at least 1."""
        if not self._reports:
            raise ParameterError("reports = 0, but an estimate needs at least 1")
        return self._reports

    def _to_json_state(self) -> Any:
        return self._total

    def _restore(self, reports: int, state: Any) -> Self:
        self._total, self._reports = self._validate_state(reports, state), reports
        return self

    @abstractmethod
    def _empty(self) -> Any:
        """The state of no reports."""

    @abstractmethod
    def _sum(self, part: NDArray[Any]) -> Any:
        """The state of some reports in range."""

    @abstractmethod
    def _validate_state(self, reports: int, state: Any) -> Any:
        """The state that _to_json_state wrote for this number of reports."""


def _restore(fields: dict[str, Any]) -> Any:
    """The aggregate of the fields that to_json writes."""
    (state,) = (fields.pop(name) for name in ("sum", "counts") if name in fields)
    reports = fields.pop("reports")
    empty = make_randomizer(fields).aggregate()
    return empty._restore(nonnegative_int("reports", reports), state)
