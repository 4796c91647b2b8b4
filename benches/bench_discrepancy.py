"""Discrepancy of a source and a target of half a million rows each, beside what BLAS needs.

Run `python benches/bench_discrepancy.py`: about a minute and 2 GB; `--rows 100000` takes less. One
Gram matrix of all rows, block by block in double precision, is what no method can do without; rows
are float32. Threads are those of BLAS: OPENBLAS_NUM_THREADS=1 sets one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _harness import make_parser, print_json
from numpy.typing import NDArray

from hdp_fast.adaptation import Discrepancy, discrepancy
from hdp_fast.bench import Action, medians

FEATURES = (8, 64, 384)
BLOCK = 4096

Row = dict[str, Any]


def main() -> None:
    """Print the table, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    rows = [time_discrepancy(arguments.rows // 2, d, arguments.repeats) for d in FEATURES]
    if arguments.json:
        print_json({"discrepancy": rows})
        return
    print(f"{arguments.rows:,} rows in all, seconds")
    for row in rows:
        times = f"exact {row['exact']:.2f}, dca {row['dca']:.2f}, Gram matrix {row['gram']:.2f}"
        found = f"value {row['value']:.4f}, gap {row['gap']:.1e}, dca below by {row['below']:.1e}"
        print(f"  d = {row['d']:<4} {times}; {found}")


def time_discrepancy(n: int, d: int, repeats: int) -> Row:
    """Seconds for both methods and for the Gram matrix, and what they found."""
    rng = np.random.default_rng(0)
    source, target = rows_of(rng, n, d), rows_of(rng, n, d)
    data = source, np.clip(source[:, 0] * 2, -1, 1), target, np.clip(target[:, 1] * 2, -1, 1)
    found: dict[str, Discrepancy] = {}

    def solve(method: Any) -> None:
        found[method] = discrepancy(*data, radius=3.0, norm_bound=1.0, method=method)

    actions: dict[str, Action] = {
        "exact": lambda: solve("exact"),
        "dca": lambda: solve("dca"),
        "gram": lambda: gram(source) - gram(target),
    }
    times = medians(actions, repeats=repeats)
    exact, dca = found["exact"], found["dca"]
    values = {"value": exact.value, "gap": exact.gap, "below": exact.value - dca.value}
    return {"d": d} | times | values


def rows_of(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Rows inside the unit ball."""
    X = rng.standard_normal((n, d), np.float32)
    X /= 1.001 * np.linalg.norm(X, axis=1).max()
    return X


def gram(X: NDArray[np.float32]) -> NDArray[np.float64]:
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK].astype(np.float64)
        total += block.T @ block
    return total


if __name__ == "__main__":
    main()
