"""Kappa-dense projection and multiplicative weights."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import accounting
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.reference import weights as reference
from hdp_fast.weights import DenseWeights, project


def shapes(n):
    """Weights of many kinds, all above 0."""
    rng, dominant = np.random.default_rng(n), np.full(n, 1e-12)
    dominant[n // 2] = 1
    return {
        "uniform": rng.random(n) + 1e-9,
        "equal": np.full(n, 0.3),
        "ties": rng.integers(1, 4, n).astype(float),
        "wide": 10.0 ** rng.uniform(-300, 0, n),
        "heavy": rng.random(n) ** -0.9,
        "dominant": dominant,
        "ascending": np.arange(1.0, n + 1),
        "descending": np.arange(n, 0.0, -1),
        "periodic": 1.0 + np.arange(n) % 7,
    }


def exactly(w, kappa):
    """The projection in fractions, by trying every number of capped weights."""
    mass, ascending = Fraction(kappa) * len(w), sorted(map(Fraction, w))
    for capped in range(len(w) + 1):
        rest = ascending[: len(w) - capped]
        c = (mass - capped) / sum(rest) if rest else 1 / ascending[0]
        if not rest or (c > 0 and c * rest[-1] <= 1):
            return [float(min(c * Fraction(x), 1)) for x in w]
    raise AssertionError


@each_case("n", [1, 2, 3, 7, 64])
@each_case("kappa", [0.125, 0.3, 0.5, 0.99, 1.0])
def test_projection_of_few_weights_is_exact(n, kappa):
    if kappa * n >= 1:
        for name, w in shapes(n).items():
            projected, wanted = project(w, kappa), exactly(w, kappa)
            assert np.allclose(projected, wanted, rtol=1e-9, atol=0), name
            assert np.allclose(reference.project(w, kappa), wanted, rtol=1e-9, atol=0), name
            other = reference.project_by_partition(w, kappa)
            place = w.copy()
            assert reference.project_by_partition(place, kappa, out=place) is place
            assert np.array_equal(place, other)
            assert np.allclose(other, wanted, rtol=1e-9, atol=0), name


# Around the size from which a sample brackets the threshold, and that of a chunk.
@pytest.mark.parametrize("n", [1000, 16_383, 16_385, 65_537, 300_000])
@pytest.mark.parametrize("kappa", [0.01, 0.3, 1.0])
def test_projections_are_dense_and_keep_the_order(n, kappa):
    for name, w in shapes(n).items():
        p = project(w, kappa)
        assert p.max() <= 1, name
        assert kappa * n <= math.fsum(p) <= kappa * n * (1 + 1e-9), name
        assert (np.diff(p[np.argsort(w)]) >= 0).all(), name
        assert np.allclose(p, reference.project(w, kappa), rtol=1e-8, atol=0), name
        assert np.allclose(p, project(w * 2.0**-40, kappa), rtol=1e-9, atol=0), name
        assert np.allclose(p, project(p, kappa), rtol=1e-8), "a projection is its own"


def misleading(n):
    """Weights of which a sample tells little, or most of which are at the threshold."""
    rng = np.random.default_rng(n)
    few, projected = np.full(n, 1e-9), project(rng.random(n) ** 4, 0.3)
    few[rng.choice(n, 20, replace=False)] = 10.0 ** rng.uniform(0, 250, 20)
    halves = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    return {
        "few rule": few,
        "projected": projected,
        "sorted": np.sort(rng.random(n) ** 30),
        "heaviest last": np.append(np.full(n - 3, 1e-3), [1.0, 2.0, 3.0]),
        "heavy without mean": rng.random(n) ** -3.0,
        "half zeros": halves,
        "two values": np.where(rng.random(n) < 0.2, 1.0, 0.3),
        "next floats": 1 + rng.integers(0, 3, n) * np.finfo(float).eps,
        "periodic": 1.0 + np.arange(n) % 4096,
        "stretches": np.repeat(rng.random(-(-n // 500)), 500)[:n],
        "minus zeros": np.where(halves > 0, halves, -0.0),
    }


@pytest.mark.parametrize("n", [20_000, 70_001])
@pytest.mark.parametrize("kappa", [1e-4, 0.01, 0.05, 0.3, 0.45])
def test_no_sample_misleads_a_projection(n, kappa):
    for name, w in misleading(n).items():
        p = project(w, kappa)
        assert p.max() <= 1, name
        assert kappa * n <= math.fsum(p) <= kappa * n * (1 + 1e-9), name
        assert np.allclose(p, reference.project(w, kappa), rtol=1e-8, atol=0), name
        assert (np.diff(p[np.argsort(w, kind="stable")]) >= 0).all(), name


@pytest.mark.parametrize("n", [7, 20_000, 300_001])
def test_projections_do_not_depend_on_threads_or_instructions(n, monkeypatch):
    for name, w in {**shapes(n), **(misleading(n) if n > 10_000 else {})}.items():
        results = []
        for isa in "portable", "avx2", "gfni256", "gfni":
            monkeypatch.setenv("HDP_FAST_ISA", isa)
            for threads in "1", "2", "3":
                monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
                in_place, out = w.copy(), np.empty(n)
                project(in_place, 0.3, out=in_place)
                results += [project(w, 0.3), in_place, project(w, 0.3, out=out)]
        assert all(np.array_equal(results[0], other) for other in results), name


def test_projections_past_the_caches_are_the_same(monkeypatch):
    w = np.random.default_rng(12).random(2**21 + 77)
    wanted = project(w, 0.1)
    for start in range(3):
        out = np.empty(len(w) + 3)[start:][: len(w)]
        assert np.array_equal(project(w, 0.1, out=out), wanted)


@each_case("wrong", [-1e-300, math.nan, math.inf, -math.inf])
@each_case("n", [5, 20_000, 300_000])
def test_a_wrong_weight_is_refused_wherever_it_is(wrong, n):
    for place in (0, n // 2, n - 1):
        w = np.ones(n)
        w[place] = wrong
        before = w.copy()
        with pytest.raises(ParameterError, match="w has an entry"):
            project(w, 0.3)
        with pytest.raises(ParameterError, match="w has an entry"):
            project(w, 0.3, out=w)
        assert np.array_equal(w, before, equal_nan=True)


def test_out_may_share_memory_with_w():
    values = np.random.default_rng(13).random(1001)
    wanted = project(values[1:], 0.2)
    assert np.array_equal(project(values[1:], 0.2, out=values[:-1]), wanted)


def far_apart(kind, n, rng):
    """Weights near one end of the floats, near the other, or anywhere between, some of them 0."""
    spread = {
        "subnormal": rng.uniform(-323, -306, n),
        "huge": rng.uniform(300, 308, n),
        "anywhere": rng.uniform(-323, 308, n),
        "both ends": rng.choice([-320.0, -308, 0, 300, 308], n),
    }
    return np.where(rng.random(n) < 0.1, 0, 10.0 ** spread[kind])


# Dyadic, so that kappa n is what it is in floats, too.
@each_case("kappa", [0.125, 0.25, 0.5, 0.75, 1.0])
@each_case("kind", ["subnormal", "huge", "anywhere", "both ends"])
def test_projection_is_exact_over_the_whole_range_of_floats(kind, kappa):
    done, rng = 0, np.random.default_rng(5)
    for _ in range(100):
        w = far_apart(kind, int(rng.integers(1, 20)), rng)
        if 0 < kappa * len(w) <= (w > 0).sum():
            wanted = exactly(w, kappa)
            # Relative errors of what rounds to a subnormal number are those of the rounding.
            assert np.allclose(project(w, kappa), wanted, rtol=1e-9, atol=1e-305)
            done += 1
    assert done > 5


EXTREMES = {
    "one subnormal": ([1e-320, 0, 0, 0], 0.25, [1, 0, 0, 0]),
    "all subnormal": ([5e-324] * 4, 0.5, [0.5] * 4),
    "all positive capped": ([1e-320, 1e308, 0, 0], 0.5, [1, 1, 0, 0]),
    "the sum overflows": ([1e308] * 100, 0.25, [0.25] * 100),
    "what is scaled is tiny": ([1.7e308] * 100 + [1e-300] * 100, 0.75, [1] * 100 + [0.5] * 100),
    "what is scaled hardly counts": ([1e308, 1, 1, 1e-320], 0.25, [1, 1e-308, 1e-308, 0]),
}


@each_case(("w", "kappa", "wanted"), EXTREMES.values(), ids=EXTREMES)
@each_case("copies", [1, 5_000])
def test_sums_beyond_the_floats_are_projected(w, kappa, wanted, copies):
    w, wanted = np.tile(w, copies), np.tile(wanted, copies)
    assert np.allclose(project(w, kappa), wanted, rtol=1e-9, atol=1e-305 if copies == 1 else 1e-9)
    project(w, kappa, out=w)
    assert np.allclose(w, wanted, rtol=1e-9, atol=1e-305 if copies == 1 else 1e-9)


@pytest.mark.parametrize("copies", [1, 5_000])
@pytest.mark.parametrize(
    "weights",
    [[1.7e308] * 3 + [0, 0], [1.0, 1, 1, 0, 0], [5e-324] * 3 + [0, 0], [1, math.nan, 1, 1, 1]],
)
def test_what_cannot_be_projected_leaves_all_arrays_as_they_are(weights, copies):
    w = np.tile(np.array(weights), copies)
    out, memory = np.full(len(w), 7.0), np.tile(w, 2)[: len(w) + 1]
    before = memory.copy()
    for values, target in (w, w), (w, out), (memory[1:], memory[:-1]), (memory[:-1], memory[:-1]):
        with pytest.raises(ParameterError, match=r"kappa n|w has an entry"):
            project(values, 0.75, out=target)
    assert np.array_equal(w, np.tile(np.array(weights), copies), equal_nan=True)
    assert (out == 7).all()
    assert np.array_equal(memory, before, equal_nan=True)


def test_neighbors_differ_by_no_more_than_the_densest_record():
    n, kappa, rng = 50, 0.1, np.random.default_rng(6)
    for w in shapes(n).values():
        for other in (1e-300, 1e-3, 1.0, 1e9):
            changed = w.copy()
            changed[rng.integers(n)] = other
            laws = [p / p.sum() for p in (project(w, kappa), project(changed, kappa))]
            assert np.abs(laws[0] - laws[1]).sum() / 2 <= 1 / (kappa * n) * (1 + 1e-9)


# Every choice of these for three records, one of which is replaced by any of them.
LEVELS = (1e-300, 1e-3, 0.3, 1.0, 1e9)


@pytest.mark.parametrize("kappa", [1 / 3, 0.5, 0.7, 1.0])
def test_neighbors_share_all_but_the_densest_record_and_that_is_sharp(kappa):
    worst, most = 0.0, 1 / (3 * kappa)
    laws = {}
    for w in itertools.product(LEVELS, repeat=3):
        p = project(np.array(w), kappa)
        laws[w] = p / p.sum()
    for w, law in laws.items():
        for other in LEVELS:
            twin = laws[(other, *w[1:])]
            lost = 1 - np.minimum(law, twin)[1:].sum()  # the record itself is another one
            assert lost <= most * (1 + 1e-9)
            assert np.abs(law - twin).sum() / 2 == pytest.approx(abs(law[0] - twin[0]), abs=1e-9)
            worst = max(worst, lost)
    assert worst > 0.999 * most


def test_projection_takes_any_layout_and_writes_where_it_is_told():
    w = np.random.default_rng(7).random(1000) + 0.1
    wanted = project(w, 0.2)
    frozen = w.copy()
    frozen.flags.writeable = False
    for values in (w.tolist(), w[::-1][::-1], np.repeat(w, 2)[::2], frozen):
        assert np.array_equal(project(values, 0.2), wanted)
    assert np.allclose(project(w.astype(np.float32), 0.2), wanted, rtol=1e-5)
    out = np.empty(1000)
    assert project(w, 0.2, out=out) is out
    assert np.array_equal(out, wanted)
    assert project(w, 0.2, out=w) is w
    assert np.array_equal(w, wanted)


def test_zero_weights_stay_zero_and_too_many_are_refused():
    w = np.array([0.0, 3, 0, 1])
    assert project(w, 0.5).tolist() == [0, 1, 0, 1]
    assert project(w, 0.25).sum() == pytest.approx(1)
    with pytest.raises(ParameterError, match="kappa n"):
        project(w, 0.75)
    with pytest.raises(ParameterError, match="kappa n"):
        project(np.zeros(3), 0.5)


BAD = {
    "negative": ([1, -1], 0.5, "w"),
    "nan": ([1, math.nan], 0.5, "w"),
    "infinite": ([1, math.inf], 0.5, "w"),
    "text": (["a"], 0.5, "w"),
    "2-d": ([[1.0]], 0.5, "w"),
    "empty": ([], 0.5, "w"),
    "kappa 0": ([1], 0, "kappa"),
    "kappa 2": ([1], 2, "kappa"),
    "kappa nan": ([1], math.nan, "kappa"),
}


@pytest.mark.parametrize(("w", "kappa", "name"), BAD.values(), ids=BAD)
def test_a_bad_projection_names_its_argument(w, kappa, name):
    with pytest.raises((ParameterError, ShapeError), match=rf"\b{name}\b"):
        project(w, kappa)


@pytest.mark.parametrize("out", [np.empty(3), np.empty(2, np.float32), np.empty(4)[::2], [0, 0]])
def test_out_must_fit(out):
    with pytest.raises(ParameterError, match="out"):
        project([1.0, 2.0], 0.5, out=out)


def filled(n=2000, kappa=0.05, eta=0.5, rounds=5):
    """Weights after some rounds, and the law that they should be drawn from."""
    rng = np.random.default_rng(8)
    weights, logs = DenseWeights(n, kappa, eta), np.zeros(n)
    for _ in range(rounds):
        losses = rng.random(n)
        weights.update(losses)
        logs -= eta * (1 - losses)
    law = project(np.exp(logs), kappa)
    return weights, law / law.sum()


def test_draws_follow_the_projected_weights():
    weights, law = filled()
    counts = np.bincount(weights.draw(400_000, random_state=1), minlength=2000)
    statistic = ((counts - 400_000 * law) ** 2 / (400_000 * law)).sum()
    assert abs(statistic - 1999) < 5.5 * math.sqrt(2 * 1999)
    assert (weights.n, weights.kappa) == (2000, 0.05)
    assert law.max() <= weights.rate <= 1 / (0.05 * 2000) * (1 + 1 / 4000)


def test_underflow_of_the_weights_does_not_matter():
    weights, eta = DenseWeights(100, 0.1, 4.0), 4.0
    right = np.ones((500, 100))
    right[:, :50] = 0
    weights.update(right)  # the first half has weights of exp(-2000)
    assert set(weights.draw(3_000).tolist()) == set(range(50, 100))
    losses = np.ones(100)
    losses[50:] = 0
    for _ in range(500):
        weights.update(losses)
    counts = np.bincount(weights.draw(100_000, random_state=2), minlength=100)
    assert abs(counts[:50].sum() - 50_000) < 1_000, eta


def test_kappa_one_is_uniform():
    weights = DenseWeights(50, 1.0, 1.0)
    weights.update(np.random.default_rng(9).random(50))
    counts = np.bincount(weights.draw(100_000, random_state=3), minlength=50)
    assert np.abs(counts - 2_000).max() < 5.5 * math.sqrt(2_000)


def test_losses_of_any_kind_and_several_at_once():
    bits = np.random.default_rng(10).integers(0, 2, (3, 5000))
    kinds = [
        bits,
        bits.astype(bool),
        bits.astype(np.uint8),
        bits.astype(np.float32),
        bits.T.copy().T,
    ]
    drawn = []
    for losses in kinds:
        weights = DenseWeights(5000, 0.05, 0.7)
        weights.update(losses)
        drawn.append(weights.draw(1000, random_state=1))
    weights = DenseWeights(5000, 0.05, 0.7)
    for row in bits[::-1]:
        weights.update(row)
    drawn.append(weights.draw(1000, random_state=1))
    assert all(np.array_equal(drawn[0], other) for other in drawn)


@pytest.mark.parametrize("wrong", [1.5, -0.1, math.nan, math.inf])
def test_a_wrong_loss_changes_nothing(wrong):
    weights, _ = filled(n=40_000)
    before = weights.draw(500, random_state=1)
    losses = np.full(40_000, 0.5)
    losses[39_000] = wrong
    with pytest.raises(ParameterError, match="losses"):
        weights.update(losses)
    assert np.array_equal(weights.draw(500, random_state=1), before)


def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch):
    weights, _ = filled(n=100_000)
    drawn = []
    for threads in "1", "2", "3":
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        drawn += [weights.draw(50_000, random_state=4)]
    assert all(np.array_equal(drawn[0], other) for other in drawn)
    assert not np.array_equal(weights.draw(50), weights.draw(50))


BAD_WEIGHTS = {
    "n 0": ((0, 0.5, 0.1), "n"),
    "n text": (("5", 0.5, 0.1), "n"),
    "kappa 0": ((10, 0, 0.1), "kappa"),
    "kappa n below 1": ((10, 0.01, 0.1), "n"),
    "too dense for so many": ((2**26, 1.0, 0.1), "n"),
    "eta 0": ((10, 0.5, 0), "eta"),
    "eta nan": ((10, 0.5, math.nan), "eta"),
    "eta 5": ((10, 0.5, 5), "eta"),
}


@pytest.mark.parametrize(("arguments", "name"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_parameters_name_themselves(arguments, name):
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        DenseWeights(*arguments)


def test_bad_calls_name_their_argument():
    weights = DenseWeights(10, 0.5, 0.1)
    for losses in (np.zeros(9), np.zeros((2, 9)), np.zeros((1, 1, 10)), 0.5):
        with pytest.raises(ShapeError, match="losses"):
            weights.update(losses)
    for losses in (["a"] * 10, [None] * 10, np.zeros(10, complex), np.full(10, 2, np.uint8)):
        with pytest.raises(ParameterError, match="losses"):
            weights.update(losses)
    for m in (-1, 1.5, None):
        with pytest.raises(ParameterError, match="m"):
            weights.draw(m)
    with pytest.raises(ParameterError, match="random_state"):
        weights.draw(1, random_state="x")


def test_weights_stay_where_they_are():
    weights = DenseWeights(10, 0.5, 0.1)
    assert repr(weights) == "DenseWeights(10 records, kappa=0.5, eta=0.1)"
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            act(weights)


def test_earlier_draws_leave_no_trace():
    rng = np.random.default_rng(11)
    for _ in range(20):
        one, other = DenseWeights(50, 0.1, 0.5), DenseWeights(50, 0.1, 0.5)
        for losses in rng.integers(0, 2, (5, 50)):
            one.draw(1)
            one.update(losses)
            other.update(losses)
        assert np.array_equal(one.draw(2000, random_state=1), other.draw(2000, random_state=1))


def test_the_rate_is_what_the_accountant_takes():
    weights = DenseWeights(10_000, 0.1, 0.1)
    learner = accounting.Subsampled(accounting.Pure(1.0), draws=10, rate=weights.rate)
    assert 0 < accounting.epsilon([(learner, 5)], 1e-6) < 1
