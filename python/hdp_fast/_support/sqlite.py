"""State files, kept by SQLite: many processes write to one in turn, and it survives a kill.

A file is opened by SQLite only. POSIX ends all locks that a process has on a file as soon as the
process closes any descriptor of that file, even one of a thread that only wanted to read it.

SQLite has no checksum of pages. Each row therefore ends with a digest of itself, and the table
`total` has the sum of all digests, which every transaction updates: no row can change, vanish or
come twice unnoticed. Digests have no key: they find accidents, not forgers.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..exceptions import HdpFastError
from . import atomic
from .atomic import network_type
from .validate import shorten

# No one holds a file for longer than some milliseconds, or answers whose votes are counted, take.
_PATIENCE_SECONDS = 30.0

_TABLES = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"

# The sum of the digests of all rows of all other tables, modulo 2^256.
_TOTAL = "total"
_DIGEST_BYTES = 32
_MODULUS = 1 << 8 * _DIGEST_BYTES

_SAFE_COPY = "go on with a copy of its last state alone: an older one forgets what has been since"


@dataclass(frozen=True)
class FileFormat:
    """What all files of one format have in common.

    Attributes:
        application: Four letters that distinguish them from files of other programs.
        version: Version of the format.
        tables: The columns of each table, by its name.
        noun: What errors call such a file.
        argument: What errors call the path.
        error: Class of the errors.
        busy: What errors say where another process uses the file.
        logged: Whether the file has a write-ahead log, which is quicker for many short
            transactions.
        synchronous: "EXTRA" if not even a power failure may undo what has been written. With a log
            "FULL" is enough for that.
        unordered: The columns of tables that end with a primary key alone: their rows have no
            number, so that nothing tells in which order they were written, and no digest.
    """

    application: bytes
    version: int
    tables: Mapping[str, str]
    noun: str
    argument: str
    error: type[HdpFastError]
    busy: str = "no other process may hold it for so long"
    logged: bool = False
    synchronous: Literal["FULL", "EXTRA"] = "FULL"
    unordered: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The letters of the application as the integer that SQLite keeps."""
        return int.from_bytes(self.application, "big")

    @property
    def schema(self) -> list[str]:
        """Statements that make the tables."""
        columns = {**{name: f"{text}, " for name, text in self.tables.items()}, _TOTAL: ""}
        return [
            *(f"CREATE TABLE {n} ({text}digest BLOB NOT NULL)" for n, text in columns.items()),
            *(f"CREATE TABLE {n} ({text}) WITHOUT ROWID" for n, text in self.unordered.items()),
        ]


class DamagedRow(ValueError):
    """A row, or the sum of all, is not what was written."""


