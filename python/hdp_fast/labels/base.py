"""What labelers have in common: one ensemble, one account of what has been used up, one record."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._support import progress as progress_module
from .._support.random_state import check_random_state, make_generator
from .._support.types import RandomState
from .._support.validate import nonnegative_int, positive_int, refuse, shorten
from ..budget.account import Budget, spend
from ..data import records
from ..exceptions import BudgetExceeded, CheckpointError, HdpFastError, ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from ..stability.gaussian import GaussianSession, GaussianVote
from ..stability.plans import Table, VotePlan
from ..stability.sessions import Session
from ..stability.tables import HazardTable
from .ensemble import Ensemble, chunking, ledger_of, packed, place, read, trained, written
from .members import check
from .usage import Spent, Used

_MOST_MEMBERS = 1 << 24
# Bottoms and, for scores, twice as many queries as a table takes.
_MOST = 1 << 39


@dataclass(frozen=True, slots=True)
class Fitted:
    """What one fit or load has made: read once by each call, however many there are meanwhile.

    Attributes:
        plan, record, diagnosis: as the labeler shows them.
        ensemble: the members, of which no other account may pay for answers.
        spent: their account.
        classes: the labels that members may vote for; none of them where they score.
    """

    plan: VotePlan
    record: PrivacyRecord | None
    ensemble: Ensemble
    spent: Spent
    classes: NDArray[Any]
    diagnosis: dict[int, str] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table of coins, or the noisy counts, that answers."""
        return self.ensemble.table

    @property
    def members(self) -> int:
        """How many members vote."""
        return len(self.ensemble.members)

    def asked(self, Q: Any) -> Any:
        """Queries that may be asked, as many as there are.

        Raises: ShapeError, BudgetExceeded.
        """
        queries = records.check_features("Q", Q)
        if tuple(queries.shape[1:]) != self.ensemble.shape:
            rule = f"it must be (q, *{self.ensemble.shape}), as X was"
            raise ShapeError(f"Q has shape {tuple(queries.shape)}, but {rule}")
        _check_left(self.table, self.spent.used(), records.count_rows(queries))
        return queries

    def answers(self, ask: Callable[[Any], Any], queries: int, bottoms: int | None) -> Any:
        """Answers, paid for by the time they are returned, and what is left."""
        table = self.table
        with self.spent.payment() as used:
            _check_left(table, used, queries)
            session = self._session(used, bottoms)
            given = session.bottoms_left or 0
            found = ask(session)
            used.bottoms += given - (session.bottoms_left or 0)
            used.queries = table.m - session.queries_left
            left = _left(table, used), table.m - used.queries
        return found, left

    def _session(self, used: Used, bottoms: int | None) -> Session | GaussianSession:
        table = self.table
        if not isinstance(table, HazardTable):
            return self.ensemble.session(0, used.queries)
        room = table.T - used.bottoms
        # A session that ends sooner is the same one, not asked any further.
        return self.ensemble.session(table.T - min(room, bottoms or room), used.queries)

    def limit(self, bottoms: int | None) -> int | None:
        """After how many bottoms to stop.

        Raises: ParameterError.
        """
        if bottoms is None:
            return None
        table = self.table
        if not isinstance(table, HazardTable):
            many = "any number" if isinstance(table, GaussianVote) else "none"
            refuse("bottoms", bottoms, f"a {type(table).__name__} answers with {many}")
        if nonnegative_int("bottoms", bottoms) == 0:
            raise ParameterError("bottoms = 0, but it must be at least 1")
        return bottoms

    def bar(self, points: Any, unit: str, progress: bool) -> AbstractContextManager[Any]:
        """Over what all members say of all points."""
        return progress_module.bar(self.members * records.count_rows(points), unit, progress)


