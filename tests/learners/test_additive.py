"""Additive models: the compiled steps, what one record moves, and what is learned."""

import itertools
import json
import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from lengths import at_length

from hdp_fast import Budget, _core, accounting, local, transfer
from hdp_fast.data import Category, Chunks, Label, Number, Schema
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError, UtilityWarning
from hdp_fast.learners import (
    CenteredLinear,
    PrivateAdditive,
    PrivateModel,
    additive,
    additive_choice,
    score_of,
)
from hdp_fast.learners.additive import release_additive, weigh_rounds
from hdp_fast.learners.additive_columns import choose_bins, cut_rows, lay_out
from hdp_fast.learners.additive_plan import ONE, AdditivePlan, plan_additive
from hdp_fast.learners.additive_shapes import find_gain, find_scale, make_prior, weigh_priors
from hdp_fast.learners.additive_start import choose_ends, squared_distance
from hdp_fast.learners.centered_rows import WholeRows
from hdp_fast.reference import linear
from hdp_fast.sklearn import HybridClassifier, PrivateClassifier, PrivateRegressor

RNG = np.random.default_rng
PRIVACY = {"epsilon": 1.0, "delta": 1e-6}
SCHEMA = Schema(
    Label("rich", positive=("yes",)),
    {
        "age": Number(0, 90),
        "pay": Number(0, 120, missing=60),
        "bit": Number(0, 1, (1,)),
        "job": Category(tuple("abc")),
    },
)
TARGET = Schema(Label("worth", bounds=(-10, 30)), SCHEMA.columns)


def table(n=4_000, seed=0):
    rng = RNG(seed)
    age, pay = rng.integers(0, 90, n), rng.normal(60, 20, n).round(2)
    bit, job = rng.integers(0, 2, n), rng.choice(list("abc?"), n)
    score = 3 * np.cos(age / 15) + 2 * (job == "b") + bit - 1
    rich = rng.random(n) < 1 / (1 + np.exp(-score))
    frame = pd.DataFrame({"age": age, "pay": pay, "bit": bit, "job": job})
    frame.loc[::50, "pay"] = np.nan
    return frame.assign(rich=np.where(rich, "yes", "no"), worth=3 * score + rng.normal(size=n))


def learn(frame, schema=SCHEMA, epsilon=1.0, neighbors="replace_one", **options):
    learner = PrivateAdditive(schema, epsilon=epsilon, delta=1e-6, neighbors=neighbors)
    return learner.learn(frame, **{"random_state": 1} | options)


def loss_of(model, frame):
    shares = model.probabilities(frame)[:, 1]
    return -np.log(np.where(frame["rich"] == "yes", shares, 1 - shares)).mean()


# The compiled steps ------------------------------------------------------------------------------


def steps(n, widths, logistic, seed=0):
    rng = RNG(seed)
    bins = np.array([rng.integers(0, width, n) for width in widths], np.uint8)
    labels = rng.integers(0, 2, n) * ONE if logistic else rng.integers(-(2**17), 2**17, n)
    rates = 2 / (np.arange(4) + 3.0)
    curvatures = [rng.random(width) * n / width for width in widths]
    gains = [rng.normal(size=(width, width)) * 3 / n for width in widths]
    noise = rng.integers(-(2**18), 2**18, (len(rates), sum(widths)))
    return bins, labels, rates, curvatures, gains, noise


def run_core(bins, labels, logistic, base, limits, rates, curvatures, gains, noise):
    numbers = np.concatenate(curvatures), np.concatenate([gain.ravel() for gain in gains])
    widths = [len(curve) for curve in curvatures]
    records, rest = (bins.ravel(), widths, labels), (logistic, base, *limits)
    return _core.fit_additive(records, rest, (rates, noise.ravel(), *numbers))


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize(("n", "widths"), [(1, [1]), (7, [2, 3]), (9_000, [16, 2, 256, 5])])
def test_compiled_steps_are_those_in_numpy_to_the_last_bit(logistic, n, widths):
    bins, labels, rates, curvatures, gains, noise = steps(n, widths, logistic)
    draws = iter(np.split(noise.ravel(), np.cumsum(np.tile(widths, len(rates)))[:-1]))
    options = {"logistic": logistic, "base": -9_000, "limits": (-40_000, 50_000)}
    expected = linear.fit_additive(
        bins,
        labels,
        rates=rates,
        curvatures=curvatures,
        gains=gains,
        release=lambda sums: sums + next(draws),
        **options,
    )
    made = run_core(bins, labels, *options.values(), rates, curvatures, gains, noise)
    assert made.tolist() == np.concatenate(expected).tolist()
    order = RNG(3).permutation(n)
    again = run_core(
        np.ascontiguousarray(bins[:, order]),
        labels[order],
        *options.values(),
        rates,
        curvatures,
        gains,
        noise,
    )
    assert again.tolist() == made.tolist()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.array([0, 2], np.uint8)),
        (0, np.zeros(3, np.uint8)),
        (1, np.array([1 << 41, 0])),
        (3, 1 << 21),
        (4, (1, 0)),
        (4, (-(1 << 21), 0)),
        (5, np.ones(2)),
        (6, [np.ones(3)]),
    ],
)
def test_compiled_steps_refuse_what_does_not_fit(place, value):
    sound = [np.zeros(2, np.uint8), np.zeros(2, np.int64), True, 0, (-1, 1), np.ones(1)]
    sound += [[np.ones(2)], [np.eye(2)], np.zeros(2, np.int64)]
    run_core(*sound)
    sound[place] = value
    with pytest.raises((ParameterError, ShapeError)):
        run_core(*sound)


