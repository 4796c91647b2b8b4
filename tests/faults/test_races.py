"""Many at once for what there is only so much of: exactly that much is granted."""

import contextlib
import itertools
import multiprocessing
import os

import numpy as np
import pytest
from harness import figure, program, size, together, watched, whole
from processes import exit_code, forked, forking
from verbs import COST, entries, show

from hdp_fast import Budget
from hdp_fast.exceptions import BudgetExceeded, CheckpointError
from hdp_fast.labels import PrivateLabeler
from hdp_fast.learners import ExponentialLearner, Stumps
from hdp_fast.local import Agents
from hdp_fast.transfer import SubsampleTestReweigh

pytestmark = forking


def at_once(work, processes):
    """Forks children that begin together, and asserts that all end well."""
    waiting, starting = os.pipe()

    def child():
        os.close(starting)
        os.read(waiting, 1)  # until no one can write any more
        work()

    children = [forked(child) for _ in range(processes)]
    os.close(waiting)
    os.close(starting)
    assert [exit_code(number, 60) for number in children] == [0] * processes


def spend(path):
    """Pays until there is nothing left; how often that was."""
    budget, paid = Budget.open(path), 0
    with contextlib.suppress(BudgetExceeded):
        while True:
            with budget.reserve(COST):
                paid += 1
    return paid


def spend_in_threads(path):
    """As spend, in four threads, for a process of its own."""
    together([lambda: spend(path)] * 4)


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize(("processes", "grants"), [(8, 300), (32, 300)])
def test_forked_processes_share_one_ledger(memory, processes, grants):
    path, grants = memory / "ledger", size(grants // 5, grants)
    Budget.open(path, epsilon=grants / 100)
    reading, writing = os.pipe()

    def child():
        os.write(writing, b"x" * spend(path))

    at_once(child, processes)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"x" * grants
    assert len(entries(path)) == grants
    assert Budget.open(path).remaining.epsilon == 0
    figure(f"race for one ledger: fork, {processes} processes", grants, "exactly as many granted")


@pytest.mark.thorough(beside="test_forked_processes_share_one_ledger")
def test_spawned_processes_with_threads_share_one_ledger(memory):
    path, processes, grants = memory / "ledger", size(2, 4), size(40, 200)
    Budget.open(path, epsilon=grants / 100)
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=spend_in_threads, args=(path,)) for _ in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * processes
    assert len(entries(path)) == grants
    assert Budget.open(path).remaining.epsilon == 0
    figure(
        f"race for one ledger: spawn, {processes} x 4 threads", grants, "exactly as many granted"
    )


@pytest.mark.thorough(beside="test_forked_processes_share_one_ledger")
def test_eight_processes_make_one_ledger(memory):
    races = size(4, 30)
    for race in range(races):
        path = memory / f"ledger {race}"

        def make():
            with Budget.open(path, epsilon=1).reserve(COST):  # noqa: B023
                pass

        at_once(make, 8)
        assert len(entries(path)) == 8
    assert {path.name for path in memory.iterdir()} == {f"ledger {race}" for race in range(races)}
    figure("race to make one ledger, 8 processes", races, "one ledger each time, 8 on its books")


# Labelers -----------------------------------------------------------------------------------------

Q = np.zeros((1, 2))


class Yes:
    """A member, and what trains it."""

    def __call__(self, X, y):
        return self

    def predict(self, Q):
        return np.ones(len(Q), int)


def labeler(queries):
    made = PrivateLabeler(
        Yes(), epsilon=1.0, delta=1e-5, queries=queries, max_unstable=1, classes=[0, 1],
        table="vote", members=2,
    )  # fmt: skip
    return made.fit(np.zeros((4, 2)), np.zeros(4, int))


def ask(made):
    """Queries that were left after each answer, until none was."""
    left = []
    with contextlib.suppress(BudgetExceeded):
        while True:
            left.append(made.label(Q).queries_left)
    return left


@pytest.mark.thorough(beside="test_forked_processes_share_one_ledger")
def test_a_saved_labeler_answers_no_more_in_sixteen_processes(memory):
    pytest.importorskip("joblib")
    queries = size(60, 600)
    reading, writing = os.pipe()
    labeler(queries).save(memory / "kept")

    def child():
        made = PrivateLabeler.load(memory / "kept", trusted=True)
        os.write(writing, "".join(f"{left}\n" for left in ask(made)).encode())

    at_once(child, 16)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert sorted(map(int, pipe)) == list(range(queries))
    whole(memory / "kept.ledger")
    figure("one saved labeler, 16 processes", queries, "exactly as many answers")


def test_a_labeler_in_memory_answers_no_more_in_sixteen_threads():
    queries = size(100, 600)

    def child():
        made = labeler(queries)
        left = itertools.chain(*together([lambda: ask(made)] * 16))
        assert sorted(left) == list(range(queries))

    run = watched(child)
    assert run.code == 0, run.err
    figure("one labeler in memory, 16 threads", queries, "exactly as many answers")


# Checkpoints --------------------------------------------------------------------------------------


def records(n, seed):
    coins = np.random.default_rng(seed)
    X = coins.integers(0, 2, (n, 4), dtype=np.uint8)
    return X, X[:, 0] ^ (coins.random(n) < 0.3)


# Of a process that SQLite has told nothing of its parent's locks, as it tells a forked child.
LOCKED = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0.1).execute("BEGIN EXCLUSIVE")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.thorough(beside="test_forked_processes_share_one_ledger")
@pytest.mark.usefixtures("quick_plan")
def test_one_run_holds_a_checkpoint_whoever_else_looks_at_it(memory):
    """Another thread that is refused must not open the file to other processes."""
    X, y = records(500, 0)
    path = memory / "run"

    class Meanwhile(Agents):
        """Lets others try while their own run holds the file."""

        def test(self, learned, count, *, random_state=None):
            for attempt in (from_a_process, lambda: together([refused] * 2), from_a_process):
                attempt()
            return super().test(learned, count, random_state=random_state)

    def run(agents):
        made = SubsampleTestReweigh(
            ExponentialLearner(Stumps(4), epsilon=1.0), alpha=0.2, kappa=0.5, eta=0.8, rounds=2,
            epsilon=1.0, delta=1e-5, schedule="final", output="smallest", checkpoint=str(path),
        )  # fmt: skip
        made.fit(X, y, agents, random_state=1)

    def refused():
        with pytest.raises(CheckpointError, match="no other run"):
            run(Agents(*records(20_000, 2), epsilon=2.0))
        show("refused")

    def from_a_process():
        assert program(LOCKED, path) == "database is locked\n"
        show("refused")

    done = watched(lambda: run(Meanwhile(*records(20_000, 1), epsilon=2.0)))
    assert done.code == 0, done.err
    tries = done.out.count("refused")
    assert tries >= 4
    figure("one checkpoint, held: two threads and a process try", tries, "each one refused")
