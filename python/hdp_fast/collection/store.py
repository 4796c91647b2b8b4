"""The database of a collector: stages, tokens and answers, with nothing that links the latter two.

Tokens and answers are in tables of their own, which are keyed by hashes and by random ids. They
have no rowid, no time and no number of arrival. Within a transaction tokens are burned, and answers
written, in the order of their keys. A burned token differs from a fresh one by one byte at its
place. What order pages and the log keep is removed by `AnswerStore.tidy`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from .._support.sqlite import FileFormat, StateFile, Statements
from .._support.validate import refuse, shorten
from ..exceptions import HdpFastError, NeverAsked, ParameterError

_FORMAT = FileFormat(
    application=b"HDPc",
    version=1,
    tables={
        "stage": "number INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, "
        "closed INTEGER NOT NULL, published REAL NOT NULL, hypothesis TEXT NOT NULL, "
        "envelope TEXT NOT NULL",
    },
    unordered={
        "invitation": "token BLOB PRIMARY KEY NOT NULL, number INTEGER NOT NULL, "
        "burned INTEGER NOT NULL",
        "answer": "stage INTEGER NOT NULL, id BLOB NOT NULL, report INTEGER NOT NULL, "
        "PRIMARY KEY (stage, id)",
    },
    noun="the answers of a study",
    argument="study",
    error=ParameterError,
    logged=True,
)
_STAGES = "SELECT number, first, count, closed, published FROM stage ORDER BY number"
# How often the log is emptied again where somebody was just reading it.
_ATTEMPTS, _PAUSE_SECONDS = 50, 0.02


@dataclass(frozen=True)
class PublishedStage:
    """A stage that has gone out.

    Attributes:
        number: Its number among those of the study.
        first: Number of the first person who was invited to it.
        count: Number of people who were; their numbers follow one another.
        closed: Whether answers are refused by now.
        published: When it went out, in seconds since 1970, by the clock of the machine.

    Examples:
        >>> from hdp_fast import collection
        >>> study = collection.Study.create(
        ...     "study", asker="City of Example", epsilon=1.0, people=9, url="https://example.org"
        ... )
        >>> stage = study.publish('{"kind": "query", "terms": []}', 4)
        >>> stage.number, stage.first, stage.count, stage.closed
        (1, 1, 4, False)
    """

    number: int
    first: int
    count: int
    closed: bool
    published: float


class Answer(NamedTuple):
    """A line that came with a token, as a collector takes it: hash, stage, id and report."""

    token: bytes
    stage: int
    id: bytes
    report: int


class Outcome(Enum):
    """What has become of an answer."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown token"
    BURNED = "answered otherwise"
    CLOSED = "closed"


def hash_token(token: bytes) -> bytes:
    """What is stored of a token of 16 bytes."""
    return hashlib.sha256(token).digest()


