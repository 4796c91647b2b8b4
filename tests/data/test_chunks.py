"""Chunks: every source folds to the bits of one array, whatever the parts and the workers are."""

import dataclasses
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hdp_fast import Budget, statistics
from hdp_fast.data import Chunks, Number, Schema, delimited, sources
from hdp_fast.data.delimited import read_text, read_text_blocks
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError
from hdp_fast.learners import (
    Conjunctions,
    ExponentialLearner,
    FeatureMap,
    PrivateSGD,
    SufficientStatistics,
)

N, CUTS = 1000, (0, 1, 300, 640, 1000)
JOB = SufficientStatistics(
    FeatureMap.identity(3, norm_bound=2.0), classes=[0, 1], second_moments=True, capacity=N
)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    return frame.assign(y=rng.integers(0, 2, N))


TABLE = table()
PARTS = [TABLE[start:end] for start, end in itertools.pairwise(CUTS)]
X, Y = TABLE[["a", "b", "c"]].to_numpy(), TABLE["y"].to_numpy()
WHOLE = JOB.fold(X, Y)


def write(folder, kind):
    folder.mkdir()
    for place, part in enumerate(PARTS):
        path = folder / f"{place}.{kind}"
        if kind == "npz":
            np.savez(path, **{name: part[name].to_numpy() for name in part})
        elif kind == "feather":
            part.reset_index(drop=True).to_feather(path)
        else:
            part.to_parquet(path, row_group_size=100)
    return folder


def folders(tmp_path):
    import dask.dataframe
    import polars
    import pyarrow.dataset

    path = write(tmp_path / "parts", "parquet")
    yield "folder", path, 4
    yield "text of a folder", str(path), 4
    yield "pattern", str(path / "*.parquet"), 4
    yield "list of files", sorted(path.iterdir()), 4
    yield "npz", write(tmp_path / "npz", "npz"), 4
    yield "feather", write(tmp_path / "feather", "feather"), 4
    yield "dataset", pyarrow.dataset.dataset(path), 4
    yield "reader", pyarrow.dataset.dataset(path).scanner().to_reader(), 1
    yield "polars", polars.scan_parquet(path / "*.parquet"), 1
    yield "dask", dask.dataframe.read_parquet(path), 4
    yield "frames", PARTS, 4
    yield "polars frames", [polars.from_pandas(part) for part in PARTS], 4
    yield "dicts", [{name: part[name].to_numpy() for name in part} for part in PARTS], 4
    yield "functions", [partial(PARTS.__getitem__, place) for place in range(4)], 4
    yield "a mixture", [PARTS[0], path / "1.parquet", partial(iter, PARTS[2:])], 3


def test_every_source_has_the_bits_of_one_array(tmp_path):
    for name, source, many in folders(tmp_path):
        chunks = Chunks(source, label="y")
        assert len(chunks) == many, name
        state = chunks.fold(JOB.fold)
        assert state.rows == N, name
        for array, values in WHOLE.sums.items():
            assert (state.sums[array] == values).all(), name


def test_pairs_and_arrays_need_no_label(tmp_path):
    pairs = [(X[start:end], Y[start:end]) for start, end in itertools.pairwise(CUTS)]
    state = Chunks(pairs).fold(JOB.fold)
    assert (state.sums["moments"] == WHOLE.sums["moments"]).all()
    np.save(tmp_path / "X.npy", X)
    blocks = Chunks(tmp_path / "X.npy").map(lambda blocks, name: [part for (part,) in blocks])
    assert (np.concatenate(next(blocks)) == X).all()


def test_a_release_is_that_of_the_array(tmp_path):
    chunks = Chunks(write(tmp_path / "parts", "parquet"), label="y")
    job = SufficientStatistics(JOB.features, classes=[0, 1], second_moments=True)
    budget = Budget(epsilon=1.0, delta=1e-6)
    ours = job.release(chunks, epsilon=1.0, delta=1e-6, budget=budget, random_state=3)
    theirs = job.release(X, Y, epsilon=1.0, delta=1e-6, random_state=3)
    assert (ours.sums == theirs.sums).all()
    assert (ours.moments == theirs.moments).all()
    assert ours.bits == theirs.bits
    assert budget.spent == (1.0, 1e-6)


