"""One pass over the rows beside numpy, finite differences, scipy and the integers of Python."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from hdp_fast import _core
from hdp_fast.adaptation import ConvexAdaptation
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners.linear_model import core_arguments, validate_rows
from hdp_fast.reference import linear as reference

LOSSES = ["squared", "logistic", "softmax"]
CLASSES = 3
# Around the rows of a block, of a part, and of those taken together; around lanes and short rows.
SIZES = [(1, 1), (3, 2), (4, 7), (5, 8), (6, 9), (9, 127), (11, 128), (13, 129), (27, 385)]
SIZES += [(1023, 3), (1025, 5), (4099, 16), (66_000, 2)]


def records(n, d, loss, dtype=np.float64, seed=0):
    """Rows of norm about 1, labels as the loss takes them, and a model."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) / np.sqrt(d)).astype(dtype)
    labels = {
        "squared": rng.uniform(-1, 1, n),
        "logistic": rng.choice([-1.0, 1.0], n),
        "softmax": rng.integers(0, CLASSES, n).astype(float),
    }
    return X, labels[loss], rng.normal(size=(CLASSES, d) if loss == "softmax" else d)


def run(X, y, w, weights, *, loss="squared", grid=None, threads=None):
    objective, gradient, losses = _core.adaptation_pass(
        core_arguments(validate_rows(X), y), loss, w.reshape(-1), weights, grid, threads
    )
    return objective, gradient.reshape(w.shape), losses


def textbook(loss, scores, y):
    """Losses by their definitions."""
    if loss == "squared":
        return (scores - y) ** 2
    if loss == "logistic":
        return np.logaddexp(0, -y * scores)
    return -log_softmax(scores, axis=1)[np.arange(len(y)), y.astype(int)]


@each_case("loss", LOSSES)
@each_case("dtype", [np.float64, np.float32])
@each_case(("n", "d"), SIZES)
def test_the_kernel_does_what_numpy_does(loss, dtype, n, d):
    X, y, w = records(n, d, loss, dtype)
    tolerance = {"rtol": 1e-9, "atol": 1e-12 * n} if dtype == np.float64 else {"atol": 2e-5 * n}
    settings = {"cap": 0.7, "kappa_1": 0.3, "offset": 0.05}
    found = run(X, y, w, tuple(settings.values()), loss=loss)
    wanted = reference.evaluate_eliminated(X, y, w, loss=loss, **settings)
    np.testing.assert_allclose(found[0], wanted[0], **tolerance)
    np.testing.assert_allclose(found[1], wanted[1], **tolerance)
    assert found[2] is None
    q = np.random.default_rng(1).random(n)
    found = run(X, y, w, q, loss=loss)
    for mine, other in zip(found, reference.evaluate_weighted(X, y, w, q, loss=loss), strict=True):
        np.testing.assert_allclose(mine, other, **tolerance)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_textbooks_at_any_score(loss):
    X, y, w = records(500, 6, loss)
    for scale in (0.0, 1.0, 30.0, 2000.0):
        losses = run(X, y, scale * w, np.ones(500), loss=loss)[2]
        np.testing.assert_allclose(losses, textbook(loss, X @ (scale * w.T), y), atol=1e-12)


