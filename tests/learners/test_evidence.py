"""learners.evidence, a private module: coefficients from noisy moments, and central moments."""

import math

import numpy as np
import pytest

from hdp_fast.learners.evidence import (
    center_moments,
    join_cross_moments,
    shrink_by_evidence,
)

RNG = np.random.default_rng
POWERS, SCALES = (-0.5, 0.0, 0.5, 1.0, 2.0), np.exp(np.arange(-7.0, 3.1, 0.35))


def draw_rows(seed, n=400, d=3, noise=0.1):
    random = RNG(seed)
    rows = random.normal(size=(n, d)) @ random.normal(size=(d, d))
    return rows, rows @ random.normal(size=d) * 0.1 + noise * random.normal(size=n)


def shrink(moments, cross, **changed):
    settings = {"moments_deviation": 0.02, "cross_deviation": 0.03, "n": 500, "variance": 0.1}
    return shrink_by_evidence(np.asarray(moments), np.asarray(cross), **settings | changed)


def density(x, variance):
    return np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def integrate(moment, cross, prior, noise):
    """Of one coefficient: the probability of what is seen, its mean, and its mean square."""
    reach = 12 * math.sqrt(prior)
    grid, step = np.linspace(-reach, reach, 20_001, retstep=True)
    joint = density(grid, prior) * density(cross - moment * grid, noise) * step
    seen = joint.sum()
    return seen, (grid * joint).sum() / seen, (grid**2 * joint).sum() / seen


def shrink_by_integrals(moments, cross, *, moments_deviation, cross_deviation, n, variance):
    """The same for moments that are a diagonal, by integrals over each prior."""
    d = len(cross)
    floor = moments_deviation * math.sqrt(2 * d) / 2
    sampling = [variance * moment / n for moment in moments]
    chance = math.prod(
        density(x, cross_deviation**2 + s) for x, s in zip(cross, sampling, strict=True)
    )
    chances, means, squares = [chance * len(SCALES) / 4], [np.zeros(d)], [np.zeros(d)]
    for power in POWERS:
        shape = np.array([(moment + floor) ** power for moment in moments])
        shape /= shape @ np.array(moments)
        for scale in SCALES:
            prior = scale**2 * variance * shape
            noises = [
                cross_deviation**2 + s + moments_deviation**2 / 2 * (prior.sum() + one)
                for s, one in zip(sampling, prior, strict=True)
            ]
            parts = [integrate(*part) for part in zip(moments, cross, prior, noises, strict=True)]
            chances.append(math.prod(part[0] for part in parts))
            means.append(np.array([part[1] for part in parts]))
            squares.append(np.array([part[2] for part in parts]))
    weights = np.array(chances) / sum(chances)
    mean = weights @ np.array(means)
    return mean, weights @ np.array(squares) - mean**2


@pytest.mark.parametrize(
    ("moments", "cross"),
    [([0.7], [0.2]), ([0.7], [0.01]), ([1.3, 0.05], [0.15, -0.04]), ([0.4, 0.3], [0.0, 0.1])],
)
def test_shrink_by_evidence_is_the_mean_over_priors_that_integrals_find(moments, cross):
    settings = {"moments_deviation": 0.02, "cross_deviation": 0.03, "n": 500, "variance": 0.1}
    made = shrink(np.diag(moments), cross, **settings)
    mean, spread = shrink_by_integrals(moments, cross, **settings)
    np.testing.assert_allclose(made.coefficients, mean, rtol=1e-4, atol=1e-7)
    assert made.explained == pytest.approx(float(moments @ mean**2), rel=1e-3)
    assert made.left == pytest.approx(float(moments @ spread), rel=1e-3)


def test_shrink_by_evidence_turns_with_the_columns():
    moments, cross = np.diag([1.0, 0.3, 0.1]), np.array([0.2, -0.1, 0.05])
    turn = np.linalg.qr(RNG(0).normal(size=(3, 3)))[0]
    plain, turned = shrink(moments, cross), shrink(turn @ moments @ turn.T, turn @ cross)
    np.testing.assert_allclose(turned.coefficients, turn @ plain.coefficients, atol=1e-9)
    assert turned.left == pytest.approx(plain.left)


