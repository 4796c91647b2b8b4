"""Which columns moved between the source and the target, by one randomized bit of each agent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import JsonText
from .._support.notes import keep_result, note
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import nonnegative_int, number, probability, refuse
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..local.estimation import half_width
from ..local.pool import AgentPool
from ..local.queries.query import Query
from ..record import PrivacyRecord
from .agent_plans import check_agents, plan_shifts, require_left, target_share
from .column_means import ColumnMeans, answer_intervals, estimate_means, upper_means

# A column that is constant to within c in the source, and more than this times c away from that
# end in the target, may be left out.
_VARIES = 5
_LEAST_CONSTANT, _MOST_CONSTANT = 0.01, 0.02
# A shift of less than this that is not sure to show makes a report of little use.
_COARSE = 0.5


@dataclass(frozen=True)
class ColumnShift:
    """One column in the source and in the target, in units of its public bounds.

    Attributes:
        name: Name of the column.
        agents: Number of agents whose answers count.
        source: Mean of the source, in [0, 1].
        source_low: Lower end of the interval of the mean of the source's records.
        source_high: Upper end. Without noise both ends are the mean itself, up to rounding.
        target: Estimated mean of the target; None if no agent answered.
        target_low: Lower end of its interval.
        target_high: Upper end.
        difference: Target less source; None if no agent answered.
        low: Lower end of the interval of the difference of both populations' means.
        high: Upper end.
        moved: Whether this interval lies above 0 or below.
        constant_in: "source", "target" or "both" where the column is nearly constant, at 0 or
            1, as its intervals prove; None elsewhere.
        droppable: Whether it is nearly constant in the source, and surely not so in the target: its
            mean is more than five times the report's `constant` away from that end.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> agents = local.Agents(np.ones((20_000, 1)), np.ones(20_000, int), epsilon=1.0)
        >>> (column,) = transfer.shifted_columns([0.0], agents).columns
        >>> column.moved, column.droppable, column.target_low > 0.9
        (True, True, True)
    """

    name: str
    agents: int
    source: float
    source_low: float
    source_high: float
    target: float | None
    target_low: float
    target_high: float
    difference: float | None
    low: float
    high: float
    moved: bool
    constant_in: str | None
    droppable: bool


@dataclass(frozen=True)
class ShiftReport(JsonText):
    """Which columns moved between the source and the target, and which may be left out.

    All intervals hold at once with probability 1 - beta.

    A column that moved need not be left out: people may differ in it for good reasons, and a model
    without it is often worse. What may be left out automatically is only what is `droppable`: a
    column that is nearly constant in the source, so that nothing is learned about it there, and not
    in the target. The reverse, a column that is nearly constant in the target, adds the same number
    to all scores of a linear model, which a calibration repairs.

    Attributes:
        columns: One ColumnShift for each column, in their order.
        beta: Probability with which some interval misses.
        constant: A mean at most this far from 0 or 1 is called nearly constant.
        visible: A shift above this, in units of the bounds, is sure to show but for beta.
        agents_asked: Number of agents that were asked.
        record: What protects the source's records; None where nothing does, or needs to.
        agents_record: What protects each agent's answer.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> people = np.tile([[0, 1], [1, 1]], (10_000, 1))
        >>> agents = local.Agents(people, np.zeros(20_000, int), epsilon=1.0)
        >>> report = transfer.shifted_columns([0.0, 1.0], agents, beta=1e-9)
        >>> report.moved, report.droppable
        (('x0',), ('x0',))
    """

    columns: tuple[ColumnShift, ...]
    beta: float
    constant: float
    visible: float
    agents_asked: int
    record: PrivacyRecord | None
    agents_record: PrivacyRecord

    @property
    def moved(self) -> tuple[str, ...]:
        """Names of the columns that moved, the largest difference first."""
        rows = [column for column in self.columns if column.moved]
        rows.sort(key=lambda column: -abs(column.difference or 0.0))
        return tuple(column.name for column in rows)

    @property
    def droppable(self) -> tuple[str, ...]:
        """Names of the columns that may be left out automatically, in their order."""
        return tuple(column.name for column in self.columns if column.droppable)

    def _to_fields(self) -> Mapping[str, Any]:
        return {**vars(self), "moved": self.moved, "droppable": self.droppable}

    def __repr__(self) -> str:
        counts = f"{len(self.moved)} of {len(self.columns)} columns moved"
        lines = [f"ShiftReport({counts}, droppable={list(self.droppable)}, beta={self.beta:g})"]
        by_name = {column.name: column for column in self.columns}
        for name in self.moved:
            column = by_name[name]
            text = f"{column.source:.3f} -> {column.target:.3f}"
            lines.append(f"  {name}: {text}, by {column.low:+.3f} to {column.high:+.3f}")
        return "\n".join(lines)


@keep_result
def shifted_columns(
    source: ColumnMeans | ArrayLike,
    agents: AgentPool,
    *,
    count: int | None = None,
    beta: float = 0.05,
    constant: float | None = None,
    random_state: RandomState = None,
) -> ShiftReport:
    """Finds out which columns have another mean in the target than in the source.

    Each agent is asked about one column, which is assigned by its place in the pool and not by its
    record. It scales its value from the public bounds to [0, 1], rounds it to 1 with this
    probability, and sends the bit through randomized response. Agents must stand in an order that
    has nothing to do with their records, as an independent sample does.

    With RemoteAgents that have a `state`, pass `count`: the same call after a crash then takes up
    the answers to what was asked, and asks only the rest.

    Args:
        source: The source's means with their bounds, from `release_means` or `ColumnMeans.public`;
            or public means in [0, 1], shape (d,), of columns whose bounds are 0 and 1.
        agents: The people of the target: local.Agents, or local.RemoteAgents, whose records have
            these d columns.
        count: Number of agents to ask, at least d; None asks all that are left.
        beta: Probability, in (0, 1), with which any of the intervals may miss.
        constant: A mean at most this far from 0 or 1 is called nearly constant, in (0, .1]. None
            takes .01, or twice the half width of the source's noise where that is more, but at most
            .02.
        random_state: As for Agents.ask.

    Returns:
        The report, a frozen ShiftReport.

    Raises:
        ParameterError: An argument is out of range. No one is asked.
        ShapeError: source is no vector, or agents have another number of columns.
        AgentsExhausted: Fewer agents than columns are left, or than `count`. No one is asked.

    Guarantee:
        Pure epsilon-DP for each agent, with the agents' epsilon: each answers one question, which
        depends on no record. The report adds nothing to what the source's means have released. All
        intervals hold at once with a probability of at least 1 - beta, if the agents are an
        independent sample of the target, and the source's n records one of the source. Where some
        agents do not answer, this must not depend on their records.

    Cost:
        d questions, each with a pass over the records of its agents.

    Source:
        Clopper and Pearson 1934 for the answers, Hoeffding 1963, Theorem 1, for the records, and
        the union bound.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> source = transfer.ColumnMeans.public([0.5, 0.3], names=["female", "member"])
        >>> town = np.tile([[0, 1], [1, 1]], (10_000, 1))
        >>> agents = local.Agents(town, np.zeros(20_000, int), epsilon=1.0)
        >>> transfer.shifted_columns(source, agents, beta=1e-9).moved
        ('member',)
    """
    check_random_state(random_state)
    failure = probability("beta", beta)
    means = source if isinstance(source, ColumnMeans) else _read_means(source)
    check_agents(agents)
    d = len(means.means)
    queries = _make_queries(means, agents)
    counts = _share_out(agents.remaining if count is None else count, d, agents)
    intervals = _Intervals(means, failure, agents.epsilon)
    threshold = _choose_constant(constant, intervals.noise)
    visible = intervals.visible(int(counts.min() * agents.response_rate))
    _note_before(counts, visible, intervals, threshold)
    stream = make_stream(random_state)
    asked = list(zip(queries, counts.tolist(), strict=True))
    told = agents.ask_together(asked, random_state=stream)
    ones = np.array([int(bits.sum()) for _, bits in told])
    answers = np.array([len(bits) for _, bits in told])
    return ShiftReport(
        columns=tuple(_compare(intervals, ones, answers, threshold)),
        beta=failure,
        constant=threshold,
        visible=visible,
        agents_asked=sum(asked for asked, _ in told),
        record=means.record,
        agents_record=agents.record(random_state),
    )


class _Intervals:
    """The intervals of all columns, at probabilities of failure that add up to beta."""

    def __init__(self, means: ColumnMeans, beta: float, epsilon: float):
        self.means, self.epsilon, self.d = means, epsilon, len(means.means)
        sources = (means.deviation > 0) + (means.n is not None)
        self._target = target_share(beta, sources > 0)
        # The other half of beta pays for the source's noise and for its sampling.
        part = beta / 2 / max(sources, 1)
        self.noise = means.half_width(part)
        self._sampling = part / (2 * self.d)

    def target(self, ones: Integers, answers: Integers) -> tuple[Floats, Floats]:
        return answer_intervals(ones, answers, self._target / self.d, self.epsilon)

    def records(self) -> tuple[Floats, Floats]:
        """Those of the means of the source's records."""
        mean = self.means.means
        return (mean - self.noise).clip(0.0, 1.0), (mean + self.noise).clip(0.0, 1.0)

    def source(self) -> tuple[Floats, Floats]:
        """Those of the means of the population that these records were drawn from."""
        low, high = self.records()
        if self.means.n is None:
            return low, high
        n, failure = self.means.n, self._sampling
        return 1 - upper_means(1 - low, n, failure), upper_means(high, n, failure)

    def visible(self, answers: int) -> float:
        """The least shift that is sure to show, with so many answers about each column."""
        if not answers:
            return 1.0
        width = half_width(answers, self._target / self.d, self.epsilon) + self.noise
        if self.means.n is not None:
            width += math.sqrt(-math.log(self._sampling) / (2 * self.means.n))
        return min(2 * width, 1.0)


