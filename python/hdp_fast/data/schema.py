"""What a public file, or its author, says of a table's columns: how rows become features.

A schema is public: it is written by hand, or from a file about nobody who is to be protected, and
never from the private records. Private values that it does not foresee raise nothing and warn of
nothing: a category outside its list has all bits 0, a number outside its bounds is clipped.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.types import Bits, Floats
from .._support.validate import (
    distinct_texts,
    finite_number,
    from_json,
    guess,
    interval,
    nonnegative_int,
    ordered_pair,
    refuse,
    sequence,
    shorten,
)
from ..exceptions import ParameterError
from .hypothesis_words import Bit, Features, describe
from .table import Column, Table

_FORMAT = {"format": "hdp_fast.schema", "version": 1}
# A public column of texts with more distinct ones holds names or free text, not categories.
_MOST_VALUES = 64
_WRITER = "hdp-fast schema (Schema.to_json)"


@dataclass(frozen=True)
class Category:
    """A column of names, each from a public list; one bit a name.

    Attributes:
        values: the names, at least one, each another.
    """

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no list of names."""
        object.__setattr__(self, "values", distinct_texts("values", self.values))

    def _names(self, column: str) -> list[str]:
        return [f"{column}={value}" for value in self.values]

    def _bits(self, column: Column) -> Bits:
        return np.array([[text == v for v in self.values] for text in column.texts], np.uint8)

    def _floats(self, column: Column) -> Floats:
        return self._bits(column).astype(np.float64)

    def _json(self) -> dict[str, Any]:
        return {"kind": "category", "values": list(self.values)}


@dataclass(frozen=True)
class Number:
    """A column of numbers between public bounds; one bit, value >= cut, for each cut.

    What is no number has all bits 0, and counts as low where numbers are asked for.

    Attributes:
        low: lower bound, finite.
        high: upper bound, finite, above low.
        cuts: finite, increasing; none means the three that quarter the interval of the bounds.
    """

    low: float
    high: float
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse bounds and cuts in the wrong order."""
        low, high = interval(self.low, self.high)
        quarters = [low + quarter * (high - low) / 4 for quarter in (1, 2, 3)]
        cuts = [finite_number("cuts", cut) for cut in sequence("cuts", self.cuts)] or quarters
        if any(cut >= after for cut, after in itertools.pairwise(cuts)):
            refuse("cuts", self.cuts, "they must increase")
        for name, value in (("low", low), ("high", high), ("cuts", tuple(cuts))):
            object.__setattr__(self, name, value)

    def _names(self, column: str) -> list[str]:
        return [f"{column}>={cut:.12g}" for cut in self.cuts]

    def _bits(self, column: Column) -> Bits:
        return (column.numbers()[:, None] >= np.array(self.cuts)).astype(np.uint8)

    def _floats(self, column: Column) -> Floats:
        values = np.nan_to_num(column.numbers(), nan=self.low, posinf=self.high, neginf=self.low)
        return ((np.clip(values, self.low, self.high) - self.low) / (self.high - self.low))[:, None]

    def _json(self) -> dict[str, Any]:
        return {"kind": "number", "bounds": [self.low, self.high], "cuts": list(self.cuts)}


@dataclass(frozen=True)
class Ignore:
    """A column that is no feature.

    Attributes:
        none.
    """

    def _json(self) -> dict[str, Any]:
        return {"kind": "ignore"}


@dataclass(frozen=True)
class Label:
    """Which rows have label 1, or between which bounds a label lies that is a number.

    All other rows, those without a value included, have 0; what is no number counts as the lower
    bound.

    Attributes:
        column: its name.
        positive: the values that count as 1, or None.
        above: the number above which a value counts as 1, or None.
        bounds: finite, the lower one first, or None; exactly one of the three is given.
    """

    column: str
    positive: tuple[str, ...] | None = None
    above: float | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse a label without a rule, or with two."""
        if not isinstance(self.column, str):
            refuse("label", self.column, "it must be a column's name")
        if sum(part is not None for part in (self.positive, self.above, self.bounds)) != 1:
            parts = f"positive = {self.positive}, above = {self.above} and bounds = {self.bounds}"
            raise ParameterError(f"{parts}, but exactly one of them must be given")
        if self.positive is not None:
            object.__setattr__(self, "positive", distinct_texts("positive", self.positive))
        elif self.above is not None:
            object.__setattr__(self, "above", finite_number("above", self.above))
        else:
            object.__setattr__(self, "bounds", ordered_pair("bounds", self.bounds))

    def _bits(self, column: Column) -> Bits:
        if self.above is not None:
            return (column.numbers() > self.above).astype(np.uint8)
        return np.array([text in (self.positive or ()) for text in column.texts], np.uint8)

    def _floats(self, column: Column) -> Floats:
        if self.bounds is None:
            return 2 * self._bits(column).astype(np.float64) - 1
        values: Floats = 2 * Number(*self.bounds)._floats(column)[:, 0] - 1
        return values

    def _json(self) -> dict[str, Any]:
        parts = {"above": self.above, "positive": self.positive, "bounds": self.bounds}
        return {"column": self.column, **{key: v for key, v in parts.items() if v is not None}}


