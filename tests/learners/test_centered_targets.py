"""learners.centered_targets, a private module: what a private regression releases, and how far one
record moves it."""

import functools
import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from lengths import at_length

from hdp_fast import Budget, ParameterError, accounting
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import UtilityWarning, notes_of
from hdp_fast.learners import CenteredLinear, centered_targets, target_model, target_plan
from hdp_fast.learners.centered_linear import ClassTask, TargetTask, release_linear
from hdp_fast.learners.centered_rows import WholeRows, center
from hdp_fast.learners.centered_targets import release_targets
from hdp_fast.learners.sufficient_statistics import add_up, calibrate
from hdp_fast.learners.target_model import (
    Clip,
    TargetLaw,
    choose_clip,
    count_outside,
    count_squares,
    count_steps,
    count_target_squares,
    make_pairs,
    make_residuals,
    release_mean,
    release_square,
    scale_mean,
    settle_square,
)
from hdp_fast.learners.target_plan import Part, describe_moments, plan_targets

UNIT = Rows.within((0, 1), 3)
SPENT = Schema(
    Label("spent", bounds=(-10, 30)),
    {"age": Number(0, 100), "home": Category(("own", "rent", "?")), "size": Number(0, 10)},
)
RNG = np.random.default_rng
# Ends of intervals, and what lies between, outside and at both bounds.
POINTS = (-1.0, -0.25, 0.0, 1e-9, 0.24, 1.0)


def draw_records(n, seed=0, noise=0.05):
    random = RNG(seed)
    rows = random.random((n, 3))
    return rows, (0.5 * rows[:, 0] - 0.3 * rows[:, 1] + noise * random.normal(size=n)).clip(-1, 1)


def release(n=4_000, epsilon=2.0, *, records=None, method="evidence", **goal):
    rows, targets = draw_records(n) if records is None else records
    goal = {"delta": 1e-6, "random_state": 0} | goal
    records = WholeRows(rows, targets)
    return release_targets(UNIT, records, Goal(epsilon, **goal), name="here", method=method)


def neighbors(n):
    """All pairs of n targets that differ in the first."""
    for rest in itertools.product(POINTS, repeat=n - 1):
        for one, other in itertools.combinations(POINTS, 2):
            yield np.array([one, *rest]), np.array([other, *rest])


def r_squared(made, rows, targets):
    errors = made.model.scores(made.rows.scale(rows)) - targets
    return 1 - (errors**2).mean() / targets.var()


# Sensitivities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3])
def test_a_record_moves_the_score_of_an_interval_by_one(rows, monkeypatch):
    asked = []

    def choose(scores, **settings):
        asked.append((scores, settings["sensitivity"], settings["epsilon"]))
        return 0

    monkeypatch.setattr(target_model.noise, "permute_and_flip", choose)
    for pair in neighbors(3):
        for targets in pair:
            choose_clip(count_outside(targets), 3, epsilon=0.5, rows=rows, random_state=None)
    moves = [
        abs(one[0] - other[0]).max() for one, other in zip(asked[::2], asked[1::2], strict=True)
    ]
    # A sensitivity of less than 1 for each row would not do.
    assert max(moves) == 1
    assert {settings[1:] for settings in asked} == {(rows, 0.5)}
    assert {scores.dtype for scores, *_ in asked} == {np.dtype(np.int64)}


@pytest.mark.parametrize("rows", [1, 3])
def test_a_record_moves_the_mean_by_what_its_noise_is_for(rows, monkeypatch):
    """The loss of discrete Laplace noise is the distance of the sums over its scale."""
    scales, epsilon, clip = [], 0.3, Clip(-0.25, 0.24)

    def draw(scale, **_):
        scales.append(scale)
        return 0

    monkeypatch.setattr(target_model.noise, "discrete_laplace", draw)
    settings = {"epsilon": epsilon, "rows": rows, "random_state": None}
    largest = 0
    for pair in neighbors(2):
        means = [release_mean(count_steps(clip, one), 2, clip, **settings) for one in pair]
        sums = [round((mean - clip.low) / (clip.high - clip.low) * 2 * 2**20) for mean in means]
        largest = max(largest, abs(sums[0] - sums[1]))
    loss = Fraction(rows * largest) / scales[0]
    assert loss <= Fraction(epsilon)
    # Noise that is a thousandth smaller would not do.
    assert loss * Fraction(1001, 1000) > Fraction(epsilon)
    assert set(scales) == {scale_mean(epsilon, rows)}


