"""Reports of local randomizers against their laws, with coins of the operating system."""

import math
from fractions import Fraction

import lengths
import numpy as np
import pytest
from frequencies import FALSE_ALARM, Case, misfits, power, two_sided
from scipy import stats

from hdp_fast.local import (
    BinaryResponse,
    GaussianRandomizer,
    KaryResponse,
    LaplaceRandomizer,
    Piecewise,
    ProjectiveGeometryResponse,
    SubsetSelection,
)

COUNT = 1 << 20
# Reports that share one stream of the generator.
CHUNK = 1 << 14
# Outcomes between which noise is smooth are counted together.
CELLS = 300
MEANS = [
    BinaryResponse(0.5, (0, 1)),
    BinaryResponse(3.0, (-2.0, 6.0)),
    LaplaceRandomizer(0.01, (0, 1)),
    LaplaceRandomizer(1.0, (0, 1)),
    LaplaceRandomizer(20.0, (0, 1)),
    GaussianRandomizer(1.0, 1e-6, (0, 1)),
    GaussianRandomizer(8.0, 1e-3, (0, 1)),
    Piecewise(0.1, (0, 1)),
    Piecewise(2.0, (0, 1)),
    Piecewise(6.0, (0, 1)),
]
FREQUENCIES = [
    KaryResponse(2, 1.0),
    KaryResponse(7, 0.3),
    KaryResponse(300, 6.0),
    SubsetSelection(2, 1.0),
    SubsetSelection(14, 1.5),
    SubsetSelection(100, 0.5),
    SubsetSelection(100, 3.0),
    ProjectiveGeometryResponse(7, 1.0),
    ProjectiveGeometryResponse(100, 0.5),
    ProjectiveGeometryResponse(100, 2.0),
    ProjectiveGeometryResponse(1000, 4.0),
]
PLACES = [0.0, 2.0**-20, 1 / 3, 0.5, 1 - 2.0**-20, 1.0]


def values_of(randomizer):
    if randomizer in FREQUENCIES:
        return [0, 1, randomizer.k // 2, randomizer.k - 1]
    low, high = randomizer.bounds
    return [low + (high - low) * place for place in PLACES]


def starts_of(randomizer):
    """Where cells of outcomes start, and the first outcome of all."""
    least, most = randomizer.report_range
    return least, np.arange(0, most - least + 1, max(1, (most - least) // CELLS))


def law_of(randomizer, value, cells=None):
    """Probabilities of cells, of another randomizer if one is given."""
    least, starts = starts_of(cells or randomizer)
    outcomes = np.arange(least, (cells or randomizer).report_range[1] + 1)
    chances = np.exp(randomizer.log_probability(outcomes, value))
    return dict(enumerate(np.add.reduceat(chances, starts).tolist()))


def counts_of(randomizer, reports):
    least, starts = starts_of(randomizer)
    cells = np.searchsorted(starts, reports.astype(np.int64) - least, side="right") - 1
    return dict(enumerate(np.bincount(cells, minlength=starts.size).tolist()))


@pytest.mark.parametrize("randomizer", MEANS + FREQUENCIES, ids=str)
def test_reports_follow_log_probability(randomizer):
    cases = [
        Case(counts_of(randomizer, randomizer.sample(np.full(COUNT, u))), law_of(randomizer, u))
        for u in values_of(randomizer)
    ]
    assert misfits(cases) == []


@pytest.mark.parametrize("kind", [BinaryResponse, LaplaceRandomizer, Piecewise])
def test_an_epsilon_three_percent_larger_would_be_seen(kind):
    pairs = []
    for u in (0.0, 1.0):
        pairs.append(
            tuple(law_of(kind(epsilon, (0, 1)), u, kind(1.0, (0, 1))) for epsilon in (1.03, 1.0))
        )
    assert power(pairs, COUNT) > 0.999


@pytest.mark.parametrize(
    "randomizer",
    [BinaryResponse(1.0, (0, 1)), LaplaceRandomizer(1.0, (0, 1)), Piecewise(1.0, (0, 1))],
    ids=str,
)
def test_numbers_that_differ_little_are_rounded_at_their_own_rate(randomizer):
    """A third and a number close to it, told apart by the mean of many reports."""
    least, more = randomizer._linear_map
    for u in (1 / 3, 0.35):
        mean = float(randomizer.sample(np.full(16 * COUNT, u)).mean())
        error = math.sqrt(randomizer.variance(u) / (16 * COUNT))
        # 4.9 standard deviations are passed with probability below 1e-6.
        assert abs((mean - float(least)) / float(more) - u) <= 4.9 * error
        assert abs((mean - float(least)) / float(more) - 1 / 3) > 4.9 * error or u < 0.35


@pytest.mark.parametrize("distance", [1, 64, CHUNK, COUNT // 2])
@pytest.mark.parametrize("randomizer", [Piecewise(1.0, (0, 1)), KaryResponse(2, 1.0)], ids=str)
def test_reports_at_a_distance_are_independent(randomizer, distance):
    high = randomizer.sample(np.zeros(COUNT, np.int64)) > randomizer.report_range[1] // 2
    pairs = high[: COUNT // (2 * distance) * 2 * distance].reshape(-1, 2, distance)
    least, most = randomizer.report_range
    outcomes = np.arange(least, most + 1)
    chances = np.exp(randomizer.log_probability(outcomes, 0))
    p = float(chances[outcomes > most // 2].sum())
    law = {2 * a + b: (p if a else 1 - p) * (p if b else 1 - p) for a in (0, 1) for b in (0, 1)}
    codes = (2 * pairs[:, 0] + pairs[:, 1]).ravel()
    assert misfits([Case(dict(enumerate(np.bincount(codes, minlength=4).tolist())), law)]) == []


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 4.0, 45.0])
def test_truth_comes_at_its_rate(epsilon):
    for k in (2, 1000):
        made = KaryResponse(k, epsilon)
        told = int(np.count_nonzero(made.sample(np.full(COUNT, 1)) == 1))
        assert two_sided(told, COUNT, Fraction(made._truth)) > FALSE_ALARM / 2


RUNS, BETA = 300, 0.05
PEOPLE = {
    "at the ends": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "rarely one": lambda rng, shape: (rng.random(shape) < 0.01).astype(float),
    "in between": lambda rng, shape: rng.normal(0.4, 0.1, shape).clip(0, 1),
    "at one end": lambda rng, shape: np.zeros(shape),
}
MEAN_OF = {"at the ends": 0.5, "rarely one": 0.01, "in between": 0.4, "at one end": 0.0}


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("count", [3, pytest.param(40, marks=lengths.at_length), 1000])
@pytest.mark.parametrize(
    "randomizer",
    [
        *(Piecewise(epsilon, (0, 1)) for epsilon in (0.5, 2.0, 5.0, 9.0)),
        BinaryResponse(1.0, (0, 1)),
        LaplaceRandomizer(4.0, (0, 1)),
    ],
    ids=str,
)
def test_intervals_miss_as_seldom_as_they_promise(randomizer, count, people):
    rng = np.random.default_rng()
    values = PEOPLE[people](rng, (RUNS, count))
    reports = randomizer.sample(values.ravel()).reshape(values.shape)
    aggregates = [randomizer.aggregate(row) for row in reports]
    for sampled in (True, False):
        means = np.full(RUNS, MEAN_OF[people]) if sampled else values.mean(axis=1)
        found = np.array([each.estimate(BETA, sampled=sampled) for each in aggregates])
        missed = int(((found[:, 1] > means + 1e-12) | (found[:, 2] < means - 1e-12)).sum())
        # Six randomizers, three counts, four populations and two means are tried.
        assert stats.binom.sf(missed - 1, RUNS, BETA) > FALSE_ALARM / 144


def test_intervals_of_half_the_width_would_be_seen_to_miss():
    """So the intervals for the people asked are no more than twice too wide."""
    randomizer, rng = Piecewise(5.0, (0, 1)), np.random.default_rng()
    values = rng.normal(0.4, 0.1, (4 * RUNS, 2000)).clip(0, 1)
    reports = randomizer.sample(values.ravel()).reshape(values.shape)
    found = [randomizer.aggregate(row).estimate(BETA, sampled=False) for row in reports]
    value, low, high = np.array(found).T
    missed = int((abs(value - values.mean(axis=1)) > (high - low) / 4).sum())
    assert stats.binom.sf(missed - 1, 4 * RUNS, BETA) < FALSE_ALARM


@pytest.mark.parametrize(
    "randomizer",
    [KaryResponse(5, 3.0), SubsetSelection(12, 1.0), ProjectiveGeometryResponse(40, 2.0)],
    ids=str,
)
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=lengths.at_length), 3000])
def test_intervals_of_frequencies_miss_as_seldom_as_they_promise(randomizer, count):
    rng, k = np.random.default_rng(), randomizer.k
    shares = np.array([0.6, *[0.4 / (k - 1)] * (k - 1)])
    values = rng.choice(k, (RUNS, count), p=shares)
    reports = randomizer.sample(values.ravel()).reshape(values.shape)
    missed = np.zeros(2, int)
    for row, held in zip(reports, values, strict=True):
        aggregate = randomizer.aggregate(row)
        found, half = aggregate.frequencies(), aggregate.interval(BETA)
        asked = np.bincount(held, minlength=k) / count
        missed += [np.abs(found - truth).max() > half for truth in (shares, asked)]
    assert (stats.binom.sf(missed - 1, RUNS, BETA) > FALSE_ALARM / 18).all()
