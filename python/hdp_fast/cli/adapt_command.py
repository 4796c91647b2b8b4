"""The command hdp-fast adapt: a linear predictor for a target table, mostly from a source table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note
from .._support.types import Floats
from ..data.column_kinds import require_label
from ..data.frames import read_frame
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError
from .output import add_plot, coefficient_table, describe_interrupt, record_of, say_protected
from .parser import add_price, read_price
from .predict_command import add_predict_options, deliver_predictor, place_results, read_request
from .tables import (
    FILE_HELP,
    PARTS_HELP,
    SCHEMA_HELP,
    add_delimiter,
    add_workers,
    describe_label,
    open_parts,
    open_workers,
    read_schema,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..adaptation import (
        ConvexAdaptation,
        MomentAdaptation,
        NonConvexAdaptation,
        ScaledFeatures,
    )
    from ..data import Chunks

    _Descent = ConvexAdaptation | NonConvexAdaptation
    _Learner = MomentAdaptation | _Descent

_TEXT = """Learn a linear predictor for the population of TARGET, of which there are few records,
with the help of SOURCE, where there are many. --method moments, the default, fits SOURCE, releases
the moments of TARGET's residuals once, and leaves nothing to tune. --method descent takes noisy
steps: records that fit badly weigh less, and those of SOURCE the less the more the two disagree.
Privacy: with --private target, TARGET is protected by
(epsilon, delta) for each row, whatever is printed or written, and SOURCE is not; with --private
source, which needs --method descent, it is the other way round; with --epsilon inf no one is. The
file of --predict is not protected. The schema is public and must not be made from the private file.
Its bounds take every number to [-1, 1], a category is one 1 among bits; all of these and a constant
are divided by the root of the number of columns, so that no row is longer than 1. Features beyond
their bounds are clipped, private labels too; public labels must keep them. What comes out is the
predictor by the
names, and in the units, of the table: intercept + the sum of coefficients times features is the
label, or at least 0 for label 1. With --method moments SOURCE and TARGET may each be a folder or a
pattern of files, which are read part by part."""
# For each loss the penalty of its estimator: records whose loss exceeds it weigh less.
_LOSSES = {"squared": "kappa_1", "logistic": "lambda_1"}
# What --method moments takes for each loss.
_TASKS: dict[str, Any] = {"squared": "regression", "logistic": "classification"}
_METHODS = ("moments", "descent")
# Flags that only a descent has.
_DESCENT_FLAGS = ("radius", "penalty", "alpha", "steps")

_RADIUS = 4.0


def add_adapt(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast adapt."""
    parser.description = _TEXT
    add = parser.add_argument
    add("source", type=Path, metavar="SOURCE", help=f"{FILE_HELP}; or {PARTS_HELP}")
    add("target", type=Path, metavar="TARGET", help="the same, with labels, too")
    add_workers(parser)
    add("--schema", type=Path, required=True, metavar="FILE", help=SCHEMA_HELP)
    add_price(parser, "the private file")
    add("--private", choices=("target", "source"), default="target", help="[target]")
    bounds: dict[str, Any] = {"nargs": 2, "type": float, "metavar": ("LOW", "HIGH")}
    add("--label-bounds", **bounds, help="the label is a number between them [as the schema says]")
    _add_problem(parser)
    add_predict_options(parser)
    add_plot(parser, "the coefficients, all columns scaled alike,")
    add("--output", type=Path, metavar="FILE", help="JSON: the predictor and its record")
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    add_delimiter(parser)
    parser.set_defaults(command=_adapt)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--loss", choices=tuple(_LOSSES), default="squared", help="[squared]")
    add("--method", choices=_METHODS, default="moments", help="[moments]")
    descent = "descent: "
    add("--radius", type=float, help=f"{descent}of coefficients of scaled rows [4]")
    add("--penalty", type=float, help=f"{descent}losses above it weigh less [0.1; logistic: 1]")
    add("--alpha", type=float, help=f"{descent}share of SOURCE [by the released discrepancy]")
    add("--steps", type=int, metavar="T", help=f"{descent}[60; logistic: 200]")


