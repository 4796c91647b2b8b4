"""What the estimators promise beyond the contract of scikit-learn."""

import json
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hdp_fast import ParameterError, ShapeError, UtilityWarning
from hdp_fast.budget import Budget
from hdp_fast.cli import main
from hdp_fast.data import Category, Label, Number, Schema, read_table
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.learners import PrivateModel
from hdp_fast.sklearn import (
    AdaptationClassifier,
    HybridClassifier,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
    PrivateStudentClassifier,
    private_estimator,
)

N = 4_000
ROWS = np.random.default_rng(0).uniform(0, 10, (N, 3))
CODES = np.digitize(ROWS[:, 0], [3, 7])
TEXTS = np.array(["low", "middle", "up"])[CODES]
SCHEMA = Schema(
    Label("unused", above=0), {"age": Number(0, 10), "place": Category(("town", "village"))}
)
FRAME = pandas.DataFrame(
    {"other": "x", "place": np.where(ROWS[:, 1] > 5, "town", "village"), "age": ROWS[:, 0]}
)
WARNED = "ignore::hdp_fast.UtilityWarning"


def classifier(**changed):
    settings = {"epsilon": 8.0, "bounds": (0, 10), "classes": ["low", "up"], "test_seed": 1}
    return PrivateClassifier(**settings | changed)


def regressor(**changed):
    settings = {"epsilon": 8.0, "bounds": (0, 10), "target_bounds": (0, 20), "test_seed": 1}
    return PrivateRegressor(**settings | changed)


BITS = np.where(ROWS[:, 0] > 5, "up", "low")
TARGETS = ROWS[:, 0] + ROWS[:, 1]


@pytest.mark.parametrize("method", ["sgd", "statistics"])
@pytest.mark.parametrize(("labels", "classes"), [(BITS, ["low", "up"]), (TEXTS, np.unique(TEXTS))])
def test_classes_are_learned_by_both_methods(method, labels, classes):
    learner = classifier(method=method, classes=classes).fit(ROWS, labels)
    assert learner.method_ == method
    assert learner.score(ROWS, labels) > 0.6
    shares = learner.predict_proba(ROWS)
    assert shares.shape == (N, len(classes))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (learner.classes_[shares.argmax(axis=1)] == learner.predict(ROWS)).mean() > 0.99


@pytest.mark.parametrize("epsilon", [8.0, math.inf])
@pytest.mark.parametrize("method", ["descent", "evidence", "sgd", "statistics"])
def test_targets_are_learned_by_every_method(method, epsilon):
    learner = regressor(method=method, epsilon=epsilon).fit(ROWS, TARGETS)
    assert learner.score(ROWS, TARGETS) > 0.6
    assert ((learner.predict(ROWS * 100) >= 0) & (learner.predict(ROWS * 100) <= 20)).all()


def test_the_method_is_chosen_by_public_and_released_numbers():
    many = np.arange(N) % 8
    assert classifier().fit(ROWS, BITS).method_ == "descent"
    bent = np.where(abs(ROWS[:, 0] - 5) > 2.5, "up", "low")
    assert classifier().fit(ROWS[:50], bent[:50]).method_ == "descent"
    assert classifier().fit(ROWS, bent).method_ == "additive"
    one_factor = np.repeat(ROWS[:, :1], 8, axis=1)
    assert classifier().fit(one_factor, BITS).method_ == "descent"
    assert classifier(classes=range(8)).fit(ROWS, many).method_ == "descent"
    assert regressor().fit(ROWS, TARGETS).method_ == "descent"
    assert regressor().fit(ROWS[:200], TARGETS[:200]).method_ == "descent"


