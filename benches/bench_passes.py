"""Whole jobs in a process each: CPU time, and the peak of memory beyond the records.

Run `python benches/bench_passes.py`: two minutes and 2.5 GB of memory. Statistics of 10^6 and 10^7
records stand beside numpy and pandas, which protect no one; a command stands beside the import of
numpy. Times are those of the processor, of one thread; the least of three runs. Estimators stand
beside those of scikit-learn, and `hdp-fast stats` beside pyarrow's reading of its file.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _harness import require_memory, run_file
from bench_parity import peak_bytes

from hdp_fast import statistics
from hdp_fast.cli.command_line import main
from hdp_fast.data import Number, Schema

SIZES = (1_000_000, 10_000_000)
RUNS, KINDS, COLUMNS = 3, 20, 8
FEATURES, FILE_COLUMNS = 50, 6
KEYS = [f"kind {place:02d}" for place in range(KINDS)]
LEVELS = (0.25, 0.5, 0.75)
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
BETWEEN: dict[str, Any] = {"low": 0, "high": 1, "epsilon": 1.0}
COMMANDS = {
    "import numpy": ["-c", "import numpy"],
    "import hdp_fast": ["-c", "import hdp_fast"],
    "hdp-fast version": ["-m", "hdp_fast", "version"],
    "hdp-fast --help": ["-m", "hdp_fast", "--help"],
    "hdp-fast --verison": ["-m", "hdp_fast", "--verison"],
    "hdp-fast stats --help": ["-m", "hdp_fast", "stats", "--help"],
    "hdp-fast stats --epsilonn 1": ["-m", "hdp_fast", "stats", "--epsilonn", "1"],
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


def make_classes(n: int) -> Job:
    """A classifier of two classes."""
    from sklearn.linear_model import LogisticRegression

    from hdp_fast.sklearn import PrivateClassifier

    X = numbers(n, FEATURES)
    y = (X[:, 0] + X[:, 1] > 1 + 0.2 * np.random.default_rng(3).normal(size=n)).astype(np.int64)
    ours = PrivateClassifier(**PRICE, bounds=(0, 1), classes=[0, 1])
    return lambda: ours.fit(X, y), lambda: LogisticRegression().fit(X, y)


def make_targets(n: int) -> Job:
    """A regression."""
    from sklearn.linear_model import Ridge

    from hdp_fast.sklearn import PrivateRegressor

    X = numbers(n, FEATURES)
    y = (X[:, 0] + X[:, 1]) / 2 + 0.1 * np.random.default_rng(3).normal(size=n)
    ours = PrivateRegressor(**PRICE, bounds=(0, 1), target_bounds=(0, 1))
    return lambda: ours.fit(X, y), lambda: Ridge().fit(X, y)


def make_adaptation(n: int, method: str) -> Job:
    """Adaptation from as many public records to a tenth as many private ones."""
    from sklearn.linear_model import Ridge

    from hdp_fast.adaptation import ConvexAdaptation, MomentAdaptation, release_discrepancy

    X = (numbers(n, FEATURES) - 0.5) * (2 / FEATURES**0.5)
    y = X[:, 0] + X[:, 1]
    Z, t = X[: n // 10] * 0.9, y[: n // 10] * 0.8
    jobs: dict[str, Callable[[], Any]] = {
        "moments": lambda: MomentAdaptation(**PRICE).fit(X, y, Z, t),
        "descent": lambda: ConvexAdaptation(**PRICE).fit(X, y, Z, t),
        "discrepancy": lambda: release_discrepancy(
            X, y, Z, t, radius=1.0, norm_bound=1.0, epsilon=1.0
        ),
    }
    return jobs[method], lambda: Ridge().fit(X, y)


def make_file(n: int, suffix: str) -> Job:
    """Statistics of a file on the command line, and its reading alone."""
    import pyarrow
    from pyarrow import csv, parquet

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    path, schema = str(folder / f"people{suffix}"), folder / "schema.json"
    names = [f"x{place}" for place in range(FILE_COLUMNS)]
    table = pyarrow.table(dict(zip(names, numbers(n, len(names)).T.round(4), strict=True)))
    schema.write_text(Schema(None, {name: Number(0, 1) for name in names}).to_json())
    if suffix == ".csv":
        csv.write_csv(table, path)
        options = csv.ReadOptions(use_threads=False)
        read = lambda: csv.read_csv(path, read_options=options)  # noqa: E731
    else:
        parquet.write_table(table, path)
        read = lambda: parquet.read_table(path, use_threads=False)  # noqa: E731
    asked = ["--count", "--mean", *names, "--histogram", *names, "--quantiles", *names]
    place = ["--output", str(folder / "out.json"), "--quiet", "--force"]
    words = ["stats", path, "--schema", str(schema), "--epsilon", "1", *asked, *place]
    return lambda: run_quietly(words), read


def run_quietly(words: list[str]) -> None:
    """Runs a command, which must end well."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        assert main(words) == 0


# Those whose records are rows of several columns: what a peak is divided by, beside the records.
ESTIMATORS: dict[str, Callable[[int], Job]] = {
    f"PrivateClassifier, {FEATURES} columns": make_classes,
    f"PrivateRegressor, {FEATURES} columns": make_targets,
    **{
        f"adaptation by {method}, {FEATURES} columns": partial(make_adaptation, method=method)
        for method in ("moments", "descent", "discrepancy")
    },
}
FILES: dict[str, Callable[[int], Job]] = {
    f"hdp-fast stats, {FILE_COLUMNS} columns of .csv": partial(make_file, suffix=".csv"),
    f"hdp-fast stats, {FILE_COLUMNS} columns of .parquet": partial(make_file, suffix=".parquet"),
}
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
    make = (JOBS | ESTIMATORS | FILES)[name]
    action = make(n)[place]
    make(1_000)[place]()  # What is imported and planned at first use is no cost of records.
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
    show_beside(table, name, n, "numpy or pandas")


@pytest.mark.sizes("n", (10_000, 100_000, 1_000_000), tiny=1_000)
@pytest.mark.parametrize("name", ESTIMATORS)
def bench_estimators(table: Callable[..., None], name: str, n: int) -> None:
    """The fit of an estimator, and scikit-learn's without privacy."""
    pytest.importorskip("sklearn")
    require_memory(1_500 * n)
    show_beside(table, name, n, "scikit-learn", cells=FEATURES)


@pytest.mark.sizes("n", (1_000_000,), tiny=1_000)
@pytest.mark.parametrize("name", FILES)
def bench_files(table: Callable[..., None], name: str, n: int) -> None:
    """A count, means, histograms and quartiles of a file, and what reading it takes alone."""
    pytest.importorskip("pyarrow")
    require_memory(500 * n)
    show_beside(table, name, n, "pyarrow reads it", cells=FILE_COLUMNS)


def show_beside(
    table: Callable[..., None], name: str, n: int, peer: str, cells: int | None = None
) -> None:
    """The rows of a job and of its peer; the peak by record, or by cell of so many a record."""
    rows = []
    for place, kind in enumerate(("ours", peer)):
        code = f"import bench_passes as b; b.print_passes({name!r}, {n}, {place})"
        seconds, peak = json.loads(run_alone("-c", code))
        rows.append([f"{n:,}", kind, f"{seconds * 1e3:.1f}", f"{peak / (cells or 1):.1f}"])
    unit = "record" if cells is None else "cell"
    table(name, [["records", "", "CPU ms", f"peak bytes a {unit}"], *rows])


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
