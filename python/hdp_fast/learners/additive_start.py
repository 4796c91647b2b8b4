"""The start of an additive model: the base of two classes, or the ends and the mean of a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import noise
from .._support.types import Floats, Integers
from .additive_plan import ONE, AdditivePlan
from .target_model import TargetLaw

# Exact sums with noise of a deviation; None for none.
AddNoise = Callable[[Integers, Fraction | None], Floats]

# No base is nearer to a sure class.
_LEAST_SHARE = 0.005
_TARGET_CELLS, _LEAST_ROOT, _TAIL, _MOST = 64, 1 / 64, 0.002, 0.9


def add_rounded(
    sums: Integers, sigma: Fraction | None, stream: np.random.Generator | None
) -> Floats:
    """The sums with rounded normal noise of this deviation; None for none."""
    if sigma is not None:
        sums = sums + noise.rounded_gaussian(sigma, sums.shape, random_state=stream)
    return sums.astype(np.float64)


class Start(NamedTuple):
    """What all scores begin with.

    Attributes:
        labels: Integers in units of 2^-16.
        base: The score, likewise.
        deviation: That of the noise in it, as a score.
        limits: The least residual and the largest.
        bend: What a record's residual falls by with its score.
        unit: How large scores are that log-odds of 1 stand for.
        law: How scores become targets, and their half width; None for classes.
        width: What labels were divided by.
    """

    labels: Integers
    base: int
    deviation: float
    limits: tuple[int, int]
    bend: float
    unit: float
    law: TargetLaw | None = None
    width: float = 1.0

    def distance(self, adds: bool) -> int:
        """The squared distance of neighbors in the sums of one column."""
        return squared_distance(*self.limits, adds)

    def sum_residuals(self, bins: NDArray[np.uint8], count: int) -> Integers:
        """The exact sums of residuals of the base over so many bins, in units of 2^-16."""
        base = 1 / (1 + math.exp(-self.base / ONE)) if self.law is None else self.base / ONE
        rest = (self.labels - round(base * ONE)).clip(*self.limits)
        # Below 2^53, and so exact.
        return np.bincount(bins, weights=rest, minlength=count).astype(np.int64)


def squared_distance(low: int, high: int, adds: bool = False) -> int:
    """The largest squared distance of sums over bins, where records add low to high to one.

    adds: whether one of the neighbors has a record more, and not another one in the place of one.
    """
    largest = max(low**2, high**2)
    return largest if adds else max((high - low) ** 2, 2 * largest)


def start_classes(plan: AdditivePlan, labels: NDArray[Any], add_noise: AddNoise) -> Start:
    """The count of the second class, and limits around its share.

    Under add_remove that is of both: a record is in one, and so the distance of neighbors is 1.
    """
    n = plan.n
    sigma = plan.sigma(1, plan.shares.base)
    second = np.count_nonzero(labels)
    if plan.adds:
        pair = add_noise(np.array([len(labels) - second, second]), sigma).clip(0.0)
        # Counts below their noise say little: both classes then have about half.
        pair += 0.0 if sigma is None else float(sigma)
        share = pair[1] / pair.sum()
    else:
        share = add_noise(np.array([second]), sigma)[0] / n
    share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    bend, wider = share * (1 - share), plan.wider
    low, high = -(share + wider * (1 - share)), (1 - share) + wider * share
    return Start(
        labels.astype(np.int64) * ONE,
        round(math.log(share / (1 - share)) * ONE),
        0.0 if sigma is None else float(sigma) / n / bend,
        (math.floor(low * ONE), math.ceil(high * ONE)),
        bend,
        1.0,
    )


def start_target(plan: AdditivePlan, labels: NDArray[Any], add_noise: AddNoise) -> Start:
    """Ends of the target by counts of cells, and its mean between them."""
    n = plan.n
    law, root = TargetLaw(0.0, -1.0, 1.0, 1.0), 1.0
    share = plan.shares.base
    if plan.rounds:
        share /= 2
        sigma = plan.sigma(plan.cells_moved, share)
        places = (labels + 1) / 2 * _TARGET_CELLS
        places = np.minimum(places.astype(np.int64), _TARGET_CELLS - 1)
        counts = add_noise(np.bincount(places, minlength=_TARGET_CELLS), sigma)
        law, root = choose_ends(counts, 0.0 if sigma is None else float(sigma), n)
    ends = math.floor(law.low * ONE), math.ceil(law.high * ONE)
    whole = np.rint(labels * ONE).astype(np.int64).clip(*ends)
    middle = sum(ends) // 2
    longest = ends[1] - middle if plan.adds else ends[1] - ends[0]
    sigma = plan.sigma(longest**2, share)
    total = add_noise(np.array([(whole - middle).sum()]), sigma)[0]
    mean = min(max((middle + total / n) / ONE, law.low), law.high)
    width = max(law.high - mean, mean - law.low)
    root = max(root / width, _LEAST_ROOT)
    limit = math.ceil(min(plan.reach * root, 2.0) * ONE)
    rest = np.rint((whole / ONE - mean) / width * ONE).astype(np.int64)
    law = TargetLaw(mean, law.low, law.high, 1.0)
    return Start(rest, 0, 0.0, (-limit, limit), 1.0, 2 * root, law, width)


def choose_ends(counts: Floats, sigma: float, n: int) -> tuple[TargetLaw, float]:
    """Ends that hold most targets, and their deviation, by noisy counts of even cells.

    They are half as far again from each other, on both sides, as cells that stand out of noise;
    those of all cells, where these hold too few records. Records that are not in such cells count
    as spread between the ends.
    """
    cells = len(counts)
    seen = counts > max(3 * sigma, _TAIL * n)
    first, last = 0, cells - 1
    if seen.any():
        first, last = int(np.argmax(seen)), cells - 1 - int(np.argmax(seen[::-1]))
        inside = float(counts[first : last + 1].sum())
        more = 1 + (last + 1 - first) // 2
        if inside < _MOST * n - 2 * sigma * math.sqrt(last + 1 - first):
            more = cells
        first, last = max(first - more, 0), min(last + more, cells - 1)
    ends = np.linspace(-1, 1, cells + 1)
    middles = (ends[1:] + ends[:-1]) / 2
    inside_ends = (middles > ends[first]) & (middles < ends[last + 1])
    shares = np.where(seen, counts, 0.0) / n
    others = inside_ends & ~seen
    shares[others] = max(1 - float(shares.sum()), 0.0) / max(int(others.sum()), 1)
    shares /= shares.sum()
    mean = float(shares @ middles)
    root = math.sqrt(float(shares @ (middles - mean) ** 2) + 1 / cells**2)
    return TargetLaw(mean, float(ends[first]), float(ends[last + 1]), 1.0), root
