"""Tests of the private module adaptation.nonconvex_descent: steps and noise."""

import itertools
import math

import numpy as np
import pytest
from adaptation_problems import classified, logistic
from cases import each_case
from failing_losses import LOSS_BOUNDS, MARK, TROUBLES, loss, troubled

from hdp_fast.adaptation.convex_descent import ProjectedSteps, second_moments
from hdp_fast.adaptation.discrepancies.moments import Sample
from hdp_fast.adaptation.nonconvex_descent import (
    CallableDomain,
    DomainState,
    LinearDomain,
    LossBounds,
    NonConvexPenalties,
    ObjectiveTerms,
    choose_longest_steps,
    evaluate_objective,
    sum_with_noise,
    take_step,
)
from hdp_fast.adaptation.privacy import DescentNoise
from hdp_fast.adaptation.problem import NoisyGradient, ProblemBounds, ScaledRecords

PENALTIES = [
    NonConvexPenalties(0.3, 0.0, 0.0, 1.0),
    NonConvexPenalties(0.6, 0.4, 0.0, 1.0),
    NonConvexPenalties(0.6, 0.0, 0.5, 30.0),
    NonConvexPenalties(0.9, 0.2, 0.3, 100.0),
]


def states(penalized=True, seed=0):
    Xs, ys, Xt, yt = classified(seed)
    loss_bounds = LossBounds(2.0, 1.0, 0.25)
    return [
        DomainState.new(
            CallableDomain(logistic, ScaledRecords(X, 2.0 * y - 1, 1.0), loss_bounds, None, None),
            cap,
            offset,
        )
        for X, y, cap, offset in ((Xs, ys, 0.4 / 40, 0.1), (Xt, yt, 0.6 / 30, 0.0))
    ]


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_steps_go_against_finite_differences(penalties):
    both, problem = states(), ObjectiveTerms(LossBounds(2.0, 1.0, 0.25), penalties, 10.0)
    rng, h = np.random.default_rng(1), 1e-6
    for state in both:
        state.v = 1 + rng.random(len(state.v))
    w = rng.normal(size=3)
    slopes = [
        (
            evaluate_objective(both, w + h * e, problem)
            - evaluate_objective(both, w - h * e, problem)
        )
        / (2 * h)
        for e in np.eye(3)
    ]
    in_v = []
    for state, i in itertools.product(both, (0, 7)):
        values = []
        for sign in (1, -1):
            state.v[i] += sign * h
            values.append(evaluate_objective(both, w, problem))
            state.v[i] -= sign * h
        in_v.append((values[0] - values[1]) / (2 * h))
    before = [state.v.copy() for state in both]
    moved = take_step(both, w, problem, ProjectedSteps.with_length(0.01, 100.0, 3))
    np.testing.assert_allclose((w - moved.w) / 0.01, slopes, atol=1e-6)
    changes = [before[k][i] - both[k].v[i] for k, i in itertools.product((0, 1), (0, 7))]
    paces = np.array(changes) / in_v
    # Down the derivative of each weight, all those of a domain by the same step.
    np.testing.assert_allclose([paces[1], paces[3]], [paces[0], paces[2]], rtol=1e-4)
    assert (paces > 0).all()


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_no_step_without_noise_raises_the_objective(penalties, scaled):
    for seed in range(5):
        both, problem = (
            states(seed=seed),
            ObjectiveTerms(LossBounds(2.0, 1.0, 0.25), penalties, 1.5),
        )
        w = np.random.default_rng(seed).normal(size=3)
        w *= min(1.0, 1.5 / np.linalg.norm(w))
        value, first, last = evaluate_objective(both, w, problem), None, None
        found = sum(second_moments(state.domain.records, state.cap) for state in both)
        path = (
            ProjectedSteps.from_curvature(found / 2, 1.5)
            if scaled
            else choose_longest_steps(problem, 3)
        )
        for _ in range(300):
            w, mapping = take_step(both, w, problem, path)
            lower = evaluate_objective(both, w, problem)
            assert lower <= value + 1e-13
            value, first, last = lower, first or mapping, mapping
        assert last < 0.05 * first


def test_records_of_great_loss_lose_their_weight():
    both, problem = (
        states(),
        ObjectiveTerms(LossBounds(2.0, 1.0, 0.25), NonConvexPenalties(0.3, 0, 0, 1), 5.0),
    )
    w = np.zeros(3)
    for _ in range(3000):
        w, _ = take_step(both, w, problem, choose_longest_steps(problem, 3))
    losses, _ = both[1].domain.evaluate(w, both[1].q, both[1].cap)
    assert (both[1].q[losses < 0.28] == both[1].cap).all()
    assert (losses > 0.35).any()
    assert (both[1].q[losses > 0.35] < both[1].cap).all()


def hostile(kind):
    def loss(w, X, y):
        losses, gradients = np.full(len(y), 1e300), np.full((len(y), len(w)), 1e200)
        if kind == "nan":
            losses[2], gradients[1, 0] = np.nan, np.nan
        elif kind == "inf":
            losses[2], gradients[1] = -np.inf, np.inf
        return losses, gradients * np.sign(y)[:, None]

    return loss


