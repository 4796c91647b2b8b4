"""The base class of all pools of agents: a fixed order, in which no one is asked twice."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import forbid_charges, keep_result, note_charge, require_allowed
from .._support.numbers import floats, freeze, predictions, real_array, silence
from .._support.random_state import check_random_state, make_stream
from .._support.types import Bits, RandomState
from .._support.uncopyable import Uncopyable
from .._support.validate import function, nonnegative_int, refuse, sequence
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.scores import predictor, with_bits
from ..record import PrivacyRecord
from .estimation import advantage
from .queries.query import Query
from .stages import Answered, write

R = TypeVar("R")
Questions = Sequence[tuple[Any, int]]

# Called with the features and the labels of some agents; returns their true answers.
QuestionFunction = Callable[[Any, Bits], ArrayLike]


class Hypothesis(Protocol):
    """A learned hypothesis: it predicts labels, and it may have a description for JSON."""

    @property
    def hypothesis(self) -> dict[str, Any] | None:
        """Its description, a dict that JSON can carry, or None."""

    def predict(self, X: Any, /) -> ArrayLike:
        """Predicts the labels 0 and 1 of m records, shape (m,)."""


class AgentPool(Uncopyable, ABC):
    """Agents in a fixed order, each of whom is asked once, ever; the pool counts them."""

    _copied = "ask the same people again"
    _instead = "ask in that process, or make there agents of other people for each child"

    def __init__(self, size: int, epsilon: float):
        super().__init__()
        advantage(epsilon)
        self._size, self._epsilon = size, float(epsilon)
        self._asked = 0

    @property
    def epsilon(self) -> float:
        """The privacy parameter of every answer."""
        return self._epsilon

    @property
    def remaining(self) -> int:
        """The number of agents that have not been asked yet."""
        script = self._script
        if script is not None and script.left is not None:
            return script.left.remaining
        return self._size - self._asked

    @property
    def available(self) -> int:
        """The number of agents whose answers can still be had: here those who remain."""
        return self.remaining

    @property
    def response_rate(self) -> float:
        """The share of those asked who are expected to answer; simulated agents all do."""
        return 1.0

    @abstractmethod
    def ask(self, question: Any, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents a question whose answer lies in [0, 1].

        Args:
            question: A Query. Simulated agents take any function of X and y as well, and
                RemoteAgents only a query that JSON can carry.
            count: Number of agents to ask, at least 0.
            random_state: As for Agents.ask; RemoteAgents do not use it.

        Returns:
            The randomized answers, uint8 of shape (count,). RemoteAgents return those that have
            arrived, which may be fewer, or none.

        Guarantee:
            Pure epsilon-DP for each agent, under the conditions that the subclass states.
        """

    @abstractmethod
    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents whether a hypothesis is wrong about them.

        Args:
            learned: The hypothesis.
            count: Number of agents to ask, at least 0.
            random_state: As for Agents.ask; RemoteAgents do not use it.

        Returns:
            The randomized answers, uint8 of shape (count,), in which 1 stands for an error.
            RemoteAgents return those that have arrived, which may be fewer, or none.

        Guarantee:
            Pure epsilon-DP for each agent, under the conditions that the subclass states.
        """

    def ask_together(
        self, questions: Questions, *, random_state: RandomState = None
    ) -> list[Answered]:
        """Asks the next agents several questions in one round, one of them each.

        Simulated agents answer the questions in their order: each goes to the next `count` agents.

        Args:
            questions: Pairs of what `ask` or `test` takes, and a number of agents.
            random_state: As for Agents.ask; RemoteAgents do not use it.

        Returns:
            For each question how many agents had it, and the answers that arrived.

        Raises:
            AgentsExhausted: Fewer agents are left than the sum of the numbers. No one is asked.
            ParameterError: The questions are no such pairs, or an argument is out of range.
            Exception: What a question itself raises. Agents who were asked stay spent.

        Guarantee:
            Pure epsilon-DP for each agent, under the conditions of `ask` and `test`.
        """

        def ask_each(pairs: list[tuple[Any, int]]) -> list[Answered]:
            self.require(pairs)
            stream = make_stream(random_state)
            return [
                Answered(count, self._ask_one(one, count, stream) if count else no_answers())
                for one, count in pairs
            ]

        return self._answer_script(questions, ask_each)

    def _ask_one(self, question: Any, count: int, random_state: RandomState) -> Bits:
        is_tested = hasattr(question, "predict") and not isinstance(question, Query)
        ask = self.test if is_tested else self.ask
        return ask(question, count, random_state=random_state)

    @keep_result
    def in_one_round(
        self, calls: Sequence[Callable[[], R]], *, random_state: RandomState = None
    ) -> list[R]:
        """Makes several calls, each of which asks these agents once, with one round of questions.

        Each call is begun, to learn what it asks; then all questions go out together; then each is
        made again, with its answers. Whom the questions go to must not depend on answers, so that
        a call that asks in two rounds, as calibrate does, is refused; and so is one that releases
        something of a curator's before it asks, since it would release it twice.

        Args:
            calls: Functions without arguments, such as `lambda: certify(model, agents, count=k)`.
            random_state: As for `ask_together`; that of the calls is not used.

        Returns:
            What the calls return, in their order.

        Raises:
            ParameterError: A call asks otherwise than in one round, not the same when it is made
                again, or releases something before. Nothing is released then.
            AgentsExhausted: Fewer agents are left than all calls ask together. No one is asked.
            Exception: What a call or the agents raise; before anybody is asked, if the call would
                raise it then.

        Guarantee:
            That of each call: an agent answers one question, with one bit.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast import local, transfer
            >>> X = np.random.default_rng(0).integers(0, 2, (20_000, 2))
            >>> agents = local.Agents(X, X[:, 0], epsilon=2.0)
            >>> rule = {"kind": "parity", "features": [0], "complement": False}
            >>> questions = {"has it": local.Query.label()}
            >>> certificate, survey = agents.in_one_round([
            ...     lambda: transfer.certify(rule, agents, count=9_000),
            ...     lambda: transfer.survey(questions, agents, count=9_000),
            ... ])
            >>> certificate.high < 0.1, survey["has it"].low > 0.4
            (True, True)
        """
        check_random_state(random_state)
        with self.keep_answers():
            scripts = [self._begin_call(call) for call in sequence("calls", calls)]
            left = _Left(self.remaining, self.available)
            pairs = [pair for questions, _ in scripts for pair in questions]
            answers = iter(self.ask_together(pairs, random_state=random_state))
            return [
                self._end_call(call, questions, [next(answers) for _ in questions], left, result)
                for call, (questions, result) in zip(calls, scripts, strict=True)
            ]

    def _begin_call(self, call: Callable[[], R]) -> tuple[list[tuple[Any, int]], R | None]:
        """What a call asks; or what it returns, if it asks nothing."""
        script = _Script()
        with self._play(script), forbid_charges(_TWICE):
            try:
                result = function("calls", call)()
            except _Asked as asked:
                return asked.questions, None
            if script.is_read:
                # It went on without answers, and would be taken for one that asks nothing.
                self._refuse_round()
            return [], result

    def _end_call(
        self,
        call: Callable[[], R],
        questions: list[tuple[Any, int]],
        answers: list[Answered],
        left: _Left,
        result: R | None,
    ) -> R:
        if not questions:
            return result  # type: ignore[return-value]
        with self._play(_Script(answers, questions, left)):
            return call()

    @contextmanager
    def _play(self, script: _Script) -> Iterator[None]:
        # Nor one of another pool, in whose second half these agents would be asked at once.
        if _playing.get() is not None:
            raise ParameterError("calls must not contain in_one_round: pass all calls to one")
        token = _playing.set((self, script))
        try:
            yield
        finally:
            _playing.reset(token)

    @property
    def _script(self) -> _Script | None:
        """The script of the round that calls are made for, if one is."""
        playing = _playing.get()
        return None if playing is None or playing[0] is not self else playing[1]

    def _answer_script(
        self, questions: Questions, ask: Callable[[list[tuple[Any, int]]], list[Answered]]
    ) -> list[Answered]:
        """The answers to a stage: from people, or from the round that was asked for the call."""
        pairs, script = read_pairs(questions), self._script
        if script is None:
            return ask(pairs)
        if script.is_read:
            self._refuse_round()
        script.is_read = True
        if script.answers is None:
            raise _Asked(pairs)
        # Answers to other questions would be misread.
        if [*map(_identify, pairs)] != [*map(_identify, script.questions)]:
            self._refuse_round()
        return script.answers

    def _refuse_round(self) -> None:
        """Refuses to ask in the middle of a call of in_one_round."""
        if self._script is not None:
            rule = "it must ask the same questions, once, all together, as certify and survey do"
            raise ParameterError(f"calls: one of them asks in another way, but {rule}")

    def rehearse(self, question: QuestionFunction) -> None:
        """Refuses a question that fails on every record, before anybody is asked.

        Simulated agents run it on made-up records of the dtype of theirs: what it does with real
        ones must not decide whether a call fails. Real agents' devices answer whatever it is.

        Args:
            question: A function as `Agents.ask` takes it.

        Raises:
            Exception: What the question raises about made-up records.
        """

    def recall(self, learned: Hypothesis, count: int) -> Bits:
        """Returns what has arrived of answers that an interrupted `test` was waiting for.

        No one is asked. Simulated agents answer at once, so that there is nothing to wait for.

        Args:
            learned: The hypothesis of that test.
            count: The number of agents of that test.

        Returns:
            The randomized answers, uint8 of shape (m,) with m at most count; empty if no such test
            was interrupted, or nothing has arrived.
        """
        return no_answers()

    def keep_answers(self) -> AbstractContextManager[None]:
        """Keeps the answers to several questions until they are used together.

        Remote agents then survive an error or the end of the process in the middle: the same
        questions in the same order take up those that were asked before. For simulated agents,
        whose answers come at once, it does nothing.

        Returns:
            A context manager, in whose block the questions are asked.
        """
        return nullcontext()

    def require(self, questions: Sequence[tuple[Any, int]]) -> None:
        """Refuses questions to more agents than are left, before anybody is asked one of them.

        RemoteAgents need no new agents for a question that was interrupted.

        Args:
            questions: Pairs of what `ask` or `test` takes, and a number of agents.

        Raises:
            AgentsExhausted: Fewer agents are left.
            ParameterError: questions is no sequence of such pairs.
        """
        self._require_left(sum(count for _, count in read_pairs(questions)))

    def _require_left(self, count: int) -> None:
        if count > self.remaining:
            raise AgentsExhausted(f"count = {count:,}, but {self.remaining:,} agents are left")

    @abstractmethod
    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what protects each agent's answer.

        Args:
            random_state: The random_state that the answers were drawn with.

        Returns:
            A PrivacyRecord with the epsilon of one answer.
        """

    def pass_over(self, count: int) -> None:
        """Counts the next agents as asked without asking them, since an earlier run asked them.

        Args:
            count: Number of agents to pass over, at least 0.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left.
            ParameterError: count is not an integer of at least 0, or the process is a forked child.
        """
        self._reserve(count)

    def _reserve(self, count: int) -> int:
        """Mark agents as asked before their question runs: after a crash they stay spent."""
        wanted = nonnegative_int("count", count)
        self._refuse_round()
        require_allowed()
        with self._hold():
            if wanted > self.remaining:
                raise AgentsExhausted(f"count = {wanted}, but {self.remaining} agents are left")
            start = self._asked
            self._asked += wanted
        if wanted:
            note_charge()
        return start

    def __len__(self) -> int:
        return self._size

    def _describe(self, details: str) -> str:
        asked = f"{self._asked:,} of {len(self):,} asked"
        return f"{type(self).__name__}({details}epsilon={self._epsilon:g}, {asked})"


