"""The least noise, the largest sampling rate and the most rounds that a privacy target allows."""

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
    """Searches for the least noise at which `rounds` runs of a mechanism are (epsilon, delta)-DP.

    The search is a bisection that stops on the private side.

    Args:
        family: Makes the mechanism from its noise, such as
            `lambda sigma: GaussianMechanism(1 / sigma)`. It must be more private the larger the
            noise is.
        epsilon: Target of all runs together, finite and above 0.
        delta: Target of all runs together, strictly between 0 and 1.
        rounds: How often the mechanism runs, from 1 to `2**53`.
        low: Where the search begins, above 0. It is returned if that little noise is enough.
        high: Where the search ends, finite and above `low`.
        accountant: "pld" or "rdp", as for `delta`.

    Returns:
        A noise that is enough, larger than the least one by a factor of at most 1 + 1e-5.

    Raises:
        ParameterError: An argument lies outside its range, `family` returns no mechanism, or the
            noise `high` is not enough.

    Guarantee:
        The runs at the returned noise are together (epsilon, delta)-DP by `delta`, under the
        neighbor relation of the mechanisms that `family` makes.

    Cost:
        About 25 calls of `delta`.

    Examples:
        >>> from hdp_fast.accounting import DiscreteLaplace, smallest_noise
        >>> def count(scale):  # one integer with discrete Laplace noise
        ...     return DiscreteLaplace(1 / scale, sensitivity=1)
        >>> scale = smallest_noise(count, epsilon=1, delta=1e-6, rounds=100, low=10, high=100)
        >>> round(scale, 2)
        41.65
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
    """Searches for the largest sampling rate at which `rounds` runs are (epsilon, delta)-DP.

    Each run is `Subsampled(base, draws=draws, rate=rate)`. Weights that are kappa-dense on n
    records have rate = 1 / (kappa n), so that the target needs n = 1 / (kappa * result) records.

    Args:
        base: What runs on the draws, any mechanism under "replace_one" but `Subsampled`.
        draws: How many records each run draws, from 1 to `2**53`.
        rounds: How often it runs, from 1 to `2**53`.
        epsilon: Target of all runs together, finite and above 0.
        delta: Target of all runs together, strictly between 0 and 1.
        accountant: "pld" or "rdp", as for `delta`.

    Returns:
        A rate in (0, 1] that is small enough, below the largest one by a factor of at most 1 +
            1e-5.

    Raises:
        ParameterError: An argument lies outside its range, or no rate above 1e-15 reaches the
            target.

    Guarantee:
        The runs at the returned rate are together (epsilon, delta)-DP by `delta`, for the
        replacement of one record.

    Cost:
        About 25 calls of `delta`.

    Examples:
        >>> import math
        >>> from hdp_fast.accounting import Pure, largest_rate
        >>> rate = largest_rate(Pure(0.5), draws=5, rounds=10, epsilon=1, delta=1e-6)
        >>> math.ceil(1 / rate)  # how many records uniform draws need
        39
    """
    holds, times = _test_target(epsilon, delta, accountant), count("rounds", rounds)

    def is_allowed(rate: float) -> bool:
        return holds(Subsampled(base, draws=draws, rate=rate), times)

    # Where few draws are expected to change, curves are cheap: no large rate is tried unasked.
    return find_largest(min(1.0, 0.01 / count("draws", draws)), is_allowed, 1.0)


def largest_rounds(
    mechanism: Mechanism, *, epsilon: float, delta: float, accountant: Accountant = "pld"
) -> int:
    """Counts how often a mechanism can run before the runs are no longer (epsilon, delta)-DP.

    Args:
        mechanism: Any mechanism.
        epsilon: Target of all runs together, finite and above 0.
        delta: Target of all runs together, strictly between 0 and 1.
        accountant: "pld" or "rdp", as for `delta`.

    Returns:
        The number of runs, 0 if not even one run meets the target, and never above `2**40`.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        That many runs are together (epsilon, delta)-DP by `delta`, under the mechanism's neighbor
        relation.

    Cost:
        About 2 log2(result) calls of `delta`.

    Examples:
        >>> from hdp_fast.accounting import DiscreteLaplace, largest_rounds
        >>> largest_rounds(DiscreteLaplace(0.1, 1), epsilon=2, delta=1e-6)  # 20 at delta = 0
        24
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
    """Returns a test whether a number of runs of a mechanism meets the target."""
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)

    def holds(mechanism: Mechanism, rounds: int) -> bool:
        terms = list_terms([(mechanism, rounds)], accountant)
        return compute_delta(terms, wanted, accountant) <= failing

    return holds


def find_largest(start: float, holds: Callable[[float], bool], most: float = math.inf) -> float:
    """The largest number up to `most` at which `holds`, which must fall from true to false.

    The search begins at `start`. It raises ParameterError if no number above 1e-15 holds.
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
    """The last number at which `holds`, within the tolerance.

    The bisection halves ratios rather than differences, since the scale is unknown.
    """
    while max(good, bad) > (1 + _TOLERANCE) * min(good, bad):
        middle = math.sqrt(good) * math.sqrt(bad)
        if not min(good, bad) < middle < max(good, bad):
            break  # neighboring numbers, among the least of all
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
