"""Parameters of estimators, which scikit-learn reads, sets and clones: a dataclass's fields."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from ..exceptions import ParameterError
from .validate import shorten


class Parameters:
    """The base of a dataclass whose parameters can be read by name.

    From them scikit-learn's `clone` makes another object, which has learned nothing.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the estimator by name.

        Args:
            deep: Whether to include the parameters of parameters that have some, such as
                `learner__C`.

        Returns:
            A dict from names to values.
        """
        parameters = {name: getattr(self, name) for name in self._parameter_names()}
        for name, value in list(parameters.items()) if deep else []:
            if hasattr(value, "get_params") and not isinstance(value, type):
                inner = value.get_params(deep=True)
                parameters |= {f"{name}__{key}": part for key, part in inner.items()}
        return parameters

    @classmethod
    def _parameter_names(cls) -> list[str]:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return [field.name for field in fields if field.init]


class SettableParameters(Parameters):
    """The base of a dataclass whose parameters can be changed, and are checked by `fit`."""

    def set_params(self, **parameters: Any) -> Self:
        """Changes some parameters; `fit` checks their values.

        Args:
            parameters: New values by name; a parameter of a parameter is named like `learner__C`.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A name is unknown; then nothing is changed.
        """
        names = self._parameter_names()
        paths = {name: name.partition("__") for name in parameters}
        for name, (outer, _, inner) in paths.items():
            if outer not in names or (inner and not hasattr(getattr(self, outer), "set_params")):
                rule = f"it must be one of {', '.join(names)}"
                raise ParameterError(f"{type(self).__name__} has no {shorten(name)}: {rule}")
        # Whole parameters first: a new learner may come with parameters of its own.
        for name, (outer, _, inner) in sorted(paths.items(), key=lambda path: bool(path[1][1])):
            if inner:
                getattr(self, outer).set_params(**{inner: parameters[name]})
            else:
                setattr(self, outer, parameters[name])
        return self
