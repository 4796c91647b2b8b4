"""How far a noisy linear model may be sure of itself: a factor and base rates, from a release."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats

# Ends of the bins of margins: the outermost, in units of the norm of the weights, for one column
# and where signal hardly stands out of noise, how far it does from where on they are wider, and at
# most; and those inside, each half of the next.
_OUTERMOST, _NARROW, _WIDEST, _PARTS = 2.0, 20, 0.7, 6
# The normal prior of the factor's logarithm, fitted on 28 tables: its deviation; the level for few
# and for many records; how it falls where signal hardly stands out of noise; how far a path is
# followed that says the model is too long; and what more columns and classes add where noise has a
# say.
_SPREAD = 0.41
_LEVEL, _HIGHEST = -0.53, 0.0
_FALL, _UNCLEAR = 6.5, 0.89
_FOLLOW, _NOISE_OF_PATH, _USUAL = 3.6, 0.165, -3.7
_OF_COLUMNS, _OF_CLASSES, _USUAL_COLUMNS, _CLEAR = 0.31, 0.2, 16, 60
_LOGARITHMS = np.arange(-50, 13) / 10
# From this factor on a model needs no base rates beside its own.
_WHOLE = 0.35
# Log-odds of a share of records, and the chance that all classes are as frequent.
_LOG_ODDS, _EVEN = np.arange(-120, 121) / 10, 0.5


def estimate_shares(counts: Floats, sigma: float, n: int) -> Floats:
    """Shares of the classes, shape (K,), by noisy counts of n records: posterior means.

    The prior has all shares alike with a chance of a half, and is even over all shares else. Each
    count is taken for itself, and the evidence of all against equal shares is added up.

    sigma: deviation of the noise in a count.
    """
    classes, seen = len(counts), counts[:, None] / n
    shares = 1 / (1 + np.exp(-_LOG_ODDS))
    width = shares * (1 - shares)
    # No posterior is narrower than the grid.
    variances = (sigma / n) ** 2 + width / n + (0.05 * width) ** 2
    odds = -0.5 * (seen - shares) ** 2 / variances - 0.5 * np.log(variances)
    odds += np.log((classes - 1) * width * 0.1) + (classes - 2) * np.log1p(-shares)
    largest = odds.max(axis=1, keepdims=True)
    chances = np.exp(odds - largest)
    means = chances @ shares / chances.sum(axis=1)
    uneven = largest[:, 0] + np.log(chances.sum(axis=1))
    variance = (sigma / n) ** 2 + (1 - 1 / classes) / classes / n
    even = -0.5 * (seen[:, 0] - 1 / classes) ** 2 / variance - 0.5 * math.log(variance)
    # All but one of the counts tell of the last.
    evidence = float((uneven - even).sum()) * (classes - 1) / classes
    trust = (1 - _EVEN) / (1 - _EVEN + _EVEN * math.exp(-max(min(evidence, 500.0), -500.0)))
    mixed: Floats = 1 / classes + trust * (means / means.sum() - 1 / classes)
    return mixed


def weigh_base(factor: float) -> float:
    """The weight of the classes' log-odds in a model whose weights are multiplied by a factor.

    A model that is shrunk towards nothing would take all classes for equally frequent.
    """
    return max(1 - factor / _WHOLE, 0.0)


def margin_edges(norm: float, columns: int, clear: float) -> Floats:
    """Ends of bins on both sides of 0 for weights of this norm; the outer bins have no end.

    Scores of weights that are noise are as short as rows of a squared norm of 1 have it, which is
    spread over their columns: wider bins would count noise alone. Those of a model that follows
    the rows are longer, and bins that end before them would take it for less sure than it is.

    clear: how far the signal of all records stands out of the noise.
    """
    outermost = _OUTERMOST / math.sqrt(columns) * math.sqrt(max(clear / _NARROW, 1.0))
    edges = min(outermost, _WIDEST) * norm * 2.0 ** -np.arange(_PARTS)
    return np.concatenate([-edges, [0.0], edges[::-1]])


class Offsets(NamedTuple):
    """What base rates add to margins: two groups of pairs of classes, and their mean margins.

    Attributes:
        second: Whether a pair of a true class and another is of the second group, shape (K, K): the
            other class is more frequent.
        means: The mean over the pairs of a group, in proportion to the true class's share.
    """

    second: NDArray[np.bool_]
    means: Floats

    @classmethod
    def by_shares(cls, shares: Floats) -> Offsets:
        """The groups, by shares above 0."""
        logs = np.log(shares)
        margins = logs[:, None] - logs
        second = margins < 0
        weights = shares[:, None] * ~np.eye(len(shares), dtype=bool)
        groups = [weights * ~second, weights * second]
        means = [float((part * margins).sum() / max(part.sum(), 1e-300)) for part in groups]
        return cls(second, np.array(means))


def guess_scale(
    clear: float, growth: float, shape: tuple[int, int], along: float, deviation: float
) -> float:
    """The mean of the prior of the factor's logarithm, by public numbers and by the path itself.

    clear: how far the signal of all records stands out of the noise.
    growth: by how much the clip norm has grown.
    shape: of the weights.
    along: mean inner product of noisy gradient and model, above 0 where the model is too long.
    deviation: that of its noise.
    """
    level = min(_LEVEL + math.log(growth), _HIGHEST)
    trust = _NOISE_OF_PATH**2 / (_NOISE_OF_PATH**2 + deviation**2)
    level -= _FALL * math.log1p(_UNCLEAR / clear) + _FOLLOW * trust * (along - _USUAL / clear)
    d, columns = shape
    more = _OF_COLUMNS * math.log(d / _USUAL_COLUMNS) + _OF_CLASSES * math.log(columns)
    return level + more * _CLEAR / (_CLEAR + clear)


def estimate_scale(
    counts: Floats, edges: Floats, offsets: Floats, sigma: float, n: int, prior: float
) -> tuple[float, float]:
    """The factor by which weights are multiplied, and the deviation of its logarithm.

    They are the posterior mean of the logarithm, as a factor, and its posterior deviation.

    For each factor the derivative of the log loss by a further one is linear in the counts, and 0
    where no further one is needed. Its variance is that of the noise and that of sampling n
    records.

    counts: of margins of two groups between these edges, as shares of the margins of a record, with
        noise of deviation sigma, shape (2, bins).
    offsets: what the classes' log-odds add to the margins of a group, before weigh_base.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    factors = np.exp(_LOGARITHMS)
    bases = np.array([weigh_base(factor) for factor in factors])
    slopes, squares = np.zeros((2, len(factors)))
    variances = np.zeros(len(factors))
    shares = _project(counts.ravel() / n).reshape(counts.shape)
    for count, share, offset in zip(counts, shares, offsets, strict=True):
        margins = np.outer(factors, middles) + (bases * offset)[:, None]
        pulls = middles / (1 + np.exp(margins.clip(-700, 700)))
        slopes += pulls @ count / n
        squares += (pulls**2).sum(axis=1)
        variances += pulls**2 @ share / n
    variances += (sigma / n) ** 2 * squares
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
