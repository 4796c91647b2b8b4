"""Linear and additive models in plain numpy: steps, losses, weighted gradients, sums over bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def slopes(
    loss: str, scores: Floats, labels: Floats, threshold: float = 1.0, margin: float = 1.0
) -> Floats:
    """The derivative of each loss in its score, (m,); labels are -1 and 1, or real numbers."""
    if loss == "hinge":
        return np.where(labels * scores < margin, -labels, 0.0)
    if loss == "squared_hinge":
        return -labels * np.maximum(margin - labels * scores, 0)
    if loss == "logistic":
        with np.errstate(over="ignore"):
            growth: Floats = np.exp(labels * scores)
        return -labels / (1 + growth)
    reach = threshold if loss == "huber" else np.inf
    return np.clip(scores - labels, -reach, reach)


def softmax_residuals(scores: Floats, labels: Floats) -> Floats:
    """The gradient of the softmax loss in its scores, (m, K); labels are numbers of classes."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    residuals: Floats = shares / shares.sum(axis=1, keepdims=True)
    residuals[np.arange(len(labels)), labels.astype(np.intp)] -= 1
    return residuals


def learn(
    X: NDArray[np.float64],
    labels: Floats,
    indices: NDArray[np.int64],
    *,
    loss: str,
    batch_size: int,
    radius: float | None,
    norm_bound: float,
    clip_norm: float,
    classes: int | None = None,
    threshold: float = 1.0,
    margin: float = 1.0,
    box: tuple[float, float] | None = None,
    last: bool = False,
    start: Floats | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    strong_convexity: float = 0.0,
    noise_multiplier: float = 0.0,
    rng: np.random.Generator | None = None,
    printed: bool = False,
) -> Floats:
    """The mean of the models before each step, or the last, for X of shape (n, d).

    It has shape (d,), or (d, classes). The indices of the draws are given by step. With `printed`
    the steps are those of Kohen and Sheffet's Algorithm 3, D / (sigma sqrt(r)) or D / (lambda r):
    infinite without noise, too long by about sqrt(d) with it, and D times too long where the
    objective is strongly convex. Their proof has those that are taken without it. Steps change no
    privacy: that of noise_multiplier holds for both.
    """
    d = X.shape[1]
    shape = (d,) if classes is None else (d, classes)

    def project(w: Floats) -> Floats:
        if box is not None:
            return np.clip(w, *box)
        norm, most = float(np.linalg.norm(w)), float(radius or 0)
        return w if norm <= most else w * (most / norm)

    w = project(np.zeros(shape) if start is None else start)
    total = np.zeros(shape)
    bound = clip_norm * np.sqrt(1 + w.size * (noise_multiplier / batch_size) ** 2)
    diameter = 2 * float(radius or 0) if box is None else (box[1] - box[0]) * np.sqrt(w.size)
    steps = indices.reshape(-1, batch_size)
    for number, rows in enumerate(steps, 1):
        total += w
        B = X[rows]
        norms = np.sqrt(np.einsum("ij,ij->i", B, B))
        B = B * (norm_bound / np.maximum(norms, norm_bound))[:, None]
        if classes is None:
            factors = slopes(loss, B @ w, labels[rows], threshold, margin)[:, None]
        else:
            factors = softmax_residuals(B @ w, labels[rows])
        lengths = np.linalg.norm(factors, axis=1) * np.minimum(norms, norm_bound)
        factors = factors * (clip_norm / np.maximum(lengths, clip_norm))[:, None]
        gradient = (B.T @ factors).reshape(shape)
        if rng is not None and noise_multiplier:
            gradient = gradient + rng.normal(0, noise_multiplier * clip_norm, shape)
        if strong_convexity:
            step = (diameter if printed else 1) / (strong_convexity * number)
        else:
            length = noise_multiplier * clip_norm / batch_size if printed else bound
            step = diameter / (length * np.sqrt(number))
        w = w - step * (gradient / batch_size + l2 * w)
        if l1:
            w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
        w = project(w)
    mean: Floats = total / len(steps)
    return w if last else mean


Rows = NDArray[Any]