@each_case("loss", LOSSES)
@each_case("kappa_1", [0.0, 0.02, 0.4, 50.0])
def test_gradients_are_finite_differences(loss, kappa_1):
    X, y, w = records(60, 4, loss)
    q = np.random.default_rng(1).random(60)
    for weights in ((0.3, kappa_1, 0.1), q):
        gradient = run(X, y, w, weights, loss=loss)[1]
        for place in np.ndindex(w.shape):
            step = np.zeros(w.shape)
            step[place] = 1e-5
            above, below = (run(X, y, w + s * step, weights, loss=loss)[0] for s in (1, -1))
            assert (above - below) / 2e-5 == pytest.approx(gradient[place], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kappa_1", [1e-3, 0.2, 3.0])
def test_eliminated_weights_minimize_the_objective(kappa_1):
    """Each term by scipy over the weight itself."""
    X, y, w = records(40, 3, "squared")
    cap, offset = 0.25, 0.07
    losses = (X @ w - y) ** 2 + offset
    total = 0.0
    for value in losses:
        term = lambda q, value=value: value * q + kappa_1 * cap**2 / q  # noqa: E731
        total += minimize_scalar(term, bounds=(1e-9, cap), options={"xatol": 1e-12}).fun
    assert run(X, y, w, (cap, kappa_1, offset))[0] == pytest.approx(total, rel=1e-7)


def test_a_loss_of_zero_has_the_largest_weight_and_kappa_of_zero_leaves_none():
    X, w = np.eye(3), np.array([1.0, 2.0, 3.0])
    assert run(X, w.copy(), w, (0.5, 0.3, 0.0))[0] == pytest.approx(3 * 0.5 * 0.3, rel=1e-12)
    objective, gradient, _ = run(X, np.array([1.0, 0.0, 0.0]), w, (0.5, 0.0, 0.0))
    assert objective == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("grid", [None, (1000.0, 2048.0, 4096.0)])
@pytest.mark.parametrize("isa", ["portable", "avx2", "gfni256", "gfni"])
def test_threads_and_instruction_sets_find_the_same_bits(monkeypatch, loss, dtype, grid, isa):
    X, y, w = records(30_011, 37, loss, dtype)
    expected = run(X, y, w, (1.0, 0.3, 0.1), loss=loss, grid=grid, threads=1)
    wide = records(67, 259, loss, dtype)
    expected_wide = run(*wide, (1.0, 0.3, 0.1), loss=loss, grid=grid)
    monkeypatch.setenv("HDP_FAST_ISA", isa)
    for threads in (1, 2, 3):
        found = run(X, y, w, (1.0, 0.3, 0.1), loss=loss, grid=grid, threads=threads)
        assert found[0] == expected[0]
        assert (found[1] == expected[1]).all()
    found = run(*wide, (1.0, 0.3, 0.1), loss=loss, grid=grid)
    assert found[0] == expected_wide[0]
    assert (found[1] == expected_wide[1]).all()


UNITS, MOST, SCALE = 1 << 18, 1 << 14, 4000.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (333, 9), (1500, 130)])
def test_integer_sums_are_those_of_python(loss, dtype, n, d):
    """Gradients of single records, within the bound that is promised, added up without floats."""
    X, y, w = records(n, d, loss, dtype)
    rows, per_unit = _core.adaptation_integers(X.reshape(-1), d, 1.0, UNITS, None)
    rows = rows.reshape(X.shape)
    model, weights, grid = w / per_unit, (1.0, 0.5, 0.0), (SCALE, MOST, UNITS)
    total = np.zeros(w.shape, object)
    for i in range(n):
        one = run(rows[i : i + 1], y[i : i + 1], model, weights, loss=loss, grid=grid)[1]
        assert (one == np.rint(one)).all()
        integers = one.astype(object)
        integers = np.vectorize(int, otypes=[object])(integers)
        assert (integers**2).sum() <= (MOST * UNITS) ** 2
        total += integers
    found = run(rows, y, model, weights, loss=loss, grid=grid, threads=2)[1]
    assert (np.vectorize(int, otypes=[object])(found) == total).all()
    plain = reference.evaluate_eliminated(rows, y, model, cap=1.0, kappa_1=0.5, loss=loss)[1]
    near = 0.51 * np.abs(rows).sum(axis=0) + 1e-3 * np.abs(plain * SCALE)
    assert (np.abs(found - plain * SCALE) <= near).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_rounded_coefficients_are_those_of_the_reference(loss):
    X, y, w = records(200, 5, loss)
    q = np.random.default_rng(1).random(200)
    found = run(X, y, w, q, loss=loss, grid=(700.0, 300.0, 4.0))[1]
    slopes = reference.losses(loss, X @ w.T, y)[1]
    rounded = reference.round_coefficients(slopes, q, 700.0, 300.0)
    assert 0 < (rounded == 0).sum() < rounded.size
    np.testing.assert_allclose(found, rounded.T @ X, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_at_the_limit_are_exact(dtype):
    """Odd integers up to 2**53: one rounding anywhere would show."""
    n, units, most = 8191, (1 << 20) - 1, (1 << 20) - 1
    X = np.full((n, 1), units, dtype)
    X[::100] = -1
    y = np.where(np.arange(n) % 100, -1.0, 0.5)
    w, grid = np.zeros(1), (most / 2.0, float(most), float(units))
    found = run(X, y, w, np.ones(n), grid=grid, threads=2)[1]
    coefficients = [round(-2 * float(label) * grid[0]) for label in y]
    assert max(coefficients) == most
    wanted = sum(c * int(x) for c, x in zip(coefficients, X[:, 0], strict=True))
    assert wanted > 1 << 52
    assert int(found[0]) == wanted
    with pytest.raises(ParameterError, match=r"most = 1048575, but .* stay below 2\^53"):
        run(np.zeros((8193, 1)), np.zeros(8193), w, np.ones(8193), grid=grid)


def test_records_whose_coefficients_are_too_long_count_as_zero():
    X, y = np.ones((3, 1)), np.array([-3.0, -3.5, np.inf])
    assert run(X, y, np.zeros(1), np.ones(3), grid=(1.0, 6.0, 1.0))[1] == [6]
    labels, w = np.array([0.0]), np.zeros((2, 1))
    found = run(X[:1], labels, w, np.ones(1), loss="softmax", grid=(10.0, 8.0, 1.0))[1]
    assert (found == [[-5], [5]]).all()
    found = run(X[:1], labels, w, np.ones(1), loss="softmax", grid=(10.0, 7.0, 1.0))[1]
    assert (found == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (700, 7), (90, 384)])
