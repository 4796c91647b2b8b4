"""Ways down the convex objective: to its minimum, by noisy projected steps, and as printed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .._support.types import Floats
from .._support.validate import LEAST
from .discrepancies.exact import move_to_sphere
from .discrepancies.moments import BLOCK
from .privacy import LEAST_COEFFICIENTS, add_noise
from .problem import (
    NoisyGradient,
    PassResult,
    ProblemBounds,
    SampleWeighting,
    ScaledRecords,
    evaluate,
)

WeightedRecords = tuple[ScaledRecords, SampleWeighting]

# The iterations end when one lowers the objective by no more than this share of it.
_RELATIVE_TOLERANCE = 1e-12
_MOST_ITERATIONS = 1000
# Directions whose eigenvalues are below this share of the largest count as free of records:
# nothing is learned in them.
_LEAST_EIGENVALUE = 1e-12
# The damping is divided by this after an iteration that lowered the objective; its least value.
_DAMPING_FACTOR, _LEAST_DAMPING = 8.0, 1e-3


def minimize(domains: Sequence[WeightedRecords], radius: float) -> Floats:
    """Return the predictor of norm at most radius with the least objective, (d,). Not private.

    The objective is convex. Each iteration minimizes a quadratic model of it. The majorizer
    (damping 1) guarantees descent but converges slowly where many records lose weight; the Newton
    model (damping 0) converges fast near the optimum. Damping is reduced after each iteration that
    lowers the objective, and set back to 1 after one that does not.
    """
    w, damping = np.zeros(domains[0][0].X.shape[1]), 1.0
    value = evaluate_objective(domains, w)
    for _ in range(_MOST_ITERATIONS):
        candidate = majorize_minimize_step(domains, w, radius, damping)
        lower = evaluate_objective(domains, candidate)
        if lower < value:
            damping = max(damping / _DAMPING_FACTOR, _LEAST_DAMPING)
            w, decrease, value = candidate, value - lower, lower
            if decrease <= _RELATIVE_TOLERANCE * value:
                break
        elif damping == 1:
            break
        else:
            damping = 1.0
    return w


def evaluate_objective(domains: Sequence[WeightedRecords], w: Floats) -> float:
    """Return the objective of all domains, up to a constant."""
    return sum(evaluate(records, w, weighting).objective for records, weighting in domains)


def majorize_minimize_step(
    domains: Sequence[WeightedRecords], w: Floats, radius: float, damping: float = 1.0
) -> Floats:
    """Return the minimum in the ball of a quadratic that touches the objective at w.

    damping: 1 for a quadratic that is nowhere below the objective, the objective at the weights
    that are best for w; 0 for the quadratic of its second derivative.
    """
    d = len(w)
    curvature, right_side = np.zeros((d, d)), np.zeros(d)
    for records, weighting in domains:
        hessian, gradient = _half_quadratic(records, w, weighting, damping)
        curvature += hessian
        right_side += hessian @ w - gradient
    values, vectors = np.linalg.eigh(curvature * radius**2)
    kept = values > _LEAST_EIGENVALUE * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    _, coordinates = move_to_sphere(values, vectors.T @ (radius * right_side), 0.0)
    return project_to_ball(radius * (vectors @ coordinates), radius)


def _half_quadratic(
    records: ScaledRecords, w: Floats, weighting: SampleWeighting, damping: float
) -> tuple[Floats, Floats]:
    """Return half the model Hessian of a domain at w, and half its gradient."""
    d = len(w)
    hessian, gradient = np.zeros((d, d)), np.zeros(d)
    for X, y in _blocks(records):
        residuals = X @ w - y
        losses = residuals**2 + weighting.offset
        shares = np.sqrt(weighting.kappa_1 / np.maximum(losses, weighting.kappa_1))
        # The derivative of share * residual; it is 1 for losses up to kappa_1.
        newton = np.where(shares < 1, shares * (weighting.offset / np.maximum(losses, LEAST)), 1.0)
        hessian += (X.T * (weighting.cap * (damping * shares + (1 - damping) * newton))) @ X
        gradient += (weighting.cap * shares * residuals) @ X
    return hessian, gradient


def second_moments(records: ScaledRecords, cap: float) -> Floats:
    """Return the sum of cap x x', (d, d)."""
    d = records.X.shape[1]
    return sum((cap * (X.T @ X) for X, _ in _blocks(records)), np.zeros((d, d)))


def _blocks(records: ScaledRecords) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, len(records.y), BLOCK):
        X = records.X[start : start + BLOCK] * records.unit
        yield X.astype(np.float64, copy=False), records.y[start : start + BLOCK]


def project_to_ball(w: Floats, radius: float) -> Floats:
    """Return the nearest predictor of norm at most radius."""
    return w * (radius / max(radius, float(np.linalg.norm(w))))


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


# Integer units of a private record's largest derivative in its own u.
_UNITS = 1 << 20
# The largest sum of squared ratios of change to sensitivity, over both gradients, when a record is
# replaced. It is below 2 because large gradients and large changes of the loss exclude each other:
# the maximum of (1 + t)**2 / 4 + (1 - t**2)**2 for t in [0, 1]. JOINT_ROUNDED includes what
# rounding to integers adds.
JOINT = 1.28616
JOINT_ROUNDED = (math.sqrt(JOINT) + math.hypot(1 / LEAST_COEFFICIENTS, 1 / _UNITS)) ** 2


