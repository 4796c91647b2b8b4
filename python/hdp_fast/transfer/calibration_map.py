"""The map that agents check, and what their answers say in bins of the score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from .._support.binomial import MOST_BETA, clopper_pearson
from .._support.types import Floats
from ..learners.scores import save_loss, shift_at
from ..local.estimation import debias
from ..local.queries.query import Query
from .calibration_fit import Counts, Fit, compare, sigmoid
from .calibration_result import Check, ReliabilityDiagram

# Shares of the scores that may lie beyond each end of the map, where its shift is constant.
_BEYOND = (0.002, 0.02)
# How far the map goes from the score towards the fitted map, and the share of the greatest saving
# above which a saving counts as that much: candidates, of which the check lets most gain through.
_PARTS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1)
# A shorter step than this is none: it would hardly change a probability.
LEAST_STEP = 0.1
_CUTS = np.array([1.0, 0.7, 0.5, 0.35, 0.25])
# The fit's own bound on what its map costs lies so many of its standard deviations above.
_DOUBT = 1.0
# The smallest part is taken whose gain is nearly the largest: it cannot do as much harm.
_NEARLY = 0.99
_STEPS = np.linspace(0.0, 1.0, 21)
_CHANCES = np.array([NormalDist().inv_cdf((k + 0.5) / 9) for k in range(9)])
# Segments between the ends of a map on which its greatest loss is bounded.
_SEGMENTS = 256
# Rounding errors of losses are far below this.
_ROUNDING = 1e-9
_Ends = tuple[float, float]
# Rates are tried on a grid, and intervals widened by one of its steps.
_RATES = 1000


@dataclass(frozen=True)
class CostBound:
    """What a result may cost: with probability at most beta, more than the tolerance."""

    tolerance: float
    beta: float

    @property
    def quantile(self) -> float:
        """So many deviations lie between the estimate of the check and its bound."""
        return -NormalDist().inv_cdf(min(self.beta, MOST_BETA / 2))

    def allow(self, upper: Floats | float) -> Floats:
        """The step towards a map whose mean difference of log loss has this upper bound.

        The loss of each person is convex on the way to the map, so a step costs at most that share
        of what the whole map costs.
        """
        steps: Floats = self.tolerance / np.maximum(upper, 1e-300)
        return np.where(upper > self.tolerance, steps, 1.0)


@dataclass(frozen=True)
class CheckedMap:
    """A map of scores that is fixed before the check, and the range of its check.

    Attributes:
        knots: Scores between which the shift is linear; it is constant beyond them.
        shifts: The shift at each knot.
        low: Least log loss, and less than none, that the map saves for any score and label.
        high: What a greater saving counts as.
        part: How far the map goes from the score to the fitted map.
        gains: Mean log loss that the fit expects of steps to the fitted map; at `_STEPS`.
        enough: Number of answers that would let the whole fitted map through in half of the cases;
            infinite where the fit does not expect that.
    """

    knots: Floats
    shifts: Floats
    low: float
    high: float
    part: float
    gains: Floats
    enough: float

    def query(self, model: Any) -> Query:
        """The question of the check."""
        return Query.loss_saved(
            model, self.knots.tolist(), self.shifts.tolist(), self.low, self.high
        )

    def gain(self, step: float) -> float:
        """Mean log loss that a step of this map is expected to save."""
        return float(np.interp(step * self.part, _STEPS, self.gains))

    def judge(self, ones: int, answers: int, asked: int, edge: float, beta: float) -> Check:
        """What the answers say: each end is missed with probability at most beta."""

        def difference(share: float) -> float:
            mean = min(max(float(debias(share, edge)), 0.0), 1.0)
            return -(self.low + (self.high - self.low) * mean)

        def ends(ones: int, most: int, count: int) -> tuple[float, float]:
            if not count:
                return -self.high, -self.low
            failure = min(2 * beta, MOST_BETA)
            least = clopper_pearson(ones, count, failure)[0]
            return difference(clopper_pearson(most, count, failure)[1]), difference(least)

        value = difference(ones / answers) if answers else 0.0
        low, high = ends(ones, ones, answers)
        low_any, high_any = ends(ones, ones + asked - answers, asked)
        return Check(value, low, high, low_any, high_any, answers, asked)


def choose_map(
    fit: Fit, odds: Floats, bends: bool, *, agents: float, edge: float, bound: CostBound
) -> CheckedMap:
    """Choose the map that is expected to gain most after its check by so many agents.

    The check bounds the mean difference of log loss by its estimate and a width in proportion to
    the range of the agents' answers. A map that moves scores less far has a smaller range, and so
    have one that is flat where few scores lie, and a check to which large savings count as less.
    Among such maps the one is taken that moves scores least of those whose gain, times the step
    that the check is expected to allow, is nearly the largest.

    Args:
        fit: The fit to the answers of the agents before.
        odds: The fitted log-odds on its cells.
        bends: Whether the map has a knot at each cell, rather than at its ends.
        agents: Number of agents who are expected to answer the check.
        edge: Pr[truth] - Pr[lie] of their randomizer.
        bound: What the result may cost.
    """
    candidates = []
    for beyond in _BEYOND:
        knots, shifts = _draw(fit, odds, beyond, bends)
        path = _Path.of(fit, knots, shifts)
        enough = path.try_part(1.0, agents, edge, bound)[3]
        reach = path.reach(bound)
        for part in (reach * share for share in _PARTS):
            value, low, high, _ = path.try_part(part, agents, edge, bound)
            value = value if part >= LEAST_STEP else 0.0
            made = CheckedMap(knots, part * shifts, low, high, part, path.gains, enough)
            candidates.append((value, made))
    most = max(value for value, _ in candidates)
    nearly = most - (1 - _NEARLY) * abs(most)
    good = [made for value, made in candidates if value >= nearly]
    return min(good, key=lambda made: made.part)


@dataclass(frozen=True)
class _Path:
    """The steps from the score to one map, as the fit sees them."""

    fit: Fit
    rates: Floats
    knots: Floats
    shifts: Floats
    gains: Floats
    deviation: float

    @classmethod
    def of(cls, fit: Fit, knots: Floats, shifts: Floats) -> _Path:
        scores = fit.axis.middles
        rates = sigmoid(fit.log_odds(scores))
        moves = shift_at(scores, knots, shifts)
        gains = save_loss(scores, _STEPS[:, None] * moves, rates) @ fit.masses
        _, deviation = compare(fit, scores + moves, scores)
        return cls(fit, rates, knots, shifts, gains, deviation)

    def reach(self, bound: CostBound) -> float:
        """How far to go at most, by the fit alone.

        So two errors must meet, of the fit and of the check, before a result is worse.
        """
        return float(bound.allow(_DOUBT * self.deviation - self.gains[-1]))

    def try_part(
        self, part: float, agents: float, edge: float, bound: CostBound
    ) -> tuple[float, float, float, float]:
        """The gain that is expected to get through, its range, and how many would let all through.

        The range is the one that lets most through.
        """
        scores, masses = self.fit.axis.middles, self.fit.masses
        moves = part * shift_at(scores, self.knots, self.shifts)
        greatest, least = bound_savings(self.knots, part * self.shifts)
        tops = greatest * _CUTS
        zeros, ones = save_loss(scores, moves, 0.0), save_loss(scores, moves, 1.0)
        means = np.minimum(zeros, tops[:, None]) @ (masses * (1 - self.rates))
        means += np.minimum(ones, tops[:, None]) @ (masses * self.rates)
        range_of_one = (tops - least) / (2 * edge)
        noise = range_of_one / math.sqrt(max(agents, 1.0))
        spread = np.hypot(noise, part * self.deviation)
        upper = bound.quantile * noise - means + spread * _CHANCES[:, None]
        expected = np.interp(part * bound.allow(upper), _STEPS, self.gains).mean(axis=0)
        room = np.maximum(means + bound.tolerance, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            needed = (bound.quantile * range_of_one / room) ** 2
        best = int(np.argmax(expected))
        return float(expected[best]), least, float(tops[best]), float(needed.min())


def _draw(fit: Fit, odds: Floats, beyond: float, bends: bool) -> tuple[Floats, Floats]:
    """The knots of a map that is constant beyond all but a small share of the scores."""
    scores, below = fit.axis.middles, np.cumsum(fit.masses)
    first = min(int(np.searchsorted(below, beyond)), len(scores) - 2)
    last = min(max(int(np.searchsorted(below, 1 - beyond)), first + 1), len(scores) - 1)
    chosen = np.arange(first, last + 1) if bends else np.array([first, last])
    return scores[chosen], (odds - scores)[chosen]


def bound_savings(knots: Floats, shifts: Floats) -> tuple[float, float]:
    """The greatest log loss that a map saves for any score and label, and the least: below 0.

    With label 0 a shift d costs softplus(s + d) - softplus(s), which lies between 0 and d, and
    further from 0 the greater s is. Label 1 is its mirror image.
    """
    places = np.union1d(np.linspace(knots[0], knots[-1], _SEGMENTS + 1), knots)
    between = np.interp(places, knots, shifts)
    rises = np.maximum(np.maximum(between[1:], between[:-1]), 0.0)
    falls = np.minimum(np.minimum(between[1:], between[:-1]), 0.0)
    lower, upper = places[:-1], places[1:]
    # Beyond the ends the shift is that of the end, and the score as far out as can be.
    costs = [
        -save_loss(upper, rises, 0.0).min(initial=0.0),
        -save_loss(lower, falls, 1.0).min(initial=0.0),
        max(shifts[-1], -shifts[0], 0.0),
    ]
    saves = [
        save_loss(upper, falls, 0.0).max(initial=0.0),
        save_loss(lower, rises, 1.0).max(initial=0.0),
        max(-shifts[-1], shifts[0], 0.0),
    ]
    return float(max(saves)) + _ROUNDING, -float(max(costs)) - _ROUNDING


def draw_up(
    counts: Counts, edge: float, edges: Floats, fit: Fit, odds: Floats, beta: float
) -> ReliabilityDiagram:
    """Estimate the rate of label 1 in the bins between the edges.

    Args:
        counts: Answers to questions that were fixed before these agents were asked.
        edge: Pr[truth] - Pr[lie] of the answers' randomizer.
        edges: Thresholds that were asked about with and without the label.
        fit: The fit, whose masses say how scores are spread within a bin.
        odds: Log-odds of the calibrated model on the cells of the fit.
        beta: Probability with which an interval may miss.
    """
    places = (-math.inf, *edges.tolist(), math.inf)
    tails = [[_Tail.of(counts, edge, t, labeled) for t in places] for labeled in (False, True)]
    # A tail bounds two bins.
    ends = [[tail.interval(beta / 8) for tail in part] for part in tails]
    masses, labels = (list(pairwise(part)) for part in tails)
    mass_ends, label_ends = (list(pairwise(part)) for part in ends)
    pairs = zip(masses, labels, mass_ends, label_ends, strict=True)
    rows = [_rate(mass, label, (*outer, *inner), beta) for mass, label, outer, inner in pairs]
    low, rates, high, shares = (np.array(column) for column in zip(*rows, strict=True))
    before, after = (_means(fit, values, edges) for values in (fit.axis.middles, odds))
    return ReliabilityDiagram(edges, before, after, rates, low, high, shares, beta)


@dataclass(frozen=True)
class _Tail:
    """Answers about Pr[score > threshold], or about that and label 1."""

    ones: int
    size: int
    edge: float
    known: float | None = None

    @classmethod
    def of(cls, counts: Counts, edge: float, threshold: float, labeled: bool) -> _Tail:
        if threshold == math.inf or (threshold == -math.inf and not labeled):
            return cls(0, 0, edge, known=float(threshold < 0))
        chosen = counts.select((counts.thresholds == threshold) & (counts.labeled == labeled))
        return cls(int(chosen.ones.sum()), int(chosen.sizes.sum()), edge)

    @property
    def value(self) -> float:
        """The estimate without bias."""
        if self.known is not None:
            return self.known
        return float(debias(self.ones / self.size, self.edge)) if self.size else 0.5

    @property
    def width(self) -> float:
        """Square of the range of an answer's part in the estimate, over the number of answers."""
        if self.known is not None:
            return 0.0
        return 1 / (self.size * self.edge**2) if self.size else math.inf

    def interval(self, beta: float) -> tuple[float, float]:
        """The exact interval, not clipped."""
        if self.known is not None:
            return self.known, self.known
        if not self.size:
            return 0.0, 1.0
        low, high = clopper_pearson(self.ones, self.size, beta)
        return debias(low, self.edge), debias(high, self.edge)


