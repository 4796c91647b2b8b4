"""Parts of the records, each read where it is used, and folds over all of them."""

from __future__ import annotations

import copy
import glob
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._support.validate import function, list_texts, positive_int, refuse
from ..exceptions import ParameterError, ShapeError
from .columns import Column, NumberColumn
from .delimited import TEXTS, delimiter_of, read_text_blocks
from .frames import take_columns
from .reading import open_arrays, read_safely
from .states import State, add_states
from .table import BLOCK_ROWS, Table, read_batches, read_table

T = TypeVar("T")

# Numbers of an array that are read at a time: 8 MB of floats.
_BLOCK_CELLS = 1 << 20
_BATCHED = (".parquet", ".arrow", ".feather")
_ARRAYS = (".npy", ".npz")
_READ = (*_BATCHED, *_ARRAYS, *TEXTS, *(f"{text}.gz" for text in TEXTS))
# Workers that die one after the other, without a part that is done, before a run gives up.
_MOST_DEATHS = 3
_MOST_WORKERS = 1 << 16
_FORMS = (
    "a path, a folder, a pattern, a pyarrow Dataset or RecordBatchReader, a polars LazyFrame, "
    "a dask, ray or Spark frame, or a list of these, of arrays, frames, pairs (X, y) or functions"
)


@dataclass(frozen=True)
class Part:
    """One part of the records.

    Attributes:
        name: What it is called in states, None for one that has no name.
        open: Reads it, block by block, as often as it is called.
        head: Makes a block without rows, of one that can be read a single time.
    """

    name: str | None
    open: Callable[[], Iterable[Any]]
    head: Callable[[], Any] | None = None