@pytest.mark.parametrize("kind", ["huge", "nan", "inf"])
@pytest.mark.parametrize("exact", [True, False])
def test_whatever_a_callable_returns_a_record_moves_the_sum_by_no_more_than_is_stated(kind, exact):
    noise, loss_bounds = (
        DescentNoise(0.1, 1e-9 if not exact else 2.0, exact, 1.0),
        LossBounds(2.0, 1.5, 1.0),
    )
    q, found = np.full(5, 0.1), []
    for label in (1.0, -1.0):
        y = np.array([label, 1, -1, 1, 1])
        domain = CallableDomain(
            hostile(kind), ScaledRecords(np.ones((5, 2)), y, 1.0), loss_bounds, None, None
        )
        losses, gradient = domain.evaluate(np.zeros(2), q, 0.1)
        assert ((losses >= 0) & (losses <= 2)).all()
        noisy = domain._replace(noise=noise)
        assert np.isfinite(noisy.evaluate(np.zeros(2), q, 0.1)[1]).all()
        found.append(gradient)
    moved = np.linalg.norm(found[0] - found[1])
    assert moved <= domain._replace(noise=noise).deviation(0.1) / noise.multiple * (1 + 1e-12)
    assert moved == pytest.approx(2 * 0.1 * 1.5)


def test_sums_of_weighted_gradients_are_exact_integers_plus_noise():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 3)), rng.choice([-1.0, 1.0], 200)
    noise, loss_bounds = DescentNoise(0.1, 4.0, True, 1.0), LossBounds(2.0, 1.0, 0.25)
    domain = CallableDomain(
        logistic, ScaledRecords(X, y, 1.0), loss_bounds, noise, np.random.default_rng(1)
    )
    q = rng.random(200) / 200
    plain = domain._replace(noise=None).evaluate(np.ones(3), q, 1 / 200)[1]
    unit = (1 / 200) / domain.units
    drawn = np.array([domain.evaluate(np.ones(3), q, 1 / 200)[1] for _ in range(400)])
    multiples = drawn / unit
    np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-6)
    assert (drawn - plain).std() == pytest.approx(domain.deviation(1 / 200), rel=0.1)
    assert abs((drawn - plain).mean()) < 5 * domain.deviation(1 / 200) / math.sqrt(1200)


@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_on_the_grid_has_the_noise_that_is_stated(classes):
    Xs, ys, _, _ = classified(classes=classes)
    noise = DescentNoise(0.1, 3.0, True, 1.0)
    part = NoisyGradient.from_sample(
        Sample("target", Xs, ys.astype(float)), ProblemBounds(1, 1, 9).record_bounds, noise
    )
    rows = part.records._replace(loss="softmax")
    domain = LinearDomain(part._replace(records=rows, classes=classes), math.sqrt(2))
    w, q = np.full(3 * classes, 0.2), np.full(40, 0.01)
    open_part = domain.gradient._replace(noise=None, grid=None)
    plain = domain._replace(gradient=open_part).evaluate(w, q, 0.01)[1]
    drawn = np.array([domain.evaluate(w, q, 0.01)[1] for _ in range(300)]) - plain
    assert domain.deviation(0.01) == pytest.approx(3 * 2 * math.sqrt(2) * 0.01, rel=1e-3)
    assert drawn.std() == pytest.approx(domain.deviation(0.01), rel=0.1)


def test_sums_that_couple_weights_have_noise_for_their_share():
    values = np.random.default_rng(0).random(500)
    for exact in (True, False):
        noise = DescentNoise(0.1, 2.0, exact, 1.0)
        drawn = [sum_with_noise(values, noise, 1 / 16, None) for _ in range(400)]
        # A record moves the sum by 1; the noise is 4 times that of a gradient.
        assert np.std(drawn) == pytest.approx(8, rel=0.15)
        assert abs(np.mean(drawn) - values.sum()) < 5 * 8 / 20
    assert sum_with_noise(values, None, 1 / 16, None) == pytest.approx(values.sum())


@each_case("exact", [True, False])
@each_case("trouble", TROUBLES)
def test_a_record_at_which_a_loss_fails_is_the_only_one_without_numbers(trouble, exact):
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (6, 2))
    X[4, 1] = MARK
    y, w = np.ones(6), np.array([0.3, -0.2])
    noise = DescentNoise(0.1, 1e-9 if not exact else 2.0, exact, 1.0)
    domain = CallableDomain(
        troubled(TROUBLES[trouble]), ScaledRecords(X, y, 1.0), LossBounds(*LOSS_BOUNDS), noise, None
    )
    losses, gradients = domain._clip_results(w)
    expected = CallableDomain(
        loss, ScaledRecords(X, y, 1.0), LossBounds(*LOSS_BOUNDS), noise, None
    )._clip_results(w)
    others = np.arange(6) != 4
    np.testing.assert_array_equal(losses[others], expected[0][others])
    np.testing.assert_array_equal(gradients[others], expected[1][others])
    assert losses[4] == LOSS_BOUNDS[0]
    np.testing.assert_array_equal(gradients[4], 0)
