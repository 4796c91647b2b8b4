"""Local randomizers simulated by statistical queries: exact laws under adversarial answers."""

import copy
import dataclasses
import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from cases import each_case
from scripts import PAPERS

from hdp_fast import local
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError
from hdp_fast.local import Agents, ExactOracle, LocalSQOracle, SimulatedEntry
from hdp_fast.local.queries.local_protocol import LikelihoodRatio, acceptance_probabilities


class Table:
    """A finite randomizer: row u holds the probabilities of the reports on input u."""

    delta = 0.0

    def __init__(self, rows):
        self.rows = np.asarray(rows, float)
        ratios = self.rows[:, None] / self.rows[None]
        self.epsilon = float(np.log(ratios.max()))

    def sample(self, u, *, random_state=None):
        ends = self.rows.cumsum(axis=1)[np.asarray(u)]
        draws = np.random.default_rng(random_state).random((len(ends), 1))
        return (draws > ends[:, :-1]).sum(axis=1)

    def log_probability(self, w, u):
        return np.log(self.rows[np.asarray(u), np.asarray(w)])


def response(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return Table([[truth, 1 - truth], [1 - truth, truth]])


def kary(k, epsilon):
    rows = np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)
    return Table(rows / rows.sum(axis=1, keepdims=True))


def random_table(inputs, reports, seed):
    return Table(np.random.default_rng(seed).dirichlet(np.full(reports, 6.0), inputs))


def held(X, y):
    return X[:, 0]


def label(X, y):
    return y


def oracle_of(weights, signs=None):
    """Records with inputs 0, 1, ... and these weights; answers as wrong as the signs say."""
    count = len(weights)
    error = None
    if signs is not None:
        turns = iter(signs)
        error = lambda mean, tau, g: next(turns) * tau  # noqa: E731
    return ExactOracle(np.arange(count)[:, None], np.arange(count) % 2, weights, error=error)


def most(phi):
    return phi / (1 + math.sqrt(1 - phi**2))


def distance(some, other):
    return float(np.abs(np.asarray(some) - other).sum() / 2)


# One randomizer -----------------------------------------------------------------------------------

# Mostly or only of inputs on which the reports of the reference are rare: there errors count most.
PROBLEMS = [
    (response(1.0), [0, 1]),
    (response(0.2), [1, 3]),
    (response(3.0), [0.1, 1]),
    (kary(3, 2.0), [0, 1, 1]),
    (kary(4, 0.5), [1, 2, 3, 4]),
    (random_table(3, 4, 0), [1, 2, 3]),
    (random_table(2, 5, 1), [0, 1]),
]


def simulated_law(randomizer, oracle, plan):
    """The law of one report, from the chances of all; and the expected number of iterations."""
    reports = range(randomizer.rows.shape[1])
    ratios = [LikelihoodRatio().extend(randomizer, held, 0, w) for w in reports]
    chances = acceptance_probabilities(ratios, oracle, plan)
    assert ((chances >= 0) & (chances <= 1)).all()
    weighed = randomizer.rows[0] * chances
    return weighed / weighed.sum(), 1 / weighed.sum()


@pytest.mark.parametrize(("randomizer", "weights"), PROBLEMS)
@pytest.mark.parametrize("beta", [0.5, 0.1, 0.01])
def test_the_law_is_within_the_bound_for_all_signs_of_errors(randomizer, weights, beta):
    plan = local.plan_simulation(randomizer.epsilon, beta=beta)
    truth = np.array(weights) / np.sum(weights) @ randomizer.rows
    distances = []
    for signs in itertools.product((-1, 0, 1), repeat=len(truth)):
        law, iterations = simulated_law(randomizer, oracle_of(weights, signs), plan)
        distances.append(distance(law, truth))
        least = (1 - plan.phi) / (1 + plan.phi)
        assert iterations <= math.exp(randomizer.epsilon) / least * (1 + 1e-9)
    assert max(distances) <= most(plan.phi) <= 0.93 * beta
    assert plan.distance <= beta


