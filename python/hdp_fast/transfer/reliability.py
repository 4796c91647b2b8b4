"""Reliability diagrams from randomized answers, with exact intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._support.binomial import clopper_pearson
from .._support.json_text import JsonText
from .._support.types import Floats
from ..local.response import debias
from .calibration_fit import Counts, Fit, sigmoid

_Ends = tuple[float, float]
# Rates are tried on a grid, and intervals widened by one of its steps.
_RATES = 1000


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(JsonText):
    """What agents say about the probabilities that a model predicts, in bins of its scores.

    Bins are bounded by public or released thresholds. The intervals hold for every population that
    the agents who answer are an independent sample of. A rate is a quotient of differences of
    shares. The interval is what two bounds leave of [0, 1]: Clopper-Pearson intervals of the
    randomized bits of each share, whose ends are combined, and Hoeffding's inequality for all of
    them at once. It is wide where epsilon is small, since few questions tell of a bin.

    Attributes:
        edges: The bounds of the k bins, float array of shape (k - 1,).
        before: Mean probability in each bin by the model as it was, shape (k,).
        after: Mean probability in each bin by the calibrated model, shape (k,).
        rates: Estimated share of label 1 in each bin, shape (k,), moved into its interval.
        low: Lower ends of the intervals, shape (k,).
        high: Upper ends of the intervals, shape (k,).
        shares: Estimated share of the target in each bin, shape (k,).
        beta: Probability with which the interval of one bin may miss.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> scores = np.random.default_rng(0).normal(-1, 2, 60_000)
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(1.5 - scores))
        >>> agents = local.Agents(scores[:, None], y, epsilon=4.0)
        >>> result = transfer.calibrate(lambda X: X[:, 0], agents)
        >>> diagram = result.reliability
        >>> len(diagram.edges), bool((diagram.before > diagram.after)[1:].all())
        (7, True)
    """

    edges: Floats
    before: Floats
    after: Floats
    rates: Floats
    low: Floats
    high: Floats
    shares: Floats
    beta: float

    def __repr__(self) -> str:
        rows = zip(self.before, self.after, self.rates, self.low, self.high, strict=True)
        bins = ", ".join(
            f"{b:.2f} -> {a:.2f} ({r:.2f} in [{lo:.2f}, {hi:.2f}])" for b, a, r, lo, hi in rows
        )
        return f"ReliabilityDiagram({len(self.rates)} bins: {bins})"

    def plot(self) -> bytes:
        """Draws the diagram with matplotlib.

        Returns:
            The content of a PNG file.

        Raises:
            ImportError: matplotlib is not installed; the error names the extra.
        """
        import importlib

        draw: Any = importlib.import_module("hdp_fast.plotting").reliability
        return draw(self)  # type: ignore[no-any-return]


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
    half = math.sqrt(math.log(4 / beta) / 2)
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


def diagram_of(fields: Mapping[str, Any]) -> ReliabilityDiagram:
    """Read a diagram from the fields that to_json wrote."""
    arrays = {name: np.array(value, float) for name, value in fields.items() if name != "beta"}
    return ReliabilityDiagram(**arrays, beta=float(fields["beta"]))
