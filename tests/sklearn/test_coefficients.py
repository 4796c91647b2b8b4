"""What private linear estimators say: coefficients in the table's units, and their intervals."""

import inspect
import math
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.feature_selection._base import _get_feature_importances
from sklearn.pipeline import make_pipeline

from hdp_fast import Budget
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.sklearn import (
    PrivateClassifier,
    PrivateRegressor,
    SchemaTransformer,
    private_estimator,
)

N = 20_000
BOUNDS = [(0, 100), (-1, 1), (5, 9)]
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(*pair, N) for pair in BOUNDS])
LINE = 0.02 * X[:, 0] - X[:, 1]
Y = (LINE - 1 + RNG.logistic(size=N) / 2 > 0).astype(int)
THREE = np.digitize(LINE, [0.6, 1.4])
KINDS = {
    "two": (PrivateClassifier, Y, {"classes": [0, 1]}),
    "three": (PrivateClassifier, THREE, {"classes": [0, 1, 2]}),
    "target": (PrivateRegressor, LINE, {"target_bounds": (-2, 4)}),
}


def fit(kind="two", rows=X, **changed):
    make, y, settings = KINDS[kind]
    public = {"epsilon": 2.0, "bounds": BOUNDS, "test_seed": 1, "method": "descent"}
    settings = public | settings | changed
    return make(**settings).fit(rows, y[: len(rows)])


@pytest.mark.parametrize("method", ["sgd", "statistics"])
@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_are_the_scores_where_no_row_is_shrunk(kind, method):
    model = fit(kind, method=method)
    # Short rows are not shrunk; squares bend the scores, and are told in summary.
    some = X[np.linalg.norm(model.rows_(X), axis=1) < 0.69 * model.rows_.norm][:50]
    assert len(some) > 3
    scores = model.predict(some) if kind == "target" else model.decision_function(some)
    table = model.summary(as_frame=False)
    rows = np.array(table["coefficient"]).reshape(-1, len(set(table["feature"])))
    law, plain = model.rows_.squares, model.rows_.plain(some)
    bends = (plain**2 - law.mean - (plain - model.rows_.center) * law.slope) * np.ptp(
        BOUNDS, 1
    ) ** 2
    linear = np.atleast_2d(model.coef_) @ some.T + np.reshape(model.intercept_, (-1, 1))
    expected = linear + rows[:, 3:6] @ bends.T
    np.testing.assert_allclose(np.atleast_2d(scores.T), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_have_the_shapes_of_scikit_learn(kind):
    model = fit(kind)
    shape, of_intercept = {"two": ((1, 3), (1,)), "three": ((3, 3), (3,)), "target": ((3,), ())}[
        kind
    ]
    assert model.coef_.shape == shape
    assert np.shape(model.intercept_) == of_intercept
    assert model.n_features_in_ == 3
    assert list(model.get_feature_names_out()) == ["x0", "x1", "x2"]
    assert model.feature_importances_.shape == (3,)
    assert math.isclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_.argmin() == 2


def test_coefficients_are_those_of_least_squares_without_noise():
    model = fit("target", epsilon=math.inf, bounds=BOUNDS)
    np.testing.assert_allclose(model.coef_, [0.02, -1, 0], atol=1e-3)
    assert abs(model.intercept_) < 1e-2
    assert np.isnan(model.summary(as_frame=False)["noise_low"]).all()


def test_coefficients_of_a_schema_have_one_for_each_category():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": X[:, 0], "home": np.where(X[:, 1] < 0, "own", "rent")})
    columns = {"age": Number(0, 100), "home": Category(("own", "rent"))}
    schema = Schema(Label("bought", positive=("1",)), columns)
    model = fit(rows=frame, bounds=None, schema=schema)
    assert list(model.get_feature_names_out()) == ["age", "home=own", "home=rent"]
    assert list(model.feature_names_in_) == ["age", "home"]
    assert model.n_features_in_ == 2
    assert model.coef_.shape == (1, 3)
    assert model.coef_[0, 1] > model.coef_[0, 2]


@pytest.mark.parametrize("method", ["sgd", "statistics"])
@pytest.mark.parametrize("kind", KINDS)
def test_summary_is_a_frame_of_coefficients_and_intervals(kind, method):
    pytest.importorskip("pandas")
    model = fit(kind, method=method)
    frame = model.summary()
    names = ["x0", "x1", "x2", "x0 squared", "x1 squared", "x2 squared", "(intercept)"]
    assert list(frame.feature) == names * (3 if kind == "three" else 1)
    assert ("class" in frame) == (kind == "three")
    assert (frame.noise_low < frame.coefficient).all()
    assert (frame.coefficient < frame.noise_high).all()
    has_population = (kind, method) == ("two", "statistics")
    assert frame.population_low.notna().all() == has_population
    if has_population:
        assert (frame.population_low < frame.population_high).all()
    np.testing.assert_array_equal(frame.coefficient[:3], model.coef_.reshape(-1, 3)[0])


def test_summary_says_what_brings_a_frame_where_pandas_is_missing(monkeypatch):
    # Old scikit-learn looks for pandas where it has been imported before.
    model = fit()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"as_frame=False.*pip install pandas"):
        model.summary()
    assert len(model.summary(as_frame=False)["feature"]) == 7


