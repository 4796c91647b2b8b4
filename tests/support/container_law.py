"""The law of containers: what one cell moves before noise is no more than what the noise hides.

A call runs on two tables that differ in one cell or in one person. Noise is replaced by zeros, and
what it would have been added to is kept, with its scale: integers and scores of both runs must be
as near to each other as the epsilon and delta of the call promise. Calls whose noise lies elsewhere
show instead what a caller's code sees of all other records, which must be the same.
"""

import math
import warnings
from contextlib import contextmanager
from fractions import Fraction
from types import BuiltinFunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from containers import BOOLS, FLOATS, SMALL, TEXTS, UNSIGNED, WHOLE, frame_of

from hdp_fast import (
    _core,
    accounting,
    adaptation,
    data,
    gf2,
    labels,
    learners,
    local,
    statistics,
    transfer,
)
from hdp_fast import sklearn as estimators
from hdp_fast.adaptation import residual_moments
from hdp_fast.exceptions import HdpFastError
from hdp_fast.learners import sufficient_statistics

EPSILON, DELTA = 1.0, 1e-6
ROWS = 12
# Rounding of the scale upwards, and of these tests' own sums.
SLACK = 1 + 1e-6


class Zeros(np.ndarray):
    """No noise; it keeps what it is added to."""

    draw: Any = None

    def __array_finalize__(self, other):
        self.draw = getattr(other, "draw", None)

    def __array_ufunc__(self, ufunc, method, *inputs, **_):
        plain = [x for x in inputs if not isinstance(x, Zeros)]
        if ufunc is np.add and self.draw is not None:
            self.draw["integers"] = np.array(plain[0])
            return np.array(plain[0])
        return getattr(ufunc, method)(*(np.asarray(x) for x in inputs))


class Draws:
    """What the noise of a call would have been added to."""

    def __init__(self):
        self.noise, self.scores, self.bits, self.released = [], [], [], []

    def integer_noise(self, law, scale, count, key):
        zeros = np.zeros(count, np.int64).view(Zeros)
        zeros.draw = {"law": law, "scale": Fraction(*scale), "integers": None}
        self.noise.append(zeros.draw)
        return zeros

    def select(self, method, scores, rate, key):
        self.scores.append((np.array(scores), Fraction(*rate)))
        return 0

    def randomized_response(self, values, epsilon, key):
        self.bits.append(np.array(values))
        return np.zeros(len(values), np.uint8)


@contextmanager
def without_noise(patch):
    """Replaces the three functions of the compiled module that every noise below comes from.

    Noise of a count and of second moments is not added as an array: without noise the release
    itself holds these integers.
    """
    draws = Draws()
    add_noise = sufficient_statistics.add_noise
    releasing = (sufficient_statistics, residual_moments)

    def keep(*arguments):
        draws.released.append(add_noise(*arguments))
        return draws.released[-1]

    with patch.context() as context:
        for module in releasing:
            context.setattr(module, "add_noise", keep)
        for name in ("integer_noise", "select", "randomized_response"):
            context.setattr(_core, name, getattr(draws, name))
        yield draws


@contextmanager
def watched_kernels(patch, rows):
    """Keeps the arrays with an entry or a row for each record, by call of the compiled module."""
    calls = []

    def rows_of(value):
        if isinstance(value, np.ndarray):
            if value.ndim and rows in (len(value), value.size):
                yield value.reshape(rows, -1).copy()
        elif isinstance(value, tuple | list):
            for entry in value:
                yield from rows_of(entry)

    def watched(kernel):
        def call(*arguments, **options):
            calls.append([*rows_of([*arguments, *options.values()])])
            return kernel(*arguments, **options)

        return call

    made = {
        name: watched(kernel)
        for name, kernel in vars(_core).items()
        if isinstance(kernel, BuiltinFunctionType)
    }
    with patch.context() as context:
        for name, kernel in made.items():
            context.setattr(_core, name, kernel)
        yield calls


