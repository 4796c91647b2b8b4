"""Randomizers: privacy, bias and variance by exact computation; draws; mergeable aggregates."""

import concurrent.futures
import functools
import itertools
import json
import math
import multiprocessing
import operator
import pickle
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hdp_fast import local
from hdp_fast.exceptions import HdpFastError, ParameterError
from hdp_fast.local import (
    Aggregate,
    BinaryResponse,
    GaussianRandomizer,
    KaryResponse,
    LaplaceRandomizer,
    Piecewise,
    ProjectiveGeometryResponse,
    SubsetSelection,
    best_frequency,
    best_randomizer,
    randomizer_of,
)
from hdp_fast.local.estimation import estimate_exactly
from hdp_fast.local.randomizers.aggregates import Turnout, split_failure
from hdp_fast.local.randomizers.base import half_width
from hdp_fast.local.randomizers.mean import Moments
from hdp_fast.record import PrivacyRecord
from hdp_fast.reference import local as reference
from hdp_fast.reference.parity import exp_bounds

EPSILONS = [0.1, 0.5, 1.0, 3.0, 6.0]
WIDE = (-2.0, 6.0)
MEANS = [
    BinaryResponse(1.0, (0, 1)),
    BinaryResponse(0.3, WIDE),
    LaplaceRandomizer(1.0, (0, 1)),
    LaplaceRandomizer(5.0, WIDE),
    GaussianRandomizer(1.0, 1e-6, (0, 1)),
    GaussianRandomizer(4.0, 1e-3, WIDE),
    GaussianRandomizer.printed(2.0, 1e-6, (0, 1)),
    Piecewise(0.5, (0, 1)),
    Piecewise(4.0, WIDE),
]
FREQUENCIES = [
    KaryResponse(2, 0.5),
    KaryResponse(5, 2.0),
    SubsetSelection(2, 1.0),
    SubsetSelection(8, 1.0),
    SubsetSelection(20, 0.3),
    SubsetSelection(40, 1.0),
    ProjectiveGeometryResponse(2, 1.0),
    ProjectiveGeometryResponse(20, 0.5),
    ProjectiveGeometryResponse(20, 2.0),
    ProjectiveGeometryResponse(9, 6.0),
]
RANDOMIZERS = MEANS + FREQUENCIES
MADE = BinaryResponse(1.0, (0, 1))
COUNTED = KaryResponse(3, 1.0)
each_mean = pytest.mark.parametrize("randomizer", MEANS, ids=str)
each_frequency = pytest.mark.parametrize("randomizer", FREQUENCIES, ids=str)
each = pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=str)


def outcomes(randomizer):
    """All that is ever reported, but for a probability below 1e-30."""
    least, most = randomizer.report_range
    return np.arange(least, most + 1)


def law(randomizer, values):
    """Probabilities (values, outcomes)."""
    return np.exp(randomizer.log_probability(outcomes(randomizer), np.asarray(values)[:, None]))


def values_of(randomizer):
    """Values of all kinds, for a mean the ends, grid points and what lies between."""
    if hasattr(randomizer, "k"):
        return np.arange(randomizer.k)
    low, high = randomizer.bounds
    return low + (high - low) * np.array([0.0, 2.0**-12, 0.1, 1 / 3, 0.5, 0.75, 0.999, 1.0])


# Privacy ------------------------------------------------------------------------------------------


def finite_laws(kind, epsilon):
    """Laws for values whose mixtures are those for all values, in exact fractions."""
    if kind is BinaryResponse:
        truth = BinaryResponse(epsilon, (0, 1))._truth
        return [reference.binary_law(Fraction(place), truth) for place in (0, 1)]
    if kind is Piecewise:
        made = Piecewise(epsilon, (0, 1))
        steps, length = 1 << made._sizes[0], made._sizes[1]
        starts = (0, 1, length - 1, length, steps // 2, steps)
        windows = [range(start, start + length) for start in starts]
        return [
            reference.own_or_any(own, steps + length, made._keep_probability) for own in windows
        ]
    k, made = kind[1], kind[0](kind[1], epsilon)
    if kind[0] is KaryResponse:
        return [reference.own_or_any([value], k, made._keep_probability) for value in range(k)]
    owns, outcomes = own_reports(made), made.report_range[1] + 1
    return [reference.own_or_any(own, outcomes, made._keep_probability) for own in owns]


def own_reports(made):
    """The reports that hold each value, one by one."""
    if isinstance(made, ProjectiveGeometryResponse):
        return reference.hyperplanes(made.k, *made._sizes)
    return reference.sets_with_each(made.k, *made._sizes)


KINDS = [BinaryResponse, Piecewise]
SETS = (SubsetSelection, ProjectiveGeometryResponse)
KINDS += [(kind, k) for kind in (KaryResponse, *SETS) for k in (2, 3, 20)]
# All sets of one to three, and progressions of more.
KINDS[-4] = (SubsetSelection, 40)


def named(kind):
    return kind.__name__ if isinstance(kind, type) else f"{kind[0].__name__}-{kind[1]}"


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_no_report_is_more_than_exp_epsilon_times_as_likely(kind, epsilon):
    laws = finite_laws(kind, epsilon)
    assert {sum(each) for each in laws} == {1}
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    lower, _ = exp_bounds(Fraction(epsilon))
    # Nothing is wasted, either: a probability larger by a millionth would break the promise.
    assert lower * (1 - Fraction(1, 10**9)) <= worst <= lower


@pytest.mark.thorough(cases=16)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_log_probability_is_the_exact_law(kind, epsilon):
    if isinstance(kind, type):
        made = kind(epsilon, (0, 1))
        steps = 1 << getattr(made, "_sizes", (0, 0))[0]
        length = getattr(made, "_sizes", (0, 0))[1]
        places = np.array([0, 1, length - 1, length, steps // 2, steps]) / steps
        values = places if kind is Piecewise else np.array([0.0, 1.0])
    else:
        made, values = kind[0](kind[1], epsilon), np.arange(kind[1])
    expected = np.array(finite_laws(kind, epsilon)).astype(float)
    assert law(made, values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "randomizer", [BinaryResponse(0.7, (0, 1)), Piecewise(2.0, (0, 1))], ids=str
)
def test_between_grid_points_the_law_is_the_mixture(randomizer):
    steps = 1 << getattr(randomizer, "_sizes", (0, 0))[0]
    ends = law(randomizer, np.arange(steps + 1) / steps)
    for place in (0.25, 0.3, steps - 0.125):
        start = min(math.floor(place), steps - 1)
        expected = (start + 1 - place) * ends[start] + (place - start) * ends[start + 1]
        assert law(randomizer, [place / steps])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1 / 3, 1.0, 8.0, 59.0])
def test_laplace_noise_is_large_enough(epsilon):
    log2_steps, scale = LaplaceRandomizer(epsilon, (0, 1))._grid
    # Shifted by all steps, a discrete Laplace law changes by exp(steps / scale) and no more.
    assert 2**log2_steps / scale <= min(Fraction(epsilon), Fraction(repr(epsilon)))
    assert 2**log2_steps / scale >= Fraction(epsilon) * (1 - Fraction(1, 10**5))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_reports_differ_by_epsilon_on_a_grid_of_values(epsilon):
    made = LaplaceRandomizer(epsilon, (0, 1))
    logs = made.log_probability(outcomes(made)[::7], values_of(made)[:, None])
    worst = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert epsilon * (1 - 1e-5) <= worst <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 5.0, 8.0])
