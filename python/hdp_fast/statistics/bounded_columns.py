"""Columns of private records between public bounds, and their exact sums on a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.containers import to_categories
from .._support.feature_names import FeatureNames, names_of
from .._support.types import Integers
from .._support.validate import distinct_texts, entries_of, numbers, refuse
from ..data.persons import Persons, write_texts
from ..data.rows import Bounds, check_bounds
from ..exceptions import ParameterError, ShapeError

# What is made of so many entries of a table at a time fits a processor's cache.
_CELLS = 1 << 16
# The entries of a table with a place for each integer between the least and the largest key.
_LARGEST_TABLE = 1 << 20
# Values and keys of these types are compared without a call of code that may raise.
_PLAIN = {str, int, float, bool, type(None)}
# Floats tell integers below this one from all others.
_EXACT = 1 << 53
_LARGEST_BOUND = 1e30


def read_bounds(low: Any, high: Any, names: FeatureNames, width: int) -> Bounds:
    """The bounds of each column, passed as a number, one for each column, or by name.

    Raises: ShapeError for another shape; ParameterError unless low is below high, and both lie in
    [-1e30, 1e30].
    """
    bounds = check_bounds(
        bounds_by_name(low, names, "low"), bounds_by_name(high, names, "high"), width
    )
    for name, bound in (("low", bounds.low), ("high", bounds.high)):
        if (np.abs(bound) > _LARGEST_BOUND).any():
            refuse(name, bound, "it must lie in [-1e30, 1e30]")
    return bounds


def check_number(n: int, neighbors: str, *, grouped: bool) -> None:
    """Refuses no records, where their number is public and they are one group.

    Raises: ShapeError.
    """
    if neighbors == "replace_one" and not grouped and not n:
        raise ShapeError("values has no record, but their public number must be at least 1")


def add_up(
    rows: NDArray[Any], count: Callable[[NDArray[Any]], Integers], groups: Groups | None = None
) -> Integers:
    """The exact sums of the integers that `count` makes of rows, of each group or of all.

    Args:
        rows: Records, shape (n, d).
        count: Makes integers of shape (m, ...) from m rows, row by row; without groups it may add
            up the rows itself, and return one. It gets `2**16` entries at most, or one row.
        groups: The group of each row; None adds up all rows.
    """
    shape = count(rows[:0]).shape[1:]
    total = np.zeros(shape if groups is None else (len(groups.keys), *shape), np.int64)
    for block in blocks_of_cells(*rows.shape[:2]):
        part = count(rows[block])
        if groups is None:
            total += part.sum(axis=0)
        else:
            codes = groups.codes[block]
            np.add.at(total, codes[codes >= 0], part[codes >= 0])
    return total


def blocks_of_cells(n: int, width: int) -> list[slice]:
    """The places of n rows, so many at a time that they have `2**16` entries or are one row."""
    step = max(_CELLS // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, n, step)]


@dataclass(frozen=True)
class Groups:
    """The group of every record.

    Attributes:
        keys: The public keys.
        codes: For each record the place of its key, or -1 where it has none of them.
    """

    keys: tuple[Any, ...]
    codes: Integers


class CodedColumn(NamedTuple):
    """A column whose entries have places among public keys or bins, found a block at a time.

    Attributes:
        n: The number of entries.
        find: The places of the entries of a slice; -1 where one has none.
        count_all: How many entries of a slice have each place, where that is faster than to find
            them.
    """

    n: int
    find: Callable[[slice], Integers]
    count_all: Callable[[slice], Integers] | None = None

    def find_all(self) -> Integers:
        """The places of all entries."""
        codes = np.empty(self.n, np.int64)
        for block in blocks_of_cells(self.n, 1):
            codes[block] = self.find(block)
        return codes


def read_groups(by: Any, keys: Any, names: tuple[str, str]) -> Groups:
    """The group of each record, as `read_keyed` finds them.

    Raises: the errors of `read_keyed`.
    """
    public, column = read_keyed(by, keys, names)
    return Groups(public, column.find_all())


def read_keyed(by: Any, keys: Any, names: tuple[str, str]) -> tuple[tuple[Any, ...], CodedColumn]:
    """Public keys, and the places of private values among them; -1 where a value is none of them.

    No value decides how another one is read: entries of a list are compared with the keys one by
    one, texts and values of dtype object as texts, whatever holds them, and integers exactly.

    Raises: ParameterError unless keys are a list of different values, and for integer keys that
    floats can't tell apart where the column is one of floats; ShapeError unless `by` is a vector.
    """
    try:
        public = tuple(np.asarray(keys).tolist() if isinstance(keys, np.ndarray) else keys)
        distinct = len(set(public)) == len(public) > 0
    except TypeError:
        distinct = False
    if isinstance(keys, str) or not distinct:
        refuse(names[1], keys, "it must list public values, each once")
    if isinstance(by, list | tuple):
        return public, CodedColumn(len(by), lambda block: _find_entries(by[block], public))
    declared = to_categories(names[0], by)
    kind = "" if declared is None else entries_of(names[0], declared[0]).values.dtype.kind
    if declared is None or kind not in "Obuif":
        return public, _find_column(by, public, names)
    # A category is looked up once, however many records have it; the last place is a missing one.
    categories, places = declared
    missing = np.full(1, -1, np.int64)
    if kind == "O":
        missing = _find_entries([None], write_texts(list(public)))
    elif kind in "bui" and None in public:
        missing[:] = public.index(None)
    found = np.append(_find_column(categories, public, names).find_all(), missing)
    return public, CodedColumn(len(places), lambda block: found[places[block]])


def _find_column(column: Any, public: tuple[Any, ...], names: tuple[str, str]) -> CodedColumn:
    """The place of each entry of a column, whose dtype decides how it is compared."""
    values, missing = entries_of(names[0], column)
    if values.ndim != 1:
        raise ShapeError(f"{names[0]} has {values.ndim} dimensions, but it must have one")
    large = [key for key in public if isinstance(key, int) and abs(key) >= _EXACT]
    if large and values.dtype.kind == "f":
        refuse(names[1], large[0], "in a column of floats an integer key must lie below 2**53")
    find = _finder(public, values.dtype)
    nowhere = public.index(None) if None in public else -1

    def find_block(block: slice) -> Integers:
        codes = find(values[block])
        if missing is not None:
            codes[missing[block]] = nowhere
        return codes

    return CodedColumn(len(values), find_block)


def _finder(public: tuple[Any, ...], dtype: np.dtype[Any]) -> Callable[[NDArray[Any]], Integers]:
    """What finds the places of values of a dtype, without a call of Python for each of them.

    What it does is settled by public facts: the keys and the dtype.
    """
    if dtype.kind in "OU":
        texts = write_texts(list(public))
        if dtype.kind == "O":
            return partial(_find_objects, texts)
        plain = [text for text in texts if text is not None and "\0" not in text]
        if len(set(plain)) == len(texts) and dtype.itemsize:
            return _TextFinder(plain, dtype.itemsize // 4)
        return partial(_compare_each, texts)
    kinds = {type(key) for key in public if key is not None}
    in_range = all(abs(key) < _LARGEST_BOUND for key in public if type(key) is float)
    whole = dtype.kind in "ui" and {type(key) for key in public} == {int}
    if whole and max(public) - min(public) < _LARGEST_TABLE:
        return partial(_look_up, _tabulate(public), min(public))
    ordered = dtype.kind in "bui" or (dtype.kind == "f" and dtype.itemsize >= 4 and in_range)
    if ordered and kinds <= {bool, int, float}:
        return partial(_find_numbers, _sort_keys(public, dtype))
    return partial(_compare_each, public)


def _find_objects(texts: Sequence[str | None], values: NDArray[Any]) -> Integers:
    entries = values.tolist()
    are_texts = {*map(type, entries)} == {str}
    return _find_entries(entries if are_texts else write_texts(entries), texts)


def _compare_each(keys: Sequence[Any], values: NDArray[Any]) -> Integers:
    """By a pass for each key: numpy knows how its other dtypes are compared."""
    codes = np.full(len(values), -1, np.int64)
    for place, key in enumerate(keys):
        # No entry equals a key that holds others, but numpy would compare entries with these.
        if not isinstance(key, tuple | range):
            with np.errstate(all="ignore"):
                codes[np.broadcast_to(values == key, codes.shape)] = place
    return codes


def _tabulate(keys: Sequence[int]) -> Integers:
    """The place of each integer from the least key to the largest."""
    table = np.full(max(keys) - min(keys) + 1, -1, np.int64)
    table[[key - min(keys) for key in keys]] = range(len(keys))
    return table


def _look_up(table: Integers, least: int, values: NDArray[Any]) -> Integers:
    """The places of integers in a table that begins with that of `least`."""
    limits = np.iinfo(values.dtype)
    low, high = max(least, limits.min), min(least + len(table) - 1, limits.max)
    if low > high:
        return np.full(len(values), -1, np.int64)
    inside = values.clip(low, high)
    # Unsigned numbers may be beyond int64, but their differences are not; signed ones the reverse.
    if values.dtype.kind == "u":
        places = (inside - values.dtype.type(low)).astype(np.int64)
    else:
        places = inside.astype(np.int64) - low
    codes: Integers = table[places + (low - least)]
    codes[inside != values] = -1
    return codes


def _sort_keys(public: Sequence[Any], dtype: np.dtype[Any]) -> list[tuple[NDArray[Any], Integers]]:
    """Integer keys and float keys apart, in order, and in the dtype they are compared in.

    Each comes with its place; of equal keys the one of the last place comes last.
    """
    sorted_keys = []
    whole: np.dtype[Any] = dtype if dtype.kind in "uif" else np.dtype(np.int64)
    broken: np.dtype[Any] = dtype if dtype.kind == "f" else np.dtype(np.float64)
    for kinds, kind in (((bool, int), whole), ((float,), broken)):
        pairs = [(key, place) for place, key in enumerate(public) if type(key) in kinds]
        if kind.kind in "ui":
            limits = np.iinfo(kind)
            pairs = [(key, place) for key, place in pairs if limits.min <= key <= limits.max]
        keys = np.array([key for key, _ in pairs], kind)
        order = np.argsort(keys, kind="stable")
        order = order[~np.isnan(keys[order])] if kind.kind == "f" else order
        if len(order):
            sorted_keys.append((keys[order], np.array(pairs, object)[order, 1].astype(np.int64)))
    return sorted_keys


def _find_numbers(
    sorted_keys: Sequence[tuple[NDArray[Any], Integers]], values: NDArray[Any]
) -> Integers:
    """By a binary search for each value; where two keys equal it, it is in the last place."""
    codes = np.full(len(values), -1, np.int64)
    for keys, places in sorted_keys:
        compared = values.astype(keys.dtype, copy=False)
        near = np.searchsorted(keys, compared, side="right") - 1
        np.maximum(near, 0, out=near)
        np.maximum(codes, np.where(keys[near] == compared, places[near], -1), out=codes)
    return codes


class _TextFinder:
    """Finds texts of a fixed width by a hash of their letters, and compares with one key each."""

    def __init__(self, keys: Sequence[str], width: int) -> None:
        """Choose a hash that tells the keys apart. A key that is wider equals no value."""
        fitting = [(key, place) for place, key in enumerate(keys) if len(key) <= width]
        self._keys = np.array([key for key, _ in fitting], f"U{width}")
        self._places = np.array([place for _, place in fitting], np.int64)
        self._factor = np.uint64(0x9E3779B97F4A7C15)
        while len(np.unique(self._hash(self._keys))) < len(fitting):
            self._factor += np.uint64(2)
        hashes = self._hash(self._keys)
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._keys, self._places = self._keys[order], self._places[order]

    def __call__(self, values: NDArray[Any]) -> Integers:
        """The place of each value, -1 where it is none of the keys."""
        if not len(self._keys):
            return np.full(len(values), -1, np.int64)
        near = np.searchsorted(self._hashes, self._hash(values)).clip(0, len(self._keys) - 1)
        return np.where(self._keys[near] == values, self._places[near], -1)

    def _hash(self, texts: NDArray[Any]) -> NDArray[np.uint64]:
        native = np.ascontiguousarray(texts, texts.dtype.newbyteorder("="))
        words = np.zeros(len(native), np.uint64)
        letters = native.view(np.uint32).reshape(len(native), native.itemsize // 4)
        for column in letters.T:
            words ^= column
            words *= self._factor
            words ^= words >> np.uint64(32)
        return words


def _find_entries(entries: Sequence[Any], keys: Sequence[Any]) -> Integers:
    places = {key: place for place, key in enumerate(keys)}
    if {*map(type, entries), *map(type, keys)} <= _PLAIN:
        return np.fromiter(map(places.get, entries, repeat(-1)), np.int64, len(entries))

    def place_of(entry: Any) -> int:
        try:
            return places.get(entry, -1)
        except Exception:  # The code of the value's own class may raise anything.
            return -1

    return np.fromiter(map(place_of, entries), np.int64, len(entries))


def read_members(by: Any, keys: Any, n: int) -> Groups | None:
    """The group of each of n records, from the arguments `by` and `groups`; None without groups.

    Raises: ParameterError unless both are passed or none, and keys are different; ShapeError unless
    each record has a group.
    """
    if (by is None) != (keys is None):
        raise ParameterError("by and groups must be passed together: keys must be public")
    if by is None:
        return None
    members = read_groups(by, keys, ("by", "groups"))
    if len(members.codes) != n:
        raise ShapeError("by and values differ in length, but each record has a group")
    return members


def keep_rows(
    persons: Persons, rows: NDArray[Any], members: Groups | None
) -> tuple[NDArray[Any], Groups | None]:
    """The rows that are used, and their groups."""
    kept = None if members is None else Groups(members.keys, persons.select(members.codes))
    return persons.select(rows), kept


class ColumnRows:
    """Columns of one length that are read as rows, of which no copy is made but of a block."""

    def __init__(self, columns: Sequence[NDArray[Any]]) -> None:
        """Keep the columns."""
        self._columns = columns

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The dtype of each column."""
        return [column.dtype for column in self._columns]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of columns."""
        return len(self), len(self._columns)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._columns[0])

    def __getitem__(self, place: Any) -> NDArray[Any]:
        """Some rows, or with a slice of columns beside them, these alone, column by column."""
        some, kept = place if isinstance(place, tuple) else (place, slice(None))
        dtype = np.result_type(*self._columns)
        columns = [column[some] for column in self._columns[kept]]
        if len(columns) == 1:
            rows: NDArray[Any] = columns[0].astype(dtype, copy=False)[:, None]
        else:
            rows = np.stack(columns, dtype=dtype).T
        return rows


def read_columns(values: Any) -> tuple[Any, FeatureNames]:
    """The records as rows, and the names of their columns; None for a single vector.

    Rows are an array, or for a dict something that gives a block of them like one.

    Raises: ShapeError unless there are one or two dimensions, ParameterError for another dtype.
    """
    if isinstance(values, Mapping):
        names = distinct_texts("values", list(values))
        columns = [numbers("values", values[name]) for name in values]
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            raise ShapeError("values has columns that differ in length, but each has every record")
        return ColumnRows(columns), names
    rows = numbers("values", values)
    if rows.ndim == 1:
        return rows[:, None], None
    if rows.ndim != 2 or not rows.shape[1]:
        rule = "it must have one dimension, or two with a column"
        raise ShapeError(f"values has {rows.ndim} dimensions, but {rule}")
    return rows, names_of(values) or tuple(f"x{place}" for place in range(rows.shape[1]))


def whole_columns(rows: Any) -> list[bool]:
    """Whether each column has bool or an integer dtype, which is public."""
    dtypes = rows.dtypes if isinstance(rows, ColumnRows) else [rows.dtype] * rows.shape[1]
    return [dtype.kind in "bui" for dtype in dtypes]


def bounds_by_name(bound: Any, names: FeatureNames, name: str) -> Any:
    """Bounds that are passed by name of column, in the order of the columns.

    Raises: ParameterError unless each column has one.
    """
    if not isinstance(bound, Mapping):
        return bound
    if names is None or set(bound) != set(names):
        raise ParameterError(f"{name} has bounds by name, but it must have one for each column")
    return [bound[column] for column in names]
