"""An audit of a mechanism on its worst neighbors, and of a broken variant of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lengths
from frequencies import FALSE_ALARM

from hdp_fast.audit import lower_bound


@dataclass(frozen=True)
class Audit:
    """A mechanism, what it promises, where that is hardest to keep, and a variant that breaks it.

    Attributes:
        name: shown in the table.
        promised: epsilon.
        mechanism: called with data or neighbor.
        data, neighbor: on which some outcome's probabilities differ most.
        twin: the same with less noise, whose bound must exceed promised.
        broken: what is wrong with the twin.
        tight: the share of promised that the bound reaches, but for five standard deviations.
        delta: at which epsilon is promised.
        runs: on each side; half as many for the twin.
        fewer: by how much both are divided in the short form. What is missing from promised grows
            as the square root of that at most, since it falls with the deviation of frequencies.
        event: found on other runs, where those at hand are too few to be halved; None searches.
    """

    name: str
    promised: float
    mechanism: Callable[[Any], Any]
    data: Any
    neighbor: Any
    twin: Callable[[Any], Any]
    broken: str
    tight: float
    delta: float = 0.0
    runs: int = 40_000
    event: Callable[[Any], bool] | None = None
    fewer: int = 1

    def bound(self, mechanism, runs):
        return lower_bound(
            mechanism, self.data, self.neighbor, delta=self.delta, event=self.event, runs=runs,
            confidence=1 - FALSE_ALARM, threads=1,
        )  # fmt: skip

    def check(self, table):
        """No bound exceeds the promise, and the broken variant is caught."""
        fewer = 1 if lengths.STAT else self.fewer
        bound = self.bound(self.mechanism, self.runs // fewer)
        twin = self.bound(self.twin, self.runs // fewer // 2)
        table.append((self.name, self.promised, bound, twin, self.broken))
        tight = 1 - math.sqrt(fewer) * (1 - self.tight)
        assert tight * self.promised <= bound <= self.promised
        assert twin > self.promised
