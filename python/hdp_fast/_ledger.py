"""The books of a Budget: accounts and entries in SQLite, in memory or in a file.

Every method is one transaction. A file is opened for each of them and closed again, so that no
connection is ever shared by threads or inherited by a fork, which SQLite cannot bear.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from ._databases import opened
from ._single import check_process
from .exceptions import BudgetExceeded, ParameterError
from .record import PrivacyRecord

ROOT = 1

_APPLICATION = int.from_bytes(b"HDPb", "big")
_VERSION = 1

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE ledger (key TEXT NOT NULL, neighbours TEXT NOT NULL);
CREATE TABLE account (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES account,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,
    epsilon TEXT,
    delta TEXT,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    time TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL
);
"""
_ACCOUNTS = (
    "SELECT id, parent, kind, name, time, epsilon, delta, spent_epsilon, spent_delta FROM account"
)
_DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, ArithmeticError)

# Held while any connection is open: a fork waits for it.
_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact epsilon and delta."""

    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Amount:
        """Each float stands for its shortest decimal, so that three times 0.1 fits into 0.3."""
        return cls(Fraction(repr(float(epsilon))), Fraction(repr(float(delta))))

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta)

    def join(self, other: Amount) -> Amount:
        """The larger epsilon and the larger delta."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def fits(self, limit: Amount) -> bool:
        """Whether neither exceeds the limit."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta

    def __str__(self) -> str:
        epsilon, delta = self.floats(math.inf)
        return f"epsilon = {epsilon!r} and delta = {delta!r}"

    def floats(self, towards: float) -> tuple[float, float]:
        """Both as floats, rounded up (towards inf) or down (towards -inf) as decimals."""
        return _rounded(self.epsilon, towards), _rounded(self.delta, towards)


def _rounded(value: Fraction, towards: float) -> float:
    near = float(value)
    error = Fraction(repr(near)) - value
    return math.nextafter(near, towards) if error * int(math.copysign(1, towards)) < 0 else near


@dataclass(frozen=True, slots=True)
class Account:
    """A budget, a scope of one, or a part of a scope; only some have a limit of their own."""

    id: int
    parent: int
    kind: str
    name: str
    time: str
    limit: Amount | None
    spent: Amount

    @property
    def charge(self) -> Amount:
        """What it costs its parent, unless it is a part."""
        return self.limit or self.spent


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of the books."""

    account: int
    time: str
    state: str
    record: PrivacyRecord


