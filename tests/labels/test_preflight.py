"""A learner that would fail in silence is tried on public rows, before anything is paid for."""

import everyday_mistakes
import numpy as np
import pytest
from everyday_mistakes import MISTAKES, run
from voters import Q, X, Y, fitted, labeler, soft

from hdp_fast import Budget
from hdp_fast.exceptions import ParameterError, UtilityWarning
from hdp_fast.labels import PrivateLabeler, PrivateLearner

pandas = pytest.importorskip("pandas")
linear_model = pytest.importorskip("sklearn.linear_model")
naive_bayes = pytest.importorskip("sklearn.naive_bayes")
SAID = {
    "one NaN in Q": ("label", "Input X contains NaN"),
    "a new category in Q": ("label", r"Found unknown categories \['new'\]"),
    "a column of texts": ("label", "could not convert string to float: 'u'"),
    "learner says 0 and 1, not a and b": ("label", "200 of 200 predictions are none of classes"),
    "columns in another order": ("label", r"take Q\[list\(X.columns\)\]"),
    "X of one dimension": ("fit", "as X.reshape"),
    "learner always fails": ("label", "division by zero"),
    "sparse X, dense learner": ("fit", r"take X.toarray\(\)"),
    "another dtype": ("label", "column 'a' of Q has dtype"),
}


@pytest.mark.thorough(cases=5)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_everyday_mistake_is_told_before_any_vote(mistake):
    where, error, notes, result = run(mistake, members=100)
    if mistake not in SAID:
        assert (where, error) == ("", "")
        assert not any("learner" in text for text in notes)
        assert len(result.labels) == 200
        return
    assert where == SAID[mistake][0]
    with pytest.raises(ParameterError, match=SAID[mistake][1]):
        raise ParameterError(error)
    assert "preflight=False" in error or " of Q " in error or error.startswith("Q ")


def always_fails(X, y):
    raise ZeroDivisionError


def test_what_is_refused_costs_no_query_and_no_budget():
    made = fitted(always_fails)
    for _ in range(2):
        with pytest.raises(ParameterError, match="learner is of no use for these points"):
            made.label(Q)
    assert made.queries_left == 50
    assert made.label(Q, preflight=False).labels.tolist() == [0] * 4
    scores = soft(always_fails).fit(X, Y, random_state=1)
    with pytest.raises(ParameterError, match="fail score 0 everywhere"):
        scores.score(Q, 2)
    assert scores.score(Q, 2, preflight=False).scores.tolist() == [0.25] * 4
    budget = Budget(50, 0.01)
    with pytest.raises(ParameterError, match="of no use"):
        PrivateLearner(labeler(always_fails), lambda X, y: max).fit(X, Y, Q, budget=budget)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    learner = PrivateLearner(labeler(), lambda X, y: max)
    with pytest.raises(ParameterError, match="public has its columns in another order, 'b', 'a'"):
        learner.fit(frame, Y, frame[["b", "a"]][:9], budget=budget)
    with pytest.raises(ParameterError, match="it fails on a sparse matrix"):
        fitted(records=everyday_mistakes.sparse(X), budget=budget)
    assert budget.spent == (0, 0)


def test_check_needs_no_records_and_spends_nothing():
    points = np.vstack([Q] * 5)
    labeler().check(points)
    labeler().check(points, records=600)
    points[7, 1] = np.nan
    for made in (labeler(linear_model.LogisticRegression()), fitted(linear_model.Ridge())):
        with pytest.raises(ParameterError, match="Input X contains NaN"):
            made.check(points)
    with pytest.raises(ParameterError, match="Input X contains NaN"):
        soft(linear_model.LogisticRegression()).check(points)
    with pytest.raises(ParameterError, match="records = 0"):
        labeler().check(points, records=0)


def test_every_new_point_is_tried_and_members_are_trained_for_it_once():
    trained = []

    def learner(X, y):
        trained.append(len(X))
        model = naive_bayes.GaussianNB().fit(X, y)
        return model.predict

    class Shared:
        def __call__(self, X, y):
            return learner(X, y)

        def __deepcopy__(self, memo):
            return self

    made = fitted(Shared(), members=60)
    after_fit = len(trained)
    made.label(Q)
    once = len(trained)
    assert once > after_fit
    made.label(Q + 1)
    assert len(trained) == once
    with pytest.raises(ParameterError, match="Input X contains NaN"):
        made.label(Q * np.nan)


