"""Finite classes of hypotheses: errors of all at once, predictions and descriptions by index."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._checks import array, bits, count, shown
from ._core import Features
from ._descriptions import Hypothesis, flag, parse
from .exceptions import ParameterError, ShapeError
from .gf2 import BitMatrix

Bits = NDArray[np.uint8]
Errors = NDArray[np.int64]
Floats = NDArray[np.float64]
BitRecords = ArrayLike | BitMatrix | Features

# Their error counts alone would fill eight terabytes.
_MOST_HYPOTHESES = 1 << 40
# Scores of halfspaces that are in memory at a time: 32 MB.
_SCORES = 1 << 22


class Hypotheses(ABC):
    """A finite class of hypotheses 0, 1, ..., len() - 1, each from records to {0, 1}.

    Iterating gives the descriptions, one at a time. The base of the classes below, not to be made
    itself.

    Attributes:
        numerics: "exact" where the errors are integers counted exactly, else "idealised".
    """

    numerics: ClassVar[Literal["exact", "idealised"]] = "exact"
    _kind: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Hypothesis]:
        return (self.hypothesis(i) for i in range(len(self)))

    def errors(self, X: Any, y: ArrayLike, *, threads: int | None = None) -> Errors:
        """How many records each hypothesis gets wrong.

        X: the records, m rows of what the class takes; y: their labels, 0/1 (m,). threads: as
        hdp_fast.gf2.rank; Halfspaces leave the number to numpy. Returns int64 (len(self),). Not
        private.

        Raises: ShapeError, ParameterError, MemoryError.
        Cost: Conjunctions and Stumps m / 64 word operations for each set of features, whatever the
            signs; lists and Parities m / 64 for each literal; Halfspaces m d operations each. Eight
            bytes a hypothesis and thread, Halfspaces 40 MB more.
        Source: none.
        """
        return self._errors(X, y, threads)

    def predict(self, i: int, X: Any) -> Bits:
        """What hypothesis i says of every record.

        i: from 0 to len(self) - 1; X: as errors. Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._predict(self._index(i), X)

    def hypothesis(self, i: int) -> Hypothesis:
        """What hypothesis i is, in words that JSON can carry.

        i: from 0 to len(self) - 1. "kind": "conjunction" is 1 where all "features" have their
        "values", "parity" the sum of its "features" over GF(2), both reversed if "complement";
        "halfspace" is 1 where "weights" times the record plus "bias" is at least 0.

        Raises: ParameterError.
        Cost: that of the description.
        Source: none.
        """
        return self._hypothesis(self._index(i))

    def index(self, hypothesis: Hypothesis | str) -> int:
        """Which hypothesis a description means: the inverse of hypothesis().

        hypothesis: as hypothesis() describes it, or that as JSON. Returns the first such i.

        Raises: ParameterError for one that the class has not.
        Cost: that of the description, for stored hypotheses a pass over them.
        Source: none.
        """
        said = parse(hypothesis)
        found = self._place(said) if said["kind"] == self._kind else None
        if found is None or found >= len(self) or self._hypothesis(found) != said:
            raise ParameterError(f"hypothesis = {shown(hypothesis)}, but the class has none such")
        return found

    def prepare(self, X: Any) -> Any:
        """The records in the form that errors and predict read fastest.

        X: as errors. Returns Features for classes over bits, float64 (m, d) for Halfspaces.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._prepare(X)

    @abstractmethod
    def _place(self, said: Hypothesis) -> int | None:
        """The only index, or the first, that can have this description, of the class's kind."""

    @abstractmethod
    def _prepare(self, X: Any) -> Any: ...

    @abstractmethod
    def _errors(self, X: Any, y: ArrayLike, threads: int | None) -> Errors: ...

    @abstractmethod
    def _predict(self, i: int, X: Any) -> Bits: ...

    @abstractmethod
    def _hypothesis(self, i: int) -> Hypothesis: ...

    def _index(self, i: int) -> int:
        found = count("i", i)
        if found >= len(self):
            raise ParameterError(f"i = {shown(i)}, but there are {len(self):,} hypotheses")
        return found


