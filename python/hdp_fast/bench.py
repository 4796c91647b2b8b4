"""`hdp-fast bench`: the GF(2) linear algebra beside the numpy reference and installed peers."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import gf2
from .exceptions import ParameterError
from .reference import gf2 as reference

Words = NDArray[np.uint64]
Action = Callable[[], object]

SIZES = (256, 512, 1024, 2048, 4096)

# Beyond it the reference alone takes minutes.
_LARGEST_SIZE = 20_000
# galois eliminates row by row, one byte for each bit.
_LARGEST_GALOIS = 512
_SECONDS_PER_SIZE = 10.0
_CACHED_BYTES = 1 << 16
_STREAMED_BYTES = 1 << 28


def medians(
    actions: Mapping[str, Action], *, repeats: int = 5, seconds: float = float("inf")
) -> dict[str, float]:
    """Median time of every action, the actions taking turns.

    Turns let a change of the machine's speed hit all of them alike. Every action runs once before
    the clock starts, so that caches and threads are warm.
    actions: what to time; repeats: timed rounds; seconds: no new round starts after so long,
    though there is always one.
    Returns seconds, under the same names.

    Raises: whatever an action raises.
    Cost: (repeats + 1) times that of all actions.
    Source: none.
    """
    begin = time.perf_counter()
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(max(1, repeats)):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - start)
        if time.perf_counter() - begin > seconds:
            break
    return {name: statistics.median(values) for name, values in times.items()}


def random_words(rows: int, columns: int, rng: np.random.Generator) -> Words:
    """A uniformly random bit matrix in 64-bit words, padding bits zero.

    rows, columns: its shape; rng: where the bits come from. Returns uint64 (rows, words).

    Raises: nothing.
    Cost: O(rows columns / 64).
    Source: none.
    """
    width = -(-columns // 64)
    words = rng.integers(1 << 64, size=(rows, width), dtype=np.uint64)
    if columns % 64:
        words[:, -1] &= np.uint64((1 << (columns % 64)) - 1)
    return words


def packed_matrix(words: Words, columns: int) -> gf2.BitMatrix:
    """The same bits as a BitMatrix.

    words: uint64 (m, ceil(columns / 64)); columns: how many of their bits count.

    Raises: HdpFastError when words and columns do not fit together.
    Cost: one copy.
    Source: none.
    """
    rows = words.astype("<u8", copy=False).view(np.uint8)[:, : -(-columns // 8)]
    return gf2.BitMatrix.from_packed(rows, columns)


def xor_bits_per_second() -> float:
    """Bits that one core combines by xor in a second, the operands lying in its cache.

    Takes no arguments.

    Raises: nothing.
    Cost: some milliseconds.
    Source: numpy's xor on arrays of 64 KB.
    """
    left, right, out = (np.ones(_CACHED_BYTES // 8, dtype=np.uint64) for _ in range(3))
    return 8 * _CACHED_BYTES / _fastest(lambda: np.bitwise_xor(left, right, out=out), 500)


def bytes_per_second() -> float:
    """Bytes that one core reads from main memory in a second.

    Takes no arguments.

    Raises: nothing.
    Cost: some tenths of a second and 256 MB.
    Source: numpy's or-reduction of an array larger than any cache.
    """
    large = np.ones(_STREAMED_BYTES // 8, dtype=np.uint64)
    return _STREAMED_BYTES / _fastest(lambda: np.bitwise_or.reduce(large), 3)


def run(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Time rank and solve of random square systems on one and two threads, and their peers.

    sizes: numbers of rows, from 1 to 20,000 each.
    Returns what `hdp-fast bench --json` prints: the machine's limits and one row for each size.

    Raises: ParameterError for a size out of range.
    Cost: under a minute for the default sizes.
    Source: n^3 / 3 bit operations are those of schoolbook elimination; the four Russians need
        fewer, so a rate above the machine's is possible. A matrix must be read once at least.
    """
    for size in sizes:
        if not 1 <= size <= _LARGEST_SIZE:
            raise ParameterError(f"size must be 1 to {_LARGEST_SIZE:,}, got {size:,}")
    limits = {"xor_bits_per_second": xor_bits_per_second(), "bytes_per_second": bytes_per_second()}
    return {"limits": limits, "rows": [_row(size, limits) for size in sizes]}


