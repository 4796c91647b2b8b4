"""hdp-fast local: simulated agents, and devices and collectors of real ones."""

import csv
import dataclasses
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from command_line import fails

from hdp_fast import PrivacyRecord, local
from hdp_fast.cli import main
from hdp_fast.collection.questions import Question, hypothesis_question
from hdp_fast.collection.reports import REASONS, Collection, hypothesis_line
from hdp_fast.exceptions import ParameterError

# So much epsilon leaves no noise to speak of: what comes out is what went in.
CLEAR = ["--epsilon", "50"]
UNIT = ["--low", "0", "--high", "1"]
MEAN = ["mean", "minutes", "--epsilon", "1", "--low", "0", "--high", "120"]
COLOURS = ["frequency", "color", "--categories", "red, green,other", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys, *argv):
    assert main(["local", *map(str, argv)]) == 0
    return capsys.readouterr().out


def found(capsys, *argv):
    return json.loads(printed(capsys, *argv, "--json"))


def typed(monkeypatch, content):
    """Puts bytes on the standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def process(*argv, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "hdp_fast", "local", *map(str, argv)]
    return subprocess.Popen(command, **pipes, **options)


def ask(capsys, *argv, path="question.json"):
    """Makes a question's file."""
    printed(capsys, "question", *argv, "--output", path, "--force")
    return Question.from_json(Path(path).read_text())


def answers(capsys, monkeypatch, values, path="question.json"):
    """Lines of many devices."""
    typed(monkeypatch, "".join(f"{value}\n" for value in values).encode())
    return printed(capsys, "randomize", "--many", "--question", path).splitlines()


# Simulations --------------------------------------------------------------------------------------


def test_a_mean_of_a_column(capsys):
    Path("people.csv").write_text("age,name\n" + "20,a\n30,b\n70,c\n500,d\n-9,e\n" * 2000)
    goal = ["estimate", "people.csv", "--column", "age", "--low", "0", "--high", "100"]
    # 500 counts as 100 and -9 as 0: a mean of 44.
    exact = found(capsys, *goal, *CLEAR, "--randomizer", "laplace", "--output", "result.json")
    assert exact["estimate"] == pytest.approx(44, abs=0.1)
    assert json.loads(Path("result.json").read_text()) == exact
    low, high = exact["interval"]
    assert low < 44 < high
    assert (exact["agents"], exact["record"]["epsilon"]) == (10_000, 50)
    assert exact["record"]["neighbors"] == "local"
    # Ten deviations of 10,000 reports at epsilon 1.
    private = found(capsys, *goal, "--epsilon", "1")
    assert private["estimate"] == pytest.approx(44, abs=11)
    assert "BinaryResponse" in private["randomizer"]
    seeded = [found(capsys, *goal, "--epsilon", "1", "--seed", "3") for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert "no privacy" in seeded[0]["record"]["rng"]


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("binary", [], "BinaryResponse"),
        ("laplace", [], "LaplaceRandomizer"),
        ("piecewise", [], "Piecewise"),
        ("gaussian", ["--delta", "1e-6"], "GaussianRandomizer"),
        ("best", ["--delta", "1e-6"], "BinaryResponse"),
        ("best", ["--spread", "0.2"], "Piecewise"),
        ("best", ["--spread", "0.5"], "BinaryResponse"),
    ],
)
def test_each_randomizer_of_a_mean(capsys, name, options, kind):
    Path("v.csv").write_text("x\n" + "0.25\n" * 4000)
    argv = ["estimate", "v.csv", "--epsilon", "3", *UNIT, "--randomizer", name, *options]
    made = found(capsys, *argv)
    assert made["randomizer"].startswith(kind)
    assert made["record"]["mechanism"] == f"local.{kind}"
    # At least six deviations of any of them: the Gaussian's is 3.5 / sqrt(4,000).
    assert made["estimate"] == pytest.approx(0.25, abs=0.2 if kind == "GaussianRandomizer" else 0.1)


@pytest.mark.parametrize(
    ("goal", "within"),
    [
        (["estimate", "v.csv", *UNIT, "--randomizer", "binary"], "mean to within 0.1"),
        (["estimate", "v.csv", "--low", "0.1", "--high", "1.1"], "mean to within 0.1"),
        (["frequency", "v.csv", "--k", "2"], "frequencies to within 0.1"),
    ],
)
def test_an_interval_that_says_nothing_is_told_of(capsys, goal, within):
    randomizer = local.BinaryResponse(0.5, (0, 1))
    if goal[0] == "frequency":
        randomizer = local.KaryResponse(2, 0.5)
    needed = randomizer.agents_needed(alpha=0.1, beta=0.05)
    for n, notes in ((9, 1), (needed, 0)):
        Path("v.csv").write_text("x\n" + "1\n" * n)
        assert main(["local", *goal, "--epsilon", "0.5", "--seed", "0"]) == 0
        error = capsys.readouterr().err
        assert error.count("\n") == notes
        if notes:
            assert "hdp-fast: note: 9 reports at epsilon = 0.5 tell nothing" in error
            assert f"{needed:,} estimate the {within}" in error


def test_an_epsilon_for_which_nobody_has_enough_reports_is_told_of(capsys):
    Path("v.csv").write_text("x\n1\n")
    argv = ["local", "estimate", "v.csv", *UNIT, "--epsilon", "1e-9", "--randomizer", "binary"]
    assert main(argv) == 0
    assert "more than anybody has" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["best", "kary", "subset", "geometry"])
def test_frequencies_of_a_column(capsys, name):
    Path("v.csv").write_text("color\n" + "red\ngreen\nred\nblue\n" * 500)
    options = ["--categories", "red, green,other", "--randomizer", name]
    exact = found(capsys, "frequency", "v.csv", *CLEAR, *options)
    expected = {"red": 0.5, "green": 0.25, "other": 0.25}
    if name == "geometry":
        # One point in six lies on another value's line, whatever epsilon is: seven deviations.
        assert exact["frequencies"] == pytest.approx(expected, abs=0.2)
        assert exact["half_width"] < 0.2
    else:
        assert exact["frequencies"] == pytest.approx(expected, abs=1e-9)
        kind = "SubsetSelection" if name == "subset" else "KaryResponse"
        assert exact["randomizer"].startswith(f"{kind}(k=3")


