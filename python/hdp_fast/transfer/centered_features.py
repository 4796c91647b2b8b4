"""Rows of a table, centered by public or released means, and the way back to its units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..data.column_kinds import Category, Ignore, Number
from ..data.schema import Schema
from ..data.table import Table
from ..learners.centered_rows import CenteredRows
from ..learners.descriptions import Description
from ..learners.unit_rows import Predictor, UnitRows


@dataclass(frozen=True, eq=False)
class CenteredFeatures:
    """The float features of a schema, or its bits, less a center, and a constant.

    Noisy gradients learn little along directions in which all rows agree, and a bit that is nearly
    always 0 or 1 adds to the norm of rows without adding to what they tell. Both are much less so
    where the means are taken off.

    Attributes:
        schema: Schema of the table.
        bits: Whether the features are the schema's bits, with one for each cut of a number.
        center: A number in [0, 1] for each of these features, public or released: one half where
            nothing is known.
    """

    schema: Schema
    bits: bool
    center: Floats

    @classmethod
    def around_middle(cls, schema: Schema, bits: bool) -> CenteredFeatures:
        """Those whose center is the middle of each feature."""
        features = cls(schema, bits, np.zeros(0))
        return cls(schema, bits, np.full(len(features.names), 0.5))

    @property
    def names(self) -> list[str]:
        """What each feature is."""
        return self.schema.names if self.bits else self.schema.float_names

    @property
    def norm_bound(self) -> float:
        """The root of a bound on the mean squared norm of rows whose means are the center.

        Longer rows are shrunk to it before a gradient is taken. Features in [0, 1] of mean m have a
        variance of at most m (1 - m).
        """
        return math.sqrt(1 + float((self.center * (1 - self.center)).sum()))

    @property
    def map(self) -> CenteredRows:
        """The map from the plain features to centered rows."""
        unit = UnitRows.of_schema(self.schema, bits=self.bits)
        return CenteredRows(unit, self.center, np.ones(len(self.center)))

    def rows(self, table: Table) -> Floats:
        """The features of shape (m, d + 1), with the constant last."""
        return self.map.scale(self.plain_rows(table))

    def plain_rows(self, table: Table) -> NDArray[Any]:
        """The features in [0, 1], of shape (m, d)."""
        return self.schema.bits(table) if self.bits else self.schema.floats(table)

    def without(self, names: Sequence[str]) -> CenteredFeatures:
        """The same without some features, or with all of them if none would be left."""
        dropped = [name in names for name in self.names]
        if all(dropped):
            return self
        kept = np.flatnonzero(~np.array(dropped))
        schema = leave_out(self.schema, dropped, bits=self.bits)
        return CenteredFeatures(schema, self.bits, self.center[kept])

    def describe(self, weights: Floats, kept: NDArray[np.bool_]) -> Description:
        """The linear function with these d + 1 weights, as devices are sent it.

        kept: which of the plain features that people hold these d are.
        """
        slopes = np.zeros(len(kept))
        slopes[kept] = weights[:-1]
        bias = float(weights[-1] - weights[:-1] @ self.center)
        return {"kind": "linear", "weights": slopes.tolist(), "bias": bias}

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
        return Predictor(intercept, dict(zip(self.names, coefficients, strict=True)))

    def _numbers(self) -> list[Number | None]:
        """For each feature its column if that is a scaled number; None for bits."""
        numbers: list[Number | None] = []
        for kind in self.schema.columns.values():
            if isinstance(kind, Number) and not self.bits:
                numbers.append(kind)
            elif not isinstance(kind, Ignore):
                numbers += [None] * _count(kind, self.bits)
        return numbers


def _count(kind: Category | Number, bits: bool) -> int:
    """How many features a column has."""
    if isinstance(kind, Category):
        return len(kind.values)
    return len(kind.cuts) if bits else 1


def leave_out(schema: Schema, dropped: Sequence[bool], *, bits: bool) -> Schema:
    """The schema without some of its bits or float features, of which one at least is left.

    dropped: whether each of them is left out.
    """
    flags = iter(dropped)
    columns: dict[str, Any] = {}
    for name, kind in schema.columns.items():
        if isinstance(kind, Ignore):
            columns[name] = kind
            continue
        kept = [not next(flags) for _ in range(_count(kind, bits))]
        if not any(kept):
            columns[name] = Ignore()
        elif isinstance(kind, Category):
            values = tuple(itertools.compress(kind.values, kept))
            columns[name] = Category(values, kind.missing if kind.missing in values else None)
        elif bits:
            cuts = tuple(itertools.compress(kind.cuts, kept))
            columns[name] = Number(kind.low, kind.high, cuts, kind.missing)
        else:
            columns[name] = kind
    return Schema(schema.label, columns)
