"""Members: chunks that one record changes, seeds of their own, silence whatever happens."""

import dataclasses
import logging
import os
import random
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import exit_code, forked, forking
from scipy import stats
from voters import THIRD, TRUTH, Q, Seen, X, Y, fitted

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import LabelResult

linear_model = pytest.importorskip("sklearn.linear_model")


def test_replacing_a_record_changes_one_chunk_and_no_other_seed():
    one, two, other = Seen(), Seen(), X.copy()
    other[77] = 9.0
    fitted(one, random_state=1, preflight=False)
    fitted(two, records=other, random_state=1, preflight=False)
    assert [i for i in range(60) if one.chunks[i] != two.chunks[i]] == [17]
    assert one.seeds == two.seeds
    assert len(set(one.seeds)) == 60
    assert sorted(row for rows, _ in one.chunks for row in rows) == sorted(X.tolist())


@pytest.mark.parametrize("names", [np.arange(600), np.array([f"é{i}" for i in range(600)])])
def test_inserting_all_records_of_an_id_changes_one_chunk(names):
    places = [0, 300, 300]
    one, two = Seen(), Seen()
    fitted(one, ids=names, random_state=1, preflight=False)
    more = (np.insert(X, places, 9.0, axis=0), np.insert(Y, places, 1))
    fitted(two, *more, ids=np.insert(names, places, -5), random_state=1, preflight=False)
    changed = [i for i in range(60) if one.chunks[i] != two.chunks[i]]
    assert len(changed) == 1
    assert len(two.chunks[changed[0]][0]) == len(one.chunks[changed[0]][0]) + 3
    assert one.seeds == two.seeds
    sizes = [len(rows) for rows, _ in one.chunks]
    assert stats.chisquare(sizes).pvalue > 1e-6


def test_chunks_of_two_keys_differ():
    one, two = Seen(), Seen()
    fitted(one, ids=np.arange(600), preflight=False)
    fitted(two, ids=np.arange(600), preflight=False)
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
        fitted(lambda X, y, extra=extra: learner(X, y, extra), random_state=5, preflight=False)
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

    fitted(learner, preflight=False)
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
        predictions = {
            3: np.full(len(Q), 7),
            4: np.ones(len(Q) + 1),
            5: "x",
            6: np.full(len(Q), np.nan),
        }
        return predictions.get(way, np.ones(len(Q), int))

    return predict


def test_members_fail_in_silence_and_vote_for_the_smallest_label(capfd, caplog, recwarn):
    # Of 60 members some 36 fail or leave the label set: the smallest label wins or is bottom.
    votes = sum(int(abs(X[i, 0]) * 1e6) % 10 > 6 for i in range(60))
    answers = fitted(loud, epsilon=100, preflight=False).label(Q, preflight=False)
    assert votes < 25
    assert answers.labels.tolist() == [0, 0, 0, 0]
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not recwarn.list
    logging.getLogger("somebody").error("heard")
    assert [record.message for record in caplog.records] == ["heard"]


def test_what_refuses_every_chunk_answers_with_the_smallest_label():
    def refuse(X, y):
        raise KeyError

    made = fitted(refuse, classes=[5, 3], labels=Y * 2 + 3, preflight=False)
    assert made.label(Q, preflight=False).labels.tolist() == [3] * 4
    # Nine of ten chunks are empty, and no one is told.
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
    answers = made.label(Q)
    assert answers.record is None
    assert made.record_ is None
    assert set(made.diagnosis_) == {c for c, way in enumerate(ways) if way < 7}
    with pytest.raises(ParameterError, match="budget is given, but diagnose=True"):
        fitted(diagnose=True, budget=Budget(100, 0.1))
    assert fitted(loud).label(Q, preflight=False).record is not None


def public(value, depth=4):
    """Everything that can be reached by public names."""
    yield value
    if depth and not isinstance(value, int | float | str | np.ndarray | type(None)):
        for name in dir(value):
            if not name.startswith("_"):
                part = getattr(value, name)
                if not callable(part) or hasattr(part, "fit"):
                    yield from public(part, depth - 1)


@pytest.mark.parametrize("table", ["hazard", "gaussian"])
def test_nothing_public_depends_on_the_records(table):
    """Two sets of records with unlike members: what is shown before any answer is the same."""
    made = [fitted(labels=y, random_state=3, table=table) for y in (Y, 1 - Y)]
    shown = [sorted({repr(part) for part in public(one)}) for one in made]
    assert shown[0] == shown[1]
    assert not any("GaussianNB object" in text or "Member" in text for text in shown[0])
    answer = made[0].label(Q)
    names = {field.name for field in dataclasses.fields(answer)}
    assert names == {
        "labels",
        "is_bottom",
        "unstable_left",
        "queries_left",
        "record",
        "flip_probability",
    }
    assert vars(answer).keys() == names
    assert isinstance(answer, LabelResult)
    assert not hasattr(made[0], "__getstate__") or isinstance(answer.record, PrivacyRecord)


@pytest.mark.thorough(cases=["threading"])
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


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("installed", [True, False])
def test_members_use_one_thread_for_linear_algebra(monkeypatch, limits, installed):
    np.dot(np.ones((9, 9)), np.ones((9, 9)))
    before, seen = limits.threadpool_info(), []

    def learner(X, y):
        seen.append({pool["num_threads"] for pool in limits.threadpool_info()})
        return lambda Q: learner(X, y) and np.zeros(len(Q), int)

    monkeypatch.setitem(sys.modules, "threadpoolctl", limits if installed else None)
    fitted(learner, preflight=False).label(Q, preflight=False)
    threads = set().union(*seen)
    assert len(seen) == 120
    assert threads == ({1} if installed else {2})
    assert limits.threadpool_info() == before


def test_thread_pools_are_looked_for_again_after_an_import_alone(limits, monkeypatch):
    looked = []

    class Counted(limits.ThreadpoolController):
        def __init__(self):
            looked.append(1)
            super().__init__()

    monkeypatch.setattr(limits, "ThreadpoolController", Counted)
    labeler = fitted(Seen(), random_state=1)
    for name in ("new", "newer"):
        monkeypatch.setitem(sys.modules, f"hdp_fast_{name}", sys)
        looked.clear()
        labeler.label(Q)
        labeler.label(Q)
        assert len(looked) == 1


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
    answers = fitted(lambda X, y: lambda Q: (Q[:, 0] > 0).astype(int)).label(Q)
    assert answers.labels.tolist() == TRUTH


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
    goal = {"epsilon": 9, "delta": .01, "queries": 9, "max_unstable": 9, "members": 4}
    return PrivateLabeler(learner, classes=[0, 1], table="hazard", diagnose=True, **goal)

with joblib.parallel_config(backend="threading", n_jobs=2):
    made = labeler(1).fit(np.ones((40, 1)), np.arange(40) % 2)
print(made.diagnosis_)
"""


def test_members_may_have_members_of_their_own():
    command = [sys.executable, "-c", NESTED]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"


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
    halts, before, state = Halts(), process_state(), random.getstate()

    def work():
        assert process_state() == before
        assert random.getstate() != state
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

    fitted(learner, members=2, preflight=False)
    assert codes == [0, 0]
