"""Errata of the four papers: counter-examples and numbers, each named after its point.

`test_errata_ks_4_...` belongs to point 4 of Kohen and Sheffet on docs/theory/errata.md. The last
tests hold the page to its tests.
"""

import math
import re
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from cases import each_case

from hdp_fast import accounting
from hdp_fast.reference import stability
from hdp_fast.stability import paper_sizes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "errata.md"
DELTAS = (1e-3, 1e-6, 1e-9)
STREAMS = (1, 2, 10, 100, 1_000, 100_000)

phi = NormalDist().cdf


# Bassily, Thakkar and Thakurta 2018 --------------------------------------------------------------


def printed_scale(T, epsilon, delta):
    """The scale of Algorithms 3 and 4."""
    return math.sqrt(32 * T * math.log(2 / delta)) / epsilon


def share_of_half(T, epsilon, delta):
    """What T + 1 epochs of a distance that moves by two need of the delta / 2 that is theirs."""
    spent = accounting.optimal_composition(
        4 / printed_scale(T, epsilon, delta), 0.0, T + 1, target_epsilon=epsilon
    )
    return spent / (delta / 2)


def passing_winners(T, epsilon, delta):
    """A bound on what winners that neighbors do not share add, in parts of delta.

    Such a query has the printed distance 1 at most. In each epoch the first one either passes or
    ends the epoch, so that at most one an epoch can pass, and no more than there are queries: T + 1
    at m = T + 1, the worst case of (T + 1) / m.
    """
    scale, m = printed_scale(T, epsilon, delta), T + 1
    x = math.log(2 * m / delta) - 1 / (2 * scale)
    return (T + 1) * (2 / 3 * math.exp(-x) - math.exp(-2 * x) / 6) / delta


@each_case(("epsilon", "largest"), [(1, 0.00934), (4, 0.1498), (6, 0.526), (7, 0.919), (8, 1.549)])
def test_errata_btt_3_the_printed_algorithms_keep_their_promise_up_to_epsilon_7(epsilon, largest):
    shares = [share_of_half(T, epsilon, delta) for delta in DELTAS for T in STREAMS]
    assert max(shares) == pytest.approx(largest, rel=5e-3)
    whole = [
        share_of_half(T, epsilon, delta) / 2 + passing_winners(T, epsilon, delta)
        for delta in DELTAS
        for T in STREAMS
    ]
    assert (max(whole) <= 1) == (epsilon <= 7)


@each_case("epsilon", [1, 7, 20])
def test_errata_btt_3_exact_distances_leave_the_printed_scale_far_more_room(epsilon):
    # Algorithm 1, and Algorithm 3 with a distance of sensitivity 1: 2 / lambda an epoch.
    for delta in DELTAS:
        for T in STREAMS:
            scale = math.sqrt(32 * T * math.log(1 / delta)) / epsilon
            spent = accounting.optimal_composition(2 / scale, 0.0, T + 1, target_epsilon=epsilon)
            assert spent <= 3e-4 * delta


def test_errata_btt_3_winners_differ_at_printed_distances_of_one_at_most():
    for total in range(1, 12):
        for first in range(total + 1):
            for second in range(total - first + 1):
                counts = np.array([[first, second, total - first - second]])
                for giver in np.flatnonzero(counts[0]):
                    for taker in range(3):
                        other = counts.copy()
                        other[0, giver] -= 1
                        other[0, taker] += 1
                        if counts.argmax() != other.argmax():
                            both = stability.printed_distance(np.concatenate([counts, other]))
                            assert both.max() <= 1


def test_errata_btt_9_the_printed_members_are_more_than_the_queries():
    sizes = paper_sizes(50, 1_000, epsilon=1.0, delta=1e-6, beta=0.05)
    assert sizes.members == 95_317 > 1_000


def test_errata_btt_10_the_printed_members_are_too_few_for_the_proof_at_large_epsilon():
    T, delta, m, beta = 1, 1e-6, 1_000, 0.05
    largest = 136 / 72 * math.sqrt(T * math.log(2 / delta))
    assert largest == pytest.approx(7.19, abs=0.01)

    def printed(epsilon, delta):
        x = math.log(4 * m * T / min(delta, beta / 2))
        return 136 * x * math.sqrt(T * math.log(2 / delta)) / epsilon

    needed = 72 * math.log(2 * m / beta)
    assert printed(largest, delta) > needed
    # With a large delta both logarithms are alike.
    assert printed(1.5 * 136 / 72 * math.sqrt(math.log(2 / 0.025)), 0.025) < needed


# Bassily, Cortes, Mao and Mohri 2024 -------------------------------------------------------------


