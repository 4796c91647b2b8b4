"""The command hdp-fast schema: a public schema from a table, from a codebook or from answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .._support.validate import one_of, refuse
from ..data import files
from ..data.codebook import make_label, make_number, read_category
from ..data.column_kinds import Category, Ignore, Label, Number
from ..data.columns import to_number
from ..data.schema import Schema
from ..exceptions import ParameterError, printable
from .output import check_output, complain, inform, say
from .tables import FILE_HELP, add_delimiter, read

_TEXT = """Write which columns are features, with their categories, bounds and cut points: what
everybody may know. From a table all of it is read off, unprotected: it must be PUBLIC. With
--codebook it comes from a table with a row for each variable, whose columns are name, kind (number,
category, ignore), low, high, categories, cuts, missing and label; --new asks for it, on the
terminal or one answer a line from the standard input. Without a label the schema is for statistics
and transformers alone."""
_COST = (
    "unprotected, which is right for a public table: made from the private one, a schema"
    " publishes its least and largest values, quantiles and rare categories, and no epsilon covers"
    " that (then --codebook or --new)"
)
# Flags that say how a public table is read.
_OF_TABLES = ("label", "positive", "above", "label_bounds", "cuts", "unlabeled")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast schema."""
    parser.description = _TEXT
    add = parser.add_argument
    add("public", type=Path, nargs="?", metavar="PUBLIC", help=FILE_HELP)
    add("--codebook", type=Path, metavar="FILE", help="a table with a row for each variable")
    add("--new", type=Path, metavar="FILE", help="ask, and write the answers; - prints them")
    add("--label", metavar="COLUMN", help="column of the label [none: features alone]")
    label = parser.add_mutually_exclusive_group()
    label.add_argument("--positive", action="append", metavar="VALUE", help="counts as 1; repeat")
    label.add_argument("--above", type=float, metavar="NUMBER", help="larger values count as 1")
    between: dict[str, Any] = {"nargs": 2, "type": float, "metavar": ("LOW", "HIGH")}
    label.add_argument("--label-bounds", **between, help="the label is a number between them")
    add("--cuts", type=int, help="cut points of a column of numbers [4]")
    text = "what a missing cell counts as; repeat"
    add("--missing", action="append", metavar="COLUMN=VALUE", help=text)
    add("--unlabeled", action="store_true", default=None, help="PUBLIC lacks the label's column")
    add("--output", type=Path, metavar="FILE", help="instead of printing it")
    add_delimiter(parser)
    parser.set_defaults(command=_schema)


def _schema(arguments: argparse.Namespace) -> None:
    _check_source(arguments)
    check_output(arguments)
    facts: list[str] = []
    if arguments.public is not None:
        schema, facts = _read_public(arguments)
    elif arguments.codebook is not None:
        schema = Schema.from_codebook(read(arguments.codebook, arguments, public=True))
    else:
        schema = ask_schema()
    schema = schema.with_missing(_defaults(arguments.missing or [], schema))
    text = schema.to_json()
    if arguments.output is None:
        say(text)
    else:
        files.write_atomically(arguments.output, f"{text}\n".encode())
    for fact in facts:
        inform(arguments, fact)


def _check_source(arguments: argparse.Namespace) -> None:
    """Refuses none or several sources, and flags that say nothing of the one."""
    sources = [arguments.public, arguments.codebook, arguments.new]
    if sum(source is not None for source in sources) != 1:
        rule = "a schema is made of a table, of a codebook or of answers"
        raise ParameterError(f"one of PUBLIC, --codebook and --new must be given: {rule}")
    if arguments.public is None:
        for name in _OF_TABLES:
            if getattr(arguments, name) is not None:
                flag = name.replace("_", "-")
                raise ParameterError(f"--{flag} must not go without PUBLIC, which it is about")
    if arguments.new is not None:
        if arguments.output is not None:
            raise ParameterError("--output must not go with --new, which names the file")
        arguments.output = arguments.new


