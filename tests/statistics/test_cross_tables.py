"""Tables of several columns: sensitivity, consistency, folding, weights of a survey."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from lengths import STAT

from hdp_fast import Budget, local, statistics, transfer
from hdp_fast.data import Category, Chunks, Label, Number, Schema
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.statistics import Shares, cross_tables
from hdp_fast.statistics.release_noise import Noise
from hdp_fast.statistics.shares import NoisyCells

RELATIONS = ["replace_one", "add_remove"]
SCHEMA = Schema(
    None,
    {
        "age": Number(0, 90, (30, 60)),
        "home": Category(("town", "land")),
        "job": Category(("nurse", "clerk")),
    },
)
RNG = np.random.default_rng(0)
PEOPLE = {
    "age": RNG.integers(0, 90, 6_000),
    "home": RNG.choice(["town", "land", "sea"], 6_000, p=[0.6, 0.39, 0.01]),
    "job": RNG.choice(["nurse", "clerk"], 6_000),
}
TINY = Schema(None, {"a": Category(("x",)), "b": Number(0, 2, (1,)), "c": Category(("u",))})
MARGINS = [
    [("a",)],
    [("a", "b")],
    [("a", "b"), ("b", "c")],
    [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")],
]


def counts_of(plan, rows):
    table = (
        dict(zip("abc", zip(*rows, strict=True), strict=True)) if rows else {n: [] for n in "abc"}
    )
    state = plan.fold({name: np.array(values) for name, values in table.items()})
    return np.concatenate([state.sums[str(place)] for place in range(len(plan.margins))])


@each_case("relation", RELATIONS)
@each_case("margins", MARGINS)
def test_counts_of_neighbors_differ_by_what_the_noise_is_for(margins, relation):
    """Over all data sets of up to two rows and their neighbors, in both norms."""
    plan = cross_tables.TablesPlan(TINY, tuple(margins), relation)
    cells = list(itertools.product(["x", "else"], [0.5, 1.5], ["u", ""]))
    made = {
        rows: counts_of(plan, rows)
        for n in (1, 2)
        for rows in itertools.product(cells, repeat=n)
    }  # fmt: skip
    most, worst = len(margins) * (2 if relation == "replace_one" else 1), 0
    for rows in made:
        others = [(cell, *rows[1:]) for cell in cells]
        if relation == "add_remove":
            others = [rows[1:]] if len(rows) > 1 else []
        for other in others:
            apart = made[rows] - made[other]
            worst = max(worst, np.abs(apart).sum(), (apart**2).sum())
    assert worst == most


def noisy_tables(seed, margins):
    rng = np.random.default_rng(seed)
    sizes = {"a": 2, "b": 3, "c": 4}
    return {m: rng.normal(50, 9, [sizes[name] for name in m]) for m in map(tuple, margins)}


def by_lstsq(raw, n):
    """The consistent tables nearest by least squares: margins of one joint table."""
    sizes = {"a": 2, "b": 3, "c": 4}
    joint = np.arange(24).reshape(2, 3, 4)
    rows, aims = [], []
    for margin, table in raw.items():
        for cell in itertools.product(*(range(sizes[name]) for name in margin)):
            where = dict(zip(margin, cell, strict=True))
            kept = joint[tuple(where.get(name, slice(None)) for name in "abc")]
            row = np.zeros(24)
            row[np.ravel(kept)] = 1
            rows.append(row)
            aims.append(table[cell])
    if n is not None:
        rows.append(1e5 * np.ones(24))
        aims.append(1e5 * n)
    found = np.linalg.lstsq(np.array(rows), np.array(aims), rcond=None)[0]
    made, start = {}, 0
    for margin, table in raw.items():
        made[margin] = (np.array(rows[start : start + table.size]) @ found).reshape(table.shape)
        start += table.size
    return made


@each_case("n", [None, 300])
@each_case(
    "margins",
    [["ab"], ["ab", "bc"], ["ab", "ca", "bc"], ["cba", "ab"], ["c", "bc", "a"], ["abc", "cb", "a"]],
)
def test_projections_are_those_of_least_squares(margins, n):
    raw = noisy_tables(1, margins)
    made, plain = cross_tables.project_on_margins(raw, n), by_lstsq(raw, n)
    for margin in raw:
        assert made[margin] == pytest.approx(plain[margin], abs=1e-3)


@each_case("seed", range(5))
@each_case("n", [None, 300])
def test_consistent_tables_agree_and_have_no_negative_count(n, seed):
    raw = {m: table - 45 for m, table in noisy_tables(seed, ["ab", "bc", "ca"]).items()}
    made = cross_tables.make_consistent(raw, n)
    total = made["a", "b"].sum()
    assert all(table.min() >= 0 for table in made.values())
    close = {"abs": 1e-4 * total}
    assert made["a", "b"].sum(axis=0) == pytest.approx(made["b", "c"].sum(axis=1), **close)
    assert made["c", "a"].sum(axis=0) == pytest.approx(made["a", "b"].sum(axis=1), **close)
    if n is not None:
        assert [table.sum() for table in made.values()] == pytest.approx([n] * 3)


def test_tables_without_noise_stay_as_they_are():
    joint = np.arange(24).reshape(2, 3, 4)
    raw = {("a", "b"): joint.sum(axis=2) * 1.0, ("c", "b"): joint.sum(axis=0).T * 1.0}
    made = cross_tables.make_consistent(raw, 276)
    for margin, table in raw.items():
        assert made[margin] == pytest.approx(table)


@each_case("relation", RELATIONS)
@each_case("delta", [None, 1e-6])
def test_counts_are_near_those_of_the_rows_and_intervals_cover(delta, relation):
    released = statistics.tables(
        PEOPLE, SCHEMA, epsilon=1.0, delta=delta, neighbors=relation, random_state=1
    )
    assert [one.columns for one in released.tables] == [
        ("age", "home"), ("age", "job"), ("home", "job"),
    ]  # fmt: skip
    table = released["home", "job"]
    assert repr(table).startswith("CrossTable(home by job, 3 x 3, epsilon=1")
    assert repr(released).startswith("CrossTables(3 tables, epsilon=1")
    assert table.labels == (("town", "land", "(other)"), ("nurse", "clerk", "(other)"))
    truth = np.array([
        [((PEOPLE["home"] == home) & (PEOPLE["job"] == job)).sum() for job in ("nurse", "clerk")]
        for home in ("town", "land", "sea")
    ])  # fmt: skip
    assert np.abs(table.value[:, :2] - truth).max() < 60
    missed = (table.low[:, :2] > truth) | (truth > table.high[:, :2])
    assert missed.sum() <= 1
    assert released.record.epsilon == 1.0
    ages = [one.value.sum(axis=1) for one in released.tables[:2]]
    assert ages[0] == pytest.approx(ages[1], abs=0.1)
    if relation == "replace_one":
        assert [one.value.sum() for one in released.tables] == pytest.approx([6_000] * 3)


def test_parts_release_what_all_rows_do():
    parts = [{n: v[part] for n, v in PEOPLE.items()} for part in (slice(0, 5), slice(5, None))]
    options = {"epsilon": 1.0, "random_state": 2, "margins": [("home", "age", "job"), ("job",)]}
    whole = statistics.tables(PEOPLE, SCHEMA, **options)
    chunks = statistics.tables(Chunks(parts), SCHEMA, **options)
    for one, other in zip(whole.tables, chunks.tables, strict=True):
        assert one.value.tolist() == other.value.tolist()
        assert one.record == other.record


def test_a_label_is_a_column_where_the_table_has_it():
    schema = Schema(Label("rich", above=50), {"home": Category(("town", "land"))})
    people = {"home": PEOPLE["home"], "rich": PEOPLE["age"]}
    released = statistics.tables(people, schema, epsilon=5.0)
    assert released["home", "rich"].value.sum(axis=0)[1] == pytest.approx(
        (PEOPLE["age"] > 50).sum(), abs=30
    )
    assert len(statistics.tables({"home": PEOPLE["home"]}, schema, epsilon=5.0).tables) == 1


def test_shares_are_the_weights_of_a_survey():
    released = statistics.tables(PEOPLE, SCHEMA, epsilon=1.0, random_state=1)
    Query = local.Query
    ages = {
        "young": Query.between(0, high=30),
        "middle": Query.between(0, low=30, high=60),
        "old": Query.between(0, low=60),
    }
    weights = released.shares("age", names=[list(ages)])
    assert list(weights) == ["young", "middle", "old"]
    assert math.fsum(weights.values()) == pytest.approx(1, abs=1e-12)
    crowd = RNG.integers(0, 45, 20_000)
    agents = local.Agents(crowd[:, None].astype(float), (crowd < 30).astype(int), epsilon=2.0)
    named = {"young": ages["young"], "older": Query.between(0, low=30)}
    coarse = {"young": weights["young"], "older": weights["middle"] + weights["old"]}
    result = transfer.survey(
        {"y": Query.label()}, agents, strata=named, weights=coarse, random_state=0
    )
    assert result["y"].kind == "post-stratified"
    assert result["y"].value == pytest.approx(1 / 3, abs=0.05)
    cells = released.shares(("home", "age"))
    assert list(cells)[:2] == ["town, 0 to 30", "town, 30 to 60"]
    flipped = released.shares(["age", "home"])
    assert flipped["0 to 30, town"] == pytest.approx(cells["town, 0 to 30"])


@each_case("columns", [(), ("age", "age"), ("pay",), ("age", "home", "job")])
def test_shares_need_columns_that_stand_together(columns):
    released = statistics.tables(PEOPLE, SCHEMA, epsilon=1.0)
    with pytest.raises(ParameterError, match="columns"):
        released.shares(columns)
    with pytest.raises(ParameterError, match="names"):
        released.shares("age", names=[["young"]])
    with pytest.raises(ParameterError, match="columns"):
        released[columns]


def test_shares_of_tables_without_a_count_are_even():
    released = statistics.tables(
        {name: values[:0] for name, values in PEOPLE.items()}, SCHEMA, epsilon=1e-3,
        neighbors="add_remove", random_state=4,
    )  # fmt: skip
    for one in released.tables:
        assert math.fsum(released.shares(one.columns).values()) == pytest.approx(1)


ODD = {
    "age": np.array(["", "1e999", "nan", "x", "-5", "30"], object),
    "home": np.array(["town", "", None, "sea", "\0", "land"], object),
    "job": np.array(["nurse"] * 6, object),
}


@each_case("relation", RELATIONS)
@each_case("rows", [1, 6])
def test_private_values_show_in_no_error_warning_or_shape(rows, relation):
    table = {name: values[:rows] for name, values in ODD.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        released = statistics.tables(table, SCHEMA, epsilon=1.0, neighbors=relation)
    assert [one.value.shape for one in released.tables] == [(3, 3), (3, 3), (3, 3)]
    assert all(np.isfinite(one.value).all() for one in released.tables)


BAD = {
    "margins": [[], "age", [()], [("age", "pay")], [("age", "age")],
                [("age", "home"), ("home", "age")], [("age", "home", "job", "age")], 3],
    "epsilon": [0, math.nan, "1"],
    "delta": [0, 1],
    "neighbors": ["local"],
    "confidence": [0, 1],
    "schema": [None, {}],
    "budget": [1],
}  # fmt: skip


@each_case(("argument", "value"), [(name, value) for name, some in BAD.items() for value in some])
def test_bad_input_is_refused_before_anything_is_spent(argument, value):
    budget = Budget(5.0)
    settings = {"schema": SCHEMA, "epsilon": 1.0, "budget": budget, argument: value}
    with pytest.raises(ParameterError, match=argument):
        statistics.tables(PEOPLE, **settings)
    assert budget.spent.epsilon == 0


def test_tables_need_rows_and_their_columns():
    empty = {name: values[:0] for name, values in PEOPLE.items()}
    with pytest.raises(ShapeError, match="no record"):
        statistics.tables(empty, SCHEMA, epsilon=1.0)
    with pytest.raises(ParameterError, match="job"):
        statistics.tables({"age": [1], "home": ["town"]}, SCHEMA, epsilon=1.0)
    wide = Schema(None, {f"v{i}": Category(tuple(map(str, range(200)))) for i in range(3)})
    table = {f"v{i}": ["0"] for i in range(3)}
    with pytest.raises(ParameterError, match="cells"):
        statistics.tables(table, wide, epsilon=1.0, margins=[("v0", "v1", "v2")])


def shares_of(counts, noise, *, n, others=(), draws=(1,), law=("laplace", 2)):
    """Shares of a table whose counts have this noise, a list for each table."""
    parts = [
        NoisyCells(np.array(counts) + one[: len(counts)], np.array(others) + one[len(counts) :], m)
        for one, m in zip(noise, draws, strict=True)
    ]
    total = max(sum(counts), 1)
    names = {str(place): count / total for place, count in enumerate(counts)}
    return Shares(names, parts, Noise(law[0], Fraction(law[1])), n)


@each_case(("known", "counts"), [(True, [9, 4]), (False, [9, 4]), (False, [1, 0])])
def test_means_of_rows_are_refused_with_the_exact_probability_of_noise(counts, known):
    """Over all noise of two cells but a tiny tail, for the true mean of some values of cells."""
    values, beta, span = np.array([0.1, 0.7]), 0.1, 16
    ratio = math.exp(-1 / 2)
    chances = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-span, span + 1))
    truth = values @ np.array(counts) / sum(counts)
    missed = 0.0
    for first, chance in zip(range(-span, span + 1), chances, strict=True):
        for second, other in zip(range(-span, span + 1), chances, strict=True):
            noise = [np.array([first, second])]
            shares = shares_of(counts, noise, n=sum(counts) if known else None)
            missed += chance * other * (not shares._test(values, np.array([truth]), beta)[0])
    assert missed <= beta
    assert chances.sum() ** 2 > 1 - beta / 20


def test_gaussian_noise_of_several_tables_refuses_the_truth_as_often_as_beta_says():
    """Tables whose counts are sums of 1 and of 4 draws: the bound is the law of their noise."""
    counts, values, beta, sigma, tries = [900, 400], np.array([0.1, 0.7]), 0.1, 20, 2_000
    truth = np.array([values @ np.array(counts) / sum(counts)])
    missed = 0
    for draws in np.random.default_rng(0).normal(0, sigma, (tries, 2, 2)):
        noise = [draws[0], 2 * draws[1]]
        shares = shares_of(counts, noise, n=None, draws=(1, 4), law=("gaussian", sigma))
        missed += not shares._test(values, truth, beta)[0]
    assert abs(missed - tries * beta) < 6 * math.sqrt(tries * beta)


@each_case("relation", ["replace_one", "add_remove"])
@each_case("delta", [None, 1e-4])
@each_case("margins", [[("age",)], [("age", "home"), ("age", "job")]])
def test_bounds_of_means_cover_those_of_the_rows(margins, delta, relation):
    people = {name: values[:400] for name, values in PEOPLE.items()}
    ends, values = np.array([0, 30, 60, math.inf]), np.array([0.1, 0.9, 0.3])
    ages = np.asarray(people["age"], float)
    true = np.histogram(ages, ends)[0] / len(ages)
    coins, missed, off = np.random.default_rng(0), 0, 0
    for _ in range(tries := 1_000 if STAT else 15):
        released = statistics.tables(
            people, SCHEMA, epsilon=0.05, delta=delta, margins=margins, neighbors=relation,
            random_state=coins,
        )  # fmt: skip
        shares = released.shares("age")
        low, high = shares.bound_mean(values, beta=0.1)
        missed += not low <= true @ values <= high
        distance = np.abs(true - list(shares.values())).sum() / 2
        off += distance > shares.bound_distance(0.1)
    assert max(missed, off) <= tries * 0.1 + 5 * math.sqrt(tries * 0.1)
    assert 0.1 <= low < high <= 0.9


def test_bounds_of_means_tighten_with_epsilon_and_the_number_of_rows():
    widths = []
    for epsilon in (0.1, 1.0, 1e3):
        released = statistics.tables(PEOPLE, SCHEMA, epsilon=epsilon, random_state=1)
        low, high = released.shares("home").bound_mean([0.0, 1.0], [0.2, 1.0], beta=0.05)
        widths.append(high - low)
    share = released.shares("home")
    home = list(share.values())
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] == pytest.approx(0.2 * home[0], abs=1e-3)
    assert share.variance_of_mean([0.0, 1.0]) < 1e-6
    assert share.bound_distance(0.05) < 1e-3
