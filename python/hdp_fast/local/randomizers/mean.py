"""Randomizers of one number each, from whose reports a mean is estimated.

Each rounds the number to a grid point, at random and exactly, so that nothing is lost on average,
and answers with an integer whose mean is linear in the grid point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.numbers import floats
from ..._support.types import Floats
from ..._support.validate import number, probability, refuse
from .aggregates import Aggregate, Estimate
from .base import Randomizer, checked_epsilon
from .concentration import half_width

Line = tuple[Fraction, Fraction]
Ends = tuple[float, float]


class MeanRandomizer(Randomizer):
    """Any randomizer below."""

    bounds: Ends

    def __post_init__(self) -> None:
        """Refuse what no randomizer could be."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "bounds", _checked_range(self.bounds))

    def aggregate(self, reports: ArrayLike | None = None) -> MeanAggregate:
        """What reports say together: the state from which their mean is estimated.

        reports: as for Aggregate.add; None starts with none.

        Raises: as Aggregate.add.
        Cost: as Aggregate.add.
        Source: none.
        """
        empty = MeanAggregate(self)
        return empty if reports is None else empty.add(reports)

    @property
    @abstractmethod
    def _line(self) -> Line:
        """Mean report of the lowest value, and by how much more the highest one's mean is."""

    def _ends(self) -> Ends:
        """Low and width."""
        low, high = self.bounds
        return low, high - low

    def _unit(self) -> float:
        return self._ends()[1]

    def _values(self, found: NDArray[Any]) -> NDArray[Any]:
        return found

    def _positions(self, values: NDArray[Any]) -> Floats:
        """The values in [0, 1], by the very operations of the compiled module."""
        low, width = self._ends()
        with np.errstate(all="ignore"):
            position = (floats(values) - low) / width
        return np.where(position > 0, np.minimum(position, 1.0), 0.0)

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        return self._law(reports, self._positions(values))

    def _variance(self, value: Any) -> float:
        return self._unit() ** 2 * self._spread(float(self._positions(value)))

    def _worst_variance(self) -> float:
        return self._unit() ** 2 * self._spread(self._worst_position())

    def _worst_position(self) -> float:
        return 0.5

    @abstractmethod
    def _law(self, reports: Floats, positions: Floats) -> Floats: ...

    @abstractmethod
    def _spread(self, position: float) -> float:
        """The variance of a contribution, the range being [0, 1]."""


def _checked_range(value: Any) -> Ends:
    try:
        low, high = value
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    low, high = number("bounds", low), number("bounds", high)
    # The width must not overflow, nor may a quotient by it.
    if not (math.isfinite(high - low) and low < high and math.isfinite(1 / (high - low))):
        refuse("bounds", value, "it must be (low, high), both finite, and low < high")
    return low, high


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
        failure, reports = probability("beta", beta), self._some()
        (least, more), (low, high) = self._randomizer._line, self._randomizer.bounds
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
            refuse("sum", state, f"it must be the sum of {reports} reports in [{least}, {most}]")
        self._sum, self._reports = state, reports
        return self
