"""Error counts against plain Python, the laws of the learner, its sample sizes."""

import copy
import inspect
import itertools
import json
import math
import pickle
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import accounting, gf2, learners
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError
from hdp_fast.learners import (
    ConjunctionList,
    Conjunctions,
    DoublingLearner,
    ExponentialLearner,
    Features,
    Halfspaces,
    HypothesisResult,
    Labelings,
    Parities,
    SparseHalfspaces,
    Stumps,
    cut,
    predictor,
)
from hdp_fast.noise import selection_rate
from hdp_fast.reference import noise as laws
from hdp_fast.reference import score as reference

SIZES = (0, 1, 63, 64, 65, 129, 1023, 1025, 16_385)
EYE = np.eye(4, dtype=np.uint8)


def seeded(seed):
    return np.random.default_rng(seed)


def data(m, d, seed=1):
    rng = np.random.default_rng([m, d, seed])
    X = rng.integers(0, 2, (m, d), dtype=np.uint8)
    return X, rng.integers(0, 2, m, dtype=np.uint8)


def conjunction(literals, x):
    return int(all(x[feature] == value for feature, value in literals))


def says(hypothesis, x):
    """A description applied to one record, as its documentation reads."""
    if hypothesis["kind"] == "at_least":
        literals = zip(hypothesis["features"], hypothesis["values"], strict=True)
        return int(sum(x[j] == value for j, value in literals) >= hypothesis["threshold"])
    if hypothesis["kind"] == "halfspace":
        products = (w * v for w, v in zip(hypothesis["weights"], x, strict=True))
        return int(sum(products) + hypothesis["bias"] >= 0)
    if hypothesis["kind"] == "parity":
        value = sum(x[j] for j in hypothesis["features"]) % 2
    else:
        literals = zip(hypothesis["features"], hypothesis["values"], strict=True)
        value = conjunction(literals, x)
    return value ^ hypothesis["complement"]


def plain_errors(hypotheses, X, y):
    rows, labels = X.tolist(), y.tolist()
    return [
        sum(says(hypothesis, x) != label for x, label in zip(rows, labels, strict=True))
        for hypothesis in hypotheses
    ]


def literal_masks(count, d, most, seed=3):
    rng = np.random.default_rng(seed)
    ones, zeros = np.zeros((2, count, d), np.uint8)
    for i in range(count):
        for feature in rng.choice(d, rng.integers(0, most + 1), replace=False):
            (ones, zeros)[rng.integers(2)][i, feature] = 1
    return ones, zeros


HALFSPACES = Halfspaces(seeded(1).normal(size=(9, 5)), seeded(2).normal(size=9))
CLASSES = {
    "conjunctions of 0": Conjunctions(5, 0),
    "conjunctions of 1": Conjunctions(5, 1),
    "conjunctions of 2": Conjunctions(5, 2, complements=True),
    "conjunctions of 3": Conjunctions(5, 3),
    "conjunctions of 5": Conjunctions(5, 5),
    "stumps": Stumps(5),
    "sparse halfspaces of 0": SparseHalfspaces(5, 0),
    "sparse halfspaces of 1": SparseHalfspaces(5, 1),
    "sparse halfspaces of 2": SparseHalfspaces(5, 2),
    "sparse halfspaces of 5": SparseHalfspaces(5, 5),
    "list": ConjunctionList(*literal_masks(40, 5, 4)),
    "parities": Parities(seeded(3).integers(0, 2, (20, 5))),
    "affine parities": Parities(seeded(4).integers(0, 2, (20, 5)), affine=True),
}


@each_case("m", SIZES[:-3])
@each_case("hypotheses", CLASSES.values(), ids=CLASSES)
def test_errors_are_those_of_plain_python(hypotheses, m):
    X, y = data(m, 5)
    errors = hypotheses.errors(X, y)
    assert errors.dtype == np.int64
    assert errors.tolist() == plain_errors(hypotheses, X, y)


@pytest.mark.parametrize("hypotheses", CLASSES.values(), ids=CLASSES)
def test_predictions_agree_with_descriptions_and_errors(hypotheses):
    X, y = data(130, 5)
    features = Features(X)
    errors = hypotheses.errors(features, y)
    for i, hypothesis in enumerate(hypotheses):
        predicted = hypotheses.predict(i, features)
        assert predicted.dtype == np.uint8
        assert predicted.tolist() == [says(hypothesis, x) for x in X.tolist()]
        assert errors[i] == np.count_nonzero(predicted != y)
        assert json.loads(json.dumps(hypothesis)) == hypothesis


@pytest.mark.parametrize("m", [16_383, 16_385, 50_001])
def test_predictions_of_long_records(m):
    X, _ = data(m, 5)
    want = (X[:, 1] == 1) & (X[:, 3] == 0)
    conjunctions = ConjunctionList([[0, 1, 0, 0, 0]], [[0, 0, 0, 1, 0]])
    assert conjunctions.predict(0, X).tolist() == want.astype(int).tolist()
    parities = Parities([[1, 0, 1, 0, 1]], affine=True)
    assert parities.predict(1, X).tolist() == (1 ^ X[:, 0] ^ X[:, 2] ^ X[:, 4]).tolist()


