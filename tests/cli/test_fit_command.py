"""hdp-fast fit and predict: a private table to a model in a file, and from that to predictions."""

import csv
import io
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import fails

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.accounting import gaussian_mu
from hdp_fast.cli import copies, fit_command, main
from hdp_fast.data import Schema, read_table
from hdp_fast.exceptions import ParameterError
from hdp_fast.learners import PrivateModel

PRIVACY = ["--epsilon", "4", "--delta", "1e-6"]
SEED = ["--seed", "1"]
N = 3_000
COLUMNS = {
    "age": {"kind": "number", "bounds": [18, 90]},
    "note": {"kind": "ignore"},
    "owner": {"kind": "category", "values": ["yes", "no"]},
}
LABELS = {
    "rule": {"column": "bought", "positive": ["yes"]},
    "above": {"column": "spent", "above": 150},
    "number": {"column": "spent", "bounds": [0, 300]},
    "plan": {"column": "plan", "positive": ["gold"]},
}
RNG = np.random.default_rng
PLANS = ["basic", "gold", "silver"]


def schema_text(label, columns=COLUMNS):
    kept = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    return json.dumps({**kept, "label": LABELS[label]})


def write_table(path, n, seed, label=True):
    coins = RNG(seed)
    age, owner = coins.integers(18, 91, n), coins.choice(["yes", "no", "?"], n)
    bought = np.where(age + 20 * (owner == "yes") + coins.normal(0, 5, n) > 60, "yes", "no")
    spent = (3 * age + 30 * (owner == "yes") + coins.normal(0, 5, n)).round(1)
    plan = np.array(PLANS)[np.digitize(age, [40, 65])]
    rows = zip(age, ["x"] * n, owner, bought, spent, plan, strict=True)
    names = ["age", "note", "owner", "bought", "spent", "plan"]
    kept = len(names) if label else 3
    lines = [",".join(map(str, row[:kept])) for row in rows]
    path.write_text("\n".join([",".join(names[:kept]), *lines, ""]))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "private.csv", N, 1)
    write_table(folder / "few.csv", 20, 2)
    write_table(folder / "third.csv", 40, 3, label=False)
    for name in LABELS:
        (folder / f"{name}.json").write_text(schema_text(name))
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in tables.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def fit(*argv, label="rule", table="private.csv", price=PRIVACY):
    options = [*price, "--output", "model.json", *map(str, argv)]
    return ["fit", table, "--schema", f"{label}.json", *options]


def learn(capsys, *argv, **changed):
    assert main(fit(*argv, **changed)) == 0
    capsys.readouterr()
    return json.loads(Path("model.json").read_text())


