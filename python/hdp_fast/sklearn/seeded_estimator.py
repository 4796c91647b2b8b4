"""The seed of a private estimator, under a name that no other library sets."""

from __future__ import annotations

from typing import Any, Self

from .._support.random_state import check_random_state
from ..exceptions import ParameterError
from .toolkit import BaseEstimator


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
