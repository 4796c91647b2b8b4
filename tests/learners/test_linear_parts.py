"""Linear models of records in parts: the bits of one table, in memory or by a pass a step."""

import io
import itertools
import json
import os
import signal
import tempfile
from functools import partial

import numpy as np
import pandas as pd
import pyarrow
import pytest
from lengths import at_length

from hdp_fast import Budget
from hdp_fast.cli import main
from hdp_fast.data import Category, Chunks, Label, Number, Schema, read_frame
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import CenteredLinear, PrivateAdditive, centered_rows
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

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
    kind = np.where(frame["age"] > 60, "old", names)
    return frame.assign(rich=names, kind=kind, rent=signal / 3)


TABLE = table()
OF_KIND = Schema(Label("kind", positive=("yes",)), SCHEMA.columns)
OF_RENT = Schema(Label("rent", bounds=(0, 60)), SCHEMA.columns)
# What learns the rule, three classes, and a number.
TASKS = {
    "rule": (SCHEMA, None),
    "classes": (OF_KIND, ("no", "old", "yes")),
    "number": (OF_RENT, None),
}
PARTS = [TABLE[start:end] for start, end in itertools.pairwise(CUTS)]


# A person has three rows or so, in all parts.
WHO = np.random.default_rng(1).integers(0, 900, N).astype(str)
OF_PEOPLE = [
    TABLE.assign(who=WHO)[start:end] for start, end in itertools.pairwise(CUTS) if end > start
]


class FullDisk(io.BytesIO):
    """A file that no more fits into."""

    def write(self, _):
        raise OSError("no space left")


@pytest.fixture(params=["kept", "spilled", "made again"])
def memory(request, monkeypatch):
    """Whether the integers of all records are kept, in a file, or made again for each step."""
    if request.param != "kept":
        monkeypatch.setattr(centered_rows, "_MOST_KEPT", 0)
    if request.param == "made again":
        monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk)


def learn(task, records, *, epsilon=1.0, method="auto", **options):
    """The file of a model, whose stream is a test's."""
    schema, classes = TASKS[task]
    learner = CenteredLinear(schema, epsilon=epsilon, delta=1e-6, classes=classes, method=method)
    return learner.learn(records, random_state=1, **options).to_json()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("task", TASKS)
def test_parts_have_the_model_of_the_table(memory, epsilon, task):
    whole = learn(task, TABLE, epsilon=epsilon)
    assert learn(task, Chunks(PARTS), epsilon=epsilon) == whole
    reordered = Chunks([PARTS[3], PARTS[1], PARTS[2]])
    assert learn(task, reordered, epsilon=epsilon) == whole


# At 0.01 the mean of a number is released alone, at 0.05 a clip before it, at 1 slopes as well, and
# at 20 squares of numbers become columns.
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 1.0, 20.0, np.inf])
@pytest.mark.parametrize(("task", "method"), [
    ("number", "descent"), ("number", "evidence"), ("number", "statistics"), ("rule", "statistics"),
    ("classes", "statistics"),
])  # fmt: skip
def test_sums_of_every_method_are_those_of_the_table(epsilon, task, method):
    whole = learn(task, TABLE, epsilon=epsilon, method=method)
    assert learn(task, Chunks(PARTS), epsilon=epsilon, method=method) == whole
    rows = [TABLE[place : place + 1] for place in range(40)]
    reordered = Chunks([PARTS[0], TABLE[40:], *reversed(rows)])
    assert learn(task, reordered, epsilon=epsilon, method=method) == whole


@pytest.mark.parametrize(("task", "method"), [
    ("rule", "auto"), ("number", "auto"), ("number", "evidence"), ("number", "statistics"),
])  # fmt: skip
def test_workers_have_the_model_of_the_table(monkeypatch, tmp_path, task, method):
    monkeypatch.setattr(centered_rows, "_MOST_KEPT", 0)
    for place, part in enumerate(PARTS):
        part.to_parquet(tmp_path / f"{place}.parquet")
    parts = Chunks(tmp_path, workers=2)
    assert learn(task, parts, method=method) == learn(task, TABLE, method=method)


def die_at(read, place, folder):
    """A part whose reader dies in one of the passes over it."""
    reads = len(list(folder.glob(f"{place}.*")))
    (folder / f"{place}.{reads}").touch()
    if reads == read:
        os.kill(os.getpid(), signal.SIGKILL)
    return PARTS[place]


