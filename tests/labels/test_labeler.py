"""Labels by votes: answers follow the table, end at the last bottom and are paid for once."""

import copy
import math
import pickle

import numpy as np
import pytest
from cases import each_case
from scipy import stats
from voters import TRUTH, Q, X, Y, by_votes, fitted, labeler

from hdp_fast import Budget
from hdp_fast.exceptions import BudgetExceeded, InsufficientSamples, ParameterError, ShapeError
from hdp_fast.reference.noise import gaussian_masses
from hdp_fast.reference.stability import gaussian_vote_law

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
linear_model = pytest.importorskip("sklearn.linear_model")


@pytest.mark.parametrize("table", ["hazard", "vote", "gaussian", "fewest"])
@pytest.mark.parametrize(
    "learner",
    [
        naive_bayes.GaussianNB(),
        linear_model.SGDClassifier(),
        lambda X, y: lambda Q: (Q[:, 0] > np.mean(X[:, 0])).astype(int),
    ],
    ids=["estimator", "seeded estimator", "function"],
)
def test_clear_questions_get_the_right_labels(table, learner):
    answers = fitted(learner, table=table).label(Q)
    assert answers.labels.tolist() == TRUTH
    assert not answers.is_bottom.any()
    assert answers.queries_left == 46
    assert answers.unstable_left == (5 if table == "hazard" else None)
    assert (answers.record.epsilon, answers.record.delta) == (20, 1e-3)


@pytest.mark.parametrize(
    ("classes", "bottom", "marker"),
    [
        ([1, 0], None, -1),
        ([False, True], None, -1),
        ([-1, 1], 0, 0),
        ([0.0, 2.0], None, math.nan),
        (["no", "yes"], None, ""),
        (["no", "yes"], "can't say", "can't say"),
    ],
)
def test_labels_are_of_any_type_and_bottom_is_none_of_them(classes, bottom, marker):
    ordered = sorted(classes)
    names = np.array(ordered)[Y]
    made = fitted(labels=names, classes=classes, bottom=bottom, queries=9)
    assert made.label(Q).labels.tolist() == [ordered[code] for code in TRUTH]
    tied = fitted(
        lambda X, y: lambda Q: np.array(ordered)[[int(X[0, 0] < 30)] * len(Q)],
        records=np.arange(60.0)[:, None],
        labels=names[:60],
        classes=classes,
        bottom=bottom,
    )
    (label,) = tied.label([[0.0]]).labels.tolist()
    assert label == marker or (label != label and marker != marker)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_fitted_labeler_is_never_copied(copied):
    copied(labeler())
    with pytest.raises(TypeError, match="can't be copied or pickled"):
        copied(fitted())


def test_answers_end_at_the_last_bottom_and_no_later_call_costs_anything():
    made = fitted(by_votes(30), records=np.arange(60.0)[:, None], labels=Y[:60], max_unstable=3)
    ties = np.zeros((10, 1))
    answers = made.label(ties, bottoms=2)
    assert answers.labels.tolist() == [-1, -1]
    assert (answers.unstable_left, answers.queries_left) == (1, 48)
    with pytest.raises(BudgetExceeded, match="49 queries, but 48 are left"):
        made.label(np.zeros((49, 1)))
    assert (made.unstable_left, made.queries_left) == (1, 48)
    assert made.label(ties).labels.tolist() == [-1]
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="has given its last bottom"):
            made.label(ties[:1])
        assert (made.unstable_left, made.queries_left) == (0, 47)


def test_more_queries_than_planned_are_refused():
    made = fitted(queries=4)
    made.label(Q)
    with pytest.raises(BudgetExceeded, match="1 queries, but 0 are left"):
        made.label(Q[:1])
    assert made.label(Q[:0]).labels.tolist() == []


