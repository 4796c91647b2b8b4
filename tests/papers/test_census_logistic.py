"""The experiment on the census: what private models learn, with and without reweighing."""

import numpy as np
import pytest
from scripts import PAPERS, at_length, loaded, require_data

SCRIPT = PAPERS / "census_logistic.py"

pytestmark = [pytest.mark.data, pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")]


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sklearn")
    with loaded(SCRIPT) as module:
        yield module


def test_all_rows_have_norm_1_and_a_constant(script):
    rows = script.signs(np.eye(4, dtype=np.uint8))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert (rows[:, -1] == rows[0, -1]).all()
    assert len(np.unique(rows, axis=0)) == 4


@at_length
def test_agents_and_reweighing_on_the_census_of_two_years(script):
    problem = next(problem for problem in script.PROBLEMS if problem.name == "years")
    require_data(problem)
    result = script.repeat(problem, 1, (1.0,))
    loss, auc = (
        {row["row"]: row[metric][0] for row in result["rows"]} for metric in script.METRICS[1:]
    )
    target = "target, logistic regression, not private"
    assert all(loss[target] <= value for value in loss.values())
    assert loss["agents alone, local SGD"] < loss["best constant on the target"] - 0.02
    assert loss["source alone, DP-SGD"] < loss["agents alone, local SGD"]
    assert auc["reweighed, mean of models"] > auc["never reweighed, mean of models"] + 0.003
    assert auc["reweighed, mean of models"] > auc["agents alone, local SGD"] + 0.01
    assert script.table(result).count("\n") == 3 + len(result["rows"])
