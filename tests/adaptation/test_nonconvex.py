"""Non-convex adaptation: losses beside each other, noise, budgets and bad parameters."""

import math
import pickle

import numpy as np
import pytest
from adaptation_problems import classified, logistic
from cases import each_case

from hdp_fast import accounting
from hdp_fast.adaptation import NonConvexAdaptation, discrepancy
from hdp_fast.budget import Budget
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def test_softmax_of_two_classes_is_logistic_and_three_are_told_apart():
    Xs, ys, Xt, yt = classified(m=300, n=200)
    settings = {"epsilon": math.inf, "steps": 400, "radius": 5.0, "discrepancy": 0.0}
    settings |= {"alpha": 0.5, "iterate": "last"}
    two = NonConvexAdaptation(**settings, loss="softmax").fit(Xs, ys, Xt, yt)
    one = NonConvexAdaptation(**settings).fit(Xs, ys, Xt, yt)
    assert two.coef_.shape == (2, 3)
    assert (two.predict(Xt) == one.predict(Xt)).mean() > 0.97
    Xs, ys, Xt, yt = classified(m=300, n=200, classes=3)
    three = NonConvexAdaptation(**settings, loss="softmax", classes=3).fit(Xs, ys, Xt, yt)
    assert three.scores(Xt).shape == (200, 3)
    assert (three.predict(Xt) == yt).mean() > 0.85


def test_the_stand_in_for_a_discrepancy_is_cut_at_the_largest_loss():
    Xs, ys, Xt, yt = classified()
    for radius in (0.2, 20.0):
        found = NonConvexAdaptation(epsilon=math.inf, radius=radius, steps=2).fit(Xs, ys, Xt, yt)
        squared = discrepancy(Xs, 2 * ys - 1, Xt, 2 * yt - 1, radius=radius).value
        largest = math.log1p(math.exp(radius))
        assert found.discrepancy_ == pytest.approx(min(squared, largest), rel=1e-9)


@pytest.mark.parametrize("couplings", [0, 1, 2])
def test_noise_leaves_room_for_all_that_a_step_releases(couplings):
    settings = {"lambda_2": 0.1 * (couplings > 0), "lambda_inf": 0.1 * (couplings > 1)}
    model = NonConvexAdaptation(
        epsilon=1.0, delta=1e-5, alpha=0.5, steps=6, discrepancy=0.1, **settings
    )
    model.fit(*classified())
    # Without a discrepancy to release, all is for the steps: one gradient and sums of a 16th.
    mu = accounting.gaussian_mu(1.0, 1e-5)
    multiple = math.sqrt(6 * (1 + couplings / 16)) / mu
    assert model.noise_ == pytest.approx(2 * 0.5 / 30 * multiple, rel=1e-3)
    assert (model.record_.epsilon, model.gradient_mapping_) == (1.0, None)


def test_the_iterate_is_uniform():
    calls = []

    def count(w, X, y):
        if len(y) == 3:
            calls.append(y)
        return logistic(w, X, y)

    # A step calls the loss once for the three private records.
    data, numbers = classified(m=4, n=3), []
    settings = {**CALLED, "loss": count, "epsilon": 1.0, "steps": 3}
    for seed in range(200):
        calls.clear()
        NonConvexAdaptation(**settings).fit(*data, random_state=seed)
        numbers.append(len(calls))
    counts = np.bincount(numbers, minlength=4)
    assert counts[0] == 0
    assert counts[1:].sum() == 200
    assert (abs(counts[1:] - 200 / 3) < 35).all()
    calls.clear()
    NonConvexAdaptation(**settings, iterate="last").fit(*data)
    assert len(calls) == 3


def test_steps_arrive_where_the_target_has_a_column_of_its_own():
    """As categories that the source has not; a large ball must not make steps too long."""
    rng = np.random.default_rng(0)
    w, (X, Z) = np.array([6.0, -6.0, 6.0]), (rng.uniform(-0.5, 0.5, (n, 3)) for n in (2000, 20_000))
    X[:, 2] = 0
    ys, yt = ((rows @ w + rng.logistic(size=len(rows)) > 0).astype(np.uint8) for rows in (X, Z))
    given = {"alpha": 0.5, "radius": 64.0, "lambda_1": 1e6, "discrepancy": 0.0, "iterate": "last"}
    best = NonConvexAdaptation(epsilon=math.inf, steps=300, **given).fit(X, ys, Z, yt)
    settings = {"steps": 50, "initial_distance": 6.0, "delta": 1e-5, **given}
    found = NonConvexAdaptation(epsilon=20.0, **settings).fit(X, ys, Z, yt, random_state=0)
    assert np.linalg.norm(found.coef_ - best.coef_) < 0.5


def test_much_epsilon_comes_near_what_no_noise_gives():
    given = classified(m=2000, n=2000)
    settings = {"delta": 1e-5, "alpha": 0.3, "radius": 3.0, "steps": 60, "iterate": "last"}
    plain = NonConvexAdaptation(epsilon=math.inf, **settings).fit(*given)
    noisy = NonConvexAdaptation(epsilon=100.0, **settings).fit(*given, random_state=1)
    coarse = NonConvexAdaptation(epsilon=0.01, **settings).fit(*given, random_state=1)
    assert np.linalg.norm(noisy.coef_ - plain.coef_) < 0.3
    assert np.linalg.norm(coarse.coef_ - plain.coef_) > 0.3


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_seed_gives_the_same_whatever_the_threads(loss, monkeypatch):
    given, found = classified(m=40_000, n=40_000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        model = NonConvexAdaptation(epsilon=1.0, steps=4, loss=loss, discrepancy=0.0, lambda_2=0.1)
        found.append(model.fit(*given, random_state=5).coef_)
    np.testing.assert_array_equal(*found)


def arrays_in(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(each)
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value))


