"""Calls of functions that the caller gave: arrays they cannot change, checks of results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ma
from numpy.typing import ArrayLike, NDArray

from ..exceptions import ShapeError
from .numbers import entries, floats, to_numbers
from .turns import QUIET
from .types import Bits, Floats
from .validate import array


def freeze(values: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that refuses to be written to, and so do views of it; no copy.

    To clear a flag would not do: numpy sets it again wherever the base is writeable. This keeps
    off accidents, not intent: `.base.base` of the view is the array itself, with all of its
    entries. Where there are more than somebody may see, a copy of the part must be made before.
    """
    return np.lib.stride_tricks.as_strided(values, writeable=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Silence a caller's code on private records: no warning, print or log tells of them."""
    with QUIET, np.errstate(all="ignore"):
        yield


def returned_numbers(name: str, value: Any, count: int) -> NDArray[Any]:
    """The numbers that a function returned, one for each record; NaN for what is none.

    An entry may be anything, in a list or an array of any type: only their number is checked.

    Raises: ShapeError for another shape, or a list of another length.
    """
    if isinstance(value, ma.MaskedArray):
        hidden = ma.getmaskarray(value)
        value = ma.getdata(value).astype(object)
        value[hidden] = None
    values = entries(name, value) if isinstance(value, list | tuple) else array(name, value)
    if values.shape != (count,):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({count},)")
    return to_numbers(values)


def clip(values: NDArray[Any], default: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """The numbers in their range; what is not finite counts as the default."""
    numbers = floats(values)
    return np.where(np.isfinite(numbers), numbers.clip(low, high), default)


def losses(name: str, value: ArrayLike, count: int) -> Floats:
    """Losses in [0, 1]; one that is not finite counts as 1, the worst.

    Raises: as returned_numbers.
    """
    return clip(returned_numbers(name, value, count), 1.0)


def answers(name: str, value: ArrayLike, count: int) -> Bits | Floats:
    """Answers in [0, 1], bits where they are integers; one that is not finite counts as 0.

    Raises: as returned_numbers.
    """
    numbers = returned_numbers(name, value, count)
    if numbers.dtype.kind in "bui":
        return (numbers > 0).astype(np.uint8)
    return clip(numbers, 0.0)


def predictions(name: str, value: ArrayLike, count: int) -> Bits:
    """Labels 0 and 1, the nearer one of each number; one that is not finite counts as 0.

    Raises: as returned_numbers.
    """
    return (clip(returned_numbers(name, value, count), 0.0) > 0.5).astype(np.uint8)
