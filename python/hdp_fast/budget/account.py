"""Budgets: the account of all releases about the same records."""

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
from .._support.notes import note_charge, require_allowed
from .._support.uncopyable import Uncopyable
from .._support.validate import number, one_of, refuse
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .ledger import ROOT, FileLedger, Ledger, create_ledger
from .tables import Account, Amount, Entry, LedgerRow, list_entries, render_html

Neighbors = Literal["replace_one", "add_remove"]
Relation = Literal["replace_one", "add_remove", "replace_person", "add_remove_person"]

# The relations of the records that a budget of each relation can take. A local answer comes from
# one record. Replacing this record changes the law of that answer alone, by a factor of at most
# exp(epsilon). Removing it would show, since an answer would be missing. Where whatever a person's
# rows hold is protected, so is what one of them holds. But removing one row of a person may bring
# another one into a sample of them, and who removes all rows of a person removes more than one.
_COVERED = {
    "replace_one": ("replace_one", "local", "replace_person"),
    "add_remove": ("add_remove",),
    "replace_person": ("replace_person",),
    "add_remove_person": ("add_remove_person",),
}


class Spending(NamedTuple):
    """A pair of an epsilon and a delta.

    Attributes:
        epsilon: Privacy parameter epsilon.
        delta: Privacy parameter delta.

    Examples:
        >>> from hdp_fast.budget import Budget
        >>> Budget(2.0, 1e-6).remaining
        Spending(epsilon=2.0, delta=1e-06)
    """

    epsilon: float
    delta: float


