"""Kinds of columns and of labels: what a schema makes of the cells of one column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.numbers import scale_to_unit
from .._support.types import Bits, Floats
from .._support.validate import (
    distinct_texts,
    finite_number,
    guess,
    interval,
    ordered_pair,
    refuse,
    sequence,
    shorten,
)
from ..exceptions import ParameterError
from .columns import CategoryColumn, Column, NumberColumn

# What the other of two labels is called, in letters as large as the one's.
_OPPOSITES = {"1": "0", "yes": "no", "true": "false"}
_STYLES = (str.lower, str.upper, str.title)

# Sets the features of the rows from one place to another.
Write = Callable[[int, int, NDArray[Any]], None]


@dataclass(frozen=True)
class Category:
    """A column whose values are names from a public list; each name becomes a bit.

    Attributes:
        values: The names, at least one, all different. Spaces around them are dropped.
        missing: The name that a missing cell counts as, one of `values`. None means none of them:
            all bits are 0, as those of a value outside the list are.

    Raises:
        ParameterError: `values` is no list of texts, is empty, or lists a text twice. `missing` is
            no name in it, or another one than the empty name, if that is in it.

    Examples:
        >>> from hdp_fast.data import Category, Label, Schema
        >>> Schema(Label("income", above=50), {"sex": Category(("female", "male"))}).names
        ['sex=female', 'sex=male']
    """

    values: tuple[str, ...]
    missing: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no list of names."""
        object.__setattr__(self, "values", distinct_texts("values", self.values))
        if self.missing is None:
            return
        if not isinstance(self.missing, str) or self.missing.strip() not in self.values:
            refuse("missing", self.missing, "it must be one of the column's values")
        object.__setattr__(self, "missing", self.missing.strip())
        if self.missing and "" in self.values:
            refuse("missing", self.missing, "values list '', which missing cells have")

    def _names(self, column: str) -> list[str]:
        return [f"{column}={value}" for value in self.values]

    def _places(self, column: Column) -> NDArray[np.intp]:
        """The place of each row's value among the names; -1 where it is none of them."""
        places = {value: place for place, value in enumerate(self.values)}
        if self.missing is not None:
            places[""] = places[self.missing]
        return np.array([places.get(text, -1) for text in column.texts], np.intp)[column.codes]

    def _features(self, column: Column, scaled: bool) -> Write:
        """What sets the features of some rows, which are 0, one for each name."""
        places = self._places(column)

        def write(start: int, end: int, bits: NDArray[Any]) -> None:
            rows = np.flatnonzero(places[start:end] >= 0)
            bits[rows, places[start:end][rows]] = 1

        return write

    def _json(self) -> dict[str, Any]:
        return {"kind": "category", "values": list(self.values), **default_entry(self.missing)}


@dataclass(frozen=True)
class Number:
    """A column of numbers between public bounds; each cut becomes a bit, value >= cut.

    As a float feature the column is scaled from its bounds to [0, 1], and a number beyond them
    counts as the nearer one. With bounds (0, 1) and 1 as the only cut it is a bit for linear
    learners, which do not standardize it and make no square of it. They take columns of bool or an
    integer type with bounds (0, 1) for bits, whatever the cuts are.

    Attributes:
        low: Lower bound, finite.
        high: Upper bound, finite and above `low`.
        cuts: Cut points, finite and increasing. If there are none, the three that quarter the
            interval of the bounds are taken.
        missing: The number that a cell counts as which is missing or holds no number, between the
            bounds. None means that all its bits are 0, and that it counts as `low` among the float
            features.

    Raises:
        ParameterError: A bound or a cut is not finite, or they are not in order. `missing` lies
            outside the bounds.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> age = Number(0, 100, missing=40)
        >>> age.cuts
        (25.0, 50.0, 75.0)
        >>> Schema(Label("income", above=50), {"age": age}).floats({"age": [30, None]}).tolist()
        [[0.3], [0.4]]
    """

    low: float
    high: float
    cuts: tuple[float, ...] = ()
    missing: float | None = None

    def __post_init__(self) -> None:
        """Refuse bounds and cuts in the wrong order."""
        low, high = interval(self.low, self.high)
        quarters = [low + quarter * (high - low) / 4 for quarter in (1, 2, 3)]
        cuts = [finite_number("cuts", cut) for cut in sequence("cuts", self.cuts)] or quarters
        if any(cut >= after for cut, after in itertools.pairwise(cuts)):
            refuse("cuts", self.cuts, "they must increase")
        for name, value in (("low", low), ("high", high), ("cuts", tuple(cuts))):
            object.__setattr__(self, name, value)
        if self.missing is not None:
            default = finite_number("missing", self.missing)
            if not low <= default <= high:
                refuse("missing", self.missing, f"it must lie between {low:g} and {high:g}")
            object.__setattr__(self, "missing", default)

    @property
    def is_bit(self) -> bool:
        """Whether it is 0 or 1: its bounds are (0, 1), and its only cut is 1."""
        return (self.low, self.high, self.cuts) == (0.0, 1.0, (1.0,))

    def _names(self, column: str) -> list[str]:
        return [f"{column}>={cut:.12g}" for cut in self.cuts]

    def _numbers(self, column: Column) -> Floats:
        """The number of each row; NaN where there is none, and nothing that it counts as."""
        values = column.row_numbers()
        return values if self.missing is None else np.where(np.isnan(values), self.missing, values)

    def _features(self, column: Column, scaled: bool) -> Write:
        """What sets the features of some rows, one for each cut, or the number alone, scaled."""
        values, cuts = self._scale(column) if scaled else self._numbers(column), np.array(self.cuts)

        def write(start: int, end: int, features: NDArray[Any]) -> None:
            rows = values[start:end, None]
            features[...] = rows if scaled else rows >= cuts

        return write

    def _scale(self, column: Column) -> Floats:
        values = self._numbers(column)
        return scale_to_unit(values, np.array(self.low), np.array(self.high))

    def _json(self) -> dict[str, Any]:
        bounds = {"bounds": [self.low, self.high], "cuts": list(self.cuts)}
        return {"kind": "number", **bounds, **default_entry(self.missing)}