@pytest.mark.parametrize(("randomizer", "weights"), PROBLEMS)
def test_without_errors_the_law_is_exact(randomizer, weights):
    plan = local.plan_simulation(randomizer.epsilon, beta=0.5)
    truth = np.array(weights) / np.sum(weights) @ randomizer.rows
    law, iterations = simulated_law(randomizer, oracle_of(weights), plan)
    assert law == pytest.approx(truth, rel=1e-9)
    assert iterations == pytest.approx(math.exp(randomizer.epsilon) * (1 + plan.phi))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("beta", [0.5, 0.05])
def test_where_errors_count_most_they_are_phi_and_no_less(epsilon, beta):
    """Report 1 is exp(epsilon) times rarer on the only record than on the reference."""
    rare = 1e-3
    often = rare * math.exp(epsilon)
    table = Table([[1 - often, often], [1 - rare, rare]])
    plan = local.plan_simulation(epsilon, beta=beta)
    law, _ = simulated_law(table, oracle_of([0, 1], [0, 1]), plan)
    assert law[1] / law[0] * (1 - rare) / rare == pytest.approx(1 + plan.phi)


def test_larger_tolerances_would_break_the_bound():
    """For k reports that are all alike on all records, but not on the reference."""
    table = Table([[0.1, 0.1, 0.8], [0.25, 0.25, 0.5]])
    plan = local.plan_simulation(table.epsilon, beta=0.1)
    looser = dataclasses.replace(plan, tau=6 * plan.tau)
    worst = [
        max(
            distance(simulated_law(table, oracle_of([0, 1], signs), some)[0], table.rows[1])
            for signs in itertools.product((-1, 1), repeat=3)
        )
        for some in (plan, looser)
    ]
    assert worst[0] <= plan.distance < worst[1]


@pytest.mark.parametrize("phi", [0.01, 0.1, 1 / 3])
def test_the_bound_on_the_distance_is_what_relative_errors_can_do(phi):
    """By enumeration over the mass of the reports that are made likelier."""
    mass = np.linspace(0, 1, 100_001)
    raised = mass * (1 + phi) / (mass * (1 + phi) + (1 - mass) * (1 - phi))
    assert (raised - mass).max() == pytest.approx(most(phi), rel=1e-6)


def test_an_adversary_who_knows_all_candidates_does_at_most_twice_as_much():
    """By enumeration of all candidates, the worst errors chosen for each of their sequences."""
    table, weights, drawn = random_table(2, 3, 8), [1, 3], 8
    truth = np.array(weights) / np.sum(weights) @ table.rows
    plan = local.plan_simulation(table.epsilon, beta=0.1)
    ratios = [LikelihoodRatio().extend(table, held, 0, w) for w in range(3)]
    low, high = (
        acceptance_probabilities(ratios, oracle_of(weights, [sign] * 3), plan) for sign in (-1, 1)
    )
    patterns = np.array(list(itertools.product((False, True), repeat=3)))
    chances = np.where(patterns, high, low)
    sequences = np.array(list(itertools.product(range(3), repeat=drawn)))
    likely = table.rows[0][sequences].prod(axis=1)
    missed = (1 - 1 / plan.iterations) ** drawn
    gains = []
    for event in itertools.product((0, 1), repeat=3):
        accepted = chances[:, sequences]
        accepted[:, :, -1] = 1
        reached = np.cumprod(1 - accepted, axis=2)[:, :, :-1]
        reached = np.concatenate([np.ones((8, len(sequences), 1)), reached], axis=2)
        inside = (accepted * reached * np.array(event)[sequences]).sum(axis=2)
        gains.append(likely @ inside.max(axis=0) - truth @ event)
    assert most(plan.phi) / 2 < max(gains) <= plan.phi + missed
    assert plan.phi + plan.distance - most(plan.phi) <= 2 * plan.distance