def censored_delta(mu, epsilon, offsets, cells=2_000):
    """A lower bound on the delta of one step that is projected onto two borders.

    Each coordinate moves by mu / sqrt(2) between the neighbors and has normal noise; what lies
    beyond 0 is shown as 0. An offset is the share of the move by which the first neighbor lies
    inside. The test set is cut into strips of the first coordinate, whose probabilities are exact.
    """
    move = mu / math.sqrt(2)

    def below(x, offset):
        return np.array([phi(x + offset * move), phi(x - (1 - offset) * move)])

    def loss(x, offset):
        return move * move * (1 - 2 * offset) / 2 - move * x

    def where_more_than(left, offset):
        """Probabilities that the second coordinate's loss is above `left`."""
        both = below(min((move * move * (1 - 2 * offset) / 2 - left) / move, 0.0), offset)
        beyond = 1 - below(0.0, offset)
        return both + beyond if math.log(beyond[0] / beyond[1]) > left else both

    first, second = offsets
    edges = np.linspace(-9 - move, 0, cells + 1)
    masses = np.diff([below(edge, first) for edge in edges], axis=0)
    losses = [loss(middle, first) for middle in (edges[1:] + edges[:-1]) / 2]
    beyond = 1 - below(0.0, first)
    masses = [*masses, beyond]
    losses.append(math.log(beyond[0] / beyond[1]))
    p, q = sum(
        mass * where_more_than(epsilon - lost, second)
        for mass, lost in zip(masses, losses, strict=True)
    )
    return p - math.exp(epsilon) * q


@each_case(("delta", "limit"), [(1e-2, 8.92), (1e-4, 9.88), (1e-6, 10.57)])
def test_errata_bcmm_1_projection_hides_next_to_nothing_of_it(delta, limit):
    for offsets in [(0.5, 1.0), (0.5, 0.5)]:
        for epsilon, broken in [(limit - 0.01, False), (limit + 0.01, True)]:
            mu = epsilon / math.sqrt(2 * math.log(3 / delta))
            shown = censored_delta(mu, epsilon, offsets)
            assert shown <= accounting.gaussian_delta(mu, epsilon)
            assert (shown > delta) == broken
    mu = 10 / math.sqrt(2 * math.log(300))
    assert censored_delta(mu, 10, (0.5, 1.0)) > accounting.gaussian_delta(mu, 10) - 3e-6


def test_errata_bcmm_2_epsilon_over_the_root_of_T_does_not_compose():
    for T in (10, 100, 1_000):
        composed = accounting.optimal_composition(1 / math.sqrt(T), 1e-6, T, target_epsilon=1)
        assert composed > 100 * 1e-6


# Kohen and Sheffet 2022 --------------------------------------------------------------------------


def test_errata_ks_4_claim_4_1_is_false_above_2_92():
    def shown(epsilon, n):
        """The loss of the answer 1 where one record of n differs, and one is drawn."""
        lie = 1 / (1 + math.exp(epsilon))
        return math.log(((1 - 1 / n) * lie + (1 - lie) / n) / lie)

    for epsilon, true in [(4, 0.4292), (5, 0.9059), (10, 5.3993)]:
        assert shown(epsilon, 100) == pytest.approx(true, abs=5e-5)
        assert true > 6 * epsilon / 100
    limit = 2.9183
    assert math.expm1(limit - 1e-4) < 6 * limit < math.expm1(limit + 1e-3)
    assert shown(limit + 0.001, 10**6) > 6 * (limit + 0.001) / 10**6
    # Below it the claim is right for pure learners, by the tight bound, which this example attains.
    for epsilon in (0.5, 1.0, 2.0, 2.918):
        for n in (10, 100, 10**6):
            mechanism = accounting.Subsampled(accounting.Pure(epsilon), draws=1, rate=1 / n)
            assert shown(epsilon, n) <= 6 * epsilon / n
            assert accounting.pure_epsilon(mechanism) == pytest.approx(shown(epsilon, n), rel=1e-9)


def test_errata_ks_5_noise_for_a_loss_of_one_does_not_hide_a_larger_one():
    def true(largest_loss):
        mu = largest_loss * 0.5 / math.sqrt(2 * math.log(2 / 1e-4))
        return accounting.gaussian_delta(mu, 0.5)

    assert true(1) < true(1.5) < 1e-4
    assert true(2) == pytest.approx(1.3e-3, rel=0.01)
    assert true(5) == pytest.approx(0.072, rel=0.01)


@each_case("printed", [8, 32])
def test_errata_ks_6_the_steps_of_theorem_A_1_leave_one_and_a_half_alpha(printed):
    # Its own bound, in parts of alpha: D = L = alpha = 1, and G**2 = L**2 + sigma**2 d.
    beta, largest = 0.05, 0.0
    for squares in np.linspace(1.0, 100.0, 2_000):
        steps = max(9 * squares, printed * math.log(2 / beta))
        bound = 1.5 * math.sqrt(squares / steps) + math.sqrt(8 * math.log(2 / beta) / steps)
        largest = max(largest, bound)
    assert largest == pytest.approx({8: 1.5, 32: 1.0}[printed], abs=2e-3)