def test_frequencies_of_integers(capsys):
    np.savez("v.npz", level=np.repeat([0, 1, 2, 7], 250))
    exact = found(capsys, "frequency", "v.npz", "--k", "4", *CLEAR, "--randomizer", "kary")
    assert exact["frequencies"] == pytest.approx({"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25})
    many = found(capsys, "frequency", "v.npz", "--k", "1000", "--epsilon", "1")
    assert many["randomizer"].startswith("SubsetSelection(k=1000")


def test_masked_parity(capsys):
    argv = ["masked-parity", "--d", "8", "--epsilon", "2", "--beta", "1e-9"]
    learned = found(capsys, *argv)
    needs = local.masked_parity_agents(8, beta=1e-9, epsilon=2)
    assert learned["exact"] is True
    assert learned["agents"] == needs.first + needs.second
    assert (learned["queries"], learned["agents_of_groups"]) == (9, needs.groups)
    assert learned["record"]["epsilon"] == 2
    assert found(capsys, *argv, "--seed", "1") == found(capsys, *argv, "--seed", "1")
    assert "yes" in printed(capsys, *argv)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["estimate", "v.csv", *UNIT], "--epsilon"),
        (["estimate", "v.csv", "--epsilon", "1"], "--low, --high"),
        (["estimate", "v.csv", "--epsilon", "1", "--high", "1"], "--low"),
        (["question", "mean", "q", "--epsilon", "1", "--low", "0"], "--high"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "0"], "epsilon"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "nan"], "epsilon"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1"], "--column"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--column", "none"], "none"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--column", "c"], "no number"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--low", "3", "--high", "2"], "low < high"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--high", "inf"], "finite"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--beta", "1"], "beta"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--randomizer", "gaussian"], "--delta"),
        (
            [
                "estimate",
                "v.csv",
                *UNIT,
                "--epsilon",
                "1",
                "--randomizer",
                "binary",
                "--delta",
                ".1",
            ],
            "it",
        ),
        (
            ["estimate", "v.csv", *UNIT, "--epsilon", "1", "--column", "x", "--seed", "-1"],
            "random_state",
        ),
        (
            ["estimate", "v.csv", *UNIT, "--epsilon", "1", "--output", "no/file"],
            "existing directory",
        ),
        (["estimate", "none.csv", *UNIT, "--epsilon", "1"], "No such file"),
        (["estimate", "v.csv", *UNIT, "--epsilon", "1", "--spread", "0.6"], "half the width"),
        (
            [*("estimate", "v.csv", *UNIT, "--epsilon", "1"), "--randomizer=laplace", "--spread=1"],
            "best alone chooses by it",
        ),
        (["frequency", "v.csv", "--epsilon", "1"], "--categories"),
        (
            ["frequency", "v.csv", "--epsilon", "1", "--k", "1025", "--randomizer", "subset"],
            "k = 1025",
        ),
        (["frequency", "v.csv", "--epsilon", "1", "--k", "16777217"], "k = 16777217"),
        (["frequency", "v.csv", "--epsilon", "1", "--k", "2", "--categories", "a"], "not allowed"),
        (["frequency", "v.csv", "--epsilon", "1", "--k", "1"], "k = 1"),
        (["frequency", "v.csv", "--epsilon", "1", "--categories", "a,a"], "different"),
        (["frequency", "v.csv", "--epsilon", "1", "--categories", "a,,b"], "none empty"),
        (["frequency", "v.csv", "--epsilon", "1", "--k", "3", "--column", "c"], "no integer"),
        (["masked-parity", "--d", "12", "--epsilon", "1"], "power of two"),
        (["masked-parity", "--d", "8", "--epsilon", "1", "--beta", "0"], "beta"),
        (["masked-parity", "--d", "8", "--epsilon", "1", "--seed", "-1"], "random_state"),
        (["masked-parity", "--d", "2048", "--epsilon", "1e-8"], "agents"),
        ([], "COMMAND"),
        (["question", "mean", "x" * 101, *UNIT, "--epsilon", "1"], "100 characters"),
        (["question", "mean", "a\nb", *UNIT, "--epsilon", "1"], "printable"),
    ],
)
def test_bad_input_is_one_line(capsys, argv, message):
    Path("v.csv").write_text("x,c\n1,secret\n0,b\n")
    line = fails(capsys, "local", *argv)
    assert message in line
    assert "secret" not in line


# Questions ----------------------------------------------------------------------------------------


