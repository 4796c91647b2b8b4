"""Private stochastic gradient descent beside numpy, closed forms and scipy's optimum."""

import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import minimize
from scipy.stats import chi2, poisson

from hdp_fast import _core, accounting, learners
from hdp_fast.budget import Budget
from hdp_fast.exceptions import (
    BudgetExceeded,
    InsufficientSamples,
    ParameterError,
    ShapeError,
    UtilityWarning,
)
from hdp_fast.learners import PrivateSGD
from hdp_fast.local import Agents
from hdp_fast.reference import linear as reference
from hdp_fast.transfer import SubsampleTestReweigh
from hdp_fast.weights import DenseWeights

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "huber"]


def records(n, d, seed=0, dtype=np.float64):
    """Rows of norms below and above 1, labels that a halfspace mostly explains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype) / np.sqrt(d)
    y = X @ np.linspace(1, -1, d) + 0.2 * rng.normal(size=n) > 0
    return X, y.astype(np.uint8)


def settings(learner):
    names = ["loss", "batch_size", "radius", "norm_bound", "clip_norm", "threshold", "margin"]
    return {name: getattr(learner, name) for name in [*names, "l1", "l2", "strong_convexity"]}


@each_case("loss", LOSSES)
@each_case("extra", [{}, {"l1": 0.05}, {"l2": 0.3}, {"strong_convexity": 0.5}])
@each_case(("d", "batch", "dtype"), [(8, 1, np.float64), (13, 50, np.float32)])
def test_the_kernel_does_what_numpy_does(loss, extra, d, batch, dtype):
    X, y = records(500, d, dtype=dtype)
    X[7] = 0
    learner = PrivateSGD(
        loss=loss,
        steps=60,
        batch_size=batch,
        radius=2.0,
        norm_bound=0.9,
        clip_norm=0.7,
        threshold=0.4,
        margin=0.6,
        epsilon=math.inf,
        **extra,
    )
    indices = np.random.default_rng(1).integers(0, 500, 60 * batch)
    found = learner.learn_indices(X, y, indices).weights
    expected = reference.learn(X.astype(float), 2.0 * y - 1, indices, **settings(learner))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(found) <= 2.0 + 1e-12


@each_case("loss", LOSSES)
@each_case("last", [False, True])
@each_case("box", [(0.0, 1.0), (-0.5, -0.2), None])
@each_case("start", [None, [3.0, -1.0, 0.1, 0.5]])
def test_domain_output_and_start_are_those_of_numpy(loss, last, box, start):
    X, y = records(300, 4)
    learner = PrivateSGD(
        loss=loss, steps=40, batch_size=3, radius=None if box else 0.7, clip_norm=0.7,
        threshold=0.4, margin=0.0, domain="box" if box else "ball", low=box and box[0],
        high=box and box[1], output="last" if last else "mean", start=start, epsilon=math.inf,
    )  # fmt: skip
    indices = np.random.default_rng(1).integers(0, 300, 120)
    found = learner.learn_indices(X, y, indices).weights
    more = {"box": box, "last": last, "start": None if start is None else np.array(start)}
    expected = reference.learn(X, 2.0 * y - 1, indices, **settings(learner), **more)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    if box:
        assert box[0] <= found.min() <= found.max() <= box[1]


def objective(learner, X, labels):
    """The mean loss by its textbook formula."""
    rows = X * np.minimum(1, learner.norm_bound / np.linalg.norm(X, axis=1))[:, None]
    formulas = {
        "hinge": lambda s: np.maximum(0, 1 - labels * s),
        "squared_hinge": lambda s: np.maximum(0, 1 - labels * s) ** 2 / 2,
        "logistic": lambda s: np.log1p(np.exp(-labels * s)),
        "squared": lambda s: (s - labels) ** 2 / 2,
        "huber": lambda s: np.where(
            abs(s - labels) <= learner.threshold,
            (s - labels) ** 2 / 2,
            learner.threshold * (abs(s - labels) - learner.threshold / 2),
        ),
    }
    penalty = lambda w: learner.l1 * abs(w).sum() + learner.l2 * (w @ w) / 2  # noqa: E731
    return lambda w: formulas[learner.loss](rows @ w).mean() + penalty(w)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", [{}, {"l1": 0.02}, {"l2": 0.1}])
@pytest.mark.parametrize("numerics", ["none", "exact"])
def test_converges_to_the_optimum(loss, penalty, numerics):
    """Within what Algorithm 3 promises of scipy's optimum in the ball."""
    X, y = records(400, 4)
    noise = {"epsilon": math.inf} if numerics == "none" else {"noise_multiplier": 0.5}
    learner = PrivateSGD(
        loss=loss,
        steps=40_000,
        batch_size=10,
        radius=3.0,
        threshold=0.5,
        **noise,
        **penalty,
    )
    value = objective(learner, X, 2.0 * y - 1)
    ball = {"type": "ineq", "fun": lambda w: 9 - w @ w}
    best = minimize(value, np.full(4, 0.1), constraints=ball, method="SLSQP").fun
    learnt = (
        learner.learn(X, y, random_state=1)
        if numerics == "none"
        else learner.learn_weighted(X, y, DenseWeights(400, 1.0, 0.1), random_state=1)
    )
    assert best - 1e-5 <= value(learnt.weights) <= best + 0.015


