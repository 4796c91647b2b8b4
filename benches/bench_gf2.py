"""Rank and solve of hdp_fast.gf2 beside M4RI and the numpy reference.

Run `python benches/bench_gf2.py`: about five minutes and 1 GB of memory on two cores.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from _harness import make_parser, print_aligned, print_json
from numpy.typing import NDArray
from peers import m4ri

from hdp_fast import gf2
from hdp_fast.bench import Action, Words, medians, packed_matrix, random_words
from hdp_fast.reference import gf2 as reference

SIZES = (256, 1024, 4096, 10_000, 20_000)
LARGEST_REFERENCE = 10_000
SMALL = 4096
TALL = (100_000, 10_000)
TALL_RANK = 9_000


def main() -> None:
    """Print both tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--size", type=int, nargs="*", default=SIZES, help="square matrices")
    parser.add_argument("--no-tall", action="store_true", help="leave out 100,000 x 10,000")
    arguments = parser.parse_args()
    usable, reason = m4ri.available()
    squares = [time_square(size, arguments.repeats, usable) for size in arguments.size]
    tall = [] if arguments.no_tall else time_tall(arguments.repeats)
    if arguments.json:
        skipped = None if usable else reason
        print_json({"m4ri_skipped": skipped, "squares": squares, "tall": tall})
        return
    print_squares(squares)
    if not usable:
        print(f"M4RI skipped: {reason}")
    print_tall(tall)


def time_square(size: int, repeats: int, with_m4ri: bool) -> dict[str, Any]:
    """Median seconds of the rank of a random square matrix, all routes taking turns."""
    words = random_words(size, size, np.random.default_rng())
    A = packed_matrix(words, size)
    routes: dict[str, Action] = {
        "1 thread": lambda: gf2.rank(A, threads=1),
        "2 threads": lambda: gf2.rank(A, threads=2),
    }
    if size <= LARGEST_REFERENCE:
        routes["numpy"] = lambda: reference.rank(words, size)
        routes["numpy by rows"] = lambda: rank_by_rows(words, size)
    # Small matrices take so little that a burst of another process would decide the median.
    rounds = repeats * 5 if size <= SMALL else repeats
    seconds, openmp = _take_turns(routes, rounds, words if with_m4ri else None, size)
    return {"size": size, "seconds": seconds, "m4ri_openmp": openmp}


def rank_by_rows(words: Words, columns: int) -> int:
    """Rank by packed rows and one vectorized xor a pivot, as numpy is mostly used for this.

    The package's own reference goes further: it, too, uses the method of the four Russians.
    """
    matrix = words.copy()
    top = 0
    for column in range(columns):
        word, bit = divmod(column, 64)
        rows = top + np.flatnonzero(matrix[top:, word] >> np.uint64(bit) & np.uint64(1))
        if rows.size:
            matrix[[top, rows[0]]] = matrix[[rows[0], top]]
            matrix[rows[1:], word:] ^= matrix[top, word:]
            top += 1
    return top


def _take_turns(
    routes: dict[str, Action], rounds: int, words: Words | None, size: int
) -> tuple[dict[str, float], bool | None]:
    """Like medians, with M4RI's routes, which its own process times, joining every round.

    M4RI runs on one thread, as Debian builds it. Every route's second run of two is timed: while
    the others take their turn, its caches and the second core go cold.
    """
    times: dict[str, list[float]] = {}
    openmp = None
    for _ in range(rounds):
        found = {name: _seconds(action) for name, action in routes.items()}
        if words is not None:
            peer = m4ri.report(words, size, 2)
            openmp = peer.openmp
            found |= {f"M4RI {route}": each[1] for route, each in peer.seconds.items()}
        for name, value in found.items():
            times.setdefault(name, []).append(value)
    return {name: statistics.median(each) for name, each in times.items()}, openmp


