"""One run of Subsample-Test-Reweigh: its state between steps, each of which can be tried again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import local
from .._support.numbers import losses
from .._support.types import Bits
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..local.estimation import half_width
from ..local.pool import Hypothesis, falls_short
from ..local.randomizers.noisy import GaussianRandomizer
from ..record import PrivacyRecord
from ..weights import DenseWeights
from .checkpoint import Journal
from .learner import Learner
from .plans import Plan
from .preparation import is_oracle, printed_answers
from .results import Constants, RoundResult, Stopped, TransferResult, constant_loss, read_constants
from .run_records import RunRecords, StoredRecords

_OF_BITS = ("conjunction", "parity", "at_least")


class Run:
    """A run at any stage: begun, stopped or finished.

    Attributes:
        plan: Parameters of the run.
        weights: Weights of the records, which are private.
        journal: What was released so far.
        record: Privacy record of the curator's data; None if nothing protects it.
    """

    def __init__(
        self,
        plan: Plan,
        learner: Learner,
        weights: DenseWeights,
        journal: Journal,
        record: PrivacyRecord | None,
    ):
        self.plan, self.weights, self.journal, self.record = plan, weights, journal, record
        self._learner = learner
        self._seed: str | None = journal.settings["seed"]
        self._finalists: list[int] = journal.settings["finalists"]
        self._latest: tuple[int, Hypothesis] | None = None
        self._kept: dict[int, Hypothesis] = {}
        self._tested: dict[int, tuple[RoundResult, Hypothesis]] = {}

    def finish(self, records: RunRecords, agents: Any, bar: Any) -> TransferResult:
        """Runs the rounds that are left; after an error it can be called again.

        Raises:
            AgentsExhausted: There are fewer agents left than the next test needs. Errors of the
                learner and of the agents are passed on.
        """
        places = {number: place for place, number in enumerate(self.plan.tested_rounds)}
        records = records.prepared_by(self._learner)
        # The weights count their updates themselves, so that Ctrl-C cannot come between the two.
        while (number := self.weights.updates + 1) <= self.plan.rounds:
            hypothesis = self._learn(number, records)
            place = places.get(number)
            if place is not None and self._accepts(place, number, hypothesis, agents):
                return self._result(place, "accepted", number, agents)
            if self.plan.output == "majority" or number in self._finalists:
                self._kept[number] = hypothesis
            compute = _compute_losses if self.plan.weigh_by == "losses" else _errors
            self.weights.update(records.measure(partial(compute, hypothesis)))
            bar.update()
        if not self.plan.tests:
            return self._release(None, self._vote(), "rounds", self.plan.rounds, agents)
        self._test_finalists(len(places), agents)
        last = len(places) if self.plan.output == "majority" else self._best()
        return self._result(last, "rounds", self.plan.rounds, agents)

    def _learn(self, number: int, records: RunRecords) -> Hypothesis:
        """The hypothesis of a round, restored or learned, and written before anybody sees it."""
        is_written = number <= len(self.journal.hypotheses)
        if self._latest is None or self._latest[0] != number:
            hypothesis = self._restore(number) if is_written else self._draw(number, records)
            self._latest = (number, hypothesis)
        if not is_written:
            self.journal.add_hypothesis(number, json.dumps(self._latest[1].hypothesis))
        return self._latest[1]

    def _restore(self, number: int) -> Hypothesis:
        return self.journal.restore(number, self._learner.restore)

    def _draw(self, number: int, records: RunRecords) -> Hypothesis:
        seed = self._seed_for("learner", number)
        if self._learner.draws_itself:
            assert isinstance(records, StoredRecords)
            return self._learner.learn_weighted(records.X, records.y, self.weights, seed)
        drawn = self.weights.draw(self.plan.draws, random_state=self._seed_for("draws", number))
        return self._learner.learn(*records.take(drawn), seed)

    def _accepts(self, place: int, number: int, hypothesis: Hypothesis, agents: Any) -> bool:
        value = self._cautious(self._test(place, number, hypothesis, agents))
        return self.plan.output == "tested" and value <= 3 * self.plan.alpha + self.plan.opt

    def _cautious(self, test: RoundResult) -> float:
        """The estimated error, enlarged if far fewer have answered than the plan counts on.

        It exceeds the estimate by as much as the half width of the interval exceeds alpha.
        """
        plan = self.plan
        if not falls_short(test.agents, plan.agents_per_test, plan.response_rate):
            return test.value
        assert plan.agents_epsilon is not None
        width = half_width(test.agents, plan.beta / plan.tests, plan.agents_epsilon)
        return test.value + max(0.0, width - plan.alpha)

    def _test_finalists(self, place: int, agents: Any) -> None:
        if self.plan.output == "majority":
            self._test(place, None, self._vote(), agents)
            return
        for offset, number in enumerate(self._finalists):
            self._test(place + offset, number, self._kept[number], agents)

    def _vote(self) -> Vote:
        return Vote(list(self._kept.values()))

    def _test(
        self, place: int, number: int | None, hypothesis: Hypothesis, agents: Any
    ) -> RoundResult:
        """The estimated error of a hypothesis; its agents are asked only once."""
        if place not in self._tested:
            if place in self.journal.answers:
                result = RoundResult(*self.journal.answers[place])
            elif is_oracle(agents):
                result = _query(number, self._to_ask(hypothesis), agents, self.plan.alpha)
                self.journal.end_test(place, dataclasses.astuple(result))
            else:
                result = self._ask(place, number, hypothesis, agents)
            self._tested[place] = (result, hypothesis)
        return self._tested[place][0]

    def _ask(
        self, place: int, number: int | None, hypothesis: Hypothesis, agents: Any
    ) -> RoundResult:
        size, beta = self.plan.agents_per_test, self.plan.beta / self.plan.tests
        result = self._ask_agents(place, number, hypothesis, agents, size, beta)
        if result is None:
            silent = f"agents: none of the {size:,} who were asked in a test has answered"
            raise AgentsExhausted(f"{silent}; the run is kept, and resume asks others")
        return result

    def _ask_agents(
        self,
        place: int,
        number: int | None,
        hypothesis: Hypothesis,
        agents: Any,
        size: int,
        beta: float,
    ) -> RoundResult | None:
        """The estimated error, from answers that an interrupted run has paid for, or from others.

        It is None if no one has answered.
        """
        printed = self._printed_answers(agents)
        answers = agents.recall(hypothesis, self.journal.begun.get(place, size))
        if answers.size:
            # Those agents have been counted.
            self.journal.begin_test(place, 0)
        else:
            self._require_agents(agents, size)
            self.journal.begin_test(place, size)
            seed, asked = self._seed_for("agents", place), self._to_ask(hypothesis)
            how = {} if printed is None else {"randomizer": printed}
            answers = agents.test(asked, size, random_state=seed, **how)
        if not answers.size:
            return None
        if printed is not None:
            estimate = local.Estimate(*printed.aggregate(answers).estimate(beta))
        else:
            estimate = local.estimate_mean(answers, beta=beta, epsilon=agents.epsilon)
        result = RoundResult(number, *estimate, answers.size)
        self.journal.end_test(place, dataclasses.astuple(result))
        return result

    def _to_ask(self, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis as it is tested; one of a printed run by what its weights follow."""
        by_errors = self.plan.variant == "paper" and self.plan.weigh_by == "errors"
        if by_errors and hasattr(hypothesis, "losses"):
            return _Predictor(hypothesis)
        return hypothesis

    def _printed_answers(self, agents: Any) -> GaussianRandomizer | None:
        """What printed agents randomize their losses by; None for others."""
        if self.plan.variant == "tight" or self.plan.delta is None:
            return None
        return printed_answers(agents, self.plan.delta)

    def _describe_answers(self, agents: Any) -> PrivacyRecord | None:
        """The privacy record of the agents' answers; None for an oracle."""
        if is_oracle(agents):
            return None
        answering = self._printed_answers(agents) or agents
        return answering.record(self._seed_for("agents", 0))

    def _require_agents(self, agents: Any, size: int) -> None:
        if agents.remaining < size:
            left = f"agents = {agents.remaining:,} left, but the next test needs {size:,}"
            raise AgentsExhausted(f"{left}; the run is kept, and resume(X, y, agents) goes on")

    def _best(self) -> int:
        return min(self._tested, key=lambda place: self._cautious(self._tested[place][0]))

    def _result(self, place: int, stopped: Stopped, rounds: int, agents: Any) -> TransferResult:
        tested, hypothesis = self._tested[place]
        return self._release(tested, hypothesis, stopped, rounds, agents)

    def _release(
        self,
        tested: RoundResult | None,
        hypothesis: Hypothesis,
        stopped: Stopped,
        rounds: int,
        agents: Any,
    ) -> TransferResult:
        result = TransferResult(
            hypothesis=hypothesis.hypothesis,
            tested=tested,
            estimates=tuple(self._tested[key][0] for key in sorted(self._tested)),
            constants=None if tested is None else self._measure_constants(hypothesis, agents),
            stopped=stopped,
            rounds=rounds,
            plan=self.plan,
            record=self.record,
            agents_record=self._describe_answers(agents),
            weights=self.weights.probabilities() if self.record is None else None,
            _hypothesis=hypothesis,
        )
        if stopped == "accepted" and result.beats_constants is False:
            return dataclasses.replace(result, stopped="threshold")
        return result

    def _measure_constants(self, hypothesis: Hypothesis, agents: Any) -> Constants | None:
        """The errors of the constants, by agents planned for this or not asked by any test."""
        if self.plan.variant == "paper":
            return None
        if hasattr(hypothesis, "losses"):
            return constant_loss(hypothesis)
        place, constant = self.plan.tests, AlwaysOne(hypothesis)
        is_mute = isinstance(agents, local.RemoteAgents) and constant.hypothesis is None
        if place not in self.journal.answers and not (is_oracle(agents) or is_mute):
            # Tests that were asked in vain may have used up the agents planned for all of them.
            spare = max(self.plan.N - self.journal.asked, self.plan.agents_for_constants)
            size = min(spare, agents.remaining, self.plan.agents_per_test)
            if size > 0 or place in self.journal.begun:
                self._ask_agents(place, None, constant, agents, size, self.plan.beta)
        if place not in self.journal.answers:
            return None
        _, *estimate, size = self.journal.answers[place]
        return read_constants(local.Estimate(*estimate), size)

    def _seed_for(self, purpose: str, number: int) -> int | None:
        """The random_state of one step, the same in a run that was interrupted."""
        if self._seed is None:
            return None
        text = f"{self._seed} {purpose} {number}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:16], "big")


