"""Tests of the private module adaptation.tuning: no record moves a score by more than its share."""

import math

import numpy as np
import pytest
from cases import each_case

from hdp_fast.adaptation import ConvexAdaptation, NonConvexAdaptation, tune
from hdp_fast.adaptation.tuning import _losses
from hdp_fast.budget import Budget
from hdp_fast.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")

D, N, HELD = 6, 40, 10
HUGE = 1.7e308
ROWS = {
    "zero": np.zeros(D),
    "ordinary": np.full(D, 0.3),
    "beyond the bound": np.full(D, -40.0),
    "tiny": np.full(D, 5e-324),
    "huge": np.full(D, HUGE),
    "huge, both ways": HUGE * (-1.0) ** np.arange(D),
    "one huge entry": np.eye(D)[0] * HUGE,
}
LABELS = (0.0, 1.0, -1.0, 1e308, -1e308, 5e-324)
KINDS = {
    "convex": (ConvexAdaptation, {"kappa_1": [0.1, 1.0]}, lambda y: y),
    "logistic": (NonConvexAdaptation, {"lambda_1": [0.1, 1.0]}, lambda y: (y > 0).astype(int)),
}


def data(label, seed=0, m=30, n=N):
    coins = np.random.default_rng(seed)
    w = coins.normal(size=D)
    found = []
    for k in (m, n):
        X = coins.uniform(-0.3, 0.3, (k, D))
        found += [X, label(np.clip(X @ w, -1, 1))]
    return found


def fitted(kind, radius):
    estimator, _, label = KINDS[kind]
    model = estimator(epsilon=math.inf, alpha=0.5, radius=radius)
    return model.fit(*data(label)), label


@pytest.mark.filterwarnings("error", "ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("radius", [0.5, 5.0, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_no_record_moves_the_sum_of_losses_by_more_than_one(kind, radius):
    model, label = fitted(kind, radius)
    found = []
    for row in ROWS.values():
        for y in LABELS:
            found.append(_losses(model, row[None], label(np.array([y]))))
    losses = np.concatenate(found)
    assert np.isfinite(losses).all()
    assert 0 <= losses.min() <= losses.max() <= 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_records_are_judged_as_fit_projects_them(kind):
    model, _ = fitted(kind, 5.0)
    for scale in (1e3, 1e200, HUGE):
        np.testing.assert_allclose(
            model.scores(scale * np.eye(D)), model.scores(np.eye(D)), rtol=1e-12
        )


def held_out(model, grid, given, **options):
    """A place in the target that this seed judges by: where a change leaves what is learned."""
    X_target = given[2]
    before = tune(model, grid, *given, **options)
    for place in range(len(X_target)):
        other = [np.array(each) for each in given]
        other[2][place] = 0.29
        after = tune(model, grid, *other, **options)
        if np.array_equal(after.estimator.coef_, before.estimator.coef_):
            return place, before
    raise AssertionError("every record was learned from")


@pytest.mark.filterwarnings("error:invalid:RuntimeWarning", "error:overflow:RuntimeWarning")
@pytest.mark.parametrize("numerics", ["exact", "idealized"])
@pytest.mark.parametrize("private", ["target", "source"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_held_out_record_moves_the_score_by_its_share(kind, private, numerics):
    estimator, grid, label = KINDS[kind]
    model = estimator(
        epsilon=2.0, delta=1e-5, radius=5.0, steps=3, numerics=numerics, private=private
    )
    given = data(label)
    options = {"random_state": 5, "trials": 2.0, "validation": HELD / N}
    place, before = held_out(model, grid, given, **options)
    # What is public must keep the bounds.
    hostile = ROWS if private == "target" else {"ordinary": ROWS["ordinary"]}
    for row in hostile.values():
        for y in LABELS if (kind, private) == ("convex", "target") else (0.0, 1.0):
            other = [np.array(each) for each in given]
            other[2][place], other[3][place] = row, label(np.array([y]))[0]
            after = tune(model, grid, *other, **options)
            assert abs(after.score - before.score) <= 1 / HELD + 1e-6


def with_bad(given, argument, value):
    """The data with one bad entry, at a place that is judged by under some seeds only."""
    changed = [np.array(each, np.float64) for each in given]
    changed[argument][-1] = value
    return changed


@each_case("argument", range(4), ids=["X_source", "y_source", "X_target", "y_target"])
@each_case("value", [math.nan, math.inf])
@each_case("private", ["target", "source"])
@each_case("method", ["private_selection", "not_private"])
def test_what_is_not_finite_is_refused_before_the_split(argument, value, private, method):
    domain = "source" if argument < 2 else "target"
    for seed in range(3):
        budget = None if method == "not_private" else Budget(9, 1e-3)
        coins = np.random.default_rng(seed)
        model = ConvexAdaptation(
            epsilon=2.0,
            steps=1,
            private=private,
        )
        given = with_bad(data(lambda y: y), argument, value)
        with pytest.raises(ParameterError, match=domain):
            tune(model, {"alpha": [0.5]}, *given, method=method, random_state=coins, budget=budget)
        assert budget is None or budget.records == ()
        assert coins.random() == np.random.default_rng(seed).random()


@pytest.mark.parametrize("y", [2, -1])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_labels_of_classes_are_refused_before_the_split(loss, y):
    _, _, label = KINDS["logistic"]
    for seed in range(4):
        budget = Budget(9, 1e-3)
        model = NonConvexAdaptation(
            epsilon=2.0,
            loss=loss,
            discrepancy=0.1,
            steps=1,
        )
        given = data(label)
        given[3][0] = y
        with pytest.raises(ParameterError, match="y_target"):
            tune(model, {"alpha": [0.5]}, *given, random_state=seed, budget=budget)
        assert budget.records == ()


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"norm_bound": [1.0, 0.1]}, "X_source"),
        ({"mu": [1.0, 9_000.0]}, "mu"),
        ({"loss": ["logistic", lambda w, X, y: (y, X)]}, "callable"),
        ({"classes": [2, 3], "loss": ["logistic", "softmax"]}, "discrepancy"),
    ],
)
def test_a_combination_that_its_data_refuse_spends_nothing(grid, said):
    budget = Budget(9, 1e-3)
    model = NonConvexAdaptation(epsilon=2.0, steps=1)
    with pytest.raises(ParameterError, match=said):
        tune(model, grid, *data(KINDS["logistic"][2]), budget=budget)
    assert budget.records == ()


def test_a_private_source_is_mapped_a_record_at_a_time_and_once():
    seen = []

    def doubled(X):
        seen.append(len(X))
        return 2 * X

    given = data(lambda y: y)
    model = ConvexAdaptation(epsilon=9.0, steps=1, private="source", feature_map=doubled)
    found = tune(model, {"alpha": [0.3, 0.5]}, *given, trials=4.0)
    assert set(seen) == {1}
    assert len(seen) <= len(given[0]) + 1
    assert found.estimator.feature_map is doubled
