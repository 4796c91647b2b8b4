"""How the agents of a calibration are divided: their questions, and how many it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonText
from .._support.notes import note
from .._support.types import Floats, RandomState
from .._support.validate import positive, positive_int, probability, probability_or_one, refuse
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.scores import ScoredModel
from ..local.estimation import advantage
from ..local.queries.query import Query
from ..local.randomizers.base import MOST_AGENTS, TOO_MANY
from .calibration_fit import Axis, Counts, Posterior, Prior, find_deviations, sigmoid
from .calibration_map import CostBound, hoeffding_width
from .calibration_result import CalibratedModel

# Public places that are dense near 0, where log-odds lie, and reach far out for other scores.
_RUNGS = (0.7, 1.5, 2.3, 3.2, 4.3, 6.0, 8.5, 12.0, 30.0, 100.0)
LADDER = np.array([*(-rung for rung in reversed(_RUNGS)), 0.0, *_RUNGS])
# The outer rungs find scores that lie there at all, and need few agents for that.
_FAR, _FEWER = 8.5, 0.5
# Of those who answer for the fit: about scores, about labels, about both.
_ABOUT_SCORES, _ABOUT_LABELS = 0.35, 0.35
# The questions of the fit go out together; what the check asks depends on their answers.
CALIBRATION_ROUNDS = 2
# With fewer agents a question goes to no one.
LEAST_AGENTS = 60
SLOPE, INTERCEPT = (1.0, 0.3), (0.0, 2.0)
# Two in five check: with fewer the map is better, and goes less far.
HELD_OUT, TOLERANCE = 0.4, 0.01
# An intercept that is known no better than this moves odds by a factor of 2.7 at random.
_USELESS = 1.0
# The scale of log-odds for which a forecast is made.
_SCALE = 1.2


@dataclass(frozen=True)
class Questions:
    """A list of questions, and the share of the agents of its stage that each gets.

    Attributes:
        thresholds: The question asks whether the score is above it; -inf where it does not ask.
        labeled: Whether the question asks for label 1, too.
        shares: Shares of the agents, which add up to 1.
    """

    thresholds: Floats
    labeled: NDArray[np.bool_]
    shares: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, bool, float]]) -> Questions:
        """Make questions of rows (threshold, labeled, weight)."""
        thresholds, labeled, shares = (np.array(column) for column in zip(*rows, strict=True))
        return cls(thresholds.astype(np.float64), labeled.astype(bool), shares / shares.sum())

    def sizes(self, count: float) -> NDArray[np.int64]:
        """How many of so many agents each question gets."""
        ends = np.rint(np.cumsum(self.shares) * count).astype(np.int64)
        return np.diff(ends, prepend=0)

    def spread_rates(self, edges: Floats, advantage: float) -> float:
        """The most that the four tails of a bin between edges add to the square of its interval.

        Each adds one over the share of the agents who are asked about it, and over the square of
        the randomizer's advantage. Everybody's score is above the first end, and nobody's above the
        last.
        """

        def width(threshold: float, labeled: bool) -> float:
            if threshold == math.inf or (threshold == -math.inf and not labeled):
                return 0.0
            chosen = (self.thresholds == threshold) & (self.labeled == labeled)
            return 1 / (float(self.shares[chosen].sum()) * advantage**2)

        ends = itertools.pairwise((-math.inf, *edges.tolist(), math.inf))
        return max(sum(width(t, on) for t in pair for on in (False, True)) for pair in ends)

    def query(self, model: ScoredModel, place: int) -> Query:
        """The question as agents answer it."""
        threshold = float(self.thresholds[place])
        if threshold == -np.inf:
            return Query.label()
        above = Query.score_above(model, threshold)
        return Query.label() & above if self.labeled[place] else above

    def ask(self, model: ScoredModel, agents: Any, count: int, random_state: RandomState) -> Counts:
        """Ask the next agents, all in one round, and count the answers that arrive."""
        sizes = self.sizes(count).tolist()
        asked = [(self.query(model, place), size) for place, size in enumerate(sizes)]
        answers = agents.ask_together(asked, random_state=random_state)
        came = np.array([len(bits) for _, bits in answers])
        ones = np.array([int(bits.sum()) for _, bits in answers])
        return Counts(self.thresholds, self.labeled, came, ones)


def ask(query: Query, agents: Any, size: int, random_state: RandomState) -> NDArray[np.uint8]:
    """Ask so many of the next agents, or those who are left after an interruption."""
    if not size:
        return np.zeros(0, np.uint8)
    try:
        answers: NDArray[np.uint8] = agents.ask(query, size, random_state=random_state)
    except AgentsExhausted:
        # Some were lost with a question that was interrupted before any answer came.
        answers = agents.ask(query, agents.remaining, random_state=random_state)
    return answers


def place_thresholds(inner: Floats | None) -> Floats:
    """The public ladder; where thresholds are passed, they take the place of its inner rungs."""
    if inner is None:
        return LADDER
    return np.concatenate([LADDER[inner[0] > LADDER], inner, LADDER[inner[-1] < LADDER]])


def choose_inner(thresholds: Floats, passed: Floats | None) -> Floats:
    """The thresholds that are asked about with the label, too: every other one of the inner ones.

    They bound the bins of the reliability diagram, and an isotonic map bends there.
    """
    inner = thresholds[np.abs(thresholds) <= _FAR] if passed is None else passed
    return inner[1::2]


def questions_of(thresholds: Floats, inner: Floats) -> Questions:
    """The questions of the fit: scores at all thresholds, the label, and both at the inner ones."""
    weights = np.where(np.abs(thresholds) > _FAR, _FEWER, 1.0)
    weights *= _ABOUT_SCORES / weights.sum()
    both = (1 - _ABOUT_SCORES - _ABOUT_LABELS) / len(inner)
    rows = [(t, False, w) for t, w in zip(thresholds.tolist(), weights.tolist(), strict=True)]
    rows += [(-np.inf, True, _ABOUT_LABELS)]
    rows += [(t, True, both) for t in inner.tolist()]
    return Questions.of(rows)


@dataclass(frozen=True)
class CalibrationPlan(JsonText):
    """How the agents of a calibration are divided, and how well the intercept will be known.

    Attributes:
        agents: Number of agents N.
        epsilon: Privacy parameter of each agent's answer.
        base_rate: Share of label 1 in the target that the plan is made for.
        response_rate: Share of those asked who will answer.
        fitted: Agents whose answers the map is fitted to.
        held_out: Agents who check the map before it is taken.
        labels: Number of agents whose question is about the label.
        standard_error: Least standard error of the intercept, if slope and distribution of the
            scores were known and the scores told nothing of the label. It holds for every model,
            as a bound from below.
        forecast: Standard error of the intercept as the fit will state it, where slope and
            distribution are unknown, for log-odds that are right but for the intercept and
            logistic with a scale of 1.2. For other scores it is a rough figure.
        check_width: By how much the bound of the check exceeds its estimate, for a map that moves
            no score by more than 1; for other maps in proportion. A map is taken whole where its
            gain in log loss and the tolerance together are greater.

    Examples:
        >>> from hdp_fast import transfer
        >>> plan = transfer.plan_calibration(40_000, epsilon=1.0, base_rate=0.2)
        >>> plan.fitted, plan.held_out, plan.labels
        (24000, 16000, 15600)
        >>> round(plan.standard_error, 3), round(plan.check_width, 3)
        (0.052, 0.028)
    """

    agents: int
    epsilon: float
    base_rate: float
    response_rate: float
    fitted: int
    held_out: int
    labels: int
    standard_error: float
    forecast: float
    check_width: float

    def __repr__(self) -> str:
        parts = f"{self.fitted:,} fit, {self.held_out:,} check"
        error = f"intercept +- {self.forecast:.2g} (at least {self.standard_error:.2g})"
        error += f", check to {self.check_width:.2g} a unit of the map"
        return (
            f"CalibrationPlan({self.agents:,} agents: {parts}; epsilon={self.epsilon:g}; {error})"
        )


def plan_calibration(
    agents: int | None = None,
    *,
    epsilon: float,
    base_rate: float = 0.5,
    standard_error: float | None = None,
    held_out: float = HELD_OUT,
    response_rate: float = 1.0,
    beta: float = 0.05,
) -> CalibrationPlan:
    """Plans a calibration: the standard error of the intercept for N agents, or N for an error.

    Args:
        agents: Number of agents, at least 60. None computes it from `standard_error`.
        epsilon: Privacy parameter of each agent's answer, above 0.
        base_rate: Share of label 1 in the target, in (0, 1), as far as it is known publicly. The
            number of agents for a fixed error grows with the square of `1 / base_rate`, since the
            noise of the answers does not shrink with the label's share.
        standard_error: Wanted least standard error of the intercept, above 0; exactly one of
            `agents` and this must be passed.
        held_out: Share of the agents who check the map, in (0, 1).
        response_rate: Public share of those asked who will answer, in (0, 1].
        beta: Probability, in (0, 1), with which the check may be wrong.

    Returns:
        A CalibrationPlan. A UtilityWarning says where the intercept will be known to no better
        than 1, so that the calibration will hardly move the model.

    Raises:
        ParameterError: An argument is out of range, or not exactly one of `agents` and
            `standard_error` was passed.

    Source:
        With `t = tanh(epsilon / 2)`, N agents asked for their labels and V the mean of `p (1 - p)`,
        one Fisher step gives `sqrt(((1 - t**2) / (4 t**2) + base (1 - base)) / N) / V`. V is at
        most `base (1 - base)`, with which the plan counts.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_calibration(epsilon=1.0, base_rate=0.2, standard_error=0.1).agents
        10824
    """
    edge = advantage(epsilon)
    base, rate = (
        probability("base_rate", base_rate),
        probability_or_one("response_rate", response_rate),
    )
    share = probability("held_out", held_out)
    if (agents is None) == (standard_error is None):
        raise ParameterError("agents and standard_error: exactly one of them must be passed")
    if agents is None:
        wanted = positive("standard_error", standard_error)
        agents = _agents_needed(wanted, edge, base, share, rate)
    count = check_count("agents", agents)
    bound = CostBound(TOLERANCE, probability("beta", beta))
    fitted, checking = divide(count, share)
    labels = _count_labels(fitted)
    error = _standard_error(rate * labels, edge, base)
    forecast = _forecast(rate * fitted, edge, base)
    width = bound.quantile / (edge * math.sqrt(max(rate * checking, 1.0)))
    plan = CalibrationPlan(
        count, float(epsilon), base, rate, fitted, checking, labels, error, forecast, width
    )
    if error >= _USELESS:
        text = f"agents = {count:,} with epsilon = {epsilon:g} tell the intercept to {error:.2g}"
        note(
            f"{text} at best, and will hardly move a model: {_say_enough(edge, base, share, rate)}"
        )
    return plan


def _say_enough(edge: float, base: float, held_out: float, rate: float) -> str:
    """How many agents would be of use, if any number would."""
    wanted = _USELESS / 5
    try:
        return f"{_agents_needed(wanted, edge, base, held_out, rate):,} tell it to {wanted}"
    except ParameterError:
        return f"even {MOST_AGENTS:.0e} do not tell it to {wanted}"


def check_count(name: str, value: int) -> int:
    """Return the number of agents, which must be enough for every question.

    Raises:
        ParameterError: It is not.
    """
    count = positive_int(name, value, int(MOST_AGENTS))
    if count < LEAST_AGENTS:
        refuse(name, value, f"a calibration needs at least {LEAST_AGENTS} agents")
    return count


def divide(count: int, held_out: float) -> tuple[int, int]:
    """Divide the agents into those of the fit, and those who check."""
    checking = int(held_out * count)
    return count - checking, checking


def _standard_questions() -> Questions:
    thresholds = place_thresholds(None)
    return questions_of(thresholds, choose_inner(thresholds, None))


def _count_labels(fitted: int) -> int:
    questions = _standard_questions()
    return int(questions.sizes(fitted)[questions.labeled].sum())


def _standard_error(labels: float, edge: float, base: float) -> float:
    return _deviation_of_one(edge, base) / math.sqrt(max(labels, 1e-9))


def _deviation_of_one(edge: float, base: float) -> float:
    """The standard error that one agent's label gives, infinite beyond floats."""
    spread = base * (1 - base)
    return math.hypot(math.sqrt(1 - edge**2) / (2 * edge), math.sqrt(spread)) / spread