class _Predictor:
    """A hypothesis without the losses that it may have of its own."""

    def __init__(self, hypothesis: Hypothesis):
        self.hypothesis, self.predict = hypothesis.hypothesis, hypothesis.predict


class Vote:
    """The majority vote of some hypotheses; a tie is 0."""

    def __init__(self, voters: Sequence[Hypothesis]):
        descriptions = [voter.hypothesis for voter in voters]
        keys = [
            place if description is None else json.dumps(description)
            for place, description in enumerate(descriptions)
        ]
        self._different = dict(zip(keys, voters, strict=True))
        self._counts = Counter(keys)
        vote = {"kind": "vote", "hypotheses": descriptions}
        self.hypothesis = None if None in descriptions else vote

    def predict(self, X: Any, /) -> Bits:
        """The label that more than half of the hypotheses predict."""
        if not hasattr(X, "__len__"):
            rule = "it must be an array, a data frame or a list"
            raise ParameterError(f"X is of type {type(X).__name__}, but {rule}")
        votes = np.zeros(len(X), np.int64)
        for key, count in self._counts.items():
            votes += count * np.asarray(self._different[key].predict(X)).astype(np.int64)
        return (2 * votes > self._counts.total()).astype(np.uint8)


def _query(number: int | None, hypothesis: Hypothesis, oracle: Any, tau: float) -> RoundResult:
    value = float(
        oracle.query(lambda X, y: _compute_losses(hypothesis, X, y).astype(np.float64), tau)
    )
    if not 0 <= value <= 1:
        raise ParameterError(f"oracle answered {value}, but a mean loss lies in [0, 1]")
    return RoundResult(number, value, max(value - tau, 0.0), min(value + tau, 1.0), 0)


