"""DP-SGD with one setting for all tables (Abadi et al. 2016), in numpy.

Batches are Poisson draws of 256 expected records (a quarter of them, where those are fewer than
1,024), gradients are clipped to norm 1, and the noise is what dp_accounting's Renyi accountant asks
for: what Opacus does with its defaults. Linear models with logistic, softmax or squared loss; their
rows have numbers in [-1, 1] and a constant. Neighbors are a record more or less. Epochs and rates
did best in the mean over eleven of the tables themselves at epsilon 1, in the rival's favor.
Needs `pip install dp-accounting`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_dp_mechanism,
)
from dp_accounting.rdp import RdpAccountant
from peer_tasks import Floats, PeerTask, Places, Predict, main

# Renyi orders: integers, whose divergence is a finite sum, closer where the best one mostly lies.
ORDERS = (*range(2, 24), *(round(24 * 2 ** (place / 4)) for place in range(24)))
BATCH, EPOCHS, CLIP = 256, 20, 1.0
# Of classes, and of targets, whose gradients do not fade.
RATES = (0.5, 0.2)


def by_descent(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """The last iterate of so many epochs."""
    share = min(BATCH / len(train), 0.25)
    steps = math.ceil(EPOCHS / share)
    rate = RATES[0] if task.classes else RATES[1]
    sigma = CLIP * noise_multiplier(epsilon, task.delta, share, steps)
    rng = np.random.default_rng(seed)
    rows, answers = task.centered, np.eye(2)[task.y] if task.classes == 2 else task.answers
    X, Y = rows[train], answers[train]
    weights = np.zeros((X.shape[1], Y.shape[1]))
    norms = np.linalg.norm(X, axis=1)
    for _ in range(steps):
        batch = np.flatnonzero(rng.random(len(X)) < share)
        residuals = respond(task, X[batch] @ weights) - Y[batch]
        lengths = norms[batch] * np.linalg.norm(residuals, axis=1)
        residuals *= np.minimum(1, CLIP / np.maximum(lengths, 1e-12))[:, None]
        total = X[batch].T @ residuals + sigma * rng.normal(size=weights.shape)
        weights -= rate * total / (share * len(X))
    predicted = respond(task, rows @ weights)
    return lambda places: predicted[places] if task.classes else predicted[places, 0]


def respond(task: PeerTask, scores: Floats) -> Floats:
    """Probabilities by softmax, or targets as they are."""
    if task.classes == 0:
        return scores
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@cache
def noise_multiplier(epsilon: float, delta: float, share: float, steps: int) -> float:
    """The noise of a step over its clip norm."""

    def event(noise: float) -> SelfComposedDpEvent:
        return SelfComposedDpEvent(PoissonSampledDpEvent(share, GaussianDpEvent(noise)), steps)

    return float(
        calibrate_dp_mechanism(
            lambda: RdpAccountant(ORDERS, NeighboringRelation.ADD_OR_REMOVE_ONE),
            event,
            epsilon,
            delta,
            tol=1e-3,
        )
    )


if __name__ == "__main__":
    main([("DP-SGD", "both", by_descent)], ("dp-accounting", "numpy"))