@pytest.mark.parametrize(("table", "epsilon", "level"), [("hazard", 60, 11), ("vote", 2, 12)])
def test_answers_follow_the_table_at_the_level_of_the_votes(table, epsilon, level):
    """Every query has the votes 18 and 42: the answers are tosses of one coin of the table."""
    made = fitted(
        by_votes(42), table=table, epsilon=epsilon, delta=0.1, queries=4000, max_unstable=4000,
        records=np.arange(60.0)[:, None], labels=Y[:60],
    )  # fmt: skip
    p = float(made.plan_.table.probabilities[min(level, made.plan_.table.J)])
    assert 0.05 < p < 0.95
    yielded = np.count_nonzero(made.label(np.zeros((4000, 1))).labels != 1)
    assert stats.binomtest(yielded, 4000, p).pvalue > 1e-6


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_noisy_answers_follow_the_law_of_the_votes(threshold):
    """Every query has the votes 24, 20 and 16: answers are draws of one law."""
    made = fitted(
        lambda X, y: lambda Q: np.repeat([0, 1, 2], [24, 20, 16])[[int(X[0, 0])] * len(Q)],
        table="gaussian", threshold=threshold, epsilon=60, delta=0.1, queries=4000,
        records=np.arange(60.0)[:, None], labels=np.zeros(60, int), classes=[0, 1, 2],
    )  # fmt: skip
    table = made.plan_.table
    masses = gaussian_masses(table.sigma, 12 * math.ceil(table.sigma))
    law = gaussian_vote_law((24, 20, 16), table.gap, masses)
    answers = made.label(np.zeros((4000, 1)))
    assert (len(answers.labels), answers.unstable_left, answers.queries_left) == (4000, None, 0)
    for answer, p in law.items():
        count = int(np.count_nonzero(answers.labels == answer))
        assert stats.binomtest(count, 4000, max(float(p), 0.0)).pvalue > 1e-6
    assert answers.is_bottom.any() == (threshold > 0)


def test_any_number_of_bottoms_is_answered_with_noise():
    made = fitted(table="gaussian", threshold=1000)
    assert made.label(np.tile(Q, (12, 1))).is_bottom.all()
    assert (made.unstable_left, made.queries_left) == (None, 2)
    assert "2 queries left" in repr(made)
    assert "bottoms" not in repr(made)
    with pytest.raises(ParameterError, match="a GaussianVote answers with any number"):
        made.label(Q[:1], bottoms=1)
    assert "GNMax" in made.record_.source
    assert made.record_.mechanism == "labels.PrivateLabeler, GaussianVote, queries=50, k=60"


def test_a_budget_is_charged_once_by_fit_alone():
    budget = Budget(50, 0.01)
    made = fitted(budget=budget)
    made.label(Q)
    made.label(Q)
    assert budget.spent == (20, 1e-3)
    assert [entry.record for entry in budget.records] == [made.record_]
    with pytest.raises(InsufficientSamples, match="600 records, but 601 members"):
        fitted(budget=budget, members=601)
    with pytest.raises(ParameterError, match="neighbors = 'add_remove'"):
        fitted(budget=budget, ids=np.arange(600))
    with pytest.raises(BudgetExceeded):
        fitted(budget=Budget(19, 0.01))
    assert budget.spent == (20, 1e-3)
    people = Budget(20, 1e-3, neighbors="add_remove")
    assert fitted(budget=people, ids=np.arange(600)).record_.neighbors == "add_remove"
    assert people.spent == (20, 1e-3)
    for relation in ("add_remove_person", "replace_person"):
        people = Budget(20, 1e-3, neighbors=relation)
        assert fitted(budget=people, ids=np.arange(600)).record_.neighbors == relation
        with pytest.raises(ParameterError, match="neighbors = 'replace_one'"):
            fitted(budget=people)


