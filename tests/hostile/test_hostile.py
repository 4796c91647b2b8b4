"""Members share nothing: one record moves at most one vote of a query. Looks at private votes."""

import itertools

import lengths
import pytest
from hostile_learners import CASES
from hostile_runs import LABELERS, moved, undone


def runs(case, number):
    """Every labeler with every engine in the long form.

    In the short one every learner meets every labeler and every engine, one engine for each
    labeler, in turn; an engine that starts a process for each member is left to the long form.
    """
    if lengths.FAULTS:
        return itertools.product(case.engines, LABELERS)
    if len(case.engines) == 1:
        return ()
    turn = itertools.islice(itertools.cycle(case.engines), number, None)
    return zip(turn, LABELERS, strict=False)


RUNS = [
    (case, where, labeler)
    for number, case in enumerate(CASES)
    for where, labeler in runs(case, number)
]


@pytest.fixture(autouse=True)
def clean(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    with undone():
        yield


@pytest.mark.thorough(cases=12)
@pytest.mark.parametrize(
    ("case", "where", "labeler"), RUNS, ids=lambda value: getattr(value, "name", value)
)
def test_a_record_moves_at_most_one_vote(case, where, labeler):
    votes, changed, faults = moved(case, labeler, where)
    assert votes <= 1
    assert not faults
    assert not changed
