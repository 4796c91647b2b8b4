"""Public schemas: what is known of a table's columns in advance, and how rows become features.

A schema is public. It is written by hand, or made from a file about nobody who is to be protected,
and never from the private records. Private values that it does not foresee raise nothing and warn
of nothing: a category outside its list has all bits 0, and a number outside its bounds is clipped.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    take_form,
)
from ..exceptions import ParameterError
from .columns import CategoryColumn, Column, NumberColumn
from .frames import read_frame, take_columns
from .hypothesis_words import Bit, Features, describe
from .table import Table

_FORMAT = {"format": "hdp_fast.schema", "version": 1}
# A public column with more distinct texts holds names or free text rather than categories.
_MOST_VALUES = 64
# Rows whose features are made at once.
_BLOCK_ROWS = 1 << 10
_WRITER = "hdp-fast schema (Schema.to_json)"

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
        return {"kind": "category", "values": list(self.values), **_default(self.missing)}


@dataclass(frozen=True)
class Number:
    """A column of numbers between public bounds; each cut becomes a bit, value >= cut.

    As a float feature the column is scaled from its bounds to [0, 1], and a number beyond them
    counts as the nearer one.

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
        values = np.nan_to_num(values, nan=self.low, posinf=self.high, neginf=self.low)
        # Private values neither warn nor raise, whatever numpy is set to do about rounding.
        with np.errstate(all="ignore"):
            width = self.high - self.low
            scaled: Floats = (np.clip(values, self.low, self.high) - self.low) / width
        return scaled

    def _json(self) -> dict[str, Any]:
        bounds = {"bounds": [self.low, self.high], "cuts": list(self.cuts)}
        return {"kind": "number", **bounds, **_default(self.missing)}


def _default(missing: str | float | None) -> dict[str, Any]:
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
        positive: The values that count as 1, texts, all different; None for another rule.
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


