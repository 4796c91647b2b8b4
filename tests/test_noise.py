"""Exact coins, and the random_state that every drawing function takes."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast import gf2, local, noise

# Standard deviations that a mean of many coins passes with probability below 1e-6.
DEVIATIONS = 4.9


@pytest.mark.parametrize("p", [0, 0.0, Fraction(0), 5e-324, 2.0**-60, Fraction(1, 2**64 - 1)])
def test_impossible_and_nearly_impossible_events_do_not_happen(p):
    assert not noise.bernoulli(p, 10_000).any()


@pytest.mark.parametrize("p", [1, 1.0, True, Fraction(1), 1 - 2.0**-53])
def test_certain_and_nearly_certain_events_happen(p):
    assert noise.bernoulli(p, 10_000).all()


@pytest.mark.parametrize(
    "p", [0.5, 0.3, 1e-3, Fraction(1, 3), Fraction(2**64 - 3, 2**64 - 1), 0.97]
)
def test_draws_are_one_with_probability_p(p):
    n = 200_000
    mean = noise.bernoulli(p, n, random_state=1).mean()
    assert abs(mean - p) <= DEVIATIONS * math.sqrt(float(p * (1 - p)) / n)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.7, 2.0**-11, math.pi / 4])
def test_a_float_is_the_dyadic_fraction_that_it_is(p):
    exact = Fraction(p)
    assert exact.denominator < 2**64
    draws = [noise.bernoulli(value, 5_000, random_state=2) for value in (p, exact, np.float64(p))]
    assert all(np.array_equal(draws[0], other) for other in draws)


@pytest.mark.parametrize(
    ("size", "shape"),
    [
        (0, (0,)),
        (7, (7,)),
        (np.int64(7), (7,)),
        ((), ()),
        ((0, 3), (0, 3)),
        ((2, 3), (2, 3)),
        ((np.int32(2), 1, 2), (2, 1, 2)),
    ],
    ids=str,
)
def test_size_is_the_shape_of_the_draws(size, shape):
    draws = noise.bernoulli(0.5, size)
    assert (draws.shape, draws.dtype) == (shape, np.uint8)


def test_without_a_size_one_int_is_drawn():
    drawn = [noise.bernoulli(0.5, random_state=seed) for seed in range(20)]
    assert {type(value) for value in drawn} == {int}
    assert set(drawn) == {0, 1}


DRAWS = {
    "bernoulli": lambda state: noise.bernoulli(0.5, 300_000, random_state=state),
    "randomized_response": lambda state: local.randomized_response(
        np.zeros(300_000, np.uint8), epsilon=0.1, random_state=state
    ),
    "sample": lambda state: gf2.solve(np.zeros((1, 500), np.uint8), [0]).sample(random_state=state),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_repeats_whatever_the_threads(draw, monkeypatch):
    drawn = []
    for threads in "1", "2", "3":
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        drawn += [draw(seed) for seed in (5, np.int64(5))]
    assert all(np.array_equal(drawn[0], other) for other in drawn)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_other_seeds_later_calls_of_a_generator_and_the_system_draw_anew(draw):
    states = [0, 1, 2**100, np.random.default_rng(3), None, None]
    shared = np.random.default_rng(4)
    drawn = [draw(state) for state in [*states, shared, shared]]
    assert len({values.tobytes() for values in drawn}) == len(drawn)
    assert np.array_equal(draw(np.random.default_rng(3)), drawn[3])


def test_random_state_warns_once_in_a_process():
    program = """
from hdp_fast import gf2, local, noise
noise.bernoulli(.5)
for seed in (1, 2):
    noise.bernoulli(.5, random_state=seed)
    local.randomized_response([1], epsilon=1, random_state=seed)
    gf2.solve([[1]], [1]).sample(seed)
"""
    command = [sys.executable, "-W", "always", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stderr.count("random_state makes the coins reproducible") == 1
    assert run.stdout == ""


def test_no_warning_without_random_state():
    program = "from hdp_fast import noise; noise.bernoulli(.5, 9)"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
