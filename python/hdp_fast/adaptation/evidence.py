"""What a release says of the target: the mean over priors, weighed by their evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._support.types import Floats

# Prior deviations of a prediction's change, in residuals of the source.
_SCALES = 10.0 ** np.arange(-3, 1.51, 0.125)
# Exponents of the second moment with which the prior variance of a direction goes.
_POWERS = (0.0, 0.5, 1.0)


class MomentProblem(NamedTuple):
    """Released numbers and public facts, in the k coordinates of the release.

    Attributes:
        sums: The released sum of z r, float64 (k,).
        moments: The released sum of z z', float64 (k, k), symmetric.
        size: Number n of target records.
        sums_deviation: Deviation of the noise on `sums`.
        moments_deviation: Deviation of the noise on the diagonal of `moments`; above it is
            sqrt(2) times less.
        source_moments: Mean of z z' over the source, float64 (k, k).
        shape: Second moments of the directions, over the largest, float64 (k,).
        variance: Expected square of a clipped residual.
        centers: Changes of the coefficients that the target may be near, float64 (centers, k).
        priors: Probability of each before the release, float64 (centers,).
    """

    sums: Floats
    moments: Floats
    size: int
    sums_deviation: float
    moments_deviation: float
    source_moments: Floats
    shape: Floats
    variance: float
    centers: Floats
    priors: Floats


class ChangePosterior(NamedTuple):
    """The mean change of the coefficients, and the probabilities of the centers."""

    change: Floats
    centers: Floats


def average_posterior(problem: MomentProblem) -> ChangePosterior:
    """Average the posterior means of all priors, weighed by their evidence.

    Given the target's second moments H and a change b of the coefficients, the released sums g are
    H b, the noise, and what residuals add: a variance of v H. A prior takes b as normal around a
    center, with a variance that goes with t**2 and a power of the direction's second moment. Its
    evidence is the density of g. H is estimated first, and the noise that stays in it counts as
    noise on g. Everything is computed from released numbers and public facts.
    """
    moments, left = denoise(problem)
    changes, logs, owners = [], [], []
    for owner, center in enumerate(problem.centers):
        for change, log in _posteriors(problem, moments, left, center):
            changes.append(change)
            logs.append(log + math.log(problem.priors[owner]))
            owners.append(owner)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    shares: Floats = np.bincount(owners, weights, len(problem.centers)).astype(np.float64)
    return ChangePosterior(weights @ np.array(changes), shares)


def denoise(problem: MomentProblem) -> tuple[Floats, float]:
    """Estimate the target's sum of z z', and the deviation of the noise that stays in it.

    Its distance from what the source has loses, in each of its directions, the norm that noise of
    this deviation has as a symmetric matrix, about s sqrt(2 k): what is below counts as noise, so
    that the source's moments stay where the release does not contradict them. Without noise the
    released sum is returned.
    """
    if not problem.moments_deviation:
        return problem.moments, 0.0
    expected = problem.size * problem.source_moments
    values, vectors = np.linalg.eigh(problem.moments - expected)
    edge = problem.moments_deviation * math.sqrt(2 * len(values))
    kept = np.sign(values) * np.maximum(np.abs(values) - edge, 0.0)
    total = expected + (vectors * kept) @ vectors.T
    values, vectors = np.linalg.eigh(total)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive, problem.moments_deviation * math.sqrt(float((kept != 0).mean()))


def _posteriors(
    problem: MomentProblem, moments: Floats, left: float, center: Floats
) -> Iterator[tuple[Floats, float]]:
    """Yield the posterior mean and the log evidence of every prior around a center."""
    sums = problem.sums - moments @ center
    noise = problem.sums_deviation**2 + left**2 / 2 * float(center @ center)
    base = problem.variance * moments
    base.flat[:: len(base) + 1] += max(noise, 1e-12 * float(np.trace(base)), 1e-300)
    scale = 1 / np.sqrt(np.maximum(np.diag(problem.source_moments), 1e-300))
    for power in _POWERS:
        widths = problem.shape ** (power / 2) * scale
        whitened = np.linalg.cholesky(base)
        spread = left**2 / 2 * float(widths @ widths)
        for t in _SCALES:
            variance = t**2 * problem.variance
            if spread:
                inflated = base.copy()
                inflated.flat[:: len(base) + 1] += spread * variance
                whitened = np.linalg.cholesky(inflated)
            part = np.linalg.solve(whitened, moments * widths)
            target = np.linalg.solve(whitened, sums)
            inner = np.eye(len(widths)) + variance * (part.T @ part)
            mean = np.linalg.solve(inner, variance * (part.T @ target))
            # The density of the sums, whose variance is that of base and of the prior together.
            fit = target @ target - (part.T @ target) @ mean
            volume = np.linalg.slogdet(inner)[1] / 2 + np.log(np.diag(whitened)).sum()
            yield center + widths * mean, float(-fit / 2 - volume)
