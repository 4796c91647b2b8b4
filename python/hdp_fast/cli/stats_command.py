"""The command hdp-fast stats: numbers, distributions and tables of a private table."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.random_state import check_random_state
from .._support.validate import guess, positive, probability, refuse
from ..data.column_kinds import Category, Number
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import notes_of, printable
from .output import (
    Block,
    check_outputs,
    check_report,
    deliver,
    describe_interrupt,
    record_of,
    say_protected,
    settle_output,
)
from .stats_report import render
from .tables import (
    SCHEMA_HELP,
    add_delimiter,
    add_owners,
    add_parts,
    name_parts,
    open_workers,
    owners_of,
    read_parts,
    read_schema,
)
from .verdicts import judge_statistics

if TYPE_CHECKING:
    from ..budget.account import Budget
    from ..statistics import TableStatistics, Task

MOMENTS = ("mean", "sum", "variance")
# A number of steps of more digits is none.
_MOST_DIGITS = 10
# Of a distribution so many points are printed, and a last one.
_SHOWN = 10
_NUMBERS = ("value", "from", "to", "population from", "to there")
# Of a longer file of text they are read by parts, in one pass: numbers are made of no texts then.
_LONGEST_WHOLE = 1 << 22


class Planner:
    """Reads flags, and refuses what the schema does not allow."""

    def __init__(self, schema: Schema, by: str | None) -> None:
        """Refuse groups that have no public keys."""
        from ..statistics import columns_of  # Help and a wrong flag do not wait for it.

        self._kinds = columns_of(schema)
        if by is not None and not isinstance(self._kind("--by", by), Category):
            refuse("--by", by, "the schema must have it as a category, whose values are public")
        self._by = by

    def plan(self, arguments: argparse.Namespace) -> list[Task] | None:
        """The releases that are asked for; None for the usual ones."""
        tasks = [_make_task("count", ())] if arguments.count else []
        for name in MOMENTS:
            columns = getattr(arguments, name)
            if columns:
                for column in columns:
                    self._require(f"--{name}", column, Number)
                tasks.append(_make_task(name, self._distinct(f"--{name}", columns)))
        tasks += [self._plan_quantiles(text) for text in arguments.quantiles or ()]
        for column in self._distinct("--histogram", arguments.histogram or ()):
            self._kind("--histogram", column)
            tasks.append(_make_task("histogram", (column,)))
        tasks += [self._plan_choices(text) for text in arguments.top_k or ()]
        tasks += [self._plan_distribution(text) for text in arguments.distribution or ()]
        tables = self._distinct("--table", arguments.table or ())
        tasks += [self._plan_table(text) for text in tables]
        return tasks or None

    def refuse_ids(self, column: str) -> None:
        """Refuses ids that are released: a row's person would be one of its numbers."""
        if column in self._kinds:
            refuse("--ids", column, "it must be no column of the schema that is not ignored")

    def _plan_quantiles(self, text: str) -> Task:
        column, detail = self._split("--quantiles", text)
        self._require("--quantiles", column, Number)
        if detail is None:
            return _make_task("quantiles", (column,))
        try:
            levels = tuple(sorted({float(level) for level in detail.split(",")}))
        except ValueError:
            levels = ()
        if not levels or not all(0 <= level <= 1 for level in levels):
            refuse("--quantiles", text, "it must be COLUMN or COLUMN:LEVEL,..., levels in [0, 1]")
        return _make_task("quantiles", (column,), levels)

    def _plan_distribution(self, text: str) -> Task:
        column, detail = self._split("--distribution", text)
        self._require("--distribution", column, Number)
        if detail is None:
            return _make_task("distribution", (column,))
        # How many there may be at most the library says.
        if not (detail.isdecimal() and len(detail) < _MOST_DIGITS and int(detail)):
            refuse("--distribution", text, "it must be COLUMN or COLUMN:STEPS, of 1 step or more")
        return _make_task("distribution", (column,), int(detail))

    def _plan_table(self, text: str) -> Task:
        if self._by is not None:
            refuse("--table", text, "it has no groups: leave --by out, and name its column here")
        columns = (text,) if text in self._kinds else tuple(text.split(","))
        for column in columns:
            self._kind("--table", column)
        return _make_task("tables", self._distinct("--table", columns))

    def _plan_choices(self, text: str) -> Task:
        column, detail = self._split("--top-k", text)
        kind = self._require("--top-k", column, Category)
        if self._by is not None:
            refuse("--top-k", text, "it has no groups: leave --by out, or ask for --histogram")
        many = len(kind.values)
        if detail is None:
            return _make_task("top_k", (column,))
        if not (detail.isdecimal() and 1 <= int(detail) <= many):
            refuse("--top-k", text, f"it must be COLUMN or COLUMN:K, with K from 1 to {many}")
        return _make_task("top_k", (column,), int(detail))

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


