"""Guarantees against closed forms, exact fractions, convolutions, dp-accounting and docs/theory."""

import itertools
import math
import operator
import warnings
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from cases import each_case
from mixtures import exact_law
from scipy.stats import binom, norm

from hdp_fast import _core, accounting
from hdp_fast.accounting import (
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    GaussianMechanism,
    LaplaceMechanism,
    Neighbors,
    Pure,
    SampledSum,
    Subsampled,
)
from hdp_fast.exceptions import ParameterError


def sure(result, exact, *, above):
    """A guarantee: never below what is exact, and not much above."""
    return exact * (1 - 1e-12) <= result <= exact * (1 + above)


def rdp(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, accountant="rdp")


# Closed forms ------------------------------------------------------------------------------------


def normal_curve(mu, epsilon):
    """The hockey-stick divergence of N(mu, 1) and N(0, 1), by 50-digit arithmetic."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = mpmath.ncdf(-mu / 2 - epsilon / mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * tail


@each_case("mu", [1e-6, 1e-3, 0.2367, 1, 5, 40])
@each_case("at", [0, 0.1, 1, 3, 8, 20])
def test_gaussian_curve_is_that_of_fifty_digits(mu, at):
    epsilon = max(0.0, mu * mu / 2 + (at - 2) * mu)
    exact = normal_curve(mu, epsilon)
    result = accounting.gaussian_delta(mu, epsilon)
    assert exact <= result <= float(exact) * (1 + 1e-4) + 1e-300


@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [(1e-200, 0), (1e-200, 1e-200), (1e-12, 0), (1e-12, 3e-12), (1e-9, 1e-8), (1e-7, 1e-15)],
)
def test_gaussian_curve_at_tiny_arguments(mu, epsilon):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(450):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        exact = mpmath.ncdf(m / 2 - e / m) - tail
        assert exact <= accounting.gaussian_delta(mu, epsilon) <= exact * (1 + mpmath.mpf(1e-6))


def test_gaussian_curve_where_nothing_is_left():
    assert accounting.gaussian_delta(1e-200, 1.0) <= 1e-300
    assert accounting.gaussian_delta(5e-324, 0) <= 1e-300
    assert accounting.gaussian_delta(1e300, 1e300) == 1
    for delta in (1e-310, 1e-100, 1e-17):
        mu = accounting.gaussian_mu(0, delta)
        # The height of the density times mu.
        assert 2 * delta <= mu <= delta / 0.39894


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(1, 1e-6, 0.23670), (0.5, 1e-6, 0.1241), (2, 1e-6, 0.4483), (0.5, 1e-4, 0.16967)],
)
def test_analytic_gaussian_of_the_theory(epsilon, delta, mu):
    result = accounting.gaussian_mu(epsilon, delta)
    assert result == pytest.approx(mu, abs=6e-5)
    assert accounting.gaussian_delta(result, epsilon) <= delta
    assert accounting.gaussian_delta(result * (1 + 1e-9), epsilon) > delta
    assert sure(accounting.gaussian_epsilon(result, delta), epsilon, above=1e-9) or math.isclose(
        accounting.gaussian_epsilon(result, delta), epsilon, rel_tol=1e-9
    )


@pytest.mark.parametrize("rounds", [1, 7, 100, 10_000])
@pytest.mark.parametrize("total", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("delta", [0.01, 1e-6, 1e-12])
def test_composed_gaussians_are_one_gaussian(rounds, total, delta):
    each = GaussianMechanism(total / math.sqrt(rounds))
    exact = accounting.gaussian_epsilon(total, delta)
    assert sure(accounting.epsilon([(each, rounds)], delta), exact, above=1e-3)
    if exact:
        assert sure(accounting.delta([(each, rounds)], exact), delta, above=2e-3)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4])
def test_single_rounds_have_their_curves(epsilon):
    for part in (0, 0.1, 0.5, 0.9):
        e = part * epsilon
        fall = math.exp((e - epsilon) / 2)
        growth, reached = math.exp(epsilon), math.exp(e)
        exact = {
            Pure(epsilon): (growth - reached) / (growth + 1),
            DiscreteLaplace(epsilon, 1): (growth - reached) / (growth + 1),
            LaplaceMechanism(epsilon): 1 - fall,
            BoundedRange(epsilon): (1 - fall) ** 2 / (1 - math.exp(-epsilon)),
            Approximate(epsilon, 0.01): 0.01 + 0.99 * (growth - reached) / (growth + 1),
        }
        for mechanism, value in exact.items():
            assert sure(accounting.delta(mechanism, e), value, above=1e-3), mechanism
    beyond = epsilon * (1 + 1e-9)
    assert accounting.delta(Pure(epsilon), beyond) < 1e-50
    assert sure(accounting.delta(Approximate(epsilon, 0.01), beyond), 0.01, above=1e-9)


@pytest.mark.parametrize("sensitivity", [1, 2, 5, 12])
def test_discrete_laplace_by_its_masses(sensitivity):
    epsilon = 0.8
    k = np.arange(-3_000, 3_000 + sensitivity)
    decay = math.exp(-epsilon / sensitivity)
    masses = (1 - decay) / (1 + decay) * decay ** np.abs(k)
    moved = (1 - decay) / (1 + decay) * decay ** np.abs(k - sensitivity)
    for e in (0, 0.1, 0.33, 0.7):
        exact = np.maximum(masses - math.exp(e) * moved, 0).sum()
        result = accounting.delta(DiscreteLaplace(epsilon, sensitivity), e)
        assert sure(result, exact, above=1e-3)
        # Continuous noise would promise too much.
        assert exact >= 1 - math.exp((e - epsilon) / 2) - 1e-12


def test_discrete_laplace_is_not_dominated_by_the_continuous():
    assert accounting.delta(DiscreteLaplace(1, 1), 0.0) > 1.15 * accounting.delta(
        LaplaceMechanism(1), 0.0
    )


# Concentrated mechanisms -------------------------------------------------------------------------


def hull_of_moments(rho, ratios):
    """The best bound at e^epsilon = ratio from moments up to a * rho, by brute force.

    Orders on a grid at each of many epsilons, Pinsker's inequality at 0, mirror images below 0,
    and the lower convex hull of all.
    """
    spread = math.sqrt(2 * rho)
    t = np.exp(np.linspace(-12, 8, 4_001)) / spread
    log = t * (t + 1) * rho + t * np.log(t / (1 + t)) - np.log1p(t)
    losses = np.linspace(0, spread * (12 + spread), 2_001)
    deltas = np.exp(np.minimum((log - np.outer(losses, t)).min(axis=1), 0))
    deltas[0] = min(deltas[0], math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    E = np.exp(losses)
    x = np.concatenate([1 / E[:0:-1], E])
    y = np.concatenate([1 - (1 - deltas[:0:-1]) / E[:0:-1], deltas])
    corners = []
    for dot in zip(x, y, strict=True):
        while len(corners) > 1 and slope(corners[-2], corners[-1]) >= slope(corners[-1], dot):
            corners.pop()
        corners.append(dot)
    return np.interp(ratios, *zip(*corners, strict=True))


def slope(one, other):
    return (other[1] - one[1]) / (other[0] - one[0])


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("rho", [1e-4, 0.005, 0.1, 0.7, 2])
@pytest.mark.parametrize("rate", [1, 0.05])
def test_a_concentrated_round_has_the_hull_of_its_bounds(rho, rate):
    draws = 2
    eta = 1 - (1 - rate) ** draws
    ratios = np.exp(np.array([0, 0.1, 0.4, 1, 2]) * math.sqrt(2 * rho))
    exact = sum(
        binom.pmf(b, draws, rate) * hull_of_moments(b * b * rho, ratios) for b in range(1, 3)
    )
    mechanism = Subsampled(ZCDP(rho), draws=draws, rate=rate)
    for ratio, value in zip(ratios, exact, strict=True):
        result = accounting.delta(mechanism, math.log1p(eta * (ratio - 1)))
        assert result == pytest.approx(value, rel=2e-3)


def discrete_gaussian(sigma, sensitivity, epsilon):
    """The exact curve of integer Gaussian noise."""
    k = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    masses = np.exp(-((k / sigma) ** 2) / 2) / np.exp(-((k / sigma) ** 2) / 2).sum()
    moved = np.exp(-(((k - sensitivity) / sigma) ** 2) / 2)
    moved /= np.exp(-((k / sigma) ** 2) / 2).sum()
    return np.maximum(masses - math.exp(epsilon) * moved, 0).sum()


@pytest.mark.parametrize("sigma", [0.4, 1, 3, 10])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_concentrated_mechanisms_stay_below_the_worst(sigma, sensitivity):
    rho = (sensitivity / sigma) ** 2 / 2
    if rho > 30:
        return
    spread = math.sqrt(2 * rho)
    for e in np.array([0, 0.3, 1, 2, 4]) * spread:
        bound = accounting.delta(ZCDP(rho), float(e))
        assert discrete_gaussian(sigma, sensitivity, e) <= bound
        assert accounting.gaussian_delta(spread, float(e)) <= bound
        assert accounting.delta(Pure(spread), float(e)) <= bound
        assert accounting.delta(BoundedRange(2 * spread), float(e)) <= bound


@pytest.mark.parametrize("rounds", [1, 7, 300])
def test_concentrated_subsamples_dominate_what_they_stand_for(rounds):
    """Group privacy on changed draws: b**2 rho covers Gaussian, pure and bounded-range bases."""
    for rho, draws, rate in [(0.02, 50, 0.01), (0.5, 3, 0.02), (1e-4, 500, 0.02)]:
        spread = math.sqrt(2 * rho)
        worst = Subsampled(ZCDP(rho), draws=draws, rate=rate)
        for base in (GaussianMechanism(spread), Pure(spread), BoundedRange(2 * spread)):
            true = Subsampled(base, draws=draws, rate=rate)
            for delta in (1e-3, 1e-6):
                at = accounting.epsilon([(true, rounds)], delta)
                assert at <= accounting.epsilon([(worst, rounds)], delta)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("draws", [1, 3])
def test_true_integer_noise_on_draws_stays_below_the_accountant(sigma, draws):
    """Sums of uniform draws from five records, one of them replaced, plus integer noise, thrice."""
    reach = math.ceil(9 * sigma)
    noise = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)

    def law(values):
        law = noise / noise.sum()
        for _ in range(draws):
            law = np.convolve(law, np.bincount(values, minlength=2) / len(values))
        return law

    one, other = law([0, 0, 1, 1, 1]), law([0, 0, 1, 1, 0])
    each = Subsampled(ZCDP(1 / (2 * sigma**2)), draws=draws, rate=0.2)
    for first, second in [(one, other), (other, one)]:
        P, Q = first, second
        for rounds in (1, 2, 3):
            for e in (0, 0.1, 0.5, 1.5):
                true = np.maximum(P - math.exp(e) * Q, 0).sum()
                assert true <= accounting.delta([(each, rounds)], e)
            P, Q = np.outer(P, first).ravel(), np.outer(Q, second).ravel()


def test_plain_concentrated_runs_compose_by_their_moments():
    for accountant in ("pld", "rdp"):
        result = accounting.epsilon([(ZCDP(1e-4), 1_000)], 1e-6, accountant=accountant)
        assert result == pytest.approx(accounting.zcdp_epsilon(0.1, 1e-6), rel=1e-6)
        result = accounting.delta([(ZCDP(1e-4), 1_000)], 2, accountant=accountant)
        assert result == pytest.approx(accounting.delta(ZCDP(0.1), 2), rel=1e-3)


# Optimal composition -----------------------------------------------------------------------------


def exact_optimal(growth, delta, rounds, target):
    """Theorem 3.3 as a hockey-stick divergence, for e^epsilon = growth and e^target = target."""
    total = (
        sum(
            comb(rounds, k)
            * growth**k
            * max(Fraction(0), 1 - Fraction(target) / Fraction(growth) ** (2 * k - rounds))
            for k in range(rounds + 1)
        )
        / Fraction(1 + growth) ** rounds
    )
    kept = (1 - Fraction(delta)) ** rounds
    return 1 - kept + kept * total


@each_case("delta", [0, Fraction(1, 1000)])
@each_case("rounds", [1, 2, 5, 30])
@each_case("growth", [2, Fraction(11, 10)])
def test_optimal_composition_in_fractions(growth, delta, rounds):
    # The composition knows epsilon as a double only, a little off ln(growth): hence the margins.
    epsilon = math.log(growth)
    for target in (1, Fraction(3, 2), Fraction(growth) ** (rounds - 2) if rounds > 2 else 1):
        exact = float(exact_optimal(growth, delta, rounds, target))
        at = math.log(target)
        result = accounting.optimal_composition(epsilon, float(delta), rounds, target_epsilon=at)
        assert exact * (1 - 1e-12) <= result <= exact * (1 + 1e-8) + 1e-13
        each = Approximate(epsilon, float(delta)) if delta else Pure(epsilon)
        composed = accounting.delta([(each, rounds)], at)
        assert exact * (1 - 1e-12) <= composed <= exact * (1 + 2e-3) + 1e-13


@pytest.mark.parametrize("rounds", [1, 10, 1000])
@pytest.mark.parametrize("delta", [0.01, 1e-6])
def test_composed_randomized_response_is_the_optimum(rounds, delta):
    best = accounting.optimal_composition(0.1, 0, rounds, target_delta=delta)
    result = accounting.epsilon([(Pure(0.1), rounds)], delta)
    assert best * (1 - 1e-8) <= result <= best * (1 + 1e-3)


@each_case("epsilon", [15.622010062002525, 0.1, 0.3, 1 / 3, 7.7])
@each_case("rounds", [3, 5, 7, 11])
def test_optimal_composition_at_the_losses_themselves(epsilon, rounds):
    """Targets at (k - 2 i) epsilon, rounded to a float: below the loss there is something left."""
    with localcontext(Context(prec=60)):
        growth = Decimal(epsilon).exp()
        for i in range(rounds // 2):
            target = float((rounds - 2 * i) * epsilon)
            losses = [(2 * k - rounds) * Decimal(epsilon) for k in range(rounds + 1)]
            masses = [
                comb(rounds, k) * growth**k / (1 + growth) ** rounds for k in range(rounds + 1)
            ]
            over = [max(Decimal(0), 1 - (Decimal(target) - loss).exp()) for loss in losses]
            exact = sum(map(operator.mul, masses, over))
            result = accounting.optimal_composition(epsilon, 0, rounds, target_epsilon=target)
            assert exact <= Decimal(result) <= exact * Decimal(1 + 1e-6) + Decimal("1e-13")
        most = accounting.optimal_composition(epsilon, 0, rounds, target_delta=1e-30)
        assert Decimal(most) >= rounds * Decimal(epsilon) - Decimal("1e-29")


def test_sums_beyond_floats_are_infinite():
    assert accounting.basic_composition([(1e308, 0)] * 10) == (math.inf, 0)
    assert accounting.pure_epsilon(Subsampled(Pure(1e308), draws=10, rate=1)) == math.inf


@pytest.mark.parametrize("draws", [3, 7, 10, 10**6 + 1])
@pytest.mark.parametrize("rate", [1, 1e-3, 1e-300])
def test_pure_epsilon_is_rounded_up(draws, rate):
    for epsilon in (0.1, 1 / 3, 0.7, 1e-300, 701.3):
        result = accounting.pure_epsilon(Subsampled(Pure(epsilon), draws=draws, rate=rate))
        with localcontext(Context(prec=1000)):
            growth = 1 + Decimal(rate) * (Decimal(epsilon).exp() - 1)
            exact = draws * (Decimal(epsilon) if rate == 1 else growth.ln())
            assert exact <= Decimal(result)


def test_pure_epsilon_of_one_plain_round_is_its_epsilon():
    for epsilon in (1e-9, 0.1, 1.0, 700.0):
        assert accounting.pure_epsilon(Pure(epsilon)) == epsilon


def test_attack_advantage_is_rounded_up():
    with localcontext(Context(prec=50)):
        for step in range(60):
            epsilon, delta = 1.3**step * 1e-5, 10.0 ** -(step % 9 + 1) if step % 2 else 0.0
            growth = Decimal(epsilon).exp()
            exact = (growth - 1 + 2 * Decimal(delta)) / (growth + 1)
            found = Decimal(accounting.attack_advantage(epsilon, delta=delta))
            assert exact <= found <= exact * (1 + Decimal("5e-15"))


def test_optimal_composition_where_no_epsilon_is_enough():
    assert accounting.optimal_composition(1, 1e-3, 10, target_delta=1e-3) == math.inf
    assert accounting.optimal_composition(1, 0, 10, target_delta=0.9999) == 0


def test_basic_composition_rounds_up_and_only_then():
    assert accounting.basic_composition([(0.5, 0), (0.25, 1e-6)]) == (0.75, 1e-6)
    epsilon, delta = accounting.basic_composition([(0.1, 0.1)] * 10)
    assert Fraction(epsilon) >= 10 * Fraction(0.1) > Fraction(math.nextafter(epsilon, 0))
    assert delta == 1
    assert accounting.basic_composition([]) == (0, 0)


# Bounded range -----------------------------------------------------------------------------------


def offset_coins(growth, offset):
    """A coin of range ln(growth): the ratio of each outcome, and its probability under P."""
    first = (1 - offset / growth) / (1 - 1 / growth)
    return [(offset, first), (offset / growth, 1 - first)]


def adaptive_optimum(growth, parts, runs, ratio):
    """The largest P(O) - ratio Q(O) of adaptive runs, offsets from a grid, in fractions."""
    if runs == 0:
        return max(Fraction(0), 1 - ratio)
    offsets = [1 + (growth - 1) * Fraction(k, parts) for k in range(parts + 1)]
    return max(
        sum(
            p * adaptive_optimum(growth, parts, runs - 1, ratio / outcome)
            for outcome, p in offset_coins(growth, offset)
        )
        for offset in offsets
    )


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("growth", [Fraction(11, 10), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_bounded_range_runs_stay_above_all_adaptive_choices(growth, runs):
    """Coins of a grid of offsets, chosen after every outcome, in exact fractions."""
    terms = [(BoundedRange(math.log(growth)), runs)]
    for power in np.linspace(0, 0.95 * runs, 5):
        ratio = Fraction(float(growth) ** power)
        exact = float(adaptive_optimum(growth, 9, runs, ratio))
        assert accounting.delta(terms, math.log(ratio)) >= exact * (1 - 1e-12)


def plain_optimum(epsilon, runs, steps):
    """The optimum on a grid, values between its points by logarithms: about right, not a bound."""
    losses = np.arange(-runs * steps, runs * steps + 1) * epsilon / steps
    offsets = np.linspace(0, epsilon, steps + 1)
    first = np.expm1(offsets - epsilon) / np.expm1(-epsilon)
    curve = np.maximum(0, -np.expm1(losses))
    for _ in range(runs):
        padded = np.concatenate([-np.expm1(losses[:steps] - epsilon), curve, np.zeros(steps)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, steps + 1)
        low, high = windows[: len(curve), ::-1], windows[steps:, ::-1]
        curve = (first * low + (1 - first) * high).max(axis=1)
    return losses, curve


@pytest.mark.parametrize(
    ("epsilon", "runs", "slack"), [(0.1, 20, 1.02), (1, 8, 1.02), (1, 32, 1.06), (8, 8, 1.3)]
)
def test_bounded_range_runs_compose_at_their_optimum(epsilon, runs, slack):
    """The envelope of single runs, composed, is up to fifty times as large."""
    losses, curve = plain_optimum(epsilon, runs, 64)
    for delta in (1e-2, 1e-5):
        at = int(np.flatnonzero(curve >= delta)[-1])
        shown = accounting.delta([(BoundedRange(epsilon), runs)], float(losses[at]))
        assert curve[at] * (1 - 1e-9) <= shown <= slack * curve[at]


def optimum_in_any_order(kinds, unit):
    """The curve of the worst run of coins in units of a grid, offsets and order chosen adaptively.

    It is exact for offsets on the grid, and so a lower bound. A kind is the range of a coin in
    units, whether its offset is free (or its losses are opposite, as of Pure), and its rounds.
    """
    places = [units if free else 2 * units for units, free, _ in kinds]
    span = sum(place * rounds for place, (*_, rounds) in zip(places, kinds, strict=True))
    losses = np.arange(-span, span + 1) * unit
    start = np.maximum(0, -np.expm1(losses))

    def step(place, free, curve):
        below = -np.expm1(losses[0] - np.arange(place, 0, -1) * unit)
        padded = np.concatenate([below, curve, np.zeros(place)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, len(losses))
        offsets = np.arange(place + 1) if free else np.array([place // 2])
        first = np.expm1((offsets - place) * unit) / np.expm1(-place * unit)
        pairs = zip(first, windows[place - offsets], windows[2 * place - offsets], strict=True)
        return np.max([p * low + (1 - p) * high for p, low, high in pairs], axis=0)

    curves = {}
    for counts in itertools.product(*(range(rounds + 1) for *_, rounds in kinds)):
        left = [i for i, count in enumerate(counts) if count]
        before = [tuple(count - (i == j) for j, count in enumerate(counts)) for i in left]
        steps = [
            step(places[i], kinds[i][1], curves[one]) for i, one in zip(left, before, strict=True)
        ]
        curves[counts] = np.max(steps, axis=0) if steps else start
    return losses, curves[counts]


@pytest.mark.parametrize(
    ("kinds", "unit"),
    [
        (((12, True, 4), (5, True, 3)), 0.02),
        (((12, True, 4), (5, True, 4), (1, False, 4)), 0.1),
        (((6, True, 5), (9, True, 2), (3, False, 2)), 0.3),
        (((7, True, 33),), 0.05),
        (((4, True, 3), (2, True, 6), (6, False, 3)), 0.6),
    ],
)
def test_bounded_range_runs_take_turns_with_others_in_any_order(kinds, unit):
    """Who also chooses what runs next, by all outcomes so far, gains nothing on the accountant."""
    losses, curve = optimum_in_any_order(kinds, unit)
    terms = [((BoundedRange if free else Pure)(n * unit), rounds) for n, free, rounds in kinds]
    for least in (0.3, 1e-2, 1e-4, 1e-6, 1e-9):
        at = int(np.flatnonzero(curve >= least)[-1])
        if losses[at] >= 0:
            shown = accounting.delta(terms, float(losses[at]) * (1 - 1e-12))
            assert curve[at] * (1 - 1e-12) <= shown <= 3 * curve[at]


def test_bounded_range_runs_of_one_epsilon_are_one_block():
    one = [(BoundedRange(0.5), 12), (Pure(0.1), 3)]
    for other in (
        [(BoundedRange(0.5), 5), (Pure(0.1), 3), (BoundedRange(0.5), 7)],
        [(Subsampled(BoundedRange(0.25), draws=2, rate=1.0), 12), (Pure(0.1), 3)],
    ):
        assert accounting.delta(other, 2.0) == pytest.approx(accounting.delta(one, 2.0), rel=1e-9)


# Subsampling -------------------------------------------------------------------------------------


def joint_convexity(growth, draws, rate, ratio):
    """The curve of a round at e^epsilon' = ratio in exact fractions, for a pure base."""
    eta = 1 - (1 - rate) ** draws
    base = 1 + (ratio - 1) / eta
    return sum(
        comb(draws, b)
        * rate**b
        * (1 - rate) ** (draws - b)
        * max(Fraction(0), growth**b - base)
        / (growth**b + 1)
        for b in range(1, draws + 1)
    )


