"""Randomized responses against their exact law, with coins of the operating system."""

import itertools
import json
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from device_cases import question_text
from frequencies import FALSE_ALARM, Case, misfits, two_sided
from lengths import STAT

from hdp_fast import _core, local

COUNT = 1 << 21
# Responses that share one stream of the generator.
CHUNK = 1 << 14
EPSILONS = [1e-12, 0.01, 0.3, 1.0, 4.0, 9.0, 45.0, 1e6]


def truth(epsilon):
    return Fraction(_core.truth_probability(epsilon), 2**64)


def lies(bit, epsilon):
    bits = np.full(COUNT, bit, np.uint8)
    return int(np.count_nonzero(local.randomized_response(bits, epsilon=epsilon) != bit))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_truth_probability_is_rounded_towards_a_half(epsilon):
    with localcontext() as context:
        context.prec = 60
        value = Fraction(1 / (1 + (-Decimal(epsilon)).exp()))
    assert Fraction(1, 2) <= truth(epsilon) <= value
    # A relative margin, and epsilon itself is capped.
    assert value - truth(epsilon) <= (value - Fraction(1, 2)) / 2**44 + Fraction(1, 2**64)


@pytest.mark.parametrize("bit", [0, 1])
def test_lies_come_at_their_rate(bit):
    p_values = [two_sided(lies(bit, epsilon), COUNT, 1 - truth(epsilon)) for epsilon in EPSILONS]
    assert min(p_values) > FALSE_ALARM / len(EPSILONS)


@pytest.mark.parametrize("fraction", [0.0, 2.0**-20, 1 / 3, 0.5, 1 - 2.0**-20, 1.0])
def test_fractions_are_rounded_at_their_own_rate(fraction):
    for epsilon in (1.0, 1e6):
        said = local.randomized_response(np.full(COUNT, fraction), epsilon=epsilon)
        one = Fraction(fraction) * truth(epsilon) + (1 - Fraction(fraction)) * (1 - truth(epsilon))
        assert two_sided(int(said.sum()), COUNT, one) > FALSE_ALARM / 2


def test_a_fraction_two_hundredths_larger_would_be_seen():
    said = local.randomized_response(np.full(COUNT, 0.34), epsilon=1e6)
    assert two_sided(int(said.sum()), COUNT, 1 / 3) < FALSE_ALARM


def test_epsilon_two_percent_larger_would_be_seen():
    assert two_sided(lies(1, 1.02), COUNT, 1 - truth(1.0)) < FALSE_ALARM


def pairs(answers, distance):
    """Counts of (answer, answer `distance` later), no answer in two pairs."""
    both = answers[: len(answers) // (2 * distance) * 2 * distance].reshape(-1, 2, distance)
    joint = np.bincount((2 * both[:, 0] + both[:, 1]).ravel(), minlength=4)
    return dict(enumerate(joint.tolist()))


def pair_law(one):
    return {2 * a + b: (one if a else 1 - one) * (one if b else 1 - one) for a, b in BITS}


BITS = list(itertools.product((0, 1), repeat=2))
DISTANCES = [1, 2, 8, 64, 1000, CHUNK, 2 * CHUNK]


@pytest.mark.parametrize("epsilon", [1e-12, 1.0])
def test_neighboring_answers_are_independent(epsilon):
    law, cases = pair_law(1 - truth(epsilon)), []
    for distance in DISTANCES:
        answers = local.randomized_response(np.zeros(COUNT, np.uint8), epsilon=epsilon)
        cases.append(Case(pairs(answers, distance), law))
    assert misfits(cases) == []


def test_answers_to_the_same_bits_are_independent_from_call_to_call():
    bits = np.zeros(COUNT, np.uint8)
    calls = np.stack([local.randomized_response(bits, epsilon=1.0) for _ in range(2)])
    assert misfits([Case(pairs(calls.ravel(), COUNT), pair_law(1 - truth(1.0)))]) == []


@pytest.mark.parametrize("distance", [1, CHUNK])
def test_a_few_repeated_coins_would_be_seen(distance):
    answers = local.randomized_response(np.zeros(COUNT, np.uint8), epsilon=1.0)
    both = answers.reshape(-1, 2, distance)
    both[: len(both) // 50, 1] = both[: len(both) // 50, 0]
    assert misfits([Case(pairs(answers, distance), pair_law(1 - truth(1.0)))])


def test_agents_answer_by_randomized_response_and_their_mean_is_estimated_without_bias():
    epsilon, rng = 0.7, np.random.default_rng(1)
    X, y = rng.integers(0, 2, (COUNT, 1), np.uint8), (rng.random(COUNT) < 0.3).astype(np.uint8)
    agents = local.Agents(X, y, epsilon=epsilon)
    said = agents.ask(lambda X, y: y, COUNT)
    lied = int(np.count_nonzero(said != y))
    assert two_sided(lied, COUNT, 1 - truth(epsilon)) > FALSE_ALARM / 2
    estimate = local.estimate_mean(said, beta=FALSE_ALARM / 2, epsilon=epsilon)
    assert estimate.low <= y.mean() <= estimate.high
    half = math.sqrt(math.log(4 / FALSE_ALARM) / (2 * COUNT)) / math.tanh(epsilon / 2)
    assert estimate.high - estimate.low == pytest.approx(2 * half)


def test_lines_of_a_device_follow_their_law():
    """Reports about a stage, a fraction and a bit, as a person's device writes them."""
    count = 200_000 if STAT else 5_000
    label = {"kind": "query", "terms": [{"kind": "label"}]}
    rule = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}
    stage = {"kind": "stage", "key": "07" * 16, "first": 1, "count": count}
    stage |= {"queries": [label, rule], "shares": [1, 2]}
    question, reports, ids = question_text("stage", hypothesis=stage), Counter(), set()
    for number in range(1, count + 1):
        line = json.loads(_core.device_line(question, number, [0.0, 1.0], 0.25, None))
        reports[line["report"]] += 1
        ids.add(line["id"])
    assert len(ids) == count
    places = Counter(_core.stage_places(bytes([7] * 16), 1, count, [1, 2]).tolist())
    for j, fraction in ((0, Fraction(1, 4)), (1, Fraction(1))):
        assert reports[2 * j] + reports[2 * j + 1] == places[j]
        one = fraction * truth(1.0) + (1 - fraction) * (1 - truth(1.0))
        assert two_sided(reports[2 * j + 1], places[j], one) > FALSE_ALARM / 2
    assert two_sided(reports[3], places[1], truth(1.6)) < FALSE_ALARM
