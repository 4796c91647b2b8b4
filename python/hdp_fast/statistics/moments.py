"""Counts, sums, means and variances of private columns: exact integer sums with noise."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from .._support.notes import keep_result
from .._support.types import RandomState
from ..budget.account import Budget, Neighbors
from ..data.goal import check_goal
from .moment_sums import (
    Released,
    make_count,
    make_mean,
    make_sum,
    make_variance,
    read_private_columns,
    release_moment,
)


@keep_result
def count(
    values: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    sampled: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Released:
    """Counts the records that show something, privately.

    Each entry counts 1 where it is neither 0 nor NaN. Counts of true conditions are released with
    noise. They are unbiased, and may be negative.

    Args:
        values: Records, shape (n,) of bools or numbers; or columns as an array (n, d), a frame or a
            dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        sampled: Whether results also have intervals, wider ones, for the number that is expected of
            as many records of the population that these are an independent sample of; with ids, one
            row a person.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. One record moves one count by 1. With groups,
        replacing a record moves two of them.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Ghosh, Roughgarden and Sundararajan 2009; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> ages = np.arange(10_000) % 80
        >>> adults = statistics.count(ages >= 18, epsilon=1.0)
        >>> abs(adults.value - 7750) < 30
        True
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    owners = (ids, rows_per_person)
    records = read_private_columns(values, by, groups, goal, (0, 1), owners)
    return release_moment("count", make_count, records, goal)


@keep_result
def sum(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    sampled: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Released:
    """Sums private values between public bounds.

    Values are clipped to the bounds and rounded to a grid of at least `2**20` steps; NaN counts as
    the lower bound. The sum is unbiased for these values, and so is what the interval covers.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        sampled: Whether results also have intervals, wider ones, for the population that the
            records are an independent sample of; with ids, one row a person. It allows for every
            population between the bounds, and needs a public number of records.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. Where the number of records is public, a
        record moves the sum by at most high - low, else by the larger of |low| and |high|. With
        groups, replacing a record moves two sums by as much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Dwork et al. 2006; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> hours = np.full(10_000, 7.5)
        >>> total = statistics.sum(hours, low=0, high=24, epsilon=1.0)
        >>> abs(total.value - 75_000) < 24 * 30
        True
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    owners = (ids, rows_per_person)
    records = read_private_columns(values, by, groups, goal, (low, high), owners)
    return release_moment("sum", make_sum, records, goal)


@keep_result
def mean(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    sampled: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Released:
    """Averages private values between public bounds.

    Values are clipped to the bounds; NaN counts as the lower bound. Where the number of records is
    public, their sum is released. Else two sums are released, of the distances from the lower bound
    and of those from the upper one. Together they are the number of records, and cost no more than
    one of them. The mean is clipped to the bounds.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        sampled: Whether results also have intervals, wider ones, for the population that the
            records are an independent sample of; with ids, one row a person. They allow for every
            population between the bounds, and are wide where values are near each other.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. A record adds two parts that together are 1,
        which is the sensitivity of both; with groups, replacing a record moves twice as much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Kulesza, Suresh and Wang 2024 for the two sums; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> table = {"age": np.arange(10_000) % 80, "hours": np.full(10_000, 7.5)}
        >>> means = statistics.mean(table, low=0, high={"age": 100, "hours": 24}, epsilon=1.0)
        >>> abs(means["age"].value - 39.5) < 2, abs(means["hours"].value - 7.5) < 0.5
        (True, True)
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    owners = (ids, rows_per_person)
    records = read_private_columns(values, by, groups, goal, (low, high), owners)
    return release_moment("mean", make_mean, records, goal)


@keep_result
def variance(
    values: Any,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float | None = None,
    neighbors: Neighbors = "replace_one",
    by: ArrayLike | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    sampled: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Released:
    """Computes the variance of private values between public bounds.

    It is the mean squared distance of clipped values from their mean (division by n); NaN counts as
    the lower bound. Where the number of records is public, noise is added to n times the variance
    itself. Else, for values u that are scaled to [0, 1], the sums of `u**2`, 2 u (1 - u) and
    `(1 - u)**2` are released, which add up to the number of records. The variance is m (1 - m)
    minus the mean of u (1 - u), with m the mean of u, scaled back and clipped to what the bounds
    allow. The grid has `2**15` steps.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
            Their dtype is public, and so is that of the array which numpy makes of a list.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of each interval alone, in (0, 1).
        sampled: Whether results also have intervals, wider ones, for the population that the
            records are an independent sample of; with ids, one row a person.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A Statistic for a vector, a dict of them by column for columns. With groups, a dict of these
            by key.

    Raises:
        ShapeError: values has no column or more than two dimensions, `by` has another length, or
            the number of records is public and 0.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP, and pure epsilon-DP where the record states delta 0. It holds for the
        whole call, all columns and groups together, and is exact: what is added up are integers,
        and noise is drawn from its law exactly. `n**2` times the variance of values in [0, 1] is
        the sum of the squared distances of all pairs, n - 1 of which move with a record, by at most
        1. The three parts of a record add up to 1; with groups, replacing a record moves twice as
        much.
        No value of a record causes an error or a warning.

    Cost:
        A pass over the records.

    Source:
        Kulesza, Suresh and Wang 2024 for parts that add up to 1; Balle and Wang 2018 for normal
        noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> answers = np.arange(100_000) % 2
        >>> spread = statistics.variance(answers, low=0, high=1, epsilon=1.0)
        >>> abs(spread.value - 0.25) < 0.01
        True
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    owners = (ids, rows_per_person)
    records = read_private_columns(values, by, groups, goal, (low, high), owners)
    return release_moment("variance", make_variance, records, goal)
