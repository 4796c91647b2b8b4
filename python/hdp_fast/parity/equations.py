"""What a run of a learner of parities asks of records: spans of samples, and counts of errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.types import Bits
from .._support.validate import bits
from ..data.chunks import Chunks, count_rows
from ..data.frames import read_labels_as_numbers
from ..data.states import State, describe_settings
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix, RowSpace, pack_rows

_JOB = "parity.learn"
# Records of a part that are in memory at a time; more where a system has more equations.
_FEWEST_ROWS, _ROWS_FOR_EACH = 1 << 16, 4

Place = tuple[int, int]
# The state of some records, given the number of the first of them and that of all.
Fold = Callable[[_core.ParityRecords, Place], State]


class Source(ABC):
    """The records of a run, in memory or in parts.

    Attributes:
        n: Their number.
        d: Number of features.
        affine: Whether a constant is learned as well.
    """

    n: int
    d: int
    affine: bool

    @abstractmethod
    def fold(self, fold: Fold) -> State:
        """The state of all records."""

    @property
    def settings(self) -> dict[str, str]:
        """On what the equations of a state depend, beside coins."""
        return describe_settings(d=self.d, affine=self.affine)


class Whole(Source):
    """Records in memory: a single part."""

    def __init__(self, X: BitMatrix, y: Bits, affine: bool):
        """Check them.

        Raises:
            ShapeError: y has not one entry for each record.
            ParameterError: There are `2**32` records or more.
        """
        self._records = _core.ParityRecords(X, y, affine)
        (self.n, self.d), self.affine = self._records.shape, affine

    def fold(self, fold: Fold) -> State:
        """The state of all records."""
        return fold(self._records, (0, self.n))


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
        self._chunks, self.affine = chunks, affine
        sizes = chunks.gather(_inspect)
        self._rows = [size.rows for size in sizes]
        self.n, self._empty = sum(self._rows), None
        widths = {size.columns for size in sizes if size.columns is not None}
        if not widths:
            self._empty = _pack_block(*chunks.first())
            widths = {self._empty.columns}
        _require_width(widths)
        (self.d,) = widths

    def fold(self, fold: Fold) -> State:
        """The state of all records, each part's made where it is read."""
        if self._empty is not None:
            return fold(self._empty.open(self.affine), (0, 0))
        firsts = np.cumsum([0, *self._rows[:-1]]).tolist()
        places = list(zip(firsts, self._rows, strict=True))
        task = partial(_fold_part, fold, self.affine, (self.n, self.d))
        states = [state for state in self._chunks.gather(task, places) if state is not None]
        return sum(states[1:], states[0])


class _Size(NamedTuple):
    rows: int
    columns: int | None


class _Packed(NamedTuple):
    """Some records, a bit for each entry.

    Attributes:
        rows: The packed rows, uint8 of shape (n, bytes).
        columns: How many bits of a row are entries.
        labels: A bit for each row, uint8.
    """

    rows: Bits
    columns: int
    labels: Bits

    def open(self, affine: bool) -> _core.ParityRecords:
        """The records as a mechanism takes them."""
        return _core.ParityRecords(
            BitMatrix.from_packed(self.rows, self.columns), self.labels, affine
        )


def pack_records(X: ArrayLike | BitMatrix) -> BitMatrix:
    """Packs the records into a matrix of bits.

    Raises:
        ShapeError: X has not two dimensions.
        ParameterError: X is no array of bits.
    """
    return X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)


def _pack_block(X: Any, y: Any = None) -> _Packed:
    if y is None:
        rule = "they must be pairs (X, y), or tables of which label names the column of labels"
        raise ParameterError(f"the parts have no labels, but {rule}")
    rows, columns = pack_rows(pack_records(X))
    labels = bits("y", read_labels_as_numbers(y))
    if len(labels) != len(rows):
        raise ShapeError(f"y has shape {labels.shape}, but X has {len(rows):,} records")
    return _Packed(rows, columns, labels)


def _require_width(widths: set[int]) -> None:
    if len(widths) > 1:
        low, high = min(widths), max(widths)
        rule = "all must have the same ones"
        raise ShapeError(f"parts have {low:,} and {high:,} columns, but {rule}")


def _inspect(blocks: Iterable[tuple[Any, ...]], name: str | None) -> _Size:
    """What is public of a part; its entries are checked on the way."""
    rows, widths = 0, set[int]()
    for block in blocks:
        if count_rows(block):
            packed = _pack_block(*block)
            rows += len(packed.labels)
            widths.add(packed.columns)
    _require_width(widths)
    return _Size(rows, widths.pop() if widths else None)


def _fold_part(
    fold: Fold,
    affine: bool,
    of_all: Place,
    blocks: Iterable[tuple[Any, ...]],
    name: str | None,
    place: Place,
) -> State | None:
    """The state of a part, which begins at a place and has so many rows; None of one without."""
    (total, d), (first, rows) = of_all, place
    state: State | None = None
    number = first
    for packed in _join_blocks(blocks, max(_FEWEST_ROWS, _ROWS_FOR_EACH * d)):
        if packed.columns != d:
            _require_width({packed.columns, d})
        one = fold(packed.open(affine), (number, total))
        number += len(packed.labels)
        state = one if state is None else state + one
    if number != first + rows:
        # A record must have the number, and so the coins, that it has in every pass.
        raise ShapeError(f"a part has {number - first:,} rows where it had {rows:,}: it changed")
    return state if state is None or name is None else state.named(name)


def _join_blocks(blocks: Iterable[tuple[Any, ...]], most: int) -> Iterator[_Packed]:
    """Blocks of a part put together, so that equations are eliminated many at a time."""
    some: list[_Packed] = []
    for block in blocks:
        if count_rows(block):
            some.append(_pack_block(*block))
        if sum(len(packed.labels) for packed in some) >= most:
            yield _join(some)
            some = []
    if some:
        yield _join(some)


def _join(some: list[_Packed]) -> _Packed:
    _require_width({packed.columns for packed in some})
    rows = np.concatenate([packed.rows for packed in some])
    labels = np.concatenate([packed.labels for packed in some])
    return _Packed(rows, some[0].columns, labels)


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
            state = source.fold(partial(fold_spaces, self, key, source.settings, systems))
            return [state.spaces[str(system)] for system in systems]

        def errors(hypotheses: list[Bits]) -> list[int]:
            state = source.fold(partial(_fold_errors, self, source.settings, hypotheses))
            counts: list[int] = state.sums["errors"].tolist()
            return counts

        return self.open().learn(source.n, key, spaces, errors)


def fold_spaces(
    mechanism: Mechanism,
    key: bytes,
    settings: Mapping[str, str],
    systems: list[int],
    records: _core.ParityRecords,
    place: Place,
) -> State:
    """The spans of those records that systems sample."""
    made = mechanism.open()
    spaces = {str(one): made.space(records, place, one, key) for one in systems}
    return State(_JOB, settings, records.shape[0], {}, spaces=spaces)


def _fold_errors(
    mechanism: Mechanism,
    settings: Mapping[str, str],
    hypotheses: list[Bits],
    records: _core.ParityRecords,
    place: Place,
) -> State:
    """The errors of hypotheses on those records that are test records."""
    made = mechanism.open()
    counts = [made.errors(records, place, one) for one in hypotheses]
    return State(_JOB, settings, records.shape[0], {"errors": np.array(counts, np.int64)})
