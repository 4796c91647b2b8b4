"""Runs of the convex problem, with noise and without."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_descent import (
    PrivatePart,
    descended,
    sensitivity,
    useful_steps,
)
from ._adaptation_noise import Noise, Privacy, RandomState, least_noise, record_of, stream
from ._adaptation_paper import JOINT, JOINT_ROUNDED, Penalties, descended_as_printed
from ._adaptation_paper import sensitivity as printed_sensitivity
from ._adaptation_problem import Problem, chosen_alpha
from ._adaptation_rows import in_reals
from ._adaptation_solver import solved
from .budget import Budget, spend
from .record import PrivacyRecord

Floats = NDArray[np.float64]
Variant = Literal["tight", "paper"]

_STEPS_AS_PRINTED = 1000


class Settings(NamedTuple):
    """The parameters of a run, checked."""

    privacy: Privacy
    alpha: float | None
    penalties: Penalties
    steps: int | None
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
    weighings = problem.weighings(alpha, settings.penalties.kappa_1, judged)
    samples = problem.known, problem.hidden
    known, hidden = (in_reals(each, problem.shape.bounds) for each in samples)
    if settings.variant == "tight":
        parts = [(known, weighings[0]), (hidden, weighings[1])]
        coef = solved(parts, problem.shape.radius)
    else:
        parts_as_printed = (known, weighings[0]), (PrivatePart(hidden, None), weighings[1])
        steps = settings.steps or _STEPS_AS_PRINTED
        coef = descended_as_printed(
            *parts_as_printed, problem.shape, settings.penalties, None, steps, None
        )
    return Outcome(coef, alpha, judged, 0.0, None)


def protected(
    settings: Settings, problem: Problem, random_state: RandomState, budget: Budget | None
) -> Outcome:
    """The steps with noise, paid for before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    steps = settings.steps or _useful_steps(settings, problem)
    noise = least_noise(settings.privacy, steps, settings.share, _joint(settings))
    part = PrivatePart.of(problem.hidden, problem.shape, noise)
    known = in_reals(problem.known, problem.shape.bounds)
    record = record_of(
        settings.privacy,
        noise,
        f"adaptation.ConvexAdaptation, {settings.variant}, {steps} steps",
        "Bassily, Cortes, Mao and Mohri, Algorithm 1, its noise as one Gaussian budget",
        random_state,
    )
    coins, delta = stream(random_state), settings.privacy.delta
    with spend(budget, record):
        judged = problem.judged(noise, delta, coins)
        alpha = chosen_alpha(settings.alpha, judged, problem)
        weighings = problem.weighings(alpha, settings.penalties.kappa_1, judged)
        parts = (known, weighings[0]), (part, weighings[1])
        if settings.variant == "tight":
            coef = descended(*parts, problem.shape, noise, steps, coins)
            moved = sensitivity(weighings[1], problem.shape)
        else:
            coef = descended_as_printed(
                *parts, problem.shape, settings.penalties, noise, steps, coins
            )
            moved = printed_sensitivity(weighings[1], problem.shape)
    return Outcome(coef, alpha, judged, noise.multiple * moved, record)


def _joint(settings: Settings) -> float:
    if settings.variant == "tight":
        return 1.0
    return JOINT_ROUNDED if settings.privacy.exact else JOINT


def _useful_steps(settings: Settings, problem: Problem) -> int:
    """By public numbers only: with the share that equal weights would give, where it is open."""
    m, n = problem.sizes
    alpha = m / (m + n) if settings.alpha is None else settings.alpha
    once = least_noise(settings.privacy, 1, settings.share, _joint(settings)).multiple
    _, hidden = problem.weighings(alpha, settings.penalties.kappa_1, 0.0)
    return useful_steps(problem.shape, once * sensitivity(hidden, problem.shape), problem.columns)
