"""Callers' code: it changes no array, and the trouble of one private record stays its own."""

import asyncio
import contextlib
import logging
import math
import sys
import warnings

import numpy as np
import pytest

from hdp_fast.adaptation import ConvexAdaptation, NonConvexAdaptation
from hdp_fast.adaptation.nonconvex_descent import Bends, Called
from hdp_fast.adaptation.privacy import Noise
from hdp_fast.adaptation.problem import Rows
from hdp_fast.exceptions import ShapeError

MARK = 0.123456789
BENDS = Bends(2.0, 1.5, 1.0)
CALLED = {"start": np.zeros(2), "bends": tuple(BENDS), "discrepancy": 0.1, "alpha": 0.5}


def loss(w, X, y):
    away = X @ w - y
    return away**2, 2 * away[:, None] * X


def data(m=12, n=12):
    coins = np.random.default_rng(0)
    return [
        part for k in (m, n) for part in (coins.uniform(-0.5, 0.5, (k, 2)), coins.uniform(-1, 1, k))
    ]


class Failure(BaseException):
    """Whatever a library raises."""


def raising(error):
    def fail(found, k):
        raise error

    return fail


def no_rows(found, k):
    return tuple(each[:0] for each in found)


def not_finite(value):
    def change(found, k):
        losses, gradients = found
        losses[k], gradients[k] = value, value
        return losses, gradients

    return change


TROUBLES = {
    **{
        type(error).__name__: raising(error)
        for error in (
            *(ValueError("x"), SystemExit(3), GeneratorExit(), asyncio.CancelledError()),
            *(MemoryError(), RecursionError(), Failure()),
        )
    },
    "shape": no_rows,
    "no array": lambda found, k: None,
    "texts": lambda found, k: ("a", "b"),
    **{str(value): not_finite(value) for value in (math.nan, math.inf, -math.inf)},
}


def troubled(trouble):
    """The loss, but for records that hold MARK."""

    def function(w, X, y):
        found = loss(w, X, y)
        marked = np.flatnonzero((X == MARK).any(axis=1))
        return trouble(found, marked[0]) if len(marked) else found

    return function


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_record_at_which_a_loss_fails_is_the_only_one_without_numbers(trouble, exact):
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (6, 2))
    X[4, 1] = MARK
    y, w = np.ones(6), np.array([0.3, -0.2])
    noise = Noise(0.1, 1e-9 if not exact else 2.0, exact, 1.0)
    domain = Called(troubled(TROUBLES[trouble]), Rows(X, y, 1.0), BENDS, noise, None)
    losses, gradients = domain._clipped(w)
    expected = Called(loss, Rows(X, y, 1.0), BENDS, noise, None)._clipped(w)
    others = np.arange(6) != 4
    np.testing.assert_array_equal(losses[others], expected[0][others])
    np.testing.assert_array_equal(gradients[others], expected[1][others])
    assert losses[4] == BENDS.largest
    np.testing.assert_array_equal(gradients[4], 0)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_fit_does_not_show_at_which_record_its_loss_fails(trouble):
    given = data()
    model = NonConvexAdaptation(epsilon=1.0, loss=troubled(TROUBLES[trouble]), steps=3, **CALLED)
    given[2][3] = MARK, 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.fit(*given).coef_).all()


@pytest.mark.parametrize("error", [ValueError("public"), SystemExit(3), Failure()])
def test_what_a_loss_raises_of_public_records_is_raised(error):
    given = data()
    given[0][3] = MARK, 0.1
    model = NonConvexAdaptation(epsilon=1.0, loss=troubled(raising(error)), steps=3, **CALLED)
    with pytest.raises(type(error)):
        model.fit(*given)


