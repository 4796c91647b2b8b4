"""Parameters of labelers, written once, as scikit-learn reads, sets and clones them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Self

from .._support.validate import shorten
from ..exceptions import ParameterError


class Parameterized:
    """Parameters are the fields of a dataclass; a clone has the same ones and is not fitted."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name.

        deep: also those of parameters that have some, as learner__C.

        Raises: nothing.
        Cost: constant.
        Source: scikit-learn's estimators.
        """
        parameters = {name: getattr(self, name) for name in self._names()}
        for name, value in list(parameters.items()) if deep else []:
            if hasattr(value, "get_params") and not isinstance(value, type):
                inner = value.get_params(deep=True)
                parameters |= {f"{name}__{key}": part for key, part in inner.items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Change some of them; fit checks the values.

        Raises: ParameterError for a name that is none, and changes nothing then.
        Cost: constant.
        Source: scikit-learn's estimators.
        """
        paths = {name: name.partition("__") for name in parameters}
        for name, (outer, _, _) in paths.items():
            if outer not in self._names():
                rule = f"it must be one of {', '.join(self._names())}"
                raise ParameterError(f"{type(self).__name__} has no {shorten(name)}: {rule}")
        # Whole parameters first: a new learner may come with parameters of its own.
        for name, (outer, _, inner) in sorted(paths.items(), key=lambda path: bool(path[1][1])):
            if inner:
                getattr(self, outer).set_params(**{inner: parameters[name]})
            else:
                setattr(self, outer, parameters[name])
        return self

    @classmethod
    def _names(cls) -> list[str]:
        return [part.name for part in fields(cls) if part.init]  # type: ignore[arg-type]


@dataclass(kw_only=True, repr=False, eq=False)
class LabelerParameters(Parameterized):
    """The parameters that every labeler has."""

    learner: Any = field(kw_only=False)
    epsilon: float
    delta: float
    queries: int
    max_unstable: int
    beta: float = 0.05
    agreement: float = 0.75
    members: int | None = None
    diagnose: bool = False
