"""The least noise, the largest sampling rate and the most rounds that a privacy target allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

from .. import _core
from .._support.validate import (
    function,
    one_of,
    positive,
    positive_int,
    probability,
    probability_or_one,
    refuse,
    shorten,
)
from ..exceptions import ParameterError
from .composition import Accountant, list_terms
from .composition import delta as composed_delta
from .mechanisms import Description, Mechanism, Shuffled, Subsampled, count, describe

# Kappa-dense weights are drawn from with kappa_eff = kappa (1 - 2**-12); the rest is for rounding.
WINDOW, SLACK = 1 - 2.0**-12, 1 + 1e-12


def density(kappa: float | None) -> float:
    """The density that draws by kappa-dense weights keep; 1 for None, which means uniform draws."""
    return 1.0 if kappa is None else probability_or_one("kappa", kappa) * WINDOW


def rate_of(n: int, kappa: float | None) -> float:
    """The largest probability of any of n records in a draw, rounded up."""
    exact = 1 / (density(kappa) * positive_int("n", n, 1 << 53))
    return min(exact * SLACK, 1.0)


# Calibrators stop this close to their boundary, on its safe side.
_TOLERANCE = 1e-5
_LEAST_RATE = 1e-15

# Epsilon, delta and the accountant.
_Goal = tuple[float, float, Accountant]


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

    The search follows the curve of delta and stops on the private side.

    Args:
        family: Makes the mechanism from its noise, such as
            `lambda sigma: GaussianMechanism(1 / sigma)`. It must be more private the larger the
            noise is.
        epsilon: Target of all runs together, finite and above 0.
        delta: Target of all runs together, strictly between 0 and 1.
        rounds: How often the mechanism runs, from 1 to `2**53`.
        low: The least noise, above 0. It is returned if that little is enough.
        high: The most noise, finite and above `low`.
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
        About three calls of `delta` and eight of a rough one, which take a quarter of its time.

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
    make = function("family", family)
    goal, times = _check_goal(epsilon, delta, accountant), count("rounds", rounds)
    search = _core.NoiseSearch(least, most, goal)
    while (noise := search.noise()) is not None:
        search.examine([*list_terms([(make(noise), times)], accountant)])
    return _enough(search.least(), high)


def smallest_gaussian_noise(
    *,
    draws: int,
    rate: float,
    rounds: int,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
) -> float:
    """Searches for the least Gaussian noise of sums of subsamples, by its multiplier.

    It is `smallest_noise` for `Subsampled(GaussianMechanism(1 / noise), draws=draws, rate=rate)`,
    whose loop runs in the compiled module; all arguments but the goal are checked.
    """
    goal = _check_goal(epsilon, delta, "pld")
    return _enough(_core.smallest_gaussian_noise([low, high], draws, rate, rounds, goal), high)


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
            1e-5; at most 10,000 / draws, since there are curves up to that.

    Raises:
        ParameterError: An argument lies outside its range, or no rate above 1e-15 reaches the
            target.

    Guarantee:
        The runs at the returned rate are together (epsilon, delta)-DP by `delta`, for the
        replacement of one record.

    Cost:
        As for `smallest_noise`.

    Examples:
        >>> import math
        >>> from hdp_fast.accounting import Pure, largest_rate
        >>> rate = largest_rate(Pure(0.5), draws=5, rounds=10, epsilon=1, delta=1e-6)
        >>> math.ceil(1 / rate)  # how many records uniform draws need
        39
    """
    goal, times = _check_goal(epsilon, delta, accountant), count("rounds", rounds)
    # What can be said of the base and the draws is said of the least rate.
    list_terms([(Subsampled(base, draws=draws, rate=_LEAST_RATE), times)], accountant)
    return _find_rate(describe(base), count("draws", draws), times, goal)


def guess_rate(base: Mechanism, *, draws: int, rounds: int, epsilon: float, delta: float) -> float:
    """About what `largest_rate` returns, for comparisons: nothing shows that it is private.

    It is a number where `largest_rate` refuses, too.
    """
    goal = _check_goal(epsilon, delta, "pld")
    Subsampled(base, draws=draws, rate=_LEAST_RATE)
    return _find_rate(describe(base), draws, rounds, goal, guessed=True)