def weights(count, parts, rate):
    grid = [Fraction(k, parts) for k in range(parts + 1)]
    return [w for w in itertools.product(grid, repeat=count) if sum(w) == 1 and max(w) <= rate]


def answers(bits, weight, draws, growth):
    """The law of randomized response on each bit drawn."""
    one = sum((w for bit, w in zip(bits, weight, strict=True) if bit), Fraction(0))
    says = one * growth / (1 + growth) + (1 - one) / (1 + growth)
    return [
        math.prod(says if said else 1 - says for said in all_said)
        for all_said in itertools.product((0, 1), repeat=draws)
    ]


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize(("count", "parts", "rate"), [(2, 4, "3/4"), (3, 6, "1/2"), (3, 4, "1/2")])
@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("growth", [2, 5])
def test_no_neighbors_exceed_the_subsampled_curve(count, parts, rate, draws, growth):
    """Every data set and neighbor, every pair of dense weights that the theorem allows."""
    rate, growth = Fraction(rate), Fraction(growth)
    ratios = [Fraction(r) for r in ("1", "11/10", "3/2", "2", "3")]
    curve = {ratio: joint_convexity(growth, draws, rate, ratio) for ratio in ratios}
    worst = dict.fromkeys(ratios, Fraction(0))
    pairs = [
        (one, other)
        for one, other in itertools.product(weights(count, parts, rate), repeat=2)
        if sum(map(min, one[1:], other[1:])) >= 1 - rate
    ]
    assert pairs
    laws = {
        (bits, weight): answers(bits, weight, draws, growth)
        for bits in itertools.product((0, 1), repeat=count)
        for weight in {each for pair in pairs for each in pair}
    }
    for rest in itertools.product((0, 1), repeat=count - 1):
        for (one, other), first, second in itertools.product(pairs, (0, 1), (0, 1)):
            P, Q = laws[(first, *rest), one], laws[(second, *rest), other]
            for ratio in ratios:
                true = sum(max(Fraction(0), p - ratio * q) for p, q in zip(P, Q, strict=True))
                worst[ratio] = max(worst[ratio], true)
    mechanism = Subsampled(Pure(math.log(growth)), draws=draws, rate=float(rate))
    for ratio in ratios:
        assert worst[ratio] <= curve[ratio]
        result = accounting.delta(mechanism, math.log(ratio))
        assert float(curve[ratio]) * (1 - 1e-12) <= result <= float(curve[ratio]) * 1.001 + 1e-12
    # One draw attains it.
    if draws == 1 and count == 2:
        assert worst[Fraction(1)] == curve[Fraction(1)]


