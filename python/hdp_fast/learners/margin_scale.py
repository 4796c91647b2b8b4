"""How far a noisy linear model may be sure of itself: a factor for its weights, from a release."""

from __future__ import annotations

import math

import numpy as np

from .._support.types import Floats

# Ends of the bins of margins: the outermost, in units of the norm of the weights, and those inside.
_OUTERMOST, _PARTS, _RATIO = 0.7, 7, 1.5
# The normal prior of the factor's logarithm, fitted on 14 tables: its deviation; the level for few
# and for many records; how it falls where signal hardly stands out of noise; and how far a path is
# followed that says the model is too long.
_SPREAD = 0.6
_LEVEL, _RISE, _HIGHEST = -0.54, 0.4, -0.05
_FALL, _UNCLEAR = 1.23, 6.55
_FOLLOW, _NOISE_OF_PATH, _USUAL = 3.89, 0.086, 0.24
_LOGARITHMS = np.arange(-50, 13) / 10


def margin_edges(norm: float) -> Floats:
    """Ends of bins on both sides of 0 for weights of this norm; the outer bins have no end."""
    edges = _OUTERMOST * norm * 2.0 ** (-np.arange(_PARTS) / _RATIO)
    return np.concatenate([-edges, [0.0], edges[::-1]])


def guess_scale(clear: float, growth: float, along: float, deviation: float) -> float:
    """The mean of the prior of the factor's logarithm, by public numbers and by the path itself.

    clear: how far the signal of all records stands out of the noise.
    growth: by how much the clip norm has grown.
    along: mean inner product of noisy gradient and model, above 0 where the model is too long.
    deviation: that of its noise.
    """
    level = min(_LEVEL + _RISE * math.log(growth), _HIGHEST)
    trust = _NOISE_OF_PATH**2 / (_NOISE_OF_PATH**2 + deviation**2)
    return level - _FALL * math.log1p(_UNCLEAR / clear) - _FOLLOW * trust * (along - _USUAL / clear)


def estimate_scale(
    counts: Floats, edges: Floats, sigma: float, n: int, prior: float
) -> tuple[float, float]:
    """The factor by which weights are multiplied, and the deviation of its logarithm.

    They are the posterior mean of the logarithm, as a factor, and its posterior deviation.

    For each factor the derivative of the log loss is linear in the counts, and 0 at the best one.
    Its variance is that of the noise and that of sampling n records.

    counts: of margins between these edges, as shares of the margins of a record, with noise of
        deviation sigma.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    pulls = middles / (1 + np.exp(np.outer(np.exp(_LOGARITHMS), middles).clip(-700, 700)))
    slopes = pulls @ counts / n
    squares = pulls**2
    variances = (sigma / n) ** 2 * squares.sum(axis=1) + squares @ _project(counts / n) / n
    odds = -0.5 * slopes**2 / np.maximum(variances, 1e-300)
    odds -= 0.5 * ((_LOGARITHMS - prior) / _SPREAD) ** 2
    chances = np.exp(odds - odds.max())
    chances /= chances.sum()
    mean = float(chances @ _LOGARITHMS)
    return math.exp(mean), math.sqrt(float(chances @ (_LOGARITHMS - mean) ** 2))


def _project(shares: Floats) -> Floats:
    """The nearest point of the simplex."""
    ordered = np.sort(shares)[::-1]
    levels = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    nearest: Floats = np.maximum(shares - levels[ordered > levels][-1], 0.0)
    return nearest
