"""Finite classes over bits that are enumerated by rank: conjunctions, stumps, halfspaces."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._core import Features
from .._support.parameters import store
from .._support.types import Bits
from .._support.validate import bit_entries, flag, nonnegative_int, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from .descriptions import (
    Description,
    evaluate_at_least,
    list_literals,
    pack_features,
    rank_set,
    unrank_set,
    validate_width,
)
from .hypotheses import Errors, Hypotheses

BitRecords = ArrayLike | BitMatrix | Features

# Their error counts alone would fill eight terabytes.
_MOST_HYPOTHESES = 1 << 40


class BitClass(Hypotheses):
    """Hypotheses over bits: plain ones, then complements of all of these or of the first."""

    @abstractmethod
    def _plain(self) -> int:
        """Return the number of plain hypotheses."""

    @abstractmethod
    def _complements(self) -> int:
        """Return the number of complements, which belong to the first plain hypotheses."""

    @abstractmethod
    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        """Count the errors of the plain hypotheses."""

    def __len__(self) -> int:
        return self._plain() + self._complements()

    def _errors(self, X: BitRecords, y: ArrayLike, threads: int | None) -> Errors:
        features = self._features(X, threads)
        plain = self._plain_errors(features, bit_entries("y", y), threads)
        if not self._complements():
            return plain
        return np.concatenate([plain, len(features) - plain[: self._complements()]])

    def _prepare(self, X: BitRecords) -> Features:
        return self._features(X)

    def _features(self, X: BitRecords, threads: int | None = None) -> Features:
        features = pack_features(X, threads)
        if features.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {features.shape}, but {rule}")
        return features


class ListedClass(BitClass):
    """Hypotheses that are evaluated as lists of features."""

    @abstractmethod
    def _list_of(self, i: int) -> tuple[_core.Lists, int]:
        """Return the lists that hold plain hypothesis i, and its index in them."""

    @abstractmethod
    def _description(self, i: int) -> Description:
        """Describe plain hypothesis i."""

    @abstractmethod
    def _plain_index(self, description: Description) -> int | None:
        """Return the index of the first plain hypothesis that can have this description."""

    def _predict(self, i: int, X: BitRecords) -> Bits:
        complement, place = divmod(i, self._plain())
        lists, place = self._list_of(place)
        return lists.predict(place, self._features(X)) ^ np.uint8(complement)

    def _hypothesis(self, i: int) -> Description:
        complement, place = divmod(i, self._plain())
        return {**self._description(place), "complement": bool(complement)}

    def _place(self, description: Description) -> int | None:
        place = self._plain_index(description)
        return place if place is None else place + description["complement"] * self._plain()


class EnumeratedClass(ListedClass):
    """Conjunctions whose index determines their literals, so that none is stored."""

    _kind = "conjunction"

    def _list_of(self, i: int) -> tuple[_core.Lists, int]:
        description = self._description(i)
        return list_literals([description["features"]], [description["values"]], self.d), 0


class SparseClass(BitClass):
    """All hypotheses of at most `size` literals over different features.

    They are ordered by size, then by their features in colexicographic order (the set with the
    lower largest feature comes first), then by which of the features are negated, then by variant.
    """

    size: int
    _total: int

    @staticmethod
    @abstractmethod
    def _variants(size: int) -> int:
        """Return the number of hypotheses that share the same `size` literals."""

    def _count(self) -> None:
        """Validate d and size, and count the hypotheses."""
        store(self, d=validate_width("d", self.d), size=nonnegative_int("size", self.size))
        if self.size > self.d:
            refuse("size", self.size, f"it must be at most d = {self.d}")
        total = 0
        for size in range(self.size + 1):
            total += self._of_size(size)
            if total > _MOST_HYPOTHESES:
                rule = "more than 2**40 hypotheses cannot be scored"
                raise ParameterError(f"size = {self.size} with d = {self.d}, but {rule}")
        store(self, _total=total)

    def _of_size(self, size: int) -> int:
        return math.comb(self.d, size) * (self._variants(size) << size)

    def _plain(self) -> int:
        return self._total

    def _literals(self, i: int) -> tuple[list[int], list[int], int]:
        """Return the features, the values and the variant of plain hypothesis i."""
        size = 0
        while i >= self._of_size(size):
            i -= self._of_size(size)
            size += 1
        i, variant = divmod(i, self._variants(size))
        values = [1 - (i >> bit & 1) for bit in range(size)]
        return unrank_set(i >> size, size), values, variant

    def _literals_index(self, description: Description) -> int | None:
        """Return the index of the first hypothesis that can have these literals."""
        size = len(description["features"])
        if size > self.size:
            return None
        negated = [1 - value for value in description["values"]]
        signs: int = sum(bit << place for place, bit in enumerate(negated))
        before = sum(self._of_size(smaller) for smaller in range(size))
        return before + (rank_set(description["features"]) << size | signs) * self._variants(size)


@dataclass(frozen=True)
class Conjunctions(SparseClass, EnumeratedClass):
    """All conjunctions of at most `size` literals, a literal being a feature or its negation.

    No feature occurs twice in a conjunction, and the empty conjunction is the constant 1. The
    conjunctions are ordered by size, then by their features in colexicographic order (the set with
    the lower largest feature comes first), then by which of the features are negated.

    Attributes:
        d: Number of features, at least 1 and below `2**32`.
        size: Largest number of literals, from 0 to d. A class of more than `2**40` conjunctions is
            refused.
        complements: Whether the negation of each conjunction is in the class as well, after all
            conjunctions: these are all disjunctions and the constant 0. A class closed under
            complement has a hypothesis of error at most 1/2 on any data, which agnostic learning
            asks for. The complements cost no further pass over the records.

    Raises:
        ParameterError: d or size is out of range, the class is too large, or complements is no
            bool.

    Examples:
        >>> from hdp_fast.learners import Conjunctions
        >>> conjunctions = Conjunctions(64, 2)
        >>> len(conjunctions)
        8193
        >>> conjunctions.hypothesis(8192)
        {'kind': 'conjunction', 'features': [62, 63], 'values': [0, 0], 'complement': False}
        >>> X, y = [[1, 0, 1], [1, 1, 1], [0, 1, 1]], [0, 1, 0]
        >>> int(Conjunctions(3, 2).errors(X, y).min())  # x0 and x1 is always right
        0
    """

    d: int
    size: int
    complements: bool = False
    _total: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Validate the parameters."""
        flag("complements", self.complements)
        self._count()

    @staticmethod
    def _variants(size: int) -> int:
        return 1

    def _complements(self) -> int:
        return self._plain() if self.complements else 0

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.conjunction_errors(features, y, self.size, threads)

    def _description(self, i: int) -> Description:
        features, values, _ = self._literals(i)
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_index(self, description: Description) -> int | None:
        return self._literals_index(description)


