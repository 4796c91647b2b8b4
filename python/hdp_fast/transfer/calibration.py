"""Calibration: agents of the target tell slope and intercept of a released model's score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from .._support.notes import keep_result, note
from .._support.parameters import Checked, Rules, optional, store
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, RandomState
from .._support.validate import (
    MOST,
    finite_number,
    nonnegative,
    one_of,
    positive,
    probability,
    refuse,
    sequence,
)
from ..exceptions import AgentsExhausted
from ..learners.scores import ScoredModel, shift_at
from ..local.agents import Agents
from ..local.estimation import advantage
from ..local.pool import AgentPool
from ..local.queries.query import Query
from ..local.randomizers.base import MOST_AGENTS
from ..record import PrivacyRecord
from .agent_plans import check_agents, require_left
from .calibration_fit import Axis, Fit, Prior, fit_map, make_monotone
from .calibration_map import LEAST_STEP, CheckedMap, CostBound, choose_map, draw_up
from .calibration_plan import (
    HELD_OUT,
    INTERCEPT,
    SLOPE,
    TOLERANCE,
    ask,
    check_count,
    choose_inner,
    divide,
    place_thresholds,
    questions_of,
)
from .calibration_result import CalibratedModel, Check, Method, Outcome, ReliabilityDiagram

# A gain of log loss below this share of the tolerance, or below the least one, is none.
_SHARE_OF_TOLERANCE, _LEAST_GAIN = 0.1, 1e-4
_BENDS = 0.5
# So many times the answers that let a map through in half of the cases take it nearly all the way:
# the map that is checked does not go all the way where agents are few.
_AMPLE = 2.0
_MOST_THRESHOLDS, _LEAST_DISTANCE = 64, 1e-9


@keep_result
def calibrate(
    model: Any,
    agents: Any,
    *,
    method: Method = "logistic",
    thresholds: Sequence[float] | None = None,
    held_out: float = HELD_OUT,
    slope: tuple[float, float] = SLOPE,
    intercept: tuple[float, float] = INTERCEPT,
    tolerance: float = TOLERANCE,
    beta: float = 0.05,
    count: int | None = None,
    random_state: RandomState = None,
) -> CalibratedModel:
    """Calibrates the probabilities of a released model for the population of the agents.

    A model of a panel often ranks the target rightly while its base rate is wrong. Each agent
    answers one question with one randomized bit. Most are asked whether their score is above
    a threshold of a public list, whether their label is 1, or whether both hold. From these answers
    alone, the map of largest posterior from score to log-odds is found: slope and intercept, or a
    monotone map. The likelihood is that of independent randomized bits; the scores' distribution on
    the target is unknown, and estimated with the map, which is constant beyond where scores lie.

    Then the map is fixed, and the agents held out are asked how much log loss it saves them, each
    by a bit that is rounded at random and randomized. With U the upper end of the exact interval of
    the mean difference, the result goes the part `tolerance / U` of the way from the model as it
    was to the map, or all the way where U is at most `tolerance`. As the loss of each person is
    convex on the way, the result has on average at most `tolerance` more log loss than the model,
    except with probability `beta`, whatever the population, the model and the map are. A step below
    a tenth is not taken, nor one that is expected to gain less than a tenth of the tolerance, or
    less than 0.0001, so that few agents leave the model as it was.

    Args:
        model: A released or public model of two classes, as learners.score_of takes it: one of this
            package, one with predict_proba or decision_function, or a function that returns scores.
            Real agents need a description that JSON can carry, which models of this package have.
        agents: local.Agents or local.RemoteAgents. They are asked in their order, which must tell
            nothing about them. Agents who do not answer are assumed to be missing at random; the
            check has a second interval that assumes nothing of them.
        method: "logistic" for slope and intercept, or "isotonic" for a monotone map.
        thresholds: At least 2 and at most 64 increasing public scores to ask about, instead of the
            places of a public list that lie between the first and the last of them. They help where
            scores are no log-odds. They may come from released scores, but not from the curator's
            records. None takes the list, which is dense from -6 to 6 and reaches from -100 to 100.
        held_out: Share of the agents who check the map, in (0, 1).
        slope: Mean and standard deviation of the slope before any answer; both above 0.
        intercept: Mean and standard deviation of the intercept before any answer; the latter above
            0.
        tolerance: Mean log loss, at least 0, by which the result may be worse than the model as it
            was. With 0 it is worse with probability at most `beta`, and either the whole map is
            taken or none of it.
        beta: Probability, in (0, 1), with which the result may be worse by more than `tolerance`;
            and that with which the interval of one bin of the reliability diagram may miss.
        count: Number of agents to ask, at least 60; None asks all who are left. With a count, the
            same call after an interruption takes up the answers of real agents who were asked by
            it, and asks only the others.
        random_state: None draws the agents' random bits from the operating system. An int or a
            numpy Generator makes a reproducible stream for tests, which protects no one who knows
            it. RemoteAgents do not use it.

    Returns:
        A CalibratedModel. A UtilityWarning says where it is the model as it was.

    Raises:
        ParameterError: An argument breaks its rule, there are fewer than 60 agents, or real agents
            are to be asked about a model without a description. No one is asked.
        ShapeError: The model does not score records of the agents' number of features. No one is
            asked.
        AgentsExhausted: Not one agent has answered.
        Exception: What the agents themselves raise.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent: each answers one question. Which one it is
        depends on its place alone; what the last question asks depends on answers that were
        randomized before. The map is post-processing of the answers and of the model, whose own
        record holds unchanged.

        With probability at least 1 - beta the mean log loss is at most `tolerance` above that of
        the model, in the population that the agents are an independent sample of, if those who
        answer are one. Records that cannot be scored count as unchanged.

    Cost:
        Some thirty passes of the model over parts of the agents, and some hundredths of a second.

    Source:
        Warner 1965; Platt 1999; Zadrozny and Elkan 2002; Clopper and Pearson 1934 for the check.
        The randomized fit and the step are this package's own.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> X = np.random.default_rng(0).normal(0, 2, (60_000, 1))
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(2 - X[:, 0]))
        >>> agents = local.Agents(X, y, epsilon=4.0)
        >>> result = transfer.calibrate(lambda X: X[:, 0], agents)
        >>> result.outcome, bool(result.predict_proba(np.array([[2.0]]))[0, 1] < 0.85)
        ('calibrated', True)
        >>> result.step > 0.5, result.check.high < 0
        (True, True)
    """
    # Nothing else is local yet.
    task = _Calibration(**locals())
    with task.agents.keep_answers():
        return task.run(make_stream(random_state))


def _check_thresholds(name: str, thresholds: Any) -> Floats:
    values = thresholds.tolist() if isinstance(thresholds, np.ndarray) else thresholds
    listed = [finite_number(name, value) for value in sequence(name, values)]
    places = np.array(listed)
    # Nearer ones, and sums of larger ones, are beyond what floats tell apart.
    apart = _LEAST_DISTANCE * np.maximum(1.0, np.abs(places))
    fine = (np.abs(places) <= MOST).all() and (np.diff(places) > apart[1:]).all()
    if not 2 <= len(places) <= _MOST_THRESHOLDS or not fine:
        rule = f"they must be 2 to {_MOST_THRESHOLDS} increasing numbers in [-{MOST:g}, {MOST:g}]"
        refuse(name, listed, f"{rule}, apart by more than {_LEAST_DISTANCE:g} of them")
    return places


def _check_belief(name: str, value: Any) -> tuple[float, float]:
    pair = sequence(name, value)
    if len(pair) != 2:
        refuse(name, value, "it must be a mean and a standard deviation")
    return finite_number(name, pair[0]), positive(name, pair[1])


def _check_stream(name: str, random_state: Any) -> RandomState:
    check_random_state(random_state, name)
    return random_state  # type: ignore[no-any-return]


def _check_slope(name: str, value: Any) -> tuple[float, float]:
    slope = _check_belief(name, value)
    if slope[0] <= 0:
        refuse(name, slope, "its mean must be above 0")
    return slope


@dataclass(frozen=True, eq=False)
class _Calibration(Checked):
    """A call of calibrate, whose arguments are checked before anybody is asked."""

    RULES: ClassVar[Rules] = {
        "model": lambda _, model: ScoredModel.of(model),
        "agents": lambda _, agents: check_agents(agents),
        "method": partial(one_of, allowed=("logistic", "isotonic")),
        "thresholds": optional(_check_thresholds),
        "held_out": probability,
        "slope": _check_slope,
        "intercept": _check_belief,
        "tolerance": nonnegative,
        "beta": probability,
        "random_state": _check_stream,
    }

    model: ScoredModel
    agents: AgentPool
    method: Method
    thresholds: Floats | None
    held_out: float
    slope: tuple[float, float]
    intercept: tuple[float, float]
    tolerance: float
    beta: float
    count: int
    random_state: RandomState

    def __post_init__(self) -> None:
        """Check the arguments, that so many agents are left, and that they have the model's d."""
        super().__post_init__()
        count, left = self.count, self.agents.remaining
        if count is not None or left:
            name = "agents.remaining" if count is None else "count"
            count = check_count(name, left if count is None else count)
        store(self, count=count or 0)
        require_left(self.count, self.agents)
        query = Query.score_above(self.model, 0.0)
        if isinstance(self.agents, Agents):
            query.check(self.agents.d)
        else:
            query.to_json()

    @cached_property
    def places(self) -> Floats:
        """The thresholds that agents are asked about."""
        return place_thresholds(self.thresholds)

    @cached_property
    def inner(self) -> Floats:
        """Those that they are asked about with the label, too."""
        return choose_inner(self.places, self.thresholds)

    @property
    def bound(self) -> CostBound:
        """What the result may cost."""
        return CostBound(self.tolerance, self.beta)

    def run(self, rng: Any) -> CalibratedModel:
        """Asks the agents: those of the fit, then those who check its map."""
        edge = advantage(self.agents.epsilon)
        fitted, checking = divide(self.count, self.held_out)
        questions = questions_of(self.places, self.inner)
        counts = questions.ask(self.model, self.agents, fitted, rng)
        axis = Axis.between(self.places)
        fit = fit_map(counts, edge, axis, self._prior())
        rate = counts.sizes.sum() / max(fitted, 1)
        chosen = choose_map(
            fit, self._map(fit), self.method == "isotonic",
            agents=rate * checking, edge=edge, bound=self.bound,
        )  # fmt: skip
        bits = ask(chosen.query(self.model), self.agents, checking, rng)
        if not len(bits) + counts.sizes.sum():
            rule = "there is nothing to calibrate with: ask others"
            raise AgentsExhausted(f"agents: none of {self.count:,} has answered, {rule}")
        check = chosen.judge(int(bits.sum()), len(bits), checking, edge, self.beta)
        outcome, step = self._decide(chosen, check)
        odds = axis.middles + step * shift_at(axis.middles, chosen.knots, chosen.shifts)
        diagram = draw_up(counts, edge, self.inner, fit, odds, self.beta)
        answers = int(counts.sizes.sum()) + len(bits)
        told = counts.labeled & (counts.thresholds == -np.inf)
        labels = int(counts.sizes[told].sum()), int(counts.ones[told].sum())
        result = self._result(fit, chosen, check, outcome, step, diagram, answers, labels)
        _note_outcome(result)
        return result

    def _prior(self) -> Prior:
        knots = self.inner if self.method == "isotonic" else np.zeros(0)
        bends = len(knots)
        centers, deviations = zip(self.slope, self.intercept, strict=True)
        return Prior(
            np.array([*centers, *[0.0] * bends]), np.array([*deviations, *[_BENDS] * bends]), knots
        )

    def _map(self, fit: Fit) -> Floats:
        """The fitted log-odds on the cells, which never fall."""
        scores = fit.axis.middles
        if self.method == "logistic":
            line: Floats = _slope(fit) * scores + fit.coefficients[1]
            return line
        return make_monotone(fit.log_odds(scores), fit.masses + 1e-9)

    def _decide(self, chosen: CheckedMap, check: Check) -> tuple[Outcome, float]:
        """The outcome, and how far to go towards the map that was checked."""
        if check.low > 0:
            return "worse when checked", 0.0
        step = float(self.bound.allow(check.high))
        least = max(_SHARE_OF_TOLERANCE * self.tolerance, _LEAST_GAIN)
        # Any reason to return the model as it was keeps the promise.
        if step * chosen.part < LEAST_STEP or chosen.gain(step) < least:
            return "no evidence", 0.0
        return "calibrated", step

    def _result(
        self,
        fit: Fit,
        chosen: CheckedMap,
        check: Check,
        outcome: Outcome,
        step: float,
        diagram: ReliabilityDiagram,
        answers: int,
        labels: tuple[int, int],
    ) -> CalibratedModel:
        fitted = _slope(fit), float(fit.coefficients[1])
        whole = step * chosen.part
        return CalibratedModel(
            model=self.model.model,
            method=self.method,
            outcome=outcome,
            slope=1 + whole * (fitted[0] - 1),
            intercept=whole * fitted[1],
            slope_error=float(fit.deviations[0]),
            intercept_error=float(fit.deviations[1]),
            fitted=fitted,
            step=whole,
            agents_needed=self._count_enough(chosen, check)
            if check.low <= 0 and whole < 1
            else None,
            tolerance=self.tolerance,
            beta=self.beta,
            expected_gain=chosen.gain(step),
            knots=chosen.knots if whole else np.zeros(0),
            shifts=step * chosen.shifts if whole else np.zeros(0),
            check=check,
            reliability=diagram,
            thresholds=self.places,
            agents=self.count,
            answers=answers,
            record=_record_of(self.model.model),
            agents_record=self.agents.record(self.random_state),
            labels=labels,
        )

    def _count_enough(self, chosen: CheckedMap, check: Check) -> int | None:
        """About how many agents nearly the whole way takes, if more than were asked; or None."""
        rate = max(check.agents, 1) / max(check.asked, 1)
        needed = _AMPLE * chosen.enough / (self.held_out * rate)
        return math.ceil(needed) if self.count < needed < MOST_AGENTS else None


def _slope(fit: Fit) -> float:
    return max(0.0, float(fit.coefficients[0]))


def _record_of(model: Any) -> PrivacyRecord | None:
    """What protects the curator's records: of a model, of a result, or of a fitted estimator."""
    records = (getattr(model, name, None) for name in ("record", "record_"))
    return next((record for record in records if isinstance(record, PrivacyRecord)), None)


def _note_outcome(result: CalibratedModel) -> None:
    if result.outcome == "no evidence":
        text = f"agents = {result.agents:,} do not show that another slope or intercept is better"
        needed = result.agents_needed
        enough = "" if needed is None else f"; about {needed:,} would, if their answers are right"
        note(f"{text}, and the model is returned as it was{enough}")
    elif result.outcome == "worse when checked":
        text = "the agents who were held out show a greater log loss than before"
        note(f"{text}, and the model is returned as it was; see the reliability diagram")
