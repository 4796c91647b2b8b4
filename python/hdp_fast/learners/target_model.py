"""A released regression on centered rows: slopes around a mean, clipped between two ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import noise
from .._support.types import Floats
from .._support.validate import read_only, refuse
from ..accounting.discrete_gaussian import calibrate_means
from ..data.rows import Bounds
from ..record import PrivacyRecord
from .statistics_model import PopulationFit

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


def choose_clip(
    targets: Floats, *, epsilon: float, rows: int, random_state: np.random.Generator | None
) -> Clip:
    """Choose an interval that holds nearly all targets; pure epsilon-DP under replace_one, exact.

    By permute-and-flip. The score of an interval is minus the number of records outside, but for
    a public share, plus a public integer for its width: replacing a record moves it by at most 1.

    targets: in [-1, 1].
    rows: the most rows of a person, who is what is replaced.
    """
    intervals, n, ordered = _list_intervals(), len(targets), np.sort(targets)
    below = np.searchsorted(ordered, intervals.low, "left")
    above = n - np.searchsorted(ordered, intervals.high, "right")
    gain = min(_GAIN * rows / epsilon, _LARGEST_GAIN * n)
    scores = np.floor(intervals.halvings * gain).astype(np.int64)
    scores -= np.maximum(below + above - int(_SPARE * n), 0)
    place = noise.permute_and_flip(
        scores, epsilon=epsilon, sensitivity=rows, random_state=random_state
    )
    return Clip(float(intervals.low[place]), float(intervals.high[place]))


def span_targets(targets: Floats) -> Clip:
    """The least interval of all targets, which is read off and so not protected."""
    low, high = float(targets.min()), float(targets.max())
    if high - low >= _LEAST_HALF:
        return Clip(low, high)
    return Clip(max(low - _LEAST_HALF, -1.0), min(high + _LEAST_HALF, 1.0))


def settle_square(n: int, epsilon: float, delta: float) -> tuple[int, Fraction]:
    """The grid and the noise of the mean square of n residuals; raises where none is enough."""
    return calibrate_means(1, n=n, epsilon=epsilon, delta=delta)


def release_square(
    residuals: Floats, grid: tuple[int, Fraction], random_state: np.random.Generator | None
) -> float:
    """Release the mean square of residuals in [-1, 1], with the noise that settle_square has.

    Squares are cut to integers up to 2**bits, whose sum is exact: replacing a record moves it by
    at most 2**bits. What is released is at least the deviation of its noise.
    """
    bits, sigma = grid
    unit = 1 / (2.0**bits * len(residuals))
    total = int(np.floor(residuals**2 * 2.0**bits).astype(np.int64).sum())
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


def release_mean(
    targets: Floats,
    clip: Clip,
    *,
    epsilon: float,
    rows: int,
    random_state: np.random.Generator | None,
) -> float:
    """Release the mean of targets that are clipped; pure epsilon-DP under replace_one, exact.

    Clipped targets are rounded to integers from 0 to 2**20, whose sum is exact, and discrete
    Laplace noise is added. Replacing a record moves the sum by at most 2**20.
    """
    ends = Bounds(np.array([clip.low]), np.array([clip.high]))
    total = int(ends.round(targets[:, None], _STEPS).sum())
    drawn = noise.discrete_laplace(scale_mean(epsilon, rows), random_state=random_state)
    share = min(max(Fraction(total + drawn, _STEPS * len(targets)), Fraction(0)), Fraction(1))
    return min(max(clip.low + float(share) * (clip.high - clip.low), clip.low), clip.high)
