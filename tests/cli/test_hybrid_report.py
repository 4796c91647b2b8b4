"""The report of hdp-fast hybrid: its numbers are those of the JSON, and it needs no other file."""

import json
import re
from html.parser import HTMLParser

import pytest
from hybrid_tables import write_tables

from hdp_fast.cli import main
from hdp_fast.cli.hybrid_report import render

PRIVACY = ["--epsilon", "1", "--delta", "1e-6", "--agents-epsilon", "2"]


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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        files = ["--report", "page.html", "--output", "model.json"]
        tables = ["panel.csv", "town.csv", "--schema", "schema.json"]
        assert main(["hybrid", *tables, *PRIVACY, *files]) == 0
    page = (folder / "page.html").read_text()
    return page, Reader(page), json.loads((folder / "model.json").read_text())


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


def test_the_page_holds_the_json(made):
    _, reader, summary = made
    assert json.loads(reader.summary) == summary


def test_every_number_is_that_of_the_json(made):
    _, reader, summary = made
    assert len(reader.marked) > 110
    for key, text in reader.marked:
        assert is_shown(find(summary, key), text), key
    keys = {key for key, _ in reader.marked}
    for needed in ("certificates.after.low", "calibration.slope", "shift.columns.0.low",
                   "records.1.epsilon", "settings.beta", "agents.certify", "panel_model.intercept",
                   "calibration.reliability.rates.0"):  # fmt: skip
        assert needed in keys


def test_the_page_says_what_label_1_is(made):
    _, reader, _ = made
    assert ("label.positive", "yes") in reader.marked
    assert ("label.column", "bought") in reader.marked


def test_a_wrong_number_would_show(made):
    _, reader, summary = made
    summary = json.loads(json.dumps(summary))
    summary["certificates"]["after"]["low"] += 0.002
    assert not all(is_shown(find(summary, key), text) for key, text in reader.marked)


def test_marks_of_the_charts_stand_where_their_numbers_are(made):
    _, reader, summary = made
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
    assert checked > 60


def test_nothing_is_loaded_and_nothing_runs(made):
    page, reader, _ = made
    assert not re.search(r"https?://|url\(|@import", page)
    for tag, attributes in reader.tags:
        assert tag not in ("link", "img", "iframe", "object", "a")
        assert not {"src", "href", "onclick", "onload"} & attributes.keys()
        assert tag != "script" or attributes["type"] == "application/json"


def test_it_can_be_read_aloud(made):
    page, reader, _ = made
    assert '<html lang="en">' in page
    ids = {attributes["id"] for _, attributes in reader.tags if "id" in attributes}
    pictures = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert len(pictures) == 3
    for picture in pictures:
        assert picture["role"] == "img"
        assert {picture["aria-labelledby"], picture["aria-describedby"]} <= ids
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("h1") == 1
    assert tags.count("caption") == tags.count("table") == 6
    assert all("scope" in attributes for tag, attributes in reader.tags if tag == "th")


def test_names_of_columns_are_text_whatever_they_hold(made):
    _, _, summary = made
    summary, evil = json.loads(json.dumps(summary)), "</script><script>alert(1)</script>&amp;\"'"
    summary["label"]["column"] = summary["shift"]["columns"][0]["name"] = evil
    summary["coefficients"] = {evil: 1.0}
    summary["panel_model"]["coefficients"] = {evil: 1.0}
    summary["left_out"] = [evil]
    summary["panel"]["file"] = evil
    page = render(summary)
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert json.loads(reader.summary) == summary
    assert all(is_shown(find(summary, key), text) for key, text in reader.marked)


def test_a_run_without_a_screen_or_calibration_has_a_page(made):
    _, _, summary = made
    bare = json.loads(json.dumps(summary)) | {"shift": None, "budget": {"epsilon": 1, "delta": 0.1}}
    bare["certificates"].pop("after")
    bare["calibration"]["outcome"] = "no evidence"
    reader = Reader(render(bare))
    assert all(is_shown(find(bare, key), text) for key, text in reader.marked)
    bare = bare | {"settings": bare["settings"] | {"seed": 3}}
    assert "protects nobody who knows it" in render(bare)
