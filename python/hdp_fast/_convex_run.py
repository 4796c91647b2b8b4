"""Runs of the convex problem, with noise and without."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_descent import STEPS, descended
from ._adaptation_noise import Privacy, RandomState, least_noise, record_of, stream
from ._adaptation_paper import JOINT, JOINT_ROUNDED, Penalties, descended_as_printed
from ._adaptation_paper import steepest as printed_steepest
from ._adaptation_part import PrivatePart
from ._adaptation_pass import Weighing
from ._adaptation_problem import Problem, chosen_alpha
from ._adaptation_rows import Shape, in_reals
from ._adaptation_solver import solved
from .budget import Budget, spend
from .record import PrivacyRecord

Floats = NDArray[np.float64]
Variant = Literal["tight", "paper"]

_STEPS_AS_PRINTED = 1000
_SOURCE = "Bassily, Cortes, Mao and Mohri, Algorithm 1, its noise as one Gaussian budget"


class Settings(NamedTuple):
    """The parameters of a run, checked."""

    privacy: Privacy
    alpha: float | None
    penalties: Penalties
    steps: int | None
    reach: float | None
    share: float
    variant: Variant


class Outcome(NamedTuple):
    """What may be told: predictor, share of the source, discrepancy, noise and record."""

    coef: Floats
    alpha: float
    discrepancy: float
    noise: float
    record: PrivacyRecord | None


def unprotected(settings: Settings, problem: Problem) -> Outcome:
    """The optimum, or the printed steps, without noise."""
    judged = problem.judged_openly()
    alpha = chosen_alpha(settings.alpha, judged, problem)
    known, hidden = problem.weighings(alpha, settings.penalties.kappa_1, judged)
    bounds = problem.shape.bounds
    rows, part = in_reals(problem.known, bounds), PrivatePart.of(problem.hidden, bounds, None)
    if settings.variant == "tight":
        coef = solved([(rows, known), (part.rows, hidden)], problem.shape.radius)
    else:
        steps = settings.steps or _STEPS_AS_PRINTED
        parts = (rows, known), (part, hidden)
        coef = descended_as_printed(*parts, problem.shape, settings.penalties, steps)
    return Outcome(coef, alpha, judged, 0.0, None)


def protected(
    settings: Settings, problem: Problem, random_state: RandomState, budget: Budget | None
) -> Outcome:
    """The steps with noise, paid for before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    steps = settings.steps or (STEPS if settings.variant == "tight" else _STEPS_AS_PRINTED)
    noise = least_noise(settings.privacy, steps, settings.share, _joint(settings))
    bounds, shape = problem.shape.bounds, problem.shape
    rows, part = in_reals(problem.known, bounds), PrivatePart.of(problem.hidden, bounds, noise)
    mechanism = f"adaptation.ConvexAdaptation, {settings.variant}, {steps} steps"
    record = record_of(settings.privacy, noise, mechanism, _SOURCE, random_state)
    with spend(budget, record):
        part = part._replace(coins=stream(random_state))
        judged = problem.judged(noise, settings.privacy.delta, part.coins)
        alpha = chosen_alpha(settings.alpha, judged, problem)
        known, hidden = problem.weighings(alpha, settings.penalties.kappa_1, judged)
        parts = (rows, known), (part, hidden)
        if settings.variant == "tight":
            coef = descended(*parts, shape, steps, settings.reach or shape.radius)
        else:
            coef = descended_as_printed(*parts, shape, settings.penalties, steps)
    return Outcome(coef, alpha, judged, part.deviation(_steepest(settings, hidden, shape)), record)


def _steepest(settings: Settings, weighing: Weighing, shape: Shape) -> float:
    if settings.variant == "tight":
        return weighing.steepest(shape.residual)
    return printed_steepest(weighing, shape)


def _joint(settings: Settings) -> float:
    if settings.variant == "tight":
        return 1.0
    return JOINT_ROUNDED if settings.privacy.exact else JOINT