def test_losses_are_shares_of_the_largest():
    X, y = records(300, 5)
    X[3] *= 100
    for loss in LOSSES:
        learner = PrivateSGD(
            loss=loss, steps=50, radius=2.0, norm_bound=1.5, threshold=0.3, epsilon=math.inf
        )
        model = learner.learn(X, y, random_state=2)
        losses = model.losses(X, y)
        assert losses.min() >= 0
        assert losses.max() <= 1
        mean = objective(dataclasses.replace(learner, l1=0, l2=0), X, 2.0 * y - 1)(model.weights)
        assert losses.mean() * learner.largest_loss == pytest.approx(mean, rel=1e-12)
        shrunk = X * np.minimum(1, 1.5 / np.linalg.norm(X, axis=1))[:, None]
        np.testing.assert_allclose(model.scores(X), shrunk @ model.weights, atol=1e-12)
        assert (model.predict(X) == (X @ model.weights >= 0)).all()
        far = model.weights / np.linalg.norm(model.weights) * 1.5
        worst = dataclasses.replace(model, weights=far / 1.5 * 2)
        assert worst.losses(far[None], [0])[0] == pytest.approx(1, rel=1e-12)


def test_real_labels_are_clipped():
    X, _ = records(300, 3)
    y = X @ [1.0, 2.0, -1.0]
    learner = PrivateSGD(
        loss="squared",
        steps=20_000,
        batch_size=20,
        radius=3,
        norm_bound=4,
        label_bound=9.0,
        clip_norm=5.0,
        epsilon=math.inf,
    )
    np.testing.assert_allclose(learner.learn(X, y, random_state=1).weights, [1, 2, -1], atol=0.05)
    clipped = dataclasses.replace(learner, label_bound=0.5, steps=50, clip_norm=None)
    one = clipped.learn(X, y, random_state=1).weights
    assert (one == clipped.learn(X, np.clip(y, -0.5, 0.5), random_state=1).weights).all()
    assert clipped.plan(n=300, d=3).clip_norm == (3 * 4 + 0.5) * 4


# One step from zero rows shows the noise itself: the second model, half of the mean of two.
def released(learner, X, runs):
    """The first noisy mean gradient of many runs, whose first step is 1; (runs, d)."""
    labels = np.ones(len(X), np.uint8)
    found = np.array(
        [
            learner.learn_indices(
                X, labels, [0] * (2 * learner.batch_size), random_state=seed
            ).weights
            for seed in range(runs)
        ]
    )
    return -2 * found


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
@pytest.mark.parametrize("batch", [1, 4])
def test_noise_has_the_stated_variance(numerics, batch):
    """Sums of squares of 60,000 numbers, within 6 standard deviations of the law's."""
    d, runs, noise = 200, 300, 3.0
    X = np.zeros((2, d))
    learner = PrivateSGD(
        loss="logistic",
        steps=2,
        batch_size=batch,
        radius=1e9,
        clip_norm=0.5,
        noise_multiplier=noise,
        strong_convexity=1,
    )
    learner = dataclasses.replace(learner, numerics=numerics)
    values = released(learner, X, runs) * batch / (noise * 0.5)
    count = values.size
    assert abs((values**2).sum() / count - 1) < 6 * math.sqrt(2 / count) + 3e-5
    assert abs(values.mean()) < 6 / math.sqrt(count)
    assert abs((values**4).mean() - 3) < 6 * math.sqrt(96 / count)
    if numerics == "exact":
        unit = 0.5 / (2**20 - math.sqrt(d) / 2 - 1)
        integers = values * (noise * 0.5) / unit
        np.testing.assert_allclose(integers, np.rint(integers), atol=1e-3)


def test_exact_gradients_are_rounded_ones():
    """With noise far below a unit of the grid's own size only the rounding is left."""
    X, y = records(50, 6)
    exact = PrivateSGD(loss="logistic", steps=30, batch_size=7, radius=2.0, noise_multiplier=1e-9)
    indices = np.arange(30 * 7) % 50
    found = exact.learn_indices(X, y, indices).weights
    plain = dataclasses.replace(exact, noise_multiplier=None, epsilon=math.inf)
    plain = plain.learn_indices(X, y, indices).weights
    assert 0 < np.abs(found - plain).max() < 1e-5


UNITS = 2**20


