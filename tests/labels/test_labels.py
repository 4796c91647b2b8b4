"""Labelers: chunks that one record changes, members that stay silent, answers that are paid for."""

import contextlib
import copy
import dataclasses
import functools
import hashlib
import logging
import math
import os
import pickle
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from processes import exit_code, forked, forking
from scipy import stats
from scipy.sparse import coo_matrix

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.exceptions import (
    BudgetExceeded,
    CheckpointError,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from hdp_fast.labels import (
    LabelResult,
    PrivateLabeler,
    PrivateLearner,
    SoftLabeler,
    pac_sample_size,
    plan_answers,
    plan_learning,
    sgd_stability,
    soft_bins,
    unstable_queries,
)
from hdp_fast.labels.ensemble import Ensemble
from hdp_fast.reference.noise import gaussian_masses
from hdp_fast.reference.stability import gaussian_vote_law

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
linear_model = pytest.importorskip("sklearn.linear_model")

COINS = np.random.default_rng(6)
X = COINS.normal(size=(600, 2))
Y = (X[:, 0] > 0).astype(int)
THIRD = X[3, 0]
Q = np.array([[3.0, 0.0], [-3.0, 0.0], [2.5, 1.0], [-2.5, 1.0]])
TRUTH = [1, 0, 1, 0]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def labeler(learner=None, **changed):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 50, "unstable": 5, "classes": [0, 1]}
    # A beta that no test sees a failure of.
    goal |= {"members": 60, "table": "hazard", "beta": 1e-9} | changed
    return PrivateLabeler(learner or naive_bayes.GaussianNB(), **goal)


def fitted(learner=None, records=X, labels=Y, ids=None, budget=None, random_state=None, **changed):
    made = labeler(learner, **changed)
    return made.fit(records, labels, ids=ids, budget=budget, random_state=random_state)


class Seen:
    """A learner that writes down the chunks and seeds it is given."""

    def __init__(self):
        self.chunks, self.seeds = [], []

    def __deepcopy__(self, memo):
        return self

    def __call__(self, X, y, random_state):
        self.chunks.append((X.tolist(), y.tolist()))
        self.seeds.append(random_state)
        return lambda Q: np.zeros(len(Q), int)


def by_votes(ones):
    """A learner of chunks with one number each: those with small ones vote for 1."""
    return lambda X, y: lambda Q: np.full(len(Q), int(X[0, 0] < ones))


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
    found = fitted(learner, table=table).label(Q)
    assert found.labels.tolist() == TRUTH
    assert not found.is_bottom.any()
    assert found.queries_left == 46
    assert found.unstable_left == (5 if table == "hazard" else None)
    assert (found.record.epsilon, found.record.delta) == (20, 1e-3)


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
    (said,) = tied.label([[0.0]]).labels.tolist()
    assert said == marker or (said != said and marker != marker)


def test_replacing_a_record_changes_one_chunk_and_no_other_seed():
    one, two, other = Seen(), Seen(), X.copy()
    other[77] = 9.0
    fitted(one, random_state=1)
    fitted(two, records=other, random_state=1)
    assert [i for i in range(60) if one.chunks[i] != two.chunks[i]] == [17]
    assert one.seeds == two.seeds
    assert len(set(one.seeds)) == 60
    assert sorted(row for rows, _ in one.chunks for row in rows) == sorted(X.tolist())


@pytest.mark.parametrize("names", [np.arange(600), np.array([f"é{i}" for i in range(600)])])
def test_inserting_all_records_of_an_id_changes_one_chunk(names):
    places = [0, 300, 300]
    one, two = Seen(), Seen()
    fitted(one, ids=names, random_state=1)
    more = (np.insert(X, places, 9.0, axis=0), np.insert(Y, places, 1))
    fitted(two, *more, ids=np.insert(names, places, -5), random_state=1)
    changed = [i for i in range(60) if one.chunks[i] != two.chunks[i]]
    assert len(changed) == 1
    assert len(two.chunks[changed[0]][0]) == len(one.chunks[changed[0]][0]) + 3
    assert one.seeds == two.seeds
    sizes = [len(rows) for rows, _ in one.chunks]
    assert stats.chisquare(sizes).pvalue > 1e-6


def test_chunks_of_two_keys_differ():
    one, two = Seen(), Seen()
    fitted(one, ids=np.arange(600))
    fitted(two, ids=np.arange(600))
    assert one.chunks != two.chunks


