"""Rows of known norm: the bytes that schemas and bounds make of records, and the way back."""

import hashlib
import itertools
import math

import numpy as np
import pytest

from hdp_fast.adaptation import ScaledFeatures
from hdp_fast.data import Category, Ignore, Label, Number, Schema, read_frame, rows
from hdp_fast.data.rows import Rows, Squares, check_bounds

COLUMNS = {
    "age": Number(18, 90, missing=40),
    "sex": Category(("f", "m"), missing="m"),
    "place": Ignore(),
    "far": Number(-8e306, 8e306),
    "town": Category(("a", "b", "c")),
    "pay": Number(1e-3, 7e5, (10, 1e3)),
}
SCHEMA = Schema(Label("spent", bounds=(0, 10)), COLUMNS)
BOUNDS = [(0, 1), (-8e306, 8e306), (5, 5.5), (0, 1e-310), (1e-3, 7e5)]
N = 10_000


def mixed_table():
    """Every kind of cell, more rows than a block has; nothing of it is rounded by a library."""
    places = np.arange(N)
    return read_frame(
        {
            "age": [None if place % 11 == 0 else place % 120 - 7 for place in places.tolist()],
            "sex": [("f", "m", "x", None)[place % 4] for place in places.tolist()],
            "far": [(place % 21 - 10) * 1e306 for place in places.tolist()],
            "town": [("a", "b", "c", "d", "")[place % 5] for place in places.tolist()],
            "pay": [None if place % 7 == 0 else place**2 / 64 for place in places.tolist()],
        }
    )


def numbers():
    """The same for columns of numbers."""
    places = np.arange(N)
    steps = (places % 97 - 20) / 64
    records = np.column_stack([steps, steps * 1e307, 5 + steps / 2, steps * 1e-310, places**2 / 64])
    records[::13], records[1], records[2] = math.nan, math.inf, -math.inf
    return records


def scales(columns, is_number):
    """A center, a factor and squares whose numbers are binary fractions."""
    places, count = np.arange(columns), int(is_number.sum())
    factor = np.where(is_number, 1 + places / 8, 1.0)
    squares = Squares(*(np.arange(1, count + 1) / part for part in (16, 4, 2)))
    return {"center": (places + 1) / 32, "factor": factor, "squares": squares}


def digest(*arrays):
    """Shapes, types and bytes."""
    whole = hashlib.sha256()
    for values in arrays:
        whole.update(str((values.dtype.str, values.shape)).encode() + values.tobytes())
    return whole.hexdigest()[:16]


def made_rows(make=Rows.__call__):
    """Rows by what they are made of."""
    table, records = mixed_table(), numbers()
    for name, plain, given in (
        ("schema", Rows(SCHEMA), table),
        ("bits", Rows(SCHEMA, bits=True), table),
        ("bounds", Rows.within(BOUNDS, 5), records),
    ):
        yield f"{name}, plain", make(plain, given)
        parts = scales(len(plain.names), plain.is_number)
        if name == "bits":
            parts = {"center": parts["center"]}
        yield f"{name}, centered", make(Rows(plain.source, plain.bits, **parts), given)
    yield "scaled features", ScaledFeatures(SCHEMA).rows(table)


# What the code of six classes made of the same records before they became one.
DIGESTS = {
    "schema, plain": "08d415a76be4f47b",
    "schema, centered": "6bbb98aace2ed292",
    "bits, plain": "4734f0f5b786b005",
    "bits, centered": "2936463b7e2ee726",
    "bounds, plain": "91f3b1a5ef280abd",
    "bounds, centered": "aa2037b7318c7745",
    "scaled features": "dddb9cd13a6a1774",
}


def test_rows_have_the_bytes_that_they_always_had():
    assert {name: digest(values) for name, values in made_rows()} == DIGESTS


@pytest.mark.parametrize("size", [7, 4096, N - 1, 1 << 20])
def test_rows_are_the_same_in_blocks_of_any_size(size, monkeypatch):
    monkeypatch.setattr(rows, "_BLOCK", size)
    assert {name: digest(values) for name, values in made_rows()} == DIGESTS


