"""One winner of one vote, shown if its noisy distance to instability is large enough."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from numpy.typing import ArrayLike

from .. import _core
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import positive, probability, refuse
from ..budget.account import Budget, spend
from ..exceptions import ShapeError
from ..record import PrivacyRecord, rng_of
from .votes import counts_of

# Digits that no rounding below reaches.
_DIGITS = 60


class StableRelease:
    """The winner of one vote, if it is far enough from another one.

    epsilon: above 0, at most 1,000. delta: in (0, 1). The distance with discrete Laplace noise of
    scale 1 / epsilon must exceed the smallest integer that noise alone exceeds with probability at
    most delta.

    Guarantee: (epsilon, delta)-DP for each release, when one vote is replaced; exact coins.
    Raises: ParameterError.
    Cost: constant.
    Source: Smith and Thakurta 2013; Bassily, Thakkar and Thakurta 2018, Algorithm 2, with the exact
        distance: with that of their Algorithm 4 delta is .36 where 1e-6 is claimed.
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
        """What the noisy distance must exceed."""
        return self._threshold

    def release(
        self,
        counts: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> int:
        """Answer one query, given the votes for each label.

        counts: integers (K,), K the size of the public label set. random_state: as
        noise.discrete_laplace. budget: charged epsilon and delta. Returns a label or -1.

        Guarantee: as the class, for this release alone; more of them compose.
        Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn.
        Cost: O(K).
        Source: as the class.
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
        """What protects one release.

        random_state: as release.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
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
