"""Arrays that another thread of the caller keeps changing while a kernel reads them.

What a kernel returns then is no one's promise; but it neither panics nor harms an object for good.
HDP_FAST_FAULTS=long races a hundred times as long.
"""

import contextlib
import os
import threading
import time

import numpy as np
import pytest

from hdp_fast import _core, adaptation, gf2, learners, local, noise, stability, weights
from hdp_fast._support.validate import bits as bits_of
from hdp_fast.budget import Budget
from hdp_fast.exceptions import HdpFastError
from hdp_fast.learners.linear_model import validate_classes

SECONDS = 30.0 if os.environ.get("HDP_FAST_FAULTS") == "long" else 0.3
N = 60_000


class Race:
    """Arrays of a few values each, which a thread keeps rewriting with what may stand in them."""

    def __init__(self, seed):
        self._coins = np.random.default_rng(seed)
        self._kept = []

    def array(self, size, dtype, *values, rare=()):
        """An array of these values, and now and then a whole stretch of the rare ones."""
        made = self._coins.choice(np.array(values, dtype), size)
        patterns = self._coins.choice(np.array(values, dtype), (4, 4_096))
        if rare:
            patterns[0] = self._coins.choice(np.array(rare, dtype), 4_096)
        self._kept.append((made, patterns))
        return made

    def run(self, work):
        """Call work again and again beside the thread that writes; what it refuses is fine."""
        stop = threading.Event()
        writer = threading.Thread(target=self._write, args=(stop,))
        writer.start()
        calls, end = 0, time.monotonic() + SECONDS
        try:
            while time.monotonic() < end or not calls:
                with contextlib.suppress(HdpFastError):
                    work()
                calls += 1
        finally:
            stop.set()
            writer.join()
        return calls

    def _write(self, stop):
        coins = np.random.default_rng(1)
        while not stop.is_set():
            for target, patterns in self._kept:
                start = int(coins.integers(max(1, len(target) - patterns.shape[1])))
                part = target[start : start + patterns.shape[1]]
                part[:] = patterns[coins.integers(len(patterns)), : len(part)]


def count_votes(race):
    votes = race.array(300 * 2_000, np.uint8, *range(60)).reshape(300, 2_000)
    return lambda: stability.count_votes(votes, labels=60)


def answer_ones(race):
    ones = race.array(N, np.uint32, 0, 4, 9, 2**32 - 1)
    table = stability.HazardTable.design(
        max_unstable=9, queries=100, epsilon=1, delta=1e-6, beta=0.1
    )._table
    return lambda: table.answer_ones(ones, 9, None, None)


def answer_counts(race):
    counts = race.array(3 * N, np.uint32, 0, 7, 2**32 - 1)
    table = stability.HazardTable.design(
        max_unstable=9, queries=100, epsilon=1, delta=1e-6, beta=0.1
    )._table
    return lambda: table.answer_counts(counts, 3, 1 << 40, None)


def pluralities(race):
    counts = race.array(3 * N, np.uint32, 0, 7, 2**32 - 1)
    return lambda: _core.pluralities(counts, 3)


def answer_scores(race):
    scores = race.array(20 * 3_000, np.float64, 0, 0.5, 1, -1e300, np.inf, np.nan)
    table = stability.HazardTable.design(
        max_unstable=9, queries=100, epsilon=1, delta=1e-6, beta=0.1
    )._table
    return lambda: table.answer_scores(scores, 3_000, 50, (1 << 40, 1 << 40), None)


def compared(race):
    values = race.array(N, np.int64, -(2**63), 0, 2**63 - 1)
    shared = _core.AboveThreshold(0, (2, 1), 1 << 60, 1 << 60)
    return lambda: shared.answer(values, None)


