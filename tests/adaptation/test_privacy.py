"""Tests of the private module adaptation.privacy: noise beside other accountants."""

import math

import numpy as np
import pytest
from adaptation_problems import problem
from scipy.stats import norm

from hdp_fast import accounting
from hdp_fast.adaptation import ConvexAdaptation, privacy
from hdp_fast.adaptation.convex_descent import JOINT, JOINT_ROUNDED
from hdp_fast.adaptation.privacy import Privacy, calibrate_noise
from hdp_fast.data.goal import Goal

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (10, 0.01), (15, 0.01)])
def test_noise_is_the_least_that_keeps_the_whole_promise(epsilon, delta):
    for steps in (1, 77):
        for numerics in ("exact", "idealized"):
            noise = calibrate_noise(Privacy(Goal(epsilon, delta), numerics), steps, 0.05)
            mu = math.sqrt(noise.discrepancy**2 + steps / noise.multiple**2)
            assert 0.999 * delta < gaussian_delta(mu, epsilon) <= delta * (1 + 1e-6)


def printed_multiple(epsilon, delta, steps):
    return 2 * math.sqrt(steps * math.log(3 / delta)) / epsilon


def test_the_numbers_of_the_page_on_theory():
    """They are those of docs/theory/one_gaussian_budget.md."""
    ours = calibrate_noise(Privacy(Goal(1.0, 1e-6), "idealized"), 100, 0.05)
    assert ours.multiple == pytest.approx(4.33 * 10, rel=2e-3)
    # Printed, with half of epsilon for the steps.
    assert printed_multiple(0.5, 1e-6, 100) == pytest.approx(15.4 * 10, rel=5e-3)


@pytest.mark.parametrize(
    ("epsilon", "general", "squared"),
    [(10, 0.0158, 0.000506), (15, 0.0882, 0.00415), (17.4, 0.164, 0.0097), (17.6, 0.172, 0.0103)],
)
def test_the_printed_noise_is_enough_for_the_squared_loss_and_not_for_others(
    epsilon, general, squared
):
    # The printed sigma_i are multiples of sensitivities, which no squared loss attains together.
    for joint, leaks in [(2, general), (JOINT, squared)]:
        mu = math.sqrt(joint * 50) / printed_multiple(epsilon, 0.01, 50)
        assert gaussian_delta(mu, epsilon) == pytest.approx(leaks, rel=0.02)
    assert (squared <= 0.01) == (epsilon < 17.5)
    ours = calibrate_noise(Privacy(Goal(epsilon, 0.01), "idealized"), 50, 0.05)
    mu = math.sqrt(ours.discrepancy**2 + 50 / ours.multiple**2)
    assert gaussian_delta(mu, epsilon) <= 0.01


@pytest.mark.parametrize("variant", ["tight", "paper"])
@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_fit_adds_the_noise_that_the_record_promises(variant, numerics):
    data = problem(m=30, n=20)
    settings = {
        "epsilon": 2.0,
        "delta": 1e-3,
        "alpha": 0.4,
        "kappa_1": 0.05,
        "steps": 7,
        "numerics": numerics,
    }
    model = ConvexAdaptation(**settings, variant=variant).fit(*data)
    whole = Privacy(Goal(2.0, 1e-3), numerics)
    factor = 1.0 if variant == "tight" else {"exact": JOINT_ROUNDED, "idealized": JOINT}[numerics]
    multiple = math.sqrt(factor * 7 / 0.95) / whole.mu()
    gradient_bound = 0.6 / 20 * 2 * (math.sqrt(0.05) if variant == "tight" else 2)
    assert model.noise_ == pytest.approx(2 * gradient_bound * multiple, rel=1e-3)
    assert (model.record_.epsilon, model.record_.delta) == (2.0, 1e-3)
    assert model.record_.numerics == numerics
    assert f"{variant}, 7 steps" in model.record_.mechanism
    assert np.linalg.norm(model.coef_) <= 1 + 1e-12


def test_exact_and_idealized_noise_are_of_the_same_size():
    exact, ideal = (
        calibrate_noise(Privacy(Goal(1.0, 1e-6), each), 9, 0.05) for each in ("exact", "idealized")
    )
    assert exact[:2] == ideal[:2]
    assert accounting.gaussian_mu(1.0, 1e-6) == pytest.approx(0.2367, rel=1e-4)


@pytest.mark.parametrize("steps", [1, 60])
def test_exact_noise_is_an_integer_law_that_keeps_the_curve(monkeypatch, steps):
    """What is drawn for integers is rounded Gaussian, with at least the deviation of the plan."""
    noise, drawn = calibrate_noise(Privacy(Goal(1.0, 1e-6), "exact"), steps, 0.0), []

    def none(sigma, size, *, random_state):
        drawn.append(sigma)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(privacy, "rounded_gaussian", none)
    sums = np.array([3.0, -5.0])
    assert (privacy.add_noise(sums, 1024, noise, None) == sums).all()
    mu = 1024 * math.sqrt(steps) / drawn[0]
    assert gaussian_delta(mu, 1.0) <= 1e-6 * (1 + 1e-9)
