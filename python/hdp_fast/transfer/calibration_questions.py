"""The questions of a calibration: which thresholds, how many agents each, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, RandomState
from ..exceptions import AgentsExhausted
from ..local.queries.query import Query
from ..local.response import advantage
from .calibration_fit import Axis, Counts, log_likelihood, sigmoid

# The first questions look for the scores at places that are public: dense near 0, where log-odds
# lie, and far out for scores in other units.
LADDER = (-100.0, -12.0, -6.0, -3.5, -2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0, 3.5, 6.0, 12.0, 100.0)
THRESHOLDS = 8
# Of those who answer for the fit: about scores, about labels, about both.
_ABOUT_SCORES, _ABOUT_LABELS = 0.4, 0.45
# A logistic distribution has but a share of 3e-4 further than 8 scales from its center.
_TAILS = 8.0
# The axis reaches further, since a scale that is found from few answers may be too small.
_REACH = 12.0


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

    def query(self, model: Any, place: int) -> Query:
        """The question as agents answer it."""
        threshold = float(self.thresholds[place])
        if threshold == -np.inf:
            return Query.label()
        above = Query.score_above(model, threshold)
        return Query.label() & above if self.labeled[place] else above

    def ask(self, model: Any, agents: Any, count: int, random_state: RandomState) -> Counts:
        """Ask the next agents, and count the answers that arrive."""
        asked, sizes, ones = self.sizes(count), [], []
        for place, size in enumerate(asked.tolist()):
            query = self.query(model, place)
            answers = _ask(query, agents, size, random_state) if size else np.zeros(0)
            sizes.append(len(answers))
            ones.append(int(answers.sum()))
        return Counts(self.thresholds, self.labeled, np.array(sizes), np.array(ones))


def _ask(query: Query, agents: Any, size: int, random_state: RandomState) -> Any:
    try:
        return agents.ask(query, size, random_state=random_state)
    except AgentsExhausted:
        # Some were lost with a question that was interrupted before any answer came.
        return agents.ask(query, agents.remaining, random_state=random_state)


def first_questions() -> Questions:
    """Questions that find where the scores lie, and roughly how frequent the label is."""
    about_scores = [(rung, False, 0.75 / len(LADDER)) for rung in LADDER]
    return Questions.of([*about_scores, (-np.inf, True, 0.25)])


@dataclass(frozen=True)
class Location:
    """Center and scale of a logistic distribution of scores, and the intercept that fits labels."""

    center: float
    scale: float
    intercept: float

    def axis(self, thresholds: Floats) -> Axis:
        """Cells that reach beyond the tails of the distribution and all thresholds of the fit."""
        low = min(self.center - _REACH * self.scale, thresholds[0] - self.scale)
        high = max(self.center + _REACH * self.scale, thresholds[-1] + self.scale)
        return Axis.around(self.center, self.scale, low, high)

    def thresholds(self) -> Floats:
        """Quantiles of the scores, where both labels weigh the same.

        Where one label is rare, few people decide the map, and most thresholds must lie among them.
        """
        scores = self.center + self.scale * np.linspace(-_TAILS, _TAILS, 2001)
        masses = _logistic_density((scores - self.center) / self.scale)
        rates = sigmoid(scores + self.intercept)
        ones, zeros = masses * rates, masses * (1 - rates)
        shares = np.cumsum(ones / ones.sum() + zeros / zeros.sum()) / 2
        wanted = (np.arange(THRESHOLDS) + 0.5) / THRESHOLDS
        return np.interp(wanted, shares, scores)


def locate(counts: Counts, epsilon: float) -> Location:
    """Fit a logistic distribution to the answers about scores, and an intercept to the others.

    Largest posterior on a grid; center and scale are believed to be those of log-odds, and are
    those without answers.
    """
    edge = advantage(epsilon)
    about = counts.select(~counts.labeled)
    scales = np.geomspace(0.02, 200, 41)[:, None]
    centers = 8 * np.sinh(np.linspace(-4, 4, 81)) / np.sinh(4) * np.maximum(1.0, scales)
    means = sigmoid((centers[..., None] - about.thresholds) / scales[..., None])
    beliefs = -2 * np.log1p((centers / 3) ** 2) - np.log(scales / 1.2) ** 2 / 2
    values = log_likelihood(about, means, edge) + beliefs
    row, column = np.unravel_index(int(np.argmax(values)), values.shape)
    center, scale = float(centers[row, column]), float(scales[row, 0])
    return Location(center, scale, _find_intercept(counts, edge, center, scale))


def _find_intercept(counts: Counts, edge: float, center: float, scale: float) -> float:
    places = np.linspace(-_TAILS, _TAILS, 401)
    masses = _logistic_density(places) / _logistic_density(places).sum()
    about = counts.select(counts.labeled)
    shifts = np.linspace(-6, 6, 121)
    means = sigmoid(center + scale * places + shifts[:, None]) @ masses
    values = log_likelihood(about, means[:, None], edge) - (shifts / 2) ** 2 / 2
    return float(shifts[int(np.argmax(values))])


def main_questions(thresholds: Floats) -> Questions:
    """The questions of the fit: scores at all thresholds, the label, and both at every other."""
    inner = thresholds[1::2] if len(thresholds) > 1 else thresholds
    both = 1 - _ABOUT_SCORES - _ABOUT_LABELS
    rows = [(float(t), False, _ABOUT_SCORES / len(thresholds)) for t in thresholds]
    rows += [(-np.inf, True, _ABOUT_LABELS)]
    rows += [(float(t), True, both / len(inner)) for t in inner]
    return Questions.of(rows)


def _logistic_density(places: Floats) -> Floats:
    return sigmoid(places) * sigmoid(-places)
