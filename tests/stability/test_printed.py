"""What Bassily, Thakkar and Thakurta 2018 print: sizes, laws, and the delta that it keeps."""

import itertools
import math
from collections import Counter
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from frequencies import Case, misfits

from hdp_fast import labels, stability
from hdp_fast.exceptions import ParameterError
from hdp_fast.reference import stability as reference
from hdp_fast.stability import AboveThreshold, OnlineQueryRelease, StableRelease, plans, printed

DRAWS = 2000


def exceeded(law, other, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * other.get(a, 0.0)) for a, p in law.items())


def drawn(run, draws=DRAWS):
    return Counter(run() for _ in range(draws))


def with_labels(steps, winners):
    """The law of answers, given that of comparisons: -1 for bottom."""
    return {
        tuple(w if above else -1 for above, w in zip(answers, winners, strict=False)): p
        for answers, p in steps.items()
    }


def histograms(k, size):
    return [c for c in itertools.product(range(k + 1), repeat=size) if sum(c) == k]


# Sizes -------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_printed_formulas():
    T, m, e, d, b = 20, 1000, 0.5, 1e-6, 0.05
    sizes = stability.paper_sizes(T, m, epsilon=e, delta=d, beta=b)
    ln, root = math.log, math.sqrt
    wanted = {
        "above_threshold": ln(2 * m * T / b) * root(512 * T * ln(1 / d)) / e,
        "stable_release": (ln(1 / d) + ln(1 / b)) / e,
        "online": 32 * ln(4 * m * T / d) * root(2 * T * ln(2 / d)) / e,
        "members": 136 * ln(4 * m * T / d) * root(T * ln(2 / d)) / e,
        "soft": 32 * ln(8 * m * T / d) * root(4 * T * ln(2 / d)) / e,
        "soft_members": 136 * ln(8 * m * T / d) * root(2 * T * ln(2 / d)) / e,
    }
    scale = root(64 * T * ln(2 / d)) / e
    wanted["soft_query"] = 3 * (root(5) * scale * ln(2 / b) + scale * ln(4 * m / d))
    for name, value in wanted.items():
        assert getattr(sizes, name) == pytest.approx(value, rel=1e-5), name
    small = {"epsilon": e, "delta": 0.9, "beta": b}
    # The failure probability enters halved in Algorithm 4 alone.
    sizes = stability.paper_sizes(T, m, **small)
    spread = root(T * ln(2 / 0.9)) / e
    assert sizes.members == round(136 * ln(4 * m * T / (b / 2)) * spread)
    assert sizes.online == pytest.approx(32 * ln(4 * m * T / b) * root(2) * spread)


def test_unstable_queries_and_bins_are_those_of_the_printed_formulas():
    for error, beta in ((0.05, 0.05), (0.0, 0.3)):
        T = 3 * (error * 1000 + math.sqrt(1000 * math.log(1000 / beta) / 2))
        printed_T = labels.unstable_queries(1000, error=error, beta=beta, variant="paper")
        assert printed_T == math.ceil(T)
        assert labels.unstable_queries(1000, error=error, beta=beta) < printed_T
    width = 16 * 1e-4 * math.sqrt(2 * 500) + 0.03
    assert labels.soft_bins(1e-4, 500, quality=0.03, variant="paper") == math.floor(1 / width)
    with pytest.raises(ParameterError, match="variant"):
        labels.soft_bins(1e-4, 500, variant="printed")
    with pytest.raises(ParameterError, match="variant"):
        labels.unstable_queries(9, error=0.1, variant="printed")


@each_case(("alpha", "beta"), [(0.1, 0.05), (0.02, 0.02), (0.3, 0.01)])
def test_the_answers_err_no_more_than_claim_4_5_says(alpha, beta):
    m = math.ceil(4 * math.log(1 / (alpha * beta)) / alpha**2)
    # No hypothesis errs: gamma = 0.
    T = labels.unstable_queries(m, error=alpha, beta=beta, variant="paper")
    assert 3 * alpha < (T - 1) / m + beta <= 7 * alpha