class _Books:
    """The tables, within a transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def accounts(self) -> dict[int, Account]:
        """By number, which puts parents first."""
        return {row[0]: _account(*row) for row in self._all(f"{_ACCOUNTS} ORDER BY id")}

    def account(self, number: int) -> Account:
        return _account(*self._one(f"{_ACCOUNTS} WHERE id = ?", number))

    def rows(self) -> list[Row]:
        query = "SELECT account, time, state, record FROM entry ORDER BY id"
        return [
            Row(account, time, state, PrivacyRecord.from_json(record))
            for account, time, state, record in self._all(query)
        ]

    def name(self) -> tuple[str, str]:
        """The key of the ledger, which no other has, and the relation that it is for."""
        key, neighbours = self._one("SELECT key, neighbours FROM ledger")
        return key, neighbours

    def _one(self, query: str, *values: object) -> tuple[Any, ...]:
        (row,) = self._all(query, *values)
        return row

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        # A cursor left halfway, by an error, would keep the connection from closing.
        return self._connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> int:
        return self._connection.execute(query, values).lastrowid or 0

    def found(self, key: str, neighbours: str, limit: Amount) -> None:
        """Fills the books of a new ledger."""
        self._connection.executescript(_SCHEMA)
        self.write("INSERT INTO ledger VALUES (?, ?)", key, neighbours)
        self.add(None, "budget", "", limit)

    def add(self, parent: int | None, kind: str, name: str, limit: Amount | None) -> int:
        own = (None, None) if limit is None else (str(limit.epsilon), str(limit.delta))
        query = "INSERT INTO account VALUES (NULL, ?, ?, ?, ?, ?, ?, '0', '0')"
        return self.write(query, parent, kind, name, _now(), *own)

    def find(self, parent: int, kind: str, name: str) -> int | None:
        query = "SELECT id FROM account WHERE parent = ? AND kind = ? AND name = ?"
        found = self._connection.execute(query, (parent, kind, name)).fetchone()
        return found and int(found[0])

    def charge(self, number: int, cost: Amount) -> None:
        """Adds a cost to an account and to whatever pays for that account."""
        account = self.account(number)
        spent = account.spent + cost
        if account.kind == "part":
            others = self.account(account.parent).spent
            self.charge(account.parent, spent.join(others) - others)
        elif account.kind == "parallel":
            self.charge(account.parent, cost)
        elif account.limit is not None and not spent.fits(account.limit):
            whose = f"budget {account.name!r}" if account.name else "budget"
            state = f"{whose} has spent {account.spent} of its limit {account.limit}"
            raise BudgetExceeded(f"{state}, but {cost} was requested")
        query = "UPDATE account SET spent_epsilon = ?, spent_delta = ? WHERE id = ?"
        self.write(query, str(spent.epsilon), str(spent.delta), number)

    def room(self, number: int) -> Amount:
        """The largest cost that the account could be charged."""
        account = self.account(number)
        if account.limit is not None:
            return account.limit - account.spent
        above = self.room(account.parent)
        if account.kind == "parallel":
            return above
        return above + self.account(account.parent).spent - account.spent


def _account(
    number: int,
    parent: int | None,
    kind: str,
    name: str,
    time: str,
    epsilon: str | None,
    delta: str | None,
    spent_epsilon: str,
    spent_delta: str,
) -> Account:
    own = None if epsilon is None or delta is None else Amount(Fraction(epsilon), Fraction(delta))
    spent = Amount(Fraction(spent_epsilon), Fraction(spent_delta))
    return Account(number, parent or 0, kind, name, time, own, spent)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Ledger:
    """Accounts and entries, in memory; each method is one transaction."""

    path: Path | None = None

    def __init__(self, limit: Amount, neighbours: str):
        self.key, self.neighbours = secrets.token_hex(16), neighbours
        self._process = os.getpid()
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._memory.close)
        _Books(self._memory).found(self.key, neighbours, limit)

    def _opened(self) -> AbstractContextManager[sqlite3.Connection]:
        rule = "one in memory serves only the process that made it: use Budget.open(path)"
        check_process(self._process, "budget", rule)
        return nullcontext(self._memory)

    @contextmanager
    def _transaction(self) -> Iterator[_Books]:
        with _LOCK, self._opened() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _Books(connection)

    def reserve(self, account: int, record: PrivacyRecord) -> int:
        """Charges a record; returns the number of its entry.

        Raises: BudgetExceeded, and then nothing is written.
        """
        with self._transaction() as books:
            books.charge(account, Amount.of(record.epsilon, record.delta))
            query = "INSERT INTO entry VALUES (NULL, ?, ?, 'reserved', ?)"
            return books.write(query, account, _now(), record.to_json())

    def settle(self, entry: int, state: str) -> None:
        """Notes how a reserved entry ended; it stays spent whatever happens here."""
        query = "UPDATE entry SET state = ? WHERE id = ?"
        try:
            with self._transaction() as books:
                books.write(query, state, entry)
        except (ParameterError, sqlite3.Error) as error:
            # The release has been paid for: a full disk must not take it with it.
            logging.getLogger("hdp_fast").warning("entry %d stays reserved: %s", entry, error)

    def carve(self, parent: int, name: str | None, limit: Amount) -> int:
        """Opens a child account; its whole limit is charged to the parent.

        Raises: BudgetExceeded, and then nothing is written.
        """
        with self._transaction() as books:
            books.charge(parent, limit)
            return books.add(parent, "sequential", name or "sequential", limit)

    def split(self, parent: int, name: str | None) -> int:
        """Opens an account that costs its parent the maximum over its parts."""
        with self._transaction() as books:
            return books.add(parent, "parallel", name or "parallel", None)

    def part(self, parent: int, name: str) -> int:
        """The part of that name, opened if it is new."""
        with self._transaction() as books:
            return books.find(parent, "part", name) or books.add(parent, "part", name, None)

    def balance(self, number: int) -> tuple[Account, Amount]:
        """An account and what it has left."""
        with self._transaction() as books:
            return books.account(number), books.room(number)

    def statement(self, number: int) -> tuple[dict[int, Account], list[Row], Amount]:
        """All accounts, all entries, and what one account has left."""
        with self._transaction() as books:
            return books.accounts(), books.rows(), books.room(number)


class FileLedger(Ledger):
    """A ledger in a file that many processes share."""

    path: Path

    def __init__(self, path: Path):
        self.path = path
        self.key, self.neighbours = _verified(path)

    def _opened(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._same_file()

    @contextmanager
    def _same_file(self) -> Iterator[sqlite3.Connection]:
        with _connected(self.path, "rw") as connection:
            if _Books(connection).name()[0] != self.key:
                raise _refusal(self.path, "it must not be replaced while it is in use")
            yield connection


def create(path: Path, limit: Amount, neighbours: str) -> None:
    """Makes a file, whole or not at all; leaves one alone that another process made meanwhile.

    Raises: ParameterError when it cannot be written.
    """
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _refusal(path, "it must be in a folder that can be written")
    scratch = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with _LOCK, _connected(scratch, "rwc") as connection:
            _Books(connection).found(secrets.token_hex(16), neighbours, limit)
            connection.execute("PRAGMA journal_mode=WAL")
        # Unlike a rename, a link never replaces a file.
        os.link(scratch, path)
        _synchronise(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise _refusal(path, f"its folder must allow links ({error})") from error
    finally:
        scratch.unlink(missing_ok=True)


def _synchronise(folder: Path) -> None:
    """A file that is lost on a power failure would take what was spent with it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        with opened(path, mode=mode) as connection:
            yield connection
    except sqlite3.Error as error:
        rule = f"it must be a budget file that can be read and written ({error})"
        raise _refusal(path, rule) from error


