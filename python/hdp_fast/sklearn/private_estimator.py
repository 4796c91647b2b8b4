"""Charges of fits, and the warning where a search of scikit-learn goes on without one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from inspect import currentframe
from traceback import walk_stack
from weakref import WeakSet

from .._support.notes import note
from ..budget import account
from ..budget.account import Budget
from ..exceptions import BudgetExceeded
from ..record import PrivacyRecord

_SEARCHES = "sklearn.model_selection."
# It lets estimators refuse a charge on purpose, and no fit is missing then.
_REHEARSAL = f"{__package__}.rehearsal"
_noted: WeakSet[Budget] = WeakSet()


class MissingFit:
    """A context that warns of a fit that its budget was too small for, if a search has called.

    With error_score = nan a search of scikit-learn swallows the exception and goes on. So a warning
    comes with the first such exception of a budget.
    """

    def __init__(self, budget: Budget | None, epsilon: float, delta: float):
        """Keep what the fit is to be charged to, and what it spends."""
        self._budget = budget
        self._spent = f"epsilon = {epsilon:g} and delta = {delta:g}"

    def __enter__(self) -> None:
        """Nothing is to be done before the fit."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Warn, and let the exception through."""
        missing = kind is not None and issubclass(kind, BudgetExceeded)
        if missing and self._budget is not None and self._budget not in _noted and _is_searched():
            _noted.add(self._budget)
            note(
                "a fit was not made and its score is missing: the budget has less left than"
                f" {self._spent}; later ones may be missing too, and error_score='raise' stops the"
                " search instead"
            )


def spend(budget: Budget | None, record: PrivacyRecord) -> AbstractContextManager[object]:
    """Reserve what a fit spends, or do nothing where there is no budget; warn of a missing fit.

    Raises the errors of `budget.spend`.
    """
    with MissingFit(budget, record.epsilon, record.delta):
        return account.spend(budget, record)


def _is_searched() -> bool:
    """Whether a search or cross-validation of scikit-learn is what called, and no rehearsal."""
    for frame, _ in walk_stack(currentframe()):
        name = frame.f_globals.get("__name__", "")
        if name == _REHEARSAL:
            return False
        if name.startswith(_SEARCHES):
            return True
    return False