@pytest.mark.parametrize("name", ["coef_", "intercept_", "feature_importances_"])
def test_coefficients_need_a_fit(name):
    assert not hasattr(PrivateClassifier(epsilon=1.0), name)
    for call in ("summary", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(PrivateClassifier(epsilon=1.0), call)()


@pytest.mark.parametrize("kind", KINDS)
def test_recursive_elimination_drops_what_says_nothing(kind):
    make, y, settings = KINDS[kind]
    # Of one scale, as coefficients are in the units of the columns.
    unit = (X - [0, -1, 5]) / [100, 2, 4]
    budget = Budget(4.0, 1e-5)
    learner = make(epsilon=2.0, bounds=(0, 1), **settings)
    selector = RFE(learner, n_features_to_select=2).fit(unit, y, budget=budget)
    assert selector.support_.tolist() == [True, True, False]
    # One fit with three columns and one with two.
    assert budget.spent.epsilon == 4.0
    by_share = RFE(learner, n_features_to_select=2, importance_getter="feature_importances_")
    assert by_share.fit(unit, y).support_.tolist() == [True, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_select_from_model_takes_a_fit_that_is_paid_for(kind):
    model = fit(kind)
    getter = "feature_importances_"
    selector = SelectFromModel(model, prefit=True, threshold=0.2, importance_getter=getter)
    assert selector.transform(X).shape == (N, 2)
    assert SelectFromModel(model, prefit=True, max_features=1, threshold=-np.inf).transform(
        X
    ).shape == (N, 1)


def test_selectors_do_not_take_features_of_a_schema_for_columns():
    """They choose columns by the places of coefficients: others, where a schema orders its own."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"b": X[:, 1], "a": X[:, 0]})
    model, y = PrivateClassifier(epsilon=8.0, classes=[0, 1]), (X[:, 0] > 50).astype(int)
    schema = Schema(columns={"a": Number(0, 100), "b": Number(-1, 1)})
    model.set_params(schema=schema).fit(frame, y)
    message = "has an entry for each feature of the schema, but a selector chooses columns"
    for getter in ("auto", "feature_importances_"):
        selector = SelectFromModel(model, prefit=True, importance_getter=getter)
        with pytest.raises(ParameterError, match=message):
            selector.fit(frame).get_support()
    assert model.get_feature_names_out()[0].startswith("a")
    same = PrivateClassifier(epsilon=8.0, classes=[0, 1], schema=schema).fit(frame[["a", "b"]], y)
    selector = SelectFromModel(same, prefit=True, threshold=-np.inf, max_features=1)
    assert selector.fit(frame[["a", "b"]]).get_support().tolist() == [True, False]
    behind = PrivateClassifier(epsilon=8.0, classes=[0, 1], bounds=(0, 1))
    chosen = SelectFromModel(behind, max_features=1, threshold=-np.inf)
    steps = make_pipeline(SchemaTransformer(schema=schema), chosen).fit(frame, y)
    assert steps.get_feature_names_out().tolist() == ["a"]


def test_selectors_live_in_the_module_that_is_looked_for():
    assert inspect.getmodule(_get_feature_importances).__name__ == private_estimator.SELECTORS


def test_coefficients_leave_private_values_alone():
    """Rows beyond all bounds, and columns that never vary, raise and warn of nothing."""
    strange = np.tile([1e300, -1e300, 7.0], (N, 1))
    for kind in KINDS:
        model = fit(kind, rows=strange)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.summary(as_frame=False)["coefficient"]).all()
        assert np.isfinite(model.feature_importances_).all()
