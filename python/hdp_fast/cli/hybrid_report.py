"""The report of hdp-fast hybrid: one page of HTML that needs no other file, made of its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .report_charts import Bin, Interval, Row, draw_intervals, draw_reliability

# Nothing is loaded and nothing is run, whatever the names of columns hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { --ink: #1b1f24; --soft: #5a6472; --line: #d5dae1; --before: #b4541a; --after: #1f5fa8; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 0; }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
p { margin: .5rem 0; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: .6rem 0; }
caption { text-align: left; color: var(--soft); padding: .2rem 0; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
td, th { overflow-wrap: break-word; }
svg { width: 100%; height: auto; display: block; margin: .6rem 0; font-size: 13px; }
svg text { fill: var(--ink); } svg .name { text-anchor: end; } svg .tick { fill: var(--soft); }
svg .tick, svg .axis { text-anchor: middle; }
svg line { stroke-width: 2.5; } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .diagonal { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4; }
.before line, .before circle { stroke: var(--before); } .before circle { fill: #fff;
stroke-width: 2; }
.after line, .after circle { stroke: var(--after); } .after circle { fill: var(--after); }
.legend span { display: inline-block; margin-right: 1.2rem; }
.legend .before::before { content: "\\25CB "; color: var(--before); font-weight: 700; }
.legend .after::before { content: "\\25CF "; color: var(--after); }
@media screen and (max-width: 34rem) { svg.wide { font-size: 18px; } }
@media print { body { font-size: 11pt; } main { max-width: none; padding: 0; }
section, svg, tr { break-inside: avoid; } }
"""


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
        """The entry, marked by its path; a number has this many digits after the point."""
        entry = self.find(path)
        return f'<span data-key="{escape(path)}">{escape(_word(entry, digits))}</span>'

    def interval(self, path: str, low: str = "low", high: str = "high") -> str:
        """Both ends of an interval below a path."""
        return f"{self.show(f'{path}.{low}')} to {self.show(f'{path}.{high}')}"


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


def render(summary: Mapping[str, Any]) -> str:
    """Makes the page of a summary, as `hdp-fast hybrid` prints it with --json.

    The page holds the whole summary in a script of type application/json, and every number in an
    element with the attribute data-key, which is its path in the summary.
    """
    page = Page(summary)
    title = f"{summary['label']['column']}: a model of the panel, checked by the survey"
    parts = [*_head(page, title), *_errors(page), *_reliability(page), *_shift(page)]
    parts += [*_model(page), *_records(page), *_settings(page)]
    body = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
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


