"""With bounds a missing number counts as the lower one, in every container, as with a schema.

An infinite number counts as the bound on its side. So no cell decides whether there is an error.
"""

import functools
import math
import pickle

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from hdp_fast.data import Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.sklearn import (
    AdaptationClassifier,
    AdaptationRegressor,
    BoundsScaler,
    HybridClassifier,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:random_state makes"),
]

RNG = np.random.default_rng(8)
BOUNDS = [(2.0, 7.0), (-1.0, 3.0)]
LOW, HIGH = np.array(BOUNDS).T
# Whole numbers, which columns of integers hold.
ROWS = RNG.integers(2, 4, (160, 2)).astype(float)
BITS, TARGETS = (ROWS[:, 0] > 2.5).astype(int), ROWS[:, 0] / 5
DOMAIN = np.where(np.arange(160) % 2, 1, -1)
GAPS = np.zeros(ROWS.shape, bool)
GAPS[[3, 17, 40, 41], [0, 1, 0, 1]] = True
FILLED = np.where(GAPS, LOW, ROWS)
HOLES = np.where(GAPS, np.nan, ROWS)

COMMON = {"epsilon": 4.0, "bounds": BOUNDS, "test_seed": 1}
LINEAR = PrivateClassifier(**COMMON, classes=[0, 1], method="statistics")
ESTIMATORS = {
    "classifier": (LINEAR, {"y": BITS}),
    "classifier by gradients": (
        PrivateClassifier(**COMMON, classes=[0, 1], method="sgd"), {"y": BITS}
    ),
    "regressor": (PrivateRegressor(**COMMON, target_bounds=(0, 2)), {"y": TARGETS}),
    "adaptation": (
        AdaptationRegressor(**COMMON, target_bounds=(0, 2)),
        {"y": TARGETS, "sample_domain": DOMAIN},
    ),
    "adaptation of classes": (
        AdaptationClassifier(**COMMON, classes=[0, 1]), {"y": BITS, "sample_domain": DOMAIN}
    ),
    "hybrid": (
        HybridClassifier(LINEAR, agents_epsilon=2.0, test_seed=1),
        {"y": BITS, "sample_domain": DOMAIN},
    ),
    "search": (
        PrivateSearchCV(LINEAR, {"method": ["statistics"]}, epsilon=4.0, test_seed=1), {"y": BITS}
    ),
    "without noise": (
        PrivateClassifier(epsilon=math.inf, bounds=BOUNDS, test_seed=1), {"y": BITS}
    ),
}  # fmt: skip


def objects(missing):
    return [[missing if gap else x for x, gap in zip(*row, strict=True)]
            for row in zip(ROWS.tolist(), GAPS.tolist(), strict=True)]  # fmt: skip


def in_columns(missing):
    return dict(zip("ab", map(list, zip(*objects(missing), strict=True)), strict=True))


FRAME = pandas.DataFrame(in_columns(None))
CONTAINERS = {
    "numpy, NaN": lambda: HOLES,
    "numpy, single": lambda: HOLES.astype(np.float32),
    "numpy, objects, None": lambda: np.array(objects(None), object),
    "numpy, objects, NA": lambda: np.array(objects(pandas.NA), object),
    "numpy, objects, NaT": lambda: np.array(objects(pandas.NaT), object),
    "lists, None": lambda: objects(None),
    "lists, NA": lambda: objects(pandas.NA),
    "pandas": lambda: FRAME,
    "pandas, objects, None": lambda: pandas.DataFrame(in_columns(None), dtype=object),
    "pandas, objects, NA": lambda: pandas.DataFrame(in_columns(pandas.NA), dtype=object),
    "pandas, Int64": lambda: FRAME.astype("Int64"),
    "pandas, Float64": lambda: FRAME.astype("Float64"),
    "pandas, Arrow": lambda: FRAME.astype("int64[pyarrow]"),
    "pandas, categories": lambda: FRAME.astype("category"),
    "pandas, several": lambda: FRAME.astype({"a": "Int64"}),
    "polars": lambda: polars.DataFrame(in_columns(None)),
    "polars, integers": lambda: polars.DataFrame(in_columns(None)).cast(polars.Int64),
    "pyarrow": lambda: pyarrow.table(in_columns(None)),
}


def fit(estimator, X, passed):
    return pickle.loads(pickle.dumps(estimator)).fit(X, **passed)


