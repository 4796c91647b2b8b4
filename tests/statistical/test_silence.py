"""Surveys that some do not answer: the promise holds if silence is by chance, and only then."""

import math
from fractions import Fraction

import lengths
import numpy as np
import pytest
from frequencies import FALSE_ALARM

from hdp_fast import _core
from hdp_fast.local import RemoteAgents, agents_needed, estimate_mean, randomized_response

GOAL = {"alpha": 0.2, "beta": 0.1, "epsilon": 2.0}
SHARE = 0.3
RUNS = 20_000 if lengths.STAT else 1_000


class Question:
    """What is asked, no matter what."""

    def __init__(self):
        self.hypothesis = {"kind": "any"}


def misses(rate_of, rate):
    """How many of the surveys err by more than alpha, and how many intervals miss the share.

    rate_of: from the true answers to the probabilities of an answer.
    """
    rng = np.random.default_rng()

    def ask(text, count):
        truths = rng.random(count) < SHARE
        answers = randomized_response(truths, epsilon=GOAL["epsilon"])
        yield answers[rng.random(count) < rate_of(truths)]

    count = agents_needed(**GOAL, response_rate=rate)
    goal = {"beta": GOAL["beta"], "epsilon": GOAL["epsilon"]}
    wrong = missed = 0
    for _ in range(RUNS):
        agents = RemoteAgents(ask, epsilon=GOAL["epsilon"], count=count, response_rate=rate)
        estimate = estimate_mean(agents.test(Question(), count), **goal)
        wrong += abs(estimate.value - SHARE) > GOAL["alpha"]
        missed += not estimate.low <= SHARE <= estimate.high
    return wrong, missed


def most(probability):
    """The most of the surveys that go wrong with this probability each, but for a false alarm."""
    slack = math.sqrt(RUNS * math.log(1 / FALSE_ALARM) / 2)
    return RUNS * probability + slack


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_the_agents_asked_keep_the_promise_with_the_chance_of_who_answers(rate):
    for failures in misses(lambda truths: np.full(len(truths), rate), rate):
        assert failures <= most(GOAL["beta"])


def test_silence_that_depends_on_the_answer_breaks_it():
    """Those who would say yes answer less often: what is estimated is the share among the
    others."""
    for failures in misses(lambda truths: np.where(truths, 0.15, 0.85), 0.7):
        assert failures > most(GOAL["beta"])


def law(bit, answers):
    """The exact chances of silence and of both reports of a device with this true answer."""
    truth = Fraction(_core.truth_probability(1.0), 2**64)
    return {
        None: 1 - answers,
        bit: answers * truth,
        1 - bit: answers * (1 - truth),
    }


def worst_ratio(rates):
    laws = [law(bit, rate) for bit, rate in enumerate(rates)]
    ratios = [laws[i][seen] / laws[1 - i][seen] for seen in (None, 0, 1) for i in (0, 1)]
    return max(ratios)


def test_silence_costs_no_privacy_only_where_it_does_not_depend_on_the_record():
    """What a collector sees of a device is silence, 0 or 1: all three, for both records."""
    fair, unfair = Fraction(7, 10), Fraction(6, 10)
    bound = Fraction(math.exp(1.0))
    assert worst_ratio([fair, fair]) <= bound
    assert worst_ratio([fair, fair]) > bound * (1 - Fraction(1, 10**9))
    assert worst_ratio([fair, unfair]) > bound
    assert worst_ratio([Fraction(99, 100), Fraction(1, 100)]) > 10 * bound
