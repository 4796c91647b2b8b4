"""Forks at bad moments: children work, answer for no one else, and toss coins of their own."""

import threading
from typing import ClassVar

import joblib
import numpy as np
import pytest
from harness import figure, program, size, together, watched
from processes import exit_code, forked, forking, reply
from verbs import COST

from hdp_fast import Budget, local, noise, weights
from hdp_fast.exceptions import ParameterError

pytestmark = forking

X = np.random.default_rng(0).integers(0, 2, (200, 6), dtype=np.uint8)
Y = X[:, 0]


# People -------------------------------------------------------------------------------------------


def simulated():
    made = local.Agents(X, Y, epsilon=1.0)
    return made, lambda: made.ask(lambda X, y: y, 3)


def masked():
    concept = local.MaskedParity(np.array([1, 0, 1, 1], np.uint8), 0)
    made = local.MaskedParityAgents(concept, 200, epsilon=1.0)
    return made, lambda: made.ask(lambda X, y: y, 3)


def remote():
    made = local.RemoteAgents(lambda text, k: np.zeros(k, np.uint8), epsilon=1.0, count=200)

    class ExponentialResult:
        hypothesis: ClassVar = {"kind": "h"}

    return made, lambda: made.test(ExponentialResult(), 3)


@pytest.mark.parametrize("population", [simulated, masked, remote])
def test_agents_are_asked_in_one_process(population):
    """What a fork has copied are the same people, and each of them answers once."""
    people, ask = population()

    def child():
        with pytest.raises(ParameterError, match="process"):
            ask()

    run = watched(child)
    assert run.code == 0, run.err
    ask()
    assert people.remaining == 197


# Coins --------------------------------------------------------------------------------------------


def coins():
    """What no one draws twice: 256 bits."""
    return noise.bernoulli(0.5, 256).tobytes()


def many_coins(rounds):
    return b"".join(coins() for _ in range(rounds))


@pytest.mark.entropy
def test_no_process_and_no_thread_tosses_the_coins_of_another():
    """Two of some hundred draws of 256 bits are equal with probability below 1e-70."""
    forks, threads, rounds = size(10, 120), size(8, 32), size(5, 50)
    drawn = [reply(coins) for _ in range(forks)]
    # Forked while the pool of this process is warm, and from a child, too.
    drawn += [reply(lambda: reply(coins)) for _ in range(size(2, 20))]
    batches = reply(
        lambda: b"".join(
            b"".join(part)
            for part in together([lambda: [coins() for _ in range(rounds)]] * threads)
        )
    )
    drawn += [batches[at : at + 256] for at in range(0, len(batches), 256)]
    assert len(batches) == 256 * threads * rounds
    drawn += [coins(), coins()]
    assert len(set(drawn)) == len(drawn)
    figure("coins after forks and in threads", len(drawn), "all different")


def test_no_worker_of_loky_tosses_the_coins_of_another():
    count = size(8, 40)
    work = joblib.delayed(noise.bernoulli)
    drawn = joblib.Parallel(n_jobs=2, backend="loky")(work(0.5, 256) for _ in range(count))
    assert len({bits.tobytes() for bits in drawn}) == count
    figure("coins in processes of loky", count, "all different")


# Moments ------------------------------------------------------------------------------------------


def kernel():
    """Something long enough to fork in the middle of."""
    return weights.project(np.ones(200_000), 0.5).sum(), noise.bernoulli(0.5, 100_000).sum()


def test_children_forked_while_kernels_run_are_well():
    forks, stop = size(10, 60), threading.Event()
    kernel()  # first calls are another test's

    def work():
        while not stop.is_set():
            kernel()

    busy = [threading.Thread(target=work) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(forks):
            assert exit_code(forked(kernel)) == 0
    finally:
        stop.set()
        for thread in busy:
            thread.join(30)
    figure("forks while kernels run", forks, "all children right")


def test_children_forked_while_threads_pay_are_well(memory):
    forks, stop = size(10, 60), threading.Event()
    budget = Budget.open(memory / "ledger", epsilon=1000)

    def pay():
        with budget.reserve(COST):
            pass

    def work():
        while not stop.is_set():
            pay()

    busy = [threading.Thread(target=work) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(forks):
            assert exit_code(forked(pay)) == 0
    finally:
        stop.set()
        for thread in busy:
            thread.join(30)
    assert {entry.state for entry in budget.records} == {"committed"}
    assert budget.spent.epsilon == pytest.approx(0.01 * len(budget.records))
    figure("forks while threads pay from one ledger", forks, "all children right")


# An interpreter in which no call was made yet; each child of it makes another first call in a
# thread, and forks while that thread imports whatever it still has to.
FIRST = """
import os, sys, threading, time
import numpy as np
from hdp_fast import Budget, gf2, local, noise, parity, stability, weights

class Slow:
    def find_spec(self, name, path=None, target=None):
        importing.set()
        time.sleep(0.3)

def hangs(call):
    sys.meta_path.insert(0, Slow())
    thread = threading.Thread(target=call)
    thread.start()
    importing.wait(0.3)
    child = os.fork()
    if child == 0:
        try:
            sys.meta_path.pop(0)
            call()
        finally:
            os._exit(0)
    thread.join()
    for _ in range(300):
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.01)
    os.kill(child, 9)
    return True

importing, children = threading.Event(), {}
for text in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = hangs(lambda: eval(text))
        finally:
            os._exit(status)
    children[child] = text
for child, text in children.items():
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        print(text)
"""

CALLS = [
    "weights.project(np.ones(4), 0.5)",
    "weights.DenseWeights(4, 0.5, 0.5).update(np.ones(4))",
    "local.Agents(np.ones((4, 2)), [1, 0, 1, 0], epsilon=1.0).ask(lambda X, y: y, 2)",
    "local.randomized_response([0, 1], epsilon=1.0)",
    "local.BinaryResponse(1.0, (0, 1)).sample([0.5])",
    "parity.learn([[1]], [1], epsilon=1.0)",
    "noise.permute_and_flip([1, 2], epsilon=1.0)",
    "stability.StableRelease(epsilon=1.0, delta=1e-3).release([3, 1])",
    "Budget(1.0).sequential(0.5)",
    "gf2.rank([[1]])",
]


def test_children_forked_during_first_calls_are_well():
    assert program(FIRST, *CALLS) == "", "these hung in the child"
    figure("forks during first calls", len(CALLS), "all children right")
