"""Normal noise on integers: its exact curve, and the deviations that its limits allow."""

import math
from fractions import Fraction

import pytest
from scipy import stats

from hdp_fast.accounting import gaussian_epsilon, gaussian_mu
from hdp_fast.accounting.discrete_gaussian import (
    calibrate_means,
    calibrate_sigma,
    continuous_mu,
    exact_delta,
    gaussian_sigma,
    sigma_epsilon,
)
from hdp_fast.exceptions import ParameterError
from hdp_fast.reference.noise import gaussian_masses


def test_exact_delta_is_that_of_forty_digits():
    sigma, shift, epsilon = Fraction(13, 2), 5, 0.75
    masses = gaussian_masses(sigma, 120)
    odds = next(iter(masses.values())).from_float(epsilon).exp()
    expected = sum(max(0, p - odds * masses.get(x - shift, 0)) for x, p in masses.items())
    assert exact_delta(sigma, shift, epsilon) == pytest.approx(float(expected), rel=2e-9)
    assert exact_delta(sigma, shift, epsilon) >= float(expected)
    deltas = [exact_delta(sigma, closer, epsilon) for closer in range(1, 12)]
    assert deltas == sorted(deltas)


def test_exact_delta_shows_that_the_continuous_gaussian_would_not_be_private():
    """The analytic sigma has a larger delta on integers, where sigma is small."""
    mu = 1.0
    delta = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
    assert exact_delta(Fraction(5), 5, 1.0) > delta


@pytest.mark.parametrize(
    ("n", "bits"), [(1, 20), (1000, 20), (2**41 - 1, 20), (2**41, 19), (2**52, 8)]
)
def test_calibrate_means_leaves_sums_of_n_records_below_two_to_the_61(n, bits):
    found, _ = calibrate_means(1, n=n, epsilon=1.0, delta=1e-6)
    assert found == bits
    assert n << found < 2**61


@pytest.mark.parametrize("power", [20, 27, 30, 36])
def test_calibrate_means_leaves_deviations_below_two_to_the_48(power):
    price = 4**power
    needed = math.ceil(math.log2(gaussian_sigma(price, 1.0, 1e-6)))
    bits, sigma = calibrate_means(price, n=1000, epsilon=1.0, delta=1e-6)
    assert bits == min(20, 48 - needed)
    assert sigma <= 2**48


@pytest.mark.parametrize(("price", "n"), [(1, 2**53), (4**38, 1000)])
def test_calibrate_means_refuses_grids_of_fewer_than_eight_bits(price, n):
    with pytest.raises(ParameterError, match="too few digits"):
        calibrate_means(price, n=n, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"), [(4.0, 1e-2, 8), (4.0, 1e-8, 64), (8.0, 1e-5, 64)]
)
def test_calibrate_sigma_adds_noise_where_the_continuous_law_has_too_little(epsilon, delta, steps):
    mu = gaussian_mu(epsilon, delta)
    sigma = calibrate_sigma(epsilon, delta, steps, mu)
    assert exact_delta(Fraction(math.ceil(steps / mu * 1024), 1024), steps, epsilon) > delta
    assert exact_delta(sigma, steps, epsilon) <= delta
    assert sigma < steps / mu * 1.002


def test_sigma_epsilon_covers_the_rounding_of_the_root():
    """Where the root is exact, what it adds is seen."""
    for squared, sigma in [(4, Fraction(4)), (9, Fraction(6)), (16, Fraction(32))]:
        epsilon = gaussian_epsilon(math.isqrt(squared) / float(sigma), 1e-6)
        assert epsilon < sigma_epsilon(squared, sigma, 1e-6) < epsilon * (1 + 1e-11)


def test_continuous_mu_refuses_what_leaves_nothing_but_noise():
    assert gaussian_mu(1e-4, 1e-4) == continuous_mu(1e-4, 1e-4) > 2 / 2**17
    with pytest.raises(ParameterError, match="nothing but noise"):
        continuous_mu(1e-9, 1e-9)
    assert continuous_mu(1.0, 1e-200) > 0
    with pytest.raises(ParameterError, match="delta = 1e-201"):
        continuous_mu(1.0, 1e-201)
