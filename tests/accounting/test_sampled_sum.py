"""Noisy sums over Poisson-many draws: the theorem by brute force, and what the accountant shows.

The proof and the words are those of docs/theory/poisson_draws.md.
"""

import math

import numpy as np
import pytest
from lengths import STAT
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import binom, norm, poisson

from hdp_fast import accounting
from hdp_fast.accounting import GaussianMechanism, SampledSum, Subsampled

EPSILONS = (-2.0, -0.7, -0.1, 0.0, 0.2, 0.7, 1.5, 3.0)


def weights_of(rate, kind="poisson"):
    """How likely a record is drawn 0, 1, 2, ... times."""
    if kind == "coin":
        return np.array([1 - rate, rate])
    counts = np.arange(int(rate + 12 * math.sqrt(rate) + 25))
    return poisson.pmf(counts, rate)


def worst(weights, noise, epsilon):
    """The divergence of the pair around b and -b, both ways the same, by its best half-line."""
    b, growth = np.arange(len(weights)), math.exp(epsilon)
    log_weights = np.log(np.maximum(weights, 1e-300))

    def loss(x):
        p, q = (logsumexp(log_weights - ((x - sign * b) / noise) ** 2 / 2) for sign in (1, -1))
        return p - q - epsilon

    far = 1e5 * noise
    if not loss(-far) < 0 < loss(far):
        return max(0.0, 1 - growth)
    x = brentq(loss, -far, far, xtol=1e-15 * far, rtol=1e-15)
    above = ndtr((b - x) / noise) - growth * ndtr((-b - x) / noise)
    return float(weights @ above)


# The theorem -------------------------------------------------------------------------------------


def plane(noise, reach):
    axis = np.linspace(-reach, reach, 321)
    return np.stack(np.meshgrid(axis, axis), -1), (axis[1] - axis[0]) ** 2 / (2 * np.pi * noise**2)


def mixture(points, unit, means, weights, noise):
    squares = [((points - mean) ** 2).sum(-1) for mean in means]
    parts = [
        w * np.exp(-square / (2 * noise**2)) for w, square in zip(weights, squares, strict=True)
    ]
    return unit * sum(parts)


def directions(coins):
    """Where a record's parts lead after 0, 1, 2, ... draws: all alike, or of any direction."""
    parts = coins.normal(size=(40, 2))
    parts *= coins.choice([0.0, 0.4, 1.0, 1.0]) / np.linalg.norm(parts, axis=1)[:, None]
    if coins.random() < 0.5:
        parts[:] = parts[0]
    return np.vstack([np.zeros(2), parts.cumsum(axis=0)])


@pytest.mark.parametrize("kind", ["poisson", "coin"])
@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
def test_no_records_in_the_plane_are_worse_than_opposite_ones(kind, noise):
    coins = np.random.default_rng(7)
    weights = weights_of(0.3, kind)[:6]
    weights /= weights.sum()
    points, unit = plane(noise, len(weights) + 9 * noise)
    promised = [worst(weights, noise, epsilon) for epsilon in EPSILONS]
    for _ in range(12):
        p, q = (
            mixture(points, unit, directions(coins)[: len(weights)], weights, noise)
            for _ in range(2)
        )
        for epsilon, most in zip(EPSILONS, promised, strict=True):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= most + 1e-6


@pytest.mark.parametrize("kind", ["poisson", "coin"])
def test_opposite_records_attain_the_worst_pair(kind):
    noise, weights = 1.0, weights_of(0.3, kind)[:6]
    weights /= weights.sum()
    points, unit = plane(noise, len(weights) + 9 * noise)
    along = np.arange(len(weights))[:, None] * np.array([0.6, 0.8])
    p, q = (mixture(points, unit, sign * along, weights, noise) for sign in (1, -1))
    for epsilon in EPSILONS:
        found = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert found == pytest.approx(worst(weights, noise, epsilon), abs=3e-4)


# What breaks it ----------------------------------------------------------------------------------

N, DRAWS, NOISE = 100, 10, 1.0


