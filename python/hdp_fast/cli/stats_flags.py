"""What the flags of hdp-fast stats ask for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from .._support.validate import guess, refuse
from ..data import Category, Number, Schema
from ..statistics import Task, columns_of

MOMENTS = ("mean", "sum", "variance")


class Planner:
    """Reads flags, and refuses what the schema does not allow."""

    def __init__(self, schema: Schema, by: str | None) -> None:
        """Refuse groups that have no public keys."""
        self._kinds = columns_of(schema)
        if by is not None and not isinstance(self._kind("--by", by), Category):
            refuse("--by", by, "the schema must have it as a category, whose values are public")
        self._by = by

    def plan(self, arguments: argparse.Namespace) -> list[Task] | None:
        """The releases that are asked for; None for the usual ones."""
        tasks = [Task("count", ())] if arguments.count else []
        for name in MOMENTS:
            columns = getattr(arguments, name)
            if columns:
                for column in columns:
                    self._require(f"--{name}", column, Number)
                tasks.append(Task(name, self._distinct(f"--{name}", columns)))
        tasks += [self._plan_quantiles(text) for text in arguments.quantiles or ()]
        for column in self._distinct("--histogram", arguments.histogram or ()):
            self._kind("--histogram", column)
            tasks.append(Task("histogram", (column,)))
        tasks += [self._plan_choices(text) for text in arguments.top_k or ()]
        return tasks or None

    def _plan_quantiles(self, text: str) -> Task:
        column, detail = self._split("--quantiles", text)
        self._require("--quantiles", column, Number)
        if detail is None:
            return Task("quantiles", (column,))
        try:
            levels = tuple(sorted({float(level) for level in detail.split(",")}))
        except ValueError:
            levels = ()
        if not levels or not all(0 <= level <= 1 for level in levels):
            refuse("--quantiles", text, "it must be COLUMN or COLUMN:LEVEL,..., levels in [0, 1]")
        return Task("quantiles", (column,), levels)

    def _plan_choices(self, text: str) -> Task:
        column, detail = self._split("--top-k", text)
        kind = self._require("--top-k", column, Category)
        if self._by is not None:
            refuse("--top-k", text, "it has no groups: leave --by out, or ask for --histogram")
        many = len(kind.values)
        if detail is None:
            return Task("top_k", (column,))
        if not (detail.isdecimal() and 1 <= int(detail) <= many):
            refuse("--top-k", text, f"it must be COLUMN or COLUMN:K, with K from 1 to {many}")
        return Task("top_k", (column,), int(detail))

    def _split(self, flag: str, text: str) -> tuple[str, str | None]:
        """A column and what stands behind a colon; names of columns may have colons, too."""
        if text in self._kinds:
            return text, None
        column, sign, detail = text.rpartition(":")
        self._kind(flag, column if sign else text)
        return (column, detail) if sign else (text, None)

    def _kind(self, flag: str, column: str) -> Category | Number:
        if column not in self._kinds:
            rule = "it must be a column of the schema that is not ignored"
            refuse(flag, column, f"{rule}{guess(column, self._kinds)}")
        return self._kinds[column]

    def _require(self, flag: str, column: str, wanted: type) -> Any:
        kind = self._kind(flag, column)
        if not isinstance(kind, wanted):
            word = "number" if wanted is Number else "category"
            refuse(flag, column, f"the schema must have it as a {word}")
        return kind

    def _distinct(self, flag: str, columns: Iterable[str]) -> tuple[str, ...]:
        names = tuple(columns)
        if len(set(names)) < len(names):
            refuse(flag, list(names), "it must name each column once")
        return names
