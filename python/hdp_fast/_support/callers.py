"""Calls of functions that the caller passed: arrays that they cannot change, checks of results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ma
from numpy.typing import ArrayLike, NDArray

from ..exceptions import ParameterError, ShapeError
from .containers import to_array
from .notes import drop_notes
from .numbers import entries, floats, to_numbers
from .turns import QUIET
from .types import Bits, Floats


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