def released(kind):
    """What neighbors look like on a grid where the others all are -1 and the record is 1 or -1.

    kind: "sum" for the noisy sum, "sum and number" for the number of draws beside it, "mean" for
    the noisy sum divided by the number of draws.
    """
    grid = np.linspace(-40, 15, 4401) if kind != "mean" else np.linspace(-6, 6, 4801)
    laws = []
    for record in (1, -1):
        rows = []
        for count in range(1, 45):
            b = np.arange(count + 1)
            means = record * b - (count - b)
            scale = NOISE / count if kind == "mean" else NOISE
            means = means / count if kind == "mean" else means
            density = norm.pdf(grid[:, None], means, scale) @ binom.pmf(b, count, 1 / N)
            rows.append(poisson.pmf(count, DRAWS) * density * (grid[1] - grid[0]))
        laws.append(np.array(rows) if kind == "sum and number" else np.sum(rows, axis=0))
    return laws


def largest(laws, epsilon):
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in (laws, laws[::-1]))


def test_the_number_of_draws_must_stay_secret():
    """The figures of the theory: .0336 where it is shown, and .0042."""
    promised = accounting.delta(SampledSum(1 / NOISE, rate=DRAWS / N), 0.5)
    assert largest(released("sum"), 0.5) <= promised == pytest.approx(0.0042, abs=1e-4)
    assert largest(released("sum and number"), 0.5) == pytest.approx(0.0336, abs=1e-4)


def test_a_mean_over_the_number_of_draws_tells_more_than_is_promised():
    promised = accounting.delta(SampledSum(1 / NOISE, rate=DRAWS / N), 0.5)
    assert largest(released("mean"), 0.5) > 1.5 * promised


# The accountant ----------------------------------------------------------------------------------

STEPS = [
    (1, 0.01), (2, 0.1), (0.5, 0.05), (10, 0.5), (0.8, 2), (5, 8), (100, 1e-3), (0.2, 0.01),
    (0.1, 0.02), (0.06, 0.01), (0.04, 0.3), (30, 40), (3, 1), (1.5, 1e-6), (0.31, 1.7),
]  # fmt: skip


@pytest.mark.parametrize(("noise", "rate"), STEPS)
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.3, 1.0, 3.0])
def test_one_step_is_its_best_half_line(noise, rate, epsilon):
    exact = worst(weights_of(rate), noise, epsilon)
    shown = accounting.delta(SampledSum(1 / noise, rate=rate), epsilon)
    assert exact * (1 - 1e-9) - 1e-14 <= shown <= exact * (1 + 3e-4) + 1e-14


@pytest.mark.thorough(beside="test_one_step_is_its_best_half_line")
def test_many_steps_of_any_kind_are_never_below_their_half_line():
    coins = np.random.default_rng(11)
    for _ in range(300 if STAT else 100):
        noise, rate = (
            math.exp(coins.uniform(*map(math.log, ends))) for ends in ((0.03, 300), (1e-5, 30))
        )
        epsilon = float(coins.choice([0.0, coins.exponential(), 1e-3 * coins.exponential()]))
        exact = worst(weights_of(rate), noise, epsilon)
        shown = accounting.delta(SampledSum(1 / noise, rate=rate), epsilon)
        assert exact * (1 - 1e-9) - 1e-14 <= shown, (noise, rate, epsilon)
        # Where epsilon is far below the losses that matter the grid is coarse.
        assert shown <= exact * 1.15 + 1e-13, (noise, rate, epsilon)


def losses_on_grid(noise, rate, width, down):
    """The loss of a step, rounded to a grid: masses, and the index of the first."""
    weights = weights_of(rate)
    b, log_weights = np.arange(len(weights)), np.log(np.maximum(weights, 1e-300))
    edges = np.arange(-12 * noise, len(weights) + 12 * noise, noise / 2000)
    scores = [log_weights[:, None] - ((edges - s * b[:, None]) / noise) ** 2 / 2 for s in (1, -1)]
    loss = logsumexp(scores[0], axis=0) - logsumexp(scores[1], axis=0)
    masses = weights @ np.diff(ndtr((edges - b[:, None]) / noise), axis=1)
    places = np.floor(loss[:-1] / width) if down else np.ceil(loss[1:] / width)
    first = int(places.min())
    return np.bincount((places - first).astype(int), masses), first