@each_case("beta", [0.3, 0.05, 1e-6])
def test_two_thirds_of_the_members_of_corollary_5_10_agree(beta):
    k = math.ceil(72 * math.log(1 / beta))
    assert plans.log_below(math.ceil(2 * k / 3), k, 0.75) <= math.log(beta)


def test_the_members_of_lemma_5_13_answer_one_query():
    # Two thirds of them are in one bin, so that the distance is a third of them less 1.
    for beta in (0.3, 0.05, 1e-6):
        k = stability.paper_sizes(5, 100, epsilon=1.0, delta=1e-6, beta=beta).soft_query
        scale = math.sqrt(64 * 5 * math.log(2e6))
        gap = k / 3 - 1 - scale * math.log(4e8)
        assert reference.passing_probability(gap, scale) <= beta / 2


def test_no_ensemble_has_more_unstable_queries_than_lemma_4_2_says():
    # Each of 4 classifiers errs on at most B of 3 queries: all patterns of mistakes.
    k, m, share = 4, 3, 1 / 3
    most = Counter()
    for mistakes in itertools.product(itertools.product((0, 1), repeat=m), repeat=k):
        B = max(map(sum, mistakes))
        unstable = sum(column > share * k for column in map(sum, zip(*mistakes, strict=True)))
        most[B] = max(most[B], unstable)
    assert all(unstable < B / share or unstable == 0 for B, unstable in most.items())
    assert most[1] == 2


# What the printed algorithms keep ----------------------------------------------------------------


@each_case(("k", "size"), [(5, 2), (6, 2), (5, 3), (6, 3)])
def test_a_vote_changes_the_printed_distance_by_two_and_the_winner_at_most_at_one(k, size):
    changed, most = set(), 0
    for counts in histograms(k, size):
        for giver, taker in itertools.permutations(range(size), 2):
            if counts[giver]:
                other = list(counts)
                other[giver] -= 1
                other[taker] += 1
                both = np.array([counts, other])
                first, second = reference.printed_distance(both).tolist()
                most = max(most, abs(first - second))
                if both[0].argmax() != both[1].argmax():
                    changed |= {first, second}
    assert most == 2
    # With a tie that goes to the smaller label the winner changes at a distance of 1 and of 0.
    assert changed == ({0, 1} if k % 2 == 0 or size > 2 else {0})


@pytest.mark.parametrize(("T", "epsilon", "delta"), [(1, 6.0, 0.3), (1, 9.0, 0.5), (2, 9.0, 0.4)])
def test_the_bound_covers_the_worst_votes_of_three_queries(T, epsilon, delta):
    m = 3
    bound = printed.printed_delta(T, m, epsilon, delta)
    scale, w = printed._printed_noise(T, m, epsilon, delta)
    worst = 0.0
    pairs = [(1, 0), (0, 1), (w - 1, w + 1), (w + 1, w - 1), (0, 2), (2 * w + 4, 2 * w + 4)]
    for steps in itertools.product(range(len(pairs)), repeat=m):
        ours, theirs = zip(*(pairs[i] for i in steps), strict=True)
        here = reference.above_threshold_law(ours, w, float(scale), T + 1)
        there = reference.above_threshold_law(theirs, w, float(scale), T + 1)
        # The winners differ on queries of the first two pairs.
        shown = [i for i, pair in enumerate(steps) if pair < 2]
        kept = {a: p for a, p in there.items() if not any(i < len(a) and a[i] for i in shown)}
        worst = max(worst, exceeded(here, kept, epsilon))
    assert bound / 1000 < worst <= bound


def test_the_range_of_epsilon_is_the_one_that_is_said():
    for epsilon in (1e-6, 1000):
        assert printed.check_goal(1, 1, epsilon, 0.1)[2] == epsilon
    for epsilon in (0.99e-6, 1000.5):
        with pytest.raises(ParameterError, match=r"it must lie in \[1e-06, 1000\]"):
            printed.check_goal(1, 1, epsilon, 0.1)


def test_the_noise_of_algorithm_1_is_given_where_it_keeps_its_promise():
    """It does by far: T + 1 bottoms of an epsilon of 2 / scale each."""
    for T, epsilon, delta in ((1, 1.0, 1e-6), (20, 0.5, 1e-9)):
        scale = printed.kept_scale(T, epsilon, delta)
        goal = {"epsilon": epsilon, "delta": delta, "variant": "paper"}
        assert scale == stability.laplace_scale(T, **goal)


