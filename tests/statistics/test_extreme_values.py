"""No value of a record causes an error or a warning."""

import warnings

import numpy as np
import pytest
from cases import each_case

from hdp_fast import statistics, transfer
from hdp_fast._support.numbers import scale_to_unit
from hdp_fast.data import Number
from hdp_fast.exceptions import UtilityWarning
from hdp_fast.statistics.bounded_columns import Bounds, read_groups

BEYOND = np.longdouble("1e4000")
# A list, whose entries may be of any size; a column of long doubles is refused by its dtype.
VALUES = [1, BEYOND, -BEYOND, np.nan, np.inf, -np.inf, 5e-324, 0.5]
PRICE = {"epsilon": 1.0}
BOUNDS = {"low": 0, "high": 1, **PRICE}
CALLS = {
    "count": lambda: statistics.count(VALUES, **PRICE),
    "sum": lambda: statistics.sum(VALUES, **BOUNDS),
    "sum, unknown n": lambda: statistics.sum(VALUES, **BOUNDS, neighbors="add_remove"),
    "sum, wide": lambda: statistics.sum(VALUES, low=0, high=1e30, **PRICE, neighbors="add_remove"),
    "mean": lambda: statistics.mean(VALUES, **BOUNDS),
    "variance": lambda: statistics.variance(VALUES, **BOUNDS),
    "covariance": lambda: statistics.covariance([[value, value] for value in VALUES], **BOUNDS),
    "quantiles": lambda: statistics.quantiles(VALUES, [0.5], **BOUNDS),
    "histogram": lambda: statistics.histogram(VALUES, edges=[0, 0.5, 1], **PRICE),
}


@pytest.mark.parametrize("name", CALLS)
def test_extreme_values_neither_raise_nor_warn(name):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        CALLS[name]()


class Hostile:
    def __str__(self):
        raise RuntimeError

    def __eq__(self, other):
        raise RuntimeError

    __hash__ = object.__hash__


ENTRIES = {
    "digits": 10**5000,
    "hostile": Hostile(),
    "surrogate": "\ud800",
    "bytes": b"\xff",
    "none": None,
    "long": "x" * 10**6,
}


@pytest.mark.parametrize("name", ENTRIES)
def test_objects_of_any_kind_are_in_no_group_and_change_none(name):
    entry = ENTRIES[name]
    objects = np.array([*["a", "b"] * 1000, entry], object)
    groups = read_groups(objects, ["a", "b"], ("by", "groups"))
    assert groups.codes.tolist() == [0, 1] * 1000 + [-1]
    statistics.histogram(objects, categories=["a", "b"], **PRICE)
    statistics.top_k(objects, 1, categories=["a", "b"], **PRICE)


def test_objects_are_compared_with_keys_as_texts():
    groups = read_groups(np.array([1, "1", 2.0, None], object), [1, "2.0"], ("by", "groups"))
    assert groups.codes.tolist() == [0, 0, 1, -1]


# Bounds one subnormal apart ----------------------------------------------------------------------

LEAST = 5e-324
NARROW = [(0.0, LEAST), (3 * LEAST, 4 * LEAST), (-LEAST, 0.0), (-LEAST, LEAST), (0.0, 2 * LEAST)]
WIDE = [(-1e308, 1e308), (-1.7e308, 1.7e308), (0.0, 1.7e308), (1.0, 1.0 + 2**-52), (-LEAST, 1.0)]


@pytest.mark.parametrize(("low", "high"), NARROW + WIDE)
def test_values_within_any_bounds_lie_in_the_unit_interval_and_rise(low, high):
    """The ends are 0 and 1, and NaN is the lower one."""
    ends = np.array([low]), np.array([high])
    inside = np.linspace(0, 1, 9) if abs(high) < 1e300 else np.array([0.0, 1.0])
    between = np.unique(low * (1 - inside) + high * inside)
    with np.errstate(all="raise"):
        scaled = scale_to_unit(np.array([-np.inf, *between, np.inf, np.nan])[:, None], *ends)
        grid = Bounds(*ends).round(np.array([[high], [low], [np.nan]]), 1 << 20)
        within = (
            Number(low, high, (high,))._scale(ColumnOf([low, high])) if high - low < 1e308 else None
        )
    scaled = scaled[:, 0]
    assert scaled[0] == scaled[-1] == 0
    assert scaled[-2] == 1
    assert (np.diff(scaled[:-1]) >= 0).all()
    assert grid[:, 0].tolist() == [1 << 20, 0, 0]
    assert within is None or within.tolist() == [0, 1]


class ColumnOf:
    def __init__(self, values):
        self.values = np.array(values)

    def row_numbers(self):
        return self.values


SUBNORMAL = {
    "sum": statistics.sum,
    "mean": statistics.mean,
    "variance": statistics.variance,
    "covariance": lambda values, **more: statistics.covariance(np.array(values)[:, None], **more),
    "quantiles": lambda values, **more: statistics.quantiles(values, [0.5], **more),
}


@each_case("neighbors", ["replace_one", "add_remove"])
@each_case("name", SUBNORMAL)
@each_case(("low", "high"), NARROW)
def test_statistics_bear_bounds_that_are_next_to_each_other(name, low, high, neighbors):
    for values in ([low] * 50, [low] * 49 + [1.0], [low] * 49 + [np.nan]):
        SUBNORMAL[name](values, low=low, high=high, epsilon=1.0, neighbors=neighbors)


@pytest.mark.parametrize(("low", "high"), NARROW)
def test_means_move_by_a_record_of_the_sum_within_bounds_next_to_each_other(low, high):
    """Without noise the mean of fifty records is the share of those above."""
    rows = [[low]] * 49 + [[1.0]]
    means = transfer.release_means(rows, epsilon=np.inf, delta=None, low=low, high=high).means
    assert means.tolist() == [pytest.approx(0.02)]
