"""Estimators of adaptation in scikit-learn's tools, and what its searches cost."""

import numpy as np
import pytest

from hdp_fast import Budget
from hdp_fast.adaptation import ConvexAdaptation, NonConvexAdaptation
from hdp_fast.exceptions import BudgetExceeded

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

COINS = np.random.default_rng(0)
X_PUBLIC = COINS.uniform(-0.5, 0.5, (90, 3))
X_PRIVATE = COINS.uniform(-0.5, 0.5, (31, 3))
TRUTH = np.array([0.8, -0.4, 0.2])
KINDS = {
    ConvexAdaptation: ("kappa_1", lambda X: X @ TRUTH, "neg_mean_squared_error"),
    NonConvexAdaptation: ("lambda_1", lambda X: (X @ TRUTH >= 0).astype(int), "accuracy"),
}
GRID = [0.1, 0.5, 1.0]


def search(kind, budget, **options):
    name, label, scoring = KINDS[kind]
    model = kind(epsilon=0.5, delta=1e-6, steps=3, budget=budget, **options)
    found = GridSearchCV(model, {name: GRID}, scoring=scoring, cv=2, error_score="raise")
    target = {"X_target": X_PRIVATE, "y_target": label(X_PRIVATE)}
    return found.fit(X_PUBLIC, label(X_PUBLIC), **target)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fit_of_a_search_is_paid_for(kind):
    budget = Budget(4, 1e-4)
    found = search(kind, budget)
    # Two folds of each candidate, and the best one on everything.
    assert len(budget.records) == 2 * len(GRID) + 1
    assert budget.spent == pytest.approx((7 * 0.5, 7e-6))
    assert found.best_estimator_.budget is budget
    assert found.best_params_ in list(ParameterGrid(found.param_grid))
    assert found.predict(X_PRIVATE).shape == (31,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_ends_where_the_budget_does(kind):
    budget = Budget(1.2, 1e-4)
    with pytest.raises(BudgetExceeded):
        search(kind, budget)
    assert budget.spent[0] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_clones_share_the_budget_and_nothing_that_was_learned(kind):
    _, label, _ = KINDS[kind]
    budget = Budget(4, 1e-4)
    model = kind(epsilon=0.5, delta=1e-6, steps=3, budget=budget)
    model.fit(X_PUBLIC, label(X_PUBLIC), X_PRIVATE, label(X_PRIVATE))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.budget is budget
    assert not hasattr(copy, "coef_")
    assert copy.record_ is None
    assert len(budget.records) == 1
