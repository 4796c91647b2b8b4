"""The ledger: what is reserved stays spent, and no one spends more than there is."""

import contextlib
import copy
import html.parser
import json
import math
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from harness import together
from processes import as_nobody, exit_code, forked, forking
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

from hdp_fast import Budget, PrivacyRecord, _core, local, noise, parity
from hdp_fast.budget import spend, tables
from hdp_fast.budget.account import check_charge
from hdp_fast.exceptions import (
    AgentsExhausted,
    BudgetExceeded,
    HdpFastError,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)

EYE = np.eye(4, dtype=np.uint8)
ONES = np.ones(4, dtype=np.uint8)


def record(epsilon, delta=0.0, neighbors="replace_one", mechanism="test"):
    return PrivacyRecord(
        mechanism=mechanism, source="s", neighbors=neighbors, epsilon=epsilon, delta=delta,
        noise="none",
    )  # fmt: skip


def pay(budget, epsilon, delta=0.0):
    with budget.reserve(record(epsilon, delta)):
        pass


def states(budget):
    return [entry.state for entry in budget.records]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture(params=["memory", "file"])
def make(request, path):
    """Makes a budget in memory, or in a file."""
    return Budget if request.param == "memory" else lambda *args, **kw: in_file(path, *args, **kw)


def in_file(path, epsilon, delta=0.0, **more):
    return Budget.open(path, epsilon=epsilon, delta=delta, **more)


# With statement ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [None, ValueError])
def test_a_budget_is_closed_at_the_end_of_its_block_and_refunds_nothing(make, error):
    with contextlib.suppress(ValueError), make(1.0) as budget:
        pay(budget, 0.25)
        if error:
            raise error
    assert (budget.spent.epsilon, budget.remaining.epsilon) == (0.25, 0.75)
    assert states(budget) == ["committed"]
    assert json.loads(budget.to_json())["spent"]["epsilon"] == 0.25
    for use in (
        lambda: pay(budget, 0.25),
        lambda: budget.sequential(0.25),
        lambda: budget.parallel(),
        lambda: noise.permute_and_flip([1, 2], epsilon=0.25, budget=budget),
        lambda: budget.__enter__(),
    ):
        with pytest.raises(ParameterError, match="closed by its with statement"):
            use()
    assert budget.spent.epsilon == 0.25


def test_a_closed_budget_closes_its_scopes_and_a_closed_scope_only_itself(make):
    with make(1.0) as budget:
        with budget.sequential(0.5, name="labels") as labels:
            pay(labels, 0.25)
            part = labels.parallel().part("north")
        for closed in (labels, part):
            with pytest.raises(ParameterError, match="closed"):
                pay(closed, 0.125)
        other = budget.sequential(0.25)
        pay(other, 0.125)
    with pytest.raises(ParameterError, match="closed"):
        pay(other, 0.125)
    assert budget.spent.epsilon == 0.75


def test_a_release_under_way_at_the_end_of_the_block_notes_how_it_ended(make):
    with make(1.0) as budget:
        reservation = budget.reserve(record(0.25))
    with reservation:
        assert states(budget) == ["reserved"]
    assert states(budget) == ["committed"]


def test_a_file_is_opened_again_after_the_block_with_what_was_spent(path):
    with in_file(path, 1.0) as budget:
        pay(budget, 0.75)
    again = Budget.open(path)
    assert again.spent.epsilon == 0.75
    with pytest.raises(BudgetExceeded):
        pay(again, 0.5)
    pay(again, 0.25)


# Sums -------------------------------------------------------------------------------------------


def test_three_times_a_tenth_fits_into_three_tenths(make):
    budget = make(0.3)
    for _ in range(3):
        pay(budget, 0.1)
    assert budget.spent == (0.3, 0.0)
    assert budget.remaining == (0.0, 0.0)
    with pytest.raises(BudgetExceeded):
        budget.reserve(record(1e-300))


def test_a_refusal_states_spent_requested_and_limit(make):
    budget = make(1.0, 1e-5)
    pay(budget, 0.75, 9e-6)
    for epsilon, delta in [(0.5, 0), (0.25, 2e-6), (0.25000000000000006, 0)]:
        with pytest.raises(BudgetExceeded) as refusal:
            budget.reserve(record(epsilon, delta))
        for number in (0.75, 9e-6, 1.0, 1e-5, epsilon, float(delta)):
            assert repr(number) in str(refusal.value)
    assert budget.spent == (0.75, 9e-6)
    assert len(budget.records) == 1
    pay(budget, 0.25, 1e-6)


def test_a_refusal_states_what_remains(make):
    budget = make(1.0, 1e-6)
    pay(budget, 0.7)
    with pytest.raises(BudgetExceeded, match=r"epsilon = 0\.3 and delta = 1e-06 remain, but"):
        budget.reserve(record(0.5))


def test_a_pure_budget_refuses_any_delta(make):
    with pytest.raises(BudgetExceeded):
        make(5).reserve(record(0.1, 1e-300))


