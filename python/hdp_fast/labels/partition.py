"""Which member sees which record, decided without looking at any other record."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import array
from ..exceptions import ParameterError, ShapeError

Indices = NDArray[np.int64]


def by_position(n: int, k: int) -> list[Indices]:
    """The rows of each of k chunks: row i is in chunk i mod k.

    Replacing a record changes one chunk; inserting one would change many.
    """
    return [np.arange(chunk, n, k) for chunk in range(k)]


def by_identity(ids: list[bytes], key: bytes, k: int) -> list[Indices]:
    """The rows of each of k chunks, by a keyed hash of the record's id, equal ids together.

    Inserting or removing all rows of one id changes one chunk, whatever the key, and keeps the
    order in all others.
    """
    chunks = np.array([_chunk(name, key, k) for name in ids], np.int64)
    order = np.argsort(chunks, kind="stable")
    return np.split(order, np.searchsorted(chunks[order], np.arange(1, k)))


def names(ids: ArrayLike, n: int) -> list[bytes]:
    """Ids as bytes, one for each of n records.

    Raises: ShapeError for another shape, ParameterError for anything but integers and texts.
    """
    found = array("ids", ids)
    if found.shape != (n,):
        raise ShapeError(f"ids has shape {found.shape}, but it must be ({n},), as there are rows")
    if found.dtype.kind == "O" and all(isinstance(name, str) for name in found):
        found = found.astype(str)
    if found.dtype.kind not in "iuSU" and n:
        raise ParameterError(f"ids has dtype {found.dtype}, but it must hold integers or texts")
    return [_bytes(name) for name in found.tolist()]


def _bytes(name: Any) -> bytes:
    # A lone surrogate is an id like any other.
    return name if isinstance(name, bytes) else str(name).encode(errors="surrogatepass")


def _chunk(name: bytes, key: bytes, k: int) -> int:
    return int.from_bytes(hashlib.blake2b(name, key=key, digest_size=16).digest()) % k
