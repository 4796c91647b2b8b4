"""The release: exact sums, noise of the right law, one budget, and nothing else that is seen."""

import dataclasses
import math
import warnings

import feature_reference as reference
import numpy as np
import pytest
from cases import each_case
from scipy.stats import kstest, norm

from hdp_fast import accounting
from hdp_fast.audit import lower_bound
from hdp_fast.budget import Budget
from hdp_fast.data import Chunks
from hdp_fast.data.goal import Goal
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError, UtilityWarning
from hdp_fast.learners import FeatureMap, SufficientStatistics, sufficient_statistics
from hdp_fast.learners.statistics_noise import MOST_BITS

PRICE = {"epsilon": 1.0, "delta": 1e-6}
FEATURES = FeatureMap.identity(3, norm_bound=2.0)
MAPS = {
    "identity": FEATURES,
    "constant": FeatureMap.identity(3, norm_bound=2.0, constant=True),
    "scaling": FeatureMap.scaling([(-2, 2)] * 3, constant=False),
}


def records(n=500, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, 3)) / 2 + np.eye(classes, 3)[y], y


X, Y = records()


def describe(features=FEATURES, **settings):
    goal = {"classes": [0, 1, 2]} if "label_bound" not in settings else {}
    return SufficientStatistics(features, **goal | settings)


# Without noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"second_moments": True}, {"label_bound": 1.0}])
def test_sums_without_noise_stay_below_what_an_integer_holds(settings):
    description = describe(**settings)
    for n in (1, 2**20, 2**21, 2**23, 2**31):
        bits = sufficient_statistics.choose_bits(description, n, Goal(math.inf, 1e-6))
        assert n * 4**bits <= 2**61
        assert bits <= MOST_BITS
        assert bits == MOST_BITS or n * 4 ** (bits + 1) > 2**60


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_without_noise_parts_have_the_sums_of_all(neighbors):
    description = describe(second_moments=True, neighbors=neighbors)
    chunks = Chunks([(X[:1], Y[:1]), (X[1:], Y[1:])])
    whole, parts = (
        description.release(*records, epsilon=math.inf, delta=1e-6)
        for records in ((X, Y), (chunks,))
    )
    assert whole.bits == parts.bits
    assert (whole.sums == parts.sums).all()
    assert (whole.moments == parts.moments).all()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("second", [False, True])
def test_without_noise_the_release_is_the_exact_sum(name, second):
    features = MAPS[name]
    statistics = describe(features, second_moments=second).release(
        X, Y, epsilon=math.inf, delta=1e-6
    )
    bits = statistics.bits
    assert bits == MOST_BITS
    # Where rows are shrunk to norm 1, a finer grid leaves a little more of them.
    expected = reference.label_sums(features, X, Y, 3, bits)
    assert np.abs(statistics.sums - expected).max() <= (3_000 if name == "constant" else 0)
    phi = features(X)
    expected = phi.T @ (np.eye(3)[Y] - 1 / 3)
    assert np.allclose(statistics.cross_moments, expected, atol=1e-3)
    assert (statistics.moments is not None) == second
    if second:
        if name != "constant":
            assert (statistics.moments == reference.second_sums(features, X, bits)).all()
        assert np.allclose(statistics.second_moments, phi.T @ phi, atol=1e-3)
    assert statistics.record is None
    assert statistics.n == 500


def test_targets_are_clipped_and_summed_exactly():
    targets = np.random.default_rng(1).normal(size=500) * 3
    statistics = describe(label_bound=2.0, second_moments=True).release(
        X, targets, epsilon=math.inf, delta=1e-6
    )
    expected = reference.target_sums(FEATURES, X, targets / 2, statistics.bits)
    assert (statistics.sums[:, 0] == expected).all()
    moments = FEATURES(X).T @ (targets.clip(-2, 2) / 2)
    assert np.allclose(statistics.cross_moments[:, 0], moments, atol=1e-3)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [0.5, 1.5, 2.5], [-7, 0, 9]])
def test_labels_may_be_texts_and_numbers(labels):
    statistics = describe(classes=labels[::-1]).release(
        X, np.array(labels)[Y], epsilon=math.inf, delta=1e-6
    )
    assert statistics.classes.tolist() == labels
    same = describe().release(X, Y, epsilon=math.inf, delta=1e-6)
    assert (statistics.sums == same.sums).all()
    model = statistics.solve(pool=X)
    assert set(model.predict(X)) <= set(labels)


def test_order_and_parts_of_the_records_change_nothing():
    order = np.random.default_rng(2).permutation(500)
    description = describe(second_moments=True)
    whole, shuffled, first, second = (
        description.release(X[rows], Y[rows], epsilon=math.inf, delta=1e-6)
        for rows in (slice(None), order, slice(0, 123), slice(123, None))
    )
    both = first + second
    for other in (shuffled, both):
        assert (other.sums == whole.sums).all()
        assert (other.moments == whole.moments).all()


# Noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", MAPS)
def test_the_noise_is_gaussian_with_the_stated_deviation(name, second, adds):
    """On zeros, where nothing but noise is released."""
    description = dataclasses.replace(
        describe(MAPS["identity"], second_moments=second), features=MAPS[name]
    )
    description = dataclasses.replace(
        description, neighbors="add_remove" if adds else "replace_one", ratio=1.3
    )
    zeros, labels = np.zeros((30, 3)), np.zeros(30, int)
    clean = description.release(zeros, labels, epsilon=math.inf, delta=1e-6)
    drawn = {"sums": [], "diagonal": [], "above": [], "count": []}
    stream = np.random.default_rng(5)
    rows, columns = np.triu_indices(clean.features.columns, 1)
    for _ in range(150):
        statistics = description.release(zeros, labels, **PRICE, random_state=stream)
        scale = 2.0**statistics.bits
        off = 2.0 ** (clean.bits - statistics.bits)
        noise = (statistics.sums - clean.sums / off) / (3 * scale) / statistics.sums_deviation
        drawn["sums"].extend(noise.ravel())
        if adds:
            drawn["count"].append((statistics.n - 30) / statistics.count_deviation)
        if second:
            assert (statistics.moments == statistics.moments.T).all()
            noise = (statistics.moments - clean.moments / off**2) / scale**2
            noise /= statistics.moments_deviation
            drawn["diagonal"].extend(np.diag(noise))
            drawn["above"].extend(noise[rows, columns] * math.sqrt(2))
    if adds:
        # The count stays above 0, which cuts its noise off.
        drawn["count"] = [x for x in drawn["count"] if x > -0.5]
        assert min(drawn.pop("count")) >= -29 / statistics.count_deviation
    for name, values in drawn.items():
        if values:
            assert kstest(values, norm.cdf).pvalue > 1e-6, name


def test_deviations_are_those_of_the_sensitivity():
    sigma = 1 / accounting.gaussian_mu(**PRICE)
    cases = {
        (False, "replace_one"): 2 * math.sqrt(2 / 3),
        (True, "replace_one"): math.sqrt(2),
        (False, "add_remove"): math.sqrt(2 / 3) / math.sqrt(0.98),
    }
    for (constant, neighbors), sensitivity in cases.items():
        features = MAPS["constant" if constant else "identity"]
        statistics = describe(features, neighbors=neighbors).release(X, Y, **PRICE)
        assert statistics.sums_deviation == pytest.approx(sensitivity * sigma, rel=1e-6)
        assert statistics.record.neighbors == neighbors
        assert statistics.record.numerics == "exact"


def test_a_stream_gives_the_same_release_and_two_draws_differ():
    description = describe(second_moments=True)
    first, second, third = (
        description.release(X, Y, **PRICE, random_state=seed) for seed in (3, 3, 4)
    )
    assert (first.sums == second.sums).all()
    assert (first.moments == second.moments).all()
    assert (first.sums != third.sums).any()


EPSILON, DELTA = 2.0, 0.05

# Privacy ---------------------------------------------------------------------------------------


def canary(description, pairs):
    """The release of the worst two records, seen along the direction in which they differ."""
    data, neighbor = pairs
    rest, labels = np.zeros((5, 2)), np.zeros(5, int)
    sides = [
        (np.vstack([rest, row[None]]), np.append(labels, label)) for row, label in (data, neighbor)
    ]
    clean = [description.release(*side, epsilon=math.inf, delta=1e-6) for side in sides]
    apart = clean[1].cross_moments - clean[0].cross_moments
    second = np.zeros((2, 2))
    if description.second_moments:
        second = clean[1].second_moments - clean[0].second_moments
    stream = np.random.default_rng(7)

    def mechanism(side):
        statistics = description.release(
            *sides[side], epsilon=EPSILON, delta=DELTA, random_state=stream
        )
        noise = statistics.cross_moments - clean[0].cross_moments
        score = (noise * apart).sum() / statistics.sums_deviation**2
        if description.second_moments:
            noise = statistics.second_moments - clean[0].second_moments
            score += (noise * second).sum() / statistics.moments_deviation**2
        return float(score)

    return mechanism


WORST = {
    "opposite rows, signed": (
        SufficientStatistics(FeatureMap.identity(2), classes=[0, 1, 2]),
        ((np.array([1.0, 0.0]), 0), (np.array([-1.0, 0.0]), 0)),
    ),
    "the same row, other label": (
        SufficientStatistics(FeatureMap.scaling([(0, 1)] * 2, constant=False, norm_bound=1.0),
                             classes=[0, 1]),
        ((np.array([1.0, 0.0]), 0), (np.array([1.0, 0.0]), 1)),
    ),
    "orthogonal rows, second moments": (
        SufficientStatistics(FeatureMap.identity(2), classes=[0, 1], second_moments=True,
                             ratio=0.3),
        ((np.array([1.0, 0.0]), 0), (np.array([-0.0272, 0.9996]), 0)),
    ),
}  # fmt: skip


