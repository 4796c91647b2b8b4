"""Private discrepancy minimization: what a record moves, exact sums, and the release alone."""

import math

import numpy as np
import pytest
from adaptation_problems import fit

import hdp_fast
from hdp_fast import accounting
from hdp_fast.adaptation import (
    ConvexAdaptation,
    DiscrepancyMinimization,
    KernelMeanMatching,
    NonConvexAdaptation,
    PrivateDiscrepancyMinimization,
    TargetSGD,
)
from hdp_fast.data import Chunks
from hdp_fast.exceptions import ParameterError, ShapeError

PRIVATE = {"epsilon": 1.0, "delta": 1e-5}

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def shrunk(X, bound=1.0):
    return X * (bound / np.maximum(np.linalg.norm(X, axis=1), bound))[:, None]


def domains(m=60, n=400, d=3):
    coins = np.random.default_rng(m + 10 * n + d)
    source, target = (
        shrunk(coins.standard_normal((k, d)) * np.linspace(low, 0.5, d))
        for k, low in ((m, 0.3), (n, 0.7))
    )
    w = coins.standard_normal(d)
    return source, source @ w, target, target @ w


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_without_noise_it_is_discrepancy_minimization(numerics):
    source, _, target, _ = data = domains()
    options = {"steps": 2000, "tolerance": 1e-3}
    model = PrivateDiscrepancyMinimization(
        epsilon=1e7, delta=1e-5, numerics=numerics, **options
    ).fit(*data, random_state=1)
    open_model = DiscrepancyMinimization(**options).fit(*data)
    np.testing.assert_allclose(model.moment_, target.T @ target / 400, atol=1e-5)
    np.testing.assert_allclose(model.coef_, open_model.coef_, atol=2e-3)
    assert spectral(model, source, model.moment_) == pytest.approx(
        spectral(open_model, source, model.moment_), abs=2 * open_model.gap_ + 1e-4
    )


def spectral(model, source, moment):
    return np.linalg.norm((source.T * model.weights_) @ source - moment, 2)


def test_nothing_but_the_released_matrix_is_used():
    """One feature: some weights have any second moment between the least and the largest."""
    source = np.array([[0.1], [0.9]])
    target = np.full((5, 1), 0.6)
    for seed in range(20):
        model = PrivateDiscrepancyMinimization(
            epsilon=2.0, delta=1e-3, tolerance=1e-4, l2=1e-6
        ).fit(source, [0.1, 0.3], target, random_state=seed)
        wanted = np.clip(model.moment_[0, 0], 0.01, 0.81)
        second = np.clip((wanted - 0.01) / 0.8, 0, 1)
        np.testing.assert_allclose(model.weights_, [1 - second, second], atol=2e-3)
        q, x, y = model.weights_, source[:, 0], np.array([0.1, 0.3])
        assert model.coef_[0] == pytest.approx((q * x) @ y / (q @ x**2 + 1e-6))


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_noise_is_what_the_promise_needs(numerics):
    model = PrivateDiscrepancyMinimization(**PRIVATE, norm_bound=2.0, numerics=numerics)
    model.fit(*domains(), random_state=3)
    mu = accounting.gaussian_mu(1.0, 1e-5)
    assert model.noise_ == pytest.approx(4 / (400 * mu), rel=1e-4)
    record = model.record_
    assert (record.epsilon, record.delta, record.numerics) == (1.0, 1e-5, numerics)
    assert "PrivateDiscrepancyMinimization" in record.mechanism


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_a_target_in_parts_has_the_bits_of_one_array(numerics):
    source, y_source, target, y_target = domains()
    model = PrivateDiscrepancyMinimization(**PRIVATE, numerics=numerics)
    whole = model.fit(source, y_source, target, random_state=3)
    moment, coef = whole.moment_, whole.coef_
    parts = [(target[cut], y_target[cut]) for cut in (slice(7, 400), slice(7), slice(0, 0))]
    for chunks in (Chunks(parts), Chunks([rows for rows, _ in parts])):
        ours = model.fit(source, y_source, chunks, random_state=3)
        np.testing.assert_array_equal(ours.moment_, moment)
        np.testing.assert_array_equal(ours.coef_, coef)


def test_people_in_parts_are_those_of_one_array():
    pd = pytest.importorskip("pandas")
    source, y_source, target, _ = domains()
    people = np.random.default_rng(1).integers(0, 90, 400)
    model = PrivateDiscrepancyMinimization(**PRIVATE)
    options = {"random_state": 3, "ids": people, "rows_per_person": 2}
    moment = model.fit(source, y_source, target, **options).moment_
    frame = pd.DataFrame(target, columns=list("abc")).assign(who=people)
    budget = hdp_fast.Budget(1.0, 1e-5, neighbors="replace_person")
    chunks = Chunks([frame[:50], frame[50:]], ids="who", rows_per_person=2)
    ours = model.fit(source, y_source, chunks, random_state=3, budget=budget)
    np.testing.assert_array_equal(ours.moment_, moment)
    assert (ours.record_.neighbors, budget.spent.epsilon) == ("replace_person", 1.0)


REFUSING = {
    ConvexAdaptation: ({"epsilon": 1.0, "delta": 1e-5}, "each step reads all records"),
    NonConvexAdaptation: ({"epsilon": 1.0, "delta": 1e-5}, "each step reads all records"),
    TargetSGD: ({"epsilon": 1.0, "delta": 1e-5}, "draws of records need all rows"),
    KernelMeanMatching: ({}, "it weighs each record"),
    DiscrepancyMinimization: ({}, "it weighs each record"),
    PrivateDiscrepancyMinimization: (PRIVATE, "it weighs each record of the source"),
}


