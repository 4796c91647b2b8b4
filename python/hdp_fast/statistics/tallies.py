"""Histograms of private columns, and their most frequent categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import noise
from .._support.notes import keep_result, note
from .._support.numbers import floats
from .._support.random_state import make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import numbers, positive_int
from ..budget.account import Budget, Neighbors, spend
from ..data.goal import Goal, check_goal
from ..data.persons import Persons
from ..exceptions import ParameterError, ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .bounded_columns import CodedColumn, Groups, blocks_of_cells, read_keyed, read_members
from .release_noise import KnownRange, Noise, Sensitivity, note_noise, release
from .results import Histogram, TopCategories
from .sampling import bound_counts, check_sample, split_failure

# To compare with so many edges one by one takes less time than a binary search.
_FEW_EDGES = 16


@keep_result
def histogram(
    values: ArrayLike,
    *,
    edges: ArrayLike | None = None,
    categories: Sequence[Any] | None = None,
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
) -> Histogram | dict[Any, Histogram]:
    """Counts the records of every bin or category, privately.

    A number is in the bin between two edges; one that equals an edge is in the bin above it.
    Numbers beyond the edges are counted in the first or the last bin, and NaN in the first. A value
    that is none of the categories is counted nowhere.

    Args:
        values: One column, shape (n,).
            The dtype is public, and so is that of the array which numpy makes of a list.
        edges: Public edges of k bins, k + 1 increasing finite numbers.
        categories: Public list of k different values, in place of edges. Values of dtype object are
            compared as texts.
        epsilon: Privacy parameter, finite and above 0.
        delta: Privacy parameter in (0, 1), which allows normal noise where that is smaller; None
            takes discrete Laplace noise, which is pure.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        by: The group of each record, shape (n,); None makes no groups. Values of dtype object are
            compared as texts. A record whose group is none of `groups` is left out.
        groups: The public keys of the groups; only with `by`.
        confidence: Probability of the interval of each count alone, in (0, 1).
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
        All k counts, those of empty bins too. With groups, a dict of such histograms by key.

    Raises:
        ShapeError: values is no vector, or `by` has another length.
        ParameterError: values has no dtype of numbers though edges are passed, not exactly one of
            edges and categories is passed, or an argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.

    Guarantee:
        (epsilon, delta)-DP for all counts together, and pure epsilon-DP where the record states
        delta 0; exact. Under "add_remove" one count moves by 1, under "replace_one" two do. Groups
        change nothing in this: a record is in one bin of one group. No value of a record causes an
        error or a warning.

    Cost:
        A binary search for each record; in objects a lookup.

    Source:
        Dwork et al. 2006; Balle and Wang 2018 for normal noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> ages = np.arange(10_000) % 80
        >>> released = statistics.histogram(ages, edges=[0, 18, 65, 120], epsilon=1.0)
        >>> bool(abs(released.value - [2250, 5875, 1875]).max() < 60)
        True
    """
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence, sampled)
    column, bins = read_bins(values, edges, categories)
    members = read_members(by, groups, column.n)
    goal = goal.of_people(ids, rows_per_person, column.n)
    column, members = _keep_entries(goal.persons, column, members)
    width = len(bins) - (categories is None)
    counts = count_cells(column, width, members)
    keys = None if members is None else members.keys
    return release_counts(counts, bins, keys, goal, n=column.n)


def release_counts(
    counts: Integers, bins: tuple[Any, ...], keys: tuple[Any, ...] | None, goal: Goal, *, n: int
) -> Histogram | dict[Any, Histogram]:
    """The histogram, or one for each group, of the summed counts of all parts.

    counts: what `count_cells` makes, shape (groups, k), with one group where there are none.
    n: the number of records, which is released under "replace_one" alone.
    """
    check_sample(goal)
    known_n = n if goal.neighbors == "replace_one" else None
    moved = 2 if goal.neighbors == "replace_one" else 1
    noisy, drawn, record = release(
        counts, Sensitivity(moved, moved), goal, name="histogram", n=known_n, span=1
    )
    half = drawn.half_width(goal.beta)
    if known_n is None and noisy.max() <= drawn.half_width(goal.beta / noisy.size):
        note("no released count of histogram is larger than its noise: a larger epsilon helps")
    most = np.iinfo(np.int64).max if known_n is None else known_n
    low, high = ((noisy + side).clip(0, most) for side in (-half, half))
    beyond: list[Any] = [(None, None)] * len(noisy)
    if goal.sampled:
        beyond = sample_counts(noisy, drawn, goal, known_n)
    noise = None
    if known_n and keys is None and goal.persons.rows == 1:
        noise = drawn.describe(1 / known_n, 0.0, KnownRange(known_n, 0.0, 1.0))
    results = [
        Histogram(one, *ends, bins, goal.confidence, record, more[0], more[1], noise)
        for one, ends, more in zip(noisy, zip(low, high, strict=True), beyond, strict=True)
    ]
    return results[0] if keys is None else dict(zip(keys, results, strict=True))


def sample_counts(
    noisy: Integers, drawn: Noise, goal: Goal, n: int | None
) -> list[tuple[Floats, Floats]]:
    """Ends of intervals for what is expected of the population, for each row of noisy counts.

    n: how many records they are of; None where it is private.
    """
    of_noise, of_sampling = split_failure(goal.beta, drawn.half_width, n)
    half = drawn.half_width(of_noise)
    return list(zip(*bound_counts(noisy - half, noisy + half, n, of_sampling), strict=True))


def _keep_entries(
    persons: Persons, column: CodedColumn, members: Groups | None
) -> tuple[CodedColumn, Groups | None]:
    """The entries that are used, and their groups."""
    if persons.keeps_all:
        return column, members
    codes: Integers = persons.select(column.find_all())
    kept = None if members is None else Groups(members.keys, persons.select(members.codes))
    return CodedColumn(len(codes), codes.__getitem__), kept


def count_cells(column: CodedColumn, width: int, members: Groups | None = None) -> Integers:
    """The number of records of a part in each bin of each group, shape (groups, width)."""
    shape = (1 if members is None else len(members.keys), width)
    total = np.zeros(shape[0] * width, np.int64)
    if members is None and column.count_all is not None:
        for block in blocks_of_cells(column.n, 1):
            total += column.count_all(block)
        return total.reshape(shape)
    for block in blocks_of_cells(column.n, 1):
        cells = column.find(block)
        kept = cells >= 0
        if members is not None:
            codes = members.codes[block]
            kept &= codes >= 0
            cells = codes * width + cells
        total += np.bincount(cells if kept.all() else cells[kept], minlength=len(total))
    return total.reshape(shape)


def read_bins(values: Any, edges: Any, categories: Any) -> tuple[CodedColumn, tuple[Any, ...]]:
    """The bins of the entries of a column, by edges or by categories, and what the bins are.

    Raises: ParameterError unless one of both is passed; ShapeError unless values is a vector.
    """
    if (edges is None) == (categories is None):
        raise ParameterError("edges or categories must be passed, and not both")
    return _by_edges(values, edges) if categories is None else _by_key(values, categories)


def _by_edges(values: ArrayLike, edges: Any) -> tuple[CodedColumn, tuple[Any, ...]]:
    ends = _read_edges(edges)
    column = numbers("values", values)
    if column.ndim != 1:
        raise ShapeError(f"values has {column.ndim} dimensions, but it must have one")
    bins = tuple(ends.tolist())
    found = CodedColumn(len(column), lambda block: _find_bins(ends, floats(column[block])))
    if len(ends) <= _FEW_EDGES:
        found = found._replace(count_all=lambda block: _count_bins(bins, floats(column[block])))
    return found, bins


def _count_bins(bins: tuple[float, ...], values: Floats) -> Integers:
    """How many values are in each of few bins: those from an edge on, less those from the next."""
    inner = [np.count_nonzero(values >= edge) for edge in bins[1:-1]]
    reached = np.array([len(values), *inner, 0], np.int64)
    return reached[:-1] - reached[1:]


def _find_bins(ends: Floats, values: Floats) -> Integers:
    if len(ends) <= _FEW_EDGES:
        # How many inner edges are at or below a value; none is where it is NaN.
        places = np.zeros(len(values), np.int64)
        for edge in ends[1:-1]:
            places += values >= edge
        return places
    filled = np.where(np.isnan(values), ends[0], values)
    return (np.searchsorted(ends, filled, side="right") - 1).clip(0, len(ends) - 2)


def _read_edges(edges: Any) -> Floats:
    ends: Floats = np.asarray(numbers("edges", edges), np.float64)
    if (
        ends.ndim != 1
        or len(ends) < 2
        or not np.isfinite(ends).all()
        or (ends[1:] <= ends[:-1]).any()
    ):
        raise ParameterError("edges must be two or more finite numbers in increasing order")
    return ends


def _by_key(values: ArrayLike, categories: Any) -> tuple[CodedColumn, tuple[Any, ...]]:
    keys, column = read_keyed(values, categories, ("values", "categories"))
    return column, keys


@keep_result
def top_k(
    values: ArrayLike,
    k: int,
    *,
    categories: Sequence[Any],
    epsilon: float,
    neighbors: Neighbors = "replace_one",
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> TopCategories:
    """Chooses the k most frequent categories, privately, the most frequent first.

    Permute-and-flip chooses one category after the other, each with epsilon / k. Their counts are
    not released; `histogram` does that.

    Args:
        values: One column, shape (n,). A value that is none of the categories is counted nowhere.
        k: How many categories to choose, from 1 to their number.
        categories: Public list of different values. Values of dtype object are compared as texts.
        epsilon: Privacy parameter of all choices together, finite and above 0.
        neighbors: "replace_one" or "add_remove". Under the latter one record moves counts in one
            direction only, which halves the error.
        confidence: Probability of the statement about the error, in (0, 1).
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The chosen categories, and how far their counts are from the best at most.

    Raises:
        ShapeError: values is no vector.
        ParameterError: An argument is out of range.
        BudgetExceeded: The budget has less than epsilon left.

    Guarantee:
        Pure epsilon-DP for `neighbors`, exact. No value of a record causes an error or a warning.
        The running time depends on the counts.

    Cost:
        A pass over the records, and at most k coins for each category.

    Source:
        McKenna and Sheldon 2020 for each choice; basic composition, Dwork et al. 2006.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> fruit = np.array(["apple", "pear", "apple", "plum"] * 1000 + ["pear"] * 500)
        >>> best = statistics.top_k(fruit, 2, categories=["apple", "pear", "plum"], epsilon=2.0)
        >>> best.value
        ('apple', 'pear')
    """
    goal = check_goal(epsilon, None, neighbors, budget, random_state, confidence)
    column, keys = _by_key(values, categories)
    goal = goal.of_people(ids, rows_per_person, column.n)
    column, _ = _keep_entries(goal.persons, column, None)
    choices = positive_int("k", k, len(keys))
    counts = count_cells(column, len(keys))[0]
    return choose_largest(counts, keys, choices, goal, n=column.n)


def choose_largest(
    counts: Integers, keys: tuple[Any, ...], choices: int, goal: Goal, *, n: int
) -> TopCategories:
    """The most frequent categories by the summed counts of all parts.

    n: the number of records, which may be told under "replace_one" alone.
    """
    sensitivity = choices * goal.persons.rows
    left = np.arange(len(keys))
    one_way = goal.neighbors == "add_remove"
    row_record = PrivacyRecord(
        mechanism=f"statistics.top_k, {choices} of {len(keys)} categories",
        source="McKenna and Sheldon 2020",
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        noise="coins of probability exp(-rate (best count - count))",
        rng=rng_of(goal.random_state),
    )
    record = goal.persons.state(row_record)
    rate = float(selection_rate(goal.epsilon, sensitivity, one_way))
    error = math.log(len(keys) * choices / goal.beta) / rate
    if not one_way and error >= n:
        note_noise("top_k", n, goal.epsilon)
    stream, chosen = make_stream(goal.random_state), []
    with spend(goal.budget, record):
        for _ in range(choices):
            # Dividing epsilon by k is the same as multiplying the sensitivity.
            place = noise.permute_and_flip(
                counts[left],
                epsilon=goal.epsilon,
                sensitivity=sensitivity,
                monotonic=one_way,
                neighbors=goal.neighbors,
                random_state=stream,
            )
            chosen.append(keys[left[place]])
            left = np.delete(left, place)
    return TopCategories(tuple(chosen), error, goal.confidence, record)
