"""The experiment on real data finds a gap between source and target, and closes part of it."""

import pytest
from scripts import PAPERS, at_length, loaded, require_data

SCRIPT = PAPERS / "self_selection.py"

pytestmark = [pytest.mark.data, pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")]


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sklearn")
    with loaded(SCRIPT) as module:
        yield module


@at_length
@pytest.mark.parametrize("name", ["lalonde", pytest.param("investors", marks=at_length)])
def test_reweighing_closes_part_of_the_gap(script, name):
    problem = next(problem for problem in script.PROBLEMS if problem.name == name)
    require_data(problem)
    rows = script.repeat(problem, 1)["rows"]
    error, loss, auc = ({row: means[k][0] for row, means in rows.items()} for k in range(3))
    source, target = "source only, logistic, not private", "target only, logistic, not private"
    assert error[target] < error[source]
    assert loss[target] < loss[source]
    if name == "lalonde":
        assert error["ours, oracle"] < error[source] - 0.05
        assert error[source] > error["best constant on the target"]
    else:
        assert auc["ours, share of votes"] > auc["share of votes, never reweighed"] + 0.05
        assert auc["ours, share of votes"] > auc["source only, private"] + 0.2
