"""Agents and an oracle made for learners of MASKED-PARITY."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._support.callers import answers as checked_answers
from ..._support.callers import freeze, losses, silence
from ..._support.random_state import check_random_state, make_key, make_public_generator
from ..._support.types import Bits, RandomState
from ..._support.validate import nonnegative_int, positive, refuse
from ...record import PrivacyRecord
from ..pool import AgentPool, Hypothesis, QuestionFunction, find_mistakes
from ..queries.oracles import Losses
from ..response import record_of
from .concepts import (
    LazyExamples,
    MaskedParity,
    index_and_half,
    masked_parity_domain,
    validate_concept,
    width,
)


class MaskedParityAgents(AgentPool):
    """Simulated agents with uniform examples of one concept, drawn as they are asked.

    No example is stored, and its x is drawn only for a question that reads it: hundreds of
    millions of agents fit any machine. concept: a MaskedParity; size: how many agents; epsilon: of
    each answer, above 0; random_state: of the examples, not of the answers.

    A copy is the very same object, pickling raises, and so does a question in a forked child, so
    that no agent can be asked twice.

    Guarantee: that of Agents, for examples which nobody holds.
    Raises: ParameterError.
    Cost: none until asked.
    Source: Warner 1965; Kasiviswanathan et al. 2011, Section 5.3.
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

        # As for Agents: whoever holds the object has answers, no more.
        def respond(question: QuestionFunction, count: int, random_state: RandomState) -> Bits:
            examples = LazyExamples(concept, count, examples_rng)
            with silence():
                answers = question(examples, examples.labels)
                true = checked_answers("answers", answers, count)
            return _core.randomized_response(true, epsilon, make_key(random_state))

        self._respond = respond

    def ask(
        self, question: QuestionFunction, count: int, *, random_state: RandomState = None
    ) -> Bits:
        """Ask the next agents a question with an answer in [0, 1] and return what they say.

        question: as that of Agents.ask; its X is an array once numpy.asarray has read it. count:
        how many to ask, at least 0; all of them at once. Returns uint8 (count,).

        Guarantee: as Agents.ask.
        Raises: as Agents.ask.
        Cost: some nanoseconds an agent, and d bytes each if the question reads x.
        Source: Warner 1965.
        """
        check_random_state(random_state)
        if not callable(question):
            refuse("question", question, "it must be callable")
        self._reserve(count)
        return self._respond(question, count, random_state)

    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Ask the next agents whether a hypothesis is wrong about them.

        learned: anything with predict(X) -> 0/1 (count,). count: how many to ask, at least 0.
        Returns uint8 (count,), 1 for an error, each answer randomized.

        Guarantee: as ask.
        Raises: as ask.
        Cost: that of predict, and d bytes an agent.
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """

        def find_errors(X: Any, y: Bits) -> Bits:
            return find_mistakes(learned, np.asarray(X), y)

        return self.ask(find_errors, count, random_state=random_state)

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What would protect each agent's answer.

        random_state: the one that the answers were drawn with.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
        """
        return record_of("local.MaskedParityAgents", self._epsilon, random_state)

    def __repr__(self) -> str:
        return self._describe(f"{self.d:,} features, ")


class EvasiveOracle:
    """Statistical queries about uniform examples of a concept, answered without its mask a.

    Every answer is within its tolerance of the truth. The part of the truth that depends on a is
    left out wherever it is smaller than the tolerance: learners in one round, who cannot know r
    when they ask, are left to guess a. concept: a MaskedParity of at most 16 bits.

    Attributes:
        asked: queries answered.
        revealing: answers so far that depend on a.

    Raises: ParameterError.
    Cost: masked_parity_domain.
    Source: Kasiviswanathan et al. 2011, Section 5.3.2, for queries in [0, 1] instead of -1 and 1.
    """

    def __init__(self, concept: MaskedParity):
        self._domain = freeze(masked_parity_domain(validate_concept(concept).d))
        self._signs = 1.0 - 2.0 * concept.predict(self._domain)
        self._half = index_and_half(self._domain, concept.d)[1].astype(bool)
        self.asked = self.revealing = 0

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over uniform examples, to within tau, without a where tau allows that.

        g: called with all examples and labels, once with all labels 0 and once with 1; returns a
        loss in [0, 1] for each, as EmpiricalOracle takes it. tau: tolerance, above 0.

        Raises: ShapeError and ParameterError when g returns anything but one number each.
        Cost: twice that of g over the whole domain.
        Source: Kasiviswanathan et al. 2011, Section 5.3.2.
        """
        positive("tau", tau)
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