def observe(patch, call, column):
    """What a call makes of a column before noise; None where it refuses the column."""
    if call.sees == "kernels":
        return observe_kernels(patch, call, column)
    with without_noise(patch) as draws:
        try:
            shown = call.run(column)
        except (HdpFastError, ValueError, TypeError) as error:
            if isinstance(error, HdpFastError) or call.foreign:
                return None
            raise
    if call.sees:
        return shown if draws.bits == [] else [draws.bits[0][:, None]]
    left = [draw for draw in draws.noise if draw["integers"] is None]
    for draw, integers in zip(
        left, [each for one in draws.released for each in parts(one)], strict=True
    ):
        draw["integers"] = np.asarray(integers)
    assert draws.noise or draws.scores
    return draws


def observe_kernels(patch, call, column):
    """The records as the first kernel gets them: what comes later depends on noise."""
    with watched_kernels(patch, len(column)) as calls:
        try:
            call.run(column)
        except (HdpFastError, ValueError, TypeError) as error:
            if isinstance(error, HdpFastError) or call.foreign:
                return None
            raise
    return next(arrays for arrays in calls if arrays)


def parts(released):
    """The integers of a release for which noise is not added as an array, in their order."""
    count = [[released.n]] if released.neighbors == "add_remove" else []
    if released.moments is None:
        return count
    above = released.moments[np.triu_indices(len(released.moments), 1)]
    return [*count, np.diag(released.moments), above]


def share(one, other):
    """The privacy loss of two observations, in parts of what the call states."""
    if len(one.noise) != len(other.noise) or len(one.scores) != len(other.scores):
        return math.inf
    squared, absolute, chosen = 0.0, 0.0, 0.0
    for mine, others in zip(one.noise, other.noise, strict=True):
        if mine["integers"].shape != others["integers"].shape or mine["scale"] != others["scale"]:
            return math.inf
        far = abs(mine["integers"].astype(float) - others["integers"]) / float(mine["scale"])
        squared += (far**2).sum() if "gauss" in mine["law"] else 0.0
        absolute += 0.0 if "gauss" in mine["law"] else far.sum()
    for (mine, rate), (others, _) in zip(one.scores, other.scores, strict=True):
        if mine.shape != others.shape:
            return math.inf
        move = mine.astype(float) - others
        chosen += float(rate) * (max(move.max(), 0.0) - min(move.min(), 0.0))
    mu = accounting.gaussian_mu(EPSILON, DELTA)
    return math.sqrt(squared) / mu + (absolute + chosen) / EPSILON


def breaks(call, one, other, row):
    """Whether two observations are farther apart than the call states."""
    if one is None or other is None:
        return False  # A public fact of the page on errors: some entry lies outside its domain.
    if call.sees == "members":
        if len(one) != len(other):
            return True
        return sum(not same(mine, others) for mine, others in zip(one, other, strict=True)) > 1
    if call.sees in ("records", "kernels"):
        rest = np.arange(len(one[0])) != row
        pairs = zip(one, other, strict=True)
        return not all(same(mine[rest], others[rest]) for mine, others in pairs)
    return share(one, other) > SLACK


