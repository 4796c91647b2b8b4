"""A search over parameters whose fits and choice are charged together, before anything runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result, note
from .._support.random_state import make_public_generator, make_stream
from .._support.types import Floats, RandomState
from .._support.validate import flag, number, ordered_pair, positive, probability, refuse
from ..budget.account import Budget
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..record import OS_ENTROPY, TEST_STREAM, PrivacyRecord, rng_of
from .held_out import Choice, HeldOutJudge, Judge, PublicJudge
from .private_estimator import SeededEstimator, read_targets, spend
from .row_labels import read_domains
from .search_fits import (
    FitPrice,
    SearchPlan,
    SearchRecords,
    fit_charged,
    make_candidate,
    make_plan,
    path_to_last,
    rehearse_fit,
    takes,
)
from .toolkit import (
    MetaEstimatorMixin,
    ParameterGrid,
    available_if,
    check_consistent_length,
    check_is_fitted,
    check_scoring,
    column_or_1d,
    get_tags,
    indexable,
    is_regressor,
)

# The choice may miss the best candidate by this share of the records before it is noted.
_LARGEST_MISS = 0.1
# How improbable a larger miss is.
_RARE = 1 / 20


def _has(name: str) -> Any:
    return available_if(lambda search: hasattr(search._inner, name))


class PrivateSearchCV(MetaEstimatorMixin, SeededEstimator):  # type: ignore[misc]
    """Chooses the parameters of a private estimator, within one epsilon and delta for everything.

    A share of the records is held out by coins that do not depend on the data. Every candidate is
    fit on the others. The candidate is chosen by permute-and-flip on the scores of the held-out
    records, and fit again on all records. No record is both trained on by the candidates and held
    out, so it pays for the candidates or for the choice, and not for both. With k folds it would
    pay for the candidates k - 1 times, and for the choice as well.

    With public records for the score nothing is held out, and the choice costs nothing.

    Args:
        estimator: A private estimator of this module, or a pipeline that ends in one and whose
            other steps learn nothing from the records. Its epsilon and delta are set by the search.
        param_grid: The candidates, as GridSearchCV has them: a dictionary of lists by names of
            parameters, or a list of such dictionaries.
        epsilon: Privacy parameter of the whole search, above 0. It must be chosen; math.inf adds no
            noise and protects no one.
        delta: Privacy parameter of the whole search, strictly between 0 and 1.
        holdout: Share of the records that is held out, strictly between 0 and 1.
        scoring: The score on public records: a name or a callable as scikit-learn has them, where
            None is the accuracy or the coefficient of determination. Without public records it must
            be None. Then a classifier scores the share of records that are classified correctly,
            and a regressor 1 less the mean squared error in widths of the target's bounds.
        refit: Whether the chosen candidate is fit again on all records, at half of epsilon and
            delta. Otherwise the candidates take all of it, and best_estimator_ is the one that was
            fit already.
        target_bounds: Public bounds (low, high) of a regressor's target, for its score. None takes
            those of the estimator.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one. It determines the records that are
            held out, the choice and its score; the estimator has a test_seed of its own.

    Attributes:
        best_params_: The parameters of the chosen candidate.
        best_index_: Its place among the candidates.
        best_estimator_: The chosen candidate, fit.
        best_score_: Its score: with public records as it is, else with noise and cut to [0, 1].
        cv_results_: What is known of all candidates: "params", a column "param_NAME" for each
            parameter, "chosen", and with public records "mean_test_score" and "rank_test_score".
            Private scores are not in it.
        plan_: How epsilon and delta were divided, a SearchPlan; None with epsilon = math.inf.
        record_: The PrivacyRecord of the whole search; None with epsilon = math.inf.

    Guarantee:
        That of fit.

    Cost:
        A fit for each candidate, and the last one.

    Source:
        Parallel composition (McSherry 2009) of the candidates' fits (composed after Kairouz, Oh and
        Viswanath 2017) and of permute-and-flip (McKenna and Sheldon 2020) with discrete Laplace
        noise (Ghosh et al. 2009), and basic composition with the last fit (Dwork et al. 2006).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import PrivateRegressor, PrivateSearchCV
        >>> X = np.tile([[20.0], [60.0]], (20_000, 1))
        >>> learner = PrivateRegressor(target_bounds=(0, 10), method="statistics")
        >>> search = PrivateSearchCV(learner, {"bounds": [(0, 100), (0, 10**6)]}, epsilon=2.0)
        >>> search.fit(X, X[:, 0] / 10).best_params_
        {'bounds': (0, 100)}
        >>> search.record_.epsilon, search.plan_.refit.epsilon < 1, search.best_score_ > 0.9
        (2.0, True, True)
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        holdout: float = 0.2,
        scoring: Any = None,
        refit: bool = True,
        target_bounds: tuple[float, float] | None = None,
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.holdout = holdout
        self.scoring = scoring
        self.refit = refit
        self.target_bounds = target_bounds
        self.test_seed = test_seed

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        *,
        X_public: Any = None,
        y_public: ArrayLike | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """Fits all candidates, and chooses one.

        Args:
            X: The private records, as the estimator takes them, at least two.
            y: Their labels or targets, shape (n,).
            sample_domain: Public integers of shape (n,) for an estimator of adaptation: 0 or more
                for a row of the source, below 0 for one of the target. Then rows of the target
                alone are held out. None says that all records are of one population.
            X_public: Public records that choose, with the columns of X; None holds out private
                ones. For an estimator of adaptation they are of the target.
            y_public: Their labels or targets.
            budget: The budget that the whole search is charged to, before anything is drawn; None
                charges nothing.

        Returns:
            The search itself.

        Raises:
            ParameterError: A parameter lies outside its range, the estimator is not private, or its
                own parameters are refused. A search without noise comes with a budget.
            ShapeError: X_public has other columns than X.
            ValueError: X or y is not what the estimator takes, or they differ in length.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            (epsilon, delta)-DP under "replace_one" with the number of records public, exact if the
            estimator's fits are: what is released is the choice and its score, all candidates'
            models, and the last one. With sample_domain this holds for the records that the
            estimator protects, those of its private domain. The candidates and what the estimator
            takes for public must not be chosen by a look at the records. Nothing is spent where an
            error is raised before the first fit begins.
        """
        price = self._check_settings(budget)
        candidates = self._list_candidates()
        records = self._read(X, y, sample_domain)
        stream = make_stream(self.test_seed)
        learned, judge = records, self._read_public(X_public, y_public)
        if judge is None:
            learned, judge = self._hold_out(records, stream)
        plan, record, first, last = None, None, None, None
        if price is not None:
            is_charged = isinstance(judge, HeldOutJudge)
            plan = make_plan(*price, len(candidates), charged=is_charged, refit=self.refit)
            record = self._rehearse(plan, candidates, records, learned, judge)
            first, last = plan.fit, plan.refit
        with spend(budget, record) if record else nullcontext():
            models = [self._make(params, first, learned) for params in candidates]
            choice = judge.choose(models, plan, stream)
            best = models[choice.index]
            if self.refit:
                best = self._make(candidates[choice.index], last, records)
        self.best_estimator_, self.plan_, self.record_ = best, plan, record
        self.best_index_, self.best_score_ = choice.index, choice.score
        self.best_params_ = candidates[choice.index]
        self.cv_results_ = list_results(candidates, choice)
        return self

    def _check_settings(self, budget: Budget | None) -> FitPrice | None:
        """The price of the whole; None for no protection."""
        if self.epsilon is None:
            raise ParameterError(
                "epsilon = None, but it must be chosen: math.inf for no protection"
            )
        delta = probability("delta", self.delta)
        probability("holdout", self.holdout)
        self._check_seed()
        flag("refit", self.refit)
        if number("epsilon", self.epsilon) != math.inf:
            return FitPrice(positive("epsilon", self.epsilon), delta)
        if budget is not None:
            refuse("epsilon", self.epsilon, "only a private search can be charged to a budget")
        return None

    def _list_candidates(self) -> list[dict[str, Any]]:
        prefix = path_to_last(self.estimator)
        candidates = list(ParameterGrid(self.param_grid))
        if not candidates:
            refuse("param_grid", self.param_grid, "it must hold a candidate")
        for params in candidates:
            if {f"{prefix}epsilon", f"{prefix}delta"} & set(params):
                raise ParameterError(
                    "param_grid names epsilon or delta, but the search sets them: candidates may"
                    " differ in everything else"
                )
        return candidates

    def _read(self, X: Any, y: Any, domain: Any = None) -> SearchRecords:
        """Records that have places, with their labels as a vector."""
        if X is None:
            refuse("X", X, "it must be records as the estimator takes them")
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if not len(labels):
            raise ShapeError("y has 0 sample(s), but there must be records")
        if is_regressor(self.estimator):
            labels = read_targets(labels)
        if isinstance(X, Table):
            check_consistent_length(range(X.rows), labels)
        else:
            X = indexable(X, labels)[0]
        if domain is not None and not takes(self.estimator, "sample_domain"):
            raise ParameterError(
                "sample_domain is there, but only estimators of adaptation have domains"
            )
        return SearchRecords(X, labels, None if domain is None else np.asarray(domain))

    def _hold_out(
        self, records: SearchRecords, stream: np.random.Generator | None
    ) -> tuple[SearchRecords, Judge]:
        """The records to learn from, and the judge that holds the others."""
        if self.scoring is not None:
            rule = (
                "private records are scored by the share of correct ones or the squared error: give"
                " X_public and y_public for another score"
            )
            refuse("scoring", self.scoring, rule)
        allowed = np.ones(len(records), bool)
        if records.domain is not None:
            allowed = read_domains(records.domain, len(records))
        generator = make_public_generator(stream)
        learned, held = records.split(self.holdout, allowed, generator)
        return learned, HeldOutJudge(held, self._find_target_bounds(records.y))

    def _find_target_bounds(self, labels: NDArray[Any]) -> tuple[float, float] | None:
        if not is_regressor(self.estimator):
            if self.target_bounds is not None:
                refuse("target_bounds", self.target_bounds, "only a regressor has a target")
            return None
        name = f"{path_to_last(self.estimator)}target_bounds"
        bounds = self.target_bounds
        if bounds is None:
            bounds = self.estimator.get_params().get(name)
        if bounds is None and self.epsilon == math.inf:
            # As the estimator does where nothing is protected.
            low, high = float(labels.min()), float(labels.max())
            return low, high if high > low else low + max(abs(low), 1.0)
        if bounds is None:
            raise ParameterError(
                "target_bounds = None, but they must be given, here or to the estimator: scores of"
                " private records count errors in widths of these bounds"
            )
        return ordered_pair("target_bounds", bounds)

    def _read_public(self, X_public: Any, y_public: Any) -> Judge | None:
        if X_public is None and y_public is None:
            return None
        if X_public is None or y_public is None:
            missing = "X_public" if X_public is None else "y_public"
            raise ParameterError(f"{missing} = None, but X_public and y_public go together")
        default = "r2" if is_regressor(self.estimator) else "accuracy"
        scoring = default if self.scoring is None else self.scoring
        scorer = check_scoring(self.estimator, scoring=scoring)
        return PublicJudge(scorer, self._read(X_public, y_public))

    def _rehearse(
        self,
        plan: SearchPlan,
        candidates: list[dict[str, Any]],
        records: SearchRecords,
        learned: SearchRecords,
        judge: Judge,
    ) -> PrivacyRecord:
        """The record of the whole, once everything has passed that can be checked beforehand."""
        asked = []
        for params in candidates:
            asked.append(self._rehearse_fit(params, plan.fit, learned)[1])
            whole, record = self._rehearse_fit(params, plan.refit or plan.fit, records)
            asked.append(record)
            if isinstance(judge, PublicJudge):
                # As many rows as there are private ones: the number of rows matters to a fit.
                public = judge.records.take(np.arange(len(records)) % len(judge.records))
                public = dataclasses.replace(public, domain=records.domain)
                check_public_columns(whole, self._rehearse_fit(params, plan.fit, public)[0])
        if isinstance(judge, HeldOutJudge):
            judge.check(plan)
            note_miss(len(candidates), len(judge.records), plan.choice)
        return self._make_record(asked, plan)

    def _rehearse_fit(
        self, params: dict[str, Any], price: FitPrice, records: SearchRecords
    ) -> tuple[Any, PrivacyRecord]:
        candidate = make_candidate(self.estimator, params, price)
        return candidate, rehearse_fit(candidate, records, price)

    def _make_record(self, asked: list[PrivacyRecord], plan: SearchPlan) -> PrivacyRecord:
        sources = {rng_of(self.test_seed), *(record.rng for record in asked)}
        is_exact = all(record.numerics == "exact" for record in asked)
        assert self.epsilon is not None
        return PrivacyRecord(
            mechanism=(
                f"sklearn.PrivateSearchCV, {plan.candidates} candidates at epsilon"
                f" {plan.fit.epsilon:.3g}, the first {asked[0].mechanism}"
            ),
            source=(
                "parallel composition (McSherry 2009) of fits (Kairouz, Oh and Viswanath 2017) and"
                " a choice (McKenna and Sheldon 2020), basic composition with the last fit"
            ),
            neighbors="replace_one",
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            noise="that of each fit, coins of permute-and-flip, and discrete Laplace on a score",
            numerics="exact" if is_exact else "idealized",
            rng=OS_ENTROPY if sources == {OS_ENTROPY} else TEST_STREAM,
        )

    def _make(self, params: dict[str, Any], price: FitPrice | None, records: SearchRecords) -> Any:
        """A candidate, fit at this price."""
        candidate = make_candidate(self.estimator, params, price)
        return fit_charged(candidate, records, None if price is None else Budget(*price))

    @property
    def _inner(self) -> Any:
        return getattr(self, "best_estimator_", self.estimator)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the chosen classifier."""
        check_is_fitted(self)
        classes: NDArray[Any] = self.best_estimator_.classes_
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X in fit.

        Raises:
            AttributeError: fit has not been called.
        """
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("PrivateSearchCV has no n_features_in_ before fit")
        return int(self.best_estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of X in fit; only where X had names.

        Raises:
            AttributeError: fit has not been called.
        """
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("PrivateSearchCV has no feature_names_in_ before fit")
        names: NDArray[Any] = self.best_estimator_.feature_names_in_
        return names

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts with the chosen candidate.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            What the chosen candidate predicts, shape (m,).

        Raises:
            ValueError: fit has not been called (a NotFittedError), or the candidate refuses X.
        """
        check_is_fitted(self)
        labels: NDArray[Any] = self.best_estimator_.predict(X)
        return labels

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of every class with the chosen candidate.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, K).

        Raises:
            ValueError: As in predict.
        """
        check_is_fitted(self)
        shares: Floats = self.best_estimator_.predict_proba(X)
        return shares

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Computes the scores of records with the chosen candidate.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            What the chosen candidate computes, of shape (m,) or (m, K).

        Raises:
            ValueError: As in predict.
        """
        check_is_fitted(self)
        scores: Floats = self.best_estimator_.decision_function(X)
        return scores

    def score(self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None) -> float:
        """Computes the score of the chosen candidate, an unprotected release about X and y.

        best_score_ has been paid for. This one has not: X and y must be public.

        Args:
            X: Public records, with the columns of fit.
            y: Their labels or targets.
            sample_domain: The domain of each row, for an estimator of adaptation; None passes
                nothing on.

        Returns:
            The score, as the estimator computes it.

        Raises:
            ValueError: As in predict, or y has another length.
        """
        check_is_fitted(self)
        domains = {} if sample_domain is None else {"sample_domain": sample_domain}
        return float(self.best_estimator_.score(X, y, **domains))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a candidate has been chosen."""
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: a search is of the kind that its estimator is."""
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags


