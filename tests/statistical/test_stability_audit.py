"""Audits of sessions on neighboring votes, and of a broken variant of each.

Each mechanism says whether an event happened that tells much, found on other runs. Where what is
answered is impossible on the neighbor, its probability is below delta, and the bound is 0 unless
the promise is broken.
"""

import functools
import math

import lengths
import numpy as np
import pytest
from audits import Audit

from hdp_fast.reference.stability import printed_distance
from hdp_fast.stability import (
    AboveThreshold,
    HazardTable,
    OnlineQueryRelease,
    StableRelease,
    VoteTable,
    distance,
    laplace_scale,
    sparse_vector,
)

pytestmark = pytest.mark.usefixtures("one_thread", "calibrated_once")

QUERIES, DELTA, SMALL_DELTA = 30, 0.05, 1e-3
ONCE = HazardTable.design(1, QUERIES, epsilon=1.0, delta=DELTA, beta=0.5)
THRICE = HazardTable.design(3, QUERIES, epsilon=1.0, delta=DELTA, beta=0.5)
VOTE = VoteTable.design(QUERIES, epsilon=1.0, delta=DELTA, beta=0.5)
STABLE = StableRelease(epsilon=1.0, delta=DELTA)


@pytest.fixture
def calibrated_once(monkeypatch):
    """A search for the noise takes longer than a few answers: once for each promise will do."""
    for name in ("laplace_scale", "_find_threshold"):
        monkeypatch.setattr(sparse_vector, name, functools.cache(getattr(sparse_vector, name)))


def ending(start):
    """Answers until the end."""
    return lambda asked: start().answer(asked).tolist()


def endless(start):
    """Answers that begin anew whenever they have ended."""

    def answers(asked):
        found = []
        while len(found) < len(asked):
            found += start().answer(asked[len(found) :]).tolist()
        return found

    return answers


def printed(votes):
    """Votes whose exact distance is what the paper prints for these, a gap less 1."""
    return 2 * int(printed_distance(np.array([votes]))[0]), 0


# Label 0 wins by two votes, or it is a tie.
NEAR, TIED = (5, 3), (4, 4)


def tells(answers):
    """Whether a label is told, where all queries have the same votes."""
    return lambda votes: max(answers(np.array([votes] * QUERIES))) >= 0


def ends(seen, most):
    """Whether queries at one level end a session, or else a label is told on a tie.

    most: votes for label 0 where there are no others; one is for label 1 where votes are closer.
    """

    def play(closer):
        session = THRICE.session()
        session.answer([seen((most - closer, closer))] * (QUERIES - 1))
        return session.halted or session.answer(seen(NEAR if closer else TIED)) >= 0

    return play


def minorities(seen):
    """Whether label 1, which does not have more votes, is the answer to most queries."""
    return lambda votes: VOTE.session().answer([seen(votes)] * QUERIES).sum() >= 17


def unhalved(votes):
    """Votes whose distance from a tie is the gap, not half of it."""
    gap = votes[0] - votes[1]
    return sum(votes) // 2 + gap, sum(votes) // 2 - gap


# The values of the data are above those of the neighbor, but for those where a bottom is expected.
VALUES, NEIGHBOUR = np.tile([1, 1, 1, 0], 16), np.tile([0, 0, 0, 1], 16)


def agreement(answers):
    """Answers that the data make likelier, less those that the neighbor does."""
    above = np.array(answers) >= 1
    return int(np.sum(np.where(above == VALUES[: len(above)], 1, -1)))


def compared():
    return AboveThreshold(1, 0, epsilon=1.0)


def goes_on(values):
    """The same of comparisons without an end; the other side's answers tell more here."""
    return agreement(endless(compared)(1 - values)) < 0


def released(epsilon=1.0):
    return OnlineQueryRelease(1, epsilon=epsilon, delta=SMALL_DELTA)


def beyond(threshold, values):
    """Votes whose distances lie by the values, 0 or 1, above the threshold."""
    return np.column_stack([1 - values, 2 * threshold + 3 + values])


def near_threshold(epsilon):
    """The same of the winners of votes whose distances lie near the threshold."""
    threshold = released(epsilon).threshold
    return lambda values: agreement(released(epsilon).answer(beyond(threshold, values))) >= 4


def as_printed(votes):
    """The winner, if its distance is found above Algorithm 6's w for one query."""
    w = math.floor(laplace_scale(1, epsilon=1.0, delta=SMALL_DELTA / 2) * math.log(4 / SMALL_DELTA))
    above = AboveThreshold(1, w, epsilon=1.0, delta=SMALL_DELTA / 2)
    return int(np.argmax(votes)) if above.answer(0) else -1


AUDITS = [
    Audit(
        "hazard table, levels 0 and 1", 1.0, tells(ending(ONCE.session)), NEAR, TIED,
        tells(endless(ONCE.session)), "goes on after the last bottom", 0.0, DELTA, 4_000, bool,
    ),
    Audit(
        "hazard table, adaptive", 1.0, ends(tuple, 42), True, False,
        ends(printed, 24), "printed distance", 0.3, DELTA, 40_000, bool, fewer=2,
    ),
    Audit(
        "vote table", 1.0, minorities(tuple), (20, 20), (21, 19),
        minorities(unhalved), "a distance that moves by 2", 0.4, DELTA, 20_000, bool,
    ),
    Audit(
        "above threshold", 1.0, lambda values: agreement(ending(compared)(values)) >= 4,
        VALUES, NEIGHBOUR, goes_on, "goes on after the last bottom", 0.15, 0.0, 12_000, bool,
        fewer=2,
    ),
    Audit(
        "stable release", 1.0, lambda votes: STABLE.release(votes) < 0, (5, 1), (6, 0),
        lambda votes: STABLE.release(printed(votes)) < 0, "printed distance",
        0.75, DELTA, 20_000, bool,
    ),
    Audit(
        "online release, near its threshold", 1.0, near_threshold(1.0), VALUES, NEIGHBOUR,
        near_threshold(3.0), "a third of the noise", 0.2, SMALL_DELTA, 20_000, bool,
    ),
    Audit(
        "online release, two winners", 1.0, lambda votes: released().answer(votes) == 0,
        (5, 4), (4, 5), lambda votes: as_printed(votes) == 0, "printed w of Algorithm 6",
        0.0, SMALL_DELTA, 30_000, bool,
    ),
]  # fmt: skip


LEFT = {"online release, two winners"}


@pytest.mark.parametrize("audit", lengths.leaving(LEFT, {audit.name: audit for audit in AUDITS}))
def test_no_bound_exceeds_its_promise_and_the_broken_twin_is_caught(audit, audit_table):
    audit.check(audit_table)


def test_audited_votes_differ_in_one_vote():
    pairs = [(NEAR, TIED), ((20, 20), (21, 19)), ((5, 1), (6, 0)), ((5, 4), (4, 5))]
    near = zip(beyond(7, VALUES), beyond(7, NEIGHBOUR), strict=True)
    for votes, other in [*pairs, *near]:
        assert sorted(np.subtract(votes, other)) == [-1, 1]
    assert (distance(beyond(7, VALUES)) == 7 + VALUES).all()
