"""Oracles of statistical queries: exact, real-valued, the curator's and the agents'."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import local
from hdp_fast.budget import Budget
from hdp_fast.exceptions import (
    AgentsExhausted,
    BudgetExceeded,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from hdp_fast.gf2 import BitMatrix
from hdp_fast.local import Agents, CuratorOracle, ExactOracle, LocalSQOracle, RealValued
from hdp_fast.local.agents import split_epsilon

CERTAIN = 1000.0
SUPPORT = np.arange(5)[:, None]
LABELS = np.array([0, 1, 1, 0, 1])
WEIGHTS = [1, 2, 3, 4, 6]


def label(X, y):
    return y


def never(X, y):
    pytest.fail("somebody was asked")


# A finite distribution ----------------------------------------------------------------------------


def test_exact_means_are_weighted():
    oracle = ExactOracle(SUPPORT, LABELS, WEIGHTS)
    assert oracle.query(label, 0.1) == pytest.approx(11 / 16)
    assert oracle.query(lambda X, y: X[:, 0] / 4, 0.1) == pytest.approx(44 / 64)
    assert ExactOracle(SUPPORT, LABELS).query(label, 0.1) == pytest.approx(3 / 5)
    assert oracle.queries == 2


def test_weights_may_be_huge():
    assert ExactOracle(SUPPORT, LABELS, np.full(5, 1e308)).query(label, 0.1) == pytest.approx(0.6)


def test_an_adversary_sees_the_query_and_shifts_the_answer():
    seen = []

    def adversary(mean, tau, g):
        seen.append((mean, tau, g))
        return -tau

    oracle = ExactOracle(SUPPORT, LABELS, WEIGHTS, error=adversary)
    assert oracle.query(label, 0.25) == pytest.approx(11 / 16 - 0.25)
    assert seen == [(pytest.approx(11 / 16), 0.25, label)]
    assert oracle.query(label, 0.9) == 0


def test_random_errors_are_uniform():
    oracle = ExactOracle(SUPPORT, LABELS, WEIGHTS, error="random", random_state=1)
    errors = np.array([oracle.query(label, 0.2) for _ in range(4_000)]) - 11 / 16
    assert np.abs(errors).max() <= 0.2
    found = np.histogram(errors, 8, range=(-0.2, 0.2))[0]
    # Chi-square with 7 degrees of freedom passes 41 with probability 1e-6.
    assert ((found - 500) ** 2 / 500).sum() < 41


@pytest.mark.parametrize("shift", [0.11, -0.11, math.nan, "0", None])
def test_an_adversary_must_keep_the_tolerance(shift):
    oracle = ExactOracle(SUPPORT, LABELS, error=lambda *_: shift)
    with pytest.raises(ParameterError, match="error"):
        oracle.query(label, 0.1)


@each_case(
    ("change", "error"),
    [
        ({"X": np.ones(5)}, ShapeError),
        ({"y": [0, 1]}, ShapeError),
        ({"y": [0, 1, 2, 1, 0]}, ParameterError),
        ({"weights": [1, 2]}, ShapeError),
        ({"weights": [0] * 5}, ParameterError),
        ({"weights": [1, 1, 1, 1, -1]}, ParameterError),
        ({"weights": [1, 1, 1, 1, math.inf]}, ParameterError),
        ({"weights": [1, 1, 1, 1, math.nan]}, ParameterError),
        ({"weights": list("abcde")}, ParameterError),
        ({"error": "rand"}, ParameterError),
        ({"error": 0.1}, ParameterError),
        ({"random_state": -1}, ParameterError),
    ],
)
def test_bad_distributions_are_refused(change, error):
    with pytest.raises(error):
        ExactOracle(**{"X": SUPPORT, "y": LABELS, **change})


# Real values from bits ----------------------------------------------------------------------------


class Signs:
    """An oracle of queries with values 0 and 1 alone, with the worst errors of given signs."""

    def __init__(self, signs, values):
        self.signs, self.taus = iter(signs), []
        self.values = np.asarray(values, float)

    def query(self, g, tau):
        bits = g(self.values[:, None], np.zeros(len(self.values), np.uint8))
        assert set(np.unique(bits)) <= {0, 1}
        self.taus.append(tau)
        return float(bits.mean()) + tau * next(self.signs)


def first(X, y):
    return X[:, 0]


@each_case("tau", [0.9, 0.5, 0.3, 0.1, 1 / 64])
@each_case("values", [[0.0], [1.0], [0.5, 1.0], [1 / 3, 0.7, 0.99999, 1e-9]])
def test_real_means_from_bits_stay_within_tau_for_all_signs(tau, values):
    digits = max(1, math.ceil(math.log2(1 / tau)))
    worst = 0.0
    for signs in itertools.product((-1, 1), repeat=digits):
        oracle = Signs(signs, values)
        worst = max(worst, abs(RealValued(oracle).query(first, tau) - np.mean(values)))
        assert oracle.taus == [pytest.approx(min(tau, 0.5) / 2)] * digits
    assert worst <= tau
    # No digit and no tolerance could be spared.
    if values == [1.0] and tau < 0.5:
        assert worst > 0.6 * tau


def test_queries_in_minus_b_to_b():
    values, b, tau = [-3.0, 2.5, 3.0, -1.1], 3.0, 0.4
    found = [
        RealValued(Signs([sign] * 4, values), low=-b, high=b).query(first, tau) for sign in (-1, 1)
    ]
    assert abs(np.array(found) - np.mean(values)).max() <= tau
    # ceil(log2(6 / 0.4)) = 4 digits and no fewer.
    with pytest.raises(StopIteration):
        RealValued(Signs([1] * 3, values), low=-b, high=b).query(first, tau)


def test_digits_are_asked_in_one_batch():
    asked = []

    class Batches:
        def query(self, g, tau):
            pytest.fail("there is a batch")

        def batch(self, gs, taus):
            asked.append((len(gs), taus))
            return [0.5] * len(gs)

    RealValued(Batches()).query(first, 0.01)
    assert asked == [(7, [0.005] * 7)]


@pytest.mark.parametrize("tau", [0, -1, math.nan, 2.0**-41, "1"])
def test_a_real_query_needs_a_tolerance(tau):
    with pytest.raises(ParameterError, match="tau"):
        RealValued(Signs([], [0.5])).query(first, tau)


@pytest.mark.parametrize(
    ("value", "place"),
    [(1.1, 1), (1e308, 1), (-4, 0), (-1e308, 0), (math.nan, 1), (math.inf, 1), (-math.inf, 1)],
)
def test_values_out_of_the_range_are_clipped_and_others_count_as_high(value, place):
    oracle, low, high = ExactOracle([[value]], [0]), -3.0, 1.0
    found = RealValued(oracle, low=low, high=high).query(first, 1e-6)
    assert found == pytest.approx(low + place * (high - low), abs=1e-6)


@pytest.mark.parametrize(
    "change", [{"low": 1}, {"high": math.inf}, {"low": math.nan}, {"low": "x"}, {"oracle": None}]
)
def test_bad_ranges_are_refused(change):
    with pytest.raises(ParameterError):
        RealValued(**{"oracle": Signs([], [0.5]), **change})


# The curator --------------------------------------------------------------------------------------


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 1)), rng.integers(0, 2, n)


def curator(n=20_000, **changes):
    return CuratorOracle(*records(n), **{"epsilon": 1.0, "queries": 4, "beta": 0.1} | changes)


@pytest.mark.parametrize(("tau", "queries", "epsilon"), [(0.1, 1, 0.1), (0.01, 50, 2.0)])
def test_the_least_number_of_records_that_keeps_tau(tau, queries, epsilon):
    beta = 0.05
    n = local.records_needed(tau=tau, beta=beta, queries=queries, epsilon=epsilon)

    def kept(n):
        sampling = math.sqrt(math.log(4 * queries / beta) / (2 * n))
        return sampling + queries * math.log(2 * queries / beta) / (epsilon * n) + 2**-30

    assert kept(n) <= tau < kept(n - 1)


@each_case("beta", [0.9, 0.05, 1e-9])
@each_case(
    ("tau", "queries", "epsilon"),
    [(0.1, 1, 0.1), (0.01, 50, 2.0), (0.9, 1, 1e-3), (1e-5, 3, 1e10), (1e-9, 1, 1e300)],
)
def test_sampling_noise_and_rounding_break_a_tolerance_with_probability_beta_at_most(
    tau, queries, epsilon, beta
):
    n = local.records_needed(tau=tau, beta=beta, queries=queries, epsilon=epsilon)
    sampling = math.sqrt(math.log(4 * queries / beta) / (2 * n))
    broken = 2 * queries * math.exp(-2 * n * sampling**2)
    # What is left for the noise in a sum, whose terms are rounded by at most half a step each.
    left = math.floor(n * (2**30 * (tau - sampling) - 0.5))
    rate = epsilon / (queries * 2**30)
    broken += queries * 2 * math.exp(-rate * (left + 1)) / (1 + math.exp(-rate))
    assert broken <= beta * (1 + 1e-6)


def test_without_noise_the_curator_answers_with_the_mean():
    X, y = records(1_000)
    oracle = CuratorOracle(X, y, epsilon=1e9, queries=2, beta=0.1)
    assert oracle.query(label, 0.2) == pytest.approx(y.mean(), abs=2**-30)
    assert oracle.query(first, 0.2) == pytest.approx(X.mean(), abs=2**-30)


def test_noise_is_that_of_all_queries_together():
    X, y = records(2_000)
    oracle = CuratorOracle(X, y, epsilon=0.5, queries=400, beta=0.1)
    found = np.array([oracle.query(label, 1.0) for _ in range(400)])
    # Laplace of scale t / (epsilon n) = 0.4; its median deviation is 0.4 ln 2, but for clipping.
    inside = np.abs(found - y.mean()) < 0.4 * math.log(2)
    assert 140 < inside.sum() < 260
    with pytest.raises(BudgetExceeded, match="0 are left"):
        oracle.query(never, 1.0)


def test_one_record_moves_a_sum_by_no_more_than_the_noise_is_made_for():
    sums = []
    for value in (0.0, 1.0):
        oracle = CuratorOracle([[value], [1 / 3]], [0, 1], epsilon=1, queries=1, beta=0.1)
        sums.append(oracle._add_up(first))
    assert sums[1] - sums[0] == 2**30
    assert oracle._scale == 2**30


def test_noise_is_made_for_what_the_ledger_takes():
    for epsilon in (0.1, 0.3, 1 / 3):
        oracle = curator(epsilon=epsilon, queries=7)
        assert oracle._scale >= Fraction(7 * 2**30) / Fraction(repr(epsilon))


def test_a_curator_charges_once():
    budget = Budget(2)
    oracle = curator(budget=budget)
    assert budget.spent.epsilon == 1
    for _ in range(4):
        oracle.query(label, 0.1)
    assert budget.spent.epsilon == 1
    assert (oracle.record.epsilon, oracle.record.neighbors) == (1, "replace_one")
    with pytest.raises(BudgetExceeded):
        curator(epsilon=1.5, budget=budget)


def test_too_few_records_for_tau_answer_nothing():
    oracle = curator(n=500)
    with pytest.raises(InsufficientSamples, match=r"500.*tau = 0\.01.*needs"):
        oracle.query(never, 0.01)
    assert oracle.remaining == 4


@pytest.mark.parametrize("g", [None, "g", 0.5])
def test_what_is_no_query_is_refused_before_anything_is_spent(g):
    oracle, agents = curator(), people(9_000)
    near = LocalSQOracle(agents, queries=2, beta=0.1)
    exact = ExactOracle(SUPPORT, LABELS)
    for query in (oracle.query, exact.query, near.query, RealValued(near).query):
        with pytest.raises(ParameterError, match="g = "):
            query(g, 0.1)
    with pytest.raises(ParameterError, match="gs = "):
        near.batch(g, 0.1)
    assert (oracle.remaining, exact.queries, agents.remaining) == (4, 0, 9_000)
    assert repr(near) == f"LocalSQOracle({agents!r}, 0 of 2 queries answered)"


def test_a_failing_query_stays_spent():
    oracle = curator()
    with pytest.raises(ShapeError, match=r"g\(X, y\)"):
        oracle.query(lambda X, y: y[1:], 0.1)
    assert oracle.remaining == 3


def test_a_curator_is_never_copied():
    oracle = curator()
    assert copy.copy(oracle) is copy.deepcopy(oracle) is oracle
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(oracle)
    assert repr(oracle) == "CuratorOracle(20,000 records, epsilon=1, 0 of 4 queries asked)"


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"queries": 0},
        {"queries": 1.5},
        {"queries": 2**20},
        {"beta": 0},
        {"beta": 1},
        {"random_state": "x"},
    ],
)
def test_a_bad_curator_charges_nothing(change):
    budget = Budget(2)
    with pytest.raises(ParameterError, match=next(iter(change))):
        curator(budget=budget, **change)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("tau", [0, -1, math.nan, 2.0**-31, "1"])
def test_a_bad_tolerance_answers_nothing(tau):
    oracle = curator()
    with pytest.raises(ParameterError, match="tau"):
        oracle.query(never, tau)
    assert oracle.remaining == 4


def test_seeded_answers_repeat():
    first_, second = ([curator(random_state=5).query(label, 0.1)] for _ in range(2))
    assert first_ == second
    oracle = curator(random_state=5)
    assert oracle.query(label, 0.1) != oracle.query(label, 0.1)


# Agents -------------------------------------------------------------------------------------------


def people(count, *, epsilon=CERTAIN, kind=np.asarray):
    X = (np.arange(count)[:, None] >> np.arange(14) & 1).astype(np.uint8)
    return Agents(kind(X), X[:, 0], epsilon=epsilon)


@pytest.mark.parametrize("b", [0.5, 1.0, 7.0])
def test_agents_per_query(b):
    found = local.agents_per_query(tau=0.1, beta=0.05, queries=20, epsilon=0.7, bound=b)
    exact = 2 * b**2 * math.log(2 * 20 / 0.05) / (0.1 * math.tanh(0.35)) ** 2
    assert found == pytest.approx(exact, abs=1)
    assert found >= exact - 1e-6
    if b == 0.5:
        assert found == local.agents_needed(alpha=0.1, beta=0.05 / 20, epsilon=0.7)


@pytest.mark.parametrize(
    "change",
    [
        *({"tau": 0}, {"tau": 1}, {"tau": 1e-12}, {"beta": 0}, {"queries": 0}, {"epsilon": -1}),
        {"bound": math.nan},
    ],
)
def test_agents_per_query_refuses(change):
    call = {"tau": 0.1, "beta": 0.1, "queries": 2, "epsilon": 1}
    with pytest.raises(ParameterError, match=next(iter(change))):
        local.agents_per_query(**call | change)


@pytest.mark.parametrize("kind", [np.asarray, BitMatrix.from_dense], ids=["array", "BitMatrix"])
def test_every_query_asks_agents_of_its_own(kind):
    agents = people(8_000, kind=kind)
    oracle = LocalSQOracle(agents, queries=4, beta=0.1)
    seen = []

    def g(X, y):
        rows = np.asarray(X)
        seen.append(rows @ (1 << np.arange(14)))
        return rows[:, 1]

    n = [local.agents_per_query(tau=t, beta=0.1, queries=4, epsilon=CERTAIN) for t in (0.1, 0.05)]
    oracle.query(g, 0.1)
    oracle.batch([g, g], [0.05, 0.1])
    assert [len(some) for some in seen] == [n[0], n[1], n[0]]
    assert np.concatenate(seen).tolist() == list(range(2 * n[0] + n[1]))
    assert oracle.answers == [np.mean(some >> 1 & 1) for some in seen]
    assert oracle.asked == 2 * n[0] + n[1] == 8_000 - agents.remaining


def test_when_agents_run_out_nobody_is_asked_and_answers_are_kept():
    needed = local.agents_per_query(tau=0.1, beta=0.1, queries=9, epsilon=1.0)
    agents = people(2 * needed + 5, epsilon=1.0)
    oracle = LocalSQOracle(agents, queries=9, beta=0.1)
    kept = [oracle.query(label, 0.1) for _ in range(2)]
    for call in (
        lambda: oracle.query(never, 0.1),
        lambda: oracle.batch([never, never], 0.4),
    ):
        with pytest.raises(AgentsExhausted, match=r"5 left.*2 earlier answers"):
            call()
    assert (oracle.answers, oracle.asked, agents.remaining) == (kept, 2 * needed, 5)


def test_no_more_queries_than_promised():
    oracle = LocalSQOracle(people(9_000), queries=2, beta=0.1)
    with pytest.raises(ParameterError, match=r"queries = 2.*3 are asked"):
        oracle.batch([never] * 3, 0.2)
    oracle.batch([label] * 2, 0.2)
    with pytest.raises(ParameterError, match="queries"):
        oracle.query(never, 0.2)


def test_a_batch_is_heard_before_anybody_answers():
    agents, heard, asks = people(9_000), [], []
    ask = agents.ask
    agents.ask = lambda *args, **kw: asks.append(len(heard)) or ask(*args, **kw)
    oracle = LocalSQOracle(agents, queries=3, beta=0.1)
    oracle.batch([lambda X, y: heard.append(0) or y] * 3, [0.2, 0.3, 0.2])
    assert (asks, len(heard)) == ([0], 3)
    assert oracle.batch([], []) == []


@pytest.mark.parametrize("taus", [0, -1, math.nan, [0.1], [0.1, 0], "x", [0.1, None]])
def test_bad_tolerances_ask_nobody(taus):
    agents = people(9_000)
    oracle = LocalSQOracle(agents, queries=3, beta=0.1)
    with pytest.raises((ParameterError, ShapeError), match="tau"):
        oracle.batch([never] * 2, taus)
    with pytest.raises(ParameterError, match="g = 'g'"):
        oracle.batch([label, "g"], 0.1)
    assert agents.remaining == 9_000


def test_agents_of_a_failing_query_stay_asked():
    agents = people(9_000)
    oracle = LocalSQOracle(agents, queries=3, beta=0.1)
    for g in (lambda X, y: y[:, None], lambda X, y: y[:-1]):
        with pytest.raises(ShapeError, match=r"g\(X, y\)"):
            oracle.query(g, 0.2)
    assert agents.remaining < 9_000
    assert oracle.answers == []
    # They count as asked: what they might have told had its share of beta.
    with pytest.raises(ParameterError, match="2 are asked and 1 are left"):
        oracle.batch([never] * 2, 0.2)


@pytest.mark.parametrize(
    "change",
    [{"agents": None}, {"queries": 0}, {"queries": -1}, {"beta": 1}, {"random_state": 0.5}],
)
def test_bad_local_oracles_are_refused(change):
    with pytest.raises(ParameterError, match=next(iter(change))):
        LocalSQOracle(**{"agents": people(9), "queries": 3, "beta": 0.1, **change})


# Several questions to one agent -------------------------------------------------------------------


def test_each_question_is_randomized_by_its_share():
    n, shares = 100_000, [0.2, 0.5, 1.3]
    agents = Agents(np.zeros((n, 1), int), np.ones(n, int), epsilon=2.0)
    reports = agents.ask_several([label] * 3, n, shares=shares, random_state=1)
    assert reports.shape == (3, n)
    assert agents.remaining == 0
    for answers, share in zip(reports, shares, strict=True):
        lie = 1 / (1 + math.exp(share))
        assert abs((answers == 0).mean() - lie) < 4.9 * math.sqrt(lie * (1 - lie) / n)
    # Other coins for each question.
    rates = reports.mean(axis=1)
    assert abs((reports[0] & reports[1]).mean() - rates[0] * rates[1]) < 5 / math.sqrt(n)


def test_questions_are_answered_truly_when_nobody_lies():
    agents = people(20)
    reports = agents.ask_several([label, lambda X, y: X[:, 1]], 8)
    assert reports.tolist() == [[i & 1 for i in range(8)], [i >> 1 & 1 for i in range(8)]]
    assert agents.remaining == 12


@each_case("epsilon", [0.1, 0.3, 1.0, 2.7])
@each_case("k", [1, 3, 7, 49, 1000])
def test_equal_shares_never_exceed_the_whole(epsilon, k):
    shares = split_epsilon(None, k, epsilon)
    assert k * Fraction(repr(shares[0])) <= Fraction(repr(epsilon))
    assert sum(shares) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 3.06), (3, 3.71), (4, 4.25)])
def test_when_asking_together_takes_fewer_agents(k, epsilon):
    def ratio(epsilon):
        together = local.agents_needed(alpha=1e-3, beta=0.05, epsilon=epsilon / k)
        return together / (k * local.agents_needed(alpha=1e-3, beta=0.05, epsilon=epsilon))

    assert ratio(epsilon) < 1 < ratio(epsilon - 0.01)
    assert ratio(0.01) == pytest.approx(k, rel=1e-3)


@each_case(
    "change",
    [
        {"questions": []},
        {"questions": label},
        {"questions": [label, None]},
        {"shares": [0.5]},
        {"shares": [0.5, 0.6]},
        {"shares": [0.5, math.nextafter(0.5, 1)]},
        {"shares": [1.0, 0.0]},
        {"shares": [1.5, -0.5]},
        {"shares": [0.5, math.nan]},
        {"shares": ["0.1", "0.1"]},
        {"count": -1},
        {"random_state": -1},
    ],
)
def test_bad_visits_ask_nobody(change):
    agents = people(9, epsilon=1.0)
    with pytest.raises(ParameterError, match=next(iter(change))):
        agents.ask_several(**{"questions": [never] * 2, "count": 2} | change)
    assert agents.remaining == 9


def test_visits_end_with_the_agents():
    agents = people(9)
    with pytest.raises(AgentsExhausted):
        agents.ask_several([never], 10)
    with pytest.raises(ShapeError):
        agents.ask_several([label, lambda X, y: y[:-1]], 4)
    assert agents.remaining == 5


# Runs ---------------------------------------------------------------------------------------------


def bisection(oracle):
    """The median of the numbers that agents hold, by adaptive queries."""
    low, high = 0, 1 << 14
    for _ in range(6):
        middle = (low + high) // 2
        below = oracle.query(lambda X, y, m=middle: X @ (1 << np.arange(14)) < m, 0.1)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return low


def test_an_adaptive_algorithm_runs_on_agents():
    agents = Agents(*shuffled(1 << 14), epsilon=2.0)
    run = local.simulate_sq(bisection, agents, queries=6, tau=0.1, beta=0.01, random_state=3)
    assert abs(run.result - 8192) <= 0.11 * 16384
    assert len(run.answers) == 6
    each = local.agents_per_query(tau=0.1, beta=0.01, queries=6, epsilon=2.0)
    assert run.agents == 6 * each == len(agents) - agents.remaining
    assert (run.agents_record.epsilon, run.agents_record.neighbors) == (2.0, "local")


def shuffled(count):
    order = np.random.default_rng(0).permutation(count)
    X = (order[:, None] >> np.arange(14) & 1).astype(np.uint8)
    return X, X[:, 0]


def test_too_few_agents_for_the_promised_queries_are_not_asked():
    agents = people(100, epsilon=1.0)
    for tolerance in ({"tau": 0.1}, {"taus": [0.4, 0.1]}):
        with pytest.raises(AgentsExhausted, match="100 left"):
            local.simulate_sq(
                lambda oracle: pytest.fail("it ran"), agents, queries=2, beta=0.1, **tolerance
            )
    assert agents.remaining == 100


def test_what_was_not_promised_is_refused():
    def greedy(oracle):
        oracle.query(label, 0.3)
        return oracle.query(label, 0.1)

    for tolerance in ({"tau": 0.2}, {"taus": [0.3, 0.2]}):
        with pytest.raises(ParameterError, match=r"tau = 0\.1.*0\.2"):
            local.simulate_sq(greedy, people(9_000), queries=2, beta=0.1, **tolerance)
    assert local.simulate_sq(greedy, people(9_000), queries=2, beta=0.1, taus=[0.3, 0.1]).agents
    with pytest.raises(ParameterError, match="queries = 1"):
        local.simulate_sq(greedy, people(9_000), queries=1, beta=0.1, tau=0.1)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": None},
        {"agents": None},
        {"tau": None},
        {"tau": 0},
        {"taus": [0.1, 0.2]},
        {"tau": None, "taus": 0.1},
        {"tau": None, "taus": [0.1]},
        {"queries": 0},
        {"beta": 2},
        {"random_state": "x"},
    ],
)
def test_bad_runs_ask_nobody(change):
    agents = people(9_000)
    call = {"algorithm": never, "agents": agents, "queries": 2, "tau": 0.1, "beta": 0.1}
    with pytest.raises((ParameterError, ShapeError), match=[*change][-1]):
        local.simulate_sq(**call | change)
    assert agents.remaining == 9_000
