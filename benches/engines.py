"""One fold on every engine at hand: the same bits, its time, and workers that are killed.

A table of parquet parts is folded by learners.SufficientStatistics: one part after the other, by
joblib's threads and processes, by dask, Spark and ray, as docs/guides/larger_than_memory.md shows
it. What is not installed is named; `make engines` installs it all. Then workers are killed while
they read, three times in a run. A difference anywhere fails the run. --speed gives two processes
work of half a minute. --records 1e9 folds so many records, made from seeds where they are folded,
for four releases in one pass, after a hundredth of them: memory must not grow.

Run `python benches/engines.py`: a minute without Spark and ray. With `--records 1e9 --workers 2` it
takes some minutes, with `--records 1e7` seconds.
"""

from __future__ import annotations

import argparse
import importlib
import operator
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from bench_parity import peak_bytes

from hdp_fast import Budget, statistics
from hdp_fast.data import Chunks, State
from hdp_fast.data.states import bundle, unbundle
from hdp_fast.learners import FeatureMap, SufficientStatistics

D = 8
NAMES = [f"x{place}" for place in range(D)]
JOB = SufficientStatistics(
    FeatureMap.identity(D, norm_bound=3.0), classes=[0, 1], second_moments=True, capacity=1 << 30
)
GOAL = {"epsilon": 1.0, "delta": 1e-9}
# What --records releases of uniform columns: their means, a histogram and the quartiles of the
# first one, and sums by class with all second moments.
UNIFORM: dict[str, Any] = {"low": 0, "high": 1}
MANY = (
    statistics.Job("mean", **UNIFORM),
    statistics.Job("histogram", edges=np.linspace(0, 1, 21)),
    statistics.Job("quantiles", **UNIFORM, steps=1 << 16),
    JOB,
)
BLOCK, BLOCKS = 1 << 20, 4


