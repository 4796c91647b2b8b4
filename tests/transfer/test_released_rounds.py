"""Handing the last weights on: the same weights for the same records, and privacy for others."""

import itertools
import math

import numpy as np
import pytest
from whole_runs import RECORDS, Tiny, divergences

from hdp_fast import learners
from hdp_fast.budget import Budget
from hdp_fast.data import Chunks
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError
from hdp_fast.local import Agents
from hdp_fast.transfer import ReleasedRounds, SubsampleTestReweigh
from hdp_fast.transfer.released_rounds import compute_weights
from hdp_fast.transfer.run_records import validate_records

pytestmark = pytest.mark.filterwarnings("ignore")

LEARNER = learners.ExponentialLearner(learners.Conjunctions(6, 2), epsilon=1.0)
GOAL = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "kappa": 0.2, "eta": 0.5, "rounds": 4}
GOAL |= {"schedule": "final", "output": "majority"}


def people(seed, n=20_000):
    X = np.random.default_rng(seed).integers(0, 2, (n, 6), dtype=np.uint8)
    return X, X[:, 1] & (X[:, 2] | X[:, 3])


def fit(seed=0, start=None, random_state=5, **change):
    X, y = people(seed)
    T, t = people(9, 8_000)
    model = SubsampleTestReweigh(LEARNER, **{**GOAL, **change})
    return model.fit(X, y, Agents(T, t, epsilon=2.0), start=start, random_state=random_state)


def test_hand_over_gives_the_same_records_the_same_weights():
    first = fit()
    handed = ReleasedRounds.from_json(first.hand_over().to_json())
    assert handed == first.hand_over()
    assert (len(handed.hypotheses), set(handed.etas)) == (4, {0.5})
    made = compute_weights(handed, validate_records(*people(0), LEARNER), 0.2)
    assert np.array_equal(made.probabilities(), first._weights.probabilities())
    # So that a second run on them is the same, whichever way it starts.
    ways = [fit(start=start, random_state=6, eta=1.0) for start in (first, handed)]
    assert ways[0].result_.hypothesis == ways[1].result_.hypothesis
    chains = [way.hand_over() for way in ways]
    assert chains[0] == chains[1]
    assert chains[0].hypotheses[:4] == handed.hypotheses
    assert chains[0].etas == (0.5,) * 4 + (1.0,) * 4


def test_hand_over_makes_weights_of_other_records_and_of_parts():
    handed = fit().hand_over()
    X, y = people(1, 5_000)
    wrong = np.array([learners.predictor(each)(X) != y for each in handed.hypotheses])
    w = np.exp(-0.5 * (~wrong).sum(axis=0))
    made = compute_weights(handed, validate_records(X, y, LEARNER), 0.01).probabilities()
    assert made == pytest.approx(w / w.sum(), rel=1e-3)
    parts = Chunks([(X[:1_000], y[:1_000]), (X[1_000:], y[1_000:])])
    apart = compute_weights(handed, validate_records(parts, None, LEARNER), 0.01)
    assert np.array_equal(apart.probabilities(), made)
    budget, (T, t) = Budget(1.0, 1e-6), people(9, 8_000)
    second = SubsampleTestReweigh(LEARNER, **GOAL)
    second.fit(*people(1), Agents(T, t, epsilon=2.0), start=handed, budget=budget)
    assert budget.spent == (1.0, 1e-6)
    assert len(second.hand_over().hypotheses) == 8


def test_hand_over_leaves_out_the_hypothesis_that_was_accepted():
    model = fit(schedule="every", output="tested", alpha=0.16)
    assert model.result_.stopped in ("accepted", "threshold")
    assert len(model.hand_over().hypotheses) == model.result_.rounds - 1


TINY = Tiny(3, 0.5, 2.0, 1.0, rounds=2)
BEFORE = (0, 1, 1)


def handed_draws(tiny, records, path):
    """The law of a draw by released rounds, of an earlier run and of this one."""
    X, y = np.array(records, np.uint8).T
    named = tiny.learner().hypotheses
    rounds = [named.hypothesis(h) for h in (*BEFORE, *path)]
    start = ReleasedRounds(rounds, [tiny.eta] * len(rounds))
    run_records = validate_records(X[:, None], y, tiny.learner())
    return compute_weights(start, run_records, tiny.kappa).probabilities()


def test_no_neighbors_tell_more_of_handed_weights_than_the_second_run_promises():
    epsilons = (0.0, 0.1, 0.5, 1.0)
    promised = np.array([TINY.promise(epsilon) for epsilon in epsilons])
    found = np.array(divergences(TINY, epsilons, handed_draws))
    assert (found <= promised + 1e-12).all()
    assert (found / promised).max() > 0.5, "the test should be able to fail"
    # Half of the rate that it counts on would not be enough.
    few = np.array([TINY.promise(epsilon, rate=TINY.rate / 2) for epsilon in epsilons])
    assert (found > 1.02 * few).any()


