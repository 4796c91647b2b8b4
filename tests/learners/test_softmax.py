"""The softmax loss of PrivateSGD beside numpy, scipy's optimum and what its privacy rests on."""

import dataclasses
import json
import math

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from hdp_fast import learners
from hdp_fast.budget import Budget
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import PrivateSGD, SoftmaxModel
from hdp_fast.reference import linear as reference

UNITS = 2**20


def records(n, d, classes, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) / np.sqrt(d)).astype(dtype)
    wanted = rng.normal(size=(d, classes))
    return X, (X @ wanted + 0.1 * rng.normal(size=(n, classes))).argmax(axis=1)


@each_case("classes", [2, 5])
@each_case("extra", [{}, {"l1": 0.02}, {"l2": 0.3}])
@each_case(("d", "batch", "dtype"), [(8, 1, np.float64), (13, 50, np.float32)])
def test_the_kernel_does_what_numpy_does(classes, extra, d, batch, dtype):
    X, y = records(500, d, classes, dtype=dtype)
    X[7] = 0
    settings = {"batch_size": batch, "radius": 3.0, "norm_bound": 0.9, "clip_norm": 0.7, **extra}
    learner = PrivateSGD(loss="softmax", classes=classes, steps=60, epsilon=math.inf, **settings)
    indices = np.random.default_rng(1).integers(0, 500, 60 * batch)
    found = learner.learn_indices(X, y, indices).weights
    expected = reference.learn(
        X.astype(float),
        y.astype(float),
        indices,
        loss="softmax",
        classes=classes,
        strong_convexity=extra.get("l2", 0.0),
        **settings,
    )
    tolerance = 1e-6 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert np.linalg.norm(found) <= 3 + 1e-12


@pytest.mark.parametrize("numerics", ["none", "exact"])
def test_converges_to_the_optimum(numerics):
    X, y = records(400, 3, 4)
    noise = {"epsilon": math.inf} if numerics == "none" else {"noise_multiplier": 0.5}
    learner = PrivateSGD(
        loss="softmax", classes=4, steps=40_000, batch_size=10, radius=4.0, norm_bound=2.0, **noise
    )
    shrunk = X * np.minimum(1, 2 / np.linalg.norm(X, axis=1))[:, None]

    def value(w):
        return -log_softmax(shrunk @ w.reshape(3, 4), axis=1)[np.arange(400), y].mean()

    ball = {"type": "ineq", "fun": lambda w: 16 - w @ w}
    best = minimize(value, np.full(12, 0.1), constraints=ball, method="SLSQP").fun
    model = learner.learn(X, y, random_state=1)
    assert best - 1e-5 <= value(model.weights) <= best + 0.02
    excess = learner.plan(n=400, d=3).excess_risk
    assert value(model.weights) <= best + excess < best + 3


def integer_sums(learner, X, y, indices):
    """The two sums of a run of three steps, as in test_sgd.py, (classes, d) flattened."""
    count, batch = X.shape[1] * learner.classes, learner.batch_size
    own = UNITS * float(np.finfo(X.dtype).eps) * (count / 32 + 4)
    unit = learner.clip_norm / (UNITS - math.sqrt(count) / 2 - 1 - own) / batch
    short = dataclasses.replace(learner, steps=2)
    first = 2 * short.learn_indices(X, y, indices[: 2 * batch]).weights
    both = 3 * learner.learn_indices(X, y, indices).weights
    found = [-first / unit, 2 * (2 * first - both) / unit]
    for sums in found:
        assert np.abs(sums - np.rint(sums)).max() < 1e-3
    return [[int(each) for each in np.rint(sums).ravel()] for sums in found]


@pytest.mark.parametrize(
    ("d", "classes", "batch", "dtype"),
    [(1, 2, 3, np.float64), (5, 3, 4, np.float32), (20, 10, 1500, np.float64)],
)
def test_neighbors_move_rounded_sums_by_no_more_than_is_stated(d, classes, batch, dtype):
    """Whatever record takes the place of one, and at whichever model: 2 K for each of its draws."""
    rng = np.random.default_rng(3)
    learner = PrivateSGD(
        loss="softmax", classes=classes, steps=3, batch_size=batch, radius=1e9,
        noise_multiplier=1e-30, strong_convexity=1.0, clip_norm=0.3,
    )  # fmt: skip
    scales, closest = [0.0, 1e-40, 1e-6, 0.3, 1.0, 30.0, 1e15], 0.0
    for _ in range(20):
        n = 6
        X = (rng.normal(size=(n, d)) * rng.choice(scales, (n, 1))).astype(dtype)
        y = rng.integers(0, classes, n)
        other_X, other_y = X.copy(), y.copy()
        other_X[0] = -X[0] if rng.integers(2) else X[rng.integers(n)] * dtype(0.7)
        other_y[0] = y[0] if rng.integers(2) else rng.integers(classes)
        rest = rng.integers(1, n, batch)
        drawn = np.where(np.arange(batch) < 2, 0, rng.integers(1, n, batch))
        indices = np.concatenate([rest, drawn, rest])
        some = integer_sums(learner, X, y, indices)
        other = integer_sums(learner, other_X, other_y, indices)
        assert some[0] == other[0]
        moved = sum((a - b) ** 2 for a, b in zip(some[1], other[1], strict=True))
        assert moved <= (2 * 2 * UNITS) ** 2
        closest = max(closest, moved / (2 * 2 * UNITS) ** 2)
        single = integer_sums(dataclasses.replace(learner, batch_size=1), X, y, np.array([0, 0, 0]))
        assert all(sum(a * a for a in sums) <= UNITS**2 for sums in single)
    assert closest > 0.9, "the bound should be sharp"


