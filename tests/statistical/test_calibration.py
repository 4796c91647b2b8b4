"""Calibrations with coins of the operating system: the law of the answers, and what maps cost."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from frequencies import Case, misfits, power
from lengths import STAT as AT_LENGTH
from scripts import PAPERS, loaded

from hdp_fast import local
from hdp_fast.learners.scores import ScoredModel, save_loss, shift_at
from hdp_fast.local.estimation import advantage
from hdp_fast.transfer.calibration_map import CheckedMap, CostBound, bound_savings
from hdp_fast.transfer.calibration_plan import Questions

RUNS = 2_500
EPSILON = 1.5
# Scores and labels, in the order in which the agents are asked.
PEOPLE = (((-1.0,), 1), ((2.0,), 1), ((0.5,), 0), ((3.0,), 1), ((3.0,), 0), ((-2.0,), 0))
QUESTIONS = [(0.0, False, 2), (-math.inf, True, 1), (1.0, True, 3)]
SCRIPT = PAPERS / "calibration.py"

pytestmark = pytest.mark.usefixtures("one_thread")


def answers_of(questions=QUESTIONS):
    """True answers to each question, of the agents that it gets."""
    people, answers = iter(PEOPLE), []
    for threshold, labeled, size in questions:
        group = itertools.islice(people, size)
        answers.append([int(x[0] > threshold and (y or not labeled)) for x, y in group])
    return answers


def law_of(answers, epsilon=EPSILON):
    """The law of the numbers of ones, over all coins."""
    lie = 1 / (1 + math.exp(epsilon))
    laws = []
    for group in answers:
        law = Counter()
        for lies in itertools.product((0, 1), repeat=len(group)):
            ones = sum(bit ^ flip for bit, flip in zip(group, lies, strict=True))
            law[ones] += math.prod(lie if flip else 1 - lie for flip in lies)
        laws.append(law)
    return {
        ones: math.prod(law[k] for law, k in zip(laws, ones, strict=True))
        for ones in itertools.product(*laws)
    }


def count_once():
    X, y = (np.array(part) for part in zip(*PEOPLE, strict=True))
    agents = local.Agents(X, y, epsilon=EPSILON)
    model = ScoredModel.of(lambda X: np.asarray(X)[:, 0])
    counts = Questions.of(QUESTIONS).ask(model, agents, len(y), None)
    assert counts.sizes.tolist() == [size for *_, size in QUESTIONS]
    return tuple(counts.ones.tolist())


def test_the_counts_follow_the_enumerated_law():
    counts = Counter(count_once() for _ in range(RUNS))
    assert not misfits([Case(counts, law_of(answers_of()))])


@pytest.mark.parametrize(
    "twin",
    [
        law_of(answers_of(), EPSILON / 2),
        law_of(answers_of([(0.0, False, 2), (-math.inf, True, 1), (1.0, False, 3)])),
    ],
    ids=["half the epsilon", "no label in the last question"],
)
def test_so_many_runs_would_show_what_is_broken(twin):
    assert power([(twin, law_of(answers_of()))], RUNS) > 0.99


def hostile(rng):
    """A population that depends on nothing that the map saw, and a map of shifts up to 8."""
    scores = rng.normal(0, 5, int(rng.integers(1, 6)))
    shares, rates = rng.dirichlet(np.full(len(scores), 0.5)), rng.random(len(scores))
    knots = np.unique(rng.normal(0, 4, int(rng.integers(1, 5))))
    shifts = np.clip(rng.normal(0, 10 ** rng.uniform(-2, 1), len(knots)), -8, 8)
    return scores, shares, rates, knots, shifts


def test_no_population_and_map_are_behind_more_often_than_promised():
    """For each the probability is exact, over all numbers of ones; agents are drawn from it."""
    stats = pytest.importorskip("scipy.stats")
    rng, beta, tolerance, chances = np.random.default_rng(2), 0.05, 0.01, []
    for _ in range(4_000 if AT_LENGTH else 150):
        scores, shares, rates, knots, shifts = hostile(rng)
        epsilon, size = float(rng.choice([0.5, 1, 2, 4])), int(10 ** rng.uniform(1.7, 3))
        edge, (high, low) = advantage(epsilon), bound_savings(knots, shifts)
        high *= rng.choice([1.0, 0.35])
        checked = CheckedMap(knots, shifts, low, high, 1.0, np.zeros(21), 1.0)
        shift = shift_at(scores, knots, shifts)

        saved = [save_loss(scores, shift, label) for label in (0.0, 1.0)]
        people = np.stack([shares * (1 - rates), shares * rates])
        answers = (people * (np.clip(saved, low, high) - low) / (high - low)).sum()
        # The step grows with the number of ones: the result is behind from one of them on.
        few, many = -1, size + 1
        while many - few > 1:
            ones = (few + many) // 2
            step = float(
                CostBound(tolerance, beta).allow(checked.judge(ones, size, size, edge, beta).high)
            )
            moved = [save_loss(scores, step * shift, label) for label in (0.0, 1.0)]
            lost = -(people * moved).sum()
            few, many = (few, ones) if lost > tolerance + 1e-12 else (ones, many)
        coin = (1 - edge) / 2 + edge * answers
        chances.append(float(stats.binom.sf(many - 1, size, coin)))
    assert max(chances) <= beta
    # It is no idle promise: some come near it.
    assert max(chances) > 0.2 * beta


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")
@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_hardly_any_map_costs_a_hundredth_of_log_loss(method):
    pytest.importorskip("sklearn")
    with loaded(SCRIPT) as script:
        families = list(script.FAMILIES)
        rows = script.simulate_all(700 if AT_LENGTH else 14, method, 100, families)
    assert [row["family"] for row in rows] == families
    assert max(row["worst"] for row in rows) < 0.03
    assert sum(row["above limit"] for row in rows) <= 0.02 * sum(row["fits"] for row in rows)
    if AT_LENGTH:
        # Without the check the same maps would.
        assert sum(row["unguarded above limit"] for row in rows) > 30
        assert all(row["mean gain"] > 0 for row in rows)