_TWICE = (
    "calls: one of them releases something before it asks, and would do so twice: do that before "
    "in_one_round"
)


class _Left(NamedTuple):
    """The agents who were left before a round."""

    remaining: int
    available: int


@dataclass
class _Script:
    """What a call of in_one_round gets for its questions; None, if they are to be found out."""

    answers: list[Answered] | None = None
    questions: Sequence[tuple[Any, int]] = ()
    # As many as there were, when a call is made again.
    left: _Left | None = None
    is_read: bool = False


# The pool whose calls are made for one round, and the script of the call.
_playing: ContextVar[tuple[AgentPool, _Script] | None] = ContextVar("playing", default=None)


class _Asked(BaseException):
    """Ends a call that has said what it asks."""

    def __init__(self, questions: list[tuple[Any, int]]):
        super().__init__("in_one_round")
        self.questions = questions


def _identify(pair: tuple[Any, int]) -> tuple[str | None, int]:
    """What tells a question from others: its description, or that it is a function."""
    question, count = pair
    description = getattr(question, "hypothesis", None)
    try:
        return (write(description) if isinstance(description, Mapping) else None), count
    except ParameterError:
        return None, count


def no_answers() -> Bits:
    """The answers where no one was asked, or no one has answered."""
    return np.zeros(0, np.uint8)


