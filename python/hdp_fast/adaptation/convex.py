"""Adaptation of linear predictors under the squared loss: the convex problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

from numpy.typing import ArrayLike

from .._support.notes import keep_result
from .._support.parameters import Rules, check_fields, optional
from .._support.types import VARIANTS, Floats, RandomState, Variant
from .._support.validate import (
    bounded_positive,
    nonnegative,
    one_of,
    positive_int,
    probability,
    read_only,
    refuse,
)
from ..budget.account import Budget, spend
from ..learners.noisy_steps import Numerics
from ..record import PrivacyRecord
from .base import DescentEstimator
from .convex_descent import (
    DEFAULT_STEPS,
    JOINT,
    JOINT_ROUNDED,
    ConvexPenalties,
    minimize,
    noisy_descent,
    printed_algorithm,
    printed_gradient_bound,
)
from .discrepancies.exact import Private
from .privacy import (
    PRIVACY_RULES,
    Privacy,
    calibrate_noise,
    make_record,
    open_stream,
    set_privacy,
)
from .problem import (
    AdaptationProblem,
    Data,
    NoisyGradient,
    ProblemBounds,
    SourceMap,
    as_float_rows,
)

_PRINTED_STEPS = 1000
_SOURCE = "Bassily, Cortes, Mao and Mohri 2024, Algorithm 1, its noise as one Gaussian budget"


class ConvexSettings(NamedTuple):
    """The validated parameters of a run."""

    privacy: Privacy
    bounds: ProblemBounds
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
    """Compute the optimum, or take the printed steps, without noise."""
    discrepancy = problem.exact_discrepancy()
    alpha = problem.choose_alpha(settings.alpha, discrepancy)
    weightings = problem.sample_weightings(alpha, settings.penalties.kappa_1, discrepancy)
    bounds = problem.bounds
    records = as_float_rows(problem.public_sample, bounds.record_bounds, shared=True)
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


def run_with_noise(settings: ConvexSettings, problem: AdaptationProblem, bar: Any) -> ConvexOutcome:
    """Take the noisy steps; the budget is charged before any coin is drawn.

    Raises: ParameterError, BudgetExceeded.
    """
    steps, bounds, goal = _count_steps(settings), problem.bounds, settings.privacy.goal
    noise = calibrate_noise(settings.privacy, steps, settings.share, _joint_sensitivity(settings))
    records = as_float_rows(problem.public_sample, bounds.record_bounds, shared=True)
    gradient = NoisyGradient.from_sample(problem.private_sample, bounds.record_bounds, noise)
    mechanism = f"adaptation.ConvexAdaptation, {settings.variant}, {steps} steps"
    record = make_record(settings.privacy, noise, mechanism, _SOURCE)
    with spend(goal.budget, record):
        gradient = gradient._replace(rng=open_stream(goal.random_state))
        discrepancy = problem.released_discrepancy(noise, settings.privacy.delta, gradient.rng)
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
    """Return the number of steps, with the variant's default."""
    default = DEFAULT_STEPS if settings.variant == "tight" else _PRINTED_STEPS
    return settings.steps or default


def _joint_sensitivity(settings: ConvexSettings) -> float:
    """Return the sum of squared ratios of change to sensitivity over what a step releases."""
    if settings.variant == "tight":
        return 1.0
    return JOINT_ROUNDED if settings.privacy.exact else JOINT


