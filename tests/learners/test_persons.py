"""Learners for people who have several rows."""

import math
from functools import partial

import numpy as np
import pytest

from hdp_fast import accounting
from hdp_fast.budget import Budget
from hdp_fast.data import bound_rows
from hdp_fast.data.persons import share_of_row
from hdp_fast.exceptions import InsufficientSamples, ParameterError, ShapeError
from hdp_fast.gf2 import BitMatrix
from hdp_fast.learners import (
    Conjunctions,
    DoublingLearner,
    ExponentialLearner,
    FeatureMap,
    PrivateSGD,
    SufficientStatistics,
)

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (6000, 3), dtype=np.uint8)
ROWS = BITS / 2
LABELS = BITS[:, 0] & BITS[:, 2]
ALL = slice(None)
CLASSES = [Conjunctions(3, 0), Conjunctions(3, 1), Conjunctions(3, 2)]
STATISTICS = {
    relation: SufficientStatistics(
        FeatureMap.identity(3), classes=[0, 1], second_moments=True, neighbors=relation
    )
    for relation in ("replace_one", "add_remove")
}
SGD = PrivateSGD(loss="logistic", epsilon=1.0, steps=4)
NOISY = PrivateSGD(loss="logistic", noise_multiplier=3.0, steps=20, batch_size=50)
EXPONENTIAL = ExponentialLearner(Conjunctions(3, 2), epsilon=1.0)
DOUBLING = DoublingLearner(CLASSES, alpha=0.2, beta=0.1, epsilon=1.0)


def release(relation, part, **more):
    price = {"epsilon": 1.0, "delta": 1e-6}
    return STATISTICS[relation].release(ROWS[part], LABELS[part], **price, **more)


CALLS = {
    "SufficientStatistics": partial(release, "replace_one"),
    "SufficientStatistics, add_remove": partial(release, "add_remove"),
    "PrivateSGD": lambda part, **more: SGD.learn(ROWS[part], LABELS[part], **more),
    "PrivateSGD, noise": lambda part, **more: NOISY.learn(ROWS[part], LABELS[part], **more),
    "ExponentialLearner": lambda part, **more: EXPONENTIAL.learn(BITS[part], LABELS[part], **more),
    "DoublingLearner": lambda part, **more: DOUBLING.learn(BITS[part], LABELS[part], **more),
}
everyone = pytest.mark.parametrize("name", CALLS)
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def content(result):
    return {
        name: np.asarray(getattr(result, name)).tolist()
        for name in ("weights", "sums", "moments", "n", "index", "place", "records")
        if hasattr(result, name) and getattr(result, name) is not None
    }


@everyone
def test_people_with_one_row_each_cost_what_rows_cost(name):
    call = partial(CALLS[name], ALL, random_state=1)
    rows, people = call(), call(ids=[f"person {number}" for number in range(len(ROWS))])
    assert content(rows) == content(people)
    relation = {"replace_one": "replace_person", "add_remove": "add_remove_person"}
    assert people.record.neighbors == relation[rows.record.neighbors]
    assert people.record.epsilon == rows.record.epsilon
    assert "at most 1 row a person" in people.record.mechanism


@everyone
def test_a_person_of_a_thousand_rows_counts_as_two(name):
    people = np.concatenate((np.zeros(1000, int), np.arange(1, 5001)))
    mask = bound_rows(people, 2)
    assert mask.sum() == 5002
    call = partial(CALLS[name], rows_per_person=2, random_state=1)
    assert content(call(ALL, ids=people)) == content(call(mask, ids=people[mask]))


@everyone
def test_the_charge_is_that_of_a_person(name):
    people = np.arange(len(ROWS)) // 3
    relation = "add_remove_person" if "add_remove" in name else "replace_person"
    budget = Budget(9.0, 1e-5, neighbors=relation)
    record = CALLS[name](ALL, ids=people, rows_per_person=3, budget=budget).record
    assert budget.records[0].record == record
    if name != "PrivateSGD, noise":
        assert 0.99 < budget.spent.epsilon <= 1.0
    with pytest.raises(ParameterError, match="the budget is for"):
        CALLS[name](ALL, budget=budget)


@pytest.mark.parametrize("relation", STATISTICS)
def test_the_mu_of_statistics_is_that_of_a_person(relation):
    ids, price = np.arange(len(ROWS)), {"epsilon": 8.0, "delta": 1e-6}
    one = STATISTICS[relation].release(ROWS, LABELS, **price, ids=ids)
    three = STATISTICS[relation].release(ROWS, LABELS, **price, ids=ids, rows_per_person=3)
    assert three.sums_deviation == pytest.approx(3 * one.sums_deviation, rel=1e-4)
    assert three.moments_deviation == pytest.approx(3 * one.moments_deviation, rel=1e-4)
    assert three.count_deviation == pytest.approx(3 * one.count_deviation, rel=1e-4)


