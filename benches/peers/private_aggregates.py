"""A count, a mean and the quartiles of one column of a file, by four libraries: time and error.

Ours, OpenDP by its way over polars, PipelineDP on its local backend and Tumult Analytics on Spark
read the same CSV file of records of a person each, and release the five numbers at epsilon 1 under
add or remove. Each runs in a process of its own; the time is that of the processor, its threads and
processes together, with the start and the imports, and what a million records more take, by a run
on a tenth of them.

Run `python benches/peers/private_aggregates.py --rows 1e6`. Peers pin their dependencies: install
each in an environment of its own, and name their interpreters, as often as there are such:

    python -m venv opendp && opendp/bin/pip install "opendp[polars]"
    python -m venv pipelinedp && pipelinedp/bin/pip install pipeline-dp
    python -m venv tumult && tumult/bin/pip install tmlt-analytics    # and Java
    python benches/peers/private_aggregates.py --python opendp/bin/python --python ...
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LEVELS = (0.25, 0.5, 0.75)
EPSILON, DELTA = 1.0, 1e-6
# The exit code of a process whose library is missing.
MISSING = 3
FEW, RUNS = 1_000, 2
MILLION = 1e6


def main() -> None:
    """Print a line for each library, or run one of them on a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--python", action="append", default=[], help="an interpreter with a peer")
    parser.add_argument("--run", nargs=3, metavar=("LIBRARY", "FILE", "ROWS"), help="one alone")
    arguments = parser.parse_args()
    if arguments.run:
        library, file, rows = arguments.run
        try:
            released = LIBRARIES[library](file, int(rows))
        except ImportError:
            sys.exit(MISSING)
        print(json.dumps([float(number) for number in released]))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), int(arguments.rows), [sys.executable, *arguments.python])


def compare(folder: Path, rows: int, pythons: list[str]) -> None:
    """Print what each library takes, and how far its numbers are from those of the file."""
    import numpy as np

    files = {}
    for many in sorted({FEW, rows // 10, rows}):
        values = np.random.default_rng(many).beta(2, 5, many).round(6)
        files[many] = folder / f"{many}.csv"
        with files[many].open("w") as handle:
            handle.write("person,x\n")
            handle.writelines(f"{place},{x}\n" for place, x in enumerate(values.tolist()))
    exact = [rows, values.mean(), *np.quantile(values, LEVELS)]
    print(
        f"{rows:,} records, epsilon {EPSILON:g}: CPU seconds, those of a million more, and errors"
    )
    heads = f"{'CPU s':>8}{'ratio':>7}{'million':>9}{'ratio':>7}"
    print(f"{'library':<12}{heads}{'count':>8}{'mean':>9}{'quartiles':>11}")
    ours: tuple[float, float] | None = None
    for library in LIBRARIES:
        python = find(library, pythons, files[FEW])
        if python is None:
            print(f"{library:<12}   not installed")
            continue
        part, _ = run(python, library, files[rows // 10], rows // 10)
        seconds, released = run(python, library, files[rows], rows)
        million = (seconds - part) / (rows - rows // 10) * MILLION
        ours = ours or (seconds, million)
        errors = [abs(number - truth) for number, truth in zip(released, exact, strict=True)]
        times = f"{seconds:>8.2f}{seconds / ours[0]:>7.2f}{million:>9.2f}{million / ours[1]:>7.2f}"
        misses = f"{errors[0]:>8.1f}{errors[1]:>9.2g}{max(errors[2:]):>11.2g}"
        print(f"{library:<12}{times}{misses}", flush=True)


def find(library: str, pythons: list[str], file: Path) -> str | None:
    """The first interpreter that has the library."""
    for python in pythons:
        done = subprocess.run(command(python, library, file, FEW), capture_output=True, text=True)
        if done.returncode == 0:
            return python
        if done.returncode != MISSING:
            print(done.stderr, file=sys.stderr)
    return None


def command(python: str, library: str, file: Path, rows: int) -> list[str]:
    """The command line of a library on a file."""
    return [python, __file__, "--run", library, str(file), str(rows)]


def run(python: str, library: str, file: Path, rows: int) -> tuple[float, list[float]]:
    """The least CPU time of some runs, those of few records or of one that takes long but one."""
    seconds, begun = [], time.perf_counter()
    while len(seconds) < RUNS and (not seconds or time.perf_counter() - begun < 30):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command(python, library, file, rows), capture_output=True, text=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds.append(used)
    return min(seconds), json.loads(done.stdout.splitlines()[-1])


# Libraries ----------------------------------------------------------------------------------------


def by_hdp_fast(file: str, rows: int) -> list[float]:
    """By one pass over the parts of the file."""
    from hdp_fast import statistics
    from hdp_fast.data import Chunks, Number, Schema

    tasks = [statistics.Task("count"), statistics.Task("mean", ("x",))]
    tasks.append(statistics.Task("quantiles", ("x",), LEVELS))
    result = statistics.describe(
        Chunks(file),
        Schema(None, {"x": Number(0, 1)}),
        epsilon=EPSILON,
        tasks=tasks,
        neighbors="add_remove",
    )
    return [row["value"] for row in result.rows]


def by_opendp(file: str, rows: int) -> list[float]:
    """By a LazyFrame of polars; quantiles are chosen among a thousand candidates."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.scan_csv(file),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=10 * rows)],
    )
    column = pl.col("x").fill_nan(0.0).fill_null(0.0)
    candidates = [place / 1000 for place in range(1001)]
    query = context.query().select(
        dp.len(),
        column.dp.mean((0.0, 1.0)),
        *(column.dp.quantile(level, candidates).alias(f"at {level}") for level in LEVELS),
    )
    return list(query.release().collect().row(0))


def by_pipelinedp(file: str, rows: int) -> list[float]:
    """By the local backend, which takes rows of Python."""
    import pipeline_dp

    with open(file, newline="") as handle:
        records = [(row["person"], float(row["x"])) for row in csv.DictReader(handle)]
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    metrics = pipeline_dp.Metrics
    parameters = pipeline_dp.AggregateParams(
        metrics=[
            metrics.COUNT,
            metrics.MEAN,
            *(metrics.PERCENTILE(100 * level) for level in LEVELS),
        ],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0.0,
        max_value=1.0,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda record: record[0],
        partition_extractor=lambda record: 0,
        value_extractor=lambda record: record[1],
    )
    result = engine.aggregate(records, parameters, extractors, public_partitions=[0])
    accountant.compute_budgets()
    ((_, released),) = list(result)
    found = released._asdict()
    quartiles = [value for name, value in sorted(found.items()) if "percentile" in name]
    return [found["count"], found["mean"], *quartiles]


def by_tumult(file: str, rows: int) -> list[float]:
    """By Spark on this machine."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddOneRow,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    # The workers of Spark must be the Python that has the library.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.getOrCreate()
    table = spark.read.csv(file, header=True, schema="person LONG, x DOUBLE")
    session = Session.from_dataframe(PureDPBudget(EPSILON), "table", table, AddOneRow())
    share = PureDPBudget(EPSILON / 5)
    queries = [
        QueryBuilder("table").count(),
        QueryBuilder("table").average("x", 0.0, 1.0),
        *(QueryBuilder("table").quantile("x", level, 0.0, 1.0) for level in LEVELS),
    ]
    return [session.evaluate(query, share).first()[0] for query in queries]


LIBRARIES: dict[str, Callable[[str, int], list[float]]] = {
    "hdp_fast": by_hdp_fast,
    "OpenDP": by_opendp,
    "PipelineDP": by_pipelinedp,
    "Tumult": by_tumult,
}

if __name__ == "__main__":
    main()
