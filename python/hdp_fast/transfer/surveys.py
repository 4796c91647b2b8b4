"""Surveys: means, shares, cross tables and post-stratified estimates from one bit of each agent."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import local
from .._support.json_text import JsonText
from .._support.notes import keep_result, note
from .._support.numbers import answers as checked_answers
from .._support.random_state import check_random_state, make_stream
from .._support.types import Bits, Floats, RandomState
from .._support.validate import nonnegative_int, number, positive, probability, refuse
from ..exceptions import AgentsExhausted, ParameterError
from ..gf2 import BitMatrix
from ..local.estimation import advantage, bound_all, estimate_exactly, tell_doubts
from ..local.pool import AgentPool, check_question
from ..local.queries.query import Query
from ..record import PrivacyRecord
from ..statistics.shares import Shares
from .agent_plans import (
    check_agents,
    count_agents,
    record_mixes,
    require_left,
    tell_epsilon,
)

Kind = Literal["mean", "mean of a stratum", "share of a stratum", "post-stratified"]
Question = Query | Callable[[Any, Bits], ArrayLike]

_MOST_NAMES = 3
# The bytes of bits that are unpacked at a time.
_UNPACKED = 1 << 24
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SurveyRow:
    """One estimate of a survey.

    Attributes:
        question: Name of the question; None for the share of a stratum.
        stratum: Name of the stratum; None for an estimate about all.
        kind: "mean" of a question, "mean of a stratum", "share of a stratum" among the agents, or
            "post-stratified" mean.
        value: The estimate, in the bounds of the question.
        low: Lower end of an interval that misses with probability at most beta.
        high: Upper end of that interval.
        low_any: Lower end of such an interval that needs no assumption about those who did not
            answer: it holds for all who were asked, whatever the result's `liars` have sent. With
            everybody's answer and no liars it is the other one.
        high_any: Upper end of that interval.
        low_all: Lower end of an interval that is wider, so that those of all rows hold at once
            except with probability beta.
        high_all: Upper end of that interval.
        normal_low: Lower end of a narrower interval by the delta method, a normal approximation
            without a promise. None where the exact interval has one part only.
        normal_high: Upper end of that interval.
        asked: Number of agents who were asked for it.
        answered: Number of those who answered.
        bounds: The least and the greatest value that there can be.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> agents = local.Agents(np.full((9_000, 1), 30.0), np.ones(9_000, int), epsilon=1.0)
        >>> questions = {"age": local.Query.value(0, 0, 100)}
        >>> row = transfer.survey(questions, agents, beta=1e-9)["age"]
        >>> row.kind, row.low < 30 < row.high, row.asked
        ('mean', True, 9000)
    """

    question: str | None
    stratum: str | None
    kind: Kind
    value: float
    low: float
    high: float
    low_any: float
    high_any: float
    low_all: float
    high_all: float
    normal_low: float | None
    normal_high: float | None
    asked: int
    answered: int
    bounds: tuple[float, float]

    @property
    def name(self) -> str:
        """The question and its stratum, as tables and figures show them."""
        if self.question is None:
            return f"share of {self.stratum}"
        suffix = ", post-stratified" if self.kind == "post-stratified" else ""
        return (
            f"{self.question}{suffix}"
            if self.stratum is None
            else f"{self.question} | {self.stratum}"
        )


@dataclass(frozen=True, repr=False)
class SurveyResult(JsonText):
    """What a survey estimates; it prints as a table.

    Attributes:
        rows: The estimates: for each question its strata and then itself, and at the end the shares
            of the strata.
        beta: Probability with which each interval may miss, and all wider ones together.
        agents: Number of agents who were asked.
        agents_record: PrivacyRecord of each agent's answer.
        shuffled_record: PrivacyRecord of all answers behind a shuffler, which mixes those to each
            question by themselves; None without one.
        liars: The most answers that may be anything, for the intervals without assumptions.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> agents = local.Agents(np.full((9_000, 1), 30.0), np.ones(9_000, int), epsilon=1.0)
        >>> result = transfer.survey({"label": local.Query.label()}, agents)
        >>> result["label"].value > 0.8, result.agents, list(result.to_columns())[:4]
        (True, 9000, ['question', 'stratum', 'kind', 'value'])
    """

    rows: tuple[SurveyRow, ...]
    beta: float
    agents: int
    agents_record: PrivacyRecord
    shuffled_record: PrivacyRecord | None = None
    liars: int = 0

    def __getitem__(self, question: str) -> SurveyRow:
        """The row of a question about all: post-stratified, if it has that; else its mean.

        Raises:
            ParameterError: There is no such row.
        """
        for row in self.rows:
            if row.question == question and row.stratum is None:
                return row
        known = ", ".join(str(row.question) for row in self.rows if row.stratum is None)
        rule = f"there are estimates about all for: {known or 'none'}"
        raise ParameterError(f"question = {question!r}, but {rule}")

    def to_columns(self) -> dict[str, list[Any]]:
        """Writes the rows as columns, as pandas.DataFrame takes them.

        Returns:
            A dict from the name of each attribute of the rows to the list of its values.
        """
        return {name: [getattr(row, name) for row in self.rows] for name in _COLUMNS}

    def __repr__(self) -> str:
        names = [row.name for row in self.rows]
        width = max(map(len, names))
        lines = [
            f"{name:<{width}}  {row.value:9.4g}  [{row.low:.4g}, {row.high:.4g}]  "
            f"all [{row.low_all:.4g}, {row.high_all:.4g}]  {_describe_answers(row, self.liars)}"
            for name, row in zip(names, self.rows, strict=True)
        ]
        epsilon = tell_epsilon(self.agents_record, self.shuffled_record)
        head = f"SurveyResult({self.agents:,} agents, {epsilon}, beta={self.beta:g})"
        return "\n".join([head, *lines])


def _describe_answers(row: SurveyRow, liars: int) -> str:
    is_whole = row.answered == row.asked
    of_all = "" if is_whole else f" of {row.asked:,}"
    doubts = tell_doubts(None if is_whole else "whoever is silent", liars)
    ends = f", {doubts} [{row.low_any:.4g}, {row.high_any:.4g}]" if doubts else ""
    return f"{row.answered:,} answers{of_all}{ends}"


_COLUMNS = tuple(SurveyRow.__dataclass_fields__)


def cross_table(*variables: Mapping[str, Query]) -> dict[str, Query]:
    """Makes the questions for the cells of a cross table: one query for each combination.

    Args:
        variables: For each variable of the table the name and the query of each of its values, such
            as {"young": Query.between(0, high=30), "old": Query.between(0, low=30)}.

    Returns:
        A dict from the names, with commas between them, to the products of the queries, in the
        order of the variables. `survey` takes it.

    Raises:
        ParameterError: There is no variable, or one is no mapping from names to queries.

    Examples:
        >>> from hdp_fast import local, transfer
        >>> Query = local.Query
        >>> ages = {"young": Query.between(0, high=30), "old": Query.between(0, low=30)}
        >>> transfer.cross_table(ages, {"yes": Query.label()})
        {'young, yes': Query(x0 < 30 and y), 'old, yes': Query(30 <= x0 and y)}
    """
    if not variables:
        raise ParameterError("variables are none, but a table must have one")
    for variable in variables:
        _check_queries("variables", variable)
    cells = itertools.product(*(variable.items() for variable in variables))
    return {
        ", ".join(name for name, _ in cell): reduce(and_, (query for _, query in cell))
        for cell in cells
    }


@keep_result
def survey(
    questions: Mapping[str, Question],
    agents: AgentPool,
    *,
    strata: Mapping[str, Query] | None = None,
    weights: Mapping[str, float] | None = None,
    sampled: Mapping[str, float] | None = None,
    count: int | None = None,
    shares: Mapping[str, float] | None = None,
    by_stratum: bool = True,
    beta: float = 0.05,
    shuffled: float | None = None,
    liars: int = 0,
    random_state: RandomState = None,
) -> SurveyResult:
    """Asks each agent one of several questions, and estimates the mean of each.

    How many agents are asked each question is public and fixed beforehand. Which simulated agents
    these are, a public random order decides; RemoteAgents are asked question after question, and
    must be invited in a random order.

    With `strata`, which must be disjoint groups of the population, each agent is asked either for
    the product of a question and a stratum, or whether it belongs to a stratum. The mean of a
    question y in the stratum s is then `E[y s] / E[s]`. With `weights` w, the shares of the strata
    in another, known population, the post-stratified mean is the sum of `w_s E[y s] / E[s]`. It
    corrects for the way in which the agents were sampled as far as the strata explain it.

    Each row has an interval that misses with probability at most beta, a wider one with which all
    rows hold at once, and one that needs no assumption about those who did not answer. The interval
    of a ratio divides the ends of exact intervals for its two parts, and a post-stratified one adds
    such intervals up; all parts of a row share its beta. Where weights have noise it is one more
    part, and the ends are the extreme means that the noisy counts leave possible.

    Args:
        questions: Name and Query of each question. Agents that are simulated also take a function
            of X and y, as Agents.ask does, without strata.
        agents: The agents. All of them, or the next `count`, are asked.
        strata: Name and Query of each stratum, with answers 0 and 1. None asks about all.
        weights: Share of each stratum in the population that the post-stratified mean is about:
            numbers of at least 0 that add up to 1. None makes no post-stratified mean. The noise of
            statistics.Shares, as a release of tables makes them, is in the intervals; these are
            then about the rows of that release.
        sampled: Public share of each stratum in the population that the agents are drawn from,
            above 0, adding up to at most 1. None asks agents for it.
        count: Number of agents to ask; None asks all that are left.
        shares: For each question a number above 0 in proportion to which agents are divided. None
            divides equally. The shares of strata get as many agents as an average question.
        by_stratum: Whether strata have rows of their own. False, which needs weights and sampled
            shares, makes only the post-stratified mean: each agent multiplies its answer with what
            its stratum counts for. One exact interval then stands for all strata, and is narrower.
        beta: Probability with which an interval may miss, in (0, 1).
        shuffled: Delta of the answers behind a shuffler, strictly between 0 and 1, if one mixes
            them before they arrive, all to a question at once and not batch by batch. Whom a
            question goes to is public, so that it mixes the answers to each question by themselves:
            the record is that of the question with the fewest. None tells the epsilon of an answer
            alone.
        liars: The most answers of the whole survey that may be anything, sent by people who do not
            follow the protocol, even about a question that they were not asked. `low_any` and
            `high_any` then hold all the same.
        random_state: As for Agents.ask; it also draws the public order.

    Returns:
        A SurveyResult. A UtilityWarning names the rows whose interval is all that is possible.

    Raises:
        ParameterError: An argument breaks its rule, the names of weights, sampled or shares are not
            those of strata or questions, or RemoteAgents cannot be sent a question. No one is
            asked.
        ShapeError: A query does not fit the features of the agents. No one is asked.
        AgentsExhausted: Fewer agents are left than are to be asked, or than there are questions.
            No one is asked.
        Exception: What a function or the agents raise.

    Guarantee:
        Pure epsilon-DP for each agent, with the agents' epsilon, in the local model. With
        `shuffled`, that of the result's shuffled_record against everybody who sees answers only
        after they were mixed, if no one's silence depends on its record. All who answered are
        taken to follow the protocol: an answer of an attacker hides no one. Intervals are
        for the population of which the agents who answer are an independent sample; `low_any` and
        `high_any` for the one of which those who were asked are, whoever of them is silent.

    Cost:
        A pass over the agents' records.

    Source:
        Warner 1965; Clopper and Pearson 1934 for the randomized answers, a union bound for those of
        several parts; Fieller 1954 for noisy weights.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> Query, rng = local.Query, np.random.default_rng(0)
        >>> age = rng.integers(18, 90, (80_000, 1))
        >>> agents = local.Agents(age, age[:, 0] > 60, epsilon=2.0)
        >>> strata = {"young": Query.between(0, high=50), "old": Query.between(0, low=50)}
        >>> weights = {"young": 0.7, "old": 0.3}  # fewer old people than among the agents
        >>> result = transfer.survey({"y": Query.label()}, agents, strata=strata, weights=weights)
        >>> [row.kind for row in result.rows][1:3], 0.1 < result["y"].value < 0.35
        (['mean of a stratum', 'post-stratified'], True)
    """
    plan = _SurveyPlan(questions, strata, weights, sampled, shares, by_stratum, agents)
    failure = probability("beta", beta)
    failing = None if shuffled is None else probability("shuffled", shuffled)
    lying = nonnegative_int("liars", liars)
    check_random_state(random_state)
    size = _check_count(count, agents, len(plan.cells))
    counts = _divide(plan.cells, size)
    if isinstance(agents, local.RemoteAgents):
        results = _ask_people(plan.cells, counts, agents)
    else:
        results = _ask_at_random(plan.cells, counts, agents, make_stream(random_state))
    rows = plan.estimate(results, failure, agents.epsilon, lying)
    record = agents.record(random_state)
    mixes = [cell.answered for cell in results]
    mixed = None if failing is None else record_mixes(record, mixes, failing)
    result = SurveyResult(rows, failure, size, record, mixed, lying)
    _note_no_knowledge(result, len(plan.cells))
    return result


# Questions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cell:
    """What some of the agents are asked: a question, a question in a stratum, or a stratum."""

    question: str | None
    stratum: str | None
    query: Question
    share: float


class _Answers(NamedTuple):
    """The number of agents of a cell, of their answers, and of the ones among these."""

    asked: int
    answered: int
    ones: int


@dataclass(frozen=True)
class _CellMeans:
    """The estimates of all cells at a failure probability of each."""

    answers: Mapping[tuple[str | None, str | None], _Answers]
    epsilon: float
    failure: float
    sampled: Mapping[str, float]
    # What the noise of weights may add to the failure probability.
    of_weights: float
    # How many of those who answered may lie, where nothing is assumed of the silent ones, either.
    liars: int | None = None
    _known: dict[Any, local.Estimate] = field(default_factory=dict)

    def mean(self, question: str | None, stratum: str | None) -> local.Estimate:
        """The mean of a cell; a share that is known has no interval."""
        if question is None and stratum is not None and stratum in self.sampled:
            share = self.sampled[stratum]
            return local.Estimate(share, share, share)
        key = question, stratum
        if key not in self._known:
            self._known[key] = self._estimate(self.answers[key])
        return self._known[key]

    def _estimate(self, answers: _Answers) -> local.Estimate:
        if not answers.answered:
            return local.Estimate(0.5, 0.0, 1.0)
        law: Any = {"beta": self.failure, "epsilon": self.epsilon}
        estimate = estimate_exactly(answers.ones, answers.answered, **law)
        if self.liars is None:
            return estimate
        counts = answers.ones, answers.answered, answers.asked
        ends = bound_all(*counts, **law, liars=self.liars)
        return local.Estimate(estimate.value, *ends)

    def ratio(self, question: str, stratum: str) -> local.Estimate:
        """The mean of a question in a stratum; both parts hold at once."""
        mean, share = self.mean(question, stratum), self.mean(None, stratum)
        low = min(1.0, mean.low / share.high) if share.high > 0 else 0.0
        high = min(1.0, mean.high / share.low) if share.low > 0 else 1.0
        value = mean.value / share.value if share.value > 0 else (low + high) / 2
        return local.Estimate(min(max(value, low), high), low, high)

    def variance(self, question: str | None, stratum: str | None) -> float:
        """The variance of the unbiased mean of a cell."""
        if question is None and stratum in self.sampled:
            return 0.0
        _, answered, ones = self.answers[question, stratum]
        if not answered:
            return math.inf
        share = ones / answered
        return share * (1 - share) / answered / advantage(self.epsilon) ** 2

    def ratio_variance(self, question: str, stratum: str) -> float:
        """By the delta method; infinite where no one seems to be in the stratum."""
        share, ratio = self.mean(None, stratum).value, self.ratio(question, stratum).value
        if not share > 0:
            return math.inf
        parts = self.variance(question, stratum), self.variance(None, stratum)
        return (parts[0] + ratio**2 * parts[1]) / share**2


class _SurveyPlan:
    """The questions of a survey, whom they are about, and what becomes of the answers."""

    def __init__(
        self,
        questions: Mapping[str, Question],
        strata: Mapping[str, Query] | None,
        weights: Mapping[str, float] | None,
        sampled: Mapping[str, float] | None,
        shares: Mapping[str, float] | None,
        by_stratum: bool,
        agents: Any,
    ):
        check_agents(agents)
        _check_questions(questions, agents, needs_query=strata is not None)
        for name, value in (("weights", weights), ("sampled", sampled)):
            if value is not None and strata is None:
                raise ParameterError(f"{name} are for strata, but strata = None")
        self.questions, self.strata = dict(questions), _check_strata(strata, agents)
        self.weights = _check_weights(weights, self.strata)
        # Their noise, where they are shares of a release; in the order of the strata.
        self.noisy = weights if isinstance(weights, Shares) else None
        self.sampled = _check_sampled(sampled, self.strata)
        if not by_stratum and not (self.weights and self.sampled):
            rule = "it needs strata, and both weights and sampled shares"
            raise ParameterError(f"by_stratum = False, but {rule}")
        self.by_stratum = bool(by_stratum)
        self.cells = self._make_cells(_check_shares(shares, self.questions))

    def _make_cells(self, shares: Mapping[str, float]) -> list[_Cell]:
        if not self.strata:
            pairs = self.questions.items()
            return [_Cell(name, None, query, shares[name]) for name, query in pairs]
        if not self.by_stratum:
            ratios = [
                (query, self._ratio(name) / self._scale) for name, query in self.strata.items()
            ]
            group = Query.weighted(ratios)
            pairs = self.questions.items()
            return [_Cell(name, None, query & group, shares[name]) for name, query in pairs]  # type: ignore[operator]
        parts = len(self.strata)
        cells = [
            _Cell(name, stratum, query & group, shares[name] / parts)  # type: ignore[operator]
            for name, query in self.questions.items()
            for stratum, group in self.strata.items()
        ]
        average = sum(shares.values()) / len(shares)
        groups = () if self.sampled else self.strata.items()
        return cells + [_Cell(None, name, query, average / parts) for name, query in groups]

    def _ratio(self, stratum: str) -> float:
        return self.weights[stratum] / self.sampled[stratum]

    @property
    def _scale(self) -> float:
        """What the answer 1 stands for if strata are weighted on the agents' side."""
        return max(map(self._ratio, self.strata))

    def estimate(
        self, answers: list[_Answers], beta: float, epsilon: float, liars: int = 0
    ) -> tuple[SurveyRow, ...]:
        """The rows of the result."""
        self._liars = liars
        keys = [(cell.question, cell.stratum) for cell in self.cells]
        known = dict(zip(keys, answers, strict=True))

        def parts(failure: float, of_weights: float = 0.0) -> _CellMeans:
            return _CellMeans(known, epsilon, failure, self.sampled, of_weights)

        # Noisy weights are one more part of each post-stratified row.
        noisy = 0 if self.noisy is None else 1

        self._z = NormalDist().inv_cdf(1 - beta / 2)
        # Rows are functions of cells: where the intervals of all cells hold, so do those of rows.
        of_all = beta / (len(self.cells) + noisy)
        together = parts(of_all, of_all / len(self.questions))
        one, per_ratio = parts(beta), parts(beta / (1 if self.sampled else 2))
        of_parts = beta / (max(1, len(self.strata) * (1 if self.sampled else 2)) + noisy)
        per_sum, weighted = parts(of_parts, of_parts), parts(beta / (1 + noisy), beta / 2)
        rows = []
        for question in self.questions:
            if not self.strata:
                rows.append(self._row(question, None, "mean", one, together))
                continue
            if not self.by_stratum:
                rows.append(self._row(question, None, "post-stratified", weighted, together))
                continue
            for stratum in self.strata:
                kind: Kind = "mean of a stratum"
                rows.append(self._row(question, stratum, kind, per_ratio, together))
            if self.weights:
                rows.append(self._row(question, None, "post-stratified", per_sum, together))
        if not self.sampled:
            groups: list[Any] = list(self.strata)
            rows += [self._row(None, name, "share of a stratum", one, together) for name in groups]
        return tuple(rows)

    def _row(
        self,
        question: str | None,
        stratum: str | None,
        kind: Kind,
        parts: _CellMeans,
        together: _CellMeans,
    ) -> SurveyRow:
        whoever = dataclasses.replace(parts, liars=self._liars, _known={})
        cases = (parts, whoever, together)
        alone, any_, all_ = (self._value(question, stratum, kind, one) for one in cases)
        least, most = self._bounds(question)

        def scale(share: float) -> float:
            return least + (most - least) * share

        normal_low = normal_high = None
        if question is not None and kind != "mean" and self.by_stratum:
            reach = self._z * math.sqrt(self._variance(question, stratum, parts))
            normal_low = scale(max(alone.value - reach, 0.0))
            normal_high = scale(min(alone.value + reach, 1.0))
        cells = [parts.answers.get(key) for key in self._cells_of(question, stratum, kind)]
        asked, answered = (sum(cell[i] for cell in cells if cell) for i in (0, 1))
        value, low, high = map(scale, alone)
        low_any, high_any, low_all, high_all = map(scale, (*any_[1:], *all_[1:]))
        return SurveyRow(
            question,
            stratum,
            kind,
            value,
            low,
            high,
            low_any,
            high_any,
            low_all,
            high_all,
            normal_low,
            normal_high,
            asked,
            answered,
            (least, most),
        )

    def _cells_of(
        self, question: str | None, stratum: str | None, kind: Kind
    ) -> list[tuple[str | None, str | None]]:
        if kind in ("mean", "share of a stratum") or not self.by_stratum:
            return [(question, stratum)]
        groups = list(self.strata) if stratum is None else [stratum]
        return [(name, group) for group in groups for name in (question, None)]

    def _value(
        self, question: str | None, stratum: str | None, kind: Kind, parts: _CellMeans
    ) -> local.Estimate:
        if question is None or kind == "mean":
            return parts.mean(question, stratum)
        if not self.by_stratum:
            value, low, high = (min(1.0, self._scale * end) for end in parts.mean(question, None))
            # Agents weighted their answers with the noisy shares.
            off = 0.0 if self.noisy is None else self.noisy.bound_distance(parts.of_weights)
            return local.Estimate(value, max(low - off, 0.0), min(high + off, 1.0))
        if stratum is not None:
            return parts.ratio(question, stratum)
        ratios = {name: parts.ratio(question, name) for name in self.weights}
        terms = [[self.weights[name] * end for end in ratio] for name, ratio in ratios.items()]
        value, low, high = (math.fsum(ends) for ends in zip(*terms, strict=True))
        if self.noisy is not None:
            lows, highs = ([ratios[name][end] for name in self.noisy] for end in (1, 2))
            low, high = self.noisy.bound_mean(lows, highs, beta=parts.of_weights)
        return local.Estimate(value, min(low, value), max(high, value))

    def _variance(self, question: str, stratum: str | None, parts: _CellMeans) -> float:
        if stratum is not None:
            return parts.ratio_variance(question, stratum)
        terms = ((w, parts.ratio_variance(question, name)) for name, w in self.weights.items())
        variance = sum(weight**2 * variance for weight, variance in terms if weight)
        if self.noisy is None:
            return variance
        means = [parts.ratio(question, name).value for name in self.noisy]
        return variance + self.noisy.variance_of_mean(means)

    def _bounds(self, question: str | None) -> tuple[float, float]:
        """What the means 0 and 1 of a question stand for."""
        query = None if question is None else self.questions[question]
        return query.bounds if isinstance(query, Query) else (0.0, 1.0)


