"""Linear models of records in parts: the bits of one table, in memory or by a pass a step."""

import io
import itertools
import json
import tempfile

import numpy as np
import pandas as pd
import pyarrow
import pytest

from hdp_fast import Budget
from hdp_fast.cli import main
from hdp_fast.data import Category, Chunks, Label, Number, Schema, read_frame
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import CenteredLinear, centered_classes

N, CUTS = 3_000, (0, 0, 1, 700, 3_000)
SCHEMA = Schema(
    Label("rich", positive=("yes",)),
    {
        "age": Number(0, 90),
        "pay": Number(0, 120),
        "bit": Number(0, 1),
        "job": Category(tuple("abc")),
    },
)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 90, N),
            "pay": rng.normal(50, 20, N).round(2),
            "bit": rng.integers(0, 2, N),
            "job": rng.choice(list("abc"), N),
        }
    )
    signal = frame["pay"] + 10 * frame["bit"] + 5 * rng.normal(size=N)
    names = np.where(signal > 60, "yes", "no")
    return frame.assign(rich=names, kind=np.where(frame["age"] > 60, "old", names))


TABLE = table()
PARTS = [TABLE[start:end] for start, end in itertools.pairwise(CUTS)]


class FullDisk(io.BytesIO):
    """A file that no more fits into."""

    def write(self, _):
        raise OSError("no space left")


@pytest.fixture(params=["kept", "spilled", "made again"])
def memory(request, monkeypatch):
    """Whether the integers of all records are kept, in a file, or made again for each step."""
    if request.param != "kept":
        monkeypatch.setattr(centered_classes, "_MOST_KEPT", 0)
    if request.param == "made again":
        monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("classes", [None, ("no", "old", "yes")])
def test_parts_have_the_model_of_the_table(memory, epsilon, classes):
    schema = SCHEMA if classes is None else Schema(Label("kind", positive=("yes",)), SCHEMA.columns)
    learner = CenteredLinear(schema, epsilon=epsilon, delta=1e-6, classes=classes)
    whole = learner.learn(TABLE, random_state=1)
    assert learner.learn(Chunks(PARTS), random_state=1).to_json() == whole.to_json()
    reordered = Chunks([PARTS[3], PARTS[1], PARTS[2]])
    assert learner.learn(reordered, random_state=1).to_json() == whole.to_json()


def test_workers_have_the_model_of_the_table(monkeypatch, tmp_path):
    monkeypatch.setattr(centered_classes, "_MOST_KEPT", 0)
    for place, part in enumerate(PARTS):
        part.to_parquet(tmp_path / f"{place}.parquet")
    learner = CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-6)
    whole = learner.learn(TABLE, random_state=1)
    parts = Chunks(tmp_path, workers=2)
    assert learner.learn(parts, random_state=1).to_json() == whole.to_json()


def test_without_noise_parts_are_read_as_a_whole():
    learner = CenteredLinear(SCHEMA, epsilon=np.inf)
    ours, theirs = learner.learn(Chunks(PARTS)), learner.learn(TABLE)
    assert ours.to_json() == theirs.to_json()


def test_nothing_is_spent_where_a_part_is_wrong(tmp_path):
    budget = Budget(epsilon=1.0, delta=1e-6)
    learner = CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-6, classes=("yes", "no"))
    wrong = PARTS[3].assign(rich="perhaps")
    for parts, error in (
        ([PARTS[2], wrong], "every row must hold one of classes"),
        ([PARTS[2], PARTS[3].drop(columns="pay")], "lacks 1 columns"),
        ([PARTS[2], read_frame(PARTS[3].drop(columns="pay"))], "column = 'pay'"),
    ):
        with pytest.raises(ParameterError, match=error):
            learner.learn(Chunks(parts), budget=budget)
    with pytest.raises(ShapeError, match="no row"):
        learner.learn(Chunks([TABLE[:0]]), budget=budget)
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ParameterError, match="there twice"):
        learner.learn(Chunks([tmp_path / "a.csv", tmp_path / "a.csv"]), budget=budget)
    with pytest.raises(ParameterError, match="without label="):
        learner.learn(Chunks(PARTS, label="rich"), budget=budget)
    with pytest.raises(ParameterError, match="RecordBatchReader"):
        learner.learn(Chunks(pyarrow.Table.from_pandas(TABLE).to_reader()), budget=budget)
    with pytest.raises(ParameterError, match="ids were passed beside"):
        learner.learn(Chunks(PARTS), ids=np.arange(N), budget=budget)
    assert budget.spent == (0, 0)
    learner.learn(Chunks(PARTS), budget=budget)
    assert budget.spent == (1.0, 1e-6)


def test_the_command_learns_from_parts(tmp_path, capsys):
    parts = tmp_path / "parts"
    parts.mkdir()
    for place, part in enumerate(PARTS):
        if len(part):
            part.to_csv(parts / f"{place}.csv", index=False)
    TABLE.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    models = []
    for private in (tmp_path / "all.csv", parts):
        words = ["fit", str(private), "--schema", str(tmp_path / "schema.json"), "--epsilon", "1"]
        words += ["--delta", "1e-6", "--seed", "3", "--quiet", "--json"]
        assert main([*words, "--output", str(tmp_path / "model.json"), "--force"]) == 0
        models.append(json.loads((tmp_path / "model.json").read_text()))
        capsys.readouterr()
    assert models[0] == models[1]
    ids = [*words, "--output", str(tmp_path / "model.json"), "--force", "--ids", "age"]
    assert main(ids) == 2
    assert "several parts" in capsys.readouterr().err
