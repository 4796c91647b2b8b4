"""A folder as the way to people and back: questions go out as files, reports come in as lines."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO

from .._support import atomic
from .._support.validate import file_path, positive, positive_int, refuse
from ..data.reading import open_regular, parse_file, read_safely
from ..exceptions import NeverAsked, ParameterError
from .questions import Question, hypothesis_question
from .reports import LONGEST_LINE, LineForm, split_lines

_QUESTION = "question.json"
# The bytes of a file that are read at once.
_PIECE = 1 << 24
# More than two million lines.
_MOST_BYTES = 1 << 30
_NUMBER = re.compile("[0-9]{1,18}")
# The id of a question: its folder, its number among those of RemoteAgents, and coins.
_ID = re.compile("[0-9]+-(?:([0-9]+)-)?[0-9a-f]{16}")

# Called with the folder of a question and a number of people.
Invite = Callable[[Path, int], Awaitable[object] | object]
# The pairs of an id and a bit in new lines, and None for each line that is refused.
Replies = list[tuple[str, int] | None]


class ReportFolder:
    r"""Reaches real agents through a folder, for `local.RemoteAgents(folder.ask, ...)`.

    Each question has a subfolder 0001, 0002, ... with a file `question.json`. Everything that is
    put there as a file `*.jsonl` is read: lines that hypothesis_line or `hdp-fast local randomize`
    wrote, in any number of files that may grow. `hdp-fast local collect` reads the same files. How
    they travel is the caller's business. A last line may lack its end.

    A folder belongs to one RemoteAgents, and to its `state` where it has one. The id of a question
    holds its number there, so that a new process takes up just the answers to the question that
    was interrupted, and writes one that was never written.

    Others may put anything there. Only regular files are read, and no link is followed; what else
    bears such a name, and what goes beyond `max_bytes`, is ignored, and counts as one line that is
    refused each.

    Args:
        path: The folder, which is made where it is missing.
        invite: Called with the subfolder of a question and a number k. It lets k people know of the
            question who were never asked before, and makes sure that their lines come to that
            subfolder. It may be a coroutine function, and need not wait for answers. It is called
            once a question: a process that ends in the middle of it leaves the rest uninvited, and
            the next one waits for the answers of the others until the deadline.
        epsilon: Privacy parameter of each report, at least 1e-9; the one of RemoteAgents.
        deadline: Seconds, counted from the writing of a question, after which a last look is taken
            at the answers to it, above 0. The wait ends earlier when everybody has answered.
        poll: Seconds between two looks at the folder, above 0.
        max_bytes: The most bytes that are read about one question; a line has some 400.

    Raises:
        ParameterError: An argument breaks its rule, or the folder cannot be made.

    Guarantee:
        Each report is pure epsilon-DP, if its device wrote it with hypothesis_line or the command.
        Whether and when a device answers is visible.

    Examples:
        >>> from types import SimpleNamespace
        >>> from hdp_fast import collection, learners, local
        >>> def invite(folder, count):  # in place of `count` phones, each with record (1, 0), 1
        ...     question = collection.read_question(folder / "question.json")
        ...     lines = [collection.hypothesis_line(question, [1, 0], 1) for _ in range(count)]
        ...     _ = (folder / "monday.jsonl").write_text("\n".join(lines[: count // 2]))
        >>> folder = collection.ReportFolder("survey", invite, epsilon=1.0, deadline=0.01)
        >>> way = {"collect": folder.collect, "state": "survey/agents.db", "response_rate": 0.5}
        >>> agents = local.RemoteAgents(folder.ask, epsilon=1.0, count=100, **way)
        >>> rule = SimpleNamespace(hypothesis=learners.Stumps(1).hypothesis(0))
        >>> agents.test(rule, 20).size, agents.counts()["answered"], agents.remaining
        (10, 10, 80)
    """

    def __init__(
        self,
        path: str | Path,
        invite: Invite,
        *,
        epsilon: float,
        deadline: float,
        poll: float = 1.0,
        max_bytes: int = _MOST_BYTES,
    ):
        if not callable(invite):
            refuse("invite", invite, "it must be callable")
        self._invite, self._epsilon = invite, positive("epsilon", epsilon)
        self._deadline, self._poll = positive("deadline", deadline), positive("poll", poll)
        self._max_bytes = positive_int("max_bytes", max_bytes, 1 << 62)
        self._path = file_path("path", path)
        # Of the subfolders whose questions were read, as they stay as they are.
        self._numbers: dict[str, int | None] = {}
        try:
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            refuse("path", str(path), f"it must be a folder that can be made ({error.strerror})")

    async def ask(
        self, hypothesis: str, count: int, *, number: int | None = None
    ) -> AsyncIterator[Replies]:
        """Asks people about a hypothesis, and yields their answers as they arrive.

        Args:
            hypothesis: The hypothesis as JSON.
            count: Number of people, for `invite`.
            number: Number of the question, which RemoteAgents pass.

        Yields:
            For each new line the id and the bit, or None for a line that is refused.

        Raises:
            ParameterError: The question cannot be written, or the folder has one of this number:
                the state is an older copy, or not the one of this folder. No one is invited.
            Exception: What `invite` raises.
        """
        place, end = self._publish(hypothesis, number), time.monotonic() + self._deadline
        invited = self._invite(place, count)
        if inspect.isawaitable(invited):
            await invited
        async for replies in self._read(place, end):
            yield replies

    async def collect(
        self, hypothesis: str, count: int, *, number: int | None = None
    ) -> AsyncIterator[Replies]:
        """Yields the answers about a hypothesis that people were asked last, until its deadline.

        No one is asked. It is what RemoteAgents call about a question that was interrupted.

        Args:
            hypothesis: The hypothesis as JSON.
            count: Not used, because the people are those who were asked.
            number: Number of the question, which RemoteAgents pass. None takes the last one about
                the hypothesis.

        Yields:
            For each line the id and the bit, or None for a line that is refused. Nothing, if no one
            was asked about the hypothesis, and no number is passed.

        Raises:
            NeverAsked: The folder has no question of this number.
        """
        for place in reversed(self._places()):
            if self._is_question(place, hypothesis, number):
                # A file system may have a clock of its own, which must not make the wait longer.
                age = max(0.0, time.time() - _read_question(place)[1])
                async for replies in self._read(place, time.monotonic() + self._deadline - age):
                    yield replies
                return
        if number is not None:
            raise NeverAsked(f"number = {number}, but no such question is in {self._path}")

    def _places(self) -> list[Path]:
        """The subfolders of questions, and what else bears such a name, in their order."""
        named = (place for place in self._path.iterdir() if _NUMBER.fullmatch(place.name))
        return sorted(named, key=lambda place: int(place.name))

    def _publish(self, hypothesis: str, number: int | None) -> Path:
        """Writes the next question; its id is at random, since devices answer each id once."""
        places = self._places()
        if number is not None and number in map(self._number_in, places):
            have = f"number = {number}, but {self._path} has a question of this number"
            rule = "another state, or a newer copy of this one, has asked its people"
            help_ = "take that state or another folder; the same call again takes their answers"
            raise ParameterError(f"{have}, since {rule}: {help_}")
        place = self._path / f"{1 + (int(places[-1].name) if places else 0):04d}"
        among = "" if number is None else f"{number}-"
        name = f"{place.name}-{among}{secrets.token_hex(8)}"
        question = hypothesis_question(name, hypothesis, epsilon=self._epsilon)
        try:
            place.mkdir()
            content = question.to_json().encode()
            atomic.create(place / _QUESTION, lambda out: out.write(content), 0o644)
        except OSError as error:
            refuse("path", str(place), f"it must be a new folder ({error.strerror})")
        return place

    def _is_question(self, place: Path, hypothesis: str, number: int | None) -> bool:
        """Whether a subfolder has this question; one without a number fits any number."""
        if number is not None and self._number_in(place) not in (None, number):
            return False
        question = _question_in(place)
        return question is not None and question.hypothesis == hypothesis

    def _number_in(self, place: Path) -> int | None:
        """The number of the question in a subfolder, if it has one."""
        if place.name not in self._numbers:
            question = _question_in(place)
            if question is None:
                return None
            form = _ID.fullmatch(question.id)
            self._numbers[place.name] = int(form.group(1)) if form and form.group(1) else None
        return self._numbers[place.name]

    async def _read(self, place: Path, end: float) -> AsyncIterator[Replies]:
        """The answers until `end` by the clock of this process, which no one can set."""
        question, _ = _read_question(place)
        lines = _Lines(place, question, self._max_bytes)
        while True:
            left = end - time.monotonic()
            yield list(lines.read(is_last=left <= 0))
            if left <= 0:
                return
            await asyncio.sleep(min(self._poll, left))


def _read_question(place: Path) -> tuple[Question, float]:
    """The question in a subfolder, and when its file was written.

    Raises:
        ParameterError: The file is none that holds a question.
    """
    path, kind = place / _QUESTION, "question, a JSON object in UTF-8"
    question = parse_file(path, kind, Question.from_json, open_file=open_regular)
    with read_safely(path, kind):
        return question, os.lstat(path).st_mtime


def _question_in(place: Path) -> Question | None:
    try:
        return _read_question(place)[0]
    except ParameterError:
        return None


class _Lines:
    """The lines in the files of a folder that were not read before."""

    def __init__(self, place: Path, question: Question, max_bytes: int):
        self._place, self._form = place, LineForm(question)
        self._left, self._is_full = max_bytes, False
        self._offsets: dict[Path, int] = {}
        # Files whose last line was whole before it had an end.
        self._unended: set[Path] = set()

    def read(self, *, is_last: bool) -> Iterator[tuple[str, int] | None]:
        """Reads all whole lines, and in the end also what is none."""
        for path in sorted(self._place.glob("*.jsonl")):
            # A file that cannot be read now may be readable at the next look.
            try:
                with open_regular(path) as handle:
                    for content in self._read_file(path, handle, is_last):
                        for line, _ in split_lines(io.BytesIO(content)):
                            report = self._form.read(line)
                            yield None if isinstance(report, str) else report
            except OSError:
                if is_last:
                    yield None
        if not self._left and not self._is_full:
            self._is_full = True
            yield None

    def _read_file(self, path: Path, handle: IO[bytes], is_last: bool) -> Iterator[bytes]:
        """One piece of new lines, or in the end all that the file has by now."""
        size, start = os.fstat(handle.fileno()).st_size, self._offsets.get(path, 0)
        # A file that became shorter is another one; ids keep its lines from counting twice.
        start = start if start <= size else 0
        while start < size and self._left:
            handle.seek(start)
            content = handle.read(min(_PIECE, size - start, self._left))
            is_end = is_last and start + len(content) == size
            if not is_end and len(content) < self._left:
                content = self._cut(content)
            if not content:
                return
            start += len(content)
            self._offsets[path] = start
            self._left -= len(content)
            yield content[self._skip(path, content) :]
            if not is_last:
                return

    def _skip(self, path: Path, content: bytes) -> int:
        """The bytes of an end whose line was taken before."""
        end = re.match(rb"\r?\n", content) if path in self._unended else None
        self._unended.discard(path)
        if not content.endswith(b"\n"):
            self._unended.add(path)
        return end.end() if end else 0

    def _cut(self, content: bytes) -> bytes:
        """The lines of a piece that are whole, ended or not."""
        tail = content[content.rfind(b"\n") + 1 :]
        is_whole = len(tail) < LONGEST_LINE and not isinstance(self._form.read(tail), str)
        # A piece without the end of a line is part of one that is too long.
        if is_whole or len(tail) == _PIECE:
            return content
        return content[: len(content) - len(tail)]
