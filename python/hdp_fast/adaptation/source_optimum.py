"""The public optimum that one release starts from: ridge regression on the source."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..exceptions import ParameterError

# Blocks of consecutive records that are left out in turn.
BLOCKS = 8
# Penalties, as shares of the largest second moment.
_PENALTIES = 10.0 ** np.arange(-6, 1.01, 0.5)
# Rows that are made float64 at a time.
_CHUNK = 1 << 14
_LARGEST_LABEL = 1e30


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
        second: Mean of x x' over the source, float64 (d, d).
    """

    coef: Floats
    penalty: float
    residual: float
    second: Floats


def fit_source(X: NDArray[Any], y: Floats, penalty: float | None) -> SourceOptimum:
    """Fit ridge regression to the source, with the penalty that choose_penalty takes for None.

    Raises: ParameterError where the rows are too large for their squares, or all 0.
    """
    whole = _moments(X, y)
    if not np.isfinite(whole.second).all() or not np.isfinite(whole.cross).all():
        raise ParameterError("X_source has entries beyond 1e150, but their squares must be finite")
    if not np.abs(y).max() <= _LARGEST_LABEL:
        raise ParameterError("y_source has entries beyond 1e30, but all must lie within")
    largest = float(np.linalg.eigvalsh(whole.second)[-1])
    if not largest > 0:
        raise ParameterError("X_source has only entries of 0, but some must differ from 0")
    if penalty is None:
        penalty = _choose_penalty(X, y, whole, largest)
    coef = _ridge_path(whole, largest, np.array([penalty]))[:, 0]
    residual = math.sqrt(float(np.square(residuals(X, y, coef)).mean()))
    return SourceOptimum(coef, penalty, residual, whole.second)


def residuals(X: NDArray[Any], y: Floats, coef: Floats) -> Floats:
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


def _moments(X: NDArray[Any], y: Floats) -> SourceMoments:
    d = X.shape[1]
    second, cross = np.zeros((d, d)), np.zeros(d)
    with np.errstate(all="ignore"):
        for start in range(0, len(y), _CHUNK):
            rows = np.array(X[start : start + _CHUNK], np.float64)
            second += rows.T @ rows
            cross += rows.T @ y[start : start + _CHUNK]
    return SourceMoments(second / len(y), cross / len(y), len(y))


def _ridge_path(moments: SourceMoments, largest: float, penalties: Floats) -> Floats:
    """Return the coefficients for each penalty, (d, penalties)."""
    values, vectors = np.linalg.eigh(moments.second)
    shrunk = np.maximum(values, 0.0)[:, None] + penalties * largest
    path: Floats = vectors @ ((vectors.T @ moments.cross)[:, None] / shrunk)
    return path


def _choose_penalty(X: NDArray[Any], y: Floats, whole: SourceMoments, largest: float) -> float:
    """Return the largest penalty that predicts blocks left out about as well as the best one.

    The blocks are consecutive records, so that in a table by time or place they differ from each
    other as populations do. "About" is one standard error of the differences between blocks.
    """
    count = min(BLOCKS, len(y))
    if count < 2:
        return float(_PENALTIES[-1])
    cuts = np.arange(count + 1) * len(y) // count
    losses = np.array(
        [_left_out(X[start:stop], y[start:stop], whole, largest) for start, stop in pairwise(cuts)]
    )
    best = int(losses.mean(axis=0).argmin())
    excess = losses - losses[:, [best]]
    allowed = excess.std(axis=0, ddof=1) / math.sqrt(count)
    while best + 1 < len(_PENALTIES) and excess[:, best + 1].mean() <= allowed[best + 1]:
        best += 1
    return float(_PENALTIES[best])


def _left_out(X: NDArray[Any], y: Floats, whole: SourceMoments, largest: float) -> Floats:
    """Return the mean squared error on a block of what the others learn, for each penalty."""
    path = _ridge_path(whole.minus(_moments(X, y)), largest, _PENALTIES)
    errors: Floats = np.square(np.asarray(X, np.float64) @ path - y[:, None]).mean(axis=0)
    return errors
