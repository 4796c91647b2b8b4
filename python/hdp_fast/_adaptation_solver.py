"""The least objective without noise, by turns in weights and predictor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._adaptation_pass import Weighing, objective
from ._adaptation_rows import Rows
from ._moments import BLOCK
from ._trust_region import on_sphere

Floats = NDArray[np.float64]
Part = tuple[Rows, Weighing]

# Turns end where one lowers the objective by no more than this share of it.
_CLOSE = 1e-12
_MOST_TURNS = 1000
# Directions in which records lie this much less count as seen by none: nothing is learned there.
_SEEN = 1e-12


def solved(parts: Sequence[Part], radius: float) -> Floats:
    """The predictor of norm at most radius with the least objective, (d,). Not private.

    The objective is jointly convex in predictor and inverse weights, and its best weights at a
    predictor are unique: by turns, each of which lowers it, both reach the minimum.
    """
    w = np.zeros(parts[0][0].X.shape[1])
    value = total(parts, w)
    for _ in range(_MOST_TURNS):
        found = turn(parts, w, radius)
        lower = total(parts, found)
        if not lower < value:
            break
        w, gained, value = found, value - lower, lower
        if gained <= _CLOSE * value:
            break
    return w


def total(parts: Sequence[Part], w: Floats) -> float:
    """The objective of all parts, but for a constant."""
    return sum(objective(rows, w, weighing) for rows, weighing in parts)


def turn(parts: Sequence[Part], w: Floats, radius: float) -> Floats:
    """The best predictor in the ball for the weights that are best for w."""
    d = len(w)
    moments = np.zeros((d + 1, d + 1))
    for rows, weighing in parts:
        moments += weighted_moments(rows, w, weighing)
    values, vectors = np.linalg.eigh(moments[:-1, :-1] * radius**2)
    seen = values > _SEEN * values[-1]
    values, vectors = values[seen], vectors[:, seen]
    _, coordinates = on_sphere(values, vectors.T @ (radius * moments[:-1, -1]), 0.0)
    return within_ball(radius * (vectors @ coordinates), radius)


def weighted_moments(rows: Rows, w: Floats, weighing: Weighing) -> Floats:
    """The sum of q_i (x_i, y_i) (x_i, y_i)' at the weights that are best for w, (d + 1, d + 1)."""
    d = len(w)
    found = np.zeros((d + 1, d + 1))
    for start in range(0, len(rows.y), BLOCK):
        X, y = rows.X[start : start + BLOCK], rows.y[start : start + BLOCK]
        both = np.column_stack([X * rows.unit, y]).astype(np.float64, copy=False)
        losses = (both @ np.append(w, -1.0)) ** 2 + weighing.offset
        shares = np.sqrt(weighing.kappa_1 / np.maximum(losses, weighing.kappa_1))
        found += (both.T * (shares * weighing.cap)) @ both
    return found


def within_ball(w: Floats, radius: float) -> Floats:
    """The nearest predictor of norm at most radius."""
    return w * (radius / max(radius, float(np.linalg.norm(w))))