@pytest.mark.parametrize("draws", [random.random, np.random.random], ids=["random", "numpy"])
def test_a_chunk_does_not_move_the_generators_of_others(draws):
    drawn = {}

    def learner(X, y, extra):
        drawn.setdefault(extra, []).append(draws())
        for _ in range(extra if X[0, 0] == THIRD else 0):
            draws()
        return lambda Q: np.zeros(len(Q), int)

    before = (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    for extra in (0, 7):
        fitted(lambda X, y, extra=extra: learner(X, y, extra), random_state=5)
    assert drawn[0] == drawn[7]
    assert len(set(drawn[0])) == 60
    assert before == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


class Torch:
    """The part of torch that seeds and restores."""

    def __init__(self):
        self.state, self.seeds, self.fresh = "before", [], 0

    def get_rng_state(self):
        return self.state

    def set_rng_state(self, state):
        self.state = state

    def manual_seed(self, seed):
        self.seeds.append(seed)
        self.state = seed

    def seed(self):
        self.fresh += 1
        self.state = "fresh"


@pytest.mark.parametrize("loaded_before", [True, False])
def test_torch_is_seeded_for_each_member_and_put_back(monkeypatch, loaded_before):
    torch, seen = Torch(), []
    monkeypatch.setitem(sys.modules, "torch", torch)
    if not loaded_before:
        monkeypatch.delitem(sys.modules, "torch")

    def learner(X, y):
        sys.modules["torch"] = torch
        seen.append(torch.state)
        torch.state = X[0, 0]
        return lambda Q: np.zeros(len(Q), int)

    fitted(learner)
    first = 0 if loaded_before else 1
    assert seen[first:] == torch.seeds
    assert len(set(torch.seeds)) == 60 - first
    # Loaded by a member, it ends with coins that no member has moved.
    assert (torch.state, torch.fresh) == (("before", 0) if loaded_before else ("fresh", 1))


def loud(X, y):
    """Fails in half of the chunks, in another way in each, and talks in all of them."""
    print("private")
    print("private", file=sys.stderr)
    warnings.warn("private", stacklevel=1)
    logging.getLogger("somebody").error("private")
    way = int(abs(X[0, 0]) * 1e6) % 10
    if way == 0:
        raise RuntimeError("private")
    if way == 1:
        raise SystemExit(3)

    def predict(Q):
        warnings.warn("private", stacklevel=1)
        if way == 2:
            raise ValueError("private")
        said = {3: np.full(len(Q), 7), 4: np.ones(len(Q) + 1), 5: "x", 6: np.full(len(Q), np.nan)}
        return said.get(way, np.ones(len(Q), int))

    return predict


def test_members_fail_in_silence_and_vote_for_the_smallest_label(capfd, caplog, recwarn):
    # Of 60 members some 36 fail or leave the label set: the smallest label wins or is bottom.
    votes = sum(int(abs(X[i, 0]) * 1e6) % 10 > 6 for i in range(60))
    found = fitted(loud, epsilon=100).label(Q)
    assert votes < 25
    assert found.labels.tolist() == [0, 0, 0, 0]
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not recwarn.list
    logging.getLogger("somebody").error("heard")
    assert [record.message for record in caplog.records] == ["heard"]


def test_what_refuses_every_chunk_answers_with_the_smallest_label():
    def refuse(X, y):
        raise KeyError

    assert fitted(refuse, classes=[5, 3], labels=Y * 2 + 3).label(Q).labels.tolist() == [3] * 4
    # Nine of ten chunks are empty, and nobody is told.
    few = fitted(records=X[:6], labels=Y[:6], ids=np.arange(6))
    assert few.label(Q).labels.tolist() == [0] * 4


def test_a_chunk_of_one_class_votes_for_it():
    ones = fitted(linear_model.LogisticRegression(), labels=np.ones(600, int))
    assert ones.label(Q).labels.tolist() == [1] * 4


def test_diagnosis_names_chunks_and_protects_nothing():
    made = fitted(loud, diagnose=True)
    ways = [int(abs(X[i, 0]) * 1e6) % 10 for i in range(60)]
    assert {c for c, text in made.diagnosis_.items() if "training" in text} == {
        c for c, way in enumerate(ways) if way < 2
    }
    found = made.label(Q)
    assert found.record is None
    assert made.record_ is None
    assert set(made.diagnosis_) == {c for c, way in enumerate(ways) if way < 7}
    with pytest.raises(ParameterError, match="budget is given, but diagnose=True"):
        fitted(diagnose=True, budget=Budget(100, 0.1))
    assert fitted(loud).label(Q).record is not None


def public(value, depth=4):
    """Everything that can be reached by public names."""
    yield value
    if depth and not isinstance(value, int | float | str | np.ndarray | type(None)):
        for name in dir(value):
            if not name.startswith("_"):
                found = getattr(value, name)
                if not callable(found) or hasattr(found, "fit"):
                    yield from public(found, depth - 1)


@pytest.mark.parametrize("table", ["hazard", "gaussian"])
def test_nothing_public_depends_on_the_records(table):
    """Two sets of records with unlike members: what is shown before any answer is the same."""
    made = [fitted(labels=y, random_state=3, table=table) for y in (Y, 1 - Y)]
    shown = [sorted({repr(found) for found in public(one)}) for one in made]
    assert shown[0] == shown[1]
    assert not any("GaussianNB object" in text or "Member" in text for text in shown[0])
    answer = made[0].label(Q)
    names = {field.name for field in dataclasses.fields(answer)}
    assert names == {"labels", "is_bottom", "unstable_left", "queries_left", "record"}
    assert vars(answer).keys() == names
    assert isinstance(answer, LabelResult)
    assert not hasattr(made[0], "__getstate__") or isinstance(answer.record, PrivacyRecord)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_fitted_labeler_is_never_copied(copied):
    copied(labeler())
    with pytest.raises(TypeError, match="can't be copied or pickled"):
        copied(fitted())


def test_answers_end_at_the_last_bottom_and_no_later_call_costs_anything():
    made = fitted(by_votes(30), records=np.arange(60.0)[:, None], labels=Y[:60], unstable=3)
    ties = np.zeros((10, 1))
    found = made.label(ties, bottoms=2)
    assert found.labels.tolist() == [-1, -1]
    assert (found.unstable_left, found.queries_left) == (1, 48)
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
        by_votes(42), table=table, epsilon=epsilon, delta=0.1, queries=4000, unstable=4000,
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
    found = made.label(np.zeros((4000, 1)))
    assert (len(found.labels), found.unstable_left, found.queries_left) == (4000, None, 0)
    for answer, p in law.items():
        count = int(np.count_nonzero(found.labels == answer))
        assert stats.binomtest(count, 4000, max(float(p), 0.0)).pvalue > 1e-6
    assert found.is_bottom.any() == (threshold > 0)


def test_any_number_of_bottoms_is_answered_with_noise():
    made = fitted(table="gaussian", threshold=1000)
    assert made.label(np.tile(Q, (12, 1))).is_bottom.all()
    assert (made.unstable_left, made.queries_left) == (None, 2)
    assert "2 queries left" in repr(made)
    assert "bottoms" not in repr(made)
    with pytest.raises(ParameterError, match="a GaussianVote answers with any number"):
        made.label(Q[:1], bottoms=1)
    assert "GNMax" in made.record_.source
    assert made.record_.mechanism == "labels.PrivateLabeler, GaussianVote, m=50, k=60"


def test_noisy_votes_go_on_after_they_were_saved(tmp_path):
    made = kept(tmp_path / "model", table="gaussian", threshold=0.5)
    made.label(Q)
    again = loaded(tmp_path / "model")
    assert again.plan_.table == made.plan_.table
    assert again.threshold == 0.5
    again.label(Q)
    assert made.queries_left == again.queries_left == 42


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


@pytest.mark.parametrize(
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
        ({"unstable": 0}, ParameterError, "unstable = 0, but it must be an integer from 1"),
        ({"unstable": -1}, ParameterError, "unstable = -1"),
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
    with pytest.raises(ShapeError, match=r"Q has shape \(4, 1\), but it must be \(q, \*\(2,\)\)"):
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
        "unstable": 50,
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


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_change_nothing(backend):
    joblib = pytest.importorskip("joblib")
    learner = linear_model.SGDClassifier(max_iter=3, tol=None)
    alone = fitted(learner, random_state=2, members=12).label(Q)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        spread = fitted(learner, random_state=2, members=12).label(Q)
    assert alone.labels.tolist() == spread.labels.tolist()


@pytest.fixture
def limits():
    """threadpoolctl, where linear algebra has two threads."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(2):
        yield threadpoolctl


@pytest.mark.parametrize("installed", [True, False])
def test_members_use_one_thread_for_linear_algebra(monkeypatch, limits, installed):
    np.dot(np.ones((9, 9)), np.ones((9, 9)))
    before, seen = limits.threadpool_info(), []

    def learner(X, y):
        seen.append({pool["num_threads"] for pool in limits.threadpool_info()})
        return lambda Q: learner(X, y) and np.zeros(len(Q), int)

    monkeypatch.setitem(sys.modules, "threadpoolctl", limits if installed else None)
    fitted(learner).label(Q)
    found = set().union(*seen)
    assert len(seen) == 120
    assert found == ({1} if installed else {2})
    assert limits.threadpool_info() == before


def test_a_dask_cluster_trains_the_same_members():
    joblib, distributed = (pytest.importorskip(name) for name in ("joblib", "distributed"))
    learner = linear_model.SGDClassifier(max_iter=3, tol=None)
    alone = fitted(learner, random_state=2, members=12).label(Q)
    how = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**how) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        spread = fitted(learner, random_state=2, members=12).label(Q)
    assert alone.labels.tolist() == spread.labels.tolist()


def test_members_are_trained_without_joblib(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    found = fitted(lambda X, y: lambda Q: (Q[:, 0] > 0).astype(int)).label(Q)
    assert found.labels.tolist() == TRUTH


class Frame:
    """What a labeler needs of a data frame."""

    def __init__(self, values):
        self.values, self.shape, self.iloc = values, values.shape, Rows(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class Rows:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, rows):
        return Frame(self.values[rows])


@pytest.mark.parametrize("kind", ["sparse", "frame", "list"])
def test_records_come_in_any_shape_a_learner_takes(kind):
    make = {"sparse": coo_matrix, "frame": Frame, "list": np.ndarray.tolist}[kind]
    learner = linear_model.SGDClassifier(max_iter=5, tol=None)
    assert fitted(learner, records=make(X)).label(make(Q)).labels.tolist() == TRUTH


@pytest.mark.parametrize(
    ("records", "labels", "rule"),
    [
        (
            [[1, "x"]] * 60,
            Y[:60],
            "X holds something else, but without a dtype it must hold numbers",
        ),
        ([[1j]] * 60, Y[:60], "numbers alone or texts alone: make an array or a data frame"),
        (np.ma.masked_array(np.ones((60, 1))), Y[:60], "X is a masked array"),
        (np.ones((60, 1)), [*Y[:59].tolist(), "x"], "y holds something else"),
        (np.ones((60, 1)), [*Y[:59].tolist(), math.nan], "y holds something else"),
        (np.ones((60, 1)), [*Y[:59].tolist(), None], "y holds something else"),
    ],
)
@pytest.mark.parametrize("make", [lambda: labeler(), lambda: soft()], ids=["labels", "scores"])
def test_what_would_decide_the_dtype_of_others_is_refused(make, records, labels, rule):
    budget = Budget(20, 1e-3)
    with pytest.raises(ParameterError, match=rule):
        make().fit(records, labels, budget=budget)
    assert budget.spent == (0, 0)


def unlike_categories(pandas):
    return pandas.Series([1, "x"] * 30).astype("category"), "numbers alone or texts alone"


def dates(pandas):
    days = pandas.Series(pandas.to_datetime(["2020-01-01"] * 60))
    return days.astype("category"), "numbers alone or texts alone"


def nested_dictionary(pandas):
    arrow = pytest.importorskip("pyarrow")
    kind = arrow.list_(arrow.dictionary(arrow.int8(), arrow.string()))
    entries = pandas.array(arrow.array([["a"]] * 60, kind), dtype=pandas.ArrowDtype(kind))
    return pandas.Series(entries), "may hold entries of a dictionary"


@pytest.mark.parametrize("table", [False, True], ids=["column", "table"])
@pytest.mark.parametrize("make", [unlike_categories, dates, nested_dictionary])
def test_columns_that_no_member_could_have_as_its_own_are_refused(make, table):
    column, rule = make(pytest.importorskip("pandas"))
    budget = Budget(20, 1e-3)
    with pytest.raises(ParameterError, match=rule):
        labeler().fit(column.to_frame("c") if table else column, Y[:60], budget=budget)
    assert budget.spent == (0, 0)


NESTED = """
import joblib, numpy as np
from hdp_fast.labels import PrivateLabeler

def outer(depth):
    def learner(X, y):
        if depth == 0:
            return lambda Q: np.ones(len(Q), int)
        made = labeler(depth - 1)
        with joblib.parallel_config(backend="threading", n_jobs=2):
            return made.fit(X, y).label
    return learner

def labeler(depth):
    learner = outer(depth)
    goal = {"epsilon": 9, "delta": .01, "queries": 9, "unstable": 9, "members": 4}
    return PrivateLabeler(learner, classes=[0, 1], table="hazard", diagnose=True, **goal)

with joblib.parallel_config(backend="threading", n_jobs=2):
    made = labeler(1).fit(np.ones((40, 1)), np.arange(40) % 2)
print(made.diagnosis_)
"""


def test_members_may_have_members_of_their_own():
    command = [sys.executable, "-c", NESTED]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"


def test_votes_of_many_queries_are_taken_in_blocks(monkeypatch):
    made = fitted(random_state=4)
    monkeypatch.setattr("hdp_fast.labels.ensemble._MOST_VOTES", 60 * 3)
    assert made.label(np.concatenate([Q, Q])).labels.tolist() == TRUTH * 2


def kept(path, **changed):
    made = fitted(**changed)
    made.save(path)
    return made


def loaded(path, **how):
    return PrivateLabeler.load(path, trusted=True, **how)


def test_a_saved_labeler_goes_on_where_it_was(tmp_path):
    made = fitted()
    made.label(Q)
    made.save(tmp_path / "model")
    again = loaded(tmp_path / "model")
    found = again.label(Q)
    assert found.labels.tolist() == TRUTH
    assert (found.queries_left, found.record) == (42, made.record_)
    assert (again.members_, repr(again.plan_)) == (60, repr(made.plan_))
    made.label(Q)
    assert again.queries_left == made.queries_left == loaded(tmp_path / "model").queries_left == 38
    for name in ("model", "model.ledger"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "model.ledger"]


def test_fitting_again_leaves_the_file_alone(tmp_path):
    made = kept(tmp_path / "model")
    made.fit(X, Y)
    made.label(Q)
    assert loaded(tmp_path / "model").queries_left == 50


def test_a_second_file_would_give_queries_back(tmp_path):
    made = kept(tmp_path / "model")
    for name in ("model", "other"):
        with pytest.raises(CheckpointError, match="a second would count twice"):
            made.save(tmp_path / name)
    with pytest.raises(ParameterError, match="it must be new"):
        kept(tmp_path / "model")
    (tmp_path / "taken").touch()
    fresh = fitted()
    with pytest.raises(ParameterError, match="it must be new"):
        fresh.save(tmp_path / "taken")
    with pytest.raises(ParameterError, match="a folder that can be written"):
        fresh.save(tmp_path / "nowhere" / "model")
    files = ["model", "model.ledger", "taken"]
    assert sorted(file.name for file in tmp_path.iterdir()) == files
    assert fresh.label(Q).queries_left == 46


class Locked:
    """Answers, and cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def predict(self, Q):
        return np.ones(len(Q), int)


def test_one_member_that_cannot_be_pickled_costs_its_vote_and_tells_nothing(tmp_path, capfd):
    made = fitted(lambda X, y: Locked() if X[0, 0] == THIRD else lambda Q: np.ones(len(Q), int))
    made.save(tmp_path / "model")
    again = loaded(tmp_path / "model")
    assert again.label(Q).labels.tolist() == made.label(Q).labels.tolist() == [1] * 4
    assert capfd.readouterr() == ("", "")


def test_members_that_cannot_be_pickled_are_not_named(tmp_path):
    made = fitted(lambda X, y: Locked())
    with pytest.raises(ParameterError, match="no member that can be pickled") as caught:
        made.save(tmp_path / "model")
    assert caught.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []
    assert made.label(Q).queries_left == 46


class Tampering:
    """Runs code when it is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (self.trace,)


@pytest.mark.parametrize("trusted", [False, None, "no", 1])
def test_code_in_a_file_runs_for_those_who_trust_it_alone(tmp_path, trusted):
    kept(tmp_path / "model")
    content, trace = pickle.dumps(Tampering(str(tmp_path / "trace"))), tmp_path / "trace"
    digest = hashlib.blake2b(content, digest_size=32).digest()
    (tmp_path / "model").write_bytes(b"hdp_fast labeler 2\n" + digest + content)
    for kind in (PrivateLabeler, SoftLabeler):
        with pytest.raises(ParameterError, match="runs whatever code is in it: pass trusted=True"):
            kind.load(tmp_path / "model", trusted=trusted)
    assert not trace.exists()
    with pytest.raises(CheckpointError, match="a file that save wrote"):
        loaded(tmp_path / "model")
    assert trace.exists()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("parameters", None),
        ("parameters", {}),
        ("parameters", {"size": 3}),
        ("plan", 3),
        ("members", "x"),
        ("record", 3),
        ("record", "{}"),
        ("ensemble", {}),
        ("key", 3),
    ],
)
def test_files_with_parts_that_do_not_fit_are_refused_in_one_way(tmp_path, part, value):
    """Reaches into the file's format: no damage alone gets past its digest."""
    kept(tmp_path / "model")
    content = pickle.loads((tmp_path / "model").read_bytes()[51:])
    content = pickle.dumps(content | {part: value})
    digest = hashlib.blake2b(content, digest_size=32).digest()
    (tmp_path / "model").write_bytes(b"hdp_fast labeler 2\n" + digest + content)
    with pytest.raises(CheckpointError, match="model"):
        loaded(tmp_path / "model")


def test_any_damaged_byte_is_found_before_anything_is_loaded(tmp_path):
    kept(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for place in [0, 20, 50, 51, *range(60, len(whole), len(whole) // 40)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / "model").write_bytes(damaged)
        with pytest.raises(CheckpointError, match="a whole file that save wrote"):
            loaded(tmp_path / "model")


@pytest.mark.parametrize(
    ("break_it", "rule"),
    [
        (lambda file, ledger, other: file.unlink(), "a file that save wrote"),
        (lambda file, ledger, other: file.write_bytes(file.read_bytes()[:99]), "a whole file"),
        (lambda file, ledger, other: file.write_bytes(pickle.dumps({})), "format of this"),
        (lambda file, ledger, other: ledger.unlink(), "can be read and written"),
        (lambda file, ledger, other: ledger.write_bytes(b"spent" * 99), "read and written"),
        (lambda file, ledger, other: ledger.write_bytes(b""), "the ledger of a labeler"),
        (lambda file, ledger, other: ledger.write_bytes(other.read_bytes()), "of this ensemble"),
        (lambda file, ledger, other: spent(ledger, "bottoms = -1"), "it must be whole"),
        (lambda file, ledger, other: spent(ledger, "bottoms = 'x'"), "it must be whole"),
    ],
)
def test_what_save_did_not_write_is_refused(tmp_path, break_it, rule):
    kept(tmp_path / "model")
    kept(tmp_path / "other")
    break_it(tmp_path / "model", tmp_path / "model.ledger", tmp_path / "other.ledger")
    with pytest.raises(CheckpointError, match=rule):
        loaded(tmp_path / "model")


def spent(ledger, change):
    with contextlib.closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute(f"UPDATE spent SET {change}")


def test_a_lost_ledger_stops_the_answers(tmp_path):
    made = kept(tmp_path / "model")
    (tmp_path / "model.ledger").unlink()
    with pytest.raises(CheckpointError, match="can be read and written"):
        made.label(Q)


def test_a_seed_makes_loaded_answers_repeat(tmp_path):
    """Ties are answered by bottoms alone, votes of 40 and 20 by some coins."""
    said = []
    for name in "ab":
        kept(
            tmp_path / name, learner=VotesFor(40), unstable=200, queries=200, epsilon=5,
            records=np.arange(60.0)[:, None], labels=Y[:60],
        )  # fmt: skip
        again = loaded(tmp_path / name, random_state=1)
        assert "test stream" in again.record_.rng
        said.append(again.label(np.zeros((200, 1))).labels.tolist())
    assert said[0] == said[1]
    assert set(said[0]) == {-1, 1}


class VotesFor:
    """by_votes, to be pickled."""

    def __init__(self, ones):
        self.ones, self.vote = ones, 0

    def __call__(self, X, y):
        made = VotesFor(self.ones)
        made.vote = int(X[0, 0] < self.ones)
        return made

    def predict(self, Q):
        return np.full(len(Q), self.vote)


def asking(path, pipe):
    """Asks until there is no query left, and shows each answer on a pipe."""

    def work():
        made = loaded(path)
        with contextlib.suppress(BudgetExceeded):
            while True:
                os.write(pipe, b"%d\n" % made.label(Q[:1]).queries_left)

    return forked(work)


def simple(path, queries):
    return kept(path, learner=VotesFor(1), table="vote", members=2, queries=queries)


@forking
def test_a_kill_gives_no_query_back(tmp_path):
    simple(tmp_path / "model", 10_000)
    shown = 0
    for lines in (1, 3, 8):
        reader, writer = os.pipe()
        child = asking(tmp_path / "model", writer)
        os.close(writer)
        with open(reader) as pipe:
            seen = [pipe.readline() for _ in range(lines)]
            os.kill(child, signal.SIGKILL)
            shown += len(seen) + len(pipe.readlines())
        assert exit_code(child) == -signal.SIGKILL
        used = 10_000 - loaded(tmp_path / "model").queries_left
        # At each kill one answer may have been paid for and not shown yet, and none the other way.
        assert shown <= used <= shown + 3


@forking
def test_two_processes_never_answer_more_than_was_planned(tmp_path):
    made = simple(tmp_path / "model", 30)
    reader, writer = os.pipe()
    children = [asking(tmp_path / "model", writer) for _ in range(2)]
    os.close(writer)
    with open(reader) as pipe:
        left = [int(line) for line in pipe]
    assert [exit_code(child) for child in children] == [0, 0]
    assert sorted(left) == list(range(30))
    assert made.queries_left == 0


@pytest.mark.parametrize("kind", ["labels", "scores"])
def test_answers_are_paid_for_by_the_account_of_the_members_that_gave_them(monkeypatch, kind):
    made = fitted() if kind == "labels" else soft().fit(X, Y)
    ask = made.label if kind == "labels" else functools.partial(made.score, bins=2)
    said, voted, go = Ensemble._said, threading.Event(), threading.Event()

    def halting(*given):
        yield from said(*given)
        voted.set()
        assert go.wait(20)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(Ensemble, "_said", halting)
        asked = pool.submit(ask, Q)
        assert voted.wait(20)
        made.fit(X, Y)
        go.set()
        assert asked.result().queries_left < made.queries_left
    assert made.queries_left == made.plan_.table.m


def test_threads_never_answer_more_than_was_planned():
    made = fitted(lambda X, y: VotesFor(1), table="vote", members=2, queries=30)

    def ask(_):
        with contextlib.suppress(BudgetExceeded):
            return made.label(Q[:1]).queries_left

    with ThreadPoolExecutor(4) as pool:
        left = list(pool.map(ask, range(40)))
    assert sorted(value for value in left if value is not None) == list(range(30))


@forking
def test_a_fork_asks_only_a_saved_labeler(tmp_path):
    made, saved = fitted(), kept(tmp_path / "model")

    def work():
        with pytest.raises(ParameterError, match="belongs to process"):
            made.label(Q)
        saved.label(Q)

    assert exit_code(forked(work)) == 0
    assert (made.queries_left, saved.queries_left) == (50, 46)


def process_state():
    return {
        "streams": [id(stream) for stream in (sys.stdout, sys.stderr, sys.unraisablehook)],
        "logs": logging.root.manager.disable,
        "environment": dict(os.environ),
        "coins": repr(np.random.get_state(legacy=False)),  # noqa: NPY002
    }


class Halts:
    """Says that it is in its turn, and stays in it until it may go on."""

    inside, go = threading.Event(), threading.Event()

    def __deepcopy__(self, memo):
        return self

    def __call__(self, X, y):
        os.environ["HALTS"] = "1"
        self.inside.set()
        assert self.go.wait(20)
        return lambda Q: np.ones(len(Q), int)


@forking
def test_a_fork_beside_a_turn_leaves_no_trace_of_it_in_the_child():
    halts, before, coins = Halts(), process_state(), random.getstate()

    def work():
        assert process_state() == before
        assert random.getstate() != coins
        # Whoever takes a turn there is silent in it, and not afterwards.
        fitted(lambda X, y: os.environ.clear(), members=2)
        assert process_state() == before

    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(fitted, halts, members=2)
        assert halts.inside.wait(20)
        child = forked(work)
        halts.go.set()
        training.result()
    assert exit_code(child) == 0
    assert process_state() == before


@forking
def test_a_fork_within_a_turn_stays_in_it():
    codes = []

    def learner(X, y):
        state = process_state()

        def work():
            assert process_state() == state
            assert logging.root.manager.disable == logging.CRITICAL

        codes.append(exit_code(forked(work)))
        return lambda Q: np.ones(len(Q), int)

    fitted(learner, members=2)
    assert codes == [0, 0]


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
    points = COINS.normal(size=(5000, 2))
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
    made = labeler(names_by_votes, classes=["a", "b", "c"], unstable=3000, queries=3000)
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
    made = PrivateLearner(labeler(learner, unstable=2), final, bottoms="drop")
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
        made.fit(X, labels, random_state=1)
        assert "of one record's label alone" in made.record_.mechanism
        assert final[-1].X.tolist() == X[public].tolist()
    assert final[0].y.tolist() == final[1].y.tolist()
    assert seen[0].chunks == seen[1].chunks
    trained = [row for rows, _ in seen[0].chunks for row in rows]
    assert sorted(trained + X[public].tolist()) == sorted(X.tolist())


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("queries", [1, 30, 1000, 100_000])
@pytest.mark.parametrize("error", [0.0, 0.001, 0.1, 0.3])
@pytest.mark.parametrize("share", [1 / 3, 0.45])
def test_unstable_queries_are_the_tail_of_a_binomial(queries, error, share):
    T = unstable_queries(queries, error=error, beta=0.05, share=share)
    tail = stats.binom(queries, error / share).sf
    assert tail(T - 1) <= 0.05
    assert T == 1 or tail(T - 2) > 0.05
    printed = 3 * (error * queries + math.sqrt(queries * math.log(queries / 0.05) / 2))
    assert share != 1 / 3 or printed + 1 >= T


def test_members_that_err_independently_leave_few_queries_unstable():
    """Many runs of 25 members who are wrong on 4 of 40 queries each, wherever they like."""
    T = unstable_queries(40, error=0.1, beta=0.05)
    wrong = COINS.random((400, 40, 25)) < 0.1
    hard = COINS.random((400, 40, 1)) < 0.1 / 0.34
    # Mistakes that gather on few queries, more than a third of the members on each, are the worst.
    together = hard & (np.arange(25) < 9)
    for mistakes in (wrong, together):
        assert mistakes.mean() < 0.12
        unstable = (mistakes.sum(axis=2) > 25 / 3).sum(axis=1)
        assert np.mean(unstable >= T) < 0.1
    assert np.mean((together.sum(axis=2) > 25 / 3).sum(axis=1) >= T - 3) > 0.1


def test_bins_are_wide_enough_for_the_scores_of_a_stable_learner():
    """The mean of 500 bits, whose stability is known, lies in one bin for three of four members."""
    n, p = 500, 0.4
    bins = soft_bins(math.sqrt(2 * p * (1 - p)) / n, n)
    assert bins == math.floor(1 / (4 * 2 * math.sqrt(p * (1 - p) / n)))
    means = COINS.binomial(n, p, 4000) / n
    plain = np.bincount((means * bins).astype(int)).max()
    shifted = np.bincount((means * bins + 0.5).astype(int)).max()
    assert max(plain, shifted) > 0.75 * 4000
    assert soft_bins(0.0, 10) == 65_536
    assert soft_bins(0.001, 50, quality=0.1) == math.floor(1 / (0.1 + 0.01))


def descended(points, *, passes, step_size, penalty, gradient, batch, orders):
    """Weights by SGD with a penalty, one order for each pass."""
    weights = np.zeros(points.shape[1])
    for order in orders[:passes]:
        for start in range(0, len(order), batch):
            some = points[order[start : start + batch]]
            step = gradient(weights, some).sum(axis=0) / batch + penalty * weights
            weights = weights - step_size * step
    return weights


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_stability_of_sgd_is_reached_by_linear_losses(penalty, batch):
    """Gradients of 1 and -1 in one dimension move weights apart as far as anything does."""
    n, passes, eta = 12, 3, 0.2
    points, orders = np.ones((n, 1)), [np.arange(n)] * passes
    given = {"passes": passes, "step_size": eta, "batch_size": batch}
    run = functools.partial(
        descended, penalty=penalty, gradient=lambda w, x: x, orders=orders, **given
    )
    squares = []
    for j in range(n):
        other = points.copy()
        other[j] = -1
        squares.append((run(points) - run(other)) ** 2)
    bound = sgd_stability(
        chunk=n, clip_norm=1, smoothness=penalty or 1e-9, strong_convexity=penalty, **given
    )
    assert bound == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_sgd_on_a_logistic_loss_is_at_least_as_stable_as_promised(penalty):
    n, passes, eta, batch = 10, 4, 1.5, 3
    orders = [COINS.permutation(n) for _ in range(passes)]

    def gradient(weights, signed):
        return -signed / (1 + np.exp(signed @ weights))[:, None]

    run = functools.partial(
        descended,
        passes=passes,
        step_size=eta,
        penalty=penalty,
        gradient=gradient,
        batch_size=batch,
        orders=orders,
    )
    query, squares = np.array([0.6, 0.8]), []
    for _ in range(40):
        points, fresh = (
            found / np.linalg.norm(found, axis=1)[:, None]
            for found in (COINS.normal(size=(n, 2)), COINS.normal(size=(n, 2)))
        )
        for j in range(n):
            other = points.copy()
            other[j] = fresh[j]
            scores = [1 / (1 + np.exp(-run(each) @ query)) for each in (points, other)]
            squares.append((scores[0] - scores[1]) ** 2)
    bound = sgd_stability(
        passes,
        n,
        step_size=eta,
        clip_norm=1,
        smoothness=0.25 + penalty,
        strong_convexity=penalty,
        batch_size=batch,
        slope=0.25,
    )
    assert 0.02 * bound < math.sqrt(np.mean(squares)) < bound


def test_one_pass_of_short_steps_lets_members_agree_on_many_bins():
    """Steps of 1 / n': a = 1 / (2 n'), and bins of width 4 a sqrt(2 n')."""
    a = sgd_stability(1, 10_000, step_size=1e-4, clip_norm=1, smoothness=0.25, slope=0.25)
    assert a == pytest.approx(0.5e-4)
    assert soft_bins(a, 10_000) == math.floor(1 / (2 * math.sqrt(2) / 100))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (
            lambda: sgd_stability(1, 9, step_size=9, clip_norm=1, smoothness=1),
            "step_size = 9, but it must be at most 2 / .smoothness",
        ),
        (
            lambda: sgd_stability(1, 9, step_size=1, clip_norm=1, smoothness=1, strong_convexity=2),
            "strong_convexity = 2",
        ),
        (lambda: sgd_stability(0, 9, step_size=1, clip_norm=1, smoothness=1), "passes = 0"),
        (
            lambda: sgd_stability(1, 9, step_size=1, clip_norm=1, smoothness=1, batch_size=10),
            "batch = 10",
        ),
        (lambda: unstable_queries(0, error=0.1), "queries = 0"),
        (lambda: unstable_queries(9, error=0.4), "error = 0.4, but it must be below share"),
        (lambda: unstable_queries(9, error=-1), "error = -1"),
        (lambda: unstable_queries(9, error=0.1, share=0.5), "share = 0.5"),
        (lambda: unstable_queries(9, error=0.1, beta=0), "beta = 0"),
        (lambda: soft_bins(1, 10), "stability = 1, but it must let members agree"),
        (lambda: soft_bins(-1, 10), "stability = -1"),
        (lambda: soft_bins(0.1, -1), "chunk = -1"),
        (lambda: soft_bins(0.1, 1, quality=1), "quality = 1"),
        (lambda: soft_bins(0.1, 1, agreement=1), "agreement = 1"),
    ],
)
def test_bad_numbers_are_refused(call, rule):
    with pytest.raises(ParameterError, match=rule):
        call()


def soft(learner=None, **changed):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 50, "unstable": 5, "members": 60}
    goal |= {"beta": 1e-9} | changed
    return SoftLabeler(learner or naive_bayes.GaussianNB(), **goal)


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
    found = made.score(np.zeros((1, 1)), 4)
    assert found.is_bottom.tolist() == [answer is None]
    assert answer is None or found.scores.tolist() == [answer]
    assert (found.unstable_left, found.queries_left) == (5 - bottoms, 100 - queries)
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
    said = soft(lambda X, y: lambda Q: np.full(len(Q), np.nan)).fit(X, Y)
    assert said.score(Q, 4).scores.tolist() == [0.125] * 4
    assert capfd.readouterr() == ("", "")


def test_plans_of_scores_ask_for_twice_the_queries():
    goal = {"epsilon": 1, "delta": 1e-6, "queries": 100, "unstable": 10, "beta": 0.05}
    plan = soft(**goal | {"members": None}).plan()
    assert plan.table.m == 200
    assert plan.k == plan.k_hazard < 1000
    spread = math.sqrt(2 * 10 * math.log(2e6))
    assert plan.k_paper == round(136 * math.log(8 * 100 * 10 / 1e-6) * spread)
    made = soft().fit(X, Y)
    for bad in (1, 0, 70_000):
        with pytest.raises(ParameterError, match=f"bins = {bad}"):
            made.score(Q, bad)


@pytest.mark.parametrize("vc", [1, 5, 100])
@pytest.mark.parametrize("alpha", [0.5, 0.05])
@pytest.mark.parametrize("beta", [0.5, 1e-9])
def test_sample_sizes_hold_the_inequalities_they_rest_on(vc, alpha, beta):
    n = pac_sample_size(vc, alpha=alpha, beta=beta, agnostic=True)
    dichotomies = vc * math.log(2 * math.e * n / vc)
    assert math.log(4) + dichotomies - alpha**2 * n / 32 <= math.log(beta)
    n = pac_sample_size(vc, alpha=alpha, beta=beta, agnostic=False)
    dichotomies = vc * math.log(2 * math.e * n / vc)
    assert math.log(2) + dichotomies - alpha * n / 2 * math.log(2) <= math.log(beta)


def threshold(X, y):
    """The least point that is labeled 1, which makes no error on the chunk."""
    least = X[y == 1, 0].min(initial=2.0)
    return lambda Q: (Q[:, 0] >= least).astype(int)


@pytest.mark.parametrize("opt", [None, 0.0])
def test_planned_answers_are_right_but_for_the_unstable_ones(opt):
    plan = plan_answers(1, 60, alpha=0.1, epsilon=8, delta=1e-6, opt=opt)
    margin = (2 * plan.table.J + 1) / (1 - 2 / 3)
    assert margin <= plan.k < margin + 1
    assert plan.unstable == unstable_queries(60, error=0.1, beta=0.05 / 4)
    assert plan.error == (plan.unstable - 1) / 60
    assert plan.n == plan.k * plan.chunk < plan.k_paper * plan.chunk / 10
    size = pac_sample_size(1, alpha=0.1, beta=0.05 / 4 / plan.k, agnostic=opt is not None)
    assert plan.chunk == size
    if opt is None:
        records, points = COINS.random((plan.n, 1)), COINS.random((60, 1))
        made = PrivateLabeler(
            threshold, epsilon=8, delta=1e-6, queries=60, unstable=plan.unstable,
            classes=[0, 1], members=plan.k,
        )  # fmt: skip
        found = made.fit(records, (records[:, 0] >= 0.3).astype(int)).label(points)
        assert len(found.labels) == 60
        assert (found.labels != (points[:, 0] >= 0.3)).sum() < plan.unstable


def test_a_planned_model_promises_a_few_times_the_error_of_its_members():
    plan = plan_learning(1, alpha=0.1, epsilon=1, delta=1e-6)
    m = pac_sample_size(1, alpha=0.1, beta=0.05 / 4, agnostic=True)
    assert plan.queries == m == plan.table.m
    assert plan.error == pytest.approx(0.1 * 7, abs=1e-4)
    answers = plan_answers(1, m, alpha=0.1, epsilon=1, delta=1e-6, beta=0.0375)
    assert (plan.k, plan.chunk, plan.unstable) == (answers.k, answers.chunk, answers.unstable)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"vc": 0}, "vc = 0"),
        ({"queries": 0}, "queries = 0"),
        ({"alpha": 0}, "alpha = 0"),
        ({"alpha": 0.4}, r"opt \+ alpha = 0\.4, but it must be below share"),
        ({"opt": 0.95}, r"opt \+ alpha = 1.05"),
        ({"opt": -0.1}, "opt = -0.1"),
        ({"beta": 1}, "beta = 1"),
        ({"epsilon": -1}, "epsilon = -1"),
        ({"share": 0.6}, "share = 0.6"),
    ],
    ids=str,
)
def test_bad_plans_are_refused(changed, rule):
    goal = {"vc": 1, "queries": 50, "alpha": 0.1, "epsilon": 1, "delta": 1e-6} | changed
    with pytest.raises(ParameterError, match=rule):
        plan_answers(goal.pop("vc"), goal.pop("queries"), **goal)