def curve_of(base, b, e):
    """The curve of a base for b changed records, by its textbook formula."""
    if isinstance(base, GaussianMechanism):
        mu = b * base.mu
        return norm.cdf(mu / 2 - e / mu) - np.exp(e) * norm.cdf(-mu / 2 - e / mu)
    c = b * base.epsilon
    inside = np.minimum(e, c)
    fall = np.exp((inside - c) / 2)
    if isinstance(base, LaplaceMechanism):
        return 1 - fall
    if isinstance(base, BoundedRange):
        return (1 - fall) ** 2 / (1 - np.exp(-c))
    pure = (np.exp(c) - np.exp(inside)) / (np.exp(c) + 1)
    if isinstance(base, Approximate):
        failing = min(1, base.delta * math.expm1(c) / math.expm1(base.epsilon))
        return failing + (1 - failing) * pure
    return pure


def round_curve(mechanism, losses):
    """Advanced joint convexity at losses >= 0, plainly."""
    m, q = mechanism.draws, mechanism.rate
    eta = -math.expm1(m * math.log1p(-q)) if q < 1 else 1.0
    e = np.log1p(np.expm1(losses) / eta)
    return sum(binom.pmf(b, m, q) * curve_of(mechanism.base, b, e) for b in range(1, m + 1))


