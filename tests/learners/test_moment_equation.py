"""The moment equation beside scipy's optimum, and what noise does to it; a private module's
test."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from hdp_fast.learners import moment_equation
from hdp_fast.learners.moment_equation import (
    LinearMoments,
    LogisticMoments,
    choose_penalty,
    choose_ridge,
    linear_covariances,
    logistic_covariances,
)


def problem(d=6, classes=3, m=400, seed=0, noise=0.01):
    """Features of norm at most 1, and moments that no labels of theirs have exactly."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(m, d))
    pool /= np.maximum(np.linalg.norm(pool, axis=1, keepdims=True), 1)
    weights = 4 * rng.normal(size=(d, classes))
    scores = pool @ weights
    chances = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    moments = pool.T @ chances / m
    disturbance = noise * rng.normal(size=moments.shape)
    return LogisticMoments(pool, moments + disturbance - disturbance.mean(axis=1, keepdims=True))


def objective(equation, penalty):
    def value(flat):
        W = flat.reshape(equation.moments.shape)
        mean = logsumexp(equation.pool @ W, axis=1).mean()
        return mean - (W * equation.moments).sum() + penalty * (W**2).sum() / 2

    return value


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("d", "classes"), [(1, 2), (6, 3), (12, 7)])
def test_the_solution_is_the_minimum(d, classes, penalty):
    equation = problem(d, classes)
    solution = equation.solve(penalty)
    value = objective(equation, penalty)
    best = minimize(
        value, np.zeros(d * classes), method="L-BFGS-B", options={"maxiter": 5_000, "ftol": 1e-15}
    )
    assert value(solution.weights.ravel()) <= best.fun + 1e-9
    assert solution.error <= 1e-6
    assert np.abs(solution.weights.sum(axis=1)).max() < 1e-6


def test_the_certified_error_holds():
    equation = problem()
    exact = equation.solve(1e-2, tolerance=1e-12).weights
    for tolerance in (0.5, 1e-1, 1e-3):
        rough = equation.solve(1e-2, tolerance=tolerance)
        off = np.linalg.norm(rough.weights - exact) / np.linalg.norm(rough.weights)
        assert off <= rough.error * (1 + 1e-6)
        assert rough.error <= tolerance


def test_a_start_changes_nothing_but_the_way():
    equation = problem()
    exact = equation.solve(1e-2).weights
    again = equation.solve(1e-2, start=equation.solve(1.0).weights).weights
    assert np.allclose(exact, again, atol=1e-6)


def test_least_squares_solves_the_normal_equation_with_its_positive_part():
    rng = np.random.default_rng(1)
    second = rng.normal(size=(5, 5))
    second = second + second.T
    moments = rng.normal(size=(5, 2))
    values, vectors = np.linalg.eigh(second)
    assert values.min() < 0
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    expected = np.linalg.solve(positive + 0.1 * np.eye(5), moments)
    assert np.allclose(LinearMoments(second, moments).solve(0.1).weights, expected)


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 0.05])
def test_the_penalty_leaves_as_much_unexplained_as_the_noise_makes(noise):
    equation = problem(noise=noise)
    expected = noise * math.sqrt(equation.moments.size)
    penalty, _ = choose_penalty(equation, expected, 1.0)
    weights = equation.solve(penalty).weights
    left = np.linalg.norm(
        equation.pool.T @ equation.probabilities(weights) / 400 - equation.moments
    )
    assert left == pytest.approx(penalty * np.linalg.norm(weights), rel=1e-6)
    assert left == pytest.approx(expected, rel=0.05)


def test_noise_alone_gets_the_largest_penalty():
    equation = problem()
    penalty, _ = choose_penalty(equation, 10.0, 0.5)
    assert 0.4 < penalty <= 0.5


def test_the_ridge_is_small_for_strong_signals_and_large_for_noise():
    values = np.linspace(0.01, 0.2, 20)
    strong = choose_ridge(values, values**2, 1e-5, 1e6)
    weak = choose_ridge(values, np.full(20, 1e-2) ** 2, 1e-2, 1e6)
    assert strong < 1e-4 < 1e-2 < weak


# What noise does to the solution --------------------------------------------------------------


def simulate(solve, noises):
    solutions = np.stack([solve(noise) for noise in noises])
    centered = solutions - solutions.mean(axis=0)
    return np.einsum("rdk,rek->kde", centered, centered) / len(noises)


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("exact", [True, False])
def test_the_covariance_is_that_of_many_noisy_solutions(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(moment_equation, "MOST_EXACT", 0)
    equation, penalty, deviation = problem(4, 3, m=100, noise=0.0), 0.02, 1e-4
    weights = equation.solve(penalty).weights
    rng = np.random.default_rng(2)
    drift = 1e-4 * np.ones((4, 1)) * np.array([1.0, -1.0, 0.0])

    def solve(noise):
        moved = noise - noise.mean(axis=1, keepdims=True) + drift * rng.normal()
        moved = LogisticMoments(equation.pool, equation.moments + moved)
        return moved.solve(penalty, start=weights).weights

    noises = deviation * rng.normal(size=(400, 4, 3))
    expected = simulate(solve, noises)
    covariances = logistic_covariances(equation, weights, penalty, deviation, drift)
    assert covariances.shape == (3, 4, 4)
    traces = np.trace(covariances, axis1=1, axis2=2), np.trace(expected, axis1=1, axis2=2)
    assert np.allclose(*traces, rtol=0.2 if exact else 0.5)
    if exact:
        scale = np.abs(expected).max()
        assert np.abs(covariances - expected).max() < 0.2 * scale


def test_the_kronecker_product_is_the_hessian_where_all_classes_are_alike(monkeypatch):
    equation = LogisticMoments(problem().pool, np.zeros((6, 3)))
    arguments = equation, np.zeros((6, 3)), 0.01, 1e-3, np.ones((6, 3)) * [1.0, -1.0, 0.0]
    exact = logistic_covariances(*arguments)
    monkeypatch.setattr(moment_equation, "MOST_EXACT", 0)
    assert np.allclose(exact, logistic_covariances(*arguments), rtol=1e-9)


def test_the_covariance_of_least_squares_counts_both_kinds_of_noise():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(100, 4)) / 3
    equation = LinearMoments(rows.T @ rows / 100, rng.normal(size=(4, 2)) / 10)
    weights, deviation, second = equation.solve(0.05).weights, 1e-4, 2e-4

    def solve(noise):
        upper = np.triu(rng.normal(size=(4, 4)), 1) / math.sqrt(2)
        symmetric = second * (upper + upper.T + np.diag(rng.normal(size=4)))
        moved = LinearMoments(equation.second + symmetric, equation.moments + noise)
        return moved.solve(0.05).weights

    expected = simulate(solve, deviation * rng.normal(size=(4_000, 4, 2)))
    covariances = linear_covariances(equation, weights, 0.05, deviation, second)
    assert np.abs(covariances - expected).max() < 0.12 * np.abs(expected).max()


def test_784_columns_and_ten_classes_take_seconds():
    rng = np.random.default_rng(4)
    pool = rng.normal(size=(500, 784)) / 28
    moments = rng.normal(size=(784, 10)) * 1e-3
    moments -= moments.mean(axis=1, keepdims=True)
    equation = LogisticMoments(pool, moments + pool.mean(axis=0)[:, None] / 10)
    solution = equation.solve(1e-3)
    assert solution.error <= 1e-6
