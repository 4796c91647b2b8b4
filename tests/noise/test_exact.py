"""Privacy of integer noise and of private selection on tiny instances, by enumeration."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast import noise
from hdp_fast.reference import noise as reference

SLACK = Decimal(1) + Decimal(10) ** -20
LAWS = {
    "permute_and_flip": reference.permute_and_flip_law,
    "exponential_mechanism": reference.exponential_mechanism_law,
}


def pairs(candidates, moves):
    """All small score vectors, each with all that one record can make of it."""
    for scores in itertools.product(range(3), repeat=candidates):
        for move in itertools.product(moves, repeat=candidates):
            yield scores, tuple(s + m for s, m in zip(scores, move, strict=True))


def worst_ratio(law, rate, candidates, moves):
    return max(
        p / q
        for one, other in pairs(candidates, moves)
        for p, q in zip(law(one, rate), law(other, rate), strict=True)
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("name", LAWS)
def test_selection_spends_epsilon_and_no_less(name, epsilon):
    bound = 1 / reference.exp_minus(epsilon)
    worst = worst_ratio(LAWS[name], epsilon / 2, 3, (-1, 0, 1))
    assert worst <= bound * SLACK
    # The bound is sharp only for many candidates or extreme scores, but not far from it here.
    assert worst >= bound ** Decimal("0.6")


@pytest.mark.parametrize("name", LAWS)
def test_monotonic_selection_spends_epsilon_only_if_it_is_monotonic(name):
    bound = 1 / reference.exp_minus(Fraction(1))
    for moves in (0, 1), (-1, 0):
        assert worst_ratio(LAWS[name], Fraction(1), 3, moves) <= bound * SLACK
    assert worst_ratio(LAWS[name], Fraction(1), 3, (-1, 0, 1)) > bound


def test_the_exponential_mechanism_has_bounded_range_and_permute_and_flip_has_not():
    """Loss differences, which the subsampled curve of the exponential mechanism rests on."""
    epsilon, masses = Fraction(1), {}
    for name, law in LAWS.items():
        masses[name] = max(
            max(ratios) / min(ratios)
            for one, other in pairs(3, (-1, 0, 1))
            for p, q in [(law(one, epsilon / 2), law(other, epsilon / 2))]
            for ratios in [[a / b for a, b in zip(p, q, strict=True)]]
        )
    bound = 1 / reference.exp_minus(epsilon)
    assert masses["exponential_mechanism"] <= bound * SLACK
    assert masses["permute_and_flip"] > bound


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(2)])
def test_laplace_noise_spends_epsilon_exactly(epsilon, sensitivity):
    scale, bound = sensitivity / epsilon, 1 / reference.exp_minus(epsilon)
    ratios = [
        reference.laplace_mass(scale, x) / reference.laplace_mass(scale, x + sensitivity)
        for x in range(-20, 20)
    ]
    assert bound / SLACK <= max(ratios) <= bound * SLACK
    less = [
        reference.laplace_mass(scale * Fraction(9, 10), x)
        / reference.laplace_mass(scale * Fraction(9, 10), x + sensitivity)
        for x in range(-20, 20)
    ]
    assert max(less) > bound


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(5)])
def test_gaussian_noise_is_concentrated(sigma):
    """Renyi divergence of order a between shifted laws is at most a / (2 sigma^2)."""
    masses = reference.gaussian_masses(sigma, 30 * math.ceil(sigma))
    for order in (Decimal("1.5"), Decimal(2), Decimal(8)):
        for shift in (1, 2):
            moment = sum(
                p**order * masses[x + shift] ** (1 - order)
                for x, p in masses.items()
                if x + shift in masses
            )
            divergence = moment.ln() / (order - 1)
            bound = order * shift**2 / (2 * Decimal(sigma.numerator) / sigma.denominator) ** 2 * 2
            assert divergence <= bound * (1 + Decimal(10) ** -20)
            assert divergence >= bound * Decimal("0.2")


def test_the_continuous_gaussian_curve_does_not_hold_for_discrete_noise():
    """Why accounting for discrete_gaussian goes through zCDP."""
    masses = reference.gaussian_masses(Fraction(1), 40)

    def discrete(epsilon):
        losses = (
            float(p) - math.exp(epsilon) * float(masses.get(x + 1, 0)) for x, p in masses.items()
        )
        return sum(max(0.0, loss) for loss in losses)

    def continuous(epsilon):
        below = [math.erfc((epsilon + shift) / math.sqrt(2)) / 2 for shift in (-0.5, 0.5)]
        return below[0] - math.exp(epsilon) * below[1]

    ratios = [discrete(k / 20) / continuous(k / 20) for k in range(100)]
    assert max(ratios) > 1.5


def hockey_stick(masses, shift, epsilon):
    """The delta at epsilon of a law beside itself moved by `shift`; both tails beyond are
    counted."""
    losses = (p - epsilon.exp() * masses.get(x + shift, Decimal(0)) for x, p in masses.items())
    return sum(max(Decimal(0), loss) for loss in losses)


def gaussian_curve(mu, epsilon):
    """The delta at epsilon of the continuous Gaussian mechanism."""
    half = reference.half_normal
    first, second = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    below = half(abs(first)) * (1 if first < 0 else -1) + Decimal("0.5")
    return below - reference.exp_minus(-epsilon) * (Decimal("0.5") - half(second))


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(5, 3), Fraction(6)])
def test_rounded_gaussian_noise_keeps_the_curve_of_the_continuous_gaussian(sigma):
    masses = {
        x: reference.rounded_gaussian_mass(sigma, x)
        for x in range(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    }
    with localcontext() as context:
        context.prec = 50
        assert abs(sum(masses.values()) - 1) < Decimal(10) ** -30
    ratios, less = [], []
    for shift in (1, 2, 3):
        for epsilon in (Fraction(k, 8) for k in range(25)):
            delta = hockey_stick(masses, shift, Decimal(epsilon.numerator) / epsilon.denominator)
            curves = [
                gaussian_curve(shift / sigma * part, epsilon) for part in (1, Fraction(19, 20))
            ]
            if min(curves) > Decimal(10) ** -20:
                ratios.append(delta / curves[0])
                less.append(delta / curves[1])
    assert max(ratios) <= 1 + Decimal(10) ** -9
    # Rounding loses little, and with a little less noise the curve would not hold.
    assert max(ratios) >= Decimal("0.9")
    assert max(less) > 1


def test_reference_samplers_have_the_mean_and_spread_of_their_laws():
    rng = np.random.default_rng(1)
    laplace = reference.discrete_laplace(5.0, 200_000, rng)
    gaussian = reference.discrete_gaussian(5.0, 200_000, rng)
    rounded = reference.rounded_gaussian(5.0, 200_000, rng)
    assert abs(rounded.std() - 5) < 0.1
    assert laplace.dtype == gaussian.dtype == rounded.dtype == noise.discrete_laplace(5.0, 1).dtype
    assert abs(laplace.std() - 5 * math.sqrt(2)) < 0.1
    assert abs(gaussian.std() - 5) < 0.1
    lies = reference.randomized_response(np.zeros(200_000, np.uint8), 1.0, rng)
    assert abs(lies.mean() - 1 / (1 + math.e)) < 0.006
    drawn = reference.weighted_draws(np.array([1, 0, 3], np.uint64), 200_000, rng)
    assert abs((drawn == 2).mean() - 0.75) < 0.006
    scores = np.array([3, -1, 3, 2])
    for name, law in LAWS.items():
        sampler = getattr(reference, name)
        counts = np.bincount([sampler(scores, 0.4, rng) for _ in range(20_000)], minlength=4)
        expected = [float(p) for p in law(scores.tolist(), Fraction(2, 5))]
        assert np.abs(counts / 20_000 - expected).max() < 0.02
