"""hdp-fast label: from a private table and a public one to a labeled file and its record."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import fails
from processes import wait_until

from hdp_fast import PrivacyRecord
from hdp_fast.cli import label_task, main
from hdp_fast.cli.tables import appender
from hdp_fast.data import files, read_table
from hdp_fast.labels import PrivateLabeler

pytest.importorskip("sklearn")
GOAL = ["--epsilon", "20", "--delta", "1e-3", "--beta", "1e-9", "--members", "60"]
OPTIONS = ["--schema", "schema.json", "--estimator", "naive-bayes", *GOAL]
SEED = ["--seed", "1"]
# As spreadsheets write them: quotes, a comma, a quote and a line break in cells, CRLF line ends.
NOTES = ['"a, b"', '"said ""no"""', '"two\nlines"', " spaced ", "é", ""]


def rows(n, seed):
    rng = np.random.default_rng(seed)
    size, color = rng.uniform(0, 100, n), rng.choice(["red", "blue"], n)
    return size, color, np.where(size > 50, "yes", "no")


def table_text(n, seed, labeled):
    size, color, label = rows(n, seed)
    lines = ["size,color,note" + ",buys" * labeled]
    for i in range(n):
        line = f"{size[i]:.6f},{color[i]},{NOTES[i % len(NOTES)]}"
        lines.append(line + f",{label[i]}" * labeled)
    return "\r\n".join(lines) + "\r\n"


def schema_text():
    columns = {
        "size": {"kind": "number", "bounds": [0, 100]},
        "color": {"kind": "category", "values": ["red", "blue"]},
        "note": {"kind": "ignore"},
    }
    label = {"column": "buys", "positive": ["yes"]}
    kept = {"format": "hdp_fast.schema", "version": 1, "label": label, "columns": columns}
    return json.dumps(kept)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, n, labeled in (("private", 600, True), ("public", 40, False)):
        (tmp_path / f"{name}.csv").write_bytes(table_text(n, n, labeled).encode())
    (tmp_path / "schema.json").write_text(schema_text())
    return tmp_path


def run(capsys, *argv, private="private.csv", public="public.csv"):
    code = main(["label", private, public, *OPTIONS, "--json", *map(str, argv)])
    result = json.loads(capsys.readouterr().out)
    assert code == (0 if result["answered"] else 1)
    return result


def refused(capsys, *argv, private="private.csv", public="public.csv", code=2):
    before = {path.name for path in Path().iterdir()}
    line = fails(capsys, "label", private, public, *OPTIONS, *argv, code=code)
    assert {path.name for path in Path().iterdir()} == before
    return line


def read(path):
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_a_public_file_gets_labels_and_nothing_else_of_it_changes(capsys, folder):
    result = run(capsys, *SEED)
    public = (folder / "public.csv").read_text(encoding="utf-8")
    made = folder / "public.labeled.csv"
    size, _, _ = rows(40, 40)
    texts = [row["buys"] for row in read(made)]
    assert texts == ["yes" if x > 50 else "no" for x in size.round(6)]
    assert [list(row.values())[:3] for row in read(made)] == [
        list(row.values()) for row in read("public.csv")
    ]
    stripped = made.read_bytes().decode()
    for text in ("no", "yes", "buys"):
        stripped = stripped.replace(f",{text}\r\n", "\r\n")
    assert stripped == (folder / "public.csv").read_bytes().decode()
    assert public.count("two") > 1
    assert json.loads((folder / "public.labeled.csv.json").read_text()) == result
    counts = {"rows": 40, "answered": 40, "bottoms": 0, "unanswered": 0, "members": 60}
    assert {name: result[name] for name in counts} == counts
    record = PrivacyRecord.from_json(json.dumps(result["record"]))
    assert (record.epsilon, record.delta, record.neighbors) == (20, 1e-3, "replace_one")
    assert result["plan"]["members_paper"] > result["plan"]["members"]


