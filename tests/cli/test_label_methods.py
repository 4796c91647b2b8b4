"""hdp-fast label --method: which way is taken, and the one without members."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import fails

from hdp_fast import Budget
from hdp_fast.cli import main

GOAL = ["--schema", "schema.json", "--epsilon", "2", "--delta", "1e-6"]
VOTES = ["--estimator", "naive-bayes", "--members", "20", "--epsilon", "20"]


def write_tables(folder, shift=0.0):
    for name, n, low in (("private", 4_000, 0.0), ("public", 400, shift)):
        rng = np.random.default_rng(n)
        size, color = rng.uniform(low, 100, n), rng.choice(["red", "blue"], n)
        lines = ["size,color" + ",buys" * (name == "private")]
        for x, tint in zip(size, color, strict=True):
            text = ",yes" if x > 50 else ",no"
            lines.append(f"{x:.4f},{tint}" + text * (name == "private"))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    columns = {
        "size": {"kind": "number", "bounds": [0, 100]},
        "color": {"kind": "category", "values": ["red", "blue"]},
    }
    label = {"column": "buys", "positive": ["yes"]}
    schema = {"format": "hdp_fast.schema", "version": 1, "label": label, "columns": columns}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return tmp_path


def run(capsys, *argv):
    code = main(["label", "private.csv", "public.csv", *GOAL, "--json", *argv])
    assert code == 0
    return json.loads(capsys.readouterr().out)


def share_right(path="public.labeled.csv"):
    rows = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    return np.mean([(float(row[0]) > 50) == (row[-1] == "yes") for row in rows])


def test_private_rows_may_come_from_the_standard_input(capsys, monkeypatch, folder):
    content = (folder / "private.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["label", "-", "public.csv", *GOAL]) == 0
    assert share_right() > 0.9


@pytest.mark.parametrize("argv", [[], ["--method", "auto"], ["--method", "statistics"]])
def test_statistics_label_all_rows(capsys, folder, argv):
    result = run(capsys, *argv)
    assert result["method"] == result["learned_by"] == "statistics"
    assert (result["rows"], result["answered"], result["unanswered"]) == (400, 400, 0)
    assert share_right() > 0.9
    record = result["record"]
    assert (record["epsilon"], record["delta"], record["neighbors"]) == (2, 1e-6, "replace_one")
    tested = argv != ["--method", "statistics"]
    assert (result["population_distance"] is not None) == tested
    assert ("about linear" in result["reason"]) == tested
    assert json.loads((folder / "public.labeled.csv.json").read_text()) == result


def test_a_named_estimator_still_means_votes(capsys, folder):
    result = run(capsys, *VOTES)
    assert result["members"] == 20
    assert "method" not in result


def test_the_plan_shows_which_method_and_why_and_spends_nothing(capsys, folder):
    main(["budget", "ledger", "--epsilon", "2", "--delta", "1e-6"])
    capsys.readouterr()
    result = run(capsys, "--plan", "--budget", "ledger")
    assert result["method"] == "statistics"
    assert "about linear" in result["reason"]
    assert result["signal"] > 1
    assert not (folder / "public.labeled.csv").exists()
    run(capsys, "--budget", "ledger")
    line = fails(
        capsys, "label", "private.csv", "public.csv", *GOAL, "--budget", "ledger", "--force", code=3
    )
    assert "ledger" in line or "epsilon" in line


@pytest.mark.parametrize("epsilon", ["0.01", "1e-5"])
def test_auto_takes_statistics_where_no_table_of_votes_keeps_epsilon(capsys, folder, epsilon):
    plan = run(capsys, "--epsilon", epsilon, "--delta", "1e-7", "--plan")
    assert plan["method"] == "statistics"
    result = run(capsys, "--epsilon", epsilon, "--delta", "1e-7")
    assert result["method"] == "statistics"
    assert result["record"]["epsilon"] == float(epsilon)
    argv = ["--estimator", "naive-bayes", "--epsilon", epsilon, "--delta", "1e-7", "--plan"]
    assert "epsilon" in fails(capsys, "label", "private.csv", "public.csv", *GOAL, *argv)


def test_auto_refuses_options_of_votes_whatever_epsilon(capsys, folder):
    for epsilon in ("1e-5", "1"):
        argv = ["--method", "auto", "--beta", "2", "--epsilon", epsilon, "--plan"]
        assert "beta = 2" in fails(capsys, "label", "private.csv", "public.csv", *GOAL, *argv)


def test_auto_holds_votes_by_as_many_members_as_few_records_bear(capsys, folder):
    pytest.importorskip("sklearn")
    for name, most in (("public", 5), ("private", 61)):
        lines = (folder / f"{name}.csv").read_text().splitlines()
        (folder / f"{name}.csv").write_text("\n".join(lines[:most]) + "\n")
    plan = run(capsys, "--plan")
    assert plan["method"] == "votes"
    assert plan["members"] > 60 >= plan["members_in_use"]
    assert run(capsys)["members"] == plan["members_in_use"]
    # Who names votes gets as many members as they need, or is told that there are too few records.
    argv = ["--estimator", "naive-bayes", "--force"]
    line = fails(capsys, "label", "private.csv", "public.csv", *GOAL, *argv, code=3)
    assert "members need one each" in line


def test_auto_takes_votes_where_columns_are_constant(capsys, folder):
    lines = (folder / "public.csv").read_text().splitlines()
    (folder / "public.csv").write_text("\n".join([lines[0], *[lines[1]] * 400]) + "\n")
    plan = run(capsys, "--epsilon", "20", "--plan")
    assert plan["method"] == "votes"
    assert "constant" in plan["reason"]


def test_auto_takes_votes_where_the_pool_is_small_and_says_why(capsys, folder):
    lines = (folder / "public.csv").read_text().splitlines()
    (folder / "public.csv").write_text("\n".join(lines[:5]) + "\n")
    argv = ["--method", "auto", "--members", "20", "--epsilon", "20"]
    plan = run(capsys, *argv, "--plan")
    assert (plan["method"], plan["members_in_use"]) == ("votes", 20)
    assert "too few" in plan["reason"]
    pytest.importorskip("sklearn")
    result = run(capsys, *argv)
    assert result["method"] == "votes"
    assert result["members"] == 20


def test_a_pool_of_another_population_is_noticed(capsys, folder):
    write_tables(folder, shift=80.0)
    result = run(capsys, "--epsilon", "4")
    assert (result["method"], result["learned_by"]) == ("statistics", "gradients")
    assert result["population_distance"] > result["population_most"]


def test_a_kept_model_goes_on_at_no_cost(capsys, folder):
    main(["budget", "ledger", "--epsilon", "2", "--delta", "1e-6"])
    capsys.readouterr()
    argv = ["--save", "kept.npz", "--budget", "ledger"]
    first = run(capsys, *argv)
    again = run(capsys, *argv, "--force")
    assert again["shares"] == first["shares"]
    assert again["record"] == first["record"]
    line = fails(
        capsys,
        "label",
        "private.csv",
        "public.csv",
        *GOAL,
        "--epsilon",
        "1",
        "--save",
        "kept.npz",
        "--force",
    )
    assert "was made for 2.0" in line


def test_a_file_of_members_is_no_kept_model_and_nothing_is_spent(capsys, folder):
    main(["budget", "ledger", "--epsilon", "2", "--delta", "1e-6"])
    capsys.readouterr()
    (folder / "kept").write_bytes(b"hdp_fast labeler 3\nmembers")
    argv = ["--method", "statistics", "--save", "kept", "--budget", "ledger"]
    line = fails(capsys, "label", "private.csv", "public.csv", *GOAL, *argv)
    assert "must be a whole file that StatisticsLabeler.save wrote" in line
    assert Budget.open("ledger").spent.epsilon == 0
    assert not (folder / "public.labeled.csv").exists()


def test_the_threshold_leaves_labels_empty(capsys, folder):
    result = run(capsys, "--method", "statistics", "--threshold", "0.9")
    assert 0 < result["bottoms"] < 400
    assert result["answered"] + result["bottoms"] == 400


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--method", "best"], "invalid choice"),
        (["--method", "votes"], "--estimator must be given"),
        (["--method", "statistics", "--members", "20"], "--members = 20, but"),
        (["--method", "statistics", "--estimator", "tree"], "--estimator = 'tree', but"),
        (["--method", "statistics", "--ids", "size"], "has no members"),
        (["--method", "statistics", "--suggest"], "--suggest tries members"),
        (["--method", "statistics", "--threshold", "1"], "threshold"),
        (["--method", "auto", "--ids", "size"], "only --method votes"),
        (["--method", "auto", "--suggest"], "only --method votes"),
        (["--method", "auto", "--threshold", "0.5"], "name the --method"),
    ],
)
def test_bad_combinations_are_refused_and_write_nothing(capsys, folder, argv, text):
    before = sorted(path.name for path in folder.iterdir())
    line = fails(capsys, "label", "private.csv", "public.csv", *GOAL, *argv)
    assert text in line
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.fixture
def parts(folder):
    """The rows of private.csv in three files, of which the last is a folder's."""
    head, *lines = (folder / "private.csv").read_text().splitlines()
    (folder / "more").mkdir()
    for name, some in zip(("one", "two", "more/three"), np.array_split(lines, 3), strict=True):
        (folder / f"{name}.csv").write_text("\n".join([head, *some]) + "\n")
    return ["one.csv", "two.csv", "more"]


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
@pytest.mark.parametrize("argv", [["--method", "auto"], ["--method", "statistics"]])
def test_statistics_of_parts_give_the_labels_of_one_file(capsys, folder, parts, argv, workers):
    if workers:
        pytest.importorskip("joblib")
    whole = run(capsys, *argv, "--seed", "1", "--output", "whole.csv")
    code = main(["label", *parts, "public.csv", *GOAL, "--json", *argv, *workers, "--seed", "1"])
    ours = json.loads(capsys.readouterr().out)
    assert code == 0
    assert ours | {"output": "whole.csv"} == whole
    assert (folder / "public.labeled.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_votes_of_members_of_parts(capsys, folder, parts):
    argv = ["--seed", "1", "--save", "kept", "--budget", "ledger"]
    assert main(["budget", "ledger", "--epsilon", "30", "--delta", ".1"]) == 0
    capsys.readouterr()
    words = ["label", *parts, "public.csv", *GOAL, *VOTES, "--json", *argv]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["members"] == 20
    assert result["record"]["neighbors"] == "replace_one"
    assert share_right() > 0.9
    assert Budget.open("ledger").spent.epsilon == 20
    assert main([*words, "--output", "again.csv"]) == 3  # all queries are used up
    assert "answered 400 of 400" in capsys.readouterr().err


def test_what_needs_one_file_refuses_parts(capsys, folder, parts):
    line = fails(capsys, "label", *parts, "public.csv", *GOAL, *VOTES, "--ids", "size")
    assert "--ids" in line
    assert "join them first" in line
    line = fails(capsys, "label", "-", "one.csv", "public.csv", *GOAL)
    assert "the standard input must come alone" in line
    line = fails(capsys, "label", "one.csv", "none.csv", "public.csv", *GOAL)
    assert "none.csv" in line
    (folder / "two.csv").write_text("size,color,buys\n1,red,maybe\n")
    classes = ["--classes", "no,yes", "--method", "statistics"]
    line = fails(capsys, "label", *parts, "public.csv", *GOAL, *classes)
    assert "--classes" in line
    assert "maybe" not in line
