"""The records of each member: chunks of an array, by position or by ids, and chunks of parts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.turns import Turn
from .._support.types import Integers
from ..data import records
from ..data.chunks import Chunks, count_rows, refuse_unlabeled
from ..data.persons import read_ids, write_texts
from ..exceptions import InsufficientSamples, ParameterError, ShapeError
from .members import Chunk, Member, run_tasks, train, turn_of
from .public_facts import Facts, compare, facts_of

# No text in UTF-8, which stands for all records without an id.
_NOBODY = b"\xff"

# Computes the rows of each chunk from a key.
Split = Callable[[bytes], list[Integers]]
# Validates labels, given how many there must be.
Check = Callable[[Any, int], NDArray[Any]]


def choose_chunks(ids: ArrayLike | None, source: Source, k: int) -> Split | None:
    """Choose how records are split into k chunks: by their ids if there are any, or by position.

    Raises:
        InsufficientSamples: There are fewer records than chunks, or fewer chunks than parts, and no
            ids. With ids the number of records is private, and is not compared.
        ShapeError: ids has another shape than (n,).
        ParameterError: ids has no dtype of integers, texts or objects, or comes beside parts.
    """
    if ids is None:
        share_members(source.rows, k)
        return None
    if source.chunks is not None:
        rule = "a person may have rows in several parts, and so in several members: join them"
        raise ParameterError(f"ids were passed beside Chunks, but {rule}")
    names = _check_ids(ids, source.n)
    return lambda key: split_by_id(names, key, k)


def split_by_position(n: int, k: int) -> list[Integers]:
    """The rows of each of k chunks: row i is in chunk i mod k.

    Replacing a record changes one chunk. Inserting a record would change many.
    """
    return [np.arange(chunk, n, k) for chunk in range(k)]


def split_by_id(ids: list[bytes], key: bytes, k: int) -> list[Integers]:
    """The rows of each of k chunks, by a keyed hash of the record's id.

    Rows with the same id are in the same chunk. Inserting or removing all rows of one id changes
    one chunk, whatever the key, and keeps the order of rows in all others.
    """
    chunks = np.array([_chunk(name, key, k) for name in ids], np.int64)
    order = np.argsort(chunks, kind="stable")
    return np.split(order, np.searchsorted(chunks[order], np.arange(1, k)))


def _check_ids(ids: ArrayLike, n: int) -> list[bytes]:
    """Validate ids, one for each of n records, and return them as bytes.

    No id causes an error: all records without one are those of one person.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The dtype is that of neither integers, texts nor objects.
    """
    values, missing = read_ids(ids, "iuSUO")
    if values.shape != (n,):
        raise ShapeError(f"ids has shape {values.shape}, but it must be ({n},), as there are rows")
    names: list[Any] = values.tolist()
    if missing is not None:
        names = [None if absent else name for name, absent in zip(names, missing, strict=True)]
    return [_bytes(name) for name in (write_texts(names) if values.dtype.kind != "S" else names)]


def _bytes(name: str | bytes | None) -> bytes:
    if name is None:
        return _NOBODY
    # Lone surrogates are allowed in ids.
    return name if isinstance(name, bytes) else name.encode(errors="surrogatepass")


def _chunk(name: bytes, key: bytes, k: int) -> int:
    return int.from_bytes(hashlib.blake2b(name, key=key, digest_size=16).digest()) % k


class Training(NamedTuple):
    """What the members of all parts have in common.

    Attributes:
        learner: The learner of every member.
        key: Key from which the seeds of the members are derived.
        home: The process that waits for the members.
    """

    learner: Any
    key: bytes
    home: int

    def train(self, X: Any, y: NDArray[Any], chunks: list[Integers], first: int, bar: Any) -> Any:
        """Trains a member on each chunk, of which the first has this number.

        In another process than the one that waits for them members are bytes.
        """
        tasks = (
            (Chunk(records.take_rows(X, rows), y[rows]), self.learner, self._turn(chunk))
            for chunk, rows in enumerate(chunks, first)
        )
        members = run_tasks(train, tasks, bar.update)
        if os.getpid() == self.home:
            return members
        return [member.pack(self._turn(chunk)) for chunk, member in enumerate(members, first)]

    def _turn(self, chunk: int) -> Turn:
        return turn_of(self.key, chunk, 0, self.home)


class _PartFacts(NamedTuple):
    """What is public of a part: its rows, and of one that has any its columns and their types."""

    rows: int
    facts: Facts | None
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The records of a labeler: in memory, or in parts that hold whole members.

    A part is split into chunks as an array is: its row i is in chunk i mod m of its own m. How many
    members it has depends on the numbers of rows of all parts alone. So a record that is replaced,
    which stays in its part and its place, changes one chunk.

    Attributes:
        first: Records by whose columns and types a learner is tried, and their labels.
        rows: The number of rows of each part; a single one in memory.
        facts: Public facts of all records.
        shape: Shape of the features of one record.
        chunks: The parts; None where `first` holds all records.
        check: Validates labels and their number.
    """

    first: tuple[Any, NDArray[Any]]
    rows: list[int]
    facts: Facts
    shape: tuple[int, ...]
    chunks: Chunks | None
    check: Check

    @classmethod
    def open(cls, X: Any, y: Any, check: Check) -> Source:
        """The records of an array, or of Chunks by a first pass that checks them.

        Raises:
            ShapeError: X or y has another shape, or parts differ in theirs.
            ParameterError: X or y is not as described, or parts differ in their columns or types.
        """
        if not isinstance(X, Chunks):
            features = records.check_features("X", X)
            labels = check(y, records.count_rows(features))
            rows = [records.count_rows(features)]
            shape = tuple(features.shape[1:])
            return cls((features, labels), rows, facts_of(features), shape, None, check)
        if y is not None:
            raise ParameterError("y was passed beside Chunks, which hold the labels")
        X.require_passes("members are trained in a second pass")
        parts = X.gather(partial(_inspect, check))
        some = [part for part in parts if part.facts is not None]
        if not some or some[0].facts is None:
            raise ShapeError("the parts hold no row, but there must be one at least")
        for part in some:
            if part.shape != some[0].shape:
                rule = f"others {some[0].shape}: all must have the same features"
                raise ShapeError(f"a part has records of shape {part.shape}, but {rule}")
            if part.facts is not None:
                compare(some[0].facts, part.facts, "a part")
        features, labels = _check_block(check, X.first())
        rows = [part.rows for part in parts]
        return cls((features, labels), rows, some[0].facts, some[0].shape, X, check)

    @property
    def n(self) -> int:
        """The number of all records."""
        return sum(self.rows)

    def train(self, training: Training, choose: Split | None, k: int, bar: Any) -> list[Member]:
        """Trains k members; those of parts where these are read."""
        if self.chunks is None:
            split = split_by_position(self.n, k) if choose is None else choose(training.key)
            members: list[Member] = training.train(*self.first, split, 0, bar)
            return members
        many = share_members(self.rows, k)
        firsts = np.cumsum([0, *many[:-1]]).tolist()
        places = list(zip(firsts, many, self.rows, strict=True))
        groups = self.chunks.gather(partial(_train_part, training, self.check), places)
        bar.update(k)
        return [member for group in groups for member in group]