def _read_means(source: Any) -> ColumnMeans:
    if np.ndim(source) == 2:
        rule = "records need release_means first (epsilon = math.inf for a public table)"
        raise ShapeError(f"source has two dimensions, but it must be means: {rule}")
    try:
        return ColumnMeans.public(source)
    except (ParameterError, ShapeError) as error:
        raise type(error)(str(error).replace("means", "source", 1)) from None


def _make_queries(means: ColumnMeans, agents: AgentPool) -> list[Query]:
    width = getattr(agents, "d", len(means.means))
    if width != len(means.means):
        raise ShapeError(f"agents have {width} columns, but source has {len(means.means)}")
    bounds = zip(means.low.tolist(), means.high.tolist(), strict=True)
    return [Query.value(place, low, high) for place, (low, high) in enumerate(bounds)]


def _share_out(count: int, d: int, agents: AgentPool) -> Integers:
    """How many agents are asked about each column."""
    wanted = nonnegative_int("count", count)
    if wanted < d:
        raise AgentsExhausted(f"count = {wanted:,}, but each of the {d:,} columns needs an agent")
    require_left(wanted, agents)
    counts = np.full(d, wanted // d, np.int64)
    counts[: wanted % d] += 1
    return counts


def _choose_constant(constant: float | None, noise: float) -> float:
    if constant is None:
        return min(max(_LEAST_CONSTANT, 2 * noise), _MOST_CONSTANT)
    if not 0 < number("constant", constant) <= 0.1:
        refuse("constant", constant, "it must lie in (0, .1]")
    return float(constant)


def _note_before(counts: Integers, visible: float, intervals: _Intervals, constant: float) -> None:
    """Warns, from public facts, where the report will tell little."""
    if visible > _COARSE:
        d, total = len(counts), int(counts.sum())
        plan = plan_shifts(d, shift=_COARSE / 2, agents_epsilon=intervals.epsilon)
        few = f"count = {total:,} agents are {int(counts.min()):,} for each of {d} columns"
        least = f"only a shift above {visible:.2g} of a column's range is sure to show"
        note(f"{few}: {least}, and {plan.N:,} agents are sure to show one of {plan.shift:g}")
    if intervals.noise * 2 > constant:
        width = f"noise of half width {intervals.noise:.2g} on the source's means"
        rule = f"no column is sure to be called nearly constant (within {constant:g})"
        note(f"{width}: {rule}; a larger epsilon, or more records, would help")


def _compare(
    intervals: _Intervals, ones: Integers, answers: Integers, constant: float
) -> list[ColumnShift]:
    means = intervals.means
    record_low, record_high = intervals.records()
    source_low, source_high = intervals.source()
    target_low, target_high = intervals.target(ones, answers)
    targets = estimate_means(ones, answers, intervals.epsilon)
    low, high = target_low - source_high, target_high - source_low
    shifts = []
    for i, name in enumerate(means.names):
        source, target = float(means.means[i]), float(targets[i])
        in_source = _constant_end(record_low[i], record_high[i], constant)
        in_target = _constant_end(target_low[i], target_high[i], constant)
        varies = {0: target_low[i] > _VARIES * constant, 1: target_high[i] < 1 - _VARIES * constant}
        shifts.append(
            ColumnShift(
                name=name,
                agents=int(answers[i]),
                source=source,
                source_low=float(record_low[i]),
                source_high=float(record_high[i]),
                target=target if answers[i] else None,
                target_low=float(target_low[i]),
                target_high=float(target_high[i]),
                difference=target - source if answers[i] else None,
                low=float(low[i]),
                high=float(high[i]),
                moved=bool(low[i] > 0 or high[i] < 0),
                constant_in=_CONSTANT[in_source is not None, in_target is not None],
                droppable=in_source is not None and bool(varies[in_source]),
            )
        )
    return shifts


_CONSTANT: Mapping[tuple[bool, bool], str | None] = {
    (False, False): None,
    (True, False): "source",
    (False, True): "target",
    (True, True): "both",
}


def _constant_end(low: float, high: float, constant: float) -> int | None:
    """The end, 0 or 1, at which a mean within this interval surely is nearly constant, if any."""
    if high <= constant:
        return 0
    return 1 if low >= 1 - constant else None