@pytest.mark.parametrize("kind", REFUSING)
def test_what_cannot_be_folded_is_refused_by_name(kind):
    source, y_source, target, y_target = domains()
    settings, text = REFUSING[kind]
    with pytest.raises(ParameterError, match=f"X_source = <Chunks of 1 part>, but {text}"):
        kind(**settings).fit(Chunks([(source, y_source)]), None, target, y_target)
    if kind is not PrivateDiscrepancyMinimization:
        with pytest.raises(ParameterError, match=f"X_target = <Chunks of 1 part>, but {text}"):
            kind(**settings).fit(source, y_source, Chunks([(target, y_target)]), None)


def test_labels_of_the_target_are_never_read():
    source, y_source, target, y_target = domains()
    models = [
        PrivateDiscrepancyMinimization(**PRIVATE).fit(
            source, y_source, target, *given, random_state=3
        )
        for given in ((), (None,), (y_target,), (object(),))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_private_rows_are_shrunk_and_public_ones_are_not():
    source, y_source, target, _ = domains()
    longer = target * np.where(np.linalg.norm(target, axis=1) > 0.999, 50, 1)[:, None]
    assert (longer != target).any()
    first, second = (
        PrivateDiscrepancyMinimization(**PRIVATE).fit(source, y_source, rows, random_state=3)
        for rows in (target, longer)
    )
    # Entries may be rounded to the other neighbor.
    np.testing.assert_allclose(first.moment_, second.moment_, atol=1e-5)
    scores = first.scores(np.array([[30.0, 0, 0], [0.5, 0, 0]]))
    np.testing.assert_allclose(scores, first.coef_[0] * np.array([1, 0.5]))
    with pytest.raises(ParameterError, match="X_source has a longer row"):
        PrivateDiscrepancyMinimization(**PRIVATE).fit(2 * source, y_source, target, random_state=3)


def test_what_is_learned_is_symmetric_and_read_only():
    model = PrivateDiscrepancyMinimization(**PRIVATE)
    assert model.fit(*domains(), random_state=3) is model
    np.testing.assert_array_equal(model.moment_, model.moment_.T)
    assert model.weights_.min() >= 0
    assert model.weights_.sum() == pytest.approx(1)
    assert model.gap_ >= 0
    for each in (model.coef_, model.weights_, model.moment_):
        assert not each.flags.writeable


def test_logistic_models_predict_bits():
    source, y_source, target, y_target = domains()
    model = PrivateDiscrepancyMinimization(**PRIVATE, loss="logistic")
    said = model.fit(source, (y_source > 0).astype(int), target, random_state=3).predict(target)
    assert said.dtype == np.uint8
    assert np.mean(said == (y_target > 0)) > 0.9


def test_parameters_are_those_of_scikit_learn():
    model = PrivateDiscrepancyMinimization(**PRIVATE).fit(*domains(), random_state=3)
    again = PrivateDiscrepancyMinimization(**model.get_params())
    assert again.get_params() == model.get_params()
    assert "private" not in model.get_params()


def test_one_thread_is_two_threads(monkeypatch):
    data, found = domains(n=5000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        found.append(PrivateDiscrepancyMinimization(**PRIVATE).fit(*data, random_state=3).moment_)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"norm_bound": 0}, "norm_bound = 0"),
        ({"loss": "hinge"}, "loss = 'hinge'"),
        ({"l2": -1}, "l2 = -1"),
        ({"steps": 0}, "steps = 0"),
        ({"tolerance": math.nan}, "tolerance = nan"),
        ({"numerics": "float"}, "numerics = 'float'"),
        ({"random_state": -1}, "random_state = -1"),
    ],
)
def test_bad_parameters_are_named_and_cost_nothing(options, message):
    budget = hdp_fast.Budget(1.0, 1e-5)
    settings = {**PRIVATE, "random_state": 3, "budget": budget, **options}
    with pytest.raises(ParameterError, match=message):
        fit(PrivateDiscrepancyMinimization, settings, domains())
    assert budget.spent == (0, 0)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({0: np.zeros((0, 3))}, ShapeError, "source: X"),
        ({1: np.zeros(59)}, ShapeError, "source: y has length 59"),
        ({2: np.zeros((40, 4))}, ShapeError, "X_target has 4 columns, but there must be 3"),
        ({2: np.zeros((0, 3))}, ShapeError, "target: X"),
        ({2: np.full((40, 3), np.nan)}, ParameterError, "target: X has an infinite entry"),
    ],
)
def test_bad_records_are_named_and_cost_nothing(change, error, message):
    budget = hdp_fast.Budget(1.0, 1e-5)
    data = [change.get(place, given) for place, given in enumerate(domains())]
    model = PrivateDiscrepancyMinimization(**PRIVATE)
    with pytest.raises(error, match=message):
        model.fit(*data, random_state=3, budget=budget)
    assert budget.spent == (0, 0)
    assert not hasattr(model, "coef_")


def test_one_record_of_either_domain_is_enough():
    model = PrivateDiscrepancyMinimization(**PRIVATE).fit([[0.5]], [0.25], [[0.3]], random_state=3)
    np.testing.assert_array_equal(model.weights_, [1.0])