def integer_sums(learner, X, y, indices):
    """The two sums of a run of three steps, whose noise is too small ever to be anything but 0.

    With convexity 1 and no ball in the way the models are 0, -s g, -s g - s h / 2, where g and h
    are the sums and s the unit over the batch; all in integers of Python, exact.
    """
    d, batch = X.shape[1], learner.batch_size
    own = UNITS * float(np.finfo(X.dtype).eps) * (d / 32 + 4)
    unit = learner.clip_norm / (UNITS - math.sqrt(d) / 2 - 1 - own) / batch
    short = dataclasses.replace(learner, steps=2)
    first = 2 * short.learn_indices(X, y, indices[: 2 * batch]).weights
    both = 3 * learner.learn_indices(X, y, indices).weights
    found = [-first / unit, 2 * (2 * first - both) / unit]
    for sums in found:
        assert np.abs(sums - np.rint(sums)).max() < 1e-3
    return [[int(each) for each in np.rint(sums)] for sums in found]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("d", "batch", "dtype"), [(1, 3, np.float64), (5, 4, np.float32), (40, 2500, np.float64)]
)
def test_neighbors_move_rounded_sums_by_no_more_than_is_stated(loss, d, batch, dtype):
    """Whatever record takes the place of one, and at whichever model: 2 K for each of its draws."""
    rng = np.random.default_rng(3)
    real = loss in ("squared", "huber")
    learner = PrivateSGD(
        loss=loss, steps=3, batch_size=batch, radius=1e9, noise_multiplier=1e-30,
        strong_convexity=1.0, clip_norm=0.3, label_bound=2.0 if real else None,
    )  # fmt: skip
    scales = [0.0, 1e-40, 1e-6, 0.3, 1.0, 30.0, 1e15]
    closest = 0.0
    for _ in range(30):
        n = 6
        X = (rng.normal(size=(n, d)) * rng.choice(scales, (n, 1))).astype(dtype)
        y = rng.normal(size=n) * 3 if real else rng.integers(0, 2, n)
        other_X, other_y = X.copy(), y.copy()
        other_X[0] = -X[0] if rng.integers(2) else X[rng.integers(n)] * dtype(0.7)
        other_y[0] = y[0] if rng.integers(2) else rng.permutation(y)[0]
        # The first sum is of the others alone: both runs are at the same model in the second.
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
    assert closest > 0.99, "the bound should be sharp"


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
@pytest.mark.parametrize("batch", [1, 5000])
def test_threads_do_not_change_a_seeded_run(monkeypatch, numerics, batch):
    X, y = records(20_000, 9)
    learner = PrivateSGD(
        loss="hinge", steps=20, batch_size=batch, noise_multiplier=2.0, numerics=numerics
    )
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        weights = DenseWeights(20_000, 0.1, 0.3)
        weights.update(np.linspace(0, 1, 20_000))
        found.append(learner.learn_weighted(X, y, weights, random_state=3).weights)
        found.append(learner.learn_weighted(X, y, weights, random_state=4).weights)
    assert (found[0] == found[2]).all()
    assert (found[1] == found[3]).all()
    assert (found[0] != found[1]).any()


@each_case("loss", LOSSES)
@each_case(("noise", "numerics"), [(None, "exact"), (2, "exact"), (2, "idealized")])
@each_case("dtype", [np.float64, np.float32])
def test_strange_records_are_refused_or_learned_from(loss, noise, numerics, dtype):
    X, y = records(40, 3, dtype=dtype)
    learner = PrivateSGD(
        loss=loss, steps=20, batch_size=3, noise_multiplier=noise, numerics=numerics,
        epsilon=math.inf if noise is None else None,
    )  # fmt: skip
    weights = DenseWeights(40, 0.5, 0.1)
    for wrong in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[5, 1] = wrong
        for call in (learner.learn, lambda X, y: learner.learn_weighted(X, y, weights)):
            with pytest.raises(ParameterError, match="X has an infinite entry or NaN"):
                call(bad, y)
    huge, tiny = (1e300, 1e-300) if dtype == np.float64 else (1e38, 1e-44)
    one_huge, one_zero = X.copy(), X.copy()
    one_huge[5], one_zero[5] = huge, 0
    strange = [(X * 0, y), (X, y * 0), (X, y * 0 + 1), (X * dtype(tiny), y), (one_zero, y)]
    for rows, labels in [*strange, (X / abs(X).max() * dtype(huge), y), (one_huge, y)]:
        model = learner.learn_weighted(rows, labels, weights, random_state=1)
        assert np.isfinite(model.weights).all()
        assert np.isfinite(model.losses(rows, labels)).all()
        if noise is None and (not rows.any() or abs(rows).min() > 1e200):
            assert not model.weights.any()


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_real_labels_must_be_finite(loss, wrong):
    learner = PrivateSGD(loss=loss, steps=1, label_bound=1.0, epsilon=math.inf)
    with pytest.raises(ParameterError, match="y has an infinite entry or NaN"):
        learner.learn(np.ones((2, 1)), [0.0, wrong])


def test_labels_must_be_bits_without_a_bound():
    with pytest.raises(ParameterError, match="every entry must be 0 or 1"):
        PrivateSGD(loss="hinge", steps=1, epsilon=math.inf).learn(np.ones((2, 1)), [1, 2])


def test_draws_follow_the_weights():
    """The mean gradient at 0 names the records drawn: (1 / 2) of one-hot rows."""
    n, batch = 20, 200_000
    weights = DenseWeights(n, 0.3, 1.0)
    weights.update(np.linspace(0, 1, n))
    learner = PrivateSGD(loss="logistic", steps=2, batch_size=batch, radius=1e6, epsilon=math.inf)
    for given, expected in [(weights, weights.probabilities()), (None, np.full(n, 1 / n))]:
        X, y = np.eye(n), np.ones(n, np.uint8)
        if given is None:
            model = learner.learn(X, y, random_state=5)
        else:
            model = learner.learn_weighted(X, y, given, random_state=5)
        # Weights / 2 after one step of D / L, over the slope -1 / 2.
        shares = model.weights * 2 / (2e6) * 2
        deviation = np.sqrt(expected * (1 - expected) / batch)
        assert (abs(shares - expected) <= 6 * deviation).all()