def main() -> None:
    """Print a line for each engine, and one for each kind of worker that is killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--rows", type=int, default=50_000, help="of a part")
    parser.add_argument("--speed", action="store_true", help="one worker and two, on work of 30 s")
    parser.add_argument("--records", type=float, help="made from seeds, and a hundredth of them")
    parser.add_argument("--workers", type=int, default=1, help="of --records")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.records:
        show_records(int(arguments.records), arguments.workers)
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.speed:
            show_speed()
            return
        write_parts(Path(folder), arguments.parts, arguments.rows)
        table = pd.read_parquet(folder)
        whole = JOB.fold(table[NAMES], table["y"])
        print(f"{len(table):,} records of {D} columns in {arguments.parts} parts")
        print(f"{'engine':<28}{'states':>8}{'bits':>9}{'release':>9}{'seconds':>9}")
        alike = [show(name, fold, Path(folder), whole) for name, fold in ENGINES.items()]
        if not all([*alike, show_killed(Path(folder), whole)]):
            sys.exit("error: an engine, or a run with killed workers, differs from one fold")


def write_parts(folder: Path, parts: int, rows: int) -> None:
    """Parquet files of normal columns, and of a label that depends on two of them."""
    for part in range(parts):
        make_part(part, rows).to_parquet(folder / f"{part:03}.parquet", index=False)


def make_part(part: int, rows: int) -> pd.DataFrame:
    """The same numbers for the same part, wherever they are made."""
    X = np.random.default_rng(part).normal(size=(rows, D))
    return pd.DataFrame(X, columns=NAMES).assign(y=(X[:, 0] > X[:, 1]).astype(np.int64))


def show(name: str, fold: Callable[[Path], tuple[State, int]], folder: Path, whole: State) -> bool:
    """The line of an engine: whether its integers, and a seeded release, are those of one fold."""
    begun = time.perf_counter()
    try:
        state, many = fold(folder)
    except ImportError as error:
        print(f"{name:<28}   {error.name} is not installed")
        return True
    seconds = time.perf_counter() - begun
    ours, theirs = (JOB.release(each, **GOAL, random_state=1) for each in (state, whole))
    released = "equal" if (ours.sums == theirs.sums).all() else "DIFFER"
    bits = compare(state, whole)
    print(f"{name:<28}{many:>8}{bits:>9}{released:>9}{seconds:>9.1f}", flush=True)
    return bits == released == "equal"


def compare(state: State, whole: State) -> str:
    same = all((state.sums[name] == values).all() for name, values in whole.sums.items())
    return "equal" if same and state.rows == whole.rows else "DIFFER"


# Engines -----------------------------------------------------------------------------------------


def in_order(folder: Path) -> tuple[State, int]:
    chunks = Chunks(folder, label="y")
    return chunks.fold(JOB.fold), len(chunks)


def by_threads(folder: Path) -> tuple[State, int]:
    with importlib.import_module("joblib").parallel_config("threading", n_jobs=2):
        return in_order(folder)


def by_processes(folder: Path) -> tuple[State, int]:
    chunks = Chunks(folder, label="y", workers=2)
    return chunks.fold(JOB.fold), len(chunks)


def by_dask_backend(folder: Path) -> tuple[State, int]:
    """Sends the parts by joblib to the cluster: nothing but their paths travels."""
    joblib, cluster = importlib.import_module("joblib"), open_dask()
    with cluster, joblib.parallel_config("dask"):
        return in_order(folder)


def by_dask(folder: Path) -> tuple[State, int]:
    """The partitions of a frame of dask, folded where they lie."""
    frames = importlib.import_module("dask.dataframe")
    with open_dask() as client:
        parts = frames.read_parquet(folder).to_delayed()
        states = client.gather(client.map(fold_frame, client.compute(parts), pure=False))
    return sum(states), len(states)


def open_dask() -> Any:
    """A client of two processes of one thread each."""
    distributed = importlib.import_module("distributed")
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    return distributed.Client(**how)


def fold_frame(frame: Any) -> State:
    return JOB.fold(frame[NAMES], frame["y"])


def by_spark(folder: Path) -> tuple[State, int]:
    """Folds each batch where it lies, by mapInArrow; a state travels as bytes."""
    sql = importlib.import_module("pyspark.sql")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    session = spark.config("spark.log.level", "ERROR").getOrCreate()
    try:
        table = session.read.parquet(str(folder))
        rows = table.mapInArrow(fold_batches, "state binary").collect()
    finally:
        session.stop()
    states = [State.from_bytes(bytes(row.state)) for row in rows]
    return sum(states), len(states)


def fold_batches(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        state = fold_frame(batch.to_pandas())
        yield pyarrow.RecordBatch.from_pydict({"state": [state.to_bytes()]})


def by_ray(folder: Path) -> tuple[State, int]:
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        fold = ray.remote(fold_file)
        states = ray.get([fold.remote(path) for path in sorted(folder.iterdir())])
    finally:
        ray.shutdown()
    return sum(states), len(states)


def fold_file(path: Path) -> State:
    return fold_frame(pd.read_parquet(path))


ENGINES: dict[str, Callable[[Path], tuple[State, int]]] = {
    "one after the other": in_order,
    "joblib, 2 threads": by_threads,
    "joblib, 2 processes": by_processes,
    "joblib on dask, 2 processes": by_dask_backend,
    "dask, 2 processes": by_dask,
    "Spark, local[2]": by_spark,
    "ray, 2 processes": by_ray,
}


# Workers that are killed --------------------------------------------------------------------------


def show_killed(folder: Path, whole: State) -> bool:
    """A run in which three workers are killed while they read a part; whether it ended right."""
    print("\nworkers killed in the middle of a run")
    right = True
    for name, run in (("joblib, 2 processes", kill_processes), ("joblib on dask", kill_on_dask)):
        for mark in folder.parent.glob(f"{folder.name}-*.died"):
            mark.unlink()
        budget = Budget(**GOAL)
        paths = sorted(folder.iterdir())
        parts = [partial(read_or_die, path, place, folder) for place, path in enumerate(paths)]
        try:
            state = run(parts)
        except ImportError as error:
            print(f"{name:<28}   {error.name} is not installed")
            continue
        JOB.release(state, **GOAL, budget=budget)
        marks = list(folder.parent.glob(f"{folder.name}-*.died"))
        spent = "once" if budget.spent == tuple(GOAL.values()) else str(budget.spent)
        bits = compare(state, whole)
        print(f"{name:<28}{len(marks)} killed, bits {bits}, charged {spent}")
        right &= bits == "equal" and spent == "once" and bool(marks)
        for mark in marks:
            mark.unlink()
    return right


def read_or_die(path: Path, place: int, folder: Path) -> pd.DataFrame:
    """The part; three of them kill the worker that reads them first."""
    mark = folder.parent / f"{folder.name}-{place}.died"
    if place in (3, 7, 11) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return pd.read_parquet(path)


def kill_processes(parts: list[Callable[[], Any]]) -> State:
    return Chunks(parts, label="y", workers=2).fold(JOB.fold)


def kill_on_dask(parts: list[Callable[[], Any]]) -> State:
    joblib, client = importlib.import_module("joblib"), open_dask()
    with client, joblib.parallel_config("dask"):
        return Chunks(parts, label="y").fold(JOB.fold)


# Two workers beside one ---------------------------------------------------------------------------


def show_speed() -> None:
    """Parts that are made where they are folded: half a minute of work for one worker."""
    os.environ.setdefault("HDP_FAST_NUM_THREADS", "1")
    parts = [partial(make_part, part, 2_000_000) for part in range(48)]
    seconds = {}
    for workers in (1, 2):
        begun = time.perf_counter()
        Chunks(parts, label="y", workers=workers).fold(JOB.fold)
        seconds[workers] = time.perf_counter() - begun
    print(f"one worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s: {seconds[1] / seconds[2]:.2f}")


# A billion records -------------------------------------------------------------------------------


class Folded(NamedTuple):
    """What a worker did with a part: its times are those of the processor."""

    state: State
    made: float
    folded: float
    peak: int


def show_records(records: int, workers: int) -> None:
    """Four releases of one pass: their time and memory, and how far they are from the truth."""
    os.environ.setdefault("HDP_FAST_NUM_THREADS", "1")
    print(f"{D} columns and a label, {workers} workers; means, histogram, quartiles, moments")
    print(
        f"{'records':>13}{'seconds':>9}{'a second':>13}{'making, CPU s':>15}{'folding':>9}", end=""
    )
    print(f"{'state MB':>10}{'peak MB':>9}")
    peaks = []
    for n in (records // 100, records):
        begun = time.perf_counter()
        total = fold_records(n, workers)
        released = release_many(total.state)
        seconds = time.perf_counter() - begun
        print(f"{n:>13,}{seconds:>9.1f}{n / seconds:>13,.0f}{total.made:>15.1f}", end="")
        print(f"{total.folded:>9.1f}{len(total.state.to_bytes()) / 1e6:>10.1f}", end="")
        peaks.append(max(total.peak, peak_bytes()) / 1e6)
        print(f"{peaks[-1]:>9.0f}", flush=True)
    print(f"the peak of a process grew by {peaks[1] - peaks[0]:.0f} MB")
    means, histogram, quartiles, moments = released
    # Records stand in units of the norm 3.
    products = np.where(np.eye(D), 1 / 3, 1 / 4) / 9
    errors = {
        "means": np.abs([mean.value - 0.5 for mean in means.values()]).max(),
        "shares of bins": np.abs(histogram.value / n - 1 / 20).max(),
        "quartiles": np.abs(quartiles.value - [0.25, 0.5, 0.75]).max(),
        "second moments": np.abs(moments.moments * 0.25**moments.bits / n - products).max(),
    }
    print("largest errors: " + ", ".join(f"{name} {error:.1e}" for name, error in errors.items()))


def fold_records(n: int, workers: int) -> Folded:
    """The sum of all parts, each of which makes its records block by block."""
    blocks = [min(BLOCK, n - start) for start in range(0, n, BLOCK)]
    parts = [
        partial(make_blocks, place, blocks[place : place + BLOCKS])
        for place in range(0, len(blocks), BLOCKS)
    ]
    total: Folded | None = None
    for part in Chunks(parts, workers=workers).map(fold_part):
        total = part if total is None else Folded(*map(operator.add, total[:3], part[:3]),
                                                  max(total.peak, part.peak))  # fmt: skip
    assert total is not None
    return total


def make_blocks(place: int, sizes: list[int]) -> Iterator[tuple[Any, Any]]:
    """Uniform columns, and whether the first is above the second: those of a seed a block."""
    for seed, size in enumerate(sizes, start=place):
        X = np.random.Generator(np.random.SFC64(seed)).random((size, D), dtype=np.float32)
        yield X, (X[:, 0] > X[:, 1]).astype(np.int64)


def fold_part(blocks: Iterator[tuple[Any, Any]], name: str | None) -> Folded:
    """One state for the four releases, and what it took."""
    marks: list[float] = [time.process_time()]
    state: Any = 0
    for X, y in blocks:
        marks.append(time.process_time())
        first = X[:, 0]
        each = [job.fold(part) for job, part in zip(MANY, (X, first, first), strict=False)]
        state += bundle("engines.MANY", [*each, JOB.fold(X, y)], len(y))
        marks.append(time.process_time())
    steps = np.diff(marks)
    return Folded(state, steps[::2].sum(), steps[1::2].sum(), peak_bytes())


def release_many(state: State) -> list[Any]:
    """The four releases, a quarter of epsilon and delta each."""
    budget, share = Budget(**GOAL), GOAL["epsilon"] / 4
    means, histogram, quartiles, moments = zip(MANY, unbundle(state), strict=True)
    pure = [job.release(part, epsilon=share, budget=budget)
            for job, part in (means, histogram, quartiles)]  # fmt: skip
    return [*pure, JOB.release(moments[1], epsilon=share, delta=GOAL["delta"], budget=budget)]


if __name__ == "__main__":
    main()
