"""Rows around released means: how many powers are released, with what noise, and the map."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
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

T = TypeVar("T")

# No variance counts as smaller.
_LEAST_VARIANCE = 1e-6


# Rows whose powers, or integers, are made at a time of a part.
_BLOCK = 1 << 14


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

    def add_up(self, count: Callable[[Floats, NDArray[Any]], Integers]) -> Integers:
        """The sum of the integers that `count` makes of some rows and their labels."""
        total: Any = 0
        for part in self.chunks.map(partial(_add_part, self.unit, self.read, count)):
            total = total + part
        return np.asarray(total)

    def gather(self, make: Callable[[Floats, NDArray[Any]], T]) -> Iterator[T]:
        """What `make` makes of all rows, some at a time and in no order."""
        return self.chunks.map_blocks(partial(_make_block, self.unit, self.read, make))


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
    count: Callable[[Floats, NDArray[Any]], Integers],
    blocks: Iterable[tuple[Any, ...]],
    _: Any,
) -> Any:
    total: Any = 0
    for rows, labels in _read_rows(unit, read, blocks):
        total = total + count(rows, labels)
    return total


def _make_block(
    unit: Rows,
    read: Callable[..., Any],
    make: Callable[[Floats, NDArray[Any]], T],
    block: tuple[Any, ...],
) -> Iterator[T]:
    return (make(rows, labels) for rows, labels in _read_rows(unit, read, [block]))


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


def center(
    unit: Rows,
    rows: Floats,
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
    if epsilon == math.inf:
        means = _powers(unit, rows, squares).mean(axis=0)
        return _center_by(unit, means.clip(0.0, 1.0), _LEAST_VARIANCE)
    grid = settle_means(unit, squares, len(rows), epsilon, delta)
    return center_with_noise(unit, rows, grid, squares=squares, random_state=random_state)


def center_with_noise(
    unit: Rows,
    rows: Floats | PlainRows | PartedRows,
    grid: tuple[int, Fraction],
    *,
    squares: bool,
    random_state: np.random.Generator | None,
) -> Rows:
    """Center by means on a grid of so many bits, whose sums have noise of that deviation.

    It is as private as a Gaussian mechanism whose distance of neighbors is the root of
    `unit.squared_distance(count_powers(squares))` * 2**bits, exact.
    """
    bits, sigma = grid
    sums = _add_powers(unit, rows, squares, bits)
    drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=random_state)
    unit_of_mean = 1 / (2.0**bits * len(rows))
    means, deviation = (sums + drawn) * unit_of_mean, float(sigma) * unit_of_mean
    # A smaller variance than that could be noise alone, and would be blown up.
    return _center_by(unit, means.clip(0.0, 1.0), max(2 * deviation, _LEAST_VARIANCE))


def settle_means(
    unit: Rows, squares: bool, n: int, epsilon: float, delta: float
) -> tuple[int, Fraction]:
    """The grid and the noise of the means of n rows; raises where no noise is enough."""
    price = unit.squared_distance(count_powers(squares))
    return calibrate_means(price, n=n, epsilon=epsilon, delta=delta)


def count_powers(squares: bool) -> int:
    """How many powers of numbers are released: those that squares and their scale take, too."""
    return 4 if squares else 2


def _powers(unit: Rows, rows: Floats, squares: bool) -> Floats:
    """Plain rows, and the powers of their numbers."""
    numbers = rows[:, unit.is_number]
    powers = [numbers]
    for _ in range(2, count_powers(squares) + 1):
        # A product rounds alike everywhere, and a power takes ten times as long.
        powers.append(powers[-1] * numbers)
    return np.hstack([rows, *powers[1:]])


def _add_powers(
    unit: Rows, rows: Floats | PlainRows | PartedRows, squares: bool, bits: int
) -> Integers:
    """The exact sums of all powers, which are cut to integers up to 2**bits."""
    if isinstance(rows, PartedRows):
        return rows.add_up(partial(_count_powers_of, unit, squares, bits))
    total: Integers = np.zeros(1, np.int64)
    for block in blocks_of(len(rows)):
        total = total + _count_powers_of(unit, squares, bits, rows[block])
    return total


def _count_powers_of(unit: Rows, squares: bool, bits: int, rows: Floats, _: Any = None) -> Integers:
    # Integers are made of floats above 0 as floor makes them.
    part = (_powers(unit, rows, squares) * 2.0**bits).astype(np.int64)
    sums: Integers = part.sum(axis=0)
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
