"""Linear algebra over GF(2) on bit-packed rows, in plain numpy.

A matrix of m rows and d columns is an array of little-endian 64-bit words, shape (m, ceil(d / 64)):
column j is bit j % 64 of word j // 64. Bits past column d are ignored wherever they are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words = NDArray[np.uint64]
Bits = NDArray[np.uint8]

_WORD = np.dtype("<u8")
_WORD_BITS = 64
_WORD_MASK = (1 << _WORD_BITS) - 1

# Bits of one lookup. 8 was the fastest of 4 to 10 at 10,000 x 10,000 (7 to 11 at 5,000 and
# 20,000): fewer bits make more passes, more bits make tables that cost more than they save.
_TABLE_BITS = 8
# For the at most 64 rows that become pivots a table of 2**8 would cost more than it saves.
_SMALL_TABLE_BITS = 4
# A sweep takes rows in chunks, so that lookup and xor share the cache. Chunks small enough
# for the first-level cache lose more to numpy's cost per call than the cache gives back.
_CHUNK_BYTES = 1 << 20
# Bounds the tables at 16 MB for very wide matrices; narrower tiles only cost time.
_TILE_WORDS = 1024
# The active rows stay contiguous, which lets numpy run one long xor instead of one per row; the
# price is to keep cleared words until a copy cuts off this many.
_STALE_WORDS = 8
# A few more rows than pivots: 80 random rows of 64 bits fall short of full rank once in 2**16.
_CANDIDATES = _WORD_BITS + 16

_MAX_ENUMERATED_COLUMNS = 16


@dataclass(frozen=True, eq=False)
class Solution:
    """All solutions of A x = b over GF(2).

    Attributes:
        consistent: Whether some x satisfies every equation.
        rank: Rank of A.
        nullity: d - rank.
        x: The solution whose free variables are all 0, uint8 of shape (d,); None if there is none.
        nullspace: Basis of {v : A v = 0}, one vector a row, uint8 of shape (nullity, d). Row i has
            a 1 in the i-th free column and 0 in the other free columns.
    """

    consistent: bool
    rank: int
    nullity: int
    x: Bits | None
    nullspace: Bits


def pack(X: ArrayLike) -> Words:
    """Packs a 0/1 matrix into 64-bit words.

    Args:
        X: Zeros and ones of shape (m, d), bool or of an integer dtype.

    Returns:
        Words, uint64 of shape (m, ceil(d / 64)), with padding bits 0.

    Raises:
        ValueError: X has not two dimensions, is neither bool nor integer, or holds other numbers.

    Cost:
        O(m d) time and m d / 8 bytes.
    """
    dense = np.asarray(X)
    if dense.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {dense.ndim}")
    if dense.dtype.kind not in "bui":
        raise ValueError(f"X must be bool or integer, got dtype {dense.dtype}")
    if dense.dtype.kind != "b" and dense.size and (dense.min() < 0 or dense.max() > 1):
        raise ValueError("X must hold only 0 and 1")
    rows, columns = dense.shape
    words = np.zeros((rows, _word_count(columns)), dtype=_WORD)
    packed = np.packbits(dense, axis=1, bitorder="little")
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words


def unpack(words: Words, d: int) -> Bits:
    """Unpacks words into a 0/1 matrix, the inverse of `pack`.

    Args:
        words: Words, uint64 of shape (m, ceil(d / 64)).
        d: Number of columns.

    Returns:
        Bits, uint8 of shape (m, d).

    Raises:
        ValueError: words and d do not fit together.

    Cost:
        O(m d) time and m d bytes.
    """
    checked = np.ascontiguousarray(_checked(words, d))
    return np.unpackbits(checked.view(np.uint8), axis=1, count=d, bitorder="little")


def rank(words: Words, d: int) -> int:
    """Computes the rank of a packed matrix.

    Args:
        words: Words, uint64 of shape (m, ceil(d / 64)); they stay as they are.
        d: Number of columns.

    Raises:
        ValueError: words and d do not fit together.

    Cost:
        O(m d min(m, d) / (8 * 64)) word operations, and one copy of the words.

    Source:
        The method of the four Russians (Arlazarov, Dinic, Kronrod and Faradzev 1970).
    """
    return int(_echelonize(_checked(words, d), d)[0].size)


def solve(words: Words, d: int, b: ArrayLike) -> Solution:
    """Solves A x = b and describes all solutions.

    The pivots are the leftmost possible columns, so x and the null space are those of the reduced
    row echelon form.

    Args:
        words: A as words, uint64 of shape (m, ceil(d / 64)); they stay as they are.
        d: Number of columns.
        b: Zeros and ones of shape (m,).

    Raises:
        ValueError: words, d and b do not fit together, or b holds other numbers than 0 and 1.

    Cost:
        O(m d min(m, d) / (8 * 64)) word operations for the elimination, O(rank^2 (1 + nullity / 64)
        / 8) for the back substitution, and nullity * d bytes for the null space.

    Source:
        The method of the four Russians (Arlazarov, Dinic, Kronrod and Faradzev 1970).
    """
    matrix = _checked(words, d)
    rows = matrix.shape[0]
    right = _checked_bits("b", b, rows)
    augmented = np.zeros((rows, _word_count(d + 1)), dtype=_WORD)
    augmented[:, : matrix.shape[1]] = matrix
    word, bit = divmod(d, _WORD_BITS)
    augmented[:, word] &= np.uint64((1 << bit) - 1)
    augmented[:, word] |= right.astype(np.uint64) << np.uint64(bit)

    pivots, echelon, rest = _echelonize(augmented, d)
    found = int(pivots.size)
    consistent = not (rest[:, -1] >> np.uint64(bit)).any()
    free = np.setdiff1d(np.arange(d), pivots, assume_unique=True)
    dependent = _back_substitute(echelon, pivots, np.append(free, d))

    x = None
    if consistent:
        x = np.zeros(d, dtype=np.uint8)
        x[pivots] = dependent[:, -1]
    nullspace = np.zeros((free.size, d), dtype=np.uint8)
    nullspace[:, pivots] = dependent[:, :-1].T
    nullspace[np.arange(free.size), free] = 1
    return Solution(consistent, found, d - found, x, nullspace)


def dot(words: Words, d: int, x: ArrayLike) -> Bits:
    """Multiplies a matrix by a vector over GF(2).

    The parity of a sum of bit counts is the parity of the bit count of the xor of the words.

    Args:
        words: Words, uint64 of shape (m, ceil(d / 64)).
        d: Number of columns.
        x: Zeros and ones of shape (d,).

    Returns:
        The product, uint8 of shape (m,).

    Raises:
        ValueError: words, d and x do not fit together, or x holds other numbers than 0 and 1.

    Cost:
        O(m d / 64) word operations.
    """
    matrix = _checked(words, d)
    mask = pack(_checked_bits("x", x, d)[np.newaxis])[0]
    folded = np.empty(matrix.shape[0], dtype=_WORD)
    chunk = _chunk_rows(matrix.shape[1])
    for start in range(0, matrix.shape[0], chunk):
        selected = matrix[start : start + chunk] & mask
        np.bitwise_xor.reduce(selected, axis=1, out=folded[start : start + chunk])
    return _parity(folded)


def enumerate_solutions(words: Words, d: int, b: ArrayLike) -> list[int]:
    """Finds all solutions of A x = b by trying every x; bit j of a solution is variable j.

    It shares no code with the elimination, so that tests can compare the two.

    Args:
        words: A as words, uint64 of shape (m, ceil(d / 64)).
        d: Number of columns, at most 16.
        b: Zeros and ones of shape (m,).

    Raises:
        ValueError: d exceeds 16, or words, d and b do not fit together.

    Cost:
        O(m 2^d) word operations.
    """
    if d > _MAX_ENUMERATED_COLUMNS:
        raise ValueError(f"d must be at most {_MAX_ENUMERATED_COLUMNS}, got {d}")
    matrix = _checked(words, d)
    right = _checked_bits("b", b, matrix.shape[0])
    alive = np.arange(1 << d, dtype=np.uint64)
    for row, bit in zip(matrix[:, 0] if d else np.zeros(right.size, _WORD), right, strict=True):
        alive = alive[_parity(alive & row) == bit]
    return [int(candidate) for candidate in alive]


def _word_count(d: int) -> int:
    return -(-d // _WORD_BITS)


def _chunk_rows(width: int) -> int:
    return max(1, _CHUNK_BYTES // (8 * max(1, width)))


def _checked(words: Words, d: int) -> Words:
    if d < 0:
        raise ValueError(f"d must be at least 0, got {d}")
    matrix = np.asarray(words)
    if matrix.dtype != np.uint64:
        raise ValueError(f"words must be uint64, got {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[1] != _word_count(d):
        raise ValueError(f"words must have shape (m, {_word_count(d)}), got {matrix.shape}")
    return matrix.astype(_WORD, copy=False)


def _checked_bits(name: str, bits: ArrayLike, length: int) -> Bits:
    vector = np.asarray(bits)
    if vector.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {vector.shape}")
    if ((vector != 0) & (vector != 1)).any():
        raise ValueError(f"{name} must hold only 0 and 1")
    return vector.astype(np.uint8)


def _parity(words: Words) -> Bits:
    folded = words.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        folded ^= folded >> np.uint64(shift)
    return (folded & np.uint64(1)).astype(np.uint8)


class _Scratch:
    """Memory that every sweep over at most `width` words uses again.

    Fresh arrays for each sweep would be returned to the operating system and mapped anew, which
    took a fifth of the time at 1,000 columns.
    """

    def __init__(self, width: int) -> None:
        tile = min(width, _TILE_WORDS)
        self.tables: Words = np.empty(_WORD_BITS // _TABLE_BITS * tile << _TABLE_BITS, dtype=_WORD)
        self.chunks: Words = np.empty((2, max(tile, _CHUNK_BYTES // 8)), dtype=_WORD)


def _echelonize(matrix: Words, d: int) -> tuple[NDArray[np.intp], Words, Words]:
    """Computes a row echelon form of the first d columns; columns past d are carried along.

    The matrix stays as it is. Returns the pivot columns in increasing order, the rows that hold
    them in the same order, and what is left of the other rows (their last words only).

    The elimination works on panels of one word. The panel alone decides which rows become pivots
    and how they combine; then one sweep of table lookups clears the panel from all other rows. Rows
    of one panel are reduced against each other. Rows of earlier panels are not reduced against
    later ones.
    """
    pivots: list[int] = []
    echelon = np.zeros((min(matrix.shape[0], d), matrix.shape[1]), dtype=_WORD)
    active = matrix.copy()
    scratch = _Scratch(matrix.shape[1])
    cut = 0
    for word in range(_word_count(d)):
        if word - cut == _STALE_WORDS:
            active, cut = active[:, _STALE_WORDS:].copy(), word
        panel = active[:, word - cut].copy()
        if d - word * _WORD_BITS < _WORD_BITS:
            panel &= np.uint64((1 << (d % _WORD_BITS)) - 1)
        chosen, basis = _panel_basis(panel, scratch)
        if not chosen:
            continue
        columns, combinations = zip(*sorted(basis), strict=True)
        reduced = np.zeros((len(chosen), active.shape[1]), dtype=_WORD)
        _add_product(
            reduced,
            np.array(combinations, dtype=_WORD),
            _placed(active[chosen], range(len(chosen))),
            _SMALL_TABLE_BITS,
            scratch,
        )
        _add_product(active, panel, _placed(reduced, columns), _TABLE_BITS, scratch)
        echelon[len(pivots) : len(pivots) + len(chosen), cut:] = reduced
        active = _without(active, chosen)
        pivots.extend(word * _WORD_BITS + column for column in columns)
    return np.array(pivots, dtype=np.intp), echelon[: len(pivots)], active


def _panel_basis(panel: Words, scratch: _Scratch) -> tuple[list[int], list[tuple[int, int]]]:
    """Chooses rows whose words span a panel, and how they combine into its reduced echelon form.

    Returns the chosen rows, and for each pivot bit a set of chosen rows, as a bit mask over their
    positions: the xor of the set has that pivot bit and no other.

    A few rows nearly always span the panel, so these are reduced one by one as Python integers. The
    others are read only if the few do not suffice.
    """
    chosen: list[int] = []
    echelon: list[tuple[int, int]] = []
    candidates = np.flatnonzero(panel)
    while candidates.size:
        batch = candidates[:_CANDIDATES]
        _extend_basis(batch, panel[batch], chosen, echelon)
        echelon = _reduce_basis(echelon)
        if len(chosen) == _WORD_BITS or candidates.size <= _CANDIDATES:
            break
        bits = [pivot.bit_length() - 1 for pivot, _ in echelon]
        words = np.array([[vector & _WORD_MASK] for _, vector in echelon], dtype=_WORD)
        remainder = panel.copy()
        target = remainder[:, np.newaxis]
        _add_product(target, panel, _placed(words, bits), _TABLE_BITS, scratch)
        # Distinct remainders, so that every round adds several pivots whatever the matrix.
        distinct, first = np.unique(remainder, return_index=True)
        candidates = first[distinct != 0]
    return chosen, [(pivot.bit_length() - 1, vector >> _WORD_BITS) for pivot, vector in echelon]


def _extend_basis(
    rows: NDArray[np.intp], words: Words, chosen: list[int], echelon: list[tuple[int, int]]
) -> None:
    """Appends to `chosen` rows that are independent of those before, until they span every column.

    `echelon` holds pairs (pivot bit, vector). The low 64 bits of a vector are a word whose lowest
    set bit is the pivot bit; the bits above say of which chosen rows it is the xor.
    """
    for row, word in zip(rows.tolist(), words.tolist(), strict=True):
        vector = word | 1 << (_WORD_BITS + len(chosen))
        for pivot, other in echelon:
            if vector & pivot:
                vector ^= other
        left = vector & _WORD_MASK
        if left:
            echelon.append((left & -left, vector))
            chosen.append(row)
            if len(chosen) == _WORD_BITS:
                return


def _reduce_basis(echelon: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Clears every pivot bit from all vectors but its own; earlier pivots are absent already."""
    reduced: list[tuple[int, int]] = []
    for own, echelon_vector in reversed(echelon):
        vector = echelon_vector
        for pivot, other in reduced:
            if vector & pivot:
                vector ^= other
        reduced.append((own, vector))
    return reduced


