"""Votes, distances and answers with numpy alone, and what Bassily et al. 2018 printed.

What is printed violates its guarantee: it is here to be shown wrong, and is offered nowhere else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def count_votes(votes: NDArray[np.uint8], labels: int) -> Integers:
    """Votes (k, m) for labels below `labels` as counts (m, labels)."""
    counts = np.empty((votes.shape[1], labels), np.int64)
    for label in range(labels):
        np.sum(votes == label, axis=0, dtype=np.int64, out=counts[:, label])
    return counts


def stands(counts: Integers) -> tuple[Integers, Integers]:
    """Winners and distances of counts (m, K), K at least 2, by their definition."""
    winners = counts.argmax(axis=1)
    most = np.take_along_axis(counts, winners[:, None], axis=1)
    labels = np.arange(counts.shape[1])
    margins = (most - counts - 1 + (winners[:, None] < labels)) // 2
    np.put_along_axis(margins, winners[:, None], np.iinfo(np.int64).max, axis=1)
    return winners, margins.min(axis=1)


def printed_distance(counts: Integers) -> Integers:
    """The distances of the paper's Algorithm 4: a gap less 1, which changes by up to 2."""
    ordered = np.sort(counts, axis=1)
    return np.maximum(ordered[:, -1] - ordered[:, -2] - 1, 0)