@each_case(
    ("changed", "error", "rule"),
    [
        ({"classes": [0]}, ParameterError, "2 to 256 different labels"),
        ({"classes": [0, 0, 1]}, ParameterError, "2 to 256 different labels"),
        ({"classes": [0.0, math.nan]}, ParameterError, "2 to 256 different labels"),
        ({"classes": [0, None]}, ParameterError, "integers, real numbers or texts"),
        ({"classes": [[0, 1]]}, ShapeError, "one dimension"),
        ({"classes": [0, 2]}, ParameterError, "y holds something else"),
        ({"classes": ["0", "1"]}, ParameterError, "y holds something else"),
        ({"classes": [0, -1]}, ParameterError, "bottom = -1"),
        ({"bottom": 1}, ParameterError, "bottom = 1"),
        ({"bottom": "none"}, ParameterError, "bottom = 'none'"),
        ({"learner": 3}, ParameterError, "learner = 3"),
        ({"learner": naive_bayes.GaussianNB}, ParameterError, "learner = <class"),
        ({"members": 0}, ParameterError, "members = 0"),
        ({"members": 601}, InsufficientSamples, "601 members"),
        ({"table": "fast"}, ParameterError, "table = 'fast'"),
        ({"table": "vote", "classes": [0, 1, 2]}, ParameterError, "table = 'vote'"),
        ({"epsilon": 0}, ParameterError, "epsilon"),
        ({"delta": 1}, ParameterError, "delta"),
        ({"queries": 0}, ParameterError, "queries = 0, but it must be an integer from 1"),
        ({"max_unstable": 0}, ParameterError, "max_unstable = 0, but it must be an integer from 1"),
        ({"max_unstable": -1}, ParameterError, "max_unstable = -1"),
        ({"agreement": 0.5}, ParameterError, "agreement = 0.5"),
        ({"labels": Y[:-1]}, ShapeError, r"y has shape \(599,\)"),
        ({"records": 3.0}, ShapeError, "X has no dimension"),
        ({"ids": np.arange(599)}, ShapeError, "ids has shape"),
        ({"ids": X[:, 0]}, ParameterError, "ids has dtype float64"),
        ({"random_state": -1}, ParameterError, "random_state = -1"),
        ({"budget": 3}, ParameterError, "budget = 3"),
    ],
    ids=str,
)
def test_bad_input_is_refused_before_any_training(changed, error, rule):
    def never(X, y):
        raise SystemExit

    with pytest.raises(error, match=rule):
        fitted(**changed)


def test_bad_questions_are_refused_and_cost_nothing():
    made = fitted()
    with pytest.raises(ShapeError, match=r"Q has shape \(4, 1\), but it must be \(q, 2\)"):
        made.label(Q[:, :1])
    with pytest.raises(ParameterError, match="bottoms = 0"):
        made.label(Q, bottoms=0)
    with pytest.raises(ParameterError, match="a VoteTable answers with none"):
        fitted(table="vote").label(Q, bottoms=1)
    assert (made.queries_left, made.unstable_left) == (50, 5)
    with pytest.raises(ParameterError, match="fit must train them first"):
        labeler().label(Q)
    with pytest.raises(ParameterError, match="fit must train them first"):
        _ = labeler().queries_left


def test_plans_pick_the_fewer_members_and_show_the_papers():
    goal = {
        "epsilon": 1,
        "delta": 1e-6,
        "queries": 1000,
        "max_unstable": 50,
        "members": None,
        "beta": 0.05,
    }
    plan = labeler(table="fewest", **goal).plan()
    assert (plan.k, plan.k_paper) == (plan.k_vote, 95_317)
    assert plan.k < 1267
    assert labeler(**goal).plan().k == plan.k_hazard < 1612
    assert labeler(table="vote", **goal).plan().k == plan.k_vote
    noisy = labeler(table="gaussian", threshold=0.5, **goal).plan()
    assert noisy.k == noisy.k_gaussian < plan.k_gaussian
    assert (noisy.table.labels, noisy.table.threshold) == (2, 0.5)
    many = labeler(table="fewest", **goal | {"classes": [0, 1, 2]}).plan()
    assert (many.k, many.k_vote) == (plan.k_hazard, None)
    with pytest.raises(InsufficientSamples):
        fitted(**goal)


def test_votes_of_many_queries_are_taken_in_blocks(monkeypatch):
    made = fitted(random_state=4)
    monkeypatch.setattr("hdp_fast.labels.ensemble.MOST_COUNTS", 2 * 3)
    assert made.label(np.concatenate([Q, Q])).labels.tolist() == TRUTH * 2
