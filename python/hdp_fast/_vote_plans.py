"""How many members a table's answers need, before any is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ._checks import fraction, positive, shown, sized
from ._vote_tables import HazardTable, VoteTable
from .exceptions import ParameterError

_MOST = 1 << 40


@dataclass(frozen=True, kw_only=True)
class VotePlan:
    """A table and the number of members that its answers need.

    Attributes:
        table: the one that needs fewer members.
        k: members that it needs.
        k_hazard: members that a HazardTable needs.
        k_vote: members that a VoteTable needs; None for more than two labels.
        k_paper: members that the paper's Algorithm 4 asks for.
    """

    table: HazardTable | VoteTable
    k: int
    k_hazard: int
    k_vote: int | None
    k_paper: int


def plan(
    T: int,
    m: int,
    *,
    epsilon: float,
    delta: float,
    beta: float,
    labels: int,
    agreement: float = 0.75,
) -> VotePlan:
    """The table that needs fewer members, of those that fit the number of labels.

    T: bottoms that end a session of a HazardTable. m: queries. epsilon, delta, beta: as the
    tables'. labels: size of the label set, at least 2. agreement: as members_needed.

    Guarantee: that of the tables; the numbers of members only promise utility.
    Raises: ParameterError.
    Cost: as the designs.
    Source: Bassily, Thakkar and Thakurta 2018, Theorem 3.11, for k_paper.
    """
    size = sized("labels", labels, _MOST)
    if size == 1:
        raise ParameterError("labels = 1, but a vote needs at least 2")
    hazard = HazardTable.design(T, m, epsilon=epsilon, delta=delta, beta=beta)
    k_hazard = members_needed(hazard, agreement=agreement)
    k_paper = paper_members(T, m, epsilon=epsilon, delta=delta, beta=beta)
    if size > 2:
        return VotePlan(table=hazard, k=k_hazard, k_hazard=k_hazard, k_vote=None, k_paper=k_paper)
    vote = VoteTable.design(m, epsilon=epsilon, delta=delta, beta=beta)
    k_vote = members_needed(vote, agreement=agreement)
    table, k = (vote, k_vote) if k_vote <= k_hazard else (hazard, k_hazard)
    return VotePlan(table=table, k=k, k_hazard=k_hazard, k_vote=k_vote, k_paper=k_paper)


def members_needed(table: HazardTable | VoteTable, *, agreement: float = 0.75) -> int:
    """The smallest k with which a table answers rightly, but for probability beta.

    table: its beta / 2 is for the coins, the other half for the votes, shared among its m queries.
    agreement: probability with which each member, independently, is right on a query that counts
    as stable, in (1/2, 1). All other members may agree on one wrong label. With a HazardTable at
    most T - 1 queries may be unstable: one more halts the session.

    Raises: ParameterError, also where more than 2**40 were needed.
    Cost: milliseconds.
    Source: the binomial tail itself, in the place of Bassily, Thakkar and Thakurta 2018, Theorem
        3.11: smallest k with Pr[distance < J] <= beta / (2 m).
    """
    if not isinstance(table, HazardTable | VoteTable):
        rule = "it must be a HazardTable or a VoteTable"
        raise ParameterError(f"table = {shown(table)}, but {rule}")
    p = fraction("agreement", agreement)
    if p <= 0.5:
        raise ParameterError(f"agreement = {agreement}, but it must lie in (1/2, 1)")
    # A distance of J or more: 2 c - k - 1 >= 2 J where ties are lost, 2 c - k >= 2 J else.
    lost = 1 if isinstance(table, HazardTable) else 0
    allowed = math.log(table.beta / 2 / table.m)

    def enough(k: int) -> bool:
        needed = (2 * table.J + k + lost + 1) // 2
        return needed <= k and log_below(needed, k, p) <= allowed

    # Of two numbers of members of the same parity the larger one is never worse.
    return min(_smallest(parity, enough) for parity in (1, 2))


def paper_members(T: int, m: int, *, epsilon: float, delta: float, beta: float) -> int:
    """The k of the paper's Algorithm 4, whose distance is another one and whose proof fails.

    T: unstable queries. m: queries. epsilon: above 0. delta, beta: in (0, 1).

    Raises: ParameterError.
    Cost: constant.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 4, step 1.
    """
    bottoms, queries = sized("T", T, _MOST), sized("m", m, _MOST)
    tail = min(fraction("delta", delta), fraction("beta", beta) / 2)
    spread = math.sqrt(bottoms * math.log(2 / delta)) / positive("epsilon", epsilon)
    return round(136 * math.log(4 * queries * bottoms / tail) * spread)


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