class Chunks:
    """Records in parts that need not fit into memory together.

    What takes an array takes Chunks in its place: it folds each part to exact integers, where the
    part is read, adds them up and draws noise once. The bits of the result are those of one array
    of all the records, whatever the parts and their order are.

    Args:
        source: What holds the records. A path of a .npy, .npz, .csv, .tsv, .txt, .parquet, .arrow
            or .feather file, a folder of such files, a pattern such as "parts/*.parquet"; a
            Dataset or a RecordBatchReader of pyarrow, the latter for a single pass; a LazyFrame of
            polars; a frame of dask, ray or Spark. Or a list of such, in which arrays, frames, pairs
            (X, y) and functions without arguments that return any of these stand as well: a
            function is called where its part is read.
        columns: The columns to read of tables; None reads all.
        label: The column of tables that holds labels. Blocks are then pairs of an array of the
            other columns and their labels, where a job takes X and y.
        delimiter: One character between the values of files of text; None as read_table takes it.
        workers: How many parts are read at a time, by joblib (`pip install joblib`): by processes
            of this machine, or where joblib.parallel_config says. None reads them one after the
            other, unless that says otherwise.

    Raises:
        ParameterError: source is none of these, or holds nothing.

    Cost:
        A block of `2**20` numbers, or of `2**16` rows of a table, in memory at a time for each
        worker; a .npz file as a whole.

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
        workers: int | None = None,
    ) -> None:
        """Look at the source, and read nothing of it but the names of files."""
        self._columns = None if columns is None else list_texts("columns", columns)
        self._label = None if label is None else list_texts("label", [label])[0]
        self._workers = None if workers is None else positive_int("workers", workers, _MOST_WORKERS)
        self._rows: int | None = None
        self._whole = False
        self._parts = tuple(_parts_of(source, _Reading(self._reads, delimiter)))
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
    def _taken(self) -> Callable[[Any], tuple[Any, ...]]:
        return partial(_take, columns=self._columns, label=self._label, whole=self._whole)

    @property
    def _reads(self) -> list[str] | None:
        if self._columns is None or self._label is None:
            return self._columns
        return [*self._columns, self._label]

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
        if self._workers in (None, 1) and _is_alone():
            for part in self._parts:
                for block in filter(count_rows, part.open()):
                    yield from task(self._taken(block))
        else:
            for results in self.map(partial(_list_results, task)):
                yield from results

    def with_tables(self) -> Chunks:
        """Makes the same chunks, whose blocks have a Table beside labels, and no array.

        Returns:
            Chunks of the same parts.
        """
        other = copy.copy(self)
        other._whole = True
        return other

    def first(self) -> tuple[Any, ...]:
        """What a fold is called with for the block that peek reads.

        Returns:
            A pair (X, y), or a table or an array alone.

        Raises:
            ShapeError: As in peek.
            Exception: As in fold.
        """
        return self._taken(self.peek())

    def peek(self) -> Any:
        """Reads the first block that has a row, by which columns are known.

        Returns:
            A table, a frame or an array; without rows where a part can be read a single time.

        Raises:
            ShapeError: There is none.
            Exception: As in fold.
        """
        for part in self._parts:
            blocks = part.open() if part.head is None else [part.head()]
            for block in blocks:
                if part.head is not None or count_rows(block):
                    return block
        raise ShapeError("the parts hold no row, but there must be one at least")

    def fold(self, fold: Callable[..., State]) -> State:
        """Adds up the states of all parts.

        Args:
            fold: Makes the state of a block, such as the `fold` of a job. It is called with X and
                y, or with a table alone; and where workers are processes, there.

        Returns:
            The state of all parts, which has the names of those that are files. A part whose worker
            died is read again, and counts once.

        Raises:
            ParameterError: A part cannot be read, or two have one name.
            ImportError: workers are asked for, and joblib is missing.
            Exception: What `fold` raises, and what kills more than three workers in a row.
        """
        states = self.map(partial(_fold_blocks, function("fold", fold)))
        total = add_states(state for state in states if state is not None)
        self._rows = total.rows
        return total

    def map(self, task: Callable[[Iterable[tuple[Any, ...]], str | None], T]) -> Iterator[T]:
        """Runs a task on each part, where the part is read.

        Args:
            task: Called with the blocks of a part, tuples (X, y) or (table,), and its name.

        Returns:
            An iterator of the results, in the order in which they are done.

        Raises:
            Exception: As in fold.
        """
        jobs = [partial(_run_part, task, self._taken, part) for part in self._parts]
        return _run(jobs, self._workers)


def fold_all(fold: Callable[..., State], *records: Any) -> State:
    """The state of records, by one fold of arrays, by those of the parts of Chunks, or as it is."""
    first, rest = records[0], records[1:]
    if isinstance(first, Chunks | State):
        if any(other is not None for other in rest):
            raise ParameterError("y was passed beside Chunks or a State, which hold the labels")
        return first.fold(fold) if isinstance(first, Chunks) else first
    return fold(*records)


def refuse_owners(ids: Any, rows_per_person: int) -> None:
    """Refuses persons beside parts: the rows of one person may lie in several of them."""
    if ids is not None or rows_per_person != 1:
        rule = (
            "persons may have rows in several parts: data.bound_rows of all ids says which to keep"
        )
        raise ParameterError(f"ids were passed beside Chunks or a State, but {rule}")


def _fold_blocks(
    fold: Callable[..., State], blocks: Iterable[tuple[Any, ...]], name: str | None
) -> State | None:
    """The state of a part; None of one without rows."""
    total: State | None = None
    for block in blocks:
        if count_rows(block[0]):
            state = fold(*block)
            total = state if total is None else total + state
    return total if total is None or name is None else total.named(name)


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


def _run_part(
    task: Callable[[Iterable[tuple[Any, ...]], str | None], T],
    take: Callable[[Any], tuple[Any, ...]],
    part: Part,
) -> T:
    return task(map(take, part.open()), part.name)


def _take(
    block: Any, *, columns: list[str] | None, label: str | None, whole: bool
) -> tuple[Any, ...]:
    """What a fold is called with: (X, y), or a table or an array alone.

    whole: whether X is a table where the block is one, and no array of numbers.
    """
    if isinstance(block, tuple):
        return block
    if label is None:
        return (block,)
    table = take_columns("a part", block, None)
    names = [name for name in table.columns if name != label] if columns is None else columns
    labels = _values_of(table.column(label))
    if whole:
        some = {name: table.column(name) for name in names}
        return Table(some, table.rows, table.name, table.public), labels
    return np.stack([table.column(name).row_numbers() for name in names], axis=1), labels


def _values_of(column: Column) -> NDArray[Any]:
    """The labels in a column: numbers, or texts where the column's type is that of texts."""
    if isinstance(column, NumberColumn):
        return column.row_numbers()
    return np.array(column.texts, dtype=str)[column.codes]


# Running tasks -----------------------------------------------------------------------------------


