"""How many members a table's answers need, before any is trained."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._support.validate import number, positive, positive_int, probability, refuse
from ..exceptions import ParameterError
from .gaussian import THRESHOLD, GaussianVote
from .tables import HazardTable, VoteTable

AnyTable = HazardTable | VoteTable | GaussianVote

_MOST = 1 << 40
# Bins in the sum over the number of right votes.
_BLOCKS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class VotePlan:
    """A table and the number of members that its answers need.

    Attributes:
        table: the one that needs fewer members; a GaussianVote is one here.
        k: members that it needs.
        k_hazard: members that a HazardTable needs.
        k_vote: members that a VoteTable needs; None for more than two labels.
        k_paper: members that the paper's Algorithm 4 asks for.
        k_gaussian: members that a GaussianVote needs; None for soft labels.
    """

    table: AnyTable
    k: int
    k_hazard: int
    k_vote: int | None
    k_paper: int
    k_gaussian: int | None = None

    def flip(self, members: int | None = None, *, agreement: float = 1.0) -> float:
        """The probability that the label that members agree on is not the answer.

        members: how many vote; None for k. agreement: share of them that agree, in (1/2, 1]; all
        others agree on another label. The answer is another label, or bottom.

        Raises: ParameterError.
        Cost: microseconds.
        Source: the table itself; for a GaussianVote a sum over its noise, as of a continuous one.
        """
        k = self.k if members is None else positive_int("members", members, _MOST)
        share = number("agreement", agreement)
        if not 0.5 < share <= 1:
            refuse("agreement", agreement, "it must lie in (1/2, 1]")
        return flip_probability(self.table, k, round(share * k))


def plan(
    max_unstable: int,
    queries: int,
    *,
    epsilon: float,
    delta: float,
    beta: float,
    labels: int,
    agreement: float = 0.75,
    threshold: float = THRESHOLD,
) -> VotePlan:
    """The table that needs fewer members, of those that fit the number of labels.

    max_unstable: bottoms that end a session of a HazardTable. queries: how many may be asked.
    epsilon, delta, beta: as the tables'. labels: size of the label set, at least 2. agreement: as
    members_needed. threshold: as GaussianVote. Of two labels a VoteTable or a HazardTable is taken,
    of more a HazardTable or a GaussianVote.

    Guarantee: that of the tables; the numbers of members only promise utility.
    Raises: ParameterError.
    Cost: as the designs.
    Source: Bassily, Thakkar and Thakurta 2018, Theorem 3.11, for k_paper.
    """
    size = positive_int("labels", labels, _MOST)
    if size == 1:
        raise ParameterError("labels = 1, but a vote needs at least 2")
    goal = {"epsilon": epsilon, "delta": delta, "beta": beta}
    tables: dict[str, AnyTable] = {"k_hazard": HazardTable.design(max_unstable, queries, **goal)}
    if size == 2:
        tables["k_vote"] = VoteTable.design(queries, **goal)
    tables["k_gaussian"] = GaussianVote.design(queries, labels=size, threshold=threshold, **goal)
    needed = {name: members_needed(table, agreement=agreement) for name, table in tables.items()}
    fitting = ("k_vote", "k_hazard") if size == 2 else ("k_hazard", "k_gaussian")
    fewest = min(fitting, key=needed.__getitem__)
    return VotePlan(
        table=tables[fewest],
        k=needed[fewest],
        k_hazard=needed["k_hazard"],
        k_vote=needed.get("k_vote"),
        k_paper=paper_members(max_unstable, queries, **goal),
        k_gaussian=needed["k_gaussian"],
    )


def flip_probability(table: AnyTable, k: int, count: int) -> float:
    """The probability that a table does not answer with the label of `count` of k members.

    All others agree on one other label, the smaller one where that counts.
    """
    if isinstance(table, GaussianVote):
        return _flip_by_noise(table, k, count)
    ties_lost = isinstance(table, HazardTable)
    level = (2 * count - k - ties_lost) // 2
    if level < 0:
        return 1.0
    return float(table.probabilities[min(level, table.J)])


def _flip_by_noise(vote: GaussianVote, k: int, count: int) -> float:
    """Pr[the count with noise is not ahead of every other one by the gap]."""
    z = np.linspace(-9, 9, 1801)
    weights = np.exp(-(z**2) / 2)
    weights /= weights.sum()
    # Ties are lost to the first of the others alone.
    others = [(k - count, max(vote.gap, 1)), *[(0, vote.gap)] * (vote.labels - 2)]
    ahead = np.ones_like(z)
    for (votes, gap), times in Counter(others).items():
        leads = (count - votes - gap + 0.5) / float(vote.sigma) + z
        ahead *= np.array([(1 + math.erf(lead / math.sqrt(2))) / 2 for lead in leads]) ** times
    return float(1 - weights @ ahead)


def members_needed(table: AnyTable, *, agreement: float = 0.75) -> int:
    """The smallest k with which a table answers rightly, but for probability beta.

    table: its beta / 2 is for the coins, the other half for the votes, shared among its queries;
    a GaussianVote's beta is for both together, and a bottom is no right answer either. agreement:
    probability with which each member, independently, is right on a query that counts as stable, in
    (1/2, 1). All other members may agree on one wrong label. With a HazardTable at most
    max_unstable - 1 queries may be unstable: one more halts the session.

    Raises: ParameterError, also where more than 2**40 were needed.
    Cost: milliseconds.
    Source: the binomial tail itself, in the place of Bassily, Thakkar and Thakurta 2018, Theorem
        3.11: smallest k with Pr[distance < J] <= beta / (2 queries). For a GaussianVote the mean
        over the votes of the tail of the noise, times the labels that could win.
    """
    if not isinstance(table, AnyTable):
        refuse("table", table, "it must be a HazardTable, a VoteTable or a GaussianVote")
    p = probability("agreement", agreement)
    if p <= 0.5:
        raise ParameterError(f"agreement = {agreement}, but it must lie in (1/2, 1)")
    if isinstance(table, GaussianVote):
        vote, share = table, table.beta / table.queries
        return _fewest(lambda k: _miss_probability(vote, k, p, share) <= share)
    # A distance of J or more: 2 c - k - 1 >= 2 J where ties are lost, 2 c - k >= 2 J else.
    lost = 1 if isinstance(table, HazardTable) else 0
    allowed = math.log(table.beta / 2 / table.queries)

    def enough(k: int) -> bool:
        needed = (2 * table.J + k + lost + 1) // 2
        return needed <= k and log_below(needed, k, p) <= allowed

    return _fewest(enough)


def paper_members(
    max_unstable: int, queries: int, *, epsilon: float, delta: float, beta: float
) -> int:
    """The k of the paper's Algorithm 4, whose distance is another one and whose proof fails.

    max_unstable: the paper's T, unstable queries. queries: all of them. epsilon: above 0. delta,
        beta: in (0, 1).

    Raises: ParameterError.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 4, step 1.
    """
    bottoms = positive_int("max_unstable", max_unstable, _MOST)
    total = positive_int("queries", queries, _MOST)
    tail = min(probability("delta", delta), probability("beta", beta) / 2)
    spread = math.sqrt(bottoms * math.log(2 / delta)) / positive("epsilon", epsilon)
    return round(136 * math.log(4 * total * bottoms / tail) * spread)


def _fewest(enough: Callable[[int], bool]) -> int:
    """The smallest number; of two of the same parity the larger one is never worse."""
    return min(_smallest(parity, enough) for parity in (1, 2))


def _smallest(first: int, enough: Callable[[int], bool]) -> int:
    """The smallest of first, first + 2, ... that is enough."""
    high = 1
    while not enough(first + 2 * high):
        high *= 2
        if high > _MOST:
            raise ParameterError(f"table needs more than {_MOST:,} members, but be larger")
    low = -1 if high == 1 else high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(first + 2 * middle) else (middle, high)
    return first + 2 * high


def _miss_probability(vote: GaussianVote, k: int, p: float, share: float) -> float:
    """A bound on Pr[no right answer], where all who are wrong agree on one label.

    The difference of two draws of noise is below the continuous law of its variance, but for less
    than rounding: Pr[it is at least d] <= Pr[N(0, 2 sigma**2) >= d - 1] for d above 0. All blocks
    of numbers of right votes count as their worst one, and those beyond Hoeffding's bound of
    share / 10,000 as lost.
    """
    far = math.sqrt(k * math.log(1e4 / share) / 2)
    low, high = max(0, math.floor(k * p - far)), min(k, math.ceil(k * p + far))
    right = np.arange(low, high + 1, dtype=np.float64)
    choices = math.lgamma(k + 1) - math.lgamma(low + 1) - math.lgamma(k - low + 1)
    first = choices + low * math.log(p) + (k - low) * math.log1p(-p)
    ratios = np.log((k - right[:-1]) / right[1:] * (p / (1 - p)))
    weights = np.exp(first + np.concatenate([[0.0], np.cumsum(ratios)]))
    starts = np.arange(0, len(right), 1 + len(right) // _BLOCKS)
    # Ties are lost.
    ahead = 2 * right[starts] - k - max(vote.gap, 1)
    tails = [math.erfc(lead / (2 * float(vote.sigma))) / 2 if lead > 0 else 1.0 for lead in ahead]
    lost = np.minimum((vote.labels - 1) * np.array(tails), 1)
    return float(np.add.reduceat(weights, starts) @ lost) + 2e-4 * share


def log_below(count: int, k: int, p: float) -> float:
    """Logarithm of Pr[Bin(k, p) < count] for a count of at most k p, or 0 beyond.

    Each weight follows from the one above it by a ratio that falls and stays below one.
    """
    top = count - 1
    if top < 0:
        return -math.inf
    if count > k * p:
        return 0.0
    choices = math.lgamma(k + 1) - math.lgamma(top + 1) - math.lgamma(k - top + 1)
    log = choices + top * math.log(p) + (k - top) * math.log1p(-p)
    total, weight, odds = 1.0, 1.0, (1 - p) / p
    while top > 0 and weight > 1e-17 * total:
        weight *= top / (k - top + 1) * odds
        total += weight
        top -= 1
    return log + math.log(total)
