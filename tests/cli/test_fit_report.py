"""The report of hdp-fast fit: its numbers are those of the JSON, and it needs no other file."""

import json
import re

import numpy as np
import pytest
from report_pages import Reader, check_marks, find, is_shown

from hdp_fast import PrivacyRecord
from hdp_fast.cli import main

COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 100]},
    'a.b <i>"': {"kind": "category", "values": ["</script>", "no"]},
}
KINDS = {
    "rule": ({"column": "label", "above": 1}, ["--method", "descent"]),
    "shapes": ({"column": "label", "above": 1}, ["--method", "additive"]),
    "number": ({"column": "label", "bounds": [0, 2]}, []),
    "classes": ({"column": "label", "positive": ["0"]}, ["--classes", "0,1,2"]),
    "statistics": ({"column": "label", "positive": ["0"]}, ["--method", "statistics"]),
    "no one": ({"column": "label", "positive": ["0"]}, ["--epsilon", "inf"]),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    label, options = KINDS[request.param]
    coins = np.random.default_rng(0)
    rows = [(age, coins.choice(["</script>", "no"])) for age in coins.integers(0, 100, 4_000)]
    lines = [f"{age},{kind},{age // 34}" for age, kind in rows]
    (folder / "table.csv").write_text("\n".join(['age,"a.b <i>""",label', *lines]))
    schema = {"format": "hdp_fast.schema", "version": 1, "label": label, "columns": COLUMNS}
    (folder / "schema.json").write_text(json.dumps(schema))
    price = [] if "inf" in options else ["--epsilon", "4", "--delta", "1e-6"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        places = ["--output", "model.json", "--report", "page.html", "--seed", "1"]
        assert main(["fit", "table.csv", "--schema", "schema.json", *price, *options, *places]) == 0
    page = (folder / "page.html").read_text()
    reader = Reader(page)
    return page, reader, json.loads(reader.summary), json.loads((folder / "model.json").read_text())


def test_every_number_is_that_of_the_model(made):
    _, reader, summary, model = made
    assert {name: summary[name] for name in model} == model
    assert len(reader.marked) > 10
    for key, text in reader.marked:
        assert is_shown(find(summary, key), text), key


def test_what_protects_whom_is_said(made):
    page, reader, summary, _ = made
    if summary["record"] is None:
        assert "Nothing: epsilon is infinite" in page
    else:
        keys = {key for key, _ in reader.marked}
        assert {"record.epsilon", "record.delta", "record.neighbors", "signal"} <= keys
        assert "this run protects no one who knows it" in page  # of the seed
        [told] = re.findall(r"advantage at most</t[hd]><td>([.0-9]+)</td>", page)
        advantage = PrivacyRecord.from_json(json.dumps(summary["record"])).attack_advantage
        assert advantage * (1 - 1e-9) <= float(told) < 1.01 * advantage


def test_bars_stand_where_their_numbers_are(made):
    _, reader, summary, _ = made
    # A bar, and both ends of its noise.
    assert check_marks(reader, summary) == 3 * len(summary["effects"])
    assert bool(summary["effects"]) == (summary["not_told"] is not None)


def test_the_page_opens_with_one_sentence_of_verdict(made):
    page, reader, summary, _ = made
    assert reader.marked[0] == ("verdict", summary["verdict"])
    # A cut of an additive model may have a point, which no space follows.
    assert ". " not in summary["verdict"]
    assert summary["verdict"].endswith(".")
    assert page.index('class="verdict"') < page.index("<section>")
    if summary["record"] is not None:
        assert "age" in summary["verdict"]
        columns = summary["told"] + summary["not_told"]
        # Those of shapes are bits.
        assert columns > 3 if summary["method"] == "additive" else columns == 3


def test_no_more_than_ten_effects_are_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    table = random.random((4_000, 14)).round(3)
    label = (table.sum(axis=1) > 7).astype(int)
    names = [f"x{place}" for place in range(14)]
    lines = [",".join(map(str, [*row, one])) for row, one in zip(table, label, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join([",".join([*names, "label"]), *lines]))
    columns = {name: {"kind": "number", "bounds": [0, 1]} for name in names}
    schema = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    schema["label"] = {"column": "label", "positive": ["1"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    options = ["--epsilon", "20", "--delta", "1e-6", "--method", "statistics"]
    places = ["--output", "model.json", "--report", "page.html"]
    assert main(["fit", "table.csv", "--schema", "schema.json", *options, *places]) == 0
    summary = json.loads(Reader((tmp_path / "page.html").read_text()).summary)
    assert (summary["told"], summary["not_told"], len(summary["effects"])) == (14, 0, 10)
    sizes = [abs(one["value"]) for one in summary["effects"]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(one["low"] > 0 or one["high"] < 0 for one in summary["effects"])


def test_nothing_is_loaded_and_names_are_texts(made):
    page, reader, _, _ = made
    assert not re.search(r"https?://|url\(|@import|<i>", page)
    assert page.count("</script>") == 1
    for tag, attributes in reader.tags:
        assert tag not in ("link", "img", "iframe", "object", "a")
        assert not {"src", "href", "onclick", "onload"} & attributes.keys()