def test_what_remains_can_be_spent_whatever_the_rounding():
    rng = random.Random(1)
    for _ in range(100):
        budget = Budget(10 ** rng.uniform(-3, 3), rng.random() / 2)
        for _ in range(5):
            part = rng.random() / 2
            left = budget.remaining
            pay(budget, left.epsilon * part, left.delta * part)
        left, spent = budget.remaining, budget.spent
        assert left.epsilon <= budget.limit.epsilon - spent.epsilon * (1 - 1e-15)
        pay(budget, left.epsilon, left.delta)
        assert budget.remaining.epsilon < 1e-12 * budget.limit.epsilon
        assert budget.spent.epsilon <= budget.limit.epsilon


def test_tiny_costs_are_not_lost_in_rounding(make):
    budget = make(1.0)
    pay(budget, 1e-200)
    assert budget.spent.epsilon == 1e-200
    assert budget.remaining.epsilon == math.nextafter(1, 0)
    with pytest.raises(BudgetExceeded):
        budget.reserve(record(1.0))


# The protocol -----------------------------------------------------------------------------------


def test_reserved_while_it_runs_and_committed_after(make):
    budget = make(1)
    with budget.reserve(record(0.4)):
        assert states(budget) == ["reserved"]
        assert budget.spent.epsilon == 0.4
    assert states(budget) == ["committed"]
    assert budget.records[0].record == record(0.4)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_what_raises_stays_spent(make, error):
    budget = make(1)
    with pytest.raises(error), budget.reserve(record(0.4)):
        raise error
    assert states(budget) == ["interrupted"]
    assert budget.spent.epsilon == 0.4


def test_a_reservation_that_nobody_enters_stays_spent(make):
    budget = make(1)
    budget.reserve(record(0.75))
    assert states(budget) == ["reserved"]
    with pytest.raises(BudgetExceeded):
        budget.reserve(record(0.5))


def test_a_reservation_pays_for_one_run(make):
    reservation = make(1).reserve(record(0.5))
    with reservation:
        pass
    with pytest.raises(ParameterError, match="paid"), reservation:
        pytest.fail("it ran twice")


@pytest.mark.parametrize("field", ["epsilon", "delta"])
@pytest.mark.parametrize("value", [-5.0, math.nan, math.inf, True, "1", None, -0.5], ids=repr)
def test_no_record_gives_budget_back(make, field, value):
    """Whatever a record says: frozen ones can be written to by whoever means to."""
    budget, cost = make(1.0, 1e-3), record(0.5, 1e-4)
    object.__setattr__(cost, field, value)
    with pytest.raises(ParameterError, match=field):
        budget.reserve(cost)
    assert (budget.spent.epsilon, budget.spent.delta) == (0, 0)
    assert not budget.records


def test_a_reservation_is_never_copied(make):
    reservation = make(1).reserve(record(0.5))
    assert copy.copy(reservation) is copy.deepcopy([reservation])[0] is reservation
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="run again what was paid for once"):
            pickle.dumps(reservation, protocol)


def test_a_reservation_that_was_entered_is_not_entered_inside():
    reservation = Budget(1).reserve(record(0.5))
    with reservation, pytest.raises(ParameterError, match="paid"), reservation:
        pytest.fail("it ran twice")


def test_without_a_budget_nothing_is_recorded():
    with spend(None, record(1)):
        pass


def test_a_result_is_not_lost_when_its_commit_fails(path, caplog):
    budget = Budget.open(path, epsilon=1)
    with budget.reserve(record(0.4)):
        path.rename(path.with_name("moved"))
    assert "stays reserved" in caplog.text
    path.with_name("moved").rename(path)
    assert states(budget) == ["reserved"]
    assert budget.spent.epsilon == 0.4


# Neighbor relations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "accepted"),
    [
        ("replace_one", {"replace_one", "local", "replace_person"}),
        ("add_remove", {"add_remove"}),
        ("replace_person", {"replace_person"}),
        ("add_remove_person", {"add_remove_person"}),
    ],
)
def test_a_record_of_another_relation_is_refused(make, relation, accepted):
    budget = make(5, neighbors=relation)
    for other in ("replace_one", "add_remove", "local", "replace_person", "add_remove_person"):
        if other in accepted:
            pay_in = record(1, neighbors=other)
            with budget.reserve(pay_in):
                continue
        with pytest.raises(ParameterError, match=f"{other}.*{relation}"):
            budget.reserve(record(1, neighbors=other))
    assert budget.spent.epsilon == len(accepted)


# Scopes -----------------------------------------------------------------------------------------


def test_a_carved_out_budget_is_paid_at_once_and_spent_by_its_holder(make):
    budget = make(1, 1e-6)
    child = budget.sequential(0.7, 1e-7, name="exploration")
    assert budget.spent == (0.7, 1e-7)
    pay(child, 0.5)
    pay(child, 0.2)
    assert budget.spent == (0.7, 1e-7)
    with pytest.raises(BudgetExceeded, match="exploration"):
        child.reserve(record(0.01))
    with pytest.raises(BudgetExceeded):
        budget.sequential(0.4)
    grandchild = budget.sequential(0.3).sequential(0.3)
    pay(grandchild, 0.3)
    assert budget.remaining.epsilon == 0