def test_no_gradient_is_longer_than_the_lipschitz_constant():
    """|p - e_y| < sqrt(2), and near it where the model is sure and wrong."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2000, 7)) * rng.choice([0.1, 1, 50], (2000, 1))
    lengths = np.linalg.norm(
        reference.softmax_residuals(scores, rng.integers(0, 7, 2000).astype(float)), axis=1
    )
    assert math.sqrt(2) - 1e-6 < lengths.max() <= math.sqrt(2) + 1e-12
    plan = PrivateSGD(loss="softmax", classes=7, norm_bound=3.0, epsilon=1.0).plan(n=900, d=2)
    assert plan.clip_norm == pytest.approx(3 * math.sqrt(2))


@pytest.mark.parametrize("batch", [1, 3000])
def test_threads_do_not_change_a_seeded_run(monkeypatch, batch):
    X, y = records(5_000, 9, 3)
    learner = PrivateSGD(
        loss="softmax", classes=3, steps=20, batch_size=batch, noise_multiplier=2.0
    )
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        found.append(learner.learn(X, y, random_state=3).weights)
    assert (found[0] == found[1]).all()


def test_models_predict_and_lose_as_scipy_does():
    X, y = records(300, 5, 4)
    X[3] *= 100
    learner = PrivateSGD(
        loss="softmax", classes=4, steps=200, batch_size=20, norm_bound=1.5, radius=20,
        epsilon=math.inf,
    )  # fmt: skip
    model = learner.learn(X, y, random_state=2)
    assert model.classes == 4
    shrunk = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
    scores = shrunk @ model.weights
    np.testing.assert_allclose(model.scores(X), scores, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1), atol=1e-12)
    assert (model.predict(X) == scores.argmax(axis=1)).all()
    assert (model.predict(X) == y).mean() > 0.8
    losses = model.losses(X, y)
    assert 0 <= losses.min() < losses.max() <= 1
    expected = -log_softmax(scores, axis=1)[np.arange(300), y]
    np.testing.assert_allclose(losses * model.loss.largest, expected, atol=1e-10)
    assert model.loss.largest == learner.largest_loss


@pytest.mark.parametrize("classes", [2, 6])
def test_no_loss_exceeds_the_bound(classes):
    rng = np.random.default_rng(0)
    learner = PrivateSGD(loss="softmax", classes=classes, radius=2.5, epsilon=math.inf)
    scores = rng.normal(size=(20_000, classes)) ** 3
    scores[0] = np.arange(classes) - (classes - 1) / 2
    scores *= 2.5 / np.linalg.norm(scores, axis=1, keepdims=True)
    losses = -log_softmax(scores, axis=1)[:, 0]
    assert losses.max() <= learner.largest_loss + 1e-12
    if classes == 2:
        assert losses[0] == pytest.approx(learner.largest_loss)


def test_two_classes_are_logistic_regression():
    """Half the difference of both classes' weights moves as one vector of weights does."""
    X, y = records(200, 4, 2)
    shared = {"steps": 300, "batch_size": 5, "strong_convexity": 1.0, "epsilon": math.inf}
    indices = np.random.default_rng(0).integers(0, 200, 1500)
    both = PrivateSGD(loss="softmax", classes=2, radius=1e9, **shared).learn_indices(X, y, indices)
    weights = both.weights[:, 1] - both.weights[:, 0]
    one = PrivateSGD(loss="logistic", radius=1e9, **shared | {"strong_convexity": 0.5})
    np.testing.assert_allclose(one.learn_indices(X, y, indices).weights, weights, rtol=1e-9)


