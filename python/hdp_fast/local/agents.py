"""Simulated agents: each holds one record and is asked once, ever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.notes import keep_result
from .._support.numbers import answers as checked_answers
from .._support.numbers import finite_rows, freeze, losses, silence
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Bits, RandomState
from .._support.validate import array, bits, positive, probability, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord
from .estimation import advantage, record_of
from .pool import (
    AgentPool,
    Hypothesis,
    QuestionFunction,
    answer_each,
    check_description,
    check_question,
    compare_predictions,
    find_mistakes,
    rehearse,
)
from .randomizers.noisy import GaussianRandomizer


class Agents(AgentPool):
    """Simulated local agents: each holds one record and answers one question, once, ever.

    The agents stand in the order of their rows, and every call asks the next ones. An agent that
    has been asked counts as asked even if the question fails. A copy of the object is the very same
    object, pickling raises, and so does a question in a forked child, so that no agent can be asked
    twice. X is not copied: do not change it while agents are being asked.

    Args:
        X: Features, one row for each agent: an array of shape (N, d), a BitMatrix, or a frame. If
            integers and bool of a frame may be missing, a question sees float64, whether one is
            missing or not.
        y: Labels 0 and 1 of shape (N,), bool, integers or floats.
        epsilon: Privacy parameter of each answer, a finite number above 0.
        delta: Largest delta of an answer that an agent sends, in [0, 1). Answers are pure, but for
            those that `test` is given a randomizer for.

    Raises:
        ShapeError: X has not two dimensions, y has not one, or their lengths differ.
        ParameterError: y holds anything but numbers 0 and 1; delta is out
            of range; epsilon is not finite and above 0, or so small that the answers would be
            nothing but noise.

    Guarantee:
        Each answer is pure epsilon-DP with respect to the agent's record, against everybody, the
        curator included; (epsilon, delta)-DP where `test` is given a randomizer. The random draws
        are exact.

    Source:
        Warner 1965; Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> y = np.arange(10_000) % 10 < 3  # 30 percent say yes
        >>> agents = local.Agents(np.zeros((10_000, 1)), y, epsilon=1.0)
        >>> answers = agents.ask(lambda X, y: y, 10_000)
        >>> estimate = local.estimate_mean(answers, beta=1e-6, epsilon=agents.epsilon)
        >>> bool(abs(estimate.value - 0.3) < 0.1), agents.remaining
        (True, 0)
    """

    def __init__(
        self, X: ArrayLike | BitMatrix, y: ArrayLike, *, epsilon: float, delta: float = 0.0
    ):
        allowed = probability("delta", delta, zero=True)
        records: Any = X if isinstance(X, BitMatrix) else array("X", X)
        labels = bits("y", y)
        if len(records.shape) != 2 or labels.shape != records.shape[:1]:
            shapes = f"X has shape {records.shape} and y {labels.shape}"
            raise ShapeError(f"{shapes}, but they must be (N, d) and (N,)")
        super().__init__(len(labels), epsilon)
        self._d, self._delta = int(records.shape[1]), float(allowed)
        self._made_up = _make_up(records)

        # The records live in these three functions alone: whoever holds the object gets answers.
        def respond(
            question: QuestionFunction,
            part: slice,
            law: float | GaussianRandomizer,
            random_state: RandomState,
        ) -> NDArray[Any]:
            count = part.stop - part.start
            # A copy is needed: the base of a view would be the records of all agents.
            X = records[part]
            features = X if isinstance(X, BitMatrix) else freeze(X.copy())
            with silence():
                answers = question(features, freeze(labels[part].copy()))
                true = checked_answers("answers", answers, count)
            if isinstance(law, GaussianRandomizer):
                _check_randomizer(law, epsilon, allowed)
                return law.sample(true, random_state=random_state)
            return _core.randomized_response(true, min(law, epsilon), make_key(random_state))

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
        """The number of features of an agent."""
        return self._d

    @property
    def delta(self) -> float:
        """The largest delta of an answer that an agent sends."""
        return self._delta

    @keep_result
    def ask(
        self, question: QuestionFunction, count: int, *, random_state: RandomState = None
    ) -> Bits:
        """Asks the next agents a question whose answer lies in [0, 1].

        The question sees the records of these agents and returns their true answers. Each agent
        rounds its answer to a bit, to 1 with the answer as the probability, and sends the bit
        through randomized response. The question runs in silence, because its warnings, prints and
        logs could tell something about a record.

        Args:
            question: A Query, or any function. It is called with the features, of shape (count, d),
                and the labels, of shape (count,), of these agents, neither of which it can change.
                It returns bits or floats in [0, 1] of shape (count,). A number out of range is
                clipped; what is not finite, or no number, counts as 0.
            count: Number of agents to ask, at least 0.
            random_state: None draws the agents' random bits from the operating system. An int or a
                numpy Generator makes a reproducible stream for tests, which protects no one who
                knows it.

        Returns:
            The randomized answers, uint8 of shape (count,).

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: The question is not callable, count or random_state is out of range, or
                the process is a forked child. No one is asked.
            ShapeError: The question is a Query that does not fit d features: then no one is asked.
                Or it returned anything but one answer for each agent, and these agents stay spent.
            Exception: What the question itself raises. These agents stay spent.

        Guarantee:
            Pure epsilon-DP for each agent, if the answer of an agent depends on no record but its
            own.

        Cost:
            The cost of the question, and `O(count d)` for a copy of the records.

        Source:
            Warner 1965.
        """
        return self._ask(question, count, self._epsilon, random_state)

    def _ask(
        self,
        question: QuestionFunction,
        count: int,
        law: float | GaussianRandomizer,
        random_state: RandomState,
    ) -> NDArray[Any]:
        check_random_state(random_state)
        check_question(question, self._d)
        start = self._reserve(count)
        return self._respond(question, slice(start, start + count), law, random_state)

    @keep_result
    def ask_several(
        self,
        questions: Sequence[QuestionFunction],
        count: int,
        *,
        shares: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Bits:
        """Asks each of the next agents several questions in one visit.

        The questions are fixed before anybody answers, and the agent's epsilon is divided among
        them.

        The alternative is to give each question agents of its own. For equal shares and the same
        accuracy, one visit with k questions takes
        `tanh(epsilon / 2)**2 / (k tanh(epsilon / (2 k))**2)` times as many agents as that: k times
        as many where epsilon is small. One visit takes fewer agents only from epsilon = 3.06 on for
        k = 2, from 3.71 on for k = 3, and from 4.25 on for k = 4.

        Args:
            questions: A sequence of k >= 1 questions, each as `ask` takes it.
            count: Number of agents to ask, at least 0.
            shares: Epsilons of the k questions, shape (k,), each above 0, with a sum of at most the
                agents' epsilon. None divides the agents' epsilon equally.
            random_state: As for `ask`.

        Returns:
            The randomized answers, uint8 of shape (k, count), one row for each question. Pass a row
            to estimate_mean together with the epsilon of its question.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: The questions are no sequence of callables, the shares break their rule
                or are so small that answers would be nothing but noise, count or random_state is
                out of range, or the process is a forked child. No one is asked.
            ShapeError: A question returned anything but one answer for each agent. These agents
                stay spent.
            Exception: What a question itself raises. These agents stay spent.

        Guarantee:
            Pure epsilon-DP for each agent, by basic composition of its k answers, if these depend
            on no record but its own.

        Cost:
            The cost of the questions, and `O(k count d)`.

        Source:
            Kasiviswanathan et al. 2011, Definition 5.3.
        """
        rng = make_stream(random_state)
        _check_questions(questions)
        questions = list(questions)
        for question in questions:
            check_question(question, self._d)
        epsilons = split_epsilon(shares, len(questions), self._epsilon)
        for epsilon in epsilons:
            advantage(epsilon)
        start = self._reserve(count)
        part = slice(start, start + count)
        pairs = zip(questions, epsilons, strict=True)
        return np.stack([self._respond(question, part, share, rng) for question, share in pairs])

    @keep_result
    def test(
        self,
        learned: Hypothesis,
        count: int,
        *,
        randomizer: GaussianRandomizer | None = None,
        random_state: RandomState = None,
    ) -> NDArray[Any]:
        """Asks the next agents whether a hypothesis is wrong about them, or for its loss on them.

        A hypothesis with a method `losses` is asked for losses, any other one for predictions. Each
        agent rounds its loss to 1 with the loss as the probability, so that estimate_mean estimates
        the mean loss.

        Args:
            learned: A hypothesis with predict(X), which returns labels of shape (count,), for
                example a learners.ExponentialResult. It may also have losses(X, y), which returns
                floats in [0, 1]. It sees the features, and `losses` also the labels, of these
                agents. A prediction counts as the nearer of the labels 0 and 1, and as 0 where it
                is not finite. A loss is clipped to [0, 1], and counts as 1 where it is not finite.
                Each agent answers from its own record, as a device does: one that the hypothesis
                fails on, whatever it raises, counts as wrong.
            count: Number of agents to ask, at least 0.
            randomizer: None for one randomized bit. Or a GaussianRandomizer of bounds (0, 1), of at
                most the agents' epsilon and delta, which adds noise to the loss instead.
            random_state: As for `ask`.

        Returns:
            The randomized answers, uint8 of shape (count,), in which 1 stands for an error; or the
            reports of the randomizer, int64, of which its `aggregate` estimates the mean loss.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: count, randomizer or random_state is out of range, or the process is a
                forked child. No one is asked.
            ShapeError: predict or losses return anything but one number for a made-up record.
                No one is asked.
            Exception: What the hypothesis itself raises about made-up records, as `rehearse` runs
                it. No one is asked.

        Guarantee:
            Pure epsilon-DP for each agent, if the prediction or loss for an agent depends on no
            record but its own; that of the randomizer where there is one.

        Cost:
            The cost of predict or losses, and `O(count d)` for a copy of the records.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """
        if randomizer is not None:
            _check_randomizer(randomizer, self._epsilon, self._delta)

        def compute_losses(X: Any, y: Bits) -> NDArray[Any]:
            if hasattr(learned, "losses"):
                return losses("learned.losses(X, y)", learned.losses(X, y), len(y))
            return compare_predictions(learned, X, y)

        def find_losses(X: Any, y: Bits) -> NDArray[Any]:
            if hasattr(learned, "losses"):
                return answer_each(compute_losses, X, y)
            return find_mistakes(learned, X, y)

        self.rehearse(compute_losses)
        if not hasattr(learned, "losses"):
            check_description(learned, self._d)
        if randomizer is None:
            return self.ask(find_losses, count, random_state=random_state)
        return self._ask(find_losses, count, randomizer, random_state)

    def rehearse(self, question: QuestionFunction) -> None:
        """Refuses a question that fails on every record, before anybody is asked.

        It is run on made-up records of zeros and of ones, of the dtype of X, one of which it must
        answer; where X holds objects or texts there are none to make up.

        Args:
            question: A function as `ask` takes it.

        Raises:
            Exception: What the question raises about made-up records.
        """
        rehearse(question, self._made_up)

    def require_bits(self) -> None:
        """Refuses features that are not bits, before anybody is asked about them.

        Raises:
            ParameterError: X has entries other than 0 and 1.

        Cost:
            One pass over X; a BitMatrix needs none.
        """
        try:
            self._require_bits()
        except ParameterError as error:
            raise ParameterError(f"agents: {error}") from None

    def require_finite(self) -> None:
        """Refuses features that are not finite real numbers, before anybody is asked about them.

        Raises:
            ParameterError: X has an entry that is NaN, infinite or no number.

        Cost:
            One pass over X; a BitMatrix needs none.
        """
        try:
            self._require_finite()
        except ParameterError as error:
            raise ParameterError(f"agents: {error}") from None

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what protects each agent's answer.

        Args:
            random_state: The random_state that the answers were drawn with.

        Returns:
            A PrivacyRecord with the epsilon of one answer and the source of the random bits.
        """
        return record_of("local.Agents", self._epsilon, random_state)

    def __repr__(self) -> str:
        return self._describe(f"{self.d:,} features, ")


