"""hdp-fast schema: from a public table, from a codebook, and by questions."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import fails

from hdp_fast.cli import main
from hdp_fast.data import Category, Ignore, Label, Number, Schema

EXPECTED = Schema(
    Label("bought", positive=("yes",)),
    {"age": Number(18, 90), "home": Category(("own", "rent")), "name": Ignore()},
)
ANSWERS = """age
number
18
90
home
category
own | rent
name
ignore

bought
yes
"""
CODEBOOK = """name,kind,low,high,categories,cuts,missing,label,description
age,number,18,90,,,,,age in years
home,category,,,own|rent,,,,
name,ignore,,,,,,,
bought,,,,,,,yes,"what they did, in the end"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("public.csv").write_text("age,home,bought\n18,own,yes\n90,rent,no\n40,own,no\n")
    Path("codebook.csv").write_text(CODEBOOK)
    return tmp_path


@pytest.fixture
def answer(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def read(name):
    return Schema.from_json(Path(name).read_text())


def test_questions_are_answered_one_a_line(capsys, answer):
    answer(ANSWERS)
    assert main(["schema", "--new", "made.json", "--missing", "age=40"]) == 0
    assert capsys.readouterr() == ("", "")
    assert read("made.json") == EXPECTED.with_missing({"age": 40})
    answer(ANSWERS.replace("bought\nyes\n", "\n"))
    assert main(["schema", "--new", "-"]) == 0
    assert Schema.from_json(capsys.readouterr().out) == Schema(columns=EXPECTED.columns)
    for rule, label in (
        ("above 50", Label("bought", above=50)),
        ("between 0 9", Label("bought", bounds=(0, 9))),
        (">50K|never above", Label("bought", positive=(">50K", "never above"))),
    ):
        answer(ANSWERS.replace("yes", rule))
        assert main(["schema", "--new", "made.json", "--force"]) == 0
        assert read("made.json").label == label


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("age\nnumbr\n", "kind of age: number, category or ignore: kind = 'numbr'"),
        ("age\nnumber\nyoung\n", "least value that age can have: low = 'young'"),
        ("age\nnumber\n9\n1\n", "largest value that age can have: "),
        ("home\ncategory\n\n", "all values of home, with | between them: categories = ''"),
        ("home\ncategory\nown|own\n", "each once"),
        ("age\nignore\nage\n", "column = 'age', but it must be named once"),
        ("age\nignore\n\n\n", "columns hold no feature"),
        ("age\nnumber\n1\n9\n\ny\n\n", "label = '', but it must have a rule"),
        ("age\nnumber\n", "the answers end before the question 'least value that age can have'"),
        ("", "the answers end before the question 'column of the table (empty: no more)'"),
    ],
)
def test_a_wrong_answer_of_a_script_names_its_question(capsys, answer, answers, message):
    answer(answers)
    assert message in fails(capsys, "schema", "--new", "made.json")
    assert not Path("made.json").exists()


def test_an_answer_that_is_no_text_is_refused(capsys, monkeypatch):
    bytes_ = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", bytes_)
    assert "can't be read as a text" in fails(capsys, "schema", "--new", "made.json")


def test_a_terminal_shows_questions_and_asks_again(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hdp_fast", "schema", "--new", str(tmp_path / "made.json")]
    asked = subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE, text=True)
    os.write(ours, ANSWERS.replace("18\n", "young\n18\n").encode())
    errors = asked.communicate(timeout=60)[1]
    os.close(ours)
    os.close(theirs)
    assert asked.returncode == 0
    assert errors.count("least value that age can have: ") == 2
    assert "low = 'young', but it must be a number" in errors
    assert read(tmp_path / "made.json") == EXPECTED


def test_a_codebook_makes_a_schema(capsys):
    assert main(["schema", "--codebook", "codebook.csv", "--output", "made.json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert read("made.json") == EXPECTED
    Path("tabs.tsv").write_text("name\tlow\thigh\nage\t0\t9\n")
    assert main(["schema", "--codebook", "tabs.tsv"]) == 0
    assert Schema.from_json(capsys.readouterr().out) == Schema(columns={"age": Number(0, 9)})


def test_whoever_makes_a_schema_from_a_table_is_told_what_it_costs(capsys):
    assert main(["schema", "public.csv"]) == 0
    out, err = capsys.readouterr()
    assert list(Schema.from_json(out).columns) == ["age", "home", "bought"]
    assert json.loads(out).keys() == {"format", "version", "columns"}
    first, second = err.splitlines()
    assert (
        "the schema was read off public.csv unprotected, which is right for a public table" in first
    )
    assert "least and largest values, quantiles and rare categories, and no epsilon" in first
    assert "no --label: the schema is for statistics and transformers alone" in second
    assert main(["schema", "public.csv", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "one of PUBLIC, --codebook and --new must be given"),
        ("public.csv --new made.json", "one of PUBLIC, --codebook and --new must be given"),
        ("--codebook codebook.csv --label age", "--label must not go without PUBLIC"),
        ("--codebook codebook.csv --cuts 3", "--cuts must not go without PUBLIC"),
        ("--new made.json --unlabeled", "--unlabeled must not go without PUBLIC"),
        ("--new made.json --output other.json", "--output must not go with --new"),
        ("--new codebook.csv", "--force replaces it"),
        ("public.csv --label bought", "must go with one of --positive, --above and"),
        ("public.csv --above 0", "--label COLUMN must go with"),
        ("public.csv --unlabeled", "--label COLUMN must go with"),
        ("--codebook none.csv", "No such file"),
        ("--codebook public.csv", "codebook has a column 'age', but its columns are name, kind"),
    ],
)
def test_flags_that_do_not_fit_are_refused(capsys, answer, flags, message):
    answer(ANSWERS)
    assert message in fails(capsys, "schema", *flags.split())
    assert not Path("made.json").exists()


def test_statistics_take_a_schema_of_features_alone_and_a_model_refuses_it(capsys):
    answers = Schema(columns={"age": Number(18, 90)}).to_json()
    Path("features.json").write_text(answers)
    stats = ["stats", "public.csv", "--schema", "features.json", "--epsilon", "1e6"]
    assert main([*stats, "--mean", "age", "--json"]) == 0
    (mean,) = json.loads(capsys.readouterr().out)["statistics"]
    assert mean["value"] == pytest.approx(148 / 3, abs=0.1)
    price = ["--epsilon", "1", "--delta", "1e-6"]
    for verb in (
        ["fit", "public.csv", "--output", "model.json"],
        ["label", "public.csv", "public.csv"],
        ["hybrid", "public.csv", "public.csv", "--agents-epsilon", "1"],
        ["adapt", "public.csv", "public.csv"],
    ):
        line = fails(capsys, *verb, *price, "--schema", "features.json")
        assert "schema has features alone and no label, but one is needed here" in line
    assert not Path("model.json").exists()
