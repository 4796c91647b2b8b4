"""Rank and solve of hdp_fast.gf2 beside M4RI and numpy.

Run `python benches/bench_gf2.py`: about three minutes and 1 GB of memory on two cores.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file
from numpy.typing import NDArray
from peers import m4ri

from hdp_fast import gf2
from hdp_fast.bench import Words, packed_matrix, random_words
from hdp_fast.reference import gf2 as reference

# galois eliminates row by row, one byte for each bit.
LARGEST_NUMPY, LARGEST_GALOIS = 10_000, 512
TALL, TALL_COLUMNS = 100_000, 10_000


@pytest.mark.sizes("n", (256, 512, 1024, 2048, 4096, 10_000, 20_000), largest=(32_768,), tiny=256)
def bench_rank(race: Race, n: int) -> None:
    """A random square matrix. M4RI, the best of its routes, as its package was built."""
    words = random_words(n, n, np.random.default_rng())
    A = packed_matrix(words, n)
    race.ours(lambda: gf2.rank(A))
    if n <= LARGEST_NUMPY:
        race.numpy("four Russians", lambda: reference.rank(words, n))
        race.numpy("row by row", lambda: rank_by_rows(words, n))
    if m4ri.available()[0]:
        race.peer("M4RI", lambda: time_m4ri(words, n), is_clock=True)
    if n <= LARGEST_GALOIS and importlib.util.find_spec("galois") is not None:
        import galois

        bits = galois.GF2(reference.unpack(words, n))
        race.peer("galois", lambda: np.linalg.matrix_rank(bits))
    race.run()


@pytest.mark.sizes("n", (256, 1024, 4096), tiny=256)
def bench_solve(race: Race, n: int) -> None:
    """A consistent square system."""
    rng = np.random.default_rng()
    words = random_words(n, n, rng)
    A = packed_matrix(words, n)
    b = gf2.dot(A, rng.integers(2, size=n, dtype=np.uint8))
    race.ours(lambda: gf2.solve(A, b))
    race.numpy("four Russians", lambda: reference.solve(words, n, b))
    race.run()


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


def time_m4ri(words: Words, n: int) -> float:
    """Seconds of M4RI's best route: the second run of two, by its own process's clock."""
    return min(times[1] for times in m4ri.report(words, n, 2).seconds.values())


@pytest.mark.parametrize("rank", ["full", "nine tenths"])
def bench_solve_tall(race: Race, rank: str) -> None:
    """A consistent system of many rows. Its limit: a square elimination, and a pass over all."""
    rng = np.random.default_rng()
    rows, columns = race.scaled("rows", TALL), race.scaled("columns", TALL_COLUMNS)
    square = packed_matrix(random_words(columns, columns, rng), columns)
    if rank == "full":
        A = packed_matrix(random_words(rows, columns, rng), columns)
    else:
        A = low_rank(rows, columns, 9 * columns // 10, rng)
    x = rng.integers(2, size=columns, dtype=np.uint8)
    b = gf2.dot(A, x)
    race.ours(lambda: gf2.solve(A, b))
    for threads in (1, 2):
        race.limit("square and pass", lambda: (gf2.rank(square), gf2.dot(A, x)), threads=threads)
    race.run()


def low_rank(rows: int, columns: int, rank: int, rng: np.random.Generator) -> gf2.BitMatrix:
    """A random matrix whose columns are combinations of `rank` random ones, in random order."""
    free = random_words(rows, rank, rng)
    matrix = packed_matrix(free, rank)
    dependent = np.stack(
        [gf2.dot(matrix, rng.integers(2, size=rank, dtype=np.uint8)) for _ in range(columns - rank)]
    )
    order = rng.permutation(columns)
    packed: NDArray[Any] = np.empty((rows, -(-columns // 8)), dtype=np.uint8)
    for start in range(0, rows, 5_000):
        chunk = slice(start, start + 5_000)
        bits = np.hstack([reference.unpack(free[chunk], rank), dependent[:, chunk].T])
        packed[chunk] = np.packbits(bits[:, order], axis=1, bitorder="little")
    return gf2.BitMatrix.from_packed(packed, columns)


# Beside M4RI and galois ---------------------------------------------------------------------------

TASKS = ("multiply", "inverse", "solve", "nullspace", "transpose", "slice")
# What of them galois has; on bytes, in numba.
GALOIS_SIZE = 512


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.sizes("n", (512, 4096), largest=(16_384,), tiny=256)
def bench_algebra(race: Race, task: str, n: int) -> None:
    """The tasks of a library on random n x n matrices: regular, n right-hand sides, n / 2 rows.

    A slice is half of the rows and columns, from the second ones on.
    """
    A, B = regular(n), gf2.BitMatrix.random(n, n)
    work = {
        "multiply": lambda: A @ B,
        "inverse": lambda: gf2.inverse(A),
        "solve": lambda: gf2.solve(A, B),
        "nullspace": lambda: gf2.nullspace(A[: n // 2]),
        "transpose": lambda: A.T,
        "slice": lambda: A[1 : n // 2, 1 : n // 2],
    }
    race.ours(work[task])
    if m4ri.available()[0]:
        race.peer("M4RI", lambda: m4ri.time_task(task, n, 2)[1], is_clock=True)
    if n <= GALOIS_SIZE and importlib.util.find_spec("galois") is not None:
        import galois

        a, b = (galois.GF2(matrix.to_dense()) for matrix in (A, B))
        calls: dict[str, Any] = {
            "multiply": lambda: a @ b,
            "inverse": lambda: np.linalg.inv(a),
            "solve": lambda: np.linalg.solve(a, b),
            "nullspace": lambda: a[: n // 2].null_space(),
            "transpose": lambda: a.T.copy(),
            "slice": lambda: a[1 : n // 2, 1 : n // 2].copy(),
        }
        race.peer("galois", calls[task])
    race.run()


def regular(n: int) -> gf2.BitMatrix:
    """A random matrix of full rank: more than one of four is."""
    while not gf2.determinant(A := gf2.BitMatrix.random(n, n)):
        pass
    return A


if __name__ == "__main__":
    run_file(__file__)