_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class ConvexAdaptation(DescentEstimator):
    """Linear regression for a target domain, learned from source and target by one convex problem.

    The source has m records and the target n. A record i of the source has weight q_i in [0, cap_i]
    with cap_i = alpha / m, one of the target with cap_i = (1 - alpha) / n. Its loss is
    `l_i = (w . x_i - y_i)**2`, to which a record of the source adds the discrepancy d:
    `h_i = l_i + d` in the source, `h_i = l_i` in the target. The problem is to minimize, over |w|
    <= radius and all weights,
    `sum q_i h_i + kappa_1 (sum cap_i**2 / q_i - 1) + kappa_2 |q|_2 + kappa_inf |q|_inf`. Records
    that do not fit get less weight.

    variant="tight" eliminates the weights: the best are `q_i = cap_i min(1, sqrt(kappa_1 / h_i))`.
    The gradient of a private record is then at most
    `2 cap_i norm_bound min(sqrt(kappa_1), radius norm_bound + 1)` long, and a record of the target
    has Huber's loss of threshold sqrt(kappa_1). The descent starts from the best predictor for the
    public records alone. It takes T steps of projected gradient descent on w; the private part of
    each gradient gets noise of standard deviation `noise_` on every coordinate. The result is the
    mean of all iterates, the t-th with weight 2 t / (T (T + 1)). The steps are scaled by the second
    moments of the public records, as if the private ones had the same, by the noise, and by the
    gradients so far (AdaGrad), so that they are not too long where the domains differ. How near the
    result comes to the best predictor is measured, not proved.

    variant="paper" is Algorithm 1 with the printed steps, for comparison. It adds noise to the
    gradients in w and in the private u = 1 / q. Both releases of a step together cost 1.28616 times
    as much as one Gaussian release (1.2951 with the rounding of numerics="exact"), instead of
    twice, in squared ratios of change to sensitivity. The noise is the least for the whole
    guarantee. The result is the mean of all iterates. The printed steps hardly move u: by at most
    about sqrt(T / n) in all, where u >= n.

    Attributes:
        epsilon: Privacy parameter, above 0. math.inf stands for no noise and no privacy: "tight"
            then computes the exact optimum, "paper" takes the printed steps.
        delta: Privacy parameter in (0, 1).
        radius: Radius of the ball that holds the coefficients, in [1e-30, 1e30].
        norm_bound: Bound on the norm of all rows, in [1e-30, 1e30]; labels are bounded by 1 in
            magnitude. Public records must keep both bounds, private ones are projected into them.
        alpha: Share of the source in the total weight, in (0, 1). None takes suggested_alpha of the
            released discrepancy.
        kappa_1: Penalty on the weights' distance from their caps, in [1e-30, 1e30]: records whose h
            exceeds it get less weight.
        kappa_2: Penalty on the Euclidean norm of the weights, at least 0. It must be 0 in the
            variant "tight".
        kappa_inf: Penalty on the largest weight, at least 0. It must be 0 in the variant "tight".
        steps: Number T of steps, at least 1. None takes 60, or 1000 in the variant "paper". More
            steps gain little.
        initial_distance: Expected distance, in [1e-30, 1e30], from the best predictor for the
            public records alone to the best one for both domains. The noisy steps of "tight" are
            scaled to it; None takes the radius.
        discrepancy_share: Share of the squared budget that the discrepancy gets, in (0, 1).
        variant: "tight" or "paper".
        private: The domain whose records are protected, "target" or "source". With epsilon =
            math.inf no records are, and all must keep their bounds.
        feature_map: A public function from arrays of the source's records, shape (k, ...), to
            arrays of shape (k, d) in the target's space; None leaves the records as they are. It
            must treat every record alone. Private records are passed to it one at a time, after a
            record of zeros, and count as zero where it fails.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        alpha_: The share of the source that fit used.
        discrepancy_: The released discrepancy after fit; the exact one if epsilon = math.inf.
        noise_: Standard deviation of the noise on each coordinate of each gradient in w, after fit;
            0 without noise.
        record_: The PrivacyRecord of the private records after fit; None if epsilon = math.inf.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the private records under "replace_one": the discrepancy and
        the T steps share one Gaussian budget (proved). numerics="exact" rounds private features,
        and the coefficients that weigh them, to integers. The sums of their products are exact and
        get rounded Gaussian noise, which keeps the curve of Gaussian DP. That the discrepancy is
        exact enough is measured, see release_discrepancy. numerics="idealized" adds Gaussian noise
        in floats, accounted by the same curve as if floats were real numbers. Private rows and
        labels beyond the bounds are projected, silently. No u or q leaves fit. The running time is
        not protected. epsilon = math.inf protects no one.

    Cost:
        `O((m + n) d**2 + d**3)` for the discrepancy, about ten times as much for the start, or for
        the optimum without noise; then T passes over all rows.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, Algorithm 1 and problem (6). Their sigma_1 and sigma_2
        are replaced: those printed are not (epsilon, delta)-DP beyond epsilon = 17.5 at delta =
        0.01. Balle and Wang 2018; Canonne, Kamath and Steinke 2020; Duchi, Hazan and Singer 2011
        (AdaGrad).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import ConvexAdaptation
        >>> X = np.linspace(-1, 1, 2_000)[:, None]
        >>> y_source, y_target = 0.1 * X[:, 0], 0.8 * X[:, 0]
        >>> model = ConvexAdaptation(epsilon=4)  # protects the target
        >>> model = model.fit(X, y_source, X[::4], y_target[::4])
        >>> bool(abs(model.coef_[0] - 0.8) < 0.2), model.record_.epsilon
        (True, 4.0)
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
    feature_map: SourceMap | None = None
    numerics: Numerics = "exact"

    RULES: ClassVar[Rules] = {
        **PRIVACY_RULES,
        "radius": bounded_positive,
        "norm_bound": bounded_positive,
        "alpha": optional(probability),
        "kappa_1": bounded_positive,
        "kappa_2": nonnegative,
        "kappa_inf": nonnegative,
        "steps": optional(partial(positive_int, most=_MOST_STEPS)),
        "initial_distance": optional(bounded_positive),
        "discrepancy_share": probability,
        "variant": partial(one_of, allowed=VARIANTS),
    }

    loss = "squared"

    @keep_result
    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> Self:
        """Learns the coefficients from records of both domains.

        fit warns with a UtilityWarning where delta is above 1 / n for n private records, where
        `alpha_` is suggested by the discrepancy and near 1, and where the coefficients are no
        better than a constant on the public records. Errors of feature_map for public records, or
        for a record of zeros, reach the caller.

        Args:
            X_source: Records of the source, finite real numbers of shape (m, d), or what
                feature_map takes; m and d at least 1. A constant column makes an intercept.
            y_source: Labels of the source, finite real numbers of shape (m,).
            X_target: Records of the target, finite real numbers of shape (n, d), n at least 1.
            y_target: Labels of the target, finite real numbers of shape (n,).
            ids: Whose record it is, for each record of the private domain, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.
            budget: What fit is charged to before any coin is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one who knows it.
            progress: Whether to show a bar (tqdm) over the steps. The optimum without noise has no
                steps and no bar.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described, or feature_map does not make one
                row of d entries from each record.
            ParameterError: A parameter is out of range, an entry is no finite real number, a public
                record exceeds its bounds, the frames of both domains have different columns, no
                noise that can be drawn is enough for epsilon, or a budget comes with epsilon =
                math.inf.
            BudgetExceeded: The budget has less than epsilon or delta left.
            ImportError: progress is True and tqdm is not installed.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public; a person's mu is rows_per_person times that of a record. The warnings depend on
            public records and released numbers alone. No budget is spent where fit raises.
        """
        data = X_source, y_source, X_target, y_target
        return self._fit(data, (ids, rows_per_person), budget, random_state, progress)

    def _learn(self, settings: ConvexSettings, problem: AdaptationProblem, bar: Any) -> None:
        """Learn the coefficients from validated records."""
        run = run_with_noise if settings.privacy.protects else run_without_noise
        outcome = run(settings, problem, bar)
        self.coef_, self.alpha_ = read_only(outcome.coef), outcome.alpha
        self.discrepancy_, self.noise_ = outcome.discrepancy, outcome.noise
        self.record_ = outcome.record

    def _count_steps(self, settings: ConvexSettings) -> int:
        """Return the number of steps; 0 for the optimum without noise, which has no bar."""
        has_steps = settings.privacy.protects or settings.variant == "paper"
        return _count_steps(settings) if has_steps else 0

    def _validate_problem(self, settings: ConvexSettings, data: Data) -> AdaptationProblem:
        """Validate the records, which are in the target's space."""
        protected = settings.privacy.protected_domain(self.private)
        return AdaptationProblem.validate(data, settings.bounds, self.private, protected)

    def _validate_settings(
        self, budget: Budget | None, random_state: RandomState
    ) -> ConvexSettings:
        """Validate the parameters."""
        fields = check_fields(self)
        penalties = ConvexPenalties(*(fields[name] for name in ConvexPenalties._fields))
        for name in ("kappa_2", "kappa_inf"):
            if self.variant == "tight" and fields[name]:
                rule = 'it couples weights that have no noise: 0, or variant="paper"'
                refuse(name, getattr(self, name), rule)
        return ConvexSettings(
            set_privacy(fields, budget, random_state),
            ProblemBounds(fields["radius"], fields["norm_bound"]),
            fields["alpha"],
            penalties,
            fields["steps"],
            fields["initial_distance"],
            fields["discrepancy_share"],
            self.variant,
        )