def test_the_plan_by_hand():
    plan = local.plan_simulation(1.0, beta=0.05, applications=10)
    phi = 1.8 * 0.05 / 10
    assert plan.phi == pytest.approx(phi)
    assert plan.tau == pytest.approx(phi / (math.e**2 - 1))
    accepted = (1 - phi) / (1 + phi) / math.e
    assert (1 - accepted) ** plan.candidates <= 0.07 * 0.05 / 10
    assert (1 - accepted) ** (plan.candidates - 1) > 0.07 * 0.05 / 10
    assert plan.queries == 10 * plan.candidates
    assert plan.iterations == pytest.approx(1 / accepted)
    assert plan.distance == pytest.approx(10 * ((1 - accepted) ** plan.candidates + most(phi)))
    # The paper's is beta / (3 exp(2 epsilon) t).
    assert plan.tau > 5 * 0.05 / (3 * math.e**2 * 10)


@each_case("epsilon", [1e-6, 0.01, 0.1, 1.0, 6.0])
@each_case(("beta", "applications"), [(0.99, 1), (0.05, 1), (0.05, 1_000)])
def test_plans_keep_beta(epsilon, beta, applications):
    plan = local.plan_simulation(epsilon, beta=beta, applications=applications)
    assert 0 < plan.tau <= 0.5
    assert 0 < plan.phi <= min(1 / 3, 1.8 * beta / applications)
    assert plan.distance <= beta


