"""Columns of tables: the distinct values as texts, or the numbers of the rows, each when needed.

What a schema makes of a column of texts is computed once for each distinct value. A column of
numbers becomes texts only where somebody asks for them.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.numbers import floats
from .._support.types import Floats
from .._support.validate import array
from ..exceptions import ParameterError

# Whole numbers below this are written without a fraction, so that 1.0 and "1" are one category.
_WHOLE = 1 << 53
# What has a text that a file could hold too; entries of other kinds count as missing.
_WORDS = (decimal.Decimal, datetime.date, datetime.time, datetime.timedelta)

Codes = NDArray[np.intp]


class Column:
    """One column of a table.

    Attributes:
        texts: The distinct values as texts, without spaces around them; "" for a missing value.
        codes: For each row the place of its value in `texts`, intp (m,).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import Column
        >>> column = Column(("40", "n/a"), np.array([0, 1, 0]))
        >>> column.numbers()[column.codes]
        array([40., nan, 40.])
    """

    def __init__(self, texts: tuple[str, ...], codes: Codes) -> None:
        self._texts, self._codes = texts, codes

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct values as texts, without spaces around them; "" for a missing value."""
        return self._texts

    @property
    def codes(self) -> Codes:
        """For each row the place of its value in `texts`, intp (m,)."""
        return self._codes

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def __repr__(self) -> str:
        """Shows no value."""
        return f"<Column of {self.rows:,} rows>"

    @property
    def holds_integers(self) -> bool:
        """Whether its type is bool or an integer type, which is public; no value decides it."""
        return False

    def numbers(self) -> Floats:
        """Reads the distinct values as numbers, NaN for what is none.

        Returns:
            An array of float64 (k,) for k distinct values.

        Cost:
            O(k).
        """
        return to_numbers(self.texts)

    def row_numbers(self) -> Floats:
        """Reads the value of each row as a number, NaN for what is none.

        Returns:
            An array of float64 (m,). It may share the memory of the frame that the column is of.

        Cost:
            O(m).
        """
        return self.numbers()[self.codes]

    def select(self, rows: NDArray[Any] | slice) -> Column:
        """Returns the column of some of the rows.

        Args:
            rows: Numbers of the rows, a mask (m,) or a slice.

        Returns:
            The column of these rows; a slice of numbers, or of Arrow's texts, shares their memory.

        Raises:
            IndexError: There is no such row.
            ParameterError: rows are neither integers nor a mask.
        """
        codes = self.codes[check_rows(rows)]
        if not isinstance(rows, slice) or len(codes) >= len(self.texts):
            return type(self)(self.texts, codes)
        # Of a block of rows nobody reads texts that are not in it.
        used, places = np.unique(codes, return_inverse=True)
        return type(self)(tuple(self.texts[place] for place in used.tolist()), places)


def check_rows(rows: Any) -> Any:
    """Numbers of rows, a mask of them or a slice.

    Raises: ParameterError for anything else.
    """
    if isinstance(rows, slice):
        return rows
    places = array("rows", rows)
    if places.dtype.kind not in "bui" and places.size:
        rule = "it must hold numbers of rows, or be a mask of them"
        raise ParameterError(f"rows has dtype {places.dtype}, but {rule}")
    return places if places.size else places.astype(np.intp)


class LazyColumn(Column):
    """A column of values that are texts and codes only where somebody asks for them.

    Attributes:
        values: The value of each row, in a container with a length.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct values as texts, without spaces around them; "" for a missing value."""
        return self._encoded.texts

    @property
    def codes(self) -> Codes:
        """For each row the place of its value in `texts`, intp (m,)."""
        return self._encoded.codes

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @cached_property
    def _encoded(self) -> Column:
        return self._encode()

    @abstractmethod
    def _encode(self) -> Column:
        """Make the texts and codes."""


