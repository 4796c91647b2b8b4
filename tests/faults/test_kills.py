"""kill -9 at any moment: nothing is overspent, answered twice, half written or lost."""

from collections import Counter

import pytest
from harness import NEVER, figure, moments, size, watched
from processes import forking
from verbs import COST, VERBS, entries, fresh, show

from hdp_fast import Budget

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
