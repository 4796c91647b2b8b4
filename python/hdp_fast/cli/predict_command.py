"""The command hdp-fast predict: the labels of a public table, by a released model."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._support.parallel import run_jobs
from .._support.validate import refuse
from ..data import files
from ..data.column_kinds import require_label
from ..data.reading import parse_file
from ..data.schema import Schema
from ..data.sources import Reading, parts_of
from ..data.table import Table, suffix_of
from ..exceptions import ParameterError
from .copies import append_columns, copy_table
from .output import check_outputs, inform, is_standard, say_table, settle_output, show, write_figure
from .tables import (
    FILE_HELP,
    PARTS_HELP,
    Append,
    Values,
    add_delimiter,
    add_workers,
    appender,
    check_printable,
    is_file,
    name_new_column,
    open_workers,
    read,
    read_with_content,
    sign_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..learners import PrivateModel


def add_predict_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add = parser.add_argument
    add("--predict", type=Path, metavar="FILE", help="a table of rows to predict, no label needed")
    add("--predictions", type=Path, metavar="OUT", help="in FILE's format [FILE.predicted...]")


# A function from a table to the features that a predictor takes.
Features = Callable[[Table], Any]


class Places(NamedTuple):
    """The files that results are written to."""

    output: Path | None
    predictions: Path | None
    plot: Path | None

    def as_strings(self) -> dict[str, str | None]:
        """The names of the files, for the summary."""
        return {name: path and str(path) for name, path in self._asdict().items()}


class Request(NamedTuple):
    """Rows to predict: features, the name of the new column, and a function that appends it."""

    rows: Any
    column: str
    append: Append


def place_results(arguments: argparse.Namespace) -> Places:
    """Decides where --output, --predictions and --plot go, before anything is paid for.

    Raises:
        ParameterError: A result could not be kept there.
        ImportError: A figure is asked for and matplotlib is not installed.
    """
    predictions = _place_predictions(arguments)
    settle_output(arguments)
    places = Places(arguments.output, predictions, arguments.plot)
    if is_standard(predictions):
        if arguments.output is None:
            raise ParameterError("--predictions - must go with --output FILE, for the predictor")
        places = places._replace(predictions=None)
    check_outputs(arguments, places)
    return places


def _place_predictions(arguments: argparse.Namespace) -> Path | None:
    request, predictions = arguments.predict, arguments.predictions
    if request is None:
        if predictions is not None:
            raise ParameterError("--predictions must go with --predict")
        return None
    suffix = suffix_of(request)
    stem = request.name.removesuffix(suffix)
    place: Path = predictions or request.with_name(f"{stem}.predicted{suffix}")
    if is_standard(place):
        check_printable("--predictions", suffix)
    elif not place.name.lower().endswith(suffix.lower()):
        refuse("--predictions", str(place), f"it must end in {suffix}, as FILE does")
    return place


def read_request(
    arguments: argparse.Namespace, schema: Schema, features: Features
) -> Request | None:
    """Reads the rows of --predict, if it was passed; `features` makes their features.

    Raises:
        ParameterError: The file cannot be read, or does not fit the schema.
        ShapeError: The table has not the shape that it needs.
    """
    path, label = arguments.predict, require_label(schema.label).column
    if path is None:
        return None
    table = read(path, arguments, public=True)
    column = name_new_column(str(path), label, "predicted", table.columns)
    return Request(features(table), column, appender(path, column, sign_of(arguments)))


def deliver_predictor(
    arguments: argparse.Namespace,
    places: Places,
    summary: dict[str, Any],
    request: Request | None,
    predict: Callable[[Any], Values],
    draw: Callable[[], Figure] | None,
    words: Mapping[str, Any] | None = None,
) -> None:
    """Writes summary, predictions and figure to their files, then prints the summary.

    If the predictions are printed, the summary is not; it has a file then. The entries of the
    summary in `words` replace those for people.

    Raises:
        ParameterError: One of these fails.
    """
    column = None if request is None else request.column
    summary = {**summary, **places.as_strings(), "column": column}
    written = None
    try:
        if places.output is not None:
            files.write_atomically(places.output, (json.dumps(summary, indent=2) + "\n").encode())
            written = places.output
        if request is not None:
            _write_predictions(places, request.append(predict(request.rows)), written)
        if places.plot is not None and draw is not None:
            write_figure(places.plot, draw())
    finally:
        # The result is paid for, and a full disk must not take it along.
        if written is None or not is_standard(arguments.predictions):
            show(
                summary if arguments.json else {**summary, **(words or {})}, arguments.json, written
            )


def _write_predictions(places: Places, table: bytes, written: Path | None) -> None:
    if places.predictions is not None:
        files.write_atomically(places.predictions, table)
    else:
        say_table(table.decode(), f"; the predictor is in {written}")


_TEXT = """Predict the labels of the rows of FILE by a released model: what hdp-fast fit or hdp-fast
hybrid wrote with --output, or to_json of an estimator or model in Python. What comes out is FILE
with one more column, named like the label: 0 and 1 by the schema's rule, one of the classes, or a
number. A block of rows is in memory at a time. Several files, a folder or a pattern are copied to
the folder --output. Privacy: FILE is not protected. The model is, and predicting costs none of
it."""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast predict."""
    parser.description = _TEXT
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a released model, such as that of hdp-fast fit")
    what = f"{FILE_HELP}; or {PARTS_HELP}; no label needed"
    add("files", type=Path, nargs="+", metavar="FILE", help=what)
    add(
        "--output",
        type=Path,
        metavar="OUT",
        help="in FILE's format, - prints it [FILE.predicted...; printed if FILE is -]; of several "
        "files a folder",
    )
    add(
        "--probabilities",
        action="store_true",
        help="columns with probabilities, too: of label 1, or of each class",
    )
    add_workers(parser)
    add_delimiter(parser)
    parser.set_defaults(command=_predict)