def largest_draws(
    base: Mechanism,
    *,
    rate: float,
    rounds: int,
    epsilon: float,
    delta: float,
    guessed: bool = False,
) -> int:
    """Counts the draws at a rate with which `rounds` runs on subsamples are (epsilon, delta)-DP.

    It is within 1e-4 of the most, and 0 where not even one draw is private. Where it is `guessed`,
    for comparisons, it is about the most, at least 1, and nothing shows that it is private.
    """
    goal = _check_goal(epsilon, delta, "pld")
    # What can be said of the base and the rate is said of one draw.
    Subsampled(base, draws=1, rate=rate)
    return _find_draws(describe(base), rate, rounds, goal, guessed)


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
        As for `smallest_noise`, and some calls of `delta` more where there are many runs.

    Examples:
        >>> from hdp_fast.accounting import DiscreteLaplace, largest_rounds
        >>> largest_rounds(DiscreteLaplace(0.1, 1), epsilon=2, delta=1e-6)  # 20 at delta = 0
        24
    """
    goal = _check_goal(epsilon, delta, accountant)
    list_terms(mechanism, accountant)
    return _find_rounds(describe(mechanism), goal)


def largest_local_epsilon(
    n: int, *, epsilon: float, delta: float, categories: int | None = None
) -> float:
    """Searches for the largest epsilon of a report with which n shuffled ones are private.

    Args:
        n: How many reports are mixed at least, as for `Shuffled`.
        epsilon: Target of the shuffled reports, finite and above 0.
        delta: Target of the shuffled reports, strictly between 0 and 1.
        categories: As for `Shuffled`.

    Returns:
        An epsilon that is small enough, below the largest one by a factor of at most 1 + 1e-5; at
            least the target, which no shuffler is needed for.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        n reports with the returned epsilon are (epsilon, delta)-DP behind a shuffler, for the
        replacement of one value, and pure DP with the returned epsilon against everybody.

    Cost:
        Some twenty calls of `delta`.

    Examples:
        >>> from hdp_fast.accounting import largest_local_epsilon
        >>> round(largest_local_epsilon(1_000, epsilon=1.0, delta=1e-6), 2)
        3.27
    """
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)

    def holds(local_epsilon: float) -> bool:
        return composed_delta(Shuffled(local_epsilon, n, categories), wanted) <= failing

    return max(wanted, find_largest(wanted, holds))


def least_people(
    enough: Callable[[int], float],
    *,
    most: int,
    epsilon: float,
    delta: float,
    mixed: Callable[[int], int] = int,
    categories: int | None = 2,
) -> int:
    """Counts the people whose shuffled reports are both private and enough.

    enough: The least epsilon of a report with which so many people are enough, infinite where none
        is; it must fall as they become more.
    most: So many are enough with reports of the target epsilon itself.
    mixed: How many reports are in the smallest mix of so many people.
    """
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)

    def holds(people: int) -> bool:
        of_report, reports = enough(people), mixed(people)
        if of_report <= wanted:
            return True
        if not (of_report < math.inf and reports > 0):
            return False
        return composed_delta(Shuffled(of_report, reports, categories), wanted) <= failing

    few = 0
    # Of thousands a few more than the least will do.
    while most - few > max(1, most >> 10):
        middle = (few + most) // 2
        few, most = (few, middle) if holds(middle) else (middle, most)
    return most


# A fit asks again what its plan has asked, and a plan what the one before has.
@lru_cache(maxsize=1024)
def _find_rate(
    base: Description, draws: int, rounds: int, goal: _Goal, guessed: bool = False
) -> float:
    rate = _core.largest_rate(base, draws, rounds, goal, guessed)
    return _refuse_all() if rate is None else rate


@lru_cache(maxsize=1024)
def _find_draws(base: Description, rate: float, rounds: int, goal: _Goal, guessed: bool) -> int:
    return _core.largest_draws(base, rate, rounds, goal, guessed)


@lru_cache(maxsize=1024)
def _find_rounds(mechanism: Description, goal: _Goal) -> int:
    return _core.largest_rounds(mechanism, goal)


def _check_goal(epsilon: float, delta: float, accountant: Accountant) -> _Goal:
    one_of("accountant", accountant, ("pld", "rdp"))
    return positive("epsilon", epsilon), probability("delta", delta), accountant


def _enough(noise: float | None, high: float) -> float:
    """The noise that a search ended with; where it found none, the most is not enough."""
    if noise is None:
        refuse("high", high, "that much noise is not enough")
    return noise


def _refuse_all() -> NoReturn:
    raise ParameterError(f"no value above {_LEAST_RATE} reaches the given epsilon and delta")


def find_largest(start: float, holds: Callable[[float], bool], most: float = math.inf) -> float:
    """The largest number up to `most` at which `holds`, which must fall from true to false.

    The search begins at `start`. It raises ParameterError if no number above 1e-15 holds.
    """
    good = start
    while not holds(good):
        good /= 4
        if good < _LEAST_RATE:
            _refuse_all()
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
