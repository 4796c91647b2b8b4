"""Every container of records at ten jobs: the result of the plain array, or one named error.

The table of docs/guides/tables.md is what these tests show.
"""

import functools
from pathlib import Path

import numpy as np
import pytest
from cases import each_case
from containers import READ, REFUSED, WithMemory
from doors import DOORS, PLACES

from hdp_fast import adaptation, gf2, labels, learners, local, parity, statistics
from hdp_fast._support.containers import to_array
from hdp_fast.data.persons import read_persons
from hdp_fast.exceptions import HdpFastError

pytestmark = [
    pytest.mark.filterwarnings("ignore:the matrix subclass"),
    pytest.mark.filterwarnings("ignore:random_state makes the coins"),
    pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning"),
]
GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "tables.md"
COINS = np.random.default_rng(1)
X = COINS.integers(0, 2, (64, 4))
Y = X[:, 0]
D = X.shape[1]


class Threshold:
    """A learner of ensembles, which takes what numpy takes."""

    def fit(self, X, y):
        return self

    def predict(self, Q):
        dense = Q.toarray() if hasattr(Q, "toarray") else np.asarray(Q)
        column = dense.reshape(len(dense), -1)[:, 0]
        return np.array([str(entry) in ("1", "1.0", "True") for entry in column], int)


def learn_exponential(X, y):
    learner = learners.ExponentialLearner(learners.Conjunctions(D, 2), epsilon=1.0)
    return learner.learn(X, y, random_state=0).index


def learn_sgd(X, y):
    learner = learners.PrivateSGD(loss="logistic", steps=9, batch_size=8, noise_multiplier=1.0)
    return learner.learn(X, y, random_state=0).weights


def release_statistics(X, y):
    maker = learners.SufficientStatistics(learners.FeatureMap.identity(D), classes=[0, 1])
    return maker.release(X, y, epsilon=1.0, delta=1e-6, random_state=0).to_json()


def adapt(X, y):
    estimator = adaptation.ConvexAdaptation(epsilon=4.0, norm_bound=2.0, steps=2)
    return estimator.fit(X, y, X, y, random_state=0).coef_


def label(X, y, Q):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 4, "max_unstable": 2, "members": 12}
    labeler = labels.PrivateLabeler(Threshold(), classes=[0, 1], beta=1e-9, **goal)
    return labeler.fit(X, y, preflight=False, random_state=0).label(Q).labels


def ask(X, y):
    agents = local.Agents(X, y, epsilon=1.0)
    return agents.ask(lambda X, y: X[:, 1] == y, 64, random_state=0)


def report(y):
    return local.BinaryResponse(1.0, (0.0, 1.0)).sample(y, random_state=0)


def average(X):
    means = statistics.mean(X, low=0, high=1, epsilon=1.0, random_state=0)
    return [mean.value for mean in means.values()]


def classify(X, y):
    module = pytest.importorskip("hdp_fast.sklearn")
    # Of other bounds: a column of integers between 0 and 1 is one of bits, by its container's type.
    settings = {"epsilon": 1.0, "bounds": (0, 2), "classes": [0, 1], "test_seed": 0}
    return module.PrivateClassifier(**settings).fit(X, y).predict_proba(X)


# What is called, and what it takes.
JOBS = {
    "`gf2.rank`": (lambda A: gf2.rank(A), ("A",)),
    "`parity.learn`": (
        lambda X, y: parity.learn(X, y, epsilon=4.0, random_state=0).to_json(),
        ("X", "y"),
    ),
    "`ExponentialLearner`": (learn_exponential, ("X", "y")),
    "`PrivateSGD`": (learn_sgd, ("X", "y")),
    "`SufficientStatistics`": (release_statistics, ("X", "y")),
    "`ConvexAdaptation`": (adapt, ("X", "y")),
    "`PrivateLabeler`": (label, ("X", "y", "Q")),
    "`local.Agents`": (ask, ("X", "y")),
    "a randomizer": (report, ("y",)),
    "`statistics.mean`": (average, ("X",)),
    "`PrivateClassifier`": (classify, ("X", "y")),
}
SKLEARN = "`PrivateClassifier`"


SKLEARN = "`PrivateClassifier`"
MISSING = "a missing entry: NaN, `None` or NA in a column of numbers"
SPARSE = "sparse matrices of scipy"
# What a caller's code sees as it is, and where a public default stands for what is no number.
HANDED_ON = {
    "`PrivateLabeler`": {MISSING, "texts", "complex numbers", SPARSE},
    "`local.Agents`": {MISSING, "texts", "complex numbers"},
}
LOW_END = {
    "a randomizer": {MISSING, "texts"},
    "`statistics.mean`": {MISSING},
    SKLEARN: {MISSING},
}