def same(one, other):
    """Whether two arrays hold the same entries of the same dtype."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "O":
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    pairs = zip(one.ravel(), other.ravel(), strict=True)
    return all(type(a) is type(b) and (a is b or a == b or a != a) for a, b in pairs)


# Containers --------------------------------------------------------------------------------------


def masked(entries, _):
    """An array of numpy with a mask, which every call refuses."""
    hidden = [entry is None for entry in entries]
    kept = [0 if entry is None else entry for entry in entries]
    return np.ma.masked_array(np.array(kept, np.float64), hidden)


OTHERS = {
    "numpy masked": masked,
    "numpy int64": lambda entries, _: np.array(entries, np.int64),
    "numpy longdouble": lambda entries, _: np.array(entries, np.longdouble),
    "list": lambda entries, _: list(entries),
}
CODES = WHOLE | UNSIGNED | SMALL | OTHERS
NUMBERS = CODES | BOOLS | FLOATS
NAMES = WHOLE | UNSIGNED | TEXTS | OTHERS
# Lists have no type of their own: what numpy makes of a whole list, its entries decide.
RECORDS = {name: make for name, make in (CODES | BOOLS | FLOATS).items() if name != "list"}


def entries_of(name, rng):
    """Entries of a column, and what may stand in place of one: missing, unknown, extreme."""
    if name in TEXTS:
        return rng.choice(["a", "1", "2"], ROWS).tolist(), [
            None,
            "a",
            "zzz",
            "None",
            "3",
            "nan",
            "<NA>",
        ]
    if name in BOOLS:
        return rng.choice([True, False], ROWS).tolist(), [None, True, False]
    if name in FLOATS or name in ("numpy masked", "numpy longdouble"):
        extremes = [None, math.inf, -math.inf, 1e300, -1e300, 5e-324, 2.0**53]
        return rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], ROWS).tolist(), extremes
    whole = rng.integers(1, 4, ROWS).tolist()
    if name in SMALL:
        return whole, [None, 2, 77, 127, -128]
    extremes = [None, 2, 77, 2**53 + 1, 2**62 + 1]
    return whole, [*extremes, *([2**64 - 1] if name in UNSIGNED else [-(2**63)])]


def people_of(name, rng):
    """Ids of people with one to three rows each, and ids of those who may come."""
    base = int(rng.choice([0, 2**53, 2**60, 2**62, *([2**63] if name in UNSIGNED else [-(2**60)])]))
    ids = [base + person for person in range(ROWS) for _ in range(rng.integers(1, 4))]
    new = [None, base + 1000, 2**63 - 1]
    if name in TEXTS:
        ids, new = list(map(str, ids)), [None, "None", "NaT", "nan", "z" * 50]
    if name == "numpy int64":
        new = new[1:]
    return rng.permutation(np.array(ids, object)).tolist(), new


def without_none(name, entries):
    """Whether a column of this kind can hold these entries."""
    return name != "numpy int64" or None not in entries


# Calls -------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A public call on one column: what it makes of it, and which columns it takes.

    Attributes:
        columns: What makes the columns.
        run: Calls it; it returns what others' records or members become, where that is compared.
        neighbors: How tables differ: "replace" a cell, "rows" or "people" that come or go.
        sees: None for noise; "records" or "members" for what others' records or members become;
            "kernels" for what they are in the first call of the compiled module with all of them.
        foreign: Whether another library may refuse a column, by its own error.
    """

    columns: dict[str, Any]
    run: Any
    neighbors: str = "replace"
    sees: str | None = None
    foreign: bool = False


PRICE = {"epsilon": EPSILON}
BOUNDS = {"low": 0.0, "high": 2.0, **PRICE}
PEOPLE = {**PRICE, "neighbors": "add_remove"}


def ones(column):
    return np.ones(len(column))


def halves(column):
    """A label for each row, by its place alone."""
    return np.arange(len(column)) % 2


def release(features, neighbors="replace_one", classes=(0, 1), **options):
    """Releases sufficient statistics."""
    maker = learners.SufficientStatistics(
        features, classes=list(classes), neighbors=neighbors, **options
    )
    return lambda X, y, **more: maker.release(X, y, epsilon=EPSILON, delta=DELTA, **more)


def one_hot(row):
    """A function that needs integers or texts of one kind."""
    text = str(row[0, 0])
    return [float(text == each) for each in ("1", "1.0", "True", "2.0")]


def seen(X, y):
    """A question whose answer depends on the kind of an entry."""
    return np.array([str(entry) in ("1.0", "True", "a") for entry in np.asarray(X)[:, 0]], float)


class Watcher:
    """A learner that keeps what it sees."""

    chunks: ClassVar[list[Any]] = []
    labels: ClassVar[list[Any]] = []

    def fit(self, X, y):
        Watcher.chunks.append(np.asarray(X).reshape(len(X), -1))
        Watcher.labels.append(np.asarray(y))
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


GOAL = {"epsilon": 1, "delta": 1e-3, "queries": 3, "max_unstable": 1, "members": 3}


def labels_of_chunks(column):
    """The labels of each member of an ensemble."""
    Watcher.labels = []
    labeler = labels.PrivateLabeler(Watcher(), classes=[1, 2, 3, 77], **GOAL)
    labeler.fit(np.ones((len(column), 1)), column, preflight=False, random_state=0)
    return [*Watcher.labels]


