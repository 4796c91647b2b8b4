"""Error counts of many hypotheses beside numpy: over bits, a byte a bit and 64 a word; halfspaces.

Run `python benches/bench_score.py`: about two minutes. Every route gets its features by columns and
packed as it likes before the clock starts; what packing takes stands apart. Labels are packed in
the call, each time. numpy 2 is needed for its route by words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast.learners import (
    ConjunctionList,
    Conjunctions,
    Features,
    Halfspaces,
    Parities,
    SparseHalfspaces,
)
from hdp_fast.reference import score as reference

RECORDS, FEATURES, HYPOTHESES, LITERALS = 1_000_000, 64, 1_000, 3
# Records of numbers, and how many of them numpy takes at a time where it makes no whole matrix.
NUMBERS, BLOCK = 100_000, 4_096
# numpy scores so many of the many hypotheses of an enumerated class, and is charged for all.
SAMPLE = 200
# Literals for which one Gram matrix is enough.
PAIR = 2
# Beyond so many bits of features numpy takes seconds.
LARGEST_NUMPY = 10**9

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]


def records(m: int, d: int) -> tuple[Bits, Bits]:
    """Random features (m, d) and labels (m,)."""
    rng = np.random.default_rng()
    return rng.integers(0, 2, (m, d), dtype=np.uint8), rng.integers(0, 2, m, dtype=np.uint8)


def sparse(count: int, d: int) -> tuple[Bits, Bits]:
    """Random conjunctions of LITERALS literals each: which features must be 1 and 0, (count, d)."""
    rng = np.random.default_rng()
    chosen = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1)[:, :LITERALS]
    ones, zeros = np.zeros((2, count, d), np.uint8)
    wanted = rng.integers(0, 2, chosen.shape)
    for masks, value in (ones, 1), (zeros, 0):
        rows, places = np.nonzero(wanted == value)
        masks[rows, chosen[rows, places]] = 1
    return ones, zeros


def literals(ones: Bits, zeros: Bits) -> list[reference.Literals]:
    """The same conjunctions as the reference takes them."""
    return [
        [(int(j), 1) for j in np.flatnonzero(one)] + [(int(j), 0) for j in np.flatnonzero(zero)]
        for one, zero in zip(ones, zeros, strict=True)
    ]


def bench_conjunctions(race: Race) -> None:
    """A thousand conjunctions that are listed one by one."""
    m = race.scaled("records", RECORDS)
    X, y = records(m, FEATURES)
    ones, zeros = sparse(HYPOTHESES, FEATURES)
    given, listed = ConjunctionList(ones, zeros), literals(ones, zeros)
    features, columns = Features(X), reference.columns(X)
    race.ours(lambda: given.errors(features, y))
    race.ours(lambda: given.errors(X, y), "packing included", threads=(2,))
    race.numpy("columns of bytes", lambda: reference.conjunction_errors(columns, y, listed))
    if hasattr(np, "bitwise_count"):
        words, labels = reference.packed(columns), reference.packed(y)
        race.numpy("words", lambda: reference.packed_conjunction_errors(words, labels, m, listed))
    race.run(m * HYPOTHESES, "prediction")


def bench_parities(race: Race) -> None:
    """A thousand sparse parities."""
    m = race.scaled("records", RECORDS)
    X, y = records(m, FEATURES)
    ones, zeros = sparse(HYPOTHESES, FEATURES)
    given, features, columns = Parities(ones | zeros), Features(X), reference.columns(X)
    words, labels = reference.packed(columns), reference.packed(y)
    race.ours(lambda: given.errors(features, y))
    race.numpy("columns of bytes", lambda: reference.parity_errors(columns, y, given.masks))
    if hasattr(np, "bitwise_count"):
        race.numpy("words", lambda: packed_parity_errors(words, labels, given.masks))
    race.run(m * HYPOTHESES, "prediction")


def packed_parity_errors(columns: Any, y: Any, masks: Bits) -> list[int]:
    """The same, 64 records a word."""
    value, ones, counts = np.empty_like(y), np.empty(y.shape, np.uint8), []
    for mask in masks:
        np.copyto(value, y)
        for feature in np.flatnonzero(mask):
            np.bitwise_xor(value, columns[feature], out=value)
        np.bitwise_count(value, out=ones)
        counts.append(int(ones.sum(dtype=np.int64)))
    return counts


def bench_packing(race: Race, limits: Limits) -> None:
    """The features of bits, a byte each, made into columns of words."""
    m = race.scaled("records", RECORDS)
    X, _ = records(m, FEATURES)
    race.ours(lambda: Features(X))
    race.numpy("transpose and packbits", lambda: reference.packed(reference.columns(X)))
    race.numpy("packbits twice", lambda: pack_columns(np.packbits(X, axis=1, bitorder="little")))
    race.limit("memory", limits.read(X.size))
    race.run(X.size, "bit")


def pack_columns(rows: Bits) -> Any:
    """Columns of words, (8 k, m / 64), from rows of k packed bytes: of a byte each bit is apart.

    A transposition of a byte a bit would read memory across its lines.
    """
    words = np.zeros((8 * rows.shape[1], -(-len(rows) // 64) * 8), np.uint8)
    for place in range(rows.shape[1]):
        column = np.ascontiguousarray(rows[:, place])
        for bit in range(8):
            some = np.packbits(column & np.uint8(1 << bit), bitorder="little")
            words[8 * place + bit, : len(some)] = some
    return words.view(np.uint64)


@pytest.mark.parametrize("literals_each", [1, 2, 3])
@pytest.mark.parametrize("kind", [Conjunctions, SparseHalfspaces], ids=lambda kind: kind.__name__)
def bench_enumerated(race: Race, kind: Any, literals_each: int) -> None:
    """All hypotheses of few literals, where signs and thresholds come for nothing."""
    m, rng = race.scaled("records", RECORDS), np.random.default_rng()
    X, y = records(m, FEATURES)
    features, columns = Features(X), reference.columns(X)
    hypotheses = kind(FEATURES, literals_each)
    race.params |= {"kind": kind.__name__, "hypotheses": len(hypotheses)}
    some = rng.choice(len(hypotheses), min(SAMPLE, len(hypotheses)), replace=False)
    chosen = [hypotheses.hypothesis(i) for i in some]
    listed = [[*zip(each["features"], each["values"], strict=True)] for each in chosen]
    votes = [(each, one.get("threshold", 0)) for each, one in zip(listed, chosen, strict=True)]

    def numpy() -> list[int]:
        if kind is Conjunctions:
            return reference.conjunction_errors(columns, y, listed)
        return reference.at_least_errors(columns, y, votes)

    share = len(hypotheses) / len(some)
    race.ours(lambda: hypotheses.errors(features, y))
    race.numpy("columns of bytes, from a sample of them", numpy, share=share)
    if kind is Conjunctions and hasattr(np, "bitwise_count"):
        words, labels = reference.packed(columns), reference.packed(y)
        race.numpy(
            "words, from a sample of them",
            lambda: reference.packed_conjunction_errors(words, labels, m, listed),
            share=share,
        )
    if kind is Conjunctions and literals_each == PAIR:
        assert np.array_equal(np.sort(hypotheses.errors(X, y)), np.sort(pair_errors(X, y)))
        race.numpy("Gram matrices", lambda: pair_errors(X, y), threads=(1, 2))
    race.run(m * len(hypotheses), "prediction")


def pair_errors(X: Bits, y: Bits) -> NDArray[np.int64]:
    """Errors of all conjunctions of at most two literals, by a product of matrices a label.

    How often two features are 1 together says how often each pair of literals holds. Their order
    is that of `pair_literals`.
    """
    true = [together(X[y == label]) for label in (0, 1)]
    return np.count_nonzero(y) - true[1] + true[0]


def together(X: Bits) -> NDArray[np.int64]:
    """How many records each conjunction of at most two literals holds for."""
    m, d = X.shape
    both = np.zeros((d, d))
    for start in range(0, m, BLOCK):
        block = X[start : start + BLOCK].astype(np.float32)
        both += block.T @ block
    ones = np.diag(both)
    i, j = np.triu_indices(d, 1)
    a, b, ab = ones[i], ones[j], both[i, j]
    counts = [[m], ones, m - ones, ab, a - ab, b - ab, m - a - b + ab]
    return np.concatenate(counts).astype(np.int64)


def pair_literals(d: int) -> list[reference.Literals]:
    """The literals of each conjunction whose errors `pair_errors` counts."""
    pairs = list(zip(*np.triu_indices(d, 1), strict=True))
    found: list[reference.Literals] = [[]]
    found += [[(j, value)] for value in (1, 0) for j in range(d)]
    for first, second in (1, 1), (1, 0), (0, 1), (0, 0):
        found += [[(int(i), first), (int(j), second)] for i, j in pairs]
    return found


def grow(race: Race, m: int, d: int, count: int) -> None:
    X, y = records(m, d)
    ones, zeros = sparse(count, d)
    features, given = Features(X), ConjunctionList(ones, zeros)
    race.ours(lambda: given.errors(features, y))
    if m * count <= LARGEST_NUMPY and hasattr(np, "bitwise_count"):
        words, labels = reference.packed(reference.columns(X)), reference.packed(y)
        listed = literals(ones, zeros)
        race.numpy("words", lambda: reference.packed_conjunction_errors(words, labels, m, listed))
    race.run(m * count, "prediction")


@pytest.mark.sizes("n", (10_000, 100_000, 1_000_000, 10_000_000))
def bench_growth(race: Race, n: int) -> None:
    """A thousand conjunctions, by the number of records."""
    grow(race, n, FEATURES, HYPOTHESES)


@pytest.mark.parametrize("features", [16, 256])
def bench_growth_by_features(race: Race, features: int) -> None:
    grow(race, race.scaled("records", RECORDS), features, HYPOTHESES)


@pytest.mark.parametrize("hypotheses", [100, 10_000])
def bench_growth_by_hypotheses(race: Race, hypotheses: int) -> None:
    grow(race, race.scaled("records", RECORDS), FEATURES, hypotheses)


@pytest.mark.sizes("n", (1_000, 10_000, NUMBERS), largest=(1_000_000,))
@pytest.mark.parametrize("d", [8, 64])
def bench_halfspaces(race: Race, limits: Limits, n: int, d: int) -> None:
    """A thousand halfspaces over d numbers, beside products of matrices."""
    rng = np.random.default_rng()
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n, dtype=np.uint8)
    W, b = rng.normal(size=(HYPOTHESES, d)), rng.normal(size=HYPOTHESES)
    given = Halfspaces(W, b)
    race.ours(lambda: given.errors(X, y))
    assert np.abs(given.errors(X, y) - count_by_label(X, y, W, b)).max() <= 1 + n // 10**6
    both = (1, 2)
    race.numpy("blocks by label", lambda: count_by_label(X, y, W, b), threads=both)
    race.numpy("blocks", lambda: reference.halfspace_errors(X, y, W, b, rows=BLOCK), threads=both)
    if n < NUMBERS:
        race.numpy("one product", lambda: reference.halfspace_errors(X, y, W, b), threads=both)
    for threads in both:
        flops = limits.flops("float64", threads)
        race.limit("products", 2 * n * d * HYPOTHESES / flops, threads=threads)
    race.run(n * HYPOTHESES, "prediction")


def count_by_label(X: Floats, y: Bits, W: Floats, b: Floats) -> NDArray[np.int64]:
    """Errors by products of small blocks, with one comparison each: labels apart, bias inside."""
    X = np.column_stack([X, np.ones(len(X))])
    W = np.column_stack([W, b])
    counts = np.zeros(len(W), np.int64)
    rows = BLOCK // 4
    scores, wrong = np.empty((len(W), rows)), np.empty((len(W), rows), np.bool_)
    for part, compare in (X[y == 1], np.less), (X[y == 0], np.greater_equal):
        for start in range(0, len(part), rows):
            block = part[start : start + rows]
            some, said = scores[:, : len(block)], wrong[:, : len(block)]
            np.matmul(W, block.T, out=some)
            compare(some, 0, out=said)
            counts += [np.count_nonzero(row) for row in said]
    return counts


if __name__ == "__main__":
    run_file(__file__)
