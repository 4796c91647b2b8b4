"""Parameters of estimators as scikit-learn reads and sets them: the fields of their dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from ..exceptions import ParameterError
from .validate import shorten


class Parameters:
    """The base of a dataclass whose parameters can be read by name.

    scikit-learn's clone makes another one from them.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name.

        deep: accepted as scikit-learn gives it; parameters of parameters are not listed.
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    @classmethod
    def _parameter_names(cls) -> list[str]:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return [field.name for field in fields if field.init]


class SettableParameters(Parameters):
    """The base of a dataclass whose parameters can be changed, and are checked by fit."""

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters; fit checks their values.

        Raises: ParameterError for an unknown name, and changes nothing then.
        """
        names = self._parameter_names()
        for name in parameters:
            if name not in names:
                rule = f"it must be one of {', '.join(names)}"
                raise ParameterError(f"{type(self).__name__} has no {shorten(name)}: {rule}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self
