"""Randomized response, agents who answer once, and what their answers tell."""

import copy
import functools
import itertools
import json
import math
import pickle
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from harness import together

from hdp_fast import _core, accounting, gf2, local
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError, UtilityWarning
from hdp_fast.learners import (
    Conjunctions,
    ExponentialLearner,
    Halfspaces,
    Parities,
    Stumps,
    predictor,
)
from hdp_fast.local import Agents, EmpiricalOracle, RemoteAgents
from hdp_fast.reference.parity import exp_bounds

ID_BITS = 12


def numbered(count, *, epsilon=1.0, kind=np.asarray):
    """Agents whose features are their number in binary."""
    X = (np.arange(count)[:, None] >> np.arange(ID_BITS) & 1).astype(np.uint8)
    return Agents(kind(X), X[:, 0], epsilon=epsilon)


def who(X):
    return (np.asarray(X) @ (1 << np.arange(ID_BITS))).tolist()


def labels(X, y):
    return y


# Randomized response ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [5e-324, 1e-9, 0.1, 0.5, 1.0, 10.0, 43.0, 44.5, 60.0, 700.0])
def test_truth_is_at_most_exp_epsilon_times_as_likely_as_a_lie(epsilon):
    truth = Fraction(_core.truth_probability(epsilon), 2**64)
    assert truth / (1 - truth) <= exp_bounds(Fraction(epsilon))[0]
    assert float(truth) == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_each_bit_is_flipped_with_the_probability_of_a_lie(epsilon):
    n, lie = 200_000, 1 / (1 + math.exp(epsilon))
    for bit in 0, 1:
        answers = local.randomized_response(np.full(n, bit), epsilon=epsilon, random_state=bit)
        # 4.9 standard deviations are passed with probability below 1e-6.
        assert abs((answers != bit).mean() - lie) <= 4.9 * math.sqrt(lie * (1 - lie) / n)


def test_flips_do_not_depend_on_the_bits():
    bits = np.random.default_rng(0).integers(2, size=50_000, dtype=np.uint8)
    first, second = (
        local.randomized_response(true, epsilon=0.5, random_state=1) ^ true
        for true in (bits, 1 - bits)
    )
    assert np.array_equal(first, second)


def test_any_bits_are_taken_and_left_alone():
    for bits in ([1, 0, 1], np.array([True, False]), np.ones(6, ">i4")[::-2], []):
        before = list(bits)
        answers = local.randomized_response(bits, epsilon=1000.0)
        assert answers.dtype == np.uint8
        assert answers.tolist() == before == list(bits)


# Fractions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_answers_to_fractions_are_private_whatever_the_fractions(epsilon):
    """The law of an answer is a mixture of those to 0 and 1, in exact fractions."""
    truth = Fraction(_core.truth_probability(epsilon), 2**64)
    numbers = [0.0, 5e-324, 2.0**-64, 1e-9, 0.1, 1 / 3, 0.5, math.nextafter(1, 0), 1.0]
    laws = []
    for number in map(Fraction, numbers):
        one = number * truth + (1 - number) * (1 - truth)
        laws.append((one, 1 - one))
    most = exp_bounds(Fraction(epsilon))[0]
    for one, other in itertools.product(laws, repeat=2):
        assert all(p <= most * q for p, q in zip(one, other, strict=True))


def test_fractions_0_and_1_are_bits():
    bits = np.random.default_rng(0).integers(2, size=100_000)
    for kind in (np.float16, np.float32, np.float64, ">f8"):
        answers = local.randomized_response(bits.astype(kind), epsilon=1000.0)
        assert np.array_equal(answers, bits)
        assert answers.dtype == np.uint8


