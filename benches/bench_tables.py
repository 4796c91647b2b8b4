"""How long tables take to be read, beside pyarrow's own readers: 300,000 rows of 10 columns.

Run `python benches/bench_tables.py`: about half a minute. Five columns hold numbers and five texts.
"features" reads the file and makes what is learned from: the float features and the labels of a
schema. pyarrow and pandas are needed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file

from hdp_fast.data import Label, Schema, read_frame, read_table

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 300_000
CATEGORIES = {"job": 14, "state": 50, "sex": 2, "degree": 16, "home": 5}
LABEL = Label("job", positive=("job 1",))


@pytest.mark.parametrize("file", ["csv", "csv, texts quoted", "parquet", "arrow"])
def bench_read(race: Race, tmp_path: Path, file: str) -> None:
    """A file, read whole."""
    frame = make_frame(race.scaled("rows", ROWS))
    schema = Schema.from_public(frame[:10_000], LABEL)
    path = tmp_path / ("a." + file.split(",")[0])
    own = write_file(path, file, frame)
    race.ours(partial(read_table, path), "read_table", threads=(2,))
    race.ours(lambda: use(schema, read_table(path)), "features", threads=(2,))
    race.peer("pyarrow", partial(own, path), threads=2)
    race.run(len(frame), "row")


def bench_frame(race: Race) -> None:
    """A frame of pandas."""
    frame = make_frame(race.scaled("rows", ROWS))
    schema = Schema.from_public(frame[:10_000], LABEL)
    race.ours(partial(read_frame, frame), "read_frame", threads=(2,))
    race.ours(partial(use, schema, frame), "features", threads=(2,))
    race.run(len(frame), "row")


def make_frame(rows: int) -> Any:
    """Return a table of people who do not exist."""
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {
        "age": rng.integers(18, 90, rows),
        "pay": np.round(rng.lognormal(10, 1, rows), 2),
        "score": rng.normal(size=rows),
        "hours": rng.integers(0, 99, rows),
        "weight": np.round(rng.normal(70, 10, rows), 1),
    }
    for name, count in CATEGORIES.items():
        texts = np.array([f"{name} {place}" for place in range(count)])
        columns[name] = texts[rng.integers(0, count, rows)]
    return pandas.DataFrame(columns)


def write_file(path: Path, file: str, frame: Any) -> Any:
    """Write the table; return what reads it in pyarrow."""
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    if file == "parquet":
        parquet.write_table(table, path)
        return parquet.read_table
    if file == "arrow":
        feather.write_feather(table, path)
        return partial(feather.read_table, memory_map=False)
    style = "none" if file == "csv" else "needed"
    csv.write_csv(table, path, csv.WriteOptions(quoting_style=style))
    return csv.read_csv


def use(schema: Schema, records: Any) -> None:
    """Make features and labels."""
    schema.floats(records)
    schema.labels(records)


if __name__ == "__main__":
    run_file(__file__)
