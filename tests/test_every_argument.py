"""Every public callable with None, a number, a text, a list and an object for each argument.

A call ends in a result or in one error of the package that names the argument, and spends nothing.
The short form takes the quick rooms, where each argument gets two of the values by turns, and in
`make test` every third of these rooms. The long one (`make faults`) takes all rooms and all values.
"""

from pathlib import Path

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


@pytest.fixture(scope="module")
def outcomes(rooms):
    before = set(Path().iterdir())
    made = walk.Walk(walk.VALUES, None if FAULTS else rooms, None if FAULTS else 2).run()
    assert set(Path().iterdir()) == before, "a call wrote a file where the tests run"
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


def test_the_walk_tells_raw_errors_spending_and_errors_without_a_name():
    outcome = walk._try_all("careless", Careless().half, {"count": 4}, walk.Choice(walk.VALUES, 5))
    assert [line.split(":")[1] for line in outcome.wrong] == [" TypeError"] * 4
    spending = walk.budget.Budget(9, 0.1)
    quarter = {"count": 4, "budget": spending}
    outcome = walk._try("careless", Careless().quarter, quarter, "count", "None")
    assert "spent before" in outcome.wrong[0]
    outcome = walk._try("careless", Careless().quarter, quarter, "epsilon", "None")
    assert outcome.unnamed
