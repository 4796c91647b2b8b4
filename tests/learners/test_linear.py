"""hdp_fast.learners.LinearSeparator, and the script of the paper's figure that it was made for."""

import json
import math
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from cases import each_case
from scipy.stats import multivariate_normal, norm
from scripts import PAPERS, loaded
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, LinearSVC

from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import Halfspaces, LinearSeparator
from hdp_fast.local import EmpiricalOracle
from hdp_fast.transfer import SubsampleTestReweigh

SCRIPT = PAPERS / "kohen_sheffet_fig1.py"


def separable(n, d, *, dtype=np.float64, seed=0):
    coins = np.random.default_rng(seed)
    X = coins.standard_normal((n, d)).astype(dtype)
    return X, (X @ coins.standard_normal(d) > 0.1).astype(np.uint8)


def objective(found, X, y, cost):
    slack = np.maximum(0, 1 - (2.0 * y - 1) * (X @ found.weights + found.bias))
    return (found.weights @ found.weights + found.bias**2) / 2 + cost * (slack @ slack)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (257, 1), (700, 33), (5_000, 64)])
def test_separates_what_can_be_separated(n, d, dtype):
    X, y = separable(n, d, dtype=dtype)
    found = LinearSeparator(cost=1e6).learn(X, y)
    assert found.errors == 0
    assert np.array_equal(X.astype(np.float64) @ found.weights + found.bias > 0, y)
    assert np.array_equal(found.predict(X), y)