ROUNDS = [
    Subsampled(Pure(1), draws=20, rate=0.01),
    Subsampled(BoundedRange(2), draws=5, rate=0.1),
    Subsampled(GaussianMechanism(0.3), draws=20, rate=0.05),
    Subsampled(GaussianMechanism(3), draws=2, rate=0.01),
    Subsampled(LaplaceMechanism(0.5), draws=10, rate=0.3),
    Subsampled(Approximate(0.5, 1e-3), draws=10, rate=0.1),
    Subsampled(GaussianMechanism(0.05), draws=60, rate=0.9),
    Subsampled(Pure(0.02), draws=400, rate=0.13),
    Subsampled(GaussianMechanism(0.5), draws=3, rate=1),
]


@pytest.mark.parametrize("mechanism", ROUNDS, ids=repr)
def test_a_subsampled_round_has_its_curve(mechanism):
    losses = np.array([0, 0.01, 0.1, 0.5, 1, 3])
    for e, exact in zip(losses, round_curve(mechanism, losses), strict=True):
        result = accounting.delta(mechanism, float(e))
        assert exact - 1e-13 <= result <= exact * 1.001 + 1e-13


def hockey_stick_masses(mechanism, width, cells):
    """P and Q of the loss in every cell of width `width`, from the curve's own slope."""
    losses = width * np.arange(cells + 1)
    upper = round_curve(mechanism, losses)
    # The curve is linear in e^loss up to second order: its chord's slope is the tail under Q.
    nearby = 1e-6
    Q = -(round_curve(mechanism, losses + nearby) - upper) / (np.exp(losses) * math.expm1(nearby))
    P = upper + np.exp(losses) * Q
    return P, Q


@pytest.mark.parametrize(
    ("mechanism", "width", "top"),
    [(ROUNDS[2], 1e-3, 4.0), (ROUNDS[1], 1e-3, 4.0), (ROUNDS[4], 2e-3, 5.0)],
    ids=repr,
)
def test_composition_lies_between_plain_convolutions(mechanism, width, top):
    """Six rounds, losses rounded down and up to a grid, convolved by np.convolve."""
    cells, rounds = int(top / width), 6
    P, Q = hockey_stick_masses(mechanism, width, cells)
    positive, negative = -np.diff(P), -np.diff(Q)
    rest = 1 - P[0] - Q[0]
    for direction in ("down", "up"):
        law = np.zeros(2 * cells + 1)
        low = direction == "down"
        law[cells + (0 if low else 1) :][:cells] += positive
        law[: cells + (0 if low else 1)][-cells:] += negative[::-1]
        law[cells] += rest
        composed = law
        for _ in range(rounds - 1):
            composed = np.convolve(composed, law)
        composed_losses = width * (np.arange(composed.size) - rounds * cells)
        for e in (0.2, 1.0, 2.0):
            above = composed_losses > e
            plain = (composed[above] * -np.expm1(e - composed_losses[above])).sum()
            beyond = rounds * P[-1]
            result = accounting.delta([(mechanism, rounds)], e)
            if low:
                assert result >= plain * (1 - 1e-6)
            else:
                assert result <= (plain + beyond) * (1 + 1e-3)
                assert plain < 1.1 * result


# The numbers of the theory -----------------------------------------------------------------------


def test_one_round_of_the_theory():
    """epsilon* = m ln(1 + q (e - 1)) at m q = 0.02, and the curve there."""
    mechanism = Subsampled(Pure(1), draws=1000, rate=2e-5)
    assert accounting.pure_epsilon(mechanism) == pytest.approx(0.03437, abs=1e-5)
    for e, value in {0: 0.00921, 0.005: 0.00787, 0.01: 0.00652, 0.02: 0.00381}.items():
        assert accounting.delta(mechanism, e) == pytest.approx(value, abs=1e-5)


RATES = [
    (10, 1, Pure, 0.0465),
    (50, 1, Pure, 0.0260),
    (1000, 1, Pure, 0.00593),
    (1000, 0.5, Pure, 0.0132),
    (1000, 0.1, Pure, 0.0718),
    (86_500, 1, Pure, 0.000639),
    (10, 1, BoundedRange, 0.0660),
    (50, 1, BoundedRange, 0.0428),
    (1000, 1, BoundedRange, 0.0106),
    (1000, 0.5, BoundedRange, 0.0234),
    (1000, 0.1, BoundedRange, 0.1235),
]


@pytest.mark.parametrize(("rounds", "epsilon", "kind", "x"), RATES)
def test_largest_subsample_of_the_theory(rounds, epsilon, kind, x):
    base, draws = kind(epsilon), 10_000
    rate = accounting.largest_rate(base, draws=draws, rounds=rounds, epsilon=1, delta=1e-6)
    assert draws * rate == pytest.approx(x, rel=5e-3)
    kept = Subsampled(base, draws=draws, rate=rate)
    assert accounting.delta([(kept, rounds)], 1) <= 1e-6
    more = Subsampled(base, draws=draws, rate=rate * (1 + 1e-4))
    assert accounting.delta([(more, rounds)], 1) > 1e-6


def test_moments_lose_a_factor_of_two():
    mechanism = [(Subsampled(Pure(1), draws=200, rate=0.0465 / 200), 10)]
    assert accounting.epsilon(mechanism, 1e-6) == pytest.approx(1.00, abs=0.01)
    assert rdp(accounting.epsilon, mechanism, 1e-6) == pytest.approx(2.07, abs=0.01)


DESIGNS = [
    (1e6, 20, 100, 1000, 37.1),
    (1e6, 20, 200, 200, 11.0),
    (1e6, 100, 100, 1000, 82.0),
    (1e6, 1015, 100, 300, 77.6),
    (3e6, 1015, 100, 1000, 86.2),
    (1e7, 1015, 100, 3000, 77.6),
]


@pytest.mark.parametrize(("n", "T", "R", "b", "s"), DESIGNS)
def test_minibatch_designs_of_the_theory(n, T, R, b, s):
    """Its noise is enough, and within a percent of the least that is."""
    rate = 1 / (0.014815 * n)
    enough = Subsampled(GaussianMechanism(2 / s), draws=b, rate=rate)
    assert accounting.delta([(enough, R * T)], 0.5) <= 1e-4
    less = Subsampled(GaussianMechanism(2 / (0.99 * s)), draws=b, rate=rate)
    assert accounting.delta([(less, R * T)], 0.5) > 1e-4


@pytest.mark.parametrize(("n", "T", "R", "b", "s"), DESIGNS)
def test_exact_noise_of_the_designs_costs_less_than_a_third_more(n, T, R, b, s):
    """Integer Gaussian noise is known by its moments alone, at every number of changed draws."""

    def family(noise):
        return Subsampled(ZCDP(2 / noise**2), draws=b, rate=1 / (0.014815 * n))

    result = accounting.smallest_noise(family, rounds=R * T, epsilon=0.5, delta=1e-4)
    assert s < result < 1.3 * s


