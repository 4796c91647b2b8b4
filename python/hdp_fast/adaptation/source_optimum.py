"""The public optimum: ridge regression of the source in a few passes, and its directions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..exceptions import ParameterError
from ..learners.feature_maps import FeatureMap
from .domains import Domain, DomainRecords

# Blocks of consecutive records that are left out in turn.
BLOCKS = 8
# Penalties, as shares of the largest second moment.
_PENALTIES = 10.0 ** np.arange(-6, 1.01, 0.5)
# Rows that are made float64 at a time.
_CHUNK = 1 << 14
_LARGEST_LABEL = 1e30
# The share of the source whose features have a norm of at most 1 before they are shrunk to it.
_WHOLE = 0.9
_NORMS = (1e-30, 1e30)
# A direction with less than this share of the largest second moment is left to the source.
_LEAST_MOMENT = 1e-9
# Directions are stretched as if they had at least this share.
_LEAST_STRETCHED = 1e-6


class SourceMoments(NamedTuple):
    """What ridge regression needs of public records: means of x x' and of x y, and how many."""

    second: Floats
    cross: Floats
    size: int

    def minus(self, other: SourceMoments) -> SourceMoments:
        """Return the moments of the records that are not among the others."""
        size = self.size - other.size
        second = self.second * self.size - other.second * other.size
        cross = self.cross * self.size - other.cross * other.size
        return SourceMoments(second / size, cross / size, size)


class SourceOptimum(NamedTuple):
    """The public optimum.

    Attributes:
        coef: Its coefficients, float64 (d,).
        penalty: The penalty, as a share of the largest second moment.
        residual: Root of the mean squared residual on the source.
        deviation: Standard deviation of the source's labels.
        second: Mean of x x' over the source, float64 (d, d).
    """

    coef: Floats
    penalty: float
    residual: float
    deviation: float
    second: Floats


class Directions(NamedTuple):
    """The directions in which the target is looked at.

    Attributes:
        features: The map of rows to coordinates along them, of norm at most 1.
        matrix: What rows are multiplied with, float64 (d, k).
        shape: The source's second moments along them over the largest, float64 (k,).
    """

    features: FeatureMap
    matrix: Floats
    shape: Floats


def fit_source(source: Domain, penalty: float | None) -> SourceOptimum:
    """Fit ridge regression to the source.

    penalty: a share of the largest second moment; None chooses it by blocks left out.

    Raises: ParameterError where the rows are too large for their squares, or all 0; what reading
    parts raises.
    """
    eighths, mean = _add_moments(source)
    whole = _join(eighths)
    largest = float(np.linalg.eigvalsh(whole.second)[-1])
    if not largest > 0:
        raise ParameterError("X_source has only entries of 0, but some must differ from 0")
    if penalty is None:
        penalty = _choose_penalty(source, eighths, whole, largest)
    coef = _ridge_path(whole, largest, np.array([penalty]))[:, 0]
    squares, spread = 0.0, 0.0
    for X, y in source.blocks(_CHUNK):
        squares += float(np.square(residuals(X, y, coef)).sum())
        spread += float(np.square(y - mean).sum())
    deviations = math.sqrt(squares / source.n), math.sqrt(spread / source.n)
    return SourceOptimum(coef, penalty, *deviations, whole.second)


def residuals(X: NDArray[np.floating], y: Floats, coef: Floats) -> Floats:
    """Return y - <coef, x> for every record; what overflows becomes 0.

    einsum adds up every row alone, in an order that does not depend on other rows.
    """
    left = np.empty(len(y))
    with np.errstate(all="ignore"):
        for start in range(0, len(y), _CHUNK):
            rows = np.ascontiguousarray(X[start : start + _CHUNK], np.float64)
            part = slice(start, start + len(rows))
            left[part] = y[part] - np.einsum("ij,j->i", rows, coef)
    left[np.isnan(left)] = 0.0
    return left


def choose_directions(
    source: Domain, optimum: SourceOptimum, most: int, whitening: float
) -> Directions:
    """Return the principal directions of the source, at most so many, evened out by `whitening`.

    Raises: ParameterError where norms are beyond what features have; what reading parts raises.
    """
    moments, vectors = np.linalg.eigh(optimum.second)
    # The sign of a direction is arbitrary: its largest entry becomes positive.
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(moments))]
    moments, vectors = moments[::-1], (vectors * np.sign(largest))[:, ::-1]
    shape = np.maximum(moments / moments[0], 0.0)
    count = min(most, int((shape > _LEAST_MOMENT).sum()))
    matrix = vectors[:, :count] * (np.maximum(shape[:count], _LEAST_STRETCHED) * moments[0]) ** (
        -whitening / 2
    )
    norms = np.concatenate([np.linalg.norm(X @ matrix, axis=1) for X, _ in source.blocks(_CHUNK)])
    norm = float(np.quantile(norms, _WHOLE)) or float(norms.max())
    if not _NORMS[0] <= norm <= _NORMS[1]:
        raise ParameterError(f"X_source has norms of {norm:g}, but they must lie in [1e-30, 1e30]")
    matrix = matrix / norm
    features = dataclasses.replace(
        FeatureMap.identity(len(matrix)), matrix=matrix, offset=np.zeros(count)
    )
    return Directions(features, matrix, shape[:count])


