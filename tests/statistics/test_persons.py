"""Statistics of people who have several rows."""

import itertools
from functools import partial

import numpy as np
import pytest
from cases import each_case

from hdp_fast import statistics
from hdp_fast.budget import Budget
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.statistics import covariances, moment_sums, tallies

TABLE = np.random.default_rng(0).uniform(0, 1, (1000, 2))
COLUMN = TABLE[:, 0]
BOUNDS = {"low": 0, "high": 1}
WORDS = np.array(["a", "b"])[(COLUMN > 0.3).astype(int)]
CALLS = {
    "count": lambda part, **more: statistics.count(COLUMN[part] > 0.5, **more),
    "sum": lambda part, **more: statistics.sum(TABLE[part], **BOUNDS, **more),
    "mean": lambda part, **more: statistics.mean(COLUMN[part], **BOUNDS, **more),
    "variance": lambda part, **more: statistics.variance(COLUMN[part], **BOUNDS, **more),
    "grouped": lambda part, **more: statistics.mean(
        COLUMN[part], **BOUNDS, by=WORDS[part], groups=["a", "b"], **more
    )["a"],
    "covariance": lambda part, **more: statistics.covariance(TABLE[part], **BOUNDS, **more),
    "histogram": lambda part, **more: statistics.histogram(
        WORDS[part], categories=["a", "b"], **more
    ),
    "quantiles": lambda part, **more: statistics.quantiles(COLUMN[part], [0.5], **BOUNDS, **more),
    "top_k": lambda part, **more: statistics.top_k(WORDS[part], 1, categories=["a", "b"], **more),
}
ALL = slice(None)
pytestmark = pytest.mark.filterwarnings("ignore:random_state")


def numbers(released):
    """What was released, as a text without the record."""
    statistic = next(iter(released.values())) if isinstance(released, dict) else released
    return repr([getattr(statistic, name) for name in vars(statistic) if name != "record"])


def record_of(released):
    return (next(iter(released.values())) if isinstance(released, dict) else released).record


@each_case("neighbors", ["replace_one", "add_remove"])
@each_case("name", CALLS)
def test_people_with_one_row_each_cost_what_rows_cost(name, neighbors):
    call = partial(CALLS[name], ALL, epsilon=1.0, neighbors=neighbors, random_state=1)
    people = np.arange(len(COLUMN)).astype(str)
    assert numbers(call(ids=people)) == numbers(call())
    assert record_of(call()).neighbors == neighbors
    record = record_of(call(ids=people))
    assert record.neighbors == {"replace_one": "replace_person"}.get(neighbors, "add_remove_person")
    assert record.mechanism.endswith("at most 1 row a person")


