"""The sparse vector technique against enumerated laws of its integer noise."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from cases import each_case
from processes import exit_code, forked

from hdp_fast import Budget, _core, stability
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError
from hdp_fast.reference import stability as reference
from hdp_fast.stability import AboveThreshold, OnlineQueryRelease, StableRelease, sparse_vector


def exceeded(law, other, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * other.get(a, 0.0)) for a, p in law.items())


def composed(each, T, epsilon):
    """Kairouz, Oh and Viswanath's delta, from its definition."""
    terms = (
        math.comb(T, lies) * (math.exp((T - lies) * each) - math.exp(epsilon + lies * each))
        for lies in range(T + 1)
    )
    return sum(max(0.0, term) for term in terms) / (1 + math.exp(each)) ** T


@each_case("T", [1, 2, 5, 20])
@each_case(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-3), (4.0, 0.05)])
def test_the_scale_is_the_smallest_that_composes(T, epsilon, delta):
    scale = float(stability.laplace_scale(T, epsilon=epsilon, delta=delta))
    assert composed(2 / scale, T, epsilon) <= delta * (1 + 1e-9)
    assert composed(2 / (0.9999 * scale), T, epsilon) > delta
    assert scale < math.sqrt(32 * T * math.log(2 / delta)) / epsilon


def test_without_delta_the_scale_is_that_of_basic_composition():
    assert stability.laplace_scale(7, epsilon=0.5) == 28


@pytest.mark.parametrize(("T", "epsilon", "delta"), [(1, 1.5, 0.0), (2, 1.5, 0.02), (2, 1.0, 0.0)])
def test_no_pair_of_neighboring_values_exceeds_delta(T, epsilon, delta):
    scale = float(stability.laplace_scale(T, epsilon=epsilon, delta=delta))
    laws = {
        values: reference.above_threshold_law(values, 0, scale, T)
        for values in itertools.product(range(-1, 3), repeat=3)
    }
    worst = 0.0
    for values, law in laws.items():
        assert sum(law.values()) == pytest.approx(1)
        for steps in itertools.product((-1, 0, 1), repeat=3):
            other = laws.get(tuple(v + s for v, s in zip(values, steps, strict=True)))
            if other:
                worst = max(worst, exceeded(law, other, epsilon))
    assert worst <= delta + 1e-12


def test_half_the_scale_would_be_found_out():
    # Many queries above push the noise of the threshold down, then one bottom lifts it.
    first = reference.above_threshold_law((*[0] * 12, 5), 0, 1.0, 1)
    second = reference.above_threshold_law((*[1] * 12, 4), 0, 1.0, 1)
    assert exceeded(second, first, 2.0) == 0
    assert exceeded(second, first, 1.0) > 0


@pytest.mark.parametrize(("T", "epsilon", "delta"), [(1, 2.0, 0.1), (2, 3.0, 0.1)])
def test_labels_that_differ_at_distance_zero_add_no_more_than_their_half(T, epsilon, delta):
    release = OnlineQueryRelease(T, epsilon=epsilon, delta=delta)
    scale = float(stability.laplace_scale(T, epsilon=epsilon, delta=delta / 2))
    w, worst = release.threshold, 0.0
    pairs = [(0, 0), (0, 1), (1, 0), (w, w + 1), (w + 1, w), (2 * w, 2 * w)]
    for steps in itertools.product(pairs, repeat=3):
        here = reference.above_threshold_law(tuple(a for a, _ in steps), w, scale, T)
        there = reference.above_threshold_law(tuple(b for _, b in steps), w, scale, T)
        # Answers that tell a winner which the neighbor does not have.
        shown = [i for i, step in enumerate(steps) if step == (0, 0)]
        secret = {a for a in here if any(i < len(a) and a[i] for i in shown)}
        kept = {a: p for a, p in there.items() if a not in secret}
        worst = max(worst, exceeded(here, kept, epsilon))
    assert delta / 100 < worst <= delta


