"""Randomizers of one number each, from whose reports a mean is estimated.

Each rounds the number to a grid point, at random and exactly, so that nothing is lost on average,
and answers with an integer whose mean is linear in the grid point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._aggregates import MeanAggregate
from ._checks import fraction, number, shown
from ._deviations import Deviation
from ._discrete_gaussian import calibrated, continuous_mu, exact_delta, rounded_up
from ._numbers import floats
from ._randomizer import (
    TWO_64,
    Floats,
    Randomizer,
    RandomState,
    Reports,
    capped,
    checked_epsilon,
)
from .exceptions import ParameterError

Line = tuple[Fraction, Fraction]
Ends = tuple[float, float]

# Rounding to the grid adds at most this part of the noise to the variance.
_GRID_SHARE = 2.0**-20
# A window of so many cells is as good as a continuous one, to a millionth.
_LEAST_WINDOW = 8
# Sums of many thousand cells fit 64 bits.
_FINEST_WINDOW = 44
# exp(-70) and the tail of a Gaussian beyond 12 sigma are below 1e-30.
_LAPLACE_REACH, _GAUSSIAN_REACH = 70, 12


class MeanRandomizer(Randomizer):
    """Any randomizer below."""

    loss_range: Ends

    def __post_init__(self) -> None:
        """Refuse what no randomizer could be."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "loss_range", _checked_range(self.loss_range))

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
        low, high = self.loss_range
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


@dataclass(frozen=True, repr=False)
class BinaryResponse(MeanRandomizer):
    """Binary randomised response: one bit about a number.

    The number is rounded to an end of its range, with its place in the range as the probability,
    and that bit is told truly or flipped. With the sampling of agents included no other randomizer
    here needs fewer: the worst population has nothing but 0 and 1.

    epsilon: at least 1e-9; loss_range: (low, high), finite, low < high.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the probability rounded
        towards 1/2.
    Raises: ParameterError.
    Cost: constant.
    Source: Warner 1965; variance coth(epsilon / 2)**2 / 4 at worst, for a range of 1.
    """

    epsilon: float
    loss_range: Ends = (0.0, 1.0)

    delta = 0.0
    _source = "Warner 1965"

    @cached_property
    def _truth(self) -> Fraction:
        return Fraction(_core.truth_probability(self.epsilon), TWO_64)

    @property
    def _line(self) -> Line:
        return 1 - self._truth, 2 * self._truth - 1

    @property
    def report_range(self) -> tuple[int, int]:
        return 0, 1

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        if values.dtype.kind in "bui" and self.loss_range == (0.0, 1.0):
            bits = values > 0
            return _core.randomized_response(bits, epsilon=self.epsilon, random_state=random_state)
        return _core.respond_binary(floats(values), self._ends(), self.epsilon, random_state)

    def _law(self, reports: Floats, positions: Floats) -> Floats:
        least, more = map(float, self._line)
        one = least + more * positions
        said = np.where(reports == 1, one, 1 - one)
        return np.log(np.where((reports == 0) | (reports == 1), said, 0.0))

    def _spread(self, position: float) -> float:
        least, more = map(float, self._line)
        one = least + more * position
        return one * (1 - one) / more**2

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        least, more = map(float, self._line)
        bounds = [Deviation(1 / (4 * more**2), 0.0)]
        if not sampled:
            worst = self._spread(0.0 if binary else 0.5)
            bounds.append(Deviation(worst, (1 - least) / more / 3))
        return bounds

    def _noise(self) -> str:
        return f"one bit, kept with probability {float(self._truth):.4g}"


class _Noisy(MeanRandomizer):
    """A grid point with symmetric integer noise."""

    @property
    @abstractmethod
    def _grid(self) -> tuple[int, Fraction]:
        """log2 of the number of steps, and the scale of the noise in steps."""

    @property
    def _steps(self) -> int:
        return 1 << self._grid[0]

    @property
    def _line(self) -> Line:
        return Fraction(0), Fraction(self._steps)

    def _respond(self, law: str, values: NDArray[Any], random_state: RandomState) -> Reports:
        log2_steps, scale = self._grid
        ratio = scale.as_integer_ratio()
        return _core.respond_noisy(
            floats(values), self._ends(), log2_steps, law, ratio, random_state
        )

    def _law(self, reports: Floats, positions: Floats) -> Floats:
        start, rest = np.divmod(positions * self._steps, 1.0)
        below = np.log1p(-rest) + self._log_mass(reports - start)
        return np.logaddexp(below, np.log(rest) + self._log_mass(reports - start - 1))

    def _spread(self, position: float) -> float:
        rest = position * self._steps % 1.0
        return (self._noise_variance() + rest * (1 - rest)) / self._steps**2

    def _worst_position(self) -> float:
        return 0.5 / self._steps

    def _bounded_part(self, sampled: bool) -> float:
        """What sampling and rounding, or rounding alone, add: Hoeffding's a quarter."""
        return 0.25 if sampled else 0.25 / self._steps**2

    @abstractmethod
    def _log_mass(self, x: Floats) -> Floats:
        """Ln Pr[noise = x]."""

    @abstractmethod
    def _noise_variance(self) -> float: ...


