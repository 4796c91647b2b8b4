"""Numbers from values of any type: no value ever causes an error or a warning."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy import ma
from numpy.typing import ArrayLike, NDArray

from ..exceptions import ParameterError, ShapeError
from .containers import refuse_wide, to_array
from .notes import drop_notes
from .turns import QUIET
from .types import Bits, Floats
from .validate import are_numbers, array, numbers

# The number of rows that are tested at a time: 16 MB at 500 features.
_ROWS = 4096


def nearest_float(value: Any) -> float:
    """The float nearest to a value: infinite beyond all floats, NaN if the value is no real number.

    A text counts as the number that it spells. An array counts only if it has no dimension.
    """
    try:
        return _float(value)
    except Exception:  # The code of the value's own class may raise anything.
        return math.nan


def _float(value: Any) -> float:
    if isinstance(value, np.ndarray):
        if value.ndim or isinstance(value, np.ma.MaskedArray):
            return math.nan
        value = value[()]
    # Python refuses a complex number; numpy would drop its imaginary part and warn.
    if isinstance(value, np.complexfloating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_up(value: float | None) -> float:
    """The number with three digits, not below it: a bound stays one. None is 0."""
    if not value:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.3g}")


def real_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as an array of a type of real numbers, with NaN for objects that are none.

    The type of an array is a public fact; what the objects in it are is private.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The array has any other type, such as longdouble.
    """
    # A value alone may be any object.
    values = to_array(name, value)
    if values.ndim:
        refuse_wide(name, values.dtype)
    if values.dtype.kind == "O":
        return _convert_each(values.flat, values.size).reshape(values.shape)
    if not are_numbers(values):
        rule = "it must be bool, an integer type, a float type or object"
        raise ParameterError(f"{name} has dtype {values.dtype}, but {rule}")
    return values


def to_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Converts entries of any type to numbers one by one, with NaN for one that is no number.

    A single entry can decide the type of the whole array, but must not decide what the others count
    as: a real number among complex ones stays itself, and a text is the number that it spells.
    """
    if values.dtype.kind in "buif":
        return values
    if values.dtype.kind == "c":
        return np.where(values.imag == 0, values.real, np.nan)
    return _convert_each(values.flat, values.size).reshape(values.shape)


def entries(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as `real_array` returns it, but each entry of a list is one value, whatever it is.

    Raises the errors of `real_array`.
    """
    if isinstance(value, list | tuple):
        return _convert_each(value, len(value))
    return real_array(name, array(name, value))


def floats(values: NDArray[Any]) -> Floats:
    """Numbers of any type as an aligned array of float64; numbers beyond it become infinite."""
    with np.errstate(all="ignore"):
        return np.require(values, np.float64, ["C", "A"])


def scale_to_unit(values: NDArray[Any], low: Floats, high: Floats) -> Floats:
    """Finite numbers clipped to finite bounds, low below high, and scaled to [0, 1].

    NaN counts as low. No value overflows and no interval vanishes, however wide or narrow it is.
    """
    # Halves of large bounds do not overflow; of small ones they would, being subnormal, be equal.
    part = np.where(np.maximum(np.abs(low), np.abs(high)) < 1, 1.0, 0.5)
    # Private values neither warn nor raise, whatever numpy is set to do about rounding.
    with np.errstate(all="ignore"):
        start, end = low * part, high * part
        # fmax takes low where a value is NaN. Few passes, since most statistics wait for this one.
        scaled: Floats = np.asarray(np.fmax(floats(values), low))
        np.fmin(scaled, high, out=scaled)
        scaled *= part
        scaled -= start
        scaled /= end - start
    return scaled


def finite_vector(name: str, value: ArrayLike) -> Floats:
    """The value as float64 of shape (n,), all of whose entries are finite.

    Raises:
        ParameterError: The value is no array of real numbers, or an entry is not finite.
        ShapeError: It has not one dimension.
    """
    values = numbers(name, value)
    if values.ndim != 1:
        raise ShapeError(f"{name} has shape {values.shape}, but it must have one dimension")
    reals = floats(values)
    if not np.isfinite(reals).all():
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return reals


