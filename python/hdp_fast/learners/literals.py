"""Literals over bits: cuts of real features, lists of literals, and the ranks of feature sets."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._core import Features
from .._support.types import Bits
from .._support.validate import nonnegative_int, read_only, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix, to_bits
from .descriptions import Description
from .hypotheses import reals


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
    records = reals("X", X, 2)
    if isinstance(points, str) or not isinstance(points, Sized):
        refuse("points", points, "it must list the cut points of each column")
    if len(points) != records.shape[1]:
        rule = f"X has {records.shape[1]} columns"
        raise ShapeError(f"points has length {len(points)}, but {rule}")
    cuts = [reals(f"points[{j}]", column, 1) for j, column in enumerate(points)]
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
