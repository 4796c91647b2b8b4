"""Ctrl-C in the middle of long kernels: each stops, and soon."""

import os
import signal
import time
from fractions import Fraction

import numpy as np
import pytest
from harness import figure
from processes import exit_code, forked, forking

from hdp_fast import accounting, gf2, noise, parity, statistics
from hdp_fast.data import Chunks
from hdp_fast.learners import Conjunctions, ExponentialLearner, FeatureMap, PrivateSGD
from hdp_fast.learners.noisy_descent import DescentPlan, Grid, IntegerRows
from hdp_fast.learners.statistics_features import feature_sums
from hdp_fast.stability import HazardTable
from hdp_fast.weights import DenseWeights

pytestmark = forking
COINS = np.random.default_rng(0)


def rank():
    rows = np.frombuffer(COINS.bytes(20_000 * 2_500), np.uint8).reshape(20_000, 2_500)
    matrix = gf2.BitMatrix.from_packed(rows, 20_000)
    os.environ["HDP_FAST_ISA"] = "portable"
    return lambda: gf2.rank(matrix)


def no_parity():
    """Only the stop coin ends the loop, after a million tries."""
    X = COINS.integers(0, 2, (20_000, 100), dtype=np.uint8)
    return lambda: parity.learn(X, X[::-1, 0], epsilon=1.0, beta=1e-5)


def no_parity_in_parts():
    """The same in many passes over parts, of which none is long."""
    X = COINS.integers(0, 2, (20_000, 100), dtype=np.uint8)
    parts = Chunks(list(zip(np.split(X, 50), np.split(X[::-1, 0], 50), strict=True)))
    return lambda: parity.learn(parts, epsilon=1.0, beta=1e-5)


def table():
    return lambda: HazardTable.design(10**6, 10**9, epsilon=1, delta=1e-6, beta=0.05)


def Gaussian_noise():
    return lambda: noise.discrete_gaussian(1e6, 10**8)


def weighted_draws():
    return lambda: noise.weighted_draws(np.arange(1, 1000), 3 * 10**8)


def draws():
    weights = DenseWeights(10**6, 0.5, 0.5)
    return lambda: weights.draw(3 * 10**8)


def descent():
    X, y = COINS.random((1000, 50)) / 10, COINS.integers(0, 2, 1000)
    learner = PrivateSGD(loss="logistic", steps=10**7, batch_size=10, noise_multiplier=1.0)
    return lambda: learner.learn(X, y)


def full_batches():
    records = IntegerRows(
        np.ones((200_000, 50), np.int16),
        np.zeros(200_000, np.int16),
        2,
        Grid(10, 2**22, Fraction(1)),
    )
    return lambda: records.descend(DescentPlan(20_000, 1, 1, 1), np.zeros((20_000, 50, 1), int))


def conjunctions():
    X = COINS.integers(0, 2, (50_000, 250), dtype=np.uint8)
    learner = ExponentialLearner(Conjunctions(250, 3), epsilon=1.0)
    return lambda: learner.learn(X, X[:, 0])


def moments():
    X, codes = np.full((30_000, 3000), 0.01, np.float32), np.zeros(30_000, int)
    return lambda: feature_sums(FeatureMap.identity(3000), X, codes, 1, bits=20, second=True)


def bins():
    values, edges = COINS.random(4 * 10**7), np.linspace(0, 1, 10**7)
    return lambda: statistics.histogram(values, edges=edges, epsilon=1.0)


def features():
    X, features = np.zeros((200_000, 500), np.float32), FeatureMap.pca(np.eye(500), 500)
    return lambda: features(X)


def composition():
    """A thousand mechanisms, each with a curve of its own: a single one takes some milliseconds."""
    laws = [accounting.BoundedRange(i / 1000) for i in range(1, 1001)]
    runs = [(accounting.Subsampled(law, draws=1000, rate=1e-3), 1000) for law in laws]
    return lambda: accounting.epsilon(runs, 1e-9)


KERNELS = [
    *(rank, no_parity, no_parity_in_parts, table, Gaussian_noise, weighted_draws),
    *(draws, descent, full_batches, conjunctions, moments, bins, features, composition),
]


@pytest.mark.thorough(
    cases=["rank-1", "table-2", "Gaussian_noise-1", "descent-2", "conjunctions-1"]
)
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_ctrl_c_ends(kernel, threads):
    """Each would take several seconds, or hours; ten seconds tell a kernel that does not listen."""
    reading, writing = os.pipe()

    def child():
        os.environ["HDP_FAST_NUM_THREADS"] = threads
        work = kernel()
        os.write(writing, b"!")
        with pytest.raises(KeyboardInterrupt):
            work()

    number = forked(child)
    os.close(writing)
    assert os.read(reading, 1) == b"!"
    os.close(reading)
    time.sleep(0.2)
    start = time.monotonic()
    os.kill(number, signal.SIGINT)
    assert exit_code(number, 10) == 0
    took = 1000 * (time.monotonic() - start)
    figure(f"Ctrl-C: {kernel.__name__}, {threads} threads", 1, f"stopped after {took:.0f} ms")
