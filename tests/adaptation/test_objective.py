"""Tests of the private module adaptation.problem: exact sums, and the noise of gradients."""

from fractions import Fraction

import numpy as np
import pytest
from adaptation_problems import problem

from hdp_fast.adaptation.discrepancies.moments import Sample
from hdp_fast.adaptation.privacy import DescentNoise, choose_grid
from hdp_fast.adaptation.problem import (
    NoisyGradient,
    ProblemBounds,
    Rounding,
    SampleWeighting,
    as_float_rows,
    evaluate,
    round_to_grid,
)


def test_sums_on_the_grid_are_exact_and_move_by_no_more_than_the_sensitivity():
    rng, bounds = np.random.default_rng(2), ProblemBounds(1.5, 1.0)
    noise, weighting = DescentNoise(0.1, 5.0, True, 1.0), SampleWeighting(0.5 / 50, 0.2, 0.0)
    fine = choose_grid(noise, 50)
    gradient_bound = weighting.gradient_bound(bounds.residual)
    X, y = 3 * rng.normal(size=(50, 4)), 2 * rng.normal(size=50)
    y[0], X[0] = -1, [1, 0, 0, 0]

    def summed(X, y, w):
        rows = round_to_grid(Sample("target", X, y), bounds.record_bounds, fine)
        rounding = Rounding.finest(fine, gradient_bound)
        found = evaluate(rows, w, weighting, rounding).gradient
        shares = np.sqrt(0.2 / np.maximum((rows.X @ (w * rows.unit) - rows.y) ** 2, 0.2))
        slopes = 2 * weighting.cap * shares * (rows.X @ (w * rows.unit) - rows.y)
        # A rounded coefficient may differ by one where both ways of computing it straddle a half.
        coefficients = [round(each) for each in (slopes * rounding.scale).tolist()]
        exact = [sum(c * int(x) for c, x in zip(coefficients, column, strict=True))
                 for column in rows.X.T]  # fmt: skip
        assert np.abs(found - exact).max() <= 2 * fine.rows
        assert (np.square(rows.X).sum(axis=1) <= fine.rows**2).all()
        return found

    w = np.array([0.01, 0.02, 0, 0])
    one = summed(X, y, w)
    y[0] = 1
    other = summed(X, y, w)
    assert (one == np.rint(one)).all()
    assert 0.99 * fine.sensitivity < np.linalg.norm(one - other) <= fine.sensitivity
    assert 50 * fine.rows * fine.coefficients < 2**53


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_noise_has_the_deviation_that_is_stated(numerics):
    noise, weighting = (
        DescentNoise(0.1, 3.0, numerics == "exact", 1.0),
        SampleWeighting(0.1, 0.2, 0.0),
    )
    Xs, ys, _, _ = problem(d=8)
    part = NoisyGradient.from_sample(
        Sample("target", Xs, ys), ProblemBounds(1.0, 1.0).record_bounds, noise
    )
    w, gradient_bound = np.full(8, 0.1), weighting.gradient_bound(2.0)
    plain = evaluate(part.records, w, weighting).gradient
    drawn = np.array(
        [part.evaluate(w, weighting, gradient_bound).gradient - plain for _ in range(300)]
    )
    stated = part.deviation(gradient_bound)
    assert stated == pytest.approx(3 * 2 * gradient_bound, rel=1e-3)
    assert drawn.std() == pytest.approx(stated, rel=0.1)
    assert abs(drawn.mean()) < 0.1 * stated
    if numerics == "exact":
        unit = stated / float(Fraction(3) * part.grid.sensitivity)
        multiples = (drawn + plain) / unit
        np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-2)


def test_float_rows_keep_their_bounds():
    rng = np.random.default_rng(0)
    X, y = 4 * rng.normal(size=(9000, 3)), 3 * rng.normal(size=9000)
    rows = as_float_rows(Sample("target", X, y), ProblemBounds(1.0, 0.7).record_bounds)
    assert np.linalg.norm(rows.X, axis=1).max() <= 0.7
    assert np.abs(rows.y).max() == 1
    inside = np.linalg.norm(X, axis=1) <= 0.69
    np.testing.assert_array_equal(rows.X[inside], X[inside])
