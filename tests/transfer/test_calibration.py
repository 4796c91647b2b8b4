"""Calibration: the likelihood, the fit, its safeguards, and what is refused.

The first half tests modules of the room that are not public.
"""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from lengths import STAT

from hdp_fast import Budget, learners, local, plotting, transfer
from hdp_fast.exceptions import (
    AgentsExhausted,
    HdpFastError,
    ParameterError,
    ShapeError,
    UtilityWarning,
)
from hdp_fast.learners.scores import save_loss, shift_at
from hdp_fast.local.estimation import advantage
from hdp_fast.transfer import calibration_fit
from hdp_fast.transfer.calibration_fit import (
    Axis,
    Counts,
    Posterior,
    Prior,
    compare,
    fit_map,
    log_likelihood,
    make_monotone,
    sigmoid,
)
from hdp_fast.transfer.calibration_map import CheckedMap, CostBound, bound_savings, choose_map
from hdp_fast.transfer.calibration_plan import (
    LADDER,
    choose_inner,
    count_people,
    place_thresholds,
    questions_of,
)

EDGE = Fraction(1, 3)


def counts_of(rows):
    """Counts of rows (threshold, labeled, size, ones)."""
    thresholds, labeled, sizes, ones = (np.array(column) for column in zip(*rows, strict=True))
    return Counts(thresholds.astype(float), labeled.astype(bool), sizes, ones)


# The likelihood -----------------------------------------------------------------------------------


# People (score, label) with their probabilities, and two questions with two and three agents.
PEOPLE = {(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 6), (1, 1): Fraction(1, 3)}
QUESTIONS = [(0.5, False, 2), (-math.inf, True, 1), (0.5, True, 3)]


def answers_to(question, person):
    threshold, labeled, _ = question
    return int(person[0] > threshold and (person[1] or not labeled))


def enumerate_law(edge):
    """The exact law of the counts of ones: over all people who may be asked, and all coins."""
    laws = []
    for question in QUESTIONS:
        law = {}
        for group in itertools.product(PEOPLE, repeat=question[2]):
            weight = math.prod(PEOPLE[person] for person in group)
            for lies in itertools.product((0, 1), repeat=len(group)):
                chance = math.prod((1 - edge) / 2 if lie else (1 + edge) / 2 for lie in lies)
                ones = sum(
                    answers_to(question, p) ^ lie for p, lie in zip(group, lies, strict=True)
                )
                law[ones] = law.get(ones, 0) + weight * chance
        laws.append(law)
    return {
        ones: math.prod(law[k] for law, k in zip(laws, ones, strict=True))
        for ones in itertools.product(*laws)
    }


def probability_of(ones, edge):
    rows = [(t, labeled, size, k) for (t, labeled, size), k in zip(QUESTIONS, ones, strict=True)]
    means = [
        sum(weight * answers_to(question, person) for person, weight in PEOPLE.items())
        for question in QUESTIONS
    ]
    value = log_likelihood(counts_of(rows), np.array(means, float), float(edge))
    return math.exp(value) * math.prod(math.comb(row[2], row[3]) for row in rows)


def test_the_likelihood_is_that_of_all_people_and_all_coins():
    law = enumerate_law(EDGE)
    assert sum(law.values()) == 1
    for ones, exact in law.items():
        assert probability_of(ones, EDGE) == pytest.approx(float(exact), rel=1e-12)


def test_another_edge_would_be_seen():
    law = enumerate_law(EDGE)
    assert max(abs(probability_of(k, EDGE / 2) - float(p)) for k, p in law.items()) > 0.01


def debias(ones, size, edge):
    means, _ = counts_of([(0.0, False, size, ones)]).debias(edge)
    return means[0]


@pytest.mark.parametrize("truth", list(itertools.product((0, 1), repeat=3)))
def test_debiased_means_are_unbiased_over_all_coins(truth):
    edge = EDGE
    mean = sum(
        float(math.prod((1 - edge) / 2 if lie else (1 + edge) / 2 for lie in lies))
        * debias(sum(bit ^ lie for bit, lie in zip(truth, lies, strict=True)), 3, float(edge))
        for lies in itertools.product((0, 1), repeat=3)
    )
    assert mean == pytest.approx(sum(truth) / 3, abs=1e-12)


# The fit ------------------------------------------------------------------------------------------


PLAIN = Prior(np.array([1.0, 0.0]), np.array([0.3, 2.0]))
BENT = Prior(np.array([1.0, 0.0, 0, 0]), np.array([0.3, 2.0, 0.5, 0.5]), np.array([-1.0, 1.0]))
PLACES = np.array([-6.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 6.0])
AXIS = Axis.between(PLACES)


def main_questions():
    return questions_of(PLACES, choose_inner(PLACES, PLACES))


def expected_counts(size, edge, slope=1.0, intercept=-1.0):
    """The counts that are expected where scores are standard normal times 1.5."""
    scores = np.sort(1.5 * np.random.default_rng(0).normal(size=20_000))
    rates = sigmoid(slope * scores + intercept)
    questions = main_questions()
    above = scores > questions.thresholds[:, None]
    means = (above * np.where(questions.labeled[:, None], rates, 1.0)).mean(axis=1)
    sizes = questions.sizes(size)
    ones = np.rint(sizes * ((1 - edge) / 2 + edge * means)).astype(int)
    return Counts(questions.thresholds, questions.labeled, sizes, ones)


