"""The command hdp-fast fit: a linear model of a private table, to be published."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.notes import note
from .._support.random_state import check_random_state
from .._support.validate import refuse
from ..data import files
from ..data.column_kinds import require_label
from ..data.schema import Schema
from ..data.table import Table
from .exit_codes import ExitCode
from .fit_report import render
from .output import (
    check_outputs,
    check_report,
    describe_interrupt,
    effect_table,
    record_of,
    say_protected,
    settle_output,
    show,
)
from .parser import add_price, name_flags, read_price, split_classes
from .tables import (
    SCHEMA_HELP,
    add_delimiter,
    add_owners,
    add_parts,
    describe_label,
    name_parts,
    open_workers,
    owners_of,
    read_parts,
    read_schema,
)
from .verdicts import describe_effects, find_usual_label, find_weakness, judge_model

if TYPE_CHECKING:
    from ..data.chunks import Chunks
    from ..learners import PrivateModel

_TEXT = """Learn a model of PRIVATE and write it to a file that may be published: for a label
that the schema calls 1 by a rule, or one of --classes, a classifier; for a label between bounds, a
regression. hdp-fast predict applies it. Columns are scaled by the schema's bounds; their means, and
those of powers of numbers, are released with a part of the budget where records are not too few,
and the rest of it pays for the model. Nothing else has to be set: --method auto takes a noisy
descent on all records (descent), and a shape for each column (additive) of two classes where rows
are many and a look at columns is for it; for a label that is a number slopes are shrunk as far as
their noise asks for. A folder, or several files, are read in parts and need not fit into memory.
Privacy: PRIVATE is protected by (epsilon, delta) for each row, with --ids for all rows of an
id, whatever is printed or written; with --epsilon inf no one is. The schema and --classes are
public and must not be made from PRIVATE. The number of rows is public."""
_METHODS = ("auto", "descent", "evidence", "statistics", "sgd", "additive")


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast fit."""
    parser.description = _TEXT
    add = parser.add_argument
    add_parts(parser)
    add("--schema", type=Path, required=True, metavar="FILE", help=SCHEMA_HELP)
    add_price(parser, "PRIVATE")
    add("--classes", metavar="A,B,...", help="all labels there are, instead of the schema's rule")
    add_owners(parser)
    add("--method", choices=_METHODS, default="auto", help="[auto]")
    add(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON: the model and its record; - prints it",
    )
    add("--report", type=Path, metavar="FILE", help="one page of .html, with a figure")
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    add_delimiter(parser)
    parser.set_defaults(command=_fit)


def _fit(arguments: argparse.Namespace) -> ExitCode:
    # Help and a wrong flag do not wait for them.
    from ..budget.account import Budget
    from ..learners import CenteredLinear

    price = read_price(arguments)
    check_random_state(arguments.seed)
    settle_output(arguments)
    check_report(arguments)
    check_outputs(arguments, [arguments.output, arguments.report])
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    schema = read_schema(arguments.schema)
    classes = None if arguments.classes is None else split_classes(arguments.classes)
    with name_flags("classes"):
        learner = CenteredLinear(
            schema,
            epsilon=price.epsilon,
            delta=price.delta,
            classes=classes,
            method=arguments.method,
        )
    places, private = [arguments.output, arguments.report], name_parts(arguments)
    with open_workers(arguments), describe_interrupt(places, budget):
        owners = owners_of(arguments)
        # What steps look into anywhere is read at once.
        table = read_parts(arguments, whole=arguments.method == "sgd", **owners)
        persons = _read_persons(table, schema, **owners)
        protected = {private: (price.epsilon, price.delta)} if price.protects else {}
        say_protected(arguments, protected, [] if protected else [private])
        with name_flags("classes"):
            model = learner.learn(table, **persons, budget=budget, random_state=arguments.seed)
        return _deliver(arguments, model)