class AnswerStore:
    """The file with the stages of a study, its tokens and its answers.

    Any number of processes may use it at once.
    """

    def __init__(self, path: Path):
        """Raises a ParameterError if `path` is no path."""
        self._file = StateFile(_FORMAT, path)

    def create(self, tokens: Sequence[bytes]) -> None:
        """Makes the file, with a token for each of the numbers 1, 2, ..."""
        rows = sorted((hash_token(token), number) for number, token in enumerate(tokens, start=1))
        query = "INSERT INTO invitation VALUES (?, ?, 0)"
        self._file.create(lambda new: new.write_many(query, rows))

    def check(self) -> None:
        """Checks that the file is whole.

        Raises:
            ParameterError: It is not, or is no such file.
        """
        self._file.inspect()
        with self._file.open_connection() as statements, statements.snapshot():
            self._file.verify(statements)

    def publish(
        self,
        hypothesis: str,
        count: int,
        people: int,
        write: Callable[[int], str],
        *,
        first: int | None = None,
        number: int | None = None,
    ) -> PublishedStage:
        """Adds a stage; it is on the disk before this returns.

        Args:
            hypothesis: What is asked.
            count: Number of people who are invited.
            people: Number of people in the study.
            write: Makes the envelope from the number of the stage.
            first: Number of the first of them; None takes those after all who were invited.
            number: Number of the stage; None takes the next one.

        Returns:
            The stage.

        Raises:
            ParameterError: There is a stage of this number, some of these people were invited to
                another one, or there are not so many.
        """
        with self._file.transaction() as statements:
            stages = _read_stages(statements)
            if number is not None and any(stage.number == number for stage in stages):
                rule = "another state, or a newer copy of this one, has asked its people"
                help_ = "take that state, or another study; the same call again takes their answers"
                raise ParameterError(
                    f"number = {number}, but the study has a stage of it, since {rule}: {help_}"
                )
            new = number or 1 + max((stage.number for stage in stages), default=0)
            free = max((stage.first + stage.count for stage in stages), default=1)
            start = free if first is None else first
            if start < free:
                refuse(
                    "first", start, f"everybody below {free:,} was invited before: none is twice"
                )
            if start + count - 1 > people:
                left = max(people - start + 1, 0)
                refuse("count", count, f"the study has {left:,} people from number {start:,} on")
            stage = PublishedStage(new, start, count, False, time.time())
            row = (new, start, count, 0, stage.published, hypothesis, write(new))
            statements.insert("stage", *row)
        return stage

    def find(self, hypothesis: str, number: int | None) -> PublishedStage:
        """The stage of this number, or without one the last that asked this.

        Raises:
            NeverAsked: There is none.
        """
        with self._file.open_connection() as statements, statements.snapshot():
            rows = statements.select("stage", "WHERE hypothesis = ?", hypothesis)
        for new, first, count, closed, published, *_ in reversed(rows):
            if number in (None, new):
                return PublishedStage(new, first, count, bool(closed), published)
        text = f"hypothesis = {shorten(hypothesis)} and number = {number}"
        raise NeverAsked(f"{text}, but no such stage is in {self._file.path}")

    def close(self, number: int) -> None:
        """Closes a stage: no answer to it is accepted any more."""
        with self._file.transaction() as statements:
            statements.update("stage", {"closed": 1}, "WHERE number = ?", number)
        # What is accepted is safe: a full disk leaves its order in the pages until the next time.
        with suppress(HdpFastError):
            self.tidy()

    def stages(self) -> list[PublishedStage]:
        """All stages by their numbers."""
        with self._file.open_connection() as statements:
            return _read_stages(statements)

    def answers(self, number: int) -> list[tuple[str, int]]:
        """The answers to a stage, an id in hexadecimal and a report each, by their ids."""
        query = "SELECT id, report FROM answer WHERE stage = ? ORDER BY id"
        with self._file.open_connection() as statements:
            return [(key.hex(), report) for key, report in statements.rows(query, number)]

    def count(self, number: int) -> int:
        """The number of answers to a stage."""
        with self._file.open_connection() as statements:
            return _count(statements, "SELECT COUNT(*) FROM answer WHERE stage = ?", number)

    def count_burned(self) -> int:
        """The number of people who have answered."""
        with self._file.open_connection() as statements:
            return _count(statements, "SELECT COUNT(*) FROM invitation WHERE burned = 1")

    def tidy(self) -> None:
        """Writes all pages anew, in the order of keys, and empties the log.

        Raises:
            ParameterError: The disk is full, or another process holds the file for too long.
        """
        with self._file.open_connection() as statements:
            # The copy on its way must not lie in a folder of temporary files.
            statements.write("PRAGMA temp_store = MEMORY")
            statements.write("VACUUM")
            for _ in range(_ATTEMPTS):
                if empty_log(statements):
                    return
                time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def open_desk(self) -> Iterator[Desk]:
        """Opens the file for a server, which answers about tokens and takes lines."""
        reading = self._file.open_connection(threads=True)
        with reading as reader, self._file.open_connection(threads=True) as writer:
            # What is freed is overwritten.
            writer.rows("PRAGMA secure_delete = ON")
            yield Desk(reader, writer)


