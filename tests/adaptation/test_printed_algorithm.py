"""Algorithms 1 and 2 as printed: sensitivities, laws, bounds, and the delta that they keep."""

import math
from collections import Counter

import numpy as np
import pytest
from frequencies import Case, misfits
from scipy.stats import norm

from hdp_fast.adaptation.convex_descent import JOINT, JOINT_ROUNDED
from hdp_fast.adaptation.problem import (
    ProblemBounds,
    SampleWeighting,
    ScaledRecords,
    evaluate,
)
from hdp_fast.reference import adaptation as reference


def neighbors(rng, bounds):
    """Residuals and rows of a record and of what replaces it, many of them at the bounds."""
    for _ in range(2000):
        w = rng.normal(size=3)
        w *= bounds.radius / np.linalg.norm(w) * rng.choice([1, rng.random()])
        pair = []
        for _ in range(2):
            x = rng.choice([1, -1]) * w if rng.random() < 0.5 else rng.normal(size=3)
            x = (
                x
                * (bounds.norm_bound / max(np.linalg.norm(x), 1e-9))
                * rng.choice([1, rng.random()])
            )
            pair.append((x, rng.choice([1, -1, rng.uniform(-1, 1)])))
        yield w, pair


def test_sensitivities_of_lemma_4_1_and_of_the_tight_variant_hold_and_are_reached():
    bounds, cap, rng = ProblemBounds(1.5, 2.0), 0.01, np.random.default_rng(5)
    B, G = (1.5 * 2 + 1) ** 2, 2 * 2 * (1.5 * 2 + 1)
    s1, s2 = 2 * cap * G, cap**2 * B
    reached = np.zeros(4)
    for kappa_1 in (0.3, 100.0):
        tight = SampleWeighting(cap, kappa_1, 0.0)
        s_tight = 4 * cap * 2.0 * math.sqrt(min(kappa_1, B))
        for w, pair in neighbors(rng, bounds):
            u = 1 / (cap * rng.choice([1, rng.random()]))
            away = [x @ w - y for x, y in pair]
            steep = [2 * p * x / u for p, (x, _) in zip(away, pair, strict=True)]
            moved = np.linalg.norm(steep[0] - steep[1]) / s1
            lost = abs(away[0] ** 2 - away[1] ** 2) / u**2 / s2
            one = [
                evaluate(ScaledRecords(x[None], np.array([y]), 1.0), w, tight).gradient
                for x, y in pair
            ]
            change = np.linalg.norm(one[0] - one[1]) / s_tight
            reached = np.maximum(reached, [moved, lost, moved**2 + lost**2, change])
    assert (reached <= np.array([1, 1, JOINT, 1]) + 1e-9).all()
    # All steep gradients point along w: no two of them are as far apart as Lemma 4.1 has it.
    assert (reached >= [0.5, 0.99, 1.2, 0.99]).all()
    t = np.linspace(0, 1, 10**6)
    assert JOINT - 1e-5 < ((1 + t) ** 2 / 4 + (1 - t**2) ** 2).max() <= JOINT < JOINT_ROUNDED < 1.3


def test_one_step_of_a_small_ball_attains_the_joint_sensitivity():
    # From w = 0, where (x, 1) is replaced by (x, -t): both gradients and losses are far apart.
    x, w, cap, t = np.array([1.0, 0.0]), np.zeros(2), 0.01, (1 - math.sqrt(0.5)) / 2
    residual = 1 + 1e-4
    steep, lost = zip(
        *(
            (result.gradient, result.losses * cap**2)
            for y in (1.0, -t)
            for result in [evaluate(ScaledRecords(x[None], np.array([y]), 1.0), w, np.array([cap]))]
        ),
        strict=True,
    )
    moved = np.linalg.norm(steep[0] - steep[1]) / (2 * cap * 2 * residual)
    derivative = abs(float(lost[0][0] - lost[1][0])) / (cap * residual) ** 2
    assert 0.999 * JOINT < moved**2 + derivative**2 <= JOINT


# Algorithms 1 and 2 in numpy ---------------------------------------------------------------------

SOURCE = np.array([[0.8], [-0.5], [0.3]]), np.array([0.4, -0.6, 1.0])
TARGET = np.array([[0.9], [-0.7]]), np.array([-0.5, 0.2])


def sizes_of(penalties=(0.5, 0.3, 0.2), alpha=0.4):
    bounds = {"alpha": alpha, "radius": 1.0, "norm_bound": 1.0, "penalties": penalties}
    return reference.squared_sizes(SOURCE, TARGET, **bounds)


