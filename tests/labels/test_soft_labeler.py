"""Scores by votes for bins."""

import math

import numpy as np
import pytest
from voters import Q, X, Y, loaded, soft

from hdp_fast import Budget
from hdp_fast.exceptions import BudgetExceeded, CheckpointError, ParameterError
from hdp_fast.labels import SoftLabeler


class Says:
    """A learner whose members have these scores in turn, by the number in the chunk."""

    def __init__(self, scores):
        self.scores = np.resize(scores, 60)

    def __call__(self, X, y):
        score = self.scores[int(X[0, 0])]
        return lambda Q: np.full(len(Q), score)


@pytest.mark.parametrize(
    ("scores", "answer", "bottoms", "queries"),
    [
        ([0.3], 0.375, 0, 1),
        ([0.26, 0.45], 0.375, 0, 1),
        ([1.0, 7.0], 0.875, 0, 1),
        ([0.24, 0.26], 0.25, 1, 2),
        ([0.05, 0.3, 0.55, 0.8], None, 2, 2),
        # Half bins on the margins can't win a second vote.
        ([0.0, 0.9999], None, 2, 2),
    ],
)
def test_scores_are_centres_of_bins_or_of_shifted_ones(scores, answer, bottoms, queries):
    made = soft(Says(scores)).fit(np.arange(60.0)[:, None], Y[:60])
    answers = made.score(np.zeros((1, 1)), 4)
    assert answers.is_bottom.tolist() == [answer is None]
    assert answer is None or answers.scores.tolist() == [answer]
    assert (answers.unstable_left, answers.queries_left) == (5 - bottoms, 100 - queries)
    assert (made.unstable_left, made.queries_left) == (5 - bottoms, 100 - queries)


def test_scores_of_estimators_end_at_the_last_bottom_and_persist(tmp_path):
    budget = Budget(20, 1e-3)
    made = soft().fit(X, Y, budget=budget)
    assert made.score(Q, 2).scores.tolist() == [0.75, 0.25, 0.75, 0.25]
    assert budget.spent == (20, 1e-3)
    made.save(tmp_path / "model")
    again = SoftLabeler.load(tmp_path / "model", trusted=True)
    assert again.score(Q[:1], 2).scores.tolist() == [0.75]
    assert again.queries_left == made.queries_left <= 95
    with pytest.raises(CheckpointError, match="it must be that of a PrivateLabeler"):
        loaded(tmp_path / "model")
    ended = soft(Says([0.05, 0.3, 0.55, 0.8])).fit(np.arange(60.0)[:, None], Y[:60])
    assert ended.score(np.zeros((9, 1)), 4, bottoms=2).is_bottom.tolist() == [True]
    assert ended.score(np.zeros((9, 1)), 4).is_bottom.tolist() == [True, True]
    with pytest.raises(BudgetExceeded, match="has given its last bottom"):
        ended.score(np.zeros((1, 1)), 4)


def fails(X, y):
    print("private")
    raise RuntimeError


def test_scorers_fail_in_silence_with_a_score_of_0(capfd):
    made = soft(fails, diagnose=True).fit(X, Y)
    assert made.score(Q, 4).scores.tolist() == [0.125] * 4
    assert len(made.diagnosis_) == 60
    undefined = soft(lambda X, y: lambda Q: np.full(len(Q), np.nan)).fit(X, Y)
    assert undefined.score(Q, 4).scores.tolist() == [0.125] * 4
    assert capfd.readouterr() == ("", "")


def test_plans_of_scores_ask_for_twice_the_queries():
    goal = {"epsilon": 1, "delta": 1e-6, "queries": 100, "max_unstable": 10, "beta": 0.05}
    plan = soft(**goal | {"members": None}).plan()
    assert plan.table.queries == 200
    assert plan.k == plan.k_hazard < 1000
    spread = math.sqrt(2 * 10 * math.log(2e6))
    assert plan.k_paper == round(136 * math.log(8 * 100 * 10 / 1e-6) * spread)
    made = soft().fit(X, Y)
    for bad in (1, 0, 70_000):
        with pytest.raises(ParameterError, match=f"bins = {bad}"):
            made.score(Q, bad)
