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

    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
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
        text = _to_json(learned.hypothesis)
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
        return self._describe("")


def _to_json(hypothesis: Any) -> str:
    try:
        return json.dumps(hypothesis, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        refuse("hypothesis", hypothesis, f"it must be something for JSON ({error})")
