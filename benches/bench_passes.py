"""Whole jobs in a process each: CPU time, and the peak of memory beyond the records.

Run `python benches/bench_passes.py`: two minutes and 2.5 GB of memory. Statistics of 10^6 and 10^7
records stand beside numpy and pandas, which protect no one; a command stands beside the import of
numpy. Times are those of the processor, of one thread; the least of three runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _harness import require_memory, run_file
from bench_parity import peak_bytes

from hdp_fast import statistics

SIZES = (1_000_000, 10_000_000)
RUNS, KINDS, COLUMNS = 3, 20, 8
KEYS = [f"kind {place:02d}" for place in range(KINDS)]
LEVELS = (0.25, 0.5, 0.75)
BETWEEN: dict[str, Any] = {"low": 0, "high": 1, "epsilon": 1.0}
COMMANDS = {
    "import numpy": ["-c", "import numpy"],
    "import hdp_fast": ["-c", "import hdp_fast"],
    "hdp-fast version": ["-m", "hdp_fast", "version"],
    "hdp-fast --help": ["-m", "hdp_fast", "--help"],
    "hdp-fast --verison": ["-m", "hdp_fast", "--verison"],
    "hdp-fast stats --help": ["-m", "hdp_fast", "stats", "--help"],
    "hdp-fast fit --help": ["-m", "hdp_fast", "fit", "--help"],
    "hdp-fast label --help": ["-m", "hdp_fast", "label", "--help"],
}
Job = tuple[Callable[[], Any], Callable[[], Any]]


def numbers(n: int, columns: int = 1) -> Any:
    """Numbers between 0 and 1."""
    made = np.random.default_rng(1).random((n, columns))
    return made[:, 0].copy() if columns == 1 else made


def places(n: int) -> Any:
    """Places of categories."""
    return np.random.default_rng(2).integers(0, KINDS, n)


def count_texts(values: Any) -> Any:
    """The histogram of texts."""
    return statistics.histogram(values, categories=KEYS, epsilon=1.0)


def make_mean(n: int) -> Job:
    """The mean of a column."""
    x = numbers(n)
    return lambda: statistics.mean(x, **BETWEEN), x.mean


def make_means(n: int) -> Job:
    """The means of several columns."""
    X = numbers(n, COLUMNS)
    return lambda: statistics.mean(X, **BETWEEN), lambda: X.mean(axis=0)


def make_covariance(n: int) -> Job:
    """Their covariance."""
    X = numbers(n, COLUMNS)
    return lambda: statistics.covariance(X, **BETWEEN), lambda: X.T @ X


def make_quantiles(n: int) -> Job:
    """The quartiles of a column."""
    x = numbers(n)
    return lambda: statistics.quantiles(x, LEVELS, **BETWEEN), lambda: np.quantile(x, LEVELS)


def make_bins(n: int) -> Job:
    """A histogram of a column."""
    x, edges = numbers(n), np.linspace(0, 1, KINDS + 1)
    ours = lambda: statistics.histogram(x, edges=edges, epsilon=1.0)  # noqa: E731
    return ours, lambda: np.histogram(x, edges)


def make_integers(n: int) -> Job:
    """A histogram of integers."""
    x = places(n)
    ours = lambda: statistics.histogram(x, categories=range(KINDS), epsilon=1.0)  # noqa: E731
    return ours, lambda: np.bincount(x)


def make_texts(n: int) -> Job:
    """A histogram of texts of numpy."""
    x = np.array(KEYS)[places(n)]
    return lambda: count_texts(x), lambda: np.unique(x, return_counts=True)


def make_objects(n: int) -> Job:
    """A histogram of texts that are objects."""
    import pandas

    x = np.array(KEYS)[places(n)].astype(object)
    return lambda: count_texts(x), pandas.Series(x, dtype=object).value_counts


def make_categorical(n: int) -> Job:
    """A histogram of a categorical column of pandas."""
    import pandas

    x = pandas.Series(pandas.Categorical.from_codes(places(n), KEYS))
    return lambda: count_texts(x), x.value_counts


JOBS: dict[str, Callable[[int], Job]] = {
    "mean": make_mean,
    f"means of {COLUMNS} columns": make_means,
    f"covariance of {COLUMNS} columns": make_covariance,
    "three quantiles": make_quantiles,
    f"histogram, {KINDS} bins": make_bins,
    f"histogram, {KINDS} integers": make_integers,
    f"histogram, {KINDS} texts": make_texts,
    f"histogram, {KINDS} texts, objects": make_objects,
    f"histogram, {KINDS} categories": make_categorical,
}


def print_passes(name: str, n: int, place: int) -> None:
    """Runs one of the two and prints its CPU time in seconds, and its peak of bytes a record."""
    action = JOBS[name](n)[place]
    JOBS[name](1_000)[place]()  # What is imported and planned at first use is no cost of records.
    with suppress(OSError):  # Linux forgets the peak of making the records.
        Path("/proc/self/clear_refs").write_text("5")
    before, seconds = peak_bytes(), []
    for _ in range(RUNS):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    print(json.dumps([min(seconds), max(peak_bytes() - before, 0) / n]))


def run_alone(*arguments: str) -> str:
    """The output of a Python process beside this file."""
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=folder
    )
    return done.stdout


@pytest.mark.sizes("n", SIZES, tiny=1_000)
@pytest.mark.parametrize("name", JOBS)
def bench_passes(table: Callable[..., None], name: str, n: int) -> None:
    """A statistic, and what computes the like without privacy."""
    pytest.importorskip("pandas")
    require_memory(250 * n)
    rows = []
    for place, kind in enumerate(("ours", "numpy or pandas")):
        code = f"import bench_passes as b; b.print_passes({name!r}, {n}, {place})"
        seconds, peak = json.loads(run_alone("-c", code))
        rows.append([f"{n:,}", kind, f"{seconds * 1e3:.1f}", f"{peak:.1f}"])
    table(name, [["records", "", "CPU ms", "peak bytes a record"], *rows])


def bench_start(table: Callable[..., None]) -> None:
    """The CPU time of a command that reads no data."""
    rows = []
    for name, arguments in COMMANDS.items():
        code = (
            "import resource, subprocess, sys\n"
            f"subprocess.run([sys.executable, *{arguments!r}], capture_output=True)\n"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
            "print(used.ru_utime + used.ru_stime)"
        )
        seconds = min(float(run_alone("-c", code)) for _ in range(RUNS))
        rows.append([name, f"{seconds:.2f}"])
    table("CPU time of a start, s", [["command", "s"], *rows])


if __name__ == "__main__":
    run_file(__file__)
