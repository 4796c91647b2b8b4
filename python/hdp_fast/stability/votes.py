"""Votes and counts of votes in the form that the compiled module takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import whole_array
from ..exceptions import ParameterError, ShapeError

_MOST = 1 << 32


def counts_of(value: ArrayLike) -> NDArray[np.uint32]:
    """Validate counts of votes, (K,) or (m, K) with K at least 1, and return them contiguous.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The dtype is no integer type, or an entry lies outside `[0, 2**32)`.
    """
    counts = whole_array("counts", value)
    if counts.ndim not in (1, 2) or not counts.shape[-1]:
        rule = "it must be (K,) or (m, K) with K at least 1"
        raise ShapeError(f"counts has shape {counts.shape}, but {rule}")
    return to_unsigned("counts", counts)


def to_unsigned(name: str, entries: NDArray[Any]) -> NDArray[np.uint32]:
    """Convert an array of integers to contiguous uint32.

    Raises:
        ParameterError: The dtype is no integer type, or an entry lies outside `[0, 2**32)`.
    """
    if entries.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {entries.dtype}, but it must be an integer type")
    narrow = entries.dtype.kind != "i" and entries.dtype.itemsize <= 4
    if not narrow and entries.size and not 0 <= int(entries.min()) <= int(entries.max()) < _MOST:
        rule = f"each must lie in [0, {_MOST - 1}]"
        raise ParameterError(f"{name} has entries out of range, but {rule}")
    return np.require(entries, np.uint32, ["C", "A"])


def votes_of(value: ArrayLike) -> NDArray[np.uint8]:
    """Validate votes (k, m) and return them as contiguous uint8.

    Raises:
        ShapeError: There are not two dimensions.
        ParameterError: The dtype is neither uint8 nor bool.
    """
    votes = whole_array("votes", value)
    if votes.ndim != 2:
        raise ShapeError(f"votes has shape {votes.shape}, but it must be (k, m)")
    if votes.dtype not in (np.uint8, np.bool_):
        raise ParameterError(f"votes has dtype {votes.dtype}, but it must be uint8")
    return np.require(votes, np.uint8, ["C", "A"])
