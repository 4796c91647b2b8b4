"""Rows of a table, scaled by a public schema to norm at most 1, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.numbers import finite_vector
from .._support.types import Floats
from .._support.validate import instance
from ..data.column_kinds import Ignore, Number, count_floats
from ..data.schema import Schema
from ..exceptions import ShapeError
from ..learners.unit_rows import Predictor


@dataclass(frozen=True)
class ScaledFeatures:
    """A public map from the rows of a table to records of norm at most 1, as adaptation takes them.

    Numbers go from the schema's bounds to [-1, 1], and a category becomes bits, of which at most
    one is 1. With a constant at the end, all are divided by one public length, the root of the
    number of columns with the constant.

    Attributes:
        schema: Public data.Schema of the table.

    Raises:
        ParameterError: schema is no data.Schema.

    Examples:
        >>> from hdp_fast.adaptation import ScaledFeatures
        >>> from hdp_fast.data import Category, Label, Number, Schema
        >>> columns = {"age": Number(0, 100), "sex": Category(("female", "male"))}
        >>> features = ScaledFeatures(Schema(Label("income", bounds=(0, 10)), columns))
        >>> features.rows({"age": [100], "sex": ["male"]}).round(3).tolist()
        [[0.577, 0.0, 0.577, 0.577]]
        >>> features.predictor([0.5, 0.0, 0.0, 0.0]).coefficients["age"].__round__(4)
        0.0289
    """

    schema: Schema

    def __post_init__(self) -> None:
        """Validate the schema."""
        instance("schema", self.schema, Schema, "a data.Schema")

    def rows(self, table: Any) -> Floats:
        """Makes the records of a table.

        Args:
            table: A data.Table or a data frame, as data.read_frame takes it, of m rows with every
                column of the schema. Numbers beyond their bounds are clipped.

        Returns:
            A float64 array of shape (m, d), each row of norm at most 1, with the constant last.

        Raises:
            ParameterError: A column is missing. No value in a column raises anything.
        """
        numbers = np.array([number is not None for number in self._numbers()], np.float64)
        signed = self.schema.floats(table) * (1 + numbers) - numbers
        return np.column_stack([signed, np.ones(len(signed))]) / self._length()

    def labels(self, scores: ArrayLike) -> list[float] | list[int]:
        """Converts scores to labels of the table.

        Args:
            scores: Scores of m records by a model that has learned from labels in [-1, 1], as
                `schema.float_labels` makes them, shape (m,).

        Returns:
            A list of m numbers in the units of the label, or of 0 and 1 where the label is a rule.

        Raises:
            ShapeError: scores has not one dimension.
            ParameterError: An entry is no finite number.
        """
        scores = finite_vector("scores", scores)
        if self.schema.label.bounds is None:
            return [int(score >= 0) for score in scores]
        middle, half = self._units()
        return [float(middle + half * score) for score in scores]

    def predictor(self, coef: ArrayLike) -> Predictor:
        """Converts the coefficients of a model to the units of the table.

        Args:
            coef: The d coefficients of records as `rows` makes them.

        Returns:
            A named tuple of an intercept and coefficients, by the schema's float_names: what one
            more of a number, or a category, adds to the label.

        Raises:
            ShapeError: coef has not shape (d,).
            ParameterError: An entry is no finite number.
        """
        values, d = finite_vector("coef", coef), len(self.schema.float_names) + 1
        if len(values) != d:
            raise ShapeError(f"coef has {len(values):,} entries, but the records have {d:,}")
        middle, half = self._units()
        *weights, intercept = (half * values / self._length()).tolist()
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
