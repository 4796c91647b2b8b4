"""Records as rows of public features, in memory or in parts, and what is released of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..data.chunks import Chunks, count_rows, refuse_unlabeled
from ..data.records import check_features
from ..data.schema import Schema
from ..data.states import State
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..learners import ReleasedStatistics, SufficientStatistics
from ..learners.sufficient_statistics import calibrate, fold_settled
from .public_facts import Facts, check_labels, compare, facts_of
from .public_features import (
    DescentModel,
    PopulationTest,
    PublicFeatures,
    compare_populations,
    descend,
    make_learner,
    mean_description,
)

Price = tuple[float, float]


@dataclass(frozen=True, eq=False)
class LabeledRecords:
    """Private records and their labels, which are checked.

    Attributes:
        X: An array, a data frame, a Table or Chunks.
        y: Labels; None where Chunks hold them.
        n: Number of records.
        facts: Container, columns and types of the records; None of a Table.
        classes: The label set in order.
    """

    X: Any
    y: NDArray[Any] | None
    n: int
    facts: Facts | None
    classes: NDArray[Any]

    @classmethod
    def open(
        cls, X: Any, y: Any, classes: NDArray[Any], pool: Any, schema: Schema | None
    ) -> LabeledRecords:
        """The records, those of Chunks by a first pass.

        Raises:
            ShapeError: X or y has another shape.
            ParameterError: X or y is not as described, or of another kind than the pool.
        """
        if not isinstance(X, Chunks):
            records = check_container("X", X)
            facts = _facts_of(records)
            _compare(facts, pool)
            n = _count(records)
            return cls(records, check_labels(y, n, classes), n, facts, classes)
        if y is not None:
            raise ParameterError("y was passed beside Chunks, which hold the labels")
        X.require_passes("records are counted in a first pass")
        chunks = X if schema is None else X.with_tables()
        parts = [part for part in chunks.gather(partial(_inspect, classes)) if part.rows]
        for part in parts:
            _compare(part.facts, pool)
        if not parts:
            raise ShapeError("the parts hold no row, but there must be one at least")
        return cls(chunks, None, sum(part.rows for part in parts), parts[0].facts, classes)


class _Part(NamedTuple):
    rows: int
    facts: Facts | None


def _inspect(classes: NDArray[Any], blocks: Iterable[tuple[Any, ...]], name: str | None) -> _Part:
    rows, facts = 0, None
    for block in blocks:
        if not count_rows(block):
            continue
        if len(block) != 2:
            refuse_unlabeled()
        records = check_container("X", block[0])
        check_labels(block[1], _count(records), classes)
        found = _facts_of(records)
        if facts is not None and found is not None:
            compare(facts, found, "a part")
        facts, rows = found, rows + _count(records)
    return _Part(rows, facts)


def _compare(facts: Facts | None, pool: Any) -> None:
    if facts is not None:
        compare(facts, facts_of(pool), "public")


def check_container(name: str, value: Any) -> Any:
    """A Table as it is, and anything else as check_features takes it."""
    return value if isinstance(value, Table) else check_features(name, value)


def _facts_of(records: Any) -> Facts | None:
    return None if isinstance(records, Table) else facts_of(records)


def _count(records: Any) -> int:
    return records.rows if isinstance(records, Table) else int(records.shape[0])


@dataclass(frozen=True, eq=False)
class PublicRows:
    """What a model is learned from: records as rows of public features, and the pool's.

    Attributes:
        description: The release of statistics.
        features: What the pool made of columns.
        records: The records.
        points: Rows of the pool.
    """

    description: SufficientStatistics
    features: PublicFeatures
    records: LabeledRecords
    points: Floats

    def calibrate(self, test: Price | None, rest: Price) -> None:
        """Raise what calibrations raise, before anything is read or spent. They are cached."""
        n = self.records.n
        calibrate(self.description, n, *rest)
        if test is not None:
            calibrate(mean_description(self.features.features), n, *test)
            classes = len(self.records.classes)
            make_learner(classes, *rest).plan(n=n, d=self.features.plain.columns)

    def fold(self, price: Price) -> State:
        """The state that release takes, each part's made where it is read."""
        bits = calibrate(self.description, self.records.n, *price).bits
        return self._fold(partial(fold_settled, self.description, bits=bits))

    def fold_means(self, price: Price) -> State:
        """The state that compare takes: that of targets 1."""
        description = mean_description(self.features.features)
        bits = calibrate(description, self.records.n, *price).bits
        return self._fold(partial(_fold_ones, description, bits))

    def _fold(self, make: Callable[..., State]) -> State:
        fold = partial(_fold_block, self.features, self.records.classes, make)
        X, y = self.records.X, self.records.y
        state = X.fold(fold) if isinstance(X, Chunks) else fold(X, y)
        if state.rows != self.records.n:
            rule = f"where it had {self.records.n:,}: parts changed"
            raise ShapeError(f"X has {state.rows:,} rows {rule}")
        return state

    def compare(
        self, state: State, price: Price, stream: np.random.Generator | None
    ) -> PopulationTest:
        """Compare the populations."""
        epsilon, delta = price
        return compare_populations(
            self.features.features,
            state,
            self.points,
            epsilon=epsilon,
            delta=delta,
            random_state=stream,
        )

    def release(
        self, state: State, price: Price, stream: np.random.Generator | None
    ) -> ReleasedStatistics:
        """Release the statistics."""
        epsilon, delta = price
        return self.description.release(state, epsilon=epsilon, delta=delta, random_state=stream)

    def descend(self, price: Price, stream: np.random.Generator | None) -> DescentModel:
        """Learn by noisy gradients from the records alone, all of which are in memory for it."""
        classes, X = self.records.classes, self.records.X
        learner = make_learner(len(classes), *price)
        read = partial(_read_block, self.features, classes)
        if isinstance(X, Chunks):
            parts = X.gather(partial(_read_part, read))
            pairs = [pair for part in parts for pair in part]
            rows, codes = map(np.concatenate, zip(*pairs, strict=True))
        else:
            rows, codes = read(X, self.records.y)
        return descend(self.features.plain, rows, codes, classes, learner, stream)


def _read_part(
    read: Callable[..., Any], blocks: Iterable[tuple[Any, ...]], name: str | None
) -> list[Any]:
    return [read(*block) for block in blocks if count_rows(block)]


def _read_block(
    features: PublicFeatures, classes: NDArray[Any], X: Any, y: Any
) -> tuple[Floats, NDArray[np.intp]]:
    """The rows of some records, and the place of each one's label among the classes."""
    records = check_container("X", X)
    labels = check_labels(y, _count(records), classes)
    return features.rows("X", records), np.searchsorted(classes, labels)


def _fold_block(
    features: PublicFeatures, classes: NDArray[Any], make: Callable[..., State], X: Any, y: Any
) -> State:
    return make(*_read_block(features, classes, X, y))


def _fold_ones(
    description: SufficientStatistics, bits: int, rows: Floats, codes: NDArray[np.intp]
) -> State:
    return fold_settled(description, rows, np.ones(len(codes)), bits)
