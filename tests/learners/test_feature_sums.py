"""Exact sums of features (a module that is not public): equal to those of Python's integers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import FeatureMap
from hdp_fast.learners.statistics_features import bits_for, check_bits, feature_sums, target_sums

COINS = np.random.default_rng(6)


def integers_of(x, bits):
    """The integer features of one row of exact numbers, by the definition and without floats.

    None where the row is so near to the unit norm that rounding decides.
    """
    squared = sum(a * a for a in x)
    longest = 1 - Fraction(1, 2**40)
    if squared <= longest**2:
        return [int(a * 2**bits) for a in x]
    scaled = []
    for a in x:
        exact = Fraction(math.isqrt(int(a * a / squared * 4 ** (bits + 80))), 2**80) * longest
        near = exact - int(exact)
        if a and min(near, 1 - near) < Fraction(1, 2**20):
            return None
        scaled.append(int(exact) * (1 if a > 0 else -1))
    return scaled


@pytest.mark.parametrize("bits", [1, 2, 5, 12])
def test_tiny_data_sets_give_the_sums_of_exact_fractions(bits):
    features = FeatureMap.identity(2)
    values = [Fraction(a, 16) for a in (-33, -16, -5, 0, 3, 14, 40)]
    rows = {
        (a, b): integers_of((a, b), bits)
        for a, b in itertools.product(values, repeat=2)
        if integers_of((a, b), bits) is not None
    }
    assert len(rows) > 20
    for pair in itertools.combinations(rows, 2):
        X = np.array(pair, float)
        q = [rows[row] for row in pair]
        for codes in ([0, 1], [1, 1]):
            sums = feature_sums(features, X, codes, 3, bits=bits, second=True)
            for c in range(3):
                expected = [sum(q[i][j] for i in range(2) if codes[i] == c) for j in range(2)]
                assert sums.by_class[c].tolist() == expected
            moments = [[sum(r[j] * r[k] for r in q) for k in range(2)] for j in range(2)]
            assert sums.moments.tolist() == moments
            assert sums.counts.tolist() == [codes.count(c) for c in range(3)]
        targets = [Fraction(3, 8), Fraction(-5, 3)]
        t = [int(Fraction(3, 8) * 2**bits), -(2**bits)]
        cross = [sum(t[i] * q[i][j] for i in range(2)) for j in range(2)]
        sums = target_sums(features, X, np.array(targets, float), bits=bits, second=False)
        assert sums.cross.tolist() == cross
        assert sums.moments is None


def make_maps(d):
    pool = COINS.normal(size=(300, d))
    return [
        FeatureMap.identity(d, norm_bound=math.sqrt(d)),
        FeatureMap.scaling(np.tile([-1, 1], (d, 1))),
        FeatureMap.whitening(pool, constant=True),
        FeatureMap.random_fourier(d, 2 * d, scale=math.sqrt(d), seed=0),
    ]


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize("d", [1, 3, 8, 17, 130])
@pytest.mark.parametrize("bits", [4, 21, 24, 26])
def test_sums_are_those_of_the_features(d, bits):
    n, classes = 700, 3
    X, codes = COINS.normal(size=(n, d)), COINS.integers(0, classes, n)
    targets = COINS.uniform(-1.2, 1.2, n)
    t = np.trunc(targets.clip(-1, 1) * 2**bits).astype(np.int64)
    for features in make_maps(d):
        sums = feature_sums(features, X, codes, classes, bits=bits, second=True)
        # The features themselves are in units of 2**-26; each row alone gives them in others. No
        # sum leaves int64, since n * 4**26 is below 2**62.
        rows = np.concatenate(
            [
                feature_sums(features, row[None], [0], 1, bits=bits, second=False).by_class
                for row in X
            ]
        )
        assert (np.abs(rows / 2**bits - features(X)) <= 2 * 2.0**-bits).all()
        assert ((rows * rows).sum(axis=1) <= 4**bits).all()
        for c in range(classes):
            assert (sums.by_class[c] == rows[codes == c].sum(axis=0)).all()
        assert (sums.moments == rows.T @ rows).all()
        assert (sums.counts == np.bincount(codes, minlength=classes)).all()
        assert (target_sums(features, X, targets, bits=bits, second=True).cross == t @ rows).all()


def test_sums_depend_on_nothing_but_the_records(monkeypatch):
    n, d = 3000, 30
    X, codes = COINS.normal(size=(n, d)).astype(np.float32), COINS.integers(0, 4, n)

    def sums(features, rows, codes):
        result = feature_sums(features, rows, codes, 4, bits=20, second=True)
        return np.concatenate([part.ravel() for part in result])

    for features in make_maps(d):
        expected = sums(features, X, codes)
        order = COINS.permutation(n)
        for rows in (np.asfortranarray(X), X.astype(np.float64), np.repeat(X, 2, axis=1)[:, ::2]):
            assert (sums(features, rows, codes) == expected).all()
        assert (sums(features, X[order], codes[order]) == expected).all()
        parts = np.array_split(order, np.sort(COINS.integers(1, n, 5)))
        split = [sums(features, X[part], codes[part]) for part in parts if len(part)]
        assert (np.sum(split, axis=0) == expected).all()
        for threads, isa in (("1", "portable"), ("1", "avx2"), ("3", "portable"), ("4", "avx2")):
            monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
            monkeypatch.setenv("HDP_FAST_ISA", isa)
            assert (sums(features, X, codes) == expected).all()


def test_a_changed_record_moves_the_sums_by_no_more_than_its_norm():
    """The sensitivity that noise is made for, in integers, at and beyond the bounds."""
    hard = np.array([[1e308, 1], [5e-324, 0], [0.6, 0.8], [3, -4], [-1e160, 1e160], [1, 0]])
    bits = 20
    for constant in (False, True):
        features = FeatureMap.identity(2, constant=constant)
        base = np.array([[0.3, 0.2], [0.1, -0.5]])
        longest = 0
        for a, b in itertools.product(hard, repeat=2):
            both = [
                feature_sums(features, [*base, row], [0, 1, 1], 2, bits=bits, second=True)
                for row in (a, b)
            ]
            change = [int(x) for x in (both[0].by_class - both[1].by_class).flat]
            moved = sum(x * x for x in change)
            second = sum(int(x) ** 2 for x in (both[0].moments - both[1].moments).flat)
            assert moved <= (2 if constant else 4) * 4**bits
            assert second <= 2 * 16**bits
            longest = max(longest, moved / 4**bits)
        assert longest > (0.9 if constant else 1.9)


def test_neither_the_nearest_integers_nor_products_of_numpy_would_do():
    """What the checks above would find in two simpler ways."""
    rows = COINS.normal(size=(1000, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = np.rint(rows * 16)
    assert ((nearest**2).sum(axis=1) > 16**2).any()
    assert ((np.trunc(rows * 16) ** 2).sum(axis=1) <= 16**2).all()
    X, matrix = COINS.normal(size=(300, 784)), COINS.normal(size=(784, 64)) / 30
    alone = np.concatenate([row[None] @ matrix for row in X])
    assert (alone != X @ matrix).any()
    features = FeatureMap(origin=np.zeros(784), factor=np.ones(784), matrix=matrix)
    together = feature_sums(features, X, np.arange(300), 300, bits=26, second=False).by_class
    apart = [feature_sums(features, row[None], [0], 1, bits=26, second=False)[0] for row in X]
    assert (together == np.concatenate(apart)).all()


def test_targets_are_clipped():
    features = FeatureMap.identity(1)
    X = [[0.5], [0.5], [0.5]]
    assert target_sums(features, X, [9.0, -1e300, 0.26], bits=2, second=True).cross == [2 * 1]
    with pytest.raises(ParameterError, match="targets"):
        target_sums(features, X, [0, 0, math.nan], bits=2, second=True)
    with pytest.raises(ShapeError, match="targets"):
        target_sums(features, X, [0, 0], bits=2, second=True)


def test_bits_are_the_most_that_fit():
    assert bits_for(1) == bits_for(2**14) == 24
    assert bits_for(10**6) == 21
    for n in (1, 3, 2**14 + 1, 10**6, 2**40, 2**59):
        assert n * 4 ** bits_for(n) <= 2**62
        assert bits_for(n) == 24 or n * 4 ** (bits_for(n) + 1) > 2**62
    assert check_bits(26, 1024) == 26
    for bits, n in ((26, 1025), (0, 5), (27, 5), (2.5, 5)):
        with pytest.raises(ParameterError, match="bits"):
            check_bits(bits, n)


def test_bad_codes_are_refused():
    features = FeatureMap.identity(1)
    for codes, error in (([0, 2], ParameterError), ([0, -1], ParameterError), ([0], ShapeError)):
        with pytest.raises(error, match="codes"):
            feature_sums(features, [[0.1], [0.2]], codes, 2, bits=4, second=False)
    with pytest.raises(ParameterError, match="bits"):
        feature_sums(features, np.zeros((2000, 1)), np.zeros(2000, int), 1, bits=26, second=False)
