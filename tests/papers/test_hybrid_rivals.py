"""The bench of the hybrid model's rivals: shapes, the privacy of DiPPS's reports, and the page."""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scripts import PAPERS, loaded

from hdp_fast.local import KaryResponse

SCRIPT = PAPERS / "hybrid_rivals.py"
PAGE = PAPERS.parents[1] / "docs" / "reproduction" / "hybrid_people.md"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    with loaded(SCRIPT) as module:
        yield module


def make_problem(script):
    """A panel and a target with the same columns and another base rate."""

    def people(n, share, rng):
        y = (rng.random(n) < share).astype(np.uint8)
        bits = (rng.random((n, 4)) < 0.3 + 0.4 * y[:, None]).astype(np.uint8)
        return script.People(bits, bits + rng.normal(0, 0.1, bits.shape), y)

    def read():
        rng = np.random.default_rng(7)
        return people(120, 0.6, rng), people(240, 0.3, rng)

    return SimpleNamespace(name="tiny", title="Made-up people", read=read)


@pytest.mark.filterwarnings("ignore")
def test_each_method_gives_probabilities_and_all_are_written(script, tmp_path):
    # measure refuses another shape, and numbers that are no probabilities.
    rows = script.measure(make_problem(script), script.METHODS, 1.0, 2)
    assert [row.method for row in rows] == list(script.METHODS)
    assert all(np.isfinite(row.pairs()).all() for row in rows)
    assert script.format_table("Made-up people", rows).count("\n") == 3 + len(rows)
    script.write_csv(tmp_path / "rows.csv", rows)
    assert (tmp_path / "rows.csv").read_text().count("\n") == 1 + len(rows)
    assert script.draw(rows).axes[1].get_title() == "tiny, epsilon = 1: log loss"


@pytest.mark.parametrize("wrong", [lambda y: np.full(len(y) + 1, 0.5), lambda y: y * np.nan])
def test_what_is_no_probability_is_refused(script, wrong):
    methods = {"wrong": lambda case: lambda people: wrong(people.y)}
    with pytest.raises(ValueError, match="wrong: a predictor gives one number"):
        script.measure(make_problem(script), methods, 1.0, 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_reports_of_dipps_are_private(script, epsilon):
    """Over all posteriors of a grid: the published report spends half of what it promises."""
    steps = 8
    grid = [p for p in itertools.product(range(steps + 1), repeat=3) if sum(p) == steps]
    law = script.component_law(np.array(grid) / steps, epsilon)
    assert np.allclose(law.sum(axis=1), 1)
    worst = math.log((law.max(axis=0) / law.min(axis=0)).max())
    assert worst == pytest.approx(epsilon / 2)

    response = KaryResponse(script.COMPONENTS, epsilon=epsilon)
    values = range(script.COMPONENTS)
    log_law = np.array([[response.log_probability([w], [u])[0] for w in values] for u in values])
    # The probability of the truth is rounded down: never more than epsilon, and next to it.
    assert epsilon - 1e-6 < np.ptp(log_law, axis=0).max() <= epsilon + 1e-12


def test_counts_are_inverted_where_all_agents_are_alike(script):
    shares = np.array([0.5, 0.3, 0.2])
    law = script.component_law(shares[None], 1.0)[0]
    assert script.invert(law * 1e6, 1.0) == pytest.approx(shares)
    assert script.invert(np.array([0, 0, 9]), 1.0).tolist() == [0, 0, 1]


@pytest.mark.filterwarnings("ignore")
def test_rival_of_the_page_runs(script):
    (block,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = {"PROBLEMS": [make_problem(script)]}
    # The page's problem is real; the test's takes its place.
    exec(block.replace("from self_selection import PROBLEMS", ""), names)
    (row,) = names["rows"]
    assert row.method == "nearest mean"
    assert row.auc > 0.6