def test_models_are_restored_from_json():
    X, y = records(100, 4)
    learner = PrivateSGD(loss="hinge", steps=100, epsilon=math.inf)
    model = learner.learn(X, y, random_state=1)
    said = json.dumps(model.hypothesis)
    again = learner.restore(said)
    assert (again.weights == model.weights).all()
    assert (learners.predictor(said)(X) == model.predict(X)).all()
    vote = {"kind": "vote", "hypotheses": [model.hypothesis] * 3}
    assert (learners.predictor(vote)(X) == model.predict(X)).all()
    with pytest.raises(ParameterError, match="linear one with bias 0"):
        learner.restore({"kind": "halfspace", "weights": [1.0], "bias": 0.0})
    prepared = learner.prepare(X)
    assert (model.predict(prepared) == model.predict(X)).all()
    assert (learner.learn(prepared, y, random_state=1).weights == model.weights).all()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"domain": "cube"}, ParameterError, "domain = 'cube'"),
        ({"domain": "box", "high": 1.0}, ParameterError, "low = None, but a box needs it"),
        ({"domain": "box", "low": 1.0, "high": 1.0}, ParameterError, r"high = 1\.0"),
        ({"domain": "box", "low": -math.inf, "high": 1.0}, ParameterError, "low = -inf"),
        ({"domain": "box", "low": 0, "high": 1, "radius": 2.0}, ParameterError, "a box has none"),
        ({"low": 0.0}, ParameterError, r"low = 0\.0, but only a box takes it"),
        ({"output": "best"}, ParameterError, "output = 'best'"),
        ({"start": [[1.0, 2.0]]}, ShapeError, r"start has shape \(1, 2\)"),
        ({"start": [1.0, math.nan]}, ParameterError, "start has other entries"),
        ({"start": [1.0, 2.0, 3.0]}, ShapeError, "start has 3 rows, but X has 2 columns"),
        (
            {"loss": "softmax", "classes": 3, "start": np.ones((2, 4))},
            ShapeError,
            r"start has shape \(2, 4\), but there are 3 classes",
        ),
    ],
)
def test_bad_domains_and_starts_are_refused_before_anything_is_spent(wrong, error, text):
    X, y = records(50, 2)
    budget = Budget(5.0, 1e-3)
    with pytest.raises(error, match=text):
        PrivateSGD(**{"loss": "hinge", "epsilon": 1.0, **wrong}).learn(X, y, budget=budget)
    assert not any(budget.spent)


def test_a_run_goes_on_where_a_model_stopped():
    """From a box's inner point, and again from what was learned; the printed hinge needs it."""
    X, y = records(400, 3)
    shared = {"loss": "hinge", "margin": 0.0, "domain": "box", "low": -1, "high": 1}
    learner = PrivateSGD(
        **shared, steps=300, output="last", start=[1.0, -1.0, 0.5], epsilon=math.inf
    )
    model = learner.learn(X, y, random_state=1)
    again = dataclasses.replace(learner, start=model).learn(X, y, random_state=2)
    assert (again.predict(X) == y).mean() > 0.8
    still = dataclasses.replace(learner, start=None).learn(X, y, random_state=1)
    assert not still.weights.any()
    assert learner.plan(n=400, d=3).excess_risk is None
    assert dataclasses.replace(learner, output="mean").plan(n=400, d=3).excess_risk > 0
    with pytest.raises(ParameterError, match="domain = 'box', but its largest loss depends on d"):
        learner.largest_loss  # noqa: B018
    assert model.loss.largest == pytest.approx(math.sqrt(3))


def test_domain_and_output_change_no_guarantee():
    X, y = records(500, 3)
    plain = PrivateSGD(loss="squared_hinge", margin=0.1, epsilon=1.0)
    boxed = dataclasses.replace(plain, domain="box", low=0, high=1, output="last", start=[1, 0, 1])
    some, other = (learner.learn(X, y, random_state=1).record for learner in (plain, boxed))
    assert dataclasses.replace(some, noise=other.noise) == other


def test_settings_that_are_not_given_follow_public_rules():
    learner = PrivateSGD(loss="logistic", epsilon=1.0, norm_bound=2.0)
    plan = learner.plan(n=5_000, d=10)
    mu = accounting.gaussian_mu(1.0, 1e-6)
    assert plan.steps == 200
    assert plan.batch_size == math.ceil(5 * 5_000 * mu / math.sqrt(200))
    assert 9 < plan.noise_multiplier < 15
    assert (plan.radius, plan.clip_norm) == (10.0, 2.0)
    wider = PrivateSGD(loss="logistic", steps=200, batch_size=4_000, noise_multiplier=10.0)
    plan = wider.plan(n=50_000, d=10)
    assert 20 < plan.radius < 60
    assert plan.radius == pytest.approx(math.sqrt(2 / plan.noise))
    assert set(plan.chosen) == {"radius", "clip_norm"}
    assert learner.plan(n=300, d=40).steps == 50
    assert learner.plan(n=2_000, d=400).steps == int((2_000 * mu) ** 2 / 1_600)
    assert PrivateSGD(loss="hinge", epsilon=math.inf).plan(n=50, d=2).batch_size == 50
    given = PrivateSGD(loss="logistic", epsilon=1.0, steps=9, radius=3, clip_norm=1)
    assert given.plan(n=500, d=2).chosen == ()
    assert given.plan(n=500, d=2).batch_size == 1
    assert dataclasses.replace(learner, epsilon=math.inf).plan(n=100, d=40).radius == 30
    X, y = records(2_000, 10)
    model = PrivateSGD(loss="logistic", epsilon=1.0).learn(X, y)
    assert model.plan == PrivateSGD(loss="logistic", epsilon=1.0).plan(n=2_000, d=10)
    with pytest.raises(ParameterError, match=r"steps = None, but only learn chooses them"):
        learner.calibrate(epsilon=1.0, n=500)
    with pytest.raises(ParameterError, match=r"steps = None, but only learn chooses them"):
        PrivateSGD(loss="hinge", epsilon=math.inf).learn_indices(X, y, [0])


