"""Rows of a table, centered by public or released means, and the way back to its units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.types import Floats
from ..data.schema import Category, Ignore, Number, Schema
from ..data.table import Table
from .scaled_features import Predictor


@dataclass(frozen=True, eq=False)
class CenteredFeatures:
    """The float features of a schema, less a center, and a constant.

    Noisy gradients learn little along directions in which all rows agree, and a bit that is nearly
    always 0 or 1 adds to the norm of rows without adding to what they tell. Both are much less so
    where the means are taken off.

    Attributes:
        schema: Schema of the table.
        center: A number in [0, 1] for each of the schema's float features, public or released: one
            half where nothing is known.
    """

    schema: Schema
    center: Floats

    @property
    def norm_bound(self) -> float:
        """The root of a bound on the mean squared norm of rows whose means are the center.

        Longer rows are shrunk to it before a gradient is taken. Features in [0, 1] of mean m have a
        variance of at most m (1 - m).
        """
        return math.sqrt(1 + float((self.center * (1 - self.center)).sum()))

    def rows(self, table: Table) -> Floats:
        """The features of shape (m, d + 1), with the constant last."""
        centered = self.schema.floats(table) - self.center
        return np.column_stack([centered, np.ones(len(centered))])

    def without(self, names: Sequence[str]) -> CenteredFeatures:
        """The same without some features, or with all of them if none would be left."""
        dropped = [name in names for name in self.schema.float_names]
        if all(dropped):
            return self
        kept = np.flatnonzero(~np.array(dropped))
        return CenteredFeatures(leave_out(self.schema, dropped), self.center[kept])

    def predictor(self, weights: Floats) -> Predictor:
        """The linear function with these d + 1 weights on the rows, in the table's units."""
        *slopes, intercept = weights.tolist()
        coefficients = []
        for slope, middle, number in zip(slopes, self.center, self._numbers(), strict=True):
            intercept -= slope * float(middle)
            if number is not None:
                slope /= number.high - number.low
                intercept -= slope * number.low
            coefficients.append(slope)
        return Predictor(intercept, dict(zip(self.schema.float_names, coefficients, strict=True)))

    def _numbers(self) -> list[Number | None]:
        """For each feature its column if that is a number; None for the bits of categories."""
        numbers: list[Number | None] = []
        for kind in self.schema.columns.values():
            if not isinstance(kind, Ignore):
                numbers += [kind] if isinstance(kind, Number) else [None] * len(kind.values)
        return numbers


def leave_out(schema: Schema, dropped: Sequence[bool]) -> Schema:
    """The schema without some of its float features, of which one at least is left.

    dropped: whether each of the schema's float_names is left out.
    """
    flags = iter(dropped)
    columns: dict[str, Any] = {}
    for name, kind in schema.columns.items():
        if isinstance(kind, Ignore):
            columns[name] = kind
        elif isinstance(kind, Number):
            columns[name] = Ignore() if next(flags) else kind
        else:
            kept = tuple(value for value in kind.values if not next(flags))
            columns[name] = Category(kept) if kept else Ignore()
    return Schema(schema.label, columns)
