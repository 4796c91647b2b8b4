"""Calibration: agents of the target tell slope and intercept of a released model's score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.notes import keep_result, note
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, RandomState
from .._support.validate import finite_number, one_of, positive, probability, refuse, sequence
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.scores import score_of
from ..local.agents import Agents
from ..local.pool import AgentPool
from ..local.queries.query import Query
from ..local.remote_agents import RemoteAgents
from ..local.response import advantage
from ..record import PrivacyRecord
from .calibration_fit import (
    Counts,
    Fit,
    Prior,
    compare,
    fit_map,
    make_monotone,
    softplus,
)
from .calibration_plan import HELD_OUT, INTERCEPT, SLOPE, check_count, check_held_out, divide
from .calibration_questions import (
    Location,
    Questions,
    first_questions,
    locate,
    main_questions,
)
from .calibration_result import CalibratedModel, Check, Method, Outcome
from .calibration_step import choose_step
from .reliability import draw_up

# The map goes as far as keeps the log loss within this of the model's, for each truth that explains
# the answers nearly as well as the fit: as well as one so many standard deviations away.
TOLERANCE, CONFIDENCE = 0.006, 4.0
# How far the check must speak against the map, in standard errors.
_AGAINST = 1.645
# The check is about a map that differs from the score, whatever the fit dares.
_LEAST_STEP = 0.25
_BENDS = 0.5
_MOST_THRESHOLDS = 64


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
    beta: float = 0.05,
    count: int | None = None,
    random_state: RandomState = None,
) -> CalibratedModel:
    """Calibrates the probabilities of a released model for the population of the agents.

    A model of a panel often ranks the target rightly while its base rate is wrong. Each agent
    answers one question from a public list with one randomized bit: whether its score is above a
    threshold, whether its label is 1, or whether both hold. From the answers alone, the map of
    largest posterior from score to log-odds is found: slope and intercept, or a monotone map that
    bends at four thresholds. The likelihood is that of independent randomized bits; the scores'
    distribution on the target is unknown, and estimated with the map.

    The first twentieth of the agents tells where the scores lie, since these may have any unit, and
    the thresholds are put among the people of both labels. The agents held out estimate how much
    more log loss the map has that the others' answers give; where that is above 1.645 of its
    standard errors, the model is returned as it was. Otherwise the map is fitted to all answers.
    The result goes from the model as it was towards that map as far as the log loss stays within
    0.006 of the model's for every truth whose log posterior, under a prior three times as wide, is
    at most `4**2 / 2` below the largest: 4 standard deviations, where it is normal. With few
    agents the model hardly moves, or not at all.

    Args:
        model: A released or public model of two classes, as learners.score_of takes it: one of this
            package, one with predict_proba or decision_function, or a function that returns scores.
            Real agents need a description that JSON can carry, which models of this package have.
        agents: local.Agents or local.RemoteAgents. They are asked in their order, which must tell
            nothing about them. Agents who do not answer are assumed to be missing at random.
        method: "logistic" for slope and intercept, or "isotonic" for a monotone map.
        thresholds: At least 2 and at most 64 increasing public scores to ask about. They save the
            first twentieth, and a pool of real agents half of the questions that are sent. They may
            come from released scores, but not from the curator's records. None finds them.
        held_out: Share of the agents who check the map, in [0, 1), and serve the last fit, too. 0
            checks nothing.
        slope: Mean and standard deviation of the slope before any answer; both above 0.
        intercept: Mean and standard deviation of the intercept before any answer; the latter above
            0.
        beta: Probability, in (0, 1), with which the interval of one bin of the reliability diagram
            may miss.
        count: Number of agents to ask, at least 60; None asks all who are left. With a count, the
            same call after an interruption takes up the answers of real agents who were asked by
            it, and asks only the others.
        random_state: None draws the agents' coins from the operating system. An int or a numpy
            Generator makes a reproducible stream for tests, which protects nobody who knows it.
            RemoteAgents do not use it.

    Returns:
        A CalibratedModel. A UtilityWarning says where it is the model as it was.

    Raises:
        ParameterError: An argument breaks its rule, there are fewer than 60 agents, or real agents
            are to be asked about a model without a description. Nobody is asked.
        ShapeError: The model does not score records of the agents' number of features. Nobody is
            asked.
        AgentsExhausted: Not one agent has answered.
        Exception: What the agents themselves raise.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent: each answers one question, and which one it
        is depends on answers that were randomized before. The map is post-processing of the answers
        and of the model, whose own record holds unchanged.

        It is no guarantee, but measured: in 2,000 simulated fits over base rates, numbers of agents
        and epsilons the log loss was never more than 0.0058 above the model's.

    Cost:
        Some thirty passes of the model over parts of the agents, and a tenth of a second.

    Source:
        Warner 1965; Platt 1999; Zadrozny and Elkan 2002. The randomized fit is this package's own.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> X = np.random.default_rng(0).normal(0, 2, (60_000, 1))
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(2 - X[:, 0]))
        >>> agents = local.Agents(X, y, epsilon=4.0)
        >>> result = transfer.calibrate(lambda X: X[:, 0], agents)
        >>> result.outcome, bool(result.predict_proba(np.array([[2.0]]))[0, 1] < 0.85)
        ('calibrated', True)
    """
    task = _validate(
        model, agents, method, thresholds, held_out, slope, intercept, beta, count, random_state
    )
    with agents.keep_answers():
        return task.run(make_stream(random_state), random_state)


@dataclass(frozen=True)
class _Task:
    """A validated call."""

    model: Any
    agents: Any
    method: Method
    thresholds: Floats | None
    held_out: float
    slope: tuple[float, float]
    intercept: tuple[float, float]
    beta: float
    count: int

    @property
    def edge(self) -> float:
        return advantage(self.agents.epsilon)

    def run(self, rng: Any, random_state: RandomState) -> CalibratedModel:
        first, fitted, checking = divide(self.count, self.held_out, locate=self.thresholds is None)
        located = self._ask(first_questions(), first, rng) if first else None
        location = self._locate(located)
        thresholds = self.thresholds if self.thresholds is not None else location.thresholds()
        axis, prior = location.axis(thresholds), self._prior(thresholds)
        asked = self._ask(main_questions(thresholds), fitted, rng)
        counts = asked if located is None else asked + located
        fit = fit_map(counts, self.edge, axis, prior)
        check = None
        if checking:
            check, answers = self._check(fit, thresholds, checking, rng)
            counts = counts + answers
            fit = fit_map(counts, self.edge, axis, prior)
        if not counts.sizes.sum():
            rule = "there is nothing to calibrate with: ask others"
            raise AgentsExhausted(f"agents: none of {self.count:,} has answered, {rule}")
        target, scores = self._map(fit), axis.middles
        step = choose_step(fit, target, tolerance=TOLERANCE, confidence=CONFIDENCE)
        outcome: Outcome = "calibrated" if step else "no evidence"
        if check is not None and check.difference > _AGAINST * check.standard_error:
            outcome, step = "worse when checked", 0.0
        _note_outcome(outcome, self.count)
        odds = scores + step * (target - scores)
        # How many are asked by the check depends on earlier answers; exact intervals need fixed
        # numbers.
        diagram = draw_up(asked, self.edge, _inner(thresholds), fit, odds, self.beta)
        return self._result(
            fit, target, step, outcome, check, diagram, thresholds,
            int(counts.sizes.sum()), random_state,
        )  # fmt: skip

    def _ask(self, questions: Questions, count: int, rng: Any) -> Counts:
        return questions.ask(self.model, self.agents, count, rng)

    def _locate(self, located: Counts | None) -> Location:
        if located is not None:
            return locate(located, self.agents.epsilon)
        assert self.thresholds is not None
        low, high = float(self.thresholds[0]), float(self.thresholds[-1])
        return Location((low + high) / 2, (high - low) / 6, 0.0)

    def _prior(self, thresholds: Floats) -> Prior:
        knots = _inner(thresholds) if self.method == "isotonic" else np.zeros(0)
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

    def _check(self, fit: Fit, thresholds: Floats, count: int, rng: Any) -> tuple[Check, Counts]:
        """Estimate the difference of log loss from agents whose answers the fit has not seen."""
        target, scores = self._map(fit), fit.axis.middles
        step = choose_step(fit, target, tolerance=TOLERANCE, confidence=CONFIDENCE)
        odds = scores + max(step, _LEAST_STEP) * (target - scores)
        questions, weights, constant = plan_check(fit, odds, thresholds)
        answers = self._ask(questions, count, rng)
        means, deviations = answers.debias(self.edge)
        # What nobody has answered is 1/2 give or take 1/2.
        deviations = np.minimum(deviations, np.where(answers.sizes > 0, np.inf, 0.5))
        value = constant + float(weights @ means)
        error = float(np.sqrt(((weights * deviations) ** 2).sum()))
        return Check(value, error, int(answers.sizes.sum())), answers

    def _result(
        self,
        fit: Fit,
        target: Floats,
        step: float,
        outcome: Outcome,
        check: Check | None,
        diagram: Any,
        thresholds: Floats,
        answers: int,
        random_state: RandomState,
    ) -> CalibratedModel:
        scores = fit.axis.middles
        fitted = float(_slope(fit)), float(fit.coefficients[1])
        knots = scores if self.method == "isotonic" else thresholds[[0, -1]]
        shifts = step * np.interp(knots, scores, target - scores)
        gain = -compare(fit, scores + step * (target - scores), scores).value
        return CalibratedModel(
            model=self.model,
            method=self.method,
            outcome=outcome,
            slope=1 + step * (fitted[0] - 1),
            intercept=step * fitted[1],
            slope_error=float(fit.deviations[0]),
            intercept_error=float(fit.deviations[1]),
            fitted=fitted,
            step=step,
            expected_gain=float(gain) if step else 0.0,
            knots=knots if step else np.zeros(0),
            shifts=shifts if step else np.zeros(0),
            check=check,
            reliability=diagram,
            thresholds=thresholds,
            agents=self.count,
            answers=answers,
            record=_record_of(self.model),
            agents_record=self.agents.record(random_state),
        )


def plan_check(fit: Fit, odds: Floats, thresholds: Floats) -> tuple[Questions, Floats, float]:
    """Choose questions whose means add up to the difference of log loss, each with its weight.

    The log loss of log-odds f less that of the score s is `softplus(f) - softplus(s) - y (f - s)`.
    With both parts constant between the thresholds, its mean is a constant plus a weighted sum of
    Pr[s > t] and Pr[y, s > t]. Agents in proportion to the weights estimate it best.

    Returns:
        The questions, their weights, and the constant.
    """
    scores = fit.axis.middles
    above = np.vstack([np.ones(len(scores)), fit.axis.above(thresholds), np.zeros(len(scores))])
    inside = (above[:-1] - above[1:]) * fit.masses + 1e-12
    inside /= inside.sum(axis=1, keepdims=True)
    losses, shifts = inside @ (softplus(odds) - softplus(scores)), inside @ (odds - scores)
    about = [(float(t), False, w) for t, w in zip(thresholds, np.diff(losses), strict=True)]
    with_label = [(-math.inf, True, -float(shifts[0]))]
    with_label += [(float(t), True, -w) for t, w in zip(thresholds, np.diff(shifts), strict=True)]
    rows = about + with_label
    weights = np.array([weight for _, _, weight in rows])
    # The reliability diagram needs some answers at every other threshold and for the label.
    inner = set(_inner(thresholds).tolist()) | {-math.inf}
    least = 0.02 * float(np.abs(weights).sum())
    shares = np.array([abs(w) + (least if t in inner else 0.0) for t, _, w in rows]) + 1e-12
    labeled = np.array([labeled for _, labeled, _ in rows])
    # Half of the agents for each part: the labels' question is as noisy as those about scores.
    for part in (labeled, ~labeled):
        shares[part] /= 2 * shares[part].sum()
    asked = [(t, label, share) for (t, label, _), share in zip(rows, shares.tolist(), strict=True)]
    return Questions.of(asked), weights, float(losses[0])


def _slope(fit: Fit) -> float:
    return max(0.0, float(fit.coefficients[0]))


def _inner(thresholds: Floats) -> Floats:
    return thresholds[1::2]


def _record_of(model: Any) -> PrivacyRecord | None:
    """What protects the curator's records: of a model, of a result, or of a fitted estimator."""
    records = (getattr(model, name, None) for name in ("record", "record_"))
    return next((record for record in records if isinstance(record, PrivacyRecord)), None)


