"""Several rows of one person: which are kept, and what each may cost."""

import itertools
import math
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from containers import TEXTS, UNSIGNED, WHOLE

from hdp_fast import Budget, accounting, parity, statistics, transfer
from hdp_fast.data import Chunks, bound_rows, persons
from hdp_fast.data.persons import (
    Persons,
    gaussian_share_of_row,
    read_persons,
    share_of_row,
)
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import (
    Conjunctions,
    ExponentialLearner,
    FeatureMap,
    SufficientStatistics,
)
from hdp_fast.record import PrivacyRecord

LETTERS = "abc"
ROWS = [list(ids) for n in range(6) for ids in itertools.product(LETTERS, repeat=n)]


def kept(ids, rows, key=0):
    """The kept rows as pairs of an id and the place among that id's rows."""
    places = [ids[:row].count(name) for row, name in enumerate(ids)]
    mask = bound_rows(np.array(ids, str), rows, key=key)
    return {pair for pair, keep in zip(zip(ids, places, strict=True), mask, strict=True) if keep}


def kept_by_position(ids, rows, key=0):
    """A choice that reads the position of a row in the whole table."""
    places = [ids[:row].count(name) for row, name in enumerate(ids)]
    chosen = set()
    for name in set(ids):
        own = [row for row in range(len(ids)) if ids[row] == name]
        best = sorted(own, key=lambda row: (row * 7 + key) % 5)[:rows]
        chosen |= {(name, places[row]) for row in best}
    return chosen


def touches_others(choose, rows, key):
    """Whether the rows of one person ever decide which rows of another one are kept."""
    for ids in ROWS:
        for name in set(ids):
            without = choose([other for other in ids if other != name], rows, key)
            if {pair for pair in choose(ids, rows, key) if pair[0] != name} != without:
                return True
    return False


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_each_person_keeps_as_many_rows_as_allowed(rows):
    for ids in ROWS:
        chosen = [name for name, place in kept(ids, rows)]
        for name in LETTERS:
            assert chosen.count(name) == min(ids.count(name), rows)


@pytest.mark.parametrize(("rows", "key"), [(1, 0), (2, 0), (1, 7), (2, 2**62)])
def test_rows_of_one_person_never_decide_about_those_of_another(rows, key):
    assert not touches_others(kept, rows, key)


def test_the_check_finds_a_choice_by_the_position_in_the_table():
    assert touches_others(kept_by_position, 1, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: ids.astype(str),
        lambda ids: ids.astype(str).astype("S"),
        lambda ids: ids.astype(str).astype(object),
        lambda ids: ids.astype(object),
        lambda ids: ids.astype(float),
        lambda ids: ids.astype(np.int8),
        lambda ids: ids.astype(np.uint64) * np.uint64(2**57),
        lambda ids: ids * 10**15,
        lambda ids: -ids,
        lambda ids: ids.tolist(),
    ],
)
def test_ids_of_every_type_are_bounded(change):
    ids = np.random.default_rng(0).integers(0, 100, 1000)
    mask = bound_rows(change(ids), 3)
    counts = np.bincount(ids, minlength=100)
    np.testing.assert_array_equal(np.bincount(ids[mask], minlength=100), counts.clip(max=3))


def test_the_choice_depends_on_the_id_and_not_on_its_width_or_neighbors():
    ids = np.random.default_rng(0).integers(-50, 50, 1000)
    mask = bound_rows(ids, 2)
    np.testing.assert_array_equal(bound_rows(ids.astype(np.int8), 2), mask)
    np.testing.assert_array_equal(bound_rows(np.append(ids, 10**15), 2)[:-1], mask)
    missing = np.append(ids, np.nan)
    np.testing.assert_array_equal(bound_rows(missing, 2)[:-1], mask)
    order = np.argsort(ids, kind="stable")
    np.testing.assert_array_equal(bound_rows(ids[order], 2), mask[order])
    assert (bound_rows(ids, 2, key=1) != mask).any()


