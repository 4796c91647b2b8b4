"""What a run of SubsampleTestReweigh has released so far, in memory or in a file that survives it.

Only what is released anyway is written: hypotheses and the agents' estimates, never weights, which
follow from the records and the hypotheses. A hypothesis is written before it is shown to anybody,
so that a round is either repeated unseen or never repeated; a test is written before its agents are
asked, so that nobody is asked twice.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ._single import Single
from .exceptions import CheckpointError

_APPLICATION = int.from_bytes(b"HDPt", "big")
_VERSION = 1
# Another process holds the file as long as it runs: there is no point in waiting.
_PATIENCE_SECONDS = 0.2

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
    "CREATE TABLE run (settings TEXT NOT NULL)",
    "CREATE TABLE round (number INTEGER PRIMARY KEY, hypothesis TEXT NOT NULL)",
    "CREATE TABLE test (id INTEGER PRIMARY KEY, place INTEGER, agents INTEGER, answer TEXT)",
)


class Journal(Single):
    """A file of mode 0600 that one run holds at a time; without a path nothing is kept.

    A run without a file is that of one process: a forked child cannot go on with it.

    Attributes:
        settings: those that the run began with.
        hypotheses: as JSON, of round 1 and those after it.
        answers: of the tests that ended, by their place in the plan.
        asked: agents asked in all tests, those included whose answers were lost.
    """

    _copied = "release the same rounds again"
    _instead = "resume in that process, or give the run a checkpoint"

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]):
        """Reads the journal, or begins one with these settings.

        Raises: CheckpointError for a file that is none, damaged, held by another run or cannot be
            written.
        """
        super().__init__()
        self._path = None if path is None else Path(path).absolute()
        self._connection: sqlite3.Connection | None = None
        self.settings: dict[str, Any] = settings
        self.hypotheses: list[str] = []
        self.answers: dict[int, Any] = {}
        self.asked = 0
        if self._path is not None:
            with _opened(self._path) as connection:
                _begin(connection, settings)
                self._read(connection)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps all others from the file; what is noted meanwhile is written at once.

        Raises: CheckpointError as the class, and when the run has gone on elsewhere;
            ParameterError in a forked child where there is no file to tell.
        """
        if self._path is None:
            with self._held():
                yield
            return
        with _opened(self._path) as connection:
            known = (self.settings["run"], len(self.hypotheses), self.asked)
            self._read(connection)
            if known != (self.settings["run"], len(self.hypotheses), self.asked):
                raise _refusal(self._path, "its run has gone on elsewhere: begin with fit again")
            self._connection = connection
            try:
                yield
            finally:
                self._connection = None
                # Ctrl-C may have come between a line in the file and the same here.
                self._read(connection)

    def hypothesis(self, number: int, text: str) -> None:
        """Notes what the next round released; again, if that was interrupted."""
        self._write("INSERT OR REPLACE INTO round VALUES (?, ?)", number, text)
        self.hypotheses.append(text)

    def asking(self, place: int, agents: int) -> None:
        """Notes that a test begins."""
        self._write("INSERT INTO test VALUES (NULL, ?, ?, NULL)", place, agents)
        self.asked += agents

    def answered(self, place: int, answer: Any) -> None:
        """Notes how a test ended."""
        query = "UPDATE test SET answer = ? WHERE place = ? AND answer IS NULL"
        self._write(query, json.dumps(answer), place)
        self.answers[place] = answer

    def forget_unanswered(self) -> None:
        """Takes back tests that were begun: with fixed coins the same answers come again."""
        if self._path is not None:
            with _opened(self._path) as connection:
                connection.execute("DELETE FROM test WHERE answer IS NULL")
                self._read(connection)

    def _write(self, query: str, *values: Any) -> None:
        if self._connection is not None and self._path is not None:
            try:
                self._connection.execute(query, values)
            except sqlite3.Error as error:
                raise _refusal(self._path, f"it must stay writable ({error})") from error

    def _read(self, connection: sqlite3.Connection) -> None:
        assert self._path is not None
        try:
            ((settings,),) = connection.execute("SELECT settings FROM run").fetchall()
            rounds = connection.execute("SELECT * FROM round ORDER BY number").fetchall()
            tests = connection.execute("SELECT place, agents, answer FROM test").fetchall()
            if [number for number, _ in rounds] != list(range(1, len(rounds) + 1)):
                raise ValueError("rounds are missing")
            self.settings = dict(json.loads(settings))
            self.answers = {place: json.loads(text) for place, _, text in tests if text is not None}
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise _refusal(self._path, f"it must be whole ({error})") from error
        self.hypotheses = [text for _, text in rounds]
        self.asked = sum(agents for _, agents, _ in tests)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, locked until it is closed; every statement is a transaction of its own."""
    with closing(_connected(path)) as connection:
        yield connection


def _connected(path: Path) -> sqlite3.Connection:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        _check_header(path)
        connection = sqlite3.connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)
    except OSError as error:
        raise _refusal(path, f"it must be a file that can be written ({error})") from error
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        connection.close()
        busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        rule = "no other run may be using it" if busy else f"it must be whole ({error})"
        raise _refusal(path, rule) from error
    return connection


def _begin(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return
    connection.execute("BEGIN EXCLUSIVE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO run VALUES (?)", (json.dumps(settings),))
    connection.execute("COMMIT")


def _check_header(path: Path) -> None:
    """Looks without SQLite, which would take a foreign file for a damaged one."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    numbers = {at: int.from_bytes(header[at : at + 4], "big") for at in (60, 68)}
    if not header.startswith(b"SQLite format 3\0") or numbers[68] not in (0, _APPLICATION):
        raise _refusal(path, "it must be a checkpoint of hdp_fast.transfer")
    if numbers[60] not in (0, _VERSION):
        rule = f"its format must be {_VERSION}, the one that this hdp_fast knows"
        raise _refusal(path, f"{rule}, and it is {numbers[60]}")


def _refusal(path: Path, rule: str) -> CheckpointError:
    return CheckpointError(f"checkpoint = {str(path)!r}, but {rule}")
