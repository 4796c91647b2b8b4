"""The private PARITY learner beside the bare linear algebra, its memory, and its sample sizes.

Run `python benches/bench_parity.py`: about five minutes on two cores. The largest case needs
10 GB of memory and is skipped, with the reason, where there is less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from _harness import make_parser, print_aligned, print_json
from numpy.typing import NDArray

from hdp_fast import gf2, parity
from hdp_fast.bench import Action, medians

DIMENSIONS = (1_000, 3_000, 10_000, 30_000)
ALPHA = BETA = 0.05
EPSILON = 1.0
GIGABYTE = 1e9
# The rows, their BitMatrix and a sampled system must fit beside each other.
COPIES = 2.7


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--d", type=int, nargs="*", default=DIMENSIONS)
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case is not None:
        print(json.dumps(time_case(arguments.case, arguments.repeats)))
        return
    plans = [plan_row(d) for d in arguments.d]
    cases = [run_case(d, arguments.repeats) for d in arguments.d]
    if arguments.json:
        print_json({"plans": plans, "cases": cases})
        return
    print_plans(plans)
    print_cases(cases)


def plan_row(d: int) -> dict[str, int]:
    """Sample sizes of both methods and of the paper's constants."""
    loop, batches = planned(d, "loop"), planned(d, "batches")
    return {"d": d, "loop": loop.n, "batches": batches.n, "paper": loop.n_paper}


def planned(d: int, method: Literal["loop", "batches"]) -> parity.ParityPlan:
    """The plan at alpha = beta = 0.05 and epsilon = 1."""
    return parity.plan(d, alpha=ALPHA, beta=BETA, epsilon=EPSILON, method=method)


def run_case(d: int, repeats: int) -> dict[str, Any]:
    """Time one dimension in a process of its own, whose peak memory is then this case's."""
    needed = COPIES * planned(d, "loop").n * d / 8
    free = available_bytes()
    if needed > free:
        reason = f"needs {needed / GIGABYTE:.1f} GB of memory, {free / GIGABYTE:.1f} GB are free"
        return {"d": d, "skipped": reason}
    command = [sys.executable, __file__, "--case", str(d), "--repeats", str(repeats)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    case: dict[str, Any] = json.loads(done.stdout)
    return case


def available_bytes() -> float:
    """Memory that a new process may take; infinite where the system doesn't say."""
    table = Path("/proc/meminfo")
    if not table.exists():
        return float("inf")
    lines = dict(line.split(":", 1) for line in table.read_text().splitlines())
    return float(lines["MemAvailable"].split()[0]) * 1024


def time_case(d: int, repeats: int) -> dict[str, Any]:
    """Median seconds of learn and of a bare solve of a sampled system of the same law."""
    plan = planned(d, "loop")
    rng = np.random.default_rng()
    rows = rng.integers(256, size=(plan.n, -(-d // 8)), dtype=np.uint8)
    sampled = rng.random(plan.n) < plan.p
    sample_rows = rows[sampled]
    A = gf2.BitMatrix.from_packed(rows, d)
    del rows
    y = gf2.dot(A, rng.integers(2, size=d, dtype=np.uint8))
    before = peak_bytes()

    def learn() -> object:
        return parity.learn(A, y, epsilon=EPSILON, beta=BETA, plan=plan)

    first = seconds(learn)
    # The peak only ever rises, so it is read before the bare system adds its own copy.
    after = peak_bytes()
    sample = gf2.BitMatrix.from_packed(sample_rows, d)
    times = medians({"learn": learn, "solve": bare_solve(sample, y[sampled])}, repeats=repeats)
    return {
        "d": d,
        "n": plan.n,
        "sampled": sample.shape[0],
        "seconds": {"first learn": first, **times},
        "peak_bytes": after,
        "peak_bytes_before": before,
        "input_bytes": plan.n * d // 8,
    }


def bare_solve(sample: gf2.BitMatrix, labels: NDArray[np.uint8]) -> Action:
    """What learn can't do without: the affine solutions of the sample, and one of them drawn."""
    return lambda: gf2.solve(sample, labels).sample()


def seconds(action: Action) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, others kilobytes.
    return peak if sys.platform == "darwin" else peak * 1024


def print_plans(plans: list[dict[str, int]]) -> None:
    """The sample sizes."""
    print(f"records needed at alpha = beta = {ALPHA}, epsilon = {EPSILON:g}")
    lines = [["d", "loop", "batches", "the paper", "paper / loop"]]
    for row in plans:
        sizes = (row["d"], row["loop"], row["batches"], row["paper"])
        lines.append([*(f"{size:,}" for size in sizes), f"{row['paper'] / row['loop']:.0f}"])
    print_aligned(lines)


def print_cases(cases: list[dict[str, Any]]) -> None:
    """Times and memory."""
    header = ["d", "n", "sampled", "learn", "solve", "learn / solve", "input GB", "peak GB"]
    lines = [header]
    for case in cases:
        if "skipped" in case:
            print(f"d = {case['d']:,} skipped: {case['skipped']}")
            continue
        learn, solve = case["seconds"]["learn"], case["seconds"]["solve"]
        lines.append(
            [
                *(f"{case[name]:,}" for name in ("d", "n", "sampled")),
                *(f"{value:.3f}" for value in (learn, solve)),
                f"{learn / solve:.2f}",
                *(f"{case[name] / GIGABYTE:.2f}" for name in ("input_bytes", "peak_bytes")),
            ]
        )
    print("\nlearn on uniform examples, packed, and the bare solve of a sample; median seconds")
    print_aligned(lines)


if __name__ == "__main__":
    main()