def chunks_of(X, ids=None):
    """The records of each member of an ensemble."""
    Watcher.chunks = []
    labeler = labels.PrivateLabeler(Watcher(), classes=[0, 1], **GOAL)
    X = np.arange(len(ids))[:, None] * 0.0 if X is None else X
    labeler.fit(X, np.zeros(len(X), int), ids=ids, preflight=False, random_state=0)
    return [*Watcher.chunks]


def SGD(loss="logistic", **options):
    """A learner of two steps."""
    return learners.PrivateSGD(loss=loss, steps=2, noise_multiplier=1.0, **options)


IDENTITY, KEYED = learners.FeatureMap.scaling([(0, 2)]), learners.FeatureMap.from_callable
CLASSIFIER = {"epsilon": EPSILON, "delta": DELTA, "bounds": (0, 2), "classes": [0, 1]}
THREE = {"categories": [1, 2, 3]}
STUMPS = learners.ExponentialLearner(learners.Stumps(1), epsilon=EPSILON)
COUNTED = learners.ExponentialLearner(learners.Stumps(1), epsilon=EPSILON, neighbors="add_remove")


def frame(call):
    """The call on a frame with the column alone."""
    return lambda column: call(matrix_of(column))


def matrix_of(column):
    """The column as a frame of its library, or as a matrix of numpy."""
    if isinstance(column, np.ndarray):
        return column[:, None]
    return frame_of(type(column).__module__.split(".")[0], column, None, alone=True)


REGRESSOR = {"epsilon": EPSILON, "delta": DELTA, "bounds": (0, 2), "target_bounds": (0, 1)}
PUBLIC = np.linspace(0.1, 1.0, 40)[:, None]
SCHEMA = data.Schema(
    data.Label("y", positive=("yes",)), {"a": data.Category(("1", "2", "a", "9007199254740993"))}
)
TABLES = {name: make for name, make in (RECORDS | TEXTS).items() if not name.startswith("numpy")}

ADAPTED = {"epsilon": EPSILON, "delta": DELTA, "steps": 2}
SIGNS = np.where(np.arange(len(PUBLIC)) % 2, 1.0, -1.0)


def adapt(make, labels=SIGNS):
    """Fits a learner of adaptation to public records and a private column."""
    values = np.unique(labels)
    return frame(lambda X: make().fit(PUBLIC, labels, X, values[halves(X)]))