@pytest.mark.thorough(cases=["1.0-0.01-10-1.0-0.0005"])
@pytest.mark.parametrize(
    ("noise", "rate", "rounds", "epsilon", "width"),
    [
        (3.0, 0.1, 10, 0.5, 1e-4),
        (11.3, 0.084, 200, 0.5, 2e-5),
        # Losses reach far here, and a finer grid would take gigabytes.
        (1.0, 0.01, 10, 1.0, 5e-4),
        (14.0, 0.2, 50, 0.4, 2e-5),
    ],
)
def test_composition_lies_between_losses_rounded_down_and_up(noise, rate, rounds, epsilon, width):
    shown = accounting.delta([(SampledSum(1 / noise, rate=rate), rounds)], epsilon)
    bounds = []
    for down in (True, False):
        masses, first = losses_on_grid(noise, rate, width, down)
        size = 1 << math.ceil(math.log2(rounds * len(masses)))
        composed = np.fft.irfft(np.fft.rfft(masses, size) ** rounds, size)
        losses = width * (rounds * first + np.arange(size))
        above = losses > epsilon
        bounds.append(-composed[above] @ np.expm1(epsilon - losses[above]))
    low, high = bounds
    assert low * (1 - 1e-6) - 1e-12 <= shown <= high * (1 + 1e-6) + 1e-12
    assert high < 1.3 * low


@pytest.mark.parametrize(
    ("n", "steps", "batch", "noise", "poisson_epsilon", "fixed_epsilon"),
    [
        (1_000, 200, 84, 11.3, 0.880, 0.9975),
        (1_000, 200, 230, 11.8, 2.508, 2.990),
        (20, 50, 4, 14.0, 0.843, 0.9977),
        (50, 200, 28, 12.5, 6.400, 8.007),
    ],
)
def test_the_table_of_the_theory(n, steps, batch, noise, poisson_epsilon, fixed_epsilon):
    drawn = [(SampledSum(1 / noise, rate=batch / n), steps)]
    fixed = [(Subsampled(GaussianMechanism(2 / noise), draws=batch, rate=1 / n), steps)]
    assert accounting.epsilon(drawn, 1e-6) == pytest.approx(poisson_epsilon, abs=1e-3)
    assert accounting.epsilon(fixed, 1e-6) == pytest.approx(fixed_epsilon, abs=1e-3)


@pytest.mark.parametrize("rounds", [1, 2**40, 2**53])
@pytest.mark.parametrize(("mu", "rate"), [(0.1, 1e-36), (0.3, 1e-33), (3.0, 1e-32), (1e-3, 1e-34)])
def test_a_record_that_is_hardly_ever_drawn_is_not_forgotten(mu, rate, rounds):
    """One draw of one record is as likely as that, and shows as much as its normal laws differ."""
    shown = accounting.delta([(SampledSum(mu, rate=rate), rounds)], 0.0)
    assert shown >= rate * math.exp(-rate) * math.erf(mu / math.sqrt(2))


@pytest.mark.parametrize("noise", [0.5, 2.0, 20.0])
def test_a_record_that_is_drawn_more_often_is_less_private(noise):
    deltas = [
        accounting.delta([(SampledSum(1 / noise, rate=rate), 10)], 0.7)
        for rate in (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1, 3, 20)
    ]
    # Below 1e-40 moments alone bound them, and what is left out shows.
    deltas = [delta for delta in deltas if delta > 1e-40]
    assert len(deltas) > 2
    assert deltas == sorted(deltas)


@pytest.mark.parametrize(
    ("mu", "rate"), [(1e-100, 1e-100), (1e300, 1e4), (1e-300, 5.0), (5.0, 1e-300)]
)
def test_extremes_are_numbers(mu, rate):
    for rounds in (1, 1000, 1 << 53):
        shown = accounting.delta([(SampledSum(mu, rate=rate), rounds)], 1.0)
        assert 0 <= shown <= 1