def test_a_question_says_all_that_both_sides_need(capsys):
    question = ask(capsys, *MEAN)
    assert (question.id, question.kind, question.categories) == ("minutes", "mean", None)
    assert question.randomizer == local.BinaryResponse(1.0, (0, 120))
    assert printed(capsys, "question", *MEAN) == Path("question.json").read_text()
    colors = ask(capsys, *COLOURS)
    assert (colors.kind, colors.categories) == ("frequency", ("red", "green", "other"))
    assert colors.randomizer == local.KaryResponse(3, 1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "hdp_fast.schema"},
        {"version": 3},
        {"kind": "mean"},
        {"id": ""},
        {"id": 3},
        {"categories": ["a", "b"]},
        {"categories": ["a", "b", 3]},
        {"categories": 3},
        {"randomizer": {"randomizer": "KaryResponse", "k": 3}},
        {"randomizer": {"randomizer": "KaryResponse", "k": 3, "epsilon": -1}},
        {"randomizer": {"randomizer": "Nothing"}},
        {"randomizer": {"randomizer": "HadamardResponse", "k": 3, "epsilon": 1.0}},
        {"randomizer": {"randomizer": "SubsetSelection", "k": 1025, "epsilon": 1.0}},
        {"randomizer": {"randomizer": "ProjectiveGeometryResponse", "k": 2**40, "epsilon": 1.0}},
        {"randomizer": [1]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_damaged_question_is_refused(capsys, change):
    ask(capsys, *COLOURS)
    fields = json.loads(Path("question.json").read_text())
    Path("question.json").write_text(json.dumps(fields | change))
    fails(capsys, "local", "randomize", "red", "--question", "question.json")


def test_a_question_lacks_nothing(capsys):
    ask(capsys, *COLOURS)
    fields = json.loads(Path("question.json").read_text())
    for name in fields.keys() - {"categories"}:
        Path("question.json").write_text(json.dumps({**fields, name: None}))
        fails(capsys, "local", "randomize", "red", "--question", "question.json")
        rest = {key: value for key, value in fields.items() if key != name}
        Path("question.json").write_text(json.dumps(rest))
        fails(capsys, "local", "randomize", "red", "--question", "question.json")


def test_a_file_that_is_no_question(capsys):
    for content in (b"", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000):
        Path("question.json").write_bytes(content)
        for command in (["randomize", "1"], ["collect", os.devnull]):
            fails(capsys, "local", *command, "--question", "question.json")
    assert "No such file" in fails(capsys, "local", "randomize", "1", "--question", "none")


# Devices ------------------------------------------------------------------------------------------


def test_a_line_holds_the_report_and_nothing_of_the_value(capsys, monkeypatch):
    question = ask(capsys, *MEAN)
    lines = answers(capsys, monkeypatch, [120.0] * 2000 + [0] * 2000)
    fields = [json.loads(line) for line in lines]
    assert len({each.pop("id") for each in fields}) == 4000
    ones = [each.pop("report") for each in fields]
    assert set(ones) == {0, 1}
    # Seven deviations of 2,000 bits kept with probability .731.
    assert np.mean(ones[:2000]) == pytest.approx(0.731, abs=0.07)
    assert np.mean(ones[2000:]) == pytest.approx(0.269, abs=0.07)
    (rest,) = {json.dumps(each) for each in fields}
    assert json.loads(rest) == {
        "format": "hdp_fast.report",
        "version": 2,
        "question": "minutes",
        "digest": question.digest,
    }


def test_a_device_answers_a_query_and_a_hypothesis_from_its_record(capsys, monkeypatch):
    rule = '{"kind": "conjunction", "features": [0], "values": [1], "complement": false}'
    query = (local.Query.between(1, low=1) & local.Query.label()).to_json()
    records = ["1,1,1", "0, 0.0 ,0", "1,,1", "garbage", ",,,", "1,30", "\u00e9,1e999,1"]
    for text, expected in ((query, [1, 0, 0, 0, 0, 0, 0]), (rule, [0, 0, 1, 1, 1, 1, 1])):
        question = hypothesis_question("q", text, epsilon=60.0)
        Path("question.json").write_text(question.to_json())
        typed(monkeypatch, "\n".join(records).encode())
        lines = printed(capsys, "randomize", "--record", "--many", "--question", "question.json")
        assert [json.loads(line)["report"] for line in lines.splitlines()] == expected
        alone = printed(capsys, "randomize", "--record", "1,1,1", "--question", "question.json")
        assert json.loads(alone)["report"] == expected[0]
    state = ["--state", "answers.db", "--question", "question.json"]
    kept = printed(capsys, "randomize", "--record", "1,1,1", *state)
    assert printed(capsys, "randomize", "--record", "0,1,0", *state) == kept


def test_a_record_answers_only_a_question_about_records(capsys, monkeypatch):
    ask(capsys, *MEAN)
    for more in ([], ["--many"]):
        typed(monkeypatch, b"1,2\n")
        command = ["local", "randomize", "--record", "--question", "question.json", *more]
        assert "asks for a value" in fails(capsys, *command)


def test_a_device_answers_about_every_number_and_category(capsys, monkeypatch):
    ask(capsys, "frequency", "q", "--categories", "a,b,other", *CLEAR)
    lines = answers(capsys, monkeypatch, ["a", " b ", "other\r"])
    assert [json.loads(line)["report"] for line in lines] == [0, 1, 2]
    ask(capsys, "frequency", "q", "--k", "3", *CLEAR)
    lines = answers(capsys, monkeypatch, [0, " 1", 2])
    assert [json.loads(line)["report"] for line in lines] == [0, 1, 2]
    ask(capsys, "mean", "q", *CLEAR, "--low", "2", "--high", "3")
    lines = answers(capsys, monkeypatch, ["-1e400", "2", "3", "inf"])
    assert [json.loads(line)["report"] for line in lines] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (["--categories", "a,b,other"], ["A", "é", "hidden"]),
        (["--k", "3"], ["-5", "3", "1" + "0" * 400]),
    ],
)
def test_a_device_refuses_what_is_no_category_and_does_not_show_it(
    capsys, monkeypatch, options, values
):
    ask(capsys, "frequency", "q", *options, *CLEAR)
    asked = ["local", "randomize", "--question", "question.json"]
    for value in values:
        for more in ([], ["--state", "state", "--budget", "ledger"], ["--many"]):
            typed(monkeypatch, f"{value}\n".encode())
            line = fails(capsys, *asked, *more)
            assert line == (
                "hdp-fast: error: a value is no category, but it must be one of those of the "
                "question, which needs one for the rest\n"
            )
    assert not Path("state").exists()
    question = Question.from_json(Path("question.json").read_text())
    # A simulation counts them as the last one, as it says.
    assert question.values(["9" if "--k" in options else "other"]).tolist() == [2]


