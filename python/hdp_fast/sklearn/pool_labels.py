"""Private labels for the rows of a public pool: by which method, and by how many members."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note
from .._support.types import Floats, RandomState
from ..budget.account import Budget
from ..data.records import check_features, count_rows, take_rows
from ..exceptions import ParameterError
from ..labels.labeler import LabelResult, PrivateLabeler
from ..labels.method_choice import MethodChoice, choose_method
from ..labels.public_facts import compare, facts_of
from ..labels.statistics_labeler import Population, StatisticsLabeler
from ..record import PrivacyRecord
from ..stability.plans import VotePlan
from .charges import MissingFit

# A member learns something from about so many records, and next to nothing from fewer than a third.
_RECORDS_OF_A_MEMBER, _FEWEST_RECORDS = 30, 10
# The largest share of unanimous votes that may get another answer.
_MOST_FLIPS = 0.05
# One vote of so many may be a close one.
_STABLE_FOR_ONE_UNSTABLE = 20
_MOST_MEMBERS = 1 << 53


@dataclass(frozen=True, eq=False)
class PoolLabels:
    """The answers for rows of the pool, which may be published.

    Attributes:
        rows: Numbers of the rows that have an answer.
        labels: Their labels.
        method: "statistics" or "votes"; None where one classifier learned from all records.
        members: The number of members; None for statistics.
        record: What protects the records.
    """

    rows: NDArray[np.intp]
    labels: NDArray[Any]
    method: str | None
    members: int | None
    record: PrivacyRecord | None

    def renamed(self, labels: NDArray[Any]) -> PoolLabels:
        """The same answers under other names."""
        return replace(self, labels=labels)


@dataclass(frozen=True, eq=False)
class PoolTask:
    """Private records, and what is public beside them.

    Attributes:
        records: The private records, an array or a data frame.
        labels: Their labels, entries of classes.
        pool: The public pool, of the same kind as the records.
        classes: The label set: integers, real numbers or texts.
        epsilon: Privacy parameter of all answers.
        delta: Privacy parameter of all answers.
        queries: The largest number of rows that votes are held on.
        members: The number of members that was asked for, or None.
    """

    records: Any
    labels: NDArray[Any]
    pool: Any
    classes: NDArray[Any]
    epsilon: float
    delta: float
    queries: int
    members: int | None

    def answer(
        self, method: str, estimator: Any, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        """Label the pool, and charge the budget before any private value is used.

        Raises: before anything is spent, what the labelers raise.
        """
        with MissingFit(budget, self.epsilon, self.delta):
            chosen = self.choose(estimator).method if method == "auto" else method
            if chosen == "statistics":
                population: Population = "tested" if method == "auto" else "same"
                return self._by_statistics(population, budget, random_state)
            return self._by_votes(estimator, budget, random_state)

    def choose(self, estimator: Any) -> MethodChoice:
        """The method of "auto", from numbers and types of columns alone."""
        if not _are_numbers(self.pool) or _is_constant(self.pool):
            reason = "columns hold something else than numbers, or are constant"
            return MethodChoice(method="votes", reason=reason, signal=0.0)
        labeler, _ = self._labeler(estimator)
        try:
            members = self.members or labeler.plan().k
        except ParameterError:
            # No table keeps so small an epsilon, whatever the members.
            members = _MOST_MEMBERS
        return choose_method(
            n=len(self.labels),
            columns=self.pool.shape[1],
            classes=len(self.classes),
            points=count_rows(self.pool),
            members=members,
            epsilon=self.epsilon,
            delta=self.delta,
        )

    def _by_statistics(
        self, population: Population, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        labeler = StatisticsLabeler(population=population, **self._goal())
        records, pool = self.records, self.pool
        if _is_constant(pool):
            raise ParameterError("pool has rows that are all alike, but some must differ")
        if isinstance(pool, np.ndarray):
            records, pool = _scale_by(pool, records), _scale_by(pool, pool)
        labeler.fit(records, self.labels, pool, budget=budget, random_state=random_state)
        return _kept(labeler.label(pool), np.arange(len(pool)), "statistics", None)

    def _by_votes(
        self, estimator: Any, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        labeler, asked = self._labeler(estimator)
        labeler.members = self._members(labeler.plan())
        records, points = check_features("X", self.records), check_features("pool", self.pool)
        points = take_rows(points, asked)
        compare(facts_of(records), facts_of(points), "pool")
        labeler.check(points, records=len(self.labels))
        labeler.fit(records, self.labels, budget=budget, random_state=random_state, preflight=False)
        return _kept(labeler.label(points, preflight=False), asked, "votes", labeler.members_)

    def _labeler(self, estimator: Any) -> tuple[PrivateLabeler, NDArray[np.intp]]:
        """A labeler without members, and the rows of the pool that it is asked, spread evenly."""
        rows = count_rows(self.pool)
        queries = min(self.queries, rows)
        unstable = queries // _STABLE_FOR_ONE_UNSTABLE + 1
        labeler = PrivateLabeler(estimator, queries=queries, max_unstable=unstable, **self._goal())
        return labeler, np.arange(queries) * rows // queries

    def _goal(self) -> dict[str, Any]:
        marker = _unused(self.classes)
        goal = {"epsilon": self.epsilon, "delta": self.delta}
        return {**goal, "classes": self.classes, "bottom": marker}

    def _members(self, plan: VotePlan) -> int:
        """How many members vote: as planned, or fewer, as long as a clear vote is not lost."""
        n = len(self.labels)
        if self.members is not None:
            return self.members
        wanted = max(n // _RECORDS_OF_A_MEMBER, _fewest_members(plan))
        members = max(1, min(plan.k, wanted, n))
        if n < _FEWEST_RECORDS * members:
            rule = f"{members:,} members that keep the noise of votes small have {n / members:.2g}"
            help_ = "more records, a larger epsilon or fewer queries would help"
            note(f"X has {n:,} records, of which {rule} each and learn next to nothing: {help_}")
        return members


def _fewest_members(plan: VotePlan) -> int:
    """The least number of members up to the plan's whose unanimous votes are hardly ever lost."""
    low, high = 1, plan.k
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if plan.flip(middle) <= _MOST_FLIPS else (middle + 1, high)
    return low


