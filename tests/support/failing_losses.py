"""A loss of callers, and the ways in which it may fail at a record that holds MARK."""

import asyncio
import math

import numpy as np

MARK = 0.123456789
LOSS_BOUNDS = (2.0, 1.5, 1.0)


def loss(w, X, y):
    away = X @ w - y
    return away**2, 2 * away[:, None] * X


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
