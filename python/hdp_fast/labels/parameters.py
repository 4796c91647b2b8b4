"""The parameters that every labeler has, written once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._support.parameters import SettableParameters


@dataclass(kw_only=True, repr=False, eq=False)
class LabelerParameters(SettableParameters):
    """The parameters that every labeler has.

    Attributes:
        learner: The learner of every member.
        epsilon: Privacy parameter of all answers together.
        delta: Privacy parameter of all answers together.
        queries: Number of queries that may be asked.
        max_unstable: Number of the bottom that ends the answers.
        beta: Failure probability of all answers together.
        agreement: Probability that a member is right on a stable query.
        members: Number of members; None takes as many as the plan needs.
        diagnose: Whether faults of members are shown, which protects nothing.
    """

    learner: Any = field(kw_only=False)
    epsilon: float
    delta: float
    queries: int
    max_unstable: int
    beta: float = 0.05
    agreement: float = 0.75
    members: int | None = None
    diagnose: bool = False
