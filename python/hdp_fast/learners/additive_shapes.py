"""Shapes of an additive model from noisy sums over bins: priors, their evidence, and what is sure.

Everything here is a function of released and public numbers, so that it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._support.types import Floats
from .additive_columns import Bins

# Deviations of shapes, and the ranges of what is no line, as shares of all records: one prior for
# each pair, and one for no shape at all, which counts as much as all of them.
_AMPLITUDES = np.array([0.15, 0.4, 1.0, 2.5])
_RANGES = (0.0, 0.5, 0.15)
_LINE, _REST = 0.5, 0.7
# Columns of one kind share their priors: the first ones count as so many columns.
_TURNS, _FIRST = 5, 3.0
# The variance of what a shape may add to all records alike, and of what its first sums may.
_CONSTANT, _FIRST_CONSTANT = 0.01, 0.05


class Prior(NamedTuple):
    """The priors of a column's shape.

    Attributes:
        covariances: Shape (priors, bins, bins); the first is 0.
    """

    covariances: Floats


def make_prior(bins: Bins, unit: float) -> Prior:
    """The priors of a column, for scores of which this many make up one of log-odds."""
    count = len(bins.counts)
    covariances = [np.zeros((count, count))]
    for amplitude in unit * _AMPLITUDES:
        if bins.places is None:
            covariances.append(amplitude**2 * np.eye(count))
            continue
        line = (bins.places - 0.5) * math.sqrt(12)
        straight = np.outer(line, line)
        apart = np.abs(bins.places[:, None] - bins.places)
        for reach in _RANGES:
            bent = np.exp(-apart / reach) if reach else 0.0
            share = _LINE if reach else 1.0
            covariances.append(amplitude**2 * (share * straight + _REST * bent))
    return Prior(np.array(covariances))


def weigh_priors(
    priors: Sequence[Prior], values: Sequence[Floats], variances: Sequence[Floats], unit: float
) -> list[Floats]:
    """How likely each prior of each column is, shape (priors,), by first values of its bins.

    Columns with as many priors are of one kind: how often a prior fits them is learned, too
    (empirical Bayes).

    values: of the bins of each column, with these variances of noise and sampling.
    """
    logs = [
        _log_evidence(prior, value, variance, unit)
        for prior, value, variance in zip(priors, values, variances, strict=True)
    ]
    weights: list[Floats] = [np.zeros(0)] * len(logs)
    for kinds in sorted({len(log) for log in logs}):
        places = [place for place, log in enumerate(logs) if len(log) == kinds]
        together = _share_priors(np.array([logs[place] for place in places]))
        for place, one in zip(places, together, strict=True):
            weights[place] = one
    return weights


def explain(
    prior: Prior, weights: Floats, values: Floats, variances: Floats, shares: Floats, unit: float
) -> float:
    """The mean square of the shape that first values of a column are taken for.

    weights: how likely each prior is.
    shares: of the records, in the bins.
    """
    kept = weights > 1e-3
    covariances = prior.covariances[kept]
    noise = np.diag(variances) + _FIRST_CONSTANT * unit**2
    wanted = np.broadcast_to(values[:, None], (len(covariances), len(values), 1))
    shapes = (covariances @ np.linalg.solve(covariances + noise, wanted))[..., 0]
    shape = weights[kept] @ shapes / weights[kept].sum()
    return float(shares @ (shape - shares @ shape) ** 2)


def bend_chance(weights: Floats) -> float:
    """How likely a number's shape is no line, by how likely its priors are."""
    straight = weights[1 :: len(_RANGES)].sum()
    return float(1 - weights[0] - straight)


def _log_evidence(prior: Prior, values: Floats, variances: Floats, unit: float) -> Floats:
    noise = np.diag(variances) + _FIRST_CONSTANT * unit**2
    roots = np.linalg.cholesky(prior.covariances + noise)
    wanted = np.broadcast_to(values[:, None], (len(roots), len(values), 1))
    rest = np.linalg.solve(roots, wanted)[..., 0]
    sizes = np.log(np.einsum("kii->ki", roots)).sum(axis=1)
    logs: Floats = -0.5 * (rest**2).sum(axis=1) - sizes
    return logs


