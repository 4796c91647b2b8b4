"""Bars over members and their predictions."""

import re
import sys
import time
from typing import ClassVar

import numpy as np
import pytest
from voters import Q, X, Y, fitted, labeler

from hdp_fast import Budget
from hdp_fast.labels import PrivateLearner, SoftLabeler

naive_bayes = pytest.importorskip("sklearn.naive_bayes")


class Bar:
    """Notes what a bar is for and how far it has come."""

    made: ClassVar[list] = []

    def __init__(self, total, unit, **_looks):
        self.steps, self.total, self.unit = [], total, unit
        self.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def update(self, done=1):
        self.steps.append(done)


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr(pytest.importorskip("tqdm"), "tqdm", Bar)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("backend", ["sequential", "threading", "all at once", "no joblib"])
def test_progress_counts_members_and_what_they_said(bars, monkeypatch, backend):
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr("hdp_fast.labels.ensemble.MOST_COUNTS", 5)  # two queries of 2 cells
    if backend == "no joblib":
        monkeypatch.setitem(sys.modules, "joblib", None)
    if backend == "all at once":
        support = "joblib._parallel_backends.ThreadingBackend.supports_return_generator"
        monkeypatch.setattr(support, False)
    way = "sequential" if backend == "sequential" else "threading"
    with joblib.parallel_config(backend=way, n_jobs=2):
        made = labeler().fit(X, Y, progress=True)
        made.label(Q[:3], progress=True)
        soft = SoftLabeler(
            naive_bayes.GaussianNB(), epsilon=20, delta=1e-3, queries=9, max_unstable=5
        )
        soft.members = 61
        soft.fit(X, Y, progress=True).score(Q, 2, progress=True)
        made.label(Q)
    counted = [(bar.unit, bar.total, bar.steps) for bar in bars]
    assert counted == [
        ("member", 60, [1] * 60),
        ("vote", 180, [2] * 60 + [1] * 60),
        ("member", 61, [1] * 61),
        ("score", 244, [1] * 244),
    ]


def test_a_learner_shows_the_progress_of_its_labeler(bars):
    PrivateLearner(labeler(), naive_bayes.GaussianNB()).fit(X, Y, Q, progress=True)
    assert [(bar.unit, sum(bar.steps)) for bar in bars] == [("member", 60), ("vote", 240)]


def test_a_bar_shows_while_members_are_silent(capfd):
    pytest.importorskip("tqdm")

    def slow(X, y):
        print("private")
        time.sleep(0.005)
        return lambda Q: np.zeros(len(Q), int)

    labeler(slow).fit(X, Y, progress=True)
    shown = capfd.readouterr()
    counts = {int(count) for count in re.findall(r"(\d+)/60 ", shown.err)}
    assert counts & set(range(1, 60))
    assert "private" not in shown.out + shown.err


def test_progress_without_tqdm_is_refused_before_anything_is_spent(monkeypatch):
    made, budget = fitted(), Budget(50, 0.01)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    for run in (
        lambda: labeler().fit(X, Y, budget=budget, progress=True),
        lambda: made.label(Q, progress=True),
    ):
        with pytest.raises(ImportError, match=r"hdp-fast\[progress\]"):
            run()
    assert budget.spent == (0, 0)
    assert made.queries_left == 50
