"""Intervals for the population that records are drawn from: tails, coverage, refusals."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import each_case
from lengths import STAT

from hdp_fast import Budget, statistics
from hdp_fast.data.rows import Bounds
from hdp_fast.exceptions import ParameterError
from hdp_fast.statistics import Job, sampling
from hdp_fast.statistics.moment_sums import make_count, settle_columns
from hdp_fast.statistics.release_noise import Noise

RELATIONS = ["replace_one", "add_remove"]
# How often coverage is tried: misses of a right interval are below `limit` but for about 1e-6.
TRIES = 2_000 if STAT else 40


def limit(beta, tries=TRIES):
    return tries * beta + 5 * math.sqrt(tries * beta) + 2


def binomial(n, p):
    """The exact law of a binomial number."""
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@each_case("beta", [1e-9, 0.05, 0.6, 0.99])
def test_ends_of_counts_exclude_no_more_of_exact_binomial_tails(beta):
    for n in (1, 2, 5, 13, 30):
        for k in {0, 1, n // 3, n - 1, n}:
            low, high = sampling.bound_counts(k, k, n, beta)
            assert 0 <= low <= k <= high <= n
            if high < n:
                law = binomial(n, Fraction(float(high)) / n)
                assert sum(law[: k + 1]) <= Fraction(beta) / 2
            if low > 0:
                law = binomial(n, Fraction(float(low)) / n)
                assert sum(law[k:]) <= Fraction(beta) / 2


@each_case("beta", [1e-9, 0.05, 0.6, 0.99])
def test_ends_of_counts_of_a_private_number_hold_for_every_number(beta):
    for k in (0, 1, 2, 7, 30):
        low, high = map(float, sampling.bound_counts(k, k, None, beta))
        poisson = [math.exp(-high + i * math.log(high) - math.lgamma(i + 1)) for i in range(k + 1)]
        assert sum(poisson) <= beta / 2
        for n in (max(k, math.ceil(high)), 2 * k + 50):
            assert sum(binomial(n, high / n)[: k + 1]) <= beta / 2 + 1e-12
            assert low == 0 or sum(binomial(n, low / n)[k:]) <= beta / 2 + 1e-12


def test_ends_of_counts_are_not_far_from_the_exact_ones():
    low, high = sampling.bound_counts([0, 100, 5_000], [0, 100, 5_000], 10_000, 0.05)
    # Clopper and Pearson's: 3.69; 81.4 and 121.5; 4,901.5 and 5,098.5.
    assert high == pytest.approx([4.4, 122.2, 5_099], abs=1)
    assert low == pytest.approx([0, 80.7, 4_901], abs=1)


@each_case(
    "level", [Fraction(0), Fraction(1, 20), Fraction(1, 2), Fraction(999, 1000), Fraction(1)]
)
def test_shifted_ranks_exclude_no_more_of_exact_binomial_tails(level):
    for n, beta in product((1, 2, 9, 40), (0.01, 0.5)):
        below, above = sampling.shift_ranks(level, n, beta)
        law = binomial(n, level)
        # At most n level - below records are below a point that is not above the quantile.
        fewest, most = math.floor(level * n - below), math.ceil(level * n + above)
        assert sum(law[: max(fewest + 1, 0)]) <= Fraction(beta) / 2
        assert sum(law[max(most, 0) :]) <= Fraction(beta) / 2


@each_case("beta", [1e-9, 0.05, 0.5])
def test_half_widths_of_laplace_noise_are_the_least(beta):
    """Pr[|x| > k] of the discrete law is 2 r^(k + 1) / (1 + r) for r = exp(-1 / scale)."""
    noise, ratio = Noise("laplace", Fraction(7, 2)), math.exp(-2 / 7)
    half = noise.half_width(beta)
    tails = [2 * ratio ** (k + 1) / (1 + ratio) for k in (half, half - 1)]
    assert tails[0] <= beta < tails[1]


def test_deviations_of_a_population_are_bounded_by_maurer_and_pontil():
    """By arithmetic: 101 places of variance .04, each end missed with half of .05 at most."""
    low, high = sampling.bound_deviations(0.04, 0.04, 101, 0.05)
    assert low == 0
    assert high == pytest.approx((math.sqrt(0.0404) + math.sqrt(0.02 * math.log(40))) ** 2)
    assert sampling.bound_deviations(0.16, 0.16, 1_001, 0.05)[0] == pytest.approx(0.314105**2, 1e-4)


def test_shifted_ranks_of_a_median_are_the_least():
    n, beta, law = 200, 0.5, binomial(200, Fraction(1, 2))
    below, above = sampling.shift_ranks(Fraction(1, 2), n, beta)
    for shift in (below, above):
        tails = [sum(law[: n // 2 - shift + less + 1]) for less in (0, 1)]
        assert tails[0] <= Fraction(beta) / 2 < tails[1]


@each_case("n", [1, 30])
@each_case("known", [True, False])
def test_counts_cover_with_exact_probability_over_noise_and_sampling(known, n):
    """Over every number of records that show something, and all noise but a tiny tail."""
    scale, beta = 3, 0.1
    relation = "replace_one" if known else "add_remove"
    bounds = Bounds(np.zeros(1), np.ones(1))
    moment = make_count(settle_columns(None, bounds, None, relation, n))
    drawn = Noise("laplace", Fraction(scale))
    values = range(-40, n + 41)
    ends = {y: moment.sample(np.array([y]), 0, (drawn, beta)) for y in values}
    ratio = math.exp(-1 / scale)
    weights = [(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-40, 41)]
    for p in (0.0, 0.004, 0.05, 0.5, 0.97):
        outside = np.array([not low <= n * p <= high for low, high in ends.values()])
        windows = np.lib.stride_tricks.sliding_window_view(outside, 81)
        missed = np.array(binomial(n, p)) @ (windows @ np.array(weights))
        assert missed <= beta


POPULATIONS = {
    "two ends": (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3, 0.21),
    "rare": (lambda rng, n: (rng.random(n) < 0.002).astype(float), 0.002, 0.002 * 0.998),
    "even": (lambda rng, n: rng.random(n), 0.5, 1 / 12),
}


@each_case("relation", RELATIONS)
@each_case("name", POPULATIONS)
@each_case("n", [1, 12, 2_000])
def test_moments_cover_those_of_the_population(n, name, relation):
    draw, mean, variance = POPULATIONS[name]
    rng = np.random.default_rng(n)
    options = {"low": 0, "high": 1, "neighbors": relation, "confidence": 0.9, "sampled": True}
    missed, tries = {"mean": 0, "variance": 0, "sum": 0, "count": 0}, TRIES // 8
    for _ in range(tries):
        x = draw(rng, n)
        more = {**options, "epsilon": 2.0, "random_state": rng}
        made = {
            "mean": (statistics.mean(x, **more), mean),
            "variance": (statistics.variance(x, **more), variance),
        }
        if relation == "replace_one":
            made["sum"] = statistics.sum(x, **more), n * mean
        if name != "even":
            del more["low"], more["high"]
            made["count"] = statistics.count(x, **more), n * mean
        for what, (released, truth) in made.items():
            missed[what] += not released.population_low <= truth <= released.population_high
    assert max(missed.values()) <= limit(0.1, tries)


def test_sums_of_groups_cover_those_of_the_population():
    """A record of another group adds 0 to a sum, which may lie outside the bounds of a value."""
    n, missed, tries = 400, [0, 0], TRIES // 8
    truth = [n * 0.3 * 6.0, n * 0.7 * 6.0]
    for rng in np.random.default_rng(5).spawn(tries):
        groups, x = (rng.random(n) < 0.7).astype(int), rng.uniform(2, 10, n)
        released = statistics.sum(
            x, low=2, high=10, by=groups, groups=[0, 1], epsilon=2.0, confidence=0.9,
            neighbors="replace_one", sampled=True, random_state=rng,
        )  # fmt: skip
        for group, one in released.items():
            missed[group] += not one.population_low <= truth[group] <= one.population_high
            assert one.population_low <= one.low < one.high <= one.population_high
            assert one.population_high - one.population_low < truth[group]
    assert max(missed) <= limit(0.1, tries)


def test_intervals_for_the_population_shrink_with_the_records_and_hold_the_others():
    rng = np.random.default_rng(1)
    for neighbors in RELATIONS:
        options = {"epsilon": 1.0, "sampled": True, "neighbors": neighbors, "low": 0, "high": 1}
        for call in (statistics.mean, statistics.variance):
            widths = []
            for n in (1_000, 100_000):
                released = call(rng.random(n), **options)
                widths.append(released.population_high - released.population_low)
                assert released.population_low <= released.low
                assert released.high <= released.population_high
            assert widths[1] < widths[0] / 5
            assert widths[0] < 0.2


@each_case("relation", RELATIONS)
def test_cells_cover_those_of_the_population(relation):
    rng, shares = np.random.default_rng(3), np.array([0.6, 0.39, 0.01, 0.0])
    missed, tries = np.zeros(4), TRIES // 2
    for _ in range(tries):
        x = rng.choice(4, 300, p=shares)
        released = statistics.histogram(
            x, categories=range(4), epsilon=0.5, neighbors=relation, sampled=True, random_state=rng
        )
        missed += (released.population_low > 300 * shares) | (
            released.population_high < 300 * shares
        )
    assert missed.max() <= limit(0.05, tries)


@each_case("levels", [[0.5], [0.02, 0.3, 0.5, 0.9]])
@each_case("n", [1, 40, 3_000])
def test_quantiles_cover_those_of_the_population(n, levels):
    rng, missed = np.random.default_rng(n), np.zeros(len(levels))
    for _ in range(tries := TRIES // 4):
        x = rng.integers(0, 100, n)  # the level q's quantile is 100 q - 1 or 100 q
        released = statistics.quantiles(
            x, levels, low=0, high=99, epsilon=4.0, interval=True, sampled=True, confidence=0.9,
            random_state=rng,
        )  # fmt: skip
        truth = 100 * np.array(levels)
        outside = (released.population_low > truth) | (released.population_high < truth - 1)
        missed += outside
        assert (released.population_low <= released.value).all()
        assert (released.value <= released.population_high).all()
    assert missed.max() <= limit(0.1, tries)
    if n == 3_000 and len(levels) == 1:
        assert (released.population_high - released.population_low).max() < 15


def test_what_is_released_does_not_depend_on_the_intervals():
    x = np.arange(500) % 7
    calls = {
        "count": {}, "mean": {"low": 0, "high": 9}, "sum": {"low": 0, "high": 9},
        "variance": {"low": 0, "high": 9}, "histogram": {"edges": [0, 3, 7]},
    }  # fmt: skip
    for name, options in calls.items():
        call = getattr(statistics, name)
        plain, wide = (
            call(x, **options, epsilon=1.0, sampled=one, random_state=5) for one in (False, True)
        )
        assert np.array_equal(plain.value, wide.value)
        assert plain.record == wide.record
        assert plain.population_low is None is plain.population_high
        assert np.array_equal(plain.low, wide.low)
        job = Job(name, **options)
        state = job.fold(x[:9]) + job.fold(x[9:])
        parts = job.release(state, epsilon=1.0, sampled=True, random_state=5)
        assert np.array_equal(parts.population_low, wide.population_low)


WORST = np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324])


@each_case("relation", RELATIONS)
@each_case("values", [WORST, WORST[:1], np.full(9, 1.0), np.empty(0)])
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_ends_are_finite_and_ordered_whatever_the_values(relation, values):
    if not len(values) and relation == "replace_one":
        return
    for call, epsilon in product((statistics.mean, statistics.variance), (1e-6, 1.0, 1e6)):
        made = call(values, low=-1, high=1, epsilon=epsilon, neighbors=relation, sampled=True)
        assert -1 <= made.population_low <= made.population_high <= 1
    counted = statistics.count(values, epsilon=1e-6, neighbors=relation, sampled=True)
    assert 0 <= counted.population_low <= counted.population_high < math.inf


def test_intervals_that_cannot_be_are_refused_before_anything_is_spent():
    budget, x = Budget(5.0), np.arange(40.0)
    removed = Budget(5.0, neighbors="add_remove")
    ends, half = {"low": 0, "high": 9}, {"by": np.arange(40) % 2, "groups": [0, 1]}
    wrong = [
        (statistics.sum, {**ends, "neighbors": "add_remove", "budget": removed}),
        (statistics.mean, {**ends, "ids": np.arange(40) // 2, "rows_per_person": 2}),
        (statistics.histogram, {"edges": [0, 9], "ids": np.arange(40), "rows_per_person": 2}),
        (statistics.quantiles, {**ends, "levels": 0.5, **half}),
        (statistics.quantiles, {**ends, "levels": 0.5, "neighbors": "add_remove",
                                "budget": removed}),
        (statistics.count, {"sampled": 1}),
    ]  # fmt: skip
    for call, options in wrong:
        with pytest.raises(ParameterError, match="sampled"):
            call(x, **{"epsilon": 1.0, "sampled": True, "budget": budget, **options})
    for name in ("covariance", "top_k"):
        settings = {"categories": [1, 2]} if name == "top_k" else ends
        job = Job(name, **settings)
        with pytest.raises(ParameterError, match="sampled"):
            job.release(x, epsilon=1.0, sampled=True, budget=budget)
    assert budget.spent.epsilon == removed.spent.epsilon == 0
    owned = statistics.mean(x, **ends, epsilon=1.0, sampled=True, ids=np.arange(40))
    assert owned.population_low <= owned.low
