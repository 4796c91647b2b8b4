"""The private PARITY learner beside the bare linear algebra, its memory, and its sample sizes.

Run `python benches/bench_parity.py`: about two minutes on two cores. The largest case needs 10 GB
of memory and is skipped, with the reason, where there is less.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from _harness import Race, forget_plans, require_memory, run_file
from numpy.typing import NDArray

from hdp_fast import gf2, parity

DIMENSIONS = (1_000, 3_000, 10_000, 30_000)
ALPHA = BETA = 0.05
EPSILON = 1.0
# The rows, their BitMatrix and a sampled system must fit beside each other.
COPIES = 2.7

sizes = pytest.mark.sizes("d", DIMENSIONS, tiny=50)


def bench_plans(table: Callable[..., None]) -> None:
    """Sample sizes of both methods and of the paper's constants."""
    rows = [["d", "loop", "batches", "the paper", "paper / loop"]]
    for d in DIMENSIONS:
        loop, batches = planned(d, "loop"), planned(d, "batches")
        numbers = [f"{size:,}" for size in (d, loop.n, batches.n, loop.n_paper)]
        rows.append([*numbers, f"{loop.n_paper / loop.n:.0f}"])
    table(f"records needed at alpha = beta = {ALPHA}, epsilon = {EPSILON:g}", rows)


def planned(d: int, method: Literal["loop", "batches"]) -> parity.ParityPlan:
    """The plan at alpha = beta = 0.05 and epsilon = 1."""
    return parity.plan(d, alpha=ALPHA, beta=BETA, epsilon=EPSILON, method=method)


@sizes
def bench_learn(race: Race, d: int) -> None:
    """Uniform examples, packed. Its limit: the affine solutions of a sample, and one of them."""
    plan = planned(d, "loop")
    require_memory(COPIES * plan.n * d / 8)
    rng = np.random.default_rng()
    rows = rng.integers(256, size=(plan.n, -(-d // 8)), dtype=np.uint8)
    sampled = rng.random(plan.n) < plan.p
    sample = gf2.BitMatrix.from_packed(rows[sampled], d)
    A, y = labeled(rows, d, rng)
    del rows
    race.ours(lambda: parity.learn(A, y, epsilon=EPSILON, beta=BETA, plan=plan))
    for threads in (1, 2):
        race.limit("bare solve", lambda: gf2.solve(sample, y[sampled]).sample(), threads=threads)
    race.run(plan.n, "record")


def labeled(
    rows: NDArray[np.uint8], d: int, rng: np.random.Generator
) -> tuple[gf2.BitMatrix, NDArray[np.uint8]]:
    """The packed rows as a matrix, and their labels by a random parity."""
    A = gf2.BitMatrix.from_packed(rows, d)
    return A, gf2.dot(A, rng.integers(2, size=d, dtype=np.uint8))


@pytest.mark.parametrize("method", ["loop", "batches"])
def bench_learn_small(race: Race, method: Literal["loop", "batches"]) -> None:
    """A thousand records of 20 bits, without a plan made before."""
    rng = np.random.default_rng()
    rows = rng.integers(256, size=(1_000, 3), dtype=np.uint8)
    rows[:, 2] &= 15
    A, y = labeled(rows, 20, rng)

    def learn() -> None:
        forget_plans()
        parity.learn(A, y, epsilon=EPSILON, beta=BETA, method=method)

    race.ours(learn, threads=(1,))
    race.run()


@sizes
def bench_memory(table: Callable[..., None], d: int) -> None:
    """The largest memory of a process that learns once; the input is packed and copied once."""
    size = planned(d, "loop").n * d / 8
    require_memory(COPIES * size)
    code = f"import bench_parity; bench_parity.print_peak({d})"
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=folder
    )
    row = [f"{d:,}", f"{size / 1e9:.2f}", f"{json.loads(done.stdout) / 1e9:.2f}"]
    table("memory of parity.learn, GB", [["d", "input", "peak"], row])


def print_peak(d: int) -> None:
    """Learns once and prints the largest resident size in bytes."""
    plan, rng = planned(d, "loop"), np.random.default_rng()
    A, y = labeled(rng.integers(256, size=(plan.n, -(-d // 8)), dtype=np.uint8), d, rng)
    parity.learn(A, y, epsilon=EPSILON, beta=BETA, plan=plan)
    print(peak_bytes())


def peak_bytes() -> int:
    """The largest resident size of this process; getrusage on Linux begins with its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, others kilobytes.
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    run_file(__file__)
