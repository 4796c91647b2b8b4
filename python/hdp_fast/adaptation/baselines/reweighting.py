"""Weights of source records that make the source resemble the target, without privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.types import Floats
from .polytopes import Polytope, WeightsResult, minimize_on_polytope

# Number of records whose pairwise distances give the width.
_PAIRED = 1000
# An eigenvalue of the landmarks' kernel below this share of the largest is a rounding error.
_RANK = 1e-12
# The smoothing starts at about the value itself, and is divided by this from stage to stage.
_SHARPEN = 4.0


def kernel_width(X: NDArray[Any]) -> float:
    """Return the median distance between two of at most 1,000 records, evenly spaced in order.

    X: (m, d), m at least 2, public. The result is 1 where the median is 0.
    """
    some = _take_evenly(np.asarray(X, np.float64), _PAIRED)
    upper = np.triu_indices(len(some), 1)
    median = math.sqrt(float(np.median(_squared_distances(some, some)[upper])))
    return median or 1.0


def match_kernel_means(
    X_source: NDArray[Any],
    X_target: NDArray[Any],
    *,
    width: float,
    bound: float,
    slack: float,
    landmarks: int,
    steps: int,
    tolerance: float,
) -> WeightsResult:
    """Return weights q with `|sum_i q_i phi(x_i) - mean_j phi(z_j)|**2 / 2` nearly least.

    phi is the feature map of the kernel `exp(-|x - z|**2 / (2 width**2))`. It is exact where there
    are as many landmarks as source records, otherwise projected to the span of `landmarks` of these
    (Nystrom). q_i lies in [0, bound / m], their sum in [1 - slack, 1 + slack].

    X_source: (m, d); X_target: (n, d). bound: at least 1. slack: in [0, 1). tolerance: the gap at
    which to stop, as a share of the value of equal weights.

    Cost: `O((m + n) landmarks d + landmarks**3)`, and two passes over `m landmarks` numbers a step.
    Source: Huang et al. 2006, equation 12, whose beta is m q.
    """
    rows = np.asarray(X_source, np.float64)
    centers = _take_evenly(rows, landmarks)
    features = _make_features(centers, width)
    source = features(rows)
    wanted = features(np.asarray(X_target, np.float64)).mean(axis=0)

    def function(q: Floats) -> tuple[float, Floats]:
        apart = q @ source - wanted
        return float(apart @ apart) / 2, source @ apart

    m = len(rows)
    start = np.full(m, 1 / m)
    polytope = Polytope(bound / m, 1 - slack, 1 + slack)
    return minimize_on_polytope(
        function, polytope, start, steps=steps, gap=tolerance * function(start)[0]
    )


def minimize_discrepancy(
    X_source: NDArray[Any], X_target: NDArray[Any], *, steps: int, tolerance: float
) -> WeightsResult:
    """Return weights q whose source has the least discrepancy from the target, labels left out.

    q is at least 0 and sums to 1, and nearly minimizes the spectral norm of
    `sum_i q_i x_i x_i' - mean_j z_j z_j'`. This norm times `4 Lambda**2` is the discrepancy of the
    reweighted source and the target under the squared loss of two linear predictors of norm at most
    Lambda.

    X_source: (m, d); X_target: (n, d). steps, tolerance: as match_moment takes them.
    """
    others = np.asarray(X_target, np.float64)
    moment = others.T @ others / len(others)
    return match_moment(X_source, moment, steps=steps, tolerance=tolerance)


def match_moment(
    X_source: NDArray[Any], moment: Floats, *, steps: int, tolerance: float
) -> WeightsResult:
    """Return weights q with the spectral norm of `sum_i q_i x_i x_i' - moment` nearly least.

    q is at least 0 and sums to 1. X_source: (m, d); moment: any symmetric matrix (d, d). steps:
    largest number of steps in each stage of less smoothing. tolerance: the gap at which to stop, as
    a share of the value of equal weights. The result's value is the norm.

    Cost: `O(m d**2 + d**3)`, twice a step. Source: Cortes and Mohri 2014, Domain adaptation and
    sample bias correction theory and algorithm for regression, Section 5; smoothing of Nesterov
    2007.
    """
    rows = np.asarray(X_source, np.float64)
    simplex = Polytope(1.0, 1.0, 1.0)
    start = np.full(len(rows), 1 / len(rows))

    def norm(q: Floats) -> float:
        return float(np.abs(np.linalg.eigvalsh((rows.T * q) @ rows - moment)).max())

    choices = math.log(2 * rows.shape[1])
    value = norm(start)
    smoothing, best = value / choices, WeightsResult(start, value, value)
    while best.gap > tolerance * value and value > 0:
        smoothing /= _SHARPEN
        error = smoothing * choices
        smooth = _smooth_norm(rows, moment, smoothing)
        result = minimize_on_polytope(smooth, simplex, best.weights, steps=steps, gap=error)
        # The norm is at most the smoothed one, which exceeds it by at most the error.
        reached = norm(result.weights)
        lowest = max(best.value - best.gap, result.value - result.gap - error)
        if reached < best.value:
            best = WeightsResult(result.weights, reached, 0.0)
        best = best._replace(gap=best.value - lowest)
        if 2 * error <= tolerance * value:
            break
    return best


def _smooth_norm(rows: Floats, moment: Floats, smoothing: float) -> Any:
    """Return the smoothed spectral norm: log-sum-exp over all eigenvalues and their negatives."""

    def function(q: Floats) -> tuple[float, Floats]:
        values, vectors = np.linalg.eigh((rows.T * q) @ rows - moment)
        both = np.concatenate([values, -values]) / smoothing
        largest = both.max()
        shares = np.exp(both - largest)
        total = shares.sum()
        signed = (shares[: len(values)] - shares[len(values) :]) / total
        slope = (vectors * signed) @ vectors.T
        value = smoothing * (largest + math.log(total))
        return float(value), np.einsum("ij,ij->i", rows @ slope, rows)

    return function


def _take_evenly(rows: Floats, most: int) -> Floats:
    """Return the rows, or `most` of them at equal distances in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _make_features(centers: Floats, width: float) -> Any:
    """Return the map to features whose inner products are the kernel, projected to a span."""
    values, vectors = np.linalg.eigh(_kernel(centers, centers, width))
    kept = values > _RANK * values[-1]
    whitened = vectors[:, kept] / np.sqrt(values[kept])

    def features(rows: Floats) -> Floats:
        # In blocks, so that no other matrix of the result's size is made.
        parts = [_kernel(part, centers, width) @ whitened for part in _blocks(rows)]
        return np.concatenate(parts)

    return features


def _blocks(rows: Floats, size: int = 4096) -> list[Floats]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _kernel(rows: Floats, centers: Floats, width: float) -> Floats:
    return np.exp(_squared_distances(rows, centers) / (-2 * width**2))


def _squared_distances(rows: Floats, others: Floats) -> Floats:
    squares = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", others, others)
    distances: Floats = (squares - 2 * rows @ others.T).clip(0)
    return distances
