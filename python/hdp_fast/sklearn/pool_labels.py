"""Private labels for the rows of a public pool, by the method that public facts choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, RandomState
from ..budget.account import Budget
from ..data.records import check_features, count_rows, take_rows
from ..exceptions import ParameterError
from ..labels.pool import PoolTask, choose_members, population_of
from ..labels.public_facts import compare, facts_of
from ..labels.results import LabelResult
from ..labels.statistics_labeler import StatisticsLabeler
from ..record import PrivacyRecord
from .private_estimator import MissingFit


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
class PoolRecords:
    """Private records, the public pool that they label, and how.

    Attributes:
        records: The private records, an array or a data frame.
        labels: Their labels, entries of the task's classes.
        pool: The public pool, of the same kind as the records.
        task: What is public of the pool and of the answers.
    """

    records: Any
    labels: NDArray[Any]
    pool: Any
    task: PoolTask

    def answer(
        self, method: str, estimator: Any, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        """Label the pool, and charge the budget before any private value is used.

        Raises: before anything is spent, what the labelers raise.
        """
        with MissingFit(budget, self.task.epsilon, self.task.delta):
            chosen = self.task.choose(len(self.labels)).method if method == "auto" else method
            if chosen == "statistics":
                return self._by_statistics(method, budget, random_state)
            return self._by_votes(estimator, budget, random_state)

    def _by_statistics(
        self, method: str, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        labeler = StatisticsLabeler(
            epsilon=self.task.epsilon,
            delta=self.task.delta,
            classes=self.task.classes,
            population=population_of(method),
            bottom=unused_label(np.asarray(self.task.classes)),
        )
        records, pool = self.records, self.pool
        if isinstance(pool, np.ndarray):
            if not self.task.fits:
                raise ParameterError("pool has rows that are all alike, but some must differ")
            records, pool = _scale_by(pool, records), _scale_by(pool, pool)
        labeler.fit(records, self.labels, pool, budget=budget, random_state=random_state)
        return _kept(labeler.label(pool), np.arange(len(pool)), "statistics", None)

    def _by_votes(
        self, estimator: Any, budget: Budget | None, random_state: RandomState
    ) -> PoolLabels:
        labeler, n = self.task.make_labeler(estimator), len(self.labels)
        if labeler.members is None:
            labeler.members = choose_members(labeler.plan(), n, "X")
        # The rows that are asked are spread evenly.
        rows = count_rows(self.pool)
        asked = np.arange(self.task.queries) * rows // self.task.queries
        records, points = check_features("X", self.records), check_features("pool", self.pool)
        points = take_rows(points, asked)
        compare(facts_of(records), facts_of(points), "pool")
        labeler.check(points, records=n)
        labeler.fit(records, self.labels, budget=budget, random_state=random_state, preflight=False)
        return _kept(labeler.label(points, preflight=False), asked, "votes", labeler.members_)


def _kept(
    result: LabelResult, asked: NDArray[np.intp], method: str, members: int | None
) -> PoolLabels:
    """The answers that are no bottoms."""
    answered = ~result.is_bottom
    rows = asked[: len(answered)][answered]
    return PoolLabels(rows, result.labels[answered], method, members, result.record)


def unused_label(classes: NDArray[Any]) -> Any:
    """A marker for bottoms that is no label; None where the usual one is none."""
    if classes.dtype.kind == "f":
        return None
    if classes.dtype.kind != "U":
        low, high = int(classes.min()), int(classes.max())
        return low - 1 if low > np.iinfo(np.int64).min else high + 1
    return "-" * (1 + max(map(len, classes)))


def _scale_by(pool: Floats, rows: Floats) -> Floats:
    """Rows around the means of a public pool, in units of its deviations.

    No entry warns: what is no longer finite is replaced by what the labels are made by.
    """
    with np.errstate(all="ignore"):
        mean, deviation = pool.mean(axis=0), pool.std(axis=0)
        factor = np.where(np.isfinite(deviation) & (deviation > 0), 1 / deviation, 0.0)
        scaled: Floats = (rows - mean) * factor
    return scaled