def _read_public(arguments: argparse.Namespace) -> tuple[Schema, list[str]]:
    """The schema of the public table, and what is to be said of it."""
    label, labeled = _read_rule(arguments), not arguments.unlabeled
    table = read(arguments.public, arguments, public=True)
    cuts = 4 if arguments.cuts is None else arguments.cuts
    schema = Schema.from_public(table, label, cuts=cuts, labeled=labeled)
    facts = [f"the schema was read off {arguments.public} {_COST}"]
    if label is None:
        facts.append("no --label: the schema is for statistics and transformers alone")
    elif labeled and label.bounds is None:
        share = schema.labels(table).mean()
        rows = f"of the {table.rows:,} rows of {arguments.public}"
        facts.append(f"label {label.column!r} is 1 in {share:.1%} {rows}")
    return schema, facts


def _read_rule(arguments: argparse.Namespace) -> Label | None:
    """The label, if there is one; a rule and a column come together."""
    rules = (arguments.positive, arguments.above, arguments.label_bounds)
    rule = "one of --positive, --above and --label-bounds"
    if arguments.label is None:
        if arguments.unlabeled or any(part is not None for part in rules):
            raise ParameterError(f"--label COLUMN must go with --unlabeled and with {rule}")
        return None
    if all(part is None for part in rules):
        raise ParameterError(f"--label = {arguments.label!r} must go with {rule}")
    return Label(
        arguments.label,
        positive=None if arguments.positive is None else tuple(arguments.positive),
        above=arguments.above,
        bounds=arguments.label_bounds,
    )


def _defaults(texts: list[str], schema: Schema) -> dict[str, str | float]:
    """What missing cells count as, by column; names and values may hold an = themselves."""
    defaults: dict[str, str | float] = {}
    for text in texts:
        names = [name for name in schema.reads if text.startswith(f"{name}=")]
        if not names:
            refuse("--missing", text, "it must be COLUMN=VALUE, with a column that is a feature")
        name = max(names, key=len)
        value = text[len(name) + 1 :]
        is_number = isinstance(schema.columns[name], Number)
        defaults[name] = to_number(value) if is_number else value
    return defaults


T = TypeVar("T")
_KINDS = ("number", "category", "ignore")


def ask_schema() -> Schema:
    """Asks for columns and label; on a terminal a wrong answer is asked for again.

    Raises: ParameterError for a wrong answer in a file, which names the question, where the answers
    end too early, and where no column is a feature.
    """
    columns: dict[str, Category | Number | Ignore] = {}

    def read_name(text: str) -> str:
        if text in columns:
            refuse("column", text, "it must be named once")
        return text

    while name := _ask("column of the table (empty: no more)", read_name):
        columns[name] = _ask_column(name)
    name = _ask("column of the label (empty: none)", read_name)
    return Schema(_ask_label(name) if name else None, columns)


def _ask_column(name: str) -> Category | Number | Ignore:
    kind = _ask(f"kind of {name}: number, category or ignore", _read_kind)
    if kind == "ignore":
        return Ignore()
    if kind == "category":
        return _ask(f"all values of {name}, with | between them", read_category)
    low = _ask(f"least value that {name} can have", lambda text: make_number("low", text))
    return _ask(f"largest value that {name} can have", lambda text: _read_number(low, text))


def _read_kind(text: str) -> str:
    return one_of("kind", text.lower(), _KINDS)


def _read_number(low: float, text: str) -> Number:
    return Number(low, make_number("high", text))


def _ask_label(name: str) -> Label:
    rules = "its values with | between them, above NUMBER, or between LOW HIGH for a number"
    return _ask(f"what counts as 1 in {name}: {rules}", lambda text: _read_label(name, text))


def _read_label(name: str, text: str) -> Label:
    if not text:
        refuse("label", text, "it must have a rule")
    return make_label(name, text)


def _ask(question: str, read: Callable[[str], T]) -> T:
    """What `read` makes of the answer to a question."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    while True:
        if is_terminal and sys.stderr is not None:
            print(printable(f"{question}: "), end="", file=sys.stderr, flush=True)
        try:
            answer = "" if sys.stdin is None else sys.stdin.readline()
        except UnicodeDecodeError:
            raise ParameterError(f"the answer to {question!r} can't be read as a text") from None
        if not answer:
            raise ParameterError(f"the answers end before the question {question!r}")
        try:
            return read(answer.strip())
        except ParameterError as error:
            if not is_terminal:
                raise ParameterError(f"{question}: {error}") from None
            complain(str(error))
