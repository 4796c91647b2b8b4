"""MomentAdaptation: what a replaced record moves, what is learned, warnings and bad parameters."""

import itertools
import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from adaptation_problems import fit

from hdp_fast import accounting
from hdp_fast.adaptation import MomentAdaptation, source_optimum
from hdp_fast.adaptation.privacy import Privacy
from hdp_fast.adaptation.residual_moments import (
    MomentProblem,
    ResidualSettings,
    denoise,
    release_residuals,
    weigh_constants,
)
from hdp_fast.budget import Budget
from hdp_fast.data import Chunks
from hdp_fast.data.goal import Goal
from hdp_fast.exceptions import (
    BudgetExceeded,
    HdpFastError,
    ParameterError,
    ShapeError,
    UtilityWarning,
)
from hdp_fast.learners import FeatureMap, ReleasedStatistics, sufficient_statistics

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes the coins")

PRIVACY = Privacy(Goal(2.0, 1e-3), "exact")
RATIOS = (0.3, 0.8, 1.2, 5.0)


def domains(m=1_500, n=600, d=4, shift=0.5, seed=0):
    """A source and a target whose coefficients differ in the first feature."""
    coins = np.random.default_rng(seed)
    w = np.linspace(0.5, -0.5, d)
    tables = []
    for count, change in ((m, 0.0), (n, shift)):
        X = coins.normal(size=(count, d))
        tables += [X, X @ (w + change * np.eye(d)[0]) + 0.3 * coins.normal(size=count)]
    return tables


@pytest.fixture
def no_noise(monkeypatch):
    """The deviations of the noise, which is not drawn."""
    deviations = {}

    def keep_sums(sigma, size, stream):
        deviations["sums"] = Fraction(sigma)
        return np.zeros(size, np.int64)

    def keep_moments(noise, columns, stream):
        deviations["diagonal"], deviations["above"] = map(Fraction, (noise.diagonal, noise.above))
        return np.zeros((columns, columns), np.int64)

    monkeypatch.setattr(sufficient_statistics, "_draw_noise", keep_sums)
    monkeypatch.setattr(sufficient_statistics, "_draw_symmetric", keep_moments)
    return deviations


def moved(one, other, deviations):
    """The exact squared mu between the releases of two neighbors."""
    sums = [int(a) - int(b) for a, b in zip(one.sums[:, 0], other.sums[:, 0], strict=True)]
    total = sum(Fraction(change) ** 2 for change in sums) / deviations["sums"] ** 2
    change = one.moments.astype(object) - other.moments.astype(object)
    for i, j in itertools.combinations_with_replacement(range(len(change)), 2):
        assert change[i, j] == change[j, i]
        total += (
            Fraction(int(change[i, j])) ** 2 / deviations["diagonal" if i == j else "above"] ** 2
        )
    return total


def release_of(rows, residuals, ratio, privacy):
    settings = ResidualSettings(clip=0.5, ratio=ratio, privacy=privacy)

    def fold(task):
        return task(rows, residuals)

    # The labels are the residuals of the model that predicts 0.
    return release_residuals(FeatureMap.identity(2), np.zeros(2), fold, len(rows), settings)


def release(records, ratio):
    rows, residuals = (np.array(part) for part in zip(*records, strict=True))
    return release_of(rows, residuals, ratio, PRIVACY)


def largest_mu(ratio, deviations):
    """The largest squared mu over all pairs of neighbors of two records on a grid."""
    angles = np.arange(0, 24) * math.pi / 24
    rows = [(math.cos(angle), math.sin(angle)) for angle in angles]
    rows += [(0.0, 0.0), (0.4, -0.2), (7.0, 7.0)]
    records = [(row, residual) for row in rows for residual in (-9.0, -0.5, 0.1, 0.5)]
    released = [release([record, ((0.3, 0.1), 0.2)], ratio) for record in records]
    return max(moved(one, other, deviations) for one, other in itertools.combinations(released, 2))


@pytest.mark.parametrize("ratio", RATIOS)
def test_no_neighbors_move_the_release_by_more_than_the_budget(no_noise, ratio):
    promised = accounting.gaussian_mu(PRIVACY.goal.epsilon, PRIVACY.delta) ** 2
    largest = largest_mu(ratio, no_noise)
    # The grid of angles misses the worst pair by little.
    assert 0.98 * promised < largest <= promised * (1 + 1e-9)