# What one record moves ---------------------------------------------------------------------------


class Transcript:
    """Releases numbers that are fixed before, and keeps the exact sums and deviations."""

    def __init__(self, seed):
        self.rng, self.sums, self.sigmas = RNG(seed), [], []

    def answer(self, sums, sigma):
        self.sums.append(np.array(sums, object).ravel())
        self.sigmas.append(sigma)
        # Integers of the size of noise.
        return np.rint(self.rng.normal(0, 2 * float(sigma), np.shape(sums))).astype(np.int64)

    def add_noise(self, run, sums, sigma):
        if np.ndim(sums) == 2:
            self.of_steps = sigma
            return np.zeros(np.shape(sums))
        return self.answer(sums, sigma).astype(float)

    def fit(self, records, residuals, rounds):
        bins, widths, labels = records
        logistic, base, low, high = residuals
        rates, _, curvatures, gains = rounds
        squares = np.cumsum([width**2 for width in widths])[:-1]
        values = linear.fit_additive(
            bins.reshape(len(widths), -1),
            labels,
            logistic=logistic,
            base=base,
            limits=(low, high),
            rates=rates,
            curvatures=np.split(curvatures, np.cumsum(widths)[:-1]),
            gains=[
                gain.reshape(width, width)
                for gain, width in zip(np.split(gains, squares), widths, strict=True)
            ],
            release=lambda sums: self.answer(sums, self.of_steps),
        )
        return np.concatenate(values)


def follow(monkeypatch, rows, labels, target, seed, neighbors="replace_one"):
    """What a release with a fixed transcript adds up, and what it returns."""
    transcript = Transcript(seed)
    goal = Goal(40.0, 0.01, neighbors, random_state=0)

    def release_number(n, plan, stream):
        transcript.answer(np.array([n]), plan.sigma(1, plan.shares.number))
        return 3

    with monkeypatch.context() as patch:
        patch.setattr(additive, "release_number", release_number)
        patch.setattr(additive._Run, "_add_noise", lambda *args: transcript.add_noise(*args))
        patch.setattr(_core, "fit_additive", transcript.fit)
        made = release_additive(
            Rows.within((0, 1), 2),
            WholeRows(np.array(rows, float).reshape(-1, 2), np.array(labels, float)),
            goal,
            name="here",
            target=target,
        )
    return transcript, made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_whole_release_moves_by_no_more_than_mu_for_all_tiny_neighbors(monkeypatch, target, seed):
    """All data sets of two records on a grid, all neighbors, in exact fractions.

    With the same released numbers the sums of neighbors differ by so much: the squares of distance
    over deviation, of all parts, are at most the square of mu. What is returned is the same.
    """
    ends = [-1.0, -0.05, 1.0] if target else [0, 1]
    places = [0.0, 0.49, 1.0, math.nan]
    values = [(0.0 if math.isnan(a) else a, b) for a, b in itertools.product(places, (0.0, 1.0))]
    records = list(itertools.product(values, ends))
    plan = plan_additive(Rows.within((0, 1), 2), 2, Goal(40.0, 0.01), name="here", target=target)
    assert plan.rounds
    largest = Fraction(0)
    for other in records[:: 5 if target else 3]:
        runs = []
        for record in records:
            rows, labels = zip(record, other, strict=True)
            runs.append(follow(monkeypatch, rows, labels, target, seed))
        first = runs[0][1]
        for _, made in runs:
            # Nothing but what is released depends on the records.
            assert made.model.weights.tolist() == first.model.weights.tolist()
        parts = [transcript.sums for transcript, _ in runs]
        sigmas = runs[0][0].sigmas
        assert all(transcript.sigmas == sigmas for transcript, _ in runs)
        for some, more in itertools.combinations(parts, 2):
            total = sum(
                Fraction(int(((a - b) ** 2).sum())) / Fraction(sigma) ** 2
                for a, b, sigma in zip(some, more, sigmas, strict=True)
            )
            largest = max(largest, total)
    assert largest <= plan.square
    # It is not far from being attained.
    assert largest > plan.square * Fraction(1, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [False, True])