def test_a_fit_is_charged_once_and_whole():
    budget = Budget(10.0, 1e-5)
    learner = classifier().fit(ROWS, BITS, budget=budget)
    assert budget.remaining.epsilon == pytest.approx(2)
    assert (learner.record_.epsilon, learner.record_.delta) == (8.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        classifier().fit(ROWS, BITS, budget=budget)
    assert budget.remaining.epsilon == pytest.approx(2)


@each_case(
    ("learner", "labels", "text"),
    [
        (PrivateClassifier(), BITS, "epsilon = None"),
        (classifier(bounds=None), BITS, "bounds = None"),
        (classifier(classes=None), BITS, "classes = None"),
        (classifier(classes=["low"]), BITS, "1 class"),
        (classifier(classes=["low", "other"]), BITS, "one of classes"),
        (classifier(bounds=(1, 1)), BITS, "low must be below"),
        (classifier(bounds=[(0, 1), (0, 1)]), BITS, "bounds has shape"),
        (classifier(bounds={"a": (0, 1)}), BITS, "or a list of such pairs in the order"),
        (classifier(schema=SCHEMA), BITS, "only one of them"),
        (classifier(bounds=None, schema=SCHEMA), BITS, "named columns"),
        (classifier(method="tree"), BITS, "method"),
        (classifier(delta=0), BITS, "delta"),
        (classifier(epsilon=0), BITS, "epsilon"),
        (classifier(epsilon=math.inf), BITS, "charged to a budget"),
        (classifier(epsilon=1e-12, delta=1e-15), BITS, "epsilon"),
        (regressor(target_bounds=None), TARGETS, "target_bounds = None"),
        (regressor(target_bounds=(1, 0)), TARGETS, "must"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(learner, labels, text):
    budget = Budget(10.0, 1e-5)
    with pytest.raises((ParameterError, ShapeError), match=text):
        learner.fit(ROWS, labels, budget=budget)
    assert budget.remaining.epsilon == 10


@pytest.mark.parametrize(
    ("learner", "missing"),
    [
        (PrivateClassifier(delta=None), ["epsilon", "delta", "bounds", "classes"]),
        (PrivateClassifier(epsilon=1.0), ["bounds", "classes"]),
        (PrivateClassifier(epsilon=1.0, schema=SCHEMA), ["classes"]),
        (PrivateRegressor(), ["epsilon", "bounds", "target_bounds"]),
        (AdaptationClassifier(), ["epsilon", "bounds", "classes"]),
        (PrivateStudentClassifier(), ["epsilon", "pool", "classes"]),
        (
            HybridClassifier(PrivateClassifier(bounds=(0, 1))),
            ["agents_epsilon", "estimator.epsilon", "estimator.classes"],
        ),
    ],
    ids=lambda case: type(case).__name__,
)
def test_all_that_is_missing_is_listed_at_once_with_what_it_must_be(learner, missing):
    with pytest.raises(ParameterError) as refused:
        learner.fit(ROWS, BITS)
    text = str(refused.value)
    faults, _, rules = text.partition(", but ")
    assert faults == ", ".join(f"{name} = None" for name in missing)
    assert [part.partition(" = ")[0] for part in rules.partition(": ")[2].split("; ")] == missing
    assert ("epsilon = math.inf takes it from the data" in text) == ("epsilon" not in text[:60])


def test_frames_keep_the_order_of_their_columns():
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    learner = classifier().fit(frame, BITS)
    assert list(learner.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="order"):
        learner.predict(frame[["b", "a", "c"]])


def test_a_schema_reads_frames_by_name():
    learner = classifier(bounds=None, schema=SCHEMA).fit(FRAME, BITS)
    assert learner.n_features_in_ == 3
    strange = FRAME.assign(place=None, age=None)[["age", "place"]]
    assert (learner.predict(FRAME[["age", "place"]]) == learner.predict(FRAME)).all()
    assert learner.score(FRAME, BITS) > 0.8
    assert len(set(learner.predict(strange))) == 1
    with pytest.raises(ParameterError, match="lacks 1 column"):
        learner.predict(FRAME[["age"]])


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "nullable", "categorical", "table"])
def test_a_schema_reads_frames_of_every_kind(kind, tmp_path):
    learner = classifier(bounds=None, schema=SCHEMA).fit(FRAME, BITS)
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame(FRAME.to_dict("list"))
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(FRAME.to_dict("list"))
    elif kind == "table":
        np.savez(
            tmp_path / "rows.npz",
            **{name: FRAME[name].to_numpy(dtype=None if name == "age" else str) for name in FRAME},
        )
        frame = read_table(tmp_path / "rows.npz")
    else:
        frame = (
            FRAME.convert_dtypes() if kind == "nullable" else FRAME.astype({"place": "category"})
        )
    assert (learner.predict(frame) == learner.predict(FRAME)).all()
    again = classifier(bounds=None, schema=SCHEMA).fit(frame, BITS)
    assert list(again.feature_names_in_) == ["other", "place", "age"]
    assert (again.predict(FRAME) == learner.predict(FRAME)).all()


def test_a_budget_is_routed_as_metadata():
    budget = Budget(8.0, 1e-5)
    with config_context(enable_metadata_routing=True):
        learner = classifier().set_fit_request(budget=True)
        make_pipeline(FunctionTransformer(), learner).fit(ROWS, BITS, budget=budget)
    assert budget.remaining.epsilon == 0


def test_it_works_in_pipelines_and_is_pickled_and_shown():
    columns = make_column_transformer((FunctionTransformer(np.sqrt), [0]), remainder="passthrough")
    pipeline, budget = make_pipeline(columns, classifier()), Budget(8.0, 1e-5)
    pipeline.fit(ROWS, BITS, privateclassifier__budget=budget)
    assert budget.remaining.epsilon == 0
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(ROWS) == pipeline.predict(ROWS)).all()
    assert "PrivateClassifier" in pipeline._repr_html_()
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


def test_the_first_score_warns(monkeypatch):
    monkeypatch.setattr(private_estimator, "_noted_scores", set())
    learner = classifier().fit(ROWS, BITS)
    with pytest.warns(UtilityWarning, match="unprotected release"):
        learner.score(ROWS, BITS)


def test_the_module_is_loaded_on_demand_and_names_what_it_needs():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import hdp_fast\n"
        "assert 'hdp_fast.sklearn' not in sys.modules\n"
        "try:\n    import hdp_fast.sklearn\n"
        "except ImportError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'scikit-learn>=1.6' (the extra hdp-fast[sklearn])" in shown.stdout


@each_case("bounds", [(0.0, 1.0), (0, 1e-300), (0, 5e-324), (-8e307, 8e307)])
@each_case("target", [1e308, -1.7e308, 5e-324])
def test_no_finite_target_warns_or_raises(bounds, target):
    targets = np.where(ROWS[:, 0] > 5, bounds[1], bounds[0])
    targets[7] = target
    learner = PrivateRegressor(
        epsilon=1.0, bounds=(0, 10), target_bounds=bounds, method="statistics"
    )
    with warnings.catch_warnings(), np.errstate(over="raise", divide="raise", invalid="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        assert np.isfinite(learner.fit(ROWS, targets).predict(ROWS[:5])).all()


@pytest.mark.parametrize("search", [False, True])
def test_the_error_of_a_target_that_is_no_number_does_not_show_it(search):
    targets = ROWS[:, 0].astype(object)
    targets[7] = "a secret"
    learner = PrivateRegressor(epsilon=1.0, bounds=(0, 10), target_bounds=(0, 10))
    if search:
        learner = PrivateSearchCV(learner, {"method": ["sgd"]}, epsilon=1.0)
    with pytest.raises(ParameterError, match="no number") as error:
        learner.fit(ROWS, targets)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("entry", ["a secret", 10**400], ids=["text", "huge"])
@pytest.mark.parametrize("container", [np.array, pandas.DataFrame])
def test_the_error_of_a_record_that_is_no_number_does_not_show_it(container, entry):
    rows = ROWS.astype(object)
    rows[7, 1] = entry
    labels = np.where(ROWS[:, 0] > 5, "low", "up")
    fitted = classifier(method="statistics").fit(ROWS, labels)
    for use in (lambda X: classifier().fit(X, labels), fitted.predict):
        with pytest.raises(ParameterError, match="number") as error:
            use(container(rows))
        assert "secret" not in str(error.value)
        assert error.value.__suppress_context__


# The file of the released model ------------------------------------------------------------------


def predict_by_file(folder, text, *options):
    """What hdp-fast predict makes of a model and of FRAME."""
    (folder / "model.json").write_text(text)
    FRAME.to_csv(folder / "rows.csv", index=False)
    files = [folder / "model.json", folder / "rows.csv", "--output", folder / "out.csv"]
    assert main(["predict", *map(str, files), *options, "--quiet"]) == 0
    return pandas.read_csv(folder / "out.csv")


@pytest.mark.parametrize("method", ["sgd", "statistics"])
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (BITS, ["low", "up"]),
        (TEXTS, np.unique(TEXTS)),
        (BITS == "up", [False, True]),
        (CODES, [0, 1, 2]),
    ],
)
def test_to_json_is_a_private_model_that_predicts_the_same(method, labels, classes):
    learner = classifier(method=method, classes=classes).fit(ROWS, labels)
    model = PrivateModel.from_json(learner.to_json())
    rows = {f"x{place}": ROWS[:, place] for place in range(3)}
    # Least squares cut their rows to integers, and a file keeps what was solved for.
    near = 1e-12 if method == "sgd" else 1e-6
    np.testing.assert_allclose(model.probabilities(rows), learner.predict_proba(ROWS), atol=near)
    assert (np.array(model.predict(rows)) == learner.predict(ROWS).astype(str)).mean() > 0.999
    assert (model.n, model.record, model.schema.label.column) == (N, learner.record_, "label")


