"""kill -9 at any moment: nothing is overspent, answered twice, half written or lost."""

import json
import sqlite3

import numpy as np
import pytest
from harness import command, figure, moments, size, watched, whole
from processes import forking

from hdp_fast import Budget, PrivacyRecord
from hdp_fast._questions import mean_question
from hdp_fast._reports import read_collection, report_lines

pytestmark = forking
COST = PrivacyRecord(
    mechanism="test", source="s", neighbours="replace_one", epsilon=0.01, noise="none"
)


def show(text):
    """Prints a line that the parent reads even if the next moment is the last."""
    print(text, flush=True)


def entries(path):
    """What is on the books of a ledger, which must be sound."""
    whole(path)
    return Budget.open(path).records


def killed(work, cases, seed, prepare=lambda: None):
    """How children end that do the same work, from the same state, until one more moment."""
    prepare()
    changes = watched(work).changes
    for moment in moments(changes, cases, seed):
        prepare()
        run = watched(work, **moment)
        assert run.died or run.code == 0, run.err
        yield run


# Ledgers ------------------------------------------------------------------------------------------


def test_a_killed_spender_has_paid_for_all_that_it_showed(memory):
    path, cases, seen = memory / "ledger", size(24, 1000), 0
    Budget.open(path, epsilon=1000)

    def spend():
        budget = Budget.open(path)
        for _ in range(5):
            with budget.reserve(COST):
                show("x")

    for kills, run in enumerate(killed(spend, cases, seed=1), start=1):
        seen += run.out.count("x")
        charged = len(entries(path))
        # The run that counted the changes showed five, and each kill may cost one unseen.
        assert seen + 5 <= charged <= seen + 5 + kills
    assert sum(entry.state == "reserved" for entry in entries(path)) <= cases
    assert Budget.open(path).spent.epsilon == pytest.approx(0.01 * charged)
    figure("kill -9: a loop of paid releases", cases, f"{seen} values seen, {charged - 5} charged")


def test_a_ledger_whose_making_was_killed_can_be_made(memory):
    cases = size(24, 1000)
    ledger = memory / "ledger"

    def make():
        Budget.open(ledger, epsilon=1, delta=1e-6)

    for run in killed(make, cases, seed=2, prepare=lambda: ledger.unlink(missing_ok=True)):
        if not ledger.exists():
            assert run.died
            make()
        budget = Budget.open(ledger)
        assert (budget.limit, budget.spent) == ((1, 1e-6), (0, 0))
        with budget.reserve(COST):
            pass
        assert len(entries(ledger)) == 1
    figure("kill -9: a ledger while it is made", cases, "each one opened and paid")


def test_nothing_is_left_of_a_ledger_whose_making_was_killed(memory):
    """What a dead process leaves behind is gone once somebody has opened the ledger."""
    ledger = memory / "ledger"

    def make():
        Budget.open(ledger, epsilon=1)

    for _ in killed(make, size(24, 400), seed=3, prepare=lambda: ledger.unlink(missing_ok=True)):
        make()
        assert {path.name for path in memory.iterdir()} == {"ledger"}


# Devices and collectors ---------------------------------------------------------------------------


@pytest.fixture
def question(memory):
    made = mean_question(
        "minutes", epsilon=1.0, delta=None, low=0.0, high=9.0, beta=0.05, randomizer="best"
    )
    (memory / "question.json").write_text(made.to_json())
    return made


def test_a_killed_device_answers_once(memory, question):
    """One line, whatever it is asked and however often it dies; paid for before it is shown."""
    cases, seen = size(14, 1300), 0
    state, ledger = memory / "state", memory / "ledger"

    def answer(value):
        asked = [value, "--question", memory / "question.json", "--state", state]
        return command("local", "randomize", *asked, "--budget", ledger)

    def begin():
        for path in (state, ledger):
            path.unlink(missing_ok=True)
        Budget.open(ledger, epsilon=100)

    for first in killed(answer("1"), cases, seed=4, prepare=begin):
        assert len(entries(ledger)) == 1 or not first.out
        second = watched(answer("8"))
        assert second.code == 0, second.err
        assert first.out in ("", second.out)
        # An answer that nobody saw may have been paid for.
        assert 1 <= len(entries(ledger)) <= 1 + first.died
        whole(state)
        seen += bool(first.out)
    outcome = f"{seen} answers seen before the kill, none changed after it"
    figure("kill -9: local randomize --state --budget", cases, outcome)


def test_a_killed_collector_leaves_all_or_nothing(memory, question):
    cases, left = size(12, 100), 0
    aggregate, lines = memory / "a.npz", memory / "lines"
    lines.write_text("".join(f"{line}\n" for line in report_lines(question, ["3"] * 50)))
    asked = ["--question", memory / "question.json", "--aggregate", aggregate]

    work = command("local", "collect", lines, *asked)
    for run in killed(work, cases, seed=5, prepare=lambda: aggregate.unlink(missing_ok=True)):
        if aggregate.exists():
            assert read_collection(aggregate, question).counts()["accepted"] == 50
            left += 1
        else:
            assert run.died
        assert lines.read_text().count("\n") == 50
    assert 0 < left < cases
    figure("kill -9: local collect --aggregate", cases, f"{left} whole files, no part of one")


# Commands that learn ------------------------------------------------------------------------------


def write_table(path, n, seed, label):
    """A table of numbers and categories, and a label that follows them."""
    coins = np.random.default_rng(seed)
    size, owner = coins.integers(0, 100, n), coins.integers(0, 2, n)
    rows = zip(size, np.array(["rent", "own"])[owner], label(size), strict=True)
    lines = [f"{number},{home},{text}" for number, home, text in rows]
    path.write_text("\n".join(["size,home,buys", *lines, ""]))


