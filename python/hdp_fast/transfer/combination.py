"""One mean, or one table of shares, of a panel's release and of agents' reports together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from ..local.randomizers.base import deviations_of
from ..record import PrivacyRecord
from ..statistics import Histogram, Statistic
from ..statistics.release_noise import ReleasedNoise

# What rounding may do to the last digits.
_ROUNDING = 1e-12
# Exponents of Chernoff's bound, as parts of the best one of a normal error.
_EXPONENTS = 2.0 ** np.linspace(-6, 2, 129)


def weigh(central: float, agents: float) -> float:
    """The weight of the first of two independent estimates that leaves the least variance.

    central, agents: their variances, or mean squared errors, not both 0.

    Source: Avent, Dubey and Korolova 2020; the combination leaves
    `central agents / (central + agents)`, no more than either.
    """
    return agents / (central + agents)


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
        central: What the panel alone says, unclipped.
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
    central: Any
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


class Part(NamedTuple):
    """How one of both estimates errs.

    Attributes:
        variance: The variance that weights are made of.
        spread: One that bounds hold for, in the order of that of the largest spread.
        cumulant: A bound of the logarithm of E exp(x error), for arrays of x at least 0 and of
            both signs of the error; infinite where none is known.
        rounding: By how much it may be moved, beside that.
    """

    variance: float
    spread: float
    cumulant: Callable[[Floats], Floats]
    rounding: float


@keep_result
def combine(
    central: Statistic | Histogram,
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
        central: A Statistic of statistics.mean for a mean, a Histogram of statistics.histogram for
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
        ParameterError: central is no release of this kind, agents are of other bounds, of another
            kind or without reports, or deviation or beta is out of range.
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
        Avent, Dubey and Korolova 2020 for the weights; Hoeffding 1963, and Boucheron, Lugosi and
        Massart 2013, Section 2.4, for the moments of the interval.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, statistics, transfer
        >>> hours = np.random.default_rng(0).choice([6.0, 9.0], 52_000)  # one law for everybody
        >>> panel = statistics.mean(hours[:2_000], low=0, high=24, epsilon=1.0)
        >>> asked = local.BinaryResponse(1.0, bounds=(0, 24))
        >>> aggregate = asked.aggregate(asked.sample(hours[2_000:]))
        >>> both = transfer.combine(panel, aggregate, deviation=1.5, beta=1e-6)
        >>> both.low < 7.5 < both.high, both.shifted, round(both.weight, 1)
        (True, False, 0.9)
    """
    failure = probability("beta", beta)
    noise = _read_panel(central)
    spread, parts = _read_parts(central, agents, noise, deviation)
    values = _read_values(central, agents, noise)
    odds = math.log(2 * len(values[0])) - math.log(failure)
    weight = weigh(parts[0].variance, parts[1].variance)
    value = weight * values[0] + (1 - weight) * values[1]
    if spread is None:
        half = bound_error(parts, (weight, 1 - weight), odds)
        low, high = value - half, value + half
    else:
        # The weights may depend on what the panel released.
        halves = [bound_error([part], [1.0], odds + math.log(2)) for part in parts]
        low, high = _agree(values, value, halves)
    gap = float(np.abs(values[0] - values[1]).max())
    largest = bound_error(parts, (1.0, 1.0), odds)
    shifted = gap > largest
    if shifted:
        _note_shift(gap, largest)
    is_mean = isinstance(central, Statistic)
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
        _show(values[0], is_mean),
        _show(values[1], is_mean),
        gap,
        largest,
        shifted,
        noise.n,
        agents.reports,
        central.record,
        agents.randomizer.record(),
    )


def _show(values: Floats, is_mean: bool) -> Any:
    return float(values[0]) if is_mean else values


def _read_panel(central: Any) -> ReleasedNoise:
    if not isinstance(central, Statistic | Histogram):
        rule = "it must be a Statistic of statistics.mean or a Histogram"
        raise ParameterError(f"central is {type(central).__name__}, but {rule}")
    if central.noise is None:
        rule = (
            "it must be of statistics.mean or histogram, replace_one, no groups, one row a person"
        )
        raise ParameterError(f"central is a {type(central).__name__} of unknown noise, but {rule}")
    return central.noise


def _read_parts(
    central: Statistic | Histogram, agents: Any, noise: ReleasedNoise, deviation: float | None
) -> tuple[float | None, tuple[Part, Part]]:
    kind: Any = local.MeanAggregate if isinstance(central, Statistic) else local.FrequencyAggregate
    if not isinstance(agents, kind):
        rule = f"beside a {type(central).__name__} it must be a {kind.__name__}"
        raise ParameterError(f"agents is {type(agents).__name__}, but {rule}")
    if not agents.reports:
        refuse("reports", 0, "agents must have at least 1")
    if isinstance(central, Histogram):
        if deviation is not None:
            refuse("deviation", deviation, "it must be None for shares")
        return None, _parts_of_shares(central, agents, noise)
    low, high = agents.randomizer.bounds
    if (low, high) != (noise.low, noise.high):
        rule = f"they must be those of the panel, ({noise.low:g}, {noise.high:g})"
        raise ParameterError(f"bounds of agents are ({low:g}, {high:g}), but {rule}")
    spread = None
    if deviation is not None:
        spread, most = positive("deviation", deviation), (high - low) / 2
        if spread > most * (1 + _ROUNDING):
            refuse("deviation", deviation, f"bounds allow {most:g} at most")
    return spread, _parts_of_means(central, agents, noise, spread)


