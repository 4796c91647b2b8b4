"""The state of a device: its answers, so that no one gets a second answer by asking again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .._support.sqlite import FileFormat, StateFile
from .._support.validate import function
from ..exceptions import ParameterError
from .questions import Question, check_question

_FORMAT = FileFormat(
    application=b"HDPa",
    version=2,
    tables={
        "answer": "question TEXT PRIMARY KEY NOT NULL, asked TEXT NOT NULL, line TEXT NOT NULL"
    },
    noun="the state of a device",
    argument="state",
    error=ParameterError,
)


def answer_once(path: Path, question: Question, draw: Callable[[], str]) -> str:
    """Answers a question: draws the line the first time, and returns the same line ever after.

    The line is on the disk before it is returned, and one process at a time writes it. To repeat
    the first answer, whatever the value is by now, costs no privacy, and a device whose connection
    broke can send it again: a collector counts it once. A refusal would tempt people to start with
    a new state.

    Args:
        path: The state of the device. The file is made where it is missing, and only its owner can
            read it. An empty file is refused like any other damaged one, because it may have held
            answers.
        question: The question.
        draw: Called without arguments the first time; returns the line.

    Returns:
        The line that answers the question.

    Raises:
        ParameterError: The file cannot be used, or holds an answer to another question with this
            id. Nothing is drawn.
        Exception: What draw itself raises. Nothing is written.

    Guarantee:
        However often the question is asked, only one line is drawn, so that its epsilon is spent
        once. This protects against accidents and repeated questions, not against somebody who
        deletes or edits the file.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> draw = lambda: collection.report_lines(question, ["7.5"])[0]
        >>> first = collection.answer_once(Path("answers.db"), question, draw)
        >>> collection.answer_once(Path("answers.db"), question, draw) == first
        True
    """
    function("draw", draw)
    asked, file = check_question(question).to_json(), StateFile(_FORMAT, path)
    if not os.path.exists(file.path):
        file.create(lambda _: None)
    file.inspect()
    with file.transaction() as statements:
        file.verify(statements)
        answers: list[tuple[str, ...]] = statements.select(
            "answer", "WHERE question = ?", question.id
        )
        if not answers:
            line = draw()
            statements.insert("answer", question.id, asked, line)
            return line
    ((_, first, line),) = answers
    if first != asked:
        rule = f"{path} has answered another question of this id, and no one answers twice"
        raise ParameterError(f"question = {question.id!r}, but {rule}")
    return line
