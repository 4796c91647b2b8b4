"""The features of a private model as JSON has them, and the way back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .._support.types import Floats
from ..data.schema import Schema
from .centered_rows import CenteredRows, Squares
from .unit_rows import UnitRows

# What a feature is centered and scaled by; the slope is that of a square.
_PARTS = ("mean", "slope", "factor")
# Nothing that a fit releases is larger.
LARGEST = 1e30


def name_columns(rows: CenteredRows) -> list[str]:
    """The names of the columns of centered rows, but the constant."""
    names = rows.unit.names
    if rows.squares is None:
        return names
    return [*names, *(f"{name} squared" for name in itertools.compress(names, rows.unit.is_number))]


def write_features(rows: CenteredRows, weights: Floats) -> list[dict[str, Any]]:
    """What each feature is centered and scaled by, with its weights."""
    columns = [rows.mean, np.zeros_like(rows.mean), rows.factor]
    if rows.squares is not None:
        of_squares = [getattr(rows.squares, part) for part in _PARTS]
        columns = [np.concatenate(pair) for pair in zip(columns, of_squares, strict=True)]
    parts = [name_columns(rows), *(column.tolist() for column in columns), weights.tolist()]
    names = ("name", *_PARTS, "weights")
    return [dict(zip(names, feature, strict=True)) for feature in zip(*parts, strict=True)]


def read_features(
    schema: Schema, features: list[dict[str, Any]], *, bits: bool
) -> tuple[CenteredRows, list[Any]]:
    """The rows, and the weights of each feature; both are taken out of the features.

    Raises: TypeError, KeyError or ValueError.
    """
    unit = UnitRows.of_schema(schema, bits=bits)
    names, d = [feature.pop("name") for feature in features], len(unit.names)
    columns = [read_numbers([feature.pop(part) for feature in features], 1) for part in _PARTS]
    squares = None
    if len(features) > d:
        squares = Squares(*(column[d:] for column in columns))
    rows = CenteredRows(unit, columns[0][:d], columns[2][:d], squares)
    weights = [feature.pop("weights") for feature in features]
    if names != name_columns(rows) or any(features):
        raise ValueError("features are not those of the schema, or have more entries")
    return rows, weights


def read_numbers(values: Any, dimensions: int) -> Floats:
    """The numbers, which must be finite.

    Raises: TypeError or ValueError.
    """
    flat = values if dimensions == 1 else list(itertools.chain.from_iterable(values))
    if not all(type(value) in (int, float) and abs(value) <= LARGEST for value in flat):
        raise ValueError("an entry is no number")
    array = np.array(values, np.float64)
    if array.ndim != dimensions:
        raise ValueError("rows differ in length")
    return array