def test_columns_are_chosen(tmp_path):
    path = write(tmp_path / "parts", "parquet")
    job = SufficientStatistics(FeatureMap.identity(2, norm_bound=2.0), classes=[0, 1])
    ours = Chunks(path, columns=["c", "a"], label="y").fold(job.fold)
    theirs = job.fold(X[:, [2, 0]], Y)
    assert (ours.sums["sums"] == theirs.sums["sums"]).all()
    with pytest.raises(HdpFastError):
        Chunks(path, columns=["d"], label="y").fold(job.fold)


class RayLike:
    """What is asked of a dataset of ray."""

    __module__ = "ray.data.dataset"

    def __init__(self, frame):
        self.frame = frame

    def select_columns(self, columns):
        return RayLike(self.frame[columns])

    def iter_batches(self, *, batch_size, batch_format):
        import pyarrow

        assert batch_format == "pyarrow"
        for start in range(0, len(self.frame), batch_size):
            yield pyarrow.Table.from_pandas(self.frame[start : start + batch_size])


class SparkLike:
    """What is asked of a frame of Spark."""

    __module__ = "pyspark.sql.dataframe"

    def __init__(self, frame):
        self.frame = frame
        kinds = {"f": "double", "i": "bigint", "O": "string"}
        self.dtypes = [(name, kinds[frame[name].dtype.kind]) for name in frame]

    def select(self, columns):
        return SparkLike(self.frame[columns])

    def toLocalIterator(self, prefetchPartitions=False):
        rows = self.frame.astype(object).itertuples(index=False, name=None)
        return (tuple(None if value is pd.NA else value for value in row) for row in rows)


@pytest.mark.parametrize("like", [RayLike, SparkLike])
@pytest.mark.parametrize("rows", [300, 500])
def test_frames_of_engines_are_streamed(like, rows, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", rows)
    whole = Chunks(like(TABLE), label="y").fold(JOB.fold)
    assert (whole.sums["moments"] == WHOLE.sums["moments"]).all()
    job = SufficientStatistics(FeatureMap.identity(2, norm_bound=2.0), classes=[0, 1])
    some = Chunks(like(TABLE), columns=["c", "a"], label="y").fold(job.fold)
    assert (some.sums["sums"] == job.fold(X[:, [2, 0]], Y).sums["sums"]).all()


def test_columns_of_spark_have_their_declared_types_whatever_is_missing():
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, 1.5], "text": ["a", "7"]})
    rows = [(1, None, "a"), (None, 0.5, None)]
    for values in (rows, rows[::-1], [(1, 0.5, "7")] * 2, [(None,) * 3] * 2):
        spark = SparkLike(frame)
        spark.toLocalIterator = lambda prefetchPartitions, values=values: iter(values)
        (blocks,) = Chunks(spark).map(lambda blocks, name: [table for (table,) in blocks])
        columns = blocks[0].columns
        kinds = [columns[name].values.dtype for name in ("n", "x")]
        assert kinds == [np.int64, np.float64]
        for place, name in enumerate(("n", "x")):
            wanted = [math.nan if row[place] is None else row[place] for row in values]
            assert np.array_equal(columns[name].row_numbers(), wanted, equal_nan=True)
        texts = [columns["text"].texts[code] for code in columns["text"].codes]
        assert texts == [row[2] or "" for row in values]


@pytest.mark.parametrize("workers", [None, 2])
def test_columns_in_another_order_are_refused_and_named_ones_are_taken(tmp_path, workers):
    path = write(tmp_path / "parts", "parquet")
    PARTS[2][["c", "y", "b", "a"]].to_parquet(path / "2.parquet")
    with pytest.raises(ParameterError, match="parts have different columns, or in other orders"):
        Chunks(path, label="y", workers=workers).fold(JOB.fold)
    ours = Chunks(path, columns=["a", "b", "c"], label="y", workers=workers).fold(JOB.fold)
    assert (ours.sums["moments"] == WHOLE.sums["moments"]).all()


