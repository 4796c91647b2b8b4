"""The commands that pay, on small tables, and what must hold once one of them was cut off."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import command, size, watched, whole

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.collection.questions import Question, mean_question
from hdp_fast.collection.reports import read_collection, report_lines

COST = PrivacyRecord(
    mechanism="test", source="s", neighbors="replace_one", epsilon=0.01, noise="none"
)


def show(text):
    """Prints a line that the parent reads even if the next moment is the last."""
    print(text, flush=True)


def entries(path):
    """What is on the books of a ledger, which must be sound."""
    whole(path)
    return Budget.open(path).records


# Inputs -------------------------------------------------------------------------------------------


def write_inputs(folder):
    """Tables of numbers and categories, labels that follow them, schemas, a question, answers."""
    for seed, (name, n) in enumerate([("source", 600), ("target", 4000), ("public", 40)]):
        coins = np.random.default_rng(seed)
        numbers, owners = coins.integers(0, 100, n), coins.integers(0, 2, n)
        rows = zip(numbers, np.array(["rent", "own"])[owners], numbers > 50, strict=True)
        lines = [f"{number},{home},{label:d}" for number, home, label in rows]
        (folder / f"{name}.csv").write_text("\n".join(["size,home,buys", *lines, ""]))
    for name, rule in (("binary", {"positive": ["1"]}), ("number", {"bounds": [0, 1]})):
        (folder / f"{name}.json").write_text(_schema(rule))
    goal = {"epsilon": 1.0, "delta": None, "beta": 0.05, "randomizer": "best"}
    question = mean_question("minutes", low=0.0, high=9.0, **goal)
    (folder / "question.json").write_text(question.to_json())
    lines = report_lines(question, ["3"] * 50)
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines))


def _schema(rule):
    columns = {
        "size": {"kind": "number", "bounds": [0, 100], "cuts": [50]},
        "home": {"kind": "category", "values": ["own"]},
    }
    kept = {"format": "hdp_fast.schema", "version": 1, "columns": columns}
    return json.dumps({**kept, "label": {"column": "buys", **rule}})


def fresh(inputs, folder):
    """An empty folder for the outputs of a command, and a ledger beside its inputs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in inputs.glob("ledger*"):
        path.unlink()
    Budget.open(inputs / "ledger", epsilon=100, delta=0.1)


