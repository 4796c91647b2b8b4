"""Projected stochastic gradient descent in plain numpy, with one row a step or with minibatches."""

from __future__ import annotations

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
) -> Floats:
    """The mean of the models before each step, or the last, for X of shape (n, d).

    It has shape (d,), or (d, classes). The indices of the draws are given by step.
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
        step = (
            1 / (strong_convexity * number)
            if strong_convexity
            else diameter / (bound * np.sqrt(number))
        )
        w = w - step * (gradient / batch_size + l2 * w)
        if l1:
            w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
        w = project(w)
    mean: Floats = total / len(steps)
    return w if last else mean