def converted(folder, suffix, labeled):
    name, n = ("private", 600) if labeled else ("public", 40)
    table = read_table(f"{name}.csv")
    columns = {k: np.array(c.texts)[c.codes] for k, c in table.columns.items()}
    columns["size"] = columns["size"].astype(float)
    columns["weights"] = np.arange(2 * n).reshape(n, 2)
    path = folder / f"{name}{suffix}"
    if suffix == ".npz":
        np.savez(path, **columns)
    elif suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pyarrow.table(columns | {"weights": columns["weights"].tolist()}), path
        )
    else:
        path.write_bytes(gzip.compress((folder / f"{name}.csv").read_bytes()))
    return path.name


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv.gz"])
def test_formats_agree_and_keep_what_they_held(capsys, folder, suffix):
    # Twelve unsure members: labels and bottoms hang on the coins.
    argv = ["--members", "12", "--table", "hazard", "--max-unstable", "30", *SEED]
    private, public = (converted(folder, suffix, labeled) for labeled in (True, False))
    run(capsys, *argv, "--output", "as.csv")
    result = run(capsys, *argv, private=private, public=public)
    labels = [row["buys"] for row in read("as.csv")]
    assert len(set(labels)) == 3
    table = read_table(result["output"])
    assert result["output"] == f"public.labeled{suffix}"
    column = table.columns["buys"]
    assert [column.texts[code] for code in column.codes] == labels
    if suffix == ".npz":
        with np.load(public) as before, np.load(result["output"]) as after:
            assert after.files == [*before.files, "buys"]
            for name in before.files:
                assert before[name].dtype == after[name].dtype
                assert np.array_equal(before[name], after[name])
            assert after["buys"].tolist() == labels
    if suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        after = parquet.read_table(result["output"])
        assert after.drop_columns(["buys"]).equals(parquet.read_table(public))
        assert after["buys"].to_pylist() == [text or None for text in labels]


def test_the_last_bottom_ends_the_answers(capsys, folder):
    argv = ["--table", "hazard", "--max-unstable", "2", "--members", "4", "--plot", "found.png"]
    argv += SEED
    result = run(capsys, *argv)
    texts = [row["buys"] for row in read("public.labeled.csv")]
    assert (result["bottoms"], result["unstable_left"]) == (2, 0)
    assert result["answered"] + result["bottoms"] + result["unanswered"] == 40
    assert sum(text != "" for text in texts) == result["answered"]
    assert texts[result["answered"] + 2 :] == [""] * result["unanswered"]
    assert (folder / "found.png").read_bytes().startswith(b"\x89PNG")


def test_classes_instead_of_the_rule_and_a_label_that_is_there(capsys, folder):
    content = (folder / "public.csv").read_text().replace("note", "note,buys", 1)
    lines = content.replace("\r", "").replace("\nlines", " lines").splitlines()
    lines[1:] = [f"{line},?" for line in lines[1:]]
    (folder / "public.csv").write_text("\n".join(lines))
    argv = [*SEED, "--classes", "yes, no,never", "--output", "made.csv"]
    result = run(capsys, *argv)
    assert result["column"] == "buys_private"
    assert "'buys' of PUBLIC is kept" in result["note"]
    _, _, label = rows(40, 40)
    made = read("made.csv")
    predictions = [row["buys_private"] for row in made]
    assert all(text in (truth, "") for text, truth in zip(predictions, label, strict=True))
    assert predictions.count("") == result["bottoms"] < 5
    assert {row["buys"] for row in made} == {"?"}
    assert not (folder / "made.csv").read_text().endswith("\n")
    line = refused(capsys, *argv[:2], "--classes", "yes,never")
    assert "column 'buys' holds something else, but every row must hold one of --classes" in line
    assert "'no'" not in line
    (folder / "public.csv").write_text("size,color,buys,buys_private\n1,red,a,b\n")
    assert "rename one" in refused(capsys)


def with_rule(folder, rule, *public_labels):
    """The folder with another rule in its schema, and a column of labels in public.csv."""
    schema = json.loads(schema_text())
    schema["label"] = {"column": "buys", **rule}
    (folder / "schema.json").write_text(json.dumps(schema))
    lines = [f"{2.5 * i},red,{public_labels[i % len(public_labels)]}" for i in range(40)]
    (folder / "labels.csv").write_text("\n".join(["size,color,buys", *lines, ""]))


