"""Compiled sessions against the tables that they claim to follow, with coins of the system."""

import copy
from fractions import Fraction

import numpy as np
import pytest
from frequencies import FALSE_ALARM, Case, misfits, two_sided

from hdp_fast.audit import lower_bound
from hdp_fast.reference.noise import gaussian_masses
from hdp_fast.reference.stability import above_threshold_law, gaussian_vote_law
from hdp_fast.stability import AboveThreshold, GaussianVote, HazardTable, VoteTable

COUNT = 1 << 19
MEMBERS = 64
SLOW = HazardTable.design(2, COUNT, epsilon=2, delta=1e-6, beta=0.5)
VOTE = VoteTable.design(200, epsilon=4, delta=1e-6, beta=0.5)


def frequency(table, level):
    """Of the answer that gives way, for votes at a level, by every way to ask."""
    ones = np.full(COUNT, MEMBERS // 2 - level, np.uint32)
    counts = np.stack([MEMBERS - ones, ones], axis=1)
    yielding = -1 if isinstance(table, HazardTable) else 1
    # Of the same coins, for more queries than the table's own queries and bottoms.
    one_way, bottoms = table._table.answer_ones(ones, MEMBERS, None, None)
    found = [int(np.count_nonzero(one_way == yielding))]
    assert bottoms == np.count_nonzero(one_way == -1)
    if yielding == -1:
        other, bottoms = table._table.answer_counts(counts.reshape(-1), 2, COUNT + 1, None)
        found.append(int(np.count_nonzero(other == yielding)))
        assert bottoms == found[-1]
    return found


@pytest.mark.parametrize("table", [SLOW, VOTE], ids=["hazard", "vote"])
def test_answers_give_way_at_the_table_s_rate(table):
    p_values = []
    levels = [*range(1, min(table.J, MEMBERS // 2)), MEMBERS // 2]
    for level in levels[::3]:
        p = table.probabilities[min(level, table.J)]
        p_values += [two_sided(found, COUNT, p) for found in frequency(table, level)]
    assert min(p_values) > FALSE_ALARM / len(p_values)


def test_the_other_label_mirrors_the_votes():
    # With an odd number of members half a vote is rounded down.
    for members, ones in ((MEMBERS, MEMBERS // 2 + 3), (MEMBERS + 1, MEMBERS // 2 + 4)):
        given = np.full(COUNT, ones, np.uint32)
        answers, _ = VOTE._table.answer_ones(given, members, None, None)
        zeros = int(np.count_nonzero(answers == 0))
        assert two_sided(zeros, COUNT, VOTE.probabilities[3]) > FALSE_ALARM / 2


def test_a_neighboring_level_would_be_seen():
    (found,) = frequency(VOTE, 3)
    assert two_sided(found, COUNT, VOTE.probabilities[4]) < FALSE_ALARM


def test_a_hundredth_more_bottoms_would_be_seen():
    level = min(i for i, p in enumerate(SLOW.probabilities) if p < Fraction(1, 2))
    assert level < MEMBERS // 2
    # The share is 14 deviations from the other: of one run alone it is 7, and 1 in 40 is not seen.
    found, more = sum(frequency(SLOW, level)[0] for _ in range(4)), Fraction(101, 100)
    assert two_sided(found, 4 * COUNT, SLOW.probabilities[level] * more) < FALSE_ALARM


def test_rare_bottoms_come_at_their_rate():
    table = HazardTable.design(50, 1000, epsilon=1, delta=1e-6, beta=0.05)
    members = 2 * table.J + 10
    for level in (table.J // 2, table.J * 3 // 4, table.J):
        ones = np.full(8 * COUNT, members // 2 - level, np.uint32)
        found, _ = table._table.answer_ones(ones, members, None, None)
        p = table.probabilities[level]
        assert two_sided(int(np.count_nonzero(found == -1)), found.size, p) > FALSE_ALARM / 3


def test_comparisons_with_a_noisy_threshold_follow_their_enumerated_law():
    # Of the answers up to each bottom: how many were above, when all queries have one value.
    bottoms, longest = 20_000, 8
    above = AboveThreshold(bottoms, 0, epsilon=1000)
    scale = float(above.scale)
    ends = np.flatnonzero(~above.answer(np.full(COUNT, 60)))
    assert len(ends) == bottoms
    lengths = np.minimum(np.diff(ends, prepend=-1) - 1, longest)
    counts = dict(zip(*map(np.ndarray.tolist, np.unique(lengths, return_counts=True)), strict=True))

    def law(scale):
        laws = above_threshold_law((60,) * longest, 0, scale, 1)
        return {sum(answers): p for answers, p in laws.items()}

    assert misfits([Case(counts, law(scale))]) == []
    assert misfits([Case(counts, law(0.9 * scale))])


GAUSSIAN = GaussianVote.design(COUNT, epsilon=1000, delta=1e-6, beta=0.5, labels=3, threshold=0.5)


def frequencies(counts):
    answers = GAUSSIAN.session().answer(np.tile(counts, (COUNT, 1)))
    return dict(zip(*map(np.ndarray.tolist, np.unique(answers, return_counts=True)), strict=True))


def gaussian_law(counts, sigma):
    masses = gaussian_masses(sigma, 11 * int(sigma))
    law = gaussian_vote_law(counts, GAUSSIAN.gap, masses)
    return {answer: float(p) for answer, p in law.items()}


def test_noisy_votes_follow_their_enumerated_law():
    elections = [(20, 20, 20), (40, 15, 5), (0, 30, 30), (0, 0, 60)]
    found = [frequencies(counts) for counts in elections]

    def cases(sigma):
        laws = [gaussian_law(counts, sigma) for counts in elections]
        return [Case(*pair) for pair in zip(found, laws, strict=True)]

    assert misfits(cases(GAUSSIAN.sigma)) == []
    assert misfits(cases(GAUSSIAN.sigma * Fraction(49, 50)))


def zeros(vote):
    """How many of all answers of a session are 0, on the same votes each time."""

    def run(counts):
        return int(np.count_nonzero(vote.session().answer(np.tile(counts, (vote.queries, 1))) == 0))

    return run


def test_an_audit_finds_no_more_than_is_promised_and_half_the_noise():
    vote = GaussianVote.design(12, epsilon=1, delta=0.05, beta=0.5, labels=2, threshold=0)
    halved = copy.copy(vote)
    object.__setattr__(halved, "sigma", vote.sigma / 2)

    def bound(made):
        return lower_bound(
            zeros(made),
            np.array([5, 4]),
            np.array([4, 5]),
            delta=vote.delta,
            runs=8_000,
            confidence=1 - FALSE_ALARM,
            threads=1,
        )

    assert 0.1 < bound(vote) <= vote.epsilon < bound(halved)
