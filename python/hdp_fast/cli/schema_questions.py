"""The questions of hdp-fast schema --new, on a terminal or to a file of answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from .._support.validate import one_of, refuse
from ..data.codebook import make_label, make_number, read_category
from ..data.column_kinds import Category, Ignore, Label, Number
from ..data.schema import Schema
from ..exceptions import ParameterError, printable
from .output import complain

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
