"""Results as text: the table of a group, and numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))

Entry = dict[str, Any]


def table_of(entries: Sequence[Entry]) -> list[list[str]]:
    """Header and rows of one group: every route on all its parameters."""
    names = list(dict.fromkeys(name for entry in entries for name in entry["params"]))
    extra = list(
        dict.fromkeys(name for route in routes_of(entries) for name in route.get("figures", ()))
    )
    unit = entries[0]["unit"]
    header = [*names, "", "time", f"a {unit}", "x numpy", "x peer", "of limit", *extra]
    rows = [header]
    for entry in entries:
        params = [show(entry["params"].get(name, "")) for name in names]
        for route in entry["routes"]:
            ratios, figures = route.get("ratios", {}), route.get("figures", {})
            cells = [factor(ratios.get("numpy")), factor(ratios.get("peer"))]
            cells.append(share(ratios.get("limit")))
            cells += [show(figures.get(name, "")) for name in extra]
            times = [duration(route["seconds"]), duration(route["seconds"] / entry["work"])]
            rows.append([*params, label_of(route), *times, *cells])
            params = [""] * len(names)
    bare = {3 + len(names): "x numpy", 4 + len(names): "x peer", 5 + len(names): "of limit"}
    bare = {at for at in bare if not any(row[at] for row in rows[1:])}
    if all(entry["work"] == 1 for entry in entries):
        bare.add(2 + len(names))
    return [[cell for at, cell in enumerate(row) if at not in bare] for row in rows]


def label_of(route: Mapping[str, Any]) -> str:
    """What a route is called in a table."""
    if route["role"] == "ours":
        return str(route["name"])
    threads = ", 2 threads" if route["role"] == "limit" and route["threads"] == 2 else ""
    return f"{route['role']}: {route['name']}{threads}"


def routes_of(entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield from entry["routes"]


def print_table(rows: list[list[str]]) -> str:
    """The rows in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(lines)


def show(value: Any) -> str:
    """A number as people read it."""
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    unit, size = next((each for each in UNITS if seconds >= each[1]), UNITS[-1])
    return f"{digits(seconds / size)} {unit}"


def digits(value: float) -> str:
    """Three digits without an exponent, which are enough for a time."""
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(places, 4)}f}"


def factor(ratio: float | None) -> str:
    """Two or three digits."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def share(ratio: float | None) -> str:
    """A percentage."""
    return "" if ratio is None else f"{100 * ratio:.0f} %"