def test_cells_near_each_other_deviate_together():
    """By the law that is stated: a smooth part, which ends with the distance, and a rough one."""
    places = np.arange(len(AXIS.waves)) / calibration_fit._CELLS
    apart = (places[:, None] - places) / calibration_fit._SMOOTHNESS
    smooth = calibration_fit._DEVIATION**2 * np.exp(-(apart**2) / 2)
    rough = calibration_fit._ROUGHNESS**2 * np.eye(len(places))
    np.testing.assert_allclose(AXIS.waves @ AXIS.waves.T, smooth + rough, atol=1e-12)


@pytest.mark.parametrize("prior", [PLAIN, BENT], ids=["line", "bends"])
def test_the_gradient_is_that_of_the_posterior(prior):
    posterior = Posterior(expected_counts(5_000, 0.5), 0.5, AXIS, prior)
    state = posterior.center + 0.1 * np.random.default_rng(0).normal(size=len(posterior.center))
    gradient, information = posterior.curvature(state)
    steps = 1e-5 * np.eye(len(state))
    slopes = [(posterior.value(state + s) - posterior.value(state - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, slopes, atol=2e-3)
    assert (np.linalg.eigvalsh(information) > 0).all()


def test_the_excess_is_how_much_answers_misfit_beyond_their_coins():
    edge, questions = 0.5, main_questions()
    sizes = np.full(len(questions.thresholds), 10**8)

    def excess(deviations):
        """Where every answer's mean is so many deviations of its coins from the fit."""
        counts = Counts(questions.thresholds, questions.labeled, sizes, sizes)
        posterior = Posterior(counts, edge, AXIS, PLAIN)
        shown = (1 - edge) / 2 + edge * posterior.means(posterior.center)[0]
        ones = sizes * shown + deviations * np.sqrt(sizes * shown * (1 - shown))
        return Posterior(
            Counts(questions.thresholds, questions.labeled, sizes, ones), edge, AXIS, PLAIN
        ).excess(posterior.center)

    chance = 1 + 2 * math.sqrt(2 / len(questions.thresholds))
    assert excess(1.0) == excess(-1.0) == 1.0
    assert excess(6.0) == pytest.approx(36 / chance) == excess(-6.0)


def test_many_expected_answers_give_slope_and_intercept():
    fit = fit_map(expected_counts(10**9, 0.9, 0.8, -1.0), 0.9, AXIS, PLAIN)
    np.testing.assert_allclose(fit.coefficients, [0.8, -1.0], atol=0.02)
    twin = fit_map(expected_counts(10**9, 0.9, 0.8, -1.0), 0.45, AXIS, PLAIN)
    assert abs(twin.coefficients[1] + 1) > 0.1  # with a wrong edge it is not found


def test_no_answers_leave_the_prior():
    none = Counts(np.zeros(0), np.zeros(0, bool), np.zeros(0, int), np.zeros(0, int))
    fit = fit_map(none + expected_counts(0, 0.5), 0.5, AXIS, PLAIN)
    np.testing.assert_allclose(fit.coefficients, [1, 0], atol=1e-9)
    np.testing.assert_allclose(fit.deviations, [0.3, 2.0], rtol=1e-9)


def test_choose_inner_takes_every_other_of_the_inner_thresholds():
    """The bounds of the bins: the outermost rungs of the ladder that count as near are among the
    inner ones, which decides which of them are taken."""
    assert choose_inner(LADDER, None).tolist() == [-6.0, -3.2, -1.5, 0.0, 1.5, 3.2, 6.0]
    assert choose_inner(LADDER, np.array([1.0, 2.0, 3.0, 200.0])).tolist() == [2.0, 200.0]


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_log_likelihood_is_finite_where_answers_are_true(mean):
    """With a large epsilon a float cannot tell the randomizer's Pr[truth] from 1."""
    ones = np.array([round(9 * mean)])
    counts = Counts(np.zeros(1), np.zeros(1, bool), np.array([9]), ones)
    assert log_likelihood(counts, np.array([mean]), 1.0) == pytest.approx(0.0, abs=1e-12)
    assert -math.inf < log_likelihood(counts, np.array([1 - mean]), 1.0) < -300


def test_the_difference_of_losses_is_the_mean_over_cells():
    fit = fit_map(expected_counts(50_000, 0.9), 0.9, AXIS, PLAIN)
    scores, masses = AXIS.middles, fit.masses
    odds = 0.8 * scores - 1
    rates = sigmoid(fit.log_odds(scores))
    losses = [
        -np.log(sigmoid(f)) * rates - np.log(sigmoid(-f)) * (1 - rates) for f in (odds, scores)
    ]
    value, deviation = compare(fit, odds, scores)
    assert value == pytest.approx(float(masses @ (losses[0] - losses[1])), abs=1e-12)
    assert deviation > 0
    assert compare(fit, scores, scores)[1] == 0


def test_monotone_values_are_the_nearest():
    isotonic = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, weights = rng.normal(size=9), rng.uniform(0.1, 2, 9)
        expected = isotonic.isotonic_regression(values, sample_weight=weights)
        np.testing.assert_allclose(make_monotone(values, weights), expected, atol=1e-12)


# The map and its check ----------------------------------------------------------------------------


def made_map(rng):
    """A map as the fit draws it, or any other one."""
    knots = np.unique(rng.normal(0, 4, rng.integers(1, 7)))
    return knots, rng.normal(0, rng.choice([0.1, 1.0, 6.0]), len(knots))


def test_no_score_and_label_lose_or_save_more_than_the_bounds():
    rng = np.random.default_rng(0)
    for _ in range(300):
        knots, shifts = made_map(rng)
        most, least = bound_savings(knots, shifts)
        scores = np.concatenate([np.linspace(-60, 60, 6_001), knots, [-1e308, 1e308]])
        saved = np.stack(
            [save_loss(scores, shift_at(scores, knots, shifts), label) for label in (0.0, 1.0)]
        )
        assert least <= saved.min()
        assert saved.max() <= most
        assert most <= saved.max() + 0.2 * np.abs(shifts).max()
        assert least >= saved.min() - 0.2 * np.abs(shifts).max()


@each_case("score", [-800.0, -3.0, 0.0, 1e-9, 2.5, 700.0, 1e300])
@each_case("shift", [-5.0, -1e-3, 0.0, 0.5, 6.0])
def test_saved_loss_is_the_difference_of_log_losses(score, shift):
    before, after = Fraction(score), Fraction(score) + Fraction(shift)

    def loss(value, label):
        # softplus(v) - y v, with a remainder that floats show wherever it counts
        rest = math.log1p(math.exp(-abs(float(value))))
        return max(value, 0) - label * value, rest

    for label in (0, 1):
        (first, rest), (second, other) = loss(before, label), loss(after, label)
        exact = float(first - second) + (rest - other)
        saved = save_loss(np.array([score]), np.array([shift]), float(label))[0]
        assert saved == pytest.approx(exact, abs=1e-14, rel=1e-12)


def law_of_ones(coins):
    law = np.ones(1)
    for coin in coins:
        law = np.convolve(law, [1 - coin, coin])
    return law


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.2])
def test_the_promise_holds_in_exact_enumeration(epsilon, tolerance):
    """Few agents with unequal coins: the probability of every number of ones is computed."""
    rng, edge, beta = np.random.default_rng(1), advantage(epsilon), 0.05
    bound, largest = CostBound(tolerance, beta), 0.0
    for _ in range(60 if STAT else 20):
        knots, shifts = made_map(rng)
        high, low = bound_savings(knots, shifts)
        cut = high * rng.choice([1.0, 0.3])
        checked = CheckedMap(knots, shifts, low, cut, 1.0, np.zeros(21), 1.0)
        size = int(rng.integers(1, 14))
        scores, labels = rng.normal(0, 4, size), rng.random(size).round(rng.integers(0, 3))
        shift = shift_at(scores, knots, shifts)
        saved = save_loss(scores, shift, labels)
        answers = (np.clip(saved, low, cut) - low) / (cut - low)
        law = law_of_ones((1 - edge) / 2 + edge * answers)
        behind = 0.0
        for ones, chance in enumerate(law):
            check = checked.judge(ones, size, size, edge, beta)
            step = float(bound.allow(check.high))
            lost = -save_loss(scores, step * shift, labels).mean()
            behind += chance * (lost > tolerance + 1e-12)
            assert check.low <= check.difference <= check.high
            assert (check.low_any, check.high_any) == (check.low, check.high)
        largest = max(largest, behind)
    assert largest <= beta
    # A bound that is halfway to the estimate would not do.
    assert largest > 0 or epsilon < 8


