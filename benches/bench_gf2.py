"""Elimination, products and solutions of hdp_fast.gf2 beside M4RI, numpy and the limit of the arm.

Run `python benches/bench_gf2.py`: ten minutes and 2 GB of memory on two cores; `--largest` adds
65,536 columns. The limit is as many products of 64 x 64 bits as the work has, with operands that
stay in the first cache, timed in the same run on the same arm. `HDP_FAST_ISA=avx2` picks an arm,
`-k arms` runs all that this processor has, and `--cpu` counts processor time, for a busy machine.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _harness import Race, require_memory, run_file
from numpy.typing import NDArray
from peers import m4ri

from hdp_fast import gf2
from hdp_fast._core import multiply_in_cache
from hdp_fast.bench import Words, packed_matrix, random_words
from hdp_fast.reference import gf2 as reference

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 10_000, 16_384, 20_000, 32_768)
# galois eliminates row by row, one byte for each bit; packed numpy takes minutes beyond.
LARGEST_NUMPY, LARGEST_GALOIS = 10_000, 512
TALL, TALL_COLUMNS = 100_000, 10_000
# Products of blocks that are timed for the limit.
PRODUCTS = 1 << 12
# What an arm needs of the processor, as Linux calls it.
ARMS = {"portable": (), "avx2": ("avx2",), "gfni256": ("avx2", "gfni"),
        "gfni": ("avx512f", "gfni", "avx512_vpopcntdq"), "neon": ("asimd",)}  # fmt: skip
# M4RI's best route on a quiet machine, seconds by n: other programs cost it more than they cost us.
QUIET_NAME = "x M4RI on a quiet AMD Zen 4"
QUIET = {10_000: 0.162, 20_000: 1.438}


def elimination(rows: int, columns: int, rank: int) -> float:
    """Products of 64 x 64 bits in an elimination, whose pivot rows meet all that is beyond them."""
    return (rank * rows * columns - rank**2 * (rows + columns) / 2 + rank**3 / 3) / 64**3


def add_limit(race: Race, products: float) -> None:
    """So many products at the speed of the arm, on one thread and on two."""
    for threads in (1, 2):
        share = products / PRODUCTS / threads
        action = lambda: multiply_in_cache(PRODUCTS)  # noqa: E731 - the same twice
        race.limit("products in the cache", action, threads=threads, share=share)


def run_beside_quiet(race: Race, n: int) -> None:
    """Runs the routes and divides M4RI's time on the quiet machine by ours, too."""
    race.run()
    for route in race.routes:
        if n in QUIET and route.role == "ours" and route.times:
            route.figures[QUIET_NAME] = float(f"{QUIET[n] / route.seconds:.3g}")


@pytest.mark.sizes("n", SIZES, largest=(65_536,), tiny=256)
def bench_rank(race: Race, n: int) -> None:
    """A random square matrix. M4RI, the best of its routes, as its package was built."""
    require_memory(5 * n * n / 8)
    words = random_words(n, n, np.random.default_rng())
    A = packed_matrix(words, n)
    race.ours(lambda: gf2.rank(A))
    if n <= LARGEST_NUMPY:
        race.numpy("four Russians", lambda: reference.rank(words, n))
        race.numpy("row by row", lambda: rank_by_rows(words, n))
    add_m4ri(race, words, n)
    if n <= LARGEST_GALOIS and importlib.util.find_spec("galois") is not None:
        import galois

        bits = galois.GF2(reference.unpack(words, n))
        race.peer("galois", lambda: np.linalg.matrix_rank(bits))
    add_limit(race, elimination(n, n, n))
    run_beside_quiet(race, n)


@pytest.mark.parametrize("shape", ["tall", "wide", "nine tenths of rank", "one in 32"])
def bench_rank_shapes(race: Race, shape: str) -> None:
    """Matrices that are no random squares. The limit of the tall one leaves its last rows out."""
    rng = np.random.default_rng()
    n = race.scaled("n", TALL_COLUMNS)
    rows, columns = {"tall": (n, n // 10), "wide": (n // 10, n)}.get(shape, (n, n))
    words, rank = random_words(rows, columns, rng), min(rows, columns)
    if shape == "one in 32":
        for _ in range(4):
            words &= random_words(rows, columns, rng)
    elif shape == "nine tenths of rank":
        rank = 9 * n // 10
        words = words_of(low_rank(rows, columns, rank, rng))
    A = packed_matrix(words, columns)
    race.ours(lambda: gf2.rank(A))
    add_m4ri(race, words, columns)
    add_limit(race, elimination(min(rows, columns + 64), columns, rank))
    race.run()


@pytest.mark.sizes("n", SIZES, largest=(65_536,), tiny=256)
def bench_product(race: Race, n: int) -> None:
    """The product of random square matrices. M4RI's saves products by Strassen's method."""
    require_memory(6 * n * n / 8)
    rng = np.random.default_rng()
    A, B = (packed_matrix(random_words(n, n, rng), n) for _ in range(2))
    race.ours(lambda: A @ B)
    if m4ri.available()[0]:
        race.peer("M4RI", lambda: min(m4ri.time_task("multiply", n, repeats(n))), is_clock=True)
    add_limit(race, (n / 64) ** 3)
    race.run()


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.sizes("n", (1024, 4096, 10_000, 20_000), tiny=256)
def bench_arms(race: Race, arm: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random square matrix with each arm that this processor has."""
    if not set(ARMS[arm]) <= flags():
        pytest.skip(f"this processor lacks one of {', '.join(ARMS[arm])}")
    monkeypatch.setenv("HDP_FAST_ISA", arm)
    words = random_words(n, n, np.random.default_rng())
    A = packed_matrix(words, n)
    race.ours(lambda: gf2.rank(A))
    add_m4ri(race, words, n)
    add_limit(race, elimination(n, n, n))
    run_beside_quiet(race, n)


@cache
def flags() -> set[str]:
    """What the processor can do, as Linux calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return {flag for line in lines if line.startswith(("flags", "Features"))
            for flag in line.partition(":")[2].split()}  # fmt: skip


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


def add_m4ri(race: Race, words: Words, columns: int) -> None:
    """M4RI's best route by its own process's clock, where it is installed."""
    if m4ri.available()[0]:
        times = lambda: m4ri.report(words, columns, repeats(columns)).seconds  # noqa: E731
        race.peer("M4RI", lambda: min(map(min, times().values())), is_clock=True)


def repeats(n: int) -> int:
    """Runs of M4RI in a turn, of which the fastest counts: its first meets cold caches."""
    return 3 if n <= LARGEST_NUMPY else 1


@pytest.mark.parametrize("rank", ["full", "nine tenths"])
def bench_solve_tall(race: Race, rank: str) -> None:
    """A consistent system of many rows, all of which are verified.

    The limit of full rank: a square elimination, and a pass over all. Else the products of that
    elimination, and of all rows with a basis of the null space: exactness is not left to chance.
    """
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
    if rank == "full":
        for threads in (1, 2):
            race.limit(
                "square and pass", lambda: (gf2.rank(square), gf2.dot(A, x)), threads=threads
            )
    else:
        found = gf2.rank(A)
        verification = rows * found * (columns - found) / 64**3
        add_limit(race, elimination(columns + 64, columns, found) + verification)
    race.run()


def words_of(A: gf2.BitMatrix) -> Words:
    """The rows in words."""
    packed = A.to_packed()
    rows = np.zeros((A.shape[0], 8 * -(-A.shape[1] // 64)), np.uint8)
    rows[:, : packed.shape[1]] = packed
    return rows.view(np.uint64)


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
