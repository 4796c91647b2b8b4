"""A classifier on private labels: what it promises beyond the contract of scikit-learn."""

import math
import pickle
import warnings

import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from hdp_fast import ParameterError, ShapeError, UtilityWarning
from hdp_fast.budget import Budget
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.data.frames import make_table
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.labels import LabelResult, PrivateLabeler, StatisticsLabeler
from hdp_fast.labels.pool import PoolTask, choose_members
from hdp_fast.sklearn import PrivateClassifier, PrivateStudentClassifier
from hdp_fast.sklearn.row_labels import encode

N = 6_000
RNG = np.random.default_rng(0)
ROWS, POOL = RNG.normal(size=(N, 2)), RNG.normal(size=(200, 2))
BITS = np.where(ROWS[:, 0] > 0, "up", "low")
TEXTS = np.array(["low", "middle", "up"])[np.digitize(ROWS[:, 0], [-0.6, 0.6])]


def student(estimator=None, **changed):
    settings = {
        "epsilon": 40.0,
        "pool": POOL,
        "classes": ["low", "up"],
        "method": "votes",
        "members": 12,
        "queries": 150,
        "test_seed": 1,
    }
    return PrivateStudentClassifier(estimator or GaussianNB(), **settings | changed)


@pytest.mark.parametrize("method", ["votes", "statistics"])
@pytest.mark.parametrize(("labels", "classes"), [(BITS, ["low", "up"]), (TEXTS, np.unique(TEXTS))])
def test_classes_are_learned_by_every_method(method, labels, classes):
    learner = student(method=method, classes=classes).fit(ROWS, labels)
    assert learner.method_ == method
    assert learner.members_ == (12 if method == "votes" else None)
    assert len(learner.pool_labels_) == len(learner.pool_rows_) <= 200
    assert set(learner.pool_labels_) <= set(classes)
    assert learner.score(ROWS, labels) > 0.75
    assert learner.predict_proba(ROWS[:9]).shape == (9, len(classes))
    assert learner.record_.epsilon == 40
    assert learner.record_.neighbors == "replace_one"


@pytest.mark.parametrize("epsilon", [40.0, math.inf])
def test_the_student_may_be_another_classifier(epsilon):
    learner = student(
        DecisionTreeClassifier(max_depth=2), student=LogisticRegression(C=0.5), epsilon=epsilon
    )
    assert hasattr(learner, "decision_function")
    learner.fit(ROWS, BITS)
    assert isinstance(learner.student_, LogisticRegression)
    assert learner.decision_function(ROWS[:5]).shape == (5,)
    assert learner.score(ROWS, BITS) > 0.85
    assert not hasattr(student(DecisionTreeClassifier()), "decision_function")
    assert not hasattr(student(RidgeClassifier()), "predict_proba")
    names = learner.get_params()
    assert names["student__C"] == 0.5
    assert names["estimator__max_depth"] == 2
    other = clone(learner).set_params(student__C=2.0)
    assert (other.student.C, learner.student.C) == (2.0, 0.5)


def test_without_noise_the_records_are_the_pool():
    learner = PrivateStudentClassifier(epsilon=math.inf).fit(ROWS, TEXTS)
    assert learner.score(ROWS, TEXTS) > 0.9
    assert learner.record_ is None
    assert learner.method_ is None
    assert len(learner.pool_rows_) == N


@pytest.mark.parametrize("classes", [[-1, 1], [False, True], [0.5, 1.5], ["", "x"]])
@pytest.mark.parametrize("method", ["votes", "statistics"])
def test_labels_of_every_kind_come_back(classes, method):
    labels = np.array(classes)[(BITS == "up").astype(int)]
    if labels.dtype.kind == "f":
        labels, classes = labels + 0.5, np.add(classes, 0.5)
    learner = student(method=method, classes=classes).fit(ROWS, labels)
    assert learner.classes_.dtype == np.array(classes).dtype
    predicted = learner.predict(ROWS)
    assert predicted.dtype.kind == labels.dtype.kind
    assert (predicted == labels).mean() > 0.8