def update(race):
    shared, losses = weights.DenseWeights(N, 0.1, 0.5), race.array(N, np.float64, 0, 0.5, 1, 2, 1e9)
    bits = race.array(N, np.uint8, 0, 1, 1, 255)

    def work():
        for values in (losses, bits):
            with contextlib.suppress(HdpFastError):
                shared.update(values)
        assert len(shared.draw(10)) == 10

    return work


def project(race):
    w = race.array(300_000, np.float64, 0, 1, 1e-320, 1e308, np.inf, np.nan)
    return lambda: weights.project(w, 0.3)


def project_core(race):
    # Past the check of the values, which the other thread may change right after it.
    w = race.array(300_000, np.float64, 0, 1, 1e-320, 1e308, np.inf, np.nan, -1)
    return lambda: _core.project(w, 0.3)


def weighted(race):
    integers = race.array(N, np.uint64, 0, 1, 2**40, 2**63)
    return lambda: noise.weighted_draws(integers, 1_000)


def weighted_core(race):
    integers = race.array(N, np.uint64, 0, 1, 2**40, 2**63)
    return lambda: _core.weighted_draws(integers, 1_000, None)


def selected(race):
    scores = race.array(1_000, np.int64, -(2**63), 0, 1, 2**63 - 1)
    return lambda: noise.permute_and_flip(scores, epsilon=1)


def responses(race):
    bits = race.array(N, np.uint8, 0, 1, 2)
    fractions = race.array(N, np.float64, 0, 0.3, 1, np.nan, -1, 1e300)

    def work():
        for values in (bits, fractions):
            with contextlib.suppress(HdpFastError):
                local.randomized_response(values, epsilon=1)

    return work


def device_responses(race):
    values = race.array(N, np.float64, 0, 0.3, 1, np.nan, -1, 1e300)
    places = race.array(N, np.int64, -(2**63), 0, 5, 2**63 - 1)

    def work():
        _core.respond_binary(values, (0.0, 1.0), 1.0, None)
        _core.respond_noisy(values, (0.0, 1.0), 20, "laplace", (1 << 20, 1), None)
        _core.respond_window(values, (0.0, 1.0), 20, 1 << 19, 1.0, None)
        _core.respond_kary(places, 7, 1.0, None)
        _core.respond_subsets(places, 7, 2, None, 1.0, None)
        _core.respond_subsets(places, 7, 2, 7, 1.0, None)
        _core.respond_geometry(places, 7, 2, 3, 1.0, None)

    return work


def paid_responses(race):
    bits, budget = race.array(4_096, np.uint8, 0, 1, rare=(2, 255)), Budget(1e6)

    def work():
        before = budget.remaining.epsilon
        try:
            local.randomized_response(bits, epsilon=1, budget=budget)
        except HdpFastError:
            assert budget.remaining.epsilon == before

    return work


def reports(race):
    told = race.array(4_096, np.int64, 0, 5, 6, rare=(-1, 7, 900, 2**40))
    kary = local.KaryResponse(7, 1.0)

    def work():
        assert kary.aggregate(told).reports == len(told)

    return work


def classes(race):
    y = race.array(4_096, np.int64, 0, 1, rare=(-1, 7, 2**40))

    def work():
        for labels in (validate_classes(y, len(y), 2), bits_of("y", y)):
            assert 0 <= labels.min() <= labels.max() <= 1

    return work


def records(race, dtype=np.float64):
    X = race.array(20_000 * 3, dtype, 0, 1, -1, 1e30, np.inf, np.nan)
    return X, race.array(20_000, np.float64, 1, -1, 0, 2, np.inf, np.nan)


def descended(race):
    X, y = records(race)
    penalties = {"l1": 0.0, "l2": 0.0, "strong_convexity": 0.0}
    domain = {"radius": 1.0, "bounds": None, "last": False, "start": None}
    bounds = domain | {"norm_bound": 1.0, "clip_norm": 1.0}
    plan = {"loss": "logistic", "shape": 1.0, "classes": 1, "steps": 50, "batch_size": 2_000}
    plan |= {"sampling": "poisson"}
    plan |= bounds | penalties | {"numerics": "exact", "noise_multiplier": (1, 1)}

    def work():
        _core.sgd_learn((X, 3, y), None, plan, None)

    return work