def _run(jobs: Sequence[Callable[[], T]], workers: int | None) -> Iterator[T]:
    """The results of all jobs, each of which counts once, whatever happens to a worker."""
    joblib = _load_joblib(workers)
    left, deaths = dict(enumerate(jobs)), 0
    while left:
        try:
            for place, result in _send(joblib, list(left.items()), workers):
                del left[place]
                deaths = 0
                yield result
        except BrokenProcessPool:
            deaths += 1
            if deaths >= _MOST_DEATHS:
                raise


def _send(
    joblib: Any, jobs: list[tuple[int, Callable[[], T]]], workers: int | None
) -> Iterable[tuple[int, T]]:
    if joblib is None:
        return (_call(*job) for job in jobs)
    options = {} if workers is None else {"n_jobs": workers}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:
        # Some backends return all results at once.
        parallel = joblib.Parallel(**options)
    if parallel.n_jobs == 1:
        return (_call(*job) for job in jobs)
    results: Iterable[tuple[int, T]] = parallel(joblib.delayed(_call)(*job) for job in jobs)
    return results


def _call(place: int, job: Callable[[], T]) -> tuple[int, T]:
    return place, job()


def _is_alone() -> bool:
    """Whether joblib, if it is there, would run parts one after the other."""
    joblib = _load_joblib(None)
    return joblib is None or joblib.Parallel().n_jobs == 1


def _load_joblib(workers: int | None) -> Any:
    try:
        return importlib.import_module("joblib")
    except ImportError as error:
        if workers in (None, 1):
            return None
        raise ImportError(f"workers = {workers} needs joblib: pip install joblib") from error


# Sources -----------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """How tables are read."""

    columns: list[str] | None
    delimiter: str | None = None


def _parts_of(source: Any, how: _Reading) -> Iterator[Part]:
    """The parts that a source holds."""
    if isinstance(source, str | os.PathLike):
        for path in _find_files(source):
            yield Part(str(path), partial(_read_file, path, how))
    elif isinstance(source, list):
        for entry in source:
            yield from _parts_of(entry, how) if _holds_parts(entry) else [_single(entry)]
    elif callable(getattr(source, "get_fragments", None)):
        for fragment in source.get_fragments():
            yield Part(getattr(fragment, "path", None), partial(_scan, fragment, how.columns))
    elif _library_of(source) in _LAZY and (read := _LAZY[_library_of(source)](source, how.columns)):
        yield from read
    elif callable(source) or isinstance(source, tuple):
        yield _single(source)
    else:
        refuse("source", type(source).__name__, f"it must be {_FORMS}")


def _holds_parts(entry: Any) -> bool:
    kinds = (str, os.PathLike, list)
    lazy = _library_of(entry) in _LAZY and bool(_LAZY[_library_of(entry)](entry, None))
    return isinstance(entry, kinds) or callable(getattr(entry, "get_fragments", None)) or lazy


def _single(entry: Any) -> Part:
    kinds = (Table, tuple, Mapping)
    if not (isinstance(entry, kinds) or callable(entry) or hasattr(entry, "shape")):
        refuse("source", type(entry).__name__, f"it must be {_FORMS}")
    return Part(None, partial(_open_single, entry))


def _open_single(entry: Any) -> Iterator[Any]:
    block = entry() if callable(entry) else entry
    if hasattr(block, "__next__"):
        yield from block
    elif isinstance(block, str | os.PathLike):
        for part in _parts_of(block, _Reading(None)):
            yield from part.open()
    else:
        yield block


def _find_files(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.name.lower().endswith(_READ)]
        files = [file for file in files if not _is_hidden(file.relative_to(path))]
    elif path.exists() or not glob.has_magic(str(source)):
        return [path]
    else:
        files = list(map(Path, glob.glob(str(source), recursive=True)))
    # A file that links lead to as well is one part, under its shortest name.
    shortest = sorted(filter(Path.is_file, files), key=lambda file: (len(file.parts), file))
    files = sorted({file.resolve(): file for file in reversed(shortest)}.values())
    if not files:
        refuse("source", str(source), f"it must hold files of {', '.join(_READ)}")
    return files


def _is_hidden(file: Path) -> bool:
    """Whether it is what programs keep beside the parts of a table, or a file of theirs."""
    return any(name[0] in "._" for name in file.parts)


