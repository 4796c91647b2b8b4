"""Votes and counts of votes as the compiled module takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import array
from ..exceptions import ParameterError, ShapeError

_MOST = 1 << 32


def counts_of(value: ArrayLike) -> NDArray[np.uint32]:
    """Counts of votes (K,) or (m, K), K at least 1, contiguous.

    Raises: ShapeError, ParameterError.
    """
    counts = array("counts", value)
    if counts.ndim not in (1, 2) or not counts.shape[-1]:
        rule = "it must be (K,) or (m, K) with K at least 1"
        raise ShapeError(f"counts has shape {counts.shape}, but {rule}")
    return to_unsigned("counts", counts)


def to_unsigned(name: str, entries: NDArray[Any]) -> NDArray[np.uint32]:
    """The array as contiguous uint32.

    Raises: ParameterError for another kind of dtype, or an entry outside [0, 2**32).
    """
    if entries.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {entries.dtype}, but it must be an integer type")
    narrow = entries.dtype.kind != "i" and entries.dtype.itemsize <= 4
    if not narrow and entries.size and not 0 <= int(entries.min()) <= int(entries.max()) < _MOST:
        rule = f"each must lie in [0, {_MOST - 1}]"
        raise ParameterError(f"{name} has entries out of range, but {rule}")
    return np.require(entries, np.uint32, ["C", "A"])


def votes_of(value: ArrayLike) -> NDArray[np.uint8]:
    """Votes (k, m), contiguous.

    Raises: ShapeError unless there are two dimensions, ParameterError for any dtype but uint8.
    """
    votes = array("votes", value)
    if votes.ndim != 2:
        raise ShapeError(f"votes has shape {votes.shape}, but it must be (k, m)")
    if votes.dtype not in (np.uint8, np.bool_):
        raise ParameterError(f"votes has dtype {votes.dtype}, but it must be uint8")
    return np.require(votes, np.uint8, ["C", "A"])