def losses(race):
    X, y = records(race, np.float32)
    model = np.ones(3)

    def work():
        _core.linear_losses((X, 3, y), 1.0, model, "hinge", 1.0, 2.0)
        _core.linear_slopes((X, 3, y), 1.0, model, "squared", 1.0)

    return work


def passes(race):
    X, y = records(race)
    given = race.array(20_000, np.float64, 0, 1, np.nan)

    def work():
        _core.adaptation_pass((X, 3, y), "logistic", np.ones(3), (1.0, 1.0, 0.0), None, None)
        _core.adaptation_pass((X, 3, y), "softmax", np.ones(6), given, None, None)
        _core.adaptation_pass((X, 3, y), "squared", np.ones(3), given, (1e3, 1e4, 1e4), None)
        _core.adaptation_integers(X, 3, 1.0, 1e4, None)

    return work


def discrepancies(race):
    X = race.array(2_000 * 2, np.float64, 0, 0.5, -0.5, np.nan).reshape(-1, 2)
    Z = np.random.default_rng(1).random((100, 2)) / 2
    return lambda: adaptation.discrepancy(X, X[:, 0], Z, Z[:, 0], radius=1.0)


def separated(race):
    X = race.array(5_000 * 3, np.float64, 0, 1, -1, np.inf, np.nan)
    y, rows = race.array(5_000, np.uint8, 0, 1, 255), np.arange(5_000)
    return lambda: _core.separate(
        X, 3, y, rows, None, {"cost": 1.0, "margin": 1.0, "intercept": True}
    )


def halfspaces(race):
    X, y = race.array(N * 3, np.float64, 0, 1, np.nan), race.array(N, np.uint8, 0, 1, 255)
    W, b = race.array(30 * 3, np.float64, 0, 1, np.nan), np.zeros(30)
    return lambda: _core.halfspace_errors(X, y, W, b, None)


def conjunctions(race):
    X = race.array(N * 4, np.uint8, 0, 1, 1, 0, 255).reshape(-1, 4)
    y = race.array(N, np.int64, 0, 1, -1)
    hypotheses = learners.Conjunctions(4, 3)
    return lambda: hypotheses.errors(X, y)


def systems(race):
    A = race.array(900 * 300, np.uint8, 0, 1, 1, 0).reshape(900, 300)
    b = race.array(900, np.int32, 0, 1, 7)

    def work():
        gf2.rank(A)
        gf2.BitMatrix.from_packed(A, 2_400)
        try:
            gf2.rank(A[:, ::-1].T)
        finally:
            gf2.solve(A, b)

    return work


RACES = [
    *(count_votes, answer_ones, answer_counts, pluralities, answer_scores, compared, update),
    *(project, project_core, weighted, weighted_core, selected, responses, device_responses),
    *(paid_responses, reports, classes),
    *(descended, losses, passes, discrepancies, separated, halfspaces, conjunctions, systems),
]


@pytest.mark.thorough(cases=6)
@pytest.mark.parametrize("prepare", RACES, ids=lambda prepare: prepare.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_that_change_meanwhile_do_no_harm(prepare, monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "2")
    race = Race(seed=7)
    assert race.run(prepare(race)) > 0


def test_an_array_that_another_call_writes_is_refused_by_name():
    w, raised = np.random.default_rng(1).random(300_000), []
    end = time.monotonic() + SECONDS

    def calls(work):
        while time.monotonic() < end:
            try:
                work()
            except BaseException as error:
                raised.append(error)

    works = (lambda: weights.project(w, 0.5, out=w), lambda: weights.project(w, 0.5))
    threads = [threading.Thread(target=calls, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(error, HdpFastError) for error in raised), raised
    assert all("in use by another call" in str(error) for error in raised)
