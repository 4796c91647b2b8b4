"""Bounds on how far a mean of independent reports may be from what it estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..._support.validate import refuse

# No population is larger.
MOST_AGENTS = 1e18
TOO_MANY = f"need more than {MOST_AGENTS:.0e} agents, but be larger"


class Deviation(NamedTuple):
    """A sub-gamma bound: ln E exp(x (X - E X)) <= variance `x**2` / (2 (1 - scale |x|)).

    It holds for x of either sign with scale |x| < 1. Hoeffding's inequality has scale 0 and a
    quarter of the range squared as the variance. Bernstein's has the variance itself, and as scale
    a third of the largest distance to the mean.
    """

    variance: float
    scale: float


def sample_size(deviations: Iterable[Deviation], alpha: float, log_odds: float) -> int:
    """Computes how many reports keep the mean within alpha.

    The mean may be further away with probability 2 exp(-log_odds). All deviations bound the same
    reports, so that the least of the numbers they ask for suffices.

    Raises:
        ParameterError: This number is 1e18 or more.
    """
    roots = [_root(deviation, alpha) for deviation in deviations]
    # Divided twice, since the square of a root may be no float.
    least = min(log_odds / root / root for root in roots)
    if least >= MOST_AGENTS:
        refuse("alpha", alpha, f"so small an alpha would need more than {MOST_AGENTS:.0e} agents")
    return max(1, math.ceil(least))


def half_width(deviations: Iterable[Deviation], reports: int, log_odds: float) -> float:
    """Bounds the error of the mean, except with probability 2 exp(-log_odds)."""
    part = log_odds / reports
    return min(math.sqrt(2 * bound.variance * part) + bound.scale * part for bound in deviations)


def _root(deviation: Deviation, alpha: float) -> float:
    """Returns the y that solves sqrt(2 variance) y + scale `y**2` = alpha."""
    linear = 2 * deviation.variance
    return 2 * alpha / (math.sqrt(linear) + math.sqrt(linear + 4 * deviation.scale * alpha))
