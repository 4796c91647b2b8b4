"""Callers' code: it changes no array, and the trouble of one private record stays its own."""

import contextlib
import logging
import math
import sys
import warnings

import numpy as np
import pytest
from cases import each_case
from failing_losses import LOSS_BOUNDS, MARK, TROUBLES, Failure, loss, raising, troubled

from hdp_fast.adaptation import ConvexAdaptation, NonConvexAdaptation
from hdp_fast.exceptions import ShapeError, UtilityWarning

CALLED = {"start": np.zeros(2), "loss_bounds": LOSS_BOUNDS, "discrepancy": 0.1, "alpha": 0.5}


def data(m=12, n=12):
    coins = np.random.default_rng(0)
    return [
        part for k in (m, n) for part in (coins.uniform(-0.5, 0.5, (k, 2)), coins.uniform(-1, 1, k))
    ]


@each_case("trouble", TROUBLES)
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
            epsilon=math.inf, private=private, loss=function, steps=5, **CALLED
        )
        fits.append(model.fit(*given, random_state=0).coef_)
        for one, other in zip(given, data(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert CALLED["start"].tolist() == [0, 0]
    np.testing.assert_array_equal(*fits)


MAPS = {"private": "source", "steps": 2, "epsilon": 1.0}


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
        fits.append(model.fit(*given, random_state=0).coef_)
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
    model = ConvexAdaptation(**MAPS, feature_map=fragile).fit(*given, random_state=0)
    given[0][3] = 0
    expected = ConvexAdaptation(**MAPS).fit(*given, random_state=0)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_a_map_that_is_wrong_for_every_private_record_says_so():
    with pytest.raises(ShapeError, match="of 2 columns as X_target has"):
        ConvexAdaptation(**MAPS, feature_map=lambda X: X[:, :1]).fit(*data(), random_state=0)
    with pytest.raises(ZeroDivisionError):
        ConvexAdaptation(**MAPS, feature_map=lambda X: 1 // 0).fit(*data(), random_state=0)


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
        # Of what is released and of public records.
        warnings.simplefilter("ignore", UtilityWarning)
        model.fit(*given)
    assert [str(each.message) for each in heard] == []
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_map_of_public_records_is_heard():
    given = data()
    given[0][3] = MARK, 0.1
    with pytest.warns(UserWarning, match="MARK"):
        ConvexAdaptation(steps=2, epsilon=1.0, feature_map=speaking).fit(*given)
