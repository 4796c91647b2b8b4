"""Kinds of columns and the rule of a label, read off a public table whose values may be shown."""

from __future__ import annotations

import numpy as np

from .._support.types import Floats
from .._support.validate import guess, refuse, shorten
from ..exceptions import ParameterError
from .column_kinds import Category, Ignore, Label, Number, label_bits
from .columns import CategoryColumn, Column, NumberColumn

# A public column with more distinct texts holds names or free text rather than categories.
_MOST_VALUES = 64


def check_label(label: Label, column: Column) -> None:
    """Refuses a rule that tells no rows of a public column apart; an error may show its values."""
    where = f"column {label.column!r} of the public table"
    if label.positive is not None:
        for value in label.positive:
            if value not in column.texts:
                refuse("positive", value, f"{where} never holds it{guess(value, column.texts)}")
    else:
        where = f"{where} holds {_describe_numbers(label, column)}"
    if label.bounds is not None:
        numbers = column.row_numbers()
        if not ((label.bounds[0] <= numbers) & (numbers <= label.bounds[1])).any():
            refuse("bounds", label.bounds, where)
        return
    kinds = set(label_bits(label, column).tolist())
    if len(kinds) == 1:
        name = "positive" if label.positive else "above"
        refuse(
            name,
            getattr(label, name),
            f"{where}, so that {'every' if 1 in kinds else 'no'} row has label 1",
        )


def _describe_numbers(label: Label, column: Column) -> str:
    """Which numbers a public column holds; ParameterError if it holds none."""
    numbers = column.row_numbers()
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        rule = f"column {label.column!r} of the public table holds no numbers"
        text = next(filter(None, column.texts), "")
        raise ParameterError(f"{rule}, but texts such as {shorten(text)}: name them as positive")
    return f"numbers from {numbers.min():g} to {numbers.max():g}"


def guess_kind(column: Column, cuts: int) -> Category | Number | Ignore:
    """What a public column is taken for."""
    declared = isinstance(column, CategoryColumn)
    numbers = None if declared else _finite_numbers(column)
    if numbers is not None and len(numbers):
        return _place_cuts(numbers, cuts) if numbers.min() < numbers.max() else Ignore()
    present = [text for text in column.texts if text]
    if not 2 <= len(present) <= _MOST_VALUES:
        return Ignore()
    return Category(tuple(present if declared else sorted(present)))


def _finite_numbers(column: Column) -> Floats | None:
    """The numbers of the rows that have a value; None if a value is no finite number."""
    if isinstance(column, NumberColumn):
        numbers = column.row_numbers()
        numbers = numbers[~np.isnan(numbers)]
        return numbers if np.isfinite(numbers).all() else None
    numbers, empty = column.numbers(), np.array([not text for text in column.texts])
    if not np.isfinite(numbers[~empty]).all():
        return None
    numbers = numbers[column.codes]
    return numbers[~np.isnan(numbers)]


def _place_cuts(values: Floats, cuts: int) -> Number:
    shares = np.arange(1, cuts + 1) / (cuts + 1)
    # Cuts are values of the column itself, so that those of whole numbers are whole. With a cut at
    # the least value the bit would be 1 in every row.
    quantiles = np.unique(np.quantile(values, shares, method="higher"))
    low, high = float(values.min()), float(values.max())
    inner = quantiles[quantiles > low] if (quantiles > low).any() else np.array([high])
    return Number(low, high, tuple(inner.tolist()))
