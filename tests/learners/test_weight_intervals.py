"""learners.weight_noise, a private module: how often intervals of weights cover, of the fit without
noise, and of the population's.

`python tests/learners/test_weight_intervals.py` prints the shares of 1,000 simulated tables.
"""

import numpy as np
import pytest

from hdp_fast.data import Label, Number, Schema
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.learners import (
    CenteredLinear,
    FeatureMap,
    StatisticsModel,
    SufficientStatistics,
    centered_targets,
)
from hdp_fast.learners.centered_linear import CenteredModel
from hdp_fast.learners.centered_rows import WholeRows
from hdp_fast.learners.centered_targets import release_targets
from hdp_fast.learners.target_model import make_pairs
from hdp_fast.learners.weight_noise import population_weights, weight_covariances

COLUMNS, N, TWO_SIDED = 4, 20_000, 1.959964
FEATURES = FeatureMap.identity(COLUMNS + 1, norm_bound=4.0)
STATISTICS = {
    "classes": SufficientStatistics(FEATURES, classes=[0, 1], second_moments=True),
    "targets": SufficientStatistics(FEATURES, label_bound=1.0, second_moments=True),
}
MIXTURE = np.random.default_rng(0).normal(size=(COLUMNS, COLUMNS)) * 0.4 + np.eye(COLUMNS)


def draw(random, n, kind):
    """Rows of a population whose columns hang together, and their labels."""
    X = np.clip(random.normal(size=(n, COLUMNS)) @ MIXTURE * 0.6, -1.8, 1.8)
    score = X @ [1.0, -0.5, 0.3, 0.0]
    rows = np.column_stack([X, np.ones(n)])
    if kind == "classes":
        return rows, (score + random.logistic(size=n) > 0).astype(int)
    return rows, np.clip(score / 4 + random.normal(0, 0.2, n), -1, 1)


def fit(rows, labels, kind, penalty=0.0):
    """The same least squares without noise."""
    features = FEATURES(rows)
    parts = np.column_stack([0.5 - labels, labels - 0.5]) if kind == "classes" else labels[:, None]
    second = features.T @ features / len(rows) + penalty * np.eye(COLUMNS + 1)
    return np.linalg.solve(second, features.T @ parts / len(rows))[:, -1]


def covers(coefficients, covariances, truth):
    deviations = np.sqrt(np.diag(covariances[-1]))
    return np.abs(coefficients[:, -1] - truth) < TWO_SIDED * deviations


def measure(tables, kind):
    """Shares of intervals that cover, of each coefficient: without noise, and of the population."""
    truth = fit(*draw(np.random.default_rng(1), 1_000_000, kind), kind)
    without, population = [], []
    for seed in range(tables):
        rows, labels = draw(np.random.default_rng([2, seed]), N, kind)
        released = STATISTICS[kind].release(
            rows, labels, epsilon=2.0, delta=1e-6, random_state=seed
        )
        model = released.solve()
        clean = fit(rows, labels, kind, model.penalty)
        without.append(covers(model.coefficients, model.covariances, clean))
        if model.population is not None:
            population.append(covers(*model.population, truth))
    return np.mean(without, axis=0), np.mean(population, axis=0) if population else None


# Moments of squares, too, stand out of their noise.
SLOPES, EPSILON = 20_000, 4.0


