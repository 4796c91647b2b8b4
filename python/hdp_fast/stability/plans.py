"""Numbers of members that the answers of a table need, computed before any member is trained."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._support.validate import number, positive_int, probability, refuse
from ..exceptions import ParameterError
from .gaussian import THRESHOLD, GaussianVote
from .printed import paper_members
from .tables import HazardTable, VoteTable

AnyTable = HazardTable | VoteTable | GaussianVote

_MOST = 1 << 40
# Number of blocks in the sum over the number of right votes.
_BLOCKS = 1 << 12
# Terms of a binomial tail that are added up at a time.
_TERMS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class VotePlan:
    """A table and the number of members that its answers need.

    Attributes:
        table: The HazardTable, VoteTable or GaussianVote that needs fewer members, among those that
            fit the number of labels.
        k: Number of members that it needs.
        k_hazard: Number of members that a HazardTable needs.
        k_vote: Number of members that a VoteTable needs; None for more than two labels.
        k_paper: Number of members that the paper's Algorithm 4 asks for.
        k_gaussian: Number of members that a GaussianVote needs; None for soft labels.

    Examples:
        >>> from hdp_fast import stability
        >>> goal = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
        >>> chosen = stability.plan(20, 1000, labels=10, **goal)
        >>> type(chosen.table).__name__, chosen.k, chosen.k_gaussian, chosen.k_paper
        ('HazardTable', 1299, 2761, 58161)
        >>> chosen.flip() < 0.05 / 1000  # if all members agree
        True
    """

    table: AnyTable
    k: int
    k_hazard: int
    k_vote: int | None
    k_paper: int
    k_gaussian: int | None = None

    def flip(self, members: int | None = None, *, agreement: float = 1.0) -> float:
        """Computes the probability that a label on which members agree is not the answer.

        The answer then is another label, or bottom.

        Args:
            members: Number of members that vote, 1 to `2**40`; None takes k.
            agreement: Share of them that agree on the label, in (1/2, 1]. All others agree on one
                other label.

        Returns:
            The probability.

        Raises:
            ParameterError: members or agreement is out of range.

        Cost:
            Microseconds for a table, milliseconds for a GaussianVote.

        Source:
            The table itself. For a GaussianVote a sum over its noise, taken as continuous.
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
    """Designs the tables that fit a task and chooses the one that needs fewer members.

    For two labels the choice is between a VoteTable and a HazardTable, for more labels between a
    HazardTable and a GaussianVote.

    Args:
        max_unstable: Number of bottoms that end a session of a HazardTable, 1 to `2**40`.
        queries: Number of queries, 1 to `2**40`.
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in [1e-200, 1).
        beta: Failure probability of all answers together, in (0, 1).
        labels: Size of the label set, 2 to `2**40`.
        agreement: Probability that a member is right on a query that counts as stable, in (1/2, 1).
        threshold: Lead that an answer of a GaussianVote needs, in units of sigma, 0 to 1,000.

    Returns:
        A VotePlan of the chosen table and of the members that each one needs.

    Raises:
        ParameterError: A parameter is out of range, or no table keeps the promise.

    Guarantee:
        Any of the tables is (epsilon, delta)-DP, whatever the votes. The numbers of members promise
        utility alone.

    Cost:
        That of the designs.

    Source:
        Bassily, Thakkar and Thakurta 2018, Theorem 3.11, for `k_paper`.

    Examples:
        >>> from hdp_fast import stability
        >>> goal = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
        >>> chosen = stability.plan(20, 1000, labels=2, **goal)
        >>> type(chosen.table).__name__, chosen.k, chosen.k_hazard
        ('VoteTable', 1266, 1299)
    """
    size = positive_int("labels", labels, _MOST)
    if size == 1:
        raise ParameterError("labels = 1, but a vote needs at least 2")
    bottoms = positive_int("max_unstable", max_unstable, _MOST)
    goal = {"epsilon": epsilon, "delta": delta, "beta": beta}
    tables: dict[str, AnyTable] = {"k_hazard": HazardTable.design(bottoms, queries, **goal)}
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
        k_paper=paper_members(bottoms, queries, epsilon, delta, beta),
        k_gaussian=needed["k_gaussian"],
    )


def flip_probability(table: AnyTable, k: int, count: int) -> float:
    """The probability that a table does not answer with the label of `count` of k members.

    All others agree on one other label. It is the smaller one, which wins ties.
    """
    if isinstance(table, GaussianVote):
        return _flip_by_noise(table, k, count)
    ties_lost = isinstance(table, HazardTable)
    level = (2 * count - k - ties_lost) // 2
    if level < 0:
        return 1.0
    return float(table.probabilities[min(level, table.J)])