def _read_values(
    central: Statistic | Histogram, agents: Any, noise: ReleasedNoise
) -> tuple[Floats, Floats]:
    """What both say, without bias, shape (k,); k = 1 for a mean."""
    if isinstance(central, Histogram):
        return central.value / noise.n, agents.frequencies()
    return np.array([central.unclipped]), np.array([agents.mean()])


def _parts_of_means(
    central: Statistic, agents: local.MeanAggregate, noise: ReleasedNoise, spread: float | None
) -> tuple[Part, Part]:
    randomizer, width = agents.randomizer, noise.high - noise.low
    middle, largest = (noise.low + noise.high) / 2, width / 2
    chance = largest if spread is None else spread
    # What a report adds is quadratic in the value's distance from the middle, and so its mean.
    distance = largest
    if spread is not None:
        distance = min(math.hypot(spread, central.value - middle), largest)
    answer = randomizer.variance(middle + distance) + chance**2
    mine = part_of_panel(noise, chance**2)
    return mine, part_of_agents(randomizer, agents.reports, answer, width)


def _parts_of_shares(
    central: Histogram, agents: local.FrequencyAggregate, noise: ReleasedNoise
) -> tuple[Part, Part]:
    k = agents.randomizer.k
    if len(central.value) != k:
        raise ShapeError(f"central has {len(central.value)} counts, but agents have {k} categories")
    # The mean over categories, for equal shares.
    chance = (1 - 1 / k) / k
    answer = agents.randomizer.variance() + chance
    mine = part_of_panel(noise, chance)
    return mine, part_of_agents(agents.randomizer, agents.reports, answer, 1.0)


def part_of_panel(noise: ReleasedNoise, chance: float) -> Part:
    """The mean of records, whose values lie in a range and have the variance `chance`."""
    widest = (noise.high - noise.low) ** 2 / 4 / noise.n
    of_noise = noise.scale**2 * (1 if noise.law == "gaussian" else 2)

    def cumulant(x: Floats) -> Floats:
        if noise.law == "gaussian":
            return (widest + of_noise) * x**2 / 2
        # The moments of discrete Laplace noise are below those of the continuous one.
        squares = (noise.scale * x) ** 2
        return widest * x**2 / 2 - np.log1p(-np.minimum(squares, 1.0))

    variance = noise.deviation**2 + chance / noise.n
    return Part(variance, widest + of_noise, cumulant, noise.rounding)


def part_of_agents(randomizer: Any, reports: int, answer: float, unit: float) -> Part:
    """The mean of what reports contribute, each of the variance `answer`; unit: their range."""
    bounds = deviations_of(randomizer)

    def cumulant(x: Floats) -> Floats:
        scaled = unit * x / reports
        each = [
            np.where(
                bound.scale * scaled < 1,
                bound.variance * scaled**2 / 2 / np.maximum(1 - bound.scale * scaled, 0.0),
                np.inf,
            )
            for bound in bounds
        ]
        total: Floats = reports * np.min(each, axis=0)
        return total

    spread = bounds[0].variance * unit**2 / reports
    return Part(answer / reports, spread, cumulant, 0.0)


def bound_error(parts: Sequence[Part], weights: Sequence[float], odds: float) -> float:
    """Bounds a weighted sum of independent errors of either sign, but for 2 exp(-odds).

    It is Chernoff's bound, at the best of some exponents.
    """
    spread = math.fsum(w**2 * part.spread for part, w in zip(parts, weights, strict=True))
    exponents = math.sqrt(2 * odds / spread) * _EXPONENTS
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = [part.cumulant(w * exponents) for part, w in zip(parts, weights, strict=True)]
        half = float(np.min((np.sum(sums, axis=0) + odds) / exponents)) * (1 + _ROUNDING)
    return half + math.fsum(w * part.rounding for part, w in zip(parts, weights, strict=True))


def _agree(values: Sequence[Floats], value: Floats, halves: Sequence[float]) -> list[Floats]:
    """Where the intervals of both agree, extended to the value."""
    low = np.max([one - half for one, half in zip(values, halves, strict=True)], axis=0)
    high = np.min([one + half for one, half in zip(values, halves, strict=True)], axis=0)
    return [np.minimum(low, value), np.maximum(high, value)]


def _note_shift(gap: float, largest: float) -> None:
    rule = f"of one law they lie {largest:.3g} apart at most: take the agents alone"
    note(f"panel and agents say means or shares that lie {gap:.3g} apart, and {rule}")