@pytest.mark.parametrize("name", ["sums", "diagonal", "above"])
def test_less_noise_is_seen(no_noise, name):
    """The check above fails where one deviation is smaller than it must be."""
    promised = accounting.gaussian_mu(PRIVACY.goal.epsilon, PRIVACY.delta) ** 2
    release([((0.0, 0.0), 0.0)], 1.2)
    smaller = {**no_noise, name: no_noise[name] / Fraction(6, 5)}
    rows = [(math.cos(a), math.sin(a)) for a in np.arange(0, 24) * math.pi / 24]
    released = [release([(row, r)], 1.2) for row in rows for r in (-0.5, 0.5)]
    pairs = itertools.combinations(released, 2)
    assert max(moved(one, other, smaller) for one, other in pairs) > 1.01 * promised


def test_a_canary_is_seen_as_often_as_promised():
    """The best test between two neighbors has the mu of the release, and no more."""
    rows = np.zeros((3, 2))
    draws = []
    for row, residual in (((1.0, 0.0), 0.5), ((0.8, 0.6), -0.5)):
        rows[0] = row
        labels = np.array([residual, 0.0, 0.0])
        privacy = PRIVACY.change(random_state=np.random.default_rng(len(draws)))
        released = [release_of(rows, labels, 1.2, privacy) for _ in range(1_500)]
        draws.append(
            np.array(
                [
                    (
                        *r.cross_moments[:, 0] / r.sums_deviation,
                        *np.diag(r.second_moments) / r.moments_deviation,
                        r.second_moments[0, 1] * math.sqrt(2) / r.moments_deviation,
                    )
                    for r in released
                ]
            )
        )
    change = draws[0].mean(axis=0) - draws[1].mean(axis=0)
    scores = [part @ change / np.linalg.norm(change) for part in draws]
    seen = (scores[0].mean() - scores[1].mean()) / math.sqrt(
        (scores[0].var() + scores[1].var()) / 2
    )
    promised = accounting.gaussian_mu(PRIVACY.goal.epsilon, PRIVACY.delta)
    assert 0.8 * promised < seen < 1.15 * promised
    # All coordinates have the noise that they are priced by.
    deviations = np.concatenate([part - part.mean(axis=0) for part in draws]).std(axis=0)
    np.testing.assert_allclose(deviations, 1, atol=0.08)


def test_it_learns_what_differs():
    data = domains()
    model = MomentAdaptation(epsilon=4.0, delta=1e-5, clip=0.6).fit(*data, random_state=1)
    truth = np.linspace(0.5, -0.5, 4) + 0.5 * np.eye(4)[0]
    assert np.linalg.norm(model.coef_ - truth) < 0.4 * np.linalg.norm(model.source_coef_ - truth)
    assert model.signal_ > 5


def test_without_noise_it_is_as_good_as_training_on_the_target():
    X, y, Z, t = domains(n=4_000)
    model = MomentAdaptation(epsilon=math.inf, clip=5.0).fit(X, y, Z, t)
    best = np.linalg.lstsq(Z, t, rcond=None)[0]
    assert model.record_ is None
    assert model.signal_ == math.inf
    np.testing.assert_allclose(model.coef_, best, atol=0.06)


def split_by_columns(m, n, place, other, seed=0):
    """A constant, and a column that is one in the source and another number in the target."""
    coins = np.random.default_rng(seed)
    X, Z = coins.uniform(-1, 1, size=(m, 4)), coins.uniform(-1, 1, size=(n, 4))
    w = np.array([0.5, -0.3, 0.2, 0.0])
    pairs = [[np.ones(m), np.ones(m)], [np.ones(n), np.full(n, other)]]
    rows = [
        np.column_stack([part, *(pair if place == "first" else pair[::-1])]) / math.sqrt(6)
        for part, pair in zip((X, Z), pairs, strict=True)
    ]
    labels = [part @ w + 0.6 + 0.1 * coins.normal(size=len(part)) for part in (X, Z)]
    return rows[0], labels[0], rows[1], labels[1]