def measure_features(
    source: Domain, features: FeatureMap, coef: Floats, clip: float
) -> tuple[Floats, float]:
    """Return the mean of z z' over the source, and the share of residuals within the clip."""
    total, within = np.zeros((features.columns, features.columns)), 0
    for X, y in source.blocks(_CHUNK):
        public = features(X)
        total += public.T @ public
        within += int((np.abs(residuals(X, y, coef)) <= clip).sum())
    return total / source.n, within / source.n


def _cuts(n: int) -> list[int]:
    """Where the blocks end that are left out in turn."""
    count = min(BLOCKS, n)
    return [place * n // count for place in range(count + 1)]


def _eighths(source: Domain) -> Iterator[tuple[int, DomainRecords]]:
    """Yield rows with the number of the block that they are in."""
    cuts, start = _cuts(source.n), 0
    for X, y in source.blocks(_CHUNK):
        for number, (low, high) in enumerate(pairwise(cuts)):
            part = slice(max(low - start, 0), max(high - start, 0))
            if len(y[part]):
                yield number, DomainRecords(X[part], y[part])
        start += len(y)


def _add_moments(source: Domain) -> tuple[list[SourceMoments], float]:
    """Return the moments of each block, and the mean label.

    Raises: ParameterError.
    """
    d, cuts = source.columns, _cuts(source.n)
    second, cross = np.zeros((len(cuts) - 1, d, d)), np.zeros((len(cuts) - 1, d))
    labels, largest = 0.0, 0.0
    with np.errstate(all="ignore"):
        for number, (X, y) in _eighths(source):
            second[number] += X.T @ X
            cross[number] += X.T @ y
            labels += float(y.sum())
            largest = max(largest, float(np.abs(y).max()))
    if not np.isfinite(second).all() or not np.isfinite(cross).all():
        raise ParameterError("X_source has entries beyond 1e150, but their squares must be finite")
    if not largest <= _LARGEST_LABEL:
        raise ParameterError("y_source has entries beyond 1e30, but all must lie within")
    sizes = [high - low for low, high in pairwise(cuts)]
    sums = zip(second, cross, sizes, strict=True)
    return [SourceMoments(two / n, one / n, n) for two, one, n in sums], labels / source.n


def _join(parts: list[SourceMoments]) -> SourceMoments:
    size = sum(part.size for part in parts)
    with np.errstate(all="ignore"):
        second = sum((part.second * part.size for part in parts), np.zeros_like(parts[0].second))
        cross = sum((part.cross * part.size for part in parts), np.zeros_like(parts[0].cross))
    if not np.isfinite(second).all() or not np.isfinite(cross).all():
        raise ParameterError("X_source has entries beyond 1e150, but their squares must be finite")
    return SourceMoments(second / size, cross / size, size)


def _ridge_path(moments: SourceMoments, largest: float, penalties: Floats) -> Floats:
    """Return the coefficients for each penalty, (d, penalties)."""
    values, vectors = np.linalg.eigh(moments.second)
    shrunk = np.maximum(values, 0.0)[:, None] + penalties * largest
    path: Floats = vectors @ ((vectors.T @ moments.cross)[:, None] / shrunk)
    return path


def _choose_penalty(
    source: Domain, eighths: list[SourceMoments], whole: SourceMoments, largest: float
) -> float:
    """Return the largest penalty that predicts blocks left out about as well as the best one.

    The blocks are consecutive records, so that in a table by time or place they differ from each
    other as populations do. "About" is one standard error of the differences between blocks.
    """
    if len(eighths) < 2:
        return float(_PENALTIES[-1])
    paths = [_ridge_path(whole.minus(part), largest, _PENALTIES) for part in eighths]
    losses = np.zeros((len(eighths), len(_PENALTIES)))
    for number, (X, y) in _eighths(source):
        losses[number] += np.square(X @ paths[number] - y[:, None]).sum(axis=0)
    losses /= np.array([part.size for part in eighths])[:, None]
    best = int(losses.mean(axis=0).argmin())
    excess = losses - losses[:, [best]]
    allowed = excess.std(axis=0, ddof=1) / math.sqrt(len(eighths))
    while best + 1 < len(_PENALTIES) and excess[:, best + 1].mean() <= allowed[best + 1]:
        best += 1
    return float(_PENALTIES[best])