def test_disjoint_parts_cost_their_maximum(make):
    budget = make(1, 1e-6)
    folds = budget.parallel(name="folds")
    pay(folds.part("a"), 0.3)
    pay(folds.part("b"), 0.2, 1e-7)
    assert budget.spent == folds.spent == (0.3, 1e-7)
    pay(folds.part("b"), 0.2)
    assert budget.spent == (0.4, 1e-7)
    pay(folds.part("a"), 0.1)
    assert budget.spent == (0.4, 1e-7)
    assert folds.part("a").remaining == (0.6, 1e-6)
    assert folds.remaining == (1.0, 1e-6)
    pay(budget, 0.5)
    assert folds.remaining == (0.5, 1e-6)
    assert folds.part("new").remaining == (0.5, 1e-6)
    assert folds.part("a").remaining == (0.1, 1e-6)
    with pytest.raises(BudgetExceeded):
        folds.part("a").reserve(record(0.2))
    assert folds.part("a").spent.epsilon == 0.4
    pay(folds.part("a"), 0.1)
    pay(folds.part("new"), 0.5)
    assert budget.remaining.epsilon == 0


def test_another_split_is_another_scope(make):
    """A part of the same name may hold other records then: sharing it would charge too little."""
    budget = make(1)
    for _ in range(2):
        pay(budget.parallel(name="folds").part(1), 0.4)
    assert budget.spent.epsilon == 0.8


def test_a_refused_scope_leaves_nothing(make):
    budget = make(1)
    with pytest.raises(BudgetExceeded):
        budget.sequential(2)
    assert budget.spent == (0, 0)
    assert budget.records == ()


class Oracle:
    """The same tree in a few lines: charges as fractions, summed from scratch."""

    def __init__(self, kind, limit=None):
        self.kind, self.limit, self.costs, self.children = kind, limit, [], []

    def spent(self):
        if self.kind == "parallel":
            return max((part.spent() for part in self.children), default=Fraction())
        return sum(self.costs) + sum(child.limit or child.spent() for child in self.children)

    def sound(self):
        within = self.limit is None or self.spent() <= self.limit
        return within and all(child.sound() for child in self.children)


@pytest.mark.thorough(cases=6)
@pytest.mark.parametrize("seed", range(20))
def test_random_sequences_follow_the_oracle_and_never_exceed_a_limit(seed):
    rng = random.Random(seed)
    budgets, splits = [(Budget(1), Oracle("budget", Fraction(1)))], []
    root = budgets[0]
    refused = 0
    for _ in range(80):
        epsilon = rng.choice([0.1, 0.07, 0.01, 0.001])
        exact = Fraction(str(epsilon))
        (real, oracle), action = rng.choice(budgets), rng.choice("pppcsb")
        try:
            if action == "p":
                oracle.costs.append(exact)
                real.reserve(record(epsilon))
            elif action == "c":
                oracle.children.append(Oracle("sequential", exact))
                budgets.append((real.sequential(epsilon), oracle.children[-1]))
            elif action == "s":
                oracle.children.append(Oracle("parallel"))
                splits.append((real.parallel(), oracle.children[-1]))
            elif splits:
                split, above = rng.choice(splits)
                above.children.append(Oracle("part"))
                budgets.append((split.part(len(above.children)), above.children[-1]))
            assert root[1].sound()
        except BudgetExceeded:
            refused += 1
            assert not root[1].sound()
            (oracle.costs if action == "p" else oracle.children).pop()
        for real, oracle in budgets + splits:
            assert real.spent.epsilon == float(oracle.spent())
    assert refused


# What is shown ----------------------------------------------------------------------------------


def filled(budget):
    pay(budget, 0.125)
    pay(budget.sequential(0.25, name="<b>&"), 0.0625)
    pay(budget.parallel(name="folds").part("a"), 0.5)
    budget.parallel(name="unused")
    return budget


def test_records_hold_every_release_and_every_scope(make):
    budget = filled(make(1, neighbors="replace_one"))
    lines = [(e.scope, e.state, e.record.mechanism, e.record.epsilon) for e in budget.records]
    assert lines == [
        ("", "committed", "test", 0.125),
        ("", "scope", "budget.sequential, name=<b>&", 0.25),
        ("<b>&", "committed", "test", 0.0625),
        ("", "scope", "budget.parallel, name=folds", 0.5),
        ("folds/a", "committed", "test", 0.5),
    ]
    amounts = [entry.record.epsilon for entry in budget.records if not entry.scope]
    assert sum(amounts) == budget.spent.epsilon
    assert all(entry.time.tzinfo for entry in budget.records)