def _verified(path: Path) -> tuple[str, str]:
    """The key and the relation of a ledger that is sound; nothing is changed by looking.

    Raises: ParameterError for a file of another program or version, unwritable or damaged.
    """
    with _LOCK:
        _check_header(path)
        # A writer that comes and goes leaves no trace, a reader would leave an empty log; but
        # where there is a log, a writer could move it into a damaged file.
        mode = "ro" if path.with_name(f"{path.name}-wal").exists() else "rw"
        with _connected(path, mode) as connection:
            try:
                connection.execute("BEGIN")
                _check_pages(connection)
                books = _Books(connection)
                _check_sums(books.accounts(), books.rows())
                return books.name()
            except _DAMAGE as error:
                raise _refusal(path, f"it must be whole ({error})") from error


def _check_header(path: Path) -> None:
    """Looks without SQLite, which might mend another program's file."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise _refusal(path, f"it must be readable ({error.strerror})") from error
    numbers = {at: int.from_bytes(header[at : at + 4], "big") for at in (60, 68)}
    if not header.startswith(b"SQLite format 3\0") or numbers[68] != _APPLICATION:
        raise _refusal(path, "it must be a budget file of hdp_fast")
    if numbers[60] != _VERSION:
        rule = f"its format must be {_VERSION}, the one that this hdp_fast knows"
        raise _refusal(path, f"{rule}, and it is {numbers[60]}")
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        raise _refusal(path, "it and its folder must be writable")


def _check_pages(connection: sqlite3.Connection) -> None:
    found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check").fetchall()]
    if found != ["ok"]:
        raise ValueError(found[0])


def _check_sums(accounts: dict[int, Account], rows: list[Row]) -> None:
    due = dict.fromkeys(accounts, Amount())
    for row in rows:
        due[row.account] += Amount.of(row.record.epsilon, row.record.delta)
    for account in accounts.values():
        if account.kind == "part":
            due[account.parent] = due[account.parent].join(account.spent)
        elif account.id != ROOT:
            due[account.parent] += account.charge
    for account in accounts.values():
        if account.spent != due[account.id] or not account.spent.fits(account.charge):
            raise ValueError("its sums are wrong")
    if accounts[ROOT].limit is None:
        raise ValueError("it has no limit")


def _refusal(path: Path, rule: str) -> ParameterError:
    return ParameterError(f"path = {str(path)!r}, but {rule}")
