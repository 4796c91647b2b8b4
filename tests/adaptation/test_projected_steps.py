"""Tests of the private module adaptation.convex_descent: projections beside a solver."""

import numpy as np
import pytest
from scipy import optimize

from hdp_fast.adaptation.convex_descent import project_in_metric


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_point_of_the_ball_is_that_of_a_solver(seed):
    rng = np.random.default_rng(seed)
    w, metric, radius = rng.normal(size=4), np.exp(3 * rng.normal(size=4)), 0.7
    found = project_in_metric(w, metric, radius)
    best = optimize.minimize(
        lambda v: metric @ (v - w) ** 2, np.zeros(4), jac=lambda v: 2 * metric * (v - w),
        method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v},
    )  # fmt: skip
    assert np.linalg.norm(found) == pytest.approx(min(radius, np.linalg.norm(w)))
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    np.testing.assert_array_equal(project_in_metric(w, metric, 100.0), w)
