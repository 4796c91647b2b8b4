"""Real pairs of domains: sizes as printed, nothing scaled by the target, errors by hand."""

import numpy as np
import pytest
from scripts import PAPERS, at_length, loaded, require_data

pytestmark = pytest.mark.skipif(not PAPERS.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def data():
    with loaded(PAPERS / "_adaptation_data.py") as module:
        yield module


@pytest.fixture(scope="module")
def rivals():
    with loaded(PAPERS / "_adaptation_rivals.py") as module:
        yield module


def invented(data, m=300, n=90, printed=(30, 20, 40, 250, 4), task="regression"):
    coins = np.random.default_rng(0)

    def read():
        X = coins.standard_normal((m + n, 4)) * 10
        X[:, 3] = 2.0
        y = X[:, 0] if task == "regression" else X[:, 0] > 0
        both = data.Sample(X, y.astype(float))
        return both.part(np.arange(m)), both.part(np.arange(m, m + n))

    sizes = data.Sizes(*printed) if task == "regression" else None
    return data.DataSet("invented", task, read, lambda: None, sizes)


def test_rows_and_labels_are_within_their_bounds(data):
    split = invented(data).split(0)
    assert [len(each.y) for each in split] == [250, 30, 20, 40]
    for sample in split:
        # Three columns and the constant one: the fourth never changes in the source.
        assert sample.X.shape[1] == 4
        assert np.linalg.norm(sample.X, axis=1).max() <= 1 + 1e-12
        np.testing.assert_allclose(sample.X[:, -1], np.sqrt(0.5))
        assert abs(sample.y).max() <= 1
    assert 0.5 < abs(split.source.y).mean() * 2 < 1


def test_scaling_reads_the_source_alone(data):
    source = data.Sample(np.random.default_rng(1).standard_normal((500, 2)), np.arange(500.0))
    scaling = data.Scaling.of(source)
    far = data.Sample(np.array([[1e6, 0.0], [0.0, -1e6]]), np.array([-1e9, 1e9]))
    found = scaling.labels(scaling.rows(far))
    np.testing.assert_allclose(np.linalg.norm(found.X, axis=1), 1)
    np.testing.assert_array_equal(found.y, [-1, 1])
    long = np.linalg.norm(scaling.rows(source).X, axis=1) > 1 - 1e-12
    assert long.mean() == pytest.approx(0.01)
    assert np.mean(abs(scaling.labels(source).y) == 1) == pytest.approx(0.01, abs=0.003)


def test_a_small_target_is_shared_in_proportion(data):
    split = invented(data, n=60, printed=(70, 20, 60, 100, 4)).split(0)
    assert [len(each.y) for each in split] == [100, 20, 10, 30]
    classes = invented(data, n=100, task="classification").split(0)
    assert [len(each.y) for each in classes] == [300, 70, 20, 10]
    assert set(classes.training.y) == {0, 1}


def test_splits_share_no_record_of_the_target(data):
    found = invented(data, n=90, printed=(30, 20, 40, 250, 4)).split(3)
    rows = np.vstack([each.X[:, 0:1] for each in found[1:]])
    assert len(np.unique(rows)) == 90


def test_enlarging_draws_with_replacement(data):
    sample = data.Sample(np.arange(4.0)[:, None], np.arange(4.0))
    found = data.enlarge(sample, 1000, np.random.default_rng(0))
    np.testing.assert_array_equal(found.X[:, 0], found.y)
    assert (np.bincount(found.y.astype(int)) > 150).all()


@at_length
def test_rivals_are_chosen_by_validation_and_measured_on_the_test(data, rivals):
    found = invented(data)
    split = found.split(0)
    outcomes = rivals.outcomes(found, split)
    assert tuple(outcomes) == rivals.NAMES
    X, y = split.training
    errors = []
    for penalty in rivals.PENALTIES["squared"]:
        w = np.linalg.solve(X.T @ X + penalty * len(y) * np.eye(4), X.T @ y)
        errors.append([np.mean((each.X @ w - each.y) ** 2) for each in split[2:]])
    wanted = min(errors)
    got = outcomes["train on target"]
    np.testing.assert_allclose([got.validation, got.test], wanted, rtol=1e-6)


def test_tables_have_relative_errors_and_accuracies(rivals):
    errors = {"train on target": [0.5, 0.25], "KMM": [1.0, 0.5]}
    result = {"name": "wind", "task": "regression", "errors": errors}
    assert rivals.shown(result, "KMM") == (2.0, 0.0)
    assert rivals.shown(result, "DM") is None
    assert rivals.shown({**result, "task": "classification"}, "KMM") == (0.25, 0.25)
    assert "| wind | | 1.000 ± 0.000 |" in rivals.table([result]).replace("|  |", "| |")
    assert "| wind, paper |" in rivals.table([result])


@pytest.mark.data
def test_the_wind_is_split_as_printed(data):
    wind = require_data(data.REGRESSION[0])
    assert data.sizes(wind) == wind.printed


@pytest.mark.data
def test_targets_that_are_not_there_are_smaller(data):
    for found, source in zip(data.REGRESSION[2:], (4397, 3000), strict=True):
        sizes = data.sizes(require_data(found))
        assert sizes.features == found.printed.features
        assert sizes.source == source
        assert sizes.test < found.printed.test


@at_length
@pytest.mark.data
def test_reviews_are_split_as_described(data):
    found = require_data(data.REVIEWS[0])
    assert data.sizes(found) == data.SENTIMENT
    split = found.split(1)
    assert set(split.test.y) == {-1, 1}
    assert all(np.linalg.norm(each.X, axis=1).max() <= 1 + 1e-6 for each in split)
    assert len(data.REVIEWS) == 12


@at_length
@pytest.mark.data
def test_accents_have_two_classes_on_both_sides(data, rivals):
    found = require_data(data.CLASSIFICATION[2])
    split = found.split(0)
    assert len(split.source.y) == 210
    assert sum(len(each.y) for each in split[1:]) == 119
    errors = rivals.repeat(found, 10)["errors"]
    assert np.mean(errors["train on target"]) < np.mean(errors["train on source"]) - 0.1