@dataclass(frozen=True, repr=False)
class Laplace(_Noisy):
    """A number with Laplace noise, on a grid.

    The number is rounded to a grid so fine that this adds a millionth to the variance, and discrete
    Laplace noise of scale steps / epsilon is added.

    epsilon: at least 1e-9; loss_range: (low, high), finite, low < high.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the scale rounded up.
    Raises: ParameterError.
    Cost: constant.
    Source: Dwork, McSherry, Nissim and Smith 2006; variance 2 / epsilon**2 for a range of 1.
    """

    epsilon: float
    loss_range: Ends = (0.0, 1.0)

    delta = 0.0
    _source = "Dwork, McSherry, Nissim and Smith 2006, on a grid"

    @cached_property
    def _grid(self) -> tuple[int, Fraction]:
        epsilon = capped(self.epsilon)
        log2_steps = _log2_steps(2 / epsilon**2)
        # A ledger takes a float for its shortest decimal, which may be a little less.
        spent = min(Fraction(epsilon), Fraction(repr(epsilon)))
        return log2_steps, rounded_up((1 << log2_steps) / spent)

    @property
    def report_range(self) -> tuple[int, int]:
        reach = math.ceil(_LAPLACE_REACH * self._grid[1])
        return -reach, self._steps + reach

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return self._respond("laplace", values, random_state)

    def _log_mass(self, x: Floats) -> Floats:
        rate = float(1 / self._grid[1])
        return math.log(math.tanh(rate / 2)) - np.abs(x) * rate

    def _noise_variance(self) -> float:
        return float(1 / (2 * math.sinh(float(1 / self._grid[1]) / 2) ** 2))

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        # The discrete law's moment-generating function is below the continuous one's.
        scale = float(self._grid[1]) / self._steps
        return [Deviation(self._bounded_part(sampled) + 2 * scale**2, scale)]

    def _noise(self) -> str:
        log2_steps, scale = self._grid
        return f"discrete Laplace of scale {float(scale):.4g} on a grid of 2**{log2_steps} steps"


