"""Randomizers of one number each, from whose reports a mean is estimated.

Each randomizer first rounds the number to a neighboring point of a grid, at random, so that the
rounded number has exactly the number's place in the range as its mean. It reports an integer whose
mean is a linear function of the grid point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.numbers import floats
from ..._support.parameters import Rules
from ..._support.types import Floats
from ..._support.validate import flag, number, probability, refuse
from .aggregates import Aggregate, Estimate, Turnout, count_turnout, split_failure
from .base import Deviation, Randomizer, half_width, validate_epsilon

LinearMap = tuple[Fraction, Fraction]
Bounds = tuple[float, float]


# Reports are cut into digits of so many bits.
_HALF = 23


@dataclass(frozen=True)
class Moments:
    """The sum of reports and the sum of their squares, integers of any length."""

    sum: int
    squares: int

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.sum + other.sum, self.squares + other.squares)


class MeanAggregate(Aggregate):
    """The sum of reports about numbers and of their squares, Python integers of any length.

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

    _fields = ("sum", "squares")
    _randomizer: MeanRandomizer
    _total: Moments

    def mean(self) -> float:
        """Estimates the mean of the values without bias, so that it may lie beyond the bounds.

        Returns:
            The estimate that `estimate` clips to the bounds.

        Raises:
            ParameterError: No report has been added.

        Guarantee:
            This is post-processing and costs no privacy.
        """
        reports, (low, high) = self._require_reports(), self._randomizer.bounds
        place = self._randomizer._to_place(Fraction(self._total.sum, reports))
        return low + (high - low) * place

    def estimate(
        self, beta: float, *, sampled: bool = True, liars: int = 0, silent: int = 0
    ) -> Estimate:
        """Estimates the mean of the values, with a confidence interval.

        The estimate is unbiased before it is clipped to the bounds. The interval uses no normal
        approximation. It is that of Clopper and Pearson for BinaryResponse, and otherwise the best
        of the bounds of `Randomizer.agents_needed`. For Piecewise these are joined by Bernstein's
        inequality with a bound on the variance from the reports themselves. For the mean of these
        very people, that is a bound on the variance of the noise alone: their own spread tells how
        large the noise was, and is no part of it.

        Up to `liars` of the reports may be anything, each sent by somebody who knows all the
        others. The interval then holds for the mean of the honest people, if who lies does not
        depend on what was drawn, and in any case for the mean of all, with the values that liars
        hide. The intervals for all numbers of liars hold at once.

        Args:
            beta: Probability, in (0, 1), with which the interval may miss the mean.
            sampled: True asks for the mean of the population that the agents are an independent
                sample of. False asks for the mean of these very agents, whoever they are, and most
                often has the narrower interval.
            liars: The most reports that may not follow the protocol.
            silent: Number of people who were asked and whose reports are missing. The interval is
                then for all who were asked, whatever silence depends on. With 0 it is for those
                who answered.

        Returns:
            The estimate and its interval, in the units of the values. The value does not depend on
            liars and silent.

        Raises:
            ParameterError: beta, liars or silent is out of range, sampled is no bool, or no report
                has been added.

        Guarantee:
            This is post-processing and costs no privacy. The interval holds for every number of
            reports and every population. Liars and silent people are bounded for the worst case:
            a smaller interval misses what they can do.

        Source:
            Boucheron, Lugosi and Massart 2013, Theorems 2.8 and 2.10; Clopper and Pearson 1934 and
            Hoeffding 1956; Maurer and Pontil 2009, Theorem 10; Maurer 2003 for the mean of squares;
            Cheu, Smith and Ullman 2021 for what liars can do.
        """
        failure, reports = probability("beta", beta), self._require_reports()
        randomizer, (low, high) = self._randomizer, self._randomizer.bounds
        turnout = count_turnout(reports, liars, silent)
        place = randomizer._to_place(Fraction(self._total.sum, reports))
        ends = randomizer._interval(self._total, turnout, failure, flag("sampled", sampled))
        places = (min(max(end, 0.0), 1.0) for end in (place, *ends))
        return Estimate(*(low + (high - low) * end for end in places))

    def _empty(self) -> Moments:
        return Moments(0, 0)

    def _sum(self, part: NDArray[Any]) -> Moments:
        least, most = self._randomizer.report_range
        if (least, most) == (0, 1):
            ones = int(np.count_nonzero(part))
            return Moments(ones, ones)
        reports = part.astype(np.int64, copy=False)
        high, low = reports >> _HALF, reports & ((1 << _HALF) - 1)
        pairs = ((high, high), (high, low), (low, low))
        # Each product fits 46 bits, so that a sum of 2**16 of them fits 64.
        first, middle, last = (int(np.dot(one, other)) for one, other in pairs)
        squares = (first << 2 * _HALF) + (middle << _HALF + 1) + last
        return Moments(int(reports.sum()), squares)

    def _to_fields(self) -> dict[str, Any]:
        return {"sum": self._total.sum, "squares": self._total.squares}

    def _validate_fields(self, reports: int, fields: dict[str, Any]) -> Moments:
        (least, most), total = self._randomizer.report_range, fields["sum"]
        rule = f"it must be the sum of {reports} reports in [{least}, {most}]"
        if type(total) is not int or not least * reports <= total <= most * reports:
            refuse("sum", total, rule)
        squares = fields["squares"]
        # The squares of integers in a range with this sum: (x - least) (most - x) >= 0.
        largest = (least + most) * total - least * most * reports
        possible = type(squares) is int and total**2 <= squares * reports and squares <= largest
        if not possible or (squares - total) % 2:
            refuse("squares", squares, f"{rule}, squared, whose sum is {total}")
        return Moments(total, squares)


def validate_bounds(name: str, value: Any) -> Bounds:
    """Returns the value as bounds of numbers.

    Raises:
        ParameterError: It is not (low, high), both finite, low < high.
    """
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

    RULES: ClassVar[Rules] = {"epsilon": validate_epsilon, "bounds": validate_bounds}

    @property
    @abstractmethod
    def _linear_map(self) -> LinearMap:
        """Intercept and slope of the mean report as a function of the place in [0, 1]."""

    def _to_place(self, report: Fraction) -> float:
        """Returns the place of the number with this mean report."""
        intercept, slope = self._linear_map
        return float((report - intercept) / slope)

    def _interval(self, moments: Moments, turnout: Turnout, beta: float, sampled: bool) -> Bounds:
        """Bounds the mean place of the values."""
        least, most = self.report_range
        reach = turnout.liars * (most - least)
        first = Fraction(moments.sum + turnout.silent * least - reach, turnout.asked)
        last = Fraction(moments.sum + turnout.silent * most + reach, turnout.asked)
        ends, spare = split_failure(beta)
        bounds = self._deviations(sampled, binary=False)
        learned = self._learn_deviation(moments, turnout, sampled, spare)
        # Where nothing is learned, which reports do not change, nothing of beta is spent on it.
        odds = math.log(2) - math.log(beta) if learned is None else ends
        half = half_width([*bounds, *([] if learned is None else [learned])], turnout.honest, odds)
        return self._to_place(first) - half, self._to_place(last) + half

    def _largest_change(self) -> float:
        least, most = self.report_range
        return float((most - least) / self._linear_map[1]) * self._unit()

    def _learn_deviation(
        self, moments: Moments, turnout: Turnout, sampled: bool, log_odds: float
    ) -> Deviation | None:
        """Bounds a contribution's deviation from the reports, but for exp(-log_odds); None: not."""
        return None

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
