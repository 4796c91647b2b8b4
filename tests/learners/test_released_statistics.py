"""Released statistics: solved, added, kept in files, and compared with a pool."""

import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from hdp_fast import learners
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.learners import (
    FeatureMap,
    ReleasedStatistics,
    StatisticsModel,
    SufficientStatistics,
)

PRICE = {"epsilon": 1.0, "delta": 1e-6}
FREE = {"epsilon": math.inf, "delta": 1e-6}
FEATURES = FeatureMap.identity(4, norm_bound=3.0, constant=True)
CENTERS = 2 * np.eye(3, 4)


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return CENTERS[y] + rng.normal(size=(n, 4)), y


X, Y = records(20_000)
POOL, _ = records(3_000, seed=1)
TEST, TEST_Y = records(3_000, seed=2)


def describe(features=FEATURES, **settings):
    goal = {} if "label_bound" in settings else {"classes": [0, 1, 2]}
    return SufficientStatistics(features, **goal | settings)


def release(rows=X, labels=Y, price=PRICE, seed=0, **settings):
    return describe(**settings).release(rows, labels, **price, random_state=seed)


@pytest.fixture(scope="module")
def statistics():
    return release()


@pytest.fixture(scope="module")
def with_moments():
    return release(second_moments=True)


def accuracy(model):
    return float((model.predict(TEST) == TEST_Y).mean())


# Solving ----------------------------------------------------------------------------------------


def test_without_noise_and_with_the_records_as_pool_it_is_logistic_regression():
    phi = FEATURES(X)
    penalty, one_hot = 1e-3, np.eye(3)[Y]

    def loss(flat):
        W = flat.reshape(phi.shape[1], 3)
        scores = phi @ W
        losses = logsumexp(scores, axis=1) - scores[np.arange(len(Y)), Y]
        chances = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        slope = phi.T @ (chances - one_hot) / len(Y) + penalty * W
        return losses.mean() + penalty * (W**2).sum() / 2, slope.ravel()

    best = minimize(loss, np.zeros(phi.shape[1] * 3), jac=True, options={"gtol": 1e-9})
    model = release(price=FREE).solve(pool=X, penalty=penalty)
    assert np.allclose(model.coefficients, best.x.reshape(-1, 3), atol=1e-3)
    scores = phi @ best.x.reshape(-1, 3)
    chances = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    assert np.allclose(model.predict_proba(X), chances, atol=1e-4)
    assert model.record is None


def test_without_noise_and_pool_it_is_ridge_regression():
    phi = FEATURES(X)
    model = release(price=FREE, second_moments=True).solve(penalty=0.01)
    expected = np.linalg.solve(
        phi.T @ phi / len(X) + 0.01 * np.eye(phi.shape[1]), phi.T @ (np.eye(3)[Y] - 1 / 3) / len(X)
    )
    assert np.allclose(model.coefficients, expected, atol=1e-3)
    shares = model.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1)
    assert shares.min() >= 0


def test_targets_are_regressed_with_a_pool_and_without(with_moments):
    targets = X @ [1.0, -0.5, 0.25, 0.0] / 2
    for settings, pool in (({"second_moments": True}, None), ({}, POOL)):
        model = release(labels=targets, label_bound=2.0, **settings).solve(pool)
        wanted = (TEST @ [1.0, -0.5, 0.25, 0.0] / 2).clip(-2, 2)
        assert np.abs(model.predict(TEST) - wanted).mean() < 0.2 * wanted.std()
        assert np.abs(model.predict(TEST)).max() <= 2.0
        assert model.score_deviations(TEST).shape == (3_000, 1)
        with pytest.raises(ParameterError, match="classes"):
            model.predict_proba(TEST)


def test_a_model_is_as_good_as_the_noise_allows(statistics, with_moments):
    best = accuracy(release(price=FREE).solve(pool=POOL))
    assert best > 0.75
    assert accuracy(statistics.solve(pool=POOL)) > best - 0.01
    assert accuracy(with_moments.solve()) > best - 0.02