def _placed(rows: Words, bits: Sequence[int]) -> Words:
    """Returns 64 rows, of which row bits[i] is rows[i] and the others are 0."""
    placed = np.zeros((_WORD_BITS, rows.shape[1]), dtype=_WORD)
    placed[list(bits)] = rows
    return placed


def _add_product(
    target: Words, coefficients: Words, rows: Words, bits: int, scratch: _Scratch
) -> None:
    """Adds to the target the product over GF(2) of a packed (n, 64) matrix and 64 packed rows.

    The target of shape (n, w) is changed in place. The coefficients have shape (n,), the rows (64,
    w), and `bits` is the number of bits of one lookup.
    """
    digits = _digits(coefficients, bits)
    for start in range(0, target.shape[1], _TILE_WORDS):
        tile = slice(start, start + _TILE_WORDS)
        tables = _tables(rows[:, tile], bits, scratch)
        _add_lookups(target[:, tile], tables, digits, scratch)


def _tables(rows: Words, bits: int, scratch: _Scratch) -> Words:
    """All `2**bits` xors of each group of rows: (64, w) to (64 / bits, `2**bits`, w)."""
    width = rows.shape[1]
    groups = rows.reshape(_WORD_BITS // bits, bits, width)
    shape = (groups.shape[0], 1 << bits, width)
    tables = scratch.tables[: math.prod(shape)].reshape(shape)
    tables[:, 0] = 0
    for bit in range(bits):
        half = 1 << bit
        np.bitwise_xor(tables[:, :half], groups[:, bit, np.newaxis], out=tables[:, half : 2 * half])
    return tables


def _digits(words: Words, bits: int) -> NDArray[np.intp]:
    """The digits of each word in base `2**bits`, lowest first: (n,) to (64 / bits, n)."""
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8).T
    if bits == 8:
        return octets.astype(np.intp, order="C")
    halves = np.stack((octets & 15, octets >> 4), axis=1).reshape(16, -1)
    return halves.astype(np.intp)


