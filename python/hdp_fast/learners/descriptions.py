"""Descriptions of hypotheses: dicts that JSON can carry, validated in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from .._support.validate import finite_number, flag, from_json, nonnegative_int, refuse
from ..exceptions import ParameterError

Description = dict[str, Any]
# What helps where a model has none.
DESCRIBED = (
    "models of hdp_fast.learners have one (LinearModel and others, but for maps of features that "
    'are functions), and a linear score is {"kind": "linear", "weights": [...], "bias": ...}'
)
_NO_VOTERS = ("vote", "softmax", "calibrated")
# Calibrations of calibrations; nobody makes so many.
_DEEPEST = 10


def parse(hypothesis: Description | str) -> Description:
    """Validate a description and return it as a dict of plain Python values.

    Args:
        hypothesis: What Hypotheses.hypothesis, LinearModel.hypothesis, SoftmaxModel.hypothesis or
            CalibratedModel.hypothesis returns, a vote among such descriptions but the last, or
            either of these as JSON.

    Raises:
        ParameterError: The argument is anything else.
    """
    content = _load(hypothesis)
    kind = content.get("kind")
    fields = _KINDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        # The text is not shown: before its kind is known, it may be something private.
        raise ParameterError(f"kind of a hypothesis must be one of {', '.join(_KINDS)}")
    if content.keys() != {"kind", *fields}:
        refuse("hypothesis", hypothesis, f"its keys must be kind, {', '.join(fields)}")
    checked = {name: check(name, content[name]) for name, check in fields.items()}
    if "values" in checked and len(checked["values"]) != len(checked["features"]):
        refuse("hypothesis", hypothesis, "it must have a value for each of its features")
    if "knots" in checked:
        check_map(checked["knots"], checked["shifts"])
    return {"kind": kind, **checked}


def check_map(knots: Any, shifts: Any) -> tuple[list[float], list[float]]:
    """Return the increasing knots of a map of scores, and the shift at each, as finite floats.

    Raises:
        ParameterError: They are none.
    """
    places, moves = _knots("knots", knots), _shifts("shifts", shifts)
    if len(places) != len(moves):
        refuse("shifts", shifts, "there must be a shift for each of the knots")
    return places, moves


def _load(hypothesis: Any) -> Mapping[str, Any]:
    if isinstance(hypothesis, str):
        return from_json("hypothesis", hypothesis, "Hypotheses.hypothesis or its owner", _load)
    if not isinstance(hypothesis, Mapping):
        rule = "it must be a description of a hypothesis, a dict or its JSON"
        raise ParameterError(f"hypothesis is {type(hypothesis).__name__}, but {rule}")
    return hypothesis


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        refuse(name, value, "it must be a list")
    return list(value)


def _features(name: str, value: Any) -> list[int]:
    return [nonnegative_int(name, entry) for entry in _list(name, value)]


def _values(name: str, value: Any) -> list[int]:
    values = _features(name, value)
    if any(entry > 1 for entry in values):
        refuse(name, value, "each must be 0 or 1")
    return values


def _knots(name: str, value: Any) -> list[float]:
    knots = _shifts(name, value)
    if any(low >= high for low, high in pairwise(knots)):
        refuse(name, value, "they must increase")
    return knots


def _shifts(name: str, value: Any) -> list[float]:
    return [finite_number(name, entry) for entry in _list(name, value)]


def _scored(name: str, value: Any) -> Description:
    """What scores.score_of reads, which checks more; it may be a map of another model's score."""
    inner, depth = value, 1
    while isinstance(inner, Mapping) and inner.get("kind") == "calibrated":
        inner, depth = inner.get("model"), depth + 1
    if not isinstance(inner, Mapping) or depth > _DEEPEST:
        refuse(name, value, f"it must be the description of a score, at most {_DEEPEST} deep")
    return dict(value)


def _reals(name: str, value: Any) -> list[float]:
    values = [finite_number(name, entry) for entry in _list(name, value)]
    if not values:
        raise ParameterError(f"{name} are none, but there must be one for each feature")
    return values


def _matrix(name: str, value: Any) -> list[list[float]]:
    rows = [_reals(name, entry) for entry in _list(name, value)]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        refuse(name, value, "there must be as many for each of two classes or more")
    return rows


def _voters(name: str, value: Any) -> list[Description]:
    voters = [parse(entry) for entry in _list(name, value) if not isinstance(entry, str)]
    if (
        not voters
        or len(voters) < len(value)
        or any(voter["kind"] in _NO_VOTERS for voter in voters)
    ):
        refuse(name, value, "a vote needs hypotheses of two labels, none a vote or calibrated")
    return voters


_KINDS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "conjunction": {"features": _features, "values": _values, "complement": flag},
    "parity": {"features": _features, "complement": flag},
    "at_least": {"threshold": nonnegative_int, "features": _features, "values": _values},
    "halfspace": {"weights": _reals, "bias": finite_number},
    "linear": {"weights": _reals, "bias": finite_number},
    "softmax": {"weights": _matrix},
    "vote": {"hypotheses": _voters},
    "calibrated": {"model": _scored, "knots": _knots, "shifts": _shifts},
}
