"""Parameters of labelers are read, set and cloned as scikit-learn does it."""

import dataclasses

import numpy as np
import pytest
from voters import Q, X, Y, fitted, labeler, soft

from hdp_fast import Budget
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import PrivateLearner

base = pytest.importorskip("sklearn.base")
linear_model = pytest.importorskip("sklearn.linear_model")


def learner():
    return PrivateLearner(labeler(), linear_model.LogisticRegression(C=3.0), private="labels")


@pytest.mark.parametrize("make", [labeler, soft, learner])
def test_a_clone_has_equal_parameters_and_no_members(make):
    made = make()
    clone = base.clone(made)
    assert type(clone) is type(made)
    assert repr(clone) == repr(made)
    names = made.get_params(deep=False)
    assert list(names) == [part.name for part in dataclasses.fields(made) if part.init]
    for name, value in clone.get_params(deep=False).items():
        assert value is getattr(clone, name)


def test_a_clone_of_what_is_fitted_is_not_fitted():
    made = fitted()
    clone = base.clone(made)
    assert not hasattr(clone, "members_")
    with pytest.raises(ParameterError, match="fit must train them first"):
        clone.label(Q)
    assert clone.fit(X, Y).label(Q).queries_left == made.queries_left - len(Q)


class Spends:
    """A learner with a budget among its parameters."""

    def __init__(self, budget=None):
        self.budget = budget

    def get_params(self, deep=True):
        return {"budget": self.budget}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def test_a_budget_is_shared_by_clones():
    budget = Budget(1)
    assert base.clone(labeler(Spends(budget))).learner.budget is budget
    assert base.clone(soft(budget)).learner is budget


def test_parameters_of_parameters_are_read_and_set():
    made = learner()
    assert made.get_params()["final__C"] == 3.0
    assert made.get_params()["labeler__learner__priors"] is None
    assert made.set_params(final__C=2.0, labeler__queries=9, bottoms="drop") is made
    assert (made.final.C, made.labeler.queries, made.bottoms) == (2.0, 9, "drop")
    tree = linear_model.SGDClassifier()
    made.set_params(final__alpha=0.5, final=tree)
    assert made.final is tree
    assert tree.alpha == 0.5


@pytest.mark.parametrize("name", ["unstable", "size", "classes_", "size__C"])
def test_a_name_that_is_none_is_refused_and_changes_nothing(name):
    made = labeler()
    with pytest.raises(ParameterError, match="PrivateLabeler has no"):
        made.set_params(**{"queries": 7, name: 1})
    assert made.queries == 50
