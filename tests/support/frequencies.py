"""Chi-square tests of observed frequencies against exact laws, at a false alarm of 1e-6 a test."""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from scipy.stats import binom, chi2, ncx2

FALSE_ALARM = 1e-6
# So far out the tail of the statistic is up to ten times that of chi-square where a cell expects
# as few as this (by exact binomial tails), hence the smaller nominal value.
LEAST_EXPECTED = 100
NOMINAL = FALSE_ALARM / 10

Law = Mapping[Hashable, Fraction | float]
Counts = Mapping[Hashable, int]


class Case(NamedTuple):
    """What was observed and the law that it should follow."""

    counts: Counts
    law: Law


def cells(law: Law, draws: int) -> list[list[Hashable]]:
    """The possible outcomes, the rarest ones pooled until each cell expects enough."""
    made: list[list[Hashable]] = []
    open_cell: list[Hashable] = []
    mass: Fraction | float = 0
    for outcome in sorted((o for o in law if law[o]), key=lambda o: law[o]):
        open_cell.append(outcome)
        mass += law[outcome]
        if draws * mass >= LEAST_EXPECTED:
            made.append(open_cell)
            open_cell, mass = [], 0
    return [*made[:-1], made[-1] + open_cell] if made else [open_cell]


def statistic(case: Case) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; infinite if the impossible was seen."""
    draws = sum(case.counts.values())
    if any(count and not case.law.get(outcome) for outcome, count in case.counts.items()):
        return float("inf"), 1
    total, pools = 0.0, cells(case.law, draws)
    for pool in pools:
        expected = draws * float(sum(case.law[o] for o in pool))
        total += (sum(case.counts.get(o, 0) for o in pool) - expected) ** 2 / expected
    return total, len(pools) - 1


def misfits(cases: Sequence[Case]) -> list[str]:
    """What contradicts the laws: any case on its own, or all of them together.

    The cases must be of draws of their own: the sum over cases of the same draws is no chi-square.
    Half of the false alarm is for the cases, divided among them, half for the sum of their
    statistics, which sees a small error that they have in common.
    """
    statistics = [statistic(case) for case in cases]
    share = NOMINAL / 2
    limits = [critical(share / len(cases), df) for _, df in statistics]
    wrong = [
        f"case {i}: {value:.1f} > {limit:.1f}, {dict(cases[i].counts)}"
        for i, ((value, _), limit) in enumerate(zip(statistics, limits, strict=True))
        if value > limit
    ]
    total, limit = sum(v for v, _ in statistics), critical(share, sum(df for _, df in statistics))
    return [*wrong, f"sum: {total:.1f} > {limit:.1f}"] if total > limit else wrong


def critical(false_alarm: float, df: int) -> float:
    return float(chi2.isf(false_alarm, df)) if df else 1e-9


def power(pairs: Sequence[tuple[Law, Law]], draws: int) -> float:
    """Probability that the sum over the pairs (true law, claimed law) rejects the claim."""
    noncentrality, degrees = 0.0, 0
    for true, claimed in pairs:
        pools = cells(claimed, draws)
        degrees += len(pools) - 1
        for pool in pools:
            was = float(sum(claimed[o] for o in pool))
            noncentrality += draws * (float(sum(true.get(o, 0) for o in pool)) - was) ** 2 / was
    limit = critical(NOMINAL / 2, degrees)
    return float(ncx2.sf(limit, degrees, noncentrality))


def two_sided(successes: int, draws: int, p: Fraction | float) -> float:
    """Exact p-value of a number of successes, twice that of its tail."""
    chance = float(p)
    tail = min(binom.cdf(successes, draws, chance), binom.sf(successes - 1, draws, chance))
    return min(1.0, 2 * float(tail))
