"""Tests of the private module adaptation.tuning: selection beside the exact law of the best."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from hdp_fast.adaptation import (
    ConvexAdaptation,
    KernelMeanMatching,
    NonConvexAdaptation,
    selection_epsilon,
    tune,
    tuning,
)
from hdp_fast.adaptation.privacy import Privacy
from hdp_fast.adaptation.tuning import _calibrate_trial, _score, _Split
from hdp_fast.budget import Budget
from hdp_fast.data.goal import Goal
from hdp_fast.exceptions import BudgetExceeded, HdpFastError

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")


def data(m=300, n=400, d=3):
    rng = np.random.default_rng(0)
    w, found = np.array([0.8, -0.5, 0.3]), []
    for k, sign in ((m, -1), (n, 1)):
        X = rng.normal(size=(k, d))
        X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
        found += [X, np.clip(sign * X @ w + 0.05 * rng.normal(size=k), -1, 1)]
    return found


def exact_epsilon(rho, trials, delta):
    """Of the greatest of K Gaussian values whose mean a neighbor moves by 1, each rho-zCDP.

    The generating function of K turns the distribution function of a trial into that of the best.
    """
    sigma = 1 / math.sqrt(2 * rho)
    x = np.linspace(-12 * sigma, 1 + 12 * sigma, 400_001)

    def best(mean):
        # 1 - F(best) = S / (g + (1 - g) S): no digits are lost in either tail.
        one, other = norm.cdf(x, mean, sigma), norm.sf(x, mean, sigma)
        g = 1 / trials
        return np.where(one < 0.5, np.diff(g * one / (1 - (1 - g) * one), prepend=0),
                        -np.diff(other / (g + (1 - g) * other), prepend=1))  # fmt: skip

    pair = best(0.0), best(1.0)

    def failing(epsilon):
        one, other = pair
        return max(
            np.maximum(one - math.exp(epsilon) * other, 0).sum(),
            np.maximum(other - math.exp(epsilon) * one, 0).sum(),
        )

    return brentq(lambda epsilon: failing(epsilon) - delta, 0, 50)


@pytest.mark.parametrize("rho", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("trials", [1.5, 10, 300])
def test_the_promise_covers_the_exact_law_of_the_best(rho, trials):
    promised, exact = selection_epsilon(rho, trials=trials, delta=1e-4), exact_epsilon(
        rho, trials, 1e-4
    )  # fmt: skip
    assert exact <= promised <= 3.5 * exact


def test_the_promise_is_the_theorem_at_its_best_orders():
    rho, trials, delta = 0.02, 20.0, 1e-5
    found = math.inf
    for order in np.linspace(1.5, 60, 400):
        for second in np.linspace(1, 60, 400):
            divergence = rho * order + 2 * (1 - 1 / second) * rho * second
            divergence += 2 * math.log(trials) / second + math.log(trials) / (order - 1)
            epsilon = divergence + math.log1p(-1 / order)
            found = min(found, epsilon - math.log(delta * order) / (order - 1))
    assert selection_epsilon(rho, trials=trials, delta=delta) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_each_trial_may_spend_what_the_whole_allows(numerics):
    for epsilon, mean in ((0.3, 4.0), (2.0, 50.0)):
        each = _calibrate_trial(Privacy(Goal(epsilon, 1e-5), numerics), mean)
        rho = each.mu() ** 2 / 2
        assert selection_epsilon(rho, trials=mean, delta=1e-5) <= epsilon
        assert selection_epsilon(1.01 * rho, trials=mean, delta=1e-5) > epsilon


GRID = {"alpha": [0.02, 0.9], "radius": [1.0, 1.5]}


def test_the_better_combination_is_found_and_charged_once():
    budget = Budget(60, 1e-3)
    model = ConvexAdaptation(epsilon=50, delta=1e-4, steps=30)
    found = tune(model, GRID, *data(), random_state=1, budget=budget)
    assert budget.spent == (50, 1e-4)
    assert found.parameters["alpha"] == found.estimator.alpha_ == 0.02
    assert found.estimator.record_ == found.record
    assert (found.record.epsilon, found.record.delta) == (50, 1e-4)
    assert "8 trials on average" in found.record.mechanism
    assert found.estimator.epsilon == 50
    assert not hasattr(found.estimator, "budget")
    assert set(vars(found)) == {"estimator", "parameters", "score", "record"}
    with pytest.raises(BudgetExceeded):
        tune(model, GRID, *data(), random_state=1, budget=budget)


def test_the_number_of_trials_is_geometric(monkeypatch):
    counts, fit = [], ConvexAdaptation._fit_silently

    def counted(self, *given):
        counts[-1] += 1
        return fit(self, *given)

    monkeypatch.setattr(ConvexAdaptation, "_fit_silently", counted)
    model = ConvexAdaptation(epsilon=1.0, steps=1, alpha=0.5)
    for _ in range(150):
        counts.append(0)
        tune(model, {"kappa_1": [0.5, 1.0]}, *data(m=3, n=5), trials=3.0)
    assert min(counts) == 1
    # Deviation sqrt(6) of each; five of them.
    assert abs(np.mean(counts) - 3) < 5 * math.sqrt(6 / 150)
    assert abs(np.mean(np.array(counts) == 1) - 1 / 3) < 5 * math.sqrt(2 / 9 / 150)


def test_trials_have_the_noise_of_their_share(monkeypatch):
    spent, fit = [], ConvexAdaptation._fit_silently
    monkeypatch.setattr(
        ConvexAdaptation,
        "_fit_silently",
        lambda self, *given: spent.append(self.epsilon) or fit(self, *given),
    )
    model = ConvexAdaptation(epsilon=1.0, steps=1, alpha=0.5)
    tune(model, GRID, *data(m=3, n=5), trials=5)
    assert set(spent) == {_calibrate_trial(Privacy(Goal(1.0, 1e-6), "exact"), 5.0).goal.epsilon}


def test_scores_of_private_records_have_noise_and_others_none():
    Xs, ys, Xt, yt = data()
    model = ConvexAdaptation(epsilon=math.inf, alpha=0.5).fit(Xs, ys, Xt, yt)
    split = _Split((Xs, ys, Xt, yt), Xt, yt)
    plain = _score(model, split, None, None)
    expected = np.square(np.clip(Xt @ model.coef_, -1, 1) - yt).mean() / 4
    assert plain == pytest.approx(expected, rel=1e-9)
    noise = tuning.DescentNoise(0.0, 5.0, True, 1.0)
    drawn = [_score(model, split, noise, None) for _ in range(300)]
    assert np.std(drawn) == pytest.approx(5 / 400, rel=0.25)
    assert np.mean(drawn) == pytest.approx(plain, abs=5 * 5 / 400 / math.sqrt(300))


def test_tuning_without_privacy_says_so():
    model = ConvexAdaptation(epsilon=1.0, steps=3)
    found = tune(model, GRID, *data(), method="not_private")
    assert "NO GUARANTEE" in found.record.mechanism
    assert "NO GUARANTEE" in found.estimator.record_.mechanism
    with pytest.raises(HdpFastError, match="only private tuning"):
        tune(model, GRID, *data(), method="not_private", budget=Budget(2, 1e-3))
    plain = tune(ConvexAdaptation(epsilon=math.inf), GRID, *data())
    assert plain.record is None
    assert plain.parameters["alpha"] == 0.02


def test_classifiers_are_tuned_by_their_errors():
    Xs, ys, Xt, yt = data(n=1000)
    model = NonConvexAdaptation(epsilon=50, delta=1e-4, steps=30, radius=3.0)
    labels = (ys > 0).astype(int), (yt > 0).astype(int)
    found = tune(
        model, {"alpha": [0.02, 0.95]}, Xs, labels[0], Xt, labels[1], trials=20, random_state=0
    )
    assert found.parameters == {"alpha": 0.02}
    # With noise, hence perhaps below 0.
    assert abs(found.score) < 0.3


@pytest.mark.parametrize("private", ["source", "target"])
def test_a_seed_gives_the_same_choice(private):
    model = ConvexAdaptation(epsilon=5, steps=3, private=private)
    found = [tune(model, GRID, *data(), random_state=4) for _ in range(2)]
    assert found[0].score == found[1].score
    np.testing.assert_array_equal(*(each.estimator.coef_ for each in found))


@pytest.mark.parametrize(
    ("model", "grid", "change", "said"),
    [
        ({}, {"epsilon": [1, 2]}, {}, "epsilon"),
        ({}, {"budget": [None]}, {}, "budget"),
        ({}, {"beta": [1]}, {}, "beta"),
        ({}, {"alpha": []}, {}, "grid"),
        ({}, {"alpha": object}, {}, "grid"),
        ({}, {"alpha": 0.5}, {}, "grid"),
        ({}, {"alpha": np.array(0.5)}, {}, "grid"),
        ({}, [1], {}, "grid"),
        ({}, {"alpha": [0.5, 2]}, {}, "alpha"),
        ({}, {"radius": [1, -2]}, {}, "radius"),
        ({}, GRID, {"method": "best"}, "method"),
        ({}, GRID, {"trials": 1}, "trials"),
        ({}, GRID, {"validation": 1}, "validation"),
        ({"epsilon": 0}, GRID, {}, "epsilon"),
    ],
)
def test_bad_input_is_named_before_anything_is_spent(model, grid, change, said):
    budget = Budget(2, 1e-3)
    estimator = ConvexAdaptation(**{"epsilon": 1, **model})
    with pytest.raises(HdpFastError, match=said):
        tune(estimator, grid, *data(), budget=budget, **change)
    assert budget.spent == (0, 0)


def test_only_estimators_that_are_private_and_predict_are_tuned():
    with pytest.raises(HdpFastError, match="estimator"):
        tune(KernelMeanMatching(), {"l2": [1]}, *data())
    called = NonConvexAdaptation(epsilon=1, loss=lambda w, X, y: (y, X))
    with pytest.raises(HdpFastError, match="callable"):
        tune(called, {"alpha": [0.5]}, *data())
    Xs, ys, Xt, yt = data()
    with pytest.raises(HdpFastError, match="n at least 2"):
        tune(ConvexAdaptation(epsilon=1), GRID, Xs, ys, Xt[:1], yt[:1])
