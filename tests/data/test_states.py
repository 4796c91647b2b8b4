"""States: exact integers that add up in any order, and tell nothing by their texts and errors."""

import dataclasses
import json
import pickle
from functools import partial

import numpy as np
import pytest

from hdp_fast.data import State
from hdp_fast.data.states import Tally, Total, describe_settings
from hdp_fast.exceptions import HdpFastError, ParameterError
from hdp_fast.learners import Conjunctions, ExponentialLearner, FeatureMap, SufficientStatistics
from hdp_fast.statistics import Job

JOB = SufficientStatistics(FeatureMap.identity(3, norm_bound=2.0), classes=[0, 1])
LARGEST = np.iinfo(np.int64).max


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


def make(values, parts=()):
    return State("job", {"low": "0"}, 1, {"sums": np.array(values, np.int64)}, frozenset(parts))


def equal(one, other):
    return (
        one.rows == other.rows
        and one.parts == other.parts
        and one.sums.keys() == other.sums.keys()
        and all((one.sums[name] == other.sums[name]).all() for name in one.sums)
    )


def add_in_any_tree(states, rng):
    """Adds two states at a time, whichever."""
    left = list(states)
    while len(left) > 1:
        one = left.pop(rng.integers(len(left)))
        other = left.pop(rng.integers(len(left)))
        left.append(one + other)
    return left[0]


@pytest.mark.parametrize("second", [False, True])
def test_any_partition_in_any_tree_has_the_bits_of_one_fold(second):
    job = SufficientStatistics(JOB.features, classes=[0, 1], second_moments=second)
    X, y = records(60)
    whole = job.fold(X, y)
    rng = np.random.default_rng(1)
    for _ in range(200):
        # A partition that looks at the records is as good as any.
        owners = rng.integers(0, rng.integers(1, 20), 60) * (X[:, 0] > rng.normal())
        parts = [job.fold(X[owners == owner], y[owners == owner]) for owner in np.unique(owners)]
        assert equal(add_in_any_tree(parts, rng), whole)


def test_sums_wrap_around_and_raise_nothing():
    rng = np.random.default_rng(2)
    for values in rng.integers(-LARGEST, LARGEST, (200, 5)).tolist():
        total = sum(make([value]) for value in values)
        assert int(total.sums["sums"][0]) % 2**64 == sum(values) % 2**64


@pytest.mark.parametrize("dense", [0, 4, 1 << 60])
def test_tallies_add_up_by_place_however_many_are_empty(dense, monkeypatch):
    monkeypatch.setattr("hdp_fast.data.states._DENSE", dense)
    rng = np.random.default_rng(3)
    for many in (0, 1, 40, 200):
        chosen = [np.sort(rng.choice(200, size, False)) for size in (many, min(2 * many, 200))]
        tallies = [Tally(places, rng.integers(-2, 3, len(places))) for places in chosen]
        places, values = tallies[0].merge(tallies[1])
        assert places.tolist() == np.union1d(*chosen).tolist()
        total = np.zeros(200, np.int64)
        for tally in tallies:
            total[tally.places] += tally.values
        assert values.dtype == np.int64
        assert values.tolist() == total[places].tolist()


