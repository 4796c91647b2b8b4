"""How a private search divides its epsilon and delta among fits, choice and score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from .. import accounting
from ..accounting.calibration import find_largest
from ..exceptions import ParameterError

_LEAST = 1e-300


class Price(NamedTuple):
    """Epsilon and delta of one release."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class SearchPlan:
    """The price of each part of a search over a number of candidates.

    A record is either trained on by all candidates or held out, never both. So it pays for the fits
    of the candidates or for the choice and the score, whichever costs more, and for the last fit.

    Attributes:
        candidates: Number of candidates.
        fit: Price of the fit of each candidate.
        choice: Epsilon of the choice; 0 where public records choose.
        score: Epsilon of the score of the chosen candidate; 0 where it is public.
        refit: Price of the last fit, on all records; None without one.
    """

    candidates: int
    fit: Price
    choice: float
    score: float
    refit: Price | None

    def total(self, delta: float) -> float:
        """The epsilon of all together at this delta, by the composition that made the plan.

        Where the last fit and the candidates need more than this delta, it is infinite.
        """
        last = self.refit or Price(0.0, 0.0)
        left = delta - last.delta
        if left <= 0:
            return math.inf
        trained = accounting.optimal_composition(*self.fit, self.candidates, target_delta=left)
        return last.epsilon + max(trained, self.choice + self.score)


def make_plan(
    epsilon: float, delta: float, candidates: int, *, charged: bool, refit: bool
) -> SearchPlan:
    """Divide epsilon and delta in halves: for the last fit, for the choice and the score.

    What the candidates may take is what composes to the rest, by the best bound for equal
    (epsilon, delta) guarantees (Kairouz, Oh and Viswanath 2017).

    charged: whether private records choose.

    Raises: ParameterError if so little cannot be divided among so many candidates.
    """
    if min(epsilon, delta) / candidates < _LEAST:
        text = f"epsilon = {epsilon:g} and delta = {delta:g}"
        raise ParameterError(f"{text}, but each of {candidates} candidates needs a part of them")
    last = Price(_half(epsilon), _half(delta)) if refit else None
    rest = Price(_half(epsilon), _half(delta)) if refit else Price(epsilon, delta)
    failing = _half(rest.delta) / candidates

    def is_enough(epsilon_of_fit: float) -> bool:
        bound = accounting.optimal_composition(
            epsilon_of_fit, failing, candidates, target_delta=_down(rest.delta)
        )
        return bound <= _down(rest.epsilon)

    largest = find_largest(rest.epsilon / candidates, is_enough)
    half = _half(rest.epsilon) if charged else 0.0
    return SearchPlan(candidates, Price(_down(largest), failing), half, half, last)


def _half(value: float) -> float:
    """Half of a value, rounded down: two of them are no more than the decimal of the whole."""
    return _down(value / 2)


def _down(value: float) -> float:
    return math.nextafter(value, 0.0)