def release_slopes(rows, targets, seed):
    """A regression's release, and what went into its slopes."""
    unit, seen = Rows.within((-2, 2), COLUMNS), {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_learn_slopes", "shrink_by_evidence", "join_cross_moments", "release_square"):
            function = getattr(centered_targets, name)

            def call(*arguments, name=name, function=function, **settings):
                made = function(*arguments, **settings)
                seen.setdefault(name, []).append((arguments, made))
                return made

            patch.setattr(centered_targets, name, call)
        goal = Goal(EPSILON, 1e-6, random_state=seed)
        records = WholeRows(unit.plain(rows[:, :-1]), targets)
        made = release_targets(unit, records, goal, name="here")
    return CenteredModel(made.rows, made.model, "evidence", made.record, None), seen


def shrink_rows(rows, bound):
    return rows * np.minimum(1, bound / np.linalg.norm(rows, axis=1))[:, None]


def fit_without_noise(seen):
    """The same penalties, first slopes and clips, with the moments of the rows themselves."""
    (_, records, (centered, law, constant), bound, _), _ = seen["_learn_slopes"][0]
    rows, targets = make_pairs(centered, law, constant, records.rows, records.labels)
    (first_arguments, first), (_, last) = seen["shrink_by_evidence"]
    rows = shrink_rows(rows, bound)[:, :-1]
    moments, cross = rows.T @ rows / len(rows), rows.T @ targets / len(rows)
    clip = min(centered_targets._RESIDUAL_REACH * seen["release_square"][0][1] ** 0.5, 1)
    residuals = (targets - rows @ first.coefficients).clip(-clip, clip)
    again = rows.T @ residuals / len(rows) + moments @ first.coefficients
    share = seen["join_cross_moments"][0][1].share
    penalty = np.linalg.inv(last.gain) - first_arguments[0]
    return np.linalg.solve(moments + penalty, (1 - share) * cross + share * again)


def measure_slopes(tables, people):
    """The same of a regression's slopes, for its rows, by the intervals that summary has."""
    rows, targets = draw(np.random.default_rng(1), people, "targets")
    without, population = [], []
    for seed in range(tables):
        table = draw(np.random.default_rng([4, seed]), SLOPES, "targets")
        released, seen = release_slopes(*table, seed)
        model, law = released.model, released.model.law
        width = max(law.high - law.mean, law.mean - law.low)
        covariances = weight_covariances(released)[:, :-1, :-1]
        weights = model.weights[:-1, None]
        without.append(covers(weights, covariances, width * fit_without_noise(seen)))
        centered = released.rows(rows[:, :-1])
        shrunk = shrink_rows(centered * ([1] * (centered.shape[1] - 1) + [0]), model.norm_bound)
        shrunk[:, -1] = 1
        truth = np.linalg.solve(shrunk.T @ shrunk, shrunk.T @ targets.clip(law.low, law.high))
        fit = population_weights(model)
        if fit is not None:
            population.append(covers(fit[0][:-1], fit[1][:, :-1, :-1], truth[:-1]))
    return np.mean(without, axis=0), population and np.mean(population, axis=0)


def spread_and_stated(fits, n, epsilon, kind):
    """Deviations of a descent's weights over fits of one table, and what the models state."""
    columns = {f"x{place}": Number(-2, 2) for place in range(COLUMNS)}
    label = Label("y", above=0) if kind == "classes" else Label("y", bounds=(-1, 1))
    learner = CenteredLinear(Schema(label, columns), epsilon=epsilon, delta=1e-6)
    rows, labels = draw(np.random.default_rng(3), n, kind)
    table = {f"x{place}": rows[:, place] for place in range(COLUMNS)} | {"y": labels}
    models = [learner.learn(table, random_state=seed) for seed in range(fits)]
    ends = [model.weights[:, [0, -1]] * [kind == "classes", 1] for model in models]
    weights = np.array([last - first for first, last in np.moveaxis(ends, 2, 1)])
    # The factor at the end, which moves no weight through 0, is taken out.
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    weights *= lengths.mean() / lengths
    stated = [model.deviations[:, 0] for model in models]
    assert {model.method for model in models} == {"descent"}
    return np.std(weights, axis=0), np.mean(stated, axis=0)


@pytest.mark.parametrize("kind", ["classes", "targets"])
@pytest.mark.parametrize(("n", "epsilon"), [(400, 1.0), (2_000, 1.0), (10_000, 4.0)])
def test_descents_state_about_as_much_noise_as_they_have_or_more(n, epsilon, kind):
    spread, stated = spread_and_stated(40, n, epsilon, kind)
    if kind == "targets":
        # That of the mean is no part of what is stated.
        spread, stated = spread[:-1], stated[:-1]
    # 40 fits tell a deviation to a ninth of it.
    assert (spread < 1.5 * stated).all()
    assert np.median(spread / stated) > 0.1


@pytest.mark.parametrize("kind", STATISTICS)
def test_intervals_cover_in_most_of_a_hundred_tables(kind):
    # All five coefficients, 100 tables: .95 give or take .022 for each.
    without, population = measure(100, kind)
    assert abs(without.mean() - 0.95) < 0.035
    # Only the labels of two classes have a public square.
    assert (population is None) == (kind == "targets")
    if population is not None:
        assert abs(population.mean() - 0.95) < 0.035


def test_intervals_of_slopes_cover_in_most_of_sixty_tables():
    # All eight weights, 60 tables, and a population of which 300,000 are seen.
    without, population = measure_slopes(60, 300_000)
    assert abs(without.mean() - 0.95) < 0.04
    assert abs(population.mean() - 0.95) < 0.04


def test_slopes_tell_the_population_only_where_moments_stand_out(monkeypatch):
    table = draw(np.random.default_rng(5), 2_000, "targets")
    released, _ = release_slopes(*table, 1)
    assert population_weights(released.model) is None
    assert (np.diag(weight_covariances(released)[0])[:-1] > 0).all()


def test_population_needs_moments_that_stand_out_of_their_noise():
    rows, labels = draw(np.random.default_rng(3), 1_000, "classes")
    released = STATISTICS["classes"].release(rows, labels, epsilon=0.5, delta=1e-6)
    assert released.solve().population is None


def test_population_is_kept_in_the_text():
    rows, labels = draw(np.random.default_rng(3), N, "classes")
    model = STATISTICS["classes"].release(rows, labels, epsilon=2.0, delta=1e-6).solve()
    again = StatisticsModel.from_json(model.to_json())
    for mine, theirs in zip(model.population, again.population, strict=True):
        np.testing.assert_array_equal(mine, theirs)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    for each in STATISTICS:
        of_fit, of_population = measure(1_000, each)
        print(f"{each}: fit without noise {of_fit.round(3)}, mean {of_fit.mean():.3f}")
        if of_population is not None:
            print(f"{each}: population {of_population.round(3)}, mean {of_population.mean():.3f}")
    of_fit, of_population = measure_slopes(1_000, 600_000)
    print(f"slopes: fit without noise {of_fit.round(3)}, mean {of_fit.mean():.3f}")
    print(f"slopes: population {of_population.round(3)}, mean {of_population.mean():.3f}")
