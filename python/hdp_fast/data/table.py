"""Tables with named columns, read from .csv, .npz and .parquet files.

A column is kept as its distinct values and, for every row, the number of that row's value. What a
schema makes of a table is therefore computed once for each distinct value.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._support.validate import guess, refuse
from ..exceptions import ParameterError, ShapeError
from .columns import Column, ColumnBuilder, NumberColumn, encode, text_of, to_number
from .reading import count_declared, open_arrays, read_member, read_safely, reserve_memory

# How many rows of a text file are held as text at once.
_CHUNK_ROWS = 1 << 14
TEXTS = (".csv", ".tsv", ".txt")
_SUFFIXES = (*(f"{text}.gz" for text in TEXTS), *TEXTS, ".npz", ".parquet")
_DELIMITERS = (";", "\t", "|", ",")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with named columns, as `read_table` makes them.

    Attributes:
        columns: The columns by name, all of one length.
        rows: Number of rows.
        name: What errors call the table, such as its file.
        public: Whether errors may show the names of its columns.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import read_table
        >>> np.savez("people.npz", sex=["female", "male", "female"], age=[45, 25, 30])
        >>> table = read_table("people.npz")
        >>> table.rows, list(table.columns), table.column("sex").texts
        (3, ['sex', 'age'], ('female', 'male'))
    """

    columns: dict[str, Column]
    rows: int
    name: str = "the table"
    public: bool = False

    def column(self, name: str) -> Column:
        """Returns the column with this name.

        Args:
            name: Name of the column.

        Returns:
            The column.

        Raises:
            ParameterError: There is no such column.
        """
        if name not in self.columns:
            # The error names no column: the first line of a file without a header is a record.
            meant = guess(name, self.columns) if self.public else ""
            meant = guess_delimiter(list(self.columns)) or meant
            plural = "s" * (len(self.columns) != 1)
            count = f"{len(self.columns)} column{plural} that {self.name} names"
            refuse("column", name, f"it must be one of the {count}{meant}")
        return self.columns[name]

    def select(self, rows: NDArray[Any]) -> Table:
        """Returns the table of some of the rows.

        Args:
            rows: Numbers of the rows, or a mask (m,).

        Returns:
            The table of these rows.

        Raises:
            IndexError: There is no such row.

        Cost:
            O(rows) for each column.
        """
        some = {name: column.select(rows) for name, column in self.columns.items()}
        return Table(some, int(np.arange(self.rows)[rows].size), self.name, self.public)


def read_table(
    path: str | os.PathLike[str], *, delimiter: str | None = None, public: bool = False
) -> Table:
    """Reads a table from a file.

    The formats are .csv, .tsv and .txt, also with .gz (UTF-8, names in the first line, quotes as in
    RFC 4180), .npz (each vector is a column, each matrix X gives columns X0, X1, ...) and .parquet
    (needs pyarrow). Suffixes may be in small letters or capitals. Pickled objects are never loaded.

    An error never shows the content of a cell. Unless the table is public, it does not show the
    name of a column that the file holds either.

    Args:
        path: The file; "-" is the standard input, which is read as .csv.
        delimiter: One character between the values of a text. None means a comma, and a tab in
            .tsv; .txt needs one.
        public: Whether errors may show the names of its columns.

    Returns:
        The table.

    Raises:
        ParameterError: The file cannot be read as its suffix states, or an argument is malformed.
        ShapeError: Rows or columns differ in length, or there is no row.
        ImportError: pyarrow is needed and missing; the text names the extra.

    Cost:
        O(m d), about a second for 300,000 rows of 20 columns of text.

    Source:
        RFC 4180; the format of numpy.savez; Apache Parquet.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast.data import read_table
        >>> _ = Path("people.csv").write_text('''sex,age
        ... female,45
        ... male,25
        ... ''')
        >>> read_table("people.csv").column("age").texts
        ('45', '25')
    """
    source = Path(path)
    name = name_of(source)
    columns = _read_columns(source, delimiter)
    lengths = {column.rows for column in columns.values()}
    if len(lengths) > 1:
        raise ShapeError(f"columns of {name} must be of one length, got {sorted(lengths)}")
    if not lengths or lengths == {0}:
        raise ShapeError(f"{name} must have a column and at least one row of values")
    return Table(columns, lengths.pop(), name, public)


def _read_columns(path: Path, delimiter: str | None) -> dict[str, Column]:
    suffix = ".csv" if str(path) == "-" else suffix_of(path).lower()
    read = {".npz": _read_npz, ".parquet": _read_parquet}.get(suffix)
    if read is None:
        return _read_text(path, delimiter_of(path, delimiter))
    if delimiter is not None:
        refuse("delimiter", delimiter, f"it must not go with a {suffix} file")
    return read(path)


def suffix_of(path: Path) -> str:
    """The format that a file name ends in, in the letters that it has; the file need not exist.

    It raises ParameterError for any other suffix.
    """
    for suffix in _SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.name[-len(suffix) :]
    rule = ".csv, .tsv or .txt, also with .gz, or .npz or .parquet"
    advice = ""
    if str(path) == "-":
        advice = ", the standard input, to which no column can be appended"
    elif path.parent == Path("/dev"):
        advice = ": did you mean -, the standard input?"
    raise ParameterError(f"data file must end in {rule}, got {path}{advice}")