@dataclass(frozen=True, eq=False)
class Chosen:
    """A hypothesis of a class, ready to predict.

    Attributes:
        index: of the hypothesis in its class.
        hypothesis: its description, a dict that JSON can carry.
    """

    index: int
    hypothesis: Hypothesis
    _hypotheses: Hypotheses = field(repr=False)

    def predict(self, X: Any) -> Bits:
        """What the chosen hypothesis says of other records.

        X: records as the class takes them. Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._hypotheses.predict(self.index, X)


class _BitClass(Hypotheses):
    """Hypotheses over bits: some plain ones, then complements of all of them or of the first."""

    d: int

    @abstractmethod
    def _plain(self) -> int:
        """Number of plain hypotheses."""

    @abstractmethod
    def _complements(self) -> int:
        """Number of complements, those of the first plain hypotheses."""

    @abstractmethod
    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        """Errors of the plain hypotheses."""

    @abstractmethod
    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        """A list that holds plain hypothesis i, and its place there."""

    @abstractmethod
    def _description(self, i: int) -> Hypothesis:
        """Plain hypothesis i."""

    @abstractmethod
    def _plain_place(self, said: Hypothesis) -> int | None:
        """The only plain hypothesis, or the first, that can have this description."""

    def __len__(self) -> int:
        return self._plain() + self._complements()

    def _errors(self, X: BitRecords, y: ArrayLike, threads: int | None) -> Errors:
        features = self._features(X, threads)
        plain = self._plain_errors(features, y, threads)
        if not self._complements():
            return plain
        return np.concatenate([plain, len(features) - plain[: self._complements()]])

    def _predict(self, i: int, X: BitRecords) -> Bits:
        complement, place = divmod(i, self._plain())
        lists, place = self._listed(place)
        return lists.predict(place, self._features(X)) ^ np.uint8(complement)

    def _hypothesis(self, i: int) -> Hypothesis:
        complement, place = divmod(i, self._plain())
        return {**self._description(place), "complement": bool(complement)}

    def _place(self, said: Hypothesis) -> int | None:
        place = self._plain_place(said)
        return place if place is None else place + said["complement"] * self._plain()

    def _prepare(self, X: BitRecords) -> Features:
        return self._features(X)

    def _features(self, X: BitRecords, threads: int | None = None) -> Features:
        features = Features(X, threads=threads)
        if features.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {features.shape}, but {rule}")
        return features


class _Enumerated(_BitClass):
    """Conjunctions that are counted off, none of them stored."""

    _kind = "conjunction"

    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        hypothesis = self._description(i)
        return literals([hypothesis["features"]], [hypothesis["values"]], self.d), 0


class _Given(_BitClass):
    """Hypotheses that are stored one by one."""

    _lists: _core.Lists

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return self._lists.errors(features, y, threads)

    def _listed(self, i: int) -> tuple[_core.Lists, int]:
        return self._lists, i


@dataclass(frozen=True)
class Conjunctions(_Enumerated):
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
        store(self, d=_positive("d", self.d), size=count("size", self.size))
        if self.size > self.d:
            raise ParameterError(f"size = {self.size}, but it must be at most d = {self.d}")
        flag("complements", self.complements)
        total = 0
        for size in range(self.size + 1):
            total += self._of_size(size)
            if total > _MOST_HYPOTHESES:
                rule = "more than 2**40 hypotheses cannot be scored"
                raise ParameterError(f"size = {self.size} with d = {self.d}, but {rule}")
        store(self, _total=total)

    def _of_size(self, size: int) -> int:
        return math.comb(self.d, size) << size

    def _plain(self) -> int:
        return self._total

    def _complements(self) -> int:
        return self._plain() if self.complements else 0

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return _core.conjunction_errors(features, y, self.size, threads)

    def _description(self, i: int) -> Hypothesis:
        size = 0
        while i >= self._of_size(size):
            i -= self._of_size(size)
            size += 1
        features = _set_of_rank(i >> size, size)
        values = [1 - (i >> place & 1) for place in range(size)]
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Hypothesis) -> int | None:
        size = len(said["features"])
        if size > self.size:
            return None
        negated = [1 - value for value in said["values"]]
        signs: int = sum(bit << place for place, bit in enumerate(negated))
        before = sum(self._of_size(smaller) for smaller in range(size))
        return before + (_rank_of_set(said["features"]) << size) + signs


@dataclass(frozen=True)
class Stumps(_Enumerated):
    """Single features, their negations and both constants.

    Hypothesis 0 is the constant 1, 1 + 2 j is feature j, 2 + 2 j its negation, the last the
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

    def _description(self, i: int) -> Hypothesis:
        literal = i > 0
        features, values = [(i - 1) // 2] * literal, [i % 2] * literal
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Hypothesis) -> int | None:
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

    def _description(self, i: int) -> Hypothesis:
        literals = [(j, 1) for j in _members(self.ones[i])] + [
            (j, 0) for j in _members(self.zeros[i])
        ]
        features, values = [list(part) for part in zip(*sorted(literals), strict=True)] or ([], [])
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_place(self, said: Hypothesis) -> int | None:
        if max(said["features"], default=0) >= self.d:
            return None
        zeros, ones = _wanted([said["features"]], [said["values"]], self.d)
        return _first((self.ones == ones).all(axis=1) & (self.zeros == zeros).all(axis=1))

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

    def _description(self, i: int) -> Hypothesis:
        return {"kind": "parity", "features": _members(self.masks[i])}

    def _plain_place(self, said: Hypothesis) -> int | None:
        if max(said["features"], default=0) >= self.d:
            return None
        return _first((self.masks == _mask(said["features"], self.d)).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Parities, (self.masks, self.affine)


@dataclass(frozen=True, eq=False)
class Halfspaces(Hypotheses):
    """Linear threshold functions: 1 where weights times the record plus bias is at least 0.

    Their inner products are numpy's floats: beside a boundary, rounding decides, and may do so
    otherwise for another number of records or threads. What is released with them is idealised.

    Attributes:
        W: weights, finite float64 (k, d), k and d at least 1; kept as a read-only copy.
        b: biases, finite float64 (k,); kept as a read-only copy.
    """

    W: Floats
    b: Floats
    numerics: ClassVar[Literal["exact", "idealised"]] = "idealised"
    _kind = "halfspace"

    def __post_init__(self) -> None:
        """Refuse what is no class."""
        W, b = _finite("W", self.W, 2), _finite("b", self.b, 1)
        if not W.size or b.shape != W.shape[:1]:
            rule = "they must be (k, d) and (k,), k and d at least 1"
            raise ShapeError(f"W has shape {W.shape} and b {b.shape}, but {rule}")
        store(self, W=W, b=b)

    def __len__(self) -> int:
        return len(self.b)

    def _errors(self, X: ArrayLike, y: ArrayLike, threads: int | None) -> Errors:
        records, labels = self._records(X), bits("y", y).astype(np.bool_)
        if labels.shape != records.shape[:1]:
            rule = f"X has {len(records)} records"
            raise ShapeError(f"y has length {len(labels)}, but {rule}")
        wrong = np.zeros(len(self), np.int64)
        rows, each = max(1, _SCORES // len(self)), min(len(self), _SCORES)
        for start in range(0, len(records), rows):
            some, true = records[start : start + rows], labels[start : start + rows, None]
            for first in range(0, len(self), each):
                part = slice(first, first + each)
                wrong[part] += np.count_nonzero(self._says(part, some) != true, axis=0)
        return wrong

    def _predict(self, i: int, X: ArrayLike) -> Bits:
        said = self._says(slice(i, i + 1), self._records(X))
        return said[:, 0].astype(np.uint8)

    def _hypothesis(self, i: int) -> Hypothesis:
        return {"kind": "halfspace", "weights": self.W[i].tolist(), "bias": float(self.b[i])}

    def _place(self, said: Hypothesis) -> int | None:
        if len(said["weights"]) != self.W.shape[1]:
            return None
        weights = np.array(said["weights"])
        return _first((weights == self.W).all(axis=1) & (self.b == said["bias"]))

    def _prepare(self, X: ArrayLike) -> Floats:
        return self._records(X)

    def _says(self, part: slice, records: Floats) -> NDArray[np.bool_]:
        scores = records @ self.W[part].T
        scores += self.b[part]
        return scores >= 0

    def _records(self, X: ArrayLike) -> Floats:
        found = _real("X", X, 2)
        if found.shape[1] != self.W.shape[1]:
            rule = f"the hypotheses have {self.W.shape[1]} features"
            raise ShapeError(f"X has shape {found.shape}, but {rule}")
        return found


def store(instance: object, **values: Any) -> None:
    """Fields of a frozen instance as they were checked."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _positive(name: str, value: Any) -> int:
    found = count(name, value)
    if not 0 < found < 1 << 32:
        raise ParameterError(f"{name} = {found}, but it must be at least 1 and below 2**32")
    return found


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


def _first(matches: NDArray[np.bool_]) -> int | None:
    return int(matches.argmax()) if matches.any() else None


def _masks(name: str, value: Any) -> Bits:
    """A read-only copy of 0/1 (k, d), k and d at least 1."""
    try:
        packed = value if isinstance(value, BitMatrix) else BitMatrix.from_dense(value)
    except (ShapeError, ParameterError) as error:
        raise type(error)(str(error).replace("X", name, 1)) from None
    if 0 in packed.shape:
        raise ShapeError(f"{name} has shape {packed.shape}, but it must hold a row and a column")
    return _read_only(packed.to_dense())


def _finite(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """A read-only copy of the numbers, all finite."""
    return _read_only(_real(name, value, dimensions).copy())


def _real(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """The numbers, all finite, themselves where they are float64."""
    found = array(name, value)
    if found.ndim != dimensions:
        rule = f"it must have {dimensions} dimension(s)"
        raise ShapeError(f"{name} has shape {found.shape}, but {rule}")
    if found.size and found.dtype.kind not in "buif":
        raise ParameterError(f"{name} has dtype {found.dtype}, but it must hold real numbers")
    numbers = found.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return numbers


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values


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
