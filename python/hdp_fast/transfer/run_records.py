"""Records of a run and their labels, in memory or in parts, and what a run asks of them."""

from __future__ import annotations

import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import Features
from .._support.feature_names import FeatureNames, names_of
from .._support.numbers import freeze
from .._support.types import Bits, Integers
from .._support.validate import array, bits
from ..data.chunks import Chunks, count_rows
from ..data.table import Table
from ..exceptions import CheckpointError, ParameterError, ShapeError
from ..gf2 import BitMatrix, pack_rows
from .learner import Learner, adapt

# The bytes of packed bits that are kept in memory of records in parts.
MOST_PACKED = 1 << 26

Measure = Callable[[Any, Bits], NDArray[Any]]


class RunRecords(ABC):
    """What a run asks of records and their labels, which lie in memory or in parts."""

    names: FeatureNames

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a record."""

    @abstractmethod
    def digest(self, salt: str) -> str:
        """A digest, which is as private as the records: guesses of them can be tried against it."""

    @abstractmethod
    def prepared_by(self, learner: Learner) -> RunRecords:
        """The same in the form that the learner's hypotheses read fastest."""

    @abstractmethod
    def become_bits(self, learner: Learner) -> bool:
        """Whether that form is packed bits."""

    @abstractmethod
    def take(self, numbers: Integers) -> tuple[Any, Bits, Integers]:
        """Records and their labels, and the places among them of those with these numbers."""

    @abstractmethod
    def measure(self, measure: Measure) -> NDArray[Any]:
        """What a function makes of records and labels, an entry for each."""

    @property
    def d(self) -> int:
        """Number of entries of a record."""
        return math.prod(self.shape)

    def match(self, settings: dict[str, Any]) -> bool:
        """Whether a run with these settings began with the same records."""
        return bool(self.digest(settings["salt"]) == settings["digest"])

    def require_match(self, settings: dict[str, Any]) -> None:
        """Refuses to go on with a run that began with other records.

        Raises:
            CheckpointError: The records differ.
        """
        if not self.match(settings):
            raise CheckpointError("X and y are not the records of the run that was stopped")


@dataclass(frozen=True, eq=False)
class StoredRecords(RunRecords):
    """Records and their labels, both read-only.

    Attributes:
        X: Array of shape (n, d), or with more dimensions; or what a learner prepared of it.
        y: Labels 0 and 1 of shape (n,).
        names: Names of the columns of X, or None.
    """

    X: Any
    y: Bits
    names: FeatureNames = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """As RunRecords has it."""
        shape: tuple[int, ...] = self.X.shape[1:]
        return shape

    def digest(self, salt: str) -> str:
        """As RunRecords has it."""
        digest = hashlib.blake2b(salt.encode(), digest_size=32)
        digest.update(f"{self.X.dtype.str} {self.X.shape}".encode())
        for values in (self.X, self.y):
            plain = np.ascontiguousarray(values).reshape(-1)
            # The bytes of objects are addresses, which change from run to run, so repr is digested.
            has_objects = plain.dtype.hasobject
            digest.update(
                repr(plain.tolist()).encode() if has_objects else plain.view(np.uint8).data
            )
        return digest.hexdigest()

    def prepared_by(self, learner: Learner) -> StoredRecords:
        """As RunRecords has it."""
        return replace(self, X=learner.prepare(self.X))

    def become_bits(self, learner: Learner) -> bool:
        """As RunRecords has it."""
        return isinstance(learner.prepare(self.X), Features)

    def take(self, numbers: Integers) -> tuple[Any, Bits, Integers]:
        """As RunRecords has it."""
        return self.X, self.y, numbers

    def measure(self, measure: Measure) -> NDArray[Any]:
        """As RunRecords has it."""
        return measure(self.X, self.y)