def test_json_holds_it_all(make):
    budget = filled(make(1, 0.5))
    exported = json.loads(budget.to_json())
    assert exported["neighbors"] == "replace_one"
    assert exported["limit"] == {"epsilon": 1, "delta": 0.5}
    assert exported["spent"] == budget.spent._asdict()
    assert exported["remaining"] == budget.remaining._asdict()
    for line, entry in zip(exported["records"], budget.records, strict=True):
        assert PrivacyRecord.from_json(json.dumps(line["record"])) == entry.record
        assert (line["state"], line["scope"]) == (entry.state, entry.scope)
        assert line["time"] == entry.time.isoformat()


def test_repr_says_what_is_left():
    budget = filled(Budget(1, 0.25))
    parts = "epsilon 0.875 of 1 spent, delta 0 of 0.25 spent, replace_one, in memory"
    assert repr(budget) == f"Budget({parts})"
    assert repr(Budget(2)) == "Budget(epsilon 0 of 2 spent, replace_one, in memory)"
    assert repr(budget.parallel()) == "Parallel(largest part: epsilon 0, delta 0)"


def test_html_is_escaped():
    budget = Budget(1)
    with budget.reserve(record(0.5, mechanism="<script>alert('&')</script>")):
        pass
    result = Counter()
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: result.update([tag])
    texts = []
    parser.handle_data = texts.append
    parser.feed(budget._repr_html_())
    assert set(result) == {"p", "code", "table", "tr", "th", "td"}
    assert result["tr"] == 2
    assert "<script>alert('&')</script>" in texts
    assert texts[texts.index("attacker's advantage") + 6] == "0.245"


# Copies -----------------------------------------------------------------------------------------


def test_a_copy_is_the_same_budget(make):
    budget = make(1)
    for view in (budget, budget.sequential(0.1), budget.parallel(), budget.parallel().part(1)):
        assert copy.copy(view) is view
        assert copy.deepcopy([view])[0] is view
        assert clone(view) is view


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_one_in_memory_cannot_be_pickled(protocol):
    budget = Budget(1)
    for view in (budget, budget.parallel(), budget.sequential(0.1)):
        with pytest.raises(TypeError, match=r"memory.*Budget\.open\(path\)"):
            pickle.dumps(view, protocol)


def test_one_in_a_file_is_pickled_by_its_path(path):
    budget = Budget.open(path, epsilon=1)
    split = budget.parallel()
    views = [budget, budget.sequential(0.25), split, split.part("a")]
    again = pickle.loads(pickle.dumps(views))
    for epsilon, view in zip((0.125, 0.0625), (again[0], again[1]), strict=True):
        pay(view, epsilon)
    pay(again[2].part("a"), 0.5)
    assert [view.spent.epsilon for view in views] == [0.875, 0.0625, 0.5, 0.5]
    assert [type(view) for view in again] == [type(view) for view in views]
    path.unlink()
    Budget.open(path, epsilon=1)
    with pytest.raises(ParameterError, match="pickled"):
        pickle.loads(pickle.dumps(budget))


def test_a_ledger_replaced_while_in_use_is_not_spent_from(path):
    budget = Budget.open(path, epsilon=1)
    path.unlink()
    with pytest.raises(ParameterError, match="path"):
        budget.reserve(record(0.1))
    Budget.open(path, epsilon=1)
    with pytest.raises(ParameterError, match="replaced"):
        budget.reserve(record(0.1))
    assert Budget.open(path).spent == (0, 0)


# scikit-learn -----------------------------------------------------------------------------------


class Learner(ClassifierMixin, BaseEstimator):
    """A private learner as people write them."""

    def __init__(self, epsilon=0.1, budget=None):
        self.epsilon = epsilon
        self.budget = budget

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.result_ = parity.learn(X, y, epsilon=self.epsilon, budget=self.budget)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def search(budget, n_jobs):
    X = np.tile(EYE, (8, 1))
    grid = {"epsilon": [0.1, 0.2, 0.3]}
    learner = Learner(budget=budget)
    result = GridSearchCV(learner, grid, cv=2, n_jobs=n_jobs, error_score="raise")
    return result.fit(X, X[:, 0])


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search_records_every_fit(path, n_jobs):
    budget = Budget.open(path, epsilon=1.5)
    assert clone(Learner(budget=budget)).budget is budget
    best = search(budget, n_jobs).best_params_["epsilon"]
    assert Counter(entry.record.epsilon for entry in budget.records) == Counter(
        [0.1, 0.2, 0.3] * 2 + [best]
    )
    assert set(states(budget)) == {"committed"}
    with pytest.raises(BudgetExceeded):
        search(budget, n_jobs)
    assert budget.spent.epsilon <= 1.5


def test_a_grid_search_in_one_process_records_in_memory():
    budget = Budget(1.5)
    search(budget, 1)
    assert len(budget.records) == 7