def predict(*argv):
    assert main(["predict", "model.json", "third.csv", *argv]) == 0
    with open("third.predicted.csv", encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def refused(capsys, *argv, code=2):
    before = {path.name for path in Path().iterdir()}
    line = fails(capsys, *argv, code=code)
    assert {path.name for path in Path().iterdir()} == before
    return line


# What is learned ---------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["rule", "above"])
@pytest.mark.parametrize("method", ["auto", "statistics"])
def test_a_rule_makes_a_classifier(capsys, folder, label, method):
    model = learn(capsys, *SEED, "--method", method, label=label)
    assert (model["format"], model["version"]) == ("hdp_fast.private_model", 1)
    assert model["method"] in ({"additive", "descent"} if method == "auto" else {method})
    column = "bought" if label == "rule" else "spent"
    rows = predict("--probabilities")
    assert {row[column] for row in rows} == {"0", "1"}
    for row in rows:
        if abs(float(row[f"{column}_probability"]) - 0.5) > 1e-6:
            assert (float(row[f"{column}_probability"]) > 0.5) == (row[column] == "1")
        if int(row["age"]) >= 70:
            assert row[column] == "1"
        if int(row["age"]) <= 30:
            assert row[column] == "0"


def test_bounds_make_a_regression(capsys, folder):
    model = learn(capsys, *SEED, label="number")
    assert model["link"] == "target"
    for row in predict():
        assert abs(float(row["spent"]) - 3 * int(row["age"])) < 60
    capsys.readouterr()
    argv = ["predict", "model.json", "third.csv", "--output", "x.csv", "--probabilities"]
    line = refused(capsys, *argv)
    assert "--probabilities must go with a classifier" in line


@pytest.mark.parametrize("method", ["sgd", "statistics"])
def test_classes_are_texts(capsys, folder, method):
    classes = ["--classes", "gold, basic,silver"]
    model = learn(capsys, *SEED, *classes, "--method", method, label="plan")
    assert model["classes"] == ["gold", "basic", "silver"]
    rows = predict("--probabilities")
    shares = [[float(row[f"plan_probability_{text}"]) for text in model["classes"]] for row in rows]
    np.testing.assert_allclose(np.sum(shares, axis=1), 1, atol=2e-6)
    places = np.argmax(shares, axis=1)
    assert [row["plan"] for row in rows] == [model["classes"][place] for place in places]
    assert all(row["plan"] == "silver" for row in rows if int(row["age"]) > 80)


def test_it_is_the_estimator_of_scikit_learn(capsys, folder):
    pytest.importorskip("sklearn", minversion="1.6")
    from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

    schema = Schema.from_json(schema_text("rule"))
    table, third = read_table("private.csv"), read_table("third.csv")
    price = {"epsilon": 4.0, "delta": 1e-6, "test_seed": 1, "schema": schema}
    for method in ("sgd", "statistics"):
        learn(capsys, *SEED, "--method", method)
        model = PrivateModel.from_json(Path("model.json").read_text())
        (folder / "model.json").unlink()
        twin = PrivateClassifier(method=method, classes=[0, 1], **price)
        twin.fit(table, schema.labels(table))
        np.testing.assert_allclose(model.probabilities(third), twin.predict_proba(third), atol=1e-5)
        assert model.predict(third) == twin.predict(third).tolist()
        learn(capsys, *SEED, "--method", method, label="number")
        model = PrivateModel.from_json(Path("model.json").read_text())
        (folder / "model.json").unlink()
        spent = Schema.from_json(schema_text("number")).float_labels(table) * 150 + 150
        other = PrivateRegressor(method=method, target_bounds=(0, 300), **price).fit(table, spent)
        np.testing.assert_allclose(model.predict(third), other.predict(third), atol=1e-3)


def test_nothing_is_needed_but_numpy(folder):
    blocked = (
        "import sys\n"
        "for name in ('sklearn', 'pandas', 'pyarrow', 'scipy', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "from hdp_fast.cli import main\n"
        f"assert main({fit('--report', 'page.html', label='number')!r}) == 0\n"
        "assert main(['predict', 'model.json', 'third.csv']) == 0\n"
    )
    subprocess.run([sys.executable, "-c", blocked], check=True, capture_output=True)
    assert (folder / "third.predicted.csv").exists()


def test_the_record_is_that_of_the_whole_fit(capsys, folder):
    record = PrivacyRecord(**learn(capsys, "--method", "descent")["record"])
    assert (record.epsilon, record.delta, record.neighbors) == (4, 1e-6, "replace_one")
    assert record.mechanism.startswith(
        "learners.CenteredLinear, 4 columns, means, class counts, 120 steps on all records, margins"
    )
    assert (record.law, record.mu) == ("gaussian", gaussian_mu(4, 1e-6))
    assert record.numerics == "exact"


def test_all_rows_of_a_person_are_protected_together(capsys, folder):
    """By the noise of the library's own persons, whatever the numbers of rows are."""
    text = (folder / "private.csv").read_text().splitlines()
    lines = [f"{line},p{place % 1_000}" for place, line in enumerate(text[1:])]
    (folder / "visits.csv").write_text("\n".join([f"{text[0]},who", *lines, ""]))
    ids = ["--ids", "who", "--method", "statistics", "--force"]
    record = learn(capsys, *ids, table="visits.csv")["record"]
    assert record["neighbors"] == "replace_person"
    assert record["mechanism"].endswith(", at most 1 row a person")
    wide = learn(capsys, *ids, "--rows-per-person", 3, table="visits.csv")
    assert wide["record"]["mechanism"].endswith(", at most 3 rows a person")
    assert wide["n"] == N


def test_nobody_is_protected_without_noise(capsys, folder):
    assert main(fit(price=["--epsilon", "inf"])) == 0
    assert "protected: nothing; public: private.csv" in capsys.readouterr().err
    model = json.loads((folder / "model.json").read_text())
    assert model["record"] is model["signal"] is None


def test_private_cells_move_no_message(capsys, folder):
    """What is printed of unlike records is the same, but for what is learned."""
    text = (folder / "private.csv").read_text()
    for old, new in (("18,", "99999,"), ("yes,1", ",1"), ("no", "\x07"), ("x,", "nan,")):
        header, body = text.split("\n", 1)
        (folder / "cells.csv").write_text(f"{header}\n{body.replace(old, new)}")
        assert main([*fit(table="cells.csv"), "--force", "--method", "sgd"]) == 0
        captured = capsys.readouterr()
        assert captured.err == "hdp-fast: protected: cells.csv, epsilon = 4, delta = 1e-06\n"
        shown = [line.split()[0] for line in captured.out.splitlines()]
        # Which effects are told is released.
        assert set(shown) - {"age", "owner=yes", "owner=no", "effects"} == {
            "verdict", "label", "predicts", "rows", "features", "method", "told", "use", "plan",
            "record", "output"}  # fmt: skip


# Files
# ---------------------------------------------------------------------------------------------


def test_the_file_is_all_that_is_needed(capsys, folder):
    learn(capsys, *SEED)
    text = (folder / "model.json").read_text()
    model = PrivateModel.from_json(text)
    assert json.loads(model.to_json()) == json.loads(text)
    for path in ("private.csv", "rule.json"):
        (folder / path).unlink()
    before = predict()
    np.testing.assert_array_equal(
        [int(row["bought"]) for row in before], model.predict(read_table("third.csv"))
    )


def test_a_summary_and_the_model_are_printed(capsys, folder):
    assert main(fit(*SEED)) == 0
    words = capsys.readouterr().out
    assert "predicts  one of 0, 1" in words
    assert "effects   \nage " in words
    assert words.splitlines()[0].startswith("verdict   ")
    assert main([*fit(*SEED), "--force", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((folder / "model.json").read_text())
    assert (
        main(["fit", "private.csv", "--schema", "rule.json", *PRIVACY, *SEED, "--output", "-"]) == 0
    )
    assert json.loads(capsys.readouterr().out) == printed


def test_tables_come_from_the_standard_input(capsys, folder, monkeypatch):
    def give(path):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    give("private.csv")
    assert main(fit(*SEED, table="-")) == 0
    assert "protected: -, epsilon = 4" in capsys.readouterr().err
    give("third.csv")
    assert main(["predict", "model.json", "-"]) == 0
    printed = capsys.readouterr().out
    predict()
    assert printed == (folder / "third.predicted.csv").read_text()
    assert main(["predict", "model.json", "third.csv", "--output", "-"]) == 0
    assert capsys.readouterr().out == printed


def test_arrays_are_predicted(capsys, folder):
    learn(capsys, *SEED)
    expected = [int(row["bought"]) for row in predict()]
    columns = read_table("third.csv").columns
    np.savez("third.npz", **{k: np.array(c.texts)[c.codes] for k, c in columns.items()})
    assert main(["predict", "model.json", "third.npz", "--probabilities"]) == 0
    with np.load("third.predicted.npz") as after:
        assert after["bought"].tolist() == expected
        assert after["bought_probability"].dtype == float


def test_a_label_that_is_there_is_kept(capsys, folder):
    learn(capsys, *SEED)
    assert main(["predict", "model.json", "few.csv"]) == 0
    assert (
        (folder / "few.predicted.csv")
        .read_text()
        .startswith("age,note,owner,bought,spent,plan,bought_predicted\n")
    )


def test_rows_that_the_schema_does_not_foresee_are_predicted(capsys, folder):
    learn(capsys, *SEED)
    (folder / "third.csv").write_text("owner,age\nnever seen,-5\n,\nyes,1e300\nno,nan\n")
    assert len(predict("--probabilities")) == 4


# Budgets
# -------------------------------------------------------------------------------------------


def spent():
    return tuple(Budget.open("ledger").spent)


def test_a_budget_is_spent_once_and_then_refuses(capsys, folder):
    Budget.open("ledger", epsilon=5, delta=0.1)
    learn(capsys, "--budget", "ledger")
    assert spent() == (4, 1e-6)
    (folder / "model.json").unlink()
    line = refused(capsys, *fit("--budget", "ledger", "--report", "page.html"), code=3)
    assert "epsilon = 4.0 and delta = 1e-06 was requested" in line
    assert spent() == (4, 1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "--epsilon = 0.0"),
        (["--epsilon", "1e-12", "--delta", "1e-300"], "it needs more noise than is drawn"),
        (["--epsilon", "inf"], "--delta must not go with --epsilon inf"),
        (["--delta", "1"], "--delta = 1.0"),
        (["--method", "votes"], "--method"),
        (["--seed", "-1"], "random_state = -1"),
        (["--budget", "none"], "must be a budget file"),
        (["--schema", "none"], "can't read none: No such file or directory: hdp-fast schema --new"),
        (["--schema", "private.csv"], "Schema.to_json"),
        (["--classes", "yes"], "a classifier needs two or more"),
        (["--classes", "yes,,no"], "texts with commas between"),
        (["--classes", "yes,yes"], "--classes"),
        (["--classes", "yes,other"], "every row must hold one of --classes"),
        (["--report", "x.pdf"], "it must end in .html"),
        (["--ids", "who"], "column = 'who'"),
        (["--rows-per-person", "2"], "--rows-per-person must go with --ids"),
        (["--ids", "age", "--rows-per-person", "0"], "rows_per_person = 0"),
        (["--report", "none/x.html"], "existing directory"),
        (["--output", "private.csv"], "new file of its own"),
        (["--output", "ledger"], "must not replace a file of state"),
        (["--output", "x.html", "--report", "x.html"], "new file of its own"),
        (["--output", "none/x"], "existing directory"),
    ],
)
def test_bad_flags_leave_nothing_behind_and_cost_nothing(capsys, folder, options, message):
    Budget.open("ledger", epsilon=5, delta=0.1)
    assert message in refused(capsys, *fit("--budget", "ledger", *options))
    assert spent() == (0, 0)


def test_flags_that_are_missing(capsys, folder):
    for price, message in (
        (["--delta", ".1"], "arguments are required: --epsilon (--epsilon: privacy of"),
        (["--epsilon", "1"], "arguments are required: --delta (--delta: privacy of PRIVATE)"),
        (["--epsilon", "inf", "--budget", "x"], "--budget must not go with --epsilon inf"),
    ):
        assert message in refused(capsys, *fit(price=price))


# What is of no use
# ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "sgd", "statistics"])
def test_noise_alone_is_nothing_useful(capsys, folder, method):
    argv = fit(
        "--method", method, *SEED, table="few.csv", price=["--epsilon", ".1", "--delta", "1e-6"]
    )
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert captured.err.count("better than a constant") == (3 if method == "statistics" else 1)
    assert (folder / "model.json").exists()
    assert json.loads((folder / "model.json").read_text())["signal"] < 1


def test_the_mean_alone_is_nothing_useful(capsys, folder):
    argv = fit(*SEED, table="few.csv", label="number", price=["--epsilon", ".1", "--delta", "1e-6"])
    assert main(argv) == 1
    assert capsys.readouterr().err.count("the model is the mean of the target alone") == 1
    model = json.loads((folder / "model.json").read_text())
    assert model["method"] == "descent"
    assert model["signal"] < 1e-6
    assert model["record"]["delta"] == 0
    predicted = {row["spent"] for row in predict()}
    assert len(predicted) == 1


def test_slopes_of_chance_are_told_in_terminal_and_report(capsys, folder):
    """By released numbers; those of the true labels stand out of their noise."""
    head, *lines = (folder / "private.csv").read_text().splitlines()
    place = head.split(",").index("spent")
    rows = [line.split(",") for line in lines]
    for row, label in zip(rows, RNG(1).permutation([row[place] for row in rows]), strict=True):
        row[place] = label
    (folder / "chance.csv").write_text("\n".join([head, *map(",".join, rows), ""]))
    for table, code in (("private.csv", 0), ("chance.csv", 1)):
        options = ["--report", "page.html", *SEED, "--force"]
        assert main(fit(*options, table=table, label="number")) == code
        captured = capsys.readouterr()
        assert ("no better than the mean of the target" in captured.err) == (code == 1)
        assert "times the noise" in captured.out
        page = (folder / "page.html").read_text()
        assert "shrunk as far as their noise asks for" in page
        assert "slopes stand out of the noise that is left in them" in page


@pytest.mark.parametrize("method", ["descent", "sgd"])
def test_labels_by_chance_are_told_the_plan_alone(capsys, folder, method):
    """The noise of gradients is known before any data: no words take it for a signal."""
    head, *lines = (folder / "private.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    for row, label in zip(rows, RNG(1).permutation([row[3] for row in rows]), strict=True):
        row[3] = label
    (folder / "chance.csv").write_text("\n".join([head, *map(",".join, rows), ""]))
    shown, told = {}, {}
    for table in ("private.csv", "chance.csv"):
        argv = fit("--report", "page.html", "--method", method, *SEED, table=table)
        assert main([*argv, "--force"]) == 0
        out, page = capsys.readouterr().out, (folder / "page.html").read_text()
        (line,) = [line for line in out.splitlines() if line.startswith("plan ")]
        told[table] = PrivateModel.from_json((folder / "model.json").read_text()).told_effects()
        shown[table] = line, json.loads((folder / "model.json").read_text())["signal"]
        assert "signal" not in out
        assert "known before any data: it says nothing about this model" in line
        assert "Nothing that was released tells" in page
        assert "above, this one may be no better all the same" in page
    assert shown["private.csv"] == shown["chance.csv"]
    # The effects tell the two apart.
    assert told["private.csv"].signal > 1
    assert told["private.csv"].told[0].name == "age"
    assert told["chance.csv"].signal < 1
    assert not told["chance.csv"].told
    assert "labels that are pure chance could make them" in page


def test_columns_without_information_are_nothing_useful(capsys, folder):
    """By statistics, whose released weights show it; in 1 run of 100 they would not."""
    coins = RNG(5)
    rows = zip(coins.integers(18, 91, N), coins.choice(["yes", "no"], N), strict=True)
    (folder / "noise.csv").write_text("age,owner,bought\n" + "".join(
        f"{age},no,{label}\n" for age, label in rows))  # fmt: skip
    assert main(fit("--method", "statistics", *SEED, table="noise.csv",
                    price=["--epsilon", ".1", "--delta", "1e-6"])) == 1  # fmt: skip


def test_one_label_for_all_is_noted(capsys, folder):
    body = (folder / "private.csv").read_text().replace("yes,1", "no,1").replace("yes,2", "no,2")
    (folder / "rare.csv").write_text(body.replace(",yes,yes,", ",yes,no,"))
    assert main(fit(*SEED, "--method", "statistics", table="rare.csv")) == 0
    note = capsys.readouterr().err
    assert "the model predicts '0' for nearly all rows" in note
    assert (
        main([*fit(*SEED, table="rare.csv"), "--force", "--strict", "--method", "statistics"]) == 1
    )


def test_a_usual_label_is_that_of_nine_rows_of_ten(capsys, folder):
    """Of rows with independent columns of the released means and deviations."""
    learn(capsys, *SEED)
    fields, coins, seen = json.loads((folder / "model.json").read_text()), RNG(0), set()
    model = PrivateModel.from_json(json.dumps(fields))
    shares, age = model.rows.center[1:], coins.normal(size=2_000)
    bits = np.searchsorted(shares.cumsum(), coins.random(2_000))[:, None] == [0, 1]
    square = (age**2 - 1) / math.sqrt(2)
    z = np.column_stack([age, bits - shares, square, np.ones(2_000)])
    for _ in range(100):
        fields["constant"] = (coins.normal(size=2) * coins.choice([0.1, 1, 50])).tolist()
        model = PrivateModel.from_json(json.dumps(fields))
        margins = z @ (model.weights[:, 1] - model.weights[:, 0])
        share = (margins > 0).mean()
        usual = model.usual_label()
        assert usual is None or (share if usual == "1" else 1 - share) > 0.9
        assert usual is not None or abs(margins.mean()) < 3.2 * margins.std()
        seen.add(usual)
    assert seen == {"0", "1", None}


# What is cut off or damaged
# ------------------------------------------------------------------------


def test_a_full_disk_prints_the_model(capsys, folder, monkeypatch):
    Budget.open("ledger", epsilon=5, delta=0.1)

    def fail(path, data):
        raise ParameterError(f"can't write {path}: No space left on device")

    monkeypatch.setattr(fit_command.files, "write_atomically", fail)
    assert main(fit("--budget", "ledger")) == 2
    captured = capsys.readouterr()
    assert "No space left" in captured.err
    assert PrivateModel.from_json(captured.out).n == N
    assert spent() == (4, 1e-6)


def test_a_report_that_cannot_be_written_leaves_the_model(capsys, folder, monkeypatch):
    monkeypatch.setattr(fit_command, "render", lambda summary: 1 / 0)
    assert main(fit("--report", "page.html")) == 70
    assert PrivateModel.from_json((folder / "model.json").read_text()).n == N
    assert not (folder / "page.html").exists()


def test_ctrl_c_says_what_was_spent(capsys, folder, monkeypatch):
    Budget.open("ledger", epsilon=5, delta=0.1)

    def interrupt(*rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_command, "_deliver", interrupt)
    assert main(fit("--budget", "ledger")) == 130
    err = capsys.readouterr().err
    assert "interrupted: model.json is not written; of the budget epsilon = 4 " in err
    assert "are spent, before this run epsilon = 0" in err


WRONG = {
    "no JSON": lambda text: text[: len(text) // 2],
    "another format": lambda text: text.replace("hdp_fast.private_model", "hdp_fast.model"),
    "a later version": lambda text: text.replace('"version": 1', '"version": 2', 1),
    "a feature of another name": lambda text: text.replace('"name": "age"', '"name": "Age"'),
    "a weight that is no number": lambda text: text.replace('"constant": [', '"constant": [NaN, '),
    "a link that is none": lambda text: text.replace('"logistic"', '"probit"'),
    "a link of another label": lambda text: text.replace('"logistic"', '"target"'),
    "classes that have no weights": lambda text: text.replace(
        '"classes": null', '"classes": ["a", "b", "c"]'
    ),
    "no record": lambda text: text.replace('"record": {', '"other": {'),
    "a field more": lambda text: text.replace('"method"', '"more": 1, "method"'),
}


@pytest.mark.parametrize("how", WRONG)
def test_damaged_models_are_refused(capsys, folder, how):
    learn(capsys, *SEED)
    text = (folder / "model.json").read_text()
    damaged = WRONG[how](text)
    assert damaged != text
    (folder / "model.json").write_text(damaged)
    line = refused(capsys, "predict", "model.json", "third.csv")
    assert "model.json: " in line
    assert "unexpected" not in line


def test_wrong_files_are_refused_and_not_shown(capsys, folder):
    learn(capsys, *SEED)
    (folder / "narrow.csv").write_text("age\n40\n")
    (folder / "empty.csv").write_text("age,owner\n")
    (folder / "taken.csv").write_text("age,owner,bought,bought_predicted\n1,yes,0,0\n")
    (folder / "there.csv").write_text("")
    for argv, message in (
        (["private.csv", "third.csv"], "is no JSON, but it must be what hdp-fast fit, "),
        (["rule.json", "third.csv"], "must have format and version ['hdp_fast.private_model', 1]"),
        (["none.json", "third.csv"], "can't read none.json"),
        (["model.json", "narrow.csv"], "column = 'owner'"),
        (["model.json", "empty.csv"], "at least one row"),
        (["model.json", "taken.csv"], "rename one"),
        (["model.json", "model.json"], "must end in"),
        (["model.json", "third.csv", "--output", "out.npz"], "it must end in .csv, as FILE does"),
        (["model.json", "third.csv", "--output", "there.csv"], "--force replaces it"),
        (["model.json", "third.csv", "--output", "third.csv"], "--force replaces it"),
        (["model.json", "third.csv", "--output", "none/x.csv"], "existing directory"),
    ):
        assert message in refused(capsys, "predict", *argv)


def test_a_table_of_one_row_is_learned_from_and_predicted(capsys, folder):
    write_table(folder / "one.csv", 1, 4)
    for label, more in (("rule", []), ("number", ["descent", "evidence"])):
        for method in ("sgd", "statistics", "additive", *more):
            # Noise alone may look like a signal, once in some hundred runs.
            options = ["--force", "--method", method, *SEED]
            assert main(fit(*options, label=label, table="one.csv")) == 1
            assert main(["predict", "model.json", "one.csv", "--force"]) == 0


def test_additive_model_is_learned_reported_and_predicted(capsys, folder):
    for label in ("rule", "number"):
        options = ["--force", "--method", "additive", "--report", "page.html", *SEED]
        assert main(fit(*options, label=label)) == 0
        assert "shape for each column" in (folder / "page.html").read_text()
        model = PrivateModel.from_json((folder / "model.json").read_text())
        assert list(model.shapes()) == ["age", "owner"]
        assert main(["predict", "model.json", "third.csv", "--force"]) == 0


def test_numbers_that_are_not_finite_are_never_printed(capsys, folder):
    learn(capsys, *SEED)
    fields = json.loads((folder / "model.json").read_text())
    for feature in fields["features"]:
        feature["weights"] = [-1e30, 1e30]
        feature["factor"] = 1e30
    (folder / "model.json").write_text(json.dumps(fields))
    for row in predict("--probabilities"):
        assert math.isfinite(float(row["bought_probability"]))


# Predicting in blocks and in parts ---------------------------------------------------------------


def write_folder(folder, monkeypatch):
    """Parts of several formats, one of them without rows, and small blocks."""
    monkeypatch.setattr(copies, "BLOCK_ROWS", 7)
    monkeypatch.setattr("hdp_fast.data.delimited._PART_BYTES", 150)
    table = pd.read_csv(folder / "third.csv", dtype=str, keep_default_na=False)
    (folder / "parts" / "deep").mkdir(parents=True)
    table[:10].to_csv(folder / "parts" / "a.csv", index=False)
    table[10:20].to_parquet(folder / "parts" / "b.parquet", index=False)
    table[20:20].to_parquet(folder / "parts" / "c.parquet", index=False)
    table[20:30].reset_index(drop=True).astype("category").to_feather(
        folder / "parts" / "deep" / "a.feather"
    )
    table[30:].to_csv(folder / "parts" / "deep" / "d.csv.gz", index=False)
    return ["a.csv", "b.parquet", "c.parquet", "deep/a.feather", "deep/d.csv.gz"]


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_parts_are_predicted_as_one_file_is(capsys, folder, monkeypatch, workers):
    learn(capsys, *SEED)
    expected = predict("--probabilities")
    names = write_folder(folder, monkeypatch)
    argv = ["predict", "model.json", "parts", "--output", "out", "--probabilities", *workers]
    assert main(argv) == 0
    assert "predicted: 40 rows; out has bought, bought_probability" in capsys.readouterr().err
    rows = []
    for name in names:
        columns = read_table(f"out/{name}", public=True).columns if name != names[2] else {}
        texts = {key: np.array(column.texts)[column.codes] for key, column in columns.items()}
        rows += [dict(zip(texts, row, strict=True)) for row in zip(*texts.values(), strict=True)]
    assert len(rows) == 40
    for row, one in zip(rows, expected, strict=True):
        assert list(row) == list(one)
        assert row["bought"] == one["bought"]
        assert float(row["bought_probability"]) == float(one["bought_probability"])
    empty = pd.read_parquet("out/c.parquet")
    assert list(empty)[-2:] == ["bought", "bought_probability"]
    assert empty.empty


def test_blocks_change_no_byte_of_a_copy(capsys, folder, monkeypatch):
    learn(capsys, *SEED)
    text = (folder / "third.csv").read_text().replace("\n", "\r\n") + "\r\n\r\n"
    (folder / "lines.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert main(["predict", "model.json", "lines.csv"]) == 0
    whole = (folder / "lines.predicted.csv").read_bytes()
    write_folder(folder, monkeypatch)
    assert main(["predict", "model.json", "lines.csv", "--force"]) == 0
    assert (folder / "lines.predicted.csv").read_bytes() == whole
    assert whole.endswith(b"\r\n\r\n\r\n")


def test_parts_without_a_folder_of_their_own_are_refused(capsys, folder, monkeypatch):
    learn(capsys, *SEED)
    names = write_folder(folder, monkeypatch)
    pair = ["parts/a.csv", "parts/b.parquet"]
    (folder / "parts" / "x.npy").write_bytes(b"")
    for argv, message in (
        (["parts/deep"], "--output = None, but it must be a folder"),
        ([*pair, "--output", "-"], "it must be a folder"),
        ([*pair, "--output", "third.csv"], "it must be a folder"),
        ([*pair, "--output", "parts"], "it must not be a folder of FILEs"),
        ([*pair, "-", "--output", "out"], "the standard input must come alone"),
        (["parts", "--output", "out"], "must end in .csv"),
        (["parts/*.arrow", "--output", "out"], "it must hold files"),
    ):
        assert message in refused(capsys, "predict", "model.json", *argv)
    assert len(names) == 5


def test_a_part_that_cannot_be_predicted_leaves_no_half_of_a_file(capsys, folder, monkeypatch):
    learn(capsys, *SEED)
    write_folder(folder, monkeypatch)
    lines = (folder / "third.csv").read_text().splitlines()
    (folder / "parts" / "a.csv").write_text("\n".join([*lines[:30], "1,2"]) + "\n")
    assert main(["predict", "model.json", "parts", "--output", "out"]) == 2
    assert "a.csv" in capsys.readouterr().err
    assert [path.name for path in (folder / "out").iterdir() if path.is_file()] == []


def test_private_parts_are_never_replaced(capsys, folder):
    shutil.copy("private.csv", "second.csv")
    argv = fit("--force", table="private.csv")
    argv = [*argv[:2], "second.csv", *argv[2:]]
    argv[argv.index("model.json")] = "second.csv"
    before = (folder / "second.csv").read_bytes()
    assert "stands for another file of this command" in refused(capsys, *argv)
    assert (folder / "second.csv").read_bytes() == before


def test_a_folder_of_one_file_is_copied_to_a_new_folder(capsys, folder):
    learn(capsys, *SEED)
    (folder / "in").mkdir()
    shutil.copy("third.csv", folder / "in" / "x.csv")
    for number, source in enumerate(("in", "in/*.csv")):
        assert main(["predict", "model.json", source, "--output", f"out/{number}"]) == 0
        assert (folder / "out" / str(number) / "x.csv").read_text().count("\n") == 41


def test_two_files_are_never_copied_to_one_place(capsys, folder):
    learn(capsys, *SEED)
    (folder / "real" / "deep").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "real" / "deep")
    shutil.copy("third.csv", folder / "real" / "third.csv")
    argv = ["predict", "model.json", "link/../third.csv", "third.csv", "--output", "out"]
    assert main(argv) == 0
    assert {
        path.relative_to(folder / "out").as_posix() for path in (folder / "out").rglob("*.csv")
    } == {
        "third.csv",
        "real/third.csv",
    }
