"""Names that would steer a terminal or turn the direction of reading, in every verb of tables."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hdp_fast.cli import main
from hdp_fast.exceptions import HdpFastError, ParameterError, UtilityWarning, printable

# It renames a terminal's window, turns the direction of reading, and clears the screen; and texts
# that would leave a page's text.
NUMBER = "\x1b]0;owned\x07age"
CATEGORY = "\u202eemoh"
VALUES = ["\x1b[2Jown", "\u2066rent\u2069"]
LABEL = "\x9b31mbou\u200fght"
YES, NO = "ye\x1bs", "n\u202eo<b>"
TABLE, SCHEMA = "t\u202eable\x1b[31m.csv", "sche\x07ma.json"
PRICE = ("--epsilon", "4", "--delta", "1e-6")
SETTINGS = ("--schema", SCHEMA, "--seed", "1")
STATISTICS = ("--mean", NUMBER, "--histogram", CATEGORY, "--by", CATEGORY)


def write_tables(folder, n=1500):
    coins = np.random.default_rng(1)
    ages, homes = coins.integers(0, 100, n), coins.choice(VALUES, n)
    heads = ",".join([NUMBER, CATEGORY, LABEL])
    lines = [
        f"{age},{home},{YES if age > 50 else NO}" for age, home in zip(ages, homes, strict=True)
    ]
    for name, rows in ((TABLE, lines), ("few.csv", lines[:200])):
        (folder / name).write_text("\n".join([heads, *rows, ""]))
    columns = {
        NUMBER: {"kind": "number", "bounds": [0, 100]},
        CATEGORY: {"kind": "category", "values": VALUES},
    }
    schema = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    schema["label"] = {"column": LABEL, "positive": [YES]}
    (folder / SCHEMA).write_text(json.dumps(schema))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    return tmp_path


VERBS = {
    "schema": ["schema", TABLE, "--label", LABEL, "--positive", YES],
    "fit": ["fit", TABLE, *SETTINGS, *PRICE, "--output", "mo\x1bdel.json"],
    "fit of classes": [
        *("fit", TABLE, *SETTINGS, *PRICE, "--classes", f"{YES},{NO}", "--output", "m.json"),
    ],
    "stats": ["stats", TABLE, *SETTINGS, "--epsilon", "4", *STATISTICS],
    "hybrid": ["hybrid", TABLE, TABLE, *SETTINGS, *PRICE, "--agents-epsilon", "4"],
    "adapt": ["adapt", TABLE, "few.csv", *SETTINGS, *PRICE],
    "label": [
        *("label", TABLE, "few.csv", *SETTINGS, "--epsilon", "20", "--delta", "1e-3"),
        *("--estimator", "naive-bayes", "--members", "40", "--output", "labels\x1b.csv"),
    ],
}
ERRORS = {
    "no such file": ["fit", "none\x1b]0;x\x07.csv", *SETTINGS, *PRICE, "--output", "m.json"],
    "no table": ["fit", SCHEMA, *SETTINGS, *PRICE, "--output", "m.json"],
    "no such column": [
        *("fit", TABLE, *SETTINGS, *PRICE, "--ids", "\x1b\u202eid", "--output", "m.json"),
    ],
    "no such option": ["version", "--\x1b\u202e"],
    "no such verb": ["fi\x1bt\u202e"],
}


def is_clean(text):
    """Whether nothing but line breaks is not printable."""
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("argv", VERBS.values(), ids=VERBS)
def test_names_reach_a_terminal_as_escapes(folder, capsys, argv):
    if argv[0] == "label":
        pytest.importorskip("sklearn")
    assert main(argv) in (0, 1)
    captured = capsys.readouterr()
    assert is_clean(captured.out + captured.err)
    assert "\\x1b" in captured.out + captured.err or "\\u001b" in captured.out


@pytest.mark.parametrize("argv", ERRORS.values(), ids=ERRORS)
def test_errors_show_names_as_escapes(folder, capsys, argv):
    assert main([*argv, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert is_clean(error)
    assert error.count("\n") == 1
    assert "\\x" in error


def test_names_stand_on_lines_of_their_own_entry_alone(folder, capsys):
    """A line break in a name begins no line, and tables keep theirs."""
    output = "model\nrecord  epsilon = 0.json"
    assert main(["fit", TABLE, *SETTINGS, *PRICE, "--output", output]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("record")][1:] == []
    assert any(line.startswith(printable(NUMBER)) for line in lines)


@pytest.mark.parametrize("verb", ["fit", "fit of classes", "stats", "hybrid"])
def test_names_reach_a_page_as_escapes_that_turn_no_other_text(folder, capsys, verb):
    assert main([*VERBS[verb], "--report", "page.html"]) in (0, 1)
    page = Path("page.html").read_text()
    assert is_clean(page)
    assert "<b>" not in page
    # fit shows what is told from noise alone.
    shown = NUMBER if verb.startswith("fit") else CATEGORY
    assert f"<bdi>{printable(shown)}" in page
    assert "\x1b" not in capsys.readouterr().out


class Terminal(io.StringIO):
    """A standard output that a person looks at."""

    def isatty(self):
        return True


def test_a_printed_table_is_exact_in_a_pipe_and_escaped_on_a_terminal(folder, capsys, monkeypatch):
    assert main(["fit", TABLE, *SETTINGS, *PRICE, "--output", "m.json"]) == 0
    capsys.readouterr()
    argv = ["predict", "m.json", "few.csv", "--output", "-"]
    assert main(argv) == 0
    piped = capsys.readouterr().out
    assert piped.startswith(f"{NUMBER},{CATEGORY},{LABEL},")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(argv) == 0
    assert terminal.getvalue() == "\n".join(map(printable, piped.split("\n")))


@pytest.mark.parametrize("kind", [HdpFastError, ParameterError, UtilityWarning])
def test_errors_and_notes_show_names_as_escapes(kind):
    text = str(kind(f"column {NUMBER} and {CATEGORY}\nerror: none"))
    assert text == "column \\x1b]0;owned\\x07age and \\u202eemoh\\nerror: none"


def test_printable_texts_stay_as_they_are():
    for text in ("", "age [years]", "Größe", "年齢", "\u05d2\u05d9\u05dc", "a\\x1b"):
        assert printable(text) == text
    assert printable("\udce9\xa0\t") == "\\udce9\\xa0\\t"
