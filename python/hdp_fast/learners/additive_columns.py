"""The columns of an additive model: public cells, bins of them, and the bits of its rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats, Integers
from ..data.column_kinds import Category, Ignore, Number
from ..data.rows import Bounds, Rows
from ..data.schema import Schema
from .centered_rows import PartedRows, WholeRows

# The cells of a number, where its bins are at quantiles.
FINE_CELLS = 256
# A cell is one byte.
_MOST_CELLS = 256
# Noise of so many deviations says nothing of where records are.
_SEEN = 2.0
# No bin counts as having less than this share of what an even one has.
_LEAST_SHARE = 0.1
# A bin of a number with less than this share of the mean may be noise alone.
_LEAST_BIN = 0.25


class Cells(NamedTuple):
    """The cells of a column: what a record is before anything is released.

    A number has even cells between its bounds. A bit has two, and a category one for each value,
    and one for all others and for a missing one, which is the last.

    Attributes:
        first: The place of the column's first feature among plain rows.
        width: How many features it has.
        size: The number of cells.
        kind: "number", "bit" or "category".
        bins: How many bins they make up at most.
    """

    first: int
    width: int
    size: int
    kind: Literal["number", "bit", "category"]
    bins: int


def lay_out(unit: Rows, fine: bool, bins: int) -> list[Cells]:
    """The cells of all columns of plain rows.

    fine: whether numbers have cells for quantiles, or as many as bins.
    bins: those of a number, at most.
    """
    numbers = FINE_CELLS if fine else bins
    columns, place = [], 0
    parts: list[tuple[Any, int]] = list(unit.parts) or [(None, 1)] * len(unit.is_number)
    for kind, width in parts:
        if isinstance(kind, Category):
            values = min(width + 1, _MOST_CELLS)
            columns.append(Cells(place, width, values, "category", values))
        elif unit.is_number[place]:
            columns.append(Cells(place, 1, numbers, "number", bins))
        else:
            columns.append(Cells(place, 1, 2, "bit", 2))
        place += width
    return columns


def cut_rows(columns: Sequence[Cells], rows: NDArray[Any]) -> NDArray[np.uint8]:
    """The cells of plain rows in [0, 1], one byte for each, shape (columns, rows)."""
    made = np.empty((len(columns), len(rows)), np.uint8)
    for cells, column in zip(made, columns, strict=True):
        part = rows[:, column.first : column.first + column.width]
        if column.kind == "number":
            cells[:] = np.minimum((part[:, 0] * column.size).astype(np.int64), column.size - 1)
        elif column.kind == "bit":
            cells[:] = part[:, 0] >= 1
        else:
            known = part.any(axis=1)
            last = column.size - 1
            cells[:] = np.where(known, np.minimum(part.argmax(axis=1), max(last - 1, 0)), last)
    return made


def gather_cells(
    columns: Sequence[Cells], records: WholeRows | PartedRows
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The cells of all records, shape (columns, n), and their labels."""
    made, place = np.empty((len(columns), len(records)), np.uint8), 0
    kept = []
    for part, some in records.gather(_Cut(columns)):
        made[:, place : place + len(some)] = part
        place += len(some)
        kept.append(some)
    return made, np.concatenate(kept) if kept else np.zeros(0)


@dataclass(frozen=True)
class _Cut:
    """Cuts some rows, wherever a part is read."""

    columns: Sequence[Cells]

    def __call__(
        self, rows: Floats, labels: NDArray[Any]
    ) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        return cut_rows(self.columns, rows), labels


def count_cells(cells: NDArray[np.uint8], columns: Sequence[Cells]) -> list[Integers]:
    """How many records each cell of each column has; a record counts once in each column."""
    pairs = zip(cells, columns, strict=True)
    return [np.bincount(some, minlength=column.size) for some, column in pairs]


class Bins(NamedTuple):
    """The bins of a column, by released counts of cells.

    Attributes:
        of_cell: The bin of each cell, uint8.
        counts: How many records each bin is taken to have, above 0; shape (bins,).
        places: Where each bin is in [0, 1] among a number's bins, or records; None for a category.
        held: The part of these records, in [0, 1], that was seen in the bin.
    """

    of_cell: NDArray[np.uint8]
    counts: Floats
    places: Floats | None
    held: Floats