def test_seeded_answers_to_fractions_do_not_depend_on_threads(monkeypatch):
    fractions, answers = np.linspace(0, 1, 3_000_000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        answers.append(local.randomized_response(fractions, epsilon=1.0, random_state=3))
    assert np.array_equal(*answers)


class Lossy:
    """A hypothesis that predicts nothing right, and yet loses what it says."""

    def predict(self, X):
        pytest.fail("losses are asked for, where there are any")

    def losses(self, X, y):
        return X[:, 0] * (1 - y / 2)


def test_agents_answer_with_real_losses():
    rng = np.random.default_rng(5)
    X, y = rng.random((400_000, 2)), rng.integers(0, 2, 400_000)
    answers = Agents(X, y, epsilon=1.0).test(Lossy(), 400_000)
    estimate = local.estimate_mean(answers, beta=1e-6, epsilon=1.0)
    assert estimate.low <= Lossy().losses(X, y).mean() <= estimate.high
    assert estimate.high - estimate.low < 0.02


def losing(losses):
    """A hypothesis that loses these on as many agents."""
    return SimpleNamespace(losses=lambda X, y: losses[: len(X)])


def test_losses_out_of_range_are_clipped_and_others_count_as_the_worst():
    agents = numbered(10, epsilon=1000.0)
    lost = [1.5, -0.1, 1e300, -1e300, math.nan, math.inf, -math.inf, None, "0", 10**400]
    assert agents.test(losing(lost), 10).tolist() == [1, 0, 1, 0, 1, 1, 1, 1, 0, 1]


def test_losses_that_are_not_one_number_an_agent_are_refused():
    agents = numbered(6)
    for lost in np.zeros(3), [0.0] * 2:
        with pytest.raises(ShapeError, match=r"losses\(X, y\)"):
            agents.test(SimpleNamespace(losses=lambda X, y, lost=lost: lost), 2)
    assert agents.remaining == 6


# Agents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, gf2.BitMatrix.from_dense], ids=["array", "BitMatrix"])
def test_each_agent_answers_once_in_turn(kind):
    agents, asked = numbered(10, kind=kind), []

    def question(X, y):
        asked.extend(who(X))
        return y

    for count in 3, 0, np.int64(5), 2:
        assert agents.ask(question, count).shape == (count,)
    assert asked == list(range(10))
    assert agents.remaining == 0


def test_answers_are_those_of_the_question_when_nobody_lies():
    agents = numbered(100, epsilon=1000.0)
    assert agents.ask(labels, 40).tolist() == [i % 2 for i in range(40)]
    assert agents.ask(lambda X, y: X[:, 1] == 1, 8).tolist() == [0, 0, 1, 1] * 2


def test_too_many_raises_and_nobody_is_asked():
    agents = numbered(5)
    agents.ask(labels, 2)
    with pytest.raises(AgentsExhausted, match=r"4\b.*\b3"):
        agents.ask(lambda X, y: pytest.fail("somebody was asked"), 4)
    assert agents.remaining == 3


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (lambda X, y: y[:-1], ShapeError),
        (lambda X, y: [*y, 1], ShapeError),
        (lambda X, y: y[:, None], ShapeError),
        (lambda X, y: 1, ShapeError),
        (lambda X, y: None, ShapeError),
    ],
    ids=[
        "too few",
        "too many",
        "a column",
        "a scalar",
        "None",
    ],
)
def test_a_question_must_return_one_number_an_agent(question, error):
    agents = numbered(6)
    with pytest.raises(error):
        agents.ask(question, 4)
    assert agents.remaining == 2


@pytest.mark.parametrize(
    ("answer", "counts_as"),
    [
        *((2, 1), (-1, 0), (1.5, 1), (-0.5, 0), (-1e-300, 0), (1e300, 1)),
        *((math.nan, 0), (math.inf, 0), (-math.inf, 0), (None, 0), ("1", 1)),
    ],
)
def test_an_answer_out_of_range_is_clipped_and_any_other_counts_as_0(answer, counts_as):
    truth = numbered(4, epsilon=1000.0).ask(lambda X, y: [answer, 1, 0.0, True], 4)
    assert truth.tolist() == [counts_as, 1, 0, 1]