def share_members(rows: list[int], k: int) -> list[int]:
    """How many of k members learn from each part: one, and of the others about as rows are many.

    No part has more members than rows.

    Raises:
        InsufficientSamples: There are more parts with rows than members, or fewer rows.
    """
    parts, n = sum(number > 0 for number in rows), sum(rows)
    if parts > k:
        rule = f"each of {parts:,} parts holds whole members: take more, or parts of several files"
        raise InsufficientSamples(f"members = {k:,}, but {rule}")
    if n < k:
        raise InsufficientSamples(f"X has {n:,} records, but {k:,} members need one each")
    more, spare = k - parts, max(n - parts, 1)
    ends = np.cumsum([0, *(max(number - 1, 0) for number in rows)]).tolist()
    shares = [more * end // spare for end in ends]
    pairs = zip(shares[1:], shares[:-1], rows, strict=True)
    return [after - before + (number > 0) for after, before, number in pairs]


def _inspect(check: Check, blocks: Iterable[tuple[Any, ...]], name: str | None) -> _PartFacts:
    """What is public of a part; its labels are checked on the way."""
    total = _PartFacts(0, None, ())
    for block in blocks:
        if not count_rows(block):
            continue
        features, _ = _check_block(check, block)
        facts, shape = facts_of(features), tuple(features.shape[1:])
        if total.facts is not None:
            compare(total.facts, facts, "a part")
            _require_arrays(features)
        total = _PartFacts(total.rows + records.count_rows(features), facts, shape)
    return total


def _check_block(check: Check, block: tuple[Any, ...]) -> tuple[Any, NDArray[Any]]:
    if len(block) != 2:
        refuse_unlabeled()
    features = records.check_features("X", block[0])
    return features, check(block[1], records.count_rows(features))


def _require_arrays(features: Any) -> None:
    """Refuses what cannot be joined to other blocks of its part by its declared type alone."""
    if not isinstance(features, np.ndarray):
        rule = "of several blocks each must be an array, or label= must name the labels of a table"
        raise ParameterError(f"a part is read as several {type(features).__name__}, but {rule}")


def _train_part(
    training: Training,
    check: Check,
    blocks: Iterable[tuple[Any, ...]],
    name: str | None,
    place: tuple[int, int, int],
) -> Any:
    """The members of a part, given the number of its first one, and how many and its rows are."""
    first, many, rows = place
    if not many:
        return []
    pairs = [_check_block(check, block) for block in blocks if count_rows(block)]
    X, y = pairs[0] if len(pairs) == 1 else map(np.concatenate, zip(*pairs, strict=True))
    if len(y) != rows:
        raise ShapeError(f"a part has {len(y):,} rows where it had {rows:,}: it changed")
    return training.train(X, y, split_by_position(rows, many), first, _Still())


class _Still:
    """Stands for a bar that does not move."""

    def update(self) -> None:
        """Moves nothing."""