def test_paper_agents_needed_is_printed_and_enough_where_it_is_said_to_be(epsilon):
    made, delta, alpha, beta = GaussianRandomizer.printed(epsilon, 1e-6, (0, 1)), 1e-6, 0.05, 0.05
    N, valid = made.paper_agents_needed(alpha=alpha, beta=beta)
    assert math.ceil(4 * math.log(2 / delta) * math.log(4 / beta) / (epsilon * alpha) ** 2) == N
    variance = 2 * math.log(2 / delta) / epsilon**2
    # A number in [0, 1] with Gaussian noise is sub-Gaussian with 1/4 and the variance of the noise.
    bound = 2 * math.exp(-N * alpha**2 / 2 / (variance + 0.25))
    assert valid is (bound <= beta) is (epsilon < 4.5)
    assert local.agents_needed(alpha=alpha, beta=beta, epsilon=epsilon) < N


def test_the_printed_number_of_agents_is_too_small_for_coins_at_large_epsilons():
    # Where the printed randomizer is refused already: coins of 1/2 alone are off more often.
    delta, alpha, beta, epsilon = 1e-6, 0.05, 0.05, 20.0
    N = math.ceil(4 * math.log(2 / delta) * math.log(4 / beta) / (epsilon * alpha) ** 2)
    variance = 2 * math.log(2 / delta) / epsilon**2 + 0.25
    assert N == 255
    assert 2 * stats.norm.sf(alpha * math.sqrt(N / variance)) > 3 * beta
    with pytest.raises(ParameterError, match="printed noise"):
        GaussianRandomizer.printed(epsilon, delta, (0, 1))


def sums_of_laplace(width, n):
    """The chance that a mean of n standard Laplace numbers is off by width: gamma differences."""
    g = np.linspace(0, 30 + 12 * n, 200_001)
    tail = stats.gamma.pdf(g, n) * stats.gamma.sf(g + n * width, n)
    return 2 * float(np.trapezoid(tail, g))


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_tail_bounds_of_the_appendix_hold_but_for_sums_of_laplace_numbers_far_out(n):
    for width in (0.1, 0.5, 1.0, 2.0, 3.9, 4.1, 5.0):
        exact = sums_of_laplace(width, n)
        printed = reference.laplace_sum(2 * width, n, 2.0, printed=True)
        assert exact <= reference.laplace_sum(2 * width, n, 2.0) * (1 + 1e-9)
        assert (exact <= printed) is (width < {1: 4, 2: 3.5, 5: 2.5, 20: 1.5}[n])
    for mu, phi in itertools.product((0.1, 0.5), (0.1, 0.5, 1.0)):
        coins = stats.binom(20 * n, mu)
        above, below = reference.chernoff(phi, mu, 20 * n)
        mean = 20 * n * mu
        assert coins.sf(math.ceil((1 + phi) * mean - 1e-9) - 1) <= above
        assert coins.cdf(math.floor((1 - phi) * mean + 1e-9)) <= below
        off = phi * mu
        both = coins.sf(math.ceil(mean + 20 * n * off - 1e-9) - 1)
        both += coins.cdf(math.floor(mean - 20 * n * off + 1e-9))
        assert both <= reference.hoeffding(off, 20 * n)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


GAUSSIANS = [(0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-2), (4.0, 1e-9), (9.0, 1e-4)]


@pytest.mark.parametrize(("epsilon", "delta"), GAUSSIANS)
def test_the_delta_of_gaussian_reports_is_the_promised_one(epsilon, delta):
    made = GaussianRandomizer(epsilon, delta, (0, 1))
    laws = law(made, values_of(made))
    worst = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(laws, 2))
    assert delta * 0.999 <= worst <= delta
    assert hockey_stick(laws[0], laws[-1], epsilon) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(7.90, 1e-2), (8.98, 1e-4), (9.72, 1e-6)])
def test_the_printed_gaussian_is_refused_where_it_breaks_its_promise(epsilon, delta):
    made = GaussianRandomizer.printed(epsilon, delta, (0, 1))
    assert made.variance() == pytest.approx(2 * math.log(2 / delta) / epsilon**2, rel=1e-5)
    laws = law(made, [0.0, 1.0])
    assert hockey_stick(*laws, epsilon) <= delta
    with pytest.raises(ParameterError, match="printed noise has a delta of"):
        GaussianRandomizer.printed(epsilon + 0.03, delta, (0, 1))


@each
def test_the_record_says_what_protects(randomizer):
    record = randomizer.record()
    assert (record.epsilon, record.delta) == (randomizer.epsilon, randomizer.delta)
    assert record.neighbors == "local"
    assert record.mechanism == f"local.{type(randomizer).__name__}"
    assert PrivacyRecord.from_json(record.to_json()) == record
    assert "seed" in randomizer.record(random_state=1).rng


# Bias and variance --------------------------------------------------------------------------------


@each
def test_probabilities_add_up_to_one(randomizer):
    assert law(randomizer, values_of(randomizer)).sum(axis=1) == pytest.approx(1, rel=1e-9)


@each
def test_what_is_never_reported_has_probability_zero(randomizer):
    least, most = randomizer.report_range
    far = [least - 1, most + 1, -(2**62), 2**62]
    assert (randomizer.log_probability(far, values_of(randomizer)[0]) < -70).all()
    if randomizer in FREQUENCIES or isinstance(randomizer, BinaryResponse | Piecewise):
        assert (randomizer.log_probability(far, 0) == -math.inf).all()


