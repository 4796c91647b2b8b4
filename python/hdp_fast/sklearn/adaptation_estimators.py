"""Estimators for a target, from rows of source and target in one table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result, note
from .._support.types import Floats, RandomState
from .._support.validate import one_of, probability, refuse
from ..adaptation import MomentAdaptation
from ..adaptation.discrepancies.exact import DOMAINS, Private
from ..budget.account import Budget, check_charge
from ..data.goal import Goal
from ..data.persons import Persons
from ..data.schema import Schema
from ..learners.moment_equation import softmax, to_halves
from ..learners.statistics_model import divide_rows
from .adaptation_models import (
    ClassModels,
    Domains,
    adapt_classes,
    adapt_targets,
    center_by_public,
)
from .private_classifier import PrivateClassifier
from .private_estimator import MissingFit, PrivateLinearEstimator
from .private_regressor import PrivateRegressor
from .row_labels import TargetScores, read_domains
from .toolkit import accuracy_score, r2_score


class AdaptationEstimator(TargetScores, PrivateLinearEstimator):
    """An estimator that learns for a target from rows of source and target in one table."""

    private: Private
    alpha: float | None
    _methods = ("auto", "moments", "descent")

    @abstractmethod
    def _adapt(self, method: str, domains: Domains, goal: Goal) -> Any:
        """Learn from both domains: a model with a record_."""

    @keep_result
    def fit(
        self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None, *,
        budget: Budget | None = None,
    ) -> Self:  # fmt: skip
        """Learns for the target.

        Args:
            X: The records of both domains in any order, numbers of shape (n, d), or with a
                schema a frame or data.Table.
            y: Their labels, shape (n,).
            sample_domain: Public integers of shape (n,): 0 or more for a row of the source, below 0
                for one of the target. Several sources, or several targets, count as one. None says
                that all records are of one population: then all of them are protected, and learned
                from as the private estimator without adaptation does.
            budget: The budget that the fit is charged to, as a whole and before anything is drawn;
                None charges nothing. In a pipeline it is passed as STEP__budget.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A parameter lies outside its range, something public was not given at a
                finite epsilon, sample_domain lacks a domain, holds something else than integers or
                is None with a method, or a fit without noise comes with a budget.
            ShapeError: bounds do not fit the columns of X, or sample_domain does not fit its rows.
            ValueError: X or y is no array of numbers, y has one that is not finite, or X has one
                without bounds, or they differ in length.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            (epsilon, delta)-DP under "replace_one" for the records of the private domain, exact but
            for what adaptation says of the numerics of a descent. The records of the other domain
            are public: they are not protected, and scale the columns. sample_domain, and so the
            number of records of each domain, is public. Without sample_domain all records are
            protected. Bounds, classes, schema and alpha must not be chosen by a look at private
            records. Nothing is spent where an error is raised.
        """
        self._check_choice(sample_domain is not None)
        unit, rows, labels, epsilon = self._prepare(X, y)
        if sample_domain is None:
            self._release(unit, rows, labels, epsilon, budget, Persons())
            self.domain_sizes_ = None
            return self
        is_target = read_domains(sample_domain, len(rows))
        check_charge(budget, epsilon)
        rows = rows[:]
        public = rows[~is_target if self.private == "target" else is_target]
        centered, norm = center_by_public(unit, public, self.delta)
        domains = Domains(centered.scale(rows), labels, is_target, self.private, norm)
        method = self._choose_adaptation() if self.method == "auto" else self.method
        goal = Goal(epsilon, self.delta, budget=budget, random_state=self.test_seed)
        with MissingFit(budget, epsilon, self.delta):
            model = self._adapt(method, domains, goal)
        self.method_, self.record_ = method, model.record_
        self.rows_, self.model_ = centered, model
        self.domain_sizes_ = domains.sizes
        return self

    def _choose_adaptation(self) -> str:
        public_source = self.private == "target" and self.alpha is None
        return "moments" if public_source else "descent"

    def _check_choice(self, has_domains: bool) -> None:
        """Refuse settings that exclude each other."""
        one_of("private", self.private, DOMAINS)
        one_of("method", self.method, self._methods)
        if self.alpha is not None:
            probability("alpha", self.alpha)
        if not has_domains:
            rule = "without sample_domain there is one population, and nothing to adapt"
            if self.method != "auto":
                refuse("method", self.method, rule)
            if self.alpha is not None:
                note(f"alpha = {self.alpha:g} has no effect: {rule}")
        if self.method == "moments" and self._choose_adaptation() == "descent":
            rule = 'only "descent" takes an alpha, or protects the source'
            refuse("method", self.method, rule)


class AdaptationClassifier(AdaptationEstimator, PrivateClassifier):  # type: ignore[misc]
    """A linear classifier for a target domain, from a source and a few records of the target.

    Rows of both domains stand in one table, and `sample_domain` says which is which, so that
    cross-validation and searches of scikit-learn cut both domains alike. One of the domains is
    private, the other public. fit scales every column by its public bounds, and by the means and
    deviations of the public domain, and learns by hdp_fast.adaptation. score looks at the rows of
    the target alone. Where scikit-learn routes metadata, sample_domain reaches fit and score by
    itself.

    Args:
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf adds no noise and
            protects no one.
        delta: Privacy parameter, strictly between 0 and 1.
        private: The domain whose records are protected, "target" or "source".
        bounds: Public bounds of the columns, to which values of both domains are clipped: (low,
            high) for all of them, or one such pair for each, shape (d, 2). A missing value
            counts as the lower bound. Only with epsilon = math.inf None takes them from the data,
            which must be finite then.
        schema: Public data.Schema, for a frame or a data.Table with categories; its label is not
            used. None for columns of numbers.
        classes: The public labels, at least two. Only with epsilon = math.inf None takes them from
            the data. Numbered labels of ensembles are read as PrivateClassifier does.
        method: "moments" for adaptation.MomentAdaptation, which releases the target once for two
            classes, or else once for each class, all in one budget. "descent" is
            adaptation.NonConvexAdaptation with the logistic loss, or for more classes with the
            cross-entropy. "auto" takes "moments" where the target is private and alpha is None.
        alpha: Share of the source in the total weight of "descent", strictly between 0 and 1. None
            takes what the released discrepancy suggests for two classes. For more classes, None
            takes the share of the source in the number of records.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Attributes:
        classes_: The classes in order, shape (K,).
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        domain_sizes_: Numbers of source and target rows in fit; None for one population.
        record_: The PrivacyRecord of the private domain; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The fitted estimator of hdp_fast.adaptation, for centered rows, or one for each
            class; for one population the model of PrivateClassifier.
        rows_: The map from records to centered rows.

    Guarantee:
        That of fit.

    Cost:
        That of the method, and a pass over X.

    Source:
        hdp_fast.adaptation; Bassily, Cortes, Mao and Mohri 2024 for the descent.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import AdaptationClassifier
        >>> X = np.tile(np.linspace(0, 10, 1_000), 3)[:, None]
        >>> domain = np.repeat([1, 1, -1], 1_000)  # a public source, and a private target
        >>> y = np.where((X[:, 0] > 5) == (domain > 0), "yes", "no")  # the other way round
        >>> model = AdaptationClassifier(epsilon=4.0, bounds=(0, 10), classes=["no", "yes"])
        >>> model.fit(X, y, sample_domain=domain).predict([[1.0], [9.0]]).tolist()
        ['yes', 'no']
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        private: Private = "target",
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        classes: ArrayLike | None = None,
        method: str = "auto",
        alpha: float | None = None,
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.epsilon = epsilon
        self.delta = delta
        self.private = private
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.method = method
        self.alpha = alpha
        self.test_seed = test_seed

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of every class.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1. With "moments" they are
            least-squares estimates, clipped to be at least 0.

        Raises:
            ValueError: As in decision_function.
        """
        return super().predict_proba(X)

    def _share_rows(self, rows: Floats) -> Floats:
        if self.domain_sizes_ is None:
            return super()._share_rows(rows)
        model = self.model_
        scores = model.scores(rows)
        if isinstance(model, MomentAdaptation):
            share = ((1 + scores) / 2).clip(0.0, 1.0)
            return np.column_stack([1 - share, share])
        if isinstance(model, ClassModels):
            return divide_rows(((1 + scores) / 2).clip(0.0, 1.0))
        if scores.ndim == 1:
            scores = to_halves(scores)
        return softmax(scores)

    def _adapt(self, method: str, domains: Domains, goal: Goal) -> Any:
        return adapt_classes(method, len(self.classes_), self.alpha, domains, goal)

    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        return accuracy_score(labels, predictions, weights)


class AdaptationRegressor(AdaptationEstimator, PrivateRegressor):  # type: ignore[misc]
    """Linear regression for a target domain, from a source and a few records of the target.

    Rows of both domains stand in one table, and `sample_domain` says which is which, so that
    cross-validation and searches of scikit-learn cut both domains alike. One of the domains is
    private, the other public. fit scales every column by its public bounds, and by the means and
    deviations of the public domain, and learns by hdp_fast.adaptation. score looks at the rows of
    the target alone. Where scikit-learn routes metadata, sample_domain reaches fit and score by
    itself.

    Args:
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf adds no noise and
            protects no one.
        delta: Privacy parameter, strictly between 0 and 1.
        private: The domain whose records are protected, "target" or "source".
        bounds: Public bounds of the columns, to which values of both domains are clipped: (low,
            high) for all of them, or one such pair for each, shape (d, 2). A missing value
            counts as the lower bound. Only with epsilon = math.inf None takes them from the data,
            which must be finite then.
        schema: Public data.Schema, for a frame or a data.Table with categories; its label is not
            used. None for columns of numbers.
        target_bounds: Public bounds (low, high) of y, the value to predict, to which it is clipped
            in both domains. Only with epsilon = math.inf None takes them from the data.
        method: "moments" for adaptation.MomentAdaptation, which releases the target once,
            "descent" for adaptation.ConvexAdaptation, or "auto", which takes "moments" where the
            target is private and alpha is None.
        alpha: Share of the source in the total weight of "descent", strictly between 0 and 1. None
            takes what the released discrepancy suggests.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Attributes:
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        target_bounds_: The bounds of y, a pair.
        domain_sizes_: Numbers of source and target rows in fit; None for one population.
        record_: The PrivacyRecord of the private domain; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The fitted estimator of hdp_fast.adaptation, for centered rows and a scaled y; for
            one population the model of PrivateRegressor.
        rows_: The map from records to centered rows.

    Guarantee:
        That of fit.

    Cost:
        That of the method, and a pass over X.

    Source:
        hdp_fast.adaptation; Bassily, Cortes, Mao and Mohri 2024 for the descent.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import AdaptationRegressor
        >>> X = np.tile(np.linspace(0, 10, 1_000), 3)[:, None]
        >>> domain = np.repeat([1, 1, -1], 1_000)  # a public source, and a private target
        >>> y = np.where(domain < 0, 4 + 0.5 * X[:, 0], 0.5 * X[:, 0])
        >>> model = AdaptationRegressor(epsilon=4.0, bounds=(0, 10), target_bounds=(0, 10))
        >>> model = model.fit(X, y, sample_domain=domain)
        >>> bool(abs(model.predict([[6.0]])[0] - 7) < 1), model.record_.epsilon
        (True, 4.0)
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        private: Private = "target",
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        target_bounds: tuple[float, float] | None = None,
        method: str = "auto",
        alpha: float | None = None,
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.epsilon = epsilon
        self.delta = delta
        self.private = private
        self.bounds = bounds
        self.schema = schema
        self.target_bounds = target_bounds
        self.method = method
        self.alpha = alpha
        self.test_seed = test_seed

    def _adapt(self, method: str, domains: Domains, goal: Goal) -> Any:
        return adapt_targets(method, self.alpha, domains, goal)

    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        return r2_score(labels, predictions, weights)