def _compute_losses(hypothesis: Any, X: Any, y: Bits) -> NDArray[Any]:
    """The losses of a hypothesis on the records: its own in [0, 1] if it has any, or errors."""
    if hasattr(hypothesis, "losses"):
        return losses("losses(X, y)", hypothesis.losses(X, y), len(y))
    return _errors(hypothesis, X, y)


def _errors(hypothesis: Hypothesis, X: Any, y: Bits) -> NDArray[np.bool_]:
    predictions = np.asarray(hypothesis.predict(X))
    if predictions.shape != y.shape:
        raise ShapeError(
            f"predict returned shape {predictions.shape}, but there are {len(y):,} records"
        )
    wrong: NDArray[np.bool_] = predictions != y
    return wrong


class AlwaysOne:
    """The hypothesis that predicts 1, described as a hypothesis of the kind of another one.

    Attributes:
        hypothesis: The description; None if there is none that agents who know the other kind could
            read.
    """

    def __init__(self, other: Hypothesis):
        self.hypothesis = _describe_like(other.hypothesis)

    def predict(self, X: Any, /) -> Bits:
        """Predicts 1 for each record."""
        return np.ones(len(X), np.uint8)


def _describe_like(description: dict[str, Any] | None) -> dict[str, Any] | None:
    kind = None if description is None else description.get("kind")
    if description is not None and kind == "calibrated":
        like = _describe_like(description["model"])
        return None if like is None else {**description, "model": like, "knots": [], "shifts": []}
    if description is not None and kind == "statistics":
        return {**description, "weights": [0.0] * len(description["weights"])}
    if description is None or kind not in (*_OF_BITS, "halfspace", "linear", "vote"):
        return None
    if kind == "vote":
        return _describe_like(description["hypotheses"][0])
    if kind in _OF_BITS:
        return {"kind": "conjunction", "features": [], "values": [], "complement": False}
    return {**description, "weights": [0.0] * len(description["weights"]), "bias": 0.0}
