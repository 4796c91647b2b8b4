"""Coefficients from noisy moments: averages over priors that are weighed by their evidence.

Everything here is a function of released and public numbers, so that it costs no privacy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._support.types import Floats
from .moment_equation import LinearMoments, linear_covariances
from .statistics_model import PopulationFit
from .statistics_noise import stand_out

# Prior variances of coefficients are in proportion to these powers of the moments: the same for
# all at 0, and those of the factors that vary most at 1 and 2.
_POWERS = np.array([-0.5, 0.0, 0.5, 1.0, 2.0])
# Roots of the share of the target's variance that a prior expects to be explained.
_SCALES = np.exp(np.arange(-7.0, 3.1, 0.35))
# How many of those scales no slope at all counts as.
_NOTHING = len(_SCALES) / 4
# Directions in which rows vary less than this share of the most tell nothing.
_LEAST_SHARE = 1e-9
# The least share of the constant's square that a noisy one counts as.
_LEAST_CONSTANT = 0.05


class Shrunk(NamedTuple):
    """What released moments say about the coefficients.

    Attributes:
        coefficients: Their mean, shape (d,).
        explained: The mean square of predictions with them, by the released moments.
        left: The mean square of what noise leaves open in these predictions.
        open: The sum of the variances of the coefficients.
        gain: What cross moments are multiplied with to be coefficients, symmetric, shape (d, d).
    """

    coefficients: Floats
    explained: float
    left: float
    open: float
    gain: Floats


class CentralMoments(NamedTuple):
    """Moments around the mean, and the mean, of rows and of their products with the target."""

    moments: Floats
    cross: Floats
    mean: Floats


def center_moments(moments: Floats, cross: Floats, constant: float) -> CentralMoments:
    """Central moments by those of rows whose last entry is a constant (the Schur complement).

    moments, cross: means of z z' and z y, shapes (d + 1, d + 1) and (d + 1,), with or without
        noise.
    constant: 0 for rows that are centered already.
    """
    if not constant:
        # The last column is 0, and what was released of it noise.
        return CentralMoments(moments[:-1, :-1], cross[:-1], np.zeros(len(cross) - 1))
    square = max(float(moments[-1, -1]), _LEAST_CONSTANT * constant**2)
    sums = moments[:-1, -1]
    return CentralMoments(
        moments[:-1, :-1] - np.outer(sums, sums) / square,
        cross[:-1] - sums * (cross[-1] / square),
        sums * (constant / square),
    )


def shrink_by_evidence(
    moments: Floats,
    cross: Floats,
    *,
    moments_deviation: float,
    cross_deviation: float,
    n: int,
    variance: float,
    left_variance: float | None = None,
    open_square: float = math.inf,
) -> Shrunk:
    """Means of the coefficients over priors, each weighed by how likely it makes what is seen.

    In directions in which the moments are uncorrelated, a normal prior of each coefficient makes
    the cross moment normal: the prior's variance times the moment squared, and noise on top. That
    is the noise of the release, sampling, and the noise of the moments times the coefficients.

    moments, cross: noisy means of z z' and z y over n rows, shapes (d, d) and (d,); both centered.
    moments_deviation: of the noise on the diagonal of the moments; half of its square is the
        variance above it.
    cross_deviation: of the noise on each cross moment.
    variance: of the target, about.
    left_variance: of what coefficients leave of it; None takes variance.
    open_square: the square of what the noise of the moments is multiplied with, where that is known
        to be less than the coefficients.
    """
    d = len(cross)
    values, vectors = np.linalg.eigh(moments)
    true = np.maximum(values, 0.0)
    least = _LEAST_SHARE * float(true.max(initial=0.0))
    if least == 0:
        return Shrunk(np.zeros(d), 0.0, 0.0, 0.0, np.zeros((d, d)))
    true[true <= least] = 0.0
    seen = vectors.T @ cross
    prior = _spread_priors(true, moments_deviation * np.sqrt(2 * d) / 2 + least, variance)
    # A direction that tells nothing has a little of both, or rounding would count as evidence.
    left = variance if left_variance is None else left_variance
    noise = cross_deviation**2 + left * np.maximum(true, least) / n
    times = np.minimum(prior.sum(axis=1, keepdims=True) + prior, open_square)
    noise = noise + moments_deviation**2 / 2 * times
    total = prior * true**2 + noise
    log = -0.5 * (np.log(total) + seen**2 / total).sum(axis=1)
    log[0] += np.log(_NOTHING)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    gains = prior * true / total
    gain, means = weights @ gains, gains * seen
    mean = gain * seen
    spread = np.maximum(weights @ (prior * noise / total + means**2) - mean**2, 0.0)
    explained = float(true @ mean**2)
    left_open, whole = float(true @ spread), (vectors * gain) @ vectors.T
    return Shrunk(vectors @ mean, explained, left_open, float(spread.sum()), whole)


class JoinedMoments(NamedTuple):
    """Cross moments of two releases, and the weight of the second one."""

    cross: Floats
    share: float


def join_cross_moments(
    moments: Floats,
    cross: Floats,
    residual_cross: Floats,
    first: Shrunk,
    *,
    moments_deviation: float,
    cross_deviation: float,
    residual_deviation: float,
) -> JoinedMoments:
    """Cross moments by themselves, and by those of residuals around coefficients, together.

    To the latter what the coefficients explain is added. The noise of the moments then counts as
    far as these are wrong alone. Both are weighed by how little noise they have.

    residual_cross, residual_deviation: means of z (y - z' coefficients), and the deviation of the
        noise on each.
    """
    square = moments_deviation**2 / 2
    of_cross = cross_deviation**2 + square * float(first.coefficients @ first.coefficients)
    of_residuals = residual_deviation**2 + square * first.open
    share = of_cross / max(of_cross + of_residuals, math.ulp(0.0))
    again = residual_cross + moments @ first.coefficients
    return JoinedMoments((1 - share) * cross + share * again, share)


def shrunk_covariance(
    shrunk: Shrunk, times: Floats, *, cross_variance: float, moments_deviation: float
) -> Floats:
    """The covariance that noise makes in coefficients, to first order, with the gain as it is.

    The gain is that of a ridge: the inverse of the moments and a penalty, which stays. The noise of
    the cross moments then counts, less that of the moments times `times`.

    cross_variance: of the noise on each cross moment.
    """
    square = moments_deviation**2 / 2
    around = square * np.outer(times, times)
    around[np.diag_indices(len(times))] += cross_variance + square * float(times @ times)
    covariance: Floats = shrunk.gain @ around @ shrunk.gain
    return covariance


def fit_population(
    moments: Floats,
    cross: Floats,
    *,
    moments_deviation: float,
    cross_deviation: float,
    n: int,
    left_variance: float,
) -> PopulationFit | None:
    """Least squares without a penalty, with the covariance of noise and sampling.

    Sampling is that of residuals that vary alike everywhere, by their released mean square. None
    where moments do not stand out of their noise, which would bend the fit.
    """
    equation = LinearMoments(moments, cross[:, None])
    if not stand_out(equation.spectrum[0], moments_deviation):
        return None
    weights = equation.solve(0.0).weights
    covariances = linear_covariances(equation, weights, 0.0, cross_deviation, moments_deviation)
    return PopulationFit(weights, covariances + np.linalg.inv(moments) * (left_variance / n))


def _spread_priors(true: Floats, floor: float, variance: float) -> Floats:
    """Variances of the coefficients: a row for no slope, and one for each power and scale."""
    level = true + floor
    shapes = (level / level.max()) ** _POWERS[:, None]
    # At scale 1 the slopes explain the whole variance.
    shapes /= (shapes @ true)[:, None]
    scaled = variance * _SCALES[:, None, None] ** 2 * shapes
    return np.vstack([np.zeros(len(true)), scaled.reshape(-1, len(true))])
