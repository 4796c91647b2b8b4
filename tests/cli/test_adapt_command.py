"""hdp-fast adapt: from two tables to a predictor in their units, and a file with predictions."""

import csv
import gzip
import io
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import fails
from processes import wait_until

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.adaptation import ScaledFeatures
from hdp_fast.cli import main
from hdp_fast.cli.output import coefficient_table
from hdp_fast.data import Schema, files, read_table

PRIVATE = ["--epsilon", "4", "--delta", "1e-5"]
NOBODY = ["--epsilon", "inf"]
SEED = ["--seed", "1"]
DESCENT = ["--method", "descent"]
KINDS = {
    "size": {"kind": "number", "bounds": [-50, 100]},
    "color": {"kind": "category", "values": ["red", "blue"]},
    "note": {"kind": "ignore"},
}


def rows(n, seed, slope=0.3):
    coins = np.random.default_rng(seed)
    size, color = coins.uniform(-50, 100, n).round(3), coins.choice(["red", "blue", "?"], n)
    return size, color, 20 + slope * size + 5 * (color == "red") - 2 * (color == "blue")


def table_text(n, seed, slope=0.3, label=True):
    found = zip(*(column.tolist() for column in rows(n, seed, slope)), strict=True)
    lines = [f"{s},{c},x" + f",{price!r}" * label for s, c, price in found]
    return "\n".join(["size,color,note" + ",price" * label, *lines, ""])


def schema_text(rule, columns=KINDS):
    kept = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    return json.dumps({**kept, "label": {"column": "price", **rule}})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source.csv").write_text(table_text(3000, 1))
    (tmp_path / "target.csv").write_text(table_text(400, 2))
    (tmp_path / "third.csv").write_text(table_text(30, 3, label=False))
    (tmp_path / "schema.json").write_text(schema_text({"bounds": [0, 60]}))
    (tmp_path / "binary.json").write_text(schema_text({"above": 25}))
    return tmp_path


def command(*argv, source="source.csv", target="target.csv"):
    return ["adapt", source, target, "--schema", "schema.json", *map(str, argv)]