def check_public_columns(candidate: Any, other: Any) -> None:
    """Refuse public records whose columns are not those of the private ones."""
    for name in ("n_features_in_", "feature_names_in_"):
        mine, others = np.asarray(getattr(candidate, name, ())), getattr(other, name, ())
        if not np.array_equal(mine, others):
            raise ShapeError("X_public has other columns than X, but they must be the same")


def note_miss(candidates: int, held: int, epsilon: float) -> None:
    """Warn of a choice that says little, by the theorem on permute-and-flip."""
    miss = 2 * math.log(candidates / _RARE) / epsilon / held
    if candidates == 1:
        note("param_grid has 1 candidate: without a search it could be fit at all of epsilon")
    elif miss > _LARGEST_MISS:
        note(
            f"the choice may miss the best score by {min(miss, 1):.2g}: more records, a larger"
            " epsilon or holdout, fewer candidates or public records would help"
        )


def list_results(candidates: list[dict[str, Any]], choice: Choice) -> dict[str, Any]:
    """What is public or released of all candidates, as columns."""
    results: dict[str, Any] = {}
    for name in sorted({name for params in candidates for name in params}):
        values = np.ma.array(np.empty(len(candidates), object), mask=True)
        for place, params in enumerate(candidates):
            if name in params:
                values[place] = params[name]
        results[f"param_{name}"] = values
    results |= {
        "params": candidates,
        "chosen": np.arange(len(candidates)) == choice.index,
    }
    if choice.scores is not None:
        better = choice.scores[None, :] > choice.scores[:, None]
        results["mean_test_score"] = choice.scores
        results["rank_test_score"] = 1 + better.sum(axis=1)
    return results
