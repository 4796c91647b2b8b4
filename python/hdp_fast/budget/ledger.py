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
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from .._support.sqlite import FileFormat, StateFile, Statements
from .._support.uncopyable import Turnstile, check_process
from ..exceptions import BudgetExceeded, HdpFastError, ParameterError
from ..record import PrivacyRecord

ROOT = 1

# The relations that a ledger can be for.
RELATIONS = ("replace_one", "add_remove")

_FORMAT = FileFormat(
    application=b"HDPb",
    version=1,
    schema=(
        "CREATE TABLE ledger (key TEXT NOT NULL, neighbors TEXT NOT NULL)",
        """CREATE TABLE account (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES account,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,
    epsilon TEXT,
    delta TEXT,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL
)""",
        """CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    time TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL
)""",
    ),
    noun="a budget file of hdp_fast",
    argument="path",
    error=ParameterError,
    logged=True,
)
_ACCOUNTS = (
    "SELECT id, parent, kind, name, time, epsilon, delta, spent_epsilon, spent_delta FROM account"
)
_STATES = {"reserved", "interrupted", "committed"}

# Held while any connection is open: a fork waits for it.
_LOCK = Turnstile("budget")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release)


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
    time: datetime
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
    time: datetime
    state: str
    record: PrivacyRecord


class _Books:
    """The tables, within a transaction."""

    def __init__(self, statements: Statements):
        self._rows, self.write = statements.rows, statements.write

    def accounts(self) -> dict[int, Account]:
        """By number, which puts parents first."""
        return {row[0]: _account(*row) for row in self._rows(f"{_ACCOUNTS} ORDER BY id")}

    def account(self, number: int) -> Account:
        return _account(*self._one(f"{_ACCOUNTS} WHERE id = ?", number))

    def rows(self) -> list[Row]:
        query = "SELECT account, time, state, record FROM entry ORDER BY id"
        return [_row(*values) for values in self._rows(query)]

    def name(self) -> tuple[str, str]:
        """The key of the ledger, which no other has, and the relation that it is for."""
        key, neighbors = self._one("SELECT key, neighbors FROM ledger")
        return key, neighbors

    def _one(self, query: str, *values: object) -> tuple[Any, ...]:
        (row,) = self._rows(query, *values)
        return row

    def found(self, key: str, neighbors: str, limit: Amount) -> None:
        """Fills the books of a new ledger."""
        self.write("INSERT INTO ledger VALUES (?, ?)", key, neighbors)
        self.add(None, "budget", "", limit)

    def add(self, parent: int | None, kind: str, name: str, limit: Amount | None) -> int:
        own = (None, None) if limit is None else (str(limit.epsilon), str(limit.delta))
        query = "INSERT INTO account VALUES (NULL, ?, ?, ?, ?, ?, ?, '0', '0')"
        return self.write(query, parent, kind, name, _now(), *own)

    def find(self, parent: int, kind: str, name: str) -> int | None:
        query = "SELECT id FROM account WHERE parent = ? AND kind = ? AND name = ?"
        found = self._rows(query, parent, kind, name)
        return int(found[0][0]) if found else None

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
    limit = None if epsilon is None or delta is None else _amount(epsilon, delta)
    spent = _amount(spent_epsilon, spent_delta)
    return Account(number, parent or 0, kind, name, _moment(time), limit, spent)


def _row(account: int, time: str, state: str, record: str) -> Row:
    if state not in _STATES:
        raise ValueError("an entry is in no known state")
    try:
        return Row(account, _moment(time), state, PrivacyRecord.from_json(record))
    except ParameterError as error:
        raise ValueError(str(error)) from error


def _amount(epsilon: str, delta: str) -> Amount:
    # Not Fraction(text), which would write out whatever power of ten it is told.
    return Amount(*(Fraction(*map(int, text.split("/"))) for text in (epsilon, delta)))


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time has no zone")
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Ledger:
    """Accounts and entries, in memory; each method is one transaction."""

    path: Path | None = None

    def __init__(self, limit: Amount, neighbors: str):
        self.key, self.neighbors = secrets.token_hex(16), neighbors
        self._process = os.getpid()
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, memory.close)
        self._memory = Statements(memory, nullcontext)
        for statement in _FORMAT.schema:
            self._memory.write(statement)
        _Books(self._memory).found(self.key, neighbors, limit)

    @contextmanager
    def _transaction(self) -> Iterator[_Books]:
        rule = "one in memory serves only the process that made it: use Budget.open(path)"
        check_process(self._process, "budget", rule)
        with _LOCK.hold(), self._memory.transaction():
            yield _Books(self._memory)

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
        except (HdpFastError, sqlite3.Error) as error:
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

    def __init__(self, path: str | os.PathLike[str]):
        """Raises: ParameterError for a file that is no sound ledger; looking changes nothing."""
        self._file = StateFile(_FORMAT, path)
        self.path = self._file.path
        if not os.path.exists(self.path):
            raise self._file.refusal("it must be a budget file; give epsilon to make a new one")
        self.key, self.neighbors = _verified(self._file)

    @contextmanager
    def _transaction(self) -> Iterator[_Books]:
        with _LOCK.hold(), self._file.transaction() as statements, self._file.translate_damage():
            books = _Books(statements)
            if books.name()[0] != self.key:
                raise self._file.refusal("it must not be replaced while it is in use")
            yield books


def create_ledger(path: str | os.PathLike[str], limit: Amount, neighbors: str) -> None:
    """Makes a file, unless there is one, or another process makes it meanwhile.

    Raises: ParameterError when it cannot be written.
    """
    file = StateFile(_FORMAT, path)
    if not os.path.exists(file.path):
        with _LOCK.hold():
            key = secrets.token_hex(16)
            file.create(lambda statements: _Books(statements).found(key, neighbors, limit))


def _verified(file: StateFile) -> tuple[str, str]:
    """The key and the relation of a ledger that is sound."""
    with _LOCK.hold():
        file.inspect()
        # A writer that comes and goes leaves no trace, a reader would leave an empty log; but
        # where there is a log, a writer could move it into a damaged file.
        with (
            file.open_connection(mode="ro" if file.has_log else "rw") as statements,
            file.translate_damage(),
        ):
            statements.write("BEGIN")
            file.verify(statements)
            books = _Books(statements)
            accounts = books.accounts()
            _check_tree(accounts)
            _check_sums(accounts, books.rows())
            key, neighbors = books.name()
            if neighbors not in RELATIONS:
                raise ValueError("it is for no known relation")
            return key, neighbors


def _check_tree(accounts: dict[int, Account]) -> None:
    """What kind an account is of says what it has, and where it stands."""
    for account in accounts.values():
        above = accounts[account.parent].kind if account.id != ROOT else ""
        limited = account.limit is not None
        if account.kind == "part":
            sound = above == "parallel" and not limited
        elif account.kind == "parallel":
            sound = above in {"budget", "sequential", "part"} and not limited
        elif account.kind == "sequential":
            sound = above in {"budget", "sequential", "part"} and limited
        else:
            sound = account.kind == "budget" and account.id == ROOT and limited
        if not sound or not account.parent < account.id:
            raise ValueError(f"account {account.id} is not of its kind")


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
