"""The command hdp-fast adapt: a linear predictor for a target table, mostly from a source table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .._support.types import Floats
from .._support.validate import positive, probability, refuse
from ..adaptation.convex import ConvexAdaptation
from ..adaptation.nonconvex import NonConvexAdaptation
from ..budget.account import Budget
from ..data import files
from ..data.schema import Label, Schema
from ..data.table import Table, read_table
from ..exceptions import ParameterError
from .appended_column import Append, appender, suffix_of
from .output import check_new, record_of, show, spent
from .scaled_features import ScaledFeatures
from .table_commands import FILE_HELP, read_schema

_TEXT = """Learn a linear predictor for the population of TARGET, of which there are few records,
with the help of SOURCE, where there are many: records that fit badly weigh less, and those of
SOURCE the less the more the two disagree. Privacy: with --private target, TARGET is protected by
(epsilon, delta) for each row, whatever is printed or written, and SOURCE is not; with --private
source it is the other way round; with --private none nobody is. The file of --predict is not
protected. The schema is public and must not be made from the private file. Its bounds take every
number to [-1, 1], a category is one 1 among bits; all of these and a constant are divided by the
root of the number of columns, so that no row is longer than 1. Features beyond their bounds are
clipped, private labels too; public labels must keep them. What comes out is the predictor by the
names, and in the units, of the table: intercept + the sum of coefficients times features is the
label, or at least 0 for label 1."""
_Learner = ConvexAdaptation | NonConvexAdaptation
# By the loss; what it is called above which a loss makes records weigh less.
_LOSSES: dict[str, tuple[type[_Learner], str]] = {
    "squared": (ConvexAdaptation, "kappa_1"),
    "logistic": (NonConvexAdaptation, "lambda_1"),
}

_RADIUS = 4.0


def add_adapt(parser: argparse.ArgumentParser) -> None:
    """The arguments of hdp-fast adapt."""
    parser.description = _TEXT
    add = parser.add_argument
    add("source", type=Path, metavar="SOURCE", help=FILE_HELP)
    add("target", type=Path, metavar="TARGET", help="the same, with labels, too")
    add("--schema", type=Path, required=True, metavar="FILE", help="as hdp-fast schema writes it")
    add("--epsilon", type=float, help="privacy of the private file")
    add("--delta", type=float, help="privacy of the private file")
    add("--private", choices=("target", "source", "none"), default="target", help="[target]")
    bounds: dict[str, Any] = {"nargs": 2, "type": float, "metavar": ("LOW", "HIGH")}
    add("--label-bounds", **bounds, help="the label is a number between them [as the schema says]")
    _add_problem(parser)
    add("--predict", type=Path, metavar="FILE", help="a table of rows to predict, no label needed")
    add("--predictions", type=Path, metavar="OUT", help="new, in FILE's format [FILE.predicted...]")
    add("--output", type=Path, metavar="FILE", help="new, JSON: the predictor and its record")
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_adapt)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--loss", choices=tuple(_LOSSES), default="squared", help="[squared]")
    add("--radius", type=float, default=_RADIUS, help="of coefficients of scaled rows [4]")
    add("--penalty", type=float, help="losses above it weigh less [0.1; logistic: 1]")
    add("--alpha", type=float, help="share of SOURCE [as the released discrepancy suggests]")
    add("--steps", type=int, metavar="T", help="[60; logistic: 200]")


class _Places(NamedTuple):
    """Where results go, all of them new files: what is there has been paid for."""

    output: Path | None
    predictions: Path | None

    def named(self) -> dict[str, str | None]:
        """Their names, for the summary."""
        return {name: path and str(path) for name, path in self._asdict().items()}

    def told(self) -> list[str]:
        """Which of them are there."""
        named = [path for path in self if path is not None]
        found = [f"{path} is {'' if path.exists() else 'not '}written" for path in named]
        return found or ["nothing is written"]


class _Asked(NamedTuple):
    """Rows to predict: their features, the name of the new column, and the file with it."""

    rows: Floats
    column: str
    append: Append


def _adapt(arguments: argparse.Namespace) -> None:
    learner = _learner(arguments)
    places = _places(arguments)
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    before = spent(budget)
    features = ScaledFeatures(_schema(arguments))
    asked = None if arguments.predict is None else _read_asked(arguments.predict, features)
    try:
        data = [*_records(arguments, "source", features), *_records(arguments, "target", features)]
        learner.set_params(budget=budget).fit(*data)
        _deliver(arguments, places, learner, features, asked)
    except KeyboardInterrupt:
        parts = places.told()
        if budget is not None:
            parts.append(f"of the budget {spent(budget)} are spent, before this run {before}")
        raise KeyboardInterrupt("; ".join(parts)) from None


def _learner(arguments: argparse.Namespace) -> _Learner:
    """The estimator; refuses wrong flags before any file is read."""
    kind, penalty = _LOSSES[arguments.loss]
    given: dict[str, Any] = {penalty: arguments.penalty, "steps": arguments.steps}
    # What is not said is left to the estimator.
    given = {name: value for name, value in given.items() if value is not None}
    given |= {"random_state": arguments.seed}
    given |= {name: getattr(arguments, name) for name in ("radius", "alpha")}
    if arguments.private == "none":
        for name in ("epsilon", "delta", "budget"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} must not go with --private none")
        return kind(epsilon=math.inf, private=None, **given)
    epsilon = positive("--epsilon", arguments.epsilon)
    delta = probability("--delta", arguments.delta)
    return kind(epsilon=epsilon, delta=delta, private=arguments.private, **given)


def _places(arguments: argparse.Namespace) -> _Places:
    """Raises: ParameterError before anything is paid for that could not be kept."""
    asked, predictions = arguments.predict, arguments.predictions
    if asked is not None:
        suffix = suffix_of(asked)
        stem = asked.name.removesuffix(suffix)
        predictions = predictions or asked.with_name(f"{stem}.predicted{suffix}")
        if not predictions.name.endswith(suffix):
            refuse("--predictions", str(predictions), f"it must end in {suffix}, as FILE does")
    elif predictions is not None:
        raise ParameterError("--predictions must go with --predict")
    found = _Places(arguments.output, predictions)
    check_new(found)
    return found


def _schema(arguments: argparse.Namespace) -> Schema:
    schema = read_schema(arguments.schema)
    if arguments.label_bounds is not None:
        label = dataclasses.replace(
            schema.label, positive=None, above=None, bounds=arguments.label_bounds
        )
        schema = dataclasses.replace(schema, label=label)
    if arguments.loss == "logistic" and schema.label.bounds is not None:
        rule = f"the label {schema.label.column!r} is a number between bounds: it needs squared"
        raise ParameterError(f"--loss = 'logistic', but {rule}")
    return schema


def _read_asked(path: Path, features: ScaledFeatures) -> _Asked:
    table, label = read_table(path), features.schema.label.column
    column = label if label not in table.columns else f"{label}_predicted"
    if column in table.columns:
        raise ParameterError(f"{path} has columns {label!r} and {column!r}: rename one of them")
    return _Asked(features.rows(table), column, appender(path, column))


def _records(
    arguments: argparse.Namespace, domain: str, features: ScaledFeatures
) -> tuple[Floats, NDArray[Any]]:
    table = read_table(getattr(arguments, domain))
    if arguments.private != domain:
        _check_labels(table, domain, features.schema.label)
    labels = features.schema.float_labels(table)
    return features.rows(table), (labels > 0) if arguments.loss == "logistic" else labels


def _check_labels(table: Table, domain: str, label: Label) -> None:
    """Refuse public labels beyond their bounds: nobody is protected by keeping quiet about them."""
    if label.bounds is None:
        return
    low, high = label.bounds
    numbers = table.column(label.column).numbers()
    if not ((low <= numbers) & (numbers <= high)).all():
        found = f"column {label.column!r} of {domain.upper()} holds others"
        raise ParameterError(f"{found}, but public labels must be numbers in [{low:g}, {high:g}]")


def _deliver(
    arguments: argparse.Namespace,
    places: _Places,
    learner: _Learner,
    features: ScaledFeatures,
    asked: _Asked | None,
) -> None:
    column = None if asked is None else asked.column
    summary = {**_summary(learner, features), **places.named(), "column": column}
    written = None
    try:
        if places.output is not None:
            files.write_atomically(places.output, (json.dumps(summary, indent=2) + "\n").encode())
            written = places.output
        if places.predictions is not None and asked is not None:
            labels = features.labels(learner.scores(asked.rows))
            files.write_atomically(places.predictions, asked.append(labels))
    finally:
        # It is paid for: a full disk must not take it along.
        show(summary, arguments.json, written)


def _summary(learner: _Learner, features: ScaledFeatures) -> dict[str, Any]:
    label, found = features.schema.label, features.predictor(learner.coef_)
    return {
        "label": label._json(),
        "loss": learner.loss,
        "intercept": found.intercept,
        "coefficients": found.coefficients,
        "alpha": learner.alpha_,
        "discrepancy": learner.discrepancy_,
        "noise": learner.noise_,
        "record": record_of(learner.record_),
    }
