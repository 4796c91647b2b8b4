"""The state of a device: its answers, so that nobody gets a second one by asking again."""

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
    """Answer a question: draw the line at the first time, and return the same line ever after.

    The line is on the disk before it is returned, and one process at a time writes it. To repeat
    the first answer, whatever the value is by now, costs no privacy and lets a client that was cut
    off send it again: a collector counts it once. A refusal would tempt clients to start afresh.

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
            answer = _read_answers(statements).get(question.id)
        if answer is None:
            line = draw()
            row = (question.id, asked, line)
            statements.write("INSERT INTO answer VALUES (?, ?, ?, ?)", *row, _digest(*row))
            return line
    if answer[0] != asked:
        rule = f"{path} has answered another question of this id, and nobody answers twice"
        raise ParameterError(f"question = {question.id!r}, but {rule}")
    return answer[1]


def _read_answers(statements: Statements) -> dict[str, tuple[str, str]]:
    """The text of each question and the line that answered it, by the id of the question.

    Raises: ValueError where a bit was flipped, be it in the answer to another question.
    """
    rows = statements.rows("SELECT question, asked, line, digest FROM answer")
    if any(_digest(*row) != digest for *row, digest in rows):
        raise ValueError("an answer is not the one that was written")
    return {question: (asked, line) for question, asked, line, _ in rows}


def _digest(question: str, asked: str, line: str) -> str:
    """A checksum of a row. It finds accidents, and keeps nobody from writing another answer."""
    return hashlib.sha256(json.dumps([question, asked, line]).encode()).hexdigest()
