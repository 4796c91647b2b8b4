"""Rows of a table, scaled by a public schema to norm at most 1, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._support.numbers import finite_vector
from .._support.parameters import Checked, Rules
from .._support.types import Floats
from .._support.validate import instance
from ..data.column_kinds import require_label
from ..data.rows import Predictor, Rows
from ..data.schema import Schema
from ..exceptions import ShapeError


@dataclass(frozen=True)
class ScaledFeatures(Checked):
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

    RULES: ClassVar[Rules] = {"schema": partial(instance, kind=Schema, what="a data.Schema")}

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
        return self._rows.scale(self._rows.plain(table)) / self._length

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
        if require_label(self.schema.label).bounds is None:
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
        values, d = finite_vector("coef", coef), len(self._rows.names) + 1
        if len(values) != d:
            raise ShapeError(f"coef has {len(values):,} entries, but the records have {d:,}")
        middle, half = self._units()
        intercept, coefficients = self._rows.to_units(half * values / self._length)
        return Predictor(middle + intercept, coefficients)

    @property
    def _rows(self) -> Rows:
        """The records before they are divided: numbers in [-1, 1], bits, and the constant."""
        numbers = Rows(self.schema).is_number.astype(np.float64)
        return Rows(self.schema, center=numbers / 2, factor=1 + numbers)

    @property
    def _length(self) -> float:
        return math.sqrt(1 + self._rows.sources)

    def _units(self) -> tuple[float, float]:
        """The label of a score of 0, and how much a score of 1 adds to it."""
        low, high = require_label(self.schema.label).bounds or (-1.0, 1.0)
        return low / 2 + high / 2, high / 2 - low / 2
