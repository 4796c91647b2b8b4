"""Weights that make a source resemble the target, and models of weighted records; not private."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._support.types import Floats

Loss = Literal["squared", "logistic"]
LOSSES = ("squared", "logistic")
# The most steps of a descent that anybody may ask for.
MOST_STEPS = 1 << 40

Function = Callable[[Floats], tuple[float, Floats]]

# A step that is too long is divided by the first; one that was right grows by the second.
_SHRINK, _GROW = 2.0, 1.2
_ROUNDING = 1e-15
# At a larger smoothness a step is shorter than the rounding errors.
_MOST_SMOOTHNESS = 1e30


class Polytope(NamedTuple):
    """All weights in [0, cap] whose sum lies in [low, high].

    Attributes:
        cap: Largest weight, above 0.
        low: Least sum, at least 0; it must be in reach with all weights at their cap.
        high: Largest sum, at least low.
    """

    cap: float
    low: float
    high: float

    def project(self, point: Floats) -> Floats:
        """Return the nearest weights: the point less a common shift, clipped; by sorting."""
        clipped: Floats = point.clip(0, self.cap)
        total = clipped.sum()
        if self.low <= total <= self.high:
            return clipped
        nearest = self.low if total < self.low else self.high
        # The sum is piecewise linear in the shift; between its kinks it falls by the number of
        # weights that are neither at 0 nor at the cap.
        kinks = np.concatenate([point - self.cap, point])
        order = np.argsort(kinks)
        inside = np.cumsum(np.where(order < len(point), 1, -1))
        kinks = kinks[order]
        sums = np.cumsum(np.diff(kinks) * inside[:-1])
        shift = np.interp(-nearest, np.append(0, sums) - len(point) * self.cap, kinks)
        shifted: Floats = (point - shift).clip(0, self.cap)
        return shifted

    def minimum(self, gradient: Floats) -> float:
        """Return the least inner product of any of these weights with the gradient."""
        ordered = np.sort(gradient)
        negative = self.cap * np.count_nonzero(ordered < 0)
        total = min(max(negative, self.low), self.high, self.cap * len(ordered))
        full = min(int(total / self.cap), len(ordered) - 1)
        return float(self.cap * ordered[:full].sum() + (total - full * self.cap) * ordered[full])


class WeightsResult(NamedTuple):
    """Weights, and a bound on how far they are from the least value.

    Attributes:
        weights: float64 (m,).
        value: Value of the function at the weights.
        gap: The value exceeds the least possible one by at most this much, rounding aside.
    """

    weights: Floats
    value: float
    gap: float


def minimize_on_polytope(
    function: Function, polytope: Polytope, start: Floats, *, steps: int, gap: float
) -> WeightsResult:
    """Minimize by accelerated projected descent.

    The descent ends when the gap is small enough or the steps are over.

    function: returns value and gradient of a convex differentiable function. By convexity its value
    exceeds the least one by at most gradient @ weights - polytope.minimum(gradient), which bounds
    the least value from below. The returned gap is the best value less the largest of these lower
    bounds.

    Cost: two calls of the function a step, and one more for each step that was too long. Source:
    Beck and Teboulle 2009, FISTA, with the restarts of O'Donoghue and Candes 2015.
    """
    here = ahead = Point(start, *function(start))
    best, floor = here, here.value - _duality_gap(polytope, here)
    momentum, smoothness = 1.0, 1.0
    for _ in range(steps):
        if best.value - floor <= gap:
            break
        before = here
        here, smoothness = _backtracking_step(function, polytope, ahead, smoothness / _GROW)
        best = min(best, here, key=lambda point: point.value)
        floor = max(floor, here.value - _duality_gap(polytope, here))
        change, larger = here.weights - before.weights, (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        if (here.weights - ahead.weights) @ change < 0:
            ahead, momentum = here, 1.0
        else:
            weights = here.weights + (momentum - 1) / larger * change
            ahead, momentum = Point(weights, *function(weights)), larger
    return WeightsResult(best.weights, best.value, max(best.value - floor, 0.0))


class Point(NamedTuple):
    """Weights, and the value and gradient of the function there."""

    weights: Floats
    value: float
    gradient: Floats


def _backtracking_step(
    function: Function, polytope: Polytope, start: Point, smoothness: float
) -> tuple[Point, float]:
    """Return the first step, of decreasing lengths, that ends at or below the quadratic model."""
    while True:
        weights = polytope.project(start.weights - start.gradient / smoothness)
        change, end = weights - start.weights, Point(weights, *function(weights))
        model = start.value + start.gradient @ change + smoothness / 2 * (change @ change)
        if end.value <= model + _ROUNDING * abs(model) or smoothness > _MOST_SMOOTHNESS:
            return end, smoothness
        smoothness *= _SHRINK


def _duality_gap(polytope: Polytope, point: Point) -> float:
    return float(point.gradient @ point.weights) - polytope.minimum(point.gradient)


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


_NEWTON_STEPS = 100
# The logistic objective ends at most this far above its minimum, if rounding allows it.
_TOLERANCE = 1e-12
_SHORTEST = 1e-10


def fit_weighted(
    X: NDArray[Any],
    y: Floats,
    weights: Floats,
    *,
    loss: Loss,
    l2: float,
    start: Floats | None = None,
) -> Floats:
    """Return the w that minimizes a weighted loss plus a penalty. Not private.

    The objective is `sum_i weights_i loss(w . x_i, y_i) + l2 |w|**2 / 2`.

    X: (m, d); y: float64 (m,). For "logistic" y is -1 or 1 and the loss log(1 + exp(-y w . x)); for
    "squared" y is any number and the loss `(w . x - y)**2 / 2`. weights: float64 (m,), at least 0.
    l2: above 0. start: float64 (d,), where "logistic" begins; None means at 0.

    Cost: `O(m d**2 + d**3)` for "squared", as much for each of some ten steps for "logistic".
    Source: normal equations; Newton's method with backtracking.
    """
    rows = np.asarray(X, np.float64)
    if loss == "squared":
        moment = _second_moment(rows, weights, l2)
        return _solve(moment, rows.T @ (weights * y))
    w = np.zeros(rows.shape[1]) if start is None else start
    return _minimize_logistic(rows * y[:, None], weights, l2, w)


def _second_moment(rows: Floats, weights: Floats, l2: float) -> Floats:
    moment: Floats = (rows.T * weights) @ rows
    moment[np.diag_indices_from(moment)] += l2
    return moment


def _solve(matrix: Floats, vector: Floats) -> Floats:
    return np.linalg.solve(matrix, vector).astype(np.float64, copy=False)


def _minimize_logistic(signed: Floats, weights: Floats, l2: float, w: Floats) -> Floats:
    def objective(w: Floats) -> float:
        return float(weights @ np.logaddexp(0, -signed @ w) + l2 / 2 * (w @ w))

    for _ in range(_NEWTON_STEPS):
        wrong = np.exp(-np.logaddexp(0, signed @ w))
        gradient = l2 * w - signed.T @ (weights * wrong)
        # The objective is l2-strongly convex.
        if gradient @ gradient <= 2 * l2 * _TOLERANCE:
            break
        hessian = _second_moment(signed, weights * wrong * (1 - wrong), l2)
        step = _solve(hessian, gradient)
        length = _backtrack(objective, w, step, float(gradient @ step))
        if not length:
            break
        w = w - length * step
    return w


def _backtrack(
    objective: Callable[[Floats], float], w: Floats, step: Floats, decrease: float
) -> float:
    """Return the first of 1, 1/2, 1/4, ... with sufficient decrease; 0 if rounding hides it."""
    value, length = objective(w), 1.0
    while objective(w - length * step) > value - length / 4 * decrease:
        length /= 2
        if length < _SHORTEST:
            return 0.0
    return length