@pytest.mark.thorough(beside="test_the_penalty_grows_with_the_noise")
def test_the_chosen_penalty_is_nearly_the_best_of_many(statistics, with_moments):
    for released, pool in ((statistics, POOL), (with_moments, None)):
        chosen = accuracy(released.solve(pool))
        others = [
            accuracy(released.solve(pool, penalty=penalty)) for penalty in np.logspace(-5, 1, 13)
        ]
        assert chosen > max(others) - 0.01


def test_the_penalty_grows_with_the_noise():
    penalties = [
        release(price={"epsilon": epsilon, "delta": 1e-6}).solve(pool=POOL).penalty
        for epsilon in (4.0, 1.0, 0.25, 0.05)
    ]
    assert penalties == sorted(penalties)


def test_solving_costs_nothing_and_changes_nothing(statistics):
    before = statistics.to_json()
    first, second = statistics.solve(pool=POOL), statistics.solve(pool=POOL)
    assert (first.coefficients == second.coefficients).all()
    assert statistics.to_json() == before
    assert first.record == statistics.record


@pytest.mark.thorough(beside="test_the_penalty_grows_with_the_noise")
def test_the_noise_makes_the_deviation_that_is_stated():
    rows, labels = records(3_000)
    description = describe()
    stream = np.random.default_rng(3)
    models = [
        description.release(rows, labels, **PRICE, random_state=stream).solve(POOL, penalty=0.01)
        for _ in range(150)
    ]
    spread = np.std([model.scores(TEST[:200]) for model in models], axis=0)
    stated = np.mean([model.score_deviations(TEST[:200]) for model in models], axis=0)
    assert 0.85 < np.median(spread / stated) < 1.15


@pytest.mark.parametrize("second", [False, True])
def test_the_least_deviation_belongs_to_the_most_epsilon(second):
    deviations = [
        release(price={"epsilon": epsilon, "delta": 1e-6}, second_moments=second)
        .solve(None if second else POOL, penalty=0.01)
        .score_deviations(TEST)
        .mean()
        for epsilon in (0.5, 1.0, 4.0)
    ]
    assert deviations == sorted(deviations, reverse=True)
    assert release(price=FREE).solve(POOL).score_deviations(TEST).max() == 0


@pytest.mark.parametrize("penalty", [0, -1.0, math.nan, math.inf, "1"])
def test_a_penalty_that_leaves_no_model_is_refused(statistics, penalty):
    with pytest.raises(ParameterError, match="penalty"):
        statistics.solve(pool=POOL, penalty=penalty)


def test_without_pool_and_second_moments_nothing_is_solved(statistics):
    with pytest.raises(ParameterError, match="pool = None"):
        statistics.solve()
    with pytest.raises(ShapeError, match="pool"):
        statistics.solve(pool=POOL[:, :2])


# Adding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_releases_of_disjoint_people_add_up(neighbors):
    settings = {"second_moments": True, "neighbors": neighbors}
    first = release(X[:8_000], Y[:8_000], **settings)
    second = release(X[8_000:], Y[8_000:], price={"epsilon": 2.0, "delta": 1e-5}, **settings)
    both = first + second
    assert both.n == first.n + second.n
    assert (both.sums == first.sums + second.sums).all()
    assert (both.moments == first.moments + second.moments).all()
    for name in ("sums_deviation", "moments_deviation", "count_deviation"):
        parts = getattr(first, name), getattr(second, name)
        assert getattr(both, name) == pytest.approx(math.hypot(*parts))
    assert (both.record.epsilon, both.record.delta) == (2.0, 1e-5)
    assert both.record.neighbors == neighbors
    assert "disjoint people" in both.record.mechanism
    assert accuracy(both.solve(pool=POOL)) > 0.7
    three = both + first
    assert three.record.mechanism == both.record.mechanism


def for_people(rows_per_person=2, **settings):
    ids = np.arange(len(Y)) // rows_per_person
    description = describe(**settings)
    return description.release(X, Y, **PRICE, ids=ids, rows_per_person=rows_per_person)


