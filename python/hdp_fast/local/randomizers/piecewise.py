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
from .base import TWO_64, Reports, capped
from .concentration import Deviation
from .mean import Ends, Line, MeanRandomizer

# A window of so many cells is as good as a continuous one, to a millionth.
_LEAST_WINDOW = 8
# Sums of many thousand cells fit 64 bits.
_FINEST_WINDOW = 44


@dataclass(frozen=True, repr=False)
class Piecewise(MeanRandomizer):
    """The piecewise mechanism: a cell of a line, likelier in a window around the number.

    The window starts at the number's grid point, its L cells are up to e**epsilon times as likely
    as the 2**m others, and L / 2**m is e**(-epsilon / 2) with L from 256 to 512. It varies less
    than BinaryResponse about numbers inside the range, from epsilon 1.3 on.

    epsilon: at least 1e-9; bounds: (low, high), finite, low < high.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the probability of the window
        rounded down.
    Raises: ParameterError.
    Cost: constant.
    Source: Wang and others 2019, Algorithm 2, on integers.
    """

    epsilon: float
    bounds: Ends = (0.0, 1.0)

    delta = 0.0
    _source = "Wang and others 2019, Algorithm 2, on integers"

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """log2 of the steps, and the length of the window."""
        half = capped(self.epsilon) / 2
        log2_steps = min(_LEAST_WINDOW + math.ceil(half / math.log(2)), _FINEST_WINDOW)
        return log2_steps, max(1, round(math.ldexp(math.exp(-half), log2_steps)))

    @cached_property
    def _own(self) -> Fraction:
        """Probability of drawing from the window; else any cell is drawn."""
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        return Fraction(_core.keep_probability(self.epsilon, length, cells), TWO_64)

    @property
    def _line(self) -> Line:
        return self._moment(0, 1), self._own * (1 << self._sizes[0])

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report."""
        log2_steps, length = self._sizes
        return 0, (1 << log2_steps) + length - 1

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        ends, epsilon = self._ends(), self.epsilon
        return _core.respond_window(
            floats(values), ends, *self._sizes, epsilon, make_key(random_state)
        )

    def _law(self, reports: Floats, positions: Floats) -> Floats:
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        start, rest = np.divmod(positions * (1 << log2_steps), 1.0)
        first = (reports >= start) & (reports < start + length)
        second = (reports > start) & (reports <= start + length)
        own = float(self._own / length) * ((1 - rest) * first + rest * second)
        said = own + float((1 - self._own) / cells)
        return np.log(np.where((reports >= 0) & (reports < cells), said, 0.0))

    def _moment(self, start: int, power: int) -> Fraction:
        """The mean of a power of the report when the window starts there."""
        log2_steps, length = self._sizes
        cells = (1 << log2_steps) + length
        window = _powers_below(start + length, power) - _powers_below(start, power)
        whole = Fraction(_powers_below(cells, power), cells)
        return self._own * window / length + (1 - self._own) * whole

    def _spread(self, position: float) -> float:
        least, more = self._line
        exact = Fraction(position) * (1 << self._sizes[0])
        start = math.floor(exact)
        square = (start + 1 - exact) * self._moment(start, 2)
        square += (exact - start) * self._moment(start + 1, 2)
        return float((square - (least + more * Fraction(position)) ** 2) / more**2)

    def _worst_position(self) -> float:
        return 0.0

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        span = float(self.report_range[1] / self._line[1])
        # The mean of squares is convex in the number: the worst population sits at the ends.
        variance = self._spread(0.0) + (0.25 if sampled else 0.0)
        return [Deviation(span**2 / 4, 0.0), Deviation(variance, (span + 1) / 6)]

    def _noise(self) -> str:
        length, cells = self._sizes[1], self.report_range[1] + 1
        return f"one of {length} cells with probability {float(self._own):.4g}, else of {cells}"


def _powers_below(end: int, power: int) -> int:
    """The sum of x or x**2 over 0 <= x < end."""
    return (end - 1) * end // 2 if power == 1 else (end - 1) * end * (2 * end - 1) // 6