@pytest.mark.parametrize("T", [1, 50])
@pytest.mark.parametrize("delta", [1e-6, 0.01])
def test_the_threshold_is_the_smallest_that_noise_rarely_passes(T, delta):
    release = OnlineQueryRelease(T, epsilon=3.0, delta=delta)
    scale = float(stability.laplace_scale(T, epsilon=3.0, delta=delta / 2))
    reach = int(100 * scale)
    noise = reference.discrete_laplace(scale, reach)
    wide = reference.discrete_laplace(2 * scale, reach)
    difference = np.convolve(wide, noise)
    tail = np.cumsum(difference[::-1])[::-1]

    def passed(w):
        return T * tail[2 * reach + w + 1]

    assert passed(release.threshold) <= delta / 2 * (1 + 1e-9)
    assert passed(release.threshold - 2) > delta / 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 0.01), (5.0, 0.3)])
def test_a_stable_release_has_the_smallest_threshold(epsilon, delta):
    g = StableRelease(epsilon=epsilon, delta=delta).threshold
    ratio = math.exp(-epsilon)
    assert ratio ** (g + 1) / (1 + ratio) <= delta * (1 + 1e-12)
    assert g == 0 or ratio**g / (1 + ratio) > delta


def test_what_is_printed_violates_its_guarantee():
    # Algorithm 2 with the distance of Algorithm 4, which the paper does not pair: epsilon = 1,
    # delta = 1e-6, a gap of 16 on one side and 14 on the other.
    limit = math.log(1e6)
    bottom = {16: math.exp(limit - 15) / 2, 14: 1 - math.exp(13 - limit) / 2}
    assert bottom[14] - math.e * bottom[16] == pytest.approx(0.363, abs=5e-4)
    gaps = [reference.printed_distance(np.array([votes]))[0] for votes in ([23, 7], [22, 8])]
    assert gaps == [15, 13]
    # Algorithm 6, w = lambda ln(4 m / delta): votes (r + 1, r) and (r, r + 1), winners told apart.
    m, delta = 1000, 1e-6
    x = math.log(4 * m / delta)
    chance = 2 / 3 * math.exp(-x / 2) - math.exp(-x) / 6
    assert chance == pytest.approx(1.054e-5, rel=1e-3)
    assert chance > 10.5 * delta
    # A union over the tests without the threshold's noise is a third of it, and right with it.
    assert 2 / 3 * math.exp(-math.log(2 * m / delta)) == pytest.approx(delta / 3 / m)


def test_it_ends_at_exactly_T_bottoms():
    above = AboveThreshold(3, 1000, epsilon=10, delta=1e-6)
    assert above.answer(10**6) is True
    assert above.answer(-(10**6)) is False
    answers = above.answer([10**6, -(10**6), 10**6, -(10**6), 10**6])
    assert answers.tolist() == [True, False, True, False]
    assert above.bottoms_left == 0
    with pytest.raises(BudgetExceeded, match="last bottom"):
        above.answer(10**6)


def test_it_ends_after_m_queries():
    above = AboveThreshold(3, 0, epsilon=10, queries=4)
    assert above.answer([10**6] * 3).all()
    with pytest.raises(BudgetExceeded, match="2 queries, but 1 are left"):
        above.answer([1, 2])
    assert above.queries_left == 1
    assert AboveThreshold(3, 0, epsilon=10).queries_left is None


def test_values_at_the_ends_of_their_range_do_no_harm():
    most = 2**63 - 1
    for threshold, sign in ((0, 1), (0, -1)):
        above = AboveThreshold(1, threshold, epsilon=1)
        assert above.answer(sign * most) is (sign > 0)


def test_far_votes_are_told_and_ties_are_not():
    release = OnlineQueryRelease(3, epsilon=1, delta=1e-6)
    far = 10 * release.threshold
    assert release.answer([0, far, 0]) == 1
    assert release.answer([[far, 0], [3, 3], [0, far], [5, 5], [4, 4], [far, 0]]).tolist() == [
        *(0, -1, 1, -1, -1),
    ]
    assert release.bottoms_left == 0
    single = StableRelease(epsilon=1, delta=1e-9)
    text = f"distances above {single.threshold:,}, with noise"
    assert repr(single) == f"StableRelease(epsilon=1, delta=1e-09): {text}"
    assert single.release([0, 0, 500]) == 2
    assert single.release([4, 4, 0]) == -1


