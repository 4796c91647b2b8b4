"""What hdp-fast label is asked to do: points, labels and their texts, all of it public."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.validate import refuse
from ..data.column_kinds import Ignore, Label
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError
from ..labels.pool import PoolTask
from .appended_column import Append, appender, name_new_column
from .output import is_standard
from .table_commands import read_schema
from .tables import read, read_with_content, sign_of

# What the other of two labels is called, in letters as large as the one's.
_OPPOSITES = {"1": "0", "yes": "no", "true": "false"}
_STYLES = (str.lower, str.upper, str.title)


@dataclass(frozen=True, eq=False)
class LabelTask:
    """What is to be labeled and how.

    Attributes:
        schema: of the features.
        classes: the labels that --classes lists, or None.
        texts: what the schema's rule makes of a row, the text of a negative one first.
        label: the column of PRIVATE that holds them.
        column: the column they are written to, which PUBLIC lacks.
        public: PUBLIC, and points: its features.
        append: makes the labeled file of texts.
        read_private: reads PRIVATE.
    """

    schema: Schema
    classes: list[str] | None
    texts: tuple[str, str]
    label: str
    column: str
    public: Table
    points: NDArray[np.float64]
    append: Append
    read_private: Callable[[], Table]

    @cached_property
    def private(self) -> Table:
        """PRIVATE, which the standard input holds only once.

        Raises: ParameterError.
        """
        return self.read_private()

    @property
    def label_set(self) -> list[str]:
        """All labels there are."""
        return sorted(self.classes or self.texts)

    def pool(self, arguments: argparse.Namespace) -> PoolTask:
        """What is public of the labeling of all of PUBLIC, as the arguments ask for it.

        Raises:
            ParameterError: Fewer rows may be asked than there are.
        """
        rows = len(self.points)
        queries = rows if arguments.queries is None else arguments.queries
        if queries < rows:
            raise ParameterError(f"--queries = {queries:,}, but PUBLIC has {rows:,} rows")
        options = passed(arguments, ("max_unstable", "beta", "agreement", "table", "threshold"))
        return PoolTask.of(
            self.points,
            classes=self.label_set,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            queries=queries,
            members=arguments.members,
            options=options,
        )

    def labels(self, private: Table) -> NDArray[np.str_]:
        """The label of each row of PRIVATE, or of PUBLIC.

        Raises: ParameterError, which says neither in which row nor what else stands there.
        """
        if self.classes is None:
            return np.array(self.texts)[self.schema.labels(private)]
        return np.array(self.classes)[number_labels(private, self.label, self.classes)]


def read_task(arguments: argparse.Namespace) -> LabelTask:
    """What the arguments ask for, with PUBLIC and the schema read.

    Raises: ParameterError.
    """
    schema = read_schema(arguments.schema)
    label = arguments.label or schema.label.column
    classes = None if arguments.classes is None else split_classes(arguments.classes)
    if classes is None and label != schema.label.column:
        rule = f"the schema's label is {schema.label.column!r}, unless there are --classes"
        raise ParameterError(f"--label = {label!r}, but {rule}")
    if not isinstance(schema.columns.get(label, Ignore()), Ignore):
        raise ParameterError(f"--label = {label!r}, but the schema has it for a feature")
    if classes is not None and arguments.negative is not None:
        refuse("--negative", arguments.negative, "--classes lists all labels there are")
    table, content = _read_public(arguments)
    column = name_new_column("PUBLIC", label, "private", table.columns)
    append = appender(arguments.public, column, sign_of(arguments), content)
    texts = _texts_of(schema.label, table, arguments.negative)
    return LabelTask(
        schema=schema,
        classes=classes,
        texts=texts,
        label=label,
        column=column,
        public=table,
        points=schema.floats(table),
        append=append,
        read_private=lambda: read(arguments.private, arguments),
    )


def passed(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of the arguments that have a value."""
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def split_classes(classes: str) -> list[str]:
    """The labels that --classes lists.

    Raises: ParameterError.
    """
    texts = [text.strip() for text in classes.split(",")]
    if "" in texts:
        refuse("--classes", classes, "it must be texts with commas between")
    return texts


def number_labels(private: Table, name: str, classes: list[str]) -> NDArray[np.int64]:
    """The place among the classes of the label of each row.

    Raises: ParameterError, which says neither in which row nor what else stands there.
    """
    column = private.column(name)
    places = {text: place for place, text in enumerate(classes)}
    numbers = np.array([places.get(text, -1) for text in column.texts], np.int64)[column.codes]
    if (numbers < 0).any():
        rule = "every row must hold one of --classes"
        raise ParameterError(f"column {name!r} holds something else, but {rule}")
    return numbers


def _read_public(arguments: argparse.Namespace) -> tuple[Table, bytes | None]:
    """PUBLIC, and what the standard input held if it is that.

    Raises: ParameterError.
    """
    if is_standard(arguments.public) and is_standard(arguments.private):
        raise ParameterError("PRIVATE and PUBLIC are -, but the standard input holds one table")
    return read_with_content(arguments.public, arguments)


def _texts_of(label: Label, public: Table, negative: str | None) -> tuple[str, str]:
    """What is written of a negative row and of a positive one, from public facts.

    Raises: ParameterError.
    """
    if label.positive is None:
        if negative is not None:
            refuse("--negative", negative, "the schema's label is a number, written as 0 and 1")
        return "0", "1"
    if negative is not None and (not negative.strip() or negative in label.positive):
        refuse("--negative", negative, "it must be a text that the schema does not call positive")
    positive = " or ".join(label.positive)
    return negative or _other_text(label, public) or _opposite(label.positive), positive


def _opposite(positive: tuple[str, ...]) -> str:
    """What a row that is none of these is called, where no file says it."""
    if len(positive) > 1:
        return "other"
    (text,) = positive
    if text.lower() not in _OPPOSITES:
        return f"not {text}"
    style = next((style for style in _STYLES if style(text) == text), str.lower)
    return style(_OPPOSITES[text.lower()])


def _other_text(label: Label, public: Table) -> str | None:
    """The one text beside positive ones in the public column, if that holds both kinds."""
    column = public.columns.get(label.column)
    texts = set() if column is None else set(column.texts) - {""}
    others = texts - set(label.positive or ())
    return others.pop() if len(others) == 1 < len(texts) else None