@pytest.mark.parametrize("other", [-1.0, 0.0])
@pytest.mark.parametrize(("place", "epsilon", "n"), [("last", 1.0, 300), ("first", 4.0, 2_000)])
def test_a_column_that_only_the_source_holds_constant_is_left_out(place, epsilon, n, other):
    """The intercept's column is the last one, or the release finds it; the other gets nothing."""
    X, y, Z, t = split_by_columns(2_000, n, place, other)
    for seed in range(5):
        model = MomentAdaptation(epsilon=epsilon).fit(X, y, Z, t, random_state=seed)
        for coef in (model.coef_, model.source_coef_):
            assert np.square(Z @ coef - t).mean() < 0.1 * t.var()
        inside, outside = (-2, -1) if place == "first" else (-1, -2)
        assert abs(model.source_coef_[outside]) < 0.05 * abs(model.source_coef_[inside])


def test_without_noise_the_intercept_goes_where_it_holds():
    X, y, Z, t = split_by_columns(500, 100, "first", 0.0)
    model = MomentAdaptation(epsilon=math.inf).fit(X, y, Z, t)
    assert model.coef_[-1] == 0
    assert abs(model.coef_[-2] / math.sqrt(6) - 0.6) < 0.05
    assert model.solve(penalty=1.0)[-1] == 0


def test_one_constant_alone_is_a_column_as_any_other():
    """Where it is none in the target, residuals and predictions use the same number."""
    X, y, Z, t = split_by_columns(2_000, 3_000, "first", 0.0)
    X, Z = np.delete(X, -2, axis=1), np.delete(Z, -2, axis=1)
    model = MomentAdaptation(epsilon=math.inf, clip=2).fit(X, y, Z, t)
    np.testing.assert_allclose(X @ model.source_coef_, y, atol=0.5)
    # All rows of the target have 0 there: no intercept can be learned, and slopes stay.
    np.testing.assert_allclose(model.coef_[:4], model.source_coef_[:4], atol=0.2)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("value", [1e-300, 1e-12, 1e12])
def test_constants_of_any_size_leave_finite_coefficients(value):
    X, y, Z, t = split_by_columns(200, 50, "last", 1.0)
    X[:, -2], Z[:, -2] = value, 0.0
    model = MomentAdaptation(epsilon=1.0, delta=1e-3).fit(X, y, Z, t, random_state=0)
    assert np.isfinite(model.coef_).all()


def test_noise_alone_leaves_what_the_source_says():
    """Ten private records at epsilon = 1: the mean over draws is not far behind the source."""
    coins = np.random.default_rng(3)
    X = np.column_stack([coins.uniform(-1, 1, size=(3_000, 9)), np.ones(3_000)])
    w = np.append(coins.normal(size=9) / 5, 0.3)
    y = X @ w + 0.2 * coins.normal(size=3_000)
    model, errors = MomentAdaptation(epsilon=1.0), []
    for seed in range(20):
        coef = model.fit(X[:1_000], y[:1_000], X[1_000:1_010], y[1_000:1_010], random_state=seed)
        errors.append(np.square(X[1_010:] @ coef.coef_ - y[1_010:]).mean() / y.var())
    own = np.square(X[1_010:] @ model.source_coef_ - y[1_010:]).mean() / y.var()
    assert np.mean(errors) < own + 0.1


def test_weights_of_constants_are_those_of_bayes_rule():
    """Against the same posterior by a sum over a grid of what the target may hold."""
    from types import SimpleNamespace

    expected, deviation = np.array([40.0, 40.0, 40.0]), 12.0
    for seen in ([38.0, -30.0, 5.0], [-41.0, 44.0, 39.0], [10.0, 20.0, 15.0]):
        moments = np.zeros((5, 5))
        moments[1, 2:] = seen
        release = SimpleNamespace(
            second_moments=moments, moments_deviation=deviation * math.sqrt(2)
        )
        grid = np.linspace(-40, 40, 20_001)
        normal = lambda x: np.exp(-np.square(x / deviation) / 2)  # noqa: E731
        ratios = np.array([normal(x - 40) / normal(x - grid).mean() for x in seen])
        want = np.array([0.025, 0.025, 0.95]) * ratios
        got = weigh_constants(release, expected)
        np.testing.assert_allclose(got, want / want.sum(), rtol=1e-3)


def test_moments_follow_the_means_that_are_released():
    """A target far from the source's means: the estimate of its moments is nearer than before."""
    coins = np.random.default_rng(0)
    X = np.column_stack([coins.normal(size=(2_000, 6)), np.ones(2_000)])
    Z = X[:500] + np.append(np.full(6, 0.7), 0)
    model = MomentAdaptation(epsilon=2.0).fit(X, X[:, 0], Z, Z[:, 0] + 1, random_state=0)
    problem = model._problem
    z = model.statistics_.features(Z)
    truth, k = z.T @ z, len(problem.sums)
    found, left = denoise(problem)
    alone, _ = denoise(problem._replace(intercept=None))
    assert np.linalg.norm(found - truth[:k, :k]) < np.linalg.norm(alone - truth[:k, :k])
    assert 0 < left <= problem.moments_deviation
    exact = problem._replace(moments_deviation=0.0)
    np.testing.assert_array_equal(denoise(exact)[0], problem.moments)