def test_whole_release_moves_by_no_more_than_mu_if_a_record_is_added(monkeypatch, target):
    """The same for neighbors of which one has a record more: of none, and of another record."""
    ends = [-1.0, -0.05, 1.0] if target else [0, 1]
    records = list(itertools.product(itertools.product([0.0, 0.49, 1.0], (0.0, 1.0)), ends))
    plan = plan_additive(
        Rows.within((0, 1), 2), 3, Goal(40.0, 0.01, "add_remove"), name="here", target=target
    )
    assert plan.rounds
    largest = Fraction(0)
    for other in ([], records[:1], records[-2:-1]):
        few, first = follow(monkeypatch, *_split(other), target, 3, "add_remove")
        for record in records:
            more, made = follow(monkeypatch, *_split([*other, record]), target, 3, "add_remove")
            assert made.model.weights.tolist() == first.model.weights.tolist()
            assert (made.n, more.sigmas) == (3, few.sigmas)
            total = sum(
                Fraction(int(((a - b) ** 2).sum())) / Fraction(sigma) ** 2
                for a, b, sigma in zip(more.sums, few.sums, more.sigmas, strict=True)
            )
            largest = max(largest, total)
    assert plan.square * Fraction(1, 3) < largest <= plan.square


def _split(records):
    return [row for row, _ in records], [label for _, label in records]


def test_squared_distance_is_that_of_all_pairs_of_residuals():
    for low, high in ((-3, 5), (-7, 1), (-4, 4), (0, 6), (-6, -2)):
        rest = range(low, high + 1)
        same = max((a - b) ** 2 for a in rest for b in rest)
        other = max(a**2 + b**2 for a in rest for b in rest)
        assert squared_distance(low, high) == max(same, other)
        assert squared_distance(low, high, adds=True) == max(a**2 for a in rest)


def test_residuals_of_compiled_steps_stay_within_limits():
    """One round whose gain is 1 returns sums: those of one record, whatever its label and score."""
    for logistic, base, label in itertools.product(
        (True, False), (-(1 << 20), -5, 1 << 20), (0, ONE, -(1 << 40), 1 << 40)
    ):
        made = run_core(
            np.zeros(1, np.uint8),
            np.array([label]),
            logistic,
            base,
            (-21_000, 45_000),
            np.ones(1),
            [np.zeros(2)],
            [np.eye(2)],
            np.zeros(2, np.int64),
        )
        assert -21_000 <= made[0] <= 45_000
        assert made[1] == 0


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("target", [False, True])
def test_plan_shares_no_more_than_mu_among_its_parts(target, neighbors):
    """The shares that are asked for, and the deviations that are drawn."""
    asked = []
    real = AdditivePlan.sigma

    def sigma(plan, distance, share):
        asked.append((distance, share, real(plan, distance, share), plan.square))
        return asked[-1][2]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdditivePlan, "sigma", sigma)
        learn(table(500), TARGET if target else SCHEMA, neighbors=neighbors)
    assert sum(share for _, share, _, _ in asked) == 1
    square = asked[0][3]
    assert square <= Fraction(accounting.gaussian_mu(1.0, 1e-6)) ** 2
    assert sum(Fraction(distance) / sigma**2 for distance, _, sigma, _ in asked) <= square


# What is learned ---------------------------------------------------------------------------------


def test_model_follows_a_bend_that_a_line_does_not():
    private, public = table(), table(3_000, 5)
    model = learn(private)
    linear_model = CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-6).learn(private, random_state=1)
    assert loss_of(model, public) < loss_of(linear_model, public) - 0.05
    assert model.method == "additive"
    assert model.record.law == "gaussian"
    free = learn(private, epsilon=math.inf)
    assert free.record is None
    assert loss_of(free, public) < loss_of(model, public) + 0.01


def test_target_follows_a_bend_that_a_line_does_not():
    private, public = table(), table(3_000, 5)
    model = learn(private, TARGET)
    rest = np.array(model.predict(public)) - public["worth"]
    assert 1 - rest.var() / public["worth"].var() > 0.6
    shape = model.shapes()["age"]
    assert np.corrcoef(shape.effects, 9 * np.cos(np.array(shape.starts) / 15))[0, 1] > 0.8


def test_shapes_have_their_noise_and_what_tells_nothing_is_flat():
    model = learn(table(20_000))
    shapes = model.shapes()
    assert list(shapes) == list(SCHEMA.columns)
    assert np.ptp(shapes["pay"].effects) < 0.5 < np.ptp(shapes["age"].effects)
    assert shapes["job"].starts == ("a", "b", "c", None)
    for shape in shapes.values():
        assert abs(shape.shares @ shape.effects) < 1e-9
        assert len(shape.deviations) == len(shape.effects)
    truth = learn(table(20_000), epsilon=1e3).shapes()
    # Nearly the same cuts: age has few of them.
    away = (shapes["job"].effects - truth["job"].effects) / shapes["job"].deviations
    assert np.abs(away).max() < 6


def test_model_is_one_file_and_estimators_have_the_same():
    frame = table()
    model = learn(frame)
    again = PrivateModel.from_json(model.to_json())
    assert again.probabilities(frame).tolist() == model.probabilities(frame).tolist()
    assert again.shapes()["age"].deviations.tolist() == model.shapes()["age"].deviations.tolist()
    fields = json.loads(model.to_json())
    for broken in ({"bands": [[1.0]]}, {"bands": None, "method": "sideways"}):
        with pytest.raises(ParameterError):
            PrivateModel.from_json(json.dumps(fields | broken))
    with pytest.raises(ParameterError, match="shapes"):
        CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-6).learn(frame).shapes()
    estimator = PrivateClassifier(
        epsilon=1.0, schema=SCHEMA, classes=["no", "yes"], method="additive", test_seed=1
    ).fit(frame, frame["rich"])
    assert np.allclose(estimator.predict_proba(frame), model.probabilities(frame))
    written = PrivateModel.from_json(estimator.to_json(label="rich"))
    assert np.allclose(written.probabilities(frame), model.probabilities(frame))


