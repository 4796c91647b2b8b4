"""The learner that takes few records where a concise hypothesis will do: plan, law, promise."""

import dataclasses
import doctest
import functools
import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from lengths import at_length
from scipy.stats import binom

from hdp_fast import gf2, learners
from hdp_fast.budget import Budget
from hdp_fast.exceptions import (
    BudgetExceeded,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from hdp_fast.learners import (
    Conjunctions,
    DoublingLearner,
    DoublingRound,
    ExponentialLearner,
    Halfspaces,
    Parities,
    Stumps,
)
from hdp_fast.reference import noise as laws

CONJUNCTIONS = [Conjunctions(20, size) for size in (0, 1, 2, 3)]
SETTINGS = [
    {"alpha": alpha, "beta": beta, "epsilon": epsilon}
    for alpha in (0.05, 0.3, 0.9)
    for beta in (0.01, 0.5)
    for epsilon in (0.1, 1.0, 20.0)
]


def taken(each):
    return each.learn + each.test


# Plan ---------------------------------------------------------------------------------------------


def accepts(error, test, threshold, epsilon):
    """Pr[Bin(test, error) + L <= threshold], exactly but for floats."""
    q = math.exp(-epsilon)
    room = threshold - np.arange(test + 1)
    below = np.where(room >= 0, 1 - q ** (np.maximum(room, 0) + 1) / (1 + q), 0.0)
    below = np.where(room < 0, q ** np.maximum(-room, 0) / (1 + q), below)
    return float(binom.pmf(np.arange(test + 1), test, error) @ below)


def round_numbers(learner):
    """Which of the doubling rounds each of the plan is, from the shares it must have used."""
    for each in learner.rounds:
        for k in range(60):
            alone = DoublingLearner(
                [learner.classes[each.place]],
                alpha=learner.alpha,
                beta=learner.beta / 2**k,
                epsilon=learner.epsilon,
            )
            if alone.rounds[0][1:] == each[1:]:
                yield k
                break


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_tests_are_wrong_as_rarely_as_they_must(setting):
    learner = DoublingLearner(CONJUNCTIONS, **setting)
    alpha, epsilon = setting["alpha"], setting["epsilon"]
    numbers = list(round_numbers(learner))
    assert len(numbers) == len(learner.rounds)
    for k, each in zip(numbers, learner.rounds, strict=True):
        share = setting["beta"] / 2 ** (k + 1) / 3
        assert accepts(alpha, each.test, each.threshold, epsilon) <= share
        # The smallest error that so few records make sure of, as the sharpest aim.
        choice = ExponentialLearner(learner.classes[each.place], epsilon=epsilon)
        aims = [alpha * eighths / 8 for eighths in (1, 2, 3, 4, 5)]
        needs = [max(1, choice.sample_size(aim, share, agnostic=False)) for aim in aims]
        assert each.learn in needs
        aim = min(aim for aim, need in zip(aims, needs, strict=True) if need == each.learn)
        assert 1 - accepts(aim, each.test, each.threshold, epsilon) <= share
        # Not by accident: a quarter of the records would be too few.
        worse = max(
            accepts(alpha, each.test // 4, each.threshold // 4, epsilon),
            1 - accepts(aim, each.test // 4, each.threshold // 4, epsilon),
        )
        assert worse > share


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_each_round_has_the_largest_class_that_its_records_serve(setting):
    learner = DoublingLearner(CONJUNCTIONS, **setting)
    numbers = list(round_numbers(learner))
    start = taken(learner.rounds[0])
    assert numbers[0] == learner.rounds[0].place == 0
    assert learner.rounds[-1].place == len(CONJUNCTIONS) - 1
    used = 0
    for k, each in zip(numbers, learner.rounds, strict=True):
        need = [
            taken(
                DoublingLearner(
                    [one], alpha=learner.alpha, beta=learner.beta / 2**k, epsilon=learner.epsilon
                ).rounds[0]
            )
            for one in CONJUNCTIONS
        ]
        limit = start * 2**k
        assert need[each.place] == taken(each) <= limit
        assert all(more > limit for more in need[each.place + 1 :])
        used += taken(each)
        # Of all classes that come with this round first, less than four times their own need.
        earlier = max((r.place for r in learner.rounds if r.place < each.place), default=-1)
        assert all(used < 4 * need[place] for place in range(earlier + 1, each.place + 1))
    assert learner.most_records == used


# Privacy ------------------------------------------------------------------------------------------

ROUNDS = (DoublingRound(0, 2, 1, 0), DoublingRound(1, 1, 2, 1))
TINY = [Parities([[1]]), Stumps(1)]


def law(X, y, epsilon, rounds=ROUNDS, *, reuse=False):
    """Pr[round, hypothesis] and Pr[None], by the laws of selection and noise."""
    found, going, used = {}, Decimal(1), 0
    for k, (place, learn, test, threshold) in enumerate(rounds):
        chosen, middle = slice(used, used + learn), used + learn
        tested = chosen if reuse else slice(middle, middle + test)
        errors = TINY[place].errors(X[chosen], y[chosen])
        some = chances(tuple(-int(e) for e in errors), epsilon / 2)
        stays = Decimal(0)
        for i, p in enumerate(some):
            wrong = int((TINY[place].predict(i, X[tested]) != y[tested]).sum())
            passed = at_most(threshold - wrong, epsilon)
            found[k, i] = going * p * passed
            stays += p * (1 - passed)
        going, used = going * stays, middle + test
    return {**found, None: going}


@functools.cache
def chances(scores, epsilon):
    return laws.permute_and_flip_law(list(scores), epsilon)


@functools.cache
def at_most(x, epsilon):
    """Pr[L <= x] of the discrete Laplace law."""
    q = laws.exp_minus(epsilon)
    tail = laws.exp_minus(epsilon * (abs(x) + (x >= 0))) / (1 + q)
    return 1 - tail if x >= 0 else tail


def worst_ratio(epsilon, **options):
    records = list(itertools.product((0, 1), repeat=2))
    n = sum(each.learn + each.test for each in ROUNDS)
    every = {}
    for some in itertools.product(records, repeat=n):
        X, y = (np.array(part, np.uint8) for part in zip(*some, strict=True))
        every[some] = law(X[:, None], y, epsilon, **options)
    worst = Decimal(0)
    for some, one in every.items():
        for place, changed in itertools.product(range(n), records):
            other = every[(*some[:place], changed, *some[place + 1 :])]
            worst = max(worst, *(p / other[outcome] for outcome, p in one.items()))
    return worst


@pytest.mark.parametrize("epsilon", [pytest.param(Fraction(1, 2), marks=at_length), Fraction(2)])
def test_privacy_by_enumeration(epsilon):
    bound = 1 / laws.exp_minus(epsilon)
    worst = worst_ratio(epsilon)
    assert bound ** Decimal("0.9") <= worst <= bound * (1 + Decimal(10) ** -20)


def tiny(epsilon, rounds=ROUNDS):
    learner = DoublingLearner(TINY, alpha=0.5, beta=0.5, epsilon=epsilon)
    object.__setattr__(learner, "rounds", rounds)
    return learner


@pytest.mark.parametrize("seed", range(3))
def test_learn_draws_from_the_law(seed):
    """Frequencies within six standard deviations."""
    coins, runs = np.random.default_rng(seed), 1_500
    X, y = coins.integers(0, 2, (6, 1)), coins.integers(0, 2, 6)
    learner, found = tiny(1.0), Counter()
    for _ in range(runs):
        result = learner.learn(X, y, random_state=coins)
        found[(result.place, result.learned.index) if result.released else None] += 1
        assert result.records == (3 if result.place == 0 else 6)
    want = law(X, y, Fraction(1))
    assert found.keys() <= want.keys()
    for outcome, p in want.items():
        assert abs(found[outcome] - runs * float(p)) <= 6 * math.sqrt(runs * float(p * (1 - p)))


def test_the_record_and_the_budget_say_what_was_spent():
    X, y = np.zeros((6, 1), np.uint8), np.zeros(6, np.uint8)
    budget = Budget(1.0)
    record = tiny(0.75).learn(X, y, budget=budget).record
    assert (record.epsilon, record.delta, record.neighbors) == (0.75, 0, "replace_one")
    assert record.mechanism == "learners.DoublingLearner"
    assert budget.spent.epsilon == 0.75
    assert tiny(0.75).privacy.epsilon == 0.75
    with pytest.raises(BudgetExceeded):
        tiny(0.75).learn(X, y, budget=budget)


# Promise ------------------------------------------------------------------------------------------

LEARNER = DoublingLearner(CONJUNCTIONS, alpha=0.15, beta=0.2, epsilon=1.0)


def sample(coins, n, features):
    """Records that a conjunction labels: 1 where all these features are."""
    X = (coins.random((n, 20)) < 0.8).astype(np.uint8)
    return X, X[:, features].all(axis=1).astype(np.uint8)


@pytest.mark.parametrize(("features", "runs"), [([], 60), ([3], 60), ([3, 7, 11], 40)])
def test_a_concise_truth_takes_few_records(features, runs):
    coins, wrong, used = np.random.default_rng(1), 0, []
    until = next(i for i, each in enumerate(LEARNER.rounds) if each.place >= len(features))
    enough = sum(map(taken, LEARNER.rounds[: until + 1]))
    X_test, y_test = sample(coins, 20_000, features)
    for _ in range(runs):
        X, y = sample(coins, LEARNER.most_records, features)
        result = LEARNER.learn(X, y, random_state=coins)
        used.append(result.records)
        good = result.released and (result.learned.predict(X_test) != y_test).mean() < 0.155
        wrong += not (good and result.records <= enough)
    # With beta = .2 each, 27 of 60 or 20 of 40 have a chance below 1e-4; far fewer fail.
    assert wrong <= 0.1 * runs
    assert np.mean(used) <= enough
    if len(features) < 2:
        assert enough < 0.6 * LEARNER.most_records


def test_where_nothing_fits_there_is_no_release_and_no_error():
    coins, released = np.random.default_rng(2), 0
    for _ in range(40):
        X, _ = sample(coins, LEARNER.most_records, [])
        result = LEARNER.learn(X, coins.integers(0, 2, len(X)), random_state=coins)
        released += result.released
        if not result.released:
            assert (result.learned, result.place) == (None, None)
            assert result.records == LEARNER.most_records
    # Every error is 1/2, far beyond alpha: at most beta / 3 of the runs.
    assert released <= 2


def test_without_noise_to_speak_of_the_truth_is_found():
    learner = DoublingLearner(CONJUNCTIONS[1:], alpha=0.1, beta=0.1, epsilon=1e3)
    X, y = sample(np.random.default_rng(3), learner.most_records, [2, 5])
    result = learner.learn(X, y)
    assert result.learned.hypothesis["features"] == [2, 5]
    assert result.learned.predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("kind", [gf2.BitMatrix.from_dense, learners.Features, lambda X: X > 0])
def test_records_of_any_kind_give_the_same(kind):
    X, y = sample(np.random.default_rng(4), LEARNER.most_records, [3])
    want, got = (LEARNER.learn(each, y, random_state=9) for each in (X, kind(X)))
    assert (want.place, want.records) == (got.place, got.records)
    assert want.learned.index == got.learned.index


def test_rounds_beyond_the_records_are_left_out():
    coins = np.random.default_rng(5)
    n = sum(map(taken, LEARNER.rounds[:2]))
    X, _ = sample(coins, n, [])
    y = coins.integers(0, 2, n)
    assert LEARNER.learn(X, y, random_state=1).records in (n, taken(LEARNER.rounds[0]))
    one = taken(LEARNER.rounds[0])
    assert LEARNER.learn(X[: n - 1], y[: n - 1], random_state=1).records <= n - 1
    with pytest.raises(InsufficientSamples, match=f"the first round takes {one:,}"):
        LEARNER.learn(X[: one - 1], y[: one - 1])


def test_halfspaces_are_learned_too():
    classes = [Halfspaces([[1.0]], [0.0]), Halfspaces([[1.0], [-1.0]], [0.0, 0.5])]
    learner = DoublingLearner(classes, alpha=0.3, beta=0.1, epsilon=1.0)
    X = np.random.default_rng(6).normal(size=(learner.most_records, 1))
    result = learner.learn(X, (X[:, 0] <= 0.5).astype(int), random_state=1)
    assert (result.place, result.learned.index) == (1, 1)


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "error", "match"),
    [
        ([], ParameterError, "sequence of classes"),
        (Stumps(3), ParameterError, "sequence of classes"),
        ([Stumps(3), "no"], ParameterError, "class of hypotheses"),
        ([Stumps(3), Conjunctions(3, 0)], ParameterError, "contain the one before"),
        ([Stumps(3), Conjunctions(4, 2)], ShapeError, "all must have the same"),
    ],
)
def test_what_are_no_classes_is_refused(classes, error, match):
    with pytest.raises(error, match=match):
        DoublingLearner(classes, alpha=0.1, beta=0.1, epsilon=1.0)


def test_parameters_out_of_range_are_refused():
    good = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0}
    for name, value in itertools.product(good, (0, -1, math.nan, "1")):
        with pytest.raises(ParameterError, match=name):
            DoublingLearner([Stumps(3)], **{**good, name: value})
    with pytest.raises(ParameterError, match=r"2\*\*62"):
        DoublingLearner([Stumps(3)], alpha=1e-12, beta=0.1, epsilon=1e-12)


def test_nothing_is_spent_on_what_cannot_be_learned():
    X, y = sample(np.random.default_rng(7), LEARNER.most_records, [])
    budget = Budget(1.0)
    for bad in (X[:, :3], y), (X, y[1:]), (X * 2, y), (X, y * 3), (X[:5], y[:5]):
        with pytest.raises((ShapeError, ParameterError, InsufficientSamples)):
            LEARNER.learn(*bad, budget=budget)
    with pytest.raises(ParameterError, match="random_state"):
        LEARNER.learn(X, y, random_state="no", budget=budget)
    mixed = dataclasses.replace(
        LEARNER, classes=[Stumps(1), Halfspaces(np.ones((9, 1)), [0.0] * 9)]
    )
    with pytest.raises((ShapeError, ParameterError)):
        mixed.learn(X[:, :1], y, budget=budget)
    assert budget.records == ()


EXAMPLES = [DoublingLearner, ExponentialLearner, learners.vc_sample_size]


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: value.__name__)
def test_examples_in_docstrings_say_what_is_so(value):
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(verbose=False)
    for each in finder.find(value, value.__name__):
        assert each.examples
        assert runner.run(each).failed == 0