def test_models_are_restored_from_json():
    X, y = records(100, 4, 3)
    learner = PrivateSGD(loss="softmax", classes=3, steps=100, radius=20, epsilon=math.inf)
    model = learner.learn(X, y, random_state=1)
    text = json.dumps(model.hypothesis)
    again = learner.restore(text)
    assert isinstance(again, SoftmaxModel)
    assert (again.weights == model.weights).all()
    assert (again.losses(X, y) == model.losses(X, y)).all()
    assert (learners.predictor(text)(X) == model.predict(X)).all()
    assert (learners.predictor(text)(X * 1e300) == model.predict(X)).all()
    fields = json.loads(model.to_json())
    assert fields["hypothesis"] == model.hypothesis
    assert fields["plan"]["batch_size"] == 1
    with pytest.raises(ParameterError, match="softmax one of 4 classes"):
        dataclasses.replace(learner, classes=4).restore(text)
    with pytest.raises(ParameterError, match="linear one"):
        PrivateSGD(loss="hinge", steps=1, epsilon=math.inf).restore(text)
    for wrong in ([[1.0]], [[1.0], [1.0, 2.0]], [[math.nan], [1.0]], 3):
        with pytest.raises(ParameterError, match="weights"):
            learners.predictor({"kind": "softmax", "weights": wrong})
    with pytest.raises(ParameterError, match="a vote needs hypotheses of two labels"):
        learners.predictor({"kind": "vote", "hypotheses": [model.hypothesis]})
    with pytest.raises(ShapeError, match="X has 5 columns"):
        learners.predictor(text)(np.ones((2, 5)))


def test_one_budget_pays_for_all_classes():
    X, y = records(2_000, 5, 8)
    learner = PrivateSGD(loss="softmax", classes=8, epsilon=1.0, delta=1e-5)
    budget = Budget(1.0, 1e-5)
    model = learner.learn(X, y, budget=budget)
    assert 0.99 < model.record.epsilon == budget.spent.epsilon <= 1
    assert model.weights.shape == (5, 8)
    assert not model.weights.flags.writeable
    assert model.plan.weights == 40
    single = PrivateSGD(loss="logistic", steps=model.plan.steps, batch_size=model.plan.batch_size,
                        epsilon=1.0, delta=1e-5)  # fmt: skip
    assert single.plan(n=2_000, d=5).noise_multiplier == model.plan.noise_multiplier


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"classes": None}, "classes = None"),
        ({"classes": 1}, "classes = 1"),
        ({"classes": 1025}, "classes = 1025"),
        ({"classes": 2.5}, "classes = 2.5"),
        ({"loss": "logistic"}, "classes = 3"),
        ({"label_bound": 1.0}, r"label_bound = 1\.0"),
    ],
)
def test_bad_settings_are_refused(wrong, text):
    with pytest.raises(ParameterError, match=text):
        PrivateSGD(**{"loss": "softmax", "classes": 3, "epsilon": 1.0, **wrong})


@pytest.mark.parametrize("wrong", [3, -1, 1 << 16])
def test_labels_are_checked_to_the_last_one(wrong):
    n = 100_000
    y = np.random.default_rng(0).integers(0, 3, n)
    learner = PrivateSGD(loss="softmax", classes=3, steps=5, batch_size=9, epsilon=math.inf)
    X, indices = np.random.default_rng(1).normal(size=(n, 2)), np.arange(n - 45, n)
    models = [learner.learn_indices(X, y.astype(kind), indices) for kind in (np.int64, np.uint8)]
    assert np.array_equal(models[0].weights, models[1].weights)
    y[-1] = wrong
    with pytest.raises(ParameterError, match="every entry must be an integer from 0 to 2"):
        learner.learn_indices(X, y, indices)


@pytest.mark.parametrize("wrong", [3, -1])
def test_labels_are_numbers_of_classes(wrong):
    X, y = records(10, 2, 3)
    learner = PrivateSGD(loss="softmax", classes=3, epsilon=math.inf)
    y[4] = wrong
    with pytest.raises(ParameterError, match="every entry must be an integer from 0 to 2"):
        learner.learn(X, y)
    with pytest.raises(ShapeError, match="y has length 9"):
        learner.learn(X, np.zeros(9, int))
    with pytest.raises(ParameterError, match="y has dtype float64"):
        learner.learn(X, np.zeros(10))
    with pytest.raises(ShapeError, match="X has 3 columns, but the model has 2"):
        learner.learn(X, np.zeros(10, int)).predict(np.ones((1, 3)))


@pytest.mark.parametrize("noise", [None, 2.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_strange_records_are_learned_from(noise, dtype):
    X, y = records(40, 3, 3, dtype=dtype)
    learner = PrivateSGD(
        loss="softmax", classes=3, steps=20, batch_size=3, noise_multiplier=noise,
        epsilon=math.inf if noise is None else None,
    )  # fmt: skip
    huge, tiny = (1e300, 1e-300) if dtype == np.float64 else (1e38, 1e-44)
    one_huge = X.copy()
    one_huge[5] = huge
    for rows in (X * 0, X * dtype(tiny), X / abs(X).max() * dtype(huge), one_huge):
        model = learner.learn_indices(rows, y, np.arange(60) % 40, random_state=1)
        assert np.isfinite(model.weights).all()
        assert np.isfinite(model.losses(rows, y)).all()
