"""Pages of HTML that need no other file: reports, made of the JSON that they hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from ..exceptions import printable

# Nothing is loaded and nothing is run, whatever the names of columns hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { --ink: #1b1f24; --soft: #5a6472; --line: #d5dae1; --before: #b4541a; --after: #1f5fa8; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 0; }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
p { margin: .5rem 0; } ul { margin: .3rem 0; padding-left: 1.3rem; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .6rem 0; }
caption { text-align: left; color: var(--soft); padding: .2rem 0; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
td, th { overflow-wrap: break-word; }
svg { width: 100%; height: auto; display: block; margin: .6rem 0; font-size: 13px; }
svg text { fill: var(--ink); } svg .name { text-anchor: end; } svg .tick { fill: var(--soft); }
svg .tick, svg .axis { text-anchor: middle; }
svg line { stroke-width: 2.5; } svg .bar { stroke-width: 14; } svg .grid { stroke: var(--line);
stroke-width: 1; } svg .diagonal { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4; }
.before line, .before circle { stroke: var(--before); } .before circle { fill: #fff;
stroke-width: 2; }
.after line, .after circle { stroke: var(--after); } .after circle { fill: var(--after); }
svg line.noise { stroke: var(--ink); stroke-width: 1.5; }
.verdict { font-size: 1.1rem; font-weight: 600; }
.legend span { display: inline-block; margin-right: 1.2rem; }
.legend .before::before { content: "\\25CB "; color: var(--before); font-weight: 700; }
.legend .after::before { content: "\\25CF "; color: var(--after); }
@media screen and (max-width: 34rem) { svg.wide { font-size: 18px; } }
@media print { body { font-size: 11pt; } main { max-width: none; padding: 0; }
section, svg, tr { break-inside: avoid; } }
"""


class PageTable(NamedTuple):
    """A table whose first cell of each row is its head; marked entries are cells of numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Figure(NamedTuple):
    """A drawing, or what else is HTML of its own."""

    html: str


# A text is a sentence or more: a paragraph.
Item = str | PageTable | Figure


class Section(NamedTuple):
    """A part of a report; without items it is left out."""

    title: str
    items: Iterable[Item]


class Page:
    """Finds the entries of a summary by their paths, and writes them as marked HTML."""

    def __init__(self, summary: Mapping[str, Any]):
        """Takes the summary, as JSON would carry it."""
        self.summary: Any = json.loads(json.dumps(summary))

    def find(self, path: str) -> Any:
        """The entry at a path such as "shift.columns.3.low"."""
        entry = self.summary
        for part in path.split("."):
            entry = entry[int(part)] if isinstance(entry, list) else entry[part]
        return entry

    def has(self, name: str) -> bool:
        """Whether the summary has this entry, and it is not None."""
        return self.summary.get(name) is not None

    def show(self, path: str, digits: int = 3) -> str:
        """The entry, marked by its path; a number has this many digits after the point.

        The element keeps the direction of reading of a name to itself.
        """
        entry = self.find(path)
        return f'<bdi data-key="{escape(path)}">{write_text(_word(entry, digits))}</bdi>'

    def find_at(self, path: str) -> Any:
        """The entry at a path that is written as a JSON list: names of columns may hold points."""
        entry = self.summary
        for part in json.loads(path):
            entry = entry[part]
        return entry

    def show_at(self, *path: str | int, digits: int = 4) -> str:
        """A number at a path of these parts."""
        key = json.dumps(path)
        return f'<bdi data-key="{escape(key)}">{self.find_at(key):.{digits}f}</bdi>'

    def interval(self, path: str, low: str = "low", high: str = "high") -> str:
        """Both ends of an interval below a path."""
        return f"{self.show(f'{path}.{low}')} to {self.show(f'{path}.{high}')}"


ADVANTAGE = "attacker's advantage at most"


def write_text(text: str) -> str:
    """A text as HTML; what does not print is escaped, as on a terminal."""
    return escape(printable(text))


def write_name(name: str) -> str:
    """A name that keeps its direction of reading to itself."""
    return f"<bdi>{write_text(name)}</bdi>"


def _word(entry: Any, digits: int) -> str:
    if entry is None:
        return "none"
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    if isinstance(entry, int):
        return f"{entry:,}"
    if isinstance(entry, float):
        return f"{entry:.{digits}f}" if digits else f"{entry:g}"
    return ", ".join(map(str, entry)) if isinstance(entry, list) else str(entry)


def write_page(page: Page, title: str, head: Iterable[Item], sections: Iterable[Section]) -> str:
    """The page of a summary, with the whole summary in a script of type application/json.

    head: what stands below the title.
    """
    parts = [f"<h1>{write_name(title)}</h1>", *map(_write, head)]
    for section in sections:
        items = [_write(item) for item in section.items]
        if items:
            parts += [f"<section><h2>{section.title}</h2>", *items, "</section>"]
    body = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{write_text(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
<script type="application/json" id="summary">{_embed(page.summary)}</script>
</body>
</html>
"""


def _embed(summary: Any) -> str:
    """JSON that no text in it can end."""
    return json.dumps(summary).replace("&", "\\u0026").replace("<", "\\u003c")


def warn_of_seed(page: Page) -> list[Item]:
    """A paragraph on the seed of the random bits, if there is one."""
    if page.find("settings.seed") is None:
        return []
    seed = page.show("settings.seed")
    text = f"The random bits come from the seed {seed}: this run protects no one who knows it."
    return [f"<strong>{text}</strong>"]


def write_verdict(page: Page) -> Figure:
    """The first sentence of a report."""
    return Figure(f'<p class="verdict">{page.show("verdict")}</p>')


def _write(item: Item) -> str:
    if isinstance(item, PageTable):
        return _write_table(*item)
    return item.html if isinstance(item, Figure) else f"<p>{item}</p>"


def _write_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = []
    for first, *cells in rows:
        others = "".join(
            f'<td class="number">{cell}</td>' if "data-key" in cell else f"<td>{cell}</td>"
            for cell in cells
        )
        body.append(f'<tr><th scope="row">{first}</th>{others}</tr>')
    inner = f"<caption>{caption}</caption><thead><tr>{top}</tr></thead>"
    rows_of_body = f"<tbody>{''.join(body)}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{inner}{rows_of_body}</table></div>'
