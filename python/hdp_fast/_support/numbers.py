"""Numbers from what people hold: no value is ever an error or a warning."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import ParameterError, ShapeError
from .types import Floats
from .validate import are_numbers, array, numbers

# Rows whose entries are tested at a time: 16 MB at 500 features.
_ROWS = 4096


def nearest_float(value: Any) -> float:
    """The float nearest to a value: infinite beyond all floats, NaN for what is no real number.

    A text counts as the number that it spells, an array as no number unless it has no dimension.
    """
    try:
        return _float(value)
    except Exception:  # Whatever the code of the value's own class raises.
        return math.nan


def _float(value: Any) -> float:
    if isinstance(value, np.ndarray):
        if value.ndim or isinstance(value, np.ma.MaskedArray):
            return math.nan
        value = value[()]
    # Python refuses a complex number, numpy would drop a part of it and warn.
    if isinstance(value, np.complexfloating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def real_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as an array of a type of real numbers, NaN for an object that is none.

    What type an array is of is a public fact, what the objects in it are is not.

    Raises: ShapeError where rows differ in length, ParameterError for any other type.
    """
    values = array(name, value)
    if values.dtype.kind == "O":
        return _convert_each(values.flat, values.size).reshape(values.shape)
    if not are_numbers(values):
        rule = "it must be bool, an integer type, a float type or object"
        raise ParameterError(f"{name} has dtype {values.dtype}, but {rule}")
    return values


def to_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Entries of any type as numbers, each for itself: NaN for one that is none.

    One entry decides what type the others are of, and must not decide what they count as: a real
    number among complex ones is itself, and a text is what it spells.
    """
    if values.dtype.kind in "buif":
        return values
    if values.dtype.kind == "c":
        return np.where(values.imag == 0, values.real, np.nan)
    return _convert_each(values.flat, values.size).reshape(values.shape)


def entries(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as real_array has it, but each entry of a list is one value, whatever it is.

    Raises: as real_array.
    """
    if isinstance(value, list | tuple):
        return _convert_each(value, len(value))
    return real_array(name, value)


def floats(values: NDArray[Any]) -> Floats:
    """Numbers of any type as an aligned array of float64, those beyond it infinite."""
    with np.errstate(all="ignore"):
        return np.require(values, np.float64, ["C", "A"])


def _convert_each(values: Iterable[Any], size: int) -> Floats:
    with np.errstate(all="ignore"):
        return np.fromiter(map(nearest_float, values), np.float64, size)


def real_rows(X: ArrayLike) -> NDArray[Any]:
    """A matrix of float32 as it is, of any other real numbers as float64.

    Raises: ParameterError for other dtypes, ShapeError unless it has two dimensions and an entry.
    """
    rows = numbers("X", X)
    if rows.ndim != 2 or not rows.size:
        rule = "it must have two dimensions and at least one entry"
        raise ShapeError(f"X has shape {rows.shape}, but {rule}")
    return np.require(rows, None, "A") if rows.dtype == np.float32 else floats(rows)


def finite_rows(X: ArrayLike) -> NDArray[Any]:
    """The matrix as real_rows has it, all entries finite.

    Raises: as real_rows, and ParameterError.
    """
    records = real_rows(X)
    parts = (records[start : start + _ROWS] for start in range(0, len(records), _ROWS))
    if not all(np.isfinite(part).all() for part in parts):
        raise ParameterError("X has an infinite entry or NaN, but all must be finite")
    return records
