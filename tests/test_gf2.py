"""The compiled GF(2) kernels against numpy and brute force; every layout they accept."""

import contextlib
import copy
import functools
import itertools
import multiprocessing
import operator
import pickle
import warnings

import joblib
import numpy as np
import pytest
from calls import CALLS
from cases import each_case
from lengths import at_length

from hdp_fast import _core, gf2
from hdp_fast._support import random_state
from hdp_fast.data import Chunks
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.reference import gf2 as reference

ARMS = ["portable", "avx2", "gfni256", "gfni"]
SIZES = [0, 1, 63, 64, 65, 127, 128, 129]


@pytest.fixture(params=ARMS)
def arm(request, monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", request.param)
    return request.param


def bits(rng, *shape):
    return rng.integers(2, size=shape, dtype=np.uint8)


def product(A, B):
    return (A.astype(np.float32) @ B.astype(np.float32) % 2).astype(np.uint8)


def low_rank(rng, m, d, dimension):
    return product(bits(rng, m, dimension), bits(rng, dimension, d))


def solvable(rng, A):
    return A, product(A, bits(rng, A.shape[1]))


def flipped(b, i):
    b = b.copy()
    b[i] ^= 1
    return b


def contradicted(A, b):
    """The same system; where it has rows, its last one repeats the first with another label."""
    A, b = A.copy(), b.copy()
    A[-1:], b[-1:] = A[:1], 1 - b[:1]
    return A, b


SYSTEMS = {
    "random": lambda rng, m, d: (bits(rng, m, d), bits(rng, m)),
    "solvable": lambda rng, m, d: solvable(rng, bits(rng, m, d)),
    "deficient": lambda rng, m, d: solvable(rng, low_rank(rng, m, d, min(m, d) // 3)),
    "duplicated": lambda rng, m, d: solvable(rng, np.repeat(bits(rng, m, d), 3, axis=0)[:m]),
    "contradicted": lambda rng, m, d: contradicted(*solvable(rng, bits(rng, m, d))),
    "deficient and contradicted": lambda rng, m, d: contradicted(
        *solvable(rng, low_rank(rng, m, d, min(m, d) // 2))
    ),
    "zero": lambda rng, m, d: (np.zeros((m, d), np.uint8), np.zeros(m, np.uint8)),
    "zero, not solvable": lambda rng, m, d: (np.zeros((m, d), np.uint8), np.ones(m, np.uint8)),
    "sparse": lambda rng, m, d: solvable(
        rng, (rng.random((m, d)) < 1.5 / (d + 1)).astype(np.uint8)
    ),
}


@functools.cache
def case(kind, m, d):
    A, b = SYSTEMS[kind](np.random.default_rng([m, d, len(kind)]), m, d)
    return A, b, reference.solve(reference.pack(A), d, b)


def check_nullspace(A, basis, nullity):
    d = A.shape[1]
    assert basis.shape == (nullity, d)
    assert not product(A, basis.T).any()
    assert reference.rank(reference.pack(basis), d) == nullity


def check(A, b, expected, **options):
    """Everything that is said of a system; numpy's free columns are the leftmost too."""
    solution = gf2.solve(A, b, **options)
    assert solution.consistent is expected.consistent
    assert (solution.rank, solution.nullity) == (expected.rank, expected.nullity)
    assert gf2.rank(A, **options) == expected.rank
    check_nullspace(A, solution.nullspace(), expected.nullity)
    assert np.array_equal(solution.nullspace(), expected.nullspace)
    if expected.consistent:
        assert np.array_equal(solution.x, expected.x)
        assert np.array_equal(gf2.dot(A, solution.x, **options), b)
        assert np.array_equal(product(A, solution.sample()), b)
    else:
        assert solution.x is None
        assert solution.sample() is None


@pytest.mark.thorough(cases=9)
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.usefixtures("arm")
def test_solve_agrees_with_the_numpy_twin(kind):
    for m in SIZES:
        for d in SIZES:
            check(*case(kind, m, d), threads=1)


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_solutions_are_exactly_those_found_by_trying_all(d):
    rng = np.random.default_rng(d)
    weights = 1 << np.arange(d)
    for m in range(12):
        A = low_rank(rng, m, d, max(1, d - 1))
        for b in (product(A, bits(rng, d)), bits(rng, m)):
            solution = gf2.solve(A, b)
            all_of_them = reference.enumerate_solutions(reference.pack(A), d, b)
            assert solution.consistent is bool(all_of_them)
            if solution.consistent:
                free = (np.arange(2**solution.nullity)[:, None] >> np.arange(solution.nullity)) & 1
                mine = (solution.x + free @ solution.nullspace()) % 2 @ weights
                assert sorted(mine.tolist()) == all_of_them


HIDDEN = {
    "first": 0,
    "middle": 1501,
    "last": 2999,
    "all odd": slice(1, None, 2),
    "last thousand": slice(2000, None),
}


@functools.cache
def tall(d, where, label):
    """3,000 rows in a subspace but for the hidden ones; the labels fit, or not in a hidden row."""
    rng = np.random.default_rng([d, len(where)])
    A = low_rank(rng, 3000, d, d // 3)
    A[HIDDEN[where]] = bits(rng, *A[HIDDEN[where]].shape)
    A, b = solvable(rng, A)
    b[HIDDEN[where]] ^= label
    return A, b, reference.solve(reference.pack(A), d, b)


@pytest.mark.parametrize("label", [0, 1], ids=["fits", "flipped"])
@pytest.mark.parametrize("where", HIDDEN)
@pytest.mark.usefixtures("arm")
def test_no_row_of_a_tall_system_is_overlooked(where, label):
    for d in (65, 200):
        check(*tall(d, where, label), threads=1)


def test_one_contradiction_among_many_rows_is_found():
    rng = np.random.default_rng(3)
    A, b = solvable(rng, bits(rng, 3000, 65))
    for i in (0, 1, 63, 64, 1499, 2998, 2999):
        assert not gf2.solve(A, flipped(b, i)).consistent, i
    assert gf2.solve(A, b).consistent


@functools.cache
def large(m, d):
    """Work enough to be handed to the pool; the first 100 rows come again as the last."""
    rng = np.random.default_rng([m, d])
    A, b = solvable(rng, bits(rng, m, d))
    A[-100:], b[-100:] = A[:100], b[:100]
    return A, b, reference.solve(reference.pack(A), d, b)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [(1900, 1850), (2600, 1700)], ids=str)
@pytest.mark.usefixtures("arm")
def test_threads_do_not_change_a_large_system(size, threads, monkeypatch):
    A, b, expected = large(*size)
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", str(threads))
    assert gf2.rank(A, threads=threads) == expected.rank
    solution = gf2.solve(A, b, threads=threads)
    assert (solution.consistent, solution.rank) == (True, expected.rank)
    assert np.array_equal(solution.x, expected.x)
    assert np.array_equal(solution.nullspace(), expected.nullspace)
    solution = gf2.solve(A, flipped(b, -100), threads=threads)
    assert (solution.consistent, solution.rank, solution.x) == (False, expected.rank, None)
    assert np.array_equal(solution.nullspace(), expected.nullspace)


@pytest.mark.parametrize("threads", [1, 2])
def test_rank_of_a_matrix_that_even_one_thread_hands_to_the_pool(threads):
    rng = np.random.default_rng(4)
    packed = np.frombuffer(rng.bytes(4800 * 600), np.uint8).reshape(4800, 600).copy()
    packed[4700:] = packed[:100]
    expected = reference.rank(packed.view(np.uint64), 4800)
    assert expected <= 4700
    assert gf2.rank(gf2.BitMatrix.from_packed(packed, 4800), threads=threads) == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_dot_is_the_product(threads):
    rng = np.random.default_rng(5)
    for m, d in [(m, d) for m in SIZES for d in SIZES] + [(40_000, 1_800)]:
        rows = np.frombuffer(rng.bytes(m * -(-d // 64) * 8), "<u8").reshape(m, -(-d // 64))
        packed = gf2.BitMatrix.from_packed(rows.view(np.uint8)[:, : -(-d // 8)], d)
        x = bits(rng, d)
        assert np.array_equal(gf2.dot(packed, x, threads=threads), reference.dot(rows, d, x))


def test_results_are_plain_uint8_arrays():
    solution = gf2.solve([[1, 0, 1]], [1])
    for value in (solution.x, solution.sample(), solution.nullspace(), gf2.dot([[1, 0]], [1, 1])):
        assert value.dtype == np.uint8
        assert value.flags.writeable
    assert "rank 1" in repr(solution)
    assert "2**2" in repr(solution)
    assert "inconsistent" in repr(gf2.solve([[0]], [1]))


# Quantile of chi-squared with 7 degrees of freedom that is passed with probability 1e-6.
CHI2_7 = 40.53


def test_sample_is_uniform_on_the_solutions():
    solution = gf2.solve([[1, 1, 0, 0, 1], [0, 1, 1, 0, 0]], [1, 0])
    coins, draws = np.random.default_rng(6), 8000
    codes = [int(solution.sample(coins) @ (1 << np.arange(5))) for _ in range(draws)]
    values, counts = np.unique(codes, return_counts=True)
    assert values.size == 8
    assert ((counts - draws / 8) ** 2).sum() / (draws / 8) < CHI2_7


@pytest.mark.usefixtures("arm")
def test_seeded_samples_repeat_whatever_the_threads(monkeypatch):
    A, b, _ = large(1900, 1850)
    drawn = []
    for threads in (1, 2):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", str(threads))
        drawn += [gf2.solve(A, b).sample(random_state=7).tolist() for _ in range(2)]
    assert all(one == drawn[0] for one in drawn)
    assert np.array_equal(product(A, np.array(drawn[0])), b)


@pytest.mark.entropy
def test_unseeded_samples_and_advancing_generators_differ():
    """Two samples of 200 bits are equal with probability below 1e-58."""
    solution = gf2.solve(np.zeros((1, 200), np.uint8), [0])
    coins = np.random.default_rng(8)
    drawn = [solution.sample() for _ in range(2)] + [solution.sample(coins) for _ in range(2)]
    drawn += [solution.sample(seed) for seed in (1, 2)]
    assert len({x.tobytes() for x in drawn}) == 6


# Packing ------------------------------------------------------------------------------------------

DTYPES = [np.bool_] + [
    f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)
]


def field_of_packed_records(X):
    records = np.zeros(X.shape, dtype=[("pad", "u1"), ("x", X.dtype)])
    records["x"] = X
    assert X.itemsize == 1 or not records["x"].flags.aligned
    return records["x"]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "transposed": lambda X: X.T,
    "every second column": lambda X: X[:, ::2],
    "every second row": lambda X: X[::2],
    "rows reversed": lambda X: X[::-1],
    "columns reversed": lambda X: X[:, ::-1],
    "both reversed, step 2": lambda X: np.asfortranarray(X)[::-2, ::-2],
    "offset": lambda X: X[3:, 5:],
    "one row repeated": lambda X: np.broadcast_to(X[0], X.shape),
    "one column repeated": lambda X: np.broadcast_to(X[:, :1], X.shape),
    "one entry repeated": lambda X: np.broadcast_to(X[0, 0], X.shape),
    "read-only": read_only,
    "unaligned": field_of_packed_records,
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
}


@functools.cache
def sample_of(dtype):
    return bits(np.random.default_rng(9), 300, 200).astype(dtype)


@each_case("layout", LAYOUTS)
@each_case("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).str)
def test_from_dense_packs_any_layout_of_any_integer_dtype(dtype, layout):
    X = LAYOUTS[layout](sample_of(dtype))
    packed = gf2.BitMatrix.from_dense(X)
    assert packed.shape == X.shape
    assert np.array_equal(packed.to_dense(), X)


def test_bool_arrays_whose_bytes_are_no_bits_are_refused():
    X = np.full((3, 70), 2, np.uint8).view(bool)
    with pytest.raises(ParameterError, match="must be 0 or 1"):
        gf2.BitMatrix.from_dense(X)
    with pytest.raises(ParameterError, match="must be 0 or 1"):
        gf2.solve(np.eye(3, dtype=bool), X[:, 0])


@each_case("layout", LAYOUTS)
def test_functions_take_the_same_layouts(layout):
    X = LAYOUTS[layout](sample_of("<i8"))
    x = bits(np.random.default_rng(10), X.shape[1])
    assert gf2.rank(X) == gf2.rank(gf2.BitMatrix.from_dense(X))
    assert np.array_equal(gf2.dot(X, x), product(X, x))
    doubled = np.repeat(x, 2).astype(">i4")[::2]
    assert gf2.solve(X, gf2.dot(X, doubled)).consistent


def test_lists_and_empty_lists_are_arrays_too():
    assert gf2.rank([[1, 1], [1, 0]]) == 2
    assert gf2.rank([[True, True], [False, False]]) == 1
    assert gf2.rank([[]]) == 0
    assert gf2.solve(np.zeros((0, 3)), []).nullity == 3
    assert gf2.solve(np.zeros((2, 0), int), [0, 1]).consistent is False


@each_case("at", [(0, 0), (63, 64), (299, 199)], ids=str)
@each_case("dtype", DTYPES[1:])
def test_from_dense_sees_an_entry_that_is_no_bit_and_tells_neither_place_nor_value(dtype, at):
    info = np.iinfo(dtype)
    for value in {info.min, info.max, 2, info.max // 2 + 1} - {0, 1}:
        for order in "CF":
            X = sample_of(dtype).copy(order)
            X[at] = value
            with pytest.raises(ParameterError) as error:
                gf2.BitMatrix.from_dense(X)
            assert str(error.value) == "X holds something else, but every entry must be 0 or 1"


@pytest.mark.parametrize("d", [0, 1, 7, 8, 9, 63, 64, 65, 128, 200])
def test_from_packed_takes_rows_of_packbits_and_ignores_padding(d):
    X = bits(np.random.default_rng(d), 300, d)
    rows = np.packbits(X, axis=1, bitorder="little")
    rows[:, -1:] |= np.uint8(0xFF << d % 8 & 0xFF) if d % 8 else np.uint8(0)
    for layout in (
        rows,
        np.asfortranarray(rows),
        np.repeat(rows, 2, axis=1)[:, ::2],
        np.repeat(rows, 2, axis=0)[::2],
        rows[::-1, ::-1].copy()[::-1, ::-1],
        read_only(rows),
    ):
        packed = gf2.BitMatrix.from_packed(layout, d)
        assert packed.shape == (300, d)
        assert np.array_equal(packed.to_dense(), X)
        assert gf2.rank(packed) == gf2.rank(X)


def test_bit_matrix_is_sliced_by_rows_and_shown_like_an_array():
    X = bits(np.random.default_rng(11), 130, 70)
    A = gf2.BitMatrix.from_dense(X)
    assert (len(A), A.shape) == (130, (130, 70))
    lines = repr(A).splitlines()
    assert lines[0] == f"BitMatrix(130 x 70 over GF(2), density {X.mean():.4f})"
    assert lines[1] == " ".join(map(str, X[0, :24])) + " ..."
    assert lines[-1] == "..."
    assert repr(A[:0]) == "BitMatrix(0 x 70 over GF(2))"
    for rows in (
        slice(None),
        slice(3, 70),
        slice(-5, None),
        slice(120, 999),
        slice(7, 2),
        slice(None, np.int64(4)),
    ):
        assert np.array_equal(A[rows].to_dense(), X[rows])
        assert len(A[rows]) == len(X[rows])
    assert np.array_equal(np.asarray(A), X)
    assert np.asarray(A).dtype == np.uint8
    assert np.array_equal(np.array(A, dtype=bool), X.astype(bool))


def test_bit_matrix_does_not_follow_its_source():
    X = np.zeros((3, 3), np.uint8)
    A = gf2.BitMatrix.from_dense(X)
    X[:] = 1
    A.to_dense()[:] = 1
    assert gf2.rank(A) == 0


KEYS = {
    "row": 5,
    "last row": np.int64(-1),
    "entry": (64, 65),
    "entries of a row": (3, slice(60, 70)),
    "column": (slice(None), 64),
    "rows by two": slice(None, None, 2),
    "reversed": (slice(None, None, -1), slice(None, None, -3)),
    "window": (slice(3, 129), slice(1, 69)),
    "words": (slice(None), slice(64, 70)),
    "index array": np.array([5, -1, 5, 64]),
    "list": [0, 129],
    "no rows": [],
    "mask": np.arange(130) % 3 == 0,
    "columns": (slice(None), np.array([69, 0, 0])),
    "column mask": (slice(1, 100), np.arange(70) % 2 == 1),
    "row and columns": (7, [3, 2]),
}


@each_case("key", KEYS)
def test_bit_matrix_is_indexed_like_an_array(key):
    X = bits(np.random.default_rng(11), 130, 70)
    A, key = gf2.BitMatrix.from_dense(X), KEYS[key]
    expected, got = X[key], A[key]
    assert isinstance(got, gf2.BitMatrix) == (np.ndim(expected) == 2)
    assert np.array_equal(np.asarray(got), expected)


@pytest.mark.parametrize(
    "key",
    ["a", True, 1.0, None, ..., (0, 0, 0), [0.5], [[0]], np.array([True]), ([0, 1], [0, 1])],
    ids=str,
)
def test_bit_matrix_refuses_any_other_index(key):
    with pytest.raises(ParameterError, match="index is something else"):
        gf2.BitMatrix.identity(2)[key]


def test_indices_out_of_range_end_an_iteration():
    A = gf2.BitMatrix.identity(3)
    for key in (3, -4, (0, 3), [0, 7]):
        with pytest.raises(IndexError, match="out of range: there are 3"):
            A[key]
    assert np.array_equal(np.array(list(A)), np.eye(3))


def test_bit_matrix_is_never_a_view():
    with pytest.raises(ParameterError, match="copy"):
        np.asarray(gf2.BitMatrix.from_dense([[1]]), copy=False)


@pytest.mark.parametrize(("rows", "columns"), [((4, 1), 9), ((4, 2), 8), ((4, 1), 0), ((0, 3), 4)])
def test_from_packed_wants_exactly_the_bytes_of_a_row(rows, columns):
    with pytest.raises(ShapeError, match="rows"):
        gf2.BitMatrix.from_packed(np.zeros(rows, np.uint8), columns)


# Between processes
# ----------------------------------------------------------------------------------


def state_of(thing):
    """All that can be asked of a matrix or a solution."""
    if isinstance(thing, gf2.BitMatrix):
        return thing.shape, thing.to_dense().tolist()
    drawn = thing.sample(3)
    vectors = [None if each is None else each.tolist() for each in (thing.x, drawn)]
    numbers = thing.consistent, thing.rank, thing.nullity
    return type(thing), numbers, vectors, thing.nullspace().tolist()


def pickled(thing, protocol):
    return pickle.loads(pickle.dumps(thing, protocol))


@each_case("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@each_case("shape", [(0, 0), (0, 5), (3, 0), (1, 1), (7, 65), (1601, 9), (3300, 64)])
def test_a_matrix_pickles_with_its_shape(shape, protocol):
    matrix = gf2.BitMatrix.from_dense(bits(np.random.default_rng(5), *shape))
    assert state_of(pickled(matrix, protocol)) == state_of(matrix)
    assert copy.deepcopy(matrix) is copy.copy(matrix) is matrix


def test_a_pickled_matrix_stays_packed():
    matrix = gf2.BitMatrix.from_dense(bits(np.random.default_rng(5), 2_000, 800))
    assert len(pickle.dumps(matrix)) < 2_000 * 100 + 500


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_solution_pickles_with_all_that_it_says(name):
    for size in ((0, 0), (0, 4), (5, 0), (1, 1), (9, 7), (7, 9), (70, 129), (200, 64)):
        A, b = SYSTEMS[name](np.random.default_rng(size), *size)
        solution = gf2.solve(A, b)
        for same in (pickled(solution, 2), copy.copy(solution), copy.deepcopy(solution)):
            assert state_of(same) == state_of(solution)


def test_matrices_and_solutions_travel_to_other_processes():
    matrix = gf2.BitMatrix.from_dense(bits(np.random.default_rng(6), 40, 30))
    right = gf2.dot(matrix, np.ones(30, np.uint8))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        solution = pool.starmap(gf2.solve, [(matrix, right)])[0]
    assert state_of(solution) == state_of(gf2.solve(matrix, right))


def test_joblib_spreads_systems():
    joblib = pytest.importorskip("joblib")
    matrix = gf2.BitMatrix.from_dense(bits(np.random.default_rng(6), 40, 30))
    rights = [gf2.dot(matrix, each) for each in np.eye(30, dtype=np.uint8)[:3]]
    jobs = (joblib.delayed(gf2.solve)(matrix, right) for right in rights)
    for solution, right in zip(joblib.Parallel(2)(jobs), rights, strict=True):
        assert state_of(solution) == state_of(gf2.solve(matrix, right))


def test_a_matrix_is_made_by_its_functions():
    for arguments in ((), ([[0, 1]],), (np.eye(2), 2)):
        with pytest.raises(TypeError, match="must be BitMatrix"):
            gf2.BitMatrix(*arguments)


def test_errors_say_how_a_sparse_matrix_becomes_an_array():
    sparse = pytest.importorskip("scipy.sparse")
    bits = np.eye(3, dtype=np.uint8)
    matrix = sparse.csr_matrix(bits)
    calls = {
        "A": [gf2.rank, lambda A: gf2.dot(A, bits[0]), lambda A: gf2.solve(A, b=bits[0])],
        "X": [gf2.BitMatrix.from_dense],
    }
    for name, functions in calls.items():
        for function in functions:
            with pytest.raises(ParameterError, match=rf"it must be dense: {name}.toarray\(\)"):
                function(matrix)
    with pytest.raises(ParameterError, match=r"it must be dense: b.toarray\(\)"):
        gf2.solve(bits, b=matrix)


# Algebra ------------------------------------------------------------------------------------------

# The edges of a block, of a panel of four, and of the batch of strips of a product.
EDGES = [0, 1, 63, 64, 65, 255, 256, 257, 511, 512, 513]
# Those of a wide panel, and of the rows of a product.
FAR_EDGES = [(1023, 1025), (1024, 1024), (1025, 1023)]


@pytest.mark.usefixtures("arm")
@pytest.mark.parametrize("deficient", [False, True], ids=["random", "deficient"])
def test_identities_at_the_edges_of_blocks(deficient):
    for place, m in enumerate(EDGES):
        for d in EDGES[place % 2 :: 2]:
            k = EDGES[(m + 3 * d) % len(EDGES)]
            r = min(m, d) // 3
            A = gf2.BitMatrix.random(m, d)
            if deficient:
                A = gf2.BitMatrix.random(m, r) @ gf2.BitMatrix.random(r, d)
            check_identities(A, k)


@pytest.mark.thorough(beside="test_identities_at_the_edges_of_blocks")
@pytest.mark.usefixtures("arm")
@pytest.mark.parametrize("deficient", [False, True], ids=["random", "deficient"])
def test_identities_at_far_edges(deficient):
    for m, d in FAR_EDGES:
        low = gf2.BitMatrix.random(m, 500) @ gf2.BitMatrix.random(500, d)
        check_identities(low if deficient else gf2.BitMatrix.random(m, d), 65)


@at_length
@pytest.mark.usefixtures("arm")
def test_identities_at_the_edges_of_larger_matrices():
    for m, d in [(2047, 2049), (4095, 4097), (4096, 4096), (4097, 4095), (8193, 300)]:
        check_identities(gf2.BitMatrix.random(m, d), 1025)
        r = min(m, d) // 2
        check_identities(gf2.BitMatrix.random(m, r) @ gf2.BitMatrix.random(r, d), 257)


def check_identities(A, k):
    (m, d), rank = A.shape, gf2.rank(A)
    X, B = A.to_dense(), gf2.BitMatrix.random(d, k)
    assert np.array_equal(A.T.to_dense(), X.T)
    assert np.array_equal((A @ B).to_dense(), product(X, B.to_dense()))
    assert (A @ B).T == B.T @ A.T
    null, form, factors = gf2.nullspace(A), gf2.echelon(A), gf2.ple(A)
    assert null.shape == (d - rank, d)
    assert gf2.rank(null) == d - rank
    assert not (A @ null.T).popcount()
    assert gf2.rowspace(A) == form[:rank]
    assert not form[rank:].popcount()
    assert gf2.echelon(gf2.echelon(A, reduced=False)) == form
    rows, L, E, pivots = factors
    assert form[:rank][:, pivots] == gf2.BitMatrix.identity(rank)
    assert A[rows] == L @ E
    assert sorted(rows) == list(range(m))
    assert np.array_equal(np.triu(L.to_dense()), np.eye(m, rank))
    assert rank == 0 or np.array_equal(E.to_dense().argmax(axis=1), pivots)
    assert gf2.echelon(E) == form[:rank]
    every = gf2.solve(A, A @ B)
    assert every.consistent.all()
    assert A @ every.x == A @ B
    C = gf2.BitMatrix.random(k, m) @ A
    left = gf2.solve(A, C, left=True)
    assert left.consistent.all()
    assert left.x @ A == C
    C = gf2.BitMatrix.random(m, k)
    x, consistent = gf2.solve(A, C)
    for j in range(0, k, 50):
        one = gf2.solve(A, C[:, j])
        assert one.consistent == consistent[j]
        assert np.array_equal(x[:, j], one.x if one.consistent else np.zeros(d))


@pytest.mark.usefixtures("arm")
def test_many_right_hand_sides_of_many_equations():
    """Some are eliminated, the others verified: whichever holds a contradiction, or rank."""
    for d in (1, 63, 64, 65, 130):
        m = 3 * d + 200
        low = gf2.BitMatrix.random(m, d // 2) @ gf2.BitMatrix.random(d // 2, d)
        lonely = low.to_dense()
        lonely[m - 3] = gf2.BitMatrix.random(1, d)[0]
        for A in (gf2.BitMatrix.random(m, d), low, gf2.BitMatrix.from_dense(lonely)):
            for k in (0, 1, 64, 70):
                B = (A @ gf2.BitMatrix.random(d, k)).to_dense()
                assert gf2.solve(A, gf2.BitMatrix.from_dense(B)).consistent.all()
                for j in range(0, k, 3):
                    B[(37 * j) % m, j] ^= 1
                x, consistent = gf2.solve(A, gf2.BitMatrix.from_dense(B))
                for j in range(min(k, 10)):
                    one = gf2.solve(A, B[:, j])
                    assert one.consistent == consistent[j]
                    assert np.array_equal(x[:, j], one.x if one.consistent else np.zeros(d))


@pytest.mark.parametrize("n", EDGES)
def test_inverses_at_the_edges_of_blocks(n):
    L, U = (gf2.BitMatrix.random(n, n).to_dense() for _ in range(2))
    A = gf2.BitMatrix.from_dense(np.tril(L, -1) + np.eye(n)) @ (np.triu(U, 1) + np.eye(n))
    A = A[np.random.default_rng(n).permutation(n)]
    assert gf2.determinant(A) == 1
    assert A @ gf2.inverse(A) == gf2.inverse(A) @ A == gf2.BitMatrix.identity(n)
    if n:
        singular = gf2.vstack([A[1:], np.zeros((1, n))])
        assert gf2.determinant(singular) == 0
        with pytest.raises(ParameterError, match="A is singular"):
            gf2.inverse(singular)


def integer_product(rows, others):
    """The rows of a product, from rows that are Python integers."""
    products = []
    for row in rows:
        total = 0
        for j, other in enumerate(others):
            total ^= other if row >> j & 1 else 0
        products.append(total)
    return products


def integer_rank(rows):
    basis = {}
    for row in rows:
        while row and row.bit_length() in basis:
            row ^= basis[row.bit_length()]
        if row:
            basis[row.bit_length()] = row
    return len(basis)


def compare_with_integers(rng, count):
    for _ in range(count):
        m, d, k = rng.integers(0, 7, 3).tolist()
        rows = [int(row) for row in rng.integers(0, 1 << d, m)]
        others = [int(row) for row in rng.integers(0, 1 << k, d)]
        A, B = gf2.BitMatrix.from_integers(rows, d), gf2.BitMatrix.from_integers(others, k)
        image = integer_product(rows, others)
        assert A.to_integers() == rows
        assert (A @ B).to_integers() == image
        rank = integer_rank(rows)
        assert gf2.rank(A) == rank
        null = gf2.nullspace(A).to_integers()
        assert len(null) == integer_rank(null) == d - rank
        assert all((row & vector).bit_count() % 2 == 0 for row in rows for vector in null)
        x, consistent = gf2.solve(A, A @ B)
        assert consistent.all()
        assert integer_product(rows, x.to_integers()) == image
        factors = gf2.ple(A)
        lower, form = factors.L.to_integers(), factors.E.to_integers()
        assert integer_product(lower, form) == [rows[i] for i in factors.rows]
        assert gf2.rowspace(A).to_integers() == gf2.echelon(A).to_integers()[:rank]


def test_small_matrices_agree_with_integers():
    compare_with_integers(np.random.default_rng(21), 5000)


@at_length
def test_a_million_small_matrices_agree_with_integers():
    compare_with_integers(np.random.default_rng(22), 10**6)


def test_operators_take_arrays_on_either_side():
    rng = np.random.default_rng(23)
    X, Y, v = bits(rng, 70, 130), bits(rng, 70, 130), bits(rng, 70)
    A, B = gf2.BitMatrix.from_dense(X), gf2.BitMatrix.from_dense(Y)
    for other in (B, Y, Y.astype(bool), Y.astype(float), Y.tolist()):
        assert np.array_equal(A ^ other, X ^ Y)
        assert np.array_equal(A & other, X & Y)
        assert np.array_equal(other ^ A, X ^ Y)
        assert np.array_equal(other & A, X & Y)
    assert np.array_equal(~A, 1 - X)
    assert (~A).popcount() == (1 - X).sum()
    assert np.array_equal(A @ Y.T, product(X, Y.T))
    assert np.array_equal(Y.T @ A, product(Y.T, X))
    assert np.array_equal(v @ A, product(v, X))
    assert np.array_equal(A.T @ v, product(v, X))
    assert (v @ A).dtype == np.uint8
    for axis in (0, 1):
        assert np.array_equal(A.popcount(axis), X.sum(axis=axis))
    assert gf2.hstack([A, Y, B[:, :5]]) == gf2.BitMatrix.from_dense(np.hstack([X, Y, Y[:, :5]]))
    assert gf2.vstack([X, B]) == gf2.BitMatrix.from_dense(np.vstack([X, Y]))
    assert gf2.hstack([]).shape == (0, 0)
    assert (A[:, :0] @ gf2.BitMatrix.zeros(0, 9)) == gf2.BitMatrix.zeros(70, 9)


def test_rows_and_columns_are_taken_permuted_and_summed():
    X = bits(np.random.default_rng(25), 90, 130)
    A = gf2.BitMatrix.from_dense(X)
    for indices in ([3, -1, 3], np.arange(90)[::-1], np.arange(90) % 4 == 1, []):
        assert np.array_equal(A.take(indices).to_dense(), X[indices if len(indices) else []][:])
        assert A.T.take(indices, axis=1) == A.take(indices, axis=0).T
    rows, columns = np.random.default_rng(26).permutation(90), list(range(130))[::-1]
    assert np.array_equal(A.permute(rows=rows).to_dense(), X[rows])
    assert A.permute(rows=rows, columns=columns) == A[rows][:, columns]
    assert A.permute() == A
    for call in (
        lambda: A.permute(rows=rows[1:]),
        lambda: A.permute(rows=[0, *rows[1:], 0]),
        lambda: A.permute(columns=np.zeros(130, int)),
        lambda: A.permute(columns=3),
        lambda: A.take(3),
        lambda: A.take([[3]]),
        lambda: A.take([3], axis=2),
    ):
        with pytest.raises(ParameterError, match=r"^(rows|columns|indices|axis) = "):
            call()
    with pytest.raises(IndexError, match="row 90"):
        A.take([90])
    assert A.sum() == X.sum() % 2
    for axis in (0, 1):
        assert np.array_equal(A.sum(axis), X.sum(axis=axis) % 2)
    assert gf2.BitMatrix.zeros(0, 3).sum(axis=0).tolist() == [0, 0, 0]
    assert A.sum(axis=1).dtype == np.uint8


def test_a_matrix_is_unpacked_into_an_array():
    X = bits(np.random.default_rng(27), 70, 90)
    A, out = gf2.BitMatrix.from_dense(X), np.full((70, 90), 7, np.uint8)
    assert A.to_dense(out=out) is out
    assert np.array_equal(out, X)
    with pytest.raises(ShapeError, match="out has shape"):
        A.to_dense(out=out.T.copy())
    for wrong in (out.astype(int), np.asfortranarray(out), read_only(out), X.tolist(), 3):
        with pytest.raises(ParameterError, match="out = something else"):
            A.to_dense(out=wrong)


def test_no_error_shows_entries_of_a_matrix():
    """Only who prints a matrix sees its corner: entries may be private."""
    A = gf2.BitMatrix.random(6, 24, random_state=28)
    row, seen = " ".join(map(str, A[0])), 0
    assert row in repr(A)
    for function, arguments in CALLS.values():
        for name in arguments:
            for value in (A, [A], {"a": (A,)}, [[A]]):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        function(**arguments | {name: value})
                    except Exception as error:
                        seen += 1
                        text = f"{error} {error.__notes__ if hasattr(error, '__notes__') else ''}"
                        assert row[:15] not in text, (function, name)
                        assert "density" not in text, (function, name)
                assert not any(row[:15] in str(one.message) for one in caught)
    assert seen > 100


def test_operands_that_do_not_fit_are_refused():
    A = gf2.BitMatrix.from_dense(np.ones((2, 3)))
    for call, text in {
        lambda: A @ A: "3 columns on the left and 2 rows on the right",
        lambda: A @ [1, 0]: "other has length 2",
        lambda: np.ones(3) @ A: "other has length 3",
        lambda: A ^ A.T: "2 x 3 and 3 x 2",
        lambda: A & np.ones(3): "dimension",
        lambda: gf2.hstack([A, A.T]): "matrix 1 has 3",
        lambda: gf2.vstack([A, A, A.T]): "matrix 2 has 2",
        lambda: gf2.inverse(A): "A is 2 x 3",
        lambda: gf2.determinant(A): "A is 2 x 3",
        lambda: gf2.solve(A, A.T): "A has 2 rows and B has 3",
        lambda: gf2.solve(A, A.T, left=True): "b has 2 columns, .* has: 3",
        lambda: gf2.solve(A, [1, 0], left=True): "b has 2 columns, .* has: 3",
        lambda: gf2.solve(A, np.eye(2)): "many right-hand sides are a BitMatrix",
    }.items():
        with pytest.raises(ShapeError, match=text):
            call()
    with pytest.raises(ParameterError, match="0 or 1"):
        A ^ np.full((2, 3), 2)
    with pytest.raises(ParameterError, match="axis = 2"):
        A.popcount(2)
    with pytest.raises(ParameterError, match="rows holds something else"):
        gf2.BitMatrix.from_integers([8], 3)


def test_matrices_are_compared_by_content_and_have_no_hash():
    A, B = gf2.BitMatrix.identity(70), gf2.BitMatrix.from_dense(np.eye(70))
    assert A == B
    assert not operator.ne(A, B)
    assert A != ~A
    assert A[:, :69] != A
    assert gf2.BitMatrix.zeros(0, 3) != gf2.BitMatrix.zeros(0, 4)
    assert A != "A"
    with pytest.raises(TypeError, match="unhashable"):
        hash(A)
    for compare in (lambda: operator.eq(A, np.eye(70)), lambda: np.eye(70) != A):
        with pytest.raises(TypeError, match="compared with a BitMatrix"):
            compare()


def test_matrices_come_from_files_integers_sparse_matrices_and_coins(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    X = bits(np.random.default_rng(24), 90, 67)
    A = gf2.BitMatrix.from_dense(X)
    for kind in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        for dtype in (float, bool, np.int8):
            assert gf2.BitMatrix.from_sparse(kind(X.astype(dtype))) == A
    made = A.to_sparse()
    assert isinstance(made, sparse.csr_array)
    assert made.dtype == np.uint8
    assert np.array_equal(made.toarray(), X)
    assert gf2.BitMatrix.zeros(3, 0).to_sparse().shape == (3, 0)
    assert gf2.BitMatrix.from_sparse(sparse.csr_array((0, 5))).shape == (0, 5)
    for wrong in (2 * sparse.csr_array(X), 0.5 * sparse.csr_array(X), X, None):
        with pytest.raises(ParameterError, match="X"):
            gf2.BitMatrix.from_sparse(wrong)
    A.to_npz(tmp_path / "A.npz")
    assert gf2.BitMatrix.from_npz(tmp_path / "A.npz") == A
    (tmp_path / "B.npz").write_text("no archive")
    with pytest.raises(ParameterError, match="X_packed and ncols"):
        gf2.BitMatrix.from_npz(tmp_path / "B.npz")
    with pytest.raises(ParameterError, match="can be read"):
        gf2.BitMatrix.from_npz(tmp_path / "C.npz")
    assert gf2.BitMatrix.from_integers(A.to_integers(), 67) == A
    assert gf2.BitMatrix.from_packed(A.to_packed(), 67) == A
    assert np.array_equal(A.to_packed(), np.packbits(X, axis=1, bitorder="little"))
    drawn = [gf2.BitMatrix.random(40, 67, random_state=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_has_no_room_is_a_memory_error_and_what_has_no_entries_is_none():
    for make in (
        lambda: gf2.BitMatrix.zeros(2**40, 2**40),
        lambda: gf2.BitMatrix.zeros(1, 2**62),
        lambda: gf2.BitMatrix.identity(2**40),
        lambda: gf2.BitMatrix.random(2**62, 64),
    ):
        with pytest.raises(MemoryError):
            make()
    tall, wide = gf2.BitMatrix.zeros(2**62, 0), gf2.BitMatrix.zeros(0, 2**62)
    assert repr(tall) == f"BitMatrix({2**62} x 0 over GF(2))"
    assert wide == tall.T
    assert tall == wide.T
    assert tall @ gf2.BitMatrix.zeros(0, 0) == tall
    assert tall ^ tall == tall


def test_matrices_are_pickled_out_of_band():
    A, buffers = gf2.BitMatrix.random(100, 77), []
    body = pickle.dumps(A, protocol=5, buffer_callback=buffers.append)
    assert len(body) < 300
    assert sum(len(buffer.raw()) for buffer in buffers) == 1000
    assert pickle.loads(body, buffers=buffers) == A == copy.deepcopy(A)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_do_not_change_the_algebra(threads, monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", str(threads))
    A, B = (gf2.BitMatrix.random(2100, 1500, random_state=seed) for seed in (1, 2))
    assert np.array_equal((A @ B.T).to_dense(), product(A.to_dense(), B.T.to_dense()))
    rows, L, E, _ = gf2.ple(A)
    assert A[rows] == L @ E
    assert A @ gf2.solve(A, A @ B[:1500, :40]).x == A @ B[:1500, :40]


# Row spaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 5, 64, 65, 130])
def test_row_spaces_of_parts_add_up_to_that_of_all_equations(d):
    rng = np.random.default_rng(d)
    for m in (0, 1, d // 2, 3 * d + 70):
        A, x = rng.integers(0, 2, (m, d)), rng.integers(0, 2, d)
        b = A @ x % 2
        whole, cut = gf2.RowSpace.of(A, b), m // 3
        parts = gf2.RowSpace.of(A[:cut], b[:cut]), gf2.RowSpace.of(A[cut:], b[cut:])
        assert parts[0] + parts[1] == parts[1] + parts[0] == whole
        solution = gf2.solve(A, b)
        assert (whole.rank, whole.consistent) == (solution.rank, True)
        assert whole.basis.shape == (solution.rank, d + 1)
        basis = whole.basis.to_dense()
        again = gf2.solve(basis[:, :d], basis[:, d])
        assert (again.x == solution.x).all()
        assert (again.nullspace() == solution.nullspace()).all()
        if m:
            wrong = gf2.RowSpace.of(A[:1], 1 - b[:1]) + whole
            assert (wrong.consistent, wrong.rank) == (False, solution.rank)
            assert "inconsistent" in repr(wrong)


def test_row_spaces_travel_and_refuse_what_is_none():
    space = gf2.RowSpace.of([[1, 0, 1], [0, 1, 1]], [1, 0])
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
    assert copy.copy(space) is space
    equations = _core.Equations(3)
    equations.add([[1, 0, 1], [0, 1, 1]], [1, 0])
    assert equations.take() == space
    for call in (equations.take, lambda: equations.add([[1, 0, 1]], [1])):
        with pytest.raises(ParameterError, match="equations = none, but their span was taken"):
            call()
    assert gf2.RowSpace.from_basis(space.basis) == space != gf2.RowSpace.of([[1, 0, 1]], [1])
    with pytest.raises(ParameterError, match="d = -1"):
        gf2.RowSpace(-1)
    with pytest.raises(ParameterError, match="reduced row echelon form"):
        gf2.RowSpace.from_basis([[1, 1], [1, 0]])
    with pytest.raises(ShapeError, match="3 and 2 unknowns"):
        space + gf2.RowSpace.of([[1, 0]], [1])
    with pytest.raises(ShapeError, match="b has length 1"):
        gf2.RowSpace.of([[1, 0], [0, 1]], [1])
    with pytest.raises(TypeError):
        space + 1


def test_row_spaces_begin_empty_and_take_equations_in_any_parts():
    rng = np.random.default_rng(8)
    A = rng.integers(0, 2, (90, 70), dtype=np.uint8)
    A[:, 40:50] = A[:, :10]  # 60 is the largest rank
    b = gf2.dot(A, rng.integers(0, 2, 70))
    empty = gf2.RowSpace(70)
    assert (empty.unknowns, empty.rank, empty.consistent, len(empty.basis)) == (70, 0, True, 0)
    whole, space = gf2.RowSpace.of(A, b), empty
    for start, end in itertools.pairwise((0, 0, 1, 30, 31, 85, 90)):
        one = space.add(A[start:end], b[start:end])
        assert space.contains(A[:start], b[:start]).all()
        space = one
    assert space == whole == empty + whole == whole + whole != empty
    assert not space.contains(A, 1 - b).any()
    assert space.contains(np.eye(70, dtype=bool), np.zeros(70)).sum() < 70
    wrong = space.add(A[:1], 1 - b[:1])
    assert not wrong.consistent
    assert wrong.rank == space.rank
    assert wrong.contains(A, 1 - b).all()
    assert gf2.RowSpace(0).add(np.zeros((2, 0)), [0, 1]).consistent is False
    for call in (space.add, space.contains):
        with pytest.raises(ShapeError, match="70 and 69 unknowns"):
            call(A[:, 1:], b)


def test_row_spaces_as_bytes_are_small_and_refused_with_any_bit_changed_or_another_space():
    rng = np.random.default_rng(9)
    for d, m in ((0, 1), (1, 1), (8, 3), (65, 30), (65, 200), (100, 50)):
        for b in (np.zeros(m, np.uint8), np.ones(m, np.uint8)):
            space = gf2.RowSpace.of(rng.integers(0, 2, (m, d)), b)
            content = space.to_bytes()
            assert gf2.RowSpace.from_bytes(content) == pickle.loads(pickle.dumps(space)) == space
            assert len(content) <= 32 + d / 4 + 1 + (d + 8) ** 2 / 32
            for place in range(8 * len(content)):
                broken = bytearray(content)
                broken[place // 8] ^= 1 << place % 8
                with contextlib.suppress(ParameterError):
                    other = gf2.RowSpace.from_bytes(bytes(broken))
                    assert other != space
                    assert other.to_bytes() == broken
    for hostile in (b"", content[:20], content + b"\0", content[:23] + b"\xff" * 9, b"\0" * 99):
        with pytest.raises(ParameterError, match="no whole space"):
            gf2.RowSpace.from_bytes(hostile)
    with pytest.raises(ParameterError, match="version = 2"):
        gf2.RowSpace.from_bytes(content[:19] + b"\2" + content[20:])


def test_solve_takes_equations_in_parts():
    rng = np.random.default_rng(10)
    A = rng.integers(0, 2, (1200, 300), dtype=np.uint8)
    A[:, 200:250] = 0
    right = gf2.dot(A, rng.integers(0, 2, 300))
    for wrong in (None, 3, 900):  # among the rows eliminated first, and among the later ones
        b = right if wrong is None else flipped(right, wrong)
        whole = gf2.solve(A, b)
        for ends in ((0, 1200), (0, 0, 7, 500, 1200), range(0, 1201, 100)):
            pairs = [(A[i:j], b[i:j]) for i, j in itertools.pairwise(ends)]
            for chunks in (Chunks(pairs), Chunks(pairs, workers=1)):
                ours = gf2.solve(chunks)
                assert (ours.rank, ours.consistent) == (whole.rank, whole.consistent)
                assert (ours.nullspace() == whole.nullspace()).all()
                assert (ours.x is None) if wrong is not None else (ours.x == whole.x).all()
    assert gf2.solve(gf2.RowSpace.of(A, right)).x.tolist() == gf2.solve(A, right).x.tolist()
    with joblib.parallel_config("threading", n_jobs=3):
        assert gf2.solve(Chunks(pairs)).consistent is False
    assert gf2.solve(Chunks([(A[:0], right[:0])])).nullity == 300
    for chunks, error, text in (
        ([A], ParameterError, "no right-hand sides"),
        ([(A, right), (A[:, 1:], right)], ShapeError, "300 and 299 unknowns"),
        ([(A, right[1:])], ShapeError, "b has length 1199"),
        ([(A + 1, right)], ParameterError, "must be 0 or 1"),
    ):
        with pytest.raises(error, match=text):
            gf2.solve(Chunks(chunks))
    with pytest.raises(ParameterError, match="stands alone"):
        gf2.solve(Chunks(pairs), right)
    with pytest.raises(ParameterError, match="b = None"):
        gf2.solve(A)


def test_solve_reads_files_once(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,b\n1,0,1\n1,1,0\n")
    assert gf2.solve(Chunks(str(tmp_path / "a.csv"), label="b")).x.tolist() == [1, 1]
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"x": [1, 1], "y": [0, 1], "b": [1, 0]})
    reader = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert gf2.solve(Chunks(reader, label="b")).x.tolist() == [1, 1]


@pytest.mark.parametrize("d", [66, 100, 128])
def test_a_contradiction_is_found_whichever_row_has_it(d):
    """Those that are eliminated first may hold it, and leave unknowns to those that are checked."""
    A = np.tile(np.eye(d, dtype=np.uint8), (2, 1))
    for row in range(2 * d):
        b = np.zeros(2 * d, np.uint8)
        b[row] = 1
        assert not gf2.solve(A, b).consistent
        assert not gf2.RowSpace.of(A, b).consistent


def test_a_matrix_from_a_seed_is_public_and_warns_of_nothing(monkeypatch):
    monkeypatch.setattr(random_state, "_warned", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = gf2.BitMatrix.random(3, 4, random_state=1)
        assert gf2.BitMatrix.random(3, 4, random_state=1) == A