@pytest.mark.parametrize("size", [1000, N - 1, 1 << 20])
def test_rows_in_blocks_are_the_rows_of_all_records(size, monkeypatch):
    monkeypatch.setattr(rows, "_BLOCK", size)
    monkeypatch.setattr(rows, "_BLOCK_CELLS", 1)
    whole = dict(made_rows(lambda unit, given: np.concatenate(list(unit.blocks(given)))))
    assert {name: digest(values) for name, values in whole.items()} == DIGESTS
    (nothing,) = Rows(SCHEMA).blocks(mixed_table().select(slice(0)))
    assert nothing.shape == (0, 8)


def test_the_squared_distance_is_that_of_the_worst_pair_of_records():
    """All pairs of records whose cells lie at the ends of what they can be."""
    columns = {name: kind for name, kind in COLUMNS.items() if name in ("age", "town", "pay")}
    schema = Schema(SCHEMA.label, columns | {"one": Category(("a",))})
    cells = itertools.product((18, 90), ("a", "b", None), (0, 7e5), ("a", None))
    table = dict(zip(("age", "town", "pay", "one"), zip(*cells, strict=True), strict=True))
    for bits in (False, True):
        plain = Rows(schema, bits)
        made = plain.plain(table).astype(float)
        worst = max(float(((made - row) ** 2).sum(axis=1).max()) for row in made)
        assert plain.squared_distance() == worst
    assert Rows.within((0, 1), 3).squared_distance() == 3
    assert Rows(schema).squared_distance(4) == 2 * 4 + 2 + 1


def test_weights_of_rows_come_back_in_the_units_of_the_table():
    """A prediction by the table's own numbers is that by its rows, with a factor and without."""
    table = {"age": [20, 64], "sex": ["f", "x"], "far": [0, 0], "town": ["c", "b"], "pay": [9, 2e5]}
    parts = scales(8, Rows(SCHEMA).is_number)
    weights = np.linspace(-1, 2, 9)
    for factor in (None, parts["factor"]):
        made = Rows(SCHEMA, center=parts["center"], factor=factor)
        intercept, coefficients = made.to_units(weights)
        scores = [
            intercept
            + sum(coefficients[name] * table[name][place] for name in ("age", "pay"))
            + coefficients["far"] * table["far"][place]
            + coefficients.get(f"sex={table['sex'][place]}", 0)
            + coefficients[f"town={table['town'][place]}"]
            for place in range(2)
        ]
        assert made.plain(table).shape == (2, 8)
        assert scores == pytest.approx((made.scale(made.plain(table)) @ weights).tolist())


def test_the_norm_bounds_the_mean_square_of_rows_around_their_means():
    table = mixed_table()
    for bits in (False, True):
        plain = Rows(SCHEMA, bits).plain(table)
        around = Rows(SCHEMA, bits, center=plain.mean(axis=0))
        mean = float((around(table) ** 2).sum(axis=1).mean())
        assert math.sqrt(mean) <= around.norm * (1 + 1e-12)
    # Bits vary by no less than the bound says.
    assert math.sqrt(mean) == pytest.approx(around.norm)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 127, 128, 129, 5000])
def test_points_of_a_grid_are_those_of_the_scaled_values(length, order):
    low, high = [0.0, -1e308, 1e-320, -3.0], [1.0, 1.7e308, 3e-320, 5.0]
    rng = np.random.default_rng(length)
    odd = [math.nan, math.inf, -math.inf, -0.0, 0.5, 2e-320, 1e308, -1e-310, 1.0, 5e-324]
    values = np.where(
        rng.random((length, 4)) < 0.3, rng.choice(odd, (length, 4)), rng.normal(size=(length, 4))
    )
    bounds = check_bounds(low, high, 4)
    for steps in (1, 2, 3, 1000, 1 << 20, 1 << 26):
        points = bounds.round(np.array(values, order=order), steps)
        assert points.dtype == np.int64
        np.testing.assert_array_equal(points, np.rint(bounds.scale(values) * steps))
    # Whatever type a column has, it is read as floats first.
    for dtype in (np.float32, np.int8, bool):
        typed = (values > 0.3).astype(dtype)[::-1]
        expected = np.rint(bounds.scale(typed) * 9)
        np.testing.assert_array_equal(bounds.round(typed, 9), expected)
