"""describe: many statistics of one table, one price split among them."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cases import each_case

from hdp_fast import Budget, ParameterError, statistics
from hdp_fast.data import Category, Chunks, Label, Number, Schema, bound_rows, read_frame
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.statistics import Task, describe

N = 3_000
RNG = np.random.default_rng(0)
SCHEMA = Schema(
    Label("bought", positive=("yes",)),
    {"age": Number(18, 90), "home": Category(("own", "rent")), "size": Number(0, 9)},
)
PEOPLE = {
    "age": RNG.integers(18, 91, N),
    "home": RNG.choice(["own", "rent"], N),
    "size": RNG.integers(0, 10, N),
    "bought": RNG.choice(["yes", "no"], N, p=[0.3, 0.7]),
}


def spent(result):
    return (math.fsum(record.epsilon for record in result.records),
            math.fsum(record.delta for record in result.records))  # fmt: skip


def test_describe_releases_the_usual_statistics():
    result = describe(PEOPLE, SCHEMA, epsilon=50.0, random_state=1)
    rows = {(row["statistic"], row.get("column"), row.get("item")): row for row in result.rows}
    assert rows["count", None, None]["value"] == N
    mean = rows["mean", "age", None]
    assert mean["low"] <= PEOPLE["age"].mean() <= mean["high"]
    assert abs(rows["mean", "bought", None]["value"] - (PEOPLE["bought"] == "yes").mean()) < 0.01
    assert abs(rows["quantiles", "age", 0.5]["value"] - np.median(PEOPLE["age"])) < 2
    assert abs(rows["histogram", "home", "own"]["value"] - (PEOPLE["home"] == "own").sum()) < 20
    assert ("quantiles", "bought", 0.5) not in rows
    assert spent(result)[0] <= 50.0
    assert json.loads(result.to_json())["rows"] == list(result.rows)


def test_describe_leaves_out_a_label_that_the_table_has_not():
    unlabeled = {name: values for name, values in PEOPLE.items() if name != "bought"}
    rows = describe(unlabeled, SCHEMA, epsilon=1.0).rows
    assert "bought" not in {row.get("column") for row in rows}


TASKS = [
    Task("count"),
    Task("mean", ("age", "size")),
    Task("sum", ("size",)),
    Task("variance", ("age",)),
    Task("tables", ("home", "bought")),
    Task("distribution", ("age",), 9),
    Task("tables", ("age", "home", "bought")),
    Task("quantiles", ("age", "size"), (0.9, 0.1)),
    Task("histogram", ("age",)),
    Task("top_k", ("home",), 1),
]


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_describe_never_spends_more_than_its_price(neighbors, delta):
    budget = Budget(0.7, 1e-6, neighbors=neighbors)
    price = {"epsilon": 0.7, "delta": delta, "neighbors": neighbors}
    result = describe(PEOPLE, SCHEMA, tasks=TASKS, budget=budget, **price)
    assert 0.69 < budget.spent.epsilon <= 0.7
    assert budget.spent.delta <= 1e-6
    assert {record.neighbors for record in result.records} == {neighbors}
    assert {row["statistic"] for row in result.rows} == {task.statistic for task in TASKS}
    levels = [row["item"] for row in result.rows if row["statistic"] == "quantiles"]
    assert levels == [0.1, 0.9] * 2
    before = budget.spent
    with pytest.raises(BudgetExceeded):
        describe(PEOPLE, SCHEMA, tasks=TASKS, budget=budget, **price)
    assert budget.spent == before


def test_describe_by_groups_releases_all_for_each():
    tasks = [Task("count"), Task("mean", ("age",))]
    rows = describe(PEOPLE, SCHEMA, epsilon=20.0, tasks=tasks, by="home").rows
    assert [(row["statistic"], row["group"]) for row in rows] == [
        ("count", "own"), ("count", "rent"), ("mean", "own"), ("mean", "rent"),
    ]  # fmt: skip
    assert abs(rows[0]["value"] - (PEOPLE["home"] == "own").sum()) < 10


def test_describe_takes_tables_and_frames_alike_and_private_values_cause_no_error():
    wild = PEOPLE | {
        "age": np.where(PEOPLE["age"] > 80, np.nan, 1e300),
        "home": ["?", ""] * (N // 2),
    }
    for people in (PEOPLE, wild):
        ones = [describe(table, SCHEMA, epsilon=1.0, random_state=3).to_json()
                for table in (people, read_frame(people))]  # fmt: skip
        assert ones[0] == ones[1]


def test_describe_takes_the_usual_detail():
    tasks = [Task("quantiles", ("age",)), Task("top_k", ("home",))]
    rows = describe(PEOPLE, SCHEMA, epsilon=1.0, tasks=tasks).rows
    assert [row["item"] for row in rows] == [0.25, 0.5, 0.75, 1, 2]


@each_case(
    ("options", "words"),
    [
        ({"schema": {}}, "schema"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"delta": 1}, "delta = 1"),
        ({"confidence": 1}, "confidence = 1"),
        ({"neighbors": "replace_person"}, "neighbors"),
        ({"by": "age"}, "by = 'age'"),
        ({"by": "house"}, "by = 'house'"),
        ({"random_state": -1}, "random_state"),
        ({"tasks": 3}, "tasks"),
        ({"tasks": ["mean"]}, "must hold statistics.Task"),
        ({"tasks": [Task("median", ("age",))]}, "statistic = 'median'"),
        ({"tasks": [Task("mean", ("agee",))]}, "columns = 'agee'.*age"),
        ({"tasks": [Task("mean", ("age", "age"))]}, "each column once"),
        ({"tasks": [Task("mean")]}, "another number of columns"),
        ({"tasks": [Task("count", ("age",))]}, "another number of columns"),
        ({"tasks": [Task("histogram", ("age", "size"))]}, "another number of columns"),
        ({"tasks": [Task("mean", ("home",))]}, "each as a number"),
        ({"tasks": [Task("top_k", ("age",))]}, "as a category"),
        ({"tasks": [Task("top_k", ("home",), 3)]}, "detail = 3"),
        ({"tasks": [Task("top_k", ("home",))], "by": "home"}, "top_k has no groups"),
        ({"tasks": [Task("quantiles", ("age",), (0.5, 2))]}, "levels in"),
        ({"tasks": [Task("distribution", ("home",))]}, "each as a number"),
        ({"tasks": [Task("distribution", ("age",), 0)]}, "detail = 0"),
        ({"tasks": [Task("tables")]}, "another number of columns"),
        ({"tasks": [Task("tables", ("age", "home")), Task("tables", ("home", "age"))]}, "once"),
        ({"tasks": [Task("tables", ("age",))], "by": "home"}, "tables have no groups"),
        ({"sampled": 1}, "sampled = 1"),
        ({"sampled": True, "by": "home", "tasks": [Task("quantiles", ("age",))]}, "sampled"),
        ({"tasks": [Task("quantiles", ("age",), ())]}, "levels in"),
        ({"table": {"age": [1.0]}, "tasks": [Task("mean", ("size",))]}, "size"),
        ({"table": np.ones((3, 3))}, "named columns"),
    ],
)
def test_describe_refuses_before_anything_is_spent(options, words):
    budget = Budget(9.0, 1e-3)
    given = {"table": PEOPLE, "schema": SCHEMA, "epsilon": 1.0, "budget": budget} | options
    with pytest.raises(ParameterError, match=words):
        describe(**given)
    assert budget.spent.epsilon == 0
    assert statistics.columns_of(SCHEMA)["bought"] == Number(0, 1, (0.5,))


@pytest.mark.parametrize("by", [None, "sex"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_parts_of_a_table_release_what_the_table_does(by, neighbors):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 90, 3000),
            "sex": rng.choice(["f", "m"], 3000),
            "job": rng.choice(["a", "b", "c"], 3000),
            "rich": rng.choice(["yes", "no"], 3000),
        }
    )
    schema = Schema(
        Label("rich", positive=("yes",)),
        {"age": Number(0, 90), "sex": Category(("f", "m")), "job": Category(("a", "b"))},
    )
    options = {"epsilon": 4.0, "by": by, "neighbors": neighbors, "random_state": 3}
    whole = statistics.describe(frame, schema, **options)
    parts = Chunks([frame[:1], frame[1:1], frame[1:2000], frame[2000:]])
    budget = Budget(epsilon=4.0, neighbors=neighbors)
    pieces = statistics.describe(parts, schema, **options, budget=budget)
    assert pieces.rows == whole.rows
    assert pieces.records == whole.records
    assert budget.spent[0] <= 4.0
    reader = pa.Table.from_pandas(frame).to_reader(max_chunksize=1000)
    assert statistics.describe(Chunks(reader), schema, **options).rows == whole.rows


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_parts_release_the_tables_and_distributions_of_all_rows(neighbors):
    frame = pd.DataFrame(PEOPLE)
    tasks = [task for task in TASKS if task.statistic in ("tables", "distribution", "mean")]
    options = {"epsilon": 4.0, "tasks": tasks, "neighbors": neighbors, "random_state": 3}
    whole = describe(frame, SCHEMA, **options, sampled=True)
    parts = Chunks([frame[:1], frame[1:1], frame[1:2000], frame[2000:]])
    assert describe(parts, SCHEMA, **options, sampled=True).rows == whole.rows
    plain = describe(frame, SCHEMA, **options).rows
    assert [row["value"] for row in plain] == [row["value"] for row in whole.rows]
    assert not any("population_low" in row for row in plain)
    assert all("population_low" in row for row in whole.rows)
    sums = {}
    for row in whole.rows:
        if row["statistic"] == "tables":
            sums.setdefault(row["column"], []).append(row["value"])
    assert list(sums) == ["home, bought", "age, home, bought"]
    first, second = map(sum, sums.values())
    assert first == pytest.approx(second)


OF_PEOPLE = {"replace_one": "replace_person", "add_remove": "add_remove_person"}
WHO = np.random.default_rng(1).integers(0, 1_000, N)
OF_VISITS = {
    "mean": lambda **more: statistics.mean(PEOPLE["size"], low=0, high=9, **more),
    "sum": lambda **more: statistics.sum(PEOPLE["size"], low=0, high=9, **more),
    "variance": lambda **more: statistics.variance(PEOPLE["size"], low=0, high=9, **more),
    "quantiles": lambda **more: statistics.quantiles(
        PEOPLE["size"], [0.25, 0.5, 0.75], low=0, high=9, **more
    ),
    "distribution": lambda **more: statistics.distribution(
        PEOPLE["size"], low=0, high=9, steps=100, **more
    ),
}


def visits():
    """The rows in parts, several of most people, whose rows are in several parts."""
    frame = pd.DataFrame(PEOPLE).assign(who=WHO)
    parts = [frame[:1], frame[1:1], frame[1:2000], frame[2000:]]
    return Chunks(parts, ids="who", rows_per_person=2)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("statistic", OF_VISITS)
def test_parts_with_ids_release_what_the_function_does_with_them(statistic, neighbors):
    options = {"epsilon": 2.0, "neighbors": neighbors, "random_state": 3}
    whole = OF_VISITS[statistic](**options, ids=WHO, rows_per_person=2)
    found = describe(visits(), SCHEMA, tasks=[Task(statistic, ("size",))], **options)
    values = [row["value"] for row in found.rows]
    assert values == np.ravel(whole.value).tolist()
    (record,) = found.records
    assert record.neighbors == OF_PEOPLE[neighbors]
    assert (record.noise, record.mechanism) == (whole.record.noise, whole.record.mechanism)
    kept = bound_rows(WHO, 2).sum()
    assert found.n == (kept if neighbors == "replace_one" else None)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_people_are_charged_once_for_all(neighbors, delta):
    of_people = OF_PEOPLE[neighbors]
    budget = Budget(0.7, 1e-6, neighbors=of_people)
    price = {"epsilon": 0.7, "delta": delta, "neighbors": neighbors, "budget": budget}
    result = describe(visits(), SCHEMA, tasks=TASKS, **price)
    assert {record.neighbors for record in result.records} == {of_people}
    assert 0.69 < budget.spent.epsilon <= 0.7
    assert budget.spent.delta <= 1e-6
    before = budget.spent
    with pytest.raises(BudgetExceeded):
        describe(visits(), SCHEMA, tasks=TASKS, **price)
    assert budget.spent == before
    price["budget"] = unspent = Budget(0.7, 1e-6, neighbors=of_people)
    with pytest.raises(ParameterError, match="but the budget is for"):
        describe(PEOPLE, SCHEMA, tasks=TASKS, **price)
    assert unspent.spent.epsilon == 0


def test_what_people_cannot_have_is_refused_before_anything_is_spent():
    budget = Budget(5.0, neighbors="replace_person")
    with pytest.raises(ParameterError, match="no independent sample"):
        describe(visits(), SCHEMA, epsilon=1.0, sampled=True, budget=budget)
    of_ids = Schema(None, {"who": Number(0, 1_000), "age": Number(0, 90)})
    with pytest.raises(ParameterError, match="'who'"):
        describe(visits(), of_ids, epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 0