def losses(loss: str, scores: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Computes the loss of every record, and its derivative in the scores.

    Args:
        loss: "squared", "logistic" or "softmax".
        scores: Scores of shape (m,), or (m, classes) for "softmax".
        labels: Labels of shape (m,): real for "squared", -1 and 1 for "logistic", numbers of
            classes for "softmax".
    """
    if loss == "squared":
        slopes = scores - labels
        values = slopes * slopes
        slopes *= 2
        return values, slopes
    if loss == "logistic":
        margins = labels * scores
        small = np.exp(-np.abs(margins))
        wrong = np.where(margins < 0, 1.0, small)
        return np.maximum(-margins, 0) + np.log1p(small), -labels * wrong / (1 + small)
    above = scores - scores.max(axis=1, keepdims=True)
    records, classes = np.arange(len(labels)), labels.astype(np.intp)
    of_label = above[records, classes]
    shares = np.exp(above, out=above)
    totals = shares.sum(axis=1)
    shares /= totals[:, None]
    shares[records, classes] -= 1
    return np.log(totals) - of_label, shares


def evaluate_eliminated(
    X: Rows,
    y: Floats,
    w: Floats,
    *,
    cap: float,
    kappa_1: float,
    offset: float = 0.0,
    loss: str = "squared",
) -> tuple[float, Floats]:
    """The sum of q (l + offset) + kappa_1 `cap**2` / q at the best q in (0, cap], and its gradient.

    X (m, d); w (d,), or (classes, d) of "softmax". Returns the sum and the gradient, as w.
    """
    values, slopes = losses(loss, _scores(X, w), y)
    if offset:
        values += offset
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = kappa_1 / values
    np.sqrt(weights, out=weights)
    # Where loss and kappa_1 are 0 the ratio is NaN, and fmin returns the other argument.
    np.fmin(weights, 1, out=weights)
    weights *= cap
    objective = float(weights @ (values + np.maximum(values, kappa_1)))
    return objective, _gradient(X, slopes, weights)


def evaluate_weighted(
    X: Rows, y: Floats, w: Floats, weights: Floats, *, loss: str = "squared"
) -> tuple[float, Floats, Floats]:
    """Computes the sum of q l, its gradient and every loss, for weights q of shape (m,).

    Shapes are those of `evaluate_eliminated`.
    """
    values, slopes = losses(loss, _scores(X, w), y)
    return float(weights @ values), _gradient(X, slopes, weights), values


def round_coefficients(slopes: Floats, weights: Floats, scale: float, most: float) -> Floats:
    """Rounds slope * weight * scale to integers; records of norm above `most` get 0."""
    rows = slopes.reshape(len(weights), -1)
    rounded = np.rint(rows * (weights * scale)[:, None])
    with np.errstate(over="ignore", invalid="ignore"):
        within = np.square(rounded).sum(axis=1) <= most * most
    integers: Floats = np.where(within[:, None], rounded, 0.0).reshape(slopes.shape)
    return integers


def round_rows(X: Rows, bound: float, units: float) -> tuple[Rows, float]:
    """Shrinks rows to norm `bound`, scales them up, and rounds them to integers.

    Returns the integers and the scale. The integer rows have norm at most `units`; rows that exceed
    it after rounding become 0.
    """
    scale = (units - np.sqrt(X.shape[1]) / 2 - 1) / bound
    rows = X.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows *= (scale * np.fmin(bound / norms, 1))[:, None]
    np.rint(rows, out=rows)
    rows[np.square(rows).sum(axis=1) > units * units] = 0
    return rows.astype(X.dtype), float(scale)


def _scores(X: Rows, w: Floats) -> Floats:
    scores: Floats = (X @ w.astype(X.dtype, copy=False).T).astype(np.float64, copy=False)
    return scores


def _gradient(X: Rows, slopes: Floats, weights: Floats) -> Floats:
    slopes *= weights if slopes.ndim == 1 else weights[:, None]
    gradient: Floats = slopes.T.astype(X.dtype, copy=False) @ X
    return gradient.astype(np.float64, copy=False)


def fit_additive(
    bins: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    logistic: bool,
    base: int,
    limits: tuple[int, int],
    rates: Floats,
    curvatures: list[Floats],
    gains: list[Floats],
    release: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> list[NDArray[np.int64]]:
    """The values of all bins of an additive model in units of 2^-16, a list of columns.

    bins: of each column and record, shape (columns, n).
    curvatures, gains: of each column, shapes (width,) and (width, width).
    release: makes of the exact sums of a step what is released of them.
    """
    one = 1 << 16
    values = [np.zeros(len(curve), np.int64) for curve in curvatures]
    averages = [np.zeros(len(curve)) for curve in curvatures]
    for rate in rates:
        for column, gain in enumerate(gains):
            scores = base + sum(part[some] for part, some in zip(values, bins, strict=True))
            rest = labels - scores
            if logistic:
                small = np.exp(-np.abs(scores / one))
                shares = np.where(scores < 0, small, 1.0) / (1 + small)
                rest = labels - (shares * one).astype(np.int64)
            sums = np.zeros(len(gain), np.int64)
            np.add.at(sums, bins[column], rest.clip(*limits))
            wanted = release(sums) / one + curvatures[column] * (values[column] / one)
            averages[column] += rate * (wanted - averages[column])
            # Products are added in their order, and halves are rounded away from 0.
            products = np.add.accumulate(gain * averages[column], axis=1)[:, -1] * one
            rounded = np.copysign(np.floor(np.abs(products) + 0.5), products)
            values[column] = rounded.astype(np.int64).clip(-(1 << 20), 1 << 20)
    return values