def test_texts_are_the_same_persons_in_arrays_and_lists(monkeypatch):
    ids = np.random.default_rng(0).integers(0, 300, 1000).astype(str)
    mask = bound_rows(ids, 2)
    for others in (ids.astype("U40"), ids.astype("S"), ids.astype(object), ids.astype(">U9")):
        np.testing.assert_array_equal(bound_rows(others, 2), mask)
    # Where two hashes collide, texts are compared.
    monkeypatch.setattr(persons, "_group_texts", lambda ids: None)
    np.testing.assert_array_equal(bound_rows(ids, 2), mask)


def test_texts_whose_hashes_collide_are_told_apart(monkeypatch):
    ids = np.array(["a", "b", "a", "c"])
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda words, **more: argsort(np.multiply(words, 0, out=words))
    )
    assert persons._group_texts(ids) is None


def test_every_row_of_a_person_has_the_same_chance():
    people = 20_000
    for ids in (np.arange(people), np.arange(people).astype(str)):
        mask = bound_rows(np.repeat(ids, 5), 2).reshape(people, 5)
        # Ten deviations of a share of 2 / 5.
        assert (abs(mask.mean(axis=0) - 0.4) < 10 * np.sqrt(0.24 / people)).all()
        pairs = np.bincount(mask @ (1 << np.arange(5)), minlength=32)
        assert (abs(pairs[pairs > 0] / people - 0.1) < 10 * np.sqrt(0.09 / people)).all()


def test_rows_without_an_id_count_as_those_of_one_person():
    assert bound_rows([np.nan, 1.0, np.nan, 2.0, np.nan]).sum() == 3
    assert bound_rows(np.array([None, "a", None], object)).sum() == 2
    assert bound_rows([0.0, -0.0]).sum() == 1


def test_objects_that_stand_for_no_id_are_one_person():
    ids = np.array(["a", None, math.nan, "a", np.datetime64("NaT"), None], object)
    assert bound_rows(ids)[[1, 2, 4, 5]].sum() == 1


def test_texts_that_spell_a_missing_entry_are_people():
    texts = ["None", "NaT", "<NA>", "nan"] * 2
    polars = pytest.importorskip("polars")
    for missing in ([], [None] * 3):
        for ids in ([*texts, *missing], np.array([*texts, *missing], object)):
            assert bound_rows(ids).sum() == 4 + bool(missing)
        assert bound_rows(polars.Series([*texts, *missing])).sum() == 4 + bool(missing)


BASES = [0, 2**53, 2**60, -(2**60), 2**63]


def holds(name, start):
    """Whether there are such integers."""
    return not ((name in UNSIGNED and start < 0) or (name in WHOLE and start >= 2**63))


@each_case(
    ("name", "start"),
    [
        (name, start)
        for name in [*WHOLE, *UNSIGNED, *TEXTS, "list"]
        for start in BASES
        if holds(name, start)
    ],
)
def test_no_person_decides_which_rows_of_others_are_kept(name, start):
    """Not even one without an id, nor one whose id no float holds."""
    people = [start + place for place in range(5)]
    people = list(map(str, people)) if name in TEXTS else people
    make = {**WHOLE, **UNSIGNED, **TEXTS}.get(name, lambda entries, _: entries)
    ids = [*people, *people, None, None, *people[:2], None]
    whole = bound_rows(make(ids, people), 1)
    for person in (*people, None):
        others = [row for row, name in enumerate(ids) if name != person]
        part = bound_rows(make([ids[row] for row in others], people), 1)
        np.testing.assert_array_equal(part, whole[others])


def test_no_id_causes_an_error():
    class Odd:
        def __str__(self):
            raise ValueError

    assert bound_rows(np.array([10**6000, Odd(), "\ud800", None, 3], object)).all()
    assert bound_rows(np.array(["a\ud800", "a\ud800"])).sum() == 1
    assert bound_rows(np.array([np.inf, -np.inf, 1e308, 5e-324])).all()
    assert bound_rows([]).shape == (0,)


