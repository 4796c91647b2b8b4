"""What the estimators of adaptation share: two domains in one table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from numpy.typing import ArrayLike

from .._support.notes import keep_result, note
from .._support.validate import one_of, probability, refuse
from ..adaptation.discrepancies.exact import DOMAINS
from ..budget.account import Budget, check_charge
from .adaptation_domains import read_domains
from .adaptation_models import Domains, Private, Promise, center_by_public
from .charges import MissingFit
from .linear_estimator import PrivateLinearEstimator
from .target_scores import TargetScores


class AdaptationEstimator(TargetScores, PrivateLinearEstimator):
    """An estimator that learns for a target from rows of source and target in one table."""

    private: Private
    alpha: float | None
    _methods = ("auto", "moments", "descent")

    @abstractmethod
    def _adapt(self, method: str, domains: Domains, promise: Promise) -> Any:
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
            self._release(unit, rows, labels, epsilon, budget)
            self.domain_sizes_ = None
            return self
        is_target = read_domains(sample_domain, len(rows))
        check_charge(budget, epsilon)
        public = rows[~is_target if self.private == "target" else is_target]
        centered, norm = center_by_public(unit, public, self.delta)
        domains = Domains(centered.scale(rows), labels, is_target, self.private, norm)
        method = self._choose_adaptation() if self.method == "auto" else self.method
        promise = Promise(epsilon, self.delta, self.test_seed, budget)
        with MissingFit(budget, epsilon, self.delta):
            model = self._adapt(method, domains, promise)
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
