"""Whole private runs on a few records, enumerated over all data sets, neighbors and draws.

Probabilities are sums of at most 64 products of a dozen floats: wrong by less than 1e-13.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from whole_runs import RECORDS, Tiny, compiled, divergences, law, projected, unprojected

from hdp_fast.weights import DenseWeights

EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5)
ERROR = 1e-12

# Name: setting, the share of the promise that some neighbors reach at some epsilon.
SETTINGS = {
    "uniform, two": (Tiny(2, 1.0, 1.0, 1.0), 0.8),
    "uniform, three": (Tiny(3, 1.0, 4.0, 1.0), 0.78),
    "one record can have all": (Tiny(2, 0.5, 4.0, 1.0), 0.6),
    "dense": (Tiny(3, 2 / 3, 4.0, 1.0), 0.66),
    "dense, two draws": (Tiny(3, 2 / 3, 4.0, 1.0, draws=2), 0.7),
    "less dense": (Tiny(3, 0.5, 1.0, 0.5, draws=2), 0.54),
    "four hypotheses": (Tiny(3, 2 / 3, 1.0, 2.0, hypotheses=(0, 1, 2, 3)), 0.7),
    "three rounds": (Tiny(3, 2 / 3, 2.0, 1.0, rounds=3), 0.6),
    "small epsilon": (Tiny(3, 2 / 3, 4.0, 0.1, draws=3), 0.65),
    "large epsilon": (Tiny(2, 1.0, 1.0, 6.0), 0.9),
    "four records": (Tiny(4, 0.5, 4.0, 1.0), 0.6),
    # As after an earlier run: what is drawn at once is as dense as it may be.
    "begun before": (Tiny(3, 0.5, 2.0, 1.0, before=(-6.0, 0.0, 0.0, -6.0)), 0.8),
}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def one_thread(monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "1")


@pytest.mark.parametrize("drawn", [projected, compiled])
@pytest.mark.parametrize(("tiny", "tight"), SETTINGS.values(), ids=SETTINGS)
def test_no_neighbors_tell_more_than_is_promised(tiny, tight, drawn):
    promised = np.array([tiny.promise(epsilon) for epsilon in EPSILONS])
    found = np.array(divergences(tiny, EPSILONS, drawn))
    assert (found <= promised + ERROR).all(), found / promised
    some = promised > 1e-9
    assert (found[some] / promised[some]).max() >= tight, "the test should be able to fail"


@pytest.mark.parametrize(
    "name", ["uniform, two", "uniform, three", "dense, two draws", "begun before"]
)
def test_weights_without_projection_break_the_promise(name):
    tiny, _ = SETTINGS[name]
    found = divergences(tiny, EPSILONS, unprojected)
    assert any(
        value > 1.02 * tiny.promise(epsilon) for epsilon, value in zip(EPSILONS, found, strict=True)
    )


@pytest.mark.parametrize(("tiny", "tight"), SETTINGS.values(), ids=SETTINGS)
def test_a_learner_of_twice_the_epsilon_breaks_the_promise(tiny, tight):
    found = divergences(replace(tiny, epsilon=2 * tiny.epsilon), EPSILONS, compiled)
    assert any(
        value > 1.02 * tiny.promise(epsilon) for epsilon, value in zip(EPSILONS, found, strict=True)
    )


@pytest.mark.parametrize(("tiny", "tight"), SETTINGS.values(), ids=SETTINGS)
def test_the_rate_of_twice_the_records_is_too_small(tiny, tight):
    found = divergences(tiny, EPSILONS, compiled)
    assert any(
        value > 1.02 * tiny.promise(epsilon, rate=tiny.rate / 2)
        for epsilon, value in zip(EPSILONS, found, strict=True)
    )


def test_permute_and_flip_breaks_the_bounded_range_curve():
    # One record that one hypothesis gets right and the other wrong, or the other way round. The
    # wrong one is looked at first with probability 1/2, and then taken with that of a coin.
    tiny = Tiny(1, 1.0, 1.0, 2.0, rounds=1)
    coin = np.exp(-tiny.epsilon / 2)
    assert divergences(tiny, [0.0]) == pytest.approx([tiny.promise(0.0)], rel=1e-6)
    assert (1 - coin / 2) - coin / 2 > 1.3 * tiny.promise(0.0)


@pytest.mark.parametrize(("tiny", "tight"), SETTINGS.values(), ids=SETTINGS)
def test_compiled_draws_are_the_projection_up_to_the_window(tiny, tight):
    # Integer weights sum to between kappa n - 0.75 * 2**-12 and kappa n, so that all but that share
    # of both laws is common to them.
    apart = 0.75 * 2.0**-12 / (tiny.kappa * tiny.n) + 1e-9
    paths = [
        path
        for rounds in range(tiny.rounds)
        for path in itertools.product(range(len(tiny.hypotheses)), repeat=rounds)
    ]
    worst = 0.0
    for records in itertools.product(RECORDS, repeat=tiny.n):
        for path in paths:
            wanted, found = projected(tiny, records, path), compiled(tiny, records, path)
            assert found.max() <= tiny.rate
            worst = max(worst, np.abs(wanted - found).sum() / 2)
    assert worst <= apart


def test_laws_are_laws_and_the_rate_is_public():
    for tiny, _ in SETTINGS.values():
        assert sum(law(tiny, RECORDS[: tiny.n]).values()) == pytest.approx(1, abs=ERROR)
        wanted = min(1, 1 / (tiny.kappa * (1 - 2.0**-12) * tiny.n))
        assert DenseWeights(tiny.n, tiny.kappa, tiny.eta).rate == pytest.approx(wanted, rel=1e-14)