def test_no_values_are_no_answers(capsys, monkeypatch):
    ask(capsys, *MEAN)
    typed(monkeypatch, b"")
    assert main(["local", "randomize", "--many", "--question", "question.json"]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("hdp-fast: note: the input has 0 lines")


def test_what_is_no_value_is_refused_and_not_shown(capsys, monkeypatch, folder):
    ask(capsys, *MEAN)
    options = ["--question", "question.json", "--state", "state"]
    assert "no number" in fails(capsys, "local", "randomize", "secret", *options)
    assert "secret" not in fails(capsys, "local", "randomize", "secret", *options)
    for nan in ("nan", " -NaN "):
        typed(monkeypatch, nan.encode())
        line = fails(capsys, "local", "randomize", *options)
        assert line == "hdp-fast: error: a value is no number, but all must be\n"
        typed(monkeypatch, f"1\n{nan}\n".encode())
        assert fails(capsys, "local", "randomize", "--many", *options[:2]) == line
    for content, message in (
        (b"1\n2\n", "several lines"),
        (b"\xff", "UTF-8"),
        (b"", "there is no value: give VALUE"),
    ):
        typed(monkeypatch, content)
        assert message in fails(capsys, "local", "randomize", *options)
    assert not Path("state").exists()
    for option in (["1"], ["--state", "state"], ["--budget", "ledger"]):
        command = ["local", "randomize", "--many", "--question", "question.json", *option]
        assert "--many" in fails(capsys, *command)


def test_a_device_with_a_state_answers_once(capsys, monkeypatch):
    ask(capsys, *MEAN)
    options = ["--question", "question.json", "--state", "state"]
    first = printed(capsys, "randomize", "0", *options)
    # Fresh answers would differ in their ids.
    assert {printed(capsys, "randomize", value, *options) for value in (0, 120, 7)} == {first}
    typed(monkeypatch, b"44\n")
    assert printed(capsys, "randomize", *options) == first
    assert printed(capsys, "randomize", "0", "--question", "question.json") != first
    assert stat.S_IMODE(Path("state").stat().st_mode) == 0o600
    ask(capsys, *COLOURS, path="other.json")
    other = printed(capsys, "randomize", "red", "--question", "other.json", "--state", "state")
    assert json.loads(other)["question"] == "color"
    assert printed(capsys, "randomize", "9", *options) == first


def test_a_question_cannot_be_asked_again_with_more_epsilon(capsys):
    ask(capsys, *MEAN)
    options = ["--question", "question.json", "--state", "state"]
    first = printed(capsys, "randomize", "9", *options)
    ask(capsys, *MEAN, "--epsilon", "2", path="more.json")
    line = fails(capsys, "local", "randomize", "9", "--question", "more.json", "--state", "state")
    assert "answers twice" in line
    assert printed(capsys, "randomize", "9", *options) == first


@pytest.mark.thorough(beside="test_a_device_and_a_collector_joined_by_a_pipe")
def test_devices_that_run_at_once_show_one_line(capsys):
    ask(capsys, *MEAN)
    argv = ["randomize", "60", "--question", "question.json", "--state", "state"]
    running = [process(*argv) for _ in range(3)]
    assert len({each.communicate()[0] for each in running}) == 1
    assert [each.returncode for each in running] == [0] * 3


def test_a_line_is_on_the_disk_before_it_is_shown(capsys, monkeypatch):
    ask(capsys, *MEAN)
    options = ["--question", "question.json", "--state", "state"]
    kept = []

    class Screen(io.StringIO):
        def write(self, text):
            with sqlite3.connect("state") as connection:
                kept.extend(line for (line,) in connection.execute("SELECT line FROM answer"))
            connection.close()
            return super().write(text)

    monkeypatch.setattr(sys, "stdout", Screen())
    assert main(["local", "randomize", "1", *options]) == 0
    assert sys.stdout.getvalue().splitlines() == kept[:1]


def test_a_state_that_cannot_be_used_draws_nothing(capsys, monkeypatch, folder):
    ask(capsys, *MEAN)
    monkeypatch.setattr(
        "hdp_fast.cli.collect_command.report_lines", lambda *_: pytest.fail("drawn")
    )
    options = ["local", "randomize", "1", "--question", "question.json", "--state"]
    Path("text").write_text("no state of a device at all, but longer than a header of SQLite " * 9)
    with sqlite3.connect("other") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path in ("text", "other", folder, "no/state"):
        before = Path(path).read_bytes() if Path(path).is_file() else None
        assert str(path) in fails(capsys, *options, path)
        assert before is None or Path(path).read_bytes() == before


def test_a_device_spends_from_a_budget_once(capsys):
    ask(capsys, *MEAN)
    ask(capsys, *COLOURS, path="other.json")
    assert main(["budget", "ledger", "--epsilon", "1.5"]) == 0
    capsys.readouterr()
    options = ["--budget", "ledger", "--state", "state", "--question"]
    first = printed(capsys, "randomize", "1", *options, "question.json")
    assert printed(capsys, "randomize", "1", *options, "question.json") == first
    assert "1.5" in fails(capsys, "local", "randomize", "red", *options, "other.json", code=3)
    fails(capsys, "local", "randomize", "none", "--budget", "ledger", "--question", "question.json")
    assert main(["budget", "ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"]["epsilon"] == 1
    assert main(["budget", "ledger", "--epsilon", "1.5"]) == 0
    capsys.readouterr()
    # What was refused is not in the state either.
    small = ["--state", "state", "--question", "other.json"]
    assert json.loads(printed(capsys, "randomize", "red", *small))["question"] == "color"


# Collectors ---------------------------------------------------------------------------------------


def collection(question, lines):
    """A Collection that has read lines, texts or bytes."""
    made = Collection(question)
    content = [line if isinstance(line, bytes) else line.encode() for line in lines]
    heard = []
    made.read(io.BytesIO(b"\n".join(content) + b"\n"), heard.append)
    assert sum(heard) == sum(map(len, content)) + len(content)
    return made


def test_collections_about_different_questions_are_not_merged():
    ages = Question("age", local.BinaryResponse(1.0, bounds=(0, 100)))
    heights = Question("height", local.BinaryResponse(1.0, bounds=(0, 100)))
    with pytest.raises(ParameterError, match=r"other = 'height', .* about one question"):
        Collection(ages).merge(Collection(heights))


@pytest.mark.parametrize("options", [MEAN, COLOURS], ids=["mean", "frequency"])
def test_what_is_collected_is_what_was_sent(capsys, monkeypatch, options):
    question = ask(capsys, *options)
    values = [0, 60, 120] if options is MEAN else ["red", "green", "other"]
    lines = answers(capsys, monkeypatch, values * 200)
    Path("lines").write_text("\n".join(lines))
    made = found(capsys, "collect", "lines", "--question", "question.json", "--output", "r.json")
    assert json.loads(Path("r.json").read_text()) == made
    assert made["lines"] == made["accepted"] == 600
    aggregate = question.randomizer.aggregate([json.loads(line)["report"] for line in lines])
    if options is MEAN:
        assert [made["estimate"], *made["interval"]] == list(aggregate.estimate(0.05))
    else:
        assert list(made["frequencies"]) == ["red", "green", "other"]
        assert list(made["frequencies"].values()) == aggregate.frequencies().tolist()
        assert made["half_width"] == aggregate.interval(0.05)
    assert made["record"]["epsilon"] == 1
    assert made["record"]["rng"] == "the clients' own"
    typed(monkeypatch, Path("lines").read_bytes())
    assert found(capsys, "collect", "--question", "question.json") == made
    halves = ["lines", "-"]
    typed(monkeypatch, Path("lines").read_bytes())
    twice = found(capsys, "collect", *halves, "--question", "question.json")
    assert twice == made | {"lines": 1200, "duplicates": 600}


@pytest.mark.parametrize("options", [MEAN, COLOURS], ids=["mean", "frequency"])
def test_shuffled_lines_are_told_with_both_epsilons(capsys, monkeypatch, options):
    question = ask(capsys, *options)
    values = [0] if options is MEAN else ["red"]
    Path("lines").write_text("\n".join(answers(capsys, monkeypatch, values * 400)))
    argv = ["collect", "lines", "--question", "question.json", "--shuffled"]
    made = found(capsys, *argv, "1e-6")
    record = dataclasses.replace(question.randomizer.record(), rng="the clients' own")
    categories = 2 if options is MEAN else 3
    mixed = record.shuffled(400, delta=1e-6, categories=categories)
    assert PrivacyRecord(**made["record"]) == mixed
    assert made["privacy"].startswith("epsilon 1 against the shuffler, 0.2")
    fails(capsys, "local", *argv, "1.5")
    found(capsys, *argv[:4], "--aggregate", "monday.npz")
    for several in (["collect", "lines", *argv[1:]], [*argv[:4], "--merge", "monday.npz", argv[4]]):
        assert "not one mix" in fails(capsys, "local", *several, "1e-6")
    Path("lines").write_text("x\n")
    assert main(["local", *argv, "1e-6"]) == 1
    capsys.readouterr()
    ask(capsys, *MEAN, "--delta", "1e-6", "--randomizer", "gaussian")
    assert "pure" in fails(capsys, "local", *argv, "1e-6")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--k", "40", "--epsilon", "2"], "SubsetSelection"),
        (["--k", "400", "--epsilon", "1"], "SubsetSelection"),
        (["--k", "3000", "--epsilon", "2"], "ProjectiveGeometryResponse"),
        (["--k", "8", "--epsilon", "2", "--randomizer", "geometry"], "ProjectiveGeometryResponse"),
    ],
)
def test_sets_and_points_go_the_whole_way(capsys, monkeypatch, options, kind):
    question = ask(capsys, "frequency", "item", *options)
    assert question.parameters()["randomizer"] == kind
    lines = answers(capsys, monkeypatch, [7] * 3000)
    Path("lines").write_text("\n".join(lines))
    argv = ["collect", "--question", "question.json"]
    made = found(capsys, *argv, "lines", "--aggregate", "part.npz")
    assert made["accepted"] == 3000
    assert max(made["frequencies"], key=made["frequencies"].get) == "7"
    assert made["frequencies"]["7"] == pytest.approx(1, abs=made["half_width"])
    merged = found(capsys, *argv, "--merge", "part.npz")
    assert merged["frequencies"] == made["frequencies"]
    # One beyond the last set or point is no report.
    last = json.loads(lines[0]) | {"report": question.randomizer.report_range[1] + 1}
    Path("wrong").write_text(json.dumps(last | {"id": "0" * 32}))
    assert found(capsys, *argv, "lines", "wrong")["out_of_range"] == 1