@pytest.mark.parametrize(
    ("delta", "limit"), [(1e-2, 7.91), (1e-3, 8.51), (1e-4, 8.99), (1e-6, 9.73), (1e-9, 10.54)]
)
def test_where_the_local_gaussian_stops_being_private(delta, limit):
    def true(epsilon):
        return accounting.gaussian_delta(epsilon / math.sqrt(2 * math.log(2 / delta)), epsilon)

    assert true(limit - 0.01) <= delta < true(limit + 0.01)


@pytest.mark.parametrize(("delta", "limit"), [(1e-2, 8.92), (1e-4, 9.88), (1e-6, 10.57)])
def test_where_the_adaptation_noise_stops_being_private(delta, limit):
    def true(epsilon):
        return accounting.gaussian_delta(epsilon / math.sqrt(2 * math.log(3 / delta)), epsilon)

    assert true(limit - 0.01) <= delta < true(limit + 0.01)


def test_printed_adaptation_noise_of_the_experiments():
    for epsilon, delta in [(10, 0.0158), (15, 0.088)]:
        mu = epsilon / math.sqrt(2 * math.log(300))
        assert accounting.gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-2)


# dp-accounting -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


PEERS = [
    [(GaussianMechanism(1.0), 1)],
    [(GaussianMechanism(0.1), 100)],
    [(GaussianMechanism(0.5), 10)],
    [(LaplaceMechanism(1.0), 1)],
    [(LaplaceMechanism(0.1), 50)],
    [(LaplaceMechanism(0.5), 1), (GaussianMechanism(0.05), 100)],
    [(DiscreteLaplace(0.5, 4), 5)],
    [(Approximate(0.2, 1e-8), 20)],
]


def composed_by_peer(peer, terms, pessimistic):
    whole = None
    for mechanism, rounds in terms:
        options = {"value_discretization_interval": 1e-4, "pessimistic_estimate": pessimistic}
        if isinstance(mechanism, GaussianMechanism):
            each = peer.from_gaussian_mechanism(1 / mechanism.mu, **options)
        elif isinstance(mechanism, LaplaceMechanism):
            each = peer.from_laplace_mechanism(1 / mechanism.epsilon, **options)
        elif isinstance(mechanism, DiscreteLaplace):
            parameter = mechanism.epsilon / mechanism.sensitivity
            sensitivity = mechanism.sensitivity
            each = peer.from_discrete_laplace_mechanism(parameter, sensitivity, **options)
        else:
            parameters = peer.common.DifferentialPrivacyParameters(
                mechanism.epsilon, mechanism.delta
            )
            each = peer.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
        composed = each.self_compose(rounds)
        whole = composed if whole is None else whole.compose(composed)
    return whole


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("terms", PEERS, ids=repr)
def test_between_the_estimates_of_dp_accounting(peer, terms):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        high = composed_by_peer(peer, terms, True)
        low = composed_by_peer(peer, terms, False)
        for delta in (1e-3, 1e-6):
            result = accounting.epsilon(terms, delta)
            if not isinstance(terms[0][0], Approximate):
                assert result >= low.get_epsilon_for_delta(delta) * (1 - 1e-9)
            assert result <= high.get_epsilon_for_delta(delta) * 1.02
        for epsilon in (0.5, 1.0):
            result = accounting.delta(terms, epsilon)
            if not isinstance(terms[0][0], Approximate):
                assert result >= low.get_delta_for_epsilon(epsilon) * (1 - 1e-6) - 1e-15
            assert result <= high.get_delta_for_epsilon(epsilon) * 1.02 + 1e-11


# Properties --------------------------------------------------------------------------------------

KINDS = [
    Pure(0.3),
    BoundedRange(0.5),
    GaussianMechanism(0.2),
    LaplaceMechanism(0.3),
    DiscreteLaplace(0.3, 3),
    Approximate(0.1, 1e-9),
    Subsampled(Pure(1), draws=100, rate=1e-3),
    Subsampled(BoundedRange(1), draws=100, rate=1e-3),
    Subsampled(GaussianMechanism(0.5), draws=100, rate=1e-3),
    Subsampled(LaplaceMechanism(0.5), draws=10, rate=1e-2),
    Subsampled(Approximate(0.5, 1e-8), draws=10, rate=1e-2),
    ZCDP(0.02),
    Subsampled(ZCDP(0.1), draws=100, rate=1e-3),
    SampledSum(0.2, rate=0.1),
]


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_monotone_and_consistent(mechanism):
    result = [accounting.epsilon([(mechanism, 20)], d) for d in (1e-2, 1e-4, 1e-6)]
    assert result == sorted(result)
    longer = [accounting.epsilon([(mechanism, k)], 1e-6) for k in (1, 3, 30, 3_000)]
    assert longer == sorted(longer)
    curve = [accounting.delta([(mechanism, 20)], e) for e in (0, 0.1, 0.5, 1, 2)]
    assert curve == sorted(curve, reverse=True)
    at = accounting.epsilon([(mechanism, 20)], 1e-6)
    assert accounting.delta([(mechanism, 20)], at) == pytest.approx(1e-6, rel=1e-2)
    assert rdp(accounting.epsilon, [(mechanism, 20)], 1e-6) >= at
    assert rdp(accounting.delta, [(mechanism, 20)], 0.5) >= accounting.delta([(mechanism, 20)], 0.5)


@pytest.mark.thorough(cases=10)
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
@pytest.mark.filterwarnings("ignore:the accountant:UserWarning")
def test_an_epsilon_holds_at_its_delta_down_to_the_stated_least(mechanism, accountant):
    for rounds, delta in itertools.product((1, 20, 300), (1e-6, 1e-20, 3e-33, 1e-40)):
        terms = [(mechanism, rounds)]
        epsilon = accounting.epsilon(terms, delta, accountant=accountant)
        if epsilon < math.inf:
            assert accounting.delta(terms, epsilon, accountant=accountant) <= delta


@pytest.mark.parametrize(
    "base",
    [Pure(1), BoundedRange(1), GaussianMechanism(0.5), LaplaceMechanism(1), ZCDP(0.1)],
    ids=repr,
)
def test_larger_rates_and_samples_cost_more(base):
    rates = [Subsampled(base, draws=50, rate=rate) for rate in (1e-5, 1e-3, 0.02, 0.3, 1)]
    draws = [Subsampled(base, draws=draws, rate=0.01) for draws in (1, 10, 100)]
    for each in (rates, draws):
        result = [accounting.epsilon([(mechanism, 5)], 1e-6) for mechanism in each]
        assert result == sorted(result)
    once = Subsampled(base, draws=1, rate=1)
    plain = accounting.epsilon([(base, 5)], 1e-6)
    assert accounting.epsilon([(once, 5)], 1e-6) == plain


def test_counts_and_lists_say_the_same():
    one = accounting.epsilon([(GaussianMechanism(0.1), 3), Pure(0.1), Pure(0.1)], 1e-6)
    assert one == accounting.epsilon([GaussianMechanism(0.1)] * 3 + [(Pure(0.1), 2)], 1e-6)
    assert accounting.delta(Pure(0.5), 0.1) == accounting.delta([Pure(0.5)], 0.1)


@pytest.mark.parametrize("rounds", [10**6, 10**9, 10**12])
def test_many_rounds(rounds):
    each = GaussianMechanism(0.5 / math.sqrt(rounds))
    exact = accounting.gaussian_epsilon(0.5, 1e-6)
    assert sure(accounting.epsilon([(each, rounds)], 1e-6), exact, above=0.1)


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        (Pure(50), 1e-6),
        (GaussianMechanism(30), 1e-6),
        (GaussianMechanism(1e-9), 1e-12),
        (Subsampled(Pure(20), draws=10**6, rate=1e-9), 1e-6),
        (Subsampled(GaussianMechanism(6), draws=1000, rate=1e-12), 1e-9),
        (Subsampled(Pure(0.1), draws=10**9, rate=2e-7), 1e-6),
        (GaussianMechanism(0.1), 1e-200),
        (GaussianMechanism(0.1), 1e-300),
    ],
    ids=repr,
)
def test_extremes_stay_finite_and_ordered(mechanism, delta):
    result = accounting.epsilon([(mechanism, 3)], delta)
    assert 0 <= result <= rdp(accounting.epsilon, [(mechanism, 3)], delta) < math.inf
    assert accounting.delta([(mechanism, 3)], result) <= delta * 1.01 + 1e-300