@pytest.mark.parametrize("fewest", [0, 30, 1 << 20])
@pytest.mark.parametrize("short", [0, 1 << 23])
@pytest.mark.parametrize("dense", [0, 4])
def test_a_total_of_states_is_their_sum(dense, short, fewest, monkeypatch):
    monkeypatch.setattr("hdp_fast.data.states._DENSE", dense)
    monkeypatch.setattr("hdp_fast.data.states._SHORT", short)
    monkeypatch.setattr("hdp_fast.data.states._FEWEST", fewest)
    rng = np.random.default_rng(4)
    total, states = Total(), []
    assert total.sum() is None
    for many in (0, 1, 20, 5, 300, 7):
        # Records as a block leaves them, and the tally of another part; places that increase.
        records = rng.integers(0, 20 * (len(states) + 1), many)
        one = Tally(*np.unique(records, return_counts=True)) if many % 2 else Tally(records)
        tally = Tally.join([one, Tally(records[:3])], [1 << 10] * 2)
        sums = {"sums": np.array([many], np.int64)}
        states.append(State("job", {}, many, sums, frozenset([f"{many}"]), {"points": tally}))
        kept = [entry.copy() for entry in Tally(records)]
        total.add(states[-1])
        whole = sum(states)
        assert equal(total.sum(), whole)
        for ours, theirs in zip(
            total.sum().tallies["points"], whole.tallies["points"], strict=True
        ):
            assert ours.dtype == theirs.dtype == np.int64
            assert ours.tolist() == theirs.tolist()
        assert [entry.tolist() for entry in Tally(records)] == [entry.tolist() for entry in kept]
    with pytest.raises(ParameterError, match="is in both states"):
        total.add(states[0])


def test_records_of_a_tally_travel_without_their_order():
    tally = Tally(np.array([7, 3, 7, 0]))
    assert (tally.listed, tally.end) == (4, 8)
    copied = pickle.loads(pickle.dumps(tally))
    assert copied.listed == 3
    assert [entry.tolist() for entry in copied] == [[0, 3, 7], [1, 1, 2]]
    assert Tally(np.empty(0, np.int64)).end == 0


def test_a_part_counts_once():
    with pytest.raises(ParameterError, match="'monday' is in both states, and must count once"):
        make([1], ["monday"]) + make([2], ["tuesday", "monday"])
    assert (make([1], ["monday"]) + make([2], ["tuesday"])).parts == {"monday", "tuesday"}
    # Parts without a name are not told apart.
    assert make([1]) + make([1])


def test_states_of_other_jobs_and_settings_are_refused_by_name():
    X, y = records(5)
    ours = JOB.fold(X, y)
    other = SufficientStatistics(JOB.features, classes=[0, 1, 2])
    with pytest.raises(ParameterError, match=r"classes = .*\[0, 1\] in a state, and .*\[0, 1, 2\]"):
        ours + other.fold(X, y)
    with pytest.raises(ParameterError, match=r"bits = 14 in a state, and 20 here"):
        ours + SufficientStatistics(JOB.features, classes=[0, 1], capacity=1000).fold(X, y)
    far = SufficientStatistics(FeatureMap.identity(3, norm_bound=2.5), classes=[0, 1])
    with pytest.raises(ParameterError, match="features = "):
        far.release(ours, epsilon=1.0, delta=1e-6)
    learner = ExponentialLearner(Conjunctions(3, 1), epsilon=1.0)
    with pytest.raises(ParameterError, match=r"is of learners\.SufficientStatistics and not of"):
        learner.learn(ours)
    with pytest.raises(TypeError):
        ours + 1


def test_neither_texts_nor_errors_show_a_number():
    X, y = records(7)
    state = JOB.fold(X, y, part="clinic")
    numbers = {str(value) for values in state.sums.values() for value in values.ravel()}
    assert repr(state) == (
        "<State of learners.SufficientStatistics: private sums of 1 named part, without noise>"
    )
    assert not any(number in repr(state) for number in numbers - {"0", "1"})


@pytest.mark.parametrize("copy", [lambda s: State.from_bytes(s.to_bytes()),
                                  lambda s: pickle.loads(pickle.dumps(s))])  # fmt: skip
def test_bytes_are_read_as_they_were_written(copy):
    X, y = records(9)
    state = JOB.fold(X, y, part="north")
    assert equal(copy(state), state)
    assert equal(
        copy(state) + copy(JOB.fold(X, y)), state + JOB.fold(X, y)
    )  # and they can be added


