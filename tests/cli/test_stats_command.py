"""hdp-fast stats: what it releases, what it charges, and what its report shows."""

import io
import json
from decimal import Decimal

import numpy as np
import pytest
from bad_input_files import csv, schema, table
from report_pages import Reader, check_marks, find, is_shown

from hdp_fast import Budget
from hdp_fast.cli import main
from hdp_fast.data import Schema
from hdp_fast.statistics.table_statistics import _divide

ROWS = table(2_000)
STATS = ["stats", "priv.csv", "--schema", "schema.json", "--quiet"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "priv.csv").write_text(csv(ROWS))
    (tmp_path / "schema.json").write_text(schema())
    return tmp_path


def run(*words, capsys, code=0):
    assert main([*STATS, *words]) == code
    return capsys.readouterr().out


def statistics_of(*words, capsys):
    return json.loads(run(*words, "--json", capsys=capsys))


def pick(summary, statistic, column=None, **keys):
    rows = summary["statistics"]
    wanted = {"statistic": statistic, **({"column": column} if column else {}), **keys}
    return [row for row in rows if wanted.items() <= row.items()]


def cells(name):
    place = ("age", "workclass", "hours", "gender", "income").index(name)
    return np.array([row[place] for row in ROWS])


def test_the_verdict_is_the_first_note_or_that_there_is_none(capsys, tmp_path):
    page = tmp_path / "page.html"
    for epsilon, begins in (("500", "Noise hides no kind"), ("0.001", "Noise hides some of it: ")):
        words = ["--epsilon", epsilon, "--json", "--report", str(page), "--force"]
        assert main([*STATS, *words]) in (0, 1)
        captured = capsys.readouterr()
        verdict = json.loads(captured.out)["verdict"]
        assert verdict.startswith(begins)
        assert verdict.endswith(".")
        text = page.read_text()
        assert text.index(begins) < text.index("<section>")
        if epsilon == "0.001":
            told = verdict.removeprefix(begins).partition(" (")[0].removesuffix(".")
            assert f"note: {told}" in captured.err


def test_without_a_flag_everything_usual_is_released(capsys):
    summary = statistics_of("--epsilon", "500", capsys=capsys)
    assert pick(summary, "count")[0]["value"] == 2_000
    (age,), (income,) = pick(summary, "mean", "age"), pick(summary, "mean", "income")
    assert abs(age["value"] - cells("age").astype(int).mean()) < 0.1
    assert age["low"] < age["value"] < age["high"]
    assert abs(income["value"] - (cells("income") == ">50K").mean()) < 0.01
    middle = pick(summary, "quantiles", "hours", item=0.5)[0]["value"]
    assert abs(middle - np.median(cells("hours").astype(int))) <= 1
    counts = {row["item"]: row["value"] for row in pick(summary, "histogram", "gender")}
    assert abs(counts["Male"] - (cells("gender") == "Male").sum()) < 10
    assert not pick(summary, "quantiles", "income")
    assert summary["private"] == {"file": "priv.csv", "rows": 2_000}
    text = run("--epsilon", "1", capsys=capsys)
    assert "histogram" in text
    assert "within" in text
    assert "spent       epsilon = 1, delta = 0" in text


def test_quantiles_are_printed_with_their_ranks_in_per_cent(capsys):
    asked = ["--quantiles", "age:.05,.9", "--seed", "1", "--epsilon", "1"]
    (low, high) = statistics_of(*asked, capsys=capsys)["statistics"]
    assert (low["item"], high["item"]) == (0.05, 0.9)
    text = run(*asked, capsys=capsys)
    error = f"rank within {low['rank_error'] / 20:.3g} %"  # of 2,000 rows
    lines = [line.split("  ") for line in text.splitlines() if line.startswith("quantiles")]
    assert [[part.strip() for part in line if part.strip()][-3] for line in lines] == [
        "5 %",
        "90 %",
    ]
    assert all(line[-1].strip() == error for line in lines)
    hidden = run(*asked, "--neighbors", "add_remove", capsys=capsys)
    assert "ranks" in hidden
    assert "rank within" not in hidden
    noisy = run("--quantiles", "age", "--seed", "1", "--epsilon", ".02", capsys=capsys)
    assert "may be any rank" in noisy
    assert "off by any rank, though as a rule by fewer" in noisy  # the verdict


