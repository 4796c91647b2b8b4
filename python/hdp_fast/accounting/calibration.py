"""The least noise, the largest rate and the most rounds that a target allows."""

from __future__ import annotations

import math
from collections.abc import Callable

from .._support.validate import positive, probability, refuse, shorten
from ..exceptions import ParameterError
from .composition import Accountant, compute_delta, list_terms
from .mechanisms import Mechanism, Subsampled, count

# Calibrators stop this close to their boundary, on its safe side.
_TOLERANCE = 1e-5
_MOST_ROUNDS = 1 << 40
_LEAST_RATE = 1e-15


def smallest_noise(
    family: Callable[[float], Mechanism],
    *,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    low: float = 1e-3,
    high: float = 1e6,
    accountant: Accountant = "pld",
) -> float:
    """The smallest noise, within 1e-5 of itself, at which `rounds` runs are private.

    family: makes the mechanism of a noise, more private the larger it is, such as
    `lambda sigma: Gaussian(1 / sigma)`. epsilon: above 0; delta: strictly between 0 and 1.
    low, high: above 0, where to search; low itself is returned where that is enough.

    Guarantee: the composition at the noise returned is (epsilon, delta)-DP, by delta().
    Raises: ParameterError, also when the noise `high` is not enough.
    Cost: about 25 calls of delta().
    Source: bisection.
    """
    least, most = positive("low", low), positive("high", high)
    if not least < most:
        refuse("low", low, f"it must be below high = {shorten(high)}")
    holds = _test_target(epsilon, delta, accountant)

    def enough(noise: float) -> bool:
        return holds(family(noise), count("rounds", rounds))

    if not enough(most):
        refuse("high", high, "that much noise is not enough")
    return least if enough(least) else _bisect(most, least, enough)


def largest_rate(
    base: Mechanism,
    *,
    draws: int,
    rounds: int,
    epsilon: float,
    delta: float,
    accountant: Accountant = "pld",
) -> float:
    """The largest rate, within 1e-5 of itself, at which `rounds` runs of Subsampled are private.

    base, draws: as for Subsampled; epsilon: above 0; delta: strictly between 0 and 1. With
    rate = 1 / (kappa n), the data needed are n = 1 / (kappa * rate) records.

    Guarantee: the composition at the rate returned is (epsilon, delta)-DP, by delta().
    Raises: ParameterError, also when no rate above 1e-15 will do.
    Cost: about 25 calls of delta().
    Source: bisection.
    """
    holds, times = _test_target(epsilon, delta, accountant), count("rounds", rounds)

    def is_allowed(rate: float) -> bool:
        return holds(Subsampled(base, draws=draws, rate=rate), times)

    # Where few draws are expected to change, curves are cheap: no large rate is tried unasked.
    return find_largest(min(1.0, 0.01 / count("draws", draws)), is_allowed, 1.0)


def largest_rounds(
    mechanism: Mechanism, *, epsilon: float, delta: float, accountant: Accountant = "pld"
) -> int:
    """How often a mechanism can run at most; 0 if not even once, never above 2**40.

    mechanism: any; epsilon: above 0; delta: strictly between 0 and 1.

    Guarantee: that many runs are (epsilon, delta)-DP, by delta().
    Raises: ParameterError.
    Cost: about twice log2(result) calls of delta().
    Source: bisection.
    """
    holds = _test_target(epsilon, delta, accountant)
    if not holds(mechanism, 1):
        return 0
    good = 1
    while good < _MOST_ROUNDS and holds(mechanism, 2 * good):
        good *= 2
    bad = 2 * good
    while bad - good > 1 and good < _MOST_ROUNDS:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(mechanism, middle) else (good, middle)
    return good


def _test_target(
    epsilon: float, delta: float, accountant: Accountant
) -> Callable[[Mechanism, int], bool]:
    """A test whether that many runs of a mechanism meet the target."""
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)

    def holds(mechanism: Mechanism, rounds: int) -> bool:
        terms = list_terms([(mechanism, rounds)], accountant)
        return compute_delta(terms, wanted, accountant) <= failing

    return holds


def find_largest(start: float, holds: Callable[[float], bool], most: float = math.inf) -> float:
    """The largest number up to `most` where `holds`, which falls from true to false.

    start: a first guess. Raises: ParameterError if it holds nowhere above 1e-15.
    """
    good = start
    while not holds(good):
        good /= 4
        if good < _LEAST_RATE:
            raise ParameterError(
                f"no value above {_LEAST_RATE} reaches the given epsilon and delta"
            )
    bad = good
    while bad < most and holds(bad):
        good, bad = bad, min(4 * bad, most)
    return bad if holds(bad) else _bisect(good, bad, holds)


def _bisect(good: float, bad: float, holds: Callable[[float], bool]) -> float:
    """The last number where `holds`, within the tolerance.

    Ratios are halved rather than differences, since scales are unknown.
    """
    while max(good, bad) > (1 + _TOLERANCE) * min(good, bad):
        middle = math.sqrt(good) * math.sqrt(bad)
        if not min(good, bad) < middle < max(good, bad):
            break  # neighboring numbers, among the least of all
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
