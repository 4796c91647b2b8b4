"""Binary randomized response, the mechanism of every agent, and what is known of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from ..budget.account import Budget, spend
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of

_SOURCE = (
    "Warner 1965; Kohen and Sheffet 2022, Section 3 (binary randomized response for their Gaussian)"
)


def randomized_response(
    bits: ArrayLike,
    *,
    epsilon: float,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> Bits:
    """Binary randomized response: each bit is told truly or flipped.

    bits: 0/1 array (n,), or floats in [0, 1], each of which is first rounded to 1 with exactly
    itself as the probability, so that estimate_mean estimates their mean; epsilon: above 0; a bit
    is kept with probability exp(epsilon) / (1 + exp(epsilon)). random_state: None draws from the
    operating system, an int or a numpy Generator makes a reproducible test stream that protects
    nobody who knows it. budget: charged epsilon once, for entries that come from one record each.
    Returns uint8 (n,).

    Guarantee: pure epsilon-DP for each entry, whatever the others are; exact coins, the probability
        rounded towards 1/2.
    Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn or budget spent.
    Cost: O(n), little more than a byte of the random stream a bit, two bytes a float.
    Source: Warner 1965; binary, and hence with less noise than the Gaussian of Kohen and Sheffet.
    """
    record = record_of("local.randomized_response", epsilon, random_state)
    # A number beyond float64 is refused, and numpy must not warn of it.
    with np.errstate(all="ignore"):
        if budget is not None:
            # What the call below refuses must be refused before anything is spent.
            check_random_state(random_state)
            _core.check_bits(bits)
        with spend(budget, record):
            return _core.randomized_response(bits, epsilon, make_key(random_state))


def record_of(mechanism: str, epsilon: float, random_state: RandomState) -> PrivacyRecord:
    """The record of agents who each answer by binary randomized response."""
    return PrivacyRecord(
        mechanism=mechanism,
        source=_SOURCE,
        neighbors="local",
        epsilon=epsilon,
        noise="binary randomized response",
        rng=rng_of(random_state),
    )


def advantage(epsilon: float) -> float:
    """Pr[truth] - Pr[lie] of randomized response: tanh(epsilon / 2), by the probability as drawn.

    Raises: ParameterError for an epsilon that is not above 0, or rounds to an advantage of 0.
    """
    difference = (2 * _core.truth_probability(epsilon) - (1 << 64)) / (1 << 64)
    if difference == 0:
        raise ParameterError(
            f"epsilon = {epsilon}, but so small an epsilon leaves nothing but noise"
        )
    return difference
