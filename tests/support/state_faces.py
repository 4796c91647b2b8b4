"""The five kinds of files that hold state, each made, shown and used as its owner does it."""

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hdp_fast import Budget, PrivacyRecord
from hdp_fast._support.sqlite import row_digest
from hdp_fast.collection.device import answer_once
from hdp_fast.collection.questions import frequency_question
from hdp_fast.exceptions import CheckpointError, HdpFastError, ParameterError
from hdp_fast.labels.fitted import UsageAccount
from hdp_fast.local import RemoteAgents
from hdp_fast.transfer.checkpoint import Journal

RECORD = PrivacyRecord(
    mechanism="test", source="s", neighbors="replace_one", epsilon=0.125, noise="none"
)
SETTINGS = {"plan": {"rounds": 4}, "learner": "a", "coins": None, "run": "b", "seed": None}
SETTINGS |= {"finalists": [1, 4], "answered before": 0, "salt": "c", "digest": "d"}


def make_ledger(path):
    budget = Budget.open(path, epsilon=1)
    with budget.reserve(RECORD):
        pass
    with budget.sequential(0.25, name="inner").reserve(RECORD):
        pass
    budget.parallel().part("a").reserve(RECORD)


def show_ledger(path):
    budget = Budget.open(path)
    return repr(budget), budget.to_json(), budget.records, budget._repr_html_()


def make_checkpoint(path):
    journal = Journal(path, SETTINGS)
    with journal.lock():
        journal.add_hypothesis(1, '{"a": 1}')
        journal.begin_test(0, 100)
        journal.end_test(0, [1, 0.5, 0.25, 0.75, 100])
        journal.add_hypothesis(2, '{"a": 2}')
        journal.begin_test(1, 100)


def show_checkpoint(path):
    journal = Journal(path, SETTINGS)
    read = journal.settings, journal.hypotheses, journal.answers
    return *read, journal.asked, journal.begun


def answer(path, name, draw):
    asked = frequency_question(name, randomizer="kary", epsilon=1.0, categories=None, k=3)
    return answer_once(path, asked, draw)


def make_answers(path):
    for name in "ab":
        answer(path, name, lambda name=name: f"line {name}")


def show_answers(path):
    lines = [answer(path, name, lambda: pytest.fail("drawn again")) for name in "ab"]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return lines, connection.execute("SELECT COUNT(*) FROM answer").fetchall()


def make_account(path):
    account = UsageAccount()
    with account.payment() as usage:
        usage.bottoms, usage.queries = 1, 2
    with account.move_to(path, "key", path.with_name("members")):
        pass


def spend_account(path):
    with UsageAccount(path, "key").payment() as usage:
        usage.queries += 1


def go_on(path):
    journal = Journal(path, SETTINGS)
    with journal.lock():
        journal.add_hypothesis(len(journal.hypotheses) + 1, '{"a": 3}')


class Hypothesis:
    """A hypothesis of this name, for remote agents."""

    def __init__(self, name):
        self.hypothesis = {"kind": name}


def reply_once(text, count):
    """Some agents answer, then the line breaks."""
    yield [("a", 1), ("b", 0), ("a", 1), None]
    raise ConnectionError


def open_agents(path, ask=reply_once):
    return RemoteAgents(ask, epsilon=1.0, count=100, state=path)


def make_agents(path):
    agents = open_agents(path)
    for name in "xy":
        with contextlib.suppress(ConnectionError):
            agents.test(Hypothesis(name), 3)
    agents.pass_over(2)


def show_agents(path):
    agents = open_agents(path, pytest.fail)
    answers = [agents.recall(Hypothesis(name), 3).tolist() for name in "xy"]
    return agents.counts(), answers


def seal(path):
    """Gives each row the digest of what stands in it, and the file their sum: a forger's work."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        total = 0
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'total'"
        for (table,) in connection.execute(query).fetchall():
            for number, *row, _ in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
                digest = row_digest(table, row)
                total += int.from_bytes(digest)
                change = f"UPDATE {table} SET digest = ? WHERE rowid = ?"
                connection.execute(change, (digest, number))
        connection.execute("UPDATE total SET digest = ?", ((total % 2**256).to_bytes(32),))


@dataclass(frozen=True)
class Face:
    """How one kind of state files is used.

    make writes a new file, show reads all there is, more writes to it; error is what they raise.
    """

    make: Callable[[Path], object]
    show: Callable[[Path], Any]
    more: Callable[[Path], object]
    error: type[HdpFastError]


FACES = {
    "ledger": Face(
        make_ledger,
        show_ledger,
        lambda path: Budget.open(path).reserve(RECORD),
        ParameterError,
    ),
    "checkpoint": Face(make_checkpoint, show_checkpoint, go_on, CheckpointError),
    "answers": Face(
        make_answers,
        show_answers,
        lambda path: answer(path, "c", lambda: "line"),
        ParameterError,
    ),
    "account": Face(
        make_account,
        lambda path: UsageAccount(path, "key").usage(),
        spend_account,
        CheckpointError,
    ),
    "agents": Face(
        make_agents,
        show_agents,
        lambda path: open_agents(path).pass_over(3),
        CheckpointError,
    ),
}


def check_refusal(face, path, message="but "):
    """That each way of using a file says in one line what is wrong."""
    for use in (face.show, face.more):
        with pytest.raises(face.error, match=message) as caught:
            use(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
