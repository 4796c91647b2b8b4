"""Exact coins, and the random_state that every drawing function takes."""

import itertools
import math
import runpy
import subprocess
import sys
import threading
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from cases import each_case
from lengths import at_length
from processes import forking, reply

from hdp_fast import Budget, gf2, local, noise
from hdp_fast.exceptions import ParameterError

# Standard deviations that a mean of many coins passes with probability below 1e-6.
DEVIATIONS = 4.9


@pytest.mark.parametrize("p", [0, 0.0, Fraction(0), 5e-324, 2.0**-60, Fraction(1, 2**64 - 1)])
def test_impossible_and_nearly_impossible_events_do_not_happen(p):
    assert not noise.bernoulli(p, 10_000).any()


@pytest.mark.parametrize("p", [1, 1.0, Fraction(1), 1 - 2.0**-53])
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


SIZED = {
    "bernoulli_exp": (partial(noise.bernoulli_exp, 0.3), np.uint8),
    "geometric": (partial(noise.geometric, 3), np.int64),
    "discrete_laplace": (partial(noise.discrete_laplace, Fraction(7, 3)), np.int64),
    "discrete_gaussian": (partial(noise.discrete_gaussian, 1.5), np.int64),
    "rounded_gaussian": (partial(noise.rounded_gaussian, 1.5), np.int64),
    "uniform_integers": (partial(noise.uniform_integers, 6), np.int64),
    "weighted_draws": (partial(noise.weighted_draws, [1, 2, 3]), np.int64),
}


@pytest.mark.parametrize(("draw", "dtype"), SIZED.values(), ids=SIZED)
def test_every_sampler_takes_a_size_or_none(draw, dtype):
    assert isinstance(draw(), int)
    for size, shape in (5, (5,)), ((2, 3), (2, 3)), (0, (0,)), ((), ()):
        assert (draw(size).shape, draw(size).dtype) == (shape, dtype)


SCALED = [
    *(noise.geometric, noise.discrete_laplace, noise.discrete_gaussian, noise.rounded_gaussian)
]


@each_case("zero", [0, 0.0, -0.0, Fraction(0)])
@each_case("draw", SCALED)
def test_scale_zero_would_be_no_noise_and_is_refused(draw, zero):
    for size in (None, 100_000):
        with pytest.raises(ParameterError, match="but it must be above 0"):
            draw(zero, size)


@pytest.mark.parametrize("draw", [*SCALED, noise.bernoulli_exp])
def test_a_float_and_its_exact_fraction_draw_alike(draw):
    for size in 10, 100_000:
        drawn = [
            draw(value, size, random_state=1) for value in (0.1, Fraction(0.1), np.float64(0.1))
        ]
        assert all(np.array_equal(drawn[0], other) for other in drawn)
    rounded, third = (draw(value, 100_000, random_state=1) for value in (1 / 3, Fraction(1, 3)))
    assert np.array_equal(rounded, third), "2^-54 must not be visible in so few draws"


SAMPLERS = dict(zip(["geometric", "laplace", "gaussian", "rounded"], SCALED, strict=True))


def law_of_noise(name, scale):
    """Pr[x] up to a factor."""
    if name == "rounded":
        edges = NormalDist(0, scale)
        return lambda x: edges.cdf(0.5 - abs(x)) - edges.cdf(-0.5 - abs(x))
    if name == "gaussian":
        return lambda x: math.exp(-0.5 * (x / scale) ** 2)
    return lambda x: math.exp(-abs(x) / scale) * (x >= 0 or name == "laplace")


@each_case("size", [1_000, 200_000], ids=["few draws", "many draws"])
@each_case("scale", [0.3, 2, 45.5, 1e4, 1e9])
@each_case("name", SAMPLERS)
def test_mean_and_spread_of_noise(name, scale, size):
    sampler = SAMPLERS[name]
    drawn = sampler(scale, size, random_state=3) / 1.0
    reach = np.arange(-40 * math.ceil(min(scale, 50)), 40 * math.ceil(min(scale, 50)) + 1)
    unit = max(scale / 50, 1.0)  # a large scale is as good as a continuous one
    mass = np.array([law_of_noise(name, scale / unit)(x) for x in reach.tolist()])
    mass /= mass.sum()
    for power in (1, 2):
        moment, square = ((mass * (unit * reach) ** k).sum() for k in (power, 2 * power))
        error = abs((drawn**power).mean() - moment)
        # Half a unit of the grid, and the deviation of a mean.
        slack = unit * power * (abs(moment) ** (1 - 1 / power) + unit) if unit > 1 else 0
        assert error <= 7 * math.sqrt((square - moment**2) / size) + 0.05 * slack


