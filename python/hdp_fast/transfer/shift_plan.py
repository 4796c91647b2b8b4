"""How many agents it takes to see that a column moved."""

from __future__ import annotations

from dataclasses import dataclass

from .._support.json_text import JsonText
from .._support.validate import number, positive_int, probability, probability_or_one, refuse
from ..local.estimation import agents_for_width

_MOST_COLUMNS = 1 << 20


@dataclass(frozen=True)
class ShiftPlan(JsonText):
    """How many agents it takes to see a shift, before anybody is asked.

    Attributes:
        columns: Number of columns.
        shift: A shift above this is sure to show, in units of a column's bounds, but for beta.
        agents_per_column: Agents to ask about each column.
        N: Agents to ask altogether.
        beta: Probability with which some interval misses, or some such shift does not show.
        agents_epsilon: Privacy parameter of each answer.
        source_width: Half width of the intervals of the source's means.
        response_rate: Share of those asked who are expected to answer.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_shifts(30, shift=0.2, agents_epsilon=1.0).N
        49830
    """

    columns: int
    shift: float
    agents_per_column: int
    N: int
    beta: float
    agents_epsilon: float
    source_width: float
    response_rate: float


def plan_shifts(
    columns: int,
    *,
    shift: float,
    agents_epsilon: float,
    beta: float = 0.05,
    source_width: float = 0.0,
    response_rate: float = 1.0,
) -> ShiftPlan:
    """Computes how many agents `shifted_columns` needs to be sure to see a shift.

    Args:
        columns: Number of columns d.
        shift: Least difference of two means that must show, in units of a column's bounds, above
            twice the source_width and below 1.
        agents_epsilon: Privacy parameter of each answer, above 0.
        beta: Probability with which this may fail, in (0, 1).
        source_width: Half width of the intervals of the source's means, at least 0: the sum of that
            of their noise and of their sampling. With 0 the source's means are exact.
        response_rate: Public share of those asked who will answer, in (0, 1].

    Returns:
        The plan.

    Raises:
        ParameterError: An argument is out of range, or 1e18 or more agents would be needed.

    Source:
        Hoeffding's inequality, with a union bound over the columns: where all intervals cover, and
        each is narrower than the shift, none of a column that moved so far holds 0.

    Examples:
        >>> from hdp_fast import transfer
        >>> plan = transfer.plan_shifts(30, shift=0.2, agents_epsilon=1.0)
        >>> plan.agents_per_column
        1661
    """
    failure = probability("beta", beta)
    d = positive_int("columns", columns, _MOST_COLUMNS)
    width = number("source_width", source_width)
    if not 0 <= width < 0.5:
        refuse("source_width", source_width, "it must lie in [0, .5)")
    if not 2 * width < number("shift", shift) < 1:
        refuse("shift", shift, "it must be below 1, and above twice the source_width")
    rate = probability_or_one("response_rate", response_rate)
    each = agents_for_width(
        shift / 2 - width,
        target_share(failure, width > 0),
        agents_epsilon,
        times=d,
        response_rate=rate,
        wanted=f"shift = {shift}",
    )
    return ShiftPlan(d, shift, each, d * each, failure, agents_epsilon, width, rate)


def target_share(beta: float, shared: bool) -> float:
    """Returns what of beta the agents' intervals take; the source's take the rest, if shared."""
    return beta / 2 if shared else beta