def test_gather_keeps_the_order_of_parts():
    rows = Chunks(PARTS, workers=2).gather(lambda blocks, name: sum(len(b) for (b,) in blocks))
    assert rows == [1, 299, 340, 360]


def test_parts_carry_their_names(tmp_path):
    path = write(tmp_path / "parts", "parquet")
    state = Chunks(path, label="y").fold(JOB.fold)
    assert state.parts == {str(file) for file in path.iterdir()}
    for other in (path / "1.parquet", path / ".." / path.name / "1.parquet"):
        with pytest.raises(ParameterError, match="must count once"):
            Chunks([path, other], label="y").fold(JOB.fold)


def test_parts_without_rows_count_nothing(tmp_path):
    path = write(tmp_path / "parts", "parquet")
    PARTS[0][:0].to_parquet(path / "empty.parquet")
    assert Chunks(path, label="y").fold(JOB.fold).rows == N
    assert Chunks(path).count() == N
    nothing = Chunks(path / "empty.parquet", label="y")
    with pytest.raises(ShapeError, match="0 rows, but their public number must be at least 1"):
        JOB.release(nothing, epsilon=1.0, delta=1e-6)
    with pytest.raises(ShapeError, match="the parts hold no row"):
        Chunks([lambda: iter([])], label="y").fold(JOB.fold)


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "arrow", "frame", "dataset", "reader"])
def test_that_there_are_no_rows_does_not_show_where_their_number_is_private(kind, tmp_path):
    import pyarrow as pa
    import pyarrow.dataset

    frame, path = PARTS[0][:0], tmp_path / f"empty.{kind}"
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        path = tmp_path / "empty.parquet"
        frame.to_parquet(path)
    sources = {
        "frame": lambda: [frame],
        "dataset": lambda: pyarrow.dataset.dataset(path),
        "reader": table.to_reader,
    }
    source = sources.get(kind, lambda: path)()
    private = dataclasses.replace(JOB, neighbors="add_remove")
    if kind == "csv":
        # Labels of a text are texts.
        private = dataclasses.replace(private, classes=["0", "1"])
    assert private.release(Chunks(source, label="y"), epsilon=1.0, delta=1e-6).n >= 1


def test_columns_of_parts_are_in_one_order(tmp_path):
    """Of an array of numbers no job can tell."""
    turned = PARTS[1][["b", "y", "c", "a"]]
    for parts in ([PARTS[0], turned], [lambda: iter([PARTS[0], turned])]):
        with pytest.raises(ParameterError, match="parts have different columns"):
            Chunks(parts, label="y").fold(JOB.fold)
        state = Chunks(parts, label="y", columns=["a", "b", "c"]).fold(JOB.fold)
        expected = JOB.fold(X[: CUTS[2]], Y[: CUTS[2]])
        assert (state.sums["moments"] == expected.sums["moments"]).all()


def test_files_that_others_keep_beside_parts_are_none(tmp_path):
    path = write(tmp_path / "parts", "parquet")
    for folder in (".ipynb_checkpoints", "_temporary/0"):
        (path / folder).mkdir(parents=True)
        (path / folder / "1.parquet").write_bytes((path / "1.parquet").read_bytes())
    (path / "again").symlink_to(path)
    (path / "link.parquet").symlink_to(path / "1.parquet")
    for source in (path, str(path / "**/*.parquet")):
        chunks = Chunks(source)
        assert len(chunks.names) == len(set(chunks.names)) == len(PARTS) + ("*" in str(source))
    assert Chunks(path).count() == N