def _agents_needed(error: float, edge: float, base: float, held_out: float, rate: float) -> int:
    """The least N whose plan has this standard error."""
    root = _deviation_of_one(edge, base) / error
    labels = root * root / rate
    if not labels < MOST_AGENTS / 4:
        raise ParameterError(f"standard_error = {error} {TOO_MANY}")
    low, high = LEAST_AGENTS - 1, max(LEAST_AGENTS, 64 * math.ceil(labels / (1 - held_out)))
    while high - low > 1:
        middle = (low + high) // 2
        counted = _count_labels(divide(middle, held_out)[0])
        low, high = (low, middle) if counted >= labels else (middle, high)
    return high


def _forecast(answers: float, edge: float, base: float) -> float:
    """The deviation of the intercept that the fit would state for scores of this base rate."""
    places = _SCALE * np.linspace(-8, 8, 801)
    masses = sigmoid(places / _SCALE) * sigmoid(-places / _SCALE)
    low, high = -40.0, 40.0
    for _ in range(60):
        center = (low + high) / 2
        mean = float(masses @ sigmoid(places + center) / masses.sum())
        low, high = (center, high) if mean < base else (low, center)
    questions, axis = _standard_questions(), Axis.between(place_thresholds(None))
    # Which answers came makes no difference to a forecast.
    sizes = np.maximum(np.rint(questions.shares * answers), 0).astype(np.int64)
    counts = Counts(questions.thresholds, questions.labeled, sizes, sizes // 2)
    prior = Prior(np.array([SLOPE[0], INTERCEPT[0]]), np.array([SLOPE[1], INTERCEPT[1]]))
    below = np.concatenate([[0.0], sigmoid((axis.edges - center) / _SCALE), [1.0]])
    return float(find_deviations(Posterior(counts, edge, axis, prior), np.diff(below))[-1])


def count_people(calibrated: CalibratedModel, half_width: float) -> int:
    """How many agents make the intervals of a reliability diagram so narrow, in a calibration.

    It counts with the questions of this one and the share of answers that arrived, and for bins of
    one size and a rate of 1, whose interval is the widest.

    half_width: half of the width that each interval may have, in (0, 1).

    Source: Hoeffding 1963 for the sum of all answers that an interval is made of.
    """
    width, diagram = probability("half_width", half_width), calibrated.reliability
    questions = questions_of(calibrated.thresholds, diagram.edges)
    spread = questions.spread_rates(diagram.edges, advantage(calibrated.agents_record.epsilon))
    # A rate divides a difference of answers by the share of people in its bin.
    reach = hoeffding_width(diagram.beta) * len(diagram.rates) / width
    fitted = 1 - calibrated.check.asked / calibrated.agents
    return math.ceil(reach**2 * spread / (fitted * calibrated.answers / calibrated.agents))
