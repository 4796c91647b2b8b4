"""The parameters that every labeler has, written once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._support.parameters import SettableParameters


@dataclass(kw_only=True, repr=False, eq=False)
class LabelerParameters(SettableParameters):
    """The parameters that every labeler has."""

    learner: Any = field(kw_only=False)
    epsilon: float
    delta: float
    queries: int
    max_unstable: int
    beta: float = 0.05
    agreement: float = 0.75
    members: int | None = None
    diagnose: bool = False
