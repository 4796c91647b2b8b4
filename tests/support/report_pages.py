"""Reports of commands as tests read them: marked numbers, charts, and the JSON in the page."""

import json
import re
from html.parser import HTMLParser

import pytest


class Reader(HTMLParser):
    """Collects tags, texts of marked elements, and the JSON of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.marked, self.summary, self._open = [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "line", "circle"):
            self._open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data):
        _, attributes = self._open[-1] if self._open else ("", {})
        if "data-key" in attributes:
            self.marked.append((attributes["data-key"], data))
        if attributes.get("type") == "application/json":
            self.summary += data


def find(summary, key):
    for part in json.loads(key) if key.startswith("[") else key.split("."):
        summary = summary[int(part)] if isinstance(summary, list) else summary[part]
    return summary


def is_shown(entry, text):
    """Whether a text shows an entry, as far as its digits go."""
    if isinstance(entry, bool) or entry is None:
        return text == {True: "yes", False: "no", None: "none"}[entry]
    if isinstance(entry, list):
        return text == ", ".join(map(str, entry))
    if isinstance(entry, str):
        return text == entry
    number = float(text.replace(",", ""))
    if "e" in text or "." not in text:
        return number == pytest.approx(entry, rel=1e-5)
    return abs(number - entry) <= 0.5000001 * 10.0 ** -len(text.split(".")[1])


def check_marks(reader, summary):
    """Compares the place of every mark of a chart with its number; returns how many there are."""
    scale, checked = {}, 0
    for tag, attributes in reader.tags:
        if tag == "svg":
            names = [name for name in attributes if re.fullmatch(r"data-[xy]-\w+", name)]
            scale = {name: float(attributes[name]) for name in names}
        for name, key in attributes.items():
            matched = re.fullmatch(r"data-(c?([xy])[12]?)-key", name)
            if matched:
                low, high, start, length = (
                    scale[f"data-{matched[2]}-{part}"]
                    for part in ("low", "high", "start", "length")
                )
                share = (find(summary, key) - low) / (high - low)
                places = [attributes.get(matched[1]), attributes.get("x1")]
                wanted = start + share * length
                assert float(places[0] or places[1]) == pytest.approx(wanted, abs=0.006), key
                checked += 1
    return checked
