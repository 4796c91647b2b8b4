"""What holds records in parts: files, folders, frames of other libraries, functions."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._support.validate import refuse
from ..exceptions import ParameterError, ShapeError
from .columns import Column, NumberColumn, encode
from .delimited import TEXTS, delimiter_of, read_text_blocks
from .frames import take_columns
from .reading import check_stored, map_array
from .table import BLOCK_ROWS, Table, read_archive, read_batches

# Numbers of an array that are read at a time: 8 MB of floats.
_BLOCK_CELLS = 1 << 20
_BATCHED = (".parquet", ".arrow", ".feather")
_ARRAYS = (".npy", ".npz")
_READ = (*_BATCHED, *_ARRAYS, *TEXTS, *(f"{text}.gz" for text in TEXTS))
_FORMS = (
    "a path, a folder, a pattern, a pyarrow Dataset or RecordBatchReader, a polars LazyFrame, "
    "a dask, ray or Spark frame, or a list of these, of arrays, frames, pairs (X, y) or functions"
)


@dataclass(frozen=True)
class Part:
    """One part of the records.

    Attributes:
        name: What it is called in states, None for one that has no name.
        opener: Reads it, block by block; it is called with `how`, where there is that.
        head: Makes a block without rows, of one that can be read a single time.
        how: How its tables are read; None where another library reads them.
    """

    name: str | None
    opener: Callable[..., Iterable[Any]]
    head: Callable[[], Any] | None = None
    how: Reading | None = None

    def open(self, numbers: frozenset[str] = frozenset()) -> Iterable[Any]:
        """Reads it, block by block, as often as it is called.

        numbers: columns of texts of which only numbers are taken, which take less time so.
        """
        if self.how is None:
            return self.opener()
        return self.opener(self.how._replace(numbers=numbers))


class Reading(NamedTuple):
    """How tables are read."""

    columns: list[str] | None
    delimiter: str | None = None
    numbers: frozenset[str] = frozenset()


def parts_of(source: Any, how: Reading) -> Iterator[Part]:
    """The parts that a source holds."""
    if isinstance(source, str | os.PathLike):
        for path in _find_files(source):
            yield Part(str(path), partial(_read_file, path), how=how)
    elif isinstance(source, list):
        for entry in source:
            yield from parts_of(entry, how) if _holds_parts(entry) else [_single(entry, how)]
    elif callable(getattr(source, "get_fragments", None)):
        for fragment in source.get_fragments():
            # With the schema of all, in which the names of folders may be columns.
            scan = partial(_scan, fragment, source.schema, how.columns)
            yield Part(getattr(fragment, "path", None), scan)
    elif _library_of(source) in _LAZY and (read := _LAZY[_library_of(source)](source, how.columns)):
        yield from read
    elif callable(source) or isinstance(source, tuple):
        yield _single(source, how)
    else:
        refuse("source", type(source).__name__, f"it must be {_FORMS}")


def _holds_parts(entry: Any) -> bool:
    kinds = (str, os.PathLike, list)
    lazy = _library_of(entry) in _LAZY and bool(_LAZY[_library_of(entry)](entry, None))
    return isinstance(entry, kinds) or callable(getattr(entry, "get_fragments", None)) or lazy


def _single(entry: Any, how: Reading) -> Part:
    kinds = (Table, tuple, Mapping)
    if not (isinstance(entry, kinds) or callable(entry) or hasattr(entry, "shape")):
        refuse("source", type(entry).__name__, f"it must be {_FORMS}")
    return Part(None, partial(_open_single, entry), how=how)


def _open_single(entry: Any, how: Reading) -> Iterator[Any]:
    block = entry() if callable(entry) else entry
    if isinstance(block, str | os.PathLike):
        for part in parts_of(block, how):
            yield from part.open(how.numbers)
        return
    for one in block if hasattr(block, "__next__") else (block,):
        whole = how.columns is None or isinstance(one, tuple | np.ndarray)
        yield (
            one if whole else choose_columns(take_columns("a part", one, how.columns), how.columns)
        )


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


def _read_file(path: Path, how: Reading) -> Iterator[Any]:
    columns, suffix = how.columns, path.suffix.lower()
    if suffix == ".npy":
        yield from _read_array(path)
    elif suffix == ".npz":
        yield choose_columns(read_archive(path), columns)
    elif suffix in _BATCHED:
        yield from read_batches(path, columns)
    else:
        name = str(path)
        for block in read_text_blocks(path, delimiter_of(path, how.delimiter), how.numbers):
            rows = next(iter(block.values())).rows
            yield choose_columns(Table(block, rows, name), columns)


def choose_columns(table: Table, columns: list[str] | None) -> Table:
    """The table of some of its columns, in this order; None takes all."""
    if columns is None:
        return table
    some = {name: table.column(name) for name in columns}
    return Table(some, table.rows, table.name, table.public)


def _read_array(path: Path) -> Iterator[NDArray[Any]]:
    mapped = map_array(path)
    if not mapped.ndim:
        raise ShapeError(f"{path} holds one number, but it must hold rows")
    shape, width = mapped.shape, max(mapped[:1].size, 1)
    check_stored(mapped if not mapped.nbytes else mapped[:0], str(path))
    step = max(_BLOCK_CELLS // width, 1)
    for start in range(0, max(shape[0], 1), step):
        # Mapped again, for what was looked at stays in memory as long as it is mapped.
        mapped = map_array(path)
        if mapped.shape != shape:
            raise ShapeError(f"{path} changed while it was read, but its shape must stay")
        yield check_stored(np.array(mapped[start : start + step]), str(path))


def _scan(fragment: Any, schema: Any, columns: list[str] | None) -> Iterator[Any]:
    """The batches of a part of a Dataset of pyarrow."""
    yield _select(schema.empty_table(), columns)
    yield from fragment.to_batches(schema=schema, columns=columns, batch_size=BLOCK_ROWS)


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


def _select(table: Any, columns: list[str] | None) -> Any:
    return table if columns is None else table.select(columns)


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
        yield _select(reader.schema.empty_table(), self._columns)
        for batch in reader:
            yield _select(batch, self._columns)


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
    # Arrays of dask are in parts, too, but not of whole rows.
    if not (callable(getattr(source, "to_delayed", None)) and hasattr(source, "columns")):
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


# By the names of Spark's own types.
_SPARK_NUMBERS: dict[str, type] = {
    **{"boolean": np.bool_, "tinyint": np.int8, "smallint": np.int16, "int": np.int32},
    **{"bigint": np.int64, "float": np.float32, "double": np.float64},
}


def _parts_of_spark(source: Any, columns: list[str] | None) -> list[Part]:
    if not callable(getattr(source, "toLocalIterator", None)):
        return []
    chosen = source if columns is None else source.select(columns)
    return [Part(None, partial(_stream_rows, chosen))]


def _stream_rows(frame: Any) -> Iterator[Any]:
    """The rows of a Spark frame, which pass through this process, a block at a time."""
    rows = iter(frame.toLocalIterator(prefetchPartitions=True))
    while block := list(itertools.islice(rows, BLOCK_ROWS)):
        typed = zip(zip(*block, strict=True), frame.dtypes, strict=True)
        columns = {name: _make_spark_column(values, kind) for values, (name, kind) in typed}
        yield Table(columns, len(block), "a Spark frame")


def _make_spark_column(values: tuple[Any, ...], kind: str) -> Column:
    """A column of the declared type, whatever the values are."""
    if kind not in _SPARK_NUMBERS:
        return encode(values)
    missing = np.array([value is None for value in values])
    filled: NDArray[Any] = np.zeros(len(values), _SPARK_NUMBERS[kind])
    filled[~missing] = [value for value in values if value is not None]
    return NumberColumn(filled, missing)


_LAZY: dict[str, _Lists] = {
    "pyarrow": _parts_of_arrow,
    "polars": _parts_of_polars,
    "dask": _parts_of_dask,
    "dask_expr": _parts_of_dask,
    "ray": _parts_of_ray,
    "pyspark": _parts_of_spark,
}
