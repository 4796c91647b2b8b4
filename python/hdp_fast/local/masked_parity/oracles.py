"""Agents and an oracle made for learners of MASKED-PARITY."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._support.notes import keep_result
from ..._support.numbers import answers as checked_answers
from ..._support.numbers import freeze, losses, silence
from ..._support.random_state import check_random_state, make_key, make_public_generator
from ..._support.types import Bits, RandomState
from ..._support.validate import function, nonnegative_int, positive
from ...record import PrivacyRecord
from ..estimation import record_of
from ..pool import (
    AgentPool,
    Hypothesis,
    QuestionFunction,
    check_question,
    compare_predictions,
    find_mistakes,
    rehearse,
)
from ..queries.oracles import Losses
from .concepts import (
    LazyExamples,
    MaskedParity,
    index_and_half,
    masked_parity_domain,
    validate_concept,
    width,
)


class MaskedParityAgents(AgentPool):
    """Simulated agents with uniform examples of one concept, drawn when the agents are asked.

    No example is stored, and the part x of an example is drawn only for a question that reads it.
    Therefore hundreds of millions of agents fit any machine. A copy of the object is the very same
    object, pickling raises, and so does a question in a forked child, so that no agent can be asked
    twice.

    Args:
        concept: The MaskedParity that labels the examples.
        size: Number of agents, at least 0.
        epsilon: Privacy parameter of each answer, a finite number above 0.
        random_state: Source of the examples, not of the answers. None draws from the operating
            system; an int or a numpy Generator makes the examples reproducible.

    Attributes:
        d: Number of features of an agent: the columns of an example.

    Raises:
        ParameterError: concept is not a MaskedParity, or a parameter is out of range.

    Guarantee:
        Each answer is pure epsilon-DP with respect to the agent's example, with exact random draws,
        as for Agents. The examples are simulated and belong to no one.

    Source:
        Warner 1965; Kasiviswanathan et al. 2011, Section 5.3.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> agents = local.MaskedParityAgents(local.MaskedParity([0, 0], 1), 10_000, epsilon=1.0)
        >>> answers = agents.ask(lambda X, y: y, 10_000)  # labels: half are r_i = 0, half are a = 1
        >>> mean = local.estimate_mean(answers, beta=1e-6, epsilon=agents.epsilon).value
        >>> bool(abs(mean - 0.5) < 0.1), agents
        (True, MaskedParityAgents(4 features, epsilon=1, 10,000 of 10,000 asked))
    """

    def __init__(
        self,
        concept: MaskedParity,
        size: int,
        *,
        epsilon: float,
        random_state: RandomState = None,
    ):
        examples_rng = make_public_generator(random_state)
        validate_concept(concept)
        super().__init__(nonnegative_int("size", size), epsilon)
        self.d = width(concept.d)

        # As for Agents: whoever holds the object gets answers.
        def respond(question: QuestionFunction, count: int, random_state: RandomState) -> Bits:
            examples = LazyExamples(concept, count, examples_rng)
            with silence():
                answers = question(examples, examples.labels)
                true = checked_answers("answers", answers, count)
            return _core.randomized_response(true, epsilon, make_key(random_state))

        self._respond = respond

    @keep_result
    def ask(
        self, question: QuestionFunction, count: int, *, random_state: RandomState = None
    ) -> Bits:
        """Asks the next agents a question whose answer lies in [0, 1].

        Args:
            question: As for Agents.ask; its X is an array once numpy.asarray has read it.
            count: Number of agents to ask, at least 0. All of them are asked at once.
            random_state: As for Agents.ask: the source of the agents' random bits.

        Returns:
            The randomized answers, uint8 of shape (count,).

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: The question is not callable, count or random_state is out of range, or
                the process is a forked child. No one is asked.
            ShapeError: The question returned anything but one answer for each agent. These agents
                stay spent.
            Exception: What the question itself raises. These agents stay spent.

        Guarantee:
            Pure epsilon-DP for each agent, if the answer of an agent depends on no example but its
            own.

        Cost:
            Some nanoseconds for each agent, and d bytes for each if the question reads x.

        Source:
            Warner 1965.
        """
        check_random_state(random_state)
        check_question(question, self.d)
        self._reserve(count)
        return self._respond(question, count, random_state)

    @keep_result
    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents whether a hypothesis is wrong about them.

        Args:
            learned: A hypothesis with predict(X), which returns labels of shape (count,).
            count: Number of agents to ask, at least 0.
            random_state: As for `ask`.

        Returns:
            The randomized answers, uint8 of shape (count,), in which 1 stands for an error.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: count or random_state is out of range, or the process is a forked child.
                No one is asked.
            ShapeError: predict returns anything but one label for a made-up example. No one is
                asked.
            Exception: What the hypothesis itself raises about a made-up example. No one is asked.

        Guarantee:
            Pure epsilon-DP for each agent, if the prediction for an agent depends on no example but
            its own.

        Cost:
            The cost of predict, and d bytes for each agent.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """

        def find_errors(X: Any, y: Bits) -> Bits:
            return find_mistakes(learned, np.asarray(X), y)

        self.rehearse(lambda X, y: compare_predictions(learned, X, y))
        return self.ask(find_errors, count, random_state=random_state)

    def rehearse(self, question: QuestionFunction) -> None:
        """Refuses a question that fails on every example, before anybody is asked.

        Args:
            question: A function as `ask` takes it, which is run on a made-up example of zeros.

        Raises:
            Exception: What the question raises about it.
        """
        rehearse(question, [np.zeros((1, self.d), np.uint8)])

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what would protect each agent's answer.

        Args:
            random_state: The random_state that the answers were drawn with.

        Returns:
            A PrivacyRecord with the epsilon of one answer.
        """
        return record_of("local.MaskedParityAgents", self._epsilon, random_state)

    def __repr__(self) -> str:
        return self._describe(f"{self.d:,} features, ")


class EvasiveOracle:
    """Statistical queries about uniform examples of a concept, answered without its mask a.

    Every answer lies within its tolerance of the truth. The part of the truth that depends on a is
    left out wherever it is smaller than the tolerance. A learner in one round cannot know r when it
    asks, and can only guess a.

    Args:
        concept: The MaskedParity, of at most 16 bits.

    Attributes:
        asked: Number of queries answered.
        revealing: Number of answers so far that depend on a.

    Raises:
        ParameterError: concept is not a MaskedParity, or has more than 16 bits.

    Cost:
        The memory of masked_parity_domain, 44 MB for 16 bits, and 9 bytes for each example.

    Source:
        Kasiviswanathan et al. 2011, Section 5.3.2, for queries with values in [0, 1] instead of -1
        and 1.

    Examples:
        >>> from hdp_fast import local
        >>> concept = local.MaskedParity([1, 0, 1, 1], 1)
        >>> oracle = local.EvasiveOracle(concept)
        >>> local.learn_masked_parity_weakly(oracle, 4).queries, oracle.revealing
        (4, 0)
        >>> local.learn_masked_parity(oracle, 4).concept == concept, oracle.revealing
        (True, 1)
    """

    def __init__(self, concept: MaskedParity):
        self._domain = freeze(masked_parity_domain(validate_concept(concept).d))
        self._signs = 1.0 - 2.0 * concept.predict(self._domain)
        self._half = index_and_half(self._domain, concept.d)[1].astype(bool)
        self.asked = self.revealing = 0

    def query(self, g: Losses, tau: float) -> float:
        """Answers with the mean of g over uniform examples, without a where tau allows that.

        Args:
            g: The query, as SQOracle takes it. It is called twice with all examples: once with all
                labels 0 and once with all labels 1.
            tau: Tolerance, above 0.

        Returns:
            The answer, a number within tau of the mean.

        Raises:
            ParameterError: tau is not a finite number above 0.
            ShapeError: g returned anything but one number for each record.

        Cost:
            Twice the cost of g over the whole domain.

        Source:
            Kasiviswanathan et al. 2011, Section 5.3.2.
        """
        positive("tau", tau)
        function("g", g)
        size = len(self._domain)
        zeros, ones = (
            losses("g(X, y)", g(self._domain, freeze(np.full(size, y, np.uint8))), size)
            for y in (0, 1)
        )
        # g is the mean over both labels, plus the sign of the label times half their difference.
        by_label = (zeros - ones) / 2 * self._signs
        known = ((zeros + ones) / 2).mean() + by_label[self._half].sum() / size
        masked = by_label[~self._half].sum() / size
        self.asked += 1
        if abs(masked) < tau:
            return float(known)
        self.revealing += 1
        return float(known + masked)
