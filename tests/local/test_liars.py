"""Liars and silent people: how far they move an estimate, and intervals that hold all the same."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import local
from hdp_fast.exceptions import ParameterError
from hdp_fast.local.estimation import advantage, bound_all, estimate_exactly

UNIT = (0.0, 1.0)
MEANS = [
    local.BinaryResponse(0.5, (-1.0, 3.0)),
    local.Piecewise(3.0, UNIT),
    local.LaplaceRandomizer(2.0, (0.0, 10.0)),
    local.GaussianRandomizer(1.0, 1e-3, UNIT),
]
SHARES = [
    local.KaryResponse(3, 1.0),
    local.SubsetSelection(5, 0.5),
    local.ProjectiveGeometryResponse(7, 1.0),
]


def estimates(randomizer, reports):
    """Unclipped: a mean as an array of one number, or all frequencies."""
    aggregate = randomizer.aggregate(reports)
    return aggregate.frequencies() if randomizer in SHARES else np.array([aggregate.mean()])


def lies(reports, liars, choices):
    """Every way in which some may lie, whoever they are and whatever they know of the others."""
    for places in itertools.combinations(range(len(reports)), liars):
        for sent in itertools.product(choices, repeat=liars):
            made = list(reports)
            for place, report in zip(places, sent, strict=True):
                made[place] = report
            yield made


# How far ------------------------------------------------------------------------------------------


@each_case("randomizer", MEANS + SHARES)
def test_liars_move_an_estimate_so_far_and_no_further(randomizer):
    least, most = randomizer.report_range
    few = range(least, most + 1) if most - least < 8 else (least, most, (least + most) // 2)
    count = 4 if len(few) == 2 else 2
    for liars in range(count + 1):
        largest = 0.0
        for honest in itertools.product(few, repeat=count):
            before = estimates(randomizer, honest)
            for made in lies(honest, liars, few):
                largest = max(largest, abs(estimates(randomizer, made) - before).max())
        stated = local.largest_distortion(randomizer, reports=count, liars=liars)
        assert largest == pytest.approx(stated, abs=1e-12)


def test_a_liar_weighs_as_much_as_an_answer_hides():
    for epsilon in (0.1, 1.0, 4.0, 30.0):
        stated = local.largest_distortion(epsilon, reports=50, liars=1)
        assert stated == pytest.approx(1 / math.tanh(epsilon / 2) / 50)
        made = local.BinaryResponse(epsilon, UNIT)
        assert local.largest_distortion(made, reports=50, liars=1) == stated


@each_case(
    "call, match",
    [
        (lambda: local.largest_distortion(1.0, reports=0, liars=0), "reports = 0"),
        (lambda: local.largest_distortion(1.0, reports=5, liars=6), "liars = 6.*reports = 5"),
        (lambda: local.largest_distortion(1.0, reports=5, liars=-1), "liars = -1"),
        (lambda: local.largest_distortion(0.0, reports=5, liars=1), "randomizer = 0.0"),
        (lambda: local.largest_distortion("binary", reports=5, liars=1), "randomizer = 'binary'"),
        (lambda: MEANS[0].aggregate([1]).estimate(0.1, liars=-1), "liars = -1"),
        (lambda: MEANS[0].aggregate([1]).estimate(0.1, silent=0.5), "silent = 0.5"),
        (lambda: MEANS[0].aggregate([1]).estimate(0.1, silent=(1 << 63) - 1), "reports = "),
        (lambda: SHARES[0].aggregate([1]).interval(0.1, liars=1.5), "liars = 1.5"),
    ],
)
def test_bad_numbers_are_refused(call, match):
    with pytest.raises(ParameterError, match=match):
        call()


# Intervals that hold, in exact fractions ----------------------------------------------------------


def law_of_ones(values, epsilon):
    """The exact law of the number of ones among honest reports, as fractions."""
    intercept, slope = local.BinaryResponse(epsilon, UNIT)._linear_map
    law = [Fraction(1)]
    for value in values:
        one = intercept + slope * Fraction(value)
        law = [
            (law[i] if i < len(law) else 0) * (1 - one) + (law[i - 1] * one if i else 0)
            for i in range(len(law) + 1)
        ]
    return law


def ends_of(epsilon, beta, count, liars, silent=0):
    """The interval for each number of ones among the reports that came."""
    made = local.BinaryResponse(epsilon, UNIT)
    found = []
    for ones in range(count + 1):
        reports = np.repeat([0, 1], [count - ones, ones])
        _, *ends = made.aggregate(reports).estimate(beta, liars=liars, silent=silent)
        bound = bound_all(ones, count, count + silent, beta=beta, epsilon=epsilon, liars=liars)
        assert ends == pytest.approx(bound, abs=1e-12)
        # What rounding errors move by a few units is no miss.
        found.append((ends[0] - 1e-12, ends[1] + 1e-12))
    return found


def chance_of_a_miss(law, mean, ends, reach):
    """That the worst choice of what is sent, among all that `reach` allows, misses the mean."""
    return sum(
        chance
        for honest, chance in enumerate(law)
        if any(not ends[ones][0] <= mean <= ends[ones][1] for ones in reach(honest))
    )


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_the_interval_holds_whoever_lies_after_seeing_every_answer(epsilon):
    """All values on a grid, all honest reports, all liars, all that they may send; n = 4."""
    count, beta = 4, 0.5
    for liars in (1, 2):
        ends = ends_of(epsilon, beta, count, liars)
        for values in itertools.combinations_with_replacement([0, Fraction(1, 3), 1], count):
            law, mean = law_of_ones(values, epsilon), sum(values) / count

            def reach(honest, liars=liars):
                reports = [1] * honest + [0] * (count - honest)
                return {sum(made) for made in lies(reports, liars, (0, 1))}

            assert chance_of_a_miss(law, mean, ends, reach) <= beta


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 24), (6.0, 24)])
def test_the_interval_holds_for_all_and_for_the_honest_alone(epsilon, count):
    beta, broken = 0.2, 0
    for liars in (1, 5):
        ends, plain = (ends_of(epsilon, beta, count, some) for some in (liars, 0))
        for ones in range(0, count + 1, count // 6):
            # All: liars replace reports, and the mean holds the values that they hide.
            law = law_of_ones([1] * ones + [0] * (count - ones), epsilon)

            def reach(honest, liars=liars):
                return range(max(0, honest - liars), min(count, honest + liars) + 1)

            assert chance_of_a_miss(law, ones / count, ends, reach) <= beta
            broken += chance_of_a_miss(law, ones / count, plain, reach) > beta
        for there in {liars, liars // 2}:
            # The honest alone: liars add reports of their own.
            honest = count - there
            for ones in range(0, honest + 1, honest // 6):
                law = law_of_ones([1] * ones + [0] * (honest - ones), epsilon)

                def reach(honest_ones, there=there):
                    return range(honest_ones, honest_ones + there + 1)

                assert chance_of_a_miss(law, ones / honest, ends, reach) <= beta
    assert broken, "the plain interval would do as well"


@each_case("epsilon, liars, silent", [(1.0, 2, 5), (6.0, 0, 5), (6.0, 3, 3)])
def test_the_interval_holds_whoever_is_silent_besides(epsilon, liars, silent):
    """Who is silent and who lies may depend on every report that was to be sent."""
    count, beta = 30, 0.2
    came = count - silent
    ends = ends_of(epsilon, beta, came, liars, silent)
    for ones in range(0, count + 1, 5):
        law = law_of_ones([1] * ones + [0] * (count - ones), epsilon)

        def reach(honest):
            most, least = min(honest, came), max(0, honest - silent)
            return range(max(0, least - liars), min(came, most + liars) + 1)

        assert chance_of_a_miss(law, ones / count, ends, reach) <= beta


# Intervals of every randomizer hold what those of honest worlds hold --------------------------


def interval_of(randomizer, reports, sampled=True, **turnout):
    """Lower and upper ends."""
    aggregate, beta = randomizer.aggregate(reports), 0.05
    if randomizer in SHARES:
        half = aggregate.interval(beta, **turnout)
        return aggregate.frequencies() - half, aggregate.frequencies() + half
    _, low, high = aggregate.estimate(beta, sampled=sampled, **turnout)
    return np.array([low]), np.array([high])


def holds(outer, inner, margin=1e-9):
    return bool((outer[0] <= inner[0] + margin).all() and (inner[1] <= outer[1] + margin).all())


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("randomizer", MEANS + SHARES, ids=lambda each: type(each).__name__)
def test_the_interval_holds_that_of_everybody_and_that_of_the_honest(randomizer, sampled):
    rng, (least, most) = np.random.default_rng(0), randomizer.report_range
    last = 2 if randomizer in SHARES else 1.0
    width = 1.0 if randomizer in SHARES else float(np.diff(randomizer.bounds)[0])
    missed = 0
    for count, liars, silent in [(3000, 30, 0), (3000, 3, 200), (900, 0, 50), (4, 1, 1), (2, 2, 0)]:
        for values in (np.zeros(count), np.full(count, last), rng.integers(0, 2, count) * last):
            honest = randomizer.sample(values, random_state=1)
            for lie in (least, most, (least + most) // 2):
                came = honest.astype(np.int64)[silent:]
                came[:liars] = lie
                made = interval_of(randomizer, came, sampled, liars=liars, silent=silent)
                assert holds(made, interval_of(randomizer, honest, sampled))
                if liars < count - silent:
                    # The honest, with the silent, who may be honest, too.
                    alone = np.delete(honest, slice(silent, silent + liars))
                    assert holds(made, interval_of(randomizer, alone, sampled))
                fewer = interval_of(randomizer, came, sampled, liars=liars // 3, silent=silent // 3)
                missed += not holds(fewer, interval_of(randomizer, honest, sampled), 1e-3 * width)
    assert missed, "a third of the liars would do as well"


@each_case("randomizer", MEANS + SHARES)
def test_without_liars_and_silence_the_interval_is_the_plain_one(randomizer):
    last = 2 if randomizer in SHARES else 1.0
    reports = randomizer.sample(np.linspace(0, last, 500).round(), random_state=2)
    plain = interval_of(randomizer, reports)
    for bits, again in zip(plain, interval_of(randomizer, reports, liars=0, silent=0), strict=True):
        assert bits.tolist() == again.tolist()
    # More than all have no more to say than all, who may say anything.
    all_ = interval_of(randomizer, reports, liars=500)
    more = interval_of(randomizer, reports, liars=10**12)
    assert (all_[0] == more[0]).all()
    assert (all_[1] == more[1]).all()
    if randomizer in MEANS:
        assert (all_[0][0], all_[1][0]) == randomizer.bounds


def test_huge_numbers_of_reports_and_silent_people_do_not_overflow():
    made = local.KaryResponse(2, 1.0)
    whole = made.aggregate()
    whole._total[:], whole._reports = 2**61, 2**62
    assert math.isfinite(whole.interval(0.05, liars=2**60, silent=2**60))
    bits = local.BinaryResponse(1.0, UNIT).aggregate([0, 1])
    assert bits.estimate(0.05, silent=2**62) == (0.5, 0.0, 1.0)


def test_an_attack_that_the_plain_interval_does_not_survive():
    """One in twenty sends a 1 whatever it holds; among 20,000 people of whom a tenth hold a 1."""
    epsilon, count, liars = 0.5, 20_000, 1000
    answers = local.randomized_response(np.arange(count) % 10 == 0, epsilon=epsilon)
    answers[:liars] = 1
    found = local.BinaryResponse(epsilon, UNIT).aggregate(answers)
    plain, wide = found.estimate(1e-9), found.estimate(1e-9, liars=liars)
    # The plain one is about .1 + .05 * 2.04 * (1.14 / 2), give or take .09 at this beta.
    moved = local.largest_distortion(epsilon, reports=count, liars=liars)
    assert moved == pytest.approx(liars / count / advantage(epsilon))
    assert wide.low <= 0.1 <= wide.high
    assert wide.value == plain.value
    assert plain.high <= wide.high <= plain.high + 1.2 * moved
    exact = estimate_exactly(int(answers.sum()), count, beta=1e-9, epsilon=epsilon)
    assert plain == pytest.approx(exact, abs=1e-12)