def choose_bins(column: Cells, released: Floats, sigma: float, n: int) -> Bins:
    """Bins of about equally many records for a number; the cells of what is none.

    released: counts of cells with noise of this deviation.
    """
    of_cell = np.arange(column.size, dtype=np.uint8)
    if column.kind == "number":
        even = column.size <= column.bins
        of_cell = _cut_evenly(column) if even else _cut(column, released, sigma)
    cells = np.bincount(of_cell)
    counts = np.bincount(of_cell, weights=released)
    shrunk = _shrink(counts, sigma * np.sqrt(cells), n)
    held = (counts / shrunk).clip(0.0, 1.0)
    if column.kind != "number":
        return Bins(of_cell, shrunk, None, held)
    # Bins of even cells hold what they hold: the places of records among all of them were measured
    # to be better than those of bins there, and worse where bins hold about as many each.
    ends = np.cumsum(shrunk) if column.size <= column.bins else np.arange(len(shrunk)) + 1.0
    return Bins(of_cell, shrunk, (ends - np.diff(ends, prepend=0.0) / 2) / ends[-1], held)


def _cut(column: Cells, released: Floats, sigma: float) -> NDArray[np.uint8]:
    """The bins of cells at noisy quantiles; cells without records are in the bin of the nearest."""
    seen, counts = _join_cells(released, sigma)
    if len(seen) < 2:
        return _cut_evenly(column)
    # A cell of many records takes one bin or two, and leaves others to the rest.
    counts = np.minimum(counts, counts.sum() / column.bins)
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    quantiles = np.minimum((middles * column.bins).astype(int), column.bins - 1)
    _, bins = np.unique(quantiles, return_inverse=True)
    if bins[-1] == 0:
        return _cut_evenly(column)
    sums = np.bincount(bins, weights=counts)
    kept = sums[bins] >= _LEAST_BIN * sums.mean()
    if len(np.unique(bins[kept])) > 1:
        seen, bins = seen[kept], np.unique(bins[kept], return_inverse=True)[1]
    nearest = np.searchsorted((seen[1:] + seen[:-1]) / 2, np.arange(len(released)))
    return bins[nearest].astype(np.uint8)


def _join_cells(released: Floats, sigma: float) -> tuple[Integers, Floats]:
    """Neighboring cells whose records stand out of noise together: the fullest, and the sum."""
    fullest, sums = [], []
    total, first = 0.0, 0
    for cell, count in enumerate(released.tolist()):
        total += count
        if total > _SEEN * sigma * math.sqrt(cell + 1 - first):
            fullest.append(first + int(released[first : cell + 1].argmax()))
            sums.append(total)
            total, first = 0.0, cell + 1
    return np.array(fullest, np.int64), np.array(sums)


