"""What a budget keeps and shows: exact amounts, accounts, entries, and their statements."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from .._support.numbers import round_up
from .._support.sqlite import FileFormat, Statements
from .._support.validate import positive, probability
from ..exceptions import BudgetExceeded, ParameterError
from ..record import PrivacyRecord

LEDGER_FORMAT = FileFormat(
    application=b"HDPb",
    version=2,
    tables={
        "ledger": "key TEXT NOT NULL, neighbors TEXT NOT NULL",
        "account": """
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES account,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,
    epsilon TEXT,
    delta TEXT,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL""",
        "entry": """
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    time TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL""",
    },
    noun="a budget file of hdp_fast",
    argument="path",
    error=ParameterError,
    logged=True,
)
_STATES = {"reserved", "interrupted", "committed"}


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact epsilon and an exact delta."""

    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Amount:
        """Each float stands for its shortest decimal, so that three times 0.1 fits into 0.3.

        It is the last gate before a ledger, whatever made the numbers: a negative one would give
        budget back. Raises: ParameterError unless epsilon is finite and above 0, and delta in
        [0, 1).
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta, zero=True)
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
        """Both as floats, rounded as decimals: up if `towards` is inf, down if it is -inf."""
        return _round(self.epsilon, towards), _round(self.delta, towards)


def _round(value: Fraction, towards: float) -> float:
    near = float(value)
    error = Fraction(repr(near)) - value
    return math.nextafter(near, towards) if error * int(math.copysign(1, towards)) < 0 else near


@dataclass(frozen=True, slots=True)
class Account:
    """A budget, a scope, or a part of a scope. Only budgets and sequential scopes have a limit."""

    id: int
    parent: int
    kind: str
    name: str
    time: datetime
    limit: Amount | None
    spent: Amount

    @property
    def charge(self) -> Amount:
        """What the account costs its parent, unless it is a part."""
        return self.limit or self.spent


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """An entry of a ledger."""

    account: int
    time: datetime
    state: str
    record: PrivacyRecord


class LedgerTables:
    """The tables, within a transaction."""

    def __init__(self, statements: Statements):
        self._statements = statements

    def accounts(self) -> dict[int, Account]:
        """All accounts by their numbers, parents first."""
        return {row[0]: _read_account(*row) for row in self._statements.select("account")}

    def account(self, number: int) -> Account:
        """One account."""
        (row,) = self._statements.select("account", "WHERE id = ?", number)
        return _read_account(*row)

    def rows(self) -> list[LedgerRow]:
        """All entries, in order."""
        return [_read_row(*values) for _, *values in self._statements.select("entry")]

    def name(self) -> tuple[str, str]:
        """The key of the ledger, which no other ledger has, and its neighbor relation."""
        ((key, neighbors),) = self._statements.select("ledger")
        return key, neighbors

    def fill(self, key: str, neighbors: str, limit: Amount) -> None:
        """Fills the tables of a new ledger."""
        self._statements.insert("ledger", key, neighbors)
        self.add(None, "budget", "", limit)

    def add(self, parent: int | None, kind: str, name: str, limit: Amount | None) -> int:
        """Opens an account and returns its number."""
        limits = (None, None) if limit is None else (str(limit.epsilon), str(limit.delta))
        row = (None, parent, kind, name, write_time(), *limits, "0", "0")
        return self._statements.insert("account", *row)

    def find(self, parent: int, kind: str, name: str) -> int | None:
        """The number of the account with this name, or None."""
        where = "WHERE parent = ? AND kind = ? AND name = ?"
        accounts = self._statements.select("account", where, parent, kind, name)
        return int(accounts[0][0]) if accounts else None

    def enter(self, account: int, record: PrivacyRecord) -> int:
        """Writes a reserved entry and returns its number."""
        row = (None, account, write_time(), "reserved", record.to_json())
        return self._statements.insert("entry", *row)

    def settle(self, entry: int, state: str) -> None:
        """Notes how an entry ended."""
        self._statements.update("entry", {"state": state}, "WHERE id = ?", entry)

    def charge(self, number: int, cost: Amount) -> None:
        """Adds a cost to an account and to every account that pays for it."""
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
            left = f"{account.limit - account.spent} remain"
            raise BudgetExceeded(f"{state}, {left}, but {cost} was requested")
        sums = {"spent_epsilon": str(spent.epsilon), "spent_delta": str(spent.delta)}
        self._statements.update("account", sums, "WHERE id = ?", number)

    def room(self, number: int) -> Amount:
        """The largest cost that could be charged to the account."""
        account = self.account(number)
        if account.limit is not None:
            return account.limit - account.spent
        above = self.room(account.parent)
        if account.kind == "parallel":
            return above
        return above + self.account(account.parent).spent - account.spent


def _read_account(
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
    limit = None if epsilon is None or delta is None else _read_amount(epsilon, delta)
    spent = _read_amount(spent_epsilon, spent_delta)
    return Account(number, parent or 0, kind, name, _read_time(time), limit, spent)


def _read_row(account: int, time: str, state: str, record: str) -> LedgerRow:
    if state not in _STATES:
        raise ValueError("an entry is in no known state")
    try:
        return LedgerRow(account, _read_time(time), state, PrivacyRecord.from_json(record))
    except ParameterError as error:
        raise ValueError(str(error)) from error


def _read_amount(epsilon: str, delta: str) -> Amount:
    # Not Fraction(text), which would write out a power of ten of any size.
    return Amount(*(Fraction(*map(int, text.split("/"))) for text in (epsilon, delta)))


def _read_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time has no zone")
    return time


def write_time() -> str:
    """The present time as the tables hold it, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a budget's books.

    Attributes:
        record: The `PrivacyRecord` of the release; for a scope, of what was set aside for it.
        state: "reserved" (the mechanism runs, or its process died), "interrupted" (it raised),
            "committed", or "scope". The amount is spent in every state.
        time: When it was reserved, in UTC.
        scope: The path of names from the budget down to the account that was charged; empty if the
            budget itself was charged.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.budget import Budget
        >>> budget = Budget(1.0)
        >>> _ = noise.permute_and_flip([30, 950], epsilon=0.5, budget=budget)
        >>> [(entry.record.mechanism, entry.state) for entry in budget.records]
        [('noise.permute_and_flip', 'committed')]
    """

    record: PrivacyRecord
    state: str
    time: datetime
    scope: str = ""


def list_entries(
    accounts: dict[int, Account], rows: list[LedgerRow], top: int, relation: str
) -> tuple[Entry, ...]:
    """Every release from one account and its scopes, in order of time.

    accounts and rows are those of the whole ledger, top is the number of the account, and relation
    is that of the ledger.
    """
    paths = _list_paths(accounts, top)
    releases = [
        Entry(record=row.record, state=row.state, time=row.time, scope=paths[row.account])
        for row in rows
        if row.account in paths
    ]
    scopes = [accounts[number] for number in paths if number != top]
    totals = [
        _describe_scope(scope, paths[scope.parent], relation)
        for scope in scopes
        if scope.kind != "part" and scope.charge.epsilon
    ]
    return tuple(sorted(totals + releases, key=lambda entry: entry.time))


def render_html(title: str, entries: tuple[Entry, ...]) -> str:
    """A title above the table of entries, as notebooks show a budget."""
    names = (
        "time (UTC)",
        "scope",
        "mechanism",
        "epsilon",
        "delta",
        "attacker's advantage",
        "state",
    )
    head = _html_row("th", names)
    body = "".join(_html_row("td", _cells(entry)) for entry in entries)
    return f"<p><code>{html.escape(title)}</code></p><table>{head}{body}</table>"


def _list_paths(accounts: dict[int, Account], top: int) -> dict[int, str]:
    """The path of names of an account and of every account below it; parents come first."""
    paths = {top: ""}
    for account in accounts.values():
        if account.parent in paths:
            paths[account.id] = f"{paths[account.parent]}/{account.name}".removeprefix("/")
    return paths


def _describe_scope(scope: Account, path: str, relation: str) -> Entry:
    epsilon, delta = scope.charge.floats(math.inf)
    record = PrivacyRecord(
        mechanism=f"budget.{scope.kind}, name={scope.name}",
        source=f"{'basic' if scope.kind == 'sequential' else 'parallel'} composition",
        neighbors=relation,  # type: ignore[arg-type]
        epsilon=epsilon,
        delta=delta,
        noise="that of the releases inside",
    )
    return Entry(record=record, state="scope", time=scope.time, scope=path)


def _cells(entry: Entry) -> tuple[str, ...]:
    record, time = entry.record, f"{entry.time:%Y-%m-%d %H:%M:%S}"
    amounts = f"{record.epsilon:g}", f"{record.delta:g}", f"{round_up(record.attack_advantage):g}"
    return (time, entry.scope, record.mechanism, *amounts, entry.state)


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
