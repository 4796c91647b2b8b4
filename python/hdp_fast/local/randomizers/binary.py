"""Binary randomized response: one bit about a number."""

from __future__ import annotations

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
from ...exceptions import ParameterError
from .base import TWO_64, Reports
from .concentration import Deviation
from .mean import Bounds, LinearMap, MeanRandomizer


@dataclass(frozen=True, repr=False)
class BinaryResponse(MeanRandomizer):
    """Binary randomized response: one bit about a number.

    The number is rounded to one of its two bounds, at random, with its place in the range as the
    probability of the upper one. That bit is then reported as it is, or flipped. When the sampling
    of agents counts and delta is 0, no other randomizer of this package needs fewer agents: the
    population that is hardest to estimate holds nothing but the two bounds.

    Attributes:
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.
        bounds: The range (low, high) of the values, both finite, low < high.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of keeping the bit is rounded towards 1/2.

    Source:
        Warner 1965. The largest variance of a contribution is `coth(epsilon / 2)**2 / 4` for a
        range of width 1.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> hours = np.linspace(0, 16, 50_000)  # one person's value each; their mean is 8
        >>> randomizer = local.BinaryResponse(1.0, bounds=(0, 24))
        >>> reports = randomizer.sample(hours)  # 0 or 1, drawn on each person's device
        >>> estimate = randomizer.aggregate(reports).estimate(beta=1e-10)
        >>> estimate.low <= 8 <= estimate.high
        True
    """

    epsilon: float
    bounds: Bounds

    delta = 0.0
    _source = "Warner 1965"

    @cached_property
    def _truth(self) -> Fraction:
        return Fraction(_core.truth_probability(self.epsilon), TWO_64)

    @property
    def _linear_map(self) -> LinearMap:
        return 1 - self._truth, 2 * self._truth - 1

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report: 0 and 1."""
        return 0, 1

    def _draw(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        key = make_key(random_state)
        if values.dtype.kind in "bui" and self.bounds == (0.0, 1.0):
            try:
                return _core.randomized_response(values, self.epsilon, key)
            except ParameterError:
                # Bits alone need no copy.
                pass
            # Integers out of range count as the nearer bound.
            return _core.randomized_response(values > 0, self.epsilon, key)
        return _core.respond_binary(floats(values), self._low_and_width(), self.epsilon, key)

    def _log_law(self, reports: Floats, positions: Floats) -> Floats:
        intercept, slope = map(float, self._linear_map)
        one = intercept + slope * positions
        likelihood = np.where(reports == 1, one, 1 - one)
        return np.log(np.where((reports == 0) | (reports == 1), likelihood, 0.0))

    def _unit_variance(self, position: float) -> float:
        intercept, slope = map(float, self._linear_map)
        one = intercept + slope * position
        return one * (1 - one) / slope**2

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        intercept, slope = map(float, self._linear_map)
        bounds = [Deviation(1 / (4 * slope**2), 0.0)]
        if not sampled:
            worst = self._unit_variance(0.0 if binary else 0.5)
            bounds.append(Deviation(worst, (1 - intercept) / slope / 3))
        return bounds

    def _noise(self) -> str:
        return f"one bit, kept with probability {float(self._truth):.4g}"