def test_named_statistics_alone_are_released(capsys):
    words = ["--mean", "age", "hours", "--variance", "age", "--sum", "hours", "--count"]
    words += ["--quantiles", "age:.1,.9", "--histogram", "hours", "--top-k", "workclass:2"]
    summary = statistics_of(*words, "--epsilon", "500", capsys=capsys)
    names = {(row["statistic"], row.get("column")) for row in summary["statistics"]}
    assert names == {
        ("mean", "age"), ("mean", "hours"), ("variance", "age"), ("sum", "hours"),
        ("count", None), ("quantiles", "age"), ("histogram", "hours"), ("top_k", "workclass"),
    }  # fmt: skip
    assert [row["item"] for row in pick(summary, "quantiles")] == [0.1, 0.9]
    assert [row["item"] for row in pick(summary, "histogram")] == [
        "0 to 30", "30 to 50", "50 to 80",
    ]  # fmt: skip
    assert pick(summary, "top_k")[0]["value"] == "Private"
    shares = [record["epsilon"] for record in summary["records"]]
    assert sorted(shares)[-1] == pytest.approx(2 * 500 / 7)
    assert sum(map(Decimal, map(repr, shares))) <= 500


def test_groups_are_those_of_the_schema(capsys):
    words = ["--by", "gender", "--epsilon", "500", "--mean", "age", "--histogram", "workclass"]
    summary = statistics_of(*words, "--count", capsys=capsys)
    for group in ("Female", "Male"):
        rows = cells("gender") == group
        truth = cells("age")[rows].astype(int).mean()
        assert abs(pick(summary, "mean", "age", group=group)[0]["value"] - truth) < 0.5
        assert abs(pick(summary, "count", group=group)[0]["value"] - rows.sum()) < 10
        counts = [row["value"] for row in pick(summary, "histogram", group=group)]
        assert abs(sum(counts) - rows.sum()) < 30
    usual = statistics_of("--by", "gender", "--epsilon", "500", capsys=capsys)
    assert not pick(usual, "histogram", "gender")


def test_a_private_number_of_rows_is_released_and_not_shown(capsys):
    summary = statistics_of("--epsilon", "5", "--neighbors", "add_remove", capsys=capsys)
    assert summary["private"]["rows"] is None
    (count,) = pick(summary, "count")
    assert count["low"] < count["high"]
    assert {record["neighbors"] for record in summary["records"]} == {"add_remove"}


def test_the_ledger_is_charged_once_and_sets_the_relation(capsys, folder):
    budget = Budget.open("ledger", epsilon=1.0, delta=1e-6, neighbors="add_remove")
    words = ["--budget", "ledger", "--epsilon", "1", "--delta", "1e-6"]
    summary = statistics_of(*words, capsys=capsys)
    assert summary["settings"]["neighbors"] == "add_remove"
    spent = sum(record["epsilon"] for record in summary["records"])
    assert budget.spent.epsilon == pytest.approx(spent) == pytest.approx(1.0)
    assert budget.spent.epsilon <= 1.0
    again = [*words[:2], "--epsilon", ".1"]
    run(*again, capsys=capsys, code=3)
    assert budget.spent.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    "words",
    [["--mean", "agee"], ["--by", "age"], ["--report", "x.txt"], ["--confidence", "1"],
     ["--delta", "1"], ["--seed", "-1"], ["--output", "priv.csv"], ["--quantiles", "age:2"]],
    ids=" ".join,
)  # fmt: skip
def test_wrong_flags_spend_nothing(words, capsys):
    budget = Budget.open("ledger", epsilon=1.0)
    run("--epsilon", "1", "--budget", "ledger", *words, capsys=capsys, code=2)
    assert budget.spent.epsilon == 0


