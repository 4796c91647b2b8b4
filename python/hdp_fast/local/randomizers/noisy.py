"""Randomizers that add Laplace or Gaussian noise to a number, on a grid of integers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.numbers import floats
from ..._support.parameters import Rules
from ..._support.random_state import make_key
from ..._support.types import Floats, RandomState
from ..._support.validate import one_of, probability
from ...accounting.discrete_gaussian import (
    calibrate_sigma,
    continuous_mu,
    exact_delta,
    round_sigma_up,
)
from ...exceptions import ParameterError
from .base import MOST_AGENTS, TOO_MANY, Deviation, Reports, cap_epsilon
from .mean import Bounds, LinearMap, MeanRandomizer

# Rounding to the grid adds at most this part of the noise to the variance.
_GRID_SHARE = 2.0**-20
# exp(-70) and the tail of a Gaussian beyond 12 sigma are below 1e-30.
_LAPLACE_REACH, _GAUSSIAN_REACH = 70, 12


class _Noisy(MeanRandomizer):
    """The base class of randomizers that add symmetric integer noise to a grid point."""

    @property
    @abstractmethod
    def _grid(self) -> tuple[int, Fraction]:
        """log2 of the number of steps of the grid, and the scale of the noise in steps."""

    @property
    def _steps(self) -> int:
        return 1 << self._grid[0]

    @property
    def _linear_map(self) -> LinearMap:
        return Fraction(0), Fraction(self._steps)

    def _respond(self, law: str, values: NDArray[Any], random_state: RandomState) -> Reports:
        log2_steps, scale = self._grid
        ratio = scale.as_integer_ratio()
        return _core.respond_noisy(
            floats(values), self._low_and_width(), log2_steps, law, ratio, make_key(random_state)
        )

    def _log_law(self, reports: Floats, positions: Floats) -> Floats:
        start, rest = np.divmod(positions * self._steps, 1.0)
        below = np.log1p(-rest) + self._log_mass(reports - start)
        return np.logaddexp(below, np.log(rest) + self._log_mass(reports - start - 1))

    def _unit_variance(self, position: float) -> float:
        rest = position * self._steps % 1.0
        return (self._noise_variance() + rest * (1 - rest)) / self._steps**2

    def _worst_position(self) -> float:
        return 0.5 / self._steps

    def _bounded_part(self, sampled: bool) -> float:
        """Bounds the variance of sampling and rounding, or of rounding alone (Hoeffding)."""
        return 0.25 if sampled else 0.25 / self._steps**2

    @abstractmethod
    def _log_mass(self, x: Floats) -> Floats:
        """Computes ln Pr[noise = x]."""

    @abstractmethod
    def _noise_variance(self) -> float: ...


@dataclass(frozen=True, repr=False)
class LaplaceRandomizer(_Noisy):
    """A number with discrete Laplace noise, on a grid of integers.

    The number is rounded, at random and without bias, to a grid of equal steps over its range. The
    grid is so fine that rounding adds at most a millionth to the variance. The report is the grid
    point with discrete Laplace noise of scale steps / epsilon.

    Attributes:
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.
        bounds: The range (low, high) of the values, both finite, low < high.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the scale is rounded up.

    Source:
        Dwork, McSherry, Nissim and Smith 2006. The variance of a contribution is about
        `2 / epsilon**2` for a range of width 1.

    Examples:
        >>> from hdp_fast import local
        >>> randomizer = local.LaplaceRandomizer(2.0, bounds=(0, 100))
        >>> randomizer
        LaplaceRandomizer(epsilon=2.0, bounds=(0.0, 100.0)): discrete Laplace of scale 512 on a grid
        of 2**10 steps
        >>> randomizer.agents_needed(alpha=5, beta=0.05)  # agents for a mean to within 5
        2287
    """

    epsilon: float
    bounds: Bounds

    delta = 0.0
    _source = "Dwork, McSherry, Nissim and Smith 2006, on a grid"

    @cached_property
    def _grid(self) -> tuple[int, Fraction]:
        epsilon = cap_epsilon(self.epsilon)
        log2_steps = _log2_steps(2 / epsilon**2)
        # A ledger reads a float as its shortest decimal, which may be a little less.
        spent = min(Fraction(epsilon), Fraction(repr(epsilon)))
        return log2_steps, round_sigma_up((1 << log2_steps) / spent)

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report, except for reports of probability below 1e-30."""
        reach = math.ceil(_LAPLACE_REACH * self._grid[1])
        return -reach, self._steps + reach

    def _draw(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return self._respond("laplace", values, random_state)

    def _log_mass(self, x: Floats) -> Floats:
        rate = float(1 / self._grid[1])
        return math.log(math.tanh(rate / 2)) - np.abs(x) * rate

    def _noise_variance(self) -> float:
        return float(1 / (2 * math.sinh(float(1 / self._grid[1]) / 2) ** 2))

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        # The moment-generating function of the discrete law is below that of the continuous one.
        scale = float(self._grid[1]) / self._steps
        return [Deviation(self._bounded_part(sampled) + 2 * scale**2, scale)]

    def _noise(self) -> str:
        log2_steps, scale = self._grid
        return f"discrete Laplace of scale {float(scale):.4g} on a grid of 2**{log2_steps} steps"


class PaperAgents(NamedTuple):
    """The number of agents that Kohen and Sheffet print for a mean of Gaussian answers.

    Attributes:
        printed: 4 ln(2 / delta) ln(4 / beta) / `(epsilon alpha)**2`, rounded up.
        printed_valid: Whether the tail bound for a number in [0, 1] with Gaussian noise shows that
            so many are enough; it does up to about `epsilon**2` = 1.5 ln(2 / delta). The number
            goes to 0 as epsilon grows, and is too small from an epsilon of about 12 on.

    Examples:
        >>> from hdp_fast import local
        >>> gaussian = local.GaussianRandomizer.printed(8.0, 1e-6, (0, 1))
        >>> gaussian.paper_agents_needed(alpha=0.05, beta=0.05)
        PaperAgents(printed=1590, printed_valid=False)
    """

    printed: int
    printed_valid: bool


@dataclass(frozen=True, repr=False)
class GaussianRandomizer(_Noisy):
    """A number with discrete Gaussian noise, on a grid of integers.

    The number is rounded, at random and without bias, to a grid of equal steps over its range. The
    grid is so fine that rounding adds at most a millionth to the variance. The report is the grid
    point with discrete Gaussian noise. The noise is as small as the exact privacy curve of that
    noise allows, and hardly larger than that of the analytic Gaussian mechanism.

    This randomizer serves comparison with Kohen and Sheffet 2022. A report of BinaryResponse with
    the same epsilon, and with delta = 0, has the smaller variance unless delta is large: up to
    delta = 0.009 for epsilon = 0.1, and up to 0.15 for epsilon = 1.

    Attributes:
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.
        delta: Privacy parameter of one report, in [1e-200, 1). Epsilon and delta must not be so
            small that the standard deviation of the noise exceeds `2**16` times the width of the
            range.
        bounds: The range (low, high) of the values, both finite, low < high.
        calibration: "exact" takes the least noise that suffices. "printed" takes the noise of
            `printed`.

    Raises:
        ParameterError: A parameter is out of range, or the noise that was asked for does not keep
            epsilon and delta.

    Guarantee:
        Each report is (epsilon, delta)-differentially private in its own value, in the local model.
        The random draws are exact. The privacy curve is summed in doubles, with a margin of 1e-9 of
        itself.

    Cost:
        Making a randomizer takes a sum over 40 standard deviations of the noise, in steps of the
        grid: some ten thousand integers, and a few million where the noise is largest.

    Source:
        Canonne, Kamath and Steinke 2020 (the noise); Balle and Wang 2018 (the shape of the curve).

    Examples:
        >>> from hdp_fast import local
        >>> gaussian = local.GaussianRandomizer(1.0, 1e-6, bounds=(0, 1))
        >>> round(gaussian.variance(), 1)
        17.8
        >>> binary = local.BinaryResponse(1.0, bounds=(0, 1))  # the same epsilon, and delta = 0
        >>> round(binary.variance(), 1)
        1.2
    """

    epsilon: float
    delta: float
    bounds: Bounds
    calibration: str = "exact"

    _source = "Canonne, Kamath and Steinke 2020, Theorem 7, with its exact curve"

    RULES: ClassVar[Rules] = {
        **MeanRandomizer.RULES,
        "delta": probability,
        "calibration": partial(one_of, allowed=("exact", "printed")),
    }

    def __post_init__(self) -> None:
        """Checks the parameters, and that there is a grid for them."""
        super().__post_init__()
        self._grid  # noqa: B018

    @classmethod
    def printed(cls, epsilon: float, delta: float, bounds: Bounds) -> Self:
        """Makes a randomizer with the noise that Kohen and Sheffet print, where that is enough.

        The variance of that noise is `2 ln(2 / delta) / epsilon**2` for a range of width 1.

        Args:
            epsilon: Privacy parameter of one report, as of the class.
            delta: Privacy parameter of one report, as of the class.
            bounds: The range (low, high) of the values, both finite, low < high.

        Returns:
            A randomizer of calibration "printed".

        Raises:
            ParameterError: A parameter is out of range, or the exact delta of the printed noise
                exceeds delta. For delta = 1e-6 this is so beyond epsilon = 9.73.

        Source:
            Kohen and Sheffet 2022, Section 2, randomized response with epsilon and delta.
        """
        return cls(epsilon, delta, bounds, "printed")

    def paper_agents_needed(self, *, alpha: float, beta: float) -> PaperAgents:
        """Computes the number of agents that Kohen and Sheffet print for this epsilon and delta.

        Args:
            alpha: Largest error that is allowed, in units of the width of the range, in (0, 1).
            beta: Probability with which the error may be larger, in (0, 1).

        Returns:
            The number, and whether it is proved to be enough.

        Raises:
            ParameterError: A parameter is out of range, or 1e18 or more agents would be needed.

        Guarantee:
            Of utility only. `agents_needed` of this randomizer is proved at every epsilon.

        Source:
            Kohen and Sheffet 2022, Section 2, N(alpha, beta, epsilon, delta).

        Examples:
            >>> from hdp_fast import local
            >>> gaussian = local.GaussianRandomizer.printed(1.0, 1e-6, (0, 1))
            >>> gaussian.paper_agents_needed(alpha=0.05, beta=0.01)
            PaperAgents(printed=139085, printed_valid=True)
        """
        width, failure = probability("alpha", alpha), probability("beta", beta)
        spread = 2 * math.log(2 / self.delta) / self.epsilon**2
        # Not divided by the square of alpha, which may be too small for a float.
        root = math.sqrt(2 * spread * math.log(4 / failure)) / width
        number = root * root
        if number >= MOST_AGENTS:
            raise ParameterError(f"alpha = {alpha} and epsilon = {self.epsilon} {TOO_MANY}")
        # Hoeffding's 1/4 stands beside the variance of the noise.
        is_enough = spread * math.log(4 / failure) >= (spread + 0.25) * math.log(2 / failure)
        return PaperAgents(math.ceil(number), is_enough)

    @cached_property
    def _grid(self) -> tuple[int, Fraction]:
        epsilon = cap_epsilon(self.epsilon)
        mu = continuous_mu(epsilon, self.delta)
        if self.calibration == "printed":
            return self._printed_grid()
        log2_steps = _log2_steps(1 / mu**2)
        return log2_steps, calibrate_sigma(epsilon, self.delta, 1 << log2_steps, mu)

    def _printed_grid(self) -> tuple[int, Fraction]:
        variance = 2 * math.log(2 / self.delta) / self.epsilon**2
        log2_steps = _log2_steps(variance)
        steps = 1 << log2_steps
        sigma = round_sigma_up(math.sqrt(variance) * steps)
        delta = exact_delta(sigma, steps, self.epsilon)
        if delta > self.delta:
            rule = f"the printed noise has a delta of {delta:.6g} there"
            raise ParameterError(f"epsilon = {self.epsilon} with delta = {self.delta}, but {rule}")
        return log2_steps, sigma

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report, except for reports of probability below 1e-30."""
        reach = math.ceil(_GAUSSIAN_REACH * self._grid[1])
        return -reach, self._steps + reach

    def _draw(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return self._respond("gaussian", values, random_state)

    def _log_mass(self, x: Floats) -> Floats:
        sigma = float(self._grid[1])
        # The normalizing sum is the integral, up to a relative error of exp(-2 pi**2 sigma**2).
        return -((x / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))

    def _noise_variance(self) -> float:
        return float(self._grid[1]) ** 2

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        # Discrete Gaussian noise is sub-Gaussian with sigma itself.
        return [Deviation(self._bounded_part(sampled) + self._noise_variance() / self._steps**2, 0)]

    def _noise(self) -> str:
        log2_steps, sigma = self._grid
        return f"discrete Gaussian of sigma {float(sigma):.4g} on a grid of 2**{log2_steps} steps"


def _log2_steps(variance: float) -> int:
    """Returns log2 of the steps of the coarsest grid whose rounding is negligible.

    It is negligible beside noise of this variance, for a range of width 1.
    """
    return max(0, math.ceil(-math.log2(4 * _GRID_SHARE * variance) / 2))
