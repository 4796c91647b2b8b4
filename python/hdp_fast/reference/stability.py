"""Votes, distances and answers with numpy alone, and what Bassily et al. 2018 printed.

What the paper printed violates its guarantee. It is here so that tests can show this, and is
offered nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def count_votes(votes: NDArray[np.uint8], labels: int) -> Integers:
    """Counts votes (k, m) for labels 0, ..., labels - 1 into an array (m, labels)."""
    counts = np.empty((votes.shape[1], labels), np.int64)
    for label in range(labels):
        np.sum(votes == label, axis=0, dtype=np.int64, out=counts[:, label])
    return counts


def find_winners(counts: Integers) -> tuple[Integers, Integers]:
    """The winners and distances of counts (m, K), K at least 2, by their definition."""
    winners = counts.argmax(axis=1)
    most = np.take_along_axis(counts, winners[:, None], axis=1)
    labels = np.arange(counts.shape[1])
    margins = (most - counts - 1 + (winners[:, None] < labels)) // 2
    np.put_along_axis(margins, winners[:, None], np.iinfo(np.int64).max, axis=1)
    distances: Integers = margins.min(axis=1)
    return winners, distances


def printed_distance(counts: Integers) -> Integers:
    """The distances of the paper's Algorithm 4, gaps less 1, which a record changes by up to 2."""
    ordered = np.sort(counts, axis=1)
    gaps: Integers = ordered[:, -1] - ordered[:, -2] - 1
    return np.maximum(gaps, 0)


def adversary_delta(
    pairs: list[tuple[float, float]],
    queries: int,
    bottoms: int | None,
    epsilon: float,
) -> float:
    """The exact delta at epsilon of answers to queries that an adversary chooses one by one.

    Each of the `pairs` is a query: its probabilities of heads on two neighboring data sets. Heads
    may come at most `bottoms` times. Every strategy of the adversary is tried.
    """
    first, second = np.array(pairs).T

    def value(p: Floats, q: Floats, left: int, heads: int) -> Floats:
        if left == 0 or heads == 0:
            excess: Floats = p - np.exp(epsilon) * q
            return np.maximum(excess, 0)
        p, q = p[..., None], q[..., None]
        yes = value(p * first, q * second, left - 1, heads - 1)
        no = value(p * (1 - first), q * (1 - second), left - 1, heads)
        best: Floats = (yes + no).max(axis=-1)
        return best

    heads = queries + 1 if bottoms is None else bottoms
    return float(value(np.ones(()), np.ones(()), queries, heads))


def respond_to_ones(
    probabilities: Floats,
    ones: Integers,
    members: int,
    bottoms: int | None,
    rng: np.random.Generator,
) -> Integers:
    """Answers queries with two labels by a table: -1, 0 or 1, and no bottoms by a table of votes.

    The coins are floating-point numbers, which protect no one.
    """
    gap = 2 * ones.astype(np.int64) - members
    uniform = rng.random(ones.size)
    if bottoms is None:
        levels = np.minimum(np.abs(gap) // 2, len(probabilities) - 1)
        labels: Integers = ((uniform < probabilities[levels]) ^ (gap > 0)).astype(np.int64)
        return labels
    # Ties go to label 0, which therefore needs one vote less to win.
    distances = np.where(gap > 0, gap - 1, -gap) // 2
    levels = np.minimum(distances, len(probabilities) - 1)
    answers = np.where(uniform < probabilities[levels], -1, gap > 0)
    ends = np.flatnonzero(answers == -1)[bottoms - 1 : bottoms]
    answered: Integers = answers[: ends[0] + 1] if ends.size else answers
    return answered


def gaussian_vote_law(
    counts: Sequence[int], gap: int, masses: Mapping[int, Decimal]
) -> dict[int, Decimal]:
    """The probability of each label, and of -1, after noise with these masses on the counts.

    A label is the answer if its noisy count is ahead of every other one by the gap, and of those of
    smaller labels by 1 at least.
    """
    with localcontext(prec=60):
        reach = max(masses)
        below = dict(enumerate(accumulate(masses[x] for x in range(-reach, reach + 1)), -reach))
        law = {r: _win_probability(r, counts, gap, masses, below) for r in range(len(counts))}
        return {-1: 1 - sum(law.values(), Decimal(0)), **law}


def _win_probability(
    label: int,
    counts: Sequence[int],
    gap: int,
    masses: Mapping[int, Decimal],
    below: Mapping[int, Decimal],
) -> Decimal:
    others = [(c, max(gap, int(r < label))) for r, c in enumerate(counts) if r != label]
    chance = Decimal(0)
    for x, mass in masses.items():
        for count, least in others:
            limit = min(counts[label] + x - least - count, max(below))
            mass *= below.get(limit, Decimal(0))
        chance += mass
    return chance


def discrete_laplace(scale: float, reach: int) -> Floats:
    """The probabilities of -reach, ..., reach."""
    ratio = np.exp(-1 / scale)
    masses: Floats = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1))
    return masses


def above_threshold_law(
    values: tuple[int, ...], threshold: int, scale: float, bottoms: int
) -> dict[tuple[int, ...], float]:
    """The law of the answers to queries with these values: 1 for above, up to the last bottom."""
    reach = int(60 * scale)
    noise, wide = discrete_laplace(scale, reach), discrete_laplace(2 * scale, 4 * reach)
    # Pr[value + noise of a query > threshold + x] for every noise x of the threshold.
    beyond = np.cumsum(wide[::-1])[::-1]
    places = np.arange(-reach, reach + 1) + threshold + 4 * reach + 1
    above = {value: beyond[np.clip(places - value, 0, 8 * reach)] for value in set(values)}
    law: dict[tuple[int, ...], float] = {}

    def follow(answers: tuple[int, ...], before: float, joint: Floats, left: int) -> None:
        if left == 0 or len(answers) == len(values):
            law[answers] = before * float(joint.sum())
            return
        passes = joint * above[values[len(answers)]]
        follow((*answers, 1), before, passes, left)
        fails = before * float((joint - passes).sum())
        follow((*answers, 0), fails, noise, left - 1)

    follow((), 1.0, noise, bottoms)
    return law
