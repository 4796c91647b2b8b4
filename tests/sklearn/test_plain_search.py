"""Searches and cross-validations of scikit-learn: every fit is charged, and none is lost
silently."""

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from joblib import parallel_config
from sklearn import config_context
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hdp_fast import UtilityWarning
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

N = 300
ROWS = np.random.default_rng(0).uniform(0, 10, (N, 3))
BITS = (ROWS[:, 0] > 5).astype(int)
GRID = {"bounds": [(0, 10), (0, 11)]}
KINDS = {
    "classifier": (
        PrivateClassifier(epsilon=1.0, bounds=(0, 10), classes=[0, 1], method="statistics"),
        BITS,
    ),
    "regressor": (
        PrivateRegressor(epsilon=1.0, bounds=(0, 10), target_bounds=(0, 10), method="statistics"),
        ROWS[:, 0],
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_every_fit_of_a_cross_validation_is_charged(kind):
    learner, labels = kind
    budget = Budget(10.0, 1e-4)
    cross_val_score(learner, ROWS, labels, cv=3, params={"budget": budget})
    assert budget.spent == pytest.approx((3, 3e-6))
    assert len(budget.records) == 3


def test_every_fit_of_a_search_is_charged_and_the_last_one_as_well(kind):
    learner, labels = kind
    budget = Budget(10.0, 1e-4)
    search = GridSearchCV(learner, GRID, cv=2).fit(ROWS, labels, budget=budget)
    assert len(budget.records) == 5
    assert budget.spent.epsilon == 5
    assert search.best_estimator_.record_.epsilon == 1


def test_the_fit_too_many_raises():
    learner, labels = KINDS["classifier"]
    budget = Budget(3.0, 1e-4)
    search = GridSearchCV(learner, GRID, cv=2, error_score="raise")
    with pytest.raises(BudgetExceeded), pytest.warns(UtilityWarning, match="not made"):
        search.fit(ROWS, labels, budget=budget)
    assert budget.spent.epsilon == 3


def test_a_swallowed_fit_warns_once_and_names_its_epsilon():
    learner, labels = KINDS["classifier"]
    budget = Budget(1.0, 1e-4)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("default")
        scores = cross_val_score(learner, ROWS, labels, cv=4, params={"budget": budget})
    assert np.isnan(scores).sum() == 3
    texts = [str(entry.message) for entry in notes if entry.category is UtilityWarning]
    assert sum("a fit was not made" in text and "epsilon = 1 " in text for text in texts) == 1
    assert any(entry.category is FitFailedWarning for entry in notes)


def test_outside_of_a_search_the_exception_is_enough():
    learner, labels = KINDS["classifier"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BudgetExceeded):
            learner.fit(ROWS, labels, budget=Budget(0.5, 1e-4))


def test_the_budget_reaches_the_fits_of_a_pipeline_uncut_and_uncopied():
    learner, labels = KINDS["classifier"]
    seen = []

    class Watched(PrivateClassifier):
        def fit(self, X, y, *, budget=None):
            seen.append(budget)
            return super().fit(X, y, budget=budget)

    pipeline = make_pipeline(FunctionTransformer(), Watched(**learner.get_params()))
    budget = Budget(10.0, 1e-4)
    search = GridSearchCV(pipeline, {"watched__bounds": GRID["bounds"]}, cv=2)
    search.fit(ROWS, labels, watched__budget=budget)
    assert len(seen) == 5
    assert all(passed is budget for passed in seen)
    assert budget.spent.epsilon == 5


def test_a_budget_is_routed_through_a_search_and_its_pipeline():
    learner, labels = KINDS["classifier"]
    budget = Budget(10.0, 1e-4)
    with config_context(enable_metadata_routing=True):
        asked = PrivateClassifier(**learner.get_params()).set_fit_request(budget=True)
        pipeline = make_pipeline(FunctionTransformer(), asked)
        grid = {"privateclassifier__bounds": GRID["bounds"]}
        GridSearchCV(pipeline, grid, cv=2).fit(ROWS, labels, budget=budget)
        cross_validate(pipeline, ROWS, labels, cv=2, params={"budget": budget})
    assert budget.spent.epsilon == 7


def test_a_budget_that_nobody_asked_for_is_an_error_of_the_routing():
    learner, labels = KINDS["classifier"]
    budget = Budget(10.0, 1e-4)
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="budget"),
    ):
        GridSearchCV(learner, GRID, cv=2).fit(ROWS, labels, budget=budget)
    assert budget.spent.epsilon == 0


def test_threads_share_a_budget_in_memory():
    learner, labels = KINDS["classifier"]
    budget = Budget(10.0, 1e-4)
    with parallel_config("threading"):
        cross_val_score(learner, ROWS, labels, cv=4, params={"budget": budget}, n_jobs=2)
    assert budget.spent.epsilon == 4


def test_workers_need_a_budget_in_a_file_and_charge_each_fit_once(tmp_path):
    learner, labels = KINDS["classifier"]
    memory, file = (
        Budget(10.0, 1e-4),
        Budget.open(tmp_path / "study.budget", epsilon=10.0, delta=1e-4),
    )
    # Forked workers start at once, and budgets go to them as to any others.
    with parallel_config("multiprocessing", n_jobs=2):
        with pytest.raises(Exception, match="pickle") as caught:
            cross_val_score(learner, ROWS, labels, cv=2, params={"budget": memory})
        assert "Budget.open(path)" in str(caught.value) + str(caught.value.__cause__)
        assert memory.spent.epsilon == 0
        scores = cross_val_score(learner, ROWS, labels, cv=2, params={"budget": file})
    assert not np.isnan(scores).any()
    assert file.spent.epsilon == 2
    assert [entry.state for entry in file.records] == ["committed", "committed"]


def test_a_search_without_noise_takes_no_budget():
    _, labels = KINDS["classifier"]
    rival = PrivateClassifier(epsilon=math.inf, bounds=(0, 10), classes=[0, 1])
    assert GridSearchCV(rival, GRID, cv=2).fit(ROWS, labels).best_score_ > 0.9
