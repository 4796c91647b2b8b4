"""Shuffled reports: no randomizer is told apart better than the accountant says, and some as well.

The proof and the words are those of docs/theory/shuffled_reports.md.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from lengths import at_length
from scipy.stats import binom, multinomial

from hdp_fast import accounting
from hdp_fast.accounting import GaussianMechanism, Pure, Shuffled, Subsampled
from hdp_fast.exceptions import ParameterError

EPSILONS = (0.0, 0.1, 0.4, 0.8, 1.3, 2.5)


# Exact laws, by enumeration ----------------------------------------------------------------------


def add(law, report):
    """The law of the counts of reports with one report more."""
    more = {}
    for counts, mass in law.items():
        for place, chance in enumerate(report):
            if chance:
                key = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                more[key] = more.get(key, 0) + mass * chance
    return more


def hockey_stick(p, q, growth):
    return sum(max(0, mass - growth * q.get(counts, 0)) for counts, mass in p.items())


def worst(laws, n, epsilon):
    """The largest delta over the others' values and both values of a person."""
    growth, inputs, largest = math.exp(epsilon), range(len(laws)), 0
    for others in itertools.combinations_with_replacement(inputs, n - 1):
        base = {(0,) * len(laws[0]): 1}
        for value in others:
            base = add(base, laws[value])
        mixes = [add(base, law) for law in laws]
        for p, q in itertools.permutations(mixes, 2):
            largest = max(largest, hockey_stick(p, q, growth))
    return largest


def kary(k, local_epsilon):
    growth = math.exp(local_epsilon)
    return (np.eye(k) * (growth - 1) + 1) / (growth + k - 1)


def extreme(inputs, outputs, local_epsilon, rng):
    """Every probability is one of two, whose ratio is that of the privacy."""
    while True:
        low = rng.integers(0, 2, (inputs, outputs)) == 0
        base = rng.dirichlet(np.ones(outputs))
        laws = np.where(low, base, base * math.exp(local_epsilon))
        # Their sums must be one: outputs that no input tells apart take up what is missing.
        rest = laws.sum(1).max() * 1.05 - laws.sum(1)
        if rest.min() * math.exp(local_epsilon) >= rest.max():
            laws = np.column_stack([laws, rest])
            return laws / laws.sum(1, keepdims=True)


def any_randomizer(inputs, outputs, local_epsilon, rng):
    laws = rng.dirichlet(np.ones(outputs), inputs)
    # Mixed with what all have in common until the ratios are as asked for.
    low, high, center = 0.0, 1.0, laws.mean(0)
    for _ in range(60):
        part = (low + high) / 2
        mixed = part * laws + (1 - part) * center
        ratio = (mixed.max(0) / mixed.min(0)).max()
        low, high = (part, high) if ratio <= math.exp(local_epsilon) else (low, part)
    return low * laws + (1 - low) * center


def randomizers(local_epsilon, seed, rounds):
    rng = np.random.default_rng(seed)
    yield "bits", kary(2, local_epsilon)
    yield "three categories", kary(3, local_epsilon)
    growth = math.exp(local_epsilon)
    # A person's two values are told apart as well as can be; the others have a third one.
    yield "third input", np.array([[growth, 1, 1], [1, growth, 1], [1, 1, growth]]) / (growth + 2)
    for _ in range(rounds):
        yield "extreme", extreme(3, int(rng.integers(2, 4)), local_epsilon, rng)
        yield "any", any_randomizer(int(rng.integers(2, 4)), 3, local_epsilon, rng)


def compare(n, local_epsilon, seed, rounds):
    """The largest share of the promised delta that a randomizer attains."""
    share = 0.0
    for name, laws in randomizers(local_epsilon, seed, rounds):
        for epsilon in EPSILONS:
            shown = accounting.delta(Shuffled(local_epsilon, n), epsilon)
            exact = worst(laws.tolist(), n, epsilon)
            assert exact <= shown * (1 + 1e-12) + 1e-15, (name, n, local_epsilon, epsilon)
            share = max(share, exact / shown)
    return share


@each_case("n, local_epsilon", [(1, 1.0), (2, 0.5), (2, 2.0), (3, 1.0)])
def test_no_randomizer_exceeds_the_bound_and_one_attains_it(n, local_epsilon):
    assert compare(n, local_epsilon, seed=n, rounds=3) > 1 - 1e-9