class Reservation(Uncopyable):
    """What a budget has set aside for one release; the mechanism runs inside it, once.

    `Budget.reserve` makes it. It is a context manager that can be entered once. A copy is the very
    same object, pickling raises, and a forked child cannot enter it.

    Args:
        ledger: The books of the budget.
        entry: The number of the reserved entry in these books.
        record: What was reserved.

    Attributes:
        record: What was reserved, a `PrivacyRecord`.

    Raises:
        ParameterError: It is entered a second time, or in a forked child.
        TypeError: It is pickled.

    Examples:
        >>> from hdp_fast import PrivacyRecord, budget
        >>> record = PrivacyRecord(mechanism="my count", source="Ghosh et al. 2009",
        ...     neighbors="replace_one", epsilon=0.5, noise="discrete Laplace")
        >>> account = budget.Budget(1.0)
        >>> with account.reserve(record):
        ...     pass  # run the mechanism here
        >>> account.spent.epsilon, account.records[0].state
        (0.5, 'committed')
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
        """What may still be spent, rounded down, so that a request for it is never refused."""
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

    A budget made here lives in memory and serves the process that made it; a forked child is
    refused. `Budget.open(path)` keeps one in a file, which serves many processes and survives them.

    Sums are exact. A float stands for its shortest decimal, so that three times 0.1 fits into 0.3.
    Copies, deep copies and scikit-learn's clones are the very same object. Pickling a budget in
    memory raises; one in a file is opened again where it is unpickled.

    It is a context manager. At the end of the block it is closed: this object and the scopes of it
    take no further release. Nothing is refunded, whether the block raised or not. What was spent
    can still be read; a file, which no handle keeps open between releases, can be opened again, and
    the limit goes on to hold there. Closing a scope leaves the budget open that it is of.

    Args:
        epsilon: Limit on the sum of all epsilons, finite and above 0.
        delta: Limit on the sum of all deltas, in [0, 1).
        neighbors: The relation for which the whole is to hold, "replace_one" or "add_remove", or
            "replace_person" or "add_remove_person" where people may have several rows: then every
            release must know whose rows they are.

    Raises:
        ParameterError: An argument lies outside its range; or a budget is used or entered that was
            closed.
        TypeError: A budget in memory is pickled.

    Guarantee:
        All releases through it, adaptive or not, are together (epsilon, delta)-DP for each record
        under its relation, if each release keeps what its `PrivacyRecord` states. A record of
        another relation is refused, since its epsilon has another meaning. A "local" record (one
        epsilon for each answer, one answer from each record) counts as "replace_one", and so does a
        "replace_person" record, which protects what any row of a person holds. Releases that do not
        go through the budget are not counted.

    Cost:
        About 0.15 ms for each release in memory; a millisecond or two and two synchronized writes
        in a file.

    Source:
        Basic composition of adaptively chosen mechanisms: Dwork et al. 2006; Rogers, Roth, Ullman
        and Vadhan 2016 (privacy odometers and filters).

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.budget import Budget
        >>> budget = Budget(0.3)
        >>> for scores in ([30, 950], [800, 20], [400, 7000]):
        ...     _ = noise.permute_and_flip(scores, epsilon=0.1, budget=budget)
        >>> budget
        Budget(epsilon 0.3 of 0.3 spent, replace_one, in memory)
        >>> with Budget.open("year.budget", epsilon=1.0) as year:
        ...     _ = noise.permute_and_flip([30, 950], epsilon=0.4, budget=year)
        >>> Budget.open("year.budget").remaining.epsilon  # nothing is refunded
        0.6
    """

    def __init__(self, epsilon: float, delta: float = 0.0, *, neighbors: Relation = "replace_one"):
        limit = Amount.of(epsilon, delta)
        self._ledger = Ledger(limit, _check_relation(neighbors))
        self._account = ROOT

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbors: Relation | None = None,
    ) -> Budget:
        """Opens a budget in a file, or makes the file if there is none and `epsilon` is passed.

        Args:
            path: An SQLite file with one name on a local disk, in a folder that can be written. A
                network drive is refused where Linux reports that it is one. A new file has mode
                0600; the mode of an existing one is kept.
            epsilon: Limit of a new budget, finite and above 0. None opens an existing file only.
                For an existing file this and the next two must agree with it, or be None.
            delta: Limit of a new budget, in [0, 1); None means 0.
            neighbors: Relation of a new budget; None means "replace_one".

        Returns:
            The budget in the file.

        Raises:
            ParameterError: There is no file and no epsilon, the limits differ, or the file belongs
                to another program or version, is damaged, or cannot be written. Nothing is changed
                then.

        Cost:
            One pass over the entries.

        Source:
            SQLite with a write-ahead log and synchronous=FULL.

        Examples:
            >>> from hdp_fast.budget import Budget
            >>> budget = Budget.open("study.budget", epsilon=2.0, delta=1e-6)
            >>> Budget.open("study.budget").limit  # in another process, or next year
            Spending(epsilon=2.0, delta=1e-06)
        """
        if epsilon is not None:
            limit = Amount.of(epsilon, 0.0 if delta is None else delta)
            relation = _check_relation("replace_one" if neighbors is None else neighbors)
            create_ledger(path, limit, relation)
        budget = cls._view(FileLedger(path), ROOT)
        budget._require("epsilon", epsilon if epsilon is None else number("epsilon", epsilon))
        budget._require("delta", delta if delta is None else number("delta", delta))
        budget._require("neighbors", neighbors)
        return budget

    def __enter__(self) -> Self:
        self._ledger.require_open(self._account)
        return self

    def __exit__(self, *error: object) -> None:
        # A release may still be under way in a thread: it is paid for, and notes its end.
        self._ledger.close(self._account)

    def _require(self, name: str, wanted: object) -> None:
        kept = {**self.limit._asdict(), "neighbors": self.neighbors}[name]
        if wanted is not None and wanted != kept:
            refuse(name, wanted, f"the budget in the file has {kept!r}")

    @property
    def limit(self) -> Spending:
        """What may be spent in all; for a part of a parallel scope, as things stand now."""
        account, room = self._balance()
        return _round_down(account.spent + room)

    @property
    def neighbors(self) -> str:
        """The relation for which the guarantee holds."""
        return self._ledger.neighbors

    @property
    def path(self) -> Path | None:
        """The file; None for a budget in memory."""
        return self._ledger.path

    @property
    def records(self) -> tuple[Entry, ...]:
        """Every release from this budget and its scopes, in order of time."""
        return self._entries(*self._ledger.statement(self._account)[:2])

    def _entries(self, accounts: dict[int, Account], rows: list[LedgerRow]) -> tuple[Entry, ...]:
        return list_entries(accounts, rows, self._account, self.neighbors)

    def reserve(self, record: PrivacyRecord) -> Reservation:
        """Spends what a record states, before the mechanism runs.

        Nothing is ever given back: a mechanism that raised or died may have shown something.

        Args:
            record: The `PrivacyRecord` of the release to come.

        Returns:
            A context manager in which the mechanism runs. Leaving it notes whether the mechanism
                came to its end.

        Raises:
            BudgetExceeded: Less is left than the record needs. The text names what is spent,
                allowed, left and requested. Nothing is spent then.
            ParameterError: The argument is no record, or its neighbor relation is not that of the
                budget. Nothing is spent then.
        """
        # No subclass: its further fields would not come back from a file.
        if type(record) is not PrivacyRecord:
            refuse("record", record, "it must be a hdp_fast.PrivacyRecord")
        check_covered(self, record)
        return Reservation(self._ledger, self._ledger.reserve(self._account, record), record)

    def sequential(self, epsilon: float, delta: float = 0.0, *, name: str | None = None) -> Budget:
        """Carves a budget of its own out of this one.

        Args:
            epsilon: Its limit, finite and above 0. The limit is charged to this budget at once and
                never given back.
            delta: Its limit, in [0, 1), charged likewise.
            name: Its name in the records; None means "sequential".

        Returns:
            The new budget.

        Raises:
            BudgetExceeded: Less is left than the limit. Nothing is spent then.
            ParameterError: An argument lies outside its range. Nothing is spent then.

        Examples:
            >>> from hdp_fast.budget import Budget
            >>> budget = Budget(2.0)
            >>> labels = budget.sequential(0.5, name="labels")
            >>> labels.remaining.epsilon, budget.remaining.epsilon
            (0.5, 1.5)
        """
        limit = Amount.of(epsilon, delta)
        return Budget._view(
            self._ledger, self._ledger.carve(self._account, _check_name(name), limit)
        )

    def parallel(self, *, name: str | None = None) -> Parallel:
        """Opens a scope for disjoint records, which costs the maximum over its parts.

        Every call opens a new scope, so that one split of the records is never mistaken for
        another. Keep the scope as long as the split.

        Args:
            name: Its name in the records; None means "parallel".

        Returns:
            The scope, which has spent nothing yet.

        Raises:
            ParameterError: The name is no text.

        Guarantee:
            The maximum is enough if every record is in at most one part, whatever its values. Under
            "replace_one" parts must be made by position or identity. Where values decide, a
            replaced record may leave one part and enter another; both parts change, and the sum
            must be paid, with `sequential`. Under "add_remove" a record's part must depend on that
            record alone, never on its position, which the removal of another record shifts.

        Source:
            Parallel composition, McSherry 2009.

        Examples:
            >>> from hdp_fast import noise
            >>> from hdp_fast.budget import Budget
            >>> budget = Budget(1.0)
            >>> halves = budget.parallel(name="halves")
            >>> for half, scores in enumerate([[5, 900], [950, 3]]):
            ...     _ = noise.permute_and_flip(scores, epsilon=0.4, budget=halves.part(half))
            >>> budget.spent.epsilon
            0.4
        """
        return Parallel._view(self._ledger, self._ledger.split(self._account, _check_name(name)))

    def to_json(self) -> str:
        """Writes limits, sums and records as a JSON object.

        Returns:
            The text. Each record is in it as `PrivacyRecord.to_json` has it.

        Raises:
            ParameterError: The file of the budget is no longer there.

        Cost:
            One pass over the entries.
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
    """A scope over disjoint records, made by `Budget.parallel`.

    Its `spent` is the maximum over the parts, which is what the scope costs its budget.

    Examples:
        >>> from hdp_fast.budget import Budget
        >>> scope = Budget(1.0).parallel(name="hospitals")
        >>> scope.part("north").remaining.epsilon
        1.0
        >>> scope
        Parallel(largest part: epsilon 0, delta 0)
    """

    @property
    def remaining(self) -> Spending:
        """What a part that has spent nothing could spend, rounded down."""
        account, room = self._balance()
        return _round_down(account.spent + room)

    def part(self, name: str | int) -> Budget:
        """Returns the budget of one part of the records, the same one for the same name.

        Spending from it charges the scope's budget by as much as the maximum over the parts grows,
        before anything runs.

        Args:
            name: Name of the part, a text or an integer. An integer names the same part as its
                digits.

        Returns:
            The part's budget. It has no limit of its own.

        Raises:
            ParameterError: The name is neither a text nor an integer, or the file is no longer
                there.

        Guarantee:
            As for `Budget.parallel`: every record must be in at most one part.

        Source:
            Parallel composition, McSherry 2009.
        """
        if not isinstance(name, str | int):
            refuse("name", name, "it must be a text or an integer")
        return Budget._view(self._ledger, self._ledger.part(self._account, _check_text(name)))

    def __repr__(self) -> str:
        spent = self.spent
        return f"Parallel(largest part: epsilon {spent.epsilon:g}, delta {spent.delta:g})"


def spend(budget: Budget | None, record: PrivacyRecord) -> AbstractContextManager[object]:
    """Reserves what a mechanism spends, or does nothing where there is no budget.

    A mechanism calls it once all arguments are checked and before any coin is drawn, and runs
    inside.

    Args:
        budget: A `Budget`, or None.
        record: The `PrivacyRecord` of the release to come.

    Returns:
        The context manager in which the mechanism runs.

    Raises:
        BudgetExceeded: Less is left than the record needs. Nothing is spent then.
        ParameterError: `budget` is no budget, the record's neighbor relation is not that of the
            budget, or an environment variable has a value that the mechanism would refuse. Nothing
            is spent then.

    Guarantee:
        What the record states is spent before the mechanism runs. With None nothing is noted.

    Source:
        Basic composition, Dwork et al. 2006.

    Examples:
        >>> from hdp_fast import PrivacyRecord, budget, noise
        >>> record = PrivacyRecord(mechanism="count", source="Ghosh et al. 2009",
        ...     neighbors="replace_one", epsilon=0.5, noise="discrete Laplace")
        >>> account = budget.Budget(1.0)
        >>> with budget.spend(account, record):
        ...     released = 1000 + noise.discrete_laplace(1 / 0.5)
        >>> account.remaining.epsilon
        0.5
    """
    require_allowed()
    if budget is None:
        note_charge()
        return nullcontext()
    check_budget(budget)
    _core.check_settings()
    reservation = budget.reserve(record)
    note_charge()
    return reservation


def check_budget(budget: object) -> None:
    """Raise ParameterError for what is neither a budget nor None."""
    if budget is not None and not isinstance(budget, Budget):
        refuse("budget", budget, "it must be a hdp_fast.budget.Budget or None")


def check_covered(budget: Budget, record: PrivacyRecord) -> None:
    """Raise ParameterError if a record's relation is none that the budget says something about."""
    if record.neighbors not in _COVERED[budget.neighbors]:
        rule = f"the budget is for {budget.neighbors}, of which its epsilon says nothing"
        raise ParameterError(f"neighbors = {record.neighbors!r}, but {rule}")


def check_charge(budget: Budget | None, epsilon: float) -> None:
    """Raise ParameterError if a fit that protects no one is to be charged to a budget."""
    if epsilon == math.inf and budget is not None:
        refuse("epsilon", epsilon, "only a private fit can be charged to a budget")


def _check_relation(neighbors: str) -> str:
    return one_of("neighbors", neighbors, _COVERED)


def _check_name(name: str | None) -> str | None:
    if name is not None and not isinstance(name, str):
        refuse("name", name, "it must be a text")
    return name if name is None else _check_text(name)


def _check_text(name: str | int) -> str:
    """The name as text that a file can hold."""
    try:
        name = str(name)
        name.encode()
    except ValueError:
        refuse("name", name, "it must be valid Unicode, or an integer of fewer digits")
    return name


def _compare(spent: float, limit: float) -> str:
    return f"{spent:g} of {limit:g} spent"
