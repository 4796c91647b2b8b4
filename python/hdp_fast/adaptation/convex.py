"""Adaptation of linear predictors under the squared loss: the convex problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from numpy.typing import ArrayLike

from .._support.random_state import check_random_state
from .._support.types import Floats, RandomState
from .._support.validate import (
    bounded_positive,
    nonnegative,
    one_of,
    positive_int,
    probability,
    refuse,
)
from ..budget.account import Budget, spend
from ..learners.hypotheses import read_only
from ..record import PrivacyRecord
from .base import BoundedEstimator
from .objective import PrivatePart
from .printed_algorithm import JOINT, JOINT_ROUNDED, Penalties, descended_as_printed
from .printed_algorithm import steepest as printed_steepest
from .privacy import Numerics, Privacy, checked_privacy, least_noise, record_of, stream
from .problem import FeatureMap, Private, Problem, Shape, Weighing, chosen_alpha, in_reals, mapped
from .projected_steps import STEPS, descended
from .solver import solved

Variant = Literal["tight", "paper"]

_STEPS_AS_PRINTED = 1000
_SOURCE = "Bassily, Cortes, Mao and Mohri 2024, Algorithm 1, its noise as one Gaussian budget"


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


_VARIANTS = ("tight", "paper")
_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class ConvexAdaptation(BoundedEstimator):
    """Linear regression for a target, learned from source and target by one convex problem.

    Minimizes, over |w| <= radius and weights q_i up to alpha / m for the m records of the source
    and (1 - alpha) / n for the n of the target, sum q_i (l_i + d 1[i in source]) + kappa_1 (sum
    cap_i**2 / q_i - 1) + kappa_2 |q|_2 + kappa_inf |q|_inf, where l_i = (w . x_i - y_i)**2 and d is
    the released discrepancy: records that do not fit weigh less.

    "tight" eliminates the weights, q_i = cap_i min(1, sqrt(kappa_1 / (l_i + d 1[i in source]))), so
    that no gradient of a private record is longer than L = cap_i 2 norm_bound min(sqrt(kappa_1),
    radius norm_bound + 1): Huber's loss of threshold sqrt(kappa_1). Starting at the best predictor
    for the public records alone, it takes T steps of projected gradient descent on w, the private
    part of each gradient with noise of deviation noise_ for each coordinate, and returns the mean
    of all iterates, the t-th with weight 2 t / (T (T + 1)). Steps are scaled by the public records'
    second moments, as if the private ones had the same, by the noise, and by the gradients seen so
    far (AdaGrad), so that none is too long where both domains differ. How near they come to the
    best predictor is measured, not proved.

    "paper" is Algorithm 1 with the printed steps, for comparison: noise on w and on the private u =
    1 / q, their joint sensitivity 1.28616 instead of 2, least for what is promised in all. The
    printed steps hardly move u: by at most about sqrt(T / n) in all, where u >= n.

    Guarantee: fit is (epsilon, delta)-DP for the private records under replace_one: the discrepancy
        and T steps add up to one Gaussian budget (proved). "exact": private features are
        rounded to integers, as are the coefficients that weigh them; sums of products are exact,
        and discrete Gaussian noise is added to them; accounted by zero-concentrated DP. That the
        discrepancy is exact enough is measured, as release_discrepancy says. "idealized": Gaussian
        noise in floats, by the curve of Gaussian DP, as if floats were real numbers; the integer
        noise of the discrepancy is part of that curve, or of zCDP's where its grid is too coarse
        (proved). Private rows and labels beyond the bounds are projected, silently. Nothing of u or
        q is kept. Running time is not protected. epsilon = infinity protects nobody.

    Attributes:
        epsilon: above 0; math.inf for the exact optimum ("paper": the printed steps) without noise.
        delta: in (0, 1).
        radius: of the ball that holds the coefficients, in [1e-30, 1e30].
        norm_bound: of all rows; labels lie in [-1, 1]. Public records must keep both.
        alpha: share of the source, in (0, 1); None takes suggested_alpha of the released
            discrepancy.
        kappa_1: above 0: losses above it weigh less.
        kappa_2: 0 with "tight", else at least 0.
        kappa_inf: as kappa_2.
        steps: T, at least 1; None means 60, and 1000 with "paper". More gain little.
        reach: above 0: how far steps are meant to lead from the best predictor for the public
            records alone. More noise comes with more; None takes the radius.
        discrepancy_share: of the squared budget, in (0, 1), for the discrepancy.
        variant: "tight" or "paper".
        private: whose records are protected: "target", "source", or None, with epsilon = math.inf.
        feature_map: None, or a public function from arrays of the source's records (k, p) to arrays
            (k, d) in the target's space. It must treat every record alone: private ones are given
            to it one at a time, after a record of zeros, and count as zero where it fails.
        numerics: "exact" or "idealized".
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible test stream that protects nobody who knows it.
        budget: charged before any coin is drawn.
        coef_: float64 (d,), read-only, after fit.
        alpha_: the share of the source that was used, after fit.
        discrepancy_: the released discrepancy, after fit; with epsilon = math.inf the exact one.
        noise_: deviation of the noise on each coordinate of each gradient, after fit; 0 without.
        record_: what protects the private records, after fit; None with epsilon = math.inf.

    Raises: ShapeError, ParameterError, BudgetExceeded, by fit.
    Cost: O((m + n) d**2 + d**3) for the discrepancy and about ten times as much for the start, or
        for the optimum without noise; then T passes over all rows.
    Source: Bassily, Cortes, Mao and Mohri 2024, Algorithm 1 and problem (6), sigma_1 and sigma_2
        replaced: those printed are not (epsilon, delta)-DP beyond epsilon = 8.9 at delta = 0.01.
        Balle and Wang 2018; Canonne, Kamath and Steinke 2020; Duchi, Hazan and Singer 2011
        (AdaGrad).
    """

    epsilon: float
    delta: float = 1e-6
    radius: float = 1.0
    norm_bound: float = 1.0
    alpha: float | None = None
    kappa_1: float = 0.1
    kappa_2: float = 0.0
    kappa_inf: float = 0.0
    steps: int | None = None
    reach: float | None = None
    discrepancy_share: float = 0.05
    variant: Variant = "tight"
    private: Private | None = "target"
    feature_map: FeatureMap | None = None
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    loss = "squared"

    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learn the coefficients.

        X_source: finite real numbers (m, d), or what feature_map takes; X_target: (n, d); m, n and
        d at least 1. A constant column makes an intercept. y_source (m,), y_target (n,): finite
        real numbers.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError, BudgetExceeded; no budget is spent then.
        Cost: as the class.
        Source: as the class.
        """
        settings = self._settings()
        X_source = mapped(self.feature_map, X_source, X_target, self.private)
        problem = self._posed(X_source, y_source, X_target, y_target)
        if math.isfinite(settings.privacy.epsilon):
            found = protected(settings, problem, self.random_state, self.budget)
        else:
            found = unprotected(settings, problem)
        self.coef_, self.alpha_ = read_only(found.coef), found.alpha
        self.discrepancy_, self.noise_, self.record_ = found[2:]
        return self

    def _posed(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Problem:
        """The problem of records in the target's space, all of them looked at."""
        shape = Shape.checked(self.radius, self.norm_bound)
        return Problem.of((X_source, y_source, X_target, y_target), shape, self.private)

    def _settings(self) -> Settings:
        """The parameters, checked."""
        check_random_state(self.random_state)
        one_of("variant", self.variant, _VARIANTS)
        return Settings(
            checked_privacy(self),
            None if self.alpha is None else probability("alpha", self.alpha),
            self._penalties(),
            None if self.steps is None else positive_int("steps", self.steps, _MOST_STEPS),
            None if self.reach is None else bounded_positive("reach", self.reach),
            probability("discrepancy_share", self.discrepancy_share),
            self.variant,
        )

    def _penalties(self) -> Penalties:
        found = Penalties(
            bounded_positive("kappa_1", self.kappa_1),
            nonnegative("kappa_2", self.kappa_2),
            nonnegative("kappa_inf", self.kappa_inf),
        )
        for name in ("kappa_2", "kappa_inf"):
            if self.variant == "tight" and getattr(found, name):
                refuse(
                    name,
                    getattr(self, name),
                    'it couples weights that have no noise: 0, or variant="paper"',
                )
        return found
