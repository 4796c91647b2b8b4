"""Tables of several columns at once, released with one noise and made consistent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.notes import keep_result
from .._support.types import Floats, Integers, RandomState
from .._support.validate import guess, instance, refuse, sequence
from ..budget.account import Budget, Neighbors
from ..data.chunks import Chunks, fold_all
from ..data.column_kinds import Category, Number
from ..data.columns import Column
from ..data.frames import take_columns
from ..data.goal import Goal, check_goal
from ..data.schema import Schema
from ..data.states import State, describe_settings, require_shapes
from ..data.table import Table
from .bounded_columns import check_number
from .release_noise import Sensitivity, release
from .results import OTHER, CrossTable, CrossTables
from .sampling import check_sample
from .tallies import read_bins, sample_counts

Margin = tuple[str, ...]

_MOST_CELLS, MOST_COLUMNS = 1 << 20, 3
# What makes a lower and an upper end farther from a number.
_WIDER = (np.minimum, np.maximum)
# Projections on consistent tables and on tables without negative counts, one after the other.
_MOST_ROUNDS, _CLOSE = 500, 1e-7


@keep_result
def tables(
    table: Any,
    schema: Schema,
    *,
    epsilon: float,
    delta: float | None = None,
    margins: Sequence[Sequence[str]] | None = None,
    neighbors: Neighbors = "replace_one",
    confidence: float = 0.95,
    sampled: bool = False,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> CrossTables:
    """Counts the rows of a private table by several columns at once, for one price.

    Each margin is a table of one, two or three columns: categories by their public values, with one
    more for all others, and numbers by the bins that the schema's cuts make. All tables have the
    same noise, and are then made consistent: tables agree about the columns that they share, and
    with the number of rows where it is public, and no count is negative. That takes noise away.

    Args:
        table: A data.Table or a data frame, as data.read_frame takes it, of private rows; or
            data.Chunks of such, each of which is read once, where it lies.
        schema: Public data.Schema: the values of categories; bounds and cuts of numbers.
        epsilon: Privacy parameter of all tables together, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller, as a
            rule from some ten tables on; None takes discrete Laplace noise, which is pure.
        margins: The tables, each one to three different names of columns. None takes all pairs of
            the columns that the table has, or the only one.
        neighbors: "replace_one", for which the number of rows is public, or "add_remove", for which
            it is not.
        confidence: Probability of the interval of each count alone, in (0, 1).
        sampled: Whether results also have intervals, wider ones, for the number that is expected of
            as many rows of the population that these are an independent sample of.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The tables, in the order of the margins.

    Raises:
        ShapeError: The number of rows is public and 0, or columns differ in length.
        ParameterError: An argument is out of range, a margin is listed twice, names a column that
            the schema has not, or has too many cells, or the table lacks a column.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP under `neighbors` for all tables together, and pure epsilon-DP where the
        record states delta 0; exact. A row is in one cell of each of the T tables. Adding one moves
        T counts by 1, replacing one at most 2 T; in squares as much. Consistency takes the noisy
        counts alone. No value in the table causes an error or a warning. Where Chunks name a column
        of ids, it is for people.

    Cost:
        A pass over the rows for each table, and up to 500 passes over the cells.

    Source:
        Barak et al. 2007 for consistent margins; least squares by effects of sets of columns, which
        are orthogonal; Dykstra's alternating projections for counts of at least 0.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Category, Number, Schema
        >>> schema = Schema(None, {"age": Number(0, 90, (30,)), "home": Category(("town",))})
        >>> people = {"age": [20, 50, 50] * 3_000, "home": ["town", "land", "town"] * 3_000}
        >>> released = statistics.tables(people, schema, epsilon=1.0)
        >>> released["age", "home"].value.round(-2).tolist()
        [[3000.0, 0.0], [3000.0, 3000.0]]
        >>> {name: round(share, 2) for name, share in released.shares("age").items()}
        {'0 to 30': 0.33, '30 to 90': 0.67}
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    kinds, chunked = columns_of(schema), isinstance(table, Chunks)
    private = take_columns("table", table.peek() if chunked else table, None)
    label = None if schema.label is None else schema.label.column
    usual = [name for name in kinds if name != label or name in private.columns]
    plan = TablesPlan(schema, settle_margins(margins, kinds, usual), neighbors)
    for name in plan.labels:
        private.column(name)
    if chunked:
        private, persons = table.of_people()
        goal = goal._replace(persons=persons)
    return plan.release(fold_all(plan.fold, private), goal)


def columns_of(schema: Schema) -> dict[str, Category | Number]:
    """Lists the columns of which something can be released, the label among them.

    Args:
        schema: The public schema.

    Returns:
        Category or Number by the column's name. A label by a rule is a column of numbers, 1 where
        the rule applies.

    Raises:
        ParameterError: schema is no data.Schema.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.statistics import columns_of
        >>> list(columns_of(Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})))
        ['age', 'bought']
    """
    instance("schema", schema, Schema, "a data.Schema")
    kinds = {
        name: kind for name, kind in schema.columns.items() if isinstance(kind, (Category, Number))
    }
    label = schema.label
    if label is None:
        return kinds
    number = Number(0, 1, (0.5,)) if label.bounds is None else Number(*label.bounds)
    return {**kinds, label.column: number}