@pytest.mark.thorough(cases=3)
@pytest.mark.parametrize(
    ("positive", "public_labels", "options", "texts"),
    [
        (["yes"], ["yes", "never", ""], [], {"yes", "never"}),
        (["yes"], ["yes", "never", "?"], [], {"yes", "no"}),
        (["yes"], ["?"], [], {"yes", "no"}),
        (["Yes"], ["?"], [], {"Yes", "No"}),
        (["1"], ["?"], [], {"1", "0"}),
        ([">50K"], ["?"], [], {">50K", "not >50K"}),
        ([">50K"], [">50K", "<=50K"], [], {">50K", "<=50K"}),
        ([">50K"], [">50K", "<=50K"], ["--negative", "poor"], {">50K", "poor"}),
        (["yes", "often"], ["?"], [], {"yes or often", "other"}),
    ],
)
def test_labels_are_written_in_their_own_texts(
    capsys, folder, positive, public_labels, options, texts
):
    with_rule(folder, {"positive": positive}, *public_labels)
    text = table_text(600, 600, True).replace(",yes\r", f",{positive[0]}\r")
    (folder / "own.csv").write_text(text)
    argv = [*SEED, *options, "--output", "made.csv"]
    result = run(capsys, *argv, private="own.csv", public="labels.csv")
    made = read("made.csv")
    assert {row["buys_private"] for row in made} == texts == set(result["shares"])
    (other,) = texts - {positive[0], " or ".join(positive)}
    clear = [row for row in made if abs(float(row["size"]) - 50) > 20]
    assert all((row["buys_private"] == other) == (float(row["size"]) < 50) for row in clear)


def test_a_label_above_a_number_is_written_as_0_and_1(capsys, folder):
    with_rule(folder, {"above": 3}, "?")
    text = table_text(600, 600, True).replace(",yes\r", ",4\r").replace(",no\r", ",2\r")
    (folder / "own.csv").write_text(text)
    assert set(run(capsys, *SEED, private="own.csv")["shares"]) == {"0", "1"}
    assert "written as 0 and 1" in refused(capsys, "--negative", "small", "--output", "2.csv")


def test_kept_members_know_the_text_that_a_second_public_file_does_not_hold(capsys, folder):
    with_rule(folder, {"positive": ["yes"]}, "yes", "never")
    argv = [*SEED, "--save", "kept", "--queries", "100", "--output"]
    run(capsys, *argv, "1.csv", public="labels.csv")
    second = run(capsys, *argv, "2.csv")
    assert set(second["shares"]) == {"yes", "never"} == {row["buys"] for row in read("2.csv")}
    assert "was made for" in refused(capsys, "--negative", "no", *argv, "3.csv")
    with_rule(folder, {"positive": ["often"]}, "?")
    assert "--classes = ['not often', 'often']" in refused(capsys, *argv, "3.csv")


@pytest.mark.parametrize("text", ["", " ", "yes"])
def test_the_text_of_others_is_none_of_the_positive_ones(capsys, folder, text):
    assert "--negative = " in refused(capsys, "--negative", text)
    assert "--negative = 'no'" in refused(capsys, "--negative", "no", "--classes", "a,b")


