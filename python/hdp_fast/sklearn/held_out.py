"""Scores by which a search chooses a candidate: on held-out private records, or on public ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import noise
from .._support.notes import note
from .._support.types import Floats
from .._support.validate import refuse
from .search_fits import SearchPlan, SearchRecords

# What a record scores in a regression is rounded to this share of the most that it can.
_STEPS = 1 << 20
# Larger noise would leave the range of 64 bits.
_LARGEST_SCALE = 1 << 49


@dataclass(frozen=True)
class Choice:
    """A choice among candidates.

    Attributes:
        index: The place of the chosen candidate.
        score: Its score, as released.
        scores: The scores of all candidates; None where they are private.
    """

    index: int
    score: float
    scores: Floats | None


class Judge(Protocol):
    """What chooses among models."""

    def choose(
        self, models: list[Any], plan: SearchPlan | None, stream: np.random.Generator | None
    ) -> Choice:
        """Choose one. A plan of None protects no one."""


@dataclass(frozen=True, eq=False)
class PublicJudge:
    """Chooses by the score of public records, which costs nothing."""

    scorer: Any
    records: SearchRecords

    def choose(
        self, models: list[Any], plan: SearchPlan | None, stream: np.random.Generator | None
    ) -> Choice:
        """Choose the best one, the first where there are several."""
        scores = np.array(
            [float(self.scorer(model, self.records.X, self.records.y)) for model in models]
        )
        if np.isnan(scores).all():
            note("scoring gives no candidate a score on X_public: the first one is chosen")
        index = int(np.where(np.isnan(scores), -math.inf, scores).argmax())
        return Choice(index, float(scores[index]), scores)


@dataclass(frozen=True, eq=False)
class HeldOutJudge:
    """Chooses by the score of held-out private records, which is paid for.

    Attributes:
        records: The held-out records.
        target_bounds: Bounds of the targets; None for a classifier.
    """

    records: SearchRecords
    target_bounds: tuple[float, float] | None

    @property
    def unit(self) -> int:
        """The most that a record adds to a total, and by which it can change it."""
        return _STEPS if self.target_bounds else 1

    def choose(
        self, models: list[Any], plan: SearchPlan | None, stream: np.random.Generator | None
    ) -> Choice:
        """Choose by the totals of the held-out records."""
        totals = [self._add_up(np.asarray(model.predict(self.records.X))) for model in models]
        index, total = choose(totals, self.unit, plan, stream)
        return Choice(index, min(max(total / (self.unit * len(self.records)), 0.0), 1.0), None)

    def check(self, plan: SearchPlan) -> None:
        """Refuse a plan whose noise would not fit into integers of 64 bits."""
        if plan.score * _LARGEST_SCALE < self.unit:
            refuse("epsilon", plan.score, "a score with so little of it would be noise alone")

    def _add_up(self, predicted: NDArray[Any]) -> int:
        if self.target_bounds is None:
            return count_correct(predicted, self.records.y)
        return sum_closeness(predicted, self.records.y, self.target_bounds)


def count_correct(predicted: NDArray[Any], labels: NDArray[Any]) -> int:
    """The number of records that are classified correctly."""
    if {"O", "U"} & {predicted.dtype.kind, labels.dtype.kind}:
        predicted, labels = predicted.astype(str), labels.astype(str)
    return int((predicted == labels).sum())


def sum_closeness(predicted: NDArray[Any], targets: Floats, bounds: tuple[float, float]) -> int:
    """The sum of 1 less the squared error in widths of the bounds, each rounded down to a step."""
    low, high = bounds
    # Halves do not overflow, and half of the smallest interval would be 0.
    gaps = predicted.astype(np.float64).clip(low, high) / 2 - targets.clip(low, high) / 2
    closeness = 1 - (gaps / max(high / 2 - low / 2, math.ulp(0.0))) ** 2
    # What is no number counts as the worst.
    return int((np.nan_to_num(closeness).clip(0.0, 1.0) * _STEPS).astype(np.int64).sum())


def choose(
    totals: list[int],
    unit: int,
    plan: SearchPlan | None,
    stream: np.random.Generator | None,
) -> tuple[int, int]:
    """A candidate with a large total, and its total with noise.

    Pure (plan.choice + plan.score)-DP under replace_one, exact: replacing one held-out record
    changes every total by at most `unit`, the choice is made by permute-and-flip, and discrete
    Laplace noise is added to the total of the chosen candidate alone.

    totals: for each candidate the sum of integers from 0 to `unit`, one for each held-out record.
    """
    if plan is None:
        index = int(np.argmax(totals))
        return index, totals[index]
    heights = np.array(totals, np.int64)
    index = noise.permute_and_flip(
        heights, epsilon=plan.choice, sensitivity=unit, random_state=stream
    )
    scale = Fraction(unit) / noise.exact_epsilon(plan.score)
    return index, totals[index] + noise.discrete_laplace(scale, random_state=stream)
