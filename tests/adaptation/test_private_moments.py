"""Tests of the private module adaptation.baselines.private: exact sums and noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hdp_fast
from hdp_fast import _core, accounting
from hdp_fast.adaptation import PrivateDiscrepancyMinimization, privacy
from hdp_fast.adaptation.baselines.private import MomentSums
from hdp_fast.adaptation.domains import open_domain
from hdp_fast.adaptation.privacy import Privacy, calibrate_noise
from hdp_fast.data.goal import Goal
from hdp_fast.exceptions import BudgetExceeded

PRIVATE = {"epsilon": 1.0, "delta": 1e-5}


def shrunk(X, bound=1.0):
    return X * (bound / np.maximum(np.linalg.norm(X, axis=1), bound))[:, None]


def domains(m=60, n=400, d=3):
    coins = np.random.default_rng(m + 10 * n + d)
    source, target = (
        shrunk(coins.standard_normal((k, d)) * np.linspace(low, 0.5, d))
        for k, low in ((m, 0.3), (n, 0.7))
    )
    w = coins.standard_normal(d)
    return source, source @ w, target, target @ w


EXACT = Privacy(Goal(2.0, 1e-5), "exact")
NOISE = calibrate_noise(EXACT, 1, 0.0)


@pytest.fixture
def draws(monkeypatch):
    """Deviations and numbers of all that is drawn, in place of noise."""
    drawn = []

    def none(sigma, size, *, random_state):
        drawn.append((sigma, size))
        return np.zeros(size, np.int64)

    monkeypatch.setattr(privacy, "rounded_gaussian", none)
    return drawn


def add_up(rows, noise=None):
    return MomentSums.of(open_domain("target", rows, None, None), 1.0, noise or NOISE)


def integers(matrix):
    assert (matrix == np.rint(matrix)).all()
    return [[int(x) for x in row] for row in matrix]


def spent(rows, others, draws):
    """Half mu**2 of the release between neighbors: all (change / deviation)**2 / 2 that has
    noise."""
    draws.clear()
    one, other = (integers(add_up(X).add_noise(NOISE, None)) for X in (rows, others))
    (above, pairs), (diagonal, d) = draws[:2]
    assert draws[2:] == draws[:2]
    assert (pairs, d) == (len(one) * (len(one) - 1) // 2, len(one))
    total = Fraction(0)
    for i in range(d):
        for j in range(i, d):
            assert one[i][j] == one[j][i]
            total += Fraction(one[i][j] - other[i][j]) ** 2 / (diagonal if i == j else above) ** 2
    return total / 2


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_neighbors_spend_more_than_promised(draws, kind, d):
    coins = np.random.default_rng(d)
    promised = accounting.gaussian_mu(EXACT.goal.epsilon, EXACT.delta) ** 2 / 2
    for scale in (0.1, 1.0, 1e3):
        for n in (1, 7):
            rows = (scale * coins.standard_normal((n, d))).astype(kind)
            others = rows.copy()
            others[coins.integers(n)] = scale * coins.standard_normal(d)
            assert spent(rows, others, draws) <= promised


@pytest.mark.parametrize("pair", [([9.0, 0], [0, 9.0]), ([9.0, 9.0], [9.0, -9.0])])
def test_orthogonal_rows_need_all_the_noise(draws, pair):
    rows, others = (np.array([row, [0.1, 0.2]]) for row in pair)
    promised = accounting.gaussian_mu(EXACT.goal.epsilon, EXACT.delta) ** 2 / 2
    assert (1 - 1e-4) * promised <= spent(rows, others, draws) <= promised


def exact_sum(rows, noise):
    """Of the same integer rows, by integers that have no bounds; and the units of their norm."""
    units = float(add_up(rows, noise).norm)
    entries, columns = rows.reshape(-1), rows.shape[1]
    found, _ = _core.adaptation_integers(entries, columns, 1.0, units, None)
    whole = found.reshape(rows.shape).astype(int).astype(object)
    assert (np.square(whole).sum(axis=1) <= int(units) ** 2).all()
    return whole.T @ whole


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 4095, 10_000])
def test_sums_are_exact_in_any_order(kind, n):
    coins = np.random.default_rng(n)
    rows = coins.standard_normal((n, 3)).astype(kind)
    # Products that are all positive add up to the most.
    rows[:, 2] = 100
    found = add_up(rows).matrix
    assert (found == exact_sum(rows, NOISE)).all()
    assert abs(found).max() < 2**53
    np.testing.assert_array_equal(found, add_up(coins.permutation(rows)).matrix)


def test_much_noise_leaves_room_for_itself():
    noise = calibrate_noise(Privacy(Goal(1e-6, 1e-5), "exact"), 1, 0.0)
    sums = add_up(np.ones((5, 2)), noise)
    assert noise.multiple * math.sqrt(2) * sums.norm**2 < 2**50


def test_the_budget_is_charged_before_any_coin(monkeypatch):
    budget = hdp_fast.Budget(1.0, 1e-5)

    def stop(*_, **__):
        assert budget.spent == (1.0, 1e-5)
        raise KeyboardInterrupt

    model = PrivateDiscrepancyMinimization(**PRIVATE)
    with monkeypatch.context() as patch:
        patch.setattr(privacy, "rounded_gaussian", stop)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*domains(), random_state=3, budget=budget)
    with pytest.raises(BudgetExceeded):
        model.fit(*domains(), random_state=3, budget=budget)
    assert not hasattr(model, "coef_")
