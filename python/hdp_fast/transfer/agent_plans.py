"""How many agents a certificate takes, and how many see that a column moved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._support.binomial import clopper_pearson
from .._support.json_text import JsonText
from .._support.validate import (
    number,
    positive,
    positive_int,
    probability,
    probability_or_one,
    refuse,
)
from ..accounting.calibration import largest_local_epsilon, least_people
from ..exceptions import AgentsExhausted, ParameterError
from ..local.estimation import (
    agents_for_width,
    answers_for_width,
    epsilon_of,
    record_of,
    require_all,
)
from ..local.pool import AgentPool
from ..record import PrivacyRecord, tell_both

# One agent of so many is asked for its label, which is the error of a constant.
AGENTS_PER_LABEL = 5
_MOST = 1 << 62
_MOST_COLUMNS = 1 << 20


def agents_to_certify(
    half_width: float,
    *,
    epsilon: float,
    beta: float = 0.05,
    compared: bool = False,
    response_rate: float = 1.0,
    shuffled: float | None = None,
) -> int:
    """Counts the agents that `certify` must be given for an interval of this half width.

    Whatever they answer, the interval is no wider. This takes about half as many agents as
    `local.agents_needed` counts for an interval by Hoeffding's inequality.

    Behind a shuffler fewer agents are enough: `plan_certificate` tells the epsilon of an answer.
    Answers about the model are one mix, and labels another, of a fifth of the people.

    Args:
        half_width: Half of the largest width of the interval, above 0 and below 1.
        epsilon: Privacy parameter of each agent's answer, above 0; of the shuffled answers, where
            they are shuffled.
        beta: Probability with which the interval may miss, in (0, 1).
        compared: Whether two models are compared. If not, a fifth of the agents are asked for their
            label.
        response_rate: Public share of those asked who will answer, in (0, 1]. If fewer do, the
            interval is wider.
        shuffled: Delta of the shuffled answers, strictly between 0 and 1. None: no one mixes them.

    Returns:
        The number of agents, which is the `count` of certify.

    Raises:
        ParameterError: An argument is out of range, there cannot be so many agents, or answers are
            shuffled and not everybody answers.

    Source:
        Clopper and Pearson 1934, for an equal number of answers 0 and 1.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.agents_to_certify(0.05, epsilon=1.0)
        2312
        >>> transfer.agents_to_certify(0.05, epsilon=1.0, compared=True)
        7319
        >>> transfer.agents_to_certify(0.05, epsilon=1.0, shuffled=1e-6)
        877
    """
    width, failure = probability("half_width", half_width), probability("beta", beta)
    rate = probability_or_one("response_rate", response_rate)
    answers = answers_for_width(
        width / 2 if compared else width,
        beta=failure,
        epsilon=epsilon,
        wanted=f"half_width = {half_width}",
    )
    asked = math.ceil(answers / rate)
    # The least count of which four fifths, rounded up, are so many.
    most = asked if compared else asked + (asked - 1) // (AGENTS_PER_LABEL - 1)
    most = most if compared else max(most, AGENTS_PER_LABEL)
    if shuffled is None:
        return most
    failing = probability("shuffled", shuffled)
    require_all("response_rate", rate)

    def enough(people: int) -> float:
        about_model = people if compared else people - people // AGENTS_PER_LABEL
        low, high = clopper_pearson(about_model // 2, about_model, failure)
        return epsilon_of((high - low) / 2 / (width / 2 if compared else width))

    def mixed(people: int) -> int:
        return people if compared else people // AGENTS_PER_LABEL

    return least_people(enough, most=most, epsilon=epsilon, delta=failing, mixed=mixed)


def check_agents(agents: Any) -> AgentPool:
    """The agents, which must be a pool of them.

    Raises:
        ParameterError: It is none.
    """
    if not isinstance(agents, AgentPool):
        rule = "it must be local.Agents or local.RemoteAgents"
        raise ParameterError(f"agents = {type(agents).__name__}, but {rule}")
    return agents


def count_agents(count: int | None, agents: AgentPool) -> int:
    """The number of agents that a call asks: all that are left, where it names none.

    Raises:
        ParameterError: count is no integer of at least 1.
    """
    return agents.remaining if count is None else positive_int("count", count, _MOST)


def require_left(count: int, agents: AgentPool) -> None:
    """Refuses to ask more agents than can still answer, or none.

    Those who were asked by a call that was interrupted may be among the count.

    Raises:
        AgentsExhausted: There are not so many.
    """
    left = agents.available
    if not 0 < count <= left:
        raise AgentsExhausted(f"count = {count:,}, but {left:,} agents are left")


def record_mixes(record: PrivacyRecord, mixes: Iterable[int], delta: float) -> PrivacyRecord:
    """The record of bits that a shuffler mixes by themselves: as private as the smallest mix.

    Mixes without a report are left out.
    """
    smallest = min((reports for reports in mixes if reports), default=1)
    return record.shuffled(smallest, delta=delta, categories=2)


def tell_epsilon(record: PrivacyRecord, shuffled: PrivacyRecord | None) -> str:
    """The epsilon of an answer, and of shuffled answers, in the words of a result."""
    return f"epsilon={record.epsilon:g}" if shuffled is None else tell_both(shuffled)


@dataclass(frozen=True, repr=False)
class CertificatePlan(JsonText):
    """A plan that promises no error, but says afterwards how large it is.

    Where no hypothesis is known to fit, no number of records promises a small error on the target.
    But agents measure the error of any model, whatever it was learned from and however the target
    differs from the source. `transfer.certify(model, agents)` does it.

    Attributes:
        n: Number of the curator's records, 0: any model can be measured.
        N: Number of agents to ask, a fifth of them for their label.
        error: None, since no error is promised.
        failure: Probability with which the interval may miss the error.
        alpha: Half width of the interval of the error, in (0, 1).
        agents_epsilon: Privacy parameter of each agent's answer.
        response_rate: Share of the agents asked who are expected to answer, in (0, 1].
        shuffled_record: What protects the answers behind a shuffler; None without one.

    Source:
        Clopper and Pearson 1934; see `transfer.agents_to_certify`.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0).N
        2312
        >>> transfer.plan_certificate(alpha=0.02, agents_epsilon=1.0).N
        14262
    """

    n: int
    N: int
    error: None
    failure: float
    alpha: float
    agents_epsilon: float
    response_rate: float
    shuffled_record: PrivacyRecord | None = None

    def __repr__(self) -> str:
        width = f"the error on the target to within {self.alpha:g}"
        failure = f"except with probability {self.failure:g}"
        mixed = "" if self.shuffled_record is None else f"; {tell_both(self.shuffled_record)}"
        return f"CertificatePlan(N={self.N:,}, {width} {failure}; no error is promised{mixed})"


def plan_certificate(
    *,
    alpha: float,
    agents_epsilon: float,
    beta: float = 0.05,
    response_rate: float = 1.0,
    shuffled: float | None = None,
) -> CertificatePlan:
    """Computes how many agents measure the error of any model to within alpha.

    It assumes nothing of source and class, and so promises no error. `transfer.certify` says
    afterwards how large it is.

    Args:
        alpha: Half width of the interval of the error, in (0, 1).
        agents_epsilon: Privacy parameter of each agent's answer, above 0; of the shuffled answers,
            where they are shuffled.
        beta: Probability with which the interval may miss the error, in (0, 1).
        response_rate: Public share of the agents asked who will answer, in (0, 1]; that of
            `local.RemoteAgents`. More agents are asked accordingly.
        shuffled: Delta of the shuffled answers, strictly between 0 and 1. None: no one mixes them.

    Returns:
        The plan. Run it with `transfer.certify(model, agents)` on plan.N agents, each with
        plan.agents_epsilon: behind a shuffler it is larger than the one asked for.

    Raises:
        ParameterError: A parameter is out of range, or answers are shuffled and not everybody
            answers.

    Guarantee:
        Each agent's answer is plan.agents_epsilon-DP, locally. Behind a shuffler that mixes all
        answers about the model, and all labels, plan.shuffled_record holds.

    Cost:
        Some hundredths of a second, for exact binomial tails.

    Source:
        Clopper and Pearson 1934; see `transfer.agents_to_certify`.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0).N
        2312
    """
    epsilon = positive("agents_epsilon", agents_epsilon)
    width, failure = probability("alpha", alpha), probability("beta", beta)
    rate = probability_or_one("response_rate", response_rate)
    agents = agents_to_certify(
        width, epsilon=epsilon, beta=failure, response_rate=rate, shuffled=shuffled
    )
    record = None
    if shuffled is not None:
        n = max(1, agents // AGENTS_PER_LABEL)
        epsilon = largest_local_epsilon(n, epsilon=epsilon, delta=shuffled, categories=2)
        record = record_of("local.Agents", epsilon, None).shuffled(n, delta=shuffled, categories=2)
    return CertificatePlan(0, agents, None, failure, width, epsilon, rate, record)


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
