"""Forks, Ctrl-C and threads: what a kernel does with the process that it runs in."""

import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from processes import forking, reply

from hdp_fast import gf2, local, noise, parity
from hdp_fast.exceptions import ParameterError


def random_matrix(size, seed=0):
    rows = np.frombuffer(np.random.default_rng(seed).bytes(size * size // 8), np.uint8)
    return gf2.BitMatrix.from_packed(rows.reshape(size, size // 8), size)


def low_rank_matrix(size, rank, seed):
    """A matrix of that rank whose elimination is handed to the pool."""
    rng = np.random.default_rng(seed)
    left, right = (
        rng.integers(2, size=shape) for shape in ((size - rank, rank), (rank, size - rank))
    )
    top = np.hstack([np.eye(rank, dtype=int), right])
    return gf2.BitMatrix.from_dense(
        np.vstack([top, (left.astype(np.float32) @ top % 2).astype(int)])
    )


# Forks --------------------------------------------------------------------------------------------


@forking
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_forked_child_runs_kernels_after_its_parent_did(threads):
    A = low_rank_matrix(2_000, 1_700, 1)
    assert gf2.rank(A, threads=2) == 1_700
    for _ in range(3):
        assert reply(lambda: str(gf2.rank(A, threads=threads)).encode()) == b"1700"
    assert gf2.rank(A, threads=2) == 1_700


@forking
def test_a_child_of_a_child_runs_kernels():
    A = low_rank_matrix(2_000, 1_700, 2)
    assert gf2.rank(A, threads=2) == 1_700

    def child():
        return b"%d " % gf2.rank(A, threads=2) + reply(lambda: b"%d" % gf2.rank(A, threads=2))

    assert reply(child) == b"1700 1700"


@forking
def test_a_child_forked_while_a_kernel_runs_is_well():
    A, small = random_matrix(12_000), low_rank_matrix(2_000, 1_700, 3)
    running = threading.Thread(target=gf2.rank, args=(A,), kwargs={"threads": 2})
    running.start()
    time.sleep(0.02)
    assert reply(lambda: b"%d" % gf2.rank(small, threads=2)) == b"1700"
    running.join(60)
    assert not running.is_alive()


def coins():
    zeros = np.zeros((1, 256), np.uint8)
    learned = parity.learn(zeros, [0], epsilon=1, beta=1e-9, method="batches")
    return b"".join(
        [
            noise.bernoulli(0.5, 256).tobytes(),
            gf2.solve(zeros, [0]).sample().tobytes(),
            local.randomized_response(zeros[0], epsilon=0.1).tobytes(),
            np.asarray(learned.mask).tobytes(),
        ]
    )


@pytest.mark.entropy
@forking
def test_forked_children_draw_different_coins():
    """Two parts of 256 bytes are equal, or no parity is learned, with probability below 1e-8."""
    drawn = [coins(), reply(coins), reply(coins), coins()]
    parts = [whole[i : i + 256] for whole in drawn for i in range(0, 1024, 256)]
    assert len(set(parts)) == 16


# Whoever imports a module holds a lock, which a child forked meanwhile would wait for for ever.
FIRST_CALLS = """
import sys
import numpy as np
import hdp_fast
from hdp_fast import _core, budget, gf2, learners, local, noise, parity, stability, weights

known = set(sys.modules)
X, y = np.eye(4, dtype=np.uint8), np.ones(4, np.uint8)
gf2.solve(X, y).sample(random_state=np.random.default_rng(1))
noise.discrete_gaussian(2, 5), noise.weighted_draws([1, 2])
noise.permute_and_flip([1, 2], epsilon=1)
local.randomized_response([.5], epsilon=1), local.Agents(X, y, epsilon=1).ask(lambda X, y: y, 2)
shared = weights.DenseWeights(4, .5, .1)
shared.update(y), shared.draw(3), weights.project([1., 2.], .5)
learners.ExponentialLearner(learners.Stumps(4), epsilon=1).learn(X, y, budget=budget.Budget(2))
learners.LinearSeparator().learn(X, y)
parity.learn(X, y, epsilon=1)
stability.count_votes(X, labels=3)
stability.AboveThreshold(9, 0, epsilon=1).answer(y)
print(sorted(set(sys.modules) - known))
"""


def test_first_calls_import_nothing():
    command = [sys.executable, "-W", "ignore", "-c", FIRST_CALLS]
    assert subprocess.check_output(command, text=True, timeout=60) == "[]\n"


# Ctrl-C -------------------------------------------------------------------------------------------

INTERRUPTED = """
import time
import numpy as np
from hdp_fast import gf2, parity

def timed(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start

{setting}
print("started", flush=True)
try:
    work()
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("ended", flush=True)
"""

# The matrix is 64 times the work of the small one, which tells how long it would take.
RANK = """
def matrix(size):
    rows = np.frombuffer(np.random.default_rng(0).bytes(size * size // 8), np.uint8)
    return gf2.BitMatrix.from_packed(rows.reshape(size, size // 8), size)

small, large = matrix(8_000), matrix(32_000)
print(64 * timed(lambda: gf2.rank(small, threads={threads})))
work = lambda: gf2.rank(large, threads={threads})
"""

# No parity fits these labels, so that only the stop coin ends the loop, after a million tries.
LOOP = """
X = np.random.default_rng(0).integers(2, size=(20_000, 100), dtype=np.uint8)
y = np.random.default_rng(1).integers(2, size=20_000, dtype=np.uint8)
work = lambda: parity.learn(X, y, epsilon=1, beta=1e-5)
print(1e9)
"""

# About fifty thousand levels.
TABLE = """
from hdp_fast.stability import HazardTable
work = lambda: HazardTable.design(10**6, 10**9, epsilon=1, delta=1e-6, beta=0.05)
print(1e9)
"""


def interrupt(setting, **environment):
    """What a program prints when Ctrl-C is pressed, after how long, and how long it would take."""
    command = [sys.executable, "-c", INTERRUPTED.replace("{setting}", setting)]
    options = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | environment}
    with subprocess.Popen(command, **options) as process:
        try:
            needed = float(process.stdout.readline())
            assert process.stdout.readline() == "started\n"
            start = time.monotonic()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=10)
        finally:
            process.kill()
    return printed.strip(), time.monotonic() - start, needed


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_rank(threads):
    printed, took, needed = interrupt(RANK.format(threads=threads), HDP_FAST_ISA="portable")
    assert needed > 3
    assert printed == "interrupted"
    assert took < max(needed / 2, 2)


@pytest.mark.thorough(beside="test_ctrl_c_ends_a_long_rank")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_every_long_call_of_the_algebra(threads, monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", "portable")
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
    A = gf2.BitMatrix.random(16_000, 16_000)
    for call in (
        lambda: A @ A,
        lambda: gf2.inverse(A),
        lambda: gf2.solve(A, A),
        lambda: gf2.ple(A),
        lambda: gf2.echelon(A),
        lambda: gf2.nullspace(A[:8_000]),
    ):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.monotonic() - start < 2


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_a_loop_of_many_short_tries(threads):
    printed, _, _ = interrupt(LOOP, HDP_FAST_NUM_THREADS=threads)
    assert printed == "interrupted"


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_the_design_of_a_large_table_and_keeps_nothing_of_it(threads, tmp_path):
    environment = {"HDP_FAST_NUM_THREADS": threads, "XDG_CACHE_HOME": str(tmp_path)}
    printed, took, _ = interrupt(TABLE, **environment)
    assert printed == "interrupted"
    assert took < 2
    assert not list(tmp_path.iterdir())


# Threads ------------------------------------------------------------------------------------------


def test_python_threads_with_their_own_thread_counts_get_right_answers():
    matrices = [(low_rank_matrix(1_800, rank, rank), rank) for rank in (1_300, 1_500, 1_700)]
    x = np.random.default_rng(4).integers(2, size=1_800, dtype=np.uint8)
    wrong = []

    def caller(threads):
        for A, rank in matrices:
            b = gf2.dot(A, x, threads=threads)
            solution = gf2.solve(A, b, threads=threads)
            if (solution.rank, gf2.rank(A, threads=threads)) != (rank, rank):
                wrong.append((threads, rank))
            if not np.array_equal(gf2.dot(A, solution.x), b):
                wrong.append((threads, "solution"))

    callers = [threading.Thread(target=caller, args=(threads,)) for threads in (1, 2, 3, 2, 4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(60)
    assert not any(thread.is_alive() for thread in callers)
    assert wrong == []


def test_threads_may_exceed_the_cores():
    A = low_rank_matrix(1_800, 1_500, 5)
    assert gf2.rank(A, threads=17) == 1_500


@pytest.mark.parametrize("name", ["HDP_FAST_NUM_THREADS", "RAYON_NUM_THREADS"])
@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "", "9" * 30])
def test_a_variable_that_is_no_number_of_threads_is_named(name, text, monkeypatch):
    monkeypatch.delenv("HDP_FAST_NUM_THREADS", raising=False)
    monkeypatch.setenv(name, text)
    for call in (
        lambda: gf2.rank([[1]]),
        lambda: noise.bernoulli(0.5),
        lambda: parity.learn([[1]], [1], epsilon=1),
        lambda: local.randomized_response([1], epsilon=1),
    ):
        with pytest.raises(ParameterError, match=re.escape(f"{name} = {text},")):
            call()


def pool_of_this_process():
    """This process, and how many threads our pool has in it once a kernel has run."""
    noise.bernoulli(0.5, 80_000_000)
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return os.getpid(), sum(name.startswith("hdp-fast") for name in names)


COUNTED = f"""
import os
from pathlib import Path
from hdp_fast import noise
{inspect.getsource(pool_of_this_process)}
print(pool_of_this_process()[1])
"""


def threads_used(**environment):
    """How many threads our pool has in a process with these variables."""
    names = ("HDP_FAST_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", COUNTED]
    return int(subprocess.check_output(command, env=clean | environment, text=True, timeout=60))


OURS = {"HDP_FAST_NUM_THREADS": "5"}
VARIABLES = {
    "schedulers": ({"OMP_NUM_THREADS": "3"}, 3),
    "a list": ({"OMP_NUM_THREADS": " 3 ,2"}, 3),
    "ours": (OURS | {"RAYON_NUM_THREADS": "4", "OMP_NUM_THREADS": "3"}, 5),
    "of rayon": ({"RAYON_NUM_THREADS": "4", "OMP_NUM_THREADS": "3"}, 4),
    "junk of others": ({"OMP_NUM_THREADS": "many"}, len(os.sched_getaffinity(0))),
    "none": ({}, len(os.sched_getaffinity(0))),
}
linux = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs /proc")


@pytest.mark.thorough(cases=3)
@linux
@pytest.mark.parametrize(("environment", "threads"), VARIABLES.values(), ids=VARIABLES)
def test_the_first_variable_that_is_set_says_how_many_threads(environment, threads):
    assert threads_used(**environment) == threads


@linux
def test_workers_of_joblib_use_the_one_thread_that_is_theirs(monkeypatch):
    joblib = pytest.importorskip("joblib")
    for name in ("HDP_FAST_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    workers = len(os.sched_getaffinity(0))
    with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        ran = joblib.Parallel()(joblib.delayed(pool_of_this_process)() for _ in range(4))
    assert os.getpid() not in dict(ran)
    assert set(dict(ran).values()) == {1}


def test_an_argument_wins_over_the_variables(monkeypatch):
    monkeypatch.setenv("RAYON_NUM_THREADS", "none")
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", " 2 ")
    assert gf2.rank([[1]]) == 1
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "none")
    assert gf2.rank([[1]], threads=1) == 1


def test_an_unknown_arm_is_refused(monkeypatch):
    monkeypatch.setenv("HDP_FAST_ISA", "")
    assert gf2.rank([[1]]) == 1
    for arm in "sve", "GFNI":
        monkeypatch.setenv("HDP_FAST_ISA", arm)
        with pytest.raises(ParameterError, match=f"HDP_FAST_ISA = {arm}"):
            gf2.rank([[1]])
