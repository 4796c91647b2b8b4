"""The result of fit or load, and how it checks queries, answers them and pays for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from .._support.progress import bar
from .._support.stages import log_stage
from .._support.validate import nonnegative_int, refuse
from ..data import records
from ..exceptions import BudgetExceeded, ShapeError
from ..record import PrivacyRecord
from ..stability.gaussian import GaussianSession, GaussianVote
from ..stability.plans import AnyTable, VotePlan
from ..stability.sessions import TableSession
from ..stability.tables import HazardTable
from .ensemble import Ensemble
from .preflight import Preflight
from .usage import Usage, UsageAccount


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
        return self.ensemble.table

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
        queries = records.check_features("Q", Q)
        if tuple(queries.shape[1:]) != self.ensemble.shape:
            rule = f"it must be ({', '.join(map(str, ('q', *self.ensemble.shape)))}), as X was"
            raise ShapeError(f"Q has shape {tuple(queries.shape)}, but {rule}")
        return queries

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
            return self.ensemble.session(0, usage.queries)
        room = table.max_unstable - usage.bottoms
        # Ending a session sooner is post-processing: it is the same session, not asked any further.
        return self.ensemble.session(table.max_unstable - min(room, bottoms or room), usage.queries)

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
