"""Public maps to features: norms, signs, and that a row's features depend on that row alone."""

import itertools
import json
import math

import numpy as np
import pytest
from cases import each_case

from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import FeatureMap

COINS = np.random.default_rng(5)
POOL = COINS.normal(size=(200, 5)) @ COINS.normal(size=(5, 5)) + 1
BOUNDS = np.array([[-1.0, 1.0], [0.0, 3.0], [-5.0, 5.0], [2.0, 2.5], [-1e6, 1e6]])
SCALING = FeatureMap.scaling(BOUNDS, constant=False)


def shrink(row):
    return row.astype(float) / 10


def make_maps(constant):
    options = {"constant": constant}
    return {
        "identity": FeatureMap.identity(5, norm_bound=3.0, **options),
        "scaling": FeatureMap.scaling(BOUNDS, **options),
        "scaling to a smaller norm": FeatureMap.scaling(BOUNDS, norm_bound=0.7, **options),
        "whitening": FeatureMap.whitening(POOL, power=1.0, **options),
        "scaling and whitening": FeatureMap.whitening(POOL, after=SCALING, **options),
        "pca": FeatureMap.pca(POOL, 3, **options),
        "fourier": FeatureMap.random_fourier(5, 12, scale=2.0, seed=1, **options),
        "whitened fourier": FeatureMap.random_fourier(
            5, 6, scale=1.0, seed=1, after=FeatureMap.whitening(POOL, components=2), **options
        ),
        "function": FeatureMap.from_callable(shrink, 5, **options),
    }


MAPS = {
    f"{name}{', constant' if constant else ''}": features
    for constant in (False, True)
    for name, features in make_maps(constant).items()
}

# Rows whose squares overflow, or are no normal numbers, and rows beyond all bounds.
HARD = np.array(
    [
        np.full(5, 1e308), np.full(5, -1e308), np.full(5, 5e-324), np.zeros(5),
        [1e200, -1e200, 1e-200, 0, 1], [1, 1, 1, 1, 1], [-1, -1, -1, -1, -1],
        [0.6, 0.8, 0, 0, 0], [1e154, 0, 0, 0, 0], np.full(5, 1e-160),
    ]
)  # fmt: skip


@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
def test_no_row_is_longer_than_1_and_products_keep_their_promise(features):
    rows = np.concatenate([HARD, -HARD, POOL, -POOL, 100 * POOL])
    values = features(rows)
    assert not np.signbit(values[values == 0]).any()  # what is so little has lost its sign
    integers = [[int(x) for x in row * 2**26] for row in values]
    assert all(x % 1 == 0 for x in (values * 2**26).flat)
    assert all(sum(q * q for q in row) <= 4**26 for row in integers)
    products = [
        sum(a * b for a, b in zip(p, q, strict=True))
        for p, q in itertools.combinations(integers[:200], 2)
    ]
    if features.nonnegative_products:
        assert min(products) >= 0
    else:
        assert min(products) < 0  # nothing better could be said of these rows


def test_nonnegative_products_are_seen():
    nonnegative = {name for name, features in MAPS.items() if features.nonnegative_products}
    without = {"scaling", "scaling to a smaller norm"}
    assert nonnegative == without | {name for name in MAPS if name.endswith("constant")}
    positive = FeatureMap(
        origin=[0, 0], factor=[1, 1], bounds=[[0, math.inf]] * 2, matrix=[[1], [0.5]], offset=[0.2]
    )
    assert positive.nonnegative_products
    assert positive([[1e5, 0]]).item() > 0.99
    signed = FeatureMap(origin=[0], factor=[1], bounds=[[-0.1, 1]])
    assert not signed.nonnegative_products


@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
def test_a_row_gives_the_same_bits_in_any_company(features, monkeypatch):
    rows = np.concatenate([HARD.clip(-3e38, 3e38), np.tile(POOL, (10, 1))]).astype(np.float32)
    expected = features(rows[:10].astype(np.float64)), features(rows)
    assert (expected[0] == expected[1][:10]).all()
    wide = np.zeros((2 * len(rows), 10))
    wide[::2, ::2] = rows
    orders = (np.asfortranarray(rows), wide[::2, ::2], rows.astype(np.float64))
    for same in orders:
        assert (features(same) == expected[1]).all()
    order = COINS.permutation(len(rows))
    assert (features(rows[order]) == expected[1][order]).all()
    for part in np.array_split(np.arange(len(rows)), [1, 2, 9, 300, 437, 1500]):
        assert (features(rows[part]) == expected[1][part]).all()
    for name, value in {"HDP_FAST_NUM_THREADS": "3", "HDP_FAST_ISA": "portable"}.items():
        monkeypatch.setenv(name, value)
        assert (features(rows) == expected[1]).all()


def test_scaling_is_what_it_says():
    features = FeatureMap.scaling([(0, 10), (-1, 1)], constant=False)
    values = features([[5, 0], [20, -3], [10, 1]])
    assert np.allclose(values * math.sqrt(2), [[0.5, 0.5], [1, 0], [1, 1]], atol=1e-6)


def test_a_schema_counts_its_columns():
    columns = {"sex": Category(("f", "m")), "a=b": Category(("x", "y", "z")), "age": Number(0, 9)}
    features = FeatureMap.scaling(Schema(Label("y", above=0), columns), constant=False)
    assert features.columns == 6
    longest = features([[1, 0, 0, 1, 0, 1]])
    assert np.isclose(np.linalg.norm(longest), 1, atol=1e-6)


