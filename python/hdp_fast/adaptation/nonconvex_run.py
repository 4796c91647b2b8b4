"""Runs of the non-convex problem, with noise and without."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import noise as draws
from .._support.types import Floats
from .._support.validate import array, bits, integers
from ..budget.account import spend
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .convex_descent import ProjectedSteps, second_moments
from .discrepancies.moments import Sample
from .nonconvex_descent import (
    SHARE,
    CallableDomain,
    Domain,
    DomainState,
    LinearDomain,
    LossBounds,
    NonConvexPenalties,
    ObjectiveTerms,
    PerExample,
    choose_longest_steps,
    take_step,
)
from .privacy import DescentNoise, Privacy, Rng, calibrate_noise, make_record, open_stream, sum_bits
from .problem import AdaptationProblem, NoisyGradient, ProblemBounds, as_float_rows

# The least number of steps on the public records alone.
_PUBLIC_STEPS = 100
_SOURCE = "Bassily, Cortes, Mao and Mohri 2024, Algorithm 2, its noise as one Gaussian budget"


class NonConvexSettings(NamedTuple):
    """The validated parameters of a run."""

    privacy: Privacy
    bounds: ProblemBounds
    loss: str | PerExample
    classes: int
    start: Floats | None
    loss_bounds: LossBounds | None
    alpha: float | None
    discrepancy: float | None
    penalties: NonConvexPenalties
    steps: int
    initial_distance: float | None
    last: bool
    share: float


class NonConvexOutcome(NamedTuple):
    """The result of a run; safe to release if it had noise."""

    coef: Floats
    alpha: float
    discrepancy: float
    noise: float
    gradient_mapping: float | None
    record: PrivacyRecord | None


def count_steps(settings: NonConvexSettings) -> int:
    """Return the largest number of steps of a run, those on the public records alone included."""
    return _count_public_steps(settings) + settings.steps


def _count_public_steps(settings: NonConvexSettings) -> int:
    return max(settings.steps, _PUBLIC_STEPS)


def convert_labels(settings: NonConvexSettings, name: str, y: ArrayLike) -> ArrayLike:
    """Return labels as the loss takes them: -1 and 1 in place of bits, or class numbers.

    Raises: ShapeError, ParameterError.
    """
    if settings.loss == "logistic":
        return 2.0 * bits(name, y) - 1
    if settings.loss == "softmax":
        labels = integers(name, y, np.int64)
        if not 0 <= int(labels.min()) <= int(labels.max()) < settings.classes:
            rule = f"every label must be an integer from 0 to {settings.classes - 1}"
            raise ParameterError(f"{name} holds something else, but {rule}")
        return labels
    return array(name, y)


def bound_loss(settings: NonConvexSettings, bounds: ProblemBounds) -> LossBounds:
    """Return bounds on the loss in the ball, for rows within their bound."""
    r, largest_score = bounds.norm_bound, bounds.radius * bounds.norm_bound
    if settings.loss_bounds is not None:
        return settings.loss_bounds
    smoothness = _score_smoothness(settings) * r**2
    if settings.loss == "logistic":
        return LossBounds(float(np.logaddexp(0, largest_score)), r, smoothness)
    largest = math.log(settings.classes) + math.sqrt(2) * largest_score
    return LossBounds(largest, math.sqrt(2) * r, smoothness)


def _score_smoothness(settings: NonConvexSettings) -> float:
    """Return a bound on the second derivative of a compiled loss in its scores."""
    return 0.25 if settings.loss == "logistic" else 0.5


def run_without_noise(
    settings: NonConvexSettings, problem: AdaptationProblem, bar: Any
) -> NonConvexOutcome:
    """Take the steps without noise."""
    discrepancy = settings.discrepancy
    if discrepancy is None:
        discrepancy = _clip_discrepancy(problem.exact_discrepancy(), settings, problem)
    states = _make_states(settings, problem, None, discrepancy)
    terms = _make_terms(settings, problem)
    public = _PublicDomain.start(settings, problem, terms, states[0])
    w = _descend_alone(settings, terms, public, bar)
    path = _choose_steps(settings, terms, states, len(w))
    rng = open_stream(settings.privacy.goal.random_state)
    w = _descend(settings, terms, states, w, path, rng, bar)
    longest = choose_longest_steps(terms, len(w))
    mapping = math.sqrt(take_step(states, w, terms, longest).gradient_mapping_norm2)
    alpha = problem.choose_alpha(settings.alpha, discrepancy)
    return NonConvexOutcome(_reshape(settings, w), alpha, discrepancy, 0.0, mapping, None)


def run_with_noise(
    settings: NonConvexSettings, problem: AdaptationProblem, bar: Any
) -> NonConvexOutcome:
    """Take the noisy steps; the budget is charged before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    noise, goal = _calibrate(settings, problem), settings.privacy.goal
    mechanism = f"adaptation.NonConvexAdaptation, {settings.steps} steps"
    record = make_record(settings.privacy, noise, mechanism, _SOURCE)
    with spend(goal.budget, record):
        rng, discrepancy = open_stream(goal.random_state), settings.discrepancy
        if discrepancy is None:
            released = problem.released_discrepancy(noise, settings.privacy.delta, rng)
            discrepancy = _clip_discrepancy(released, settings, problem)
        states = _make_states(settings, problem, noise, discrepancy, rng)
        terms = _make_terms(settings, problem)
        deviation = states[1].domain.deviation(states[1].cap)
        public = _PublicDomain.start(settings, problem, terms, states[0])
        w = _descend_alone(settings, terms, public, bar)
        initial_distance = settings.initial_distance or terms.radius
        path = public.path.with_noise(deviation, settings.steps, len(w), initial_distance)
        w = _descend(settings, terms, states, w, path, rng, bar)
    alpha = problem.choose_alpha(settings.alpha, discrepancy)
    return NonConvexOutcome(_reshape(settings, w), alpha, discrepancy, deviation, None, record)


