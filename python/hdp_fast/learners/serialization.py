"""What a hypothesis says of records, from its description alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._core import Features
from .._support.types import Bits
from ..exceptions import ShapeError
from .bit_classes import at_least, literals, parity
from .descriptions import Description, parse
from .halfspaces import Halfspaces

Predictor = Callable[[Any], Bits]


def predictor(hypothesis: Description | str) -> Predictor:
    """What a hypothesis says of records, from its description alone: an agent needs no class.

    hypothesis: what Hypotheses.hypothesis describes, or {"kind": "vote", "hypotheses": [...]}, 1
    where more than half of them are; a dict or its JSON. Returns a function of records X (m, d),
    bits or, for halfspaces, numbers, to uint8 (m,).

    Raises: ParameterError; the function ShapeError and ParameterError for other records.
    Cost: that of the description; the function's a pass over X for each hypothesis.
    Source: none.
    """
    return partial(_says, parse(hypothesis))


def _says(said: Description, X: Any) -> Bits:
    predict = _KINDS[said["kind"]]
    return predict(said, X)


def _conjunction(said: Description, X: Any) -> Bits:
    features = _features(said, X)
    lists = literals([said["features"]], [said["values"]], features.shape[1])
    values = lists.predict(0, features)
    return values ^ np.uint8(said["complement"])


def _parity(said: Description, X: Any) -> Bits:
    features = _features(said, X)
    values = parity(said["features"], features.shape[1]).predict(0, features)
    return values ^ np.uint8(said["complement"])


def _at_least(said: Description, X: Any) -> Bits:
    return at_least(said, _features(said, X))


def _halfspace(said: Description, X: Any) -> Bits:
    return Halfspaces(np.array([said["weights"]]), np.array([said["bias"]])).predict(0, X)


def _vote(said: Description, X: Any) -> Bits:
    voters = said["hypotheses"]
    if all(each["kind"] not in ("halfspace", "linear") for each in voters):
        X = Features(X)
    votes = _says(voters[0], X).astype(np.int64)
    for each in voters[1:]:
        votes += _says(each, X)
    return (2 * votes > len(voters)).astype(np.uint8)


def _features(said: Description, X: Any) -> Features:
    """The records packed, if they have all features of the hypothesis."""
    found = Features(X)
    largest = max(said["features"], default=-1)
    if largest >= found.shape[1]:
        raise ShapeError(f"X has shape {found.shape}, but the hypothesis asks feature {largest}")
    return found


_KINDS: dict[str, Callable[[Description, Any], Bits]] = {
    "conjunction": _conjunction,
    "parity": _parity,
    "at_least": _at_least,
    "halfspace": _halfspace,
    "linear": _halfspace,
    "vote": _vote,
}