@dataclass(frozen=True, repr=False)
class Gaussian(_Noisy):
    """A number with Gaussian noise, on a grid.

    The number is rounded to a grid so fine that this adds a millionth to the variance, and discrete
    Gaussian noise is added: as little as the exact privacy curve of that noise allows, which is
    hardly more than the analytic Gaussian mechanism has. It tells less than BinaryResponse does at
    the same epsilon and delta = 0, and is here to be compared.

    epsilon: at least 1e-9; delta: in (0, 1), both not so small that sigma exceeds 2**17 ranges;
    loss_range: (low, high), finite, low < high; calibration: "exact", or "printed" as of printed().

    Guarantee: (epsilon, delta)-DP for each report, locally; exact coins, the curve summed in
        doubles with a margin of 1e-9 of itself.
    Raises: ParameterError.
    Cost: a sum over some ten thousand integers, once.
    Source: Canonne, Kamath and Steinke 2020 (the noise); Balle and Wang 2018 (the curve's shape).
    """

    epsilon: float
    delta: float
    loss_range: Ends = (0.0, 1.0)
    calibration: str = "exact"

    _source = "Canonne, Kamath and Steinke 2020, Theorem 7, with its exact curve"

    def __post_init__(self) -> None:
        """Refuse what no randomizer could be."""
        super().__post_init__()
        object.__setattr__(self, "delta", fraction("delta", self.delta))
        if self.calibration not in ("exact", "printed"):
            given = shown(self.calibration)
            raise ParameterError(f"calibration = {given}, but it must be one of exact, printed")
        self._grid  # noqa: B018

    @classmethod
    def printed(cls, epsilon: float, delta: float, loss_range: Ends = (0.0, 1.0)) -> Self:
        """With the noise that Kohen and Sheffet print, where that keeps the promise.

        epsilon, delta, loss_range: as of the class. The variance is 2 ln(2 / delta) / epsilon**2
        for a range of 1.

        Guarantee: as the class.
        Raises: ParameterError, also where the exact delta of that noise is above delta: beyond an
            epsilon of 9.73 for delta = 1e-6.
        Cost: as the class.
        Source: Kohen and Sheffet, Section 3, RR of epsilon and delta.
        """
        return cls(epsilon, delta, loss_range, "printed")

    @cached_property
    def _grid(self) -> tuple[int, Fraction]:
        epsilon = capped(self.epsilon)
        mu = continuous_mu(epsilon, self.delta)
        if self.calibration == "printed":
            return self._printed_grid()
        log2_steps = _log2_steps(1 / mu**2)
        return log2_steps, calibrated(epsilon, self.delta, 1 << log2_steps, mu)

    def _printed_grid(self) -> tuple[int, Fraction]:
        variance = 2 * math.log(2 / self.delta) / self.epsilon**2
        log2_steps = _log2_steps(variance)
        steps = 1 << log2_steps
        sigma = rounded_up(math.sqrt(variance) * steps)
        found = exact_delta(sigma, steps, self.epsilon)
        if found > self.delta:
            rule = f"the printed noise has a delta of {found:.6g} there"
            raise ParameterError(f"epsilon = {self.epsilon} with delta = {self.delta}, but {rule}")
        return log2_steps, sigma

    @property
    def report_range(self) -> tuple[int, int]:
        reach = math.ceil(_GAUSSIAN_REACH * self._grid[1])
        return -reach, self._steps + reach

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return self._respond("gaussian", values, random_state)

    def _log_mass(self, x: Floats) -> Floats:
        sigma = float(self._grid[1])
        # The sum of the law is an integral, to exp(-2 pi**2 sigma**2) of itself.
        return -((x / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))

    def _noise_variance(self) -> float:
        return float(self._grid[1]) ** 2

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        # Discrete Gaussian noise is sub-Gaussian with sigma itself.
        return [Deviation(self._bounded_part(sampled) + self._noise_variance() / self._steps**2, 0)]

    def _noise(self) -> str:
        log2_steps, sigma = self._grid
        return f"discrete Gaussian of sigma {float(sigma):.4g} on a grid of 2**{log2_steps} steps"


@dataclass(frozen=True, repr=False)
class Piecewise(MeanRandomizer):
    """The piecewise mechanism: a cell of a line, likelier in a window around the number.

    The window starts at the number's grid point, its L cells are up to e**epsilon times as likely
    as the 2**m others, and L / 2**m is e**(-epsilon / 2) with L from 256 to 512. It varies less
    than BinaryResponse about numbers inside the range, from epsilon 1.3 on.

    epsilon: at least 1e-9; loss_range: (low, high), finite, low < high.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the probability of the window
        rounded down.
    Raises: ParameterError.
    Cost: constant.
    Source: Wang and others 2019, Algorithm 2, on integers.
    """

    epsilon: float
    loss_range: Ends = (0.0, 1.0)

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
        return Fraction(_core.own_probability(self.epsilon, length, cells), TWO_64)

    @property
    def _line(self) -> Line:
        return self._moment(0, 1), self._own * (1 << self._sizes[0])

    @property
    def report_range(self) -> tuple[int, int]:
        log2_steps, length = self._sizes
        return 0, (1 << log2_steps) + length - 1

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        ends, epsilon = self._ends(), self.epsilon
        return _core.respond_window(floats(values), ends, self._sizes, epsilon, random_state)

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


def _checked_range(value: Any) -> Ends:
    try:
        low, high = value
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    low, high = number("loss_range", low), number("loss_range", high)
    # The width must not overflow, nor may a quotient by it.
    if not (math.isfinite(high - low) and low < high and math.isfinite(1 / (high - low))):
        rule = "it must be (low, high), both finite, and low < high"
        raise ParameterError(f"loss_range = {shown(value)}, but {rule}")
    return low, high


def _log2_steps(variance: float) -> int:
    """The least grid on which rounding adds next to nothing to that variance of a range of 1."""
    return max(0, math.ceil(-math.log2(4 * _GRID_SHARE * variance) / 2))


def _powers_below(end: int, power: int) -> int:
    """The sum of x or x**2 over 0 <= x < end."""
    return (end - 1) * end // 2 if power == 1 else (end - 1) * end * (2 * end - 1) // 6
