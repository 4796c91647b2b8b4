"""Simulated agents: each holds one record and is asked once, ever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.callers import answers as checked_answers
from .._support.callers import freeze, losses, silence
from .._support.numbers import finite_rows
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Bits, RandomState
from .._support.validate import array, bits, positive, probability, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord
from .pool import AgentPool, Hypothesis, QuestionFunction, find_mistakes
from .response import advantage, record_of


class Agents(AgentPool):
    """Simulated local agents: each holds one record and answers one question, once, ever.

    X: (N, d), an array or a BitMatrix, one agent's features a row; y: 0/1 (N,), their labels.
    epsilon: of each answer, above 0. delta: accepted, in [0, 1), and not used: the answers are
    pure.

    A copy is the very same object, pickling raises, and so does a question in a forked child, so
    that no agent can be asked twice. X is not copied: leave it as it is while they are asked.

    Guarantee: each answer is pure epsilon-DP with respect to the agent's record, against
        everybody, the curator included; exact coins.
    Raises: ShapeError, ParameterError.
    Cost: none until asked.
    Source: Warner 1965; Kohen and Sheffet 2022, Section 3.
    """

    def __init__(
        self, X: ArrayLike | BitMatrix, y: ArrayLike, *, epsilon: float, delta: float = 0.0
    ):
        probability("delta", delta, zero=True)
        records: Any = X if isinstance(X, BitMatrix) else array("X", X)
        labels = bits("y", y)
        if len(records.shape) != 2 or labels.shape != records.shape[:1]:
            shapes = f"X has shape {records.shape} and y {labels.shape}"
            raise ShapeError(f"{shapes}, but they must be (N, d) and (N,)")
        super().__init__(len(labels), epsilon)
        self._d = int(records.shape[1])

        # Records live in these two functions alone: whoever holds the object has answers, no more.
        def respond(
            question: QuestionFunction, part: slice, share: float, random_state: RandomState
        ) -> Bits:
            count, share = part.stop - part.start, min(share, epsilon)
            # A copy, since the base of a view would be the records of all agents.
            X = records[part]
            features = X if isinstance(X, BitMatrix) else freeze(X.copy())
            with silence():
                answers = question(features, freeze(labels[part].copy()))
                true = checked_answers("answers", answers, count)
            return _core.randomized_response(true, share, make_key(random_state))

        def require_bits() -> None:
            if not isinstance(records, BitMatrix):
                BitMatrix.from_dense(records)

        def require_finite() -> None:
            if not isinstance(records, BitMatrix):
                finite_rows(records)

        self._respond = respond
        self._require_bits, self._require_finite = require_bits, require_finite

    @property
    def d(self) -> int:
        """Number of features of an agent."""
        return self._d

    def ask(
        self, question: QuestionFunction, count: int, *, random_state: RandomState = None
    ) -> Bits:
        """Ask the next agents a question with an answer in [0, 1] and return what they say.

        question: called with the features and the labels of those agents, (count, d) and (count,),
        which it cannot change; returns their true answers, bits or floats in [0, 1], (count,);
        others are clipped, and what is not finite or no number counts as 0. It runs in silence:
        its warnings, prints and logs could tell of a record. count: how many to ask, at least 0.
        Returns uint8 (count,), each answer randomized, a fraction rounded to a bit before.

        Guarantee: pure epsilon-DP for each agent, if the answer of an agent depends on no record
            but its own.
        Raises: AgentsExhausted when fewer are left, and ParameterError in a forked child: then
            nobody is asked; ShapeError when the question returns anything but one answer an agent.
        Cost: that of the question, and O(count d) for a copy of their records.
        Source: Warner 1965.
        """
        check_random_state(random_state)
        if not callable(question):
            refuse("question", question, "it must be callable")
        start = self._reserve(count)
        return self._respond(question, slice(start, start + count), self._epsilon, random_state)

    def ask_several(
        self,
        questions: Sequence[QuestionFunction],
        count: int,
        *,
        shares: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Bits:
        """Ask each of the next agents several questions in one visit, and return what they say.

        questions: k >= 1, all given before any answer, each as ask takes it. count: how many agents
        to ask, at least 0. shares: epsilons of the k questions, (k,), above 0, their sum at most
        the agents' epsilon; None for equal ones. Returns uint8 (k, count), a row a question, to be
        read by estimate_mean with that question's share.

        Against a share of the agents for each question, as many visits of one question as accuracy
        needs, this takes tanh(epsilon / 2)**2 / (k tanh(epsilon / 2k)**2) times as many agents (for
        equal shares): k times where epsilon is small. Only from epsilon = 3.06 for k = 2, 3.71 for
        k = 3, 4.25 for k = 4 on does it take fewer.

        Guarantee: pure epsilon-DP for each agent, by composition of its k answers, if these depend
            on no record but its own.
        Raises: as ask; ParameterError also for other shares: then nobody is asked.
        Cost: that of the questions, and O(k count d).
        Source: Kasiviswanathan et al. 2011, Definition 5.3.
        """
        rng = make_stream(random_state)
        _check_questions(questions)
        questions = list(questions)
        epsilons = split_epsilon(shares, len(questions), self._epsilon)
        for epsilon in epsilons:
            advantage(epsilon)
        start = self._reserve(count)
        part = slice(start, start + count)
        pairs = zip(questions, epsilons, strict=True)
        return np.stack([self._respond(question, part, share, rng) for question, share in pairs])

    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Ask the next agents whether a hypothesis is wrong about them, or what it loses on them.

        learned: anything with predict(X) -> 0/1 (count,), such as learners.ExponentialResult; it
        sees the features of those agents. Where it has losses(X, y) -> floats in [0, 1], agents are
        asked for these: each rounds its loss to 1 with the loss as the probability, so that
        estimate_mean estimates the mean loss. count: how many to ask, at least 0. Returns uint8
        (count,), 1 for an error, each answer randomized.

        Guarantee: as ask.
        Raises: as ask; ShapeError when predict or losses return anything but one number an agent.
            Predictions count as the nearer label, 0 where they are not finite; losses are clipped,
            and what is not finite counts as 1.
        Cost: that of predict, and O(count).
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """

        def find_losses(X: Any, y: Bits) -> NDArray[Any]:
            if hasattr(learned, "losses"):
                return losses("learned.losses(X, y)", learned.losses(X, y), len(y))
            return find_mistakes(learned, X, y)

        return self.ask(find_losses, count, random_state=random_state)

    def require_bits(self) -> None:
        """Refuse features that are not bits, before anybody is asked about them.

        Raises: ParameterError for entries other than 0 and 1.
        Cost: one pass over X.
        Source: none.
        """
        try:
            self._require_bits()
        except ParameterError as error:
            raise ParameterError(f"agents: {error}") from None

    def require_finite(self) -> None:
        """Refuse features that are no finite real numbers, before anybody is asked about them.

        Raises: ParameterError for NaN, infinite entries and what is no number.
        Cost: one pass over X.
        Source: none.
        """
        try:
            self._require_finite()
        except ParameterError as error:
            raise ParameterError(f"agents: {error}") from None

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What protects each agent's answer.

        random_state: the one that the answers were drawn with.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
        """
        return record_of("local.Agents", self._epsilon, random_state)

    def __repr__(self) -> str:
        return self._describe(f"{self.d:,} features, ")


def _check_questions(questions: Any) -> None:
    """Refuse what is no sequence of questions for one visit."""
    if not isinstance(questions, Sequence) or not questions or not all(map(callable, questions)):
        refuse("questions", questions, "it must be a sequence of at least one callable")


def split_epsilon(shares: Any, count: int, epsilon: float) -> list[float]:
    """Divide the agents' epsilon among the questions of one visit: by shares, or equally.

    Raises: ParameterError.
    """
    if shares is None:
        equal = epsilon / count
        while count * _decimal(equal) > _decimal(epsilon):
            equal = math.nextafter(equal, 0)
        return [equal] * count
    values = array("shares", shares)
    if values.shape != (count,) or values.dtype.kind not in "uif":
        refuse("shares", shares, f"it must be {count} numbers, one for each question")
    parts = [positive("shares", share) for share in values.tolist()]
    if sum(map(_decimal, parts)) > _decimal(epsilon):
        refuse("shares", shares, f"their sum must be at most the agents' epsilon = {epsilon}")
    return parts


def _decimal(epsilon: float) -> Fraction:
    """The shortest decimal that denotes this float; a ledger reads it in the same way."""
    return Fraction(repr(epsilon))
