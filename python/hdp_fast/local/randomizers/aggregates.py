"""What many reports say together, in integers: any order, any grouping, any engine."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import ArrayLike, NDArray

from ..._support.validate import array, from_json, nonnegative_int
from ...exceptions import ParameterError, ShapeError
from .base import made_from

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
    return empty.aggregate()._restored(nonnegative_int("reports", reports), state)
