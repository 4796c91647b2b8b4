"""The comparison of forecasts with measured numbers, and its table on the page."""

import pytest
from scripts import PAPERS, loaded

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