def test_the_interval_for_those_who_answered_is_the_narrower_one(capsys, monkeypatch):
    options = ["--epsilon", "4", "--low", "0", "--high", "120", "--spread", "20"]
    question = ask(capsys, "mean", "minutes", *options)
    assert question.parameters()["randomizer"] == "Piecewise"
    lines = answers(capsys, monkeypatch, np.linspace(0, 120, 3000))
    Path("lines").write_text("\n".join(lines))
    argv = ["collect", "lines", "--question", "question.json"]
    population, asked = found(capsys, *argv), found(capsys, *argv, "--asked")
    assert asked["estimate"] == population["estimate"]
    assert population["interval"][0] < asked["interval"][0] <= 60 <= asked["interval"][1]
    reports = [json.loads(line)["report"] for line in lines]
    expected = question.randomizer.aggregate(reports).estimate(0.05, sampled=False)
    assert asked["interval"] == [expected.low, expected.high]


PNG = b"\x89PNG"


@pytest.mark.parametrize("options", [MEAN, COLOURS], ids=["mean", "frequency"])
def test_estimates_are_drawn(capsys, monkeypatch, options):
    pytest.importorskip("matplotlib")
    ask(capsys, *options)
    values = ["0", "60"] if options is MEAN else ["red", "green"]
    Path("lines").write_text("\n".join(answers(capsys, monkeypatch, values * 20)))
    collect = ["collect", "lines", "--question", "question.json"]
    simulate = ["estimate" if options is MEAN else "frequency", "values.csv", *options[2:]]
    Path("values.csv").write_text("\n".join(["answer", *values * 20]))
    for name, argv in {"collected.png": collect, "simulated.png": simulate}.items():
        made = found(capsys, *argv, "--plot", name)
        assert "plot" not in made
        assert Path(name).read_bytes().startswith(PNG)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "matplotlib.figure", None)
            line = fails(capsys, "local", *argv, "--plot", "missing.png")
        assert "pip install matplotlib (the extra hdp-fast[plot])" in line
        assert not Path("missing.png").exists()


