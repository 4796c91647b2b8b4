"""Convex adaptation against solvers, finite differences, exact integers and closed forms."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

from hdp_fast import accounting
from hdp_fast.adaptation import ConvexAdaptation, discrepancy
from hdp_fast.adaptation.discrepancies.moments import Sample
from hdp_fast.adaptation.objective import PrivatePart, Rounding, gradient, passed
from hdp_fast.adaptation.printed_algorithm import JOINT, JOINT_ROUNDED
from hdp_fast.adaptation.privacy import Noise, Privacy, grid, least_noise
from hdp_fast.adaptation.problem import Rows, Shape, Weighing, in_reals, on_grid
from hdp_fast.adaptation.projected_steps import nearest_within
from hdp_fast.adaptation.solver import solved, total, turn
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded, HdpFastError, ParameterError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")

COINS = np.random.default_rng(0)


def domain(rng, k, d, w, r=1.0):
    X = rng.normal(size=(k, d))
    X *= r / np.maximum(np.linalg.norm(X, axis=1), r)[:, None]
    return X, np.clip(X @ w + 0.2 * rng.normal(size=k), -1, 1)


def problem(seed=0, m=60, n=40, d=3, r=1.0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    return *domain(rng, m, d, w + 0.3 * rng.normal(size=d), r), *domain(rng, n, d, w, r)


def parts(data, alpha=0.4, kappa_1=0.05, offset=0.03):
    Xs, ys, Xt, yt = data
    return [
        (Rows(Xs, ys, 1.0), Weighing(alpha / len(ys), kappa_1, offset)),
        (Rows(Xt, yt, 1.0), Weighing((1 - alpha) / len(yt), kappa_1, 0.0)),
    ]


def value_of(data, w, alpha=0.4, kappa_1=0.05, offset=0.03):
    """The objective by its definition, each weight searched for by itself."""
    Xs, ys, Xt, yt = data
    found = 0.0
    for X, y, cap, more in ((Xs, ys, alpha / len(ys), offset), (Xt, yt, (1 - alpha) / len(yt), 0)):
        for loss in (X @ w - y) ** 2 + more:
            best = minimize_scalar(
                lambda v, loss=loss, cap=cap: cap * (loss / v + kappa_1 * v),
                bounds=(1, 1e3), method="bounded", options={"xatol": 1e-10},
            )  # fmt: skip
            found += min(best.fun, cap * (loss + kappa_1))
    return found


def test_the_eliminated_weights_are_those_of_a_search():
    data = problem(m=12, n=9)
    for scale in (0.0, 0.5, 3.0):
        w = scale * COINS.normal(size=3)
        assert total(parts(data), w) == pytest.approx(value_of(data, w), rel=1e-7)


def test_gradients_are_finite_differences():
    given = parts(problem())
    for _ in range(5):
        w, step = COINS.normal(size=3), 1e-6
        slopes = [
            (total(given, w + step * e) - total(given, w - step * e)) / (2 * step)
            for e in np.eye(3)
        ]
        found = sum(gradient(rows, w, weighing) for rows, weighing in given)
        np.testing.assert_allclose(found, slopes, atol=1e-8)


def test_the_objective_is_convex_in_the_predictor():
    given = parts(problem())
    for _ in range(200):
        a, b, t = COINS.normal(size=3), COINS.normal(size=3), COINS.random()
        chord = t * total(given, a) + (1 - t) * total(given, b)
        assert total(given, t * a + (1 - t) * b) <= chord + 1e-12


def joint(data, z, alpha, kappa_1, offset):
    """Problem (6) and its gradient in predictor and v = cap u."""
    Xs, ys, Xt, yt = data
    w, found, slopes, own = z[:3], 0.0, np.zeros(3), []
    start = 3
    for X, y, share, more in ((Xs, ys, alpha, offset), (Xt, yt, 1 - alpha, 0.0)):
        v, cap = z[start : start + len(y)], share / len(y)
        away = X @ w - y
        losses = away**2 + more
        found += cap * float((losses / v + kappa_1 * v).sum())
        slopes += 2 * cap * (away / v) @ X
        own.append(cap * (kappa_1 - losses / v**2))
        start += len(y)
    return found, np.concatenate([slopes, *own])


@pytest.mark.parametrize("radius", [0.3, 5.0])
def test_the_optimum_is_that_of_a_solver_of_the_joint_problem(radius):
    data, setting = problem(3, m=15, n=10), (0.4, 0.05, 0.03)
    start = np.concatenate([np.zeros(3), np.ones(25)])
    best = minimize(
        lambda z: joint(data, z, *setting), start, jac=True, method="SLSQP",
        bounds=[(None, None)] * 3 + [(1, None)] * 25,
        constraints={"type": "ineq", "fun": lambda z: radius**2 - z[:3] @ z[:3]},
        options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    found = solved(parts(data, *setting), radius)
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)
    assert total(parts(data, *setting), found) <= best.fun + 1e-8
    np.testing.assert_allclose(found, best.x[:3], atol=1e-4)


def test_turns_and_steps_descend():
    given, radius = parts(problem()), 0.8
    w = v = np.full(3, 0.4)
    for _ in range(30):
        next_w = turn(given, w, radius)
        assert total(given, next_w) <= total(given, w) + 1e-15
        # All weights at their caps add up to 1, and no row is longer than 1.
        moved = v - 0.5 * sum(gradient(rows, v, weighing) for rows, weighing in given)
        next_v = moved * (radius / max(radius, np.linalg.norm(moved)))
        assert total(given, next_v) <= total(given, v) + 1e-15
        w, v = next_w, next_v


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_point_of_the_ball_is_that_of_a_solver(seed):
    rng = np.random.default_rng(seed)
    w, metric, radius = rng.normal(size=4), np.exp(3 * rng.normal(size=4)), 0.7
    found = nearest_within(w, metric, radius)
    best = minimize(
        lambda v: metric @ (v - w) ** 2, np.zeros(4), jac=lambda v: 2 * metric * (v - w),
        method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v},
    )  # fmt: skip
    assert np.linalg.norm(found) == pytest.approx(min(radius, np.linalg.norm(w)))
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    np.testing.assert_array_equal(nearest_within(w, metric, 100.0), w)


def skewed(n, scales, seed=0):
    """Source and target of which the latter alone has the third column."""
    rng = np.random.default_rng(seed)
    w = np.array([0.5, 1.0, -0.8])
    rows = [rng.normal(size=(k, 3)) * scales for k in (2000, n)]
    rows[0][:, 2] = 0.0
    data = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1) for X in rows]
    labels = [(X @ w + 0.05 * rng.normal(size=len(X))).clip(-1, 1) for X in data]
    return data[0], labels[0] / 2, data[1], labels[1]


@pytest.mark.parametrize("scales", [(0.4, 0.4, 0.4), (0.4, 0.01, 0.4), (0.4, 0.4, 0.01)])
def test_steps_arrive_where_the_source_says_little_of_the_target(scales):
    data = skewed(50_000, np.array(scales))
    given = {"delta": 1e-5, "alpha": 0.3, "radius": 2.0, "kappa_1": 0.1}
    model = ConvexAdaptation(epsilon=50.0, random_state=1, **given).fit(*data)
    best = ConvexAdaptation(epsilon=math.inf, **given).fit(*data)
    weighed = parts(data, 0.3, 0.1, 0.0)
    start = solved(weighed[:1], 2.0)
    reached, least, before = (total(weighed, w) for w in (model.coef_, best.coef_, start))
    assert reached - least < 0.02 * (before - least)


def test_without_noise_fit_is_the_optimum():
    data = problem(1)
    model = ConvexAdaptation(epsilon=math.inf, alpha=0.4, kappa_1=0.05, radius=2.0).fit(*data)
    found = discrepancy(*data, radius=2.0)
    best = solved(parts(data, 0.4, 0.05, found.value), 2.0)
    assert model.discrepancy_ == pytest.approx(found.value, rel=1e-9)
    assert (model.record_, model.noise_, model.alpha_) == (None, 0.0, 0.4)
    np.testing.assert_allclose(model.coef_, best, atol=1e-7)


def neighbors(rng, shape):
    """Residuals and rows of a record and of what replaces it, many of them at the bounds."""
    for _ in range(2000):
        w = rng.normal(size=3)
        w *= shape.radius / np.linalg.norm(w) * rng.choice([1, rng.random()])
        pair = []
        for _ in range(2):
            x = rng.choice([1, -1]) * w if rng.random() < 0.5 else rng.normal(size=3)
            x = (
                x
                * (shape.norm_bound / max(np.linalg.norm(x), 1e-9))
                * rng.choice([1, rng.random()])
            )
            pair.append((x, rng.choice([1, -1, rng.uniform(-1, 1)])))
        yield w, pair


def test_sensitivities_of_lemma_4_1_and_of_the_tight_variant_hold_and_are_reached():
    shape, cap, rng = Shape(1.5, 2.0), 0.01, np.random.default_rng(5)
    B, G = (1.5 * 2 + 1) ** 2, 2 * 2 * (1.5 * 2 + 1)
    s1, s2 = 2 * cap * G, cap**2 * B
    reached = np.zeros(4)
    for kappa_1 in (0.3, 100.0):
        tight = Weighing(cap, kappa_1, 0.0)
        s_tight = 4 * cap * 2.0 * math.sqrt(min(kappa_1, B))
        for w, pair in neighbors(rng, shape):
            u = 1 / (cap * rng.choice([1, rng.random()]))
            away = [x @ w - y for x, y in pair]
            steep = [2 * p * x / u for p, (x, _) in zip(away, pair, strict=True)]
            moved = np.linalg.norm(steep[0] - steep[1]) / s1
            lost = abs(away[0] ** 2 - away[1] ** 2) / u**2 / s2
            one = [gradient(Rows(x[None], np.array([y]), 1.0), w, tight) for x, y in pair]
            change = np.linalg.norm(one[0] - one[1]) / s_tight
            reached = np.maximum(reached, [moved, lost, moved**2 + lost**2, change])
    assert (reached <= np.array([1, 1, JOINT, 1]) + 1e-9).all()
    # All steep gradients point along w: no two of them are as far apart as Lemma 4.1 has it.
    assert (reached >= [0.5, 0.99, 1.2, 0.99]).all()
    t = np.linspace(0, 1, 10**6)
    assert JOINT - 1e-5 < ((1 + t) ** 2 / 4 + (1 - t**2) ** 2).max() <= JOINT < JOINT_ROUNDED < 1.3


def test_sums_on_the_grid_are_exact_and_move_by_no_more_than_the_sensitivity():
    rng, shape = np.random.default_rng(2), Shape(1.5, 1.0)
    noise, weighing = Noise(0.1, 5.0, True, 1.0), Weighing(0.5 / 50, 0.2, 0.0)
    fine = grid(noise, 50)
    steepest = weighing.steepest(shape.residual)
    X, y = 3 * rng.normal(size=(50, 4)), 2 * rng.normal(size=50)
    y[0], X[0] = -1, [1, 0, 0, 0]

    def summed(X, y, w):
        rows = on_grid(Sample("target", X, y), shape.bounds, fine)
        rounding = Rounding.of(fine, steepest)
        found = passed(rows, w, weighing, rounding).gradient
        shares = np.sqrt(0.2 / np.maximum((rows.X @ (w * rows.unit) - rows.y) ** 2, 0.2))
        slopes = 2 * weighing.cap * shares * (rows.X @ (w * rows.unit) - rows.y)
        # A rounded coefficient may differ by one where both ways of computing it straddle a half.
        coefficients = [round(each) for each in (slopes * rounding.scale).tolist()]
        exact = [sum(c * int(x) for c, x in zip(coefficients, column, strict=True))
                 for column in rows.X.T]  # fmt: skip
        assert np.abs(found - exact).max() <= 2 * fine.rows
        assert (np.square(rows.X).sum(axis=1) <= fine.rows**2).all()
        return found

    w = np.array([0.01, 0.02, 0, 0])
    one = summed(X, y, w)
    y[0] = 1
    other = summed(X, y, w)
    assert (one == np.rint(one)).all()
    assert 0.99 * fine.sensitivity < np.linalg.norm(one - other) <= fine.sensitivity
    assert 50 * fine.rows * fine.coefficients < 2**53


def independent_epsilon(rho, delta):
    """Canonne, Kamath and Steinke 2020, Proposition 12, on a grid of orders."""
    orders = 1 + np.logspace(-3, 6, 200_001)
    found = rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return found.min()


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (10, 0.01), (15, 0.01)])
def test_noise_is_the_least_that_keeps_the_whole_promise(epsilon, delta):
    for steps in (1, 77):
        exact = least_noise(Privacy(epsilon, delta, "exact"), steps, 0.05)
        rho = exact.discrepancy**2 / 2 + steps / (2 * exact.multiple**2)
        assert 0.999 * epsilon < independent_epsilon(rho, delta) <= epsilon * (1 + 1e-9)
        ideal = least_noise(Privacy(epsilon, delta, "idealized"), steps, 0.05)
        mu = math.sqrt(ideal.discrepancy**2 + steps / ideal.multiple**2)
        assert 0.999 * delta < gaussian_delta(mu, epsilon) <= delta * (1 + 1e-6)


def printed_multiple(epsilon, delta, steps):
    return 2 * math.sqrt(steps * math.log(3 / delta)) / epsilon


def test_the_numbers_of_the_page_on_theory():
    ours = least_noise(Privacy(1.0, 1e-6, "idealized"), 100, 0.05)
    assert ours.multiple == pytest.approx(4.33 * 10, rel=2e-3)
    # Printed, with half of epsilon for the steps.
    assert printed_multiple(0.5, 1e-6, 100) == pytest.approx(15.4 * 10, rel=5e-3)
    exact = least_noise(Privacy(1.0, 1e-6, "exact"), 100, 0.05)
    assert exact.multiple == pytest.approx(4.65 * 10, rel=1e-2)


@pytest.mark.parametrize(("epsilon", "leaks"), [(10, 0.0158), (15, 0.088)])
def test_the_printed_noise_fails_where_the_paper_uses_it(epsilon, leaks):
    # Printed sigma_i are so many sensitivities; both gradients together have twice the budget.
    mu = math.sqrt(2 * 50) / printed_multiple(epsilon, 0.01, 50)
    assert gaussian_delta(mu, epsilon) == pytest.approx(leaks, rel=0.01)
    assert gaussian_delta(mu, epsilon) > 0.01
    ours = least_noise(Privacy(epsilon, 0.01, "idealized"), 50, 0.05)
    mu = math.sqrt(ours.discrepancy**2 + 50 / ours.multiple**2)
    assert gaussian_delta(mu, epsilon) <= 0.01


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_noise_has_the_deviation_that_is_stated(numerics):
    noise, weighing = Noise(0.1, 3.0, numerics == "exact", 1.0), Weighing(0.1, 0.2, 0.0)
    Xs, ys, _, _ = problem(d=8)
    part = PrivatePart.of(Sample("target", Xs, ys), Shape(1.0, 1.0).bounds, noise)
    w, steepest = np.full(8, 0.1), weighing.steepest(2.0)
    plain = gradient(part.rows, w, weighing)
    drawn = np.array([part.noisy(w, weighing, steepest).gradient - plain for _ in range(300)])
    stated = part.deviation(steepest)
    assert stated == pytest.approx(3 * 2 * steepest, rel=1e-3)
    assert drawn.std() == pytest.approx(stated, rel=0.1)
    assert abs(drawn.mean()) < 0.1 * stated
    if numerics == "exact":
        unit = stated / float(Fraction(3) * part.grid.sensitivity)
        multiples = (drawn + plain) / unit
        np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-2)


@pytest.mark.parametrize("variant", ["tight", "paper"])
@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_fit_adds_the_noise_that_the_record_promises(variant, numerics):
    data = problem(m=30, n=20)
    settings = {
        "epsilon": 2.0,
        "delta": 1e-3,
        "alpha": 0.4,
        "kappa_1": 0.05,
        "steps": 7,
        "numerics": numerics,
    }
    model = ConvexAdaptation(**settings, variant=variant).fit(*data)
    privacy = Privacy(2.0, 1e-3, numerics)
    factor = 1.0 if variant == "tight" else {"exact": JOINT_ROUNDED, "idealized": JOINT}[numerics]
    multiple = math.sqrt(factor * 7 / 0.95) / privacy.mu()
    steepest = 0.6 / 20 * 2 * (math.sqrt(0.05) if variant == "tight" else 2)
    assert model.noise_ == pytest.approx(2 * steepest * multiple, rel=1e-3)
    assert (model.record_.epsilon, model.record_.delta) == (2.0, 1e-3)
    assert model.record_.numerics == numerics
    assert f"{variant}, 7 steps" in model.record_.mechanism
    assert np.linalg.norm(model.coef_) <= 1 + 1e-12


def test_much_epsilon_comes_near_the_optimum_and_less_does_not():
    data = problem(7, m=3000, n=3000)
    settings = {"delta": 1e-5, "alpha": 0.3, "radius": 2.0, "random_state": 1}
    best = ConvexAdaptation(**{**settings, "epsilon": math.inf}).fit(*data)
    away = {
        epsilon: np.linalg.norm(ConvexAdaptation(epsilon=epsilon, **settings).fit(*data).coef_
                                - best.coef_)
        for epsilon in (0.01, 50.0)
    }  # fmt: skip
    assert away[50.0] < 0.05 < away[0.01]


def as_printed(data, alpha, kappas, judged, radius, steps):
    """Algorithm 1 without noise, line by line, for rows of norm at most 1."""
    Xs, ys, Xt, yt = data
    m, n, (k1, k2, ki) = len(ys), len(yt), kappas
    B, G = (radius + 1) ** 2, 2 * (radius + 1)
    bar = B + k1 + k2 + ki
    up, uq = np.full(m, m / alpha), np.full(n, n / (1 - alpha))
    w, total_w = np.zeros(Xs.shape[1]), np.zeros(Xs.shape[1])
    eta_w = radius / math.sqrt(steps * G**2)
    eta_p = m**1.5 / (math.sqrt(steps) * alpha**2 * (B + bar))
    eta_q = n**1.5 / math.sqrt(steps * (1 - alpha) ** 4 * bar**2)
    for _ in range(steps):
        ep, eq = Xs @ w - ys, Xt @ w - yt
        root = math.sqrt((up**-2).sum() + (uq**-2).sum())
        least = min(up.min(), uq.min())
        gw = 2 * Xs.T @ (ep / up) + 2 * Xt.T @ (eq / uq)
        gp = -(ep**2 + judged) / up**2 + k1 * alpha**2 / m**2 - k2 / (root * up**3)
        gq = -(eq**2) / uq**2 + k1 * (1 - alpha) ** 2 / n**2 - k2 / (root * uq**3)
        gp, gq = gp - ki * (up == least) / up**2, gq - ki * (uq == least) / uq**2
        w = w - eta_w * gw
        w = w * min(1, radius / np.linalg.norm(w))
        up, uq = (
            np.maximum(up - eta_p * gp, m / alpha),
            np.maximum(uq - eta_q * gq, n / (1 - alpha)),
        )
        total_w += w
    return total_w / steps


def test_the_paper_variant_takes_the_printed_steps():
    data, kappas = problem(9), (0.5, 0.3, 0.2)
    names = dict(zip(("kappa_1", "kappa_2", "kappa_inf"), kappas, strict=True))
    settings = {"alpha": 0.4, "radius": 1.5, "steps": 40, "variant": "paper", **names}
    found = ConvexAdaptation(epsilon=math.inf, **settings).fit(*data)
    expected = as_printed(data, 0.4, kappas, found.discrepancy_, 1.5, 40)
    np.testing.assert_allclose(found.coef_, expected, atol=1e-10)


def test_beyond_the_bounds_private_records_are_projected_and_public_ones_refused():
    Xs, ys, Xt, yt = problem()
    beyond, loud = 5 * Xt, yt.copy()
    loud[0] = 7
    settings = {"epsilon": 1.0, "random_state": 3, "alpha": 0.5, "steps": 5}
    shrunk = beyond / np.maximum(np.linalg.norm(beyond, axis=1), 1)[:, None]
    found = [
        ConvexAdaptation(**settings).fit(Xs, ys, X, y).coef_
        for X, y in ((beyond, loud), (shrunk, np.clip(loud, -1, 1)))
    ]
    np.testing.assert_allclose(*found, atol=1e-4)
    for private, name in (("source", "X_target"), (None, "X_target")):
        model = ConvexAdaptation(epsilon=math.inf if private is None else 1, private=private)
        with pytest.raises(ParameterError, match=name):
            model.fit(Xs, ys, beyond, yt)
    with pytest.raises(ParameterError, match="y_source"):
        ConvexAdaptation(**settings).fit(Xs, 3 * np.ones(60), Xt, yt)


def test_the_reverse_scenario_protects_the_source():
    Xs, ys, Xt, yt = problem(4, m=4000, n=300)
    settings = {"epsilon": 1.0, "delta": 1e-5, "alpha": 0.6, "private": "source", "random_state": 0}
    settings["kappa_1"] = 1.0
    model = ConvexAdaptation(**settings).fit(5 * Xs, ys, Xt, yt)
    best = ConvexAdaptation(**{**settings, "epsilon": math.inf}).fit(5 * Xs, ys, Xt, yt)
    multiple = least_noise(Privacy(1.0, 1e-5, "exact"), 1, 0.05).multiple
    steps = int(model.record_.mechanism.split()[-2])
    expected = 4 * 0.6 / 4000 * multiple * math.sqrt(steps)
    assert model.noise_ == pytest.approx(expected, rel=1e-2)
    assert np.linalg.norm(model.coef_ - best.coef_) < 0.3


@pytest.mark.parametrize("private", ["target", "source"])
def test_a_feature_map_is_that_of_mapped_records(private):
    Xs, ys, Xt, yt = problem()
    shown = []

    def lift(X):
        shown.append(X.copy())
        return np.column_stack([X, np.zeros(len(X))]) * 0.5

    wide = np.column_stack([Xt, np.zeros(len(Xt))])
    settings = {"epsilon": 1.0, "steps": 5, "random_state": 1, "private": private}
    mapped = ConvexAdaptation(feature_map=lift, **settings).fit(Xs, ys, wide, yt)
    plain = ConvexAdaptation(**settings).fit(lift(Xs), ys, wide, yt)
    np.testing.assert_array_equal(mapped.coef_, plain.coef_)
    if private == "target":
        np.testing.assert_array_equal(shown[0], Xs)
    else:
        # A record of zeros, in case the map is wrong, and one at a time.
        np.testing.assert_array_equal(shown[:-1], [0 * Xs[:1], *Xs[:, None]])


@pytest.mark.parametrize("variant", ["tight", "paper"])
def test_a_seed_gives_the_same_whatever_the_threads(variant, monkeypatch):
    data = problem(2, m=60_000, n=30_000)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        model = ConvexAdaptation(epsilon=1.0, steps=4, variant=variant, random_state=5)
        found.append(model.fit(*data).coef_)
    np.testing.assert_array_equal(*found)
    other = ConvexAdaptation(epsilon=1.0, steps=4, variant=variant, random_state=6).fit(*data)
    assert (other.coef_ != found[0]).all()


def arrays_in(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from arrays_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from arrays_in(each)
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value))


@pytest.mark.parametrize("variant", ["tight", "paper"])
def test_nothing_of_any_record_is_kept(variant):
    model = ConvexAdaptation(epsilon=1.0, steps=3, variant=variant).fit(*problem(m=60, n=40))
    assert [each.shape for each in arrays_in(model)] == [(3,)]
    assert set(vars(model)) - set(model.get_params()) == {
        "coef_", "alpha_", "discrepancy_", "noise_", "record_",
    }  # fmt: skip
    assert len(pickle.dumps(model)) < 2500
    assert "array" not in repr(model)


def test_the_budget_is_charged_once_and_nothing_is_half_written():
    data, budget = problem(), Budget(1.5, 1e-3)
    settings = {"epsilon": 1.0, "delta": 1e-4, "steps": 3, "budget": budget}
    model = ConvexAdaptation(**settings).fit(*data)
    assert budget.spent == (1.0, 1e-4)
    before = dict(vars(model))
    with pytest.raises(BudgetExceeded):
        model.fit(*data)
    assert vars(model) == before
    fresh = ConvexAdaptation(**settings)
    with pytest.raises(BudgetExceeded):
        fresh.fit(*data)
    assert not hasattr(fresh, "coef_")
    with pytest.raises(HdpFastError, match="call fit first"):
        fresh.predict(data[0])
    with pytest.raises(ParameterError, match="only a private run"):
        ConvexAdaptation(epsilon=math.inf, budget=budget).fit(*data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e-12, "delta": 1e-15}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"radius": 0}, "radius"),
        ({"norm_bound": -1}, "norm_bound"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"kappa_1": 0}, "kappa_1"),
        ({"kappa_2": -1}, "kappa_2"),
        ({"kappa_2": 0.1}, 'variant="paper"'),
        ({"kappa_inf": 0.1}, 'variant="paper"'),
        ({"steps": 0}, "steps"),
        ({"discrepancy_share": 1}, "discrepancy_share"),
        ({"variant": "best"}, "variant"),
        ({"private": "both"}, "private"),
        ({"private": None}, "protects nobody"),
        ({"numerics": "floats"}, "numerics"),
        ({"feature_map": 3}, "feature_map"),
        ({"feature_map": lambda X: X[:1]}, "feature_map"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_named_before_anything_is_spent(change, said):
    budget = Budget(1, 1e-3)
    settings = {"epsilon": 1.0, "delta": 1e-4, "steps": 3, "budget": budget, **change}
    with pytest.raises(HdpFastError, match=said):
        ConvexAdaptation(**settings).fit(*problem())
    assert budget.spent == (0, 0)


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("n", [0, 1])
def test_none_and_one_record(m, n):
    Xs, ys, Xt, yt = problem()
    data = Xs[:m], ys[:m], Xt[:n], yt[:n]
    for epsilon in (1.0, math.inf):
        model = ConvexAdaptation(epsilon=epsilon, steps=3)
        if m and n:
            assert np.isfinite(model.fit(*data).coef_).all()
        else:
            with pytest.raises(ShapeError):
                model.fit(*data)


def test_constant_columns_and_single_precision_are_fine_and_other_data_is_not():
    Xs, ys, Xt, yt = problem()
    Xs[:, 0] = Xt[:, 0] = 0
    zero = ConvexAdaptation(epsilon=math.inf).fit(Xs, ys, Xt, yt)
    half = [each.astype(np.float32) for each in (0.9 * Xs, ys, 0.9 * Xt, yt)]
    assert np.isfinite(ConvexAdaptation(epsilon=1.0, steps=4).fit(*half).coef_).all()
    assert abs(zero.coef_[0]) < 1e-6
    with pytest.raises(ShapeError, match="features"):
        ConvexAdaptation(epsilon=1.0).fit(Xs, ys, Xt[:, :2], yt)
    with pytest.raises(ShapeError, match="label"):
        ConvexAdaptation(epsilon=1.0).fit(Xs, ys[1:], Xt, yt)
    Xt[3, 1] = math.nan
    with pytest.raises(ParameterError, match="X_target"):
        ConvexAdaptation(epsilon=1.0).fit(Xs, ys, Xt, yt)


def test_parameters_can_be_read_and_set():
    budget = Budget(1, 1e-3)
    model = ConvexAdaptation(epsilon=1.0, budget=budget)
    again = ConvexAdaptation(**model.get_params())
    assert again.get_params() == model.get_params()
    assert again.budget is budget
    with pytest.raises(ParameterError, match="no 'kappa'"):
        model.set_params(kappa=1)


def test_predictions_are_of_rows_within_the_bound():
    model = ConvexAdaptation(epsilon=math.inf, radius=2.0).fit(*problem())
    x = np.array([[3.0, 4.0, 0.0], [0.1, 0.0, 0.2]])
    expected = np.array([[0.6, 0.8, 0.0], [0.1, 0.0, 0.2]]) @ model.coef_
    np.testing.assert_allclose(model.predict(x), expected)


def test_exact_noise_is_accounted_by_its_own_curve():
    exact, ideal = (least_noise(Privacy(1.0, 1e-6, each), 9, 0.05) for each in
                    ("exact", "idealized"))  # fmt: skip
    assert 1.05 < exact.multiple / ideal.multiple < 1.1
    assert accounting.gaussian_mu(1.0, 1e-6) == pytest.approx(0.2367, rel=1e-4)


def test_rows_in_reals_keep_their_bounds():
    X, y = 4 * COINS.normal(size=(9000, 3)), 3 * COINS.normal(size=9000)
    rows = in_reals(Sample("target", X, y), Shape(1.0, 0.7).bounds)
    assert np.linalg.norm(rows.X, axis=1).max() <= 0.7
    assert np.abs(rows.y).max() == 1
    inside = np.linalg.norm(X, axis=1) <= 0.69
    np.testing.assert_array_equal(rows.X[inside], X[inside])