def test_functions_and_frames_are_read_as_files_are(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("a;b\n1;2\n")
    for entry in (lambda: path, pd.DataFrame({"a": [1], "b": [2]})):
        chunks = Chunks([entry], columns=["b"], delimiter=";")
        assert list(chunks.peek().columns) == ["b"]


def test_folders_of_a_dataset_may_be_columns(tmp_path):
    import pyarrow as pa
    import pyarrow.dataset

    table = pa.table({"x": [1.0, 2.0], "year": [1, 2]})
    pyarrow.dataset.write_dataset(
        table, tmp_path, format="parquet", partitioning=["year"], partitioning_flavor="hive"
    )
    data = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    years = [block.column("year")[0].as_py() for part in Chunks(data)._parts
             for block in part.open() if block.num_rows]  # fmt: skip
    assert sorted(years) == [1, 2]


def test_parts_that_change_between_passes_are_refused_and_nothing_is_spent():
    sizes = iter([len(PARTS[0]), len(PARTS[0]) - 1])
    budget = Budget(2.0, 1e-5)
    with pytest.raises(ShapeError, match="parts changed"):
        JOB.release(
            Chunks([lambda: PARTS[0][: next(sizes)]], label="y"),
            epsilon=1.0,
            delta=1e-6,
            budget=budget,
        )
    assert budget.spent[0] == 0


def test_a_reader_is_read_once():
    import pyarrow as pa

    chunks = Chunks(pa.Table.from_pandas(TABLE).to_reader(), label="y")
    assert chunks.fold(JOB.fold).rows == N
    with pytest.raises(ParameterError, match="it is read once"):
        chunks.fold(JOB.fold)
    assert Chunks(pa.Table.from_pandas(TABLE).to_reader()).peek().num_rows == 0


@pytest.mark.parametrize("wrong", [5, None, {}, [], ["nothing/*.csv"], [7], "no_such_folder"])
def test_what_is_no_source_is_refused(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError):
        Chunks(wrong).fold(JOB.fold)


def test_a_label_is_no_column():
    with pytest.raises(ParameterError, match="label = 'y', but it must be none of columns"):
        Chunks(PARTS, columns=["a", "y"], label="y")


def test_workers_are_a_number():
    for wrong in (0, 1.5, "two"):
        with pytest.raises(ParameterError, match="workers"):
            Chunks([X], workers=wrong)


# Workers -----------------------------------------------------------------------------------------


def test_workers_make_the_same_bits(tmp_path):
    import joblib

    path = write(tmp_path / "parts", "parquet")
    chunks = [Chunks(path, label="y", workers=2)]
    with joblib.parallel_config("threading", n_jobs=2):
        chunks.append(Chunks(path, label="y"))
        states = [some.fold(JOB.fold) for some in chunks]
    for state in states:
        for name, values in WHOLE.sums.items():
            assert (state.sums[name] == values).all()


def die_once(place, folder):
    """A part whose first reader dies, once others are read."""
    mark = Path(folder) / f"{place}.died"
    if place in (1, 2, 3) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return PARTS[place]


def die_always(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_three_times_changes_nothing(tmp_path):
    parts = [partial(die_once, place, tmp_path) for place in range(4)]
    budget = Budget(epsilon=1.0, delta=1e-6)
    chunks = Chunks(parts, label="y", workers=2)
    assert chunks.count() == N
    assert len(list(tmp_path.glob("*.died"))) == 3
    for mark in tmp_path.glob("*.died"):
        mark.unlink()
    ours = JOB.release(chunks, epsilon=1.0, delta=1e-6, budget=budget, random_state=5)
    theirs = JOB.release(X, Y, epsilon=1.0, delta=1e-6, random_state=5)
    assert (ours.sums == theirs.sums).all()
    assert budget.spent == (1.0, 1e-6)


def test_a_part_that_kills_every_worker_ends_the_run_and_spends_nothing(tmp_path):
    from concurrent.futures.process import BrokenProcessPool

    budget = Budget(epsilon=1.0, delta=1e-6)
    chunks = Chunks([partial(die_always, tmp_path), *PARTS], label="y", workers=2)
    with pytest.raises(BrokenProcessPool):
        JOB.release(chunks, epsilon=1.0, delta=1e-6, budget=budget)
    assert budget.spent == (0, 0)


def test_what_a_part_raises_is_raised():
    def broken():
        raise OSError("the disk is gone")

    for workers in (None, 2):
        with pytest.raises(OSError, match="the disk is gone"):
            Chunks([*PARTS, broken], label="y", workers=workers).fold(JOB.fold)


def test_without_joblib_parts_are_read_in_order(tmp_path):
    code = (
        "import sys; sys.modules['joblib'] = None\n"
        "from hdp_fast.data import Chunks\n"
        "import numpy as np\n"
        "print(Chunks([np.ones((2, 3))] * 4).count())\n"
        "try: Chunks([np.ones((2, 3))], workers=2).count()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    needed = "workers = 2 needs joblib: pip install joblib (the extra hdp-fast[parallel])"
    assert done.stdout == f"8\n{needed}\n"


# Tables of text ----------------------------------------------------------------------------------

TEXTS = [
    'a,b\n1,2\n3,4\n',
    'a,b\n1,"x\ny"\n3,""\n"5,""6""",7',
    '\ufeff"a\nb",c\r\n1,2\r\n\r\n"3\r\n",4\r\n',
    'a\n1\n' * 1 + '2\n' * 50,
    'a,b\n',
    'a,b',
    'a,b\r1,2\r3,4\r',
    'a 5",b\n1,2\n3,4\n',
    'a,b\n1,2\n5"x,3\n4,"5\n6"\n7,8\n',
    'a,b\n1,2' + '\n' * 70 + '3,4\n',
]  # fmt: skip


@pytest.mark.parametrize("short", [-1, 1 << 20])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 64])
def test_blocks_of_text_are_the_whole_text(text, size, short, tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode())
    whole = read_text(path, ",", 1 << 30)
    monkeypatch.setattr(delimited, "_PART_BYTES", size)
    # pyarrow reads blocks that are longer, and the csv module all others.
    monkeypatch.setattr(delimited, "_SHORT_BYTES", short)
    blocks = list(read_text_blocks(path, ","))
    for name, column in whole.items():
        cells = [column.texts[code] for code in column.codes]
        parts = [block[name] for block in blocks]
        assert [part.texts[code] for part in parts for code in part.codes] == cells


NUMBERS = [
    ["1", "2.5", "-3e-5", "0", "7"],
    ["nan", "inf", "-inf", "", "NaN"],
    [" 1", "2 ", "\t3", '"4"', '""'],
    ["1e400", "5e-324", "1e-400", "-0", "0x10"],
    ["00501", "1_000", "+1", "1,5", "1"],
    ["", " ", "n/a", "NA", "null"],
    ["\ufeff1", "2", "True", "-", "."],
]


@pytest.mark.parametrize("size", [7, 64, 1 << 20])
@pytest.mark.parametrize("cells", NUMBERS)
def test_columns_read_as_numbers_are_the_numbers_of_their_texts(cells, size, tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    cells = [cell for cell in cells if "," not in cell]
    lines = [f"{cell},w{place % 3},5" for place, cell in enumerate(cells * 3)]
    path.write_bytes("\n".join(["a,b,c", *lines, ""]).encode())
    whole = read_text(path, ",", 1 << 30)
    monkeypatch.setattr(delimited, "_PART_BYTES", size)
    monkeypatch.setattr(delimited, "_SHORT_BYTES", -1)
    blocks = list(read_text_blocks(path, ",", frozenset(["a", "c", "other"])))
    for name in ("a", "c"):
        numbers = np.concatenate([block[name].row_numbers() for block in blocks])
        np.testing.assert_array_equal(numbers, whole[name].row_numbers())
    words = [block["b"].texts[code] for block in blocks for code in block["b"].codes]
    assert words == [f"w{place % 3}" for place in range(len(lines))]


def test_a_fold_that_takes_numbers_alone_has_the_same_integers(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_SHORT_BYTES", -1)
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    job = statistics.Job("quantiles", low=-2, high=2, columns=["a", "b"])
    chunks = Chunks(tmp_path / "people.csv")
    whole = job.fold(TABLE)
    for numbers in ((), ["a"], ("a", "b", "elsewhere")):
        state = chunks.fold(job.fold, numbers=numbers)
        assert state.rows == N
        for ours, theirs in zip(state.tallies["points"], whole.tallies["points"], strict=True):
            assert ours.tolist() == theirs.tolist()
    with pytest.raises(ParameterError, match="numbers"):
        chunks.fold(job.fold, numbers="a")


def test_a_quote_within_a_value_takes_no_longer_than_other_signs(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(b'a,b\n5"x,1\n' + b"12345,67890\n" * 200_000)
    monkeypatch.setattr(delimited, "_PART_BYTES", 1 << 20)
    # Looked at from every line again, this took minutes.
    assert Chunks(path).count() == 200_001


# Memory ------------------------------------------------------------------------------------------


def misplace(values):
    """The same entries where no processor would put them, as a network may."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    moved = np.frombuffer(memory.data, values.dtype, values.size, 1).reshape(values.shape)
    moved.flags.writeable = True
    moved[...] = values
    assert not moved.flags.aligned
    return moved


def test_arrays_and_jobs_from_a_network_lie_anywhere():
    moved = pickle.loads(pickle.dumps(JOB))
    for name in ("origin", "factor"):
        object.__setattr__(moved.features, name, misplace(getattr(JOB.features, name)))
    for job, records, labels in ((JOB, misplace(X), misplace(Y)), (moved, X, Y)):
        state = job.fold(records, labels)
        assert (state.sums["moments"] == WHOLE.sums["moments"]).all()


def test_what_takes_arrays_alone_says_what_takes_parts():
    for call in (
        lambda: statistics.mean(Chunks([X]), low=0, high=1, epsilon=1.0),
        lambda: PrivateSGD(loss="logistic", epsilon=1.0, delta=1e-6).learn(Chunks([X]), Y),
    ):
        with pytest.raises(ParameterError, match=r"statistics\.Job and describe take records in"):
            call()


def test_labels_that_a_job_does_not_take_or_lacks_are_named_and_nothing_is_spent():
    schema, budget = Schema(None, {"a": Number(0, 1)}), Budget(2.0, 1e-5)
    privacy = {"epsilon": 1.0, "budget": budget}
    learner = ExponentialLearner(Conjunctions(2, 1), epsilon=1.0)
    for call, error in (
        (
            lambda: statistics.Job("mean", low=0, high=1).release(
                Chunks(PARTS, label="y"), **privacy
            ),
            "takes none",
        ),
        (lambda: statistics.describe(Chunks(PARTS, label="y"), schema, **privacy), "takes none"),
        (
            lambda: statistics.tables(
                Chunks(PARTS, label="y"), schema, margins=[("a",)], **privacy
            ),
            "takes none",
        ),
        (lambda: JOB.release(Chunks(PARTS), delta=1e-6, **privacy), "they must be pairs"),
        (lambda: learner.learn(Chunks([np.eye(2)]), budget=budget), "they must be pairs"),
    ):
        with pytest.raises(ParameterError, match=f"the parts have .*labels.*, but .*{error}"):
            call()
    assert budget.spent.epsilon == 0


def test_a_task_gets_an_entry_for_each_part():
    chunks = Chunks([X[:3], X[3:3], X[3:]])
    sizes = chunks.gather(lambda blocks, name, more: (sum(map(len_of, blocks)), more), "abc")
    assert sizes == [(3, "a"), (0, "b"), (N - 3, "c")]
    with pytest.raises(ParameterError, match="each of the 3 parts"):
        chunks.gather(lambda blocks, name, more: more, "ab")


def len_of(block):
    return len(block[0])


def test_one_file_is_no_two_parts_of_any_pass(tmp_path):
    """What counts twice in a sum is protected half as well."""
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.npy").symlink_to(tmp_path / "a.npy")
    twice = Chunks([tmp_path / "a.npy", tmp_path / "b.npy"])
    for call in (
        twice.count,
        lambda: list(twice.map(lambda blocks, name: name)),
        lambda: twice.gather(lambda blocks, name: name),
        lambda: list(twice.map_blocks(lambda block: [0])),
    ):
        with pytest.raises(ParameterError, match="there twice"):
            call()


def test_workers_follow_to_another_folder(tmp_path, monkeypatch):
    """joblib keeps its processes, which began in the folder of the first call."""
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        for part in range(2):
            np.save(f"part{part}.npy", np.full((10 * number, 1), 1.0))
        assert Chunks("part*.npy", workers=2).count() == 20 * number


def test_a_hard_link_counts_no_row_twice(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((10, 1)))
    (tmp_path / "b.npy").hardlink_to(tmp_path / "a.npy")
    with pytest.raises(ParameterError, match="is there twice, but it must count once"):
        Chunks(tmp_path).count()
