"""Exact draws: coins, integer noise, uniform and weighted integers, private selection.

Every draw follows its law exactly, not up to rounding. A float is taken as the dyadic rational that
it is. Probabilities such as exp(-1/3) are enclosed between integers, to as many digits as a draw
needs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._support.lazy import list_only
from ._support.notes import keep_result
from ._support.random_state import check_random_state, make_key
from ._support.types import Bits, Integers, RandomState
from ._support.validate import (
    curator_relation,
    flag,
    integers,
    is_bool,
    nonnegative_int,
    number,
    refuse,
)
from .budget.account import Budget, Neighbors, spend
from .exceptions import ParameterError
from .record import PrivacyRecord, rng_of

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "geometric",
    "permute_and_flip",
    "poisson_mask",
    "rounded_gaussian",
    "uniform_integers",
    "weighted_draws",
]

__dir__ = list_only(__all__)

Number = float | Fraction
Shape = int | tuple[int, ...]

# Beyond this, draws would leave the range of int64 with a probability that is not negligible.
_LARGEST_SCALE = 1 << 50
# A Fraction of longer terms costs time, and its law could not be told from that of a shorter one.
_LARGEST_TERM = 1 << 4096


@overload
def bernoulli(p: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def bernoulli(p: Number, size: Shape, *, random_state: RandomState = None) -> Bits: ...
def bernoulli(
    p: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Bits:
    """Draws coins that show 1 with probability exactly p.

    Args:
        p: Probability of a 1, a number in [0, 1] or a Fraction. A float is taken as the dyadic
            rational that it is.
        size: Shape of the uint8 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A uint8 array of shape `size`, or one int.

    Raises:
        ParameterError: p lies outside [0, 1], or `size` or `random_state` is not of its kind.

    Guarantee:
        The law is exact; nothing is rounded. Coins protect a record only as a part of a mechanism.

    Cost:
        Little more than one byte of the random stream for each draw.

    Source:
        Uniform bits are compared with the binary expansion of p until they differ.

    Examples:
        >>> from fractions import Fraction
        >>> from hdp_fast import noise
        >>> noise.bernoulli(1, size=3)
        array([1, 1, 1], dtype=uint8)
        >>> coins = noise.bernoulli(Fraction(1, 3), size=100_000)
        >>> bool(abs(coins.mean() - 1 / 3) < 0.01)
        True
    """
    return _draw(_core.bernoulli, size, (_probability("p", p), False), random_state)


@overload
def bernoulli_exp(gamma: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def bernoulli_exp(gamma: Number, size: Shape, *, random_state: RandomState = None) -> Bits: ...
def bernoulli_exp(
    gamma: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Bits:
    """Draws coins that show 1 with probability exactly exp(-gamma).

    Args:
        gamma: At least 0, a number or a Fraction. A float is taken as the dyadic rational that it
            is.
        size: Shape of the uint8 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A uint8 array of shape `size`, or one int.

    Raises:
        ParameterError: gamma is negative or not finite, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact; the binary expansion of exp(-gamma) is computed to as many digits as a
        draw needs. Coins protect a record only as a part of a mechanism.

    Cost:
        Little more than one byte of the random stream for each draw.

    Source:
        As `bernoulli`. The exponential series is summed in integers, with bounds on both sides.

    Examples:
        >>> import math
        >>> from hdp_fast import noise
        >>> coins = noise.bernoulli_exp(1, size=100_000)
        >>> bool(abs(coins.mean() - math.exp(-1)) < 0.01)
        True
    """
    return _draw(_core.bernoulli, size, (_rate("gamma", gamma), True), random_state)


def poisson_mask(n: int, rate: Number, *, random_state: RandomState = None) -> NDArray[np.bool_]:
    """Draws a Poisson subsample: each of n records is in it with probability exactly `rate`.

    Args:
        n: Number of records, at least 0.
        rate: Probability of each record, a number in [0, 1] or a Fraction. A float is taken as the
            dyadic rational that it is.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        A bool array (n,), True for the records of the subsample.

    Raises:
        ParameterError: n is negative, rate lies outside [0, 1], or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact, and records are independent. How far subsampling amplifies privacy depends
        on what is computed from the sample, and holds only while the mask stays secret.

    Cost:
        Little more than one byte of the random stream for each record.

    Examples:
        >>> from hdp_fast import noise
        >>> batch = noise.poisson_mask(100_000, rate=0.1)
        >>> batch.shape, bool(abs(batch.mean() - 0.1) < 0.01)
        ((100000,), True)
    """
    drawn = _core.bernoulli(
        _probability("rate", rate), False, nonnegative_int("n", n), make_key(random_state)
    )
    return drawn.view(np.bool_)


@overload
def geometric(scale: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def geometric(scale: Number, size: Shape, *, random_state: RandomState = None) -> Integers: ...
def geometric(
    scale: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws integers x >= 0 with Pr[x] proportional to exp(-x / scale).

    Args:
        scale: Above 0 and below `2**50`, a number or a Fraction. A float is taken as the dyadic
            rational that it is.
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ParameterError: scale lies outside its range, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact. Values above `2**63` - 1, of a probability below exp(-8191), become
        `2**63 - 1`. One-sided noise is not pure epsilon-DP.

    Cost:
        One to six words of the random stream for each draw, growing with log(scale).

    Source:
        Inversion of certified bounds, one block of binary digits at a time. Few draws follow
        Canonne, Kamath and Steinke 2020, Algorithm 2.

    Examples:
        >>> import math
        >>> from hdp_fast import noise
        >>> draws = noise.geometric(2, size=100_000)
        >>> bool(abs(draws.mean() - 1 / math.expm1(1 / 2)) < 0.05)
        True
    """
    return _draw_noise("geometric", "scale", scale, size, random_state)


