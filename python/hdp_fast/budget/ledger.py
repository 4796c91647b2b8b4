"""The books of a budget: accounts and entries in SQLite, in memory or in a file.

Every method is one transaction. A file is opened for each transaction and closed after it, so that
no connection is ever shared by threads or inherited by a fork, which SQLite does not support.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from .._support.sqlite import StateFile, Statements
from .._support.uncopyable import Turnstile, check_process
from ..exceptions import HdpFastError, ParameterError
from ..record import PrivacyRecord
from .tables import LEDGER_FORMAT, Account, Amount, LedgerRow, LedgerTables

ROOT = 1

# The relations that a ledger can be for.
RELATIONS = ("replace_one", "add_remove", "replace_person", "add_remove_person")

# Held while any connection is open: a fork waits for it.
_LOCK = Turnstile("budget")
_MISSING = (
    "it must be a budget file; give epsilon to make a new one (hdp-fast budget FILE --epsilon E)"
)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release)


class Ledger:
    """Accounts and entries in memory; each method is one transaction."""

    path: Path | None = None

    def __init__(self, limit: Amount, neighbors: str):
        self.key, self.neighbors = secrets.token_hex(16), neighbors
        self._closed: set[int] = set()
        self._process = os.getpid()
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, memory.close)
        self._memory = Statements(memory, nullcontext, digests=False)
        self._memory.make_tables(LEDGER_FORMAT)
        LedgerTables(self._memory).fill(self.key, neighbors, limit)

    @contextmanager
    def _transaction(self) -> Iterator[LedgerTables]:
        rule = "one in memory serves only the process that made it: use Budget.open(path)"
        check_process(self._process, "budget", rule)
        with _LOCK.hold(), self._memory.transaction():
            yield LedgerTables(self._memory)

    def close(self, account: int) -> None:
        """Ends charges to an account and to all below it, by this ledger; nothing is written."""
        self._closed.add(account)

    def require_open(self, account: int) -> None:
        """Refuses an account that was closed, or one above it."""
        with self._transaction() as tables:
            self._require_open(tables, account)

    def _require_open(self, tables: LedgerTables, account: int) -> None:
        while self._closed and account:
            if account in self._closed:
                rule = "every release must be made before the end of the block"
                raise ParameterError(f"budget was closed by its with statement, but {rule}")
            account = tables.account(account).parent

    def reserve(self, account: int, record: PrivacyRecord) -> int:
        """Charges a record and returns the number of its entry.

        It raises BudgetExceeded, and then writes nothing.
        """
        with self._transaction() as tables:
            self._require_open(tables, account)
            tables.charge(account, Amount.of(record.epsilon, record.delta))
            return tables.enter(account, record)

    def settle(self, entry: int, state: str) -> None:
        """Notes how a reserved entry ended. The amount stays spent in any case."""
        try:
            with self._transaction() as tables:
                tables.settle(entry, state)
        except (HdpFastError, sqlite3.Error) as error:
            # The release has been paid for: a full disk must not cost the caller its result.
            logging.getLogger("hdp_fast").warning("entry %d stays reserved: %s", entry, error)

    def carve(self, parent: int, name: str | None, limit: Amount) -> int:
        """Opens a child account and charges its whole limit to the parent.

        It raises BudgetExceeded, and then writes nothing.
        """
        with self._transaction() as tables:
            self._require_open(tables, parent)
            tables.charge(parent, limit)
            return tables.add(parent, "sequential", name or "sequential", limit)

    def split(self, parent: int, name: str | None) -> int:
        """Opens an account that costs its parent the maximum over its parts."""
        with self._transaction() as tables:
            self._require_open(tables, parent)
            return tables.add(parent, "parallel", name or "parallel", None)

    def part(self, parent: int, name: str) -> int:
        """The part with this name, which is opened if it is new."""
        with self._transaction() as tables:
            return tables.find(parent, "part", name) or tables.add(parent, "part", name, None)

    def balance(self, number: int) -> tuple[Account, Amount]:
        """An account, and what it has left."""
        with self._transaction() as tables:
            return tables.account(number), tables.room(number)

    def statement(self, number: int) -> tuple[dict[int, Account], list[LedgerRow], Amount]:
        """All accounts, all entries, and what one account has left."""
        with self._transaction() as tables:
            return tables.accounts(), tables.rows(), tables.room(number)


class FileLedger(Ledger):
    """A ledger in a file that many processes share."""

    path: Path

    def __init__(self, path: str | os.PathLike[str]):
        """Opens a file without changing it; ParameterError if it is no sound ledger."""
        self._file, self._closed = StateFile(LEDGER_FORMAT, path), set()
        self.path = self._file.path
        if not os.path.exists(self.path):
            raise self._file.refusal(_MISSING)
        self.key, self.neighbors = _verify(self._file)

    @contextmanager
    def _transaction(self) -> Iterator[LedgerTables]:
        with _LOCK.hold(), self._file.transaction() as statements, self._file.translate_damage():
            tables = LedgerTables(statements)
            if tables.name()[0] != self.key:
                raise self._file.refusal("it must not be replaced while it is in use")
            yield tables


def create_ledger(path: str | os.PathLike[str], limit: Amount, neighbors: str) -> None:
    """Makes a file, unless there is one or another process makes one meanwhile.

    It raises ParameterError if the file cannot be written.
    """
    file = StateFile(LEDGER_FORMAT, path)
    if not os.path.exists(file.path):
        with _LOCK.hold():
            key = secrets.token_hex(16)
            file.create(lambda statements: LedgerTables(statements).fill(key, neighbors, limit))


def _verify(file: StateFile) -> tuple[str, str]:
    """The key and the relation of a ledger that is sound."""
    with _LOCK.hold():
        file.inspect()
        # Looking must change nothing. A connection that may write leaves no trace when it closes,
        # where one that only reads would leave an empty log. But where there is a log, a connection
        # that may write could move its content into a damaged file.
        with (
            file.open_connection(mode="ro" if file.has_log else "rw") as statements,
            file.translate_damage(),
            statements.snapshot(),
        ):
            file.verify(statements)
            tables = LedgerTables(statements)
            accounts = tables.accounts()
            _check_tree(accounts)
            _check_sums(accounts, tables.rows())
            key, neighbors = tables.name()
            if neighbors not in RELATIONS:
                raise ValueError("it is for no known relation")
            return key, neighbors


def _check_tree(accounts: dict[int, Account]) -> None:
    """The kind of an account determines whether it has a limit and which kind its parent is."""
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


def _check_sums(accounts: dict[int, Account], rows: list[LedgerRow]) -> None:
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
