"""Columns over Arrow: values stay where they are until somebody asks for texts or numbers.

pyarrow is imported where a table is read with it, and by nothing else. Whatever it does faster, it
does as Python would: where it gives up on a value, the whole column is read by Python.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from .columns import (
    Codes,
    Column,
    LazyColumn,
    NumberColumn,
    check_rows,
    encode,
    make_categories,
    merge_texts,
    text_of,
)

# What Python drops around a number, too.
_SPACES = " \t\n\r\x0b\x0c"


def load(module: str = "") -> Any:
    """pyarrow, or a module of it.

    Raises:
        ImportError: It is missing.
    """
    return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")


def is_installed() -> bool:
    """Whether pyarrow can be imported."""
    try:
        load()
    except ImportError:
        return False
    return True


def is_extension(values: Any) -> bool:
    """Whether the type of an array of pyarrow is one that another library has defined."""
    return isinstance(values.type, load().BaseExtensionType)


def copy(content: bytes | memoryview) -> Any:
    """The content, in memory of pyarrow.

    A thread of pyarrow may drop a buffer after the table is there. Dropping memory of Python takes
    the interpreter's lock, and ends the process with an abort where the interpreter is ending.
    """
    buffer = load().allocate_buffer(len(content))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(content, np.uint8)
    return buffer


class ArrowColumn(LazyColumn):
    """A column of texts that pyarrow holds.

    Attributes:
        values: A ChunkedArray of texts; a null is a missing value.
    """

    def row_numbers(self) -> Floats:
        """Reads the value of each row as a number, NaN for what is none."""
        numbers = _parse_numbers(self.values)
        return super().row_numbers() if numbers is None else numbers

    def select(self, rows: NDArray[Any] | slice) -> Column:
        """Returns the column of some of the rows."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.rows)
            return ArrowColumn(self.values.slice(start, max(stop - start, 0)))
        places = np.arange(self.rows)[check_rows(rows)]
        return ArrowColumn(self.values.take(load().array(places)))

    def _encode(self) -> Column:
        codes, dictionary, missing = _take_apart(self.values.dictionary_encode())
        return merge_texts(map(text_of, _to_python(dictionary)), codes, missing)


def make_arrow_column(values: Any) -> Column:
    """The column of a ChunkedArray or an Array of pyarrow, of whatever type it is."""
    pyarrow, types = load(), load("types")
    if isinstance(values, pyarrow.Array):
        values = pyarrow.chunked_array([values])
    kind = values.type
    if types.is_boolean(kind) or types.is_float16(kind):
        values = values.cast(pyarrow.uint8() if types.is_boolean(kind) else pyarrow.float32())
    if types.is_integer(values.type) or types.is_floating(values.type):
        return _number_column(values)
    if types.is_dictionary(kind):
        return _dictionary_column(values)
    if str(kind) in ("string", "large_string"):
        return ArrowColumn(values)
    if str(kind) == "string_view":
        return ArrowColumn(values.cast(pyarrow.large_string()))
    if types.is_timestamp(kind) and kind.unit == "ns":
        # Python's own times end at microseconds.
        values = values.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return encode(_to_python(values))


def _take_apart(values: Any) -> tuple[Codes, Any, NDArray[np.bool_]]:
    """The places of the rows in a dictionary, the dictionary, and where a value is missing."""
    one = values.num_chunks == 1
    whole = values.chunk(0) if one else values.unify_dictionaries().combine_chunks()
    codes = whole.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return codes, whole.dictionary, _nulls(whole)


def _dictionary_column(values: Any) -> Column:
    """Categories that occur: a dictionary may be shared with columns that have others."""
    codes, dictionary, missing = _take_apart(values)
    used, places = np.unique(codes[~missing], return_inverse=True)
    kept = np.zeros(len(codes), np.intp)
    kept[~missing] = places.reshape(-1)
    return make_categories(_to_python(dictionary.take(load().array(used))), kept, missing)


def _number_column(values: Any) -> Column:
    missing = _nulls(values) if values.null_count else None
    filled = values if missing is None else values.fill_null(0)
    if filled.num_chunks == 1:
        return NumberColumn(filled.chunk(0).to_numpy(zero_copy_only=False), missing)
    return NumberColumn(filled.to_numpy(), missing)


def _nulls(values: Any) -> NDArray[np.bool_]:
    return np.asarray(values.is_null(), bool)


def _parse_numbers(values: Any) -> Floats | None:
    """The texts as numbers; None if one of them is none in pyarrow's eyes, which knows fewer."""
    pyarrow, compute = load(), load("compute")
    for trimmed in (False, True):
        try:
            texts = compute.utf8_trim(values, _SPACES) if trimmed else values
            numbers: Floats = texts.cast(pyarrow.float64()).to_numpy()
        except pyarrow.ArrowInvalid:
            continue
        return numbers
    return None


def _to_python(values: Any) -> list[Any]:
    """The values as Python has them; None for one that it cannot hold, as a year beyond 9999."""
    try:
        return list(values.to_pylist())
    # One value decides for no other: each is tried by itself.
    except Exception:
        return [_to_object(value) for value in values]


def _to_object(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except Exception:
        return None