@pytest.mark.parametrize(
    ("ids", "rows", "error"),
    [
        ([[1, 2]], 1, ShapeError),
        (3, 1, ShapeError),
        (np.array([True, False]), 1, ParameterError),
        (np.array([1j]), 1, ParameterError),
        (np.array([1, 2], np.longdouble), 1, ParameterError),
        (np.array(["2020-01-01"], "M8[D]"), 1, ParameterError),
        (np.ma.masked_array([1, 2], [0, 1]), 1, ParameterError),
        ([1], 0, ParameterError),
        ([1], 1.5, ParameterError),
        ([1], True, ParameterError),
        ([1], 2**31 + 1, ParameterError),
    ],
)
def test_bad_arguments_are_refused(ids, rows, error):
    with pytest.raises(error):
        bound_rows(ids, rows)
    with pytest.raises(ParameterError):
        bound_rows([1], 1, key=-1)


# Shares -------------------------------------------------------------------------------------------


@each_case("rows", [1, 2, 3, 7, 1000])
@each_case("epsilon", [1e-3, 0.1, 0.3, 1.0, 8.0, 300.0])
def test_group_privacy_of_a_share_is_what_was_asked(epsilon, rows):
    delta = 1e-6
    each, part = share_of_row(epsilon, delta, rows)
    assert Fraction(each) * rows <= Fraction(epsilon)
    assert Fraction(repr(each)) * rows <= Fraction(repr(epsilon))
    with localcontext() as context:
        context.prec = 60
        group = (Decimal(rows * Fraction(each).numerator) / Fraction(each).denominator).exp() - 1
        total = Decimal(part) * group / (Decimal(each).exp() - 1)
        assert total <= Decimal(delta)
        assert total >= Decimal(delta) * Decimal("0.999999")


