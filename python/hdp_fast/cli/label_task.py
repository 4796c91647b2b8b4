"""What hdp-fast label is asked to do, and where results go: looked at before anything is paid."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.lazy import name_package
from .._support.validate import refuse
from ..data.column_kinds import Ignore, label_texts, require_label
from ..data.columns import place_among
from ..data.frames import read_frame
from ..data.schema import Schema
from ..data.table import Table, suffix_of
from ..exceptions import ParameterError
from .output import check_outputs, is_standard
from .parser import name_flags, split_classes
from .tables import (
    Append,
    appender,
    check_printable,
    name_new_column,
    read_parts,
    read_schema,
    read_with_content,
    sign_of,
)

if TYPE_CHECKING:
    from ..data.chunks import Chunks
    from ..labels.pool import PoolTask


@dataclass(frozen=True)
class LabelPlaces:
    """Where results go; no output means the standard output."""

    output: Path | None
    record: Path
    plot: Path | None


def place_results(arguments: argparse.Namespace) -> LabelPlaces:
    """Where results go, checked before answers are paid for that could not be kept.

    Raises: ParameterError, ImportError.
    """
    places = _name_places(arguments)
    if not (arguments.plan or arguments.suggest):
        _check_new(places, arguments)
    return places


def _name_places(arguments: argparse.Namespace) -> LabelPlaces:
    public, output, record = arguments.public, arguments.output, arguments.record
    suffix = ".csv" if is_standard(public) else suffix_of(public)
    if is_standard(output):
        return LabelPlaces(None, _record_beside_print(arguments, suffix), arguments.plot)
    if output is None:
        stem = "public" if is_standard(public) else public.name.removesuffix(suffix)
        output = public.with_name(f"{stem}.labeled{suffix}")
        if is_standard(public) and not (arguments.plan or arguments.suggest):
            raise ParameterError("PUBLIC is the standard input, but then --output must be given")
    elif not output.name.endswith(suffix):
        refuse("--output", str(output), f"it must end in {suffix}, as PUBLIC does")
    return LabelPlaces(output, record or output.with_name(f"{output.name}.json"), arguments.plot)


def _record_beside_print(arguments: argparse.Namespace, suffix: str) -> Path:
    """Where the record goes if the table is printed, and nothing else can be.

    Raises: ParameterError.
    """
    check_printable("--output", suffix)
    if arguments.json and not (arguments.plan or arguments.suggest):
        raise ParameterError("--output - prints the table, but --json prints the record")
    if arguments.record is None and not (arguments.plan or arguments.suggest):
        raise ParameterError("--output - must go with --record FILE, for what protects the rows")
    record: Path | None = arguments.record
    return record or Path("-")


def _check_new(places: LabelPlaces, arguments: argparse.Namespace) -> None:
    from ..labels.saved_files import require_free  # Help and a wrong flag do not wait for it.

    new, save = [places.output, places.record, places.plot], arguments.save
    if save is not None and not save.exists():
        require_free(save)
        new.append(save)
    check_outputs(arguments, new)


@dataclass(frozen=True, eq=False)
class LabelTask:
    """What is to be labeled and how.

    Attributes:
        schema: of the features.
        classes: the labels that --classes lists, or None.
        texts: what the schema's rule makes of a row, the text of a negative one first; empty ones
            where classes are listed.
        label: the column of PRIVATE that holds them.
        column: the column they are written to, which PUBLIC lacks.
        public: PUBLIC, and points: its features.
        append: makes the labeled file of texts.
        read_private: reads PRIVATE, or finds its parts.
    """

    schema: Schema
    classes: list[str] | None
    texts: tuple[str, str]
    label: str
    column: str
    public: Table
    points: NDArray[np.float64]
    append: Append
    read_private: Callable[[], Table | Chunks]

    @cached_property
    def private(self) -> Table | Chunks:
        """PRIVATE, which the standard input holds only once; or its parts.

        Raises: ParameterError.
        """
        return self.read_private()

    @cached_property
    def rows(self) -> int:
        """The number of PRIVATE's rows; those of parts are counted by a pass.

        Raises: ParameterError.
        """
        private = self.private
        return private.rows if isinstance(private, Table) else private.count()

    @cached_property
    def columns(self) -> Collection[str]:
        """The names of PRIVATE's columns.

        Raises: ParameterError.
        """
        private = self.private
        return (private if isinstance(private, Table) else read_frame(private.peek())).columns

    def records(self) -> tuple[Any, Any]:
        """Features and labels of PRIVATE; Chunks of both, and None, where it lies in parts.

        Raises: ParameterError.
        """
        private = self.private
        if not isinstance(private, Table):
            how = self.schema, self.classes, self.texts, self.label
            return private.with_blocks(partial(_read_block, *how)), None
        return self.schema.floats(private), self.labels(private)

    @property
    def label_set(self) -> list[str]:
        """All labels there are."""
        return sorted(self.classes or self.texts)

    def pool(self, arguments: argparse.Namespace) -> PoolTask:
        """What is public of the labeling of all of PUBLIC, as the arguments ask for it.

        Raises:
            ParameterError: Fewer rows may be asked than there are.
        """
        from ..labels.pool import PoolTask

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
        return _read_labels(self.schema, self.classes, self.texts, self.label, private)


def _read_labels(
    schema: Schema, classes: list[str] | None, texts: tuple[str, str], label: str, private: Table
) -> NDArray[np.str_]:
    if classes is None:
        return np.array(texts)[schema.labels(private)]
    with name_flags("classes"):
        places = place_among(private.column(label), label, classes)
    return np.array(classes)[places]


def _read_block(
    schema: Schema, classes: list[str] | None, texts: tuple[str, str], label: str, block: Any
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Features and labels of some rows of PRIVATE, made where they are read."""
    table = read_frame(block)
    return schema.floats(table), _read_labels(schema, classes, texts, label, table)


