"""Which randomizer needs fewest agents."""

from __future__ import annotations

from collections.abc import Iterator

from ..._support.validate import probability
from ...exceptions import ParameterError
from .binary import BinaryResponse
from .mean import Bounds, MeanRandomizer
from .noisy import GaussianRandomizer, LaplaceRandomizer
from .piecewise import Piecewise


def best_randomizer(
    epsilon: float,
    delta: float = 0.0,
    *,
    bounds: Bounds,
    binary: bool = False,
    alpha: float = 0.05,
    beta: float = 0.05,
    sampled: bool = True,
) -> MeanRandomizer:
    """The randomizer that estimates a mean from fewest agents, by what is proved.

    epsilon: at least 1e-9; delta: in [0, 1), above 0 allows GaussianRandomizer; bounds: (low, high)
    of the values. binary: whether every value is low or high. alpha, beta, sampled: as of
    Randomizer.agents_needed.

    Where agents are sampled this is BinaryResponse, at every epsilon: the worst population holds
    nothing but low and high, and about those it tells most. Where they are not, values between the
    ends cost BinaryResponse its rounding, and Piecewise wins from an epsilon of about 1.5 on.

    Guarantee: that of the randomizer returned.
    Raises: ParameterError.
    Cost: a millisecond, some more with delta.
    Source: the bounds of Randomizer.agents_needed, compared for each randomizer.
    """
    allowed = probability("delta", delta, zero=True)

    def count_agents(randomizer: MeanRandomizer) -> int:
        return randomizer._count_agents(alpha, beta, sampled, binary)

    return min(_candidates(epsilon, allowed, bounds), key=count_agents)


def _candidates(epsilon: float, delta: float, bounds: Bounds) -> Iterator[MeanRandomizer]:
    yield from (kind(epsilon, bounds) for kind in (BinaryResponse, Piecewise, LaplaceRandomizer))
    if delta:
        try:
            yield GaussianRandomizer(epsilon, delta, bounds)
        except ParameterError:
            # Too little delta for its noise is no reason to choose nothing.
            return
