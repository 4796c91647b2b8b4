"""Which member gets which record, decided without reading any other record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Integers
from ..data.persons import read_ids, write_texts
from ..exceptions import InsufficientSamples, ShapeError

# No text in UTF-8, which stands for all records without an id.
_NOBODY = b"\xff"
# Computes the rows of each chunk from a key.
Chunks = Callable[[bytes], list[Integers]]


def choose_chunks(ids: ArrayLike | None, n: int, k: int) -> Chunks:
    """Choose how n records are split into k chunks: by their ids if there are any, or by position.

    Raises:
        InsufficientSamples: There are fewer records than chunks, and no ids. With ids the number of
            records is private, and is not compared.
        ShapeError: ids has another shape than (n,).
        ParameterError: ids has no dtype of integers, texts or objects.
    """
    if ids is not None:
        names = _check_ids(ids, n)
        return lambda key: split_by_id(names, key, k)
    if n < k:
        raise InsufficientSamples(f"X has {n:,} records, but {k:,} members need one each")
    return lambda key: split_by_position(n, k)


def split_by_position(n: int, k: int) -> list[Integers]:
    """The rows of each of k chunks: row i is in chunk i mod k.

    Replacing a record changes one chunk. Inserting a record would change many.
    """
    return [np.arange(chunk, n, k) for chunk in range(k)]


def split_by_id(ids: list[bytes], key: bytes, k: int) -> list[Integers]:
    """The rows of each of k chunks, by a keyed hash of the record's id.

    Rows with the same id are in the same chunk. Inserting or removing all rows of one id changes
    one chunk, whatever the key, and keeps the order of rows in all others.
    """
    chunks = np.array([_chunk(name, key, k) for name in ids], np.int64)
    order = np.argsort(chunks, kind="stable")
    return np.split(order, np.searchsorted(chunks[order], np.arange(1, k)))


def _check_ids(ids: ArrayLike, n: int) -> list[bytes]:
    """Validate ids, one for each of n records, and return them as bytes.

    No id causes an error: all records without one are those of one person.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The dtype is that of neither integers, texts nor objects.
    """
    values, missing = read_ids(ids, "iuSUO")
    if values.shape != (n,):
        raise ShapeError(f"ids has shape {values.shape}, but it must be ({n},), as there are rows")
    names: list[Any] = values.tolist()
    if missing is not None:
        names = [None if absent else name for name, absent in zip(names, missing, strict=True)]
    return [_bytes(name) for name in (write_texts(names) if values.dtype.kind != "S" else names)]


def _bytes(name: str | bytes | None) -> bytes:
    if name is None:
        return _NOBODY
    # Lone surrogates are allowed in ids.
    return name if isinstance(name, bytes) else name.encode(errors="surrogatepass")


def _chunk(name: bytes, key: bytes, k: int) -> int:
    return int.from_bytes(hashlib.blake2b(name, key=key, digest_size=16).digest()) % k
