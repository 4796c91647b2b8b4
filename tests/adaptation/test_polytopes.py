"""Tests of the private module adaptation.baselines.reweighting: projection and descent."""

import numpy as np
import pytest
from adaptation_problems import minimize_constrained
from scipy import optimize

from hdp_fast.adaptation.baselines.reweighting import Polytope, minimize_on_polytope


def lowest(polytope, costs):
    """The least inner product, by a linear program."""
    ones = np.ones((1, len(costs)))
    found = optimize.linprog(
        costs,
        A_ub=np.vstack([ones, -ones]),
        b_ub=[polytope.high, -polytope.low],
        bounds=(0, polytope.cap),
    )
    return found.fun


POLYTOPES = [
    Polytope(1.0, 1.0, 1.0),
    Polytope(0.25, 0.5, 0.9),
    Polytope(2.0, 0.0, 1.0),
    Polytope(0.2, 1.0, 1.0),
    Polytope(1.0, 3.5, 4.5),
]


@pytest.mark.parametrize("polytope", POLYTOPES, ids=str)
def test_projections_satisfy_the_variational_inequality(polytope):
    rng = np.random.default_rng(8)
    for scale in (0.01, 1.0, 10.0):
        point = scale * rng.standard_normal(5)
        found = polytope.project(point)
        assert (found >= 0).all()
        assert (found <= polytope.cap).all()
        assert polytope.low - 1e-9 <= found.sum() <= polytope.high + 1e-9
        # No point of the polytope lies further in the direction of what was cut off.
        away = point - found
        assert -lowest(polytope, -away) <= away @ found + 1e-8 * scale


@pytest.mark.parametrize("polytope", POLYTOPES, ids=str)
def test_least_inner_products_are_those_of_a_linear_program(polytope):
    rng = np.random.default_rng(8)
    for offset in (-1.0, 0.0, 1.0):
        costs = rng.standard_normal(5) + offset
        assert polytope.minimum(costs) == pytest.approx(lowest(polytope, costs), abs=1e-9)


def test_ties_are_projected_alike():
    found = Polytope(1.0, 1.0, 1.0).project(np.full(4, 7.0))
    np.testing.assert_allclose(found, 0.25)


def test_descent_ends_within_the_gap_that_it_states():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((8, 5))
    gram, line = matrix.T @ matrix, rng.standard_normal(5)

    def function(q):
        return float(q @ gram @ q / 2 + line @ q), gram @ q + line

    simplex, start = Polytope(1.0, 1.0, 1.0), np.full(5, 0.2)
    best = minimize_constrained(function, start, cap=1.0, low=1.0, high=1.0)
    for steps in (1, 5, 5000):
        found = minimize_on_polytope(function, simplex, start, steps=steps, gap=1e-10)
        assert found.value == function(found.weights)[0]
        assert found.value - found.gap <= best + 1e-9
    assert found.gap <= 1e-10
    np.testing.assert_allclose(found.value, best, atol=1e-7)
