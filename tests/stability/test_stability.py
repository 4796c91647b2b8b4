"""Distances, votes and tables against brute force and closed forms."""

import itertools

import numpy as np
import pytest
from cases import each_case

from hdp_fast import stability
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.reference import stability as reference


def vectors(k, labels):
    """Every histogram of k votes."""
    return [counts for counts in itertools.product(range(k + 1), repeat=labels) if sum(counts) == k]


def moved(counts):
    """Histograms after one vote is replaced."""
    for i, j in itertools.permutations(range(len(counts)), 2):
        if counts[i]:
            changed = list(counts)
            changed[i] -= 1
            changed[j] += 1
            yield tuple(changed)


def winner(counts):
    return max(range(len(counts)), key=lambda label: (counts[label], -label))


def searched(k, labels):
    """Distance to a histogram that one more vote turns, by breadth-first search from those."""
    space = vectors(k, labels)
    frontier = {c for c in space if any(winner(c) != winner(other) for other in moved(c))}
    distances, steps = dict.fromkeys(frontier, 0), 0
    while frontier:
        steps += 1
        frontier = {other for c in frontier for other in moved(c)} - distances.keys()
        distances |= dict.fromkeys(frontier, steps)
    return distances


SIZES = [(k, labels) for labels in (2, 3, 4) for k in range(1, 8)]


@each_case(("k", "labels"), SIZES)
def test_distance_is_that_of_a_search_over_all_votes(k, labels):
    for counts, steps in searched(k, labels).items():
        assert stability.distance(counts) == steps
        assert stability.plurality(counts) == winner(counts)


@each_case(("k", "labels"), SIZES)
def test_one_vote_moves_the_distance_by_one_and_the_winner_only_at_distance_zero(k, labels):
    for counts in vectors(k, labels):
        here = stability.distance(counts)
        for other in moved(counts):
            there = stability.distance(other)
            assert abs(here - there) <= 1
            assert winner(counts) == winner(other) or here == there == 0


@each_case(("k", "labels"), [(k, labels) for labels in (2, 3) for k in range(1, 8)])
def test_votes_that_cannot_win_change_nothing_of_that(k, labels):
    # The last count is of votes outside all bins.
    for counts in vectors(k, labels + 1):
        eligible = counts[:-1]
        here = stability.distance(eligible)
        for other in moved(counts):
            there = stability.distance(other[:-1])
            assert abs(here - there) <= 1
            assert winner(eligible) == winner(other[:-1]) or here == there == 0


def test_the_printed_distance_moves_by_two_and_is_not_the_distance():
    wrong, jumps, total = 0, 0, 0
    for k, labels in [(k, labels) for labels in (2, 3) for k in range(1, 8)]:
        printed = {c: reference.printed_distance(np.array([c]))[0] for c in vectors(k, labels)}
        steps = searched(k, labels)
        total += len(printed)
        wrong += sum(int(printed[c] != steps[c]) for c in printed)
        jumps += any(abs(printed[c] - printed[d]) == 2 for c in printed for d in moved(c))
    assert wrong > total / 4
    assert jumps >= 10


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.uint32, np.int16])
@pytest.mark.parametrize("labels", [2, 3, 10, 33])
def test_many_histograms_at_once_are_those_of_the_reference(labels, dtype):
    counts = np.random.default_rng(5).integers(0, 9, (40_000, labels)).astype(dtype)
    winners, distances = reference.find_winners(counts.astype(np.int64))
    assert (stability.plurality(counts) == winners).all()
    assert (stability.distance(counts) == distances).all()
    turned = counts[::-1, ::-1]
    assert (stability.distance(turned) == reference.find_winners(turned.astype(np.int64))[1]).all()


def test_a_single_label_is_never_unstable():
    assert stability.distance([5]) == 2**32 - 1
    assert stability.plurality([[5], [0]]).tolist() == [0, 0]
    assert stability.distance(np.zeros((0, 3), np.int64)).shape == (0,)


