"""What a device has answered, so that nobody gets a second answer by asking again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from .._support.sqlite import FileFormat, StateFile, Statements
from ..exceptions import ParameterError
from .questions import Question

_FORMAT = FileFormat(
    application=b"HDPa",
    version=1,
    schema=(
        "CREATE TABLE answer (question TEXT PRIMARY KEY NOT NULL, asked TEXT NOT NULL, "
        "line TEXT NOT NULL, digest TEXT NOT NULL)",
    ),
    noun="the state of a device",
    argument="state",
    error=ParameterError,
)


def answer_once(path: Path, question: Question, draw: Callable[[], str]) -> str:
    """The line that answers a question: drawn and written down at the first time, then the same.

    Written to the disk before it is returned, and by one process at a time. That the first answer
    comes again, whatever the value is by now, costs no privacy, and lets a client that was cut off
    send it once more: a collector counts it once. A refusal would make it tempting to start afresh.

    path: the device's state, made where it is missing, readable for its owner alone. An empty file
    is refused like any other that is damaged: it may have held answers.

    Raises: ParameterError when the file cannot be used, or has an answer to another question of
        this id; then nothing is drawn. Whatever draw raises; then nothing is written.
    """
    asked, file = question.to_json(), StateFile(_FORMAT, path)
    if not os.path.exists(file.path):
        file.create(lambda _: None)
    file.inspect()
    with file.transaction() as statements:
        file.verify(statements)
        with file.translate_damage():
            found = _answers(statements).get(question.id)
        if found is None:
            line = draw()
            row = (question.id, asked, line)
            statements.write("INSERT INTO answer VALUES (?, ?, ?, ?)", *row, _digest(*row))
            return line
    if found[0] != asked:
        rule = f"{path} has answered another question of this id, and nobody answers twice"
        raise ParameterError(f"question = {question.id!r}, but {rule}")
    return found[1]


def _answers(statements: Statements) -> dict[str, tuple[str, str]]:
    """What was asked and answered, by the id of the question.

    Raises: ValueError where a bit was flipped, be it in the id of another question.
    """
    rows = statements.rows("SELECT question, asked, line, digest FROM answer")
    if any(_digest(*row) != digest for *row, digest in rows):
        raise ValueError("an answer is not the one that was written")
    return {question: (asked, line) for question, asked, line, _ in rows}


def _digest(question: str, asked: str, line: str) -> str:
    """Finds accidents: it has no key, and keeps nobody from writing another answer."""
    return hashlib.sha256(json.dumps([question, asked, line]).encode()).hexdigest()