def bin_edges(kind: Number) -> list[float]:
    """The ends of the bins of a number: its bounds, and the cuts between them."""
    return [kind.low, *(cut for cut in kind.cuts if kind.low < cut < kind.high), kind.high]


class TablesPlan:
    """Which tables are released, from public facts alone."""

    def __init__(self, schema: Schema, margins: tuple[Margin, ...], neighbors: str) -> None:
        """Settle the cells of each table."""
        kinds = columns_of(schema)
        self._schema, self._neighbors, self.margins = schema, neighbors, margins
        names = dict.fromkeys(itertools.chain(*self.margins))
        self._kinds = {name: kinds[name] for name in names}
        self.labels = {name: _labels_of(kind) for name, kind in self._kinds.items()}
        cells = sum(math.prod(self._shape(margin)) for margin in self.margins)
        if cells > _MOST_CELLS:
            refuse("margins", f"{cells} cells", f"they must have {_MOST_CELLS} at most")

    def _shape(self, margin: Margin) -> tuple[int, ...]:
        return tuple(len(self.labels[name]) for name in margin)

    def fold(self, table: Any) -> State:
        """The counts of some of the rows."""
        part = take_columns("table", table, None)
        codes = {name: self._codes(part, name) for name in self.labels}
        sums = {}
        for place, margin in enumerate(self.margins):
            shape = self._shape(margin)
            flat = np.ravel_multi_index([codes[name] for name in margin], shape)
            sums[str(place)] = np.bincount(flat, minlength=math.prod(shape)).astype(np.int64)
        return State("statistics.tables", self._settings, part.rows, sums)

    @property
    def _settings(self) -> dict[str, str]:
        listed = {name: list(labels) for name, labels in self.labels.items()}
        return describe_settings(margins=self.margins, labels=listed, neighbors=self._neighbors)

    def _codes(self, table: Table, name: str) -> Integers:
        """The place of each row's label of a column."""
        kind, label = self._kinds[name], self._schema.label
        if isinstance(kind, Category):
            return self._places(kind, table.column(name))
        if label is not None and name == label.column and label.bounds is None:
            return self._schema.labels(table).astype(np.int64)
        column, _ = read_bins(self._numbers(kind, table.column(name)), bin_edges(kind), None)
        return column.find_all()

    def _places(self, kind: Category, column: Column) -> Integers:
        places = kind._places(column)
        return np.where(places < 0, len(kind.values), places).astype(np.int64)

    def _numbers(self, kind: Number, column: Column) -> Floats:
        return kind._numbers(column)

    def release(self, state: State, goal: Goal) -> CrossTables:
        """The tables of the summed counts of all parts."""
        state.require("statistics.tables", self._settings, "a state must be made by these tables")
        check_number(state.rows, goal.neighbors, grouped=False)
        check_sample(goal)
        shapes = {
            str(place): (math.prod(self._shape(margin)),)
            for place, margin in enumerate(self.margins)
        }
        require_shapes(state, shapes)
        n = state.rows if goal.neighbors == "replace_one" else None
        moved = len(self.margins) * (1 if n is None else 2)
        counts = np.concatenate([state.sums[name] for name in shapes])
        noisy, drawn, record = release(
            counts, Sensitivity(moved, moved), goal, name="tables", n=n, span=1
        )
        half = drawn.half_width(goal.beta)
        beyond = sample_counts(noisy[None], drawn, goal, n)[0] if goal.sampled else ()
        split = [self._split(each) for each in (noisy, *beyond)]
        made = make_consistent(split[0], n)
        most = math.inf if n is None else float(n)

        def make(margin: Margin) -> CrossTable:
            counts, ends = made[margin], [more[margin] for more in split[1:]]
            sides = [(split[0][margin] + side).clip(0, most) for side in (-half, half)]
            return CrossTable(
                margin,
                tuple(self.labels[name] for name in margin),
                counts,
                # What is consistent may lie beyond the interval of its own noise.
                np.minimum(sides[0], counts),
                np.maximum(sides[1], counts),
                goal.confidence,
                record,
                split[0][margin].astype(np.int64),
                *(wider(end, counts) for wider, end in zip(_WIDER, ends, strict=False)),
            )

        return CrossTables(tuple(map(make, self.margins)), record, drawn, n)

    def _split(self, cells: NDArray[Any]) -> dict[Margin, Floats]:
        """The tables of the numbers of all cells."""
        sizes = [math.prod(self._shape(margin)) for margin in self.margins]
        parts = np.split(cells.astype(np.float64), np.cumsum(sizes)[:-1])
        return {
            margin: part.reshape(self._shape(margin))
            for margin, part in zip(self.margins, parts, strict=True)
        }


