"""Oracles and simulations against their exact laws, with coins of the operating system."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from frequencies import FALSE_ALARM, Case, misfits
from scipy.stats import binom

from hdp_fast import local
from hdp_fast.local import Agents, CuratorOracle, ExactOracle, LocalSQOracle, SimulatedEntry

STEPS = 1 << 30


def held(X, y):
    return X[:, 0]


def oracle_of(weights):
    count = len(weights)
    return ExactOracle(np.arange(count)[:, None], np.zeros(count, int), weights)


def table(randomizer, count):
    low, high = randomizer.report_range
    reports = np.arange(low, high + 1)
    return np.exp(randomizer.log_probability(reports, np.arange(count)[:, None]))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(
    "kind", [lambda e: local.BinaryResponse(e, (0, 1)), lambda e: local.KaryResponse(4, e)]
)
def test_simulated_reports_follow_the_law_of_true_ones(kind, epsilon):
    randomizer, weights = kind(epsilon), np.array([0.1, 0.9])
    found = local.simulate_local(
        randomizer, held, oracle_of(weights), beta=0.5, applications=1 << 17
    )
    laws = table(randomizer, 2)
    law = dict(enumerate(weights @ laws))
    assert misfits([Case(Counter(found.reports.tolist()), law)]) == []
    # The candidates' own law is another, and would be seen.
    assert misfits([Case(Counter(found.reports.tolist()), dict(enumerate(laws[0])))])


def test_reports_about_one_entry_follow_their_joint_law():
    parts, weights = (
        [local.BinaryResponse(0.8, (0, 1)), local.KaryResponse(3, 1.0)],
        np.array([0.3, 0.7]),
    )
    oracle, counts = oracle_of(weights), Counter()
    for _ in range(6_000):
        entry = SimulatedEntry(oracle, beta=0.1, applications=2)
        counts[tuple(entry.apply(part, held) for part in parts)] += 1
    first, second = (table(part, 2) for part in parts)
    joint = np.einsum("i,ij,ik->jk", weights, first, second)
    apart = np.outer(weights @ first, weights @ second)
    outcomes = [*itertools.product(range(2), range(3))]
    assert misfits([Case(counts, {w: joint[w] for w in outcomes})]) == []
    # As if the reports were of two entries.
    assert misfits([Case(counts, {w: apart[w] for w in outcomes})])


def below(x, scale):
    """Probability that discrete Laplace noise is at most x < 0."""
    return math.exp(x / scale) / (1 + math.exp(-1 / scale))


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_curators_noise_is_discrete_laplace_on_its_grid(share):
    """share: epsilon of one query."""
    queries, records = 20_000, 256
    y = np.arange(records) % 2
    oracle = CuratorOracle(y[:, None], y, epsilon=share * queries, queries=queries, beta=0.1)
    answers = np.array([oracle.query(lambda X, y: y, 1.0) for _ in range(queries)])
    noise = answers * STEPS * records - STEPS * records // 2
    assert np.array_equal(noise, np.rint(noise))
    scale = STEPS / share
    edges = [-math.inf, *(round(scale * x) for x in (-3, -1.5, -0.7, -0.2)), -1]
    tails = [0.0, *(below(x, scale) for x in edges[1:])]
    half = dict(enumerate(np.diff(tails)))
    law = half | {-1 - cell: p for cell, p in half.items()} | {"0": 1 - 2 * tails[-1]}

    def cell(x):
        if x == 0:
            return "0"
        found = int(np.searchsorted(edges, -abs(x))) - 1
        return found if x < 0 else -1 - found

    counts = Counter(map(cell, noise))
    assert misfits([Case(counts, law)]) == []
    # A tenth more noise would be seen.
    assert misfits([Case(Counter(map(cell, noise * 1.1)), law)])


def runs_with_errors(tau, *, runs=400):
    """How many runs of adaptive queries had an answer further than tau from its mean."""
    rng, found = np.random.default_rng(), 0
    each = local.agents_per_query(tau=0.1, beta=0.2, queries=3, epsilon=1.0)
    for _ in range(runs):
        X = rng.random((3 * each, 1)) < 0.5
        oracle = LocalSQOracle(Agents(X, X[:, 0], epsilon=1.0), queries=3, beta=0.2)
        wrong, shift = False, 0
        for _ in range(3):
            answer = oracle.query(lambda X, y, shift=shift: X[:, 0] ^ shift, 0.1)
            wrong |= abs(answer - 0.5) > tau
            shift = int(answer > 0.5)
        found += wrong
    return found


def test_agents_keep_tau_but_for_beta():
    found = runs_with_errors(0.1)
    assert binom.sf(found - 1, 400, 0.2) > FALSE_ALARM
    # Half the tolerance would have wanted four times as many agents.
    assert binom.sf(runs_with_errors(0.05) - 1, 400, 0.2) < FALSE_ALARM
