"""Non-convex adaptation against finite differences, other implementations and hostile callables."""

import itertools
import math
import pickle

import numpy as np
import pytest

from hdp_fast.adaptation import NonConvexAdaptation, discrepancy, nonconvex_run
from hdp_fast.adaptation.discrepancies.moments import Sample
from hdp_fast.adaptation.nonconvex_descent import (
    Bends,
    Called,
    Linear,
    Penalties,
    Problem,
    State,
    longest,
    objective,
    step,
    total,
)
from hdp_fast.adaptation.objective import PrivatePart
from hdp_fast.adaptation.privacy import Noise, Privacy
from hdp_fast.adaptation.problem import Rows, Shape
from hdp_fast.adaptation.projected_steps import Steps, along
from hdp_fast.adaptation.solver import moments
from hdp_fast.budget import Budget
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")

PENALTIES = [
    Penalties(0.3, 0.0, 0.0, 1.0),
    Penalties(0.6, 0.4, 0.0, 1.0),
    Penalties(0.6, 0.0, 0.5, 30.0),
    Penalties(0.9, 0.2, 0.3, 100.0),
]


def logistic(w, X, y):
    away = y * (X @ w)
    return np.logaddexp(0, -away), (-y * np.exp(-np.logaddexp(0, away)))[:, None] * X


def data(seed=0, m=40, n=30, d=3, classes=2):
    rng = np.random.default_rng(seed)
    w, found = rng.normal(size=(classes, d)), []
    for k in (m, n):
        X = rng.normal(size=(k, d))
        X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
        found += [X, (X @ w.T + 0.1 * rng.normal(size=(k, classes))).argmax(axis=1)]
    return found


def states(penalized=True, seed=0):
    Xs, ys, Xt, yt = data(seed)
    bends = Bends(2.0, 1.0, 0.25)
    return [
        State.new(Called(logistic, Rows(X, 2.0 * y - 1, 1.0), bends, None, None), cap, offset)
        for X, y, cap, offset in ((Xs, ys, 0.4 / 40, 0.1), (Xt, yt, 0.6 / 30, 0.0))
    ]


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_steps_go_against_finite_differences(penalties):
    both, problem = states(), Problem(Bends(2.0, 1.0, 0.25), penalties, 10.0)
    rng, h = np.random.default_rng(1), 1e-6
    for state in both:
        state.v = 1 + rng.random(len(state.v))
    w = rng.normal(size=3)
    slopes = [
        (objective(both, w + h * e, problem) - objective(both, w - h * e, problem)) / (2 * h)
        for e in np.eye(3)
    ]
    in_v = []
    for state, i in itertools.product(both, (0, 7)):
        values = []
        for sign in (1, -1):
            state.v[i] += sign * h
            values.append(objective(both, w, problem))
            state.v[i] -= sign * h
        in_v.append((values[0] - values[1]) / (2 * h))
    before = [state.v.copy() for state in both]
    moved = step(both, w, problem, Steps.of_length(0.01, 100.0, 3))
    np.testing.assert_allclose((w - moved.w) / 0.01, slopes, atol=1e-6)
    changes = [before[k][i] - both[k].v[i] for k, i in itertools.product((0, 1), (0, 7))]
    paces = np.array(changes) / in_v
    # Down the derivative of each weight, all those of a domain by the same step.
    np.testing.assert_allclose([paces[1], paces[3]], [paces[0], paces[2]], rtol=1e-4)
    assert (paces > 0).all()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_no_step_without_noise_raises_the_objective(penalties, scaled):
    for seed in range(5):
        both, problem = states(seed=seed), Problem(Bends(2.0, 1.0, 0.25), penalties, 1.5)
        w = np.random.default_rng(seed).normal(size=3)
        w *= min(1.0, 1.5 / np.linalg.norm(w))
        value, first, last = objective(both, w, problem), None, None
        found = sum(moments(state.domain.rows, state.cap) for state in both)
        path = along(found / 2, 1.5) if scaled else longest(problem, 3)
        for _ in range(300):
            w, mapping = step(both, w, problem, path)
            lower = objective(both, w, problem)
            assert lower <= value + 1e-13
            value, first, last = lower, first or mapping, mapping
        assert last < 0.05 * first


