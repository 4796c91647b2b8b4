"""Rows around released means: what two records can do to the sums, and what the map makes of
them."""

import math
import tracemalloc

import numpy as np
import pandas
import pytest

from hdp_fast import Budget, ParameterError, accounting
from hdp_fast.accounting.discrete_gaussian import calibrate_means, sigma_epsilon
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.learners import centered_linear, centered_rows, sufficient_statistics
from hdp_fast.learners.centered_linear import ClassTask, TargetTask, release_linear
from hdp_fast.learners.centered_rows import center, center_evenly
from hdp_fast.learners.statistics_noise import calibrate_statistics

SCHEMA = Schema(
    Label("rich", positive=("yes",)),
    {"age": Number(0, 10), "place": Category(("town", "village", "sea"))},
)
NUMBERS = Rows.within((0, 1), 2)
MIXED = Rows(SCHEMA)
ALONE = Rows(Schema(SCHEMA.label, {"place": Category(("sea",))}))
GRID = np.array([-math.inf, -1, 0, 0.3, 0.9, 1, 5, math.inf])
RNG = np.random.default_rng


def every_record(unit):
    if unit is NUMBERS:
        return np.array([(a, b) for a in GRID for b in GRID])
    if unit is ALONE:
        return pandas.DataFrame({"place": ["sea", "town"]})
    pairs = [(10 * a, b) for a in GRID for b in ("town", "village", "sea", None)]
    return pandas.DataFrame(pairs, columns=["age", "place"])


def worst_distance(unit, squares):
    """The largest squared distance of what two records add to the sums."""
    rows = unit(every_record(unit))
    numbers = rows[:, unit.is_number]
    values = np.hstack([rows, *(numbers**power for power in range(2, 5 if squares else 3))])
    return max(float(((values - row) ** 2).sum(axis=1).max()) for row in values)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("unit", [NUMBERS, MIXED, ALONE], ids=["numbers", "schema", "one name"])
def test_no_two_records_are_farther_apart_than_the_noise_is_for(unit, squares):
    price = unit.squared_distance(4 if squares else 2)
    assert price - 1e-9 <= worst_distance(unit, squares) <= price
    # A sensitivity that leaves out one power, or one bit of a category, would not do.
    assert worst_distance(unit, squares) > price - 1


def test_the_noise_on_means_has_the_epsilon_of_its_share():
    bits, sigma = calibrate_means(6, n=4_000, epsilon=0.1, delta=1e-7)
    assert sigma_epsilon(6 << (2 * bits), sigma, 1e-7) <= 0.1
    sensitivity = math.sqrt(6) * 2**bits
    assert accounting.gaussian_epsilon(sensitivity / float(sigma), 1e-7) <= 0.1 + 1e-9


@pytest.mark.parametrize("squares", [False, True])
def test_the_noise_that_is_drawn_is_that_of_the_price(squares, monkeypatch):
    """What is asked of the noise: a broken price would ask for less."""
    asked = []

    def draw(sigma, shape, *, random_state):
        asked.append((sigma, shape))
        return np.zeros(shape, np.int64)

    monkeypatch.setattr(centered_rows.noise, "rounded_gaussian", draw)
    rows = MIXED(every_record(MIXED))
    center(MIXED, rows, squares=squares, epsilon=0.5, delta=1e-7, random_state=None)
    price = MIXED.squared_distance(4 if squares else 2)
    bits, sigma = calibrate_means(price, n=len(rows), epsilon=0.5, delta=1e-7)
    assert asked == [(sigma, (7 if squares else 5,))]
    assert sigma_epsilon(price << (2 * bits), sigma, 1e-7) <= 0.5
    assert sigma_epsilon((price + 1) << (2 * bits), sigma, 1e-7) > 0.5