def test_missing_answers_count_as_the_worst_in_the_interval_that_assumes_nothing():
    checked = CheckedMap(np.zeros(1), np.array([-1.0]), -1.0, 1.0, 1.0, np.zeros(21), 1.0)
    edge = advantage(1.0)
    check = checked.judge(450, 800, 1_000, edge, 0.05)
    full = [checked.judge(450 + k, 1_000, 1_000, edge, 0.05) for k in (0, 200)]
    assert (check.low_any, check.high_any) == (full[1].low, full[0].high)
    assert check.low_any < check.low < check.high < check.high_any
    silent = checked.judge(0, 0, 1_000, edge, 0.05)
    assert (silent.low, silent.high) == (-1.0, 1.0)


def test_a_map_is_shortened_where_few_agents_check():
    fit = fit_map(expected_counts(4_000, 0.46), 0.46, AXIS, PLAIN)
    odds = fit.log_odds(AXIS.middles)
    made = [
        choose_map(fit, odds, False, agents=agents, edge=0.46, bound=CostBound(0.01, 0.05))
        for agents in (10, 1_000, 10**6)
    ]
    assert made[2].part == 1
    # A narrower range lets more through where few check.
    assert made[0].high < made[2].high
    assert 100 < made[2].enough < 10**6
    assert all(one.low < 0 < one.high for one in made)


# The whole ----------------------------------------------------------------------------------------


def population(n, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 2, (n, 1))
    return X, (rng.random(n) < sigmoid(X[:, 0] - shift)).astype(np.uint8)


def first_column(X):
    return np.asarray(X)[:, 0]