class Statements:
    """Runs statements on one connection, which opens no transaction by itself.

    Rows are read and written by `select`, `insert`, `update` and `delete` alone, which check and
    keep their digests; those of unordered tables by `rows` and `write`. Whoever writes rows does it
    in a transaction.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        usable: Callable[[], AbstractContextManager[None]],
        *,
        digests: bool = True,
    ):
        """Without `digests` rows have zeros in their place: for a database in memory."""
        self._connection, self._usable = connection, usable
        self._digest = row_digest if digests else _no_digest
        # What has been written since the sum of all digests was.
        self._change = 0

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query: an unfinished cursor would keep the connection from closing."""
        with self._usable():
            return self._connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> int:
        """Runs a statement, and returns the number of the row that was inserted last."""
        with self._usable():
            return self._connection.execute(query, values).lastrowid or 0

    def write_many(self, query: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Runs a statement for each of some rows of values."""
        with self._usable():
            self._connection.executemany(query, rows)

    def make_tables(self, file_format: FileFormat) -> None:
        """Makes the tables of a format, without rows."""
        for statement in file_format.schema:
            self.write(statement)
        self.write(f"INSERT INTO {_TOTAL} VALUES (?)", bytes(_DIGEST_BYTES))

    def select(self, table: str, where: str = "", *values: object) -> list[tuple[Any, ...]]:
        """The rows of a table without their digests, in the order in which they were written.

        Args:
            table: Its name.
            where: A condition in SQL, which begins with WHERE; empty for all rows.
            values: What stands for the question marks of the condition.

        Raises:
            DamagedRow: A row is not the one that was written; the error of the format for a file.
        """
        return [tuple(row.values()) for _, row, _ in self._select(table, where, *values)]

    def insert(self, table: str, *row: object) -> int:
        """Adds a row, and returns its number; a first value of None stands for the number."""
        if row[0] is None:
            ((last,),) = self.rows(f"SELECT COALESCE(MAX(rowid), 0) FROM {table}")
            row = (last + 1, *row[1:])
        digest = self._digest(table, row)
        marks = ", ".join("?" * (len(row) + 1))
        number = self.write(f"INSERT INTO {table} VALUES ({marks})", *row, digest)
        self._change += int.from_bytes(digest)
        return number

    def update(
        self, table: str, changes: Mapping[str, object], where: str = "", *values: object
    ) -> None:
        """Changes columns of the rows that `select` finds by this condition."""
        columns = ", ".join(f"{name} = ?" for name in changes)
        query = f"UPDATE {table} SET {columns}, digest = ? WHERE rowid = ?"
        for number, row, before in self._select(table, where, *values):
            digest = self._digest(table, {**row, **changes}.values())
            self.write(query, *changes.values(), digest, number)
            self._change += int.from_bytes(digest) - before

    def delete(self, table: str, where: str = "", *values: object) -> None:
        """Removes the rows that `select` finds by this condition."""
        for number, _, before in self._select(table, where, *values):
            self.write(f"DELETE FROM {table} WHERE rowid = ?", number)
            self._change -= before

    def check_digests(self, tables: Iterable[str]) -> None:
        """Checks every row of these tables, which are all, and that none is lost.

        Raises:
            DamagedRow: As `select`.
        """
        total = sum(digest for name in tables for _, _, digest in self._select(name))
        with self._usable():
            if (total - self._change) % _MODULUS != self._read_total():
                raise DamagedRow("rows are lost, or came twice")

    def _select(
        self, table: str, where: str = "", *values: object
    ) -> list[tuple[int, dict[str, Any], int]]:
        """The number of each row, its values by their columns, and its digest."""
        query, checked = f"SELECT rowid, * FROM {table} {where} ORDER BY rowid", []
        with self._usable():
            cursor = self._connection.execute(query, values)
            names = [name for name, *_ in cursor.description[1:-1]]
            for number, *row, digest in cursor.fetchall():
                if digest != self._digest(table, row):
                    raise DamagedRow(f"a row of {table} is not the one that was written")
                columns = dict(zip(names, row, strict=True))
                checked.append((number, columns, int.from_bytes(digest)))
        return checked

    def _read_total(self) -> int:
        digests = self._connection.execute(f"SELECT digest FROM {_TOTAL}").fetchall()
        if len(digests) != 1 or not isinstance(digests[0][0], bytes):
            raise DamagedRow("the sum of its digests is lost")
        return int.from_bytes(digests[0][0])

    @contextmanager
    def keep_total(self) -> Iterator[None]:
        """Brings the sum of all digests up to date with the rows that are written inside."""
        try:
            yield
            if self._change:
                with self._usable():
                    total = (self._read_total() + self._change) % _MODULUS
                self.write(f"UPDATE {_TOTAL} SET digest = ?", total.to_bytes(_DIGEST_BYTES))
        finally:
            self._change = 0

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Lets all that is read inside be of one moment."""
        self.write("BEGIN")
        try:
            yield
        finally:
            with self._usable():
                self._connection.rollback()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keeps everything that is written inside, or nothing; no one else writes meanwhile."""
        self.write("BEGIN IMMEDIATE")
        try:
            with self.keep_total():
                yield
            self.write("COMMIT")
        except BaseException:
            with self._usable():
                self._connection.rollback()
            raise


class StateFile:
    """A file of one format, which need not exist.

    Attributes:
        path: Absolute path without symbolic links.
    """

    def __init__(self, file_format: FileFormat, path: str | os.PathLike[str]):
        """Raises an error of the format if `path` is no path."""
        self._format = file_format
        try:
            self.path = Path(os.path.realpath(os.fsdecode(path)))
        except (TypeError, ValueError):
            text = f"{file_format.argument} = {shorten(path)}, but it must be a path"
            raise file_format.error(text) from None

    def refusal(self, rule: str) -> HdpFastError:
        """Makes an error of the format, for the caller to raise."""
        return self._format.error(f"{self._format.argument} = {str(self.path)!r}, but {rule}")

    @contextmanager
    def translate_failures(self) -> Iterator[None]:
        """Turns errors of SQLite into those of the format."""
        try:
            yield
        except DamagedRow as error:
            raise self._refuse_damage(error) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # UnicodeDecodeError: a damaged file makes SQLite return a message that is no UTF-8.
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith("SQLITE_CORRUPT"):
                raise self._refuse_damage(error) from error
            busy = name.startswith("SQLITE_BUSY")
            rule = f"it must be {self._format.noun} that can be read and written ({_quote(error)})"
            raise self.refusal(self._format.busy if busy else rule) from error

    @contextmanager
    def translate_damage(self) -> Iterator[None]:
        """Turns errors of code that reads values of the file into those of the format."""
        try:
            yield
        except HdpFastError:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            raise self._refuse_damage(error) from error

    def _refuse_damage(self, error: Exception) -> HdpFastError:
        return self.refusal(f"it must be whole ({_quote(error)}): {_SAFE_COPY}")

    def create(self, fill: Callable[[Statements], object]) -> bool:
        """Makes the file, of mode 0600, whole or not at all; returns False if there is one."""
        self._check_place()
        content = self._serialize(fill)
        try:
            atomic.create(self.path, lambda out: out.write(content))
        except FileExistsError:
            return False
        except OSError as error:
            rule = f"it must be in a folder that can be written and allows links ({_quote(error)})"
            raise self.refusal(rule) from error
        return True

    def _serialize(self, fill: Callable[[Statements], object]) -> bytes:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            statements = Statements(connection, self.translate_failures)
            statements.write(f"PRAGMA application_id = {self._format.number}")
            statements.write(f"PRAGMA user_version = {self._format.version}")
            statements.make_tables(self._format)
            with statements.keep_total():
                fill(statements)
            content = bytearray(connection.serialize())
        if self._format.logged:
            # What "PRAGMA journal_mode = WAL" writes; a database in memory has no such mode.
            content[18:20] = b"\2\2"
        return bytes(content)

    def inspect(self) -> None:
        """Checks that the file is a usable one of the format, without changing it or any lock."""
        status = self._read_status()
        self._check_place()
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise self.refusal("it must be readable and writable")
        if not status.st_size:
            rule = "and it is empty: delete it if nothing was ever in it, else restore it"
            raise self.refusal(f"it must be {self._format.noun}, {rule}")
        application, version = self._read_header()
        if application != self._format.number:
            raise self.refusal(f"it must be {self._format.noun}")
        if version != self._format.version:
            rule = f"its format must be {self._format.version}, the one that this hdp_fast knows"
            raise self.refusal(f"{rule}, and it is {version}: use the hdp_fast that wrote it")

    def verify(self, statements: Statements) -> None:
        """Checks all of a file that passed `inspect`, but for the meaning of its values.

        No one may write meanwhile: it is for a transaction, a snapshot or an exclusive lock.
        """
        with self.translate_damage():
            ((state,), *_) = statements.rows("PRAGMA integrity_check")
            if state != "ok":
                raise ValueError(state)
            tables = statements.rows(_TABLES)
            if tables != self._list_tables():
                raise ValueError("its tables are not those of its format")
            for table in (name for kind, name, _, _ in tables if kind == "table"):
                _check_types(statements, table)
            statements.check_digests(self._format.tables)

    @contextmanager
    def open_connection(
        self,
        *,
        mode: Literal["ro", "rw"] = "rw",
        patience: float = _PATIENCE_SECONDS,
        threads: bool = False,
    ) -> Iterator[Statements]:
        """Opens a connection that ends with the block, so that threads and forks never share one.

        It waits at most `patience` seconds for other processes. With `threads` it may be used by
        several threads, one at a time.
        """
        with self.translate_failures():
            connection = self._connect(f"mode={mode}", patience, threads=threads)
        with closing(connection):
            statements = Statements(connection, self.translate_failures)
            statements.write(f"PRAGMA synchronous={self._format.synchronous}")
            yield statements

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        """Keeps everything that is written inside in the file at this path, or nothing."""
        before = self._read_status()
        with self.open_connection() as statements, statements.transaction():
            yield statements
        if not os.path.samestat(before, self._read_status()):
            # What was written went to the old file, which has no name any more.
            raise self.refusal("it must not be replaced while it is in use")

    @property
    def has_log(self) -> bool:
        """Whether there is a write-ahead log, in use or left by a process that was killed."""
        return os.path.exists(f"{self.path}-wal")

    def _connect(
        self, how: str, patience: float = 0.0, *, threads: bool = False
    ) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{how}",
            uri=True,
            timeout=patience,
            isolation_level=None,
            check_same_thread=not threads,
        )

    def _read_status(self) -> os.stat_result:
        """Raises an error of the format unless there is a regular file with one name."""
        try:
            status = os.stat(self.path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                atomic.remove_second_names(self.path)
                status = os.stat(self.path)
        except OSError as error:
            rule = f"it must be {self._format.noun} that can be read and written ({_quote(error)})"
            raise self.refusal(rule) from error
        if not stat.S_ISREG(status.st_mode):
            raise self.refusal(f"it must be {self._format.noun}, a regular file")
        if status.st_nlink > 1:
            # Logs and journals are named after the path: with two names the file gets two of them.
            rule = f"it must have one name, and it has {status.st_nlink}"
            raise self.refusal(f"{rule}: remove the other hard links, or make them symbolic")
        return status

    def _check_place(self) -> None:
        try:
            atomic.require_posix()
        except OSError as error:
            raise self.refusal(f"it can't be kept here: {_quote(error)}") from None
        folder = self.path.parent
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise self.refusal("it must be in a folder that can be written and read")
        kind = network_type(self.path)
        if kind is not None:
            rule = f"it must be on a local disk, and not on {kind}, where locks may fail"
            raise self.refusal(f"{rule}: use a folder of this machine")

    def _read_header(self) -> tuple[int, int]:
        """The application and the version, read in a mode in which SQLite repairs nothing."""
        with self.translate_failures(), closing(self._connect("mode=ro&immutable=1")) as connection:
            ((application,),) = connection.execute("PRAGMA application_id").fetchall()
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        return application, version

    def _list_tables(self) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(":memory:")) as connection:
            for statement in self._format.schema:
                connection.execute(statement)
            return connection.execute(_TABLES).fetchall()


def row_digest(table: str, row: Iterable[Any]) -> bytes:
    """The digest of a row of a table: it finds accidents, and anybody can compute it.

    Raises:
        DamagedRow: A value is of a kind that no table has.
    """
    try:
        return hashlib.sha256(json.dumps([table, *row]).encode()).digest()
    except TypeError:
        raise DamagedRow(f"a value of {table} is neither text nor number") from None


def _no_digest(_table: str, _row: Iterable[Any]) -> bytes:
    return bytes(_DIGEST_BYTES)


def _check_types(statements: Statements, table: str) -> None:
    """Checks the types of a table: SQLite allows any value in any column, these files do not."""
    for _, name, kind, required, _, _ in statements.rows(f"PRAGMA table_info({table})"):
        allowed = [kind.lower()] + ["null"] * (not required)
        types = ", ".join(f"'{word}'" for word in allowed)
        query = f"SELECT COUNT(*) FROM {table} WHERE typeof({name}) NOT IN ({types})"
        if statements.rows(query) != [(0,)]:
            raise TypeError(f"{name} is not always {' or '.join(allowed)}")


def _quote(error: Exception) -> str:
    """The text of an error, cut to one short line, since it may quote a damaged file."""
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return " ".join(text.split())[:200]
