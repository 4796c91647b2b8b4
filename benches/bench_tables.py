"""How long tables take to be read, beside pyarrow's own readers: 300,000 rows of 10 columns.

Run `python benches/bench_tables.py`: about twenty seconds. Five columns hold numbers and five
texts. A turn reads the file once by each route, and the table shows medians of turns and their
ratio to pyarrow's own. "features" reads the file and makes what is learned from: the float features
and the labels of a schema. pyarrow and pandas are needed.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from _harness import make_parser, print_aligned, print_json

from hdp_fast.bench import Action
from hdp_fast.bench import medians as medians_of
from hdp_fast.data import Label, Schema, read_frame, read_table

ROWS = 300_000
CATEGORIES = {"job": 14, "state": 50, "sex": 2, "degree": 16, "home": 5}
LABEL = Label("job", positive=("job 1",))


def main() -> None:
    """Print the table, or one JSON object with --json."""
    arguments = make_parser(__doc__, repeats=9).parse_args()
    frame = make_frame(np.random.default_rng(1))
    schema = Schema.from_public(frame[:10_000], LABEL)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, own) in write_files(Path(folder), frame).items():
            routes: dict[str, Action] = {
                "pyarrow": partial(own, path),
                "read_table": partial(read_table, path),
                "features": partial(make_features, schema, path),
            }
            results[name] = medians_of(routes, repeats=arguments.repeats)
    routes = {"read_frame": partial(read_frame, frame), "features": partial(use, schema, frame)}
    results["frame of pandas"] = medians_of(routes, repeats=arguments.repeats)
    if arguments.json:
        print_json(results)
    else:
        print_aligned(table_of(results))


def make_frame(rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of people who do not exist."""
    columns: dict[str, Any] = {
        "age": rng.integers(18, 90, ROWS),
        "pay": np.round(rng.lognormal(10, 1, ROWS), 2),
        "score": rng.normal(size=ROWS),
        "hours": rng.integers(0, 99, ROWS),
        "weight": np.round(rng.normal(70, 10, ROWS), 1),
    }
    for name, count in CATEGORIES.items():
        texts = np.array([f"{name} {place}" for place in range(count)])
        columns[name] = texts[rng.integers(0, count, ROWS)]
    return pd.DataFrame(columns)


def write_files(folder: Path, frame: pd.DataFrame) -> dict[str, tuple[Path, Any]]:
    """Write the table in each format; return the files and what reads them in pyarrow."""
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    plain, quoted = folder / "a.csv", folder / "quoted.csv"
    pyarrow.csv.write_csv(table, plain, pyarrow.csv.WriteOptions(quoting_style="none"))
    pyarrow.csv.write_csv(table, quoted)
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    pyarrow.feather.write_feather(table, folder / "a.arrow")
    return {
        ".csv": (plain, pyarrow.csv.read_csv),
        ".csv, texts quoted": (quoted, pyarrow.csv.read_csv),
        ".parquet": (folder / "a.parquet", pyarrow.parquet.read_table),
        ".arrow": (folder / "a.arrow", partial(pyarrow.feather.read_table, memory_map=False)),
    }


def make_features(schema: Schema, path: Path) -> None:
    """Read a file and make features and labels."""
    use(schema, read_table(path))


def use(schema: Schema, records: Any) -> None:
    """Make features and labels."""
    schema.floats(records)
    schema.labels(records)


def table_of(results: dict[str, dict[str, float]]) -> list[list[str]]:
    """Return the rows that are printed."""
    rows = [["file", "route", "ms", "times pyarrow's own"]]
    for name, medians in results.items():
        for route, seconds in medians.items():
            ratio = f"{seconds / medians['pyarrow']:.2f}" if "pyarrow" in medians else ""
            rows.append([name, route, f"{seconds * 1e3:.0f}", ratio])
    return rows


if __name__ == "__main__":
    main()
