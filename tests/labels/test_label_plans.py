"""Numbers of queries, bins, members and records that are planned before any training."""

import functools
import math
import warnings

import numpy as np
import pytest
from cases import each_case
from scipy import stats

from hdp_fast.exceptions import ParameterError, UtilityWarning
from hdp_fast.labels import (
    PrivateLabeler,
    pac_sample_size,
    plan_answers,
    plan_learning,
    sgd_stability,
    soft_bins,
    unstable_queries,
)


@each_case("queries", [1, 30, 1000, 100_000])
@each_case("error", [0.0, 0.001, 0.1, 0.3])
@each_case("share", [1 / 3, 0.45])
def test_unstable_queries_are_the_tail_of_a_binomial(queries, error, share):
    most = unstable_queries(queries, error=error, beta=0.05, share=share)
    tail = stats.binom(queries, error / share).sf
    assert tail(most - 1) <= 0.05
    assert most == 1 or tail(most - 2) > 0.05
    printed = 3 * (error * queries + math.sqrt(queries * math.log(queries / 0.05) / 2))
    assert share != 1 / 3 or printed + 1 >= most


def test_members_that_err_independently_leave_few_queries_unstable():
    """Many runs of 25 members who are wrong on 4 of 40 queries each, wherever they like."""
    most = unstable_queries(40, error=0.1, beta=0.05)
    rng = np.random.default_rng(8)
    wrong = rng.random((400, 40, 25)) < 0.1
    hard = rng.random((400, 40, 1)) < 0.1 / 0.34
    # Mistakes that gather on few queries, more than a third of the members on each, are the worst.
    together = hard & (np.arange(25) < 9)
    for mistakes in (wrong, together):
        assert mistakes.mean() < 0.12
        unstable = (mistakes.sum(axis=2) > 25 / 3).sum(axis=1)
        assert np.mean(unstable >= most) < 0.1
    assert np.mean((together.sum(axis=2) > 25 / 3).sum(axis=1) >= most - 3) > 0.1


def test_bins_are_wide_enough_for_the_scores_of_a_stable_learner():
    """The mean of 500 bits, whose stability is known, lies in one bin for three of four members."""
    n, p = 500, 0.4
    bins = soft_bins(math.sqrt(2 * p * (1 - p)) / n, n)
    assert bins == math.floor(1 / (4 * 2 * math.sqrt(p * (1 - p) / n)))
    means = np.random.default_rng(9).binomial(n, p, 4000) / n
    plain = np.bincount((means * bins).astype(int)).max()
    shifted = np.bincount((means * bins + 0.5).astype(int)).max()
    assert max(plain, shifted) > 0.75 * 4000
    assert soft_bins(0.0, 10) == 65_536
    assert soft_bins(0.001, 50, quality=0.1) == math.floor(1 / (0.1 + 0.01))


def descend(points, *, passes, step_size, penalty, gradient, batch_size, orders):
    """Weights by SGD with a penalty, one order for each pass."""
    weights = np.zeros(points.shape[1])
    for order in orders[:passes]:
        for start in range(0, len(order), batch_size):
            batch = points[order[start : start + batch_size]]
            step = gradient(weights, batch).sum(axis=0) / batch_size + penalty * weights
            weights = weights - step_size * step
    return weights


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_stability_of_sgd_is_reached_by_linear_losses(penalty, batch):
    """Gradients of 1 and -1 in one dimension move weights apart as far as anything does."""
    n, passes, eta = 12, 3, 0.2
    points, orders = np.ones((n, 1)), [np.arange(n)] * passes
    settings = {"passes": passes, "step_size": eta, "batch_size": batch}
    run = functools.partial(
        descend, penalty=penalty, gradient=lambda w, x: x, orders=orders, **settings
    )
    squares = []
    for j in range(n):
        other = points.copy()
        other[j] = -1
        squares.append((run(points) - run(other)) ** 2)
    bound = sgd_stability(
        chunk=n, clip_norm=1, smoothness=penalty or 1e-9, strong_convexity=penalty, **settings
    )
    assert bound == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_sgd_on_a_logistic_loss_is_at_least_as_stable_as_promised(penalty):
    n, passes, eta, batch = 10, 4, 1.5, 3
    rng = np.random.default_rng(10)
    orders = [rng.permutation(n) for _ in range(passes)]

    def gradient(weights, signed):
        return -signed / (1 + np.exp(signed @ weights))[:, None]

    run = functools.partial(
        descend,
        passes=passes,
        step_size=eta,
        penalty=penalty,
        gradient=gradient,
        batch_size=batch,
        orders=orders,
    )
    query, squares = np.array([0.6, 0.8]), []
    for _ in range(40):
        points, fresh = (
            rows / np.linalg.norm(rows, axis=1)[:, None]
            for rows in (rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))
        )
        for j in range(n):
            other = points.copy()
            other[j] = fresh[j]
            scores = [1 / (1 + np.exp(-run(rows) @ query)) for rows in (points, other)]
            squares.append((scores[0] - scores[1]) ** 2)
    bound = sgd_stability(
        passes,
        n,
        step_size=eta,
        clip_norm=1,
        smoothness=0.25 + penalty,
        strong_convexity=penalty,
        batch_size=batch,
        slope=0.25,
    )
    assert 0.02 * bound < math.sqrt(np.mean(squares)) < bound


