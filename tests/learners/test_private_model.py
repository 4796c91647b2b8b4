"""CenteredLinear and PrivateModel: what is learned from a table, and the one file of all models."""

import json
import math
import tracemalloc
import warnings

import numpy as np
import pytest

from hdp_fast import Budget, ParameterError, ShapeError
from hdp_fast.data import Category, Label, Number, Schema, read_frame, rows
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.learners import CenteredLinear, PrivateModel

RNG = np.random.default_rng(0)
N = 4_000
COLUMNS = {"age": Number(18, 90), "home": Category(("own", "rent")), "size": Number(0, 9)}
AGE, HOME = RNG.integers(18, 91, N), RNG.choice(["own", "rent", "?"], N)
SIZE = RNG.integers(0, 10, N)
SCORE = (AGE - 50) / 10 + (HOME == "own") + 0.1 * SIZE
PEOPLE = {
    "age": AGE,
    "home": HOME,
    "size": SIZE,
    "bought": np.where(SCORE + RNG.normal(0, 1, N) > 1, "yes", "no"),
    "plan": np.array(["basic", "gold", "silver"])[np.digitize(AGE, [40, 65])],
    "spent": SCORE.round(3),
}
RULE = Schema(Label("bought", positive=("yes",)), COLUMNS)
PLAN = Schema(Label("plan", positive=("gold",)), COLUMNS)
SPENT = Schema(Label("spent", bounds=(-4, 7)), COLUMNS)
PLANS = ("silver", "basic", "gold")
KINDS = {"rule": (RULE, None), "classes": (PLAN, PLANS), "target": (SPENT, None)}


def learn(kind="rule", **changed):
    schema, classes = KINDS[kind]
    settings = {"epsilon": 4.0, "delta": 1e-6, "classes": classes} | changed
    return CenteredLinear(schema, **settings).learn(PEOPLE, random_state=1)


def share_right(model, kind):
    truth = {"rule": (PEOPLE["bought"] == "yes").astype(int), "classes": PEOPLE["plan"]}[kind]
    return (np.array(model.predict(PEOPLE)) == truth).mean()


# CenteredLinear ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *((kind, method) for kind in KINDS for method in ("auto", "sgd", "statistics")),
        *(("rule", "descent"), ("classes", "descent"), ("target", "descent")),
        ("target", "evidence"),
    ],
)
def test_centered_linear_learns_what_the_schema_names(kind, method):
    model = learn(kind, method=method)
    assert model.record.mechanism.startswith("learners.CenteredLinear, ")
    assert (model.record.epsilon, model.record.delta) == (4.0, 1e-6)
    assert (model.n, model.classes) == (N, KINDS[kind][1])
    if kind == "target":
        assert model.labels is None
        errors = np.array(model.predict(PEOPLE)) - PEOPLE["spent"]
        assert np.abs(errors).mean() < 0.6
    else:
        assert share_right(model, kind) > (0.85 if kind == "rule" else 0.75)
        shares = model.probabilities(PEOPLE)
        assert shares.shape == (N, 2 if kind == "rule" else 3)
        np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_centered_linear_without_noise_protects_nobody_and_needs_no_delta():
    model = learn(epsilon=math.inf, delta=None)
    assert (model.record, model.signal) == (None, None)
    assert share_right(model, "rule") > 0.85
    assert PrivateModel.from_json(model.to_json()).record is None


