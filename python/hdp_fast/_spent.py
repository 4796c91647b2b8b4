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
from ._single import check_process
from .exceptions import CheckpointError

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
            self._check_process()
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

    @contextmanager
    def moved(self, path: Path, key: str) -> Iterator[None]:
        """Moves the account into a new file, once the block has ended without an error.

        Raises: CheckpointError when the file exists or cannot be written; ParameterError in the
            child of a fork, whose parent goes on from the same account in memory.
        """
        if self._path is None:
            self._check_process()
        with self._lock:
            if self._path is not None:
                _refuse(path, f"it is kept in {str(self._path)!r}, and a second would count twice")
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except OSError as error:
                _refuse(path, f"it must be new and in a folder that can be written ({error})")
            try:
                self._found(path, key)
                yield
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            self._path, self._key = path, key

    def _check_process(self) -> None:
        rule = "one in memory serves only the process that made it: save it there first"
        check_process(self._process, "labeler", rule)

    def _found(self, path: Path, key: str) -> None:
        values = (key, self._used.bottoms, self._used.queries)
        with _opened(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO spent VALUES (?, ?, ?)", values)
            connection.execute("COMMIT")

    def _read(self, connection: sqlite3.Connection) -> Used:
        path = self._path or Path()
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            _refuse(path, "it must be the ledger of a labeler")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            _refuse(path, f"its format must be {_VERSION}, the one that this hdp_fast knows")
        lines = connection.execute("SELECT key, bottoms, queries FROM spent").fetchall()
        if len(lines) != 1 or lines[0][0] != self._key:
            _refuse(path, "it must be the ledger of this ensemble")
        _, bottoms, queries = lines[0]
        if not (isinstance(bottoms, int) and isinstance(queries, int) and 0 <= bottoms <= queries):
            _refuse(path, "it must be whole")
        return Used(bottoms, queries)


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
