"""Parts of the records, each read where it is used, and folds over all of them."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._support.feature_names import names_of
from .._support.parallel import count_workers, run_jobs, runs_alone
from .._support.validate import function, list_texts, positive_int, refuse
from ..exceptions import ParameterError, ShapeError
from .columns import Column, NumberColumn
from .frames import take_columns
from .persons import PartOwners, Persons, bound_parts, check_rows, mark_ids, read_owners
from .sources import Part, Reading, choose_columns, parts_of
from .states import State, Total
from .table import Table

T = TypeVar("T")

_Take = Callable[[Any], tuple[tuple[Any, ...], tuple[str, ...] | None]]

_MOST_WORKERS = 1 << 16


class Chunks:
    """Records in parts that need not fit into memory together.

    What takes an array takes Chunks in its place: it folds each part to exact integers, where the
    part is read, adds them up and draws noise once. The bits of the result are those of one array
    of all the records, whatever the parts and their order are.

    Args:
        source: What holds the records. A path of a .npy, .npz, .csv, .tsv, .txt, .parquet, .arrow
            or .feather file, a folder of such files, but of none whose name or folder begins with a
            dot or _, a pattern such as "parts/*.parquet", where links lead to no file twice; a
            Dataset or a RecordBatchReader of pyarrow, the latter for a single pass; a LazyFrame of
            polars; a frame of dask, ray or Spark. Or a list of such, in which arrays, frames, pairs
            (X, y) and functions without arguments that return any of these stand as well: a
            function is called where its part is read.
        columns: The columns to read of tables; None reads all.
        label: The column of tables that holds labels. Blocks are then pairs of an array of the
            other columns and their labels, where a job takes X and y; all parts must have these
            columns in the same order, unless `columns` names them.
        delimiter: One character between the values of files of text; None as read_table takes it.
        ids: The column of tables that says whose row it is, which no job learns from. What a job
            releases is then for people, whose rows may lie in several parts, under the relation
            "replace_person" or "add_remove_person". A job that takes rows alone refuses the parts.
            All parts must hold numbers there, or all texts, as files of text do.
        rows_per_person: The most rows of a person that are used, the others being left out, as
            data.bound_rows of all ids says; public. Only with ids.
        workers: How many parts are read at a time, by joblib (the extra `hdp-fast[parallel]`): by
            processes of this machine, or where joblib.parallel_config says. None reads them one
            after the other, unless that says otherwise.

    Raises:
        ParameterError: source is none of these, or holds nothing.

    Cost:
        A block of `2**20` numbers, or of `2**16` rows of a wide table, in memory at a time for each
        worker; a .npz file as a whole. With ids a pass before all others, the ids of all rows, and
        about a hundred bytes a row while rows are chosen.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import Chunks
        >>> from hdp_fast.learners import FeatureMap, SufficientStatistics
        >>> for day in (1, 2):
        ...     np.savez(f"day{day}.npz", x=np.arange(100) / 100, y=np.arange(100) % 2)
        >>> job = SufficientStatistics(FeatureMap.identity(1), classes=[0, 1])
        >>> chunks = Chunks("day*.npz", label="y")
        >>> chunks
        <Chunks of 2 parts>
        >>> job.release(chunks, epsilon=1.0, delta=1e-6).n
        200
    """

    def __init__(
        self,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        label: str | None = None,
        delimiter: str | None = None,
        ids: str | None = None,
        rows_per_person: int = 1,
        workers: int | None = None,
    ) -> None:
        """Look at the source, and read nothing of it but the names of files."""
        self._columns = None if columns is None else list_texts("columns", columns)
        self._label = None if label is None else list_texts("label", [label])[0]
        self._ids = None if ids is None else list_texts("ids", [ids])[0]
        self._most = check_rows(rows_per_person)
        if self._ids is None and self._most > 1:
            refuse("rows_per_person", self._most, "ids must name the column of whose row it is")
        if self._ids is not None and self._ids in (self._label, *(self._columns or ())):
            refuse("ids", self._ids, "it must be none of the columns of X, and not the label")
        self._kept: list[_Kept] | None = None
        if self._label is not None and self._label in (self._columns or ()):
            refuse("label", label, "it must be none of columns, which would tell it")
        self._workers = None if workers is None else positive_int("workers", workers, _MOST_WORKERS)
        self._rows: int | None = None
        self._whole = False
        self._make: Callable[..., tuple[Any, ...]] | None = None
        self._parts = tuple(parts_of(source, Reading(self._reads, delimiter)))
        if not self._parts:
            refuse("source", source, "there must be one part at least")

    def __repr__(self) -> str:
        """How many parts there are."""
        return f"<Chunks of {len(self._parts):,} part{'s' * (len(self._parts) != 1)}>"

    def __len__(self) -> int:
        """The number of parts."""
        return len(self._parts)

    @property
    def names(self) -> tuple[str | None, ...]:
        """What the parts are called: files by their paths, and nothing else."""
        return tuple(part.name for part in self._parts)

    @property
    def _reads(self) -> list[str] | None:
        if self._columns is None:
            return None
        return [*self._columns, *(name for name in (self._label, self._ids) if name is not None)]

    def count(self) -> int:
        """Counts the records, by a pass over them, once.

        Returns:
            The number of rows of all parts.

        Raises:
            Exception: As in fold.
        """
        if self._rows is None:
            self._rows = sum(self.map(_count_rows))
        return self._rows

    def map_blocks(self, task: Callable[[tuple[Any, ...]], Iterable[T]]) -> Iterator[T]:
        """Runs a task on each block that has a row, where its part is read.

        Args:
            task: Called with a block, a tuple (X, y) or (table,); it makes any number of results.

        Returns:
            An iterator of all results. Those of a block are made when they are asked for, or where
            workers read, those of a part at once.

        Raises:
            Exception: As in fold.
        """
        function("task", task)
        if self._workers in (None, 1) and runs_alone():
            for block in self.read_in_order():
                yield from task(block)
        else:
            for results in self.map(partial(_list_results, task)):
                yield from results

    def read_in_order(self) -> Iterator[tuple[Any, ...]]:
        """Reads the blocks that have a row one after the other, in this process.

        Returns:
            An iterator of the blocks, tuples (X, y) or (table,), in the order of the parts.

        Raises:
            Exception: As in fold.
        """
        orders: set[tuple[str, ...]] = set()
        for pair in self._pairs():
            for block in filter(count_rows, _read_part(self._take, *pair, orders)):
                _check_orders(orders)
                yield block

    def with_tables(self) -> Chunks:
        """Makes the same chunks, whose blocks have a Table beside labels, and no array.

        Returns:
            Chunks of the same parts.
        """
        other = copy.copy(self)
        other._whole = True
        return other

    def require_passes(self, why: str = "this job needs more passes") -> None:
        """Refuses parts that can be read a single time, for a job that needs several passes.

        Args:
            why: What needs more passes, in words.

        Raises:
            ParameterError: There is such a part. Nothing of it was read.
        """
        if any(part.head is not None for part in self._parts):
            rule = f"{why}: pass a Dataset, or files"
            raise ParameterError(f"source is a RecordBatchReader, which is read once, but {rule}")

    def with_blocks(self, make: Callable[..., tuple[Any, ...]]) -> Chunks:
        """Makes the same chunks, whose blocks a function makes of theirs, where parts are read.

        Args:
            make: Called with X and y, or with a table alone, of a block that has a row; it returns
                what a fold is to be called with, a row for each row. It must be public, and alike
                for all blocks.

        Returns:
            Chunks of the same parts.

        Raises:
            ParameterError: make cannot be called.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.data import Chunks
            >>> chunks = Chunks([np.ones((5, 3))]).with_blocks(lambda X: (X[:, :2], X[:, 2]))
            >>> [part.shape for part in chunks.first()]
            [(5, 2), (5,)]
        """
        other = copy.copy(self)
        other._make = function("make", make)
        return other

    def peek(self) -> Any:
        """Reads the first block that has a row, by which columns are known.

        Returns:
            A table, a frame or an array; without rows where a part can be read a single time, or
            where no block has one.

        Raises:
            ShapeError: There is none.
            Exception: As in fold.
        """
        empty = None
        for part in self._parts:
            blocks = part.open() if part.head is None else [part.head()]
            for block in blocks:
                if part.head is not None or count_rows(block):
                    return block
                empty = block if empty is None else empty
        if empty is None:
            raise _no_row()
        return empty

    def first(self) -> tuple[Any, ...]:
        """Reads the first block that has a row, as a fold is called with it.

        Returns:
            (X, y) or (table,); without rows where a part can be read a single time.

        Raises:
            ShapeError: There is none.
            Exception: As in fold.
        """
        return self._take(self.peek())[0]

    def columns(self) -> tuple[str, ...] | None:
        """Reads what the columns of X are called, of the first block that has a row.

        Returns:
            The names in the order of the columns; None where they have none, as those of arrays.

        Raises:
            ShapeError: There is no block.
            Exception: As in fold.
        """
        block, order = self._take(self.peek())
        converted = order is None or self._make is not None
        return names_of(block[0]) if converted else order

    def require_rows(self) -> None:
        """Refuses parts that say whose row each one is, for a job that protects rows alone.

        Raises:
            ParameterError: They name a column of ids. Nothing was read.
        """
        if self._ids is not None:
            people = "statistics, learners.CenteredLinear and SufficientStatistics protect people"
            rows = "data.bound_rows says which rows of one table to keep"
            rule = f"this job protects rows and not people: {people} of parts, {rows}"
            raise ParameterError(f"ids = {self._ids!r} of Chunks, but {rule}")

    def of_people(self) -> tuple[Chunks, Persons]:
        """Reads whose row each one is, and chooses those that are used, by a pass over the parts.

        A job that protects people folds the parts that are returned, and shares its price among the
        rows of a person as these persons say.

        Returns:
            The parts without the rows that are left out, and the persons. Without ids the parts
            themselves, where each row is protected.

        Raises:
            ShapeError: The parts hold no row.
            ParameterError: A part has no column of that name, or one has numbers there and another
                one texts; or, when the parts are read again, their ids are others than before, or
                in another order.
            Exception: As in fold.
        """
        if self._ids is None:
            return self, Persons()
        bare = copy.copy(self)
        bare._ids, bare._label, bare._columns = None, None, None
        owners = bare.gather(partial(_read_owners, ids=self._ids))
        persons, keeps = bound_parts(owners, self._most)
        bounded = copy.copy(self)
        bounded._kept = [
            _Kept(keep, part.digest, self._ids) for keep, part in zip(keeps, owners, strict=True)
        ]
        bounded._rows = sum(int(keep.sum()) for keep in keeps)
        return bounded, persons

    def fold(self, fold: Callable[..., State], *, numbers: Collection[str] = ()) -> State:
        """Adds up the states of all parts.

        Args:
            fold: Makes the state of a block, such as the `fold` of a job. It is called with X and
                y, or with a table alone; and where workers are processes, there.
            numbers: Names of columns of which `fold` takes the numbers and never the texts. Files
                of text are then read in less time.

        Returns:
            The state of all parts, which has the names of those that are files. A part whose worker
            died is read again, and counts once; one without rows is folded where all are.

        Raises:
            ParameterError: A part cannot be read, two have one name, or parts are read by a label
                alone and differ in their columns or in the order of these.
            ShapeError: The parts do not even hold a block without rows.
            ImportError: workers are asked for, and joblib is missing.
            Exception: What `fold` raises, and what kills more than three workers in a row.
        """
        total = Total()
        empty: tuple[Any, ...] | None = None
        task = partial(_fold_blocks, function("fold", fold))
        names = frozenset(list_texts("numbers", numbers))
        for _, (state, block) in self._run(task, numbers=names):
            empty = block if empty is None else empty
            if state is not None:
                total.add(state)
        whole = total.sum()
        # That there are none must not show where their number is private.
        if whole is None and empty is not None:
            whole = fold(*empty)
        if whole is None:
            raise _no_row()
        self._rows = whole.rows
        return whole

    def _require_each_once(self) -> None:
        """Refuses one file as two parts, whatever ways lead to it."""
        seen: set[Any] = set()
        for name in filter(None, self.names):
            place = _place_of(name)
            if place in seen:
                raise ParameterError(f"the part {name!r} is there twice, but it must count once")
            seen.add(place)

    def map(self, task: Callable[[Iterable[tuple[Any, ...]], str | None], T]) -> Iterator[T]:
        """Runs a task on each part, where the part is read.

        Args:
            task: Called with the blocks of a part, tuples (X, y) or (table,), and its name.

        Returns:
            An iterator of the results, in the order in which they are done.

        Raises:
            Exception: As in fold.
        """
        return (result for _, result in self._run(function("task", task)))

    def gather(self, task: Callable[..., T], *further: Sequence[Any]) -> list[T]:
        """Runs a task on each part, as map does, and puts the results in the order of the parts.

        Args:
            task: As in map.
            further: Sequences of an entry for each part, with which the task is called, too.

        Returns:
            The result of each part.

        Raises:
            ParameterError: A sequence has another length.
            Exception: As in fold.
        """
        if any(len(entries) != len(self) for entries in further):
            rule = f"each must have one for each of the {len(self):,} parts"
            raise ParameterError(f"further has {[*map(len, further)]} entries, but {rule}")
        results = dict(self._run(function("task", task), *further))
        return [results[place] for place in range(len(self))]

    def map_runs(
        self, task: Callable[[Iterator[tuple[Any, ...]]], T], *further: Sequence[Any]
    ) -> Iterator[T]:
        """Runs a task on runs of parts that follow one another, one run for each worker.

        It serves tasks whose result is so costly that it should not be made of each part.

        Args:
            task: Called with an iterator of the parts of a run, which it uses up: tuples of the
                blocks of a part, its name, and its entries of `further`.
            further: Sequences of an entry for each part.

        Returns:
            An iterator of the results, in the order in which they are done: one, where parts are
            read one after the other.

        Raises:
            Exception: As in fold.
        """
        function("task", task)
        pairs = self._pairs()
        parts = list(zip(pairs, *further, strict=True))
        runs = min(count_workers(self._workers), len(parts))
        ends = [len(parts) * run // runs for run in range(runs + 1)]
        jobs = [partial(_run_parts, task, self._take, parts[a:b]) for a, b in pairwise(ends)]
        return (result for _, result in self._results(jobs))

    def _run(
        self,
        task: Callable[..., T],
        *further: Sequence[Any],
        numbers: frozenset[str] = frozenset(),
    ) -> Iterator[tuple[int, T]]:
        """The place and the result of each part, in the order in which they are done."""
        pairs = self._pairs()
        others = zip(*further, strict=True) if further else [()] * len(pairs)
        jobs = [
            partial(_run_part, partial(_call, task, *rest), self._take, *pair, numbers)
            for pair, rest in zip(pairs, others, strict=True)
        ]
        return self._results(jobs)

    def _results(
        self, jobs: Sequence[Callable[[], tuple[T, set[tuple[str, ...]]]]]
    ) -> Iterator[tuple[int, T]]:
        """The place and the result of each job, if all parts have the same columns."""
        orders: set[tuple[str, ...]] = set()
        with closing(run_jobs(jobs, self._workers)) as results:
            for place, (result, seen) in results:
                orders |= seen
                _check_orders(orders)
                yield place, result

    def _pairs(self) -> list[tuple[Part, _Kept | None]]:
        """The parts, and which of their rows are used."""
        self._require_each_once()
        kept: Sequence[_Kept | None] = [None] * len(self) if self._kept is None else self._kept
        if self._kept is None:
            self.require_rows()
        return list(zip(self._parts, kept, strict=True))

    @property
    def _take(self) -> _Take:
        columns, label, ids = self._columns, self._label, self._ids
        take = partial(_take, columns=columns, label=label, ids=ids, whole=self._whole)
        return take if self._make is None else partial(_take_made, take, self._make)


def fold_all(fold: Callable[..., State], *records: Any) -> State:
    """The state of records, by one fold of arrays, by those of the parts of Chunks, or as it is."""
    first, rest = records[0], records[1:]
    if isinstance(first, Chunks | State):
        if any(other is not None for other in rest):
            raise ParameterError("y was passed beside Chunks or a State, which hold the labels")
        with_labels = fold_labeled if rest else fold_bare
        return first.fold(partial(with_labels, fold)) if isinstance(first, Chunks) else first
    return fold(*records)


def fold_bare(fold: Callable[..., T], *block: Any) -> T:
    """Folds a block of a job that takes no labels; refuses one that has some."""
    if len(block) > 1:
        rule = "this job takes none: Chunks of tables or arrays, without label= and no pairs"
        raise ParameterError(f"the parts have labels beside their records, but {rule}")
    return fold(*block)


def fold_labeled(fold: Callable[..., T], *block: Any) -> T:
    """Folds a block of a job that takes labels; refuses one that has none."""
    if len(block) < 2:
        refuse_unlabeled()
    return fold(*block)


def settle_owners(records: Chunks | State, ids: Any, rows_per_person: int) -> tuple[Any, Persons]:
    """What a job folds, and who owns its rows: those that Chunks name a column of ids for."""
    refuse_owners(ids, rows_per_person)
    return records.of_people() if isinstance(records, Chunks) else (records, Persons())


def refuse_owners(ids: Any, rows_per_person: int) -> None:
    """Refuses persons beside parts: the rows of one person may lie in several of them."""
    if ids is not None or rows_per_person != 1:
        rule = "persons may have rows in several parts: Chunks(ids=) names the column of ids"
        raise ParameterError(f"ids were passed beside Chunks or a State, but {rule}")


def refuse_unlabeled() -> NoReturn:
    """Refuses parts without the labels that a job needs."""
    rule = "they must be pairs (X, y), or tables of which label names the column of labels"
    raise ParameterError(f"the parts have no labels, but {rule}")


def take_bare(records: Any, *labels: Any) -> Any:
    """The table of a block; refuses labels beside it, whose column a schema names already."""
    if labels:
        rule = "the schema names their column: Chunks of tables, without label="
        raise ParameterError(f"the parts have labels beside their tables, but {rule}")
    return records


def _place_of(name: str) -> Any:
    """What two names of one file have in common; what is not here has its name alone."""
    try:
        status = os.stat(name)
    except OSError:
        return os.path.realpath(name)
    return status.st_dev, status.st_ino


def _no_row() -> ShapeError:
    return ShapeError("the parts hold no row, but there must be one at least")


class _Folded(NamedTuple):
    """The state of a part, None of one without rows; and a block of it that has none."""

    state: State | None
    empty: tuple[Any, ...] | None


def _fold_blocks(
    fold: Callable[..., State], blocks: Iterable[tuple[Any, ...]], name: str | None
) -> _Folded:
    total = Total()
    empty: tuple[Any, ...] | None = None
    for block in blocks:
        if count_rows(block[0]):
            total.add(fold(*block))
        elif empty is None:
            empty = block
    whole = total.sum()
    named = whole if whole is None or name is None else whole.named(name)
    return _Folded(named, None if named is not None else empty)


def _count_rows(blocks: Iterable[tuple[Any, ...]], name: str | None) -> int:
    return sum(count_rows(block[0]) for block in blocks)


def _list_results(
    task: Callable[[tuple[Any, ...]], Iterable[T]], blocks: Iterable[tuple[Any, ...]], _: Any
) -> list[T]:
    return [result for block in blocks if count_rows(block) for result in task(block)]


def count_rows(records: Any) -> int:
    """The number of rows of a table, a frame, a dict of columns or an array."""
    if isinstance(records, tuple):
        return count_rows(records[0])
    if isinstance(records, Table):
        return records.rows
    if isinstance(records, Mapping):
        return max((len(column) for column in records.values()), default=0)
    rows = getattr(records, "num_rows", None)
    return len(records) if rows is None else int(rows)


class _Kept(NamedTuple):
    """Which rows of a part are used.

    Attributes:
        keep: Whether each row is.
        digest: The digest of the ids by which they were chosen.
        ids: The column of ids.
    """

    keep: NDArray[np.bool_]
    digest: bytes
    ids: str

    def select(self, blocks: Iterable[Any]) -> Iterator[Table]:
        """The rows of a part that are used, checked to be those that were chosen."""
        digest, start = hashlib.sha256(), 0
        for block in blocks:
            table = take_columns("a part", block, None)
            digest.update(mark_ids(table.column(self.ids)))
            some = self.keep[start : start + table.rows]
            start += table.rows
            if len(some) == table.rows:
                yield table.select(some)
        # A part that is shuffled meanwhile would have other rows left out than were chosen.
        if digest.digest() != self.digest:
            rule = "they must be the same in every pass, and in the same order"
            raise ParameterError(f"ids of a part have changed since they were read, but {rule}")


def _read_owners(blocks: Iterable[tuple[Any, ...]], name: str | None, *, ids: str) -> PartOwners:
    return read_owners(_column_of(*block, ids=ids) for block in blocks)


def _column_of(block: Any, *labels: Any, ids: str) -> Column:
    if labels:
        refuse("ids", ids, "parts must be tables: pairs (X, y) have no column of ids")
    return take_columns("a part", block, None).column(ids)


def _call(task: Callable[..., T], *rest: Any) -> T:
    """Calls a task with what a part is read by, which comes last here, and then with all else."""
    *further, blocks, name = rest
    return task(blocks, name, *further)


def _run_part(
    task: Callable[[Iterable[tuple[Any, ...]], str | None], T],
    take: _Take,
    part: Part,
    kept: _Kept | None,
    numbers: frozenset[str],
) -> tuple[T, set[tuple[str, ...]]]:
    """The result of a task on a part, and the columns of its arrays, as often as they differ."""
    orders: set[tuple[str, ...]] = set()
    return task(_read_part(take, part, kept, orders, numbers), part.name), orders


def _run_parts(
    task: Callable[[Iterator[tuple[Any, ...]]], T], take: _Take, parts: Sequence[tuple[Any, ...]]
) -> tuple[T, set[tuple[str, ...]]]:
    """The same of a task on some parts, and what is said of each."""
    orders: set[tuple[str, ...]] = set()
    read = (
        (_read_part(take, part, kept, orders), part.name, *rest) for (part, kept), *rest in parts
    )
    return task(read), orders


def _read_part(
    take: _Take,
    part: Part,
    kept: _Kept | None,
    orders: set[tuple[str, ...]],
    numbers: frozenset[str] = frozenset(),
) -> Iterator[tuple[Any, ...]]:
    """The blocks of a part as a fold is called with them; `orders` gets their columns."""
    # Whose rows they are is told by texts.
    blocks = part.open(numbers) if kept is None else kept.select(part.open(numbers - {kept.ids}))
    for block in blocks:
        taken, order = take(block)
        if order is not None and count_rows(taken):
            orders.add(order)
        yield taken


def _check_orders(orders: set[tuple[str, ...]]) -> None:
    """Refuses parts whose columns would be added up as one another's."""
    if len(orders) > 1:
        rule = "all must have the same ones in the same order: columns= says which"
        raise ParameterError(f"parts have different columns, or in other orders, but {rule}")


