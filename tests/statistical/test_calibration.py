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
from hdp_fast.transfer.calibration_questions import Questions

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
    counts = Questions.of(QUESTIONS).ask(lambda X: np.asarray(X)[:, 0], agents, len(y), None)
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


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")
@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_hardly_any_map_costs_a_hundredth_of_log_loss(method):
    pytest.importorskip("sklearn")
    with loaded(SCRIPT) as script:
        result = script.simulate_all(300 if AT_LENGTH else 8, method, 100)
    # Measured: none of 2,216 above the limit, and some 2 of 100,000 are expected.
    assert result["above limit"] == 0
    if AT_LENGTH:
        # Without the safeguards the same maps would.
        assert result["unguarded above limit"] > 10
        assert result["mean"] < 0.7 * result["mean unguarded"] < 0


def test_what_half_the_safety_would_cost(monkeypatch):
    """A fit that always goes all the way is caught: few agents, small epsilon, a model that is
    right."""
    from hdp_fast import transfer
    from hdp_fast.transfer import calibration

    rng = np.random.default_rng(1)
    X = rng.normal(0, 1.5, (400, 1))
    y = rng.random(400) < 1 / (1 + np.exp(-X[:, 0]))
    scores = rng.normal(0, 1.5, 20_000)
    rates = 1 / (1 + np.exp(-scores))

    def worst():
        losses = []
        for _ in range(6):
            agents = local.Agents(X, y, epsilon=0.5)
            odds = transfer.calibrate(lambda X: X[:, 0], agents).apply(scores)
            losses.append((np.logaddexp(0, odds) - rates * odds).mean())
        return max(losses) - (np.logaddexp(0, scores) - rates * scores).mean()

    assert worst() < 0.01
    monkeypatch.setattr(calibration, "choose_step", lambda *_, **__: 1.0)
    monkeypatch.setattr(calibration, "_AGAINST", math.inf)
    assert worst() > 0.01
