"""MASKED-PARITY: what two rounds learn exactly, and one round only with error 1/4."""

import itertools
import math
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from hdp_fast import gf2, local
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError
from hdp_fast.local import (
    EvasiveOracle,
    MaskedParity,
    MaskedParityAgents,
    MaskedParityResult,
    WeakMaskedParity,
)
from hdp_fast.local.masked_parity.concepts import LazyExamples
from hdp_fast.local.masked_parity.learning import hadamard_transform

SIZES = (2, 4, 8)


def concepts(d):
    for r in itertools.product((0, 1), repeat=d):
        for a in 0, 1:
            yield MaskedParity(r, a)


def by_hand(r, a, row):
    """The paper's definition, one row of bits at a time."""
    d = len(r)
    x, i, b = row[:d], sum(bit << k for k, bit in enumerate(row[d:-1])), row[-1]
    return r[i] if b else (sum(u & v for u, v in zip(r, x, strict=True)) + a) % 2


def adversary(concept, side):
    """Exact means over the domain, off by all of the tolerance.

    side: -1 or 1 always pushes that way; 0 towards the threshold of the paper's learner.
    """
    d = concept.d

    def shift(mean, tau, g):
        threshold = 1 / 4 if tau == 1 / 5 else 1 / (4 * d)
        return tau * (side or (1 if mean < threshold else -1))

    X = local.masked_parity_domain(d)
    return local.ExactOracle(X, concept.predict(X), error=shift)


class Noted:
    """Another oracle, and the tolerances that it was asked for."""

    def __init__(self, oracle, factor=1.0):
        self.oracle, self.factor, self.tolerances = oracle, factor, []

    def query(self, g, tau):
        self.tolerances.append(tau)
        return self.oracle.query(g, self.factor * tau)


# Concepts and examples ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, gf2.BitMatrix.from_dense, lambda X: X.astype(bool)])
def test_concepts_are_those_of_the_paper(kind):
    for d in 2, 4:
        X = local.masked_parity_domain(d)
        for concept in concepts(d):
            want = [by_hand(concept.r.tolist(), concept.a, row) for row in X.tolist()]
            assert concept.predict(kind(X)).tolist() == want


def test_the_domain_holds_every_example_once():
    for d in SIZES:
        X = local.masked_parity_domain(d)
        assert X.shape == (2 * d * 2**d, d + int(math.log2(d)) + 1)
        assert len(np.unique(X, axis=0)) == len(X)


def test_examples_are_uniform_and_labeled_by_their_concept():
    concept = MaskedParity([1, 0, 1, 1], 1)
    X, y = local.uniform_examples(concept, 40_000, 5)
    assert np.array_equal(y, concept.predict(X))
    places = X @ (1 << np.arange(X.shape[1]))
    counts = np.bincount(places, minlength=128)
    # Chi-square of 127 degrees of freedom exceeds 215 with probability below 2e-6.
    assert ((counts - 312.5) ** 2 / 312.5).sum() < 215


@pytest.mark.parametrize("r", [[0, 0], [1, 0], [0, 1], [1, 1]])
def test_drawn_examples_are_uniform_whenever_their_x_is_read(r):
    concept = MaskedParity(r, 1)
    drawn = LazyExamples(concept, 16_000, np.random.default_rng(3))
    X = np.asarray(drawn)
    assert np.array_equal(concept.predict(X), drawn.labels)
    assert np.array_equal(concept.predict(drawn), drawn.labels)
    counts = np.bincount(X @ (1 << np.arange(4)), minlength=16)
    # Chi-square of 15 degrees of freedom exceeds 57 with probability below 1e-6.
    assert ((counts - 1_000) ** 2 / 1_000).sum() < 57


def test_concepts_compare_by_what_they_are():
    one = MaskedParity([1, 0], 1)
    assert one == MaskedParity(np.array([True, False]), np.int64(1))
    assert hash(one) == hash(MaskedParity([1, 0], 1))
    assert one != MaskedParity([1, 0], 0) != MaskedParity([1, 1], 0) != "another"
    with pytest.raises(ValueError, match="read-only"):
        one.r[0] = 0


# From statistical queries -------------------------------------------------------------------------


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("d", SIZES)
def test_every_concept_is_learned_whatever_the_oracle_answers_within_its_tolerance(d, side):
    for concept in concepts(d):
        oracle = Noted(adversary(concept, side))
        learned = local.learn_masked_parity(oracle, d)
        assert learned.concept == concept
        assert oracle.tolerances == [1 / (4 * d + 1)] * d + [1 / 5]
        assert (learned.queries, learned.agents, learned.agents_record) == (d + 1, 0, None)


