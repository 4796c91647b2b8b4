"""Projected stochastic gradient descent in plain numpy: one row a step, or minibatches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def slopes(loss: str, scores: Floats, labels: Floats, threshold: float = 1.0) -> Floats:
    """Derivative of each loss in its score; labels -1 and 1 for hinge and logistic; (m,)."""
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
    batch: int,
    radius: float,
    row_bound: float,
    lipschitz: float,
    threshold: float = 1.0,
    l1: float = 0.0,
    l2: float = 0.0,
    convexity: float = 0.0,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Mean of the models before each step; X (n, d), indices (steps * batch,). Returns (d,)."""
    d = X.shape[1]
    w, total = np.zeros(d), np.zeros(d)
    bound = lipschitz * np.sqrt(1 + d * (noise / batch) ** 2)
    steps = indices.reshape(-1, batch)
    for number, rows in enumerate(steps, 1):
        total += w
        B = X[rows]
        norms = np.sqrt(np.einsum("ij,ij->i", B, B))
        B = B * (row_bound / np.maximum(norms, row_bound))[:, None]
        factors = slopes(loss, B @ w, labels[rows], threshold)
        lengths = np.abs(factors) * np.minimum(norms, row_bound)
        gradient = (factors * (lipschitz / np.maximum(lengths, lipschitz))) @ B
        if rng is not None and noise:
            gradient = gradient + rng.normal(0, noise * lipschitz, d)
        step = 1 / (convexity * number) if convexity else 2 * radius / (bound * np.sqrt(number))
        w = w - step * (gradient / batch + l2 * w)
        if l1:
            w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0)
        norm = np.linalg.norm(w)
        w = w if norm <= radius else w * (radius / norm)
    mean: Floats = total / len(steps)
    return mean