def test_they_are_paid_for_and_never_copied():
    budget = Budget(3, delta=1e-3)
    above = AboveThreshold(3, 0, epsilon=1, budget=budget)
    release = OnlineQueryRelease(3, epsilon=1, delta=1e-6, budget=budget)
    above.answer([100] * 5)
    with pytest.raises(ParameterError, match="random_state"):
        StableRelease(epsilon=1, delta=1e-5).release([9, 0], random_state="x", budget=budget)
    StableRelease(epsilon=1, delta=1e-5).release([9, 0], budget=budget)
    assert budget.spent == (3, pytest.approx(1.1e-5))
    for refused in (
        lambda: AboveThreshold(3, 0, epsilon=1, budget=budget),
        lambda: StableRelease(epsilon=1, delta=1e-5).release([9, 0], budget=budget),
    ):
        with pytest.raises(BudgetExceeded):
            refused()
    assert copy.copy(above) is above is copy.deepcopy(above)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(above)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(release)
    assert (release.record.epsilon, release.record.delta) == (1, 1e-6)
    assert "noisy" not in repr(above) + repr(release)


def test_a_forked_child_cannot_go_on():
    above = AboveThreshold(3, 0, epsilon=1)

    def child():
        with pytest.raises(ParameterError):
            above.answer(3)

    assert exit_code(forked(child)) == 0


def test_a_seed_repeats_a_run_but_no_coin():
    runs = [AboveThreshold(500, 0, epsilon=50, random_state=3) for _ in range(2)]
    first, second = ([run.answer(0) for _ in range(100)] for run in runs)
    assert first == second
    assert 10 < sum(first) < 90


@each_case(
    ("call", "error", "text"),
    [
        (lambda: AboveThreshold(0, 0, epsilon=1), ParameterError, "max_unstable = 0"),
        (lambda: AboveThreshold(1, 0.5, epsilon=1), ParameterError, "threshold has dtype"),
        (lambda: AboveThreshold(1, [1], epsilon=1), ShapeError, "threshold has shape"),
        (lambda: AboveThreshold(1, 0, epsilon=0), ParameterError, "epsilon = 0"),
        (lambda: AboveThreshold(1, 0, epsilon=1e4), ParameterError, "epsilon = 10000"),
        (lambda: AboveThreshold(1, 0, epsilon=1, delta=1), ParameterError, "delta = 1"),
        (lambda: AboveThreshold(1, 0, epsilon=1, queries=0), ParameterError, "queries = 0"),
        (lambda: AboveThreshold(1, 0, epsilon=1).answer([1.5]), ParameterError, "values has"),
        (lambda: AboveThreshold(1, 0, epsilon=1).answer([[1]]), ShapeError, "values has shape"),
        (lambda: AboveThreshold(1, 0, epsilon=1).answer([2**63]), ParameterError, "values has"),
        (lambda: OnlineQueryRelease(1, epsilon=1, delta=0), ParameterError, "delta = 0"),
        (lambda: StableRelease(epsilon=1, delta=0), ParameterError, "delta = 0"),
        (lambda: StableRelease(epsilon=1e9, delta=0.1), ParameterError, "epsilon"),
        (lambda: StableRelease(epsilon=1, delta=0.1).release([[1]]), ShapeError, "counts has"),
    ],
)
def test_bad_input_gives_one_clear_error(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_unsigned_integers_are_read_as_far_as_they_fit():
    largest = np.array([5, (1 << 63) - 1], np.uint64)
    assert sparse_vector._check_integers("values", largest).tolist() == [5, (1 << 63) - 1]
    with pytest.raises(ParameterError, match="values has entries out of range"):
        sparse_vector._check_integers("values", np.array([5, 1 << 63], np.uint64))


@each_case("epsilon", [0.25, 4.0])
def test_single_releases_have_noise_of_the_scale_1_over_epsilon(epsilon):
    mechanism, tries = StableRelease(epsilon=epsilon, delta=0.1), 3_000
    # Of n equal votes the winner stays until half of them are another's.
    distance = max(0, mechanism.threshold - round(1 / epsilon))
    votes = np.array([2 * distance + 1, 0], np.uint32)
    assert int(_core.pluralities(votes, 2)[1][0]) == distance
    ratio = math.exp(-epsilon)
    chance = ratio ** (mechanism.threshold + 1 - distance) / (1 + ratio)
    coins = np.random.default_rng(5)
    answered = sum(mechanism.release(votes, random_state=coins) == 0 for _ in range(tries))
    assert abs(answered - tries * chance) < 5 * math.sqrt(tries * chance) + 1
