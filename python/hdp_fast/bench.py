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

# Above this size the reference alone takes minutes.
_LARGEST_SIZE = 20_000
# galois eliminates row by row, one byte for each bit.
_LARGEST_GALOIS = 512
_SECONDS_PER_SIZE = 10.0
_CACHED_BYTES = 1 << 16
_STREAMED_BYTES = 1 << 28


def medians(
    actions: Mapping[str, Action], *, repeats: int = 5, seconds: float = float("inf")
) -> dict[str, float]:
    """Computes the median time of every action, with the actions taking turns.

    Turns let a change of the machine's speed hit all of them alike. Every action runs once before
    the clock starts, so that caches and threads are warm.

    Args:
        actions: Actions to time, by name.
        repeats: Number of timed rounds.
        seconds: Time after which no new round starts; there is always one round.

    Returns:
        Seconds, under the same names.
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


def fastest(action: Action, repeats: int = 7) -> float:
    """The least seconds of some runs of an action, after one that wakes caches and cores.

    Args:
        action: What is timed.
        repeats: Number of timed runs.
    """
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def random_words(rows: int, columns: int, rng: np.random.Generator) -> Words:
    """Draws a uniformly random bit matrix in 64-bit words, with padding bits 0.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        rng: Generator of the bits.

    Returns:
        Words, uint64 of shape (rows, ceil(columns / 64)).
    """
    width = -(-columns // 64)
    words = rng.integers(1 << 64, size=(rows, width), dtype=np.uint64)
    if columns % 64:
        words[:, -1] &= np.uint64((1 << (columns % 64)) - 1)
    return words


def packed_matrix(words: Words, columns: int) -> gf2.BitMatrix:
    """The same bits as a BitMatrix, copied.

    Args:
        words: Words, uint64 of shape (m, ceil(columns / 64)).
        columns: Number of columns.

    Raises:
        HdpFastError: words and columns do not fit together.
    """
    rows = words.astype("<u8", copy=False).view(np.uint8)[:, : -(-columns // 8)]
    return gf2.BitMatrix.from_packed(rows, columns)


def xor_bits_per_second() -> float:
    """Measures how many bits a second one core combines by xor, on 64 KB in its cache."""
    left, right, out = (np.ones(_CACHED_BYTES // 8, dtype=np.uint64) for _ in range(3))
    return 8 * _CACHED_BYTES / fastest(lambda: np.bitwise_xor(left, right, out=out), 500)


def bytes_per_second() -> float:
    """Measures how many bytes a second one core reads from main memory, on 256 MB."""
    large = np.ones(_STREAMED_BYTES // 8, dtype=np.uint64)
    return _STREAMED_BYTES / fastest(lambda: np.bitwise_or.reduce(large), 3)


def run(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Times rank and solve of random square systems on one and two threads, and their peers.

    A rate is `n**3 / 3` bit operations, those of schoolbook elimination, by the time. The method of
    the four Russians needs fewer, so a rate above the machine's is possible. A matrix must be read
    at least once, which the machine's memory bounds. The default sizes take less than a minute.

    Args:
        sizes: Numbers of rows, from 1 to 20,000 each.

    Returns:
        What `hdp-fast bench --json` prints: the limits of the machine and one row for each size.

    Raises:
        ParameterError: A size is out of range.
    """
    for size in sizes:
        if not 1 <= size <= _LARGEST_SIZE:
            raise ParameterError(f"size must be 1 to {_LARGEST_SIZE:,}, got {size:,}")
    limits = {"xor_bits_per_second": xor_bits_per_second(), "bytes_per_second": bytes_per_second()}
    return {"limits": limits, "rows": [_row(size, limits) for size in sizes]}


def table(results: Mapping[str, Any]) -> str:
    """The results of `run` as text."""
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
    """The lines of a table whose columns are flush right; the first of the rows is the header.

    Raises:
        ValueError: The rows differ in length.
    """
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]


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
