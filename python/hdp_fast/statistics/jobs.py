"""Statistics of records in parts: each part is folded where it lies, and the sum released once."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result
from .._support.parameters import Checked, Rules, optional
from .._support.types import RandomState
from .._support.validate import curator_relation, instance, one_of, positive_int, refuse
from ..budget.account import Budget
from ..data.chunks import Chunks, fold_all
from ..data.columns import Column, NumberColumn
from ..data.frames import take_columns
from ..data.goal import Goal, check_goal
from ..data.rows import Bounds
from ..data.states import State, Tally, describe_settings, part_names, require_shapes
from ..data.table import Table
from ..exceptions import ParameterError
from .bounded_columns import (
    Groups,
    add_up,
    check_number,
    read_bounds,
    read_columns,
    read_members,
    whole_columns,
)
from .covariances import add_products, release_products
from .distributions import MOST_CELLS, USUAL_CELLS, release_distributions
from .moment_sums import (
    Moment,
    PublicColumns,
    make_count,
    make_mean,
    make_sum,
    make_variance,
    release_sums,
    settle_columns,
)
from .ranks import MOST_STEPS, Choice, Grid, count_points, plan_quantiles, settle_points
from .tallies import choose_largest, count_cells, read_bins, release_counts

_MOMENTS: Mapping[str, Callable[[PublicColumns], Moment]] = {
    "count": make_count,
    "sum": make_sum,
    "mean": make_mean,
    "variance": make_variance,
}
_OF_BINS = ("histogram", "top_k")
_MOST_COLUMNS = 1 << 20
# Squares are integers up to 2**30, and sums of more of them may wrap around.
_MOST_OF_SQUARES = 1 << 33
_OF_POINTS = ("quantiles", "distribution")
_WITHOUT_SAMPLING = ("covariance", "top_k")
_STATISTICS = (*_MOMENTS, "covariance", *_OF_POINTS, *_OF_BINS)


@dataclass(frozen=True, eq=False)
class Job(Checked):
    """One statistic of private records that lie in parts.

    `fold` makes of each part a state of exact integers, where the part lies; states add up by `+`,
    in any order; and `release` adds noise once, to the sum. What is released has the bits of the
    function of the same name on all the records together.

    Attributes:
        statistic: "count", "sum", "mean", "variance", "covariance", "quantiles", "distribution",
            "histogram" or "top_k", as the functions of this package.
        low: Public lower bound of the columns, as that function takes it; not for "count",
            "histogram" and "top_k".
        high: Public upper bound, likewise.
        edges: Public ends of the bins of a histogram of numbers.
        categories: Public values of a histogram of categories, or of "top_k".
        steps: Steps of the grid of quantiles or a distribution, as these take them. None takes
            integers for columns of bool or an integer type, which all parts must then have.
        groups: Public keys of groups; None makes no groups.
        neighbors: "replace_one" or "add_remove".
        columns: The columns of tables that are read: a list of names, or one name for a vector.
            None takes all but that of the groups.
        by: The column of tables that holds the groups.

    Raises:
        ParameterError: A setting is out of range, or is no setting of that statistic.

    Guarantee:
        That of release.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> job = statistics.Job("mean", low=0, high=100)
        >>> parts = [np.full(6_000, 30.0), np.full(4_000, 40.0)]
        >>> state = sum(job.fold(part) for part in parts)
        >>> abs(job.release(state, epsilon=1.0).value - 34) < 0.2
        True
    """

    statistic: str
    _: KW_ONLY
    low: Any = None
    high: Any = None
    edges: Any = None
    categories: Any = None
    steps: int | None = None
    groups: Any = None
    neighbors: str = "replace_one"
    columns: Any = None
    by: str | None = None

    RULES: ClassVar[Rules] = {
        "statistic": partial(one_of, allowed=_STATISTICS),
        "steps": optional(partial(positive_int, most=MOST_STEPS)),
        "neighbors": curator_relation,
        "by": optional(partial(instance, kind=str, what="the name of a column")),
    }

    def __post_init__(self) -> None:
        """Validate the settings, and that they are those of the statistic."""
        super().__post_init__()
        for name in ("low", "high", "edges", "categories", "groups", "columns"):
            # What is read of a setting once must not change with its list.
            if isinstance(getattr(self, name), list | dict | np.ndarray):
                object.__setattr__(self, name, copy.copy(getattr(self, name)))
        bounded = self.statistic not in (*_OF_BINS, "count")
        for name in ("low", "high"):
            if (getattr(self, name) is None) == bounded:
                rule = "must be given" if bounded else "is no setting"
                raise ParameterError(f"{name} = {getattr(self, name)}, but it {rule} of this job")
        if self.statistic == "top_k" and (self.groups is not None or self.edges is not None):
            raise ParameterError("groups and edges must be None: top_k takes categories alone")
        if self.statistic not in _OF_BINS:
            for name in ("edges", "categories"):
                if getattr(self, name) is not None:
                    refuse(name, getattr(self, name), f"it is no setting of a {self.statistic}")
        if self.statistic == "distribution" and self.steps is not None:
            positive_int("steps", self.steps, MOST_CELLS)
        if (self.by is not None) and self.groups is None:
            refuse("by", self.by, "groups must list its public keys")

    def fold(self, values: Any, *, by: ArrayLike | None = None, part: str | None = None) -> State:
        """Adds up, or counts, some of the records exactly.

        Args:
            values: Records as the function of the statistic takes them, or a data.Table, or with
                `columns` any frame.
            by: The group of each record, shape (n,); only for arrays, with `groups`.
            part: A public name of this part of the records, by which a part that is added twice is
                refused; None gives it none.

        Returns:
            The private state of these records.

        Raises:
            ShapeError: As the function of the statistic.
            ParameterError: As the function of the statistic.

        Cost:
            A pass over the records.
        """
        values, by = self._choose(values, by)
        if self.statistic in _OF_BINS:
            column, bins = read_bins(values, self.edges, self.categories)
            members = read_members(by, self.groups, column.n)
            sums = {"counts": count_cells(column, len(bins) - (self.categories is None), members)}
            return State(self._name, self._describe(None), column.n, sums, part_names(part))
        rows, names = read_columns(values)
        members = read_members(by, self.groups, len(rows))
        public = self._settle(names, rows.shape[1], max(len(rows), 1))
        grid = Grid(public.bounds, self._settle_points(public.bounds, whole_columns(rows)))
        sums, tallies = self._add_up(rows, public, grid, members)
        settings = self._describe(names if names is None else list(names), rows.shape[1], grid)
        return State(self._name, settings, len(rows), sums, part_names(part), tallies)

    @keep_result
    def release(
        self,
        values: Any,
        *,
        epsilon: float,
        delta: float | None = None,
        levels: ArrayLike = (0.25, 0.5, 0.75),
        interval: bool = False,
        k: int = 3,
        confidence: float = 0.95,
        sampled: bool = False,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Releases the statistic of a state, once.

        Args:
            values: The State of all records, or data.Chunks of them, which are folded first; or
                what fold takes.
            epsilon: As the function of the statistic.
            delta: As the function of the statistic; None for "top_k", quantiles and distributions.
            levels: The levels of quantiles.
            interval: Whether quantiles come with intervals.
            k: How many categories "top_k" chooses.
            confidence: As the function of the statistic.
            sampled: As the function of the statistic; a "distribution" always has that band, and
                there is none for "covariance" and "top_k".
            budget: Budget of the relation of this job, charged once and before anything is drawn;
                None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            What the function of the statistic returns.

        Raises:
            ParameterError: An argument is out of range, or the state is of another job.
            ShapeError: The number of records is public and 0.
            ParameterError: It is public and above `2**33`, for a variance or a covariance.
            BudgetExceeded: The budget has less than epsilon or delta left.
            Exception: What the functions of Chunks raise; nothing is spent then.

        Guarantee:
            That of the function of the statistic, for all records of the state together, wherever
            they were folded: for each row, or where Chunks name a column of ids for each person,
            whose rows may lie in several parts. A State protects rows alone.

        Cost:
            That of the noise; for Chunks a pass over the parts.
        """
        if delta is not None and self.statistic in (*_OF_POINTS, "top_k"):
            refuse("delta", delta, f"{self.statistic} is pure: it must be None")
        neighbors: Any = self.neighbors
        goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
        if sampled and self.statistic in _WITHOUT_SAMPLING:
            refuse("sampled", sampled, f"{self.statistic} has no such intervals: it must be False")
        if isinstance(values, Chunks):
            values, persons = values.of_people()
            goal = goal._replace(persons=persons)
        return self._release(
            fold_all(self.fold, values), goal, levels=levels, interval=interval, k=k
        )

    def _release(
        self,
        state: State,
        goal: Goal,
        *,
        levels: ArrayLike = (0.25, 0.5, 0.75),
        interval: bool = False,
        k: int = 3,
    ) -> Any:
        """What `release` releases of a state, for a goal of the relation of this job."""
        names, width = self._read_names(state)
        grid = self._read_grid(state, names, width)
        settings = self._describe(names, width, grid)
        state.require(self._name, settings, "a state must be made by this job")
        check_number(state.rows, goal.neighbors, grouped=self.groups is not None)
        if self.statistic in ("variance", "covariance") and goal.neighbors == "replace_one":
            positive_int("the number of records", state.rows, _MOST_OF_SQUARES)
        keys = self._keys
        if self.statistic in _OF_BINS:
            _, bins = read_bins([], self.edges, self.categories)
            shape = 1 if keys is None else len(keys), len(bins) - (self.categories is None)
            require_shapes(state, {"counts": shape})
            counts = state.sums["counts"]
            if self.statistic == "top_k":
                choices = positive_int("k", k, len(bins))
                return choose_largest(counts[0], bins, choices, goal, n=state.rows)
            return release_counts(counts, bins, keys, goal, n=state.rows)
        public = self._settle(None if names is None else tuple(names), width or 1, state.rows)
        none = None if keys is None else Groups(keys, np.empty(0, np.int64))
        grid = grid or Grid(
            public.bounds, settle_points(self.steps, public.bounds, [False] * public.width)
        )
        zeros, tallies = self._add_up(np.empty((0, public.width)), public, grid, none)
        require_shapes(state, {name: values.shape for name, values in zeros.items()}, tallies)
        if self.statistic == "quantiles":
            choice = Choice(levels, self.steps, interval)
            plan = plan_quantiles(choice, grid, keys, goal, n=state.rows)
            return plan.release(self._untally(state, grid), public.names, keys)
        if self.statistic == "distribution":
            counted = self._untally(state, grid)
            return release_distributions(counted, grid, public.names, keys, goal, n=state.rows)
        sums = state.sums["sums"]
        if self.statistic == "covariance":
            return release_products(sums, public, goal)
        return release_sums(self.statistic, _MOMENTS[self.statistic](public), sums, public, goal)

    # The settings --------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"statistics.{self.statistic}"

    @property
    def _keys(self) -> tuple[Any, ...] | None:
        members = None if self.groups is None else read_members([], self.groups, 0)
        return None if members is None else members.keys

    def _settle(self, names: tuple[str, ...] | None, width: int, n: int) -> PublicColumns:
        if (names, width) not in self._bounds:
            ends: tuple[Any, Any] = (0, 1) if self.statistic == "count" else (self.low, self.high)
            self._bounds[names, width] = read_bounds(*ends, names, width)
        bounds = self._bounds[names, width]
        return settle_columns(names, bounds, self._keys, self.neighbors, n)

    @cached_property
    def _bounds(self) -> dict[tuple[tuple[str, ...] | None, int], Bounds]:
        """Bounds that were read once, for a block of records may be short."""
        return {}

    def _describe(
        self, names: list[str] | None, width: int | None = None, grid: Grid | None = None
    ) -> dict[str, str]:
        # Names are read back from a state, and stand there in full.
        settings = {**self._settings, "columns": json.dumps(width if names is None else names)}
        if self.statistic in _OF_POINTS and grid is not None:
            settings["steps"] = json.dumps(grid.points)
        return settings

    @cached_property
    def _settings(self) -> dict[str, str]:
        listed = {name: _list(getattr(self, name)) for name in ("edges", "categories", "groups")}
        ends = {name: _plain(getattr(self, name)) for name in ("low", "high")}
        return describe_settings(
            **ends, **listed, neighbors=self.neighbors, read=self._read_column, by=self.by
        )

    @property
    def _read_column(self) -> str | None:
        """The one column of tables that is read as a vector, which then has no name."""
        if self.columns is None or isinstance(self.columns, str):
            return self.columns
        return str(self.columns[0]) if self.statistic in _OF_BINS and len(self.columns) else None

    def _read_names(self, state: State) -> tuple[list[str] | None, int | None]:
        """The names of the columns of a state, if they have any, and their number."""
        columns = None
        # A text that fold did not write is refused as another setting.
        with suppress(ValueError, RecursionError):
            columns = json.loads(state.settings.get("columns", "null"))
        if isinstance(columns, list) and all(isinstance(name, str) for name in columns):
            return columns, len(columns)
        if type(columns) is not int:
            return None, None
        sums = state.sums.get("sums", np.empty(0))
        pairs = columns * (columns + 1) // 2 if self.statistic == "covariance" else 0
        if not 1 <= columns <= _MOST_COLUMNS or pairs > sums.size:
            refuse("columns", columns, "a state must be made by this job")
        return None, columns

    def _read_grid(self, state: State, names: list[str] | None, width: int | None) -> Grid | None:
        """The grid of a state of quantiles: that of whole numbers, or the usual one."""
        if self.statistic not in _OF_POINTS or width is None:
            return None
        public = self._settle(None if names is None else tuple(names), width, state.rows)
        grids = [self._settle_points(public.bounds, [kind] * width) for kind in (True, False)]
        points = None
        with suppress(ValueError, RecursionError):
            points = json.loads(state.settings.get("steps", "null"))
        if not isinstance(points, list) or len(points) != width:
            return Grid(public.bounds, grids[1])
        whole = [point == integers for point, integers in zip(points, grids[0], strict=True)]
        return Grid(public.bounds, self._settle_points(public.bounds, whole))

    def _settle_points(self, bounds: Bounds, whole: Sequence[bool]) -> tuple[int, ...]:
        if self.statistic == "distribution":
            return settle_points(self.steps, bounds, whole, USUAL_CELLS, MOST_CELLS)
        return settle_points(self.steps, bounds, whole)

    # Records -------------------------------------------------------------------------------------

    def _choose(self, values: Any, by: Any) -> tuple[Any, Any]:
        """The columns of a table that this job reads, and that of its groups."""
        if self.columns is None and self.by is None and not isinstance(values, Table):
            return values, by
        table = take_columns("values", values, None)
        if self.by is not None:
            by = _entries_of(table.column(self.by))
        if isinstance(self.columns, str):
            return self._entries(table.column(self.columns)), by
        names = self.columns
        if names is None:
            names = [name for name in table.columns if name != self.by]
        if self.statistic in _OF_BINS:
            if len(names) != 1:
                refuse("columns", names, f"a {self.statistic} takes one column")
            return self._entries(table.column(names[0])), by
        whole = self.statistic in _OF_POINTS
        columns = {name: table.column(name) for name in names}
        return {name: numbers_of(column, whole=whole) for name, column in columns.items()}, by

    def _entries(self, column: Column) -> Any:
        if self.categories is None:
            return column.row_numbers()
        return _entries_of(column)

    def _add_up(
        self, rows: NDArray[Any], public: PublicColumns, grid: Grid, members: Groups | None
    ) -> tuple[dict[str, Any], dict[str, Tally]]:
        if self.statistic == "covariance":
            return {"sums": add_products(rows, public, members)}, {}
        if self.statistic in _MOMENTS:
            moment = _MOMENTS[self.statistic](public)
            return {"sums": add_up(rows, moment.count, members)}, {}
        counted = count_points(rows, grid, members)
        each = [one for columns in counted for one in columns]
        lengths = [points + 1 for points in grid.points] * len(counted)
        return {}, {"points": Tally.join(each, lengths)}

    def _untally(self, state: State, grid: Grid) -> Sequence[Sequence[Tally]]:
        """How many records stand at the points of each column of each group."""
        tally, groups = state.tallies["points"], 1 if self._keys is None else len(self._keys)
        starts = [0, *itertools.accumulate(points + 1 for points in groups * grid.points)]
        ends = np.searchsorted(tally.places, starts)
        each = [
            Tally(tally.places[start:stop] - first, tally.values[start:stop])
            for first, (start, stop) in zip(starts, itertools.pairwise(ends), strict=False)
        ]
        width = len(grid.points)
        return [each[start : start + width] for start in range(0, groups * width, width)]


def numbers_of(column: Column, *, whole: bool) -> NDArray[Any]:
    """The numbers of a column, in floats.

    whole: keeps integers where the type of the column, which is public, has no other values; a type
    that lets an integer be missing makes floats, whether one is missing or not.
    """
    if whole and isinstance(column, NumberColumn) and column.holds_integers:
        return column.values if column.missing is None else column.row_numbers()
    return column.row_numbers()


def _plain(bound: Any) -> Any:
    """A bound as it is compared: 0 and 0.0 are one."""
    if isinstance(bound, Mapping):
        return {str(name): float(end) for name, end in sorted(bound.items())}
    return None if bound is None else np.asarray(bound, np.float64).tolist()


def _list(keys: Any) -> list[Any] | None:
    """Keys or bins as they are compared: a list, a tuple and an array are one setting."""
    if keys is None:
        return None
    return np.asarray(keys).tolist() if isinstance(keys, np.ndarray) else list(keys)


def _entries_of(column: Column) -> Any:
    """The entries of a column of a table: numbers, or texts."""
    if isinstance(column, NumberColumn):
        return column.row_numbers()
    return np.array(column.texts, object)[column.codes]
