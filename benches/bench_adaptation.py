"""A step of adaptation beside numpy: predictions, losses, weights and the weighted gradient.

Run `python benches/bench_adaptation.py`: about two minutes and 5 GB of memory; `--rows` takes
fewer. Half of the rows are public, half private. "products" are numpy's X @ w and X.T @ r alone,
"numpy" is the reference, "limit" a pass over the rows that only finds their largest entry, by as
many threads. "exact" rounds coefficients to integers, "given" takes the weights and returns the
losses. Two threads for all, numpy's own included.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from _harness import make_parser, print_json, right
from numpy.typing import NDArray

from hdp_fast import _core
from hdp_fast.bench import medians
from hdp_fast.learners.linear_model import core_arguments, validate_rows
from hdp_fast.reference import adaptation as reference

THREADS = 2
KAPPA_1, OFFSET = 0.3, 0.1
UNITS, MOST = 1 << 16, 1 << 14
# Targets: of the time of the two products, and times as fast as the reference.
MOST_OF_PRODUCTS = {384: 0.65}
TIMES_NUMPY = {8: 5.0, 64: 2.5}
CASES = [(8, "float64"), (8, "float32"), (64, "float64"), (64, "float32")]
CASES += [(384, "float32"), (384, "float64")]

Action = Callable[[], object]


def main() -> None:
    """Print the table, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=5)
    parser.add_argument("--rows", type=int, default=1_000_000, help="public and private together")
    arguments = parser.parse_args()
    found = [measured(arguments.rows, d, dtype, arguments.repeats) for d, dtype in CASES]
    if arguments.json:
        print_json(found)
        return
    print(f"{arguments.rows:,} rows, {THREADS} threads, milliseconds; squared loss unless named\n")
    names = ("ours", "exact", "given", "products", "numpy", "limit")
    names += ("logistic", "numpy logistic")
    ratios = ("of products", "times numpy", "times limit", "times numpy, logistic")
    print(f"{'d':>5}{'dtype':>9}" + right(names, 16))
    for row in found:
        cells = right((1e3 * row["seconds"][name] for name in names), 16, ".1f")
        print(f"{row['d']:>5}{row['dtype']:>9}{cells}")
    print(f"\n{'d':>5}{'dtype':>9}" + right(ratios, 22) + f"{'target':>18}")
    for row in found:
        cells = right((row[name] for name in ratios), 22, ".2f")
        print(f"{row['d']:>5}{row['dtype']:>9}{cells}{target(row['d']):>18}")


def target(d: int) -> str:
    if d in MOST_OF_PRODUCTS:
        return f"{MOST_OF_PRODUCTS[d]} of products"
    return f"{TIMES_NUMPY[d]} times numpy"


def measured(rows: int, d: int, dtype: str, repeats: int) -> dict[str, Any]:
    """Seconds of a step and of its rivals, the two halves of the rows one after the other."""
    halves = [half(rows // 2, d, dtype, seed) for seed in (1, 2)]
    w = np.full(d, 0.5 / np.sqrt(d))
    cap = 1 / rows
    weights = np.full(rows // 2, cap)
    grid = (MOST / (2.5 * cap), float(MOST), float(UNITS))
    single, r = w.astype(dtype), halves[0][1].astype(dtype)
    pool = ThreadPoolExecutor(THREADS)

    def ours(loss: str, weights: Any, grid: Any = None) -> Action:
        return lambda: [
            _core.adaptation_pass(
                core_arguments(looked, y), loss, w, offset(weights, number), grid, THREADS
            )
            for number, (_, y, looked) in enumerate(halves)
        ]

    def numpy(loss: str) -> Action:
        return lambda: [
            reference.evaluate_eliminated(
                X, y, w, cap=cap, kappa_1=KAPPA_1, offset=OFFSET * (number == 0), loss=loss
            )
            for number, (X, y, _) in enumerate(halves)
        ]

    eliminated = (cap, KAPPA_1, OFFSET)
    seconds = medians(
        {
            "ours": ours("squared", eliminated),
            "exact": ours("squared", eliminated, grid),
            "given": ours("squared", weights),
            "logistic": ours("logistic", eliminated),
            "products": lambda: [(X @ single, X.T @ r) for X, _, _ in halves],
            "numpy": numpy("squared"),
            "numpy logistic": numpy("logistic"),
            "limit": lambda: list(pool.map(lambda half: half[0].max(), halves)),
        },
        repeats=repeats,
    )
    pool.shutdown()
    return {
        "rows": rows,
        "d": d,
        "dtype": dtype,
        "seconds": seconds,
        "of products": seconds["ours"] / seconds["products"],
        "times numpy": seconds["numpy"] / seconds["ours"],
        "times limit": seconds["ours"] / seconds["limit"],
        "times numpy, logistic": seconds["numpy logistic"] / seconds["logistic"],
    }


def offset(weights: Any, number: int) -> Any:
    """Only public rows, the first half, have one."""
    return (*weights[:2], OFFSET * (number == 0)) if isinstance(weights, tuple) else weights


def half(rows: int, d: int, dtype: str, seed: int) -> tuple[NDArray[Any], NDArray[np.float64], Any]:
    """Rows of norm about 1, labels by the first entry."""
    X = np.random.default_rng(seed).random((rows, d), dtype=np.dtype(dtype).type)
    X -= 0.5
    X *= np.sqrt(12 / d)
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), validate_rows(X)


if __name__ == "__main__":
    main()
