"""Saved labelers: what is left survives, is shared by processes and threads, and is paid for."""

import contextlib
import functools
import hashlib
import os
import pickle
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import exit_code, forked, forking
from voters import THIRD, TRUTH, Q, VotesFor, X, Y, fitted, kept, loaded, soft

from hdp_fast.exceptions import BudgetExceeded, CheckpointError, ParameterError
from hdp_fast.labels import PrivateLabeler, SoftLabeler
from hdp_fast.labels.ensemble import Ensemble


def test_noisy_votes_go_on_after_they_were_saved(tmp_path):
    made = kept(tmp_path / "model", table="gaussian", threshold=0.5)
    made.label(Q)
    again = loaded(tmp_path / "model")
    assert again.plan_.table == made.plan_.table
    assert again.threshold == 0.5
    again.label(Q)
    assert made.queries_left == again.queries_left == 42


def test_a_saved_labeler_goes_on_where_it_was(tmp_path):
    made = fitted()
    made.label(Q)
    made.save(tmp_path / "model")
    again = loaded(tmp_path / "model")
    answers = again.label(Q)
    assert answers.labels.tolist() == TRUTH
    assert (answers.queries_left, answers.record) == (42, made.record_)
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
    (tmp_path / "model").write_bytes(b"hdp_fast labeler 4\n" + digest + content)
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
    (tmp_path / "model").write_bytes(b"hdp_fast labeler 3\n" + digest + content)
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


@pytest.mark.thorough(cases=4)
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
    predictions = []
    for name in "ab":
        kept(
            tmp_path / name, learner=VotesFor(40), max_unstable=200, queries=200, epsilon=5,
            records=np.arange(60.0)[:, None], labels=Y[:60],
        )  # fmt: skip
        again = loaded(tmp_path / name, random_state=1)
        assert "test stream" in again.record_.rng
        predictions.append(again.label(np.zeros((200, 1))).labels.tolist())
    assert predictions[0] == predictions[1]
    assert set(predictions[0]) == {-1, 1}


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
    count, voted, go = Ensemble._count, threading.Event(), threading.Event()

    def halting(*arguments):
        yield from count(*arguments)
        voted.set()
        assert go.wait(20)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(Ensemble, "_count", halting)
        asked = pool.submit(ask, Q)
        assert voted.wait(20)
        made.fit(X, Y)
        go.set()
        assert asked.result().queries_left < made.queries_left
    assert made.queries_left == made.plan_.table.queries


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
