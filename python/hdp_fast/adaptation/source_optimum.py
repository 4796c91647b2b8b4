"""The public optimum: ridge regression of the source in a few passes, and its directions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, Integers
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
_LEAST_CONSTANT = 1e-15
# The share of the source whose features have a norm of at most 1 before they are shrunk to it.
_WHOLE = 0.9
_NORMS = (1e-30, 1e30)
# A direction with less than this share of the largest second moment is left to the source.
_LEAST_MOMENT = 1e-9
# Directions are stretched as if they had at least this share.
_LEAST_STRETCHED = 1e-6
_TINY = 1e-300
# The intercept's coordinate over the root of the mean square along the largest direction, and the
# most that constants among which it is sought add to the squared length of a row.
_INTERCEPT, _CONSTANTS = 1.5, 0.2


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


class Constants(NamedTuple):
    """The columns that are one constant other than 0 in the source: an intercept, and others.

    Where there are several the source cannot tell which of them is the intercept, a constant of the
    target, too. It is then a number by itself until the target has been looked at.

    Attributes:
        columns: Their places.
        values: The constant of each.
    """

    columns: Integers
    values: Floats

    def __bool__(self) -> bool:
        """Whether there is any."""
        return len(self.columns) > 0

    def join(self, coef: Floats, intercept: float, weights: Floats) -> Floats:
        """Return coefficients with shares of the intercept on these columns."""
        joined = coef.copy()
        joined[self.columns] += weights * intercept / self.values
        return joined


class SourceOptimum(NamedTuple):
    """The public optimum.

    Attributes:
        coef: Its coefficients, float64 (d,); 0 on several constants.
        intercept: What stands for these; 0 where there is at most one.
        constants: The columns that are constants.
        penalty: The penalty, as a share of the largest second moment.
        residual: Root of the mean squared residual on the source.
        mean: Mean of the source's labels.
        deviation: Their standard deviation.
        center: The source's means, 0 of constants, float64 (d,); all are 0 where there is none.
        second: Mean of x x' over the source around the center, float64 (d, d); 0 of constants.
    """

    coef: Floats
    intercept: float
    constants: Constants
    penalty: float
    residual: float
    mean: float
    deviation: float
    center: Floats
    second: Floats


class Directions(NamedTuple):
    """The directions in which the target is looked at.

    Attributes:
        features: The map of rows to coordinates along them, of norm at most 1. Where the source has
            several constants, each of them follows, as large as the coordinate of the intercept.
        matrix: What rows with a 1 at their end are multiplied with, float64 (d + 1, k). With an
            intercept the last column takes the constant alone: the 1, where there are several.
        shape: The source's second moments along them over the largest, float64 (k,); 0 of the
            intercept.
        unit: The intercept's coordinate of all source records; 0 without an intercept.
    """

    features: FeatureMap
    matrix: Floats
    shape: Floats
    unit: float


def fit_source(source: Domain, penalty: float | None) -> SourceOptimum:
    """Fit ridge regression to the source, whose intercept is not penalized.

    penalty: a share of the largest second moment; None chooses it by blocks left out.

    Raises: ParameterError where the rows are too large for their squares, or all 0; what reading
    parts raises.
    """
    eighths, mean, constants = _add_moments(source)
    whole = _join(eighths)
    if not float(np.abs(whole.second).max()) > 0:
        raise ParameterError("X_source has only entries of 0, but some must differ from 0")
    center, centered = _center(whole, constants)
    largest = float(np.linalg.eigvalsh(centered.second)[-1])
    if penalty is None:
        penalty = _choose_penalty(source, eighths, constants, largest)
    path, intercepts = _ridge_path(whole, constants, largest, np.array([penalty]))
    coef, intercept = path[:, 0], float(intercepts[0])
    if len(constants.columns) == 1:
        coef, intercept = constants.join(coef, intercept, np.ones(1)), 0.0
    squares, spread = 0.0, 0.0
    for X, y in source.blocks(_CHUNK):
        squares += float(np.square(residuals(X, y, coef, intercept)).sum())
        spread += float(np.square(y - mean).sum())
    return SourceOptimum(
        coef=coef,
        intercept=intercept,
        constants=constants,
        penalty=penalty,
        residual=math.sqrt(squares / source.n),
        mean=mean,
        deviation=math.sqrt(spread / source.n),
        center=center,
        second=centered.second,
    )


def residuals(X: NDArray[np.floating], y: Floats, coef: Floats, intercept: float = 0.0) -> Floats:
    """Return y - intercept - <coef, x> for every record; what overflows becomes 0.

    einsum adds up every row alone, in an order that does not depend on other rows.
    """
    left = np.empty(len(y))
    with np.errstate(all="ignore"):
        for start in range(0, len(y), _CHUNK):
            rows = np.ascontiguousarray(X[start : start + _CHUNK], np.float64)
            part = slice(start, start + len(rows))
            left[part] = y[part] - intercept - np.einsum("ij,j->i", rows, coef)
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
    shape = np.maximum(moments / max(moments[0], _TINY), 0.0)
    count = min(most, int((shape > _LEAST_MOMENT).sum()))
    stretched = np.maximum(shape[:count], _LEAST_STRETCHED) * moments[0]
    matrix = vectors[:, :count] * stretched ** (-whitening / 2)
    matrix = np.vstack([matrix, -optimum.center @ matrix])
    places, values = optimum.constants
    if optimum.constants:
        # Somewhat larger than a row along the largest direction: it is what differs most often.
        unit = _INTERCEPT * max(moments[0], _TINY) ** ((1 - whitening) / 2)
        matrix = np.column_stack([matrix, np.append(np.zeros(source.columns), unit)])
    norms = np.concatenate([_lengths(X, matrix) for X, _ in source.blocks(_CHUNK)])
    norm = float(np.quantile(norms, _WHOLE)) or float(norms.max())
    if not _NORMS[0] <= norm <= _NORMS[1]:
        raise ParameterError(f"X_source has norms of {norm:g}, but they must lie in [1e-30, 1e30]")
    matrix = matrix / norm
    whole = matrix
    if len(places) > 1:
        unit = min(float(matrix[-1, -1]), math.sqrt(_CONSTANTS / len(places)))
        extra = np.zeros((len(matrix), len(places)))
        extra[places, np.arange(len(places))] = unit / values
        # All rows of the source become longer by as much.
        share = 1 / math.sqrt(1 + len(places) * unit**2)
        matrix, whole = matrix * share, np.hstack([matrix, extra]) * share
    unit = float(matrix[-1, -1]) if optimum.constants else 0.0
    if len(places) == 1:
        matrix = whole = _move_last_row(matrix, int(places[0]), float(values[0]))
    features = dataclasses.replace(
        FeatureMap.identity(source.columns), matrix=whole[:-1], offset=whole[-1]
    )
    shape = np.append(shape[:count], np.zeros(int(bool(optimum.constants))))
    return Directions(features, matrix, shape, unit)


def _move_last_row(matrix: Floats, place: int, value: float) -> Floats:
    """The matrix that takes a column of this value in place of the 1."""
    moved = matrix.copy()
    moved[place], moved[-1] = matrix[-1] / value, 0.0
    return moved


def _lengths(X: Floats, matrix: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(X @ matrix[:-1] + matrix[-1], axis=1)
    return lengths


def measure_features(
    source: Domain, features: FeatureMap, optimum: SourceOptimum, clip: float
) -> tuple[Floats, float]:
    """Return the mean of z z' over the source, and the share of residuals within the clip."""
    total, within = np.zeros((features.columns, features.columns)), 0
    for X, y in source.blocks(_CHUNK):
        public = features(X)
        total += public.T @ public
        left = residuals(X, y, optimum.coef, optimum.intercept)
        within += int((np.abs(left) <= clip).sum())
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


