"""Runs of the non-convex problem, with noise and without."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import noise as draws
from .._support.types import Floats, RandomState
from .._support.validate import array, bits, integers
from ..budget.account import Budget, spend
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .discrepancies.moments import Sample
from .nonconvex_descent import (
    SHARE,
    Bends,
    Called,
    Domain,
    Linear,
    Penalties,
    PerExample,
    State,
    longest,
    step,
)
from .nonconvex_descent import Problem as Descent
from .objective import PrivatePart
from .privacy import Coins, Noise, Privacy, least_noise, record_of, stream, sum_bits
from .problem import Problem, Shape, chosen_alpha, in_reals
from .projected_steps import Steps, along
from .solver import moments

# Of the public records alone, at least.
_STEPS_BEFORE = 100
_SOURCE = "Bassily, Cortes, Mao and Mohri 2024, Algorithm 2, its noise as one Gaussian budget"


class Settings(NamedTuple):
    """The parameters of a run, checked."""

    privacy: Privacy
    loss: str | PerExample
    classes: int
    start: Floats | None
    bends: Bends | None
    alpha: float | None
    discrepancy: float | None
    penalties: Penalties
    steps: int
    reach: float | None
    last: bool
    share: float


class Outcome(NamedTuple):
    """What may be told."""

    coef: Floats
    alpha: float
    discrepancy: float
    noise: float
    gradient_mapping: float | None
    record: PrivacyRecord | None


def labels_for(settings: Settings, name: str, y: ArrayLike) -> ArrayLike:
    """Labels as the loss takes them: -1 and 1 of bits, or class numbers.

    Raises: ShapeError, ParameterError.
    """
    if settings.loss == "logistic":
        return 2.0 * bits(name, y) - 1
    if settings.loss == "softmax":
        found = integers(name, y, np.int64)
        if not 0 <= int(found.min()) <= int(found.max()) < settings.classes:
            rule = f"every label must be an integer from 0 to {settings.classes - 1}"
            raise ParameterError(f"{name} holds something else, but {rule}")
        return found
    return array(name, y)


def bends_of(settings: Settings, shape: Shape) -> Bends:
    """Of the loss, in the ball, on rows within their bound."""
    r, furthest = shape.norm_bound, shape.radius * shape.norm_bound
    if settings.bends is not None:
        return settings.bends
    if settings.loss == "logistic":
        return Bends(float(np.logaddexp(0, furthest)), r, _bend(settings) * r**2)
    largest = math.log(settings.classes) + math.sqrt(2) * furthest
    return Bends(largest, math.sqrt(2) * r, _bend(settings) * r**2)


def _bend(settings: Settings) -> float:
    """Bound on the second derivative of a loss in its scores."""
    return 0.25 if settings.loss == "logistic" else 0.5


def unprotected(settings: Settings, problem: Problem, random_state: RandomState) -> Outcome:
    """The steps without noise."""
    judged = settings.discrepancy
    if judged is None:
        judged = _cut(problem.judged_openly(), settings, problem)
    states = _states(settings, problem, None, judged)
    descent = _descent(settings, problem)
    alone = _alone(settings, problem, descent, states[0])
    w = _start(settings, descent, alone)
    path = _path(settings, descent, states, len(w))
    w = _descended(settings, descent, states, w, path, stream(random_state))
    mapping = math.sqrt(step(states, w, descent, longest(descent, len(w))).mapping)
    alpha = _alpha(settings, problem, judged)
    return Outcome(_shaped(settings, w), alpha, judged, 0.0, mapping, None)


def protected(
    settings: Settings, problem: Problem, random_state: RandomState, budget: Budget | None
) -> Outcome:
    """The steps with noise, paid for before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    # A discrepancy that is public takes nothing.
    share = settings.share if settings.discrepancy is None else 0.0
    joint = 1 + SHARE * settings.penalties.couplings
    noise = least_noise(settings.privacy, settings.steps, share, joint)
    sum_bits(noise._replace(multiple=noise.multiple / math.sqrt(SHARE)), len(problem.hidden.y))
    mechanism = f"adaptation.NonConvexAdaptation, {settings.steps} steps"
    record = record_of(settings.privacy, noise, mechanism, _SOURCE, random_state)
    with spend(budget, record):
        coins, judged = stream(random_state), settings.discrepancy
        if judged is None:
            judged = _cut(problem.judged(noise, settings.privacy.delta, coins), settings, problem)
        states = _states(settings, problem, noise, judged, coins)
        descent = _descent(settings, problem)
        deviation = states[1].domain.deviation(states[1].cap)
        alone = _alone(settings, problem, descent, states[0])
        w = _start(settings, descent, alone)
        reach = settings.reach or descent.radius
        path = alone.path.beside(deviation, settings.steps, len(w), reach)
        w = _descended(settings, descent, states, w, path, coins)
    alpha = _alpha(settings, problem, judged)
    return Outcome(_shaped(settings, w), alpha, judged, deviation, None, record)


