"""AdaSSP: least squares from noisy moments with an adaptive ridge (Wang 2018, algorithm 2).

In numpy, from the paper. X'X, X'y and the least eigenvalue of X'X get a third of (epsilon, delta)
each; the ridge is what the noise asks for beyond the eigenvalue. Neighbors are a record more or
less. Two classes are the targets -1 and 1; of more, each is a bit, whose vector has norm 1. As in
the paper, the noise of epsilon above 1 is that of the classic Gaussian mechanism.
"""

from __future__ import annotations

import math

import numpy as np
from peer_tasks import Floats, PeerTask, Places, Predict, main, to_shares

# The probability with which the ridge may be too small for the noise.
RHO = 0.05


def by_adassp(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """The paper's algorithm, on rows with numbers in [-1, 1] and a constant."""
    rows, rng = task.centered, np.random.default_rng(seed)
    norm = math.hypot(task.norm, 1)
    weights = solve(rows[train], task.answers[train], norm, (epsilon, task.delta), rng)

    def predict(places: Places) -> Floats:
        scores = rows[places] @ weights
        return to_shares(scores) if task.classes else scores[:, 0]

    return predict


def solve(
    X: Floats, Y: Floats, norm: float, privacy: tuple[float, float], rng: np.random.Generator
) -> Floats:
    """Weights, a column for each of Y; rows of X have at most this norm, those of Y at most 1."""
    epsilon, delta = privacy
    moments, columns = X.T @ X, X.shape[1]
    log, third = math.log(6 / delta), epsilon / 3
    scale = math.sqrt(log) / third
    least = float(np.linalg.eigvalsh(moments)[0])
    least += scale * norm**2 * rng.normal() - log / third * norm**2
    wanted = scale * math.sqrt(columns * math.log(2 * columns**2 / RHO)) * norm**2
    ridge = max(0.0, wanted - max(least, 0.0))
    noise = np.triu(rng.normal(size=moments.shape))
    noise += np.triu(noise, 1).T
    products = X.T @ Y + scale * norm * rng.normal(size=(columns, Y.shape[1]))
    return np.linalg.solve(moments + scale * norm**2 * noise + ridge * np.eye(columns), products)


if __name__ == "__main__":
    main([("AdaSSP", "both", by_adassp)], ("numpy",))
