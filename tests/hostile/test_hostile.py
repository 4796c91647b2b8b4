"""Members share nothing: one record moves at most one vote of a query. Looks at private votes."""

import pytest
from hostile_learners import CASES
from hostile_runs import LABELERS, moved, undone

RUNS = [(case, where) for case in CASES for where in case.engines]


@pytest.fixture(autouse=True)
def clean(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    with undone():
        yield


@pytest.mark.parametrize("labeler", LABELERS)
@pytest.mark.parametrize(("case", "where"), RUNS, ids=lambda value: getattr(value, "name", value))
def test_a_record_moves_at_most_one_vote(case, where, labeler):
    votes, changed, faults = moved(case, labeler, where)
    assert votes <= 1
    assert not faults
    assert not changed
