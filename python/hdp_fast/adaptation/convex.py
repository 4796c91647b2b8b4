"""Adaptation of linear predictors under the squared loss: the convex problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from numpy.typing import ArrayLike

from .._support import progress as progress_module
from .._support.feature_names import FeatureNames
from .._support.notes import note_large_delta
from .._support.random_state import check_random_state
from .._support.stages import log_stage
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
from .base import BoundedEstimator, align_source
from .discrepancies.exact import Private
from .objective import NoisyGradient
from .printed_algorithm import (
    JOINT,
    JOINT_ROUNDED,
    ConvexPenalties,
    printed_algorithm,
    printed_gradient_bound,
)
from .privacy import (
    Numerics,
    Privacy,
    calibrate_noise,
    make_record,
    make_stream,
    validate_privacy,
)
from .problem import (
    AdaptationProblem,
    Data,
    FeatureMap,
    ProblemBounds,
    apply_feature_map,
    as_float_rows,
)
from .projected_steps import DEFAULT_STEPS, noisy_descent
from .solver import minimize
from .utility import note_constant, note_share

Variant = Literal["tight", "paper"]

_PRINTED_STEPS = 1000
_SOURCE = "Bassily, Cortes, Mao and Mohri 2024, Algorithm 1, its noise as one Gaussian budget"


class ConvexSettings(NamedTuple):
    """The validated parameters of a run."""

    privacy: Privacy
    alpha: float | None
    penalties: ConvexPenalties
    steps: int | None
    initial_distance: float | None
    share: float
    variant: Variant


class ConvexOutcome(NamedTuple):
    """The result of a run; safe to release if it had noise."""

    coef: Floats
    alpha: float
    discrepancy: float
    noise: float
    record: PrivacyRecord | None


def run_without_noise(
    settings: ConvexSettings, problem: AdaptationProblem, bar: Any
) -> ConvexOutcome:
    """Find the optimum, or take the printed steps, without noise."""
    discrepancy = problem.exact_discrepancy()
    alpha = problem.choose_alpha(settings.alpha, discrepancy)
    weightings = problem.sample_weightings(alpha, settings.penalties.kappa_1, discrepancy)
    bounds = problem.bounds
    records = as_float_rows(problem.public_sample, bounds.record_bounds)
    gradient = NoisyGradient.from_sample(problem.private_sample, bounds.record_bounds, None)
    if settings.variant == "tight":
        domains = [(records, weightings[0]), (gradient.records, weightings[1])]
        coef = minimize(domains, bounds.radius)
    else:
        public, private = (records, weightings[0]), (gradient, weightings[1])
        coef = printed_algorithm(
            public, private, bounds, settings.penalties, _count_steps(settings), bar
        )
    return ConvexOutcome(coef, alpha, discrepancy, 0.0, None)


def run_with_noise(
    settings: ConvexSettings,
    problem: AdaptationProblem,
    random_state: RandomState,
    budget: Budget | None,
    bar: Any,
) -> ConvexOutcome:
    """Take the steps with noise, paid for before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    steps, bounds = _count_steps(settings), problem.bounds
    noise = calibrate_noise(settings.privacy, steps, settings.share, _joint_sensitivity(settings))
    records = as_float_rows(problem.public_sample, bounds.record_bounds)
    gradient = NoisyGradient.from_sample(problem.private_sample, bounds.record_bounds, noise)
    mechanism = f"adaptation.ConvexAdaptation, {settings.variant}, {steps} steps"
    record = make_record(settings.privacy, noise, mechanism, _SOURCE, random_state)
    with spend(budget, record):
        gradient = gradient._replace(rng=make_stream(random_state))
        delta = settings.privacy.delta
        discrepancy = problem.released_discrepancy(noise, delta, gradient.rng)
        alpha = problem.choose_alpha(settings.alpha, discrepancy)
        weightings = problem.sample_weightings(alpha, settings.penalties.kappa_1, discrepancy)
        public, private = (records, weightings[0]), (gradient, weightings[1])
        if settings.variant == "tight":
            gradient_bound = weightings[1].gradient_bound(bounds.residual)
            initial_distance = settings.initial_distance or bounds.radius
            coef = noisy_descent(public, private, bounds, steps, initial_distance, bar)
        else:
            gradient_bound = printed_gradient_bound(weightings[1], bounds)
            coef = printed_algorithm(public, private, bounds, settings.penalties, steps, bar)
    return ConvexOutcome(coef, alpha, discrepancy, gradient.deviation(gradient_bound), record)


def _count_steps(settings: ConvexSettings) -> int:
    """The number of steps."""
    default = DEFAULT_STEPS if settings.variant == "tight" else _PRINTED_STEPS
    return settings.steps or default