class NumberColumn(LazyColumn):
    """A column of numbers.

    Attributes:
        values: A vector of bools, integers or floats; NaN where one is missing.
        missing: Where another value is missing, bool (m,), or None.
    """

    def __init__(self, values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> None:
        super().__init__(values)
        self.missing = missing

    @property
    def holds_integers(self) -> bool:
        """Whether its type is bool or an integer type, which is public; no value decides it."""
        return self.values.dtype.kind in "bui"

    def row_numbers(self) -> Floats:
        """Reads the value of each row as a number, NaN for what is none."""
        numbers = floats(self.values)
        return numbers if self.missing is None else np.where(self.missing, np.nan, numbers)

    def select(self, rows: NDArray[Any] | slice) -> Column:
        """Returns the column of some of the rows."""
        rows = check_rows(rows)
        return NumberColumn(self.values[rows], None if self.missing is None else self.missing[rows])

    def _encode(self) -> Column:
        # What stands in memory where a value is missing must not become a value.
        present = np.flatnonzero(~self._absent())
        values = self.values[present]
        distinct, first, places = np.unique(
            floats(values) if values.dtype.kind == "f" else values,
            return_index=True,
            return_inverse=True,
        )
        order = np.argsort(first)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        codes = np.zeros(self.rows, np.intp)
        codes[present] = ranks[places.reshape(-1)]
        return merge_texts(map(text_of, distinct[order].tolist()), codes, self._absent())

    def _absent(self) -> NDArray[np.bool_]:
        is_float = self.values.dtype.kind == "f"
        absent = np.isnan(self.values) if is_float else np.zeros(self.rows, bool)
        return absent if self.missing is None else absent | self.missing


class CategoryColumn(Column):
    """A column whose type says that its values are categories, even if they are numbers."""


def make_categories(
    values: Iterable[Any], codes: NDArray[Any], missing: NDArray[np.bool_]
) -> CategoryColumn:
    """The column of declared categories, in their order, whether they occur or not.

    codes: the place of each row's category, anything where it is missing.
    """
    column = merge_texts(map(_text_of_category, values), codes, missing)
    return CategoryColumn(column.texts, column.codes)


def _text_of_category(value: Any) -> str:
    """The text of a category, which may be of any kind, such as an interval."""
    text = text_of(value)
    try:
        return text if text or isinstance(value, str) else str(value).strip()
    except Exception:
        return ""


def merge_texts(texts: Iterable[str], codes: Codes, missing: NDArray[np.bool_]) -> Column:
    """The column of texts some of which may be equal; a row that is missing has the empty one.

    codes: the place of each row's text, anything where it is missing.
    """
    places: dict[str, int] = {}
    merged = [places.setdefault(text, len(places)) for text in texts]
    if missing.any():
        codes = np.where(missing, len(merged), codes)
        merged.append(places.setdefault("", len(places)))
    return Column(tuple(places), np.array(merged, np.intp)[codes])


def place_among(column: Column, name: str, classes: Sequence[str]) -> NDArray[np.int64]:
    """The place among the classes of the text of each row.

    Raises: ParameterError, which says neither in which row nor what else stands there.
    """
    places = {text: place for place, text in enumerate(classes)}
    numbers = np.array([places.get(text, -1) for text in column.texts], np.int64)[column.codes]
    if (numbers < 0).any():
        rule = "every row must hold one of classes"
        raise ParameterError(f"column {name!r} holds something else, but {rule}")
    return numbers


class ColumnBuilder:
    """Collects a column, and gives each distinct value a number when it first occurs."""

    def __init__(self) -> None:
        # A text that is looked up for the first time gets the next number.
        self._places: dict[str, int] = defaultdict(itertools.count().__next__)
        self._codes: list[Codes] = []

    def extend(self, texts: Iterable[str]) -> None:
        """Adds the values of some rows, without spaces around them."""
        places = map(self._places.__getitem__, map(str.strip, texts))
        self._codes.append(np.fromiter(places, np.intp))

    def column(self) -> Column:
        """The column of all rows."""
        return Column(tuple(self._places), np.concatenate([*self._codes, np.zeros(0, np.intp)]))


def encode(values: Iterable[Any]) -> Column:
    """The column of any values, each by its text; none of them raises anything."""
    builder = ColumnBuilder()
    builder.extend(map(text_of, values))
    return builder.column()


def text_of(value: Any) -> str:
    """The text of an entry; the empty one where it is missing, or of a kind that has no text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "1" if value else "0"
    # The code of the value's own class may raise anything.
    try:
        if isinstance(value, str):
            return str.strip(value)
        if isinstance(value, int):
            return int.__repr__(value)
        if isinstance(value, float):
            return _text_of_float(float(value))
        return _text_of_word(value) if isinstance(value, _WORDS) else ""
    except Exception:
        return ""


def _text_of_float(value: float) -> str:
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < _WHOLE else str(value)


def _text_of_word(value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        return "" if value.is_nan() else str(value)
    # The time that is none differs from itself.
    return "" if value != value else str(value).strip()


def to_numbers(texts: Sequence[str]) -> Floats:
    """The numbers that texts spell, NaN for one that spells none.

    All are read at once, unless one is neither empty nor a number.
    """
    try:
        return np.fromiter(
            map(float, [text if text != "" else "nan" for text in texts]), np.float64
        )
    except ValueError:
        return np.array([to_number(text) for text in texts], np.float64)


def to_number(text: str) -> float:
    """The number that a text spells, NaN if it spells none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