def _read_file(path: Path, how: _Reading) -> Iterator[Any]:
    columns, suffix = how.columns, path.suffix.lower()
    if suffix == ".npy":
        yield from _read_array(path)
    elif suffix == ".npz":
        yield _choose(read_table(path), columns)
    elif suffix in _BATCHED:
        yield from read_batches(path, columns)
    else:
        name = str(path)
        for block in read_text_blocks(path, delimiter_of(path, how.delimiter)):
            rows = next(iter(block.values())).rows
            yield _choose(Table(block, rows, name), columns)


def _choose(table: Table, columns: list[str] | None) -> Table:
    if columns is None:
        return table
    some = {name: table.column(name) for name in columns}
    return Table(some, table.rows, table.name, table.public)


def _read_array(path: Path) -> Iterator[NDArray[Any]]:
    with open_arrays(path, 1 << 62) as loaded:
        pass
    with read_safely(path, ".npy file of plain numbers"):
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
    step = max(_BLOCK_CELLS // max(loaded[0].size, 1), 1) if len(loaded) else 1
    for start in range(0, len(loaded), step):
        yield np.array(loaded[start : start + step])


def _scan(fragment: Any, columns: list[str] | None) -> Iterator[Any]:
    """The batches of a part of a Dataset of pyarrow."""
    for batch in fragment.to_batches(columns=columns, batch_size=BLOCK_ROWS):
        if batch.num_rows:
            yield batch


# Frames of other libraries ------------------------------------------------------------------------


class _Lists(Protocol):
    def __call__(self, source: Any, columns: list[str] | None) -> list[Part]:
        """The parts of a lazy frame; none where the source is something else."""


def _library_of(source: Any) -> str:
    return type(source).__module__.partition(".")[0]


def _parts_of_arrow(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "read_next_batch", None)):
        return []
    return [Part(None, _ReadOnce(source, columns), source.schema.empty_table)]


class _ReadOnce:
    """The batches of a RecordBatchReader, which are there a single time."""

    def __init__(self, reader: Any, columns: list[str] | None) -> None:
        self._reader, self._columns = reader, columns

    def __call__(self) -> Iterator[Any]:
        """Its batches; refused when it is called again."""
        reader, self._reader = self._reader, None
        if reader is None:
            rule = "it is read once, and this job needs more passes: pass a Dataset, or files"
            raise ParameterError(f"source is a RecordBatchReader at its end, but {rule}")
        for batch in reader:
            if batch.num_rows:
                yield batch if self._columns is None else batch.select(self._columns)


def _parts_of_polars(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "collect_schema", None)) or hasattr(source, "to_series"):
        return []
    return [Part(None, partial(_collect, source, columns))]


def _collect(lazy: Any, columns: list[str] | None) -> Iterator[Any]:
    chosen = lazy if columns is None else lazy.select(columns)
    if hasattr(chosen, "collect_batches"):
        yield from chosen.collect_batches(chunk_size=BLOCK_ROWS)
    else:
        yield chosen.collect(engine="streaming")


def _parts_of_dask(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "to_delayed", None)):
        return []
    chosen = source if columns is None else source[columns]
    return [Part(None, partial(_compute, part)) for part in chosen.to_delayed()]


def _compute(part: Any) -> Iterator[Any]:
    yield part.compute()


def _parts_of_ray(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "iter_batches", None)):
        return []
    chosen = source if columns is None else source.select_columns(columns)
    options = {"batch_size": BLOCK_ROWS, "batch_format": "pyarrow"}
    return [Part(None, partial(chosen.iter_batches, **options))]


def _parts_of_spark(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "toLocalIterator", None)):
        return []
    chosen = source if columns is None else source.select(columns)
    return [Part(None, partial(_stream_rows, chosen))]


def _stream_rows(frame: Any) -> Iterator[Any]:
    """The rows of a Spark frame, which pass through this process, a block at a time."""
    names, block = frame.columns, []
    for row in frame.toLocalIterator(prefetchPartitions=True):
        block.append(tuple(row))
        if len(block) == BLOCK_ROWS:
            yield dict(zip(names, map(list, zip(*block, strict=True)), strict=True))
            block = []
    if block:
        yield dict(zip(names, map(list, zip(*block, strict=True)), strict=True))


_LAZY: dict[str, _Lists] = {
    "pyarrow": _parts_of_arrow,
    "polars": _parts_of_polars,
    "dask": _parts_of_dask,
    "dask_expr": _parts_of_dask,
    "ray": _parts_of_ray,
    "pyspark": _parts_of_spark,
}