@dataclass(frozen=True)
class Schema:
    """How the rows of a table become labeled features.

    Attributes:
        label: which rows have label 1, or its bounds where it is a number.
        columns: Category, Number or Ignore by the column's name; other columns are not looked at.
    """

    label: Label
    columns: Mapping[str, Category | Number | Ignore]

    def __post_init__(self) -> None:
        """Refuse a schema without features, and one that predicts the label from itself."""
        for name, kind in self.columns.items():
            if not isinstance(kind, Category | Number | Ignore):
                refuse(f"columns[{name!r}]", kind, "it must be a Category, a Number or Ignore")
        if not self._features():
            raise ParameterError("columns hold no feature, but one must not be ignored")
        if self.label.column in self._features():
            raise ParameterError(f"label = {self.label.column!r}, but it must not be a feature too")

    @property
    def names(self) -> list[str]:
        """What each bit says, as "sex=female" or "age>=40"."""
        return [text for name, kind in self._features().items() for text in kind._names(name)]

    @property
    def float_names(self) -> list[str]:
        """What each of the numbers is: a category's bit, or a column from its bounds to [0, 1]."""
        return [
            text
            for name, kind in self._features().items()
            for text in ([name] if isinstance(kind, Number) else kind._names(name))
        ]

    def bits(self, table: Table) -> Bits:
        """The features as bits.

        table: has every column of the schema that is not ignored. Returns uint8 (m, d), column j as
        names[j] says.

        Raises: ParameterError for a missing column; nothing for any value in it.
        Cost: O(m d).
        Source: none.
        """
        columns = [(kind, table.column(name)) for name, kind in self._features().items()]
        return np.concatenate([kind._bits(c)[c.codes] for kind, c in columns], axis=1)

    def floats(self, table: Table) -> Floats:
        """The features as numbers: a bit for each category, a number scaled from its bounds.

        table: as bits. Returns float64 (m, k), all in [0, 1].

        Raises: ParameterError for a missing column; nothing for any value in it.
        Cost: O(m k).
        Source: none.
        """
        columns = [(kind, table.column(name)) for name, kind in self._features().items()]
        return np.concatenate([kind._floats(c)[c.codes] for kind, c in columns], axis=1)

    def labels(self, table: Table) -> Bits:
        """The labels, 0 or 1.

        table: has the label's column. Returns uint8 (m,).

        Raises: ParameterError for a missing column, and where the label is a number; nothing for
            any value in it.
        Cost: O(m).
        Source: none.
        """
        if self.label.bounds is not None:
            rule = "bounds make it a number, but here it must be 0 or 1: positive or above"
            raise ParameterError(f"label = {self.label.column!r}: {rule}")
        column = table.column(self.label.column)
        return self.label._bits(column)[column.codes]

    def float_labels(self, table: Table) -> Floats:
        """The labels as numbers in [-1, 1]: -1 and 1 for 0 and 1, or scaled from their bounds.

        table: has the label's column. Returns float64 (m,).

        Raises: ParameterError for a missing column; nothing for any value in it.
        Cost: O(m).
        Source: none.
        """
        column = table.column(self.label.column)
        return self.label._floats(column)[column.codes]

    def words(self, hypothesis: Mapping[str, Any]) -> str:
        """A hypothesis about the features in words, as "sex=female and not age>=40".

        hypothesis: as hdp_fast.learners describes it; a conjunction over the bits, a halfspace over
        the numbers, or a vote of such. What follows from the rest, as age>=30 from age>=40, is left
        out; one that never changes its mind is "always 0" or "always 1"; a vote of which more than
        half are one hypothesis is that hypothesis.

        Raises: ParameterError for anything else.
        Cost: that of the text.
        Source: none.
        """
        try:
            return describe(hypothesis, self._bit_features())
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            rule = f"it must be a conjunction, a halfspace or a vote over {len(self.names)} bits"
            raise ParameterError(f"hypothesis is something else, but {rule}") from None

    def _bit_features(self) -> Features:
        """What the bits are of, for words of hypotheses."""
        bits = [
            Bit(name, cut, text)
            for name, kind in self._features().items()
            for cut, text in zip(_cuts_of(kind), kind._names(name), strict=True)
        ]
        return Features(bits, self.float_names, unit=True)

    def to_json(self) -> str:
        """The schema as a JSON object, with the version of its format.

        Raises: nothing.
        Cost: that of the text.
        Source: none.
        """
        columns = {name: kind._json() for name, kind in self.columns.items()}
        return json.dumps({**_FORMAT, "label": self.label._json(), "columns": columns}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema that to_json or somebody by hand wrote.

        text: a JSON object {"format": "hdp_fast.schema", "version": 1, "label": {"column": name,
        and "positive": [value, ...], "above": number or "bounds": [low, high]}, "columns": {name:
        {"kind": "category", "values": [value, ...]} or {"kind": "number", "bounds": [low, high],
        "cuts": [number, ...]}, one of the two optional, or {"kind": "ignore"}}}.

        Raises: ParameterError when it is not one.
        Cost: that of the text.
        Source: none.
        """
        return from_json("schema", text, _WRITER, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Schema:
        form = {key: fields.pop(key) for key in _FORMAT}
        if form != _FORMAT:
            rule = f"schema must have format and version {list(_FORMAT.values())}"
            raise ParameterError(f"{rule}: use the hdp_fast that wrote it")
        # Beyond this point it is a schema, which is public: an error may say what is wrong.
        try:
            columns = {
                name: _make_column(name, **values) for name, values in fields.pop("columns").items()
            }
            label = Label(**fields.pop("label"))
            if fields:
                raise ValueError(f"{sorted(fields)} mean nothing")
        except ParameterError as error:
            raise ParameterError(f"schema: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            rule = f"it must be what {_WRITER} wrote"
            raise ParameterError(f"schema: {type(error).__name__}: {error}, but {rule}") from None
        return cls(label, columns)

    @classmethod
    def from_public(
        cls, table: Table, label: Label, *, cuts: int = 4, labeled: bool = True
    ) -> Schema:
        """A schema from a PUBLIC table: what it holds may be known to everybody.

        table: a column of numbers gets its least and largest as bounds, and cut points at equal
        shares of the rows. A column of at most 64 texts gets them as categories. Constant columns
        and those of more texts are ignored. label: its column is no feature. cuts: how many cut
        points at most, at least 1. labeled: whether the table must have the label's column, of
        which a misspelt name would make a feature; there must then be rows of label 1 and others,
        or numbers between the label's bounds.

        Raises: ParameterError when no column can be a feature, the label's is missing, or what the
            label says of it holds of no row, or of every row.
        Cost: O(m log m) for each column.
        Source: none.
        """
        if nonnegative_int("cuts", cuts) == 0:
            raise ParameterError("cuts = 0, but it must be at least 1")
        if labeled:
            _check_label(label, table.column(label.column))
        features = {name: c for name, c in table.columns.items() if name != label.column}
        return cls(label, {name: _guess(column, cuts) for name, column in features.items()})

    def _features(self) -> dict[str, Category | Number]:
        return {n: kind for n, kind in self.columns.items() if not isinstance(kind, Ignore)}


def _cuts_of(kind: Category | Number) -> Sequence[float | None]:
    """The cut of each bit; None for those of a category."""
    return kind.cuts if isinstance(kind, Number) else [None] * len(kind.values)


def _check_label(label: Label, column: Column) -> None:
    """Refuses a rule that tells no rows of a public column apart; its values may be shown."""
    where = f"column {label.column!r} of the public table"
    if label.positive is not None:
        for value in label.positive:
            if value not in column.texts:
                refuse("positive", value, f"{where} never holds it{guess(value, column.texts)}")
    else:
        where = f"{where} holds {_describe_numbers(label, column)}"
    if label.bounds is not None:
        numbers = column.numbers()
        if not ((label.bounds[0] <= numbers) & (numbers <= label.bounds[1])).any():
            refuse("bounds", label.bounds, where)
        return
    kinds = set(label._bits(column)[np.unique(column.codes)].tolist())
    if len(kinds) == 1:
        name = "positive" if label.positive else "above"
        refuse(
            name,
            getattr(label, name),
            f"{where}, so that {'every' if 1 in kinds else 'no'} row has label 1",
        )


def _describe_numbers(label: Label, column: Column) -> str:
    """Which numbers a public column holds.

    Raises: ParameterError when there are none.
    """
    numbers = column.numbers()
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        rule = f"column {label.column!r} of the public table holds no numbers"
        text = next(filter(None, column.texts), "")
        raise ParameterError(f"{rule}, but texts such as {shorten(text)}: name them as positive")
    return f"numbers from {numbers.min():g} to {numbers.max():g}"


def _make_column(name: str, kind: str, **fields: Any) -> Category | Number | Ignore:
    if kind == "category":
        return Category(**fields)
    if kind == "ignore":
        return Ignore(**fields)
    if kind != "number":
        rule = "it must be one of category, number, ignore"
        raise ParameterError(f"kind = {shorten(kind)} of column {name!r}, but {rule}")
    cuts = list(sequence("cuts", fields.pop("cuts", ())))
    if "bounds" not in fields and len(cuts) < 2:
        raise ParameterError(f"column {name!r} must have bounds, or two cuts to take them from")
    low, high = fields.pop("bounds", cuts[:1] + cuts[-1:])
    return Number(low, high, tuple(cuts), **fields)


def _guess(column: Column, cuts: int) -> Category | Number | Ignore:
    present = [place for place, text in enumerate(column.texts) if text]
    numbers = column.numbers()
    if len(present) > 1 and np.isfinite(numbers[present]).all():
        rows = numbers[column.codes]
        return _place_cuts(rows[~np.isnan(rows)], cuts)
    if 2 <= len(present) <= _MOST_VALUES:
        return Category(tuple(sorted(column.texts[place] for place in present)))
    return Ignore()


def _place_cuts(values: Floats, cuts: int) -> Number:
    shares = np.arange(1, cuts + 1) / (cuts + 1)
    # Values of the column itself, so that a cut of whole numbers is one; at the least value, the
    # bit would be 1 for everybody.
    quantiles = np.unique(np.quantile(values, shares, method="higher"))
    low, high = float(values.min()), float(values.max())
    inner = quantiles[quantiles > low] if (quantiles > low).any() else np.array([high])
    return Number(low, high, tuple(inner.tolist()))
