"""The report of hdp-fast fit: one page of HTML that needs no other file, made of its summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .output import advantage_of
from .report_charts import Bar, draw_bars
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
    write_text,
    write_verdict,
)


def render(summary: Mapping[str, Any]) -> str:
    """Makes the page of a summary of `hdp-fast fit`.

    The page holds the whole summary in a script of type application/json, and every number in an
    element with the attribute data-key, which is its path in the summary.
    """
    page = Page(summary)
    title = f"{summary['label']['column']}: a private linear model"
    sections = [
        Section("Whether it is of use", _use(page)),
        Section("What it goes by", _effects(page)),
        Section("What protects whom", _protection(page)),
        Section("What is released, and how to use it", _released(page)),
        Section("Settings, all of them public", [_settings(page)]),
    ]
    seed = warn_of_seed(page) if page.has("record") else []
    return write_page(page, title, [write_verdict(page), _head(page), *seed], sections)


def _head(page: Page) -> str:
    kind = "A regression" if page.find("labels") is None else "A classifier"
    return (
        f"{kind} of {page.show('private.rows')} rows of {page.show('private.file')}, learned by "
        f"{_describe_method(page)} (method {page.show('method')}).{_meaning(page)}"
    )


def _describe_method(page: Page) -> str:
    method = page.find("method")
    shrunk = method == "descent" and page.has("law")
    return _HOW[method] + (", shrunk as far as their noise asks for" if shrunk else "")


_HOW = {
    "descent": "a noisy descent on all records",
    "evidence": "slopes around a mean, shrunk as far as their noise asks for",
    "sgd": "noisy gradients",
    "statistics": "one release of second moments",
    "additive": "noisy sums over bins, a shape for each column",
}


def _meaning(page: Page) -> str:
    """A sentence on what is predicted."""
    column, label = page.show("label.column"), page.find("label")
    if page.has("classes"):
        return f" It predicts {column}, one of {page.show('classes')}."
    if label.get("bounds"):
        low, high = page.show("label.bounds.0", 0), page.show("label.bounds.1", 0)
        return f" It predicts {column}, a number from {low} to {high}."
    if label.get("positive"):
        return f" Label 1 means that {column} is {page.show('label.positive')}, label 0 that not."
    return f" Label 1 means that {column} is above {page.show('label.above', 0)}, label 0 that not."


def _use(page: Page) -> Iterator[Item]:
    if page.has("usual_label"):
        yield (
            f"<strong>It predicts {page.show('usual_label')} for nearly all rows: only its "
            "probabilities tell them apart.</strong>"
        )
    if not page.has("signal"):
        yield "No noise was added: what is learned is not protected."
        return
    words = _SIGNALS[_name_signal(page)].format(page.show("signal", 0))
    yield (
        f"{words} More rows, fewer columns or a larger epsilon raise the number. How often the "
        "model errs only records that are public, or a release of their own, can tell."
    )


def _name_signal(page: Page) -> str:
    method: str = page.find("method")
    return "target" if page.has("law") and method != "additive" else method


_OF_PLANS = (
    "Nothing that was released tells. The noise level of the plan is public and was known "
    "before any data: the longest gradient is {} times as long as the noise in the mean of all "
    "steps. It would be the same for labels drawn by chance, and says nothing about this model. At "
    "1 or below no model is better than a constant; above, this one may be no better all the same."
)
_SIGNALS = {
    "descent": _OF_PLANS,
    "sgd": _OF_PLANS,
    "statistics": "The weights stand out of the noise {} times as far as noise alone would, but "
    "for a chance of a hundredth. At 1 or below the model is no better than a constant.",
    "additive": "By what was released, shapes stand out of the noise in them {} times. At 1 or "
    "below the model is no better than a constant.",
    "target": "By what was released, slopes stand out of the noise that is left in them {} times "
    "as far as they must to be of use. At 1 or below the model is no better than a constant.",
}


def _effects(page: Page) -> Iterator[Item]:
    effects, unit = page.find("effects"), _unit(page)
    if page.find("not_told") is None:
        yield "How much noise each weight has is not known: no effect is told from it, or shown."
        return
    yield (
        f"{page.show('told')} effects are told from 0, by two standard deviations of what noise "
        f"makes, {page.show('not_told')} are not."
    )
    if not effects:
        return
    yield (
        f"What a feature adds to {write_text(unit)}, as its root mean square over rows: weight "
        "times the spread of its column. A number and its square are one effect. Thin lines are "
        "two standard deviations of the noise. The largest are shown."
    )
    keys = [[json.dumps(["effects", i, part]) for part in _PARTS] for i in range(len(effects))]
    bars = [Bar(one["name"], *paths) for one, paths in zip(effects, keys, strict=True)]
    words = "; ".join(f"{one['name']}: {one['value']:.3g}" for one in effects)
    yield Figure(draw_bars(page.find_at, bars, "Largest effects", words, "effects", unit))
    rows = [
        [
            write_name(one["name"]),
            *(page.show_at("effects", i, part) for part in _PARTS),
            page.show(f"effects.{i}.direction"),
        ]
        for i, one in enumerate(effects)
    ]
    yield PageTable("Effects", ["feature", "effect", "from", "to", "direction"], rows)
    yield page.show("use")


_PARTS = ("value", "low", "high")


def _unit(page: Page) -> str:
    labels = page.find("labels")
    if labels is None:
        return "the predicted label"
    if len(labels) > 2:
        return "the score of each class"
    what = "log-odds" if page.find("link") == "logistic" else "score"
    return f"the {what} of {labels[1]}"


def _protection(page: Page) -> Iterator[Item]:
    if not page.has("record"):
        yield "<strong>Nothing: epsilon is infinite.</strong>"
        return
    price = (
        f"protected by epsilon {page.show('record.epsilon', 0)} and delta "
        f"{page.show('record.delta', 0)}: if {{}} were others, no event about what was released "
        "would be more than exp(epsilon) times as likely, plus delta."
    )
    if page.find("settings.ids") is None:
        yield (
            f"Each row of the table is {price.format('its values')} The number of rows is "
            "public. Somebody who has k rows is protected by k times epsilon, with a delta that is "
            "k exp((k - 1) epsilon) times as large."
        )
    else:
        yield (
            f"Each person, whose rows have one {page.show('settings.ids')}, is "
            f"{price.format('the values of their rows')} Which rows belong together, and how many "
            "there are, is public."
        )
    names = ("mechanism", "neighbors", "noise", "numerics", "rng", "source", "version")
    rows = [[name, page.show(f"record.{name}")] for name in names]
    rows.insert(1, [ADVANTAGE, f"{advantage_of(page.find('record')):g}"])
    yield PageTable("Record of privacy", ["part", "value"], rows)
    if page.find("settings.budget") is not None:
        yield f"It was charged to the ledger {page.show('settings.budget')}."


def _released(page: Page) -> Iterator[Item]:
    yield (
        "The mean and scale of each feature, scaled to [0, 1] by the schema, the weights, and "
        "this page. All of it may be published, and whatever is made of it; it costs "
        "no more privacy."
    )
    if page.find("output") is not None:
        model = page.show("output")
        yield "To predict rows, which are not protected by that:"
        yield Figure(f"<pre>hdp-fast predict {model} FILE.csv --output predicted.csv</pre>")


def _settings(page: Page) -> PageTable:
    rows = [[write_name(name), page.show(f"settings.{name}", 0)] for name in page.find("settings")]
    rows.append(["features", f"{len(page.find('features')):,}"])
    return PageTable("Chosen before the file was read", ["setting", "value"], rows)
