"""The winner of a single vote, released if its noisy distance to instability is large enough."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import keep_result
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import positive, probability, refuse
from ..budget.account import Budget, spend
from ..exceptions import ShapeError
from ..record import PrivacyRecord, rng_of
from .votes import counts_of

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

    Raises:
        ParameterError: epsilon or delta is out of range.

    Guarantee:
        Each release is (epsilon, delta)-DP when one vote is replaced. The coins are exact.

    Source:
        Smith and Thakurta 2013; Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact
        distance: with that of their Algorithm 4 the delta is .36 where 1e-6 is claimed.

    Examples:
        >>> from hdp_fast import stability
        >>> mechanism = stability.StableRelease(epsilon=1.0, delta=1e-12)
        >>> mechanism.threshold
        27
        >>> mechanism.release([0, 120, 0])  # all of 120 members agree on label 1
        1
        >>> mechanism.release([60, 60, 0])  # one vote decides: bottom
        -1
    """

    def __init__(self, *, epsilon: float, delta: float):
        self._epsilon, self._delta = positive("epsilon", epsilon), probability("delta", delta)
        if not 1e-6 <= self._epsilon <= 1e3:
            refuse("epsilon", epsilon, "it must lie in [1e-06, 1000]")
        with localcontext(prec=_DIGITS):
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
                reproducible stream for tests, which protects nobody.
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
            random_state: The one that release gets; the record names where the coins come from.

        Returns:
            The PrivacyRecord that release charges to a budget.
        """
        return PrivacyRecord(
            mechanism="stability.StableRelease",
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
