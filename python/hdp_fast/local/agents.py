"""Populations of agents: simulated and remote, each asked once, ever."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._core import truth_probability
from .._support.callers import answers as checked_answers
from .._support.callers import locked, losses, predictions, unheard
from .._support.numbers import finite_rows
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Bits, RandomState
from .._support.uncopyable import Single
from .._support.validate import array, bits, nonnegative_int, probability, refuse
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..learners.descriptions import Hypothesis
from ..record import PrivacyRecord, rng_of
from .visits import questions_of, shares_of

Question = Callable[[Any, Bits], ArrayLike]

SOURCE = (
    "Warner 1965; Kohen and Sheffet 2022, Section 3 (binary randomized response for their Gaussian)"
)


class Testable(Protocol):
    """What agents can be asked about: a learned hypothesis."""

    @property
    def hypothesis(self) -> Hypothesis:
        """Its description, a dict that JSON can carry."""

    def predict(self, X: Any, /) -> ArrayLike:
        """What it says of records, 0/1 (m,)."""


class Population(Single, ABC):
    """People in a fixed order, each to be asked once, ever, and how many have been."""

    _copied = "ask the same people again"
    _instead = "ask in that process, or make there agents of other people for each child"

    def __init__(self, size: int, epsilon: float):
        super().__init__()
        advantage(epsilon)
        self._size, self._epsilon = size, float(epsilon)
        self._asked = 0

    @property
    def epsilon(self) -> float:
        """Privacy parameter of every answer."""
        return self._epsilon

    @property
    def remaining(self) -> int:
        """How many agents have not been asked yet."""
        return self._size - self._asked

    @abstractmethod
    def test(self, learned: Testable, count: int, *, random_state: RandomState = None) -> Bits:
        """Whether the hypothesis is wrong about the next agents, each answer randomized."""

    @abstractmethod
    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What protects each agent."""

    def pass_over(self, count: int) -> None:
        """Count the next agents as asked without asking them: an earlier run did.

        count: how many, at least 0.

        Raises: AgentsExhausted when fewer are left; ParameterError, also in a forked child.
        Cost: constant.
        Source: none.
        """
        self._reserve(count)

    def _reserve(self, count: int) -> int:
        """Marks agents as asked before their question runs: a crash leaves them spent."""
        wanted = nonnegative_int("count", count)
        with self._held():
            if wanted > self.remaining:
                raise AgentsExhausted(f"count = {wanted}, but {self.remaining} agents are left")
            start = self._asked
            self._asked += wanted
        return start

    def __len__(self) -> int:
        return self._size

    def _described(self, details: str) -> str:
        asked = f"{self._asked:,} of {len(self):,} asked"
        return f"{type(self).__name__}({details}epsilon={self._epsilon:g}, {asked})"