@pytest.mark.parametrize("rows", [2, 5, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_gaussian_share_uses_the_whole_mu(epsilon, rows):
    whole = accounting.gaussian_mu(epsilon, 1e-6)
    part = accounting.gaussian_mu(*gaussian_share_of_row(epsilon, 1e-6, rows))
    assert whole * (1 - 1e-6) <= rows * part <= whole
    assert rows * accounting.gaussian_mu(*share_of_row(epsilon, 1e-6, rows)) < rows * part


def test_group_privacy_is_tight_and_a_smaller_price_is_broken():
    # On s = 0, 1, ..., k the outcome has probability p(s + 1) = e p(s) + d, with e = exp(epsilon).
    e, d, rows = Fraction(3, 2), Fraction(1, 1000), 4
    chances = [Fraction(0)]
    for _ in range(rows):
        chances.append(e * chances[-1] + d)
    for low, high in itertools.pairwise(chances):
        for p, q in ((low, high), (high, low), (1 - low, 1 - high), (1 - high, 1 - low)):
            assert p <= e * q + d
    worst = chances[-1] - e**rows * chances[0]
    assert worst == d * (e**rows - 1) / (e - 1)
    assert worst > rows * d


@cache
def choose_rows(ids, rows):
    return bound_rows(np.array(ids, str), rows).tolist()


def leaves(ids, values, rows):
    return [value for value, keep in zip(values, choose_rows(ids, rows), strict=True) if keep]


def largest_moves(rows):
    """The most by which the sum of bits changes, for all tables of at most four rows.

    One for tables whose neighbors have the same ids and other values of one person; one for tables
    that lack all rows of a person.
    """
    replaced = removed = 0
    for n in range(1, 5):
        for ids in itertools.product("ab", repeat=n):
            for values in itertools.product((0, 1), repeat=n):
                total = sum(leaves(ids, values, rows))
                rest = [bit for bit, name in zip(values, ids, strict=True) if name != "a"]
                others = leaves(("b",) * len(rest), rest, rows)
                removed = max(removed, abs(total - sum(others)))
                choices = [
                    (0, 1) if name == "a" else (bit,) for name, bit in zip(ids, values, strict=True)
                ]
                for new in itertools.product(*choices):
                    replaced = max(replaced, abs(total - sum(leaves(ids, new, rows))))
    return replaced, removed


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_person_moves_a_count_by_the_rows_that_are_kept(rows):
    # Geometric noise with ratio r^(1 / rows) has the price r for a person, and not one bit less.
    assert largest_moves(rows) == (rows, rows)


def test_without_a_bound_a_person_moves_a_count_by_more():
    assert largest_moves(4) == (4, 4)


# Persons ------------------------------------------------------------------------------------------

ROW_RECORD = PrivacyRecord(
    mechanism="a count", source="nobody", neighbors="replace_one", epsilon=1.0, noise="none"
)


def test_rows_are_the_unit_unless_ids_are_passed():
    nobody = read_persons(None, 1, 3)
    values = np.arange(3)
    assert nobody.select(values) is values
    assert nobody.state(ROW_RECORD) is ROW_RECORD
    assert nobody.share(0.3, 1e-6) == (0.3, 1e-6)
    assert nobody.count_groups(3) == 3


def test_records_say_who_is_protected():
    people = read_persons(["a", "a", "b"], 2, 3)
    assert people.keep is not None
    stated = people.state(ROW_RECORD)
    assert stated.neighbors == "replace_person"
    assert stated.mechanism == "a count, at most 2 rows a person"
    assert PrivacyRecord.from_json(stated.to_json()) == stated
    assert people.count_groups(3) == 1
    assert Persons(people.keep, 2).count_groups(101) == 50


@pytest.mark.parametrize(
    ("ids", "rows", "error", "text"),
    [
        (None, 2, ParameterError, "ids must say"),
        (None, 0, ParameterError, "rows_per_person"),
        (["a"], 1, ShapeError, r"\(3,\)"),
        ([["a", "b", "c"]], 1, ShapeError, "one"),
        (["a", "b", "c"], 1.0, ParameterError, "rows_per_person"),
    ],
)
def test_bad_owners_are_refused(ids, rows, error, text):
    with pytest.raises(error, match=text):
        read_persons(ids, rows, 3)


@pytest.mark.parametrize(("epsilon", "delta"), [(5e-324, 1e-6), (1.0, 5e-324)])
def test_prices_that_cannot_be_shared_are_refused(epsilon, delta):
    with pytest.raises(ParameterError, match="too small"):
        share_of_row(epsilon, delta, 1000)


# People in several parts --------------------------------------------------------------------------

N, CUTS = 1200, (0, 0, 300, 310, 1200)
RNG = np.random.default_rng(4)
SIZES = RNG.integers(0, 400, N)
IDS = {
    "integers": SIZES,
    "floats": np.where(SIZES < 9, np.nan, SIZES / 2),
    "texts": np.array([f"p{size}" for size in SIZES], object),
    "missing texts": np.array([None if size < 9 else f"p{size}" for size in SIZES], object),
    "nullable": pd.array(np.where(SIZES < 9, None, SIZES), "Int64"),
}
TABLE = pd.DataFrame({"a": RNG.integers(0, 2, N), "b": RNG.integers(0, 2, N)})
TABLE["y"] = TABLE["a"] ^ TABLE["b"]
PRICE = {"epsilon": 2.0, "random_state": 3}
MEAN = statistics.Job("mean", low=0, high=1, columns="a")
COUNT = statistics.Job("histogram", edges=[0, 1, 2], neighbors="add_remove", columns="b")
QUARTERS = statistics.Job("quantiles", low=0, high=1, steps=4, columns="b")
FIT = SufficientStatistics(FeatureMap.identity(2, norm_bound=2.0), classes=[0, 1])
EXACT = replace(FIT, neighbors="add_remove", second_moments=True)
CHOICE = ExponentialLearner(Conjunctions(2, 1), epsilon=2.0)


def of_array(function, *names, **settings):
    """The release of one array, of rows with these names, for the ids that it is called with."""

    def call(ids):
        arrays = (TABLE[name].to_numpy() for name in names)
        return function(*arrays, ids=ids, rows_per_person=2, **settings)

    return call


XY = (TABLE[["a", "b"]].to_numpy(), TABLE["y"].to_numpy())
D = {"delta": 1e-6}
JOBS = {
    "mean": (partial(MEAN.release, **PRICE), None, of_array(statistics.mean, "a", low=0, high=1,
             **PRICE)),
    "histogram": (partial(COUNT.release, **PRICE), None, of_array(statistics.histogram, "b",
                  edges=[0, 1, 2], neighbors="add_remove", **PRICE)),
    "quantiles": (partial(QUARTERS.release, **PRICE), None, of_array(statistics.quantiles, "b",
                  levels=(0.25, 0.5, 0.75), low=0, high=1, steps=4, **PRICE)),
    "statistics": (partial(FIT.release, **PRICE, **D), "y",
                   partial(FIT.release, *XY, rows_per_person=2, **PRICE, **D)),
    "add_remove": (partial(EXACT.release, **PRICE, **D), "y",
                   partial(EXACT.release, *XY, rows_per_person=2, **PRICE, **D)),
    "choice": (partial(CHOICE.learn, random_state=3), "y",
               partial(CHOICE.learn, *XY, rows_per_person=2, random_state=3)),
    "means": (partial(transfer.release_means, **PRICE, **D), "y",
              partial(transfer.release_means, XY[0], rows_per_person=2, **PRICE, **D)),
    "parity": (partial(parity.learn, **PRICE), "y",
               partial(parity.learn, *XY, rows_per_person=2, **PRICE)),
}  # fmt: skip


def parts_of(ids):
    table = TABLE.assign(person=ids)
    return [table[start:end] for start, end in itertools.pairwise(CUTS)]


def flat(value):
    if is_dataclass(value):
        return {field.name: flat(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return repr(value)


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("name", JOBS)
def test_people_in_parts_are_those_of_one_array(name, kind):
    release, label, whole = JOBS[name]
    chunks = Chunks(parts_of(IDS[kind]), label=label, ids="person", rows_per_person=2)
    ours, theirs = release(chunks), whole(ids=IDS[kind])
    assert flat(ours) == flat(theirs)
    assert ours.record.neighbors.endswith("_person")
    assert ours.record.mechanism.endswith("at most 2 rows a person")


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_people_in_files_are_those_of_one_array(tmp_path, kind):
    for place, part in enumerate(parts_of(IDS["texts"])[1:]):
        path = tmp_path / f"{place}.{kind}"
        if kind == "npz":
            np.savez(path, **{name: part[name].to_numpy().astype(str) for name in part})
        else:
            part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    chunks = Chunks(tmp_path, ids="person", rows_per_person=2, workers=2)
    some = {"columns": ["b", "a"], "label": "y", "ids": "person", "rows_per_person": 2}
    mean = replace(MEAN, columns=None).release(chunks, **PRICE)
    assert list(mean) == ["a", "b", "y"]
    assert flat(mean["a"]) == flat(
        statistics.mean(TABLE, low=0, high=1, ids=IDS["texts"], rows_per_person=2, **PRICE)["a"]
    )
    ours = transfer.release_means(Chunks(tmp_path, **some), **PRICE, **D)
    theirs = transfer.release_means(
        TABLE[["b", "a"]].to_numpy(), ids=IDS["texts"], rows_per_person=2, **PRICE, **D
    )
    assert (ours.means == theirs.means).all()
    assert ours.record == theirs.record


def test_ids_of_parts_are_numbers_or_texts_and_a_mixture_is_refused():
    ids = np.array([7, 8, 7, 7, 8, 9])
    numbers, texts = {"a": [1] * 6, "person": ids}, {"a": [1], "person": ["7"]}
    bounded, people = Chunks([numbers, numbers], ids="person", rows_per_person=2).of_people()
    expected = bound_rows(np.tile(ids, 2), 2)
    assert (people.keep == expected).all()
    assert bounded.count() == expected.sum() == 6
    floats = {"a": [1], "person": np.array([7.0])}
    _, people = Chunks([numbers, floats], ids="person", rows_per_person=2).of_people()
    assert (people.keep == bound_rows(np.array([*ids, 7]), 2)).all()
    empty = {"a": [], "person": np.array([], object)}
    _, people = Chunks([empty, numbers], ids="person", rows_per_person=2).of_people()
    assert (people.keep == bound_rows(ids, 2)).all()
    with pytest.raises(ParameterError, match="numbers in some parts and texts in others"):
        Chunks([numbers, texts], ids="person").of_people()


@pytest.mark.parametrize("rows", [1, 2])
def test_a_person_in_several_parts_moves_a_count_by_no_more_than_rows(rows):
    def counts(values):
        tables = [
            {"person": list(ids), "x": part} for ids, part in zip(owners, values, strict=True)
        ]
        chunks = Chunks(tables, ids="person", rows_per_person=rows)
        return chunks.of_people()[0].fold(job.fold).sums["counts"][0]

    job = statistics.Job("histogram", edges=[0, 1, 2], columns="x")
    for cut in range(7):
        owners = [text for text in ("abacab"[:cut], "abacab"[cut:]) if text]
        for name in "abc":
            base = [[0.5] * len(ids) for ids in owners]
            moved = [[1.5 if one == name else 0.5 for one in ids] for ids in owners]
            most = min(rows, "abacab".count(name))
            assert (counts(moved) - counts(base)).tolist() == [-most, most]


def test_parts_that_are_shuffled_between_passes_are_refused():
    reads = []

    def read():
        reads.append(1)
        return {"person": list("abcc" if len(reads) < 2 else "acbc"), "x": [0.5] * 4}

    budget = Budget(9.0, neighbors="replace_person")
    job = statistics.Job("mean", low=0, high=1, columns="x")
    with pytest.raises(ParameterError, match="ids of a part have changed"):
        job.release(Chunks([read], ids="person"), epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("change", ["more", "fewer"])
def test_parts_that_grow_or_shrink_between_passes_are_refused(change):
    reads = []

    def read():
        reads.append(1)
        many = 4 if len(reads) < 2 else {"more": 5, "fewer": 3}[change]
        return {"person": list("abccd"[:many]), "x": [0.5] * many}

    job = statistics.Job("mean", low=0, high=1, columns="x")
    with pytest.raises(ParameterError, match="ids of a part have changed"):
        job.release(Chunks([read], ids="person"), epsilon=1.0)


def test_jobs_that_know_no_people_refuse_them():
    chunks = Chunks(parts_of(IDS["texts"]), ids="person")
    for job in (
        lambda: chunks.fold(MEAN.fold),
        chunks.count,
        lambda: list(chunks.map_blocks(lambda block: [0])),
        lambda: list(chunks.map(lambda blocks, name: 0)),
    ):
        with pytest.raises(ParameterError, match="ids = 'person' of Chunks, but this job protects"):
            job()


@pytest.mark.parametrize(
    ("source", "settings", "text"),
    [
        (parts_of(IDS["texts"]), {"rows_per_person": 2}, "ids must name"),
        (parts_of(IDS["texts"]), {"ids": "person", "rows_per_person": 0}, "rows_per_person"),
        (parts_of(IDS["texts"]), {"ids": "y", "label": "y"}, "none of the columns"),
        (parts_of(IDS["texts"]), {"ids": "a", "columns": ["a"]}, "none of the columns"),
        (parts_of(IDS["texts"]), {"ids": "who"}, "who"),
        ([XY], {"ids": "person"}, "have no column of ids"),
        ([XY[0]], {"ids": "person"}, "a part"),
    ],
)
def test_parts_without_a_column_of_ids_are_refused(source, settings, text):
    with pytest.raises(ParameterError, match=text):
        FIT.release(Chunks(source, **{"label": "y", **settings}), **PRICE, **D)
    with pytest.raises(ShapeError, match="X has 0 rows, but their public number must be"):
        FIT.release(Chunks([TABLE[:0]], ids="a", label="y"), **PRICE, **D)


@pytest.mark.parametrize("statistic", ["histogram", "quantiles", "sum"])
def test_that_there_is_nobody_does_not_show_where_the_number_of_people_is_private(statistic):
    bounds = {"edges": [0, 1, 2]} if statistic == "histogram" else {"low": 0, "high": 2}
    job = statistics.Job(statistic, columns="a", neighbors="add_remove", **bounds)
    more = {"levels": [0.5]} if statistic == "quantiles" else {}
    for rows in (0, 1):
        parts = [pd.DataFrame({"a": np.ones(rows), "who": ["x"] * rows})]
        assert job.release(Chunks(parts, ids="who"), epsilon=1.0, **more) is not None


def test_budgets_of_people_are_charged_for_parts():
    some = {"label": "y", "columns": ["a", "b"]}
    budget = Budget(9.0, neighbors="replace_person")
    with pytest.raises(ParameterError, match="the budget is for replace_person"):
        CHOICE.learn(Chunks(parts_of(IDS["texts"]), **some), budget=budget)
    CHOICE.learn(Chunks(parts_of(IDS["texts"]), ids="person", **some), budget=budget)
    assert budget.spent.epsilon == 2.0
