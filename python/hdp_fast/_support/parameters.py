"""Parameters of estimators as scikit-learn reads, sets and clones them: a dataclass's fields."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from ..exceptions import ParameterError
from .validate import shorten


class Parameters:
    """The base of a dataclass whose parameters can be read by name.

    scikit-learn's clone makes another one from them, which has learned nothing.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns all parameters by name.

        Args:
            deep: Whether to add the parameters of those parameters that have some, under names like
                learner__C.

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
    """The base of a dataclass whose parameters can be changed, and are checked by fit."""

    def set_params(self, **parameters: Any) -> Self:
        """Changes some parameters; fit validates their values.

        Args:
            parameters: New values by name. The name of a parameter of a parameter is like
                learner__C.

        Returns:
            The object itself.

        Raises:
            ParameterError: A name is unknown; no parameter is changed then.
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
