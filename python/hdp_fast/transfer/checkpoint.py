"""What a run of SubsampleTestReweigh has released so far, in memory or in a file that survives it.

The file holds only what is released anyway: hypotheses and the agents' estimates, but no weights,
which follow from the records and the hypotheses. A hypothesis is written before anybody sees it:
either no one has seen a round and it is run again, or it is never run again. A test is written
before its agents are asked, so that no one is asked twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._support.sqlite import FileFormat, StateFile, Statements
from .._support.uncopyable import Uncopyable
from ..exceptions import CheckpointError
from ..local.pool import Hypothesis

_FORMAT = FileFormat(
    application=b"HDPt",
    version=2,
    tables={
        "run": "settings TEXT NOT NULL",
        "round": "number INTEGER PRIMARY KEY, hypothesis TEXT NOT NULL",
        "test": "id INTEGER PRIMARY KEY, place INTEGER, agents INTEGER, answer TEXT",
    },
    noun="a checkpoint of hdp_fast.transfer",
    argument="checkpoint",
    error=CheckpointError,
    busy="no other run may be using it",
)
# Another process holds the file for as long as it runs, so that waiting would not help.
_PATIENCE_SECONDS = 0.2


class Journal(Uncopyable):
    """A file of mode 0600 that one run holds at a time; without a path nothing is written.

    A run without a file belongs to one process: a forked child cannot go on with it.

    Attributes:
        settings: Settings that the run began with.
        hypotheses: Hypotheses as JSON, that of round 1 first.
        answers: Answers of the tests that ended, by the place of the test in the plan.
        asked: Number of agents asked in all tests, those whose answers were lost included.
        begun: Number of agents asked in the tests that did not end, by their place.
    """

    _copied = "release the same rounds again"
    _instead = "resume in that process, or give the run a checkpoint"

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]):
        """Reads the journal at `path`, or begins one with these settings.

        Raises:
            CheckpointError: The file is no checkpoint, is damaged, is held by another run, or
                cannot be written.
        """
        super().__init__()
        self._file = None if path is None else StateFile(_FORMAT, path)
        self._statements: Statements | None = None
        self.settings: dict[str, Any] = settings
        self.hypotheses: list[str] = []
        self.answers: dict[int, Any] = {}
        self.begun: dict[int, int] = {}
        self.asked = 0
        if self._file is not None:
            if not os.path.exists(self._file.path):
                self._file.create(lambda new: new.insert("run", json.dumps(settings)))
            with _lock_file(self._file) as statements:
                self._read(self._file, statements)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps all others from the file; what is added meanwhile is written at once.

        Raises:
            CheckpointError: The file cannot be used, or the run has gone on elsewhere.
            ParameterError: There is no file, and this is a forked child.
        """
        if self._file is None:
            with self._hold():
                yield
            return
        with _lock_file(self._file) as statements:
            known = (self.settings["run"], len(self.hypotheses), self.asked)
            self._read(self._file, statements)
            if known != (self.settings["run"], len(self.hypotheses), self.asked):
                raise self._file.refusal("its run has gone on elsewhere: begin with fit again")
            self._statements = statements
            try:
                yield
            finally:
                self._statements = None
                # Ctrl-C may have come after the file was written and before this object was
                # changed.
                self._read(self._file, statements)

    def add_hypothesis(self, number: int, text: str) -> None:
        """Writes what the next round released, which nothing ever replaces."""
        self._write(lambda file: file.insert("round", number, text))
        self.hypotheses.append(text)

    def restore(self, number: int, restore: Callable[[Any], Hypothesis]) -> Hypothesis:
        """The hypothesis of a round, which `restore` makes from its description.

        Raises:
            CheckpointError: `restore` fails on a description that was read from a file.
        """
        try:
            return restore(json.loads(self.hypotheses[number - 1]))
        except Exception as error:
            if self._file is None:
                raise
            rule = f"the hypothesis of round {number} must be one of the learner's"
            raise self._file.refusal(rule) from error

    def begin_test(self, place: int, agents: int) -> None:
        """Writes that a test begins, and how many agents it asks."""
        self._write(lambda file: file.insert("test", None, place, agents, None))
        self.asked += agents
        if agents:
            self.begun[place] = agents

    def end_test(self, place: int, answer: Any) -> None:
        """Writes the answer with which a test ended."""
        where, change = "WHERE place = ? AND answer IS NULL", {"answer": json.dumps(answer)}
        self._write(lambda file: file.update("test", change, where, place))
        self.answers[place] = answer
        self.begun.pop(place, None)

    def forget_unanswered(self) -> None:
        """Deletes tests that did not end: with a fixed seed they get the same answers again."""
        if self._file is not None:
            with _lock_file(self._file) as statements:
                with statements.transaction():
                    statements.delete("test", "WHERE answer IS NULL")
                self._read(self._file, statements)

    def _write(self, write: Callable[[Statements], object]) -> None:
        if self._file is None or self._statements is None:
            return
        if os.getpid() != self._process:
            # The lock was not inherited.
            rule = "only the process that began the run may go on with it"
            raise self._file.refusal(f"{rule}, which is {self._process}")
        with self._statements.transaction():
            write(self._statements)

    def _read(self, file: StateFile, statements: Statements) -> None:
        with file.translate_damage():
            ((text,),) = statements.select("run")
            rounds = statements.select("round")
            tests = [test for _, *test in statements.select("test")]
            settings = json.loads(text)
            _check_settings(settings)
            if [number for number, _ in rounds] != list(range(1, len(rounds) + 1)):
                raise ValueError("rounds are missing")
            hypotheses = [text for _, text in rounds]
            for text in hypotheses:
                json.loads(text)
            if not all(_is_count(place) and _is_count(agents) for place, agents, _ in tests):
                raise ValueError("a test has no place or no agents")
            answers = {place: json.loads(text) for place, _, text in tests if text is not None}
            for answer in answers.values():
                _check_answer(answer)
        self.settings, self.hypotheses, self.answers = settings, hypotheses, answers
        self.asked = sum(agents for _, agents, _ in tests)
        self.begun = {place: agents for place, agents, text in tests if agents and text is None}


@contextmanager
def _lock_file(file: StateFile) -> Iterator[Statements]:
    """Yields a connection that locks the file until the end."""
    file.inspect()
    with file.open_connection(patience=_PATIENCE_SECONDS) as statements:
        statements.write("PRAGMA locking_mode=EXCLUSIVE")
        statements.write("BEGIN EXCLUSIVE")
        statements.write("COMMIT")
        file.verify(statements)
        yield statements


def _check_settings(settings: Any) -> None:
    """Raises ValueError, TypeError or LookupError for settings that no run can have begun with.

    Settings that are not checked here are only ever compared.
    """
    plan, seed, finalists = settings["plan"], settings["seed"], settings["finalists"]
    if not {"learner", "coins"} <= settings.keys():
        raise LookupError("a setting is missing")
    if not all(isinstance(settings[name], str) for name in ("run", "salt", "digest")):
        raise TypeError("a setting is no text")
    if seed is not None:
        bytes.fromhex(seed)
    if not _is_count(settings["answered before"]):
        raise ValueError("agents were asked before, but not a number of them")
    if not all(_is_count(number) and 1 <= number <= plan["rounds"] for number in finalists):
        raise ValueError("a finalist is no round")


def _check_answer(answer: Any) -> None:
    number, *values, agents = answer
    numbers = len(values) == 3 and all(isinstance(value, int | float) for value in values)
    if not (numbers and _is_count(agents) and (number is None or _is_count(number))):
        raise ValueError("an answer is none")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
