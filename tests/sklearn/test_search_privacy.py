"""The guarantee of a private search, on all tiny data sets and all their neighbors."""

import dataclasses
import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from lengths import STAT
from sklearn.base import BaseEstimator, ClassifierMixin

from hdp_fast import PrivacyRecord
from hdp_fast.budget import spend
from hdp_fast.sklearn import PrivateSearchCV
from hdp_fast.sklearn.held_out import _STEPS, choose, count_correct, sum_closeness
from hdp_fast.sklearn.search_fits import FitPrice, SearchRecords, make_plan

EPSILON, DELTA = 1.5, 1e-3
# Places 0 and 1 are held out.
HELD, RECORDS = 2, 4
DATA = list(itertools.product([0, 1], repeat=RECORDS))


def response(bit, epsilon):
    """Randomized response, which is epsilon-DP and no better."""
    kept = 1 / (1 + math.exp(-epsilon))
    return {bit: kept, 1 - bit: 1 - kept}


def permute_and_flip(totals, rate):
    """The law of the choice between two candidates."""
    low = totals.index(min(totals))
    chance = math.exp(-rate * abs(totals[0] - totals[1])) / 2
    return {low: chance, 1 - low: 1 - chance}


def discrete_laplace(epsilon, reach=6):
    """The law of the noise, with all that lies beyond its reach at its ends."""
    shrink = math.exp(-epsilon)
    law = {x: (1 - shrink) / (1 + shrink) * shrink ** abs(x) for x in range(-reach + 1, reach)}
    tail = shrink**reach / (1 + shrink)
    return law | {-reach: tail, reach: tail}


def law_of(data, plan, sensitivity=1, is_disjoint=True):
    """The joint law of models, choice, score and last model for two candidates."""
    train = data[HELD:] if is_disjoint else data
    # Replacing one record flips a parity: no fit depends on a record more than these do.
    models = [response((sum(train) + flip) % 2, plan.fit.epsilon) for flip in (0, 1)]
    last = response(sum(data) % 2, plan.refit.epsilon) if plan.refit else {None: 1.0}
    law = defaultdict(float)
    for (first, p), (second, q) in itertools.product(*(model.items() for model in models)):
        totals = [sum(bit == label for label in data[:HELD]) for bit in (first, second)]
        choice = permute_and_flip(totals, plan.choice / (2 * sensitivity))
        for (chosen, r), (noise, s) in itertools.product(
            choice.items(), discrete_laplace(plan.score).items()
        ):
            for bit, t in last.items():
                outcome = first, second, chosen, min(max(totals[chosen] + noise, -4), 6), bit
                law[outcome] += p * q * r * s * t
    return law


def worst_delta(plan, **changed):
    """The least delta at EPSILON over all data sets and all neighbors."""
    laws = {data: law_of(data, plan, **changed) for data in DATA}
    worst = 0.0
    for data, law in laws.items():
        for place in range(RECORDS):
            other = list(data)
            other[place] ^= 1
            beside = laws[tuple(other)]
            gaps = (p - math.exp(EPSILON) * beside[outcome] for outcome, p in law.items())
            worst = max(worst, math.fsum(max(gap, 0.0) for gap in gaps))
    return worst


def plan_for(refit):
    return make_plan(EPSILON, DELTA, 2, charged=True, refit=refit)


@pytest.mark.parametrize("refit", [True, False])
def test_the_whole_search_keeps_its_epsilon_and_delta_on_all_neighbors(refit):
    plan = plan_for(refit)
    laws = [law_of(data, plan) for data in DATA]
    np.testing.assert_allclose([math.fsum(law.values()) for law in laws], 1)
    assert worst_delta(plan) <= DELTA
    # No part is idle: a little more for each is too much.
    for name in ("fit", "choice", "score") + ("refit",) * refit:
        part = getattr(plan, name)
        more = FitPrice(1.2 * part[0], part[1]) if isinstance(part, FitPrice) else 1.2 * part
        assert worst_delta(dataclasses.replace(plan, **{name: more})) > DELTA


@pytest.mark.parametrize("wrong", [{"is_disjoint": False}, {"sensitivity": 0.5}])
def test_a_wrong_split_or_sensitivity_is_noticed(wrong):
    plan = plan_for(refit=True)
    assert worst_delta(plan, **wrong) > DELTA


