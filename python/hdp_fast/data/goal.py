"""The goal of a release: what a caller asks of it, checked once and passed on."""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from .._support.random_state import check_random_state
from .._support.types import RandomState
from .._support.validate import curator_relation, flag, positive, probability
from ..budget.account import Budget, Neighbors
from .persons import Persons, read_persons


class Goal(NamedTuple):
    """The privacy that a release has, whom it protects, and what it is charged to.

    Whoever takes one relies on its values: `check_goal` has looked at them.

    Attributes:
        epsilon: The epsilon of the release, above 0; infinite where no record is protected.
        delta: Its delta; None for a release that is pure.
        neighbors: Which data sets are neighbors.
        budget: What it is charged to; None charges nothing.
        random_state: The reproducible stream of a test; None for the operating system.
        persons: Who owns the rows.
        confidence: The probability with which an interval holds that comes with the release.
        sampled: Whether there are intervals for the population, too, that records are drawn from.
    """

    epsilon: float
    delta: float | None = None
    neighbors: Neighbors = "replace_one"
    budget: Budget | None = None
    random_state: RandomState = None
    persons: Persons = Persons()
    confidence: float = 0.95
    sampled: bool = False

    @property
    def protects(self) -> bool:
        """Whether any record is protected."""
        return self.epsilon < math.inf

    @property
    def beta(self) -> float:
        """The probability of an interval that misses."""
        return 1 - self.confidence

    @property
    def settled_delta(self) -> float:
        """The delta of a goal that is not pure."""
        assert self.delta is not None
        return self.delta

    @property
    def price(self) -> tuple[float, float]:
        """Epsilon and delta, of a release that is not pure."""
        assert self.delta is not None
        return self.epsilon, self.delta

    def of_people(self, ids: ArrayLike | None, rows_per_person: int, n: int) -> Goal:
        """The same about people, who own the n rows. Raises as read_persons does."""
        return self._replace(persons=read_persons(ids, rows_per_person, n))


def check_goal(
    epsilon: float,
    delta: float | None,
    neighbors: Neighbors,
    budget: Budget | None,
    random_state: RandomState,
    confidence: float = 0.95,
    sampled: bool = False,
) -> Goal:
    """The goal of the arguments of a release that protects its records.

    Raises:
        ParameterError: epsilon, delta, neighbors, random_state, confidence or sampled is out of
            range.
    """
    check_random_state(random_state)
    return Goal(
        positive("epsilon", epsilon),
        None if delta is None else probability("delta", delta),
        curator_relation("neighbors", neighbors),
        budget,
        random_state,
        confidence=probability("confidence", confidence),
        sampled=flag("sampled", sampled),
    )