def _cut(judged: float, settings: Settings, problem: Problem) -> float:
    """No mean losses are further apart than the largest loss."""
    return min(judged, bends_of(settings, problem.shape).largest)


def _descent(settings: Settings, problem: Problem) -> Descent:
    return Descent(bends_of(settings, problem.shape), settings.penalties, problem.shape.radius)


def _alpha(settings: Settings, problem: Problem, judged: float) -> float:
    return chosen_alpha(settings.alpha, judged, problem)


def _states(
    settings: Settings, problem: Problem, noise: Noise | None, judged: float, coins: Coins = None
) -> list[State]:
    """Known and hidden records, all at their largest weights."""
    known, hidden = problem.weighings(_alpha(settings, problem, judged), 1.0, judged)
    return [
        State.new(domain, weighing.cap, weighing.offset)
        for domain, weighing in (
            (_domain(settings, problem.known, problem.shape, None, None), known),
            (_domain(settings, problem.hidden, problem.shape, noise, coins), hidden),
        )
    ]


def _domain(
    settings: Settings, sample: Sample, shape: Shape, noise: Noise | None, coins: Coins
) -> Domain:
    bends = bends_of(settings, shape)
    if callable(settings.loss):
        return Called(settings.loss, in_reals(sample, shape.bounds), bends, noise, coins)
    part = PrivatePart.of(sample, shape.bounds, noise)
    classes = settings.classes if settings.loss == "softmax" else 1
    rows = part.rows._replace(loss=settings.loss)
    slope = math.sqrt(2) if settings.loss == "softmax" else 1.0
    return Linear(part._replace(rows=rows, coins=coins, classes=classes), slope)


def _descended(
    settings: Settings,
    descent: Descent,
    states: list[State],
    w: Floats,
    path: Steps,
    coins: Coins,
) -> Floats:
    """The iterate that is told, from a start on."""
    number = settings.steps
    if not settings.last:
        number = int(draws.uniform_integers(settings.steps, random_state=coins)) + 1
    for _ in range(number):
        w, _ = step(states, w, descent, path)
    return w


def _shaped(settings: Settings, w: Floats) -> Floats:
    return w.reshape(settings.classes, -1) if settings.loss == "softmax" else w


class _Alone(NamedTuple):
    """Public records as if there were no others: their state, a first predictor, and steps."""

    state: State
    w: Floats
    path: Steps


def _alone(settings: Settings, problem: Problem, descent: Descent, known: State) -> _Alone:
    size = problem.columns * (settings.classes if settings.loss == "softmax" else 1)
    w = np.zeros(size) if settings.start is None else settings.start
    state = State.new(known.domain, 1 / known.domain.n, known.offset)
    return _Alone(state, w, _path(settings, descent, [state], len(w)))


def _start(settings: Settings, descent: Descent, alone: _Alone) -> Floats:
    """Where steps for the public records alone end; their weights stay as they were."""
    w = alone.w
    for _ in range(max(settings.steps, _STEPS_BEFORE)):
        w, _ = step([alone.state], w, descent, alone.path)
    return w


def _path(settings: Settings, descent: Descent, states: list[State], size: int) -> Steps:
    """Steps by the second moments of these records, which may be told."""
    rows = [(each.domain.part.rows, each.cap) for each in states if isinstance(each.domain, Linear)]
    if len(rows) < len(states):
        return longest(descent, size)
    found = np.sum([moments(*each) for each in rows], axis=0)
    return along(2 * _bend(settings) * found, descent.radius)