def test_nothing_collected_is_not_drawn(capsys):
    pytest.importorskip("matplotlib")
    ask(capsys, *COLOURS)
    Path("lines").write_text("x\n")
    argv = ["collect", "lines", "--question", "question.json", "--plot", "nothing.png"]
    assert main(["local", *argv]) == 1
    assert not Path("nothing.png").exists()


def mangled(line):
    """Lines that say no report, by why they are refused."""
    fields = json.loads(line)
    fresh = fields | {"id": "0" * 32}
    numbers = ["1.0", "1e0", "true", "null", '"1"', "[1]", "NaN", "1" * 4001, "0x1", "01"]
    malformed = [fresh | {"version": version} for version in (1, True, 2.0, "2")]
    malformed += [
        fresh | {"id": id} for id in (7, "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 31 + "\n")
    ]
    malformed += [fresh | {"format": "other"}, fresh | {"more": 1}, [fresh], 3, None]
    malformed += [{key: fresh[key] for key in fresh if key != gone} for gone in fresh]
    texts = [json.dumps(each) for each in malformed]
    report = '"report": 1, '
    assert report in json.dumps(fresh)
    texts += [json.dumps(fresh).replace(report, f'"report": {text}, ') for text in numbers]
    texts += [json.dumps(fresh)[:-1] + ', "report": 0}', json.dumps(fresh) + "x", "", " ", "\x00"]
    texts += [
        "[" * 4000,
        '{"a":' * 600,
        "[" * 1_000_000,
        "x" * 5000,
        json.dumps(fresh) + " " * 5000,
    ]
    yield "malformed", texts
    yield (
        "malformed",
        [b"\xff\xfe", json.dumps(fresh).encode("utf-16"), b"\xef\xbb\xbf" + line.encode()],
    )
    others = [
        {"question": "other"},
        {"question": 3},
        {"digest": "0" * 16},
        {"digest": None},
        {"digest": 7},
    ]
    yield "wrong_question", [json.dumps(fresh | each) for each in others]
    yield "out_of_range", [json.dumps(fresh | {"report": n}) for n in (-1, 2, 10**30, -(1 << 64))]
    yield "duplicates", [line, json.dumps(fields | {"report": 0})]


def test_each_line_is_counted_once_for_what_is_wrong_with_it(capsys, monkeypatch):
    question = ask(capsys, *MEAN, "--epsilon", "50")
    (line,) = answers(capsys, monkeypatch, [120])
    for reason, wrong in mangled(line):
        for each in wrong:
            counts = collection(question, [line, each]).counts()
            expected = {"lines": 2, "accepted": 1} | dict.fromkeys(REASONS, 0)
            assert counts == expected | {reason: 1}, each[:300]
    everything = [text for _, wrong in mangled(line) for text in wrong]
    made = collection(question, [line, *everything])
    assert (made.lines, made.accepted) == (1 + len(everything), 1)
    assert made.aggregate().reports == 1


def test_what_spellings_of_json_a_client_may_use(capsys, monkeypatch):
    question = ask(capsys, *MEAN)
    lines = answers(capsys, monkeypatch, range(4))
    shapes = [json.loads(line) for line in lines]
    spelt = [json.dumps(shapes[0], separators=(",", ":")), json.dumps(shapes[1])]
    spelt += [json.dumps(dict(reversed(shapes[2].items()))), f"  {lines[3]}\t\r"]
    assert collection(question, spelt).accepted == 4


def test_categories_in_another_order_are_another_question(capsys, monkeypatch):
    question = ask(capsys, *COLOURS)
    lines = answers(capsys, monkeypatch, ["red"])
    other = ask(capsys, "frequency", "color", "--categories", "green,red,other", "--epsilon", "1")
    assert (other.id, other.randomizer) == (question.id, question.randomizer)
    assert collection(question, lines).counts()["accepted"] == 1
    assert collection(other, lines).counts()["wrong_question"] == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_line_stops_a_collector(capsys, monkeypatch, seed):
    """Bytes are changed, cut, doubled and joined at random: counts add up, nothing is invented."""
    rng = np.random.default_rng(seed)
    question = ask(capsys, *COLOURS)
    lines = [line.encode() for line in answers(capsys, monkeypatch, ["red", "other"] * 100)]
    ids = {bytes.fromhex(json.loads(line)["id"]) for line in lines}
    content = bytearray(b"\n".join(lines * 2) + b"\n")
    for place in rng.integers(0, len(content), 150):
        content[place] = rng.integers(256)
    for start in rng.integers(0, len(content), 20):
        del content[start : start + int(rng.integers(200))]
    for start in rng.integers(0, len(content), 5):
        content[start:start] = rng.bytes(int(rng.integers(20_000)))
    made = Collection(question)
    made.read(io.BytesIO(content), lambda _: None)
    read = content.split(b"\n")
    assert made.lines == len(read) - (not read[-1])
    counts = made.counts()
    assert counts.pop("lines") == sum(counts.values())
    assert counts["malformed"] > 50
    assert counts["accepted"] > 50
    # A change within an id makes another id: of those no one can tell.
    assert len(made._reports.keys() - ids) < 40
    whole = set(lines) & set(map(bytes, read))
    assert counts["accepted"] >= len(whole)
    assert made.aggregate().reports == counts["accepted"]


def test_merged_collections_are_the_one_of_all_lines(capsys, monkeypatch):
    question = ask(capsys, *COLOURS)
    lines = answers(capsys, monkeypatch, ["red", "green", "other"] * 50)
    fields = json.loads(lines[0])
    # Across the parts, a line comes again, and an id with another report: the first one counts.
    lies = [json.dumps(fields | {"report": (fields["report"] + n) % 3}) for n in (1, 2)]
    parts = [[*lines[:90], *lines[5:20], "x"], [*lies, *lines[80:], "", '{"a": 1}'], []]
    for name, part in zip("abc", parts, strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in part))
        argv = ["collect", name, "--question", "question.json", "--aggregate", f"{name}.npz"]
        assert main(["local", *argv]) == (0 if part else 1)
        capsys.readouterr()
    files = [["--merge", "a.npz", "--merge", "b.npz", "--merge", "c.npz"]]
    files += [["--merge", "a.npz", "b", "c"], ["a", "b", "c"]]
    results = [found(capsys, "collect", *each, "--question", "question.json") for each in files]
    assert results[0] == results[1] == results[2]
    assert results[0]["accepted"] == 150
    assert results[0]["duplicates"] == 15 + 2 + 10
    assert results[0]["malformed"] == 3
    expected = question.randomizer.aggregate([json.loads(line)["report"] for line in lines])
    assert list(results[0]["frequencies"].values()) == expected.frequencies().tolist()
    # In place, and merged with itself: all duplicates.
    again = ["--merge", "a.npz", "--merge", "a.npz", "--aggregate", "a.npz", "--force"]
    assert found(capsys, "collect", *again, "--question", "question.json")["accepted"] == 90