@at_length
@each_case("n, local_epsilon", itertools.product((2, 3, 4, 5, 6), (0.3, 1.0, 3.0)))
def test_no_randomizer_exceeds_the_bound_at_length(n, local_epsilon):
    assert compare(n, local_epsilon, seed=n, rounds=40 // n) > 0.97


@each_case("k, n, local_epsilon", [(2, 5, 1.0), (3, 2, 1.0), (3, 4, 2.0), (4, 3, 0.5)])
def test_categories_are_never_exceeded(k, n, local_epsilon):
    laws, special = kary(k, local_epsilon).tolist(), Shuffled(local_epsilon, n, categories=k)
    for epsilon in EPSILONS:
        exact, shown = worst(laws, n, epsilon), accounting.delta(special, epsilon)
        assert exact <= shown * (1 + 1e-12) + 1e-15
        assert shown <= accounting.delta(Shuffled(local_epsilon, n), epsilon) * (1 + 1e-12)
        # One bit has its exact law; categories that hide behind each other are within a fifth.
        assert k > 2 or exact >= shown * (1 - 1e-8) - 1e-300


def test_a_total_variation_without_the_overlap_would_be_wrong():
    # Two people with three categories: it was believed that a report of the third law is no part of
    # the counts, so that nobody can tell it from the other's.
    growth, epsilon = math.e, 0.8
    lie = 1 / (growth + 2)
    other = {(0, 0): 1 - 2 * lie, (1, 0): lie, (0, 1): lie}
    p, q = ({}, {})
    for law, chances in ((p, (growth * lie, lie)), (q, (lie, growth * lie))):
        for (first, second), mass in other.items():
            for step, chance in ((1, 0), chances[0]), ((0, 1), chances[1]), ((0, 0), lie):
                counts = first + step[0], second + step[1]
                law[counts] = law.get(counts, 0) + mass * chance
    exact = worst(kary(3, 1.0).tolist(), 2, epsilon)
    assert exact == pytest.approx(0.0602, abs=1e-4)
    assert hockey_stick(p, q, math.exp(epsilon)) == pytest.approx(0.0272, abs=1e-4)
    assert accounting.delta(Shuffled(1.0, 2, categories=3), epsilon) >= exact


def exactly(n, growth, w):
    """The bound for any randomizer in fractions, at w = e^epsilon; growth is e^local_epsilon."""
    total = Fraction(0)
    chance = Fraction(1, growth + 1)
    for m in range(1, n + 1):
        base = Fraction(math.comb(n, m)) * (2 * chance) ** m * (1 - 2 * chance) ** (n - m)
        for first in range(m + 1):
            value = first * (growth - w) + (m - first) * (1 - w * growth)
            total += base * Fraction(math.comb(m, first), 2**m) * max(0, value) / n
    return total


@each_case("n, growth, w", [(1, 3, 2), (2, 3, 1), (7, 5, Fraction(3, 2)), (12, 2, Fraction(5, 4))])
def test_the_curve_is_rounded_up_and_by_little(n, growth, w):
    exact = float(exactly(n, growth, Fraction(w)))
    shown = accounting.delta(Shuffled(math.log(growth), n), math.log(w))
    assert exact * (1 - 1e-13) <= shown <= exact * (1 + 1e-9)


@each_case("categories", [None, 5])
def test_blocks_and_nodes_cost_little(categories):
    # Neighboring counts are in one block there; here each stands for itself, one of thirty.
    n, local_epsilon, epsilon, step = 20_000, 2.0, 0.05, 30
    growth, w, common = math.exp(local_epsilon), math.exp(epsilon), (categories or 2) - 2
    lie, exact = 1 / (growth + 1 + common), 0.0
    sizes = np.arange(1, n + 1)
    for size in sizes[binom.pmf(sizes, n, 2 * lie) > 1e-16][::step]:
        third = np.arange(n - size + 1)
        chances = binom.pmf(third, n - size, common * lie / (1 - 2 * lie))
        first = np.arange(size + 1)
        coins = binom.pmf(first, size, 0.5)
        seen, thick = coins > 1e-14, chances > 1e-14
        signs = (first * (growth - w) + (size - first) * (1 - w * growth))[seen]
        values = np.maximum(0, signs[:, None] - (w - 1) * third[thick])
        mean = coins[seen] @ values @ chances[thick]
        exact += step * binom.pmf(size, n, 2 * lie) * mean / n
    shown = accounting.delta(Shuffled(local_epsilon, n, categories), epsilon)
    assert exact * (1 - 1e-6) <= shown <= exact * 1.02


def bits_exactly(n, local_epsilon, epsilon):
    """The exact delta of bits: the largest over how many of the others have the bit 1."""
    lie, growth, largest = 1 / (1 + math.exp(local_epsilon)), math.exp(epsilon), 0.0
    for ones in range(n):
        yes = binom.pmf(np.arange(ones + 1), ones, 1 - lie)
        no = binom.pmf(np.arange(n - ones), n - 1 - ones, lie)
        others = np.convolve(yes, no)
        zero, one = np.append(others, 0), np.append(0, others)
        p, q = lie * zero + (1 - lie) * one, (1 - lie) * zero + lie * one
        largest = max(largest, np.maximum(p - growth * q, 0).sum())
    return largest


@each_case(
    "n, local_epsilon, epsilon, most",
    [(90, 1.0, 0.3, 1e-7), (90, 4.0, 1.0, 1e-7), (90, 4.0, 3.9, 1e-7), (600, 2.0, 0.3, 0.01)],
)
def test_bits_have_their_exact_law(n, local_epsilon, epsilon, most):
    exact = bits_exactly(n, local_epsilon, epsilon)
    shown = accounting.delta(Shuffled(local_epsilon, n, categories=2), epsilon)
    assert exact * (1 - 1e-10) <= shown <= exact * (1 + most * 5)


# Numbers and shapes ------------------------------------------------------------------------------


@each_case(
    "local_epsilon, categories, expected",
    [
        *[(0.5, None, 0.063), (1, None, 0.149), (2, None, 0.397), (4, None, 1.853)],
        *[(0.5, 2, 0.057), (1, 2, 0.127), (2, 2, 0.323), (4, 2, 1.691)],
        *[(1, 3, 0.131), (1, 10, 0.080), (4, 10, 1.528)],
    ],
)
def test_a_thousand_people(local_epsilon, categories, expected):
    shown = accounting.epsilon(Shuffled(local_epsilon, 1_000, categories), delta=1e-6)
    assert shown == pytest.approx(expected, abs=6e-4)


@each_case("categories", [None, 2, 3, 100])
def test_curves_fall_with_people_and_rise_with_local_epsilon(categories):
    for local_epsilon, epsilon in ((0.7, 0.1), (3.0, 0.5), (3.0, 2.9)):
        people = [1, 2, 3, 5, 20, 21, 400, 1_100, 1_101]
        deltas = [
            # What windows leave out is below the least number.
            max(accounting.delta(Shuffled(local_epsilon, n, categories), epsilon), 1e-50)
            for n in people
        ]
        # Blocks of bits are off by what a few people hide.
        slack = 1 + (1e-9 if categories != 2 else 0.1)
        assert all(more <= slack * less for less, more in itertools.pairwise(deltas))
        larger = [
            accounting.delta(Shuffled(local_epsilon + step, 90, categories), epsilon)
            for step in (0.0, 0.01, 1.0)
        ]
        assert all(less <= more * (1 + 1e-9) for less, more in itertools.pairwise(larger))


@each_case("local_epsilon", [1e-12, 1e-3, 1.0, 20.0, 59.0, 61.0, 700.0, 1e4])
def test_nobody_hides_one_person_and_the_mechanism_stays_pure(local_epsilon):
    for n in (1, 1_000):
        mechanism = Shuffled(local_epsilon, n)
        assert accounting.pure_epsilon(mechanism) == local_epsilon
        assert accounting.epsilon(mechanism, delta=1e-300) <= max(local_epsilon, 1e-9)
        assert accounting.delta(mechanism, max(local_epsilon, 1e-9)) <= 1e-300
        assert accounting.delta(mechanism, 0.0) <= 1
    alone = accounting.delta(Shuffled(local_epsilon, 1), local_epsilon / 2)
    pure = accounting.delta(Pure(local_epsilon), local_epsilon / 2)
    assert pure * (1 - 1e-6) <= max(alone, 1e-12)
    assert alone <= max(pure, 1e-9) * (1 + 1e-6)


@each_case("n", [10**6, 10**9, 2**53])
def test_very_many_people_have_a_curve(n):
    few, many = (accounting.epsilon(Shuffled(1.0, size), delta=1e-6) for size in (10**5, n))
    assert 0 < many < few / 2


# Composition -------------------------------------------------------------------------------------


def losses(n, local_epsilon, categories):
    """Masses under P and Q of the counts of the three laws."""
    growth, common = math.exp(local_epsilon), (categories or 2) - 2
    lie = 1 / (growth + 1 + common)
    chances = [lie, lie, common * lie, 1 - (2 + common) * lie]
    p, q = [], []
    for first, second, third in itertools.product(range(n + 1), repeat=3):
        rest = n - first - second - third
        if rest < 0:
            continue
        mass = multinomial.pmf([first, second, third, rest], n, chances) / n
        p.append(mass * (growth * first + second + third))
        q.append(mass * (first + growth * second + third))
    return np.array(p), np.array(q)


@each_case("n, local_epsilon, categories", [(3, 1.0, None), (4, 2.0, 5), (12, 1.0, None)])
def test_compositions_lie_above_the_exact_one_and_near_it(n, local_epsilon, categories):
    p, q = losses(n, local_epsilon, categories)
    for epsilon in (0.1, 0.9):
        twice = np.maximum(np.outer(p, p) - math.exp(epsilon) * np.outer(q, q), 0).sum()
        shown = accounting.delta([(Shuffled(local_epsilon, n, categories), 2)], epsilon)
        assert twice * (1 - 1e-9) <= shown <= twice * (1 + 1e-3)


def test_two_mixes_of_bits_hide_no_less_than_any_two_sets_of_others():
    n, local_epsilon = 5, 1.5
    laws = []
    for ones in range(n):
        base = {(0, 0): 1.0}
        for other in range(n - 1):
            base = add(base, kary(2, local_epsilon)[int(other < ones)])
        pair = [add(base, law) for law in kary(2, local_epsilon)]
        laws += [[np.array([law[key] for key in sorted(law)]) for law in pair]]
    for epsilon in (0.2, 1.1, 2.6):
        shown = accounting.delta([(Shuffled(local_epsilon, n, categories=2), 2)], epsilon)
        exact = max(
            np.maximum(
                np.outer(a[i], b[j]) - math.exp(epsilon) * np.outer(a[1 - i], b[1 - j]), 0
            ).sum()
            for a, b in itertools.product(laws, repeat=2)
            for i, j in itertools.product((0, 1), repeat=2)
        )
        assert exact * (1 - 1e-9) <= shown <= exact * 1.5


def test_compositions_are_between_the_estimates_of_dp_accounting():
    peer = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    n, local_epsilon, rounds = 12, 1.0, 20
    p, q = losses(n, local_epsilon, None)
    seen = p > 0
    laws = ({place: math.log(mass) for place, mass in enumerate(law[seen])} for law in (q, p))
    lower, upper = laws
    ends = []
    for pessimistic in (False, True):
        one = peer.from_two_probability_mass_functions(
            lower,
            upper,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-3,
        )
        noise = peer.from_gaussian_mechanism(
            2.0, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3
        )
        ends.append(one.self_compose(rounds).compose(noise).get_epsilon_for_delta(1e-5))
    terms = [(Shuffled(local_epsilon, n), rounds), GaussianMechanism(0.5)]
    shown = accounting.epsilon(terms, delta=1e-5)
    assert ends[0] <= shown <= ends[1] * 1.002


def test_shuffled_reports_compose_with_other_mechanisms():
    reports, noise = Shuffled(1.0, 1_000), GaussianMechanism(0.1)
    both = accounting.epsilon([reports, noise], delta=1e-6)
    alone = [accounting.epsilon(each, delta=1e-6) for each in (reports, noise)]
    assert max(alone) < both < sum(alone)
    # Reports that nobody hides add up with the others, however large their epsilon is.
    for local_epsilon in (30.0, 61.0, 700.0):
        together = accounting.epsilon([Shuffled(local_epsilon, 1_000), noise], delta=1e-6)
        assert local_epsilon < together < local_epsilon * (1 + 1e-4) + alone[1]
    # A hundred mixes are nearly a normal loss.
    hundred = accounting.epsilon([(reports, 100)], delta=1e-6)
    assert alone[0] < hundred < 100 * alone[0] / 5
    assert accounting.epsilon([(reports, 100)], 1e-6, accountant="rdp") >= hundred


@each_case(
    "arguments",
    [
        {"local_epsilon": 0.0},
        {"local_epsilon": math.inf},
        {"n": 0},
        {"n": 1.5},
        {"categories": 1},
        {"categories": 2.5},
        {"neighbors": "local"},
        {"neighbors": "add_remove"},
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(arguments):
    with pytest.raises(ParameterError, match=next(iter(arguments))):
        Shuffled(**{"local_epsilon": 1.0, "n": 10, **arguments})


def test_shuffled_reports_are_not_subsampled():
    with pytest.raises(ParameterError, match="base"):
        Subsampled(Shuffled(1.0, 10), draws=1, rate=0.5)