def read_task(arguments: argparse.Namespace) -> LabelTask:
    """What the arguments ask for, with PUBLIC and the schema read.

    Raises: ParameterError.
    """
    schema = read_schema(arguments.schema, labeled=False)
    label = arguments.label or require_label(schema.label).column
    classes = None if arguments.classes is None else split_classes(arguments.classes)
    if classes is None and label != (usual := require_label(schema.label).column):
        rule = f"the schema's label is {usual!r}, unless there are --classes"
        raise ParameterError(f"--label = {label!r}, but {rule}")
    if not isinstance(schema.columns.get(label, Ignore()), Ignore):
        raise ParameterError(f"--label = {label!r}, but the schema has it for a feature")
    if classes is not None and arguments.negative is not None:
        refuse("--negative", arguments.negative, "--classes lists all labels there are")
    table, content = _read_public(arguments)
    column = name_new_column("PUBLIC", label, "private", table.columns)
    append = appender(arguments.public, column, sign_of(arguments), content)
    texts = "", ""  # none are used where there are classes
    if classes is None:
        with name_flags("negative"):
            texts = label_texts(require_label(schema.label), table.columns, arguments.negative)
    return LabelTask(
        schema=schema,
        classes=classes,
        texts=texts,
        label=label,
        column=column,
        public=table,
        points=schema.floats(table),
        append=append,
        # Owners of rows are read at once.
        read_private=lambda: read_parts(arguments, whole=arguments.ids is not None),
    )


def passed(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of the arguments that have a value."""
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _read_public(arguments: argparse.Namespace) -> tuple[Table, bytes | None]:
    """PUBLIC, and what the standard input held if it is that.

    Raises: ParameterError.
    """
    if is_standard(arguments.public) and any(map(is_standard, arguments.private)):
        raise ParameterError("PRIVATE and PUBLIC are -, but the standard input holds one table")
    return read_with_content(arguments.public, arguments)


# A chunk may hold fewer records than scikit-learn's five neighbors.
_KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic": ("sklearn.linear_model.LogisticRegression", {"max_iter": 1000}),
    "ridge": ("sklearn.linear_model.RidgeClassifier", {}),
    "tree": ("sklearn.tree.DecisionTreeClassifier", {}),
    "forest": ("sklearn.ensemble.RandomForestClassifier", {}),
    "neighbors": ("sklearn.neighbors.KNeighborsClassifier", {"n_neighbors": 1}),
    "naive-bayes": ("sklearn.naive_bayes.GaussianNB", {}),
}
RULE = f"{', '.join(_KNOWN)}, or a class as package.module.Class"


def check_name(name: str) -> None:
    """Refuses what is neither a known name nor the dotted path of a class; nothing is imported.

    Raises:
        ParameterError: The name is refused; the error lists the known names.
    """
    if name not in _KNOWN and "." not in name.strip("."):
        refuse("--estimator", name, f"it must be one of {RULE}")


def estimator(name: str) -> Any:
    """Makes an untrained classifier; a class of the caller's own is called without arguments.

    Nothing but a class with fit and predict is called.

    Raises:
        ParameterError: The name is refused by `check_name`, or its class cannot be imported or
            made, or has no fit and predict.
        ImportError: The name needs scikit-learn, which is not installed.
    """
    check_name(name)
    if name in _KNOWN:
        path, options = _KNOWN[name]
        try:
            return _load_class(path)(**options)
        except ImportError as error:
            raise name_package(error, "sklearn", f"--estimator {name}", "sklearn") from error
    rule = "it must be a class that can be imported and made"
    try:
        kind = _load_class(name)
    except Exception as error:
        refuse("--estimator", name, f"{rule} ({error!r})")
    learns = all(callable(getattr(kind, method, None)) for method in ("fit", "predict"))
    if not (isinstance(kind, type) and learns):
        refuse("--estimator", name, "it must be a class with fit and predict")
    try:
        return kind()
    except Exception as error:
        refuse("--estimator", name, f"{rule} ({error!r})")


def _load_class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
