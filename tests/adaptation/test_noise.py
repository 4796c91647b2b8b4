"""Integer noise on the discrepancy beside Gaussian noise on the steps, against its own curve."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from hdp_fast import accounting
from hdp_fast.adaptation.discrepancies.private import STEPS
from hdp_fast.adaptation.privacy import Privacy, least_noise


def composed_delta(noise, steps, epsilon):
    """Of a discrete Gaussian on integers that a record moves by STEPS, and Gaussian steps.

    A sum over the integers k of P(k) G(epsilon - L(k)): G is the curve of the steps, L(k) the
    integer's loss.
    """
    sigma, mu = STEPS / noise.discrepancy, math.sqrt(steps) / noise.multiple
    reach = math.ceil(40 * sigma) + STEPS
    k = np.arange(-reach, reach + 1.0)
    density, loss = -(k**2) / (2 * sigma**2), STEPS * (STEPS - 2 * k) / (2 * sigma**2)
    at = mu / 2 - (epsilon - loss) / mu
    less = np.exp(density + epsilon - loss + log_ndtr(at - mu))
    found = np.exp(density + log_ndtr(at)) - less
    return found.sum() / np.exp(density).sum()


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 2e3, 2e5, 1.131e6])
def test_both_kinds_of_noise_together_keep_the_promise(epsilon, share, delta):
    noise = least_noise(Privacy(epsilon, delta, "idealized"), 60, share)
    # Sums of terms that nearly cancel: rounding shows where epsilon is large.
    assert composed_delta(noise, 60, epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.05), (8.0, 0.5), (2e3, 0.9)])
def test_fine_integers_cost_nothing(epsilon, share):
    noise = least_noise(Privacy(epsilon, 1e-6, "idealized"), 60, share)
    mu = math.hypot(noise.discrepancy, math.sqrt(60) / noise.multiple)
    assert mu == pytest.approx(accounting.gaussian_mu(epsilon, 1e-6), rel=1e-4)
    assert composed_delta(noise, 60, epsilon) == pytest.approx(1e-6, rel=5e-2)