def test_centered_linear_charges_the_whole_price_once():
    budget = Budget(5.0, 1e-5)
    learner = CenteredLinear(RULE, epsilon=4.0, delta=1e-6)
    learner.learn(PEOPLE, budget=budget)
    assert (budget.spent.epsilon, budget.spent.delta) == (4.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        learner.learn(PEOPLE, budget=budget)
    assert budget.spent.epsilon == 4.0


def test_centered_linear_protects_persons_by_their_ids():
    learner = CenteredLinear(RULE, epsilon=4.0, delta=1e-6)
    model = learner.learn(PEOPLE, ids=np.arange(N) // 2, rows_per_person=2)
    assert model.record.neighbors == "replace_person"


def test_centered_linear_takes_tables_and_frames_alike():
    learner = CenteredLinear(RULE, epsilon=4.0, delta=1e-6)
    texts = {name: [str(value) for value in values] for name, values in PEOPLE.items()}
    models = [learner.learn(one, random_state=2).to_json()
              for one in (PEOPLE, read_frame(PEOPLE), texts)]  # fmt: skip
    assert len(set(models)) == 1


def test_centered_linear_is_what_estimators_learn():
    """The same rows, price and random bits give the same model, bit for bit."""
    pytest.importorskip("sklearn", minversion="1.6")
    pandas = pytest.importorskip("pandas")
    from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

    frame, settings = pandas.DataFrame(PEOPLE), {"epsilon": 4.0, "delta": 1e-6, "test_seed": 1}
    plans = PrivateClassifier(schema=PLAN, classes=sorted(PLANS), **settings).fit(
        frame, frame.plan.to_numpy()
    )
    spent = PrivateRegressor(schema=SPENT, target_bounds=(-4, 7), **settings).fit(
        frame, frame.spent.to_numpy()
    )
    for estimator, kind in ((plans, "classes"), (spent, "target")):
        model = learn(kind, classes=sorted(PLANS) if kind == "classes" else None)
        theirs, ours = json.loads(estimator.to_json()), json.loads(model.to_json())
        for name in ("features", "constant", "norm_bound", "link", "n", "signal"):
            assert theirs[name] == ours[name], name
        assert theirs["record"] | {"mechanism": ""} == ours["record"] | {"mechanism": ""}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": True}, "epsilon = True"),
        ({"delta": None}, "delta must be given"),
        ({"delta": 1.5}, "delta = 1.5"),
        ({"classes": ["yes"]}, "a classifier needs two or more"),
        ({"classes": [0, 1]}, "it must list texts"),
        ({"classes": ["a", "a"]}, "each once"),
        ({"method": "svm"}, "method = 'svm'"),
    ],
)
def test_centered_linear_refuses_bad_parameters(changed, words):
    with pytest.raises(ParameterError, match=words):
        CenteredLinear(RULE, **{"epsilon": 1.0, "delta": 1e-6} | changed)
    with pytest.raises(ParameterError, match="schema"):
        CenteredLinear({"age": (0, 1)}, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"table": {"age": [1], "home": ["own"], "size": [2]}}, ParameterError, "'bought'"),
        ({"table": np.ones((5, 4))}, ParameterError, "named columns"),
        ({"ids": [1, 2]}, ShapeError, "ids has shape"),
        ({"rows_per_person": 0}, ParameterError, "rows_per_person = 0"),
        ({"random_state": -1}, ParameterError, "random_state"),
    ],
)
def test_centered_linear_refuses_before_anything_is_spent(options, error, words):
    budget = Budget(9.0, 1e-3)
    with pytest.raises(error, match=words):
        CenteredLinear(RULE, epsilon=4.0, delta=1e-6).learn(
            **{"table": PEOPLE, "budget": budget} | options
        )
    assert budget.spent.epsilon == 0


def test_a_label_that_is_no_class_is_refused_without_a_word_of_it():
    budget = Budget(9.0, 1e-3)
    learner = CenteredLinear(PLAN, epsilon=4.0, delta=1e-6, classes=["basic", "gold"])
    with pytest.raises(ParameterError, match="must hold one of classes") as caught:
        learner.learn(PEOPLE, budget=budget)
    assert "silver" not in str(caught.value)
    assert budget.spent.epsilon == 0


# PrivateModel ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *((kind, method) for kind in KINDS for method in ("sgd", "statistics")),
        *(("rule", "descent"), ("classes", "descent"), ("target", "descent")),
        ("target", "evidence"),
    ],
)
def test_private_model_is_read_as_it_was_written(kind, method):
    model = learn(kind, method=method)
    again = PrivateModel.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert again.predict(PEOPLE) == model.predict(PEOPLE)
    assert (again.scores(PEOPLE) == model.scores(PEOPLE)).all()
    assert again.effects() == model.effects()
    assert "calibration" not in model.to_json()
    around = kind == "target" and method in {"descent", "evidence"}
    assert ("law" in json.loads(model.to_json())) == around


def test_a_model_of_a_target_predicts_within_the_ends_of_its_clip():
    wide = Schema(Label("spent", bounds=(-400, 700)), COLUMNS)
    model = CenteredLinear(wide, epsilon=4.0, delta=1e-6).learn(PEOPLE, random_state=1)
    steep = PrivateModel(**vars(model) | {"weights": 1_000 * model.weights})
    predicted = steep.predict({"age": [18, 90], "home": ["rent", "own"], "size": [0, 9]})
    ends = [550 * end + 150 for end in (model.law.low, model.law.high)]
    np.testing.assert_allclose(predicted, ends)
    assert -20 < ends[0] < 0 < ends[1] < 20


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("law"),
        lambda fields: fields.update(method="statistics"),
        lambda fields: fields["law"].update(low=2.0),
        lambda fields: fields["law"].update(mean="a"),
        lambda fields: fields["law"].update(constant=-1.0),
        lambda fields: fields["law"].pop("high"),
        lambda fields: fields["law"].update(more=1),
    ],
)
def test_private_model_refuses_a_damaged_law(change):
    fields = json.loads(learn("target").to_json())
    change(fields)
    with pytest.raises(ParameterError, match="model is other JSON"):
        PrivateModel.from_json(json.dumps(fields))


