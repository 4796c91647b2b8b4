"""A result that is no better than a constant comes with a warning, before it is paid for."""

import warnings

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, statistics, transfer
from hdp_fast.exceptions import UtilityWarning

BOUNDS = {"low": 0.0, "high": 1.0}
CALLS = {
    "count": lambda x, **price: statistics.count(x > 0.4, **price),
    "sum": lambda x, **price: statistics.sum(x, **BOUNDS, **price),
    "mean": lambda x, **price: statistics.mean(x, **BOUNDS, **price),
    "variance": lambda x, **price: statistics.variance(x, **BOUNDS, **price),
    "covariance": lambda x, **price: statistics.covariance(x[:, None], **BOUNDS, **price),
    "histogram": lambda x, **price: statistics.histogram(x, edges=[0, 0.5, 1], **price),
    "quantiles": lambda x, **price: statistics.quantiles(x, 0.5, **BOUNDS, **price),
    "top_k": lambda x, **price: statistics.top_k(x > 0.4, 1, categories=[False, True], **price),
}
# Without a public number, choices show nothing of what their error is compared with.
AFTERWARDS = [name for name in CALLS if name not in ("quantiles", "top_k")]
VALUES = np.linspace(0, 1, 50)


@pytest.mark.parametrize("name", CALLS)
def test_a_public_number_of_records_warns_before_anything_is_spent(name):
    budget = Budget(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match=f"{name} at epsilon = 0.001 hides .* n = 50 show"):
            CALLS[name](VALUES, epsilon=1e-3, budget=budget)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("name", AFTERWARDS)
def test_released_numbers_warn_where_that_of_records_is_private(name):
    with pytest.warns(UtilityWarning, match="a larger epsilon helps"):
        CALLS[name](VALUES, epsilon=1e-3, neighbors="add_remove", random_state=1)


@each_case("relation", ["replace_one", "add_remove"])
@each_case("name", CALLS)
def test_good_results_come_without_a_word(name, relation):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        CALLS[name](np.tile(VALUES, 100), epsilon=1.0, neighbors=relation, random_state=0)


def test_small_groups_are_named_by_their_number():
    keys = np.repeat(["a", "b"], [5_000, 2])
    options = {"by": keys, "groups": ["a", "b", "c"], "epsilon": 0.1, "random_state": 1}
    with pytest.warns(UtilityWarning, match="2 of 3 released values of mean"):
        statistics.mean(np.ones(5_002), **BOUNDS, **options)


def test_means_of_columns_warn_as_well():
    budget = Budget(1.0, delta=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match="release_means at epsilon"):
            transfer.release_means(VALUES[:, None], epsilon=0.01, delta=1e-4, budget=budget)
    assert budget.spent.epsilon == 0


def test_quantiles_whose_error_may_be_any_rank_say_so():
    """Where noise does not hide all, but the promise is empty: ranks up to n are within it."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UtilityWarning)
        released = statistics.quantiles(
            VALUES, (0.25, 0.5, 0.75), epsilon=1.0, random_state=1, **BOUNDS
        )
    assert released.rank_error >= 0.75 * len(VALUES)
    assert len(notes) == 1
    assert "they may be off by any rank, though as a rule by fewer" in str(notes[0].message)