@pytest.mark.parametrize(("T", "epsilon", "delta"), [(1, 9.0, 0.3), (2, 9.0, 0.3)])
def test_no_neighboring_values_exceed_delta_with_the_noise_of_algorithm_1(T, epsilon, delta):
    scale = float(stability.laplace_scale(T, epsilon=epsilon, delta=delta, variant="paper"))
    laws = {
        values: reference.above_threshold_law(values, 0, scale, T + 1)
        for values in itertools.product(range(-1, 3), repeat=3)
    }
    worst = 0.0
    for values, law in laws.items():
        for steps in itertools.product((-1, 0, 1), repeat=3):
            other = laws.get(tuple(v + s for v, s in zip(values, steps, strict=True)))
            if other:
                # At a ninth of epsilon there is something to see.
                worst = max(worst, exceeded(law, other, epsilon / 9))
                assert exceeded(law, other, epsilon) <= delta
    assert worst > 0


@each_case("delta", [1e-3, 1e-6, 1e-9])
@each_case(("T", "m"), [(1, 10), (10, 100), (50, 1000), (1000, 1000), (100_000, 100_000)])
def test_the_printed_noise_is_kept_up_to_a_limit_that_is_named(T, m, delta):
    limit = stability.paper_sizes(T, m, epsilon=1.0, delta=delta, beta=0.05).largest_epsilon
    assert limit > 7
    assert printed.printed_delta(T, m, min(limit, 999.0), delta) <= delta
    goal = {"delta": delta, "queries": m, "variant": "paper"}
    assert OnlineQueryRelease(T, epsilon=min(limit, 999.0), **goal).record.delta == delta
    if limit < 900:
        assert printed.printed_delta(T, m, 1.001 * limit, delta) > delta
        rule = f"it must be at most {limit:.4g}"
        with pytest.raises(ParameterError, match=rule):
            OnlineQueryRelease(T, epsilon=1.001 * limit, **goal)


def test_the_numpy_bounds_are_those_of_the_compiled_module():
    for T, m, epsilon, delta in ((1, 10, 1.0, 1e-6), (50, 1000, 12.0, 1e-6), (1000, 1000, 8, 1e-3)):
        compiled = printed.printed_delta(T, m, epsilon, delta)
        known = reference.online_guarantee(T, m, epsilon, delta)
        # Integers are a little coarser than floats.
        assert known.delta == pytest.approx(compiled, rel=0.1)
        assert (known.epsilon, known.promised) == (epsilon, delta)


def test_a_label_that_the_neighbor_lacks_is_counted_at_distance_one():
    scale, w = printed._printed_noise(1, 3, 3.0, 0.4)
    shown = reference.above_threshold_law((1,), w, float(scale), 1)[(1,)]
    composed = reference.compose_pure(4 / float(scale), 2, 3.0)
    counted = printed.printed_delta(1, 3, 3.0, 0.4) - composed
    assert 2 * shown <= counted <= 2 * shown * 1.05


def test_the_tail_is_that_of_the_continuous_law_at_large_scales():
    with localcontext(prec=40):
        tail = float(printed.tail_of(Fraction(5000))(100_000))
    assert tail == pytest.approx(reference.passing_probability(100_000, 5000), rel=1e-3)


def test_printed_noise_without_delta_or_queries_is_refused():
    with pytest.raises(ParameterError, match="delta = 0"):
        AboveThreshold(1, 0, epsilon=1, variant="paper")
    with pytest.raises(ParameterError, match="queries = None"):
        OnlineQueryRelease(1, epsilon=1, delta=1e-6, variant="paper")
    with pytest.raises(ParameterError, match="proved for a delta"):
        AboveThreshold(10**6, 0, epsilon=100, delta=0.01, variant="paper")
    for make in (
        lambda: AboveThreshold(1, 0, epsilon=1, variant="printed"),
        lambda: OnlineQueryRelease(1, epsilon=1, delta=1e-6, variant="printed"),
        lambda: StableRelease(epsilon=1, delta=1e-6, variant="printed"),
    ):
        with pytest.raises(ParameterError, match="variant = 'printed'"):
            make()