def _kept(
    result: LabelResult, asked: NDArray[np.intp], method: str, members: int | None
) -> PoolLabels:
    """The answers that are no bottoms."""
    answered = ~result.is_bottom
    rows = asked[: len(answered)][answered]
    return PoolLabels(rows, result.labels[answered], method, members, result.record)


def _unused(classes: NDArray[Any]) -> Any:
    """A marker for bottoms that is no label; None where the usual one is none."""
    if classes.dtype.kind == "f":
        return None
    if classes.dtype.kind != "U":
        low, high = int(classes.min()), int(classes.max())
        return low - 1 if low > np.iinfo(np.int64).min else high + 1
    return "-" * (1 + max(map(len, classes)))


def _are_numbers(pool: Any) -> bool:
    return set(facts_of(pool).kinds) == {"number"}


def _is_constant(pool: Any) -> bool:
    return isinstance(pool, np.ndarray) and bool((pool == pool[0]).all())


def _scale_by(pool: Floats, rows: Floats) -> Floats:
    """Rows around the means of a public pool, in units of its deviations.

    No entry warns: what is no longer finite is replaced by what the labels are made by.
    """
    with np.errstate(all="ignore"):
        mean, deviation = pool.mean(axis=0), pool.std(axis=0)
        factor = np.where(np.isfinite(deviation) & (deviation > 0), 1 / deviation, 0.0)
        scaled: Floats = (rows - mean) * factor
    return scaled


def require_pool(pool: Any, epsilon: float) -> None:
    """Refuse a finite epsilon without a pool.

    Raises:
        ParameterError: There is none.
    """
    if pool is None and epsilon < math.inf:
        rule = (
            "with a finite epsilon what is public must be given: pool = unlabeled rows with the"
            " columns of X; epsilon = math.inf takes X itself and protects nobody"
        )
        raise ParameterError(f"pool = None, but {rule}")