def test_a_class_that_was_never_answered_has_no_share():
    learner = student(classes=["low", "middle", "up", "never"], student=LogisticRegression())
    learner.fit(ROWS, BITS)
    shares = learner.predict_proba(ROWS)
    known = np.isin(learner.classes_, learner.pool_labels_)
    assert 2 <= known.sum() < 4
    assert (shares[:, ~known] == 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    scores = learner.decision_function(ROWS)
    assert scores.shape == (N, 4)
    for values in (shares, scores):
        assert (learner.classes_[values.argmax(axis=1)] == learner.predict(ROWS)).all()


def test_answers_of_one_class_make_a_constant():
    with pytest.warns(UtilityWarning, match="all 150 labels of the pool are 'low'"):
        learner = student().fit(ROWS, np.full(N, "low"))
    assert set(learner.predict(ROWS)) == {"low"}
    assert learner.predict_proba(ROWS[:4]).tolist() == [[1, 0]] * 4


def test_a_fit_is_charged_once_and_whole():
    budget = Budget(50.0, 1e-5)
    learner = student().fit(ROWS, BITS, budget=budget)
    assert budget.spent == pytest.approx((40, 1e-6))
    assert (learner.record_.epsilon, learner.record_.delta) == (40.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        student(method="statistics").fit(ROWS, BITS, budget=budget)
    assert budget.spent.epsilon == 40
    all_failed = pytest.raises(ValueError, match="fits failed")
    with all_failed, pytest.warns(UtilityWarning, match="a fit was not made"):
        cross_val_score(student(), ROWS, BITS, cv=2, params={"budget": budget})


class Failing(GaussianNB):
    def fit(self, X, y):
        raise RuntimeError("no")


@each_case(
    ("learner", "text"),
    [
        (PrivateStudentClassifier(), "epsilon = None"),
        (student(pool=None), "pool = None"),
        (student(classes=None), "classes = None"),
        (student(classes=["low"]), "1 class"),
        (student(classes=["low", "other"]), "one of classes"),
        (student(classes=range(300)), "one of classes"),
        (student(pool=POOL[:, :1]), "pool has 1 columns"),
        (student(pool=pandas.DataFrame(POOL[:, :1])), "pool has 1 columns"),
        (student(method="tree"), "method"),
        (student(members=0), "members"),
        (student(members=N + 1), "6,001 members need"),
        (student(queries=0), "queries"),
        (student(queries=True), "queries"),
        (student(GaussianNB), "estimator"),
        (student(lambda X, y: None), "estimator"),
        (student(student=3), "student"),
        (student(Failing(), student=GaussianNB()), "no"),
        (student(student=Failing()), "student"),
        (student(schema=3), "schema"),
        (student(delta=0), "delta"),
        (student(epsilon=0), "epsilon"),
        (student(epsilon=math.inf), "charged to a budget"),
        (student(epsilon=1e-12, method="statistics", delta=1e-15), "epsilon"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(learner, text):
    budget = Budget(10.0, 1e-5)
    with pytest.raises(ValueError, match=text):
        learner.fit(ROWS, BITS, budget=budget)
    assert budget.spent.epsilon == 0


def test_a_pool_without_rows_is_refused():
    with pytest.raises(ValueError, match="0 sample"):
        student(pool=POOL[:0]).fit(ROWS, BITS)
    frame = pandas.DataFrame(ROWS, columns=["a", "b"])
    with pytest.raises(ShapeError, match="pool has 0 rows"):
        student(pool=frame[:0]).fit(frame, BITS)


def task(pool=POOL, **changed):
    settings = {"epsilon": 1.0, "delta": 1e-6, "queries": 500, "classes": np.arange(2)}
    return PoolTask.of(pool, **settings | changed)


def test_members_follow_from_public_numbers():
    plan = task().make_labeler().plan()

    def members(n):
        return choose_members(plan, n, "X")

    assert members(1_000_000) == plan.k
    assert members(15_000) == 500
    fewest = members(4_000)
    assert plan.flip(fewest) <= 0.05 < plan.flip(fewest - 1)
    with pytest.warns(UtilityWarning, match="learn next to nothing"):
        assert members(100) == 100


def test_the_method_follows_from_public_numbers():
    assert task().choose(N).method == "statistics"
    assert task(POOL[:3]).choose(N).method == "votes"
    assert task(FRAME[:200]).choose(N).method == "votes"
    # Whoever names an estimator wants votes.
    assert student(GaussianNB(), method="auto").fit(ROWS, BITS).method_ == "votes"


def test_too_few_records_are_noted_before_anything_is_learned():
    with pytest.warns(UtilityWarning, match="X has 60 records"):
        student(epsilon=0.5, members=None, queries=20).fit(ROWS[:60], BITS[:60])


def test_the_pool_is_asked_in_even_steps():
    learner = student(queries=4).fit(ROWS, BITS)
    assert set(learner.pool_rows_) <= {0, 50, 100, 150}


def test_classes_that_are_objects_are_found_as_texts():
    labels = np.array([10, 2, 10], object)
    assert encode(labels, np.array([2, 10], object)).tolist() == [1, 0, 1]


LEARNERS = {
    "votes": student(),
    "statistics": student(method="statistics"),
    "linear": PrivateClassifier(
        epsilon=40.0, bounds=(0, 1), classes=["low", "up"], method="statistics", test_seed=1
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_no_value_of_a_record_warns(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "random_state", UserWarning)
        warnings.filterwarnings("ignore", category=UtilityWarning)
        clone(LEARNERS[name]).fit(ROWS * 1e307, BITS).predict(ROWS * 1e307)
        # scikit-learn warns of more labels than half of the records.
        many = clone(LEARNERS[name]).set_params(classes=range(15))
        many.fit(ROWS[:24], np.arange(24) % 15)


def answer_alike(monkeypatch):
    """Labelers that look at no record."""

    def fit(self, *records, **options):
        self.members_ = 3
        return self

    def label(self, Q, **options):
        labels = np.array(["low", "up"])[np.arange(len(Q)) % 2]
        left = {"unstable_left": None, "queries_left": None}
        return LabelResult(labels=labels, is_bottom=labels == "", record=None, **left)

    for kind in (PrivateLabeler, StatisticsLabeler):
        monkeypatch.setattr(kind, "fit", fit)
        monkeypatch.setattr(kind, "label", label)


def states(learner):
    """What is kept of different records of one shape, beside what labelers make of them."""
    yield pickle.dumps(vars(clone(learner).fit(ROWS, BITS)))
    yield pickle.dumps(vars(clone(learner).fit(ROWS * 1e307, BITS)))
    yield pickle.dumps(vars(clone(learner).fit(ROWS[::-1] ** 2, np.full(N, "up"))))


class Keeping(PrivateStudentClassifier):
    """A broken variant, which keeps a number that it took from the records."""

    def _read_training(self, X, y):
        self.total_ = float(np.sum(X[0]))
        return super()._read_training(X, y)


@pytest.mark.parametrize("method", ["votes", "statistics", "auto"])
def test_nothing_is_kept_of_records_but_what_labelers_make(method, monkeypatch):
    answer_alike(monkeypatch)
    assert len(set(states(student(method=method)))) == 1
    broken = Keeping(**student(method=method).get_params(deep=False))
    assert len(set(states(broken))) > 1


def test_an_epsilon_too_small_for_votes_is_left_to_statistics():
    assert task(epsilon=1e-4).choose(N).method == "statistics"
    ones = np.ones((200, 2))
    assert task(ones).choose(N).method == "votes"
    assert task(pandas.DataFrame(ones, columns=["a", "b"])).choose(N).method == "votes"
    with pytest.raises(ParameterError, match="pool has rows that are all alike"):
        student(pool=np.ones((200, 2)), method="statistics").fit(ROWS, BITS)


# Frames ------------------------------------------------------------------------------------------

FRAME = pandas.DataFrame({"size": ROWS[:, 0], "place": np.where(ROWS[:, 1] > 0, "sea", "town")})
SCHEMA = Schema(
    Label("unused", above=0), {"size": Number(-3, 3), "place": Category(("sea", "town"))}
)


def encoded():
    encoder = OneHotEncoder(categories=[["sea", "town"]], sparse_output=False)
    return make_pipeline(
        make_column_transformer((encoder, ["place"]), remainder="passthrough"), GaussianNB()
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_texts_are_for_the_estimator(library):
    frame = FRAME
    if library == "polars":
        frame = pytest.importorskip("polars").DataFrame(FRAME.to_dict("list"))
    learner = student(encoded(), pool=frame[:300], members=5).fit(frame, BITS)
    assert list(learner.feature_names_in_) == ["size", "place"]
    assert learner.score(frame, BITS) > 0.85
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(frame[["place", "size"]])
    with pytest.raises(ParameterError, match="pool has its columns in another order"):
        student(encoded(), pool=frame[["place", "size"]]).fit(frame, BITS)


@pytest.mark.parametrize("method", ["votes", "statistics"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "table"])
def test_a_schema_makes_numbers_of_frames(method, kind):
    pool = FRAME[["place", "size"]][:300]  # in any order
    frame = FRAME
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame(FRAME.to_dict("list"))
    elif kind == "table":
        frame = make_table("X", FRAME, SCHEMA)
    learner = student(schema=SCHEMA, pool=pool, method=method).fit(frame, BITS)
    assert learner.n_features_in_ == 2
    assert (learner.predict(frame) == BITS).mean() > 0.85


def test_missing_values_in_frames_raise_nothing():
    frame = FRAME.copy()
    frame.loc[5, "size"] = math.nan
    frame.loc[6, "place"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "random_state", UserWarning)
        learner = student(encoded(), pool=FRAME[:300]).fit(frame, BITS)
    assert learner.score(FRAME, BITS) > 0.85


def test_it_works_in_pipelines_and_is_pickled_and_shown():
    doubled = FunctionTransformer(np.array)
    pipeline, budget = make_pipeline(doubled, student()), Budget(40.0, 1e-5)
    pipeline.fit(ROWS, BITS, privatestudentclassifier__budget=budget)
    assert budget.remaining.epsilon == 0
    stored = pickle.dumps(pipeline)
    assert (pickle.loads(stored).predict(ROWS) == pipeline.predict(ROWS)).all()
    assert "PrivateStudentClassifier" in pipeline._repr_html_()
    # Nothing of the members is kept.
    assert len(stored) < 40_000
