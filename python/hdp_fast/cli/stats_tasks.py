"""What hdp-fast stats releases: the statistics named, or the usual ones of every column."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

import numpy as np

from .. import statistics
from .._support.types import Floats, Integers, RandomState
from .._support.validate import guess, refuse
from ..budget.account import Budget
from ..data.column_kinds import Category, Number
from ..data.columns import Column
from ..data.schema import Schema
from ..data.table import Table
from ..record import PrivacyRecord

_QUARTILES = (0.25, 0.5, 0.75)
_USUAL_CHOICES = 3
_DIGITS = 12
MOMENTS = ("mean", "sum", "variance")


class Task(NamedTuple):
    """One release.

    Attributes:
        statistic: Its name, that of a function of `statistics`.
        columns: The columns of which it is released.
        detail: The levels of quantiles, or how many categories to choose.
    """

    statistic: str
    columns: tuple[str, ...]
    detail: Any = None


@dataclass(frozen=True)
class Settings:
    """What all releases share.

    Attributes:
        epsilon: Of all of them together.
        delta: Likewise; None takes discrete Laplace noise.
        neighbors: The relation of neighbors.
        confidence: Of each interval alone.
        by: The column whose categories are groups, or None.
    """

    epsilon: float
    delta: float | None
    neighbors: str
    confidence: float
    by: str | None


def columns_of(schema: Schema) -> dict[str, Category | Number]:
    """The columns of which something can be released, the label among them.

    A label by a rule is a column of numbers, 1 where the rule applies.
    """
    kinds = {
        name: kind
        for name, kind in schema.columns.items()
        if isinstance(kind, (Category, Number)) and name != schema.label.column
    }
    label = schema.label
    number = Number(0, 1, (0.5,)) if label.bounds is None else Number(*label.bounds)
    return {**kinds, label.column: number}


class Planner:
    """Reads flags, and refuses what the schema does not allow."""

    def __init__(self, schema: Schema, by: str | None) -> None:
        """Refuse groups that have no public keys."""
        self.kinds = columns_of(schema)
        self._label = schema.label.column
        self._binary = self._label if schema.label.bounds is None else None
        if by is not None and not isinstance(self._kind("--by", by), Category):
            refuse("--by", by, "the schema must have it as a category, whose values are public")
        self._by = by

    def plan(self, arguments: argparse.Namespace, *, labeled: bool) -> list[Task]:
        """The releases that are asked for; without any, the usual ones.

        labeled: whether the table has the label's column.
        """
        tasks = [Task("count", ())] if arguments.count else []
        for name in MOMENTS:
            columns = getattr(arguments, name)
            if columns:
                for column in columns:
                    self._require(f"--{name}", column, Number)
                tasks.append(Task(name, self._distinct(f"--{name}", columns)))
        tasks += [self._plan_quantiles(text) for text in arguments.quantiles or ()]
        for column in self._distinct("--histogram", arguments.histogram or ()):
            self._kind("--histogram", column)
            tasks.append(Task("histogram", (column,)))
        tasks += [self._plan_choices(text) for text in arguments.top_k or ()]
        return tasks or self._plan_usual(labeled)

    def _plan_usual(self, labeled: bool) -> list[Task]:
        numbers = tuple(
            name
            for name, kind in self.kinds.items()
            if isinstance(kind, Number) and (labeled or name != self._label)
        )
        ordered = tuple(name for name in numbers if name != self._binary)
        tasks = [Task("count", ())]
        tasks += [Task("mean", numbers)] if numbers else []
        tasks += [Task("quantiles", ordered, _QUARTILES)] if ordered else []
        return tasks + [
            Task("histogram", (name,))
            for name, kind in self.kinds.items()
            if isinstance(kind, Category) and name != self._by
        ]

    def _plan_quantiles(self, text: str) -> Task:
        column, detail = self._split("--quantiles", text)
        self._require("--quantiles", column, Number)
        if detail is None:
            return Task("quantiles", (column,), _QUARTILES)
        try:
            levels = tuple(sorted({float(level) for level in detail.split(",")}))
        except ValueError:
            levels = ()
        if not levels or not all(0 <= level <= 1 for level in levels):
            refuse("--quantiles", text, "it must be COLUMN or COLUMN:LEVEL,..., levels in [0, 1]")
        return Task("quantiles", (column,), levels)

    def _plan_choices(self, text: str) -> Task:
        column, detail = self._split("--top-k", text)
        kind = self._require("--top-k", column, Category)
        if self._by is not None:
            refuse("--top-k", text, "it has no groups: leave --by out, or ask for --histogram")
        many = len(kind.values)
        if detail is None:
            return Task("top_k", (column,), min(_USUAL_CHOICES, many))
        if not (detail.isdecimal() and 1 <= int(detail) <= many):
            refuse("--top-k", text, f"it must be COLUMN or COLUMN:K, with K from 1 to {many}")
        return Task("top_k", (column,), int(detail))

    def _split(self, flag: str, text: str) -> tuple[str, str | None]:
        """A column and what stands behind a colon; names of columns may have colons, too."""
        if text in self.kinds:
            return text, None
        column, sign, detail = text.rpartition(":")
        self._kind(flag, column if sign else text)
        return (column, detail) if sign else (text, None)

    def _kind(self, flag: str, column: str) -> Category | Number:
        if column not in self.kinds:
            rule = "it must be a column of the schema that is not ignored"
            refuse(flag, column, f"{rule}{guess(column, self.kinds)}")
        return self.kinds[column]

    def _require(self, flag: str, column: str, wanted: type) -> Any:
        kind = self._kind(flag, column)
        if not isinstance(kind, wanted):
            word = "number" if wanted is Number else "category"
            refuse(flag, column, f"the schema must have it as a {word}")
        return kind

    def _distinct(self, flag: str, columns: Iterable[str]) -> tuple[str, ...]:
        names = tuple(columns)
        if len(set(names)) < len(names):
            refuse(flag, list(names), "it must name each column once")
        return names


class Runner:
    """Releases statistics of one table."""

    def __init__(self, schema: Schema, settings: Settings, tasks: list[Task]) -> None:
        """Settle how the budget is split, and run on made-up rows what could be refused."""
        self._schema, self._settings, self._tasks = schema, settings, tasks
        self._kinds = columns_of(schema)
        parts = sum(map(self._weight, tasks))
        self._epsilon = _divide(settings.epsilon, parts)
        self._delta = None if settings.delta is None else _divide(settings.delta, parts)
        self.records: list[PrivacyRecord] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._run(_make_up(schema), None, None)
        # What is spent depends on no row.
        self._price_of_all = [
            sum(Decimal(repr(amount)) for amount in amounts)
            for amounts in zip(*((one.epsilon, one.delta) for one in self.records), strict=True)
        ]
        self.records.clear()

    def run(
        self, table: Table, budget: Budget | None, random_state: RandomState
    ) -> list[dict[str, Any]]:
        """The rows of the result; `records` has what was spent.

        Raises:
            ParameterError: The table lacks a column.
            BudgetExceeded: Less is left than all releases cost; nothing is spent then.
        """
        for name in self._names():
            table.column(name)
        if budget is not None and self._price_of_all:
            # All shares at once, so that the ledger refuses before the first is spent.
            budget = budget.sequential(*map(float, self._price_of_all), name="stats")
        return self._run(table, budget, random_state)

    def _names(self) -> set[str]:
        named = {name for task in self._tasks for name in task.columns}
        return named | ({self._settings.by} if self._settings.by else set())

    def _weight(self, task: Task) -> int:
        """How many shares of the budget a release takes; a public number of rows is free."""
        if task.statistic == "count" and self._counts_for_free:
            return 0
        return max(len(task.columns), 1)

    @property
    def _counts_for_free(self) -> bool:
        return self._settings.neighbors == "replace_one" and self._settings.by is None

    def _price(self, task: Task) -> tuple[float, float | None]:
        weight = self._weight(task)
        delta = None if self._delta is None else float(_floor(self._delta * weight))
        return float(_floor(self._epsilon * weight)), delta

    def _run(
        self, table: Table, budget: Budget | None, random_state: RandomState
    ) -> list[dict[str, Any]]:
        return [
            row for task in self._tasks for row in self._release(task, table, budget, random_state)
        ]

    def _release(
        self, task: Task, table: Table, budget: Budget | None, random_state: RandomState
    ) -> list[dict[str, Any]]:
        if not self._weight(task):
            return [_row("count", value=table.rows, low=table.rows, high=table.rows)]
        epsilon, delta = self._price(task)
        shared: dict[str, Any] = {
            "epsilon": epsilon,
            "neighbors": self._settings.neighbors,
            "confidence": self._settings.confidence,
            "budget": budget,
            "random_state": random_state,
        }
        if task.statistic not in ("quantiles", "top_k"):
            shared["delta"] = delta
        keys: tuple[str, ...] | None = None
        if self._settings.by is not None:
            kind = self._kinds[self._settings.by]
            keys = kind.values if isinstance(kind, Category) else ()
            codes = self._codes(table, self._settings.by, keys)
            shared |= {"by": codes, "groups": range(len(keys))}
        result = getattr(self, f"_release_{task.statistic}", self._release_moment)(
            task, table, shared
        )
        if keys is None:
            return list(self._describe(task, result, None))
        return [
            row for code, part in result.items() for row in self._describe(task, part, keys[code])
        ]

    def _release_count(self, task: Task, table: Table, shared: Mapping[str, Any]) -> Any:
        return statistics.count(np.ones(table.rows), **shared)

    def _release_moment(self, task: Task, table: Table, shared: Mapping[str, Any]) -> Any:
        release = {name: getattr(statistics, name) for name in MOMENTS}[task.statistic]
        return release(self._values(task, table), **self._bounds(task), **shared)

    def _release_quantiles(self, task: Task, table: Table, shared: Mapping[str, Any]) -> Any:
        values = self._values(task, table)
        return statistics.quantiles(values, task.detail, **self._bounds(task), **shared)

    def _release_histogram(self, task: Task, table: Table, shared: Mapping[str, Any]) -> Any:
        (name,) = task.columns
        kind = self._kinds[name]
        if isinstance(kind, Number):
            (values,) = self._values(task, table).values()
            return statistics.histogram(values, edges=_edges(kind), **shared)
        codes = self._codes(table, name, kind.values)
        return statistics.histogram(codes, categories=range(len(kind.values)), **shared)

    def _release_top_k(self, task: Task, table: Table, shared: Mapping[str, Any]) -> Any:
        (name,) = task.columns
        values = self._categories(name)
        codes = self._codes(table, name, values)
        return statistics.top_k(codes, task.detail, categories=range(len(values)), **shared)

    def _values(self, task: Task, table: Table) -> dict[str, Floats]:
        return {name: self._numbers(table, name) for name in task.columns}

    def _numbers(self, table: Table, name: str) -> Floats:
        label = self._schema.label
        if name == label.column and label.bounds is None:
            bits: Floats = self._schema.labels(table).astype(np.float64)
            return bits
        column, kind = table.column(name), self._kinds.get(name)
        return kind._numbers(column) if isinstance(kind, Number) else column.row_numbers()

    def _categories(self, name: str) -> tuple[str, ...]:
        kind = self._kinds[name]
        return kind.values if isinstance(kind, Category) else ()

    def _codes(self, table: Table, name: str, values: tuple[str, ...]) -> Integers:
        """The place of each row's text among public values; -1 where it is none of them."""
        column, places = table.column(name), {text: place for place, text in enumerate(values)}
        kind = self._kinds.get(name)
        if isinstance(kind, Category) and kind.missing in places:
            places[""] = places[kind.missing]
        by_text = np.array([places.get(text, -1) for text in column.texts], np.int64)
        return by_text[column.codes]

    def _bounds(self, task: Task) -> dict[str, Any]:
        kinds = {name: self._kinds[name] for name in task.columns}
        numbers = {name: kind for name, kind in kinds.items() if isinstance(kind, Number)}
        return {
            "low": {name: kind.low for name, kind in numbers.items()},
            "high": {name: kind.high for name, kind in numbers.items()},
        }

    def _describe(self, task: Task, result: Any, group: str | None) -> Iterator[dict[str, Any]]:
        """The rows of a result of one group."""
        parts = result.items() if isinstance(result, dict) else [((*task.columns, None)[0], result)]
        for column, part in parts:
            if not any(part.record is record for record in self.records):
                self.records.append(part.record)
            for item in self._itemize(task, column, part):
                yield _row(task.statistic, column=column, group=group, **item)

    def _itemize(self, task: Task, column: str | None, part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, statistics.Statistic):
            yield {"value": part.value, "low": part.low, "high": part.high}
        elif isinstance(part, statistics.Quantiles):
            for level, value in zip(part.levels, part.value.tolist(), strict=True):
                yield {"item": level, "value": value, "rank_error": part.rank_error}
        elif isinstance(part, statistics.Histogram):
            columns = (part.value.tolist(), part.low.tolist(), part.high.tolist())
            names = self._bin_names(column, part)
            for item, value, low, high in zip(names, *columns, strict=True):
                yield {"item": item, "value": value, "low": low, "high": high}
        else:
            values = self._categories(str(column))
            for place, code in enumerate(part.value, start=1):
                yield {"item": place, "value": values[code], "count_error": part.count_error}

    def _bin_names(self, column: str | None, part: statistics.Histogram) -> list[str]:
        kind = self._kinds[str(column)]
        if isinstance(kind, Category):
            return list(kind.values)
        pairs = zip(part.bins, part.bins[1:], strict=False)
        return [f"{low:.12g} to {high:.12g}" for low, high in pairs]


def _edges(kind: Number) -> list[float]:
    return [kind.low, *(cut for cut in kind.cuts if kind.low < cut < kind.high), kind.high]


def _row(statistic: str, **fields: Any) -> dict[str, Any]:
    row = {"statistic": statistic, "column": None, "group": None, "item": None} | fields
    return {name: value for name, value in row.items() if value is not None}


def _divide(total: float, parts: int) -> Decimal:
    """A share whose multiples are decimals of few digits and never add up to more than the total.

    Budgets add up decimals.
    """
    return _floor(Decimal(repr(total)) / max(parts, 1))


def _floor(value: Decimal | int) -> Decimal:
    return Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(value)


def _make_up(schema: Schema) -> Table:
    """A table of two rows about nobody, with which wrong settings are refused before a release."""
    names = [*schema.columns, schema.label.column]
    empty = Column(("",), np.zeros(2, np.int64))
    return Table(dict.fromkeys(names, empty), 2)
