"""Members share nothing: one record moves at most one vote of a query. Looks at private votes."""

import pytest
from hostile_learners import CASES
from hostile_runs import LABELERS, moved, undone

# Every learner meets every labeler where it runs first and every engine with one labeler, in turn:
# labelers differ in what they do with votes, engines in how members are trained.
RUNS = [
    (case, where, labeler)
    for number, case in enumerate(CASES)
    for place, where in enumerate(case.engines)
    for labeler in (LABELERS if place == 0 else [[*LABELERS][(number + place) % len(LABELERS)]])
]


@pytest.fixture(autouse=True)
def clean(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    with undone():
        yield


@pytest.mark.parametrize(
    ("case", "where", "labeler"), RUNS, ids=lambda value: getattr(value, "name", value)
)
def test_a_record_moves_at_most_one_vote(case, where, labeler):
    votes, changed, faults = moved(case, labeler, where)
    assert votes <= 1
    assert not faults
    assert not changed