def read_pairs(questions: Any) -> list[tuple[Any, int]]:
    """Pairs of a question and a number of agents.

    Raises:
        ParameterError: It is no sequence of them.
    """
    pairs = [tuple(sequence("questions", pair)) for pair in sequence("questions", questions)]
    if any(len(pair) != 2 for pair in pairs):
        refuse("questions", questions, "each must be a pair of a question and a number of agents")
    return [(question, nonnegative_int("questions", count)) for question, count in pairs]


def check_question(question: Any, d: int) -> None:
    """Refuse what simulated agents with d features cannot answer, before anybody is asked.

    Raises:
        ParameterError: The question is not callable.
        ShapeError: It is a Query of other records.
    """
    if not callable(question):
        refuse("question", question, "it must be callable")
    if isinstance(question, Query):
        question.check(d)


def compare_predictions(learned: Hypothesis, X: Any, y: Bits) -> Bits:
    """Where the predictions of a hypothesis differ from the labels y, uint8 (m,).

    Raises:
        ShapeError: The hypothesis does not predict one number for each record.
        Exception: What the hypothesis itself raises.
    """
    if not callable(getattr(learned, "predict", None)):
        refuse("learned", learned, "it must have predict")
    return predictions("learned.predict(X)", learned.predict(X), len(y)) ^ y


