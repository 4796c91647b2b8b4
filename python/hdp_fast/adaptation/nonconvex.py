"""Adaptation under any differentiable loss: the non-convex problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result
from .._support.parameters import Rules, check_fields, optional
from .._support.types import Floats, RandomState
from .._support.validate import (
    MOST,
    bounded_positive,
    nonnegative,
    one_of,
    positive_int,
    probability,
    read_only,
    refuse,
)
from ..budget.account import Budget
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.linear_model import validate_rows
from ..learners.noisy_steps import Numerics
from .base import DescentEstimator, multiply
from .discrepancies.exact import Private
from .discrepancies.moments import shrink_rows
from .domains import check_columns
from .nonconvex_descent import LossBounds, NonConvexPenalties, PerExample
from .nonconvex_run import (
    NonConvexSettings,
    convert_labels,
    count_steps,
    run_with_noise,
    run_without_noise,
)
from .privacy import PRIVACY_RULES, set_privacy
from .problem import AdaptationProblem, Data, ProblemBounds, SourceMap

AnyLoss = Literal["logistic", "softmax"] | PerExample
Iterate = Literal["random", "last"]

_LOSSES = ("logistic", "softmax")
_ITERATES = ("random", "last")
_MOST_STEPS, _MOST_CLASSES = 1 << 40, 1 << 12


@dataclass(kw_only=True, eq=False)
class NonConvexAdaptation(DescentEstimator):
    """A predictor for a target, learned from source and target under any differentiable loss.

    The source has m records and the target n. A record i of the source has weight q_i in [0, alpha
    / m], one of the target in [0, (1 - alpha) / n]. Its loss is l_i(w), to which a record of the
    source adds the discrepancy d: `h_i = l_i(w) + d` in the source, `h_i = l_i(w)` in the target.
    The estimator looks for a stationary point, over |w| <= radius and all weights, of
    `sum q_i h_i + lambda_1 (1 - sum q_i) + lambda_2 |q|_2 + lambda_inf log(sum exp(mu q_i)) / mu`.

    It takes T steps of projected gradient descent in w and u = 1 / q at the same time, each weight
    with a step length of its own. Without noise no step raises the objective (proved for real
    numbers). The descent starts at the end of another one, of max(T, 100) steps on the public
    records alone. The steps of the compiled losses are scaled in the way of ConvexAdaptation; those
    of a callable have one length in all directions.

    Attributes:
        epsilon: Privacy parameter, above 0. math.inf stands for a run without noise and without
            privacy.
        delta: Privacy parameter in (0, 1).
        loss: "logistic" for labels 0 and 1; "softmax" for the cross-entropy of labels 0 to
            `classes - 1`, where w has shape (classes, d); or a callable. It is called as
            `loss(w, X, y)` with w of shape (p,), rows X of shape (k, d) and norm at most
            norm_bound, and labels y of shape (k,). It cannot write to X and y. It returns losses of
            shape (k,), at least 0, and their gradients of shape (k, p).
        classes: Number of labels of "softmax", from 2 to 4096. The other losses ignore it.
        start: Where the descent of a callable starts: a public float array of shape (p,) and norm
            at most radius. The other losses start at 0 and ignore it.
        loss_bounds: For a callable, the largest loss, the largest norm of a gradient and the
            smoothness, each in [1e-30, 1e30]. Losses and gradients are clipped to the first two;
            the smoothness bounds how fast the gradients change with w.
        radius: Radius of the ball that holds w, in [1e-30, 1e30].
        norm_bound: Bound on the norm of all rows, in [1e-30, 1e30]. Public records must keep it,
            private ones are shrunk to it.
        alpha: Share of the source in the total weight, in (0, 1). None takes suggested_alpha of the
            discrepancy.
        discrepancy: Public penalty d on the losses of the source, at least 0. None is for
            "logistic" only. It releases the discrepancy of the squared loss on labels -1 and 1, cut
            at the largest logistic loss: a stand-in, since no method computes the logistic one.
        lambda_1: Penalty in [1e-30, 1e30]: records get less weight where h exceeds it.
        lambda_2: Penalty on the Euclidean norm of the weights, at least 0.
        lambda_inf: Penalty on the smoothed largest weight, at least 0.
        mu: Sharpness of the smoothing of lambda_inf, in [1e-30, 1e30] and at most 100 times the
            number of records of the smaller domain.
        steps: Number T of steps, at least 1.
        initial_distance: Expected distance, in [1e-30, 1e30], from the predictor that the public
            records alone lead to, to the stationary point. Noisy steps are scaled to it; None takes
            the radius.
        iterate: "random" returns an iterate whose number is drawn uniformly, as the theorem of the
            paper has it; "last" returns the last one. Both have the same privacy.
        discrepancy_share: Share of the squared budget that a released discrepancy gets, in (0, 1).
        private: The domain whose records are protected, "target" or "source". With epsilon =
            math.inf no records are, and all must keep their bounds.
        feature_map: A public function from arrays of the source's records, shape (k, ...), to
            arrays of shape (k, d) in the target's space; None leaves the records as they are. It
            must treat every record alone. Private records are passed to it one at a time, after a
            record of zeros, and count as zero where it fails.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats.
        coef_: The predictor after fit, float64 of shape (d,), (classes, d) or (p,), read-only.
        alpha_: The share of the source that fit used.
        discrepancy_: The discrepancy after fit: the public one, the released one, or the exact one
            if epsilon = math.inf.
        noise_: Standard deviation of the noise on each coordinate of each gradient, after fit; 0
            without noise.
        gradient_mapping_: Norm of the gradient mapping in (w, u) at the returned iterate, after fit
            with epsilon = math.inf. It belongs to the step of 1 / (2 smoothness) in w and to each
            weight's own step. None otherwise, since it is private.
        record_: The PrivacyRecord of the private records after fit; None if epsilon = math.inf.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the private records under "replace_one": the discrepancy and
        the T steps share one Gaussian budget (proved). No private q or u leaves the mechanism or
        gets noise. Each is a function of its own record, of the released predictors and, for
        lambda_2 and lambda_inf, of noisy sums, each of which costs 1 / 16 of what the gradient
        does. numerics="exact" adds rounded Gaussian noise to sums of integers, "idealized"
        Gaussian noise in floats; both are accounted as in ConvexAdaptation. The results of a
        callable are clipped. A result that is not finite counts as the largest loss and as a
        gradient of zero; so does a private record at which the callable fails, silently. That the
        callable treats every record alone and keeps nothing is its author's promise, which no one
        can check. The number of the returned iterate is drawn before the first step. The running
        time is not protected. epsilon = math.inf protects no one.

    Cost:
        max(T, 100) passes over the public rows, at most T passes over all rows, and the
        discrepancy.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, Algorithm 2 and problem (7), with noise and steps of
        our own. The printed steps move u by about `T / n**2` where u >= n.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import NonConvexAdaptation
        >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8], [0.6, -0.8], [-0.6, -0.8]], (250, 1))
        >>> y_source, y_target = (X > 0).astype(int).T  # the first feature counts, or the second
        >>> model = NonConvexAdaptation(epsilon=4, steps=20, iterate="last")
        >>> model = model.fit(X, y_source, X, y_target)  # protects the target
        >>> bool((model.predict(X) == y_target).all())
        True
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
    feature_map: SourceMap | None = None
    numerics: Numerics = "exact"

    RULES: ClassVar[Rules] = {
        **PRIVACY_RULES,
        "classes": partial(positive_int, most=_MOST_CLASSES),
        "radius": bounded_positive,
        "norm_bound": bounded_positive,
        "alpha": optional(probability),
        "discrepancy": optional(nonnegative),
        "lambda_1": bounded_positive,
        "lambda_2": nonnegative,
        "lambda_inf": nonnegative,
        "mu": bounded_positive,
        "steps": partial(positive_int, most=_MOST_STEPS),
        "initial_distance": optional(bounded_positive),
        "iterate": partial(one_of, allowed=_ITERATES),
        "discrepancy_share": probability,
    }

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
        """Learns the predictor from records of both domains.

        fit warns with a UtilityWarning where delta is above 1 / n for n private records, where
        `alpha_` is suggested by the discrepancy and near 1, and where a predictor of a compiled
        loss is no better than a constant on the public records. Errors of feature_map for public
        records, or for a record of zeros, reach the caller, and so do errors of a callable for
        public records.

        Args:
            X_source: Records of the source, finite real numbers of shape (m, d), or what
                feature_map takes; m and d at least 1. A constant column makes an intercept.
            y_source: Labels of the source, shape (m,): integers 0 and 1 for "logistic", integers
                from 0 to `classes - 1` for "softmax", finite real numbers for a callable.
            X_target: Records of the target, finite real numbers of shape (n, d), n at least 1.
            y_target: Labels of the target, shape (n,), of the same kind.
            ids: Whose record it is, for each record of the private domain, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.
            budget: What fit is charged to before any coin is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one who knows it.
            progress: Whether to show a bar (tqdm) over the steps, those on the public records alone
                included. A random iterate ends it early.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described, feature_map does not make one row
                of d entries from each record, or a callable returns other shapes for public
                records.
            ParameterError: A parameter is out of range, an entry or a label is of another kind, a
                public record exceeds its bounds, the frames of both domains have different columns,
                no noise that can be drawn is enough for epsilon, or a budget comes with epsilon =
                math.inf.
            BudgetExceeded: The budget has less than epsilon or delta left.
            ImportError: progress is True and tqdm is not installed.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public; a person's mu is rows_per_person times that of a record. The warnings depend on
            public records and released numbers alone. No budget is spent where fit raises, with one
            exception: what a callable raises for public records comes after the budget is charged.
        """
        data = X_source, y_source, X_target, y_target
        return self._fit(data, (ids, rows_per_person), budget, random_state, progress)

    def _learn(self, settings: NonConvexSettings, problem: AdaptationProblem, bar: Any) -> None:
        """Learn the predictor from validated records."""
        run = run_with_noise if settings.privacy.protects else run_without_noise
        outcome = run(settings, problem, bar)
        self.coef_, self.alpha_ = read_only(outcome.coef), outcome.alpha
        self.discrepancy_, self.noise_ = outcome.discrepancy, outcome.noise
        self.gradient_mapping_, self.record_ = outcome.gradient_mapping, outcome.record

    def scores(self, X: ArrayLike) -> Floats:
        """Computes the inner products of the coefficients with every record, shrunk to the bound.

        A record longer than norm_bound is shrunk to this norm.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d). The columns of a
                frame are put into the order that fit took.

        Returns:
            A float64 array of shape (k,) for "logistic", of shape (k, classes) for "softmax".

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called, or the loss is a callable, whose predictions only
                its author knows.

        Guarantee:
            That of fit for the records that fit protects, since nothing else about them is read. X
            itself is not protected.

        Cost:
            Two passes over X.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError("NonConvexAdaptation has not learned yet: call fit first")
        if callable(self.loss):
            raise HdpFastError("NonConvexAdaptation has no scores of a callable: use coef_")
        rows = validate_rows(X, self.feature_names_in_).entries
        check_columns("X", rows, self.coef_.shape[-1])
        return multiply(rows, self.coef_.T, lambda some: shrink_rows(some, self.norm_bound))

    def predict(self, X: ArrayLike) -> Floats | NDArray[Any]:
        """Predicts the likeliest label of every record.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d).

        Returns:
            A uint8 array of shape (k,) for "logistic", an int64 array of shape (k,) for "softmax".

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called, or the loss is a callable.
        """
        scores = self.scores(X)
        return (scores >= 0).view(np.uint8) if scores.ndim == 1 else scores.argmax(axis=1)

    def _count_steps(self, settings: NonConvexSettings) -> int:
        """Return the number of steps, those on the public records alone included."""
        return count_steps(settings)

    def _validate_problem(self, settings: NonConvexSettings, data: Data) -> AdaptationProblem:
        """Validate the records, which are in the target's space."""
        X_source, y_source, X_target, y_target = data
        y_source = convert_labels(settings, "y_source", y_source)
        y_target = convert_labels(settings, "y_target", y_target)
        data = X_source, y_source, X_target, y_target
        protected = settings.privacy.protected_domain(self.private)
        problem = AdaptationProblem.validate(data, settings.bounds, self.private, protected)
        self._check_mu(problem)
        return problem

    def _validate_settings(
        self, budget: Budget | None, random_state: RandomState
    ) -> NonConvexSettings:
        """Validate the parameters."""
        if not callable(self.loss) and self.loss not in _LOSSES:
            refuse("loss", self.loss, f"it must be callable, or one of {', '.join(_LOSSES)}")
        fields = check_fields(self)
        if fields["classes"] < 2:
            refuse("classes", self.classes, "it must be at least 2")
        if self.loss != "logistic" and self.discrepancy is None:
            rule = "only the logistic loss has one to release: it must be a public number"
            refuse("discrepancy", None, rule)
        bounds = ProblemBounds(fields["radius"], fields["norm_bound"])
        return NonConvexSettings(
            privacy=set_privacy(fields, budget, random_state),
            loss=self.loss,
            bounds=bounds if self.loss == "logistic" else bounds._replace(label=MOST),
            classes=fields["classes"],
            start=self._validate_start(bounds.radius),
            loss_bounds=self._validate_loss_bounds(),
            alpha=fields["alpha"],
            discrepancy=fields["discrepancy"],
            penalties=NonConvexPenalties(*(fields[name] for name in NonConvexPenalties._fields)),
            steps=fields["steps"],
            initial_distance=fields["initial_distance"],
            last=self.iterate == "last",
            share=fields["discrepancy_share"],
        )

    def _validate_start(self, radius: float) -> Floats | None:
        if not callable(self.loss):
            return None
        start = np.array([] if self.start is None else self.start, np.float64)
        if start.ndim != 1 or not start.size:
            raise ShapeError(f"start has shape {start.shape}, but a callable needs one of (p,)")
        if not np.linalg.norm(start) <= radius:
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