def test_the_sum_of_a_release_for_people_and_one_for_rows_protects_rows():
    """Whichever is first; a release for people alone does protect them."""
    people = for_people()
    rows = release(price={"epsilon": 2.0, "delta": 1e-5})
    assert people.record.neighbors == "replace_person"
    for both in (people + rows, rows + people):
        assert both.record.neighbors == "replace_one"
        assert (both.record.epsilon, both.record.delta) == (2.0, 1e-5)
    assert (people + rows).record == (rows + people).record
    assert (people + people).record.neighbors == "replace_person"


def test_a_sum_names_the_rows_a_person_of_each_release():
    two, three = for_people(2), for_people(3)
    record = (two + three).record
    assert record == (three + two).record
    assert record.neighbors == "replace_person"
    for rows in (2, 3):
        assert f"at most {rows} rows a person" in record.mechanism
    assert ((two + three) + two).record == (two + (three + two)).record == record


def test_the_sum_of_a_release_for_people_and_one_for_rows_is_refused_where_they_are_added():
    """A person of two rows who brings a third may move other rows that are kept."""
    people, rows = (make(neighbors="add_remove") for make in (for_people, release))
    for first, second in ((people, rows), (rows, people)):
        with pytest.raises(ParameterError, match="add_remove and add_remove_person"):
            first + second


def test_a_part_without_noise_leaves_no_record(statistics):
    assert (statistics + release(price=FREE)).record is None