def test_rows_become_integers_within_the_bound(dtype, n, d):
    rng = np.random.default_rng(2)
    scales = rng.choice([0.0, 1e-30, 1e-3, 0.1, 1.0, 1.0, 50.0, 1e30], (n, 1))
    X = (rng.normal(size=(n, d)) * scales / np.sqrt(d)).astype(dtype)
    found, per_unit = _core.adaptation_integers(X.reshape(-1), d, 1.3, UNITS, 2)
    assert found.dtype == dtype
    wanted, scale = reference.round_rows(X, 1.3, UNITS)
    assert per_unit == pytest.approx(scale, rel=1e-15)
    # Sums of squares are added in another order: entries halfway between integers go either way.
    assert np.abs(found.reshape(X.shape) - wanted).max() <= 1
    squares = [sum(int(x) ** 2 for x in row) for row in found.reshape(X.shape)]
    assert max(squares) <= UNITS**2
    if n > 1:
        assert max(squares) >= (UNITS - d**0.5 - 2) ** 2, "the bound should be sharp"


def test_rows_of_no_finite_norm_become_zeros():
    X = np.array([[np.nan, 1.0], [np.inf, 0.0], [1e300, 1e300], [5e-324, 0.0], [3.0, 4.0]])
    found, per_unit = _core.adaptation_integers(X.reshape(-1), 2, 1.0, 1000.0, None)
    found = found.reshape(X.shape)
    assert (found[:4] == 0).all()
    assert found[4].tolist() == [round(0.6 * per_unit), round(0.8 * per_unit)]