DOMINATED = [
    ([Pure(45.0), (Subsampled(Pure(1e-7), draws=1, rate=1e-7), 5)], 1e-9),
    ([Pure(45.0), (Subsampled(Pure(1e-7), draws=1, rate=1e-7), 5)], 1e-15),
    ([Pure(1.0), (Subsampled(Pure(1e-7), draws=1, rate=1e-7), 5)], 1e-12),
    ([Pure(0.060282705370345024), Pure(0.00026463017660315356)], 1.1624693233331506e-28),
    (
        [
            (Subsampled(Approximate(4.4e-4, 2.2e-19), draws=1, rate=1.4e-6), 5),
            (Subsampled(Pure(0.398), draws=1, rate=0.0776), 3),
        ],
        1.8e-15,
    ),
]


@pytest.mark.parametrize(("mechanisms", "delta"), DOMINATED)
def test_an_epsilon_beside_a_dominant_mechanism_holds(mechanisms, delta):
    """The tilt of so steep a curve leaves the range of floats far below it."""
    result = accounting.epsilon(mechanisms, delta)
    assert accounting.delta(mechanisms, result) <= delta * (1 + 1e-6)
    assert result <= rdp(accounting.epsilon, mechanisms, delta)


@pytest.mark.parametrize("delta", [1e-31, 1e-33, 1e-35, 1e-38])
@pytest.mark.parametrize("epsilon", [0.5, 5.0, 25.0])
def test_tiny_deltas_are_as_sharp_as_their_epsilons(epsilon, delta):
    mixture = [(Pure(epsilon), 1), (Subsampled(Pure(1e-5), draws=2, rate=1e-3), 3)]
    law, low, high = exact_law(mixture), 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if law.delta(middle) > delta else (low, middle)
    result = accounting.epsilon(mixture, delta)
    assert low < result <= high * (1 + 1e-6)
    assert accounting.delta(mixture, result) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [740.0, 750.0, 900.0, 1199.0])
def test_large_losses_are_not_lost(epsilon):
    """Their masses under Q are no floats."""
    for base in (Pure(epsilon), Approximate(epsilon, 1e-9), DiscreteLaplace(epsilon, 2)):
        assert accounting.delta(base, 1.0) > 0.99
        assert accounting.epsilon(base, 1e-6) > 0.49 * epsilon
        often = [(Subsampled(base, draws=1, rate=0.1), 3)]
        assert accounting.delta(often, 1.0) >= 1 - 0.9**3 - 1e-9
        assert rdp(accounting.delta, base, 1.0) > 0.99


@pytest.mark.parametrize(
    ("mechanisms", "epsilon", "least", "most"),
    [
        (GaussianMechanism(40.0), 10.0, 1, 1),
        (ZCDP(700.0), 700.0, 0.5, 1),
        ([(GaussianMechanism(0.1), 10**15)], 1.0, 1, 1),
        ([(ZCDP(0.1), 1 << 53)], 1e3, 1, 1),
        ([(DiscreteLaplace(0.3, 3), 1 << 53)], 1e3, 0.999, 1),
        (Subsampled(Approximate(20.0, 1e-7), draws=3, rate=0.2), 25.0, 1e-9, 0.2),
        (Subsampled(Approximate(10.0, 1e-6), draws=3, rate=0.1), 25.4, 1e-9, 0.1),
        (Subsampled(Approximate(5.0, 1e-6), draws=10, rate=0.01), 18.1, 1e-12, 0.01),
        (Pure(1.0), 1e300, 0, 1e-300),
    ],
    ids=repr,
)
def test_losses_beyond_every_window_have_a_delta(mechanisms, epsilon, least, most):
    assert least <= accounting.delta(mechanisms, epsilon) <= most
    assert least <= rdp(accounting.delta, mechanisms, epsilon) <= 1


@pytest.mark.parametrize(
    ("mechanisms", "most"),
    [
        (GaussianMechanism(40.0), 1.1e3),
        ([(GaussianMechanism(0.1), 10**15)], 6e12),
        (ZCDP(700.0), 1e3),
        (BoundedRange(1e-16), 1e-16),
        (BoundedRange(1e-300), 1e-15),
        (GaussianMechanism(1e-300), 1e-15),
        ([(GaussianMechanism(1e300), 1 << 53)], math.inf),
    ],
    ids=repr,
)
def test_losses_beyond_every_window_have_an_epsilon(mechanisms, most):
    assert accounting.epsilon(mechanisms, 1e-6) <= most
    assert rdp(accounting.epsilon, mechanisms, 1e-6) <= most * 1.1


def test_what_fails_for_sure_has_no_epsilon():
    assert accounting.epsilon([(Approximate(1, 1e-6), 10)], 1e-6) == math.inf
    assert accounting.epsilon(Pure(5_000), 1e-6) == math.inf
    assert accounting.delta(Pure(5_000), 1.0) == 1.0
    assert accounting.renyi_divergence(Approximate(1, 1e-6), 2) == math.inf


# Moments -----------------------------------------------------------------------------------------


def test_renyi_divergences_in_closed_form():
    for a in (1.5, 2, 7.5, 60, 3_000):
        assert sure(accounting.renyi_divergence(GaussianMechanism(0.3), a), a * 0.045, above=1e-9)
        assert sure(accounting.renyi_divergence(ZCDP(0.02), a), a * 0.02, above=1e-9)
        high, low = math.exp(0.5) / (1 + math.exp(0.5)), 1 / (1 + math.exp(0.5))
        pure = np.logaddexp(
            a * math.log(high) + (1 - a) * math.log(low),
            a * math.log(low) + (1 - a) * math.log(high),
        ) / (a - 1)
        assert pure <= accounting.renyi_divergence(Pure(0.5), a) <= pure * (1 + 1e-9) + 1e-10
        up, down = math.log(a / (2 * a - 1)) + (a - 1) / 2, math.log((a - 1) / (2 * a - 1)) - a / 2
        laplace = np.logaddexp(up, down) / (a - 1)
        assert sure(accounting.renyi_divergence(LaplaceMechanism(0.5), a), laplace, above=1e-3)


def test_zcdp_and_renyi_conversions():
    rho, delta = 0.01, 1e-6
    a = 1 + np.exp(np.linspace(-3, 8, 20_001))
    best = (rho * a + np.log(1 - 1 / a) - (math.log(delta) + np.log(a)) / (a - 1)).min()
    assert sure(accounting.zcdp_epsilon(rho, delta), best, above=1e-6) or math.isclose(
        accounting.zcdp_epsilon(rho, delta), best, rel_tol=1e-6
    )
    grid = a[::200]
    assert sure(accounting.renyi_epsilon(grid, rho * grid, delta), best, above=1e-3)
    result = accounting.zcdp_rho(1, 1e-6)
    assert (
        accounting.zcdp_epsilon(result, 1e-6) <= 1 < accounting.zcdp_epsilon(result * 1.0001, 1e-6)
    )
    # A Gaussian is at most as bad as what its zCDP says.
    assert accounting.gaussian_epsilon(math.sqrt(2 * rho), delta) < accounting.zcdp_epsilon(
        rho, delta
    )
    mixed = [(ZCDP(rho), 2), GaussianMechanism(0.1)]
    assert rdp(accounting.epsilon, mixed, delta) == pytest.approx(
        accounting.zcdp_epsilon(2 * rho + 0.005, delta), rel=1e-9
    )


# Calibration -------------------------------------------------------------------------------------


def test_tcdp_epsilon_is_the_best_order_up_to_omega():
    for rho, omega, delta in ((0.01, 20, 1e-6), (1e-3, 5, 1e-4), (0.5, 1.5, 0.01)):
        orders = [1 + (omega - 1) * k / 2000 for k in range(1, 2001)]
        wanted = accounting.renyi_epsilon(orders, [rho * order for order in orders], delta)
        found = accounting.tcdp_epsilon(rho, omega, delta)
        assert found == pytest.approx(wanted, rel=1e-5)
        # What Kohen and Sheffet print in Fact A.2.
        assert found <= rho * omega + math.log(1 / delta) / (omega - 1)
    found = accounting.tcdp_epsilon(0.02, math.inf, 1e-6)
    assert found == pytest.approx(accounting.zcdp_epsilon(0.02, 1e-6), rel=1e-6)


def test_tcdp_of_gaussian_noise_is_printed_for_twice_the_sensitivity():
    # Fact A.2: (2 L**2 / sigma**2, infinity) for sensitivity L, which is exact for 2 L.
    sigma, order = 3.0, 7.0
    for sensitivity, share in ((1.0, 0.25), (2.0, 1.0)):
        found = accounting.renyi_divergence(GaussianMechanism(sensitivity / sigma), order)
        assert found == pytest.approx(share * order * 2 / sigma**2)


