"""Members of parts and of groups: one record changes one vote, and counts are all that is kept."""

import itertools

import numpy as np
import pytest
from voters import Q, X, Y, fitted, labeler, soft

from hdp_fast import Budget, labels
from hdp_fast.data import Chunks, State
from hdp_fast.exceptions import (
    BudgetExceeded,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from hdp_fast.labels.partition import share_members

HALVES = [(X[:300], Y[:300]), (X[300:], Y[300:])]


class MoreFrequent:
    """Votes for the more frequent label of its chunk, fails where all features are 1."""

    def __call__(self, X, y):
        if X.all():
            raise ValueError
        return lambda Q: np.where(Q[:, 0] > 0, int(2 * y.sum() > len(y)), int(X.sum() > 1))


@pytest.mark.parametrize(("sizes", "members"), [((2, 2), 3), ((1, 3), 2), ((3, 0, 1), 3)])
def test_one_record_of_the_parts_changes_one_vote(sizes, members):
    """All data sets of four records of a bit and a label, with all that differ in one record."""
    points, ends = np.array([[0], [1]]), np.cumsum([0, *sizes])
    plain = labeler(MoreFrequent())

    def count(records):
        bits, codes = np.array(records).T
        parts = [
            (bits[start:stop, None], codes[start:stop]) for start, stop in itertools.pairwise(ends)
        ]
        return plain.fold(Chunks(parts), Q=points, members=members).sums["votes"]

    records = list(itertools.product((0, 1), (0, 1)))
    counts = {data: count(data) for data in itertools.product(records, repeat=4)}
    moved = []
    for data, votes in counts.items():
        assert (votes.sum(axis=1) == members).all()
        for place, record in itertools.product(range(4), records):
            other = counts[(*data[:place], record, *data[place + 1 :])]
            moved.append(np.abs(votes - other).sum(axis=1).max())
    assert max(moved) == 2  # a vote leaves one count for another


def test_shares_are_public_and_leave_no_part_without_a_member():
    rng = np.random.default_rng(1)
    for _ in range(500):
        rows = rng.integers(0, 20, rng.integers(1, 6)).tolist()
        parts, n = sum(number > 0 for number in rows), sum(rows)
        if not n:
            continue
        k = int(rng.integers(parts, n + 1))
        shares = share_members(rows, k)
        assert sum(shares) == k
        for number, share in zip(rows, shares, strict=True):
            assert min(number, 1) <= share <= number
    assert share_members([100, 300, 0], 40) == [10, 30, 0]


def test_parts_are_read_where_they_lie_and_one_part_is_an_array(tmp_path):
    table = np.column_stack([X, Y])
    for number, rows in enumerate(np.split(table, 3)):
        np.savetxt(
            *(tmp_path / f"{number}.csv", rows, "%g"),
            delimiter=",",
            header="a,b,bought",
            comments="",
        )
    files = Chunks(tmp_path, label="bought")
    naive = labeler(classes=["0", "1"])  # files of text hold texts
    assert naive.fit(files).label(Q).labels.tolist() == ["1", "0", "1", "0"]
    whole = fitted(random_state=3).label(Q).labels
    parted = labeler().fit(Chunks([(X, Y)]), random_state=3)
    assert (parted.label(Q).labels == whole).all()
    assert parted.record_.neighbors == "replace_one"


def test_workers_train_the_same_members_and_send_them_as_bytes():
    pytest.importorskip("joblib")
    alone = labeler().fit(Chunks(HALVES), random_state=1)
    two = labeler().fit(Chunks(HALVES, workers=2), random_state=1)
    points = np.random.default_rng(2).normal(size=(40, 2))
    assert (two.label(points).labels == alone.label(points).labels).all()
    score = [soft().fit(Chunks(HALVES, workers=w), random_state=1).score(Q, 4) for w in (1, 2)]
    assert np.array_equal(score[0].scores, score[1].scores, equal_nan=True)


@pytest.mark.parametrize(
    ("parts", "how", "error", "match"),
    [
        ([(X, Y), (X, Y + 1)], {}, ParameterError, "every entry must be one of classes"),
        ([(X, Y), (X[:, :1], Y)], {}, ShapeError, "all must have the same features"),
        ([(X, Y), (X > 0, Y)], {}, None, None),
        ([(X, Y), (X.astype(str), Y)], {}, ParameterError, "convert one of them"),
        ([X], {}, ParameterError, "the parts have no labels"),
        ([(X[:0], Y[:0])], {}, ShapeError, "the parts hold no row"),
        ([(X[:10], Y[:10])] * 61, {}, InsufficientSamples, "61 parts holds whole members"),
        ([(X[:10], Y[:10])] * 2, {}, InsufficientSamples, "60 members need one each"),
        (HALVES, {"ids": np.arange(600)}, ParameterError, "several members: join them"),
        (HALVES, {"y": Y}, ParameterError, "y was passed beside Chunks"),
    ],
)
def test_wrong_parts_are_refused_before_anything_is_spent(parts, how, error, match):
    budget = Budget(50, 0.01)
    if error is None:
        labeler().fit(Chunks(parts), budget=budget, **how)
        return
    with pytest.raises(error, match=match):
        labeler().fit(Chunks(parts), budget=budget, **how)
    assert budget.spent == (0, 0)


def test_parts_with_persons_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(who=np.arange(600) // 2, bought=Y)
    with pytest.raises(ParameterError, match="ids = 'who' of Chunks"):
        labeler().fit(Chunks([frame], label="bought", ids="who"))


def test_blocks_of_a_part_that_cannot_be_joined_are_refused():
    pandas = pytest.importorskip("pandas")
    blocks = [(pandas.DataFrame(some), labels) for some, labels in HALVES]
    with pytest.raises(ParameterError, match="a part is read as several DataFrame"):
        labeler().fit(Chunks([lambda: iter(blocks)]))


def test_groups_that_are_trained_apart_answer_as_one():
    plain, points = labeler(), np.random.default_rng(2).normal(size=(40, 2))
    states = [
        plain.fold(*half, Q=points, members=m, part=name)
        for half, m, name in zip(HALVES, (30, 30), ("north", "south"), strict=True)
    ]
    both = State.from_bytes(states[1].to_bytes()) + states[0]
    assert both.rows == 600
    assert both.sums["members"] == [60]
    assert len(both.to_bytes()) < 8 * 40 * 2 + 1_000
    together = plain.fold(Chunks(HALVES), Q=points, members=60)
    assert (together.sums["votes"] == both.sums["votes"]).all()
    budget = Budget(50, 0.01)
    answers = plain.release(both, budget=budget, random_state=5)
    session = plain.plan().table.session(random_state=5)
    assert (answers.labels == session.answer(both.sums["votes"])).all()
    assert answers.record.mechanism == (
        "labels.PrivateLabeler, HazardTable, max_unstable=5, queries=50, k=60"
    )
    assert budget.spent == (20, 1e-3)
    assert (answers.queries_left, answers.record.neighbors) == (10, "replace_one")
    with pytest.raises(ParameterError, match="'north' is in both states"):
        both + states[0]


def test_groups_of_scores_add_up():
    plain, points = soft(), np.random.default_rng(2).normal(size=(30, 2))
    states = [
        plain.fold(*half, Q=points, bins=4, members=m)
        for half, m in zip(HALVES, (30, 30), strict=True)
    ]
    assert states[0].sums["scores"].shape == (30, 8)
    answers = plain.release(sum(states), random_state=5)
    session = plain.plan().table.session(random_state=5)
    expected = session.answer_bins(sum(states).sums["scores"])
    assert np.array_equal(answers.scores, expected, equal_nan=True)
    assert (answers.scores[~answers.is_bottom] * 8 % 1 == 0).all()
    whole = plain.fit(Chunks(HALVES), random_state=1).score(Q, 4)
    assert whole.record.neighbors == "replace_one"


def test_states_of_other_settings_are_refused_by_name():
    plain = labeler()
    state = plain.fold(X, Y, Q=Q, members=60)
    with pytest.raises(ParameterError, match="points = "):
        state + plain.fold(X, Y, Q=Q + 1, members=60)
    with pytest.raises(ParameterError, match="classes = "):
        labeler(classes=[0, 1, 2]).release(state)
    with pytest.raises(ParameterError, match=r"state is of labels\.PrivateLabeler"):
        soft().release(state)
    with pytest.raises(ParameterError, match="state = "):
        plain.release(Q)
    with pytest.raises(BudgetExceeded, match="4 queries, but 3 are planned"):
        labeler(queries=3).release(state)
    with pytest.raises(ParameterError, match="neighbor"):
        plain.release(state, budget=Budget(50, 0.01, neighbors="add_remove"))
    broken = State(state.job, state.settings, 600, {**state.sums, "members": np.array([59])})
    with pytest.raises(ParameterError, match="other votes than members"):
        plain.release(broken)


def test_groups_are_checked_before_they_are_trained():
    plain = labeler()
    with pytest.raises(InsufficientSamples, match="601 members need one each"):
        plain.fold(X, Y, Q=Q, members=601)
    with pytest.raises(ShapeError, match="Q has shape"):
        plain.fold(X, Y, Q=Q[:, :1], members=60)
    with pytest.raises(ParameterError, match="members = 0"):
        plain.fold(X, Y, Q=Q, members=0)
    with pytest.raises(ParameterError, match="bins = 1"):
        soft().fold(X, Y, Q=Q, bins=1, members=60)
    empty = plain.fold(X, Y, Q=Q[:0], members=60)
    assert len(plain.release(empty).labels) == 0


def test_frames_of_points_are_told_apart_by_their_entries():
    pandas = pytest.importorskip("pandas")
    records = pandas.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 300})
    learner = lambda X, y: lambda Q: (Q.a > 0).to_numpy().astype(int)  # noqa: E731
    plain = labels.PrivateLabeler(
        learner, classes=[0, 1], epsilon=20, delta=1e-3, queries=50, max_unstable=5
    )
    states = [plain.fold(records, Y, Q=records[:5], members=60) for _ in range(2)]
    assert sum(states).sums["members"] == [120]
    with pytest.raises(ParameterError, match="points"):
        states[0] + plain.fold(records, Y, Q=records[1:6], members=60)
