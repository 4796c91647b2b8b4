"""Votes, distances and answers with numpy alone, and what Bassily et al. 2018 printed.

The printed algorithms have Laplace noise in floats. What they keep is stated beside what they
promise: Algorithms 6 to 8 keep less, Algorithms 3 to 5 less at large epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import accumulate
from typing import Any, NamedTuple

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


def bound_delta(
    pairs: list[tuple[float, float]],
    queries: int,
    bottoms: int | None,
    epsilon: float,
    *,
    step: float = 1e-3,
) -> float:
    """A bound on adversary_delta for any number of queries, close to it for a small step.

    It follows the best adversary's gain as a function of x, exp(epsilon) times the likelihood ratio
    of the two data sets, on a grid of factors exp(step). The gain is a convex function of x that
    falls from 1 at x = 0, so that the chord between two points of the grid lies above it, and the
    last value above all beyond the grid. Rounding is not counted.
    """
    reach = max(1.5, 0.75 * epsilon)
    x = np.exp(np.arange(epsilon - 2 * reach, epsilon + reach + step, step))
    # Gains after any number of heads: row b is for b more heads. Row 0 has ended.
    heads = 1 if bottoms is None else bottoms
    gains = np.tile(np.maximum(1 - x, 0), (heads + 1, 1))
    for _ in range(queries):
        best = np.zeros((heads, x.size))
        before = gains[1:] if bottoms is None else gains[:-1]
        for p, q in pairs:
            gain = p * _move(before, x, step, q / p)
            if p < 1:
                gain += (1 - p) * _move(gains[1:], x, step, (1 - q) / (1 - p))
            np.maximum(best, gain, out=best)
        gains = np.concatenate([gains[:1], best])
    return float(_move(gains[-1:], x, step, math.exp(epsilon) / x[0])[0, 0])


def _move(gains: Floats, x: Floats, step: float, ratio: float) -> Floats:
    """The gains at x times a ratio, from chords between the points of the grid."""
    if ratio == 0:
        return np.ones_like(gains)
    whole = math.floor(math.log(ratio) / step)
    weight = min(max((ratio * math.exp(-whole * step) - 1) / math.expm1(step), 0.0), 1.0)
    places, last = np.arange(x.size) + whole, x.size - 1
    first, second = (np.clip(places + i, 0, last) for i in (0, 1))
    chords: Floats = (1 - weight) * gains[:, first] + weight * gains[:, second]
    # Below the grid, between the gain of 1 at x = 0 and the first point.
    below = places < 0
    chords[:, below] = 1 + (x * ratio / x[0])[below] * (gains[:, :1] - 1)
    return chords


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


class Guarantee(NamedTuple):
    """What a printed algorithm keeps when one record is replaced.

    Attributes:
        epsilon: The epsilon that it promises.
        delta: A delta that it keeps at this epsilon, 1 if none is known.
        promised: The delta that it promises.
    """

    epsilon: float
    delta: float
    promised: float


def compose_pure(each: float, releases: int, epsilon: float) -> float:
    """The delta at epsilon of pure releases: Kairouz, Oh and Viswanath 2017, Theorem 3.3."""
    total = 0.0
    for lies in range(releases + 1):
        loss = (releases - 2 * lies) * each
        if loss <= epsilon:
            break
        ways = math.lgamma(releases + 1) - math.lgamma(lies + 1) - math.lgamma(releases - lies + 1)
        log = ways + (releases - lies) * each - releases * math.log1p(math.exp(each))
        total += math.exp(log) * -math.expm1(epsilon - loss)
    return total


def passing_probability(gap: float, scale: float) -> float:
    """Pr[Lap(2 scale) - Lap(scale) > gap], by which a distance passes a threshold above it."""
    if gap < 0:
        return 1 - passing_probability(-gap, scale)
    return 2 / 3 * math.exp(-gap / 2 / scale) - math.exp(-gap / scale) / 6


class NoisyThreshold:
    """The threshold of Algorithms 1, 3 and 6, whose noise is drawn anew after each bottom."""

    def __init__(self, threshold: float, scale: float, rng: np.random.Generator):
        self._threshold, self._scale, self._rng = threshold, scale, rng
        self._draw()

    def _draw(self) -> None:
        self._noisy = self._threshold + self._rng.laplace(0, self._scale)

    def passes(self, value: float) -> bool:
        """Whether the value with noise exceeds the threshold with its own."""
        above = value + self._rng.laplace(0, 2 * self._scale) > self._noisy
        if not above:
            self._draw()
        return bool(above)


def sparse_vector(
    values: Iterable[float],
    threshold: float,
    T: int,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> list[bool]:
    """Algorithm 1: False for bottom; it ends at bottom T + 1."""
    scale = math.sqrt(32 * T * math.log(1 / delta)) / epsilon
    noisy, answers = NoisyThreshold(threshold, scale, rng), list[bool]()
    for value in values:
        if answers.count(False) > T:
            break
        answers.append(noisy.passes(value))
    return answers


def release_stable(
    value: Any, distance: float, *, epsilon: float, delta: float, rng: np.random.Generator
) -> Any:
    """Algorithm 2 with the threshold of Theorem 3.2: the value, or None for bottom."""
    above = distance + rng.laplace(0, 1 / epsilon) > math.log(1 / delta) / epsilon
    return value if above else None


def release_online(
    queries: Iterable[tuple[int, float]],
    T: int,
    *,
    m: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> list[int]:
    """Algorithm 3: the values of at most m queries, given with their distances; -1 for bottom."""
    scale = math.sqrt(32 * T * math.log(2 / delta)) / epsilon
    noisy = NoisyThreshold(2 * scale * math.log(2 * m / delta), scale, rng)
    answers = list[int]()
    for value, distance in queries:
        if answers.count(-1) > T:
            break
        answers.append(value if noisy.passes(distance) else -1)
    return answers


def online_guarantee(T: int, m: int, epsilon: float, delta: float) -> Guarantee:
    """What Algorithm 3 keeps with the distance of Algorithm 4, and hence Algorithms 4 and 5."""
    scale = math.sqrt(32 * T * math.log(2 / delta)) / epsilon
    return _guarantee((T + 1, m), 2 * scale * math.log(2 * m / delta), scale, (epsilon, delta))


def _guarantee(
    limits: tuple[int, int], threshold: float, scale: float, promise: tuple[float, float]
) -> Guarantee:
    """limits: numbers of bottoms and of comparisons."""
    # A vote moves a distance by up to 2. It changes a winner at a distance of at most 1.
    labels = min(limits) * passing_probability(threshold - 1, scale)
    kept = compose_pure(4 / scale, limits[0], promise[0]) + labels
    return Guarantee(promise[0], min(1.0, kept), promise[1])


# A learner takes a chunk of records and returns a function from points to their labels or scores.
Learner = Callable[[NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]


def split_records(records: NDArray[Any], k: int) -> list[NDArray[Any]]:
    """Step 2 of Algorithm 4 and step 1 of Algorithm 7: k chunks of the same size, by position."""
    size = len(records) // k
    return [records[i * size : (i + 1) * size] for i in range(k)]


def label_points(
    learn: Learner,
    records: NDArray[Any],
    points: NDArray[Any],
    T: int,
    *,
    labels: int,
    k: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[list[int], Guarantee]:
    """Algorithm 4 on a chunk for each of k members: labels of points, -1 for bottom.

    k as printed is `members` of stability.paper_sizes.
    """
    votes = np.stack([learn(chunk)(points) for chunk in split_records(records, k)])
    counts = count_votes(votes.astype(np.uint8), labels)
    queries = zip(counts.argmax(axis=1).tolist(), printed_distance(counts).tolist(), strict=True)
    goal = {"epsilon": epsilon, "delta": delta}
    answers = release_online(queries, T, m=len(points), **goal, rng=rng)
    return answers, online_guarantee(T, len(points), **goal)


def learn_from_labels(
    learn: Callable[[NDArray[Any], Integers], Any],
    points: NDArray[Any],
    answers: Sequence[int],
    rng: np.random.Generator,
) -> Any:
    """Algorithm 5: what is learned from points and their labels, 0 or 1.

    A random label stands in for bottom, and for what Algorithm 4 did not get to.
    """
    labels = np.full(len(points), -1)
    labels[: len(answers)] = answers
    return learn(points, np.where(labels < 0, rng.integers(0, 2, len(points)), labels))


def learn_scores(learn: Learner, records: NDArray[Any], k: int) -> list[Any]:
    """Algorithm 7: the soft-label classifiers of k members."""
    return [learn(chunk) for chunk in split_records(records, k)]


def classify_softly(scores: Floats, bins: int, noisy: NoisyThreshold) -> tuple[float | None, bool]:
    """Algorithm 8 for one point, with width 1 / bins: its score, None for bottom, and the flag."""
    plain = np.minimum((scores * bins).astype(np.int64), bins - 1)
    for shifted in (False, True):
        places = np.floor(scores * bins - 0.5).astype(np.int64) if shifted else plain
        size = bins - shifted
        counts = np.bincount(places[(places >= 0) & (places < size)], minlength=size)
        # A bin of its own without votes: the second largest count where there is one bin.
        if noisy.passes(float(printed_distance(np.append(counts, 0)[None])[0])):
            return (int(counts.argmax()) + (1.0 if shifted else 0.5)) / bins, shifted
    return None, True


def answer_softly(
    learn: Learner,
    records: NDArray[Any],
    points: NDArray[Any],
    T: int,
    *,
    bins: int,
    k: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[list[float | None], Guarantee]:
    """Algorithm 6: scores of points, None for bottom, with the noisy threshold set at the start.

    k as printed is `soft_members` of stability.paper_sizes, and bins are those of labels.soft_bins
    with variant="paper".
    """
    members = learn_scores(learn, records, k)
    scores = np.stack([score(points) for score in members], axis=1).astype(np.float64)
    scale = math.sqrt(64 * T * math.log(2 / delta)) / epsilon
    threshold = scale * math.log(4 * len(points) / delta)
    noisy, answers, c = NoisyThreshold(threshold, scale, rng), list[float | None](), 0
    for row in scores:
        if c > T:
            break
        score, flag = classify_softly(row, bins, noisy)
        c += flag * (2 if score is None else 1)
        answers.append(score)
    # Each failed comparison counts, and the last query may add two.
    limits = (T + 2, 2 * len(points))
    return answers, _guarantee(limits, threshold, scale, (epsilon, delta))
