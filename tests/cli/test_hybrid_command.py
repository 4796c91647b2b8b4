"""hdp-fast hybrid: screen, learn, calibrate and certify, from two tables."""

import csv
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from command_line import fails
from hybrid_tables import SCHEMA, write_tables

from hdp_fast import Budget
from hdp_fast.accounting import gaussian_mu
from hdp_fast.cli import main
from hdp_fast.data import Schema, read_table
from hdp_fast.learners import PrivateModel
from hdp_fast.transfer import HybridRun, hybrid_model

FILES = ["panel.csv", "town.csv", "--schema", "schema.json"]
PRIVACY = ["--epsilon", "1", "--delta", "1e-6", "--agents-epsilon", "2"]
COMMON = ["hybrid", *FILES, *PRIVACY, "--features", "numbers"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The tables, and one run with everything that can be asked for."""
    folder = tmp_path_factory.mktemp("hybrid")
    truth = write_tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Budget.open("ledger", epsilon=2.0, delta=1e-5)
        files = ["--output", "model.json", "--report", "page.html", "--budget", "ledger"]
        assert main([*COMMON, "--predict", "later.csv", *files]) == 0
    return folder, truth, json.loads((folder / "model.json").read_text())


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made[0])
    return made[0]


def run(capsys, *argv):
    assert main([*COMMON, *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_run_finds_what_was_made_up(made):
    _, _, result = made
    assert result["left_out"] == ["channel=app", "channel=phone", "channel=shop"]
    assert result["left_out"] == result["shift"]["droppable"]
    assert {"channel=app", "home=own", "age"} <= set(result["shift"]["moved"])
    assert set(result["coefficients"]) == {"age", "home=own", "home=rent", "visits"}
    assert result["calibration"]["outcome"] == "calibrated"
    assert -3 < result["calibration"]["intercept"] < -0.5
    before, after = (result["certificates"][name] for name in ("before", "after"))
    assert after["high"] < before["low"]
    assert after["measured"] == "error"
    assert result["agents"] == {"screen": 18_000, "calibrate": 24_000, "certify": 18_000}


def test_the_calibrated_coefficients_are_the_model(made):
    _, _, result = made
    slope, intercept = (result["calibration"][name] for name in ("slope", "intercept"))
    panel = result["panel_model"]
    assert result["intercept"] == pytest.approx(slope * panel["intercept"] + intercept)
    assert result["coefficients"] == pytest.approx(
        {name: slope * value for name, value in panel["coefficients"].items()}
    )
    # Units and slope are those of the coefficients, and drop out.
    for one in result["model"]["features"]:
        (no, yes), [noise], name = one["weights"], one["deviations"], one["name"]
        share = result["deviations"][name] / abs(result["coefficients"][name])
        assert share == pytest.approx(noise / abs(yes - no))


def log_odds(model, floats, homes):
    """What intercept and coefficients say of rows, in the units of the table."""
    slopes = model["coefficients"]
    numbers = sum(slopes[name] * np.array(values) for name, values in floats.items())
    return model["intercept"] + np.array([slopes[home] for home in homes]) + numbers


def test_predictions_are_calibrated_probabilities(made):
    folder, truth, result = made
    rows = list(csv.DictReader((folder / "later.predicted.csv").read_text().splitlines()))
    shares = np.array([float(row["bought_probability"]) for row in rows])
    assert result["column"] == "bought_probability"
    assert abs(shares.mean() - truth.mean()) < 0.06
    error = ((shares >= 0.5) != truth).mean()
    assert (
        result["certificates"]["after"]["low"] <= error <= result["certificates"]["after"]["high"]
    )
    table = read_table(folder / "later.csv")
    floats = {name: [float(row[name]) for row in rows] for name in ("age", "visits")}
    homes = [f"home={row['home']}" for row in rows]
    calibration = result["calibration"]
    panel = log_odds(result["panel_model"], floats, homes)
    odds = panel + np.interp(panel, calibration["knots"], calibration["shifts"])
    line = log_odds(result, floats, homes)
    inside = (calibration["knots"][0] < panel) & (panel < calibration["knots"][-1])
    assert odds[inside] == pytest.approx(line[inside], abs=1e-6)
    assert table.rows == len(rows)
    assert shares == pytest.approx(1 / (1 + np.exp(-odds)), abs=2e-6)


def test_the_ledger_is_charged_once_with_the_record_of_the_panel(made):
    folder, _, result = made
    spent = Budget.open(folder / "ledger").spent
    assert (spent.epsilon, spent.delta) == (1.0, 1e-6)
    panel, answers = result["records"]
    assert (panel["neighbors"], panel["epsilon"], panel["delta"]) == ("replace_one", 1.0, 1e-6)
    assert (panel["law"], panel["mu"]) == ("gaussian", gaussian_mu(1.0, 1e-6))
    means = result["shift"]["record"]
    assert means["mu"] == pytest.approx(panel["mu"] * math.sqrt(0.1))
    assert (answers["neighbors"], answers["epsilon"]) == ("local", 2.0)
    assert result["budget"] == {"epsilon": 1.0, "delta": 1e-6}


def test_what_people_read(folder, capsys):
    assert main([*COMMON, "--quiet"]) == 0
    out = capsys.readouterr().out
    for words in ("left_out", "slope", "error_before", "columns: channel=app 1.00 -> 0.",
                  "base_rate", "transfer.HybridRun, ", "  +- ", "what noise makes"):  # fmt: skip
        assert words in out


def test_terminal_json_and_page_say_the_same(folder, capsys):
    """One verdict and one share of label 1, by all who were asked for their label alone."""
    assert main([*COMMON, "--output", "one.json", "--report", "one.html", "--quiet"]) == 0
    captured, result = capsys.readouterr(), json.loads(Path("one.json").read_text())
    words = [line.partition(" ") for line in captured.out.splitlines()]
    lines = {name: text.strip() for name, _, text in words}
    page, rate = Path("one.html").read_text(), result["base_rate"]
    assert lines["verdict"] == result["verdict"]
    assert result["verdict"].endswith(".")
    assert page.index(result["verdict"]) < page.index("<section>")
    shown = f"label 1 has a share of {rate['value']:.3f}, from {rate['low']:.3f} to"
    assert lines["base_rate"].startswith(shown)
    assert page.count('data-key="base_rate.value"') == 1
    assert "constants" not in "".join(
        key for key in page.split('data-key="')[1:] if key.startswith("certificates")
    )
    certificates = result["certificates"].values()
    assert {one["constants"]["zero"] for one in certificates} == {rate["value"]}
    assert rate["low"] < rate["value"] < rate["high"]
    # A fifth of those who certify is asked for the label, in one certificate or in two.
    certify = sum(result["agents"]["certify"] // len(certificates) // 5 for _ in certificates)
    assert rate["answers"] == result["calibration"]["labels"][0] + certify


def test_a_verdict_of_few_people_is_the_note_and_draws_no_empty_diagram(folder, capsys):
    town = (folder / "town.csv").read_text().splitlines()
    Path("few.csv").write_text("\n".join(town[:801]))
    command = [*COMMON, "--output", "few.json", "--report", "few.html"]
    command[command.index("town.csv")] = "few.csv"
    main(command)
    error, result = capsys.readouterr().err, json.loads(Path("few.json").read_text())
    page = Path("few.html").read_text()
    doubt = result["verdict"].removeprefix("The model is not shown to be better than a constant: ")
    assert doubt != result["verdict"]
    assert f"note: {doubt.removesuffix('.')}" in error
    assert error.count("show an error of at most") == 1
    assert result["reliability"]["tells"] is False
    assert "Reliability diagram" not in page
    assert "people would have intervals within" in page
    people = result["reliability"]["people"]
    assert people > 800
    assert len(str(people).rstrip("0")) <= 2
    assert page.count('data-key="reliability.people"') == 1


def test_many_records_get_a_bit_for_each_cut(folder, capsys):
    assert main([*COMMON[:-2], "--json", "--predict", "later.csv", "--predictions", "b.csv"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["settings"]["features"] == "bits"
    assert result["left_out"] == ["channel=app", "channel=phone", "channel=shop"]
    coef = result["coefficients"]
    assert set(coef) == {f"age>={cut}" for cut in (36, 54, 72)} | {
        *(f"visits>={cut}" for cut in ("7.5", "15", "22.5")), "home=own", "home=rent",
    }  # fmt: skip
    row = next(csv.DictReader(Path("b.csv").read_text().splitlines()))
    odds = result["intercept"] + coef[f"home={row['home']}"]
    odds += sum(coef[f"age>={cut}"] for cut in (36, 54, 72) if int(row["age"]) >= cut)
    odds += sum(coef[f"visits>={c:g}"] for c in (7.5, 15, 22.5) if int(row["visits"]) >= c)
    assert float(row["bought_probability"]) == pytest.approx(1 / (1 + np.exp(-odds)), abs=2e-6)


def test_nobody_is_screened_if_nobody_should(folder, capsys):
    result = run(capsys, "--screen", "0", "--certify", ".5")
    assert result["shift"] is None
    assert result["left_out"] == []
    assert len(result["coefficients"]) == 7
    assert len(result["records"]) == 2
    assert result["agents"] == {"screen": 0, "calibrate": 30_000, "certify": 30_000}


def test_a_seed_repeats_the_run(folder, capsys):
    first, second = (run(capsys, "--seed", "3") for _ in range(2))
    assert first == second
    assert all("test stream" in record["rng"] for record in first["records"])


def test_a_panel_in_parts_has_the_run_of_one_file(folder, tmp_path, capsys):
    whole = run(capsys, "--seed", "3")
    head, *rows = Path("panel.csv").read_text().splitlines()
    parts = [tmp_path / f"{place}.csv" for place in range(3)]
    for part, some in zip(parts, (rows[:1], rows[1:9_000], rows[9_000:]), strict=True):
        part.write_text("\n".join([head, *some]) + "\n")
    others = [word for word in COMMON[1:] if word != "panel.csv"]
    for panel, more in (
        (parts, []),
        ([tmp_path], []),
        ([tmp_path / "*.csv"], ["--workers", "2"]),
        (["panel.csv"], ["--workers", "1"]),
    ):
        words = ["hybrid", *map(str, panel), *others, *more, "--seed", "3", "--json"]
        assert main(words) == 0
        result = json.loads(capsys.readouterr().out)
        assert result.pop("panel")["rows"] == 20_000
        assert result == {name: value for name, value in whole.items() if name != "panel"}


def test_a_survey_that_is_a_part_of_the_panel_is_said(folder, tmp_path, capsys):
    for name in ("panel.csv", "town.csv"):
        (tmp_path / name).write_text(Path(name).read_text())
    for panel in (["panel.csv", "town.csv"], [str(tmp_path)]):
        survey = "town.csv" if len(panel) == 2 else str(tmp_path / "town.csv")
        others = [*FILES[2:], *PRIVACY, "--features", "numbers"]
        assert main(["hybrid", *panel, survey, *others, "--quiet"]) == 0
        assert "is the panel and plays the people asked" in capsys.readouterr().err


def test_no_part_of_the_panel_is_replaced(folder, tmp_path, capsys):
    panel = tmp_path / "panel.json"
    panel.write_text(Path("panel.csv").read_text())
    others = [*FILES[1:], *PRIVACY, "--output", str(panel), "--force"]
    for parts in ([panel, "panel.csv"], [tmp_path], [tmp_path / "*.json"]):
        line = fails(capsys, "hybrid", *map(str, parts), *others)
        assert "stands for another file of this command" in line
    assert panel.read_text() == Path("panel.csv").read_text()


def test_a_model_that_is_not_changed_is_certified_once(folder, capsys, monkeypatch):
    calibrate = hybrid_model.calibrate

    def refuse(*arguments, **options):
        result = calibrate(*arguments, **options)
        return dataclasses.replace(result, outcome="no evidence", slope=1.0, intercept=0.0)

    monkeypatch.setattr(hybrid_model, "calibrate", refuse)
    result = run(capsys, "--report", "same.html")
    assert list(result["certificates"]) == ["before"]
    assert result["certificates"]["before"]["asked"] == 14_400
    assert result["coefficients"] == result["panel_model"]["coefficients"]
    assert "no evidence" in Path("same.html").read_text()


def test_every_feature_left_out_leaves_the_model_whole(tmp_path, monkeypatch, capsys):
    (tmp_path / "panel.csv").write_text("home,bought\n" + "own,yes\nown,no\n" * 10_000)
    (tmp_path / "town.csv").write_text("home,bought\n" + "rent,yes\nrent,no\n" * 9_000)
    columns = {"home": {"kind": "category", "values": ["own", "rent"]}}
    (tmp_path / "schema.json").write_text(json.dumps({**SCHEMA, "columns": columns}))
    monkeypatch.chdir(tmp_path)
    # Labels are pure chance: a constant is as good, and a pipeline ends.
    assert main([*COMMON, "--seed", "1", "--json"]) == 1
    captured = capsys.readouterr()
    assert "predict a constant" in captured.err
    result = json.loads(captured.out)
    assert result["shift"]["droppable"] == ["home=own", "home=rent"]
    assert result["left_out"] == []
    assert set(result["coefficients"]) == {"home=own", "home=rent"}


def test_the_command_is_what_the_library_runs(folder, capsys):
    """With one seed both release the same numbers."""
    result = run(capsys, "--seed", "5")
    schema = Schema.from_json(json.dumps(SCHEMA))
    panel, town = read_table("panel.csv"), read_table("town.csv")
    library = HybridRun(schema, epsilon=1.0, delta=1e-6, features="numbers")
    agents = library.simulate(town, n=panel.rows, epsilon=2.0)
    model = library.run(panel, agents, random_state=5)
    assert json.loads(model.calibrated.to_json()) == result["calibration"]
    assert json.loads(model.model.to_json()) == result["model"]
    assert model.predictor.coefficients == result["coefficients"]


@pytest.mark.parametrize(
    "flags", [["--features", "bits"], ["--features", "numbers"], ["--method", "additive"]]
)
def test_predict_takes_what_hybrid_wrote(folder, tmp_path, capsys, flags):
    later = ["--predict", "later.csv", "--predictions", str(tmp_path / "a.csv")]
    model = str(tmp_path / "model.json")
    argv = ["hybrid", *FILES, *PRIVACY, *flags, *later, "--output", model]
    assert main(argv) == 0
    again = ["--output", str(tmp_path / "b.csv"), "--probabilities"]
    assert main(["predict", model, "later.csv", *again]) == 0
    first, second = (
        list(csv.DictReader((tmp_path / name).read_text().splitlines()))
        for name in ("a.csv", "b.csv")
    )
    assert [row["bought_probability"] for row in first] == [
        row["bought_probability"] for row in second
    ]
    text = Path(model).read_text()
    released = PrivateModel.from_json(text)
    assert released.agents_record.epsilon == 2.0
    assert (
        json.loads(PrivateModel.from_json(released.to_json()).to_json())
        == json.loads(text)["model"]
    )
    assert {row["bought"] for row in second} == {"0", "1"}


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"--epsilon": "0"}, 2, "--epsilon = 0"),
        ({"--epsilon": "inf"}, 2, "--epsilon = inf"),
        ({"--delta": "1"}, 2, "--delta = 1"),
        ({"--agents-epsilon": "-1"}, 2, "--agents-epsilon = -1"),
        ({"--agents-epsilon": "1e-30"}, 2, "nothing but noise"),
        ({"--beta": "1"}, 2, "--beta = 1"),
        ({"--screen": "1"}, 2, "--screen = 1"),
        ({"--screen": "-.1"}, 2, "--screen = -0.1"),
        ({"--certify": "0"}, 2, "--certify = 0"),
        ({"--certify": ".7"}, 2, "together they must be below 1"),
        ({"--seed": "-1"}, 2, "random_state"),
        ({"--report": "page.txt"}, 2, "--report = 'page.txt', but it must end in .html"),
        ({"--report": "there/page.html"}, 2, "existing directory"),
        ({"--report": "a.html", "--output": "a.html"}, 2, "stands for another file"),
        ({"--predictions": "p.csv"}, 2, "--predictions must go with --predict"),
        ({"--predict": "lacking.csv"}, 2, "column = 'visits'"),
        ({"--predict": "nowhere.csv"}, 2, "No such file"),
        ({"--schema": "numbers.json"}, 2, "label = 'bought'"),
        ({"--schema": "nowhere.json"}, 2, "No such file"),
        ({"--budget": "small"}, 3, "epsilon"),
        ({"--budget": "nowhere"}, 2, "budget"),
        ({"panel": "nowhere.csv"}, 2, "No such file"),
        ({"panel": "lacking.csv"}, 2, "column = "),
        ({"panel": "lacking*.csv", "--screen": "0"}, 2, "column = 'bought'"),
        ({"panel": "nothing*.csv"}, 2, "source"),
        (
            {"survey": "few.csv", "--screen": ".3"},
            3,
            "SURVEY has 30 people, 12 to calibrate and 9 to certify",
        ),
        ({"--screen": "1e-5"}, 3, "--screen asks 0 of 60,000 people"),
        ({"survey": "later.csv"}, 2, "column = 'bought'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(folder, capsys, changes, code, words):
    if not Path("small").exists():
        Budget.open("small", epsilon=0.5, delta=1e-5)
        numbers = {**SCHEMA, "label": {"column": "bought", "bounds": [0, 1]}}
        Path("numbers.json").write_text(json.dumps(numbers))
        town = Path("town.csv").read_text().splitlines()
        Path("few.csv").write_text("\n".join(town[:31]) + "\n")
        Path("lacking.csv").write_text("age,home,channel\n30,own,app\n")
    given = {"panel": "panel.csv", "survey": "town.csv", "--schema": "schema.json"}
    given |= dict(zip(PRIVACY[::2], PRIVACY[1::2], strict=True))
    given |= {"--budget": "ledger", **changes}
    panel, survey = given.pop("panel"), given.pop("survey")
    before = Budget.open("ledger").spent
    line = fails(capsys, "hybrid", panel, survey, *sum(given.items(), ()), code=code)
    assert words in line
    assert Budget.open("ledger").spent == before


def test_one_file_for_both_sides_is_protected_by_the_sum(folder, capsys):
    files = ["panel.csv", "panel.csv", "--schema", "schema.json"]
    assert main(["hybrid", *files, *PRIVACY, "--features", "numbers"]) == 0
    err = capsys.readouterr().err
    assert "protected: panel.csv, epsilon = 3, delta = 1e-06\n" in err
    assert "note: panel.csv is the panel and plays the people asked" in err


def test_private_values_cause_no_error(tmp_path, monkeypatch, capsys):
    write_tables(tmp_path, panel=19_998, town=900, later=10)
    for name in ("panel", "town"):
        text = (tmp_path / f"{name}.csv").read_text()
        (tmp_path / f"{name}.csv").write_text(text + "nan,,,1e999,\n,boat,?,-inf,maybe\n")
    monkeypatch.chdir(tmp_path)
    assert run(capsys)["panel"]["rows"] == 20_000


def test_what_was_spent_is_said_when_a_run_is_interrupted(folder, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(hybrid_model, "ask_certificate", interrupt)
    Budget.open("other", epsilon=2.0, delta=1e-5)
    assert main([*COMMON, "--budget", "other", "--report", "late.html"]) == 130
    error = capsys.readouterr().err
    assert "late.html is not written" in error
    assert "epsilon = 1 and delta = 1e-06 are spent" in error
    assert not Path("late.html").exists()


def test_a_report_that_cannot_be_written_loses_nothing(folder, capsys, monkeypatch):
    from hdp_fast.cli import hybrid_command

    monkeypatch.setattr(hybrid_command, "render", lambda summary: 1 / 0)
    assert main([*COMMON, "--report", "lost.html", "--json"]) == 70
    assert json.loads(capsys.readouterr().out)["certificates"]
