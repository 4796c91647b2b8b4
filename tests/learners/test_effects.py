"""The effects of a linear model beside the noise of its release."""

import dataclasses
import json

import numpy as np
import pytest

from hdp_fast import ParameterError
from hdp_fast.data import Category, Label, Number, Schema, read_frame
from hdp_fast.learners import CenteredLinear, PrivateModel

COLUMNS = {name: Number(0, 1) for name in ("strong", "bent", "idle")} | {
    "home": Category(("own", "rent"))
}
SCHEMA = Schema(Label("label", positive=("1",)), COLUMNS)
TARGET = Schema(Label("label", bounds=(-2, 2)), COLUMNS)


def make_table(seed, n=6_000, chance=False):
    random = np.random.default_rng(seed)
    strong, bent, idle = random.random((3, n))
    score = 4 * (strong - 0.5) + 12 * ((bent - 0.5) ** 2 - 1 / 12)
    label = (score + random.logistic(size=n) > 0).astype(int)
    if chance:
        label = random.permutation(label)
    home = random.choice(["own", "rent"], n)
    return read_frame({"strong": strong, "bent": bent, "idle": idle, "home": home, "label": label})


def learn(table, method="statistics", schema=SCHEMA, **changed):
    settings = {"epsilon": 2.0, "delta": 1e-6, "method": method} | changed
    return CenteredLinear(schema, **settings).learn(table, random_state=1)


@pytest.mark.parametrize("method", ["sgd", "statistics"])
def test_told_effects_are_those_that_are_there(method):
    told = learn(make_table(0), method).told_effects()
    assert {effect.name for effect in told.told} == {"strong", "bent"}
    assert len(told.effects) == 5
    assert told.signal > 1
    sizes = [effect.size for effect in told.effects]
    assert sizes == sorted(sizes, reverse=True)
    bent = next(effect for effect in told.effects if effect.name == "bent")
    # A curve: its square tells, and its slope does not.
    assert len(bent.squares) == 1
    assert abs(bent.squares[0]) > 2 * abs(bent.weights[0])


@pytest.mark.parametrize("method", ["sgd", "statistics"])
def test_told_effects_of_chance_labels_are_hardly_any(method):
    told = [learn(make_table(seed, chance=True), method).told_effects() for seed in range(12)]
    # 60 effects, of which one in 22 passes two deviations by chance.
    assert sum(len(one.told) for one in told) <= 9
    assert sum(one.signal > 1 for one in told) <= 1


def repeat(schema, method, runs=40):
    """The deviation of coefficients in the table's units, over what is said of their noise."""
    table = make_table(1)
    learner = CenteredLinear(schema, epsilon=2.0, delta=1e-6, method=method)
    models = [learner.learn(table, random_state=seed) for seed in range(runs)]
    effects = [{one.name: one for one in model.told_effects().effects} for model in models]
    units = [dict(zip(model.rows.names, model.rows.units[0], strict=True)) for model in models]
    # Not "strong": its weight varies with released scales, by which rows are shrunk more or less.
    names = ("idle", "home=own", "home=rent")
    pairs = list(zip(effects, units, strict=True))
    weights = np.array([[one[k].weights[0] * unit[k] for k in names] for one, unit in pairs])
    said = np.array([[one[k].deviations[0] * unit[k] for k in names] for one, unit in pairs])
    return weights.std(axis=0, ddof=1) / said.mean(axis=0)


@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
def test_deviations_are_those_of_repeated_releases(schema):
    # A deviation of 40 runs is off by a ninth, and means and scales vary a little, too.
    ratio = repeat(schema, "statistics")
    assert (ratio > 0.6).all()
    assert (ratio < 2.0).all()


def test_deviations_of_gradients_are_no_smaller_than_those_of_repeated_releases():
    ratio = repeat(SCHEMA, "sgd")
    assert (ratio > 0.05).all()
    assert (ratio < 1.3).all()


def test_deviations_are_kept_in_the_file_and_may_be_missing():
    model = learn(make_table(2))
    again = PrivateModel.from_json(model.to_json())
    assert again.told_effects() == model.told_effects()
    fields = json.loads(model.to_json())
    del fields["constant_deviations"]
    for feature in fields["features"]:
        del feature["deviations"]
    without = PrivateModel.from_json(json.dumps(fields))
    assert without.deviations is None
    told = without.told_effects()
    assert told.signal is None
    assert not told.told
    assert {effect.told for effect in told.effects} == {None}


@pytest.mark.parametrize("wrong", [-1.0, "a", None])
def test_deviations_that_are_none_are_refused(wrong):
    fields = json.loads(learn(make_table(2)).to_json())
    fields["features"][0]["deviations"] = [wrong]
    with pytest.raises(ParameterError):
        PrivateModel.from_json(json.dumps(fields))


def test_deviations_of_another_shape_are_refused():
    model = learn(make_table(2))
    wide = dataclasses.replace(model, deviations=np.ones((len(model.weights), 2)))
    with pytest.raises(ParameterError):
        PrivateModel.from_json(wide.to_json())


def test_deviations_are_none_without_noise():
    model = learn(make_table(2), epsilon=np.inf)
    assert model.deviations is None
    assert "constant_deviations" not in model.to_json()


def test_told_effects_of_many_classes_have_a_weight_for_each():
    random = np.random.default_rng(3)
    strong = random.random(6_000)
    table = {"strong": strong, "label": np.array(["a", "b", "c"])[np.digitize(strong, [0.3, 0.6])]}
    schema = Schema(Label("label", positive=("a",)), {"strong": Number(0, 1)})
    for method in ("sgd", "statistics"):
        model = learn(table, method, schema, classes=("a", "b", "c"))
        [effect] = model.told_effects().told
        assert len(effect.weights) == 3
        assert len(effect.deviations) in (3, 6)
        assert model.deviations.shape == model.weights.shape
