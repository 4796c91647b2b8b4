"""The account of all releases about the same records."""

from __future__ import annotations

import html
import json
import math
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from .. import _core
from .._support.uncopyable import Uncopyable
from .._support.validate import number, positive, probability, refuse
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .ledger import ROOT, Account, Amount, FileLedger, Ledger, Row, create_ledger

Neighbors = Literal["replace_one", "add_remove"]

# The records that a budget of each relation can take. One local answer is one record's: replacing
# the record changes the law of that answer alone, by exp(epsilon) at most; removing it would show.
_COVERED = {"replace_one": ("replace_one", "local"), "add_remove": ("add_remove",)}


class Spending(NamedTuple):
    """An epsilon and a delta.

    Attributes:
        epsilon: privacy parameter.
        delta: privacy parameter.
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a budget's books.

    Attributes:
        record: the release; of a scope, what was set aside for it.
        state: "reserved" (running, or the process died), "interrupted" (it raised), "committed",
            or "scope"; spent, in any case.
        time: when it was reserved, UTC.
        scope: path of names below the budget; empty where this budget itself was charged.
    """

    record: PrivacyRecord
    state: str
    time: datetime
    scope: str = ""


class Reservation(Uncopyable):
    """What a budget has set aside for one release; entered, once, while the mechanism runs.

    A copy is the very same object, pickling raises, and a forked child cannot enter it.

    Attributes:
        record: what was reserved.
    """

    _copied = "run again what was paid for once"
    _instead = "reserve in the process that runs"

    def __init__(self, ledger: Ledger, entry: int, record: PrivacyRecord):
        super().__init__()
        self.record = record
        self._ledger = ledger
        self._entry = entry
        self._used = False

    def __enter__(self) -> Self:
        with self._hold():
            if self._used:
                raise ParameterError("reservation has been used, but every run must be paid for")
            self._used = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ledger.settle(self._entry, "committed" if kind is None else "interrupted")


def _upwards(amount: Amount) -> Spending:
    return Spending(*amount.floats(math.inf))


def _downwards(amount: Amount) -> Spending:
    return Spending(*amount.floats(-math.inf))


class _Shared:
    """A view of an account that is never copied: two copies could spend the same epsilon."""

    _ledger: Ledger
    _account: int

    @classmethod
    def _view(cls, ledger: Ledger, account: int) -> Self:
        view = cls.__new__(cls)
        view._ledger = ledger
        view._account = account
        return view

    @property
    def spent(self) -> Spending:
        """What has been spent, reservations and scopes included; rounded up."""
        return _upwards(self._balance()[0].spent)

    @property
    def remaining(self) -> Spending:
        """What may still be spent; rounded down, so that asking for it is never refused."""
        return _downwards(self._balance()[1])

    def _balance(self) -> tuple[Account, Amount]:
        return self._ledger.balance(self._account)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._ledger.path is None:
            reason = "a copy in another process could spend the same epsilon again"
            way = "share one in a file, Budget.open(path)"
            raise TypeError(f"a budget in memory can't be pickled: {reason}; {way}")
        return _reopened, (type(self), str(self._ledger.path), self._ledger.key, self._account)


def _reopened(kind: type[_Shared], path: str, key: str, account: int) -> _Shared:
    ledger = FileLedger(path)
    if ledger.key != key:
        refuse("path", path, "it must be the ledger that was pickled")
    return kind._view(ledger, account)