def _convert_each(values: Iterable[Any], size: int) -> Floats:
    with np.errstate(all="ignore"):
        return np.fromiter(map(nearest_float, values), np.float64, size)


def real_rows(X: ArrayLike, name: str = "X") -> NDArray[Any]:
    """A matrix of float32 as it is, and one of any other real numbers as float64.

    Errors name the array.

    Raises:
        ParameterError: The array has another dtype.
        ShapeError: It has not two dimensions, or no entry.
    """
    rows = numbers(name, X)
    if rows.ndim != 2 or not rows.size:
        rule = "it must have two dimensions and at least one entry"
        raise ShapeError(f"{name} has shape {rows.shape}, but {rule}")
    return np.require(rows, None, "A") if rows.dtype == np.float32 else floats(rows)


def finite_rows(X: ArrayLike, name: str = "X") -> NDArray[Any]:
    """The matrix as `real_rows` returns it, all of whose entries must be finite.

    Raises a ParameterError for other entries, and the errors of `real_rows`.
    """
    records = real_rows(X, name)
    parts = (records[start : start + _ROWS] for start in range(0, len(records), _ROWS))
    if not all(np.isfinite(part).all() for part in parts):
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return records


def finite_reals(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """Return the value as a finite float64 array, without a copy where it is one already."""
    values = numbers(name, value)
    if values.ndim != dimensions:
        rule = f"it must have {dimensions} dimension(s)"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    entries = floats(values)
    if not np.isfinite(entries).all():
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return entries


def first_index(matches: NDArray[np.bool_]) -> int | None:
    """Return the first index where `matches` is true, or None."""
    return int(matches.argmax()) if matches.any() else None


def freeze(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of the array; views of it are read-only, too. Nothing is copied.

    Clearing the flag alone would not do, since numpy sets it again wherever the base is writeable.
    The view prevents accidents, not intent: its `.base.base` is the array itself, with all entries.
    If the caller's code may see only a part of an array, copy that part first.
    """
    return np.lib.stride_tricks.as_strided(values, writeable=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Silences a caller's code on private records, which might warn of them, print or log them."""
    with QUIET, drop_notes(), np.errstate(all="ignore"):
        yield


def returned_numbers(name: str, value: Any, count: int) -> NDArray[Any]:
    """The numbers that a function returned, one for each record; NaN where there is no number.

    Entries may be of any type, in a list or an array; only how many there are is checked.

    Raises:
        ShapeError: The array has another shape, or the list another length.
    """
    if isinstance(value, ma.MaskedArray):
        hidden = ma.getmaskarray(value)
        value = ma.getdata(value).astype(object)
        value[hidden] = None
    try:
        values = entries(name, value) if isinstance(value, list | tuple) else to_array(name, value)
    except ParameterError as error:
        raise ShapeError(str(error)) from None
    if values.shape != (count,):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({count},)")
    return to_numbers(values)


def clip(values: NDArray[Any], default: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """Clips the numbers to their range; one that is not finite becomes the default."""
    numbers = floats(values)
    return np.where(np.isfinite(numbers), numbers.clip(low, high), default)


def losses(name: str, value: ArrayLike, count: int) -> Floats:
    """Losses in [0, 1]; one that is not finite counts as 1, the worst.

    Raises the errors of `returned_numbers`.
    """
    return clip(returned_numbers(name, value, count), 1.0)


def answers(name: str, value: ArrayLike, count: int) -> Bits | Floats:
    """Answers in [0, 1], as bits if they are integers; one that is not finite counts as 0.

    Raises the errors of `returned_numbers`.
    """
    numbers = returned_numbers(name, value, count)
    if numbers.dtype.kind in "bui":
        return (numbers > 0).astype(np.uint8)
    return clip(numbers, 0.0)


def predictions(name: str, value: ArrayLike, count: int) -> Bits:
    """Labels 0 and 1, whichever is nearer to each number; one that is not finite counts as 0.

    Raises the errors of `returned_numbers`.
    """
    return (clip(returned_numbers(name, value, count), 0.0) > 0.5).astype(np.uint8)
