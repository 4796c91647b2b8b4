"""Tables with named columns, read from .csv, .npz and .parquet files.

A column is kept as its distinct values and, for every row, the number of the row's value: what
hdp_fast.data.schema makes of a table is worked out once for every distinct value.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import math
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._support.validate import refuse
from ..exceptions import ParameterError, ShapeError
from .reading import count_declared, open_arrays, read_member, read_safely, reserve_memory

# Rows of a text file held as text at any time.
_CHUNK_ROWS = 1 << 14
# Whole numbers below this are written without a fraction, so that 1.0 and "1" are one category.
_WHOLE = 1 << 53


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes:
        texts: the distinct values, as texts without spaces around them; "" where one is missing.
        codes: for each row the place of its value among them, intp (m,).
    """

    texts: tuple[str, ...]
    codes: NDArray[np.intp]

    def numbers(self) -> NDArray[np.float64]:
        """The distinct values as numbers, NaN for what is none.

        Returns float64 (k,) for k distinct values.

        Raises: nothing.
        Cost: O(k).
        Source: none.
        """
        return np.array([_to_number(text) for text in self.texts], np.float64)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with named columns.

    Attributes:
        columns: the columns by name, all of one length.
        rows: how many rows there are.
    """

    columns: dict[str, Column]
    rows: int

    def column(self, name: str) -> Column:
        """The column of this name.

        name: one of columns.

        Raises: ParameterError when there is none.
        Cost: constant.
        Source: none.
        """
        if name not in self.columns:
            # Their names stay unsaid: the first line of a file without a header is somebody's.
            refuse(
                "column",
                name,
                f"it must be one of the {len(self.columns)} columns that the table names",
            )
        return self.columns[name]

    def select(self, rows: NDArray[Any]) -> Table:
        """The table of some rows.

        rows: their numbers, or a mask (m,).

        Raises: IndexError for a row that is not there.
        Cost: O(rows) for each column.
        Source: none.
        """
        some = {name: Column(c.texts, c.codes[rows]) for name, c in self.columns.items()}
        return Table(some, int(np.arange(self.rows)[rows].size))


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table from a file.

    path: .csv or .csv.gz (UTF-8, names in the first line, quotes as in RFC 4180), .npz (each vector
    a column, each matrix X the columns X0, X1, ...) or .parquet (needs pyarrow).
    Pickled objects are never loaded. An error never shows the content of a cell, nor the name of a
    column that the file holds.

    Raises: ParameterError for an unreadable file, ShapeError for rows that differ in length,
        ImportError naming the extra when pyarrow is needed and missing.
    Cost: O(m d), about a second for 300,000 rows of 20 columns of text.
    Source: RFC 4180; the format of numpy.savez; Apache Parquet.
    """
    source = Path(path)
    for suffixes, read in _READERS.items():
        if source.name.endswith(suffixes):
            columns = read(source)
            break
    else:
        raise ParameterError(f"data file must end in .csv, .csv.gz, .npz or .parquet, got {source}")
    lengths = {column.codes.size for column in columns.values()}
    if len(lengths) > 1:
        raise ShapeError(f"columns of {source} must be of one length, got {sorted(lengths)}")
    if not lengths or lengths == {0}:
        raise ShapeError(f"{source} must have a column and at least one row of values")
    return Table(columns, lengths.pop())


class _ColumnBuilder:
    """Collects a column, giving each distinct value a number when it first comes."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._codes = array("q")

    def extend(self, texts: Iterable[str]) -> None:
        places = self._places
        self._codes.extend(places.setdefault(text.strip(), len(places)) for text in texts)

    def column(self) -> Column:
        return Column(tuple(self._places), np.array(self._codes, np.intp))


def _encode(values: Iterable[Any]) -> Column:
    builder = _ColumnBuilder()
    builder.extend(map(_to_text, values))
    return builder.column()


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return "" if value is None else str(value)


def _to_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_csv(path: Path) -> dict[str, Column]:
    with read_safely(path, "table separated by commas, in UTF-8"), _open_text(path) as handle:
        return _read_csv_columns(handle, path)


def _open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read_csv_columns(handle: IO[str], path: Path) -> dict[str, Column]:
    reader = csv.reader(handle, strict=True)
    names = [name.strip() for name in next(reader, [])]
    if len(set(names)) != len(names) or "" in names or not names:
        raise ParameterError(f"line 1 of {path} must name every column, each differently")
    builders = [_ColumnBuilder() for _ in names]
    rows = _read_csv_rows(reader, len(names), path)
    while chunk := list(islice(rows, _CHUNK_ROWS)):
        for builder, texts in zip(builders, zip(*chunk, strict=True), strict=True):
            builder.extend(texts)
    return {name: builder.column() for name, builder in zip(names, builders, strict=True)}


def _read_csv_rows(reader: Any, width: int, path: Path) -> Iterator[list[str]]:
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            text = f"must have {width} values, {len(row)} found"
            raise ShapeError(f"line {reader.line_num} of {path} {text}")


def _read_npz(path: Path) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    with open_arrays(path) as archive:
        for place, name in enumerate(archive.files, start=1):
            where = f"array {place} of {path}"
            parts = _split_array(name, read_member(archive, name, where), where)
            if not columns.keys().isdisjoint(parts):
                raise ParameterError(f"{path} must name every column differently")
            columns |= {part: _encode(column.tolist()) for part, column in parts.items()}
    return columns


def _split_array(name: str, values: NDArray[Any], where: str) -> dict[str, NDArray[Any]]:
    """The columns that an array stands for, by name."""
    if values.ndim not in (1, 2) or values.dtype.kind not in "buifU":
        raise ParameterError(f"{where} must be a vector or a matrix of numbers or texts")
    if not len(values):
        # Before columns are numbered: without rows, there may be any number of them.
        raise ShapeError(f"{where} must have at least one row of values")
    if values.ndim == 1:
        return {name: values}
    return {f"{name}{place}": column for place, column in enumerate(values.T)}


def _read_parquet(path: Path) -> dict[str, Column]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"{path} needs pyarrow: pip install hdp-fast[parquet]") from error
    with read_safely(path, ".parquet file"), parquet.ParquetFile(path) as file:
        reserve_memory(count_declared(file.metadata))
        names = file.schema_arrow.names
        if len(set(names)) != len(names):
            raise ParameterError(f"{path} must name every column differently")
        builders = [_ColumnBuilder() for _ in names]
        for batch in file.iter_batches(_CHUNK_ROWS):
            for builder, column in zip(builders, batch.columns, strict=True):
                builder.extend(map(_to_text, column.to_pylist()))
        return {name: builder.column() for name, builder in zip(names, builders, strict=True)}


_READERS = {(".csv", ".csv.gz"): _read_csv, (".npz",): _read_npz, (".parquet",): _read_parquet}