def test_moments_that_noise_hides_count_as_noise():
    """Other moments of the target are no news where they are cut; that they are there is."""
    coins, k, s = np.random.default_rng(3), 30, 20.0

    def draw(deviation):
        """A symmetric matrix whose entries above the diagonal have half of the variance."""
        entries = coins.normal(size=(k, k)) * deviation
        return (entries + entries.T) / 2

    problem = MomentProblem(
        sums=np.zeros(k), moments=np.zeros((k, k)), size=500, sums_deviation=s,
        moments_deviation=s, source_moments=np.eye(k) / k, shape=np.ones(k), variance=1.0,
        centers=np.zeros((1, k)), priors=np.ones(1), constants=np.zeros(1), intercept=None,
    )  # fmt: skip
    lefts = []
    for deviation in (0.0, s, 2 * s):
        moments = 500 * problem.source_moments + draw(s) + draw(deviation)
        lefts.append(denoise(problem._replace(moments=moments))[1])
    assert lefts[0] < 0.2 * s < lefts[1] < lefts[2]


def test_classes_are_learned():
    X, y, Z, t = domains(shift=-1.0)
    data = X, (y > 0).astype(int), Z, (t > 0).astype(int)
    model = MomentAdaptation(epsilon=4.0, task="classification").fit(*data, random_state=2)
    right = [((Z @ w > 0) == (t > 0)).mean() for w in (model.source_coef_, model.coef_)]
    assert right[1] > right[0] + 0.1
    assert set(model.predict(Z)) == {0, 1}


def test_the_model_is_a_function_of_the_release():
    X, y, Z, t = domains()
    settings = {"epsilon": 1.0}
    model = MomentAdaptation(**settings).fit(X, y, Z, t, random_state=3)
    released = ReleasedStatistics.from_json(model.statistics_.to_json())
    np.testing.assert_array_equal(released.sums, model.statistics_.sums)
    coef = model.solve(1e9)
    np.testing.assert_allclose(coef, model.source_coef_, atol=1e-6)
    assert np.linalg.norm(model.solve(1e-3) - coef) > 0.01
    with pytest.raises(ParameterError, match="penalty = 0"):
        model.solve(0)