class ConvexPenalties(NamedTuple):
    """Penalties on the weights, each at least 0.

    kappa_1 is for |q - p|_1, kappa_2 for |q|_2 and kappa_inf for |q|_inf.
    """

    kappa_1: float
    kappa_2: float
    kappa_inf: float


@dataclass(eq=False)
class _InverseWeights:
    """The inverse weights u of a domain's records, which never leave the run."""

    weighting: SampleWeighting
    n: int
    u: Floats = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.u = np.full(self.n, 1 / self.weighting.cap)

    def step_length(
        self, largest: float, penalties: ConvexPenalties, deviation: float, steps: int
    ) -> float:
        """Return the printed length of a step of u.

        deviation: of the noise on a derivative.
        """
        bound = largest * (2 if self.weighting.offset else 1) + sum(penalties)
        share = self.weighting.cap * self.n
        squares = share**4 * bound**2 + self.n**4 * deviation**2
        return self.n * math.sqrt(self.n / (steps * squares))

    def loss_slopes(self, result: PassResult) -> Floats:
        """Return the derivatives of the weighted losses in u, without their offset."""
        losses: Floats = np.zeros(self.n) if result.losses is None else result.losses
        return -losses / self.u**2

    def step(
        self,
        loss_slopes: Floats,
        length: float,
        penalties: ConvexPenalties,
        norm: float,
        least: float,
        ties: int,
    ) -> None:
        """Take a step of descent on the objective.

        norm: |q|_2 over all records. least: the least entry of u over all records. ties: how many
        entries are the least; the subgradient of |q|_inf is shared by them.
        """
        most = penalties.kappa_inf / ties * (self.u == least)
        rest = (self.weighting.offset + most) / self.u**2
        rest += penalties.kappa_2 / (norm * self.u**3)
        slopes = loss_slopes - rest + penalties.kappa_1 * self.weighting.cap**2
        self.u = np.maximum(self.u - length * slopes, 1 / self.weighting.cap)


def printed_gradient_bound(weighting: SampleWeighting, bounds: ProblemBounds) -> float:
    """Return a bound on the weight times the slope of any loss."""
    return 2 * weighting.cap * bounds.residual


def printed_algorithm(
    public: tuple[ScaledRecords, SampleWeighting],
    private: tuple[NoisyGradient, SampleWeighting],
    bounds: ProblemBounds,
    penalties: ConvexPenalties,
    steps: int,
    bar: Any,
) -> Floats:
    """Return the mean of the predictors after each step, (d,)."""
    records, noisy_gradient = public[0], private[0]
    d, gradient_bound = records.X.shape[1], printed_gradient_bound(private[1], bounds)
    slope = 2 * bounds.norm_bound * bounds.residual
    deviation = noisy_gradient.deviation(gradient_bound)
    length = bounds.radius / math.sqrt(steps * (slope**2 + d * deviation**2))
    public_weights = _InverseWeights(public[1], len(records.y))
    private_weights = _InverseWeights(private[1], len(noisy_gradient.records.y))
    largest = bounds.residual**2
    multiple = noisy_gradient.noise.multiple if noisy_gradient.noise else 0.0
    public_length = public_weights.step_length(largest, penalties, 0.0, steps)
    private_deviation = multiple * private[1].cap ** 2 * largest
    private_length = private_weights.step_length(largest, penalties, private_deviation, steps)
    w, mean = np.zeros(d), np.zeros(d)
    for _ in range(steps):
        exact = evaluate(records, w, 1 / public_weights.u)
        noisy = noisy_gradient.evaluate(w, 1 / private_weights.u, gradient_bound)
        w = project_to_ball(w - length * (exact.gradient + noisy.gradient), bounds.radius)
        public_slopes = public_weights.loss_slopes(exact)
        private_slopes = _add_noise_to_slopes(
            private_weights.loss_slopes(noisy), private_weights, noisy_gradient, bounds
        )
        norm = math.sqrt(
            float((public_weights.u**-2.0).sum()) + float((private_weights.u**-2.0).sum())
        )
        least = min(float(public_weights.u.min()), float(private_weights.u.min()))
        ties = int((public_weights.u == least).sum() + (private_weights.u == least).sum())
        public_weights.step(public_slopes, public_length, penalties, norm, least, ties)
        private_weights.step(private_slopes, private_length, penalties, norm, least, ties)
        mean += w / steps
        bar.update()
    return mean


def _add_noise_to_slopes(
    slopes: Floats, weights: _InverseWeights, noisy_gradient: NoisyGradient, bounds: ProblemBounds
) -> Floats:
    """Return the derivatives of the private losses in u, with noise; exact noise is on integers."""
    noise, rng = noisy_gradient.noise, noisy_gradient.rng
    if noise is None:
        return slopes
    largest = (weights.weighting.cap * bounds.residual) ** 2
    if not noise.exact:
        return add_noise(slopes, largest, noise, rng)
    units = np.rint(slopes * (_UNITS / largest)).clip(-_UNITS, 0)
    return add_noise(units, _UNITS, noise, rng) * (largest / _UNITS)