def _read_persons(table: Table | Chunks, schema: Schema, **owners: Any) -> dict[str, Any]:
    """Who owns the rows of a table that is read whole; parts say it themselves.

    Raises:
        ParameterError: The column is missing, or in parts a column of the schema.
    """
    if not owners:
        return {}
    if not isinstance(table, Table):
        if owners["ids"] in (*schema.reads, require_label(schema.label).column):
            rule = "of a table in parts it must be no column that the schema reads"
            refuse("--ids", owners["ids"], rule)
        return {}
    column = table.column(owners["ids"])
    return owners | {"ids": np.array(column.texts)[column.codes]}


def _deliver(arguments: argparse.Namespace, model: PrivateModel) -> ExitCode:
    fields, written = json.loads(model.to_json()), None
    try:
        if arguments.output is not None:
            text = json.dumps(fields, indent=2) + "\n"
            files.write_atomically(arguments.output, text.encode())
            written = arguments.output
        if arguments.report is not None:
            files.write_atomically(arguments.report, render(_summarize(arguments, model)).encode())
    finally:
        # The model is paid for: what has no file is printed whole.
        whole = arguments.json or written is None
        show(fields if whole else _words(arguments, model), whole, written)
    return _judge(model)


def _judge(model: PrivateModel) -> ExitCode:
    """Says what the model is no good for, by public facts and released numbers."""
    weakness = find_weakness(model)
    if weakness is not None:
        if model.method not in {"descent", "evidence"}:  # Their learners have said so.
            note(weakness)
        return ExitCode.NOTHING_USEFUL
    usual = find_usual_label(model)
    if usual is not None:
        note(usual)
    return ExitCode.DONE


def _summarize(arguments: argparse.Namespace, model: PrivateModel) -> dict[str, Any]:
    """What the report shows: the model, and what was set in public."""
    return {
        "verdict": judge_model(model),
        **json.loads(model.to_json()),
        **describe_effects(model),
        "label": describe_label(model.schema),
        "labels": model.labels,
        "private": {"file": str(name_parts(arguments)), "rows": model.n},
        "settings": {
            "epsilon": arguments.epsilon,
            "delta": arguments.delta,
            "method": arguments.method,
            "ids": arguments.ids,
            "rows_per_person": arguments.rows_per_person,
            "seed": arguments.seed,
            "budget": arguments.budget and str(arguments.budget),
        },
        "usual_label": model.usual_label(),
        "output": arguments.output and str(arguments.output),
    }


def _describe_signal(model: PrivateModel, signal: float) -> dict[str, str]:
    """The signal under a name that does not promise too much."""
    if model.method in {"statistics", "additive"} or model.law is not None:
        return {"signal": f"{signal:.3g} times the noise"}
    # Labels that are pure chance have the same.
    level = f"noise is 1 / {signal:.3g} of the longest gradient"
    return {"plan": f"{level}, as was known before any data: it says nothing about this model"}


def _count(described: dict[str, Any]) -> str | None:
    """How many effects are told from 0, and how many are not."""
    told, others = described["told"], described["not_told"]
    if others is None:
        return None
    return f"{told:,} of {told + others:,} effects are told from 0, {others:,} are not"


def _words(arguments: argparse.Namespace, model: PrivateModel) -> dict[str, Any]:
    """What people read instead of the file."""
    described = describe_effects(model)
    words: dict[str, Any] = {
        "verdict": judge_model(model),
        "label": describe_label(model.schema),
        "predicts": "a number" if model.labels is None else f"one of {', '.join(model.labels)}",
        "rows": model.n,
        "features": len(model.rows.names_with_squares),
        "method": model.method,
        "effects": effect_table(described["effects"]) if described["effects"] else None,
        "told": _count(described),
        "use": described["use"],
    }
    if model.signal is not None:
        words |= _describe_signal(model, model.signal)
    words["record"] = record_of(model.record)
    words["output"] = str(arguments.output)
    words["report"] = arguments.report and str(arguments.report)
    return words