@each_case("neighbors", ["replace_one", "add_remove"])
@each_case("name", CALLS)
def test_a_person_of_many_rows_counts_as_few(name, neighbors):
    # All rows but ten belong to one person, of whom two are kept.
    people = np.concatenate((np.zeros(len(COLUMN) - 10), np.arange(1, 11)))
    mask = statistics.moment_sums.read_persons(people, 2, len(people)).keep
    assert mask.sum() == 12
    call = partial(CALLS[name], epsilon=50.0, neighbors=neighbors, random_state=1)
    kept = call(mask, ids=people[mask], rows_per_person=2)
    assert numbers(call(ALL, ids=people, rows_per_person=2)) == numbers(kept)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_noise_is_that_of_a_sensitivity_of_so_many_rows(delta):
    people = np.repeat(np.arange(len(COLUMN) // 4), 4)
    parts = [
        float(record_of(released).noise.split()[-3])
        for released in (
            statistics.covariance(TABLE, **BOUNDS, epsilon=1.0, delta=delta),
            statistics.covariance(
                TABLE, **BOUNDS, epsilon=1.0, delta=delta, ids=people, rows_per_person=4
            ),
        )
    ]
    assert parts[1] == pytest.approx(4 * parts[0], rel=1e-5)


@pytest.mark.parametrize(("name", "error"), [("quantiles", "rank_error"), ("top_k", "count_error")])
def test_choices_err_by_as_many_times_more(name, error):
    people = np.repeat(np.arange(len(COLUMN) // 4), 4)
    one = CALLS[name](ALL, epsilon=1.0)
    four = CALLS[name](ALL, epsilon=1.0, ids=people, rows_per_person=4)
    assert getattr(four, error) == pytest.approx(4 * getattr(one, error))


# All tables of three rows
# --------------------------------------------------------------------------

SPIED = [
    ("count", moment_sums, {}),
    ("sum", moment_sums, {"low": -1, "high": 1}),
    ("mean", moment_sums, {"low": -1, "high": 1}),
    ("variance", moment_sums, {"low": -1, "high": 1}),
    ("mean", moment_sums, {"low": -1, "high": 1, "groups": ["a", "b"]}),
    ("covariance", covariances, {"low": -1, "high": 1}),
    ("histogram", tallies, {"edges": [-1, 0, 1]}),
]


def sums_and_sensitivities(monkeypatch, name, module, more, neighbors, rows):
    """The integers before noise and the sensitivity, by ids and values."""
    seen = {}

    def spy(sums, sensitivity, asked, **others):
        assert asked.persons.rows == rows
        seen["now"] = sums.ravel().tolist(), sensitivity
        raise KeyError

    monkeypatch.setattr(module, "release", spy)
    for n in range(1, 4):
        for ids in itertools.product("ab", repeat=n):
            for values in itertools.product((-1.0, 0.0, 1.0), repeat=n):
                by = (
                    {"by": np.array(["b", "a", "a"])[np.array(values, int)]}
                    if "groups" in more
                    else {}
                )
                with pytest.raises(KeyError):
                    getattr(statistics, name)(
                        np.array(values),
                        **more,
                        **by,
                        epsilon=1.0,
                        neighbors=neighbors,
                        ids=list(ids),
                        rows_per_person=rows,
                    )
                yield ids, values, *seen["now"]


def pairs(tables, neighbors):
    """Neighbors, whose ids are equal and rows of one person differ, or lack; and what is
    allowed."""
    known = {(ids, values): sums for ids, values, sums, _ in tables}
    for ids, values, sums, sensitivity in tables:
        others = [(name, value) for name, value in zip(ids, values, strict=True) if name == "b"]
        if neighbors == "add_remove":
            if others:
                yield sums, known[tuple(zip(*others, strict=True))], sensitivity
            continue
        choices = [
            (-1.0, 0.0, 1.0) if name == "a" else (value,)
            for name, value in zip(ids, values, strict=True)
        ]
        for new in itertools.product(*choices):
            yield sums, known[ids, new], sensitivity


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("name", "module", "more"), SPIED)
def test_a_person_moves_sums_by_the_sensitivity_and_no_less_is_enough(
    monkeypatch, name, module, more, neighbors
):
    tables = list(sums_and_sensitivities(monkeypatch, name, module, more, neighbors, rows=2))
    beyond = [False, False]
    for first, second, one in pairs(tables, neighbors):
        step = np.subtract(first, second).astype(object)
        moved, two = (int(abs(step).sum()), int((step**2).sum())), one.of_rows(2)
        assert moved[0] <= two.absolute
        assert moved[1] <= two.squared
        beyond = [
            large or move > least for large, move, least in zip(beyond, moved, one, strict=True)
        ]
    # The price of a single row would be broken. Of three values, two move their own variance by no
    # more than one does.
    assert all(beyond) or (name == "variance" and neighbors == "replace_one")


# Arguments ----------------------------------------------------------------------------------------


@each_case(
    ("more", "error", "text"),
    [
        ({"ids": [1, 2]}, ShapeError, "ids has shape"),
        ({"rows_per_person": 2}, ParameterError, "ids must say"),
        ({"ids": COLUMN, "rows_per_person": 0}, ParameterError, "rows_per_person"),
        ({"ids": COLUMN > 0}, ParameterError, "ids has dtype bool"),
    ],
)
@each_case("name", CALLS)
def test_bad_owners_are_refused_before_anything_is_spent(name, more, error, text):
    budget = Budget(1.0, neighbors="replace_person")
    with pytest.raises(error, match=text):
        CALLS[name](ALL, epsilon=1.0, budget=budget, **more)
    assert budget.spent.epsilon == 0


def test_budgets_of_people_take_statistics_of_people_alone():
    people = np.repeat(np.arange(len(COLUMN) // 4), 4)
    budget = Budget(1.0, neighbors="add_remove_person")
    call = partial(CALLS["mean"], ALL, epsilon=0.5, neighbors="add_remove", budget=budget)
    call(ids=people)
    with pytest.raises(ParameterError, match="neighbors = 'add_remove'"):
        call()
    assert budget.spent.epsilon == 0.5
    rows = Budget(1.0, neighbors="add_remove")
    with pytest.raises(ParameterError, match="add_remove_person"):
        CALLS["mean"](ALL, epsilon=0.5, neighbors="add_remove", budget=rows, ids=people)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_more_noise_than_floats_hold_is_refused(delta):
    with pytest.raises(ParameterError, match="more noise than is drawn"):
        CALLS["mean"](ALL, epsilon=1e-300, delta=delta, ids=COLUMN, rows_per_person=2**31)
