"""Between this package and a caller's functions: arrays they cannot change, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import array
from ._numbers import Floats, entries, floats
from .exceptions import ShapeError

Bits = NDArray[np.uint8]


def locked(values: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that nobody can make writeable again, nor any view of it; no copy.

    To clear a flag would not do: numpy sets it again wherever the base is writeable.
    """
    return np.lib.stride_tricks.as_strided(values, writeable=False)


def said(name: str, value: ArrayLike, count: int) -> NDArray[Any]:
    """What a function said of so many records, a number of each, NaN for what is none.

    Raises: ShapeError for another shape, ParameterError for an array that holds no numbers.
    """
    shape = array(name, value).shape
    if shape != (count,):
        raise ShapeError(f"{name} has shape {shape}, but it must be ({count},)")
    return entries(name, value)


def clipped(values: NDArray[Any], default: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """The numbers in their range; what is not finite counts as the default."""
    found = floats(values)
    return np.where(np.isfinite(found), found.clip(low, high), default)


def losses(name: str, value: ArrayLike, count: int) -> Floats:
    """Losses in [0, 1]; one that is not finite counts as 1, the worst.

    Raises: as said.
    """
    return clipped(said(name, value, count), 1.0)


def answers(name: str, value: ArrayLike, count: int) -> Bits | Floats:
    """Answers in [0, 1], bits where they are integers; one that is not finite counts as 0.

    Raises: as said.
    """
    found = said(name, value, count)
    if found.dtype.kind in "bui":
        return (found > 0).astype(np.uint8)
    return clipped(found, 0.0)


def predictions(name: str, value: ArrayLike, count: int) -> Bits:
    """Labels 0 and 1, the nearer one of each number; one that is not finite counts as 0.

    Raises: as said.
    """
    return (clipped(said(name, value, count), 0.0) > 0.5).astype(np.uint8)