def test_handed_weights_are_a_function_of_the_record_alone():
    X = np.array([x for x, _ in RECORDS], np.uint8)[:, None]
    y = np.array([label for _, label in RECORDS], np.uint8)
    alone = handed_draws(Tiny(4, 0.25, 2.0, 1.0), RECORDS, ())
    for order in itertools.permutations(range(4)):
        some = handed_draws(Tiny(4, 0.25, 2.0, 1.0), [RECORDS[i] for i in order], ())
        assert some == pytest.approx(alone[list(order)], abs=1e-12)
    assert len(X) == len(y) == 4


def test_no_value_of_a_record_is_told_by_an_error_about_handed_rounds():
    learner = learners.PrivateSGD(loss="logistic", epsilon=1.0, steps=3, batch_size=9)
    X, y = people(0, 400)
    bits = X.astype(float)
    number = bits.copy()
    number[17, 2] = 0.5
    conjunction = LEARNER.hypotheses.hypothesis(40)
    line = {"kind": "linear", "weights": [1.0] * 6, "bias": -2.0}
    for rounds in (conjunction, {"kind": "vote", "hypotheses": [conjunction, line]}, line):
        start = ReleasedRounds([rounds], [1.0])
        made = [
            compute_weights(start, validate_records(rows, y, learner), 0.01).probabilities()
            for rows in (bits, number)
        ]
        # Where it takes no such number it is wrong about the record, which then weighs most.
        assert rounds is line or made[1][17] == made[1].max()
        assert np.delete(made[1], 17) == pytest.approx(np.delete(made[0], 17), rel=0.02)


def test_hand_over_is_refused_where_hypotheses_are_not_released():
    with pytest.raises(HdpFastError, match="call fit"):
        SubsampleTestReweigh(LEARNER, **GOAL).hand_over()
    stumps = learners.ExponentialLearner(learners.Stumps(6), epsilon=1.0)
    open_ = SubsampleTestReweigh(
        stumps, **{**GOAL, "epsilon": math.inf, "delta": None, "draws": 99}
    )
    T, t = people(9, 8_000)
    open_.fit(*people(0), Agents(T, t, epsilon=2.0))
    with pytest.raises(ParameterError, match="nothing protects"):
        open_.hand_over()
    following = SubsampleTestReweigh(
        stumps, **{**GOAL, "epsilon": math.inf, "delta": None, "draws": 9}
    )
    following.fit(*people(0), Agents(T, t, epsilon=2.0), start=open_)
    with pytest.raises(ParameterError, match="nothing protects"):
        following.hand_over()


def test_a_run_of_hypotheses_that_nobody_else_reads_ends_and_hands_nothing_over():
    class Opaque(learners.ExponentialLearner):
        def learn_indices(self, *arguments, **more):
            made = super().learn_indices(*arguments, **more)
            object.__setattr__(made, "hypothesis", {"kind": "of my own"})
            return made

    X, y = people(0)
    T, t = people(9, 8_000)
    opaque = Opaque(learners.Conjunctions(6, 2), epsilon=1.0)
    settings = {**GOAL, "output": "smallest"}
    model = SubsampleTestReweigh(opaque, **settings).fit(X, y, Agents(T, t, epsilon=2.0))
    assert model.result_.rounds == 4
    with pytest.raises(ParameterError, match="no description that others read"):
        model.hand_over()


@pytest.mark.parametrize(
    ("hypotheses", "etas", "match"),
    [
        ([{"kind": "nothing"}], [1.0], "kind|hypothesis"),
        ([], [1.0], "etas has length 1"),
        ([LEARNER.hypotheses.hypothesis(3)], [5.0], "etas = 5"),
        ([LEARNER.hypotheses.hypothesis(3)], ["x"], "etas = 'x'"),
        ("text", [1.0], "hypotheses"),
        ([{"kind": "softmax", "weights": [[1.0], [0.0]]}], [1.0], "hypothes"),
    ],
)
def test_released_rounds_are_checked(hypotheses, etas, match):
    with pytest.raises(ParameterError, match=match):
        ReleasedRounds(hypotheses, etas)


def test_rounds_of_other_features_are_refused_before_anything_is_spent():
    wide = learners.Conjunctions(60, 1)
    last = next(h for h in map(wide.hypothesis, range(len(wide))) if h["features"] == [59])
    budget, (T, t) = Budget(1.0, 1e-6), people(9, 8_000)
    agents = Agents(T, t, epsilon=2.0)
    with pytest.raises((ShapeError, ParameterError), match="feature"):
        SubsampleTestReweigh(LEARNER, **GOAL).fit(
            *people(0), agents, start=ReleasedRounds([last], [1.0]), budget=budget
        )
    assert budget.spent == (0, 0)
    assert agents.remaining == 8_000
    with pytest.raises(ParameterError, match="start"):
        SubsampleTestReweigh(LEARNER, **GOAL).fit(*people(0), agents, start="first")
