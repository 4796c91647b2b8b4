"""Randomizers of numbers in known bounds, and which of them is best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.binomial import clopper_pearson
from ..._support.numbers import floats
from ..._support.random_state import make_key
from ..._support.types import Floats, RandomState
from ..._support.validate import positive, probability, refuse
from ...exceptions import ParameterError
from .aggregates import Turnout, bound_by_sample
from .base import TWO_64, Deviation, Reports, agents_for, cap_epsilon
from .mean import Bounds, LinearMap, MeanRandomizer, Moments, validate_bounds
from .noisy import GaussianRandomizer, LaplaceRandomizer


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

    def _interval(self, moments: Moments, turnout: Turnout, beta: float, sampled: bool) -> Bounds:
        asked = turnout.asked
        if asked > _MOST_EXACT:
            return super()._interval(moments, turnout, beta, sampled)
        least = max(moments.sum - turnout.liars, 0)
        most = min(moments.sum + turnout.unknown, asked)
        low, high = clopper_pearson(least, asked, beta)
        if least < most:
            _, high = clopper_pearson(most, asked, beta)
        return self._to_place(Fraction(low)), self._to_place(Fraction(high))

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        intercept, slope = map(float, self._linear_map)
        bounds = [Deviation(1 / (4 * slope**2), 0.0)]
        if not sampled:
            worst = self._unit_variance(0.0 if binary else 0.5)
            bounds.append(Deviation(worst, (1 - intercept) / slope / 3))
        return bounds

    def _noise(self) -> str:
        return f"one bit, kept with probability {float(self._truth):.4g}"


# Beyond so many bits, what the exact interval would gain is not worth the time.
_MOST_EXACT = 10**9

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

    def _learn_deviation(
        self, moments: Moments, turnout: Turnout, sampled: bool, log_odds: float
    ) -> Deviation | None:
        span, slope = float(self.report_range[1] / self._linear_map[1]), self._linear_map[1]
        honest = turnout.honest
        if not sampled:
            variance = float(self._bound_noise(moments, turnout, log_odds) / slope**2)
        elif honest > 1:
            pairs = turnout.reports * moments.squares - moments.sum**2
            pairs = turnout.add_pairs(pairs, self.report_range[1])
            variance = float(Fraction(pairs, honest * (honest - 1)) / slope**2)
            variance = bound_by_sample(variance, honest, span, log_odds)
        else:
            return None
        return Deviation(variance, (span + 1) / 6)

    def _bound_noise(self, moments: Moments, turnout: Turnout, log_odds: float) -> Fraction:
        """Bounds the mean variance of reports given their values, but for exp(-log_odds).

        Let z be the grid point's distance to the middle, of mean Z and variance at most 1/4, and d
        the report's distance to the middle cell. Given z, the window of length L has the mean z and
        the variance (L**2 - 1) / 12. So the mean of d is p Z for the probability p of the window,
        the mean of `d**2` is v + p E `z**2` for a constant v, and the variance of d is at most
        v + p (1 - p) E `z**2` + `p**2` / 4. Squares in [0, R**2] of mean q have squares of mean
        `R**2` q at most, so that the mean of n of them is below q - R sqrt(2 q L / n) with
        probability exp(-L).
        """
        (log2_steps, length), keep = self._sizes, self._keep_probability
        steps, last = 1 << log2_steps, self.report_range[1]
        constant = keep * (length**2 - 1) / 12 + (1 - keep) * ((last + 1) ** 2 - 1) / 12
        reports = turnout.honest
        total = 4 * moments.squares - 4 * last * moments.sum + turnout.reports * last**2
        # Where no honest report came, it may lie at either end.
        total += turnout.unknown * last**2
        reach = last / 2 * math.sqrt(2 * log_odds / reports)
        root = (reach + math.sqrt(reach**2 + total / reports)) / 2
        square = min(Fraction(root) ** 2, constant + keep * Fraction(steps**2, 4))
        return keep * constant + (1 - keep) * square + keep**2 / 4

    def _noise(self) -> str:
        length, cells = self._sizes[1], self.report_range[1] + 1
        keep = float(self._keep_probability)
        return f"one of {length} cells with probability {keep:.4g}, else of {cells}"


def _powers_below(end: int, power: int) -> int:
    """Sums x or `x**2` over 0 <= x < end."""
    return (end - 1) * end // 2 if power == 1 else (end - 1) * end * (2 * end - 1) // 6


def best_randomizer(
    epsilon: float,
    delta: float = 0.0,
    *,
    bounds: Bounds,
    binary: bool = False,
    spread: float | None = None,
    alpha: float = 0.05,
    beta: float = 0.05,
    sampled: bool = True,
) -> MeanRandomizer:
    """Chooses the randomizer of a mean: for the worst population, or for one that you can guess.

    Without a guess it is the one that needs the fewest agents as far as is proved, whatever the
    values are.

    When agents are sampled and delta is 0, the choice is BinaryResponse for every epsilon: the
    population that is hardest to estimate holds nothing but low and high, and about those its
    reports have the smallest variance. GaussianRandomizer needs fewer agents only when delta is
    large: from 0.009 on for epsilon = 0.1, and from 0.15 on for epsilon = 1.

    When agents are not sampled, BinaryResponse also has to round the values between the bounds, at
    random, and Piecewise needs fewer agents from epsilon = 1.5 on with the default alpha and beta
    and a range of width 1. Beyond epsilon = 19 LaplaceRandomizer does.

    With a guess, `spread`, it is the one whose reports about values like these have the smallest
    variance. The variance depends on the distance of the values from the middle of the bounds:
    BinaryResponse is best for values near the ends, Piecewise for values in between, from epsilon =
    1 on by more and more. At epsilon 1, 2 and 4 its variance is 1.09, 1.9 and 6.7 times smaller for
    values a quarter of the range from the middle, and 1.4, 1.7 and 3.2 times larger for values at
    both ends. The interval of BinaryResponse is tighter for its variance, so that the one of
    Piecewise is the narrower one from about epsilon = 2 on. A wrong guess costs accuracy, and
    neither privacy nor what the interval promises.

    Args:
        epsilon: Privacy parameter of one report, at least 1e-9.
        delta: Privacy parameter of one report, in [0, 1). Above 0 it allows GaussianRandomizer.
        bounds: The range (low, high) of the values, both finite, low < high.
        binary: Whether every value is known to be low or high.
        spread: A public guess of how far the values typically lie from the middle of the bounds, as
            root mean square, in the units of the values: above 0, and at most half the width of the
            bounds. It must not be computed from the agents' values. None assumes the worst. With a
            guess, alpha, beta and sampled do not change the choice.
        alpha: Largest error that is allowed, above 0, in the units of the values.
        beta: Probability with which the error may be larger, in (0, 1).
        sampled: True counts the error against the population that the agents are drawn from
            independently. False counts it against the mean of these very agents, whoever they are.

    Returns:
        A BinaryResponse, Piecewise, LaplaceRandomizer or GaussianRandomizer with this epsilon.

    Raises:
        ParameterError: A parameter is out of range, spread comes with binary, or a randomizer that
            is compared would need more than 1e18 agents.

    Guarantee:
        Reports have the guarantee of the randomizer that is returned. A choice other than
        GaussianRandomizer spends no delta.

    Cost:
        Under a millisecond without delta. With delta it takes as long as making a
        GaussianRandomizer.

    Source:
        The bounds of `Randomizer.agents_needed`, or `Randomizer.variance` at the middle plus
        spread, compared for each randomizer.

    Examples:
        >>> from hdp_fast import local
        >>> local.best_randomizer(1.0, bounds=(0, 24))
        BinaryResponse(epsilon=1.0, bounds=(0.0, 24.0)): one bit, kept with probability 0.7311
        >>> type(local.best_randomizer(4.0, bounds=(0, 1), sampled=False)).__name__
        'Piecewise'
        >>> type(local.best_randomizer(2.0, bounds=(0, 120), spread=25)).__name__  # ages
        'Piecewise'
    """
    allowed = probability("delta", delta, zero=True)
    if spread is not None:
        place = _typical_place(spread, validate_bounds("bounds", bounds), binary)
        return min(_candidates(epsilon, allowed, bounds), key=lambda made: made.variance(place))

    def count_agents(randomizer: MeanRandomizer) -> int:
        return agents_for(randomizer, alpha, beta, sampled=sampled, binary=binary)

    return min(_candidates(epsilon, allowed, bounds), key=count_agents)


def _typical_place(spread: float, bounds: Bounds, binary: bool) -> float:
    low, high = bounds
    distance, half = positive("spread", spread), (high - low) / 2
    if binary:
        refuse("spread", spread, "it must not come with binary, which says where the values are")
    if distance > half:
        refuse("spread", spread, f"it must be at most half the width of the bounds, {half:g}")
    return low + half + distance


def _candidates(epsilon: float, delta: float, bounds: Bounds) -> Iterator[MeanRandomizer]:
    yield from (kind(epsilon, bounds) for kind in (BinaryResponse, Piecewise, LaplaceRandomizer))
    if delta:
        try:
            yield GaussianRandomizer(epsilon, delta, bounds)
        except ParameterError:
            # Where delta is too small for Gaussian noise, the other randomizers remain.
            return