def test_to_json_of_a_regression_keeps_its_bounds():
    learner = regressor().fit(ROWS, TARGETS)
    model = PrivateModel.from_json(learner.to_json(label="sum"))
    rows = {f"x{place}": ROWS[:, place] for place in range(3)}
    np.testing.assert_allclose(model.predict(rows), learner.predict(ROWS), atol=1e-4)
    assert model.schema.label == Label("sum", bounds=(0, 20))


def test_to_json_without_noise_and_bounds_says_that_nobody_is_protected():
    learner = PrivateClassifier(epsilon=math.inf).fit(ROWS, BITS)
    model = PrivateModel.from_json(learner.to_json())
    assert (model.record, model.signal, model.classes) == (None, None, ("low", "up"))


def test_predict_on_the_command_line_takes_models_of_estimators(tmp_path):
    learner = classifier(bounds=None, schema=SCHEMA).fit(FRAME, BITS)
    out = predict_by_file(tmp_path, learner.to_json(label="side"), "--probabilities")
    assert (out.side == learner.predict(FRAME)).all()
    shares = out[["side_probability_low", "side_probability_up"]].to_numpy()
    np.testing.assert_allclose(shares, learner.predict_proba(FRAME), atol=2e-6)
    assert "unused" in json.loads(learner.to_json())["schema"]["label"]["column"]
    other = regressor(bounds=None, schema=SCHEMA).fit(FRAME, TARGETS)
    out = predict_by_file(tmp_path, other.to_json(label="sum"), "--force")
    np.testing.assert_allclose(out["sum"], other.predict(FRAME), atol=1e-4)


def test_to_json_refuses_a_label_that_is_a_feature_and_an_estimator_without_a_model():
    learner = classifier()
    with pytest.raises(ValueError, match="not fitted"):
        learner.to_json()
    learner.fit(ROWS, BITS)
    with pytest.raises(ParameterError, match="label = 'x0', but it must not be a feature"):
        learner.to_json(label="x0")
