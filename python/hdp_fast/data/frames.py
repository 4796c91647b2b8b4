"""Data frames as tables, which a schema reads: by pyarrow where it is there and by Python else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._support.containers import to_array, to_entries, to_frame
from .._support.feature_names import names_of
from .._support.numbers import floats
from .._support.validate import array, refuse
from ..exceptions import ParameterError, ShapeError
from . import arrow
from .columns import CategoryColumn, Column, NumberColumn, encode, make_categories
from .table import Table

_RULE = "it must be a Table or a data frame with named columns"
# Times that are finer than Python's own.
_FINE = {"ns", "ps", "fs", "as"}


class Reader(Protocol):
    """What reads some columns of a table, as a schema does."""

    @property
    def reads(self) -> list[str]:
        """Names of these columns."""
        ...


def read_frame(frame: Any, *, public: bool = False) -> Table:
    """Makes a table of a data frame.

    A frame is a DataFrame of pandas or polars, a Table or RecordBatch of pyarrow, a dict of
    columns, or a Table, which is returned as it is. Names that are no texts count as their texts.
    Columns of numbers share the memory of the frame, which must not change while the table is used.

    An entry has the text that it would have in a file: 1.0 is "1", True is "1", and a missing one
    is empty. An entry that is neither a number, a text nor a time counts as missing. No entry
    raises anything.

    Args:
        frame: The data frame.
        public: Whether errors may show the names of its columns.

    Returns:
        The table.

    Raises:
        ParameterError: The frame is something else.
        ShapeError: Two columns have one name, columns differ in length, or there is no row.

    Cost:
        O(m d). With pyarrow no value becomes a Python object, unless the column holds such objects.

    Examples:
        >>> from hdp_fast.data import read_frame
        >>> table = read_frame({"sex": ["female", "male"], "age": [45.0, None]})
        >>> table.rows, table.column("age").texts
        (2, ('45', ''))
    """
    table = frame if isinstance(frame, Table) else _make_table("frame", frame, None)
    if not table.rows:
        raise ShapeError("frame has no rows, but it must have at least one")
    return Table(table.columns, table.rows, table.name, table.public or public)


def make_table(name: str, records: Any, schema: Reader) -> Table:
    """The columns of a table or data frame that the schema reads, as a table.

    Data frames are those of pandas and polars and tables of pyarrow. No entry raises anything.

    Raises:
        ParameterError: The records have no named columns, or not those of the schema.
        ShapeError: The schema reads a column whose name another one has, too.
    """
    if isinstance(records, Mapping):
        refuse(name, type(records).__name__, _RULE)
    return take_columns(name, records, schema.reads)


def take_columns(name: str, records: Any, wanted: Sequence[str] | None) -> Table:
    """These columns of a data frame, or a dict of columns, as a table; a table stays as it is.

    None takes all of them.

    It raises the errors of `make_table`.
    """
    if isinstance(records, Table):
        return records
    return _make_table(name, records, wanted)


def find_integers(records: Any) -> NDArray[np.bool_]:
    """Whether each column of an array or a data frame is of bool or an integer type.

    By types alone: no entry is looked at. Lists have none.
    """
    if isinstance(records, Table):
        return np.array([column.holds_integers for column in records.columns.values()])
    if isinstance(records, list | tuple):
        return np.zeros(len(records[0]), bool)
    values = records if isinstance(records, np.ndarray) else None
    if values is None and not _has_columns(records):
        values = to_array("X", records)
    if values is not None:
        return np.full(values.shape[1], values.dtype.kind in "bui")
    names, take = _open_frame("X", to_frame("X", records)[:0])
    return np.array([make_column(take(place)).holds_integers for place in range(len(names))])


def _has_columns(records: Any) -> bool:
    return any(hasattr(records, name) for name in ("columns", "column_names", "__arrow_c_stream__"))


def require_columns(name: str, names: Collection[str], wanted: Sequence[str]) -> None:
    """Check that all wanted columns are among the names.

    Raises:
        ParameterError: One is not.
    """
    missing = [column for column in wanted if column not in names]
    if missing:
        rule = "the schema's columns must be there"
        raise ParameterError(
            f"{name} lacks {len(missing)} columns, such as {missing[0]!r}, but {rule}"
        )


def _make_table(name: str, records: Any, wanted: Sequence[str] | None) -> Table:
    names, take = _open_frame(name, records)
    places: dict[str, list[int]] = {}
    for place, text in enumerate(names):
        places.setdefault(text, []).append(place)
    wanted = list(places) if wanted is None else wanted
    require_columns(name, places, wanted)
    twice = [column for column in wanted if len(places[column]) > 1]
    if twice:
        rule = "a column that is read must have a name of its own"
        raise ShapeError(f"{name} has two columns named {twice[0]!r}, but {rule}")
    columns = {column: make_column(take(places[column][0])) for column in wanted}
    lengths = sorted({column.rows for column in columns.values()})
    if len(lengths) > 1:
        raise ShapeError(f"{name} has columns of {lengths} rows, but all must be of one length")
    return Table(columns, lengths[0], name)


def _open_frame(name: str, records: Any) -> tuple[list[str], Callable[[int], Any]]:
    """The names of a frame's columns, and what returns the column at a place."""
    if hasattr(type(records), "collect") and not isinstance(records, Mapping):
        refuse(name, type(records).__name__, "it must be in memory: collect() makes a DataFrame")
    records = to_frame(name, records)
    if isinstance(records, Mapping):
        names, columns = [str(key) for key in records], list(records.values())
        if names:
            return names, lambda place: columns[place]
    elif hasattr(records, "iloc") and hasattr(records, "columns"):
        if len(records.columns):
            return [str(key) for key in records.columns], lambda place: records.iloc[:, place]
    elif hasattr(records, "to_series") and hasattr(records, "columns"):
        return list(records.columns), records.to_series
    elif hasattr(records, "column_names") and hasattr(records, "column"):
        return list(records.column_names), records.column
    kept = names_of(records) if hasattr(type(records), "__len__") else None
    if kept is None:
        refuse(name, type(records).__name__, _RULE)
    return list(kept), lambda place: records[kept[place]]


