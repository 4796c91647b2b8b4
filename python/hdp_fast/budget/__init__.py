"""Budgets: one ledger for all that is released about the same records.

A mechanism checks its arguments, reserves its epsilon and delta, runs, and commits. What was
reserved stays spent, whatever happens in between.
"""

from .._support.lazy import list_only
from .account import Budget, Parallel, Reservation, Spending, spend
from .tables import Entry

__all__ = ["Budget", "Entry", "Parallel", "Reservation", "Spending", "spend"]

__dir__ = list_only(__all__)
