"""What a device has answered, so that nobody gets a second answer by asking again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import files
from ._databases import opened
from ._questions import Question
from .exceptions import ParameterError

_APPLICATION = int.from_bytes(b"HDPa", "big")


def answer_once(path: Path, question: Question, draw: Callable[[], str]) -> str:
    """The line that answers a question: drawn and written down at the first time, then the same.

    Written to the disk before it is returned, and by one process at a time. That the first answer
    comes again, whatever the value is by now, costs no privacy, and lets a client that was cut off
    send it once more: a collector counts it once. A refusal would make it tempting to start afresh.

    path: the device's state, made where it is missing, readable for its owner alone.

    Raises: ParameterError when the file cannot be used, or has an answer to another question of
        this id; then nothing is drawn. Whatever draw raises; then nothing is written.
    """
    asked = question.to_json()
    with _transaction(path) as connection:
        query = "SELECT asked, line FROM answer WHERE question = ?"
        found = connection.execute(query, (question.id,)).fetchone()
        if found is None:
            line = draw()
            connection.execute("INSERT INTO answer VALUES (?, ?, ?)", (question.id, asked, line))
            return line
    if found[0] != asked:
        rule = f"{path} has answered another question of this id, and nobody answers twice"
        raise ParameterError(f"question = {question.id!r}, but {rule}")
    return str(found[1])


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    target = Path(os.path.realpath(path))
    try:
        os.close(os.open(target, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise ParameterError(f"can't write {path}: {files.reason(error)}") from error
    try:
        with opened(target) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            _found(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise ParameterError(f"{path} can't be used as a device's state: {error}") from error


def _found(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the table in an empty file.

    Raises: ParameterError for a file of something else.
    """
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((tables,),) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
    if not tables and not application:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        columns = "question TEXT PRIMARY KEY, asked TEXT NOT NULL, line TEXT NOT NULL"
        connection.execute(f"CREATE TABLE answer ({columns})")
    elif application != _APPLICATION:
        raise ParameterError(f"{path} must be the state of a device, or not exist")