def _add_lookups(target: Words, tables: Words, digits: NDArray[np.intp], scratch: _Scratch) -> None:
    """Adds to row i of the target the row digits[g, i] of every table g."""
    rows, width = target.shape
    chunk = _chunk_rows(width)
    total, looked_up = scratch.chunks[:, : chunk * width].reshape(2, chunk, width)
    for start in range(0, rows, chunk):
        stop = min(start + chunk, rows)
        first, other = total[: stop - start], looked_up[: stop - start]
        # mode="clip" because numpy buffers the output of a checked take; digits are in range.
        tables[0].take(digits[0, start:stop], axis=0, out=first, mode="clip")
        for table, digit in zip(tables[1:], digits[1:], strict=True):
            table.take(digit[start:stop], axis=0, out=other, mode="clip")
            np.bitwise_xor(first, other, out=first)
        np.bitwise_xor(target[start:stop], first, out=target[start:stop])


def _without(active: Words, chosen: list[int]) -> Words:
    """The rows that were not chosen, as a view: rows from the top move into the gaps below."""
    count = len(chosen)
    taken = set(chosen)
    gaps = [row for row in chosen if row >= count]
    active[gaps] = active[[row for row in range(count) if row not in taken]]
    return active[count:]


def _back_substitute(echelon: Words, pivots: NDArray[np.intp], columns: NDArray[np.intp]) -> Bits:
    """The given columns of the reduced row echelon form, uint8 of shape (rank, len(columns)).

    `echelon` holds the leading rows that `_echelonize` left, with its pivots.
    """
    wanted = np.empty((echelon.shape[0], _word_count(columns.size)), dtype=_WORD)
    chunk = _chunk_rows(8 * echelon.shape[1])
    for start in range(0, echelon.shape[0], chunk):
        dense = np.unpackbits(
            echelon[start : start + chunk].view(np.uint8), axis=1, bitorder="little"
        )
        wanted[start : start + chunk] = pack(dense[:, columns])

    scratch = _Scratch(wanted.shape[1])
    panels, starts = np.unique(pivots // _WORD_BITS, return_index=True)
    stops = np.append(starts, pivots.size)[1:]
    for word, start, stop in zip(panels[::-1], starts[::-1], stops[::-1], strict=True):
        known = _placed(wanted[start:stop], (pivots[start:stop] % _WORD_BITS).tolist())
        _add_product(wanted[:start], echelon[:start, word], known, _TABLE_BITS, scratch)
    return unpack(wanted, columns.size)
