"""Rows of a table, scaled by a public schema to norm at most 1, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._support.types import Floats
from ..data.column_kinds import Ignore, Number, count_floats
from ..data.schema import Schema
from ..data.table import Table
from ..learners.unit_rows import Predictor


@dataclass(frozen=True)
class ScaledFeatures:
    """Numbers in [-1, 1], bits of categories and a constant, all divided by one public length.

    At most one of the bits of a category is 1. The length is therefore the root of the number of
    columns, the constant included.

    Attributes:
        schema: Schema of the table.
    """

    schema: Schema

    def rows(self, table: Table) -> Floats:
        """The features of shape (m, d), each row of norm at most 1, with the constant last."""
        numbers = np.array([number is not None for number in self._numbers()], np.float64)
        signed = self.schema.floats(table) * (1 + numbers) - numbers
        return np.column_stack([signed, np.ones(len(signed))]) / self._length()

    def labels(self, scores: Floats) -> list[float] | list[int]:
        """Converts scores to labels: numbers in the units of the label, or 0 and 1."""
        if self.schema.label.bounds is None:
            return [int(score >= 0) for score in scores]
        middle, half = self._units()
        return [float(middle + half * score) for score in scores]

    def predictor(self, coef: Floats) -> Predictor:
        """The predictor, in the table's units, with these d coefficients on the scaled rows."""
        middle, half = self._units()
        *weights, intercept = (half * coef / self._length()).tolist()
        slopes = []
        for weight, number in zip(weights, self._numbers(), strict=True):
            if number is not None:
                width = number.high - number.low
                intercept -= weight * (number.low / width + number.high / width)
                weight *= 2 / width
            slopes.append(weight)
        names = self.schema.float_names
        return Predictor(middle + intercept, dict(zip(names, slopes, strict=True)))

    def _length(self) -> float:
        kinds = self.schema.columns.values()
        return math.sqrt(1 + sum(not isinstance(kind, Ignore) for kind in kinds))

    def _numbers(self) -> list[Number | None]:
        """For each feature its column if that is a number; None for the bits of categories."""
        numbers: list[Number | None] = []
        for kind in self.schema.columns.values():
            if not isinstance(kind, Ignore):
                numbers += [kind] if isinstance(kind, Number) else [None] * count_floats(kind)
        return numbers

    def _units(self) -> tuple[float, float]:
        """The label of a score of 0, and how much a score of 1 adds to it."""
        low, high = self.schema.label.bounds or (-1.0, 1.0)
        return low / 2 + high / 2, high / 2 - low / 2
