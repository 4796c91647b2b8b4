"""The rivals of stability_labels.py: PATE's three mechanisms and the paper's Algorithm 4.

Each setting is a dataclass whose `answers` says what it tells about the first queries of a ballot:
a label each, or -1 for none. All of them are idealized: noise is drawn in floats, and nothing here
is meant to protect anybody. The accountants are dp-accounting's, or what Papernot et al. prove.

One member changes one vote: two counts change by 1 each. Noise on all counts of a query therefore
costs two Laplace mechanisms of sensitivity 1, or a Gaussian of sensitivity sqrt(2); the largest
count alone has sensitivity 1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Where RDP is turned into epsilon: orders that 0.5 to 4 at a delta of 1e-6 want, and larger ones.
ORDERS = 1 + np.geomspace(0.5, 400, 28)


@dataclass(frozen=True, eq=False)
class Ballot:
    """Votes on all queries of one split, (m, K), and the true labels, (m,)."""

    counts: Integers
    truth: Integers

    @property
    def members(self) -> int:
        """How many vote."""
        return int(self.counts[0].sum())


@functools.cache
def gaussian_budget(epsilon: float, delta: float) -> float:
    """The mu of Gaussian DP that is exactly (epsilon, delta)-DP."""
    return 1 / float(dp_accounting.get_sigma_gaussian(epsilon, delta))


@functools.cache
def laplace_scale(queries: int, epsilon: float, delta: float) -> float:
    """Noise with which all counts of this many queries may be published, by composed PLDs."""
    central = math.sqrt(2 * queries) / gaussian_budget(epsilon, delta)
    low, high = min(central, 1 / epsilon) / 3, 2 * queries / epsilon * 1.001

    def excess(log_scale: float) -> float:
        return laplace_epsilon(queries, math.exp(log_scale), delta) - epsilon

    root = brentq(excess, math.log(low), math.log(high), xtol=1e-3)
    return math.exp(root + 1e-3)


@np.errstate(over="ignore")  # of dp-accounting, far out in its tails
def laplace_epsilon(queries: int, scale: float, delta: float) -> float:
    """Epsilon of all answers together: two counts change by 1 in each query."""
    single = privacy_loss_distribution.from_laplace_mechanism(
        scale, value_discretization_interval=1 / (25 * scale)
    )
    return float(single.self_compose(2 * queries).get_epsilon_for_delta(delta))


def renyi_epsilon(total: Floats, delta: float) -> Floats:
    """Epsilon of RDP (..., orders) at ORDERS: Canonne, Kamath and Steinke 2020, Proposition 12."""
    extra = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    return np.maximum((total + extra).min(axis=-1), 0)


def dependent_cost(log_q: Floats, rate: float) -> Floats:
    """RDP (m, orders) of Gaussian answers whose outcome is nearly sure.

    log_q: of the probability of any other outcome, (m,). rate: RDP is at most rate times the order
    whatever the votes. Papernot et al. 2018, Theorem 6 with the orders of Proposition 8, the lesser
    of this and the rate. A function of private votes: publishing it protects no one. It bounds the
    divergence of these votes' answers from a neighbor's, not the other way round, which can be
    several times larger; PATE's epsilon is of this one direction.
    """
    plain = np.broadcast_to(rate * ORDERS, (len(log_q), len(ORDERS)))
    log_q = np.minimum(log_q, -1e-300)[:, None]
    second = np.maximum(np.sqrt(-log_q / rate), 1 + 1e-12)
    first = second + 1
    limit = (second - 1) * rate * second - second * (
        np.log(first / second) + np.log(second / (second - 1))
    )
    valid = (log_q <= limit) & (first >= ORDERS) & (second > 1 + 1e-9)
    sure = np.log1p(-np.exp(log_q))
    changed = (log_q + rate * second) * (second - 1) / second
    kept = sure - np.log1p(-np.exp(np.where(valid, changed, -1.0)))
    lost = rate * first - log_q / second
    orders = ORDERS - 1
    bound = np.logaddexp(sure + orders * kept, log_q + orders * lost) / orders
    return np.where(valid, np.clip(bound, 0, plain), plain)


def log_other(counts: Integers, sigma: float) -> Floats:
    """Logarithm of a bound on the probability that noise of sigma moves the largest count."""
    ordered = np.sort(counts, axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    log_sum = logsumexp(log_ndtr(-gaps / (math.sqrt(2) * sigma)), axis=1)
    return np.minimum(log_sum, math.log1p(-1 / counts.shape[1]))


def log_unsure(counts: Integers, threshold: float, sigma: float) -> Floats:
    """Logarithm of the probability of the less likely result of the check."""
    above = (counts.max(axis=1) - threshold) / sigma
    return log_ndtr(-np.abs(above))


@functools.lru_cache(maxsize=64)
def check_cost(ballot: Ballot, threshold: float, sigma: float) -> Floats:
    return dependent_cost(log_unsure(ballot.counts, threshold, sigma), 1 / (2 * sigma**2))


@functools.lru_cache(maxsize=64)
def answer_cost(ballot: Ballot, sigma: float) -> Floats:
    return dependent_cost(log_other(ballot.counts, sigma), 1 / sigma**2)


@dataclass(frozen=True)
class LaplaceMax:
    """The largest count after Laplace noise: Papernot et al. 2017."""

    queries: int
    scale: float

    def answers(self, ballot: Ballot, rng: Any) -> Integers:
        counts = ballot.counts[: self.queries]
        return (counts + rng.laplace(scale=self.scale, size=counts.shape)).argmax(axis=1)


@dataclass(frozen=True)
class ConfidentMax:
    """Confident-GNMax, what it costs bounded whatever the votes: Papernot et al. 2018.

    queries and most: where it ends, asked and answered. threshold, check: the noisy largest count
    that is enough, and its noise; None for answers without a check. answer: noise on the counts.
    """

    queries: int
    most: int
    answer: float
    threshold: float | None = None
    check: float = math.inf

    def mu(self) -> float:
        """Gaussian DP of a whole run.

        Sums of squares also hold for Gaussians that are chosen by what earlier ones said, here
        whether a query is answered: Smith and Thakurta 2022.
        """
        return math.sqrt(self.queries / self.check**2 + 2 * self.most / self.answer**2)

    def answers(self, ballot: Ballot, rng: Any) -> Integers:
        counts = ballot.counts[: self.queries]
        passed = pass_check(counts, self.threshold, self.check, rng)
        chosen = np.flatnonzero(passed)[: self.most]
        end = len(counts) if len(chosen) < self.most else int(chosen[-1]) + 1
        return label_chosen(counts[:end], chosen, self.answer, rng)


@dataclass(frozen=True)
class DependentMax:
    """Confident-GNMax as far as the private votes themselves allow: NOT private.

    Ends before the query whose cost, by Theorem 6 at these very votes, would exceed epsilon. That
    end and that epsilon are functions of the votes; no noise hides them.
    """

    epsilon: float
    delta: float
    answer: float
    threshold: float | None = None
    check: float = math.inf

    def answers(self, ballot: Ballot, rng: Any) -> Integers:
        passed = pass_check(ballot.counts, self.threshold, self.check, rng)
        cost = np.where(passed[:, None], answer_cost(ballot, self.answer), 0)
        if self.threshold is not None:
            cost += check_cost(ballot, self.threshold, self.check)
        spent = renyi_epsilon(np.cumsum(cost, axis=0), self.delta)
        end = int(np.searchsorted(spent, self.epsilon, side="right"))
        chosen = np.flatnonzero(passed[:end])
        return label_chosen(ballot.counts[:end], chosen, self.answer, rng)


def pass_check(
    counts: Integers, threshold: float | None, sigma: float, rng: Any
) -> NDArray[np.bool_]:
    if threshold is None:
        return np.ones(len(counts), bool)
    return counts.max(axis=1) + rng.normal(scale=sigma, size=len(counts)) >= threshold


def label_chosen(counts: Integers, chosen: NDArray[np.intp], sigma: float, rng: Any) -> Integers:
    labels = np.full(len(counts), -1)
    some = counts[chosen]
    labels[chosen] = (some + rng.normal(scale=sigma, size=some.shape)).argmax(axis=1)
    return labels


@dataclass(frozen=True)
class PaperStable:
    """The paper's Algorithm 4 with its printed constants, but the exact distance.

    Bassily, Thakkar and Thakurta 2018; exactly T bottoms instead of up to T + 1. It takes
    distances (m,) and winners (m,).
    """

    bottoms: int
    queries: int
    epsilon: float
    delta: float

    @property
    def spread(self) -> float:
        """The printed lambda."""
        return math.sqrt(32 * self.bottoms * math.log(2 / self.delta)) / self.epsilon

    @property
    def least(self) -> float:
        """The printed w."""
        return 2 * self.spread * math.log(2 * self.queries / self.delta)

    def answers_of(self, winners: Integers, distances: Integers, rng: Any) -> Integers:
        winners, distances = winners[: self.queries], distances[: self.queries]
        noisy = distances + rng.laplace(scale=2 * self.spread, size=len(distances))
        answers, start = winners.copy(), 0
        for threshold in self.least + rng.laplace(scale=self.spread, size=self.bottoms):
            below = np.flatnonzero(noisy[start:] <= threshold)
            if not len(below):
                return answers
            start += int(below[0]) + 1
            answers[start - 1] = -1
        return answers[:start]
