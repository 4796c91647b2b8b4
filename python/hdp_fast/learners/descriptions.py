"""Descriptions of hypotheses as JSON carries them, and the literals that they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._core import Features
from .._support.numbers import finite_reals
from .._support.types import Bits
from .._support.validate import finite_number, flag, from_json, nonnegative_int, read_only, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix, to_bits

Description = dict[str, Any]
# What helps where a model has none.
DESCRIBED = (
    "models of hdp_fast.learners have one (LinearModel and others, but for maps of features that "
    'are functions), and a linear score is {"kind": "linear", "weights": [...], "bias": ...}'
)
_NO_VOTERS = ("vote", "softmax", "calibrated")
# Calibrations of calibrations; no one makes so many.
_DEEPEST = 10


def parse(hypothesis: Description | str) -> Description:
    """Validate a description and return it as a dict of plain Python values.

    Args:
        hypothesis: What Hypotheses.hypothesis, LinearModel.hypothesis, SoftmaxModel.hypothesis,
            PrivateModel.hypothesis or CalibratedModel.hypothesis returns, a vote among such
            descriptions but the last, or either of these as JSON.

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
    if "cuts" in checked and [*map(len, checked["cuts"])] != [*map(len, checked["weights"])]:
        refuse("hypothesis", hypothesis, "there must be a weight for each cut of each feature")
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


def _steps(name: str, value: Any) -> list[list[float]]:
    """Numbers for each feature, of which there is one at least; it may have none."""
    lists = [_shifts(name, entry) for entry in _list(name, value)]
    if not lists:
        raise ParameterError(f"{name} are none, but there must be a list for each feature")
    return lists


def _cuts(name: str, value: Any) -> list[list[float]]:
    lists = _steps(name, value)
    if any(low > high for cuts in lists for low, high in pairwise(cuts)):
        refuse(name, value, "those of a feature must not fall")
    return lists


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
    "additive": {"cuts": _cuts, "weights": _steps, "bias": finite_number},
    "softmax": {"weights": _matrix},
    "vote": {"hypotheses": _voters},
    "calibrated": {"model": _scored, "knots": _knots, "shifts": _shifts},
}


def validate_width(name: str, value: Any) -> int:
    """Return the value as a number of features.

    Raises:
        ParameterError: It does not lie in [1, `2**32`).
    """
    width = nonnegative_int(name, value)
    if not 0 < width < 1 << 32:
        refuse(name, width, "it must be at least 1 and below 2**32")
    return width


def cut(X: ArrayLike, points: Sequence[ArrayLike]) -> Bits:
    """Turns real features into bits that say whether a feature is at least a cut point.

    Args:
        X: Finite real numbers of shape (m, d).
        points: A sequence of d sequences: the cut points of each column of X, none or more, in any
            order. They must be public, never computed from private records.

    Returns:
        A uint8 array of shape (m, k), where k is the number of all points. The bits of a column of
        X stand next to each other, in the order of its points.

    Raises:
        ShapeError: X does not have two dimensions, points does not have d entries, or one of these
            is no vector.
        ParameterError: An entry of X or of points is no finite real number.

    Cost:
        m comparisons for each cut point.

    Examples:
        >>> from hdp_fast.learners import cut
        >>> people = [[34.0, 1.62], [58.0, 1.80]]  # age, height
        >>> cut(people, [[30, 40, 50], [1.70]])
        array([[1, 0, 0, 0],
               [1, 1, 1, 1]], dtype=uint8)
    """
    records = finite_reals("X", X, 2)
    if isinstance(points, str) or not isinstance(points, Sized):
        refuse("points", points, "it must list the cut points of each column")
    if len(points) != records.shape[1]:
        rule = f"X has {records.shape[1]} columns"
        raise ShapeError(f"points has length {len(points)}, but {rule}")
    cuts = [finite_reals(f"points[{j}]", column, 1) for j, column in enumerate(points)]
    values = np.empty((len(records), sum(map(len, cuts))), np.uint8)
    start = 0
    for column, thresholds in zip(records.T, cuts, strict=True):
        stop = start + len(thresholds)
        np.greater_equal.outer(column, thresholds, out=values[:, start:stop])
        start = stop
    return values


def pack_features(X: ArrayLike | BitMatrix | Features, threads: int | None = None) -> Features:
    """Return the records packed by rows and columns, from any container of bits.

    Raises: ShapeError, ParameterError.
    """
    return X if isinstance(X, Features) else Features(to_bits("X", X), threads=threads)


def evaluate_at_least(description: Description, features: Features) -> Bits:
    """Return bits that say where at least `threshold` of the described literals hold."""
    places, values = description["features"], description["values"]
    lists = list_literals([[j] for j in places], [[v] for v in values], features.shape[1])
    count = np.zeros(len(features), np.int64)
    for i in range(len(places)):
        count += lists.predict(i, features)
    return np.greater_equal(count, description["threshold"]).astype(np.uint8)


def list_literals(
    features: Sequence[Sequence[int]], values: Sequence[Sequence[int]], d: int
) -> _core.Lists:
    """Return conjunctions of literals: the i-th is 1 where its features have its values."""
    zeros, ones = required_values(features, values, d)
    return _core.Lists(ones, zeros)


def list_parity(features: Sequence[int], d: int) -> _core.Lists:
    """Return the sum of these features over GF(2)."""
    return _core.Lists(make_mask(features, d), None)


def required_values(
    features: Sequence[Sequence[int]], values: Sequence[Sequence[int]], d: int
) -> Bits:
    """Return masks (2, k, d) of the features that must be 0, and 1, in each of k conjunctions."""
    masks = np.zeros((2, len(features), d), np.uint8)
    for i, (columns, bits) in enumerate(zip(features, values, strict=True)):
        masks[bits, i, columns] = 1
    return masks


def make_mask(features: Sequence[int], d: int) -> Bits:
    """Return the mask (1, d) of some features."""
    mask = np.zeros((1, d), np.uint8)
    mask[0, list(features)] = 1
    return mask


def validate_masks(name: str, value: Any) -> Bits:
    """Return a read-only copy of 0/1 (k, d), k and d at least 1."""
    try:
        packed = value if isinstance(value, BitMatrix) else BitMatrix.from_dense(value)
    except (ShapeError, ParameterError) as error:
        raise type(error)(str(error).replace("X", name, 1)) from None
    if 0 in packed.shape:
        raise ShapeError(f"{name} has shape {packed.shape}, but it must hold a row and a column")
    return read_only(packed.to_dense())


def list_members(mask: Bits) -> list[int]:
    """Return the features of a mask (d,)."""
    return [int(j) for j in np.flatnonzero(mask)]


def rank_set(features: Sequence[int]) -> int:
    """Return the rank C(c_1, 1) + ... + C(c_k, k) of the features c_1 < ... < c_k."""
    return sum(math.comb(feature, k) for k, feature in enumerate(features, 1))


def unrank_set(rank: int, size: int) -> list[int]:
    """Return the features of a rank: the inverse of rank_set."""
    features: list[int] = []
    for k in range(size, 0, -1):
        low, high = k - 1, k
        while math.comb(high, k) <= rank:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if math.comb(middle, k) <= rank else (low, middle)
        rank -= math.comb(low, k)
        features.append(low)
    return features[::-1]
