"""The audit: bounds that hold, events that are found, and a search that cannot fool itself."""

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from itertools import cycle

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from hdp_fast.audit import lower_bound
from hdp_fast.exceptions import ParameterError, UtilityWarning

CONFIDENCE = 0.999


def bound(mechanism, data=0, neighbor=1, *, runs=4_000, confidence=CONFIDENCE, **more):
    return lower_bound(
        mechanism, data, neighbor, runs=runs, confidence=confidence, threads=1, **more
    )


def counted(hits, misses, runs):
    """A mechanism that answers 1 exactly so often on 0, and on 1."""
    answers = [cycle([1] * count + [0] * (runs - count)) for count in (hits, misses)]
    return lambda side: next(answers[side])


@each_case("delta", [0.0, 0.05])
@each_case(("hits", "misses"), [(70, 20), (100, 0), (100, 100), (0, 0), (0, 50), (60, 50), (5, 1)])
def test_the_bound_is_that_of_clopper_and_pearson(hits, misses, delta):
    low, high = (
        binomtest(count, 100).proportion_ci(CONFIDENCE, method="exact") for count in (hits, misses)
    )
    expected = max(0, math.log(max(low.low - delta, 1e-300) / high.high))
    measured = bound(counted(hits, misses, 100), event=lambda x: x == 1, runs=100, delta=delta)
    assert measured == pytest.approx(expected, rel=1e-9)
    assert type(measured) is float


def response(epsilon, rng):
    lie = 1 / (1 + math.exp(epsilon))
    return lambda bit: bit ^ int(rng.random() < lie)


@pytest.mark.thorough(beside="test_the_bound_is_that_of_clopper_and_pearson")
def test_the_bound_fails_no_more_often_than_it_may():
    """At 80 %, the event searched anew each time."""
    rng, trials = np.random.default_rng(0), 300
    for mechanism, epsilon in [(response(0.3, rng), 0.3), (lambda side: rng.integers(50), 0)]:
        failures = sum(bound(mechanism, runs=400, confidence=0.8) > epsilon for _ in range(trials))
        assert failures < trials * 0.2


def shown(how):
    """Randomized response at epsilon = 1, its answer shown somehow."""
    answer = response(1.0, np.random.default_rng(1))
    return lambda side: how(answer(side))


WAYS = {
    "number": lambda bit: bit,
    "float": lambda bit: np.float64(bit),
    "text": str,
    "None or not": lambda bit: bit or None,
    "array": lambda bit: np.array([7, bit], np.uint8),
    "0-d array": lambda bit: np.array(bit),
    "object array": lambda bit: np.array([None, bit], object),
    "nested": lambda bit: [(0, [bit, "x"]), np.ones((2, 2)) * bit],
    "nan": lambda bit: math.nan if bit else 0.0,
    "large": lambda bit: 10**400 + bit,
}


@pytest.mark.thorough(cases=5)
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_an_event_is_found_whatever_the_outputs_are(how):
    # Another nan each time equals no other: only "not 0" could be counted, and is not.
    least = 0.7 if how is not WAYS["nan"] else 0
    for pair in ((0, 1), (1, 0)):
        assert least <= bound(shown(how), *pair, runs=10_000) <= 1


def test_a_set_of_outcomes_is_found():
    """Eight outcomes, each of ratio 2 or 1/2: one alone has a quarter of the evidence."""
    rng = np.random.default_rng(2)
    shares = np.array([[2, 1] * 4, [1, 2] * 4]) / 12

    def mechanism(side):
        return "abcdefgh"[rng.choice(8, p=shares[side])]

    assert 0.55 < bound(mechanism, runs=10_000) <= math.log(2)


def test_a_threshold_is_found():
    rng = np.random.default_rng(3)
    for pair in ((0, 1), (1, 0)):
        measured = bound(lambda side: side + rng.laplace(), *pair, runs=20_000)
        assert 0.75 < measured <= 1


def test_epsilon_is_bounded_at_its_delta():
    """Of the Gaussian mechanism; its true curve is Balle and Wang's."""

    def curve(epsilon):
        return norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon)

    rng, delta = np.random.default_rng(4), 0.05
    true = brentq(lambda epsilon: curve(epsilon) - delta, 0, 10)
    measured = bound(lambda side: side + rng.normal(), delta=delta, runs=50_000)
    assert 0.75 * true < measured <= true
    assert bound(lambda side: side + rng.normal(), runs=50_000) > true


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("way", ["unique", "numbers", "few"])
def test_where_nothing_depends_on_the_data_nothing_is_found(way):
    rng = np.random.default_rng(5)
    draw = {"unique": lambda: rng.bytes(8), "numbers": rng.normal, "few": lambda: rng.integers(9)}
    assert max(bound(lambda side: draw[way]()) for _ in range(20)) == 0


def test_the_event_is_tested_on_runs_that_did_not_choose_it():
    """Outcomes that tell the sides apart in the first half, and never come again."""
    calls = Counter()

    def mechanism(side):
        calls[side] += 1
        return ("early", side) if calls[side] <= 500 else "late"

    assert bound(mechanism, runs=1_000) == 0
    assert calls == {0: 1_000, 1: 1_000}


def test_an_event_sees_the_output_itself_and_all_runs():
    seen = []
    bound(lambda side: {side: side}, event=lambda out: seen.append(out) or True, runs=10)
    assert seen == [{0: 0}] * 10 + [{1: 1}] * 10


# Threads, interrupts, extras ----------------------------------------------------------------------


def test_runs_share_threads_unless_there_is_one():
    measured = {}
    for threads in (1, 3, None):
        workers = set()

        def mechanism(side, workers=workers):
            workers.add(threading.get_ident())
            time.sleep(1e-4)
            return side

        measured[threads] = lower_bound(
            mechanism, 0, 1, runs=600, confidence=CONFIDENCE, threads=threads
        )
        if threads == 1:
            assert workers == {threading.get_ident()}
        elif threads == 3:
            assert len(workers) > 1
            assert threading.get_ident() not in workers
    assert len(set(measured.values())) == 1
    assert measured[1] > 3


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_the_mechanism_ends_the_audit(threads):
    calls = []

    def mechanism(side):
        calls.append(side)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lower_bound(mechanism, 0, 1, runs=10**6, confidence=0.9, threads=threads)
    assert len(calls) < 1_000


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_the_audit(threads):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lower_bound(
            lambda side: time.sleep(0.001), 0, 1, runs=10**5, confidence=0.9, threads=threads
        )
    assert time.perf_counter() - start < 2


def test_progress_is_shown_if_asked_for(capsys):
    for progress in (False, True):
        bound(lambda side: side, runs=300, progress=progress)
        assert ("600" in capsys.readouterr().err) == progress


@pytest.mark.parametrize(("module", "extra"), [("scipy.stats", "scipy"), ("tqdm", "progress")])
def test_a_missing_extra_is_named_before_anything_runs(monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"the extra hdp-fast\[{extra}\]"):
        bound(lambda side: pytest.fail("it ran"), progress=True)


def test_outputs_that_cannot_be_counted_need_an_event():
    with pytest.raises(ParameterError, match=r"dict.*event"):
        bound(lambda side: {side: 1})


@pytest.mark.parametrize("event", [None, lambda outcome: outcome < 1])
def test_so_few_runs_that_no_epsilon_shows_are_noted(event):
    with pytest.warns(UtilityWarning, match="runs = 5 show no epsilon above 0 at this confidence"):
        assert bound(lambda side: side, runs=5, event=event) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bound(lambda side: side, runs=200, event=event) > 1