def test_an_interrupt_ends_a_run():
    given = data()
    given[2][3] = MARK, 0.1
    model = NonConvexAdaptation(
        epsilon=1.0, loss=troubled(raising(KeyboardInterrupt())), steps=3, **CALLED
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(*given)


def scribbled(*arrays):
    """Writes over arrays, where it can."""
    for each in arrays:
        with contextlib.suppress(ValueError):
            each.flags.writeable = True
            each[...] = MARK


def writing(w, X, y):
    found = loss(w, X, y)
    scribbled(w, X, y)
    return found


@pytest.mark.parametrize("private", ["target", "source"])
def test_a_loss_that_writes_changes_nothing(private):
    fits = []
    for function in (loss, writing):
        given = data()
        model = NonConvexAdaptation(
            epsilon=math.inf, private=private, loss=function, steps=5, random_state=0, **CALLED
        )
        fits.append(model.fit(*given).coef_)
        for one, other in zip(given, data(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert CALLED["start"].tolist() == [0, 0]
    np.testing.assert_array_equal(*fits)


MAPS = {"private": "source", "steps": 2, "epsilon": 1.0, "random_state": 0}


@pytest.mark.filterwarnings("ignore:random_state makes the coins")
@pytest.mark.parametrize("private", ["target", "source"])
def test_a_map_that_writes_changes_nothing(private):
    def halved(X):
        found = X / 2
        scribbled(X)
        return found

    fits = []
    for feature_map in (lambda X: X / 2, halved):
        given = data()
        model = ConvexAdaptation(**{**MAPS, "private": private}, feature_map=feature_map)
        fits.append(model.fit(*given).coef_)
        for one, other in zip(given, data(), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(*fits)


@pytest.mark.filterwarnings("ignore:random_state makes the coins")
@pytest.mark.parametrize(
    "trouble",
    [
        raising(ValueError("x")),
        raising(Failure()),
        lambda X, k: X[:0],
        lambda X, k: X[:, :1],
        lambda X, k: X * math.nan,
        lambda X, k: X / 0.0,
        lambda X, k: [["a", "b"]],
    ],
)
def test_a_private_record_that_a_map_fails_at_counts_as_zero(trouble):
    def fragile(X):
        return trouble(X, 0) if (X == MARK).any() else X

    given = data()
    given[0][3] = MARK, 0.1
    model = ConvexAdaptation(**MAPS, feature_map=fragile).fit(*given)
    given[0][3] = 0
    expected = ConvexAdaptation(**MAPS).fit(*given)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_a_map_that_is_wrong_for_every_private_record_says_so():
    with pytest.raises(ShapeError, match="of 2 columns as X_target has"):
        ConvexAdaptation(**MAPS, feature_map=lambda X: X[:, :1]).fit(*data())
    with pytest.raises(ZeroDivisionError):
        ConvexAdaptation(**MAPS, feature_map=lambda X: 1 // 0).fit(*data())


LOG = logging.getLogger("callers")


def speaking(X):
    """Tells in every way of records that hold MARK."""
    if (X == MARK).any():
        warnings.warn("MARK", stacklevel=1)
        print("MARK")
        print("MARK", file=sys.stderr)
        LOG.error("MARK")
    return X


def loud(X):
    """The same, and of numpy's own."""
    X = speaking(X)
    return np.where(X == MARK, np.log(np.where(X == MARK, -1.0, 1.0)), X)


def loud_loss(w, X, y):
    return loss(w, loud(X), y)


@pytest.mark.filterwarnings("ignore:random_state makes the coins")
@pytest.mark.parametrize("errors", ["warn", "raise"])
@pytest.mark.parametrize(
    ("model", "part"),
    [
        (ConvexAdaptation(**MAPS, feature_map=loud), 0),
        (NonConvexAdaptation(epsilon=1.0, loss=loud_loss, steps=3, **CALLED), 2),
    ],
    ids=["map", "loss"],
)
def test_nothing_is_heard_of_a_private_record(model, part, errors, capfd, caplog):
    given = data()
    given[part][3] = MARK, 0.1
    with warnings.catch_warnings(record=True) as heard, np.errstate(all=errors):
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="random_state makes the coins")
        model.fit(*given)
    assert [str(each.message) for each in heard] == []
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_map_of_public_records_is_heard():
    given = data()
    given[0][3] = MARK, 0.1
    with pytest.warns(UserWarning, match="MARK"):
        ConvexAdaptation(steps=2, epsilon=1.0, feature_map=speaking).fit(*given)
