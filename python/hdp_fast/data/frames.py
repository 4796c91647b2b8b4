"""Data frames as tables of texts, which a schema reads."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.containers import to_frame
from .._support.feature_names import names_of
from .._support.numbers import floats
from .._support.validate import refuse
from ..exceptions import ParameterError, ShapeError
from .schema import Ignore, Schema
from .table import Column, Table

# What has a text that a file could hold too; entries of other kinds count as missing.
_WORDS = (str, int, decimal.Decimal, datetime.date, datetime.time)


def make_table(name: str, records: Any, schema: Schema) -> Table:
    """The columns of a table or data frame that the schema reads, as a table.

    Data frames are those of pandas and polars and tables of pyarrow. No entry raises anything.

    Raises:
        ParameterError: The records have no named columns, or not those of the schema.
        ShapeError: The schema reads a column whose name another one has, too.
    """
    if isinstance(records, Table):
        return records
    records = to_frame(name, records)
    places = _columns_of(records)
    if not places:
        rule = "with a schema it must be a Table or a data frame with named columns"
        refuse(name, type(records).__name__, rule)
    wanted = [column for column, kind in schema.columns.items() if not isinstance(kind, Ignore)]
    missing = [column for column in wanted if column not in places]
    if missing:
        rule = "the schema's columns must be there"
        raise ParameterError(
            f"{name} lacks {len(missing)} columns, such as {missing[0]!r}, but {rule}"
        )
    columns = {}
    for column in wanted:
        entries = np.asarray(records[places[column]])
        if entries.ndim != 1:
            rule = "the schema reads that name"
            raise ShapeError(f"{name} has two columns named {column!r}, but {rule}")
        columns[column] = make_column(entries)
    return Table(columns, len(records), name)


def make_column(entries: NDArray[Any]) -> Column:
    """The entries of a vector as texts: 1.0 is "1", and a missing one is empty."""
    if entries.dtype.kind == "b":
        entries = entries.astype(np.uint8)
    elif entries.dtype.kind == "f":
        entries = floats(entries)
    distinct: Sequence[Any]
    if entries.dtype.kind in "iufU":
        values, codes = np.unique(entries, return_inverse=True)
        distinct = values.tolist()
    else:
        distinct, codes = _entries_of(entries), np.arange(len(entries))
    places: dict[str, int] = {}
    merged = [places.setdefault(text, len(places)) for text in map(_to_text, distinct)]
    return Column(tuple(places), np.array(merged, np.intp)[codes.reshape(-1)])


def _columns_of(records: Any) -> dict[str, Any]:
    """The columns of a data frame by their names as texts; none if it is something else."""
    if not hasattr(type(records), "__len__") or not hasattr(records, "columns"):
        return {}
    names: Iterable[Any] | None = names_of(records)
    if names is None:
        names = records.columns if hasattr(records, "loc") else ()
    return {str(name): name for name in names}


def _entries_of(entries: NDArray[Any]) -> list[Any]:
    """Objects as they are; times as Python has them, as files of tables give them."""
    if entries.dtype.kind == "M" and np.datetime_data(entries.dtype)[0] in {"ns", "ps", "fs", "as"}:
        entries = entries.astype("datetime64[us]")
    return list(entries.tolist())


def _to_text(value: Any) -> str:
    """The text of an entry; the empty one where it is missing, or of a kind that has no text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else str(value)
    try:
        return str(value).strip() if isinstance(value, _WORDS) else ""
    except ValueError:  # Python writes no integer of more than some thousand digits.
        return ""