@pytest.mark.thorough(
    beside="test_every_concept_is_learned_whatever_the_oracle_answers_within_its_tolerance"
)
def test_a_concept_of_sixteen_bits_is_learned():
    r = np.random.default_rng(16).integers(0, 2, 16)
    concept = MaskedParity(r, 1)
    X = local.masked_parity_domain(16)
    oracle = local.ExactOracle(X, concept.predict(X), error="random", random_state=1)
    assert local.learn_masked_parity(oracle, 16).concept == concept


def test_agents_who_answer_queries_teach_with_d_groups():
    concept = MaskedParity([1, 0, 1, 1], 1)
    setting = {"beta": 0.01, "queries": 5, "epsilon": 2.0}
    counts = [local.agents_per_query(tau=tau, **setting) for tau in (1 / 17, 1 / 5)]
    X, y = local.uniform_examples(concept, 4 * counts[0] + counts[1], 3)
    agents = local.Agents(X, y, epsilon=2.0)
    oracle = local.LocalSQOracle(agents, queries=5, beta=0.01)
    assert local.learn_masked_parity(oracle, 4).concept == concept
    assert agents.remaining == 0
    needs = local.masked_parity_agents(4, beta=0.01, epsilon=2.0)
    assert needs.groups < len(agents)


def test_answers_beyond_the_tolerance_mislead():
    """The thresholds leave no more room than the proof needs."""
    concept = MaskedParity([0, 1], 0)
    oracle = Noted(adversary(concept, 1), factor=1.2)
    assert local.learn_masked_parity(oracle, 2).concept != concept


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("d", SIZES)
def test_the_weak_learner_errs_on_exactly_a_quarter(d):
    X = local.masked_parity_domain(d)
    for concept in concepts(d):
        learned = local.learn_masked_parity_weakly(adversary(concept, 0), d)
        assert 4 * int((learned.predict(X) != concept.predict(X)).sum()) == len(X)
        assert learned.queries == d


# The oracle that keeps the mask to itself ---------------------------------------------------------


def queries(d, rng):
    """Deterministic and random, dependent and independent of the label, of one half or both."""
    index = slice(d, -1)

    def on_x(s):
        return lambda X, y: (X[:, -1] == 0) & (y != (X[:, :d] @ s) % 2)

    table = rng.random((2, 1 << (d + d.bit_length())))
    places = 1 << np.arange(d + d.bit_length())
    yield from (on_x(rng.integers(0, 2, d)) for _ in range(4))
    yield lambda X, y: y
    yield lambda X, y: X[:, 0]
    yield lambda X, y: (X[:, index].sum(axis=1) > 0) & (y == 1)
    yield lambda X, y: table[y, X @ places]
    yield lambda X, y: (table[y, X @ places] < 0.5) & (X[:, -1] == 0)


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("tau", [0.01, 0.05, 0.2])
def test_evasive_answers_are_within_tau_and_tell_a_only_where_they_must(d, tau):
    rng = np.random.default_rng(d)
    X = local.masked_parity_domain(d)
    asked = list(queries(d, rng))
    for r in itertools.product((0, 1), repeat=d):
        oracles = [EvasiveOracle(MaskedParity(r, a)) for a in (0, 1)]
        for g in asked:
            exact = [np.asarray(g(X, MaskedParity(r, a).predict(X))).mean() for a in (0, 1)]
            answers = [oracle.query(g, tau) for oracle in oracles]
            assert answers == pytest.approx(exact, abs=tau)
            # The parts that depend on a are opposite: half of the difference of the truths.
            if abs(exact[0] - exact[1]) / 2 < tau * (1 - 1e-9):
                assert answers[0] == answers[1]
            else:
                assert answers == pytest.approx(exact, abs=1e-12)
        assert [oracle.asked for oracle in oracles] == [len(asked)] * 2
        assert oracles[0].revealing == oracles[1].revealing < len(asked)


def test_the_adaptive_learner_makes_the_evasive_oracle_tell():
    for concept in concepts(4):
        oracle = EvasiveOracle(concept)
        assert local.learn_masked_parity(oracle, 4).concept == concept
        assert (oracle.asked, oracle.revealing) == (5, 1)
        weak = EvasiveOracle(concept)
        local.learn_masked_parity_weakly(weak, 4)
        assert weak.revealing == 0


# From agents --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_sums_with_signs_are_those_of_the_matrix(size):
    values = np.random.default_rng(size).integers(-9, 9, size)
    rows = np.arange(size)
    signs = np.array([[(-1) ** (int(i) & int(j)).bit_count() for i in rows] for j in rows])
    assert hadamard_transform(values).tolist() == (signs @ values).tolist()