CALLS = {
    "statistics.sum": Call(NUMBERS, lambda c: statistics.sum(c, **BOUNDS)),
    "statistics.sum, rows": Call(
        NUMBERS, lambda c: statistics.sum(c, **BOUNDS, neighbors="add_remove"), "rows"
    ),
    "statistics.mean": Call(NUMBERS, lambda c: statistics.mean(c, **BOUNDS)),
    "statistics.mean, normal noise": Call(
        NUMBERS, lambda c: statistics.mean(c, **BOUNDS, delta=DELTA)
    ),
    "statistics.mean, by=": Call(
        WHOLE | UNSIGNED | SMALL | TEXTS | OTHERS,
        lambda c: statistics.mean(ones(c), **BOUNDS, by=c, groups=[1, 2, "a", "b"]),
    ),
    "statistics.variance": Call(NUMBERS, lambda c: statistics.variance(c, **BOUNDS)),
    "statistics.covariance": Call(RECORDS, frame(lambda X: statistics.covariance(X, **BOUNDS))),
    "statistics.quantiles": Call(
        NUMBERS, lambda c: statistics.quantiles(c, [0.5], **BOUNDS, steps=64)
    ),
    "statistics.distribution": Call(
        NUMBERS, lambda c: statistics.distribution(c, **BOUNDS, steps=64)
    ),
    "statistics.histogram, edges": Call(
        NUMBERS, lambda c: statistics.histogram(c, edges=[0, 1, 2, 3], **PRICE)
    ),
    "statistics.histogram, integers": Call(
        CODES | TEXTS, lambda c: statistics.histogram(c, **THREE, **PRICE)
    ),
    "statistics.histogram, texts": Call(
        CODES | TEXTS,
        lambda c: statistics.histogram(c, categories=["a", "1", "None"], **PRICE),
    ),
    "statistics.top_k": Call(CODES | TEXTS, lambda c: statistics.top_k(c, 1, **THREE, **PRICE)),
    "statistics.count, ids": Call(
        NAMES, lambda c: statistics.count(ones(c), ids=c, **PEOPLE), "people"
    ),
    "statistics.sum, ids": Call(
        NAMES,
        lambda c: statistics.sum(
            ones(c), ids=c, rows_per_person=2, **BOUNDS, neighbors="add_remove"
        ),
        "people",
    ),
    "statistics.histogram, ids": Call(
        NAMES,
        lambda c: statistics.histogram(ones(c), **THREE, ids=c, **PEOPLE),
        "people",
    ),
    "statistics.quantiles, ids": Call(
        NAMES,
        lambda c: statistics.quantiles(
            ones(c), [0.5], **BOUNDS, steps=64, ids=c, neighbors="add_remove"
        ),
        "people",
    ),
    "transfer.release_means": Call(
        RECORDS,
        frame(lambda X: transfer.release_means(X, low=0, high=2, epsilon=EPSILON, delta=DELTA)),
    ),
    "learners.SufficientStatistics.release": Call(
        RECORDS, frame(lambda X: release(IDENTITY, second_moments=True)(X, halves(X)))
    ),
    "learners.SufficientStatistics.release, from_callable": Call(
        RECORDS | TEXTS, frame(lambda X: release(KEYED(one_hot, 4))(X, ones(X)))
    ),
    "learners.SufficientStatistics.release, y": Call(
        WHOLE | UNSIGNED | SMALL,
        lambda c: release(IDENTITY, classes=(1, 2, 3, 77))(np.ones((len(c), 1)), c),
    ),
    "learners.SufficientStatistics.release, ids": Call(
        NAMES,
        lambda c: release(IDENTITY, "add_remove")(np.ones((len(c), 1)), ones(c), ids=c),
        "people",
    ),
    "learners.ExponentialLearner.learn": Call(
        BOOLS,
        frame(lambda X: STUMPS.learn(X, halves(X))),
    ),
    "learners.ExponentialLearner.learn, ids": Call(
        NAMES,
        lambda c: COUNTED.learn(np.ones((len(c), 1), np.uint8), ones(c), ids=c),
        "people",
    ),
    "sklearn.PrivateClassifier.fit": Call(
        RECORDS,
        frame(
            lambda X: estimators.PrivateClassifier(method="statistics", **CLASSIFIER).fit(
                X, halves(X)
            )
        ),
        foreign=True,
    ),
    "sklearn.PrivateRegressor.fit": Call(
        RECORDS,
        frame(
            lambda X: estimators.PrivateRegressor(method="statistics", **REGRESSOR).fit(
                X, 1.0 * halves(X)
            )
        ),
        foreign=True,
    ),
    "labels.StatisticsLabeler.fit": Call(
        RECORDS,
        frame(
            lambda X: labels.StatisticsLabeler(epsilon=EPSILON, delta=DELTA, classes=[0, 1]).fit(
                X, halves(X), PUBLIC
            )
        ),
    ),
    "data.Schema.floats": Call(TABLES, lambda c: [SCHEMA.floats(matrix_of(c))], sees="records"),
    "data.Schema.bits": Call(TABLES, lambda c: [SCHEMA.bits(matrix_of(c))], sees="records"),
    "gf2.BitMatrix.from_dense": Call(
        BOOLS,
        frame(lambda X: [gf2.BitMatrix.from_dense(X).to_dense()]),
        sees="records",
    ),
    "local.Agents": Call(
        RECORDS | TEXTS,
        frame(lambda X: local.Agents(X, halves(X), epsilon=1.0).ask(seen, len(X))),
        sees="records",
    ),
    "learners.PrivateSGD.prepare": Call(
        RECORDS,
        frame(lambda X: [learners.PrivateSGD(loss="logistic", epsilon=1.0).prepare(X).entries]),
        sees="records",
    ),
    "statistics.count, by=": Call(
        WHOLE | UNSIGNED | SMALL | TEXTS | OTHERS,
        lambda c: statistics.count(ones(c), by=c, groups=[1, 2, "a", "b"], **PRICE),
    ),
    "statistics.histogram, by=": Call(
        WHOLE | UNSIGNED | SMALL | TEXTS | OTHERS,
        lambda c: statistics.histogram(ones(c), **THREE, by=c, groups=[1, "2"], **PRICE),
    ),
    "statistics.top_k, ids": Call(
        NAMES, lambda c: statistics.top_k(ones(c), 1, **THREE, ids=c, **PEOPLE), "people"
    ),
    "statistics.variance, ids": Call(
        NAMES,
        lambda c: statistics.variance(ones(c), **BOUNDS, ids=c, neighbors="add_remove"),
        "people",
    ),
    "adaptation.MomentAdaptation.fit": Call(
        RECORDS,
        adapt(lambda: adaptation.MomentAdaptation(epsilon=EPSILON, delta=DELTA, directions=1)),
    ),
    "adaptation.ConvexAdaptation.fit": Call(
        RECORDS, adapt(lambda: adaptation.ConvexAdaptation(**ADAPTED)), sees="kernels"
    ),
    "adaptation.ConvexAdaptation.fit, y": Call(
        RECORDS,
        lambda c: adaptation.ConvexAdaptation(**ADAPTED).fit(
            PUBLIC, SIGNS, np.ones((len(c), 1)), c
        ),
        sees="kernels",
    ),
    "adaptation.NonConvexAdaptation.fit": Call(
        RECORDS,
        adapt(lambda: adaptation.NonConvexAdaptation(**ADAPTED), (SIGNS > 0).astype(int)),
        sees="kernels",
    ),
    "adaptation.TargetSGD.fit": Call(
        RECORDS,
        adapt(lambda: adaptation.TargetSGD(**ADAPTED, batch_size=1, numerics="idealized")),
        sees="kernels",
    ),
    "adaptation.PrivateDiscrepancyMinimization.fit": Call(
        RECORDS,
        adapt(lambda: adaptation.PrivateDiscrepancyMinimization(**ADAPTED)),
        sees="kernels",
    ),
    "learners.PrivateSGD.learn": Call(
        RECORDS, frame(lambda X: SGD().learn(X, halves(X))), sees="kernels"
    ),
    "learners.PrivateSGD.learn, y": Call(
        WHOLE | UNSIGNED | SMALL,
        lambda c: SGD("softmax", classes=78).learn(np.ones((len(c), 1)), c),
        sees="kernels",
    ),
    "learners.PrivateSGD.learn, squared": Call(
        RECORDS,
        lambda c: SGD(loss="squared", label_bound=1.0).learn(np.ones((len(c), 1)), c),
        sees="kernels",
    ),
    "learners.ExponentialLearner.learn, y": Call(
        BOOLS,
        lambda c: STUMPS.learn(np.ones((len(c), 1), np.uint8), c),
    ),
    "local.randomized_response": Call(
        BOOLS,
        lambda c: local.randomized_response(c, epsilon=EPSILON),
        sees="kernels",
    ),
    "labels.PrivateLabeler.fit, y": Call(
        WHOLE | UNSIGNED | SMALL,
        labels_of_chunks,
        sees="members",
    ),
    "sklearn.PrivateClassifier.fit, gradients": Call(
        RECORDS,
        frame(lambda X: estimators.PrivateClassifier(method="sgd", **CLASSIFIER).fit(X, halves(X))),
        sees="kernels",
        foreign=True,
    ),
    "sklearn.PrivateClassifier.fit, y": Call(
        CODES,
        lambda c: estimators.PrivateClassifier(
            method="statistics", **{**CLASSIFIER, "classes": [1, 2, 3, 77]}
        ).fit(np.ones((len(c), 1)), c),
        foreign=True,
    ),
    "sklearn.PrivateRegressor.fit, y": Call(
        RECORDS,
        lambda c: estimators.PrivateRegressor(method="statistics", **REGRESSOR).fit(
            np.ones((len(c), 1)), c
        ),
        foreign=True,
    ),
    "sklearn.PrivateStudentClassifier.fit": Call(
        # Its pool is of the same kind.
        {name: make for name, make in RECORDS.items() if name.startswith("numpy")},
        frame(
            lambda X: estimators.PrivateStudentClassifier(
                epsilon=EPSILON, delta=DELTA, classes=[0, 1], pool=PUBLIC, method="statistics"
            ).fit(X, halves(X))
        ),
        foreign=True,
    ),
    "learners.FeatureMap.read_rows": Call(
        RECORDS | TEXTS, frame(lambda X: [KEYED(one_hot, 4)(X)]), sees="records"
    ),
    "labels.PrivateLabeler.fit": Call(RECORDS | TEXTS, frame(chunks_of), sees="members"),
    "labels.PrivateLabeler.fit, ids": Call(
        NAMES, lambda c: chunks_of(None, c), "people", sees="members"
    ),
}


