"""Rounds of Subsample-Test-Reweigh in plain numpy, with floats for coins and no privacy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import score, weights

Bits = NDArray[np.uint8]


def run(
    X: Bits,
    y: Bits,
    conjunctions: Sequence[score.Literals],
    *,
    kappa: float,
    eta: float,
    draws: int,
    epsilon: float,
    rounds: int,
    rng: np.random.Generator,
) -> list[int]:
    """The conjunction that the exponential mechanism chooses in every round, on dense draws."""
    columns, w = score.columns(X), np.ones(len(y))
    chosen = []
    for _ in range(rounds):
        some = weights.draw(weights.project(w, kappa), draws, rng)
        features, labels = score.packed(score.columns(X[some])), score.packed(y[some])
        errors = score.packed_conjunction_errors(features, labels, draws, conjunctions)
        noisy = -epsilon / 2 * np.array(errors) + rng.gumbel(size=len(conjunctions))
        best = int(noisy.argmax())
        weights.update(w, predict(columns, conjunctions[best]) != y, eta)
        chosen.append(best)
    return chosen


def predict(columns: Bits, literals: score.Literals) -> Bits:
    """The predictions of a conjunction on all records."""
    said = np.ones(columns.shape[1], np.uint8)
    for feature, wanted in literals:
        said &= columns[feature] if wanted else columns[feature] ^ 1
    return said
