"""The report of hdp-fast hybrid: one page of HTML that needs no other file, made of its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .output import advantage_of
from .report_charts import Bin, ChartRow, Interval, draw_intervals, draw_reliability
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


def render(summary: Mapping[str, Any]) -> str:
    """Makes the page of a summary, as `hdp-fast hybrid` prints it with --json.

    The page holds the whole summary in a script of type application/json, and every number in an
    element with the attribute data-key, which is its path in the summary.
    """
    page = Page(summary)
    title = f"{summary['label']['column']}: a model of the panel, checked by the survey"
    sections = [
        Section("How often it errs", _errors(page)),
        Section("Whether its probabilities are right", _reliability(page)),
        Section("What moved", _shift(page)),
        Section("The model", _model(page)),
        Section("Who answered", _response(page)),
        Section("What is protected, and what is not", _protected(page)),
        Section("What protects whom", _records(page)),
        Section("Settings, all of them public", _settings(page)),
    ]
    return write_page(page, title, [*_verdict(page), _head(page), *warn_of_seed(page)], sections)


def _head(page: Page) -> str:
    return (
        f"A model of {page.show('panel.rows')} records in {page.show('panel.file')} "
        f"(epsilon {page.show('settings.epsilon', 0)}, delta {page.show('settings.delta', 0)}), "
        f"checked by {page.show('survey.people')} people of {page.show('survey.file')}, each of "
        f"whom was asked one question with epsilon {page.show('settings.agents_epsilon', 0)}. "
        f"{_who_drew(page)}{_meaning(page)}"
    )


def _who_drew(page: Page) -> str:
    if page.find("response.days") is None:
        played = "This is a simulation: rows of the survey play the people"
        return f"{played}, and this program drew the randomness of their answers."
    return "Their own devices drew the randomness of the answers, if they did as they should."


def _verdict(page: Page) -> list[Item]:
    return [write_verdict(page)] if page.has("verdict") else []


def _meaning(page: Page) -> str:
    """A sentence on what label 1 is, where the schema names texts for it."""
    if not page.find("label").get("positive"):
        return ""
    column, texts = page.show("label.column"), page.show("label.positive")
    return f" Label 1 means that {column} is {texts}, label 0 that it is not."


_LEGEND = (
    '<p class="legend" aria-hidden="true"><span class="before">{before}</span>'
    '<span class="after">{after}</span></p>'
)


def _errors(page: Page) -> Iterator[Item]:
    kinds = list(page.find("certificates"))
    paths = {kind: f"certificates.{kind}" for kind in kinds}
    yield (
        "Share of people for whom the predicted label is wrong, with an interval that misses "
        f"it with a probability of at most {page.show(f'{paths[kinds[0]]}.beta', 0)}."
    )
    rows = [
        ChartRow(_CERTIFIED[kind], [Interval(kind, f"{p}.value", f"{p}.low", f"{p}.high")])
        for kind, p in paths.items()
    ]
    words = "; ".join(
        f"{_CERTIFIED[kind]}: {page.find(f'{p}.value'):.3f}, from {page.find(f'{p}.low'):.3f} "
        f"to {page.find(f'{p}.high'):.3f}"
        for kind, p in paths.items()
    )
    yield Figure(
        draw_intervals(
            page.find, rows, "Intervals of the error", words, "errors", "share of wrong labels"
        )
    )
    cells = [
        [
            _CERTIFIED[kind],
            page.show(f"{p}.value"),
            page.interval(p),
            page.interval(p, "low_any", "high_any"),
            f"{page.show(f'{p}.agents')} of {page.show(f'{p}.asked')}",
        ]
        for kind, p in paths.items()
    ]
    heads = ["", "error", "interval", "whoever did not answer", "answers"]
    yield PageTable("Errors on the survey's people", heads, cells)
    if page.has("base_rate"):
        yield (
            f"Label 1 has a share of {page.show('base_rate.value')} of the people, "
            f"{page.interval('base_rate')}, by {page.show('base_rate.answers')} answers. So often "
            "label 0 for everybody would be wrong, without any model; label 1 for everybody would "
            "be for all others."
        )


_CERTIFIED = {"before": "model of the panel", "after": "calibrated model"}


def _reliability(page: Page) -> Iterator[Item]:
    diagram = "calibration.reliability"
    yield (
        f"Outcome: {page.show('calibration.outcome')}, by {page.show('calibration.answers')} "
        f"answers. The log-odds of the panel's model are multiplied by the slope "
        f"{page.show('calibration.slope')}, and the intercept {page.show('calibration.intercept')} "
        "is added; beyond the scores that people were asked about, only a constant is. Each "
        "interval of the diagram misses the share of label 1 in its bin with a "
        f"probability of at most {page.show(f'{diagram}.beta', 0)}."
    )
    if not page.find("reliability.tells"):
        yield (
            "Every interval of the diagram is all of [0, 1], so that it is not drawn: a survey of "
            f"about {page.show('reliability.people')} people would have intervals within "
            f"{page.show('reliability.half_width', 2)} of a share."
        )
        return
    bins = range(len(page.find(f"{diagram}.rates")))
    ends = zip(page.find(f"{diagram}.low"), page.find(f"{diagram}.high"), strict=True)
    if any(low <= 0 and high >= 1 for low, high in ends):
        yield (
            "Where an interval is all of [0, 1] the survey tells nothing of the bin, whatever its "
            f"share: about {page.show('reliability.people')} people would have intervals within "
            f"{page.show('reliability.half_width', 2)} of a share in every bin."
        )
    marks = [
        Bin(kind, *(f"{diagram}.{part}.{i}" for part in (kind, "rates", "low", "high")))
        for kind in ("before", "after")
        for i in bins
    ]
    yield Figure(_LEGEND.format(before="as the panel's model predicts", after="calibrated"))
    words = "; ".join(
        f"predicted {page.find(f'{diagram}.after.{i}'):.3f}, "
        f"observed {page.find(f'{diagram}.low.{i}'):.3f} to {page.find(f'{diagram}.high.{i}'):.3f}"
        for i in bins
    )
    yield Figure(
        draw_reliability(
            page.find, marks, "Reliability diagram", f"Calibrated model: {words}", "reliability"
        )
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
    yield PageTable("Probability of label 1 among people of similar score", heads, rows)


def _shift(page: Page) -> Iterator[Item]:
    if not page.has("shift"):
        return
    left_out = page.find("left_out")
    yield (
        f"{page.show('agents.screen')} people answered one bit about one column each. All "
        f"intervals hold at once; one misses with probability {page.show('shift.beta', 0)}; a "
        f"difference above {page.show('shift.visible')} of a column's range is sure to show."
    )
    names = page.show("left_out") if left_out else "nothing"
    yield (
        f"Left out of the model: {names}. Only what is nearly constant in the panel (within "
        f"{page.show('shift.constant')} of 0 or 1) and not in the survey is left out."
    )
    columns = page.find("shift.columns")
    paths = [(column, f"shift.columns.{i}") for i, column in enumerate(columns)]
    moved = [(column, path) for column, path in paths if column["moved"]]
    if moved:
        moved.sort(key=lambda pair: -abs(pair[0]["difference"]))
        rows = [
            ChartRow(
                column["name"],
                [
                    Interval("before", f"{p}.source", f"{p}.source_low", f"{p}.source_high"),
                    Interval("after", f"{p}.target", f"{p}.target_low", f"{p}.target_high"),
                ],
            )
            for column, p in moved
        ]
        yield Figure(_LEGEND.format(before="panel", after="survey"))
        words = "; ".join(
            f"{column['name']}: {column['source']:.3f} to {column['target']:.3f}"
            for column, _ in moved
        )
        yield Figure(
            draw_intervals(
                page.find,
                rows,
                "Columns that moved",
                words,
                "shift",
                "mean, in units of the bounds",
            )
        )
    cells = [
        [
            write_name(column["name"]),
            page.show(f"{p}.source"),
            page.show(f"{p}.target"),
            page.interval(p),
            page.show(f"{p}.moved"),
        ]
        for column, p in paths
    ]
    heads = ["column", "panel", "survey", "survey less panel", "moved"]
    yield PageTable("Means of all columns, in units of their bounds", heads, cells)


def _model(page: Page) -> Iterator[Item]:
    adds = "one more of a number adds, or a category"
    if page.find("settings.method") == "additive":
        adds = "a number adds that is at a cut or above, or a category"
    yield (
        f"Log-odds of label 1 in the units of the table: what {adds}. "
        "The calibrated model is the panel's, times the slope, plus the intercept, "
        "between the scores that people were asked about; beyond, the panel's plus a constant."
    )
    rows = [["intercept", page.show("intercept", 4), page.show("panel_model.intercept", 4)]]
    heads, columns = ["feature", "calibrated", "panel's model"], [*_COEFFICIENTS]
    if page.find("deviations") is not None:
        heads.append("deviation by the panel's noise; of a category, from its column's mean")
        columns.append(("deviations",))
        rows[0].append("")
    coefficients = page.find("coefficients")
    for name in sorted(coefficients, key=lambda name: -abs(coefficients[name])):
        rows.append([write_name(name), *(page.show_at(*path, name) for path in columns)])
    yield PageTable("Intercept and coefficients", heads, rows)


_COEFFICIENTS = (("coefficients",), ("panel_model", "coefficients"))


def _response(page: Page) -> Iterator[Item]:
    yield (
        f"Questions went out in {page.show('response.rounds')} rounds, and each person was asked "
        f"in one of them, once. Of {page.show('response.asked')} people who were asked whether a "
        f"model is wrong about them, {page.show('response.answered')} have answered, a share of "
        f"{page.show('response.rate')}."
    )
    days = page.find("response.days") or []
    if days:
        heads = ["round", "went out", "invited", "answered"]
        paths = [f"response.days.{i}" for i in range(len(days))]
        rows = [
            [str(i), *(page.show(f"{path}.{name}") for name in ("day", "invited", "answered"))]
            for i, path in enumerate(paths, start=1)
        ]
        yield PageTable("Rounds of questions", heads, rows)
    yield (
        "The first interval of an error assumes that whether somebody answers does not depend on "
        "the true answer. The second one assumes nothing about those who were silent: it holds for "
        "all who were asked. Neither holds for other people, unless those who were asked are a "
        "random sample of them."
    )


def _protected(page: Page) -> Iterator[Item]:
    panel = f"epsilon {page.show('settings.epsilon', 0)} and delta {page.show('settings.delta', 0)}"
    yield "Protected, whoever sees this page, the model and all that was printed:"
    yield _list(
        f"each row of the panel, by {panel}: no result is more than exp(epsilon) times as likely "
        "as with another row in its place, but for delta;",
        "the answer of each person, by epsilon "
        f"{page.show('settings.agents_epsilon', 0)}, before it leaves the device: also from "
        "whoever reads the very bit that was sent. How much better than by chance that can be "
        "guessed, the attacker's advantage below says.",
    )
    yield "Not protected:"
    yield _list(
        "that somebody is in the panel's table or was invited, and whether somebody answered;",
        "what the results say about people in general, also about those who took no part;",
        "what other releases about the same rows or people add to this one;",
        "the results against people who lie: no one can tell their answers from others. One of "
        f"them moves the certified error by up to {page.show('response.one_liar', 6)}, and some "
        "move it by their number times that;",
        "settings, schema and records to predict, which are public.",
    )


def _list(*items: str) -> Figure:
    return Figure(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")


def _records(page: Page) -> Iterator[Item]:
    rows = []
    for i, record in enumerate(page.find("records")):
        p = f"records.{i}"
        whom = (
            "one answer of a person" if record["neighbors"] == "local" else "one row of the panel"
        )
        epsilon, delta = page.show(f"{p}.epsilon", 0), page.show(f"{p}.delta", 0)
        rest = (page.show(f"{p}.numerics"), page.show(f"{p}.rng"))
        told = (epsilon, delta, f"{advantage_of(record):g}")
        rows.append([write_name(record["mechanism"]), whom, *told, *rest])
    heads = ["mechanism", "protects", "epsilon", "delta", ADVANTAGE, "numerics", "random bits"]
    yield PageTable("Records of privacy", heads, rows)
    if page.has("budget"):
        yield (
            f"The ledger was charged epsilon {page.show('budget.epsilon', 0)} and delta "
            f"{page.show('budget.delta', 0)} for this run."
        )


def _settings(page: Page) -> Iterator[Item]:
    rows = [
        [write_name(name.replace("_", " ")), page.show(f"settings.{name}", 0)]
        for name in page.find("settings")
    ]
    rows += [
        [f"people asked to {name}", page.show(f"agents.{name}")] for name in page.find("agents")
    ]
    yield PageTable("Chosen before any file was read", ["setting", "value"], rows)
