"""The questions of a calibration: which thresholds, how many agents each, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, RandomState
from ..exceptions import AgentsExhausted
from ..learners.scores import ScoredModel
from ..local.queries.query import Query
from .calibration_fit import Counts

# Public places that are dense near 0, where log-odds lie, and reach far out for other scores.
_RUNGS = (0.7, 1.5, 2.3, 3.2, 4.3, 6.0, 8.5, 12.0, 30.0, 100.0)
LADDER = np.array([*(-rung for rung in reversed(_RUNGS)), 0.0, *_RUNGS])
# The outer rungs find scores that lie there at all, and need few agents for that.
_FAR, _FEWER = 8.5, 0.5
# Of those who answer for the fit: about scores, about labels, about both.
_ABOUT_SCORES, _ABOUT_LABELS = 0.35, 0.35


@dataclass(frozen=True)
class Questions:
    """A list of questions, and the share of the agents of its stage that each gets.

    Attributes:
        thresholds: The question asks whether the score is above it; -inf where it does not ask.
        labeled: Whether the question asks for label 1, too.
        shares: Shares of the agents, which add up to 1.
    """

    thresholds: Floats
    labeled: NDArray[np.bool_]
    shares: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, bool, float]]) -> Questions:
        """Make questions of rows (threshold, labeled, weight)."""
        thresholds, labeled, shares = (np.array(column) for column in zip(*rows, strict=True))
        return cls(thresholds.astype(np.float64), labeled.astype(bool), shares / shares.sum())

    def sizes(self, count: float) -> NDArray[np.int64]:
        """How many of so many agents each question gets."""
        ends = np.rint(np.cumsum(self.shares) * count).astype(np.int64)
        return np.diff(ends, prepend=0)

    def query(self, model: ScoredModel, place: int) -> Query:
        """The question as agents answer it."""
        threshold = float(self.thresholds[place])
        if threshold == -np.inf:
            return Query.label()
        above = Query.score_above(model, threshold)
        return Query.label() & above if self.labeled[place] else above

    def ask(self, model: ScoredModel, agents: Any, count: int, random_state: RandomState) -> Counts:
        """Ask the next agents, and count the answers that arrive."""
        sizes, ones = [], []
        for place, size in enumerate(self.sizes(count).tolist()):
            answers = ask(self.query(model, place), agents, size, random_state)
            sizes.append(len(answers))
            ones.append(int(answers.sum()))
        return Counts(self.thresholds, self.labeled, np.array(sizes), np.array(ones))


def ask(query: Query, agents: Any, size: int, random_state: RandomState) -> NDArray[np.uint8]:
    """Ask so many of the next agents, or those who are left after an interruption."""
    if not size:
        return np.zeros(0, np.uint8)
    try:
        answers: NDArray[np.uint8] = agents.ask(query, size, random_state=random_state)
    except AgentsExhausted:
        # Some were lost with a question that was interrupted before any answer came.
        answers = agents.ask(query, agents.remaining, random_state=random_state)
    return answers


def place_thresholds(inner: Floats | None) -> Floats:
    """The public ladder; where thresholds are passed, they take the place of its inner rungs."""
    if inner is None:
        return LADDER
    return np.concatenate([LADDER[inner[0] > LADDER], inner, LADDER[inner[-1] < LADDER]])


def choose_inner(thresholds: Floats, passed: Floats | None) -> Floats:
    """The thresholds that are asked about with the label, too: every other one of the inner ones.

    They bound the bins of the reliability diagram, and an isotonic map bends there.
    """
    inner = thresholds[np.abs(thresholds) <= _FAR] if passed is None else passed
    return inner[1::2]


def questions_of(thresholds: Floats, inner: Floats) -> Questions:
    """The questions of the fit: scores at all thresholds, the label, and both at the inner ones."""
    weights = np.where(np.abs(thresholds) > _FAR, _FEWER, 1.0)
    weights *= _ABOUT_SCORES / weights.sum()
    both = (1 - _ABOUT_SCORES - _ABOUT_LABELS) / len(inner)
    rows = [(t, False, w) for t, w in zip(thresholds.tolist(), weights.tolist(), strict=True)]
    rows += [(-np.inf, True, _ABOUT_LABELS)]
    rows += [(t, True, both) for t in inner.tolist()]
    return Questions.of(rows)
