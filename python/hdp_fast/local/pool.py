"""What all pools of agents have in common: a fixed order, and nobody is asked twice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import ArrayLike

from .._support.callers import predictions
from .._support.types import Bits, RandomState
from .._support.uncopyable import Uncopyable
from .._support.validate import nonnegative_int
from ..exceptions import AgentsExhausted
from ..record import PrivacyRecord
from .response import advantage

# Called with the features and the labels of some agents; returns their true answers.
QuestionFunction = Callable[[Any, Bits], ArrayLike]


class Hypothesis(Protocol):
    """A learned hypothesis: it predicts labels, and may have a description for JSON."""

    @property
    def hypothesis(self) -> dict[str, Any] | None:
        """Its description, a dict that JSON can carry."""

    def predict(self, X: Any, /) -> ArrayLike:
        """The labels that it predicts for records, 0/1 (m,)."""


class AgentPool(Uncopyable, ABC):
    """Agents in a fixed order, each to be asked once, ever. It counts how many have been."""

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
    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
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
        """Mark agents as asked, before their question runs: after a crash they stay spent."""
        wanted = nonnegative_int("count", count)
        with self._hold():
            if wanted > self.remaining:
                raise AgentsExhausted(f"count = {wanted}, but {self.remaining} agents are left")
            start = self._asked
            self._asked += wanted
        return start

    def __len__(self) -> int:
        return self._size

    def _describe(self, details: str) -> str:
        asked = f"{self._asked:,} of {len(self):,} asked"
        return f"{type(self).__name__}({details}epsilon={self._epsilon:g}, {asked})"


def find_mistakes(learned: Hypothesis, X: Any, y: Bits) -> Bits:
    """Where the predictions of a hypothesis differ from the labels y, uint8 (m,).

    Raises: ShapeError, ParameterError unless it predicts one number for each record.
    """
    return predictions("learned.predict(X)", learned.predict(X), len(y)) ^ y