@pytest.mark.parametrize("rho", [1e-3, 0.01, 0.1])
def test_tcdp_of_draw_bounds_every_order_of_a_gaussian_on_one_draw(rho):
    # Theorem A.3 of Kohen and Sheffet, against the exact pair: also where natural logarithms allow
    # the largest rate.
    most = math.exp(-3 * rho * (2 + math.log(1 / rho)))
    for rate in (0.999 * most, 0.1 * most, 1e-2):
        small, omega = accounting.tcdp_of_draw(rho, rate)
        assert small == pytest.approx(13 * rate**2 * rho)
        assert omega == pytest.approx(math.log(1 / rate) / (4 * rho))
        step = Subsampled(GaussianMechanism(math.sqrt(2 * rho)), draws=1, rate=rate)
        for share in (0.05, 0.3, 1.0):
            order = 1 + (omega - 1) * share
            assert accounting.renyi_divergence(step, order) <= order * small
    with pytest.raises(ParameterError, match="rate"):
        accounting.tcdp_of_draw(rho, 1.001 * most)
    with pytest.raises(ParameterError, match="rho"):
        accounting.tcdp_of_draw(0.11, 1e-3)


def test_smallest_noise_is_the_analytic_gaussian():
    result = accounting.smallest_noise(
        lambda sigma: GaussianMechanism(1 / sigma), epsilon=1, delta=1e-6
    )
    assert sure(result, 1 / accounting.gaussian_mu(1, 1e-6), above=1e-4)
    loose = accounting.smallest_noise(
        lambda s: GaussianMechanism(1 / s), epsilon=90, delta=0.5, low=2
    )
    assert loose == 2
    ten = accounting.smallest_noise(
        lambda s: GaussianMechanism(1 / s), epsilon=1, delta=1e-6, rounds=10
    )
    assert ten == pytest.approx(math.sqrt(10) * result, rel=1e-3)


def test_smallest_noise_goes_up_to_a_million_unless_it_is_told_more():
    wanted = {"epsilon": 1e-9, "delta": 2.66e-7}
    needed = 1 / accounting.gaussian_mu(**wanted)
    assert 1.2e6 < needed < 1.9e6
    with pytest.raises(ParameterError):
        accounting.smallest_noise(lambda s: GaussianMechanism(1 / s), **wanted)
    assert accounting.smallest_noise(
        lambda s: GaussianMechanism(1 / s), **wanted, high=2e6
    ) == pytest.approx(needed, rel=0.01)


@pytest.mark.parametrize("epsilon", [7, 8, 20, 1e4])
def test_smallest_noise_starts_where_nothing_is_private(epsilon):
    def family(sigma):
        return GaussianMechanism(1 / sigma)

    result = accounting.smallest_noise(family, epsilon=epsilon, delta=1e-6)
    assert sure(result, 1 / accounting.gaussian_mu(epsilon, 1e-6), above=1e-2)
    for less in (
        lambda s: ZCDP(1 / (2 * s * s)),
        lambda s: Subsampled(GaussianMechanism(1 / s), draws=10, rate=0.01),
    ):
        at = accounting.smallest_noise(less, epsilon=epsilon, delta=1e-6)
        assert accounting.delta(less(at), epsilon) <= 1e-6


def test_neighboring_floats_end_a_search():
    result = accounting.smallest_noise(lambda _: Pure(1), epsilon=2, delta=0.1, low=5e-324, high=1)
    assert result == 5e-324
    least, next_one = 5e-324, 1e-323
    noise = accounting.smallest_noise(
        lambda s: Pure(1 if s > least else 3), epsilon=2, delta=0.1, low=least, high=next_one
    )
    assert noise == next_one


def test_rounds_of_what_may_fail():
    base = Subsampled(Approximate(20.0, 1e-7), draws=3, rate=0.2)
    most = accounting.largest_rounds(base, epsilon=58.0, delta=0.2)
    assert (
        accounting.delta([(base, most)], 58.0) <= 0.2 < accounting.delta([(base, most + 1)], 58.0)
    )


def test_largest_rounds_of_gaussians():
    mu = accounting.gaussian_mu(1, 1e-6)
    for each in (0.1, 0.01):
        most = accounting.largest_rounds(GaussianMechanism(each), epsilon=1, delta=1e-6)
        assert most == pytest.approx((mu / each) ** 2, abs=1)
        assert most <= (mu / each) ** 2
    assert accounting.largest_rounds(Pure(2), epsilon=1, delta=1e-6) == 0
    assert accounting.largest_rounds(Pure(0.5), epsilon=1, delta=1e-12) == 2


@pytest.mark.parametrize("draws", [10**6, 10**8])
def test_largest_rate_ends_where_curves_do(draws):
    rate = accounting.largest_rate(Pure(1e-9), draws=draws, rounds=1, epsilon=1, delta=1e-6)
    assert rate == pytest.approx(10_000 / draws)
    assert rate * draws <= 10_000


def test_thin_subsamples_are_planned_until_they_are_tight():
    many = [(Subsampled(GaussianMechanism(0.0784), draws=456, rate=5.13e-6), 43)]
    assert accounting.epsilon(many, 1e-33) < 0.2


def test_largest_rate_may_be_everything():
    result = accounting.largest_rate(Pure(0.1), draws=2, rounds=1, epsilon=1, delta=1e-6)
    assert result == 1


@pytest.mark.parametrize("base", [GaussianMechanism(0.447), ZCDP(0.1), Pure(0.1)])
@pytest.mark.parametrize("rate", [None, 1.0, 0.1])
def test_more_rounds_never_look_more_private(base, rate):
    # Losses of millions leave no grid of any use: their masses were too small for floats.
    one = base if rate is None else Subsampled(base, draws=1, rate=rate)
    result = [accounting.delta([(one, 10**k)], 0.5) for k in (6, 8, 10, 12)]
    assert result == sorted(result)
    assert result[-1] > 0.999


def test_no_rate_is_large_for_many_rounds():
    rate = accounting.largest_rate(Pure(0.1), draws=1, rounds=10**10, epsilon=0.5, delta=1e-4)
    assert rate < 1e-4


def test_what_was_accounted_for_is_remembered(monkeypatch):
    wanted = {"draws": 3, "rounds": 17, "epsilon": 0.731, "delta": 1e-4}
    rate = accounting.largest_rate(Pure(0.137), **wanted)
    monkeypatch.setattr(_core, "largest_rate", None)
    assert accounting.largest_rate(Pure(0.137), **wanted) == rate


# Neighbors --------------------------------------------------------------------------------------


def test_relations_never_mix_silently():
    added = GaussianMechanism(0.1, neighbors="add_remove")
    assert added.neighbors is Neighbors.ADD_REMOVE == "add_remove"
    with pytest.raises(ParameterError, match=r"add_remove, replace_one.*replace_one\(\)"):
        accounting.epsilon([added, Pure(0.1)], 1e-6)
    converted = accounting.replace_one(added)
    assert converted == GaussianMechanism(0.2)
    assert accounting.epsilon([converted, Pure(0.1)], 1e-6) > 0
    with pytest.raises(ParameterError, match="under add_remove"):
        accounting.replace_one(converted)


def test_replacing_is_removing_and_adding():
    def convert(kind, *parameters):
        return accounting.replace_one(kind(*parameters, neighbors="add_remove"))

    assert convert(Pure, 1) == Pure(2)
    assert convert(DiscreteLaplace, 1, 3) == DiscreteLaplace(2, 6)
    assert convert(ZCDP, 0.5) == ZCDP(2)
    approximate = convert(Approximate, 1, 1e-6)
    assert approximate.epsilon == 2
    assert sure(approximate.delta, (1 + math.e) * 1e-6, above=1e-12)
    with pytest.raises(ParameterError, match="delta = "):
        convert(Approximate, 1, 0.5)


def test_reprs_are_calls():
    for mechanism in KINDS:
        assert eval(repr(mechanism)) == mechanism


def test_rdp_says_that_it_loses():
    with pytest.warns(UserWarning, match="twice the epsilon"):
        accounting.epsilon(KINDS[6], 1e-6, accountant="rdp")


# Bad input ---------------------------------------------------------------------------------------

