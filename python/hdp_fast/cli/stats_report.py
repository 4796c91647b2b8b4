"""The report of hdp-fast stats: one page of HTML that needs no other file, made of its summary."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from .output import advantage_of
from .report_charts import ChartRow, Interval, draw_intervals
from .report_page import (
    ADVANTAGE,
    Figure,
    Item,
    Page,
    PageTable,
    Section,
    warn_of_seed,
    write_name,
    write_page,
    write_verdict,
)

_TITLE = "Private statistics"
# How many bars a figure has at most; the table has them all.
_DRAWN = 40
# And how many points of a distribution are shown; the summary has them all.
_POINTS = 20
# A row of the summary, and its place there.
Placed = tuple[int, Mapping[str, Any]]


def render(summary: Mapping[str, Any]) -> str:
    """Makes the page of a summary of `hdp-fast stats`.

    The page holds the whole summary in a script of type application/json, and every number in an
    element with the attribute data-key, which is its path in the summary.
    """
    page = Page(summary)
    rows = list(enumerate(page.find("statistics")))
    sections = [
        Section("Numbers", _numbers(page, rows)),
        Section("Quantiles", _quantiles(page, rows)),
        Section("Distributions", _bars(page, rows, "distribution", "share of the rows")),
        Section("Histograms", _bars(page, rows, "histogram", "rows")),
        Section("Tables", _bars(page, rows, "tables", "rows")),
        Section("Most frequent categories", _choices(page, rows)),
        Section("The population", _population(page, rows)),
        Section("What protects the rows", _records(page)),
    ]
    return write_page(
        page, _TITLE, [write_verdict(page), _head(page), *warn_of_seed(page)], sections
    )


def _head(page: Page) -> str:
    number = page.find("private.rows")
    rows = "rows" if number is None else f"{page.show('private.rows')} rows"
    unit = "Each row is"
    if page.find("settings.ids") is not None:
        rows += " that are used"
        unit = f"All rows with one value of {page.show('settings.ids')} together are"
    return (
        f"Numbers about the {rows} in {page.show('private.file')}. {unit} protected by "
        f"epsilon {page.show('settings.epsilon', 0)} and delta {page.show('settings.delta', 0)} in "
        f"all (neighbors {page.show('settings.neighbors')}). Each interval alone covers what the "
        f"rows have, clipped to the schema's bounds, with probability "
        f"{page.show('settings.confidence', 0)}; a distribution's intervals do so together. They "
        "say nothing about the population from which rows may have been drawn, which has intervals "
        "of its own where --sampled asked for them."
    )


def _pick(rows: list[Placed], *statistics: str) -> list[Placed]:
    return [(place, row) for place, row in rows if row["statistic"] in statistics]


def _numbers(page: Page, rows: list[Placed]) -> Iterator[Item]:
    chosen = _pick(rows, "count", "sum", "mean", "variance")
    if chosen:
        cells = [
            [
                row["statistic"],
                write_name(row.get("column", "")),
                *_group(page, row),
                page.show(f"statistics.{place}.value"),
                page.interval(f"statistics.{place}"),
            ]
            for place, row in chosen
        ]
        heads = ["statistic", "column", *_group_head(page), "value", "interval"]
        yield PageTable("Counts, sums, means and variances", heads, cells)


def _group_head(page: Page) -> list[str]:
    by = page.find("settings.by")
    return [] if by is None else [write_name(by)]


def _group(page: Page, row: Mapping[str, Any]) -> list[str]:
    return [] if page.find("settings.by") is None else [write_name(str(row.get("group", "")))]


def _quantiles(page: Page, rows: list[Placed]) -> Iterator[Item]:
    chosen = _pick(rows, "quantiles")
    if chosen:
        cells = [
            [
                write_name(row["column"]),
                *_group(page, row),
                page.show(f"statistics.{place}.item", 0),
                page.show(f"statistics.{place}.value"),
                page.show(f"statistics.{place}.rank_error", 0),
            ]
            for place, row in chosen
        ]
        heads = ["column", *_group_head(page), "level", "value", "error in ranks"]
        yield PageTable("With the probability above, a rank is off by no more", heads, cells)


def _bars(page: Page, rows: list[Placed], statistic: str, unit: str) -> Iterator[Item]:
    """A figure and a table of each release of many numbers."""
    releases = itertools.groupby(
        _pick(rows, statistic), lambda pair: (pair[1]["column"], pair[1].get("group"))
    )
    for number, ((column, group), members) in enumerate(releases):
        chosen = list(members)
        if statistic == "distribution":
            chosen = chosen[:: max(len(chosen) // _POINTS, 1)]
        title = column if group is None else f"{column}, {page.find('settings.by')} {group}"
        paths = [(_name_item(row["item"]), f"statistics.{place}") for place, row in chosen]
        bars = [
            ChartRow(item, [Interval("after", f"{path}.value", f"{path}.low", f"{path}.high")])
            for item, path in paths[:_DRAWN]
        ]
        words = "; ".join(
            f"{_name_item(row['item'])}: {_write_value(row['value'])}" for _, row in chosen[:_DRAWN]
        )
        drawn = draw_intervals(page.find, bars, title, words, f"{statistic}-{number}", unit)
        yield Figure(drawn)
        cells = [
            [write_name(item), page.show(f"{path}.value"), page.interval(path)]
            for item, path in paths
        ]
        yield PageTable(write_name(title), ["", unit, "interval"], cells)


def _name_item(item: Any) -> str:
    return f"up to {item:.6g}" if isinstance(item, float) else str(item)


def _write_value(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _population(page: Page, rows: list[Placed]) -> Iterator[Item]:
    """What the population has, where that was asked for."""
    chosen = [(place, row) for place, row in rows if "population_low" in row]
    if chosen:
        cells = [
            [
                row["statistic"],
                write_name(row.get("column", "")),
                *_group(page, row),
                write_name(str(row.get("item", ""))),
                page.interval(f"statistics.{place}", "population_low", "population_high"),
            ]
            for place, row in chosen
        ]
        heads = ["statistic", "column", *_group_head(page), "", "interval"]
        title = "For the population the rows are a sample of; counts are those of as many rows"
        yield PageTable(title, heads, cells)


def _choices(page: Page, rows: list[Placed]) -> Iterator[Item]:
    chosen = _pick(rows, "top_k")
    if chosen:
        cells = [
            [
                write_name(row["column"]),
                page.show(f"statistics.{place}.item"),
                page.show(f"statistics.{place}.value"),
                page.show(f"statistics.{place}.count_error", 0),
            ]
            for place, row in chosen
        ]
        heads = ["column", "place", "category", "rows below the best at most"]
        yield PageTable("Chosen one after the other", heads, cells)


def _records(page: Page) -> Iterator[Item]:
    rows = [
        [
            write_name(record["mechanism"]),
            *(page.show(f"records.{i}.{name}", 0) for name in ("epsilon", "delta")),
            f"{advantage_of(record):g}",
            *(page.show(f"records.{i}.{name}") for name in ("noise", "numerics", "rng")),
        ]
        for i, record in enumerate(page.find("records"))
    ]
    heads = ["mechanism", "epsilon", "delta", ADVANTAGE, "noise", "numerics", "random bits"]
    yield PageTable("Records of privacy; a row's protection is their sum", heads, rows)
    if page.find("settings.budget") is not None:
        yield f"All of it was charged to the ledger {page.show('settings.budget')}."
