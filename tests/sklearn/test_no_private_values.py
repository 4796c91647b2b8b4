"""No estimator's error, warning or log holds a value of the records that it was given."""

import math

import numpy as np
import pandas
import polars
import pytest
from overheard import REAL, SHAPES, WHOLE, WORD, listen, marked

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.sklearn import (
    AdaptationClassifier,
    AdaptationRegressor,
    BoundsScaler,
    HybridClassifier,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
    PrivateStudentClassifier,
    SchemaTransformer,
)
from hdp_fast.sklearn.toolkit import shield, shield_code

RNG = np.random.default_rng(2)
ROWS = RNG.random((150, 2))
BITS, TARGETS = (ROWS[:, 0] > 0.5).astype(int), ROWS[:, 0]
DOMAIN = np.where(np.arange(150) % 2, 1, -1)
FEW = {"X": ROWS[:9]}
PUBLIC = {"epsilon": 1.0, "bounds": (0, 1), "method": "statistics"}
CLASSES, BOUNDS = {"classes": [0, 1]}, {"target_bounds": (0, 1)}
SCHEMA = Schema(Label("unused", above=0), {"x0": Number(0, 1), "x1": Category(("a", "b"))})
LINEAR = PrivateClassifier(**PUBLIC, **CLASSES)
TEXTUAL = PrivateClassifier(**PUBLIC, classes=["no", "yes"])
REGRESSION = PrivateRegressor(**PUBLIC, **BOUNDS)
POOL = {"pool": ROWS[:40], "epsilon": 1.0, **CLASSES}
OPEN = PrivateClassifier(epsilon=math.inf)
PARTS = {"epsilon": 1.0, "bounds": (0, 1)}

# An estimator, and what its fit takes.
LABELED, REAL_LABELED = {"X": ROWS, "y": BITS}, {"X": ROWS, "y": TARGETS}
BOTH = {"sample_domain": DOMAIN}
ESTIMATORS = {
    "classifier": (LINEAR, LABELED),
    "classifier of texts": (TEXTUAL, {"X": ROWS, "y": np.where(BITS, "yes", "no")}),
    "classifier without noise": (OPEN, LABELED),
    "regressor": (REGRESSION, REAL_LABELED),
    "regressor without noise": (PrivateRegressor(epsilon=math.inf), REAL_LABELED),
    "adaptation of classes": (AdaptationClassifier(**PARTS, **CLASSES), LABELED | BOTH),
    "adaptation": (AdaptationRegressor(**PARTS, **BOUNDS), REAL_LABELED | BOTH),
    "student": (PrivateStudentClassifier(**POOL, method="statistics"), LABELED),
    "student of votes": (
        PrivateStudentClassifier(GaussianNB(), **POOL, method="votes", members=9, queries=9),
        LABELED,
    ),
    "search": (
        PrivateSearchCV(PrivateClassifier(bounds=(0, 1), **CLASSES), {"method": ["statistics"]},
                        epsilon=1.0),
        LABELED,
    ),
    "search of a regression": (
        PrivateSearchCV(PrivateRegressor(bounds=(0, 1), **BOUNDS), {"method": ["statistics"]},
                        epsilon=1.0),
        REAL_LABELED,
    ),
    "hybrid": (HybridClassifier(LINEAR, agents_epsilon=1.0), LABELED | BOTH),
    "hybrid of another": (HybridClassifier(LogisticRegression(), agents_epsilon=1.0), LABELED),
    "scaler": (BoundsScaler(bounds=(0, 1)), {"X": ROWS}),
    "transformer": (SchemaTransformer(schema=SCHEMA), {"X": ROWS}),
}  # fmt: skip
METHODS = (
    "predict", "predict_proba", "decision_function", "transform", "inverse_transform", "score",
)  # fmt: skip


def frames(like):
    """The records in frames whose columns are of some kinds."""
    if np.ndim(like) < 2:
        yield pandas.Series(np.full(np.shape(like), WORD))
        yield pandas.Series([None, *np.full(len(like) - 1, WORD)], dtype="string")
        yield pandas.Series(np.full(np.shape(like), WHOLE), dtype="category")
        yield polars.Series(np.full(np.shape(like), WORD).tolist())
        return
    texts = {f"x{place}": np.full(len(like), WORD) for place in range(2)}
    numbers = {"x0": np.full(len(like), REAL), "x1": np.full(len(like), WHOLE)}
    yield pandas.DataFrame(texts)
    yield pandas.DataFrame(texts, dtype="category")
    yield pandas.DataFrame(numbers | {"x1": texts["x1"]})
    yield pandas.DataFrame({0: texts["x0"], 1: numbers["x1"]})
    yield pandas.DataFrame(numbers).convert_dtypes().mask(pandas.DataFrame(numbers) < 0)
    yield polars.DataFrame(texts)
    yield polars.DataFrame(numbers | {"x1": texts["x1"]})
    yield np.where(np.arange(2) > 0, math.nan, np.full(np.shape(like), REAL))
    yield np.where(np.arange(2) > 0, math.inf, np.full(np.shape(like), REAL))