@dataclass(frozen=True, eq=False)
class PartedRecords(RunRecords):
    """Records in parts, each of which is read where it lies, as often as it is asked for.

    The number of a record is its place in all parts together: weights, draws and losses are those
    of one array of all records.

    Attributes:
        chunks: The parts.
        learner: Whose form the records are brought into, a block at a time.
        parts: What a first pass said of each.
        names: Names of the columns, or None.
    """

    chunks: Chunks
    learner: Learner
    parts: tuple[PartFacts, ...]
    names: FeatureNames = None

    @classmethod
    def open(cls, chunks: Chunks, learner: Learner) -> PartedRecords:
        """A first pass, which refuses what is wrong in public.

        Raises: as validate_records, and what the learner raises of the type or domain of records.
        """
        if learner.draws_itself:
            rule = "its steps draw from all records, where Chunks give it those of a round alone"
            raise ParameterError(f"X is Chunks and learner draws for itself, but {rule}")
        chunks.require_passes()
        head = chunks.with_tables().first()[0]
        names = tuple(head.columns) if isinstance(head, Table) else names_of(head)
        made = cls(chunks, learner, tuple(chunks.gather(partial(_look_at, learner))), names)
        if not len(made):
            raise ShapeError("X has no record, but there must be one at least")
        shapes = {part.shape for part in made.parts if part.size}
        if len(shapes) > 1:
            rule = "all must have the same entries"
            raise ShapeError(f"X has parts with records of the shapes {shapes}, but {rule}")
        return made

    def __len__(self) -> int:
        return sum(self._sizes)

    @property
    def _sizes(self) -> list[int]:
        return [part.size for part in self.parts]

    @property
    def shape(self) -> tuple[int, ...]:
        """As RunRecords has it."""
        return next(part.shape for part in self.parts if part.size)

    def digest(self, salt: str) -> str:
        """As RunRecords has it; the same records in other parts have another one."""
        texts = [salt, *(part.digest for part in self.parts)]
        return hashlib.blake2b(" ".join(texts).encode(), digest_size=32).hexdigest()

    def prepared_by(self, learner: Learner) -> RunRecords:
        """As RunRecords has it: packed bits stay in memory unless they are many."""
        is_small = len(self) * -(-self.d // 8) <= MOST_PACKED
        if not (self._are_bits and learner.takes_packed and is_small):
            return replace(self, learner=learner)
        rows, labels = zip(*self.chunks.gather(_pack_part), strict=True)
        for part, packed in zip(self.parts, rows, strict=True):
            self._require_size(part.size, len(packed))
        packed = np.concatenate([part for part in rows if len(part)])
        del rows  # Each form is dropped when the next one is made.
        X = BitMatrix.from_packed(packed, self.d)
        del packed
        return StoredRecords(X, np.concatenate(labels)).prepared_by(learner)

    def become_bits(self, learner: Learner) -> bool:
        """As RunRecords has it."""
        return self._are_bits

    @property
    def _are_bits(self) -> bool:
        return any(part.are_bits for part in self.parts)

    def take(self, numbers: Integers) -> tuple[Any, Bits, Integers]:
        """As RunRecords has it: those that are asked for, each once, by a pass over the parts."""
        distinct, places = np.unique(numbers, return_inverse=True)
        ends = np.cumsum(self._sizes)
        cuts = np.searchsorted(distinct, [0, *ends])
        inside = [
            distinct[cuts[place] : cuts[place + 1]] - (end - size)
            for place, (end, size) in enumerate(zip(ends, self._sizes, strict=True))
        ]
        pick = partial(_pick, np.uint8 if self._are_bits else None)
        picked = itertools.chain.from_iterable(self.chunks.gather(pick, inside))
        X, y = (np.concatenate(arrays) for arrays in zip(*picked, strict=True))
        self._require_size(len(distinct), len(y))
        return self.learner.prepare(X), y, places

    def measure(self, measure: Measure) -> NDArray[Any]:
        """As RunRecords has it, by a pass over the parts."""
        values = self.chunks.gather(partial(_measure_part, self.learner, measure))
        for size, some in zip(self._sizes, values, strict=True):
            self._require_size(size, len(some))
        return np.concatenate(values)

    def _require_size(self, expected: int, size: int) -> None:
        if size != expected:
            rule = "each must have the same records in every pass"
            raise ParameterError(f"parts of X have changed since they were read, but {rule}")


class PartFacts(NamedTuple):
    """What a first pass says of a part.

    Attributes:
        size: Number of its records.
        shape: The shape of one; () without any.
        are_bits: Whether a learner makes packed bits of them.
        digest: A digest of them, as private as they are.
    """

    size: int = 0
    shape: tuple[int, ...] = ()
    are_bits: bool = False
    digest: str = ""


def _look_at(learner: Learner, blocks: Iterable[tuple[Any, ...]], _: Any) -> PartFacts:
    facts = PartFacts()
    for records in _read_blocks(blocks):
        if facts.size and facts.shape != records.shape:
            shapes = f"{facts.shape} and {records.shape}"
            raise ShapeError(f"X has a part with records of the shapes {shapes}, but of one alone")
        # What it refuses would be paid for in a later pass.
        are_bits = records.become_bits(learner)
        size, digest = facts.size + len(records), records.digest(facts.digest)
        facts = PartFacts(size, records.shape, are_bits, digest)
    return facts


def _pick(
    dtype: type | None, blocks: Iterable[tuple[Any, ...]], _: Any, numbers: Integers
) -> list[tuple[NDArray[Any], Bits]]:
    """The records of a part with these numbers, which ascend, and their labels.

    All parts are read to their ends, for what is drawn is private.
    """
    picked, start = [], 0
    for records in _read_blocks(blocks):
        first, last = np.searchsorted(numbers, [start, start + len(records)])
        some = numbers[first:last] - start
        X = records.X[some]
        picked.append((X if dtype is None else X.astype(dtype), records.y[some]))
        start += len(records)
    return picked


def _pack_part(blocks: Iterable[tuple[Any, ...]], _: Any) -> tuple[Bits, Bits]:
    """The packed rows of a part of bits, and their labels."""
    rows, labels = [np.empty((0, 0), np.uint8)], [np.empty(0, np.uint8)]
    for records in _read_blocks(blocks):
        rows.append(pack_rows(BitMatrix.from_dense(records.X))[0])
        labels.append(records.y)
    return np.concatenate(rows[1:] or rows), np.concatenate(labels)


def _measure_part(
    learner: Learner, measure: Measure, blocks: Iterable[tuple[Any, ...]], _: Any
) -> NDArray[Any]:
    values = [part.prepared_by(learner).measure(measure) for part in _read_blocks(blocks)]
    return np.concatenate(values) if values else np.empty(0, np.bool_)


def _read_blocks(blocks: Iterable[tuple[Any, ...]]) -> Iterator[StoredRecords]:
    for block in blocks:
        if len(block) != 2:
            rule = "each record must have one: Chunks(..., label=) names their column"
            raise ParameterError(f"X has parts without labels, but {rule}")
        if count_rows(block):
            yield _read_pair(*block)


def validate_records(X: Any, y: ArrayLike | None, learner: Any) -> RunRecords:
    """The records as read-only arrays, or in parts.

    Raises:
        ShapeError: X has fewer than two dimensions, or y has not one label for each record.
        ParameterError: A label is not 0 or 1, or X is a masked array; or y comes beside Chunks, or
            a learner that draws for itself.
    """
    if isinstance(X, Chunks):
        if y is not None:
            raise ParameterError("y was passed beside Chunks, which hold the labels")
        return PartedRecords.open(X, adapt(learner))
    records = _read_pair(X, y)
    if not len(records):
        raise _misshapen(records.X, records.y)
    return records


def _read_pair(X: Any, y: Any) -> StoredRecords:
    entries = X.to_dense() if isinstance(X, BitMatrix) else array("X", X)
    labels = bits("y", y)
    if entries.ndim < 2 or labels.shape != entries.shape[:1]:
        raise _misshapen(entries, labels)
    # A learner that wrote to them would change what later rounds see, and the caller's arrays.
    return StoredRecords(freeze(entries), freeze(labels), names_of(X))


def _misshapen(X: NDArray[Any], y: Bits) -> ShapeError:
    shapes = f"X has shape {X.shape} and y {y.shape}"
    return ShapeError(f"{shapes}, but they must be (n, d) and (n,), n at least 1")
