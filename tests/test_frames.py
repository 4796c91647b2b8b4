"""Frames whose columns come in another order: put in order by their names, or refused."""

import math

import numpy as np
import pytest

from hdp_fast import adaptation
from hdp_fast._support.feature_names import check_names, names_of
from hdp_fast.data import read_table
from hdp_fast.exceptions import ParameterError
from hdp_fast.gf2 import BitMatrix
from hdp_fast.learners import (
    Conjunctions,
    ExponentialLearner,
    LinearSeparator,
    Parities,
    PrivateSGD,
)
from hdp_fast.local import EmpiricalOracle
from hdp_fast.transfer import SubsampleTestReweigh

NAMES = ("a", "b", "c")
OTHER = [2, 0, 1]
KINDS = ("pandas", "polars", "pyarrow")
SETTINGS = {
    "loss": "logistic",
    "steps": 200,
    "batch_size": 20,
    "noise_multiplier": 1.0,
    "radius": 5.0,
    "norm_bound": 2.0,
}


def frame(kind, X, order=(0, 1, 2), names=NAMES):
    """The records in a container of this kind, their columns in this order."""
    module = pytest.importorskip(kind)
    columns = {names[place]: X[:, place] for place in order}
    return module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)


def problem(seed, n=400):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 3), dtype=np.uint8)
    return bits, rng.normal(size=(n, 3)) / 4 + bits / 2


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_names_are_those_of_the_container(kind, tmp_path):
    X = np.eye(3)
    assert names_of(frame(kind, X)) == NAMES
    assert names_of(frame(kind, X, OTHER)) == ("c", "a", "b")
    path = tmp_path / "some.csv"
    path.write_text("b,a\n1,2\n")
    table = read_table(path)
    assert names_of(table) == ("b", "a")
    assert names_of(check_names(("a", "b"), table)) == ("a", "b")


def test_arrays_have_no_names():
    pandas = pytest.importorskip("pandas")
    X = np.eye(3)
    for nameless in (
        X,
        X.tolist(),
        None,
        BitMatrix.from_dense(X.astype(np.uint8)),
        pandas.DataFrame(X),
    ):
        assert names_of(nameless) is None
        assert check_names(NAMES, nameless) is nameless


def test_a_column_is_not_taken_for_the_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"column_names": ["secret"], 0: ["secret"]})
    assert names_of(frame) is None
    assert names_of(frame[["column_names"]]) == ("column_names",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "b", "x"), r"X lacks 'c' and also has 'x', but it must have the 3 columns"),
        (("a", "b"), "X lacks 'c', but"),
        (("c", "b", "a", "x"), "X also has 'x', but"),
        (("x1", "x2", "x3", "x4", "a", "b", "c"), "'x1', 'x2', 'x3' and 1 more"),
    ],
)
def test_other_columns_are_refused_by_name(kind, names, message):
    other = frame(kind, np.eye(len(names)), range(len(names)), names)
    with pytest.raises(ParameterError, match=message):
        check_names(NAMES, other)


def test_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame(np.eye(4), columns=["b", "a", "c", "a"])
    with pytest.raises(ParameterError, match="two columns of one name"):
        check_names(NAMES, twice)


def learn_linear(X, y):
    learner = PrivateSGD(**SETTINGS)
    return learner.learn(X, y, random_state=1)


def learn_prepared(X, y):
    learner = PrivateSGD(**SETTINGS)
    return learner.learn(learner.prepare(X), y, random_state=1)


def choose(X, y):
    return ExponentialLearner(Conjunctions(3, 1), epsilon=100.0).learn(X, y, random_state=1)


def separate(X, y):
    return LinearSeparator().learn(X, y)


@pytest.mark.parametrize("learn", [learn_linear, learn_prepared, choose, separate])
def test_predictions_are_the_same_for_columns_in_another_order(kind, learn):
    bits, numbers = problem(1)
    X, y = bits if learn is choose else numbers, bits[:, 0]
    result = learn(frame(kind, X), y)
    expected = result.predict(X)
    assert expected.mean() not in (0, 1)
    assert result.feature_names_in_ == NAMES
    assert (result.predict(frame(kind, X, OTHER)) == expected).all()
    with pytest.raises(ParameterError, match="lacks 'c'"):
        result.predict(frame(kind, X, (0, 1)))
    assert learn(X, y).feature_names_in_ is None


def test_a_result_has_words_with_the_names_of_its_frame():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(1).integers(0, 2, (500, 3), dtype=np.uint8)
    y = X[:, 0] & (1 - X[:, 2])
    learner = ExponentialLearner(Conjunctions(3, 2, complements=True), epsilon=500.0)
    frame = pandas.DataFrame(X, columns=["tall", "old", "rich"])
    assert learner.learn(frame, y, random_state=1).words == "tall and not rich"
    assert learner.learn(X, 1 - y, random_state=1).words == "not x0 or x2"
    odd = ExponentialLearner(Parities(np.eye(3, dtype=np.uint8)), epsilon=500.0)
    assert odd.learn(X, X[:, 1], random_state=1).words == "x1"