@each_mean
def test_contributions_to_a_mean_are_unbiased_with_the_stated_variance(randomizer):
    least, more = map(float, randomizer._linear_map)
    low, high = randomizer.bounds
    contributions = low + (high - low) * (outcomes(randomizer) - least) / more
    values = values_of(randomizer)
    means, squares = (law(randomizer, values) @ contributions**power for power in (1, 2))
    assert means == pytest.approx(values, abs=1e-6)
    stated = [randomizer.variance(u) for u in values]
    assert squares - means**2 == pytest.approx(stated, rel=1e-6)
    everywhere = low + (high - low) * np.linspace(0, 1, 1001)
    assert max(map(randomizer.variance, everywhere)) <= randomizer.variance() * (1 + 1e-12)
    assert max(stated) >= randomizer.variance() * (1 - 1e-5)


@each_frequency
def test_contributions_to_frequencies_are_unbiased_with_the_stated_variance(randomizer):
    singles = [randomizer.aggregate([w]).frequencies() for w in outcomes(randomizer)]
    chances, contributions = law(randomizer, values_of(randomizer)), np.array(singles)
    means = chances @ contributions
    assert means == pytest.approx(np.eye(randomizer.k), abs=1e-9)
    variances = chances @ contributions**2 - means**2
    stated = [randomizer.variance(u) for u in range(randomizer.k)]
    assert variances.mean(axis=1) == pytest.approx(stated, rel=1e-9)
    assert max(stated) == pytest.approx(randomizer.variance())
    bounds = [bound.variance for bound in randomizer._deviations(sampled=True, binary=False)]
    assert variances.max() <= min(bounds) * (1 + 1e-9)
    assert np.ptp(contributions) == pytest.approx(randomizer._span)


TABLE = {
    0.5: (4.168, 8.0, 5.306, 64.9),
    1.0: (1.171, 2.0, 1.306, 17.85),
    2.0: (0.431, 0.5, 0.307, 4.98),
}


@pytest.mark.parametrize("epsilon", TABLE)
def test_variances_are_those_of_the_published_formulas(epsilon):
    kinds = [
        BinaryResponse,
        LaplaceRandomizer,
        Piecewise,
        functools.partial(GaussianRandomizer, delta=1e-6),
    ]
    found = [kind(epsilon, bounds=(0, 1)).variance() for kind in kinds]
    assert found == pytest.approx(TABLE[epsilon], rel=2e-3)


def optimum(k, epsilon):
    """The variance of all w-subsets of k categories, for the best w (Ye and Barg 2018)."""
    found, middle = [], k / (math.exp(epsilon) + 1)
    for w in range(max(1, math.floor(middle) - 2), min(k, math.ceil(middle) + 3)):
        odds, inside, both = math.exp(epsilon), w / k, w * (w - 1) / (k * (k - 1))
        scale = (odds - 1) * inside + 1
        truth, lie = odds * inside / scale, (odds * both + inside - both) / scale
        squares = truth * (1 - truth) + (k - 1) * lie * (1 - lie)
        found.append(squares / k / (truth - lie) ** 2)
    return min(found)


@pytest.mark.parametrize("epsilon", [0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
def test_the_best_frequency_oracle_is_within_three_percent_of_the_optimum(epsilon):
    few, some = range(2, 40), (50, 54, 90, 100, 115, 200, 500, 1024)
    many = (1025, 1500, 2500, 5000, 10_000, 30_000, 100_000)
    for k in (*few, *some, *many):
        assert best_frequency(k, epsilon).variance() <= 1.03 * optimum(k, epsilon)


def test_the_best_frequency_oracle_takes_few_reports_where_that_costs_little():
    assert isinstance(best_frequency(5, 2.0), KaryResponse)
    assert isinstance(best_frequency(14, 1.5), SubsetSelection)
    for k in (1025, 1 << 24):
        made = best_frequency(k, 1.0)
        assert isinstance(made, ProjectiveGeometryResponse)
        assert made.report_range[1] < 16 * k
    # Never worse than k-ary response, whatever epsilon.
    for epsilon in (1e-9, 0.1, 5.0, 8.0, 12.0, 60.0):
        for k in (2, 30, 1000, 5000):
            made = best_frequency(k, epsilon)
            assert made.variance() <= 1.005 * KaryResponse(k, epsilon).variance()


@pytest.mark.parametrize("made", FREQUENCIES, ids=str)
def test_designs_hold_each_value_and_each_pair_alike(made):
    """By one matrix product over all reports; the law of the estimate rests on it."""
    reports, holding, shared = made._design
    values = np.arange(made.k)
    held = made._hold(np.arange(reports)[:, None], values).astype(np.int64)
    assert (held.T @ held == shared + (holding - shared) * np.eye(made.k, dtype=int)).all()


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.0, 3.0, 60.0, 700.0])
@pytest.mark.parametrize("kind", [KaryResponse, *SETS])
def test_all_inputs_and_reports_in_exact_fractions(kind, epsilon):
    """Ratios of probabilities, their sum, and estimates without bias, for all pairs of values."""
    for k in (2, 3, 5, 7, 8, 13):
        made = kind(k, epsilon)
        reports = made.report_range[1] + 1
        if kind is KaryResponse:
            owns = [{value} for value in range(k)]
        else:
            owns = [set(own) for own in own_reports(made)]
        laws = [reference.own_or_any(list(own), reports, made._keep_probability) for own in owns]
        assert {sum(each) for each in laws} == {1}
        worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
        assert worst <= exp_bounds(Fraction(min(epsilon, 60.0)))[0]
        for u, x in itertools.product(range(k), repeat=2):
            held = sum(laws[u][report] for report in owns[x])
            assert (held - made._lie) / (made._truth - made._lie) == (u == x)


# Draws --------------------------------------------------------------------------------------------


def pooled(counts, chances, draws):
    """Cells of at least 20 expected, the rest in one."""
    large = chances * draws >= 20
    rest = [counts[~large].sum()], [chances[~large].sum()]
    return tuple(
        np.append(side[large], more) for side, more in zip((counts, chances), rest, strict=True)
    )