def test_shrink_by_evidence_without_noise_is_least_squares():
    rows, targets = draw_rows(1)
    moments, cross = rows.T @ rows / len(rows), rows.T @ targets / len(rows)
    made = shrink(moments, cross, moments_deviation=0.0, cross_deviation=0.0, n=10**9)
    expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
    np.testing.assert_allclose(made.coefficients, expected, rtol=1e-3, atol=1e-5)
    # A column that is the sum of others leaves the predictions as they are.
    more = np.column_stack([rows, rows.sum(axis=1)])
    moments, cross = more.T @ more / len(more), more.T @ targets / len(more)
    made = shrink(moments, cross, moments_deviation=0.0, cross_deviation=0.0, n=10**9)
    np.testing.assert_allclose(more @ made.coefficients, rows @ expected, rtol=1e-2, atol=1e-4)


def test_shrink_by_evidence_finds_nothing_in_noise_and_all_in_signal():
    moments, chance = np.eye(10), 0.03 * RNG(2).normal(size=10)
    nothing = shrink(moments, chance)
    assert nothing.explained < nothing.left
    assert np.linalg.norm(nothing.coefficients) < 0.3 * np.linalg.norm(chance)
    clear = shrink(moments, 0.3 + chance)
    assert clear.explained > 10 * clear.left
    np.testing.assert_allclose(clear.coefficients, 0.3 + chance, atol=0.03)


@pytest.mark.parametrize("moments", [np.zeros((2, 2)), -np.eye(2), np.diag([1e9, 1.0])])
@pytest.mark.parametrize("cross", [np.zeros(2), np.array([1e6, -1e6])])
def test_shrink_by_evidence_is_finite_whatever_was_released(moments, cross):
    for deviation in (0.0, 1e-9, 1e6):
        made = shrink(moments, cross, moments_deviation=deviation, cross_deviation=deviation)
        assert np.isfinite(made.coefficients).all()
        assert 0 <= made.left < math.inf


def test_join_cross_moments_takes_what_has_less_noise():
    rows, targets = draw_rows(4)
    moments, cross = rows.T @ rows / len(rows), rows.T @ targets / len(rows)
    first = shrink(moments, cross)
    residual = cross - moments @ first.coefficients
    settings = {"moments_deviation": 0.01, "cross_deviation": 0.02, "residual_deviation": 0.02}
    joined, share = join_cross_moments(moments, cross, residual, first, **settings)
    np.testing.assert_allclose(joined, cross, atol=1e-12)
    assert 0 < share < 1
    wrong = np.ones_like(cross)
    only_cross = settings | {"residual_deviation": 1e9}
    made = join_cross_moments(moments, cross, residual + wrong, first, **only_cross)
    np.testing.assert_allclose(made.cross, cross, atol=1e-9)
    only_residual = settings | {"cross_deviation": 1e9}
    made = join_cross_moments(moments, cross + wrong, residual, first, **only_residual)
    np.testing.assert_allclose(made.cross, cross, atol=1e-9)


def test_center_moments_is_what_centered_rows_have():
    rows, targets = draw_rows(3)
    rows += [1.0, -2.0, 0.5]
    constant = 1.5
    more = np.column_stack([rows, np.full(len(rows), constant)])
    moments, cross = more.T @ more / len(rows), more.T @ targets / len(rows)
    made = center_moments(moments, cross, constant)
    np.testing.assert_allclose(made.mean, rows.mean(axis=0))
    np.testing.assert_allclose(made.moments, np.cov(rows.T, bias=True), atol=1e-12)
    centered = rows - rows.mean(axis=0)
    np.testing.assert_allclose(made.cross, centered.T @ targets / len(rows), atol=1e-12)


def test_center_moments_of_a_constant_that_noise_hides_are_finite():
    moments = np.array([[1.0, 0.5], [0.5, -3.0]])
    made = center_moments(moments, np.array([0.2, 0.1]), 1.5)
    assert np.isfinite(np.concatenate([made.moments.ravel(), made.cross, made.mean])).all()