class Budget(_Shared):
    """A limit on all that is released about the same records.

    epsilon: above 0 and finite; delta: in [0, 1); neighbors: "replace_one" or "add_remove", the
    relation that the whole is to hold for. The budget is in memory, for one process;
    Budget.open(path) is for many, and survives them.

    Sums are exact: a float stands for its shortest decimal, so that three times 0.1 fits into 0.3.
    Copies, deep copies and scikit-learn's clones are the same object. Pickling one in memory
    raises; one in a file is opened again where it is unpickled.

    Guarantee: everything released through it, adaptively or not, is (epsilon, delta)-DP for each
        record under its relation, if each release keeps what its PrivacyRecord says. A record of
        the other relation is refused, since its epsilon means something else; a "local" one
        (epsilon per answer, an answer from each record) counts as "replace_one".
    Raises: ParameterError.
    Cost: microseconds in memory, about a millisecond and two synchronized writes in a file.
    Source: basic composition of adaptively chosen mechanisms (Dwork et al. 2006; Rogers et al.
        2016, Privacy Odometers and Filters).
    """

    def __init__(self, epsilon: float, delta: float = 0.0, *, neighbors: Neighbors = "replace_one"):
        limit = _limit(epsilon, delta)
        self._ledger = Ledger(limit, _relation(neighbors))
        self._account = ROOT

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: Neighbors | None = None,
    ) -> Budget:
        """Open a budget in a file, or make one if there is none and epsilon is given.

        path: an SQLite file of one name on a local disk (a network drive is refused where Linux
        says that it is one), in a folder that can be written. A new one has mode 0600; the mode of
        an existing one is kept. epsilon, delta, neighbors: of a new budget, 0 and "replace_one"
        where they are None; those of an existing one must agree where they are given.

        Raises: ParameterError when there is no file and no epsilon, when the limits differ, and
            for a file of another program or version, an unwritable or a damaged one; nothing is
            changed then.
        Cost: one pass over the entries.
        Source: SQLite, write-ahead log, synchronous=FULL.
        """
        if epsilon is not None:
            limit = _limit(epsilon, 0.0 if delta is None else delta)
            relation = _relation("replace_one" if neighbors is None else neighbors)
            create_ledger(path, limit, relation)
        budget = cls._view(FileLedger(path), ROOT)
        budget._require("epsilon", epsilon if epsilon is None else number("epsilon", epsilon))
        budget._require("delta", delta if delta is None else number("delta", delta))
        budget._require("neighbors", neighbors)
        return budget

    def _require(self, name: str, given: object) -> None:
        found = {**self.limit._asdict(), "neighbors": self.neighbors}[name]
        if given is not None and given != found:
            refuse(name, given, f"the budget in the file has {found!r}")

    @property
    def limit(self) -> Spending:
        """What may be spent in all; of a part of a parallel scope, as things stand."""
        account, room = self._balance()
        return _downwards(account.spent + room)

    @property
    def neighbors(self) -> str:
        """The relation that the guarantee holds for."""
        return self._ledger.neighbors

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return self._ledger.path

    @property
    def records(self) -> tuple[Entry, ...]:
        """Every release from this budget and its scopes, in order of time."""
        return self._entries(*self._ledger.statement(self._account)[:2])

    def _entries(self, accounts: dict[int, Account], rows: list[Row]) -> tuple[Entry, ...]:
        scopes = _paths(accounts, self._account)
        releases = [_release(row, scopes[row.account]) for row in rows if row.account in scopes]
        inner = [accounts[number] for number in scopes if number != self._account]
        totals = [
            _set_aside(scope, scopes[scope.parent], self.neighbors)
            for scope in inner
            if scope.kind != "part" and scope.charge.epsilon
        ]
        return tuple(sorted(totals + releases, key=lambda entry: entry.time))

    def reserve(self, record: PrivacyRecord) -> Reservation:
        """Spend what a record says, before the mechanism runs.

        record: of the release to come. Returns a context manager to run the mechanism in; leaving
        it notes whether the mechanism came to its end. Nothing is ever given back: a mechanism
        that raised or died may have shown something.

        Raises: BudgetExceeded with what is spent, requested and allowed, ParameterError for a
            record of another neighbor relation. Nothing is spent then.
        Cost: as the class.
        Source: as the class.
        """
        # No subclass: its further fields would not come back from a file.
        if type(record) is not PrivacyRecord:
            refuse("record", record, "it must be a hdp_fast.PrivacyRecord")
        if record.neighbors not in _COVERED[self.neighbors]:
            rule = f"the budget is for {self.neighbors}, of which its epsilon says nothing"
            raise ParameterError(f"neighbors = {record.neighbors!r}, but {rule}")
        return Reservation(self._ledger, self._ledger.reserve(self._account, record), record)

    def sequential(self, epsilon: float, delta: float = 0.0, *, name: str | None = None) -> Budget:
        """A budget of its own, carved out of this one.

        epsilon, delta: its limit, charged to this budget at once and never given back. name: shown
        in the records.

        Raises: BudgetExceeded, ParameterError; nothing is spent then.
        Cost: as the class.
        Source: as the class.
        """
        limit = _limit(epsilon, delta)
        return Budget._view(self._ledger, self._ledger.carve(self._account, _name(name), limit))

    def parallel(self, *, name: str | None = None) -> Parallel:
        """A scope whose parts are spent on disjoint records; it costs the maximum over the parts.

        name: shown in the records. Every call opens a new scope, so that one split of the records
        is never mistaken for another: keep the scope as long as the split.

        Guarantee: holds if every record is in one part at most, whatever its values. Under
            "replace_one", parts must go by position or identity: where the values decide, a
            replaced record may leave one part and enter another, both change, and the sum must be
            paid, with sequential(). Under "add_remove", parts go by the record alone, never by
            its position, which the removal of another one shifts.
        Raises: ParameterError.
        Cost: as the class.
        Source: parallel composition (McSherry 2009).
        """
        return Parallel._view(self._ledger, self._ledger.split(self._account, _name(name)))

    def to_json(self) -> str:
        """Limits, sums and records as a JSON object; each record as PrivacyRecord.to_json has it.

        Raises: nothing in memory; ParameterError for a file that is no longer there.
        Cost: one pass over the entries.
        Source: none.
        """
        accounts, rows, room = self._ledger.statement(self._account)
        spent, limit = accounts[self._account].spent, accounts[self._account].spent + room
        entries = self._entries(accounts, rows)
        summary = {
            "neighbors": self.neighbors,
            "limit": _downwards(limit)._asdict(),
            "spent": _upwards(spent)._asdict(),
            "remaining": _downwards(room)._asdict(),
            "records": [{**asdict(entry), "time": entry.time.isoformat()} for entry in entries],
        }
        return json.dumps(summary)

    def __repr__(self) -> str:
        spent, limit = self.spent, self.limit
        text = f"epsilon {_of(spent.epsilon, limit.epsilon)}"
        if limit.delta:
            text += f", delta {_of(spent.delta, limit.delta)}"
        where = "in memory" if self.path is None else str(self.path)
        return f"Budget({text}, {self.neighbors}, {where})"

    def _repr_html_(self) -> str:
        head = _html_row("th", ("time (UTC)", "scope", "mechanism", "epsilon", "delta", "state"))
        body = "".join(_html_row("td", _cells(entry)) for entry in self.records)
        return f"<p><code>{html.escape(repr(self))}</code></p><table>{head}{body}</table>"