def write_schema(path, **label):
    columns = {
        "size": {"kind": "number", "bounds": [0, 100], "cuts": [50]},
        "home": {"kind": "category", "values": ["own"]},
    }
    kept = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    path.write_text(json.dumps({**kept, "label": {"column": "buys", **label}}))


@pytest.fixture
def tables(memory):
    for number, (name, n) in enumerate([("source", 600), ("target", 4000), ("public", 40)]):
        write_table(memory / f"{name}.csv", n, number, lambda size: np.where(size > 50, "1", "0"))
    write_schema(memory / "binary.json", positive=["1"])
    write_schema(memory / "number.json", bounds=[0, 1])
    return memory


def fresh(tables):
    """A folder for the outputs of one run, with a ledger in it."""
    folder = tables / "run"
    for path in folder.iterdir() if folder.exists() else []:
        path.unlink()
    folder.mkdir(exist_ok=True)
    Budget.open(folder / "ledger", epsilon=100, delta=0.1)
    return folder


def test_a_killed_labeling_is_taken_up_by_the_same_command(tables):
    pytest.importorskip("sklearn")
    cases, kept, labelled = size(10, 200), 0, 0
    folder = fresh(tables)
    options = ["--epsilon", 20, "--delta", 1e-3, "--members", 20, "--queries", 400, "--json"]
    argv = ["label", tables / "source.csv", tables / "public.csv", *options]
    argv += ["--schema", tables / "binary.json", "--estimator", "naive-bayes"]
    argv += ["--save", folder / "kept", "--output", folder / "out.csv"]
    work = command(*argv, "--budget", folder / "ledger")

    def rows():
        text = (folder / "out.csv").read_text()
        assert text.endswith("\n")
        return text.count("\n") - 1

    for first in killed(work, cases, seed=6, prepare=lambda: fresh(tables)):
        before = len(entries(folder / "ledger"))
        saved, written = (folder / "kept").exists(), (folder / "out.csv").exists()
        assert before == 1 or not (saved or written)
        if written:
            # What is there has been paid for, and is not written over.
            assert rows() == 40
            labelled += 1
            continue
        second = watched(work)
        assert (second.code, second.err) == (0, ""), second.err
        assert rows() == 40
        assert len(entries(folder / "ledger")) == (1 if saved else before + 1)
        # A query is paid for before its answer is shown.
        left = json.loads(second.out)["queries_left"]
        assert left in ((360, 320) if saved and first.died else (360,))
        kept += saved
    outcome = f"{kept} went on with their members, {labelled} had been written, none stuck"
    figure("kill -9: label --save --budget", cases, outcome)


def journal(path):
    """Rounds and tests of a checkpoint."""
    if not path.exists():
        return [], []
    whole(path)
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "round" not in names:
            return [], []
        rounds = connection.execute("SELECT * FROM round ORDER BY number").fetchall()
        return rounds, connection.execute("SELECT * FROM test ORDER BY id").fetchall()


@pytest.mark.usefixtures("quick_plan")
def test_a_killed_transfer_goes_on_and_is_charged_once(tables):
    cases, resumed = size(10, 400), 0
    folder = fresh(tables)
    argv = ["transfer", tables / "source.csv", tables / "target.csv", "--json", "--alpha", 0.2]
    argv += ["--schema", tables / "binary.json", "--agents-epsilon", 2, "--kappa", 0.5]
    argv += ["--eta", 0.8, "--rounds", 3, "--epsilon", 1, "--delta", 1e-5]
    argv += ["--schedule", "every", "--choose", "smallest"]
    argv += ["--budget", folder / "ledger", "--checkpoint", folder / "run"]
    work = command(*argv, "--output", folder / "result.json")

    assert work() == 0  # here, so that children inherit the plan
    for first in killed(work, cases, seed=7, prepare=lambda: fresh(tables)):
        rounds, tests = journal(folder / "run")
        charged = len(entries(folder / "ledger"))
        assert charged == 1 or not (rounds or first.out)
        second = watched(work)
        assert second.code == 0, second.err
        assert json.loads((folder / "result.json").read_text()) == json.loads(second.out)
        after, asked = journal(folder / "run")
        assert after[: len(rounds)] == rounds, "a round was run twice"
        answered = [test for test in tests if test[3] is not None]
        assert set(answered) <= set(asked), "a test was asked twice"
        assert len(entries(folder / "ledger")) == 1
        if first.out.endswith("}\n"):
            assert second.out == first.out
        resumed += first.died and bool(rounds)
    figure("kill -9: transfer --checkpoint --budget", cases, f"one charge each, {resumed} resumed")


def test_a_killed_adaptation_has_paid_for_what_it_wrote(tables):
    cases, written, charged = size(10, 200), 0, 0
    folder = fresh(tables)
    argv = ["adapt", tables / "source.csv", tables / "public.csv", "--epsilon", 4, "--json"]
    argv += ["--delta", 1e-5, "--schema", tables / "number.json", "--steps", 5]
    argv += ["--budget", folder / "ledger", "--predict", tables / "public.csv"]
    outputs = [folder / "model.json", folder / "out.csv"]
    work = command(*argv, "--output", outputs[0], "--predictions", outputs[1])

    for _ in killed(work, cases, seed=8, prepare=lambda: fresh(tables)):
        model, predictions = outputs
        paid = len(entries(folder / "ledger"))
        if model.exists():
            assert json.loads(model.read_text())["record"]["epsilon"] == 4
        if predictions.exists():
            assert predictions.read_text().count("\n") == 41
        assert max(path.exists() for path in outputs) <= paid <= 1
        written, charged = written + model.exists(), charged + paid
    figure("kill -9: adapt --budget", cases, f"{written} models written, {charged} charged")