ISAS = ["portable", "avx2", "gfni256", "gfni"]


@pytest.mark.parametrize("labels", [1, 2, 10, 11, 24])
@pytest.mark.parametrize("members", [1, 15, 16, 255, 256, 600])
def test_votes_are_counted(members, labels):
    rng = np.random.default_rng(members)
    for queries in (1, 63, 1024, 1025, 3000):
        votes = rng.integers(0, labels, (members, queries), dtype=np.uint8)
        counts = stability.count_votes(votes, labels)
        assert counts.dtype == np.uint32
        assert (counts == reference.count_votes(votes, labels)).all()


@pytest.mark.parametrize("isa", ISAS)
def test_any_number_of_labels_is_counted_and_votes_beyond_them_are_for_label_0(isa, monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    votes = np.random.default_rng(2).integers(0, 256, (300, 97), dtype=np.uint8)
    every = np.stack([np.bincount(column, minlength=256) for column in votes.T])
    for labels in range(1, 257):
        counts = stability.count_votes(votes, labels)
        assert (counts[:, 1:] == every[:, 1:labels]).all()
        assert (counts.sum(axis=1) == 300).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("members", [65_535, 65_536, 140_000])
def test_more_members_than_two_bytes_count_are_counted(members, isa, monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    column = np.repeat(np.arange(5, dtype=np.uint8), [0, members - 9, 4, 3, 2])
    votes = np.stack([column, column[::-1], (column + 1) % 5], axis=1)
    expected = [[0, members - 9, 4, 3, 2]] * 2 + [[2, 0, members - 9, 4, 3]]
    assert stability.count_votes(votes, 5).tolist() == expected


def test_several_tiles_are_counted_on_any_threads_whatever_the_strides():
    votes = np.random.default_rng(2).integers(0, 10, (20, 300_001), dtype=np.uint8)
    expected = reference.count_votes(votes, 10)
    for array in votes, np.asfortranarray(votes), votes.repeat(2, axis=1)[:, ::2]:
        for threads in (1, 2):
            assert (stability.count_votes(array, 10, threads=threads) == expected).all()
    assert (stability.count_votes(votes[::-1, ::-1], 10) == expected[::-1]).all()


@pytest.mark.parametrize("isa", ISAS)
def test_votes_are_counted_the_same_on_every_machine(isa, monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    votes = np.random.default_rng(1).integers(0, 10, (300, 2000), dtype=np.uint8)
    for threads in (1, 2):
        counts = stability.count_votes(votes, 10, threads=threads)
        assert (counts == reference.count_votes(votes, 10)).all()


@pytest.mark.parametrize("labels", [3, 30])
def test_a_vote_that_is_no_label_counts_for_label_0_and_nobody_is_told(labels):
    votes = np.array([[1, 200], [2, 255], [labels, 1]], np.uint8)
    assert stability.count_votes(votes, labels)[:, :3].tolist() == [[1, 1, 1], [2, 1, 0]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: stability.distance(3), ShapeError, "counts has shape"),
        (lambda: stability.distance(np.zeros((2, 0), int)), ShapeError, "counts has shape"),
        (lambda: stability.distance([1.5, 2]), ParameterError, "counts has dtype"),
        (lambda: stability.distance([-1, 2]), ParameterError, "counts has entries"),
        (lambda: stability.distance([1, 2**32]), ParameterError, "counts has entries"),
        (lambda: stability.count_votes([1, 2], 3), ShapeError, "votes has shape"),
        (lambda: stability.count_votes([[1, 2]], 3), ParameterError, "votes has dtype"),
        (lambda: stability.count_votes(np.zeros((1, 1), np.uint8), 0), ParameterError, "labels"),
        (lambda: stability.count_votes(np.zeros((1, 1), np.uint8), 257), ParameterError, "labels"),
    ],
)
def test_bad_input_gives_one_clear_error(call, error, text):
    with pytest.raises(error, match=text):
        call()