# Laws --------------------------------------------------------------------------------------------


def test_algorithm_1_follows_its_law_up_to_bottom_T_plus_1():
    goal = {"epsilon": 20.0, "delta": 0.2}
    scale = float(stability.laplace_scale(1, **goal, variant="paper"))
    assert scale == pytest.approx(math.sqrt(32 * math.log(5)) / 20, rel=1e-5)
    values = (3, 1, 4)

    def run():
        session = AboveThreshold(1, 3, **goal, variant="paper")
        assert session.bottoms_left == 2
        return tuple(map(int, session.answer(values)))

    law = reference.above_threshold_law(values, 3, scale, 2)
    assert (0, 0) in law
    assert misfits([Case(drawn(run), law)]) == []


def test_algorithm_2_follows_its_law():
    mechanism = StableRelease(epsilon=1.0, delta=0.1, variant="paper")
    assert mechanism.threshold == 2
    ratio = math.exp(-1)
    # The distance of (7, 3) is 2: the noise must be 1 or more.
    chance = ratio / (1 + ratio)
    found = drawn(lambda: mechanism.release([7, 3]))
    assert misfits([Case(found, {0: chance, -1: 1 - chance})]) == []
    assert ratio ** (mechanism.threshold + 1) / (1 + ratio) <= 0.1
    rng = np.random.default_rng(4)
    found = drawn(lambda: reference.release_stable(0, 1, epsilon=1.0, delta=0.1, rng=rng))
    chance = 0.5 * math.exp(1 - math.log(10))
    assert misfits([Case(found, {0: chance, None: 1 - chance})]) == []


def test_algorithms_3_and_4_follow_their_law():
    goal, votes = {"epsilon": 4.0, "delta": 0.4}, np.array([[12, 2], [2, 14], [5, 4]])
    scale, w = printed._printed_noise(1, 3, **goal)

    def run():
        session = OnlineQueryRelease(1, **goal, queries=3, variant="paper")
        return tuple(session.answer(votes).tolist())

    steps = reference.above_threshold_law((9, 11, 0), w, float(scale), 2)
    law = with_labels(steps, (0, 1, 0))
    assert misfits([Case(drawn(run, 800), law)]) == []


def continuous_law(distances, w, scale, bottoms):
    """The law of comparisons with Laplace noise, by a sum over a fine grid of the threshold's."""
    noise = np.linspace(-25 * scale, 25 * scale, 20_001)
    density = np.exp(-np.abs(noise) / scale)
    density /= density.sum()
    gaps = w + noise - np.array(distances, float)[:, None]
    above = np.where(gaps > 0, 0.5 * np.exp(-np.abs(gaps) / 2 / scale), 0)
    above = np.where(gaps > 0, above, 1 - 0.5 * np.exp(-np.abs(gaps) / 2 / scale))
    law = {}

    def follow(answers, before, joint, left):
        if not left or len(answers) == len(distances):
            law[answers] = before * joint.sum()
            return
        passes = joint * above[len(answers)]
        follow((*answers, 1), before, passes, left)
        follow((*answers, 0), before * (joint - passes).sum(), density, left - 1)

    follow((), 1.0, density, bottoms)
    return law


# Nine records: a chunk of three votes for its majority, and against it on the second point.
RECORDS = np.array([1, 1, 0, 1, 0, 1, 0, 0, 1, 9])
POINTS = np.array([0, 1, 2])


def majority(chunk):
    assert len(chunk) == 3
    label = int(chunk.sum() >= 2)
    return lambda points: np.where(points == 1, 1 - label, label)


def test_algorithm_4_as_printed_follows_its_law():
    goal = {"epsilon": 40.0, "delta": 0.5}
    rng = np.random.default_rng(5)

    def run():
        answers, _ = reference.label_points(
            majority, RECORDS, POINTS, 1, labels=2, k=3, **goal, rng=rng
        )
        return tuple(answers)

    # Two members of three say 1, 0, 1: the gap is 1 and the distance 0.
    scale = math.sqrt(32 * math.log(4)) / 40
    steps = continuous_law((0, 0, 0), 2 * scale * math.log(12), scale, 2)
    law = with_labels(steps, (1, 0, 1))
    assert misfits([Case(drawn(run), law)]) == []
    _, known = reference.label_points(
        majority, RECORDS, POINTS, 1, labels=2, k=3, epsilon=1.0, delta=1e-6, rng=rng
    )
    assert known.delta < known.promised == 1e-6