@dataclass(frozen=True)
class SparseHalfspaces(SparseClass):
    """All halfspaces over bits whose weights are 1 or -1 on at most `size` features, else 0.

    Such a halfspace is 1 where at least `threshold` of its literals hold, a literal being a feature
    or its negation. The class contains every conjunction and disjunction of at most `size`
    literals, and what lies between. Every halfspace over at most 2 bits is of this form; over 3
    bits and more there are others, with unequal weights. No hypothesis is stored and none occurs
    twice: |H| = 2 + sum of s `2**s` C(d, s) over s from 1 to size. Real features become bits by
    public cut points, with cut.

    Hypothesis 0 is the constant 1 and the last one the constant 0. Those between are ordered by
    size, then by their features in colexicographic order (the set with the lower largest feature
    comes first), then by which of the features are negated, then by threshold. The class is closed
    under complement.

    Attributes:
        d: Number of features, at least 1 and below `2**32`.
        size: Largest number of literals, from 0 to d. A class of more than `2**40` halfspaces is
            refused.

    Raises:
        ParameterError: d or size is out of range, or the class is too large.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import SparseHalfspaces
        >>> X = np.arange(8)[:, None] >> np.arange(3) & 1  # all records of 3 bits
        >>> majority = X.sum(axis=1) >= 2
        >>> halfspaces = SparseHalfspaces(3, 3)
        >>> halfspaces.hypothesis(int(halfspaces.errors(X, majority).argmin()))
        {'kind': 'at_least', 'threshold': 2, 'features': [0, 1, 2], 'values': [1, 1, 1]}
    """

    d: int
    size: int
    _total: int = field(init=False, repr=False, compare=False)
    _kind = "at_least"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        self._count()

    @staticmethod
    def _variants(size: int) -> int:
        return max(size, 1)

    def _complements(self) -> int:
        return 1

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.at_least_errors(features, y, self.size, threads)

    def _predict(self, i: int, X: BitRecords) -> Bits:
        return evaluate_at_least(self._hypothesis(i), self._features(X))

    def _hypothesis(self, i: int) -> Description:
        if i == self._total:
            return {"kind": self._kind, "threshold": 1, "features": [], "values": []}
        features, values, place = self._literals(i)
        threshold = place + min(1, len(features))
        return {"kind": self._kind, "threshold": threshold, "features": features, "values": values}

    def _place(self, description: Description) -> int | None:
        if not description["features"]:
            return self._total if description["threshold"] else 0
        place = self._literals_index(description)
        return place if place is None else place + description["threshold"] - 1


@dataclass(frozen=True)
class Stumps(EnumeratedClass):
    """All single features, their negations and both constants.

    Hypothesis 0 is the constant 1, hypothesis 1 + 2 j is feature j, hypothesis 2 + 2 j its
    negation, and the last one the constant 0.

    Attributes:
        d: Number of features, at least 1 and below `2**32`.

    Raises:
        ParameterError: d is out of range.

    Examples:
        >>> from hdp_fast.learners import Stumps
        >>> stumps = Stumps(10)
        >>> len(stumps)
        22
        >>> stumps.hypothesis(8)  # the negation of feature 3
        {'kind': 'conjunction', 'features': [3], 'values': [0], 'complement': False}
    """

    d: int

    def __post_init__(self) -> None:
        """Validate the parameters."""
        store(self, d=validate_width("d", self.d))

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

    def _plain_index(self, description: Description) -> int | None:
        features: list[int] = description["features"]
        values: list[int] = description["values"]
        return sum(2 * j + 2 - value for j, value in zip(features, values, strict=True))