def test_what_is_counted_of_parts_adds_up_and_a_record_adds_at_most_its_unit():
    """All sets of three targets and all ways to part them: what one adds is all that it can move.

    A count that looked at the targets beside one, as a mean does, would not add up.
    """
    clip, bits = Clip(-0.25, 0.24), 7
    law = TargetLaw(0.1, *clip)
    counts = {
        count_outside: 1,
        functools.partial(count_steps, clip): 2**20,
        functools.partial(count_squares, bits=bits): 2**bits,
        functools.partial(count_target_squares, law, bits): 2**bits,
    }
    for count, unit in counts.items():
        alone = {point: np.asarray(count(np.array([point]))) for point in POINTS}
        seen = np.array(list(alone.values()))
        assert seen.dtype == np.int64
        assert 0 <= seen.min() < seen.max() == unit
        for targets in itertools.product(POINTS, repeat=3):
            whole = np.asarray(count(np.array(targets)))
            assert (whole == sum(alone[target] for target in targets)).all()
            for place in range(4):
                parts = np.array(targets[:place]), np.array(targets[place:])
                assert (whole == sum(np.asarray(count(part)) for part in parts)).all()


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 15, 16, 17, 33, 64])
def test_residuals_of_a_row_do_not_depend_on_the_rows_beside_it(width):
    """To the last bit: else sums over parts would not be those over all."""
    rows, targets = RNG(width).random((301, width)), RNG(0).uniform(-1, 1, 301)
    records = WholeRows(rows, targets)
    unit = Rows.within((0, 1), width)
    settings = {"squares": width % 2 == 1, "epsilon": math.inf, "delta": 0.5}
    centered = center(unit, records, **settings, random_state=None)
    pairs = functools.partial(make_pairs, centered, TargetLaw(0.1, -0.8, 0.9), 1.5)
    weights = RNG(1).normal(size=len(centered.names_with_squares) + 1)
    rest = functools.partial(make_residuals, pairs, weights, 1.0, 0.7)
    made, residuals = rest(rows, targets)
    for start, stop in [(0, 1), (1, 300), (300, 301), (17, 18), (5, 260)]:
        some = slice(start, stop)
        again, left = rest(rows[some].copy(), targets[some])
        assert (again == made[some]).all()
        assert (left == residuals[some]).all()


def worst_mu_squared(bound, drawn):
    """The largest squared mu of two records of a release of moments with this noise."""
    description = describe_moments(2, bound)
    angles = np.linspace(0, 2 * math.pi, 17)
    rows = bound * np.column_stack([np.cos(angles), np.sin(angles)])
    records = [
        (row, target) for row in [*rows, 3 * rows[2], 0 * rows[0]] for target in (-1, 0.5, 1)
    ]
    sums = [add_up(description, row[None], np.array([y]), drawn.bits) for row, y in records]
    upper = np.triu_indices(2, 1)

    def distance(one, other):
        cross = ((one.sums - other.sums) / float(drawn.sums)) ** 2
        square = one.moments - other.moments
        return (
            cross.sum()
            + ((np.diag(square) / float(drawn.diagonal)) ** 2).sum()
            + ((square[upper] / float(drawn.above)) ** 2).sum()
        )

    return max(distance(*pair) for pair in itertools.combinations(sums, 2))


