"""Adaptation to a target whose people have several records."""

import numpy as np
import pytest

from hdp_fast import accounting
from hdp_fast.adaptation import (
    ConvexAdaptation,
    MomentAdaptation,
    NonConvexAdaptation,
    PrivateDiscrepancyMinimization,
    TargetSGD,
)
from hdp_fast.adaptation.privacy import Privacy
from hdp_fast.budget import Budget
from hdp_fast.data import bound_rows
from hdp_fast.data.goal import Goal
from hdp_fast.data.persons import Persons
from hdp_fast.exceptions import ParameterError, ShapeError

RNG = np.random.default_rng(0)
SOURCE = RNG.uniform(-0.5, 0.5, (400, 2))
TARGET = RNG.uniform(-0.5, 0.5, (600, 2))
Y_SOURCE, Y_TARGET = SOURCE[:, 0], TARGET[:, 1]
PRICE, SEED = {"epsilon": 2.0, "delta": 1e-6}, 1
BALL = {"radius": 1.0, "norm_bound": 1.0}
SOFTMAX = {**PRICE, **BALL, "steps": 3, "alpha": 0.5}
LEARNERS = {
    "convex": (ConvexAdaptation(**PRICE, **BALL, alpha=0.5, steps=3), None),
    "source": (ConvexAdaptation(**PRICE, **BALL, alpha=0.5, steps=3, private="source"), None),
    "nonconvex": (NonConvexAdaptation(**SOFTMAX, loss="logistic"), 0.0),
    "moments": (MomentAdaptation(**PRICE), None),
    "minimization": (PrivateDiscrepancyMinimization(**PRICE, norm_bound=1.0), None),
    "sgd": (TargetSGD(**PRICE, **BALL, steps=2), None),
}
everyone = pytest.mark.parametrize("name", LEARNERS)
# Noise of gradients takes seconds to find.
quickly = pytest.mark.parametrize("name", [name for name in LEARNERS if name != "sgd"])
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def fit(name, part=slice(None), **more):
    learner, cut = LEARNERS[name]
    some = {"source": (part, slice(None))}.get(name, (slice(None), part))
    labels = [Y_SOURCE, Y_TARGET]
    if cut is not None:
        labels = [(y > cut).astype(int) for y in labels]
    data = SOURCE[some[0]], labels[0][some[0]], TARGET[some[1]], labels[1][some[1]]
    return learner.fit(*data, random_state=SEED, **more)


def size(name):
    return len(SOURCE) if name == "source" else len(TARGET)


@quickly
def test_people_with_one_row_each_cost_what_rows_cost(name):
    rows = fit(name).coef_
    people = fit(name, ids=np.arange(size(name)))
    np.testing.assert_array_equal(people.coef_, rows)
    assert people.record_.neighbors == "replace_person"
    assert people.record_.epsilon == pytest.approx(2.0, rel=0.02)


@quickly
def test_rows_beyond_the_bound_are_left_out(name):
    people = np.concatenate((np.zeros(200, int), np.arange(1, size(name) - 199)))
    kept, owners = bound_rows(people, 2), {"rows_per_person": 2}
    some = fit(name, ids=people, **owners)
    coef, record = some.coef_, some.record_
    np.testing.assert_array_equal(fit(name, kept, ids=people[kept], **owners).coef_, coef)
    assert record.mechanism.endswith("at most 2 rows a person")


@pytest.mark.parametrize("name", ["convex", "source", "nonconvex", "minimization"])
def test_noise_is_as_many_times_more(name):
    one = fit(name).noise_
    three = fit(name, ids=np.arange(size(name)), rows_per_person=3).noise_
    assert three == pytest.approx(3 * one, rel=1e-3)


def test_the_mu_of_a_person_is_that_of_the_price():
    row = Privacy(Goal(2.0, 1e-6), "exact")
    person = row.change(persons=Persons(np.ones(3, bool), 3))
    assert 3 * person.mu() <= row.mu() <= accounting.gaussian_mu(2.0, 1e-6)
    assert person.mu() == pytest.approx(row.mu() / 3, rel=1e-4)


@everyone
def test_the_fit_is_charged_to_a_budget_of_people(name):
    budget = Budget(2.0, 1e-6, neighbors="replace_person")
    with pytest.raises(ParameterError, match="replace_person"):
        fit(name, budget=budget)
    for more, error in (
        ({"ids": [1, 2]}, ShapeError),
        ({"rows_per_person": 2}, ParameterError),
        ({"ids": np.arange(size(name)), "rows_per_person": 0}, ParameterError),
    ):
        with pytest.raises(error):
            fit(name, budget=budget, **more)
    assert budget.spent.epsilon == 0
    fit(name, budget=budget, ids=np.arange(size(name)) // 2)
    assert budget.spent.epsilon > 1.9