def test_a_callable_is_the_same_loss_as_the_compiled_one(monkeypatch):
    def alike(settings, problem, states, size):
        return longest(problem, size)

    # Nobody knows in which directions a callable bends: its steps are alike in all.
    monkeypatch.setattr(nonconvex_run, "_path", alike)
    Xs, ys, Xt, yt = data()
    settings = {"epsilon": math.inf, "alpha": 0.4, "steps": 50, "radius": 3.0, "iterate": "last"}
    settings |= {"discrepancy": 0.2, "lambda_2": 0.1}
    ours = NonConvexAdaptation(**settings).fit(Xs, ys, Xt, yt)
    largest = float(np.logaddexp(0, 3.0))
    other = NonConvexAdaptation(
        **settings, loss=logistic, start=np.zeros(3), bends=(largest, 1, 0.25)
    ).fit(Xs, 2 * ys - 1, Xt, 2 * yt - 1)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-9)
    assert ours.gradient_mapping_ == pytest.approx(other.gradient_mapping_, rel=1e-6)
    assert (ours.predict(Xt) == yt).mean() > 0.85


def test_softmax_of_two_classes_is_logistic_and_three_are_told_apart():
    Xs, ys, Xt, yt = data(m=300, n=200)
    settings = {"epsilon": math.inf, "steps": 400, "radius": 5.0, "discrepancy": 0.0}
    settings |= {"alpha": 0.5, "iterate": "last"}
    two = NonConvexAdaptation(**settings, loss="softmax").fit(Xs, ys, Xt, yt)
    one = NonConvexAdaptation(**settings).fit(Xs, ys, Xt, yt)
    assert two.coef_.shape == (2, 3)
    assert (two.predict(Xt) == one.predict(Xt)).mean() > 0.97
    Xs, ys, Xt, yt = data(m=300, n=200, classes=3)
    three = NonConvexAdaptation(**settings, loss="softmax", classes=3).fit(Xs, ys, Xt, yt)
    assert three.scores(Xt).shape == (200, 3)
    assert (three.predict(Xt) == yt).mean() > 0.85


def test_the_stand_in_for_a_discrepancy_is_cut_at_the_largest_loss():
    Xs, ys, Xt, yt = data()
    for radius in (0.2, 20.0):
        found = NonConvexAdaptation(epsilon=math.inf, radius=radius, steps=2).fit(Xs, ys, Xt, yt)
        squared = discrepancy(Xs, 2 * ys - 1, Xt, 2 * yt - 1, radius=radius).value
        largest = math.log1p(math.exp(radius))
        assert found.discrepancy_ == pytest.approx(min(squared, largest), rel=1e-9)


def test_records_of_great_loss_lose_their_weight():
    both, problem = states(), Problem(Bends(2.0, 1.0, 0.25), Penalties(0.3, 0, 0, 1), 5.0)
    w = np.zeros(3)
    for _ in range(3000):
        w, _ = step(both, w, problem, longest(problem, 3))
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
    noise, bends = Noise(0.1, 1e-9 if not exact else 2.0, exact, 1.0), Bends(2.0, 1.5, 1.0)
    q, found = np.full(5, 0.1), []
    for label in (1.0, -1.0):
        y = np.array([label, 1, -1, 1, 1])
        domain = Called(hostile(kind), Rows(np.ones((5, 2)), y, 1.0), bends, None, None)
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
    noise, bends = Noise(0.1, 4.0, True, 1.0), Bends(2.0, 1.0, 0.25)
    domain = Called(logistic, Rows(X, y, 1.0), bends, noise, np.random.default_rng(1))
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
    Xs, ys, _, _ = data(classes=classes)
    noise = Noise(0.1, 3.0, True, 1.0)
    part = PrivatePart.of(Sample("target", Xs, ys.astype(float)), Shape(1, 1, 9).bounds, noise)
    rows = part.rows._replace(loss="softmax")
    domain = Linear(part._replace(rows=rows, classes=classes), math.sqrt(2))
    w, q = np.full(3 * classes, 0.2), np.full(40, 0.01)
    open_part = domain.part._replace(noise=None, grid=None)
    plain = domain._replace(part=open_part).evaluate(w, q, 0.01)[1]
    drawn = np.array([domain.evaluate(w, q, 0.01)[1] for _ in range(300)]) - plain
    assert domain.deviation(0.01) == pytest.approx(3 * 2 * math.sqrt(2) * 0.01, rel=1e-3)
    assert drawn.std() == pytest.approx(domain.deviation(0.01), rel=0.1)