def test_the_order_of_target_records_does_not_show():
    X, y, Z, t = domains()
    order = np.random.default_rng(0).permutation(len(t))
    one, other = (
        MomentAdaptation(epsilon=1.0).fit(X, y, *part, random_state=4)
        for part in ((Z, t), (Z[order], t[order]))
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_extreme_private_records_are_bounded_silently():
    X, y, Z, t = domains()
    for value in (1e300, -1e300, 1.7e308):
        rows, labels = Z.copy(), t.copy()
        rows[0], labels[1], labels[2], rows[2] = value, -value, value, -value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for clip in (0.6, 1e-20):
                model = MomentAdaptation(epsilon=2.0, clip=clip).fit(X, y, rows, labels)
                assert np.isfinite(model.coef_).all()


def test_a_gap_within_its_noise_is_noted_and_keeps_most_of_the_source():
    X, y, Z, t = domains(n=60, shift=0.0)
    model = MomentAdaptation(epsilon=0.3, delta=1e-5)
    with pytest.warns(UtilityWarning, match="signal_ = .*source_coef_ is about as good"):
        model.fit(X, y, Z, t, random_state=5)
    moved = np.linalg.norm(model.coef_ - model.source_coef_)
    assert moved < 0.4 * np.linalg.norm(model.source_coef_)


def test_too_few_records_are_noted_before_anything_is_spent():
    X, y, Z, t = domains(n=5)
    model = MomentAdaptation(epsilon=0.3)
    with (
        pytest.warns(UtilityWarning, match="n = 5 target records, but at epsilon = 0.3"),
        pytest.raises(BudgetExceeded),
    ):
        model.fit(X, y, Z, t, budget=Budget(0.1, 1e-3))
    assert not hasattr(model, "coef_")


def test_a_delta_above_one_in_n_is_noted():
    X, y, Z, t = domains()
    with pytest.warns(UtilityWarning, match="delta = 0.01 is above 1 / n"):
        MomentAdaptation(epsilon=1.0, delta=0.01).fit(X, y, Z, t)


def test_a_budget_is_charged_once():
    budget = Budget(3.0, 1e-4)
    model = MomentAdaptation(epsilon=1.0, delta=1e-5).fit(*domains(), budget=budget)
    assert budget.remaining.epsilon == 2.0
    assert (model.record_.epsilon, model.record_.neighbors) == (1.0, "replace_one")
    fields = json.loads(model.result_.to_json())
    assert fields["record"]["epsilon"] == 1.0
    assert fields["coef"] == model.coef_.tolist()


def test_the_source_needs_no_column_that_varies_and_no_second_record():
    coef = [
        MomentAdaptation(epsilon=1.0).fit(
            np.ones((m, 2)), np.ones(m), np.ones((90, 2)), np.ones(90)
        )
        for m in (1, 2, 50)
    ]
    assert all(np.isfinite(model.coef_).all() for model in coef)


WRONG = [
    ({"epsilon": 0.0}, "epsilon = 0"),
    ({"delta": 1.0}, "delta = 1"),
    ({"task": "ranking"}, "task = 'ranking'"),
    ({"directions": 0}, "directions = 0"),
    ({"whitening": 1.5}, "whitening = 1.5"),
    ({"clip": -1.0}, "clip = -1"),
    ({"source_penalty": 0.0}, "source_penalty = 0"),
    ({"ratio": 1e9}, "ratio = "),
    ({"epsilon": math.inf, "budget": Budget(1.0, 1e-6)}, "only a private run"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_bad_parameters_are_refused_before_anything_is_spent(settings, message):
    budget = Budget(9.0, 1e-3)
    with pytest.raises(ParameterError, match=message):
        fit(MomentAdaptation, {"epsilon": 1.0, "budget": budget, **settings}, domains())
    assert budget.remaining.epsilon == 9.0


def test_bad_records_are_refused():
    X, y, Z, t = domains()
    model = MomentAdaptation(epsilon=1.0)
    with pytest.raises(HdpFastError, match="call fit first"):
        model.solve(1.0)
    with pytest.raises(ShapeError, match="X_source has 3 columns"):
        model.fit(X[:, :3], y, Z, t)
    with pytest.raises(ParameterError, match="target"):
        model.fit(X, y, np.where(Z > 0, np.nan, Z), t)
    with pytest.raises(ParameterError, match="only entries of 0"):
        model.fit(0 * X, y, Z, t)
    with pytest.raises(ParameterError, match="squares must be finite"):
        model.fit(1e200 * X, y, Z, t)
    with pytest.raises(ParameterError, match="y_source has entries beyond"):
        model.fit(X, 1e200 * y, Z, t)


# Parts --------------------------------------------------------------------------------------------

PARTED = np.random.default_rng(8)
SOURCE_X, TARGET_X = PARTED.normal(size=(500, 4)), PARTED.normal(size=(2_000, 4)) * 3
WEIGHTS = np.array([1.0, -0.5, 0.3, 0.0])
SOURCE_Y, TARGET_Y = SOURCE_X @ WEIGHTS, TARGET_X @ (WEIGHTS + 0.2)
PEOPLE = PARTED.integers(0, 700, 2_000)
CUTS = list(itertools.pairwise((0, 0, 3, 900, 2_000)))


def frame_of_target(labels):
    frame = pd.DataFrame(TARGET_X, columns=list("abcd"))
    return frame.assign(y=labels, person=PEOPLE)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("epsilon", [2.0, math.inf])
def test_a_target_in_parts_has_the_bits_of_one_array(tmp_path, task, epsilon):
    labels = [SOURCE_Y, TARGET_Y]
    if task == "classification":
        labels = [(y > 0).astype(int) for y in labels]
    model = MomentAdaptation(epsilon=epsilon, delta=1e-5, task=task)
    source = (SOURCE_X, labels[0])
    whole = model.fit(*source, TARGET_X, labels[1], random_state=1).result_.to_json()
    frame = frame_of_target(labels[1])
    for place, (start, end) in enumerate(CUTS):
        frame[start:end].to_csv(tmp_path / f"{place}.csv", index=False)
    pairs = [(TARGET_X[start:end], labels[1][start:end]) for start, end in CUTS]
    files = [tmp_path / f"{place}.csv" for place in range(1, len(CUTS))]
    for chunks in (
        Chunks(pairs),
        Chunks(files[::-1], columns=list("abcd"), label="y", workers=2),
    ):
        assert model.fit(*source, chunks, random_state=1).result_.to_json() == whole


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_source_in_parts_has_the_bits_of_one_array(tmp_path, monkeypatch, task):
    # Blocks that no part's end meets.
    monkeypatch.setattr(source_optimum, "_CHUNK", 96)
    labels = [SOURCE_Y, TARGET_Y]
    if task == "classification":
        labels = [(y > 0).astype(int) for y in labels]
    model = MomentAdaptation(epsilon=2.0, delta=1e-5, task=task)
    arrays = SOURCE_X, labels[0], TARGET_X, labels[1]
    whole = model.fit(*arrays, random_state=1).result_.to_json()
    frame = pd.DataFrame(SOURCE_X, columns=list("abcd")).assign(y=labels[0])
    cuts = list(itertools.pairwise((0, 0, 1, 97, 300, 500)))
    for place, (start, end) in enumerate(cuts[1:]):
        frame[start:end][list("dcbay")].to_csv(tmp_path / f"{place}.csv", index=False)
    pairs = [(SOURCE_X[start:end], labels[0][start:end]) for start, end in cuts]
    target = Chunks([frame_of_target(labels[1])], columns=list("abcd"), label="y")
    for chunks in (Chunks(pairs), Chunks(tmp_path, label="y", workers=2)):
        ours = model.fit(chunks, None, target, random_state=1)
        assert ours.result_.to_json() == whole
    assert ours.feature_names_in_ == tuple("abcd")


def test_a_source_of_people_or_other_columns_is_refused():
    frame = pd.DataFrame(SOURCE_X, columns=list("abcd")).assign(y=SOURCE_Y, person=1)
    target = frame_of_target(TARGET_Y)[list("abcd")]
    model = MomentAdaptation(epsilon=2.0, delta=1e-5)
    for settings, text in (
        ({"ids": "person"}, "protects rows and not people"),
        ({}, "X_source also has 'person'"),
        ({"columns": list("abc")}, "X_source lacks 'd'"),
    ):
        with pytest.raises(ParameterError, match=text):
            model.fit(Chunks([frame], label="y", **settings), None, target, TARGET_Y)


def test_people_in_parts_of_the_target_are_those_of_one_array():
    model = MomentAdaptation(epsilon=2.0, delta=1e-5)
    source, settings = (SOURCE_X, SOURCE_Y), {"rows_per_person": 2}
    arrays = (TARGET_X, TARGET_Y)
    whole = model.fit(*source, *arrays, ids=PEOPLE, random_state=1, **settings).result_.to_json()
    frame = frame_of_target(TARGET_Y)
    parts = [frame[start:end] for start, end in CUTS]
    budget = Budget(2.0, 1e-5, neighbors="replace_person")
    chunks = Chunks(parts, label="y", ids="person", **settings)
    ours = model.fit(*source, chunks, random_state=1, budget=budget)
    assert ours.result_.to_json() == whole
    assert budget.spent == (2.0, 1e-5)


@pytest.mark.parametrize(
    ("target", "more", "error", "text"),
    [
        (Chunks([TARGET_X]), {}, ParameterError, "the parts have no labels"),
        (Chunks([(TARGET_X, TARGET_Y)]), {"y_target": TARGET_Y}, ParameterError, "beside Chunks"),
        (Chunks([(TARGET_X, TARGET_Y)]), {"ids": PEOPLE}, ParameterError, "ids were passed"),
        (Chunks([(TARGET_X[:, 1:], TARGET_Y)]), {}, ShapeError, "4 columns"),
        (Chunks([(TARGET_X * np.nan, TARGET_Y)]), {}, ParameterError, "target: X"),
        (TARGET_X, {}, ParameterError, "y_target = None"),
    ],
)
def test_targets_in_parts_are_refused_before_anything_is_spent(target, more, error, text):
    budget = Budget(2.0, 1e-5)
    model = MomentAdaptation(epsilon=2.0, delta=1e-5)
    with pytest.raises(error, match=text):
        model.fit(SOURCE_X, SOURCE_Y, target, budget=budget, **more)
    assert budget.spent.epsilon == 0
