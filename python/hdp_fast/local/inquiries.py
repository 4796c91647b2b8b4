"""What was asked of remote agents and what they answered, in memory or in a file.

A question, or a stage of them, is written before it goes out, so that no one is asked twice, and a
batch of answers before it counts. The file holds questions, which are released, and randomized
answers.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._support.sqlite import FileFormat, StateFile, Statements
from ..exceptions import AgentsExhausted, CheckpointError
from .stages import KEY_BYTES, Stage, is_stage
from .transports import BITS, Batch, Replies, sort_batch

_FORMAT = FileFormat(
    application=b"HDPr",
    version=3,
    tables={
        "pool": "epsilon REAL NOT NULL, key TEXT NOT NULL",
        "question": "number INTEGER PRIMARY KEY, text TEXT NOT NULL, agents INTEGER NOT NULL, "
        "ended INTEGER NOT NULL",
        "batch": "number INTEGER PRIMARY KEY, question INTEGER NOT NULL, replies TEXT NOT NULL",
    },
    noun="the state of hdp_fast.local.RemoteAgents",
    argument="state",
    error=CheckpointError,
)


class Inquiry(Replies):
    """A question or a stage of them to some agents, and their replies.

    Attributes:
        number: Its number among all questions, from 1.
        text: The question. A stage lacks its key and the numbers of its people.
        before: Number of agents that were asked before it.
        is_past: Whether others were asked after it: what had come by then was taken, or nothing.
    """

    is_past = False

    def __init__(self, number: int, text: str, count: int, before: int):
        content = json.loads(text) if text else None
        self._outline = content if is_stage(content) else None
        several = 1 if self._outline is None else len(self._outline["queries"])
        super().__init__(count, BITS * several)
        self.number, self.text, self.before = number, text, before

    def write(self, key: bytes) -> str:
        """The question as it is sent."""
        return self.text if self._outline is None else self.stage(key).to_json()

    def stage(self, key: bytes) -> Stage:
        """The stage as it is sent; the text must be one."""
        assert self._outline is not None
        queries, shares = self._outline["queries"], self._outline["shares"]
        return Stage(queries, shares, key=key, first=self.before + 1, count=self.count)


class Inquiries:
    """All questions to a pool of agents; those without a path are kept in memory.

    Attributes:
        asked: Number of agents that were asked.
        answered: Number of answers that count.
        dropped: Number of replies that were no answer.
        duplicates: Number of replies whose id came before.
    """

    def __init__(self, path: str | os.PathLike[str] | None, epsilon: float):
        """Reads the questions at `path`, or begins to write them there.

        Raises:
            CheckpointError: The file is no such state, is damaged, cannot be written, or belongs to
                agents of another epsilon.
        """
        self.asked = self.answered = self.dropped = self.duplicates = 0
        # Whose question is which, all questions through: each agent is asked once.
        self.key = _draw_key()
        self._last = 0
        self._known: set[str] = set()
        # Those whose answers no one has got yet, and those whose answers somebody has; the latter
        # stay open with others until the answers to all of them are there.
        self._open: dict[tuple[str, int], list[Inquiry]] = {}
        self._returned: list[int] = []
        self._kept: list[Inquiry] | None = None
        self._file = None if path is None else StateFile(_FORMAT, path)
        if self._file is not None:
            self._open_file(self._file, epsilon)

    def begin(self, text: str, count: int, size: int) -> Inquiry:
        """Writes that the next agents are asked, before they are.

        Questions whose answers were returned before have ended now: their answers were used.

        Raises:
            AgentsExhausted: Fewer than `count` of `size` agents are left. Nothing is written.
        """
        if self._file is None:
            asked, number = self.asked, self._last + 1
            self._require(count, size - asked)
        else:
            with self._file.transaction() as statements:
                # Another process may have asked some of them.
                others = statements.select("question", "WHERE number > ?", self._last)
                asked = self.asked + sum(agents for _, _, agents, _ in others)
                self._require(count, size - asked)
                for returned in self._returned:
                    statements.update("question", {"ended": 1}, "WHERE number = ?", returned)
                number = statements.insert("question", None, text, count, int(not text))
        self._returned = []
        self._last, self.asked = number, asked + count
        return Inquiry(number, text, count, asked)

    def add(self, inquiry: Inquiry, replies: Any) -> None:
        """Sorts a batch of replies, writes it, and adds it to its question."""
        batch = sort_batch(replies, inquiry.room, self._known, inquiry.reports)
        if not (batch.reports or batch.dropped or batch.duplicates):
            return
        if self._file is not None:
            with self._file.transaction() as statements:
                statements.insert("batch", None, inquiry.number, json.dumps(batch))
        self._count(inquiry, batch)

    def _count(self, inquiry: Inquiry, batch: Batch) -> None:
        inquiry.add(batch)
        self._known.update(key for key in batch.ids if key is not None)
        self.answered += len(batch.reports)
        self.dropped += batch.dropped
        self.duplicates += batch.duplicates

    def reopen(self, text: str, count: int) -> Inquiry | None:
        """Takes the question of this text and number whose answers no one has got, if any."""
        waiting = self._open.get((text, count))
        return waiting.pop(0) if waiting else None

    @property
    def open_agents(self) -> int:
        """The number of agents of the questions whose answers no one has got yet."""
        return sum(inquiry.count for waiting in self._open.values() for inquiry in waiting)

    def count_new(self, questions: Iterable[tuple[str, int]]) -> int:
        """Counts the agents of the questions, of these texts and numbers, that are not open."""
        missing = Counter(questions)
        missing.subtract({key: len(waiting) for key, waiting in self._open.items()})
        return sum(count * max(times, 0) for (_, count), times in missing.items())

    @contextmanager
    def keep_all(self) -> Iterator[None]:
        """Keeps questions open, though their answers are returned, until the block has ended well.

        Inside another such block it does nothing.
        """
        if self._kept is not None:
            yield
            return
        kept: list[Inquiry] = []
        self._kept = kept
        try:
            yield
        except BaseException:
            for inquiry in kept:
                # Later answers would change what was asked by the earlier ones.
                inquiry.is_past = inquiry.number < self._last
                self._wait_for(inquiry)
            raise
        finally:
            self._kept = None
        self._returned.extend(inquiry.number for inquiry in kept)

    def _wait_for(self, inquiry: Inquiry) -> None:
        self._open.setdefault((inquiry.text, inquiry.count), []).append(inquiry)

    @contextmanager
    def keep(self, inquiry: Inquiry) -> Iterator[None]:
        """Keeps a question open if its replies are not all taken, for `reopen`."""
        try:
            yield
        except BaseException:
            self._wait_for(inquiry)
            raise
        if self._kept is None:
            self._returned.append(inquiry.number)
        else:
            self._kept.append(inquiry)

    def _require(self, count: int, left: int) -> None:
        if count > left:
            raise AgentsExhausted(f"count = {count}, but {left} agents are left")

    def _open_file(self, file: StateFile, epsilon: float) -> None:
        if not os.path.exists(file.path):
            key = self.key.hex()
            file.create(lambda new: new.insert("pool", float(epsilon), key))
        file.inspect()
        with file.open_connection() as statements, statements.snapshot():
            file.verify(statements)
            with file.translate_damage():
                ((stored, key),) = statements.select("pool")
                self.key = bytes.fromhex(key)
                if len(self.key) != KEY_BYTES:
                    raise ValueError("the key has another length")
                self._read(statements)
        if stored != epsilon:
            raise file.refusal(f"its agents answer with epsilon = {stored:g}, not {epsilon:g}")

    def _read(self, statements: Statements) -> None:
        """Raises ValueError, TypeError or LookupError for what was never written."""
        inquiries = {}
        for number, text, count, ended in statements.select("question"):
            if number < 1 or count < 0 or ended not in (0, 1):
                raise ValueError("a question has no number, no agents or no end")
            inquiries[number] = inquiry = Inquiry(number, text, count, self.asked)
            self._last, self.asked = number, self.asked + count
            if not ended:
                self._wait_for(inquiry)
        for inquiry in inquiries.values():
            inquiry.is_past = inquiry.number < self._last
        for _, number, text in statements.select("batch"):
            self._count(inquiries[number], self._sort_again(inquiries[number], json.loads(text)))

    def _sort_again(self, inquiry: Inquiry, fields: Any) -> Batch:
        """A batch that was written: two processes may have collected the same answers."""
        stored = _check_batch(fields, inquiry.reports)
        pairs = zip(stored.ids, stored.reports, strict=True)
        replies = [report if key is None else (key, report) for key, report in pairs]
        batch = sort_batch(replies, inquiry.room, self._known, inquiry.reports)
        return batch._replace(
            dropped=batch.dropped + stored.dropped,
            duplicates=batch.duplicates + stored.duplicates,
        )


def _draw_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def _check_batch(fields: Any, most: int) -> Batch:
    reports, ids, dropped, duplicates = fields
    if not all(type(count) is int and count >= 0 for count in (dropped, duplicates)):
        raise ValueError("a number of replies is none")
    if not all(type(report) is int and 0 <= report < most for report in reports):
        raise ValueError("an answer is none")
    if not (len(ids) == len(reports) and all(key is None or isinstance(key, str) for key in ids)):
        raise ValueError("ids do not belong to answers")
    return Batch(reports, ids, dropped, duplicates)