def _rate(
    mass: tuple[_Tail, _Tail],
    label: tuple[_Tail, _Tail],
    ends: tuple[_Ends, _Ends, _Ends, _Ends],
    beta: float,
) -> tuple[float, float, float, float]:
    """Low end, estimate and high end of the share of label 1 between two edges, and the mass."""
    share, ones = mass[0].value - mass[1].value, label[0].value - label[1].value
    low, high = _divide_ends(*ends)
    # Hoeffding's bound for all answers at once: much narrower where their noise is most of it.
    half = hoeffding_width(beta)
    rates = np.linspace(0, 1, _RATES + 1)
    by_label, by_mass = label[0].width + label[1].width, mass[0].width + mass[1].width
    with np.errstate(invalid="ignore"):
        reach = half * np.sqrt(by_label + rates**2 * by_mass)
    possible = np.flatnonzero(~(np.abs(ones - rates * share) > reach))
    if len(possible):
        low = max(low, (possible[0] - 1) / _RATES)
        high = min(high, (possible[-1] + 1) / _RATES)
    low, high = min(low, high), max(low, high)
    rate = ones / share if share > 0 else (low + high) / 2
    return low, min(max(rate, low), high), high, min(max(share, 0.0), 1.0)


def hoeffding_width(beta: float) -> float:
    """How far a sum of answers may be off but for beta / 2, in roots of their squared ranges."""
    return math.sqrt(math.log(4 / beta) / 2)


def _divide_ends(mass: _Ends, mass_after: _Ends, label: _Ends, label_after: _Ends) -> _Ends:
    """The least and the greatest rate that the intervals of its parts allow."""

    def clip(value: float) -> float:
        return min(max(value, 0.0), 1.0)

    mass_low, mass_high = clip(mass[0] - mass_after[1]), clip(mass[1] - mass_after[0])
    label_low, label_high = clip(label[0] - label_after[1]), clip(label[1] - label_after[0])
    low = min(label_low / mass_high, 1.0) if mass_high > 0 else 0.0
    return low, min(label_high / mass_low, 1.0) if mass_low > 0 else 1.0


def _means(fit: Fit, odds: Floats, edges: Floats) -> Floats:
    """Mean probability in each bin, by the masses of the fit."""
    above = np.vstack([np.ones(len(odds)), fit.axis.above(edges), np.zeros(len(odds))])
    inside = (above[:-1] - above[1:]) * fit.masses
    means: Floats = (inside @ sigmoid(odds)) / np.maximum(inside.sum(axis=1), 1e-300)
    return means