@pytest.mark.parametrize("r", [[0, 0], [1, 0], [1, 1]])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_few_enough_agents_err_as_rarely_as_planned(r, epsilon):
    """Each bit's chance of being wrong, from the binomials of all rows, against its share."""
    d, beta = len(r), 0.1
    needs = local.masked_parity_agents(d, beta=beta, epsilon=epsilon)
    share, edge = needs.first // (2 * d), math.tanh(epsilon / 2)
    for j in range(d):
        total = np.ones(1)
        for row in range(2 * d):
            # Of the symbols i with their labels (b = 1), and d (b = 0), how often the bit is 1.
            signs = [(-1) ** ((row & i).bit_count() + r[i]) for i in range(d)]
            mean = sum(signs) / (2 * d) + (-1) ** (row & d).bit_count() / 2
            law = binom.pmf(np.arange(share + 1), share, (1 - edge * mean) / 2)
            total = np.convolve(total, law if (row & j).bit_count() % 2 == 0 else law[::-1])
        ones = np.arange(len(total))
        negative = total[2 * ones > len(total) - 1].sum()
        zero = total[2 * ones == len(total) - 1].sum()
        wrong = 1 - negative if r[j] else negative + zero
        assert 0 < wrong <= beta / (d + 1)


def agents_of(concept, beta=0.05, epsilon=1.0, kind=np.asarray, seed=0, less=0):
    needs = local.masked_parity_agents(concept.d, beta=beta, epsilon=epsilon)
    X, y = local.uniform_examples(concept, needs.first + needs.second - less, seed)
    return local.Agents(kind(X), y, epsilon=epsilon)


@pytest.mark.parametrize("kind", [np.asarray, gf2.BitMatrix.from_dense])
def test_agents_teach_every_small_concept(kind):
    wrong = 0
    for seed, concept in enumerate(concepts(4)):
        agents = agents_of(concept, kind=kind, seed=seed)
        learned = local.learn_masked_parity(agents, 4, random_state=seed)
        wrong += learned.concept != concept
        assert agents.remaining == 0
        assert learned.agents == len(agents)
        assert learned.agents_record.epsilon == 1.0
    # At most 1.6 expected; 9 would have a chance of 4e-5 if every one failed with beta.
    assert wrong < 9


def test_what_was_learned_outlives_its_process_as_json():
    learned = local.learn_masked_parity(agents_of(MaskedParity([0, 1, 1, 0], 1)), 4)
    for result in (learned, MaskedParityResult(WeakMaskedParity([0, 1]), 3, 0, None)):
        read = MaskedParityResult.from_json(result.to_json())
        assert read.to_json() == result.to_json()
        assert type(read.concept) is type(result.concept)
        assert read.concept.r.tolist() == result.concept.r.tolist()
        assert (read.queries, read.agents) == (result.queries, result.agents)
        assert read.agents_record == result.agents_record
    for text in ("x", "{}", learned.to_json().replace('"r": "', '"r": "2')):
        with pytest.raises(ParameterError):
            MaskedParityResult.from_json(text)


def test_agents_teach_64_bits_in_an_instant():
    concept = MaskedParity(np.random.default_rng(64).integers(0, 2, 64), 1)
    needs = local.masked_parity_agents(64, beta=1e-6, epsilon=2.0)
    size = needs.first + needs.second
    agents = MaskedParityAgents(concept, size, epsilon=2.0, random_state=1)
    assert local.learn_masked_parity(agents, 64, beta=1e-6).concept == concept
    assert agents.remaining == 0
    stored = agents_of(MaskedParity(1 - concept.r, 0), 1e-6, 2.0, gf2.BitMatrix.from_dense)
    assert local.learn_masked_parity(stored, 64, beta=1e-6).concept.a == 0


def test_both_kinds_of_agents_answer_alike():
    """The share of ones for each row, stored examples against drawn ones."""
    concept, n = MaskedParity([1, 0], 0), 400_000
    X, y = local.uniform_examples(concept, n, 2)
    for question in (lambda X, y: y, lambda X, y: np.asarray(X)[:, 0] ^ y):
        shares = [
            agents.ask(question, n, random_state=7).mean()
            for agents in (
                local.Agents(X, y, epsilon=1.0),
                MaskedParityAgents(concept, n, epsilon=1.0, random_state=2),
            )
        ]
        # 5 standard deviations of a difference.
        assert abs(shares[0] - shares[1]) < 5 * math.sqrt(0.5 / n)


def test_drawn_agents_test_hypotheses():
    concept = MaskedParity([1, 0, 0, 1], 1)
    agents = MaskedParityAgents(concept, 3_000, epsilon=1_000.0)
    assert agents.test(concept, 1_000).sum() == 0
    assert 350 < agents.test(WeakMaskedParity(concept.r), 2_000).sum() < 650
    assert agents.remaining == 0
    assert "3,000 of 3,000 asked" in repr(agents)