@pytest.mark.parametrize("change", [np.asfortranarray, lambda X: np.repeat(X, 2, 0)[::2]])
def test_rows_of_any_layout_are_read_and_left_as_they_are(change):
    X, y, w = records(300, 6, "squared")
    X = np.rint(X * 8)
    expected = run(X, y, w, (0.1, 0.3, 0.1))
    for given in (change(X), X.astype(np.int16)):
        kept = given.copy()
        found = run(given, y, w, (0.1, 0.3, 0.1))
        assert found[0] == expected[0]
        assert (found[1] == expected[1]).all()
        assert (given == kept).all()


@each_case(
    ("change", "error", "text"),
    [
        ({"loss": "cubic"}, ParameterError, "loss = 'cubic', but it must be one of squared"),
        ({"w": np.zeros(3)}, ShapeError, "the model has 3 weights for 2 columns"),
        ({"loss": "softmax"}, ShapeError, "the model has 2 weights for 2 columns"),
        ({"y": np.zeros(4)}, ShapeError, "4 labels and 2 columns do not fit 10 entries"),
        ({"weights": np.zeros(4)}, ShapeError, "weights has length 4"),
        ({"weights": (-1.0, 0.1, 0.0)}, ParameterError, "cap = -1, but"),
        ({"weights": (1.0, np.inf, 0.0)}, ParameterError, "kappa_1 = inf, but"),
        ({"weights": (1.0, 0.1, np.nan)}, ParameterError, "offset = NaN, but"),
        ({"grid": (0.0, 8.0, 8.0)}, ParameterError, "scale = 0, but"),
        ({"grid": (1.0, 8.5, 8.0)}, ParameterError, "most = 8.5, but it must be an integer"),
        ({"grid": (1.0, 8.0, 2.0**27)}, ParameterError, "units = 134217728, but"),
        ({"grid": (1.0, 2.0**26, 2.0**26)}, ParameterError, "most = 67108864, but"),
        ({"threads": 0}, ParameterError, "threads = 0, but"),
    ],
)
def test_bad_calls_are_refused(change, error, text):
    given = {"X": np.ones((5, 2)), "y": np.zeros(5), "w": np.zeros(2), "weights": (1.0, 0.1, 0.0)}
    with pytest.raises(error, match=text):
        run(**(given | change))


def test_bad_grids_of_rows_are_refused():
    for bound, units, text in [
        (0.0, 100.0, "bound = 0"),
        (np.nan, 100.0, "bound = NaN"),
        (1.0, 2.0, "bound = 1, but .* half the root of 9 columns"),
        (1.0, 99.5, "units = 99.5"),
    ]:
        with pytest.raises(ParameterError, match=text):
            _core.adaptation_integers(np.ones(9), 9, bound, units, None)
    with pytest.raises(ParameterError, match="units = 33554432, but entries"):
        _core.adaptation_integers(np.ones(9, np.float32), 9, 1.0, 2.0**25, None)
    with pytest.raises(ShapeError, match="9 entries do not fill rows of 2"):
        _core.adaptation_integers(np.ones(9), 2, 1.0, 100.0, None)


def test_private_rows_may_lie_anywhere_in_memory():
    """As numbers after a header of odd length do, where no machine word begins."""
    misaligned = np.frombuffer(bytearray(1 + 8 * 60), np.float64, offset=1).reshape(20, 3)
    misaligned[...] = np.random.default_rng(0).random((20, 3)) / 2
    y = np.full(20, 0.5)
    assert not misaligned.flags.aligned

    def learned(X):
        learner = ConvexAdaptation(epsilon=1.0, delta=1e-5, steps=2)
        return learner.fit(misaligned.copy(), y, X, y, random_state=1).coef_

    np.testing.assert_array_equal(learned(misaligned), learned(misaligned.copy()))


def test_an_interrupt_is_heard():
    """A softmax over many classes, which would take half a minute."""
    X, y = np.ones((20_000, 400), np.float32), np.zeros(20_000)
    w = np.zeros((3000, 400))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(X, y, w, (1.0, 0.1, 0.0), loss="softmax")
    assert time.monotonic() - start < 3
