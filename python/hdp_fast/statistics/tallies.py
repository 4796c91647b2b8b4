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
from ..data.goal import check_goal
from ..exceptions import ParameterError, ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .bounded_columns import Groups, keep_rows, read_groups, read_members
from .release_noise import Sensitivity, note_noise, release
from .results import Histogram, TopCategories

# Values that are assigned to bins by one call of numpy.
_PIECE = 1 << 20


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
        A binary search for each record, or a pass for each category.

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
    goal = check_goal(epsilon, delta, neighbors, budget, random_state, confidence)
    if (edges is None) == (categories is None):
        raise ParameterError("edges or categories must be passed, and not both")
    codes, bins = _by_edges(values, edges) if categories is None else _by_key(values, categories)
    members = read_members(by, groups, len(codes))
    goal = goal.of_people(ids, rows_per_person, len(codes))
    codes, members = keep_rows(goal.persons, codes, members)
    known_n = len(codes) if neighbors == "replace_one" else None
    moved = 2 if neighbors == "replace_one" else 1
    width = len(bins) - (categories is None)
    counts = _count_cells(codes, width, members)
    noisy, drawn, record = release(
        counts, Sensitivity(moved, moved), goal, name="histogram", n=known_n, span=1
    )
    half = drawn.half_width(goal.beta)
    if known_n is None and noisy.max() <= drawn.half_width(goal.beta / noisy.size):
        note("no released count of histogram is larger than its noise: a larger epsilon helps")
    most = np.iinfo(np.int64).max if known_n is None else known_n
    low, high = ((noisy + side).clip(0, most) for side in (-half, half))
    results = [
        Histogram(*ends, bins, goal.confidence, record)
        for ends in zip(noisy, low, high, strict=True)
    ]
    return results[0] if members is None else dict(zip(members.keys, results, strict=True))


def _count_cells(codes: Integers, width: int, members: Groups | None) -> Integers:
    """The number of records in each bin of each group, shape (groups, width)."""
    kept = codes >= 0
    if members is None:
        return np.bincount(codes[kept], minlength=width).astype(np.int64)[None]
    kept &= members.codes >= 0
    shape = (len(members.keys), width)
    cells = members.codes[kept] * width + codes[kept]
    return np.bincount(cells, minlength=shape[0] * width).astype(np.int64).reshape(shape)


def _by_edges(values: ArrayLike, edges: Any) -> tuple[Integers, tuple[Any, ...]]:
    ends = _read_edges(edges)
    column = numbers("values", values)
    if column.ndim != 1:
        raise ShapeError(f"values has {column.ndim} dimensions, but it must have one")
    # By pieces: a search of the whole column would hear Ctrl-C only when it is over.
    codes = np.empty(len(column), np.int64)
    for start in range(0, len(column), _PIECE):
        piece = slice(start, start + _PIECE)
        codes[piece] = _find_bins(ends, floats(column[piece]))
    return codes, tuple(ends.tolist())


def _find_bins(ends: Floats, values: Floats) -> Integers:
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


def _by_key(values: ArrayLike, categories: Any) -> tuple[Integers, tuple[Any, ...]]:
    members = read_groups(values, categories, ("values", "categories"))
    return members.codes, members.keys


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
        A pass over the records for each category, and at most k coins for each.

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
    codes, keys = _by_key(values, categories)
    goal = goal.of_people(ids, rows_per_person, len(codes))
    codes = goal.persons.select(codes)
    choices = positive_int("k", k, len(keys))
    sensitivity = choices * goal.persons.rows
    left = np.arange(len(keys))
    counts = np.bincount(codes[codes >= 0], minlength=len(keys)).astype(np.int64)
    one_way = neighbors == "add_remove"
    row_record = PrivacyRecord(
        mechanism=f"statistics.top_k, {choices} of {len(keys)} categories",
        source="McKenna and Sheldon 2020",
        neighbors=neighbors,
        epsilon=goal.epsilon,
        noise="coins of probability exp(-rate (best count - count))",
        rng=rng_of(random_state),
    )
    record = goal.persons.state(row_record)
    rate = float(selection_rate(goal.epsilon, sensitivity, one_way))
    error = math.log(len(keys) * choices / goal.beta) / rate
    if not one_way and error >= len(codes):
        note_noise("top_k", len(codes), goal.epsilon)
    stream, chosen = make_stream(random_state), []
    with spend(budget, record):
        for _ in range(choices):
            # Dividing epsilon by k is the same as multiplying the sensitivity.
            place = noise.permute_and_flip(
                counts[left],
                epsilon=goal.epsilon,
                sensitivity=sensitivity,
                monotonic=one_way,
                neighbors=neighbors,
                random_state=stream,
            )
            chosen.append(keys[left[place]])
            left = np.delete(left, place)
    return TopCategories(tuple(chosen), error, goal.confidence, record)
