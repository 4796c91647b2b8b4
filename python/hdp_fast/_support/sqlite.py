"""Files of state, kept by SQLite: many processes write to one, in turn, and it survives a kill.

A file is never opened but by SQLite: POSIX ends all locks of a process on a file when the process
closes any descriptor of it, also that of a thread that only wanted to look.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..exceptions import HdpFastError
from . import atomic
from .mounts import network_type
from .validate import shorten

# Nobody holds a file for longer than some milliseconds, or answers whose votes are counted, take.
_PATIENCE_SECONDS = 30.0

_TABLES = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"


@dataclass(frozen=True)
class Kind:
    """What all files of one kind have in common.

    Attributes:
        application: four letters that tell them from the files of other programs.
        version: of the format.
        schema: statements that make the tables.
        noun: what one is, in errors.
        argument: what errors call the path.
        error: the class of errors.
        busy: what errors say where another process has it.
        logged: whether it has a write-ahead log: quicker for many short transactions.
        synchronous: "EXTRA" if not even a power failure may undo what has been written, which
            "FULL" is enough for where there is a log.
    """

    application: bytes
    version: int
    schema: tuple[str, ...]
    noun: str
    argument: str
    error: type[HdpFastError]
    busy: str = "no other process may hold it for so long"
    logged: bool = False
    synchronous: Literal["FULL", "EXTRA"] = "FULL"

    @property
    def number(self) -> int:
        """The application's letters as SQLite keeps them."""
        return int.from_bytes(self.application, "big")