def test_whitening_and_components_are_those_of_the_pool():
    whitened = FeatureMap.whitening(POOL, power=1.0, quantile=0.999)(POOL)
    moments = whitened.T @ whitened
    assert np.allclose(moments, moments[0, 0] * np.eye(5), atol=0.02 * moments[0, 0])
    untouched = FeatureMap.whitening(POOL, power=0.0)(POOL)
    ratios = untouched / POOL
    assert np.allclose(ratios, ratios[:, :1], atol=1e-5)
    centered = POOL - POOL.mean(axis=0)
    _, _, directions = np.linalg.svd(centered)
    components = FeatureMap.pca(POOL, 2, quantile=0.999, constant=False)(POOL)
    expected = centered @ directions[:2].T
    scale = np.abs(components).max() / np.abs(expected).max()
    assert np.allclose(np.abs(components), np.abs(expected) * scale, atol=1e-2)


def test_a_map_after_a_map_sees_clipped_records():
    after = FeatureMap.whitening(POOL, after=SCALING)
    inside = POOL.clip(*BOUNDS.T)
    assert (after(POOL) == after(inside)).all()
    assert not np.allclose(FeatureMap.whitening(POOL)(POOL), FeatureMap.whitening(POOL)(inside))


def test_fourier_features_have_norm_1_and_the_products_of_a_kernel():
    features = FeatureMap.random_fourier(5, 8000, scale=3.0, seed=2)
    values = features(POOL[:10])
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5)
    distances = ((POOL[:10, None] - POOL[:10]) ** 2).sum(axis=2)
    assert np.abs(values @ values.T - np.exp(-distances / 18)).max() < 0.08


@pytest.mark.parametrize("name", [name for name in MAPS if not name.startswith("function")])
def test_maps_are_written_and_read(name, tmp_path):
    features = MAPS[name]
    text = features.to_json()
    json.loads(text, parse_constant=pytest.fail)
    np.savez(tmp_path / "map.npz", **features.to_arrays())
    with np.load(tmp_path / "map.npz", allow_pickle=False) as arrays:
        copies = [FeatureMap.from_json(text), FeatureMap.from_arrays(arrays)]
    for copy in copies:
        assert copy == features
        assert hash(copy) == hash(features)
        assert (copy(POOL) == features(POOL)).all()
    others = [other for other in MAPS.values() if other is not features]
    assert all(features != other for other in others)


def test_what_is_no_map_is_refused():
    for text in ("", "{}", '{"format": "other"}', SCALING.to_json().replace("1.0", "null")):
        with pytest.raises(ParameterError):
            FeatureMap.from_json(text)
    with pytest.raises(ParameterError, match="function"):
        MAPS["function"].to_json()
    with pytest.raises(ParameterError, match="to_arrays"):
        FeatureMap.from_arrays({"origin": np.zeros(2)})


BAD = {
    "shape of bounds": (lambda: FeatureMap.scaling([1, 2]), ShapeError),
    "bounds in disorder": (lambda: FeatureMap.scaling([(1, 1)]), ParameterError),
    "infinite bounds": (lambda: FeatureMap.scaling([(0, math.inf)]), ParameterError),
    "power": (lambda: FeatureMap.whitening(POOL, power=2), ParameterError),
    "components": (lambda: FeatureMap.pca(POOL, 6), ParameterError),
    "a pool of one point": (lambda: FeatureMap.pca(np.ones((9, 2)), 1), ParameterError),
    "a pool of nothing": (lambda: FeatureMap.whitening(np.zeros((9, 2))), ParameterError),
    "a huge pool": (lambda: FeatureMap.whitening(np.full((9, 2), 1e200)), ParameterError),
    "a pool with NaN": (lambda: FeatureMap.whitening([[math.nan]]), ParameterError),
    "odd columns": (lambda: FeatureMap.random_fourier(2, 3, scale=1, seed=0), ParameterError),
    "scale": (lambda: FeatureMap.random_fourier(2, 4, scale=0, seed=0), ParameterError),
    "no function": (lambda: FeatureMap.from_callable(3, 2), ParameterError),
    "after waves": (lambda: FeatureMap.whitening(POOL, after=MAPS["fourier"]), ParameterError),
    "after other columns": (lambda: FeatureMap.pca(POOL[:, :4], 1, after=SCALING), ShapeError),
    "negative factor": (lambda: FeatureMap(origin=[0], factor=[-1]), ParameterError),
    "columns of X": (lambda: SCALING(np.zeros((3, 4))), ShapeError),
    "NaN without bounds": (lambda: FeatureMap.pca(POOL, 2)([[math.nan] * 5]), ParameterError),
    "X is a vector": (lambda: MAPS["function"](np.zeros(5)), ShapeError),
}


@each_case(("call", "error"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused(call, error):
    with pytest.raises(error):
        call()


def test_a_function_sees_one_record_at_a_time_and_fails_in_silence(capfd, recwarn):
    seen = []

    def moody(row):
        seen.append(row.shape)
        assert not row.flags.writeable
        print(row)
        value = row[0, 0]
        if value == 1:
            raise SystemExit
        return {
            2: [1.0], 3: "text", 4: [math.inf, 0], 5: [[0.1, 0.2]], 6: None, 7: [1j, 0],
            8: np.log([-1.0, 0.0]), 9: [1e200, 1e200],
        }.get(int(value), [0.25, 0.5])  # fmt: skip

    features = FeatureMap.from_callable(moody, 2, constant=True)
    values = features(np.arange(10)[:, None])
    assert set(seen) == {(1, 1)}
    assert (values[[1, 2, 3, 4, 6, 7, 8, 9]] == 0).all()
    assert np.allclose(values[0] * math.sqrt(2), [0.25, 0.5, 1], atol=1e-6)
    assert np.allclose(values[5] * math.sqrt(2), [0.1, 0.2, 1], atol=1e-6)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_an_interrupt_in_a_function_is_heard():
    def interrupted(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FeatureMap.from_callable(interrupted, 1)([[1.0]])