def bad_values(like):
    like = np.zeros(len(like)) if like.dtype.kind == "U" else like
    return [*(make(like) for make in SHAPES.values()), *frames(like)]


@pytest.fixture(scope="module")
def fitted():
    return {name: made.fit(**good) for name, (made, good) in ESTIMATORS.items()}


@pytest.mark.thorough(cases=15)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("argument", ["X", "y", "sample_domain"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_fit_says_what_it_was_given(caplog, name, argument):
    made, good = ESTIMATORS[name]
    if argument not in good:
        return
    for bad in bad_values(good[argument]):
        texts = listen(caplog, made.fit, **good | {argument: bad})
        assert marked(texts) == [], texts


@pytest.mark.thorough(cases=45)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_method_says_what_it_was_given(caplog, fitted, name, method):
    call = getattr(fitted[name], method, None)
    if call is None:
        return
    good = {"X": ROWS[:9]}
    if method == "score":
        good |= {"y": ESTIMATORS[name][1]["y"][:9]}
        good |= {"sample_domain": -1} if "sample_domain" in ESTIMATORS[name][1] else {}
    for argument in good.keys() - {"sample_domain"}:
        for bad in bad_values(good[argument]):
            texts = listen(caplog, call, **good | {argument: bad})
            assert marked(texts) == [], texts


def fail(error):
    raise error


PRIVATE_TEXTS = [
    ValueError(f"could not convert string to float: '{WORD}'"),
    ValueError(f"Expected 2D array, got 1D array instead:\narray=[{REAL}]."),
    ValueError(f"Complex data not supported\n[{REAL}+1j]\n"),
    ValueError(f"X has {WORD} features"),
    ValueError(f"Unknown label type: ({WORD},)"),
    TypeError(f"Singleton array array({REAL}) cannot be considered a valid collection."),
    TypeError(f"float() argument must be a string or a real number, not '{WORD}'"),
    RuntimeError(WORD),
    KeyError(WORD),
    UserWarning(WORD),
    ValueError(WORD, REAL),
    ValueError(),
    ExceptionGroup(WORD, [ValueError(WORD)]),
]


@pytest.mark.parametrize("door", [shield, shield_code])
@pytest.mark.parametrize("error", PRIVATE_TEXTS, ids=lambda error: str(error)[:30])
def test_no_text_of_another_library_goes_through_unless_it_is_on_the_list(caplog, door, error):
    error.add_note(WORD)
    with pytest.raises((ParameterError, ShapeError, TypeError)):
        door("X", fail, error)
    texts = listen(caplog, door, "X", fail, error)
    assert marked(texts) == [], texts


@pytest.mark.parametrize("door", [shield, shield_code])
def test_public_texts_go_through_with_nothing_that_led_to_them(door):
    text = "X has 3 features, but GaussianNB is expecting 2 features as input."

    def chained():
        try:
            float(WORD)
        except ValueError as error:
            raise ValueError(text) from error

    with pytest.raises(ValueError, match="is expecting 2") as caught:
        door("X", chained)
    assert caught.value.__context__ is caught.value.__cause__ is None
    with pytest.raises(ParameterError, match="mine") as caught:
        door("X", fail, ParameterError("mine"))


FORMS = [
    (np.zeros(3), "has one dimension or none, .* Reshape your data"),
    (3.0, "has one dimension or none, .* Reshape your data"),
    (np.zeros((3, 2)) * 1j, "Complex data not supported: X must hold real numbers"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("bad", "rule"), FORMS)
@pytest.mark.parametrize("name", ["classifier", "regressor", "student", "hybrid", "scaler"])
def test_shapes_and_dtypes_are_refused_in_our_own_words(fitted, name, bad, rule):
    method = "transform" if name == "scaler" else "predict"
    for call in (getattr(fitted[name], method), lambda X: ESTIMATORS[name][0].fit(X, BITS)):
        with pytest.raises(ValueError, match=rule) as caught:
            call(bad)
        assert isinstance(caught.value, ParameterError | ValueError)
        assert caught.value.__context__ is None