def _head(page: Page, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield (
        f"<p>A model of {page.show('panel.rows')} records in {page.show('panel.file')} "
        f"(epsilon {page.show('settings.epsilon', 0)}, delta {page.show('settings.delta', 0)}), "
        f"checked by {page.show('survey.people')} people of {page.show('survey.file')}, each of "
        f"whom answered one question with epsilon {page.show('settings.agents_epsilon', 0)}. "
        "This is a simulation: rows of the survey play the people, and this program drew their "
        f"coins.{_meaning(page)}</p>"
    )
    if page.find("settings.seed") is not None:
        yield (
            f"<p><strong>The coins come from the seed {page.show('settings.seed')}: "
            "this run protects nobody who knows it.</strong></p>"
        )


def _meaning(page: Page) -> str:
    """A sentence on what label 1 is, where the schema names texts for it."""
    if not page.find("label").get("positive"):
        return ""
    column, texts = page.show("label.column"), page.show("label.positive")
    return f" Label 1 means that {column} is {texts}, label 0 that it is not."


def _section(title: str, parts: Iterator[str]) -> Iterator[str]:
    yield f"<section><h2>{title}</h2>"
    yield from parts
    yield "</section>"


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first cell of each row is its head; marked entries are cells of numbers."""
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


_LEGEND = (
    '<p class="legend" aria-hidden="true"><span class="before">{before}</span>'
    '<span class="after">{after}</span></p>'
)


def _errors(page: Page) -> Iterator[str]:
    yield from _section("How often it errs", _error_parts(page))


def _error_parts(page: Page) -> Iterator[str]:
    kinds = list(page.find("certificates"))
    paths = {kind: f"certificates.{kind}" for kind in kinds}
    yield (
        "<p>Share of people for whom the predicted label is wrong, with an interval that misses "
        f"it with a probability of at most {page.show(f'{paths[kinds[0]]}.beta', 0)}.</p>"
    )
    rows = [
        Row(_CERTIFIED[kind], [Interval(kind, f"{p}.value", f"{p}.low", f"{p}.high")])
        for kind, p in paths.items()
    ]
    constant = f"{paths[kinds[-1]]}.constants"
    has_constant = page.find(constant) is not None
    words = "; ".join(
        f"{_CERTIFIED[kind]}: {page.find(f'{p}.value'):.3f}, from {page.find(f'{p}.low'):.3f} "
        f"to {page.find(f'{p}.high'):.3f}"
        for kind, p in paths.items()
    )
    yield draw_intervals(
        page.find, rows, "Intervals of the error", words, "errors", "share of wrong labels"
    )
    cells = [
        [_CERTIFIED[kind], page.show(f"{p}.value"), page.interval(p), page.show(f"{p}.agents")]
        for kind, p in paths.items()
    ]
    yield _table("Errors on the survey's people", ["", "error", "interval", "answers"], cells)
    if has_constant:
        yield (
            "<p>For comparison, without any model: label 0 for everybody would be wrong about "
            f"{page.show(f'{constant}.zero')} of them, label 1 for everybody about "
            f"{page.show(f'{constant}.one')} (estimates).</p>"
        )


_CERTIFIED = {"before": "model of the panel", "after": "calibrated model"}


def _reliability(page: Page) -> Iterator[str]:
    yield from _section("Whether its probabilities are right", _reliability_parts(page))


def _reliability_parts(page: Page) -> Iterator[str]:
    diagram = "calibration.reliability"
    yield (
        f"<p>Outcome: {page.show('calibration.outcome')}, by {page.show('calibration.answers')} "
        f"answers. The log-odds of the panel's model are multiplied by the slope "
        f"{page.show('calibration.slope')}, and the intercept {page.show('calibration.intercept')} "
        "is added. Each interval of the diagram misses the share of label 1 in its bin with a "
        f"probability of at most {page.show(f'{diagram}.beta', 0)}.</p>"
    )
    bins = range(len(page.find(f"{diagram}.rates")))
    marks = [
        Bin(kind, *(f"{diagram}.{part}.{i}" for part in (kind, "rates", "low", "high")))
        for kind in ("before", "after")
        for i in bins
    ]
    yield _LEGEND.format(before="as the panel's model predicts", after="calibrated")
    words = "; ".join(
        f"predicted {page.find(f'{diagram}.after.{i}'):.3f}, "
        f"observed {page.find(f'{diagram}.low.{i}'):.3f} to {page.find(f'{diagram}.high.{i}'):.3f}"
        for i in bins
    )
    yield draw_reliability(
        page.find, marks, "Reliability diagram", f"Calibrated model: {words}", "reliability"
    )
    rows = [
        [
            f"bin {i + 1}",
            page.show(f"{diagram}.before.{i}"),
            page.show(f"{diagram}.after.{i}"),
            page.show(f"{diagram}.rates.{i}"),
            f"{page.show(f'{diagram}.low.{i}')} to {page.show(f'{diagram}.high.{i}')}",
        ]
        for i in bins
    ]
    heads = ["", "panel's model", "calibrated", "told by the survey", "interval"]
    yield _table("Probability of label 1 among people of similar score", heads, rows)


def _shift(page: Page) -> Iterator[str]:
    if page.has("shift"):
        yield from _section("What moved", _shift_parts(page))


def _shift_parts(page: Page) -> Iterator[str]:
    left_out = page.find("left_out")
    yield (
        f"<p>{page.show('agents.screen')} people answered one bit about one column each. All "
        f"intervals hold at once, but for a probability of {page.show('shift.beta', 0)}; a "
        f"difference above {page.show('shift.visible')} of a column's range is sure to show.</p>"
    )
    names = page.show("left_out") if left_out else "nothing"
    yield (
        f"<p>Left out of the model: {names}. Only what is nearly constant in the panel (within "
        f"{page.show('shift.constant')} of 0 or 1) and not in the survey is left out.</p>"
    )
    columns = page.find("shift.columns")
    paths = [(column, f"shift.columns.{i}") for i, column in enumerate(columns)]
    moved = [(column, path) for column, path in paths if column["moved"]]
    if moved:
        moved.sort(key=lambda pair: -abs(pair[0]["difference"]))
        rows = [
            Row(
                column["name"],
                [
                    Interval("before", f"{p}.source", f"{p}.source_low", f"{p}.source_high"),
                    Interval("after", f"{p}.target", f"{p}.target_low", f"{p}.target_high"),
                ],
            )
            for column, p in moved
        ]
        yield _LEGEND.format(before="panel", after="survey")
        words = "; ".join(
            f"{column['name']}: {column['source']:.3f} to {column['target']:.3f}"
            for column, _ in moved
        )
        yield draw_intervals(
            page.find, rows, "Columns that moved", words, "shift", "mean, in units of the bounds"
        )
    cells = [
        [
            escape(column["name"]),
            page.show(f"{p}.source"),
            page.show(f"{p}.target"),
            page.interval(p),
            page.show(f"{p}.moved"),
        ]
        for column, p in paths
    ]
    heads = ["column", "panel", "survey", "survey less panel", "moved"]
    yield _table("Means of all columns, in units of their bounds", heads, cells)


def _model(page: Page) -> Iterator[str]:
    yield from _section("The model", _model_parts(page))


def _model_parts(page: Page) -> Iterator[str]:
    yield (
        "<p>Log-odds of label 1 in the units of the table: what one more of a number adds, or a "
        "category. The calibrated model is the panel's, times the slope, plus the intercept.</p>"
    )
    rows = [["intercept", page.show("intercept", 4), page.show("panel_model.intercept", 4)]]
    coefficients = page.find("coefficients")
    for name in sorted(coefficients, key=lambda name: -abs(coefficients[name])):
        cells = [_coefficient(page, *path, name) for path in _COEFFICIENTS]
        rows.append([escape(name), *cells])
    yield _table("Intercept and coefficients", ["feature", "calibrated", "panel's model"], rows)


_COEFFICIENTS = (("coefficients",), ("panel_model", "coefficients"))


def _coefficient(page: Page, *path: str) -> str:
    """A number whose path is written as a list, since names of columns may hold points."""
    entry = page.summary
    for part in path:
        entry = entry[part]
    return f'<span data-key="{escape(json.dumps(path))}">{entry:.4f}</span>'


def _records(page: Page) -> Iterator[str]:
    yield from _section("What protects whom", _record_parts(page))


def _record_parts(page: Page) -> Iterator[str]:
    rows = []
    for i, record in enumerate(page.find("records")):
        p = f"records.{i}"
        whom = (
            "one answer of a person" if record["neighbors"] == "local" else "one row of the panel"
        )
        epsilon, delta = page.show(f"{p}.epsilon", 0), page.show(f"{p}.delta", 0)
        rest = (page.show(f"{p}.numerics"), page.show(f"{p}.rng"))
        rows.append([escape(record["mechanism"]), whom, epsilon, delta, *rest])
    heads = ["mechanism", "protects", "epsilon", "delta", "numerics", "coins"]
    yield _table("Records of privacy", heads, rows)
    if page.has("budget"):
        yield (
            f"<p>The ledger was charged epsilon {page.show('budget.epsilon', 0)} and delta "
            f"{page.show('budget.delta', 0)} for this run.</p>"
        )


def _settings(page: Page) -> Iterator[str]:
    yield from _section("Settings, all of them public", _setting_parts(page))


def _setting_parts(page: Page) -> Iterator[str]:
    rows = [
        [escape(name.replace("_", " ")), page.show(f"settings.{name}", 0)]
        for name in page.find("settings")
    ]
    rows += [
        [f"people asked to {name}", page.show(f"agents.{name}")] for name in page.find("agents")
    ]
    yield _table("Chosen before any file was read", ["setting", "value"], rows)