def test_the_excess_risk_is_that_of_algorithm_3():
    plan = PrivateSGD(loss="hinge", radius=3, steps=50, batch_size=20, noise_multiplier=5.0).plan(
        n=900, d=6
    )
    G = math.sqrt(1 + 6 * (5 / 20) ** 2)
    # A Poisson number of draws has 1 / 20 more in its second moment.
    assert plan.excess_risk == pytest.approx(6 * (1.5 * G + 1 / (20 * G)) / math.sqrt(50))
    assert plan.noise == pytest.approx(5 / 20 * math.sqrt(6 / 50))
    clipped = PrivateSGD(loss="hinge", clip_norm=0.5, epsilon=1.0)
    for other in (clipped, dataclasses.replace(clipped, clip_norm=None, l1=0.1)):
        assert other.plan(n=900, d=6).excess_risk is None


@pytest.mark.parametrize(("loss", "slope"), [("squared", 2.0), ("squared_hinge", 0.5)])
def test_gradients_that_grow_are_clipped_where_there_is_noise(loss, slope):
    shape = {"label_bound": 2.0} if loss == "squared" else {"margin": 0.5}
    private = PrivateSGD(loss=loss, norm_bound=3.0, radius=4.0, epsilon=1.0, **shape)
    assert private.plan(n=500, d=2).clip_norm == slope * 3
    plain = dataclasses.replace(private, epsilon=math.inf)
    assert plain.plan(n=500, d=2).clip_norm == (4 * 3 + slope) * 3
    assert private.plan(n=500, d=2).excess_risk is None
    assert plain.plan(n=500, d=2).excess_risk > 0


def test_a_regression_without_settings_beats_the_constant():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (20_000, 3)), np.ones(20_000)])
    y = X @ [0.3, -0.2, 0.1, 0.2] + 0.05 * rng.normal(size=20_000)
    learner = PrivateSGD(loss="squared", label_bound=1.0, norm_bound=2.0, epsilon=1.0)
    scores = learner.learn(X, y, random_state=1).scores(X)
    assert ((scores - y) ** 2).mean() < 0.3 * y.var()


def test_noise_that_drowns_the_records_is_noted():
    X, y = records(20, 5)
    with pytest.warns(UtilityWarning, match="noise of all steps = .* times the longest gradient"):
        PrivateSGD(loss="logistic", epsilon=0.1, delta=1e-3).learn(X, y)


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_an_epsilon_of_ten_thousand_asks_for_hardly_any_noise(numerics):
    learner = PrivateSGD(loss="hinge", steps=3, batch_size=20, numerics=numerics, epsilon=math.inf)
    made = learner.calibrate(epsilon=1e4, delta=0.01, n=200)
    assert accounting.delta(made.composition(1 / 200, sampling="poisson"), 1e4) <= 0.01
    assert made.noise_multiplier < 1


def test_accounting_is_that_of_theory():
    """A million records as Kohen and Sheffet ask for them: docs/theory/joint_convexity.md."""
    for rounds, steps, batch, noise in [(20, 100, 1000, 37.1), (20, 200, 200, 11.0)]:
        learner = PrivateSGD(
            loss="hinge", steps=steps, batch_size=batch, numerics="idealized", epsilon=math.inf
        )
        found = learner.calibrate(epsilon=0.5, delta=1e-4, n=10**6, kappa=0.014815, rounds=rounds)
        assert found.noise_multiplier == pytest.approx(noise, rel=0.01)
        assert found.step == accounting.GaussianMechanism(2 / found.noise_multiplier)
        spent = accounting.epsilon(
            found.composition(DenseWeights(10**6, 0.014815, 0.1).rate, rounds=rounds), 1e-4
        )
        assert 0.499 < spent <= 0.5
    needed = found.records_needed(epsilon=0.5, kappa=0.014815, rounds=20)
    assert needed == pytest.approx(10**6, rel=1e-3)


def test_a_step_is_a_gaussian_mechanism_with_either_noise():
    """A sensitivity of 2 K, and a deviation of noise K."""
    for numerics in ("exact", "idealized"):
        learner = PrivateSGD(loss="hinge", steps=1, noise_multiplier=4.0, numerics=numerics)
        assert learner.step == accounting.GaussianMechanism(0.5)
    with pytest.raises(ParameterError, match="there is no guarantee"):
        PrivateSGD(loss="hinge", steps=1, epsilon=math.inf).composition(0.1)


