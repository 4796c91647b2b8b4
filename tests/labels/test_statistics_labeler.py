"""Labels by one release: the same manners as voters, and nothing private that shows."""

import itertools
import json
import math

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, PrivacyRecord, labels
from hdp_fast.data import Category, Chunks, Column, Label, Number, Schema, Table
from hdp_fast.exceptions import (
    BudgetExceeded,
    CheckpointError,
    ParameterError,
    ShapeError,
    UtilityWarning,
)
from hdp_fast.labels import public_features
from hdp_fast.labels.public_features import Release, make_features
from hdp_fast.learners import FeatureMap, SufficientStatistics

GOAL = {"epsilon": 2.0, "delta": 1e-6}
CLASSES = ["high", "low", "middle"]


def blobs(n, seed, classes=3, d=4):
    """Rows around one of three centers, and the text of each."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    X = rng.normal(size=(n, d))
    X[np.arange(n), codes] += 4
    return X, np.array(CLASSES)[codes]


X, Y = blobs(3_000, 0)
Q, TRUTH = blobs(500, 1)


RELEASE = Release(len(X), np.array(CLASSES), 2.0, 1e-6)


def made(**changes):
    return labels.StatisticsLabeler(**{**GOAL, "classes": CLASSES, **changes})


def fitted(**changes):
    return made(**changes).fit(X, Y, Q, random_state=3)


def compare(features, rows, seed):
    """The comparison of 400 rows with the others."""
    state = public_features.mean_description(features).fold(rows[:400], np.ones(400))
    how = {"epsilon": 1.0, "delta": 1e-6, "random_state": seed}
    return public_features.compare_populations(features, state, rows[400:], **how)


def test_labels_are_right_for_any_number_of_queries():
    labeler = fitted()
    for _ in range(3):
        result = labeler.label(Q)
        assert (result.labels == TRUTH).mean() > 0.9
    assert result.queries_left is None
    assert result.unstable_left is None
    assert "any number of queries left" in repr(result)
    assert json.loads(result.to_json())["queries_left"] is None
    assert labeler.method_ == "statistics"
    assert labeler.model_.predict(Q[:1])[0] in CLASSES
    record = result.record
    assert (record.epsilon, record.delta, record.neighbors) == (2.0, 1e-6, "replace_one")
    assert PrivacyRecord.from_json(record.to_json()) == record
    assert "learned by statistics" in repr(labeler)


def test_bottoms_are_where_the_posterior_is_below_the_threshold():
    labeler = fitted(threshold=0.8, bottom="unsure")
    result, posteriors = labeler.label(Q), labeler.predict_proba(Q)
    assert np.array_equal(result.is_bottom, posteriors.max(axis=1) < 0.8)
    assert (result.labels[result.is_bottom] == "unsure").all()
    assert 0 < result.is_bottom.sum() < len(Q)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1)
    assert labeler.set_params(threshold=0.0).label(Q).is_bottom.sum() == 0


def test_two_integer_classes_have_no_bottom_by_default():
    y = (Y == "high").astype(int)
    result = made(classes=[0, 1]).fit(X, y, Q, random_state=0).label(Q)
    assert set(result.labels.tolist()) == {0, 1}
    assert (
        made(classes=[0, 1], threshold=0.99).fit(X, y, Q, random_state=0).label(Q).labels.min()
        == -1
    )


def test_a_budget_is_charged_once_and_before_anything_is_drawn(monkeypatch):
    budget = Budget(2.0, 1e-6)
    labeler = made().fit(X, Y, Q, budget=budget)
    labeler.label(Q)
    assert budget.remaining.epsilon == 0
    monkeypatch.setattr(SufficientStatistics, "release", None)
    with pytest.raises(BudgetExceeded):
        made().fit(X, Y, Q, budget=budget)


@each_case(
    ("changes", "error"),
    [
        ({"epsilon": 0}, ParameterError),
        ({"epsilon": math.inf}, ParameterError),
        ({"epsilon": math.nan}, ParameterError),
        ({"epsilon": 1e-13, "delta": 1e-13}, ParameterError),
        ({"epsilon": 1e-13, "delta": 1e-13, "population": "tested"}, ParameterError),
        ({"delta": 0}, ParameterError),
        ({"delta": 1}, ParameterError),
        ({"classes": ["high"]}, ParameterError),
        ({"classes": ["high", "low", "other"]}, ParameterError),
        ({"classes": [1, 2, 3]}, ParameterError),
        ({"threshold": 1}, ParameterError),
        ({"threshold": -0.1}, ParameterError),
        ({"threshold": "half"}, ParameterError),
        ({"penalty": 0}, ParameterError),
        ({"population": "other"}, ParameterError),
        ({"features": "whitening"}, ParameterError),
        ({"features": FeatureMap.identity(3)}, ShapeError),
        ({"schema": {}}, ParameterError),
        ({"bottom": "low"}, ParameterError),
        ({"bottom": 5}, ParameterError),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_spent(changes, error):
    budget = Budget(10.0, 1e-3)
    with pytest.raises(error, match="but"):
        made(**changes).fit(X, Y, Q, budget=budget)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("records", "targets", "public"),
    [
        (X[0], Y, Q),
        (X, Y[:-1], Q),
        (X, Y, Q[:, :3]),
        (X[:, :0], Y, Q),
        (X, Y, Q[:0]),
        (X.astype(object).astype(str), Y, Q),
        (X, np.where(np.arange(len(Y)) == 7, "another", Y), Q),
        (X, Y, np.zeros_like(Q)),
        (X, Y, [["a", "b", "c", "d"]]),
    ],
)
def test_bad_data_are_refused_before_anything_is_spent(records, targets, public):
    budget = Budget(10.0, 1e-3)
    with pytest.raises((ShapeError, ParameterError)):
        made().fit(records, targets, public, budget=budget)
    assert budget.spent.epsilon == 0


def test_an_unfitted_labeler_and_other_points_are_refused():
    with pytest.raises(ParameterError, match="fit must"):
        made().label(Q)
    with pytest.raises(ShapeError, match="Q has 3 columns"):
        fitted().label(Q[:, :3])
    with pytest.raises(ParameterError, match="Q is"):
        fitted().label(pytest.importorskip("pandas").DataFrame(Q))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, -1e200, 1e-310])
def test_hostile_numbers_in_a_record_cause_nothing_and_move_little(value, recwarn):
    poisoned = X.copy()
    poisoned[17] = value
    one = made().fit(X, Y, Q, random_state=5)
    other = made().fit(poisoned, Y, Q, random_state=5)
    moved = other.statistics_.cross_moments - one.statistics_.cross_moments
    assert np.linalg.norm(moved) <= 2 * math.sqrt(2 / 3) + 1e-9
    assert other.record_ == one.record_
    assert not [w for w in recwarn if "random_state" not in str(w.message)]


def test_features_depend_on_the_pool_alone():
    """All neighbors of a data set are summed in the same features: brute force over
    replacements."""
    for row in ([100.0, -3, 0, 1], [0.0] * 4, [math.nan] * 4):
        changed = X.copy()
        changed[0] = row
        features = made().fit(changed, Y, Q, random_state=1).statistics_.features
        assert features == make_features(Q, None, None, RELEASE).features
        rows = features(np.nan_to_num(changed))
        assert (np.linalg.norm(rows, axis=1) <= 1).all()


def test_every_replacement_moves_the_sums_by_at_most_the_sensitivity():
    """Exact, on tiny instances: all pairs of records and labels."""
    features = make_features(Q, None, None, RELEASE)
    rows = features.features(
        features.rows("X", np.vstack([X[:12], -50 * X[:12], np.zeros((1, 4))]))
    )
    indicators = np.eye(3) - 1 / 3
    moves = [
        np.linalg.norm(np.outer(a, e) - np.outer(b, f))
        for a in rows
        for b in rows
        for e in indicators
        for f in indicators
    ]
    bound = 2 * math.sqrt(2 / 3)
    if features.features.nonnegative_products:
        bound = math.sqrt(2)
    assert max(moves) <= bound
    assert max(moves) > 0.5 * bound


def test_data_frames_are_scaled_column_by_column():
    pandas = pytest.importorskip("pandas")
    units = np.array([1, 1e4, 1e-3, 1])
    frame, points = pandas.DataFrame(X * units), pandas.DataFrame(Q * units)
    result = made().fit(frame, Y, points, random_state=3).label(points)
    assert (result.labels == TRUTH).mean() > 0.9
    with pytest.raises(ParameterError, match="lacks"):
        made().fit(frame, Y, points.rename(columns={0: "zero"}))
    with pytest.raises(ParameterError, match="pass a schema"):
        made().fit(frame.assign(color="red"), Y, points.assign(color="red"))


def test_polars_frames_and_sparse_matrices_are_taken():
    sparse = pytest.importorskip("scipy.sparse")
    dense = fitted().predict_proba(Q)
    labeler = made().fit(sparse.csr_matrix(X), Y, sparse.csr_matrix(Q), random_state=3)
    np.testing.assert_allclose(labeler.predict_proba(sparse.csr_matrix(Q)), dense)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(Q, schema=list("abcd"))
    labeler = made().fit(polars.DataFrame(X, schema=list("abcd")), Y, frame, random_state=3)
    assert (labeler.label(frame).labels == TRUTH).mean() > 0.9


def people(n, seed):
    rng = np.random.default_rng(seed)
    color, size = rng.choice(["red", "blue"], n), rng.uniform(0, 100, n)
    return color, size, np.where((color == "red") == (size > 30), "yes", "no")


SCHEMA = Schema(
    Label("buys", positive=("yes",)),
    {"color": Category(("red", "blue")), "size": Number(0, 100)},
)


def test_a_schema_makes_numbers_of_data_frames_and_tables():
    pandas = pytest.importorskip("pandas")
    color, size, _ = people(4_000, 0)
    y = np.where(size > 50, "yes", "no")
    frame = pandas.DataFrame({"color": color, "size": size})
    frame.loc[3, "size"] = math.nan
    labeler = made(classes=["no", "yes"], schema=SCHEMA)
    labeler.fit(frame, y, frame[:300], random_state=2)
    assert (labeler.label(frame[:300]).labels == y[:300]).mean() > 0.9
    columns = {
        "color": Column(("red", "blue"), (color == "blue").astype(np.intp)),
        "size": Column(tuple(map(str, size)), np.arange(len(size))),
    }
    table = Table(columns, len(size))
    labeler.fit(table, y, table.select(np.arange(300)), random_state=2)
    assert (labeler.label(table).labels == y).mean() > 0.9
    with pytest.raises(ParameterError, match="without a schema"):
        made(classes=["no", "yes"]).fit(table, y, table)
    with pytest.raises(ParameterError, match="a Table or a data frame"):
        made(schema=SCHEMA).fit(X, Y, Q)


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_a_saved_labeler_answers_the_same_without_pickle(tmp_path, shift):
    labeler = made(population="tested").fit(X, Y, Q + shift, random_state=4)
    assert labeler.method_ == ("gradients" if shift else "statistics")
    path = tmp_path / "labels.npz"
    labeler.save(path)
    with np.load(path, allow_pickle=False) as content:
        assert "text" in content.files
    loaded = labels.StatisticsLabeler.load(path)
    np.testing.assert_allclose(loaded.predict_proba(Q), labeler.predict_proba(Q))
    assert np.array_equal(loaded.label(Q).labels, labeler.label(Q).labels)
    assert (loaded.record_, loaded.method_) == (labeler.record_, labeler.method_)
    assert loaded.test_ == labeler.test_
    with pytest.raises(ParameterError, match="new file"):
        labeler.save(path)


def test_files_that_are_something_else_are_refused(tmp_path):
    path = tmp_path / "labels.npz"
    with pytest.raises(CheckpointError):
        labels.StatisticsLabeler.load(path)
    path.write_bytes(b"PK nothing")
    with pytest.raises(CheckpointError):
        labels.StatisticsLabeler.load(path)
    np.savez(path, text=np.array("{}"))
    with pytest.raises(CheckpointError):
        labels.StatisticsLabeler.load(path)
    fitted().save(tmp_path / "kept.npz")
    content = (tmp_path / "kept.npz").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError):
        labels.StatisticsLabeler.load(path)


def test_a_pool_of_another_population_is_noticed_and_gradients_learn_instead():
    far = made(population="tested").fit(X, Y, Q + 4, random_state=0)
    near = made(population="tested").fit(X, Y, Q, random_state=0)
    assert not far.test_.passed
    assert near.test_.passed
    assert (far.method_, near.method_) == ("gradients", "statistics")
    assert far.statistics_ is None
    assert (far.label(Q).labels == TRUTH).mean() > 0.8
    likeliest = far.model_.predict_proba(Q).argmax(axis=1)
    assert (far.model_.predict(Q) == far.classes_[likeliest]).all()
    test = near.test_
    assert test.epsilon + near.statistics_.record.epsilon <= 2.0
    assert test.delta + near.statistics_.record.delta <= 1e-6
    assert near.record_.epsilon == 2.0
    assert json.loads(test.to_json())["epsilon"] == pytest.approx(0.2)


def test_the_comparison_rejects_one_population_rarely():
    """Level 0.01 with slack: no rejection among fifty, as McDiarmid's bound has it."""
    rejected = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(600, 3))
        features = FeatureMap.identity(3, norm_bound=2)
        test = compare(features, rows, seed)
        rejected += not test.passed
    assert rejected == 0