def _take_made(
    take: _Take, make: Callable[..., tuple[Any, ...]], block: Any
) -> tuple[tuple[Any, ...], tuple[str, ...] | None]:
    """What a caller's function makes of a block as it would be folded."""
    taken, order = take(block)
    return (make(*taken) if count_rows(taken) else taken), order


def _take(
    block: Any, *, columns: list[str] | None, label: str | None, ids: str | None, whole: bool
) -> tuple[tuple[Any, ...], tuple[str, ...] | None]:
    """What a fold is called with: (X, y), or a table or an array alone.

    With it come the columns that X was made of, where it has lost its names.

    whole: whether X is a table where the block is one, and no array of numbers.
    """
    if isinstance(block, tuple):
        return block, None
    if label is None and ids is None:
        return (block,), None
    table = take_columns("a part", block, None)
    others = [name for name in table.columns if name not in (label, ids)]
    names = others if columns is None else columns
    if label is None:
        return (choose_columns(table, names),), None
    labels = _values_of(table.column(label))
    if whole:
        return (choose_columns(table, names), labels), tuple(names)
    columns_of_x = [table.column(name).row_numbers() for name in names]
    X = np.stack(columns_of_x, axis=1) if names else np.empty((table.rows, 0))
    return (X, labels), tuple(names)


def _values_of(column: Column) -> NDArray[Any]:
    """The labels in a column: numbers, or texts where the column's type is that of texts."""
    if isinstance(column, NumberColumn):
        return column.row_numbers()
    return np.array(column.texts, dtype=str)[column.codes]