def calibrate(n=30_000, epsilon=4.0, model=first_column, shift=2.0, **changed):
    X, y = population(n, shift)
    agents = local.Agents(X, y, epsilon=epsilon)
    return transfer.calibrate(model, agents, **{"random_state": 1} | changed)


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_a_shifted_base_rate_is_repaired(method):
    result = calibrate(method=method)
    X, y = population(20_000, seed=5)

    def loss(p):
        return -np.log(np.where(y == 1, p, 1 - p)).mean()

    odds = result.scores(X)
    assert result.outcome == "calibrated"
    assert loss(sigmoid(odds)) < loss(sigmoid(X[:, 0] - 2)) + 0.02 < loss(sigmoid(X[:, 0])) - 0.1
    assert (np.diff(odds[np.argsort(X[:, 0])]) >= 0).all()
    probabilities = result.predict_proba(X)
    assert probabilities.shape == (20_000, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (result.predict(X) == (probabilities[:, 1] >= 0.5)).all()
    assert abs(result.fitted[1] + 2) < 5 * result.intercept_error
    assert result.agents == result.answers == 30_000


def test_an_isotonic_map_bends_where_labels_do():
    """Nothing changes above a score of 1, which no line can say."""
    X, _ = population(60_000)
    y = np.random.default_rng(4).random(len(X)) < sigmoid(np.minimum(2 * X[:, 0], 2.0) - 1)
    bends = {}
    for method in ("logistic", "isotonic"):
        agents = local.Agents(X, y, epsilon=6.0)
        result = transfer.calibrate(first_column, agents, method=method, random_state=1)
        steps = np.diff(result.apply(np.array([-0.5, 0.5, 1.5, 2.5])))
        bends[method] = steps[0] - steps[2]
    assert abs(bends["logistic"]) < 1e-9
    assert bends["isotonic"] > 0.2


def test_the_check_speaks_for_the_map():
    result = calibrate()
    assert result.check.agents == result.check.asked == 12_000
    assert result.check.low < result.check.difference < result.check.high < -0.05
    assert (result.step, result.agents_needed) == (1, None)
    assert "in [" in repr(result)
    assert "0.01 of log loss behind with probability 0.95" in repr(result)


def two_clusters(n, width, seed):
    """5 % of the people, of whom the model is far too sure."""
    rng = np.random.default_rng(seed)
    high = rng.random(n) < 0.05
    scores = np.where(high, 6.0, -3.0) + rng.normal(0, width, n)
    return scores, np.where(high, 0.3, 0.05), rng


@pytest.mark.parametrize(
    ("seed", "width", "quantiles"),
    [(4, 0.1, True), (0, 0.1, True), (4, 0.1, False), (4, 0.0, False)],
)
def test_a_model_too_sure_of_a_few_is_repaired_and_not_made_worse(seed, width, quantiles):
    """Two clusters of scores, far from each other; it lost up to .21 of log loss."""
    scores, rates, rng = two_clusters(40_000, width, seed)
    labels = rng.random(len(scores)) < rates
    levels = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]
    thresholds = np.unique(np.quantile(scores, levels)).tolist() if quantiles else None
    agents = local.Agents(scores[:, None], labels, epsilon=4.0)
    result = transfer.calibrate(first_column, agents, thresholds=thresholds, random_state=seed)
    places, truth, _ = two_clusters(100_000, width, 99)
    after = result.apply(places)
    gained = (
        np.logaddexp(0, places) - truth * places - np.logaddexp(0, after) + truth * after
    ).mean()
    assert gained > 0.12


def test_a_tolerance_of_none_takes_all_or_nothing():
    assert calibrate(tolerance=0).step == 1
    with pytest.warns(UtilityWarning):
        assert calibrate(4_000, epsilon=1.0, shift=0.3, tolerance=0).step == 0


def test_a_step_in_part_says_how_many_agents_would_do():
    result = calibrate(3_000, epsilon=1.0)
    assert 0 < result.step < 1
    assert result.agents_needed >= 3_000
    assert f"roughly {result.agents_needed:,} agents for nearly the whole way" in repr(result)
    assert result.slope == pytest.approx(1 + result.step * (result.fitted[0] - 1))
    assert result.check.high > 0.01 or result.step >= 0.1


def test_few_agents_leave_the_model_as_it_was():
    with pytest.warns(UtilityWarning, match=r"agents = 100 do not show"):
        result = calibrate(100, 0.5)
    assert result.outcome == "no evidence"
    X, _ = population(100)
    np.testing.assert_array_equal(result.scores(X), X[:, 0])
    assert len(result.knots) == len(result.shifts) == 0
    assert "as it was" in repr(result)


