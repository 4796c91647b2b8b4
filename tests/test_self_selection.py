"""The experiment on real data finds a gap between source and target, and closes part of it."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benches" / "papers" / "self_selection.py"

pytestmark = [pytest.mark.data, pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")]


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("self_selection", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(importlib.import_module("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("name", ["lalonde", "investors"])
def test_reweighing_closes_part_of_the_gap(script, name):
    problem = next(problem for problem in script.PROBLEMS if problem.name == name)
    path = script.FOLDER / problem.file
    if not path.exists() and not os.environ.get("HDP_FAST_DATA"):
        pytest.skip(f"{path} is missing, and HDP_FAST_DATA names no folder")
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
