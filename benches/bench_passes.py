"""Whole jobs in a process each: CPU time, and the peak of memory beyond the records.

Run `python benches/bench_passes.py`: ten minutes and 2.5 GB of memory. Statistics of 10^6 and 10^7
records stand beside numpy and pandas, which protect no one; a command stands beside the import of
numpy. Times are those of the processor, of one thread; the least of three runs. Estimators stand
beside those of scikit-learn, `hdp-fast stats` beside pyarrow's reading of its file, and each verb
that takes tables beside a program of pandas and scikit-learn that protects no one.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
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
from hdp_fast.data import Label, Number, Schema

SIZES = (1_000_000, 10_000_000)
RUNS, KINDS, COLUMNS = 3, 20, 8
FEATURES, FILE_COLUMNS, WHOLE_COLUMNS = 50, 6, 10
# Of a panel: the files that it lies in, the people who answer, and the bits of a record.
PARTS, PEOPLE, BITS = 16, 20_000, 16
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


def make_panel(n: int, suffix: str, parts: int) -> Job:
    """A panel in files and a survey on the command line, and the reading of the files alone."""
    import pyarrow
    from pyarrow import csv, parquet

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    names = [f"x{place}" for place in range(FILE_COLUMNS)]
    X = numbers(n + PEOPLE, len(names)).round(4)
    y = (X[:, 0] + X[:, 1] + 0.3 * np.random.default_rng(3).normal(size=len(X)) > 1).astype(int)
    table = pyarrow.table({**dict(zip(names, X.T, strict=True)), "y": y})
    schema, panel = folder / "schema.json", folder / "panel"
    columns = {name: Number(0, 1, tuple(np.arange(1, 10) / 10)) for name in names}
    schema.write_text(Schema(Label("y", positive=("1",)), columns).to_json())
    parquet.write_table(table[n:], folder / "survey.parquet")
    panel.mkdir()
    options = csv.ReadOptions(use_threads=False)
    write, read = csv.write_csv, partial(csv.read_csv, read_options=options)
    if suffix == ".parquet":
        write, read = parquet.write_table, partial(parquet.read_table, use_threads=False)
    size = -(-n // parts)
    for part in range(0, n, size):
        write(table[:n][part : part + size], str(panel / f"{part}{suffix}"))
    paths = sorted(map(str, panel.iterdir()))
    words = ["hybrid", *paths, str(folder / "survey.parquet"), "--schema", str(schema)]
    words += ["--epsilon", "1", "--delta", "1e-6", "--agents-epsilon", "2", "--quiet", "--force"]
    place = ["--output", str(folder / "out.json")]
    return lambda: run_quietly([*words, *place]), lambda: list(map(read, paths))


def make_rounds(n: int, kept: bool) -> Job:
    """Rounds of reweighing over files, and over one array.

    kept: whether bits of files stay in memory, as they do unless they are many.
    """
    import pyarrow
    from pyarrow import parquet

    from hdp_fast import learners, transfer
    from hdp_fast.data import Chunks
    from hdp_fast.transfer import run_records

    if not kept:
        run_records.MOST_PACKED = 0

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    X = np.random.default_rng(1).integers(0, 2, (n, BITS), dtype=np.uint8)
    y = np.where(np.random.default_rng(2).random(n) < 0.2, X[:, 2], X[:, 0] & X[:, 1])
    names = [f"x{place}" for place in range(BITS)]
    size = -(-n // PARTS)
    for part in range(0, n, size):
        columns = np.column_stack([X, y])[part : part + size].T
        table = pyarrow.table(dict(zip([*names, "y"], columns, strict=True)))
        parquet.write_table(table, folder / f"{part:09}.parquet")
    learner = learners.ExponentialLearner(learners.Conjunctions(BITS, 2), epsilon=1.0)
    run = transfer.SubsampleTestReweigh(learner, schedule="never", **PRICE)
    return lambda: run.fit(Chunks(folder, label="y")), lambda: run.fit(X, y)


def run_quietly(words: list[str]) -> None:
    """Runs a command, which must end well."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        assert main(words) == 0


