"""How much a unanimous vote is worth, and that all answers are one label: said, from public
numbers."""

import numpy as np
import pytest
from scipy import stats
from voters import Q, X, Y, fitted, labeler, soft

from hdp_fast import Budget
from hdp_fast.exceptions import BudgetExceeded, ParameterError, UtilityWarning
from hdp_fast.reference.noise import gaussian_masses
from hdp_fast.reference.stability import gaussian_vote_law
from hdp_fast.stability import GaussianVote, HazardTable, VotePlan, VoteTable

GOAL = {"epsilon": 1, "delta": 1e-6, "beta": 0.05}


def plan_of(table):
    return VotePlan(table=table, k=99, k_hazard=99, k_vote=None, k_paper=999)


def test_a_plan_says_how_often_a_vote_is_flipped():
    vote, hazard = VoteTable.design(400, **GOAL), HazardTable.design(20, 400, **GOAL)
    one = plan_of(vote)
    assert [one.flip(k) for k in (1, 5, 100)] == [
        float(vote.probabilities[level]) for level in (0, 2, 50)
    ]
    assert one.flip() == one.flip(99) == float(vote.probabilities[49])
    assert one.flip(100, agreement=0.75) == float(vote.probabilities[25])
    assert one.flip(10**6) == float(vote.probabilities[-1])
    other = plan_of(hazard)
    assert other.flip(1) == 1
    assert other.flip(100) == float(hazard.probabilities[49])
    assert other.flip(101) == float(hazard.probabilities[50])
    assert other.flip(100, agreement=0.51) == float(hazard.probabilities[0])
    for arguments in ({"members": 0}, {"agreement": 0.5}, {"agreement": 1.1}):
        with pytest.raises(ParameterError, match=next(iter(arguments))):
            one.flip(**arguments)


@pytest.mark.parametrize(("labels", "threshold"), [(2, 0.0), (3, 1.0), (3, 0.0)])
def test_flips_by_noise_are_those_of_the_exact_law(labels, threshold):
    table = GaussianVote.design(
        9, labels=labels, threshold=threshold, epsilon=4, delta=0.1, beta=0.1
    )
    masses = gaussian_masses(table.sigma, int(12 * table.sigma) + 1)
    for k, count in ((4, 4), (30, 30), (30, 22)):
        votes = (k - count, count, *[0] * (labels - 2))
        right = float(gaussian_vote_law(votes, table.gap, masses)[1])
        assert plan_of(table).flip(k, agreement=count / k) == pytest.approx(1 - right, abs=0.02)


def test_answers_to_unanimous_votes_are_flipped_as_often_as_said():
    goal = {"epsilon": 1, "table": "vote", "queries": 2000, "members": 60, "preflight": False}
    made = fitted(lambda X, y: lambda Q: np.ones(len(Q), int), random_state=3, **goal)
    answers = made.label(np.zeros((2000, 2)))
    flips = int((answers.labels == 0).sum())
    assert 0.1 < answers.flip_probability < 0.5
    assert stats.binomtest(flips, 2000, answers.flip_probability).pvalue > 1e-3
    assert answers.flip_probability == made.plan_.flip(60)
    assert answers.shares == {0: flips / 2000, 1: (2000 - flips) / 2000}


@pytest.mark.parametrize("make", [labeler, soft])
def test_too_few_members_are_told_before_anything_is_spent(make):
    budget = Budget(0.5, 1e-3)
    made = make(epsilon=1, members=20)
    told = pytest.warns(UtilityWarning, match="members = 20, but even a unanimous vote of them is")
    with told, pytest.raises(BudgetExceeded):
        made.fit(X, Y, budget=budget)
    assert budget.spent == (0, 0)


def test_answers_of_one_label_are_told(recwarn):
    made = fitted(random_state=1)
    made.label(Q)
    made.label(Q[:1])
    assert not [one for one in recwarn if issubclass(one.category, UtilityWarning)]
    with pytest.warns(UtilityWarning, match="all 8 answers are one label, 1, as they are where"):
        answers = made.label(np.tile(Q[:1], (8, 1)))
    assert answers.shares == {1: 1.0}
    assert repr(answers) == "LabelResult(8 answered, 0 bottoms, shares {1: 1.000}, 37 queries left)"