def test_a_comparison_with_too_small_a_bound_rejects_one_population_often(monkeypatch):
    """The broken variant: without the parts for chance and tolerance most pools are rejected."""
    monkeypatch.setattr(public_features, "largest_distance", lambda *parts: 0.5 * parts[-1])
    rows = np.random.default_rng(0).normal(size=(600, 3))
    features = FeatureMap.identity(3, norm_bound=2)
    passed = [compare(features, rows, seed).passed for seed in range(20)]
    assert sum(passed) < 10


def test_noise_alone_is_noted():
    with pytest.warns(UtilityWarning, match="noise"):
        made(epsilon=0.001).fit(X[:100], Y[:100], Q)


def test_a_comparison_that_sees_nothing_is_noted():
    with pytest.warns(UtilityWarning, match="comparison only makes out mean features"):
        made(epsilon=0.5, population="tested").fit(X[:600], Y[:600], Q)


def test_clones_and_copies_have_learned_nothing():
    labeler = fitted()
    assert "not fitted" in repr(labeler.unfitted())
    assert labeler.unfitted().get_params() == labeler.get_params()


def parts_of(X, y, **how):
    ends = [0, 0, 700, 701, len(y)]
    pairs = itertools.pairwise(ends)
    return Chunks([(X[start:stop], y[start:stop]) for start, stop in pairs], **how)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize(
    ("population", "shift", "method"),
    [("same", 0, "statistics"), ("tested", 0, "statistics"), ("tested", 3, "gradients")],
)
def test_fit_on_parts_has_the_bits_of_one_array(population, shift, method, workers):
    if workers:
        pytest.importorskip("joblib")
    labeler, budget = made(population=population), Budget(2.0, 1e-6)
    whole = labeler.unfitted().fit(X, Y, Q + shift, random_state=3)
    labeler.fit(parts_of(X, Y, workers=workers), public=Q + shift, budget=budget, random_state=3)
    assert labeler.method_ == whole.method_ == method
    assert labeler.predict_proba(Q).tobytes() == whole.predict_proba(Q).tobytes()
    assert labeler.record_ == whole.record_
    assert budget.spent == (2.0, 1e-6)


