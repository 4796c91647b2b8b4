"""The comparison of forecasts with measured numbers, and its table on the page."""

import dataclasses
import itertools

import pytest
from scripts import PAPERS, at_length, loaded

PATH = PAPERS / "advice.py"
PAGE = PAPERS.parents[1] / "docs" / "start" / "which_method.md"

pytestmark = pytest.mark.skipif(not PATH.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def script():
    with loaded(PATH) as module:
        yield module


def test_the_page_has_the_table_of_the_script(script):
    assert script.write_page_table() in PAGE.read_text()


def test_a_share_is_0_for_the_constant_and_1_for_the_best(script):
    for task in script.TASKS:
        if task.constant is not None:
            assert task.share(task.constant) == 0
            assert task.share(task.best) == 1


def test_every_data_set_is_measured_with_its_own_metric(script):
    rows = script.MEASURED.read_text().splitlines()[1:]
    metrics = {tuple(row.split(",")[part] for part in (0, 3)) for row in rows}
    assert metrics == {(task.name, task.metric) for task in script.TASKS}


def test_ranks_and_ties(script):
    task = next(task for task in script.TASKS if task.name == "adult")
    assert task.rank({"a": 0.8, "b": 0.9}) == ["b", "a"]
    assert task.is_tie(0.857, 0.85)
    gas = next(task for task in script.TASKS if task.name == "gas")
    assert gas.rank({"a": 0.8, "b": 0.9}) == ["a", "b"]
    assert gas.share(1.0) is None


@pytest.fixture(scope="module")
def estimates():
    with loaded(PAPERS / "_advice_estimates.py") as module:
        yield module


def hold(lines, repetitions, deviations):
    """Whether nine in ten of the cells of each learner and method are in the range."""
    key = lambda line: (line.learner, line.method)  # noqa: E731
    groups = [list(some) for _, some in itertools.groupby(sorted(lines, key=key), key)]
    inside = [[line.is_inside(repetitions, deviations) for line in some] for some in groups]
    assert len(groups) == 6
    return all(sum(some) >= 0.9 * len(some) for some in inside)


def test_standard_errors_of_printed_calls_lie_in_their_ranges(estimates):
    """Twenty deviations of sixteen runs: by chance outside in one of a million tests."""
    lines = list(estimates.measure_estimates(16, sizes=estimates.SIZES[:1]))
    assert hold(lines, 16, 20)
    assert not hold([enlarge(line) for line in lines], 16, 20)


def enlarge(line):
    """A forecast that is ten times too large."""
    return dataclasses.replace(line, low=10 * line.low, high=10 * line.high)


@at_length
def test_standard_errors_lie_in_their_ranges_at_length(estimates):
    assert hold(list(estimates.measure_estimates(400, seed=1)), 400, 6)
