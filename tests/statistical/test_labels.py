"""Whole labelers, training included, audited on neighbors whose votes are close."""

import lengths
import numpy as np
import pytest
from frequencies import FALSE_ALARM

from hdp_fast.audit import lower_bound
from hdp_fast.labels import PrivateLabeler

MEMBERS, QUERIES = 8, 12
EPSILON, DELTA = 1.0, 0.05
RECORDS = np.arange(float(MEMBERS))[:, None]
# Even so few would catch members who share what they heard.
RUNS = 1200 if lengths.STAT else 500
CLOSE = np.arange(MEMBERS) < MEMBERS // 2 + 1
TIED = np.arange(MEMBERS) < MEMBERS // 2


def own(X, y):
    """What its one record says."""
    return lambda Q: np.full(len(Q), int(y[0]))


def together():
    """Members who all repeat what the fifth record says: one record changes all votes."""
    heard = {}

    def learner(X, y):
        # By record, not in turn: the learner is also tried on public rows.
        heard[X[0, 0]] = int(y[0])
        return lambda Q: np.full(len(Q), heard.get(MEMBERS // 2, 0))

    return learner


def ones(learner, table):
    """How many of the answers are 1, and how many are bottom, in a whole run."""

    def run(labels):
        made = PrivateLabeler(
            learner(), epsilon=EPSILON, delta=DELTA, queries=QUERIES, max_unstable=3, beta=0.5,
            classes=[0, 1], members=MEMBERS, table=table,
        )  # fmt: skip
        answers = made.fit(RECORDS, labels.astype(int)).label(np.zeros((QUERIES, 1))).labels
        return int(np.count_nonzero(answers == 1)), len(answers)

    return run


def bound(learner, table, runs):
    return lower_bound(
        ones(learner, table),
        CLOSE,
        TIED,
        delta=DELTA,
        runs=runs,
        confidence=1 - FALSE_ALARM,
        threads=1,
    )


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "table",
    lengths.leaving({"vote", "gaussian"}, {name: name for name in ("hazard", "vote", "gaussian")}),
)
def test_no_audit_of_a_whole_labeler_finds_more_than_is_promised(table):
    assert bound(lambda: own, table, RUNS) <= EPSILON


def test_members_that_share_what_they_heard_are_caught():
    assert bound(together, "vote", 400) > EPSILON