def settle_margins(
    margins: Any, kinds: Mapping[str, Any], usual: Sequence[str] = ()
) -> tuple[Margin, ...]:
    """The tables that are asked for, or the usual ones.

    Raises: ParameterError for what `tables` refuses.
    """
    if margins is None:
        pairs = tuple(itertools.combinations(usual, 2))
        return pairs or tuple((name,) for name in usual)
    settled: list[Margin] = []
    for margin in sequence("margins", margins):
        names = tuple(sequence("margins", margin))
        for name in names:
            if name not in kinds:
                rule = "each must be a column of the schema that is not ignored"
                refuse("margins", name, f"{rule}{guess(name, kinds)}")
        if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
            refuse("margins", list(names), "each must have one to three different columns")
        if any(set(names) == set(other) for other in settled):
            refuse("margins", list(names), "each table must be listed once")
        settled.append(names)
    if not settled:
        refuse("margins", margins, "it must list a table")
    return tuple(settled)


def _labels_of(kind: Category | Number) -> tuple[str, ...]:
    """The names of a column's cells."""
    if isinstance(kind, Category):
        return (*kind.values, OTHER)
    return tuple(f"{low:.12g} to {high:.12g}" for low, high in itertools.pairwise(bin_edges(kind)))


# Consistency --------------------------------------------------------------------------------------


def make_consistent(raw: Mapping[Margin, Floats], n: int | None) -> dict[Margin, Floats]:
    """The nearest tables that agree about shared columns and have no negative count.

    Dykstra's projections alternate between both; where they do not meet in time the counts are at
    least 0 and agree up to rounding and a little more.

    Args:
        raw: The noisy tables by the names of their axes.
        n: What each adds up to; None where that is not public.
    """
    tables = {margin: table.copy() for margin, table in raw.items()}
    steps = {margin: np.zeros_like(table) for margin, table in raw.items()}
    for _ in range(_MOST_ROUNDS):
        tables = project_on_margins(tables, n)
        total = max(abs(float(next(iter(tables.values())).sum())), 1.0)
        if min(float(table.min()) for table in tables.values()) >= -_CLOSE * total:
            break
        for margin, table in tables.items():
            moved = table + steps[margin]
            tables[margin] = moved.clip(0)
            steps[margin] = moved - tables[margin]
    return {margin: _rescale(table, n) for margin, table in tables.items()}


def _rescale(table: Floats, n: int | None) -> Floats:
    positive: Floats = table.clip(0)
    total = float(positive.sum())
    return positive if n is None or not total else positive * (n / total)


def project_on_margins(tables: Mapping[Margin, Floats], n: int | None) -> dict[Margin, Floats]:
    """The tables nearest by least squares among those that agree about shared columns.

    A table is the sum of effects of the sets of its columns, which are orthogonal: what is left of
    the set's margin when the means along each of its axes are taken away, spread evenly over the
    other columns. For equal noise in all cells, the best effect of a set is the average of those in
    the tables that hold it, weighted by 1 / cells.
    """
    sums: dict[frozenset[str], Floats] = {}
    weights: dict[frozenset[str], float] = {}
    for margin, table in tables.items():
        for axes, effect in _effects(margin, table):
            weight = 1 / table.size
            known = sums.get(axes)
            sums[axes] = weight * effect if known is None else known + weight * effect
            weights[axes] = weights.get(axes, 0.0) + weight
    best = {axes: total / weights[axes] for axes, total in sums.items()}
    if n is not None:
        best[frozenset()] = np.array(float(n))
    return {margin: _compose(margin, table.shape, best) for margin, table in tables.items()}


def _effects(margin: Margin, table: Floats) -> Iterator[tuple[frozenset[str], Floats]]:
    """The effects of all sets of columns, their axes in the order of the names."""
    for many in range(len(margin) + 1):
        for axes in itertools.combinations(range(len(margin)), many):
            others = tuple(axis for axis in range(len(margin)) if axis not in axes)
            effect = table.sum(axis=others) if others else table
            for axis in range(effect.ndim):
                effect = effect - effect.mean(axis=axis, keepdims=True)
            names = [margin[axis] for axis in axes]
            yield frozenset(names), np.transpose(effect, np.argsort(names, kind="stable"))


def _compose(
    margin: Margin, shape: tuple[int, ...], best: Mapping[frozenset[str], NDArray[Any]]
) -> Floats:
    """The table that has these effects."""
    total: Floats = np.zeros(shape)
    for many in range(len(margin) + 1):
        for axes in itertools.combinations(range(len(margin)), many):
            names = [margin[axis] for axis in axes]
            ordered = np.transpose(
                best[frozenset(names)], np.argsort(np.argsort(names, kind="stable"))
            )
            spread = tuple(slice(None) if axis in axes else None for axis in range(len(margin)))
            rest = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
            total = total + ordered[spread] / rest
    return total
