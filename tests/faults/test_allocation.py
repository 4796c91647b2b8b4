"""Kernels in a process that may take no more memory: MemoryError, never the end of the process.

HDP_FAST_FAULTS=long tries every mebibyte up to 160.
"""

import os
import subprocess
import sys

import lengths
import pytest

resource = pytest.importorskip("resource")

LONG = lengths.FAULTS
ROOMS = [range(1, 161)] if LONG else [[1, 31, 63], [7, 47, 95]]

# Every kernel is called in a forked child, whose address space may grow by so many mebibytes.
PROGRAM = """
import os, resource, signal, sys
import numpy as np
from hdp_fast import _core, gf2, learners, local, noise, parity, stability, weights

coins = np.random.default_rng(1)
{prepare}
def grown():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()

def call(room):
    \"\"\"How a child ends: 0 for a result, 1 for an error that says what is missing.\"\"\"
    child = os.fork()
    if child == 0:
        status = 2
        try:
            most = grown() + (room << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            kernel()
            status = 0
        except (MemoryError, OSError):
            status = 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

wrong = [(room, status) for room in {rooms} if (status := call(room)) not in (0, 1)]
print(wrong)
"""

KERNELS = {
    "gaussian": "kernel = lambda: noise.discrete_gaussian(3, 3_000_000)",
    "wide gaussian": "kernel = lambda: noise.discrete_gaussian(10**6, 3_000_000)",
    "rounded gaussian": "kernel = lambda: noise.rounded_gaussian(10**6, 3_000_000)",
    "laplace": "kernel = lambda: noise.discrete_laplace(10**4, 3_000_000)",
    "bernoulli": "kernel = lambda: noise.bernoulli(.3, 20_000_000)",
    "weighted draws": """
heavy = np.ones(1_000_000, np.uint64)
kernel = lambda: noise.weighted_draws(heavy, 1_000_000)
""",
    "selection": """
scores = np.arange(2_000_000)
kernel = lambda: noise.permute_and_flip(scores, epsilon=1)
""",
    "responses": """
bits = coins.integers(0, 2, 20_000_000, dtype=np.uint8)
kernel = lambda: local.randomized_response(bits, epsilon=1)
""",
    "descent": """
X, y = coins.random((100_000, 10)), np.ones(100_000)
plan = {"loss": "logistic", "shape": 1.0, "classes": 1, "steps": 2, "batch_size": 1_000_000}
plan |= {"radius": 1.0, "bounds": None, "last": False, "start": None}
plan |= {"norm_bound": 1.0, "clip_norm": 1.0}
plan |= {"l1": 0.0, "l2": 0.0, "strong_convexity": 0.0}
plan |= {"numerics": "exact", "noise_multiplier": (1, 1), "sampling": "poisson"}
kernel = lambda: _core.sgd_learn((X.reshape(-1), 10, y), None, plan, None)
""",
    "separator": """
X, y = coins.random((200_000, 10)), coins.integers(0, 2, 200_000)
kernel = lambda: learners.LinearSeparator(cost=1.0).learn(X, y)
""",
    "pass": """
X, y = coins.random(2_000_000), np.zeros(200_000)
kernel = lambda: (
    _core.adaptation_pass((X, 10, y), "softmax", np.ones(1_000), np.ones(200_000), None, None),
    _core.adaptation_integers(X, 10, 1.0, 1e4, None),
)
""",
    "rank": """
rows = np.frombuffer(coins.bytes(2_500 * 2_000), np.uint8).reshape(2_500, 2_000)
A = gf2.BitMatrix.from_packed(rows, 16_000)
kernel = lambda: gf2.rank(A)
""",
    "systems": """
A, b = coins.integers(0, 2, (60_000, 300), dtype=np.uint8), np.zeros(60_000, np.uint8)
A[:, 100:] = A[:, :200]
kernel = lambda: (gf2.solve(A, b).nullspace(), gf2.BitMatrix.from_dense(A)[1:].to_dense())
""",
    "parity": """
X, y = coins.integers(0, 2, (100_000, 100), dtype=np.uint8), np.zeros(100_000, np.uint8)
kernel = lambda: parity.learn(X, y, epsilon=1, method="batches", neighbors="add_remove")
""",
    "conjunctions": """
X, y = coins.integers(0, 2, (10_000, 100), dtype=np.uint8), np.zeros(10_000, np.uint8)
kernel = lambda: learners.Conjunctions(100, 3).errors(X, y)
""",
    "lists": """
masks, X = coins.integers(0, 2, (20_000, 100), dtype=np.uint8), np.eye(100, dtype=np.uint8)
kernel = lambda: learners.Parities(masks).errors(X, X[0])
""",
    "halfspaces": """
X, y = coins.random((50_000, 20)), coins.integers(0, 2, 50_000)
planes = learners.Halfspaces(coins.random((10_000, 20)), np.zeros(10_000))
kernel = lambda: (planes.errors(X[:500], y[:500]), planes.predict(0, X))
""",
    "votes": """
votes = coins.integers(0, 3, (20, 500_000), dtype=np.uint8)
goal = {"queries": 10**6, "epsilon": 1, "delta": 1e-6, "beta": .1}
table = stability.HazardTable.design(max_unstable=100, **goal)
def kernel():
    counts = stability.count_votes(votes, labels=3)
    stability.distance(counts)
    table.session().answer(counts)
""",
    "ones": """
ones = coins.integers(0, 20, 2_000_000, dtype=np.uint32)
goal = {"queries": 10**7, "epsilon": 1, "delta": 1e-6, "beta": .1}
table = stability.HazardTable.design(max_unstable=100, **goal)
kernel = lambda: (
    table.session().answer_ones(ones, 20), table.session().answer_ones(ones[:10], 5_000_000)
)
""",
    "scores": """
scores = coins.random((5, 300_000))
goal = {"queries": 10**7, "epsilon": 1, "delta": 1e-6, "beta": .1}
table = stability.HazardTable.design(max_unstable=100, **goal)
kernel = lambda: table.session().answer_scores(scores, bins=100)
""",
    "comparisons": """
values = np.zeros(1_000_000, np.int64)
kernel = lambda: stability.AboveThreshold(10**7, 0, epsilon=1).answer(values)
""",
    "projection": """
w = coins.random(2_000_000)
kernel = lambda: weights.project(w, .3)
""",
    "weights": """
losses = coins.random(1_000_000)
def kernel():
    shared = weights.DenseWeights(1_000_000, .1, .1)
    shared.update(losses)
    shared.draw(1_000_000)
    shared.with_parameters(.2, .1).probabilities()
""",
}


@pytest.mark.thorough(cases=3)
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("name", KERNELS)
def test_memory_that_is_missing_is_an_error(name):
    rooms = ROOMS[[*KERNELS].index(name) % len(ROOMS)]
    program = PROGRAM.replace("{prepare}", KERNELS[name]).replace("{rooms}", repr(rooms))
    # BLAS ends the process itself where its own threads find no memory.
    environment = {"OPENBLAS_NUM_THREADS": "1", "HDP_FAST_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=900 if LONG else 120,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr
