"""kill -9 at any moment: nothing is overspent, answered twice, half written or lost."""

import json
import math
import shutil
from collections import Counter

import numpy as np
import pytest
from harness import NEVER, figure, moments, size, watched
from processes import forking
from verbs import COST, VERBS, entries, fresh, show

from hdp_fast import Budget
from hdp_fast.learners import ExponentialLearner, Stumps
from hdp_fast.local import RemoteAgents
from hdp_fast.transfer import SubsampleTestReweigh

pytestmark = [forking, pytest.mark.usefixtures("quick_plan")]


def killed(work, cases, seed, prepare=lambda: None):
    """How children end that do the same work, from the same state, until one more moment."""
    prepare()
    changes = watched(work, step=NEVER).changes
    for moment in moments(changes, cases, seed):
        prepare()
        run = watched(work, **moment)
        assert run.died or run.code == 0, run.err
        yield run


def test_a_killed_spender_has_paid_for_all_that_it_showed(memory):
    path, cases, seen = memory / "ledger", size(12, 400), 0
    Budget.open(path, epsilon=1000)

    def spend():
        budget = Budget.open(path)
        for _ in range(5):
            with budget.reserve(COST):
                show("x")

    for kills, run in enumerate(killed(spend, cases, seed=1), start=1):
        seen += run.out.count("x")
        charged = len(entries(path)) - 5  # those of the run that counted the changes
        assert seen <= charged <= seen + kills
    assert sum(entry.state == "reserved" for entry in entries(path)) <= cases
    assert Budget.open(path).spent.epsilon == pytest.approx(0.01 * (charged + 5))
    figure("kill -9: a loop of paid releases", cases, f"{seen} values seen, {charged} charged")


@pytest.mark.thorough(beside="test_nothing_is_left_of_a_ledger_whose_making_was_killed")
def test_a_ledger_whose_making_was_killed_can_be_made(memory):
    cases, ledger = size(12, 1000), memory / "ledger"

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

    for _ in killed(make, size(12, 400), seed=3, prepare=lambda: ledger.unlink(missing_ok=True)):
        make()
        assert {path.name for path in memory.iterdir()} == {"ledger"}


@pytest.mark.thorough(cases=["fit --report --budget", "local collect --aggregate"])
@pytest.mark.parametrize("name", VERBS)
def test_a_killed_command_is_taken_up_by_the_same_one(inputs, name):
    if name.startswith("label"):
        pytest.importorskip("sklearn")
    verb, folder = VERBS[name], inputs / "run"
    work, came = verb.work(inputs, folder), Counter()
    fresh(inputs, folder)
    assert work() == 0  # here, so that children inherit its plan and its imports
    died = 0
    for first in killed(work, verb.cases, seed=name, prepare=lambda: fresh(inputs, folder)):
        died += first.died
        came[verb.after(first, inputs, folder)] += 1
    assert died > verb.cases / 2
    outcome = ", ".join(f"{count} {what}" for what, count in sorted(came.items()))
    figure(f"kill -9: {name}", verb.cases, outcome)


# People -------------------------------------------------------------------------------------------

RECORDS = np.random.default_rng(0).integers(0, 2, (400, 3), dtype=np.uint8)
TESTS = {"schedule": "every", "output": "smallest", "alpha": 0.2, "eta": 0.5, "rounds": 3}


class Devices:
    """People with devices: each who is asked appends to a file, and three of four answer there."""

    def __init__(self, folder):
        self.folder = folder

    def ask(self, text, count):
        """Asks people whom no one asked before: those after the last one in the file."""
        asked = self.folder / "asked"
        first = asked.read_text().count("\n") if asked.exists() else 0
        people = range(first, first + count)
        with asked.open("a") as lines:
            lines.writelines(f"{person} {text}\n" for person in people)
        with (self.folder / "answers").open("a") as lines:
            answers = (json.dumps([text, str(person), person % 2]) for person in people)
            lines.writelines(f"{answer}\n" for answer in answers if not answer.endswith("0]"))
            lines.writelines("damaged\n" for _ in range(3))
        return self.collect(text, count)

    def collect(self, text, count):
        """Reads all answers that there are to a question, those to earlier ones included."""
        if (self.folder / "answers").exists():
            for line in (self.folder / "answers").read_text().splitlines():
                answer = json.loads(line) if line.endswith("]") else [text, None]
                if answer[0] == text:
                    yield [answer[1:]]


def survey(folder):
    """A run on these people, which goes on where one that was killed has ended."""
    devices = Devices(folder)
    agents = RemoteAgents(
        devices.ask,
        collect=devices.collect,
        epsilon=8.0,
        count=10_000,
        response_rate=0.5,
        state=folder / "state",
    )
    learner = ExponentialLearner(Stumps(3), epsilon=8.0)
    run = SubsampleTestReweigh(
        learner, epsilon=math.inf, draws=50, checkpoint=str(folder / "run"), **TESTS
    )
    run.fit(RECORDS, RECORDS[:, 0], agents)
    return run.result_, agents.counts()


@pytest.mark.thorough(beside="test_a_killed_spender_has_paid_for_all_that_it_showed")
def test_a_killed_survey_asks_nobody_twice_and_loses_no_answer(memory):
    folder, cases, again = memory / "survey", size(8, 200), Counter()

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()

    prepare()
    whole, counts = survey(folder)
    for run in killed(lambda: survey(folder) and 0, cases, seed=4, prepare=prepare):
        result, counts = survey(folder)
        lines = (folder / "asked").read_text().splitlines()
        people = [line.split()[0] for line in lines]
        assert len(set(people)) == len(people), "somebody was asked twice"
        assert counts["asked"] >= len(people), "somebody was asked who is not counted"
        sent = [line for line in (folder / "answers").read_text().splitlines() if line[0] == "["]
        assert counts["answered"] == len(sent), "an answer was lost"
        assert [test.round for test in result.estimates] == [1, 2, 3]
        per_test = whole.plan.agents_per_test
        # At most one question did not reach its people: others were asked in their place.
        lost = counts["asked"] - len(people)
        assert lost in (0, per_test, result.plan.agents_for_constants), (lost, per_test)
        again[run.died, lost > 0] += 1
    figure("kill -9: a survey of remote agents", cases, f"{again[True, True]} lost a question")