@pytest.mark.parametrize("target", [False, True])
def test_estimators_of_arrays_write_what_they_predict(target):
    rng = RNG(0)
    X = rng.random((3_000, 3))
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=len(X))
    options = {"epsilon": 1.0, "bounds": (0, 1), "method": "additive", "test_seed": 3}
    if target:
        estimator = PrivateRegressor(target_bounds=(-2, 2), **options).fit(X, y)
    else:
        estimator = PrivateClassifier(classes=[0, 1], **options).fit(X, (y > 0).astype(int))
    frame = {f"x{place}": X[:, place] for place in range(3)}
    written = PrivateModel.from_json(estimator.to_json())
    if target:
        assert np.allclose(written.predict(frame), estimator.predict(X))
    else:
        assert np.allclose(written.probabilities(frame), estimator.predict_proba(X))
    names = estimator.get_feature_names_out().tolist()
    assert len(names) == len(np.ravel(estimator.coef_))
    assert names[0].startswith("x0>=")
    assert {name.split(">=")[0] for name in names} == {"x0", "x1", "x2"}
    rows = estimator.summary(as_frame=False)
    assert np.isfinite(rows["noise_low"][:-1]).all()
    assert (np.array(rows["noise_low"]) <= np.array(rows["coefficient"]))[:-1].all()


@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
def test_parts_have_the_bits_of_one_table(schema):
    frame = table(20_000)
    whole = learn(frame, schema).to_json()
    for cuts in ((0, 20_000), (0, 0, 1, 9_000, 20_000)):
        parts = [frame[start:end] for start, end in itertools.pairwise(cuts)]
        assert learn(Chunks(parts), schema).to_json() == whole
    assert learn(frame[::-1], schema).weights.tolist() == learn(frame, schema).weights.tolist()


def test_persons_pay_for_their_rows():
    frame = table()
    ids = np.arange(len(frame)) // 2
    model = learn(frame, ids=ids, rows_per_person=2)
    assert model.record.neighbors == "replace_person"
    alone = learn(frame)
    noisy = model.shapes()["job"].deviations.mean(), alone.shapes()["job"].deviations.mean()
    assert noisy[0] > noisy[1]


@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
def test_private_number_of_records_is_noisy_and_may_be_none(schema):
    frame, budget = table(), Budget(2.0, 1e-5, neighbors="add_remove")
    models = [learn(frame, schema, neighbors="add_remove", random_state=seed) for seed in range(3)]
    assert len({model.n for model in models} | {len(frame)}) > 2
    assert all(abs(model.n - len(frame)) < 300 for model in models)
    blurred = learn(frame, schema).shapes()["age"].deviations.mean()
    assert models[0].shapes()["age"].deviations.mean() < blurred
    for few in (frame[:0], frame[:1]):
        with pytest.warns(UtilityWarning, match="records"):
            model = learn(few, schema, epsilon=0.5, neighbors="add_remove", budget=budget)
        assert model.n >= 1
        assert np.isfinite(model.weights).all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            parts = learn(Chunks([few, frame[:0]]), schema, epsilon=0.5, neighbors="add_remove")
        assert parts.weights.tolist() == model.weights.tolist()
    assert budget.spent == (1.0, 2e-6)
    with pytest.raises(ParameterError, match="neighbors"):
        learn(frame, schema, neighbors="add_remove", budget=Budget(1.0, 1e-5))
    ids = np.arange(len(frame)) // 2
    people = learn(frame, schema, neighbors="add_remove", ids=ids, rows_per_person=2)
    assert people.record.neighbors == "add_remove_person"


def test_budget_is_charged_once_and_errors_spend_nothing():
    frame, budget = table(500), Budget(2.0, 1e-5)
    learn(frame, budget=budget)
    assert budget.spent == (1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        learn(frame, epsilon=3.0, budget=budget)
    narrow = Schema(SCHEMA.label, {"age": Number(1e16, 1e16 + 4)})
    with pytest.raises(ParameterError, match="bounds"):
        learn(frame, narrow, budget=budget)
    with pytest.raises(ParameterError, match="epsilon"):
        PrivateAdditive(SCHEMA, epsilon=1e-30, delta=1e-30).learn(frame, budget=budget)
    with pytest.raises(ShapeError):
        learn(frame[:0], budget=budget)
    for options in ({"method": "sgd"}, {"classes": ["a"]}):
        with pytest.raises(ParameterError):
            PrivateAdditive(SCHEMA, epsilon=1.0, delta=1e-6, **options)
    three = CenteredLinear(
        SCHEMA, epsilon=1.0, delta=1e-6, classes=("no", "yes", "maybe"), method="additive"
    )
    with pytest.raises(ParameterError, match="two classes"):
        three.learn(frame, budget=budget)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
def test_few_records_have_the_base_alone_and_a_note_before_the_charge(schema):
    budget = Budget(1.0, 1e-5)
    with pytest.warns(UtilityWarning, match="base rate alone"):
        model = learn(table(20), schema, epsilon=0.5, budget=budget)
    assert not model.weights[:-1].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning):
            learn(table(20), schema, epsilon=0.5, budget=budget)
    assert budget.spent[0] == 0.5