def make_command(n: int, verb: str, suffix: str) -> Job:
    """A verb on files: n records, and a tenth as many of the second table that it takes.

    Without privacy pandas reads the tables and scikit-learn learns what the verb releases: all of
    it, where the verb describes; a classifier, its rows of the second table labeled or its scores
    calibrated there; a ridge regression on both tables.
    """
    import pandas

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    names = [f"x{place}" for place in range(WHOLE_COLUMNS)]
    paths = []
    for place, rows in enumerate((n, max(n // 10, 1000))):
        rng = np.random.default_rng(place)
        X = rng.random((rows, len(names))).round(4)
        y = X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=rows) > 1
        frame = pandas.DataFrame(X, columns=names).assign(y=y.astype(np.int64))
        paths.append(str(folder / f"{place}{suffix}"))
        if suffix == ".csv":
            frame.to_csv(paths[place], index=False)
        else:
            frame.to_parquet(paths[place])
    schema = folder / "schema.json"
    schema.write_text(
        Schema(Label("y", positive=("1",)), {name: Number(0, 1) for name in names}).to_json()
    )
    output = str(folder / f"out{suffix if verb == 'label' else '.json'}")
    words = [verb, *paths[: VERBS[verb][0]], "--schema", str(schema), *VERBS[verb][1]]
    words += ["--output", output, "--quiet", "--force"]
    words += ["--record", str(folder / "record.json")] if verb == "label" else []
    read = pandas.read_csv if suffix == ".csv" else pandas.read_parquet
    without = partial(WITHOUT[verb], [partial(read, path) for path in paths], names, output)
    return lambda: run_quietly(words), without


def describe_openly(tables: Sequence[Callable[[], Any]], names: list[str], output: str) -> None:
    """Counts, means, quartiles and the histogram of a table."""
    table = tables[0]()
    found = [len(table), table[names].mean(), table[names].quantile(LEVELS), table.y.value_counts()]
    Path(output).write_text(repr(found))


def fit_openly(tables: Sequence[Callable[[], Any]], names: list[str], output: str) -> Any:
    """The classifier of a table, without a penalty to be tuned."""
    from sklearn.linear_model import LogisticRegression

    table = tables[0]()
    model = LogisticRegression().fit(table[names], table.y)
    Path(output).write_text(repr(model.coef_))
    return model


def label_openly(tables: Sequence[Callable[[], Any]], names: list[str], output: str) -> None:
    """The second table with the labels of such a classifier."""
    model, public = fit_openly(tables, names, output), tables[1]()
    labeled = public.assign(label=model.predict(public[names]))
    if output.endswith(".csv"):
        labeled.to_csv(output, index=False)
    else:
        labeled.to_parquet(output)


def calibrate_openly(tables: Sequence[Callable[[], Any]], names: list[str], output: str) -> None:
    """Slope and intercept of such a classifier's scores on the second table, and its error."""
    from sklearn.linear_model import LogisticRegression

    model, survey = fit_openly(tables, names, output), tables[1]()
    scores = model.decision_function(survey[names])[:, None]
    calibrated = LogisticRegression().fit(scores, survey.y)
    Path(output).write_text(repr([calibrated.coef_, calibrated.score(scores, survey.y)]))


def regress_openly(tables: Sequence[Callable[[], Any]], names: list[str], output: str) -> None:
    """A ridge regression of labels on both tables."""
    import pandas
    from sklearn.linear_model import Ridge

    table = pandas.concat([read() for read in tables])
    Path(output).write_text(repr(Ridge().fit(table[names], 2 * table.y - 1).coef_))


GOAL = ("--epsilon", "1", "--delta", "1e-6")
# How many tables a verb takes, its options, and the program without privacy.
VERBS: dict[str, tuple[int, tuple[str, ...]]] = {
    "stats": (1, GOAL),
    "fit": (1, GOAL),
    "label": (2, (*GOAL, "--method", "statistics")),
    "hybrid": (2, (*GOAL, "--agents-epsilon", "1")),
    "adapt": (2, GOAL),
}
WITHOUT: dict[str, Callable[..., Any]] = {
    "stats": describe_openly,
    "fit": fit_openly,
    "label": label_openly,
    "hybrid": calibrate_openly,
    "adapt": regress_openly,
}


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
    **{
        f"hdp-fast hybrid, {FILE_COLUMNS} columns in {parts} {suffix}": partial(
            make_panel, suffix=suffix, parts=parts
        )
        for parts, suffix in itertools.product((1, PARTS), (".csv", ".parquet"))
    },
}
ROUNDS: dict[str, Callable[[int], Job]] = {
    f"SubsampleTestReweigh, {BITS} bits in {PARTS} .parquet, {how}": partial(
        make_rounds, kept=how == "kept"
    )
    for how in ("kept", "read in each round")
}
WHOLE: dict[str, Callable[[int], Job]] = {
    f"hdp-fast {verb}, {WHOLE_COLUMNS} columns of {suffix}": partial(
        make_command, verb=verb, suffix=suffix
    )
    for verb in VERBS
    for suffix in (".csv", ".parquet")
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
    make = (JOBS | ESTIMATORS | FILES | ROUNDS | WHOLE)[name]
    action = make(n)[place]
    make(1_000)[place]()  # What is imported and planned at first use is no cost of records.
    with suppress(OSError):  # Linux forgets the peak of making the records.
        Path("/proc/self/clear_refs").write_text("5")
    before, seconds = peak_bytes(), []
    for _ in range(1 if name in ROUNDS else RUNS):
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
    """Statistics of a file, and a run over a panel in parts, and what reading it takes alone."""
    pytest.importorskip("pyarrow")
    require_memory(500 * n)
    show_beside(table, name, n, "pyarrow reads it", cells=FILE_COLUMNS)


@pytest.mark.sizes("n", (100_000, 1_000_000), tiny=1_000)
@pytest.mark.parametrize("name", WHOLE)
def bench_commands(table: Callable[..., None], name: str, n: int) -> None:
    """A verb on files, and a program of pandas and scikit-learn that protects no one."""
    pytest.importorskip("sklearn")
    pytest.importorskip("pyarrow")
    require_memory(1_500 * n)
    show_beside(table, name, n, "without privacy", cells=WHOLE_COLUMNS + 1)


@pytest.mark.sizes("n", (1_000_000, 10_000_000), tiny=1_000)
@pytest.mark.parametrize("name", ROUNDS)
def bench_rounds(table: Callable[..., None], name: str, n: int) -> None:
    """A run over records in files, and over one array of them."""
    pytest.importorskip("pyarrow")
    require_memory(200 * n)
    show_beside(table, name, n, "one array")


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