def test_sums_that_couple_weights_have_noise_for_their_share():
    values = np.random.default_rng(0).random(500)
    for exact in (True, False):
        noise = Noise(0.1, 2.0, exact, 1.0)
        drawn = [total(values, noise, 1 / 16, None) for _ in range(400)]
        # A record moves the sum by 1; the noise is 4 times that of a gradient.
        assert np.std(drawn) == pytest.approx(8, rel=0.15)
        assert abs(np.mean(drawn) - values.sum()) < 5 * 8 / 20
    assert total(values, None, 1 / 16, None) == pytest.approx(values.sum())


@pytest.mark.parametrize("couplings", [0, 1, 2])
def test_noise_leaves_room_for_all_that_a_step_releases(couplings):
    settings = {"lambda_2": 0.1 * (couplings > 0), "lambda_inf": 0.1 * (couplings > 1)}
    model = NonConvexAdaptation(
        epsilon=1.0, delta=1e-5, alpha=0.5, steps=6, discrepancy=0.1, **settings
    )
    model.fit(*data())
    # Without a discrepancy to release, all is for the steps: one gradient and sums of a 16th.
    multiple = math.sqrt(6 * (1 + couplings / 16)) / Privacy(1.0, 1e-5, "exact").mu()
    assert model.noise_ == pytest.approx(2 * 0.5 / 30 * multiple, rel=1e-3)
    assert (model.record_.epsilon, model.gradient_mapping_) == (1.0, None)


def test_the_iterate_is_uniform(monkeypatch):
    counted = []
    monkeypatch.setattr(nonconvex_run, "step", lambda *given: counted.append(given) or step(*given))
    # Steps for the public records alone.
    numbers, before = [], 100
    for seed in range(200):
        counted.clear()
        NonConvexAdaptation(epsilon=1.0, steps=3, random_state=seed).fit(*data(m=3, n=3))
        numbers.append(len(counted) - before)
    counts = np.bincount(numbers, minlength=4)
    assert counts[0] == 0
    assert counts[1:].sum() == 200
    assert (abs(counts[1:] - 200 / 3) < 35).all()
    counted.clear()
    NonConvexAdaptation(epsilon=1.0, steps=3, iterate="last").fit(*data(m=3, n=3))
    assert len(counted) == before + 3


def test_steps_arrive_where_the_target_has_a_column_of_its_own():
    """As categories that the source has not; a large ball must not make steps too long."""
    rng = np.random.default_rng(0)
    w, (X, Z) = np.array([6.0, -6.0, 6.0]), (rng.uniform(-0.5, 0.5, (n, 3)) for n in (2000, 20_000))
    X[:, 2] = 0
    ys, yt = ((rows @ w + rng.logistic(size=len(rows)) > 0).astype(np.uint8) for rows in (X, Z))
    given = {"alpha": 0.5, "radius": 64.0, "lambda_1": 1e6, "discrepancy": 0.0, "iterate": "last"}
    best = NonConvexAdaptation(epsilon=math.inf, steps=300, **given).fit(X, ys, Z, yt)
    settings = {"steps": 50, "reach": 6.0, "random_state": 0, "delta": 1e-5, **given}
    found = NonConvexAdaptation(epsilon=20.0, **settings).fit(X, ys, Z, yt)
    assert np.linalg.norm(found.coef_ - best.coef_) < 0.5