@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
@pytest.mark.parametrize(
    ("n", "neighbors"),
    [(1, "replace_one"), (60, "replace_one"), (3_000, "replace_one"), (60, "add_remove")],
)
def test_no_value_raises_warns_or_changes_a_shape(schema, n, neighbors):
    frame = table(n)
    columns = ["age", "pay", "bit", "worth"]
    values = (0.0, 1e308, -math.inf, math.nan)
    shapes = set()
    for value in values:
        worst = frame.assign(job="b", rich="yes").astype(dict.fromkeys(columns, float))
        worst.loc[:, columns] = value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UtilityWarning)
            model = learn(worst, schema, epsilon=30.0, neighbors=neighbors)
        assert np.isfinite(model.weights).all()
        shapes.add((len(model.shapes()), model.weights.shape[1]))
        assert len(model.predict(worst)) == n
    assert len(shapes) == 1


# Public numbers ----------------------------------------------------------------------------------


def test_rows_have_the_cells_that_bits_stand_for():
    unit = Rows.of_table(SCHEMA, _take(table(50)))
    columns = lay_out(unit, True, 16)
    assert [column.kind for column in columns] == ["number", "number", "bit", "category"]
    assert [column.size for column in columns] == [256, 256, 2, 4]
    rows = np.array([[0, 0.5, 0, 1, 0, 0], [1, 0.999, 1, 0, 0, 1], [0.25, 0, 0.7, 0, 0, 0.0]])
    assert cut_rows(columns, rows).T.tolist() == [[0, 128, 0, 0], [255, 255, 1, 2], [64, 0, 0, 3]]
    one = Schema(SCHEMA.label, {"job": Category(("a",))})
    assert cut_rows(lay_out(Rows(one), True, 16), np.array([[1.0], [0.0]])).tolist() == [[0, 1]]
    wide = Schema(SCHEMA.label, {"job": Category(tuple(map(str, range(300))))})
    (many,) = lay_out(Rows(wide), True, 16)
    assert cut_rows([many], np.vstack([np.eye(300), np.zeros(300)])).max() == 255


def _take(frame):
    from hdp_fast.data import read_frame

    return read_frame(frame)


def test_categories_of_more_than_a_byte_are_learned():
    rng = RNG(0)
    values = tuple(f"v{place}" for place in range(300))
    schema = Schema(SCHEMA.label, {"job": Category(values)})
    job = rng.choice(["v3", "v280", "v299", "new"], 8_000)
    frame = pd.DataFrame({"job": job, "rich": np.where(job == "v3", "yes", "no")})
    model = learn(frame, schema, epsilon=8.0)
    shares = model.probabilities({"job": ["v3", "v280", "v299", "new"]})[:, 1]
    assert shares[0] > 0.5 > shares[1:].max()


def test_numbers_have_more_bins_where_records_are_many():
    """By public numbers alone: n mu / columns, of which mu is .87 here."""
    for n, epsilon, bins in ((2_000, 4.0, 16), (3_000, 4.0, 32), (10, math.inf, 64)):
        goal = Goal(epsilon, 1e-6)
        plan = plan_additive(Rows.within((0, 1), 2), n, goal, name="here", target=False)
        assert [column.bins for column in plan.columns] == [bins] * 2
        assert (plan.clear >= 1_000) == (bins > 16)


@pytest.mark.parametrize("most", [16, 32, 64])
def test_bins_hold_about_as_many_records_each_and_at_least_two_there_are(most):
    (column,) = lay_out(Rows.within((0, 1), 1), True, most)
    counts = np.arange(256.0)
    bins = choose_bins(column, counts, 1.0, int(counts.sum()))
    sizes = np.bincount(bins.of_cell, weights=counts)
    assert len(sizes) == most
    assert sizes.max() < (1 + most / 50) * sizes.mean()
    for lone in (np.eye(256)[7] * 500, np.zeros(256), -np.ones(256)):
        made = choose_bins(column, lone, 1.0, 500)
        assert len(made.counts) >= 2
        assert (made.counts > 0).all()
        assert made.counts.sum() == pytest.approx(500)


def test_rounds_weigh_what_averages_hold():
    rates = np.array([1.0, 0.5, 0.25])
    assert weigh_rounds(rates).tolist() == [0.375, 0.375, 0.25]