def test_what_no_noise_reaches_is_refused_before_the_ledger_is_charged(capsys):
    budget = Budget.open("ledger", epsilon=1.0)
    run("--epsilon", "1e-20", "--budget", "ledger", capsys=capsys, code=2)
    assert budget.spent.epsilon == 0


def test_the_standard_input_and_output(capsys, monkeypatch):
    content = io.TextIOWrapper(io.BytesIO(csv(ROWS).encode()))
    monkeypatch.setattr("sys.stdin", content)
    words = ["stats", "-", "--schema", "schema.json", "--epsilon", "1", "--quiet"]
    assert main([*words, "--mean", "age", "--output", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["statistics"]) == 1


def test_a_table_without_the_label_has_the_usual_statistics(capsys, folder):
    (folder / "priv.csv").write_text(
        csv([row[:-1] for row in ROWS], names=("age", "workclass", "hours", "gender"))
    )
    assert not pick(statistics_of("--epsilon", "1", capsys=capsys), "mean", "income")
    run("--epsilon", "1", "--mean", "income", capsys=capsys, code=2)


def test_a_label_between_bounds_is_a_number(capsys, folder):
    fields = json.loads(schema())
    fields["label"] = {"column": "hours", "bounds": [0, 80]}
    del fields["columns"]["hours"]
    (folder / "schema.json").write_text(json.dumps(fields))
    assert Schema.from_json((folder / "schema.json").read_text()).label.bounds == (0, 80)
    summary = statistics_of("--epsilon", "500", capsys=capsys)
    truth = cells("hours").astype(int).mean()
    assert abs(pick(summary, "mean", "hours")[0]["value"] - truth) < 0.1
    assert len(pick(summary, "quantiles", "hours")) == 3


def test_private_texts_show_nowhere(capsys, folder):
    odd = [["x", "secret", "1e999", "", "nan"], *ROWS[:200]]
    (folder / "priv.csv").write_text(csv(odd))
    assert main([*STATS, "--epsilon", "1"]) == 0
    captured = capsys.readouterr()
    assert "secret" not in captured.out + captured.err


def test_the_report_shows_the_json(capsys, folder):
    words = ["--by", "gender", "--report", "page.html", "--output", "out.json", "--seed", "1"]
    run("--epsilon", "2", *words, capsys=capsys)
    page = (folder / "page.html").read_text()
    reader, summary = Reader(page), json.loads((folder / "out.json").read_text())
    assert json.loads(reader.summary) == summary
    assert len(reader.marked) > 100
    for key, text in reader.marked:
        assert is_shown(find(summary, key), text), key
    assert {f"statistics.{place}.value" for place in range(len(summary["statistics"]))} <= {
        key for key, _ in reader.marked
    }
    assert "protects no one" in page


def test_hostile_names_stay_text_in_the_report(capsys, folder):
    hostile = "</script><script>alert(1)</script>"
    fields = json.loads(schema())
    fields["columns"][hostile] = fields["columns"].pop("workclass")
    fields["columns"]["gender"]["values"].append(hostile)
    (folder / "schema.json").write_text(json.dumps(fields))
    (folder / "priv.csv").write_text(csv(ROWS, names=("age", hostile, "hours", "gender", "income")))
    run("--epsilon", "2", "--report", "page.html", "--top-k", hostile, "--histogram", "gender",
        hostile, capsys=capsys)  # fmt: skip
    assert "<script>alert" not in (folder / "page.html").read_text()


@pytest.mark.parametrize("parts", [1, 3, 7, 11, 97])
@pytest.mark.parametrize("total", [1.0, 0.1, 1e-6, 0.30000000000000004, 12345.678, 1e300, 5e-324])
def test_shares_never_add_up_to_more(total, parts):
    share = _divide(total, parts)
    assert share * parts <= Decimal(repr(total))
    assert share * parts >= Decimal(repr(total)) * (1 - Decimal("1e-10"))


def test_missing_cells_count_as_the_schema_says(capsys, folder):
    columns = {
        "age": {"kind": "number", "bounds": [0, 100], "missing": 50},
        "home": {"kind": "category", "values": ["own", "rent"], "missing": "rent"},
    }
    form = {"format": "hdp_fast.schema", "version": 1, "label": {"column": "y", "above": 0}}
    (folder / "gaps.json").write_text(json.dumps(form | {"columns": columns}))
    (folder / "gaps.csv").write_text("age,home,y\n" + ",,1\n" * 2_000)
    command = ["stats", "gaps.csv", "--schema", "gaps.json", "--quiet", "--epsilon", "50", "--json"]
    for words in (["--mean", "age"], ["--histogram", "home"]):
        assert main([*command, *words]) == 0
        values = [row["value"] for row in json.loads(capsys.readouterr().out)["statistics"]]
        if "age" in words:
            assert abs(values[0] - 50) < 1
        else:
            assert values[0] < 100 < 1_900 < values[1]


def test_parts_release_what_one_file_does(capsys, tmp_path, monkeypatch):
    whole = statistics_of("--epsilon", "1", "--seed", "3", capsys=capsys)
    header, *lines = csv(ROWS).splitlines(keepends=True)
    folder = tmp_path / "parts"
    folder.mkdir()
    for place, start in enumerate((0, 1, 700)):
        end = (1, 700, None)[place]
        (folder / f"{place}.csv").write_text(header + "".join(lines[start:end]))
    files = sorted(map(str, folder.iterdir()))
    for words, name in (
        ([str(folder)], str(folder)),
        ([f"{folder}/*.csv"], f"{folder}/*.csv"),
        (files, f"{files[0]} and 2 more"),
        ([str(folder), "--workers", "2"], str(folder)),
    ):
        monkeypatch.setitem(globals(), "STATS", ["stats", *words, *STATS[2:]])
        parts = statistics_of("--epsilon", "1", "--seed", "3", capsys=capsys)
        assert parts["private"] == {"file": name, "rows": 2_000}
        assert parts["statistics"] == whole["statistics"]
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)