def _seconds(action: Action) -> float:
    action()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def time_tall(repeats: int) -> list[dict[str, Any]]:
    """Median seconds of solving a consistent 100,000 x 10,000 system, of full and of lower rank."""
    rng = np.random.default_rng()
    rows, columns = TALL
    square = packed_matrix(random_words(columns, columns, rng), columns)
    full = packed_matrix(random_words(rows, columns, rng), columns)
    return [
        _time_solve(full, square, repeats, rng),
        _time_solve(low_rank(rows, columns, TALL_RANK, rng), square, repeats, rng),
    ]


def _time_solve(
    A: gf2.BitMatrix, square: gf2.BitMatrix, repeats: int, rng: np.random.Generator
) -> dict[str, Any]:
    x = rng.integers(2, size=A.shape[1], dtype=np.uint8)
    b = gf2.dot(A, x)
    rank = gf2.solve(A, b).rank
    actions: dict[str, Action] = {
        "solve": lambda: gf2.solve(A, b),
        "square rank": lambda: gf2.rank(square),
        "one pass": lambda: gf2.dot(A, x),
    }
    return {"shape": list(A.shape), "rank": rank, "seconds": medians(actions, repeats=repeats)}


def low_rank(rows: int, columns: int, rank: int, rng: np.random.Generator) -> gf2.BitMatrix:
    """A random matrix whose columns are combinations of `rank` random ones, in random order."""
    free = random_words(rows, rank, rng)
    matrix = packed_matrix(free, rank)
    dependent = np.stack(
        [gf2.dot(matrix, rng.integers(2, size=rank, dtype=np.uint8)) for _ in range(columns - rank)]
    )
    order = rng.permutation(columns)
    packed = np.empty((rows, -(-columns // 8)), dtype=np.uint8)
    for start in range(0, rows, 5_000):
        chunk = slice(start, start + 5_000)
        bits = np.hstack([_unpacked(free[chunk], rank), dependent[:, chunk].T])
        packed[chunk] = np.packbits(bits[:, order], axis=1, bitorder="little")
    return gf2.BitMatrix.from_packed(packed, columns)


def _unpacked(words: Words, columns: int) -> NDArray[np.uint8]:
    return reference.unpack(words, columns)


def print_squares(squares: list[dict[str, Any]]) -> None:
    """Seconds of every route, then what the best of M4RI and numpy take for each of ours."""
    names = list(dict.fromkeys(name for row in squares for name in row["seconds"]))
    header = ["n", *names, "M4RI / 1", "M4RI / 2", "numpy / 2", "by rows / 2"]
    lines = [[f"{row['size']:,}", *_square_cells(row["seconds"], names)] for row in squares]
    print("rank of n x n random, median milliseconds and ratios (higher is better for us)")
    print_aligned([header, *lines])
    if any(row["m4ri_openmp"] for row in squares):
        print("M4RI was built with OpenMP here and was held to one thread")


def _square_cells(seconds: dict[str, float], names: list[str]) -> list[str]:
    best = min((time for name, time in seconds.items() if name.startswith("M4RI")), default=None)
    one, two = seconds["1 thread"], seconds["2 threads"]
    numpy = [(seconds.get(name), two) for name in ("numpy", "numpy by rows")]
    ratios = [(best, one), (best, two), *numpy]
    return [
        *(f"{seconds[name] * 1e3:.3g}" if name in seconds else "-" for name in names),
        *("-" if peer is None else f"{peer / ours:.2f}" for peer, ours in ratios),
    ]


def print_tall(tall: list[dict[str, Any]]) -> None:
    """Seconds of solve, and its ratio to a square elimination with and without a pass."""
    if not tall:
        return
    header = ["rows", "columns", "rank", "solve", "square rank", "one pass"]
    lines = [[*header, "solve / square", "solve / (square + pass)"]]
    for row in tall:
        solve, square, streamed = (row["seconds"][name] for name in header[3:])
        lines.append(
            [
                *(f"{count:,}" for count in (*row["shape"], row["rank"])),
                *(f"{value:.3f}" for value in (solve, square, streamed)),
                f"{solve / square:.2f}",
                f"{solve / (square + streamed):.2f}",
            ]
        )
    print("\nsolve of a consistent tall system, median seconds, all threads (lower is better)")
    print_aligned(lines)


if __name__ == "__main__":
    main()