def test_a_record_moves_moments_by_what_their_noise_is_for():
    plan = plan_targets(UNIT, 2_000, Goal(1.0, 1e-6))
    drawn = calibrate(describe_moments(2, 1.7), 2_000, *plan.slopes.moments)
    squared = accounting.gaussian_mu(*plan.slopes.moments) ** 2
    assert 0.98 * squared < worst_mu_squared(1.7, drawn) <= squared
    # Noise that is a fiftieth smaller would not do.
    less = drawn._replace(
        **{name: getattr(drawn, name) * Fraction(49, 50) for name in ("sums", "diagonal", "above")}
    )
    assert worst_mu_squared(1.7, less) > squared


def test_a_record_moves_residuals_by_what_their_noise_is_for(monkeypatch):
    part = plan_targets(UNIT, 2_000, Goal(1.0, 1e-6)).slopes
    drawn = calibrate(describe_moments(2, 1.7, second=False), 2_000, *part.residuals)
    description = describe_moments(2, 1.7, second=False)
    angles = np.linspace(0, 2 * math.pi, 17)
    rows = 3 * np.column_stack([np.cos(angles), np.sin(angles)])
    sums = [add_up(description, row[None], np.array([y]), drawn.bits)
            for row in rows for y in (-1.0, 0.5, 1.0)]  # fmt: skip
    assert all(one.moments is None for one in sums)
    pairs = itertools.combinations(sums, 2)
    worst = max(float((((a.sums - b.sums) / float(drawn.sums)) ** 2).sum()) for a, b in pairs)
    squared = accounting.gaussian_mu(*part.residuals) ** 2
    assert 0.98 * squared < worst <= squared
    # The mean square: two records that are as far apart as can be.
    seen = []

    def draw(sigma, size, **_):
        seen.append(sigma)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(target_model.noise, "rounded_gaussian", draw)
    grid = settle_square(2_000, *part.square)
    rest = np.full(1_999, 0.5)
    totals = [count_squares(np.append(rest, one), grid[0]) for one in (0.0, 0.3, -1.0)]
    means = [release_square(total, 2_000, grid, None) for total in totals]
    moved = (means[2] - means[0]) * 2_000 * 2 ** grid[0] / float(grid[1])
    assert 0.98 * moved**2 < accounting.gaussian_mu(*part.square) ** 2 * 1.0001
    assert moved**2 <= accounting.gaussian_mu(*part.square) ** 2 * (1 + 1e-9)
    assert set(seen) == {grid[1]}
    assert means[0] < means[1] < means[2] <= 1


# Composition -------------------------------------------------------------------------------------


def pure(plan):
    return sum(Fraction(part.epsilon) for part in (plan.clip, plan.mean) if part)


def gaussian(plan, rows=1):
    """The squared mu of all Gaussian parts for `rows` rows."""
    slopes = plan.slopes
    names = ("means", "moments", "square", "residuals", "steps")
    all_parts = [getattr(slopes, name, None) for name in names]
    parts = [part for part in all_parts if part]
    return sum((rows * accounting.gaussian_mu(*part)) ** 2 for part in parts)