def test_other_processes_are_told_to_use_a_file():
    budget = Budget(1.5)
    with pytest.raises((TypeError, pickle.PicklingError)) as error:
        search(budget, 2)
    chain, cause = "", error.value
    while cause is not None:
        chain, cause = f"{chain}\n{cause}", cause.__cause__
    assert "Budget.open(path)" in chain
    assert budget.spent == (0, 0)


# Threads and forks ------------------------------------------------------------------------------


def test_racing_threads_never_overspend(make):
    budget, won = make(1.0), []

    def racer():
        with contextlib.suppress(BudgetExceeded):
            while True:
                with budget.reserve(record(0.02)):
                    won.append(1)

    together([racer] * 5, hasty=True)
    assert len(won) == 50
    assert budget.remaining.epsilon == 0
    assert states(budget) == ["committed"] * 50


@forking
def test_a_forked_child_spends_from_the_file_of_its_parent(path):
    budget = Budget.open(path, epsilon=1)
    assert exit_code(forked(lambda: pay(budget, 0.25))) == 0
    pay(budget, 0.25)
    assert budget.spent.epsilon == 0.5


@forking
def test_a_forked_child_cannot_spend_a_copy_of_the_memory():
    budget = Budget(1)

    def child():
        with pytest.raises(ParameterError, match=r"process.*Budget\.open\(path\)"):
            budget.reserve(record(0.1))

    assert exit_code(forked(child)) == 0


@forking
def test_children_forked_while_threads_spend_are_well(path):
    budget, stop = Budget.open(path, epsilon=1000), threading.Event()

    def spender():
        while not stop.is_set():
            pay(budget, 0.001)

    spenders = [threading.Thread(target=spender) for _ in range(2)]
    for thread in spenders:
        thread.start()
    try:
        children = [forked(lambda: pay(budget, 1)) for _ in range(20)]
        assert {exit_code(child) for child in children} == {0}
    finally:
        stop.set()
        for thread in spenders:
            thread.join(30)
    costs = Counter(entry.record.epsilon for entry in budget.records)
    assert costs[1] == 20
    exact = 20 + costs[0.001] * Fraction("0.001")
    assert budget.spent.epsilon == float(exact)


# Processes --------------------------------------------------------------------------------------

RACER = """
import sys
from hdp_fast import Budget, PrivacyRecord
from hdp_fast.exceptions import BudgetExceeded

wanted = PrivacyRecord(
    mechanism="race", source="s", neighbors="replace_one", epsilon=0.75, noise="n"
)
for line in sys.stdin:
    budget = Budget.open(line.strip(), epsilon=1)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        with budget.reserve(wanted):
            print("won", flush=True)
    except BudgetExceeded:
        print("lost", flush=True)
    print("done", flush=True)
"""


@contextlib.contextmanager
def racers(count):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.stdin.close()
            process.wait(30)
            process.stdout.close()


def tell(processes, text):
    for process in processes:
        process.stdin.write(f"{text}\n")
        process.stdin.flush()


def hear(processes):
    return [process.stdout.readline().strip() for process in processes]


@pytest.mark.thorough(beside="test_racing_threads_never_overspend")
def test_two_processes_race_for_the_last_epsilon_and_one_wins(tmp_path):
    """The file is made by whoever comes first, too."""
    with racers(2) as pair:
        for number in range(80):
            path = tmp_path / f"race {number}"
            tell(pair, path)
            assert hear(pair) == ["ready"] * 2
            tell(pair, "go")
            assert sorted(hear(pair)) == ["lost", "won"]
            assert hear(pair) == ["done"] * 2
            assert states(Budget.open(path)) == ["committed"]
    assert sorted(os.listdir(tmp_path)) == sorted(f"race {number}" for number in range(80))


def killed_at(step, path, log):
    """Spends in a child that kills itself at that step of it; says which steps it took."""
    taken = 0

    def tick(name):
        nonlocal taken
        os.write(log, f"{name.split()[0]}\n".encode())
        taken += 1
        if taken == step:
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def traced(*args, **kwargs):
        tick("connect")
        connection = connect(*args, **kwargs)
        # Called before each statement, COMMIT included.
        connection.set_trace_callback(tick)
        return connection

    def child():
        sqlite3.connect = traced
        budget = Budget.open(path)
        tick("opened")
        reservation = budget.reserve(record(0.5))
        tick("reserved")
        with reservation:
            tick("run")
        tick("after")
        # What a child may still store while it ends, as coverage does, is no step of a spend.
        sqlite3.connect = connect

    return exit_code(forked(child))