def test_a_choice_and_a_score_that_each_take_all_are_noticed():
    plan = plan_for(refit=False)
    wrong = dataclasses.replace(plan, choice=EPSILON, score=EPSILON)
    assert worst_delta(wrong) > DELTA


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("candidates", [1, 2, 7, 40, 1_000])
def test_a_plan_spends_no_more_than_it_may_and_nearly_all(epsilon, candidates):
    for charged, refit in itertools.product([True, False], repeat=2):
        plan = make_plan(epsilon, 1e-6, candidates, charged=charged, refit=refit)
        assert (1 - 1e-4) * epsilon <= plan.total(1e-6) <= epsilon
        assert plan.fit.epsilon >= epsilon / candidates / (1 + refit) * (1 - 1e-9)
        assert plan.choice + plan.score <= epsilon
        deltas = candidates * plan.fit.delta + (plan.refit.delta if refit else 0)
        assert deltas <= 1e-6


def test_no_record_changes_a_total_by_more_than_its_unit():
    values = np.array([-math.inf, -1.0, 0.0, 0.3, 1.0, 7.0, math.inf, math.nan])
    for predicted in values:
        totals = [sum_closeness(np.array([predicted]), np.array([y]), (0.0, 1.0)) for y in values]
        assert all(0 <= total <= _STEPS for total in totals)
    extremes = [sum_closeness(np.zeros(1), np.array([y]), (0.0, 1.0)) for y in (0.0, 1.0)]
    assert extremes == [_STEPS, 0]
    labels = np.array(["a", "b", "c"], object)
    assert [count_correct(labels, np.array([text] * 3)) for text in ("a", "z")] == [1, 0]


def test_the_choice_and_its_score_follow_their_law():
    """The seed is fixed; with another one a false alarm would be rarer than once in 10,000 runs."""
    plan, totals, times = plan_for(refit=False), [3, 5], 3_000
    stream = np.random.default_rng(5)
    draws = [choose(totals, 1, plan, stream) for _ in range(times)]
    noise = discrete_laplace(plan.score)
    expected = permute_and_flip(totals, plan.choice / 2)
    chances = {("choice", 0): expected[0]} | {("noise", x): noise[x] for x in range(-3, 4)}
    seen = {
        **{("choice", 0): np.mean([chosen == 0 for chosen, _ in draws])},
        **{
            ("noise", x): np.mean([total - totals[chosen] == x for chosen, total in draws])
            for x in range(-3, 4)
        },
    }
    for key, p in chances.items():
        assert abs(seen[key] - p) < 5 * math.sqrt(p * (1 - p) / times)
    # A choice with twice the epsilon would be noticed.
    twice = permute_and_flip(totals, plan.choice)[0]
    assert abs(seen["choice", 0] - twice) > 5 * math.sqrt(twice / times)


class NoisyParity(ClassifierMixin, BaseEstimator):
    """Learns one bit by randomized response, as the law above has it."""

    def __init__(self, flip=0, epsilon=None, delta=None):
        self.flip, self.epsilon, self.delta = flip, epsilon, delta

    def fit(self, X, y, *, budget=None):
        record = PrivacyRecord(
            mechanism="randomized response", source="Warner 1965", neighbors="replace_one",
            epsilon=self.epsilon, noise="a coin",
        )  # fmt: skip
        with spend(budget, record):
            chances = response((int(np.sum(y)) + self.flip) % 2, self.epsilon)
            self.bit_ = int(COINS.random() < chances[1])
            LEARNED.append(self.bit_)
        return self

    def predict(self, X):
        return np.full(len(X), self.bit_)


COINS, LEARNED = np.random.default_rng(11), []


def test_searches_follow_the_law(monkeypatch):
    places = np.arange(RECORDS)
    halves = lambda records, *_: (records.take(places[HELD:]), records.take(places[:HELD]))  # noqa: E731
    monkeypatch.setattr(SearchRecords, "split", halves)
    data, times, seen = (1, 1, 0, 1), 4_000 if STAT else 150, Counter()
    for _ in range(times):
        LEARNED.clear()
        search = PrivateSearchCV(NoisyParity(), {"flip": [0, 1]}, epsilon=EPSILON, delta=DELTA)
        search.fit(np.zeros((RECORDS, 1)), np.array(data))
        first, second, last = LEARNED
        seen[first, second, search.best_index_, last] += 1
    chances = Counter()
    for (first, second, chosen, _, last), p in law_of(data, plan_for(refit=True)).items():
        # The last fit is that of the chosen candidate.
        chances[first, second, chosen, last ^ chosen] += p
    for outcome, p in chances.items():
        assert abs(seen[outcome] / times - p) < 5 * math.sqrt(p * (1 - p) / times), outcome
    assert abs(sum(chances.values()) - 1) < 1e-12
    assert sum(seen[outcome] for outcome in chances) == times
