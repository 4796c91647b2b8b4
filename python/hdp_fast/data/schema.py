"""Public schemas: what is known of a table's columns in advance, and how rows become features.

A schema is public. It is written by hand, or made from a file about no one who is to be protected,
and never from the private records. Private values that it does not foresee raise nothing and warn
of nothing: a category outside its list has all bits 0, and a number outside its bounds is clipped.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Bits, Floats
from .._support.validate import (
    from_json,
    guess,
    instance,
    nonnegative_int,
    refuse,
    sequence,
    shorten,
    take_form,
)
from ..exceptions import ParameterError
from .codebook import read_variables
from .column_kinds import (
    Category,
    Ignore,
    Label,
    Number,
    check_label,
    default_entry,
    feature_writer,
    guess_kind,
    label_bits,
    label_floats,
    name_bits,
    require_label,
    to_fields,
)
from .columns import Column
from .frames import read_frame, take_columns
from .hypothesis_words import Bit, Features, describe
from .table import Table

_FORMAT = {"format": "hdp_fast.schema", "version": 1}
# Rows whose features are made at once.
_BLOCK_ROWS = 1 << 10
# Columns that write to them side by side.
_WRITERS = 8
_WRITER = "hdp-fast schema (Schema.to_json)"


@dataclass(frozen=True)
class Schema:
    """How the rows of a table become labeled features.

    Attributes:
        label: The rule of the label, a `Label`; None for features alone, which statistics and
            transformers need, and estimators of scikit-learn, to whom labels come separately.
        columns: `Category`, `Number` or `Ignore` by the column's name; at least one is a feature.
            Other columns of a table are not read.

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

    label: Label | None = None
    columns: Mapping[str, Category | Number | Ignore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a schema without features, and one that predicts the label from itself."""
        if self.label is not None:
            rule = "a Label or None: columns without a label are Schema(columns={...})"
            instance("label", self.label, Label, rule)
        if not isinstance(self.columns, Mapping):
            refuse("columns", self.columns, "it must be a dict of columns by their names")
        for name, kind in self.columns.items():
            if not isinstance(kind, Category | Number | Ignore):
                refuse(f"columns[{name!r}]", kind, "it must be a Category, a Number or Ignore")
        if not self._features():
            raise ParameterError("columns hold no feature, but one must not be ignored")
        if self.label is not None and self.label.column in self._features():
            raise ParameterError(f"label = {self.label.column!r}, but it must not be a feature too")

    @property
    def names(self) -> list[str]:
        """What each bit states, such as "sex=female" or "age>=40"."""
        return [text for name, kind in self._features().items() for text in name_bits(kind, name)]

    @property
    def float_names(self) -> list[str]:
        """What each float feature is: a category's bit, or a number's column scaled to [0, 1]."""
        return [
            text
            for name, kind in self._features().items()
            for text in ([name] if isinstance(kind, Number) else name_bits(kind, name))
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
            ParameterError: The schema has no label, the column is missing, the label has bounds,
                so that it is a number, or the column's type is bool or an integer type and no
                positive text spells an integer. No value in the column raises anything.

        Cost:
            O(m).
        """
        label = require_label(self.label)
        if label.bounds is not None:
            rule = "bounds make it a number, but here it must be 0 or 1: positive or above"
            raise ParameterError(f"label = {label.column!r}: {rule}")
        return label_bits(label, _read_label(label, table))

    def float_labels(self, table: Any) -> Floats:
        """Makes the labels as numbers in [-1, 1], scaled from their bounds; 0 becomes -1.

        Args:
            table: A Table or a data frame with the label's column.

        Returns:
            An array of float64 (m,).

        Raises:
            ParameterError: The schema has no label, or the column is missing. No value in it raises
                anything.

        Cost:
            O(m).
        """
        label = require_label(self.label)
        return label_floats(label, _read_label(label, table))

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
            for cut, text in zip(_cuts_of(kind), name_bits(kind, name), strict=True)
        ]
        return Features(bits, self.float_names, unit=True)

    def to_json(self) -> str:
        """Writes the schema as a JSON object, with the version of its format.

        Returns:
            The text.
        """
        label = {} if self.label is None else {"label": to_fields(self.label)}
        columns = {name: to_fields(kind) for name, kind in self.columns.items()}
        return json.dumps({**_FORMAT, **label, "columns": columns}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Reads a schema that `to_json` or a person wrote.

        The object is {"format": "hdp_fast.schema", "version": 1, "label": ..., "columns": {name:
        ...}}. Format and version may be left out, and so may the label, where there are features
        alone. The label is {"column": name} with one of "positive": [value, ...], "above": number
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
        if not _is_schema(fields):
            rule = "or have columns, each an object with a kind"
            raise ParameterError(
                f"schema is other JSON, but it must be what {_WRITER} wrote, {rule}"
            )
        fields = {**_FORMAT, **fields}
        take_form("schema", fields, _FORMAT)
        # Beyond this point it is a schema, which is public: an error may say what is wrong.
        try:
            columns = {
                name: _make_column(name, **values) for name, values in fields.pop("columns").items()
            }
            label = Label(**fields.pop("label")) if "label" in fields else None
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
        cls, public: Any, label: Label | None = None, *, cuts: int = 4, labeled: bool = True
    ) -> Schema:
        """Makes a schema from a PUBLIC table or data frame, whose content everybody may know.

        Bounds, cut points and categories are read off the records without protection. That is right
        for a public table. Made from the private one, the schema publishes its extreme values,
        its quantiles and its rare categories, as exact as they stand there, and no epsilon covers
        that: then write the schema by hand or from a codebook (`from_codebook`).

        A column of numbers gets its least and its largest value as bounds, and cut points at equal
        shares of the rows. A column of at most 64 different texts gets them as categories. Constant
        columns and columns of more texts are ignored. Where a column's dtype is categorical, its
        categories are taken as they are declared, even if they are numbers or do not occur.

        Args:
            public: The public table, or a data frame as `read_frame` takes it.
            label: The rule of the label, whose column is no feature; None for features alone.
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
        if label is not None and not isinstance(label, Label):
            refuse("label", label, "it must be a Label or None")
        table = public if isinstance(public, Table) else read_frame(public, public=True)
        if label is not None and labeled:
            check_label(label, table.column(label.column))
        kinds = {name: guess_kind(column, cuts) for name, column in table.columns.items()}
        if label is not None:
            kinds.pop(label.column, None)
        return cls(label, kinds)

    @classmethod
    def from_codebook(cls, codebook: Any) -> Schema:
        """Makes a schema from a codebook: a public table with a row for each variable.

        Its columns, of which only the first must be there, are:

        - name: the name of the variable, which is that of a column of the private table.
        - kind: number, category or ignore; needless where low and high, or categories are there.
        - low, high: the bounds of a number.
        - categories: the names of a category, with | between them.
        - cuts: the cut points of a number, with | between them; empty for three even ones.
        - missing: what a missing cell counts as.
        - label: empty for a feature. The label has its rule there: the values that count as 1, with
          | between them, "above" and a number, or "between" for a number between low and high.
        - description: not read.

        Args:
            codebook: The codebook, a Table or a data frame as `read_frame` takes it, such as
                `read_table` makes of a file. It must not be made from the private records.

        Returns:
            The schema, without a label where no row has one.

        Raises:
            ParameterError: The codebook has another column or no name, names a variable twice or
                two labels, describes no feature, or says of a variable what it cannot be.
            ShapeError: Two columns of the frame have one name.

        Examples:
            >>> from hdp_fast.data import Schema
            >>> codebook = {
            ...     "name": ["age", "home", "bought"],
            ...     "low": [18, None, None],
            ...     "high": [90, None, None],
            ...     "categories": [None, "own|rent", None],
            ...     "label": [None, None, "yes"],
            ... }
            >>> schema = Schema.from_codebook(codebook)
            >>> schema.names
            ['age>=36', 'age>=54', 'age>=72', 'home=own', 'home=rent']
            >>> schema.label
            Label(column='bought', positive=('yes',), above=None, bounds=None)
        """
        return cls(*read_variables(take_columns("codebook", codebook, None)))

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
        if not isinstance(defaults, Mapping):
            refuse("defaults", defaults, "it must be a dict of public values by names of columns")
        for name, default in defaults.items():
            if name not in features:
                refuse("defaults", name, f"it must be a feature{guess(str(name), features)}")
            try:
                columns[name] = dataclasses.replace(features[name], **default_entry(default))
            except ParameterError as error:
                raise ParameterError(f"column {name!r}: {error}") from None
        return Schema(self.label, columns)

    def _make(self, table: Any, names: Sequence[str], dtype: Any) -> NDArray[Any]:
        """The features of these names, as bits or scaled to floats."""
        table, scaled = take_columns("table", table, self.reads), dtype == np.float64
        features, width = np.zeros((table.rows, len(names)), dtype), 0
        kinds = list(self._features().items())
        # A writer may hold its column as numbers: not all at a time.
        for some in (kinds[at : at + _WRITERS] for at in range(0, len(kinds), _WRITERS)):
            parts = []
            for name, kind in some:
                count = 1 if scaled and isinstance(kind, Number) else len(_cuts_of(kind))
                write = feature_writer(kind, table.column(name), scaled)
                parts.append((slice(width, width + count), write))
                width += count
            # A processor's cache holds the rows of a block while each column writes to them.
            for start in range(0, table.rows, _BLOCK_ROWS):
                block = features[start : start + _BLOCK_ROWS]
                for columns, write in parts:
                    write(start, start + len(block), block[:, columns])
        return features

    def _features(self) -> dict[str, Category | Number]:
        return {n: kind for n, kind in self.columns.items() if not isinstance(kind, Ignore)}


def _read_label(label: Label, table: Any) -> Column:
    return take_columns("table", table, [label.column]).column(label.column)


def _is_schema(fields: Any) -> bool:
    """Whether it looks like a schema, so that errors may show what stands in it."""
    if not isinstance(fields, dict):
        return False
    columns = fields.get("columns")
    if "format" in fields:
        return columns is not None or fields["format"] != _FORMAT["format"]
    kinds = list(columns.values()) if isinstance(columns, dict) else []
    return bool(kinds) and all(isinstance(kind, dict) and "kind" in kind for kind in kinds)


def _cuts_of(kind: Category | Number) -> Sequence[float | None]:
    """The cut of each bit; None for each bit of a category."""
    return kind.cuts if isinstance(kind, Number) else [None] * len(kind.values)


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