def _adapt(arguments: argparse.Namespace) -> None:
    # Help and a wrong flag do not wait for them.
    from ..adaptation import ScaledFeatures
    from ..budget.account import Budget

    learner = _make_learner(arguments)
    places = place_results(arguments)
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    features = ScaledFeatures(_read_label_schema(arguments))
    request = read_request(arguments, features.schema, features.rows)
    with open_workers(arguments), describe_interrupt(places, budget):
        data: list[Any] = [
            *_read_records(arguments, "source", features),
            *_read_records(arguments, "target", features),
        ]
        rows = [len(each) if isinstance(each, np.ndarray) else each.count() for each in data[::2]]
        _say_roles(arguments, rows)
        learner.fit(*data, budget=budget, random_state=arguments.seed)
        summary = _summarize(learner, features)
        deliver_predictor(
            arguments,
            places,
            summary,
            request,
            lambda rows: features.labels(learner.scores(rows)),
            lambda: _draw(learner, features),
            _tabulate(summary["coefficients"]),
        )


def _draw(learner: _Learner, features: ScaledFeatures) -> Figure:
    from .. import plotting  # Whoever draws nothing does not wait for it.

    return plotting.adaptation(learner, [*features.schema.float_names, "constant"])


def _say_roles(arguments: argparse.Namespace, rows: Sequence[int]) -> None:
    """Prints which file is protected, with a note if it is a target larger than the source."""
    files_by_role = dict(
        zip(("source", "target"), (arguments.source, arguments.target), strict=True)
    )
    public, protected = list(files_by_role.values()), {}
    if _protects(arguments):
        path = files_by_role[arguments.private]
        protected = {path: (arguments.epsilon, arguments.delta)}
        public.remove(path)
    if arguments.predict is not None:
        public.append(arguments.predict)
    say_protected(arguments, protected, public)
    if protected and arguments.private == "target" and rows[1] > rows[0]:
        counts = f"SOURCE has {rows[0]:,} rows, and is public, while TARGET has {rows[1]:,}"
        note(f"{counts} and is protected: are the two swapped, or is --private source meant?")


def _make_learner(arguments: argparse.Namespace) -> _Learner:
    """Makes the estimator; wrong flags are refused before any file is read."""
    kind, parameters = _choose_estimator(arguments)
    price = read_price(arguments)
    if price.protects:
        parameters |= {"delta": price.delta}
    return kind(epsilon=price.epsilon, **parameters)


def _choose_estimator(
    arguments: argparse.Namespace,
) -> tuple[Callable[..., _Learner], dict[str, Any]]:
    """Returns the class of the estimator, and the parameters that the flags give it."""
    from ..adaptation import ConvexAdaptation, MomentAdaptation, NonConvexAdaptation

    if arguments.method == "moments":
        for name in _DESCENT_FLAGS:
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} must go with --method descent")
        if arguments.private == "source" and _protects(arguments):
            raise ParameterError("--private source must go with --method descent")
        return MomentAdaptation, {"task": _TASKS[arguments.loss]}
    kind = ConvexAdaptation if arguments.loss == "squared" else NonConvexAdaptation
    penalty = _LOSSES[arguments.loss]
    parameters: dict[str, Any] = {penalty: arguments.penalty, "steps": arguments.steps}
    # Flags that are left out take the estimator's defaults.
    parameters = {name: value for name, value in parameters.items() if value is not None}
    parameters |= {"alpha": arguments.alpha, "private": arguments.private}
    radius = _RADIUS if arguments.radius is None else arguments.radius
    return kind, parameters | {"radius": radius}


def _protects(arguments: argparse.Namespace) -> bool:
    """Whether the private file is protected at all."""
    return bool(arguments.epsilon != math.inf)


def _read_label_schema(arguments: argparse.Namespace) -> Schema:
    schema = read_schema(arguments.schema)
    if arguments.label_bounds is not None:
        label = dataclasses.replace(
            require_label(schema.label), positive=None, above=None, bounds=arguments.label_bounds
        )
        schema = dataclasses.replace(schema, label=label)
    label = require_label(schema.label)
    if arguments.loss == "logistic" and label.bounds is not None:
        rule = f"the label {label.column!r} is a number between bounds: it needs squared"
        raise ParameterError(f"--loss = 'logistic', but {rule}")
    return schema


