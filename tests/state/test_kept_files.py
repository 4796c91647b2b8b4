"""Files of state, their logs and saved labelers, which nothing replaces that writes a result.

Tests of a private module: every output goes through one gate.
"""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from state_faces import FACES, RECORD
from stored_formats import write_labeler

from hdp_fast import Budget
from hdp_fast._support.atomic import describe_kept
from hdp_fast.data.files import check_writable, write_atomically
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import StatisticsLabeler
from hdp_fast.learners import FeatureMap, ReleasedStatistics, SufficientStatistics


def make_statistics_labeler(path):
    rows = np.random.default_rng(0).normal(size=(400, 2))
    labeler = StatisticsLabeler(epsilon=1.0, delta=1e-6, classes=[0, 1])
    labeler.fit(rows, (rows[:, 0] > 0).astype(int), rows[:50]).save(path)


def statistics():
    rows = np.random.default_rng(0).random((50, 2))
    goal = SufficientStatistics(FeatureMap.identity(2, norm_bound=2.0), classes=[0, 1])
    return goal.release(rows, (rows[:, 0] > 0.5).astype(int), epsilon=1.0, delta=1e-6)


def make_log(path, ending):
    """A log as a killed process leaves it, under another name; its owner is gone."""
    mode = "WAL" if ending == "-wal" else "DELETE"
    owner = path.with_name("owner")
    with contextlib.closing(sqlite3.connect(owner)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        if mode == "WAL":
            connection.execute("COMMIT")
        else:
            # Pages that do not fit into the cache make SQLite write the journal's header.
            connection.execute("PRAGMA cache_size = 1")
            rows = [(bytes(4000),) for _ in range(50)]
            connection.executemany("INSERT INTO t VALUES (?)", rows)
        shutil.copyfile(f"{owner}{ending}", path)
    for left in path.parent.glob("owner*"):
        left.unlink()


def make_foreign(path):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")


def flipped(path, place):
    FACES["ledger"].make(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


KEPT = {
    **{name: face.make for name, face in FACES.items()},
    "labeler": write_labeler,
    "statistics labeler": make_statistics_labeler,
    "write-ahead log": lambda path: make_log(path, "-wal"),
    "journal": lambda path: make_log(path, "-journal"),
    "foreign database": make_foreign,
    "rotten first letter": lambda path: flipped(path, 0),
    "rotten size of pages": lambda path: flipped(path, 17),
    "rotten application": lambda path: flipped(path, 71),
    "rotten constant": lambda path: flipped(path, 21),
}


def check_kept(path):
    """That no one replaces what is at this path, and that the error names it and the rule."""
    target = Path(os.path.realpath(path))
    before = target.read_bytes() if target.exists() else None
    for write in (check_writable, lambda path: write_atomically(path, b"new"), statistics().save):
        with pytest.raises(ParameterError, match="must not") as caught:
            write(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert target.exists() == (before is not None)
    assert before is None or target.read_bytes() == before


@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_outputs_never_replace_what_is_kept(memory, make):
    path = memory / "state"
    make(path)
    check_kept(path)
    os.symlink(path, memory / "link")
    check_kept(memory / "link")


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_outputs_never_stand_in_the_place_of_a_log(memory, ending):
    path = memory / "ledger"
    budget = Budget.open(path, epsilon=1)
    os.symlink(path, memory / "link")
    for name in (f"ledger{ending}", f"link{ending}"):
        check_kept(memory / name)
    with contextlib.closing(sqlite3.connect(path)) as reader:
        # Whoever comes last removes the log: it stays as long as this reader.
        reader.execute("SELECT * FROM account").fetchall()
        budget.reserve(RECORD)
        check_kept(memory / f"ledger{ending}")
    assert budget.spent.epsilon == RECORD.epsilon


HARMLESS = {
    "ledger": b"a,b\n1,2\n",
    "state.db": b"",
    "run-wal": b"of no database",
    "run-journal": b"of no database",
    "-wal": b"a name that is an ending",
    "labeler": b"hdp_fast is a package",
    "model.npz": b"PK\3\4 but no archive",
    "long": b"HDP" * 400,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_file_that_merely_has_the_name_is_replaced(memory, name):
    path = memory / name
    path.write_bytes(HARMLESS[name])
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(memory) == [name]


def test_an_archive_of_results_is_replaced(memory):
    path = memory / "statistics.npz"
    for _ in range(2):
        statistics().save(path)
    ReleasedStatistics.load(path)


def test_looking_at_a_file_leaves_the_locks_of_this_process_alone(memory):
    path = memory / "state"
    FACES["checkpoint"].make(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert describe_kept(path) == "a database of SQLite"
        lock = f"sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN EXCLUSIVE')"
        other = [sys.executable, "-c", f"import sqlite3; {lock}"]
        done = subprocess.run(other, check=False, capture_output=True, text=True)
        assert "database is locked" in done.stderr
        holder.execute("ROLLBACK")
