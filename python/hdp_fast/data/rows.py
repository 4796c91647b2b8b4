"""Rows of known norm: what a public schema, or public bounds, make of records, and the way back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.numbers import floats, scale_to_unit
from .._support.types import Floats, Integers
from .._support.validate import numbers, read_only, refuse
from ..exceptions import ParameterError, ShapeError
from .column_kinds import Category, Ignore, Number, count_features
from .frames import make_table
from .schema import Schema
from .table import Table

# The rows that are made at a time: what stands between records and rows fits a processor's cache.
_BLOCK = 1 << 12
_BLOCK_CELLS = 1 << 20


class Predictor(NamedTuple):
    """A linear predictor in the units of the table.

    Attributes:
        intercept: Prediction where all features are 0.
        coefficients: By the names of the schema's features what one more of a number, or a bit,
            adds.
    """

    intercept: float
    coefficients: dict[str, float]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Public bounds of columns of numbers, each `low` below its `high`.

    Attributes:
        low: Lower bounds.
        high: Upper bounds.
        bits: Whether each column is 0 or 1; None where none is.
        cuts: Increasing numbers for each column, of which rows of bits are made; None where no rows
            of bits are.
    """

    low: Floats
    high: Floats
    bits: NDArray[np.bool_] | None = None
    cuts: tuple[tuple[float, ...], ...] | None = None

    def scale(self, values: NDArray[Any]) -> Floats:
        """Values clipped to the bounds and scaled to [0, 1]; NaN counts as low."""
        return scale_to_unit(values, self.low, self.high)

    def cut(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """A bit for each cut of each column: whether the value is at least that; NaN has none."""
        assert self.cuts is not None
        columns = [values[:, [place]] >= np.array(cuts) for place, cuts in enumerate(self.cuts)]
        return np.hstack(columns).astype(np.uint8)

    def round(self, values: NDArray[Any], steps: int) -> Integers:
        """Values as integers from 0 to steps, the nearest points of an even grid; NaN as low.

        They are `rint(steps * scale(values))`, made in one pass, and stand column by column.
        """
        columns = floats(values.T)
        ends = floats(self.low), floats(self.high)
        points = _core.nearest_points(columns.reshape(-1), *ends, steps)
        return points.reshape(columns.shape).T


def check_bounds(low: ArrayLike, high: ArrayLike, width: int) -> Bounds:
    """The bounds of each of `width` columns.

    Raises: ShapeError for another shape; ParameterError unless low is finite and below high.
    """
    ends = []
    for name, bound in (("low", low), ("high", high)):
        values = np.asarray(numbers(name, bound), np.float64)
        if values.shape not in ((), (width,)):
            raise ShapeError(f"{name} has shape {values.shape}, but it must be () or ({width},)")
        if not np.isfinite(values).all():
            refuse(name, bound, "it must be finite")
        ends.append(read_only(np.broadcast_to(values, (width,)).copy()))
    if not (ends[0] < ends[1]).all():
        refuse("low", low, "it must be below high in every column")
    return Bounds(ends[0], ends[1])


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares of numbers less what is linear in the numbers, with a standard deviation of 1.

    Attributes:
        mean: Mean square of each number.
        slope: What a square rises by with its number.
        factor: What the rest is multiplied with.
    """

    mean: Floats
    slope: Floats
    factor: Floats


@dataclass(frozen=True, eq=False)
class Rows:
    """A public map from records to rows: of public facts and released numbers alone.

    A record becomes numbers in [0, 1]: the float features of a schema, or its bits, or columns
    between bounds. These are the plain rows. With a center it is taken off them, the differences
    are multiplied with the factor, squares follow if there are any, and the constant 1.

    Noisy gradients learn little along the direction of the mean, in which all rows agree, and from
    a column that hardly varies within its bounds.

    Attributes:
        source: What records are read by: a schema of tables, or bounds of columns of numbers.
        bits: Whether plain rows are the schema's bits, with one for each cut of a number.
        center: What is taken off each column; None leaves the rows plain.
        factor: What the differences are multiplied with, so that numbers have a variance of 1;
            None leaves them as they are.
        squares: What squares of the numbers are made with; None where there are none.
    """

    source: Schema | Bounds
    bits: bool = False
    center: Floats | None = None
    factor: Floats | None = None
    squares: Squares | None = None

    # Constructors --------------------------------------------------------------------------------

    @classmethod
    def within(
        cls, bounds: ArrayLike, columns: int, integers: NDArray[np.bool_] | None = None
    ) -> Rows:
        """Plain rows of numbers between bounds: one pair for all columns, or one for each.

        integers: whether each column is of bool or an integer type, which makes a bit of one
            between 0 and 1.
        """
        if isinstance(bounds, dict):
            rule = "it must be (low, high), or a list of such pairs in the order of the columns"
            raise ParameterError(f"bounds = {bounds!r}, but {rule}")
        pairs = np.asarray(numbers("bounds", bounds), np.float64)
        if pairs.shape not in {(2,), (columns, 2)}:
            rule = f"it must be (2,), or ({columns}, 2) as X has {columns} columns"
            raise ShapeError(f"bounds has shape {pairs.shape}, but {rule}")
        low, high = np.broadcast_to(pairs, (columns, 2)).T.copy()
        if not (np.isfinite(pairs).all() and (low < high).all()):
            raise ParameterError("bounds has a pair that is no (low, high), but low must be below")
        bits = None if integers is None else integers & (low == 0.0) & (high == 1.0)
        return cls(Bounds(low, high, bits))

    @classmethod
    def spanned_by(cls, records: Floats, integers: NDArray[np.bool_] | None = None) -> Rows:
        """Plain rows for the bounds of these records, which are read off and so not protected."""
        low, high = records.min(axis=0), records.max(axis=0)
        high = low + np.where(high > low, high - low, np.maximum(np.abs(low), 1.0))
        bits = None if integers is None else integers & (low == 0.0) & (high == 1.0)
        return cls(Bounds(low, high, bits))

    @classmethod
    def of_table(cls, schema: Schema, table: Table) -> Rows:
        """Plain rows of a table: the float features of a schema, by which bits are marked.

        A number between 0 and 1 is a bit, too, where its column is of bool or an integer type.
        """
        columns = dict(schema.columns)
        for name, kind in columns.items():
            if isinstance(kind, Number) and (kind.low, kind.high) == (0.0, 1.0):
                typed = table.column(name).holds_integers
                columns[name] = replace(kind, cuts=(1.0,)) if typed else kind
        return cls(schema if columns == schema.columns else Schema(schema.label, columns))

    # What is known of them -----------------------------------------------------------------------

    @cached_property
    def schema(self) -> Schema | None:
        """The schema of the records; None for columns of numbers."""
        return self.source if isinstance(self.source, Schema) else None

    @cached_property
    def parts(self) -> list[tuple[Category | Number, int]]:
        """The columns of a schema that are not ignored, each with the number of its features."""
        columns = {} if self.schema is None else self.schema.columns
        used = [kind for kind in columns.values() if not isinstance(kind, Ignore)]
        return [(kind, count_features(kind, self.bits)) for kind in used]

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """For each column of plain rows, whether it is a number and no bit."""
        if isinstance(self.source, Bounds):
            if self.bits:
                return np.zeros(len(self.names), bool)
            bits = self.source.bits
            return np.ones(len(self.source.low), bool) if bits is None else ~bits
        flags = [
            isinstance(kind, Number) and not (self.bits or kind.is_bit) for kind, _ in self.parts
        ]
        return np.repeat(np.array(flags, bool), [width for _, width in self.parts])

    @cached_property
    def sources(self) -> int:
        """The number of columns that the rows are made of: the largest squared norm of plain ones.

        Of the bits of a category at most one is 1.
        """
        return len(self.parts) if self.schema is not None else len(self.is_number)

    @cached_property
    def names(self) -> list[str]:
        """What each column of plain rows is."""
        if isinstance(self.source, Bounds):
            return self.name_columns([f"x{place}" for place in range(len(self.source.low))])
        assert self.schema is not None
        return self.schema.names if self.bits else self.schema.float_names

    def name_columns(self, columns: Sequence[str]) -> list[str]:
        """What each column of plain rows is where the records' columns have these names."""
        if not (self.bits and isinstance(self.source, Bounds)):
            return list(columns)
        assert self.source.cuts is not None
        pairs = zip(columns, self.source.cuts, strict=True)
        return [f"{name}>={cut:.12g}" for name, cuts in pairs for cut in cuts]

    @property
    def names_with_squares(self) -> list[str]:
        """What each column of the rows is, but the constant."""
        numbers = [] if self.squares is None else itertools.compress(self.names, self.is_number)
        return [*self.names, *(f"{name} squared" for name in numbers)]

    @property
    def even_means(self) -> Floats:
        """The means of plain rows that are spread evenly: over intervals, and over categories."""
        if self.schema is None:
            return np.full(len(self.is_number), 0.5)
        shares = [1 / width if isinstance(kind, Category) else 0.5 for kind, width in self.parts]
        return np.repeat(shares, [width for _, width in self.parts])

    @property
    def norm(self) -> float:
        """Root of a bound on the mean squared norm of rows whose means are the center.

        A column in [0, 1] of mean m has a variance of at most m (1 - m), and numbers with a factor
        have one of 1, as their squares do.
        """
        assert self.center is not None
        scaled = self.is_number if self.factor is not None else np.zeros_like(self.is_number)
        shares = self.center[~scaled]
        units = int(scaled.sum()) * (1 if self.squares is None else 2)
        return math.sqrt(1 + units + float((shares * (1 - shares)).sum()))

    def spread_columns(self) -> Floats:
        """The covariance of centered columns without the constant, by their released means.

        That of the bits of a category is exact, numbers and their squares have the variance 1 that
        their factors make, or at most 1 / 4, and what else goes together is not known: it is 0.
        """
        assert self.center is not None
        factor = np.ones_like(self.center) if self.factor is None else self.factor
        most = np.clip(self.center * (1 - self.center), 0.0, None) * factor**2
        scaled = self.is_number & (self.factor is not None)
        width = len(factor) + (0 if self.squares is None else len(self.squares.mean))
        covariance = np.diag(np.concatenate([np.where(scaled, 1.0, most), np.ones(width)])[:width])
        place = 0
        for kind, many in self.parts:
            some = slice(place, place + many)
            if isinstance(kind, Category):
                means = self.center[some] * factor[some]
                off = ~np.eye(many, dtype=bool)
                covariance[some, some][off] = -np.outer(means, means)[off]
            place += many
        return covariance

    def contrast_categories(self) -> Floats:
        """The matrix that takes off each category's weight what its column adds on average.

        It is for weights of all columns, the constant's last. Where each row has one category, a
        number that is added to the weights of all of them and taken off the constant's changes
        nothing: what is left of weights then does not depend on it.
        """
        assert self.center is not None
        squares = 0 if self.squares is None else len(self.squares.mean)
        matrix, place = np.eye(len(self.center) + squares + 1), 0
        for kind, width in self.parts:
            some = slice(place, place + width)
            if isinstance(kind, Category):
                matrix[some, some] -= self.center[some]
            place += width
        return matrix

    def squared_distance(self, powers: int = 1) -> int:
        """The largest squared distance that two records have in so many powers of plain rows.

        They differ by at most 1 in each power of a number, in each of its cuts, and in two bits of
        a category, or in one if it has no more. A number that is a bit has one power.
        """
        plain = self.sources
        if self.schema is not None:
            plain = sum(min(w, 2) if isinstance(kind, Category) else w for kind, w in self.parts)
        return plain + (powers - 1) * int(self.is_number.sum())

    # Rows of records -----------------------------------------------------------------------------

    def __call__(self, X: Any) -> Floats:
        """The rows of records, a frame or a table or an array, shape (n, columns)."""
        return self.scale(self.plain(X if self.schema is None else make_table("X", X, self.schema)))

    def blocks(self, X: Any) -> Iterator[Floats]:
        """The rows of records as `__call__` makes them, some at a time, and at least one block."""
        records: Any = X if self.schema is None else make_table("X", X, self.schema)
        table = isinstance(records, Table)
        # A block of a table is longer: each of its columns is read by a call of another library.
        many = max(_BLOCK_CELLS // max(len(self.names), 1), _BLOCK) if table else _BLOCK
        for start in range(0, max(records.rows if table else len(records), 1), many):
            some = slice(start, start + many)
            yield self.scale(self.plain(records.select(some) if table else records[some]))

    def plain(self, X: Any) -> NDArray[Any]:
        """The plain rows of records; bits are uint8, all else is float64."""
        if isinstance(self.source, Schema):
            return self.source.bits(X) if self.bits else self.source.floats(X)
        if self.bits:
            return np.concatenate([self.source.cut(X[block]) for block in blocks_of(len(X))])
        rows = np.empty(X.shape)
        for block in blocks_of(len(rows)):
            rows[block] = self.source.scale(X[block])
        return rows

    def scale(self, plain: NDArray[Any]) -> Floats:
        """Rows of plain ones: centered, with squares if there are any, and the constant."""
        if self.center is None:
            return floats(plain)
        d, law = len(self.center), self.squares
        width = d + 1 + (0 if law is None else len(law.mean))
        # The constant is 1 already.
        rows = np.ones((len(plain), width))
        for block in blocks_of(len(plain)):
            some, made = plain[block], rows[block]
            np.subtract(some, self.center, out=made[:, :d])
            if self.factor is not None:
                made[:, :d] *= self.factor
            if law is not None:
                values, squares = some[:, self.is_number], made[:, d:-1]
                linear = values - self.center[self.is_number]
                linear *= law.slope
                # In place: most of the time goes by with memory, and not with arithmetic.
                np.square(values, out=squares)
                squares -= law.mean
                squares -= linear
                squares *= law.factor
        return rows

    # The way back --------------------------------------------------------------------------------

    def without(self, names: Sequence[str]) -> Rows:
        """The same without some features, or with all of them if none would be left.

        Rows have no squares.
        """
        assert self.schema is not None
        kept = np.array([name not in names for name in self.names])
        if not kept.any():
            return self
        center = None if self.center is None else self.center[kept]
        factor = None if self.factor is None else self.factor[kept]
        schema = _keep_features(self.schema, kept.tolist(), self.bits)
        return replace(self, source=schema, center=center, factor=factor)

    @property
    def units(self) -> tuple[Floats, Floats]:
        """What turns weights of centered plain columns into coefficients of the table's columns.

        Returns the factor of each weight, and what each column is centered at, in the units of the
        table.
        """
        assert self.center is not None
        low, width = np.zeros_like(self.center), np.ones_like(self.center)
        low[self.is_number], width[self.is_number] = self.number_bounds
        factor = np.ones_like(self.center) if self.factor is None else self.factor
        return factor / width, low + self.center * width

    @property
    def number_scales(self) -> Floats:
        """What a number of the table is multiplied with to be one between 0 and 1."""
        return 1 / self.number_bounds[1]

    @property
    def number_bounds(self) -> tuple[Floats, Floats]:
        """The lower bounds of the numbers, and how far the upper ones are from them."""
        if isinstance(self.source, Bounds):
            if self.bits:
                return np.zeros(0), np.zeros(0)
            low, high = self.source.low[self.is_number], self.source.high[self.is_number]
            return low, high - low
        numbers = [kind for kind, _ in self.parts if isinstance(kind, Number)]
        kinds = [] if self.bits else [kind for kind in numbers if not kind.is_bit]
        low = np.array([kind.low for kind in kinds], np.float64)
        return low, np.array([kind.high for kind in kinds], np.float64) - low

    def to_units(self, weights: ArrayLike) -> Predictor:
        """The linear function with these weights on centered rows, in the units of the table.

        weights: one for each feature, and that of the constant last; there are no squares.
        """
        *slopes, constant = np.asarray(weights, np.float64)
        factors, centers = self.units
        coefficients = np.array(slopes) * factors
        intercept = float(constant - coefficients @ centers)
        return Predictor(intercept, dict(zip(self.names, coefficients.tolist(), strict=True)))


@dataclass(frozen=True)
class PlainRows:
    """The plain rows of an array of records, made where they are asked for: no copy of all of them.

    Attributes:
        unit: The map to plain rows.
        records: The records, shape (n, columns).
    """

    unit: Rows
    records: NDArray[Any]

    def __len__(self) -> int:
        """The number of records."""
        return len(self.records)

    def __getitem__(self, some: slice) -> Floats:
        """The rows of some records."""
        return self.unit(self.records[some])


def blocks_of(n: int) -> list[slice]:
    """The places of n rows, so many at a time that what is made of them meanwhile is small."""
    return [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]


def _keep_features(schema: Schema, kept: Sequence[bool], bits: bool) -> Schema:
    """The schema with some of its features alone, one at least."""
    flags = iter(kept)
    columns: dict[str, Any] = {}
    for name, kind in schema.columns.items():
        width = 0 if isinstance(kind, Ignore) else count_features(kind, bits)
        chosen = list(itertools.islice(flags, width))
        columns[name] = kind
        if not any(chosen):
            columns[name] = Ignore()
        elif isinstance(kind, Category):
            values = tuple(itertools.compress(kind.values, chosen))
            columns[name] = Category(values, kind.missing if kind.missing in values else None)
        elif isinstance(kind, Number) and bits:
            cuts = tuple(itertools.compress(kind.cuts, chosen))
            columns[name] = Number(kind.low, kind.high, cuts, kind.missing)
    return Schema(schema.label, columns)