def _flip_by_noise(vote: GaussianVote, k: int, count: int) -> float:
    """Pr[the count with noise does not lead every other one by the gap]."""
    z = np.linspace(-9, 9, 1801)
    weights = np.exp(-(z**2) / 2)
    weights /= weights.sum()
    # A tie is lost to the first of the others alone, whose label is the smaller one.
    others = [(k - count, max(vote.gap, 1)), *[(0, vote.gap)] * (vote.labels - 2)]
    ahead = np.ones_like(z)
    for (votes, gap), times in Counter(others).items():
        leads = (count - votes - gap + 0.5) / float(vote.sigma) + z
        ahead *= np.array([(1 + math.erf(lead / math.sqrt(2))) / 2 for lead in leads]) ** times
    return float(1 - weights @ ahead)


def members_needed(table: AnyTable, *, agreement: float = 0.75) -> int:
    """Computes the least number of members with which all stable queries are answered rightly.

    "Rightly" holds except with probability beta. Each member, independently, is right on a stable
    query with probability `agreement`, and all other members may agree on one wrong label. With a
    HazardTable at most `max_unstable - 1` queries may be unstable: one more bottom ends the
    session.

    Args:
        table: The HazardTable, VoteTable or GaussianVote that answers. Half the beta of a table is
            for its coins, and the other half is for the votes, in equal shares for its queries. The
            beta of a GaussianVote is for noise and votes together, and a bottom is no right answer
            either.
        agreement: Probability that a member is right on a stable query, in (1/2, 1).

    Returns:
        The number of members.

    Raises:
        ParameterError: table is of another kind, agreement is out of range, or more than `2**40`
            members would be needed.

    Cost:
        Milliseconds for a table, up to a second where agreement is next to 1/2. For a GaussianVote
        tenths of a second at 100,000 members.

    Source:
        The binomial tail itself, instead of Bassily, Thakkar and Thakurta 2018, Theorem 3.11: the
        least k with Pr[distance < J] <= beta / (2 queries). For a GaussianVote the tail of the
        noise, averaged over the votes, times the number of labels that could win wrongly.

    Examples:
        >>> from hdp_fast import stability
        >>> table = stability.VoteTable.design(100, epsilon=1.0, delta=1e-6, beta=0.05)
        >>> [stability.members_needed(table, agreement=p) for p in (0.75, 0.9, 0.99)]
        [496, 272, 196]
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


def _fewest(enough: Callable[[int], bool]) -> int:
    """The least number that is enough; adding 2 to a number never makes it worse."""
    return min(_smallest(parity, enough) for parity in (1, 2))


def _smallest(first: int, enough: Callable[[int], bool]) -> int:
    """The least of first, first + 2, ... that is enough."""
    low, high, most = -1, 1, (_MOST - first) // 2
    while not enough(first + 2 * high):
        if high == most:
            rule = f"agreement must be larger: else the table needs more than {_MOST:,} members"
            raise ParameterError(rule)
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(first + 2 * middle) else (middle, high)
    return first + 2 * high


def _miss_probability(vote: GaussianVote, k: int, p: float, share: float) -> float:
    """A bound on Pr[no right answer], where all members that are wrong agree on one label.

    The difference of two draws of the noise is bounded by the continuous law of the same variance,
    up to rounding: Pr[it is at least d] <= Pr[`N(0, 2 sigma**2)` >= d - 1] for d above 0. The
    numbers of right votes are put into blocks; each block counts as its worst number. Numbers
    beyond Hoeffding's bound of share / 10,000 count as wrong answers.
    """
    far = math.sqrt(k * math.log(1e4 / share) / 2)
    low, high = max(0, math.floor(k * p - far)), min(k, math.ceil(k * p + far))
    right = np.arange(low, high + 1, dtype=np.float64)
    choices = math.lgamma(k + 1) - math.lgamma(low + 1) - math.lgamma(k - low + 1)
    first = choices + low * math.log(p) + (k - low) * math.log1p(-p)
    ratios = np.log((k - right[:-1]) / right[1:] * (p / (1 - p)))
    weights = np.exp(first + np.concatenate([[0.0], np.cumsum(ratios)]))
    starts = np.arange(0, len(right), 1 + len(right) // _BLOCKS)
    # A tie counts as lost.
    ahead = 2 * right[starts] - k - max(vote.gap, 1)
    tails = [math.erfc(lead / (2 * float(vote.sigma))) / 2 if lead > 0 else 1.0 for lead in ahead]
    lost = np.minimum((vote.labels - 1) * np.array(tails), 1)
    return float(np.add.reduceat(weights, starts) @ lost) + 2e-4 * share


def log_below(count: int, k: int, p: float) -> float:
    """Logarithm of Pr[Bin(k, p) < count] for a count of at most k p; 0 for a larger one.

    The sum goes down from count - 1. Each weight follows from the one above it by a ratio below
    one, which falls.
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
        counts = np.arange(top, max(top - _TERMS, 0), -1.0)
        weights = weight * np.cumprod(counts / (k - counts + 1) * odds)
        total, weight, top = total + float(weights.sum()), float(weights[-1]), top - len(counts)
    return log + math.log(total)