def lengths_of(sizes, s1, s2):
    """Step lengths of one step of Algorithm 1, for w and for the private u."""
    G, n, rest = sizes.lipschitz, sizes.n, (1 - sizes.alpha) ** 4
    of_u = n**1.5 / math.sqrt(rest * sizes.larger**2 + n**4 * s2**2)
    return 1 / math.sqrt(G**2 + s1**2), of_u


def cells_of(values, law, low, high):
    """Counts and law of draws of a normal variable that is cut at both ends, in some cells."""
    edges = law.ppf([0.2, 0.35, 0.5, 0.65, 0.8])
    edges = edges[(edges > low) & (edges < high)]
    places = np.searchsorted(edges, values)
    places[values <= low], places[values >= high] = -1, 99
    shares = np.diff(law.cdf([low, *edges, high])).tolist()
    chances = {-1: law.cdf(low), **dict(enumerate(shares)), 99: law.sf(high)}
    return Case(Counter(places.tolist()), chances)


def test_a_step_of_algorithm_1_follows_its_law():
    sizes, rng, draws = sizes_of(), np.random.default_rng(3), 1500
    goal = {"steps": 1, "discrepancy": 0.3, "epsilon": 12.0, "delta": 0.01}
    runs = [reference.adapt_convex(SOURCE, TARGET, sizes, **goal, rng=rng) for _ in range(draws)]
    s1, s2 = reference.noise_of(sizes, 1, 12.0, 0.01)
    multiple = 2 * math.sqrt(math.log(300)) / 12
    assert s1 == pytest.approx(2 * 0.6 / 2 * 4 * multiple)
    assert s2 == pytest.approx((0.6 / 2) ** 2 * 4 * multiple)
    of_w, of_u = lengths_of(sizes, s1, s2)
    slope = sum(
        share / len(y) * (-2 * y @ X)[0]
        for share, (X, y) in zip((0.4, 0.6), (SOURCE, TARGET), strict=True)
    )
    found = np.array([run.w[0] for run in runs])
    cases = [cells_of(found, norm(-of_w * slope, of_w * s1), -1, 1)]
    q = np.repeat([0.4 / 3, 0.6 / 2], [3, 2])
    most = 0.2 * q[3] ** 2 / 2  # the two private records have the largest weight
    steep = 0.5 * q[3] ** 2 - 0.25 * q[3] ** 2 - 0.3 * q[3] ** 3 / np.linalg.norm(q) - most
    found = np.array([run.u[3] for run in runs])
    law = norm(1 / q[3] - of_u * steep, of_u * s2)
    cases.append(cells_of(found, law, 1 / q[3], math.inf))
    assert [text for case in cases for text in misfits([case])] == []


def test_a_step_of_algorithm_2_follows_its_law():
    sizes, rng, draws = sizes_of((0.7, 0.3, 0.2)), np.random.default_rng(4), 1500
    settings = {"loss": reference.squared_loss, "smoothness": 2.0, "mu": 2.0, "steps": 1}
    goal = {"discrepancy": 0.3, "epsilon": 12.0, "delta": 0.01}
    runs = [
        reference.adapt_general(SOURCE, TARGET, sizes, **settings, **goal, rng=rng)
        for _ in range(draws)
    ]
    s1, s2 = reference.noise_of(sizes, 1, 12.0, 0.01)
    eta = 1 / reference.smoothness_of(sizes, 2.0, 2.0)
    slope = sum(
        share / len(y) * (-2 * y @ X)[0]
        for share, (X, y) in zip((0.4, 0.6), (SOURCE, TARGET), strict=True)
    )
    q = np.repeat([0.4 / 3, 0.6 / 2], [3, 2])
    soft = np.exp(2 * q) / np.exp(2 * q).sum()
    steep = (0.7 - 0.25) * q[3] ** 2 - 0.3 * q[3] ** 3 / np.linalg.norm(q)
    steep -= 0.2 * q[3] ** 2 * soft[3]
    cases = [
        cells_of(np.array([run.w[0] for run in runs]), norm(-eta * slope, eta * s1), -1, 1),
        cells_of(
            np.array([run.u[3] for run in runs]),
            norm(1 / q[3] - eta * steep, eta * s2),
            1 / q[3],
            math.inf,
        ),
    ]
    assert [text for case in cases for text in misfits([case])] == []


def test_the_returned_iterate_of_algorithm_2_is_uniform():
    # Without noise the iterates differ, and each is returned as often.
    sizes, rng, draws = sizes_of((0.7, 0.3, 0.2)), np.random.default_rng(5), 800
    settings = {"loss": reference.squared_loss, "smoothness": 2.0, "mu": 2.0, "steps": 3}
    goal = {"discrepancy": 0.3, "epsilon": math.inf, "delta": 0.01}
    found = Counter(
        float(reference.adapt_general(SOURCE, TARGET, sizes, **settings, **goal, rng=rng).w[0])
        for _ in range(draws)
    )
    assert misfits([Case(found, dict.fromkeys(found, 1 / 3))]) == []


