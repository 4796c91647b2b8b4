"""Tests of the private module adaptation.privacy: noise beside other accountants."""

import math

import numpy as np
import pytest
from adaptation_problems import problem
from scipy.special import log_ndtr
from scipy.stats import norm

from hdp_fast import accounting
from hdp_fast.adaptation import ConvexAdaptation
from hdp_fast.adaptation.discrepancies.private import GRID_STEPS
from hdp_fast.adaptation.printed_algorithm import JOINT, JOINT_ROUNDED
from hdp_fast.adaptation.privacy import Privacy, calibrate_noise

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def independent_epsilon(rho, delta):
    """Canonne, Kamath and Steinke 2020, Proposition 12, on a grid of orders."""
    orders = 1 + np.logspace(-3, 6, 200_001)
    found = rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return found.min()


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (10, 0.01), (15, 0.01)])
def test_noise_is_the_least_that_keeps_the_whole_promise(epsilon, delta):
    for steps in (1, 77):
        exact = calibrate_noise(Privacy(epsilon, delta, "exact"), steps, 0.05)
        rho = exact.discrepancy**2 / 2 + steps / (2 * exact.multiple**2)
        assert 0.999 * epsilon < independent_epsilon(rho, delta) <= epsilon * (1 + 1e-9)
        ideal = calibrate_noise(Privacy(epsilon, delta, "idealized"), steps, 0.05)
        mu = math.sqrt(ideal.discrepancy**2 + steps / ideal.multiple**2)
        assert 0.999 * delta < gaussian_delta(mu, epsilon) <= delta * (1 + 1e-6)


def printed_multiple(epsilon, delta, steps):
    return 2 * math.sqrt(steps * math.log(3 / delta)) / epsilon


def test_the_numbers_of_the_page_on_theory():
    """They are those of docs/theory/one_gaussian_budget.md."""
    ours = calibrate_noise(Privacy(1.0, 1e-6, "idealized"), 100, 0.05)
    assert ours.multiple == pytest.approx(4.33 * 10, rel=2e-3)
    # Printed, with half of epsilon for the steps.
    assert printed_multiple(0.5, 1e-6, 100) == pytest.approx(15.4 * 10, rel=5e-3)
    exact = calibrate_noise(Privacy(1.0, 1e-6, "exact"), 100, 0.05)
    assert exact.multiple == pytest.approx(4.65 * 10, rel=1e-2)


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
    ours = calibrate_noise(Privacy(epsilon, 0.01, "idealized"), 50, 0.05)
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
    privacy = Privacy(2.0, 1e-3, numerics)
    factor = 1.0 if variant == "tight" else {"exact": JOINT_ROUNDED, "idealized": JOINT}[numerics]
    multiple = math.sqrt(factor * 7 / 0.95) / privacy.mu()
    gradient_bound = 0.6 / 20 * 2 * (math.sqrt(0.05) if variant == "tight" else 2)
    assert model.noise_ == pytest.approx(2 * gradient_bound * multiple, rel=1e-3)
    assert (model.record_.epsilon, model.record_.delta) == (2.0, 1e-3)
    assert model.record_.numerics == numerics
    assert f"{variant}, 7 steps" in model.record_.mechanism
    assert np.linalg.norm(model.coef_) <= 1 + 1e-12


def test_exact_noise_is_accounted_by_its_own_curve():
    exact, ideal = (calibrate_noise(Privacy(1.0, 1e-6, each), 9, 0.05) for each in
                    ("exact", "idealized"))  # fmt: skip
    assert 1.05 < exact.multiple / ideal.multiple < 1.1
    assert accounting.gaussian_mu(1.0, 1e-6) == pytest.approx(0.2367, rel=1e-4)


def composed_delta(noise, steps, epsilon):
    """Of a discrete Gaussian on integers that a record moves by GRID_STEPS, and Gaussian steps.

    A sum over the integers k of P(k) G(epsilon - L(k)): G is the curve of the steps, L(k) the
    integer's loss.
    """
    sigma, mu = GRID_STEPS / noise.discrepancy, math.sqrt(steps) / noise.multiple
    furthest = math.ceil(40 * sigma) + GRID_STEPS
    k = np.arange(-furthest, furthest + 1.0)
    density, loss = -(k**2) / (2 * sigma**2), GRID_STEPS * (GRID_STEPS - 2 * k) / (2 * sigma**2)
    at = mu / 2 - (epsilon - loss) / mu
    less = np.exp(density + epsilon - loss + log_ndtr(at - mu))
    terms = np.exp(density + log_ndtr(at)) - less
    return terms.sum() / np.exp(density).sum()


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 2e3, 2e5, 1.131e6])
def test_both_kinds_of_noise_together_keep_the_promise(epsilon, share, delta):
    noise = calibrate_noise(Privacy(epsilon, delta, "idealized"), 60, share)
    # Sums of terms that nearly cancel: rounding shows where epsilon is large.
    assert composed_delta(noise, 60, epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.05), (8.0, 0.5), (2e3, 0.9)])
def test_fine_integers_cost_nothing(epsilon, share):
    noise = calibrate_noise(Privacy(epsilon, 1e-6, "idealized"), 60, share)
    mu = math.hypot(noise.discrepancy, math.sqrt(60) / noise.multiple)
    assert mu == pytest.approx(accounting.gaussian_mu(epsilon, 1e-6), rel=1e-4)
    assert composed_delta(noise, 60, epsilon) == pytest.approx(1e-6, rel=5e-2)