def _joint_sensitivity(settings: ConvexSettings) -> float:
    """The squared ratios of change to sensitivity, added up over what a step releases."""
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
        q is kept. Running time is not protected. epsilon = math.inf protects nobody.

    Attributes:
        epsilon: above 0; math.inf for the exact optimum ("paper": the printed steps) without
            privacy.
        delta: in (0, 1).
        radius: of the ball that holds the coefficients, in [1e-30, 1e30].
        norm_bound: of all rows; labels lie in [-1, 1]. Public records must keep both.
        alpha: share of the source, in (0, 1); None takes suggested_alpha of the released
            discrepancy.
        kappa_1: above 0: losses above it weigh less.
        kappa_2: 0 with "tight", else at least 0.
        kappa_inf: as kappa_2.
        steps: T, at least 1; None means 60, and 1000 with "paper". More gain little.
        initial_distance: above 0: expected from the best predictor for the public records alone to
            the best for both; noisy steps are scaled to it. None takes the radius.
        discrepancy_share: of the squared budget, in (0, 1), for the discrepancy.
        variant: "tight" or "paper".
        private: whose records are protected: "target" or "source"; with epsilon = math.inf
            nobody's are, and all must keep their bounds.
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
        replaced: those printed are not (epsilon, delta)-DP beyond epsilon = 17.5 at delta = 0.01.
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
    initial_distance: float | None = None
    discrepancy_share: float = 0.05
    variant: Variant = "tight"
    private: Private = "target"
    feature_map: FeatureMap | None = None
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    loss = "squared"

    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike,
        *,
        progress: bool = False,
    ) -> Self:
        """Learn the coefficients.

        X_source: finite real numbers (m, d), or what feature_map takes; X_target: (n, d); m, n and
        d at least 1. A constant column makes an intercept. y_source (m,), y_target (n,): finite
        real numbers. progress: show a bar (tqdm) over the steps, of which the
        optimum without noise has none. Warns with UtilityWarning of a delta above 1 / n for n
        private records, of an alpha_ near 1, and of coefficients that are no better than a constant
        on the public ones.

        Guarantee: as the class; the warnings tell of public records and of what is released.
        Raises: ShapeError, ParameterError, BudgetExceeded, ImportError without tqdm where
            progress is wanted; no budget is spent then.
        Cost: as the class.
        Source: as the class.
        """
        problem, names = self._validate((X_source, y_source, X_target, y_target))
        if self.epsilon < math.inf:
            note_large_delta(self.delta, len(problem.private_sample.y))
        name = type(self).__name__
        log_stage("adaptation.%s: %d source and %d target records", name, *problem.sizes)
        shown = progress and (self.epsilon < math.inf or self.variant == "paper")
        with progress_module.bar(self._count_steps(), "step", shown) as bar:
            self._learn(problem, names, bar)
        log_stage("adaptation.%s: fitted", name)
        if self.alpha is None:
            note_share(self.alpha_)
        public = problem.public_sample
        note_constant(public, self.predict(public.X), self.loss, self.alpha_)
        return self

    def _fit_silently(self, data: Data) -> Self:
        """Fit without notes, logs and bars: how often tuning does it is nobody's business."""
        self._learn(*self._validate(data), progress_module.NoBar())
        return self

    def _validate(self, data: Data) -> tuple[AdaptationProblem, FeatureNames]:
        """Validate parameters and records, and find the names of their features."""
        X_source, y_source, X_target, y_target = data
        privacy = self._validate_settings().privacy
        protected = privacy.protected_domain(self.private)
        X_source, names = align_source(X_source, X_target, self.feature_map)
        X_source = apply_feature_map(self.feature_map, X_source, X_target, protected)
        problem = self._validate_problem(X_source, y_source, X_target, y_target)
        return problem, names

    def _learn(self, problem: AdaptationProblem, names: FeatureNames, bar: Any) -> None:
        """Learn the coefficients from validated records."""
        settings = self._validate_settings()
        if settings.privacy.protects:
            outcome = run_with_noise(settings, problem, self.random_state, self.budget, bar)
        else:
            outcome = run_without_noise(settings, problem, bar)
        self.coef_, self.alpha_ = read_only(outcome.coef), outcome.alpha
        self.feature_names_in_ = names
        self.discrepancy_, self.noise_ = outcome.discrepancy, outcome.noise
        self.record_ = outcome.record

    def _count_steps(self) -> int:
        return _count_steps(self._validate_settings())

    def _validate_problem(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> AdaptationProblem:
        """Validate the records, which are in the target's space."""
        bounds = ProblemBounds.validate(self.radius, self.norm_bound)
        protected = validate_privacy(self).protected_domain(self.private)
        data = X_source, y_source, X_target, y_target
        return AdaptationProblem.validate(data, bounds, self.private, protected)

    def _validate_settings(self) -> ConvexSettings:
        """Validate the parameters."""
        check_random_state(self.random_state)
        one_of("variant", self.variant, _VARIANTS)
        return ConvexSettings(
            validate_privacy(self),
            None if self.alpha is None else probability("alpha", self.alpha),
            self._validate_penalties(),
            None if self.steps is None else positive_int("steps", self.steps, _MOST_STEPS),
            None
            if self.initial_distance is None
            else bounded_positive("initial_distance", self.initial_distance),
            probability("discrepancy_share", self.discrepancy_share),
            self.variant,
        )

    def _validate_penalties(self) -> ConvexPenalties:
        penalties = ConvexPenalties(
            bounded_positive("kappa_1", self.kappa_1),
            nonnegative("kappa_2", self.kappa_2),
            nonnegative("kappa_inf", self.kappa_inf),
        )
        for name in ("kappa_2", "kappa_inf"):
            if self.variant == "tight" and getattr(penalties, name):
                refuse(
                    name,
                    getattr(self, name),
                    'it couples weights that have no noise: 0, or variant="paper"',
                )
        return penalties
