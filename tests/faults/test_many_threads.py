"""Eight threads on every object with state: none waits for ever, and totals are exact.

They hold also where an interpreter has no lock of its own: `make wheels-check` runs them there.
"""

import contextlib
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from harness import figure, size, together, watched
from processes import forking
from verbs import COST

from hdp_fast import Budget, gf2, local, noise, parity
from hdp_fast.exceptions import AgentsExhausted, BudgetExceeded, ParameterError
from hdp_fast.labels import PrivateLabeler, SoftLabeler
from hdp_fast.learners import Features, LinearSeparator, PrivateSGD, Stumps
from hdp_fast.stability import (
    AboveThreshold,
    GaussianVote,
    HazardTable,
    OnlineQueryRelease,
    StableRelease,
    VoteTable,
)
from hdp_fast.weights import DenseWeights

pytestmark = forking
COINS = np.random.default_rng(0)
X = COINS.integers(0, 2, (400, 5), dtype=np.uint8)
Y = X[:, 0]
PROMISE = {"epsilon": 1.0, "delta": 1e-5}
THREADS = 8
# Of each thread.
CALLS = size(10, 100)


def until_refused(call, refusal=(BudgetExceeded, AgentsExhausted)):
    """Calls until there is nothing left; how often that was."""
    times = 0
    with contextlib.suppress(*refusal):
        while True:
            call()
            times += 1
    return times


def often(call):
    """Calls a fixed number of times; how often that was."""
    for _ in range(CALLS):
        call()
    return CALLS


def crowd(work):
    """What a work returns in each of the threads, which do it at once."""
    return together([work] * THREADS)


def granted(call, most):
    """Asserts that all threads together are granted all that there is, and no more."""
    assert sum(crowd(lambda: until_refused(call))) == most


# Weights -----------------------------------------------------------------------------------------