def test_the_guarantee_of_a_run_is_that_of_the_printed_noise():
    for epsilon, general, squared in ((10, 0.0158, 0.000506), (15, 0.0882, 0.00415)):
        known = reference.guarantee_of(epsilon, 0.01, reference.GENERAL)
        assert known.delta == pytest.approx(general, rel=5e-3)
        assert known.promised == 0.01
        known = reference.guarantee_of(epsilon, 0.01, reference.SQUARED)
        assert known.delta == pytest.approx(squared, rel=5e-3)
    assert reference.guarantee_of(8.9, 0.01, reference.GENERAL).delta < 0.01
    assert reference.guarantee_of(8.95, 0.01, reference.GENERAL).delta > 0.01
    assert reference.guarantee_of(700, 0.01, reference.GENERAL).delta > 0.99
    goal = {"steps": 2, "discrepancy": 0.3, "epsilon": 10.0, "delta": 0.01}
    rng = np.random.default_rng(6)
    run = reference.adapt_convex(SOURCE, TARGET, sizes_of(), **goal, rng=rng)
    assert run.guarantee == reference.guarantee_of(10.0, 0.01, reference.SQUARED)
    more = {"loss": reference.squared_loss, "smoothness": 2.0, "mu": 2.0}
    run = reference.adapt_general(SOURCE, TARGET, sizes_of(), **goal, **more, rng=rng)
    assert run.guarantee == reference.guarantee_of(10.0, 0.01, reference.GENERAL)


def test_the_discrepancy_gets_the_printed_noise():
    sizes, rng = sizes_of(), np.random.default_rng(7)
    found = np.array([reference.release_discrepancy(1.0, sizes, 6.0, rng) for _ in range(1500)])
    scale = 2 * 4 / (6.0 * 2)
    low, high = (0.5 * math.exp(-gap / scale) for gap in (1.0, 3.0))
    counts = Counter(np.where(found == 0, 0, np.where(found == 4, 4, 1 + (found > 1))).tolist())
    law = {0: low, 1: 0.5 - low, 2: 0.5 - high, 4: high}
    assert misfits([Case(counts, law)]) == []


def test_printed_steps_and_sizes_of_theorems_4_2_and_4_3():
    sizes = reference.Sizes(1000, 200, 10, 0.5, 1.0, 4.0, 4.0, (0.5, 0.3, 0.2))
    log = math.log(100)
    parts = [
        (200 * 2.0) ** 2 / (10 * 0.25 * log),
        (5.0 * 2.0 / 4.0) ** 2 / log,
        (2.0 * 5.0 / 4.0) ** 2 * 200**3 / (log * 1000**3),
    ]
    assert reference.convex_steps(sizes, 2.0, 0.01) == math.ceil(max(1, *parts)) == 13898
    assert reference.records_for_the_optimal_rate(sizes) == 1
    assert reference.records_for_the_optimal_rate(sizes, (3.0, 7.0)) == 10
    steps, log = 13898, math.log(200)
    bound = 4 * math.sqrt(1 / steps + 32 * 0.25 * 10 * log / (200 * 2.0) ** 2)
    bound += 0.25 / (2 * 200**1.5) * math.sqrt(25 / steps + 8 * 16 * log / 4)
    bound += 0.25 * 9 / (2 * 1000**1.5 * math.sqrt(steps))
    assert reference.convex_error(sizes, steps, 2.0, 0.01) == pytest.approx(bound)


def objective(w, u, sizes, discrepancy):
    """F of problem (6)."""
    losses = [reference.squared_loss(w, *records)[0] for records in (SOURCE, TARGET)]
    h = np.concatenate([losses[0] + discrepancy, losses[1]])
    k1, k2, ki = sizes.penalties
    rest = k1 * ((sizes.caps**2 * u).sum() - 1) + k2 * np.linalg.norm(1 / u) + ki / u.min()
    return float((h / u).sum() + rest)


def test_the_bound_of_theorem_4_2_holds_on_a_tiny_problem():
    # No loss exceeds kappa_1 = 5, so that the best u are the least ones, where a run begins.
    sizes, rng = sizes_of((5.0, 0.0, 0.0)), np.random.default_rng(8)
    goal = {"steps": 30, "discrepancy": 0.3, "epsilon": 20.0, "delta": 0.01}
    best = min(
        objective(np.array([w]), 1 / sizes.caps, sizes, 0.3) for w in np.linspace(-1, 1, 999)
    )
    errors = [
        objective(run.w, run.u, sizes, 0.3) - best
        for _ in range(60)
        for run in [reference.adapt_convex(SOURCE, TARGET, sizes, **goal, rng=rng)]
    ]
    bound = reference.convex_error(sizes, 30, 20.0, 0.01)
    assert bound / 100 < np.mean(errors) <= bound


