"""Randomizers of one number each, from whose reports a mean is estimated.

Each randomizer first rounds the number to a neighboring point of a grid, at random, so that the
rounded number has exactly the number's place in the range as its mean. It reports an integer whose
mean is a linear function of the grid point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.numbers import floats
from ..._support.parameters import Rules
from ..._support.types import Floats
from ..._support.validate import number, probability, refuse
from .aggregates import Aggregate, Estimate
from .base import Randomizer, deviations_of, half_width, validate_epsilon

LinearMap = tuple[Fraction, Fraction]
Bounds = tuple[float, float]


class MeanAggregate(Aggregate):
    """The sum of reports about numbers, a Python integer of any length.

    Args:
        randomizer: The one that makes the reports.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> hours = np.linspace(0, 16, 50_000)  # one person's value each; their mean is 8
        >>> randomizer = local.BinaryResponse(1.0, bounds=(0, 24))
        >>> aggregate = randomizer.aggregate(randomizer.sample(hours))
        >>> estimate = aggregate.estimate(beta=1e-10)
        >>> estimate.low <= 8 <= estimate.high
        True
    """

    _state_name = "sum"
    _randomizer: MeanRandomizer
    _total: int

    def estimate(self, beta: float) -> Estimate:
        """Estimates the mean of the values, with a confidence interval.

        The estimate is unbiased before it is clipped to the bounds. The interval uses no normal
        approximation.

        Args:
            beta: Probability, in (0, 1), with which the interval may miss the mean of the
                population that the agents are an independent sample of.

        Returns:
            The estimate and its interval, in the units of the values.

        Raises:
            ParameterError: beta is out of range, or no report has been added.

        Guarantee:
            This is post-processing and costs no privacy. The interval holds for every number of
            reports and every population, by the bounds of `Randomizer.agents_needed`.

        Source:
            Boucheron, Lugosi and Massart 2013, Theorems 2.8 and 2.10.
        """
        failure, reports = probability("beta", beta), self._require_reports()
        (intercept, slope), (low, high) = self._randomizer._linear_map, self._randomizer.bounds
        position = float((Fraction(self._total, reports) - intercept) / slope)
        bounds = deviations_of(self._randomizer)
        half = half_width(bounds, reports, math.log(2) - math.log(failure))
        ends = (min(max(end, 0.0), 1.0) for end in (position, position - half, position + half))
        return Estimate(*(low + (high - low) * end for end in ends))

    def _empty(self) -> int:
        return 0

    def _sum(self, part: NDArray[Any]) -> int:
        if part.dtype == np.uint8:
            return int(np.count_nonzero(part))
        return int(part.sum(dtype=np.int64))

    def _validate_state(self, reports: int, state: Any) -> int:
        least, most = self._randomizer.report_range
        if type(state) is not int or not least * reports <= state <= most * reports:
            refuse("sum", state, f"it must be the sum of {reports} reports in [{least}, {most}]")
        return state


def _validate_bounds(name: str, value: Any) -> Bounds:
    try:
        low, high = value
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    low, high = number(name, low), number(name, high)
    # Neither the width nor its reciprocal may overflow.
    if not (math.isfinite(high - low) and low < high and math.isfinite(1 / (high - low))):
        refuse(name, value, "it must be (low, high), both finite, and low < high")
    return low, high


class MeanRandomizer(Randomizer[MeanAggregate]):
    """The base class of randomizers whose reports estimate a mean."""

    bounds: Bounds
    _aggregate = MeanAggregate

    RULES: ClassVar[Rules] = {"epsilon": validate_epsilon, "bounds": _validate_bounds}

    @property
    @abstractmethod
    def _linear_map(self) -> LinearMap:
        """Intercept and slope of the mean report as a function of the place in [0, 1]."""

    def _low_and_width(self) -> Bounds:
        low, high = self.bounds
        return low, high - low

    def _unit(self) -> float:
        return self._low_and_width()[1]

    def _to_values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers

    def _positions(self, values: NDArray[Any]) -> Floats:
        """Computes the places of values in [0, 1] by the compiled module's own operations."""
        low, width = self._low_and_width()
        with np.errstate(all="ignore"):
            position = (floats(values) - low) / width
        return np.where(position > 0, np.minimum(position, 1.0), 0.0)

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        return self._log_law(reports, self._positions(values))

    def _variance(self, value: Any) -> float:
        return self._unit() ** 2 * self._unit_variance(float(self._positions(value)))

    def _worst_variance(self) -> float:
        return self._unit() ** 2 * self._unit_variance(self._worst_position())

    def _worst_position(self) -> float:
        return 0.5

    @abstractmethod
    def _log_law(self, reports: Floats, positions: Floats) -> Floats: ...

    @abstractmethod
    def _unit_variance(self, position: float) -> float:
        """Computes the variance of a contribution for a range of [0, 1]."""