def _predict(arguments: argparse.Namespace) -> None:
    from ..learners import PrivateModel  # Help and a wrong flag do not wait for it.

    are_parts = not _is_one(arguments.files)
    copies = _place_copies(arguments)
    new = {output for output in copies.values() if output and not output.parent.is_dir()}
    check_outputs(arguments, [one for one in copies.values() if not are_parts or one not in new])
    model = parse_file(arguments.model, "model, a JSON object in UTF-8", PrivateModel.from_json)
    if arguments.probabilities and model.labels is None:
        rule = "the model predicts a number"
        raise ParameterError(f"--probabilities must go with a classifier: {rule}")
    make = partial(_make_columns, model, probabilities=arguments.probabilities)
    jobs, sign = [], sign_of(arguments)
    for file, output in copies.items():
        if output is None:
            table, content = read_with_content(file, arguments)
            say_table(append_columns(file, table, make, sign, content).decode())
            return
        if are_parts:
            _make_folder(output.parent)
        jobs.append(partial(copy_table, file, output, make, sign, may_be_empty=are_parts))
    with open_workers(arguments):
        workers = None if arguments.dask is not None else arguments.workers
        rows = sum(count for _, count in run_jobs(jobs, workers))
    place = arguments.output or output
    names = ", ".join(_name_columns(model, probabilities=arguments.probabilities))
    inform(arguments, f"predicted: {rows:,} rows; {place} has {names}")


def _is_one(paths: list[Path]) -> bool:
    """Whether one file is copied, or the standard input, and no folder or pattern."""
    return len(paths) == 1 and (is_standard(paths[0]) or is_file(paths[0]))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse("--output", str(folder), f"it must be a folder: {files.describe_error(error)}")


def _place_copies(arguments: argparse.Namespace) -> dict[Path, Path | None]:
    """Where the copy of each file goes; None is the standard output.

    Raises:
        ParameterError: It has not the format of FILE, or cannot be printed, or the copies of
            several files have no folder of their own.
    """
    paths: list[Path] = arguments.files
    if _is_one(paths):
        return {paths[0]: _place_output(paths[0], arguments.output)}
    if any(map(is_standard, paths)):
        raise ParameterError("FILE is - and more, but the standard input must come alone")
    parts = [Path(str(part.name)) for part in parts_of(list(map(str, paths)), Reading(None))]
    folder = arguments.output
    for file in parts:
        suffix_of(file)  # It refuses what is no table.
    if folder is None or is_standard(folder) or folder.is_file():
        refuse(
            "--output",
            folder and str(folder),
            "it must be a folder, to which several files are copied",
        )
    if os.path.realpath(folder) in {os.path.realpath(file.parent) for file in parts}:
        refuse("--output", str(folder), "it must not be a folder of FILEs, which stay as they are")
    places = [Path(os.path.realpath(file.parent)) / file.name for file in parts]
    above = os.path.commonpath([place.parent for place in places])
    copies = {
        file: folder / place.relative_to(above) for file, place in zip(parts, places, strict=True)
    }
    if len(set(copies.values())) < len(copies):
        refuse("--output", str(folder), "two FILEs would be copied to one place")
    return copies


def _place_output(file: Path, output: Path | None) -> Path | None:
    if is_standard(file) and output is None:
        return None
    suffix = ".csv" if is_standard(file) else suffix_of(file)
    if is_standard(output):
        check_printable("--output", suffix)
        return None
    if output is None:
        stem = file.name.removesuffix(suffix)
        return file.with_name(f"{stem}.predicted{suffix}")
    if not output.name.lower().endswith(suffix.lower()):
        refuse("--output", str(output), f"it must end in {suffix}, as FILE does")
    return output


def _name_columns(model: PrivateModel, *, probabilities: bool) -> list[str]:
    """The new columns: the label, and the probability of label 1 or of each class of several."""
    label = require_label(model.schema.label).column
    if not probabilities:
        return [label]
    if model.classes is None:
        return [label, f"{label}_probability"]
    return [label, *(f"{label}_probability_{text}" for text in model.classes)]


def _make_columns(model: PrivateModel, block: Table, *, probabilities: bool) -> dict[str, Values]:
    """The labels of a block of rows, and their probabilities where they are wanted."""
    names = [
        name_new_column(block.name, name, "predicted", block.columns)
        for name in _name_columns(model, probabilities=probabilities)
    ]
    columns: list[Values] = [model.predict(block)]
    if probabilities:
        shares = model.probabilities(block).T
        shares = shares[1:] if model.classes is None else shares
        columns += [[round(float(share), 6) for share in part] for part in shares]
    return dict(zip(names, columns, strict=True))
