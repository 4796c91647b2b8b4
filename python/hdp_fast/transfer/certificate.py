"""Certificates: the error of a released model on the target, with an exact interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import local
from .._support.json_text import JsonText
from .._support.notes import keep_result, note
from .._support.numbers import losses, to_numbers
from .._support.random_state import make_stream
from .._support.types import Bits, Floats, RandomState
from .._support.validate import nonnegative_int, probability, refuse
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.descriptions import DESCRIBED, parse
from ..learners.private_model import PrivateModel
from ..learners.scores import predictor, with_bits
from ..local.estimation import answers_for_width, bound_all, estimate_exactly, tell_doubts
from ..local.pool import AgentPool, answer_each, compare_predictions, find_mistakes
from ..record import PrivacyRecord
from .agent_plans import (
    AGENTS_PER_LABEL,
    check_agents,
    count_agents,
    record_mixes,
    require_left,
    tell_epsilon,
)
from .results import Constants, constant_loss

# Called with predictions and labels of m records; returns their losses in [0, 1].
Loss = Callable[[Any, Bits], ArrayLike]
Measured = Literal["error", "loss", "difference"]


@dataclass(frozen=True)
class Certificate(JsonText):
    """What the agents' answers show about a model on the target.

    Attributes:
        measured: "error", the probability of a wrong label; "loss", the mean of a loss in [0, 1];
            or "difference", the loss of the model minus that of the other one, in [-1, 1].
        value: The estimate.
        low: Lower end of the interval, if who answers does not depend on the true answer.
        high: Upper end of that interval.
        low_any: Lower end of an interval that needs no assumption about those who did not answer:
            it holds for all who were asked, whatever they would have said, and whatever up to
            `liars` of them have sent. With everybody's answer and no liars it is the other one.
        high_any: Upper end of that interval.
        beta: Probability with which each interval may miss, at most half of it on each side.
        agents: Number of agents who answered about the model.
        asked: Number of agents who were asked about it.
        constants: Errors of the two constant hypotheses, with an interval of its own that misses
            with probability at most beta. None where the loss of a constant is not known, or two
            models are compared.
        agents_record: PrivacyRecord of each agent's answer.
        shuffled_record: PrivacyRecord of all answers behind a shuffler; None without one.
        liars: The most answers about the model that may be anything, for the second interval.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> X = np.random.default_rng(0).integers(0, 2, (50_000, 2))
        >>> agents = local.Agents(X, X[:, 0], epsilon=2.0)
        >>> rule = learners.Stumps(2)
        >>> model = learners.ExponentialLearner(rule, epsilon=9.0).learn(X[:99], X[:99, 0])
        >>> certificate = transfer.certify(model, agents)
        >>> certificate.high < 0.05, certificate.beats_constant, certificate.agents
        (True, True, 40000)
    """

    measured: Measured
    value: float
    low: float
    high: float
    low_any: float
    high_any: float
    beta: float
    agents: int
    asked: int
    constants: Constants | None
    agents_record: PrivacyRecord
    shuffled_record: PrivacyRecord | None = None
    liars: int = 0

    @property
    def better(self) -> Literal["model", "other"] | None:
        """The model with the smaller loss, if the interval of the difference shows which it is."""
        if self.measured != "difference" or self.low <= 0 <= self.high:
            return None
        return "model" if self.high < 0 else "other"

    @property
    def beats_constant(self) -> bool | None:
        """Whether the intervals show that the model is better than either constant.

        They hold both, except with probability 2 beta. None without constants.
        """
        return None if self.constants is None else self.high < self.constants.low

    @property
    def prefers_constant(self) -> bool:
        """Whether agents show the model no better than a constant, and estimate it no better.

        Where the estimate is better and the intervals do not show it yet, more agents might.
        """
        constants = self.constants
        return constants is not None and not self.beats_constant and self.value >= constants.better

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def more_agents(self, half_width: float) -> int:
        """Counts how many more agents would have been needed for an interval of this half width.

        They are counted for the answers that make an interval widest, and for as large a share of
        answers as has arrived.

        Args:
            half_width: Half of the width that the interval should have had, above 0 and below 1.

        Returns:
            The number of agents beyond those who were asked; 0 where these are enough.

        Raises:
            ParameterError: The half width is out of range, or there cannot be so many agents.

        """
        width = probability("half_width", half_width)
        if self.half_width <= width:
            return 0
        needed = answers_for_width(
            width / 2 if self.measured == "difference" else width,
            beta=self.beta,
            epsilon=self.agents_record.epsilon,
            wanted=f"half_width = {half_width}",
        )
        return max(0, math.ceil(needed * self.asked / self.agents) - self.asked)

    def __repr__(self) -> str:
        ends = f"{100 * (1 - self.beta):g} % interval [{self.low:.3f}, {self.high:.3f}]"
        who = f"{self.agents:,} agents, {tell_epsilon(self.agents_record, self.shuffled_record)}"
        silence = "whoever did not answer" if self.agents < self.asked else None
        doubts = tell_doubts(silence, self.liars)
        if doubts:
            ends += f", [{self.low_any:.3f}, {self.high_any:.3f}] {doubts}"
        if silence:
            who = f"{self.agents:,} of {self.asked:,} {who.partition(' ')[2]}"
        return f"Certificate({self.measured} {self.value:.3f}, {ends}, {self._verdict()}{who})"

    def _verdict(self) -> str:
        if self.measured == "difference":
            shown = "not shown which is better" if self.better is None else f"{self.better} better"
            return f"{shown}, "
        if self.constants is None:
            return ""
        shown = "better than" if self.beats_constant else "not shown better than"
        return f"{shown} a constant's {self.constants.better:.3f}, "


@keep_result
def certify(
    model: Any,
    agents: AgentPool,
    *,
    other: Any = None,
    loss: Loss | None = None,
    count: int | None = None,
    beta: float = 0.05,
    shuffled: float | None = None,
    liars: int = 0,
    random_state: RandomState = None,
) -> Certificate:
    """Certifies the error of a released model on the target, or which of two models is better.

    Each agent answers one randomized bit: whether the model is wrong about it, rounded at random
    where the loss lies between 0 and 1. The interval is exact: it holds for every population,
    model and shift, if the agents are drawn independently from the target after the model was
    fixed. A fifth of the agents are asked for their label instead, so that the error of the better
    constant stands beside the model's, unless the loss of a constant needs no agents.

    Two models are compared on the same agents: each answers one bit about
    `(1 + loss of model - loss of other) / 2`. At epsilon 1.5 or less this has a smaller interval
    than half of the agents for each model, as long as theirs are not cut off at 0 or 1: two
    intervals must then hold at once, each from half of the answers. For a larger epsilon, or two
    models that are both nearly always right, two certificates of their own can be narrower. Agents
    stand in an order that must tell nothing about them.

    Real agents may not answer. The interval then assumes that who does so does not depend on the
    true answer; a second one assumes nothing, and is wider by what the missing answers could say.

    RemoteAgents are sent the description of the model, so that it is the error that is certified.
    With a `state`, pass `count`: the same call after a crash then takes up what was asked.

    Args:
        model: A released or public model with predict(X), or the description of one, a dict.
            RemoteAgents need a description: a dict, the attribute `hypothesis` of models of this
            package, or a StatisticsModel of two classes and of a map that is no function. With
            losses(X, y) it is certified by these, which must lie in [0, 1], unless `loss` or
            `other` is passed. With `loss` it may also be a function of X, such as a score.
        agents: Agents of the target population, who were not used to choose the model.
        other: Another such model, with which the model is compared. None compares with nothing.
        loss: Called with what the model's predict (or the function) returns for m agents and with
            their labels; returns their losses in [0, 1], shape (m,). A loss is clipped; one that is
            not finite counts as 1. None takes the error. RemoteAgents cannot take it.
        count: Number of agents to ask, at least 2; None asks all that are left.
        beta: Probability with which the interval may miss, in (0, 1).
        shuffled: Delta of the answers behind a shuffler, strictly between 0 and 1, if one mixes
            them before they arrive: all those about the model at once, not batch by batch, and
            apart from them the labels. None tells the epsilon of an answer alone.
        liars: The most answers about the model that may be anything, sent by people who do not
            follow the protocol. `low_any` and `high_any` then hold all the same.
        random_state: As for Agents.ask.

    Returns:
        A Certificate. A UtilityWarning says where it cannot show that the model is better than the
        better constant.

    Raises:
        ParameterError: An argument breaks its rule, a model cannot predict, or RemoteAgents need a
            description that the model does not have. No one is asked.
        AgentsExhausted: Fewer agents are left than are to be asked, and no one is asked; or not one
            of those who were asked about the model has answered.
        Exception: What the model raises about made-up records, before anybody is asked, or what
            the agents themselves raise. A record that the model fails on counts as wrong, with the
            loss 1, as on a device.

    Guarantee:
        Pure epsilon-DP for each agent, with the agents' epsilon, in the local model. The curator's
        records cost nothing again, since the model is released. With `shuffled`, that of the
        result's shuffled_record against everybody who sees answers only after they were mixed, if
        no one's silence depends on its record. All who answered are taken to follow the protocol.

    Cost:
        One prediction for each agent.

    Source:
        Clopper and Pearson 1934 for the randomized answers, of which the randomization is then
        undone; never wider than `local.estimate_mean`.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> X = np.random.default_rng(0).integers(0, 2, (60_000, 2))
        >>> agents = local.Agents(X, X[:, 0], epsilon=2.0)
        >>> rules = [{"kind": "parity", "features": [i], "complement": False} for i in (0, 1)]
        >>> transfer.certify(rules[0], agents, other=rules[1]).better
        'model'
    """
    failing = None if shuffled is None else probability("shuffled", shuffled)
    certificate, labels = ask_certificate(
        model, agents, other, loss, count, beta, random_state, nonnegative_int("liars", liars)
    )
    if failing is not None:
        mixes = [certificate.agents, len(labels)]
        record = record_mixes(certificate.agents_record, mixes, failing)
        certificate = dataclasses.replace(certificate, shuffled_record=record)
    _note_no_knowledge(certificate)
    return certificate


def ask_certificate(
    model: Any,
    agents: AgentPool,
    other: Any,
    loss: Loss | None,
    count: int | None,
    beta: float,
    random_state: RandomState,
    liars: int = 0,
) -> tuple[Certificate, Bits]:
    """The certificate of certify, without a note, and the randomized labels behind its constants.

    There are no labels where the constants need none. Raises what certify raises.
    """
    failure = probability("beta", beta)
    check_agents(agents)
    measure = _Measure(model, other, loss, isinstance(agents, local.RemoteAgents))
    size = _check_count(count, agents, measure.needs_labels)
    rng = make_stream(random_state)
    labels = size // AGENTS_PER_LABEL if measure.needs_labels else 0
    measure.rehearse(agents)
    questions = [(measure.question, size - labels), (local.Query.label(), labels)]
    (asked, answers), (_, told) = agents.ask_together(questions, random_state=rng)
    if not answers.size:
        rule = "there is nothing to certify from: ask others"
        raise AgentsExhausted(f"agents: none of {asked:,} has answered, {rule}")
    constants = measure.constants
    if labels:
        constants = find_constants(int(told.sum()), len(told), failure, agents.epsilon)
    estimate = _estimate(answers, failure, agents.epsilon)
    ones, law = int(answers.sum()), {"beta": failure, "epsilon": agents.epsilon}
    any_ends = bound_all(ones, len(answers), asked, **law, liars=liars)
    value, low, high, low_any, high_any = map(measure.scale, (*estimate, *any_ends))
    certificate = Certificate(
        measured=measure.measured,
        value=value,
        low=low,
        high=high,
        low_any=low_any,
        high_any=high_any,
        beta=failure,
        agents=len(answers),
        asked=asked,
        constants=constants,
        agents_record=agents.record(random_state),
        liars=liars,
    )
    return certificate, told


class _Measure:
    """What the agents are asked about one model or two, and what the answers stand for."""

    def __init__(self, model: Any, other: Any, loss: Loss | None, is_remote: bool):
        model, other = _read_description(model), _read_description(other)
        models = {"model": model} | ({} if other is None else {"other": other})
        if loss is not None and not callable(loss):
            refuse("loss", loss, "it must be callable or None")
        if loss is not None and is_remote:
            rule = "RemoteAgents cannot be sent a function: None asks them for the error"
            raise ParameterError(f"loss is a function, but {rule}")
        for name, one in models.items():
            _check_model(name, one, loss, is_remote)
        self._model, self._other, self._loss, self._is_remote = model, other, loss, is_remote
        self._has_losses = callable(getattr(model, "losses", None)) and not is_remote
        is_error = loss is None and (other is not None or not self._has_losses)
        self.measured: Measured = "error" if is_error else "loss"
        self.constants = None
        if other is not None:
            self.measured = "difference"
        elif loss is None and self._has_losses:
            self.constants = constant_loss(model)
        self.needs_labels = self.measured == "error"

    @property
    def question(self) -> Any:
        """What agents are asked; a model stands for the test of it."""
        if self._other is None and self._loss is None:
            is_tested = not self._is_remote or _has_description(self._model)
            return self._model if is_tested else local.Query.wrong(self._model)
        if self._other is None:
            return self._losses_of_model
        return local.Query.worse(self._model, self._other) if self._is_remote else self._compare

    def rehearse(self, agents: AgentPool) -> None:
        """Refuses models that fail on every record, before anybody is asked; `test` does so, too.

        Raises:
            Exception: What a model or the loss raises about made-up records.
        """
        if self.question is not self._model and not isinstance(self.question, local.Query):
            for model in (self._model, self._other):
                if model is not None:
                    agents.rehearse(partial(self._compute_losses, model))

    def scale(self, mean: float) -> float:
        """What is measured, where the answers have this mean."""
        return 2 * mean - 1 if self.measured == "difference" else mean

    def _compare(self, X: Any, y: Bits) -> Floats:
        first, second = (self._losses(model, X, y) for model in (self._model, self._other))
        answers: Floats = (1 + first - second) / 2
        return answers

    def _losses_of_model(self, X: Any, y: Bits) -> Floats:
        return self._losses(self._model, X, y)

    def _losses(self, model: Any, X: Any, y: Bits) -> Floats:
        if self._loss is None:
            return find_mistakes(model, X, y).astype(np.float64)
        return answer_each(partial(self._compute_losses, model), X, y).astype(np.float64)

    def _compute_losses(self, model: Any, X: Any, y: Bits) -> NDArray[Any]:
        """Raises what the model or the loss raises about these records."""
        if self._loss is None:
            return compare_predictions(model, X, y)
        predict = getattr(model, "predict", model)
        return losses("loss(predictions, y)", self._loss(predict(X), y), len(y))


class _Described:
    """A model that is known by its description alone."""

    def __init__(self, description: Mapping[str, Any]):
        self.hypothesis = parse(dict(description))
        self._predict = predictor(self.hypothesis)

    def predict(self, X: Any, /) -> Bits:
        return self._predict(with_bits(to_numbers(X) if isinstance(X, np.ndarray) else X))


def _read_description(model: Any) -> Any:
    """A model that predicts what agents hold: rows of numbers or bits, and no tables."""
    if isinstance(model, PrivateModel):
        if model.hypothesis is None:
            rule = (
                "agents hold no table that it reads: only an additive model of two classes that is "
                "not calibrated describes itself; pass the linear or calibrated score of their rows"
            )
            raise ParameterError(f"model is a PrivateModel of method {model.method!r}, but {rule}")
        model = model.hypothesis
    return _Described(model) if isinstance(model, Mapping) else model


def _has_description(model: Any) -> bool:
    return isinstance(getattr(model, "hypothesis", None), Mapping)


def _check_model(name: str, model: Any, loss: Loss | None, is_remote: bool) -> None:
    if is_remote:
        if not _has_description(model) and local.Query.wrong(model).hypothesis is None:
            rule = f"RemoteAgents need a model with a description: {DESCRIBED}"
            raise ParameterError(f"{name} is {type(model).__name__}, but {rule}")
        return
    predicts = callable(getattr(model, "predict", None)) and not isinstance(model, type)
    if not predicts and (loss is None or not callable(model)):
        rule = "it must have predict, or with a loss be a function"
        raise ParameterError(f"{name} is {type(model).__name__}, but {rule}")


def _check_count(count: int | None, agents: AgentPool, needs_labels: bool) -> int:
    least = AGENTS_PER_LABEL if needs_labels else 1
    size = count_agents(count, agents)
    require_left(size, agents)
    if size < least:
        refuse("count", size, f"it must be at least {least}, of whom one is asked for the label")
    return size


def _estimate(answers: Bits, beta: float, epsilon: float) -> local.Estimate:
    return estimate_exactly(int(answers.sum()), len(answers), beta=beta, epsilon=epsilon)


def find_constants(ones: int, answers: int, beta: float, epsilon: float) -> Constants | None:
    """Both errors from randomized labels; the ends hold the smaller one for all means within."""
    if not answers:
        return None
    share, low, high = estimate_exactly(ones, answers, beta=beta, epsilon=epsilon)
    ends = min(low, 1 - low), min(high, 1 - high)
    most = 0.5 if low <= 0.5 <= high else max(ends)
    return Constants(share, 1 - share, min(ends), most, answers, low, high)


def _note_no_knowledge(certificate: Certificate) -> None:
    doubt = describe_doubt(certificate)
    if doubt is not None:
        note(doubt)


def describe_doubt(certificate: Certificate) -> str | None:
    """What a certificate does not show; None where it shows that a model is good for something."""
    constants, measured = certificate.constants, certificate.measured
    if constants is not None and not certificate.beats_constant:
        article = "an" if measured == "error" else "a"
        have = f"{article} {measured} of at most {certificate.high:.3f}"
        rule = f"the better constant's is about {constants.better:.3f}, perhaps {constants.low:.3f}"
        ask = "not yet shown to be better, ask more people"
        help_ = "predict a constant" if certificate.prefers_constant else ask
        return f"agents = {certificate.agents:,} show {have}, but {rule}: {help_}"
    if measured == "difference" and certificate.better is None:
        ends = f"[{certificate.low:.3f}, {certificate.high:.3f}]"
        have = f"agents = {certificate.agents:,} do not show which model is better"
        return f"{have}: {ends} holds 0"
    if math.isclose(certificate.high - certificate.low, 1, abs_tol=1e-9):
        return f"agents = {certificate.agents:,} tell nothing: the interval is all of [0, 1]"
    return None