def test_a_run_states_that_the_number_of_its_draws_was_drawn():
    learner = PrivateSGD(loss="hinge", steps=100, batch_size=84, noise_multiplier=11.3)
    drawn = accounting.SampledSum(math.nextafter(1 / 11.3, 1), rate=84 * (1 / 1_000))
    assert learner.composition(1 / 1_000, sampling="poisson", rounds=2) == [(drawn, 200)]
    record = learner.learn(*records(1_000, 3)).record
    assert record.epsilon == pytest.approx(accounting.epsilon([(drawn, 100)], 1e-6), rel=1e-9)
    assert record.epsilon < 0.9 * learner.epsilon_for(n=1_000, kappa=1)
    assert "100 steps of Poisson(84) uniform draws" in record.mechanism
    assert record.source.endswith("accounting.SampledSum")
    needed = learner.records_needed(epsilon=1.0)
    assert learner.epsilon_for(n=needed) <= 1.0 < learner.epsilon_for(n=int(needed * 0.999))
    assert needed < 0.95 * learner.records_needed(epsilon=1.0, kappa=1)


@pytest.mark.parametrize("batch_size", [1, 3, 40, 300, 2_500])
def test_sums_are_exact_and_divided_by_the_mean_of_a_poisson_number(batch_size):
    """Records of 1 without noise: a step ends at M / batch_size. Chi-square at 1e-6."""
    learner = PrivateSGD(
        loss="squared", steps=1, batch_size=batch_size, noise_multiplier=1e-30, radius=1e9,
        strong_convexity=1.0, output="last", clip_norm=1.0, label_bound=1.0,
    )  # fmt: skip
    descent = learner._settle(5, 1)
    X, y, runs = learner.prepare(np.ones((5, 1))), np.ones(5), 3_000
    models = [learner._descend(X, y, None, seed, descent).weights[0] for seed in range(runs)]
    # Whole gradients lie a millionth beside the grid.
    numbers = np.rint(np.array(models) * batch_size)
    np.testing.assert_allclose(np.array(models) * batch_size, numbers, rtol=1e-5)
    ends = [poisson.ppf(share, batch_size) for share in (0.01, 0.99)]
    edges = np.unique(np.linspace(*ends, 30).astype(int)) + 0.5
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    counts, expected = (
        np.histogram(numbers, edges)[0],
        runs * np.diff(poisson.cdf(edges, batch_size)),
    )
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(counts) - 1)


def test_the_epsilon_of_several_runs_is_that_of_their_composition():
    learner = PrivateSGD(loss="hinge", steps=100, batch_size=100, noise_multiplier=8.0, delta=1e-5)
    rate = DenseWeights(10_000, 0.5, 0.1).rate
    subsampled = accounting.Subsampled(accounting.GaussianMechanism(2 / 8), draws=100, rate=rate)
    assert learner.composition(rate, rounds=3) == [(subsampled, 300)]
    epsilon = learner.epsilon_for(n=10_000, kappa=0.5, rounds=3)
    assert epsilon == pytest.approx(accounting.epsilon([(subsampled, 300)], 1e-5), rel=1e-4)
    plain = dataclasses.replace(learner, numerics="idealized")
    assert plain.epsilon_for(n=10_000, kappa=0.5, rounds=3) == epsilon
    model = learner.learn(*records(500, 3))
    assert model.record.numerics == "exact"
    assert "rounded Gaussian" in model.record.noise


@pytest.mark.parametrize("change", [np.asfortranarray, lambda X: np.repeat(X, 2, 0)[::2]])
def test_records_of_any_layout_are_read_and_left_as_they_are(change):
    X, y = records(200, 6)
    X = np.rint(X * 8)
    learner = PrivateSGD(loss="logistic", steps=50, batch_size=5, norm_bound=2.0, epsilon=math.inf)
    expected = learner.learn(X, y, random_state=1).weights
    for given in (change(X), X.astype(np.int16), X.astype(np.float32)):
        kept = given.copy()
        found = learner.learn(given, y, random_state=1).weights
        # Single precision rounds a gradient to another integer now and then; the noise is the same.
        tolerance = 1e-6 if given.dtype == np.float32 else 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        assert (given == kept).all()


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_learns_inside_transfer_from_shifted_records(numerics):
    """Ten rounds at epsilon 1, whose record says what kind of noise it had."""
    X, y = records(50_000, 5)
    target, labels = records(20_000, 5, seed=1)
    learner = PrivateSGD(
        loss="logistic", steps=20, batch_size=200, radius=5.0, numerics=numerics, epsilon=math.inf
    )
    run = SubsampleTestReweigh(
        learner, alpha=0.15, beta=0.05, epsilon=1.0, delta=1e-6, kappa=0.2, rounds=10, eta=0.3
    ).fit(X, y, Agents(target, labels, epsilon=2.0), random_state=1)
    assert run.result_.record.epsilon == 1
    assert run.result_.record.numerics == ("exact" if numerics == "exact" else "idealized")
    assert (run.result_.predict(target) != labels).mean() < 0.25