def ends_without_an_estimate(capsys, *argv):
    """The note of a collector that has nothing to estimate from."""
    assert main(["local", "collect", *argv, "--question", "question.json", "--json"]) == 1
    out, error = capsys.readouterr()
    assert "estimate" not in json.loads(out)
    assert json.loads(out)["accepted"] == 0
    assert error.count("\n") == 1
    return error


def test_nothing_accepted_is_exit_code_1(capsys, monkeypatch):
    ask(capsys, *MEAN)
    assert "note: 0 lines were read" in ends_without_an_estimate(capsys, os.devnull)
    Path("lines").write_text("\n".join([*answers(capsys, monkeypatch, [1] * 2), "x"]))
    ask(capsys, *MEAN, "--epsilon", "2")
    error = ends_without_an_estimate(capsys, "lines")
    assert "note: 0 of 3 lines were accepted (malformed 1, wrong_question 2): --question" in error
    Path("lines").write_text("a,b\n1,2\n")
    error = ends_without_an_estimate(capsys, "lines", "--aggregate", "a.npz")
    assert "0 of 2 lines were accepted (malformed 2): these must be lines that hdp-fast" in error
    assert Path("a.npz").exists()


def test_collections_that_are_none(capsys, monkeypatch, folder):
    question = ask(capsys, *MEAN)
    made = collection(question, answers(capsys, monkeypatch, [1, 2, 3]))
    Path("a.npz").write_bytes(made.to_bytes())
    with np.load("a.npz") as archive:
        arrays = dict(archive)
    ask(capsys, *MEAN, "--epsilon", "2", path="other.json")
    collect = ["local", "collect", "--question", "question.json"]
    wrong = ["local", "collect", "--question", "other.json", "--merge", "a.npz"]
    assert "same question" in fails(capsys, *wrong)
    changes = [
        {"ids": arrays["ids"][[0, 0, 1]]},
        {"ids": arrays["ids"][:2]},
        {"ids": arrays["ids"].astype(np.int16)},
        {"reports": np.array([0, 1, 2])},
        {"reports": np.array([0, 1, -1])},
        {"reports": np.array([0, 1, 1], float)},
        {"reports": np.int64(1)},
        {"refused": arrays["refused"][:3]},
        {"refused": -arrays["refused"] - 1},
        {"more": np.array(1)},
    ]
    for change in changes:
        np.savez("bad.npz", **(arrays | change))
        assert "bad.npz must be a file that" in fails(capsys, *collect, "--merge", "bad.npz")
    np.save("bad.npy", [1])
    for content in (b"", b"x", Path("a.npz").read_bytes()[:100], Path("bad.npy").read_bytes()):
        Path("bad.npz").write_bytes(content)
        assert "bad.npz" in fails(capsys, *collect, "--merge", "bad.npz")
    assert "No such file" in fails(capsys, *collect, "--merge", "none.npz")


def test_bad_input_to_a_collector_writes_nothing(capsys, folder):
    ask(capsys, *MEAN)
    collect = ["local", "collect", "--question", "question.json"]
    Path("lines").write_text("x\n")
    for argv, message in (
        (["none", "--aggregate", "a.npz"], "none"),
        ([folder, "--aggregate", "a.npz"], "directory"),
        (["lines", "--aggregate", "a.txt"], ".npz"),
        (["lines", "--aggregate", "no/a.npz"], "existing directory"),
        (["lines", "--aggregate", "a.npz", "--beta", "0"], "--beta"),
        (["lines", "--aggregate", "a.npz", "--output", "no/x"], "existing directory"),
    ):
        assert message in fails(capsys, *collect, *argv)
        assert {path.name for path in folder.iterdir()} == {"question.json", "lines"}
    assert "--question" in fails(capsys, "local", "collect", "lines")


def test_an_interrupted_collector_says_so_and_writes_nothing(capsys, monkeypatch, folder):
    ask(capsys, *MEAN)
    (line,) = answers(capsys, monkeypatch, [1])
    run = process("collect", "--question", "question.json", "--aggregate", "a.npz")
    timer = threading.Timer(60, run.kill)
    timer.start()
    # More than a buffer, so that some lines have been read when the last write returns.
    run.stdin.write(f"{line}\n".encode() * 4000)
    run.stdin.flush()
    run.send_signal(signal.SIGINT)
    out, error = run.communicate()
    timer.cancel()
    assert run.returncode == 130
    assert out == b""
    assert error.startswith(b"hdp-fast: interrupted: ")
    assert error.endswith(b" lines were read, and nothing is written\n")
    assert error.count(b"\n") == 1
    assert not Path("a.npz").exists()


