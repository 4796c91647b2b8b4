"""Baselines of adaptation beside scipy's and scikit-learn's solvers, closed forms and grids."""

import math

import numpy as np
import pytest
from adaptation_problems import shifted
from cases import each_case

import hdp_fast
from hdp_fast import adaptation
from hdp_fast.exceptions import BudgetExceeded, HdpFastError, ParameterError, ShapeError

NOT_PRIVATE = [adaptation.KernelMeanMatching, adaptation.DiscrepancyMinimization]
PRIVATE = {"epsilon": 1.0, "delta": 1e-5}


def bits(y):
    return (y > 0).astype(int)


@pytest.mark.parametrize("kind", NOT_PRIVATE)
def test_baselines_say_that_they_protect_nobody(kind):
    model = kind()
    assert model.fit(*shifted()) is model
    assert model.record_ is None
    assert repr(model).endswith("not private")
    assert "Not private" in kind.__doc__
    assert not model.coef_.flags.writeable


@pytest.mark.parametrize("kind", [*NOT_PRIVATE, adaptation.TargetSGD])
def test_parameters_are_those_of_scikit_learn(kind):
    given = PRIVATE if kind is adaptation.TargetSGD else {"l2": 0.5}
    model = kind(**given)
    assert kind(**model.fit(*shifted()).get_params()).get_params() == model.get_params()
    assert model.set_params(loss="logistic").loss == "logistic"
    with pytest.raises(ParameterError, match="'weights_'"):
        model.set_params(weights_=None)


@pytest.mark.parametrize("kind", NOT_PRIVATE)
def test_reweighting_helps_where_the_source_holds_the_target(kind):
    coins = np.random.default_rng(1)
    X = coins.uniform(-1, 1, (400, 1))
    source, target = (np.hstack([x, np.ones_like(x)]) for x in (X, (X[:100] + 3) / 4))
    labels = [abs(x[:, 0]) for x in (source, target)]
    model = kind(l2=1e-6).fit(source, labels[0], target, labels[1])
    plain = np.linalg.lstsq(source, labels[0], rcond=None)[0]
    errors = [np.mean((target @ coef - labels[1]) ** 2) for coef in (plain, model.coef_)]
    assert errors[1] < errors[0] / 4
    assert model.gap_ >= 0
    assert model.weights_.shape == (400,)


@pytest.mark.parametrize("kind", NOT_PRIVATE)
def test_logistic_baselines_predict_bits(kind):
    source, y_source, target, y_target = shifted()
    model = kind(loss="logistic", l2=1e-3).fit(source, bits(y_source), target, bits(y_target))
    said = model.predict(target)
    assert said.dtype == np.uint8
    assert np.mean(said == bits(y_target)) > 0.8


def test_noisy_descent_is_as_private_as_it_says_and_uses_no_source():
    source, y_source, target, y_target = shifted(10, 800, 3)
    budget = hdp_fast.Budget(1.0, 1e-5)
    model = adaptation.TargetSGD(**PRIVATE, norm_bound=3.0, radius=2.0)
    first = model.fit(source, y_source, target, y_target, random_state=3, budget=budget).coef_
    assert 0.9 < model.record_.epsilon <= 1.0
    assert model.record_.delta == 1e-5
    # min(100, 800**2 / (32 * 3 * ln(1e5))) steps of 800 sqrt(1 / 400) draws.
    assert "100 steps of Poisson(40) uniform draws" in model.record_.mechanism
    assert np.linalg.norm(first) <= 2.0 + 1e-9
    assert abs(model.predict(100 * target)).max() <= 6.0 + 1e-9
    with pytest.raises(BudgetExceeded):
        model.fit(source, y_source, target, y_target, random_state=3, budget=budget)
    second = model.fit(-source, -y_source, target, y_target, random_state=3).coef_
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("epsilon", [1e4, 1e200])
def test_noisy_descent_at_an_epsilon_that_asks_for_hardly_any_noise(epsilon):
    data = shifted(4, 200, 3)
    model = adaptation.TargetSGD(epsilon=epsilon, delta=1e-6, steps=3).fit(*data, random_state=1)
    assert model.record_.epsilon <= epsilon


def test_noisy_descent_learns_where_there_is_no_need_for_noise():
    data = shifted(10, 2000, 3)
    options = {
        "radius": 3.0,
        "norm_bound": 3.0,
        "label_bound": 9.0,
        "steps": 400,
        "batch_size": 500,
    }
    model = adaptation.TargetSGD(epsilon=1e3, delta=1e-5, **options).fit(*data, random_state=1)
    best = np.linalg.lstsq(*data[2:], rcond=None)[0]
    errors = [np.mean((data[2] @ coef - data[3]) ** 2) for coef in (model.coef_, best)]
    assert errors[0] < 5 * errors[1] + 0.05


@each_case(
    ("kind", "options", "message"),
    [
        (adaptation.KernelMeanMatching, {"loss": "hinge"}, "loss = 'hinge'"),
        (adaptation.DiscrepancyMinimization, {"l2": 0}, "l2 = 0"),
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
        model.fit(*shifted())
    assert not hasattr(model, "coef_")


@each_case("kind", [adaptation.KernelMeanMatching, adaptation.TargetSGD])
@each_case(
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
    data = [change.get(place, given) for place, given in enumerate(shifted())]
    with pytest.raises(error, match=message):
        model.fit(*data)
    assert not hasattr(model, "coef_")


def test_one_source_record_needs_a_width():
    data = shifted(1, 5, 2)
    with pytest.raises(ShapeError, match="width"):
        adaptation.KernelMeanMatching().fit(*data)
    found = adaptation.KernelMeanMatching(width=1.0).fit(*data)
    assert found.weights_.shape == (1,)


def test_models_that_have_not_learned_say_so():
    with pytest.raises(HdpFastError, match="call fit first"):
        adaptation.KernelMeanMatching().predict(np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="must be 3"):
        adaptation.KernelMeanMatching().fit(*shifted()).predict(np.zeros((1, 2)))
