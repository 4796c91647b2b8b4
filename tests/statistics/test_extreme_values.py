"""No value of a record causes an error or a warning."""

import warnings

import numpy as np
import pytest

from hdp_fast import statistics
from hdp_fast.exceptions import UtilityWarning

BEYOND = np.longdouble("1e4000")
VALUES = np.array([1, BEYOND, -BEYOND, np.nan, np.inf, -np.inf, 5e-324, 0.5], np.longdouble)
PRICE = {"epsilon": 1.0}
BOUNDS = {"low": 0, "high": 1, **PRICE}
CALLS = {
    "count": lambda: statistics.count(VALUES, **PRICE),
    "sum": lambda: statistics.sum(VALUES, **BOUNDS),
    "sum, unknown n": lambda: statistics.sum(VALUES, **BOUNDS, neighbors="add_remove"),
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
