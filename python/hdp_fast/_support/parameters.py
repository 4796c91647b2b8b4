"""Fields of dataclasses: rules declared once, and parameters as scikit-learn reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from ..exceptions import ParameterError
from .validate import shorten

# Of the name and the value of an argument: the value as it is kept, or the error of that argument.
Rule = Callable[[str, Any], Any]
Rules = Mapping[str, Rule]


def check_fields(instance: Any) -> dict[str, Any]:
    """What the RULES of an instance make of its fields, by name; the fields stay as they are.

    The fit of an object with SettableParameters calls it: what was set there is kept as it was set.

    Raises: ParameterError where a rule refuses a field.
    """
    values = {name: getattr(instance, name) for name in instance.RULES}
    for name, rule in instance.RULES.items():
        # No call for what is left out: most fields of a large class are.
        if values[name] is not None or not hasattr(rule, "__wrapped__"):
            values[name] = rule(name, values[name])
    return values


def store(instance: object, **values: Any) -> None:
    """Set fields of a frozen instance once they are validated."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


class Checked:
    """The base of a dataclass whose fields have rules, which hold as soon as there is an instance.

    RULES are read here and by tests/test_rules.py, which tries what breaks each of them. A rule
    about several fields at once stands in `__post_init__` of the class, after `super()`.
    """

    RULES: ClassVar[Rules] = {}

    def __post_init__(self) -> None:
        """Check each field that has a rule, and keep what the rule makes of it."""
        store(self, **check_fields(self))


def optional(rule: Rule) -> Rule:
    """The rule for a field that may be None, too."""

    def check(name: str, value: Any) -> Any:
        return None if value is None else rule(name, value)

    check.__wrapped__ = rule  # type: ignore[attr-defined]
    return check


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
    """The base of a dataclass whose parameters can be changed, and are checked by fit.

    RULES are those that its fit passes to check_fields; tests/test_rules.py tries them there.
    """

    RULES: ClassVar[Rules] = {}

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