class Statements:
    """What is said to SQLite on one connection, which opens no transaction by itself."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        usable: Callable[[], AbstractContextManager[None]],
    ):
        self._connection, self._usable = connection, usable

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All that a query finds: a cursor left halfway would keep the connection from closing."""
        with self._usable():
            return self._connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> int:
        """The number of the row that was inserted last."""
        with self._usable():
            return self._connection.execute(query, values).lastrowid or 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is kept, or nothing; nobody else writes meanwhile."""
        self.write("BEGIN IMMEDIATE")
        try:
            yield
            self.write("COMMIT")
        except BaseException:
            with self._usable():
                self._connection.rollback()
            raise


class StateFile:
    """A file of one kind, which need not exist.

    Attributes:
        path: absolute, without symbolic links.
    """

    def __init__(self, kind: Kind, path: str | os.PathLike[str]):
        """Raises: an error of the kind for what is no path."""
        self._kind = kind
        try:
            self.path = Path(os.path.realpath(os.fsdecode(path)))
        except (TypeError, ValueError):
            text = f"{kind.argument} = {shorten(path)}, but it must be a path"
            raise kind.error(text) from None

    def refusal(self, rule: str) -> HdpFastError:
        """An error of the kind, to be raised."""
        return self._kind.error(f"{self._kind.argument} = {str(self.path)!r}, but {rule}")

    @contextmanager
    def usable(self) -> Iterator[None]:
        """Turns errors of SQLite into those of the kind."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # The latter where a damaged file makes SQLite say what is no text.
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            rule = f"it must be {self._kind.noun} that can be read and written ({_said(error)})"
            raise self.refusal(self._kind.busy if busy else rule) from error

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Turns errors of whoever makes sense of what is in the file into those of the kind."""
        try:
            yield
        except HdpFastError:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise self.refusal(f"it must be whole ({_said(error)})") from error

    def create(self, fill: Callable[[Statements], object]) -> bool:
        """Makes the file, of mode 0600, whole or not at all; False where there is one already."""
        self._check_place()
        content = self._content(fill)
        try:
            atomic.create(self.path, lambda out: out.write(content))
        except FileExistsError:
            return False
        except OSError as error:
            rule = f"it must be in a folder that can be written and allows links ({_said(error)})"
            raise self.refusal(rule) from error
        return True

    def _content(self, fill: Callable[[Statements], object]) -> bytes:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            statements = Statements(connection, self.usable)
            statements.write(f"PRAGMA application_id = {self._kind.number}")
            statements.write(f"PRAGMA user_version = {self._kind.version}")
            for statement in self._kind.schema:
                statements.write(statement)
            fill(statements)
            content = bytearray(connection.serialize())
        if self._kind.logged:
            # What "PRAGMA journal_mode = WAL" writes; a database in memory has no such mode.
            content[18:20] = b"\2\2"
        return bytes(content)

    def inspect(self) -> None:
        """Looks whether it is a file of the kind, and usable; changes nothing, and no locks."""
        found = self._status()
        self._check_place()
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise self.refusal("it must be readable and writable")
        if not found.st_size:
            rule = "and it is empty: delete it if nothing was ever in it, else restore it"
            raise self.refusal(f"it must be {self._kind.noun}, {rule}")
        application, version = self._header()
        if application != self._kind.number:
            raise self.refusal(f"it must be {self._kind.noun}")
        if version != self._kind.version:
            rule = f"its format must be {self._kind.version}, the one that this hdp_fast knows"
            raise self.refusal(f"{rule}, and it is {version}")

    def verify(self, statements: Statements) -> None:
        """Looks at everything in a file that inspect has seen but at the meaning of its values."""
        with self.whole():
            ((state,), *_) = statements.rows("PRAGMA integrity_check")
            if state != "ok":
                raise ValueError(state)
            tables = statements.rows(_TABLES)
            if tables != self._tables():
                raise ValueError("its tables are not those of its format")
            for table in (name for kind, name, _, _ in tables if kind == "table"):
                _check_types(statements, table)

    @contextmanager
    def opened(
        self, *, mode: Literal["ro", "rw"] = "rw", patience: float = _PATIENCE_SECONDS
    ) -> Iterator[Statements]:
        """A connection that ends with the block: none is shared by threads or by a fork.

        patience: seconds to wait for others.
        """
        with self.usable():
            connection = self._connect(f"mode={mode}", patience)
        with closing(connection):
            statements = Statements(connection, self.usable)
            statements.write(f"PRAGMA synchronous={self._kind.synchronous}")
            yield statements

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        """All that is written inside is kept, in the file of this name, or nothing is."""
        before = self._status()
        with self.opened() as statements, statements.transaction():
            yield statements
        if not os.path.samestat(before, self._status()):
            # What was written went to a file that nobody will find again.
            raise self.refusal("it must not be replaced while it is in use")

    @property
    def has_log(self) -> bool:
        """Whether there is a write-ahead log, of others or left by a kill."""
        return os.path.exists(f"{self.path}-wal")

    def _connect(self, how: str, patience: float = 0.0) -> sqlite3.Connection:
        address = f"{self.path.as_uri()}?{how}"
        return sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None)

    def _status(self) -> os.stat_result:
        """Raises: an error of the kind for anything but a regular file of one name."""
        try:
            found = os.stat(self.path)
            if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                atomic.remove_second_names(self.path)
                found = os.stat(self.path)
        except OSError as error:
            rule = f"it must be {self._kind.noun} that can be read and written ({_said(error)})"
            raise self.refusal(rule) from error
        if not stat.S_ISREG(found.st_mode):
            raise self.refusal(f"it must be {self._kind.noun}, a regular file")
        if found.st_nlink > 1:
            # Logs and journals are named after the path: by two names the file would be torn.
            rule = f"it must have one name, and it has {found.st_nlink}"
            raise self.refusal(f"{rule}: remove the other hard links, or make them symbolic")
        return found

    def _check_place(self) -> None:
        folder = self.path.parent
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise self.refusal("it must be in a folder that can be written and read")
        kind = network_type(self.path)
        if kind is not None:
            rule = f"it must be on a local disk, and not on {kind}, where locks may fail"
            raise self.refusal(f"{rule}: use a folder of this machine")

    def _header(self) -> tuple[int, int]:
        """The application and the version; SQLite mends nothing in what it may not change."""
        with self.usable(), closing(self._connect("mode=ro&immutable=1")) as connection:
            ((application,),) = connection.execute("PRAGMA application_id").fetchall()
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        return application, version

    def _tables(self) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(":memory:")) as connection:
            for statement in self._kind.schema:
                connection.execute(statement)
            return connection.execute(_TABLES).fetchall()


def _check_types(statements: Statements, table: str) -> None:
    """SQLite lets any value stand in any column; ours hold what they declare."""
    for _, name, kind, required, _, _ in statements.rows(f"PRAGMA table_info({table})"):
        allowed = [kind.lower()] + ["null"] * (not required)
        types = ", ".join(f"'{each}'" for each in allowed)
        query = f"SELECT COUNT(*) FROM {table} WHERE typeof({name}) NOT IN ({types})"
        if statements.rows(query) != [(0,)]:
            raise TypeError(f"{name} is not always {' or '.join(allowed)}")


def _said(error: Exception) -> str:
    """What an error says, in one line: it may quote a damaged file."""
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return " ".join(text.split())[:200]