def test_fit_on_parts_of_tables_reads_them_by_the_schema(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    schema = Schema(columns={name: Number(-8, 8) for name in names})
    frame = pandas.DataFrame(X, columns=names).assign(kind=Y)
    for number, rows in enumerate(np.array_split(np.arange(len(Y)), 3)):
        frame.iloc[rows].to_csv(tmp_path / f"{number}.csv", index=False)
    pool = pandas.DataFrame(Q, columns=names)
    whole = made(schema=schema).fit(frame[names], Y, pool, random_state=3)
    ours = made(schema=schema).fit(Chunks(tmp_path, label="kind"), public=pool, random_state=3)
    assert ours.predict_proba(pool).tobytes() == whole.predict_proba(pool).tobytes()


@pytest.mark.parametrize(
    ("parts", "how", "error", "match"),
    [
        ([(X, Y), (X, np.full(len(Y), "other"))], {}, ParameterError, "must be one of classes"),
        ([(X, Y), (X[:, :3], Y)], {}, ShapeError, "X has 3 columns"),
        ([X], {}, ParameterError, "the parts have no labels"),
        ([(X[:0], Y[:0])], {}, ShapeError, "the parts hold no row"),
        ([(X, Y)], {"y": Y}, ParameterError, "y was passed beside Chunks"),
    ],
)
def test_wrong_parts_are_refused_before_anything_is_spent(parts, how, error, match):
    budget = Budget(2.0, 1e-6)
    with pytest.raises(error, match=match):
        made().fit(Chunks(parts), public=Q, budget=budget, **how)
    assert budget.spent == (0, 0)
