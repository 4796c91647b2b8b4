"""What the dense weights lose to the best dense weights in hindsight (Kohen and Sheffet 2022,
Theorem 4.3).

Costs m_t are 1 - loss. For all dense u, the sum of mu_t . m_t is at most that of u . m_t, plus
eta T / 8, plus KL(u || uniform) / eta. The window of DenseWeights adds to it: its integer weights
sum to between kappa n - 0.75 * 2**-12 and kappa n, so a law is within 0.75 * 2**-12 / (kappa n)
of the exact projection in total variation, and T rounds cost at most T times that.
"""

import math

import numpy as np
import pytest
from cases import each_case

from hdp_fast.weights import DenseWeights, project

N, ROUNDS = 40, 150


def random(mu, t, rng):
    return rng.random(N)


def bits(mu, t, rng):
    return rng.integers(0, 2, N).astype(float)


def alternating(mu, t, rng):
    return (np.arange(N) % 2 == t % 2).astype(float)


def constant(mu, t, rng):
    return np.arange(N) / (N - 1)


def greedy(mu, t, rng):
    """Costs where the weights are now."""
    return (mu >= np.quantile(mu, 0.7)).astype(float)


def halving(mu, t, rng):
    """Costs on records of half the probability, other ones each time: the bound is sharp there."""
    costs, left = np.zeros(N), 0.5
    for i in np.argsort(1e-6 * rng.random(N) - mu):
        if mu[i] <= left + 1e-9:
            costs[i], left = 1, left - mu[i]
    return costs


SEQUENCES = [random, bits, alternating, constant, greedy, halving]
SETTINGS = [(0.05, 0.05), (0.05, 0.3), (0.3, 0.15), (0.3, 1.0), (0.3, 4.0), (0.77, 0.5), (1.0, 0.5)]


def played(adversary, kappa, eta):
    """Costs paid, costs of every record, and the law after the last round."""
    rng = np.random.default_rng(9)
    weights, paid, costs = DenseWeights(N, kappa, eta), 0.0, np.zeros(N)
    for t in range(ROUNDS):
        mu = weights.probabilities()
        now = adversary(mu, t, rng)
        weights.update(1 - now)
        paid, costs = paid + mu @ now, costs + now
    return paid, costs, weights.probabilities()


def best(costs, kappa):
    """As much as may be on the cheapest records."""
    u, mass = np.zeros(N), kappa * N
    order = np.argsort(costs)
    u[order] = np.clip(mass - np.arange(N), 0, 1) / mass
    return u


def comparators(costs, kappa, eta, last):
    """The last weights are the worst: they minimize u . costs + KL(u || uniform) / eta."""
    yield from (best(costs, kappa), best(-costs, kappa), np.full(N, 1 / N), last)
    exponents = -eta * (costs - costs.min())
    for factor in (0.25, 0.5, 1, 2):
        p = project(np.exp(np.maximum(factor * exponents, -600)), kappa)
        yield p / p.sum()
    rng = np.random.default_rng(10)
    for _ in range(5):
        p = project(rng.random(N) ** 3 + 1e-9, kappa)
        yield p / p.sum()


def divergence(u):
    held = u > 0
    return float((u[held] * np.log(N * u[held])).sum())


def window(kappa):
    return ROUNDS * (0.75 * 2.0**-12 / (kappa * N) + 1e-9)


@each_case("adversary", SEQUENCES)
@each_case(("kappa", "eta"), SETTINGS)
def test_regret_is_bounded(adversary, kappa, eta):
    paid, costs, last = played(adversary, kappa, eta)
    for u in comparators(costs, kappa, eta, last):
        assert u.max() <= (1 + 2.0**-10) / (kappa * N)
        bound = u @ costs + eta * ROUNDS / 8 + divergence(u) / eta
        assert paid <= bound + window(kappa)


@pytest.mark.parametrize(("kappa", "eta"), SETTINGS[:4])
def test_the_bound_is_nearly_attained(kappa, eta):
    paid, costs, last = played(halving, kappa, eta)
    excess = paid - last @ costs - divergence(last) / eta
    assert excess > 0.9 * eta * ROUNDS / 8


def test_twice_the_step_would_break_the_bound():
    kappa, eta = 0.3, 0.3
    paid, costs, last = played(halving, kappa, 2 * eta)
    bounds = [
        u @ costs + eta * ROUNDS / 8 + divergence(u) / eta
        for u in comparators(costs, kappa, eta, last)
    ]
    assert paid > min(bounds) + window(kappa)


def test_a_mean_iterate_errs_by_at_most_what_the_plan_counts_on():
    # With eta = 3 alpha / 2 and T = 32 ln(8 ratio / alpha) / (9 alpha**2), regret is 3 alpha / 8 a
    # round against any u of divergence ln(8 ratio / alpha).
    alpha, ratio = 0.2, 1.35
    most, eta = math.log(8 * ratio / alpha), 1.5 * alpha
    rounds = math.ceil(32 * most / (9 * alpha**2))
    assert eta * rounds / 8 + most / eta == pytest.approx(3 * alpha / 8 * rounds, rel=1e-2)