def find_mistakes(learned: Hypothesis, X: Any, y: Bits) -> Bits:
    """The same for agents, each of whom answers as its device would, from its own record alone.

    It answers by the description where there is one, and a record without a prediction counts as
    wrong, whatever the hypothesis raises about it.
    """
    query = _read_description(learned) if isinstance(X, np.ndarray) else None
    if query is not None:
        try:
            return _apply_description(learned.hypothesis, X, y)
        except Exception:
            return query(X, y).astype(np.uint8)
    return answer_each(lambda X, y: compare_predictions(learned, X, y), X, y)


def check_description(learned: Hypothesis, d: int) -> None:
    """Refuses a description that does not fit records of d features, before anybody is asked.

    Raises:
        ShapeError: It asks about other features.
    """
    query = _read_description(learned)
    if query is not None:
        query.check(d)


def _apply_description(hypothesis: Any, X: NDArray[Any], y: Bits) -> Bits:
    """The mistakes of all agents at once, as long as none of their records makes it fail."""
    rows = X if X.dtype == np.uint8 else with_bits(floats(real_array("X", X)))
    mistakes: Bits = (predictor(hypothesis)(rows) != y).astype(np.uint8)
    return mistakes


def _read_description(learned: Hypothesis) -> Query | None:
    """The question that devices get; None for a hypothesis that they could not be sent."""
    try:
        described = Query.wrong(learned)
    except ParameterError:
        return None
    return None if described.hypothesis is None else described


def rehearse(question: QuestionFunction, made_up: Sequence[Any]) -> None:
    """Runs a question on made-up records, one at a time, one of which must be answered.

    What fails on every record is so refused before anybody is asked, whatever the records are.

    Raises:
        Exception: What the question raises about the first of them, if it answers none.
    """
    errors = []
    for X in made_up:
        try:
            with silence():
                shown = freeze(X) if isinstance(X, np.ndarray) else X
                question(shown, freeze(np.zeros(1, np.uint8)))
        except Exception as error:
            errors.append(error)
        else:
            return
    if errors:
        raise errors[0]


def answer_each(question: Callable[[Any, Bits], NDArray[Any]], X: Any, y: Bits) -> NDArray[Any]:
    """The answers about records; 1, the worst, about each on which the question fails alone.

    The question is asked about many records at once, as long as it does not fail on any of them: a
    record that it fails on must not decide what becomes of others, or of the call. Such records are
    found by halving: k among m take about 2 k log(m / k) calls.
    """
    try:
        return question(X, y)
    except Exception:
        if len(y) == 1:
            return np.ones(1, np.uint8)
    half = len(y) // 2
    parts = slice(None, half), slice(half, None)
    return np.concatenate([answer_each(question, X[part], y[part]) for part in parts])


def falls_short(answers: int, asked: int, response_rate: float) -> bool:
    """Whether so few have answered that the response rate cannot have been as large as that.

    If those asked answered independently with that rate, the number of answers would be four
    standard deviations below its mean.
    """
    mean = asked * response_rate
    return answers < mean - 4 * math.sqrt(mean * (1 - response_rate))