def drawn(rate):
    return NOISY.composition(rate, sampling="poisson")


def test_descents_are_priced_at_the_rate_of_a_person():
    ids = np.arange(len(ROWS))
    record = NOISY.learn(ROWS, LABELS, ids=ids, rows_per_person=3).record
    exact = accounting.epsilon(drawn(3 / len(ROWS)), NOISY.delta)
    assert record.epsilon == pytest.approx(exact, rel=1e-9)
    # Group privacy of the guarantee for a row would not do.
    each = share_of_row(record.epsilon, NOISY.delta, 3)
    assert accounting.delta(drawn(1 / len(ROWS)), each.epsilon) > each.delta
    noise = SGD.learn(ROWS, LABELS, ids=ids, rows_per_person=3).plan.noise_multiplier
    assert noise == SGD.plan(n=len(ROWS), d=3, rows_per_person=3).noise_multiplier
    assert noise > SGD.plan(n=len(ROWS), d=3).noise_multiplier


def test_noise_that_was_calibrated_for_more_people_is_refused():
    learner = SGD.calibrate(epsilon=1.0, n=3000)
    people = np.arange(len(ROWS))
    learner.learn(ROWS, LABELS, ids=people, rows_per_person=2)
    with pytest.raises(InsufficientSamples):
        learner.learn(ROWS, LABELS, ids=people, rows_per_person=3)


def test_without_noise_rows_are_left_out_as_well():
    people = np.arange(len(ROWS)) // 3
    free = PrivateSGD(loss="logistic", epsilon=math.inf, steps=5, batch_size=5)
    assert free.learn(ROWS, LABELS, ids=people).plan.n == 2000
    description = STATISTICS["replace_one"]
    assert description.release(ROWS, LABELS, epsilon=math.inf, delta=0.1, ids=people).n == 2000


def test_rates_of_choices_are_divided():
    people, few = np.arange(len(ROWS)), {"rows_per_person": 1000, "random_state": 0}
    # With a thousandth of epsilon the choice is nearly uniform.
    seen = {EXPONENTIAL.learn(BITS[:99], LABELS[:99], ids=people[:99], **few).index}
    for seed in range(1, 40):
        few["random_state"] = seed
        seen.add(EXPONENTIAL.learn(BITS[:99], LABELS[:99], ids=people[:99], **few).index)
    assert len(seen) > 5
    with pytest.raises(InsufficientSamples):
        DOUBLING.learn(BITS, LABELS, ids=people, rows_per_person=100)


@pytest.mark.parametrize(
    "make", [np.asarray, BitMatrix.from_dense, EXPONENTIAL.prepare, np.asfortranarray]
)
def test_rows_of_every_container_are_left_out(make):
    people = np.arange(len(ROWS)) // 3
    mask = bound_rows(people)
    learned = EXPONENTIAL.learn(make(BITS), LABELS, ids=people, random_state=1)
    assert learned.index == EXPONENTIAL.learn(BITS[mask], LABELS[mask], random_state=1).index


def test_frames_lose_rows_and_keep_names():
    pandas = pytest.importorskip("pandas")
    frame, people = pandas.DataFrame(ROWS, columns=list("abc")), pandas.Series(np.arange(6000) // 3)
    mask = bound_rows(people)
    model = SGD.learn(frame, LABELS, ids=people, random_state=1)
    assert model.feature_names_in_ == ("a", "b", "c")
    assert content(model) == content(SGD.learn(ROWS, LABELS, ids=people, random_state=1))
    released = release("replace_one", mask, random_state=1)
    description, price = STATISTICS["replace_one"], {"epsilon": 1.0, "delta": 1e-6}
    others = description.release(frame, LABELS, **price, ids=people, random_state=1)
    assert content(released) == content(others)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"ids": [1, 2]}, ShapeError),
        ({"rows_per_person": 2}, ParameterError),
        ({"ids": np.arange(6000), "rows_per_person": 0}, ParameterError),
        ({"ids": BITS[:, 0] > 0}, ParameterError),
    ],
)
@everyone
def test_bad_owners_are_refused_before_anything_is_spent(name, more, error):
    budget = Budget(1.0, 1e-6, neighbors="replace_person")
    with pytest.raises(error):
        CALLS[name](ALL, budget=budget, **more)
    assert budget.spent.epsilon == 0