def test_agents_stay_asked_when_a_question_fails():
    agents = numbered(6)
    with pytest.raises(ZeroDivisionError):
        agents.ask(lambda X, y: 1 // 0, 4)
    assert agents.remaining == 2


@pytest.mark.parametrize(
    ("count", "state"), [(-1, None), (1.5, None), ("1", None), (1, -1), (1, 0.5), (1, "seed")]
)
def test_nobody_is_asked_with_a_bad_argument(count, state):
    agents = numbered(6)
    name = "count" if state is None else "random_state"
    with pytest.raises(ParameterError, match=name):
        agents.ask(lambda X, y: pytest.fail("somebody was asked"), count, random_state=state)
    assert agents.remaining == 6


def test_a_copy_is_the_same_agents():
    agents = numbered(6)
    assert copy.copy(agents) is agents
    assert copy.deepcopy([agents])[0] is agents


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_agents_cannot_be_pickled(protocol):
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(numbered(6), protocol)


def test_only_a_hypothesis_is_sent_to_remote_agents():
    agents = local.RemoteAgents(lambda hypothesis, k: [0] * k, epsilon=1.0, count=5)
    with pytest.raises(ParameterError, match=r"learned = .* must have an attribute hypothesis"):
        agents.test(lambda X: X[:, 0], 2)
    assert agents.remaining == 5


def test_racing_threads_never_reach_the_same_agent():
    agents, asked, refused = numbered(4000), [], []

    def question(X, y):
        asked.extend(who(X))
        return y

    def racer(count):
        try:
            while True:
                agents.ask(question, count)
        except AgentsExhausted:
            refused.append(count)

    racers = [functools.partial(racer, count) for count in (1, 1, 1, 2, 3, 5)]
    together(racers, hasty=True)
    assert sorted(asked) == list(range(4000))
    assert len(refused) == 6
    assert agents.remaining == 0


def test_agents_describe_themselves():
    agents = numbered(1234, epsilon=0.5)
    agents.ask(labels, 1034)
    assert (len(agents), agents.remaining, agents.d, agents.epsilon) == (1234, 200, ID_BITS, 0.5)
    assert repr(agents) == "Agents(12 features, epsilon=0.5, 1,034 of 1,234 asked)"
    record = agents.record()
    assert (record.neighbors, record.epsilon, record.delta) == ("local", 0.5, 0.0)


def test_seeded_answers_repeat():
    first, second = (numbered(500).ask(labels, 500, random_state=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, numbered(500).ask(labels, 500, random_state=4))


# Tests of hypotheses ------------------------------------------------------------------------------

CERTAIN = 1000.0


class Wrong:
    """A hypothesis whose errors are the first of the given ones, whatever the record."""

    def __init__(self, predictions):
        self.predictions = predictions
        self.hypothesis = {"kind": "any"}

    def predict(self, X):
        return self.predictions[: len(X)]


def halfspaces(d):
    rng = np.random.default_rng(2)
    return Halfspaces(rng.normal(size=(5, d)), rng.normal(size=5))


def remote(agents):
    """The same agents at the other end of a wire: each reads the JSON and randomizes its answer."""

    def ask(text, count):
        says = predictor(text)
        return agents.ask(lambda X, y: says(X) != y, count)

    return RemoteAgents(ask, epsilon=agents.epsilon, count=len(agents))


@pytest.mark.parametrize("far", [False, True], ids=["simulated", "remote"])
@pytest.mark.parametrize("bits", [True, False], ids=["bits", "numbers"])
def test_a_test_tells_who_is_wrong_when_nobody_lies(bits, far):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (50, 4), dtype=np.uint8) if bits else rng.normal(size=(50, 4))
    y = rng.integers(0, 2, 50)
    hypotheses = Conjunctions(4, 2) if bits else halfspaces(4)
    learned = ExponentialLearner(hypotheses, epsilon=1.0).learn(X, y)
    agents = Agents(X, y, epsilon=CERTAIN)
    agents.pass_over(5)
    if far:
        agents = remote(agents)
        agents.pass_over(5)
    answers = np.concatenate([agents.test(learned, count) for count in (20, 0, 25)])
    assert answers.dtype == np.uint8
    assert answers.tolist() == (learned.predict(X) != y)[5:].tolist()
    assert agents.remaining == 0
    for call in lambda: agents.test(learned, 1), lambda: agents.pass_over(1):
        with pytest.raises(AgentsExhausted):
            call()


def test_a_test_randomizes_as_ask_does():
    learned = Wrong(np.zeros(500, int))
    answers = numbered(500).test(learned, 500, random_state=3)
    assert np.array_equal(answers, numbered(500).ask(labels, 500, random_state=3))


@pytest.mark.parametrize("predictions", [[0, 1], np.array([[0], [1], [1], [0]]), None])
def test_one_bit_an_agent_is_wanted_before_anybody_is_asked(predictions):
    agents = numbered(6)
    with pytest.raises(ShapeError):
        agents.test(SimpleNamespace(predict=lambda X: predictions), 4)
    assert agents.remaining == 6


def test_a_prediction_counts_as_the_nearer_label_and_none_as_the_first():
    answers = [2, -1, 0.4, 0.6, 1e300, math.nan, math.inf, None]
    agents = Agents(np.zeros((8, 1)), np.zeros(8, int), epsilon=1000.0)
    assert agents.test(Wrong(answers), 8).tolist() == [1, 0, 0, 1, 1, 0, 0, 0]


def test_remote_agents_see_the_hypothesis_and_nothing_else():
    asked = []

    def ask(text, count):
        asked.append((text, count))
        return [True] * count

    agents = RemoteAgents(ask, epsilon=0.5, count=1_234)
    assert agents.test(Wrong(None), 34, random_state=1).tolist() == [1] * 34
    assert agents.test(Wrong(None), 0).tolist() == []
    assert asked == [(json.dumps({"kind": "any"}), 34)]
    assert (len(agents), agents.remaining, agents.epsilon) == (1_234, 1_200, 0.5)
    assert repr(agents) == "RemoteAgents(epsilon=0.5, 34 of 1,234 asked)"
    record = agents.record(random_state=1)
    assert (record.neighbors, record.epsilon, record.rng) == ("local", 0.5, "the agents' own")
    assert copy.deepcopy(agents) is copy.copy(agents) is agents
    with pytest.raises(TypeError, match="RemoteAgents can't be pickled"):
        pickle.dumps(agents)


def test_a_broken_wire_leaves_the_agents_spent():
    agents = RemoteAgents(lambda text, count: 1 // 0, epsilon=1, count=10)
    with pytest.raises(ZeroDivisionError):
        agents.test(Wrong(None), 4)
    assert agents.remaining == 6


@pytest.mark.parametrize("hypothesis", [{"weights": np.ones(2)}, {"bias": math.nan}, {1, 2}])
def test_what_json_cannot_carry_is_sent_to_nobody(hypothesis):
    agents = RemoteAgents(lambda text, count: pytest.fail("asked"), epsilon=1, count=10)
    learned = Wrong(None)
    learned.hypothesis = hypothesis
    with pytest.raises(ParameterError, match="JSON"):
        agents.test(learned, 4)
    assert agents.remaining == 10


@pytest.mark.parametrize(
    "change", [{"ask": None}, {"epsilon": 0}, {"epsilon": math.nan}, {"count": -1}, {"count": 1.5}]
)
def test_bad_remote_agents_are_refused(change):
    (name,) = change
    with pytest.raises(ParameterError, match=name):
        RemoteAgents(**{"ask": print, "epsilon": 1.0, "count": 3, **change})


# Statistical queries ------------------------------------------------------------------------------


def test_the_empirical_oracle_answers_with_the_mean():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 1, 0, 1, 1]
    oracle = EmpiricalOracle(X, y)
    assert oracle.query(labels, 0.1) == pytest.approx(4 / 6)
    assert oracle.query(lambda X, y: X[:, 1] / 11, 0.1) == pytest.approx(36 / 66)
    assert oracle.query(lambda X, y: [True] * 6, 0.1) == 1


@pytest.mark.parametrize(
    ("losses", "error"),
    [([0.5], ShapeError), (0.5, ShapeError), (np.zeros((6, 1)), ShapeError)],
)
def test_the_oracle_refuses_what_is_no_loss(losses, error):
    oracle = EmpiricalOracle(np.ones((6, 2)), [1] * 6)
    with pytest.raises(error, match=r"g\(X, y\)"):
        oracle.query(lambda X, y: losses, 0.1)
    with pytest.raises(ParameterError, match="tau"):
        oracle.query(labels, 0)


def test_no_sample_is_no_oracle():
    for X, y in (np.ones((0, 2)), []), (np.ones((3, 2)), [1, 0]), (np.ones(3), [1, 0, 1]):
        with pytest.raises(ShapeError):
            EmpiricalOracle(X, y)


# Estimation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 17_666), (1, 4_963), (2, 1_827)])
def test_agents_needed(epsilon, count):
    assert local.agents_needed(alpha=0.05, beta=0.01, epsilon=epsilon) == count


@pytest.mark.parametrize(("alpha", "epsilon"), [(0.05, 1.0), (0.2, 0.5), (0.05, 8.0)])
def test_fewer_agents_are_needed_behind_a_shuffler_and_they_are_private(alpha, epsilon):
    goal = {"alpha": alpha, "beta": 0.05}
    count = local.agents_needed(**goal, epsilon=epsilon, shuffled=1e-6)
    most = local.agents_needed(**goal, epsilon=epsilon)
    limits = {"epsilon": epsilon, "delta": 1e-6, "categories": 2}
    of_answer = accounting.largest_local_epsilon(count, **limits)
    mix = accounting.Shuffled(of_answer, count, categories=2)
    assert accounting.delta(mix, epsilon) <= 1e-6
    assert local.agents_needed(**goal, epsilon=of_answer * (1 + 1e-4)) <= count <= most
    # A few fewer would not do: what they may answer with is not enough.
    fewer = count - 1 - count // 500
    less = accounting.largest_local_epsilon(fewer, **limits)
    assert local.agents_needed(**goal, epsilon=less) > fewer


def test_a_survey_of_3455_people_needs_855_behind_a_shuffler():
    goal = {"alpha": 0.05, "beta": 0.05, "epsilon": 1.0}
    assert local.agents_needed(**goal) == 3_455
    assert local.agents_needed(**goal, shuffled=1e-6) == 855
    # The bound for any randomizer asks for a few more.
    enough = accounting.largest_local_epsilon(876, epsilon=1.0, delta=1e-6)
    assert local.agents_needed(**goal | {"epsilon": enough}) <= 877


def test_silence_and_a_shuffler_are_not_planned_together():
    goal = {"alpha": 0.05, "beta": 0.05, "epsilon": 1.0, "shuffled": 1e-6}
    with pytest.raises(ParameterError, match="response_rate"):
        local.agents_needed(**goal, response_rate=0.9)
    with pytest.raises(ParameterError, match="shuffled"):
        local.agents_needed(**goal | {"shuffled": 1.0})


@pytest.mark.parametrize("truth", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_interval_holds_the_mean_and_is_as_narrow_as_planned(epsilon, truth):
    alpha, beta = 0.1, 0.05
    n = local.agents_needed(alpha=alpha, beta=beta, epsilon=epsilon)
    rng = np.random.default_rng(int(100 * truth))
    missed = 0
    for _ in range(100):
        answers = local.randomized_response(
            rng.random(n) < truth, epsilon=epsilon, random_state=rng
        )
        found = local.estimate_mean(answers, beta=beta, epsilon=epsilon)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.high - found.low <= 2 * alpha
        missed += not found.low <= truth <= found.high
    assert missed <= 100 * beta


def test_a_handful_of_answers_gives_an_interval_and_no_error():
    found = local.estimate_mean([1], beta=0.1, epsilon=0.1)
    assert found == local.Estimate(1.0, 0.0, 1.0)
    assert local.estimate_mean(np.array([True, False]), beta=0.1, epsilon=1).value == 0.5


def test_masked_entries_are_neither_0_nor_1():
    hidden = np.ma.masked_array([[1, 0]], mask=[[0, 1]])
    for call in (lambda: gf2.rank(hidden), lambda: Agents(hidden, [1], epsilon=1)):
        with pytest.raises(ParameterError, match="masked"):
            call()


# Votes --------------------------------------------------------------------------------------------


def planted(count, size, *, best=0, low=0.2, high=0.4, epsilon=2.0, rng):
    """Agents of whom every feature is the label but for an error, least for the best feature."""
    y = rng.integers(0, 2, count, dtype=np.uint8)
    rate = np.where(np.arange(size) == best, low, high)
    return Agents(y[:, None] ^ (rng.random((count, size)) < rate), y, epsilon=epsilon)


def singles(size):
    return Parities(np.eye(size, dtype=np.uint8))


def lost_votes(count, *, size=8, runs=200):
    rng = np.random.default_rng(3)
    found = 0
    for run in range(runs):
        agents = planted(count, size, best=run % size, rng=rng)
        voted = local.learn_by_votes(singles(size), agents, random_state=rng)
        assert agents.remaining == 0
        found += voted.index != run % size
    return found


@pytest.mark.thorough(beside="test_fewer_votes_than_promise_anything_are_told")
def test_the_promised_number_of_votes_is_enough():
    needed = local.votes_needed(8, alpha=0.2, beta=0.1, epsilon=2)
    # 20 expected at most; 45 would have a chance of 1e-7.
    assert lost_votes(needed) < 45
    assert lost_votes(needed // 30) > 60


def test_fewer_votes_than_promise_anything_are_told():
    few = local.votes_needed(8, alpha=0.5, beta=0.1, epsilon=2) - 1
    needed = local.votes_needed(8, alpha=0.1, beta=0.1, epsilon=2)
    agents = planted(few, 8, rng=np.random.default_rng(1))
    text = f"agents = {few} left for 8 hypotheses: .* 0.1 above it needs {needed:,}"
    with pytest.warns(UtilityWarning, match=text):
        local.learn_by_votes(singles(8), agents, beta=0.1)
    hopeless = planted(8, 8, epsilon=1e-9, rng=np.random.default_rng(1))
    with pytest.warns(UtilityWarning, match=r"needs more than 1e\+18"):
        local.learn_by_votes(singles(8), hopeless)
    enough = planted(few + 1, 8, rng=np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        local.learn_by_votes(singles(8), enough, beta=0.1)


def test_the_estimate_is_that_of_the_group_when_nobody_lies():
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, (103, 4), dtype=np.uint8), rng.integers(0, 2, 103, dtype=np.uint8)
    voted = local.learn_by_votes(Stumps(4), Agents(X, y, epsilon=CERTAIN), beta=0.1)
    # Ten hypotheses: three of them are told to eleven agents, the others to ten.
    ends = np.cumsum([0] + [11] * 3 + [10] * 7)
    wrong = np.array(
        [
            np.mean(Stumps(4).predict(i, X[ends[i] : ends[i + 1]]) != y[ends[i] : ends[i + 1]])
            for i in range(10)
        ]
    )
    assert voted.index == wrong.argmin()
    assert voted.estimate.value == pytest.approx(wrong.min())
    size = 11 if voted.index < 3 else 10
    half = math.sqrt(math.log(2 * 10 / 0.1) / (2 * size))
    assert voted.estimate.high == pytest.approx(min(1, wrong.min() + half))
    assert voted.hypothesis == Stumps(4).hypothesis(voted.index)
    assert voted.predict(X).tolist() == Stumps(4).predict(voted.index, X).tolist()
    assert (voted.agents, voted.agents_record.epsilon) == (103, CERTAIN)


def test_votes_outlive_their_process_as_json():
    near = planted(4_000, 4, best=2, low=0, high=0.5, rng=np.random.default_rng(5))
    voted = local.learn_by_votes(singles(4), near, random_state=1)
    text, X = voted.to_json(), np.eye(4, dtype=np.uint8)
    read = local.VotingResult.from_json(text, singles(4))
    assert (read.index, read.estimate, read.agents) == (voted.index, voted.estimate, voted.agents)
    assert (read.hypothesis, read.agents_record) == (voted.hypothesis, voted.agents_record)
    assert read.predict(X).tolist() == voted.predict(X).tolist()
    assert predictor(json.loads(text)["hypothesis"])(X).tolist() == voted.predict(X).tolist()
    with pytest.raises(ParameterError, match="in this class"):
        local.VotingResult.from_json(text, Stumps(4))
    for wrong in ("x", "{}", text.replace('"agents": ', '"agents": -')):
        with pytest.raises(ParameterError):
            local.VotingResult.from_json(wrong, singles(4))


def test_remote_agents_vote_alike():
    rng = np.random.default_rng(5)
    near = planted(4_000, 4, best=2, low=0, high=0.5, rng=rng)
    voted = local.learn_by_votes(singles(4), remote(near))
    assert voted.index == 2
    assert voted.agents_record.mechanism == "local.RemoteAgents"


def test_votes_with_a_seed_repeat_and_use_other_coins_for_every_hypothesis():
    everybody_right = Agents(np.ones((4_000, 2), int), np.ones(4_000, int), epsilon=0.5)
    asked = []
    test = everybody_right.test
    everybody_right.test = lambda *args, **kw: asked.append(test(*args, **kw)) or asked[-1]
    local.learn_by_votes(singles(2), everybody_right, random_state=1)
    assert asked[0].tolist() != asked[1].tolist()
    first, second = (
        local.learn_by_votes(
            singles(5), planted(500, 5, rng=np.random.default_rng(6)), random_state=7
        )
        for _ in range(2)
    )
    assert (first.index, first.estimate) == (second.index, second.estimate)


def test_votes_needed_grow_faster_than_the_class():
    sizes = [10, 100, 1_000, 10_000]
    needed = [local.votes_needed(size, alpha=0.1, beta=0.05, epsilon=1) for size in sizes]
    for size, count in zip(sizes, needed, strict=True):
        edge = math.tanh(0.5)
        each = math.log((size - 1) / 0.05) / (0.1 * edge) ** 2
        assert size * each <= count <= size * (each + 1)
    assert all(b > 10 * a for a, b in itertools.pairwise(needed))
    assert local.votes_needed(1, alpha=0.1, beta=0.05, epsilon=1) == 1


@pytest.mark.parametrize(
    "change",
    [{"size": 0}, {"size": 1.5}, {"alpha": 0}, {"beta": 1}, {"epsilon": 0}, {"epsilon": 1e-9}],
)
def test_bad_votes_needed_are_refused(change):
    with pytest.raises(ParameterError, match=next(iter(change))):
        local.votes_needed(**{"size": 5, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, **change})


def test_nobody_votes_for_what_cannot_be_learned():
    agents = numbered(9)
    for hypotheses, options, error in (
        (Parities(np.ones((10, ID_BITS), int)), {}, AgentsExhausted),
        (singles(3), {}, ShapeError),
        (singles(ID_BITS), {}, AgentsExhausted),
        (Parities(np.ones((2, ID_BITS), int)), {"beta": 0}, ParameterError),
        (Parities(np.ones((2, ID_BITS), int)), {"random_state": -1}, ParameterError),
        ([], {}, ParameterError),
    ):
        with pytest.raises(error):
            local.learn_by_votes(hypotheses, agents, **options)
    with pytest.raises(ParameterError, match="agents = list"):
        local.learn_by_votes(singles(3), [])
    assert agents.remaining == 9
