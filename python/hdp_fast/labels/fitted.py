"""The result of fit or load: what it has used up, and how it answers queries and pays for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .._support.progress import bar, log_stage
from .._support.sqlite import FileFormat, StateFile, Statements
from .._support.uncopyable import Turnstile, check_process
from .._support.validate import nonnegative_int, refuse
from ..data import records
from ..exceptions import BudgetExceeded, CheckpointError
from ..record import PrivacyRecord
from ..stability.gaussian import GaussianSession, GaussianVote
from ..stability.plans import AnyTable, VotePlan
from ..stability.sessions import TableSession
from ..stability.tables import HazardTable
from .ensemble import Ensemble, check_points
from .preflight import Preflight

_FORMAT = FileFormat(
    application=b"HDPl",
    version=2,
    tables={"spent": "key TEXT NOT NULL, bottoms INTEGER NOT NULL, queries INTEGER NOT NULL"},
    noun="the ledger of a labeler",
    argument="ledger",
    error=CheckpointError,
    synchronous="EXTRA",
)

# Stands before the key of an account until the labeler's file has its name.
_SAVING = "saving "


@dataclass
class Usage:
    """Numbers of bottoms and of queries that have been used up."""

    bottoms: int = 0
    queries: int = 0


class UsageAccount:
    """The account of one ensemble. One transaction reads it, answers from it, and writes it.

    An answer may be shown once the transaction has ended. An answer that a crash takes away was
    paid for, or was never shown.
    """

    def __init__(self, path: Path | None = None, key: str = ""):
        """Open the account in a file, or begin one in memory.

        Raises:
            CheckpointError: The file is that of another ensemble, or no account.
        """
        self._file, self._key = None if path is None else StateFile(_FORMAT, path), key
        self._usage, self._process, self._turnstile = Usage(), os.getpid(), Turnstile("labeler")
        if self._file is not None:
            self._file.inspect()
            self.usage()

    def usage(self) -> Usage:
        """What has been used up by now.

        Raises:
            CheckpointError: The file cannot be read.
        """
        with self.payment() as usage:
            return replace(usage)

    @contextmanager
    def payment(self) -> Iterator[Usage]:
        """Yield what has been used up, to be changed in the block.

        No one else can read or change it meanwhile.

        Raises:
            CheckpointError: The file cannot be read or written.
            ParameterError: The process is a forked child, which would use up the same twice.
        """
        if self._file is None:
            self._check_process()
        # The file keeps processes apart; the turnstile keeps the threads of this one apart.
        with self._turnstile.hold():
            if self._file is None:
                usage = replace(self._usage)
                yield usage
                self._usage = usage
                return
            with self._file.transaction() as statements:
                usage = _read(self._file, statements, self._key)
                before = replace(usage)
                yield usage
                if usage != before:
                    statements.update("spent", asdict(usage))

    def require_memory(self, path: Path) -> None:
        """Refuse to move the account from one file into another.

        Raises:
            CheckpointError: The account is in a file.
        """
        if self._file is not None:
            rule = f"it is kept in {str(self._file.path)!r}, and a second would count twice"
            raise StateFile(_FORMAT, path).refusal(rule)

    @contextmanager
    def move_to(self, path: Path, key: str, labeler: Path) -> Iterator[None]:
        """Move the account into a file, while the block gives the labeler's file its name.

        A kill before that leaves an account from which nothing can be asked; the next account for
        the same file takes its place. Once the labeler's file may have its name, there is no way
        back into memory, whatever is raised: two accounts of the same members would count apart.

        Raises:
            CheckpointError: The file belongs to another account, or cannot be written.
            ParameterError: The process is a forked child, whose parent goes on from the same
                account in memory.
        """
        if self._file is None:
            self._check_process()
        with self._turnstile.hold():
            self.require_memory(path)
            file = StateFile(_FORMAT, path)
            values = (_SAVING + key, self._usage.bottoms, self._usage.queries)
            if not file.create(lambda new: new.insert("spent", *values)):
                file.inspect()
                with file.transaction() as statements:
                    _check_free(file, statements, labeler)
                    statements.delete("spent")
                    statements.insert("spent", *values)
            # In this transaction no other account can take the place of this one.
            with file.transaction() as statements:
                _read(file, statements, key)
                self._file, self._key = file, key
                try:
                    yield
                except BaseException:
                    if not labeler.exists():
                        self._file, self._key = None, ""
                    raise
                statements.update("spent", {"key": key})

    def _check_process(self) -> None:
        rule = "one in memory serves only the process that made it: save it there first"
        check_process(self._process, "labeler", rule)


def check_free(path: Path, labeler: Path) -> None:
    """Refuse a ledger in which no account of this labeler's file, which is yet to come, can begin.

    Raises:
        CheckpointError: It belongs to another labeler.
    """
    file = StateFile(_FORMAT, path)
    if file.path.exists():
        file.inspect()
        with file.open_connection(mode="ro") as statements, statements.snapshot():
            _check_free(file, statements, labeler)


def _check_free(file: StateFile, statements: Statements, labeler: Path) -> None:
    """Refuse a ledger that is in use. It is free if its labeler's file never got its name."""
    file.verify(statements)
    begun = all(key.startswith(_SAVING) for key, *_ in statements.select("spent"))
    if labeler.exists() or not begun:
        rule = f"{str(labeler)!r}, whose queries it counts, must be beside it: restore that file"
        raise file.refusal(f"{rule}, or choose another path")