def _cut_evenly(column: Cells) -> NDArray[np.uint8]:
    return (np.arange(column.size) * column.bins // column.size).astype(np.uint8)


def _shrink(counts: NDArray[Any], deviations: Floats, n: int) -> Floats:
    """Counts of n records, shrunk towards even ones as far as their noise asks for."""
    even = n / len(counts)
    spread = max(float(((counts - even) ** 2 - deviations**2).mean()), 0.0)
    shares = spread / np.maximum(spread + deviations**2, math.ulp(0.0))
    shrunk: Floats = np.maximum(even + shares * (counts - even), _LEAST_SHARE * even)
    shrunk *= n / shrunk.sum()
    return shrunk


# Bits -------------------------------------------------------------------------------------------


class Contrast(NamedTuple):
    """What makes the weights of a column's bits of the values of its bins.

    Attributes:
        matrix: Shape (bits, bins).
        first: The bin whose value the constant takes.
        shares: The share of records of which each bit is 1, shape (bits,).
        places: The bin of each start of the column's Shape, shape (bits + 1,).
    """

    matrix: Floats
    first: int
    shares: Floats
    places: NDArray[np.intp]


def contrast(column: Cells, bins: Bins) -> Contrast:
    """The bits of a column: whether a number is in a bin or above it, or which value it is."""
    count, shares = len(bins.counts), bins.counts / bins.counts.sum()
    identity = np.eye(count)
    if column.kind != "category":
        above = np.cumsum(shares[::-1])[::-1]
        return Contrast(identity[1:] - identity[:-1], 0, above[1:], np.arange(count))
    # The bits of values that share a bin have its value each.
    places = np.minimum(np.arange(column.width), count - 2)
    many = np.bincount(places, minlength=count)
    matrix, even = identity[places] - identity[-1], shares / np.maximum(many, 1)
    return Contrast(matrix, count - 1, even[places], np.append(places, count - 1))


def bit_rows(unit: Rows, columns: Sequence[Cells], bins: Sequence[Bins], center: Floats) -> Rows:
    """The map from records to bits, one for each cut and value, centered by released shares."""
    cuts = [
        _cuts_of(one.of_cell) if column.kind == "number" else None
        for column, one in zip(columns, bins, strict=True)
    ]
    source: Schema | Bounds
    if isinstance(unit.source, Schema):
        kinds = dict(unit.source.columns)
        used = [name for name, kind in kinds.items() if not isinstance(kind, Ignore)]
        for name, shares in zip(used, cuts, strict=True):
            kind = kinds[name]
            if shares is not None and isinstance(kind, Number):
                kinds[name] = dataclasses.replace(
                    kind, cuts=_scale_cuts(shares, kind.low, kind.high)
                )
        source = Schema(unit.source.label, kinds)
    else:
        low, high = unit.source.low.tolist(), unit.source.high.tolist()
        pairs = [
            (end,) if shares is None else _scale_cuts(shares, start, end)
            for shares, start, end in zip(cuts, low, high, strict=True)
        ]
        source = dataclasses.replace(unit.source, cuts=tuple(pairs))
    return Rows(source, True, center, np.ones(len(center)))


def _cuts_of(of_cell: NDArray[np.uint8]) -> Floats:
    """Where bins begin, but the first, as shares of the way between the bounds."""
    starts: Floats = (np.flatnonzero(np.diff(of_cell)) + 1) / len(of_cell)
    return starts


def _scale_cuts(shares: Floats, low: float, high: float) -> tuple[float, ...]:
    return tuple(low + share * (high - low) for share in shares.tolist())


class Shape(NamedTuple):
    """What a column adds to the scores of an additive model, less its mean.

    Attributes:
        starts: Where each bin of a number begins; the first one has no beginning, which is its
            lower bound. For a category its values, and last None for all others.
        effects: What each of them adds, float64 of their number.
        shares: The share of records of each, by released counts.
        deviations: The standard deviation that noise makes in each; None where it is unknown.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import PrivateAdditive
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 45, 70] * 3_000, "bought": ["no", "yes", "no"] * 3_000}
        >>> model = PrivateAdditive(schema, epsilon=1.0, delta=1e-6).learn(people)
        >>> shape = model.shapes()["age"]
        >>> len(shape.effects) == len(shape.starts), shape.starts[0]
        (True, 0.0)
    """

    starts: tuple[float | str | None, ...]
    effects: Floats
    shares: Floats
    deviations: Floats | None = None


def make_shape(kind: Category | Number, weights: Floats, center: Floats) -> Shape:
    """The shape that these weights of a column's bits make, whose bits have these shares."""
    if isinstance(kind, Number):
        starts: tuple[float | str | None, ...] = (kind.low, *kind.cuts)
        shares = -np.diff(np.concatenate([[1.0], center, [0.0]]))
        values = np.concatenate([[0.0], np.cumsum(weights)])
    else:
        starts = (*kind.values, None)
        shares = np.append(center, 1 - center.sum())
        values = np.append(weights, 0.0)
    shares = shares.clip(0.0, 1.0)
    return Shape(starts, values - shares @ values, shares)