class Watched:
    """An oracle that keeps what it was asked, and answers with a constant."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def batch(self, gs, taus):
        X = np.arange(2)[:, None]
        self.asked.append([tuple(g(X, X[:, 0])) for g in gs])
        return [self.answer] * len(gs)

    def query(self, g, tau):
        return self.batch([g], [tau])[0]


def test_queries_do_not_depend_on_answers():
    runs = []
    for answer in (0.0, 0.3, 1.0):
        oracle = Watched(answer)
        call = {"beta": 0.1, "applications": 20, "random_state": 7}
        found = local.simulate_local(random_table(2, 40, 3), held, oracle, **call)
        runs.append(oracle.asked)
        (batch,) = oracle.asked
        assert len(batch) == len(set(batch)) == found.queries
    assert runs[0] == runs[1] == runs[2]


def test_broken_answers_end_nevertheless():
    for answer in (-1e9, 0.0, 1e9, math.nan):
        found = local.simulate_local(
            response(1.0), held, Watched(answer), beta=0.1, applications=500, random_state=1
        )
        assert found.reports.shape == found.iterations.shape == (500,)
        assert set(found.reports.tolist()) == {0, 1}
        entry = SimulatedEntry(Watched(answer), beta=0.1, applications=3, random_state=1)
        assert [entry.apply(response(0.5), held) in (0, 1) for _ in range(3)] == [True] * 3


def test_two_queries_simulate_a_thousand_binary_responses():
    found = local.simulate_local(
        response(1.0), held, oracle_of([3, 1]), beta=0.1, applications=1_000, random_state=2
    )
    assert found.queries == 2 < found.plan.queries
    truth = 0.75 * response(1.0).rows[0, 1] + 0.25 * response(1.0).rows[1, 1]
    assert abs(found.reports.mean() - truth) < 5 * math.sqrt(truth * (1 - truth) / 1_000)
    assert 1 <= found.iterations.min() <= found.iterations.max() <= found.plan.candidates
    # A geometric number; six standard deviations.
    spread = found.plan.iterations * 6 / math.sqrt(1_000)
    assert abs(found.iterations.mean() - math.e) < spread + 0.01


def test_the_reference_changes_the_candidates_and_not_the_law():
    plan = local.plan_simulation(response(1.0).epsilon, beta=0.1)
    randomizer, laws = response(1.0), []
    for reference in (0, 1):
        ratios = [LikelihoodRatio().extend(randomizer, held, reference, w) for w in (0, 1)]
        weighed = randomizer.rows[reference] * acceptance_probabilities(
            ratios, oracle_of([3, 1]), plan
        )
        laws.append(weighed / weighed.sum())
    assert laws[0] == pytest.approx(laws[1])


# Several randomizers on one entry -----------------------------------------------------------------


def joint_laws(randomizers, weights, beta, signs):
    """Law of all reports, under errors of these signs, and the expected iterations of each step."""
    entry = SimulatedEntry(oracle_of(weights, signs), beta=beta, applications=len(randomizers))
    law, most_iterations = {}, [0.0] * len(randomizers)

    def walk(entry, probability):
        step = len(entry.reports)
        if step == len(randomizers):
            law[entry.reports] = probability
            return
        randomizer = randomizers[step]
        reports = range(randomizer.rows.shape[1])
        estimates = [entry._estimate(randomizer, held, 0, w) for w in reports]
        chances = [entry._acceptance_probability(randomizer, ratio) for _, ratio in estimates]
        assert 0 <= min(chances) <= max(chances) <= 1 + 1e-12
        weighed = randomizer.rows[0] * chances
        most_iterations[step] = max(most_iterations[step], 1 / weighed.sum())
        for w in reports:
            longer = copy.copy(entry)
            longer._history, longer._mean_ratio = estimates[w]
            longer.reports = (*entry.reports, w)
            walk(longer, probability * weighed[w] / weighed.sum())

    walk(entry, 1.0)
    return law, most_iterations


def true_law(randomizers, weights):
    weights = np.array(weights) / np.sum(weights)
    outcomes = itertools.product(*(range(each.rows.shape[1]) for each in randomizers))
    return {
        reports: float(
            weights
            @ np.prod([r.rows[:, w] for r, w in zip(randomizers, reports, strict=True)], axis=0)
        )
        for reports in outcomes
    }


ENTRIES = [
    ([response(0.5), response(0.7)], [0, 1]),
    ([response(0.5), response(1.0)], [1, 1]),
    ([response(0.1), response(0.1)], [1, 2]),
    ([random_table(2, 2, 4), random_table(2, 2, 5)], [0.2, 1]),
]


@pytest.mark.parametrize(("randomizers", "weights"), ENTRIES)
@pytest.mark.parametrize("beta", [0.7, 0.1])
def test_joint_laws_are_within_beta_for_all_signs_of_errors(randomizers, weights, beta):
    truth = true_law(randomizers, weights)
    check_joint(randomizers, weights, beta, truth, itertools.product((-1, 1), repeat=6))


def check_joint(randomizers, weights, beta, truth, patterns):
    phi = min(1 / 3, 1.8 * beta / len(randomizers))
    for signs in patterns:
        law, iterations = joint_laws(randomizers, weights, beta, signs)
        assert law.keys() == truth.keys()
        assert distance([law[w] for w in truth], [*truth.values()]) <= len(randomizers) * most(phi)
        slack = (1 + 3 * phi) * (1 + phi) / (1 - phi)
        for randomizer, found in zip(randomizers, iterations, strict=True):
            assert found <= slack * math.exp(randomizer.epsilon)
    assert len(randomizers) * most(phi) <= 0.93 * beta or phi == 1 / 3


def test_three_randomizers_on_one_entry():
    randomizers, weights = [response(0.4), kary(3, 0.5), response(0.6)], [1, 3]
    randomizers[1] = Table(randomizers[1].rows[:2])
    rng = np.random.default_rng(6)
    patterns = [rng.choice((-1, 1), 2 + 6 + 12).tolist() for _ in range(60)]
    check_joint(randomizers, weights, 0.3, true_law(randomizers, weights), patterns)


@pytest.mark.parametrize(("randomizers", "weights"), ENTRIES)
def test_without_errors_joint_laws_are_exact(randomizers, weights):
    truth = true_law(randomizers, weights)
    law, _ = joint_laws(randomizers, weights, 0.5, [0] * 6)
    assert [law[w] for w in truth] == pytest.approx([*truth.values()], rel=1e-9)


def test_reports_of_one_entry_agree():
    """Two nearly truthful reports about one entry contradict each other less than independent ones.

    About entries of their own they would in a half of all cases.
    """
    different = 0
    for seed in range(200):
        entry = SimulatedEntry(oracle_of([1, 1]), beta=0.2, applications=2, random_state=seed)
        first, second = (entry.apply(response(3.0), held) for _ in range(2))
        different += first != second
        assert entry.reports == (first, second)
        assert entry.epsilon == pytest.approx(6.0)
        assert entry.queries <= 4
        assert len(entry.iterations) == 2
    lie = 1 / (1 + math.exp(3))
    chance = 2 * lie * (1 - lie)
    assert different < 200 * chance + 6 * math.sqrt(200 * chance) + 0.2 * 200
    assert different < 80


def test_randomizers_of_an_entry_may_look_at_different_parts():
    entry = SimulatedEntry(oracle_of([0, 0, 0, 1]), beta=0.2, applications=2, random_state=0)
    assert entry.apply(kary(4, 9.0), held) == 3
    assert entry.apply(response(6.0), label) == 1


def test_an_entry_answers_no_more_often_than_planned():
    entry = SimulatedEntry(oracle_of([1, 1]), beta=0.2, applications=2, random_state=0)
    for _ in range(2):
        entry.apply(response(1.0), held)
    queries = entry.queries
    with pytest.raises(ParameterError, match="applications = 2"):
        entry.apply(response(1.0), held)
    assert entry.queries == queries


def test_the_tolerance_follows_the_epsilons_so_far():
    taus = []
    oracle = ExactOracle(
        np.arange(2)[:, None], [0, 1], error=lambda mean, tau, g: taus.append(tau) or 0
    )
    entry = SimulatedEntry(oracle, beta=0.2, applications=4, random_state=0)
    phi = 1.8 * 0.2 / 4
    for step in (1, 2, 3):
        taus.clear()
        entry.apply(response(0.5), held)
        assert taus == [pytest.approx(phi / math.expm1(2 * 0.5 * step))] * len(taus)


def test_an_entry_that_fails_stays_as_it_was():
    entry = SimulatedEntry(oracle_of([1, 1]), beta=0.2, applications=3, random_state=0)
    entry.apply(response(1.0), held)
    before = entry.reports, entry.iterations, entry.epsilon
    with pytest.raises(ZeroDivisionError):
        entry.apply(response(1.0), lambda X, y: 1 // 0)
    assert (entry.reports, entry.iterations, entry.epsilon) == before


# On agents ----------------------------------------------------------------------------------------


def test_a_randomizer_is_simulated_on_agents_whose_own_is_another():
    """Local to SQ to local: both directions at once."""
    plan = local.plan_simulation(response(1.0).epsilon, beta=0.5)
    needed = 2 * local.agents_per_query(tau=plan.tau, beta=0.05, queries=2, epsilon=2.0)
    X = np.arange(needed)[:, None] % 4 == 0
    agents = Agents(X.astype(np.uint8), X[:, 0].astype(int), epsilon=2.0)
    oracle = LocalSQOracle(agents, queries=2, beta=0.05, random_state=1)
    found = local.simulate_local(response(1.0), held, oracle, beta=0.5, random_state=1)
    assert found.queries == 2
    assert agents.remaining == 0
    again = LocalSQOracle(agents, queries=2, beta=0.05)
    with pytest.raises(AgentsExhausted):
        local.simulate_local(response(1.0), held, again, beta=0.5, random_state=1)


def test_a_simulation_outlives_its_process_as_json():
    oracle = ExactOracle([[0], [1]], [0, 1])
    found = local.simulate_local(
        response(1.0), held, oracle, beta=0.5, applications=3, random_state=1
    )
    read = local.SimulationResult.from_json(found.to_json())
    assert read.to_json() == found.to_json()
    assert (read.plan, read.queries, read.reports.dtype) == (found.plan, found.queries, np.int64)
    assert read.reports.tolist() == found.reports.tolist()
    fields = json.loads(found.to_json())
    for change in ({"reports": [0]}, {"reports": [0.5] * 3}, {"queries": -1}, {"plan": {}}):
        with pytest.raises(ParameterError if change != {"reports": [0]} else ShapeError):
            local.SimulationResult.from_json(json.dumps(fields | change))


# The experiment -----------------------------------------------------------------------------------

SCRIPT = PAPERS / "sq_simulation.py"


@pytest.mark.thorough(beside="test_the_law_is_within_the_bound_for_all_signs_of_errors")
@pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")
def test_the_experiment_keeps_its_bounds(tmp_path):
    command = [sys.executable, str(SCRIPT), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sq_simulation.png").stat().st_size > 10_000
    report = json.loads((tmp_path / "sq_simulation.json").read_text())
    assert len(report["rows"]) == 12
    for row in report["rows"]:
        assert 0.01 * row["bound"] < row["distance"] <= row["bound"] <= report["beta"]
        assert row["iterations"] <= row["iterations, bound"] < 2 * math.exp(row["epsilon"])
        assert row["queries"] <= row["queries, bound"]
        assert row["tau"] > 5 * row["paper's tau"]


@pytest.mark.parametrize(
    ("randomizer", "inputs"),
    [
        (local.BinaryResponse(1.0, (0, 1)), [0.0, 0.3, 1.0]),
        (local.Piecewise(0.8, (0, 1)), [0.1, 0.5]),
        (local.LaplaceRandomizer(0.5, (0, 1)), [0.0, 0.9]),
        (local.KaryResponse(5, 1.2), [0, 3, 4]),
        (local.SubsetSelection(8, 1.0), [0, 3, 4]),
        (local.ProjectiveGeometryResponse(5, 1.2), [0, 3, 4]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_randomizers_of_the_package_are_simulated_exactly(randomizer, inputs):
    """Their own probabilities, mixed, are those of the candidates times their chances."""
    low, high = randomizer.report_range
    reports = np.unique(np.linspace(low, high, 40).astype(int))
    logs = randomizer.log_probability(reports, np.array(inputs)[:, None])
    possible = np.isfinite(logs).all(axis=0)
    reports, table = reports[possible], np.exp(logs[:, possible])
    values = lambda X, y: np.array(inputs)[X[:, 0]]  # noqa: E731
    plan = local.plan_simulation(randomizer.epsilon, beta=0.1)
    ratios = [LikelihoodRatio().extend(randomizer, values, inputs[0], int(w)) for w in reports]
    chances = acceptance_probabilities(ratios, oracle_of([1] * len(inputs)), plan)
    made = table[0] * chances * math.exp(randomizer.epsilon) * (1 + plan.phi)
    assert made == pytest.approx(table.mean(axis=0), rel=1e-9)


# Bad input ----------------------------------------------------------------------------------------


class Never:
    def query(self, g, tau):
        pytest.fail("the oracle was asked")


def changed(**attributes):
    randomizer = response(1.0)
    vars(randomizer).update(attributes)
    return randomizer


@each_case(
    "change",
    [
        {"randomizer": None},
        {"randomizer": changed(delta=1e-6)},
        {"randomizer": changed(delta=math.nan)},
        {"randomizer": changed(epsilon=0)},
        {"randomizer": changed(epsilon=math.inf)},
        {"randomizer": changed(sample=None)},
        {"values": None},
        {"oracle": None},
        {"beta": 0},
        {"beta": 1},
        {"applications": 0},
        {"applications": 2**26},
        {"random_state": -1},
        {"reference": "x"},
        {"reference": math.nan},
    ],
)
def test_bad_simulations_ask_nothing(change):
    call = {"randomizer": response(1.0), "values": held, "oracle": Never(), "beta": 0.1}
    with pytest.raises(ParameterError, match=next(iter(change))):
        local.simulate_local(**call | change)
    (name,) = change
    if name in ("randomizer", "values", "reference"):
        entry = SimulatedEntry(Never(), beta=0.1)
        given = {key: value for key, value in (call | change).items() if key not in KEPT}
        with pytest.raises(ParameterError, match=name):
            entry.apply(**given)
    else:
        call = {"oracle": Never(), "beta": 0.1} | change
        with pytest.raises(ParameterError, match=name):
            SimulatedEntry(**call)


KEPT = {"oracle", "beta"}


@pytest.mark.parametrize("epsilon", [15.9, 17.0, 1e6])
def test_no_simulation_of_what_takes_for_ever(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        local.plan_simulation(epsilon, beta=0.1)
    if epsilon > 16:
        with pytest.raises(ParameterError, match="epsilon"):
            SimulatedEntry(Never(), beta=0.1).apply(changed(epsilon=epsilon), held)
