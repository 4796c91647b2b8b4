"""Tests of the private modules adaptation.discrepancies.private and exact: grid and ball."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast.adaptation import discrepancy, release_discrepancy
from hdp_fast.adaptation.discrepancies.exact import solve, validate_problem
from hdp_fast.adaptation.discrepancies.private import _choose_grid, _round_to_grid


def sample(rng, n, d, shift=0.0):
    """Rows of norm at most 1 and labels in [-1, 1] that partly follow them."""
    X = rng.normal(size=(n, d)) + shift
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)


def problem(seed, m=40, n=30, d=2):
    rng = np.random.default_rng(seed)
    return *sample(rng, m, d), *sample(rng, n, d, 0.3)


def disc(radius, center=(0.0, 0.0), angles=4000, rings=60):
    """Points of a disc, its edge in particular."""
    turns = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    edge = radius * np.column_stack([np.cos(turns), np.sin(turns)])
    inner = [edge[::20] * r for r in np.linspace(0, 1, rings)]
    return np.concatenate([edge, *inner]) + np.array(center)


def released(data, **options):
    return release_discrepancy(*data, **({"radius": 2, "norm_bound": 1} | options))


# Release ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("private", ["target", "source"])
@pytest.mark.parametrize(("around", "local"), [(None, None), ([0.5, 0.5], 0.5), ([1.5, 0], 2.5)])
def test_one_record_moves_the_value_by_at_most_the_sensitivity(private, around, local):
    rng = np.random.default_rng(11)
    largest = 0.0
    for seed in range(60):
        Xs, ys, Xt, yt = data = problem(seed, 5, 6)
        X, y = (Xt.copy(), yt.copy()) if private == "target" else (Xs.copy(), ys.copy())
        X[2], y[2] = rng.normal(size=2) * 10 ** rng.uniform(-1, 2), rng.choice([-9, -1, 0, 1])
        other = (Xs, ys, X, y) if private == "target" else (X, y, Xt, yt)
        pair = [validate_problem(each, 2.0, 1.0, private, around, local) for each in (data, other)]
        grid = _choose_grid(pair[0], private)
        values = [solve(each) for each in pair]
        moved = abs(values[0].value - values[1].value)
        radius = Fraction(pair[0].ball.outer_radius)
        assert moved <= float((radius + 1) ** 2 / len(y)) + values[0].gap + values[1].gap
        steps = [_round_to_grid(each.value, grid) for each in values]
        assert abs(steps[0] - steps[1]) <= 1024
        largest = max(largest, abs(steps[0] - steps[1]))
    assert largest > 100


def test_the_sensitivity_is_attained():
    """At w = 1 the source has no loss, and target records have the largest or none."""
    Xs, ys = np.ones((3, 1)), np.ones(3)
    values = []
    for k in (3, 4):
        yt = np.array([-1.0] * k + [1.0] * (6 - k))
        data = Xs, ys, np.ones((6, 1)), yt
        values.append(discrepancy(*data, radius=1, norm_bound=1).value)
    assert values[1] - values[0] == pytest.approx(4 / 6)
    grid = _choose_grid(validate_problem(data, 1.0, 1.0, "target", None, None), "target")
    assert _round_to_grid(values[1], grid) - _round_to_grid(values[0], grid) in (1023, 1024)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (50, 2), (5000, 8), (300, 64)])
def test_the_public_gap_covers_the_certified_one(n, d):
    rng = np.random.default_rng(0)
    corner = np.eye(d)[rng.integers(d, size=n)], np.sign(rng.normal(size=n))
    along = np.tile(np.ones(d) / math.sqrt(d), (n, 1)), np.ones(n)
    kinds = [sample(rng, n, d), sample(rng, n, d, 1.0), corner, along]
    for source, target in itertools.product(kinds, repeat=2):
        for radius in (0.01, 50.0):
            some = validate_problem((*source, *target), radius, 1.0, "target", None, None)
            grid = _choose_grid(some, "target")
            xi = (grid.step * 1024 - grid.loss_bound / n) / 2
            assert solve(some).gap <= xi
            assert xi <= 1e-8 * grid.loss_bound


@pytest.mark.parametrize(("noise", "steps"), [({"epsilon": 1e6}, 0), ({"mu": 1e6}, 0)])
def test_with_hardly_any_noise_the_value_is_the_discrepancy(noise, steps):
    data = problem(3)
    grid = _choose_grid(validate_problem(data, 2.0, 1.0, "target", None, None), "target")
    off = abs(released(data, **noise).value - discrepancy(*data, radius=2).value)
    assert off <= float(grid.step) * (steps + 0.5) + 1e-12


@pytest.mark.parametrize("local", [0.3, 1.0, 1.9, 2.5, 5.0])
def test_the_ball_around_an_intersection_holds_it(local):
    data, center = problem(0), np.array([1.2, 1.3])
    points = disc(2.0)
    inside = points[np.linalg.norm(points - center, axis=1) <= local]
    ball = validate_problem(data, 2.0, 1.0, "target", center, local).ball
    assert (np.linalg.norm(inside - ball.center, axis=1) <= ball.radius + 1e-12).all()
    assert ball.radius <= min(2.0, local) + 1e-12
