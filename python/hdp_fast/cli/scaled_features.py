"""Rows of a table, scaled by a public schema so that none is longer than 1, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._support.types import Floats
from ..data.schema import Ignore, Number, Schema
from ..data.table import Table


class Predictor(NamedTuple):
    """A linear predictor in the units of the table.

    Attributes:
        intercept: what is predicted where all features are 0.
        coefficients: by the schema's float_names; what 1 more of a number, or a category, adds.
    """

    intercept: float
    coefficients: dict[str, float]


@dataclass(frozen=True)
class ScaledFeatures:
    """Numbers in [-1, 1], bits of categories and a constant, all divided by one public length.

    A row has one 1 at most among the bits of a category, so that the length is the root of the
    number of columns, the constant included.

    Attributes:
        schema: of the table.
    """

    schema: Schema

    def rows(self, table: Table) -> Floats:
        """The features (m, d), none longer than 1, the constant last."""
        numbers = np.array([number is not None for number in self._numbers()], np.float64)
        signed = self.schema.floats(table) * (1 + numbers) - numbers
        return np.column_stack([signed, np.ones(len(signed))]) / self._length()

    def labels(self, scores: Floats) -> list[float] | list[int]:
        """Convert scores to labels: numbers in the units of the label, or 0 and 1."""
        if self.schema.label.bounds is None:
            return [int(score >= 0) for score in scores]
        middle, half = self._units()
        return [float(middle + half * score) for score in scores]

    def predictor(self, coef: Floats) -> Predictor:
        """The predictor of rows whose coefficients these are (d,)."""
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
        """The column of each feature that is a number; None for the bits of categories."""
        numbers: list[Number | None] = []
        for kind in self.schema.columns.values():
            if not isinstance(kind, Ignore):
                numbers += [kind] if isinstance(kind, Number) else [None] * len(kind.values)
        return numbers

    def _units(self) -> tuple[float, float]:
        """The label of a score of 0, and how much a score of 1 adds to it."""
        low, high = self.schema.label.bounds or (-1.0, 1.0)
        return low / 2 + high / 2, high / 2 - low / 2