def test_algorithm_1_in_floats_follows_its_law():
    rng = np.random.default_rng(6)
    goal = {"epsilon": 20.0, "delta": 0.2}
    found = drawn(lambda: tuple(reference.sparse_vector((3, 1, 4), 3, 1, **goal, rng=rng)))
    law = continuous_law((3, 1, 4), 3, math.sqrt(32 * math.log(5)) / 20, 2)
    assert misfits([Case(found, law)]) == []


def test_algorithm_5_puts_fair_coins_where_there_is_no_label():
    rng = np.random.default_rng(7)

    def run():
        return tuple(reference.learn_from_labels(lambda X, y: y.tolist(), POINTS, [1, -1], rng))

    law = {(1, a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    assert misfits([Case(drawn(run), law)]) == []


@pytest.mark.parametrize(
    ("scores", "distances", "values"),
    [
        # Bins of width 1/4: four in [.25, .5), one beside it; shifted, three and two.
        ((0.3, 0.3, 0.4, 0.45, 0.55), (2, 0), (0.375, 0.5)),
        # All around an edge: two bins of equal votes, one shifted bin of all.
        ((0.45, 0.48, 0.52, 0.55), (0, 3), (0.375, 0.5)),
        # On the margin: no shifted bin holds them.
        ((0.01, 0.02, 0.03), (2, 0), (0.125, 0.25)),
    ],
)
def test_algorithms_6_to_8_follow_their_law(scores, distances, values):
    rng, records = np.random.default_rng(8), np.array(scores)
    goal = {"epsilon": 60.0, "delta": 0.5}

    def score(chunk):
        return lambda points: np.full(len(points), chunk[0])

    def run():
        answers, _ = reference.answer_softly(
            score, records, POINTS[:1], 1, bins=4, k=len(records), **goal, rng=rng
        )
        return answers[0]

    scale = math.sqrt(64 * math.log(4)) / 60
    w = scale * math.log(8)
    plain, shifted = (reference.passing_probability(w - d, scale) for d in distances)
    law = {values[0]: plain, values[1]: (1 - plain) * shifted, None: (1 - plain) * (1 - shifted)}
    assert misfits([Case(drawn(run), law)]) == []


def test_algorithm_6_ends_at_cutoff_and_states_what_it_keeps():
    # Ties only: each query fails twice and counts twice, so that the count passes T = 2 at 4.
    records, points = np.array([0.1, 0.9]), np.zeros(9)
    rng = np.random.default_rng(9)
    answers, known = reference.answer_softly(
        lambda chunk: lambda points: np.full(len(points), chunk[0]),
        *(records, points, 2),
        **{"bins": 4, "k": 2, "epsilon": 1.0, "delta": 1e-6, "rng": rng},
    )
    assert answers == [None, None]
    # One query at distance 0 alone shows that the promise is broken, by the number of the errata.
    m, w = 1000, math.log(4 * 1000 / 1e-6)
    assert reference.passing_probability(w, 1.0) == pytest.approx(1.054e-5, rel=1e-3)
    assert known.promised == 1e-6 < known.delta < 1
    assert known.epsilon == 1.0
    wider = reference._guarantee((4, 2 * m), w * 100, 100.0, (1.0, 1e-6))
    assert 4.2e-5 < wider.delta < 4.4e-5


def test_pure_releases_compose_as_the_compiled_module_says():
    for each, releases, epsilon in ((0.1, 11, 0.5), (1.0, 3, 2.0), (0.02, 1001, 1.0)):
        known = stability.printed._core.optimal_delta(each, 0.0, releases, epsilon)
        assert reference.compose_pure(each, releases, epsilon) == pytest.approx(known, rel=1e-6)
    assert reference.compose_pure(0.5, 2, 1.0) == 0
