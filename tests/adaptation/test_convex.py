"""Convex adaptation: the printed steps, records beyond their bounds, budgets and bad parameters."""

import math
import pickle

import numpy as np
import pytest
from adaptation_problems import fit, problem
from cases import each_case

from hdp_fast import accounting
from hdp_fast.adaptation import ConvexAdaptation
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded, HdpFastError, ParameterError, ShapeError
from hdp_fast.reference import adaptation as reference

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def test_much_epsilon_comes_near_the_optimum_and_less_does_not():
    data = problem(7, m=3000, n=3000)
    settings = {"delta": 1e-5, "alpha": 0.3, "radius": 2.0}
    best = ConvexAdaptation(**{**settings, "epsilon": math.inf}).fit(*data)
    away = {
        epsilon: np.linalg.norm(model.fit(*data, random_state=1).coef_ - best.coef_)
        for epsilon in (0.01, 50.0)
        for model in [ConvexAdaptation(epsilon=epsilon, **settings)]
    }
    assert away[50.0] < 0.05 < away[0.01]


def test_the_paper_variant_takes_the_printed_steps():
    data, kappas = problem(9), (0.5, 0.3, 0.2)
    names = dict(zip(("kappa_1", "kappa_2", "kappa_inf"), kappas, strict=True))
    settings = {"alpha": 0.4, "radius": 1.5, "steps": 40, "variant": "paper", **names}
    found = ConvexAdaptation(epsilon=math.inf, **settings).fit(*data)
    source, target = data[:2], data[2:]
    bounds = {"alpha": 0.4, "radius": 1.5, "norm_bound": 1.0, "penalties": kappas}
    sizes = reference.squared_sizes(source, target, **bounds)
    expected = reference.adapt_convex(
        *(source, target, sizes),
        **{"steps": 40, "discrepancy": found.discrepancy_, "epsilon": math.inf, "delta": 0.01},
        rng=np.random.default_rng(0),
    )
    np.testing.assert_allclose(found.coef_, expected.w, atol=1e-10)
    assert expected.guarantee is None


def test_beyond_the_bounds_private_records_are_projected_and_public_ones_refused():
    Xs, ys, Xt, yt = problem()
    beyond, loud = 5 * Xt, yt.copy()
    loud[0] = 7
    settings = {"epsilon": 1.0, "alpha": 0.5, "steps": 5}
    shrunk = beyond / np.maximum(np.linalg.norm(beyond, axis=1), 1)[:, None]
    found = [
        ConvexAdaptation(**settings).fit(Xs, ys, X, y, random_state=3).coef_
        for X, y in ((beyond, loud), (shrunk, np.clip(loud, -1, 1)))
    ]
    np.testing.assert_allclose(*found, atol=1e-4)
    for nobody in ({"private": "source", "epsilon": 1}, {"epsilon": math.inf}):
        with pytest.raises(ParameterError, match="X_target"):
            ConvexAdaptation(**nobody).fit(Xs, ys, beyond, yt)
    with pytest.raises(ParameterError, match="X_source"):
        ConvexAdaptation(epsilon=math.inf, private="source").fit(5 * Xs, ys, Xt, yt)
    with pytest.raises(ParameterError, match="y_source"):
        ConvexAdaptation(**settings).fit(Xs, 3 * np.ones(60), Xt, yt, random_state=3)


def test_the_reverse_scenario_protects_the_source():
    Xs, ys, Xt, yt = problem(4, m=4000, n=300)
    settings = {"epsilon": 1.0, "delta": 1e-5, "alpha": 0.6, "private": "source"}
    settings["kappa_1"] = 1.0
    model = ConvexAdaptation(**settings).fit(5 * Xs, ys, Xt, yt, random_state=0)
    shrunk = 5 * Xs / np.maximum(np.linalg.norm(5 * Xs, axis=1), 1)[:, None]
    best = ConvexAdaptation(**{**settings, "epsilon": math.inf}).fit(shrunk, ys, Xt, yt)
    multiple = math.sqrt(1 / 0.95) / accounting.gaussian_mu(1.0, 1e-5)
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
    settings = {"epsilon": 1.0, "steps": 5, "private": private}
    mapped = ConvexAdaptation(feature_map=lift, **settings).fit(Xs, ys, wide, yt, random_state=1)
    plain = ConvexAdaptation(**settings).fit(lift(Xs), ys, wide, yt, random_state=1)
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
        model = ConvexAdaptation(epsilon=1.0, steps=4, variant=variant)
        found.append(model.fit(*data, random_state=5).coef_)
    np.testing.assert_array_equal(*found)
    other = ConvexAdaptation(epsilon=1.0, steps=4, variant=variant).fit(*data, random_state=6)
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
        "coef_", "alpha_", "discrepancy_", "noise_", "record_", "feature_names_in_",
    }  # fmt: skip
    assert len(pickle.dumps(model)) < 2500
    assert "array" not in repr(model)


def test_the_budget_is_charged_once_and_nothing_is_half_written():
    data, budget = problem(), Budget(1.5, 1e-3)
    settings = {"epsilon": 1.0, "delta": 1e-4, "steps": 3}
    model = ConvexAdaptation(**settings).fit(*data, budget=budget)
    assert budget.spent == (1.0, 1e-4)
    before = dict(vars(model))
    with pytest.raises(BudgetExceeded):
        model.fit(*data, budget=budget)
    assert vars(model) == before
    fresh = ConvexAdaptation(**settings)
    with pytest.raises(BudgetExceeded):
        fresh.fit(*data, budget=budget)
    assert not hasattr(fresh, "coef_")
    with pytest.raises(HdpFastError, match="call fit first"):
        fresh.predict(data[0])
    with pytest.raises(ParameterError, match="only a private run"):
        ConvexAdaptation(epsilon=math.inf).fit(*data, budget=budget)


@each_case(
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
        ({"private": None}, "private = None, but it must be one of target, source"),
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
        fit(ConvexAdaptation, settings, problem())
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
    model = ConvexAdaptation(epsilon=1.0)
    again = ConvexAdaptation(**model.get_params())
    assert again.get_params() == model.get_params()
    # What a call is told is no setting, and is not kept.
    assert not {"budget", "random_state"} & model.get_params().keys()
    with pytest.raises(ParameterError, match="no 'kappa'"):
        model.set_params(kappa=1)


def test_predictions_are_of_rows_within_the_bound():
    model = ConvexAdaptation(epsilon=math.inf, radius=2.0).fit(*problem())
    x = np.array([[3.0, 4.0, 0.0], [0.1, 0.0, 0.2]])
    expected = np.array([[0.6, 0.8, 0.0], [0.1, 0.0, 0.2]]) @ model.coef_
    np.testing.assert_allclose(model.predict(x), expected)