def learned_by(made):
    """What an estimator has learned, by its predictions for the plain rows."""
    names = getattr(made, "feature_names_in_", None)
    rows = ROWS if names is None else pandas.DataFrame(ROWS, columns=list(names))
    how = "predict_proba" if hasattr(made, "predict_proba") else "predict"
    return getattr(made, how)(rows)


@functools.cache
def learned_filled(name):
    estimator, passed = ESTIMATORS[name]
    return learned_by(fit(estimator, FILLED, passed))


@pytest.mark.thorough(cases=36)
@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_missing_number_counts_as_the_lower_bound(name, kind):
    estimator, passed = ESTIMATORS[name]
    X = CONTAINERS[kind]()
    made = fit(estimator, X, passed)
    np.testing.assert_allclose(learned_by(made), learned_filled(name), rtol=1e-6)
    plain = (
        FILLED if type(X) in (list, np.ndarray) else pandas.DataFrame(FILLED, columns=["a", "b"])
    )
    assert (made.predict(X) == made.predict(plain)).all()


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_infinite_number_counts_as_the_bound_on_its_side(name):
    estimator, passed = ESTIMATORS[name]
    for value, bound in ((math.inf, HIGH), (-math.inf, LOW), (1e308, HIGH)):
        wild, filled = np.where(GAPS, value, ROWS), np.where(GAPS, bound, ROWS)
        made = fit(estimator, filled, passed)
        learned = learned_by(fit(estimator, wild, passed))
        np.testing.assert_array_equal(learned, learned_by(made))
        assert (made.predict(wild) == made.predict(filled)).all()


def test_bounds_and_a_schema_have_one_rule():
    columns = {f"x{place}": Number(*pair) for place, pair in enumerate(BOUNDS)}
    schema = Schema(Label("unused", above=0), columns)
    settings = {"epsilon": 4.0, "classes": [0, 1], "method": "statistics", "test_seed": 1}
    for fill in (np.nan, np.inf, -np.inf):
        X = np.where(GAPS, fill, ROWS)
        frame = pandas.DataFrame(X, columns=list(columns))
        bounded = PrivateClassifier(bounds=BOUNDS, **settings).fit(X, BITS)
        described = PrivateClassifier(schema=schema, **settings).fit(frame, BITS)
        expected = described.predict_proba(frame)
        np.testing.assert_array_equal(bounded.predict_proba(X), expected)


@each_case("kind", CONTAINERS)
def test_a_scaler_with_bounds_has_the_same_rule(kind):
    X = CONTAINERS[kind]()
    scaler = BoundsScaler(bounds=BOUNDS).fit(X)
    expected = (FILLED - LOW) / (HIGH - LOW)
    np.testing.assert_allclose(np.asarray(scaler.transform(X)), expected, rtol=1e-6)
    wild = np.array([[math.inf, -math.inf]])
    assert BoundsScaler(bounds=BOUNDS).fit_transform(wild).tolist() == [[1, 0]]


@each_case("kind", [kind for kind in CONTAINERS if kind != "numpy, objects, NaT"])
def test_without_bounds_there_is_no_public_number_to_count_as(kind):
    with pytest.raises((ParameterError, TypeError, ValueError)):
        PrivateClassifier(epsilon=math.inf).fit(CONTAINERS[kind](), BITS)


def test_an_array_that_is_masked_is_refused_by_its_type_with_bounds_and_with_a_schema():
    for mask in (False, GAPS):
        with pytest.raises(ParameterError, match="masked"):
            LINEAR.fit(np.ma.array(ROWS, mask=mask), BITS)


def test_a_panel_has_missing_numbers_where_its_estimator_takes_them():
    HybridClassifier(HistGradientBoostingClassifier(), agents_epsilon=2.0).fit(HOLES, BITS)
    with pytest.raises(ParameterError, match="has an infinite entry or NaN"):
        HybridClassifier(LogisticRegression(), agents_epsilon=2.0).fit(HOLES, BITS)


@each_case("entry", ["text", "12 apples", {"a": 1}, object()])
@each_case("container", [np.array, pandas.DataFrame, list])
def test_an_entry_that_is_no_number_is_not_missing(container, entry):
    rows = np.array(ROWS, object)
    rows[5, 1] = entry
    with pytest.raises((ParameterError, TypeError), match="no number"):
        LINEAR.fit(container(rows.tolist() if container is list else rows), BITS)
