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
    found = array("counts", value)
    if found.ndim not in (1, 2) or not found.shape[-1]:
        rule = "it must be (K,) or (m, K) with K at least 1"
        raise ShapeError(f"counts has shape {found.shape}, but {rule}")
    return unsigned("counts", found)


def unsigned(name: str, found: NDArray[Any]) -> NDArray[np.uint32]:
    """The array as contiguous uint32.

    Raises: ParameterError for another kind of dtype, or an entry outside [0, 2**32).
    """
    if found.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {found.dtype}, but it must be an integer type")
    narrow = found.dtype.kind != "i" and found.dtype.itemsize <= 4
    if not narrow and found.size and not 0 <= int(found.min()) <= int(found.max()) < _MOST:
        rule = f"each must lie in [0, {_MOST - 1}]"
        raise ParameterError(f"{name} has entries out of range, but {rule}")
    return np.require(found, np.uint32, ["C", "A"])


def votes_of(value: ArrayLike) -> NDArray[np.uint8]:
    """Votes (k, m), contiguous.

    Raises: ShapeError unless there are two dimensions, ParameterError for any dtype but uint8.
    """
    found = array("votes", value)
    if found.ndim != 2:
        raise ShapeError(f"votes has shape {found.shape}, but it must be (k, m)")
    if found.dtype not in (np.uint8, np.bool_):
        raise ParameterError(f"votes has dtype {found.dtype}, but it must be uint8")
    return np.require(found, np.uint8, ["C", "A"])
