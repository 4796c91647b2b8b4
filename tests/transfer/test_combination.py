"""One estimate of a panel and of agents: its law in exact numbers, its intervals, and shifts."""

import itertools
import json
import math
import warnings

import numpy as np
import pytest
from cases import each_case
from lengths import STAT

from hdp_fast import local, statistics, transfer
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning

pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def combined(bits, crowd, rng, *, epsilon=1.0, asked=None, **options):
    """A panel of numbers in [0, 1], and a crowd that is asked for a bit each."""
    panel = statistics.mean(bits, low=0, high=1, epsilon=epsilon, random_state=rng)
    randomizer = asked or local.BinaryResponse(1.0, bounds=(0, 1))
    reports = randomizer.sample(crowd, random_state=rng)
    return transfer.combine(panel, randomizer.aggregate(reports), **options)


# The exact law on a tiny instance ----------------------------------------------------------------


def means_and_squares(law):
    """The mean and the variance of a law, a list of values and probabilities."""
    mean = math.fsum(value * p for value, p in law)
    return mean, math.fsum((value - mean) ** 2 * p for value, p in law)


def law_of_panel(n, p, scale):
    """All data sets of n bits, and discrete Laplace noise of their mean, on a grid of 2**-20."""
    steps = 1 << 20
    ratio = math.exp(-1 / (scale * steps))
    # The noise has no end and is summed exactly: its mean is 0, its variance 2 r / (1 - r)**2.
    of_noise = 2 * ratio / (1 - ratio) ** 2 / steps**2 / n**2
    mean, square = means_and_squares(
        [(sum(bits) / n, math.prod(p if bit else 1 - p for bit in bits))
         for bits in itertools.product((0, 1), repeat=n)]
    )  # fmt: skip
    return mean, square + of_noise


def law_of_agents(count, p, randomizer):
    """All reports of `count` agents who hold independent bits."""
    one = sum(
        weight * math.exp(randomizer.log_probability(1, bit))
        for bit, weight in ((1, p), (0, 1 - p))
    )
    law = []
    for reports in itertools.product((0, 1), repeat=count):
        probability = math.prod(one if report else 1 - one for report in reports)
        law.append((randomizer.aggregate(np.array(reports)).mean(), probability))
    return means_and_squares(law)


@each_case("n, agents, epsilon, local_epsilon", [(3, 4, 1.0, 1.0), (2, 5, 4.0, 0.5), (1, 1, 2, 3)])
def test_weights_are_the_best_for_the_exact_law(n, agents, epsilon, local_epsilon):
    randomizer = local.BinaryResponse(local_epsilon, bounds=(0, 1))
    bits, reports = np.zeros(n), np.zeros(agents, int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        panel = statistics.mean(bits, low=0, high=1, epsilon=epsilon, random_state=0)
        both = transfer.combine(panel, randomizer.aggregate(reports))
    for p in (0.5, 0.2):
        mean, central = law_of_panel(n, p, 1 / epsilon)
        other, crowd = law_of_agents(agents, p, randomizer)
        assert mean == pytest.approx(p)
        assert other == pytest.approx(p)
        if p == 0.5:
            # The law that is spread most: exact variances, the best weight, and less than either.
            assert both.weight == pytest.approx(crowd / (central + crowd), rel=1e-6)
            left = both.weight**2 * central + (1 - both.weight) ** 2 * crowd
            assert left < min(central, crowd)
            assert left == pytest.approx(1 / (1 / central + 1 / crowd), rel=1e-6)
    assert both.agents == pytest.approx(randomizer.aggregate(reports).mean())
    assert both.central == panel.unclipped


def laplace_beyond(x, scale):
    """Pr[Z > x] of Laplace noise."""
    return math.exp(-x / scale) / 2 if x > 0 else 1 - math.exp(x / scale) / 2


@each_case("p", [0.0, 0.1, 0.5, 0.8])
def test_intervals_miss_seldom_in_exact_numbers(p):
    """All bits of three records and all reports of six agents, and the noise by its law."""
    n, agents, beta, randomizer = 3, 6, 0.5, local.BinaryResponse(2.0, bounds=(0, 1))
    panel = statistics.mean(np.zeros(n), low=0, high=1, epsilon=4.0, random_state=0)
    missed = 0.0
    one = sum(
        weight * math.exp(randomizer.log_probability(1, bit))
        for bit, weight in ((1, p), (0, 1 - p))
    )
    for ones in range(agents + 1):
        aggregate = randomizer.aggregate(np.arange(agents) < ones)
        weight = math.comb(agents, ones) * one**ones * (1 - one) ** (agents - ones)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            both = transfer.combine(panel, aggregate, beta=beta)
        # What the interval has on both sides, unclipped, is the same whatever is released.
        value = both.weight * both.central + (1 - both.weight) * both.agents
        half = max(both.high - value, value - both.low)
        for bits in range(n + 1):
            share = math.comb(n, bits) * p**bits * (1 - p) ** (n - bits)
            middle = both.weight * (bits / n - p) + (1 - both.weight) * (both.agents - p)
            scale = both.weight * panel.noise.scale
            outside = laplace_beyond(half - middle, scale) + laplace_beyond(half + middle, scale)
            missed += weight * share * outside
    assert 0.001 < missed <= beta


def test_a_deviation_makes_weights_of_the_true_variances():
    """Numbers that are spread little, on one side of the middle: the exact variances again."""
    values, p = np.array([0.2, 0.3]), 0.25
    n, agents, spread, randomizer = 400, 4_000, 0.05, local.Piecewise(2.0, bounds=(0, 1))
    panel = statistics.mean(
        np.full(n, 0.25), low=0, high=1, epsilon=60.0, random_state=0
    )  # next to no noise on the mean that weights are made of
    reports = randomizer.sample(np.full(agents, 0.25), random_state=0)
    both = transfer.combine(panel, randomizer.aggregate(reports), deviation=spread)
    central = spread**2 / n + panel.noise.deviation**2
    crowd = (np.mean([randomizer.variance(value) for value in values]) + spread**2) / agents
    assert both.weight == pytest.approx(crowd / (central + crowd), rel=1e-4)
    assert both.weight > transfer.combine(panel, randomizer.aggregate(reports)).weight
    assert p == pytest.approx(values.mean())


# Simulated ---------------------------------------------------------------------------------------


@each_case("kind", ["laplace", "gaussian", "given", "shares"])
def test_intervals_hold_and_errors_are_less_than_those_of_either(kind):
    rng = np.random.default_rng(3)
    tries, n, agents, beta = (2_000 if STAT else 60), 400, 8_000, 0.2
    missed, normal, shifts, squares = 0, 0, 0, np.zeros(3)
    frequency = local.best_frequency(3, epsilon=1.0)
    truth = np.array([0.5, 0.3, 0.2]) if kind == "shares" else 0.5
    for _ in range(tries):
        if kind == "shares":
            records, crowd = (rng.choice(3, size, p=truth) for size in (n, agents))
            panel = statistics.histogram(
                records, categories=range(3), epsilon=0.2, random_state=rng
            )
            asked = frequency
        else:
            records, crowd = (rng.integers(0, 2, size).astype(float) for size in (n, agents))
            delta = 0.1 if kind == "gaussian" else None
            panel = statistics.mean(
                records, low=0, high=1, epsilon=0.1, delta=delta, random_state=rng
            )
            asked = local.BinaryResponse(1.0, bounds=(0, 1))
        reports = asked.aggregate(asked.sample(crowd, random_state=rng))
        options = {"deviation": 0.5} if kind == "given" else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            both = transfer.combine(panel, reports, beta=beta, **options)
        missed += not np.all((both.low <= truth) & (truth <= both.high))
        normal += np.mean((both.normal_low > truth) | (truth > both.normal_high))
        shifts += both.shifted
        errors = (both.value, both.central, both.agents)
        squares += [np.mean((np.asarray(one) - truth) ** 2) for one in errors]
    assert panel.noise.law == ("gaussian" if kind == "gaussian" else "laplace")
    most = beta * tries + 5 * math.sqrt(beta * tries)
    assert missed <= most
    assert shifts <= most
    assert normal <= most
    # The expected ratios are .65 to .95; a relative error of the mean square of 5 deviations.
    slack = 1 + 5 * math.sqrt(4 / tries) if not STAT else 1.02
    assert squares[0] <= slack * min(squares[1:])


def test_a_shift_is_told_by_released_numbers():
    rng = np.random.default_rng(0)
    panel, crowd = (rng.random(2_000) < 0.4).astype(float), rng.random(50_000) < 0.2
    with pytest.warns(UtilityWarning, match="take the agents alone"):
        both = combined(panel, crowd, rng)
    assert both.shifted
    assert both.gap > both.largest_gap
    assert "SHIFTED" in repr(both)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        same = combined(panel, rng.random(50_000) < 0.4, rng)
    assert not same.shifted
    assert "of it from 2,000 records, epsilon 1, the rest from 50,000 reports" in repr(same)


def test_intervals_lie_in_the_bounds_around_the_estimate():
    rng = np.random.default_rng(0)
    bits = (rng.random(2_000) < 0.02).astype(float)
    for deviation in (None, 0.14, 0.5):
        both = combined(bits, bits.repeat(20), rng, deviation=deviation)
        assert 0 <= both.low <= both.normal_low <= both.value <= both.normal_high <= both.high <= 1


def test_text_tells_all_numbers():
    rng = np.random.default_rng(0)
    both = combined(np.zeros(50), np.zeros(100, int), rng, epsilon=8.0, beta=0.5)
    fields = json.loads(both.to_json())
    assert fields["value"] == both.value <= both.high
    assert fields["record"]["epsilon"] == 8.0
    assert fields["agents_record"]["neighbors"] == "local"
    asked = local.KaryResponse(2, epsilon=1.0)
    counts = statistics.histogram(np.zeros(50, int), categories=[0, 1], epsilon=8.0, random_state=0)
    table = transfer.combine(counts, asked.aggregate(np.zeros(100, int)), beta=1e-9)
    assert len(json.loads(table.to_json())["low"]) == 2
    assert "2 shares within" in repr(table)


# Refused -----------------------------------------------------------------------------------------


def test_what_cannot_be_combined_is_refused_by_name():
    rows = {"epsilon": 1.0, "random_state": 0}
    bits, bounds = np.tile([0.0, 1.0], 50), {"low": 0, "high": 1}
    panel = statistics.mean(bits, **bounds, **rows)
    counts = statistics.histogram(bits, categories=[0, 1], **rows)
    asked, kary = local.BinaryResponse(1.0, bounds=(0, 1)), local.KaryResponse(3, epsilon=1.0)
    agents, shares = asked.aggregate([0, 1, 1]), kary.aggregate([0, 1, 2])
    by = np.arange(100) % 2
    grouped = statistics.mean(bits, **bounds, by=by, groups=[0, 1], **rows)
    wide = local.BinaryResponse(1.0, bounds=(0, 2)).aggregate([0, 1])
    several = statistics.mean(bits, **bounds, ids=by.repeat(1), rows_per_person=2, **rows)
    refused = [
        ("central", 0.5, agents, {}),
        ("central", statistics.count(bits, **rows), agents, {}),
        ("central", statistics.mean(bits, **bounds, neighbors="add_remove", **rows), agents, {}),
        ("central", grouped[0], agents, {}),
        ("central", several, agents, {}),
        ("agents", panel, shares, {}),
        ("agents", counts, agents, {}),
        ("agents", panel, agents.estimate(0.05), {}),
        ("bounds", panel, wide, {}),
        ("reports", panel, asked.aggregate(), {}),
        ("deviation", panel, agents, {"deviation": 0.6}),
        ("deviation", panel, agents, {"deviation": 0}),
        ("deviation", panel, agents, {"deviation": math.nan}),
        ("deviation", counts, local.KaryResponse(2, epsilon=1.0).aggregate([0]), {"deviation": 1}),
        ("beta", panel, agents, {"beta": 0}),
    ]
    for name, released, reports, options in refused:
        with pytest.raises(ParameterError, match=name):
            transfer.combine(released, reports, **options)
    with pytest.raises(ShapeError, match="categories"):
        transfer.combine(counts, shares)