def _add_moments(source: Domain) -> tuple[list[SourceMoments], float, Constants]:
    """Return the moments of each block, the mean label, and the columns that are constants.

    Raises: ParameterError.
    """
    d, cuts = source.columns, _cuts(source.n)
    second, cross = np.zeros((len(cuts) - 1, d, d)), np.zeros((len(cuts) - 1, d))
    labels, largest = 0.0, 0.0
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    with np.errstate(all="ignore"):
        for number, (X, y) in _eighths(source):
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
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
    moments = [SourceMoments(two / n, one / n, n) for two, one, n in sums]
    # One record makes nothing a constant, and one far below other entries is lost among them.
    least = _LEAST_CONSTANT * max(float(np.abs(low).max()), float(np.abs(high).max()))
    places = np.flatnonzero((low == high) & (np.abs(low) > least) & (source.n > 1))
    return moments, labels / source.n, Constants(places, low[places])


def _center(moments: SourceMoments, constants: Constants) -> tuple[Floats, SourceMoments]:
    """Return the means, and the moments around them, without columns that are constants."""
    if not constants:
        return np.zeros_like(moments.cross), moments
    place, value = constants.columns[-1], constants.values[-1]
    mean, label = moments.second[place] / value, moments.cross[place] / value
    mean[constants.columns] = 0.0
    second = moments.second - np.outer(mean, mean)
    cross = moments.cross - mean * label
    second[constants.columns], second[:, constants.columns] = 0.0, 0.0
    cross[constants.columns] = 0.0
    return mean, moments._replace(second=second, cross=cross)