def measure(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        return lower_bound(
            canary(*WORST[name]), 0, 1, delta=DELTA, runs=2_500, confidence=1 - 1e-6, threads=1
        )


@pytest.mark.thorough(cases=["the same row, other label"])
@pytest.mark.parametrize("name", WORST)
def test_a_canary_is_seen_and_no_farther_than_promised(name):
    assert 0.3 * EPSILON < measure(name) <= EPSILON


def test_a_third_of_the_noise_is_caught(monkeypatch):
    draw = sufficient_statistics._draw_noise
    monkeypatch.setattr(
        sufficient_statistics, "_draw_noise", lambda sigma, *others: draw(sigma / 3, *others)
    )
    assert measure("opposite rows, signed") > EPSILON


def test_the_budget_is_charged_before_anything_is_drawn():
    budget = Budget(1.5, delta=1e-5)
    statistics = describe().release(X, Y, **PRICE, budget=budget)
    assert budget.spent.epsilon == 1.0
    assert statistics.record.epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        describe().release(X, Y, **PRICE, budget=budget)
    assert budget.spent.epsilon == 1.0
    with pytest.raises(ParameterError, match="neighbor"):
        describe(neighbors="add_remove").release(X, Y, epsilon=0.1, delta=1e-6, budget=budget)


BAD = {
    "features": lambda: SufficientStatistics(np.eye(3), classes=[0, 1]),
    "no goal": lambda: SufficientStatistics(FEATURES),
    "two goals": lambda: SufficientStatistics(FEATURES, classes=[0, 1], label_bound=1.0),
    "one class": lambda: describe(classes=[0]),
    "repeated class": lambda: describe(classes=[0, 0]),
    "classes of objects": lambda: describe(classes=[{}, []]),
    "class NaN": lambda: describe(classes=[0.0, math.nan]),
    "label_bound": lambda: describe(label_bound=-1.0),
    "ratio": lambda: describe(ratio=0.0),
    "ratio as a text": lambda: describe(ratio="1"),
    "second_moments": lambda: describe(second_moments="yes"),
    "neighbors": lambda: describe(neighbors="local"),
    "epsilon": lambda: describe().release(X, Y, epsilon=-1, delta=1e-6),
    "tiny epsilon": lambda: describe().release(X, Y, epsilon=1e-15, delta=1e-15),
    "delta": lambda: describe().release(X, Y, epsilon=1, delta=0),
    "infinity with a budget": lambda: describe().release(
        X, Y, epsilon=math.inf, delta=1e-6, budget=Budget(1.0)
    ),
    "budget": lambda: describe().release(X, Y, **PRICE, budget=1.0),
    "random_state": lambda: describe().release(X, Y, **PRICE, random_state="x"),
    "unknown label": lambda: describe().release(X, Y + 1, **PRICE),
    "text labels": lambda: describe().release(X, Y.astype(str), **PRICE),
    "short labels": lambda: describe().release(X, Y[:-1], **PRICE),
    "no rows": lambda: describe().release(X[:0], Y[:0], **PRICE),
    "a number for rows": lambda: describe().release(1.0, Y, **PRICE),
    "columns": lambda: describe().release(X[:, :2], Y, **PRICE),
    "NaN": lambda: describe().release(X * math.nan, Y, **PRICE),
    "infinite target": lambda: describe(label_bound=1.0).release(X, Y / 0.0, **PRICE),
    "text targets": lambda: describe(label_bound=1.0).release(X, Y.astype(str), **PRICE),
}


@each_case("name", BAD)
def test_bad_input_is_refused_in_one_sentence_before_anything_is_spent(name):
    with np.errstate(all="ignore"), pytest.raises((ParameterError, ShapeError)) as caught:
        BAD[name]()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300


# Notes -----------------------------------------------------------------------------------------


def test_too_few_records_are_noted_before_anything_is_spent():
    with pytest.warns(UtilityWarning, match=r"n = 10 records.*the noise hides"):
        describe().release(X[:10], Y[:10], **PRICE)


def test_sums_within_their_noise_are_noted():
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(2_000, 3)) / 4
    labels = rng.integers(3, size=2_000)
    with pytest.warns(UtilityWarning, match="like noise|released sums"):
        describe().release(noise, labels, epsilon=0.1, delta=1e-6, random_state=1)


def test_a_clear_signal_is_not_noted():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        big, labels = records(20_000)
        describe().release(big, labels, **PRICE)


def test_of_sums_without_a_signal_99_in_100_are_noted():
    zeros, labels = np.zeros((1_000, 3)), np.zeros(1_000, int)
    stream, noted = np.random.default_rng(9), 0
    for _ in range(300):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            describe().release(zeros, labels, **PRICE, random_state=stream)
        noted += any("released sums" in str(one.message) for one in caught)
    assert 286 <= noted <= 300


def test_private_values_change_no_shape_and_raise_nothing():
    odd = X.copy()
    odd[0] = [1e300, -1e300, 1e-300]
    usual, strange = (describe().release(rows, Y, **PRICE) for rows in (X, odd))
    assert usual.sums.shape == strange.sums.shape
    assert usual.sums_deviation == strange.sums_deviation
    assert dataclasses.asdict(usual.record) == dataclasses.asdict(strange.record)
