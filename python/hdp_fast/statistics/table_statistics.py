"""Many statistics of one table, one epsilon and delta split among them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from .._support.json_text import JsonText
from .._support.notes import drop_notes, keep_result
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import (
    finite_number,
    flag,
    guess,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
    sequence,
)
from ..budget.account import Budget, check_budget, check_covered
from ..data.chunks import Chunks, fold_bare
from ..data.column_kinds import Category, Number
from ..data.columns import Column, NumberColumn
from ..data.frames import take_columns
from ..data.goal import Goal, check_goal
from ..data.persons import Persons
from ..data.schema import Schema
from ..data.states import State, bundle, unbundle
from ..data.table import Table
from ..exceptions import ShapeError
from ..record import PrivacyRecord
from .cross_tables import MOST_COLUMNS, TablesPlan, bin_edges, columns_of, settle_margins
from .distributions import MOST_CELLS
from .jobs import Job
from .results import CrossTable, CrossTables, Distribution, Histogram, Quantiles, Statistic

_QUARTILES = (0.25, 0.5, 0.75)
_DIGITS = 12
_USUAL_CHOICES, _USUAL_STEPS = 3, 100
_MOMENTS = ("mean", "sum", "variance")
# These take one column.
_ALONE = ("histogram", "top_k")
_OF_POINTS = ("quantiles", "distribution")


class Task(NamedTuple):
    """One release of describe.

    Attributes:
        statistic: "count", "mean", "sum", "variance", "quantiles", "distribution", "histogram",
            "tables" or "top_k", as the functions of this package.
        columns: Names of the columns: none for "count", one for "histogram" and "top_k", one to
            three for "tables", whose table they make, and one or more for the others.
        detail: The levels of "quantiles", numbers in [0, 1], None for the quartiles; the steps of
            the grid of a "distribution", None for 100; or how many categories "top_k" chooses, None
            for 3.

    Examples:
        >>> from hdp_fast.statistics import Task
        >>> Task("quantiles", ("age",), (0.1, 0.9)).statistic
        'quantiles'
    """

    statistic: str
    columns: tuple[str, ...] = ()
    detail: Any = None


@dataclass(frozen=True)
class TableStatistics(JsonText):
    """What describe released; all of it may be published.

    Attributes:
        rows: A dict for each number, with "statistic" and "value", and where there are such the
            "column" (of a table all of them, with commas between), the "group", the "item" (a
            level, bin, cell or place, or of a distribution a number that so many have at most), the
            ends "low" and "high" of its interval, those of the population's, "population_low" and
            "population_high", and "rank_error" or "count_error".
        records: What protects the rows of the table, or its people: a PrivacyRecord for each
            release.
        n: The number of the rows that were used; None where it is private.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Label, Number, Schema
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 70] * 5_000, "bought": ["no", "yes"] * 5_000}
        >>> tasks = [statistics.Task("mean", ("age", "bought"))]
        >>> result = statistics.describe(people, schema, epsilon=1.0, tasks=tasks)
        >>> [row["column"] for row in result.rows], len(result.records)
        (['age', 'bought'], 1)
    """

    rows: tuple[dict[str, Any], ...]
    records: tuple[PrivacyRecord, ...]
    n: int | None = None


@dataclass(frozen=True)
class _Settings:
    """What all releases share; each interval alone has the confidence."""

    epsilon: float
    delta: float | None
    neighbors: str
    confidence: float
    by: str | None
    sampled: bool


@keep_result
def describe(
    table: Any,
    schema: Schema,
    *,
    epsilon: float,
    delta: float | None = None,
    tasks: Sequence[Task] | None = None,
    by: str | None = None,
    neighbors: str = "replace_one",
    confidence: float = 0.95,
    sampled: bool = False,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> TableStatistics:
    """Releases many statistics of a private table, one epsilon and delta split among them.

    Every column of a release gets an equal share, and so does each table of several columns; tables
    are released together and agree with each other. The number of rows is free where it is public.
    Values are clipped to the schema's bounds; a text that is no number counts as the lower bound,
    and one that is none of the categories is counted nowhere. It is what `hdp-fast stats` runs.

    Args:
        table: A data.Table or a data frame, as data.read_frame takes it, of private rows; or
            data.Chunks of such, each of which is read where it lies. Where these name a column of
            ids, which then is no column of a release, people are protected: `Chunks([frame],
            ids="person", rows_per_person=2)`.
        schema: Public data.Schema: bounds of numbers, and the values of categories. A label by a
            rule is a column of numbers, 1 where the rule applies.
        epsilon: Privacy parameter of all of it together, finite and above 0.
        delta: Privacy parameter of all of it together, strictly between 0 and 1. None takes
            discrete Laplace noise alone.
        tasks: What to release. None releases the number of rows, the mean and the quartiles of
            every number, and a histogram of every category.
        by: Name of a category of the schema, whose public values are groups: all is then released
            for each of them. None makes no groups.
        neighbors: "replace_one" or "add_remove".
        confidence: Confidence of each interval alone, in (0, 1), and of the band of a
            distribution.
        sampled: Whether there are intervals, wider ones, for the population that the rows are an
            independent sample of, too, as the functions of each statistic take it. A table's own
            number of rows and "top_k" have none.
        budget: Budget of this relation, charged with all of it at once and before anything is
            drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The statistics and their records.

    Raises:
        ParameterError: An argument is out of range, a task does not fit the schema, or the table
            lacks a column. Nothing is spent.
        ShapeError: The number of rows is public and 0, or columns differ in length. Nothing is
            spent.
        BudgetExceeded: Less is left than all releases cost. Nothing is spent.

    Guarantee:
        (epsilon, delta)-DP under `neighbors` by basic composition of the releases, each exact; for
        people instead of rows where Chunks name a column of ids, as data.bound_rows says. No value
        in the table causes an error.

    Cost:
        A pass over the columns of each release; over Chunks one for all, and with ids one before.

    Source:
        The functions of each statistic name theirs; basic composition: Dwork et al. 2006.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Label, Number, Schema
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 70] * 5_000, "bought": ["no", "yes"] * 5_000}
        >>> result = statistics.describe(people, schema, epsilon=1.0)
        >>> [row["statistic"] for row in result.rows[:3]], result.rows[0]["value"]
        (['count', 'mean', 'mean'], 10000)
    """
    kinds = columns_of(schema)
    settings = _Settings(
        positive("epsilon", epsilon),
        None if delta is None else probability("delta", delta),
        one_of("neighbors", neighbors, ("replace_one", "add_remove")),
        probability("confidence", confidence),
        by,
        flag("sampled", sampled),
    )
    check_random_state(random_state)
    if by is not None and not (isinstance(by, str) and isinstance(kinds.get(by), Category)):
        refuse("by", by, "the schema must have it as a category, whose values are public")
    check_budget(budget)
    chunked = isinstance(table, Chunks)
    private = take_columns("table", table.peek() if chunked else table, None)
    if tasks is None:
        tasks = _plan_usual(schema, by, private.columns)
    settled = _join_tables([_settle(task, schema, by) for task in sequence("tasks", tasks)], kinds)
    releases = _Releases(schema, settings, settled)
    for name in releases.names:
        private.column(name)
    fold, persons = partial(fold_bare, releases.fold), Persons()
    if chunked:
        table, persons = table.of_people()
    state = table.fold(fold, numbers=releases.numbers) if chunked else fold(private)
    if not state.rows and neighbors == "replace_one":
        raise ShapeError("table has no rows, but their public number must be at least 1")
    rows = releases.release(state, persons, budget, make_stream(random_state))
    n = state.rows if neighbors == "replace_one" else None
    return TableStatistics(tuple(rows), tuple(releases.records), n)


def _plan_usual(schema: Schema, by: str | None, present: Collection[str]) -> list[Task]:
    """The number of rows, means and quartiles of numbers, and histograms of categories.

    present: names of the table's columns; that of the label may lack.
    """
    kinds, label = columns_of(schema), schema.label
    binary = label.column if label is not None and label.bounds is None else None
    numbers = tuple(
        name
        for name, kind in kinds.items()
        if isinstance(kind, Number) and (name in present or label is None or name != label.column)
    )
    ordered = tuple(name for name in numbers if name != binary)
    tasks = [Task("count", ())]
    tasks += [Task("mean", numbers)] if numbers else []
    tasks += [Task("quantiles", ordered, _QUARTILES)] if ordered else []
    return tasks + [
        Task("histogram", (name,))
        for name, kind in kinds.items()
        if isinstance(kind, Category) and name != by
    ]


def _settle(task: Any, schema: Schema, by: str | None) -> Task:
    """The task with its detail; what the schema does not allow is refused."""
    if not isinstance(task, Task):
        refuse("tasks", task, "it must hold statistics.Task")
    one_of("statistic", task.statistic, (*_ALONE, *_MOMENTS, "count", "tables", *_OF_POINTS))
    kinds, names = columns_of(schema), tuple(sequence("columns", task.columns))
    for name in names:
        if name not in kinds:
            rule = "it must be a column of the schema that is not ignored"
            refuse("columns", name, f"{rule}{guess(name, kinds)}")
    if len(set(names)) < len(names):
        refuse("columns", list(names), "it must name each column once")
    if task.statistic == "count":
        many = not names
    elif task.statistic == "tables":
        many = 1 <= len(names) <= MOST_COLUMNS
    else:
        many = len(names) == 1 if task.statistic in _ALONE else bool(names)
    if not many:
        refuse("columns", list(names), f"{task.statistic} takes another number of columns")
    detail = _settle_detail(task, [kinds[name] for name in names], by)
    return Task(task.statistic, names, detail)


def _settle_detail(task: Task, kinds: Sequence[Category | Number], by: str | None) -> Any:
    numbers = all(isinstance(kind, Number) for kind in kinds)
    if task.statistic in (*_OF_POINTS, *_MOMENTS) and not numbers:
        refuse("columns", list(task.columns), "the schema must have each as a number")
    if task.statistic == "distribution":
        steps = _USUAL_STEPS if task.detail is None else task.detail
        return positive_int("detail", steps, MOST_CELLS)
    if task.statistic == "tables" and by is not None:
        refuse("by", by, "tables have no groups: name the column in a table")
    if task.statistic == "quantiles":
        if task.detail is None:
            return _QUARTILES
        levels = [finite_number("detail", level) for level in sequence("detail", task.detail)]
        if not levels or not all(0 <= level <= 1 for level in levels):
            refuse("detail", task.detail, "it must list levels in [0, 1]")
        return tuple(sorted(set(levels)))
    if task.statistic == "top_k":
        (kind,) = kinds
        if by is not None:
            refuse("by", by, "top_k has no groups: leave it out, or ask for a histogram")
        if not isinstance(kind, Category):
            refuse("columns", list(task.columns), "the schema must have it as a category")
        many = len(kind.values)
        return positive_int(
            "detail", min(_USUAL_CHOICES, many) if task.detail is None else task.detail, many
        )
    return None


def _join_tables(tasks: Sequence[Task], kinds: Mapping[str, Any]) -> list[Task]:
    """The tasks, of which one releases all tables together: its detail are their columns."""
    asked = [task.columns for task in tasks if task.statistic == "tables"]
    margins = settle_margins(asked, kinds) if asked else ()
    names = tuple(dict.fromkeys(name for margin in margins for name in margin))
    joined = Task("tables", names, margins)
    first = next((place for place, task in enumerate(tasks) if task.statistic == "tables"), -1)
    return [
        joined if place == first else task
        for place, task in enumerate(tasks)
        if place == first or task.statistic != "tables"
    ]


class _Releases:
    """Releases statistics of one table."""

    def __init__(self, schema: Schema, settings: _Settings, tasks: Sequence[Task]) -> None:
        """Settle how the budget is split, and run on made-up rows what could be refused."""
        self._schema, self._settings, self._tasks = schema, settings, tasks
        self._kinds = columns_of(schema)
        parts = sum(map(self._weight, tasks))
        self._epsilon = _divide(settings.epsilon, parts)
        self._delta = None if settings.delta is None else _divide(settings.delta, parts)
        self.records: list[PrivacyRecord] = []
        self._jobs = [self._job_of(task) if self._weight(task) else None for task in tasks]
        self._records_of_rows = self._rehearse(Persons())

    @property
    def names(self) -> set[str]:
        """The columns that are read."""
        named = {name for task in self._tasks for name in task.columns}
        return named | ({self._settings.by} if self._settings.by else set())

    @property
    def numbers(self) -> list[str]:
        """The columns of which numbers are taken alone, and no texts."""
        label = self._schema.label
        by_text = () if label is None or label.positive is None else (label.column,)
        kinds = {name: self._kinds.get(name) for name in self.names}
        return [n for n, kind in kinds.items() if isinstance(kind, Number) and n not in by_text]

    def fold(self, table: Any) -> State:
        """The private state of some of the rows, for all releases together.

        Raises:
            ParameterError: The table lacks a column.
        """
        part, by = take_columns("table", table, None), None
        if self._keys is not None:
            by = self._codes(part, str(self._settings.by), self._keys)
        # Several releases of a column make numbers of its texts once.
        read = cache(partial(self._numbers, part))
        states = [
            job.fold(part)
            if isinstance(job, TablesPlan)
            else job.fold(self._values(task, part, read), by=by)
            for task, job in zip(self._tasks, self._jobs, strict=True)
            if job is not None
        ]
        return bundle("statistics.describe", states, part.rows)

    def release(
        self, state: State, persons: Persons, budget: Budget | None, random_state: RandomState
    ) -> list[dict[str, Any]]:
        """The rows of the result; `records` has what was spent.

        Raises:
            ParameterError: Such persons cannot have what is asked for, or the budget is of another
                relation; nothing is spent then.
            BudgetExceeded: Less is left than all releases cost; nothing is spent then.
        """
        records = self._records_of_rows if persons.keep is None else self._rehearse(persons)
        if budget is not None and records:
            for record in records:
                check_covered(budget, record)
            # All shares at once, so that the ledger refuses before the first is spent.
            amounts = zip(*((record.epsilon, record.delta) for record in records), strict=True)
            price = [float(sum(Decimal(repr(amount)) for amount in one)) for one in amounts]
            budget = budget.sequential(*price, name="statistics.describe")
        return self._release(state, persons, budget, random_state)

    def _rehearse(self, persons: Persons) -> list[PrivacyRecord]:
        """What protects all releases, which depends on no row: told by a run on made-up ones.

        Raises: What a release would refuse.
        """
        with warnings.catch_warnings(), drop_notes():
            warnings.simplefilter("ignore")
            self._release(self.fold(_make_up(self._schema)), persons, None, None)
        told, self.records = self.records, []
        return told

    def _weight(self, task: Task) -> int:
        """How many shares of the budget a release takes; a public number of rows is free."""
        if task.statistic == "count" and self._counts_for_free:
            return 0
        return len(task.detail) if task.statistic == "tables" else max(len(task.columns), 1)

    @property
    def _counts_for_free(self) -> bool:
        return self._settings.neighbors == "replace_one" and self._settings.by is None

    def _price(self, task: Task) -> tuple[float, float | None]:
        weight = self._weight(task)
        delta = None if self._delta is None else float(_floor(self._delta * weight))
        return float(_floor(self._epsilon * weight)), delta

    def _release(
        self, state: State, persons: Persons, budget: Budget | None, random_state: RandomState
    ) -> list[dict[str, Any]]:
        states, rows = iter(unbundle(state)), []
        for task, job in zip(self._tasks, self._jobs, strict=True):
            if job is None:
                value = state.rows
                rows.append(_row("count", value=value, low=value, high=value))
                continue
            goal = self._goal_of(task, budget, random_state)._replace(persons=persons)
            result = self._release_one(task, job, next(states), goal)
            rows += self._describe_groups(task, result)
        return rows

    def _goal_of(self, task: Task, budget: Budget | None, random_state: RandomState) -> Goal:
        """The share of epsilon and delta of one task, and what else it is asked."""
        (epsilon, delta), settings = self._price(task), self._settings
        relation: Any = settings.neighbors
        return check_goal(
            epsilon,
            None if task.statistic in (*_OF_POINTS, "top_k") else delta,
            relation,
            budget,
            random_state,
            settings.confidence,
            settings.sampled and task.statistic != "top_k",
        )

    def _release_one(self, task: Task, job: Job | TablesPlan, state: State, goal: Goal) -> Any:
        """What one task releases."""
        if isinstance(job, TablesPlan):
            return job.release(state, goal)
        name = {"quantiles": "levels", "top_k": "k"}.get(task.statistic)
        return job._release(state, goal, **({} if name is None else {name: task.detail}))

    def _describe_groups(self, task: Task, result: Any) -> list[dict[str, Any]]:
        keys = self._keys
        if keys is None:
            return list(self._describe(task, result, None))
        return [
            row for code, part in result.items() for row in self._describe(task, part, keys[code])
        ]

    @property
    def _keys(self) -> tuple[str, ...] | None:
        """The public values of the groups; None without groups."""
        return None if self._settings.by is None else self._categories(self._settings.by)

    def _job_of(self, task: Task) -> Job | TablesPlan:
        """The job of a release, on what `_values` makes of a table, or on the table itself."""
        if task.statistic == "tables":
            return TablesPlan(self._schema, task.detail, self._settings.neighbors)
        settings: dict[str, Any] = {"neighbors": self._settings.neighbors}
        if self._keys is not None:
            settings["groups"] = range(len(self._keys))
        kinds = [self._kinds[name] for name in task.columns]
        if task.statistic in _ALONE:
            (kind,) = kinds
            if isinstance(kind, Number):
                settings["edges"] = bin_edges(kind)
            else:
                settings["categories"] = range(len(kind.values))
        elif kinds:
            settings |= self._bounds(task)
        if task.statistic == "distribution":
            settings["steps"] = task.detail
        return Job(task.statistic, **settings)

    def _values(self, task: Task, table: Table, read: Callable[[str], Floats]) -> Any:
        """What the job of a release takes of a table, whose columns `read` makes numbers of."""
        if task.statistic == "count":
            return np.ones(table.rows)
        if task.statistic in _OF_POINTS:
            return {name: self._whole_numbers(table, name, read) for name in task.columns}
        if task.statistic not in _ALONE:
            return {name: read(name) for name in task.columns}
        (name,) = task.columns
        kind = self._kinds[name]
        if isinstance(kind, Number):
            return read(name)
        return self._codes(table, name, kind.values)

    def _numbers(self, table: Table, name: str) -> Floats:
        label = self._schema.label
        if label is not None and name == label.column and label.bounds is None:
            bits: Floats = self._schema.labels(table).astype(np.float64)
            return bits
        column, kind = table.column(name), self._kinds.get(name)
        return kind._numbers(column) if isinstance(kind, Number) else column.row_numbers()

    def _whole_numbers(self, table: Table, name: str, read: Callable[[str], Floats]) -> Any:
        """The numbers of a column, integers where its type, which is public, has no others."""
        column = table.column(name)
        if isinstance(column, NumberColumn) and column.holds_integers and column.missing is None:
            return column.values
        return read(name)

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
        parts = [((*task.columns, None)[0], result)]
        if isinstance(result, CrossTables):
            parts = [(", ".join(part.columns), part) for part in result.tables]
        elif isinstance(result, dict):
            parts = list(result.items())
        for column, part in parts:
            if not any(part.record is record for record in self.records):
                self.records.append(part.record)
            for item in self._itemize(task, column, part):
                yield _row(task.statistic, column=column, group=group, **item)

    def _itemize(self, task: Task, column: str | None, part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, Statistic):
            ends = {"population_low": part.population_low, "population_high": part.population_high}
            yield {"value": part.value, "low": part.low, "high": part.high, **ends}
        elif isinstance(part, Quantiles):
            yield from _rows_of(part.levels, part, rank_error=part.rank_error)
        elif isinstance(part, Distribution):
            yield from _rows_of(part.points.tolist(), part, sampled=self._settings.sampled)
        elif isinstance(part, CrossTable):
            yield from _rows_of(map(", ".join, itertools.product(*part.labels)), part)
        elif isinstance(part, Histogram):
            yield from _rows_of(self._bin_names(column, part), part)
        else:
            values = self._categories(str(column))
            for place, code in enumerate(part.value, start=1):
                yield {"item": place, "value": values[code], "count_error": part.count_error}

    def _bin_names(self, column: str | None, part: Histogram) -> list[str]:
        kind = self._kinds[str(column)]
        if isinstance(kind, Category):
            return list(kind.values)
        pairs = zip(part.bins, part.bins[1:], strict=False)
        return [f"{low:.12g} to {high:.12g}" for low, high in pairs]


def _rows_of(
    items: Iterable[Any], part: Any, *, sampled: bool = True, **more: Any
) -> Iterator[dict[str, Any]]:
    """The rows of numbers of one result, with the ends of those intervals that it has.

    sampled: whether those for the population are asked for, where the result has them.
    """
    names = ["value", "low", "high", *(["population_low", "population_high"] if sampled else [])]
    held = {name: getattr(part, name) for name in names}
    columns = {name: one.ravel().tolist() for name, one in held.items() if one is not None}
    for item, *numbers in zip(items, *columns.values(), strict=True):
        yield {"item": item, **dict(zip(columns, numbers, strict=True)), **more}


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
    """A table of two rows about no one, with which wrong settings are refused before a release."""
    names = [*schema.columns, *([] if schema.label is None else [schema.label.column])]
    empty = Column(("",), np.zeros(2, np.int64))
    return Table(dict.fromkeys(names, empty), 2)