def test_parts_that_cannot_be_read_spend_nothing(capsys, tmp_path):
    Budget.open("ledger.budget", epsilon=1.0)
    words = ["--schema", "schema.json", "--epsilon", "1", "--budget", "ledger.budget"]
    for parts, error in (
        (["no_folder/*.csv"], "it must hold files of"),
        (["-", "priv.csv"], "the standard input must come alone"),
        (["priv.csv", "priv.csv"], "must count once"),
    ):
        assert main(["stats", *parts, *words]) == 2
        assert error in capsys.readouterr().err
    assert Budget.open("ledger.budget").spent == (0, 0)


def test_that_there_are_no_rows_does_not_show_where_their_number_is_private(capsys, folder):
    (folder / "priv.csv").write_text(csv([]))
    words = ["--epsilon", "1"]
    run(*words, capsys=capsys, code=2)
    assert run(*words, "--neighbors", "add_remove", capsys=capsys)


def test_workers_leave_the_standard_input_to_the_command(capsys, monkeypatch):
    content = io.TextIOWrapper(io.BytesIO(csv(ROWS).encode()))
    monkeypatch.setattr("sys.stdin", content)
    words = [
        "-",
        "--schema",
        "schema.json",
        "--quiet",
        "--epsilon",
        "1",
        "--workers",
        "2",
        "--json",
    ]
    assert main(["stats", *words]) == 0
    assert json.loads(capsys.readouterr().out)["private"]["rows"] == len(ROWS)


