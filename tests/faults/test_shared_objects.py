"""Objects with a lock in the compiled core, shared by threads, forks and signal handlers.

Each program runs in a process of its own: one that gets stuck is killed and is a failure.
"""

import os
import subprocess
import sys

import pytest

COMMON = """
import os, signal, threading, traceback
import numpy as np
from hdp_fast import _core, stability, weights
from hdp_fast.exceptions import ParameterError

coins = np.random.default_rng(3)

def together(*works):
    \"\"\"Run all works at the same time, each in a thread; what any of them raises is raised.\"\"\"
    raised = []
    def guarded(work):
        try:
            work()
        except BaseException as error:
            raised.append(error)
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if raised:
        raise raised[0]

def often(work, times):
    return lambda: [work() for _ in range(times)]

def comparisons(threshold=0):
    return _core.AboveThreshold(threshold, (2, 1), 1 << 60, 1 << 60)
"""

DRAWS = """
shared = weights.DenseWeights(200_000, .1, .1)
together(*[often(lambda: shared.draw(1_000), 60)] * 4)
"""

UPDATES = """
n = 300_000
shared, alone = weights.DenseWeights(n, .1, .1), weights.DenseWeights(n, .1, .1)
losses, bits = coins.random(n), coins.integers(0, 2, n, dtype=np.uint8)
together(often(lambda: shared.update(losses), 20), often(lambda: shared.update(bits), 20))
often(lambda: alone.update(losses), 20)()
often(lambda: alone.update(bits), 20)()
assert shared.updates == 40
assert np.array_equal(shared.draw(1_000, random_state=1), alone.draw(1_000, random_state=1))
"""

EVERYTHING = """
n = 100_000
shared, losses, X = weights.DenseWeights(n, .1, .1), coins.random(n), coins.random((n, 2))
room = shared.updates_left
plan = {"loss": "logistic", "shape": 1.0, "classes": 1, "steps": 20, "batch_size": 10}
plan |= {"radius": 1.0, "bounds": None, "last": False, "start": None}
plan |= {"norm_bound": 1.0, "clip_norm": 1.0}
plan |= {"l1": 0.0, "l2": 0.0, "strong_convexity": 0.0}
plan |= {"numerics": "idealized", "noise_multiplier": (1, 1), "sampling": "fixed"}
together(
    often(lambda: shared.update(losses), 20),
    often(lambda: shared.draw(100), 20),
    often(shared.probabilities, 10),
    often(lambda: (shared.rate, shared.updates, shared.updates_left), 50_000),
    often(lambda: shared.with_parameters(.2, .1).draw(1), 10),
    often(lambda: _core.sgd_learn(
        (X.reshape(-1), 2, np.sign(losses - .5)), shared.compiled, plan, None), 10),
)
assert shared.updates + shared.updates_left == room
"""

ABOVE = """
shared, values = comparisons(), np.zeros(200_000, np.int64)
answer = often(lambda: shared.answer(values, None), 10)
together(answer, answer, often(lambda: shared.left, 1_000))
assert shared.left[1] == (1 << 60) - 20 * len(values)
"""

SHARED = {
    "draws": DRAWS,
    "updates": UPDATES,
    "everything at once": EVERYTHING,
    "comparisons": ABOVE,
}

# Children are forked while another thread is inside calls: they get an answer or are told why not.
FORKED = """
import sys
stop = threading.Event()
def busy():
    while not stop.is_set():
        use()
thread = threading.Thread(target=busy)
thread.start()
seen = set()
for _ in range(20):
    child = os.fork()
    if child == 0:
        status = 3
        try:
            use()
            status = 0
        except ParameterError as error:
            status = 1 if "fork" in str(error) else 2
        finally:
            os._exit(status)
    seen.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
thread.join()
assert seen <= {0, 1}, seen
use()
"""

# The main thread waits for what another one uses for seconds. On a busy machine the signal may come
# late, but a wait that cannot be interrupted ends too late each time.
INTERRUPTED = """
main = threading.main_thread().ident

def interrupted_meanwhile():
    other = threading.Thread(target=work)
    other.start()
    timer = threading.Timer(.2, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        while timer.is_alive() or other.is_alive():
            wait()
    except KeyboardInterrupt:
        return other.is_alive()
    finally:
        timer.join()
        other.join()

print("interrupted meanwhile" if any(interrupted_meanwhile() for _ in range(5)) else "too late")
"""

# A signal handler runs on the very thread whose call it interrupts.
HANDLED = """
said = []
def handler(signum, frame):
    try:
        wait()
    except ParameterError as error:
        said.append(str(error))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, .2, .2)
while not said:
    work()
signal.setitimer(signal.ITIMER_REAL, 0)
wait()
assert "this very thread" in said[0], said
"""

USES = {
    "DenseWeights": """
shared = weights.DenseWeights(200_000, .1, .1)
use = lambda: shared.draw(1_000)
wait = lambda: shared.draw(1)
work = lambda: shared.draw(60_000_000)
""",
    "AboveThreshold": """
shared, values = comparisons(), np.zeros(200_000, np.int64)
many = np.zeros(10_000_000, np.int64)
use = lambda: shared.answer(values, None)
wait = lambda: shared.answer(values[:1], None)
work = lambda: shared.answer(many, None)
""",
    "a session": """
shared, values = stability.AboveThreshold(1 << 30, 0, epsilon=1.0), np.zeros(200_000, np.int64)
many = np.zeros(10_000_000, np.int64)
use = lambda: shared.answer(values)
wait = lambda: shared.answer(values[:1])
work = lambda: shared.answer(many)
""",
}


def finishes(program, **environment):
    """Whatever the program prints, once it has ended well."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMON + program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("program", SHARED.values(), ids=SHARED)
def test_threads_that_share_an_object_wait_for_each_other_and_no_longer(program, threads):
    finishes(program, HDP_FAST_NUM_THREADS=threads)


@pytest.mark.thorough(cases=1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_child_forked_inside_a_call_of_another_thread_does_not_wait_for_it(use):
    finishes(use + FORKED, HDP_FAST_NUM_THREADS="2")


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_ctrl_c_ends_the_wait_for_another_thread(use):
    printed = finishes(use + INTERRUPTED, HDP_FAST_NUM_THREADS="2")
    assert printed == "interrupted meanwhile\n"


@pytest.mark.thorough(cases=1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs interval timers")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_signal_handler_is_told_that_its_own_thread_is_inside_a_call(use):
    finishes(use + HANDLED, HDP_FAST_NUM_THREADS="2")