def _read_records(
    arguments: argparse.Namespace, domain: str, features: ScaledFeatures
) -> tuple[Floats | Chunks, NDArray[Any] | None]:
    """The rows and labels of a domain, or its parts, which have both."""
    public = arguments.private != domain or not _protects(arguments)
    path, whole = getattr(arguments, domain), arguments.method == "descent"
    table = open_parts([path], arguments, whole=whole, public=public)
    if whole and not isinstance(table, Table):
        rule = "--method descent reads all rows at each step: it must be one file"
        raise ParameterError(f"{domain.upper()} = {str(path)!r}, but {rule}")
    is_class = arguments.loss == "logistic"
    make = partial(
        _make_records, features=features, domain=domain, public=public, is_class=is_class
    )
    if isinstance(table, Table):
        rows, labels = make(table)
        kinds: Collection[Any] = np.unique(labels).tolist()
        records: tuple[Floats | Chunks, NDArray[Any] | None] = rows, labels
    else:
        parts = table.with_blocks(make)
        # Only classes are looked at: a pass over the parts costs what reading them does.
        is_rule = require_label(features.schema.label).bounds is None
        kinds = set().union(*parts.map(_list_kinds)) if public and is_rule else ()
        records = parts, None
    if public and domain == "source":
        _check_kinds(features.schema, kinds)
    return records


def _list_kinds(blocks: Iterable[tuple[Any, ...]], _: Any) -> set[Any]:
    """The different labels of a part."""
    # A block without rows stays the table that it was.
    labels = [block[1] for block in blocks if len(block) == 2]
    return {kind for some in labels for kind in np.unique(some).tolist()}


def _make_records(
    table: Any, *, features: ScaledFeatures, domain: str, public: bool, is_class: bool
) -> tuple[Floats, NDArray[Any]]:
    """The rows and labels of a table, or of a block of one."""
    schema = features.schema
    table = read_frame(table, public=public)
    labels = schema.float_labels(table)
    if public:
        _check_bounds(table, domain, schema)
    return features.rows(table), (labels > 0) if is_class else labels


def _check_kinds(schema: Schema, kinds: Collection[Any]) -> None:
    """Refuses a public source whose labels are all alike."""
    label = require_label(schema.label)
    if label.bounds is None and len(kinds) == 1:
        kind = "every" if max(kinds) > 0 else "no"
        fields = json.dumps(describe_label(schema))
        rule = f"the schema's label, {fields}, must tell its rows apart"
        where = f"column {label.column!r} of SOURCE"
        raise ParameterError(f"{where} makes {kind} row a positive one, but {rule}")


def _check_bounds(table: Table, domain: str, schema: Schema) -> None:
    """Refuses public labels, which nothing protects, beyond their bounds."""
    label = require_label(schema.label)
    where = f"column {label.column!r} of {domain.upper()}"
    if label.bounds is None:
        return
    low, high = label.bounds
    numbers = table.column(label.column).numbers()
    if not ((low <= numbers) & (numbers <= high)).all():
        rule = f"public labels must be numbers in [{low:g}, {high:g}]"
        raise ParameterError(f"{where} holds others, but {rule}")


def _tabulate(coefficients: dict[str, float]) -> dict[str, str]:
    """A line for each coefficient."""
    return {"coefficients": coefficient_table(coefficients.keys(), coefficients.values())}


def _summarize(learner: _Learner, features: ScaledFeatures) -> dict[str, Any]:
    predictor = features.predictor(learner.coef_)
    return {
        "label": describe_label(features.schema),
        "loss": learner.loss,
        "intercept": predictor.intercept,
        "coefficients": predictor.coefficients,
        **_describe_run(learner),
        "record": record_of(learner.record_),
    }


def _describe_run(learner: _Learner) -> dict[str, float | None]:
    """What a run releases beside the predictor."""
    from ..adaptation import MomentAdaptation

    if isinstance(learner, MomentAdaptation):
        result = learner.result_
        signal = result.signal if math.isfinite(result.signal) else None
        return {"signal": signal, "trust": result.trust, "clip": result.clip}
    return {
        "alpha": learner.alpha_,
        "discrepancy": learner.discrepancy_,
        "noise": learner.noise_,
    }
