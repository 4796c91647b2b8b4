"""Winners of votes and their distances to instability. Nothing here is private by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.types import Integers
from .._support.validate import nonnegative_int, positive_int
from .votes import counts_of, votes_of


def distance(counts: ArrayLike) -> int | Integers:
    """Counts the votes that must be replaced before replacing one more can change the winner.

    The distance changes by at most 1 when one vote is replaced, and it is 0 on both sides where
    that vote changes the winner. A mechanism that answers with the winner needs both facts. The
    paper's Algorithm 4 uses the gap of the two largest counts less 1 instead, which changes by up
    to 2.

    The distance is not private: whoever releases it, or acts on it, needs a mechanism such as
    HazardTable or StableRelease.

    Args:
        counts: Number of votes for each label of the public label set, labels without votes
            included. Integers of shape (K,), or (m, K) for m queries at once, each below `2**32`.
            Ties go to the smallest label.

    Returns:
        An int, or int64 of shape (m,). Where K = 1 no other label can win, and it is `2**32 - 1`.

    Raises:
        ShapeError: counts has another number of dimensions, or no label.
        ParameterError: counts holds no integers, or some outside `[0, 2**32)`.

    Cost:
        One pass over the counts.

    Source:
        Bassily, Thakkar and Thakurta 2018, Definition 3.1, in closed form: the minimum over r != t
        of floor((ct(t) - ct(r) - 1 + [t < r]) / 2), where ct counts votes and t is the winner.

    Examples:
        >>> from hdp_fast import stability
        >>> stability.distance([60, 40, 0])  # 10 votes moved make 50 to 50, which 0 still wins
        10
        >>> stability.distance([[40, 60, 0], [51, 49, 0]])
        array([9, 1])
    """
    return _find_winners(counts)[1]


def plurality(counts: ArrayLike) -> int | Integers:
    """Finds the label with the most votes. The answer is not private.

    Args:
        counts: Number of votes for each label, integers of shape (K,) or (m, K), each below
            `2**32`. Ties go to the smallest label.

    Returns:
        The winner as an int, or int64 of shape (m,).

    Raises:
        ShapeError: counts has another number of dimensions, or no label.
        ParameterError: counts holds no integers, or some outside `[0, 2**32)`.

    Cost:
        One pass over the counts.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 4.

    Examples:
        >>> from hdp_fast import stability
        >>> stability.plurality([[3, 9, 8], [10, 10, 0]])
        array([1, 0])
    """
    return _find_winners(counts)[0]


def count_votes(votes: ArrayLike, labels: int, *, threads: int | None = None) -> NDArray[np.uint32]:
    """Counts the votes for each label on each query. The counts are not private.

    A vote that is no label counts as one for label 0. It is the fixed public vote of a member that
    failed: an error would show which member that is.

    Args:
        votes: uint8 of shape (k, m): row i holds the votes of member i on m queries. bool is taken
            as 0 and 1.
        labels: Number of labels, 1 to 256.
        threads: Number of threads, 1 to 1,024; None uses all.

    Returns:
        uint32 of shape (m, labels).

    Raises:
        ShapeError: votes has not two dimensions.
        ParameterError: votes has another dtype, or labels or threads is out of range.

    Cost:
        One pass over the votes for up to ten labels, on two threads and with AVX2; about as long
        again for each ten more.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 4, step 4.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import stability
        >>> votes = np.array([[0, 2], [0, 2], [1, 2]], np.uint8)  # 3 members, 2 queries
        >>> stability.count_votes(votes, 3)
        array([[2, 1, 0],
               [0, 0, 3]], dtype=uint32)
    """
    size = positive_int("labels", labels, 256)
    ballots = votes_of(votes)
    workers = None if threads is None else nonnegative_int("threads", threads)
    queries = ballots.shape[1]
    return _core.count_votes(ballots.reshape(-1), queries, size, workers).reshape(queries, size)


def _find_winners(counts: ArrayLike) -> tuple[int | Integers, int | Integers]:
    """The winners of votes and their distances to instability, ints for one query."""
    votes = counts_of(counts)
    winners, distances = _core.pluralities(votes.reshape(-1), votes.shape[-1])
    if votes.ndim == 1:
        return int(winners[0]), int(distances[0])
    return winners, distances