def _make_task(statistic: str, columns: tuple[str, ...], detail: Any = None) -> Task:
    from ..statistics import Task

    return Task(statistic, columns, detail)


_TEXT = """Release statistics of the columns of PRIVATE, each with an interval for what its rows
have. Without a flag that names one: the number of rows, the mean and the quartiles of every number,
and a histogram of every category of the schema. Epsilon is split evenly among the statistics, a
column of each counting as one, and so does a table of several columns. Values are clipped to the
schema's bounds; a text that is no number counts as the lower bound, and one that is none of the
categories is counted nowhere but in tables. A label by a rule is 1 where the rule applies, and its
mean the share of such rows. Privacy: PRIVATE is protected by (epsilon, delta) for each row, with
--ids for all rows of an id together, whatever is printed or written. The schema is public and must
not be made from PRIVATE."""


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast stats."""
    parser.description = _TEXT
    add = parser.add_argument
    add_parts(parser)
    add("--schema", type=Path, required=True, metavar="FILE", help=SCHEMA_HELP)
    add("--epsilon", type=float, required=True, help="privacy of PRIVATE, of all statistics")
    add("--delta", type=float, help="allows normal noise where that is smaller [none]")
    add(
        "--neighbors",
        choices=("replace_one", "add_remove"),
        help="whether the number of rows is public, replace_one, or not [the ledger's, or "
        "replace_one]",
    )
    add("--count", action="store_true", help="the number of rows")
    many: dict[str, Any] = {"nargs": "+", "action": "extend"}
    for name in MOMENTS:
        add(f"--{name}", **many, metavar="COLUMN", help=f"{name} of these numbers")
    add("--quantiles", **many, metavar="COLUMN:LEVEL,...", help="levels of a number [quartiles]")
    add("--histogram", **many, metavar="COLUMN", help="of a category, or between a number's cuts")
    add("--top-k", **many, metavar="COLUMN:K", help="the K most frequent categories [3]")
    add(
        "--distribution",
        **many,
        metavar="COLUMN:STEPS",
        help="the share of rows at or below each of so many points of a number [100]",
    )
    add("--table", **many, metavar="COLUMN,...", help="counts by one to three columns at once")
    add("--by", metavar="COLUMN", help="all of it for each category of this column")
    add_owners(parser)
    add("--confidence", type=float, default=0.95, help="of each interval alone [.95]")
    add(
        "--sampled",
        action="store_true",
        help="also intervals for the population that the rows are an independent sample of",
    )
    add("--output", type=Path, metavar="FILE", help="JSON: statistics and records; - prints it")
    add("--report", type=Path, metavar="FILE", help="one page of .html, with figures")
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    add_delimiter(parser)
    parser.set_defaults(command=_stats)


def _stats(arguments: argparse.Namespace) -> None:
    from .. import statistics
    from ..data.chunks import Chunks

    epsilon = positive("--epsilon", arguments.epsilon)
    delta = None if arguments.delta is None else probability("--delta", arguments.delta)
    confidence = probability("--confidence", arguments.confidence)
    check_random_state(arguments.seed)
    settle_output(arguments)
    check_report(arguments)
    check_outputs(arguments, [arguments.output, arguments.report])
    owners = owners_of(arguments)
    budget, relation = _open_ledger(arguments)
    schema = read_schema(arguments.schema, labeled=False)
    planner = Planner(schema, arguments.by)
    if arguments.ids is not None:
        planner.refuse_ids(arguments.ids)
    places = [arguments.output, arguments.report]
    with open_workers(arguments), describe_interrupt(places, budget):
        empty = relation == "add_remove"
        table = read_parts(arguments, may_be_empty=empty, longest=_LONGEST_WHOLE, **owners)
        if owners and isinstance(table, Table):
            table = Chunks([table], **owners)
        tasks = planner.plan(arguments)
        say_protected(arguments, {name_parts(arguments): (epsilon, delta)})
        result = statistics.describe(
            table,
            schema,
            epsilon=epsilon,
            delta=delta,
            tasks=tasks,
            by=arguments.by,
            neighbors=relation,
            confidence=confidence,
            sampled=arguments.sampled,
            budget=budget,
            random_state=arguments.seed,
        )
        summary = _summarize(arguments, relation, result)
        deliver(summary, arguments, words=_words(summary), page=render)


def _open_ledger(arguments: argparse.Namespace) -> tuple[Budget | None, str]:
    """The budget, if there is one, and the relation of rows that it, or a flag, asks for."""
    asked = arguments.neighbors
    if arguments.budget is None:
        return None, asked or "replace_one"
    from ..budget.account import Budget

    # A ledger about rows may take releases about people: what is charged says whether it does.
    budget = Budget.open(arguments.budget, neighbors=None if arguments.ids else asked)
    hides_rows = budget.neighbors.startswith("add_remove")
    return budget, asked or ("add_remove" if hides_rows else "replace_one")


def _summarize(
    arguments: argparse.Namespace, relation: str, result: TableStatistics
) -> dict[str, Any]:
    # With --ids it is one of people.
    about: str = result.records[0].neighbors if result.records else relation
    return {
        "verdict": judge_statistics(notes_of(result)),
        "private": {"file": str(name_parts(arguments)), "rows": result.n},
        "settings": {
            "epsilon": arguments.epsilon,
            "delta": arguments.delta,
            "neighbors": about,
            "ids": arguments.ids,
            "rows_per_person": arguments.rows_per_person,
            "confidence": arguments.confidence,
            "by": arguments.by,
            "sampled": arguments.sampled,
            "seed": arguments.seed,
            "budget": arguments.budget and str(arguments.budget),
        },
        "statistics": list(result.rows),
        "records": [record_of(record) for record in result.records],
        "report": arguments.report and str(arguments.report),
    }


def _words(summary: dict[str, Any]) -> dict[str, Any]:
    """What people read instead of long entries; files and --json have all of them."""
    table = _table(summary["statistics"], summary["private"]["rows"])
    words = {**summary, "statistics": table, "records": None}
    words["settings"] = {
        name: value for name, value in summary["settings"].items() if value is not None
    }
    many = len(summary["records"])
    spent = sum(record["epsilon"] for record in summary["records"])
    delta = sum(record["delta"] for record in summary["records"])
    words["spent"] = (
        f"epsilon = {spent:.6g}, delta = {delta:.6g}, by {many} release{'s' * (many != 1)}"
    )
    return words


def _table(rows: Sequence[dict[str, Any]], public_n: int | None) -> Block:
    """Lines of columns, of those that some row has, and of some points of a distribution."""
    cells = [
        {
            "statistic": row["statistic"],
            "column": printable(row.get("column", "")),
            "group": _text(row.get("group")),
            "item": _item(row),
            "value": _text(row["value"]),
            "from": _text(row.get("low")),
            "to": _text(row.get("high")),
            "population from": _text(row.get("population_low")),
            "to there": _text(row.get("population_high")),
            "error": _error(row, public_n),
        }
        for row in _thin(rows)
    ]
    heads = [head for head in cells[0] if any(row[head] for row in cells)]
    widths = {head: max(len(head), *(len(row[head]) for row in cells)) for head in heads}
    lines = [dict(zip(heads, heads, strict=True)), *cells]
    texts = (
        "  ".join(_align(head, row[head], widths[head]) for head in heads).rstrip() for row in lines
    )
    return Block("\n".join(texts))


def _thin(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows, of each distribution every tenth part of them and the last."""
    for statistic, members in itertools.groupby(rows, _release_of):
        chosen = list(members)
        step = max(len(chosen) // _SHOWN, 1) if statistic[0] == "distribution" else 1
        yield from chosen[:-1:step]
        yield chosen[-1]


def _release_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("statistic", "column", "group"))


def _align(head: str, text: str, width: int) -> str:
    return text.rjust(width) if head in _NUMBERS else text.ljust(width)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _item(row: dict[str, Any]) -> str:
    """What a row is about; the rank of a quantile in per cent."""
    if row["statistic"] == "quantiles":
        return f"{100 * row['item']:.6g} %"
    return _text(row.get("item"))


def _error(row: dict[str, Any], public_n: int | None) -> str:
    """By how much a choice may be off: in per cent of the rows where their number is public."""
    if "rank_error" in row:
        if public_n and "group" not in row:
            share = row["rank_error"] / public_n
            most = max(row["item"], 1 - row["item"])
            return f"rank within {100 * share:.3g} %" if share < most else "may be any rank"
        return f"within {row['rank_error']:.3g} ranks"
    return f"within {row['count_error']:.3g} rows of the best" if "count_error" in row else ""