@each_case("d", [1, 63, 64, 65, 130])
@each_case("m", [65, *SIZES[-3:]])
def test_wide_and_long_records_against_the_reference(m, d):
    X, y = data(m, d)
    ones, zeros = literal_masks(70, d, min(d, 4))
    literals = [
        [(int(j), 1) for j in np.flatnonzero(one)] + [(int(j), 0) for j in np.flatnonzero(zero)]
        for one, zero in zip(ones, zeros, strict=True)
    ]
    columns = reference.columns(X)
    want = reference.conjunction_errors(columns, y, literals)
    if hasattr(np, "bitwise_count"):
        words = reference.packed(columns), reference.packed(y)
        assert reference.packed_conjunction_errors(*words, m, literals) == want
    for threads in None, 1, 2:
        got = ConjunctionList(ones, zeros).errors(X, y, threads=threads)
        assert got.tolist() == want
    masks = seeded(7).integers(0, 2, (30, d), dtype=np.uint8)
    assert Parities(masks).errors(X, y).tolist() == reference.parity_errors(columns, y, masks)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("d", "size"), [(3, 3), (20, 3), (70, 2), (9, 4)])
def test_conjunctions_against_the_reference(d, size, threads):
    X, y = data(1_500, d)
    hypotheses = Conjunctions(d, size)
    literals = [[*zip(each["features"], each["values"], strict=True)] for each in hypotheses]
    want = reference.conjunction_errors(reference.columns(X), y, literals)
    assert hypotheses.errors(X, y, threads=threads).tolist() == want


@pytest.mark.parametrize("isa", ["portable", "avx2", "gfni256", "gfni"])
def test_every_instruction_set_counts_the_same(isa, monkeypatch):
    X, y = data(5_000, 20)
    classes = [
        Conjunctions(20, 2),
        SparseHalfspaces(20, 3),
        ConjunctionList(*literal_masks(50, 20, 5)),
        Parities(X[:30]),
    ]
    want = [hypotheses.errors(X, y).tolist() for hypotheses in classes]
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    assert [hypotheses.errors(X, y).tolist() for hypotheses in classes] == want


@pytest.mark.parametrize(("d", "size"), [(1, 0), (1, 1), (6, 0), (6, 3), (6, 6), (7, 2)])
def test_conjunctions_are_all_of_them_once(d, size):
    found = {
        frozenset(zip(each["features"], each["values"], strict=True))
        for each in Conjunctions(d, size)
    }
    literals = [[None, 0, 1]] * d
    every = {
        frozenset((j, value) for j, value in enumerate(values) if value is not None)
        for values in itertools.product(*literals)
    }
    assert found == {each for each in every if len(each) <= size}
    assert (
        len(found)
        == len(Conjunctions(d, size))
        == sum(math.comb(d, s) * 2**s for s in range(size + 1))
    )


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("d", "size"), [(1, 1), (3, 3), (20, 3), (70, 2), (9, 4)])
def test_sparse_halfspaces_against_the_reference(d, size, threads):
    X, y = data(1_500, d)
    hypotheses = SparseHalfspaces(d, size)
    votes = [
        ([*zip(each["features"], each["values"], strict=True)], each["threshold"])
        for each in hypotheses
    ]
    want = reference.at_least_errors(reference.columns(X), y, votes)
    assert hypotheses.errors(X, y, threads=threads).tolist() == want


def truth_tables(d, weights):
    """Every function of d bits that is a halfspace with at most two of these integer weights."""
    X = np.array([*itertools.product((0, 1), repeat=d)])
    for w in itertools.product(weights, repeat=d):
        if np.count_nonzero(w) <= 2:
            for threshold in range(-2 * max(weights), 2 * max(weights) + 2):
                yield tuple((X @ w >= threshold).astype(int))


def test_sparse_halfspaces_of_two_literals_are_all_halfspaces_of_two_features():
    X = np.array([*itertools.product((0, 1), repeat=4)], np.uint8)
    hypotheses = SparseHalfspaces(4, 2)
    found = {tuple(hypotheses.predict(i, X).tolist()) for i in range(len(hypotheses))}
    assert found == set(truth_tables(4, range(-3, 4)))
    assert len(found) == len(hypotheses) == 2 + 4 * 2 + 6 * 8


@pytest.mark.parametrize(("d", "size"), [(1, 0), (1, 1), (4, 3), (4, 4)])
def test_sparse_halfspaces_are_distinct_and_closed_under_complement(d, size):
    X = np.array([*itertools.product((0, 1), repeat=d)], np.uint8)
    hypotheses = SparseHalfspaces(d, size)
    found = {tuple(hypotheses.predict(i, X).tolist()) for i in range(len(hypotheses))}
    assert len(hypotheses) == 2 + sum(s * 2**s * math.comb(d, s) for s in range(1, size + 1))
    assert len(found) == len(hypotheses)
    assert {tuple(1 - bit for bit in table) for table in found} == found


