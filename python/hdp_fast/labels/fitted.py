"""What a fit or a load of a labeler makes, and how queries are checked, answered and paid for."""

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
    """What one fit or load has made: read once by each call, however many there are meanwhile.

    Attributes:
        plan, record, diagnosis: as the labeler shows them.
        ensemble: the members, of which no other account may pay for answers.
        account: what has been used up.
        classes: the labels that members may vote for; none of them where they score.
        preflight: what is tried with points before they are asked.
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
        """How many members vote."""
        return len(self.ensemble.members)

    def queries_left(self, usage: Usage | None = None) -> int:
        """Queries that may still be asked."""
        return self.table.queries - (usage or self.account.usage()).queries

    def unstable_left(self, usage: Usage | None = None) -> int | None:
        """Bottoms until all answers end; None where none or any number may come."""
        if not isinstance(self.table, HazardTable):
            return None
        return self.table.max_unstable - (usage or self.account.usage()).bottoms

    def check_queries(self, Q: Any) -> Any:
        """The queries, which must be such as may be asked, and as many as there are left.

        Raises: ShapeError, BudgetExceeded.
        """
        queries = self.check_points(Q)
        self._check_left(self.account.usage(), records.count_rows(queries))
        return queries

    def check_points(self, Q: Any) -> Any:
        """Points of the shape of X's records, however many.

        Raises: ShapeError, ParameterError.
        """
        queries = records.check_features("Q", Q)
        if tuple(queries.shape[1:]) != self.ensemble.shape:
            rule = f"it must be ({', '.join(map(str, ('q', *self.ensemble.shape)))}), as X was"
            raise ShapeError(f"Q has shape {tuple(queries.shape)}, but {rule}")
        return queries

    def check_bottoms(self, bottoms: int | None) -> int | None:
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
            refuse("bottoms", bottoms, "it must be at least 1")
        return bottoms

    def answer(
        self, ask: Callable[[Any], Any], queries: int, bottoms: int | None
    ) -> tuple[Any, int | None, int]:
        """Answers that are paid for by the time they are returned, and what is left after them."""
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
        # A session that ends sooner is the same one, not asked any further.
        return self.ensemble.session(table.max_unstable - min(room, bottoms or room), usage.queries)

    def _check_left(self, usage: Usage, queries: int) -> None:
        """Raises: BudgetExceeded."""
        if self.unstable_left(usage) == 0:
            raise BudgetExceeded("labeler has given its last bottom, but queries were asked")
        if queries > self.queries_left(usage):
            raise BudgetExceeded(f"{queries:,} queries, but {self.queries_left(usage):,} are left")

    def show_progress(self, points: Any, unit: str, shown: bool) -> AbstractContextManager[Any]:
        """A bar over the predictions of all members for all points."""
        queries = records.count_rows(points)
        log_stage("labels: %d queries to %d members", queries, self.members)
        return bar(self.members * queries, unit, shown)