def test_a_poisson_mask_is_that_of_the_coins():
    mask = noise.poisson_mask(100_000, Fraction(1, 7), random_state=5)
    assert (mask.dtype, mask.shape) == (np.bool_, (100_000,))
    assert np.array_equal(mask, noise.bernoulli(Fraction(1, 7), 100_000, random_state=5))
    assert not noise.poisson_mask(1000, 0).any()
    assert noise.poisson_mask(1000, 1).all()


@pytest.mark.parametrize("select", [noise.permute_and_flip, noise.exponential_mechanism])
def test_scores_of_any_integer_dtype_and_strides(select):
    scores = np.array([3, 90, 1, 7])
    for dtype in (np.uint8, np.int16, ">i4", np.uint64):
        heights = scores.astype(dtype)
        winner = int(np.argmax(heights))
        assert select(heights, epsilon=100) == (select(heights[::-1], epsilon=100) ^ 3) == winner
    frozen = scores.copy()
    frozen.flags.writeable = False
    assert select(frozen[::2], epsilon=50, sensitivity=Fraction(1, 3)) == 0
    assert select([5], epsilon=1e-300) == 0


@pytest.mark.parametrize("select", [noise.permute_and_flip, noise.exponential_mechanism])
def test_monotonic_scores_take_half_the_noise(select):
    for state in range(200):
        one = select([0, 5, 9], epsilon=0.5, monotonic=True, random_state=state)
        assert one == select([0, 5, 9], epsilon=1, random_state=state)
        assert one == select([0, 15, 27], epsilon=0.5, sensitivity=1.5, random_state=state)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("select", [noise.permute_and_flip, noise.exponential_mechanism])
def test_a_numpy_number_is_the_number_that_it_is(select, kind):
    """Fractions of numpy integers wrap around: less noise than the sensitivity needs."""
    for sensitivity in (3, 201) if kind is np.uint8 else (515, 1000, 2**31 - 1):
        for state in range(20):
            call = {"epsilon": 0.1, "random_state": state}
            wanted = select([0, 200], sensitivity=sensitivity, **call)
            assert select([0, 200], sensitivity=kind(sensitivity), **call) == wanted
            exact = Fraction(kind(sensitivity))
            assert select([0, 200], sensitivity=exact, **call) == wanted


def test_scores_that_lie_across_words():
    buffer = bytes(1) + np.array([1, 9, 2], np.int64).tobytes()
    scores = np.frombuffer(buffer, np.int64, 3, offset=1)
    assert noise.permute_and_flip(scores, epsilon=100) == 1
    assert set(noise.weighted_draws(scores, 1000).tolist()) == {0, 1, 2}


def test_weights_of_any_integer_dtype():
    for weights in (
        [0, 2, 0, 1],
        np.array([0, 2, 0, 1], np.uint8),
        np.array([False, True, False, True]),
    ):
        assert set(noise.weighted_draws(weights, 1_000).tolist()) == {1, 3}
    assert noise.weighted_draws(np.array([2**64 - 2, 1], np.uint64)) == 0


@at_length
def test_the_vectors_are_what_their_script_computes():
    program = Path(__file__).parents[1] / "vectors" / "cumulative.py"
    made = runpy.run_path(str(program))
    assert program.with_suffix(".txt").read_text().splitlines() == list(made["lines"]())


@pytest.mark.entropy
@forking
def test_a_fork_draws_other_coins():
    """Two of 100 pairs of draws are equal with probability below 1e-9."""
    noise.discrete_laplace(1e6, 10)
    first = reply(lambda: noise.discrete_laplace(1e6, 100_000)[:100].tobytes())
    ours, theirs = noise.discrete_laplace(1e6, 100_000)[:100], np.frombuffer(first, np.int64)
    assert (ours == theirs).sum() <= 1