def test_one_pass_of_short_steps_lets_members_agree_on_many_bins():
    """Steps of 1 / n': a = 1 / (2 n'), and bins of width 4 a sqrt(2 n')."""
    a = sgd_stability(1, 10_000, step_size=1e-4, clip_norm=1, smoothness=0.25, slope=0.25)
    assert a == pytest.approx(0.5e-4)
    assert soft_bins(a, 10_000) == math.floor(1 / (2 * math.sqrt(2) / 100))


@each_case(
    ("call", "rule"),
    [
        (
            lambda: sgd_stability(1, 9, step_size=9, clip_norm=1, smoothness=1),
            "step_size = 9, but it must be at most 2 / .smoothness",
        ),
        (
            lambda: sgd_stability(1, 9, step_size=1, clip_norm=1, smoothness=1, strong_convexity=2),
            "strong_convexity = 2",
        ),
        (lambda: sgd_stability(0, 9, step_size=1, clip_norm=1, smoothness=1), "passes = 0"),
        (
            lambda: sgd_stability(1, 9, step_size=1, clip_norm=1, smoothness=1, batch_size=10),
            "batch_size = 10",
        ),
        (lambda: unstable_queries(0, error=0.1), "queries = 0"),
        (lambda: unstable_queries(9, error=0.4), "error = 0.4, but it must be below share"),
        (lambda: unstable_queries(9, error=-1), "error = -1"),
        (lambda: unstable_queries(9, error=0.1, share=0.5), "share = 0.5"),
        (lambda: unstable_queries(9, error=0.1, beta=0), "beta = 0"),
        (lambda: soft_bins(1, 10), "stability = 1, but it must let members agree"),
        (lambda: soft_bins(-1, 10), "stability = -1"),
        (lambda: soft_bins(0.1, -1), "chunk = -1"),
        (lambda: soft_bins(0.1, 1, quality=1), "quality = 1"),
        (lambda: soft_bins(0.1, 1, agreement=1), "agreement = 1"),
    ],
)
def test_bad_numbers_are_refused(call, rule):
    with pytest.raises(ParameterError, match=rule):
        call()


@each_case("vc", [1, 5, 100])
@each_case("alpha", [0.5, 0.05])
@each_case("beta", [0.5, 1e-9])
def test_sample_sizes_hold_the_inequalities_they_rest_on(vc, alpha, beta):
    n = pac_sample_size(vc, alpha=alpha, beta=beta, agnostic=True)
    dichotomies = vc * math.log(2 * math.e * n / vc)
    assert math.log(4) + dichotomies - alpha**2 * n / 32 <= math.log(beta)
    n = pac_sample_size(vc, alpha=alpha, beta=beta, agnostic=False)
    dichotomies = vc * math.log(2 * math.e * n / vc)
    assert math.log(2) + dichotomies - alpha * n / 2 * math.log(2) <= math.log(beta)


