"""Guarantees of random mixtures: their own inverse, never below what is exact, and monotone."""

import math
import random
import warnings

import pytest
from cases import each_case
from mixtures import (
    MOST_DRAWS,
    MOST_ROUNDS,
    between,
    exact_law,
    examine,
    perhaps_subsampled,
    some_base,
)

from hdp_fast import accounting
from hdp_fast.accounting import (
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    GaussianMechanism,
    LaplaceMechanism,
    Pure,
    Subsampled,
)
from hdp_fast.exceptions import ParameterError

# `make mixtures` examines 100,000.
MIXTURES = 200
# Epsilons of 1e-4 on grids planned for larger ones, of 1e-23, below any order of the moments, and
# of 1e-8 beside rare losses of 100.
SMALL_EPSILONS = [4914, 6773, 7008, 33155, 36067, 59385]
PARTS = 4
# Two grids differ by 2e-4 of delta or so; moments, which take over where no grid is of any use, are
# looser.
DENT = 0.02


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("part", range(PARTS))
def test_mixtures_keep_what_they_promise(part):
    for number in range(part, MIXTURES, PARTS):
        check(number)


@pytest.mark.parametrize("number", SMALL_EPSILONS)
def test_small_epsilons_are_not_looser_than_others(number):
    check(number)


def check(number):
    seen = examine(number)
    assert not seen.panic, number
    assert seen.inverse <= 1 + 1e-6, seen
    assert seen.exact <= 1, seen
    assert seen.dent <= DENT, seen


@each_case("seed", range(100))
def test_what_is_smaller_still_is_an_upper_bound(seed):
    coins = random.Random(seed)
    base = some_base(coins, 1e-30, 1e-6, range(3))
    made = [(perhaps_subsampled(coins, base, MOST_DRAWS), 1), (Pure(between(coins, 1e-25, 1)), 1)]
    law, delta = exact_law(made), between(coins, 1e-70, 1e-9)
    epsilon = accounting.epsilon(made, delta)
    if epsilon < math.inf:
        assert law.delta(epsilon) <= delta
    at = coins.random() * min(epsilon, 2.0)
    assert law.delta(at) <= accounting.delta(made, at)


# Any numbers at all -------------------------------------------------------------------------------

ODD = [0, -1, -1e-300, math.nan, math.inf, -math.inf, 10**400, -(10**400), 5e-324, 1.7e308]
COUNTS = [0, -1, 1, 2, 1 << 53, (1 << 53) + 1, 10**400]


def number(coins, usual, least, most):
    """Odd, within the usual range, or anywhere."""
    part = coins.random()
    if part < 0.1:
        return coins.choice(ODD)
    return between(coins, *usual) if part < 0.5 else between(coins, least, most)


def anything(coins):
    return number(coins, (1e-6, 1e4), 1e-300, 1e300)


def some_fraction(coins):
    return number(coins, (1e-15, 0.99), 1e-300, 0.99)


def times(coins):
    return coins.choice(COUNTS) if coins.random() < 0.2 else int(between(coins, 1, MOST_ROUNDS))


def mechanism(coins):
    made = coins.choice(
        [
            Pure,
            BoundedRange,
            GaussianMechanism,
            LaplaceMechanism,
            ZCDP,
            Approximate,
            DiscreteLaplace,
        ]
    )
    if made is Approximate:
        base = made(anything(coins), some_fraction(coins))
    elif made is DiscreteLaplace:
        base = made(anything(coins), coins.choice([1, 2, 30, 4096]))
    else:
        base = made(anything(coins))
    if coins.random() < 0.5:
        return base
    # Few changes: thousands take minutes.
    rate = some_fraction(coins)
    usual = int(between(coins, 1, min(1e15, max(1.0, 10 / rate)))) if 0 < rate < 1 else times(coins)
    return Subsampled(base, draws=usual, rate=rate)


def mixture(coins):
    return [(mechanism(coins), times(coins)) for _ in range(coins.randint(1, 2))]


def family(coins):
    kind = coins.choice([GaussianMechanism, Pure, ZCDP, LaplaceMechanism])
    return lambda noise: kind(1 / noise)


CALLS = {
    "epsilon": lambda c: accounting.epsilon(mixture(c), some_fraction(c)),
    "delta": lambda c: accounting.delta(mixture(c), anything(c)),
    "epsilon by moments": lambda c: accounting.epsilon(
        mixture(c), some_fraction(c), accountant="rdp"
    ),
    "delta by moments": lambda c: accounting.delta(mixture(c), anything(c), accountant="rdp"),
    "smallest_noise": lambda c: accounting.smallest_noise(
        family(c), epsilon=anything(c), delta=some_fraction(c), rounds=times(c)
    ),
    "smallest_noise anywhere": lambda c: accounting.smallest_noise(
        family(c), epsilon=1, delta=0.1, low=anything(c), high=anything(c)
    ),
    "largest_rate": lambda c: accounting.largest_rate(
        mechanism(c),
        draws=int(between(c, 1, 1e6)),
        rounds=times(c),
        epsilon=anything(c),
        delta=some_fraction(c),
    ),
    "largest_rounds": lambda c: accounting.largest_rounds(
        mechanism(c), epsilon=anything(c), delta=some_fraction(c)
    ),
    "optimal epsilon": lambda c: accounting.optimal_composition(
        anything(c), some_fraction(c), min(times(c), 10**6), target_delta=some_fraction(c)
    ),
    "optimal delta": lambda c: accounting.optimal_composition(
        anything(c), some_fraction(c), min(times(c), 10**6), target_epsilon=anything(c)
    ),
    "gaussian_delta": lambda c: accounting.gaussian_delta(anything(c), anything(c)),
    "gaussian_epsilon": lambda c: accounting.gaussian_epsilon(anything(c), some_fraction(c)),
    "gaussian_mu": lambda c: accounting.gaussian_mu(anything(c), some_fraction(c)),
    "zcdp_epsilon": lambda c: accounting.zcdp_epsilon(anything(c), some_fraction(c)),
    "zcdp_rho": lambda c: accounting.zcdp_rho(anything(c), some_fraction(c)),
    "pure_epsilon": lambda c: accounting.pure_epsilon(mechanism(c)),
    "renyi_divergence": lambda c: accounting.renyi_divergence(mechanism(c), anything(c)),
    "renyi_epsilon": lambda c: accounting.renyi_epsilon(
        [anything(c)], [anything(c)], some_fraction(c)
    ),
    "basic_composition": lambda c: accounting.basic_composition([(anything(c), 0.1)] * 3)[0],
}
SEARCHES = {"smallest_noise", "smallest_noise anywhere", "largest_rate", "largest_rounds"}


@pytest.mark.parametrize("name", CALLS)
def test_any_numbers_have_an_answer_or_a_clear_error(name):
    answers = 0
    for seed in range(10 if name in SEARCHES else 60):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = CALLS[name](random.Random(seed))
        except ParameterError:
            continue
        assert found >= 0, seed
        answers += 1
    assert answers