@pytest.mark.parametrize(("n", "epsilon", "shift"), [(30_000, 4.0, 2.0), (4_000, 1.0, 0.5)])
def test_agents_who_contradict_the_fit_bring_the_model_back(n, epsilon, shift):
    """The people who check differ from those of the fit, whom the order should not tell apart.

    No number of agents is said to be enough then, even where the fit alone would ask for more.
    """
    X, y = population(n, shift)
    checking = X[n * 3 // 5 :, 0]
    y[n * 3 // 5 :] = np.random.default_rng(3).random(len(checking)) < sigmoid(checking + 2)
    agents = local.Agents(X, y, epsilon=epsilon)
    with pytest.warns(UtilityWarning, match="held out"):
        result = transfer.calibrate(first_column, agents, random_state=1)
    assert (result.outcome, result.slope, result.intercept, result.step) == (
        "worse when checked", 1.0, 0.0, 0.0,
    )  # fmt: skip
    assert result.fitted[1] < -shift / 2
    assert result.check.low > 0
    assert result.agents_needed is None
    assert "worse" in repr(result)


def test_thresholds_take_the_place_of_the_ladders_inner_rungs():
    result = calibrate(thresholds=[-3, -1, 0, 1, 2, 4])
    assert result.thresholds.tolist() == [
        -100, -30, -12, -8.5, -6, -4.3, -3.2, -3, -1, 0, 1, 2, 4, 4.3, 6, 8.5, 12, 30, 100,
    ]  # fmt: skip
    np.testing.assert_array_equal(result.reliability.edges, [-1, 1, 4])
    assert abs(result.intercept + 2) < 0.8
    np.testing.assert_array_equal(calibrate().thresholds, LADDER)
    assert place_thresholds(np.array([-200.0, 200.0])).tolist() == [-200, 200]


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_the_map_is_flat_beyond_its_knots(method):
    """No one was asked about scores there: the shift of the end is all that is known."""
    result = calibrate(method=method)
    places = np.linspace(-200, 200, 4_001)
    shifts = np.interp(places, result.knots, result.shifts)
    np.testing.assert_array_equal(result.apply(places), places + shifts)
    assert (np.diff(result.apply(places)) >= 0).all()
    if method == "logistic":
        inside = (result.knots[0] <= places) & (places <= result.knots[1])
        line = result.slope * places + result.intercept
        np.testing.assert_allclose(result.apply(places)[inside], line[inside], atol=1e-9)
        assert abs(result.apply(np.array([200.0]))[0] - line[-1]) > 1


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_results_are_read_again(method):
    result = calibrate(method=method)
    text = result.to_json()
    again = transfer.CalibratedModel.from_json(text, first_column)
    assert again.to_json() == text
    X, _ = population(50)
    np.testing.assert_array_equal(again.predict_proba(X), result.predict_proba(X))
    assert json.loads(text)["agents_record"]["epsilon"] == 4
    for broken in ("[]", "{}", text.replace("calibrated", "splendid")):
        with pytest.raises(ParameterError):
            transfer.CalibratedModel.from_json(broken, first_column)


def test_a_result_that_was_kept_without_its_labels_is_read():
    result = calibrate()
    fields = json.loads(result.to_json())
    answers, ones = fields.pop("labels")
    assert answers == pytest.approx(0.6 * 0.35 * result.agents, abs=1)
    assert 0 < ones < answers
    again = transfer.CalibratedModel.from_json(json.dumps(fields), first_column)
    assert (again.labels, again.slope) == ((0, 0), result.slope)


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_as_many_people_as_are_counted_make_intervals_so_narrow(epsilon):
    """In bins of one size; a tenth of them leaves some interval wider."""

    def ask(n):
        rng, ends = np.random.default_rng(n), np.array([-10, -6, -3.2, -1.5, 0, 1.5, 3.2, 6, 10])
        places = rng.integers(0, 8, n)
        scores = ends[places] + rng.random(n) * np.diff(ends)[places]
        y = rng.random(n) < 1 / (1 + np.exp(-scores))
        agents = local.Agents(scores[:, None], y, epsilon=epsilon)
        return transfer.calibrate(first_column, agents, random_state=n)

    def widest(n):
        diagram = ask(n).reliability
        return ((diagram.high - diagram.low) / 2).max()

    people = count_people(ask(1_000), 0.25)
    assert widest(people) < 0.25 < widest(people // 10)
    assert count_people(ask(1_000), 0.125) == pytest.approx(4 * people, rel=1e-3)


def test_the_diagram_holds_the_rates():
    result = calibrate(60_000)
    diagram = result.reliability
    before, after = f"{diagram.before[0]:.2f}", f"{diagram.after[0]:.2f}"
    assert repr(diagram).startswith(
        f"ReliabilityDiagram({len(diagram.rates)} bins: {before} -> {after} ("
    )
    X, y = population(400_000, seed=9)
    places = np.searchsorted(diagram.edges, X[:, 0])
    rates = np.bincount(places, weights=y) / np.bincount(places)
    assert ((diagram.low <= rates) & (rates <= diagram.high)).all()
    assert ((diagram.low <= diagram.rates) & (diagram.rates <= diagram.high)).all()
    assert (diagram.before[1:4] > diagram.high[1:4]).any()
    np.testing.assert_allclose(diagram.shares.sum(), 1, atol=0.1)
    pytest.importorskip("matplotlib")
    for drawn in (result, diagram):
        (axes,) = plotting.reliability(drawn).axes
        entries = [text.get_text() for text in axes.get_legend().get_texts()]
        assert entries == ["before", "calibrated"]
    with pytest.raises(ParameterError, match="result = "):
        plotting.reliability(3)


# Models -------------------------------------------------------------------------------------------


def rows(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) / 3
    return X, (rng.random(n) < sigmoid(6 * X[:, 0] - 3 * X[:, 1] - shift)).astype(np.uint8)


def private_sgd(X, y):
    return learners.PrivateSGD(loss="logistic", epsilon=4.0, delta=1e-6).learn(X, y)


def statistics(X, y):
    features = learners.FeatureMap.identity(3, norm_bound=2.0)
    made = learners.SufficientStatistics(features, classes=[0, 1])
    released = made.release(X, y, epsilon=4.0, delta=1e-6)
    return released.solve(pool=X, penalty=0.01)


def votes(X, y):
    voters = [
        {"kind": "halfspace", "weights": weights, "bias": bias}
        for weights in ([1.0, 0.0, 0.0], [2.0, -1.0, 0.0], [1.0, -1.0, 0.3])
        for bias in (-0.4, 0.0, 0.4)
    ]
    return {"kind": "vote", "hypotheses": voters}


def public_model(X, y):
    return pytest.importorskip("sklearn.linear_model").LogisticRegression().fit(X, y)


@pytest.mark.parametrize("learn", [private_sgd, statistics, votes, public_model])
def test_models_of_all_kinds(learn):
    model = learn(*rows(4_000))
    X, y = rows(40_000, 1, shift=2.0)
    result = transfer.calibrate(model, local.Agents(X, y, epsilon=4.0), random_state=1)
    Q, labels = rows(5_000, 2, shift=2.0)
    before, after = learners.score_of(model)(Q), result.scores(Q)
    loss_before, loss_after = (
        np.logaddexp(0, s).mean() - (labels * s).mean() for s in (before, after)
    )
    assert loss_after < loss_before - 0.03
    has_record = learn in (private_sgd, statistics)
    assert (result.record is not None) == has_record
    assert result.agents_record.neighbors == "local"


def test_a_model_that_fails_on_some_records_raises_nothing():
    def score(X):
        if np.abs(X).max() > 5:
            raise ValueError("a record that tells of itself")
        return X[:, 0]

    assert calibrate(20_000, model=score).outcome == "calibrated"


# Real agents --------------------------------------------------------------------------------------


def remote(X, y, share=1.0, fail_after=None, **settings):
    """Devices that answer what they are sent; a share of them never does."""
    state = {"asked": 0, "calls": 0}
    rng = np.random.default_rng(3)

    def ask(text, k):
        state["calls"] += 1
        if state["calls"] == fail_after:
            raise ConnectionError("gone")
        chosen = slice(state["asked"], state["asked"] + k)
        state["asked"] += k
        way = {"epsilon": 4.0, "random_state": rng}
        reports = local.draw_reports(text, X[chosen], y[chosen], **way)
        return reports[rng.random(len(reports)) < share]

    agents = local.RemoteAgents(ask, epsilon=4.0, count=len(y), **settings)
    return agents, state


def test_real_agents_may_be_missing():
    X, y = rows(40_000, 1, shift=2.0)
    model = private_sgd(*rows(4_000))
    agents, state = remote(X, y, 0.7, response_rate=0.7)
    result = transfer.calibrate(model, agents)
    assert result.outcome == "calibrated"
    assert 27_000 < result.answers < 29_000
    assert result.check.agents < result.check.asked == 16_000
    assert result.check.low_any < result.check.low < result.check.high < result.check.high_any
    assert "whoever did not answer" in repr(result)
    assert result.agents == state["asked"] == 40_000
    assert result.agents_record.rng == "the agents' own"


def test_the_last_question_is_one_that_devices_answer():
    """All others are known before anybody answers; the model is in each as it was."""
    texts, (X, y) = [], rows(20_000, 1, shift=2.0)
    place = iter(range(0, 10**9))

    def ask(text, k):
        texts.append((text, k))
        start = sum(size for _, size in texts[:-1])
        part = slice(start, start + k)
        return local.draw_reports(text, X[part], y[part], epsilon=4.0, random_state=next(place))

    model = private_sgd(*rows(4_000))
    agents = local.RemoteAgents(ask, epsilon=4.0, count=20_000)
    result = transfer.calibrate(model, agents)
    stage, check = (json.loads(text) for text, _ in texts)  # two rounds
    kinds = [[term["kind"] for term in query["terms"]] for query in stage["queries"]]
    assert kinds.count(["score_above"]) == len(LADDER)
    assert ["loss_saved"] not in kinds
    (described,) = check["terms"]
    assert described["kind"] == "loss_saved"
    assert described["model"] == stage["queries"][0]["terms"][0]["model"]
    scores = learners.score_of(model)(X[:300])
    saved = save_loss(
        scores, shift_at(scores, *(np.array(described[k]) for k in ("knots", "shifts"))), y[:300]
    )
    low, high = described["low"], described["high"]
    answers = local.true_answers(texts[-1][0], X[:300], y[:300])
    np.testing.assert_allclose(
        answers, (np.clip(saved, low, high) - low) / (high - low), atol=1e-12
    )
    assert result.outcome == "calibrated"


def test_nobody_is_asked_twice_after_an_interruption():
    X, y = rows(20_000, 1, shift=2.0)
    model = private_sgd(*rows(4_000))
    agents, state = remote(X, y, fail_after=2)
    with pytest.raises(ConnectionError):
        transfer.calibrate(model, agents, count=20_000)
    with pytest.warns(UtilityWarning):
        result = transfer.calibrate(model, agents, count=20_000)
    # Those who were to check when the line broke are lost, and no one takes their place.
    assert (result.answers, state["asked"], agents.remaining) == (12_000, 12_000, 0)
    assert result.outcome == "no evidence"


def test_people_whose_cells_are_missing_count_where_the_model_scores_them():
    """Three in ten miss a cell; the model is right about their score, and wrong about them."""

    def draw(n, rng):
        missing = rng.random(n) < 0.3
        scores = np.where(missing, 3.0, rng.normal(0, 2, n))
        yes = ~missing & (rng.random(n) < 1 / (1 + np.exp(-1.5 - scores)))
        return np.stack([scores, np.where(missing, np.nan, 1.0)], axis=1), yes.astype(int)

    def model(X):
        return np.nan_to_num(X)[:, 0]

    rng = np.random.default_rng(0)
    X, y = draw(100_000, rng)
    for method in ("logistic", "isotonic"):
        agents = local.Agents(*draw(20_000, rng), epsilon=2.0)
        result = transfer.calibrate(model, agents, method=method, random_state=1)
        odds, before = result.scores(X), model(X)
        assert (np.logaddexp(0, odds) - y * odds).mean() <= 0.01 + (
            np.logaddexp(0, before) - y * before
        ).mean()


def test_late_answers_do_not_change_what_the_last_question_asks():
    """One in five answers comes after an interruption in the check, whose answers are kept."""
    rng, sent, texts = np.random.default_rng(7), {}, []

    def ask(text, k):
        texts.append(text)
        scores = rng.normal(0, 2, k)
        labels = (rng.random(k) < 1 / (1 + np.exp(1.5 - scores))).astype(int)
        way = {"epsilon": 4.0, "random_state": rng}
        reports = local.draw_reports(text, scores[:, None], labels, **way).tolist()
        sent[text, k] = [(f"{len(texts)}-{place}", one) for place, one in enumerate(reports)]
        yield sent[text, k][: round(0.8 * k)]
        if "loss_saved" in text:
            raise OSError("the network is gone")

    def collect(text, k):
        return sent[text, k]

    pool = {"epsilon": 4.0, "count": 10_000, "response_rate": 0.8}
    agents = local.RemoteAgents(ask, collect=collect, **pool)
    model = {"kind": "linear", "weights": [1.0], "bias": 0.0}
    with pytest.raises(OSError, match="the network"):
        transfer.calibrate(model, agents, count=4_000)
    asked = len(texts)
    result = transfer.calibrate(model, agents, count=4_000)
    assert (len(texts), agents.remaining) == (asked, 6_000)
    assert (result.outcome, result.check.agents) == ("calibrated", 1_600)


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize(("epsilon", "count"), [(0.001, 1_000), (0.01, 60), (1e-6, 20_000)])
def test_a_map_of_no_use_is_not_called_calibrated(epsilon, count):
    scores = np.random.default_rng(1).normal(0, 2, count)
    labels = np.random.default_rng(2).random(count) < 1 / (1 + np.exp(1.5 - scores))
    for seed in range(6):
        agents = local.Agents(scores[:, None], labels, epsilon=epsilon)
        result = transfer.calibrate(lambda X: X[:, 0], agents, random_state=seed)
        assert result.outcome != "calibrated"


def test_agents_whom_others_asked_are_not_counted_on():
    agents = local.RemoteAgents(lambda text, k: [1] * k, epsilon=1.0, count=2_000)
    agents.pass_over(1_700)
    with pytest.raises(AgentsExhausted, match="but 300 agents are left"):
        transfer.calibrate({"kind": "linear", "weights": [1.0], "bias": 0.0}, agents, count=2_000)
    assert agents.remaining == 300


def test_no_probability_of_a_calibrated_model_is_0():
    agents = local.Agents(np.zeros((100, 1)), np.zeros(100), epsilon=1.0)
    with pytest.warns(UtilityWarning):
        result = transfer.calibrate(lambda X: X[:, 0], agents, random_state=1)
    shares = result.predict_proba(np.array([[-700.0], [-40.0], [40.0], [700.0]]))
    assert (shares > 0).all()
    assert shares[1, 1] == pytest.approx(math.exp(-40), rel=1e-12)
    assert shares.sum(axis=1) == pytest.approx(1)


def test_silent_agents_teach_nothing():
    X, y = rows(1_000)
    agents, _ = remote(X, y, 0.0)
    with pytest.raises(AgentsExhausted, match="none of 1,000 has answered"):
        transfer.calibrate(private_sgd(*rows(400)), agents)


def test_real_agents_need_a_description():
    X, y = rows(1_000)
    agents, state = remote(X, y)
    with pytest.raises(ParameterError, match="no description"):
        transfer.calibrate(first_column, agents)
    assert state["asked"] == 0
    assert agents.remaining == 1_000


# Bad inputs ---------------------------------------------------------------------------------------


BAD = [
    ({"model": 3}, ParameterError, "model is int"),
    ({"agents": [1, 2]}, ParameterError, "agents = list, but it must be local.Agents"),
    ({"method": "platt"}, ParameterError, "method = 'platt', but it must be one of logistic"),
    ({"thresholds": [1.0]}, ParameterError, "thresholds = .*2 to 64 increasing"),
    ({"thresholds": [1.0, 0.0]}, ParameterError, "increasing"),
    ({"thresholds": [0.0, math.nan]}, ParameterError, "thresholds = nan"),
    ({"thresholds": [-1.7e308, 1.7e308]}, ParameterError, "increasing numbers in"),
    ({"thresholds": [0.0, 5e-324]}, ParameterError, "apart by more than"),
    ({"thresholds": 3}, ParameterError, "thresholds = 3"),
    ({"held_out": 1.0}, ParameterError, "held_out = 1.0"),
    ({"held_out": -0.1}, ParameterError, "held_out"),
    ({"held_out": 0}, ParameterError, "held_out = 0"),
    ({"tolerance": -0.01}, ParameterError, "tolerance = -0.01"),
    ({"tolerance": math.inf}, ParameterError, "tolerance = inf"),
    ({"slope": (0.0, 1.0)}, ParameterError, "slope = .*mean must be above 0"),
    ({"slope": (1.0, 0.0)}, ParameterError, "slope = 0"),
    ({"intercept": (0.0,)}, ParameterError, "a mean and a standard deviation"),
    ({"intercept": (0.0, -1.0)}, ParameterError, "intercept = -1"),
    ({"beta": 0.0}, ParameterError, "beta = 0"),
    ({"count": 59}, ParameterError, "count = 59, but a calibration needs at least 60"),
    ({"count": 2.5}, ParameterError, "count = 2.5"),
    ({"count": 501}, AgentsExhausted, "count = 501, but 500 agents are left"),
    ({"random_state": -1}, ParameterError, "random_state = -1"),
    ({"model": lambda X: X[:, 7]}, ShapeError, "1 features"),
]


@each_case(("changed", "error", "words"), BAD, ids=range(len(BAD)))
def test_bad_inputs_are_refused_before_anybody_is_asked(changed, error, words):
    agents = local.Agents(*population(500), epsilon=1.0)
    arguments = {"model": first_column, "agents": agents} | changed
    with pytest.raises(error, match=words):
        transfer.calibrate(arguments.pop("model"), arguments.pop("agents"), **arguments)
    assert agents.remaining == 500


def test_an_empty_pool_is_refused():
    agents = local.Agents(*population(100), epsilon=1.0)
    agents.pass_over(100)
    with pytest.raises(AgentsExhausted, match="0 agents are left"):
        transfer.calibrate(first_column, agents)


def test_a_score_that_takes_bits_alone_is_calibrated():
    X = np.random.default_rng(0).integers(0, 2, (20_000, 6), np.uint8)
    agents = local.Agents(X, X[:, 0], epsilon=4.0)
    learner = learners.ExponentialLearner(learners.Conjunctions(6, 2), epsilon=5.0)
    rule = learner.learn(X, X[:, 0], random_state=0)
    with pytest.raises(ParameterError):
        rule.predict(X / 2)
    result = transfer.calibrate(
        lambda X: 4.0 * rule.predict(X) - 2, agents, thresholds=(-1.0, 1.0), random_state=0
    )
    assert result.outcome == "calibrated"
    assert result.predict(X[:9]).tolist() == X[:9, 0].tolist()


BAD_PLANS = [
    ({}, "agents and standard_error"),
    ({"agents": 1_000, "standard_error": 0.1}, "agents and standard_error"),
    ({"agents": 59}, "at least 60"),
    ({"agents": 1_000, "epsilon": 0}, "epsilon"),
    ({"agents": 1_000, "base_rate": 1.0}, "base_rate = 1.0"),
    ({"agents": 1_000, "held_out": 1}, "held_out = 1"),
    ({"agents": 1_000, "response_rate": 0}, "response_rate = 0"),
    ({"standard_error": 0}, "standard_error = 0"),
    ({"standard_error": 1e-9, "epsilon": 1e-3}, "standard_error = 1e-09 need more than"),
]


@pytest.mark.parametrize(("changed", "words"), BAD_PLANS, ids=[str(case[0]) for case in BAD_PLANS])
def test_bad_plans_are_refused(changed, words):
    with pytest.raises(HdpFastError, match=words):
        transfer.plan_calibration(**{"epsilon": 1.0} | changed)


# Plans --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hopeless",
    [
        *({"epsilon": epsilon} for epsilon in (1e-9, 1e-12)),
        *({"base_rate": base_rate} for base_rate in (5e-324, 1e-300, 1e-20, 1 - 2**-53)),
        {"response_rate": 1e-300},
    ],
    ids=str,
)
def test_a_hopeless_plan_says_so_instead_of_failing(hopeless):
    with pytest.warns(UtilityWarning, match="even 1e[+]18 do not tell it to 0.2"):
        plan = transfer.plan_calibration(60, **{"epsilon": 1.0} | hopeless)
    assert plan.forecast < 2.5
    with pytest.raises(ParameterError, match=r"standard_error = 0.2 need more than"):
        transfer.plan_calibration(standard_error=0.2, **{"epsilon": 1.0} | hopeless)


def test_extreme_standard_errors_are_planned_or_refused():
    assert transfer.plan_calibration(epsilon=1.0, standard_error=1e300).agents == 60
    with pytest.raises(ParameterError, match="standard_error = 1e-300 need more than"):
        transfer.plan_calibration(epsilon=1.0, standard_error=1e-300)


@pytest.mark.parametrize("held_out", [0.999, 1 - 2**-53])
def test_no_more_agents_check_than_there_are(held_out):
    plan = transfer.plan_calibration(60, epsilon=4.0, held_out=held_out)
    assert (plan.fitted, plan.held_out) == (1, 59)
    assert calibrate(held_out=held_out, count=60).agents == 60


def test_the_plan_states_the_formula():
    plan = transfer.plan_calibration(50_000, epsilon=1.0, base_rate=0.1, response_rate=0.5)
    edge, spread = math.tanh(0.5), 0.09
    noise = (1 - edge**2) / (4 * edge**2) + spread
    expected = math.sqrt(noise / (0.5 * plan.labels)) / spread
    assert plan.standard_error == pytest.approx(expected, rel=1e-9)
    assert plan.forecast > plan.standard_error
    assert plan.fitted + plan.held_out == 50_000
    assert plan.check_width == pytest.approx(1.645 / (edge * math.sqrt(10_000)), rel=1e-3)
    assert json.loads(plan.to_json())["labels"] == plan.labels
    assert "50,000 agents" in repr(plan)


@pytest.mark.parametrize("error", [0.05, 0.2])
def test_the_plan_is_the_least_for_its_error(error):
    goal = {"epsilon": 1.0, "base_rate": 0.3}
    plan = transfer.plan_calibration(standard_error=error, **goal)
    assert plan.standard_error <= error
    assert transfer.plan_calibration(plan.agents - 20, **goal).standard_error > error


def test_useless_plans_say_so():
    with pytest.warns(UtilityWarning, match=r"agents = 300 .* tell it to 0.2"):
        transfer.plan_calibration(300, epsilon=0.5, base_rate=0.05)


def test_the_forecast_is_near_what_fits_state():
    plan = transfer.plan_calibration(60_000, epsilon=4.0, base_rate=0.3)
    result = calibrate(60_000, shift=1.3)
    assert plan.forecast / 2 < result.intercept_error < 2 * plan.forecast


def test_the_curators_ledger_is_not_touched():
    budget = Budget(4.0, delta=1e-6)
    X, y = rows(4_000)
    learner = learners.PrivateSGD(loss="logistic", epsilon=4.0, delta=1e-6)
    model = learner.learn(X, y, budget=budget)
    left = budget.remaining
    result = transfer.calibrate(model, local.Agents(*rows(5_000, 1), epsilon=2.0))
    assert budget.remaining == left
    assert result.record == model.record
