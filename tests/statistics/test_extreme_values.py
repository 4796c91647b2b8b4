"""No value of a record causes an error or a warning."""

import warnings

import numpy as np
import pytest

from hdp_fast import statistics
from hdp_fast.exceptions import UtilityWarning
from hdp_fast.statistics.bounded_columns import read_groups

BEYOND = np.longdouble("1e4000")
VALUES = np.array([1, BEYOND, -BEYOND, np.nan, np.inf, -np.inf, 5e-324, 0.5], np.longdouble)
PRICE = {"epsilon": 1.0}
BOUNDS = {"low": 0, "high": 1, **PRICE}
CALLS = {
    "count": lambda: statistics.count(VALUES, **PRICE),
    "sum": lambda: statistics.sum(VALUES, **BOUNDS),
    "sum, unknown n": lambda: statistics.sum(VALUES, **BOUNDS, neighbors="add_remove"),
    "sum, wide": lambda: statistics.sum(VALUES, low=0, high=1e30, **PRICE, neighbors="add_remove"),
    "mean": lambda: statistics.mean(VALUES, **BOUNDS),
    "variance": lambda: statistics.variance(VALUES, **BOUNDS),
    "covariance": lambda: statistics.covariance(np.stack([VALUES, VALUES], 1), **BOUNDS),
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
