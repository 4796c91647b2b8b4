"""Projected gradient steps in a ball, and noisy descent on the objective of squared losses."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .._support.types import Floats
from .discrepancies.trust_region import move_to_sphere
from .objective import NoisyGradient, evaluate
from .problem import ProblemBounds, SampleWeighting, ScaledRecords
from .solver import minimize, second_moments

DEFAULT_STEPS = 60
# Least curvature as a share of the largest one, and least value of the largest one.
_LEAST_SHARE, _LEAST = 1e-12, 1e-300


class Step(NamedTuple):
    """The predictor after a step, and the squared norm of the gradient mapping before it."""

    w: Floats
    gradient_mapping_norm2: float


@dataclass(eq=False)
class ProjectedSteps:
    """Steps in a ball, of predictors (d,), or of (classes, d) as one vector.

    Attributes:
        curvature: float64 (d,), above 0: the assumed curvature of the objective in each direction.
        directions: (d, d), orthonormal columns; None for the axes.
        radius: Radius of the ball.
        initial_distance: If finite, sqrt(sum of squared gradients, noise included) /
            initial_distance is added to the curvature, as in AdaGrad, which protects against
            underestimated curvature.
    """

    curvature: Floats
    directions: Floats | None
    radius: float
    initial_distance: float = math.inf
    _squares: Floats | float = dataclasses.field(default=0.0, init=False)

    @classmethod
    def with_length(cls, length: float, radius: float, d: int) -> Self:
        """Return steps of the same length in all directions."""
        return cls(np.full(d, 1 / length), None, radius)

    @classmethod
    def from_curvature(cls, curvature: Floats, radius: float) -> Self:
        """Return steps for an objective whose second derivative is at most this matrix, (d, d)."""
        values, directions = np.linalg.eigh(curvature)
        # Directions of zero curvature have zero gradient up to noise: clamp the metric.
        return cls(values.clip(_LEAST_SHARE * max(values[-1], _LEAST)), directions, radius)

    def with_noise(
        self, deviation: float, steps: int, coordinates: int, initial_distance: float
    ) -> Self:
        """Return the best steps for noisy gradients and a start at this distance from the optimum.

        deviation: of the noise on each coordinate of each gradient.
        """
        damping = deviation * math.sqrt(coordinates * steps) / initial_distance
        curvature = self.curvature + damping
        return dataclasses.replace(self, curvature=curvature, initial_distance=initial_distance)

    def step(self, w: Floats, gradient: Floats) -> Step:
        """Take a step from w, and project its end into the ball."""
        start, slopes = self._to_eigenbasis(w), self._to_eigenbasis(gradient)
        self._squares = self._squares + slopes**2
        metric = self.curvature + np.sqrt(self._squares) / self.initial_distance
        end = project_in_metric(start - slopes / metric, metric, self.radius)
        norm2 = float(np.square((start - end) * metric).sum())
        back = end if self.directions is None else end @ self.directions.T
        return Step(back.reshape(w.shape), norm2)

    def _to_eigenbasis(self, w: Floats) -> Floats:
        rows = w.reshape(-1, len(self.curvature))
        return rows if self.directions is None else rows @ self.directions


def project_in_metric(w: Floats, metric: Floats, radius: float) -> Floats:
    """Return the point v of norm at most radius that has the least sum of `metric (v - w)**2`."""
    if np.linalg.norm(w) <= radius:
        return w
    _, point = move_to_sphere(metric * radius, metric * w, 0.0)
    return radius * point


def noisy_descent(
    public: tuple[ScaledRecords, SampleWeighting],
    private: tuple[NoisyGradient, SampleWeighting],
    bounds: ProblemBounds,
    steps: int,
    initial_distance: float,
    bar: Any,
) -> Floats:
    """Return the weighted mean of the iterates of noisy projected gradient descent, (d,).

    The t-th iterate has a weight proportional to t. The descent starts from the best predictor for
    the public records alone, which is no part of the mean. The curvature is taken as if the private
    records had the public ones' second moments; adaptive steps correct for the rest.
    """
    records, public_weighting = public
    noisy_gradient, private_weighting = private
    gradient_bound = private_weighting.gradient_bound(bounds.residual)
    # All weights at their caps add up to 1.
    curvature = 2 * second_moments(records, 1 / len(records.y))
    w = minimize([public], bounds.radius)
    deviation = noisy_gradient.deviation(gradient_bound)
    path = ProjectedSteps.from_curvature(curvature, bounds.radius)
    path = path.with_noise(deviation, steps, len(w), initial_distance)
    mean = np.zeros_like(w)
    for t in range(1, steps + 1):
        gradient = evaluate(records, w, public_weighting).gradient
        gradient = gradient + noisy_gradient.evaluate(w, private_weighting, gradient_bound).gradient
        w = path.step(w, gradient).w
        mean += w * (t * 2 / (steps * (steps + 1)))
        bar.update()
    return mean
