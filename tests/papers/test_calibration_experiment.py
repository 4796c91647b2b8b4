"""The experiment with calibrated models: it repairs base rates, and no ranking."""

import numpy as np
import pytest
from scripts import PAPERS, at_length, loaded, require_data

SCRIPT = PAPERS / "calibration.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sklearn")
    with loaded(SCRIPT) as module:
        yield module


def test_populations_have_the_stated_truths(script):
    rng = np.random.default_rng(0)
    for _ in range(12):
        population = script.make_population(rng)
        assert 0.009 < population.rates.mean() < 0.991
        if population.truth == "right":
            best = population.loss(population.scores)
            assert best < population.loss(1.1 * population.scores)
            assert best < population.loss(population.scores + 0.1)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "error", "loss", "auc"),
    [
        ("k401", 0.26, 0.54, 0.8),
        pytest.param("investors", 0.033, 0.098, 0.92, marks=at_length),
        pytest.param("years", 0.06, 0.154, 0.92, marks=at_length),
    ],
)
def test_slope_and_intercept_repair_the_base_rate(script, name, error, loss, auc):
    problem = next(problem for problem in script.PROBLEMS if problem.name == name)
    require_data(problem)
    result = script.repeat(problem, 1, (1.0,))
    rows = {row["row"]: [row[metric][0] for metric in script.METRICS] for row in result["rows"]}
    calibrated, before = rows["calibrated"], rows["source alone"]
    assert calibrated[0] < min(error, before[0])
    assert calibrated[1] < min(loss, before[1])
    assert calibrated[2] > auc
    assert calibrated[2] == pytest.approx(before[2], abs=1e-9)
    assert script.table(result).count("\n") == 3 + len(result["rows"])