def test_evidence_is_for_flat_shapes_where_there_is_noise_alone():
    (column,) = lay_out(Rows.within((0, 1), 1), True, 16)
    bins = choose_bins(column, np.full(256, 40.0), 1.0, 256 * 40)
    prior, rng = make_prior(bins, 1.0), RNG(0)
    variances = np.full(16, 0.04)
    noise = [0.2 * rng.normal(size=16) for _ in range(9)]
    wave = [2 * np.sin(6 * bins.places) + 0.2 * rng.normal(size=16) for _ in range(9)]
    flat = weigh_priors([prior] * 9, noise, [variances] * 9, 1.0)
    bent = weigh_priors([prior] * 9, wave, [variances] * 9, 1.0)
    assert min(one[0] for one in flat) > 0.5
    assert max(one[0] for one in bent) < 0.01
    curvatures = np.full(16, 100.0)
    stay, follow_ = (
        find_gain(prior, weights[0], curvatures, variances, 1.0) for weights in (flat, bent)
    )
    assert np.linalg.norm(stay @ (curvatures * wave[0])) < 0.5 * np.linalg.norm(wave[0])
    assert np.abs(follow_ @ (curvatures * wave[0]) - wave[0]).max() < 0.4


def test_scale_is_that_of_the_scores_where_noise_is_small_and_the_prior_where_it_is_not():
    middles = np.linspace(-3, 3, 8)
    shares = 1 / (1 + np.exp(-(0.6 * middles + 0.2)))
    counts = 10_000 * np.array([1 - shares, shares])
    sure = find_scale(counts, middles, 0.0, 1.0, 100.0, 0.1)
    assert sure.factor == pytest.approx(0.6, abs=0.02)
    assert sure.shift == pytest.approx(0.2, abs=0.03)
    blurred = find_scale(counts, middles, 0.0, 1e9, 100.0, 0.0)
    assert blurred.factor == pytest.approx(0.87, abs=0.1)
    assert find_scale(counts, middles, 0.0, 1e9, 1e-9, 0.0).factor < 0.5


def test_ends_hold_most_targets():
    counts = np.zeros(64)
    counts[20:30] = 100
    law, root = choose_ends(counts, 3.0, 1_000)
    assert law.low <= -1 + 20 / 32 < -1 + 30 / 32 <= law.high < 1
    assert root == pytest.approx(10 / 32 / math.sqrt(12), rel=0.1)
    counts[20:30] = 0
    counts[3] = 90
    assert choose_ends(counts, 3.0, 1_000)[0].high == 1.0


def test_selectors_choose_columns_by_the_spread_of_their_shapes():
    from sklearn.feature_selection import RFE, SelectFromModel

    X = RNG(0).random((6_000, 3))
    y = (np.abs(X[:, 1] - 0.5) > 0.25).astype(int)
    public = {"bounds": (0, 1), "classes": [0, 1], "test_seed": 1}
    estimator = PrivateClassifier(epsilon=1.0, method="additive", **public)
    assert SelectFromModel(estimator).fit(X, y).get_support().tolist() == [False, True, False]
    chosen = RFE(estimator, n_features_to_select=1).fit(X, y)
    assert chosen.get_support().tolist() == [False, True, False]
    made = chosen.estimator_
    assert (
        len(made.feature_importances_) == np.size(made.coef_) == len(made.get_feature_names_out())
    )


def test_columns_beyond_what_the_core_adds_up_are_refused_before_the_charge():
    budget = Budget(2_000.0, delta=1e-5)
    model = PrivateClassifier(
        epsilon=1_000.0, delta=1e-6, bounds=(0, 1), classes=[0, 1], method="additive"
    )
    X = np.random.default_rng(1).random((700, 1_025))
    with pytest.raises(ParameterError, match="columns = 1025, but an additive model has at most"):
        model.fit(X, (X[:, 0] > 0.5).astype(int), budget=budget)
    assert budget.spent.epsilon == 0


# The choice between an additive model and a linear one -------------------------------------------


def draw_classes(kind, n=6_000, seed=3):
    """Records whose shapes bend or are lines, or that are one factor eight times; and classes."""
    rng = RNG(seed)
    if kind != "factor":
        X = rng.random((n, 4))
        first = 2 * np.abs(X[:, 0] - 0.5) if kind == "bends" else X[:, 0]
        return X, rng.random(n) < 1 / (1 + np.exp(4 - 4 * first - 4 * X[:, 1]))
    factor = rng.normal(size=(n, 1))
    X = 1 / (1 + np.exp(-factor - 0.4 * rng.normal(size=(n, 8))))
    return X, rng.random(n) < 1 / (1 + np.exp(-4 * factor[:, 0]))


