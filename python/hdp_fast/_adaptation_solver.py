"""The least objective without noise, by turns in weights and predictor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._adaptation_pass import Weighing, objective, weights
from ._adaptation_rows import Rows
from ._trust_region import minimum

Floats = NDArray[np.float64]
Part = tuple[Rows, Weighing]

# Turns end where one lowers the objective by no more than this share of it.
_CLOSE = 1e-12
_MOST_TURNS = 1000
_BLOCK = 4096


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
    moment, moved = np.zeros((d, d)), np.zeros(d)
    for rows, weighing in parts:
        _, shares = weights(rows, w, weighing)
        shares *= weighing.cap
        moment += second_moment(rows, shares)
        moved += rows.unit * ((shares * rows.y) @ rows.X)
    values, vectors = np.linalg.eigh(moment * radius**2)
    _, coordinates = minimum(values.clip(0), vectors.T @ (radius * moved))
    found: Floats = radius * (vectors @ coordinates)
    return found * min(1.0, radius / max(float(np.linalg.norm(found)), radius))


def second_moment(rows: Rows, shares: Floats) -> Floats:
    """The sum of shares_i x_i x_i', (d, d)."""
    d = rows.X.shape[1]
    found = np.zeros((d, d))
    for start in range(0, len(rows.y), _BLOCK):
        X, part = rows.X[start : start + _BLOCK], shares[start : start + _BLOCK]
        found += (X.T * part) @ X
    found *= rows.unit**2
    return found