@pytest.mark.thorough(beside="test_kill_at_random_moments_loses_no_release")
@forking
def test_kill_at_every_step_of_a_spend(tmp_path):
    seen, step, code = Counter(), 0, None
    while code != 0:
        step += 1
        path = tmp_path / str(step)
        pay(Budget.open(path, epsilon=1), 0.25)
        reading, writing = os.pipe()
        code = killed_at(step, path, writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            taken = pipe.read().split()
        assert code in (0, -signal.SIGKILL)
        seen.update(taken[-1:])
        budget = Budget.open(path)
        spent = budget.spent.epsilon
        # Durable before it runs; and never spent when the transaction did not come to its end.
        assert spent == (0.75 if "reserved" in taken else 0.25)
        done = "after" in taken
        assert states(budget) == ["committed"] + ["committed" if done else "reserved"] * (
            spent == 0.75
        )
        pay(budget, 1 - spent)
        with pytest.raises(BudgetExceeded):
            budget.reserve(record(0.01))
    assert {"connect", "BEGIN", "UPDATE", "INSERT", "COMMIT", "reserved", "run"} <= set(seen)


@forking
def test_kill_at_random_moments_loses_no_release(path):
    """Every release is on the books, and at most one that did not come to run, each time."""
    rng = random.Random(0)
    budget, runs = Budget.open(path, epsilon=1000), 0
    for kills in range(1, 31):
        reading, writing = os.pipe()

        def child():
            while True:
                with budget.reserve(record(0.01)):
                    os.write(writing, b"x")  # noqa: B023

        pid = forked(child)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            runs += len(os.read(pipe.fileno(), 1))
            time.sleep(rng.random() * 0.01)
            os.kill(pid, signal.SIGKILL)
            assert exit_code(pid) == -signal.SIGKILL
            runs += len(pipe.read())
        entries = Budget.open(path).records
        assert runs <= len(entries) <= runs + kills
        assert sum(entry.state == "reserved" for entry in entries) <= kills


# Files ------------------------------------------------------------------------------------------


def test_a_file_keeps_its_books(path):
    filled(Budget.open(path, epsilon=1, delta=0.5, neighbors="replace_one"))
    again = Budget.open(path)
    assert again.limit == (1, 0.5)
    assert again.spent.epsilon == 0.875
    assert again.neighbors == "replace_one"
    assert len(again.records) == 5
    assert Budget.open(str(path), epsilon=1.0, delta=0.5).spent == again.spent
    assert os.listdir(path.parent) == [path.name]


def test_a_file_is_a_write_ahead_log_database(path):
    Budget.open(path, epsilon=1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_every_transaction_is_synchronized(path, monkeypatch):
    said, connect = [], sqlite3.connect

    def traced(*args, **kw):
        connection = connect(*args, **kw)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    Budget.open(path, epsilon=1).reserve(record(0.5))
    begins = [i for i, text in enumerate(said) if text.startswith("BEGIN IMMEDIATE")]
    assert begins
    for begin in begins:
        settings = [text for text in said[:begin] if "synchronous" in text.lower()]
        assert settings[-1].upper().replace(" ", "") == "PRAGMASYNCHRONOUS=FULL"


@pytest.mark.parametrize("tenth", [Fraction(1, 10), Decimal("0.1"), np.float64(0.1)])
def test_a_limit_of_any_number_opens_its_file_again(path, tenth):
    for _ in range(2):
        assert Budget.open(path, epsilon=tenth, delta=tenth / 100).limit == (0.1, 0.001)


def test_three_selections_of_a_tenth_spend_no_more_than_three_tenths():
    """The float 0.1 is above a tenth, and what is charged is a tenth."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise._core, "select", lambda method, scores, rate, state: seen.append(rate))
        for _ in range(3):
            noise.permute_and_flip([1, 2], epsilon=0.1)
    assert sum(2 * Fraction(*rate) for rate in seen) <= Fraction(3, 10)


@pytest.mark.parametrize(
    "given", [{"epsilon": 2}, {"delta": 0.25}, {"epsilon": 1, "neighbors": "add_remove"}]
)
def test_limits_that_differ_are_refused(path, given):
    Budget.open(path, epsilon=1, delta=0.5)
    name = list(given)[-1]
    with pytest.raises(ParameterError, match=name):
        Budget.open(path, **given)


def test_names_that_mean_something_to_sqlite_are_only_names(tmp_path):
    for name in ("a?mode=memory", "100%25", "#", ":memory:", "with space", "ü"):
        budget = Budget.open(tmp_path / name, epsilon=1)
        pay(budget, 0.5)
        assert Budget.open(tmp_path / name).spent.epsilon == 0.5
    assert len(os.listdir(tmp_path)) == 6


def snapshot(folder):
    return {
        (result.name, result.stat().st_mtime_ns): result.read_bytes() if result.is_file() else b""
        for result in Path(folder).iterdir()
    }


def rewritten(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def other_program(path):
    path.unlink()
    rewritten(path, "CREATE TABLE t (a)")


def other_program_mid_transaction(path):
    """With a journal that SQLite would roll back on opening."""
    other_program(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        for _ in range(100):
            connection.execute("INSERT INTO t VALUES (zeroblob(5000))")
        files = {p: p.read_bytes() for p in path.parent.iterdir()}
    for result, content in files.items():
        result.write_bytes(content)
    assert len(files) == 2


def truncated(path):
    path.write_bytes(path.read_bytes()[:-4096])


def overwritten(path):
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)


def flipped(path):
    """The first page that holds a table of pages."""
    content = bytearray(path.read_bytes())
    content[100:108] = b"\xff" * 8
    path.write_bytes(content)


def left_with_a_log(path):
    """Damaged, and killed before its log was moved into it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE account SET spent_epsilon = '1/8'")
        files = {p: p.read_bytes() for p in path.parent.iterdir()}
    for result, content in files.items():
        result.write_bytes(content)
    assert len(files) == 3


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("epsilon = 1\n" * 100),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "other program": other_program,
    "other program, mid-transaction": other_program_mid_transaction,
    "other version": lambda path: rewritten(path, "PRAGMA user_version = 1"),
    "truncated": truncated,
    "overwritten": overwritten,
    "flipped": flipped,
    "no table": lambda path: rewritten(path, "DROP TABLE entry"),
    "no ledger": lambda path: rewritten(path, "DELETE FROM ledger"),
    "less spent": lambda path: rewritten(path, "UPDATE account SET spent_epsilon = '0'"),
    "an entry less": lambda path: rewritten(path, "DELETE FROM entry"),
    "no sum": lambda path: rewritten(path, "UPDATE account SET spent_epsilon = 'x'"),
    "no limit": lambda path: rewritten(path, "UPDATE account SET epsilon = NULL"),
    "limit below": lambda path: rewritten(path, "UPDATE account SET epsilon = '1/16'"),
    "no record": lambda path: rewritten(path, "UPDATE entry SET record = '{}'"),
    "no parent": lambda path: rewritten(path, "UPDATE account SET parent = 9 WHERE id = 2"),
    "a log": left_with_a_log,
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_file_that_is_not_a_sound_ledger_is_refused_and_left_alone(path, damage):
    filled(Budget.open(path, epsilon=1))
    damage(path)
    before = snapshot(path.parent)
    for given in ({}, {"epsilon": 1}):
        with pytest.raises(ParameterError, match="path = ") as error:
            Budget.open(path, **given)
        assert "\n" not in str(error.value)
        after = snapshot(path.parent)
        # The index of a log is rebuilt by whoever looks; it holds nothing.
        index = {key for key in before.keys() | after.keys() if key[0].endswith("-shm")}
        assert all(before.get(k) == after.get(k) for k in (before.keys() | after.keys()) - index)


def test_there_must_be_a_file_or_an_epsilon(tmp_path):
    for given in ({}, {"delta": 0.5}):
        with pytest.raises(ParameterError, match=r"path = .*epsilon"):
            Budget.open(tmp_path / "none", **given)
    for path in (tmp_path / "no" / "folder", "a\0b", 3, None, tmp_path / ("x" * 300)):
        with pytest.raises(ParameterError, match="path = "):
            Budget.open(path, epsilon=1)
    for bad in ({"epsilon": -1}, {"epsilon": 1, "delta": 2}, {"epsilon": 1, "neighbors": "x"}):
        with pytest.raises(ParameterError, match=list(bad)[-1]):
            Budget.open(tmp_path / "new", **bad)
    assert os.listdir(tmp_path) == []


@forking
@pytest.mark.parametrize("protected", ["file", "folder"])
def test_an_unwritable_file_is_refused_and_left_alone(protected):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        Budget.open(path, epsilon=1)
        path.chmod(0o444 if protected == "file" else 0o666)
        Path(folder).chmod(0o777 if protected == "file" else 0o555)
        before = snapshot(folder)

        def child():
            with pytest.raises(ParameterError, match=r"path = .*(writable|can be written)"):
                Budget.open(path)
            if protected == "folder":
                with pytest.raises(ParameterError, match="path = "):
                    Budget.open(Path(folder) / "new", epsilon=1)

        assert exit_code(forked(as_nobody(child))) == 0
        assert snapshot(folder) == before
        Path(folder).chmod(0o777)


# Mechanisms -------------------------------------------------------------------------------------


def agents(count=2_000):
    X = np.zeros((count, 4), np.uint8)
    return local.Agents(X, X[:, 0], epsilon=2)


MECHANISMS = {
    "loop": lambda **kw: parity.learn(EYE, ONES, epsilon=0.5, **kw),
    "batches": lambda **kw: parity.learn(EYE, ONES, epsilon=0.5, method="batches", **kw),
    "transfer": lambda **kw: parity.transfer(
        EYE, ONES, agents(), epsilon=0.5, alpha=0.1, beta=0.1, **kw
    ),
    "response": lambda **kw: local.randomized_response(ONES, epsilon=0.5, **kw),
    "permute and flip": lambda **kw: noise.permute_and_flip([1, 2], epsilon=0.5, **kw),
    "exponential": lambda **kw: noise.exponential_mechanism([1, 2], epsilon=0.5, **kw),
}


@pytest.mark.parametrize("run", MECHANISMS.values(), ids=MECHANISMS)
def test_a_mechanism_spends_its_epsilon_once(make, run):
    budget = make(1)
    run(budget=budget, random_state=1)
    assert budget.spent == (0.5, 0)
    (entry,) = budget.records
    assert entry.state == "committed"
    assert "test stream" in entry.record.rng
    run(budget=budget)
    with pytest.raises(BudgetExceeded):
        run(budget=budget)
    assert len(budget.records) == 2


@pytest.mark.parametrize("run", MECHANISMS.values(), ids=MECHANISMS)
def test_a_refused_mechanism_draws_no_coin(run):
    coins = np.random.default_rng(1)
    with pytest.raises(BudgetExceeded):
        run(budget=Budget(0.25), random_state=coins)
    assert coins.random() == np.random.default_rng(1).random()


def test_a_refused_transfer_asks_nobody():
    people = agents()
    with pytest.raises(BudgetExceeded):
        parity.transfer(
            EYE, ONES, people, epsilon=1, alpha=0.1, beta=0.1, budget=Budget(0.5)
        )  # fmt: skip
    assert people.remaining == 2_000


def test_the_record_on_the_books_is_the_one_released():
    budget = Budget(1)
    result = parity.learn(EYE, ONES, epsilon=0.5, budget=budget)
    assert budget.records[0].record == result.record


def test_a_mechanism_that_dies_has_spent(monkeypatch):
    budget = Budget(1)
    monkeypatch.setattr(_core, "randomized_response", lambda *args, **kw: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        local.randomized_response(ONES, epsilon=0.5, budget=budget)
    assert states(budget) == ["interrupted"]
    assert budget.spent.epsilon == 0.5


PLAN = parity.plan(4, alpha=0.4, beta=0.1, epsilon=0.5)
REFUSED = {
    "too few records": (InsufficientSamples, lambda b: learned(b, plan=PLAN)),
    "plan for another epsilon": (
        ParameterError,
        lambda b: learned(b, epsilon=0.25, plan=PLAN),
    ),
    "plan for another d": (ParameterError, lambda b: learned(b, plan=PLAN, affine=True)),
    "affine": (ParameterError, lambda b: learned(b, affine=2)),
    "paper, large epsilon": (
        ParameterError,
        lambda b: learned(b, EYE.repeat(10**4, 0), epsilon=2, method="paper"),
    ),
    "relation": (ParameterError, lambda b: learned(b, neighbors="add_remove")),
    "scores": (ShapeError, lambda b: chosen(b, scores=[])),
    "sensitivity": (ParameterError, lambda b: chosen(b, sensitivity=0)),
    "monotonic": (ParameterError, lambda b: chosen(b, monotonic=2)),
    "relation of scores": (ParameterError, lambda b: chosen(b, neighbors="add_remove")),
    "too few agents": (
        AgentsExhausted,
        lambda b: parity.transfer(EYE, ONES, agents(5), epsilon=0.5, alpha=0.1, budget=b),
    ),
}


def learned(budget, X=EYE, epsilon=0.5, **more):
    return parity.learn(X, X[:, 0], epsilon=epsilon, budget=budget, random_state=COINS, **more)


def chosen(budget, scores=(1, 2), **more):
    return noise.permute_and_flip(scores, epsilon=0.5, budget=budget, random_state=COINS, **more)


COINS = np.random.default_rng(1)


@pytest.mark.parametrize(("error", "run"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_is_refused_spends_nothing(error, run):
    budget, before = Budget(10), COINS.bit_generator.state
    with pytest.raises(error):
        run(budget)
    assert budget.records == ()
    assert COINS.bit_generator.state == before


@pytest.mark.parametrize("name", ["HDP_FAST_NUM_THREADS", "HDP_FAST_ISA"])
@pytest.mark.parametrize("run", MECHANISMS.values(), ids=MECHANISMS)
def test_a_bad_setting_spends_nothing(monkeypatch, name, run):
    budget = Budget(10)
    monkeypatch.setenv(name, "many")
    with contextlib.suppress(HdpFastError):
        run(budget=budget)
        pytest.fail("it ran")
    assert budget.records == ()


def test_check_charge_refuses_to_charge_a_fit_that_protects_nobody(make):
    with pytest.raises(ParameterError, match="only a private fit can be charged"):
        check_charge(make(1.0), math.inf)
    check_charge(None, math.inf)
    check_charge(make(1.0), 1.0)


def test_opening_a_file_reads_its_books_at_one_moment(path, monkeypatch):
    """Another process may spend between the reading of accounts and that of entries."""
    in_file(path, 1.0)
    read = tables.LedgerTables.rows
    elsewhere = "import sys; from hdp_fast import Budget, noise; "
    elsewhere += "noise.permute_and_flip([1, 2], epsilon=.25, budget=Budget.open(sys.argv[1]))"

    def rows(books):
        monkeypatch.setattr(tables.LedgerTables, "rows", read)
        subprocess.run([sys.executable, "-c", elsewhere, str(path)], check=True)
        return read(books)

    monkeypatch.setattr(tables.LedgerTables, "rows", rows)
    assert Budget.open(path).spent.epsilon == 0.25
