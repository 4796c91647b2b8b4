"""The least objective without noise, by quadratics that touch it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._support.types import Floats
from .._support.validate import LEAST
from .discrepancies.moments import BLOCK
from .discrepancies.trust_region import on_sphere
from .objective import objective
from .problem import Rows, Weighing

Part = tuple[Rows, Weighing]

# Turns end where one lowers the objective by no more than this share of it.
_CLOSE = 1e-12
_MOST_TURNS = 1000
# Directions in which records lie this much less count as seen by none: nothing is learned there.
_SEEN = 1e-12
# What a turn that lowered the objective divides its caution by, and how little is left.
_BOLDER, _BOLDEST = 8.0, 1e-3


def solved(parts: Sequence[Part], radius: float) -> Floats:
    """The predictor of norm at most radius with the least objective, (d,). Not private.

    The objective is convex. Turns by the best weights at a predictor lower it for certain, but
    slowly where many records lose weight; by its second derivative, soon. Turns go from one to the
    other as long as they lower it.
    """
    w, caution = np.zeros(parts[0][0].X.shape[1]), 1.0
    value = total(parts, w)
    for _ in range(_MOST_TURNS):
        found = turn(parts, w, radius, caution)
        lower = total(parts, found)
        if lower < value:
            caution = max(caution / _BOLDER, _BOLDEST)
            w, gained, value = found, value - lower, lower
            if gained <= _CLOSE * value:
                break
        elif caution == 1:
            break
        else:
            caution = 1.0
    return w


def total(parts: Sequence[Part], w: Floats) -> float:
    """The objective of all parts, but for a constant."""
    return sum(objective(rows, w, weighing) for rows, weighing in parts)


def turn(parts: Sequence[Part], w: Floats, radius: float, caution: float = 1.0) -> Floats:
    """The best predictor in the ball for a quadratic that touches the objective at w.

    caution: 1 for the one that is nowhere below it, by the weights that are best for w; 0 for that
    of its second derivative.
    """
    d = len(w)
    bends, wanted = np.zeros((d, d)), np.zeros(d)
    for rows, weighing in parts:
        own, slopes = _quadratic(rows, w, weighing, caution)
        bends += own
        wanted += own @ w - slopes
    values, vectors = np.linalg.eigh(bends * radius**2)
    seen = values > _SEEN * values[-1]
    values, vectors = values[seen], vectors[:, seen]
    _, coordinates = on_sphere(values, vectors.T @ (radius * wanted), 0.0)
    return within_ball(radius * (vectors @ coordinates), radius)


def _quadratic(rows: Rows, w: Floats, weighing: Weighing, caution: float) -> tuple[Floats, Floats]:
    """Half of what a domain's objective is taken to bend by at w, and half of its gradient."""
    d = len(w)
    bends, slopes = np.zeros((d, d)), np.zeros(d)
    for X, y in _blocks(rows):
        away = X @ w - y
        losses = away**2 + weighing.offset
        shares = np.sqrt(weighing.kappa_1 / np.maximum(losses, weighing.kappa_1))
        # The derivative of share * away: 1 up to kappa_1.
        least = np.where(shares < 1, shares * (weighing.offset / np.maximum(losses, LEAST)), 1.0)
        bends += (X.T * (weighing.cap * (caution * shares + (1 - caution) * least))) @ X
        slopes += (weighing.cap * shares * away) @ X
    return bends, slopes


def moments(rows: Rows, cap: float) -> Floats:
    """The sum of cap x x', (d, d)."""
    d = rows.X.shape[1]
    return sum((cap * (X.T @ X) for X, _ in _blocks(rows)), np.zeros((d, d)))


def _blocks(rows: Rows) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, len(rows.y), BLOCK):
        X = rows.X[start : start + BLOCK] * rows.unit
        yield X.astype(np.float64, copy=False), rows.y[start : start + BLOCK]


def within_ball(w: Floats, radius: float) -> Floats:
    """The nearest predictor of norm at most radius."""
    return w * (radius / max(radius, float(np.linalg.norm(w))))
