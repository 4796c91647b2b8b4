"""Projection, updates and draws of hdp_fast.weights beside the numpy reference.

Run `python benches/bench_weights.py`: about two minutes and 1 GB of memory; `--largest` goes up to
100,000,000 records and 6 GB.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from _harness import make_parser, print_json
from numpy.typing import NDArray

from hdp_fast.bench import Action, medians
from hdp_fast.reference import weights as reference
from hdp_fast.weights import DenseWeights, project

KAPPA, ETA = 0.05, 0.1
SIZES = (100_000, 1_000_000, 10_000_000)
LARGEST = 100_000_000
# Beyond this the reference takes minutes.
LARGEST_REFERENCE = 10_000_000


def main() -> None:
    """Print the table, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--largest", action="store_true", help="100,000,000 records, too")
    arguments = parser.parse_args()
    sizes = [*SIZES, *([LARGEST] if arguments.largest else [])]
    rows = [row for n in sizes for row in time_size(n, arguments.repeats)]
    if arguments.json:
        print_json(rows)
        return
    copied = copy_speed()
    print(f"Milliseconds; numpy copies {copied:.0f} GB/s (read and written) on one thread\n")
    print(f"{'n':>12}{'':>28}{'ms':>10}{'numpy':>10}{'ratio':>8}{'GB/s':>8}")
    for row in rows:
        numpy = row["numpy"]
        shown = f"{1e3 * numpy:>10.1f}{numpy / row['seconds']:>8.1f}" if numpy else f"{'':>18}"
        speed = row["bytes"] / row["seconds"] / 1e9
        print(f"{row['n']:>12,}{row['name']:>28}{1e3 * row['seconds']:>10.2f}{shown}{speed:>8.1f}")


def time_size(n: int, repeats: int) -> list[dict[str, Any]]:
    """Every kernel on one and on two threads."""
    coins = np.random.default_rng(1)
    w = coins.random(n) ** 8 + 1e-9
    in_place, out = w.copy(), w.copy()
    losses = (coins.random(n) < 0.3).astype(float)
    bits = losses.astype(np.uint8)
    weights = DenseWeights(n, KAPPA, ETA)
    weights.update(losses)
    # Name, action, reference, bytes that must be read and written at least.
    kernels: list[tuple[str, Action, Action, int]] = [
        ("project", lambda: project(w, KAPPA), lambda: reference.project(w, KAPPA), 24),
        (
            "project in place",
            lambda: project(out, KAPPA, out=out),
            lambda: reference.project(w, KAPPA),
            24,
        ),
        (
            "update",
            lambda: weights.update(losses),
            lambda: reference.update(in_place, losses, ETA),
            24,
        ),
        (
            "update, bits",
            lambda: weights.update(bits),
            lambda: reference.update(in_place, losses, ETA),
            17,
        ),
        ("draw n", lambda: weights.draw(n), lambda: reference.draw(w, n, coins), 24),
    ]
    return [
        timed(
            n, f"{name}, {threads} thread{'s'[: threads - 1]}", action, twin, size, threads, repeats
        )
        for name, action, twin, size in kernels
        for threads in (1, 2)
    ]


def project_copy(w: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """In place, with the copy that gives every run the same weights."""
    np.copyto(out, w)
    project(out, KAPPA, out=out)


def timed(
    n: int, name: str, action: Action, twin: Action, size: int, threads: int, repeats: int
) -> dict[str, Any]:
    """One kernel and its reference, taking turns."""
    os.environ["HDP_FAST_NUM_THREADS"] = str(threads)
    routes = {"ours": action} | ({"numpy": twin} if n <= LARGEST_REFERENCE else {})
    times = medians(routes, repeats=repeats if n <= LARGEST_REFERENCE else 2)
    return {
        "n": n,
        "name": name,
        "seconds": times["ours"],
        "numpy": times.get("numpy"),
        "bytes": size * n,
    }


def copy_speed() -> float:
    """Gigabytes a second that numpy reads and writes."""
    source, target = np.ones(10_000_000), np.zeros(10_000_000)
    np.copyto(target, source)
    start = time.perf_counter()
    np.copyto(target, source)
    return 2 * source.nbytes / (time.perf_counter() - start) / 1e9


if __name__ == "__main__":
    main()