@pytest.mark.parametrize("method", ["descent", "evidence"])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.4])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(
    ("n", "epsilon"), [(500, 4.0), (4_000, 0.5), (4_000, 8.0), (90_000, 0.1), (500, 60.0)]
)
def test_parts_add_up_to_no_more_than_was_asked(n, epsilon, rows, delta, method):
    goal = Goal(epsilon, delta).of_people(np.arange(n) // rows, rows, n)
    plan = plan_targets(UNIT, n, goal, method)
    whole = plan.slopes.whole
    rest = min(Fraction(epsilon), Fraction(repr(epsilon))) - pure(plan) - Fraction(whole.epsilon)
    assert 0 < rest < 1e-8 * epsilon
    assert whole.delta == delta
    most = accounting.gaussian_mu(*whole) ** 2
    assert 0.999 * most < gaussian(plan, rows) <= most


def test_shares_that_are_no_shares_would_cost_more(monkeypatch):
    """What test_parts_add_up_... sees: parts whose epsilons add up, but not their squares."""
    monkeypatch.setattr(
        target_plan, "_split",
        lambda row, share: Part(row.epsilon * math.sqrt(share), row.delta),
    )  # fmt: skip
    plan = plan_targets(UNIT, 4_000, Goal(0.5, 1e-6))
    assert gaussian(plan) > accounting.gaussian_mu(*plan.slopes.whole) ** 2


def test_the_noise_that_is_drawn_is_that_of_the_plan(monkeypatch):
    seen = {}

    def keep(name):
        function = getattr(centered_targets, name)

        def call(*arguments, **settings):
            seen[name] = settings or arguments
            return function(*arguments, **settings)

        monkeypatch.setattr(centered_targets, name, call)

    for name in ("choose_clip", "release_mean", "settle_means"):
        keep(name)
    goal = Goal(2.0, 1e-6, random_state=0).of_people(np.arange(4_000) // 2, 2, 4_000)
    plan = plan_targets(UNIT, 4_000, goal)
    calibrated, squared = [], []
    for name, kept in (("calibrate", calibrated), ("settle_square", squared)):
        function = getattr(centered_targets, name)
        monkeypatch.setattr(
            centered_targets, name, lambda *arguments, kept=kept, function=function: (
                kept.append(arguments), function(*arguments))[1]
        )  # fmt: skip
    made = release_targets(UNIT, WholeRows(*draw_records(4_000)), goal, name="here")
    assert (seen["choose_clip"]["epsilon"], seen["choose_clip"]["rows"]) == (plan.clip.epsilon, 2)
    assert (seen["release_mean"]["epsilon"], seen["release_mean"]["rows"]) == (plan.mean.epsilon, 2)
    assert seen["settle_means"][1:] == (plan.slopes.squares, 4_000, *plan.slopes.means)
    drawn = [arguments[1:] for arguments in calibrated]
    assert drawn == [(4_000, *plan.slopes.moments), (4_000, *plan.slopes.residuals)]
    assert [one.second_moments for one, *_ in calibrated] == [True, False]
    assert squared == [(4_000, *plan.slopes.square)]
    assert made.record.neighbors == "replace_person"
    assert (made.record.epsilon, made.record.delta, made.record.law) == (2.0, 1e-6, None)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("n", [600, 4_000])
def test_the_noise_of_steps_is_that_of_the_plan(n, rows, monkeypatch):
    """The squares of distance over deviation of all that is drawn are no more than planned."""
    drawn, lengths = [], []

    def draw(sigma, size, **_):
        drawn.append((sigma, size))
        return np.zeros(size, np.int64)

    def open_integers(records, cut):
        lengths.append(cut.grid.length)
        return function(records, cut)

    function = centered_targets.open_integers
    goal = Goal(2.0, 1e-6, random_state=0).of_people(np.arange(n) // rows, rows, n)
    plan = plan_targets(UNIT, n, goal, "descent")
    monkeypatch.setattr(centered_targets.noise, "rounded_gaussian", draw)
    monkeypatch.setattr(centered_targets, "open_integers", open_integers)
    records = WholeRows(*draw_records(n))
    made = release_targets(UNIT, records, goal, name="here", method="descent")
    sigma, size = drawn[-1]
    columns = (3 + 3 * plan.slopes.squares) if plan.slopes.means else 4
    assert size == (plan.slopes.count, columns, 1)
    assert len(drawn) == (3 if plan.slopes.means else 2)
    spent = plan.slopes.count * (2 * lengths[0]) ** 2 / sigma**2
    most = accounting.gaussian_mu(*plan.slopes.steps) ** 2
    assert 0.999 * most < spent <= most
    assert made.record.neighbors == "replace_person"
    assert (made.record.epsilon, made.record.delta, made.record.law) == (2.0, 1e-6, None)
    assert "a mean square and steps" in made.record.noise


# What is released --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["descent", "evidence"])
def test_slopes_are_learned_within_the_ends_of_the_clip(method):
    rows, targets = draw_records(4_000)
    made = release(4_000, 4.0, method=method)
    assert r_squared(made, rows, targets) > 0.8
    assert made.model.signal > 1
    scores = made.model.scores(made.rows.scale(100 * rows))
    low, high = made.model.law.low, made.model.law.high
    assert (scores.min(), scores.max()) >= (low, low)
    assert scores.max() <= high < 1
    with pytest.raises(ValueError, match="read-only"):
        made.model.weights[0] = 0


def test_few_records_are_centered_evenly_with_the_constant_among_the_moments():
    unit, goal = Rows.within((0, 1), 30), Goal(1.0, 1e-6, random_state=0)
    records = WholeRows(RNG(2).random((450, 30)), np.linspace(-1, 1, 450))
    with pytest.warns(UtilityWarning, match="explain a mean square"):
        made = release_targets(unit, records, goal, name="here")
    assert made.model.law.constant > 0
    np.testing.assert_array_equal(made.rows.center, [0.5] * 30)
    assert "of moments" in made.record.noise
    many = release(4_000, 1.0)
    assert many.model.law.constant == 0
    assert (many.rows.center != 0.5).all()
    assert "of means, moments and those of residuals" in many.record.noise


def test_moments_of_even_rows_are_centered_as_released_means_would():
    """Without noise both ways lead to the same predictions."""
    rows, targets = draw_records(4_000)
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_plan, "_BLUR", 1e9)
        made["means"] = release(4_000, 1e6, delta=1e-3)
        patch.setattr(target_plan, "_BLUR", 0.0)
        made["even"] = release(4_000, 1e6, delta=1e-3)
    assert [one.model.law.constant > 0 for one in made.values()] == [False, True]
    scores = [one.model.scores(one.rows.scale(rows)) for one in made.values()]
    np.testing.assert_allclose(*scores, atol=0.02)
    best = np.linalg.lstsq(np.column_stack([rows, np.ones(4_000)]), targets, rcond=None)[0]
    np.testing.assert_allclose(scores[0], rows @ best[:3] + best[3], atol=0.02)


def test_the_mean_alone_is_released_where_records_are_few():
    budget = Budget(5.0, 1e-5)
    with pytest.warns(UtilityWarning, match="the model is the mean of the target alone"):
        made = release(300, 1.0, budget=budget)
    rows, targets = draw_records(300)
    scores = made.model.scores(made.rows.scale(rows))
    assert len(set(scores.tolist())) == 1
    assert scores[0] == pytest.approx(targets.mean(), abs=0.1)
    assert (made.record.epsilon, made.record.delta, made.record.law) == (1.0, 0.0, "pure")
    assert (budget.spent.epsilon, budget.spent.delta) == (1.0, 0.0)
    assert made.model.signal < 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UtilityWarning):
            release(300, 1.0, budget=budget)
    assert budget.spent.epsilon == 1.0


@pytest.mark.parametrize(("n", "epsilon", "alone", "clips"), [
    (89, 1.0, True, False), (90, 1.0, True, True),
    (399, 1.0, True, True), (400, 1.0, False, True), (50, 8.0, False, True),
])  # fmt: skip
def test_what_is_released_follows_public_numbers(n, epsilon, alone, clips):
    plan = plan_targets(UNIT, n, Goal(epsilon, 1e-6))
    assert (plan.slopes is None, plan.clip is not None) == (alone, clips)


def test_steps_that_no_noise_protects_are_refused(monkeypatch):
    monkeypatch.setattr(target_plan, "calibrate_descent", lambda *_: None)
    budget = Budget(9.0, 1e-3)
    with pytest.raises(ParameterError, match="it needs more noise than is drawn"):
        release(4_000, 1.0, budget=budget, method="descent")
    assert budget.spent.epsilon == 0


def test_few_records_take_their_steps_on_rows_that_are_centered_evenly():
    unit = Rows.within((0, 1), 30)
    records, goal = WholeRows(RNG(2).random((450, 30)), np.linspace(-1, 1, 450)), Goal(1.0, 1e-6)
    made = release_targets(unit, records, goal, name="here", method="descent")
    np.testing.assert_array_equal(made.rows.center, [0.5] * 30)
    assert made.model.weights[-1] != 0
    many = release(4_000, 1.0, method="descent")
    assert (many.rows.center != 0.5).all()
    # The mean of the target is the constant's.
    assert many.model.weights[-1] == 0
    assert many.model.covariance[-1].tolist() == [0.0] * len(many.model.weights)


def test_slopes_that_a_descent_shrinks_to_nothing_are_noted():
    unit, random = Rows.within((0, 1), 30), RNG(8)
    records = WholeRows(random.random((900, 30)), random.uniform(-1, 1, 900))
    signals, noted = [], []
    for seed in range(30):
        goal = Goal(1.0, 1e-6, random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = release_targets(unit, records, goal, name="here", method="descent")
        signals.append(made.model.signal)
        noted.append(any("no better than the mean" in str(one.message) for one in caught))
    assert [signal <= 1 for signal in signals] == noted
    assert min(signals) < 1
    assert np.median(signals) < 4
    clear = [release(2_000, 1.0, method="descent", random_state=seed).model for seed in range(30)]
    assert min(model.signal for model in clear) > 3


def test_persons_count_as_one_record_each():
    goal = Goal(1.0, 1e-6)
    assert plan_targets(UNIT, 1_000, goal).slopes is not None
    shared = goal.of_people(np.arange(1_000) // 4, 4, 1_000)
    assert plan_targets(UNIT, 1_000, shared).slopes is None


@pytest.mark.parametrize("width", [0.01, 0.1, 0.8])
@pytest.mark.parametrize("middle", [-0.9, 0.0, 0.37])
def test_the_clip_is_not_much_wider_than_the_targets_and_holds_them(width, middle):
    targets = (middle + width / 2 * RNG(1).uniform(-1, 1, 5_000)).clip(-1, 1)
    outside, settings = count_outside(targets), {"epsilon": 0.2, "rows": 1}
    clips = [choose_clip(outside, 5_000, **settings, random_state=RNG(k)) for k in range(20)]
    inside = [np.mean((targets >= low) & (targets <= high)) for low, high in clips]
    assert min(inside) > 0.75
    assert max(high - low for low, high in clips) < 4 * width


def test_the_mean_has_the_noise_of_its_scale():
    """A deviation of 2,000 draws is within a tenth of theirs but for a chance of 1e-8."""
    clip, epsilon = Clip(-0.4, 0.6), 0.5
    total = count_steps(clip, np.full(1_000, 0.1))
    stream = RNG(5)
    settings = {"epsilon": epsilon, "rows": 1, "random_state": stream}
    means = np.array([release_mean(total, 1_000, clip, **settings) for _ in range(2_000)])
    expected = math.sqrt(2) * (clip.high - clip.low) / (epsilon * 1_000)
    assert means.std() == pytest.approx(expected, rel=0.13)
    assert means.mean() == pytest.approx(0.1, abs=6 * expected / math.sqrt(2_000))


def test_slopes_of_chance_are_told_from_released_numbers_and_the_result_is_kept():
    random, price = RNG(3), {"epsilon": 1.0, "delta": 1e-6}
    people = {
        "age": random.uniform(0, 100, 1_000),
        "home": random.choice(["own", "rent", "?"], 1_000),
        "size": random.uniform(0, 10, 1_000),
        "spent": random.normal(5, 3, 1_000),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CenteredLinear(SPENT, method="evidence", **price).learn(people, random_state=0)
    assert model.signal <= 1
    assert any("explain a mean square" in text for text in notes_of(model))
    people["spent"] = people["age"] / 5
    clear = CenteredLinear(SPENT, method="evidence", **price).learn(people, random_state=0)
    assert clear.signal > 1
    assert notes_of(clear) == ()


# Without noise, and at the edges ------------------------------------------------------------------


def test_without_noise_it_is_least_squares():
    rows, targets = draw_records(2_000)
    made = release(2_000, math.inf)
    assert made.record is None
    best = np.linalg.lstsq(np.column_stack([rows, np.ones(2_000)]), targets, rcond=None)[0]
    scores = made.model.scores(made.rows.scale(rows))
    np.testing.assert_allclose(scores, rows @ best[:3] + best[3], atol=0.01)


@pytest.mark.parametrize("epsilon", [1.0, 50.0, math.inf])
@pytest.mark.parametrize("n", [1, 2, 500])
@pytest.mark.parametrize(
    "targets", [lambda n: np.full(n, -1.0), lambda n: np.resize([-1.0, 1.0], n)],
    ids=["constant", "both ends"],
)  # fmt: skip
@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5]])
@pytest.mark.parametrize("method", ["descent", "evidence"])
def test_no_value_of_a_record_raises_or_warns_and_all_is_finite(n, epsilon, targets, row, method):
    records = np.tile(row, (n, 1)), targets(n)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        # Said once in a process, of the seed.
        warnings.filterwarnings("ignore", "random_state makes")
        made = release(n, epsilon, records=records, method=method)
        scores = made.model.scores(made.rows.scale(records[0]))
    assert np.isfinite(scores).all()
    assert (abs(scores) <= 1).all()
    assert 0 < made.model.signal < math.inf


@pytest.mark.parametrize("method", ["descent", "evidence"])
@pytest.mark.parametrize(("epsilon", "n"), [(1e-12, 200), (1e-14, 2_000)])
def test_what_no_noise_protects_is_refused_before_anything_is_spent(epsilon, n, method):
    budget = Budget(9.0, 1e-3)
    with pytest.raises(ParameterError, match="more noise than is drawn"):
        release(n, epsilon, budget=budget, method=method)
    assert budget.spent.epsilon == 0


def test_evidence_is_for_targets():
    rows, _ = draw_records(100)
    budget = Budget(9.0, 1e-3)
    goal = Goal(1.0, 1e-6, budget=budget)
    with pytest.raises(ParameterError, match="method = 'evidence'"):
        release_linear(
            UNIT, rows, np.arange(100) % 2, ClassTask(2), goal, name="here", method="evidence"
        )
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("method", ["auto", "descent", "evidence"])
def test_targets_are_learned_by_descent_unless_evidence_is_asked_for(method):
    goal = Goal(2.0, 1e-6, random_state=0)
    made = release_linear(
        UNIT, *draw_records(4_000), TargetTask(), goal, name="here", method=method
    )
    assert made.method == ("evidence" if method == "evidence" else "descent")
    words = {
        "evidence": "slopes shrunk on evidence",
        "descent": "slopes by 111 steps on all records",
    }
    assert made.record.mechanism == f"here, {words[made.method]}"


# Of use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, pytest.param(3_000, marks=at_length)])
@pytest.mark.parametrize("tail", [0.2, 1.0], ids=["even", "long tail"])
@pytest.mark.parametrize("method", ["descent", "evidence"])
def test_a_regression_is_hardly_below_a_constant_and_gains_with_epsilon(n, tail, method):
    """A target of a hundredth of its bounds; the mean of 200 releases has an error of .003."""
    random = RNG(6)
    rows = random.random((n + 2_000, 3))
    targets = -0.97 + 0.01 * np.exp(tail * (rows[:, 0] + random.normal(size=n + 2_000)))
    targets = targets.clip(-1, 1)
    train, test = (rows[:n], targets[:n]), (rows[n:], targets[n:])
    means = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        for epsilon in (0.5, 1.0, 4.0, 50.0, math.inf):
            made = [
                release(n, epsilon, records=train, random_state=seed, method=method)
                for seed in range(200)
            ]
            means.append(np.mean([r_squared(one, *test) for one in made]))
    assert min(means) > -0.03
    assert min(np.diff(means)) > -0.02
    assert means[-1] > 0.03