def _calibrate(settings: NonConvexSettings, problem: AdaptationProblem) -> DescentNoise:
    """Return the noise of the steps; refuse one that leaves too few digits for exact sums."""
    # A public discrepancy costs nothing of the budget.
    share = settings.share if settings.discrepancy is None else 0.0
    joint = 1 + SHARE * settings.penalties.couplings
    noise = calibrate_noise(settings.privacy, settings.steps, share, joint)
    largest = noise._replace(multiple=noise.multiple / math.sqrt(SHARE))
    sum_bits(largest, len(problem.private_sample.y))
    return noise


def _clip_discrepancy(
    discrepancy: float, settings: NonConvexSettings, problem: AdaptationProblem
) -> float:
    """Clip the discrepancy to the largest possible loss."""
    return min(discrepancy, bound_loss(settings, problem.bounds).largest)


def _make_terms(settings: NonConvexSettings, problem: AdaptationProblem) -> ObjectiveTerms:
    loss_bounds = bound_loss(settings, problem.bounds)
    return ObjectiveTerms(loss_bounds, settings.penalties, problem.bounds.radius)


def _make_states(
    settings: NonConvexSettings,
    problem: AdaptationProblem,
    noise: DescentNoise | None,
    discrepancy: float,
    rng: Rng = None,
) -> list[DomainState]:
    """Return public and private records, all at their largest weights."""
    alpha = problem.choose_alpha(settings.alpha, discrepancy)
    public, private = problem.sample_weightings(alpha, 1.0, discrepancy)
    public_domain = _make_domain(settings, problem.public_sample, problem.bounds, None, None)
    private_domain = _make_domain(settings, problem.private_sample, problem.bounds, noise, rng)
    return [
        DomainState.new(public_domain, public.cap, public.offset),
        DomainState.new(private_domain, private.cap, private.offset),
    ]


def _make_domain(
    settings: NonConvexSettings,
    sample: Sample,
    bounds: ProblemBounds,
    noise: DescentNoise | None,
    rng: Rng,
) -> Domain:
    if callable(settings.loss):
        records = as_float_rows(sample, bounds.record_bounds, shared=noise is None)
        return CallableDomain(settings.loss, records, bound_loss(settings, bounds), noise, rng)
    gradient = NoisyGradient.from_sample(sample, bounds.record_bounds, noise)
    classes = settings.classes if settings.loss == "softmax" else 1
    records = gradient.records._replace(loss=settings.loss)
    slope = math.sqrt(2) if settings.loss == "softmax" else 1.0
    return LinearDomain(gradient._replace(records=records, rng=rng, classes=classes), slope)


def _descend(
    settings: NonConvexSettings,
    terms: ObjectiveTerms,
    states: list[DomainState],
    w: Floats,
    path: ProjectedSteps,
    rng: Rng,
    bar: Any,
) -> Floats:
    """Return the iterate that is released; its number is drawn before the first step."""
    number = settings.steps
    if not settings.last:
        number = int(draws.uniform_integers(settings.steps, random_state=rng)) + 1
    for _ in range(number):
        w = take_step(states, w, terms, path).w
        bar.update()
    return w


def _reshape(settings: NonConvexSettings, w: Floats) -> Floats:
    return w.reshape(settings.classes, -1) if settings.loss == "softmax" else w


class _PublicDomain(NamedTuple):
    """The public records as if there were no others: their state, a first predictor, and steps."""

    state: DomainState
    w: Floats
    path: ProjectedSteps

    @classmethod
    def start(
        cls,
        settings: NonConvexSettings,
        problem: AdaptationProblem,
        terms: ObjectiveTerms,
        public: DomainState,
    ) -> _PublicDomain:
        """Return the domain before the first step."""
        size = problem.columns * (settings.classes if settings.loss == "softmax" else 1)
        w = np.zeros(size) if settings.start is None else settings.start
        state = DomainState.new(public.domain, 1 / public.domain.n, public.offset)
        return cls(state, w, _choose_steps(settings, terms, [state], len(w)))


def _descend_alone(
    settings: NonConvexSettings, terms: ObjectiveTerms, public: _PublicDomain, bar: Any
) -> Floats:
    """Return the predictor after steps on the public records alone."""
    w = public.w
    for _ in range(_count_public_steps(settings)):
        w = take_step([public.state], w, terms, public.path).w
        bar.update()
    return w


def _choose_steps(
    settings: NonConvexSettings, terms: ObjectiveTerms, states: list[DomainState], size: int
) -> ProjectedSteps:
    """Return steps scaled by the second moments of these records, which must be public.

    The curvature of a callable is unknown: its steps have the same length in all directions.
    """
    moments = []
    for state in states:
        if not isinstance(state.domain, LinearDomain):
            return choose_longest_steps(terms, size)
        moments.append(second_moments(state.domain.gradient.records, state.cap))
    curvature = 2 * _score_smoothness(settings) * np.sum(moments, axis=0)
    return ProjectedSteps.from_curvature(curvature, terms.radius)
