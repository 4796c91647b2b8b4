"""Baselines of adaptation beside scipy's and scikit-learn's solvers, closed forms and grids."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import hdp_fast
from hdp_fast import adaptation
from hdp_fast.adaptation.baselines.polytopes import Polytope, minimize
from hdp_fast.adaptation.baselines.reweighting import (
    kernel_width,
    match_kernel_means,
    minimize_discrepancy,
)
from hdp_fast.adaptation.baselines.weighted_fit import fit_weighted
from hdp_fast.exceptions import BudgetExceeded, HdpFastError, ParameterError, ShapeError

COINS = np.random.default_rng(8)
MATCH = {"width": 1.0, "bound": 3.0, "slack": 0.2, "steps": 20_000, "tolerance": 1e-7}
NOT_PRIVATE = [
    adaptation.SourceOnly,
    adaptation.TargetOnly,
    adaptation.Pooled,
    adaptation.KernelMeanMatching,
    adaptation.DiscrepancyMinimization,
]
PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "random_state": 3}


def domains(m=60, n=40, d=3, shift=0.5):
    coins = np.random.default_rng(m + 10 * n + d)
    source, target = coins.standard_normal((m, d)), shift + coins.standard_normal((n, d))
    w = coins.standard_normal(d)
    labels = (rows @ w + 0.1 * coins.standard_normal(len(rows)) for rows in (source, target))
    y_source, y_target = labels
    return source, y_source, target, y_target


def bits(y):
    return (y > 0).astype(int)


def lowest(polytope, costs):
    """The least inner product, by a linear program."""
    ones = np.ones((1, len(costs)))
    found = optimize.linprog(
        costs,
        A_ub=np.vstack([ones, -ones]),
        b_ub=[polytope.high, -polytope.low],
        bounds=(0, polytope.cap),
    )
    return found.fun


POLYTOPES = [
    Polytope(1.0, 1.0, 1.0),
    Polytope(0.25, 0.5, 0.9),
    Polytope(2.0, 0.0, 1.0),
    Polytope(0.2, 1.0, 1.0),
    Polytope(1.0, 3.5, 4.5),
]


@pytest.mark.parametrize("polytope", POLYTOPES, ids=str)
def test_projections_satisfy_the_variational_inequality(polytope):
    for scale in (0.01, 1.0, 10.0):
        point = scale * COINS.standard_normal(5)
        found = polytope.project(point)
        assert (found >= 0).all()
        assert (found <= polytope.cap).all()
        assert polytope.low - 1e-9 <= found.sum() <= polytope.high + 1e-9
        # No point of the polytope lies further in the direction of what was cut off.
        away = point - found
        assert -lowest(polytope, -away) <= away @ found + 1e-8 * scale


@pytest.mark.parametrize("polytope", POLYTOPES, ids=str)
def test_least_inner_products_are_those_of_a_linear_program(polytope):
    for offset in (-1.0, 0.0, 1.0):
        costs = COINS.standard_normal(5) + offset
        assert polytope.least(costs) == pytest.approx(lowest(polytope, costs), abs=1e-9)


def test_ties_are_projected_alike():
    found = Polytope(1.0, 1.0, 1.0).project(np.full(4, 7.0))
    np.testing.assert_allclose(found, 0.25)


def test_descent_ends_within_the_gap_that_it_states():
    matrix = COINS.standard_normal((8, 5))
    gram, line = matrix.T @ matrix, COINS.standard_normal(5)

    def function(q):
        return float(q @ gram @ q / 2 + line @ q), gram @ q + line

    simplex, start = Polytope(1.0, 1.0, 1.0), np.full(5, 0.2)
    best = constrained(function, start, cap=1.0, low=1.0, high=1.0)
    for steps in (1, 5, 5000):
        found = minimize(function, simplex, start, steps=steps, gap=1e-10)
        assert found.value == function(found.weights)[0]
        assert found.value - found.gap <= best + 1e-9
    assert found.gap <= 1e-10
    np.testing.assert_allclose(found.value, best, atol=1e-7)


def constrained(function, start, *, cap, low, high):
    """The least value, by sequential quadratic programs."""
    found = optimize.minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, cap)] * len(start),
        constraints=[
            {"type": "ineq", "fun": lambda q: q.sum() - low, "jac": np.ones_like},
            {"type": "ineq", "fun": lambda q: high - q.sum(), "jac": lambda q: -np.ones_like(q)},
        ],
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert found.success
    return found.fun


def test_ridge_is_that_of_least_squares_with_more_rows():
    X, y, *_ = domains()
    weights, l2 = COINS.random(len(y)), 0.03
    rows = np.vstack([X * np.sqrt(weights)[:, None], math.sqrt(l2) * np.eye(3)])
    wanted = np.linalg.lstsq(rows, np.append(y * np.sqrt(weights), np.zeros(3)), rcond=None)[0]
    found = fit_weighted(X, y, weights, loss="squared", l2=l2)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("l2", [1e-6, 0.1])
def test_logistic_regression_is_that_of_scikit_learn(l2):
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression
    X, y, *_ = domains()
    weights = COINS.random(len(y)) / len(y)
    flipped = np.where(np.arange(len(y)) % 7, y, -y)
    judge = model(C=1 / l2, fit_intercept=False, tol=1e-10, max_iter=10_000)
    judge.fit(X, flipped > 0, sample_weight=weights)
    found = fit_weighted(X, np.sign(flipped), weights, loss="logistic", l2=l2)
    np.testing.assert_allclose(found, judge.coef_[0], rtol=1e-3, atol=1e-5)


def test_a_search_ends_at_the_same_model_wherever_it_starts():
    X, y, *_ = domains()
    labels, weights = np.sign(y + COINS.standard_normal(60)), np.full(60, 1 / 60)
    first, second = (
        fit_weighted(X, labels, weights, loss="logistic", l2=0.01, start=start)
        for start in (None, np.array([5.0, -5.0, 3.0]))
    )
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_separable_records_still_end():
    X, y, *_ = domains()
    found = fit_weighted(X, np.sign(X[:, 0]), np.full(len(y), 1 / 60), loss="logistic", l2=1e-9)
    assert np.isfinite(found).all()
    assert ((X @ found > 0) == (X[:, 0] > 0)).all()


def gaussian(rows, others):
    return np.exp(-((rows[:, None] - others[None]) ** 2).sum(axis=2) / 2)


def mean_distance(q, source, target):
    """Half the squared distance of kernel means, from kernels alone."""
    cross = gaussian(source, target).mean(axis=1)
    within = q @ gaussian(source, source) @ q
    return (within - 2 * q @ cross + gaussian(target, target).mean()) / 2


def test_kernel_means_match_as_well_as_a_quadratic_program_can():
    source, _, target, _ = domains(12, 9, 2)
    kernel, cross = gaussian(source, source), gaussian(source, target).mean(axis=1)

    def function(q):
        return mean_distance(q, source, target), kernel @ q - cross

    best = constrained(function, np.full(12, 1 / 12), cap=3 / 12, low=0.8, high=1.2)
    found = match_kernel_means(source, target, landmarks=12, **MATCH)
    assert found.weights.max() <= 3 / 12
    assert 0.8 - 1e-9 <= found.weights.sum() <= 1.2 + 1e-9
    value = mean_distance(found.weights, source, target)
    assert best - 1e-9 <= value <= best + found.gap + 1e-9
    assert found.gap <= 1e-7


def test_a_few_landmarks_match_nearly_as_well():
    source, _, target, _ = domains(200, 100, 2)
    options = {**MATCH, "width": 3.0}
    exact, few = (
        match_kernel_means(source, target, landmarks=landmarks, **options).weights
        for landmarks in (200, 60)
    )
    equal = mean_distance(np.full(200, 1 / 200), source, target)
    assert mean_distance(few, source, target) < equal / 4
    assert abs(mean_distance(few, source, target) - mean_distance(exact, source, target)) < 1e-3


def test_the_width_is_the_median_distance_of_public_records():
    source = domains()[0]
    pairs = [np.linalg.norm(a - b) for a, b in itertools.combinations(source, 2)]
    assert kernel_width(source) == pytest.approx(np.median(pairs))
    assert kernel_width(np.ones((5, 2))) == 1.0


def spectral(q, source, target):
    moments = (source.T * q) @ source - target.T @ target / len(target)
    return np.linalg.norm(moments, 2)


def test_discrepancies_in_one_dimension_have_a_closed_form():
    source = np.array([[1.0], [2.0], [3.0]])
    for target, least in (([[2.0]], 0.0), ([[5.0]], 16.0), ([[0.5]], 0.75)):
        found = minimize_discrepancy(source, np.array(target), steps=2000, tolerance=1e-4)
        assert found.value - found.gap - 1e-9 <= least <= found.value + 1e-9
        assert found.gap <= 1e-4 * spectral(np.full(3, 1 / 3), source, np.array(target))


@pytest.mark.parametrize("seed", range(3))
def test_no_weights_on_a_grid_have_a_smaller_discrepancy(seed):
    coins = np.random.default_rng(seed)
    source, target = coins.standard_normal((3, 2)), coins.standard_normal((6, 2))
    found = minimize_discrepancy(source, target, steps=3000, tolerance=1e-3)
    assert found.value == pytest.approx(spectral(found.weights, source, target), rel=1e-9)
    shares = np.arange(201) / 200
    grid = min(
        spectral(np.array([a, b, 1 - a - b]), source, target)
        for a, b in itertools.product(shares, shares)
        if a + b <= 1
    )
    assert found.value <= grid + found.gap + 1e-9
    assert found.value - found.gap <= grid
    assert found.gap <= 1e-3 * spectral(np.full(3, 1 / 3), source, target) + 1e-9


def test_equal_domains_need_no_discrepancy_minimized():
    source = domains()[0]
    found = minimize_discrepancy(source, source, steps=10, tolerance=0.01)
    assert found.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", NOT_PRIVATE)
def test_baselines_say_that_they_protect_nobody(kind):
    model = kind()
    assert model.fit(*domains()) is model
    assert model.record_ is None
    assert repr(model).endswith("not private")
    assert "Not private" in kind.__doc__
    assert not model.coef_.flags.writeable


@pytest.mark.parametrize("kind", [*NOT_PRIVATE, adaptation.TargetSGD])
def test_parameters_are_those_of_scikit_learn(kind):
    given = PRIVATE if kind is adaptation.TargetSGD else {"l2": 0.5}
    model = kind(**given)
    assert kind(**model.fit(*domains()).get_params()).get_params() == model.get_params()
    assert model.set_params(loss="logistic").loss == "logistic"
    with pytest.raises(ParameterError, match="'weights_'"):
        model.set_params(weights_=None)


def test_source_and_target_alone_are_ridge():
    source, y_source, target, y_target = data = domains()
    for kind, X, y in (
        (adaptation.SourceOnly, source, y_source),
        (adaptation.TargetOnly, target, y_target),
    ):
        ridge = np.linalg.solve(X.T @ X + 0.01 * len(y) * np.eye(3), X.T @ y)
        np.testing.assert_allclose(kind(l2=0.01).fit(*data).coef_, ridge, rtol=1e-9)


def test_pooling_weighs_records_or_domains():
    source, y_source, target, y_target = data = domains()
    X, y = np.vstack([source, target]), np.append(y_source, y_target)
    everybody = adaptation.SourceOnly(l2=0.01).fit(X, y, target, y_target)
    equal = adaptation.Pooled(l2=0.01).fit(*data)
    shares = adaptation.Pooled(l2=0.01, alpha=60 / 100).fit(*data)
    np.testing.assert_allclose(equal.coef_, everybody.coef_, rtol=1e-9)
    np.testing.assert_allclose(shares.coef_, everybody.coef_, rtol=1e-9)
    nearly = adaptation.Pooled(l2=0.01, alpha=1e-9).fit(*data)
    alone = adaptation.TargetOnly(l2=0.01).fit(*data)
    np.testing.assert_allclose(nearly.coef_, alone.coef_, rtol=1e-6)


@pytest.mark.parametrize("kind", NOT_PRIVATE[3:])
def test_reweighting_helps_where_the_source_holds_the_target(kind):
    coins = np.random.default_rng(1)
    X = coins.uniform(-1, 1, (400, 1))
    source, target = (np.hstack([x, np.ones_like(x)]) for x in (X, (X[:100] + 3) / 4))
    labels = [abs(x[:, 0]) for x in (source, target)]
    plain, model = adaptation.SourceOnly(l2=1e-6), kind(l2=1e-6)
    errors = [
        np.mean((each.fit(source, labels[0], target, labels[1]).predict(target) - labels[1]) ** 2)
        for each in (plain, model)
    ]
    assert errors[1] < errors[0] / 4
    assert model.gap_ >= 0
    assert model.weights_.shape == (400,)


@pytest.mark.parametrize("kind", NOT_PRIVATE)
def test_logistic_baselines_predict_bits(kind):
    source, y_source, target, y_target = domains()
    model = kind(loss="logistic", l2=1e-3).fit(source, bits(y_source), target, bits(y_target))
    said = model.predict(target)
    assert said.dtype == np.uint8
    assert np.mean(said == bits(y_target)) > 0.8


def test_noisy_descent_is_as_private_as_it_says_and_uses_no_source():
    source, y_source, target, y_target = domains(10, 800, 3)
    budget = hdp_fast.Budget(1.0, 1e-5)
    model = adaptation.TargetSGD(**PRIVATE, norm_bound=3.0, radius=2.0, budget=budget)
    first = model.fit(source, y_source, target, y_target).coef_
    assert 0.9 < model.record_.epsilon <= 1.0
    assert model.record_.delta == 1e-5
    # min(100, 800**2 / (32 * 3 * ln(1e5))) steps of 800 sqrt(1 / 400) draws.
    assert "100 steps of 40 uniform draws" in model.record_.mechanism
    assert np.linalg.norm(first) <= 2.0 + 1e-9
    assert abs(model.predict(100 * target)).max() <= 6.0 + 1e-9
    with pytest.raises(BudgetExceeded):
        model.fit(source, y_source, target, y_target)
    model.set_params(budget=None)
    second = model.fit(-source, -y_source, target, y_target).coef_
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("epsilon", [1e4, 1e200])
def test_noisy_descent_at_an_epsilon_that_asks_for_hardly_any_noise(epsilon):
    data = domains(4, 200, 3)
    model = adaptation.TargetSGD(epsilon=epsilon, delta=1e-6, steps=3, random_state=1).fit(*data)
    assert model.record_.epsilon <= epsilon


def test_noisy_descent_learns_where_there_is_no_need_for_noise():
    data = domains(10, 2000, 3)
    options = {
        "radius": 3.0,
        "norm_bound": 3.0,
        "label_bound": 9.0,
        "steps": 400,
        "batch_size": 500,
    }
    model = adaptation.TargetSGD(epsilon=1e3, delta=1e-5, random_state=1, **options).fit(*data)
    best = adaptation.TargetOnly(l2=1e-9).fit(*data)
    errors = [np.mean((each.predict(data[2]) - data[3]) ** 2) for each in (model, best)]
    assert errors[0] < 5 * errors[1] + 0.05


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (adaptation.SourceOnly, {"loss": "hinge"}, "loss = 'hinge'"),
        (adaptation.SourceOnly, {"l2": 0}, "l2 = 0"),
        (adaptation.Pooled, {"alpha": 1.0}, "alpha = 1.0"),
        (adaptation.KernelMeanMatching, {"bound": 0.5}, "bound = 0.5"),
        (adaptation.KernelMeanMatching, {"bound": math.inf}, "bound = inf"),
        (adaptation.KernelMeanMatching, {"slack": 1.0}, "slack = 1.0"),
        (adaptation.KernelMeanMatching, {"width": -1}, "width = -1"),
        (adaptation.KernelMeanMatching, {"landmarks": 0}, "landmarks = 0"),
        (adaptation.DiscrepancyMinimization, {"steps": 0}, "steps = 0"),
        (adaptation.DiscrepancyMinimization, {"tolerance": math.nan}, "tolerance = nan"),
        (adaptation.TargetSGD, {"epsilon": 0, "delta": 0.1}, "epsilon = 0"),
        (adaptation.TargetSGD, {**PRIVATE, "batch_size": 0}, "batch_size = 0"),
        (adaptation.TargetSGD, {**PRIVATE, "steps": 0}, "steps = 0"),
        (adaptation.TargetSGD, {**PRIVATE, "loss": "huber"}, "loss = 'huber'"),
    ],
)
def test_bad_parameters_are_named(kind, options, message):
    model = kind(**options)
    with pytest.raises(ParameterError, match=message):
        model.fit(*domains())
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("kind", [adaptation.Pooled, adaptation.TargetSGD])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({0: np.zeros((0, 3))}, ShapeError, "source: X"),
        ({0: np.full((60, 3), np.nan)}, ParameterError, "source: X"),
        ({1: np.zeros(59)}, ShapeError, "source: y has length 59"),
        ({2: np.zeros((40, 4))}, ShapeError, "X_target has 4 columns, but there must be 3"),
        ({3: np.zeros(39)}, ShapeError, "y has length 39"),
        ({3: np.full(40, np.inf)}, ParameterError, "y has an infinite entry"),
    ],
)
def test_bad_records_are_named(kind, change, error, message):
    model = kind(**PRIVATE) if kind is adaptation.TargetSGD else kind()
    data = [change.get(place, given) for place, given in enumerate(domains())]
    with pytest.raises(error, match=message):
        model.fit(*data)
    assert not hasattr(model, "coef_")


def test_one_source_record_needs_a_width():
    data = domains(1, 5, 2)
    with pytest.raises(ShapeError, match="width"):
        adaptation.KernelMeanMatching().fit(*data)
    found = adaptation.KernelMeanMatching(width=1.0).fit(*data)
    assert found.weights_.shape == (1,)


def test_models_that_have_not_learned_say_so():
    with pytest.raises(HdpFastError, match="call fit first"):
        adaptation.Pooled().predict(np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="must be 3"):
        adaptation.Pooled().fit(*domains()).predict(np.zeros((1, 2)))