def test_cut_compares_with_every_public_point():
    X = np.array([[0.5, 7, -1.0], [2.0, 8, 0.0]])
    assert cut(X, [[2, 0.5], [], [0]]).tolist() == [[0, 1, 0], [1, 1, 1]]
    assert cut(X[:0], [[1], [2], [3]]).shape == (0, 3)
    assert cut(X, [[], [], []]).shape == (2, 0)
    for bad, error in (
        ((X, [[1]]), ShapeError),
        ((X, [[1], [2], 3]), ShapeError),
        ((X * math.nan, [[1]] * 3), ParameterError),
        ((X, [[math.inf]] * 3), ParameterError),
        ((X.astype(str), [[1]] * 3), ParameterError),
    ):
        with pytest.raises(error):
            cut(*bad)


def test_a_large_class_is_described_without_being_made():
    hypotheses = Conjunctions(300, 5)
    last = hypotheses.hypothesis(len(hypotheses) - 1)
    assert last["features"] == [295, 296, 297, 298, 299]
    assert last["values"] == [0] * 5
    assert len(next(iter(hypotheses))["features"]) == 0


def test_stumps_are_closed_under_complement_and_numbered_as_said():
    X, y = data(100, 3)
    errors = Stumps(3).errors(X, y)
    assert len(Stumps(3)) == 8
    assert errors[0] == np.count_nonzero(y == 0)
    assert errors[7] == np.count_nonzero(y == 1)
    for j in range(3):
        assert errors[1 + 2 * j] == np.count_nonzero(X[:, j] != y)
        assert errors[2 + 2 * j] == np.count_nonzero(X[:, j] == y)


def layouts(X):
    read_only = X.copy()
    read_only.flags.writeable = False
    yield X.astype(bool)
    yield X.astype(np.int64)
    yield X.astype(">i2")
    yield np.asfortranarray(X)
    yield np.repeat(X, 2, axis=0)[::2]
    yield np.repeat(X, 3, axis=1)[:, ::3]
    yield X[::-1][::-1]
    yield read_only
    yield X.tolist()
    yield gf2.BitMatrix.from_dense(X)
    yield Features(X)
    yield copy.deepcopy(Features(X))


def test_every_layout_is_read_alike():
    X, y = data(150, 70)
    for hypotheses in Conjunctions(70, 2), Parities(X[:9]):
        want = hypotheses.errors(X, y).tolist()
        for other in layouts(X):
            assert hypotheses.errors(other, y.tolist()).tolist() == want
        for other in y.astype(bool), y.astype(np.int32), np.repeat(y, 2)[::2]:
            assert hypotheses.errors(X, other).tolist() == want
    features = Features(X)
    assert (features.shape, len(features)) == ((150, 70), 150)
    assert repr(Features(features)) == repr(features) == "Features(150 records of 70 bits)"
    assert copy.copy(features) is features


@each_case("m", [0, 1, 15, 16, 17, 65, 3_000])
@each_case("d", [1, 6, 130])
def test_halfspaces_count_exactly_where_floats_are_exact(m, d):
    draw = seeded(m)
    X, W, b = (draw.integers(-4, 5, shape) for shape in ((m, d), (41, d), 41))
    y = draw.integers(0, 2, m)
    hypotheses = Halfspaces(W, b)
    errors = hypotheses.errors(X, y)
    assert errors.dtype == np.int64
    assert errors.tolist() == ((X @ W.T + b >= 0) != y[:, None]).sum(axis=0).tolist()
    for rows in None, 7:
        again = reference.halfspace_errors(X, y.astype(np.uint8), W, b, rows=rows)
        assert again.tolist() == errors.tolist()
    for i in 0, 40:
        assert np.count_nonzero(hypotheses.predict(i, X) != y) == errors[i]
    for threads in 1, 2:
        assert hypotheses.errors(X, y, threads=threads).tolist() == errors.tolist()


def score(weights, x):
    """The sum of the products from the first to the last, rounded after every step."""
    total = 0.0
    for weight, value in zip(weights.tolist(), x.tolist(), strict=True):
        total += weight * value
    return total


@pytest.mark.parametrize("isa", ["portable", "avx2", "gfni256", "gfni"])
def test_rounding_beside_a_boundary_is_the_same_everywhere(isa, monkeypatch):
    """Every boundary goes through a record, where any other order or fused step would show."""
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    rng = np.random.default_rng(8)
    X, W = rng.normal(size=(67, 9)), rng.normal(size=(67, 9))
    b = np.array([-score(w, x) for w, x in zip(W, X, strict=True)])
    b[::2] = np.nextafter(b[::2], -np.inf)
    y = rng.integers(0, 2, 67)
    hypotheses = Halfspaces(W, b)
    says = [[int(score(w, x) + bias >= 0) for x in X] for w, bias in zip(W, b, strict=True)]
    assert [says[i][i] for i in range(67)] == [i % 2 for i in range(67)]
    assert [hypotheses.predict(i, X).tolist() for i in range(67)] == says
    assert hypotheses.errors(X, y).tolist() == (np.array(says) != y).sum(axis=1).tolist()
    parts = [hypotheses.errors(X[i : i + 1], y[i : i + 1]) for i in range(67)]
    assert sum(parts).tolist() == hypotheses.errors(X, y).tolist()


