"""What a labeler has used up, in memory or in a file that survives it and that processes share."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ._databases import opened
from .exceptions import CheckpointError, ParameterError

_APPLICATION = int.from_bytes(b"HDPl", "big")
_VERSION = 1

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
    "CREATE TABLE spent (key TEXT NOT NULL, bottoms INTEGER NOT NULL, queries INTEGER NOT NULL)",
)


@dataclass
class Used:
    """Bottoms and queries that have been used up."""

    bottoms: int = 0
    queries: int = 0


class Spent:
    """The account of one ensemble: read, answered from and written in one transaction.

    An answer may be shown once the transaction has ended: one that a crash takes away has been
    paid for or was never seen.
    """

    def __init__(self, path: Path | None = None, key: str = ""):
        """Opens the account in a file, or begins one in memory.

        Raises: CheckpointError for a file of another ensemble, or none.
        """
        self._path, self._key = path, key
        self._used, self._lock, self._process = Used(), threading.Lock(), os.getpid()
        if path is not None:
            self.used()

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return self._path

    def used(self) -> Used:
        """What has been used up by now.

        Raises: CheckpointError.
        """
        with self.payment() as used:
            return replace(used)

    @contextmanager
    def payment(self) -> Iterator[Used]:
        """What has been used up, to be changed inside, which nobody else can do meanwhile.

        Raises: CheckpointError where the file cannot be read and written; ParameterError in the
            child of a fork, which would use up the same twice.
        """
        if self._path is None:
            if os.getpid() != self._process:
                rule = "one in memory serves only the process that made it: save it first"
                raise ParameterError(f"labeler belongs to process {self._process}, but {rule}")
            with self._lock:
                # Another thread may have moved it into a file just now.
                if self._path is None:
                    used = replace(self._used)
                    yield used
                    self._used = used
                    return
        with _opened(self._path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            used = self._read(connection)
            before = replace(used)
            yield used
            if used != before:
                query = "UPDATE spent SET bottoms = ?, queries = ?"
                connection.execute(query, (used.bottoms, used.queries))
            connection.execute("COMMIT")

    def require_memory(self, path: Path) -> None:
        """Refuse to move it from one file into another.

        Raises: CheckpointError.
        """
        if self._path is not None:
            _refuse(path, f"it is kept in {str(self._path)!r}, and a second would count twice")

    @contextmanager
    def moved(self, path: Path, key: str, labeler: Path) -> Iterator[None]:
        """Moves the account into a file, once the block has given the labeler's file its name.

        A kill between the two leaves an account that nothing can be asked from: the next one for
        the same file takes its place.

        Raises: CheckpointError when the account is another's or cannot be written.
        """
        with self._lock:
            self.require_memory(path)
            try:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                _refuse(path, f"it must be in a folder that can be written ({error})")
            with _opened(path) as connection:
                connection.execute("BEGIN IMMEDIATE")
                if _check_free(connection, path, labeler):
                    connection.execute("DELETE FROM spent")
                else:
                    for statement in _SCHEMA:
                        connection.execute(statement)
                values = (key, self._used.bottoms, self._used.queries)
                connection.execute("INSERT INTO spent VALUES (?, ?, ?)", values)
                connection.execute("COMMIT")
            yield
            self._path, self._key = path, key

    def _read(self, connection: sqlite3.Connection) -> Used:
        path = self._path or Path()
        _check_kind(connection, path)
        lines = connection.execute("SELECT key, bottoms, queries FROM spent").fetchall()
        if len(lines) != 1 or lines[0][0] != self._key:
            _refuse(path, "it must be the ledger of this ensemble")
        _, bottoms, queries = lines[0]
        if not (isinstance(bottoms, int) and isinstance(queries, int) and 0 <= bottoms <= queries):
            _refuse(path, "it must be whole")
        return Used(bottoms, queries)


def check_free(path: Path, labeler: Path) -> None:
    """Refuse a file in which no account of this labeler's file, which is not there yet, can begin.

    Raises: CheckpointError.
    """
    if path.exists():
        with _opened(path) as connection:
            _check_free(connection, path, labeler)


def _check_free(connection: sqlite3.Connection, path: Path, labeler: Path) -> bool:
    """Whether there is an account, which is unused and whose labeler has never come.

    Raises: CheckpointError for any other account, and for another kind of file.
    """
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return False
    _check_kind(connection, path)
    lines = connection.execute("SELECT bottoms, queries FROM spent").fetchall()
    if labeler.exists() or lines != [(0, 0)]:
        rule = f"{str(labeler)!r}, whose queries it counts, must be beside it: restore that file"
        _refuse(path, f"{rule}, or choose another path")
    return True


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        _refuse(path, "it must be the ledger of a labeler")
    if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
        _refuse(path, f"its format must be {_VERSION}, the one that this hdp_fast knows")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own for every transaction: none is shared by threads or by a fork."""
    try:
        with opened(path, synchronous="EXTRA") as connection:
            yield connection
    except sqlite3.Error as error:
        _refuse(path, f"it must be a ledger that can be read and written ({error})")


def _refuse(path: Path, rule: str) -> NoReturn:
    raise CheckpointError(f"ledger = {str(path)!r}, but {rule}")