def weights_updated_and_drawn_from():
    n = 300_000
    made = DenseWeights(n, 0.1, 0.01)
    losses = np.zeros(n)

    def update():
        made.update(losses)

    def look():
        return made.rate, made.updates, made.updates_left

    calls = [update, update, lambda: made.draw(1000), look] * (THREADS // 4)
    together([lambda call=call: often(call) for call in calls])
    assert made.updates == THREADS // 2 * CALLS


def weights_learned_from():
    n = 20_000
    made = DenseWeights(n, 0.1, 0.1)
    learner = PrivateSGD(loss="logistic", steps=50, noise_multiplier=1.0)
    rows, labels = np.ones((n, 3)) / 2, np.zeros(n, np.uint8)

    def learn():
        learner.learn_weighted(rows, labels, made)

    losses = np.zeros(n)
    works = [lambda: often(learn), lambda: often(lambda: made.update(losses))]
    together(works * (THREADS // 2))
    assert made.updates == THREADS // 2 * CALLS


# People -------------------------------------------------------------------------------------------


def agents():
    made = local.Agents(X, Y, epsilon=1.0)
    granted(lambda: made.ask(lambda X, y: y, 1), len(made))


def remote_agents():
    asked = []

    class ExponentialResult:
        hypothesis: ClassVar = {"kind": "h"}

    def ask(text, k):
        asked.append(k)
        return np.zeros(k, np.uint8)

    made = local.RemoteAgents(ask, epsilon=1.0, count=300)
    granted(lambda: made.test(ExponentialResult(), 1), 300)
    assert sum(asked) == 300


def masked_agents():
    concept = local.MaskedParity(np.array([1, 0, 1, 1], np.uint8), 0)
    made = local.MaskedParityAgents(concept, 300, epsilon=1.0)
    granted(lambda: made.ask(lambda X, y: y, 1), 300)


def oracle_of_agents():
    needed = local.agents_per_query(tau=0.4, beta=0.1, queries=40, epsilon=2.0)
    people = np.zeros((50 * needed, 2), np.uint8)
    asked = local.Agents(people, people[:, 0], epsilon=2.0)
    made = local.LocalSQOracle(asked, queries=40, beta=0.1)

    def ask():
        return until_refused(lambda: made.query(lambda X, y: y * 1.0, 0.4), (ParameterError,))

    assert sum(crowd(ask)) == 40
    assert (made.asked, asked.remaining) == (40 * needed, 10 * needed)


def oracle_of_a_curator():
    made = local.CuratorOracle(X, Y, epsilon=100.0, queries=60, beta=0.1)
    granted(lambda: made.query(lambda X, y: y * 1.0, 1.0), 60)


def aggregates():
    for randomizer, values in (
        (local.BinaryResponse(1.0, (0, 1)), np.full(10, 0.5)),
        (local.KaryResponse(3, 1.0), np.arange(10) % 3),
    ):
        made, reports = randomizer.aggregate(), randomizer.sample(values)
        times = sum(crowd(lambda made=made, reports=reports: often(lambda: made.add(reports))))
        assert made.reports == 10 * times
        alone = randomizer.aggregate()
        for _ in range(times):
            alone.add(reports)
        assert made.to_json() == alone.to_json()


# Votes --------------------------------------------------------------------------------------------


def session_with_bottoms():
    made = HazardTable.design(5, 200, **PROMISE, beta=0.1).session()
    granted(lambda: made.answer([900, 0]), 200)


def session_that_ends_with_bottoms():
    made = HazardTable.design(9, 5000, **PROMISE, beta=0.1).session()
    answers = Counter()

    def ask():
        answers[made.answer([50, 50])] += 1

    crowd(lambda: until_refused(ask))
    assert made.bottoms_left == 0
    assert made.queries_left == 5000 - sum(answers.values())


def session_without_bottoms():
    made = VoteTable.design(200, **PROMISE, beta=0.1).session()
    granted(lambda: made.answer([60, 40]), 200)


def session_of_a_gaussian():
    made = GaussianVote.design(300, **PROMISE, beta=0.1, labels=3).session()
    granted(lambda: made.answer([900, 0, 0]), 300)


def above_threshold():
    made = AboveThreshold(9, 0, epsilon=1.0, queries=300)
    granted(lambda: made.answer(10**6), 300)


def online_release():
    made = OnlineQueryRelease(9, **PROMISE, queries=300)
    granted(lambda: made.answer([10**6, 0]), 300)


def stable_release():
    made = StableRelease(**PROMISE)
    crowd(lambda: often(lambda: made.release([10**6, 0])))


def yes(X, y):
    return lambda Q: np.ones(len(Q), int)


def half(X, y):
    return lambda Q: np.full(len(Q), 0.5)


def labeler():
    made = PrivateLabeler(
        yes, **PROMISE, queries=48, max_unstable=1, classes=[0, 1], members=2, table="vote"
    )
    made.fit(X, Y)
    granted(lambda: made.label(X[:1]), 48)


def soft_labeler():
    made = SoftLabeler(half, **PROMISE, queries=24, max_unstable=3, members=10).fit(X, Y)
    crowd(lambda: until_refused(lambda: made.score(X[:1], 4)))
    assert made.queries_left == 0 or made.unstable_left == 0


# Books --------------------------------------------------------------------------------------------


def pay(budget):
    with budget.reserve(COST):
        pass


def budget():
    made = Budget(2.0)
    granted(lambda: pay(made), 200)
    assert made.remaining.epsilon == 0


def budget_in_a_file():
    with tempfile.TemporaryDirectory() as folder:
        made = Budget.open(Path(folder) / "ledger", epsilon=0.2)
        granted(lambda: pay(made), 20)
        assert made.remaining.epsilon == 0


def budget_of_fits():
    made = Budget(1.0)
    granted(lambda: parity.learn(X, Y, epsilon=0.125, budget=made), 8)
    assert made.spent.epsilon == 1


def reservation():
    def enter():
        with made:
            entered.append(made)

    for _ in range(CALLS // 2):
        made, entered = Budget(1.0).reserve(COST), []
        crowd(lambda: until_refused(enter, (ParameterError,)))
        assert entered == [made]


def parts_of_a_budget():
    made = Budget(1.0)
    parts = made.parallel()
    names = "ab" * (THREADS // 2)
    together([lambda name=name: until_refused(lambda: pay(parts.part(name))) for name in names])
    assert made.spent.epsilon == 1
    assert sum(entry.record == COST for entry in made.records) == 200


# What is only read, or keeps a start for the next call --------------------------------------------


def matrix():
    dense = COINS.integers(0, 2, (300, 300), dtype=np.uint8)
    made = gf2.BitMatrix.from_dense(dense)
    rank = gf2.rank(made)
    ranks = crowd(lambda: {gf2.rank(made, threads=2) for _ in range(CALLS)})
    assert ranks == [{rank}] * THREADS


def solution():
    dense = COINS.integers(0, 2, (40, 90), dtype=np.uint8)
    made = gf2.solve(dense, dense[:, 0])

    def sample():
        assert np.array_equal(dense @ made.sample() % 2, dense[:, 0])

    crowd(lambda: often(sample))


def row_space():
    whole = gf2.RowSpace.of(X, Y)
    halves = gf2.RowSpace.of(X[:200], Y[:200]), gf2.RowSpace.of(X[200:], Y[200:])

    def add():
        assert halves[0] + halves[1] == whole
        assert halves[0].rank <= whole.rank

    crowd(lambda: often(add))


def generator():
    made = np.random.default_rng(1)
    drawn = crowd(
        lambda: [tuple(noise.discrete_laplace(10**6, 8, random_state=made)) for _ in range(CALLS)]
    )
    assert len({draws for part in drawn for draws in part}) == THREADS * CALLS


def features():
    made, stumps = Features(X), Stumps(5)
    alone = stumps.errors(made, Y)

    def count():
        assert np.array_equal(stumps.errors(made, Y, threads=2), alone)

    crowd(lambda: often(count))


def separator():
    made, rows = LinearSeparator(), X.astype(float)
    drawn = [np.arange(0, 300), np.arange(100, 400)] * (THREADS // 2)

    def learn(indices):
        for _ in range(CALLS // 4):
            assert made.learn_indices(rows, Y, indices).errors == 0

    together([lambda some=some: learn(some) for some in drawn])


OBJECTS = [
    *(weights_updated_and_drawn_from, weights_learned_from),
    *(agents, remote_agents, masked_agents, oracle_of_agents, oracle_of_a_curator, aggregates),
    *(session_with_bottoms, session_that_ends_with_bottoms, session_without_bottoms),
    *(session_of_a_gaussian, above_threshold, online_release, stable_release),
    *(labeler, soft_labeler, budget, budget_in_a_file, budget_of_fits, reservation),
    parts_of_a_budget,
    *(matrix, solution, row_space, generator, features, separator),
]


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize("attack", OBJECTS, ids=lambda attack: attack.__name__)
def test_eight_threads_share(attack):
    def child():
        # So often that whatever can come between two steps does.
        sys.setswitchinterval(1e-5)
        attack()

    run = watched(child, seconds=60)
    assert run.code == 0, run.err
    figure(f"eight threads: {attack.__name__.replace('_', ' ')}", CALLS, "ended, totals exact")


FIRST_USES = """
import sys, threading
import hdp_fast

def use():
    start.wait()
    try:
        for name in hdp_fast.__all__:
            room = getattr(hdp_fast, name)
            [getattr(room, name) for name in getattr(room, "__all__", ())]
    except BaseException as error:
        raised.append(error)

start, raised = threading.Barrier(8), []
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not raised, raised
print(getattr(sys, "_is_gil_enabled", lambda: True)())
"""


@pytest.mark.thorough(beside="test_eight_threads_share")
def test_eight_threads_import_all_names_at_once():
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Nor does the compiled module turn a lock on where there is none.
    assert done.stdout.strip() == str(not sysconfig.get_config_var("Py_GIL_DISABLED"))