def random_points(sizes, rng, count):
    for _ in range(count):
        w = rng.uniform(-1, 1, 1)
        yield w, (1 + 3 * rng.random(sizes.m + sizes.n) ** 3) / sizes.caps


def general_slopes(w, u, sizes, mu, discrepancy=0.3):
    X, y, offsets = reference._join(SOURCE, TARGET, discrepancy)
    parts = reference.general_gradient(u, *reference.squared_loss(w, X, y), offsets, sizes, mu)
    return np.concatenate(parts)


@pytest.mark.parametrize("penalties", [(0.7, 0.3, 0.2), (0.1, 5.0, 0.0), (9.0, 0.0, 4.0)])
def test_the_smoothness_of_lemma_5_1_holds(penalties):
    sizes, rng, mu = sizes_of(penalties), np.random.default_rng(9), 2.0
    bound, ratios = reference.smoothness_of(sizes, 2.0, mu), []
    for w, u in random_points(sizes, rng, 300):
        for size in (1e-4, 1.0):
            v = np.clip(w + size * rng.normal(size=1), -1, 1)
            t = np.maximum(u + size * rng.normal(size=u.size), 1 / sizes.caps)
            gap = general_slopes(w, u, sizes, mu) - general_slopes(v, t, sizes, mu)
            ratios.append(np.linalg.norm(gap) / np.linalg.norm([*(w - v), *(u - t)]))
    assert bound / 20 < max(ratios) <= bound


def test_gradients_of_both_problems_are_finite_differences():
    sizes, rng = sizes_of((0.7, 0.3, 0.2)), np.random.default_rng(10)
    X, y, offsets = reference._join(SOURCE, TARGET, 0.3)

    def general(w, u):
        q, (l1, l2, li) = 1 / u, sizes.penalties
        losses = reference.squared_loss(w, X, y)[0] + offsets
        rest = l1 * (1 - q.sum()) + l2 * np.linalg.norm(q) + li / 2 * np.log(np.exp(2 * q).sum())
        return float(q @ losses + rest)

    for w, u in random_points(sizes, rng, 5):
        convex = reference.convex_gradient(w, u, *reference.squared_loss(w, X, y), offsets, sizes)
        for value, slopes in (
            (lambda w, u: objective(w, u, sizes, 0.3), np.concatenate(convex)),
            (general, general_slopes(w, u, sizes, 2.0)),
        ):
            for i, slope in enumerate(slopes):
                step = np.eye(6)[i] * 1e-5
                ends = [value(w + s * step[:1], u + s * step[1:]) for s in (1, -1)]
                assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope, abs=1e-6)


def test_printed_steps_and_the_bound_of_theorem_5_2():
    sizes = sizes_of((0.7, 0.3, 0.2))
    goal = {"smoothness": 2.0, "mu": 2.0, "epsilon": 20.0, "delta": 0.01}
    smooth, M = reference.smoothness_of(sizes, 2.0, 2.0), reference.range_of(sizes)
    largest = 8 + 0.7 + 0.3 * (0.4 / 3**0.5 + 0.6 / 2**0.5) + 0.2 * 0.3
    assert pytest.approx(largest) == M
    log = math.log(200)
    noise = 40 * 16 * 2 + (0.6 * 4) ** 2
    steps = math.sqrt(smooth * M) * 20 * 2**1.5 / (0.6 * math.sqrt(log * noise))
    assert reference.general_steps(sizes, **goal) == math.ceil(steps)
    parts = 2 * math.sqrt(10) * 4 / (20 * 2) + 0.6 * 4 / (20 * 2**1.5)
    bound = 16 * 0.6 * math.sqrt(smooth * M * log) * parts
    assert reference.general_error(sizes, **goal) == pytest.approx(bound)
    rng, norms = np.random.default_rng(11), []
    for _ in range(40):
        run = reference.adapt_general(
            *(SOURCE, TARGET, sizes),
            **{"loss": reference.squared_loss, "steps": math.ceil(steps), "discrepancy": 0.3},
            **{**goal, "rng": rng},
        )
        slopes = general_slopes(run.w, run.u, sizes, 2.0)
        w = np.clip(run.w - slopes[:1] / smooth, -1, 1)
        u = np.maximum(run.u - slopes[1:] / smooth, 1 / sizes.caps)
        norms.append(smooth**2 * (np.square(run.w - w).sum() + np.square(run.u - u).sum()))
    assert np.mean(norms) <= bound
