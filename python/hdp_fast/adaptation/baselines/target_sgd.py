"""Noisy SGD on the target alone: the private rival of adaptation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from ..._support.notes import keep_result
from ..._support.types import RandomState
from ..._support.validate import positive, positive_int, probability
from ...budget.account import Budget
from ...data.persons import read_persons
from ...learners.linear_model import ValidRows
from ...learners.noisy_steps import Numerics
from ...learners.sgd import PrivateSGD
from ..base import BoundedEstimator, align_source, check_columns, check_loss, validate_domain
from .weighted_fit import Loss

_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class TargetSGD(BoundedEstimator):
    """Noisy minibatch SGD on the target alone: a private rival of adaptation.

    It runs learners.PrivateSGD on the target's records. The source is validated, and not used.

    Attributes:
        epsilon: Privacy parameter, finite and above 0.
        delta: Privacy parameter in (0, 1).
        radius: Radius of the ball that holds the coefficients, in [1e-30, 1e30].
        norm_bound: Norm to which longer records are shrunk, in [1e-30, 1e30].
        label_bound: Labels of the squared loss are clipped to [-label_bound, label_bound]; in
            [1e-30, 1e30]. The logistic loss ignores it.
        loss: "squared" or "logistic".
        steps: Number T of steps, at least 1. None takes
            `min(n / 8, epsilon**2 n**2 / (32 d log(1 / delta)))`, at least 1.
        batch_size: Number of records drawn in a step, at least 1. None takes n sqrt(epsilon / (4
            T)), from 1 to n.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody who knows it.
        budget: The budget that fit is charged to before anything is drawn; None charges nothing.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        record_: The PrivacyRecord of the target after fit.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the target under "replace_one", with the guarantee of
        PrivateSGD.learn. The running time is not protected.

    Cost:
        That of PrivateSGD.calibrate and PrivateSGD.learn.

    Source:
        Bassily, Feldman, Talwar and Thakurta 2019, Private Stochastic Convex Optimization with
        Optimal Rates, Algorithm 1; the lengths of the steps and the noise are those of PrivateSGD.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import TargetSGD
        >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8], [0.6, -0.8], [-0.6, -0.8]], (500, 1))
        >>> y_source, y_target = (X > 0).astype(int).T  # the first feature counts, or the second
        >>> model = TargetSGD(epsilon=4, delta=1e-6, loss="logistic", steps=20)
        >>> model = model.fit(X, y_source, X, y_target)
        >>> bool((model.predict(X) == y_target).all()), model.record_.neighbors
        (True, 'replace_one')
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
    ) -> Self:
        """Learns the coefficients from the target.

        fit warns with a UtilityWarning where delta is above 1 / n.

        Args:
            X_source: Records of the source, finite real numbers of shape (m, d), m and d at
                least 1. They are validated and not used.
            y_source: Labels of the source, shape (m,): finite real numbers, or integers 0 and 1 for
                the logistic loss.
            X_target: Records of the private target, finite real numbers of shape (n, d), n at
                least 1. Only their shape and finiteness are validated. A constant column makes an
                intercept.
            y_target: Labels of the target, shape (n,), of the same kind as those of the source.
                Private labels of the squared loss are validated for shape and finiteness, those of
                the logistic loss must be 0 and 1.
            ids: Whose record it is, for each record of the target, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described.
            ParameterError: A parameter is out of range, an entry is no finite real number, a label
                is of another kind, the frames of both domains have different columns, or no noise
                is enough for epsilon.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public. No budget is spent where fit raises.
        """
        check_loss(self.loss)
        X_source, names = align_source(X_source, X_target)
        d = validate_domain("source", X_source, y_source, self.loss).X.shape[1]
        target = validate_domain("target", X_target, y_target, self.loss)
        check_columns("X_target", target.X, d)
        persons = read_persons(ids, rows_per_person, len(target.y))
        people = persons.count_groups(len(persons.select(target.y)))
        model = self._make_learner(people, d).learn(
            ValidRows(target.X),
            y_target,
            ids=ids,
            rows_per_person=rows_per_person,
            random_state=self.random_state,
            budget=self.budget,
        )
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
