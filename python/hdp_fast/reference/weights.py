"""Weights over records in plain numpy: projection by sorting or by partition, updates and draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def project(w: Floats, kappa: float) -> Floats:
    """Projects weights to min(c w, 1), where the least c makes the sum kappa n; float64 (n,)."""
    ascending = np.sort(w)
    sums = np.cumsum(ascending)
    n, mass = len(w), kappa * len(w)
    # With the k largest capped at 1, c = (mass - k) / the sum of the others; k is at most mass.
    largest = np.arange(max(n - int(mass) - 1, 0), n)
    c = (mass - (n - 1 - largest)) / sums[largest]
    fits = np.flatnonzero((c * ascending[largest] <= 1) & (c > 0))
    scale = c[fits[-1]] if fits.size else 1 / ascending[n - round(mass)]
    projected: Floats = np.minimum(w * scale, 1.0)
    return projected


def project_by_partition(w: Floats, kappa: float, out: Floats | None = None) -> Floats:
    """The same, fastest in numpy: the weights that may be capped are partitioned, then sorted.

    The result is written to `out`, which may be w, or to a new array.
    """
    n, mass = len(w), kappa * len(w)
    size = min(math.ceil(mass) + 1, n)
    parted = np.partition(w, n - size)
    largest = np.sort(parted[n - size :])
    sums = np.cumsum(largest) + parted[: n - size].sum()
    c = (mass - np.arange(size - 1, -1, -1)) / sums
    fits = np.flatnonzero((c * largest <= 1) & (c > 0))
    scale = c[fits[-1]] if fits.size else 1 / largest[size - round(mass)]
    projected: Floats = np.multiply(w, scale, out=out)
    return np.minimum(projected, 1.0, out=projected)


def update(w: Floats, losses: Floats, eta: float) -> None:
    """Multiplies the weights by exp(-eta (1 - losses)), in place."""
    w *= np.exp(-eta * (1 - losses))


def draw(w: Floats, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws indices with these weights; int64 (m,)."""
    sums = np.cumsum(w)
    drawn: NDArray[np.int64] = np.searchsorted(sums, rng.random(m) * sums[-1], side="right")
    return drawn


def run_printed(
    learn: Callable[[Floats], Any],
    measure: Callable[[Any], Floats],
    ask: Callable[[Any], float],
    n: int,
    *,
    eta: float,
    rounds: int,
    threshold: float,
    kappa: float | None = None,
    largest: float = 1.0,
) -> tuple[Any, int]:
    """Algorithms 1, 2 and 4 of Kohen and Sheffet line by line: the hypothesis, and the last round.

    Args:
        learn: From the probabilities of the n records in a draw to a hypothesis.
        measure: From a hypothesis to its losses on the n records, in [0, largest].
        ask: From a hypothesis to the estimate of its loss on the target.
        n: Number of records.
        eta: Rate of the update, alpha / 8.
        rounds: Largest number of rounds.
        threshold: 2 alpha + tau for Algorithm 1, 3 alpha for the others, plus alpha_H.
        kappa: Density; None for Algorithm 1, which does not project.
        largest: D L in Algorithm 4.

    Returns:
        The hypothesis that was accepted, or None after all rounds, of which the paper says nothing.

    Guarantee:
        That of `learn` on its draws, composed over the rounds, for the curator, and for agents that
        of `ask`. Answers with the printed Gaussian noise are (epsilon, delta)-DP for losses in
        [0, 1] and the epsilons that local.GaussianRandomizer.printed takes, and not beyond.
    """
    w = np.full(n, 1.0 if kappa is None else kappa)
    for number in range(1, rounds + 1):
        mu = w if kappa is None else project(w, kappa)
        hypothesis = learn(mu / mu.sum())
        if ask(hypothesis) <= threshold:
            return hypothesis, number
        w = w * np.exp(-eta / largest * (largest - measure(hypothesis)))
    return None, rounds
