"""One cell moves what is released by no more than the noise hides, whatever holds the records.

Every call with records, ids, groups or labels of one column, in every container and dtype: a cell
that becomes missing, unknown or extreme, or a person who comes or goes. `make stat` compares all of
them and prints how many; the ordinary tests take those that lack an entry first.
"""

import container_law
import numpy as np
import pytest
from container_law import CALLS, check, uncovered
from docstrings import public_objects
from lengths import at_length

from hdp_fast._support import containers

pytestmark = [
    pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:random_state makes the coins"),
]
# Tables of each column: those of people differ in their ids, small, large and negative.
TABLES, TABLES_OF_PEOPLE, LEAST_CASES = 1, 12, 20_000


@pytest.mark.thorough(cases=12)
@pytest.mark.parametrize("title", CALLS)
def test_one_cell_moves_no_more_than_the_noise_hides(monkeypatch, title):
    # Every second column; the next call takes the others.
    for name in [*CALLS[title].columns][[*CALLS].index(title) % 2 :: 2]:
        counts = check(monkeypatch, title, name, np.random.default_rng(5), most=2)
        assert (counts.cases > 0, counts.broken) == (True, 0), name


@at_length
def test_no_cell_of_any_table_moves_more_than_the_noise_hides(monkeypatch, capsys):
    counts = {title: count_cases(monkeypatch, title) for title in CALLS}
    counts["all"] = np.sum([*counts.values()], axis=0)
    with capsys.disabled():
        print("\n| call | containers and dtypes | cases | refused | violations |")
        print("| --- | --- | --- | --- | --- |")
        for title, numbers in counts.items():
            print("|", " | ".join(map(str, [title, *numbers])), "|")
    _, cases, refused, broken = counts["all"]
    assert cases - refused >= LEAST_CASES
    assert broken == 0


def count_cases(patch, title):
    """The number of columns of a call, and the sums of their counts."""
    columns = CALLS[title].columns
    tables = TABLES_OF_PEOPLE if CALLS[title].neighbors == "people" else TABLES
    counts = [
        check(patch, title, name, np.random.default_rng(seed))
        for name in columns
        for seed in range(tables)
    ]
    return np.array([len(columns), *np.sum(counts, axis=0)])


def test_every_public_call_with_records_is_compared_or_like_one_that_is():
    parameters = {
        thing.path.removeprefix("hdp_fast."): thing.parameters
        for thing in public_objects()
        if not thing.is_property
    }
    assert uncovered(parameters) == []
    # A call that is new here is missed.
    assert uncovered({"statistics.median": ("values", "epsilon")}) == ["statistics.median"]
    assert uncovered({"statistics.plan": ("n", "epsilon")}) == []


@pytest.mark.parametrize("title", ["learners.FeatureMap.read_rows", "statistics.count, ids"])
def test_the_law_finds_a_reader_that_makes_floats_where_an_entry_is_missing(monkeypatch, title):
    pytest.importorskip("polars")
    monkeypatch.setattr(
        containers, "_from_polars_column", lambda column: containers.Entries(np.asarray(column))
    )
    counts = [
        check(monkeypatch, title, "polars Int64", np.random.default_rng(seed)) for seed in range(6)
    ]
    assert sum(count.broken for count in counts) > 0


def test_the_law_finds_noise_that_is_a_hundredth_too_small(monkeypatch):
    """Some cell moves a mean by all that is stated, from one end of the bounds to the other."""
    monkeypatch.setattr(container_law, "SLACK", 0.99)
    for title in ("statistics.mean", "statistics.mean, normal noise"):
        assert check(monkeypatch, title, "numpy float64", np.random.default_rng(5)).broken > 0
