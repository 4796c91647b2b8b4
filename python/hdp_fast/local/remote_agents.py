"""Real agents, reached through a function of the caller."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from .._support.random_state import check_random_state
from .._support.types import Bits, RandomState
from .._support.validate import bits, nonnegative_int, refuse
from ..exceptions import ShapeError
from ..record import PrivacyRecord
from .pool import AgentPool, Hypothesis
from .response import record_of


class RemoteAgents(AgentPool):
    """Real local agents, reached through a function; each is asked once, ever.

    No record ever reaches this object: it sends a hypothesis out and receives randomized bits. A
    copy of the object is the very same object, pickling raises, and so does a test in a forked
    child.

    Args:
        ask: Called with a hypothesis as JSON and a number k >= 1. It asks k agents whom it has
            never asked before whether the hypothesis is wrong about them, and returns their k
            answers 0 and 1, each already randomized by the agent. On an agent's side,
            learners.predictor reads the JSON and randomized_response randomizes the answer.
        epsilon: Privacy parameter of the agents' randomizers, a finite number above 0.
        count: Number of agents, at least 0.

    Raises:
        ParameterError: ask is not callable, epsilon is not finite and above 0 or is so small that
            answers would be nothing but noise, or count is not an integer of at least 0.

    Guarantee:
        Pure epsilon-DP for each agent, if the agents use binary randomized response with this
        epsilon. This side cannot check whether they do.

    Source:
        Warner 1965; Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local
        >>> def ask(hypothesis, k):  # in place of k phones, each with record (1, 0), 1
        ...     labels = learners.predictor(hypothesis)(np.array([[1, 0]] * k))
        ...     return local.randomized_response(labels != 1, epsilon=1.0)
        >>> agents = local.RemoteAgents(ask, epsilon=1.0, count=10_000)
        >>> result = local.learn_by_votes(learners.Stumps(2), agents)
        >>> result.agents, agents.remaining
        (10000, 0)
    """

    def __init__(self, ask: Callable[[str, int], ArrayLike], *, epsilon: float, count: int):
        if not callable(ask):
            refuse("ask", ask, "it must be callable")
        super().__init__(nonnegative_int("count", count), epsilon)
        self._ask = ask

    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents whether a hypothesis is wrong about them.

        Args:
            learned: A hypothesis with an attribute `hypothesis`, a dict that JSON can carry, for
                example a learners.ExponentialResult.
            count: Number of agents to ask, at least 0. For 0, the function `ask` is not called.
            random_state: Not used, because the agents draw their own coins.

        Returns:
            The answers of the agents, uint8 of shape (count,), in which 1 stands for an error.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. Nobody is asked.
            ParameterError: The hypothesis cannot be written as JSON, count or random_state is out
                of range, or the process is a forked child: then nobody is asked. It is also raised
                when `ask` returned entries other than 0 and 1: then these agents stay spent.
            ShapeError: `ask` returned anything but one answer for each agent. These agents stay
                spent.
            Exception: What `ask` itself raises. These agents stay spent.

        Guarantee:
            Pure epsilon-DP for each agent, if the agents use binary randomized response with this
            epsilon.

        Cost:
            The cost of `ask`.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """
        check_random_state(random_state)
        if not hasattr(learned, "hypothesis"):
            refuse("learned", learned, "it must have an attribute hypothesis, to be sent as JSON")
        text = _to_json(learned.hypothesis)
        self._reserve(count)
        answers = bits("what ask returned", self._ask(text, count) if count else [])
        if answers.shape != (count,):
            rule = f"{count} agents were asked"
            raise ShapeError(f"ask returned shape {answers.shape}, but {rule}")
        return answers

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what protects each agent's answer, if the agents randomize as they should.

        Args:
            random_state: Not used, because the agents draw their own coins.

        Returns:
            A PrivacyRecord whose rng is "the agents' own".
        """
        record = record_of("local.RemoteAgents", self._epsilon, None)
        return dataclasses.replace(record, rng="the agents' own")

    def __repr__(self) -> str:
        return self._describe("")


def _to_json(hypothesis: Any) -> str:
    try:
        return json.dumps(hypothesis, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        refuse("hypothesis", hypothesis, f"it must be something for JSON ({error})")
