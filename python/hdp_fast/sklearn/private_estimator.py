"""What private estimators share: a seed under a name that no other library sets, and charges."""

from __future__ import annotations

from contextlib import AbstractContextManager
from inspect import currentframe
from traceback import walk_stack
from typing import Any, Self
from weakref import WeakSet

from .._support.notes import note
from .._support.random_state import check_random_state
from ..budget import account
from ..budget.account import Budget
from ..exceptions import BudgetExceeded, ParameterError
from ..record import PrivacyRecord
from .toolkit import BaseEstimator

_SEARCHES = "sklearn.model_selection."
# It lets estimators refuse a charge on purpose, and no fit is missing then.
_REHEARSAL = f"{__package__}.search_fits", "rehearse_fit"


class SeededEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that takes a seed for tests as `test_seed`.

    scikit-learn's ensembles set every parameter whose name is or ends with random_state, of all
    their members: a seed of 31 bits would replace the system's entropy, and be saved beside the
    model.
    """

    test_seed: Any

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Refuse a seed under the usual name, before Python calls it unexpected."""
        _refuse_usual_name(parameters)
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        """Changes parameters, as scikit-learn has it.

        Args:
            params: New values by name. The name of a parameter of a parameter is like
                estimator__bounds.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A seed comes as random_state.
            ValueError: There is no such parameter.
        """
        _refuse_usual_name(params)
        changed: Self = super().set_params(**params)
        return changed

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: without a seed no two fits are alike."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.test_seed is None
        return tags

    def _check_seed(self) -> None:
        check_random_state(self.test_seed, "test_seed")


def _refuse_usual_name(parameters: dict[str, Any]) -> None:
    if "random_state" in parameters:
        raise ParameterError(
            "random_state is there, but a private estimator takes a seed for tests as test_seed:"
            " ensembles of scikit-learn set every random_state, and a saved one would hold the seed"
            " that takes the noise off"
        )


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
        if (name, frame.f_code.co_name) == _REHEARSAL:
            return False
        if name.startswith(_SEARCHES):
            return True
    return False
