"""Transformers that look at public facts alone, in the contract of scikit-learn and in
pipelines."""

import pickle
import re

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast import ParameterError, ShapeError
from hdp_fast.budget import Budget
from hdp_fast.data import Category, Ignore, Label, Number, Schema
from hdp_fast.data.frames import make_table
from hdp_fast.sklearn import BoundsScaler, PrivateClassifier, PrivateRegressor, SchemaTransformer

LABEL = Label("unused", above=0)
SCHEMA = Schema(LABEL, {"place": Category(("sea", "town")), "id": Ignore(), "age": Number(0, 10)})
FRAME = pandas.DataFrame(
    {"age": [5.0, None, 20.0], "other": 1, "place": ["town", "moon", "sea"], "id": "a"}
)
ROWS = [[0, 1, 0.5], [0, 0, 0], [1, 0, 1]]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        BoundsScaler(bounds=(-20.0, 20.0), feature_range=(-1.0, 2.0)),
        SchemaTransformer(schema=Schema(LABEL, {"x0": Number(-20, 20)})),
    ]
)
def test_every_check_passes(estimator, check):
    check(estimator)


def test_a_scaler_knows_bounds_alone():
    scaler = BoundsScaler(bounds=[(0, 10), (-1, 1)], feature_range=(-2, 2))
    rows = scaler.fit([[5, 5]]).transform([[0, -9], [10, 9], [2.5, 0]])
    assert rows.tolist() == [[-2, -2], [2, 2], [-1, 0]]
    assert scaler.inverse_transform(rows).tolist() == [[0, -1], [10, 1], [2.5, 0]]
    assert scaler.bounds_.tolist() == [[0, 10], [-1, 1]]


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (0, 5e-324), (1e300, 1.1e300)])
@pytest.mark.parametrize("wanted", [(0, 1), (-5e307, 1e308), (0.1, 0.1 + 1e-16 * 3)])
def test_what_comes_out_lies_in_the_range(bounds, wanted):
    scaler = BoundsScaler(bounds=bounds, feature_range=wanted).fit([[0.0]])
    values = np.array([[-1.7e308], [1.7e308], [bounds[0]], [bounds[1]], [0], [1e300]])
    rows = scaler.transform(values)
    assert ((rows >= wanted[0]) & (rows <= wanted[1])).all()
    assert rows[2] == wanted[0]
    back = scaler.inverse_transform(rows)
    assert ((back >= bounds[0]) & (back <= bounds[1])).all()


@pytest.mark.parametrize(
    ("transformer", "text"),
    [
        (BoundsScaler(), "bounds = None"),
        (BoundsScaler(bounds=(1, 0)), "low must be below"),
        (BoundsScaler(bounds=(0, np.inf)), "low must be below"),
        (BoundsScaler(bounds=[(0, 1)] * 2), "bounds has shape"),
        (BoundsScaler(bounds="ab"), "bounds"),
        (BoundsScaler(bounds=(0, 1), feature_range=(1, 1)), "feature_range"),
        (BoundsScaler(bounds=(0, 1), feature_range=None), "feature_range"),
        (SchemaTransformer(), "schema = None"),
        (SchemaTransformer(schema={"x0": Number(0, 1)}), "schema"),
        (SchemaTransformer(schema=Schema(LABEL, {"x7": Number(0, 1)})), "'x7'"),
    ],
)
def test_what_is_wrong_is_refused(transformer, text):
    with pytest.raises((ParameterError, ShapeError), match=text):
        transformer.fit(np.eye(3))


def frames():
    yield FRAME
    yield FRAME.convert_dtypes()
    yield FRAME.astype({"place": "category"})
    yield make_table("X", FRAME, SCHEMA)
    for library, name in (("polars", "DataFrame"), ("pyarrow", "table")):
        made = getattr(pytest.importorskip(library), name)
        columns = {"age": [5.0, None, 20.0], "place": ["town", "moon", "sea"]}
        yield made({**columns, "other": [1, 1, 1], "id": ["a", "a", "a"]})