@pytest.mark.parametrize("cost", [0.01, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_reaches_the_optimum_of_scikit_learn_where_nothing_separates(cost, intercept):
    X, y = separable(2_000, 20)
    y ^= np.random.default_rng(1).random(len(y)) < 0.2
    peer = LinearSVC(C=cost, dual=False, tol=1e-9, fit_intercept=intercept).fit(X, y)
    best = peer.coef_[0] @ peer.coef_[0] / 2 + np.sum(peer.intercept_) ** 2 / 2
    slack = np.maximum(0, 1 - (2.0 * y - 1) * peer.decision_function(X))
    best += cost * (slack @ slack)
    found = LinearSeparator(cost=cost, margin=None, intercept=intercept).learn(X, y)
    assert best * (1 - 1e-9) <= objective(found, X, y, cost) <= best * 1.01
    assert found.errors == np.count_nonzero(found.predict(X) != y)
    assert intercept or found.bias == 0


@pytest.mark.parametrize("seed", range(4))
def test_margin_is_nearly_that_of_a_hard_margin_machine(seed):
    # Opposite records have opposite labels, so that the best bias is 0 for either.
    half, _ = separable(100, 5, seed=seed)
    half += 0.3 * np.sign(half[:, :1]) * np.eye(5)[0]
    X = np.concatenate([half, -half])
    y = (X[:, 0] > 0).astype(np.uint8)
    peer = SVC(kernel="linear", C=1e10).fit(X, y)
    found = LinearSeparator(cost=1e4, margin=None).learn(X, y)

    def margin(w, b):
        return ((2.0 * y - 1) * (X @ w + b)).min() / np.linalg.norm(w)

    best = margin(peer.coef_[0], peer.intercept_[0])
    assert 0.99 * best <= margin(found.weights, found.bias) <= best * (1 + 1e-3)


def test_a_warm_start_is_as_good_as_a_cold_one():
    X, y = separable(4_000, 30)
    coins = np.random.default_rng(2)
    warm, cold = LinearSeparator(margin=None), LinearSeparator(margin=None, warm=False)
    for _ in range(5):
        indices = coins.integers(0, len(X), 2_000)
        drawn = np.unique(indices)
        found = [learner.learn_indices(X, y, indices) for learner in (warm, cold)]
        assert [each.errors for each in found] == [0, 0]
        costs = [objective(each, X[drawn], y[drawn], 1000.0) for each in found]
        assert costs[0] == pytest.approx(costs[1], rel=0.02)


def test_a_cold_learner_knows_its_own_records_alone():
    X, y = separable(2_000, 10)
    indices = np.arange(0, 2_000, 2)
    expected = LinearSeparator().learn(X[indices], y[indices])
    learner = LinearSeparator(warm=False)
    learner.learn_indices(X, y, [1, 3, 5])
    X[1::2], y[1::2] = 7, 1
    found = learner.learn_indices(X, y, np.repeat(indices, 3))
    assert np.array_equal(found.weights, expected.weights)
    assert (found.bias, found.errors) == (expected.bias, expected.errors)


def test_another_matrix_and_a_copy_start_cold():
    X, y = separable(500, 10)
    first = LinearSeparator().learn(X, y)
    learner = LinearSeparator()
    learner.learn_indices(X[::-1].copy(), y, np.arange(400))
    for fresh in (learner, pickle.loads(pickle.dumps(learner))):
        found = fresh.learn_indices(X, y, np.arange(500))
        assert np.array_equal(found.weights, first.weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_instructions_change_nothing(monkeypatch, dtype):
    X, y = separable(20_000, 40, dtype=dtype)
    found = []
    for threads, isa in (("1", "portable"), ("2", ""), ("2", "avx2")):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        monkeypatch.setenv("HDP_FAST_ISA", isa)
        learner = LinearSeparator()
        learner.learn_indices(X, y, np.arange(0, 20_000, 3))
        found.append(learner.learn_indices(X, y, np.arange(0, 20_000, 2), random_state=len(found)))
    assert all(np.array_equal(each.weights, found[0].weights) for each in found)
    assert len({each.bias for each in found}) == 1


def test_any_layout_and_dtype_gives_the_same():
    X = np.random.default_rng(3).integers(-9, 10, (300, 6))
    y = (X @ [3, -1, 2, 0, 1, 1] > 4).astype(np.uint8)
    expected = LinearSeparator().learn(X.astype(np.float64), y)
    strided = np.zeros((300, 12))
    strided[:, ::2] = X
    for same in (X, X.tolist(), np.asfortranarray(X, np.float64), strided[:, ::2], X.astype(">f8")):
        assert np.array_equal(LinearSeparator().learn(same, y).weights, expected.weights)


def test_contradictions_end_the_search():
    X = np.repeat([[1.0, 2.0], [3.0, -1.0]], 2, axis=0)
    found = LinearSeparator(cost=1e12).learn(X, [0, 1, 0, 1])
    assert 2 <= found.errors <= 4
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_are_all_the_same(value):
    X, _ = separable(50, 3)
    found = LinearSeparator().learn(X, np.full(50, value))
    assert (found.predict(X) == value).all()


def test_hypothesis_says_the_same_elsewhere():
    X, y = separable(500, 4)
    found = LinearSeparator().learn(X, y)
    said = json.loads(json.dumps(found.hypothesis))
    assert said["kind"] == "halfspace"
    again = Halfspaces(np.array([said["weights"]]), np.array([said["bias"]]))
    assert np.array_equal(again.predict(0, X), found.predict(X))


def test_records_are_read_where_they_are():
    X, y = separable(20_000, 100, dtype=np.float32)
    learner = LinearSeparator()
    learner.learn_indices(X, y, np.arange(10_000))
    tracemalloc.start()
    learner.learn_indices(X, y, np.arange(5_000, 15_000)).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 8


def test_it_is_no_private_learner():
    learner = LinearSeparator()
    assert not hasattr(learner, "privacy")
    assert not hasattr(learner, "with_epsilon")
    assert not isinstance(learner, BaseEstimator)
    assert repr(learner) == "LinearSeparator(cost=1000.0, margin=0.5, intercept=True, warm=True)"


def test_a_run_of_subsample_test_reweigh_takes_it():
    X, y = separable(3_000, 8)
    # The target is the half of the source where one feature is large.
    target = EmpiricalOracle(X[X[:, 0] > 0], y[X[:, 0] > 0])
    model = SubsampleTestReweigh(
        LinearSeparator(), alpha=0.01, eta=0.1, rounds=40, draws=300, epsilon=math.inf
    )
    result = model.fit(X, y, target, random_state=1).result_
    assert result.stopped == "accepted"
    assert result.hypothesis["kind"] == "halfspace"
    assert np.mean(result.predict(target.X) != target.y) <= 0.03
    with pytest.raises(ParameterError, match="learner"):
        SubsampleTestReweigh(LinearSeparator(), alpha=0.1, chi2=1, epsilon=1, delta=1e-6).plan(
            10_000, agents_epsilon=1
        )


GOOD = {"X": np.eye(3), "y": [0, 1, 1], "indices": [0, 2]}


@each_case(
    ("argument", "value", "error", "text"),
    [
        ("X", np.zeros(3), ShapeError, "X has shape"),
        ("X", np.zeros((3, 0)), ShapeError, "X has shape"),
        ("X", np.array([["a"] * 3] * 3), ParameterError, "X has dtype"),
        ("X", np.eye(3) * 1j, ParameterError, "X has dtype"),
        ("X", np.diag([1, 1, math.nan]), ParameterError, "NaN"),
        ("X", np.diag([1, 1, math.inf]), ParameterError, "infinite"),
        ("X", np.eye(3) * 1e300, ParameterError, "overflow"),
        ("y", [0, 1], ShapeError, "y has length 2"),
        ("y", [0, 1, 2], ParameterError, "y holds something else"),
        ("y", [0.0, 1.0, 0.5], ParameterError, "y holds something else"),
        ("y", ["0", "1", "1"], ParameterError, "y has dtype"),
        ("indices", [0, 3], ParameterError, "indices hold 3"),
        ("indices", [-1, 0], ParameterError, "indices hold -1"),
        ("indices", [], ShapeError, "indices has shape"),
        ("indices", [0.5], ParameterError, "indices has dtype"),
        ("random_state", -1, ParameterError, "random_state = -1"),
    ],
)
def test_bad_input_is_named(argument, value, error, text):
    with pytest.raises(error, match=text):
        LinearSeparator().learn_indices(**{**GOOD, argument: value})


@pytest.mark.parametrize(
    "setting",
    [
        {"cost": 0},
        {"cost": math.inf},
        {"margin": 0},
        {"margin": 1.1},
        {"warm": 1},
        {"intercept": 0},
    ],
)
def test_bad_settings_are_named(setting):
    with pytest.raises(ParameterError, match=next(iter(setting))):
        LinearSeparator(**setting)


def test_a_record_that_turns_infinite_is_still_refused():
    X, y = separable(50, 3)
    learner = LinearSeparator()
    learner.learn_indices(X, y, np.arange(50))
    X[7, 1] = math.nan
    with pytest.raises(ParameterError, match="finite"):
        learner.learn_indices(X, y, np.arange(50))


@pytest.fixture
def fig1():
    with loaded(SCRIPT) as module:
        yield module


def test_loss_of_the_figure_is_that_of_correlated_gaussians(fig1):
    coins = np.random.default_rng(4)
    for shift in (0.0, 0.3, 5.0):
        a, b = coins.standard_normal((2, 6)) + shift
        biases = coins.standard_normal(2) * 2
        h, k = biases[0] / np.linalg.norm(a), biases[1] / np.linalg.norm(b)
        r = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([h, k])
        expected = norm.cdf(h) + norm.cdf(k) - 2 * both
        assert fig1.disagreement(a, biases[0], b, biases[1]) == pytest.approx(expected, abs=1e-6)
    assert fig1.disagreement(a, 1.0, 3 * a, 3.0) == pytest.approx(0, abs=1e-7)
    # The constant hypothesis, in the limit.
    setting = fig1.Setting()
    problem = fig1.sample(setting, 100, 0)
    scaled = problem.weights * setting.sigma
    assert fig1.disagreement(scaled, problem.bias, np.full(500, 1e-9), 1.0) == pytest.approx(0.01)


@pytest.mark.thorough(beside="test_loss_of_the_figure_is_that_of_correlated_gaussians")
def test_the_figure_can_be_drawn(tmp_path):
    command = [sys.executable, str(SCRIPT), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "kohen_sheffet_fig1.json").read_text())
    assert (tmp_path / "kohen_sheffet_fig1.png").stat().st_size > 10_000
    for run in (run for some in report["runs"] for run in some):
        wanted = 2 * report["setting"]["alpha"]
        assert run["rounds"] == len(run["losses"])
        assert run["converged"] == (run["loss"] <= wanted)
        assert all(loss > wanted for loss in run["losses"][:-1])
