"""Fits of a private search: their records, what each costs, and all checks before a charge."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.validate import refuse
from ..accounting.calibration import find_largest
from ..budget.account import Budget, Reservation
from ..exceptions import BudgetExceeded, ParameterError, ShapeError
from ..record import PrivacyRecord
from .toolkit import clone, get_config, has_fit_parameter, select_rows

_LEAST = 1e-300
_RULE = "it must be an estimator of hdp_fast.sklearn, or a pipeline that ends in one"


class FitPrice(NamedTuple):
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
    fit: FitPrice
    choice: float
    score: float
    refit: FitPrice | None

    def total(self, delta: float) -> float:
        """The epsilon of all together at this delta, by the composition that made the plan.

        Where the last fit and the candidates need more than this delta, it is infinite.
        """
        last = self.refit or FitPrice(0.0, 0.0)
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
    last = FitPrice(_half(epsilon), _half(delta)) if refit else None
    rest = FitPrice(_half(epsilon), _half(delta)) if refit else FitPrice(epsilon, delta)
    failing = _half(rest.delta) / candidates

    def is_enough(epsilon_of_fit: float) -> bool:
        bound = accounting.optimal_composition(
            epsilon_of_fit, failing, candidates, target_delta=_down(rest.delta)
        )
        return bound <= _down(rest.epsilon)

    largest = find_largest(rest.epsilon / candidates, is_enough)
    half = _half(rest.epsilon) if charged else 0.0
    return SearchPlan(candidates, FitPrice(_down(largest), failing), half, half, last)


def _half(value: float) -> float:
    """Half of a value, rounded down: two of them are no more than the decimal of the whole."""
    return _down(value / 2)


def _down(value: float) -> float:
    return math.nextafter(value, 0.0)


@dataclass(frozen=True, eq=False)
class SearchRecords:
    """Records with labels, in any container that has places.

    Attributes:
        X: The records.
        y: Their labels or targets, a vector.
        domain: Whose rows they are, as sample_domain has it; None where all are of one population.
    """

    X: Any
    y: NDArray[Any]
    domain: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[np.intp]) -> SearchRecords:
        """The records in these places."""
        domain = None if self.domain is None else self.domain[rows]
        return SearchRecords(select_rows(self.X, rows), self.y[rows], domain)

    def split(
        self, share: float, allowed: NDArray[np.bool_], generator: np.random.Generator
    ) -> tuple[SearchRecords, SearchRecords]:
        """Records to learn from, and about this share of some, which are held out.

        Coins decide before any value is seen. So each record is in one of the parts, whatever its
        values are, and replacing it changes that part alone.

        allowed: which records may be held out, from public facts alone.
        """
        places = np.flatnonzero(allowed)
        if len(places) < 2:
            rule = "a search needs one to hold out and one more"
            raise ShapeError(f"X has {len(places)} sample(s) to choose by, but {rule}")
        count = min(max(round(share * len(places)), 1), len(places) - 1)
        held = np.zeros(len(self), bool)
        held[generator.permutation(places)[:count]] = True
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))


def takes(estimator: Any, name: str) -> bool:
    """Whether fit of an estimator, or of the last step of a pipeline, has this parameter."""
    while steps := getattr(estimator, "steps", None):
        estimator = steps[-1][1]
    return hasattr(estimator, "fit") and has_fit_parameter(estimator, name)


def path_to_last(estimator: Any) -> str:
    """What stands before the parameters of the private estimator, which must be the last step.

    Raises: ParameterError if there is no private estimator there, or another one before it.
    """
    prefix, last = "", estimator
    while steps := getattr(last, "steps", None):
        prefix, last = f"{prefix}{steps[-1][0]}__", steps[-1][1]
    if not takes(last, "budget"):
        refuse("estimator", estimator, f"its fit takes no budget: {_RULE}")
    names = [name for name in estimator.get_params() if name.rpartition("__")[2] == "epsilon"]
    if names != [f"{prefix}epsilon"]:
        rule = "one epsilon must be there, that of the last step"
        raise ParameterError(f"estimator has {len(names)} parameters named epsilon, but {rule}")
    return prefix


def make_candidate(estimator: Any, params: dict[str, Any], price: FitPrice | None) -> Any:
    """An estimator with these parameters and this price, not yet fit; None is no protection."""
    prefix = path_to_last(estimator)
    candidate = clone(estimator).set_params(**clone(params, safe=False))
    if price is None:
        return candidate.set_params(**{f"{prefix}epsilon": float("inf")})
    prices = {f"{prefix}{name}": value for name, value in price._asdict().items()}
    known = candidate.get_params()
    return candidate.set_params(**{name: prices[name] for name in prices if name in known})


def fit_charged(candidate: Any, records: SearchRecords, budget: Budget | None) -> Any:
    """The candidate, fit at the expense of this budget."""
    prefix = path_to_last(candidate)
    passed = {"budget": budget, "sample_domain": records.domain}
    passed = {name: value for name, value in passed.items() if value is not None}
    if prefix and get_config()["enable_metadata_routing"]:
        last = candidate.get_params()[prefix.removesuffix("__")]
        last.set_fit_request(**dict.fromkeys(passed, True))
        prefix = ""
    named = {f"{prefix}{name}": value for name, value in passed.items()}
    return candidate.fit(records.X, records.y, **named)


class _Rehearsed(Exception):
    """A fit has reached its charge."""


class _Rehearsal(Budget):
    """A budget that keeps what it is asked for, and charges and allows nothing."""

    asked: PrivacyRecord | None = None

    def reserve(self, record: PrivacyRecord) -> Reservation:
        """Keep the record and end the fit."""
        self.asked = record
        raise _Rehearsed


def rehearse_fit(candidate: Any, records: SearchRecords, price: FitPrice) -> PrivacyRecord:
    """What the fit of a candidate would be charged, once all its checks have passed.

    Nothing is drawn, learned or spent.

    Raises: what the fit raises before it is charged, and ParameterError if the candidate does not
    charge all of this price at once.
    """
    budget = _Rehearsal(*price)
    with suppress(_Rehearsed, BudgetExceeded):
        fit_charged(candidate, records, budget)
    asked = budget.asked
    if asked is None or asked.epsilon != price.epsilon or asked.delta > price.delta:
        refuse("estimator", candidate, "its fit must charge all of its epsilon at once")
    if asked.neighbors != "replace_one":
        refuse("estimator", candidate, "its guarantee must be for replace_one")
    return asked
