"""Adaptation under any differentiable loss: the non-convex problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from ..budget.account import Budget
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.hypotheses import read_only
from ..learners.linear_model import validate_rows
from .base import check_columns
from .discrepancies.exact import Private
from .discrepancies.moments import shrink_rows
from .fitting import AdaptationEstimator
from .nonconvex_descent import LossBounds, NonConvexPenalties, PerExample
from .nonconvex_run import (
    NonConvexSettings,
    convert_labels,
    count_steps,
    run_with_noise,
    run_without_noise,
)
from .privacy import Numerics, validate_privacy
from .problem import AdaptationProblem, Data, FeatureMap, ProblemBounds

AnyLoss = Literal["logistic", "softmax"] | PerExample
Iterate = Literal["random", "last"]

_LOSSES = ("logistic", "softmax")
_ITERATES = ("random", "last")
_MOST_STEPS, _MOST_CLASSES = 1 << 40, 1 << 12


@dataclass(kw_only=True, eq=False)
class NonConvexAdaptation(AdaptationEstimator):
    """A predictor for a target, learned from source and target under any differentiable loss.

    Searches |w| <= radius and weights q_i up to alpha / m for the m records of the source and
    (1 - alpha) / n for the n of the target, for a stationary point of sum q_i (l_i(w) + d 1[i in
    source]) + lambda_1 (1 - sum q_i) + lambda_2 |q|_2 + lambda_inf log(sum exp(mu q_i)) / mu: T
    steps of projected gradient descent in w and u = 1 / q at a time, each weight with a step of its
    own. Without noise no step raises the objective (proved for real numbers). It starts where as
    many steps, or 100, for the public records alone end. Steps of compiled losses are scaled as
    those of ConvexAdaptation.

    Guarantee: fit is (epsilon, delta)-DP for the private records under replace_one: the discrepancy
        and T steps add up to one Gaussian budget (proved). No private q or u leaves the mechanism,
        or gets noise: each is a function of its own record, of the released predictors and, for
        lambda_2 and lambda_inf, of noisy sums, each of which costs 1 / 16 of what the gradient
        does. "exact" adds discrete Gaussian noise to sums of integers, as ConvexAdaptation;
        "idealized" Gaussian noise in floats. What a callable returns is clipped; what is not
        finite counts as the largest loss, and as a gradient of zero, and so does a private record
        at which it fails, silently. That it treats every record alone and keeps nothing is its
        author's promise, which nobody can check. The number of the iterate is drawn before the
        first step. epsilon = math.inf protects nobody.

    Attributes:
        epsilon: above 0; math.inf for a run without privacy.
        delta: in (0, 1).
        loss: "logistic" (labels 0 and 1), "softmax" cross-entropy (labels 0 to classes - 1; w is
            (classes, d)), or a callable of (w, X, y) that returns losses (k,), at least 0, and
            their gradients (k, p) for w (p,), rows X (k, d) of norm at most norm_bound and
            labels y (k,), none of which it can write to.
        classes: of "softmax", 2 to 4096.
        start: of a callable, a public float array (p,) of norm at most radius.
        loss_bounds: of a callable, (largest loss, largest norm of a gradient, smoothness): losses
            and gradients are clipped to the first two; smoothness bounds how much gradients change
            with w.
        radius: of the ball that holds w, in [1e-30, 1e30].
        norm_bound: of all rows. Public records must keep it; private ones are shrunk to it.
        alpha: share of the source, in (0, 1); None takes suggested_alpha.
        discrepancy: public penalty d on losses of the source, at least 0; None, for "logistic"
            only, releases that of the squared loss on labels -1 and 1 and cuts it at the largest
            loss: a stand-in, since nobody can compute the logistic one.
        lambda_1: above 0: records weigh less where their loss exceeds it.
        lambda_2: at least 0.
        lambda_inf: at least 0.
        mu: above 0, at most 100 times the number of records of either domain; for lambda_inf.
        steps: T, at least 1.
        initial_distance: above 0: expected from the predictor that the public records alone lead to
            to the stationary point; noisy steps are scaled to it. None takes the radius.
        iterate: "random", of which the theorem speaks, or "last": as private.
        discrepancy_share: of the squared budget, in (0, 1), for the discrepancy.
        private: whose records are protected: "target" or "source"; with epsilon = math.inf
            nobody's are, and all must keep their bounds.
        feature_map: as ConvexAdaptation.
        numerics: "exact" or "idealized".
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible test stream that protects nobody who knows it.
        budget: charged before any coin is drawn.
        coef_: float64 (d,), (classes, d) or (p,), read-only, after fit.
        alpha_: the share of the source that was used, after fit.
        discrepancy_: the released discrepancy, or the public one, after fit.
        noise_: deviation of the noise on each coordinate of each gradient, after fit; 0 without.
        gradient_mapping_: norm of the gradient mapping in (w, u) at the iterate, each block with
            its own step, after fit with epsilon = math.inf; None otherwise, since it is private.
        record_: what protects the private records, after fit; None with epsilon = math.inf.

    Raises: ShapeError, ParameterError, BudgetExceeded, by fit.
    Cost: T passes over the public rows, or 100, and T over all; and the discrepancy.
    Source: Bassily, Cortes, Mao and Mohri 2024, Algorithm 2 and problem (7), with noise and steps
        of our own; u as printed moves by about T / n**2 where u >= n.
    """

    epsilon: float
    delta: float = 1e-6
    loss: AnyLoss = "logistic"  # type: ignore[assignment]
    classes: int = 2
    start: ArrayLike | None = None
    loss_bounds: tuple[float, float, float] | None = None
    radius: float = 1.0
    norm_bound: float = 1.0
    alpha: float | None = None
    discrepancy: float | None = None
    lambda_1: float = 1.0
    lambda_2: float = 0.0
    lambda_inf: float = 0.0
    mu: float = 1.0
    steps: int = 200
    initial_distance: float | None = None
    iterate: Iterate = "random"
    discrepancy_share: float = 0.05
    private: Private = "target"
    feature_map: FeatureMap | None = None
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike,
        *,
        progress: bool = False,
    ) -> Self:
        """Learn the predictor.

        X_source: finite real numbers (m, d), or what feature_map takes; X_target: (n, d); m, n and
        d at least 1. y_source (m,), y_target (n,): labels as the loss takes them. progress: show a
        bar (tqdm) over the steps, those for the public records included; a random iterate ends it
        early. Warns as
        ConvexAdaptation.fit does.

        Guarantee: as the class; the warnings tell of public records and of what is released.
        Raises: ShapeError, ParameterError, BudgetExceeded, ImportError without tqdm where
            progress is wanted; no budget is spent then, unless a
            callable is to blame: what it raises of public records is raised.
        Cost: as the class.
        Source: as the class.
        """
        return self._fit((X_source, y_source, X_target, y_target), progress)

    def _learn(self, settings: NonConvexSettings, problem: AdaptationProblem, bar: Any) -> None:
        """Learn the predictor from validated records."""
        if settings.privacy.protects:
            outcome = run_with_noise(settings, problem, self.random_state, self.budget, bar)
        else:
            outcome = run_without_noise(settings, problem, self.random_state, bar)
        self.coef_, self.alpha_ = read_only(outcome.coef), outcome.alpha
        self.discrepancy_, self.noise_ = outcome.discrepancy, outcome.noise
        self.gradient_mapping_, self.record_ = outcome.gradient_mapping, outcome.record

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record, shrunk to norm_bound.

        X: finite real numbers (k, d). Returns float64 (k,), or (k, classes) of "softmax".

        Guarantee: that of fit, which it only reads.
        Raises: ShapeError, ParameterError; HdpFastError before fit, and of a callable, whose
            predictor only its author knows.
        Cost: two passes over X.
        Source: none.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError("NonConvexAdaptation has not learned yet: call fit first")
        if callable(self.loss):
            raise HdpFastError("NonConvexAdaptation has no scores of a callable: use coef_")
        rows = validate_rows(X, self.feature_names_in_).entries
        check_columns("X", rows, self.coef_.shape[-1])
        scores: Floats = shrink_rows(rows, self.norm_bound) @ self.coef_.T
        return scores

    def predict(self, X: ArrayLike) -> Floats | NDArray[Any]:
        """The likelier label.

        X: as scores. Returns uint8 (k,) of "logistic", int64 (k,) of "softmax".

        Guarantee: as scores.
        Raises: as scores.
        Cost: as scores.
        Source: none.
        """
        scores = self.scores(X)
        return (scores >= 0).view(np.uint8) if scores.ndim == 1 else scores.argmax(axis=1)

    def _count_steps(self, settings: NonConvexSettings) -> int:
        """The number of steps, those for the public records alone included."""
        return count_steps(settings)

    def _validate_problem(self, settings: NonConvexSettings, data: Data) -> AdaptationProblem:
        """Validate the records, which are in the target's space."""
        X_source, y_source, X_target, y_target = data
        bounds = ProblemBounds.validate(self.radius, self.norm_bound)
        y_source = convert_labels(settings, "y_source", y_source)
        y_target = convert_labels(settings, "y_target", y_target)
        if self.loss != "logistic":
            bounds = bounds._replace(label=1e30)
        data = X_source, y_source, X_target, y_target
        protected = settings.privacy.protected_domain(self.private)
        problem = AdaptationProblem.validate(data, bounds, self.private, protected)
        self._check_mu(problem)
        return problem

    def _validate_settings(self) -> NonConvexSettings:
        """Validate the parameters."""
        check_random_state(self.random_state)
        if not callable(self.loss) and self.loss not in _LOSSES:
            refuse("loss", self.loss, f"it must be callable, or one of {', '.join(_LOSSES)}")
        one_of("iterate", self.iterate, _ITERATES)
        return NonConvexSettings(
            privacy=validate_privacy(self),
            loss=self.loss,
            classes=self._validate_classes(),
            start=self._validate_start(),
            loss_bounds=self._validate_loss_bounds(),
            alpha=None if self.alpha is None else probability("alpha", self.alpha),
            discrepancy=self._validate_discrepancy(),
            penalties=NonConvexPenalties(
                bounded_positive("lambda_1", self.lambda_1),
                nonnegative("lambda_2", self.lambda_2),
                nonnegative("lambda_inf", self.lambda_inf),
                bounded_positive("mu", self.mu),
            ),
            steps=positive_int("steps", self.steps, _MOST_STEPS),
            initial_distance=None
            if self.initial_distance is None
            else bounded_positive("initial_distance", self.initial_distance),
            last=self.iterate == "last",
            share=probability("discrepancy_share", self.discrepancy_share),
        )

    def _validate_classes(self) -> int:
        classes = positive_int("classes", self.classes, _MOST_CLASSES)
        if classes < 2:
            refuse("classes", classes, "it must be at least 2")
        return classes

    def _validate_discrepancy(self) -> float | None:
        if self.discrepancy is not None:
            return nonnegative("discrepancy", self.discrepancy)
        if self.loss != "logistic":
            rule = "only the logistic loss has one to release: it must be a public number"
            refuse("discrepancy", None, rule)
        return None

    def _validate_start(self) -> Floats | None:
        if not callable(self.loss):
            return None
        start = np.array([] if self.start is None else self.start, np.float64)
        if start.ndim != 1 or not start.size:
            raise ShapeError(f"start has shape {start.shape}, but a callable needs one of (p,)")
        if not np.linalg.norm(start) <= bounded_positive("radius", self.radius):
            raise ParameterError("start is too long, but its norm must be at most radius")
        return start

    def _validate_loss_bounds(self) -> LossBounds | None:
        if not callable(self.loss):
            return None
        if self.loss_bounds is None or len(self.loss_bounds) != 3:
            rule = "a callable needs its largest loss, norm of gradients and smoothness"
            refuse("loss_bounds", self.loss_bounds, rule)
        return LossBounds(*(bounded_positive("loss_bounds", bound) for bound in self.loss_bounds))

    def _check_mu(self, problem: AdaptationProblem) -> None:
        if self.mu > 100 * min(problem.sizes):
            rule = f"with {min(problem.sizes)} records it must be at most 100 times as many"
            refuse("mu", self.mu, rule)
