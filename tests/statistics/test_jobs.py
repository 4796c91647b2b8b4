"""Jobs: what is released of folded parts is what the function releases of all records together."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hdp_fast import Budget, statistics
from hdp_fast.data import Chunks, State, Table, read_frame
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError
from hdp_fast.statistics import Job

N, CUTS = 900, (0, 0, 1, 300, 900)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0, 100, N).round(1),
        "pay": RNG.normal(50, 20, N),
        "job": RNG.choice(["nurse", "clerk", "farmer"], N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
NUMBERS = FRAME[["age", "pay"]]
BOUNDS = {"low": 0, "high": {"age": 100, "pay": 120}}
GOAL = {"epsilon": 2.0, "random_state": 5}
NORMAL = {**GOAL, "delta": 1e-6}
JOBS = ["nurse", "clerk", "farmer"]
# The settings of a job, and what its release takes beside; the function takes both.
CASES = {
    "count": ({}, NORMAL),
    "sum": (BOUNDS, GOAL),
    "mean": (BOUNDS, NORMAL),
    "variance": (BOUNDS, GOAL),
    "covariance": (BOUNDS, NORMAL),
    "quantiles": (BOUNDS, {**GOAL, "levels": [0.1, 0.5], "interval": True}),
}


def parts_of(values):
    return [values[start:end] for start, end in itertools.pairwise(CUTS) if end > start]


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return repr(one) == repr(other) and one.record == other.record


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("statistic", CASES)
def test_parts_release_what_all_records_do(statistic, grouped, neighbors):
    settings, options = CASES[statistic]
    by = {"by": FRAME["sex"], "groups": ["f", "m"]} if grouped else {}
    theirs = getattr(statistics, statistic)(
        NUMBERS, **settings, **options, **by, neighbors=neighbors
    )
    columns = {"columns": ["age", "pay"], "by": "sex", "groups": ["f", "m"]} if grouped else {}
    job = Job(statistic, **settings, **columns, neighbors=neighbors)
    parts = parts_of(FRAME if grouped else NUMBERS)
    states = [State.from_bytes(job.fold(part).to_bytes()) for part in parts]
    assert same(job.release(states[2] + (states[0] + states[1]), **options), theirs)
    assert same(job.release(Chunks(parts), **options), theirs)
    if grouped:
        arrays = Job(statistic, **settings, groups=["f", "m"], neighbors=neighbors)
        total = sum(arrays.fold(part[["age", "pay"]], by=part["sex"]) for part in parts)
        assert same(arrays.release(total, **options), theirs)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_histograms_and_choices_of_parts(neighbors):
    for how, column in (({"categories": JOBS}, "job"), ({"edges": [0, 30, 100]}, "age")):
        theirs = statistics.histogram(FRAME[column], **how, **NORMAL, neighbors=neighbors)
        job = Job("histogram", **how, columns=column, neighbors=neighbors)
        assert same(job.release(Chunks(parts_of(FRAME)), **NORMAL), theirs)
        grouped = {"by": FRAME["sex"], "groups": ["f", "m"]}
        theirs = statistics.histogram(FRAME[column], **how, **GOAL, **grouped, neighbors=neighbors)
        job = Job(
            "histogram", **how, columns=column, by="sex", groups=["f", "m"], neighbors=neighbors
        )
        assert same(job.release(Chunks(parts_of(FRAME)), **GOAL), theirs)
    theirs = statistics.top_k(FRAME["job"], 2, categories=JOBS, **GOAL, neighbors=neighbors)
    job = Job("top_k", categories=JOBS, columns="job", neighbors=neighbors)
    assert same(job.release(Chunks(parts_of(FRAME)), k=2, **GOAL), theirs)


def test_vectors_files_and_tables(tmp_path):
    theirs = statistics.mean(FRAME["age"], low=0, high=100, **GOAL)
    vector = Job("mean", low=0, high=100)
    assert same(vector.release(sum(map(vector.fold, parts_of(FRAME["age"]))), **GOAL), theirs)
    column = Job("mean", low=0, high=100, columns="age")
    assert same(column.release(read_frame(FRAME), **GOAL), theirs)
    for place, part in enumerate(parts_of(FRAME)):
        part.to_csv(tmp_path / f"{place}.csv", index=False)
    assert same(column.release(Chunks(tmp_path), **GOAL), theirs)
    table = read_frame(NUMBERS)
    assert isinstance(table, Table)
    all_columns = Job("mean", **BOUNDS).release(table, **GOAL)
    assert same(all_columns, statistics.mean(NUMBERS, **BOUNDS, **GOAL))


def test_a_budget_is_charged_once():
    budget = Budget(epsilon=2.0)
    job = Job("sum", low=0, high=100)
    state = sum(job.fold(part) for part in parts_of(FRAME["age"]))
    job.release(state, **GOAL, budget=budget)
    assert budget.spent == (2.0, 0)


def test_states_of_quantiles_end_with_the_grid():
    job = Job("quantiles", low=0, high=1, steps=50)
    small, large = (job.fold(np.random.default_rng(1).random(n)) for n in (10_000, 400_000))
    assert len(large.to_bytes()) - len(small.to_bytes()) == 1  # a digit of the number of rows


@pytest.mark.parametrize("steps", ["[]", "[1, 2, 3]", "{}", "no JSON"])
def test_a_state_whose_steps_are_those_of_no_column_is_refused(steps):
    job = Job("quantiles", low=0, high=1)
    state = job.fold(np.linspace(0, 1, 10))
    state = replace(state, settings={**state.settings, "steps": steps})
    with pytest.raises(ParameterError, match=r"steps = .* in a state"):
        job.release(state, levels=0.5, epsilon=1.0)


def test_other_settings_are_refused_by_name():
    state = Job("mean", low=0, high=100).fold(FRAME["age"])
    for other, name in (
        (Job("mean", low=0, high=90), "high = 100.0 in a state, and 90.0 here"),
        (Job("mean", low=0, high=100, neighbors="add_remove"), "neighbors = 'replace_one'"),
        (Job("mean", low=0, high=100, groups=["f"]), "groups = None in a state"),
    ):
        with pytest.raises(ParameterError, match=name):
            other.release(state, **GOAL)
        with pytest.raises(ParameterError, match=name):
            state + other.fold(FRAME["age"], by=FRAME["sex"] if other.groups else None)
    with pytest.raises(ParameterError, match=r"is of statistics\.mean and not of statistics\.sum"):
        Job("sum", low=0, high=100).release(state, **GOAL)
    with pytest.raises(ParameterError, match="columns ="):
        state + Job("mean", low=0, high=100).fold(NUMBERS)


@pytest.mark.parametrize(
    ("statistic", "settings"),
    [
        ("median", {}),
        ("mean", {}),
        ("mean", {"low": 0}),
        ("count", {"low": 0, "high": 1}),
        ("mean", {"low": 0, "high": 1, "edges": [0, 1]}),
        ("mean", {"low": 0, "high": 1, "by": "sex"}),
        ("mean", {"low": 0, "high": 1, "neighbors": "other"}),
        ("quantiles", {"low": 0, "high": 1, "steps": 0}),
        ("top_k", {"categories": JOBS, "groups": ["f"]}),
        ("histogram", {}),
    ],
)
def test_settings_that_are_none_of_a_job(statistic, settings):
    with pytest.raises(HdpFastError):
        Job(statistic, **settings).fold(FRAME["age"])


def test_no_records_are_refused_where_their_number_is_public():
    job = Job("mean", low=0, high=1)
    with pytest.raises(ShapeError, match="values has no record"):
        job.release(job.fold(np.empty(0)), **GOAL)
    private = Job("mean", low=0, high=1, neighbors="add_remove")
    assert 0 <= private.release(private.fold(np.empty(0)), **GOAL).value <= 1


@pytest.mark.parametrize(
    ("one", "other"),
    [({"columns": "a"}, {"columns": "b"}), ({"by": "c"}, {"by": "d"})],
)
def test_states_of_other_columns_are_refused(one, other):
    """A vector has no name, and groups of another column may have the same keys."""
    frame = pd.DataFrame({"a": [0.1], "b": [0.2], "c": ["u"], "d": ["u"]})

    def fold(settings):
        groups = ["u"] if "by" in settings else None
        job = Job("mean", low=0, high=1, groups=groups, **{"columns": "a", **settings})
        return job.fold(frame)

    assert (fold(one) + fold(one)).rows == 2
    with pytest.raises(ParameterError, match="states must be of one job to add up"):
        fold(one) + fold(other)


@pytest.mark.parametrize("statistic", ["variance", "covariance"])
def test_more_records_than_sums_of_squares_hold_are_refused_where_their_number_is_public(statistic):
    values = np.full((1024, 1), 0.9)
    job, private = (
        Job(statistic, low=0, high=1, neighbors=neighbors)
        for neighbors in ("replace_one", "add_remove")
    )
    states = [job.fold(values), private.fold(values)]
    for _ in range(23):
        states = [state + state for state in states]
    value = job.release(states[0], epsilon=1.0)
    value = value["x0"] if isinstance(value, dict) else value
    assert abs(np.asarray(value.value)).max() < 1e-3
    states = [state + state for state in states]
    budget = Budget(1.0, 1e-6)
    with pytest.raises(ParameterError, match="the number of records"):
        job.release(states[0], epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 0
    private.release(states[1], epsilon=1.0)


def test_a_list_that_changes_changes_no_job():
    edges, low = [0.0, 1.0, 2.0], {"x": 0.0}
    counts = Job("histogram", edges=edges)
    means = Job("mean", low=low, high={"x": 4.0})
    states = [counts.fold([0.5]), means.fold({"x": [1.0]})]
    edges[1], low["x"] = 0.25, -1.0
    assert (states[0] + counts.fold([0.5])).sums["counts"].tolist() == [[2, 0]]
    assert (states[1] + means.fold({"x": [1.0]})).sums["sums"].tolist() == [[1 << 19]]