def test_halfspaces_read_any_layout_of_numbers():
    X, y = data(50, 5)
    for kind in np.float32, ">f8", np.int64, bool:
        want = HALFSPACES.errors(X.astype(float), y).tolist()
        for other in X.astype(kind), np.asfortranarray(X.astype(kind)), X.tolist():
            assert HALFSPACES.errors(other, y).tolist() == want
        spread = np.repeat(X.astype(kind), 2, axis=1)[:, ::2]
        assert HALFSPACES.predict(0, spread).tolist() == HALFSPACES.predict(0, X).tolist()
    packed = np.zeros(50, dtype=[("flag", "u1"), ("x", "f8", 5)])
    packed["x"] = X
    assert HALFSPACES.errors(packed["x"], y).tolist() == HALFSPACES.errors(X, y).tolist()


def test_classes_are_frozen_and_survive_pickling():
    X, y = data(50, 5)
    for hypotheses in [
        *CLASSES.values(),
        Halfspaces(seeded(5).random((3, 5)), seeded(6).random(3)),
    ]:
        again = pickle.loads(pickle.dumps(hypotheses))
        assert again.errors(X, y).tolist() == hypotheses.errors(X, y).tolist()
        with pytest.raises(AttributeError):
            hypotheses.d = 3
    masks = EYE.copy()
    hypotheses = Parities(masks)
    masks[:] = 0
    assert hypotheses.hypothesis(2)["features"] == [2]
    assert not hypotheses.masks.flags.writeable
    assert Conjunctions(4, 2) == Conjunctions(np.int64(4), 2)


@each_case("hypotheses", [*CLASSES.values(), Halfspaces(np.ones((1, 5)), [0])])
def test_records_that_do_not_fit_are_refused(hypotheses):
    X, y = data(20, 5)
    with pytest.raises(ShapeError):
        hypotheses.errors(X[:, :4], y)
    with pytest.raises(ShapeError):
        hypotheses.errors(X, y[:-1])
    with pytest.raises(ShapeError):
        hypotheses.predict(0, X[:, :4])
    for i in -1, len(hypotheses), 0.5, None:
        with pytest.raises(ParameterError, match="i = "):
            hypotheses.predict(i, X)
        with pytest.raises(ParameterError, match="i = "):
            hypotheses.hypothesis(i)


# Descriptions -------------------------------------------------------------------------------------

WITH_HALFSPACES = {**CLASSES, "halfspaces": HALFSPACES}


@each_case("hypotheses", WITH_HALFSPACES.values(), ids=WITH_HALFSPACES)
def test_index_is_the_inverse_of_hypothesis(hypotheses):
    described = list(hypotheses)
    for hypothesis in described:
        first = described.index(hypothesis)
        assert hypotheses.index(hypothesis) == first
        assert hypotheses.index(json.dumps(hypothesis, sort_keys=True)) == first


def test_every_index_of_a_large_class_is_found():
    for hypotheses in Conjunctions(300, 5, complements=True), SparseHalfspaces(300, 4):
        for i in map(int, seeded(7).integers(0, len(hypotheses), 50)):
            assert hypotheses.index(hypotheses.hypothesis(i)) == i


ONE = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}
SUM = {"kind": "parity", "features": [0, 4], "complement": False}
HALF = {"kind": "halfspace", "weights": [1.0] * 5, "bias": 0.0}
VOTE = {"kind": "vote", "hypotheses": [ONE]}
MAJORITY = {"kind": "at_least", "threshold": 2, "features": [0, 1, 3], "values": [1, 0, 1]}


@each_case("hypotheses", WITH_HALFSPACES.values(), ids=WITH_HALFSPACES)
def test_descriptions_of_other_classes_are_none_of_this_one(hypotheses):
    known = list(hypotheses)
    others = [ONE, SUM, HALF, MAJORITY, VOTE]
    others += [{**ONE, "features": [j]} for j in (4, 5, 2**60)]
    others += [{**ONE, "features": [1, j], "values": [0, 1]} for j in (0, 1, 4, 5)]
    others += [{**each, "complement": True} for each in (ONE, SUM)]
    others += [{**SUM, "features": j} for j in ([4, 0], [5], [1, 1])]
    others += [{**HALF, "weights": [1.0]}]
    others += [{**ONE, "features": list(range(6)), "values": [1] * 6}]
    for other in others:
        if other not in known:
            with pytest.raises(ParameterError, match="none such"):
                hypotheses.index(other)


BROKEN = [
    None,
    "",
    "[]",
    "{",
    "[" * 100_000,
    {},
    {"kind": []},
    {"kind": "tree"},
    {**ONE, "more": 1},
    {"kind": "parity", "features": [0]},
    {**ONE, "values": []},
    {**ONE, "values": [2]},
    {**ONE, "features": [-1]},
    {**ONE, "features": [0.5]},
    {**ONE, "features": "1"},
    {**ONE, "complement": 0},
    {**HALF, "weights": []},
    {**HALF, "bias": math.nan},
    {**HALF, "weights": [math.inf]},
    {**MAJORITY, "threshold": -1},
    {"kind": "vote", "hypotheses": []},
    {"kind": "vote", "hypotheses": [VOTE]},
    {"kind": "vote", "hypotheses": [json.dumps(ONE)]},
]