@overload
def discrete_laplace(
    scale: Number, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def discrete_laplace(
    scale: Number, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def discrete_laplace(
    scale: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws integers x with Pr[x] proportional to exp(-|x| / scale).

    Args:
        scale: Above 0 and below `2**50`, a number or a Fraction. A float is taken as the dyadic
            rational that it is.
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ParameterError: scale lies outside its range, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact. Added to an integer query that changes by at most Delta between neighbors,
        noise of scale Delta / epsilon makes a release that is pure epsilon-DP. Values beyond int64,
        of a probability below exp(-8191), become the nearest int64.

    Cost:
        One to six words of the random stream for each draw, growing with log(scale).

    Source:
        As `geometric`; the sign is drawn with the lowest digits. Ghosh, Roughgarden and
        Sundararajan 2009 for the release.

    Examples:
        >>> from hdp_fast import noise
        >>> count, epsilon = 1000, 0.5  # one record changes the count by at most 1
        >>> released = count + noise.discrete_laplace(1 / epsilon)
        >>> abs(released - count) < 60
        True
    """
    return _draw_noise("laplace", "scale", scale, size, random_state)


@overload
def discrete_gaussian(
    sigma: Number, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def discrete_gaussian(
    sigma: Number, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def discrete_gaussian(
    sigma: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws integers x with Pr[x] proportional to exp(-`x**2` / (2 `sigma**2`)).

    Args:
        sigma: Above 0 and below `2**50`, a number or a Fraction. A float is taken as the dyadic
            rational that it is.
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ParameterError: sigma lies outside its range, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact. Added to an integer query that changes by at most Delta between neighbors,
        it makes a release that is `Delta**2` / (2 `sigma**2`)-zCDP. The privacy curve of the
        continuous Gaussian does not hold for it; `rounded_gaussian` keeps that curve.

    Cost:
        In large arrays one word of the random stream for each draw up to sigma = 64, two beyond.

    Source:
        Inversion of certified bounds. Beyond sigma = 64 it draws a block of integers, with a
        rejection inside. Few draws follow Canonne, Kamath and Steinke 2020, Algorithm 3.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.accounting import ZCDP, epsilon
        >>> draws = noise.discrete_gaussian(10, size=100_000)
        >>> bool(abs(draws.std() - 10) < 0.2)
        True
        >>> round(epsilon(ZCDP(1 / (2 * 10**2)), delta=1e-6), 2)  # of one count with such noise
        0.43
    """
    return _draw_noise("gaussian", "sigma", sigma, size, random_state)


@overload
def rounded_gaussian(
    sigma: Number, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def rounded_gaussian(
    sigma: Number, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def rounded_gaussian(
    sigma: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws normal deviates of mean 0 and deviation sigma, rounded to the nearest integer.

    The deviate is a real number, of which as many digits are drawn as the integer needs: `Pr[x] =
    Phi((x + 1/2) / sigma) - Phi((x - 1/2) / sigma)` for the normal distribution function Phi.

    Args:
        sigma: Above 0 and below `2**50`, a number or a Fraction. A float is taken as the dyadic
            rational that it is.
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ParameterError: sigma lies outside its range, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact. An integer query plus this noise is the query plus the real deviate,
        rounded afterwards. A release of integer queries that change by at most Delta between
        neighbors, in Euclidean length, therefore has all privacy of the Gaussian mechanism:
        `accounting.GaussianMechanism(Delta / sigma)`, its curve, its compositions and its
        subsamples. That needs integers: a query with other values must be rounded before noise
        is added, and Delta must hold for what is rounded.

    Cost:
        For sigma from 1 to 64, and 25,000 draws for each unit of sigma, one word of the random
        stream for each draw. Otherwise two words, more for one draw in fifty; about ten words in
        arrays of fewer than 64 draws, without any table.

    Source:
        Karney 2016, with a table of blocks of sigma / 64 in place of the integer part. Inversion of
        certified bounds for small sigma.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.accounting import GaussianMechanism, epsilon
        >>> draws = noise.rounded_gaussian(10, size=100_000)
        >>> bool(abs(draws.std() - 10) < 0.2)
        True
        >>> round(epsilon(GaussianMechanism(1 / 10), delta=1e-6), 2)  # of one count with such noise
        0.4
    """
    return _draw_noise("rounded_gaussian", "sigma", sigma, size, random_state)


@overload
def uniform_integers(bound: int, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def uniform_integers(bound: int, size: Shape, *, random_state: RandomState = None) -> Integers: ...
def uniform_integers(
    bound: int, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws uniform integers from 0, ..., bound - 1.

    Args:
        bound: An integer in [1, `2**63`).
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ParameterError: bound lies outside its range, or `size` or `random_state` is not of its
            kind.

    Guarantee:
        The law is exact, without modulo bias.

    Cost:
        One word of the random stream for each draw, rarely more.

    Source:
        Lemire 2019.

    Examples:
        >>> from hdp_fast import noise
        >>> dice = 1 + noise.uniform_integers(6, size=1000)
        >>> sorted(set(dice.tolist()))
        [1, 2, 3, 4, 5, 6]
    """
    most = nonnegative_int("bound", bound)
    if most == 0:
        raise ParameterError("bound = 0, but it must be at least 1")
    return _draw(_core.uniform_integers, size, (most,), random_state)


@overload
def weighted_draws(
    weights: ArrayLike, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def weighted_draws(
    weights: ArrayLike, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def weighted_draws(
    weights: ArrayLike, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Draws independent indices i with Pr[i] = weights[i] / sum(weights).

    Args:
        weights: Integers (n,) of at least 0, with 1 <= n < `2**32` and a sum in [1, `2**64`).
        size: Shape of the int64 array, an int or a tuple of ints; None returns one int.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        An int64 array of shape `size`, or one int.

    Raises:
        ShapeError: weights is empty or not a vector.
        ParameterError: weights are not integers or out of range, or `size` or `random_state` is not
            of its kind.

    Guarantee:
        The law is exact. Draws are not private by themselves: that the weights change little
        between neighbors must be shown for the weights.

    Cost:
        O(n) once; for each draw one word of the random stream and two random reads.

    Source:
        A uniform integer below the sum is located among the cumulative sums by a guide table.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import noise
        >>> draws = noise.weighted_draws([1, 0, 3], size=100_000)
        >>> np.unique(draws)
        array([0, 2])
        >>> bool(abs((draws == 2).mean() - 3 / 4) < 0.01)
        True
    """
    masses = integers("weights", weights, np.uint64)
    return _draw(_core.weighted_draws, size, (masses,), random_state)


@keep_result
def permute_and_flip(
    scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number = 1,
    monotonic: bool = False,
    neighbors: Neighbors = "replace_one",
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> int:
    """Chooses a candidate with a high score, privately, by permute-and-flip.

    Candidates are visited in random order. Each is accepted with probability exp(-epsilon (best -
    score) / (2 sensitivity)), and the first accepted one is returned. Where `monotonic` holds, the
    exponent has no 2.

    Args:
        scores: Integers (k,), k >= 1, one for each candidate, the higher the better.
        epsilon: Privacy parameter of the choice, finite and above 0.
        sensitivity: The most by which one record changes any score, a number or a Fraction above 0.
        monotonic: Whether one record never moves two scores in opposite directions. This holds for
            counts under "add_remove", and seldom under "replace_one". It halves the noise.
        neighbors: The relation to which `sensitivity` and `monotonic` refer, "replace_one" or
            "add_remove".
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.
        budget: A `Budget` that is charged epsilon before anything is drawn; None keeps no account.

    Returns:
        The index of the chosen candidate.

    Raises:
        ShapeError: scores is empty or not a vector.
        ParameterError: scores are not integers, or another argument lies outside its range.
        BudgetExceeded: The budget has less than epsilon left. All of these errors come before
            anything is drawn or spent.

    Guarantee:
        The choice is pure epsilon-DP for `neighbors`. Its law is exact. Its running time depends on
        the scores.

    Cost:
        At most k coins.

    Source:
        McKenna and Sheldon 2020. Its expected error is never larger than that of
        `exponential_mechanism`.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.budget import Budget
        >>> budget = Budget(1.0)
        >>> noise.permute_and_flip([30, 950, 400], epsilon=0.5, budget=budget)
        1
        >>> budget.remaining.epsilon
        0.5
    """
    return _select(
        "permute_and_flip",
        *(scores, epsilon, sensitivity, monotonic, neighbors, random_state, budget),
    )


@keep_result
def exponential_mechanism(
    scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number = 1,
    monotonic: bool = False,
    neighbors: Neighbors = "replace_one",
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> int:
    """Chooses a candidate with Pr[i] proportional to exp(epsilon scores[i] / (2 sensitivity)).

    Where `monotonic` holds, the exponent has no 2.

    For one choice `permute_and_flip` is never worse. Under composition this mechanism loses less
    privacy, since its loss has a bounded range.

    Args:
        scores: Integers (k,), k >= 1, one for each candidate, the higher the better.
        epsilon: Privacy parameter of the choice, finite and above 0.
        sensitivity: The most by which one record changes any score, a number or a Fraction above 0.
        monotonic: Whether one record never moves two scores in opposite directions. This holds for
            counts under "add_remove", and seldom under "replace_one". It halves the noise.
        neighbors: The relation to which `sensitivity` and `monotonic` refer, "replace_one" or
            "add_remove".
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one.
        budget: A `Budget` that is charged epsilon before anything is drawn; None keeps no account.

    Returns:
        The index of the chosen candidate.

    Raises:
        ShapeError: scores is empty or not a vector.
        ParameterError: scores are not integers, or another argument lies outside its range.
        BudgetExceeded: The budget has less than epsilon left. All of these errors come before
            anything is drawn or spent.

    Guarantee:
        The choice is pure epsilon-DP for `neighbors`, and of bounded range epsilon
        (`accounting.BoundedRange`). Its law is exact. Its running time depends on the scores.

    Cost:
        At most k coins in expectation.

    Source:
        McSherry and Talwar 2007, by rejection.

    Examples:
        >>> from hdp_fast import noise
        >>> noise.exponential_mechanism([30, 950, 400], epsilon=0.5)
        1
    """
    return _select(
        "exponential_mechanism",
        *(scores, epsilon, sensitivity, monotonic, neighbors, random_state, budget),
    )


_SOURCES = {
    "permute_and_flip": "McKenna and Sheldon 2020",
    "exponential_mechanism": "McSherry and Talwar 2007",
}


def _select(
    method: str,
    scores: ArrayLike,
    epsilon: float,
    sensitivity: Number,
    monotonic: bool,
    neighbors: Neighbors,
    random_state: RandomState,
    budget: Budget | None,
) -> int:
    heights = integers("scores", scores, np.int64)
    curator_relation("neighbors", neighbors)
    flag("monotonic", monotonic)
    record = PrivacyRecord(
        mechanism=f"noise.{method}",
        source=_SOURCES[method],
        neighbors=neighbors,
        epsilon=epsilon,
        noise="coins of probability exp(-rate (best score - score))",
        rng=rng_of(random_state),
    )
    rate = selection_rate(record.epsilon, sensitivity, bool(monotonic))
    check_random_state(random_state)
    with spend(budget, record):
        return _core.select(method, heights, rate.as_integer_ratio(), make_key(random_state))


def selection_rate(epsilon: float, sensitivity: Number, monotonic: bool) -> Fraction:
    """How fast a gap in scores lowers a candidate's chances, in a choice that is epsilon-DP."""
    return exact_epsilon(epsilon) / _positive("sensitivity", sensitivity) / (1 if monotonic else 2)


def exact_epsilon(epsilon: float) -> Fraction:
    """The epsilon by which noise is calibrated, as a fraction.

    A budget takes a float as its shortest decimal, which may be a little less than the float.
    """
    return min(Fraction(epsilon), Fraction(repr(epsilon)))


def _draw_noise(
    law: str, name: str, scale: Number, size: Shape | None, random_state: RandomState
) -> int | Integers:
    return _draw(_core.integer_noise, size, (law, _scale(name, scale)), random_state)


def _draw(
    draw: Any, size: Shape | None, arguments: tuple[Any, ...], random_state: RandomState
) -> int | NDArray[Any]:
    """One int for size None, else an array of that shape, drawn in one call."""
    if size is None:
        return int(draw(*arguments, 1, make_key(random_state))[0])
    values: NDArray[Any]
    if not isinstance(size, tuple):
        values = draw(*arguments, nonnegative_int("size", size), make_key(random_state))
        return values
    shape = tuple(nonnegative_int("size", side) for side in size)
    values = draw(*arguments, math.prod(shape), make_key(random_state))
    return values.reshape(shape)


def _probability(name: str, value: Number) -> tuple[int, int]:
    exact = _to_exact(name, value)
    if not 0 <= exact <= 1:
        refuse(name, value, "a probability must lie in [0, 1]")
    return exact.as_integer_ratio()


def _rate(name: str, value: Number) -> tuple[int, int]:
    exact = _to_exact(name, value)
    if not 0 <= exact < math.inf:
        refuse(name, value, "it must be finite and at least 0")
    return exact.as_integer_ratio()


def _scale(name: str, value: Number) -> tuple[int, int]:
    exact = _to_exact(name, value)
    if not 0 < exact < _LARGEST_SCALE:
        refuse(name, value, "it must be above 0, or nothing is private, and below 2**50")
    return exact.as_integer_ratio()


def _positive(name: str, value: Number) -> Fraction:
    exact = _to_exact(name, value)
    if not 0 < exact < math.inf:
        refuse(name, value, "it must be finite and above 0")
    return Fraction(exact)


def _to_exact(name: str, value: Number) -> Number:
    """The value as a float, which may be infinite or NaN, or as the fraction that it is."""
    # The check for any other class takes as long as some hundred draws.
    if type(value) is float:
        return value
    if not isinstance(value, Rational) or is_bool(value):
        return number(name, value)
    # Plain ints: a numpy integer would keep its 64 bits, and wrap around in a product.
    fraction = Fraction(int(value.numerator), int(value.denominator))
    if max(abs(fraction.numerator), fraction.denominator) >= _LARGEST_TERM:
        raise ParameterError(f"{name} has terms of 4,096 bits or more, but they must be shorter")
    return fraction
