"""Runs of which many agents never answer, and plans that know of it."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from hdp_fast import parity
from hdp_fast.exceptions import AgentsExhausted, ParameterError, UtilityWarning
from hdp_fast.learners import Conjunctions, ExponentialLearner, Stumps, predictor
from hdp_fast.local import RemoteAgents, learn_by_votes, randomized_response
from hdp_fast.transfer import SubsampleTestReweigh

D, EPSILON = 6, 4.0
LEARNER = ExponentialLearner(Conjunctions(D, 2), epsilon=1.0)
PLAIN = {"alpha": 0.1, "epsilon": math.inf, "draws": 500, "eta": 0.5, "kappa": 0.5, "rounds": 8}
RNG = np.random.default_rng(1)
X = RNG.integers(0, 2, (4000, D), dtype=np.uint8)
Y = X[:, 1] & X[:, 2]


class People:
    """Those behind a function: a share of them answers, with an id and in batches."""

    def __init__(self, rate=1.0, seed=0, answer=None, silent=()):
        self.rng, self.rate, self.answer = np.random.default_rng(seed), rate, answer
        self.ids, self.asked, self.silent = itertools.count(), [], silent

    def __call__(self, text, count):
        self.asked.append(count)
        if len(self.asked) in self.silent:
            return
        records = self.rng.integers(0, 2, (count, D), dtype=np.uint8)
        wrong = predictor(text)(records) != (records[:, 1] & records[:, 2])
        bits = randomized_response(wrong, epsilon=EPSILON)
        if self.answer is not None:
            bits[:] = self.answer
        came = bits[self.rng.random(count) < self.rate].tolist()
        for start in range(0, len(came), 100):
            yield [(str(next(self.ids)), bit) for bit in came[start : start + 100]] + [None]


def agents(people, count=50_000, **options):
    return RemoteAgents(people, epsilon=EPSILON, count=count, **options)


def model(**changes):
    return SubsampleTestReweigh(LEARNER, **{**PLAIN, **changes})


@pytest.mark.parametrize("output", ["tested", "smallest", "majority"])
def test_a_run_uses_the_answers_that_arrive(output):
    people = People(0.7)
    learned = model(output=output).fit(X, Y, agents(people, response_rate=0.7), random_state=3)
    result, plan = learned.result_, learned.plan_
    full = model(output=output).plan(len(X), agents_epsilon=EPSILON)
    assert plan.response_rate == 0.7
    assert full.agents_per_test / 0.7 <= plan.agents_per_test <= full.agents_per_test / 0.7 + 5
    assert set(people.asked) <= {plan.agents_per_test, plan.agents_for_constants}
    for test in result.estimates:
        assert 0.6 < test.agents / plan.agents_per_test < 0.8
    assert result.agents_asked < sum(people.asked)
    assert result.tested.value < 0.15


def test_a_run_that_one_person_of_all_does_not_answer_goes_on():
    def ask(text, count):
        return np.zeros(count - 1, np.uint8)

    learned = model(schedule="final", output="majority")
    with pytest.warns(UtilityWarning, match="agents have answered, fewer than"):
        result = learned.fit(X, Y, agents(ask)).result_
    assert result.tested.agents == learned.plan_.agents_per_test - 1


def test_the_resume_after_a_silent_test_asks_others():
    people = People(silent=(2,))
    learned = model(schedule="every", output="smallest")
    crowd = agents(people)
    with pytest.raises(AgentsExhausted, match=r"none of the .* has answered; the run is kept"):
        learned.fit(X, Y, crowd, random_state=3)
    result = learned.resume(X, Y, crowd).result_
    assert len(result.estimates) == 8
    assert len(people.asked) == 8 + 1 + 1  # one in vain, one for the constants
    assert crowd.counts()["asked"] == sum(people.asked)


def test_a_few_lucky_answers_accept_no_hypothesis():
    """Ten answers that say right show nothing: the smallest estimate alone would be believed."""
    lucky = People(0.03, answer=0)
    result = model().fit(X, Y, agents(lucky), random_state=3).result_
    assert all(test.value == 0 and test.high > 0.3 for test in result.estimates)
    assert (result.stopped, result.rounds) == ("rounds", 8)
    promised = dataclasses.replace(result, plan=dataclasses.replace(result.plan, error=0.6))
    assert promised.utility.startswith("measured, no promise")
    # With the rate in the plan so many are asked that these answers are enough.
    planned = model().fit(X, Y, agents(lucky, 500_000, response_rate=0.03), random_state=3).result_
    assert planned.rounds == 1
    promised = dataclasses.replace(planned, plan=dataclasses.replace(planned.plan, error=0.6))
    assert promised.utility.startswith("promised at most 0.6")


def test_votes_of_a_silent_group_do_not_win():
    asked = []

    def ask(text, count):
        asked.append(text)
        if len(asked) == 1:
            return []
        if len(asked) == 2:
            return [0]  # one answer that says right
        return randomized_response(np.full(count, len(asked) != 4), epsilon=EPSILON)

    result = learn_by_votes(Stumps(3), RemoteAgents(ask, epsilon=EPSILON, count=4000))
    assert result.index == 3
    with pytest.raises(AgentsExhausted, match=r"none of the 100 who were asked has answered"):
        learn_by_votes(Stumps(3), RemoteAgents(lambda *_: [], epsilon=1.0, count=100))


TRANSFER = {"epsilon": 4.0, "alpha": 0.1, "beta": 0.05}


def parity_people(rate):
    rng = np.random.default_rng(4)

    def ask(text, count):
        records = rng.integers(0, 2, (count, D), dtype=np.uint8)
        wrong = predictor(text)(records) != (records[:, 1] ^ records[:, 3] ^ 1)
        return randomized_response(wrong, epsilon=EPSILON)[: int(rate * count)]

    return ask


def test_a_parity_is_verified_by_those_who_answer():
    y = X[:, 1] ^ X[:, 3] ^ 1
    crowd = agents(parity_people(0.8), response_rate=0.7)
    result = parity.transfer(X, y, crowd, affine=True, **TRANSFER)
    assert result.target_error < 0.1
    goal = {"agents_epsilon": EPSILON, "response_rate": 0.7, **TRANSFER}
    plan = parity.plan_transfer(D + 1, **goal)
    counts = crowd.counts()
    assert (counts["asked"], counts["answered"]) == (plan.agents, int(0.8 * plan.agents))


@pytest.mark.parametrize("silence", ["no one", "failure"])
def test_a_parity_that_nobody_judges_is_not_lost(silence):
    ask = (lambda text, count: []) if silence == "no one" else (lambda text, count: 1 // 0)
    y = X[:, 1] ^ X[:, 3]
    with pytest.warns(UtilityWarning, match="the error on the target is unknown: no agent has"):
        result = parity.transfer(X, y, agents(ask), **TRANSFER)
    assert result.released
    assert (result.target_error, result.interval) == (None, None)


@pytest.mark.parametrize("rate", [0, 2, math.nan])
def test_plans_refuse_rates_that_are_none(rate):
    with pytest.raises(ParameterError, match="response_rate"):
        model().plan(4000, agents_epsilon=1.0, response_rate=rate)
    with pytest.raises(ParameterError, match="response_rate"):
        parity.plan_transfer(8, agents_epsilon=1.0, response_rate=rate, **TRANSFER)