@each_case("broken", BROKEN, ids=lambda value: str(value)[:30])
def test_what_describes_nothing_is_refused(broken):
    for call in predictor, Stumps(5).index, ExponentialLearner(Stumps(5), epsilon=1.0).restore:
        with pytest.raises(ParameterError):
            call(broken)


@pytest.mark.parametrize("hypotheses", WITH_HALFSPACES.values(), ids=WITH_HALFSPACES)
def test_a_description_predicts_what_its_class_does(hypotheses):
    X, _ = data(130, 5)
    for i, hypothesis in enumerate(hypotheses):
        want = hypotheses.predict(i, X)
        got = predictor(json.dumps(hypothesis))(X)
        assert got.dtype == np.uint8
        assert got.tolist() == want.tolist()


def test_votes_are_won_by_more_than_half():
    X, _ = data(200, 5)
    for voters in [ONE], [ONE, SUM], [ONE, SUM, MAJORITY], [ONE, SUM, HALF, MAJORITY]:
        said = predictor({"kind": "vote", "hypotheses": voters})(X)
        want = [2 * sum(says(each, x) for each in voters) > len(voters) for x in X.tolist()]
        assert said.tolist() == want


def test_a_predictor_refuses_records_without_its_features():
    X, _ = data(20, 4)
    for hypothesis in SUM, HALF, {**ONE, "features": [4]}, {**MAJORITY, "features": [0, 1, 4]}:
        with pytest.raises(ShapeError):
            predictor(hypothesis)(X)
    with pytest.raises(ParameterError):
        predictor(ONE)(X + 0.5)


@each_case("hypotheses", WITH_HALFSPACES.values(), ids=WITH_HALFSPACES)
def test_prepared_records_are_read_alike(hypotheses):
    X, y = data(100, 5)
    learner = ExponentialLearner(hypotheses, epsilon=1e6)
    prepared = learner.prepare(X)
    assert isinstance(prepared, np.ndarray if hypotheses is HALFSPACES else Features)
    assert hypotheses.errors(prepared, y).tolist() == hypotheses.errors(X, y).tolist()
    learned = learner.learn(prepared, y, random_state=0)
    chosen = learner.restore(json.dumps(learned.hypothesis))
    assert isinstance(learned, HypothesisResult)
    assert chosen.hypothesis == learned.hypothesis
    assert chosen.predict(prepared).tolist() == learned.predict(X).tolist()
    with pytest.raises(ShapeError):
        learner.prepare(X[:, :4])


# Learner ------------------------------------------------------------------------------------------

TINY = {
    "stumps": Stumps(1),
    "conjunctions": Conjunctions(2, 2),
    "parities": Parities([[1, 1], [0, 1]]),
}
LAWS = {
    "exponential": laws.exponential_mechanism_law,
    "permute_and_flip": laws.permute_and_flip_law,
}


def all_errors(hypotheses, n):
    """Error counts for every data set of n records over all bits and labels."""
    d = hypotheses.d
    records = [(x, y) for x in itertools.product((0, 1), repeat=d) for y in (0, 1)]
    for chosen in itertools.combinations_with_replacement(records, n):
        X = np.array([x for x, _ in chosen], np.uint8).reshape(n, d)
        y = np.array([label for _, label in chosen], np.uint8)
        yield Counter(chosen), tuple(hypotheses.errors(X, y).tolist())


def neighboring_errors(hypotheses, neighbors, most=3):
    """Pairs of error vectors of neighboring data sets of at most `most` records."""
    by_size = [list(all_errors(hypotheses, n)) for n in range(most + 1)]
    pairs = set()
    for n in range(1, most + 1):
        others = by_size[n] if neighbors == "replace_one" else by_size[n - 1]
        for one, errors in by_size[n]:
            for other, changed in others:
                if (one - other).total() == 1:
                    pairs |= {(errors, changed), (changed, errors)}
    return pairs


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["stumps", "parities"])
@pytest.mark.parametrize("mechanism", LAWS)
def test_privacy_by_enumeration(mechanism, name, neighbors, epsilon):
    rate = selection_rate(float(epsilon), 1, neighbors == "add_remove")
    assert rate == (epsilon if neighbors == "add_remove" else epsilon / 2)
    pairs = neighboring_errors(TINY[name], neighbors)
    law = {
        errors: LAWS[mechanism]([-count for count in errors], rate)
        for errors in {errors for errors, _ in pairs}
    }
    bound = 1 / laws.exp_minus(epsilon)
    slack = 1 + Decimal(10) ** -20
    ratios = [[p / q for p, q in zip(law[one], law[other], strict=True)] for one, other in pairs]
    worst = max(max(each) for each in ratios)
    assert worst <= bound * slack
    assert worst >= bound ** Decimal("0.5")
    if mechanism == "exponential":
        assert max(max(each) / min(each) for each in ratios) <= bound * slack