def to_fields(kind: Category | Number | Ignore | Label) -> dict[str, Any]:
    """What JSON keeps of a column, or of the rule of labels."""
    return kind._json()


def name_bits(kind: Category | Number, column: str) -> list[str]:
    """The names of the bits that a column becomes."""
    return kind._names(column)


def feature_writer(kind: Category | Number, column: Column, scaled: bool) -> Write:
    """What sets the features of some rows: bits, or with `scaled` a number alone, scaled."""
    return kind._features(column, scaled)


def label_bits(label: Label, column: Column) -> Bits:
    """The label of each row, 0 or 1."""
    return label._bits(column)


def label_floats(label: Label, column: Column) -> Floats:
    """The label of each row from -1 to 1."""
    return label._floats(column)


def count_features(kind: Category | Number, bits: bool = False) -> int:
    """How many features a column becomes: its names, or for a number one, or with bits its cuts."""
    if isinstance(kind, Number):
        return len(kind.cuts) if bits else 1
    return len(kind.values)


def default_entry(missing: str | float | None) -> dict[str, Any]:
    """What missing cells count as, as a part of the JSON; nothing where there is no default."""
    return {} if missing is None else {"missing": missing}


@dataclass(frozen=True)
class Ignore:
    """A column that is no feature.

    Examples:
        >>> from hdp_fast.data import Ignore, Label, Number, Schema
        >>> columns = {"name": Ignore(), "age": Number(0, 100, (40,))}
        >>> Schema(Label("income", above=50), columns).names
        ['age>=40']
    """

    def _json(self) -> dict[str, Any]:
        return {"kind": "ignore"}


@dataclass(frozen=True)
class Label:
    """Which rows have label 1, or between which bounds a label that is a number lies.

    Exactly one of `positive`, `above` and `bounds` is passed. All rows to which the rule does not
    apply have label 0, and so have those without a value. With `bounds`, a value that is no number
    counts as the lower bound.

    Attributes:
        column: Name of the label's column.
        positive: The values that count as 1, texts, all different; None for another rule. Those of
            a column of type bool are "1" and "0".
        above: The number above which a value counts as 1; None for another rule.
        bounds: The lower and the upper bound of a label that is a number, finite; None for another
            rule.

    Raises:
        ParameterError: Not exactly one rule is passed, or one is malformed.

    Examples:
        >>> from hdp_fast.data import Label
        >>> Label("income", positive=(">50K",))
        Label(column='income', positive=('>50K',), above=None, bounds=None)
        >>> Label("income", bounds=(0, 200_000)).bounds
        (0.0, 200000.0)
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
            return (column.row_numbers() > self.above).astype(np.uint8)
        if column.holds_integers and not any(map(_spells_integer, self.positive or ())):
            # The type alone, which is public, says that label 1 cannot occur, whatever the rows.
            where = f"column {self.column!r} is of bool or an integer type"
            rule = f"{where}: true is spelled 1, false 0"
            refuse("positive", self.positive, rule)
        positive = [text in (self.positive or ()) for text in column.texts]
        return np.array(positive, np.uint8)[column.codes]

    def _floats(self, column: Column) -> Floats:
        if self.bounds is None:
            return 2 * self._bits(column).astype(np.float64) - 1
        values: Floats = 2 * Number(*self.bounds)._scale(column) - 1
        return values

    def _json(self) -> dict[str, Any]:
        parts = {"above": self.above, "positive": self.positive, "bounds": self.bounds}
        return {"column": self.column, **{key: v for key, v in parts.items() if v is not None}}


def require_label(label: Label | None) -> Label:
    """The label of a schema, which may have none.

    Raises: ParameterError if it has none.
    """
    if label is None:
        rule = 'one is needed here: {"label": {"column": NAME, "positive": [VALUE, ...]}} in JSON'
        raise ParameterError(f"schema has features alone and no label, but {rule}")
    return label


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


def label_texts(
    label: Label, public: Mapping[str, Column], negative: str | None
) -> tuple[str, str]:
    """What is written of a negative row and of a positive one, from public facts.

    Raises: ParameterError.
    """
    if label.positive is None:
        if negative is not None:
            refuse("negative", negative, "the schema's label is a number, written as 0 and 1")
        return "0", "1"
    if negative is not None and (not negative.strip() or negative in label.positive):
        refuse("negative", negative, "it must be a text that the schema does not call positive")
    positive = " or ".join(label.positive)
    return negative or _other_text(label, public) or _opposite(label.positive), positive


def _spells_integer(text: str) -> bool:
    """Whether a cell of an integer type may have this text, which is empty where one is missing."""
    return not text or text.removeprefix("-").isdigit()


def _opposite(positive: tuple[str, ...]) -> str:
    """What a row that is none of these is called, where no file says it."""
    if len(positive) > 1:
        return "other"
    (text,) = positive
    if text.lower() not in _OPPOSITES:
        return f"not {text}"
    style = next((style for style in _STYLES if style(text) == text), str.lower)
    return style(_OPPOSITES[text.lower()])


def _other_text(label: Label, public: Mapping[str, Column]) -> str | None:
    """The one text beside positive ones in the public column, if that holds both kinds."""
    column = public.get(label.column)
    texts = set() if column is None else set(column.texts) - {""}
    others = texts - set(label.positive or ())
    return others.pop() if len(others) == 1 < len(texts) else None