def run(capsys, *argv, **files):
    assert main([*command(*argv, **files), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *argv, code=2, **files):
    before = {path.name for path in Path().iterdir()}
    line = fails(capsys, *command(*argv, **files), code=code)
    assert {path.name for path in Path().iterdir()} == before
    return line


def read(path):
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def by_hand(model, size, color):
    slopes = model["coefficients"]
    known = {"red": slopes["color=red"], "blue": slopes["color=blue"], "?": 0.0}
    return model["intercept"] + slopes["size"] * size + np.array([known[c] for c in color])


def test_the_default_is_one_release(capsys, folder):
    (folder / "steep.csv").write_text(table_text(2_000, 2, slope=0.26))
    model = run(capsys, *PRIVATE, target="steep.csv")
    assert model["record"]["mechanism"].startswith("adaptation.MomentAdaptation")
    assert model["coefficients"]["size"] == pytest.approx(0.26, abs=0.02)
    assert model["signal"] > 5


def cut(path, folder, lines):
    """Writes parts of a table with columns in another order, and a column that nothing reads."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    folder.mkdir()
    for place, some in enumerate((table[:lines], table[lines:])):
        some.iloc[:, ::-1].assign(more="z").to_csv(folder / f"{place}.csv", index=False)


@pytest.mark.parametrize("schema", ["schema.json", "binary.json"])
def test_folders_of_parts_have_the_bits_of_two_files(capsys, folder, schema):
    for name in ("source", "target"):
        cut(f"{name}.csv", folder / name, 70)
    loss = [*PRIVATE, *SEED, "--schema", schema]
    loss += ["--loss", "logistic"] * (schema == "binary.json")
    whole = run(capsys, *loss)
    # Workers that another test has started are in its folder.
    parts = {"source": str(folder / "source"), "target": f"{folder}/target/*.csv"}
    assert run(capsys, *loss, "--workers", 2, **parts) == whole
    assert main([*command(*loss, source="source", target="target")]) == 0
    captured = capsys.readouterr()
    assert "protected: target, epsilon = 4" in captured.err


def test_parts_that_do_not_fit_are_refused(capsys, folder):
    for name in ("source", "target"):
        cut(f"{name}.csv", folder / name, 70)
    line = refused(capsys, *PRIVATE, *DESCENT, source="source")
    assert "SOURCE = 'source', but --method descent reads all rows at each step" in line
    line = refused(capsys, *PRIVATE, "--label-bounds", 0, 30, source="source")
    assert "column 'price' of SOURCE holds others" in line
    (folder / "above.json").write_text(schema_text({"above": 1000}))
    line = refused(capsys, *PRIVATE, "--schema", "above.json", source="source")
    assert "makes no row a positive one" in line


def test_rows_are_scaled_by_the_schema_alone(folder):
    (folder / "few.csv").write_text("size,color\n100,red\n-50,blue\n25,?\n-999,red\nx,\n")
    features = ScaledFeatures(Schema.from_json((folder / "schema.json").read_text()))
    found = features.rows(read_table("few.csv"))
    expected = np.array([[1, 1, 0, 1], [-1, 0, 1, 1], [0, 0, 0, 1], [-1, 1, 0, 1], [-1, 0, 0, 1]])
    np.testing.assert_allclose(found, expected / math.sqrt(3), rtol=1e-15)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-15


def test_what_is_learned_speaks_of_the_table(capsys, folder):
    """Records that agree exactly: the truth has no loss at all, so that nothing else is found."""
    model = run(capsys, *NOBODY, *DESCENT, "--output", "model.json")
    assert json.loads((folder / "model.json").read_text()) == model
    assert model["record"] is None
    assert model["noise"] == 0
    assert model["intercept"] == pytest.approx(20, abs=1e-4)
    expected = {"size": 0.3, "color=red": 5, "color=blue": -2}
    assert model["coefficients"] == pytest.approx(expected, abs=1e-5)
    assert model["label"] == {"column": "price", "bounds": [0, 60]}


def test_target_and_source_are_not_taken_for_each_other(capsys, folder):
    (folder / "steep.csv").write_text(table_text(400, 2, slope=0.1))
    found = [
        run(capsys, *NOBODY, *DESCENT, "--alpha", alpha, target="steep.csv")["coefficients"]["size"]
        for alpha in (0.999, 0.001)
    ]
    assert found == pytest.approx([0.3, 0.1], abs=0.02)


def converted(name, suffix):
    table = read_table(f"{name}.csv")
    columns = {k: np.array(c.texts)[c.codes] for k, c in table.columns.items()}
    for column in columns.keys() & {"size", "price"}:
        columns[column] = columns[column].astype(float)
    path = f"{name}{suffix}"
    if suffix == ".npz":
        np.savez(path, **columns)
    elif suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    else:
        Path(path).write_bytes(gzip.compress(Path(f"{name}.csv").read_bytes()))
    return path


@pytest.mark.parametrize("suffix", [".csv.gz", ".npz", ".parquet"])
def test_formats_agree(capsys, folder, suffix):
    expected = run(capsys, *PRIVATE, *SEED, "--predict", "third.csv")
    source, target, third = (converted(name, suffix) for name in ("source", "target", "third"))
    found = run(capsys, *PRIVATE, *SEED, "--predict", third, source=source, target=target)
    assert found["predictions"] == f"third.predicted{suffix}"
    assert found["coefficients"] == expected["coefficients"]
    prices = [float(row["price"]) for row in read("third.predicted.csv")]
    if suffix == ".npz":
        with np.load("third.predicted.npz") as after:
            assert after["price"].dtype == float
            assert after["price"].tolist() == prices
    elif suffix == ".parquet":
        after = pytest.importorskip("pyarrow.parquet").read_table("third.predicted.parquet")
        assert after["price"].to_pylist() == prices
        assert str(after.schema.field("price").type) == "double"
    else:
        with gzip.open("third.predicted.csv.gz", "rt") as handle:
            assert handle.read() == (folder / "third.predicted.csv").read_text()


def test_a_third_file_is_predicted(capsys, folder):
    argv = ["--output", "model.json", "--predict", "third.csv", "--predictions", "out.csv"]
    model = run(capsys, *PRIVATE, *argv)
    size, color, price = rows(30, 3)
    found = np.array([float(row["price"]) for row in read("out.csv")])
    np.testing.assert_allclose(found, by_hand(model, size, color), atol=1e-9)
    assert np.abs(found - price).mean() < 2
    assert [list(row.values())[:3] for row in read("out.csv")] == [
        list(row.values()) for row in read("third.csv")
    ]
    record = PrivacyRecord.from_json(json.dumps(model["record"]))
    assert (record.epsilon, record.delta, record.neighbors) == (4, 1e-5, "replace_one")
    assert record.numerics == "exact"
    assert model["signal"] > 0


def test_a_label_that_is_there_is_kept(capsys, folder):
    found = run(capsys, *NOBODY, "--predict", "target.csv")
    assert found["column"] == "price_predicted"
    for row in read("target.predicted.csv"):
        assert float(row["price_predicted"]) == pytest.approx(float(row["price"]), abs=1e-3)
    text = "size,color,price,price_predicted\n1,red,2,3\n"
    (folder / "both.csv").write_text(text)
    assert "rename one" in refused(capsys, *NOBODY, "--predict", "both.csv")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("private", ["target", "source", "no one"])
def test_labels_of_two_kinds(capsys, folder, private, loss):
    privacy = NOBODY if private == "no one" else [*PRIVATE, "--private", private]
    privacy = [*privacy, *DESCENT] if private == "source" else privacy
    argv = ["--schema", "binary.json", "--predict", "third.csv", "--loss", loss, *privacy]
    model = run(capsys, *argv)
    size, color, price = rows(30, 3)
    said = np.array([int(row["price"]) for row in read("third.predicted.csv")])
    assert set(said) == {0, 1}
    assert (said == (by_hand(model, size, color) >= 0)).all()
    clear = np.abs(price - 25) > 6
    assert (said == (price > 25))[clear].all()
    assert model["label"] == {"column": "price", "above": 25}


def test_bounds_on_the_command_line_make_a_number_of_the_label(capsys, folder):
    argv = [*NOBODY, "--label-bounds", "-10", "70"]
    assert run(capsys, *argv)["label"]["bounds"] == [-10, 70]
    found = run(capsys, *argv, "--schema", "binary.json")
    assert found["coefficients"]["size"] == pytest.approx(0.3, abs=1e-5)


def test_either_file_can_be_private(capsys, folder):
    """Only public labels must keep their bounds: an error about private ones would tell of them."""
    odd = (folder / "target.csv").read_text() + "1e9,green,y,777\n1,red,y,\n1,red,y,nan\n"
    (folder / "odd.csv").write_text(odd)
    for files_, private in (({"target": "odd.csv"}, "target"), ({"source": "odd.csv"}, "source")):
        run(capsys, *PRIVATE, *DESCENT, "--private", private, **files_)
        other = "SOURCE" if private == "source" else "TARGET"
        line = refused(capsys, *NOBODY, **files_)
        assert f"'price' of {other} holds others" in line
        assert "public labels must be numbers in [0, 60]" in line
        assert "777" not in line
        turned = "source" if private == "target" else "target"
        assert other in refused(capsys, *PRIVATE, *DESCENT, "--private", turned, **files_)


def test_private_cells_move_no_message(capsys, folder):
    """What is printed of unlike records is the same, but for what is learned."""
    shown = []
    for old, new in (("red", "red"), ("red", "what?"), ("blue", ""), ("1", "x"), (",x,", ",x,-")):
        (folder / "cells.csv").write_text(table_text(400, 2).replace(old, new, 10**9))
        header = "size,color,note,price\n"
        body = (folder / "cells.csv").read_text().split("\n", 1)[1]
        (folder / "cells.csv").write_text(header + body)
        found = run(capsys, *PRIVATE, *DESCENT, "--alpha", ".5", target="cells.csv")
        learned = ("intercept", "discrepancy")
        kept = {name: value for name, value in found.items() if name not in learned}
        kept["coefficients"] = list(kept["coefficients"])
        shown.append(kept)
    assert all(one == shown[0] for one in shown)


def spent(capsys):
    assert main(["budget", "ledger", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["spent"]


def test_a_budget_is_spent_once_and_then_refuses(capsys, folder):
    assert main(["budget", "ledger", "--epsilon", "5", "--delta", ".1"]) == 0
    capsys.readouterr()
    argv = [*PRIVATE, "--budget", "ledger"]
    run(capsys, *argv)
    assert spent(capsys) == {"epsilon": 4, "delta": 1e-5}
    line = refused(capsys, *argv, "--output", "model.json", "--predict", "third.csv", code=3)
    assert "epsilon = 4.0 and delta = 1e-05 was requested" in line
    assert spent(capsys) == {"epsilon": 4, "delta": 1e-5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "--epsilon = 0.0"),
        (["--epsilon", "inf"], "--delta must not go with --epsilon inf"),
        (["--epsilon", "x"], "--epsilon"),
        (["--delta", "1"], "--delta = 1.0"),
        (["--private", "both"], "--private"),
        (["--private", "none"], "--private"),
        (["--loss", "absolute"], "--loss"),
        (["--loss", "logistic"], "'price' is a number between bounds: it needs squared"),
        (["--label-bounds", "1", "1"], "below high"),
        (["--label-bounds", "1", "nan"], "finite"),
        (["--label-bounds", "1"], "expected 2 arguments"),
        ([*DESCENT, "--radius", "0"], "radius = 0.0"),
        ([*DESCENT, "--penalty", "-1"], "= -1.0"),
        ([*DESCENT, "--alpha", "1"], "alpha = 1.0"),
        ([*DESCENT, "--steps", "0"], "steps = 0"),
        (["--alpha", ".5"], "--alpha must go with --method descent"),
        (["--private", "source"], "--private source must go with --method descent"),
        (["--method", "votes"], "--method"),
        (["--seed", "-1"], "random_state = -1"),
        (["--budget", "none"], "must be a budget file"),
        (["--schema", "none"], "can't read none"),
        (["--schema", "source.csv"], "Schema.to_json"),
        (["--predict", "none.csv"], "can't read none.csv"),
        (["--predict", "schema.json"], "must end in"),
        (["--predictions", "x.csv"], "--predictions must go with --predict"),
        (["--predict", "third.csv", "--predictions", "x.npz"], "must end in .csv, as FILE does"),
        (["--predict", "third.csv", "--predictions", "none/x.csv"], "existing directory"),
        (["--predict", "third.csv", "--predictions", "third.csv"], "new file of its own"),
        (["--output", "source.csv"], "new file of its own, got source.csv"),
        (["--output", "ledger"], "must not replace a file of state"),
        (["--output", "none/x"], "existing directory"),
        (
            ["--predict", "third.csv", "--predictions", "x.csv", "--output", "x.csv"],
            "new file of its own",
        ),
    ],
)
def test_bad_flags_leave_nothing_behind_and_cost_nothing(capsys, folder, options, message):
    assert main(["budget", "ledger", "--epsilon", "9", "--delta", ".1"]) == 0
    capsys.readouterr()
    assert message in refused(capsys, *PRIVATE, "--budget", "ledger", *options)
    assert spent(capsys) == {"epsilon": 0, "delta": 0}


def test_flags_that_are_missing(capsys, folder):
    assert "--epsilon" in refused(capsys)
    assert "arguments are required: --delta" in refused(capsys, "--epsilon", "1")
    for flag in (["--delta", ".1"], ["--budget", "x"]):
        assert f"{flag[0]} must not go with" in refused(capsys, *NOBODY, *flag)


def test_files_that_do_not_fit(capsys, folder):
    (folder / "other.csv").write_text("size,note,price\n1,x,2\n")
    (folder / "unlabeled.csv").write_text("size,color\n1,red\n")
    (folder / "ragged.csv").write_text("size,color,price\n1,red\n")
    (folder / "empty.csv").write_text("size,color,price\n")
    assert main(["budget", "ledger", "--epsilon", "9", "--delta", ".1"]) == 0
    capsys.readouterr()
    argv = [*PRIVATE, "--budget", "ledger", "--output", "model.json"]
    for domain in ("source", "target"):
        for name, message in (
            ("none.csv", "none.csv"),
            ("schema.json", "must end in"),
            ("other.csv", "column = 'color'"),
            ("unlabeled.csv", "column = 'price'"),
            ("ragged.csv", "must have 3 values"),
            ("empty.csv", "at least one row"),
        ):
            assert message in refused(capsys, *argv, **{domain: name})
    assert "column = 'color'" in refused(capsys, *argv, "--predict", "other.csv")
    assert spent(capsys) == {"epsilon": 0, "delta": 0}


def test_one_record_is_enough(capsys, folder):
    (folder / "one.csv").write_text("size,color,price\n1,red,30\n")
    run(capsys, *PRIVATE, target="one.csv")
    run(capsys, *PRIVATE, source="one.csv")


def test_a_predictor_that_cannot_be_written_is_printed(capsys, folder, monkeypatch):
    def full(path, content):
        raise files.ParameterError("output can't be written: no space left")

    monkeypatch.setattr(files, "write_atomically", full)
    assert main([*command(*NOBODY, "--output", "model.json"), "--json"]) == 2
    out = capsys.readouterr()
    assert "no space left" in out.err
    assert json.loads(out.out)["coefficients"]["size"] == pytest.approx(0.3, abs=1e-5)


def test_ctrl_c_ends_it_and_says_what_is_spent(capsys, folder):
    assert main(["budget", "ledger", "--epsilon", "5", "--delta", ".1"]) == 0
    argv = command(*PRIVATE, "--budget", "ledger", "--output", "model.json", *DESCENT)
    argv += ["--steps", str(10**8)]
    adapt = [sys.executable, "-m", "hdp_fast", *argv]
    with subprocess.Popen(adapt, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: Budget.open("ledger").spent.epsilon > 0, process)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=20)
        finally:
            process.kill()
    assert time.monotonic() - start < 2
    assert process.returncode == 130
    assert error == (
        "hdp-fast: protected: target.csv, epsilon = 4, delta = 1e-05; public: source.csv\n"
        "hdp-fast: interrupted: model.json is not written; "
        "of the budget epsilon = 4 and delta = 1e-05 are spent, "
        "before this run epsilon = 0 and delta = 0\n"
    )


def test_a_table_in_words(capsys, folder):
    assert main(command(*PRIVATE)) == 0
    text = capsys.readouterr().out
    for part in ("coefficients  \n", "intercept", "record", "\ncolor=red  "):
        assert part in text


def test_a_schema_for_it_is_read_off_a_public_file(capsys, folder):
    argv = ["schema", "source.csv", "--label", "price", "--label-bounds", "0", "60"]
    assert main([*argv, "--output", "made.json"]) == 0
    found = Schema.from_json((folder / "made.json").read_text())
    assert found.label.bounds == (0, 60)
    assert main([*argv, "--above", "3"]) == 2
    capsys.readouterr()
    assert run(capsys, *PRIVATE, "--schema", "made.json")["label"]["bounds"] == [0, 60]


def test_help_says_what_is_protected(capsys):
    with pytest.raises(SystemExit):
        main(["adapt", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for part in ("TARGET is protected by (epsilon, delta) for each row", "and SOURCE is not"):
        assert part in text
    for part in ("--epsilon inf no one is", "--predict is not protected", "no row is longer"):
        assert part in text


@pytest.mark.parametrize("privacy", [PRIVATE, NOBODY])
@pytest.mark.parametrize(("rule", "kind"), [({"above": 1e6}, "no"), ({"above": -1e6}, "every")])
def test_a_public_source_of_one_label_is_refused(capsys, folder, privacy, rule, kind):
    (folder / "schema.json").write_text(schema_text(rule))
    line = refused(capsys, *privacy)
    assert f"column 'price' of SOURCE makes {kind} row a positive one" in line


def test_a_private_source_of_one_label_is_not_told(capsys, folder):
    (folder / "schema.json").write_text(schema_text({"above": 1e6}))
    run(capsys, *PRIVATE, *DESCENT, "--private", "source")


def test_predictions_are_printed_and_tables_are_read_from_a_pipe(capsys, folder, monkeypatch):
    run(capsys, *NOBODY, "--predict", "third.csv", "--predictions", "old.csv")
    piped = io.TextIOWrapper(io.BytesIO((folder / "target.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", piped)
    argv = [*NOBODY, "--predict", "third.csv", "--predictions", "-", "--output", "model.json"]
    assert main(command(*argv, target="-")) == 0
    assert capsys.readouterr().out.encode() == (folder / "old.csv").read_bytes()
    assert "coefficients" in json.loads((folder / "model.json").read_text())
    assert "--output FILE" in refused(capsys, *argv[:-2])
    assert "--predictions - must go" in refused(capsys, *argv[:-2], "--output", "-")
    assert not (folder / "-").exists()


def test_an_output_of_a_dash_is_printed_as_json(capsys, folder):
    assert main(command(*NOBODY, "--output", "-")) == 0
    assert "coefficients" in json.loads(capsys.readouterr().out)
    assert not (folder / "-").exists()


def test_coefficients_as_a_table():
    names, coef = ["age", "pay, yearly", "job=clerk"], [0.123456, -2e-7, -12.5]
    assert coefficient_table(names, coef).splitlines() == [
        "job=clerk       -12.5",
        "age            0.1235",
        "pay, yearly    -2e-07",
    ]
    assert coefficient_table(names, coef, [0.0371, 1e-7, 2.25]).splitlines() == [
        "job=clerk       -12.5  +- 2.2",
        "age            0.1235  +- 0.037",
        "pay, yearly    -2e-07  +- 1e-07",
    ]
    assert coefficient_table([], []) == ""


def test_coefficients_are_drawn(capsys, folder, monkeypatch):
    pytest.importorskip("matplotlib")
    model = run(capsys, *NOBODY, "--plot", "model.png")
    assert model["plot"] == "model.png"
    assert (folder / "model.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["budget", "ledger", "--epsilon", "5", "--delta", "1e-3"]) == 0
    capsys.readouterr()
    line = refused(capsys, *PRIVATE, "--budget", "ledger", "--plot", "other.png")
    assert "pip install matplotlib (the extra hdp-fast[plot])" in line
    assert Budget.open("ledger").spent == (0, 0)