def delimiter_of(path: Path, delimiter: str | None = None) -> str:
    """What stands between the values of a file of text, whose suffix must be one of a text.

    It raises ParameterError for what cannot stand between values, and for .txt without a delimiter.
    """
    if delimiter is None:
        stem = path.name.lower().removesuffix(".gz")
        if stem.endswith(".txt"):
            raise ParameterError(f"delimiter must be given for {path}, such as ';' or a tab")
        return "\t" if stem.endswith(".tsv") else ","
    if len(delimiter) != 1 or delimiter in '"\r\n' or delimiter.isalnum():
        refuse("delimiter", delimiter, "it must be one character, and no letter, digit or quote")
    return delimiter


def _read_text(path: Path, delimiter: str) -> dict[str, Column]:
    kind = {",": "commas", "\t": "tabs"}.get(delimiter, repr(delimiter))
    name = name_of(path)
    with read_safely(name, f"table separated by {kind}, in UTF-8"), open_text(path) as handle:
        return _read_text_columns(handle, name, delimiter)


def name_of(path: Path) -> str:
    """What errors call a file."""
    return "the standard input" if str(path) == "-" else str(path)


def is_text(path: Path) -> bool:
    """Whether a file holds lines of text, by its name; - is the standard input, which does."""
    return str(path) == "-" or path.name.lower().removesuffix(".gz").endswith(TEXTS)


def open_text(path: Path) -> IO[str]:
    """Open a file of text, or the standard input, which is read as a whole.

    Raises: ParameterError where that is closed; what open and gzip raise.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise ParameterError("the standard input is closed, but it must be read")
        return io.StringIO(sys.stdin.buffer.read().decode("utf-8-sig"), newline="")
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read_text_columns(handle: IO[str], name: str, delimiter: str) -> dict[str, Column]:
    reader = csv.reader(handle, strict=True, delimiter=delimiter)
    names = _read_names(reader, name)
    builders = [ColumnBuilder() for _ in names]
    rows = _read_text_rows(reader, names, name)
    while chunk := list(islice(rows, _CHUNK_ROWS)):
        for builder, texts in zip(builders, zip(*chunk, strict=True), strict=True):
            builder.extend(texts)
    return {name: builder.column() for name, builder in zip(names, builders, strict=True)}


def _read_names(reader: Iterator[list[str]], name: str) -> list[str]:
    """The names of the columns; errors tell which are wrong by their places alone."""
    line = next(reader, None)
    if line is None:
        raise ParameterError(f"{name} is empty: line 1 must name every column")
    names = [text.strip() for text in line]
    if not any(names):
        raise ParameterError(f"line 1 of {name} is empty: it must name every column")
    for place, text in enumerate(names, start=1):
        fault = "" if text else f"column {place} has no name"
        if text and names.index(text) < place - 1:
            fault = f"columns {names.index(text) + 1} and {place} have one name"
        if fault:
            missing = "; is there no header?" if _look_like_values(names) else ""
            rule = "must name every column, each differently"
            raise ParameterError(f"line 1 of {name} {rule}: {fault}{missing}")
    return names


def _look_like_values(names: Iterable[str]) -> bool:
    return not all(math.isnan(to_number(name)) for name in names)


def guess_delimiter(names: Sequence[str]) -> str:
    """A question that names another delimiter, where all values of a line have become one."""
    inside = [sign for sign in _DELIMITERS if sign in names[0]] if len(names) == 1 else []
    return f": did you mean --delimiter {inside[0]!r}?" if inside else ""


def _read_text_rows(reader: Any, names: Sequence[str], name: str) -> Iterator[list[str]]:
    width = len(names)
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            text = f"must have {width} values, {len(row)} found{guess_delimiter(names)}"
            raise ShapeError(f"line {reader.line_num} of {name} {text}")


def _read_npz(path: Path) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    with open_arrays(path) as archive:
        for place, name in enumerate(archive.files, start=1):
            where = f"array {place} of {path}"
            parts = _split_array(name, read_member(archive, name, where), where)
            if not columns.keys().isdisjoint(parts):
                raise ParameterError(f"{path} must name every column differently")
            columns |= {part: _array_column(column) for part, column in parts.items()}
    return columns


def _array_column(values: NDArray[Any]) -> Column:
    return encode(values.tolist()) if values.dtype.kind == "U" else NumberColumn(values)


def _split_array(name: str, values: NDArray[Any], where: str) -> dict[str, NDArray[Any]]:
    """The columns that an array stands for, by name."""
    if values.ndim not in (1, 2) or values.dtype.kind not in "buifU":
        raise ParameterError(f"{where} must be a vector or a matrix of numbers or texts")
    if not len(values):
        # Checked before columns are numbered: without rows the array may declare any number.
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
        builders = [ColumnBuilder() for _ in names]
        for batch in file.iter_batches(_CHUNK_ROWS):
            for builder, column in zip(builders, batch.columns, strict=True):
                builder.extend(map(text_of, column.to_pylist()))
        return {name: builder.column() for name, builder in zip(names, builders, strict=True)}