class Parallel(_Shared):
    """A scope over disjoint records, made by Budget.parallel.

    Attributes:
        spent: the maximum over the parts, which is what the scope costs its budget.
        remaining: what a part that has spent nothing could spend.
    """

    @property
    def remaining(self) -> Spending:
        """What a part that has spent nothing could spend."""
        account, room = self._balance()
        return _downwards(account.spent + room)

    def part(self, name: str | int) -> Budget:
        """The budget of one part of the records; the same one for the same name.

        name: of the part. Spending from it charges the scope's budget as far as the maximum over
        the parts grows, before anything runs.

        Guarantee: as Budget.parallel.
        Raises: ParameterError.
        Cost: as Budget.
        Source: as Budget.parallel.
        """
        if not isinstance(name, str | int):
            refuse("name", name, "it must be a text or an integer")
        return Budget._view(self._ledger, self._ledger.part(self._account, _text(name)))

    def __repr__(self) -> str:
        spent = self.spent
        return f"Parallel(largest part: epsilon {spent.epsilon:g}, delta {spent.delta:g})"


def spend(budget: Budget | None, record: PrivacyRecord) -> AbstractContextManager[object]:
    """The reservation of a mechanism, or nothing where there is no budget.

    budget: a Budget or None; record: of the release to come. Called when everything has been
    checked and no coin drawn; the mechanism runs inside.

    Guarantee: what the record says is spent before the mechanism runs; with None nothing is noted.
    Raises: as Budget.reserve; ParameterError for anything but a budget, and for environment
        variables that the mechanism would refuse.
    Cost: as Budget.
    Source: basic composition.
    """
    if budget is None:
        return nullcontext()
    if not isinstance(budget, Budget):
        refuse("budget", budget, "it must be a hdp_fast.budget.Budget or None")
    _core.check_settings()
    return budget.reserve(record)


def _limit(epsilon: float, delta: float) -> Amount:
    return Amount.of(positive("epsilon", epsilon), probability("delta", delta, zero=True))


def _relation(neighbors: str) -> str:
    if not isinstance(neighbors, str) or neighbors not in _COVERED:
        refuse("neighbors", neighbors, f"it must be one of {', '.join(_COVERED)}")
    return neighbors


def _name(name: str | None) -> str | None:
    if name is not None and not isinstance(name, str):
        refuse("name", name, "it must be a text")
    return name if name is None else _text(name)


def _text(name: str | int) -> str:
    """A name that a file can hold."""
    try:
        name = str(name)
        name.encode()
    except ValueError:
        refuse("name", name, "it must be valid Unicode, or an integer of fewer digits")
    return name


def _paths(accounts: dict[int, Account], top: int) -> dict[int, str]:
    """The path of names of every account at or below one of them; parents come first."""
    paths = {top: ""}
    for account in accounts.values():
        if account.parent in paths:
            paths[account.id] = f"{paths[account.parent]}/{account.name}".removeprefix("/")
    return paths


def _release(row: Row, path: str) -> Entry:
    return Entry(record=row.record, state=row.state, time=row.time, scope=path)


def _set_aside(scope: Account, path: str, relation: str) -> Entry:
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


def _of(spent: float, limit: float) -> str:
    return f"{spent:g} of {limit:g} spent"


def _cells(entry: Entry) -> tuple[str, ...]:
    record, time = entry.record, f"{entry.time:%Y-%m-%d %H:%M:%S}"
    amounts = f"{record.epsilon:g}", f"{record.delta:g}"
    return (time, entry.scope, record.mechanism, *amounts, entry.state)


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