def _note_outcome(outcome: Outcome, count: int) -> None:
    if outcome == "no evidence":
        text = f"agents = {count:,} do not show that another slope or intercept is better"
        note(f"{text}, and the model is returned as it was; plan_calibration says how many would")
    elif outcome == "worse when checked":
        text = "the agents who were held out show a greater log loss than before"
        note(f"{text}, and the model is returned as it was; see the reliability diagram")


def _validate(
    model: Any,
    agents: Any,
    method: Any,
    thresholds: Any,
    held_out: Any,
    slope: Any,
    intercept: Any,
    beta: Any,
    count: Any,
    random_state: RandomState,
) -> _Task:
    score_of(model)
    if not isinstance(agents, AgentPool) or not hasattr(agents, "ask"):
        rule = "it must be local.Agents or local.RemoteAgents"
        raise ParameterError(f"agents = {type(agents).__name__}, but {rule}")
    one_of("method", method, ("logistic", "isotonic"))
    places = None if thresholds is None else _check_thresholds(thresholds)
    share = check_held_out(held_out)
    slope, intercept = _check_belief("slope", slope), _check_belief("intercept", intercept)
    if slope[0] <= 0:
        refuse("slope", slope, "its mean must be above 0")
    check_random_state(random_state)
    failure = probability("beta", beta)
    total = agents.remaining if count is None else count
    if count is not None or agents.remaining:
        total = check_count("count" if count is not None else "agents.remaining", total)
    # Those who were asked by a call that was interrupted may be among the count.
    left = len(agents) if isinstance(agents, RemoteAgents) else agents.remaining
    if total > left or not total:
        raise AgentsExhausted(f"count = {total:,}, but {left:,} agents are left")
    query = Query.score_above(model, 0.0)
    if isinstance(agents, Agents):
        query.check(agents.d)
    else:
        query.to_json()
    return _Task(model, agents, method, places, share, slope, intercept, failure, total)


def _check_thresholds(thresholds: Any) -> Floats:
    values = thresholds.tolist() if isinstance(thresholds, np.ndarray) else thresholds
    listed = [finite_number("thresholds", value) for value in sequence("thresholds", values)]
    places = np.array(listed)
    if not 2 <= len(places) <= _MOST_THRESHOLDS or not (np.diff(places) > 0).all():
        rule = f"they must be 2 to {_MOST_THRESHOLDS} increasing numbers"
        refuse("thresholds", listed, rule)
    return places


def _check_belief(name: str, value: Any) -> tuple[float, float]:
    pair = sequence(name, value)
    if len(pair) != 2:
        refuse(name, value, "it must be a mean and a standard deviation")
    return finite_number(name, pair[0]), positive(name, pair[1])