@at_length
def test_workers_that_die_in_some_passes_change_nothing_and_the_run_is_paid_for_once(tmp_path):
    deaths = [(1, 1), (2, 2), (4, 3)]
    parts = [PARTS[0], *(partial(die_at, read, place, tmp_path) for read, place in deaths)]
    budget = Budget(epsilon=1.0, delta=1e-6)
    model = learn("number", Chunks(parts, workers=2), budget=budget)
    assert model == learn("number", TABLE)
    assert all((tmp_path / f"{place}.{read}").exists() for read, place in deaths)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_without_noise_parts_have_the_model_of_the_table(task):
    assert learn(task, Chunks(PARTS), epsilon=np.inf) == learn(task, TABLE, epsilon=np.inf)


def test_parts_that_change_between_passes_are_no_rows_of_chance():
    """A function that returns fewer rows later: what was not read is in no sum."""
    reads = iter(range(100))
    parts = Chunks([lambda: TABLE[:2_000] if next(reads) < 2 else TABLE[:1_999]])
    budget = Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(ShapeError, match=r"the parts have 1,999 rows where they had 2,000"):
        learn("number", parts, budget=budget)
    assert budget.spent == (1.0, 1e-6)


def unread():
    """A part that must not be read a second time: the first block tells the columns."""
    unread.calls = getattr(unread, "calls", 0) + 1
    return TABLE[:5]


def test_a_wrong_method_is_refused_before_a_pass():
    unread.calls = 0
    with pytest.raises(ParameterError, match="method"):
        learn("number", Chunks([unread]), method="sgd")
    assert unread.calls == 0


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
    numbers = CenteredLinear(OF_RENT, epsilon=1.0, delta=1e-6)
    for parts, arguments, error in (
        ([PARTS[2], PARTS[3].drop(columns="rent")], {}, "lacks 1 columns"),
        (PARTS, {"ids": np.arange(N)}, "ids were passed beside"),
        (Chunks(PARTS, ids="age"), {}, "column = 'age', but it must be one of"),
        (Chunks(PARTS, label="rent"), {}, "the schema names their column"),
    ):
        with pytest.raises(ParameterError, match=error):
            numbers.learn(
                parts if isinstance(parts, Chunks) else Chunks(parts), budget=budget, **arguments
            )
    for schema in (SCHEMA, OF_RENT):
        steps = CenteredLinear(schema, epsilon=1.0, delta=1e-6, method="sgd")
        with pytest.raises(ParameterError, match="method = 'sgd', but its steps look at records"):
            steps.learn(Chunks([unread]), budget=budget)
    with pytest.raises(ShapeError, match="no row"):
        numbers.learn(Chunks([TABLE[:0]]), budget=budget)
    assert budget.spent == (0, 0)
    learner.learn(Chunks(PARTS), budget=budget)
    assert budget.spent == (1.0, 1e-6)


def run_fit(folder, private, schema, *options):
    """The exit code of hdp-fast fit, which writes model.json."""
    (folder / "schema.json").write_text(schema.to_json())
    words = ["fit", str(private), "--schema", str(folder / "schema.json"), "--epsilon", "1"]
    words += ["--delta", "1e-6", "--seed", "3", "--quiet", "--json"]
    return main([*words, "--output", str(folder / "model.json"), "--force", *options])


@pytest.mark.parametrize(("schema", "method"), [
    (SCHEMA, "auto"), (SCHEMA, "statistics"), (OF_RENT, "auto"), (OF_RENT, "evidence"),
    (OF_RENT, "statistics"),
])  # fmt: skip
def test_the_command_learns_from_parts(tmp_path, capsys, schema, method):
    parts = tmp_path / "parts"
    parts.mkdir()
    for place, part in enumerate(PARTS):
        if len(part):
            part.to_csv(parts / f"{place}.csv", index=False)
    TABLE.to_csv(tmp_path / "all.csv", index=False)
    models = []
    for private in (tmp_path / "all.csv", parts):
        assert run_fit(tmp_path, private, schema, "--method", method) == 0
        models.append(json.loads((tmp_path / "model.json").read_text()))
        capsys.readouterr()
    assert models[0] == models[1]
    assert run_fit(tmp_path, parts, schema, "--ids", "age") == 2
    assert "no column that the schema reads" in capsys.readouterr().err
    assert run_fit(tmp_path, parts, schema, "--method", "sgd") == 2
    assert "records anywhere" in capsys.readouterr().err