# Commands -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    """A command, and what is checked after it.

    Attributes:
        argv: the arguments, by the folders of the inputs and of the outputs.
        check: asserts what must hold in these folders after a first run that was cut off, given
            that run and how to run the command again; says what came of it.
        cases: how many deaths it dies.
    """

    argv: Callable[[Path, Path], list]
    check: Callable
    cases: int

    def work(self, inputs, folder):
        """Work for a child."""
        return command(*self.argv(inputs, folder))

    def after(self, first, inputs, folder):
        """What came of it once the command may run as long as it takes."""
        return self.check(inputs, folder, first, lambda: watched(self.work(inputs, folder)))


def _label(inputs, folder):
    options = ["--epsilon", 20, "--delta", 1e-3, "--members", 20, "--queries", 400, "--json"]
    options += ["--schema", inputs / "binary.json", "--estimator", "naive-bayes"]
    options += ["--save", folder / "kept", "--output", folder / "out.csv"]
    tables = [inputs / "source.csv", inputs / "public.csv"]
    return ["--quiet", "label", *tables, *options, "--budget", inputs / "ledger"]


def _after_label(inputs, folder, first, again):
    paid, saved = len(entries(inputs / "ledger")), (folder / "kept").exists()
    if (folder / "out.csv").exists():
        # What is there has been paid for, and is not written over.
        assert paid == 1
        assert (folder / "out.csv").read_text().count("\n") == 41
        return "written"
    assert paid == 1 or not saved
    second = again()
    assert second.code == 0, second.err
    assert (folder / "out.csv").read_text().count("\n") == 41
    assert len(entries(inputs / "ledger")) == (1 if saved else paid + 1)
    # A query is paid for before its answer is shown.
    left = json.loads(second.out)["queries_left"]
    assert left == 360 or (saved and left == 320)
    return "went on" if saved else "began again"


def _transfer(inputs, folder):
    options = ["--schema", inputs / "binary.json", "--agents-epsilon", 2, "--kappa", 0.5]
    options += ["--eta", 0.8, "--rounds", 3, "--epsilon", 1, "--delta", 1e-5, "--alpha", 0.2]
    options += ["--schedule", "every", "--choose", "smallest", "--json"]
    options += ["--checkpoint", folder / "run", "--output", folder / "result.json", "--force"]
    tables = [inputs / "source.csv", inputs / "target.csv"]
    return ["--quiet", "transfer", *tables, *options, "--budget", inputs / "ledger"]


def _after_transfer(inputs, folder, first, again):
    rounds, tests = _journal(folder / "run")
    assert len(entries(inputs / "ledger")) == 1 or not (rounds or first.out)
    second = again()
    assert second.code == 0, second.err
    assert json.loads((folder / "result.json").read_text()) == json.loads(second.out)
    after, asked = _journal(folder / "run")
    assert after[: len(rounds)] == rounds, "a round was run twice"
    answered = {test for test in tests if test[3] is not None}
    assert answered <= set(asked), "a test was asked twice"
    assert len(entries(inputs / "ledger")) == 1
    if first.out.endswith("}\n"):
        assert second.out == first.out
    return "went on" if rounds else "began again"


def _journal(path):
    """Rounds and tests of a checkpoint, which must be sound."""
    if not path.exists():
        return [], []
    whole(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "round" not in names:
            return [], []
        rounds = connection.execute("SELECT * FROM round ORDER BY number").fetchall()
        return rounds, connection.execute("SELECT * FROM test ORDER BY id").fetchall()


def _adapt(inputs, folder):
    options = ["--epsilon", 4, "--delta", 1e-5, "--schema", inputs / "number.json"]
    options += ["--output", folder / "model.json", "--predict", inputs / "public.csv", "--json"]
    options += ["--predictions", folder / "out.csv", "--budget", inputs / "ledger"]
    return ["--quiet", "adapt", inputs / "source.csv", inputs / "public.csv", *options]


def _after_adapt(inputs, folder, first, again):
    model, predictions = folder / "model.json", folder / "out.csv"
    paid = len(entries(inputs / "ledger"))
    assert max(model.exists(), predictions.exists(), bool(first.out)) <= paid <= 1
    if model.exists():
        assert json.loads(model.read_text())["record"]["epsilon"] == 4
    if predictions.exists():
        assert predictions.read_text().count("\n") == 41
    if model.exists() or predictions.exists():
        return "written"
    second = again()
    assert second.code == 0, second.err
    assert len(entries(inputs / "ledger")) == paid + 1
    return "began again"


def _fit(inputs, folder):
    options = ["--epsilon", 4, "--delta", 1e-5, "--schema", inputs / "binary.json"]
    options += ["--output", folder / "model.json", "--report", folder / "page.html", "--json"]
    return ["--quiet", "fit", inputs / "source.csv", *options, "--budget", inputs / "ledger"]


def _after_fit(inputs, folder, first, again):
    model, page = folder / "model.json", folder / "page.html"
    paid = len(entries(inputs / "ledger"))
    assert max(model.exists(), page.exists(), bool(first.out)) <= paid <= 1
    assert model.exists() or not page.exists()
    if model.exists():
        assert json.loads(model.read_text())["record"]["epsilon"] == 4
        return "written"
    second = again()
    assert second.code == 0, second.err
    assert len(entries(inputs / "ledger")) == paid + 1
    return "began again"


def _randomize(inputs, folder, value=1):
    asked = [value, "--question", inputs / "question.json", "--state", folder / "state"]
    return ["local", "randomize", *asked, "--budget", inputs / "ledger"]


def _after_randomize(inputs, folder, first, again):
    assert len(entries(inputs / "ledger")) == 1 or not first.out
    second = again()
    assert second.code == 0, second.err
    assert first.out in ("", second.out)
    # An answer that no one saw may have been paid for.
    assert 1 <= len(entries(inputs / "ledger")) <= (1 if first.code == 0 else 2)
    whole(folder / "state")
    return "answered" if first.out else "began again"


def _collect(inputs, folder):
    asked = ["--question", inputs / "question.json", "--aggregate", folder / "a.npz"]
    return ["local", "collect", inputs / "lines", *asked]


def _after_collect(inputs, folder, first, again):
    if (written := (folder / "a.npz").exists()) is False:
        assert again().code == 0
    question = Question.from_json((inputs / "question.json").read_text())
    assert read_collection(folder / "a.npz", question).counts()["accepted"] == 50
    return "written" if written else "began again"


# A collector pays nothing: its output alone is at stake.
VERBS = {
    "label --save --budget": Verb(_label, _after_label, size(8, 200)),
    "transfer --checkpoint --budget": Verb(_transfer, _after_transfer, size(6, 400)),
    "adapt --budget": Verb(_adapt, _after_adapt, size(8, 200)),
    "fit --report --budget": Verb(_fit, _after_fit, size(4, 200)),
    "local randomize --state --budget": Verb(_randomize, _after_randomize, size(10, 1300)),
    "local collect --aggregate": Verb(_collect, _after_collect, size(8, 100)),
}
