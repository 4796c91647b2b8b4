"""Descent on the non-convex objective, in predictor and inverse weights at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._support.numbers import freeze, silence
from .._support.types import Floats
from .._support.validate import LEAST
from ..exceptions import ShapeError
from .convex_descent import ProjectedSteps, Step
from .privacy import DescentNoise, Rng, add_noise, sum_bits
from .problem import NoisyGradient, ScaledRecords, call_silently

# (w, X, y) -> losses (k,) and gradients (k, p)
PerExample = Callable[[Any, Any, Any], tuple[Any, Any]]

# Bits of integers whose squares, and the sums of these, floats hold exactly.
_MOST_BITS = 25


class LossBounds(NamedTuple):
    """Public bounds on a loss as a function of w.

    Attributes:
        largest: The loss lies in [0, largest].
        gradient: Bound on the norm of its gradient.
        smoothness: Bound on the norm of its second derivative.
    """

    largest: float
    gradient: float
    smoothness: float


class Domain(Protocol):
    """Records of a domain, whose gradients get noise if it is the private one."""

    @property
    def n(self) -> int:
        """The number of records."""

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """Return the losses (n,), and the sum of q times their gradients, with noise.

        cap: bound on q.
        """

    def sum_with_noise(self, values: Floats, share: float) -> float:
        """Return the sum of numbers in [0, 1], one for each record, with noise.

        share: the part of a gradient's squared budget that this sum spends.
        """

    def deviation(self, cap: float) -> float:
        """Return the deviation of the noise on a coordinate of the gradient."""


class LinearDomain(NamedTuple):
    """Losses of linear predictors that the compiled module computes.

    Attributes:
        gradient: The records, and their noise.
        slope: Bound on the norm of the loss's derivative in the scores.
    """

    gradient: NoisyGradient
    slope: float

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.gradient.records.y)

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """See Domain."""
        result = self.gradient.evaluate(w, q, cap * self.slope)
        losses = np.zeros(self.n) if result.losses is None else result.losses
        return losses, result.gradient

    def sum_with_noise(self, values: Floats, share: float) -> float:
        """See Domain."""
        return sum_with_noise(values, self.gradient.noise, share, self.gradient.rng)

    def deviation(self, cap: float) -> float:
        """See Domain."""
        return self.gradient.deviation(cap * self.slope)


class CallableDomain(NamedTuple):
    """Any loss, of a callable whose results are clipped, whatever they are.

    Attributes:
        function: Takes w, rows and labels, which it cannot write to; it must treat every record
            alone.
        records: The records, as floats.
        bounds: Bounds that its results are clipped to.
        noise: The noise of the private domain, or None.
        rng: A stream for tests, or None.
    """

    function: PerExample
    records: ScaledRecords
    bounds: LossBounds
    noise: DescentNoise | None
    rng: Rng

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.records.y)

    @property
    def units(self) -> int:
        """The largest norm of the integers that a weighted gradient is rounded to."""
        bits = 0 if self.noise is None else sum_bits(self.noise, self.n)
        return 1 << min(bits, _MOST_BITS)

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """See Domain."""
        losses, gradients = self._clip_results(w)
        gradients *= q[:, None]
        largest = cap * self.bounds.gradient
        if self.noise is None or not self.noise.exact:
            gradient = gradients.sum(axis=0)
            if self.noise is not None:
                gradient = add_noise(gradient, 2 * largest, self.noise, self.rng)
            return losses, gradient
        integers = np.trunc(gradients * (self.units / largest))
        # A gradient that rounding errors leave beyond the bound counts as zero.
        integers[np.square(integers).sum(axis=1) > self.units**2] = 0
        sums = add_noise(integers.sum(axis=0), 2 * self.units, self.noise, self.rng)
        return losses, sums * (largest / self.units)

    def sum_with_noise(self, values: Floats, share: float) -> float:
        """See Domain."""
        return sum_with_noise(values, self.noise, share, self.rng)

    def deviation(self, cap: float) -> float:
        """See Domain."""
        return self.noise.multiple * 2 * cap * self.bounds.gradient if self.noise else 0.0

    def _clip_results(self, w: Floats) -> tuple[Floats, Floats]:
        """Return losses in [0, largest] and gradients of bounded norm.

        A result that is not finite counts as the largest loss, and as a gradient of zero.
        """
        losses, gradients = self._call_or_skip(w)
        losses[~np.isfinite(losses)] = self.bounds.largest
        gradients[~np.isfinite(gradients).all(axis=1)] = 0
        # Scaled to entries of at most 1, whose squares do not overflow.
        largest = np.maximum(np.abs(gradients).max(axis=1), LEAST)
        gradients /= largest[:, None]
        norms = np.sqrt(np.square(gradients).sum(axis=1))
        gradients *= np.minimum(largest, self.bounds.gradient / np.maximum(norms, 1))[:, None]
        return losses.clip(0, self.bounds.largest), gradients

    def _call_or_skip(self, w: Floats) -> tuple[Floats, Floats]:
        """Return what the function returns for all records.

        Where it fails, a private record may be the cause, and must not show. Each record is then
        tried alone, and those for which the function fails get NaN.
        """
        call_all = functools.partial(self._call, w, slice(None))
        if self.noise is None:
            return call_all()
        return call_silently(call_all) or self._call_each_alone(w)

    def _call_each_alone(self, w: Floats) -> tuple[Floats, Floats]:
        losses, gradients = np.full(self.n, np.nan), np.full((self.n, len(w)), np.nan)
        with silence():
            for i in range(self.n):
                one = slice(i, i + 1)
                result = call_silently(functools.partial(self._call, w, one))
                if result is not None:
                    losses[one], gradients[one] = result
        return losses, gradients

    def _call(self, w: Floats, some: slice) -> tuple[Floats, Floats]:
        """Return what the function returns for some records.

        Raises: ShapeError; what the function raises.
        """
        X, y = freeze(self.records.X[some]), freeze(self.records.y[some])
        losses, gradients = self.function(w.copy(), X, y)
        losses, gradients = np.array(losses, np.float64), np.array(gradients, np.float64)
        for name, result, shape in (
            ("losses", losses, (len(y),)),
            ("gradients", gradients, (len(y), len(w))),
        ):
            if result.shape != shape:
                raise ShapeError(
                    f"loss made {name} of shape {result.shape}, but it must be {shape}"
                )
        return losses, gradients


def sum_with_noise(values: Floats, noise: DescentNoise | None, share: float, rng: Rng) -> float:
    """Return the sum of numbers in [0, 1], one for each record, with noise.

    share: the part of a gradient's squared budget that this sum spends.
    """
    if noise is None:
        return float(values.sum())
    larger = noise._replace(multiple=noise.multiple / math.sqrt(share))
    if not noise.exact:
        return float(add_noise(values.sum(keepdims=True), 1.0, larger, rng)[0])
    units = 1 << min(sum_bits(larger, len(values)), _MOST_BITS)
    parts = np.rint(values * units).clip(0, units)
    return float(add_noise(parts.sum(keepdims=True), units, larger, rng)[0]) / units


# The share of a gradient's squared budget for each sum that couples the weights.
SHARE = 1 / 16


class NonConvexPenalties(NamedTuple):
    """Penalties on the weights, each at least 0.

    lambda_1 is for |q - p|_1, lambda_2 for |q|_2, lambda_inf for |q|_inf, smoothed with mu.
    """

    lambda_1: float
    lambda_2: float
    lambda_inf: float
    mu: float

    @property
    def couplings(self) -> int:
        """The number of sums over all weights that a step needs."""
        return (self.lambda_2 > 0) + (self.lambda_inf > 0)


@dataclass(eq=False)
class DomainState:
    """A domain and its inverse weights v = cap / q >= 1, which never leave it.

    Attributes:
        domain: Its records.
        cap: The largest weight.
        offset: Added to each loss: the discrepancy for the source, 0 for the target.
        v: float64 (n,).
    """

    domain: Domain
    cap: float
    offset: float
    v: Floats

    @classmethod
    def new(cls, domain: Domain, cap: float, offset: float) -> DomainState:
        """Return the state at the largest weights."""
        return cls(domain, cap, offset, np.ones(domain.n))

    @property
    def q(self) -> Floats:
        """The weights."""
        return self.cap / self.v


class ObjectiveTerms(NamedTuple):
    """The parts of the objective that do not depend on the records."""

    loss_bounds: LossBounds
    penalties: NonConvexPenalties
    radius: float


class Couplings(NamedTuple):
    """The sums over all weights that couple their derivatives: |q|_2 and sum exp(mu q)."""

    norm: float
    total: float


def take_step(
    states: list[DomainState], w: Floats, terms: ObjectiveTerms, path: ProjectedSteps
) -> Step:
    """Take a step of predictor and weights; return that of the predictor.

    Without noise, steps no longer than those of choose_longest_steps never raise the objective:
    each block moves by less than its own curvature and half of the mixed one allow. The gradient
    mapping is that of both blocks.
    """
    coupled = _release_couplings(states, terms.penalties)
    gradient, norm2 = np.zeros_like(w), 0.0
    for state in states:
        losses, part = state.domain.evaluate(w, state.q, state.cap)
        gradient += part
        norm2 += _step_weights(state, losses, coupled, terms)
    step = path.step(w, gradient)
    return step._replace(gradient_mapping_norm2=step.gradient_mapping_norm2 + norm2)


def choose_longest_steps(terms: ObjectiveTerms, d: int) -> ProjectedSteps:
    """Return the longest steps, of one length in all directions, that never raise the objective.

    This holds because all caps add up to 1.
    """
    return ProjectedSteps.with_length(1 / (2 * terms.loss_bounds.smoothness), terms.radius, d)


def evaluate_objective(states: list[DomainState], w: Floats, terms: ObjectiveTerms) -> float:
    """Return the objective that take_step descends on, at the current weights; without noise."""
    penalties, value = terms.penalties, terms.penalties.lambda_1
    for state in states:
        losses, _ = state.domain.evaluate(w, state.q, state.cap)
        value += float(state.q @ (losses + state.offset - penalties.lambda_1))
    q = np.concatenate([state.q for state in states])
    value += penalties.lambda_2 * float(np.linalg.norm(q))
    if penalties.lambda_inf:
        soft = math.log(np.exp(penalties.mu * q).sum()) / penalties.mu
        value += penalties.lambda_inf * soft
    return value


def _release_couplings(states: list[DomainState], penalties: NonConvexPenalties) -> Couplings:
    """Return the sums over all weights, with noise if private, clipped to their possible range."""
    squares, total = 0.0, 0.0
    for state in states:
        cap, n = state.cap, state.domain.n
        if penalties.lambda_2:
            part = state.domain.sum_with_noise((1 / state.v) ** 2, SHARE)
            squares += cap**2 * min(max(part, 0.0), n)
        if penalties.lambda_inf:
            most = math.expm1(penalties.mu * cap)
            part = state.domain.sum_with_noise(np.expm1(penalties.mu * state.q) / most, SHARE)
            total += n + most * min(max(part, 0.0), n)
    least = min(state.cap for state in states)
    return Couplings(max(math.sqrt(squares), least), max(total, 1.0))


def _step_weights(
    state: DomainState, losses: Floats, coupled: Couplings, terms: ObjectiveTerms
) -> float:
    """Step the inverse weights; return the squared norm of the gradient mapping in u = v / cap."""
    penalties, q = terms.penalties, state.q
    slopes = losses + (state.offset - penalties.lambda_1)
    slopes += penalties.lambda_2 * q / coupled.norm
    if penalties.lambda_inf:
        slopes += penalties.lambda_inf * np.exp(penalties.mu * q) / coupled.total
    curvature = _weight_curvature(state, terms)
    v = np.maximum(state.v + slopes / (curvature * state.v**2), 1.0)
    norm2 = float(np.square((state.v - v) * (curvature * state.cap**2)).sum())
    state.v = v
    return norm2


def _weight_curvature(state: DomainState, terms: ObjectiveTerms) -> float:
    """Return a bound on the objective's curvature in an inverse weight v, in units of the cap."""
    bounds, penalties = terms.loss_bounds, terms.penalties
    curvature = 2 * (max(bounds.largest + state.offset, penalties.lambda_1))
    curvature += 5 * penalties.lambda_2 + penalties.lambda_inf * (2 + penalties.mu * state.cap)
    return curvature + bounds.gradient**2 / bounds.smoothness
