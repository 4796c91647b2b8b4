"""Copies of public tables with more columns, written a block of rows at a time."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..data import arrow
from ..data.delimited import TEXTS, delimiter_of, read_text_blocks
from ..data.files import write_atomically
from ..data.reading import read_safely
from ..data.table import BLOCK_ROWS, Table, arrow_columns, load_for, read_table, suffix_of
from ..exceptions import ParameterError, ShapeError
from .tables import Values, append_field, appender, records_of, to_nulls

# From a block of a table to the new columns, in order, by name.
Columns = Callable[[Table], Mapping[str, Values]]


def copy_table(
    path: Path,
    output: Path,
    make: Columns,
    delimiter: str | None = None,
    *,
    may_be_empty: bool = False,
) -> int:
    """Write a copy of a file with the columns that `make` makes, and count its rows.

    All else stays as it is: rows of text keep every byte, columns of Arrow their types. A block of
    rows is in memory at a time, but for .npz, which is read whole.

    Raises:
        ParameterError: The file cannot be read, or the copy not be written; what `make` raises.
        ShapeError: There is no row, unless it may be empty.
    """
    rows = 0

    def write(out: IO[bytes]) -> None:
        nonlocal rows
        rows = _find_copier(path)(path, out, make, delimiter)
        if not (rows or may_be_empty):
            raise ShapeError(f"{path} must have a column and at least one row of values")

    write_atomically(output, write)
    return rows


def append_columns(
    path: Path, table: Table, make: Columns, delimiter: str | None, content: bytes | None = None
) -> bytes:
    """What a file holds, with the columns that `make` makes of its table.

    content: what it holds, where that was read before.

    Raises:
        ParameterError: The file cannot be read any more; what `make` raises.
    """
    whole = content
    for name, values in make(table).items():
        whole = appender(path, name, delimiter, whole)(values)
    assert whole is not None  # There is a new column, at least.
    return whole


def _find_copier(path: Path) -> Callable[..., int]:
    suffix = suffix_of(path).lower()
    if suffix.removesuffix(".gz") in TEXTS:
        return _copy_text
    return {".npz": _copy_arrays, ".parquet": _copy_parquet}.get(suffix, _copy_arrow)


def _copy_arrays(path: Path, out: IO[bytes], make: Columns, delimiter: str | None) -> int:
    table = read_table(path, delimiter=delimiter, public=True)
    out.write(append_columns(path, table, make, delimiter))
    return table.rows


def _copy_text(path: Path, out: IO[bytes], make: Columns, delimiter: str | None) -> int:
    sign, rows = delimiter_of(path, delimiter), 0
    is_packed = path.suffix.lower() == ".gz"
    packed = gzip.GzipFile("", "wb", fileobj=out, mtime=0) if is_packed else nullcontext(out)
    with packed as target:
        records = _read_records(path, sign)
        for columns in read_text_blocks(path, sign):
            block = Table(columns, next(iter(columns.values())).rows, str(path), public=True)
            made = make(block)
            names = [] if rows else [tuple(made)]
            for fields in chain(names, zip(*made.values(), strict=True)):
                target.write(_extend(path, records, fields, sign).encode())
            rows += block.rows
        # Empty lines at the end.
        target.write("".join(record for record, _ in records).encode())
    return rows


def _read_records(path: Path, delimiter: str) -> Iterator[tuple[str, bool]]:
    with read_safely(path, f"{suffix_of(path)} file"):
        opened = gzip.open if path.suffix.lower() == ".gz" else open
        with opened(path, "rb") as handle:
            text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
            yield from records_of(text, delimiter)


def _extend(
    path: Path, records: Iterator[tuple[str, bool]], fields: tuple[Any, ...], delimiter: str
) -> str:
    """The next row with more fields; empty lines before it stay."""
    before: list[str] = []
    for record, filled in records:
        if filled:
            for field in fields:
                record = append_field(record, field, delimiter)
            return "".join([*before, record])
        before.append(record)
    raise ParameterError(f"{path} changed while it was read, but its rows must stay")


def _copy_parquet(path: Path, out: IO[bytes], make: Columns, delimiter: str | None) -> int:
    parquet = load_for(path, "parquet")

    def read() -> Iterator[Any]:
        with read_safely(path, ".parquet file"), parquet.ParquetFile(path) as file:
            yield file.schema_arrow.empty_table()
            yield from map(_as_table, file.iter_batches(BLOCK_ROWS))

    return _write_tables(path, read(), make, partial(parquet.ParquetWriter, out))


def _copy_arrow(path: Path, out: IO[bytes], make: Columns, delimiter: str | None) -> int:
    ipc = load_for(path, "ipc")

    def read() -> Iterator[Any]:
        kind = f"{path.suffix} file in Arrow's file format"
        with read_safely(path, kind), path.open("rb") as handle, ipc.open_file(handle) as file:
            yield file.schema.empty_table()
            yield from (_as_table(file.get_batch(k)) for k in range(file.num_record_batches))

    # A later batch may know more categories than the first.
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    return _write_tables(path, read(), make, partial(ipc.new_file, out, options=options))


def _as_table(batch: Any) -> Any:
    table = arrow.load().Table.from_batches([batch])
    table.validate(full=True)
    return table


def _write_tables(
    path: Path, tables: Iterator[Any], make: Columns, open_writer: Callable[..., Any]
) -> int:
    """Append the new columns to each; the first has no rows, and counts where no other comes."""
    rows, empty = 0, next(tables)
    first = _append(next(tables, empty), path, make)
    with open_writer(schema=first.schema) as writer:
        for table in chain([first], (_append(table, path, make) for table in tables)):
            writer.write_table(table.cast(first.schema))
            rows += table.num_rows
    return rows


def _append(table: Any, path: Path, make: Columns) -> Any:
    block = Table(arrow_columns(path, table), table.num_rows, str(path), public=True)
    for name, values in make(block).items():
        table = table.append_column(name, to_nulls(values))
    return table
