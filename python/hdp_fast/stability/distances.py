"""Winners of votes and their distances to instability; these protect nobody."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.types import Integers
from .._support.validate import nonnegative_int, positive_int
from .votes import counts_of, votes_of


def distance(counts: ArrayLike) -> int | Integers:
    """How many votes must be replaced before replacing one more can change the winner.

    counts: votes for each label of the whole public label set, labels without votes included,
    integers (K,) or (m, K) for m queries at once, below 2**32 each. Returns an int or int64 (m,);
    2**32 - 1 where K = 1. Ties go to the smallest label.

    Changes by at most 1 when one vote is replaced, and is 0 on both sides if the winner changes.
    The gap of the two largest counts less 1, as the paper has it, changes by up to 2. Not private.

    Raises: ShapeError, ParameterError.
    Cost: one pass over the counts.
    Source: Bassily, Thakkar and Thakurta 2018, Definition 3.1, in closed form: the minimum over
        r != t of floor((ct(t) - ct(r) - 1 + [t < r]) / 2), t the winner.
    """
    return _find_winners(counts)[1]


def plurality(counts: ArrayLike) -> int | Integers:
    """The label with the most votes, ties to the smallest label.

    counts: as for distance. Returns an int or int64 (m,). Not private.

    Raises: ShapeError, ParameterError.
    Cost: one pass over the counts.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 4.
    """
    return _find_winners(counts)[0]


def count_votes(votes: ArrayLike, labels: int, *, threads: int | None = None) -> NDArray[np.uint32]:
    """Votes for each label on each query.

    votes: uint8 (k, m), what each of k members says to each of m queries. labels: their number, 1
    to 256. threads: None uses all. Returns uint32 (m, labels). A vote that is no label counts as
    one for label 0, the fixed public vote of a member that failed: an error would name it. Not
    private.

    Raises: ShapeError, ParameterError.
    Cost: one pass over the votes for up to ten labels, on two threads and with AVX2; about as long
        again for each ten more.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 4, step 4.
    """
    size = positive_int("labels", labels, 256)
    ballots = votes_of(votes)
    workers = None if threads is None else nonnegative_int("threads", threads)
    queries = ballots.shape[1]
    return _core.count_votes(ballots.reshape(-1), queries, size, workers).reshape(queries, size)


def _find_winners(counts: ArrayLike) -> tuple[int | Integers, int | Integers]:
    """The winners of votes and their distances to instability."""
    votes = counts_of(counts)
    winners, distances = _core.pluralities(votes.reshape(-1), votes.shape[-1])
    if votes.ndim == 1:
        return int(winners[0]), int(distances[0])
    return winners, distances