def test_one_record_changes_no_count_by_more_than_one():
    for hypotheses in TINY.values():
        for neighbors, allowed in ("replace_one", {-1, 0, 1}), ("add_remove", {0, 1}):
            for one, other in neighboring_errors(hypotheses, neighbors, most=2):
                sign = 1 if sum(one) >= sum(other) or neighbors == "replace_one" else -1
                changes = {sign * (a - b) for a, b in zip(one, other, strict=True)}
                assert changes <= allowed


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mechanism", LAWS)
def test_learn_draws_from_the_law(mechanism, neighbors):
    """Frequencies within six standard deviations of the law of its scores."""
    X, y = np.array([[0, 0], [1, 0], [1, 1], [1, 1]]), [0, 1, 1, 0]
    hypotheses, epsilon, runs = TINY["parities"], Fraction(1), 4_000
    learner = ExponentialLearner(hypotheses, epsilon=1, mechanism=mechanism, neighbors=neighbors)
    rate = epsilon if neighbors == "add_remove" else epsilon / 2
    law = LAWS[mechanism]([-int(e) for e in hypotheses.errors(X, y)], rate)
    coins = np.random.default_rng(5)
    found = Counter(learner.learn(X, y, random_state=coins).index for _ in range(runs))
    for i, p in enumerate(map(float, law)):
        assert abs(found[i] - runs * p) <= 6 * math.sqrt(runs * p * (1 - p))


def test_with_a_huge_epsilon_the_best_hypothesis_is_chosen():
    X, _ = data(500, 6)
    hypotheses = Conjunctions(6, 2)
    for i in 0, 17, len(hypotheses) - 1:
        learned = ExponentialLearner(hypotheses, epsilon=1e6).learn(X, hypotheses.predict(i, X))
        assert learned.index == i
        assert learned.hypothesis == hypotheses.hypothesis(i)
        assert learned.predict(X).tolist() == hypotheses.predict(i, X).tolist()


def test_no_epsilon_is_chosen_for_the_caller():
    with pytest.raises(TypeError, match="epsilon"):
        ExponentialLearner(Stumps(4))
    with pytest.raises(TypeError, match="epsilon"):
        DoublingLearner([Stumps(4)], alpha=0.1, beta=0.1)


def test_the_record_and_the_privacy_say_what_was_spent():
    X, y = data(30, 4)
    for mechanism, kind in (
        ("exponential", accounting.BoundedRange),
        (
            "permute_and_flip",
            accounting.Pure,
        ),
    ):
        learner = ExponentialLearner(
            Stumps(4), epsilon=0.5, mechanism=mechanism, neighbors="add_remove"
        )
        assert learner.privacy == kind(0.5, neighbors="add_remove")
        assert learner.with_epsilon(2).privacy == kind(2.0, neighbors="add_remove")
        budget = Budget(1, neighbors="add_remove")
        record = learner.learn(X, y, budget=budget).record
        assert (record.epsilon, record.delta, record.neighbors) == (0.5, 0, "add_remove")
        assert mechanism in record.mechanism
        assert record.numerics == "exact"
        assert budget.spent.epsilon == 0.5
    halfspaces = ExponentialLearner(Halfspaces(np.ones((1, 4)), [0.0]), epsilon=1.0)
    assert halfspaces.learn(X, y).record.numerics == "exact"


def test_nothing_is_spent_on_what_cannot_be_learned():
    X, y = data(30, 4)
    learner, budget = ExponentialLearner(Stumps(4), epsilon=1), Budget(1)
    for bad in (X[:, :3], y), (X, y[1:]), (X * 2, y), (X, y * 3):
        with pytest.raises((ShapeError, ParameterError)):
            learner.learn(*bad, budget=budget)
    assert budget.records == ()
    learner.learn(X, y, budget=budget)
    with pytest.raises(BudgetExceeded):
        learner.learn(X, y, budget=budget)


def test_a_seeded_choice_does_not_depend_on_threads(monkeypatch):
    X, y = data(3_000, 10)
    learner = ExponentialLearner(Conjunctions(10, 3), epsilon=0.1)
    found = []
    for threads in "1", "2", "3":
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        found.append([learner.learn(X, y, random_state=seed).index for seed in range(5)])
    assert found[0] == found[1] == found[2]


# Sample sizes -------------------------------------------------------------------------------------


def of_size(count, **options):
    halfspaces = Halfspaces(np.ones((count, 1)), np.zeros(count))
    return ExponentialLearner(halfspaces, **{"epsilon": 1.0, **options})


HUNDRED, MILLION = of_size(100), of_size(10**6)


def test_sample_sizes_worked_out_by_hand():
    assert HUNDRED.sample_size(0.1, 0.05, 1) == 1511
    assert HUNDRED.sample_size(0.1, 0.05, 1, agnostic=False) == 190
    assert HUNDRED.sample_size(0.1, 0.05, 0.1) == 2020
    assert MILLION.sample_size(0.05, 0.05, 0.5) == 13_433
    assert MILLION.sample_size(0.05, 0.05, 0.5, agnostic=False) == 1_512
    assert HUNDRED.with_epsilon(0.1).sample_size(0.1, 0.05) == 2020
    assert of_size(1).sample_size(0.1, 0.05) == 0


