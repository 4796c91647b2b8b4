"""Finite classes over bits: conjunctions, stumps, votes of few literals, parities."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._core import Features
from .._support.types import Bits
from .._support.validate import nonnegative_int
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from .descriptions import Description, flag
from .hypotheses import Errors, Hypotheses, first, read_only, reals, store

BitRecords = ArrayLike | BitMatrix | Features

# Their error counts alone would fill eight terabytes.
_MOST_HYPOTHESES = 1 << 40


class _BitClass(Hypotheses):
    """Hypotheses over bits: some plain ones, then complements of all of them or of the first."""

    @abstractmethod
    def _plain(self) -> int:
        """Number of plain hypotheses."""

    @abstractmethod
    def _complements(self) -> int:
        """Number of complements, those of the first plain hypotheses."""

    @abstractmethod
    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        """Errors of the plain hypotheses."""

    def __len__(self) -> int:
        return self._plain() + self._complements()

    def _errors(self, X: BitRecords, y: ArrayLike, threads: int | None) -> Errors:
        features = self._features(X, threads)
        plain = self._plain_errors(features, y, threads)
        if not self._complements():
            return plain
        return np.concatenate([plain, len(features) - plain[: self._complements()]])

    def _prepare(self, X: BitRecords) -> Features:
        return self._features(X)

    def _features(self, X: BitRecords, threads: int | None = None) -> Features:
        features = Features(X, threads=threads)
        if features.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {features.shape}, but {rule}")
        return features


class _Listed(_BitClass):
    """Hypotheses that lists of features evaluate."""

    @abstractmethod
    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        """A list that holds plain hypothesis i, and its place there."""

    @abstractmethod
    def _description(self, i: int) -> Description:
        """Plain hypothesis i."""

    @abstractmethod
    def _plain_place(self, said: Description) -> int | None:
        """The only plain hypothesis, or the first, that can have this description."""

    def _predict(self, i: int, X: BitRecords) -> Bits:
        complement, place = divmod(i, self._plain())
        lists, place = self._listed(place)
        return lists.predict(place, self._features(X)) ^ np.uint8(complement)

    def _hypothesis(self, i: int) -> Description:
        complement, place = divmod(i, self._plain())
        return {**self._description(place), "complement": bool(complement)}

    def _place(self, said: Description) -> int | None:
        place = self._plain_place(said)
        return place if place is None else place + said["complement"] * self._plain()


class _Enumerated(_Listed):
    """Conjunctions that are counted off, none of them stored."""

    _kind = "conjunction"

    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        hypothesis = self._description(i)
        return literals([hypothesis["features"]], [hypothesis["values"]], self.d), 0


class _Given(_Listed):
    """Hypotheses that are stored one by one."""

    _lists: _core.Lists

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return self._lists.errors(features, y, threads)

    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        return self._lists, i


class _Sparse(_BitClass):
    """Hypotheses of at most `size` literals of different features, all of them.

    They come by size, then by their features, those with the lower largest feature first, then by
    which of them are negated, then by what else there is.
    """

    size: int
    _total: int

    @staticmethod
    @abstractmethod
    def _each(size: int) -> int:
        """Number of hypotheses with the same literals, so many of them."""

    def _count(self) -> None:
        """Checks d and size and counts the hypotheses."""
        store(self, d=_positive("d", self.d), size=nonnegative_int("size", self.size))
        if self.size > self.d:
            raise ParameterError(f"size = {self.size}, but it must be at most d = {self.d}")
        total = 0
        for size in range(self.size + 1):
            total += self._of_size(size)
            if total > _MOST_HYPOTHESES:
                rule = "more than 2**40 hypotheses cannot be scored"
                raise ParameterError(f"size = {self.size} with d = {self.d}, but {rule}")
        store(self, _total=total)

    def _of_size(self, size: int) -> int:
        return math.comb(self.d, size) * (self._each(size) << size)

    def _plain(self) -> int:
        return self._total

    def _literals(self, i: int) -> tuple[list[int], list[int], int]:
        """Features and values of plain hypothesis i, and which it is of those with the same."""
        size = 0
        while i >= self._of_size(size):
            i -= self._of_size(size)
            size += 1
        i, place = divmod(i, self._each(size))
        values = [1 - (i >> bit & 1) for bit in range(size)]
        return _set_of_rank(i >> size, size), values, place

    def _literals_place(self, said: Description) -> int | None:
        """The first hypothesis that can have these literals."""
        size = len(said["features"])
        if size > self.size:
            return None
        negated = [1 - value for value in said["values"]]
        signs: int = sum(bit << place for place, bit in enumerate(negated))
        before = sum(self._of_size(smaller) for smaller in range(size))
        return before + (_rank_of_set(said["features"]) << size | signs) * self._each(size)


@dataclass(frozen=True)
class Conjunctions(_Sparse, _Enumerated):
    """All conjunctions of at most `size` literals, a literal being a feature or its negation.

    No feature occurs twice; the empty conjunction is the constant 1. They come by size, then by
    their features, those with the lower largest feature first, then by which of them are negated.

    Attributes:
        d: number of features, at least 1.
        size: literals at most, from 0 to d.
        complements: whether the negation of each is in the class as well (all disjunctions, and the
            constant 0), after all conjunctions: a class closed under complement has a hypothesis
            of error at most 1/2 on any data, as agnostic learning wants it. It costs no pass.
    """

    d: int
    size: int
    complements: bool = False
    _total: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        flag("complements", self.complements)
        self._count()

    @staticmethod
    def _each(size: int) -> int:
        return 1

    def _complements(self) -> int:
        return self._plain() if self.complements else 0

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.conjunction_errors(features, y, self.size, threads)

    def _description(self, i: int) -> Description:
        features, values, _ = self._literals(i)
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Description) -> int | None:
        return self._literals_place(said)


@dataclass(frozen=True)
class SparseHalfspaces(_Sparse):
    """All halfspaces over bits that weigh at most `size` features, each with 1 or -1.

    Such a halfspace is 1 where at least `threshold` of its literals hold, a literal being a feature
    or its negation: every conjunction and disjunction, and what lies between. Up to size 2 there
    are no other halfspaces; from 3 on there are, with unequal weights. None is stored and none
    occurs twice: |H| = 2 + sum of s 2**s C(d, s) over s from 1 to size. Real features become bits
    by public cut points first: cut.

    Description 0 is the constant 1, the last one the constant 0. Between them they come by size,
    then by their features, those with the lower largest feature first, then by which of them are
    negated, then by threshold. The class is closed under complement.

    Attributes:
        d: number of features, at least 1.
        size: literals at most, from 0 to d.
    """

    d: int
    size: int
    _total: int = field(init=False, repr=False, compare=False)
    _kind = "at_least"

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        self._count()

    @staticmethod
    def _each(size: int) -> int:
        return max(size, 1)

    def _complements(self) -> int:
        return 1

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.at_least_errors(features, y, self.size, threads)

    def _predict(self, i: int, X: BitRecords) -> Bits:
        return at_least(self._hypothesis(i), self._features(X))

    def _hypothesis(self, i: int) -> Description:
        if i == self._total:
            return {"kind": self._kind, "threshold": 1, "features": [], "values": []}
        features, values, place = self._literals(i)
        threshold = place + min(1, len(features))
        return {"kind": self._kind, "threshold": threshold, "features": features, "values": values}

    def _place(self, said: Description) -> int | None:
        if not said["features"]:
            return self._total if said["threshold"] else 0
        place = self._literals_place(said)
        return place if place is None else place + said["threshold"] - 1


@dataclass(frozen=True)
class Stumps(_Enumerated):
    """Single features, their negations and both constants.

    Description 0 is the constant 1, 1 + 2 j is feature j, 2 + 2 j its negation, the last the
    constant 0.

    Attributes:
        d: number of features, at least 1.
    """

    d: int

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        store(self, d=_positive("d", self.d))

    def _plain(self) -> int:
        return 2 * self.d + 1

    def _complements(self) -> int:
        return 1

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.conjunction_errors(features, y, 1, threads)

    def _description(self, i: int) -> Description:
        literal = i > 0
        features, values = [(i - 1) // 2] * literal, [i % 2] * literal
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Description) -> int | None:
        features: list[int] = said["features"]
        values: list[int] = said["values"]
        return sum(2 * j + 2 - value for j, value in zip(features, values, strict=True))


@dataclass(frozen=True, eq=False)
class ConjunctionList(_Given):
    """Conjunctions given one by one.

    One that wants the same feature to be 0 and 1 is the constant 0.

    Attributes:
        ones: 0/1 (k, d), which features each wants to be 1; kept as a read-only copy.
        zeros: 0/1 (k, d), which features each wants to be 0; kept as a read-only copy.
    """

    ones: Bits
    zeros: Bits
    _lists: _core.Lists = field(init=False, repr=False)
    _kind = "conjunction"

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        store(self, ones=_masks("ones", self.ones), zeros=_masks("zeros", self.zeros))
        store(self, _lists=_core.Lists(self.ones, self.zeros))

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.ones.shape[1])

    def _plain(self) -> int:
        return len(self.ones)

    def _complements(self) -> int:
        return 0

    def _description(self, i: int) -> Description:
        literals = [(j, 1) for j in _members(self.ones[i])] + [
            (j, 0) for j in _members(self.zeros[i])
        ]
        features, values = [list(part) for part in zip(*sorted(literals), strict=True)] or ([], [])
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Description) -> int | None:
        if max(said["features"], default=0) >= self.d:
            return None
        zeros, ones = _wanted([said["features"]], [said["values"]], self.d)
        return first((self.ones == ones).all(axis=1) & (self.zeros == zeros).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConjunctionList, (self.ones, self.zeros)


@dataclass(frozen=True, eq=False)
class Parities(_Given):
    """Sums of given features over GF(2).

    Attributes:
        masks: 0/1 (k, d), which features each sums, an array or a BitMatrix; kept as a read-only
            array.
        affine: whether each comes with the constant 1 added as well; those are k, ..., 2 k - 1.
    """

    masks: Bits
    affine: bool = False
    _lists: _core.Lists = field(init=False, repr=False)
    _kind = "parity"

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        store(self, masks=_masks("masks", self.masks))
        flag("affine", self.affine)
        store(self, _lists=_core.Lists(self.masks, None))

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.masks.shape[1])

    def _plain(self) -> int:
        return len(self.masks)

    def _complements(self) -> int:
        return self._plain() if self.affine else 0

    def _description(self, i: int) -> Description:
        return {"kind": "parity", "features": _members(self.masks[i])}

    def _plain_place(self, said: Description) -> int | None:
        if max(said["features"], default=0) >= self.d:
            return None
        return first((self.masks == _mask(said["features"], self.d)).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Parities, (self.masks, self.affine)


def _positive(name: str, value: Any) -> int:
    found = nonnegative_int(name, value)
    if not 0 < found < 1 << 32:
        raise ParameterError(f"{name} = {found}, but it must be at least 1 and below 2**32")
    return found


def cut(X: ArrayLike, points: Sequence[ArrayLike]) -> Bits:
    """Real features as bits: whether each is at least each of its cut points.

    X: finite numbers (m, d). points: for each column of X its cut points, none or more, in any
    order; they must be public, never computed from private records. Returns uint8 (m, k), k the
    number of points, column by column of X.

    Raises: ShapeError, ParameterError.
    Cost: m comparisons for each cut point.
    Source: none.
    """
    records = reals("X", X, 2)
    if len(points) != records.shape[1]:
        rule = f"X has {records.shape[1]} columns"
        raise ShapeError(f"points has length {len(points)}, but {rule}")
    cuts = [reals(f"points[{j}]", each, 1) for j, each in enumerate(points)]
    found = np.empty((len(records), sum(map(len, cuts))), np.uint8)
    start = 0
    for column, each in zip(records.T, cuts, strict=True):
        np.greater_equal.outer(column, each, out=found[:, start : start + len(each)])
        start += len(each)
    return found


def at_least(said: Description, features: Features) -> Bits:
    """Where at least `threshold` of the literals of a description hold."""
    chosen, values = said["features"], said["values"]
    lists = literals([[j] for j in chosen], [[v] for v in values], features.shape[1])
    true = np.zeros(len(features), np.int64)
    for place in range(len(chosen)):
        true += lists.predict(place, features)
    return np.greater_equal(true, said["threshold"]).astype(np.uint8)


def literals(
    features: Sequence[Sequence[int]], values: Sequence[Sequence[int]], d: int
) -> _core.Lists:
    """Conjunctions of literals: the i-th wants its features to have its values."""
    zeros, ones = _wanted(features, values, d)
    return _core.Lists(ones, zeros)


def parity(features: Sequence[int], d: int) -> _core.Lists:
    """The sum of these features over GF(2)."""
    return _core.Lists(_mask(features, d), None)


def _wanted(features: Sequence[Sequence[int]], values: Sequence[Sequence[int]], d: int) -> Bits:
    """Which features each conjunction wants to be 0, and which 1, (2, k, d)."""
    found = np.zeros((2, len(features), d), np.uint8)
    for i, (chosen, wanted) in enumerate(zip(features, values, strict=True)):
        found[wanted, i, chosen] = 1
    return found


def _mask(features: Sequence[int], d: int) -> Bits:
    found = np.zeros((1, d), np.uint8)
    found[0, list(features)] = 1
    return found


def _masks(name: str, value: Any) -> Bits:
    """A read-only copy of 0/1 (k, d), k and d at least 1."""
    try:
        packed = value if isinstance(value, BitMatrix) else BitMatrix.from_dense(value)
    except (ShapeError, ParameterError) as error:
        raise type(error)(str(error).replace("X", name, 1)) from None
    if 0 in packed.shape:
        raise ShapeError(f"{name} has shape {packed.shape}, but it must hold a row and a column")
    return read_only(packed.to_dense())


def _members(mask: Bits) -> list[int]:
    return [int(j) for j in np.flatnonzero(mask)]


def _rank_of_set(features: Sequence[int]) -> int:
    return sum(math.comb(feature, k) for k, feature in enumerate(features, 1))


def _set_of_rank(rank: int, size: int) -> list[int]:
    """The features c_1 < ... < c_size with C(c_1, 1) + ... + C(c_size, size) = rank."""
    found: list[int] = []
    for k in range(size, 0, -1):
        low, high = k - 1, k
        while math.comb(high, k) <= rank:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if math.comb(middle, k) <= rank else (low, middle)
        rank -= math.comb(low, k)
        found.append(low)
    return found[::-1]