def _read(file: StateFile, statements: Statements, ours: str) -> Usage:
    file.verify(statements)
    with file.translate_damage():
        ((key, bottoms, queries),) = statements.select("spent")
        if not 0 <= bottoms <= queries:
            raise ValueError("more bottoms than queries")
    # A kill just after the labeler's file got its name leaves _SAVING before the key.
    if key.removeprefix(_SAVING) != ours:
        raise file.refusal("it must be the ledger of this ensemble")
    return Usage(bottoms, queries)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of one fit or load. Each call reads it once.

    Attributes:
        plan: The VotePlan, as the labeler shows it.
        record: The PrivacyRecord, as the labeler shows it.
        ensemble: The members. No account but this one may pay for their answers.
        account: What has been used up.
        classes: The labels that members may vote for; empty where they score.
        preflight: The trials of points before they are asked.
        diagnosis: Faults by number of the chunk, as the labeler shows them.
    """

    plan: VotePlan
    record: PrivacyRecord | None
    ensemble: Ensemble
    account: UsageAccount
    classes: NDArray[Any]
    preflight: Preflight
    diagnosis: dict[int, str] = field(default_factory=dict)

    @property
    def table(self) -> AnyTable:
        """The table of coins, or the noisy counts, that answers."""
        return self.plan.table

    @property
    def members(self) -> int:
        """Number of members that vote."""
        return len(self.ensemble.members)

    def queries_left(self, usage: Usage | None = None) -> int:
        """Number of queries that may still be asked."""
        return self.table.queries - (usage or self.account.usage()).queries

    def unstable_left(self, usage: Usage | None = None) -> int | None:
        """Number of bottoms until all answers end; None where there are none, or any number."""
        if not isinstance(self.table, HazardTable):
            return None
        return self.table.max_unstable - (usage or self.account.usage()).bottoms

    def check_queries(self, Q: Any) -> Any:
        """Validate points that are to be asked, no more than there are queries left.

        Raises:
            ShapeError: They have other features than X.
            ParameterError: They are no records.
            BudgetExceeded: There are too many, or the last bottom has been given.
        """
        queries = self.check_points(Q)
        self._check_left(self.account.usage(), records.count_rows(queries))
        return queries

    def check_points(self, Q: Any) -> Any:
        """Validate points, any number of them.

        Raises:
            ShapeError: They have other features than X.
            ParameterError: They are no records.
        """
        return check_points(Q, self.ensemble.shape)

    def check_bottoms(self, bottoms: int | None) -> int | None:
        """Validate the number of bottoms after which to stop.

        Raises:
            ParameterError: It is not at least 1, or the table's answers do not end at bottoms.
        """
        if bottoms is None:
            return None
        table = self.table
        if not isinstance(table, HazardTable):
            many = "any number" if isinstance(table, GaussianVote) else "none"
            refuse("bottoms", bottoms, f"a {type(table).__name__} answers with {many}")
        if nonnegative_int("bottoms", bottoms) == 0:
            refuse("bottoms", bottoms, "it must be at least 1")
        return bottoms

    def answer(
        self, ask: Callable[[Any], Any], queries: int, bottoms: int | None
    ) -> tuple[Any, int | None, int]:
        """Answer, and pay before anything is returned.

        Returns:
            The answers, and the numbers of bottoms and of queries that are left.
        """
        with self.account.payment() as usage:
            self._check_left(usage, queries)
            session = self._session(usage, bottoms)
            before = session.bottoms_left or 0
            answers = ask(session)
            usage.bottoms += before - (session.bottoms_left or 0)
            usage.queries = self.table.queries - session.queries_left
            return answers, self.unstable_left(usage), self.queries_left(usage)

    def _session(self, usage: Usage, bottoms: int | None) -> TableSession | GaussianSession:
        table = self.table
        if not isinstance(table, HazardTable):
            return self.ensemble.session(table, 0, usage.queries)
        room = table.max_unstable - usage.bottoms
        # Ending a session sooner is post-processing: it is the same session, not asked any further.
        used = table.max_unstable - min(room, bottoms or room)
        return self.ensemble.session(table, used, usage.queries)

    def _check_left(self, usage: Usage, queries: int) -> None:
        """Raise BudgetExceeded if the last bottom has been given, or fewer queries are left."""
        if self.unstable_left(usage) == 0:
            raise BudgetExceeded("labeler has given its last bottom, but queries were asked")
        if queries > self.queries_left(usage):
            raise BudgetExceeded(f"{queries:,} queries, but {self.queries_left(usage):,} are left")

    def show_progress(self, points: Any, unit: str, shown: bool) -> AbstractContextManager[Any]:
        """A bar over the predictions of all members for all points."""
        queries = records.count_rows(points)
        log_stage("labels: %d queries to %d members", queries, self.members)
        return bar(self.members * queries, unit, shown)
