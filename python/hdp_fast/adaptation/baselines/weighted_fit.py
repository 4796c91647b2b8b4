"""Linear models of weighted records, without privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._support.types import Floats

Loss = Literal["squared", "logistic"]

LOSSES = ("squared", "logistic")
_NEWTON_STEPS = 100
# The logistic objective ends at most this far above its minimum, if rounding allows it.
_TOLERANCE = 1e-12
_SHORTEST = 1e-10


def fit_weighted(
    X: NDArray[Any],
    y: Floats,
    weights: Floats,
    *,
    loss: Loss,
    l2: float,
    start: Floats | None = None,
) -> Floats:
    """Return the w that minimizes a weighted loss plus a penalty. Not private.

    The objective is `sum_i weights_i loss(w . x_i, y_i) + l2 |w|**2 / 2`.

    X: (m, d); y: float64 (m,). For "logistic" y is -1 or 1 and the loss log(1 + exp(-y w . x)); for
    "squared" y is any number and the loss `(w . x - y)**2 / 2`. weights: float64 (m,), at least 0.
    l2: above 0. start: float64 (d,), where "logistic" begins; None means at 0.

    Cost: `O(m d**2 + d**3)` for "squared", as much for each of some ten steps for "logistic".
    Source: normal equations; Newton's method with backtracking.
    """
    rows = np.asarray(X, np.float64)
    if loss == "squared":
        moment = _second_moment(rows, weights, l2)
        return _solve(moment, rows.T @ (weights * y))
    w = np.zeros(rows.shape[1]) if start is None else start
    return _minimize_logistic(rows * y[:, None], weights, l2, w)


def _second_moment(rows: Floats, weights: Floats, l2: float) -> Floats:
    moment: Floats = (rows.T * weights) @ rows
    moment[np.diag_indices_from(moment)] += l2
    return moment


def _solve(matrix: Floats, vector: Floats) -> Floats:
    return np.linalg.solve(matrix, vector).astype(np.float64, copy=False)


def _minimize_logistic(signed: Floats, weights: Floats, l2: float, w: Floats) -> Floats:
    def objective(w: Floats) -> float:
        return float(weights @ np.logaddexp(0, -signed @ w) + l2 / 2 * (w @ w))

    for _ in range(_NEWTON_STEPS):
        wrong = np.exp(-np.logaddexp(0, signed @ w))
        gradient = l2 * w - signed.T @ (weights * wrong)
        # The objective is l2-strongly convex.
        if gradient @ gradient <= 2 * l2 * _TOLERANCE:
            break
        hessian = _second_moment(signed, weights * wrong * (1 - wrong), l2)
        step = _solve(hessian, gradient)
        length = _backtrack(objective, w, step, float(gradient @ step))
        if not length:
            break
        w = w - length * step
    return w


def _backtrack(
    objective: Callable[[Floats], float], w: Floats, step: Floats, decrease: float
) -> float:
    """Return the first of 1, 1/2, 1/4, ... with sufficient decrease; 0 if rounding hides it."""
    value, length = objective(w), 1.0
    while objective(w - length * step) > value - length / 4 * decrease:
        length /= 2
        if length < _SHORTEST:
            return 0.0
    return length
