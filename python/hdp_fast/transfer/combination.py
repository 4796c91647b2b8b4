"""One mean, or one table of shares, of a panel's release and of agents' reports together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .. import local
from .._support.json_text import JsonText
from .._support.notes import keep_result, note
from .._support.types import Floats
from .._support.validate import positive, probability, refuse
from ..exceptions import ParameterError, ShapeError
from ..local.randomizers.base import Deviation, deviations_of, half_width
from ..record import PrivacyRecord
from ..statistics import Histogram, Statistic
from ..statistics.release_noise import ReleasedNoise

# Half of a width may differ from the same number in its last digits.
_ROUNDING = 1e-12


def weigh(panel: float, agents: float) -> float:
    """The weight of the first of two independent estimates that leaves the least variance.

    panel, agents: their variances, or mean squared errors, not both 0.

    Source: Avent, Dubey and Korolova 2020; the combination leaves
    `panel agents / (panel + agents)`, no more than either.
    """
    return agents / (panel + agents)


@dataclass(frozen=True, eq=False, repr=False)
class CombinedEstimate(JsonText):
    """A mean, or a table of shares, from a panel and from agents, as one population has it.

    Attributes:
        value: The estimate: a float for a mean, clipped to the bounds; float64 of shape (k,) for
            shares, which may be negative and need not add up to 1.
        low: Lower end of the interval, or lower ends, which hold all at once.
        high: Upper end, or upper ends.
        normal_low: Lower end of a narrower interval, which takes the estimate for a normal one of
            the variance that its weight is made of; without a promise. For shares each holds alone.
        normal_high: Upper end of it.
        beta: Probability with which the interval, or any of the intervals, may miss.
        weight: The panel's part of the estimate; the agents have the rest.
        panel: What the panel alone says, unclipped.
        agents: What the agents alone say, unclipped.
        gap: How far the two lie apart; the largest distance of two shares.
        largest_gap: What it exceeds with probability beta at most, if both groups have one law.
        shifted: Whether it does: then take the agents alone.
        n: Number of records.
        reports: Number of reports of agents.
        record: What protects the records.
        agents_record: What protects each report.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, statistics, transfer
        >>> colors = np.repeat([0, 1, 2], [5_000, 3_000, 2_000])
        >>> panel = statistics.histogram(colors, categories=range(3), epsilon=1.0)
        >>> asked = local.best_frequency(3, epsilon=1.0)
        >>> both = transfer.combine(panel, asked.aggregate(asked.sample(np.tile(colors, 5))))
        >>> bool(np.abs(both.value - [0.5, 0.3, 0.2]).max() < 0.04), both.shifted, both.reports
        (True, False, 50000)
    """

    value: Any
    low: Any
    high: Any
    normal_low: Any
    normal_high: Any
    beta: float
    weight: float
    panel: Any
    agents: Any
    gap: float
    largest_gap: float
    shifted: bool
    n: int
    reports: int
    record: PrivacyRecord
    agents_record: PrivacyRecord

    def __repr__(self) -> str:
        """The estimate, where it comes from, and whether both parts can be of one population."""
        parts = (
            f"{self.weight:.3g} of it from {self.n:,} records, epsilon {self.record.epsilon:g}, "
            f"the rest from {self.reports:,} reports, epsilon {self.agents_record.epsilon:g}"
        )
        moved = "SHIFTED: take the agents alone" if self.shifted else "as one law allows"
        apart = f"{self.gap:.3g} apart, {moved} ({self.largest_gap:.3g})"
        if np.ndim(self.value):
            half = float(np.max(self.high - self.low)) / 2
            shown = f"{np.size(self.value):,} shares within {half:.3g}"
        else:
            shown = f"{self.value:.6g} in [{self.low:.6g}, {self.high:.6g}]"
        return f"CombinedEstimate({shown}, beta={self.beta:g}; {parts}; {apart})"


class _Part(NamedTuple):
    """One of both estimates, unclipped.

    Attributes:
        value: What it says; shape (k,), with k = 1 for a mean.
        variance: The variance that weights are made of.
        deviations: Bounds of how its sum deviates, each divided by the number of summands; any
            of them holds.
        rounding: By how much it may be moved, beside that.
    """

    value: Floats
    variance: float
    deviations: list[Deviation]
    rounding: float


@keep_result
def combine(
    panel: Statistic | Histogram,
    agents: local.MeanAggregate | local.FrequencyAggregate,
    *,
    deviation: float | None = None,
    beta: float = 0.05,
) -> CombinedEstimate:
    """Combines a panel's released mean, or counts, and agents' reports, by inverse variances.

    The combination is an estimate of the agents' population only if the panel is drawn from the
    same one. Where the laws differ it is biased by the weight of the panel times their difference.
    A difference that noise and chance do not explain is told, as `shifted` and by a UtilityWarning;
    a smaller one remains unseen. Agents alone have no such bias.

    Variances are those of the noise, which is public, and of the sampling of both groups. The
    latter is that of the largest spread which the bounds allow (half of the values at each bound,
    or equal shares), so that the weights are public, too. For this law no weights err less; for
    others the better part alone may err less than both together. Where values are spread less, pass
    their `deviation`: the combination then errs no more than the better part, but for the noise of
    the panel's mean in the weights.

    Args:
        panel: A Statistic of statistics.mean for a mean, a Histogram of statistics.histogram for
            shares, of a public number of records without groups, and of one row a person.
        agents: The aggregate of the agents' reports about the same: a MeanAggregate of the same
            bounds, or a FrequencyAggregate of as many categories in the same order. Answers of
            Agents.ask are reports of BinaryResponse with the bounds (0, 1).
        deviation: Standard deviation of the values, a public or a released number such as the root
            of statistics.variance, above 0 and at most half the width of the bounds; only for a
            mean. None takes the largest.
        beta: Probability with which the interval may miss, in (0, 1).

    Returns:
        A CombinedEstimate.

    Raises:
        ParameterError: panel is no release of this kind, agents are of other bounds, are of another
            kind or have no reports, or deviation or beta is out of range.
        ShapeError: There are other numbers of categories.

    Guarantee:
        This is post-processing of released numbers and costs no privacy. If all records and agents
        are independent draws of one law, the estimate has no bias but that of rounding to the
        panel's grid and of its last clipping, and the interval holds for every n and every law. It
        uses no normal approximation: moment-generating functions of both parts are multiplied, for
        which it is about 1.4 times as wide, and may be wider than the exact one of BinaryResponse
        alone. With `deviation`, on which weights then depend, it is where such intervals of both
        parts, of half of beta each, agree, extended to the estimate.

    Cost:
        That of the aggregate's own estimate.

    Source:
        Avent, Dubey and Korolova 2020 for the weights; Boucheron, Lugosi and Massart 2013, Theorem
        2.10, for the interval.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, statistics, transfer
        >>> hours = np.random.default_rng(0).choice([6.0, 9.0], 52_000)  # one law for everybody
        >>> panel = statistics.mean(hours[:2_000], low=0, high=24, epsilon=1.0)
        >>> asked = local.BinaryResponse(1.0, bounds=(0, 24))
        >>> aggregate = asked.aggregate(asked.sample(hours[2_000:]))
        >>> both = transfer.combine(panel, aggregate, deviation=1.5, beta=1e-6)
        >>> both.low < 7.5 < both.high, both.shifted, round(both.weight, 2)
        (True, False, 0.91)
    """
    failure = probability("beta", beta)
    noise = _read_panel(panel)
    spread, parts = _read_parts(panel, agents, noise, deviation)
    odds = math.log(2 * len(parts[0].value)) - math.log(failure)
    weight = weigh(parts[0].variance, parts[1].variance)
    value = weight * parts[0].value + (1 - weight) * parts[1].value
    if spread is None:
        half = _bound(parts, (weight, 1 - weight), odds)
        low, high = value - half, value + half
    else:
        low, high = _agree(value, parts, odds + math.log(2))
    gap = float(np.abs(parts[0].value - parts[1].value).max())
    largest = _bound(parts, (1.0, 1.0), odds)
    shifted = gap > largest
    if shifted:
        _note_shift(gap, largest)
    is_mean = isinstance(panel, Statistic)
    variance = weight**2 * parts[0].variance + (1 - weight) ** 2 * parts[1].variance
    normal = -NormalDist().inv_cdf(failure / 2) * math.sqrt(variance)
    least, most, normal_low, normal_high = (
        _show(end.clip(noise.low, noise.high), is_mean)
        for end in (low, high, value - normal, value + normal)
    )
    return CombinedEstimate(
        _show(value.clip(noise.low, noise.high) if is_mean else value, is_mean),
        least,
        most,
        normal_low,
        normal_high,
        failure,
        weight,
        _show(parts[0].value, is_mean),
        _show(parts[1].value, is_mean),
        gap,
        largest,
        shifted,
        noise.n,
        agents.reports,
        panel.record,
        agents.randomizer.record(),
    )


def _show(values: Floats, is_mean: bool) -> Any:
    return float(values[0]) if is_mean else values


def _read_panel(panel: Any) -> ReleasedNoise:
    if not isinstance(panel, Statistic | Histogram):
        rule = "it must be a Statistic of statistics.mean or a Histogram"
        raise ParameterError(f"panel is {type(panel).__name__}, but {rule}")
    if panel.noise is None:
        rule = (
            "it must be of statistics.mean or histogram, replace_one, no groups, one row a person"
        )
        raise ParameterError(f"panel is a {type(panel).__name__} of unknown noise, but {rule}")
    return panel.noise


def _read_parts(
    panel: Statistic | Histogram, agents: Any, noise: ReleasedNoise, deviation: float | None
) -> tuple[float | None, tuple[_Part, _Part]]:
    kind: Any = local.MeanAggregate if isinstance(panel, Statistic) else local.FrequencyAggregate
    if not isinstance(agents, kind):
        rule = f"beside a {type(panel).__name__} it must be a {kind.__name__}"
        raise ParameterError(f"agents is {type(agents).__name__}, but {rule}")
    if isinstance(panel, Histogram):
        if deviation is not None:
            refuse("deviation", deviation, "it must be None for shares")
        return None, _parts_of_shares(panel, agents, noise)
    low, high = agents.randomizer.bounds
    if (low, high) != (noise.low, noise.high):
        rule = f"they must be those of the panel, ({noise.low:g}, {noise.high:g})"
        raise ParameterError(f"bounds of agents are ({low:g}, {high:g}), but {rule}")
    spread = None
    if deviation is not None:
        spread, most = positive("deviation", deviation), (high - low) / 2
        if spread > most * (1 + _ROUNDING):
            refuse("deviation", deviation, f"bounds allow {most:g} at most")
    return spread, _parts_of_means(panel, agents, noise, spread)


def _parts_of_means(
    panel: Statistic, agents: local.MeanAggregate, noise: ReleasedNoise, spread: float | None
) -> tuple[_Part, _Part]:
    randomizer, width = agents.randomizer, noise.high - noise.low
    middle, largest = (noise.low + noise.high) / 2, width / 2
    chance = largest if spread is None else spread
    # What a report adds is quadratic in the value's distance from the middle, and so its mean.
    distance = largest
    if spread is not None:
        distance = min(math.hypot(spread, panel.value - middle), largest)
    answer = randomizer.variance(middle + distance) + chance**2
    assert panel.unclipped is not None
    return (
        _part_of_panel(np.array([panel.unclipped]), noise, chance**2),
        _part_of_agents(np.array([agents.mean()]), agents, answer, width),
    )


def _parts_of_shares(
    panel: Histogram, agents: local.FrequencyAggregate, noise: ReleasedNoise
) -> tuple[_Part, _Part]:
    k = agents.randomizer.k
    if len(panel.value) != k:
        raise ShapeError(f"panel has {len(panel.value)} counts, but agents have {k} categories")
    # The mean over categories, for equal shares.
    chance = (1 - 1 / k) / k
    answer = agents.randomizer.variance() + chance
    return (
        _part_of_panel(panel.value / noise.n, noise, chance),
        _part_of_agents(agents.frequencies(), agents, answer, 1.0),
    )


def _part_of_panel(value: Floats, noise: ReleasedNoise, chance: float) -> _Part:
    """The mean of the records, whose values lie in a range, and its noise."""
    of_noise = noise.scale**2
    variance = (noise.high - noise.low) ** 2 / 4 / noise.n
    # The moments of discrete Laplace noise are below those of the continuous one.
    bound = Deviation(variance + 2 * of_noise, noise.scale)
    if noise.law == "gaussian":
        bound = Deviation(variance + of_noise, 0.0)
    return _Part(value, noise.deviation**2 + chance / noise.n, [bound], noise.rounding)


def _part_of_agents(value: Floats, agents: Any, answer: float, unit: float) -> _Part:
    reports = agents.reports
    deviations = [
        Deviation(bound.variance * unit**2 / reports, bound.scale * unit / reports)
        for bound in deviations_of(agents.randomizer)
    ]
    return _Part(value, answer / reports, deviations, 0.0)


def _bound(parts: Sequence[_Part], weights: tuple[float, float], odds: float) -> float:
    """Bounds a weighted sum of both errors of either sign, but for 2 exp(-odds)."""
    (first, second), (one, other) = parts, weights
    bounds = [
        Deviation(
            one**2 * mine.variance + other**2 * theirs.variance,
            max(one * mine.scale, other * theirs.scale),
        )
        for mine in first.deviations
        for theirs in second.deviations
    ]
    return half_width(bounds, 1, odds) + one * first.rounding + other * second.rounding


def _agree(value: Floats, parts: Sequence[_Part], odds: float) -> tuple[Floats, Floats]:
    """Where the intervals of both agree, extended to the value; both hold but for beta."""
    halves = [half_width(part.deviations, 1, odds) + part.rounding for part in parts]
    lows = [part.value - half for part, half in zip(parts, halves, strict=True)]
    highs = [part.value + half for part, half in zip(parts, halves, strict=True)]
    low, high = np.maximum(*lows), np.minimum(*highs)
    return np.minimum(low, value), np.maximum(high, value)


def _note_shift(gap: float, largest: float) -> None:
    rule = f"of one law they lie {largest:.3g} apart at most: take the agents alone"
    note(f"panel and agents say means or shares that lie {gap:.3g} apart, and {rule}")
