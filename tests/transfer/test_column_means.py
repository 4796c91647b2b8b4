"""Means of columns: exact sums, the price of their noise, and what is refused."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import each_case

from hdp_fast import Budget, accounting, gf2, local, transfer
from hdp_fast.accounting.discrete_gaussian import calibrate_means, sigma_epsilon
from hdp_fast.data import (
    Category,
    Chunks,
    Column,
    Ignore,
    Label,
    Number,
    Schema,
    Table,
    read_frame,
)
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError
from hdp_fast.transfer import column_means

RNG = np.random.default_rng(3)
X = RNG.random((500, 3))
PRICE = {"epsilon": 1.0, "delta": 1e-6}
SCHEMA = Schema(
    Label("y", above=0),
    {
        "home": Category(("own", "rent", "other")),
        "age": Number(0, 100),
        "member": Category(("yes",)),
        "name": Ignore(),
    },
)


def table(home, age, member):
    texts = {"home": home, "age": age, "member": member}
    columns = {}
    for name, values in texts.items():
        kinds = sorted(set(values))
        columns[name] = Column(tuple(kinds), np.array([kinds.index(v) for v in values]))
    return Table(columns, len(home))


def test_without_noise_means_are_means():
    means = transfer.release_means(X, epsilon=math.inf)
    assert np.abs(means.means - X.mean(axis=0)).max() <= means.half_width(0.5) < 1e-6
    assert (means.record, means.n, means.names) == (None, 500, ("x0", "x1", "x2"))
    assert "not protected" in repr(means)


def test_values_are_scaled_by_public_bounds():
    rows = np.array([[18.0, -5.0], [90.0, math.nan], [1e300, math.inf], [-math.inf, 5.0]])
    means = transfer.release_means(rows, epsilon=math.inf, low=[18, 0], high=[90, 10])
    assert means.means == pytest.approx([0.5, 0.375], abs=1e-6)
    wide = transfer.release_means(np.array([[1e308], [-1e308]]), epsilon=math.inf,
                                  low=-1.5e308, high=1.5e308)  # fmt: skip
    assert wide.means == pytest.approx([0.5])


@pytest.mark.parametrize("price", [1, 3, 50])
def test_the_noise_is_the_least_that_is_enough(price):
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)):
        bits, sigma = calibrate_means(price, n=10_000, epsilon=epsilon, delta=delta)
        assert sigma_epsilon(price << (2 * bits), sigma, delta) <= epsilon
        shift = math.sqrt(price) * 2**bits / float(sigma)
        assert accounting.gaussian_epsilon(shift, delta) == pytest.approx(epsilon, rel=1e-5)
        # A variant with noise a thousandth too small is caught.
        assert sigma_epsilon(price << (2 * bits), sigma * Fraction(999, 1000), delta) > epsilon


def prices(features, rows):
    """The largest squared distance of two rows of features, in exact integers."""
    made = [features(table(*[[value] for value in row]))[0] for row in rows]
    integers = [np.rint(row * 1024.0).astype(int) for row in made]
    return max(int(((a - b) ** 2).sum()) for a, b in itertools.product(integers, repeat=2)) / 4**10


def test_no_two_rows_of_a_schema_are_farther_apart_than_priced(monkeypatch):
    seen = []
    kept = calibrate_means

    def spy(price, **options):
        seen.append(price)
        return kept(price, **options)

    monkeypatch.setattr(column_means, "calibrate_means", spy)
    homes, ages, members = ["own", "rent", "other", "?"], ["0", "100", "no"], ["yes", "no"]
    rows = list(itertools.product(homes, ages, members))
    data = table(*zip(*rows, strict=True))
    means = transfer.release_means(data, schema=SCHEMA, **PRICE, random_state=1)
    assert means.names == tuple(SCHEMA.float_names)
    assert seen == [4] == [prices(SCHEMA.floats, rows)]
    # A price for one of the two bits of a category that change would be too low.
    assert prices(SCHEMA.floats, rows) > 3
    means = transfer.release_means(data, schema=SCHEMA, bits=True, **PRICE, random_state=1)
    assert means.names == tuple(SCHEMA.names)
    assert seen[-1] == 6 == prices(SCHEMA.bits, rows)
    transfer.release_means(X, **PRICE, random_state=1)
    assert seen[-1] == X.shape[1]


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 2), (3, 1)])
def test_no_neighbors_move_the_sums_by_more_than_is_priced(n, d, monkeypatch):
    """All data sets over values within, at and beyond the bounds, and all neighbors, in
    integers."""
    values, seen = (-9.0, 0.0, 0.3, 1.0, 9.0, math.nan), {}
    bounds = column_means.Bounds(np.zeros(d), np.ones(d))

    def sums(records):
        key = repr(records)
        if key not in seen:
            seen[key] = column_means.add_up(
                np.array(records), lambda part: bounds.round(part, 1 << 20)
            )
        return seen[key]

    rows = list(itertools.product(values, repeat=d))
    largest = 0
    for records in itertools.combinations_with_replacement(rows, n):
        for row in rows:
            moved = sums(records) - sums((row, *records[1:]))
            largest = max(largest, int((moved**2).sum()))
    assert largest == d * 4**20
    # Without bounds, a record could move them by more.
    monkeypatch.setattr(
        column_means.Bounds,
        "round",
        lambda self, x, most: (np.nan_to_num(x) / 2 * most).astype(np.int64),
    )
    seen.clear()
    most, least = (9.0,) * d, (-9.0,) * d
    moved = sums((most, *[least] * (n - 1))) - sums((least,) * n)
    assert int((moved**2).sum()) > largest


def test_released_means_are_as_near_as_they_say():
    far = 0
    for seed in range(200):
        means = transfer.release_means(X, **PRICE, random_state=seed)
        far += np.abs(means.means - X.mean(axis=0)).max() > means.half_width(0.2)
    # Binomial of 200 and .2: 69 or more has a probability below 1e-6.
    assert far < 69
    assert means.deviation == pytest.approx(math.sqrt(3) / 0.2367 / 500, rel=1e-3)
    assert means.half_width(0.01) > means.half_width(0.2)


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("setting", ["warn", "raise"])
@pytest.mark.parametrize(
    "odd",
    [
        [[np.longdouble("1e4000")], [0]],
        np.array([[0x7FA00000], [0]], np.uint32).view(np.float32),
        np.array([[5e-324], [np.inf]]),
    ],
    ids=["beyond floats", "signaling NaN", "subnormal"],
)
def test_no_value_warns_or_raises(odd, setting):
    with np.errstate(all=setting):
        means = transfer.release_means(odd, epsilon=1.0, delta=1e-6, low=-1e308, high=1e308)
    assert means.n == 2


def test_a_release_is_charged_once():
    budget = Budget(1.0, delta=1e-6)
    means = transfer.release_means(X, **PRICE, budget=budget)
    assert means.record == budget.records[0].record
    assert (means.record.neighbors, means.record.numerics) == ("replace_one", "exact")
    assert budget.remaining.epsilon == 0
    with pytest.raises(BudgetExceeded):
        transfer.release_means(X, **PRICE, budget=budget)


def test_json_is_read_again():
    for means in (
        transfer.release_means(X, **PRICE, random_state=0),
        transfer.ColumnMeans.public([0.5, 30.0], high=[1, 50], names=["a", "b"]),
    ):
        again = transfer.ColumnMeans.from_json(means.to_json())
        assert again.to_json() == means.to_json()
        assert again.record == means.record
        assert "ColumnMeans" in repr(again)
    fields = json.loads(means.to_json())
    for wrong in ({"means": [0.5]}, {"names": ["a"]}, {"more": 1}):
        with pytest.raises(ParameterError):
            transfer.ColumnMeans.from_json(json.dumps(fields | wrong))


def test_frames_and_bits():
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    assert transfer.release_means(frame, epsilon=math.inf).names == ("a", "b")
    bits = gf2.BitMatrix.from_dense(frame.to_numpy().astype(np.uint8))
    assert transfer.release_means(bits, epsilon=math.inf).means == pytest.approx([0.5, 1.0])


ONE_ROW = table(["own"], ["3"], ["yes"])
BAD = [
    ({"records": X[0]}, ShapeError, "records has shape"),
    ({"records": X[:0]}, ShapeError, "records has shape"),
    ({"records": [["a"]]}, ParameterError, "records has dtype"),
    ({"epsilon": 0}, ParameterError, "epsilon = 0"),
    ({"delta": None}, ParameterError, "delta must be given"),
    ({"delta": 0}, ParameterError, "delta = 0"),
    ({"epsilon": math.inf, "budget": Budget(1.0)}, ParameterError, "only a private release"),
    ({"low": [0, 0]}, ShapeError, "low has shape"),
    ({"high": math.inf}, ParameterError, "high = inf"),
    ({"low": 1}, ParameterError, "low = 1, but it must be below high"),
    ({"names": ["a", "b"]}, ParameterError, "names has 2 entries"),
    ({"names": ["a", "b", "b"]}, ParameterError, "names"),
    ({"schema": SCHEMA}, ParameterError, "it must be a data.Table"),
    ({"bits": True}, ParameterError, "bits = True, but"),
    ({"bits": 1, "schema": SCHEMA}, ParameterError, "bits = 1, but"),
    ({"schema": 3}, ParameterError, "schema = 3"),
    ({"records": ONE_ROW, "schema": SCHEMA, "high": 3}, ParameterError, "bounds"),
    ({"epsilon": 1e-9, "delta": 1e-15}, ParameterError, "noise"),
    ({"random_state": "x"}, ParameterError, "random_state"),
]  # fmt: skip


@each_case(("changes", "kind", "words"), BAD)
def test_bad_input_is_refused_before_anything_is_spent(changes, kind, words):
    budget = Budget(1.0, delta=1e-6)
    with pytest.raises(kind, match=words):
        transfer.release_means(**{"records": X, **PRICE, "budget": budget, **changes})
    assert budget.spent.epsilon == 0


def test_public_means_are_checked():
    public = transfer.ColumnMeans.public
    for wrong, kind in (([1.5], ParameterError), ([], ShapeError), ([[0.5]], ShapeError),
                        ([math.nan], ParameterError)):  # fmt: skip
        with pytest.raises(kind, match="means"):
            public(wrong)
    with pytest.raises(ParameterError, match="beta"):
        public([0.5]).half_width(0)


# People with several rows -------------------------------------------------------------------------


def test_people_with_one_row_each_cost_what_rows_cost():
    rows, price = np.arange(300.0).reshape(100, 3) / 300, {"epsilon": 1.0, "delta": 1e-6}
    one = transfer.release_means(rows, **price, random_state=1)
    people = transfer.release_means(rows, **price, ids=np.arange(100), random_state=1)
    np.testing.assert_array_equal(one.means, people.means)
    assert people.record.neighbors == "replace_person"


def test_a_person_of_many_rows_counts_as_two_at_twice_the_noise():
    rows = np.vstack([np.ones((1000, 1)), np.zeros((1000, 1))])
    ids = np.append(np.zeros(1000, int), np.arange(1000))
    price = {"epsilon": 8.0, "delta": 1e-6}
    budget = Budget(8.0, 1e-6, neighbors="replace_person")
    means = transfer.release_means(rows, **price, ids=ids, rows_per_person=2, budget=budget)
    assert means.n == 1001
    assert means.means[0] < 0.1
    one = transfer.release_means(rows[:1001], **price)
    assert means.deviation == pytest.approx(2 * one.deviation, rel=1e-5)
    assert budget.remaining.epsilon == 0


# Parts --------------------------------------------------------------------------------------------

CUTS = list(itertools.pairwise((0, 0, 7, 300, 500)))
FRAME = pd.DataFrame(
    {
        "home": RNG.choice(["own", "rent", "other", "boat"], 500),
        "age": RNG.integers(-5, 120, 500),
        "member": RNG.choice(["yes", "no"], 500),
        "name": "ann",
        "y": 1,
    }
)
ARRAYS = [X[start:end] for start, end in CUTS]


def same_means(ours, theirs):
    assert (ours.means == theirs.means).all()
    assert (ours.names, ours.n) == (theirs.names, theirs.n)
    assert (ours.deviation, ours.grid) == (theirs.deviation, theirs.grid)
    assert ours.record == theirs.record


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("workers", [None, 2])
def test_means_of_parts_are_those_of_one_array(tmp_path, epsilon, workers):
    for place, part in enumerate(ARRAYS):
        np.save(tmp_path / f"{place}.npy", part)
    price = {"epsilon": epsilon, "delta": 1e-6, "random_state": 5}
    bounds = {"low": [0, -1, 0.25], "high": [1, 2, 0.75]}
    whole = transfer.release_means(X, **bounds, **price)
    for source in (ARRAYS[::-1], tmp_path, [(part, part[:, 0]) for part in ARRAYS]):
        ours = transfer.release_means(Chunks(source, workers=workers), **bounds, **price)
        same_means(ours, whole)


@pytest.mark.parametrize("bits", [False, True])
def test_means_of_tables_in_parts_are_those_of_one_table(tmp_path, bits):
    parts = [FRAME[start:end] for start, end in CUTS]
    paths = [tmp_path / f"{place}.csv" for place in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        part.to_csv(path, index=False)
    settings = {"schema": SCHEMA, "bits": bits, **PRICE, "random_state": 5}
    whole = transfer.release_means(read_frame(FRAME), **settings)
    dicts = [{name: list(part[name]) for name in part} for part in parts]
    for source in (parts, dicts, paths[1:], [read_frame(part) for part in parts[1:]]):
        same_means(transfer.release_means(Chunks(source), **settings), whole)


def test_means_of_files_without_a_schema_have_their_names(tmp_path):
    numbers = FRAME[["age", "y"]]
    for place, (start, end) in enumerate(CUTS):
        numbers[start:end].to_parquet(tmp_path / f"{place}.parquet")
    settings = {"high": [100, 2], **PRICE, "random_state": 5}
    whole = transfer.release_means(numbers, **settings)
    assert whole.names == ("age", "y")
    same_means(transfer.release_means(Chunks(tmp_path), **settings), whole)


def test_means_of_parts_are_charged_once_and_persons_are_refused():
    budget = Budget(1.0, 1e-6)
    chunks = Chunks(ARRAYS)
    for wrong in ({"ids": np.arange(500)}, {"rows_per_person": 2}):
        with pytest.raises(ParameterError, match="ids were passed beside Chunks"):
            transfer.release_means(chunks, budget=budget, **PRICE, **wrong)
    with pytest.raises(ParameterError, match="names = "):
        transfer.release_means(Chunks([FRAME[["age"]], FRAME[["y"]]]), budget=budget, **PRICE)
    assert budget.spent.epsilon == 0
    transfer.release_means(chunks, budget=budget, **PRICE)
    assert budget.spent == (1.0, 1e-6)


def test_shifts_take_means_of_parts():
    means = transfer.release_means(Chunks(ARRAYS), **PRICE)
    target = np.tile(X * [1, 1, 0.1], (8, 1))
    agents = local.Agents(target, np.zeros(len(target), int), epsilon=2.0)
    assert transfer.shifted_columns(means, agents, random_state=1).moved == ("x2",)