@dataclass(frozen=True)
class Schema:
    """How the rows of a table become labeled features.

    Attributes:
        label: The rule of the label, a `Label`.
        columns: `Category`, `Number` or `Ignore` by the column's name. Other columns of a table are
            not read.

    Raises:
        ParameterError: No column is a feature, a column is of another kind, or the label is a
            feature.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import Category, Label, Number, Schema, read_table
        >>> columns = {"sex": Category(("female", "male")), "age": Number(0, 100, (40,))}
        >>> schema = Schema(Label("income", above=50), columns)
        >>> np.savez("people.npz", sex=["female", "male"], age=[45, 25], income=[60, 20])
        >>> table = read_table("people.npz")
        >>> schema.bits(table).tolist(), schema.labels(table).tolist()
        ([[1, 0, 1], [0, 1, 0]], [1, 0])
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
        """What each bit states, such as "sex=female" or "age>=40"."""
        return [text for name, kind in self._features().items() for text in kind._names(name)]

    @property
    def float_names(self) -> list[str]:
        """What each float feature is: a category's bit, or a number's column scaled to [0, 1]."""
        return [
            text
            for name, kind in self._features().items()
            for text in ([name] if isinstance(kind, Number) else kind._names(name))
        ]

    @property
    def reads(self) -> list[str]:
        """Names of the columns that the features are made of."""
        return list(self._features())

    def bits(self, table: Any) -> Bits:
        """Makes the features as bits.

        Args:
            table: A Table or a data frame, as `read_frame` takes it, with every column of the
                schema that is not ignored.

        Returns:
            An array of uint8 (m, d), whose column j is what names[j] states.

        Raises:
            ParameterError: A column is missing. No value in a column raises anything.

        Cost:
            O(m d).
        """
        return self._make(table, self.names, np.uint8)

    def floats(self, table: Any) -> Floats:
        """Makes the features as numbers: bits for categories, and numbers scaled from their bounds.

        Args:
            table: A Table or a data frame, as `read_frame` takes it, with every column of the
                schema that is not ignored.

        Returns:
            An array of float64 (m, k), all in [0, 1], whose column j is what float_names[j] states.

        Raises:
            ParameterError: A column is missing. No value in a column raises anything.

        Cost:
            O(m k).
        """
        return self._make(table, self.float_names, np.float64)

    def labels(self, table: Any) -> Bits:
        """Makes the labels, 0 or 1.

        Args:
            table: A Table or a data frame with the label's column.

        Returns:
            An array of uint8 (m,).

        Raises:
            ParameterError: The column is missing, or the label has bounds, so that it is a number.
                No value in the column raises anything.

        Cost:
            O(m).
        """
        if self.label.bounds is not None:
            rule = "bounds make it a number, but here it must be 0 or 1: positive or above"
            raise ParameterError(f"label = {self.label.column!r}: {rule}")
        return self.label._bits(self._label_of(table))

    def float_labels(self, table: Any) -> Floats:
        """Makes the labels as numbers in [-1, 1], scaled from their bounds; 0 becomes -1.

        Args:
            table: A Table or a data frame with the label's column.

        Returns:
            An array of float64 (m,).

        Raises:
            ParameterError: The column is missing. No value in it raises anything.

        Cost:
            O(m).
        """
        return self.label._floats(self._label_of(table))

    def words(self, hypothesis: Mapping[str, Any]) -> str:
        """Puts a hypothesis about the features into words, such as "sex=female and not age>=40".

        What follows from the rest is left out, as age>=30 follows from age>=40. A hypothesis that
        is constant is "always 0" or "always 1". A vote in which more than half are one hypothesis
        is that hypothesis.

        Args:
            hypothesis: A description as `hdp_fast.learners` makes it: a conjunction, a parity or a
                number of literals over the bits, a halfspace or linear model over the float
                features, or a vote of such.

        Returns:
            The words.

        Raises:
            ParameterError: The hypothesis is something else, or is about other features.

        Examples:
            >>> from hdp_fast.data import Category, Label, Number, Schema
            >>> columns = {"sex": Category(("female", "male")), "age": Number(0, 100, (40,))}
            >>> schema = Schema(Label("income", above=50), columns)
            >>> schema.words({"kind": "conjunction", "features": [0, 2], "values": [1, 0],
            ...     "complement": False})
            'sex=female and not age>=40'
        """
        try:
            return describe(hypothesis, self._bit_features())
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            rule = f"it must be a conjunction, a halfspace or a vote over {len(self.names)} bits"
            raise ParameterError(f"hypothesis is something else, but {rule}") from None

    def _bit_features(self) -> Features:
        """The bits and the numbers, for the words of hypotheses."""
        bits = [
            Bit(name, cut, text)
            for name, kind in self._features().items()
            for cut, text in zip(_cuts_of(kind), kind._names(name), strict=True)
        ]
        return Features(bits, self.float_names, unit=True)

    def to_json(self) -> str:
        """Writes the schema as a JSON object, with the version of its format.

        Returns:
            The text.
        """
        columns = {name: kind._json() for name, kind in self.columns.items()}
        return json.dumps({**_FORMAT, "label": self.label._json(), "columns": columns}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Reads a schema that `to_json` or a person wrote.

        The object is {"format": "hdp_fast.schema", "version": 1, "label": ..., "columns": {name:
        ...}}. The label is {"column": name} with one of "positive": [value, ...], "above": number
        and "bounds": [low, high]. A column is {"kind": "category", "values": [value, ...]},
        {"kind": "number", "bounds": [low, high], "cuts": [number, ...]} with one of the two
        optional, or {"kind": "ignore"}. Categories and numbers may have "missing": value, which a
        missing cell counts as.

        Args:
            text: The JSON object.

        Returns:
            The schema.

        Raises:
            ParameterError: The text is something else.

        Examples:
            >>> from hdp_fast.data import Label, Number, Schema
            >>> schema = Schema(Label("income", above=50), {"age": Number(0, 100, (40,))})
            >>> Schema.from_json(schema.to_json()) == schema
            True
        """
        return from_json("schema", text, _WRITER, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Schema:
        take_form("schema", fields, _FORMAT)
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
        cls, public: Any, label: Label, *, cuts: int = 4, labeled: bool = True
    ) -> Schema:
        """Makes a schema from a PUBLIC table or data frame, whose content everybody may know.

        Bounds, cut points and categories are read off the records without protection. They must
        therefore be about nobody who is to be protected, and never be the private records or a
        part of them.

        A column of numbers gets its least and its largest value as bounds, and cut points at equal
        shares of the rows. A column of at most 64 different texts gets them as categories. Constant
        columns and columns of more texts are ignored. Where a column's dtype is categorical, its
        categories are taken as they are declared, even if they are numbers or do not occur.

        Args:
            public: The public table, or a data frame as `read_frame` takes it.
            label: The rule of the label; its column is no feature.
            cuts: How many cut points a column of numbers gets at most, at least 1.
            labeled: Whether the table must have the label's column. If so, a misspelt name cannot
                make a feature of that column. There must then be rows of label 1 and others, or
                numbers between the label's bounds.

        Returns:
            The schema.

        Raises:
            ParameterError: No column can be a feature, the label's column is missing, or the
                label's rule applies to no row or to every row.
            ShapeError: Two columns of the frame have one name, or there is no row.

        Cost:
            O(m log m) for each column.

        Examples:
            >>> from hdp_fast.data import Label, Schema
            >>> public = {"sex": ["female", "male"], "age": [45, 25], "income": [60, 20]}
            >>> Schema.from_public(public, Label("income", above=50), cuts=1).names
            ['sex=female', 'sex=male', 'age>=45']
        """
        if nonnegative_int("cuts", cuts) == 0:
            raise ParameterError("cuts = 0, but it must be at least 1")
        if not isinstance(label, Label):
            refuse("label", label, "it must be a Label")
        table = public if isinstance(public, Table) else read_frame(public, public=True)
        if labeled:
            _check_label(label, table.column(label.column))
        features = {name: c for name, c in table.columns.items() if name != label.column}
        return cls(label, {name: _guess(column, cuts) for name, column in features.items()})

    def with_missing(self, defaults: Mapping[str, str | float]) -> Schema:
        """Returns the schema with these public values for missing cells.

        A default is public, as the rest of the schema is. It comes from a codebook, from public
        records or from what everybody knows, and never from the private records.

        Args:
            defaults: By a column's name what its missing cells count as, one of the values of a
                category or a number between the bounds. Other columns stay as they are.

        Returns:
            The schema.

        Raises:
            ParameterError: A column is ignored or not there, or a default is no value of it.

        Examples:
            >>> from hdp_fast.data import Category, Label, Number, Schema
            >>> columns = {"sex": Category(("female", "male")), "age": Number(0, 100, (40,))}
            >>> schema = Schema(Label("income", above=50), columns).with_missing({"age": 40})
            >>> schema.bits({"sex": ["female", None], "age": [30, None]}).tolist()
            [[1, 0, 0], [0, 0, 1]]
        """
        columns, features = dict(self.columns), self._features()
        for name, default in defaults.items():
            if name not in features:
                refuse("defaults", name, f"it must be a feature{guess(str(name), features)}")
            try:
                columns[name] = dataclasses.replace(features[name], **_default(default))
            except ParameterError as error:
                raise ParameterError(f"column {name!r}: {error}") from None
        return Schema(self.label, columns)

    def _make(self, table: Any, names: Sequence[str], dtype: Any) -> NDArray[Any]:
        """The features of these names, as bits or scaled to floats."""
        table, scaled = take_columns("table", table, self.reads), dtype == np.float64
        parts, width = [], 0
        for name, kind in self._features().items():
            count = 1 if scaled and isinstance(kind, Number) else len(_cuts_of(kind))
            write = kind._features(table.column(name), scaled)
            parts.append((slice(width, width + count), write))
            width += count
        features = np.zeros((table.rows, len(names)), dtype)
        # A processor's cache holds the rows of a block while each column writes to them.
        for start in range(0, table.rows, _BLOCK_ROWS):
            block = features[start : start + _BLOCK_ROWS]
            for columns, write in parts:
                write(start, start + len(block), block[:, columns])
        return features

    def _label_of(self, table: Any) -> Column:
        return take_columns("table", table, [self.label.column]).column(self.label.column)

    def _features(self) -> dict[str, Category | Number]:
        return {n: kind for n, kind in self.columns.items() if not isinstance(kind, Ignore)}


def _cuts_of(kind: Category | Number) -> Sequence[float | None]:
    """The cut of each bit; None for each bit of a category."""
    return kind.cuts if isinstance(kind, Number) else [None] * len(kind.values)


def _check_label(label: Label, column: Column) -> None:
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
    kinds = set(label._bits(column).tolist())
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