def test_the_weak_learner_asks_the_first_round_alone():
    concept = MaskedParity([1, 0, 1, 1], 1)
    needs = local.masked_parity_agents(4, beta=1e-6, epsilon=1.0)
    agents = MaskedParityAgents(concept, needs.first, epsilon=1.0)
    learned = local.learn_masked_parity_weakly(agents, 4, beta=1e-6)
    assert np.array_equal(learned.concept.r, concept.r)
    assert (learned.queries, learned.agents, agents.remaining) == (4, needs.first, 0)


def test_plans_worked_out_by_hand():
    for d in 2, 64, 1024:
        needs = local.masked_parity_agents(d, beta=0.05, epsilon=1.0)
        edge = math.tanh(0.5)
        # (1 - m^2)^(N/2) is at most exp(-N m^2 / 2), hence never more than Hoeffding's.
        hoeffding = 8 * d**2 * math.log((d + 1) / 0.05) / edge**2
        assert hoeffding * (1 - edge**2 / d**2) <= needs.first <= hoeffding + 2 * d
        assert needs.first % (2 * d) == needs.second % 2 == 0
        assert d - 1 < needs.groups / needs.first <= d + 1
        mean = Fraction(edge) / 2
        assert (1 - mean**2) ** (Fraction(needs.second, 2)) <= 0.05 / (d + 1)


# Bad input ----------------------------------------------------------------------------------------


def test_nobody_is_asked_when_there_are_too_few():
    concept = MaskedParity([1, 0], 1)
    agents = agents_of(concept, less=1)
    before = agents.remaining
    with pytest.raises(AgentsExhausted, match=r"d = 2 and beta = 0.05 need"):
        local.learn_masked_parity(agents, 2)
    assert agents.remaining == before


def test_what_is_no_concept_or_example_is_refused():
    for r, a in (([1, 0, 1], 0), ([1], 0), ([1, 2], 0), ([1, 0], 2), ([1, 0], 0.0)):
        with pytest.raises(ParameterError):
            MaskedParity(r, a)
    concept = MaskedParity([1, 0], 0)
    for X in (np.zeros((3, 3), int), np.zeros(4, int), [[0, 0, 0]]):
        with pytest.raises(ShapeError, match="examples of 2 bits have 4 columns"):
            concept.predict(X)
    with pytest.raises(ParameterError):
        concept.predict(np.full((1, 4), 2))
    for d in (0, 3, 32):
        with pytest.raises(ParameterError, match="power of two from 2 to 16"):
            local.masked_parity_domain(d)
    with pytest.raises(ParameterError, match="must be a MaskedParity"):
        local.uniform_examples("r", 3)
    with pytest.raises(ParameterError, match="must be a MaskedParity"):
        EvasiveOracle(None)


def test_what_cannot_be_asked_is_refused():
    concept = MaskedParity([1, 0], 0)
    X, y = local.uniform_examples(concept, 10_000, 0)
    remote = local.RemoteAgents(lambda text, k: [0] * k, epsilon=1.0, count=9)
    for source in (None, remote):
        with pytest.raises(ParameterError, match="it must have query, or be Agents"):
            local.learn_masked_parity(source, 2)
    agents = local.Agents(X, y, epsilon=1.0)
    with pytest.raises(ShapeError, match="examples of 4 bits have 7"):
        local.learn_masked_parity(agents, 4)
    for wrong in ({"beta": 0}, {"beta": 1.5}, {"random_state": "no"}, {"random_state": -1}):
        with pytest.raises(ParameterError):
            local.learn_masked_parity(agents, 2, **wrong)
    counted = local.Agents(X * 2, y, epsilon=1.0)
    with pytest.raises(ParameterError, match="agents: "):
        local.learn_masked_parity(counted, 2)
    assert agents.remaining == counted.remaining == 10_000
    with pytest.raises(ParameterError, match="need more than"):
        local.masked_parity_agents(1024, beta=0.05, epsilon=1e-9)


def test_drawn_agents_are_asked_once():
    agents = MaskedParityAgents(MaskedParity([1, 0], 0), 10, epsilon=1.0)
    with pytest.raises(AgentsExhausted):
        agents.ask(lambda X, y: y, 11)
    with pytest.raises(ShapeError, match=r"answers has shape \(3,\)"):
        agents.ask(lambda X, y: y[1:], 4)
    with pytest.raises(ParameterError, match="must be callable"):
        agents.ask("what?", 4)
    assert agents.remaining == 6
    long = SimpleNamespace(predict=lambda X: [0, 0])
    with pytest.raises(ShapeError, match=r"learned.predict\(X\) has shape"):
        agents.test(long, 4)
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(agents)
    assert agents.record().mechanism == "local.MaskedParityAgents"
    with pytest.raises(ParameterError, match="random_state"):
        MaskedParityAgents(MaskedParity([1, 0], 0), 10, epsilon=1.0, random_state="no")