def _divide(cells: list[_Cell], size: int) -> list[int]:
    """Divide the agents in proportion to the shares, but give each cell at least one."""
    total = math.fsum(cell.share for cell in cells)
    exact = [1 + (size - len(cells)) * cell.share / total for cell in cells]
    counts = [math.floor(part) for part in exact]
    order = sorted(range(len(cells)), key=lambda i: counts[i] - exact[i])
    for i in order[: max(0, size - sum(counts))]:
        counts[i] += 1
    counts[0] += size - sum(counts)
    return counts


def _ask_people(
    cells: list[_Cell], counts: list[int], agents: local.RemoteAgents
) -> list[_Answers]:
    told = agents.ask_together([(cell.query, k) for cell, k in zip(cells, counts, strict=True)])
    return [_Answers(asked, len(bits), int(bits.sum())) for asked, bits in told]


def _ask_at_random(
    cells: list[_Cell], counts: list[int], agents: Any, rng: np.random.Generator | None
) -> list[_Answers]:
    """Ask all agents at once; whom each question goes to is public, and no order of rows."""
    # The same in each process and call: in_one_round makes a call twice.
    public = np.random.default_rng(0)
    order = public.permutation(np.repeat(np.arange(len(cells)), counts))
    places = [np.flatnonzero(order == i) for i in range(len(cells))]

    def answer(X: Any, y: Bits) -> Floats:
        answers = np.empty(len(y))
        # Bits that are unpacked take eight times the room: some rows at a time.
        is_packed = isinstance(X, BitMatrix)
        step = max(1, _UNPACKED // max(1, agents.d)) if is_packed else max(1, len(y))
        records = X if is_packed else np.asarray(X)
        for part in (slice(start, start + step) for start in range(0, len(y), step)):
            answers[part] = _answer(cells, order[part], np.asarray(records[part]), y[part])
        return answers

    ((_, bits),) = agents.ask_together([(answer, len(order))], random_state=rng)
    return [_Answers(len(place), len(place), int(bits[place].sum())) for place in places]


def _answer(
    cells: list[_Cell], order: NDArray[np.int_], records: NDArray[Any], labels: Bits
) -> Floats:
    """The true answers, each to the question whose number stands in the order."""
    answers = np.empty(len(labels))
    for i, cell in enumerate(cells):
        place = np.flatnonzero(order == i)
        one = cell.query(records[place], labels[place])
        answers[place] = checked_answers(f"answers to {cell.question}", one, len(place))
    return answers


# Arguments ---------------------------------------------------------------------------------------


def _check_count(count: int | None, agents: AgentPool, cells: int) -> int:
    size = count_agents(count, agents)
    if size < cells:
        raise AgentsExhausted(f"count = {size:,}, but each of {cells:,} questions needs an agent")
    require_left(size, agents)
    return size


def _check_questions(questions: Any, agents: Any, *, needs_query: bool) -> None:
    if not isinstance(questions, Mapping) or not questions:
        refuse("questions", questions, "it must be a mapping from names to queries")
    is_remote = isinstance(agents, local.RemoteAgents)
    for name, question in questions.items():
        if not isinstance(name, str):
            refuse("questions", name, "names must be texts")
        if isinstance(question, Query):
            _check_query(question, agents)
        elif needs_query or is_remote or not callable(question):
            rule = "it must be a local.Query, or without strata a function for simulated agents"
            refuse(f"questions[{name!r}]", question, rule)


def _check_query(query: Query, agents: Any) -> None:
    if isinstance(agents, local.RemoteAgents):
        query.to_json()
    else:
        check_question(query, agents.d)


def _check_queries(name: str, queries: Any) -> None:
    is_mapping = isinstance(queries, Mapping) and bool(queries)
    if not is_mapping or not all(isinstance(key, str) for key in queries):
        refuse(name, queries, "it must be a mapping from names to queries")
    for key, query in queries.items():
        if not isinstance(query, Query):
            refuse(f"{name}[{key!r}]", query, "it must be a local.Query")


def _check_strata(strata: Any, agents: Any) -> dict[str, Query]:
    if strata is None:
        return {}
    _check_queries("strata", strata)
    for query in strata.values():
        _check_query(query, agents)
    return dict(strata)


def _check_keys(name: str, value: Any, known: Mapping[str, Any], what: str) -> None:
    if not isinstance(value, Mapping) or value.keys() != known.keys():
        refuse(name, value, f"it must have a number for each of the {what} {', '.join(known)}")


def _check_weights(weights: Any, strata: Mapping[str, Query]) -> dict[str, float]:
    if weights is None:
        return {}
    _check_keys("weights", weights, strata, "strata")
    values = {name: number(f"weights[{name!r}]", weights[name]) for name in strata}
    if not all(value >= 0 for value in values.values()) or not math.isclose(
        math.fsum(values.values()), 1, abs_tol=1e-9
    ):
        refuse("weights", dict(weights), "they must be at least 0 and add up to 1")
    return values


def _check_sampled(sampled: Any, strata: Mapping[str, Query]) -> dict[str, float]:
    if sampled is None:
        return {}
    _check_keys("sampled", sampled, strata, "strata")
    values = {name: positive(f"sampled[{name!r}]", sampled[name]) for name in strata}
    if math.fsum(values.values()) > 1 + 1e-9:
        refuse("sampled", dict(sampled), "they must add up to at most 1")
    return values


def _check_shares(shares: Any, questions: Mapping[str, Any]) -> dict[str, float]:
    if shares is None:
        return dict.fromkeys(questions, 1.0)
    _check_keys("shares", shares, questions, "questions")
    return {name: positive(f"shares[{name!r}]", shares[name]) for name in questions}


def _note_no_knowledge(result: SurveyResult, questions: int) -> None:
    vain = [
        row.name
        for row in result.rows
        if row.high - row.low >= (1 - _ROUNDING) * (row.bounds[1] - row.bounds[0])
    ]
    if vain:
        names = ", ".join(vain[:_MOST_NAMES]) + (", ..." if len(vain) > _MOST_NAMES else "")
        have = f"agents = {result.agents:,} for {questions:,} questions tell nothing about"
        help_ = "ask fewer questions or strata, or more agents (local.agents_needed for each)"
        note(f"{have} {len(vain):,} of {len(result.rows):,} rows ({names}): {help_}")
