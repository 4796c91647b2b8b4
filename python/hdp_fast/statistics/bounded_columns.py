"""Columns of private records between public bounds, and their exact sums on a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.feature_names import FeatureNames, names_of
from .._support.types import Integers
from .._support.validate import distinct_texts, entries_of, numbers, refuse
from ..data.persons import Persons, write_texts
from ..data.rows import Bounds, check_bounds
from ..exceptions import ParameterError, ShapeError

_CHUNK = 1 << 16
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


def public_number(rows: NDArray[Any], neighbors: str) -> int | None:
    """The number of records where it is public, else None.

    Raises: ShapeError where it is public and 0.
    """
    if neighbors != "replace_one":
        return None
    if not len(rows):
        raise ShapeError("values has no record, but their public number must be at least 1")
    return len(rows)


def add_up(
    rows: NDArray[Any], count: Callable[[NDArray[Any]], Integers], groups: Groups | None = None
) -> Integers:
    """The exact sums of the integers that `count` makes of rows, of each group or of all.

    Args:
        rows: Records, shape (n, d).
        count: Makes integers of shape (m, ...) from m rows, row by row; without groups it may add
            up the rows itself, and return one. It gets `2**16` rows at most.
        groups: The group of each row; None adds up all rows.
    """
    shape = count(rows[:0]).shape[1:]
    total = np.zeros(shape if groups is None else (len(groups.keys), *shape), np.int64)
    for start in range(0, len(rows), _CHUNK):
        part = count(rows[start : start + _CHUNK])
        if groups is None:
            total += part.sum(axis=0)
        else:
            codes = groups.codes[start : start + _CHUNK]
            np.add.at(total, codes[codes >= 0], part[codes >= 0])
    return total


@dataclass(frozen=True)
class Groups:
    """The group of every record.

    Attributes:
        keys: The public keys.
        codes: For each record the place of its key, or -1 where it has none of them.
    """

    keys: tuple[Any, ...]
    codes: Integers


def read_groups(by: Any, keys: Any, names: tuple[str, str]) -> Groups:
    """The places of private values among public keys; -1 where a value is none of them.

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
        return Groups(public, _find_places(by, public))
    values, missing = entries_of(names[0], by)
    if values.ndim != 1:
        raise ShapeError(f"{names[0]} has {values.ndim} dimensions, but it must have one")
    large = [key for key in public if isinstance(key, int) and abs(key) >= _EXACT]
    if large and values.dtype.kind == "f":
        refuse(names[1], large[0], "in a column of floats an integer key must lie below 2**53")
    if values.dtype.kind == "O":
        entries = write_texts(values.tolist())
        return Groups(public, _find_places(entries, write_texts(list(public))))
    texts = write_texts(list(public)) if values.dtype.kind == "U" else public
    codes = np.full(len(values), -1, np.int64)
    for place, key in enumerate(texts):
        codes[np.broadcast_to(values == key, codes.shape)] = place
    if missing is not None:
        codes[missing] = public.index(None) if None in public else -1
    return Groups(public, codes)


def _find_places(entries: Sequence[Any], keys: Sequence[Any]) -> Integers:
    places = {key: place for place, key in enumerate(keys)}

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


def read_columns(values: Any) -> tuple[NDArray[Any], FeatureNames]:
    """The records as rows, and the names of their columns; None for a single vector.

    Raises: ShapeError unless there are one or two dimensions, ParameterError for another dtype.
    """
    if isinstance(values, Mapping):
        names = distinct_texts("values", list(values))
        columns = [numbers("values", values[name]) for name in values]
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            raise ShapeError("values has columns that differ in length, but each has every record")
        return np.stack(columns, axis=1), names
    rows = numbers("values", values)
    if rows.ndim == 1:
        return rows[:, None], None
    if rows.ndim != 2 or not rows.shape[1]:
        rule = "it must have one dimension, or two with a column"
        raise ShapeError(f"values has {rows.ndim} dimensions, but {rule}")
    return rows, names_of(values) or tuple(f"x{place}" for place in range(rows.shape[1]))


def bounds_by_name(bound: Any, names: FeatureNames, name: str) -> Any:
    """Bounds that are passed by name of column, in the order of the columns.

    Raises: ParameterError unless each column has one.
    """
    if not isinstance(bound, Mapping):
        return bound
    if names is None or set(bound) != set(names):
        raise ParameterError(f"{name} has bounds by name, but it must have one for each column")
    return [bound[column] for column in names]
