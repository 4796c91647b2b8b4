"""Exact coins and uniform solutions against their laws, with coins of the operating system."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from frequencies import FALSE_ALARM, Case, misfits, two_sided

from hdp_fast import gf2, noise

COUNT = 1 << 22
CHUNK = 1 << 14
PROBABILITIES = [
    *(0.0, 5e-324, 2**-64, 2**-20, 0.1, 0.5, 0.7, 1 - 2**-20, 1 - 2**-53, 1.0),
    *(Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1, 2**20 - 1), Fraction(999, 1000)),
    *(Fraction(2**63 + 1, 2**64 - 1), Fraction(1, 2**64 - 1), Fraction(1)),
]


def test_draws_come_at_their_rate():
    p_values = {}
    for p in PROBABILITIES:
        draws = noise.bernoulli(p, COUNT)
        p_values[p] = two_sided(int(np.count_nonzero(draws)), COUNT, p)
        assert draws.max() <= 1
    assert min(p_values.values()) > FALSE_ALARM / len(PROBABILITIES), p_values


@pytest.mark.parametrize("p", [0.0, 1.0, Fraction(0), Fraction(1), Fraction(7, 7)])
def test_certain_outcomes_are_certain(p):
    assert set(noise.bernoulli(p, COUNT).tolist()) == {int(p)}


@pytest.mark.parametrize(("p", "other"), [(Fraction(1, 3), 0.3359), (2**-20, 2**-17)])
def test_a_slightly_different_probability_would_be_seen(p, other):
    assert two_sided(int(np.count_nonzero(noise.bernoulli(other, COUNT))), COUNT, p) < FALSE_ALARM


def windows(draws, distance):
    """Counts of three draws that lie `distance` apart, no draw in two of them."""
    length = 3 * distance
    threes = draws[: len(draws) // length * length].reshape(-1, 3, distance)
    codes = np.einsum("ijk,j->ik", threes, np.array([4, 2, 1], np.uint8)).ravel()
    return dict(enumerate(np.bincount(codes, minlength=8).tolist()))


def window_law(p):
    return {
        4 * a + 2 * b + c: (p if a else 1 - p) * (p if b else 1 - p) * (p if c else 1 - p)
        for a, b, c in itertools.product((0, 1), repeat=3)
    }


@pytest.mark.parametrize("p", [0.5, Fraction(1, 3), 0.01])
def test_neighboring_draws_are_independent(p):
    law, cases = window_law(Fraction(p)), []
    for gap in (1, 2, 64, 1000, CHUNK):
        cases.append(Case(windows(noise.bernoulli(p, COUNT), gap), law))
    assert misfits(cases) == []


def test_single_draws_are_fresh_each_time():
    counts = Counter(noise.bernoulli(Fraction(1, 3)) for _ in range(20_000))
    assert two_sided(counts[1], 20_000, Fraction(1, 3)) > FALSE_ALARM


def wide_system(columns, rank, rng):
    """A consistent system of more equations than its rank."""
    basis = rng.integers(0, 2, (rank, columns), np.uint8)
    A = np.concatenate([basis, basis[::-1] ^ np.roll(basis, 1, axis=0)])
    return A, A @ rng.integers(0, 2, columns, np.uint8) % 2


def solutions_of(solution):
    """Every solution: the particular one plus each combination of the null space."""
    basis = solution.nullspace()
    for coefficients in itertools.product((0, 1), repeat=len(basis)):
        chosen = np.array(coefficients, np.uint8) @ basis % 2 if len(basis) else 0
        yield (solution.x ^ chosen).astype(np.uint8).tobytes()


SYSTEMS = [(1, 0), (3, 2), (5, 2), (7, 7), (64, 61), (65, 62), (130, 126), (200, 197)]


def drawn(solution, draws):
    return Counter(solution.sample().tobytes() for _ in range(draws))


@pytest.mark.usefixtures("one_thread")
def test_solutions_are_drawn_uniformly():
    rng, cases = np.random.default_rng(), []
    for columns, rank in SYSTEMS:
        solution = gf2.solve(*wide_system(columns, rank, rng))
        law = dict.fromkeys(solutions_of(solution), Fraction(1, 2**solution.nullity))
        assert solution.consistent
        assert len(law) == 2**solution.nullity
        cases.append(Case(drawn(solution, 20_000), law))
    assert misfits(cases) == []


@pytest.mark.usefixtures("one_thread")
def test_a_solution_that_is_too_likely_would_be_seen():
    solution = gf2.solve(np.eye(4, 6, dtype=np.uint8), np.zeros(4, np.uint8))
    counts = drawn(solution, 20_000)
    law = dict.fromkeys(counts, Fraction(1, 4))
    assert misfits([Case(counts, law)]) == []
    favored = next(iter(counts))
    for other in counts:
        moved = counts[other] // 10 if other != favored else 0
        counts[other] -= moved
        counts[favored] += moved
    assert misfits([Case(counts, law)])


def test_a_contradiction_has_no_sample():
    assert gf2.solve([[1, 0], [1, 0]], [0, 1]).sample() is None
