"""Every public callable with None, a number, a text, a list and an object for each argument.

A call ends in a result or in one error of the package that names the argument, and spends nothing.
The short form takes the quick rooms, where each argument gets two of the values by turns and one
that is drawn like its own, and in `make test` every third of these rooms. The long one (`make
faults`) takes all rooms and all values, and draws four; `make fuzz` draws as long as one likes.
"""

from pathlib import Path

import numpy as np
import pytest
import walk
from lengths import FAULTS

QUICK = [
    *("accounting", "audit", "budget", "collection", "data", "exceptions", "gf2", "local"),
    *("noise", "stability", "statistics", "weights", "learners"),
]


@pytest.fixture(scope="module")
def rooms(pytestconfig):
    return QUICK[::3] if pytestconfig.getoption("quick") else QUICK


def files_here():
    """What stands where the tests run, but for what another test makes there meanwhile."""
    return {path for path in Path().iterdir() if path.name != ".mypy_cache"}


@pytest.fixture(scope="module")
def outcomes(rooms):
    before = files_here()
    part = (None, None) if FAULTS else (rooms, 2)
    made = walk.Walk(walk.VALUES, *part, drawn=4 if FAULTS else 1).run()
    assert files_here() == before, "a call wrote a file where the tests run"
    return made


def test_bad_arguments_end_in_one_error_of_the_package(outcomes):
    assert [line for outcome in outcomes.values() for line in outcome.wrong] == []


def test_errors_name_the_argument(outcomes):
    assert [line for outcome in outcomes.values() for line in outcome.unnamed] == []


def test_every_public_callable_is_called(outcomes, rooms):
    """Or stands in a list that says why not."""
    begins = tuple(f"hdp_fast.{room}." for room in rooms) if not FAULTS else "hdp_fast."
    assert [path for path in walk.without_base(outcomes) if path.startswith(begins)] == []
    assert sum(outcome.calls for outcome in outcomes.values()) > (1_500 if rooms == QUICK else 250)
    assert not walk.EXEMPT.keys() & outcomes.keys()


class Careless:
    """Takes whatever comes."""

    def half(self, count):
        """No check."""
        return count // 2

    def quarter(self, count, budget):
        """Spends before it looks."""
        record = walk.uses.STATISTICS.record
        with budget.reserve(record):
            pass
        raise walk.HdpFastError(f"count = {count}")

    def eighth(self, count, path):
        """Writes before it looks."""
        Path(path).with_suffix(".half").write_text("half")
        raise walk.HdpFastError(f"count = {count}, path")


def test_drawn_arguments_are_of_every_kind_and_the_same_each_time():
    made = [*walk.changes.drawn(np.eye(3), 60, 1)]
    arrays = [value for _, value in made if isinstance(value, np.ndarray)]
    assert len({value.dtype for value in arrays}) > 8
    assert len({value.shape for value in arrays}) > 4
    assert {list, np.ma.MaskedArray} <= {type(value) for _, value in made}
    assert [told for told, _ in made] == [told for told, _ in walk.changes.drawn(np.eye(3), 60, 1)]
    texts = [value for _, value in walk.changes.drawn('{"a": [1, 2]}', 40, 1)]
    assert any(isinstance(text, str) and text.startswith("{") for text in texts)


def test_the_walk_finds_by_drawn_arguments_what_is_raw_and_what_is_half_written(tmp_path):
    choice = walk.Choice({}, 0, drawn=12, seed=1)
    outcome = walk._try_all("careless", Careless().half, {"count": 4}, choice)
    assert outcome.calls == 12
    assert any("TypeError" in line for line in outcome.wrong)
    whole = tmp_path / "a.json"
    whole.write_text("{}")
    outcome = walk._try("careless", Careless().eighth, {"count": 1, "path": whole}, "count", "None")
    assert "changed files before" in outcome.wrong[0]


def test_the_walk_tells_raw_errors_spending_and_errors_without_a_name():
    outcome = walk._try_all("careless", Careless().half, {"count": 4}, walk.Choice(walk.VALUES, 5))
    assert [line.split(":")[1] for line in outcome.wrong] == [" TypeError"] * 4
    spending = walk.budget.Budget(9, 0.1)
    quarter = {"count": 4, "budget": spending}
    outcome = walk._try("careless", Careless().quarter, quarter, "count", "None")
    assert "spent before" in outcome.wrong[0]
    outcome = walk._try("careless", Careless().quarter, quarter, "epsilon", "None")
    assert outcome.unnamed