TRANSFER = {"alpha": 0.1, "kappa": 0.5, "eta": 1.0, "rounds": 2, "epsilon": math.inf, "draws": 100}


def odd(X, y):
    """A learner of the caller's own, whose predictor knows places alone."""
    return lambda rows: np.asarray(rows)[:, 0]


@pytest.mark.parametrize(
    "learner",
    [ExponentialLearner(Conjunctions(3, 1), epsilon=100.0), odd],
    ids=["finite class", "own learner"],
)
def test_a_transfer_puts_columns_in_order(kind, learner):
    X, _ = problem(1)
    agents = EmpiricalOracle(X, X[:, 0])
    run = SubsampleTestReweigh(learner, **TRANSFER)
    run.fit(frame(kind, X), X[:, 0], agents, random_state=1)
    for predictor in run, run.result_:
        assert (predictor.predict(frame(kind, X, OTHER)) == X[:, 0]).all()
        with pytest.raises(ParameterError, match="lacks 'c'"):
            predictor.predict(frame(kind, X, (0, 1)))
    assert run.result_.feature_names_in_ == NAMES
    run.fit(X, X[:, 0], agents, random_state=1)
    assert run.result_.feature_names_in_ is None


def test_losses_and_prepared_records_take_columns_in_another_order(kind):
    bits, X = problem(1)
    model = learn_linear(frame(kind, X), bits[:, 0])
    expected = model.losses(X, bits[:, 0])
    other = frame(kind, X, OTHER)
    assert (model.losses(other, bits[:, 0]) == expected).all()
    prepared = PrivateSGD(**SETTINGS).prepare(other)
    assert (model.losses(prepared, bits[:, 0]) == expected).all()


def test_indices_keep_the_names(kind):
    bits, X = problem(1)
    result = LinearSeparator().learn_indices(frame(kind, X), bits[:, 0], np.arange(400))
    assert (result.predict(frame(kind, X, OTHER)) == result.predict(X)).all()


ESTIMATORS = {
    "convex": adaptation.ConvexAdaptation(epsilon=4.0, norm_bound=3.0),
    "nonconvex": adaptation.NonConvexAdaptation(epsilon=4.0, norm_bound=3.0),
    "means": adaptation.KernelMeanMatching(steps=20),
    "discrepancies": adaptation.DiscrepancyMinimization(steps=20),
    "private": adaptation.PrivateDiscrepancyMinimization(
        epsilon=4.0, delta=1e-6, norm_bound=3.0, steps=20
    ),
    "sgd": adaptation.TargetSGD(epsilon=4.0, delta=1e-6, norm_bound=3.0, steps=20),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_put_source_and_predictions_in_the_targets_order(kind, name):
    estimator = ESTIMATORS[name]
    (bits, X), (others, Z) = problem(1), problem(2, 100)
    y, z = [b[:, 0] if name == "nonconvex" else b[:, 0] - 0.5 for b in (bits, others)]
    coins = {} if name in {"means", "discrepancies"} else {"random_state": 1}
    expected = estimator.fit(X, y, Z, z, **coins).coef_
    assert estimator.feature_names_in_ is None
    estimator.fit(frame(kind, X, OTHER), y, frame(kind, Z), z, **coins)
    np.testing.assert_allclose(estimator.coef_, expected, atol=1e-9)
    assert estimator.feature_names_in_ == NAMES
    assert (estimator.predict(frame(kind, Z, OTHER)) == estimator.predict(Z)).all()
    with pytest.raises(ParameterError, match="X_source lacks 'c'"):
        estimator.fit(frame(kind, X[:, :2], (0, 1)), y, frame(kind, Z), z)
    with pytest.raises(ParameterError, match="X lacks 'c'"):
        estimator.predict(frame(kind, Z, (0, 1)))


@pytest.mark.parametrize("method", ["private_selection", "not_private"])
def test_tuning_keeps_the_names(kind, method):
    (bits, X), (others, Z) = problem(1), problem(2, 100)
    estimator = adaptation.ConvexAdaptation(epsilon=4.0, norm_bound=3.0, steps=5)
    data = [X, bits[:, 0] - 0.5, frame(kind, Z), others[:, 0] - 0.5]
    result = adaptation.tune(estimator, {"alpha": [0.5, 0.6]}, *data, method=method, random_state=1)
    assert result.estimator.feature_names_in_ == NAMES
    scores = result.estimator.scores(frame(kind, Z, OTHER))
    assert (scores == result.estimator.scores(Z)).all()


def test_discrepancies_compare_columns_of_one_name(kind):
    (bits, X), (others, Z) = problem(1), problem(2, 100)
    y, z = bits[:, 0] - 0.5, others[:, 0] - 0.5
    expected = adaptation.discrepancy(X, y, Z, z, radius=1.0).value
    same = adaptation.discrepancy(frame(kind, X, OTHER), y, frame(kind, Z), z, radius=1.0)
    assert same.value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ParameterError, match="X_source also has 'c'"):
        adaptation.discrepancy(frame(kind, X), y, frame(kind, Z, (0, 1)), z, radius=1.0)
