"""Parities of people who have several rows."""

import numpy as np
import pytest

from hdp_fast import parity
from hdp_fast.budget import Budget
from hdp_fast.data import bound_rows
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.gf2 import BitMatrix

X = np.random.default_rng(0).integers(0, 2, (4000, 6), dtype=np.uint8)
Y = X[:, 1] ^ X[:, 4]
PEOPLE = np.arange(4000) // 2
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_people_with_one_row_each_cost_what_rows_cost(neighbors):
    some = {"epsilon": 1.0, "neighbors": neighbors, "random_state": 1}
    rows = parity.learn(X, Y, **some)
    people = parity.learn(X, Y, ids=np.arange(4000), **some)
    assert (rows.mask == people.mask).all()
    assert rows.alpha == people.alpha
    relation = {"replace_one": "replace_person", "add_remove": "add_remove_person"}
    assert people.record.neighbors == relation[neighbors]


@pytest.mark.parametrize("make", [np.asarray, BitMatrix.from_dense])
def test_rows_cost_a_share_and_the_others_are_left_out(make):
    people = np.concatenate((np.zeros(1000, int), np.arange(3000)))
    kept = bound_rows(people, 2)
    some = {"beta": 0.1, "random_state": 1}
    result = parity.learn(make(X), Y, ids=people, rows_per_person=2, epsilon=1.0, **some)
    alone = parity.learn(X[kept], Y[kept], epsilon=0.5, **some)
    assert result.alpha == alone.alpha
    assert (result.mask == alone.mask).all()
    assert result.record.epsilon == 1.0
    assert result.record.mechanism.endswith("at most 2 rows a person")


def test_plans_are_for_the_share_of_a_row():
    plan = parity.plan(6, alpha=0.1, beta=0.1, epsilon=0.5)
    parity.learn(X, Y, epsilon=1.0, plan=plan, ids=PEOPLE, rows_per_person=2)
    with pytest.raises(ParameterError, match="the plan is for"):
        parity.learn(X, Y, epsilon=0.5, plan=plan, ids=PEOPLE, rows_per_person=2)


def test_budgets_of_people_are_charged():
    budget = Budget(1.0, neighbors="add_remove_person")
    parity.learn(X, Y, epsilon=1.0, neighbors="add_remove", ids=PEOPLE, budget=budget)
    assert budget.remaining.epsilon == 0


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"ids": [1]}, ShapeError),
        ({"rows_per_person": 2}, ParameterError),
        ({"ids": PEOPLE, "y": Y[1:]}, ShapeError),
        ({"ids": PEOPLE, "epsilon": "1", "rows_per_person": 2}, ParameterError),
        ({"ids": PEOPLE, "epsilon": -1.0, "rows_per_person": 2}, ParameterError),
        ({"ids": PEOPLE, "epsilon": np.inf, "rows_per_person": 2}, ParameterError),
    ],
)
def test_bad_owners_are_refused_before_anything_is_spent(more, error):
    budget = Budget(9.0)
    with pytest.raises(error):
        parity.learn(X, **{"y": Y, "epsilon": 1.0, "budget": budget, **more})
    assert budget.spent.epsilon == 0
