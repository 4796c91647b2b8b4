"""Noisy SGD on the target alone: the private rival of adaptation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from ..._support.types import RandomState
from ..._support.validate import positive, positive_int, probability
from ...budget.account import Budget
from ...learners.linear_model import ValidRows
from ...learners.noisy_steps import Numerics
from ...learners.sgd import PrivateSGD
from ..base import BoundedEstimator, align_source, check_columns, check_loss, validate_domain
from .weighted_fit import Loss

_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class TargetSGD(BoundedEstimator):
    """Noisy minibatch SGD on the target alone: the private rival, learners.PrivateSGD as it is.

    Guarantee: fit is (epsilon, delta)-DP for the target under replace_one, as PrivateSGD.learn; the
        source is validated, and not used.

    Attributes:
        epsilon: above 0.
        delta: in (0, 1).
        radius: of the ball that holds the coefficients.
        norm_bound: records are shrunk to this norm.
        label_bound: labels of the squared loss are clipped to [-label_bound, label_bound].
        loss: "squared" or "logistic".
        steps: T; None means min(n / 8, epsilon**2 n**2 / (32 d log(1 / delta))), at least 1.
        batch_size: records drawn in a step; None means n sqrt(epsilon / (4 T)), from 1 to n.
        numerics: "exact" or "idealized".
        random_state: as PrivateSGD.learn.
        budget: charged by fit, before anything is drawn.
        coef_: float64 (d,), read-only, after fit.
        record_: what protects the target, after fit.

    Raises: ParameterError, by fit.
    Cost: as PrivateSGD.calibrate and PrivateSGD.learn.
    Source: Bassily, Feldman, Talwar and Thakurta 2019, Private Stochastic Convex Optimization with
        Optimal Rates, Algorithm 1; steps and noise are those of PrivateSGD.
    """

    epsilon: float
    delta: float
    radius: float = 1.0
    norm_bound: float = 1.0
    label_bound: float = 1.0
    loss: Loss = "squared"
    steps: int | None = None
    batch_size: int | None = None
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learn the coefficients from the target.

        X_source, y_source, X_target, y_target: as the baselines take them. What is private is
        checked for its shape, NaN and infinity alone.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError, BudgetExceeded; no budget is spent then.
        Cost: as the class.
        Source: as the class.
        """
        check_loss(self.loss)
        X_source, names = align_source(X_source, X_target)
        d = validate_domain("source", X_source, y_source, self.loss).X.shape[1]
        target = validate_domain("target", X_target, y_target, self.loss)
        check_columns("X_target", target.X, d)
        rows, learner = ValidRows(target.X), self._make_learner(len(target.y), d)
        model = learner.learn(rows, y_target, random_state=self.random_state, budget=self.budget)
        self.coef_, self.record_ = model.weights, model.record
        self.feature_names_in_ = names
        return self

    def _make_learner(self, n: int, d: int) -> PrivateSGD:
        epsilon, delta = positive("epsilon", self.epsilon), probability("delta", self.delta)
        affordable = epsilon * n * epsilon * n / (32 * d * math.log(1 / delta))
        steps = max(1, int(min(n / 8, affordable))) if self.steps is None else self.steps
        positive_int("steps", steps, _MOST_STEPS)
        batch_size = min(n, max(1, round(n * math.sqrt(epsilon / (4 * steps)))))
        return PrivateSGD(
            loss=self.loss,
            steps=steps,
            batch_size=batch_size if self.batch_size is None else self.batch_size,
            radius=self.radius,
            norm_bound=self.norm_bound,
            label_bound=self.label_bound if self.loss == "squared" else None,
            numerics=self.numerics,
            epsilon=epsilon,
            delta=delta,
        )
