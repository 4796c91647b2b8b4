"""Descriptions of hypotheses: the words that JSON carries, checked in one place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._support.validate import from_json, nonnegative_int, number, refuse
from ..exceptions import ParameterError

Description = dict[str, Any]


def parse(hypothesis: Description | str) -> Description:
    """The description as a dict of plain Python values.

    hypothesis: what Hypotheses.hypothesis returned, a vote of such, or either as JSON.

    Raises: ParameterError for anything else.
    """
    said = _loaded(hypothesis)
    kind = said.get("kind")
    fields = _KINDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        # Not shown: until its kind is known, it may be anything that somebody took for one.
        raise ParameterError(f"kind of a hypothesis must be one of {', '.join(_KINDS)}")
    if said.keys() != {"kind", *fields}:
        refuse("hypothesis", hypothesis, f"its keys must be kind, {', '.join(fields)}")
    found = {"kind": kind, **{name: check(name, said[name]) for name, check in fields.items()}}
    if "values" in found and len(found["values"]) != len(found["features"]):
        refuse("hypothesis", hypothesis, "it must have a value for each of its features")
    return found


def flag(name: str, value: Any) -> bool:
    """The value as a bool.

    Raises: ParameterError unless it is one.
    """
    if not isinstance(value, bool | np.bool_):
        refuse(name, value, "it must be True or False")
    return bool(value)


def _loaded(hypothesis: Any) -> Mapping[str, Any]:
    if isinstance(hypothesis, str):
        return from_json("hypothesis", hypothesis, "Hypotheses.hypothesis or its owner", _loaded)
    if not isinstance(hypothesis, Mapping):
        rule = "it must be a description of a hypothesis, a dict or its JSON"
        raise ParameterError(f"hypothesis is {type(hypothesis).__name__}, but {rule}")
    return hypothesis


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        refuse(name, value, "it must be a list")
    return list(value)


def _features(name: str, value: Any) -> list[int]:
    return [nonnegative_int(name, each) for each in _list(name, value)]


def _values(name: str, value: Any) -> list[int]:
    found = _features(name, value)
    if any(each > 1 for each in found):
        refuse(name, value, "each must be 0 or 1")
    return found


def _real(name: str, value: Any) -> float:
    found = number(name, value)
    if not math.isfinite(found):
        refuse(name, value, "it must be finite")
    return found


def _reals(name: str, value: Any) -> list[float]:
    found = [_real(name, each) for each in _list(name, value)]
    if not found:
        raise ParameterError(f"{name} are none, but there must be one for each feature")
    return found


def _voters(name: str, value: Any) -> list[Description]:
    found = [parse(each) for each in _list(name, value) if not isinstance(each, str)]
    if not found or len(found) < len(value) or any(each["kind"] == "vote" for each in found):
        refuse(name, value, "a vote needs hypotheses, none a vote")
    return found


_KINDS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "conjunction": {"features": _features, "values": _values, "complement": flag},
    "parity": {"features": _features, "complement": flag},
    "at_least": {"threshold": nonnegative_int, "features": _features, "values": _values},
    "halfspace": {"weights": _reals, "bias": _real},
    "linear": {"weights": _reals, "bias": _real},
    "vote": {"hypotheses": _voters},
}