def test_a_run_states_what_it_costs_and_is_charged():
    X, y = records(2000, 3)
    learner = PrivateSGD(
        loss="logistic", steps=20, batch_size=20, numerics="idealized", epsilon=math.inf
    )
    learner = learner.calibrate(epsilon=1.0, delta=1e-5, n=2000)
    budget = Budget(1.0, 1e-5)
    record = learner.learn(X, y, budget=budget).record
    assert 0.99 < record.epsilon <= 1
    assert (record.delta, record.numerics) == (1e-5, "idealized")
    assert record.neighbors == "replace_one"
    with pytest.raises(BudgetExceeded):
        learner.learn(X, y, budget=budget)
    plain = dataclasses.replace(learner, noise_multiplier=None, epsilon=math.inf)
    with pytest.raises(ParameterError, match="epsilon = inf, but only a private run"):
        plain.learn(X, y, budget=Budget(1.0))


def test_what_cannot_run_is_refused_before_it_is_charged():
    X, y = records(50, 2)
    budget = Budget(1e6, 0.5)
    for wrong in (
        {"noise_multiplier": 2.0**29},
        {"radius": 1e200, "norm_bound": 1e200},
        {"noise_multiplier": 1e-160},
    ):
        with pytest.raises(ParameterError, match=f"{next(iter(wrong))} = .*, but"):
            PrivateSGD(**{"loss": "squared", "steps": 9, "noise_multiplier": 5.0, **wrong}).learn(
                X, y, budget=budget
            )
        assert not any(budget.spent)


def test_a_run_that_needs_no_epsilon_states_hardly_any():
    """(0, 1e-6)-DP already: 9 draws that change with probability 1e-6, each hardly noticed."""
    learner = PrivateSGD(loss="hinge", steps=9, noise_multiplier=50.0)
    rate = 1e-6
    assert accounting.delta(learner.composition(rate, sampling="poisson"), 0.0) < 1e-6
    X = np.ones((10**6, 1), np.float32)
    model = learner.learn(X, np.ones(10**6, np.uint8), budget=Budget(0.1, 1e-6))
    assert 0 < model.record.epsilon < 1e-6


@each_case(
    ("wrong", "text"),
    [
        ({"loss": "cubic"}, "loss = 'cubic'"),
        ({"steps": 0}, "steps = 0"),
        ({"batch_size": 1 << 33}, "batch_size = "),
        ({"radius": math.inf}, "radius = inf"),
        ({"norm_bound": 0}, "norm_bound = 0"),
        ({"clip_norm": -1}, "clip_norm = -1"),
        ({"noise_multiplier": 0}, "noise_multiplier = 0"),
        ({"numerics": "float"}, "numerics = 'float'"),
        ({"label_bound": 2.0}, "label_bound = 2.0"),
        ({"threshold": 0}, "threshold = 0"),
        ({"radius": 1e31}, "radius = 1e"),
        ({"norm_bound": 1e-31}, "norm_bound = 1e-31"),
        ({"clip_norm": 1e-200}, "clip_norm = 1e-200"),
        ({"clip_norm": 0}, "clip_norm = 0"),
        ({"noise_multiplier": 1e-200}, "noise_multiplier = 1e-200"),
        ({"noise_multiplier": 2.0**29}, "noise_multiplier = 536870912.0"),
        ({"loss": "hinge", "margin": -1}, "margin = -1"),
        ({"steps": None}, "steps = None"),
        (
            {"loss": "squared", "radius": 1e20, "norm_bound": 1e20, "epsilon": math.inf}
            | {"noise_multiplier": None},
            "clip_norm = 1e",
        ),
        ({"loss": "huber", "label_bound": 1e-31}, "label_bound = 1e-31"),
        ({"l2": 1e300}, "l2 = 1e"),
        ({"strong_convexity": 1e-300}, "strong_convexity = 1e-300"),
        ({"l1": -1}, "l1 = -1"),
        ({"strong_convexity": math.nan}, "strong_convexity = nan"),
        ({"delta": 0}, "delta = 0"),
    ],
)
def test_bad_settings_are_refused(wrong, text):
    with pytest.raises(ParameterError, match=text):
        PrivateSGD(**{"loss": "hinge", "steps": 5, "noise_multiplier": 1.0, **wrong})


def test_bad_calls_are_refused():
    X, y = records(10, 2)
    learner = PrivateSGD(loss="hinge", steps=5, epsilon=math.inf)
    with pytest.raises(ShapeError, match="y has length 9"):
        learner.learn(X, y[:9])
    with pytest.raises(ShapeError, match="indices has length 4"):
        learner.learn_indices(X, y, np.arange(4))
    with pytest.raises(ParameterError, match="from 0 to n - 1"):
        learner.learn_indices(X, y, np.arange(5) - 1)
    with pytest.raises(ShapeError, match="weights are of 9 records"):
        learner.learn_weighted(X, y, DenseWeights(9, 0.5, 0.1))
    with pytest.raises(ParameterError, match="must be DenseWeights"):
        learner.learn_weighted(X, y, np.ones(10))
    with pytest.raises(ShapeError, match="the model has 2 weights"):
        learner.learn(X, y).predict(np.ones((3, 5)))
    with pytest.raises(ParameterError, match=r"epsilon = 0\.001, but for 2 records no noise"):
        learner.calibrate(epsilon=0.001, n=2, kappa=0.5, rounds=10**6)


@pytest.mark.parametrize("both", [{}, {"epsilon": 1.0, "noise_multiplier": 2.0}])
def test_privacy_is_asked_for_by_epsilon_or_by_noise(both):
    """Neither would leave everybody unprotected in silence, and both may contradict."""
    with pytest.raises(ParameterError, match=r"epsilon = .* and noise_multiplier = .*math\.inf"):
        PrivateSGD(loss="hinge", steps=5, **both)