def test_columns_have_mean_0_deviation_1_and_squares_are_not_correlated_with_numbers():
    values = RNG(0).beta(1, 4, size=(5_000, 2))
    made = center(NUMBERS, values, squares=True, epsilon=math.inf, delta=0.5, random_state=None)
    columns = made(values)
    assert columns.shape == (5_000, 5)
    np.testing.assert_allclose(columns[:, :4].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose((columns[:, :4] ** 2).mean(axis=0), 1, rtol=1e-6)
    assert abs((columns[:, :2] * columns[:, 2:4]).mean(axis=0)).max() < 1e-9
    assert made.norm == pytest.approx(math.sqrt((columns**2).sum(axis=1).mean()))


@pytest.mark.parametrize("squares", [False, True])
def test_even_rows_are_centered_without_a_look(squares):
    made = center_evenly(MIXED, squares=squares)
    np.testing.assert_allclose(made.center, [0.5, 1 / 3, 1 / 3, 1 / 3])
    ages = np.linspace(0, 10, 30_001)
    frame = pandas.DataFrame({"age": ages, "place": np.resize(["town", "village", "sea"], 30_001)})
    columns = made(frame)
    assert columns.shape[1] == (6 if squares else 5)
    np.testing.assert_allclose(columns[:, :-1].mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose((columns[:, 0] ** 2).mean(), 1, rtol=1e-3)
    assert made.norm == pytest.approx(math.sqrt((columns**2).sum(axis=1).mean()), rel=1e-3)


def release(n, epsilon, task=None, **settings):
    values, task = RNG(1).random((n, 2)), ClassTask(2) if task is None else task
    labels = (values[:, 0] > 0.5).astype(np.int64)
    return release_linear(
        NUMBERS,
        values,
        2.0 * labels - 1 if isinstance(task, TargetTask) else labels,
        task,
        Goal(epsilon, 1e-6, random_state=0),
        **{"name": "here", "method": "auto", **settings},
    )


def test_few_records_are_centered_evenly_and_the_learner_has_all_of_epsilon():
    few, many = (release(n, 1.0, method="statistics") for n in (200, 40_000))
    np.testing.assert_array_equal(few.rows.center, [0.5, 0.5])
    assert few.model.record.epsilon == 1.0
    assert "means" not in few.record.mechanism + few.record.noise
    assert (many.rows.center != 0.5).all()
    assert many.model.record.epsilon < 0.9
    assert "means" in many.record.mechanism
    assert {few.record.epsilon, many.record.epsilon} == {1.0}
    assert {few.record.delta, many.record.delta} == {1e-6}


def test_squares_come_where_records_are_many():
    def squares(n, epsilon):
        return release(n, epsilon, method="statistics").rows.squares

    assert squares(1_000, 1.0) is None
    assert squares(40_000, 1.0) is not None
    assert squares(100, math.inf) is None
    assert squares(1_000, math.inf) is not None


@pytest.mark.parametrize("n", [200, 40_000])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [1.0, 8.0, math.inf])
def test_classes_are_learned_by_the_descent_whatever_the_numbers_are(n, classes, epsilon):
    made = release(n, epsilon, ClassTask(classes))
    # A look at many records of two classes may choose shapes.
    looked = classes == 2 and n == 40_000 and epsilon < math.inf
    assert made.method in (("descent", "additive") if looked else ("descent",))
    assert release(n, epsilon, ClassTask(classes), method="sgd").method == "sgd"


def test_a_method_of_none_is_refused_for_targets_before_anything_is_spent():
    budget = Budget(9.0, 1e-3)
    goal = Goal(1.0, 1e-6, budget=budget)
    values, task = RNG(1).random((200, 2)), TargetTask()
    with pytest.raises(ParameterError, match="method = 'ridge'"):
        release_linear(NUMBERS, values, values[:, 0], task, goal, name="here", method="ridge")
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize(("n", "epsilon"), [(200, 1.0), (150, 8.0), (200, math.inf)])
def test_targets_are_learned_by_the_descent_whatever_the_numbers_are(n, epsilon):
    assert release(n, epsilon, TargetTask()).method == "descent"
    assert release(n, epsilon, TargetTask(), method="statistics").method == "statistics"


def test_no_value_of_a_record_raises_whatever_numpy_is_set_to():
    tiny = np.array([[5e-324, 1e-310], [math.inf, -1e308]])
    wide = Schema(Label("unused", above=0), {"age": Number(0, 1e30)})
    with np.errstate(all="raise"):
        assert np.isfinite(Rows.within((0, 1e30), 2)(tiny)).all()
        assert np.isfinite(wide.floats({"age": tiny[:, 0]})).all()


@pytest.mark.parametrize(
    ("classes", "method", "epsilon", "words"),
    [
        (5_000, "statistics", 1.0, "different labels"),
        (2, "statistics", 1e-14, "more noise than is drawn"),
        (2, "sgd", 1e-14, "epsilon"),
        (2, "descent", 1e-14, "more noise than is drawn"),
        (3, "auto", 1e-14, "more noise than is drawn"),
    ],
)
def test_what_no_learner_takes_is_refused_before_anything_is_spent(classes, method, epsilon, words):
    budget, values = Budget(9.0, 1e-3), RNG(1).random((200, 2))
    goal = Goal(epsilon, 1e-14, budget=budget, random_state=0)
    task, codes = ClassTask(classes), np.arange(200) % 2
    with pytest.raises(ParameterError, match=words):
        release_linear(NUMBERS, values, codes, task, goal, name="here", method=method)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("task", [ClassTask(3), TargetTask()], ids=["classes", "targets"])
def test_what_is_calibrated_first_is_what_is_released(task, monkeypatch):
    """The noise that is tried before a charge is that of the description, to the last argument."""
    seen = []

    def calibrate(released, **more):
        seen.append((released, more))
        return calibrate_statistics(released, **more)

    monkeypatch.setattr(centered_linear, "calibrate_statistics", calibrate)
    monkeypatch.setattr(sufficient_statistics, "calibrate_statistics", calibrate)
    values = RNG(1).random((4_000, 2))
    codes = np.arange(4_000) % 3
    labels = codes if task.classes else codes / 2.0
    goal = Goal(2.0, 1e-6, random_state=0)
    release_linear(NUMBERS, values, labels, task, goal, name="here", method="statistics")
    # The bits of the sums are those of the first, by which the last finds the same noise.
    (released, settings), *others = seen
    bits = calibrate_statistics(released, **settings).bits
    assert others == [(released, {**settings, "bits": known}) for known in (None, bits)]
    noises = {calibrate_statistics(one, **more) for one, more in seen}
    assert len(noises) == 1


def test_a_release_makes_rows_in_blocks_of_a_table_that_is_larger():
    """No row of 20 numbers is kept as the 41 columns that it is summed as, nor its powers."""
    n, width = 40_000, 20
    unit = Rows.within((0, 1), width)
    rows = RNG(2).random((n, width))
    task, goal = ClassTask(2), Goal(1.0, 1e-6, random_state=0)
    labels = (rows[:, 0] > 0.5).astype(np.int64)
    tracemalloc.start()
    try:
        made = release_linear(unit, rows, labels, task, goal, name="here", method="statistics")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made.rows.squares is not None
    assert peak < 8 * 41 * n / 2


@pytest.mark.parametrize("task", [ClassTask(2), TargetTask()])
@pytest.mark.parametrize("epsilon", [0.1, 4.0, math.inf])
def test_a_schema_of_categories_alone_has_a_model_by_every_method(task, epsilon):
    """Without numbers there are no powers of them to center by."""
    places = Schema(Label("rich", positive=("yes",)), {"place": Category(("sea", "town", "wood"))})
    unit = Rows(places)
    assert unit.squared_distance(1) == unit.squared_distance(4) == 2
    at_sea = np.arange(6_000) % 3 == 0
    rows = np.stack([at_sea, np.arange(6_000) % 3 == 1, np.arange(6_000) % 3 == 2], axis=1)
    labels = at_sea.astype(int) if task.classes else at_sea * 2.0 - 1
    for method in task.methods:
        goal, asked = Goal(epsilon, 1e-6, random_state=0), {"name": "here", "method": method}
        made = release_linear(unit, rows.astype(float), labels, task, goal, **asked)
        scores = made.model.scores(made.rows.scale(np.eye(3))).reshape(3, -1)[:, -1]
        assert (scores[0] > scores[1:]).all()
