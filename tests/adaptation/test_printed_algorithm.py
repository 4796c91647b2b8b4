"""Tests of the private module adaptation.convex_descent: sensitivities at their bounds."""

import math

import numpy as np

from hdp_fast.adaptation.convex_descent import JOINT, JOINT_ROUNDED
from hdp_fast.adaptation.problem import (
    ProblemBounds,
    SampleWeighting,
    ScaledRecords,
    evaluate,
)


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