@pytest.mark.parametrize(
    "records", [X, X.astype(object), pandas.DataFrame(X), X[:, 0], X.astype("f4")]
)
def test_a_learner_that_works_on_real_rows_is_not_refused(records):
    """It can be trained on what X holds alone: trials on made-up rows prove nothing."""

    def learner(X, y):
        values = np.asarray(X, float)
        if not (values < 0).any():
            raise ValueError("all of them are positive")
        return lambda Q: (np.asarray(Q, float).reshape(len(Q), -1)[:, 0] > 0).astype(int)

    points = records[:50]
    made = fitted(learner, records=records)
    truth = np.asarray(points, float).reshape(50, -1)[:, 0] > 0
    assert made.label(points).labels.tolist() == truth.tolist()


def test_in_doubt_there_is_a_note():
    with pytest.warns(UtilityWarning, match="which may be no fault of it"):
        fitted(always_fails)
    texts = pandas.DataFrame({"c": ["u", "v"] * 300, "v": X[:, 0]})
    with pytest.warns(UtilityWarning, match="but X has a column of texts"):
        fitted(linear_model.LogisticRegression(), records=texts)
    points = pandas.DataFrame({"c": ["u", "v"] * 9 + ["w"], "a": np.arange(19.0)})
    made = labeler(everyday_mistakes.one_hot())
    with pytest.warns(UtilityWarning, match="have not seen all values of Q"):
        made.check(points, records=60 * 300)


def test_nothing_is_tried_for_those_who_look_themselves():
    made = fitted(always_fails, diagnose=True)
    made.label(Q)
    assert len(made.diagnosis_) == 60


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("entry", ["1", "x", "\u00b5" * 50])
def test_trials_read_no_private_entry(entry):
    """What made-up rows hold follows from the container, dtypes and columns of X alone."""
    seen = []

    class Sees:
        def __call__(self, X, y):
            seen.append((X.to_numpy().tolist(), y.tolist(), list(X.columns)))
            raise ValueError

        def __deepcopy__(self, memo):
            return self

    frames = []
    for text in ("a", entry):
        column = pandas.Series([text, "b"] * 300)
        frames.append(pandas.DataFrame({"t": column, "c": column.astype("category"), "v": X[:, 0]}))
        made = labeler(Sees())
        with pytest.warns(UtilityWarning):
            made.fit(frames[-1], Y, random_state=3)
        seen[:] = [*seen[: 2 * len(frames)]]
    assert seen[:2] == seen[2:4]


def test_a_loaded_labeler_compares_and_does_not_try(tmp_path):
    pytest.importorskip("joblib")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    fitted(records=frame).save(tmp_path / "kept")
    made = PrivateLabeler.load(tmp_path / "kept", trusted=True)
    with pytest.raises(ParameterError, match="another order"):
        made.label(frame[["b", "a"]][:4])
    with pytest.raises(ParameterError, match="Q is an array, but X is a data frame of pandas"):
        made.check(Q)
    assert len(made.label(frame[:4]).labels) == 4


def test_kinds_of_columns_are_told_apart_by_name():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": X[:, 0], "t": ["u", "v"] * 300})
    made = fitted(lambda X, y: lambda Q: np.zeros(len(Q), int), records=frame)
    made.check(
        frame.with_columns(polars.col("t").cast(polars.Categorical), polars.col("a").round())
    )
    with pytest.raises(ParameterError, match="column 't' of Q has dtype Int64, but in X it is"):
        made.check(frame.with_columns(polars.lit(1).cast(polars.Int64).alias("t")))
    with pytest.raises(ParameterError, match="Q lacks 't' and has 'u'"):
        made.check(frame.rename({"t": "u"}))
    with pytest.raises(ParameterError, match="a data frame of pandas, but X is a data frame of po"):
        made.check(pandas.DataFrame({"a": [1.0], "t": ["u"]}))
