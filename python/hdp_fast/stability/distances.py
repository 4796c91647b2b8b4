"""Winners of votes, their distances to instability, and the release of one stable winner."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.notes import keep_result
from .._support.random_state import check_random_state, make_key
from .._support.types import VARIANTS, Integers, RandomState, Variant
from .._support.validate import (
    nonnegative_int,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
    whole_array,
)
from ..budget.account import Budget, spend
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of

_MOST = 1 << 32
MOST_BINS = 1 << 16


def counts_of(value: ArrayLike) -> NDArray[np.uint32]:
    """Validate counts of votes, (K,) or (m, K) with K at least 1, and return them contiguous.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The dtype is no integer type, or an entry lies outside `[0, 2**32)`.
    """
    counts = whole_array("counts", value)
    if counts.ndim not in (1, 2) or not counts.shape[-1]:
        rule = "it must be (K,) or (m, K) with K at least 1"
        raise ShapeError(f"counts has shape {counts.shape}, but {rule}")
    return to_unsigned("counts", counts)


def check_bins(bins: int) -> int:
    """Validate a number of bins, 2 to 65,536.

    Raises:
        ParameterError: It is anything else.
    """
    size = positive_int("bins", bins, MOST_BINS)
    if size == 1:
        raise ParameterError("bins = 1, but it must be at least 2")
    return size


def winners_of(value: ArrayLike) -> NDArray[np.uint32]:
    """Find the winners of soft labels, and their distances to instability, in counts of half bins.

    Returns:
        uint32 (m, 4) of counts (m, 2 bins): winner and distance of the histogram over the bins, and
        of the one over bins shifted by half their width.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: As in counts_of.
    """
    cells = counts_of(value)
    bins, odd = divmod(cells.shape[-1], 2)
    if cells.ndim != 2 or odd or not 2 <= bins <= MOST_BINS:
        rule = f"it must be (m, 2 bins) with 2 to {MOST_BINS:,} bins"
        raise ShapeError(f"counts has shape {cells.shape}, but {rule}")
    return _core.cell_winners(cells.reshape(-1), bins).reshape(-1, 4)


def to_unsigned(name: str, entries: NDArray[Any]) -> NDArray[np.uint32]:
    """Convert an array of integers to contiguous uint32.

    Raises:
        ParameterError: The dtype is no integer type, or an entry lies outside `[0, 2**32)`.
    """
    if entries.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {entries.dtype}, but it must be an integer type")
    narrow = entries.dtype.kind != "i" and entries.dtype.itemsize <= 4
    if not narrow and entries.size and not 0 <= int(entries.min()) <= int(entries.max()) < _MOST:
        rule = f"each must lie in [0, {_MOST - 1}]"
        raise ParameterError(f"{name} has entries out of range, but {rule}")
    return np.require(entries, np.uint32, ["C", "A"])


def votes_of(value: ArrayLike) -> NDArray[np.uint8]:
    """Validate votes (k, m) and return them as contiguous uint8.

    Raises:
        ShapeError: There are not two dimensions.
        ParameterError: The dtype is neither uint8 nor bool.
    """
    votes = whole_array("votes", value)
    if votes.ndim != 2:
        raise ShapeError(f"votes has shape {votes.shape}, but it must be (k, m)")
    if votes.dtype not in (np.uint8, np.bool_):
        raise ParameterError(f"votes has dtype {votes.dtype}, but it must be uint8")
    return np.require(votes, np.uint8, ["C", "A"])


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


# Decimal digits; the margin of 1e-40 below is far larger than their rounding.
_DIGITS = 60


class StableRelease:
    """Releases the winner of one vote if many votes would have to change for another winner.

    The distance to instability gets discrete Laplace noise of scale 1 / epsilon. The winner is
    released where the sum exceeds the threshold, and bottom (-1) otherwise. The threshold is the
    smallest integer of at least 0 that the noise alone exceeds with probability at most delta.

    Args:
        epsilon: Privacy parameter of one release, 1e-6 to 1,000.
        delta: Privacy parameter of one release, in (0, 1).
        variant: "tight", or "paper" for the printed threshold ln(1 / delta) / epsilon, which an
            integer exceeds where it exceeds the part before the point. The noise is discrete in
            both.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each release is (epsilon, delta)-DP when one vote is replaced. The random draws are exact.

    Source:
        Smith and Thakurta 2013; Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact
        distance: with that of their Algorithm 4 the delta is .36 where 1e-6 is claimed.

    Examples:
        >>> from hdp_fast import stability
        >>> mechanism = stability.StableRelease(epsilon=1.0, delta=1e-12)
        >>> mechanism.threshold, stability.StableRelease(epsilon=0.1, delta=1e-6).threshold
        (27, 131)
        >>> stability.StableRelease(epsilon=0.1, delta=1e-6, variant="paper").threshold
        138
        >>> mechanism.release([0, 120, 0])  # all of 120 members agree on label 1
        1
        >>> mechanism.release([60, 60, 0])  # one vote decides: bottom
        -1
    """

    def __init__(self, *, epsilon: float, delta: float, variant: Variant = "tight"):
        self._variant = one_of("variant", variant, VARIANTS)
        self._epsilon, self._delta = positive("epsilon", epsilon), probability("delta", delta)
        if not 1e-6 <= self._epsilon <= 1e3:
            refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
        with localcontext(prec=_DIGITS):
            if self._variant == "paper":
                self._threshold = math.floor(-Decimal(self._delta).ln() / Decimal(self._epsilon))
                return
            ratio = Decimal(-self._epsilon).exp()
            # Pr[noise > g] = ratio**(g + 1) / (1 + ratio).
            least = -(Decimal(self._delta) * (1 + ratio)).ln() / Decimal(self._epsilon) - 1
            self._threshold = max(0, math.ceil(least + Decimal("1e-40")))

    @property
    def threshold(self) -> int:
        """The number that the distance with noise must exceed."""
        return self._threshold

    @keep_result
    def release(
        self,
        counts: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> int:
        """Answers one query, given the votes for each label.

        Args:
            counts: Number of votes for each of the K labels of the public label set, integers of
                shape (K,).
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: Budget that epsilon and delta are charged to; None charges nothing.

        Returns:
            The winner, or -1 for bottom.

        Raises:
            ShapeError: counts has another shape.
            ParameterError: counts holds no integers, or some outside `[0, 2**32)`; or random_state
                or budget is of the wrong kind.
            BudgetExceeded: The budget has less than epsilon and delta left. Nothing is drawn then.

        Guarantee:
            (epsilon, delta)-DP when one vote is replaced, for this release alone. Several releases
            compose.

        Cost:
            O(K).
        """
        votes = counts_of(counts)
        if votes.ndim != 1:
            raise ShapeError(f"counts has shape {votes.shape}, but it must be (K,)")
        check_random_state(random_state)
        winners, distances = _core.pluralities(votes, len(votes))
        scale = 1 / Fraction(self._epsilon)
        with spend(budget, self.record(random_state)):
            ratio = scale.as_integer_ratio()
            drawn = _core.integer_noise("laplace", ratio, 1, make_key(random_state))
        above = int(distances[0]) + int(drawn[0]) > self._threshold
        return int(winners[0]) if above else -1

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what protects one release.

        Args:
            random_state: The one that release gets; the record names where the random bits come
                from.

        Returns:
            The PrivacyRecord that release charges to a budget.
        """
        return PrivacyRecord(
            mechanism=f"stability.StableRelease, {self._variant}",
            source="Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact distance",
            neighbors="replace_one",
            epsilon=self._epsilon,
            delta=self._delta,
            noise=f"discrete Laplace, scale 1 / {self._epsilon:g}",
            rng=rng_of(random_state),
        )

    def __repr__(self) -> str:
        promise = f"epsilon={self._epsilon:g}, delta={self._delta:g}"
        return f"StableRelease({promise}): distances above {self._threshold:,}, with noise"
