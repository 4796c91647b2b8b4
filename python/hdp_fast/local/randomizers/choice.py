"""The randomizer that needs the fewest agents."""

from __future__ import annotations

from collections.abc import Iterator

from ..._support.validate import probability
from ...exceptions import ParameterError
from .base import agents_for
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
    """Chooses the randomizer that estimates a mean from the fewest agents, as far as is proved.

    When agents are sampled and delta is 0, the choice is BinaryResponse for every epsilon: the
    population that is hardest to estimate holds nothing but low and high, and about those its
    reports have the smallest variance. GaussianRandomizer needs fewer agents only when delta is
    large: from 0.009 on for epsilon = 0.1, and from 0.15 on for epsilon = 1.

    When agents are not sampled, BinaryResponse also has to round the values between the bounds, at
    random, and Piecewise needs fewer agents from epsilon = 1.5 on with the default alpha and beta
    and a range of width 1. Beyond epsilon = 19 LaplaceRandomizer does.

    Args:
        epsilon: Privacy parameter of one report, at least 1e-9.
        delta: Privacy parameter of one report, in [0, 1). Above 0 it allows GaussianRandomizer.
        bounds: The range (low, high) of the values, both finite, low < high.
        binary: Whether every value is known to be low or high.
        alpha: Largest error that is allowed, above 0, in the units of the values.
        beta: Probability with which the error may be larger, in (0, 1).
        sampled: True counts the error against the population that the agents are drawn from
            independently. False counts it against the mean of these very agents, whoever they are.

    Returns:
        A BinaryResponse, Piecewise, LaplaceRandomizer or GaussianRandomizer with this epsilon.

    Raises:
        ParameterError: A parameter is out of range, or a randomizer that is compared would need
            more than 1e18 agents.

    Guarantee:
        Reports have the guarantee of the randomizer that is returned. A choice other than
        GaussianRandomizer spends no delta.

    Cost:
        Under a millisecond without delta. With delta it takes as long as making a
        GaussianRandomizer.

    Source:
        The bounds of `Randomizer.agents_needed`, compared for each randomizer.

    Examples:
        >>> from hdp_fast import local
        >>> local.best_randomizer(1.0, bounds=(0, 24))
        BinaryResponse(epsilon=1.0, bounds=(0.0, 24.0)): one bit, kept with probability 0.7311
        >>> type(local.best_randomizer(4.0, bounds=(0, 1), sampled=False)).__name__
        'Piecewise'
    """
    allowed = probability("delta", delta, zero=True)

    def count_agents(randomizer: MeanRandomizer) -> int:
        return agents_for(randomizer, alpha, beta, sampled=sampled, binary=binary)

    return min(_candidates(epsilon, allowed, bounds), key=count_agents)


def _candidates(epsilon: float, delta: float, bounds: Bounds) -> Iterator[MeanRandomizer]:
    yield from (kind(epsilon, bounds) for kind in (BinaryResponse, Piecewise, LaplaceRandomizer))
    if delta:
        try:
            yield GaussianRandomizer(epsilon, delta, bounds)
        except ParameterError:
            # Where delta is too small for Gaussian noise, the other randomizers remain.
            return