@forking
def test_a_fork_finds_the_kept_tables_usable_while_a_thread_keeps_new_ones():
    stop = threading.Event()

    def keep():
        for i in itertools.count(1):
            noise.discrete_laplace(Fraction(2 * i, 997), 100)
            if stop.is_set():
                return

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        for _ in range(20):
            drawn = np.frombuffer(
                reply(lambda: noise.discrete_laplace(3.5, 1_000).tobytes()), np.int64
            )
            assert 0 < np.abs(drawn).mean() < 10
    finally:
        stop.set()
        keeper.join()


def test_without_a_size_one_int_is_drawn():
    drawn = [noise.bernoulli(0.5, random_state=seed) for seed in range(20)]
    assert {type(value) for value in drawn} == {int}
    assert set(drawn) == {0, 1}


DRAWS = {
    "bernoulli": lambda state: noise.bernoulli(0.5, 300_000, random_state=state),
    "bernoulli_exp": lambda state: noise.bernoulli_exp(0.5, 300_000, random_state=state),
    "poisson_mask": lambda state: noise.poisson_mask(300_000, 0.1, random_state=state),
    "geometric": lambda state: noise.geometric(5, 300_000, random_state=state),
    "discrete_laplace": lambda state: noise.discrete_laplace(1e4, 300_000, random_state=state),
    "discrete_gaussian": lambda state: noise.discrete_gaussian(200, 300_000, random_state=state),
    "rounded_gaussian": lambda state: noise.rounded_gaussian(200, 300_000, random_state=state),
    "uniform_integers": lambda state: noise.uniform_integers(9, 300_000, random_state=state),
    "weighted_draws": lambda state: noise.weighted_draws([1, 2], 300_000, random_state=state),
    "permute_and_flip": lambda state: np.array(
        [noise.permute_and_flip(np.arange(50_000), epsilon=1e-6, random_state=state)]
    ),
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
    assert run.stderr.count("random_state makes the random bits reproducible") == 1
    assert run.stdout == ""


def test_no_warning_without_random_state():
    program = "from hdp_fast import noise; noise.bernoulli(.5, 9)"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_terms_of_fractions_end_at_4096_bits():
    longest = (1 << 4096) - 1
    assert noise.discrete_laplace(Fraction(longest, longest - 1), random_state=1) is not None
    for fraction in (Fraction(longest + 1, longest), Fraction(longest, longest + 1)):
        with pytest.raises(ParameterError, match="4,096 bits or more"):
            noise.discrete_laplace(fraction)


@each_case("gamma", [-1, Fraction(-1, 10**9), -1e-300, math.inf, math.nan])
def test_the_exponent_of_a_coin_is_finite_and_not_negative(gamma):
    with pytest.raises(ParameterError, match=r"^gamma = .*finite"):
        noise.bernoulli_exp(gamma, size=3)


@each_case("p", [-1, Fraction(-1, 10**9), 1.0000001, Fraction(10**9 + 1, 10**9), math.inf])
def test_the_probability_of_a_coin_lies_in_0_and_1(p):
    for draw in (lambda: noise.bernoulli(p, size=3), lambda: noise.poisson_mask(5, p)):
        with pytest.raises(ParameterError, match=r" = .*(in \[0, 1\]|finite)"):
            draw()


def test_uniform_integers_refuse_an_empty_range():
    with pytest.raises(ParameterError, match="bound = 0, but it must be at least 1"):
        noise.uniform_integers(0)
    assert noise.uniform_integers(1) == 0


def test_scales_are_taken_up_to_the_last_that_int64_allows():
    largest = Fraction(2**50) - Fraction(1, 8)
    assert isinstance(noise.discrete_laplace(largest, random_state=1), int)
    with pytest.raises(ParameterError, match="scale"):
        noise.discrete_laplace(2**50)


def test_a_choice_with_bad_settings_is_refused_before_it_is_paid():
    budget = Budget(1.0)
    for bad, name in (
        ({"neighbors": "local"}, "neighbors"),
        ({"random_state": "x"}, "random_state"),
    ):
        with pytest.raises(ParameterError, match=name):
            noise.permute_and_flip([0, 1], epsilon=0.5, budget=budget, **bad)
    assert not budget.records
