"""How far a calibration may go: the worst truth that explains the answers nearly as well."""

from __future__ import annotations

import math

import numpy as np

from .._support.types import Floats
from .calibration_fit import Fit, Posterior, Prior, Tilt, compare, softplus

STEPS = np.linspace(0.0, 1.0, 21)
# The worst truth may lie further from the prior's mean than the fit: so many times its deviations.
_WIDER = 3.0
# Weights of the tilt, as multiples of the one that is best for a normal posterior. Where the truth
# may be much worse than normal, as with a base rate that the fit puts near 0, less is better.
_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0625)
_REST = 1e-6


def choose_step(fit: Fit, odds: Floats, *, tolerance: float, confidence: float) -> float:
    """Choose how far to go from the score itself (0) to the fitted log-odds on the cells (1).

    The step is the largest one whose log loss is at most `tolerance` above that of the score
    itself, for every truth that explains the answers nearly as well as the best one: the log of the
    posterior, under a wider prior, is at most `confidence**2 / 2` lower. For a normal posterior
    this is the truth that is `confidence` standard deviations worse than the fit. Where the
    posterior is skewed, as for rates near 0, a standard deviation says too little.
    """
    scores, worst = fit.axis.middles, Worst(fit, confidence)
    # The log loss of each truth is convex on the way, so the worst one is, and it is 0 at 0: the
    # safe steps are an interval.
    safe, unsafe = 0, len(STEPS)
    place = len(STEPS) - 1
    while unsafe - safe > 1:
        if worst.is_within(tolerance, scores + STEPS[place] * (odds - scores), scores):
            safe = place
        else:
            unsafe = place
        place = (safe + unsafe) // 2
    return float(STEPS[safe])


class Worst:
    """Bounds the difference of log loss over all truths that explain the answers well.

    For any weight w > 0 and all truths with log posterior L at least L* - a, the difference D is at
    most (max (L + w D) - L* + a) / w. One such weight proves that D is within the tolerance.
    """

    def __init__(self, fit: Fit, confidence: float):
        posterior, prior = fit.posterior, fit.prior
        wider = Prior(prior.center, _WIDER * prior.deviations, prior.knots)
        self.fit, self.confidence = fit, confidence
        self.posterior = Posterior(posterior.counts, posterior.edge, fit.axis, wider)
        start = np.concatenate([fit.waves, fit.coefficients])
        self.best, self.state = self.posterior.climb(start)
        self.allowance = fit.excess * confidence**2 / 2

    def is_within(self, tolerance: float, odds: Floats, other: Floats) -> bool:
        """Whether the log loss of `odds` is proved to be at most `tolerance` above the other's."""
        deviation = max(compare(self.fit, odds, other).deviation, 1e-12)
        natural = self.confidence * self.fit.excess / deviation
        losses, shifts = softplus(odds) - softplus(other), odds - other
        # The worst truth is often near the one for which the score was right.
        right = np.concatenate([self.fit.waves, self.fit.prior.center])
        starts = [self.state, right]
        for factor in _WEIGHTS:
            tilt = Tilt(natural * factor, losses, shifts)
            room = tolerance * tilt.weight + self.best - self.allowance
            highest = -math.inf
            for place, start in enumerate(starts):
                value, starts[place] = self.posterior.climb(start, tilt, _REST)
                highest = max(highest, value)
                if highest > room:
                    break
            if highest <= room:
                return True
        return False