def test_models_that_could_err_always_are_not_planned():
    with pytest.raises(ParameterError, match="the error that it promises must be below 1"):
        plan_learning(1, alpha=0.2, epsilon=1, delta=1e-6)
    for value in (0, 1.5):
        with pytest.raises(ParameterError, match=f"vc = {value}"):
            pac_sample_size(value, alpha=0.1, beta=0.1, agnostic=True)


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


@pytest.mark.parametrize("backend", ["sequential", "threading", "all at once", "no joblib"])
def test_progress_counts_members_and_what_they_said(bars, monkeypatch, backend):
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr("hdp_fast.labels.ensemble._MOST_VOTES", 130)  # two queries at a time
    if backend == "no joblib":
        monkeypatch.setitem(sys.modules, "joblib", None)
    if backend == "all at once":
        support = "joblib._parallel_backends.ThreadingBackend.supports_return_generator"
        monkeypatch.setattr(support, False)
    way = "sequential" if backend == "sequential" else "threading"
    with joblib.parallel_config(backend=way, n_jobs=2):
        made = labeler().fit(X, Y, progress=True)
        made.label(Q[:3], progress=True)
        soft = SoftLabeler(naive_bayes.GaussianNB(), epsilon=20, delta=1e-3, queries=9, unstable=5)
        soft.members = 61
        soft.fit(X, Y, progress=True).score(Q, 2, progress=True)
        made.label(Q)
    counted = [(bar.unit, bar.total, bar.steps) for bar in bars]
    assert counted == [
        ("member", 60, [1] * 60),
        ("vote", 180, [2] * 60 + [1] * 60),
        ("member", 61, [1] * 61),
        ("score", 244, [2] * 122),
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
        with pytest.raises(ImportError, match=r"pip install hdp-fast\[progress\]"):
            run()
    assert budget.spent == (0, 0)
    assert made.queries_left == 50
