"""Tables with named columns, read from files of text, of numpy and of Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.lazy import load_optional
from .._support.validate import file_path, guess, refuse
from ..exceptions import ParameterError, ShapeError
from . import arrow
from .columns import Column, NumberColumn, check_rows, encode
from .delimited import TEXTS, delimiter_of, guess_delimiter, name_of, read_text
from .reading import (
    MOST_BYTES,
    check_size,
    count_declared,
    open_arrays,
    read_headers,
    read_member,
    read_safely,
    reserve_memory,
)

# The rows of a block, where a file is read by blocks: so many, or with few columns so many entries.
BLOCK_ROWS, _BLOCK_CELLS = 1 << 16, 1 << 20
_SUFFIXES = (*(f"{text}.gz" for text in TEXTS), *TEXTS, ".npz", ".parquet", ".arrow", ".feather")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with named columns, as `read_table` and `read_frame` make them.

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
        if not isinstance(name, str) or name not in self.columns:
            # The error names no column: the first line of a file without a header is a record.
            meant = guess(name, self.columns) if self.public else ""
            meant = guess_delimiter(list(self.columns)) or meant
            plural = "s" * (len(self.columns) != 1)
            count = f"{len(self.columns)} column{plural} that {self.name} names"
            refuse("column", name, f"it must be one of the {count}{meant}")
        return self.columns[name]

    def select(self, rows: NDArray[Any] | slice) -> Table:
        """Returns the table of some of the rows.

        Args:
            rows: Numbers of the rows, a mask (m,) or a slice.

        Returns:
            The table of these rows.

        Raises:
            IndexError: There is no such row.
            ParameterError: rows are neither integers nor a mask.

        Cost:
            O(rows) for each column.
        """
        rows = check_rows(rows)
        some = {name: column.select(rows) for name, column in self.columns.items()}
        return Table(some, int(np.arange(self.rows)[rows].size), self.name, self.public)


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    public: bool = False,
    max_bytes: int = MOST_BYTES,
) -> Table:
    """Reads a table from a file.

    The formats are .csv, .tsv and .txt, also with .gz (UTF-8, names in the first line, quotes as in
    RFC 4180), .npz (each vector is a column, each matrix X gives columns X0, X1, ...), and with
    pyarrow .parquet, .arrow and .feather (Arrow's file format). Suffixes may be in small letters or
    capitals. Pickled objects are never loaded.

    Every cell of a file of text is a text, such as "00501": only a schema makes a number of it. An
    empty cell, a null and NaN among numbers are missing. Texts are read by pyarrow where it is
    installed, and by Python's csv module else, which takes some twenty times as long.

    An error never shows the content of a cell. Unless the table is public, it does not show the
    name of a column that the file holds either.

    Args:
        path: The file; "-" is the standard input, which is read as .csv.
        delimiter: One character between the values of a text. None means a comma, and a tab in
            .tsv; .txt needs one.
        public: Whether errors may show the names of its columns.
        max_bytes: The most bytes that the file may unpack to, 4 GiB unless more are allowed. What
            an .npz or .parquet file declares is compared before anything is unpacked.

    Returns:
        The table.

    Raises:
        ParameterError: The file cannot be read as its suffix states, unpacks to more than
            max_bytes, or an argument is malformed.
        ShapeError: Rows or columns differ in length, or there is no row.
        ImportError: pyarrow is needed and missing; the text names the extra.

    Cost:
        O(m d), a fifth of a second for 300,000 rows of 10 columns of text with pyarrow.

    Source:
        RFC 4180; the format of numpy.savez; Apache Parquet and Arrow.

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
    source = file_path("path", path)
    name = name_of(source)
    check_size(name, 0, max_bytes)
    columns = _read_columns(source, delimiter, max_bytes)
    lengths = {column.rows for column in columns.values()}
    _check_lengths(lengths, name)
    if not lengths or lengths == {0}:
        raise ShapeError(f"{name} must have a column and at least one row of values")
    return Table(columns, lengths.pop(), name, public)


def _check_lengths(lengths: set[int], name: str) -> None:
    if len(lengths) > 1:
        raise ShapeError(f"columns of {name} must be of one length, got {sorted(lengths)}")


def _read_columns(path: Path, delimiter: str | None, max_bytes: int) -> dict[str, Column]:
    suffix = ".csv" if str(path) == "-" else suffix_of(path).lower()
    readers = {".npz": _read_npz, ".parquet": _read_parquet}
    read = {**readers, ".arrow": _read_arrow, ".feather": _read_arrow}.get(suffix)
    if read is None:
        return read_text(path, delimiter_of(path, delimiter), max_bytes)
    if delimiter is not None:
        refuse("delimiter", delimiter, f"it must not go with a {suffix} file")
    return read(path, max_bytes)


def suffix_of(path: Path) -> str:
    """The format that a file name ends in, in the letters that it has; the file need not exist.

    It raises ParameterError for any other suffix.
    """
    for suffix in _SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.name[-len(suffix) :]
    rule = ".csv, .tsv or .txt, also with .gz, or .npz, .parquet, .arrow or .feather"
    advice = ""
    if str(path) == "-":
        advice = ", the standard input, to which no column can be appended"
    elif path.parent == Path("/dev"):
        advice = ": did you mean -, the standard input?"
    elif not path.suffix and not path.exists():
        advice = ", where no folder is"
    raise ParameterError(f"data file must end in {rule}, got {path}{advice}")


def _read_npz(path: Path, max_bytes: int) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    with open_arrays(path, max_bytes) as archive:
        with read_safely(path, ".npz file"):
            shapes = [shape for shape, _ in read_headers(archive).values()]
        # Before any column is unpacked, which may be large.
        _check_lengths({shape[0] for shape in shapes if shape}, str(path))
        for place, name in enumerate(archive.files, start=1):
            where = f"array {place} of {path}"
            parts = _split_array(name, read_member(archive, name, where), where)
            if not columns.keys().isdisjoint(parts):
                raise ParameterError(f"{path} must name every column differently")
            columns |= {part: _array_column(column) for part, column in parts.items()}
    return columns


def read_archive(path: Path) -> Table:
    """The table in a .npz file, which may be without rows.

    It raises the other errors of read_table.
    """
    columns = _read_npz(path, MOST_BYTES)
    rows = {column.rows for column in columns.values()}
    _check_lengths(rows, str(path))
    return Table(columns, max(rows, default=0), str(path))


def _array_column(values: NDArray[Any]) -> Column:
    return encode(values.tolist()) if values.dtype.kind == "U" else NumberColumn(values)


def _split_array(name: str, values: NDArray[Any], where: str) -> dict[str, NDArray[Any]]:
    """The columns that an array stands for, by name."""
    if values.ndim not in (1, 2) or values.dtype.kind not in "buifU":
        raise ParameterError(f"{where} must be a vector or a matrix of numbers or texts")
    if values.ndim == 1:
        return {name: values}
    return {f"{name}{place}": column for place, column in enumerate(values.T)}


def _read_parquet(path: Path, max_bytes: int) -> dict[str, Column]:
    parquet = load_for(path, "parquet")
    with read_safely(path, ".parquet file"), parquet.ParquetFile(path) as file:
        declared = count_declared(file.metadata)
        check_size(path, 8 * declared, max_bytes)
        reserve_memory(declared)
        return arrow_columns(path, file.read())


def _read_arrow(path: Path, max_bytes: int) -> dict[str, Column]:
    ipc = load_for(path, "ipc")
    kind = f"{path.suffix} file in Arrow's file format"
    with read_safely(path, kind), path.open("rb") as handle, ipc.open_file(handle) as file:
        return arrow_columns(path, _read_batches(path, file, max_bytes))


def _read_batches(path: Path, file: Any, max_bytes: int) -> Any:
    """The table in an Arrow file, whose parts may each be packed."""
    batches, size = [], 0
    for place in range(file.num_record_batches):
        batch = file.get_batch(place)
        # Nothing in such a file is checked when it is read, not even where its texts end: to ask
        # for its size alone would read there.
        batch.validate(full=True)
        batches.append(batch)
        size += batch.nbytes
        check_size(path, size, max_bytes)
    return arrow.load().Table.from_batches(batches, file.schema)


def read_batches(path: Path, columns: list[str] | None) -> Iterator[Table]:
    """The rows of a .parquet, .arrow or .feather file, a block at a time.

    It raises the errors of read_table.
    """
    if path.suffix.lower() == ".parquet":
        parquet = load_for(path, "parquet")
        with read_safely(path, ".parquet file"), parquet.ParquetFile(path) as file:
            yield _make_empty(path, file.schema_arrow, columns)
            width = file.metadata.num_columns if columns is None else len(columns)
            rows = max(BLOCK_ROWS, _BLOCK_CELLS // max(width, 1))
            for batch in file.iter_batches(rows, columns=columns):
                yield _make_block(path, batch)
        return
    ipc = load_for(path, "ipc")
    kind = f"{path.suffix} file in Arrow's file format"
    with read_safely(path, kind), path.open("rb") as handle, ipc.open_file(handle) as file:
        yield _make_empty(path, file.schema, columns)
        for place in range(file.num_record_batches):
            batch = file.get_batch(place)
            batch.validate(full=True)
            yield _make_block(path, batch if columns is None else batch.select(columns))


def _make_empty(path: Path, schema: Any, columns: list[str] | None) -> Table:
    """A block without rows, in which columns that the file lacks are missing as well."""
    made = arrow_columns(path, schema.empty_table())
    some = {name: made[name] for name in made if columns is None or name in columns}
    return Table(some, 0, str(path))


def _make_block(path: Path, batch: Any) -> Table:
    whole = arrow.load().Table.from_batches([batch])
    return Table(arrow_columns(path, whole), batch.num_rows, str(path))


def load_for(path: Path, module: str) -> Any:
    """A module of pyarrow, or an ImportError that says which file needs it."""
    return load_optional(f"pyarrow.{module}", str(path), "tables")


def arrow_columns(path: Path, table: Any) -> dict[str, Column]:
    """The columns of a table of pyarrow, by their names, which must differ."""
    names = table.column_names
    if len(set(names)) != len(names):
        raise ParameterError(f"{path} must name every column differently")
    columns = zip(names, table.columns, strict=True)
    return {name: arrow.make_arrow_column(column) for name, column in columns}