def threshold(X, y):
    """The least point that is labeled 1, which makes no error on the chunk."""
    least = X[y == 1, 0].min(initial=2.0)
    return lambda Q: (Q[:, 0] >= least).astype(int)


@pytest.mark.parametrize("opt", [None, 0.0])
def test_planned_answers_are_right_but_for_the_unstable_ones(opt):
    plan = plan_answers(1, 60, alpha=0.1, epsilon=8, delta=1e-6, opt=opt)
    margin = (2 * plan.table.J + 1) / (1 - 2 / 3)
    assert margin <= plan.k < margin + 1
    assert plan.max_unstable == unstable_queries(60, error=0.1, beta=0.05 / 4)
    assert plan.error == (plan.max_unstable - 1) / 60
    assert plan.n == plan.k * plan.chunk < plan.k_paper * plan.chunk / 10
    size = pac_sample_size(1, alpha=0.1, beta=0.05 / 4 / plan.k, agnostic=opt is not None)
    assert plan.chunk == size
    if opt is None:
        rng = np.random.default_rng(11)
        records, points = rng.random((plan.n, 1)), rng.random((60, 1))
        made = PrivateLabeler(
            threshold, epsilon=8, delta=1e-6, queries=60, max_unstable=plan.max_unstable,
            classes=[0, 1], members=plan.k,
        )  # fmt: skip
        answers = made.fit(records, (records[:, 0] >= 0.3).astype(int)).label(points)
        assert len(answers.labels) == 60
        assert (answers.labels != (points[:, 0] >= 0.3)).sum() < plan.max_unstable


def test_a_plan_for_more_records_than_there_are_people_says_so():
    goal = {"epsilon": 8.0, "delta": 1e-6, "opt": 0.1}
    with pytest.warns(UtilityWarning, match=r"n = 1\.\de\+1\d records, and there are 8\.3e\+09"):
        plan = plan_answers(1, 60, alpha=0.001, **goal)
    assert plan.n > 8.3e9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan_answers(1, 60, alpha=0.1, **goal).n < 8.3e9


@pytest.mark.thorough(beside="test_planned_answers_are_right_but_for_the_unstable_ones")
def test_a_planned_model_promises_a_few_times_the_error_of_its_members():
    plan = plan_learning(1, alpha=0.1, epsilon=1, delta=1e-6)
    m = pac_sample_size(1, alpha=0.1, beta=0.05 / 4, agnostic=True)
    assert plan.queries == m == plan.table.queries
    # The paper has 15 alpha for the model, from 7 alpha for the answers.
    assert plan.error == pytest.approx(0.1 * 7, abs=1e-4)
    answers = plan_answers(1, m, alpha=0.1, epsilon=1, delta=1e-6, beta=0.0375)
    assert (plan.k, plan.chunk, plan.max_unstable) == (
        answers.k,
        answers.chunk,
        answers.max_unstable,
    )


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"vc": 0}, "vc = 0"),
        ({"queries": 0}, "queries = 0"),
        ({"alpha": 0}, "alpha = 0"),
        ({"alpha": 0.4}, r"opt \+ alpha = 0\.4, but it must be below share"),
        ({"opt": 0.95}, r"opt \+ alpha = 1.05"),
        ({"opt": -0.1}, "opt = -0.1"),
        ({"beta": 1}, "beta = 1"),
        ({"epsilon": -1}, "epsilon = -1"),
        ({"share": 0.6}, "share = 0.6"),
    ],
    ids=str,
)
def test_bad_plans_are_refused(changed, rule):
    goal = {"vc": 1, "queries": 50, "alpha": 0.1, "epsilon": 1, "delta": 1e-6} | changed
    with pytest.raises(ParameterError, match=rule):
        plan_answers(goal.pop("vc"), goal.pop("queries"), **goal)


def test_models_that_could_err_always_are_not_planned():
    with pytest.raises(ParameterError, match="the error that it promises must be below 1"):
        plan_learning(1, alpha=0.2, epsilon=1, delta=1e-6)
    for value in (0, 1.5):
        with pytest.raises(ParameterError, match=f"vc = {value}"):
            pac_sample_size(value, alpha=0.1, beta=0.1, agnostic=True)