def test_much_epsilon_comes_near_what_no_noise_gives():
    given = data(m=2000, n=2000)
    settings = {"delta": 1e-5, "alpha": 0.3, "radius": 3.0, "steps": 60, "iterate": "last"}
    plain = NonConvexAdaptation(epsilon=math.inf, **settings).fit(*given)
    noisy = NonConvexAdaptation(epsilon=100.0, random_state=1, **settings).fit(*given)
    coarse = NonConvexAdaptation(epsilon=0.01, random_state=1, **settings).fit(*given)
    assert np.linalg.norm(noisy.coef_ - plain.coef_) < 0.3
    assert np.linalg.norm(coarse.coef_ - plain.coef_) > 0.3


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_seed_gives_the_same_whatever_the_threads(loss, monkeypatch):
    given, found = data(m=40_000, n=40_000), []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        model = NonConvexAdaptation(
            epsilon=1.0, steps=4, loss=loss, discrepancy=0.0, lambda_2=0.1, random_state=5
        )
        found.append(model.fit(*given).coef_)
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
    model = NonConvexAdaptation(epsilon=1.0, steps=3, lambda_2=0.1).fit(*data())
    assert [each.shape for each in arrays_in(model)] == [(3,)]
    assert set(vars(model)) - set(model.get_params()) == {
        "coef_", "alpha_", "discrepancy_", "noise_", "gradient_mapping_", "record_",
    }  # fmt: skip
    assert len(pickle.dumps(model)) < 2500


def test_the_reverse_scenario_protects_the_source():
    model = NonConvexAdaptation(epsilon=1.0, steps=3, private="source", alpha=0.3, discrepancy=0.1)
    model.fit(*data())
    multiple = math.sqrt(3) / Privacy(1.0, 1e-6, "exact").mu()
    assert model.noise_ == pytest.approx(2 * 0.3 / 40 * multiple, rel=1e-3)


def test_private_rows_are_shrunk_and_public_ones_refused():
    Xs, ys, Xt, yt = data()
    settings = {"epsilon": 1.0, "steps": 3, "random_state": 2, "alpha": 0.5}
    long = [NonConvexAdaptation(**settings).fit(Xs, ys, k * Xt, yt).coef_ for k in (1e3, 1e6)]
    np.testing.assert_allclose(*long, atol=1e-6)
    with pytest.raises(ParameterError, match="X_source"):
        NonConvexAdaptation(**settings).fit(1e3 * Xs, ys, Xt, yt)


CALLED = {"loss": logistic, "start": [0.0] * 3, "bends": (2, 1, 0.25), "discrepancy": 0.1}


@pytest.mark.parametrize(
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
        ({"private": None}, "protects nobody"),
        ({"epsilon": math.inf}, "only a private run"),
        ({"epsilon": 1e-12, "delta": 1e-15}, "epsilon"),
        ({"epsilon": 1e-5, "delta": 1e-9, "steps": 1 << 39, "discrepancy": 0}, "too few digits"),
        ({**CALLED, "start": None}, "start"),
        ({**CALLED, "start": [9.0] * 3}, "start"),
        ({**CALLED, "bends": None}, "bends"),
        ({**CALLED, "bends": (1, 0, 1)}, "bends"),
    ],
)
def test_bad_parameters_are_named_before_anything_is_spent(change, said):
    budget = Budget(1, 1e-3)
    settings = {"epsilon": 1.0, "delta": 1e-4, "steps": 3, "budget": budget, **change}
    with pytest.raises(HdpFastError, match=said):
        NonConvexAdaptation(**settings).fit(*data())
    assert budget.spent == (0, 0)


def test_labels_and_shapes_of_callables_are_looked_at():
    Xs, ys, Xt, yt = data()
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
    Xs, ys, Xt, yt = data()
    model = NonConvexAdaptation(epsilon=1.0, steps=2)
    if m and n:
        assert np.isfinite(model.fit(Xs[:m], ys[:m], Xt[:n], yt[:n]).coef_).all()
    else:
        with pytest.raises(ShapeError):
            model.fit(Xs[:m], ys[:m], Xt[:n], yt[:n])
