"""A released regression on centered rows: slopes around a mean, clipped between two ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import noise
from .._support.types import Floats, Integers
from .._support.validate import read_only, refuse
from ..accounting.discrete_gaussian import calibrate_means
from ..data.rows import Bounds, Rows
from ..record import PrivacyRecord
from .noisy_descent import cut_targets
from .statistics_model import PopulationFit
from .sufficient_statistics import SufficientStatistics, add_up

# From plain rows and targets to the rows and targets, or residuals, of a sum of moments.
Pairs = Callable[[Floats, Floats], tuple[Floats, Floats]]

# Slopes that explained a smaller share of what noise leaves open were measured to be of no use.
_LEAST_EXPLAINED = 1 / 8
_LEAST_SIGNAL, _LARGEST_SIGNAL = 1e-9, 1e9


@dataclass(frozen=True)
class TargetLaw:
    """How scores become targets, in units in which the bounds of the target are -1 and 1.

    Attributes:
        mean: What is predicted where all slopes add up to 0.
        low: The least prediction.
        high: The largest prediction.
        constant: What stands at the end of rows, where others have a 1.
    """

    mean: float
    low: float
    high: float
    constant: float = 0.0

    @property
    def width(self) -> float:
        """The longer way from the mean to an end."""
        return max(self.high - self.mean, self.mean - self.low)

    def scale(self, targets: Floats) -> Floats:
        """Targets that are clipped, less their mean, in [-1, 1]."""
        scaled: Floats = (targets.clip(self.low, self.high) - self.mean) / self.width
        return scaled

    def predict(self, rows: Floats, weights: Floats, norm_bound: float) -> Floats:
        """Predict the targets of centered rows, which are shrunk to the norm bound."""
        rows = rows.copy()
        rows[:, -1] = self.constant
        lengths = np.maximum(np.linalg.norm(rows, axis=1), norm_bound)
        scores: Floats = self.mean + (rows @ weights) * (norm_bound / lengths)
        return scores.clip(self.low, self.high)


@dataclass(frozen=True, eq=False)
class TargetModel:
    """What a regression releases of a target that is scaled to [-1, 1].

    Attributes:
        weights: The weights of a centered row, float64 of shape (d,), that of the constant last;
            read-only.
        norm_bound: Norm to which rows are shrunk.
        law: How scores become targets.
        explained: The mean square of what slopes add to the mean, by released moments.
        left: The mean square of what noise leaves open in that.
        record: What protects the records; None without noise.
        covariance: What noise makes in the weights, the released mean and means of columns being
            as they are, float64 of shape (d, d); None where there are no slopes, or no noise.
        population: Slopes without a penalty, with the uncertainty of noise and sampling; None where
            the release does not tell how far the population's are from them.
    """

    weights: Floats
    norm_bound: float
    law: TargetLaw
    explained: float
    left: float
    record: PrivacyRecord | None = None
    covariance: Floats | None = None
    population: PopulationFit | None = None

    @property
    def signal(self) -> float:
        """The root of what slopes explain over an eighth of what noise leaves open, above 0.

        At 1 or below models were measured to be no better than a constant.
        """
        if not self.explained:
            return _LEAST_SIGNAL
        ratio = self.explained / max(_LEAST_EXPLAINED * self.left, self.explained * 1e-18)
        return min(max(math.sqrt(ratio), _LEAST_SIGNAL), _LARGEST_SIGNAL)

    def scores(self, rows: Floats) -> Floats:
        """Compute the predicted targets of centered rows, shape (m, d), within [-1, 1]."""
        return self.law.predict(rows, self.weights, self.norm_bound)


# Half widths fall from 1 by this factor, and middles are so many parts of one apart.
_SHRINK, _PARTS, _LEAST_HALF = 2**-0.5, 6, 2.0**-8
# Records that may lie outside at no loss.
_SPARE = Fraction(1, 50)
# Records that halving the width is worth: some for the noise of the choice, and never too many.
_GAIN, _LARGEST_GAIN = 6.0, 0.05
# Steps of the grid of a clipped target.
_STEPS = 1 << 20
_LARGEST_SCALE = 1 << 50
# No mean square of residuals counts as smaller.
_LEAST_SQUARE = 1 / 400


class Clip(NamedTuple):
    """The ends between which a target is clipped."""

    low: float
    high: float


class _Intervals(NamedTuple):
    """All intervals to choose among, and how often each width was halved."""

    low: Floats
    high: Floats
    halvings: Floats


@lru_cache(maxsize=1)
def _list_intervals() -> _Intervals:
    lows, highs, halvings = [np.array([-1.0])], [np.array([1.0])], [np.zeros(1)]
    half = _SHRINK
    while half >= _LEAST_HALF:
        middles = np.arange(-1 + half / 2, 1, half / _PARTS)
        lows.append(np.maximum(middles - half, -1.0))
        highs.append(np.minimum(middles + half, 1.0))
        halvings.append(np.full(len(middles), -np.log2(half)))
        half *= _SHRINK
    return _Intervals(*(read_only(np.concatenate(part)) for part in (lows, highs, halvings)))


def count_outside(targets: Floats) -> Integers:
    """How many targets lie outside each interval: a record counts at most 1 in each."""
    intervals, ordered = _list_intervals(), np.sort(targets)
    below = np.searchsorted(ordered, intervals.low, "left")
    outside: Integers = below + len(targets) - np.searchsorted(ordered, intervals.high, "right")
    return outside


def choose_clip(
    outside: Integers,
    n: int,
    *,
    epsilon: float,
    rows: int,
    random_state: np.random.Generator | None,
) -> Clip:
    """Choose an interval that holds nearly all targets; pure epsilon-DP under replace_one, exact.

    By permute-and-flip. The score of an interval is minus the number of records outside, but for
    a public share, plus a public integer for its width: replacing a record moves it by at most 1.

    outside: what count_outside makes of all n records, in any parts.
    rows: the most rows of a person, who is what is replaced.
    """
    intervals = _list_intervals()
    gain = min(_GAIN * rows / epsilon, _LARGEST_GAIN * n)
    scores = np.floor(intervals.halvings * gain).astype(np.int64)
    scores -= np.maximum(outside - int(_SPARE * n), 0)
    place = noise.permute_and_flip(
        scores, epsilon=epsilon, sensitivity=rows, random_state=random_state
    )
    return Clip(float(intervals.low[place]), float(intervals.high[place]))


def span_targets(low: float, high: float) -> Clip:
    """The least interval of all targets, by their ends, which are read off and so not protected."""
    if high - low >= _LEAST_HALF:
        return Clip(low, high)
    return Clip(max(low - _LEAST_HALF, -1.0), min(high + _LEAST_HALF, 1.0))


def settle_square(n: int, epsilon: float, delta: float) -> tuple[int, Fraction]:
    """The grid and the noise of the mean square of n residuals; raises where none is enough."""
    return calibrate_means(1, n=n, epsilon=epsilon, delta=delta)


def count_squares(residuals: Floats, bits: int) -> int:
    """The sum of squares of residuals in [-1, 1], each cut to an integer from 0 to 2**bits."""
    return int(np.floor(residuals**2 * 2.0**bits).astype(np.int64).sum())


def release_square(
    total: int, n: int, grid: tuple[int, Fraction], random_state: np.random.Generator | None
) -> float:
    """Release a mean square of n residuals, with the noise that settle_square has.

    What count_squares makes of all of them is exact: replacing a record moves it by at most
    2**bits. What is released is at least the deviation of its noise.

    total: that sum.
    """
    bits, sigma = grid
    unit = 1 / (2.0**bits * n)
    drawn = int(noise.rounded_gaussian(sigma, (1,), random_state=random_state)[0])
    return min(max((total + drawn) * unit, float(sigma) * unit, _LEAST_SQUARE), 1.0)


def scale_mean(epsilon: float, rows: int) -> Fraction:
    """The scale of the noise on a sum of integers up to 2**20.

    Raises:
        ParameterError: It is more noise than is drawn.
    """
    scale = _STEPS * rows / noise.exact_epsilon(epsilon)
    if scale >= _LARGEST_SCALE:
        refuse("epsilon", epsilon, "the mean needs more noise than is drawn: take a larger one")
    return scale


def count_steps(clip: Clip, targets: Floats) -> int:
    """The sum of targets that are clipped and rounded, each to an integer from 0 to 2**20."""
    ends = Bounds(np.array([clip.low]), np.array([clip.high]))
    return int(ends.round(targets[:, None], _STEPS).sum())


def release_mean(
    total: int,
    n: int,
    clip: Clip,
    *,
    epsilon: float,
    rows: int,
    random_state: np.random.Generator | None,
) -> float:
    """Release the mean of n clipped targets; pure epsilon-DP under replace_one, exact.

    Discrete Laplace noise is added to what count_steps makes of all of them, which is exact:
    replacing a record moves it by at most 2**20. Without a finite epsilon no noise is added.

    total: that sum.
    """
    drawn = 0
    if epsilon < math.inf:
        drawn = noise.discrete_laplace(scale_mean(epsilon, rows), random_state=random_state)
    share = min(max(Fraction(total + drawn, _STEPS * n), Fraction(0)), Fraction(1))
    return min(max(clip.low + float(share) * (clip.high - clip.low), clip.low), clip.high)


# What is summed of records -----------------------------------------------------------------------


def find_ends(_: Floats, targets: Floats) -> tuple[float, float]:
    """The least and the largest of some targets."""
    return float(targets.min()), float(targets.max())


def count_means(
    count: Callable[[Floats], Integers], clip: Clip, rows: Floats, targets: Floats
) -> Integers:
    """The sums of the powers of rows, and that of targets."""
    return np.append(count(rows), count_steps(clip, targets))


def cut_scaled(law: TargetLaw, targets: Floats) -> NDArray[np.int16]:
    """Scaled targets as integers of IntegerRows."""
    return cut_targets(law.scale(targets))


def count_target_squares(law: TargetLaw, bits: int, targets: Floats) -> int:
    """What count_squares makes of scaled targets."""
    return count_squares(law.scale(targets), bits)


def make_pairs(
    centered: Rows, law: TargetLaw, constant: float, rows: Floats, targets: Floats
) -> tuple[Floats, Floats]:
    """Centered rows with this constant, and targets in [-1, 1]."""
    made = centered.scale(rows)
    made[:, -1] = constant
    return made, law.scale(targets)


def make_residuals(
    pairs: Pairs, weights: Floats, bound: float, clip: float, rows: Floats, targets: Floats
) -> tuple[Floats, Floats]:
    """Centered rows, and what slopes leave of targets, clipped and in units of the clip.

    A sum that a library of linear algebra makes of a row depends on the rows beside it, and the
    release would on the parts.
    """
    made, scaled = pairs(rows, targets)
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", made, made)), bound)
    residuals = scaled - np.einsum("ij,j->i", made, weights) * (bound / lengths)
    return made, (residuals / clip).clip(-1.0, 1.0)


def count_residual_squares(rest: Pairs, bits: int, rows: Floats, targets: Floats) -> int:
    """What count_squares makes of residuals."""
    return count_squares(rest(rows, targets)[1], bits)


def count_moments(
    description: SufficientStatistics, bits: int, pairs: Pairs, rows: Floats, targets: Floats
) -> Integers:
    """Sums of features times targets, and then second moments where they are released."""
    sums = add_up(description, *pairs(rows, targets), bits)
    flat = [] if sums.moments is None else [sums.moments.ravel()]
    return np.concatenate([sums.sums[:, 0], *flat])