def table(results: Mapping[str, Any]) -> str:
    """The results of run as text.

    results: what run returned.

    Raises: nothing.
    Cost: constant.
    Source: none.
    """
    limits = results["limits"]
    return "\n".join(
        [
            f"one core: {limits['xor_bits_per_second']:.2e} bit operations/s by xor in the cache, "
            f"{limits['bytes_per_second']:.2e} bytes/s from memory",
            "",
            "median milliseconds",
            *align(_milliseconds(results["rows"])),
            "",
            "ratios: peer / ours on two threads; two threads / one; distance from the limits",
            *align(_ratios(results["rows"])),
            "",
            "bit ops/s: n^3/3 over the time of rank on one thread; 'of xor' divides it by the xor",
            "rate, 'reads' is that time over one pass through the matrix in memory.",
        ]
    )


def align(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table whose columns are flush right.

    rows: cells, as many in every row; the first row is the header.

    Raises: ValueError when the rows differ in length.
    Cost: linear.
    Source: none.
    """
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]


def _fastest(action: Action, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def _row(size: int, limits: Mapping[str, float]) -> dict[str, Any]:
    rng = np.random.default_rng(size)
    words = random_words(size, size, rng)
    A = packed_matrix(words, size)
    b = gf2.dot(A, rng.integers(2, size=size, dtype=np.uint8))
    ours: dict[str, Action] = {
        "rank, 1 thread": lambda: gf2.rank(A, threads=1),
        "rank, 2 threads": lambda: gf2.rank(A, threads=2),
        "solve, 1 thread": lambda: gf2.solve(A, b, threads=1),
        "solve, 2 threads": lambda: gf2.solve(A, b, threads=2),
    }
    peers = _peers(words, size, b)
    seconds = medians({**ours, **peers}, seconds=_SECONDS_PER_SIZE)
    one = seconds["rank, 1 thread"]
    rate = size**3 / 3 / one
    return {
        "size": size,
        "seconds": seconds,
        "peer_ratios": {name: seconds[name] / seconds[_our_twin(name)] for name in peers},
        "speedup_by_threads": one / seconds["rank, 2 threads"],
        "bit_operations_per_second": rate,
        "of_xor_limit": rate / limits["xor_bits_per_second"],
        "times_one_read": one * limits["bytes_per_second"] / (size * size / 8),
    }


def _our_twin(peer: str) -> str:
    return f"{peer.split(',')[0]}, 2 threads"


def _peers(words: Words, size: int, b: NDArray[np.uint8]) -> dict[str, Action]:
    peers: dict[str, Action] = {
        "rank, numpy": lambda: reference.rank(words, size),
        "solve, numpy": lambda: reference.solve(words, size, b),
    }
    if size <= _LARGEST_GALOIS:
        peers |= _galois(words, size)
    return peers


def _galois(words: Words, size: int) -> dict[str, Action]:
    try:
        galois = importlib.import_module("galois")
    except ImportError:
        return {}
    matrix = galois.GF2(reference.unpack(words, size))
    return {"rank, galois": lambda: np.linalg.matrix_rank(matrix)}


def _milliseconds(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    cells = [[_cell(row["seconds"].get(name), 1e3) for name in names] for row in rows]
    return _with_sizes(names, rows, cells)


def _ratios(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    names = list(dict.fromkeys(name for row in rows for name in row["peer_ratios"]))
    cells = [
        [
            *(_cell(row["peer_ratios"].get(name), 1) for name in names),
            f"{row['speedup_by_threads']:.2f}",
            f"{row['bit_operations_per_second']:.2e}",
            f"{row['of_xor_limit']:.2f}",
            f"{row['times_one_read']:.1f}",
        ]
        for row in rows
    ]
    return _with_sizes([*names, "2 / 1 threads", "bit ops/s", "of xor", "reads"], rows, cells)


def _with_sizes(
    header: Sequence[str], rows: Sequence[Mapping[str, Any]], cells: Sequence[Sequence[str]]
) -> list[list[str]]:
    sized = [[f"{row['size']:,}", *line] for row, line in zip(rows, cells, strict=True)]
    return [["size", *header], *sized]


def _cell(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{value * scale:.3g}"