GOOD = GaussianMechanism(0.5)
CALIBRATION = {"epsilon": 1, "delta": 1e-6}
BAD = {
    "mu nan": (lambda: GaussianMechanism(math.nan), "mu"),
    "mu text": (lambda: GaussianMechanism("1"), "mu"),
    "mu none": (lambda: GaussianMechanism(None), "mu"),
    "epsilon negative": (lambda: Pure(-1), "epsilon"),
    "epsilon infinite": (lambda: LaplaceMechanism(math.inf), "epsilon"),
    "epsilon zero": (lambda: BoundedRange(0), "epsilon"),
    "delta one": (lambda: Approximate(1, 1), "delta"),
    "delta zero": (lambda: Approximate(1, 0), "delta"),
    "rho": (lambda: ZCDP(-1), "rho"),
    "sensitivity float": (lambda: DiscreteLaplace(1, 1.5), "sensitivity"),
    "sensitivity huge": (lambda: DiscreteLaplace(1, 10**6), "sensitivity"),
    "neighbors": (lambda: Pure(1, neighbors="both"), "neighbors"),
    "rate": (lambda: Subsampled(GOOD, draws=1, rate=1.5), "rate"),
    "rate zero": (lambda: Subsampled(GOOD, draws=1, rate=0), "rate"),
    "rate of a sum": (lambda: SampledSum(1.0, rate=10_001), "rate"),
    "rate of a sum nan": (lambda: SampledSum(1.0, rate=math.nan), "rate"),
    "rate of a sum zero": (lambda: SampledSum(1.0, rate=0), "rate"),
    "mu of a sum": (lambda: SampledSum(0, rate=0.1), "mu"),
    "base a sum": (lambda: Subsampled(SampledSum(1.0, rate=0.1), draws=1, rate=0.1), "base"),
    "sum added": (lambda: SampledSum(1.0, rate=0.1, neighbors="add_remove"), "neighbors"),
    "draws float": (lambda: Subsampled(GOOD, draws=1.0, rate=0.1), "draws"),
    "draws zero": (lambda: Subsampled(GOOD, draws=0, rate=0.1), "draws"),
    "draws huge": (lambda: Subsampled(GOOD, draws=2**60, rate=0.1), "draws"),
    "changes": (lambda: Subsampled(GOOD, draws=2**50, rate=0.5), r"draws \* rate"),
    "atoms": (
        lambda: Subsampled(DiscreteLaplace(1, 4000), draws=10, rate=0.5),
        r"sensitivity \* draws",
    ),
    "rounds too many": (
        lambda: accounting.optimal_composition(1, 0, 10**9, target_delta=0.1),
        "rounds",
    ),
    "base": (lambda: Subsampled(3, draws=1, rate=0.1), "base"),
    "base sampled": (lambda: Subsampled(KINDS[6], draws=1, rate=0.1), "base"),
    "base added": (
        lambda: Subsampled(Pure(1, neighbors="add_remove"), draws=1, rate=0.1),
        "neighbors = 'add_remove'",
    ),
    "target epsilon": (lambda: accounting.delta(GOOD, -1), "epsilon"),
    "target epsilon nan": (lambda: accounting.delta(GOOD, math.nan), "epsilon"),
    "target delta": (lambda: accounting.epsilon(GOOD, 0), "delta"),
    "target delta one": (lambda: accounting.epsilon(GOOD, 1), "delta"),
    "accountant": (lambda: accounting.epsilon(GOOD, 0.1, accountant="moments"), "accountant"),
    "empty": (lambda: accounting.epsilon([], 0.1), "mechanisms is empty"),
    "not mechanisms": (lambda: accounting.epsilon(1.0, 0.1), "mechanisms = 1.0"),
    "no mechanism in it": (lambda: accounting.epsilon([1.0], 0.1), "mechanisms holds 1.0"),
    "rounds zero": (lambda: accounting.epsilon([(GOOD, 0)], 0.1), "rounds = 0"),
    "rounds true": (lambda: accounting.epsilon([(GOOD, True)], 0.1), "rounds = True"),
    "no target": (lambda: accounting.optimal_composition(1, 0, 2), "target_delta"),
    "rounds": (lambda: accounting.optimal_composition(1, 0, 0, target_delta=0.1), "rounds"),
    "order": (lambda: accounting.renyi_divergence(GOOD, 1), "order"),
    "mechanism": (lambda: accounting.renyi_divergence(1, 2), "mechanism"),
    "orders": (lambda: accounting.renyi_epsilon([1, 2], [1, 2], 0.1), "orders"),
    "lengths": (lambda: accounting.renyi_epsilon([2], [1, 2], 0.1), "orders"),
    "divergences": (lambda: accounting.renyi_epsilon([2], [-1], 0.1), "divergences"),
    "no orders": (lambda: accounting.renyi_epsilon(None, [1], 0.1), "orders = None"),
    "one order": (lambda: accounting.renyi_epsilon(2, [1], 0.1), "orders = 2"),
    "no divergences": (lambda: accounting.renyi_epsilon([2], None, 0.1), "divergences = None"),
    "foreign memory": (
        lambda: accounting.renyi_epsilon(memoryview(np.array([2.0], ">f8")), [1], 0.1),
        "orders",
    ),
    "pair": (lambda: accounting.basic_composition([1.0]), "guarantees"),
    "pair delta": (lambda: accounting.basic_composition([(1, 2)]), "delta"),
    "gaussian": (lambda: accounting.gaussian_mu(-1, 0.1), "epsilon"),
    "gaussian mu": (lambda: accounting.gaussian_delta(0, 1), "mu"),
    "low": (lambda: accounting.smallest_noise(Pure, low=0, **CALIBRATION), "low"),
    "order of ends": (lambda: accounting.smallest_noise(Pure, low=2, high=1, **CALIBRATION), "low"),
    "high": (
        lambda: accounting.smallest_noise(
            lambda s: GaussianMechanism(1 / s), high=1, **CALIBRATION
        ),
        "high",
    ),
    "rate out of reach": (
        lambda: accounting.largest_rate(
            Approximate(1, 0.999), draws=1, rounds=10**9, epsilon=1e-9, delta=1e-300
        ),
        "no value",
    ),
}


@each_case("case", BAD)
def test_bad_input_names_the_argument(case):
    call, pattern = BAD[case]
    with pytest.raises(ParameterError, match=pattern):
        call()


@pytest.mark.parametrize("epsilon", [705.0, 709.7, 711.0, 715.0])
def test_two_replacements_with_an_epsilon_beyond_the_exponents_of_floats(epsilon):
    base = Approximate(epsilon, 1e-310, neighbors="add_remove")
    exact = Decimal.from_float(1e-310) * (1 + Decimal(epsilon).exp())
    if exact < 1:
        result = accounting.replace_one(base).delta
        assert exact <= Decimal(result) <= exact * (1 + Decimal("1e-11"))
    else:
        with pytest.raises(ParameterError, match="delta"):
            accounting.replace_one(base)


@pytest.mark.parametrize(
    ("mu", "epsilon", "least"),
    [(6.666202862242731e16, 2.2219130300286592e33, 0.0208), (1e18, 5e35, 0.4), (1e100, 5e199, 0.4)],
)
def test_gaussian_delta_bears_an_epsilon_that_rounding_moves_by_deviations(mu, epsilon, least):
    assert least <= accounting.gaussian_delta(mu, epsilon) <= 1


def test_a_subsample_shows_no_less_than_all_records_do():
    """Its own window leaves the range of floats; that of the whole does not."""
    rest = Subsampled(GaussianMechanism(4.22), draws=1, rate=4e-9)
    sampled = [Subsampled(GaussianMechanism(19.6), draws=25, rate=0.415), rest]
    whole = [Subsampled(GaussianMechanism(19.6), draws=25, rate=1.0), rest]
    result = accounting.epsilon(sampled, 4.4e-4)
    assert result <= accounting.epsilon(whole, 4.4e-4) * (1 + 1e-3) < math.inf
    assert accounting.delta(sampled, result) <= 4.4e-4 * (1 + 1e-6)


@pytest.mark.parametrize("bound", [
    lambda made: accounting.epsilon(made, 1e-6, accountant="rdp"),
    lambda made: accounting.delta(made, 1.0, accountant="rdp"),
])  # fmt: skip
def test_a_warning_of_the_accountant_names_the_line_of_the_caller(bound):
    with pytest.warns(UserWarning, match="twice the epsilon") as caught:
        bound([(accounting.Subsampled(Pure(1.0), draws=1, rate=0.1), 10)])
    places = [(warning.filename, warning.lineno) for warning in caught]
    assert places == [(__file__, bound.__code__.co_firstlineno)]


def test_rates_and_draws_of_subsamples_are_given_by_name():
    """A number in another's place would be another promise."""
    step = accounting.GaussianMechanism(1.0)
    for made in (
        lambda: accounting.SampledSum(1.0, 0.1),
        lambda: accounting.Subsampled(step, 5, 0.1),
    ):
        with pytest.raises(TypeError):
            made()
