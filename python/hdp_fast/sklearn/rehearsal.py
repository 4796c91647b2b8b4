"""Fits up to the moment at which they would be charged: all checks, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from .._support.validate import refuse
from ..budget.account import Budget, Reservation
from ..exceptions import BudgetExceeded
from ..record import PrivacyRecord
from .charged_fits import fit_charged
from .search_plan import Price
from .search_records import Records


class _Rehearsed(Exception):
    """A fit has reached its charge."""


class _Rehearsal(Budget):
    """A budget that keeps what it is asked for, and charges and allows nothing."""

    asked: PrivacyRecord | None = None

    def reserve(self, record: PrivacyRecord) -> Reservation:
        """Keep the record and end the fit."""
        self.asked = record
        raise _Rehearsed


def rehearse_fit(candidate: Any, records: Records, price: Price) -> PrivacyRecord:
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
