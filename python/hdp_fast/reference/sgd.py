"""Projected stochastic gradient descent in plain numpy, with one row a step or with minibatches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def slopes(loss: str, scores: Floats, labels: Floats, threshold: float = 1.0) -> Floats:
    """The derivative of each loss in its score, (m,); hinge and logistic have labels -1 and 1."""
    if loss == "hinge":
        return np.where(labels * scores < 1, -labels, 0.0)
    if loss == "logistic":
        with np.errstate(over="ignore"):
            growth: Floats = np.exp(labels * scores)
        return -labels / (1 + growth)
    reach = threshold if loss == "huber" else np.inf
    return np.clip(scores - labels, -reach, reach)


def learn(
    X: NDArray[np.float64],
    labels: Floats,
    indices: NDArray[np.int64],
    *,
    loss: str,
    batch_size: int,
    radius: float,
    norm_bound: float,
    clip_norm: float,
    threshold: float = 1.0,
    l1: float = 0.0,
    l2: float = 0.0,
    strong_convexity: float = 0.0,
    noise_multiplier: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Floats:
    """The mean of the models before each step, of shape (d,), for X of shape (n, d).

    The indices of the draws are given by step.
    """
    d = X.shape[1]
    w, total = np.zeros(d), np.zeros(d)
    bound = clip_norm * np.sqrt(1 + d * (noise_multiplier / batch_size) ** 2)
    steps = indices.reshape(-1, batch_size)
    for number, rows in enumerate(steps, 1):
        total += w
        B = X[rows]
        norms = np.sqrt(np.einsum("ij,ij->i", B, B))
        B = B * (norm_bound / np.maximum(norms, norm_bound))[:, None]
        factors = slopes(loss, B @ w, labels[rows], threshold)
        lengths = np.abs(factors) * np.minimum(norms, norm_bound)
        gradient = (factors * (clip_norm / np.maximum(lengths, clip_norm))) @ B
        if rng is not None and noise_multiplier:
            gradient = gradient + rng.normal(0, noise_multiplier * clip_norm, d)
        step = (
            1 / (strong_convexity * number)
            if strong_convexity
            else 2 * radius / (bound * np.sqrt(number))
        )
        w = w - step * (gradient / batch_size + l2 * w)
        if l1:
            w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
        norm = np.linalg.norm(w)
        w = w if norm <= radius else w * (radius / norm)
    mean: Floats = total / len(steps)
    return mean
