"""Sets of bounded weights of a bounded sum, and the minimization of smooth functions over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._support.types import Floats

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
