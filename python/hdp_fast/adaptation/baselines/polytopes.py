"""Bounded weights of a bounded sum, and smooth convex functions minimized over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._support.types import Floats

Function = Callable[[Floats], tuple[float, Floats]]

# By how much a step length that is too long shrinks, and one that was right grows again.
_SHRINK, _GROW = 2.0, 1.2
_ROUNDING = 1e-15
# Beyond this a step is shorter than rounding.
_STEEPEST = 1e30


class Polytope(NamedTuple):
    """All weights in [0, cap] whose sum lies in [low, high].

    Attributes:
        cap: above 0.
        low: of the sum, at least 0.
        high: of the sum, at least low; weights at their cap must be able to reach low.
    """

    cap: float
    low: float
    high: float

    def project(self, point: Floats) -> Floats:
        """The nearest weights: the point less a common shift, clipped; by sorting."""
        clipped: Floats = point.clip(0, self.cap)
        total = clipped.sum()
        if self.low <= total <= self.high:
            return clipped
        wanted = self.low if total < self.low else self.high
        # The sum is piecewise linear in the shift; between its kinks it falls by the number of
        # weights that are neither at 0 nor at the cap.
        kinks = np.concatenate([point - self.cap, point])
        order = np.argsort(kinks)
        inside = np.cumsum(np.where(order < len(point), 1, -1))
        kinks = kinks[order]
        sums = np.cumsum(np.diff(kinks) * inside[:-1])
        shift = np.interp(-wanted, np.append(0, sums) - len(point) * self.cap, kinks)
        shifted: Floats = (point - shift).clip(0, self.cap)
        return shifted

    def least(self, gradient: Floats) -> float:
        """The least inner product of any of these weights with the gradient."""
        ordered = np.sort(gradient)
        wished = self.cap * np.count_nonzero(ordered < 0)
        total = min(max(wished, self.low), self.high, self.cap * len(ordered))
        full = min(int(total / self.cap), len(ordered) - 1)
        return float(self.cap * ordered[:full].sum() + (total - full * self.cap) * ordered[full])


class Found(NamedTuple):
    """Weights, and how far from the least value they are at most.

    Attributes:
        weights: float64 (m,).
        value: of the function.
        gap: the value exceeds the least possible one by no more, rounding aside.
    """

    weights: Floats
    value: float
    gap: float


def minimize(
    function: Function, polytope: Polytope, start: Floats, *, steps: int, gap: float
) -> Found:
    """Accelerated projected descent, until the gap is small enough or the steps are over.

    function: gives value and gradient of a convex differentiable function. By convexity its value
    exceeds the least one by at most gradient @ weights - polytope.least(gradient): the gap of the
    best weights met is returned, the smallest bound of all.

    Cost: two calls of the function a step, and one more for each step that was too long.
    Source: Beck and Teboulle 2009, FISTA, with the restarts of O'Donoghue and Candes 2015.
    """
    here = ahead = Point(start, *function(start))
    best, floor = here, here.value - _gap(polytope, here)
    momentum, steepness = 1.0, 1.0
    for _ in range(steps):
        if best.value - floor <= gap:
            break
        before = here
        here, steepness = _step(function, polytope, ahead, steepness / _GROW)
        best = min(best, here, key=lambda point: point.value)
        floor = max(floor, here.value - _gap(polytope, here))
        way, following = here.weights - before.weights, (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        if (here.weights - ahead.weights) @ way < 0:
            ahead, momentum = here, 1.0
        else:
            further = here.weights + (momentum - 1) / following * way
            ahead, momentum = Point(further, *function(further)), following
    return Found(best.weights, best.value, max(best.value - floor, 0.0))


class Point(NamedTuple):
    """Weights, and the function there."""

    weights: Floats
    value: float
    gradient: Floats


def _step(
    function: Function, polytope: Polytope, start: Point, steepness: float
) -> tuple[Point, float]:
    """The longest step among those tried after which the value is as low as it should be."""
    while True:
        weights = polytope.project(start.weights - start.gradient / steepness)
        moved, reached = weights - start.weights, Point(weights, *function(weights))
        allowed = start.value + start.gradient @ moved + steepness / 2 * (moved @ moved)
        if reached.value <= allowed + _ROUNDING * abs(allowed) or steepness > _STEEPEST:
            return reached, steepness
        steepness *= _SHRINK


def _gap(polytope: Polytope, point: Point) -> float:
    return float(point.gradient @ point.weights) - polytope.least(point.gradient)