class Agents(Population):
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
        def answers(
            question: Question, some: slice, share: float, random_state: RandomState
        ) -> Bits:
            count, share = some.stop - some.start, min(share, epsilon)
            # A copy, or a view's base would be the records of all agents.
            X = records[some]
            shown = X if isinstance(X, BitMatrix) else locked(X.copy())
            with unheard():
                given = question(shown, locked(labels[some].copy()))
                true = checked_answers("answers", given, count)
            return _core.randomized_response(true, share, make_key(random_state))

        def require_bits() -> None:
            if not isinstance(records, BitMatrix):
                BitMatrix.from_dense(records)

        def require_finite() -> None:
            if not isinstance(records, BitMatrix):
                finite_rows(records)

        self._answers = answers
        self._require_bits, self._require_finite = require_bits, require_finite

    @property
    def d(self) -> int:
        """Number of features of an agent."""
        return self._d

    def ask(self, question: Question, count: int, *, random_state: RandomState = None) -> Bits:
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
        return self._answers(question, slice(start, start + count), self._epsilon, random_state)

    def ask_several(
        self,
        questions: Sequence[Question],
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
        coins = make_stream(random_state)
        asked = questions_of(questions)
        parts = shares_of(shares, len(asked), self._epsilon)
        for part in parts:
            advantage(part)
        start = self._reserve(count)
        some = slice(start, start + count)
        pairs = zip(asked, parts, strict=True)
        return np.stack([self._answers(question, some, part, coins) for question, part in pairs])

    def test(self, learned: Testable, count: int, *, random_state: RandomState = None) -> Bits:
        """Ask the next agents whether a hypothesis is wrong about them, or what it loses on them.

        learned: anything with predict(X) -> 0/1 (count,), such as learners.ExponentialResult; it
        sees the features of those agents. Where it has losses(X, y) -> floats in [0, 1], they are
        asked for
        these: each rounds its loss to 1 with the loss as the probability, so that estimate_mean
        estimates the mean loss. count: how many to ask, at least 0. Returns uint8 (count,), 1 for
        an error, each answer randomized.

        Guarantee: as ask.
        Raises: as ask; ShapeError when predict or losses return anything but one number an agent.
            Predictions count as the nearer label, 0 where they are not finite;
            losses are clipped, and what is not finite counts as 1.
        Cost: that of predict, and O(count).
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """

        def lost(X: Any, y: Bits) -> NDArray[Any]:
            if hasattr(learned, "losses"):
                return losses("learned.losses(X, y)", learned.losses(X, y), len(y))
            return mistakes(learned, X, y)

        return self.ask(lost, count, random_state=random_state)

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
        return self._described(f"{self.d:,} features, ")


class RemoteAgents(Population):
    """Real local agents, reached through a function; each is asked once, ever.

    ask: called with a hypothesis as JSON and a number k >= 1; asks k agents that it never asked
    before whether the hypothesis is wrong about them, and returns their k answers, 0/1, each
    already randomized by the agent (randomized_response; predictor of hdp_fast.learners reads the
    JSON). epsilon: of the agents' randomizers, above 0. count: how many agents there are.

    No record ever reaches this object. A copy is the very same object, pickling raises, and so does
    a test in a forked child.

    Guarantee: that of the agents' own randomizers, which this side cannot check: pure epsilon-DP
        for each agent if they are binary randomized response with this epsilon.
    Raises: ParameterError.
    Cost: none until asked.
    Source: Warner 1965; Kohen and Sheffet 2022, Section 3.
    """

    def __init__(self, ask: Callable[[str, int], ArrayLike], *, epsilon: float, count: int):
        if not callable(ask):
            refuse("ask", ask, "it must be callable")
        super().__init__(nonnegative_int("count", count), epsilon)
        self._ask = ask

    def test(self, learned: Testable, count: int, *, random_state: RandomState = None) -> Bits:
        """Ask the next agents whether a hypothesis is wrong about them.

        learned: anything with .hypothesis, a dict that JSON can carry, such as
            learners.ExponentialResult.
        count: how many to ask, at least 0; ask is not called for 0. random_state: not used, the
        coins are the agents'. Returns uint8 (count,), what they answered.

        Guarantee: as the class.
        Raises: AgentsExhausted when fewer are left, and ParameterError when the hypothesis is
            nothing for JSON: then nobody is asked. ShapeError and ParameterError when ask returns
            anything but one bit an agent, and whatever ask raises: those agents stay spent.
        Cost: that of ask.
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """
        check_random_state(random_state)
        text = _json(learned.hypothesis)
        self._reserve(count)
        answers = bits("what ask returned", self._ask(text, count) if count else [])
        if answers.shape != (count,):
            rule = f"{count} agents were asked"
            raise ShapeError(f"ask returned shape {answers.shape}, but {rule}")
        return answers

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What protects each agent's answer, if the agents do what they are meant to.

        random_state: not used, the coins are the agents'.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
        """
        record = record_of("local.RemoteAgents", self._epsilon, None)
        return dataclasses.replace(record, rng="the agents' own")

    def __repr__(self) -> str:
        return self._described("")


def mistakes(learned: Testable, X: Any, y: Bits) -> Bits:
    """Where a hypothesis is wrong about records.

    Raises: ShapeError, ParameterError unless it says one number of each.
    """
    return predictions("learned.predict(X)", learned.predict(X), len(y)) ^ y


def _json(hypothesis: Any) -> str:
    try:
        return json.dumps(hypothesis, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        refuse("hypothesis", hypothesis, f"it must be something for JSON ({error})")


def record_of(mechanism: str, epsilon: float, random_state: RandomState) -> PrivacyRecord:
    """The record of agents who each answer by binary randomized response."""
    return PrivacyRecord(
        mechanism=mechanism,
        source=SOURCE,
        neighbors="local",
        epsilon=epsilon,
        noise="binary randomized response",
        rng=rng_of(random_state),
    )


def advantage(epsilon: float) -> float:
    """By how much truth is likelier than a lie: tanh(epsilon / 2), as the coins have it."""
    advantage = (2 * truth_probability(epsilon) - (1 << 64)) / (1 << 64)
    if advantage == 0:
        raise ParameterError(
            f"epsilon = {epsilon}, but so small an epsilon leaves nothing but noise"
        )
    return advantage