def make_column(entries: Any) -> Column:
    """A vector of any kind as a column: 1.0 is "1", and a missing entry is empty."""
    library = type(entries).__module__.partition(".")[0]
    if library == "pyarrow":
        return arrow.make_arrow_column(entries)
    if library == "polars":
        return _polars_column(entries)
    if library == "pandas" and not isinstance(entries.dtype, np.dtype):
        return _extension_column(entries)
    return encode(entries) if isinstance(entries, list | tuple) else _array_column(entries)


def read_labels_as_numbers(labels: Any) -> Any:
    """Labels of a part that are texts, as all that a file of text holds, as numbers."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "U":
        return _array_column(labels).row_numbers()
    return labels


def _array_column(entries: Any) -> Column:
    values = array("a column", entries)
    if values.ndim != 1:
        raise ShapeError(f"a column has shape {values.shape}, but it must have one dimension")
    if values.dtype.kind in "buif":
        return NumberColumn(floats(values) if values.dtype.kind == "f" else values)
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in _FINE:
        values = values.astype(f"{values.dtype.kind}8[us]")
    return encode(values.tolist())


def _extension_column(series: Any) -> Column:
    """A column of a dtype of pandas' own."""
    if hasattr(series.dtype, "categories"):
        codes = series.cat.codes.to_numpy()
        return make_categories(series.dtype.categories, codes, codes < 0)
    values = _to_arrow(series.array, lambda entries: entries.__arrow_array__())
    if values is not None:
        return arrow.make_arrow_column(values)
    kind = getattr(series.dtype, "numpy_dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "bui":
        return NumberColumn(*to_entries("a column", series))
    return encode(np.asarray(series, dtype=object).tolist())


def _polars_column(series: Any) -> Column:
    kind = type(series.dtype).__name__
    if kind == "Enum":
        missing = series.is_null().to_numpy()
        codes = series.to_physical().fill_null(0).to_numpy()
        return make_categories(series.dtype.categories.to_list(), codes, missing)
    values = None
    if kind != "Object":
        values = _to_arrow(series, lambda entries: entries.to_arrow())
    if values is not None:
        return arrow.make_arrow_column(values)
    column = encode(series.to_list())
    return CategoryColumn(column.texts, column.codes) if kind == "Categorical" else column


def _to_arrow(values: Any, convert: Callable[[Any], Any]) -> Any:
    """The values in pyarrow's memory; None if that is not installed, or cannot hold them."""
    if not arrow.is_installed():
        return None
    try:
        converted = convert(values)
    # Python's own objects may be anything, and are read one by one.
    except Exception:
        return None
    # An extension type, as of periods, has numbers in place of what it stands for.
    return None if arrow.is_extension(converted) else converted