def _join(parts: list[SourceMoments]) -> SourceMoments:
    size = sum(part.size for part in parts)
    with np.errstate(all="ignore"):
        second = sum((part.second * part.size for part in parts), np.zeros_like(parts[0].second))
        cross = sum((part.cross * part.size for part in parts), np.zeros_like(parts[0].cross))
    if not np.isfinite(second).all() or not np.isfinite(cross).all():
        raise ParameterError("X_source has entries beyond 1e150, but their squares must be finite")
    return SourceMoments(second / size, cross / size, size)


def _ridge_path(
    moments: SourceMoments, constants: Constants, largest: float, penalties: Floats
) -> tuple[Floats, Floats]:
    """Return the coefficients for each penalty, (d, penalties), and the intercepts."""
    mean, centered = _center(moments, constants)
    values, vectors = np.linalg.eigh(centered.second)
    shrunk = np.maximum(values, 0.0)[:, None] + penalties * max(largest, _TINY)
    path: Floats = vectors @ ((vectors.T @ centered.cross)[:, None] / shrunk)
    if not constants:
        return path, np.zeros(len(penalties))
    label = moments.cross[constants.columns[-1]] / constants.values[-1]
    path[constants.columns] = 0.0
    return path, label - mean @ path


def _choose_penalty(
    source: Domain, eighths: list[SourceMoments], constants: Constants, largest: float
) -> float:
    """Return the largest penalty that predicts blocks left out about as well as the best one.

    The blocks are consecutive records, so that in a table by time or place they differ from each
    other as populations do. "About" is one standard error of the differences between blocks.
    """
    if len(eighths) < 2:
        return float(_PENALTIES[-1])
    whole = _join(eighths)
    paths = [_ridge_path(whole.minus(part), constants, largest, _PENALTIES) for part in eighths]
    losses = np.zeros((len(eighths), len(_PENALTIES)))
    for number, (X, y) in _eighths(source):
        path, intercepts = paths[number]
        losses[number] += np.square(X @ path + intercepts - y[:, None]).sum(axis=0)
    losses /= np.array([part.size for part in eighths])[:, None]
    best = int(losses.mean(axis=0).argmin())
    excess = losses - losses[:, [best]]
    allowed = excess.std(axis=0, ddof=1) / math.sqrt(len(eighths))
    while best + 1 < len(_PENALTIES) and excess[:, best + 1].mean() <= allowed[best + 1]:
        best += 1
    return float(_PENALTIES[best])