OTHERS = {
    "features": lambda: release(features=FeatureMap.identity(4, norm_bound=2.0, constant=True)),
    "classes": lambda: describe(classes=[0, 1, 2, 3]).release(X, Y, **PRICE),
    "neighbors": lambda: release(neighbors="add_remove"),
    "second_moments": lambda: release(second_moments=True),
    "label_bound": lambda: release(labels=X[:, 0], label_bound=1.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_descriptions_are_not_added(statistics, name):
    with pytest.raises(ParameterError, match="differs between the two releases"):
        statistics + OTHERS[name]()


def test_only_statistics_are_added(statistics):
    with pytest.raises(TypeError):
        _ = statistics + 1


def test_sums_beyond_64_bits_are_refused(statistics):
    huge = dataclasses.replace(statistics, sums=np.full_like(statistics.sums, 1 << 62))
    with pytest.raises(ParameterError, match="sums"):
        huge + huge


# Files ------------------------------------------------------------------------------------------


def same(first, second):
    for field in dataclasses.fields(first):
        mine, theirs = getattr(first, field.name), getattr(second, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)
            assert not theirs.flags.writeable
        else:
            assert mine == theirs, field.name


KEPT = {
    "classes": lambda: release(),
    "second moments": lambda: release(second_moments=True, neighbors="add_remove"),
    "targets": lambda: release(labels=X[:, 0], label_bound=2.0),
    "texts": lambda: release(labels=np.array(["a", "b", "c"])[Y], classes=["a", "b", "c"]),
    "no noise": lambda: release(price=FREE),
}


@pytest.mark.parametrize("name", KEPT)
def test_json_and_npz_give_the_same_statistics_again(name, tmp_path):
    statistics = KEPT[name]()
    same(statistics, ReleasedStatistics.from_json(statistics.to_json()))
    path = tmp_path / "statistics.npz"
    for _ in range(2):
        statistics.save(path)
    read = ReleasedStatistics.load(path)
    same(statistics, read)
    model = read.solve(pool=POOL)
    assert np.array_equal(model.coefficients, statistics.solve(pool=POOL).coefficients)
    same(model, StatisticsModel.from_json(model.to_json()))
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays)


def test_a_map_of_a_function_is_passed_again(tmp_path):
    features = FeatureMap.from_callable(lambda row: row / 3, 4)
    statistics = release(features=features, rows=X[:500], labels=Y[:500])
    path = tmp_path / "statistics.npz"
    statistics.save(path)
    for read in (
        lambda **more: ReleasedStatistics.from_json(statistics.to_json(), **more),
        lambda **more: ReleasedStatistics.load(path, **more),
    ):
        same(statistics, read(features=features))
        with pytest.raises(ParameterError, match="features"):
            read()


def test_other_texts_and_files_are_refused_and_not_shown(statistics, tmp_path):
    fields = json.loads(statistics.to_json())
    wrong = [
        "private",
        "{}",
        json.dumps(fields | {"sums": [[1]]}),
        json.dumps(fields | {"classes": [0, 1]}),
        json.dumps(fields | {"other": 1}),
        json.dumps(fields | {"n": 0}),
        json.dumps(fields | {"version": 2}),
    ]
    for text in wrong:
        with pytest.raises(ParameterError) as caught:
            ReleasedStatistics.from_json(text)
        assert "private" not in str(caught.value)
        with pytest.raises(ParameterError):
            StatisticsModel.from_json(text)
    path = tmp_path / "other.npz"
    path.write_bytes(b"private")
    with pytest.raises(ParameterError, match="path"):
        ReleasedStatistics.load(path)
    np.savez(path, text=np.array(["{}"]), sums=np.array([{}], object), allow_pickle=True)
    with pytest.raises(ParameterError, match="path"):
        ReleasedStatistics.load(path)
    with pytest.raises(ParameterError, match=r"path = .*: No such file"):
        ReleasedStatistics.load(tmp_path / "none.npz")


def test_nothing_but_the_release_is_kept(statistics):
    names = {field.name for field in dataclasses.fields(statistics)}
    assert set(vars(statistics)) == names
    assert "deviation 4.9" in repr(statistics).replace("deviation 5.97", "deviation 4.9")
    for array in (statistics.sums, statistics.solve(POOL).coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        statistics.n = 7


# Pools of another population --------------------------------------------------------------------


def notes(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in caught if issubclass(one.category, UtilityWarning)]


def test_a_pool_of_another_population_is_noted(statistics, with_moments):
    other = np.random.default_rng(4).normal(size=(3_000, 4))
    other += np.array([-3, 0, 0, 3])
    assert any("another population" in text for text in notes(lambda: with_moments.solve(other)))
    flat = np.random.default_rng(4).normal(size=(20_000, 4))
    flat[:, 0] = 0
    assert any("another population" in text for text in notes(lambda: statistics.solve(flat)))
    assert notes(lambda: with_moments.solve()) == []
    assert notes(lambda: with_moments.solve(POOL)) == []
    assert notes(lambda: statistics.solve(POOL)) == []


@pytest.mark.parametrize("second", [False, True])
def test_pools_of_the_same_population_are_hardly_ever_noted(second):
    rng, noted = np.random.default_rng(5), 0
    features = FeatureMap.identity(2)
    for seed in range(150):
        rows, pool = rng.normal(size=(300, 2)), rng.normal(size=(100, 2))
        labels = (rows[:, 0] > 0).astype(int)
        statistics = SufficientStatistics(features, classes=[0, 1], second_moments=second).release(
            rows, labels, epsilon=4.0, delta=1e-6, random_state=seed
        )
        noted += bool(notes(lambda s=statistics, p=pool: s.solve(p, penalty=0.1)))
    assert noted <= 9  # 1 in 100, and five standard deviations


def test_the_face_names_all():
    assert {"ReleasedStatistics", "StatisticsModel", "SufficientStatistics"} <= set(
        learners.__all__
    )


@pytest.mark.parametrize(
    ("pool", "error", "match"),
    [
        ([[1.0, np.nan, 0.0, 0.0]], ParameterError, "pool has an infinite entry or NaN"),
        ([1.0, 2.0, 3.0, 4.0], ShapeError, r"pool has shape \(4,\)"),
        ([["a", "b", "c", "d"]], ParameterError, "pool has dtype"),
    ],
)
def test_a_wrong_pool_is_called_pool(statistics, pool, error, match):
    with pytest.raises(error, match=match):
        statistics.solve(pool)
    with pytest.raises(error, match=match):
        learners.suggest_features(pool, n=100, classes=range(2), epsilon=1.0, delta=1e-6)


def test_a_pool_of_other_columns_is_called_pool(statistics):
    with pytest.raises(ShapeError, match="pool has 1 columns"):
        statistics.solve([[1.0]])
