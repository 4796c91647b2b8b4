"""The piecewise mechanism: a cell of a line, likelier in a window around the number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.numbers import floats
from ..._support.random_state import make_key
from ..._support.types import Floats, RandomState
from .base import TWO_64, Reports, cap_epsilon
from .concentration import Deviation
from .mean import Bounds, LinearMap, MeanRandomizer

# A window of 2**8 cells or more is as good as a continuous one, to a millionth.
_LEAST_WINDOW = 8
# Reports stay so small that the sum of many thousand of them fits 64 bits.
_FINEST_WINDOW = 44


@dataclass(frozen=True, repr=False)
class Piecewise(MeanRandomizer):
    """The piecewise mechanism: a cell of a line, likelier in a window around the number.

    The number is rounded, at random and without bias, to a grid of `2**m` steps over its range. A
    window of L cells starts at the grid point. The report is one of `2**m` + L cells, and each cell
    of the window is up to `e**epsilon` times as likely as each of the `2**m` others. L is chosen
    from 256 to 512 so that `L / 2**m` is about `e**(-epsilon / 2)`. Beyond epsilon = 50 it is
    smaller, since m is at most 44.

    From epsilon = 1.3 on the largest variance is below that of BinaryResponse. About numbers near
    an end of the range BinaryResponse has the smaller variance even then.

    Attributes:
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.
        bounds: The range (low, high) of the values, both finite, low < high.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of the window is rounded down.

    Source:
        Wang and others 2019, Algorithm 2, on integers.

    Examples:
        >>> from hdp_fast import local
        >>> piecewise = local.Piecewise(4.0, bounds=(0, 1))
        >>> binary = local.BinaryResponse(4.0, bounds=(0, 1))
        >>> [round(randomizer.variance(0.5), 3) for randomizer in (piecewise, binary)]
        [0.021, 0.269]
        >>> [round(randomizer.variance(0.0), 3) for randomizer in (piecewise, binary)]
        [0.06, 0.019]
    """

    epsilon: float
    bounds: Bounds

    delta = 0.0
    _source = "Wang and others 2019, Algorithm 2, on integers"

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """log2 of the steps of the grid, and the length of the window."""
        half = cap_epsilon(self.epsilon) / 2
        log2_steps = min(_LEAST_WINDOW + math.ceil(half / math.log(2)), _FINEST_WINDOW)
        return log2_steps, max(1, round(math.ldexp(math.exp(-half), log2_steps)))

    @cached_property
    def _keep_probability(self) -> Fraction:
        """The probability of drawing from the window; otherwise any cell is drawn uniformly."""
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        return Fraction(_core.keep_probability(self.epsilon, length, cells), TWO_64)

    @property
    def _linear_map(self) -> LinearMap:
        return self._moment(0, 1), self._keep_probability * (1 << self._sizes[0])

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report: 0 and the number of cells, minus 1."""
        log2_steps, length = self._sizes
        return 0, (1 << log2_steps) + length - 1

    def _draw(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        place, epsilon = self._low_and_width(), self.epsilon
        return _core.respond_window(
            floats(values), place, *self._sizes, epsilon, make_key(random_state)
        )

    def _log_law(self, reports: Floats, positions: Floats) -> Floats:
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        start, rest = np.divmod(positions * (1 << log2_steps), 1.0)
        first = (reports >= start) & (reports < start + length)
        second = (reports > start) & (reports <= start + length)
        window = float(self._keep_probability / length) * ((1 - rest) * first + rest * second)
        likelihood = window + float((1 - self._keep_probability) / cells)
        return np.log(np.where((reports >= 0) & (reports < cells), likelihood, 0.0))

    def _moment(self, start: int, power: int) -> Fraction:
        """Computes the mean of a power of the report for a window that starts there."""
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        window = _powers_below(start + length, power) - _powers_below(start, power)
        whole = Fraction(_powers_below(cells, power), cells)
        return self._keep_probability * window / length + (1 - self._keep_probability) * whole

    def _unit_variance(self, position: float) -> float:
        intercept, slope = self._linear_map
        exact = Fraction(position) * (1 << self._sizes[0])
        start = math.floor(exact)
        square = (start + 1 - exact) * self._moment(start, 2)
        square += (exact - start) * self._moment(start + 1, 2)
        return float((square - (intercept + slope * Fraction(position)) ** 2) / slope**2)

    def _worst_position(self) -> float:
        return 0.0

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        span = float(self.report_range[1] / self._linear_map[1])
        # The mean of squares is convex in the number: the worst population sits at the ends.
        variance = self._unit_variance(0.0) + (0.25 if sampled else 0.0)
        return [Deviation(span**2 / 4, 0.0), Deviation(variance, (span + 1) / 6)]

    def _noise(self) -> str:
        length, cells = self._sizes[1], self.report_range[1] + 1
        keep = float(self._keep_probability)
        return f"one of {length} cells with probability {keep:.4g}, else of {cells}"


def _powers_below(end: int, power: int) -> int:
    """Sums x or `x**2` over 0 <= x < end."""
    return (end - 1) * end // 2 if power == 1 else (end - 1) * end * (2 * end - 1) // 6
