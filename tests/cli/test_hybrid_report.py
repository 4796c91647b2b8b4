"""The report of hdp-fast hybrid: its numbers are those of the JSON, and it needs no other file."""

import json
import re

import pytest
from hybrid_tables import write_tables
from report_pages import Reader, check_marks, find, is_shown

from hdp_fast import local
from hdp_fast.cli import main
from hdp_fast.cli.hybrid_report import render

PRIVACY = ["--epsilon", "1", "--delta", "1e-6", "--agents-epsilon", "2"]


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


def test_the_page_says_that_some_bins_tell_nothing(made):
    page, reader, summary = made
    diagram = summary["calibration"]["reliability"]
    ends = zip(diagram["low"], diagram["high"], strict=True)
    empty = [low <= 0 and high >= 1 for low, high in ends]
    assert summary["reliability"]["tells"] is not all(empty)
    assert ("the survey tells nothing of the bin" in page) is (any(empty) and not all(empty))
    shown = "reliability.people" in {key for key, _ in reader.marked}
    assert shown is any(empty)


def test_the_page_says_what_label_1_is(made):
    _, reader, _ = made
    assert ("label.positive", "yes") in reader.marked
    assert ("label.column", "bought") in reader.marked


def test_the_page_tells_rounds_answers_and_what_is_not_protected(made):
    page, reader, summary = made
    response, after = summary["response"], summary["certificates"]["after"]
    assert response["rounds"] == 4
    assert response["asked"] == sum(one["asked"] for one in summary["certificates"].values())
    assert (response["answered"], response["rate"]) == (response["asked"], 1.0)
    assert response["days"] is None
    assert "This is a simulation" in page
    assert response["one_liar"] == local.largest_distortion(2.0, reports=after["agents"], liars=1)
    for section in ("Who answered", "What is protected, and what is not"):
        assert f"<h2>{section}</h2>" in page
    protected, not_protected = page.index("Protected, whoever"), page.index("Not protected:")
    assert protected < page.index("each row of the panel") < not_protected
    assert not_protected < page.index("whether somebody answered;") < page.index("people who lie")
    for key in ("rounds", "asked", "answered", "rate", "one_liar"):
        assert f"response.{key}" in {key for key, _ in reader.marked}
    assert "certificates.after.low_any" in {key for key, _ in reader.marked}


def test_the_page_of_people_of_whom_some_are_silent(made):
    _, _, summary = made
    silent = json.loads(json.dumps(summary))
    silent["certificates"]["after"] |= {"asked": 9000, "low_any": 0.0, "high_any": 0.75}
    silent["response"] |= {"asked": 9000, "answered": 6000, "rate": 2 / 3}
    days = [{"day": f"2026-05-0{i}", "invited": 1000, "answered": 700 + i} for i in range(1, 5)]
    silent["response"]["days"] = days
    page = render(silent)
    reader = Reader(page)
    assert "Their own devices drew the randomness of the answers" in page
    assert "simulation" not in page.partition("<script")[0]
    assert ("response.days.3.day", "2026-05-04") in reader.marked
    assert ("response.days.3.answered", "704") in reader.marked
    assert all(is_shown(find(silent, key), text) for key, text in reader.marked)
    assert ("certificates.after.high_any", "0.750") in reader.marked
    assert ("response.rate", "0.667") in reader.marked


def test_a_wrong_number_would_show(made):
    _, reader, summary = made
    summary = json.loads(json.dumps(summary))
    summary["certificates"]["after"]["low"] += 0.002
    assert not all(is_shown(find(summary, key), text) for key, text in reader.marked)


def test_marks_of_the_charts_stand_where_their_numbers_are(made):
    _, reader, summary = made
    checked = check_marks(reader, summary)
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
    summary["deviations"] = {evil: 0.5}
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
    assert "protects no one who knows it" in render(bare)