def neighbors_of(call, name, rng):
    """A table of one column, and its neighbors with the row that differs, as entries."""
    if call.neighbors == "people":
        entries, new = people_of(name, rng)
        yield entries, None
        for person in dict.fromkeys(entries):
            yield [other for other in entries if other != person], None
        for person in new:
            yield [*entries, person, person], None
        return
    entries, others = entries_of(name, rng)
    yield entries, None
    for row in range(ROWS):
        if call.neighbors == "rows":
            yield [*entries[:row], *entries[row + 1 :]], None
        else:
            for other in others:
                yield [*entries[:row], other, *entries[row + 1 :]], row
    if call.neighbors == "rows":
        for other in others:
            yield [*entries, other], None


class Counts(NamedTuple):
    """How many neighbors there were, were refused, and break the law."""

    cases: int
    refused: int
    broken: int


def check(patch, title, name, rng, most=None):
    """How many neighbors there were, how many were refused, and how many break the law.

    Args:
        patch: pytest's monkeypatch.
        title: The call.
        name: The column.
        rng: What draws the table.
        most: The most neighbors that are compared, all of which lack an entry first; None for all.
    """
    call = CALLS[title]
    (entries, _), *rest = neighbors_of(call, name, rng)
    if most is not None:
        order = sorted(range(len(rest)), key=lambda place: (None not in rest[place][0], place))
        rest = [rest[place] for place in [*order[: most - 1], *order[-1:]]]
    everything = [entries, *(each for each, _ in rest)]
    known = list(dict.fromkeys(each for some in everything for each in some if each is not None))

    def make(entries):
        # Some libraries warn of numbers beyond float32.
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            return call.columns[name](entries, known)

    before = observe(patch, call, make(entries))
    cases = refused = broken = 0
    for others, row in rest:
        if without_none(name, others):
            after = observe(patch, call, make(others))
            cases += 1
            refused += before is None or after is None
            broken += breaks(call, before, after, row)
    return Counts(cases, refused, broken)


