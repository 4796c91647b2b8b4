"""Tests of the private module adaptation.nonconvex_run: compiled and called losses."""

import math

import numpy as np
import pytest
from adaptation_problems import classified, logistic

from hdp_fast.adaptation import NonConvexAdaptation, nonconvex_run
from hdp_fast.adaptation.nonconvex_descent import (
    choose_longest_steps,
)


def test_a_callable_is_the_same_loss_as_the_compiled_one(monkeypatch):
    def alike(settings, terms, states, size):
        return choose_longest_steps(terms, size)

    # The curvature of a callable is unknown: its steps are alike in all directions.
    monkeypatch.setattr(nonconvex_run, "_choose_steps", alike)
    Xs, ys, Xt, yt = classified()
    settings = {"epsilon": math.inf, "alpha": 0.4, "steps": 50, "radius": 3.0, "iterate": "last"}
    settings |= {"discrepancy": 0.2, "lambda_2": 0.1}
    ours = NonConvexAdaptation(**settings).fit(Xs, ys, Xt, yt)
    largest = float(np.logaddexp(0, 3.0))
    other = NonConvexAdaptation(
        **settings, loss=logistic, start=np.zeros(3), loss_bounds=(largest, 1, 0.25)
    ).fit(Xs, 2 * ys - 1, Xt, 2 * yt - 1)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-9)
    assert ours.gradient_mapping_ == pytest.approx(other.gradient_mapping_, rel=1e-6)
    assert (ours.predict(Xt) == yt).mean() > 0.85