def test_errata_ks_7_steps_that_divide_by_the_noise_are_too_long():
    # The regret of steps s / sqrt(r), in parts of sqrt(R): D**2 / (2 s) + G**2 s; d = 100.
    deviation, largest = 1.0, math.sqrt(1 / 20 + 100)
    printed = deviation / 2 + largest**2 / deviation
    meant = largest / 2 + largest
    assert printed / meant == pytest.approx(6.7, abs=0.05)


def test_errata_ks_8_the_printed_rate_of_algorithm_4_needs_other_rounds():
    alpha = 0.1

    def rounds(rate, loss):
        """Rounds after which the regret excludes another, over log2(8 (chi2 + 1) / alpha)."""
        gain = 3 * alpha / (8 * loss) - rate
        return 4 / (rate * gain) if gain > 0 else math.inf

    for loss, times in [(0.5, 1.6), (1.0, 1.0), (0.0006, 1_111), (2.999, 667)]:
        printed = 128 * loss**2 / alpha**2
        assert rounds(alpha / 8, loss) / printed == pytest.approx(times, rel=1e-2)
        assert rounds(alpha / (8 * loss), loss) == pytest.approx(printed)
    assert rounds(alpha / 8, 3.01) == math.inf


@each_case(
    ("epsilon", "agents", "failure"), [(8, 1_590, 0.017), (13, 602, 0.059), (20, 255, 0.160)]
)
def test_errata_ks_9_the_agents_of_section_2_are_too_few_at_large_epsilon(epsilon, agents, failure):
    delta, alpha, beta = 1e-6, 0.05, 0.05
    N = math.ceil(4 * math.log(2 / delta) * math.log(4 / beta) / (epsilon * alpha) ** 2)
    noise = math.sqrt(2 * math.log(2 / delta) / N) / epsilon
    assert agents == N
    # People of whom half say yes, their number and the noise exactly.
    missed = sum(
        math.comb(N, yes)
        / 2**N
        * (phi((-alpha - yes / N + 0.5) / noise) + phi((yes / N - 0.5 - alpha) / noise))
        for yes in range(N + 1)
    )
    assert missed == pytest.approx(failure, rel=0.03)
    assert (missed > beta) == (epsilon > 12)


def test_errata_ks_11_every_hypothesis_of_figure_3_meets_its_alpha():
    diameter, lipschitz, alpha, chi2 = 0.006, 0.1, 0.08, 0.35
    assert diameter * lipschitz < alpha / 100
    rounds = 128 * (diameter * lipschitz) ** 2 * math.log2(8 * (chi2 + 1) / alpha) / alpha**2
    assert rounds < 1


def test_errata_ks_12_equation_3_holds_for_weights_of_twice_the_size():
    rng, kappa = np.random.default_rng(3), 0.01
    for size in (0.5, 0.96, 1.02):
        for _ in range(20):
            u = rng.pareto(2.0, 400)
            u *= size / u.mean()
            w = 2 * kappa * u
            divergence = np.sum(w * np.log(w / kappa) - w + kappa) / (kappa * len(u))
            law = u / u.sum()
            assert divergence >= np.sum(law * np.log(law * len(u))) - 1e-12


# The page ----------------------------------------------------------------------------------------

SECTIONS = {
    "Bassily, Thakkar and Thakurta": "btt",
    "Bassily, Cortes, Mao and Mohri": "bcmm",
    "Kohen and Sheffet": "ks",
    "Kasiviswanathan": "klnrs",
}


def points():
    """Each numbered point of the page: its name, such as ks_4, and its text."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        short = [short for title, short in SECTIONS.items() if section.startswith(title)]
        for point in re.split(r"\n(?=\*\*\d+\. )", section)[1:] if short else []:
            number = re.match(r"\*\*(\d+)\.", point)[1]
            found[f"{short[0]}_{number}"] = re.sub(r"\s+", " ", point)
    return found


@pytest.mark.skipif(not PAGE.exists(), reason="needs docs/")
def test_each_point_that_is_no_slip_names_a_test_that_exists():
    assert len(points()) >= 28
    untested = {name for name, text in points().items() if "(Slip" in text or "No error" in text}
    for name, text in points().items():
        commands = re.findall(r"`pytest (tests/\S+\.py) -k (\"[^\"]+\"|\w+)`", text)
        assert commands or name in untested, f"{name} has no test"
        for file, words in commands:
            names = re.findall(r"def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"))
            for word in words.strip('"').split(" or "):
                assert any(word in each for each in names), f"{name}: {word} is no test of {file}"


@pytest.mark.skipif(not PAGE.exists(), reason="needs docs/")
def test_each_test_here_belongs_to_a_point_that_names_it():
    source = Path(__file__).read_text(encoding="utf-8")
    for name in set(re.findall(r"def test_errata_([a-z]+_\d+)_", source)):
        assert f"tests/papers/test_errata.py -k errata_{name}" in points()[name], name
