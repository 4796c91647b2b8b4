"""The command hdp-fast predict: the labels of a public table, by a released model."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._support.validate import refuse
from ..data import files
from ..data.reading import parse_file
from ..data.table import Table, suffix_of
from ..exceptions import ParameterError
from ..learners import PrivateModel
from .appended_column import Values, append_columns, check_printable, name_new_column
from .output import check_outputs, inform, is_standard, say_table
from .tables import FILE_HELP, add_delimiter, read_with_content, sign_of

_TEXT = """Predict the labels of the rows of FILE by a released model: what hdp-fast fit or hdp-fast
hybrid wrote with --output, or to_json of an estimator or model in Python. What comes out is FILE
with one more column, named like the label: 0 and 1 by the schema's rule, one of the classes, or a
number. Privacy: FILE is not protected. The model is, and predicting costs none of it."""


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast predict."""
    parser.description = _TEXT
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a released model, such as that of hdp-fast fit")
    add("file", type=Path, metavar="FILE", help=f"{FILE_HELP}; no label needed")
    add(
        "--output",
        type=Path,
        metavar="OUT",
        help="in FILE's format, - prints it [FILE.predicted...; printed if FILE is -]",
    )
    add(
        "--probabilities",
        action="store_true",
        help="columns with probabilities, too: of label 1, or of each class",
    )
    add_delimiter(parser)
    parser.set_defaults(command=_predict)


def _predict(arguments: argparse.Namespace) -> None:
    output = _place_output(arguments)
    check_outputs(arguments, [output])
    model = parse_file(arguments.model, "model, a JSON object in UTF-8", PrivateModel.from_json)
    if arguments.probabilities and model.labels is None:
        rule = "the model predicts a number"
        raise ParameterError(f"--probabilities must go with a classifier: {rule}")
    table, content = read_with_content(arguments.file, arguments)
    name = name_new_column(table.name, model.schema.label.column, "predicted", table.columns)
    columns: dict[str, Values] = {name: model.predict(table)}
    if arguments.probabilities:
        columns |= _name_probabilities(model, table)
    result = append_columns(arguments.file, columns, sign_of(arguments), content)
    if output is None:
        say_table(result.decode())
    else:
        files.write_atomically(output, result)
        names = ", ".join(columns)
        inform(arguments, f"predicted: {table.rows:,} rows; {output} has {names}")


def _place_output(arguments: argparse.Namespace) -> Path | None:
    """Where the table goes; None is the standard output.

    Raises:
        ParameterError: It has not the format of FILE, or cannot be printed.
    """
    file, output = arguments.file, arguments.output
    if is_standard(file) and output is None:
        return None
    suffix = ".csv" if is_standard(file) else suffix_of(file)
    if is_standard(output):
        check_printable("--output", suffix)
        return None
    if output is None:
        stem = file.name.removesuffix(suffix)
        beside: Path = file.with_name(f"{stem}.predicted{suffix}")
        return beside
    if not output.name.lower().endswith(suffix.lower()):
        refuse("--output", str(output), f"it must end in {suffix}, as FILE does")
    place: Path = output
    return place


def _name_probabilities(model: PrivateModel, table: Table) -> dict[str, Values]:
    """The probability of label 1, or of each class of several, by the name of its new column."""
    label, shares = model.schema.label.column, model.probabilities(table).T
    parts = {f"{label}_probability": shares[1]}
    if model.classes is not None:
        names = [f"{label}_probability_{text}" for text in model.classes]
        parts = dict(zip(names, shares, strict=True))
    return {
        name_new_column(table.name, name, "predicted", table.columns): [
            round(float(share), 6) for share in part
        ]
        for name, part in parts.items()
    }
