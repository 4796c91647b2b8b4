"""The account of all releases about the same records."""

from __future__ import annotations

import json
import math
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from .. import _core
from .._support.uncopyable import Uncopyable
from .._support.validate import number, positive, probability, refuse
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .entries import Entry, list_entries, render_html
from .ledger import ROOT, FileLedger, Ledger, create_ledger
from .tables import Account, Amount, Row

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


def _round_up(amount: Amount) -> Spending:
    return Spending(*amount.floats(math.inf))


def _round_down(amount: Amount) -> Spending:
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
        return _round_up(self._balance()[0].spent)

    @property
    def remaining(self) -> Spending:
        """What may still be spent; rounded down, so that asking for it is never refused."""
        return _round_down(self._balance()[1])

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
        return _reopen, (type(self), str(self._ledger.path), self._ledger.key, self._account)


def _reopen(kind: type[_Shared], path: str, key: str, account: int) -> _Shared:
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
        limit = _check_limit(epsilon, delta)
        self._ledger = Ledger(limit, _check_relation(neighbors))
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
            limit = _check_limit(epsilon, 0.0 if delta is None else delta)
            relation = _check_relation("replace_one" if neighbors is None else neighbors)
            create_ledger(path, limit, relation)
        budget = cls._view(FileLedger(path), ROOT)
        budget._require("epsilon", epsilon if epsilon is None else number("epsilon", epsilon))
        budget._require("delta", delta if delta is None else number("delta", delta))
        budget._require("neighbors", neighbors)
        return budget

    def _require(self, name: str, wanted: object) -> None:
        kept = {**self.limit._asdict(), "neighbors": self.neighbors}[name]
        if wanted is not None and wanted != kept:
            refuse(name, wanted, f"the budget in the file has {kept!r}")

    @property
    def limit(self) -> Spending:
        """What may be spent in all; of a part of a parallel scope, as things stand."""
        account, room = self._balance()
        return _round_down(account.spent + room)

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
        return list_entries(accounts, rows, self._account, self.neighbors)

    def reserve(self, record: PrivacyRecord) -> Reservation:
        """Spend what a record says, before the mechanism runs.

        record: of the release to come. Returns a context manager to run the mechanism in; leaving
        it notes whether the mechanism came to its end. Nothing is ever given back: a mechanism
        that raised or died may have shown something.

        Raises: BudgetExceeded with what is spent, allowed, left and requested, ParameterError for a
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
        limit = _check_limit(epsilon, delta)
        return Budget._view(
            self._ledger, self._ledger.carve(self._account, _check_name(name), limit)
        )

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
        return Parallel._view(self._ledger, self._ledger.split(self._account, _check_name(name)))

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
            "limit": _round_down(limit)._asdict(),
            "spent": _round_up(spent)._asdict(),
            "remaining": _round_down(room)._asdict(),
            "records": [{**asdict(entry), "time": entry.time.isoformat()} for entry in entries],
        }
        return json.dumps(summary)

    def __repr__(self) -> str:
        spent, limit = self.spent, self.limit
        text = f"epsilon {_compare(spent.epsilon, limit.epsilon)}"
        if limit.delta:
            text += f", delta {_compare(spent.delta, limit.delta)}"
        where = "in memory" if self.path is None else str(self.path)
        return f"Budget({text}, {self.neighbors}, {where})"

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.records)


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
        return _round_down(account.spent + room)

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
        return Budget._view(self._ledger, self._ledger.part(self._account, _check_text(name)))

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


def _check_limit(epsilon: float, delta: float) -> Amount:
    return Amount.of(positive("epsilon", epsilon), probability("delta", delta, zero=True))


def _check_relation(neighbors: str) -> str:
    if not isinstance(neighbors, str) or neighbors not in _COVERED:
        refuse("neighbors", neighbors, f"it must be one of {', '.join(_COVERED)}")
    return neighbors


def _check_name(name: str | None) -> str | None:
    if name is not None and not isinstance(name, str):
        refuse("name", name, "it must be a text")
    return name if name is None else _check_text(name)


def _check_text(name: str | int) -> str:
    """A name that a file can hold."""
    try:
        name = str(name)
        name.encode()
    except ValueError:
        refuse("name", name, "it must be valid Unicode, or an integer of fewer digits")
    return name


def _compare(spent: float, limit: float) -> str:
    return f"{spent:g} of {limit:g} spent"
