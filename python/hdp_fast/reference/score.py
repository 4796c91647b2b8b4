"""Error counts of hypotheses with numpy alone: over bits, one a byte or 64 a word, and halfspaces.

Classes over bits take the features by columns: numpy reads a column of a row-major matrix many
times more slowly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Literals = Sequence[tuple[int, int]]
"""Features of a conjunction, each with the value that it demands."""


def columns(X: Bits) -> Bits:
    """The columns of X, of shape (d, m), each contiguous."""
    return np.ascontiguousarray(X.T)


def conjunction_errors(columns: Bits, y: Bits, conjunctions: Sequence[Literals]) -> list[int]:
    """The number of records that each conjunction gets wrong, with a bit a byte."""
    value = np.empty_like(y)
    counts = []
    for literals in conjunctions:
        value.fill(1)
        for i, (feature, wanted) in enumerate(literals):
            _and(value, columns[feature], wanted, first=i == 0)
        np.bitwise_xor(value, y, out=value)
        counts.append(int(np.count_nonzero(value.view(np.bool_))))
    return counts


def _and(value: Bits, column: Bits, wanted: int, *, first: bool) -> None:
    if first and wanted:
        np.copyto(value, column)
    elif first:
        np.bitwise_xor(column, np.uint8(1), out=value)
    elif wanted:
        np.bitwise_and(value, column, out=value)
    else:
        # For bits, "a and not b" is a > b, which needs no copy of the negation.
        np.greater(value, column, out=value.view(np.bool_))


def at_least_errors(columns: Bits, y: Bits, votes: Sequence[tuple[Literals, int]]) -> list[int]:
    """The number of records that each "at least r of these literals" gets wrong, a bit a byte."""
    true, value = np.empty_like(y), np.empty_like(y)
    counts = []
    for literals, threshold in votes:
        true.fill(0)
        for feature, wanted in literals:
            if wanted:
                np.add(true, columns[feature], out=true)
            else:
                np.subtract(true, columns[feature], out=true)
        # Negated literals were subtracted instead of added, which the threshold makes up for.
        least = threshold - sum(not wanted for _, wanted in literals)
        np.greater_equal(true.view(np.int8), np.int8(least), out=value.view(np.bool_))
        np.bitwise_xor(value, y, out=value)
        counts.append(int(np.count_nonzero(value.view(np.bool_))))
    return counts


def halfspace_errors(
    X: Floats, y: Bits, W: Floats, b: Floats, *, rows: int | None = None
) -> NDArray[np.int64]:
    """The number of records that each halfspace gets wrong, by matrix products on blocks."""
    labels, step = y.view(np.bool_)[:, None], rows or max(1, len(X))
    counts = np.zeros(len(W), np.int64)
    for start in range(0, len(X), step):
        scores = X[start : start + step] @ W.T
        scores += b
        counts += np.count_nonzero((scores >= 0) != labels[start : start + step], axis=0)
    return counts


def packed(bits: Bits) -> Words:
    """Packs rows of bits into words of 64, zeros at the end: (..., m) to (..., ceil(m / 64))."""
    size = -(-bits.shape[-1] // 64) * 8
    found = np.zeros((*bits.shape[:-1], size), np.uint8)
    some = np.packbits(bits, axis=-1, bitorder="little")
    found[..., : some.shape[-1]] = some
    return found.view(np.uint64)


def packed_conjunction_errors(
    columns: Words, y: Words, records: int, conjunctions: Sequence[Literals]
) -> list[int]:
    """The number of records that each conjunction gets wrong, 64 bits a word; needs numpy 2."""
    everybody = packed(np.ones(records, np.uint8))
    value, rest = np.empty_like(y), np.empty_like(y)
    ones = np.empty(y.shape, np.uint8)
    counts = []
    for literals in conjunctions:
        np.copyto(value, everybody)
        for feature, wanted in literals:
            if wanted:
                np.bitwise_and(value, columns[feature], out=value)
            else:
                np.bitwise_and(value, columns[feature], out=rest)
                np.bitwise_xor(value, rest, out=value)
        np.bitwise_xor(value, y, out=value)
        np.bitwise_count(value, out=ones)
        counts.append(int(ones.sum(dtype=np.int64)))
    return counts


def parity_errors(columns: Bits, y: Bits, masks: Bits) -> list[int]:
    """The number of records that each sum of features over GF(2) gets wrong, with a bit a byte."""
    value = np.empty_like(y)
    counts = []
    for mask in masks:
        np.copyto(value, y)
        for feature in np.flatnonzero(mask):
            np.bitwise_xor(value, columns[feature], out=value)
        counts.append(int(np.count_nonzero(value.view(np.bool_))))
    return counts
