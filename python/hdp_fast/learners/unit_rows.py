"""Records as rows of numbers in [0, 1], by public bounds or a public schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.numbers import floats, scale_to_unit
from .._support.types import Floats
from .._support.validate import numbers, refuse
from ..data.column_kinds import Ignore, Number, count_floats
from ..data.frames import make_table
from ..data.schema import Schema
from ..exceptions import ParameterError, ShapeError


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
class UnitRows:
    """A public map from a record to a row of numbers in [0, 1].

    Attributes:
        low: Lower bound of each column; None with a schema.
        high: Upper bound of each column, above `low`; None with a schema.
        schema: Schema of a table; None for columns of numbers.
        is_number: For each column of the rows, whether it is a number and no category's bit.
        sources: Number of columns that the rows are made of. Two rows differ by at most 1 in a
            number, and by at most 1 in at most two bits of a category.
        bits: Whether the rows are the schema's bits, with one for each cut of a number, all of
            which may differ.
    """

    low: Floats | None
    high: Floats | None
    schema: Schema | None
    is_number: NDArray[np.bool_]
    sources: int
    bits: bool = False

    @classmethod
    def within(cls, bounds: ArrayLike, columns: int) -> UnitRows:
        """The map for columns of numbers within these bounds: one pair for all, or one for each."""
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
        return cls(low, high, None, np.ones(columns, bool), columns)

    @classmethod
    def spanned_by(cls, rows: Floats) -> UnitRows:
        """The map for the bounds of these rows, which are read off and so not protected."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        width = np.where(high > low, high - low, np.maximum(np.abs(low), 1.0))
        return cls(low, low + width, None, np.ones(len(low), bool), len(low))

    @classmethod
    def of_schema(cls, schema: Schema, *, bits: bool = False) -> UnitRows:
        """The map to the float features of a schema, or to its bits."""
        if not isinstance(schema, Schema):
            refuse("schema", schema, "it must be a data.Schema or None")
        used = [kind for kind in schema.columns.values() if not isinstance(kind, Ignore)]
        if bits:
            return cls(None, None, schema, np.zeros(len(schema.names), bool), len(used), True)
        flags = [isinstance(kind, Number) for kind in used for _ in range(count_floats(kind))]
        return cls(None, None, schema, np.array(flags), len(used))

    @property
    def names(self) -> list[str]:
        """What each column of the rows is, by the schema."""
        assert self.schema is not None
        return self.schema.names if self.bits else self.schema.float_names

    @property
    def even_means(self) -> Floats:
        """The means of rows that are spread evenly: over each interval, and over all categories."""
        if self.schema is None:
            return np.full(len(self.is_number), 0.5)
        kinds = [kind for kind in self.schema.columns.values() if not isinstance(kind, Ignore)]
        sizes = [count_floats(kind) for kind in kinds]
        shares = [0.5 if isinstance(kind, Number) else 1 / count_floats(kind) for kind in kinds]
        return np.repeat(shares, sizes)

    def __call__(self, X: Any) -> Floats:
        """The rows of records, which are validated."""
        if self.schema is not None:
            table = make_table("X", X, self.schema)
            return floats(self.schema.bits(table)) if self.bits else self.schema.floats(table)
        assert self.low is not None
        assert self.high is not None
        return scale_to_unit(X, self.low, self.high)