def test_nothing_of_any_record_is_kept():
    model = NonConvexAdaptation(epsilon=1.0, steps=3, lambda_2=0.1).fit(*classified())
    assert [each.shape for each in arrays_in(model)] == [(3,)]
    assert set(vars(model)) - set(model.get_params()) == {
        "coef_", "alpha_", "discrepancy_", "noise_", "gradient_mapping_", "record_",
        "feature_names_in_",
    }  # fmt: skip
    assert len(pickle.dumps(model)) < 2500


def test_the_reverse_scenario_protects_the_source():
    model = NonConvexAdaptation(epsilon=1.0, steps=3, private="source", alpha=0.3, discrepancy=0.1)
    model.fit(*classified())
    multiple = math.sqrt(3) / accounting.gaussian_mu(1.0, 1e-6)
    assert model.noise_ == pytest.approx(2 * 0.3 / 40 * multiple, rel=1e-3)


def test_private_rows_are_shrunk_and_public_ones_refused():
    Xs, ys, Xt, yt = classified()
    settings = {"epsilon": 1.0, "steps": 3, "alpha": 0.5}
    long = [
        NonConvexAdaptation(**settings).fit(Xs, ys, k * Xt, yt, random_state=2).coef_
        for k in (1e3, 1e6)
    ]
    np.testing.assert_allclose(*long, atol=1e-6)
    with pytest.raises(ParameterError, match="X_source"):
        NonConvexAdaptation(**settings).fit(1e3 * Xs, ys, Xt, yt, random_state=2)


CALLED = {"loss": logistic, "start": [0.0] * 3, "loss_bounds": (2, 1, 0.25), "discrepancy": 0.1}


@each_case(
    ("change", "said"),
    [
        ({"loss": "hinge"}, "loss"),
        ({"loss": "softmax"}, "discrepancy = None"),
        ({"loss": "softmax", "classes": 1, "discrepancy": 0.1}, "classes"),
        ({"iterate": "best"}, "iterate"),
        ({"lambda_1": 0}, "lambda_1"),
        ({"lambda_2": -1}, "lambda_2"),
        ({"lambda_inf": math.nan}, "lambda_inf"),
        ({"mu": 0}, "mu"),
        ({"mu": 1e6}, "mu"),
        ({"steps": 0}, "steps"),
        ({"alpha": 1}, "alpha"),
        ({"discrepancy": -1}, "discrepancy"),
        ({"private": None}, "private = None, but it must be one of target, source"),
        ({"epsilon": math.inf}, "only a private run"),
        ({"epsilon": 1e-12, "delta": 1e-15}, "epsilon"),
        ({"epsilon": 1e-5, "delta": 1e-9, "steps": 1 << 39, "discrepancy": 0}, "too few digits"),
        ({**CALLED, "start": None}, "start"),
        ({**CALLED, "start": [9.0] * 3}, "start"),
        ({**CALLED, "loss_bounds": None}, "loss_bounds"),
        ({**CALLED, "loss_bounds": (1, 0, 1)}, "loss_bounds"),
    ],
)
def test_bad_parameters_are_named_before_anything_is_spent(change, said):
    budget = Budget(1, 1e-3)
    settings = {"epsilon": 1.0, "delta": 1e-4, "steps": 3, **change}
    with pytest.raises(HdpFastError, match=said):
        NonConvexAdaptation(**settings).fit(*classified(), budget=budget)
    assert budget.spent == (0, 0)


def test_labels_and_shapes_of_callables_are_looked_at():
    Xs, ys, Xt, yt = classified()
    with pytest.raises(ParameterError, match="y_target"):
        NonConvexAdaptation(epsilon=1.0).fit(Xs, ys, Xt, yt + 1)
    with pytest.raises(ParameterError, match="y_source"):
        NonConvexAdaptation(epsilon=1.0, loss="softmax", discrepancy=0.1).fit(Xs, ys + 5, Xt, yt)
    wrong = {**CALLED, "loss": lambda w, X, y: (y, X[:, :1])}
    with pytest.raises(ShapeError, match="gradients"):
        NonConvexAdaptation(epsilon=1.0, **wrong).fit(Xs, ys, Xt, yt)
    with pytest.raises(HdpFastError, match="call fit first"):
        NonConvexAdaptation(epsilon=1.0).predict(Xt)
    model = NonConvexAdaptation(epsilon=1.0, steps=2, **CALLED).fit(Xs, ys, Xt, yt)
    with pytest.raises(HdpFastError, match="no scores"):
        model.predict(Xt)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (0, 1), (1, 0)])
def test_none_and_one_record(m, n):
    Xs, ys, Xt, yt = classified()
    model = NonConvexAdaptation(epsilon=1.0, steps=2)
    if m and n:
        assert np.isfinite(model.fit(Xs[:m], ys[:m], Xt[:n], yt[:n]).coef_).all()
    else:
        with pytest.raises(ShapeError):
            model.fit(Xs[:m], ys[:m], Xt[:n], yt[:n])
