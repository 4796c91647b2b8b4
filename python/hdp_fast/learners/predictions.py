"""Predictions of the hypotheses that are no map of a score, from their descriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Features
from .._support.numbers import finite_rows
from .._support.types import Bits
from ..exceptions import ShapeError
from .descriptions import Description
from .halfspaces import Halfspaces
from .literals import evaluate_at_least, list_literals, list_parity, pack_features


def predict_labels(description: Description, X: Any) -> Bits:
    """Predicts the labels of records, shape (m, d), by a description that was parsed.

    Raises:
        ShapeError: The records do not have the features of the hypothesis.
        ParameterError: An entry is none that the hypothesis takes.
    """
    predict = _KINDS[description["kind"]]
    return predict(description, X)


def _conjunction(description: Description, X: Any) -> Bits:
    features = _features(description, X)
    lists = list_literals([description["features"]], [description["values"]], features.shape[1])
    values = lists.predict(0, features)
    return values ^ np.uint8(description["complement"])


def _parity(description: Description, X: Any) -> Bits:
    features = _features(description, X)
    values = list_parity(description["features"], features.shape[1]).predict(0, features)
    return values ^ np.uint8(description["complement"])


def _at_least(description: Description, X: Any) -> Bits:
    return evaluate_at_least(description, _features(description, X))


def _halfspace(description: Description, X: Any) -> Bits:
    return Halfspaces(np.array([description["weights"]]), np.array([description["bias"]])).predict(
        0, X
    )


def _softmax(description: Description, X: Any) -> Any:
    """The class of the largest score, for rows that are not shrunk: that is the same class."""
    weights, rows = np.array(description["weights"]), finite_rows(X)
    if rows.shape[1] != weights.shape[1]:
        rule = f"the hypothesis has {weights.shape[1]:,} weights for each class"
        raise ShapeError(f"X has {rows.shape[1]:,} columns, but {rule}")
    # No row overflows where its largest entry is 1.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return (rows / np.where(largest > 0, largest, 1) @ weights.T).argmax(axis=1)


def _vote(description: Description, X: Any) -> Bits:
    voters = description["hypotheses"]
    if all(voter["kind"] not in ("halfspace", "linear") for voter in voters):
        X = pack_features(X)
    votes = predict_labels(voters[0], X).astype(np.int64)
    for voter in voters[1:]:
        votes += predict_labels(voter, X)
    return (2 * votes > len(voters)).astype(np.uint8)


def _features(description: Description, X: Any) -> Features:
    """Pack the records, which must have all features of the hypothesis."""
    features = pack_features(X)
    largest = max(description["features"], default=-1)
    if largest >= features.shape[1]:
        rule = f"the hypothesis asks feature {largest}"
        raise ShapeError(f"X has shape {features.shape}, but {rule}")
    return features


_KINDS: dict[str, Callable[[Description, Any], Bits]] = {
    "conjunction": _conjunction,
    "parity": _parity,
    "at_least": _at_least,
    "halfspace": _halfspace,
    "linear": _halfspace,
    "softmax": _softmax,
    "vote": _vote,
}