def _make_up(records: Any) -> list[Any]:
    """Made-up records of the kind of these; none where no value is known that they could hold."""
    shape = (1, records.shape[1])
    if isinstance(records, BitMatrix):
        return [BitMatrix.from_dense(np.zeros(shape, np.uint8))]
    if records.dtype.kind not in "buif":
        return []
    return [np.zeros(shape, records.dtype), np.ones(shape, records.dtype)]


def _check_randomizer(randomizer: Any, epsilon: float, delta: float) -> None:
    """Refuses what does not protect the agents as they were promised."""
    if type(randomizer) is not GaussianRandomizer:
        refuse("randomizer", randomizer, "it must be a GaussianRandomizer")
    if randomizer.bounds != (0.0, 1.0):
        refuse("randomizer", randomizer, "losses lie in [0, 1]: its bounds must be (0, 1)")
    if not (randomizer.epsilon <= epsilon and randomizer.delta <= delta):
        rule = f"agents answer with epsilon = {epsilon:g} and delta = {delta:g} at most"
        refuse("randomizer", randomizer, rule)


def _check_questions(questions: Any) -> None:
    """Refuse what is not a sequence of at least one callable."""
    if not isinstance(questions, Sequence) or not questions or not all(map(callable, questions)):
        refuse("questions", questions, "it must be a sequence of at least one callable")


def split_epsilon(shares: Any, count: int, epsilon: float) -> list[float]:
    """Divide the agents' epsilon among the questions of one visit, by shares or equally.

    Sums are taken over the shortest decimals that denote the floats, so that three shares of 0.1
    fit into 0.3.

    Raises:
        ParameterError: The shares are not `count` numbers above 0 whose sum is at most epsilon.
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
    """The shortest decimal that denotes this float, which is also how a ledger reads it."""
    return Fraction(repr(epsilon))
