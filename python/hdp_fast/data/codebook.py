"""Codebooks: tables with a row for each variable, which say what is public of another table."""

from __future__ import annotations

from typing import Any

from .._support.validate import guess, refuse
from ..exceptions import ParameterError
from .column_kinds import Category, Ignore, Label, Number
from .columns import to_number
from .table import Table

# What a codebook may say of a variable; other heads are refused, since they may be misspelt.
_HEADS = ("name", "kind", "low", "high", "categories", "cuts", "missing", "label", "description")
_KINDS = ("number", "category", "ignore")
# Between texts of one cell, where commas stand between cells.
_BETWEEN = "|"


def read_variables(
    codebook: Table,
) -> tuple[Label | None, dict[str, Category | Number | Ignore]]:
    """The label and the columns that a codebook describes; its content is public.

    Raises: ParameterError, which names the variable.
    """
    label, columns = None, {}
    for place, cells in enumerate(_rows_of(codebook)):
        name = cells["name"]
        if not name:
            raise ParameterError(f"codebook names no variable in row {place + 1}, but each has one")
        if name in columns or (label is not None and name == label.column):
            refuse("codebook", name, "it must name each variable once")
        try:
            if not cells["label"]:
                columns[name] = _make_column(cells)
            elif label is not None:
                raise ParameterError(f"label = {cells['label']!r}, but {label.column!r} is it")
            else:
                label = make_label(name, cells["label"], (cells["low"], cells["high"]))
        except ParameterError as error:
            raise ParameterError(f"codebook, variable {name!r}: {error}") from None
    return label, columns


def make_label(column: str, rule: str, bounds: tuple[str, str] = ("", "")) -> Label:
    """The label that a text describes: above NUMBER, between [LOW HIGH], or the values that are 1.

    Raises: ParameterError.
    """
    word, *rest = rule.split()
    if word == "above" and len(rest) == 1:
        return Label(column, above=make_number("above", rest[0]))
    if word == "between" and len(rest) in (0, 2):
        low, high = rest or bounds
        return Label(column, bounds=(make_number("low", low), make_number("high", high)))
    return Label(column, positive=tuple(split_texts(rule)))


def make_number(name: str, text: str) -> float:
    """The number that a text spells.

    Raises: ParameterError if it spells none.
    """
    number = to_number(text)
    if number != number:
        refuse(name, text, "it must be a number")
    return number


def split_texts(cell: str) -> list[str]:
    """The texts that one cell lists, without spaces around them."""
    return [text.strip() for text in cell.split(_BETWEEN)]


def read_category(cell: str, missing: str | None = None) -> Category:
    """The category whose names one cell lists.

    Raises: ParameterError.
    """
    if not cell:
        refuse("categories", cell, f"they must be listed, with {_BETWEEN} between them")
    return Category(tuple(split_texts(cell)), missing)


def _rows_of(codebook: Table) -> list[dict[str, str]]:
    """The cells of each row by all heads there can be; those that are missing are empty."""
    heads = {name.strip().lower(): column for name, column in codebook.columns.items()}
    for head in heads:
        if head not in _HEADS:
            rule = f"its columns are {', '.join(_HEADS)}"
            raise ParameterError(f"codebook has a column {head!r}, but {rule}{guess(head, _HEADS)}")
    if len(heads) < len(codebook.columns):
        raise ParameterError("codebook has two columns of one name, but each must come once")
    if "name" not in heads:
        raise ParameterError("codebook has no column 'name', but it must name the variables")
    cells = {head: [c.texts[code].strip() for code in c.codes] for head, c in heads.items()}
    empty = [""] * codebook.rows
    return [
        {head: cells.get(head, empty)[place] for head in _HEADS} for place in range(codebook.rows)
    ]


def _make_column(cells: dict[str, str]) -> Category | Number | Ignore:
    kind = cells["kind"].lower() or _guess_kind(cells)
    if kind not in _KINDS:
        refuse("kind", cells["kind"], f"it must be one of {', '.join(_KINDS)}{guess(kind, _KINDS)}")
    if kind == "ignore":
        return Ignore()
    missing: Any = cells["missing"] or None
    if kind == "category":
        return read_category(cells["categories"], missing)
    cuts = [make_number("cuts", cut) for cut in split_texts(cells["cuts"]) if cut]
    low, high = (make_number(name, cells[name]) for name in ("low", "high"))
    return Number(low, high, tuple(cuts), missing and make_number("missing", missing))


def _guess_kind(cells: dict[str, str]) -> str:
    """What a variable without a kind is: what is said of it tells."""
    if cells["categories"]:
        return "category"
    return "number" if cells["low"] or cells["high"] else ""