def test_the_papers_sample_sizes():
    assert HUNDRED.paper_sample_size(0.1, 0.05, 1) == (4561, True, 4045)
    assert HUNDRED.paper_sample_size(0.1, 0.05, 0.1) == (4561, False, 4977)
    assert MILLION.paper_sample_size(0.05, 0.05, 0.5).printed == 40_347


@each_case("neighbors", ["replace_one", "add_remove"])
@each_case("epsilon", [0.05, 1, 4])
@each_case("alpha", [0.01, 0.2, 0.9])
@each_case("opt", [None, 0.0, 0.02, 0.7])
def test_sample_size_is_the_best_exponent_of_the_worst_difference(neighbors, epsilon, alpha, opt):
    """Against a grid over t of -ln E exp(-t Z) for Z = 1, -1 or 0 and the worst chance of -1."""
    most = epsilon if neighbors == "add_remove" else epsilon / 2
    low = (1 - alpha) / 2 if opt is None else min(opt, (1 - alpha) / 2)
    t = np.linspace(0, most, 20_001)[1:]
    mean = low * np.exp(t) + (low + alpha) * np.exp(-t) + 1 - 2 * low - alpha
    want = math.log(99 / 0.05) / np.max(-np.log(mean))
    learner = of_size(100, neighbors=neighbors)
    got = learner.sample_size(alpha, 0.05, epsilon, agnostic=opt is None, opt=opt or 0)
    assert want * (1 - 1e-6) <= got <= want * (1 + 1e-6) + 1


def test_the_realizable_sample_size_is_enough():
    """Failures of a class of which one hypothesis is right, at most beta by an exact union."""
    hypotheses = Parities(np.eye(50, dtype=np.uint8))
    learner = ExponentialLearner(hypotheses, epsilon=1)
    n = learner.sample_size(0.1, 0.05, agnostic=False)
    coins, failures = np.random.default_rng(11), 0
    for _ in range(400):
        y = coins.integers(0, 2, n, dtype=np.uint8)
        X = y[:, None] ^ (coins.random((n, 50)) < 0.1001).astype(np.uint8)
        X[:, 0] = y
        failures += learner.learn(X, y, random_state=coins).index != 0
    # 20 expected at most; 45 would have a chance of 2e-7.
    assert failures < 45


def test_sample_sizes_beyond_any_data_are_refused():
    for call in HUNDRED.sample_size, HUNDRED.paper_sample_size:
        with pytest.raises(ParameterError, match=r"2\*\*62"):
            call(1e-12, 0.05, 1e-9)


# Finite domains -----------------------------------------------------------------------------------

LINE = np.arange(12.0)[:, None]


def thresholds(count):
    """Half-lines that begin anywhere between the points, many of them the same on the domain."""
    return Halfspaces(np.ones((count, 1)), -np.linspace(-1, 12, count))


def intervals():
    """Conjunctions of two half-lines, and the domain in the bits that they are made of."""
    points = cut(LINE, [LINE[1:, 0] - 0.5])
    return points, Conjunctions(points.shape[1], 2)


def test_labelings_are_those_of_the_domain_once_each():
    points, pairs = intervals()
    for domain, hypotheses, vc in (LINE, thresholds(500), 1), (points, pairs, 2):
        every = {tuple(hypotheses.predict(i, domain).tolist()) for i in range(len(hypotheses))}
        labelings = Labelings(domain, hypotheses)
        found = [tuple(labelings.predict(i, domain).tolist()) for i in range(len(labelings))]
        assert sorted(found) == sorted(every)
        assert len(found) == learners.sauer_bound(12, vc) < len(hypotheses)


@pytest.mark.parametrize("pickled", [False, True])
def test_labelings_are_a_class_like_others(pickled):
    points, pairs = intervals()
    labelings = Labelings(points, pairs)
    if pickled:
        labelings = pickle.loads(pickle.dumps(labelings))
    assert labelings.d == pairs.d
    rows = seeded(7).integers(0, 12, 300)
    X, y = points[rows], ((rows >= 3) & (rows < 8)).astype(np.uint8)
    errors = labelings.errors(X, y)
    assert errors.tolist() == plain_errors(labelings, X, y)
    assert [labelings.index(each) for each in labelings] == list(range(len(labelings)))
    dropped = next(each for i, each in enumerate(pairs) if i not in labelings.indices)
    with pytest.raises(ParameterError, match="none such"):
        labelings.index(dropped)
    learner = ExponentialLearner(labelings, epsilon=1e6)
    learned = learner.learn(learner.prepare(X), y)
    assert learned.predict(X).tolist() == y.tolist()
    assert learner.restore(learned.hypothesis).index == learned.index


