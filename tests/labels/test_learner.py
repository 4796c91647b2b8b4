"""A model trained on private answers."""

import numpy as np
import pytest
from cases import each_case
from scipy import stats
from voters import Seen, X, Y, labeler

from hdp_fast import Budget
from hdp_fast.exceptions import BudgetExceeded, InsufficientSamples, ParameterError, ShapeError
from hdp_fast.labels import PrivateLearner

linear_model = pytest.importorskip("sklearn.linear_model")


class Final:
    """Learns by heart."""

    def __call__(self, X, y):
        self.X, self.y = np.asarray(X), np.asarray(y)
        return lambda Q: np.full(len(Q), y[0])


TIES = {"records": np.arange(60.0)[:, None], "labels": Y[:60], "members": 60}


def names_by_votes(X, y):
    return lambda Q: np.array(["a", "b"])[[int(X[0, 0] < 30)] * len(Q)]


def test_a_learner_learns_from_answers_and_predicts_without_end():
    budget = Budget(20, 1e-3)
    learner = PrivateLearner(labeler(), linear_model.LogisticRegression())
    learner.fit(X, Y, X[:50], budget=budget)
    points = np.random.default_rng(7).normal(size=(5000, 2))
    assert np.mean(learner.predict(points) == (points[:, 0] > 0)) > 0.85
    assert budget.spent == (20, 1e-3)
    assert learner.used_ == len(learner.labels_.labels)
    assert learner.labels_.record == budget.records[0].record
    assert learner.record_.mechanism.startswith("labels.PrivateLearner, labels.PrivateLabeler")
    assert "50 points" in repr(learner) or learner.used_ < 50
    assert learner.labeler.__dict__ == labeler(learner.labeler.learner).__dict__


@pytest.mark.parametrize("bottoms", ["random", "drop"])
def test_a_bottom_becomes_a_uniformly_random_label_or_nothing(bottoms):
    final = Final()
    made = labeler(names_by_votes, classes=["a", "b", "c"], max_unstable=3000, queries=3000)
    names = np.array(["a", "b"])[Y[:60]]
    learner = PrivateLearner(made, final, bottoms=bottoms)
    points = np.arange(3000.0)[:, None]
    if bottoms == "drop":
        with pytest.raises(InsufficientSamples, match="0 points have labels"):
            learner.fit(TIES["records"], names, points)
        assert learner.labels_.is_bottom.sum() == 3000
        return
    learner.fit(TIES["records"], names, points)
    counts = np.unique(final.y, return_counts=True)
    assert counts[0].tolist() == ["a", "b", "c"]
    assert stats.chisquare(counts[1]).pvalue > 1e-6
    assert final.X.tolist() == points.tolist()


def test_points_after_the_last_bottom_and_dropped_ones_are_left_out():
    def learner(X, y):
        return lambda Q: np.where(Q[:, 0] > 5, X[0, 0] < 30, 1).astype(int)

    final, points = Final(), np.arange(20.0)[:, None]
    made = PrivateLearner(labeler(learner, max_unstable=2), final, bottoms="drop")
    made.fit(TIES["records"], TIES["labels"], points)
    assert made.labels_.labels.tolist() == [1] * 6 + [-1] * 2
    assert (final.X[:, 0].tolist(), final.y.tolist(), made.used_) == (list(range(6)), [1] * 6, 6)


def test_label_privacy_shows_features_and_never_reads_the_labels_of_what_it_shows():
    seen, final = [], []
    for other in (False, True):
        labels, public = Y.copy(), np.arange(50) * 12
        labels[public] ^= other
        seen.append(Seen())
        final.append(Final())
        made = PrivateLearner(labeler(seen[-1]), final[-1], private="labels")
        made.fit(X, labels, random_state=1, preflight=False)
        assert "of one record's label alone" in made.record_.mechanism
        assert final[-1].X.tolist() == X[public].tolist()
    assert final[0].y.tolist() == final[1].y.tolist()
    assert seen[0].chunks == seen[1].chunks
    trained = [row for rows, _ in seen[0].chunks for row in rows]
    assert sorted(trained + X[public].tolist()) == sorted(X.tolist())


@each_case(
    ("arguments", "how", "error", "rule"),
    [
        ({"labeler": 3}, {}, ParameterError, "labeler = 3"),
        ({"final": 3}, {}, ParameterError, "final = 3"),
        ({"bottoms": "keep"}, {}, ParameterError, "bottoms = 'keep'"),
        ({"private": "all"}, {}, ParameterError, "private = 'all'"),
        ({}, {"public": None}, ParameterError, "public = None"),
        ({}, {"public": X[:0]}, InsufficientSamples, "public has 0 points"),
        ({}, {"public": X[:51]}, BudgetExceeded, "public has 51 points"),
        ({}, {"public": X[:5, :1]}, ShapeError, r"public has shape \(5, 1\)"),
        ({}, {"y": Y[:5]}, ShapeError, "y has shape"),
        ({"private": "labels"}, {}, ParameterError, "public is given"),
        ({"private": "labels"}, {"public": None}, ParameterError, "budget is given"),
        ({"private": "labels"}, {"public": None, "budget": None, "ids": Y}, ParameterError, "ids"),
        (
            {"private": "labels"},
            {"public": None, "budget": None, "X": X[:50], "y": Y[:50]},
            InsufficientSamples,
            "50 become public",
        ),
    ],
    ids=str,
)
def test_a_learner_refuses_before_any_budget_is_spent(arguments, how, error, rule):
    budget = Budget(20, 1e-3)
    made = PrivateLearner(**{"labeler": labeler(), "final": Final()} | arguments)
    with pytest.raises(error, match=rule):
        made.fit(**{"X": X, "y": Y, "public": X[:5], "budget": budget} | how)
    assert budget.spent == (0, 0)
    with pytest.raises(ParameterError, match="fit must make it first"):
        made.predict(X)
