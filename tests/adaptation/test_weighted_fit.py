"""Tests of the private module adaptation.baselines.reweighting: ridge and logistic regression."""

import math

import numpy as np
import pytest
from adaptation_problems import shifted

from hdp_fast.adaptation.baselines.reweighting import fit_weighted


def test_ridge_is_that_of_least_squares_with_more_rows():
    X, y, *_ = shifted()
    weights, l2 = np.random.default_rng(8).random(len(y)), 0.03
    rows = np.vstack([X * np.sqrt(weights)[:, None], math.sqrt(l2) * np.eye(3)])
    wanted = np.linalg.lstsq(rows, np.append(y * np.sqrt(weights), np.zeros(3)), rcond=None)[0]
    found = fit_weighted(X, y, weights, loss="squared", l2=l2)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("l2", [1e-6, 0.1])
def test_logistic_regression_is_that_of_scikit_learn(l2):
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression
    X, y, *_ = shifted()
    weights = np.random.default_rng(8).random(len(y)) / len(y)
    flipped = np.where(np.arange(len(y)) % 7, y, -y)
    judge = model(C=1 / l2, fit_intercept=False, tol=1e-10, max_iter=10_000)
    judge.fit(X, flipped > 0, sample_weight=weights)
    found = fit_weighted(X, np.sign(flipped), weights, loss="logistic", l2=l2)
    np.testing.assert_allclose(found, judge.coef_[0], rtol=1e-3, atol=1e-5)


def test_a_search_ends_at_the_same_model_wherever_it_starts():
    X, y, *_ = shifted()
    labels, weights = np.sign(y + np.random.default_rng(8).standard_normal(60)), np.full(60, 1 / 60)
    first, second = (
        fit_weighted(X, labels, weights, loss="logistic", l2=0.01, start=start)
        for start in (None, np.array([5.0, -5.0, 3.0]))
    )
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_separable_records_still_end():
    X, y, *_ = shifted()
    found = fit_weighted(X, np.sign(X[:, 0]), np.full(len(y), 1 / 60), loss="logistic", l2=1e-9)
    assert np.isfinite(found).all()
    assert ((X @ found > 0) == (X[:, 0] > 0)).all()