@pytest.mark.parametrize("kind", KINDS)
def test_private_model_scores_a_long_table_in_a_block_of_memory(kind, monkeypatch):
    """All rows of features at once took 25 bytes a record and feature."""
    monkeypatch.setattr(rows, "_BLOCK_CELLS", 1 << 16)
    model, many = learn(kind), 60
    table = read_frame({name: np.tile(entries, many) for name, entries in PEOPLE.items()})
    model.scores(table.select(slice(10)))
    tracemalloc.start()
    try:
        scores = model.scores(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(scores, np.tile(model.scores(PEOPLE), (many, 1)), rtol=1e-12)
    assert peak < 2 * scores.nbytes + 4e6


def test_private_model_reads_the_file_that_holds_it():
    model = learn()
    held = json.dumps({"panel": {}, "model": json.loads(model.to_json())})
    assert PrivateModel.from_json(held).to_json() == model.to_json()
    for text in ("{}", '{"model": 1}', '{"model": {}}', "[]", "3", json.dumps({"model": held})):
        with pytest.raises(ParameterError, match="it must be what hdp-fast fit, hdp-fast hybrid"):
            PrivateModel.from_json(text)


def test_a_model_of_a_number_has_no_probabilities():
    with pytest.raises(ParameterError, match="a model of a number has no probabilities"):
        learn("target").probabilities(PEOPLE)


@pytest.mark.parametrize("method", ["descent", "sgd", "statistics"])
def test_a_calibration_shifts_log_odds(method):
    model = learn(method=method)
    before = model.probabilities(PEOPLE)[:, 1].clip(2.0**-40, 1 - 2.0**-40)
    odds = np.log(before / (1 - before))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = model.with_calibration([-1.0, 1.0], [-2.0, 0.5], None)
        shares = changed.probabilities(PEOPLE)
    after = np.log(shares[:, 1] / shares[:, 0])
    inside = np.abs(odds) < 20
    shifts = np.interp(odds, [-1, 1], [-2, 0.5])
    np.testing.assert_allclose((after - odds)[inside], shifts[inside], atol=1e-9)
    assert changed.predict(PEOPLE) == (shares[:, 1] > 0.5).astype(int).tolist()
    assert changed.usual_label() is None
    again = PrivateModel.from_json(changed.to_json())
    assert (again.probabilities(PEOPLE) == shares).all()
    assert again.to_json() == changed.to_json()
    assert model.with_calibration([], [], None).to_json() == model.to_json()


@pytest.mark.parametrize(
    ("kind", "knots", "shifts", "words"),
    [
        ("target", [0.0], [0.0], "only a model of two classes"),
        ("classes", [0.0], [0.0], "only a model of two classes"),
        ("rule", [0.0, 1.0], [0.0], "vectors of one length"),
        ("rule", [1.0, 0.0], [0.0, 1.0], "knots must increase"),
        ("rule", [0.0, math.inf], [0.0, 1.0], "finite"),
        ("rule", [0.0, 1.0], [0.0, math.nan], "finite"),
    ],
)
def test_a_calibration_that_is_none_is_refused(kind, knots, shifts, words):
    with pytest.raises(ParameterError, match=words):
        learn(kind).with_calibration(knots, shifts, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.update(calibration={"knots": [1, 0], "shifts": [0, 0]}),
        lambda fields: fields.update(calibration={"knots": [0]}),
        lambda fields: fields.update(calibration={"knots": [0], "shifts": ["a"]}),
        lambda fields: fields.update(bits=1),
        lambda fields: fields.update(bits=True),
        lambda fields: fields.update(agents_record={"epsilon": 1}),
    ],
)
def test_private_model_refuses_damaged_parts(change):
    fields = json.loads(learn().to_json())
    change(fields)
    with pytest.raises(ParameterError, match="model is other JSON"):
        PrivateModel.from_json(json.dumps(fields))


def test_private_model_refuses_a_schema_without_a_label():
    fields = json.loads(learn().to_json())
    del fields["schema"]["label"]
    with pytest.raises(ParameterError, match="schema has features alone and no label"):
        PrivateModel.from_json(json.dumps(fields))


def test_a_model_of_bits_has_variances_that_are_no_smaller_than_those_of_its_rows():
    """usual_label trusts them: cuts of one number go together."""
    unit = Rows(RULE, bits=True)
    rows = unit(read_frame(PEOPLE))
    model = PrivateModel(
        RULE, None, Rows(RULE, True, rows.mean(axis=0), np.ones(len(unit.names))),
        np.zeros((len(unit.names) + 1, 2)), 1e30, "logistic", "sgd", N, None, None,
    )  # fmt: skip
    seen = set()
    for scale in (0.1, 1.0, 30.0):
        for _ in range(60):
            half = RNG.normal(size=len(unit.names) + 1) / 2
            half[-1] *= scale
            model = PrivateModel(**vars(model) | {"weights": np.column_stack([-half, half])})
            usual, share = model.usual_label(), np.mean(model.predict(PEOPLE))
            assert usual is None or (share if usual == "1" else 1 - share) > 0.9
            seen.add(usual)
    assert seen == {"0", "1", None}
    assert PrivateModel.from_json(model.to_json()).to_json() == model.to_json()
