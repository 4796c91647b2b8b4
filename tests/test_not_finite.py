"""Numbers that are not finite, and what is no number, in every array that a mechanism reads.

The table is that of docs/guarantees/errors_and_side_channels.md: refused before anything is spent,
with neither place nor value in the message; or a public default in their place, or the nearest end
of the range.
"""

import math
import re
from functools import partial

import numpy as np
import pytest
from cases import each_case

from hdp_fast import (
    Budget,
    adaptation,
    gf2,
    labels,
    learners,
    local,
    noise,
    parity,
    stability,
    transfer,
    weights,
)
from hdp_fast.data import records, schema, table
from hdp_fast.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings(
    "error",
    "ignore:random_state makes the coins",
    "ignore::hdp_fast.exceptions.UtilityWarning",
)

N, D = 40, 3
COINS = np.random.default_rng(0)
MANY = np.zeros((90_000, D), np.uint8)
BITS = COINS.integers(0, 2, (N, D))
LABELS = BITS[:, 0]
FLOATS = COINS.uniform(-0.5, 0.5, (N, D))
REALS = FLOATS[:, 0]
# Another entry, which no one may read in an error.
MARK = 123456.789
MARKED = "123456"


class Frame:
    """A column of pandas with missing values, as numpy sees it."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, object)


def with_one(value):
    def change(good):
        values = np.array(good, np.float64)
        values.flat[values.size // 3] = value
        values.flat[values.size // 3 + 1] = MARK
        return values

    return change


def missing(good):
    values = np.array(good, object)
    values.flat[values.size // 3], values.flat[values.size // 3 + 1] = None, MARK
    return values


def beyond(good):
    """Numbers that no float64 holds."""
    values = np.array(good, np.longdouble)
    values.flat[values.size // 3], values.flat[values.size // 3 + 1] = np.longdouble("1e4000"), MARK
    return values.tolist()


def huge(good):
    values = np.array(good, object)
    values.flat[values.size // 3], values.flat[values.size // 3 + 1] = 10**400, MARK
    return values.tolist()


BAD = {
    "beyond": beyond,
    "huge": huge,
    "nan": with_one(math.nan),
    "inf": with_one(math.inf),
    "-inf": with_one(-math.inf),
    "list": lambda good: missing(good).tolist(),
    "nullable": lambda good: Frame(missing(good)),
}
PAIR = {"X": BITS, "y": LABELS}
REAL_PAIR = {"X": FLOATS, "y": REALS}
HALF_PAIR = {"X": FLOATS, "y": LABELS}
DOMAINS = {"X_source": FLOATS, "y_source": REALS, "X_target": FLOATS, "y_target": REALS}
CLASSES = {**DOMAINS, "y_source": LABELS, "y_target": LABELS}
STUMPS = learners.Stumps(D)
HALVES = learners.Halfspaces(np.eye(D), np.zeros(D))
SGD = learners.PrivateSGD(loss="logistic", steps=2, noise_multiplier=20.0)
SQUARED = learners.PrivateSGD(loss="squared", steps=2, noise_multiplier=20.0, label_bound=1.0)
MODEL = learners.PrivateSGD(loss="logistic", steps=2, epsilon=math.inf).learn(
    FLOATS, LABELS, random_state=0
)
REAL_MODEL = learners.PrivateSGD(loss="squared", steps=2, label_bound=1.0, epsilon=math.inf).learn(
    FLOATS, REALS
)
SEPARATED = learners.LinearSeparator().learn(FLOATS, LABELS)
HAZARDS = stability.HazardTable.design(4, 9, epsilon=20, delta=1e-3, beta=1e-9)
GAUSSIAN = stability.GaussianVote.design(9, labels=D, epsilon=20, delta=1e-3, beta=0.1)
RANDOM = {"random_state": 0}
EPSILON = {"epsilon": 1.0, "random_state": 0}
MIRRORED = ("KernelMeanMatching", "DiscrepancyMinimization")


def dense(losses):
    weights.DenseWeights(N, 0.5, 0.1).update(losses)


def weighted(X, y):
    return SGD.learn_weighted(X, y, weights.DenseWeights(N, 0.5, 0.1), random_state=0)


def agents(X=BITS, y=LABELS, epsilon=1.0):
    return local.Agents(X, y, epsilon=epsilon)


def descent(X):
    return local.learn_by_descent(
        learners.PrivateSGD(loss="logistic", steps=2, batch_size=5, epsilon=math.inf),
        agents(X),
        random_state=0,
    )


def repeated(values):
    return np.concatenate([np.asarray(values)] * 300)


def handed_over(X, y, budget):
    """A run of many records, of which the given ones are the first."""
    run = transfer.SubsampleTestReweigh(
        learners.ExponentialLearner(STUMPS, epsilon=1.0), alpha=0.05, kappa=0.1, eta=0.5, rounds=1,
        epsilon=1.0, delta=1e-6,
    )  # fmt: skip
    people = agents(MANY, MANY[:, 0], epsilon=2.0)
    return run.fit(repeated(X), repeated(y), people, budget=budget, random_state=0)


def adapted(kind, **options):
    estimator = getattr(adaptation, kind)
    given = {} if kind in MIRRORED else {"epsilon": 4.0, "delta": 1e-3}
    coins = {} if kind in MIRRORED else {"random_state": 0}

    def fit(budget=None, **data):
        charged = {} if budget is None else {"budget": budget}
        return estimator(**given, **options).fit(**data, **coins, **charged)

    return fit


def tuned(budget, **data):
    model = adaptation.ConvexAdaptation(epsilon=4.0, steps=1)
    return adaptation.tune(
        model, {"kappa_1": [0.1]}, **data, trials=1.5, budget=budget, random_state=0
    )


def labeled(kind, **options):
    goal = {
        "epsilon": 20,
        "delta": 1e-3,
        "queries": 9,
        "max_unstable": 4,
        "members": 20,
        "beta": 1e-9,
    }

    def fit(budget=None, X=FLOATS, y=LABELS, learner=None):
        made = kind(learner or (lambda X, y: lambda Q: np.ones(len(Q))), **goal, **options)
        return made.fit(X, y, budget=budget, random_state=0)

    return fit


CLASSIFIER = labeled(labels.PrivateLabeler, classes=[0, 1], table="hazard")
SCORER = labeled(labels.SoftLabeler)

# Calls that refuse: the function and its arrays, then the same for those that take a budget.
REFUSING = {
    "gf2.rank": (gf2.rank, {"A": BITS}),
    "gf2.solve": (gf2.solve, {"A": BITS, "b": LABELS}),
    "gf2.dot": (gf2.dot, {"A": BITS, "x": LABELS[:D]}),
    "gf2.BitMatrix": (gf2.BitMatrix.from_dense, {"X": BITS}),
    "learners.Features": (learners.Features, {"X": BITS}),
    "learners.cut": (lambda X: learners.cut(X, [[0.0]] * D), {"X": FLOATS}),
    "FeatureMap": (learners.FeatureMap.identity(D), {"X": FLOATS}),
    "FeatureMap.whitening": (learners.FeatureMap.whitening, {"pool": FLOATS}),
    "errors": (STUMPS.errors, PAIR),
    "errors of halfspaces": (HALVES.errors, HALF_PAIR),
    "predict": (lambda X: STUMPS.predict(1, X), {"X": BITS}),
    "predict of halfspaces": (lambda X: HALVES.predict(1, X), {"X": FLOATS}),
    "Halfspaces": (learners.Halfspaces, {"W": FLOATS, "b": REALS}),
    "learn_weighted": (weighted, HALF_PAIR),
    "scores": (MODEL.scores, {"X": FLOATS}),
    "losses": (MODEL.losses, HALF_PAIR),
    "losses of real labels": (REAL_MODEL.losses, REAL_PAIR),
    "LinearSeparator": (learners.LinearSeparator().learn, HALF_PAIR),
    "DenseWeights.update": (dense, {"losses": np.full(N, 0.5)}),
    "weights.project": (lambda w: weights.project(w, 0.5), {"w": np.ones(N)}),
    "stability.distance": (stability.distance, {"counts": BITS}),
    "stability.plurality": (stability.plurality, {"counts": BITS}),
    "stability.count_votes": (
        lambda votes: stability.count_votes(votes, 2),
        {"votes": BITS.astype(np.uint8)},
    ),
    "TableSession.answer": (lambda counts: HAZARDS.session().answer(counts), {"counts": BITS[:5]}),
    "TableSession.answer_ones": (
        lambda ones: HAZARDS.session().answer_ones(ones, 9),
        {"ones": LABELS[:5]},
    ),
    "GaussianSession.answer": (
        lambda counts: GAUSSIAN.session().answer(counts),
        {"counts": BITS[:5]},
    ),
    "AboveThreshold.answer": (
        lambda values: stability.AboveThreshold(9, 0, epsilon=1.0).answer(values),
        {"values": LABELS[:5]},
    ),
    "OnlineQueryRelease.answer": (
        lambda counts: stability.OnlineQueryRelease(9, epsilon=1.0, delta=0.1).answer(counts),
        {"counts": BITS[:5]},
    ),
    "local.Agents": (lambda y: agents(y=y), {"y": LABELS}),
    "learn_by_descent": (descent, {"X": FLOATS}),
    "Agents.require_bits": (lambda X: agents(X).require_bits(), {"X": BITS}),
    "EmpiricalOracle": (lambda y: local.EmpiricalOracle(BITS, y), {"y": LABELS}),
    "MeanAggregate": (local.BinaryResponse(1.0, (0, 1)).aggregate, {"reports": LABELS}),
    "noise.weighted_draws": (noise.weighted_draws, {"weights": LABELS + 1}),
    "adaptation.discrepancy": (
        lambda **data: adaptation.discrepancy(**data, radius=1.0, norm_bound=1.0),
        DOMAINS,
    ),
    "adaptation.classification_discrepancy": (
        lambda **data: adaptation.classification_discrepancy(**data, radius=1.0, steps=2),
        CLASSES,
    ),
    "adaptation.learning_bound": (
        lambda weights: adaptation.learning_bound(
            0.1, weights, source=9, alpha=0.5, discrepancy=0.1, radius=1.0, norm_bound=1.0
        ),
        {"weights": np.full(N, 1 / N)},
    ),
    **{f"adaptation.{kind}": (adapted(kind), DOMAINS) for kind in MIRRORED},
    "adaptation.scores": (adapted("ConvexAdaptation", steps=1)(**DOMAINS).scores, {"X": FLOATS}),
    "adaptation.predict": (
        adapted("NonConvexAdaptation", steps=1)(**CLASSES).predict,
        {"X": FLOATS},
    ),
}
CHARGED = {
    "parity.learn": (
        lambda X, y, budget: parity.learn(X, y, **EPSILON, budget=budget),
        PAIR,
    ),
    "parity.transfer": (
        lambda X, y, budget: parity.transfer(
            X, y, agents(MANY, MANY[:, 0]), alpha=0.3, beta=0.3, **EPSILON, budget=budget
        ),
        PAIR,
    ),
    "ExponentialLearner": (learners.ExponentialLearner(STUMPS, epsilon=1.0).learn, PAIR),
    "ExponentialLearner of halfspaces": (
        learners.ExponentialLearner(HALVES, epsilon=1.0).learn,
        HALF_PAIR,
    ),
    "DoublingLearner": (
        lambda X, y, budget: learners.DoublingLearner(
            [STUMPS], alpha=0.4, beta=0.4, epsilon=1.0
        ).learn(repeated(X), repeated(y), budget=budget),
        PAIR,
    ),
    "PrivateSGD": (SGD.learn, HALF_PAIR),
    "PrivateSGD of real labels": (SQUARED.learn, REAL_PAIR),
    "transfer.SubsampleTestReweigh": (handed_over, PAIR),
    "local.randomized_response": (
        lambda bits, budget: local.randomized_response(bits, **EPSILON, budget=budget),
        {"bits": LABELS},
    ),
    "local.CuratorOracle": (
        lambda y, budget: local.CuratorOracle(
            BITS, y, **EPSILON, queries=2, beta=0.1, budget=budget
        ),
        {"y": LABELS},
    ),
    "StableRelease": (
        stability.StableRelease(epsilon=1.0, delta=0.1).release,
        {"counts": LABELS[:5]},
    ),
    **{
        select.__name__: (partial(select, **EPSILON), {"scores": LABELS})
        for select in (noise.permute_and_flip, noise.exponential_mechanism)
    },
    "labels.PrivateLabeler": (CLASSIFIER, {"y": LABELS}),
    "adaptation.release_discrepancy": (
        lambda budget, **data: adaptation.release_discrepancy(
            **data, radius=1.0, norm_bound=1.0, **EPSILON, budget=budget
        ),
        DOMAINS,
    ),
    "adaptation.ConvexAdaptation": (adapted("ConvexAdaptation", steps=1), DOMAINS),
    "adaptation.ConvexAdaptation, source": (
        adapted("ConvexAdaptation", steps=1, private="source"),
        DOMAINS,
    ),
    "adaptation.NonConvexAdaptation": (adapted("NonConvexAdaptation", steps=1), CLASSES),
    "adaptation.NonConvexAdaptation, softmax": (
        adapted("NonConvexAdaptation", steps=1, loss="softmax", discrepancy=0.1),
        CLASSES,
    ),
    "adaptation.TargetSGD": (adapted("TargetSGD", steps=1), DOMAINS),
    "adaptation.PrivateDiscrepancyMinimization": (
        adapted("PrivateDiscrepancyMinimization"),
        {name: DOMAINS[name] for name in ("X_source", "y_source", "X_target")},
    ),
    "adaptation.tune": (tuned, DOMAINS),
}


def cases(calls):
    return [
        pytest.param(*calls[name], argument, id=f"{name}-{argument}")
        for name in calls
        for argument in calls[name][1]
    ]


def refused(function, arrays, argument, bad, **given):
    """The message, which names the argument, perhaps as "source: X" or "agents: X"."""
    with pytest.raises(ParameterError) as error:
        function(**{**arrays, argument: bad(arrays[argument])}, **given)
    text = str(error.value)
    name, _, domain = argument.partition("_")
    assert re.search(rf"\b{argument}\b|\b{domain}: {name}\b", text), text
    # Neither a value nor a place.
    assert not re.search(rf"{MARKED}|\bnan\b|\binf\b|None|\w\[\d|row \d", text), text


@each_case("name", REFUSING)
def test_what_is_finite_is_taken(name):
    function, arrays = REFUSING[name]
    function(**arrays)


@each_case("name", [name for name in CHARGED if name != "parity.transfer"])
def test_what_is_finite_is_charged(name):
    function, arrays = CHARGED[name]
    budget = Budget(100, 0.5)
    function(**arrays, budget=budget)
    assert len(budget.records) == 1


@each_case(("function", "arrays", "argument"), cases(REFUSING))
def test_it_is_refused_by_name_alone(function, arrays, argument):
    for bad in BAD.values():
        refused(function, arrays, argument, bad)


@each_case(("function", "arrays", "argument"), cases(CHARGED))
def test_it_is_refused_before_anything_is_spent(function, arrays, argument):
    for bad in BAD.values():
        budget = Budget(100, 0.5)
        refused(function, arrays, argument, bad, budget=budget)
        assert budget.records == ()


@each_case("entry", [2, -1, 123456])
@each_case(
    ("function", "arrays", "argument"),
    [case for case in cases(REFUSING) + cases(CHARGED) if case.values[1] is PAIR],
)
def test_no_bit_is_refused_like_no_number(function, arrays, argument, entry):
    def bad(good):
        values = np.array(good)
        values.flat[7] = entry
        return values

    given = {"budget": Budget(100, 0.5)} if (function, arrays) in CHARGED.values() else {}
    refused(function, arrays, argument, bad, **given)
    assert not given or given["budget"].records == ()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("matrix", [False, True])
def test_a_map_with_bounds_takes_what_is_missing_for_the_lower_one(dtype, matrix):
    bounds = [(-0.5, 0.5), (-2.0, -1.0), (0.0, 1e6)]
    features = learners.FeatureMap.scaling(bounds)
    if matrix:
        features = learners.FeatureMap.whitening(FLOATS, after=features)
    low, high = np.array(bounds, dtype).T
    for value, stands_for in ((math.nan, low), (-math.inf, low), (math.inf, high)):
        for place in range(D):
            wild, plain = FLOATS.astype(dtype), FLOATS.astype(dtype)
            wild[7, place], plain[7, place] = value, stands_for[place]
            np.testing.assert_array_equal(features(wild), features(plain))
            maker = learners.SufficientStatistics(features, classes=[0, 1])
            price = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
            one, other = (maker.release(X, LABELS, **price).to_json() for X in (wild, plain))
            assert one == other


@pytest.mark.parametrize("bounds", [[(-math.inf, 1), (0, 1)], [(0, math.inf), (0, 1)]])
def test_a_map_without_both_bounds_of_all_columns_has_nothing_that_stands_for_it(bounds):
    features = learners.FeatureMap(origin=np.zeros(2), factor=np.ones(2), bounds=bounds)
    features([[0.5, 0.5]])
    for value in (math.nan, math.inf, -math.inf):
        for place in range(2):
            row = np.full((1, 2), 0.5)
            row[0, place] = value
            with pytest.raises(ParameterError, match="X has an infinite entry or NaN"):
                features(row)


def test_what_a_function_returns_that_is_not_finite_counts_as_zero():
    for value in (math.nan, math.inf, -math.inf):
        features = learners.FeatureMap.from_callable(lambda row, x=value: row * x, D)
        assert (features(FLOATS) == 0).all()


# On a device, and where a schema is public: a default or the nearest end stands for it.
@each_case(
    "randomizer",
    [
        local.BinaryResponse(1.0, (-2.0, 3.0)),
        local.LaplaceRandomizer(1.0, (-2.0, 3.0)),
        local.GaussianRandomizer(1.0, 1e-6, (-2.0, 3.0)),
        local.Piecewise(1.0, (-2.0, 3.0)),
    ],
    ids=lambda randomizer: type(randomizer).__name__,
)
@each_case(("value", "end"), [(math.nan, -2), (-math.inf, -2), (math.inf, 3)])
def test_a_value_on_a_device_counts_as_an_end_of_its_range(randomizer, value, end):
    values = np.array([value, 0.5])
    assert len(randomizer.sample(values, random_state=0)) == 2
    low, high = randomizer.report_range
    reports = np.linspace(low, high, 9).astype(np.int64)
    np.testing.assert_array_equal(
        randomizer.log_probability(reports, value), randomizer.log_probability(reports, float(end))
    )


@pytest.mark.parametrize(
    ("cell", "number", "label"),
    [("nan", 0, -1), ("", 0, -1), ("text", 0, -1), ("inf", 1, 1), ("-inf", 0, -1), ("9e9", 1, 1)],
)
def test_a_cell_that_no_schema_foresees_raises_nothing(tmp_path, cell, number, label):
    file = tmp_path / "people.csv"
    file.write_text(f"size,sex,spent\n{cell},{cell},{cell}\n3,f,5\n")
    rules = schema.Schema(
        schema.Label("spent", bounds=(0, 10)),
        {"size": schema.Number(0, 10, (5,)), "sex": schema.Category(("f", "m"))},
    )
    values = table.read_table(file)
    np.testing.assert_array_equal(rules.floats(values), [[number, 0, 0], [0.3, 1, 0]])
    np.testing.assert_array_equal(rules.bits(values), [[number, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(rules.float_labels(values), [label, 0])


def test_scores_of_members_count_as_the_nearest_bin():
    for value, center in ((math.nan, 0.05), (-math.inf, 0.05), (math.inf, 0.95), (9.0, 0.95)):
        scores = np.full((stability.members_needed(HAZARDS), 1), value)
        values = HAZARDS.session(random_state=0).answer_scores(scores, 10)
        assert values == pytest.approx(center)


# Records go to a caller's learner as they are; what it says is a vote whatever it is.
class Missing:
    """A learner that wants to see what is missing."""

    def __call__(self, X, y):
        assert np.isnan(X).any() or np.isfinite(X).all()
        return lambda Q: np.where(np.isnan(Q[:, 0]), 1, 0)


def test_missing_values_reach_a_learner_and_its_queries():
    X = FLOATS.copy()
    X[3] = math.nan, math.inf, -math.inf
    labeler = CLASSIFIER(X=X, learner=Missing())
    Q = FLOATS[:4].copy()
    Q[1:3, 0] = math.nan
    assert labeler.label(Q).labels.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_vote_of_no_number_is_for_the_first_label(value):
    made = CLASSIFIER(learner=lambda X, y: lambda Q: np.full(len(Q), value))
    assert made.label(FLOATS[:4], preflight=False).labels.tolist() == [0] * 4


def test_a_score_of_no_number_is_zero():
    zero, none = (
        SCORER(learner=lambda X, y, value=value: lambda Q: np.full(len(Q), value))
        for value in (0.0, math.nan)
    )
    values, expected = (each.score(FLOATS[:3], 5).scores for each in (none, zero))
    np.testing.assert_array_equal(values, expected)


HALFSPACES = learners.Halfspaces(np.eye(2), np.zeros(2))
DOORS_OF_EMPTY = {
    "W": lambda X: learners.Halfspaces(X, np.zeros(0)),
    "b": lambda X: learners.Halfspaces(np.eye(2), X[:, 0]),
    "X of learn": lambda X: learners.ExponentialLearner(HALFSPACES, epsilon=1.0).learn(X, []),
    "X of a separator": lambda X: learners.LinearSeparator().learn(X, []),
    "X_source": lambda X: adaptation.discrepancy(X, [], np.eye(2), [0, 1], radius=1.0),
    "u": lambda X: local.LaplaceRandomizer(1.0, (0, 1)).sample(X[:, 0]),
}


@each_case("dtype", [[], [("a", float)], "V4", complex], ids=str)
@each_case("door", DOORS_OF_EMPTY)
def test_an_empty_array_of_no_numbers_is_refused(door, dtype):
    with pytest.raises(ParameterError, match=rf"^{door.split()[0]} has dtype"):
        DOORS_OF_EMPTY[door](np.zeros((0, 2), dtype))


@pytest.mark.parametrize("value", [10**400, np.longdouble("1e4000")], ids=["int", "longdouble"])
def test_a_number_beyond_floats_in_a_list_for_a_learner_is_infinite(value):
    found = records.check_values("X", [[1, 2.5], [value, None], [-value, True]])
    expected = [[1, 2.5], [math.inf, math.nan], [-math.inf, 1]]
    np.testing.assert_array_equal(found, np.array(expected))
    assert found.dtype == np.float64
    assert records.check_values("y", [value, 1.0]).tolist() == [math.inf, 1]