def misfit(randomizer, u, claimed=None, draws=100_000, seed=0):
    """The p-value of Pearson's statistic of draws about one value, by a law claimed for them."""
    reports = randomizer.sample(np.full(draws, u), random_state=seed)
    counts = np.bincount(reports.astype(np.int64) - randomizer.report_range[0])
    chances = law(claimed or randomizer, [u])[0]
    counts = np.pad(counts, (0, chances.size - counts.size))
    # Neighboring outcomes in groups, so that noise over thousands of integers fills its cells.
    group = max(1, chances.size // 200)
    starts = np.arange(0, chances.size, group)
    counts, chances = (np.add.reduceat(side, starts) for side in (counts, chances))
    counts, chances = pooled(counts, chances, draws)
    expected = chances * draws
    kept = expected > 0
    assert counts[~kept].sum() == 0
    value = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    return stats.chi2.sf(value, kept.sum() - 1)


@each
def test_draws_follow_log_probability(randomizer):
    values = values_of(randomizer)
    for u in values[[0, len(values) // 2, -1]]:
        assert misfit(randomizer, u) > 1e-4


@pytest.mark.parametrize("k", [2, 8])
@pytest.mark.parametrize("kind", [KaryResponse, *SETS])
def test_a_slightly_larger_epsilon_would_be_seen(kind, k):
    assert misfit(kind(k, 1.1), 0, claimed=kind(k, 1.0)) < 1e-6


@each
def test_seeded_reports_do_not_depend_on_threads(randomizer, monkeypatch):
    values, answers = np.resize(values_of(randomizer), 200_000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        answers.append(randomizer.sample(values, random_state=5))
    assert np.array_equal(*answers)
    assert not np.array_equal(answers[0], randomizer.sample(values, random_state=6))
    assert not np.array_equal(answers[0], randomizer.sample(values))


def test_bits_are_answered_as_numbers_are():
    made = BinaryResponse(60.0, (0, 1))
    bits = np.random.default_rng(0).integers(0, 2, 1000)
    for kind in (bool, np.uint8, np.int8, np.int64, np.float32, float):
        assert np.array_equal(made.sample(bits.astype(kind)), bits)
    assert made.sample([-3, 0, 1, 255]).tolist() == [0, 0, 1, 1]
    assert BinaryResponse(60.0, (0, 4)).sample(4 * bits).tolist() == bits.tolist()


@each_mean
def test_no_number_is_an_error(randomizer):
    low, high = randomizer.bounds
    strange = [math.nan, -math.inf, -1e308, math.inf, 1e308]
    near = [low, low, low, high, high]
    assert np.array_equal(
        randomizer.sample(strange, random_state=1), randomizer.sample(near, random_state=1)
    )
    reports = outcomes(randomizer)[::50]
    for u, same in zip(strange, near, strict=True):
        assert np.array_equal(
            randomizer.log_probability(reports, u), randomizer.log_probability(reports, same)
        )


@each_frequency
def test_no_integer_is_an_error(randomizer):
    k = randomizer.k
    for kind in (np.int64, np.uint64, np.int8, np.uint8):
        info = np.iinfo(kind)
        ends = np.resize(np.array([info.min, info.max], kind), 200)
        near = np.resize([0, min(k - 1, info.max)], 200)
        assert np.array_equal(
            randomizer.sample(ends, random_state=1), randomizer.sample(near, random_state=1)
        )
    assert randomizer.log_probability(0, -5) == randomizer.log_probability(0, 0)
    assert randomizer.variance(k + 7) == randomizer.variance(k - 1)


class Hostile:
    """A value whose own code fails."""

    def __float__(self):
        raise RuntimeError("a private value")

    __len__ = __array__ = __index__ = __float__


# What may be held in the place of a number, and which number it counts as; None: as no number.
HELD = [
    *((np.longdouble("1e4000"), math.inf), (-np.longdouble("1e4000"), -math.inf)),
    *((10**30, math.inf), (-(10**400), -math.inf), (2**63, math.inf), (-1, -1)),
    *((Decimal("1e9999"), math.inf), (Decimal("2"), 2), (Decimal("sNaN"), None)),
    *((Fraction(2, 1), 2), (Fraction(10**400, 3), math.inf), (Fraction(-(10**400), 3), -math.inf)),
    *((" 2 ", 2), ("-inf", -math.inf), ("nan", None), ("two", None), ("", None), (b"2", 2)),
    *((None, None), (math.nan, None), (1j, None), (np.complex64(2), None), (np.ma.masked, None)),
    *(([2], None), ((2, 2), None), ([], None), ({}, None), (np.array([2]), None)),
    *((np.array(2), 2), (True, 1), (np.float16(2), 2), (np.uint8(2), 2), (2.0, 2)),
    *((np.datetime64("2026"), None), (object(), None), (Hostile(), None)),
]
each_held = pytest.mark.parametrize(
    ("value", "number"), HELD, ids=[f"{i}-{type(v).__name__}" for i, (v, _) in enumerate(HELD)]
)


@each
@each_held
def test_whatever_a_device_holds_is_reported_as_a_number_in_range(randomizer, value, number):
    """No exception and, as all warnings are errors here, no warning."""
    is_mean = randomizer in MEANS
    low, high = randomizer.bounds if is_mean else (0, randomizer.k - 1)
    default = low if is_mean else high
    counts_as = default if number is None else min(max(number, low), high)
    expected = randomizer.sample([counts_as] * 40, random_state=1)
    objects = np.empty(40, object)
    for place in range(40):
        objects[place] = value
    for held in [value] * 40, (value,) * 40, objects:
        assert np.array_equal(randomizer.sample(held, random_state=1), expected)


@each
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_arrays_of_any_real_type_neither_warn_nor_fail(randomizer, kind):
    info = np.finfo(kind)
    held = np.resize(np.array([info.max, info.min, np.nan, np.inf, -np.inf, 1], kind), 60)
    with np.errstate(all="raise"):
        found = randomizer.sample(held, random_state=1)
    assert np.array_equal(found, randomizer.sample(held.tolist(), random_state=1))


@each_frequency
def test_a_fraction_is_no_category_and_counts_as_the_last(randomizer):
    expected = randomizer.sample([randomizer.k - 1] * 40, random_state=1)
    for kind in (float, np.float32):
        assert np.array_equal(randomizer.sample(np.full(40, 0.5, kind), random_state=1), expected)


@each
def test_no_values_give_no_reports(randomizer):
    assert randomizer.sample([]).shape == (0,)
    assert randomizer.aggregate(randomizer.sample([])).reports == 0


# Agents needed ------------------------------------------------------------------------------------


def failure(randomizer, population, agents, alpha):
    """Pr[|estimate - mean| > alpha] for agents drawn from {value: share}, by convolution."""
    chances = np.array(list(population.values())) @ law(randomizer, list(population))
    likely = np.flatnonzero(chances > 1e-9)
    first, chances = likely[0], chances[likely[0] : likely[-1] + 1]
    size = 1 << math.ceil(math.log2(agents * chances.size))
    sums = np.fft.irfft(np.fft.rfft(chances, size) ** agents, size)
    least, more = map(float, randomizer._linear_map)
    low, high = randomizer.bounds
    totals = np.arange(size) + agents * (randomizer.report_range[0] + first)
    estimates = low + (high - low) * (totals / agents - least) / more
    mean = sum(value * share for value, share in population.items())
    return float(sums[np.abs(estimates - mean) > alpha].sum())


@pytest.mark.parametrize(
    ("made", "alpha"),
    [
        (BinaryResponse(1.0, WIDE), 1.6),
        (BinaryResponse(4.0, WIDE), 1.6),
        (LaplaceRandomizer(4.0, WIDE), 2.4),
        (Piecewise(1.0, WIDE), 1.2),
        (Piecewise(4.0, WIDE), 0.8),
    ],
    ids=str,
)
@pytest.mark.parametrize("sampled", [True, False])
def test_so_many_agents_are_enough(made, alpha, sampled):
    beta, apart = 0.05, [{-2.0: 0.5, 6.0: 0.5}, {-2.0: 0.1, 6.0: 0.9}]
    agents = made.agents_needed(alpha=alpha, beta=beta, sampled=sampled)
    populations = apart if sampled else [{-2.0: 1.0}, {2.0: 1.0}]
    assert max(failure(made, each, agents, alpha) for each in populations) <= beta
    # A quarter of them is not enough.
    assert max(failure(made, each, agents // 4, alpha) for each in populations) > beta


def test_so_many_bits_are_those_of_agents_needed():
    for epsilon in EPSILONS:
        goal = {"alpha": 0.05, "beta": 0.01}
        made = BinaryResponse(epsilon, (0, 1)).agents_needed(**goal)
        assert made == local.agents_needed(epsilon=epsilon, **goal)
        wide = BinaryResponse(epsilon, WIDE).agents_needed(alpha=0.4, beta=0.01)
        assert abs(wide - made) <= 1


@pytest.mark.parametrize(
    "randomizer",
    [KaryResponse(5, 2.0), SubsetSelection(12, 1.5), ProjectiveGeometryResponse(20, 2.5)],
    ids=str,
)
def test_so_many_agents_are_enough_for_all_frequencies(randomizer):
    alpha, beta = 0.2, 0.05
    agents = randomizer.agents_needed(alpha=alpha, beta=beta)
    values, rng = np.zeros(agents, np.int64), np.random.default_rng(0)
    missed = covered = 0
    for _ in range(200):
        population = values if rng.random() < 0.5 else rng.integers(0, randomizer.k, agents)
        found = randomizer.aggregate(randomizer.sample(population, random_state=rng))
        held = np.bincount(population, minlength=randomizer.k) / agents
        error = np.abs(found.frequencies() - held).max()
        missed += error > alpha
        covered += error <= found.interval(beta)
        assert found.interval(beta) <= 1.1 * alpha
    # 10 of 200 are allowed; far fewer come, since a union over values is not tight.
    assert missed <= 10
    assert covered >= 190


def test_binary_response_needs_fewest_agents_where_they_are_sampled():
    for epsilon in (0.1, 1.0, 2.0, 8.0):
        assert best_randomizer(epsilon, 1e-6, bounds=(0, 1)) == BinaryResponse(epsilon, (0, 1))
        assert best_randomizer(
            epsilon, binary=True, sampled=False, bounds=(0, 1)
        ) == BinaryResponse(epsilon, (0, 1))
    assert best_randomizer(1.0, sampled=False, bounds=(0, 1)) == BinaryResponse(1.0, (0, 1))
    assert best_randomizer(3.0, 1e-6, bounds=WIDE, alpha=0.4, sampled=False) == Piecewise(3.0, WIDE)
    # Too little delta for Gaussian noise leaves the others.
    assert best_randomizer(1.0, 1e-300, bounds=(0, 1)) == BinaryResponse(1.0, (0, 1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_a_guess_of_the_spread_takes_the_randomizer_with_the_least_variance_there(epsilon):
    kinds = [BinaryResponse, Piecewise, LaplaceRandomizer]
    for spread in (0.2, 1.0, 2.0, 3.0, 4.0):
        made = best_randomizer(epsilon, bounds=WIDE, spread=spread)
        variances = [kind(epsilon, WIDE).variance(2.0 + spread) for kind in kinds]
        assert made.variance(2.0 + spread) == min(variances)
        # The variance depends on the distance from the middle alone, and by its square.
        assert made.variance(2.0 - spread) == pytest.approx(min(variances), rel=1e-3)
    assert best_randomizer(epsilon, bounds=WIDE, spread=4.0) == BinaryResponse(epsilon, WIDE)
    inside = BinaryResponse if epsilon < 1 else Piecewise
    assert isinstance(best_randomizer(epsilon, bounds=WIDE, spread=0.5), inside)


def test_a_frequency_bound_that_knows_the_counts_is_the_better_one_for_many_rare_values():
    made = ProjectiveGeometryResponse(256, 3.0)
    values = np.arange(200_000) % 256
    found = made.aggregate(made.sample(values, random_state=1))
    half = found.interval(0.05)
    alone = made.agents_needed(alpha=half, beta=0.05)
    assert alone > 1.5 * found.reports


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
@pytest.mark.parametrize(
    "made", [ProjectiveGeometryResponse(256, 3.0), KaryResponse(200, 2.0)], ids=str
)
def test_all_that_an_interval_rests_on_fails_with_probability_beta_at_most(made, beta):
    """The width is the least one of known bounds and Bernstein's with the variance from reports."""
    ends, spare = split_failure(beta, made.k)
    # Two sides, and one bound on a variance, for each category.
    assert made.k * (2 * math.exp(-ends) + math.exp(-spare)) == pytest.approx(beta)
    for values in ([0, 1], np.arange(200_000) % made.k):
        found = made.aggregate(made.sample(values, random_state=1))
        n, shares = found.reports, made._add_up(found._total) / found.reports
        spread = np.sqrt(shares * (1 - shares) * n / (n - 1)).max()
        sigma = made._span * (spread + math.sqrt(2 * spare / (n - 1)))
        bernstein = sigma * math.sqrt(2 * ends / n) + made._span * ends / (3 * n)
        known = half_width(made._deviations(sampled=True, binary=False), n, ends)
        assert found.interval(beta) == pytest.approx(min(known, bernstein))


# Intervals of means -------------------------------------------------------------------------------


def populations(rng, count):
    """Places of people: at the ends, in the middle, skew, and all alike."""
    yield from (np.full(count, place) for place in (0.0, 0.15, 0.5, 1.0))
    yield rng.integers(0, 2, count).astype(float)
    yield (rng.random(count) < 0.02).astype(float)
    yield rng.random(count)
    yield rng.normal(0.5, 0.1, count).clip(0, 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0, 45.0])
def test_the_variance_of_the_noise_is_bounded_by_squares(epsilon):
    """With the exact means of reports and of their squares, and nothing for their chance."""
    made, rng = Piecewise(epsilon, (0, 1)), np.random.default_rng(0)
    steps, (_, slope) = 1 << made._sizes[0], made._linear_map
    for places in populations(rng, 20):
        starts, rests = np.divmod(places * steps, 1)
        laws = list(zip(starts.astype(int).tolist(), map(Fraction, rests), strict=True))
        total, squares = (
            sum(
                (1 - r) * made._moment(s, p) + (r * made._moment(s + 1, p) if r else 0)
                for s, r in laws
            )
            for p in (1, 2)
        )
        bound = float(
            made._bound_noise(Moments(total, squares), Turnout(len(places)), 0.0) / slope**2
        )
        exact = sum(made.variance(place) for place in places) / len(places)
        # Rounding to the grid is counted at its largest.
        assert exact * (1 - 1e-9) <= bound <= exact + 0.26 / steps**2 + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 6.0])
@pytest.mark.parametrize("sampled", [True, False])
def test_one_report_has_an_interval_that_holds(epsilon, sampled):
    """Exactly, from the law of the report."""
    made = Piecewise(epsilon, (0, 1))
    reports = outcomes(made)[:: max(1, made.report_range[1] // 400)]
    for beta in (0.5, 0.05):
        found = [made.aggregate([w]).estimate(beta, sampled=sampled) for w in reports]
        for place in (0.0, 0.3, 1.0):
            chances = law(made, [place])[0]
            held = [each.low <= place <= each.high for each in found]
            # Reports between two that hold hold, too, since ends are continuous in the report.
            first, last = np.flatnonzero(held)[[0, -1]]
            assert chances[reports[first] : reports[last] + 1].sum() >= 1 - beta


@pytest.mark.parametrize("beta", [0.9, 0.2, 0.01])
@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_intervals_of_bits_hold_exactly(count, beta):
    """By binomial sums where people are sampled, and by convolutions where they are these."""
    made, all_ones = BinaryResponse(1.5, (0, 1)), np.arange(count + 1)
    found = [
        made.aggregate(np.repeat([0, 1], [count - ones, ones])).estimate(beta) for ones in all_ones
    ]
    intercept, slope = map(float, made._linear_map)

    def missed(chances, mean):
        # What rounding errors move by a few units is no miss.
        out = [not each.low - 1e-12 <= mean <= each.high + 1e-12 for each in found]
        return float(np.array(chances)[out].sum())

    for mean in (0.0, 1e-3, 0.1, 0.35, 0.5, 0.9, 1.0):
        chances = stats.binom.pmf(all_ones, count, intercept + slope * mean)
        assert missed(chances, mean) <= beta
    for ones in {0, 1, count // 3, count - 1, count}:
        coins = [intercept + slope * (i < ones) for i in range(count)]
        chances = functools.reduce(np.convolve, [[1 - p, p] for p in coins])
        assert missed(chances, ones / count) <= beta


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_the_interval_for_the_people_asked_leaves_out_their_own_spread(epsilon):
    made, rng = Piecewise(epsilon, (0, 1)), np.random.default_rng(2)
    values = rng.random(9000)
    found = made.aggregate(made.sample(values, random_state=1))
    people, population = (found.estimate(0.05, sampled=sampled) for sampled in (False, True))
    known = half_width(made._deviations(sampled=False, binary=False), 9000, math.log(40))
    half = (people.high - people.low) / 2
    assert half <= 1.02 * known
    assert people.low <= values.mean() <= people.high
    if epsilon > 1:
        assert half < 0.9 * known
        assert half < 0.8 * (population.high - population.low) / 2


# Aggregates ---------------------------------------------------------------------------------------


def reports_of(randomizer, count=1000, seed=2):
    return randomizer.sample(np.resize(values_of(randomizer), count), random_state=seed)


@each
def test_parts_add_up_to_the_whole_in_any_order(randomizer):
    reports = reports_of(randomizer)
    whole = randomizer.aggregate(reports)
    parts = [randomizer.aggregate(part) for part in np.split(reports, [1, 1, 400, 777])]
    for order in itertools.permutations(parts):
        assert functools.reduce(operator.add, order) == whole
    assert (parts[0] + (parts[1] + parts[2])) + (parts[3] + parts[4]) == sum(parts)
    assert [part.reports for part in parts] == [1, 0, 399, 377, 223]
    assert parts[0].add(reports[1:]) == whole
    assert parts[2].reports == 399
    estimates = [
        each.frequencies().tolist() if randomizer in FREQUENCIES else each.estimate(0.1)
        for each in (whole, parts[0])
    ]
    assert estimates[0] == estimates[1]


@each
def test_reports_are_counted_exactly(randomizer):
    reports = reports_of(randomizer, 200_000)
    found = json.loads(randomizer.aggregate(reports).to_json())
    assert found["reports"] == 200_000
    if randomizer in FREQUENCIES:
        assert found["counts"] == np.bincount(reports, minlength=outcomes(randomizer).size).tolist()
    else:
        assert found["sum"] == sum(reports.tolist())
        assert found["squares"] == sum(report**2 for report in reports.tolist())


@each
def test_json_and_pickle_bring_back_the_same(randomizer):
    assert randomizer_of(randomizer.to_json()) == randomizer
    assert pickle.loads(pickle.dumps(randomizer)) == randomizer
    found = randomizer.aggregate(reports_of(randomizer))
    assert Aggregate.from_json(found.to_json()) == found
    assert type(found).from_json(found.to_json()).add(reports_of(randomizer)).reports == 2000
    assert pickle.loads(pickle.dumps(found)) == found


@each_mean
def test_means_are_estimated(randomizer):
    low, high = randomizer.bounds
    values = low + (high - low) * np.random.default_rng(3).random(20_000) ** 2
    found = randomizer.aggregate(randomizer.sample(values, random_state=1)).estimate(1e-6)
    assert low <= found.low < found.value < found.high <= high
    assert found.low <= values.mean() <= found.high
    error = math.sqrt(randomizer.variance() / values.size)
    assert abs(found.value - values.mean()) <= 4.9 * error


def test_an_estimate_of_bits_is_the_exact_one_within_that_of_estimate_mean():
    bits = np.random.default_rng(0).integers(0, 2, 5000)
    made = BinaryResponse(0.8, (0, 1))
    answers = made.sample(bits, random_state=1)
    found = made.aggregate(answers).estimate(0.05)
    ones = int(answers.sum())
    assert found == pytest.approx(estimate_exactly(ones, 5000, beta=0.05, epsilon=0.8))
    wide = local.estimate_mean(answers, beta=0.05, epsilon=0.8)
    assert found.value == pytest.approx(wide.value)
    assert wide.low < found.low < found.high < wide.high


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("k", [2, 3, 30])
@pytest.mark.parametrize("kind", SETS)
def test_frequencies_are_those_of_the_sets_one_by_one(kind, k, epsilon):
    made = kind(k, epsilon)
    reports = reports_of(made, 5000)
    counts = np.bincount(reports, minlength=made.report_range[1] + 1)
    held = np.array([counts[own].sum() for own in own_reports(made)])
    assert made._add_up(counts).tolist() == held.tolist()
    expected = (held / 5000 - float(made._lie)) / float(made._truth - made._lie)
    assert made.aggregate(reports).frequencies() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_reports_of_any_integer_type_are_added_up_alike():
    made = Piecewise(1.0, (0, 1))
    few = np.array([0, 1, 2, 77, 127, 127])
    for kind in (np.uint8, np.int8, np.int16, np.uint64, np.int64):
        assert made.aggregate(few.astype(kind)) == made.aggregate(few)
    assert made.aggregate(few)._total == Moments(334, 38192)
    assert made.aggregate(few.astype(bool)) == made.aggregate([0, 1, 1, 1, 1, 1])


def test_sums_of_huge_reports_do_not_wrap():
    made = Piecewise(60.0, (0, 1))
    most = made.report_range[1]
    assert most > 2**40
    found = made.aggregate(np.full(1 << 17, most))
    assert json.loads(found.to_json())["sum"] == most << 17
    assert json.loads(found.to_json())["squares"] == most**2 << 17
    least = LaplaceRandomizer(1e-9, (0, 1)).report_range[0]
    noisy = LaplaceRandomizer(1e-9, (0, 1)).aggregate(np.full(1 << 16, least))
    assert noisy._total == Moments(least << 16, least**2 << 16)
    doubled = functools.reduce(lambda all, _: all + all, range(40), found)
    assert doubled.reports == 1 << 57
    assert doubled.estimate(0.1).value == found.estimate(0.1).value == 1.0


@pytest.mark.parametrize("made", [MADE, *FREQUENCIES], ids=str)
def test_more_reports_than_64_bits_count_are_refused(made):
    most, large = made.report_range[1], (1 << 63) - 1
    fields = json.loads(made.aggregate([0, most]).to_json())
    fields["reports"] = large
    if "counts" in fields:
        # Two of them are as large as they may be together.
        fields["counts"] = [1 << 62, *[0] * (most - 1), (1 << 62) - 1]
        whole = Aggregate.from_json(json.dumps(fields))
        shares = (whole.frequencies() / made._span) + float(made._lie)
        assert ((shares > -1e-9) & (shares < 1 + 1e-9)).all()
        assert whole.interval(0.05) < 1e-6
    else:
        whole = Aggregate.from_json(json.dumps(fields))
    before = whole.to_json()
    for more in (lambda: whole + made.aggregate([0]), lambda: whole.add([0])):
        with pytest.raises(ParameterError, match=r"reports = .* below"):
            more()
    assert whole.to_json() == before


def randomized(randomizer, seed):
    values = np.random.default_rng(seed).random(1000)
    return randomizer.aggregate(randomizer.sample(values, random_state=seed))


@pytest.mark.thorough(cases=1)
def test_processes_add_up():
    made = LaplaceRandomizer(1.0, (0, 1))
    alone = sum(randomized(made, seed) for seed in range(4))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        spread = sum(pool.map(functools.partial(randomized, made), range(4)))
    assert spread == alone
    assert spread.reports == 4000


def test_a_dask_cluster_adds_up():
    distributed = pytest.importorskip("distributed")
    made = BinaryResponse(1.0, (0, 1))
    alone = sum(randomized(made, seed) for seed in range(8))
    how = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        parts = client.map(functools.partial(randomized, made), range(8))
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [client.submit(operator.add, *pair) for pair in pairs]
        spread = parts[0].result()
    assert spread == alone


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: BinaryResponse(1.0),
        lambda: LaplaceRandomizer(1.0),
        lambda: Piecewise(1.0),
        lambda: GaussianRandomizer(1.0, 1e-6),
        lambda: GaussianRandomizer.printed(1.0, 1e-6),
        lambda: best_randomizer(1.0),
    ],
)
def test_a_mean_has_no_bounds_that_nobody_chose(make):
    with pytest.raises(TypeError, match="'bounds'"):
        make()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        *[
            (lambda e=e: BinaryResponse(e, (0, 1)), "epsilon")
            for e in (0, -1, math.nan, math.inf, "1", 1e-12)
        ],
        *[
            (lambda e=e, kind=kind: kind(5, e), "epsilon")
            for e in (0, None, 1e-10)
            for kind in (*SETS, best_frequency)
        ],
        *[
            (lambda k=k, kind=kind: kind(k, 1.0), "k = ")
            for k in (1, 0, -3, 2.5, "x", 2**24 + 1, True)
            for kind in (*SETS, best_frequency)
        ],
        (lambda: SubsetSelection(1025, 1.0), "k = 1025, but it must be .* 2 to 1,024"),
        *[(lambda k=k: KaryResponse(k, 1), "k = ") for k in (1, 0, -3, 2.5, "x", 2**24 + 1, True)],
        *[
            (lambda r=r: LaplaceRandomizer(1, r), "bounds")
            for r in (
                (1, 1),
                (2, 1),
                (0, math.inf),
                (-1e308, 1e308),
                5,
                (0,),
                (0, "b"),
                (0, 5e-324),
            )
        ],
        *[
            (lambda d=d: GaussianRandomizer(1, d, (0, 1)), "delta")
            for d in (0, 1, -1, math.nan, 1e-250)
        ],
        (lambda: GaussianRandomizer(1e-6, 1e-9, (0, 1)), "nothing but noise"),
        (lambda: GaussianRandomizer(1, 0.1, (0, 1), calibration="best"), "calibration"),
        (lambda: MADE.sample(0.5), r"u has shape \(\)"),
        (lambda: MADE.sample(np.array([[0.5]])), "u has shape"),
        (lambda: MADE.sample(np.array(["a"])), "u has dtype"),
        (lambda: MADE.sample(np.array([1j])), "u has dtype"),
        (lambda: MADE.sample(np.array(["2026"], "M8[D]")), "u has dtype"),
        (lambda: MADE.sample([0.5], random_state=-1), "random_state"),
        (lambda: MADE.sample(np.ma.array([0.5])), "masked"),
        (lambda: COUNTED.sample(np.array(["a"])), "u has dtype"),
        (lambda: MADE.log_probability([0.5], 0), "w has dtype"),
        (lambda: MADE.log_probability([0, 1], [0, 1, 0]), "broadcastable"),
        (lambda: MADE.variance([0, 1]), "u has shape"),
        *[
            (lambda a=a: MADE.agents_needed(alpha=a, beta=0.1), "alpha")
            for a in (0, -1, 1e-12, "x")
        ],
        *[(lambda b=b: MADE.agents_needed(alpha=0.1, beta=b), "beta") for b in (0, 1, math.nan)],
        (lambda: best_randomizer(1, 1.0, bounds=(0, 1)), "delta"),
        *[
            (lambda s=s: best_randomizer(1, bounds=(0, 1), spread=s), "spread")
            for s in (0, -1, 0.51, math.nan, math.inf, "x")
        ],
        (lambda: best_randomizer(1, bounds=(0, 1), spread=0.1, binary=True), "spread.*binary"),
        (lambda: best_randomizer(1, bounds=(1, 0), spread=0.1), "bounds"),
        (lambda: MADE.aggregate([0]).estimate(0.1, sampled=2), "sampled"),
        (lambda: best_randomizer(0, bounds=(0, 1)), "epsilon"),
        (lambda: MADE.aggregate([0, 2]), r"reports holds 2.*\[0, 1\]"),
        (lambda: MADE.aggregate([-1, 0]), "reports holds -1"),
        (lambda: COUNTED.aggregate([3]), "reports holds 3"),
        (lambda: LaplaceRandomizer(1, (0, 1)).aggregate([2**62]), "reports holds"),
        (lambda: MADE.aggregate([0.0]), "reports has dtype"),
        (lambda: MADE.aggregate([[0]]), "reports has shape"),
        (lambda: MADE.aggregate().estimate(0.1), "reports = 0"),
        (lambda: COUNTED.aggregate().frequencies(), "reports = 0"),
        (lambda: COUNTED.aggregate().interval(0.1), "reports = 0"),
        (lambda: MADE.aggregate([1]).estimate(0), "beta"),
        (lambda: MADE.aggregate() + BinaryResponse(2.0, (0, 1)).aggregate(), "one randomizer"),
    ],
)
def test_bad_input_is_one_clear_error(call, match):
    with pytest.raises(HdpFastError, match=match):
        call()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "3", "null", '{"randomizer": "Uniform", "epsilon": 1}'),
        *('{"randomizer": "BinaryResponse"}', '{"randomizer": "BinaryResponse", "epsilon": 0}'),
        '{"randomizer": "BinaryResponse", "epsilon": 1, "k": 3}',
        '{"randomizer": ["BinaryResponse"]}',
        None,
    ],
)
def test_what_is_no_randomizer_is_refused(text):
    with pytest.raises(ParameterError):
        randomizer_of(text)


def test_threads_lose_no_report():
    # Sums of many counts take long enough for other threads to come in between.
    oracle = local.KaryResponse(1 << 18, 1.0)
    total, reports = oracle.aggregate(), np.arange(100)

    def add():
        for _ in range(50):
            total.add(reports)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(json.loads(total.to_json())["counts"]) == total.reports == 4 * 50 * 100


@pytest.mark.parametrize(
    "changes",
    [
        *[{"reports": n} for n in (-1, 1.0, "2", None, True, 2)],
        *[{"counts": c} for c in ([1], [1, 1, 1], [2, -1, 2], [1.0, 1, 1], "abc", None, {})],
        {"randomizer": "BinaryResponse"},
        {"sum": 3},
        {"k": 4},
    ],
)
def test_what_is_no_aggregate_is_refused(changes):
    fields = json.loads(COUNTED.aggregate([0, 1, 1, 2]).to_json())
    with pytest.raises(ParameterError):
        Aggregate.from_json(json.dumps(fields | changes))
    sums = json.loads(MADE.aggregate([0, 1, 1]).to_json())
    for wrong in (4, -1, 1.5, "1", None, True):
        for name in ("sum", "squares"):
            with pytest.raises(ParameterError, match=f"{name} = "):
                Aggregate.from_json(json.dumps(sums | {name: wrong}))
    with pytest.raises(
        ParameterError, match="text = 'sum', but the state of a MeanAggregate is sum"
    ):
        Aggregate.from_json(json.dumps({k: v for k, v in sums.items() if k != "squares"}))


def test_squares_that_no_reports_have_are_refused():
    made = Piecewise(1.0, (0, 1))
    fields = json.loads(made.aggregate([3, 4, 820]).to_json())
    assert fields["squares"] == 672425
    assert Aggregate.from_json(json.dumps(fields))._total == Moments(827, 672425)
    most = made.report_range[1]
    # Below the square of the mean, above what the range allows, and odd where sums are even.
    for wrong in (227975, most * 827 + 2, 672426, -1, 672425.0):
        with pytest.raises(ParameterError, match="squares"):
            Aggregate.from_json(json.dumps(fields | {"squares": wrong}))


@each
def test_a_refused_part_counts_nothing(randomizer):
    reports = reports_of(randomizer, 200_000)
    found = randomizer.aggregate(reports)
    wrong = np.append(reports.astype(np.int64), randomizer.report_range[1] + 1)
    before = found.to_json()
    with pytest.raises(ParameterError):
        found.add(wrong)
    assert found.to_json() == before


def test_frozen_and_explained():
    with pytest.raises(AttributeError):
        MADE.epsilon = 2.0
    assert repr(MADE).startswith("BinaryResponse(epsilon=1.0, bounds=(0.0, 1.0)): one bit")
    assert "3 reports of BinaryResponse" in repr(MADE.aggregate([0, 1, 1]))
    assert hash(KaryResponse(3, 1)) == hash(COUNTED)
    assert MADE.aggregate() != 3
    with pytest.raises(TypeError):
        MADE.aggregate() + 3