class Desk:
    """Where a server looks up tokens, and writes groups of answers.

    Reading never waits for writing. `begin`, `take` and `commit` follow one another, and may run in
    several threads, one at a time: the first and the last wait for the disk.
    """

    def __init__(self, reader: Statements, writer: Statements):
        self._reader, self._writer = reader, writer

    def find(self, token: bytes) -> tuple[int, bool] | None:
        """The number of a token's hash, and whether it is burned; None for an unknown one."""
        query = "SELECT number, burned FROM invitation WHERE token = ?"
        for number, burned in self._reader.rows(query, token):
            return number, bool(burned)
        return None

    def stages(self) -> list[PublishedStage]:
        """All stages by their numbers."""
        return _read_stages(self._reader)

    def read_envelope(self, number: int) -> str:
        """The envelope of a stage that there is."""
        ((*_, envelope),) = self._reader.select("stage", "WHERE number = ?", number)
        return str(envelope)

    def begin(self) -> None:
        """Begins a group of answers; no other process writes meanwhile."""
        self._writer.write("BEGIN IMMEDIATE")

    def take(self, group: Sequence[Answer]) -> list[Outcome]:
        """Burns tokens and writes answers.

        Args:
            group: Answers with tokens that may be unknown, burned or the same.

        Returns:
            What has become of each. A line that was accepted before with a burned token is accepted
            again: its sender has not heard of it.
        """
        outcomes = [Outcome.BURNED] * len(group)
        closed = "SELECT number FROM stage WHERE closed = 0"
        is_open = {number for (number,) in self._writer.rows(closed)}
        burned, written, repeated = set[bytes](), set[tuple[int, bytes]](), list[int]()
        for place in sorted(range(len(group)), key=lambda place: group[place].token):
            token, stage, key, _ = group[place]
            known = self._writer.rows("SELECT burned FROM invitation WHERE token = ?", token)
            if not known:
                outcomes[place] = Outcome.UNKNOWN
            elif token in burned or known[0][0]:
                repeated.append(place)
            elif stage not in is_open:
                outcomes[place] = Outcome.CLOSED
            elif (stage, key) not in written and not self._holds(stage, key):
                burned.add(token)
                written.add((stage, key))
                outcomes[place] = Outcome.ACCEPTED
        # In the order of their keys, which is not the one in which they came.
        burn = "UPDATE invitation SET burned = 1 WHERE token = ?"
        self._writer.write_many(burn, ((token,) for token in sorted(burned)))
        taken = zip(group, outcomes, strict=True)
        rows = (answer[1:] for answer, outcome in taken if outcome is Outcome.ACCEPTED)
        self._writer.write_many("INSERT INTO answer VALUES (?, ?, ?)", sorted(rows))
        for place in repeated:
            _, stage, key, report = group[place]
            if self._holds(stage, key, report):
                outcomes[place] = Outcome.ACCEPTED
        return outcomes

    def _holds(self, stage: int, key: bytes, report: int | None = None) -> bool:
        query = "SELECT report FROM answer WHERE stage = ? AND id = ?"
        stored = self._writer.rows(query, stage, key)
        return bool(stored) and report in (None, stored[0][0])

    def commit(self) -> None:
        """Puts the group on the disk."""
        self._writer.write("COMMIT")

    def roll_back(self) -> None:
        """Forgets the group, if one was begun."""
        with suppress(HdpFastError):
            self._writer.write("ROLLBACK")

    def empty_log(self) -> bool:
        """Empties the log, which shows what came together; returns whether it is empty."""
        return empty_log(self._writer)


def empty_log(statements: Statements) -> bool:
    """Moves the log into the file and cuts it to nothing; False if somebody is reading it."""
    ((is_busy, *_),) = statements.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return not is_busy


def _read_stages(statements: Statements) -> list[PublishedStage]:
    return [
        PublishedStage(number, first, count, bool(closed), published)
        for number, first, count, closed, published in statements.rows(_STAGES)
    ]


def _count(statements: Statements, query: str, *values: object) -> int:
    ((count,),) = statements.rows(query, *values)
    return int(count)