def test_distributions_tables_and_the_population_are_released_and_reported(capsys, tmp_path):
    page = tmp_path / "page.html"
    words = ["--distribution", "age:20", "--table", "gender,income", "income,hours", "--sampled"]
    words += ["--mean", "age", "--epsilon", "500", "--report", str(page), "--force"]
    summary = statistics_of(*words, capsys=capsys)
    ages, points = cells("age").astype(int), pick(summary, "distribution", "age")
    assert len(points) == 21
    for row in points:
        grid = points[1]["item"] - points[0]["item"]
        assert row["value"] == pytest.approx((ages <= row["item"] + grid / 2).mean(), abs=0.05)
    men = (cells("gender") == "Male") & (cells("income") == ">50K")
    table = {row["item"]: row for row in pick(summary, "tables", "gender, income")}
    assert abs(table["Male, 0.5 to 1"]["value"] - men.sum()) < 10
    assert len(pick(summary, "tables", "income, hours")) == 6
    assert len(summary["records"]) == 3
    # A column counts as one, and so does each of both tables, which are one release.
    assert max(record["epsilon"] for record in summary["records"]) == pytest.approx(250)
    for row in summary["statistics"]:
        assert row["population_low"] <= row["value"] <= row["population_high"]
    text = run(*words, capsys=capsys)
    assert "population from" in text
    assert sum(line.startswith("distribution") for line in text.splitlines()) == 11
    reader = Reader(page.read_text())
    summary = json.loads(reader.summary)
    assert check_marks(reader, summary) > 30
    for key, shown in reader.marked:
        assert is_shown(find(summary, key), shown), key
    assert "For the population" in page.read_text()
    assert "population_low" not in json.dumps(
        statistics_of("--mean", "age", "--distribution", "age", "--epsilon", "1", capsys=capsys)
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--distribution", "age:0"],
        ["--distribution", "age:16385"],
        ["--distribution", "gender"],
        ["--table", "age,wrong"],
        ["--table", "age,age"],
        ["--table", "gender,age", "age,gender"],
        ["--table", "age,hours,gender,workclass"],
        ["--table", "age", "--by", "gender"],
        ["--sum", "age", "--sampled", "--neighbors", "add_remove"],
        ["--quantiles", "age", "--sampled", "--by", "gender"],
        ["--sum", "age", "--ids", "hours"],
        ["--sum", "age", "--ids", "who"],
        ["--sum", "age", "--rows-per-person", "2"],
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(words, capsys):
    relation = "add_remove" if "add_remove" in words else "replace_one"
    Budget.open("ledger", epsilon=5.0, neighbors=relation)
    run(*words, "--epsilon", "1", "--budget", "ledger", capsys=capsys, code=2)
    assert Budget.open("ledger").spent.epsilon == 0


@pytest.mark.parametrize("relation", ["replace_person", "replace_one", "add_remove_person"])
def test_ids_protect_people_wherever_their_rows_lie(relation, folder, capsys):
    header, *lines = csv(ROWS).splitlines()
    rows = [f"{line},{number % 700}" for number, line in enumerate(lines)]
    (folder / "parts").mkdir()
    files = {"priv.csv": rows, "parts/1.csv": rows[:900], "parts/2.csv": rows[900:]}
    for name, part in files.items():
        (folder / name).write_text("\n".join([f"{header},who", *part, ""]))
    budget = Budget.open("ledger", epsilon=5.0, neighbors=relation)
    words = ["--epsilon", "2", "--ids", "who", "--rows-per-person", "2", "--seed", "1"]
    words += ["--mean", "age", "--table", "gender,hours"]
    words += ["--budget", "ledger", "--report", "r.html"]
    one = statistics_of(*words, capsys=capsys)
    assert main(["stats", "parts", *STATS[2:], *words, "--json", "--force"]) == 0
    assert json.loads(capsys.readouterr().out)["statistics"] == one["statistics"]
    about = "add_remove_person" if relation == "add_remove_person" else "replace_person"
    assert {record["neighbors"] for record in one["records"]} == {about}
    assert one["settings"]["neighbors"] == about
    assert budget.spent.epsilon == pytest.approx(4)
    public = about == "replace_person"
    assert one["private"]["rows"] == (1_400 if public else None)
    page = (folder / "r.html").read_text()
    assert "All rows with one value of" in page
    assert "Each row is protected" not in page
    (mean,) = pick(one, "mean", "age")
    assert abs(mean["value"] - cells("age").astype(int).mean()) < 5