def _share_priors(logs: Floats) -> Floats:
    """The posterior of each column's prior, shape (columns, priors)."""
    columns, kinds = logs.shape
    first = np.full(kinds, 0.5 / (kinds - 1))
    first[0] = 0.5
    shares = first
    posterior = np.empty_like(logs)
    for _ in range(_TURNS + 1):
        odds = logs + np.log(shares)
        posterior = np.exp(odds - odds.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        shares = (posterior.sum(axis=0) + _FIRST * first) / (columns + _FIRST)
    return posterior


def find_gain(
    prior: Prior, weights: Floats, curvatures: Floats, variances: Floats, unit: float
) -> Floats:
    """The matrix that makes a shape of averages of sums, shape (bins, bins).

    A sum over its curvature is a value, and the shape is the mean of posteriors given such values,
    weighed by how likely each prior is.

    variances: of values, of noise and sampling.
    """
    kept = weights > 1e-3
    covariances = prior.covariances[kept] + _CONSTANT * unit**2
    noise = np.diag(variances)
    shrunk = np.linalg.solve(covariances + noise, covariances)
    mixed = np.tensordot(weights[kept] / weights[kept].sum(), shrunk, 1)
    gain: Floats = mixed.T / curvatures
    return gain


# How sure scores may be --------------------------------------------------------------------------

# Ends of bins of scores, in deviations of theirs.
EDGES = np.array([-1.8, -1.0, -0.5, 0.0, 0.5, 1.0, 1.8])
# Factors of scores, and what is added to them; the deviations of their priors.
_FACTORS, _SHIFTS = np.arange(0, 41) / 20, np.arange(-30, 31) / 20
_SPREAD, _SHIFT_SPREAD = 0.4, 0.15
# The prior's mean, and n mu / columns at which it has half of that.
_USUAL, _HALF = 0.9, 3.0


class Scale(NamedTuple):
    """What scores are multiplied with, what is then added to them, and the factor's deviation."""

    factor: float
    shift: float
    spread: float


def guess_factor(clear: float) -> float:
    """The prior's mean of the factor, by n mu / columns."""
    return _USUAL / (1 + _HALF / clear) if clear else 0.0


def find_scale(
    counts: Floats, middles: Floats, base: float, sigma: float, clear: float, shift: float
) -> Scale:
    """The posterior mean of a factor and a shift, by noisy counts of records by class and score.

    counts: shape (2, bins), with noise of deviation sigma.
    middles: of the bins, less the base.
    shift: the deviation of the noise in the base, which adds to that of the shift.
    """
    factors, shifts = np.meshgrid(_FACTORS, _SHIFTS, indexing="ij")
    scores = base + shifts[..., None] + factors[..., None] * middles
    shares = 1 / (1 + np.exp(-scores))
    every = np.maximum(counts.sum(axis=0), 0.0)
    rest = counts[1] * (1 - shares) - counts[0] * shares
    variances = sigma**2 * (shares**2 + (1 - shares) ** 2) + every * shares * (1 - shares)
    odds = -0.5 * (rest**2 / np.maximum(variances, 1.0)).sum(axis=-1)
    odds -= 0.5 * ((factors - guess_factor(clear)) / _SPREAD) ** 2
    odds -= 0.5 * shifts**2 / (_SHIFT_SPREAD**2 + shift**2)
    chances = np.exp(odds - odds.max())
    chances /= chances.sum()
    factor, moved = float((chances * factors).sum()), float((chances * shifts).sum())
    spread = math.sqrt(float((chances * (factors - factor) ** 2).sum()))
    return Scale(factor, moved, spread)


def scale_slope(slope: float, deviation: float, clear: float) -> Scale:
    """The posterior mean of the factor of a target's scores, by a noisy estimate of it."""
    trust = 1 / (1 + (deviation / _SPREAD) ** 2)
    prior = guess_factor(clear)
    factor = min(max(prior + trust * (slope - prior), 0.0), float(_FACTORS[-1]))
    return Scale(factor, 0.0, _SPREAD * math.sqrt(1 - trust))