def test_choice_takes_an_additive_model_but_where_columns_are_one_factor_or_records_few():
    budget = Budget(5.0, 1e-5)
    for kind, method, n in (
        ("bends", "additive", 5_000),
        ("bends", "additive", 20_000),
        ("line", "descent", 20_000),
        ("factor", "descent", 6_000),
        ("bends", "descent", 1_000),
    ):
        X, y = draw_classes(kind, n)
        made = PrivateClassifier(epsilon=1.0, bounds=(0, 1), classes=[False, True], test_seed=2)
        made.fit(X, y, budget=budget)
        assert made.method_ == method
        assert ("look" in made.record_.mechanism) == (n > 1_000)
        record = made.record_
        assert (record.epsilon, record.delta, record.law) == (1.0, 1e-6, "gaussian")
    assert budget.spent.epsilon == 5.0
    made.fit(*draw_classes("bends", 10_000), ids=np.arange(10_000) // 2, rows_per_person=2)
    assert made.method_ == "additive"
    assert made.record_.neighbors == "replace_person"
    assert made.record_.mechanism.endswith("model of them, at most 2 rows a person")
    X, y = draw_classes("bends", 5_000)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.where(y, "yes", "no"))
    schema = Schema(Label("y", positive=("yes",)), {name: Number(0, 1) for name in "abcd"})
    learner = CenteredLinear(schema, epsilon=1.0, delta=1e-6, method="auto")
    whole = learner.learn(frame, random_state=1)
    parts = learner.learn(Chunks([frame[:1], frame[1:]]), random_state=1)
    assert whole.method == "additive"
    assert parts.to_json() == whole.to_json()
    narrow = Schema(schema.label, {"a": Number(1e16, 1e16 + 4)})
    few = CenteredLinear(narrow, epsilon=8.0, delta=1e-6, method="auto").learn(frame)
    assert few.method == "descent"


def test_look_moves_by_no_more_than_its_share_for_all_tiny_neighbors():
    """All data sets of two records, all neighbors, in exact fractions, as for the whole release."""
    unit = Rows.within((0, 1), 2)
    plan = plan_additive(unit, 2, Goal(40.0, 0.01), name="here", target=False)
    look = additive_choice.plan_look(plan, unit)
    records = list(itertools.product(itertools.product([0.0, 0.49, 1.0], (0.0, 1.0)), (0, 1)))
    largest = Fraction(0)
    for other in records[::3]:
        runs = []
        for record in records:
            rows, labels = _split([record, other])
            transcript = Transcript(4)
            pair = WholeRows(np.array(rows), np.array(labels))
            told = additive_choice.measure_columns(
                look, pair, lambda sums, sigma, to=transcript: to.answer(sums, sigma).astype(float)
            )
            runs.append((told, transcript))
        assert len({told for told, _ in runs}) == 1
        for (_, some), (_, more) in itertools.combinations(runs, 2):
            total = sum(
                Fraction(int(((a - b) ** 2).sum())) / Fraction(sigma) ** 2
                for a, b, sigma in zip(some.sums, more.sums, some.sigmas, strict=True)
            )
            largest = max(largest, total)
    allowed = plan.square * additive_choice.share_of_look(plan.clear)
    assert allowed / 3 < largest <= allowed


def test_what_is_chosen_has_no_more_than_the_rest(monkeypatch):
    """What both models release, in the fractions that their plans state."""
    X, y = draw_classes("bends", 4_000)
    goal, square = Goal(1.0, 1e-6, random_state=0), Fraction(accounting.gaussian_mu(1.0, 1e-6)) ** 2
    clear, seen = 4_000 * math.sqrt(square) / 4, []
    rest = square * (1 - additive_choice.share_of_look(clear))
    learn_additive, learn_classes = additive_choice.learn_additive, additive_choice.learn_classes

    def keep(learn, plan, *parts):
        seen.append(plan)
        return learn(plan, *parts)

    monkeypatch.setattr(additive_choice, "learn_additive", partial(keep, learn_additive))
    monkeypatch.setattr(additive_choice, "learn_classes", partial(keep, learn_classes))
    unit, records = Rows.within((0, 1), 4), []
    for taken in (True, False):
        monkeypatch.setattr(additive_choice.Look, "is_for_additive", lambda *_, taken=taken: taken)
        made = additive_choice.release_chosen(unit, X, y.astype(int), goal, name="here")
        records.append(made.record)
    added, linear = seen
    assert added.square <= rest
    assert sum(added.shares) == 1
    bits, of_means = linear.means
    price = unit.squared_distance(4 if linear.squares else 2)
    total = Fraction(price << (2 * bits)) / of_means**2
    total += 1 / Fraction(linear.of_classes) ** 2 + 2 / Fraction(linear.margins) ** 2
    total += linear.descent.steps * Fraction(2 * linear.grid.length) ** 2 / linear.grid.sigma**2
    assert rest * Fraction(99, 100) < total <= rest
    assert records[0] == records[1]


# With agents, and the noise of shapes ------------------------------------------------------------


