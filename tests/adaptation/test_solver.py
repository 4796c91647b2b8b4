"""Tests of the private module adaptation.convex_descent: the optimum beside other solvers."""

import math

import numpy as np
import pytest
from adaptation_problems import parts, problem
from scipy import optimize
from scipy.optimize import minimize_scalar

from hdp_fast.adaptation import ConvexAdaptation, discrepancy
from hdp_fast.adaptation.convex_descent import evaluate_objective, majorize_minimize_step, minimize
from hdp_fast.adaptation.problem import evaluate

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def value_of(data, w, alpha=0.4, kappa_1=0.05, offset=0.03):
    """The objective by its definition, each weight searched for by itself."""
    Xs, ys, Xt, yt = data
    found = 0.0
    for X, y, cap, more in ((Xs, ys, alpha / len(ys), offset), (Xt, yt, (1 - alpha) / len(yt), 0)):
        for loss in (X @ w - y) ** 2 + more:
            best = minimize_scalar(
                lambda v, loss=loss, cap=cap: cap * (loss / v + kappa_1 * v),
                bounds=(1, 1e3), method="bounded", options={"xatol": 1e-10},
            )  # fmt: skip
            found += min(best.fun, cap * (loss + kappa_1))
    return found


def test_the_eliminated_weights_are_those_of_a_search():
    data, rng = problem(m=12, n=9), np.random.default_rng(0)
    for scale in (0.0, 0.5, 3.0):
        w = scale * rng.normal(size=3)
        assert evaluate_objective(parts(data), w) == pytest.approx(value_of(data, w), rel=1e-7)


def test_gradients_are_finite_differences():
    given, rng = parts(problem()), np.random.default_rng(1)
    for _ in range(5):
        w, step = rng.normal(size=3), 1e-6
        slopes = [
            (evaluate_objective(given, w + step * e) - evaluate_objective(given, w - step * e))
            / (2 * step)
            for e in np.eye(3)
        ]
        found = sum(evaluate(rows, w, weighting).gradient for rows, weighting in given)
        np.testing.assert_allclose(found, slopes, atol=1e-8)


def test_the_objective_is_convex_in_the_predictor():
    given, rng = parts(problem()), np.random.default_rng(2)
    for _ in range(200):
        a, b, t = rng.normal(size=3), rng.normal(size=3), rng.random()
        chord = t * evaluate_objective(given, a) + (1 - t) * evaluate_objective(given, b)
        assert evaluate_objective(given, t * a + (1 - t) * b) <= chord + 1e-12


def joint(data, z, alpha, kappa_1, offset):
    """Problem (6) and its gradient in predictor and v = cap u."""
    Xs, ys, Xt, yt = data
    w, found, slopes, own = z[:3], 0.0, np.zeros(3), []
    start = 3
    for X, y, share, more in ((Xs, ys, alpha, offset), (Xt, yt, 1 - alpha, 0.0)):
        v, cap = z[start : start + len(y)], share / len(y)
        away = X @ w - y
        losses = away**2 + more
        found += cap * float((losses / v + kappa_1 * v).sum())
        slopes += 2 * cap * (away / v) @ X
        own.append(cap * (kappa_1 - losses / v**2))
        start += len(y)
    return found, np.concatenate([slopes, *own])


@pytest.mark.parametrize("radius", [0.3, 5.0])
def test_the_optimum_is_that_of_a_solver_of_the_joint_problem(radius):
    data, setting = problem(3, m=15, n=10), (0.4, 0.05, 0.03)
    start = np.concatenate([np.zeros(3), np.ones(25)])
    best = optimize.minimize(
        lambda z: joint(data, z, *setting), start, jac=True, method="SLSQP",
        bounds=[(None, None)] * 3 + [(1, None)] * 25,
        constraints={"type": "ineq", "fun": lambda z: radius**2 - z[:3] @ z[:3]},
        options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    found = minimize(parts(data, *setting), radius)
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)
    assert evaluate_objective(parts(data, *setting), found) <= best.fun + 1e-8
    np.testing.assert_allclose(found, best.x[:3], atol=1e-4)


def test_iterations_and_gradient_steps_descend():
    given, radius = parts(problem()), 0.8
    w = v = np.full(3, 0.4)
    for _ in range(30):
        next_w = majorize_minimize_step(given, w, radius)
        assert evaluate_objective(given, next_w) <= evaluate_objective(given, w) + 1e-15
        # All weights at their caps add up to 1, and no row is longer than 1.
        moved = v - 0.5 * sum(evaluate(rows, v, weighting).gradient for rows, weighting in given)
        next_v = moved * (radius / max(radius, np.linalg.norm(moved)))
        assert evaluate_objective(given, next_v) <= evaluate_objective(given, v) + 1e-15
        w, v = next_w, next_v


def skewed(n, scales, seed=0):
    """Source and target of which the latter alone has the third column."""
    rng = np.random.default_rng(seed)
    w = np.array([0.5, 1.0, -0.8])
    rows = [rng.normal(size=(k, 3)) * scales for k in (2000, n)]
    rows[0][:, 2] = 0.0
    data = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1) for X in rows]
    labels = [(X @ w + 0.05 * rng.normal(size=len(X))).clip(-1, 1) for X in data]
    return data[0], labels[0] / 2, data[1], labels[1]


@pytest.mark.parametrize("scales", [(0.4, 0.4, 0.4), (0.4, 0.01, 0.4), (0.4, 0.4, 0.01)])
def test_steps_arrive_where_the_source_says_little_of_the_target(scales):
    data = skewed(50_000, np.array(scales))
    given = {"delta": 1e-5, "alpha": 0.3, "radius": 2.0, "kappa_1": 0.1}
    model = ConvexAdaptation(epsilon=50.0, **given).fit(*data, random_state=1)
    best = ConvexAdaptation(epsilon=math.inf, **given).fit(*data)
    weighed = parts(data, 0.3, 0.1, 0.0)
    start = minimize(weighed[:1], 2.0)
    reached, least, before = (
        evaluate_objective(weighed, w) for w in (model.coef_, best.coef_, start)
    )
    assert reached - least < 0.02 * (before - least)


def test_without_noise_fit_is_the_optimum():
    data = problem(1)
    model = ConvexAdaptation(epsilon=math.inf, alpha=0.4, kappa_1=0.05, radius=2.0).fit(*data)
    found = discrepancy(*data, radius=2.0)
    best = minimize(parts(data, 0.4, 0.05, found.value), 2.0)
    assert model.discrepancy_ == pytest.approx(found.value, rel=1e-9)
    assert (model.record_, model.noise_, model.alpha_) == (None, 0.0, 0.4)
    np.testing.assert_allclose(model.coef_, best, atol=1e-7)