def test_the_command_protects_people_whose_rows_lie_in_several_parts(tmp_path, capsys):
    parts = tmp_path / "parts"
    parts.mkdir()
    for place, part in enumerate(OF_PEOPLE):
        part.to_csv(parts / f"{place}.csv", index=False)
    pd.concat(OF_PEOPLE).to_csv(tmp_path / "all.csv", index=False)
    models = []
    for private in (tmp_path / "all.csv", parts):
        people = ["--ids", "who", "--rows-per-person", "2"]
        assert run_fit(tmp_path, private, SCHEMA, *people) == 0
        models.append(json.loads((tmp_path / "model.json").read_text()))
        capsys.readouterr()
    assert models[0] == models[1]
    assert models[0]["record"]["neighbors"] == "replace_person"


@pytest.mark.parametrize(("task", "method"), [
    ("rule", "auto"), ("rule", "statistics"), ("classes", "descent"), ("number", "auto"),
    ("number", "evidence"),
])  # fmt: skip
def test_people_in_parts_have_the_model_of_people_in_one_table(task, method):
    chunks = Chunks(OF_PEOPLE, ids="who", rows_per_person=2)
    parts = learn(task, chunks, method=method)
    assert parts == learn(task, TABLE, method=method, ids=WHO, rows_per_person=2)
    assert json.loads(parts)["record"]["neighbors"] == "replace_person"
    assert json.loads(parts)["n"] == N
    assert parts != learn(task, TABLE, method=method)


def test_whether_somebody_is_there_is_protected_in_parts():
    learner = PrivateAdditive(SCHEMA, epsilon=1.0, delta=1e-6, neighbors="add_remove")
    parts = learner.learn(Chunks(OF_PEOPLE, ids="who", rows_per_person=2), random_state=1)
    whole = learner.learn(TABLE, ids=WHO, rows_per_person=2, random_state=1)
    assert parts.to_json() == whole.to_json()
    assert parts.record.neighbors == "add_remove_person"


def test_estimators_protect_people_whose_rows_lie_in_several_parts():
    of_numbers = {"epsilon": 1.0, "delta": 1e-6, "bounds": [(0, 90), (0, 120)], "test_seed": 1}
    for target, estimator in (
        ("rich", PrivateClassifier(classes=["no", "yes"], **of_numbers)),
        ("rent", PrivateRegressor(target_bounds=(0, 60), **of_numbers)),
    ):
        names = ["age", "pay"]
        owners = {"ids": WHO, "rows_per_person": 2}
        whole = estimator.fit(TABLE[names], TABLE[target], **owners)
        coef, record = whole.coef_, whole.record_
        tables = [part[[*names, target, "who"]] for part in OF_PEOPLE]
        parts = estimator.fit(Chunks(tables, label=target, ids="who", rows_per_person=2))
        assert np.array_equal(parts.coef_, coef)
        assert parts.record_.neighbors == record.neighbors == "replace_person"
        assert parts.n_samples_fit_ == N
        with pytest.raises(ParameterError, match="ids were passed beside Chunks"):
            estimator.fit(Chunks(tables, label=target, ids="who"), **owners)


def test_people_of_parts_that_are_shuffled_between_passes_are_refused():
    reads = itertools.count()

    def read():
        return OF_PEOPLE[1].sample(frac=1, random_state=next(reads))

    with pytest.raises(ParameterError, match="ids of a part have changed"):
        learn("rule", Chunks([read], ids="who"))


@pytest.mark.parametrize("method", ["descent", "statistics", "additive"])
@pytest.mark.parametrize("later", [500, 700])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_parts_that_change_between_passes_are_refused(method, later, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(centered_rows, "_MOST_KEPT", 0)
    rng, passes = np.random.default_rng(1), itertools.count()
    X = rng.random((700, 2))
    y = (X[:, 0] > 0.5).astype(int)

    def read():
        rows = 600 if next(passes) < 2 else later  # peek, and the pass that counts
        return X[:rows], y[:rows]

    model = PrivateClassifier(epsilon=8.0, delta=1e-6, bounds=(0, 1), classes=[0, 1], method=method)
    with pytest.raises(ShapeError, match="rows where they had 600"):
        model.fit(Chunks([read]))
