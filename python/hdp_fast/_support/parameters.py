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
        """All parameters by name.

        deep: those of parameters that have some, too, as learner__C.
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
        """Change some parameters; fit checks their values.

        parameters: by name, those of a parameter as learner__C.

        Raises: ParameterError for an unknown name, and changes nothing then.
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