def test_the_sample_size_follows_the_labelings_and_not_the_class():
    small, large = (Labelings(LINE, thresholds(count)) for count in (50, 5_000))
    sizes = [
        ExponentialLearner(each, epsilon=1.0).sample_size(0.1, 0.05) for each in (small, large)
    ]
    assert (
        sizes[0]
        == sizes[1]
        < ExponentialLearner(thresholds(5_000), epsilon=1.0).sample_size(0.1, 0.05)
    )
    settings = {"alpha": 0.1, "beta": 0.05, "epsilon": 1}
    assert learners.vc_sample_size(1, 12, **settings) == sizes[0]
    assert learners.vc_sample_size(1, 99, **settings) == 1511
    assert learners.vc_sample_size(1, 99, agnostic=False, **settings) == 190
    assert learners.vc_sample_size(0, 99, **settings) == 0
    assert learners.vc_sample_size(900, 10**15, **settings) > 10**5


def test_a_huge_epsilon_needs_as_few_records_as_no_privacy():
    """ln(99 / beta) / -ln(1 - alpha): each record refutes a bad hypothesis with chance alpha."""
    want = math.ceil(math.log(99 / 0.05) / -math.log(0.9))
    assert HUNDRED.sample_size(0.1, 0.05, 1e9, agnostic=False) == want


def test_vc_sample_size_refuses_what_the_learner_does():
    settings = {"vc": 1, "domain": 9, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0}
    bad = {"vc": -1, "domain": 0, "alpha": 0, "beta": 1, "epsilon": 0}
    for name, value in {**bad, "opt": 1, "agnostic": 2, "neighbors": "local"}.items():
        with pytest.raises(ParameterError, match=name):
            learners.vc_sample_size(**{**settings, name: value})


def test_sauer_bounds():
    assert [learners.sauer_bound(5, vc) for vc in range(7)] == [1, 6, 16, 26, 31, 32, 32]
    assert learners.sauer_bound(10**12, 1) == 10**12 + 1


def test_no_domain_is_refused():
    for bad, error in (
        ((LINE[:0], thresholds(3)), ParameterError),
        ((LINE, None), ParameterError),
        ((np.ones((3, 2)), thresholds(3)), ShapeError),
    ):
        with pytest.raises(error):
            Labelings(*bad)
    for bad in (0, 1), (3, -1), (3, 1_001), (2.5, 1):
        with pytest.raises(ParameterError, match=r"domain|vc"):
            learners.sauer_bound(*bad)


class TestDraws:
    """Rows of packed records by their indices."""

    @pytest.mark.parametrize("d", [1, 64, 65, 130])
    def test_take_is_indexing(self, d):
        rng = np.random.default_rng(d)
        X = rng.integers(0, 2, (1000, d), dtype=np.uint8)
        y = rng.integers(0, 2, 1000, dtype=np.uint8)
        indices = rng.integers(0, 1000, 5000)
        stumps = Stumps(d)
        drawn = Features(X)._take(indices)
        assert drawn.shape == (5000, d)
        expected = stumps.errors(X[indices], y[indices])
        assert np.array_equal(stumps.errors(drawn, y[indices]), expected)
        again = drawn._take(np.arange(7)[::-1].copy())
        assert np.array_equal(stumps.predict(1, again), X[indices][6::-1, 0])
        learner = ExponentialLearner(stumps, epsilon=1.0)
        some = learner.learn_indices(learner.prepare(X), y, indices, random_state=1)
        assert some.index == learner.learn(X[indices], y[indices], random_state=1).index

    @pytest.mark.parametrize("wrong", [-1, 10])
    def test_other_rows_there_are_none(self, wrong):
        with pytest.raises(ParameterError, match=f"indices = {wrong}"):
            Features(np.zeros((10, 3), np.uint8))._take(np.array([0, wrong]))

    @pytest.mark.parametrize(
        ("wrong", "kind"),
        [
            ([0.0], ParameterError),
            ([float("nan")], ParameterError),
            ([10], ParameterError),
            ([-1], ParameterError),
            ([], ShapeError),
            ([[0, 1]], ShapeError),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("prepared", [True, False])
    def test_indices_of_another_kind(self, wrong, kind, prepared):
        X, y = np.zeros((10, 3), np.uint8), np.zeros(10, np.uint8)
        learner = ExponentialLearner(Stumps(3), epsilon=1.0)
        records = learner.prepare(X) if prepared else X
        with pytest.raises(kind, match="indices"):
            learner.learn_indices(records, y, wrong)
        with pytest.raises(ShapeError, match="y has shape"):
            learner.learn_indices(records, y[:5], [0])
        assert learner.learn_indices(records, y, np.arange(10)[::3]).record


@pytest.mark.parametrize(
    "learner",
    [
        ExponentialLearner(Stumps(3), epsilon=2, neighbors="add_remove"),
        learners.DoublingLearner(
            [Conjunctions(3, k) for k in (0, 1)], alpha=0.1, beta=0.1, epsilon=1
        ),
        learners.PrivateSGD(loss="squared", steps=3, label_bound=2, l2=0.5, noise_multiplier=8),
        learners.LinearSeparator(cost=2, margin=None),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_clone_has_the_same_parameters(learner):
    from sklearn.base import clone

    again = clone(learner)
    assert again is not learner
    assert set(again.get_params()) == set(inspect.signature(type(learner)).parameters)
    assert repr(again) == repr(learner)
