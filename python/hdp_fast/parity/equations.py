"""What a run of a learner of parities asks of records: spans of samples, and counts of errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.types import Bits
from .._support.validate import bits
from ..data.chunks import Chunks, count_rows, refuse_unlabeled
from ..data.frames import read_labels_as_numbers
from ..data.states import State, describe_settings
from ..exceptions import ShapeError
from ..gf2 import BitMatrix, RowSpace

_JOB = "parity.learn"

# Blocks of records in their order, each with the number of its first record.
Numbered = Iterable[tuple[_core.ParityRecords, int]]
# The state of such records.
Fold = Callable[[Numbered], State]


class Public(NamedTuple):
    """What a fold is told of all records of a run.

    Attributes:
        n: Their number.
        d: Number of features.
        affine: Whether a constant is learned as well.
    """

    n: int
    d: int
    affine: bool

    @property
    def settings(self) -> dict[str, str]:
        """On what the equations of a state depend, beside coins."""
        return describe_settings(d=self.d, affine=self.affine)


class Source(ABC):
    """The records of a run, in memory or in parts.

    Attributes:
        public: What is told to folds.
    """

    public: Public

    @abstractmethod
    def fold(self, fold: Fold) -> State:
        """The state of all records."""


class Whole(Source):
    """Records in memory: a single part."""

    def __init__(self, X: BitMatrix, y: Bits, affine: bool):
        """Check them.

        Raises:
            ShapeError: y has not one entry for each record.
            ParameterError: There are `2**32` records or more.
        """
        self._records = _core.ParityRecords(X, y, affine)
        self.public = Public(*self._records.shape, affine)

    def fold(self, fold: Fold) -> State:
        """The state of all records."""
        return fold([(self._records, 0)])


class Parts(Source):
    """Records in parts, each of which carries the public number of its first record."""

    def __init__(self, chunks: Chunks, affine: bool):
        """Check and count them, by a pass.

        Raises:
            ShapeError: Parts have different columns, or there is not even a block without rows.
            ParameterError: An entry is not 0 or 1, there are no labels, or a part can be read a
                single time.
        """
        chunks.require_passes("each try samples records in a pass of its own")
        self._chunks = chunks
        sizes = chunks.gather(_inspect)
        self._rows = [size.rows for size in sizes]
        widths = {size.columns for size in sizes if size.columns is not None}
        if not widths:
            widths = {_read_block(affine, *chunks.first()).shape[1]}
        _require_width(widths)
        self.public = Public(sum(self._rows), widths.pop(), affine)

    def fold(self, fold: Fold) -> State:
        """The state of all records, made where they are read: one for each that reads parts."""
        firsts = np.cumsum([0, *self._rows[:-1]]).tolist()
        task = partial(_fold_run, fold, self.public)
        return reduce(add, self._chunks.map_runs(task, firsts, self._rows))


class _Size(NamedTuple):
    rows: int
    columns: int | None


def pack_records(X: ArrayLike | BitMatrix) -> BitMatrix:
    """Packs the records into a matrix of bits.

    Raises:
        ShapeError: X has not two dimensions.
        ParameterError: X is no array of bits.
    """
    return X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)


def _read_block(affine: bool, X: Any, y: Any = None) -> _core.ParityRecords:
    """A block as a mechanism takes it: a matrix of bits where it lies, and other arrays packed."""
    if y is None:
        refuse_unlabeled()
    matrix, labels = pack_records(X), bits("y", read_labels_as_numbers(y))
    if len(labels) != len(matrix):
        raise ShapeError(f"y has shape {labels.shape}, but X has {len(matrix):,} records")
    return _core.ParityRecords(matrix, labels, affine)


def _require_width(widths: set[int]) -> None:
    if len(widths) > 1:
        low, high = min(widths), max(widths)
        rule = "all must have the same ones"
        raise ShapeError(f"parts have {low:,} and {high:,} columns, but {rule}")


def _inspect(blocks: Iterable[tuple[Any, ...]], name: str | None) -> _Size:
    """What is public of a part; its entries are checked on the way."""
    rows, widths = 0, set[int]()
    for block in filter(count_rows, blocks):
        shape = _read_block(False, *block).shape
        rows += shape[0]
        widths.add(shape[1])
    _require_width(widths)
    return _Size(rows, widths.pop() if widths else None)


def _fold_run(fold: Fold, public: Public, parts: Iterable[tuple[Any, ...]]) -> State:
    """The state of the records of some parts, which are read one after the other."""
    names: list[str] = []
    state = fold(_number(public, parts, names))
    return reduce(State.named, names, state)


def _number(
    public: Public, parts: Iterable[tuple[Any, ...]], names: list[str]
) -> Iterator[tuple[_core.ParityRecords, int]]:
    """The blocks of parts, of each of which the first number and the rows are known.

    names: gets the names of those that have one.
    """
    for blocks, name, first, rows in parts:
        number = first
        for block in filter(count_rows, blocks):
            records = _read_block(public.affine, *block)
            _require_width({records.shape[1], public.d})
            yield records, number
            number += records.shape[0]
        if number != first + rows:
            # A record must have the number, and so the coins, that it has in every pass.
            changed = f"a part has {number - first:,} rows where it had {rows:,}: it changed"
            raise ShapeError(changed)
        if name is not None:
            names.append(name)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism as it travels to where parts are.

    Attributes:
        epsilon: Privacy parameter of a record.
        method: How systems are repeated until one answers.
        neighbors: The neighbor relation.
        plan: What else sets its coins.
    """

    epsilon: float
    method: str
    neighbors: str
    plan: Mapping[str, Any]

    def open(self) -> _core.ParityMechanism:
        """The mechanism, whose settings are checked.

        Raises:
            ParameterError: They are out of range.
        """
        return _core.ParityMechanism(self.epsilon, self.method, self.neighbors, self.plan)

    def learn(self, source: Source, key: bytes) -> Bits | None:
        """Runs the mechanism; the loop is in Rust, and asks for a state of all records a try.

        The coins of a record are those of the secret key and of the record's number, so that a part
        may be folded anywhere, and again.
        """

        def spaces(systems: list[int]) -> list[RowSpace]:
            state = source.fold(partial(fold_spaces, self, key, source.public, systems))
            return [state.spaces[str(system)] for system in systems]

        def errors(hypotheses: list[Bits]) -> list[int]:
            state = source.fold(partial(_fold_errors, self, source.public, hypotheses))
            counts: list[int] = state.sums["errors"].tolist()
            return counts

        return self.open().learn(source.public.n, key, spaces, errors)


def fold_spaces(
    mechanism: Mechanism, key: bytes, public: Public, systems: list[int], records: Numbered
) -> State:
    """The spans of those records that systems sample."""
    made, rows = mechanism.open(), 0
    equations = {system: _core.Equations(public.d + public.affine) for system in systems}
    for some, first in records:
        rows += some.shape[0]
        for system, sampled in equations.items():
            made.add(sampled, some, (first, public.n), system, key)
    spaces = {str(system): sampled.take() for system, sampled in equations.items()}
    return State(_JOB, public.settings, rows, {}, spaces=spaces)


def _fold_errors(
    mechanism: Mechanism, public: Public, hypotheses: list[Bits], records: Numbered
) -> State:
    """The errors of hypotheses on those records that are test records."""
    made, rows, counts = mechanism.open(), 0, np.zeros(len(hypotheses), np.int64)
    for some, first in records:
        rows += some.shape[0]
        counts += [made.errors(some, (first, public.n), one) for one in hypotheses]
    return State(_JOB, public.settings, rows, {"errors": counts})
