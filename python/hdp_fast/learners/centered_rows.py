"""Rows around released means: how they are summed, with what noise, and as which integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import noise
from .._support.types import Floats, Integers
from ..accounting.discrete_gaussian import calibrate_means
from ..data.chunks import Chunks, count_rows
from ..data.rows import PlainRows, Rows, Squares, blocks_of
from ..exceptions import ShapeError
from .noisy_descent import Grid, IntegerParts, IntegerRows, add_spilled, cut_rows, spill

T = TypeVar("T")
# What is added up, of rows and labels, or of labels alone.
Count = Callable[[Floats, NDArray[Any]], Integers | int]
CountLabels = Callable[[NDArray[Any]], Integers | int]

# No variance counts as smaller.
_LEAST_VARIANCE = 1e-6
# Made at a time: rows of a part, labels, and rows whose powers then fit into a processor's cache.
_BLOCK, _BLOCK_OF_LABELS, _BLOCK_OF_POWERS = 1 << 14, 1 << 16, 1 << 10
# The digits of means without noise, and those of sums.
_FREE_BITS, _SUM_BITS = 40, 61
# The bytes of integers of records in parts that are kept in memory.
_MOST_KEPT = 1 << 29
# What stands in the place of the constant 1 while weights are learned by a descent.
_CONSTANT = 1.5
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class WholeRows:
    """Plain rows and labels in memory: the one part of an array, summed as PartedRows are.

    Attributes:
        rows: The plain rows, or what makes some of them where they are asked for.
        labels: Numbers of classes, or targets, shape (n,).
    """

    rows: Floats | PlainRows
    labels: NDArray[Any]

    def __len__(self) -> int:
        """The number of records."""
        return len(self.labels)

    def add_up(self, count: Count) -> Integers:
        """As PartedRows has it."""
        return np.asarray(sum(self.gather(count)))

    def add_labels(self, count: CountLabels) -> Integers:
        """As PartedRows has it."""
        places = range(0, len(self), _BLOCK_OF_LABELS)
        return np.asarray(sum(count(self.labels[at : at + _BLOCK_OF_LABELS]) for at in places))

    def gather(self, make: Callable[[Floats, NDArray[Any]], T]) -> Iterator[T]:
        """What `make` makes of all rows, some at a time and in their order."""
        return (make(self.rows[some], self.labels[some]) for some in blocks_of(len(self)))

    def scale(self, centered: Rows) -> Floats:
        """All rows by a map to centered ones, for what looks into them anywhere."""
        made = np.empty((len(self), len(centered.names_with_squares) + 1))
        for some in blocks_of(len(self)):
            made[some] = centered.scale(self.rows[some])
        return made


@dataclass(frozen=True)
class PartedRows:
    """Plain rows and labels of records in parts, which are made where each part is read.

    Attributes:
        unit: The map to plain rows.
        chunks: The records.
        read: Makes of a block what the map takes, and the labels.
        n: The number of records, which is public.
    """

    unit: Rows
    chunks: Chunks
    read: Callable[..., tuple[Any, NDArray[Any]]]
    n: int

    @classmethod
    def open(
        cls, unit: Rows, chunks: Chunks, read: Callable[..., tuple[Any, NDArray[Any]]]
    ) -> PartedRows:
        """A first pass: it counts the records, and `read` refuses what is wrong in public."""
        chunks.require_passes()
        return cls(unit, chunks, read, sum(chunks.map(partial(_count_labels, unit, read))))

    def __len__(self) -> int:
        """The number of records."""
        return self.n

    def made_by(self, unit: Rows) -> PartedRows:
        """The rows that another map makes of the same records."""
        return replace(self, unit=unit)

    def add_up(self, count: Count) -> Integers:
        """The sum of the integers that `count` makes of some rows and their labels."""
        return self._sum(self.chunks.map(partial(_add_part, self.unit, self.read, count)))

    def add_labels(self, count: CountLabels) -> Integers:
        """The same of labels alone: no rows are made."""
        return self._sum(self.chunks.map(partial(_add_labels, self.read, count)))

    def _sum(self, parts: Iterator[tuple[Any, int]]) -> Integers:
        total, rows = map(sum, zip(*parts, strict=True))
        self._require(rows, rows)
        return np.asarray(total)

    def _require(self, least: int, most: int) -> None:
        """Refuses parts that have other rows than in the first pass, which have changed."""
        if least > self.n or most < self.n:
            rows = f"{least if least > self.n else most:,}"
            raise ShapeError(f"the parts have {rows} rows where they had {self.n:,}")

    def gather(self, make: Callable[[Floats, NDArray[Any]], T]) -> Iterator[T]:
        """What `make` makes of all rows, some at a time and in no order."""
        rows = 0
        for made, many in self.chunks.map_blocks(partial(_make_block, self.unit, self.read, make)):
            rows += many
            self._require(rows, self.n)
            yield made
        self._require(rows, rows)


def _add_labels(
    read: Callable[..., Any], count: CountLabels, blocks: Iterable[tuple[Any, ...]], _: Any
) -> tuple[Any, int]:
    total: Any = 0
    rows = 0
    for block in blocks:
        if count_rows(block[0]):
            labels = read(*block)[1]
            total, rows = total + count(labels), rows + len(labels)
    return total, rows


def _count_labels(
    unit: Rows, read: Callable[..., Any], blocks: Iterable[tuple[Any, ...]], _: Any
) -> int:
    many = 0
    for block in blocks:
        if count_rows(block[0]):
            records, labels = read(*block)
            many += len(labels)
            for name in () if unit.schema is None else unit.schema.reads:
                records.column(name)  # Later passes are paid for.
    return many


def _add_part(
    unit: Rows,
    read: Callable[..., Any],
    count: Count,
    blocks: Iterable[tuple[Any, ...]],
    _: Any,
) -> tuple[Any, int]:
    total: Any = 0
    many = 0
    for rows, labels in _read_rows(unit, read, blocks):
        total, many = total + count(rows, labels), many + len(labels)
    return total, many


def _make_block(
    unit: Rows,
    read: Callable[..., Any],
    make: Callable[[Floats, NDArray[Any]], T],
    block: tuple[Any, ...],
) -> Iterator[tuple[T, int]]:
    return ((make(rows, labels), len(labels)) for rows, labels in _read_rows(unit, read, [block]))


def _read_rows(
    unit: Rows, read: Callable[..., Any], blocks: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[Floats, NDArray[Any]]]:
    for block in blocks:
        if not count_rows(block[0]):
            continue
        records, labels = read(*block)
        rows = unit(records)
        for start in range(0, len(rows), _BLOCK):
            some = slice(start, start + _BLOCK)
            yield rows[some], labels[some]


def pair_rows(
    rows: Floats | PlainRows | PartedRows, labels: NDArray[Any] | None
) -> WholeRows | PartedRows:
    """Rows with their labels, which rows in parts have already."""
    if isinstance(rows, PartedRows):
        return rows
    assert labels is not None
    return WholeRows(rows, labels)


def center(
    unit: Rows,
    rows: Floats | PlainRows | WholeRows | PartedRows,
    *,
    squares: bool = False,
    epsilon: float,
    delta: float,
    random_state: np.random.Generator | None,
) -> Rows:
    """Release means, and those of powers of numbers, and center by them.

    (epsilon, delta)-DP under replace_one, exact: values are cut to integers up to 2**bits, their
    sums are exact, and rounded normal noise is added. Two records differ by at most
    sqrt(squared_distance) * 2**bits.

    rows: what `unit` makes of the private records.
    squares: whether squares of numbers become columns, which takes four powers instead of two.
    """
    grid = settle_means(unit, squares, len(rows), epsilon, delta)
    return center_with_noise(unit, rows, grid, squares=squares, random_state=random_state)


def center_with_noise(
    unit: Rows,
    rows: Floats | PlainRows | WholeRows | PartedRows,
    grid: tuple[int, Fraction],
    *,
    squares: bool,
    random_state: np.random.Generator | None,
) -> Rows:
    """Center by means on a grid of so many bits, whose sums have noise of that deviation.

    It is as private as a Gaussian mechanism whose distance of neighbors is the root of
    `unit.squared_distance(count_powers(squares))` * 2**bits, exact.
    """
    sums = _add_powers(unit, rows, squares, grid[0])
    return center_by_sums(unit, sums, len(rows), grid, random_state)


def center_by_sums(
    unit: Rows,
    sums: Integers,
    n: int,
    grid: tuple[int, Fraction],
    random_state: np.random.Generator | None,
) -> Rows:
    """As center_with_noise, by the sums that count_powers_of makes of all records.

    grid: a deviation of 0, as settle_means has it without a finite epsilon, protects no one.
    """
    bits, sigma = grid
    drawn: Any = 0
    if sigma:
        drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=random_state)
    unit_of_mean = 1 / (2.0**bits * n)
    means, deviation = (sums + drawn) * unit_of_mean, float(sigma) * unit_of_mean
    # A smaller variance than that could be noise alone, and would be blown up.
    return _center_by(unit, means.clip(0.0, 1.0), max(2 * deviation, _LEAST_VARIANCE))


def settle_means(
    unit: Rows, squares: bool, n: int, epsilon: float, delta: float
) -> tuple[int, Fraction]:
    """The grid and the noise of the means of n rows; raises where no noise is enough."""
    if epsilon == math.inf:
        return min(_FREE_BITS, _SUM_BITS - n.bit_length()), Fraction(0)
    price = unit.squared_distance(count_powers(squares))
    return calibrate_means(price, n=n, epsilon=epsilon, delta=delta)


def count_powers(squares: bool) -> int:
    """How many powers of numbers are released: those that squares and their scale take, too."""
    return 4 if squares else 2


def _add_powers(
    unit: Rows, rows: Floats | PlainRows | WholeRows | PartedRows, squares: bool, bits: int
) -> Integers:
    """The exact sums of all powers, which are cut to integers up to 2**bits."""
    count = partial(count_powers_of, unit, squares, bits)
    if isinstance(rows, WholeRows | PartedRows):
        return rows.add_up(count)
    return np.asarray(sum(count(rows[block]) for block in blocks_of(len(rows))))


def count_powers_of(unit: Rows, squares: bool, bits: int, rows: Floats, _: Any = None) -> Integers:
    """The sums of some plain rows and of the powers of their numbers, cut to at most 2**bits."""
    total: Any = 0
    for start in range(0, len(rows), _BLOCK_OF_POWERS):
        some = rows[start : start + _BLOCK_OF_POWERS]
        sums, numbers = [_sum_cut(some, bits)], some[:, unit.is_number]
        power = numbers
        for _ in range(2, count_powers(squares) + 1):
            # A product rounds alike everywhere, and a power takes ten times as long.
            power = power * numbers
            sums.append(_sum_cut(power, bits))
        total = total + np.concatenate(sums)
    return np.asarray(total)


def _sum_cut(values: Floats, bits: int) -> Integers:
    # Integers are made of floats above 0 as floor makes them.
    sums: Integers = (values * 2.0**bits).astype(np.int64).sum(axis=0)
    return sums


def center_evenly(unit: Rows, *, squares: bool = False) -> Rows:
    """Center as if all rows were spread evenly; nothing is released."""
    numbers = int(unit.is_number.sum())
    powers = [np.full(numbers, 1 / (power + 1)) for power in range(2, count_powers(squares) + 1)]
    return _center_by(unit, np.concatenate([unit.even_means, *powers]), _LEAST_VARIANCE)


def _center_by(unit: Rows, means: Floats, least: float) -> Rows:
    """Center by released means, for which no variance counts as smaller than `least`."""
    numbers, columns = unit.is_number, len(unit.is_number)
    mean, count = means[:columns], int(numbers.sum())
    # Without numbers there are no powers, and nothing is squared.
    powers = means[columns:].reshape(-1, count) if count else np.zeros((1, 0))
    variance = np.maximum(powers[0] - mean[numbers] ** 2, least)
    factor = np.ones(columns)
    factor[numbers] = 1 / np.sqrt(variance)
    squares = _square_by(mean[numbers], variance, powers, least) if len(powers) > 1 else None
    return replace(unit, center=mean, factor=factor, squares=squares)


def _square_by(mean: Floats, variance: Floats, powers: Floats, least: float) -> Squares:
    """The squares by the released means of the second, third and fourth powers."""
    second, third, fourth = powers
    of_square = np.maximum(fourth - second**2, least)
    # A correlation beyond 1 is noise.
    steepest = np.sqrt(of_square / variance)
    slope = np.clip((third - mean * second) / variance, -steepest, steepest)
    rest = np.maximum(of_square - slope**2 * variance, least)
    return Squares(second, slope, 1 / np.sqrt(rest))


# Integers of a descent ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """How rows and labels become the integers of a descent: by public and released numbers.

    Attributes:
        centered: The map to centered rows.
        bound: The norm that they are shrunk to.
        width: How many of their columns are used.
        number: Makes of labels what IntegerRows take.
        classes: As IntegerRows has it.
        grid: The integers.
    """

    centered: Rows
    bound: float
    width: int
    number: Callable[[NDArray[Any]], NDArray[np.int16]]
    classes: int
    grid: Grid

    def __call__(self, rows: Floats, labels: NDArray[Any]) -> IntegerRows:
        """The integers of some rows."""
        entries = cut_rows(scale_rows(self.centered, rows, self.bound)[:, : self.width])
        return IntegerRows(entries, self.number(labels), self.classes, self.grid)


@contextmanager
def open_integers(
    records: WholeRows | PartedRows, cut: Cut
) -> Iterator[IntegerRows | IntegerParts]:
    """The rows as integers: in memory, unless they lie in parts and are too many for that.

    Then they are written to a file without a name, which no other process can open and which ends
    with this one; where the disk has no room for it they are made again for each sum.
    """
    shape = len(records), cut.width
    if isinstance(records, PartedRows) and 2 * shape[0] * shape[1] > _MOST_KEPT:
        with spill(records.gather(cut)) as file:
            made = partial(_add_made, records, cut)
            add_up = made if file is None else partial(add_spilled, file)
            yield IntegerParts(shape, cut.classes, cut.grid, add_up)
        return
    entries, numbers, place = np.empty(shape, np.int16), np.empty(shape[0], np.int16), 0
    for part in records.gather(cut):
        some = slice(place, place + len(part.codes))
        entries[some], numbers[some], place = part.entries, part.codes, some.stop
    yield IntegerRows(entries, numbers, cut.classes, cut.grid)


def _add_made(records: PartedRows, cut: Cut, count: Callable[[IntegerRows], Integers]) -> Integers:
    return records.add_up(partial(_count_made, cut, count))


def _count_made(
    cut: Cut, count: Callable[[IntegerRows], Integers], rows: Floats, labels: NDArray[Any]
) -> Integers:
    return count(cut(rows, labels))


def scale_rows(centered: Rows, rows: Floats, bound: float) -> Floats:
    """Rows of a mean squared norm of about 1, whose constant is larger than that of `centered`.

    bound: the norm that rows of `centered` are shrunk to.
    """
    made = centered.scale(rows)
    for block in blocks_of(len(made)):
        lengths = np.sqrt(np.einsum("ij,ij->i", made[block], made[block]))
        made[block] *= np.minimum(1.0, bound / lengths)[:, None] / typical_norm(centered)
    made[:, -1] *= _CONSTANT
    return made


def scale_of(centered: Rows) -> Floats:
    """What scale_rows multiplies the columns of centered rows with."""
    scale = np.full(len(centered.names_with_squares) + 1, 1 / typical_norm(centered))
    scale[-1] *= _CONSTANT
    return scale


def typical_norm(centered: Rows) -> float:
    """Root of the mean squared norm of centered rows whose constant is that of scale_rows."""
    return math.sqrt(centered.norm**2 - 1 + _CONSTANT**2)


def bound_norm(centered: Rows) -> float:
    """A bound on the norm of all rows, which no record exceeds: by public or released numbers."""
    assert centered.center is not None
    assert centered.factor is not None
    farthest = np.maximum(centered.center, 1 - centered.center)
    entries, law = [farthest * centered.factor, np.ones(1)], centered.squares
    if law is not None:
        linear = np.abs(law.slope) * farthest[centered.is_number]
        entries.append((np.maximum(law.mean, 1 - law.mean) + linear) * law.factor)
    return float(np.linalg.norm(np.concatenate(entries))) * _ROUNDING
