"""Tests of the private module adaptation.baselines.reweighting: other solvers, closed forms."""

import itertools

import numpy as np
import pytest
from adaptation_problems import minimize_constrained, shifted

from hdp_fast.adaptation.baselines.reweighting import (
    kernel_width,
    match_kernel_means,
    minimize_discrepancy,
)

MATCH = {"width": 1.0, "bound": 3.0, "slack": 0.2, "steps": 20_000, "tolerance": 1e-7}


def gaussian(rows, others):
    return np.exp(-((rows[:, None] - others[None]) ** 2).sum(axis=2) / 2)


def mean_distance(q, source, target):
    """Half the squared distance of kernel means, from kernels alone."""
    cross = gaussian(source, target).mean(axis=1)
    within = q @ gaussian(source, source) @ q
    return (within - 2 * q @ cross + gaussian(target, target).mean()) / 2


def test_kernel_means_match_as_well_as_a_quadratic_program_can():
    source, _, target, _ = shifted(12, 9, 2)
    kernel, cross = gaussian(source, source), gaussian(source, target).mean(axis=1)

    def function(q):
        return mean_distance(q, source, target), kernel @ q - cross

    best = minimize_constrained(function, np.full(12, 1 / 12), cap=3 / 12, low=0.8, high=1.2)
    found = match_kernel_means(source, target, landmarks=12, **MATCH)
    assert found.weights.max() <= 3 / 12
    assert 0.8 - 1e-9 <= found.weights.sum() <= 1.2 + 1e-9
    value = mean_distance(found.weights, source, target)
    assert best - 1e-9 <= value <= best + found.gap + 1e-9
    assert found.gap <= 1e-7


def test_a_few_landmarks_match_nearly_as_well():
    source, _, target, _ = shifted(200, 100, 2)
    options = {**MATCH, "width": 3.0}
    exact, few = (
        match_kernel_means(source, target, landmarks=landmarks, **options).weights
        for landmarks in (200, 60)
    )
    equal = mean_distance(np.full(200, 1 / 200), source, target)
    assert mean_distance(few, source, target) < equal / 4
    assert abs(mean_distance(few, source, target) - mean_distance(exact, source, target)) < 1e-3


def test_the_width_is_the_median_distance_of_public_records():
    source = shifted()[0]
    pairs = [np.linalg.norm(a - b) for a, b in itertools.combinations(source, 2)]
    assert kernel_width(source) == pytest.approx(np.median(pairs))
    assert kernel_width(np.ones((5, 2))) == 1.0


def spectral(q, source, target):
    moments = (source.T * q) @ source - target.T @ target / len(target)
    return np.linalg.norm(moments, 2)


def test_discrepancies_in_one_dimension_have_a_closed_form():
    source = np.array([[1.0], [2.0], [3.0]])
    for target, least in (([[2.0]], 0.0), ([[5.0]], 16.0), ([[0.5]], 0.75)):
        found = minimize_discrepancy(source, np.array(target), steps=2000, tolerance=1e-4)
        assert found.value - found.gap - 1e-9 <= least <= found.value + 1e-9
        assert found.gap <= 1e-4 * spectral(np.full(3, 1 / 3), source, np.array(target))


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("seed", range(3))
def test_no_weights_on_a_grid_have_a_smaller_discrepancy(seed):
    coins = np.random.default_rng(seed)
    source, target = coins.standard_normal((3, 2)), coins.standard_normal((6, 2))
    found = minimize_discrepancy(source, target, steps=3000, tolerance=1e-3)
    assert found.value == pytest.approx(spectral(found.weights, source, target), rel=1e-9)
    shares = np.arange(201) / 200
    grid = min(
        spectral(np.array([a, b, 1 - a - b]), source, target)
        for a, b in itertools.product(shares, shares)
        if a + b <= 1
    )
    assert found.value <= grid + found.gap + 1e-9
    assert found.value - found.gap <= grid
    assert found.gap <= 1e-3 * spectral(np.full(3, 1 / 3), source, target) + 1e-9


def test_equal_domains_need_no_discrepancy_minimized():
    source = shifted()[0]
    found = minimize_discrepancy(source, source, steps=10, tolerance=0.01)
    assert found.value == pytest.approx(0, abs=1e-12)