def test_bytes_say_that_they_are_private_and_do_not_grow_with_records():
    lengths = set()
    for n in (1000, 1_000_000):
        X, y = np.full((n, 3), 0.5), np.tile([0, 1], n // 2)
        content = SufficientStatistics(
            JOB.features, classes=[0, 1], second_moments=True, capacity=1 << 20
        ).fold(X, y).to_bytes()  # fmt: skip
        assert content.startswith(b"PRIVATE: exact sums of records, without noise.")
        lengths.add(len(content) - len(str(n)))
    (length,) = lengths
    # Three columns by two classes, and the square of the columns, at 8 bytes.
    assert 8 * (3 * 2 + 9) < length < 8 * (3 * 2 + 9) + 900


def test_damaged_bytes_are_refused():
    content = JOB.fold(*records(3)).to_bytes()
    for place in range(len(content)):
        for bit in (1, 128):
            damaged = bytearray(content)
            damaged[place] ^= bit
            with pytest.raises(ParameterError, match="content is no whole state"):
                State.from_bytes(bytes(damaged))
    for end in range(len(content)):
        with pytest.raises(ParameterError, match="content is no whole state"):
            State.from_bytes(content[:end])
    for other in (b"", b"x" * 100, pickle.dumps(1)):
        with pytest.raises(ParameterError, match="content is no whole state"):
            State.from_bytes(other)


def test_a_later_version_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("hdp_fast.data.states._VERSION", 2)
    content = make([1]).to_bytes()
    monkeypatch.undo()
    with pytest.raises(ParameterError, match="version = 2, but states of version 1 are read"):
        State.from_bytes(content)


def test_headers_that_lie_are_refused():
    import hashlib

    good = make([1, 2]).to_bytes()
    notice, line, _ = good[:-32].split(b"\n", 2)
    for change in ({"sums": {"sums": [3]}}, {"sums": {"sums": [1]}}, {"sums": {"sums": [-2]}},
                   {"rows": "x"}, {"rows": "2"}, {"rows": -2}, {"sums": 1}, {"parts": 1},
                   {"parts": "ab"}, {"parts": [1]}, {"settings": [1]}, {"settings": {"low": 1}},
                   {"job": ["x"]}, {"version": True}, {"version": "x" * 99},
                   {"tallies": {"points": -1}}):  # fmt: skip
        header = json.dumps({**json.loads(line), **change}).encode()
        written = notice + b"\n" + header + b"\n" + good[-48:-32]
        with pytest.raises(HdpFastError):
            State.from_bytes(written + hashlib.sha256(written).digest())


def test_settings_are_equal_where_they_are():
    def text(value):
        return describe_settings(value=value)["value"]

    long = np.arange(100.0)
    assert text(long) == text(long.copy()) != text(np.append(long[:-1], 0.0))
    assert text(np.array(["a"], object)) != text(np.array(["b"], object))
    assert text(FeatureMap.identity(3)) == text(FeatureMap.identity(3)) != text(JOB.features)
    assert text(Conjunctions(3, 1)) != text(Conjunctions(3, 2))
    assert len(text("x" * 1000)) < 80


class Times:
    def __init__(self, factor):
        self.factor, self.me = factor, self

    def __call__(self, X):
        return X * self.factor


def times(factor):
    factors = np.full(3, float(factor))

    def multiply(X):
        return X * factors if len(X) else multiply(X)

    return multiply


@pytest.mark.parametrize(
    "make",
    [
        times,
        Times,
        lambda factor: Times(factor).__call__,
        lambda factor: partial(np.multiply, factor),
        lambda factor: partial(Times(factor)),
        lambda factor: lambda X, factor=factor: X * factor,
        lambda factor: (lambda X: X * 2) if factor == 2 else (lambda X: X * 3),
        lambda factor: np.exp if factor == 2 else np.log,
    ],
)
def test_functions_of_other_settings_are_others(make):
    """Their names are often the same."""
    X, y = records(10)

    def fold(factor):
        features = FeatureMap.from_callable(make(factor), 3)
        return SufficientStatistics(features, classes=[0, 1]).fold(X[:, :3], y)

    assert (fold(2) + fold(2)).rows == 20
    with pytest.raises(ParameterError, match=r"features = .*states must be of one job to add up"):
        fold(2) + fold(3)


def test_sums_of_other_shapes_are_refused_by_jobs():
    """Of a state that no fold made: noise would not fit it, or memory be filled."""
    X, y = records(10)
    pairs = dataclasses.replace(JOB, second_moments=True)
    release = partial(pairs.release, epsilon=1.0, delta=1e-6)
    whole = pairs.fold(X, y)
    one = Job("mean", low=0, high=1)
    for name, values in whole.sums.items():
        for sums in ({**whole.sums, name: values[:1]}, {name: values}):
            odd = dataclasses.replace(whole, sums=sums)
            for call in (release, whole.__add__):
                with pytest.raises(ParameterError, match="sums of other shapes"):
                    call(odd)
    state = one.fold([0.5] * 10)
    wide = {"sums": np.zeros((1, 5), np.int64)}
    with pytest.raises(ParameterError, match="sums of other shapes"):
        one.release(dataclasses.replace(state, sums=wide), epsilon=1.0)
    for columns in ("1000000000000", "-1", "{}", "[1]", "[" * 10_000, "0"):
        settings = {**state.settings, "columns": columns}
        with pytest.raises(ParameterError, match="must be made by this job"):
            one.release(dataclasses.replace(state, settings=settings), epsilon=1.0)


def test_more_records_than_the_capacity_are_refused_where_their_number_is_public():
    X, y = records(5)
    small = SufficientStatistics(JOB.features, classes=[0, 1], capacity=4)
    with pytest.raises(ParameterError, match="capacity = 4, but the state holds 5 records"):
        small.release(small.fold(X, y), epsilon=1.0, delta=1e-6)
    private = SufficientStatistics(JOB.features, classes=[0, 1], capacity=4, neighbors="add_remove")
    with pytest.warns():
        private.release(private.fold(X, y), epsilon=1.0, delta=1e-6, random_state=0)


def test_release_of_a_state_is_that_of_its_records():
    X, y = records(2000)
    job = SufficientStatistics(JOB.features, classes=[0, 1], second_moments=True, capacity=2000)
    state = job.fold(X[:5], y[:5]) + job.fold(X[5:], y[5:])
    ours = job.release(state, epsilon=1.0, delta=1e-6, random_state=4)
    theirs = job.release(X, y, epsilon=1.0, delta=1e-6, random_state=4)
    assert (ours.sums == theirs.sums).all()
    assert (ours.moments == theirs.moments).all()
    assert ours.record == theirs.record
    assert ours.n == theirs.n == 2000


def test_a_small_epsilon_is_refused_where_the_digits_are_too_many():
    job = SufficientStatistics(JOB.features, classes=[0, 1], second_moments=True, capacity=100)
    state = job.fold(*records(100))
    with pytest.raises(ParameterError, match=r"epsilon = 1e-05, but the noise leaves \d+ digits"):
        job.release(state, epsilon=1e-5, delta=1e-9)


def test_errors_add_up():
    learner = ExponentialLearner(Conjunctions(6, 2), epsilon=0.7)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (300, 6)), rng.integers(0, 2, 300)
    state = sum(learner.fold(X[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50))
    assert (state.sums["errors"] == learner.hypotheses.errors(X, y)).all()
    ours, theirs = learner.learn(state, random_state=1), learner.learn(X, y, random_state=1)
    assert ours.index == theirs.index
    with pytest.raises(ParameterError, match="y was passed beside"):
        learner.learn(state, y)
    with pytest.raises(ParameterError, match="ids were passed beside"):
        learner.learn(state, ids=np.arange(300))