def test_a_device_and_a_collector_joined_by_a_pipe(capsys):
    ask(capsys, *MEAN)
    device = process("randomize", "--many", "--question", "question.json")
    collector = process("collect", "--question", "question.json", "--json")
    lines, _ = device.communicate(b"30\n" * 2000)
    out, error = collector.communicate(lines + b"rubbish\n" + lines[: lines.index(b"\n") + 1])
    assert (device.returncode, collector.returncode, error) == (0, 0, b"")
    made = json.loads(out)
    assert made["accepted"] == 2000
    assert (made["malformed"], made["duplicates"]) == (1, 1)
    # Seven deviations: 120 * 1.08 / sqrt(2,000) each.
    assert made["estimate"] == pytest.approx(30, abs=20)


# What a collector tells of liars, of the silent and of exports ------------------------------------


def exported(lines, path="export.csv", **form):
    """A table of a survey tool: every fourth person left the field empty."""
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file, **form)
        table.writerow(["id", "note", "answer"])
        for place, line in enumerate(lines):
            table.writerow([place, "a, b; c", "" if place % 4 == 3 else line])


def test_an_export_of_a_survey_tool_is_collected(capsys, monkeypatch):
    ask(capsys, *MEAN)
    lines = answers(capsys, monkeypatch, range(80))
    exported([*lines, lines[0], "no answer"], delimiter=";", lineterminator="\n")
    argv = ["collect", "export.csv", "--question", "question.json", "--column", "answer"]
    made = found(capsys, *argv, "--delimiter", ";")
    assert (made["rows"], made["empty"], made["header_rows"]) == (82, 20, 1)
    assert (made["lines"], made["accepted"], made["duplicates"]) == (62, 60, 1)
    assert made["malformed"] == 1
    Path("plain").write_text("\n".join(line for i, line in enumerate(lines) if i % 4 < 3))
    plain = found(capsys, "collect", "plain", "--question", "question.json")
    assert made["estimate"] == plain["estimate"]
    exported(lines, "more.tsv", delimiter="\t")
    both = found(capsys, *argv[:1], "more.tsv", *argv[2:])
    assert (both["rows"], both["accepted"]) == (80, 60)
    for more, message in (
        (["--column", "reply"], "export.csv: --column = 'reply', but 0 of 1 columns"),
        (["--delimiter", ";;"], "delimiter = ';;'"),
    ):
        assert main(["local", *argv, *more]) == 2
        assert message in capsys.readouterr().err
    assert main(["local", *argv[:4], "--delimiter", ";"]) == 2
    assert "needs --column" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["mean", "frequency"])
def test_the_silent_and_liars_have_an_interval(capsys, monkeypatch, kind):
    question = ask(capsys, *(MEAN if kind == "mean" else COLOURS), "--epsilon", "3")
    values = range(90) if kind == "mean" else ["red", "green", "other"] * 30
    lines = answers(capsys, monkeypatch, values)
    Path("lines").write_text("\n".join(lines))
    argv = ["collect", "lines", "--question", "question.json"]
    aggregate = collection(question, lines).aggregate()
    for flags, doubts, words in (
        (["--invited", "100"], {"silent": 10}, "whoever did not answer"),
        (["--liars", "4"], {"liars": 4}, "if up to 4 lie"),
        (["--invited", "95", "--liars", "2"], {"silent": 5, "liars": 2},
         "whoever did not answer and if up to 2 lie"),
    ):  # fmt: skip
        made = found(capsys, *argv, *flags)
        assert made["any"] == words
        if kind == "mean":
            assert made["interval_any"] == list(aggregate.estimate(0.05, **doubts)[1:])
        else:
            assert made["half_width_any"] == aggregate.interval(0.05, **doubts)
        if "silent" in doubts:
            assert made["response_rate"] == 90 / (90 + doubts["silent"])
        if "liars" in doubts:
            distortion = local.largest_distortion(
                question.randomizer, reports=90, liars=doubts["liars"]
            )
            assert made["distortion"] == distortion
    # With everybody's answer there is nothing to add.
    assert "any" not in found(capsys, *argv, "--invited", "90")
    for flags, message in (
        (["--invited", "80"], "--invited = 80, but 90 reports were accepted"),
        (["--liars", "-1"], "--liars = -1"),
    ):
        assert main(["local", *argv, *flags, "--aggregate", "made.npz"]) == 2
        assert message in capsys.readouterr().err
        assert not Path("made.npz").exists()


def test_a_stage_has_an_estimate_for_each_question(capsys):
    label, first = local.Query.label().hypothesis, local.Query.between(0, low=1).hypothesis
    stage = local.Stage([label, first], [1, 1], key=bytes(16), first=1, count=400)
    question = hypothesis_question("stage-1", stage.to_json(), epsilon=8.0)
    Path("question.json").write_text(question.to_json())
    lines = [hypothesis_line(question, [0.0], 1, number=i) for i in range(1, 301)]
    Path("lines").write_text("\n".join(lines))
    argv = ["collect", "lines", "--question", "question.json"]
    made = found(capsys, *argv, "--liars", "3", "--beta", "1e-9")
    assert (made["accepted"], made["response_rate"]) == (300, 0.75)
    for place, truth in ((1, 1.0), (2, 0.0)):
        one, whole = made[f"answer {place}"], stage.asked[place - 1]
        assert (one["asked"], one["answered"] < whole) == (whole, True)
        assert one["interval"][0] <= truth <= one["interval"][1]
        assert one["interval_any"][0] <= one["interval"][0] <= one["interval"][1]
        assert one["interval"][1] <= one["interval_any"][1]
        assert one["any"] == "whoever did not answer and if up to 3 lie"
    assert "answer 2" in printed(capsys, *argv)
    for flags in (["--invited", "500"], ["--shuffled", "1e-6"], ["--plot", "made.svg"]):
        assert main(["local", *argv, *flags]) == 2
        assert f"{flags[0]} = " in capsys.readouterr().err