def test_agents_calibrate_an_additive_model_by_the_numbers_of_its_schema():
    panel, town = table(), table(20_000, 8)
    town["rich"] = np.where(RNG(1).random(len(town)) < 0.5, "no", town["rich"])
    model, rich = learn(panel), (town["rich"] == "yes").to_numpy()
    held, asked = SCHEMA.floats(town), model.hypothesis
    assert np.allclose(score_of(asked)(held), np.diff(model.scores(town))[:, 0])
    cuts = [np.array(model.schema.columns[name].cuts) for name in ("age", "pay")]
    at = town[: min(map(len, cuts))]
    for below in (0.0, 1e-6):
        at = at.assign(age=cuts[0][: len(at)] - below, pay=cuts[1][: len(at)] - below)
        told = score_of(asked)(SCHEMA.floats(at))
        assert np.allclose(told, np.diff(model.scores(at))[:, 0])
    agents = local.Agents(held, rich.astype(int), epsilon=4.0)
    both = local.Agents(held, rich.astype(int), epsilon=4.0), agents
    told = [transfer.calibrate(one, pool, random_state=1) for one, pool in
            zip((model, json.loads(json.dumps(asked))), both, strict=True)]  # fmt: skip
    result = told[1]
    assert told[0].knots.tolist() == result.knots.tolist()
    pool = local.Agents(held, rich.astype(int), epsilon=4.0)
    certificate = transfer.certify(model, pool, random_state=1)
    wrong = (np.array(model.predict(town)) != rich).mean()
    assert certificate.low <= wrong <= certificate.high
    bits = local.Agents(model.schema.bits(town), rich.astype(int), epsilon=4.0)
    for ask in (transfer.calibrate, transfer.certify):
        with pytest.raises(ShapeError, match=r"reads \d+, those that schema\.floats makes"):
            ask(model, bits)
    linear = CenteredLinear(SCHEMA, **PRIVACY).learn(panel)
    with pytest.raises(ParameterError, match="method 'descent', but agents hold no table"):
        transfer.certify(linear, pool)
    moved = model.with_calibration(result.knots, result.shifts, agents.record(1))
    assert loss_of(moved, town) < loss_of(model, town) - 0.05
    assert moved.shapes()["age"].effects.tolist() == model.shapes()["age"].effects.tolist()
    for other in (moved, learn(panel, TARGET), CenteredLinear(SCHEMA, **PRIVACY).learn(panel)):
        assert other.hypothesis is None
    both = pd.concat([panel, town], ignore_index=True)
    domain = np.repeat([0, -1], [len(panel), len(town)])
    estimator = PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], test_seed=1, **PRIVACY)
    hybrid = HybridClassifier(
        estimator.set_params(method="additive"), agents_epsilon=4.0, test_seed=1
    )
    hybrid.fit(both[list(SCHEMA.columns)], both["rich"], sample_domain=domain)
    written = PrivateModel.from_json(hybrid.to_json(label="rich"))
    assert loss_of(written, town) < loss_of(model, town) - 0.05


def few_values(n, size):
    """Numbers of ten values, which have a bin each, and a category: fits have the same bins."""
    rng = RNG(n)
    frame = {name: rng.integers(0, 10, n) * 10.0 for name in ("age", "pay")}
    frame["job"] = rng.choice(list("abc"), n)
    score = size * (1.5 * np.cos(frame["age"] / 15) + frame["pay"] / 50 - 1 + (frame["job"] == "b"))
    rich = rng.random(n) < 1 / (1 + np.exp(-score))
    worth = 4 * score + 2 * rng.normal(size=n)
    return pd.DataFrame(frame).assign(rich=np.where(rich, "yes", "no"), worth=worth)


def noise_ratio(schema, frame, fits):
    """The stated deviations of shapes over what fits of one table vary by, as root mean squares."""
    kinds = {name: schema.columns[name] for name in ("age", "pay", "job")}
    kinds |= {"pay": Number(0, 90)}
    effects, stated = [], []
    for seed in range(fits):
        model = learn(frame, Schema(schema.label, kinds), random_state=seed)
        parts = []
        for name, shape in model.shapes().items():
            values = np.arange(0, 91, 10)
            places = np.arange(3)  # No record has another value.
            if name != "job":
                places = np.searchsorted(np.array(shape.starts), values, side="right") - 1
            parts.append((shape, places))
        effects.append(np.concatenate([shape.effects[places] for shape, places in parts]))
        stated.append(np.concatenate([shape.deviations[places] for shape, places in parts]))
    return math.sqrt(np.mean(np.square(stated)) / np.mean(np.var(effects, axis=0, ddof=1)))


def test_stated_deviations_of_shapes_are_those_of_fits():
    assert 0.55 < noise_ratio(SCHEMA, few_values(6_000, 1.0), 6) < 1.6


@at_length
@each_case("size", [0.5, 2.0])
@pytest.mark.parametrize("schema", [SCHEMA, TARGET])
def test_stated_deviations_of_shapes_are_those_of_many_fits(schema, size):
    for n in (6_000, 30_000):
        assert 0.7 < noise_ratio(schema, few_values(n, size), 60) < 1.3


def test_noise_adds_up_in_averages_of_bins_without_records():
    rates, held = 2 / (np.arange(40) + 5), np.array([1.0, 0.5, 0.0])
    draws, averages = RNG(0).normal(size=(40, 4_000, 3)), np.zeros((4_000, 3))
    for rate, drawn in zip(rates, draws, strict=True):
        averages += rate * (drawn - held * averages)
    assert np.allclose(averages.std(axis=0), additive.vary_averages(rates, held), rtol=0.05)
    alone = np.linalg.norm(weigh_rounds(rates))
    assert additive.vary_averages(rates, held)[0] == pytest.approx(alone)