# Coverage ----------------------------------------------------------------------------------------

# Parameters that hold records, labels, ids or what is computed of each record.
HOLD_RECORDS = {
    *("X", "y", "X_source", "y_source", "X_target", "y_target", "records", "labels", "values"),
    *("ids", "by", "sample_domain", "frame", "table", "panel", "bits", "u", "losses"),
}
# Calls with such parameters that have no entry of their own, by what their records pass through,
# or why no record of theirs is private.
LIKE = {
    "the same reader as local.Agents, array": (
        *("local.CuratorOracle", "local.EmpiricalOracle", "local.ExactOracle"),
        *("local.true_answers", "local.Query.multiply", "local.simulate_local"),
        *("local.Stage.draw", "local.draw_reports", "local.Answered"),
        *("transfer.SubsampleTestReweigh.fit", "transfer.SubsampleTestReweigh.resume"),
        *("learners.Features", "weights.DenseWeights.update", "local.SimulatedEntry.apply"),
    ),
    "bits, as gf2.BitMatrix.from_dense and learners.ExponentialLearner.learn": (
        *("parity.learn", "parity.transfer", "learners.ConjunctionList.prepare"),
        *("learners.ExponentialLearner.fold",),
        *("learners.ConjunctionList.errors", "learners.DoublingLearner.learn"),
        *("learners.ExponentialLearner.learn_indices", "learners.ExponentialLearner.prepare"),
        *("learners.LinearSeparator.learn", "learners.LinearSeparator.learn_indices"),
    ),
    "prepare and labels of learners.PrivateSGD.learn": (
        *("learners.PrivateSGD.learn_weighted", "learners.PrivateSGD.learn_indices"),
        *("learners.LinearModel.losses", "learners.SoftmaxModel.losses"),
    ),
    "the records of adaptation.ConvexAdaptation.fit": (
        *("adaptation.release_discrepancy", "adaptation.discrepancy", "adaptation.tune"),
        *("adaptation.classification_discrepancy", "adaptation.DiscrepancyMinimization.fit"),
    ),
    "members and statistics of labels.PrivateLabeler.fit and labels.StatisticsLabeler.fit": (
        *("labels.PrivateLearner.fit", "labels.SoftLabeler.fit", "labels.PrivateLabeler.check"),
        *("labels.PrivateLabeler.fold", "labels.SoftLabeler.fold"),
    ),
    "each reads its records as the function of its statistic": (
        *("statistics.Job", "statistics.Job.fold", "statistics.Job.release"),
    ),
    "the records of learners.SufficientStatistics.release": ("learners.SufficientStatistics.fold",),
    "the persons of statistics.count, ids": ("data.bound_rows", "data.Chunks"),
    "the columns of data.Schema.floats": (
        *("data.read_frame", "data.Schema.labels", "data.Schema.float_labels"),
        *("learners.CenteredLinear.learn", "statistics.describe", "transfer.HybridRun.simulate"),
        *("statistics.tables",),
        *("transfer.HybridRun.run", "transfer.HybridRun.learn", "adaptation.ScaledFeatures.rows"),
    ),
    "the records of sklearn.PrivateClassifier.fit": (
        *("sklearn.AdaptationClassifier.fit", "sklearn.AdaptationRegressor.fit"),
        *("sklearn.HybridClassifier.fit", "sklearn.PrivateSearchCV.fit"),
        *("sklearn.BoundsScaler.fit", "sklearn.SchemaTransformer.fit"),
        *("sklearn.BoundsScaler.transform", "sklearn.SchemaTransformer.transform"),
        *("sklearn.BoundsScaler.inverse_transform", "sklearn.SchemaTransformer.inverse_transform"),
    ),
    "a model that is public, on records of whoever asks": (
        *("predict", "predict_proba", "scores", "decision_function", "score", "score_deviations"),
        *("learners.PrivateModel.probabilities",),
    ),
    "a fact of the answer, or of a plan": (
        *("labels.LabelResult", "labels.Suggestion", "labels.LearningPlan"),
        *("statistics.TableStatistics", "statistics.CrossTable", "transfer.HybridModel"),
        *("transfer.CalibratedModel",),
        *("labels.PrivateLabeler", "learners.DoublingResult", "learners.ReleasedStatistics"),
        *("stability.GaussianVote", "stability.GaussianVote.design", "stability.plan"),
        *("stability.TableSession", "stability.VotePlan", "stability.members_needed"),
        *("transfer.CalibrationPlan", "plotting.table", "data.Category"),
        *("transfer.combine", "transfer.CombinedEstimate"),
    ),
    "what is cut may be public or not; the bits are those of gf2.BitMatrix.from_dense": (
        *("learners.cut",),
    ),
    "sparse matrices alone": ("gf2.BitMatrix.from_sparse",),
    "integers that the caller has counted": (
        *("stability.count_votes", "stability.AboveThreshold.answer"),
    ),
    "one value of one device, or its law": ("sample", "aggregate", "log_probability", "variance"),
}


def uncovered(parameters):
    """The calls with records that are neither compared above nor like one that is.

    parameters: the names of the parameters of each public callable, by its path.
    """
    compared = {title.partition(",")[0] for title in CALLS}
    like = {path for paths in LIKE.values() for path in paths}
    paths = {path for path, names in parameters.items() if HOLD_RECORDS & {*names}}
    known = {path for path in paths if {path, path.rpartition(".")[2]} & (compared | like)}
    return sorted(paths - known)