def pipe(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.thorough(beside="test_labels_that_cannot_be_printed_stand_in_the_record")
def test_a_public_table_goes_through_a_pipe(capsys, folder, monkeypatch):
    run(capsys, *SEED)
    argv = ["label", "private.csv", "-", *OPTIONS, *SEED, "--output"]
    pipe(monkeypatch, (folder / "public.csv").read_bytes())
    assert main([*argv, "-", "--record", "record.json"]) == 0
    shown = capsys.readouterr()
    assert shown.out.encode() == (folder / "public.labeled.csv").read_bytes()
    assert "hdp-fast: 40 of 40 rows answered; what protects them is in record.json" in shown.err
    record = json.loads((folder / "record.json").read_text())
    assert (record["output"], record["record"]["epsilon"]) == ("-", 20)
    assert "labels" not in record
    pipe(monkeypatch, (folder / "public.csv").read_bytes())
    assert main([*argv, "x.csv", "--quiet"]) == 0
    assert (folder / "x.csv").read_bytes() == (folder / "public.labeled.csv").read_bytes()
    shown = capsys.readouterr()
    assert shown.err == ""
    pipe(monkeypatch, (folder / "public.csv").read_bytes())
    assert main([*argv[:-1], "--suggest"]) == 0
    assert not (folder / "-").exists()


def test_labels_that_cannot_be_printed_stand_in_the_record(capsys, folder, monkeypatch):
    argv = ["label", "private.csv", "public.csv", *OPTIONS, *SEED, "--output", "-"]
    with monkeypatch.context() as patch, open("/dev/full", "w") as full:
        patch.setattr(sys, "stdout", full)
        assert main([*argv, "--record", "record.json"]) == 2
    line = capsys.readouterr().err
    assert "can't write to the standard output" in line
    assert "the labels are in record.json" in line
    size, _, _ = rows(40, 40)
    labels = json.loads((folder / "record.json").read_text())["labels"]
    assert labels == ["yes" if x > 50 else "no" for x in size.round(6)]


def test_what_cannot_be_piped_is_refused(capsys, folder, monkeypatch):
    assert "--output - must go with --record" in refused(capsys, "--output", "-")
    argv = ["--output", "-", "--record", "record.json"]
    assert "--json prints the record" in refused(capsys, *argv, "--json")
    assert "--output must be given" in refused(capsys, public="-")
    assert "one table" in refused(capsys, *argv, private="-", public="-")
    np.savez("arrays.npz", size=[1.0], color=["red"])
    assert ".npz files cannot be printed" in refused(capsys, *argv, public="arrays.npz")
    pipe(monkeypatch, b"size;color\n1;red\n")
    assert "did you mean --delimiter ';'" in refused(capsys, *argv, public="-")
    pipe(monkeypatch, b"size,color\n\xff,red\n")
    assert "the standard input" in refused(capsys, *argv, public="-")


def test_swapped_files_are_told_by_the_column_of_labels(capsys, folder):
    line = refused(capsys, private="public.csv", public="private.csv")
    assert "column = 'buys'" in line
    assert "PRIVATE, public.csv, has none, while PUBLIC, private.csv, has one" in line
    assert "are the two swapped?" in line
    (folder / "bare.csv").write_bytes(table_text(9, 9, False).encode())
    assert "swapped" not in refused(capsys, private="bare.csv")


def test_another_label_of_the_private_table(capsys, folder):
    schema = json.loads(schema_text())
    del schema["columns"]["color"]
    (folder / "schema.json").write_text(json.dumps(schema))
    result = run(capsys, "--label", "color", "--classes", "red,blue", "--table", "hazard")
    assert result["column"] == "color_private"
    assert result["plan"]["table"] == "HazardTable"


def test_rows_of_an_id_are_protected_together(capsys, folder):
    result = run(capsys, "--ids", "note", "--table", "vote")
    assert result["record"]["neighbors"] == "add_remove"
    # Fewer records than members say nothing where their number is private.
    text = table_text(9, 9, True)
    (folder / "few.csv").write_text(text)
    run(capsys, "--ids", "note", "--table", "vote", "--output", "2.csv", private="few.csv")
    assert "column = 'none'" in refused(capsys, "--ids", "none", "--output", "3.csv")


def test_members_go_on_with_what_is_left(capsys, folder):
    argv = ["--save", "kept", "--budget", "ledger", "--max-unstable", "3", "--queries", "100"]
    argv += ["--table", "vote"]
    assert main(["budget", "ledger", "--epsilon", "30", "--delta", ".1"]) == 0
    capsys.readouterr()
    first = run(capsys, *argv, "--output", "1.csv")
    assert first["queries_left"] == 60
    second = run(capsys, *argv, "--output", "2.csv", private="none.csv")
    assert second["queries_left"] == 20
    assert second["record"] == first["record"]
    one, two = ([row["buys"] for row in read(name)] for name in ("1.csv", "2.csv"))
    clear = np.abs(rows(40, 40)[0] - 50) > 12
    assert np.array_equal(np.array(one)[clear], np.array(two)[clear])
    line = refused(capsys, *argv, "--output", "3.csv", code=3)
    assert "PUBLIC has 40 queries, but kept has answered 80 of 100, and has 20 left" in line
    changed = refused(capsys, *argv, "--max-unstable", "4", "--output", "3.csv")
    assert "--max-unstable = 4, but kept was made for 3" in changed
    assert "--classes" in refused(capsys, *argv, "--classes", "a,b", "--output", "3.csv")
    assert PrivateLabeler.load("kept", trusted=True).queries_left == 20
    assert main(["budget", "ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"] == {"epsilon": 20, "delta": 1e-3}
    assert "epsilon" in refused(capsys, "--budget", "ledger", code=3)


def test_a_budget_that_is_too_small_refuses_before_anything(capsys, folder):
    assert main(["budget", "ledger", "--epsilon", "3", "--delta", ".1"]) == 0
    capsys.readouterr()
    argv = ["--budget", "ledger", "--save", "kept", "--plot", "found.png"]
    line = refused(capsys, *argv, code=3)
    assert "epsilon = 20.0 and delta = 0.001 was requested" in line
    assert main(["budget", "ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"] == {"epsilon": 0, "delta": 0}


def test_a_plan_is_shown_before_private_records_are_read(capsys, folder):
    argv = ["label", "none.csv", "public.csv", *OPTIONS, "--epsilon", "1", "--delta", "1e-6"]
    argv += ["--beta", ".05", "--queries", "1000", "--max-unstable", "50", "--plan"]
    assert main([*argv, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["members"], plan["members_hazard"], plan["members_paper"]) == (1266, 1611, 95317)
    assert main(argv) == 0
    assert "95,317" in capsys.readouterr().out
    assert main([*argv, "--json", "--table", "gaussian", "--threshold", "0"]) == 0
    noisy = json.loads(capsys.readouterr().out)
    assert (noisy["table"], noisy["levels"], noisy["max_unstable"]) == ("GaussianVote", None, None)
    assert noisy["members"] == noisy["members_gaussian"] < plan["members_gaussian"]
    assert {path.name for path in folder.iterdir()} == {"private.csv", "public.csv", "schema.json"}


def test_too_few_records_say_what_helps(capsys, folder):
    at = OPTIONS.index("--members")
    argv = ["label", "private.csv", "public.csv", *OPTIONS[:at], "--epsilon", ".1"]
    line = fails(capsys, *argv, code=3)
    for part in ("600 rows", "members need one each", "the paper:", "60 members of about 10"):
        assert part in line
    assert "with probability 0.390" in line
    assert "too much to be of use; a larger epsilon" in line
    assert "--members" not in line
    line = fails(capsys, *argv[:-2], "--epsilon", "1", "--queries", "1000", code=3)
    assert "60 members of about 10" in line
    assert "601 members" in refused(capsys, "--members", "601", code=3)


def test_a_plan_says_what_members_are_worth_without_any_learner(capsys, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.naive_bayes", None)
    at = OPTIONS.index("--epsilon")
    argv = ["label", "none.csv", "public.csv", *OPTIONS[:at], "--epsilon", "1", "--delta", "1e-6"]
    argv += ["--plan", "--json", "--queries", "400"]
    for members, least, most in (("1", 0.499, 0.5), ("100", 0.2, 0.3), ("866", 0, 0.001)):
        assert main([*argv, "--members", members]) == 0
        shown = capsys.readouterr()
        plan = json.loads(shown.out)
        assert plan["members_in_use"] == int(members)
        assert least <= plan["flip_probability"] <= most
        assert plan["flip_probability"] <= plan["flip_probability_at_75"]
        assert ("note: members" in shown.err) == (members != "866")
    assert "--members = 0" in fails(capsys, *argv, "--members", "0")
    assert "one of logistic" in fails(capsys, *argv, "--estimator", "best")


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("labeled", [True, False])
def test_members_are_suggested_from_public_rows(capsys, folder, labeled):
    (folder / "points.csv").write_bytes(table_text(60, 5, labeled).encode())
    argv = ["label", "private.csv", "points.csv", *OPTIONS, "--epsilon", "3", "--suggest"]
    assert main([*argv, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["labels"] == ("public" if labeled else "synthetic")
    assert shown["rows"] == 600
    assert f"members {shown['best']}" in shown
    assert not (folder / "points.labeled.csv").exists()
    assert "with --ids it is private" in fails(capsys, *argv, "--ids", "note")


def test_files_are_looked_at_before_the_estimator_is_imported(capsys, folder, monkeypatch):
    for module in ("sklearn", "sklearn.naive_bayes"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "none.csv" in refused(capsys, private="none.csv")
    assert "sklearn" in refused(capsys)


OWN = """
class {name}:
    def fit(self, X, y):
        self.texts = {texts}
        return self

    def predict(self, X):
        return [self.texts] * len(X)
"""


def test_an_estimator_that_fails_on_public_rows_costs_nothing(capsys, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    (folder / "own_estimators.py").write_text(
        OWN.format(name="Numbers", texts="1") + OWN.format(name="Ones", texts="'yes'")
    )
    assert main(["budget", "ledger", "--epsilon", "30", "--delta", ".1"]) == 0
    capsys.readouterr()
    argv = ["label", "private.csv", "public.csv", *OPTIONS, "--budget", "ledger"]
    line = fails(capsys, *argv, "--estimator", "own_estimators.Numbers")
    assert "40 of 40 predictions are none of classes, 'no', 'yes'" in line
    assert main(["budget", "ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"]["epsilon"] == 0
    assert main([*argv, "--estimator", "own_estimators.Ones"]) == 0
    shown = capsys.readouterr()
    assert "note: all 40 answers are one label, 'yes'" in shown.err
    assert "shares            yes = 1" in shown.out
    assert "flip_probability" in shown.out


def test_no_answer_at_all_is_told_by_the_code(capsys, folder):
    argv = ["label", "private.csv", "public.csv", *OPTIONS, "--table", "hazard", "--epsilon", ".5"]
    assert main([*argv, "--members", "3", "--max-unstable", "2", *SEED]) == 1
    assert "answered          0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "--epsilon = 0.0"),
        (["--epsilon", "x"], "--epsilon"),
        (["--delta", "1"], "--delta = 1.0"),
        (["--beta", "2"], "beta = 2"),
        (["--agreement", ".5"], "agreement = 0.5"),
        (["--members", "0"], "members = 0"),
        (["--max-unstable", "0"], "max_unstable = 0"),
        (["--queries", "39"], "--queries = 39, but PUBLIC has 40 rows"),
        (["--table", "none"], "--table"),
        (["--table", "vote", "--classes", "a,b,c"], "table = 'vote'"),
        (["--classes", "a"], "2 to 256"),
        (["--classes", "a,a"], "2 to 256"),
        (["--classes", "a,,b"], "texts with commas between"),
        (["--label", "size"], "label is 'buys', unless there are --classes"),
        (["--label", "size", "--classes", "a,b"], "has it for a feature"),
        (["--label", "none", "--classes", "a,b"], "column = 'none'"),
        (["--seed", "-1"], "random_state = -1"),
        (["--budget", "none"], "must be a budget file"),
        (["--schema", "none"], "can't read none"),
        (["--output", "x.npz"], "must end in .csv, as PUBLIC does"),
        (["--output", "none/x.csv"], "existing directory"),
        (["--output", "public.csv"], "new file of its own, got public.csv"),
        (["--record", "schema.json"], "new file of its own, got schema.json"),
        (["--output", "x.csv", "--record", "x.csv"], "new file of its own"),
        (["--plot", "public.labeled.csv"], "new file of its own"),
        (["--save", "none/x"], "existing directory"),
        (["--save", "schema.json"], "must be a whole file that save wrote"),
        (["--estimator", "best"], "one of logistic, ridge, tree, forest, neighbors, naive-bayes"),
        (["--estimator", "no.such.Class"], "can be imported and made"),
        (["--estimator", "json.dumps"], "must be a class with fit and predict"),
        (["--estimator", "collections.OrderedDict"], "must be a class with fit and predict"),
        (["--estimator", "sys.exit"], "must be a class with fit and predict"),
        (["--estimator", "os.getcwd"], "must be a class with fit and predict"),
    ],
)
def test_bad_flags_leave_nothing_behind(capsys, folder, options, message):
    assert message in refused(capsys, *options)


def test_files_that_do_not_fit(capsys, folder):
    assert "none.csv" in refused(capsys, private="none.csv")
    assert "none.csv" in refused(capsys, public="none.csv")
    assert "must end in" in refused(capsys, public="schema.json")
    (folder / "other.csv").write_text("size,buys\n1,yes\n")
    assert "column = 'color'" in refused(capsys, private="other.csv")
    assert "column = 'color'" in refused(capsys, public="other.csv")
    (folder / "public.labeled.csv").write_text("paid for")
    assert "new file of its own" in refused(capsys)
    np.savez("matrix.npz", size=[1.0], color=["red"], buys=[[1.0]])
    assert "name of an array" in refused(capsys, public="matrix.npz")
    (folder / "kept.ledger").write_text("of another one")
    assert "kept.ledger" in refused(capsys, "--save", "kept", "--output", "new.csv")


def test_what_is_missing_is_named_before_anything_is_spent(capsys, folder, monkeypatch):
    for module, options, extra in (
        ("joblib", ["--save", "kept"], "parallel"),
        ("matplotlib.figure", ["--plot", "x.png"], "plot"),
        ("sklearn.naive_bayes", [], "sklearn"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert f"(the extra hdp-fast[{extra}])" in refused(capsys, *options)


@pytest.mark.thorough(cases=["logistic", "naive-bayes", "tree"])
@pytest.mark.parametrize("name", label_task._KNOWN)
def test_every_estimator_labels(capsys, folder, name):
    argv = ["--estimator", name, "--members", "15", "--epsilon", "200", *SEED]
    result = run(capsys, *argv)
    size, _, _ = rows(40, 40)
    texts = np.array([row["buys"] for row in read(result["output"])])
    clear = np.abs(size - 50) > 20
    assert (texts[clear] == np.where(size > 50, "yes", "no")[clear]).all()


def test_a_terminal_shows_how_far_it_is(capsys, folder, monkeypatch):
    pytest.importorskip("tqdm")
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        argv = ["label", "private.csv", "public.csv", *OPTIONS, "--output", f"{terminal}.csv"]
        assert main(argv) == 0
        assert ("/60 " in capsys.readouterr().err) == terminal


@pytest.mark.thorough(beside="test_a_terminal_shows_how_far_it_is")
def test_suggestions_show_how_far_they_are_too(capsys, folder, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    argv = ["label", "private.csv", "public.csv", *OPTIONS, "--suggest"]
    for more in ([], ["--quiet"]):
        assert main([*argv, *more]) == 0
        assert ("member" in capsys.readouterr().err) == (not more)


def test_answers_that_cannot_be_written_are_printed(capsys, folder, monkeypatch):
    def full(path, content):
        raise files.ParameterError("output can't be written: no space left")

    monkeypatch.setattr(files, "write_atomically", full)
    assert main(["label", "private.csv", "public.csv", *OPTIONS, *SEED, "--json"]) == 2
    out = capsys.readouterr()
    assert "no space left" in out.err
    size, _, _ = rows(40, 40)
    assert json.loads(out.out)["labels"] == ["yes" if x > 50 else "no" for x in size.round(6)]


def test_private_cells_move_no_message(capsys, folder):
    """What is printed of unlike records is the same, but for the answers."""
    shown = []
    for old, new in ((",yes", ",yes"), (",yes", ",what?"), ("red", "\u00b5"), ("0", "")):
        (folder / "cells.csv").write_text(table_text(600, 600, True).replace(old, new))
        result = run(capsys, "--output", f"{len(shown)}.csv", private="cells.csv")
        answers = ("output", "answered", "bottoms", "shares")
        shown.append({name: value for name, value in result.items() if name not in answers})
    assert all(one == shown[0] for one in shown)


SLOW = """
import time


class Slow:
    trials = 3

    def fit(self, X, y):
        Slow.trials -= 1
        if Slow.trials < 0:
            open("begun", "w").close()
            time.sleep(30)

    def predict(self, X):
        return ["no"] * len(X)
"""


def test_ctrl_c_ends_it_and_says_what_is_spent(capsys, folder):
    assert main(["budget", "ledger", "--epsilon", "30", "--delta", ".1"]) == 0
    (folder / "own.py").write_text(SLOW)
    argv = ["label", "private.csv", "public.csv", *OPTIONS, "--budget", "ledger"]
    argv += ["--estimator", "own.Slow", "--save", "kept"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hdp_fast", *argv],
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        text=True,
    )
    wait_until((folder / "begun").exists, process)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert time.monotonic() - start < 1
    assert process.returncode == 130
    assert error == (
        "hdp-fast: protected: private.csv, epsilon = 20, delta = 0.001; public: public.csv\n"
        "hdp-fast: interrupted: public.labeled.csv is not written; "
        "of the budget epsilon = 20 and delta = 0.001 are spent, "
        "before this run epsilon = 0 and delta = 0\n"
    )
    left = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert left == {"begun", "ledger", "own.py", "private.csv", "public.csv", "schema.json"}


def test_an_interrupt_while_answering_keeps_the_members(capsys, folder, monkeypatch):
    def interrupted(self, Q, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PrivateLabeler, "label", interrupted)
        assert main(["label", "private.csv", "public.csv", *OPTIONS, "--save", "kept"]) == 130
    error = capsys.readouterr().err
    assert "the same command goes on with what is in kept" in error
    assert run(capsys, "--save", "kept")["queries_left"] == 0


# Dies where the file with the members would get its name.
KILLED = """
import os, signal, sys
from hdp_fast import cli

link = os.link


def link_or_die(scratch, target):
    if str(target).endswith("ledger"):
        return link(scratch, target)
    os.kill(os.getpid(), signal.SIGKILL)


os.link = link_or_die
cli.main(sys.argv[1:])
"""


def killed(argv):
    command = [sys.executable, "-c", KILLED, "label", "private.csv", "public.csv", *argv]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.thorough(beside="test_ctrl_c_ends_it_and_says_what_is_spent")
def test_the_same_command_works_after_a_kill_between_ledger_and_members(capsys, folder):
    assert main(["budget", "ledger", "--epsilon", "50", "--delta", ".1"]) == 0
    capsys.readouterr()
    killed([*OPTIONS, "--save", "kept", "--budget", "ledger"])
    assert (folder / "kept.ledger").exists()
    assert not (folder / "kept").exists()
    result = run(capsys, "--save", "kept", "--budget", "ledger")
    assert (result["queries_left"], result["rows"]) == (0, 40)
    assert PrivateLabeler.load("kept", trusted=True).queries_left == 0
    assert main(["budget", "ledger", "--json"]) == 0
    # Each training was charged.
    assert json.loads(capsys.readouterr().out)["spent"]["epsilon"] == 40


def test_answers_that_a_kill_took_are_not_given_again_and_it_says_so(capsys, folder):
    run(capsys, "--save", "kept", "--output", "1.csv")
    line = refused(capsys, "--save", "kept", "--output", "2.csv", code=3)
    for part in ("kept has answered 40 of 40", "paid for and lost", "--save with a new file"):
        assert part in line


def test_a_ledger_in_use_is_not_taken_from_its_members(capsys, folder):
    run(capsys, "--save", "kept", "--queries", "43")
    os.remove("kept")
    line = refused(capsys, "--save", "kept", "--output", "2.csv")
    assert "ledger = " in line
    assert "whose queries it counts, must be beside it" in line


def test_help_says_what_is_protected(capsys):
    with pytest.raises(SystemExit):
        main(["label", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for part in ("for each row", "PUBLIC is not protected", "as private as PRIVATE"):
        assert part in text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_rows_of_text_keep_every_byte(tmp_path, end, last):
    lines = ['a,"b,""c"', "1,", "", '"x', 'y", z ', "é,2"]
    text = end.join(lines) + end * last
    path = tmp_path / "some.csv"
    path.write_bytes(text.encode())
    made = appender(path, 'la"bel')(["one", "two, three", ""]).decode()
    expected = ['a,"b,""c","la""bel"', "1,,one", "", '"x', 'y", z ,"two, three"', "é,2,"]
    assert made == end.join(expected) + end * last