@pytest.mark.parametrize("place", range(6))
def test_frames_of_every_library_become_the_same_numbers(place):
    frame = list(frames())[place]
    transformer = SchemaTransformer(schema=SCHEMA)
    assert transformer.fit_transform(frame).tolist() == ROWS
    names = ["place=sea", "place=town", "age"]
    assert transformer.get_feature_names_out().tolist() == names
    assert {"age", "place"} <= set(transformer.feature_names_in_)
    assert transformer.n_features_in_ == len(transformer.feature_names_in_)
    again = pickle.loads(pickle.dumps(transformer))
    assert again.transform(frame).tolist() == ROWS
    assert clone(transformer).schema == SCHEMA
    assert "SchemaTransformer" in transformer._repr_html_()


def test_numbers_become_values_again():
    transformer = SchemaTransformer(schema=SCHEMA).fit(FRAME)
    assert transformer.inverse_transform(ROWS).tolist() == [["town", 5], [None, 0], ["sea", 10]]
    numbers = SchemaTransformer(schema=Schema(LABEL, {"x1": Number(-1, 1)})).fit(np.eye(2))
    assert numbers.inverse_transform([[0.25]]).tolist() == [[-0.5]]
    with pytest.raises(ShapeError, match="transform makes 3"):
        transformer.inverse_transform([[0.0]])


def test_columns_must_be_those_of_fit():
    transformer = SchemaTransformer(schema=SCHEMA)
    with pytest.raises(NotFittedError):
        transformer.transform(FRAME)
    with pytest.raises(ParameterError, match="lacks 1 columns, such as 'age'"):
        transformer.fit(FRAME[["place", "id"]])
    transformer.fit(FRAME)
    for other in (FRAME[["age", "place"]], FRAME[["id", "place", "other", "age"]], FRAME[:0]):
        with pytest.raises(ValueError, match=r"feature names|0 rows"):
            transformer.transform(other)
    with pytest.raises(ValueError, match="lacks"):
        transformer.transform(make_table("X", FRAME, SCHEMA))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_makes_frames(library):
    made = pytest.importorskip(library).DataFrame
    for transformer in (
        SchemaTransformer(schema=SCHEMA),
        make_column_transformer(
            (BoundsScaler(bounds=(0, 10)), ["age"]),
            (SchemaTransformer(schema=Schema(LABEL, {"place": Category(("sea",))})), ["place"]),
        ),
    ):
        frame = transformer.set_output(transform=library).fit_transform(FRAME.fillna({"age": 0}))
        assert isinstance(frame, made)
        assert list(frame.columns) == transformer.get_feature_names_out().tolist()


def test_they_prepare_columns_for_a_private_classifier():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"age": rng.uniform(0, 10, 4_000), "place": ["sea", "town"] * 2_000})
    y = np.where(X["age"] > 5, "up", "low")
    columns = make_column_transformer(
        (BoundsScaler(bounds=(0, 10)), ["age"]),
        (SchemaTransformer(schema=Schema(LABEL, {"place": Category(("sea", "town"))})), ["place"]),
    )
    settings = {"method": "statistics", "classes": ["low", "up"], "test_seed": 1}
    learner = PrivateClassifier(epsilon=8.0, bounds=(0, 1), **settings)
    pipeline, budget = make_pipeline(columns, learner), Budget(8.0, 1e-5)
    pipeline.fit(X, y, privateclassifier__budget=budget)
    assert budget.remaining.epsilon == 0
    assert pipeline.score(X, y) > 0.9
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(X[["place", "age"]]) == pipeline.predict(X)).all()


@pytest.mark.parametrize(
    "learner",
    [
        BoundsScaler(bounds=(0, 1)),
        SchemaTransformer(schema=Schema(columns={"x0": Number(0, 1)})),
        PrivateClassifier(epsilon=1.0, bounds=(0, 1), classes=[0, 1]),
        PrivateRegressor(epsilon=1.0, bounds=(0, 1), target_bounds=(0, 1)),
    ],
    ids=lambda made: type(made).__name__,
)
def test_sparse_records_and_texts_say_what_to_do(learner):
    rows = np.random.default_rng(0).random((400, 2))
    bits = (rows[:, 0] > 0.5).astype(int)
    rule = "X is sparse, but it must be dense, as X.toarray() makes it: a public schema makes"
    with pytest.raises(TypeError, match=re.escape(rule)) as refused:
        learner.fit(scipy.sparse.csr_matrix(rows), bits)
    assert "SchemaTransformer" in str(refused.value)
    learner.fit(rows, bits)
    if not isinstance(learner, SchemaTransformer):
        with pytest.raises(ParameterError, match="no number, but all must be: a public schema"):
            learner.fit(np.where(rows > 0.5, "town", "sea"), bits)
