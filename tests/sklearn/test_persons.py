"""Estimators for people who have several rows."""

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hdp_fast.budget import Budget
from hdp_fast.data import bound_rows
from hdp_fast.data.persons import gaussian_share_of_row
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import PrivateSGD, sufficient_statistics
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0, 10, (3000, 2))
BITS = (ROWS.sum(axis=1) > 10).astype(int)
PEOPLE = np.array([f"person {row // 3}" for row in range(3000)])
COMMON = {"epsilon": 2.0, "bounds": (0, 10), "test_seed": 1}
KINDS = {
    "statistics": (PrivateClassifier(**COMMON, classes=[0, 1], method="statistics"), BITS),
    "sgd": (PrivateClassifier(**COMMON, classes=[0, 1], method="sgd"), BITS),
    "regression": (PrivateRegressor(**COMMON, target_bounds=(0, 1), method="statistics"), BITS),
}
everyone = pytest.mark.parametrize("kind", KINDS)
# Noise of gradients takes seconds to find.
quickly = pytest.mark.parametrize("kind", ["statistics", "regression"])
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


@quickly
def test_people_with_one_row_each_cost_what_rows_cost(kind):
    learner, y = KINDS[kind]
    rows = learner.fit(ROWS, y).predict(ROWS)
    people = learner.fit(ROWS, y, ids=np.arange(3000))
    assert (people.predict(ROWS) == rows).all()
    assert people.record_.neighbors == "replace_person"
    assert people.record_.epsilon == 2.0


@quickly
def test_rows_beyond_the_bound_are_left_out(kind):
    learner, y = KINDS[kind]
    people = np.concatenate((np.zeros(1000, int), np.arange(1, 2001)))
    kept, owners = bound_rows(people, 2), {"rows_per_person": 2}
    some = learner.fit(ROWS, y, ids=people, **owners).predict(ROWS)
    others = learner.fit(ROWS[kept], y[kept], ids=people[kept], **owners).predict(ROWS)
    assert (some == others).all()


@quickly
def test_noise_grows_with_the_rows_of_a_person(kind, monkeypatch):
    learner, y = KINDS[kind]
    seen = []

    def calibrate(*arguments):
        seen.append(arguments[-2:])
        return statistics_noise(*arguments)

    statistics_noise = sufficient_statistics.calibrate
    monkeypatch.setattr(sufficient_statistics, "calibrate", calibrate)
    learner.fit(ROWS, y, ids=PEOPLE, rows_per_person=3)
    rest = 2.0 * 0.9, 1e-6 * 0.9
    assert seen[0] == pytest.approx(gaussian_share_of_row(*rest, 3), rel=1e-9)
    assert learner.record_.mechanism.endswith("at most 3 rows a person")


def test_gradients_are_planned_and_learned_for_people(monkeypatch):
    learner, y = KINDS["sgd"]
    seen = []
    monkeypatch.setattr(PrivateSGD, "plan", lambda sgd, **more: seen.append(more))
    monkeypatch.setattr(PrivateSGD, "learn", lambda sgd, rows, y, **more: seen.append(more))
    learner.fit(ROWS, y, ids=PEOPLE, rows_per_person=2)
    assert all(more["rows_per_person"] == 2 for more in seen)
    kept = PEOPLE[bound_rows(PEOPLE, 2)]
    assert len(set(zip(seen[-1]["ids"].tolist(), kept.tolist(), strict=True))) == len(set(kept))
    assert len(set(seen[-1]["ids"].tolist())) == len(set(kept))


@quickly
def test_the_fit_is_charged_to_a_budget_of_people(kind):
    learner, y = KINDS[kind]
    budget = Budget(2.0, 1e-6, neighbors="replace_person")
    with pytest.raises(ParameterError, match="replace_person"):
        learner.fit(ROWS, y, budget=budget)
    learner.fit(ROWS, y, ids=PEOPLE, rows_per_person=2, budget=budget)
    assert budget.spent == (2.0, 1e-6)


def test_ids_are_routed_and_sliced_with_the_rows():
    learner, y = KINDS["statistics"]
    budget = Budget(4.0, 2e-6, neighbors="replace_person")
    with config_context(enable_metadata_routing=True):
        asked = PrivateClassifier(**learner.get_params())
        asked.set_fit_request(ids=True, rows_per_person=True, budget=True)
        pipeline = make_pipeline(FunctionTransformer(), asked)
        params = {"ids": PEOPLE, "rows_per_person": 2, "budget": budget, "groups": PEOPLE}
        folds = cross_validate(
            pipeline, ROWS, y, cv=GroupKFold(2), params=params, return_estimator=True
        )
    assert budget.spent.epsilon == 4
    assert all(fold[-1].record_.neighbors == "replace_person" for fold in folds["estimator"])
    pipeline.fit(ROWS, y, privateclassifier__ids=PEOPLE)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"ids": [1, 2]}, ShapeError),
        ({"rows_per_person": 2}, ParameterError),
        ({"ids": PEOPLE, "rows_per_person": 0}, ParameterError),
        ({"ids": ROWS[:, 0] > 1}, ParameterError),
    ],
)
@everyone
def test_bad_owners_are_refused_before_anything_is_spent(kind, more, error):
    learner, y = KINDS[kind]
    budget = Budget(5.0, 1e-5)
    with pytest.raises(error):
        learner.fit(ROWS, y, budget=budget, **more)
    assert budget.spent.epsilon == 0