class Labeler(ABC):
    """The part of a labeler that does not depend on what its members say.

    Attributes:
        plan_: table and numbers of members.
        members_: number of members in use.
        record_: what protects all answers together; None where diagnose=True protects nothing.
        diagnosis_: with diagnose=True, what went wrong in which chunk so far.
    """

    _source: ClassVar[str]
    _kept: ClassVar[tuple[str, ...]]

    plan_: VotePlan
    members_: int
    record_: PrivacyRecord | None
    diagnosis_: dict[int, str]

    _state: Fitted | None = None

    def __init__(
        self,
        learner: Any,
        *,
        epsilon: float,
        delta: float,
        queries: int,
        unstable: int,
        beta: float,
        agreement: float,
        members: int | None,
        diagnose: bool,
    ):
        self.learner = learner
        self.epsilon = epsilon
        self.delta = delta
        self.queries = queries
        self.unstable = unstable
        self.beta = beta
        self.agreement = agreement
        self.members = members
        self.diagnose = diagnose

    @abstractmethod
    def plan(self) -> VotePlan:
        """The plan of these parameters, made without data."""

    def _sizes(self) -> tuple[int, int]:
        """T and m of the tables, named as the labeler has them."""
        return positive_int("unstable", self.unstable, _MOST), positive_int(
            "queries", self.queries, _MOST
        )

    @property
    def queries_left(self) -> int:
        """Queries that may still be asked."""
        fitted = self._fitted()
        return fitted.table.m - fitted.spent.used().queries

    @property
    def unstable_left(self) -> int | None:
        """Bottoms until all answers end; None where none or any number may come."""
        fitted = self._fitted()
        return _left(fitted.table, fitted.spent.used())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the members in a file and what they have used up in a ledger next to it.

        path: of a new file, made with mode 0600: it holds what the records taught, and is as
        private as they are. The ledger is path with ".ledger" added. From now on this labeler and
        all that are loaded from the file, in any process, share what is left. A query is paid for
        before its answer is shown: no crash gives one back. Nothing here can tell an old copy of
        the ledger from the latest one: whoever restores it, alone or with the file, gets back all
        queries that have been asked since, and the answers to them are not paid for. Keep no
        copies of it. A ledger whose labeler never came, since a save was killed, is used again.

        A member that cannot be pickled votes for the smallest label, or scores 0, where the file
        is loaded, and nothing names it.

        Guarantee: as the class, for all of them together, if the ledger is never replaced by an
            older one. The error for members none of which can be pickled is not covered.
        Raises: ParameterError where the file exists or cannot be written, or no member can be
            pickled; CheckpointError when it has been saved already or the ledger is another's;
            ImportError without joblib.
        Cost: the members' pickles, twice in memory.
        Source: none.
        """
        fitted, file, key = self._fitted(), place(path), secrets.token_hex(16)
        ensemble, record = fitted.ensemble, fitted.record
        fitted.spent.require_memory(ledger_of(file))
        state = {
            "parameters": {name: getattr(self, name) for name in self._kept},
            "plan": replace(fitted.plan),
            "members": fitted.members,
            "record": None if record is None else record.to_json(),
            "ensemble": replace(ensemble, members=packed(ensemble), coins=None),
            "key": key,
        }
        with (
            written(file, type(self).__name__, state) as publish,
            fitted.spent.moved(ledger_of(file), key, file),
        ):
            publish()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        trusted: bool = False,
        random_state: RandomState = None,
    ) -> Self:
        """Open what save wrote; its learner, which is not needed any more, is None.

        path: as save's. trusted: True if you know who wrote the file. It holds pickles: loading it
        runs whatever code somebody put into it, so that anything else is refused. random_state: as
        fit's. Nothing is charged.

        Guarantee: as save.
        Raises: ParameterError unless trusted is True, before the file is read; CheckpointError for
            anything but a whole saved labeler of this kind with its own ledger; ImportError without
            joblib.
        Cost: the members' pickles, each at its first answer.
        Source: none.
        """
        check_random_state(random_state)
        file = place(path)
        if trusted is not True:
            rule = f"loading {str(file)!r} runs whatever code is in it"
            advice = "pass trusted=True if you know who wrote it"
            refuse("trusted", trusted, f"{rule}: {advice}")
        state = read(file, cls.__name__)
        spent = Spent(ledger_of(file), state["key"])
        try:
            return cls._restored(state, spent, random_state)
        except (HdpFastError, TypeError, ValueError) as error:
            rule = f"it must be a file that this hdp_fast can read ({error})"
            raise CheckpointError(f"path = {str(file)!r}, but {rule}") from error

    @classmethod
    def _restored(cls, state: dict[str, Any], spent: Spent, random_state: RandomState) -> Self:
        made = cls(None, **state["parameters"])
        text, ensemble = state["record"], state["ensemble"]
        record = None if text is None else PrivacyRecord.from_json(text)
        if random_state is not None:
            ensemble.coins = make_generator(random_state)
            record = record and replace(record, rng=rng_of(random_state))
        made._begin(Fitted(state["plan"], record, ensemble, spent, made._label_set()))
        return made

    def _trained(
        self,
        X: Any,
        y: Any,
        ids: Any,
        budget: Budget | None,
        random_state: RandomState,
        progress: bool,
    ) -> Self:
        found = self.plan()
        k = (
            found.k
            if self.members is None
            else positive_int("members", self.members, _MOST_MEMBERS)
        )
        check_random_state(random_state)
        check(self.learner)
        chunks = chunking(ids, len(y), k)
        if budget is not None and self.diagnose:
            raise ParameterError("budget is given, but diagnose=True protects nothing to charge")
        classes = self._label_set()
        record = self._record(found.table, k, ids is not None, random_state)
        with progress_module.bar(k, "member", progress) as bar, spend(budget, record):
            ensemble = trained(self.learner, X, y, chunks, found.table, random_state, bar)
            shown_record = None if self.diagnose else record
            fitted = Fitted(found, shown_record, ensemble, Spent(), classes)
            self._name(fitted, [member.fault for member in ensemble.members])
            self._begin(fitted)
        return self

    def _begin(self, fitted: Fitted) -> None:
        self.plan_, self.members_, self.record_ = fitted.plan, fitted.members, fitted.record
        self.diagnosis_ = fitted.diagnosis
        self._state = fitted

    def _record(
        self, table: Table, k: int, identified: bool, random_state: RandomState
    ) -> PrivacyRecord:
        limits = f"T={table.T}, m={table.m}" if isinstance(table, HazardTable) else f"m={table.m}"
        record = table.session().record
        return replace(
            record,
            mechanism=f"labels.{type(self).__name__}, {type(table).__name__}, {limits}, k={k}",
            source=record.source if isinstance(table, GaussianVote) else self._source,
            neighbors="add_remove" if identified else "replace_one",
            rng=rng_of(random_state),
        )

    def _label_set(self) -> NDArray[Any]:
        """The labels that members vote for; none where they score."""
        return np.empty(0)

    def _name(self, fitted: Fitted, faults: list[str]) -> None:
        if self.diagnose:
            said = {chunk: fault for chunk, fault in enumerate(faults) if fault}
            fitted.diagnosis.update(said)

    def _fitted(self) -> Fitted:
        if self._state is None:
            raise ParameterError("labeler has no members, but fit must train them first")
        return self._state

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._state is not None:
            reason = "a copy could ask the same queries again, and would show its members"
            raise TypeError(f"a fitted labeler can't be copied or pickled: {reason}; use save")
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        kept = ", ".join(f"{name}={shorten(getattr(self, name))}" for name in self._kept)
        state = "not fitted"
        if self._state is not None:
            bottoms = self.unstable_left
            state = "" if bottoms is None else f"{bottoms:,} bottoms and "
            state = f"{self.members_:,} members, {state}{self.queries_left:,} queries left"
        return f"{type(self).__name__}({shorten(self.learner)}, {kept}): {state}"


def _left(table: Table, used: Used) -> int | None:
    return table.T - used.bottoms if isinstance(table, HazardTable) else None


def _check_left(table: Table, used: Used, queries: int) -> None:
    """Raises: BudgetExceeded."""
    if _left(table, used) == 0:
        raise BudgetExceeded("labeler has given its last bottom, but queries were asked")
    if queries > table.m - used.queries:
        raise BudgetExceeded(f"{queries:,} queries, but {table.m - used.queries:,} are left")