def outcome(row, job):
    """The cell of the table."""
    if row in READ:
        return "no" if (row, job) == ("pandas: sparse columns", SKLEARN) else "yes"
    if row in HANDED_ON.get(job, ()):
        return "handed on"
    return "low end" if row in LOW_END.get(job, ()) else "no"


def variants(rows):
    return [
        pytest.param(row, name, id=f"{row.split(':')[0]}-{name}")
        for row in rows
        for name in rows[row]
    ]


def data(names, make):
    plain = {"A": X, "X": X, "y": Y, "Q": X[:4]}
    return [make(plain[name].copy()) for name in names]


def run(job, make):
    function, names = JOBS[job]
    return function(*data(names, make))


@functools.cache
def run_plain(job, dtype):
    return run(job, lambda values: values.astype(dtype))


@each_case("job", JOBS)
@each_case(("row", "name"), variants(READ))
def test_a_container_gives_what_the_plain_array_gives(job, row, name):
    dtype, make = READ[row][name]
    if outcome(row, job) == "no":
        with pytest.raises(TypeError, match="X is sparse"):
            run(job, make)
        return
    expected = run_plain(job, dtype)
    made = run(job, make)
    assert type(made) is type(expected)
    np.testing.assert_array_equal(made, expected)


def spoiled(names, argument, make):
    """The arrays, of which one is spoiled; queries are of the kind of the records."""
    places = {argument, "Q"} if argument == "X" else {argument}
    arrays = data(names, lambda values: values)
    return [make(x) if name in places else x for name, x in zip(names, arrays, strict=True)]


ADVICE = {
    "csr_matrix": "toarray()", "coo_array": "toarray()", "LazyFrame": "collect()",
    "Dataset": "to_table()", "RecordBatchReader": "read_all()", "masked": "masked",
}  # fmt: skip


@each_case("job", JOBS)
@each_case(("row", "name"), variants(REFUSED))
def test_what_is_refused_is_refused_by_name(job, row, name):
    function, names = JOBS[job]
    for argument in names:
        if argument == "Q" or (job, name) == ("a randomizer", "masked rows"):
            continue
        arrays = spoiled(names, argument, REFUSED[row][name])
        if argument == names[0] and outcome(row, job) != "no":
            function(*arrays)
            continue
        errors = (HdpFastError, ValueError, TypeError) if job == SKLEARN else HdpFastError
        with pytest.raises(errors) as error:
            function(*arrays)
        text = str(error.value)
        if job != SKLEARN:
            assert text.split()[0] in (argument, f"{argument}_source", "u", "values"), text
            assert ADVICE.get(name, "") in text
            assert "shape ()" not in text


# A constructor of the compiled module takes arrays alone, and an audit hands data on as they are.
OTHERS = {("Features", "X"), ("lower_bound", "data"), ("lower_bound", "neighbor")}


@each_case(("name", "argument"), [each for each in PLACES if each not in OTHERS])
def test_every_door_reads_the_memory_of_other_libraries(name, argument):
    door = DOORS[name]
    values = np.asarray(door.arguments[argument])
    if values.dtype != object:
        door.call(**door.arguments | {argument: WithMemory(values)})


@each_case("row", READ)
def test_rows_of_persons_are_kept_of_every_container(row):
    """The first form of each: one row of each two of a person is left out."""
    persons = read_persons(np.arange(len(X)) // 2, 1, len(X))
    dtype, make = next(iter(READ[row].values()))
    for values in (X, Y):
        kept = to_array("X", persons.select(make(values)))
        np.testing.assert_array_equal(kept, values.astype(dtype)[persons.keep])


def summarize(row):
    """What happens to a kind of input, as a cell of the table."""
    cells = {job: outcome(row, job) for job in JOBS}
    jobs = {word: [job for job in JOBS if cells[job] == word] for word in cells.values()}
    if row in READ:
        return f"read; refused by {', '.join(jobs['no'])}" if "no" in jobs else "read"
    parts = [
        f"{words} {', '.join(jobs[word])}"
        for word, words in (
            ("handed on", "handed on to your own code by"),
            ("low end", "counted as the low end by"),
        )
        if word in jobs
    ]
    return "; ".join([*parts, "refused by the others" if parts else "refused"])


def table():
    """The table of the guide."""
    kinds = dict[str, list[str]]()
    for row in (*READ, *REFUSED):
        kinds.setdefault(summarize(row), []).append(row)
    rows = [f"| {what} | {'<br>'.join(names)} |" for what, names in kinds.items()]
    return "\n".join(["| what happens to it | input |", "| --- | --- |", *rows])


@pytest.mark.skipif(not GUIDE.is_file(), reason="needs the source tree")
def test_the_table_of_the_guide_is_what_is_shown_here():
    assert table() in GUIDE.read_text()


if __name__ == "__main__":
    print(table())