@pytest.mark.parametrize("wrong", [0, -1.0, -math.inf, math.nan, "1"])
def test_an_epsilon_is_a_number_above_0(wrong):
    with pytest.raises(ParameterError, match="epsilon = "):
        PrivateSGD(loss="hinge", steps=5, epsilon=wrong)


def test_an_epsilon_is_kept_for_the_records_that_are_there():
    """The noise is what calibrate finds for as many records, and the record says what it costs."""
    learner = PrivateSGD(loss="hinge", steps=20, batch_size=20, epsilon=1.0, numerics="idealized")
    for n in (300, 2_000):
        X, y = records(n, 3)
        budget = Budget(1.0, 1e-6)
        model = learner.learn(X, y, random_state=1, budget=budget)
        assert 0.99 < model.record.epsilon == budget.spent.epsilon <= 1
        same = learner.calibrate(epsilon=1.0, n=n).learn(X, y, random_state=1)
        assert (model.weights == same.weights).all()
        assert model.record == same.record


def test_only_learn_finds_the_noise_of_an_epsilon():
    X, y = records(50, 2)
    learner = PrivateSGD(loss="hinge", steps=5, epsilon=1.0)
    for call in (
        lambda: learner.step,
        lambda: learner.epsilon_for(n=50),
        lambda: learner.learn_indices(X, y, np.arange(5)),
        lambda: learner.learn_weighted(X, y, DenseWeights(50, 0.5, 0.1)),
    ):
        with pytest.raises(ParameterError, match=r"epsilon = 1\.0, but only learn finds the noise"):
            call()


def test_noise_is_looked_for_once(monkeypatch):
    calls, search = [], _core.NoiseSearch
    monkeypatch.setattr(_core, "NoiseSearch", lambda *args: calls.append(1) or search(*args))
    goal = {"epsilon": 0.7654, "n": 321}
    found = [
        PrivateSGD(loss=loss, steps=5, batch_size=2, noise_multiplier=1.0, l2=l2).calibrate(**goal)
        for loss, l2 in (("logistic", 0.0), ("logistic", 0.1), ("hinge", 0.0))
    ]
    assert len({learner.noise_multiplier for learner in found}) == len(calls) == 1
    other = found[0].calibrate(**goal | {"n": 320})
    assert len(calls) == 2
    assert other.noise_multiplier > found[0].noise_multiplier
    assert (other.calibrated_for, found[0].calibrated_for) == (320, 321)


def test_noise_found_for_a_drawn_number_of_draws_is_refused_with_a_fixed_one():
    """The same noise would have an epsilon of 8.83 where 0.1 was asked."""
    X, y = np.zeros((1_000, 2)), np.zeros(1_000, int)
    open_learner = PrivateSGD(loss="logistic", steps=5, batch_size=10, epsilon=1.0)
    drawn = open_learner.calibrate(epsilon=1.0, n=1_000)
    fixed = open_learner.calibrate(epsilon=1.0, n=1_000, kappa=1)
    assert (drawn.calibrated_sampling, fixed.calibrated_sampling) == ("poisson", "fixed")
    assert drawn.noise_multiplier < fixed.noise_multiplier
    indices, weights = np.arange(50), DenseWeights(1_000, 0.5, 0.1)
    for call in (
        lambda learner: learner.learn_indices(X, y, indices),
        lambda learner: learner.learn_weighted(X, y, weights),
    ):
        with pytest.raises(ParameterError, match="calibrated_sampling = 'poisson'"):
            call(drawn)
        call(fixed)
    drawn.learn(X, y)


def test_fewer_records_than_the_noise_was_calibrated_for_are_refused():
    """The privacy of 50 records would be far from that of the 200 that were promised it."""
    X, y = records(200, 2)
    learner = PrivateSGD(loss="hinge", steps=5, epsilon=math.inf, numerics="idealized")
    learner = learner.calibrate(epsilon=1.0, delta=1e-3, n=200)
    assert learner.calibrated_for == 200
    learner.learn(X, y)
    X, y, budget = X[:50], y[:50], Budget(100.0, 0.1)
    fixed = learner.calibrate(epsilon=1.0, delta=1e-3, n=200, kappa=1)
    for call in (
        lambda: learner.learn(X, y, budget=budget),
        lambda: fixed.learn_weighted(X, y, DenseWeights(50, 0.5, 0.1)),
        lambda: dataclasses.replace(fixed, radius=2.0).learn_indices(X, y, np.arange(5)),
    ):
        with pytest.raises(InsufficientSamples, match=r"50 records, but .* calibrated for 200"):
            call()
    assert not any(budget.spent)
    dataclasses.replace(learner, calibrated_for=None).learn(X, y)


def test_a_delta_above_one_record_is_said_to_be_one():
    X, y = records(50, 2)
    learner = PrivateSGD(loss="hinge", steps=5, noise_multiplier=9.0, delta=0.03)
    with pytest.warns(UtilityWarning, match=r"delta = 0\.03 is above 1 / n = 0\.02"):
        learner.learn(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        dataclasses.replace(learner, delta=0.02, batch_size=20).learn(X, y)
        PrivateSGD(loss="hinge", steps=5, epsilon=math.inf, delta=0.03).learn(X, y)
