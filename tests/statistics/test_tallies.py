"""Histograms and most frequent categories: sensitivity, coverage, choices, bad input."""

import bisect
import itertools
import math
import warnings

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, statistics
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.statistics import bounded_columns, tallies
from hdp_fast.statistics.bounded_columns import Groups, read_groups, read_keyed
from hdp_fast.statistics.tallies import read_bins

RELATIONS = ["replace_one", "add_remove"]
EDGES = [0.0, 1.0, 2.5]
VALUES = [-1.0, 0.0, 0.5, 1.0, 2.5, 9.0, math.nan]


@pytest.fixture
def counts_of(monkeypatch):
    """The counts to which a call adds noise, and the sensitivity that it assumes."""
    caught = []
    real = tallies.release

    def release(counts, sensitivity, *arguments, **options):
        caught[:] = [counts, sensitivity]
        return real(counts, sensitivity, *arguments, **options)

    monkeypatch.setattr(tallies, "release", release)

    def catch(values, **options):
        statistics.histogram(np.array(values), epsilon=1.0, random_state=0, **options)
        return [int(count) for count in caught[0].ravel()], caught[1]

    return catch


KINDS = {
    "edges": (VALUES, {"edges": EDGES}),
    "categories": (["a", "b", "none"], {"categories": ["a", "b"]}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbors_differ_by_more_and_some_by_as_much(counts_of, kind, relation):
    values, options = KINDS[kind]
    options = {"neighbors": relation, **options}
    gaps = []
    for one, other, kept in itertools.product(values, values, values):
        first = counts_of([one, kept], **options)[0]
        second = counts_of([other, kept] if relation == "replace_one" else [kept], **options)[0]
        moved = [abs(left - right) for left, right in zip(first, second, strict=True)]
        gaps.append((sum(moved), sum(step**2 for step in moved)))
    assumed = counts_of(values, **options)[1]
    assert tuple(max(column) for column in zip(*gaps, strict=True)) == assumed


@pytest.mark.parametrize("relation", RELATIONS)
def test_groups_cost_nothing(counts_of, relation):
    records = list(itertools.product(VALUES, ["a", "b", "none"]))

    def release(*rows):
        values, keys = zip(*rows, strict=True)
        options = {"edges": EDGES, "by": np.array(keys), "groups": ["a", "b"]}
        return counts_of(values, neighbors=relation, **options)

    kept = release(records[0])[0]
    alone = {row: release(records[0], row)[0] for row in records}
    others = [kept] if relation == "add_remove" else list(alone.values())
    gaps = [
        [abs(a - b) for a, b in zip(one, other, strict=True)]
        for one in alone.values()
        for other in others
    ]
    assumed = release(*records)[1]
    assert max(map(sum, gaps)) == assumed.absolute
    assert max(sum(step**2 for step in gap) for gap in gaps) == assumed.squared


@each_case("odd", ["x", None, 2.5, 7, [1], {}, np.ma.masked, 1j])
@each_case("keys", [[1, 2], [True, False], [1.0, 2.0], ["a", "b"]])
def test_one_entry_of_a_list_moves_no_other(keys, odd):
    few = read_groups([*keys, *keys, "c"], keys, ("values", "categories")).codes
    same = read_groups([*keys, *keys, odd], keys, ("values", "categories")).codes
    assert few[:4].tolist() == same[:4].tolist() == [0, 1, 0, 1]


def test_integer_keys_are_told_apart_exactly_whether_a_value_is_missing_or_not():
    pandas = pytest.importorskip("pandas")
    keys = [2**60, 2**60 + 1]
    assert read_groups(np.array(keys), keys, ("by", "groups")).codes.tolist() == [0, 1]
    assert read_groups([*keys, None], keys, ("by", "groups")).codes.tolist() == [0, 1, -1]
    for missing in ([], [None]):
        column = pandas.Series([*keys, *missing], dtype="Int64")
        expected = [0, 1, *[-1] * len(missing)]
        assert read_groups(column, keys, ("by", "groups")).codes.tolist() == expected
        with pytest.raises(ParameterError, match=r"groups = 1152921504606846976, but"):
            read_groups(column.astype("Float64"), keys, ("by", "groups"))


def test_texts_are_compared_with_keys_alike_whatever_holds_them():
    polars, kinds = pytest.importorskip("polars"), ([1, 2], ["1", "2"])
    columns = [polars.Series(texts) for texts in (["1", "2", "x"], ["1", "2", None])]
    for keys in kinds:
        for by in (*columns, np.array(["1", "2", "x"]), np.array(["1", "2", None], object)):
            assert read_groups(by, keys, ("by", "groups")).codes.tolist() == [0, 1, -1]
    missing = polars.Series(["None", None])
    assert read_groups(missing, ["None"], ("by", "groups")).codes.tolist() == [0, -1]


WHOLE = [0, 1, 2, -1, 127, 128, 255, 2**31, 2**53, 2**53 + 1, 2**63 - 1]
DTYPES = ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64", ">i4", ">f8"]
NUMBERS = [
    [0, 1, 2], [True, False], [1.0, 2.5], [None, 1, 2], [0.1, 0.2], [-1, 300, 2**40, 1],
    [math.nan, 1], [math.inf, -math.inf, 1e300], [2**52, 2**52 + 1], range(-128, 128), [1, "1"],
    [0.1, 0.10000000149],
]  # fmt: skip
COLUMNS_OF_TEXTS = ["U1", "U3", "U9", ">U4"]
TEXTS = [["a", "b"], ["abc", "", "a"], [None, "a"], ["a", "a\0"], ["longer than any", "é"], [1, 2]]


def compare_each(values, keys):
    """By the definition: the last of the keys that numpy holds equal, by a pass for each."""
    places = np.full(len(values), -1)
    for place, key in enumerate(keys):
        places[np.broadcast_to(values == key, places.shape)] = place
    return places.tolist()


@each_case(("kind", "keys"), [(kind, keys) for kind in DTYPES for keys in NUMBERS])
def test_places_of_numbers_are_those_of_a_pass_for_each_key(kind, keys):
    dtype = np.dtype(kind)
    some = WHOLE if dtype.kind != "f" else [*WHOLE, 0.1, 0.2, 2.5, math.nan, math.inf, -0.0]
    if dtype.kind in "iu":
        some = [one for one in WHOLE if np.iinfo(dtype).min <= one <= np.iinfo(dtype).max]
    values = np.array(some).astype(dtype)
    with np.errstate(all="ignore"):
        expected = compare_each(values, keys)
    found = read_groups(values, keys, ("by", "groups")).codes
    assert found.tolist() == expected
    shifted = read_groups(values[::-2], keys, ("by", "groups")).codes
    assert shifted.tolist() == expected[::-2]


@each_case(("kind", "keys"), [(kind, keys) for kind in COLUMNS_OF_TEXTS for keys in TEXTS])
def test_places_of_texts_are_those_of_a_pass_for_each_key(kind, keys):
    values = np.array(["a", "b", "abc", "", "ab", "é", "1", "a"] * 3).astype(kind)
    texts = [key if key is None else str(key) for key in keys]
    found = read_groups(values, keys, ("by", "groups")).codes
    assert found.tolist() == compare_each(values, texts)
    as_objects = read_groups(values.astype(object), keys, ("by", "groups")).codes
    if "a\0" not in keys:
        assert as_objects.tolist() == found.tolist()


@each_case("entries", [["b", "a", None, "x"], [2, 1, None, 9], [0.5, 0.25, None, 9.0]])
@each_case("missing", [False, True])
def test_declared_categories_have_the_places_of_their_entries(entries, missing):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    kept = entries if missing else [entry for entry in entries if entry is not None]
    keys = [*entries[:2], *([None] if isinstance(entries[0], str) else [])]
    expected = [keys.index(entry) if entry in keys else -1 for entry in kept]
    encoded = pyarrow.array(kept).dictionary_encode()
    other = pyarrow.array(kept[::-1]).dictionary_encode()
    columns = {
        "category": pandas.Series(kept, dtype="category"),
        "part": pandas.Series([*kept, kept[0]], dtype="category").iloc[:-1],
        "index": pandas.CategoricalIndex(kept),
        "dictionary": encoded,
        "unsigned": encoded.cast(pyarrow.dictionary(pyarrow.uint8(), encoded.type.value_type)),
        "chunks": pyarrow.chunked_array([encoded, other])[: len(kept)],
    }
    if isinstance(entries[0], str):
        columns["arrow"] = pyarrow.array(kept)
        columns["string"] = pandas.Series(kept, dtype="string")
    for name, column in columns.items():
        assert read_groups(column, keys, ("by", "groups")).codes.tolist() == expected, name


def test_a_key_that_holds_others_equals_no_entry():
    for values in (np.array([1, 2]), np.array([1.0, 2.0]), np.array([1, 2], "M8[D]")):
        assert read_groups(values, [(1, 2), 5], ("by", "groups")).codes.tolist() == [-1, -1]


def test_counts_of_parts_add_up_to_those_of_all(monkeypatch):
    """Whatever the blocks are, with groups and without."""
    values = np.arange(1_000) % 7
    keys, column = read_keyed(values, range(5), ("values", "categories"))
    members = read_groups(np.arange(1_000) % 3, [0, 1], ("by", "groups"))
    parts = [slice(0, 300), slice(300, 301), slice(301, 1_000)]
    for by in (None, members):
        whole = tallies.count_cells(column, len(keys), by)
        total = 0
        for part in parts:
            some = read_keyed(values[part], range(5), ("values", "categories"))[1]
            group = None if by is None else Groups(by.keys, by.codes[part])
            total = total + tallies.count_cells(some, len(keys), group)
        assert (total == whole).all()
        monkeypatch.setattr(bounded_columns, "_CELLS", 10)
        assert (tallies.count_cells(column, len(keys), by) == whole).all()
        monkeypatch.undo()


def test_groups_have_histograms_of_their_own():
    values, keys = np.arange(4_000) % 4, np.array(["x", "y"])[np.arange(4_000) % 4 // 2]
    released = statistics.histogram(
        values, categories=range(4), by=keys, groups=["x", "y", "z"], epsilon=20.0, random_state=0
    )
    counts = [[round(count, -2) for count in released[key].value.tolist()] for key in "xyz"]
    assert counts == [[1000, 1000, 0, 0], [0, 0, 1000, 1000], [0, 0, 0, 0]]
    assert released["x"].record is released["z"].record


def test_bins_are_those_of_the_edges(counts_of):
    assert counts_of(VALUES, edges=EDGES)[0] == [4, 3]


@pytest.mark.parametrize("few", [0, 100])
def test_bins_are_those_of_a_search_by_python_however_few_they_are(few, monkeypatch):
    monkeypatch.setattr("hdp_fast.statistics.tallies._FEW_EDGES", few)
    edges = [-1e300, -2.0, 0.0, 5e-324, 1.0, 1.0000000000000002, 7.0]
    values = [*edges, -math.inf, math.inf, math.nan, -0.0, -3.0, 0.5, 6.999, 8.0]
    places = [0 if value != value else bisect.bisect_right(edges, value) - 1 for value in values]
    expected = [min(max(place, 0), len(edges) - 2) for place in places]
    column, _ = read_bins(values, edges, None)
    assert column.find(slice(None)).tolist() == expected
    counts = np.bincount(expected, minlength=len(edges) - 1)
    assert tallies.count_cells(column, len(edges) - 1).tolist() == [counts.tolist()]


@pytest.mark.parametrize("delta", [None, 1e-5])
@pytest.mark.parametrize("relation", RELATIONS)
def test_intervals_cover(delta, relation):
    values = np.repeat(np.arange(1_000), 50)
    released = statistics.histogram(
        values, categories=range(1_000), epsilon=0.5, delta=delta, neighbors=relation,
        confidence=0.9, random_state=1,
    )  # fmt: skip
    covered = ((released.low <= 50) & (released.high >= 50)).mean()
    assert 0.86 < covered < 0.97
    assert (released.low >= 0).all()


def test_a_histogram_keeps_empty_bins_and_its_price():
    budget = Budget(1.0)
    released = statistics.histogram(
        ["a"] * 500, categories=["a", "b", "c"], epsilon=1.0, budget=budget
    )
    assert released.bins == ("a", "b", "c")
    assert released.value.shape == (3,)
    assert budget.spent.epsilon == 1.0
    assert "3 counts" in repr(released)


@pytest.mark.parametrize("relation", RELATIONS)
def test_private_values_show_in_no_error_warning_or_shape(relation):
    numbers = np.array([math.nan, math.inf, -math.inf, 1e308, 0.0])
    words = np.array([None, "a", 3, math.nan, "never seen"], dtype=object)
    options = {"epsilon": 1.0, "neighbors": relation}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        assert len(statistics.histogram(numbers, edges=EDGES, **options).value) == 2
        assert len(statistics.histogram(words, categories=["a", "b"], **options).value) == 2
        assert len(statistics.top_k(words, 2, categories=["a", "b", "c"], **options).value) == 2


def chances(epsilon, counts, relation, draws=4_000):
    values = np.repeat(np.arange(len(counts)), counts)
    coins = np.random.default_rng(1)
    options = {"categories": range(len(counts)), "epsilon": epsilon, "neighbors": relation}
    chosen = [statistics.top_k(values, 2, random_state=coins, **options) for _ in range(draws)]
    return np.mean([one.value[0] == 0 for one in chosen]), chosen


@pytest.mark.parametrize(("relation", "halves"), [("replace_one", 2), ("add_remove", 1)])
def test_the_law_of_the_first_choice(relation, halves):
    """Permute-and-flip of two with a gap of 2: the worse wins in half of its accepted visits."""
    first, _ = chances(2.0, [3, 1], relation, 1_200)
    worse = math.exp(-2 * (2.0 / 2) / halves) / 2
    assert abs((1 - first) - worse) < 0.06


def test_choices_are_the_best_and_within_the_stated_error():
    values = np.repeat(np.arange(20), 100 * np.arange(20))
    best = statistics.top_k(values, 3, categories=range(20), epsilon=30.0, random_state=0)
    assert best.value == (19, 18, 17)
    coins, misses = np.random.default_rng(2), []
    for _ in range(200):
        chosen = statistics.top_k(
            values, 2, categories=range(20), epsilon=0.02, confidence=0.8, random_state=coins
        )
        first, second = (100 * place for place in chosen.value)
        runner_up = 1_900 if chosen.value[0] != 19 else 1_800
        misses.append(max(1_900 - first, runner_up - second) > chosen.count_error)
    assert np.mean(misses) <= 0.3


def test_all_choices_cost_epsilon_together():
    budget = Budget(1.0)
    statistics.top_k([1, 2, 2], 2, categories=[1, 2, 3], epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 1.0


BAD = {
    "edges": [[1], [1, 0], [0, math.nan], [0, 0], "ab", [[0, 1]], 3],
    "epsilon": [0, math.nan, math.inf, "1"],
    "delta": [0, 1, "x"],
    "neighbors": ["local"],
    "confidence": [0, 1],
    "categories": [["a"]],
    "random_state": [-1],
    "values": [["a"], [[1.0]], 3, [1j]],
    "budget": [1],
}


@each_case(
    ("argument", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_input_is_refused_before_anything_is_spent(argument, value):
    budget = Budget(5.0)
    settings = {"epsilon": 1.0, "budget": budget, "edges": EDGES, argument: value}
    values = settings.pop("values", [0.0, 1.0])
    with pytest.raises((ParameterError, ShapeError)) as error:
        statistics.histogram(values, **settings)
    assert argument in str(error.value)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("k", "options"),
    [(0, {}), (3, {}), (1.5, {}), (1, {"categories": []}), (1, {"epsilon": -1})],
)
def test_bad_input_of_top_k(k, options):
    settings = {"categories": ["a", "b"], "epsilon": 1.0, **options}
    budget = Budget(5.0)
    with pytest.raises(ParameterError):
        statistics.top_k(["a"], k, budget=budget, **settings)
    assert budget.spent.epsilon == 0
